/* What is told of an answer: the server's own words where it has some. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/arena.h"
#include "kube/client/client_reply.h"

/* The message of a Status; without one, or without JSON, the line of the client. */
static void test_reply_message_is_the_servers(void **state)
{
    (void)state;
    static const struct {
        const char *body, *want;
    } rows[] = {
        {"{\"kind\":\"Status\",\"message\":\"pods \\\"a\\\" not found\"}", "pods \"a\" not found"},
        {"{\"kind\":\"Status\",\"message\":\"\"}", "GET /x: refused"},
        {"{}", "GET /x: refused"},
        {"<html>", "GET /x: refused"},
        {"", "GET /x: refused"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, 1 << 16);
        struct td_client_reply reply = {.code = TD_DENIED, .body = td_str_from(rows[i].body)};
        (void)td_error_set(&reply.err, TD_DENIED, "GET /x: refused");
        assert_string_equal(td_reply_message(&arena, &reply).ptr, rows[i].want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reply_message_is_the_servers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
