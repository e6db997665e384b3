/*
 * The order of every write and what all kinds share: decoding, form, who owns status, generation,
 * metadata. What is particular comes from the rows of the kinds_*.c files, from the HPA's own room
 * and, for custom resources, from their definition.
 */
#include "local/kinds/kinds.h"

#include "api/hpa/hpa.h"
#include "api/objectmeta.h"
#include "base/error.h"
#include "kube/names.h"
#include "kube/schema/check.h"
#include "local/kinds/custom.h"
#include "local/kinds/kinds_private.h"

/* Of a built-in kind; one without rules of its own gets those that all share. */
static const struct td_kind_rules *kind_rules(const struct td_resource *resource)
{
    static const struct td_kind_rules plain = {.check_name = NULL};
    const struct td_kind_rules *tables[] = {
        td_kind_pod_rules,    td_kind_workload_rules, td_kind_core_rules, td_kind_batch_rules,
        td_kind_policy_rules, td_kind_webhook_rules,  td_kind_rbac_rules, td_kind_definition_rules,
    };
    for (size_t i = 0; i < TD_COUNT(tables) && !resource->custom; i++) {
        for (const struct td_kind_rules *rules = tables[i]; rules->kind.len > 0; rules++) {
            if (td_str_equal(rules->kind, resource->kind) &&
                td_str_equal(rules->group, resource->group)) {
                return rules;
            }
        }
    }
    return &plain;
}

static bool kind_is_hpa(const struct td_resource *resource)
{
    return !resource->custom && td_str_equal(resource->group, TD_STR("autoscaling")) &&
           td_str_equal(resource->kind, TD_STR("HorizontalPodAutoscaler"));
}

/* An HPA's scaling rules with an empty list of policies, which validation refuses: the written form
 * has no place for it, and none given has a default. */
#define KIND_HPA_SIDES 2
static const char *const kind_hpa_sides[KIND_HPA_SIDES] = {"spec.behavior.scaleUp",
                                                           "spec.behavior.scaleDown"};

static bool kind_hpa_has_no_policies(const struct td_json *object, size_t side)
{
    static const char *const paths[KIND_HPA_SIDES] = {"spec.behavior.scaleUp.policies",
                                                      "spec.behavior.scaleDown.policies"};
    const struct td_json *policies = td_json_get_path(object, paths[side]);
    return td_json_is(policies, TD_JSON_TYPE_ARRAY) && policies->count == 0;
}

static int kind_default_hpa(struct td_arena *arena, const struct td_schema_type *type,
                            struct td_json *object, struct td_error *err)
{
    bool has_none[KIND_HPA_SIDES];
    for (size_t i = 0; i < KIND_HPA_SIDES; i++) {
        has_none[i] = kind_hpa_has_no_policies(object, i);
    }
    int code = td_hpa_default(arena, object, err);
    if (code < 0) {
        return code;
    }
    td_kind_to_wire(arena, type, object);
    td_kind_set_defaults(arena, type, object);
    for (size_t i = 0; i < KIND_HPA_SIDES; i++) {
        struct td_json *rules = td_json_get_path(object, kind_hpa_sides[i]);
        if (rules && has_none[i]) {
            td_json_set(arena, rules, TD_STR("policies"), td_json_new_array(arena));
        }
    }
    return TD_OK;
}

void td_kind_rename(const struct td_resource *resource, struct td_arena *arena,
                    struct td_json *object)
{
    if (kind_is_hpa(resource)) {
        td_hpa_rename_strategy(arena, object);
    }
}

int td_kind_default(struct td_arena *arena, const struct td_resource *resource, size_t version,
                    struct td_json *object, struct td_error *err)
{
    const struct td_resource_version *at = &resource->versions[version];
    /* Of a custom resource only metadata is decoded: the rest is its schema's to judge, which names
     * every field that is wrong. */
    const struct td_schema_type *type = resource->custom ? td_schema_any_object() : at->type;
    int code = type ? td_check_types(type, object, NULL, err) : TD_OK;
    if (code < 0) {
        return code;
    }
    if (kind_is_hpa(resource)) {
        return kind_default_hpa(arena, type, object, err);
    }
    if (resource->custom) {
        return td_custom_default(arena, resource->custom, version, object, err);
    }
    td_kind_to_wire(arena, at->type, object);
    td_kind_set_defaults(arena, at->type, object);
    return TD_OK;
}

/* Everything but metadata and status counts as the object's own will. */
static bool kind_is_changed(const struct td_json *object, const struct td_json *old)
{
    static const td_str passed[] = {TD_STR_INIT("apiVersion"), TD_STR_INIT("kind"),
                                    TD_STR_INIT("metadata"), TD_STR_INIT("status")};
    const struct td_json *sides[2][2] = {{object, old}, {old, object}};
    for (size_t side = 0; side < 2; side++) {
        const struct td_json *member = td_json_first_member(sides[side][0]);
        for (; member; member = member->next) {
            bool is_passed = false;
            for (size_t i = 0; i < TD_COUNT(passed); i++) {
                is_passed = is_passed || td_str_equal(member->key, passed[i]);
            }
            if (!is_passed && !td_kind_same(member, td_json_get(sides[side][1], member->key))) {
                return true;
            }
        }
    }
    return false;
}

static void kind_set_generation(struct td_kind_write *write)
{
    struct td_json *metadata =
        td_json_ensure_object(write->arena, write->object, TD_STR("metadata"));
    const struct td_json *before = td_kind_metadata(write->old);
    int64_t generation = 1;
    if (write->old) {
        generation = td_json_get_int64(before, TD_STR("generation"), 0);
        bool counts_annotations = td_str_equal(write->resource->group, TD_STR("apps")) &&
                                  td_str_equal(write->resource->kind, TD_STR("Deployment")) &&
                                  write->operation == TD_WRITE_UPDATE;
        bool is_changed =
            kind_is_changed(write->object, write->old) ||
            (counts_annotations && !td_kind_same_member(metadata, before, TD_STR("annotations")));
        generation += is_changed && generation < INT64_MAX ? 1 : 0;
    }
    if (write->resource->has_generation && generation > 0) {
        td_json_set_int64(write->arena, metadata, TD_STR("generation"), generation);
    } else {
        (void)td_json_remove(metadata, TD_STR("generation")); /* may be absent */
    }
}

/* Of built-in kinds: status is the business of its own subresource. */
static void kind_prepare_status(struct td_kind_write *write)
{
    const struct td_resource *resource = write->resource;
    const struct td_schema_type *type = resource->versions[resource->storage].type;
    const struct td_schema_field *field = td_schema_field(type, TD_STR("status"));
    bool is_kept = (resource->subresources & TD_SUB_STATUS) == 0 ||
                   td_str_equal(resource->collection, TD_STR("nodes"));
    if (!field) {
        return;
    }
    if (write->operation == TD_WRITE_CREATE) {
        if (!is_kept) {
            td_json_set(write->arena, write->object, TD_STR("status"),
                        td_json_new_object(write->arena));
        }
    } else if (write->operation != TD_WRITE_STATUS && (resource->subresources & TD_SUB_STATUS)) {
        td_kind_take(write->arena, write->object, write->old, TD_STR("status"));
    }
    struct td_json *status = td_kind_member(write->object, TD_STR("status"));
    if (status) {
        td_kind_to_wire(write->arena, field->type, status);
        td_kind_set_defaults(write->arena, field->type, status);
    }
}

/* A status write keeps what is stored of everything else; workloads also keep their labels. */
static void kind_restore_all_but_status(struct td_kind_write *write)
{
    const struct td_resource *resource = write->resource;
    const struct td_schema_type *type = resource->versions[resource->storage].type;
    for (size_t i = 0; i < type->field_count; i++) {
        td_str name = type->fields[i].name;
        if (!td_str_equal(name, TD_STR("status")) && !td_str_equal(name, TD_STR("metadata"))) {
            td_kind_take(write->arena, write->object, write->old, name);
        }
    }
    struct td_json *metadata =
        td_json_ensure_object(write->arena, write->object, TD_STR("metadata"));
    const struct td_json *before = td_kind_metadata(write->old);
    td_kind_take(write->arena, metadata, before, TD_STR("ownerReferences"));
    td_kind_take(write->arena, metadata, before, TD_STR("finalizers"));
    if (td_str_equal(resource->group, TD_STR("apps"))) {
        td_kind_take(write->arena, metadata, before, TD_STR("labels"));
    }
}

/* With the gate off the field is dropped, unless the stored object has it already. */
static void kind_prepare_hpa(struct td_kind_write *write)
{
    static const td_str field = TD_STR_INIT("selectionStrategy");
    struct td_json *spec = td_kind_member(write->object, TD_STR("spec"));
    bool is_stored = td_json_get(td_kind_member(write->old, TD_STR("spec")), field) != NULL;
    if (write->has_no_strategy && !is_stored && td_json_remove(spec, field)) {
        write->warnings = write->warnings ? write->warnings : td_json_new_array(write->arena);
        td_json_append(
            write->warnings,
            td_json_new_string(write->arena, TD_STR("spec.selectionStrategy: dropped, since the "
                                                    "feature gate HPASelectionStrategy is off")));
    }
}

void td_kind_prepare(struct td_kind_write *write)
{
    struct td_json *metadata =
        td_json_ensure_object(write->arena, write->object, TD_STR("metadata"));
    if (write->old && td_json_text(metadata, "resourceVersion").len == 0) {
        td_kind_take(write->arena, metadata, td_kind_metadata(write->old),
                     TD_STR("resourceVersion"));
    }
    if (write->resource->custom) {
        td_custom_prepare(write);
    } else {
        if (write->operation == TD_WRITE_STATUS) {
            kind_restore_all_but_status(write);
        }
        kind_prepare_status(write);
        if (kind_is_hpa(write->resource)) {
            kind_prepare_hpa(write);
        }
        const struct td_kind_rules *rules = kind_rules(write->resource);
        if (rules->prepare) {
            rules->prepare(write);
        }
    }
    kind_set_generation(write);
}

static void kind_validate_hpa(const struct td_kind_write *write, struct td_field_errors *errors)
{
    struct td_hpa_admission admission = {
        .operation = write->operation == TD_WRITE_CREATE   ? TD_HPA_CREATE
                     : write->operation == TD_WRITE_STATUS ? TD_HPA_STATUS_UPDATE
                                                           : TD_HPA_UPDATE,
        .object = write->object,
        .old = write->old,
        .gates = {.selection_strategy = true}, /* kind_prepare_hpa has looked */
    };
    struct td_error err = TD_ERROR_INIT;
    if (td_hpa_admit(write->arena, &admission, errors, NULL, &err) < 0) {
        /* Its types were checked when it was decoded: only what an annotation of v1 hides. */
        td_field_error_add(errors, TD_FIELD(NULL, "metadata"), TD_FIELD_INVALID, TD_STR_EMPTY,
                           td_str_from(err.message));
    }
}

/* The server's own kinds want finalizers with a domain, so that two programs cannot mean different
 * things by one name. What extends the API (definitions, webhook configurations) is not asked. */
static void kind_check_finalizers(const struct td_kind_write *write, struct td_field_errors *errors)
{
    static const td_str known[] = {TD_STR_INIT("kubernetes"), TD_STR_INIT("orphan"),
                                   TD_STR_INIT("foregroundDeletion")};
    const struct td_json *list =
        td_kind_member(td_kind_metadata(write->object), TD_STR("finalizers"));
    td_str group = write->resource->group;
    if (write->resource->custom || td_str_equal(group, TD_STR("apiextensions.k8s.io")) ||
        td_str_equal(group, TD_STR("admissionregistration.k8s.io"))) {
        return;
    }
    size_t index = 0;
    for (const struct td_json *item = td_json_first_item(list); item; item = item->next, index++) {
        bool is_known = td_str_find(item->text, '/', 0) < item->text.len ||
                        td_str_is_among(item->text, known, TD_COUNT(known));
        if (!is_known) {
            td_field_invalid_str(
                errors, TD_FIELD_ITEM(TD_FIELD(TD_FIELD(NULL, "metadata"), "finalizers"), index),
                item->text,
                "name is neither a standard finalizer name nor is it fully "
                "qualified");
        }
    }
}

void td_kind_validate(const struct td_kind_write *write, struct td_field_errors *errors)
{
    kind_check_finalizers(write, errors);
    if (kind_is_hpa(write->resource)) {
        kind_validate_hpa(write, errors);
        return;
    }
    const struct td_kind_rules *rules = kind_rules(write->resource);
    const struct td_json *metadata = td_kind_metadata(write->object);
    if (write->operation == TD_WRITE_CREATE) {
        struct td_objectmeta_rules names = {
            .check_name = rules->check_name ? rules->check_name : td_name_check_dns1123_subdomain,
            .is_cluster_scoped = !write->resource->is_namespaced,
        };
        td_objectmeta_validate_as(errors, metadata, &names);
    } else {
        td_objectmeta_validate_update(errors, metadata, td_kind_metadata(write->old));
    }
    if (write->resource->custom) {
        td_custom_validate(write, errors);
    } else if (rules->validate) {
        rules->validate(write, errors);
    }
}

static const struct td_kind_field_rule *kind_field_rule(const struct td_resource *resource,
                                                        td_str field)
{
    const struct td_kind_rules *rules = kind_rules(resource);
    for (size_t i = 0; i < rules->field_count; i++) {
        if (td_str_equal(rules->fields[i].field, field)) {
            return &rules->fields[i];
        }
    }
    return NULL;
}

static bool kind_is_custom_field(const struct td_resource *resource, td_str field)
{
    if (!resource->custom) {
        return false;
    }
    const struct td_custom_version *version = &resource->custom->versions[resource->storage];
    return td_str_is_among(field, version->fields, version->field_count);
}

static td_str kind_scalar_text(const struct td_json *value, td_str fallback)
{
    if (!value) {
        return fallback;
    }
    switch (value->type) {
    case TD_JSON_TYPE_STRING:
    case TD_JSON_TYPE_NUMBER:
        return value->text;
    case TD_JSON_TYPE_BOOL:
        return value->boolean ? TD_STR("true") : TD_STR("false");
    default:
        return fallback;
    }
}

static const struct td_json *kind_at(const struct td_json *object, td_str path)
{
    while (path.len > 0 && object) {
        size_t dot = td_str_find(path, '.', 0);
        object = td_json_get(object, td_str_slice(path, 0, dot));
        path = td_str_slice(path, dot + 1, path.len);
    }
    return object;
}

bool td_kind_has_field(const struct td_resource *resource, td_str field)
{
    return td_str_equal(field, TD_STR("metadata.name")) ||
           (resource->is_namespaced && td_str_equal(field, TD_STR("metadata.namespace"))) ||
           kind_is_custom_field(resource, field) || kind_field_rule(resource, field);
}

bool td_kind_field(const struct td_resource *resource, td_str field, const struct td_json *object,
                   td_str *ret)
{
    if (!td_kind_has_field(resource, field)) {
        return false;
    }
    const struct td_kind_field_rule *rule = kind_field_rule(resource, field);
    td_str path = rule && rule->path ? td_str_from(rule->path) : field;
    *ret = kind_scalar_text(kind_at(object, path), rule ? rule->fallback : TD_STR_EMPTY);
    return true;
}

td_str td_kind_now(const struct td_kind_write *write)
{
    return td_time_text(write->arena, write->now, 0);
}
