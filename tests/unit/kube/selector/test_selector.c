/* Label selectors: what is accepted, what it means, and that text, object and match agree. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/os/file.h"
#include "kube/selector/selector.h"
#include "support/random.h"

#define ARENA_BYTES ((size_t)256 << 20)
#define TEXT_BYTES ((size_t)4 << 20)
#define ROUNDS 3000
#define REQUIREMENTS_MAX 5
#define VALUES_MAX 20

static const char *const words[] = {"a",  "b",  "app",   "in", "notin", "example.com/app",
                                    "x1", "10", "9",     "07", "web",   "x.y",
                                    "Z",  "zz", "a-b_c", "5",  "m",     "k8s.io/name"};
#define WORD_COUNT (sizeof(words) / sizeof(words[0]))

static td_str random_word(void)
{
    return td_str_from(words[random_below(WORD_COUNT)]);
}

/* A word without a slash, or nothing: what a label value may be. */
static td_str random_value(void)
{
    td_str word = random_word();
    return random_below(8) == 0 || td_str_find(word, '/', 0) < word.len ? TD_STR_EMPTY : word;
}

static td_str written(struct td_arena *arena, const struct td_selector *selector)
{
    td_auto_buf text;
    td_buf_init(&text, TEXT_BYTES);
    td_selector_write(selector, &text);
    assert_int_equal(td_buf_check(&text, "selector", NULL), TD_OK);
    return td_arena_copy_str(arena, td_buf_str(&text));
}

static bool same_requirement(const struct td_requirement *a, const struct td_requirement *b)
{
    bool is_same = td_str_equal(a->key, b->key) && a->operation == b->operation &&
                   a->value_count == b->value_count;
    for (size_t i = 0; is_same && i < a->value_count; i++) {
        is_same = td_str_equal(a->values[i], b->values[i]);
    }
    return is_same;
}

static bool same_selector(const struct td_selector *a, const struct td_selector *b)
{
    bool is_same = a->count == b->count && a->matches_nothing == b->matches_nothing;
    for (size_t i = 0; is_same && i < a->count; i++) {
        is_same = same_requirement(&a->requirements[i], &b->requirements[i]);
    }
    return is_same;
}

/* Accepted texts and the canonical text of each. */
static void test_selector_parses_to_canonical_text(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *canonical;
    } rows[] = {
        {"", ""},
        {" \t\r\n", ""},
        {"a", "a"},
        {"!a", "!a"},
        {"! a", "!a"},
        {"a,b", "a,b"},
        {"b,a", "a,b"},
        {"b,a,b", "a,b,b"},
        {"!b,b,b=1", "!b,b,b=1"},
        {"a=b", "a=b"},
        {"a==b", "a==b"},
        {" a =\tb ", "a=b"},
        {"a=", "a="},
        {"a=,b", "a=,b"},
        {"a!=", "a!="},
        {"a in ()", "a in ()"},
        {"a in (,)", "a in ()"},
        {"a in (,,,,)", "a in ()"},
        {"a in (b,)", "a in (,b)"},
        {"a in (,b)", "a in (,b)"},
        {"a in (c,,b)", "a in (,b,c)"},
        {"a in (c,b,c)", "a in (b,c)"},
        {"a in(c,b)", "a in (b,c)"},
        {"a notin (b)", "a notin (b)"},
        {"in in (in,notin)", "in in (in,notin)"},
        {"in=in", "in=in"},
        {"!notin", "!notin"},
        {"a>1", "a>1"},
        {"a>01,a<9223372036854775807", "a>01,a<9223372036854775807"},
        {"example.com/a=b", "example.com/a=b"},
    };
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct td_error err = TD_ERROR_INIT;
        struct td_selector selector;
        int code = td_selector_parse(&arena, td_str_from(rows[i].text), &selector, &err);
        if (code != TD_OK) {
            fail_msg("'%s': %s", rows[i].text, err.message);
        }
        assert_string_equal(written(&arena, &selector).ptr, rows[i].canonical);
        assert_int_equal(td_selector_is_empty(&selector), rows[i].canonical[0] == '\0');
    }
}

/* Refused texts; the output is not touched and the message is upstream's, letter for letter. */
#define PART_RULE                                                                                  \
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "    \
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "         \
    "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
#define VALUE_RULE                                                                                 \
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "    \
    "'.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or "             \
    "'my_value',  or '12345', regex used for validation is "                                       \
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
#define UNABLE "unable to parse requirement: "
static void test_selector_refuses_malformed_text(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *message;
    } rows[] = {
        {",", "found ',', expected: !, identifier, or 'end of string'"},
        {"a,", "found '', expected: identifier after ','"},
        {"a,,b", "found ',', expected: identifier after ','"},
        {"!", UNABLE "found '', expected: identifier"},
        {"!!a", UNABLE "found '!', expected: identifier"},
        {"!a=b", "found '=', expected: ',' or 'end of string'"},
        {"!a in (b)", "found 'in', expected: ',' or 'end of string'"},
        {"=b", "found '=', expected: !, identifier, or 'end of string'"},
        {"a b", UNABLE "found 'b', expected: in, notin, =, ==, !=, gt, lt"},
        {"a=b c", "found 'c', expected: ',' or 'end of string'"},
        {"a=b=c", "found '=', expected: ',' or 'end of string'"},
        {"a===b", UNABLE "found '=', expected: identifier"},
        {"a=!b", UNABLE "found '!', expected: identifier"},
        {"a=(b)", UNABLE "found '(', expected: identifier"},
        {"a in", UNABLE "found '' expected: '('"},
        {"a in b", UNABLE "found 'b' expected: '('"},
        {"a in (", UNABLE "found '', expected: ',', ')' or identifier"},
        {"a in (b", UNABLE "found '', expected: ',' or ')'"},
        {"a in (b c)", UNABLE "found 'c', expected: ',' or ')'"},
        {"a in (b=c)", UNABLE "found '=', expected: ',' or ')'"},
        {"a in (,=)", UNABLE "found '=', expected: ',', or identifier"},
        {"a in (,", UNABLE "found '', expected: ',', or identifier"},
        {"a in ((b))", UNABLE "found '(', expected: ',', ')' or identifier"},
        {"a in (b))", "found ')', expected: ',' or 'end of string'"},
        {"a IN (b)", UNABLE "found 'IN', expected: in, notin, =, ==, !=, gt, lt"},
        {"a gt 5", UNABLE "found 'gt', expected: in, notin, =, ==, !=, gt, lt"},
        {"a>", UNABLE
         "values[0]: Invalid value: \"\": for 'Gt', 'Lt' operators, the value must be an integer"},
        {"a>=1", UNABLE "found '=', expected: identifier"},
        {"a<9223372036854775808", UNABLE "values[0]: Invalid value: \"9223372036854775808\": for "
                                         "'Gt', 'Lt' operators, the value must be an integer"},
        {"a>-1", UNABLE "values[0][a]: Invalid value: \"-1\": " VALUE_RULE},
        {"a>-x", UNABLE "[values[0]: Invalid value: \"-x\": for 'Gt', 'Lt' operators, the value "
                        "must be an integer, values[0][a]: Invalid value: \"-x\": " VALUE_RULE "]"},
        {"-a", UNABLE "<nil>: Invalid value: \"-a\": name part " PART_RULE},
        {"/a", UNABLE "<nil>: Invalid value: \"/a\": prefix part must be non-empty"},
        {"a/",
         UNABLE "<nil>: Invalid value: \"a/\": name part must be non-empty; name part " PART_RULE},
        {"A.b/c",
         UNABLE "<nil>: Invalid value: \"A.b/c\": prefix part a lowercase RFC 1123 subdomain must "
                "consist of lower case alphanumeric characters, '-' or '.', and must start and end "
                "with an alphanumeric character (e.g. 'example.com', regex used for validation is "
                "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"},
        {"a/b/c",
         UNABLE "<nil>: Invalid value: \"a/b/c\": a valid label key " PART_RULE
                " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"},
        {"a=b/c", UNABLE "values[0][a]: Invalid value: \"b/c\": " VALUE_RULE},
        {"a in (b,_c)", UNABLE "values[0][a]: Invalid value: \"_c\": " VALUE_RULE},
        {"a in (-b,c,-d)", UNABLE "[values[0][a]: Invalid value: \"-b\": " VALUE_RULE
                                  ", values[1][a]: Invalid value: \"-d\": " VALUE_RULE "]"},
        {"a=\xC3\xA9", UNABLE "values[0][a]: Invalid value: \"\xC3\xA9\": " VALUE_RULE},
    };
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct td_error err = TD_ERROR_INIT;
        struct td_selector selector = {.count = 77};
        td_str text = td_str_from(rows[i].text);
        assert_int_equal(td_selector_parse(&arena, text, &selector, &err), TD_INVALID);
        assert_int_equal(selector.count, 77);
        assert_string_equal(err.message, rows[i].message);
        assert_int_equal(td_selector_parse(&arena, text, &selector, NULL), TD_INVALID);
    }
}

/* A NUL where a token would begin is the end; directly behind a token it is passed over. */
static void test_selector_nul_bytes_as_upstream(void **state)
{
    (void)state;
    static const struct {
        td_str text;
        const char *canonical; /* NULL: refused */
    } rows[] = {
        {TD_STR_INIT("\0,,,"), ""},    {TD_STR_INIT("a \0 =b"), "a"},
        {TD_STR_INIT("a\0=b"), "a=b"}, {TD_STR_INIT("a=\0b"), "a=b"},
        {TD_STR_INIT("a=b\0"), "a=b"}, {TD_STR_INIT("a=b\0\0,"), "a=b"},
        {TD_STR_INIT("a\0b"), NULL},   {TD_STR_INIT("a,\0"), NULL},
    };
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct td_selector selector;
        int code = td_selector_parse(&arena, rows[i].text, &selector, NULL);
        assert_int_equal(code, rows[i].canonical ? TD_OK : TD_INVALID);
        if (rows[i].canonical) {
            assert_string_equal(written(&arena, &selector).ptr, rows[i].canonical);
        }
    }
}

/* The length of a text is capped, and what is just below is handled without trouble. */
static void test_selector_long_texts(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    size_t len = TD_SELECTOR_BYTES_MAX + 1;
    char *text = td_arena_alloc(&arena, len);
    memset(text, ' ', len);
    struct td_selector selector;
    assert_int_equal(td_selector_parse(&arena, (td_str){text, len}, &selector, NULL), TD_LIMIT);
    assert_int_equal(td_selector_parse(&arena, (td_str){text, len - 1}, &selector, NULL), TD_OK);
    memset(text, ',', len);
    memcpy(text, "a in (", 6);
    text[len - 2] = ')';
    assert_int_equal(td_selector_parse(&arena, (td_str){text, len - 1}, &selector, NULL), TD_OK);
    assert_int_equal(selector.requirements[0].value_count, 1);
    for (size_t i = 0; i + 1 < len; i++) {
        text[i] = i % 2 == 0 ? (char)('a' + (char)(i / 2 % 26)) : ',';
    }
    assert_int_equal(td_selector_parse(&arena, (td_str){text, len - 2}, &selector, NULL), TD_OK);
    assert_int_equal(selector.count, TD_SELECTOR_BYTES_MAX / 2);
}

/* An arena past its cap is an ordinary failure. */
static void test_selector_stops_at_the_arena_cap(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, 1);
    struct td_selector selector = {.count = 77};
    assert_int_equal(td_selector_parse(&arena, TD_STR("a,b"), &selector, NULL), TD_LIMIT);
    assert_int_equal(td_selector_parse(&arena, TD_STR("a in (b)"), &selector, NULL), TD_LIMIT);
    assert_int_equal(selector.count, 77);
}

static struct td_selector parsed(struct td_arena *arena, const char *text)
{
    struct td_selector selector = {.count = 0};
    assert_int_equal(td_selector_parse(arena, td_str_from(text), &selector, NULL), TD_OK);
    return selector;
}

/* Each operator against a label that is there, is not there, is empty, is a number. */
static void test_selector_matches_by_operator(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *value; /* of label a; NULL: not set */
        bool is_match;
    } rows[] = {
        {"", NULL, true},
        {"a", NULL, false},
        {"a", "", true},
        {"!a", NULL, true},
        {"!a", "", false},
        {"a=", NULL, false},
        {"a=", "", true},
        {"a=b", "b", true},
        {"a==b", "c", false},
        {"a!=b", NULL, true},
        {"a!=b", "b", false},
        {"a!=", "", false},
        {"a!=", NULL, true},
        {"a in (b,c)", "c", true},
        {"a in (b,c)", NULL, false},
        {"a in ()", "", true},
        {"a notin (b)", NULL, true},
        {"a notin (b)", "b", false},
        {"a notin (b)", "", true},
        {"a>5", NULL, false},
        {"a>5", "6", true},
        {"a>5", "5", false},
        {"a>5", "x", false},
        {"a>5", "+6", true},
        {"a<5", "-6", true},
        {"a<5", "", false},
        {"a<5", "4.0", false},
        {"a<5", "0004", true},
        {"a<5", "-9223372036854775808", true},
        {"a<5", "-9223372036854775809", false},
        {"a=b,!a", "b", false},
    };
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct td_selector selector = parsed(&arena, rows[i].text);
        struct td_label pairs[] = {{TD_STR("z"), TD_STR("1")},
                                   {TD_STR("a"), td_str_from(rows[i].value)}};
        struct td_labels labels = td_labels_from_pairs(&arena, pairs, rows[i].value ? 2 : 1);
        if (td_selector_matches(&selector, &labels) != rows[i].is_match) {
            fail_msg("'%s' with a='%s'", rows[i].text, rows[i].value ? rows[i].value : "(none)");
        }
    }
}

/* A random selector as text, with blanks, repeats and empty values. */
static td_str random_text(struct td_arena *arena)
{
    static const char *const forms[] = {"=", "==", "!=", " in ", " notin ", ">", "<", "", "!"};
    td_auto_buf text;
    td_buf_init(&text, TEXT_BYTES);
    size_t count = random_below(REQUIREMENTS_MAX + 1);
    for (size_t i = 0; i < count; i++) {
        size_t form = random_below(sizeof(forms) / sizeof(forms[0]));
        bool is_not = form == 8;
        bool is_list = form == 3 || form == 4;
        (void)td_buf_append(&text, i > 0 ? TD_STR(", ") : TD_STR(""));
        (void)td_buf_append(&text, is_not ? TD_STR("!") : TD_STR(""));
        (void)td_buf_append(&text, random_word());
        (void)td_buf_append(&text, td_str_from(is_not ? "" : forms[form]));
        (void)td_buf_append(&text, is_list ? TD_STR("(") : TD_STR(""));
        size_t values = is_list ? random_below(VALUES_MAX) + 1 : form < 7;
        for (size_t j = 0; j < values; j++) {
            (void)td_buf_append(&text, j > 0 ? TD_STR(",") : TD_STR(""));
            (void)td_buf_append(&text, form == 5 || form == 6 ? TD_STR("5") : random_value());
        }
        (void)td_buf_append(&text, is_list ? TD_STR(")") : TD_STR(""));
    }
    return td_arena_copy_str(arena, td_buf_str(&text));
}

static struct td_labels random_labels(struct td_arena *arena)
{
    struct td_label pairs[WORD_COUNT];
    size_t count = random_below(WORD_COUNT + 1);
    for (size_t i = 0; i < count; i++) {
        pairs[i] = (struct td_label){.key = random_word(), .value = random_value()};
    }
    return td_labels_from_pairs(arena, pairs, count);
}

/* The meaning of a requirement, said as plainly as possible. */
static bool plain_matches(const struct td_requirement *requirement, const struct td_labels *labels)
{
    const td_str *value = NULL;
    for (size_t i = 0; i < labels->count; i++) {
        if (td_str_equal(labels->items[i].key, requirement->key)) {
            value = &labels->items[i].value;
        }
    }
    bool is_listed = false;
    for (size_t i = 0; value && i < requirement->value_count; i++) {
        is_listed |= td_str_equal(*value, requirement->values[i]);
    }
    int64_t number = 0;
    bool is_number = value && td_str_to_int64(*value, &number);
    switch (requirement->operation) {
    case TD_SELECTOR_EXISTS:
        return value != NULL;
    case TD_SELECTOR_NOT_EXISTS:
        return value == NULL;
    case TD_SELECTOR_GREATER:
        return is_number && number > 5;
    case TD_SELECTOR_LESS:
        return is_number && number < 5;
    case TD_SELECTOR_NOT_EQUALS:
    case TD_SELECTOR_NOT_IN:
        return !is_listed;
    default:
        return is_listed;
    }
}

/* Parsing what was written gives the same selector, and it matches as its requirements say. */
static void test_selector_survives_writing_and_matches_plainly(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    for (size_t round = 0; round < ROUNDS; round++) {
        struct td_selector selector = parsed(&arena, random_text(&arena).ptr);
        struct td_selector again = parsed(&arena, written(&arena, &selector).ptr);
        assert_true(same_selector(&selector, &again));
        for (size_t i = 0; i < 5; i++) {
            struct td_labels labels = random_labels(&arena);
            bool expected = true;
            for (size_t j = 0; j < selector.count; j++) {
                expected &= plain_matches(&selector.requirements[j], &labels);
            }
            assert_int_equal(td_selector_matches(&selector, &labels), expected);
        }
        td_arena_reset(&arena);
    }
}

static struct td_json *random_expression(struct td_arena *arena)
{
    static const char *const operators[] = {"In", "NotIn", "Exists", "DoesNotExist"};
    size_t operation = random_below(4);
    struct td_json *values = td_json_new_array(arena);
    size_t count = operation < 2 ? random_below(VALUES_MAX) + 1 : 0;
    for (size_t i = 0; i < count; i++) {
        /* Distinct, since a repeated value would be written twice and parsed once. */
        td_str text = td_arena_format(arena, "v%zu", (i * 7) % VALUES_MAX);
        td_json_append(values, td_json_new_string(arena, text));
    }
    struct td_json *expression = td_json_new_object(arena);
    td_json_set(arena, expression, TD_STR("key"), td_json_new_string(arena, random_word()));
    td_json_set(arena, expression, TD_STR("operator"),
                td_json_new_string(arena, td_str_from(operators[operation])));
    td_json_set(arena, expression, TD_STR("values"), values);
    return expression;
}

/* A copy is the same selector, and does not need what it was made from. */
static void test_selector_copy_stands_alone(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "a=b", "a in (x,y),b,!c,d!=e,f>3", "k8s.io/name"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, ARENA_BYTES);
        td_auto_arena gone;
        td_arena_init(&gone, ARENA_BYTES);
        struct td_selector selector;
        td_str text = td_arena_copy_str(&gone, td_str_from(texts[i]));
        assert_int_equal(td_selector_parse(&gone, text, &selector, NULL), TD_OK);
        struct td_selector copy = td_selector_copy(&arena, &selector);
        assert_true(same_selector(&selector, &copy));
        td_str before = written(&arena, &selector);
        td_arena_done(&gone);
        assert_true(td_str_equal(written(&arena, &copy), before));
    }
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    assert_true(
        td_selector_copy(&arena, &(struct td_selector){.matches_nothing = true}).matches_nothing);
}

/* A LabelSelector is the selector of its canonical text. */
static void test_selector_from_json_equals_its_canonical_text(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    for (size_t round = 0; round < ROUNDS; round++) {
        struct td_json *labels = td_json_new_object(&arena);
        struct td_json *expressions = td_json_new_array(&arena);
        struct td_json *object = td_json_new_object(&arena);
        for (size_t i = random_below(REQUIREMENTS_MAX); i > 0; i--) {
            td_json_set(&arena, labels, random_word(), td_json_new_string(&arena, random_value()));
        }
        for (size_t i = random_below(REQUIREMENTS_MAX); i > 0; i--) {
            td_json_append(expressions, random_expression(&arena));
        }
        td_json_set(&arena, object, TD_STR("matchLabels"), labels);
        td_json_set(&arena, object, TD_STR("matchExpressions"), expressions);
        struct td_selector selector;
        assert_int_equal(td_selector_from_json(&arena, object, &selector, NULL), TD_OK);
        assert_int_equal(selector.count, labels->count + expressions->count);
        struct td_selector again = parsed(&arena, written(&arena, &selector).ptr);
        assert_true(same_selector(&selector, &again));
        td_arena_reset(&arena);
    }
}

static struct td_json *json(struct td_arena *arena, const char *text)
{
    struct td_json *tree = NULL;
    assert_int_equal(td_json_parse(arena, td_str_from(text), NULL, &tree, NULL), TD_OK);
    return tree;
}

/* Objects, their canonical text and the format of messages. */
static void test_selector_from_json_reads_objects(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        const char *canonical;
        bool matches_nothing;
    } rows[] = {
        {"null", "", true},
        {"{}", "", false},
        {"{\"matchLabels\":null,\"matchExpressions\":null}", "", false},
        {"{\"matchLabels\":{},\"matchExpressions\":[]}", "", false},
        {"{\"matchLabels\":{\"b\":\"\",\"a\":\"x\"}}", "a=x,b=", false},
        {"{\"matchLabels\":{\"a\":null}}", "a=", false},
        {"{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"In\",\"values\":[\"c\",\"b\"]}]}",
         "a in (b,c)", false},
        {"{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"In\",\"values\":[\"b\",\"b\"]}]}",
         "a in (b,b)", false},
        {"{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"NotIn\",\"values\":[null]}]}",
         "a notin ()", false},
        {"{\"matchExpressions\":[{\"key\":\"b\",\"operator\":\"Exists\",\"values\":null},"
         "{\"key\":\"b\",\"operator\":\"DoesNotExist\",\"values\":[]}],"
         "\"matchLabels\":{\"b\":\"1\"}}",
         "b=1,b,!b", false},
    };
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct td_selector selector;
        struct td_labels none = td_labels_from_pairs(&arena, NULL, 0);
        struct td_json *tree = json(&arena, rows[i].json);
        assert_int_equal(td_selector_from_json(&arena, tree, &selector, NULL), TD_OK);
        assert_string_equal(written(&arena, &selector).ptr, rows[i].canonical);
        assert_int_equal(selector.matches_nothing, rows[i].matches_nothing);
        bool is_empty = rows[i].canonical[0] == '\0';
        assert_int_equal(td_selector_is_empty(&selector), is_empty && !rows[i].matches_nothing);
        assert_false(rows[i].matches_nothing && td_selector_matches(&selector, &none));
        td_auto_buf text;
        td_buf_init(&text, TEXT_BYTES);
        td_selector_write_format(&selector, &text);
        assert_string_equal(text.ptr, is_empty ? "<none>" : rows[i].canonical);
    }
    struct td_selector selector;
    assert_int_equal(td_selector_from_json(&arena, NULL, &selector, NULL), TD_OK);
    assert_true(selector.matches_nothing);
}

/* Whatever is wrong in an object is named by its path when that is asked for. */
static void test_selector_check_json_names_the_path(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        const char *path;
    } rows[] = {
        {"[]", "label selector: "},
        {"{\"matchLabels\":[]}", "matchLabels: "},
        {"{\"matchLabels\":{\"a\":1}}", "matchLabels[a]: "},
        {"{\"matchLabels\":{\"a\":\"-\"}}", "matchLabels: values[0][a]: Invalid value: \"-\": "},
        {"{\"matchLabels\":{\"-a\":\"b\"}}", "matchLabels: key: Invalid value: \"-a\": name part "},
        {"{\"matchExpressions\":{}}", "matchExpressions: "},
        {"{\"matchExpressions\":[7]}", "matchExpressions[0]: "},
        {"{\"matchExpressions\":[null]}", "matchExpressions[0]: \"\" is not a valid"},
        {"{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"Exists\"},"
         "{\"key\":\"a\",\"operator\":\"Gt\"}]}",
         "matchExpressions[1]: \"Gt\" is not a valid"},
        {"{\"matchExpressions\":[{\"key\":\"a\",\"operator\":1}]}",
         "matchExpressions[0].operator: "},
        {"{\"matchExpressions\":[{\"key\":\"a b\",\"operator\":\"Exists\"}]}",
         "matchExpressions[0]: key: Invalid value: \"a b\": "},
        {"{\"matchExpressions\":[{\"operator\":\"Exists\"}]}",
         "matchExpressions[0]: key: Invalid value: \"\": name part must be non-empty; "},
        {"{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"In\"}]}",
         "matchExpressions[0]: values: Invalid value: null: for 'in', 'notin' operators"},
        {"{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"In\",\"values\":\"b\"}]}",
         "matchExpressions[0].values: "},
        {"{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"Exists\",\"values\":[\"b\"]}]}",
         "matchExpressions[0]: values: Invalid value: [\"b\"]: values set must be empty for"},
        {"{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"In\",\"values\":[\"b\",1]}]}",
         "matchExpressions[0].values[1]: "},
        {"{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"In\",\"values\":[\"b\",\"c d\"]}]}",
         "matchExpressions[0]: values[1][a]: Invalid value: \"c d\": a valid label"},
    };
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct td_error err = TD_ERROR_INIT;
        struct td_selector selector = {.count = 77};
        struct td_json *tree = json(&arena, rows[i].json);
        assert_int_equal(td_selector_check_json(&arena, tree, &err), TD_INVALID);
        if (strncmp(err.message, rows[i].path, strlen(rows[i].path)) != 0) {
            fail_msg("%s: '%s' does not begin with '%s'", rows[i].json, err.message, rows[i].path);
        }
        assert_int_equal(td_selector_from_json(&arena, tree, &selector, NULL), TD_INVALID);
        assert_int_equal(selector.count, 77);
    }
}

/* A message past its size is cut, and what makes it long costs no more than that. */
static void test_selector_cuts_long_messages(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    char *text = td_arena_alloc(&arena, TD_SELECTOR_BYTES_MAX);
    memset(text, '-', TD_SELECTOR_BYTES_MAX);
    struct td_error err = TD_ERROR_INIT;
    struct td_selector selector;
    td_str whole = {.ptr = text, .len = TD_SELECTOR_BYTES_MAX};
    assert_int_equal(td_selector_parse(&arena, whole, &selector, &err), TD_INVALID);
    assert_int_equal(strlen(err.message), TD_ERROR_MESSAGE_BYTES - 1);
    assert_int_equal(err.message[TD_ERROR_MESSAGE_BYTES - 2], '-');
    memcpy(text, "a in (", 6);
    for (size_t i = 6; i + 4 < whole.len; i += 4) {
        const char value[] = {(char)0x80, (char)('a' + i / 4 % 26), (char)('a' + i / 104 % 26),
                              ','};
        memcpy(text + i, value, sizeof(value));
    }
    text[whole.len - 1] = ')';
    assert_int_equal(td_selector_parse(&arena, whole, &selector, &err), TD_INVALID);
    assert_int_equal(strlen(err.message), TD_ERROR_MESSAGE_BYTES - 1);
    assert_non_null(
        strstr(err.message, ", values[1][a]: Invalid value: \"\\x80aa\": a valid label"));
    assert_non_null(strstr(err.message, ", values[2][a]: Invalid value: \"\\x80ab\": a valid"));
}

typedef int (*read_fn)(struct td_arena *arena, const struct td_json *in, struct td_error *err);

static int read_text(struct td_arena *arena, const struct td_json *in, struct td_error *err)
{
    struct td_selector selector;
    return td_selector_parse(arena, td_json_get_str(in, TD_STR("s"), TD_STR_EMPTY), &selector, err);
}

static int read_object(struct td_arena *arena, const struct td_json *in, struct td_error *err)
{
    struct td_selector selector;
    return td_selector_from_json(arena, td_json_get(in, TD_STR("selector")), &selector, err);
}

/* 1 when the case is a refused one. */
static size_t check_case(struct td_arena *arena, const struct td_json *each, read_fn read)
{
    const struct td_json *expected = td_json_get(each, TD_STR("error"));
    struct td_error err = TD_ERROR_INIT;
    int code = read(arena, td_json_get(each, TD_STR("in")), &err);
    assert_int_equal(code, expected ? TD_INVALID : TD_OK);
    if (!expected) {
        return 0;
    }
    td_str message = td_str_cut_utf8(expected->text, TD_ERROR_MESSAGE_BYTES - 1);
    if (!td_str_equal(td_str_from(err.message), message)) {
        fail_msg("'%s' instead of '%.*s'", err.message, TD_STR_ARG(message));
    }
    return 1;
}

/* The messages of upstream that the vectors hold, letter for letter. */
static void test_selector_messages_as_upstream(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        read_fn read;
    } files[] = {
        {TEST_DATA_DIR "/vectors/kube/selector-string.json", read_text},
        {TEST_DATA_DIR "/vectors/kube/label-selector.json", read_object},
    };
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        td_str text;
        struct td_json *file = NULL;
        assert_int_equal(td_file_read(files[i].path, &arena, TEXT_BYTES, &text, NULL), TD_OK);
        assert_int_equal(td_json_parse(&arena, text, NULL, &file, NULL), TD_OK);
        size_t refused = 0;
        const struct td_json *each = td_json_first_child(td_json_get(file, TD_STR("cases")));
        for (; each; each = each->next) {
            refused += check_case(&arena, each, files[i].read);
        }
        assert_true(refused > 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_selector_parses_to_canonical_text),
        cmocka_unit_test(test_selector_refuses_malformed_text),
        cmocka_unit_test(test_selector_nul_bytes_as_upstream),
        cmocka_unit_test(test_selector_long_texts),
        cmocka_unit_test(test_selector_stops_at_the_arena_cap),
        cmocka_unit_test(test_selector_matches_by_operator),
        cmocka_unit_test(test_selector_survives_writing_and_matches_plainly),
        cmocka_unit_test(test_selector_copy_stands_alone),
        cmocka_unit_test(test_selector_from_json_equals_its_canonical_text),
        cmocka_unit_test(test_selector_from_json_reads_objects),
        cmocka_unit_test(test_selector_check_json_names_the_path),
        cmocka_unit_test(test_selector_cuts_long_messages),
        cmocka_unit_test(test_selector_messages_as_upstream),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
