/* The cut as the ConfigMap has it: what is read, and what is refused by field and value. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/json/json.h"
#include "control/shards/shards_private.h"

#define LOW "0x4000000000000000"
#define HIGH "0xc000000000000000"

static int read_cut(const char *data, struct shards_cut *ret, struct td_error *err)
{
    td_auto_arena arena = td_arena_capped((size_t)1 << 20);
    td_str text = td_arena_format(&arena, "{\"data\":{%s}}", data);
    struct td_json *object;
    assert_int_equal(td_json_parse(&arena, text, NULL, &object, NULL), TD_OK);
    return shards_cut_read(object, ret, err);
}

static void test_cut_is_read_and_has_no_gaps(void **state)
{
    (void)state;
    struct shards_cut cut;
    assert_int_equal(
        read_cut("\"epoch\":\"5\",\"shards\":\"3\",\"starts\":\"" LOW "," HIGH "\"", &cut, NULL),
        TD_OK);
    assert_int_equal(cut.epoch, 5);
    assert_int_equal(cut.count, 3);
    assert_true(shards_cut_range(&cut, 0).first == 0);
    for (size_t i = 0; i + 1 < cut.count; i++) {
        assert_true(shards_cut_range(&cut, i).last + 1 == shards_cut_range(&cut, i + 1).first);
    }
    assert_true(shards_cut_range(&cut, 2).last == UINT64_MAX);
    assert_int_equal(read_cut("\"epoch\":\"1\",\"shards\":\"1\",\"starts\":\"\"", &cut, NULL),
                     TD_OK);
    assert_true(shards_cut_range(&cut, 0).last == UINT64_MAX);
}

static void test_cut_that_is_none_is_refused(void **state)
{
    static const struct {
        const char *data;
        const char *message;
    } rows[] = {
        {"", "data.epoch: ''"},
        {"\"epoch\":\"-1\"", "data.epoch: '-1'"},
        {"\"epoch\":\"1\",\"shards\":\"0\"", "data.shards: '0'"},
        {"\"epoch\":\"1\",\"shards\":\"65\"", "data.shards: '65'"},
        {"\"epoch\":\"1\",\"shards\":\"2\",\"starts\":\"0x1\"", "data.starts: '0x1'"},
        {"\"epoch\":\"1\",\"shards\":\"3\",\"starts\":\"" HIGH "," LOW "\"",
         "data.starts: '" LOW "'"},
        {"\"epoch\":\"1\",\"shards\":\"3\",\"starts\":\"" LOW "\"", "data.starts: ''"},
        {"\"epoch\":\"1\",\"shards\":\"2\",\"starts\":\"" LOW "," HIGH "\"",
         "data.starts: '" HIGH "'"},
        {"\"epoch\":\"1\",\"shards\":\"2\",\"starts\":\"0x400000000000000G\"",
         "data.starts: '0x400000000000000G'"},
    };
    (void)state;
    for (size_t i = 0; i < TD_COUNT(rows); i++) {
        struct shards_cut cut;
        struct td_error err = TD_ERROR_INIT;
        assert_int_equal(read_cut(rows[i].data, &cut, &err), TD_INVALID);
        if (!strstr(err.message, rows[i].message)) {
            fail_msg("%s: %s", rows[i].data, err.message);
        }
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cut_is_read_and_has_no_gaps),
        cmocka_unit_test(test_cut_that_is_none_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
