#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/limits.h"
#include "kube/apply/fieldset.h"
#include "kube/apply/fieldset_types.h"

#define ARENA_BYTES ((size_t)64 << 20)
#define ROUNDS 400

static struct td_json *parse(struct td_arena *arena, const char *text)
{
    struct td_json *json;
    assert_int_equal(td_json_parse(arena, td_str_from(text), NULL, &json, NULL), TD_OK);
    return json;
}

static const struct td_fieldset *set_of(struct td_arena *arena, const char *text)
{
    const struct td_fieldset *set = NULL;
    struct td_error err = TD_ERROR_INIT;
    if (td_fieldset_parse(arena, parse(arena, text), &set, &err) != TD_OK) {
        fail_msg("%s: %s", text, err.message);
    }
    return set;
}

/* Equal sets are written alike. */
static bool is_equal(struct td_arena *arena, const struct td_fieldset *a,
                     const struct td_fieldset *b)
{
    return td_json_equal(td_fieldset_to_json(arena, a), td_fieldset_to_json(arena, b));
}

static bool write_path(void *context, td_str path)
{
    struct td_buf *out = context;
    td_buf_append(out, path);
    return td_buf_append_char(out, '\n') == TD_OK;
}

static void assert_json(const struct td_fieldset *set, struct td_arena *arena, const char *text)
{
    td_auto_buf out;
    td_buf_init(&out, ARENA_BYTES);
    td_json_write(td_fieldset_to_json(arena, set), &(struct td_json_format){.indent = 0}, &out);
    td_buf_append_char(&out, '\0');
    assert_string_equal(out.ptr, text);
}

/* What is read is written back, members in upstream's order, and read again as an equal set. */
static void test_fieldset_codec_round_trip(void **state)
{
    (void)state;
    static const struct {
        const char *in;
        const char *out; /* NULL: the same */
    } rows[] = {
        {"{}", NULL},
        {"{\".\":{}}", "{}"},
        {"{\"f:data\":{}}", NULL},
        {"{\"f:data\":{\".\":{},\"f:k\":{}}}", NULL},
        {"{\"f:data\":{\"f:k\":{}}}", NULL},
        {"{\"f:data\":{\".\":{}}}", "{\"f:data\":{}}"},
        {"{\"f:b\":{},\"f:a\":{}}", "{\"f:a\":{},\"f:b\":{}}"},
        {"{\"f:a\":null}", "{\"f:a\":{}}"},
        {"{\"i:1\":{},\"v:1\":{},\"k:{\\\"a\\\":1}\":{},\"f:a\":{}}",
         "{\"f:a\":{},\"k:{\\\"a\\\":1}\":{},\"v:1\":{},\"i:1\":{}}"},
        {"{\"k:{\\\"protocol\\\":\\\"TCP\\\",\\\"containerPort\\\":80.0}\":{}}",
         "{\"k:{\\\"containerPort\\\":80,\\\"protocol\\\":\\\"TCP\\\"}\":{}}"},
        {"{\"v:1\":{},\"v:1.0\":{\"f:a\":{}}}", "{\"v:1\":{\".\":{},\"f:a\":{}}}"},
        {"{\"v:\\\"<a>\\\"\":{}}", "{\"v:\\\"\\\\u003ca\\\\u003e\\\"\":{}}"},
        {"{\"v:9007199254740993\":{}}", "{\"v:9007199254740992\":{}}"},
        {"{\"v:true\":{},\"v:null\":{},\"v:\\\"a\\\"\":{},\"v:2\":{}}",
         "{\"v:2\":{},\"v:\\\"a\\\"\":{},\"v:true\":{},\"v:null\":{}}"},
        {"{\"x:later\":{\"f:a\":{}},\"f:a\":{}}", "{\"f:a\":{}}"},
        {"{\"f:\":{}}", NULL},
        {"{\"f:a:b\":{}}", NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, ARENA_BYTES);
        const struct td_fieldset *set = set_of(&arena, rows[i].in);
        assert_json(set, &arena, rows[i].out ? rows[i].out : rows[i].in);
        const struct td_fieldset *again = NULL;
        assert_int_equal(td_fieldset_parse(&arena, td_fieldset_to_json(&arena, set), &again, NULL),
                         TD_OK);
        assert_true(is_equal(&arena, set, again));
    }
}

/* Malformed sets are refused and leave the output alone. */
static void test_fieldset_parse_rejects_malformed(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "1",
        "[]",
        "\"f:a\"",
        "{\"f:a\":1}",
        "{\"f:a\":[]}",
        "{\"f\":{}}",
        "{\"\":{}}",
        "{\"fa\":{}}",
        "{\"v:\":{}}",
        "{\"v:{\":{}}",
        "{\"k:1\":{}}",
        "{\"k:[]\":{}}",
        "{\"k:{\":{}}",
        "{\"i:a\":{}}",
        "{\"i:\":{}}",
        "{\"f:a\":{\"f:b\":{\"bad\":{}}}}",
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, ARENA_BYTES);
        const struct td_fieldset *set = set_of(&arena, "{\"f:kept\":{}}");
        const struct td_fieldset *kept = set;
        struct td_error err = TD_ERROR_INIT;
        assert_int_equal(td_fieldset_parse(&arena, parse(&arena, rows[i]), &set, &err), TD_INVALID);
        assert_true(err.message[0] != '\0');
        assert_ptr_equal(set, kept);
    }
}

/* A missing fieldsV1 and a null one are the empty set. */
static void test_fieldset_nothing_is_empty(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    const struct td_fieldset *set = NULL;
    assert_int_equal(td_fieldset_parse(&arena, NULL, &set, NULL), TD_OK);
    assert_null(set);
    assert_null(set_of(&arena, "null"));
    assert_non_null(set_of(&arena, "{\"f:a\":{}}"));
    assert_json(NULL, &arena, "{}");
}

/* Paths read as upstream prints them: the members of a level before what is below. */
static void test_fieldset_paths_in_upstream_words(void **state)
{
    (void)state;
    static const struct {
        const char *in;
        const char *out;
    } rows[] = {
        {"{}", ""},
        {"{\"f:spec\":{\".\":{},\"f:b\":{\"f:x\":{}},\"f:c\":{}}}", ".spec\n.spec.c\n.spec.b.x\n"},
        {"{\"f:a\":{\"k:{\\\"name\\\":\\\"x\\\"}\":{\"f:image\":{}}}}", ".a[name=\"x\"].image\n"},
        {"{\"k:{\\\"p\\\":80,\\\"n\\\":\\\"TCP\\\"}\":{}}", "[n=\"TCP\",p=80]\n"},
        {"{\"k:{}\":{}}", "[]\n"},
        {"{\"v:\\\"a\\\"\":{},\"v:1\":{},\"v:true\":{},\"v:null\":{}}",
         "[=1]\n[=\"a\"]\n[=true]\n[=null]\n"},
        {"{\"i:0\":{},\"i:12\":{}}", "[0]\n[12]\n"},
        {"{\"v:[1,\\\"a\\\"]\":{},\"v:{\\\"b\\\":2}\":{}}", "[=[1,\"a\"]]\n[=b=2]\n"},
        {"{\"v:123456\":{}}", "[=123456]\n"},
        {"{\"v:1000000\":{}}", "[=1e+06]\n"},
        {"{\"v:-1234567\":{}}", "[=-1.234567e+06]\n"},
        {"{\"v:0.0001\":{}}", "[=0.0001]\n"},
        {"{\"v:0.00001\":{}}", "[=1e-05]\n"},
        {"{\"v:1e300\":{}}", "[=1e+300]\n"},
        {"{\"v:0\":{}}", "[=0]\n"},
        {"{\"v:1.5\":{}}", "[=1.5]\n"},
        {"{\"v:\\\"q\\\\\\\"\\\\\\\\\\\\n\\\\u0001\\\\u007f\\\"\":{}}",
         "[=\"q\\\"\\\\\\n\\x01\\x7f\"]\n"},
        {"{\"v:\\\"\xc3\xa9\xc2\xa0\xe2\x80\x8b\xf0\x9f\x98\x80\\\"\":{}}",
         "[=\"\xc3\xa9\\u00a0\\u200b\xf0\x9f\x98\x80\"]\n"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, ARENA_BYTES);
        td_auto_buf out;
        td_buf_init(&out, ARENA_BYTES);
        td_fieldset_visit(set_of(&arena, rows[i].in), write_path, &out);
        td_buf_append_char(&out, '\0');
        assert_string_equal(out.ptr, rows[i].out);
    }
}

/* The three operations on small sets, "parent minus child" and the reverse among them. */
static void test_fieldset_algebra_table(void **state)
{
    (void)state;
    static const struct {
        const char *a;
        const char *b;
        const char *joined;
        const char *common;
        const char *rest;
    } rows[] = {
        {"{}", "{}", "{}", "{}", "{}"},
        {"{\"f:a\":{}}", "{}", "{\"f:a\":{}}", "{}", "{\"f:a\":{}}"},
        {"{\"f:a\":{}}", "{\"f:a\":{}}", "{\"f:a\":{}}", "{\"f:a\":{}}", "{}"},
        {"{\"f:a\":{}}", "{\"f:b\":{}}", "{\"f:a\":{},\"f:b\":{}}", "{}", "{\"f:a\":{}}"},
        {"{\"f:a\":{}}", "{\"f:a\":{\"f:b\":{}}}", "{\"f:a\":{\".\":{},\"f:b\":{}}}", "{}",
         "{\"f:a\":{}}"},
        {"{\"f:a\":{\"f:b\":{}}}", "{\"f:a\":{}}", "{\"f:a\":{\".\":{},\"f:b\":{}}}", "{}",
         "{\"f:a\":{\"f:b\":{}}}"},
        {"{\"f:a\":{\".\":{},\"f:b\":{},\"f:c\":{}}}", "{\"f:a\":{\"f:c\":{},\"f:d\":{}}}",
         "{\"f:a\":{\".\":{},\"f:b\":{},\"f:c\":{},\"f:d\":{}}}", "{\"f:a\":{\"f:c\":{}}}",
         "{\"f:a\":{\".\":{},\"f:b\":{}}}"},
        {"{\"v:80\":{}}", "{\"v:80.0\":{}}", "{\"v:80\":{}}", "{\"v:80\":{}}", "{}"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, ARENA_BYTES);
        const struct td_fieldset *a = set_of(&arena, rows[i].a);
        const struct td_fieldset *b = set_of(&arena, rows[i].b);
        assert_json(td_fieldset_union(&arena, a, b), &arena, rows[i].joined);
        assert_json(td_fieldset_intersection(&arena, a, b), &arena, rows[i].common);
        assert_json(td_fieldset_difference(&arena, a, b), &arena, rows[i].rest);
    }
}

static uint64_t next_random(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 33;
}

/* A random fieldsV1 object over few names, so that sets meet. */
static struct td_json *random_fields(struct td_arena *arena, uint64_t *seed, unsigned depth)
{
    static const td_str names[] = {TD_STR_INIT("f:a"),  TD_STR_INIT("f:b"),
                                   TD_STR_INIT("f:c"),  TD_STR_INIT("k:{\"n\":\"x\"}"),
                                   TD_STR_INIT("v:1"),  TD_STR_INIT("v:\"y\""),
                                   TD_STR_INIT("i:3"),  TD_STR_INIT("k:{\"n\":1,\"m\":2}"),
                                   TD_STR_INIT("f:dd"), TD_STR_INIT(".")};
    struct td_json *fields = td_json_new_object(arena);
    uint64_t count = depth >= 4 ? 0 : next_random(seed) % 6;
    for (uint64_t i = 0; i < count; i++) {
        td_str name = names[next_random(seed) % (sizeof(names) / sizeof(names[0]))];
        td_json_set(arena, fields, name, random_fields(arena, seed, depth + 1));
    }
    return fields;
}

static const struct td_fieldset *random_set(struct td_arena *arena, uint64_t *seed)
{
    const struct td_fieldset *set = NULL;
    assert_int_equal(td_fieldset_parse(arena, random_fields(arena, seed, 0), &set, NULL), TD_OK);
    return set;
}

/* The laws of sets hold for random ones, and what is written reads back equal. */
static void test_fieldset_algebra_laws(void **state)
{
    (void)state;
    uint64_t seed = 20361;
    for (size_t i = 0; i < ROUNDS; i++) {
        td_auto_arena arena;
        td_arena_init(&arena, ARENA_BYTES);
        const struct td_fieldset *a = random_set(&arena, &seed);
        const struct td_fieldset *b = random_set(&arena, &seed);
        const struct td_fieldset *c = random_set(&arena, &seed);
        const struct td_fieldset *ab = td_fieldset_union(&arena, a, b);
        const struct td_fieldset *common = td_fieldset_intersection(&arena, a, b);
        const struct td_fieldset *rest = td_fieldset_difference(&arena, a, b);
        assert_true(is_equal(&arena, ab, td_fieldset_union(&arena, b, a)));
        assert_true(is_equal(&arena, common, td_fieldset_intersection(&arena, b, a)));
        assert_true(is_equal(&arena, a, td_fieldset_union(&arena, common, rest)));
        assert_null(td_fieldset_intersection(&arena, common, rest));
        assert_null(td_fieldset_intersection(&arena, rest, b));
        assert_true(is_equal(&arena, ab, td_fieldset_union(&arena, b, rest)));
        assert_true(is_equal(&arena, a, td_fieldset_intersection(&arena, a, ab)));
        assert_null(td_fieldset_difference(&arena, a, ab));
        assert_true(is_equal(&arena, td_fieldset_union(&arena, ab, c),
                             td_fieldset_union(&arena, a, td_fieldset_union(&arena, b, c))));
        assert_true(is_equal(&arena,
                             td_fieldset_difference(&arena, a, td_fieldset_union(&arena, b, c)),
                             td_fieldset_difference(&arena, rest, c)));
        const struct td_fieldset *again = NULL;
        struct td_json *json = td_fieldset_to_json(&arena, ab);
        assert_int_equal(td_fieldset_parse(&arena, json, &again, NULL), TD_OK);
        assert_true(is_equal(&arena, ab, again));
    }
}

/* A few fields meet a change of very many, the case that is searched instead of walked. */
static void test_fieldset_short_meets_long(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    struct td_json *fields = td_json_new_object(&arena);
    for (int i = 0; i < 5000; i++) {
        td_json_set(&arena, fields, td_arena_format(&arena, "f:k%d", i),
                    td_json_new_object(&arena));
    }
    const struct td_fieldset *all = NULL;
    assert_int_equal(td_fieldset_parse(&arena, fields, &all, NULL), TD_OK);
    const struct td_fieldset *few = set_of(&arena, "{\"f:a\":{},\"f:k17\":{},\"f:z\":{}}");
    assert_json(td_fieldset_intersection(&arena, few, all), &arena, "{\"f:k17\":{}}");
    assert_json(td_fieldset_intersection(&arena, all, few), &arena, "{\"f:k17\":{}}");
    assert_json(td_fieldset_difference(&arena, few, all), &arena, "{\"f:a\":{},\"f:z\":{}}");
}

static struct td_json *nested(struct td_arena *arena, size_t depth)
{
    struct td_json *fields = td_json_new_object(arena);
    for (size_t i = 0; i < depth; i++) {
        struct td_json *outer = td_json_new_object(arena);
        td_json_set(arena, outer, TD_STR("f:a"), fields);
        fields = outer;
    }
    return fields;
}

/* Sets as deep as a JSON text can be are fine, deeper ones are a limit. */
static void test_fieldset_depth_is_limited(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    const struct td_fieldset *set = NULL;
    struct td_json *deepest = nested(&arena, TD_JSON_DEPTH_MAX - 1);
    assert_int_equal(td_fieldset_parse(&arena, deepest, &set, NULL), TD_OK);
    assert_true(is_equal(&arena, set, td_fieldset_union(&arena, set, set)));
    assert_true(td_json_equal(td_fieldset_to_json(&arena, set), deepest));
    struct td_error err = TD_ERROR_INIT;
    struct td_json *deeper = nested(&arena, TD_JSON_DEPTH_MAX);
    assert_int_equal(td_fieldset_parse(&arena, deeper, &set, &err), TD_LIMIT);
}

/* An arena at its cap stops a set from growing further. */
static void test_fieldset_parse_respects_arena(void **state)
{
    (void)state;
    td_auto_arena input;
    td_arena_init(&input, ARENA_BYTES);
    td_auto_arena arena;
    td_arena_init(&arena, 64);
    struct td_json *json = parse(&input, "{\"f:a\":{\"f:b\":{},\"f:c\":{}}}");
    const struct td_fieldset *set = NULL;
    struct td_error err = TD_ERROR_INIT;
    assert_int_equal(td_fieldset_parse(&arena, json, &set, &err), TD_LIMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fieldset_codec_round_trip),
        cmocka_unit_test(test_fieldset_parse_rejects_malformed),
        cmocka_unit_test(test_fieldset_nothing_is_empty),
        cmocka_unit_test(test_fieldset_paths_in_upstream_words),
        cmocka_unit_test(test_fieldset_algebra_table),
        cmocka_unit_test(test_fieldset_algebra_laws),
        cmocka_unit_test(test_fieldset_short_meets_long),
        cmocka_unit_test(test_fieldset_depth_is_limited),
        cmocka_unit_test(test_fieldset_parse_respects_arena),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
