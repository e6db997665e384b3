/* Rules for names, labels and annotations: boundaries, quirks and the words of the messages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "kube/names.h"

#define ARENA_BYTES ((size_t)16 << 20)
#define TEXT_BYTES ((size_t)1 << 20)
#define ANNOTATIONS_BYTES ((size_t)256 << 10)

typedef size_t (*name_check)(td_str, struct td_buf *);

struct row {
    const char *name;
    size_t count; /* of messages */
};

static size_t count_lines(const struct td_buf *buf)
{
    size_t count = 0;
    for (size_t i = 0; i < buf->len; i++) {
        count += buf->ptr[i] == '\n';
    }
    return count;
}

/* Each message is one line, and counting them needs no buffer. */
static void check_text(name_check check, td_str name, size_t count)
{
    td_auto_buf out;
    td_buf_init(&out, TEXT_BYTES);
    size_t got = check(name, &out);
    if (got != count || check(name, NULL) != count || count_lines(&out) != count) {
        fail_msg("'%.*s': %zu messages, expected %zu: %s", TD_STR_ARG(name), got, count,
                 out.ptr ? out.ptr : "");
    }
}

static void check_rows(name_check check, const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        check_text(check, td_str_from(rows[i].name), rows[i].count);
    }
}

#define CHECK_ROWS(check, rows) check_rows(check, rows, sizeof(rows) / sizeof((rows)[0]))

/* A name of `len` times 'a' has no message, one of a byte more has `count_past`. */
static void check_length(name_check check, size_t len, size_t count_past)
{
    char text[512];
    assert_true(len + 1 < sizeof(text));
    memset(text, 'a', sizeof(text));
    check_text(check, (td_str){.ptr = text, .len = len}, 0);
    check_text(check, (td_str){.ptr = text, .len = len + 1}, count_past);
}

/* Object names: parts of letters, digits and inner dashes, joined by single dots. */
static void test_names_dns1123_subdomain(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"a", 0},   {"0", 0},    {"a-b", 0},  {"a--b", 0},     {"a.b.c", 0}, {"1.2", 0},
        {"", 1},    {"-", 1},    {"-a", 1},   {"a-", 1},       {".", 1},     {".a", 1},
        {"a.", 1},  {"a..b", 1}, {"a-.b", 1}, {"a.-b", 1},     {"A", 1},     {"a_b", 1},
        {"a b", 1}, {"a\n", 1},  {"a/b", 1},  {"\xC3\xA9", 1},
    };
    CHECK_ROWS(td_name_check_dns1123_subdomain, rows);
    check_length(td_name_check_dns1123_subdomain, 253, 1);
    check_text(td_name_check_dns1123_subdomain, TD_STR("a\0b"), 1);
}

/* Namespaces and containers: one part, and a dot is named as the reason. */
static void test_names_dns1123_label(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"a", 0}, {"0a", 0}, {"a-b", 0}, {"", 1}, {"a.b", 1}, {"a.", 1}, {"-a", 1}, {"A", 1},
    };
    CHECK_ROWS(td_name_check_dns1123_label, rows);
    check_length(td_name_check_dns1123_label, 63, 1);
    td_auto_buf out;
    td_buf_init(&out, TEXT_BYTES);
    (void)td_name_check_dns1123_label(TD_STR("a.b"), &out);
    assert_string_equal(out.ptr, "must not contain dots\n");
}

/* Services: a label that begins with a letter. */
static void test_names_dns1035_label(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"a", 0}, {"a0", 0}, {"a-b", 0}, {"", 1}, {"0a", 1}, {"a.b", 1}, {"a-", 1}, {"A", 1},
    };
    CHECK_ROWS(td_name_check_dns1035_label, rows);
    check_length(td_name_check_dns1035_label, 63, 1);
}

/* generateName: a trailing dash hides the byte in front of it, as upstream's mask does. */
static void test_names_subdomain_prefix_masks_the_trailing_dash(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"web", 0}, {"web-", 0}, {"web--", 0}, {"--", 0},  {"A-", 0},    {"a.-", 0},
        {"-", 1},   {"", 1},     {"-web-", 1}, {"A-b", 1}, {"Aweb-", 1}, {"web.", 1},
    };
    CHECK_ROWS(td_name_check_subdomain_prefix, rows);
    check_length(td_name_check_subdomain_prefix, 253, 1);
    char text[256];
    memset(text, 'a', sizeof(text));
    text[253] = '-';
    check_text(td_name_check_subdomain_prefix, (td_str){.ptr = text, .len = 254}, 0);
    text[253] = 'a';
    text[254] = '-';
    check_text(td_name_check_subdomain_prefix, (td_str){.ptr = text, .len = 255}, 1);
}

/* Keys of labels and annotations: an optional DNS prefix and a name. */
static void test_names_qualified(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"a", 0},   {"A_b.c-d", 0}, {"example.com/a", 0}, {"1/2", 0}, {"", 2},        {"/", 3},
        {"/a", 1},  {"a/", 2},      {"a/b/c", 1},         {"-a", 1},  {"A.com/a", 1}, {"a_b/c", 1},
        {"A/-", 2}, {"//", 1},      {"a b", 1},
    };
    CHECK_ROWS(td_name_check_qualified, rows);
    check_length(td_name_check_qualified, 63, 1);
    char text[400];
    memset(text, 'a', sizeof(text));
    text[253] = '/';
    check_text(td_name_check_qualified, (td_str){.ptr = text, .len = 253 + 1 + 63}, 0);
    text[253] = 'a';
    text[254] = '/';
    check_text(td_name_check_qualified, (td_str){.ptr = text, .len = 254 + 1 + 63}, 1);
}

/* Label values may be empty. */
static void test_names_label_value(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"", 0},   {"a", 0},  {"A_b.c-d", 0}, {"0", 0},   {"-", 1},
        {"a-", 1}, {"_a", 1}, {"a/b", 1},     {"a b", 1}, {"\xC3\xA9", 1},
    };
    CHECK_ROWS(td_name_check_label_value, rows);
    check_length(td_name_check_label_value, 63, 1);
}

/* Keys of config maps: any mix of the letters but the names of folders. */
static void test_names_config_map_key(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"a", 0}, {"A_b-.", 0}, {"-", 0},   {".a", 0},  {"a..b", 0}, {"", 1},
        {".", 1}, {"..", 1},    {"..a", 1}, {"a/b", 1}, {"../a", 2}, {"a b", 1},
    };
    CHECK_ROWS(td_name_check_config_map_key, rows);
    check_length(td_name_check_config_map_key, 253, 1);
}

/* Environment variables: all printable ASCII but '='. */
static void test_names_env_var(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"A", 0},   {"0", 0},     {" ", 0},    {"~!@#$%^&*()", 0}, {"..", 0},       {"", 1},
        {"a=b", 1}, {"a\x7F", 1}, {"a\tb", 1}, {"\x1F", 1},        {"\xC3\xA9", 1}, {"=\xFF", 1},
    };
    CHECK_ROWS(td_name_check_env_var, rows);
}

/* Ports: five rules that may all be broken at once. */
static void test_names_port(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"http", 0}, {"a", 0},  {"8a", 0}, {"a-b", 0},  {"80", 1},
        {"", 2},     {"-a", 1}, {"a-", 1}, {"a--b", 1}, {"A", 2},
        {"a_b", 1},  {"-", 2},  {"--", 3}, {"a.b", 1},  {"-----------------", 4},
    };
    CHECK_ROWS(td_name_check_port, rows);
    check_length(td_name_check_port, 15, 1);
}

static struct td_json *json(struct td_arena *arena, const char *text)
{
    struct td_json *tree = NULL;
    assert_int_equal(td_json_parse(arena, td_str_from(text), NULL, &tree, NULL), 0);
    return tree;
}

/* Every broken key and value of a map is a line that begins with the path. */
static void test_names_labels_name_path_and_value(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        size_t count;
        const char *words;
    } rows[] = {
        {"{}", 0, ""},
        {"null", 0, ""},
        {"{\"a\":\"\",\"b\":null,\"example.com/c\":\"d\"}", 0, ""},
        {"{\"-a\":\"b\"}", 1, "metadata.labels: Invalid value: \"-a\": name part must consist"},
        {"{\"a\":\"b c\"}", 1,
         "metadata.labels: Invalid value: \"b c\": a valid label must be an empty string or"},
        {"{\"/\":\"-\"}", 4, "metadata.labels: Invalid value: \"/\": prefix part must be"},
        {"{\"a\":1}", 1, "metadata.labels: Invalid value: \"a\": the value of this key"},
        {"[]", 1, "metadata.labels: must be an object"},
    };
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_auto_buf out;
        td_buf_init(&out, TEXT_BYTES);
        struct td_json *map = json(&arena, rows[i].json);
        assert_int_equal(td_name_check_labels(map, TD_STR("metadata.labels"), &out), rows[i].count);
        assert_int_equal(td_name_check_labels(map, TD_STR("metadata.labels"), NULL), rows[i].count);
        assert_int_equal(count_lines(&out), rows[i].count);
        assert_true(td_str_starts_with(td_buf_str(&out), td_str_from(rows[i].words)));
    }
    assert_int_equal(td_name_check_labels(NULL, TD_STR("metadata.labels"), NULL), 0);
}

/* Case does not count in annotation keys, by Unicode's rules and not only for A to Z. */
static void test_names_annotation_keys_are_lowered(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        size_t count;
    } rows[] = {
        {"{\"Example.COM/Key\":\"any text, spaces too\"}", 0},
        {"{\"\\u212a.com/\\u0130\":\"\"}", 0}, /* Kelvin sign and dotted capital I */
        {"{\"\\u00c5\":\"\"}", 1},
        {"{\"\\u017f\":\"\"}", 1},
        {"{\"a b\":\"\"}", 1},
        {"{\"a\":null}", 0},
        {"{\"a\":{}}", 1},
        {"7", 1},
        {"null", 0},
    };
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct td_json *map = json(&arena, rows[i].json);
        td_str path = TD_STR("metadata.annotations");
        assert_int_equal(td_name_check_annotations(map, path, NULL), rows[i].count);
    }
}

/* Lengths count after lowering, and a key of any length is answered. */
static void test_names_annotation_key_lengths(void **state)
{
    (void)state;
    static const struct {
        size_t kelvins;
        size_t count;
    } rows[] = {{63, 0}, {64, 1}, {341, 1}, {342, 2}, {5000, 2}};
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char *text = td_arena_alloc(&arena, rows[i].kelvins * 3);
        for (size_t j = 0; j < rows[i].kelvins; j++) {
            memcpy(text + j * 3, "\xE2\x84\xAA", 3);
        }
        struct td_json *map = td_json_new_object(&arena);
        td_json_set(&arena, map, (td_str){.ptr = text, .len = rows[i].kelvins * 3},
                    td_json_new_string(&arena, TD_STR("")));
        assert_int_equal(td_name_check_annotations(map, TD_STR("a"), NULL), rows[i].count);
    }
}

/* Keys and values together are capped. */
static void test_names_annotations_have_a_total_size(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    char *text = td_arena_alloc(&arena, ANNOTATIONS_BYTES);
    memset(text, 'x', ANNOTATIONS_BYTES);
    for (size_t extra = 0; extra < 2; extra++) {
        td_auto_buf out;
        td_buf_init(&out, TEXT_BYTES);
        struct td_json *map = td_json_new_object(&arena);
        td_str half = {.ptr = text, .len = ANNOTATIONS_BYTES / 2 - 1};
        td_str rest = {.ptr = text, .len = ANNOTATIONS_BYTES / 2 - 2 + extra};
        td_json_set(&arena, map, TD_STR("a"), td_json_new_string(&arena, half));
        td_json_set(&arena, map, TD_STR("bb"), td_json_new_string(&arena, rest));
        assert_int_equal(td_name_check_annotations(map, TD_STR("at"), &out), extra);
        assert_int_equal(td_name_check_annotations(map, TD_STR("at"), NULL), extra);
        assert_true(extra == 0 || td_str_starts_with(td_buf_str(&out), TD_STR("at: Too long: ")));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_dns1123_subdomain),
        cmocka_unit_test(test_names_dns1123_label),
        cmocka_unit_test(test_names_dns1035_label),
        cmocka_unit_test(test_names_subdomain_prefix_masks_the_trailing_dash),
        cmocka_unit_test(test_names_qualified),
        cmocka_unit_test(test_names_label_value),
        cmocka_unit_test(test_names_config_map_key),
        cmocka_unit_test(test_names_env_var),
        cmocka_unit_test(test_names_port),
        cmocka_unit_test(test_names_labels_name_path_and_value),
        cmocka_unit_test(test_names_annotation_keys_are_lowered),
        cmocka_unit_test(test_names_annotation_key_lengths),
        cmocka_unit_test(test_names_annotations_have_a_total_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
