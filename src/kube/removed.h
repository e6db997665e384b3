/*
 * APIs that Kubernetes (and the Vertical Pod Autoscaler) served once and serves no more, with what
 * took their place. Constant data.
 */
#pragma once

#include "base/str.h"

struct td_removed_api {
    td_str api_version;
    td_str kind;
    const char *removed_in;  /* "Kubernetes 1.26" */
    const char *replacement; /* "autoscaling/v2 (since 1.23)"; NULL: there is none */
    const char *advice;      /* without a replacement, what to do instead */
};

/* The row of a kind in a version that was removed, or NULL. */
const struct td_removed_api *td_removed_find(td_str api_version, td_str kind);
