/*
 * HMAC with SHA-256 (RFC 2104), to sign what comes back to us.
 */
#pragma once

#include "base/str.h"

#define TD_HMAC_BYTES 32

void td_hmac_sha256(td_str key, td_str message, unsigned char ret[TD_HMAC_BYTES]);
