/* Metadata of new and of changed objects: each rule by one row. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "api/objectmeta.h"
#include "base/error.h"

struct meta_row {
    const char *metadata;
    const char *old;   /* NULL: a new object */
    const char *field; /* NULL: accepted */
    enum td_field_error_type type;
};

static const struct meta_row meta_rows[] = {
    {"{\"name\":\"a\",\"namespace\":\"b\"}", NULL, NULL, 0},
    {"{\"namespace\":\"b\"}", NULL, "metadata.name", TD_FIELD_REQUIRED},
    {"{\"name\":\"a\"}", NULL, "metadata.namespace", TD_FIELD_REQUIRED},
    {"{\"name\":\"A\",\"namespace\":\"b\"}", NULL, "metadata.name", TD_FIELD_INVALID},
    {"{\"name\":\"a\",\"namespace\":\"b.c\"}", NULL, "metadata.namespace", TD_FIELD_INVALID},
    {"{\"name\":\"a\",\"namespace\":\"b\",\"generateName\":\"_\"}", NULL, "metadata.generateName",
     TD_FIELD_INVALID},
    {"{\"name\":\"a\",\"namespace\":\"b\",\"generation\":-1}", NULL, "metadata.generation",
     TD_FIELD_INVALID},
    {"{\"name\":\"a\",\"namespace\":\"b\",\"labels\":{\"-\":\"x\"}}", NULL, "metadata.labels",
     TD_FIELD_INVALID},
    {"{\"name\":\"a\",\"namespace\":\"b\",\"annotations\":{\"a b\":\"x\"}}", NULL,
     "metadata.annotations", TD_FIELD_INVALID},
    {"{\"name\":\"a\",\"namespace\":\"b\",\"annotations\":{\"UP\":\"x\"}}", NULL, NULL, 0},
    {"{\"name\":\"a\",\"namespace\":\"b\",\"finalizers\":[\"a/b/c\"]}", NULL, "metadata.finalizers",
     TD_FIELD_INVALID},
    {"{\"name\":\"a\",\"namespace\":\"b\",\"finalizers\":[\"orphan\",\"foregroundDeletion\"]}",
     NULL, "metadata.finalizers", TD_FIELD_INVALID},
    {"{\"name\":\"a\",\"namespace\":\"b\",\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":"
     "\"K\",\"name\":\"n\"}]}",
     NULL, "metadata.ownerReferences.uid", TD_FIELD_INVALID},
    {"{\"name\":\"a\",\"namespace\":\"b\",\"ownerReferences\":[{\"kind\":\"K\",\"name\":\"n\","
     "\"uid\":\"u\"}]}",
     NULL, "metadata.ownerReferences.apiVersion", TD_FIELD_INVALID},
    {"{\"name\":\"a\",\"namespace\":\"b\",\"managedFields\":[{\"operation\":\"x\"}]}", NULL,
     "metadata.managedFields[0].operation", TD_FIELD_INVALID},
    {"{\"name\":\"a\",\"resourceVersion\":\"1\"}", "{\"name\":\"a\"}", NULL, 0},
    {"{\"name\":\"a\"}", "{\"name\":\"a\"}", "metadata.resourceVersion", TD_FIELD_INVALID},
    {"{\"name\":\"c\",\"resourceVersion\":\"1\"}", "{\"name\":\"a\"}", "metadata.name",
     TD_FIELD_INVALID},
    {"{\"name\":\"a\",\"uid\":\"2\",\"resourceVersion\":\"1\"}", "{\"name\":\"a\"}", "metadata.uid",
     TD_FIELD_INVALID},
    {"{\"name\":\"a\",\"generation\":1,\"resourceVersion\":\"1\"}",
     "{\"name\":\"a\",\"generation\":2}", "metadata.generation", TD_FIELD_INVALID},
    {"{\"name\":\"a\",\"resourceVersion\":\"1\",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\","
     "\"finalizers\":[\"x\",\"y\"]}",
     "{\"name\":\"a\",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\",\"finalizers\":[\"x\",\"z\"]}",
     "metadata.finalizers", TD_FIELD_FORBIDDEN},
    {"{\"name\":\"a\",\"resourceVersion\":\"1\",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\","
     "\"finalizers\":[\"x\"]}",
     "{\"name\":\"a\",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\",\"finalizers\":[\"z\",\"x\"]}",
     NULL, 0},
};

static struct td_json *parse(struct td_arena *arena, const char *text)
{
    struct td_json *tree = NULL;
    assert_int_equal(td_json_parse(arena, td_str_from(text), NULL, &tree, NULL), TD_OK);
    return tree;
}

/* Exactly the one error that the row is about. */
static void test_each_rule_names_its_field(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(meta_rows) / sizeof(meta_rows[0]); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, 1 << 20);
        const struct meta_row *row = &meta_rows[i];
        struct td_field_errors errors = {.arena = &arena};
        if (row->old) {
            td_objectmeta_validate_update(&errors, parse(&arena, row->metadata),
                                          parse(&arena, row->old));
        } else {
            td_objectmeta_validate(&errors, parse(&arena, row->metadata));
        }
        if (errors.count != (row->field ? 1U : 0U)) {
            fail_msg("%s: %zu errors", row->metadata, errors.count);
        }
        if (row->field) {
            assert_true(td_str_equal(errors.items[0].field, td_str_from(row->field)));
            assert_int_equal(errors.items[0].type, row->type);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_rule_names_its_field)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
