/*
 * The checks in the order of upstream's ValidateObjectMeta and ValidateObjectMetaUpdate. Those of
 * names and maps are shared with other kinds (object_check.h).
 */
#include "api/objectmeta.h"

#include "api/object_check.h"
#include "kube/meta.h"
#include "kube/names.h"

#define META_MANAGER_BYTES_MAX 128 /* a field manager's name, as upstream */

static void meta_check_owner(struct td_field_errors *errors, const struct td_field_path *path,
                             const struct td_json *owner)
{
    static const td_str members[] = {TD_STR_INIT("kind"), TD_STR_INIT("name"), TD_STR_INIT("uid")};
    td_str api_version = td_json_text(owner, "apiVersion");
    struct td_group_version parsed = td_group_version_parse(api_version);
    if (parsed.version.len == 0) {
        struct td_field_path place = td_field_child(path, TD_STR("apiVersion"));
        td_field_invalid_str(errors, &place, api_version, "version must not be empty");
    }
    for (size_t i = 0; i < TD_COUNT(members); i++) {
        if (td_kind_text(owner, members[i]).len == 0) {
            struct td_field_path place = td_field_child(path, members[i]);
            td_field_invalid_str(errors, &place, TD_STR_EMPTY, "must not be empty");
        }
    }
    if (td_str_equal(api_version, TD_STR("v1")) &&
        td_str_equal(td_json_text(owner, "kind"), TD_STR("Event"))) {
        td_field_invalid_str(errors, path, TD_STR("Event"), "an Event may not be an owner");
    }
}

/* Upstream names the list, not the item, in its paths; so do we. */
static void meta_check_owners(struct td_field_errors *errors, const struct td_field_path *path,
                              const struct td_json *owners)
{
    size_t controllers = 0;
    for (const struct td_json *owner = td_json_first_item(owners); owner; owner = owner->next) {
        meta_check_owner(errors, path, owner);
        controllers += td_json_get_bool(owner, TD_STR("controller"), false);
    }
    for (size_t i = 1; i < controllers; i++) {
        td_field_error_add(errors, path, TD_FIELD_INVALID, TD_STR_EMPTY,
                           TD_STR("only one owner may have controller set to true"));
    }
}

static void meta_check_finalizers(struct td_field_errors *errors, const struct td_field_path *path,
                                  const struct td_json *finalizers)
{
    bool has_orphan = false;
    bool has_foreground = false;
    for (const struct td_json *item = td_json_first_item(finalizers); item; item = item->next) {
        td_str name = td_json_is(item, TD_JSON_TYPE_STRING) ? item->text : TD_STR_EMPTY;
        td_kind_check_name_at(errors, path, name, td_name_check_qualified);
        has_orphan = has_orphan || td_str_equal(name, TD_STR("orphan"));
        has_foreground = has_foreground || td_str_equal(name, TD_STR("foregroundDeletion"));
    }
    if (has_orphan && has_foreground) {
        td_field_error_add(errors, path, TD_FIELD_INVALID, TD_STR_EMPTY,
                           TD_STR("orphan and foregroundDeletion cannot both be set"));
    }
}

static void meta_check_managed(struct td_field_errors *errors, const struct td_field_path *path,
                               const struct td_json *entries)
{
    size_t index = 0;
    for (const struct td_json *entry = td_json_first_item(entries); entry;
         entry = entry->next, index++) {
        struct td_field_path place = td_field_item(path, index);
        td_str operation = td_json_text(entry, "operation");
        if (!td_str_equal(operation, TD_STR("Apply")) &&
            !td_str_equal(operation, TD_STR("Update"))) {
            struct td_field_path member = td_field_child(&place, TD_STR("operation"));
            td_field_invalid_str(errors, &member, operation, "must be `Apply` or `Update`");
        }
        td_str format = td_json_text(entry, "fieldsType");
        if (format.len > 0 && !td_str_equal(format, TD_STR("FieldsV1"))) {
            struct td_field_path member = td_field_child(&place, TD_STR("fieldsType"));
            td_field_invalid_str(errors, &member, format, "must be `FieldsV1`");
        }
        if (td_json_text(entry, "manager").len > META_MANAGER_BYTES_MAX) {
            struct td_field_path member = td_field_child(&place, TD_STR("manager"));
            td_field_error_add(errors, &member, TD_FIELD_TOO_LONG, TD_STR_EMPTY,
                               TD_STR("may not be more than 128 bytes"));
        }
    }
}

/* What holds for new and changed objects alike. */
static void meta_check_common(struct td_field_errors *errors, const struct td_field_path *root,
                              const struct td_json *metadata)
{
    struct td_field_path labels = td_field_child(root, TD_STR("labels"));
    td_kind_check_labels(errors, &labels, td_json_get(metadata, TD_STR("labels")));
    struct td_field_path annotations = td_field_child(root, TD_STR("annotations"));
    td_kind_check_annotations(errors, &annotations, td_json_get(metadata, TD_STR("annotations")));
    meta_check_owners(errors, TD_FIELD(root, "ownerReferences"),
                      td_json_get(metadata, TD_STR("ownerReferences")));
    meta_check_managed(errors, TD_FIELD(root, "managedFields"),
                       td_json_get(metadata, TD_STR("managedFields")));
}

static void meta_check_names(struct td_field_errors *errors, const struct td_field_path *root,
                             const struct td_json *metadata, td_kind_name_fn check)
{
    td_str prefix = td_json_text(metadata, "generateName");
    if (prefix.len > 0) {
        /* A dash at the end is what the rest of the name is put behind. */
        bool is_plain = check == td_name_check_dns1123_subdomain;
        td_str start = prefix;
        while (!is_plain && start.len > 1 && start.ptr[start.len - 1] == '-') {
            start.len--;
        }
        td_kind_check_name_at(errors, TD_FIELD(root, "generateName"), start,
                              is_plain ? td_name_check_subdomain_prefix : check);
    }
    td_str name = td_json_text(metadata, "name");
    struct td_field_path name_path = td_field_child(root, TD_STR("name"));
    if (name.len == 0) {
        td_field_required(errors, &name_path, "name or generateName is required");
    } else {
        td_kind_check_name_at(errors, &name_path, name, check);
    }
}

void td_objectmeta_validate_as(struct td_field_errors *errors, const struct td_json *metadata,
                               const struct td_objectmeta_rules *rules)
{
    struct td_field_path root = td_field_child(NULL, TD_STR("metadata"));
    meta_check_names(errors, &root, metadata, rules->check_name);
    td_str namespace = td_json_text(metadata, "namespace");
    struct td_field_path namespace_path = td_field_child(&root, TD_STR("namespace"));
    if (rules->is_cluster_scoped) {
        if (namespace.len > 0) {
            td_field_forbidden(errors, &namespace_path, "not allowed on this type");
        }
    } else if (namespace.len == 0) {
        td_field_required(errors, &namespace_path, "");
    } else {
        td_kind_check_name_at(errors, &namespace_path, namespace, td_name_check_dns1123_label);
    }
    td_kind_check_not_negative(errors, &root, metadata, TD_STR("generation"));
    meta_check_common(errors, &root, metadata);
    struct td_field_path finalizers = td_field_child(&root, TD_STR("finalizers"));
    meta_check_finalizers(errors, &finalizers, td_json_get(metadata, TD_STR("finalizers")));
}

void td_objectmeta_validate(struct td_field_errors *errors, const struct td_json *metadata)
{
    static const struct td_objectmeta_rules rules = {.check_name = td_name_check_dns1123_subdomain};
    td_objectmeta_validate_as(errors, metadata, &rules);
}

/* An object that is being deleted may lose finalizers, not win any. The old ones become members of
 * an object, whose index makes each look-up cheap however long the lists are. */
static void meta_check_new_finalizers(struct td_field_errors *errors,
                                      const struct td_field_path *root,
                                      const struct td_json *metadata, const struct td_json *old)
{
    const struct td_json *before = td_json_get(old, TD_STR("finalizers"));
    struct td_json *known = td_json_new_object(errors->arena);
    for (const struct td_json *item = td_json_first_item(before); item; item = item->next) {
        if (td_json_is(item, TD_JSON_TYPE_STRING)) {
            (void)td_kind_add_name(errors->arena, known, item->text); /* may stand there twice */
        }
    }
    const struct td_json *now = td_json_get(metadata, TD_STR("finalizers"));
    for (const struct td_json *item = td_json_first_item(now); item; item = item->next) {
        if (td_json_is(item, TD_JSON_TYPE_STRING) && !td_json_get(known, item->text)) {
            td_field_forbidden(errors, TD_FIELD(root, "finalizers"),
                               "no new finalizers while the object is being deleted");
            return;
        }
    }
}

static void meta_check_immutable(struct td_field_errors *errors, const struct td_field_path *root,
                                 const struct td_json *metadata, const struct td_json *old)
{
    static const td_str members[] = {TD_STR_INIT("name"),
                                     TD_STR_INIT("namespace"),
                                     TD_STR_INIT("uid"),
                                     TD_STR_INIT("creationTimestamp"),
                                     TD_STR_INIT("deletionTimestamp"),
                                     TD_STR_INIT("deletionGracePeriodSeconds")};
    for (size_t i = 0; i < TD_COUNT(members); i++) {
        const struct td_json *now = td_json_get(metadata, members[i]);
        const struct td_json *before = td_json_get(old, members[i]);
        bool is_number = td_json_is(now, TD_JSON_TYPE_NUMBER);
        bool is_same = now && before ? td_json_equal(now, before) : !now && !before;
        if (!is_same) {
            td_field_invalid_str(errors, TD_FIELD_AT(root, members[i]),
                                 is_number ? now->text : td_kind_text(metadata, members[i]),
                                 "field is immutable");
        }
    }
}

void td_objectmeta_validate_update(struct td_field_errors *errors, const struct td_json *metadata,
                                   const struct td_json *old)
{
    struct td_field_path root = td_field_child(NULL, TD_STR("metadata"));
    if (td_json_is(td_json_get(old, TD_STR("deletionTimestamp")), TD_JSON_TYPE_STRING)) {
        meta_check_new_finalizers(errors, &root, metadata, old);
    }
    if (td_json_text(metadata, "resourceVersion").len == 0) {
        struct td_field_path path = td_field_child(&root, TD_STR("resourceVersion"));
        td_field_invalid_str(errors, &path, TD_STR_EMPTY, "must be specified for an update");
    }
    int64_t generation = td_json_get_int64(metadata, TD_STR("generation"), 0);
    if (generation < td_json_get_int64(old, TD_STR("generation"), 0)) {
        struct td_field_path path = td_field_child(&root, TD_STR("generation"));
        td_field_invalid_int(errors, &path, generation, "must not be decremented");
    }
    meta_check_immutable(errors, &root, metadata, old);
    meta_check_common(errors, &root, metadata);
}
