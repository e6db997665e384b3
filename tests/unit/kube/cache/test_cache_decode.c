/* From an object's JSON to the declared struct: every kind of field, absent and wrong values, whole
 * objects without their managed fields, names shared and given back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/intern.h"
#include "base/limits.h"
#include "kube/cache/cache_decode.h"

struct sample {
    struct td_cache_head head;
    td_str text;
    td_str name;
    td_str raw;
    td_str once;
    td_str whole;
    int64_t number;
    int64_t milli;
    int64_t bytes;
    td_time time;
    bool flag;
    bool is_there;
    bool is_terminating;
};

#define AT(member) offsetof(struct sample, member)

static const struct td_cache_field fields[] = {
    {"spec.text", TD_CACHE_TEXT, AT(text)},
    {"spec.node", TD_CACHE_NAME, AT(name)},
    {"spec", TD_CACHE_RAW, AT(raw)},
    {"spec.deep.er.still", TD_CACHE_RAW_ONCE, AT(once)},
    {"", TD_CACHE_RAW, AT(whole)},
    {"spec.number", TD_CACHE_INT64, AT(number)},
    {"spec.cpu", TD_CACHE_MILLI, AT(milli)},
    {"spec.memory", TD_CACHE_WHOLE, AT(bytes)},
    {"status.time", TD_CACHE_TIME, AT(time)},
    {"spec.flag", TD_CACHE_BOOL, AT(flag)},
    {"spec.deep", TD_CACHE_PRESENT, AT(is_there)},
    {"metadata.deletionTimestamp", TD_CACHE_PRESENT, AT(is_terminating)},
};

struct bench {
    struct td_cache_plan *plan;
    struct td_cache_decoded decoded;
    struct td_intern *names;
};

static int bench_init(void **state)
{
    static struct bench bench;
    assert_int_equal(td_cache_plan_new(fields, sizeof(fields) / sizeof(fields[0]),
                                       sizeof(struct sample), &bench.plan, NULL),
                     TD_OK);
    td_cache_decoded_init(&bench.decoded, bench.plan);
    bench.names = td_intern_new(2);
    *state = &bench;
    return 0;
}

static int bench_done(void **state)
{
    struct bench *bench = *state;
    assert_int_equal(td_intern_count(bench->names), 0);
    td_cache_decoded_done(&bench->decoded);
    td_cache_plan_free(bench->plan);
    td_intern_free(bench->names);
    return 0;
}

static int decode(struct bench *bench, const char *text)
{
    struct td_json_reader reader;
    td_json_reader_init(&reader, td_str_from(text), 0);
    struct td_error err = TD_ERROR_INIT;
    int code =
        td_cache_decode(bench->plan, &reader, td_json_reader_next(&reader), &bench->decoded, &err);
    if (code == TD_OK) {
        code = td_cache_decode_key(&bench->decoded, &err);
    }
    assert_true(code == TD_OK || err.message[0] != '\0');
    return code;
}

static struct sample *make(struct bench *bench, const char *text)
{
    /* A copy that ends with the text and is gone before the object is looked at. */
    char *copy = strdup(text);
    assert_int_equal(decode(bench, copy), TD_OK);
    struct sample *sample = td_cache_object_new(bench->plan, &bench->decoded, bench->names);
    free(copy);
    td_arena_reset(&bench->decoded.arena);
    return sample;
}

static void drop(struct bench *bench, struct sample *sample)
{
    td_cache_object_free(bench->plan, sample, bench->names);
}

#define META                                                                                       \
    "\"metadata\":{\"namespace\":\"n\",\"name\":\"a\",\"uid\":\"u\",\"resourceVersion\":\"1\"}"

/* All kinds of values where they are declared; the rest is passed over. */
static void test_reads_every_kind(void **state)
{
    struct bench *bench = *state;
    struct sample *sample = make(
        bench,
        "{\"other\":[{\"spec\":{\"text\":\"no\"}}],\"metadata\":{\"name\":\"a\\u002db\","
        "\"namespace\":\"n\",\"uid\":\"u-1\",\"resourceVersion\":\"007\",\"deletionTimestamp\":"
        "\"2023-11-14T22:13:20Z\"},\"spec\":{\"text\":\"x\\ny\",\"node\":\"node-1\",\"number\":-12,"
        "\"cpu\":\"1.5\",\"memory\":\"1Ki\",\"flag\":true,\"deep\":{\"er\":{\"still\":[1]}}},"
        "\"status\":{\"time\":\"2023-11-14T22:13:20Z\"}}");
    assert_string_equal(td_cache_object_key(sample).ptr, "n/a-b");
    assert_string_equal(sample->head.name.ptr, "a-b");
    assert_true(td_str_equal(sample->head.namespace, TD_STR("n")));
    assert_string_equal(sample->head.uid.ptr, "u-1");
    assert_string_equal(sample->head.version.ptr, "007");
    assert_string_equal(sample->text.ptr, "x\ny");
    assert_string_equal(sample->name.ptr, "node-1");
    assert_int_equal(sample->number, -12);
    assert_int_equal(sample->milli, 1500);
    assert_int_equal(sample->bytes, 1024);
    assert_true(sample->flag);
    assert_true(sample->is_there);
    assert_true(sample->is_terminating);
    assert_true(sample->time == 1700000000 * TD_SECOND);
    assert_int_equal(sample->once.len, 0);
    assert_true(td_str_starts_with(sample->raw, TD_STR("{\"text\":\"x\\ny\",")));
    assert_int_equal(bench->decoded.wrong_count, 0);
    drop(bench, sample);
}

/* Absent, null and wrongly typed values leave fields empty; only the latter are counted. */
static void test_leaves_out_what_is_not_there(void **state)
{
    struct bench *bench = *state;
    static const struct {
        const char *text;
        size_t wrong;
    } rows[] = {
        {"{" META "}", 0},
        {"{" META ",\"spec\":null,\"status\":null}", 0},
        {"{" META ",\"spec\":{\"text\":null,\"node\":null,\"number\":null,\"cpu\":null,\"memory\":"
         "null,\"flag\":null,\"deep\":null},\"status\":{\"time\":null}}",
         0},
        {"{" META ",\"spec\":{\"text\":1,\"node\":{},\"number\":\"1\",\"cpu\":\"x\",\"memory\":[],"
         "\"flag\":\"true\"},\"status\":{\"time\":\"yesterday\"}}",
         7},
        {"{" META ",\"spec\":{\"number\":1.5,\"text\":[{\"text\":\"no\"}]},\"status\":7}", 2},
        {"{" META ",\"spec\":{\"number\":99999999999999999999}}", 1},
        {"{" META ",\"code\":\"x\",\"message\":7}", 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct sample *sample = make(bench, rows[i].text);
        assert_int_equal(bench->decoded.wrong_count, rows[i].wrong);
        assert_int_equal(sample->text.len, 0);
        assert_int_equal(sample->name.len, 0);
        assert_int_equal(sample->number, 0);
        assert_int_equal(sample->milli, 0);
        assert_int_equal(sample->bytes, 0);
        assert_true(sample->time == TD_CACHE_TIME_NONE);
        assert_false(sample->flag);
        assert_false(sample->is_there);
        drop(bench, sample);
    }
}

/* An object needs a name and a version, and must be JSON. */
static void test_refuses_what_is_no_object(void **state)
{
    struct bench *bench = *state;
    static const struct {
        const char *text;
        int code;
    } rows[] = {
        {"{}", TD_INVALID},
        {"null", TD_INVALID},
        {"[]", TD_INVALID},
        {"7", TD_INVALID},
        {"{\"metadata\":{\"name\":\"a\"}}", TD_INVALID},
        {"{\"metadata\":{\"resourceVersion\":\"1\"}}", TD_INVALID},
        {"{\"metadata\":{\"name\":\"\",\"resourceVersion\":\"1\"}}", TD_INVALID},
        {"{\"metadata\":{\"name\":7,\"resourceVersion\":\"1\"}}", TD_INVALID},
        {"{" META ",\"spec\":{\"text\":\"x}}", TD_INVALID},
        {"{" META ",\"other\":{\"text\":tru}}", TD_INVALID},
        {"{" META, TD_INVALID},
        {"{" META "}", TD_OK},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(decode(bench, rows[i].text), rows[i].code);
    }
    td_auto_buf text;
    td_buf_init(&text, 1 << 20);
    (void)td_buf_append_format(
        &text, "{\"metadata\":{\"resourceVersion\":\"1\",\"name\":\"%02000d\"}}", 1);
    assert_int_equal(decode(bench, td_buf_str(&text).ptr), TD_LIMIT);
    td_buf_reset(&text);
    (void)td_buf_append_format(
        &text, "{\"metadata\":{\"resourceVersion\":\"%02000d\",\"name\":\"a\"}}", 1);
    assert_int_equal(decode(bench, td_buf_str(&text).ptr), TD_LIMIT);
}

/* The whole object is kept compact, and without the fields' managers wherever they stand. */
static void test_keeps_whole_objects_without_managers(void **state)
{
    struct bench *bench = *state;
    static const struct {
        const char *text;
        const char *whole;
    } rows[] = {
        {"{\"metadata\":{\"managedFields\":[{\"a\":[]}],\"name\":\"a\",\"resourceVersion\":\"1\"}}",
         "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"1\"}}"},
        {"{\"metadata\":{\"name\":\"a\",\"managedFields\":[],\"resourceVersion\":\"1\"},\"x\":[1]}",
         "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"1\"},\"x\":[1]}"},
        {"{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"1\",\"managedFields\":[ ] }}",
         "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"1\"}}"},
        {"{ \"metadata\" : {\"name\" : \"a\" ,\n\t\"managedFields\" : null , "
         "\"resourceVersion\":\"1\" , \"managedFields\" : [] } , \"s\": \"a \\\" b\\\\\" }",
         "{\"metadata\":{\"name\":\"a\",\"managedFields\":null,\"resourceVersion\":\"1\"},"
         "\"s\":\"a \\\" b\\\\\"}"},
        {"{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"1\"},\"managedFields\":[]}",
         "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"1\"},\"managedFields\":[]}"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct sample *sample = make(bench, rows[i].text);
        assert_string_equal(sample->whole.ptr, rows[i].whole);
        assert_int_equal(sample->whole.len, strlen(rows[i].whole));
        drop(bench, sample);
    }
}

/* Names are one copy for all; when the table is full the object owns its own. */
static void test_shares_names_while_there_is_room(void **state)
{
    struct bench *bench = *state;
    struct sample *samples[4];
    static const char *const texts[] = {
        "{" META ",\"spec\":{\"node\":\"one\"}}",
        "{" META ",\"spec\":{\"node\":\"one\"}}",
        "{" META ",\"spec\":{\"node\":\"two\"}}",
        "{" META ",\"spec\":{\"node\":\"three\"}}",
    };
    for (size_t i = 0; i < 4; i++) {
        samples[i] = make(bench, texts[i]);
    }
    assert_ptr_equal(samples[0]->name.ptr, samples[1]->name.ptr);
    assert_int_equal(td_intern_count(bench->names), 2);
    assert_string_equal(samples[3]->name.ptr, "three");
    for (size_t i = 0; i < 4; i++) {
        drop(bench, samples[i]);
    }
}

/* RAW_ONCE is there for the caller's function and not kept. */
static void test_hands_out_what_is_not_kept(void **state)
{
    struct bench *bench = *state;
    static const char text[] = "{" META ",\"spec\":{\"deep\":{\"er\":{\"still\":{ \"a\": 1 }}}}}";
    assert_int_equal(decode(bench, text), TD_OK);
    const struct sample *decoded = bench->decoded.object;
    assert_true(td_str_equal(decoded->once, TD_STR("{ \"a\": 1 }")));
    struct sample *sample = td_cache_object_new(bench->plan, &bench->decoded, bench->names);
    assert_int_equal(sample->once.len, 0);
    drop(bench, sample);
}

/* Too many fields and too long paths are refused, cluster-scoped keys have no slash. */
static void test_keeps_its_limits(void **state)
{
    struct bench *bench = *state;
    static struct td_cache_field many[TD_CACHE_FIELDS_MAX + 1];
    for (size_t i = 0; i < TD_CACHE_FIELDS_MAX + 1; i++) {
        many[i] = (struct td_cache_field){"a.b.c.d.e.f.g.h", TD_CACHE_BOOL, AT(flag)};
    }
    struct td_cache_plan *plan = NULL;
    assert_int_equal(
        td_cache_plan_new(many, TD_CACHE_FIELDS_MAX + 1, sizeof(struct sample), &plan, NULL),
        TD_LIMIT);
    assert_int_equal(
        td_cache_plan_new(many, TD_CACHE_FIELDS_MAX, sizeof(struct sample), &plan, NULL), TD_OK);
    td_cache_plan_free(plan);
    many[0].path = "a.b.c.d.e.f.g.h.i";
    assert_int_equal(td_cache_plan_new(many, 1, sizeof(struct sample), &plan, NULL), TD_LIMIT);
    struct sample *sample =
        make(bench, "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"1\"}}");
    assert_string_equal(td_cache_object_key(sample).ptr, "a");
    drop(bench, sample);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_reads_every_kind, bench_init, bench_done),
        cmocka_unit_test_setup_teardown(test_leaves_out_what_is_not_there, bench_init, bench_done),
        cmocka_unit_test_setup_teardown(test_refuses_what_is_no_object, bench_init, bench_done),
        cmocka_unit_test_setup_teardown(test_keeps_whole_objects_without_managers, bench_init,
                                        bench_done),
        cmocka_unit_test_setup_teardown(test_shares_names_while_there_is_room, bench_init,
                                        bench_done),
        cmocka_unit_test_setup_teardown(test_hands_out_what_is_not_kept, bench_init, bench_done),
        cmocka_unit_test_setup_teardown(test_keeps_its_limits, bench_init, bench_done),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
