/* The rules of one container. */
#include "api/pod/pod_private.h"
#include "kube/names.h"

static const td_str sources_of_value[] = {
    TD_STR_INIT("fieldRef"),     TD_STR_INIT("resourceFieldRef"), TD_STR_INIT("configMapKeyRef"),
    TD_STR_INIT("secretKeyRef"), TD_STR_INIT("fileKeyRef"),
};

static void check_ports(struct td_field_errors *errors, const struct td_field_path *parent,
                        const struct td_json *container)
{
    static const td_str protocols[] = {TD_STR_INIT("SCTP"), TD_STR_INIT("TCP"), TD_STR_INIT("UDP")};
    struct td_json *names = td_json_new_object(errors->arena);
    size_t index = 0;
    const struct td_json *port = td_json_first_item(td_json_member(container, "ports"));
    for (; port; port = port->next, index++) {
        struct td_field_path place = td_field_item(TD_FIELD(parent, "ports"), index);
        struct td_field_path name_path = td_field_child(&place, TD_STR("name"));
        td_str name = td_json_text(port, "name");
        if (name.len > 0 && td_name_check_port(name, NULL) > 0) {
            td_kind_check_name_at(errors, &name_path, name, td_name_check_port);
        } else if (name.len > 0 && !td_kind_add_name(errors->arena, names, name)) {
            td_kind_duplicate(errors, &name_path, name);
        }
        struct td_field_path number = td_field_child(&place, TD_STR("containerPort"));
        if (td_json_get_int64(port, TD_STR("containerPort"), 0) == 0) {
            td_field_required(errors, &number, "");
        } else {
            td_kind_check_port(errors, &number, td_json_member(port, "containerPort"));
        }
        const struct td_json *host = td_json_member(port, "hostPort");
        if (host) {
            td_kind_check_port(errors, TD_FIELD(&place, "hostPort"), host);
        }
        td_kind_check_one_of(errors, &place, port, TD_STR("protocol"), protocols, 3);
    }
}

static void check_key_reference(struct td_field_errors *errors, const struct td_field_path *path,
                                const struct td_json *reference)
{
    struct td_field_path name = td_field_child(path, TD_STR("name"));
    td_kind_check_name_at(errors, &name, td_json_text(reference, "name"),
                          td_name_check_dns1123_subdomain);
    struct td_field_path key_path = td_field_child(path, TD_STR("key"));
    td_str key = td_json_text(reference, "key");
    if (key.len == 0) {
        td_field_required(errors, &key_path, "");
    } else {
        td_kind_check_name_at(errors, &key_path, key, td_name_check_config_map_key);
    }
}

static void check_value_from(struct td_field_errors *errors, const struct td_field_path *parent,
                             const struct td_json *variable)
{
    const struct td_json *from = td_json_member(variable, "valueFrom");
    struct td_field_path path = td_field_child(parent, TD_STR("valueFrom"));
    size_t count = 0;
    for (size_t i = 0; i < TD_COUNT(sources_of_value); i++) {
        const struct td_json *source = td_kind_member(from, sources_of_value[i]);
        count += source != NULL;
        struct td_field_path place = td_field_child(&path, sources_of_value[i]);
        if (source && (i == 2 || i == 3)) {
            check_key_reference(errors, &place, source);
        } else if (source && i == 0 && td_json_text(source, "fieldPath").len == 0) {
            struct td_field_path member = td_field_child(&place, TD_STR("fieldPath"));
            td_field_required(errors, &member, "");
        } else if (source && i == 1 && td_json_text(source, "resource").len == 0) {
            struct td_field_path member = td_field_child(&place, TD_STR("resource"));
            td_field_required(errors, &member, "");
        }
    }
    if (!from) {
        return;
    }
    if (count == 0) {
        td_field_invalid_str(errors, &path, TD_STR_EMPTY,
                             "must specify one of: `fieldRef`, `resourceFieldRef`, "
                             "`configMapKeyRef`, `secretKeyRef` or `fileKeyRef`");
    } else if (td_json_text(variable, "value").len > 0) {
        td_field_invalid_str(errors, &path, TD_STR_EMPTY,
                             "may not be specified when `value` is not empty");
    } else if (count > 1) {
        td_field_invalid_str(errors, &path, TD_STR_EMPTY,
                             "may not have more than one field specified at a time");
    }
}

static void check_env(struct td_field_errors *errors, const struct td_field_path *parent,
                      const struct td_json *container)
{
    size_t index = 0;
    const struct td_json *item = td_json_first_item(td_json_member(container, "env"));
    for (; item; item = item->next, index++) {
        struct td_field_path place = td_field_item(TD_FIELD(parent, "env"), index);
        struct td_field_path name_path = td_field_child(&place, TD_STR("name"));
        td_str name = td_json_text(item, "name");
        if (name.len == 0) {
            td_field_required(errors, &name_path, "");
        } else {
            td_kind_check_name_at(errors, &name_path, name, td_name_check_env_var);
        }
        check_value_from(errors, &place, item);
    }
}

static void check_env_from(struct td_field_errors *errors, const struct td_field_path *parent,
                           const struct td_json *container)
{
    struct td_field_path path = td_field_child(parent, TD_STR("envFrom"));
    size_t index = 0;
    const struct td_json *item = td_json_first_item(td_json_member(container, "envFrom"));
    for (; item; item = item->next, index++) {
        td_str prefix = td_json_text(item, "prefix");
        if (prefix.len > 0) {
            td_kind_check_name_at(errors, TD_FIELD(TD_FIELD_ITEM(&path, index), "prefix"), prefix,
                                  td_name_check_env_var);
        }
        bool has_map = td_json_member(item, "configMapRef") != NULL;
        bool has_secret = td_json_member(item, "secretRef") != NULL;
        if (!has_map && !has_secret) {
            td_field_invalid_str(errors, &path, TD_STR_EMPTY,
                                 "must specify one of: `configMapRef` or `secretRef`");
        } else if (has_map && has_secret) {
            td_field_invalid_str(errors, &path, TD_STR_EMPTY,
                                 "may not have more than one field specified at a time");
        }
    }
}

static void check_mounts(struct td_pod_check *check, const struct td_field_path *parent,
                         const struct td_json *container)
{
    struct td_field_errors *errors = check->errors;
    struct td_json *paths = td_json_new_object(errors->arena);
    struct td_field_path path = td_field_child(parent, TD_STR("volumeMounts"));
    size_t index = 0;
    const struct td_json *mount = td_json_first_item(td_json_member(container, "volumeMounts"));
    for (; mount; mount = mount->next, index++) {
        struct td_field_path place = td_field_item(&path, index);
        struct td_field_path name_path = td_field_child(&place, TD_STR("name"));
        struct td_field_path where_path = td_field_child(&place, TD_STR("mountPath"));
        td_str name = td_json_text(mount, "name");
        td_str where = td_json_text(mount, "mountPath");
        if (name.len == 0) {
            td_field_required(errors, &name_path, "");
        }
        if (!td_json_get(check->volumes, name)) {
            td_pod_not_found(errors, &name_path, name);
        }
        if (where.len == 0) {
            td_field_required(errors, &where_path, "");
        }
        if (!td_kind_add_name(errors->arena, paths, where)) {
            td_field_invalid_str(errors, &where_path, where, "must be unique");
        }
        td_str sub_path = td_json_text(mount, "subPath");
        td_str sub_expression = td_json_text(mount, "subPathExpr");
        if (sub_path.len > 0 && sub_expression.len > 0) {
            struct td_field_path member = td_field_child(&place, TD_STR("subPathExpr"));
            td_field_invalid_str(errors, &member, sub_expression,
                                 "subPathExpr and subPath are mutually exclusive");
        }
        if (sub_path.len > 0 && sub_path.ptr[0] == '/') {
            struct td_field_path member = td_field_child(&path, TD_STR("subPath"));
            td_field_invalid_str(errors, &member, sub_path, "must be a relative path");
        }
    }
}

static void check_resize_policy(struct td_pod_check *check, const struct td_field_path *parent,
                                const struct td_json *container)
{
    static const td_str resources[] = {TD_STR_INIT("cpu"), TD_STR_INIT("memory")};
    static const td_str restarts[] = {TD_STR_INIT("NotRequired"), TD_STR_INIT("RestartContainer")};
    struct td_field_errors *errors = check->errors;
    struct td_json *seen = td_json_new_object(errors->arena);
    struct td_field_path path = td_field_child(parent, TD_STR("resizePolicy"));
    size_t index = 0;
    const struct td_json *item = td_json_first_item(td_json_member(container, "resizePolicy"));
    for (; item; item = item->next, index++) {
        td_str resource = td_json_text(item, "resourceName");
        td_str restart = td_json_text(item, "restartPolicy");
        if (!td_kind_add_name(errors->arena, seen, resource)) {
            td_kind_duplicate(errors, TD_FIELD_ITEM(&path, index), resource);
        }
        if (!td_str_equal(resource, resources[0]) && !td_str_equal(resource, resources[1])) {
            td_field_unsupported(errors, &path, resource, resources, 2);
        }
        if (!td_str_equal(restart, restarts[0]) && !td_str_equal(restart, restarts[1])) {
            td_field_unsupported(errors, &path, restart, restarts, 2);
        }
        if (td_str_equal(check->restart_policy, TD_STR("Never")) &&
            !td_str_equal(restart, restarts[0])) {
            td_field_invalid_str(errors, &path, restart,
                                 "must be 'NotRequired' when pod `restartPolicy` is 'Never'");
        }
    }
}

static void check_identity(struct td_pod_check *check, const struct td_field_path *path,
                           const struct td_json *container)
{
    static const td_str messages[] = {TD_STR_INIT("File"), TD_STR_INIT("FallbackToLogsOnError")};
    struct td_field_errors *errors = check->errors;
    struct td_field_path name_path = td_field_child(path, TD_STR("name"));
    td_str name = td_json_text(container, "name");
    if (name.len == 0) {
        td_field_required(errors, &name_path, "");
    } else {
        td_kind_check_name_at(errors, &name_path, name, td_name_check_dns1123_label);
    }
    if (td_json_text(container, "image").len == 0) {
        td_field_required(errors, TD_FIELD(path, "image"), "");
    }
    td_kind_check_one_of(errors, path, container, TD_STR("terminationMessagePolicy"), messages, 2);
}

void td_pod_check_container(struct td_pod_check *check, const struct td_field_path *path,
                            const struct td_json *container, enum td_pod_container_kind kind)
{
    static const td_str pulls[] = {TD_STR_INIT("Always"), TD_STR_INIT("IfNotPresent"),
                                   TD_STR_INIT("Never")};
    static const td_str restarts[] = {TD_STR_INIT("Always"), TD_STR_INIT("Never"),
                                      TD_STR_INIT("OnFailure")};
    struct td_field_errors *errors = check->errors;
    td_str name = td_json_text(container, "name");
    check_identity(check, path, container);
    check_ports(errors, path, container);
    check_env(errors, path, container);
    check_env_from(errors, path, container);
    check_mounts(check, path, container);
    td_kind_check_one_of(errors, path, container, TD_STR("imagePullPolicy"), pulls, 3);
    struct td_field_path resources = td_field_child(path, TD_STR("resources"));
    td_pod_check_resources(errors, &resources, td_json_member(container, "resources"), false);
    check_resize_policy(check, path, container);
    bool is_new = td_kind_add_name(errors->arena, check->names, name);
    if (!is_new && (name.len > 0 || kind == TD_CONTAINER_REGULAR)) {
        td_kind_duplicate(errors, TD_FIELD(path, "name"), name);
    }
    td_str restart = td_json_text(container, "restartPolicy");
    if (restart.len > 0) {
        td_kind_check_one_of(errors, path, container, TD_STR("restartPolicy"), restarts, 3);
    }
    bool is_sidecar = td_str_equal(restart, restarts[0]);
    td_pod_check_probes(errors, path, container, kind != TD_CONTAINER_INIT || is_sidecar);
}
