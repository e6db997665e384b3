/*
 * CustomResourceDefinitions: names, versions and the basics of a structural schema. What a schema
 * says is used by local/kinds/custom.h.
 */
#include "base/error.h"
#include "kube/names.h"
#include "kube/schema/regex.h"
#include "kube/schema/schema_check.h"
#include "local/kinds/kinds_private.h"

/* Every value says what it is, unless it is marked as anything. */
static void check_schema(struct td_field_errors *errors, const struct td_field_path *path,
                         const struct td_json *schema, uint32_t depth)
{
    static const td_str maps[] = {TD_STR_INIT("properties"), TD_STR_INIT("items"),
                                  TD_STR_INIT("additionalProperties")};
    if (!td_json_is(schema, TD_JSON_TYPE_OBJECT) || depth > TD_JSON_DEPTH_MAX ||
        errors->count >= TD_STRICT_PROBLEMS_MAX) {
        return;
    }
    bool is_anything =
        td_json_get_bool(schema, TD_STR("x-kubernetes-preserve-unknown-fields"), false) ||
        td_json_get_bool(schema, TD_STR("x-kubernetes-int-or-string"), false);
    if (td_json_text(schema, "type").len == 0 && !is_anything) {
        td_field_required(errors, TD_FIELD(path, "type"),
                          depth == 0 ? "must not be empty at the root"
                                     : "must not be empty for specified object fields");
    }
    const struct td_json *properties = td_kind_member(schema, maps[0]);
    for (const struct td_json *item = td_json_first_member(properties); item; item = item->next) {
        struct td_field_path place = td_kind_key(TD_FIELD_AT(path, maps[0]), item->key);
        check_schema(errors, &place, item, depth + 1);
    }
    for (size_t i = 1; i < TD_COUNT(maps); i++) {
        check_schema(errors, TD_FIELD_AT(path, maps[i]), td_kind_member(schema, maps[i]),
                     depth + 1);
    }
}

/* Patterns are syntax-checked wherever a schema can have one; what is valid but not known here is
 * told as a warning (td_schema_warn). */
static void check_patterns(struct td_field_errors *errors, const struct td_field_path *path,
                           const struct td_json *schema, uint32_t depth, size_t *bytes)
{
    static const td_str lists[] = {TD_STR_INIT("anyOf"), TD_STR_INIT("allOf"),
                                   TD_STR_INIT("oneOf")};
    static const td_str single[] = {TD_STR_INIT("not"), TD_STR_INIT("items"),
                                    TD_STR_INIT("additionalProperties")};
    if (!td_json_is(schema, TD_JSON_TYPE_OBJECT) || depth > TD_JSON_DEPTH_MAX ||
        errors->count >= TD_STRICT_PROBLEMS_MAX) {
        return;
    }
    struct td_error err = TD_ERROR_INIT;
    td_str pattern = td_json_text(schema, "pattern");
    struct td_field_path place = td_field_child(path, TD_STR("pattern"));
    bool was_within = *bytes <= TD_REGEX_DEFINITION_BYTES_MAX;
    *bytes += pattern.len;
    if (*bytes > TD_REGEX_DEFINITION_BYTES_MAX) {
        if (was_within) {
            td_field_forbidden(errors, &place, "the patterns of the schema are too long together");
        }
    } else if (pattern.len > 0 && td_regex_check(pattern, &err) == TD_INVALID) {
        td_str detail = td_arena_format(
            errors->arena, "must be a valid regular expression, but isn't: %s", err.message);
        td_field_invalid_str(errors, &place, pattern, detail.ptr);
    }
    const struct td_json *item = td_json_first_member(td_kind_member(schema, TD_STR("properties")));
    for (; item; item = item->next) {
        struct td_field_path below = td_kind_key(TD_FIELD(path, "properties"), item->key);
        check_patterns(errors, &below, item, depth + 1, bytes);
    }
    for (size_t i = 0; i < TD_COUNT(lists); i++) {
        size_t index = 0;
        item = td_json_first_item(td_kind_member(schema, lists[i]));
        for (; item; item = item->next, index++) {
            check_patterns(errors, TD_FIELD_ITEM(TD_FIELD_AT(path, lists[i]), index), item,
                           depth + 1, bytes);
        }
    }
    for (size_t i = 0; i < TD_COUNT(single); i++) {
        check_patterns(errors, TD_FIELD_AT(path, single[i]), td_kind_member(schema, single[i]),
                       depth + 1, bytes);
    }
}

/* The schema of a definition's only version is named as if it were all versions'. */
static void check_root_schema(struct td_field_errors *errors, const struct td_field_path *path,
                              const struct td_json *version, bool is_only)
{
    const struct td_json *schema =
        td_kind_member(td_kind_member(version, TD_STR("schema")), TD_STR("openAPIV3Schema"));
    struct td_field_path place =
        td_field_child(TD_FIELD(path, "schema"), TD_STR("openAPIV3Schema"));
    if (!schema) {
        td_field_required(errors, &place, "");
        return;
    }
    const struct td_field_path *validation = TD_FIELD(TD_FIELD(NULL, "spec"), "validation");
    place.parent = is_only ? validation : place.parent;
    td_str type = td_json_text(schema, "type");
    if (type.len > 0 && !td_str_equal(type, TD_STR("object"))) {
        td_field_invalid_str(errors, TD_FIELD(&place, "type"), type, "must be object at the root");
    }
    check_schema(errors, &place, schema, 0);
    size_t bytes = 0;
    check_patterns(errors, &place, schema, 0, &bytes);
}

static void check_versions(struct td_field_errors *errors, const struct td_field_path *spec_path,
                           const struct td_json *spec)
{
    const struct td_json *versions = td_kind_member(spec, TD_STR("versions"));
    struct td_json *names = td_json_new_object(errors->arena);
    struct td_field_path path = td_field_child(spec_path, TD_STR("versions"));
    size_t index = 0;
    size_t stored = 0;
    bool is_unique = true;
    for (const struct td_json *item = td_json_first_item(versions); item;
         item = item->next, index++) {
        struct td_field_path place = td_field_item(&path, index);
        td_str name = td_json_text(item, "name");
        stored += td_json_get_bool(item, TD_STR("storage"), false);
        is_unique = td_kind_add_name(errors->arena, names, name) && is_unique;
        td_kind_check_name_at(errors, TD_FIELD(&place, "name"), name, td_name_check_dns1035_label);
        check_root_schema(errors, &place, item, versions->count == 1);
    }
    if (!is_unique) {
        td_field_error_add(errors, &path, TD_FIELD_INVALID, TD_STR_EMPTY,
                           TD_STR("must contain unique version names"));
    }
    if (stored != 1) {
        td_field_error_add(errors, &path, TD_FIELD_INVALID, TD_STR_EMPTY,
                           TD_STR("must have exactly one version marked as storage version"));
    }
}

/* Kinds are checked without regard to their capitals. */
static size_t check_mixed_case(td_str name, struct td_buf *out)
{
    char lower[64];
    if (name.len >= sizeof(lower)) {
        return td_name_check_dns1035_label(name, out);
    }
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        lower[i] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
    }
    return td_name_check_dns1035_label((td_str){.ptr = lower, .len = name.len}, out);
}

static void check_names(struct td_field_errors *errors, const struct td_field_path *spec_path,
                        const struct td_json *spec)
{
    static const struct {
        td_str member;
        td_kind_name_fn check;
    } rows[] = {
        {TD_STR_INIT("plural"), td_name_check_dns1035_label},
        {TD_STR_INIT("singular"), td_name_check_dns1035_label},
        {TD_STR_INIT("kind"), check_mixed_case},
        {TD_STR_INIT("listKind"), check_mixed_case},
    };
    const struct td_json *names = td_kind_member(spec, TD_STR("names"));
    struct td_field_path path = td_field_child(spec_path, TD_STR("names"));
    for (size_t i = 0; i < TD_COUNT(rows); i++) {
        struct td_field_path place = td_field_child(&path, rows[i].member);
        td_str name = td_kind_text(names, rows[i].member);
        if (name.len == 0) {
            td_field_required(errors, &place, "");
        } else {
            td_kind_check_name_at(errors, &place, name, rows[i].check);
        }
    }
    td_str list_kind = td_json_text(names, "listKind");
    if (list_kind.len > 0 && td_str_equal(list_kind, td_json_text(names, "kind"))) {
        td_field_invalid_str(errors, TD_FIELD(&path, "listKind"), list_kind,
                             "kind and listKind may not be the same");
    }
    static const td_str lists[] = {TD_STR_INIT("shortNames"), TD_STR_INIT("categories")};
    for (size_t i = 0; i < 2; i++) {
        size_t index = 0;
        const struct td_json *item = td_json_first_item(td_kind_member(names, lists[i]));
        for (; item; item = item->next, index++) {
            td_kind_check_name_at(errors, TD_FIELD_ITEM(TD_FIELD_AT(&path, lists[i]), index),
                                  item->text, td_name_check_dns1035_label);
        }
    }
}

static void check_object_name(struct td_field_errors *errors, const struct td_json *object)
{
    const struct td_json *spec = td_kind_spec(object);
    td_str name = td_json_text(td_kind_metadata(object), "name");
    td_str wanted =
        td_arena_format(errors->arena, "%.*s.%.*s",
                        TD_STR_ARG(td_json_text(td_kind_member(spec, TD_STR("names")), "plural")),
                        TD_STR_ARG(td_json_text(spec, "group")));
    if (!td_str_equal(name, wanted)) {
        td_field_invalid_str(errors, TD_FIELD(TD_FIELD(NULL, "metadata"), "name"), name,
                             "must be spec.names.plural+\".\"+spec.group");
    }
}

static void check_kept(const struct td_kind_write *write, struct td_field_errors *errors,
                       const struct td_field_path *path)
{
    const struct td_json *spec = td_kind_spec(write->object);
    const struct td_json *old = td_kind_spec(write->old);
    static const td_str own[] = {TD_STR_INIT("scope"), TD_STR_INIT("group")};
    static const td_str named[] = {TD_STR_INIT("kind"), TD_STR_INIT("plural")};
    for (size_t i = 0; i < 2; i++) {
        td_kind_check_immutable(errors, TD_FIELD_AT(path, own[i]), td_json_get(spec, own[i]),
                                td_json_get(old, own[i]));
        td_kind_check_immutable(errors, TD_FIELD_AT(TD_FIELD(path, "names"), named[i]),
                                td_json_get(td_kind_member(spec, TD_STR("names")), named[i]),
                                td_json_get(td_kind_member(old, TD_STR("names")), named[i]));
    }
}

static void definition_validate(const struct td_kind_write *write, struct td_field_errors *errors)
{
    static const td_str scopes[] = {TD_STR_INIT("Cluster"), TD_STR_INIT("Namespaced")};
    if (write->operation == TD_WRITE_STATUS) {
        return;
    }
    const struct td_json *spec = td_kind_spec(write->object);
    struct td_field_path path = td_field_child(NULL, TD_STR("spec"));
    if (!write->old) {
        check_object_name(errors, write->object);
    }
    td_str group = td_json_text(spec, "group");
    struct td_field_path group_path = td_field_child(&path, TD_STR("group"));
    if (group.len == 0) {
        td_field_required(errors, &group_path, "");
    } else if (td_name_check_dns1123_subdomain(group, NULL) > 0) {
        td_kind_check_name_at(errors, &group_path, group, td_name_check_dns1123_subdomain);
    } else if (td_str_find(group, '.', 0) == group.len) {
        td_field_invalid_str(errors, &group_path, group,
                             "should be a domain with at least one dot");
    }
    const struct td_json *stored =
        td_kind_member(td_kind_member(write->object, TD_STR("status")), TD_STR("storedVersions"));
    if (!stored || stored->count == 0) {
        td_field_error_add(errors, TD_FIELD(TD_FIELD(NULL, "status"), "storedVersions"),
                           TD_FIELD_INVALID, TD_STR("null"),
                           TD_STR("must have at least one stored version"));
    }
    td_kind_check_one_of(errors, &path, spec, TD_STR("scope"), scopes, 2);
    check_versions(errors, &path, spec);
    check_names(errors, &path, spec);
    if (write->old) {
        check_kept(write, errors, &path);
    }
}

/* Says once what of a new or changed definition is not enforced. */
static void definition_warn(const struct td_kind_write *write)
{
    const struct td_json *spec = td_kind_spec(write->object);
    const struct td_json *version = td_json_first_item(td_kind_member(spec, TD_STR("versions")));
    bool is_same = write->old && td_kind_same(spec, td_kind_spec(write->old));
    for (; version && !is_same && write->operation != TD_WRITE_STATUS; version = version->next) {
        td_schema_warn(write->arena, td_json_text(version, "name"),
                       td_json_get_path(version, "schema.openAPIV3Schema"), write->warnings);
    }
}

/* A new storage version joins those in which objects may lie. */
static void definition_prepare(struct td_kind_write *write)
{
    definition_warn(write);
    struct td_json *status = td_json_ensure_object(write->arena, write->object, TD_STR("status"));
    struct td_json *stored = td_json_ensure_array(write->arena, status, TD_STR("storedVersions"));
    const struct td_json *version =
        td_json_first_item(td_kind_member(td_kind_spec(write->object), TD_STR("versions")));
    for (; version && write->operation != TD_WRITE_STATUS; version = version->next) {
        bool is_known = !td_json_get_bool(version, TD_STR("storage"), false);
        td_str name = td_json_text(version, "name");
        if (!is_known && !td_json_has_text(stored, name)) {
            td_json_append(stored, td_json_new_string(write->arena, name));
        }
    }
}

const struct td_kind_rules td_kind_definition_rules[] = {
    {TD_KIND("apiextensions.k8s.io", "CustomResourceDefinition", definition_validate),
     .prepare = definition_prepare},
    TD_KIND_END,
};
