/* Protobuf bodies: objects encoded by the published Go types read as their JSON, and any other
 * bytes are refused with the place. With a folder as argument, every pair of files in it is
 * compared. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/os/file.h"
#include "kube/proto/proto.h"
#include "kube/proto/proto_wire.h"
#include "unit/kube/patch/patch_fixture.h"

#define SAMPLES_MIN 30
#define MAP_ENTRIES 100000
#define NAME_BYTES 512

static const char *folder = TEST_DATA_DIR "/proto";

/* A literal that may hold zero bytes. */
#define BYTES(literal) TD_STR(literal)

static int decode(struct td_arena *arena, td_str body, struct td_json **ret, struct td_error *err)
{
    struct td_proto_envelope envelope;
    int r = td_proto_open(body, &envelope, err);
    return r < 0 ? r : td_proto_decode(arena, &envelope, ret, err);
}

static int compare_pair(const char *path, void *context, struct td_error *err)
{
    size_t *count = context;
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    char name[NAME_BYTES];
    (void)snprintf(name, sizeof(name), "%.*s.json", (int)(strlen(path) - strlen(".pb")), path);
    td_str body;
    td_str text;
    int r = td_file_read(path, &arena, TD_PROTO_BYTES_MAX, &body, err);
    r = r < 0 ? r : td_file_read(name, &arena, TD_JSON_BYTES_MAX, &text, err);
    if (r < 0) {
        return r;
    }
    struct td_json *ours = NULL;
    struct td_json *theirs = NULL;
    r = td_json_parse(&arena, text, NULL, &theirs, err);
    r = r < 0 ? r : decode(&arena, body, &ours, err);
    if (r < 0) {
        return td_error_wrap(err, r, "%s", path);
    }
    (*count)++;
    if (td_json_equal(ours, theirs)) {
        return TD_OK;
    }
    print_error("ours   %s\ntheirs %s\n", text_of(&arena, ours), text_of(&arena, theirs));
    return td_error_set(err, TD_INVALID, "%s differs from its JSON", path);
}

/* What the Go types write is read as Go's JSON of the same object. */
static void test_proto_reads_what_go_writes(void **state)
{
    (void)state;
    struct td_error err = TD_ERROR_INIT;
    size_t count = 0;
    int r = td_file_each(folder, ".pb", compare_pair, &count, &err);
    if (r < 0) {
        print_error("%s\n", err.message);
    }
    assert_int_equal(r, TD_OK);
    assert_true(count >= SAMPLES_MIN);
    print_message("%zu objects are equal\n", count);
}

struct message_row {
    const char *api_version;
    const char *kind;
    td_str message;
    const char *expected; /* without apiVersion and kind; or the error's text */
};

static int decode_row(struct td_arena *arena, const struct message_row *row, struct td_json **ret,
                      struct td_error *err)
{
    struct td_proto_envelope envelope = {.api_version = td_str_from(row->api_version),
                                         .kind = td_str_from(row->kind),
                                         .message = row->message};
    return td_proto_decode(arena, &envelope, ret, err);
}

/* The format's rules and Go's: merging, the last of several, zero values printed or left out. */
static void test_proto_follows_the_rules_of_the_format(void **state)
{
    (void)state;
    static const struct message_row rows[] = {
        {"v1", "Namespace", BYTES(""), "{'metadata':{},'spec':{},'status':{}}"},
        {"v1", "Pod", BYTES(""), "{'metadata':{},'spec':{'containers':null},'status':{}}"},
        {"apps/v1", "DeleteOptions", BYTES("\x08\x00"), "{'gracePeriodSeconds':0}"},
        {"v1", "ConfigMap",
         BYTES("\x12\x06\x0a\x01"
               "a\x12\x01"
               "b"),
         "{'metadata':{},'data':{'a':'b'}}"},
        {"v1", "ConfigMap", BYTES("\x12\x00\x1a\x00"),
         "{'metadata':{},'data':{'':''},'binaryData':{'':''}}"},
        /* The last entry of a key, and the last value in an entry, count. */
        {"v1", "ConfigMap", BYTES("\x12\x04\x0a\x00\x12\x00\x12\x07\x12\x01x\x0a\x00\x12\x00"),
         "{'metadata':{},'data':{'':''}}"},
        {"v1", "ConfigMap", BYTES("\x20\x00"), "{'metadata':{},'immutable':false}"},
        {"v1", "ConfigMap", BYTES("\x20\x00\x20\x02"), "{'metadata':{},'immutable':true}"},
        /* A message in two pieces is merged; an empty text takes a name away. */
        {"v1", "ConfigMap", BYTES("\x0a\x03\x0a\x01x\x0a\x03\x1a\x01y"),
         "{'metadata':{'name':'x','namespace':'y'}}"},
        {"v1", "ConfigMap", BYTES("\x0a\x05\x0a\x01x\x0a\x00"), "{'metadata':{}}"},
        /* Unknown fields of every wire type, and of a large number. */
        {"v1", "ConfigMap",
         BYTES("\x78\x01\x79"
               "12345678\x7a\x01z\x7d"
               "1234\xc2\x3e\x01z"),
         "{'metadata':{}}"},
        /* Scalars one by one, packed, both, and an empty pack. */
        {"v1", "Pod", BYTES("\x12\x06\x72\x04\x20\x01\x20\x02"),
         "{'metadata':{},'spec':{'containers':null,'securityContext':{'supplementalGroups':[1,2]}},"
         "'status':{}}"},
        {"v1", "Pod", BYTES("\x12\x09\x72\x07\x22\x03\x01\xff\x01\x20\x02"),
         "{'metadata':{},'spec':{'containers':null,'securityContext':{'supplementalGroups':[1,255,2"
         "]}},'status':{}}"},
        {"v1", "Pod", BYTES("\x12\x04\x72\x02\x22\x00"),
         "{'metadata':{},'spec':{'containers':null,'securityContext':{}},'status':{}}"},
        /* Negative numbers take ten bytes; 32 bits are kept of a larger one. */
        {"autoscaling/v1", "Scale",
         BYTES("\x12\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x1a\x06\x08\x81\x80\x80\x80"
               "\x10"),
         "{'metadata':{},'spec':{'replicas':-1},'status':{'replicas':1}}"},
        /* The zero time, 1970, and a fraction of a second that goes into the next. */
        {"coordination.k8s.io/v1", "Lease",
         BYTES(
             "\x0a\x02\x42\x00\x12\x11\x1a\x02\x08\x00\x22\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff"
             "\xff\x01"),
         "{'metadata':{},'spec':{'acquireTime':'1970-01-01T00:00:00.000000Z',"
         "'renewTime':'1969-12-31T23:59:59.000000Z'}}"},
        {"coordination.k8s.io/v1", "Lease", BYTES("\x12\x08\x1a\x06\x10\xff\xcf\xe7\xd7\x04"),
         "{'metadata':{},'spec':{'acquireTime':'1970-01-01T00:00:01.257891Z'}}"},
        {"coordination.k8s.io/v1", "Lease", BYTES("\x12\x02\x1a\x00"),
         "{'metadata':{},'spec':{'acquireTime':null}}"},
        /* A struct that Go inlines, in two pieces. */
        {"v1", "Pod",
         BYTES(
             "\x12\x0b\x0a\x09\x0a\x01v\x12\x04\x12\x02\x0a\x00\x12\x08\x0a\x06\x12\x02\x12\x00\x12"
             "\x00"),
         "{'metadata':{},'spec':{'volumes':[{'name':'v','emptyDir':{}},{'name':'','emptyDir':{}}],"
         "'containers':null},'status':{}}"},
        {"apps/v1", "ControllerRevision", BYTES("\x12\x00\x18\x00"),
         "{'metadata':{},'data':null,'revision':0}"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, ARENA_BYTES);
        struct td_error err = TD_ERROR_INIT;
        struct td_json *expected = json(&arena, rows[i].expected);
        td_json_set_str(&arena, expected, TD_STR("apiVersion"), td_str_from(rows[i].api_version));
        td_json_set_str(&arena, expected, TD_STR("kind"), td_str_from(rows[i].kind));
        struct td_json *found = NULL;
        assert_int_equal(decode_row(&arena, &rows[i], &found, &err), TD_OK);
        assert_string_equal(text_of(&arena, found), text_of(&arena, expected));
    }
}

/* Bytes that are no message of the kind are refused, with the field. */
static void test_proto_refuses_what_is_no_message(void **state)
{
    (void)state;
    static const struct message_row rows[] = {
        {"v1", "Widget", BYTES(""), "protobuf: no kind 'Widget' in version 'v1' is known"},
        {"v1", "", BYTES(""), "protobuf: no kind '' in version 'v1' is known"},
        {"v1", "ConfigMap", BYTES("\x80"), "protobuf: a field's tag is cut short or too long"},
        {"v1", "ConfigMap", BYTES("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
         "protobuf: a field's tag is cut short or too long"},
        {"v1", "ConfigMap", BYTES("\x02\x00"), "protobuf: no field can have the number 0"},
        {"v1", "ConfigMap", BYTES("\x82\x80\x80\x80\x10\x00"),
         "protobuf: no field can have the number 536870912"},
        {"v1", "ConfigMap", BYTES("\x0b\x0c"),
         "protobuf: field 1 has wire type 3: groups are not read"},
        {"v1", "ConfigMap", BYTES("\x7c"),
         "protobuf: field 15 has wire type 4: groups are not read"},
        {"v1", "ConfigMap", BYTES("\x0e"), "protobuf: field 1 has wire type 6: there is none"},
        {"v1", "ConfigMap", BYTES("\x0a\x05x"), "protobuf: field 1 is cut short or too long"},
        {"v1", "ConfigMap", BYTES("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
         "protobuf: field 1 is cut short or too long"},
        {"v1", "ConfigMap", BYTES("\x79\x00"), "protobuf: field 15 is cut short or too long"},
        {"v1", "ConfigMap", BYTES("\x08\x01"), "metadata: wrong wire type"},
        {"v1", "ConfigMap", BYTES("\x10\x01"), "data: wrong wire type"},
        {"v1", "ConfigMap", BYTES("\x22\x01x"), "immutable: wrong wire type"},
        {"v1", "ConfigMap", BYTES("\x0a\x02\x0a\x01"),
         "metadata: protobuf: field 1 is cut short or too long"},
        {"v1", "ConfigMap", BYTES("\x0a\x03\x0a\x01\xff"), "metadata.name: not UTF-8"},
        {"v1", "ConfigMap", BYTES("\x12\x03\x0a\x01\xff"), "data: a key is not UTF-8"},
        {"v1", "ConfigMap", BYTES("\x12\x06\x0a\x01x\x12\x01\xff"), "data[x]: not UTF-8"},
        {"v1", "ConfigMap", BYTES("\x12\x02\x10\x01"), "data[]: wrong wire type"},
        {"v1", "Pod", BYTES("\x12\x05\x72\x03\x22\x01\x80"),
         "spec.securityContext.supplementalGroups[0]: a packed number is cut short"},
        {"v1", "Pod", BYTES("\x12\x04\x0a\x02\x10\x01"), "spec.volumes[0]: wrong wire type"},
        {"policy/v1", "PodDisruptionBudget", BYTES("\x12\x04\x0a\x02\x08\x02"),
         "spec.minAvailable: neither a number nor a text"},
        {"policy/v1", "PodDisruptionBudget", BYTES("\x12\x07\x0a\x05\x08\x01\x1a\x01\xff"),
         "spec.minAvailable: not UTF-8"},
        {"v1", "Pod", BYTES("\x0a\x08\x42\x06\x08\xff\xff\xff\xff\x7f"), NULL},
        {"v1", "Pod", BYTES("\x0a\x09\x42\x07\x08\xff\xff\xff\xff\xff\x7f"),
         "metadata.creationTimestamp: a time outside the years 0000 to 9999"},
        {"apiextensions.k8s.io/v1", "CustomResourceDefinition",
         BYTES("\x12\x0f\x3a\x0d\x22\x0b\x0a\x09\x49\x00\x00\x00\x00\x00\x00\xf0\x7f"),
         "spec.versions[0].schema.openAPIV3Schema.maximum: not a finite number"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, ARENA_BYTES);
        struct td_error err = TD_ERROR_INIT;
        struct td_json *found = NULL;
        int r = decode_row(&arena, &rows[i], &found, &err);
        if (!rows[i].expected) {
            assert_int_equal(r, TD_OK);
            continue;
        }
        assert_string_equal(err.message, rows[i].expected);
        assert_int_equal(r, TD_INVALID);
        assert_null(found);
        assert_int_equal(decode_row(&arena, &rows[i], &found, NULL), TD_INVALID);
    }
}

/* Values that other parsers read keep those parsers' messages, behind the field. */
static void test_proto_names_the_field_of_a_bad_value(void **state)
{
    (void)state;
    static const struct message_row rows[] = {
        {"apps/v1", "ControllerRevision", BYTES("\x12\x03\x0a\x01{"), "data: "},
        {"v1", "Pod", BYTES("\x12\x0a\x12\x08\x42\x06\x0a\x04\x12\x02\x0a\x00"),
         "spec.containers[0].resources.limits[]: "},
        {"v1", "Pod", BYTES("\x12\x0b\x12\x09\x42\x07\x0a\x05\x12\x03\x0a\x01x"),
         "spec.containers[0].resources.limits[]: "},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, ARENA_BYTES);
        struct td_error err = TD_ERROR_INIT;
        struct td_json *found = NULL;
        assert_int_equal(decode_row(&arena, &rows[i], &found, &err), TD_INVALID);
        assert_true(td_str_starts_with(td_str_from(err.message), td_str_from(rows[i].expected)));
    }
}

/* An envelope is read for its kind and message, whatever else it holds. */
static void test_proto_opens_envelopes(void **state)
{
    (void)state;
    static const struct {
        td_str body;
        int code;
        const char *api_version;
        const char *kind;
        const char *message;
    } rows[] = {
        {BYTES(""), TD_INVALID, NULL, NULL, NULL},
        {BYTES("k8s"), TD_INVALID, NULL, NULL, NULL},
        {BYTES("{\"kind\":\"Pod\"}"), TD_INVALID, NULL, NULL, NULL},
        {BYTES("k8s\0"), TD_OK, "", "", ""},
        {BYTES("k8s\0\x0a\x09\x0a\x02v1\x12\x03Pod\x12\x01x\x1a\x00\x22\x00"), TD_OK, "v1", "Pod",
         "x"},
        {BYTES("k8s\0\x0a\x09\x0a\x02v1\x12\x03Pod\x12\x02x"), TD_INVALID, NULL, NULL, NULL},
        {BYTES("k8s\0\x0a\x03\x0a\x02v"), TD_INVALID, NULL, NULL, NULL},
        {BYTES("k8s\0\x0a\x03\x0a\x01\xff"), TD_INVALID, NULL, NULL, NULL},
        {BYTES("k8s\0\x08\x01"), TD_INVALID, NULL, NULL, NULL},
        {BYTES("k8s\0\x10\x01"), TD_INVALID, NULL, NULL, NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct td_error err = TD_ERROR_INIT;
        struct td_proto_envelope envelope;
        assert_int_equal(td_proto_open(rows[i].body, &envelope, &err), rows[i].code);
        assert_int_equal(err.code, rows[i].code);
        if (rows[i].code == TD_OK) {
            assert_true(td_str_equal(envelope.api_version, td_str_from(rows[i].api_version)));
            assert_true(td_str_equal(envelope.kind, td_str_from(rows[i].kind)));
            assert_true(td_str_equal(envelope.message, td_str_from(rows[i].message)));
        }
    }
    td_str large = {.ptr = "k8s", .len = TD_PROTO_BYTES_MAX + 1};
    struct td_proto_envelope envelope;
    assert_int_equal(td_proto_open(large, &envelope, NULL), TD_LIMIT);
}

static void append_varint(struct td_buf *out, uint64_t value)
{
    for (; value >= 0x80; value >>= 7) {
        (void)td_buf_append_char(out, (char)(value | 0x80));
    }
    (void)td_buf_append_char(out, (char)value);
}

static void append_field(struct td_buf *out, uint32_t number, td_str bytes)
{
    append_varint(out, number << 3 | TD_WIRE_BYTES);
    append_varint(out, bytes.len);
    (void)td_buf_append(out, bytes);
}

/* A definition whose schema says "not" that often. */
static td_str nested(struct td_arena *arena, size_t levels)
{
    static const uint32_t around[] = {1, 4, 7, 2}; /* openAPIV3Schema, schema, versions, spec */
    td_str message = TD_STR_EMPTY;
    for (size_t i = 0; i < levels + sizeof(around) / sizeof(around[0]); i++) {
        td_auto_buf out;
        td_buf_init(&out, ARENA_BYTES);
        append_field(&out, i < levels ? 28 : around[i - levels], message);
        message = td_arena_copy_str(arena, td_buf_str(&out));
    }
    return message;
}

/* Nesting ends where JSON's does, and an arena's cap holds. */
static void test_proto_is_bounded(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    /* The definition, spec, versions, its item, schema and openAPIV3Schema are around them. */
    struct message_row row = {"apiextensions.k8s.io/v1", "CustomResourceDefinition",
                              nested(&arena, TD_JSON_DEPTH_MAX - 6), NULL};
    struct td_json *found = NULL;
    assert_int_equal(decode_row(&arena, &row, &found, NULL), TD_OK);
    assert_int_equal(td_json_depth(found), TD_JSON_DEPTH_MAX);
    row.message = nested(&arena, TD_JSON_DEPTH_MAX - 5);
    struct td_error err = TD_ERROR_INIT;
    assert_int_equal(decode_row(&arena, &row, &found, &err), TD_INVALID);
    assert_non_null(strstr(err.message, "nested too deeply"));

    td_auto_arena small;
    td_arena_init(&small, 1000);
    row =
        (struct message_row){"v1", "Pod", BYTES("\x12\x08\x12\x00\x12\x00\x12\x00\x12\x00"), NULL};
    assert_int_equal(decode_row(&small, &row, &found, NULL), TD_LIMIT);
}

/* A map of many keys is read in time proportional to it. */
static void test_proto_reads_long_maps(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    td_auto_buf message;
    td_buf_init(&message, ARENA_BYTES);
    for (size_t i = 0; i < MAP_ENTRIES; i++) {
        td_str key = td_arena_format(&arena, "\x0a\x06%06zu", i);
        append_field(&message, 2, key);
    }
    struct message_row row = {"v1", "ConfigMap", td_buf_str(&message), NULL};
    struct td_json *found = NULL;
    assert_int_equal(decode_row(&arena, &row, &found, NULL), TD_OK);
    assert_int_equal(td_json_get(found, TD_STR("data"))->count, MAP_ENTRIES);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_proto_reads_what_go_writes),
        cmocka_unit_test(test_proto_follows_the_rules_of_the_format),
        cmocka_unit_test(test_proto_refuses_what_is_no_message),
        cmocka_unit_test(test_proto_names_the_field_of_a_bad_value),
        cmocka_unit_test(test_proto_opens_envelopes),
        cmocka_unit_test(test_proto_is_bounded),
        cmocka_unit_test(test_proto_reads_long_maps),
    };
    folder = argc > 1 ? argv[1] : folder;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
