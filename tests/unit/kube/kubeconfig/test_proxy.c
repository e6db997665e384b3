/* Which requests go through a proxy, with the answers of Go's httpproxy. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/error.h"
#include "kube/kubeconfig/proxy.h"
#include "support/test_env.h"

/* NO_PROXY's forms: names, what is below them, addresses, ranges, ports, and nonsense. */
static void test_proxy_exemptions(void **state)
{
    (void)state;
    static const struct {
        const char *list;
        const char *host;
        uint16_t port;
        bool is_exempt;
    } rows[] = {
        {"", "example.com", 443, false},
        {"", "localhost", 443, true},
        {"", "127.0.0.1", 443, true},
        {"", "127.9.9.9", 443, true},
        {"", "::1", 443, true},
        {"", "::ffff:127.0.0.1", 443, true},
        {"*", "example.com", 443, true},
        {"a,*", "example.com", 443, true},
        {"example.com", "example.com", 443, true},
        {"EXAMPLE.com", "example.COM", 443, true},
        {"example.com", "a.example.com", 443, true},
        {"example.com", "notexample.com", 443, false},
        {".example.com", "example.com", 443, false},
        {".example.com", "a.example.com", 443, true},
        {"*.example.com", "example.com", 443, false},
        {"*.example.com", "a.b.example.com", 443, true},
        {"example.com:443", "example.com", 443, true},
        {"example.com:80", "example.com", 443, false},
        {" x , example.com ", "example.com", 443, true},
        {"10.0.0.0/8", "10.1.2.3", 443, true},
        {"10.0.0.0/8", "11.1.2.3", 443, false},
        {"10.0.0.0/12", "10.15.0.1", 443, true},
        {"10.0.0.0/12", "10.16.0.1", 443, false},
        {"0.0.0.0/0", "10.16.0.1", 443, true},
        {"0.0.0.0/0", "2001:db8::1", 443, false},
        {"2001:db8::/32", "2001:db8::1", 443, true},
        {"2001:db8::/32", "2001:db9::1", 443, false},
        {"10.0.0.0/33", "10.0.0.0", 443, false},
        {"10.0.0.1", "10.0.0.1", 443, true},
        {"10.0.0.1:443", "10.0.0.1", 443, true},
        {"10.0.0.1:80", "10.0.0.1", 443, false},
        {"2001:db8::1", "2001:db8::1", 443, true},
        {"[2001:db8::1]:443", "2001:db8::1", 443, true},
        {"[2001:db8::1]:80", "2001:db8::1", 443, false},
        {"0.0.1", "10.0.0.1", 443, false},
        {":443", "example.com", 443, false},
        {",,", "example.com", 443, false},
        {"/", "example.com", 443, false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct td_proxy_target target = {true, td_str_from(rows[i].host), rows[i].port};
        if (td_proxy_is_exempt(td_str_from(rows[i].list), &target) != rows[i].is_exempt) {
            fail_msg("'%s' for %s:%d", rows[i].list, rows[i].host, rows[i].port);
        }
    }
}

/* Which variable counts, and what its value becomes. */
static void test_proxy_choice(void **state)
{
    (void)state;
    static const struct {
        struct test_env env;
        bool is_tls;
        const char *url;     /* NULL: a failure */
        const char *message; /* of the failure */
    } rows[] = {
        {{{NULL}}, true, "", NULL},
        {{{"HTTPS_PROXY", "http://p:1", NULL}}, true, "http://p:1", NULL},
        {{{"HTTPS_PROXY", "http://p:1", NULL}}, false, "", NULL},
        {{{"HTTP_PROXY", "http://p:1", NULL}}, false, "http://p:1", NULL},
        {{{"HTTP_PROXY", "http://p:1", NULL}}, true, "", NULL},
        {{{"https_proxy", "p:1", NULL}}, true, "http://p:1", NULL},
        {{{"HTTPS_PROXY", "a:1", "https_proxy", "b:1", NULL}}, true, "http://a:1", NULL},
        {{{"HTTPS_PROXY", "", "https_proxy", "b:1", NULL}}, true, "http://b:1", NULL},
        {{{"HTTPS_PROXY", "socks5://p:1", NULL}}, true, "socks5://p:1", NULL},
        {{{"HTTPS_PROXY", "p:1", "NO_PROXY", "example.com", NULL}}, true, "", NULL},
        {{{"HTTPS_PROXY", "p:1", "no_proxy", "example.com", NULL}}, true, "", NULL},
        {{{"HTTPS_PROXY", "p:1", "NO_PROXY", "x", "no_proxy", "example.com", NULL}},
         true,
         "http://p:1",
         NULL},
        {{{"HTTPS_PROXY", "ftp://u:secret@p", NULL}},
         true,
         NULL,
         "HTTPS_PROXY: must be a URL of scheme http, https or socks5"},
        {{{"https_proxy", "http://u:secret@", NULL}},
         true,
         NULL,
         "https_proxy: the URL has no host"},
        {{{"HTTPS_PROXY", "http://u:secret@p x", NULL}},
         true,
         NULL,
         "HTTPS_PROXY: the URL holds a space or control character"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_auto_arena arena;
        struct td_error err = TD_ERROR_INIT;
        struct test_env env = rows[i].env;
        struct td_proxy_target target = {rows[i].is_tls, TD_STR("example.com"), 443};
        td_str url = TD_STR("unset");
        td_arena_init(&arena, (size_t)1 << 20);
        int code = td_proxy_choose(&arena, test_env_get, &env, &target, &url, &err);
        if (rows[i].url) {
            assert_int_equal(code, TD_OK);
            assert_string_equal(url.ptr, rows[i].url);
        } else {
            assert_int_equal(code, TD_INVALID);
            assert_string_equal(err.message, rows[i].message);
            assert_string_equal(url.ptr, "unset");
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_proxy_exemptions),
        cmocka_unit_test(test_proxy_choice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
