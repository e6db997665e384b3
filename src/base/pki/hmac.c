#include "base/pki/hmac.h"

#include <limits.h>

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/assert.h"

void td_hmac_sha256(td_str key, td_str message, unsigned char ret[TD_HMAC_BYTES])
{
    td_assert(key.len <= INT_MAX);
    unsigned int len = 0;
    const unsigned char *digest = HMAC(EVP_sha256(), key.ptr, (int)key.len,
                                       (const unsigned char *)message.ptr, message.len, ret, &len);
    td_assert(digest && len == TD_HMAC_BYTES);
}
