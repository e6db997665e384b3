#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/limits.h"
#include "kube/apply/apply.h"

#define ARENA_BYTES ((size_t)256 << 20)
#define NOW ((struct td_instant){.unix_seconds = 1800000000})
#define NOW_TEXT "2027-01-15T08:00:00Z"

/* One write and what is expected of it. Objects are written without their identity. */
struct step {
    enum { APPLY, FORCE, UPDATE } op;
    const char *manager;
    const char *object; /* members beside apiVersion, kind and metadata's name */
    const char *result; /* the same of the stored object; NULL: refused */
    const char *owners; /* {"manager Operation": fieldsV1, ...}, or the refusal's text */
};

struct kind {
    const char *api_version;
    const char *name; /* "Widget": without schema */
};

static const struct kind config_map = {"v1", "ConfigMap"};
static const struct kind deployment = {"apps/v1", "Deployment"};
static const struct kind widget = {"example.com/v1", "Widget"};

static struct td_json *parse(struct td_arena *arena, const char *text)
{
    struct td_json *json;
    struct td_error err = TD_ERROR_INIT;
    td_str copy = td_arena_copy_str(arena, td_str_from(text));
    if (td_json_parse(arena, copy, NULL, &json, &err) != TD_OK) {
        fail_msg("%s: %s", text, err.message);
    }
    return json;
}

static const char *written(struct td_arena *arena, const struct td_json *json)
{
    td_auto_buf out;
    td_buf_init(&out, ARENA_BYTES);
    if (json) {
        struct td_json *copy = td_json_copy(arena, json, false);
        td_json_sort(arena, copy);
        td_json_write(copy, &(struct td_json_format){.indent = 0}, &out);
    }
    return td_arena_copy_str(arena, td_buf_str(&out)).ptr;
}

static void assert_same(struct td_arena *arena, const struct td_json *got, const char *expected)
{
    assert_string_equal(written(arena, got), written(arena, parse(arena, expected)));
}

/* A whole object of the kind from the members a test cares about. */
static struct td_json *object_of(struct td_arena *arena, struct kind kind, const char *members)
{
    struct td_json *object = parse(arena, members);
    td_json_set(arena, object, TD_STR("apiVersion"),
                td_json_new_string(arena, td_str_from(kind.api_version)));
    td_json_set(arena, object, TD_STR("kind"), td_json_new_string(arena, td_str_from(kind.name)));
    struct td_json *metadata = td_json_ensure_object(arena, object, TD_STR("metadata"));
    td_json_set(arena, metadata, TD_STR("name"), td_json_new_string(arena, TD_STR("c")));
    return object;
}

static struct td_apply_request request_of(struct kind kind, const char *manager)
{
    bool is_open = td_str_equal(td_str_from(kind.name), TD_STR("Widget"));
    td_str version = td_str_from(kind.api_version);
    return (struct td_apply_request){
        .type = is_open ? td_schema_any_object() : td_schema_find(version, td_str_from(kind.name)),
        .api_version = version,
        .kind = td_str_from(kind.name),
        .manager = td_str_from(manager),
        .now = NOW,
    };
}

/* {"manager Operation": fieldsV1} of an object. */
static struct td_json *owners_of(struct td_arena *arena, const struct td_json *object)
{
    struct td_json *owners = td_json_new_object(arena);
    const struct td_json *list = td_json_get_path(object, "metadata.managedFields");
    for (const struct td_json *e = td_json_first_child(list); e; e = e->next) {
        td_str manager = td_json_get_str(e, TD_STR("manager"), TD_STR_EMPTY);
        td_str operation = td_json_get_str(e, TD_STR("operation"), TD_STR_EMPTY);
        td_str key =
            td_arena_format(arena, "%.*s %.*s", TD_STR_ARG(manager), TD_STR_ARG(operation));
        td_json_set(arena, owners, key,
                    td_json_copy(arena, td_json_get(e, TD_STR("fieldsV1")), false));
    }
    return owners;
}

/* What tests compare: without identity and owners. */
static struct td_json *members_of(struct td_arena *arena, const struct td_json *object)
{
    struct td_json *copy = td_json_copy(arena, object, false);
    (void)td_json_remove(copy, TD_STR("apiVersion"));
    (void)td_json_remove(copy, TD_STR("kind"));
    struct td_json *metadata = td_json_get(copy, TD_STR("metadata"));
    (void)td_json_remove(metadata, TD_STR("name"));
    (void)td_json_remove(metadata, TD_STR("uid"));
    (void)td_json_remove(metadata, TD_STR("managedFields"));
    if (metadata && metadata->count == 0) {
        (void)td_json_remove(copy, TD_STR("metadata"));
    }
    return copy;
}

static int write_object(struct td_arena *arena, const struct td_apply_request *request,
                        const struct step *step, const struct td_json *live,
                        const struct td_json *object, struct td_json **ret, struct td_error *err)
{
    if (step->op == UPDATE) {
        return td_apply_update(arena, request, live, object, ret, err);
    }
    return td_apply(arena, request, live, object, ret, NULL, err);
}

static void set_uid(struct td_arena *arena, struct td_json *object)
{
    td_json_set(arena, td_json_get(object, TD_STR("metadata")), TD_STR("uid"),
                td_json_new_string(arena, TD_STR("u")));
}

/* Run the steps on one object; inputs must stay as they were. Returns what is stored at the end. */
static struct td_json *run_steps(struct td_arena *arena, struct kind kind, struct td_json *stored,
                                 const struct step *steps, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct td_apply_request request = request_of(kind, steps[i].manager);
        request.force = steps[i].op == FORCE;
        struct td_json *object = object_of(arena, kind, steps[i].object);
        if (stored && steps[i].op == UPDATE) {
            set_uid(arena, object);
        }
        const char *live_before = written(arena, stored);
        const char *object_before = written(arena, object);
        struct td_json *next = NULL;
        struct td_error err = TD_ERROR_INIT;
        int r = write_object(arena, &request, &steps[i], stored, object, &next, &err);
        assert_string_equal(written(arena, stored), live_before);
        assert_string_equal(written(arena, object), object_before);
        if (!steps[i].result) {
            assert_true(r < 0);
            assert_null(next);
            assert_string_equal(err.message, steps[i].owners);
            continue;
        }
        if (r < 0) {
            fail_msg("step %zu: %s", i, err.message);
        }
        assert_same(arena, members_of(arena, next), steps[i].result);
        assert_same(arena, owners_of(arena, next), steps[i].owners);
        set_uid(arena, next);
        stored = next;
    }
    return stored;
}

#define RUN(kind, steps)                                                                           \
    do {                                                                                           \
        td_auto_arena arena;                                                                       \
        td_arena_init(&arena, ARENA_BYTES);                                                        \
        (void)run_steps(&arena, kind, NULL, steps, sizeof(steps) / sizeof((steps)[0]));            \
    } while (0)

/* An apply owns what it mentions and takes back what it mentions no more. */
static void test_apply_owns_and_removes(void **state)
{
    (void)state;
    static const struct step steps[] = {
        {APPLY, "a", "{\"data\":{\"k\":\"1\",\"l\":\"2\"}}", "{\"data\":{\"k\":\"1\",\"l\":\"2\"}}",
         "{\"a Apply\":{\"f:data\":{\"f:k\":{},\"f:l\":{}}}}"},
        {APPLY, "a", "{\"data\":{\"l\":\"3\"}}", "{\"data\":{\"l\":\"3\"}}",
         "{\"a Apply\":{\"f:data\":{\"f:l\":{}}}}"},
        {APPLY, "a", "{}", "{}", "{}"},
    };
    RUN(config_map, steps);
}

/* Two appliers of the same value own it together; it goes when the last of them lets go. */
static void test_apply_shares_equal_values(void **state)
{
    (void)state;
    static const struct step steps[] = {
        {APPLY, "a", "{\"data\":{\"k\":\"1\"}}", "{\"data\":{\"k\":\"1\"}}",
         "{\"a Apply\":{\"f:data\":{\"f:k\":{}}}}"},
        {APPLY, "b", "{\"data\":{\"k\":\"1\"}}", "{\"data\":{\"k\":\"1\"}}",
         "{\"a Apply\":{\"f:data\":{\"f:k\":{}}},\"b Apply\":{\"f:data\":{\"f:k\":{}}}}"},
        {APPLY, "a", "{}", "{\"data\":{\"k\":\"1\"}}", "{\"b Apply\":{\"f:data\":{\"f:k\":{}}}}"},
        {APPLY, "b", "{}", "{}", "{}"},
    };
    RUN(config_map, steps);
}

/* Changing another owner's field is refused with upstream's words, or forced. */
static void test_apply_conflicts_until_forced(void **state)
{
    (void)state;
    static const struct step steps[] = {
        {APPLY, "a", "{\"data\":{\"k\":\"1\",\"l\":\"1\"}}", "{\"data\":{\"k\":\"1\",\"l\":\"1\"}}",
         "{\"a Apply\":{\"f:data\":{\"f:k\":{},\"f:l\":{}}}}"},
        {APPLY, "b", "{\"data\":{\"k\":\"2\"}}", NULL,
         "Apply failed with 1 conflict: conflict with \"a\": .data.k"},
        {APPLY, "b", "{\"data\":{\"k\":\"2\",\"l\":\"2\"}}", NULL,
         "Apply failed with 2 conflicts: conflicts with \"a\":\n- .data.k\n- .data.l"},
        {UPDATE, "u", "{\"data\":{\"k\":\"1\",\"l\":\"1\",\"m\":\"1\"}}",
         "{\"data\":{\"k\":\"1\",\"l\":\"1\",\"m\":\"1\"}}",
         "{\"a Apply\":{\"f:data\":{\"f:k\":{},\"f:l\":{}}},\"u "
         "Update\":{\"f:data\":{\"f:m\":{}}}}"},
        {APPLY, "b", "{\"data\":{\"k\":\"2\",\"m\":\"2\"}}", NULL,
         "Apply failed with 2 conflicts: conflicts with \"a\":\n- .data.k\nconflicts with \"u\" "
         "using v1:\n- .data.m"},
        {FORCE, "b", "{\"data\":{\"k\":\"2\",\"m\":\"2\"}}",
         "{\"data\":{\"k\":\"2\",\"l\":\"1\",\"m\":\"2\"}}",
         "{\"a Apply\":{\"f:data\":{\"f:l\":{}}},"
         "\"b Apply\":{\"f:data\":{\"f:k\":{},\"f:m\":{}}}}"},
    };
    RUN(config_map, steps);
}

/* An update owns what it changes, with the objects it made on the way, and frees what it drops. */
static void test_apply_update_moves_ownership(void **state)
{
    (void)state;
    static const struct step steps[] = {
        {UPDATE, "u", "{\"data\":{\"k\":\"1\"}}", "{\"data\":{\"k\":\"1\"}}",
         "{\"u Update\":{\"f:data\":{\".\":{},\"f:k\":{}}}}"},
        {UPDATE, "v", "{\"data\":{\"k\":\"2\",\"l\":\"1\"}}",
         "{\"data\":{\"k\":\"2\",\"l\":\"1\"}}",
         "{\"u Update\":{\"f:data\":{}},\"v Update\":{\"f:data\":{\"f:k\":{},\"f:l\":{}}}}"},
        {UPDATE, "u", "{\"data\":{\"k\":\"2\"}}", "{\"data\":{\"k\":\"2\"}}",
         "{\"u Update\":{\"f:data\":{}},\"v Update\":{\"f:data\":{\"f:k\":{}}}}"},
        {UPDATE, "u", "{}", "{}", "{}"},
    };
    RUN(config_map, steps);
}

/* Containers merge by name, ports by number and protocol, and go when no manager owns them. */
static void test_apply_merges_keyed_lists(void **state)
{
    (void)state;
    static const struct step steps[] = {
        {APPLY, "a",
         "{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"x\",\"image\":\"1\"},"
         "{\"name\":\"y\"}]}}}}",
         "{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"x\",\"image\":\"1\"},"
         "{\"name\":\"y\"}]}}}}",
         "{\"a Apply\":{\"f:spec\":{\"f:template\":{\"f:spec\":{\"f:containers\":{"
         "\"k:{\\\"name\\\":\\\"x\\\"}\":{\".\":{},\"f:image\":{},\"f:name\":{}},"
         "\"k:{\\\"name\\\":\\\"y\\\"}\":{\".\":{},\"f:name\":{}}}}}}}}"},
        {APPLY, "b",
         "{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"x\",\"ports\":["
         "{\"containerPort\":80}]}]}}}}",
         "{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"x\",\"image\":\"1\","
         "\"ports\":[{\"containerPort\":80}]},{\"name\":\"y\"}]}}}}",
         "{\"a Apply\":{\"f:spec\":{\"f:template\":{\"f:spec\":{\"f:containers\":{"
         "\"k:{\\\"name\\\":\\\"x\\\"}\":{\".\":{},\"f:image\":{},\"f:name\":{}},"
         "\"k:{\\\"name\\\":\\\"y\\\"}\":{\".\":{},\"f:name\":{}}}}}}},"
         "\"b Apply\":{\"f:spec\":{\"f:template\":{\"f:spec\":{\"f:containers\":{"
         "\"k:{\\\"name\\\":\\\"x\\\"}\":{\".\":{},\"f:name\":{},\"f:ports\":{"
         "\"k:{\\\"containerPort\\\":80,\\\"protocol\\\":\\\"TCP\\\"}\":{\".\":{},"
         "\"f:containerPort\":{}}}}}}}}}}"},
        {APPLY, "a", "{}",
         "{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"x\",\"ports\":["
         "{\"containerPort\":80}]}]}}}}",
         "{\"b Apply\":{\"f:spec\":{\"f:template\":{\"f:spec\":{\"f:containers\":{"
         "\"k:{\\\"name\\\":\\\"x\\\"}\":{\".\":{},\"f:name\":{},\"f:ports\":{"
         "\"k:{\\\"containerPort\\\":80,\\\"protocol\\\":\\\"TCP\\\"}\":{\".\":{},"
         "\"f:containerPort\":{}}}}}}}}}}"},
    };
    RUN(deployment, steps);
}

/* Atomic parts are owned and replaced whole; sets merge item by item. */
static void test_apply_atomic_parts_and_sets(void **state)
{
    (void)state;
    static const struct step steps[] = {
        {APPLY, "a",
         "{\"metadata\":{\"finalizers\":[\"x\"]},"
         "\"spec\":{\"selector\":{\"matchLabels\":{\"k\":\"1\"}}}}",
         "{\"metadata\":{\"finalizers\":[\"x\"]},"
         "\"spec\":{\"selector\":{\"matchLabels\":{\"k\":\"1\"}}}}",
         "{\"a Apply\":{\"f:metadata\":{\"f:finalizers\":{\"v:\\\"x\\\"\":{}}},"
         "\"f:spec\":{\"f:selector\":{}}}}"},
        {APPLY, "b", "{\"spec\":{\"selector\":{\"matchLabels\":{\"l\":\"1\"}}}}", NULL,
         "Apply failed with 1 conflict: conflict with \"a\": .spec.selector"},
        {APPLY, "b", "{\"metadata\":{\"finalizers\":[\"y\"]}}",
         "{\"metadata\":{\"finalizers\":[\"x\",\"y\"]},"
         "\"spec\":{\"selector\":{\"matchLabels\":{\"k\":\"1\"}}}}",
         "{\"a Apply\":{\"f:metadata\":{\"f:finalizers\":{\"v:\\\"x\\\"\":{}}},"
         "\"f:spec\":{\"f:selector\":{}}},"
         "\"b Apply\":{\"f:metadata\":{\"f:finalizers\":{\"v:\\\"y\\\"\":{}}}}}"},
    };
    RUN(deployment, steps);
}

/* Without a schema objects are granular, lists atomic, and every object on the way is owned. */
static void test_apply_without_schema(void **state)
{
    (void)state;
    static const struct step steps[] = {
        {APPLY, "a", "{\"spec\":{\"list\":[1],\"nested\":{\"x\":1}}}",
         "{\"spec\":{\"list\":[1],\"nested\":{\"x\":1}}}",
         "{\"a Apply\":{\"f:spec\":{\".\":{},\"f:list\":{},\"f:nested\":{\".\":{},\"f:x\":{}}}}}"},
        {APPLY, "b", "{\"spec\":{\"list\":[1,2]}}", NULL,
         "Apply failed with 1 conflict: conflict with \"a\": .spec.list"},
        {APPLY, "b", "{\"spec\":{\"nested\":5}}", NULL,
         "Apply failed with 1 conflict: conflict with \"a\": .spec.nested"},
        {APPLY, "b", "{\"spec\":{\"nested\":{\"y\":1.0}}}",
         "{\"spec\":{\"list\":[1],\"nested\":{\"x\":1,\"y\":1.0}}}",
         "{\"a Apply\":{\"f:spec\":{\".\":{},\"f:list\":{},\"f:nested\":{\".\":{},\"f:x\":{}}}},"
         "\"b Apply\":{\"f:spec\":{\".\":{},\"f:nested\":{\".\":{},\"f:y\":{}}}}}"},
        {APPLY, "b", "{\"spec\":{\"nested\":{\"y\":1}}}",
         "{\"spec\":{\"list\":[1],\"nested\":{\"x\":1,\"y\":1.0}}}",
         "{\"a Apply\":{\"f:spec\":{\".\":{},\"f:list\":{},\"f:nested\":{\".\":{},\"f:x\":{}}}},"
         "\"b Apply\":{\"f:spec\":{\".\":{},\"f:nested\":{\".\":{},\"f:y\":{}}}}}"},
    };
    RUN(widget, steps);
}

/* What an object held before its first apply belongs to "before-first-apply". */
static void test_apply_before_first_apply(void **state)
{
    (void)state;
    static const struct step steps[] = {
        {APPLY, "a", "{\"data\":{\"k\":\"2\"}}", NULL,
         "Apply failed with 1 conflict: conflict with \"before-first-apply\" using v1: .data.k"},
        {UPDATE, "u", "{\"data\":{\"k\":\"1\",\"l\":\"1\"}}",
         "{\"data\":{\"k\":\"1\",\"l\":\"1\"}}", "{}"},
        {APPLY, "a", "{\"data\":{\"k\":\"1\"}}", "{\"data\":{\"k\":\"1\",\"l\":\"1\"}}",
         "{\"a Apply\":{\"f:data\":{\"f:k\":{}}},"
         "\"before-first-apply Update\":{\"f:data\":{\".\":{},\"f:k\":{},\"f:l\":{}}}}"},
    };
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    struct td_json *stored = object_of(&arena, config_map, "{\"data\":{\"k\":\"1\"}}");
    set_uid(&arena, stored);
    (void)run_steps(&arena, config_map, stored, steps, sizeof(steps) / sizeof(steps[0]));
}

/* An update may bring its owners; an empty list forgets them, an unreadable one is ignored. */
static void test_apply_update_brings_owners(void **state)
{
    (void)state;
    static const struct step steps[] = {
        {APPLY, "a", "{\"data\":{\"k\":\"1\"}}", "{\"data\":{\"k\":\"1\"}}",
         "{\"a Apply\":{\"f:data\":{\"f:k\":{}}}}"},
        {UPDATE, "u",
         "{\"metadata\":{\"managedFields\":[{\"manager\":\"b\",\"operation\":\"Apply\","
         "\"apiVersion\":\"v1\",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{\"f:data\":{\"f:k\":{}}}"
         "}]},\"data\":{\"k\":\"1\",\"l\":\"1\"}}",
         "{\"data\":{\"k\":\"1\",\"l\":\"1\"}}",
         "{\"b Apply\":{\"f:data\":{\"f:k\":{}}},\"u Update\":{\"f:data\":{\"f:l\":{}}}}"},
        {UPDATE, "u",
         "{\"metadata\":{\"managedFields\":[{\"manager\":\"b\",\"operation\":\"Patch\"}]},"
         "\"data\":{\"k\":\"1\",\"l\":\"1\"}}",
         "{\"data\":{\"k\":\"1\",\"l\":\"1\"}}",
         "{\"b Apply\":{\"f:data\":{\"f:k\":{}}},\"u Update\":{\"f:data\":{\"f:l\":{}}}}"},
        {UPDATE, "u", "{\"metadata\":{\"managedFields\":[{}]},\"data\":{\"k\":\"1\"}}",
         "{\"data\":{\"k\":\"1\"}}", "{}"},
        {APPLY, "a", "{\"data\":{\"k\":\"1\"}}", "{\"data\":{\"k\":\"1\"}}",
         "{\"a Apply\":{\"f:data\":{\"f:k\":{}}},"
         "\"before-first-apply Update\":{\"f:data\":{\".\":{},\"f:k\":{}}}}"},
        {UPDATE, "u", "{\"metadata\":{\"managedFields\":[]},\"data\":{\"k\":\"1\"}}",
         "{\"data\":{\"k\":\"1\"}}", "{}"},
    };
    RUN(config_map, steps);
}

/* Nulls are values: they are owned, and lay over a map without removing what is in it. */
static void test_apply_null_values(void **state)
{
    (void)state;
    static const struct step steps[] = {
        {APPLY, "a", "{\"data\":{\"k\":null}}", "{\"data\":{\"k\":null}}",
         "{\"a Apply\":{\"f:data\":{\"f:k\":{}}}}"},
        {APPLY, "b", "{\"data\":null}", "{\"data\":{\"k\":null}}",
         "{\"a Apply\":{\"f:data\":{\"f:k\":{}}},\"b Apply\":{\"f:data\":{}}}"},
        {APPLY, "a", "{}", "{\"data\":null}", "{\"b Apply\":{\"f:data\":{}}}"},
    };
    RUN(config_map, steps);
}

/* Configurations that upstream refuses are refused, each with a path or a reason. */
static void test_apply_refuses_bad_configurations(void **state)
{
    (void)state;
    static const struct {
        const char *object;
        const char *word; /* in the message */
    } rows[] = {
        {"{\"bogus\":1}", ".bogus: field not declared"},
        {"{\"spec\":{\"replicas\":\"1\"}}", ".spec.replicas: expected a number"},
        {"{\"spec\":{\"paused\":1}}", ".spec.paused: expected true or false"},
        {"{\"spec\":[]}", ".spec: expected an object"},
        {"{\"spec\":{\"selector\":{\"matchLabels\":{\"a\":1}}}}",
         "matchLabels.a: expected a string"},
        {"{\"spec\":{\"template\":{\"spec\":{\"containers\":{}}}}}", "containers: expected a list"},
        {"{\"spec\":{\"template\":{\"spec\":{\"containers\":[null]}}}}", "containers[0]: an item"},
        {"{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"a\"},{\"name\":\"a\"}]}}}"
         "}",
         "containers[name=\"a\"]: duplicate"},
        {"{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"ports\":[{},{\"protocol\":\"TCP\"}]"
         "}"
         "]}}}}",
         "ports[containerPort=0,protocol=\"TCP\"]: duplicate"},
        {"{\"metadata\":{\"finalizers\":[\"a\",\"a\"]}}", "finalizers[=\"a\"]: duplicate"},
        {"{\"metadata\":{\"finalizers\":[[]]}}", "finalizers[0]: an item of a set is a list"},
        {"{\"metadata\":{\"finalizers\":[{}]}}", "finalizers[0]: an item of a set is an object"},
        {"{\"metadata\":{\"finalizers\":[null]}}", "finalizers[0]: an item of a set is null"},
        {"{\"metadata\":{\"managedFields\":[]}}", "managedFields must be nil"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, ARENA_BYTES);
        struct td_apply_request request = request_of(deployment, "a");
        struct td_json *object = object_of(&arena, deployment, rows[i].object);
        struct td_json *next = NULL;
        struct td_error err = TD_ERROR_INIT;
        assert_int_equal(td_apply(&arena, &request, NULL, object, &next, NULL, &err), TD_INVALID);
        assert_null(next);
        if (!strstr(err.message, rows[i].word)) {
            fail_msg("'%s' does not say '%s'", err.message, rows[i].word);
        }
    }
}

/* Other versions and kinds, and things that are no objects, are refused. */
static void test_apply_refuses_other_kinds(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    struct td_apply_request request = request_of(config_map, "a");
    struct td_json *next = NULL;
    struct td_json *good = object_of(&arena, config_map, "{}");
    struct td_json *version = object_of(&arena, (struct kind){"v2", "ConfigMap"}, "{}");
    struct td_json *kind = object_of(&arena, (struct kind){"v1", "Secret"}, "{}");
    struct td_json *text = parse(&arena, "\"x\"");
    assert_int_equal(td_apply(&arena, &request, NULL, version, &next, NULL, NULL), TD_INVALID);
    assert_int_equal(td_apply(&arena, &request, NULL, kind, &next, NULL, NULL), TD_INVALID);
    assert_int_equal(td_apply(&arena, &request, NULL, text, &next, NULL, NULL), TD_INVALID);
    assert_int_equal(td_apply(&arena, &request, text, good, &next, NULL, NULL), TD_INVALID);
    assert_int_equal(td_apply(&arena, &request, kind, good, &next, NULL, NULL), TD_INVALID);
    assert_int_equal(td_apply_update(&arena, &request, NULL, text, &next, NULL), TD_INVALID);
    assert_int_equal(td_apply_update(&arena, &request, NULL, kind, &next, NULL), TD_INVALID);
    assert_null(next);
    request.kind = TD_STR_EMPTY;
    assert_int_equal(td_apply(&arena, &request, NULL, kind, &next, NULL, NULL), TD_OK);
}

/* The same apply again changes nothing, not even a time; a new owner of old values has none. */
static void test_apply_twice_is_a_no_op(void **state)
{
    (void)state;
    static const struct {
        struct kind kind;
        const char *object;
    } rows[] = {
        {{"v1", "ConfigMap"}, "{\"data\":{\"k\":\"1\",\"l\":null},\"immutable\":true}"},
        {{"apps/v1", "Deployment"},
         "{\"metadata\":{\"finalizers\":[\"b\",\"a\"]},\"spec\":{\"template\":{\"spec\":{"
         "\"containers\":[{\"name\":\"a\",\"ports\":[{\"containerPort\":1000000}],\"env\":["
         "{\"name\":\"Z\"},{\"name\":\"A\"}]},{}],\"nodeSelector\":{}}}}}"},
        {{"example.com/v1", "Widget"}, "{\"spec\":{\"a\":[1,{}],\"b\":{},\"c\":null}}"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, ARENA_BYTES);
        struct td_apply_request request = request_of(rows[i].kind, "a");
        struct td_json *object = object_of(&arena, rows[i].kind, rows[i].object);
        struct td_json *once = NULL;
        struct td_json *twice = NULL;
        struct td_json *other = NULL;
        assert_int_equal(td_apply(&arena, &request, NULL, object, &once, NULL, NULL), TD_OK);
        request.now.unix_seconds += 60;
        assert_int_equal(td_apply(&arena, &request, once, object, &twice, NULL, NULL), TD_OK);
        assert_string_equal(written(&arena, once), written(&arena, twice));
        const struct td_json *list = td_json_get_path(twice, "metadata.managedFields");
        assert_true(
            td_str_equal(td_json_get_str(td_json_first_child(list), TD_STR("time"), TD_STR_EMPTY),
                         TD_STR(NOW_TEXT)));
        request.manager = TD_STR("b");
        assert_int_equal(td_apply(&arena, &request, twice, object, &other, NULL, NULL), TD_OK);
        list = td_json_get_path(other, "metadata.managedFields");
        assert_int_equal(list->count, 2);
        assert_null(td_json_get(td_json_first_child(list), TD_STR("time")));
    }
}

/* Past ten updaters the two oldest of a version become "ancient-changes". */
static void test_apply_caps_updaters(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    struct td_json *stored = NULL;
    td_auto_buf data;
    td_buf_init(&data, ARENA_BYTES);
    for (int i = 0; i < 13; i++) {
        td_buf_append_format(&data, "%s\"k%02d\":\"v\"", i > 0 ? "," : "", i);
        struct td_json *object = object_of(
            &arena, config_map,
            td_arena_format(&arena, "{\"data\":{%.*s}}", TD_STR_ARG(td_buf_str(&data))).ptr);
        struct td_apply_request request =
            request_of(config_map, td_arena_format(&arena, "u%02d", i).ptr);
        request.now.unix_seconds += i;
        struct td_json *next = NULL;
        assert_int_equal(td_apply_update(&arena, &request, stored, object, &next, NULL), TD_OK);
        stored = next;
    }
    struct td_json *owners = owners_of(&arena, stored);
    assert_int_equal(owners->count, 10);
    assert_same(&arena, td_json_get(owners, TD_STR("ancient-changes Update")),
                "{\"f:data\":{\".\":{},\"f:k00\":{},\"f:k01\":{},\"f:k02\":{},\"f:k03\":{}}}");
    assert_null(td_json_get(owners, TD_STR("u03 Update")));
    assert_non_null(td_json_get(owners, TD_STR("u04 Update")));
    const struct td_json *list = td_json_get_path(stored, "metadata.managedFields");
    assert_true(
        td_str_equal(td_json_get_str(td_json_first_child(list), TD_STR("manager"), TD_STR_EMPTY),
                     TD_STR("ancient-changes")));
}

/* The same manager on a subresource is another owner and cannot bring its own list. */
static void test_apply_subresource_is_an_owner_of_its_own(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    struct td_apply_request request = request_of(deployment, "hpa");
    struct td_json *object = object_of(&arena, deployment, "{\"spec\":{\"replicas\":1}}");
    struct td_json *stored = NULL;
    assert_int_equal(td_apply(&arena, &request, NULL, object, &stored, NULL, NULL), TD_OK);
    request.subresource = TD_STR("scale");
    object = object_of(&arena, deployment,
                       "{\"metadata\":{\"managedFields\":[]},\"spec\":{\"replicas\":2}}");
    struct td_json *scaled = NULL;
    assert_int_equal(td_apply_update(&arena, &request, stored, object, &scaled, NULL), TD_OK);
    const struct td_json *list = td_json_get_path(scaled, "metadata.managedFields");
    assert_int_equal(list->count, 1);
    assert_true(td_str_equal(
        td_json_get_str(td_json_first_child(list), TD_STR("subresource"), TD_STR_EMPTY),
        TD_STR("scale")));
    request.subresource = TD_STR_EMPTY;
    object = object_of(&arena, deployment, "{\"spec\":{\"replicas\":3}}");
    struct td_error err = TD_ERROR_INIT;
    struct td_json *conflicts = NULL;
    assert_int_equal(td_apply(&arena, &request, scaled, object, &stored, &conflicts, &err),
                     TD_CONFLICT);
    assert_string_equal(err.message,
                        "Apply failed with 1 conflict: conflict with \"hpa\" with subresource "
                        "\"scale\" using apps/v1: .spec.replicas");
    assert_same(&arena, conflicts,
                "[{\"manager\":\"\\\"hpa\\\" with subresource \\\"scale\\\" using apps/v1\","
                "\"field\":\".spec.replicas\"}]");
}

#define LAST "kubectl.kubernetes.io/last-applied-configuration"

/* kubectl takes over what its client-side annotation proves to be its own, and renews that. */
static void test_apply_kubectl_adopts_client_side_fields(void **state)
{
    (void)state;
    static const struct step steps[] = {
        {UPDATE, "kubectl-client",
         "{\"metadata\":{\"annotations\":{\"" LAST "\":\"{\\\"apiVersion\\\":\\\"v1\\\","
         "\\\"kind\\\":\\\"ConfigMap\\\",\\\"metadata\\\":{\\\"name\\\":\\\"c\\\"},"
         "\\\"data\\\":{\\\"k\\\":\\\"1\\\"}}\"}},\"data\":{\"k\":\"1\",\"l\":\"1\"}}",
         "{\"metadata\":{\"annotations\":{\"" LAST "\":\"{\\\"apiVersion\\\":\\\"v1\\\","
         "\\\"kind\\\":\\\"ConfigMap\\\",\\\"metadata\\\":{\\\"name\\\":\\\"c\\\"},"
         "\\\"data\\\":{\\\"k\\\":\\\"1\\\"}}\"}},\"data\":{\"k\":\"1\",\"l\":\"1\"}}",
         "{\"kubectl-client Update\":{\"f:data\":{\".\":{},\"f:k\":{},\"f:l\":{}},"
         "\"f:metadata\":{\"f:annotations\":{\".\":{},\"f:" LAST "\":{}}}}}"},
        {APPLY, "other", "{\"data\":{\"k\":\"2\"}}", NULL,
         "Apply failed with 1 conflict: conflict with \"kubectl-client\" using v1: .data.k"},
        {APPLY, "kubectl", "{\"data\":{\"k\":\"2\",\"l\":\"2\"}}", NULL,
         "Apply failed with 1 conflict: conflict with \"kubectl-client\" using v1: .data.l"},
        {APPLY, "kubectl", "{\"data\":{\"k\":\"2\"}}",
         "{\"metadata\":{\"annotations\":{\"" LAST "\":\"{\\\"apiVersion\\\":\\\"v1\\\","
         "\\\"data\\\":{\\\"k\\\":\\\"2\\\"},\\\"kind\\\":\\\"ConfigMap\\\","
         "\\\"metadata\\\":{\\\"name\\\":\\\"c\\\"}}\\n\"}},\"data\":{\"k\":\"2\",\"l\":\"1\"}}",
         "{\"kubectl Apply\":{\"f:data\":{\"f:k\":{}}},"
         "\"kubectl-client Update\":{\"f:data\":{\".\":{},\"f:l\":{}},"
         "\"f:metadata\":{\"f:annotations\":{\".\":{},\"f:" LAST "\":{}}}}}"},
    };
    RUN(config_map, steps);
}

static struct td_json *nested_widget(struct td_arena *arena, size_t depth)
{
    struct td_json *value = td_json_new_object(arena);
    for (size_t i = 0; i < depth; i++) {
        struct td_json *outer = td_json_new_object(arena);
        td_json_set(arena, outer, TD_STR("a"), value);
        value = outer;
    }
    struct td_json *object = object_of(arena, widget, "{}");
    td_json_set(arena, object, TD_STR("spec"), value);
    return object;
}

/* Objects nested too deeply, for themselves or for the list of their owners, are a limit. */
static void test_apply_depth_is_limited(void **state)
{
    (void)state;
    static const struct {
        size_t depth;
        int code;
    } rows[] = {
        {10, TD_OK},
        {TD_JSON_DEPTH_MAX - 7, TD_OK},
        {TD_JSON_DEPTH_MAX - 2, TD_LIMIT},
        {TD_JSON_DEPTH_MAX, TD_LIMIT},
        {TD_JSON_DEPTH_MAX + 100, TD_LIMIT},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, ARENA_BYTES);
        struct td_apply_request request = request_of(widget, "a");
        struct td_json *object = nested_widget(&arena, rows[i].depth);
        struct td_json *next = NULL;
        struct td_error err = TD_ERROR_INIT;
        assert_int_equal(td_apply(&arena, &request, NULL, object, &next, NULL, &err), rows[i].code);
        if (next) {
            (void)parse(&arena, written(&arena, next));
        }
    }
}

/* An arena at its cap ends an apply instead of growing without end. */
static void test_apply_respects_arena(void **state)
{
    (void)state;
    td_auto_arena input;
    td_arena_init(&input, ARENA_BYTES);
    td_auto_arena arena;
    td_arena_init(&arena, 512);
    struct td_apply_request request = request_of(config_map, "a");
    struct td_json *object = object_of(&input, config_map, "{\"data\":{\"k\":\"1\"}}");
    struct td_json *next = NULL;
    struct td_error err = TD_ERROR_INIT;
    assert_int_equal(td_apply(&arena, &request, NULL, object, &next, NULL, &err), TD_LIMIT);
    assert_int_equal(td_apply_update(&arena, &request, NULL, object, &next, &err), TD_LIMIT);
    assert_null(next);
}

/* List items of one key in a stored object stay until an apply names the key. */
static void test_apply_tolerates_stored_duplicates(void **state)
{
    (void)state;
    static const struct step steps[] = {
        {UPDATE, "u",
         "{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"a\",\"image\":\"1\"},"
         "{\"name\":\"a\",\"image\":\"2\"},{\"name\":\"b\"}]}}}}",
         "{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"a\",\"image\":\"1\"},"
         "{\"name\":\"a\",\"image\":\"2\"},{\"name\":\"b\"}]}}}}",
         "{\"u Update\":{\"f:spec\":{\".\":{},\"f:template\":{\".\":{},\"f:spec\":{\".\":{},"
         "\"f:containers\":{\".\":{},\"k:{\\\"name\\\":\\\"a\\\"}\":{},"
         "\"k:{\\\"name\\\":\\\"b\\\"}\":{\".\":{},\"f:name\":{}}}}}}}}"},
        {FORCE, "a",
         "{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"a\",\"image\":\"3\"}]}}}}",
         "{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"a\",\"image\":\"3\"},"
         "{\"name\":\"b\"}]}}}}",
         "{\"a Apply\":{\"f:spec\":{\"f:template\":{\"f:spec\":{\"f:containers\":{"
         "\"k:{\\\"name\\\":\\\"a\\\"}\":{\".\":{},\"f:image\":{},\"f:name\":{}}}}}}},"
         "\"u Update\":{\"f:spec\":{\".\":{},\"f:template\":{\".\":{},\"f:spec\":{\".\":{},"
         "\"f:containers\":{\".\":{},\"k:{\\\"name\\\":\\\"b\\\"}\":{\".\":{},\"f:name\":{}}}}}}}"
         "}"},
    };
    RUN(deployment, steps);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_apply_owns_and_removes),
        cmocka_unit_test(test_apply_shares_equal_values),
        cmocka_unit_test(test_apply_conflicts_until_forced),
        cmocka_unit_test(test_apply_update_moves_ownership),
        cmocka_unit_test(test_apply_merges_keyed_lists),
        cmocka_unit_test(test_apply_atomic_parts_and_sets),
        cmocka_unit_test(test_apply_without_schema),
        cmocka_unit_test(test_apply_before_first_apply),
        cmocka_unit_test(test_apply_update_brings_owners),
        cmocka_unit_test(test_apply_null_values),
        cmocka_unit_test(test_apply_refuses_bad_configurations),
        cmocka_unit_test(test_apply_refuses_other_kinds),
        cmocka_unit_test(test_apply_twice_is_a_no_op),
        cmocka_unit_test(test_apply_caps_updaters),
        cmocka_unit_test(test_apply_subresource_is_an_owner_of_its_own),
        cmocka_unit_test(test_apply_kubectl_adopts_client_side_fields),
        cmocka_unit_test(test_apply_depth_is_limited),
        cmocka_unit_test(test_apply_respects_arena),
        cmocka_unit_test(test_apply_tolerates_stored_duplicates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
