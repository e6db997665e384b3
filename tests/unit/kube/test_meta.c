/* Object metadata: every member, its absence, and the path of what has the wrong type. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "kube/meta.h"

#define ARENA_BYTES ((size_t)16 << 20)

static struct td_json *json(struct td_arena *arena, const char *text)
{
    struct td_json *tree = NULL;
    assert_int_equal(td_json_parse(arena, td_str_from(text), NULL, &tree, NULL), TD_OK);
    return tree;
}

static void assert_text(td_str got, const char *expected)
{
    assert_int_equal(got.len, strlen(expected));
    assert_memory_equal(got.ptr, expected, got.len);
}

/* All members at once. */
static void test_meta_decodes_every_member(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    struct td_json *object =
        json(&arena, "{\"metadata\":{\"name\":\"web-1\",\"generateName\":\"web-\","
                     "\"namespace\":\"shop\",\"uid\":\"u-1\",\"resourceVersion\":\"0042\","
                     "\"generation\":7,\"creationTimestamp\":\"2024-05-01T12:00:00Z\","
                     "\"deletionTimestamp\":\"2024-05-01T12:00:01Z\","
                     "\"labels\":{\"b\":\"2\",\"a\":\"1\",\"c\":null},"
                     "\"annotations\":{\"note\":\"any text\"},\"unknown\":[1,2],"
                     "\"ownerReferences\":["
                     "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"name\":\"n\",\"uid\":\"u-2\"},"
                     "{\"apiVersion\":\"apps/v1\",\"kind\":\"ReplicaSet\",\"name\":\"web\","
                     "\"uid\":\"u-3\",\"controller\":true,\"blockOwnerDeletion\":true},"
                     "null]}}");
    struct td_meta meta;
    assert_int_equal(td_meta_decode(&arena, object, &meta, NULL), TD_OK);
    assert_text(meta.name, "web-1");
    assert_text(meta.generate_name, "web-");
    assert_text(meta.namespace, "shop");
    assert_text(meta.uid, "u-1");
    assert_text(meta.resource_version, "0042");
    assert_int_equal(meta.generation, 7);
    assert_int_equal(meta.created.unix_seconds, 1714564800);
    assert_int_equal(meta.deleted.unix_seconds, 1714564801);
    assert_int_equal(meta.labels.count, 3);
    assert_text(meta.labels.items[0].key, "a");
    assert_text(*td_labels_get(&meta.labels, TD_STR("b")), "2");
    assert_text(*td_labels_get(&meta.labels, TD_STR("c")), "");
    assert_text(td_json_get_str(meta.annotations, TD_STR("note"), TD_STR("")), "any text");
    assert_int_equal(meta.owner_count, 3);
    assert_false(meta.owners[0].is_controller);
    assert_text(meta.owners[0].kind, "Node");
    assert_true(meta.owners[1].blocks_owner_deletion);
    assert_text(meta.owners[2].uid, "");
    const struct td_owner_reference *controller = td_meta_controller(&meta);
    assert_ptr_equal(controller, &meta.owners[1]);
    assert_text(controller->api_version, "apps/v1");
    assert_text(controller->name, "web");
    assert_text(controller->uid, "u-3");
}

/* Missing and null members are empty, the times are Go's zero time. */
static void test_meta_missing_members_are_empty(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "{}",
        "{\"metadata\":null}",
        "{\"metadata\":{}}",
        "{\"metadata\":{\"name\":null,\"generateName\":null,\"namespace\":null,\"uid\":null,"
        "\"resourceVersion\":null,\"generation\":null,\"creationTimestamp\":null,"
        "\"deletionTimestamp\":null,\"labels\":null,\"annotations\":null,"
        "\"ownerReferences\":null}}",
    };
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct td_meta meta;
        assert_int_equal(td_meta_decode(&arena, json(&arena, rows[i]), &meta, NULL), TD_OK);
        assert_text(meta.name, "");
        assert_text(meta.resource_version, "");
        assert_int_equal(meta.generation, 0);
        assert_int_equal(meta.created.unix_seconds, TD_INSTANT_ZERO.unix_seconds);
        assert_int_equal(meta.deleted.unix_seconds, TD_INSTANT_ZERO.unix_seconds);
        assert_int_equal(meta.labels.count, 0);
        assert_null(meta.annotations);
        assert_int_equal(meta.owner_count, 0);
        assert_null(td_meta_controller(&meta));
    }
}

/* A wrong type is refused with its path and leaves the output as it was. */
static void test_meta_wrong_types_have_their_path(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        const char *path;
    } rows[] = {
        {"[]", "object: "},
        {"null", "object: "},
        {"{\"metadata\":[]}", "metadata: "},
        {"{\"metadata\":{\"name\":1}}", "metadata.name: "},
        {"{\"metadata\":{\"generateName\":true}}", "metadata.generateName: "},
        {"{\"metadata\":{\"namespace\":{}}}", "metadata.namespace: "},
        {"{\"metadata\":{\"uid\":[]}}", "metadata.uid: "},
        {"{\"metadata\":{\"resourceVersion\":42}}",
         "metadata.resourceVersion: must be a string, not a number"},
        {"{\"metadata\":{\"generation\":\"1\"}}", "metadata.generation: "},
        {"{\"metadata\":{\"generation\":1.5}}", "metadata.generation: '1.5'"},
        {"{\"metadata\":{\"generation\":9223372036854775808}}", "metadata.generation: "},
        {"{\"metadata\":{\"creationTimestamp\":1}}", "metadata.creationTimestamp: "},
        {"{\"metadata\":{\"creationTimestamp\":\"\"}}", "metadata.creationTimestamp: "},
        {"{\"metadata\":{\"deletionTimestamp\":\"soon\"}}", "metadata.deletionTimestamp: "},
        {"{\"metadata\":{\"labels\":[]}}", "metadata.labels: "},
        {"{\"metadata\":{\"labels\":{\"app\":1}}}", "metadata.labels.app: "},
        {"{\"metadata\":{\"annotations\":\"\"}}", "metadata.annotations: "},
        {"{\"metadata\":{\"annotations\":{\"a/b\":{}}}}", "metadata.annotations.a/b: "},
        {"{\"metadata\":{\"ownerReferences\":{}}}", "metadata.ownerReferences: "},
        {"{\"metadata\":{\"ownerReferences\":[{},7]}}", "metadata.ownerReferences[1]: "},
        {"{\"metadata\":{\"ownerReferences\":[{\"kind\":1}]}}",
         "metadata.ownerReferences[0].kind: "},
        {"{\"metadata\":{\"ownerReferences\":[{\"controller\":\"true\"}]}}",
         "metadata.ownerReferences[0].controller: must be a boolean, not a string"},
        {"{\"metadata\":{\"ownerReferences\":[{\"blockOwnerDeletion\":0}]}}",
         "metadata.ownerReferences[0].blockOwnerDeletion: "},
    };
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct td_error err = TD_ERROR_INIT;
        struct td_meta meta = {.generation = 77};
        struct td_json *object = json(&arena, rows[i].json);
        assert_int_equal(td_meta_decode(&arena, object, &meta, &err), TD_INVALID);
        assert_int_equal(meta.generation, 77);
        if (strncmp(err.message, rows[i].path, strlen(rows[i].path)) != 0) {
            fail_msg("%s: '%s' does not begin with '%s'", rows[i].json, err.message, rows[i].path);
        }
        assert_int_equal(td_meta_decode(&arena, object, &meta, NULL), TD_INVALID);
    }
    struct td_meta meta;
    assert_int_equal(td_meta_decode(&arena, NULL, &meta, NULL), TD_INVALID);
}

/* An arena past its cap is an ordinary failure. */
static void test_meta_stops_at_the_arena_cap(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_auto_arena small;
    td_arena_init(&arena, ARENA_BYTES);
    td_arena_init(&small, 1);
    struct td_json *object = json(&arena, "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}");
    struct td_meta meta;
    assert_int_equal(td_meta_decode(&small, object, &meta, NULL), TD_LIMIT);
}

/* The core group has no name; what is no group and version is neither. */
static void test_meta_group_version_splits_at_its_slash(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *group;
        const char *version;
    } rows[] = {
        {"v1", "", "v1"},
        {"apps/v1", "apps", "v1"},
        {"autoscaling.k8s.io/v1", "autoscaling.k8s.io", "v1"},
        {"", "", ""},
        {"/", "", ""},
        {"apps/", "apps", ""},
        {"/v1", "", "v1"},
        {"a/b/c", "", ""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct td_group_version got = td_group_version_parse(td_str_from(rows[i].text));
        assert_text(got.group, rows[i].group);
        assert_text(got.version, rows[i].version);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_meta_decodes_every_member),
        cmocka_unit_test(test_meta_missing_members_are_empty),
        cmocka_unit_test(test_meta_wrong_types_have_their_path),
        cmocka_unit_test(test_meta_stops_at_the_arena_cap),
        cmocka_unit_test(test_meta_group_version_splits_at_its_slash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
