#include "base/pki/hmac.h"

#include <limits.h>

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/pki/pki_internal.h"

void td_hmac_sha256(td_str key, td_str message, unsigned char ret[TD_HMAC_BYTES])
{
    td_assert(key.len <= INT_MAX);
    unsigned int len = 0;
    td_pki_setup();
    const unsigned char *digest = HMAC(EVP_sha256(), key.ptr, (int)key.len,
                                       (const unsigned char *)message.ptr, message.len, ret, &len);
    if (!digest) {
        td_out_of_memory(); /* nothing else can be wrong with it */
    }
    td_assert(len == TD_HMAC_BYTES);
}
