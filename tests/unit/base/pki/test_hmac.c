/* HMAC by its published vectors. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/pki/hmac.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* RFC 4231, and keys of no and of great length. */
static void test_hmac(void **state)
{
    (void)state;
    static char long_key[131];
    memset(long_key, 0xaa, sizeof(long_key));
    const struct {
        td_str key;
        td_str message;
        const char *digest;
    } rows[] = {
        {TD_STR("Jefe"), TD_STR("what do ya want for nothing?"),
         "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
        {{.ptr = long_key, .len = sizeof(long_key)},
         TD_STR("Test Using Larger Than Block-Size Key - Hash Key First"),
         "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
        {TD_STR(""), TD_STR(""),
         "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        unsigned char digest[TD_HMAC_BYTES];
        char text[2 * TD_HMAC_BYTES + 1];
        td_hmac_sha256(rows[i].key, rows[i].message, digest);
        for (size_t b = 0; b < TD_HMAC_BYTES; b++) {
            (void)snprintf(&text[2 * b], 3, "%02x", digest[b]);
        }
        assert_string_equal(text, rows[i].digest);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_hmac)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
