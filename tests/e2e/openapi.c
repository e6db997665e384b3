/* Compares our schema table with what a real API server says of itself.
 *
 *     openapi FILE...      each the answer to GET /openapi/v3/... as JSON
 *
 * For every kind that both know: the same fields, the same shape (object, map, list, scalar), the
 * same list type and keys (server-side apply) and the same merge key and strategy (strategic merge
 * patch). Prints each difference with its path, then "N passed, N failed", a kind counting as one.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/json/json.h"
#include "base/limits.h"
#include "base/os/file.h"
#include "kube/objectpath.h"
#include "kube/schema/schema.h"

#define TYPE_DEPTH_MAX 24 /* deeper only through recursion, which is cut where a type repeats */

struct compare {
    struct td_arena *arena;
    const struct td_json *schemas; /* components.schemas */
    const struct td_schema_type *open[TYPE_DEPTH_MAX];
    size_t differences;
};

static void differ(struct compare *compare, const struct td_field_path *path, const char *ours,
                   const char *theirs)
{
    td_str where = td_field_path_text(compare->arena, path);
    (void)printf("  %.*s: ours %s, the server's %s\n", TD_STR_ARG(where), ours, theirs);
    compare->differences++;
}

/* A reference is followed; a field may wrap it in allOf beside its default. */
static const struct td_json *resolve(const struct compare *compare, const struct td_json *schema)
{
    const struct td_json *all = td_json_get(schema, TD_STR("allOf"));
    if (td_json_is(all, TD_JSON_TYPE_ARRAY) && all->count == 1) {
        schema = td_json_first_child(all);
    }
    td_str reference = td_json_get_str(schema, TD_STR("$ref"), TD_STR_EMPTY);
    td_str prefix = TD_STR("#/components/schemas/");
    if (td_str_starts_with(reference, prefix)) {
        schema = td_json_get(compare->schemas, td_str_slice(reference, prefix.len, reference.len));
    }
    return schema;
}

static const char *topology_name(const struct td_schema_type *type)
{
    switch (type->topology) {
    case TD_SCHEMA_SET:
        return "set";
    case TD_SCHEMA_KEYED:
        return "map";
    case TD_SCHEMA_ATOMIC:
        return "atomic";
    case TD_SCHEMA_GRANULAR:
        break;
    }
    return "granular";
}

static void compare_list(struct compare *compare, const struct td_schema_type *type,
                         const struct td_json *field, const struct td_field_path *path)
{
    td_str theirs = td_json_get_str(field, TD_STR("x-kubernetes-list-type"), TD_STR("atomic"));
    if (!td_str_equal(td_str_from(topology_name(type)), theirs)) {
        differ(compare, path, topology_name(type), td_arena_copy_str(compare->arena, theirs).ptr);
    }
    const struct td_json *keys = td_json_get(field, TD_STR("x-kubernetes-list-map-keys"));
    size_t count = keys ? keys->count : 0;
    if (count != type->list_key_count) {
        differ(compare, path, "other list keys", "not these");
        return;
    }
    for (size_t i = 0; i < count; i++) {
        if (!td_str_equal(td_json_at(keys, i)->text, type->list_keys[i].name)) {
            differ(compare, path, "another list key", td_json_at(keys, i)->text.ptr);
        }
    }
}

static void compare_patch(struct compare *compare, const struct td_schema_field *ours,
                          const struct td_json *field, const struct td_field_path *path)
{
    static const char *const names[] = {"", "merge", "replace", "retainKeys", "merge,retainKeys"};
    td_str strategy = td_json_get_str(field, TD_STR("x-kubernetes-patch-strategy"), TD_STR_EMPTY);
    td_str key = td_json_get_str(field, TD_STR("x-kubernetes-patch-merge-key"), TD_STR_EMPTY);
    if (!td_str_equal(td_str_from(names[ours->patch]), strategy)) {
        differ(compare, path, names[ours->patch], td_arena_copy_str(compare->arena, strategy).ptr);
    }
    if (!td_str_equal(ours->patch_key, key)) {
        differ(compare, path, "another merge key", td_arena_copy_str(compare->arena, key).ptr);
    }
}

static void compare_type(struct compare *compare, const struct td_schema_type *type,
                         const struct td_json *field, const struct td_field_path *path);

static void compare_object(struct compare *compare, const struct td_schema_type *type,
                           const struct td_json *schema, const struct td_field_path *path)
{
    const struct td_json *properties = td_json_get(schema, TD_STR("properties"));
    for (size_t i = 0; i < type->field_count; i++) {
        const struct td_schema_field *ours = &type->fields[i];
        struct td_field_path place = td_field_child(path, ours->name);
        const struct td_json *theirs = td_json_get(properties, ours->name);
        if (theirs) {
            compare_patch(compare, ours, theirs, &place);
            compare_type(compare, ours->type, theirs, &place);
        } else {
            differ(compare, &place, "a field", "no such field");
        }
    }
    for (const struct td_json *theirs = td_json_first_child(properties); theirs;
         theirs = theirs->next) {
        if (!td_schema_field(type, theirs->key)) {
            struct td_field_path place = td_field_child(path, theirs->key);
            differ(compare, &place, "no such field", "a field");
        }
    }
}

/* Depth is bounded by TYPE_DEPTH_MAX; a type inside itself is not entered again. */
static void compare_type(struct compare *compare, const struct td_schema_type *type,
                         const struct td_json *field, const struct td_field_path *path)
{
    uint32_t depth = path ? path->depth + 1 : 0;
    const struct td_json *schema = resolve(compare, field);
    for (uint32_t i = 0; i < depth && i < TYPE_DEPTH_MAX; i++) {
        if (compare->open[i] == type) {
            return;
        }
    }
    if (depth >= TYPE_DEPTH_MAX) {
        return;
    }
    compare->open[depth] = type;
    td_str kind = td_json_get_str(schema, TD_STR("type"), TD_STR_EMPTY);
    const struct td_json *items = td_json_get(schema, TD_STR("items"));
    const struct td_json *values = td_json_get(schema, TD_STR("additionalProperties"));
    if (type->kind == TD_SCHEMA_OBJECT && td_json_get(schema, TD_STR("properties"))) {
        compare_object(compare, type, schema, path);
    } else if (type->kind == TD_SCHEMA_LIST && items) {
        struct td_field_path place = td_field_item(path, 0);
        compare_list(compare, type, field, path);
        compare_type(compare, type->element, items, &place);
    } else if (type->kind == TD_SCHEMA_MAP && td_json_is(values, TD_JSON_TYPE_OBJECT)) {
        struct td_field_path place = td_field_child(path, TD_STR("*"));
        compare_type(compare, type->element, values, &place);
    } else if (type->kind == TD_SCHEMA_LIST || type->kind == TD_SCHEMA_MAP || items) {
        differ(compare, path, "another shape", td_arena_copy_str(compare->arena, kind).ptr);
    }
    compare->open[depth] = NULL;
}

struct totals {
    size_t passed;
    size_t failed;
};

static void compare_kind(struct td_arena *arena, const struct td_json *schemas,
                         const struct td_json *schema, struct totals *totals)
{
    const struct td_json *names = td_json_get(schema, TD_STR("x-kubernetes-group-version-kind"));
    if (!td_json_is(names, TD_JSON_TYPE_ARRAY) || names->count != 1) {
        return; /* Status, DeleteOptions and the like belong to every group */
    }
    td_str group = td_json_get_str(td_json_first_child(names), TD_STR("group"), TD_STR_EMPTY);
    td_str version = td_json_get_str(td_json_first_child(names), TD_STR("version"), TD_STR_EMPTY);
    td_str kind = td_json_get_str(td_json_first_child(names), TD_STR("kind"), TD_STR_EMPTY);
    td_str api_version = td_arena_format(arena, "%.*s%s%.*s", TD_STR_ARG(group),
                                         group.len > 0 ? "/" : "", TD_STR_ARG(version));
    const struct td_schema_type *type = td_schema_find(api_version, kind);
    if (!type) {
        return;
    }
    struct compare compare = {.arena = arena, .schemas = schemas};
    compare_type(&compare, type, schema, NULL);
    (void)printf("%s %.*s %.*s\n", compare.differences == 0 ? "ok  " : "FAIL",
                 TD_STR_ARG(api_version), TD_STR_ARG(kind));
    totals->passed += compare.differences == 0;
    totals->failed += compare.differences > 0;
}

int main(int argc, char **argv)
{
    struct totals totals = {0};
    for (int i = 1; i < argc; i++) {
        td_auto_arena arena;
        td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
        td_str text;
        struct td_json *document = NULL;
        struct td_error err = TD_ERROR_INIT;
        if (td_file_read(argv[i], &arena, TD_JSON_BYTES_MAX, &text, &err) < 0 ||
            td_json_parse(&arena, text, NULL, &document, &err) < 0) {
            (void)fprintf(stderr, "openapi: %s: %s\n", argv[i], err.message);
            return 2;
        }
        const struct td_json *schemas = td_json_get_path(document, "components.schemas");
        for (const struct td_json *each = td_json_first_child(schemas); each; each = each->next) {
            compare_kind(&arena, schemas, each, &totals);
        }
    }
    (void)printf("%zu passed, %zu failed\n", totals.passed, totals.failed);
    return totals.failed == 0 && totals.passed > 0 ? 0 : 1;
}
