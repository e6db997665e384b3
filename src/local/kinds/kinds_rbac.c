/* Roles and who has them. */
#include "kube/names.h"
#include "local/kinds/kinds_private.h"

#define RBAC_GROUP "rbac.authorization.k8s.io"

static bool has_items(const struct td_json *object, td_str key)
{
    const struct td_json *list = td_kind_member(object, key);
    return list && list->count > 0;
}

static void check_rule(struct td_field_errors *errors, const struct td_field_path *path,
                       const struct td_json *rule, bool is_namespaced)
{
    if (!has_items(rule, TD_STR("verbs"))) {
        td_field_required(errors, TD_FIELD(path, "verbs"), "verbs must contain at least one value");
    }
    if (has_items(rule, TD_STR("nonResourceURLs"))) {
        struct td_field_path place = td_field_child(path, TD_STR("nonResourceURLs"));
        const struct td_json *urls = td_kind_member(rule, TD_STR("nonResourceURLs"));
        if (is_namespaced) {
            td_kind_invalid_tree(errors, &place, urls,
                                 "namespaced rules cannot apply to non-resource URLs");
        }
        if (has_items(rule, TD_STR("apiGroups")) || has_items(rule, TD_STR("resources")) ||
            has_items(rule, TD_STR("resourceNames"))) {
            td_kind_invalid_tree(
                errors, &place, urls,
                "rules cannot apply to both regular resources and non-resource URLs");
        }
        return;
    }
    if (!has_items(rule, TD_STR("apiGroups"))) {
        td_field_required(errors, TD_FIELD(path, "apiGroups"),
                          "resource rules must supply at least one api group");
    }
    if (!has_items(rule, TD_STR("resources"))) {
        td_field_required(errors, TD_FIELD(path, "resources"),
                          "resource rules must supply at least one resource");
    }
}

static void role_validate(const struct td_kind_write *write, struct td_field_errors *errors)
{
    size_t index = 0;
    const struct td_json *rule = td_json_first_item(td_kind_member(write->object, TD_STR("rules")));
    for (; rule; rule = rule->next, index++) {
        check_rule(errors, TD_FIELD_ITEM(TD_FIELD(NULL, "rules"), index), rule,
                   write->resource->is_namespaced);
    }
}

static void check_subject(struct td_field_errors *errors, const struct td_field_path *path,
                          const struct td_json *subject, bool is_namespaced)
{
    static const td_str kinds[] = {TD_STR_INIT("ServiceAccount"), TD_STR_INIT("User"),
                                   TD_STR_INIT("Group")};
    static const td_str groups[] = {TD_STR_INIT(RBAC_GROUP)};
    static const td_str none[] = {TD_STR_INIT("")};
    td_str kind = td_json_text(subject, "kind");
    td_str name = td_json_text(subject, "name");
    td_str group = td_json_text(subject, "apiGroup");
    struct td_field_path name_path = td_field_child(path, TD_STR("name"));
    struct td_field_path group_path = td_field_child(path, TD_STR("apiGroup"));
    if (name.len == 0) {
        td_field_required(errors, &name_path, "");
    }
    if (td_str_equal(kind, kinds[0])) {
        if (name.len > 0) {
            td_kind_check_name_at(errors, &name_path, name, td_name_check_dns1123_subdomain);
        }
        if (group.len > 0) {
            td_field_unsupported(errors, &group_path, group, none, 1);
        }
        if (!is_namespaced && td_json_text(subject, "namespace").len == 0) {
            td_field_required(errors, TD_FIELD(path, "namespace"), "");
        }
    } else if (td_str_equal(kind, kinds[1]) || td_str_equal(kind, kinds[2])) {
        if (!td_str_equal(group, groups[0])) {
            td_field_unsupported(errors, &group_path, group, groups, 1);
        }
    } else {
        td_field_unsupported(errors, TD_FIELD(path, "kind"), kind, kinds, 3);
    }
}

static void binding_validate(const struct td_kind_write *write, struct td_field_errors *errors)
{
    static const td_str groups[] = {TD_STR_INIT(RBAC_GROUP)};
    static const td_str namespaced[] = {TD_STR_INIT("Role"), TD_STR_INIT("ClusterRole")};
    static const td_str global[] = {TD_STR_INIT("ClusterRole")};
    bool is_namespaced = write->resource->is_namespaced;
    const struct td_json *role = td_kind_member(write->object, TD_STR("roleRef"));
    struct td_field_path path = td_field_child(NULL, TD_STR("roleRef"));
    td_kind_check_one_of(errors, &path, role, TD_STR("apiGroup"), groups, 1);
    td_kind_check_one_of(errors, &path, role, TD_STR("kind"), is_namespaced ? namespaced : global,
                         is_namespaced ? 2 : 1);
    struct td_field_path name_path = td_field_child(&path, TD_STR("name"));
    td_str name = td_json_text(role, "name");
    if (name.len == 0) {
        td_field_required(errors, &name_path, "");
    } else {
        td_kind_check_name_at(errors, &name_path, name, td_kind_check_path_segment);
    }
    size_t index = 0;
    const struct td_json *item =
        td_json_first_item(td_kind_member(write->object, TD_STR("subjects")));
    for (; item; item = item->next, index++) {
        check_subject(errors, TD_FIELD_ITEM(TD_FIELD(NULL, "subjects"), index), item,
                      is_namespaced);
    }
    if (write->old && !td_kind_same_member(write->object, write->old, TD_STR("roleRef"))) {
        td_kind_invalid_tree(errors, &path, role, "cannot change roleRef");
    }
}

const struct td_kind_rules td_kind_rbac_rules[] = {
    {TD_KIND(RBAC_GROUP, "Role", role_validate), .check_name = td_kind_check_path_segment},
    {TD_KIND(RBAC_GROUP, "ClusterRole", role_validate), .check_name = td_kind_check_path_segment},
    {TD_KIND(RBAC_GROUP, "RoleBinding", binding_validate),
     .check_name = td_kind_check_path_segment},
    {TD_KIND(RBAC_GROUP, "ClusterRoleBinding", binding_validate),
     .check_name = td_kind_check_path_segment},
    TD_KIND_END,
};
