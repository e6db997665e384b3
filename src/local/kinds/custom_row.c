/*
 * From a CustomResourceDefinition to a row of the served resources. A row owns everything it points
 * to in one arena: a copy of the definition, its versions, and the schema types by which
 * server-side apply merges, made from each version's OpenAPI schema.
 */
#include "local/kinds/custom_row.h"

#include <stdlib.h>

#include "api/hpa/hpa.h"
#include "api/vpa/vpa.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "local/kinds/custom.h"
#include "local/resources/version_rank.h"

struct custom_row {
    struct td_resource row; /* first: the registry knows this one */
    struct td_custom custom;
    struct td_arena arena;
};

/* ---- Types ---- */

static const struct td_schema_type custom_string = {.kind = TD_SCHEMA_STRING};
static const struct td_schema_type custom_bool = {.kind = TD_SCHEMA_BOOL};
static const struct td_schema_type custom_int64 = {.kind = TD_SCHEMA_INT64};
static const struct td_schema_type custom_number = {.kind = TD_SCHEMA_NUMBER};
static const struct td_schema_type custom_int_or_string = {.kind = TD_SCHEMA_INT_OR_STRING};
static const struct td_schema_type custom_any = {.kind = TD_SCHEMA_ANY};

static const struct td_schema_type *custom_type(struct td_arena *arena,
                                                const struct td_json *schema, unsigned depth);

static const struct td_schema_type *custom_object(struct td_arena *arena,
                                                  const struct td_json *schema, unsigned depth)
{
    const struct td_json *properties = td_json_get(schema, TD_STR("properties"));
    const struct td_json *values = td_json_get(schema, TD_STR("additionalProperties"));
    /* An embedded resource has apiVersion, kind and metadata whatever its schema says. */
    bool is_open =
        td_json_get_bool(schema, TD_STR("x-kubernetes-preserve-unknown-fields"), false) ||
        td_json_get_bool(schema, TD_STR("x-kubernetes-embedded-resource"), false);
    struct td_schema_type *type = td_arena_new(arena, struct td_schema_type);
    bool is_atomic = td_str_equal(td_json_text(schema, "x-kubernetes-map-type"), TD_STR("atomic"));
    type->topology = is_atomic ? TD_SCHEMA_ATOMIC : TD_SCHEMA_GRANULAR;
    if (!td_json_is(properties, TD_JSON_TYPE_OBJECT) || properties->count == 0) {
        if (is_open && !values) {
            return &custom_any;
        }
        type->kind = TD_SCHEMA_MAP;
        type->element = td_json_is(values, TD_JSON_TYPE_OBJECT)
                            ? custom_type(arena, values, depth + 1)
                            : &custom_any;
        return type;
    }
    struct td_schema_field *fields =
        td_arena_array(arena, struct td_schema_field, properties->count);
    type->kind = TD_SCHEMA_OBJECT;
    type->fields = fields;
    type->element = is_open ? &custom_any : NULL;
    for (const struct td_json *member = td_json_first_member(properties); member;
         member = member->next) {
        fields[type->field_count++] = (struct td_schema_field){
            .name = member->key,
            .type = custom_type(arena, member, depth + 1),
            .is_pointer = true,
        };
    }
    qsort(fields, type->field_count, sizeof(fields[0]), td_str_compare_items);
    return type;
}

static void custom_list_keys(struct td_arena *arena, const struct td_json *schema,
                             struct td_schema_type *type)
{
    const struct td_json *names = td_json_get(schema, TD_STR("x-kubernetes-list-map-keys"));
    const struct td_json *items = td_json_get(schema, TD_STR("items"));
    const struct td_json *properties = td_json_get(items, TD_STR("properties"));
    struct td_schema_key *keys =
        td_arena_array(arena, struct td_schema_key, td_json_item_count(names));
    for (const struct td_json *name = td_json_first_item(names); name; name = name->next) {
        if (name->type != TD_JSON_TYPE_STRING) {
            continue;
        }
        const struct td_json *fallback =
            td_json_get(td_json_get(properties, name->text), TD_STR("default"));
        td_auto_buf text = td_buf_capped(TD_JSON_BYTES_MAX);
        if (fallback) {
            td_json_write(fallback, &(struct td_json_format){0}, &text);
        }
        keys[type->list_key_count++] = (struct td_schema_key){
            .name = name->text, .fallback = td_arena_copy_str(arena, td_buf_str(&text))};
    }
    type->list_keys = keys;
}

static const struct td_schema_type *custom_list(struct td_arena *arena,
                                                const struct td_json *schema, unsigned depth)
{
    const struct td_json *items = td_json_get(schema, TD_STR("items"));
    td_str how = td_json_text(schema, "x-kubernetes-list-type");
    struct td_schema_type *type = td_arena_new(arena, struct td_schema_type);
    type->kind = TD_SCHEMA_LIST;
    type->topology = TD_SCHEMA_ATOMIC;
    type->element =
        td_json_is(items, TD_JSON_TYPE_OBJECT) ? custom_type(arena, items, depth + 1) : &custom_any;
    if (td_str_equal(how, TD_STR("set"))) {
        type->topology = TD_SCHEMA_SET;
    } else if (td_str_equal(how, TD_STR("map"))) {
        custom_list_keys(arena, schema, type);
        type->topology = type->list_key_count > 0 ? TD_SCHEMA_KEYED : TD_SCHEMA_ATOMIC;
    }
    return type;
}

/* Below the deepest level that a document can have, anything goes: nothing gets there. */
static const struct td_schema_type *custom_type(struct td_arena *arena,
                                                const struct td_json *schema, unsigned depth)
{
    td_str type = td_json_text(schema, "type");
    if (depth > TD_JSON_DEPTH_MAX || !td_json_is(schema, TD_JSON_TYPE_OBJECT)) {
        return &custom_any;
    }
    if (td_json_get_bool(schema, TD_STR("x-kubernetes-int-or-string"), false)) {
        return &custom_int_or_string;
    }
    if (td_str_equal(type, TD_STR("object"))) {
        return custom_object(arena, schema, depth);
    }
    if (td_str_equal(type, TD_STR("array"))) {
        return custom_list(arena, schema, depth);
    }
    if (td_str_equal(type, TD_STR("string"))) {
        return &custom_string;
    }
    if (td_str_equal(type, TD_STR("integer"))) {
        return &custom_int64;
    }
    if (td_str_equal(type, TD_STR("number"))) {
        return &custom_number;
    }
    return td_str_equal(type, TD_STR("boolean")) ? &custom_bool : &custom_any;
}

/* The kind's type: what the schema says, and what every object has. */
static const struct td_schema_type *custom_root(struct td_arena *arena,
                                                const struct td_json *schema, td_str kind)
{
    static const char *const common[] = {"apiVersion", "kind", "metadata"};
    const struct td_schema_type *open = td_schema_any_object();
    const struct td_schema_type *inside =
        schema ? custom_type(arena, schema, 0) : td_schema_any_object();
    if (inside->kind != TD_SCHEMA_OBJECT) {
        return open;
    }
    struct td_schema_type *root = td_arena_new(arena, struct td_schema_type);
    struct td_schema_field *fields =
        td_arena_array(arena, struct td_schema_field, inside->field_count + 3);
    *root = *inside;
    root->name = kind;
    root->fields = fields;
    root->field_count = 0;
    for (size_t i = 0; i < TD_COUNT(common); i++) {
        fields[root->field_count++] = *td_schema_field(open, td_str_from(common[i]));
    }
    for (size_t i = 0; i < inside->field_count; i++) {
        if (!td_schema_field(open, inside->fields[i].name)) {
            fields[root->field_count++] = inside->fields[i];
        }
    }
    qsort(fields, root->field_count, sizeof(fields[0]), td_str_compare_items);
    return root;
}

/* ---- Rows ---- */

static void custom_free(struct td_resource *row)
{
    struct custom_row *custom = (struct custom_row *)row;
    td_arena_done(&custom->arena);
    td_free(custom);
}

static td_str *custom_texts(struct td_arena *arena, const struct td_json *list, size_t *ret_count)
{
    td_str *texts = td_arena_array(arena, td_str, td_json_item_count(list));
    *ret_count = 0;
    for (const struct td_json *item = td_json_first_item(list); item; item = item->next) {
        if (item->type == TD_JSON_TYPE_STRING) {
            texts[(*ret_count)++] = item->text;
        }
    }
    return texts;
}

static void custom_fields(struct td_arena *arena, const struct td_json *list,
                          struct td_custom_version *version)
{
    td_str *fields = td_arena_array(arena, td_str, td_json_item_count(list));
    for (const struct td_json *item = td_json_first_item(list); item; item = item->next) {
        td_str path = td_json_text(item, "jsonPath");
        fields[version->field_count++] =
            td_str_starts_with(path, TD_STR(".")) ? td_str_slice(path, 1, path.len) : path;
    }
    version->fields = fields;
}

static void custom_add_version(struct custom_row *custom, const struct td_json *version,
                               struct td_resource_version *served, struct td_custom_version *own)
{
    struct td_arena *arena = &custom->arena;
    const struct td_json *schema =
        td_json_get(td_json_get(version, TD_STR("schema")), TD_STR("openAPIV3Schema"));
    const struct td_json *subresources = td_json_get(version, TD_STR("subresources"));
    const struct td_json *scale = td_json_get(subresources, TD_STR("scale"));
    const struct td_json *status = td_json_get(subresources, TD_STR("status"));
    td_str name = td_json_text(version, "name");
    *served = (struct td_resource_version){
        .name = name,
        .api_version =
            td_arena_format(arena, "%.*s/%.*s", TD_STR_ARG(custom->row.group), TD_STR_ARG(name)),
        .type = custom_root(arena, schema, custom->row.kind),
    };
    *own = (struct td_custom_version){
        .schema = schema,
        .has_status = td_json_is(status, TD_JSON_TYPE_OBJECT),
        .columns = td_json_get(version, TD_STR("additionalPrinterColumns")),
        .scale_spec = td_json_text(scale, "specReplicasPath"),
        .scale_status = td_json_text(scale, "statusReplicasPath"),
        .scale_selector = td_json_text(scale, "labelSelectorPath"),
    };
    custom_fields(arena, td_json_get(version, TD_STR("selectableFields")), own);
    custom->row.subresources |= own->has_status ? TD_SUB_STATUS : 0;
    custom->row.subresources |= own->scale_spec.len > 0 ? TD_SUB_SCALE : 0;
}

struct custom_choice {
    td_str name;
    const struct td_json *version;
    bool is_served;
};

/* Served ones first, by rank; what is not served comes behind them. */
static int custom_compare_choices(const void *a, const void *b)
{
    const struct custom_choice *left = a;
    const struct custom_choice *right = b;
    if (left->is_served != right->is_served) {
        return left->is_served ? -1 : 1;
    }
    return td_version_compare(left->name, right->name);
}

/* A storage version that is not served lies one behind the served ones. */
static void custom_add_versions(struct custom_row *custom, const struct td_json *versions)
{
    size_t count = td_json_item_count(versions);
    struct td_resource_version *served =
        td_arena_array(&custom->arena, struct td_resource_version, count);
    struct td_custom_version *own = td_arena_array(&custom->arena, struct td_custom_version, count);
    struct custom_choice *choices = td_arena_array(&custom->arena, struct custom_choice, count);
    size_t found = 0;
    for (const struct td_json *v = td_json_first_item(versions); v; v = v->next) {
        const struct custom_choice choice = {
            .name = td_json_text(v, "name"),
            .version = v,
            .is_served = td_json_get_bool(v, TD_STR("served"), false),
        };
        if (choice.is_served || td_json_get_bool(v, TD_STR("storage"), false)) {
            choices[found++] = choice;
        }
    }
    qsort(choices, found, sizeof(choices[0]), custom_compare_choices);
    for (size_t i = 0; i < found; i++) {
        custom_add_version(custom, choices[i].version, &served[i], &own[i]);
        custom->row.version_count += choices[i].is_served;
        if (td_json_get_bool(choices[i].version, TD_STR("storage"), false)) {
            custom->row.storage = i;
        }
    }
    custom->row.versions = served;
    custom->custom.versions = own;
    custom->custom.version_count = found;
}

static td_custom_check_fn custom_own_rules(td_str group, td_str kind)
{
    if (td_str_equal(group, TD_STR("autoscaling.tandem.dev")) &&
        td_str_equal(kind, TD_STR("HorizontalPodAutoscaler"))) {
        return td_hpa_check_rules;
    }
    bool is_vpa = td_str_equal(group, TD_STR("autoscaling.k8s.io")) &&
                  td_str_equal(kind, TD_STR("VerticalPodAutoscaler"));
    return is_vpa ? td_vpa_check_rules : NULL;
}

int td_custom_row_new(td_str definition_json, struct td_resource **ret,
                      void (**ret_release)(struct td_resource *row), struct td_error *err)
{
    struct custom_row *custom = td_alloc_zero(1, sizeof(*custom));
    td_arena_init(&custom->arena, TD_TREE_ARENA_BYTES_MAX);
    struct td_json *tree;
    const struct td_json_options options = {.copy_strings = true};
    int code = td_json_parse(&custom->arena, definition_json, &options, &tree, err);
    if (code != TD_OK) {
        custom_free(&custom->row);
        return code;
    }
    const struct td_json *spec = td_json_get(tree, TD_STR("spec"));
    const struct td_json *names = td_json_get(spec, TD_STR("names"));
    struct td_resource *row = &custom->row;
    row->group = td_json_text(spec, "group");
    row->plural = td_json_text(names, "plural");
    row->singular = td_json_text(names, "singular");
    row->kind = td_json_text(names, "kind");
    row->list_kind = td_json_text(names, "listKind");
    row->collection = td_arena_format(&custom->arena, "%.*s.%.*s", TD_STR_ARG(row->plural),
                                      TD_STR_ARG(row->group));
    row->is_namespaced = td_str_equal(td_json_text(spec, "scope"), TD_STR("Namespaced"));
    row->has_generation = true;
    row->verbs = TD_VERBS_ALL;
    row->short_names = custom_texts(&custom->arena, td_json_get(names, TD_STR("shortNames")),
                                    &row->short_name_count);
    row->categories = custom_texts(&custom->arena, td_json_get(names, TD_STR("categories")),
                                   &row->category_count);
    row->custom = &custom->custom;
    custom_add_versions(custom, td_json_get(spec, TD_STR("versions")));
    custom->custom.check_rules = custom_own_rules(row->group, row->kind);
    *ret = row;
    *ret_release = custom_free;
    return TD_OK;
}
