/* Edits by position: one value changes, or comes with the mappings around it, and every other byte
 * stays; what cannot be edited safely is refused with its line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/yaml/yaml_edit.h"

#define ARENA_BYTES ((size_t)16 << 20)
#define STEPS_MAX 8

/* "0/containers/1/cpu": the document, then keys and numbers of items. */
static int edit(struct td_arena *arena, const char *text, const char *way, const char *value,
                td_str *ret, struct td_error *err)
{
    struct td_yaml_step steps[STEPS_MAX];
    struct td_yaml_place place = {.document = (size_t)(way[0] - '0'), .steps = steps};
    td_str rest = td_str_from(way + 2);
    while (rest.len > 0) {
        size_t end = td_str_find(rest, '/', 0);
        td_str step = td_str_slice(rest, 0, end);
        bool is_item = step.len == 1 && step.ptr[0] >= '0' && step.ptr[0] <= '9';
        steps[place.step_count++] =
            is_item ? (struct td_yaml_step){.index = (size_t)(step.ptr[0] - '0')}
                    : (struct td_yaml_step){.key = step};
        rest = td_str_slice(rest, end < rest.len ? end + 1 : end, rest.len);
    }
    return td_yaml_edit(arena, td_str_from(text), &place, td_str_from(value), ret, err);
}

static void test_edit_changes_one_value(void **state)
{
    (void)state;
    static const struct {
        const char *before;
        const char *way;
        const char *value;
        const char *after;
    } rows[] = {
        /* In place, whatever stands around it. */
        {"a:   1 # one\nb: 2\n", "0/a", "430m", "a:   430m # one\nb: 2\n"},
        {"a: \"1\"\n", "0/a", "2", "a: \"2\"\n"},
        {"a: '1'  # x\n", "0/a", "2Gi", "a: '2Gi'  # x\n"},
        {"a: {b: [1, {c: 5}]}", "0/a/b/1/c", "6", "a: {b: [1, {c: 6}]}"},
        {"# \xC3\xA4\xE2\x82\xAC\nk: \xF0\x9F\x98\x80\na: 1\n", "0/a", "2",
         "# \xC3\xA4\xE2\x82\xAC\nk: \xF0\x9F\x98\x80\na: 2\n"},
        {"\xEF\xBB\xBF"
         "a: 1\n",
         "0/a", "2",
         "\xEF\xBB\xBF"
         "a: 2\n"},
        {"a: 1\r\nb: 2\r\n", "0/b", "3", "a: 1\r\nb: 3\r\n"},
        {"a: 1\n---\n# none\n---\na: 2\n...\n---\na: 3\n", "2/a", "4",
         "a: 1\n---\n# none\n---\na: 2\n...\n---\na: 4\n"},
        {"a:\nb: 1\n", "0/a", "5m", "a: 5m\nb: 1\n"},
        /* A member more. */
        {"r:\n  cpu: 1 # c\n  # end\nz: 1\n", "0/r/memory", "1Gi",
         "r:\n  cpu: 1 # c\n  memory: 1Gi\n  # end\nz: 1\n"},
        {"r:\n  cpu: 1", "0/r/memory", "1Gi", "r:\n  cpu: 1\n  memory: 1Gi"},
        {"r:\r\n  cpu: 1\r\n", "0/r/memory", "1Gi", "r:\r\n  cpu: 1\r\n  memory: 1Gi\r\n"},
        {"r: {cpu: 1}\n", "0/r/memory", "1Gi", "r: {cpu: 1, memory: 1Gi}\n"},
        {"r: {cpu: 1,}\n", "0/r/memory", "1Gi", "r: {cpu: 1, memory: 1Gi,}\n"},
        {"r: {}\n", "0/r/q/cpu", "1m", "r: {q: {cpu: 1m}}\n"},
        {"r: null # n\n", "0/r/q/cpu", "1m", "r: {q: {cpu: 1m}} # n\n"},
        {"r: # n\nz: 1\n", "0/r/q/cpu", "1m", "r: # n\n  q:\n    cpu: 1m\nz: 1\n"},
        /* Mappings that are missing, with the file's own indentation. */
        {"s:\n    c:\n    - name: web\n      image: x\n    - name: b\n", "0/s/c/0/r/q/cpu", "1m",
         "s:\n    c:\n    - name: web\n      image: x\n      r:\n          q:\n              cpu: "
         "1m\n    - name: b\n"},
        {"c:\n- name: a\n  args:\n  - |\n    text\n\n- name: b\n", "0/c/0/q/cpu", "1m",
         "c:\n- name: a\n  args:\n  - |\n    text\n\n  q:\n    cpu: 1m\n- name: b\n"},
        {"c:\n- {name: a, image: x}\n", "0/c/0/r/cpu", "1m",
         "c:\n- {name: a, image: x, r: {cpu: 1m}}\n"},
        /* JSON stays JSON. */
        {"{\"a\": {\"cpu\": 1}}", "0/a/cpu", "430m", "{\"a\": {\"cpu\": \"430m\"}}"},
        {"{\"a\": {\"cpu\": \"1\"}}", "0/a/cpu", "2", "{\"a\": {\"cpu\": \"2\"}}"},
        {"{\n  \"n\": \"x\",\n  \"a\": {\n    \"b\": 1\n  }\n}\n", "0/a/r/cpu", "1m",
         "{\n  \"n\": \"x\",\n  \"a\": {\n    \"b\": 1,\n    \"r\": {\"cpu\": \"1m\"}\n  }\n}\n"},
        {"{\"a\": {}}", "0/a/r/cpu", "1m", "{\"a\": {\"r\": {\"cpu\": \"1m\"}}}"},
        /* An anchor elsewhere is no reason to refuse. */
        {"x: &x {k: 1}\ny: *x\na: {cpu: 1}\n", "0/a/cpu", "2",
         "x: &x {k: 1}\ny: *x\na: {cpu: 2}\n"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_auto_arena arena = td_arena_capped(ARENA_BYTES);
        struct td_error err = TD_ERROR_INIT;
        td_str after = TD_STR_EMPTY;
        if (edit(&arena, rows[i].before, rows[i].way, rows[i].value, &after, &err) != TD_OK) {
            fail_msg("row %zu: %s", i, err.message);
        }
        assert_string_equal(after.ptr, rows[i].after);
    }
}

static void test_edit_refuses_what_is_not_safe(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *way;
        const char *message;
    } rows[] = {
        {"x: &x {cpu: 1}\na: *x\n", "0/a/cpu", "line 2: the value is an alias"},
        {"x: &x {cpu: 1}\na: *x\n", "0/x/cpu", "line 1: an anchor shares the value"},
        {"x: &v 1\na: *v\n", "0/a", "line 2: the value is an alias"},
        {"x: &v 1\na: *v\n", "0/x", "line 1: the value is not a plain or quoted text"},
        {"x: &x {m: 1}\na:\n  <<: *x\n  n: 2\n", "0/a/cpu", "line 2: the mapping takes members"},
        {"a: |\n  1\n", "0/a", "line 1: the value is not a plain or quoted text"},
        {"a: [1]\n", "0/a/cpu", "line 1: the value is not a mapping"},
        {"a: [1]\n", "0/a/3", "line 1: the list has no such item"},
        {"a: 1\n", "1/a", "there is no document 2"},
        {"a: [\n", "0/a", "line "},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_auto_arena arena = td_arena_capped(ARENA_BYTES);
        struct td_error err = TD_ERROR_INIT;
        td_str after = TD_STR("untouched");
        assert_int_not_equal(edit(&arena, rows[i].text, rows[i].way, "1m", &after, &err), TD_OK);
        assert_true(td_str_equal(after, TD_STR("untouched")));
        if (strncmp(err.message, rows[i].message, strlen(rows[i].message)) != 0) {
            fail_msg("row %zu: %s", i, err.message);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_edit_changes_one_value),
        cmocka_unit_test(test_edit_refuses_what_is_not_safe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
