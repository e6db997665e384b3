/* The rules of a pod's spec, of a pod or of a template. */
#include "api/pod/pod_private.h"
#include "kube/names.h"

void td_pod_not_found(struct td_field_errors *errors, const struct td_field_path *path,
                      td_str value)
{
    td_field_error_str(errors, path, TD_FIELD_NOT_FOUND, value);
}

/* Members that a volume source cannot do without. */
struct source_rule {
    td_str source;
    td_str member;
};

static const struct source_rule source_rules[] = {
    {TD_STR_INIT("configMap"), TD_STR_INIT("name")},
    {TD_STR_INIT("secret"), TD_STR_INIT("secretName")},
    {TD_STR_INIT("hostPath"), TD_STR_INIT("path")},
    {TD_STR_INIT("persistentVolumeClaim"), TD_STR_INIT("claimName")},
    {TD_STR_INIT("nfs"), TD_STR_INIT("server")},
    {TD_STR_INIT("nfs"), TD_STR_INIT("path")},
    {TD_STR_INIT("csi"), TD_STR_INIT("driver")},
};

static void check_volume_source(struct td_field_errors *errors, const struct td_field_path *path,
                                const struct td_json *source)
{
    struct td_field_path place = td_field_child(path, source->key);
    for (size_t i = 0; i < TD_COUNT(source_rules); i++) {
        const struct source_rule *rule = &source_rules[i];
        if (td_str_equal(rule->source, source->key) &&
            td_kind_text(source, rule->member).len == 0) {
            struct td_field_path member = td_field_child(&place, rule->member);
            td_field_required(errors, &member, "");
        }
    }
    int64_t mode = td_json_get_int64(source, TD_STR("defaultMode"), 0);
    if (mode < 0 || mode > 0777) {
        struct td_field_path member = td_field_child(&place, TD_STR("defaultMode"));
        td_field_invalid_int(errors, &member, mode,
                             "must be a number between 0 and 0777 (octal), both inclusive");
    }
}

static void check_volume(struct td_pod_check *check, const struct td_field_path *path,
                         const struct td_json *volume)
{
    size_t errors_before = check->errors->count;
    size_t sources = 0;
    for (const struct td_json *member = td_json_first_member(volume); member;
         member = member->next) {
        if (td_str_equal(member->key, TD_STR("name"))) {
            continue;
        }
        if (sources++ > 0) {
            td_field_forbidden(check->errors, TD_FIELD_AT(path, member->key),
                               "may not specify more than 1 volume type");
        } else {
            check_volume_source(check->errors, path, member);
        }
    }
    struct td_field_path name_path = td_field_child(path, TD_STR("name"));
    td_str name = td_json_text(volume, "name");
    if (name.len == 0) {
        td_field_required(check->errors, &name_path, "");
    } else {
        td_kind_check_name_at(check->errors, &name_path, name, td_name_check_dns1123_label);
    }
    if (td_json_get(check->volumes, name)) {
        td_kind_duplicate(check->errors, &name_path, name);
    }
    if (check->errors->count == errors_before) {
        (void)td_kind_add_name(check->errors->arena, check->volumes, name); /* it is new */
    }
}

static void check_containers(struct td_pod_check *check, const struct td_field_path *spec_path,
                             const struct td_json *spec, td_str list,
                             enum td_pod_container_kind kind)
{
    const struct td_json *containers = td_kind_member(spec, list);
    struct td_field_path path = td_field_child(spec_path, list);
    size_t index = 0;
    const struct td_json *item = td_json_first_item(containers);
    if (!item && kind == TD_CONTAINER_REGULAR) {
        td_field_required(check->errors, &path, "");
    }
    for (; item; item = item->next, index++) {
        td_pod_check_container(check, TD_FIELD_ITEM(&path, index), item, kind);
    }
}

/* Two containers cannot listen on one port of the host. */
static void check_host_ports(struct td_field_errors *errors, const struct td_field_path *spec_path,
                             const struct td_json *spec)
{
    bool is_on_host = td_json_get_bool(spec, TD_STR("hostNetwork"), false);
    struct td_json *seen = td_json_new_object(errors->arena);
    size_t index = 0;
    const struct td_json *item = td_json_first_item(td_json_member(spec, "containers"));
    for (; item; item = item->next, index++) {
        struct td_field_path ports = td_field_child(
            TD_FIELD_ITEM(TD_FIELD(spec_path, "containers"), index), TD_STR("ports"));
        size_t at = 0;
        const struct td_json *port = td_json_first_item(td_json_member(item, "ports"));
        for (; port; port = port->next, at++) {
            struct td_field_path member =
                td_field_child(TD_FIELD_ITEM(&ports, at), TD_STR("hostPort"));
            int64_t number = td_json_get_int64(port, TD_STR("hostPort"), 0);
            td_str key = td_arena_format(
                errors->arena, "%.*s/%.*s/%lld", TD_STR_ARG(td_json_text(port, "protocol")),
                TD_STR_ARG(td_json_text(port, "hostIP")), (long long)number);
            if (number != 0 && !td_kind_add_name(errors->arena, seen, key)) {
                td_kind_duplicate(errors, &member, key);
            }
            if (is_on_host && number != 0 &&
                number != td_json_get_int64(port, TD_STR("containerPort"), 0)) {
                td_field_invalid_int(errors, &member, number,
                                     "must match `containerPort` when `hostNetwork` is true");
            }
        }
    }
}

static void check_toleration_value(struct td_field_errors *errors, const struct td_field_path *path,
                                   const struct td_json *toleration)
{
    static const td_str operators[] = {TD_STR_INIT("Equal"), TD_STR_INIT("Exists")};
    td_str operation = td_json_text(toleration, "operator");
    td_str value = td_json_text(toleration, "value");
    struct td_field_path place = td_field_child(path, TD_STR("operator"));
    if (operation.len == 0 || td_str_equal(operation, operators[0])) {
        td_kind_check_name_at(errors, &place, value, td_name_check_label_value);
    } else if (td_str_equal(operation, operators[1])) {
        if (value.len > 0) {
            td_field_invalid_str(errors, &place, value,
                                 "value must be empty when `operator` is 'Exists'");
        }
    } else {
        td_field_unsupported(errors, &place, operation, operators, 2);
    }
}

static void check_toleration(struct td_field_errors *errors, const struct td_field_path *path,
                             const struct td_json *toleration)
{
    static const td_str effects[] = {TD_STR_INIT("NoSchedule"), TD_STR_INIT("PreferNoSchedule"),
                                     TD_STR_INIT("NoExecute")};
    td_str key = td_json_text(toleration, "key");
    td_str operation = td_json_text(toleration, "operator");
    td_str effect = td_json_text(toleration, "effect");
    if (key.len > 0) {
        td_kind_check_name_at(errors, TD_FIELD(path, "key"), key, td_name_check_qualified);
    } else if (!td_str_equal(operation, TD_STR("Exists"))) {
        td_field_invalid_str(errors, TD_FIELD(path, "operator"), operation,
                             "operator must be Exists when `key` is empty, which means \"match "
                             "all values and all keys\"");
    }
    if (td_json_member(toleration, "tolerationSeconds") &&
        !td_str_equal(effect, TD_STR("NoExecute"))) {
        td_field_invalid_str(errors, TD_FIELD(path, "effect"), effect,
                             "effect must be 'NoExecute' when `tolerationSeconds` is set");
    }
    check_toleration_value(errors, path, toleration);
    if (effect.len > 0) {
        td_kind_check_one_of(errors, path, toleration, TD_STR("effect"), effects, 3);
    }
}

static void check_spread(struct td_field_errors *errors, const struct td_field_path *path,
                         const struct td_json *constraint)
{
    static const td_str actions[] = {TD_STR_INIT("DoNotSchedule"), TD_STR_INIT("ScheduleAnyway")};
    int64_t skew = td_json_get_int64(constraint, TD_STR("maxSkew"), 0);
    if (skew <= 0) {
        struct td_field_path place = td_field_child(path, TD_STR("maxSkew"));
        td_field_invalid_int(errors, &place, skew, "must be greater than zero");
    }
    if (td_json_text(constraint, "topologyKey").len == 0) {
        struct td_field_path place = td_field_child(path, TD_STR("topologyKey"));
        td_field_required(errors, &place, "can not be empty");
    }
    struct td_field_path place = td_field_child(path, TD_STR("whenUnsatisfiable"));
    td_str action = td_json_text(constraint, "whenUnsatisfiable");
    if (!td_str_equal(action, actions[0]) && !td_str_equal(action, actions[1])) {
        td_field_unsupported(errors, &place, action, actions, 2);
    }
    td_kind_check_selector(errors, TD_FIELD(path, "labelSelector"),
                           td_json_member(constraint, "labelSelector"));
}

typedef void (*spec_item_fn)(struct td_field_errors *errors, const struct td_field_path *path,
                             const struct td_json *item);

static void check_items(struct td_field_errors *errors, const struct td_field_path *spec_path,
                        const struct td_json *spec, td_str list, spec_item_fn check)
{
    size_t index = 0;
    const struct td_json *item = td_json_first_item(td_kind_member(spec, list));
    for (; item; item = item->next, index++) {
        check(errors, TD_FIELD_ITEM(TD_FIELD_AT(spec_path, list), index), item);
    }
}

static void check_gate(struct td_field_errors *errors, const struct td_field_path *path,
                       const struct td_json *gate)
{
    td_kind_check_name_at(errors, path, td_json_text(gate, "name"), td_name_check_qualified);
}

static void check_readiness_gate(struct td_field_errors *errors, const struct td_field_path *path,
                                 const struct td_json *gate)
{
    td_kind_check_name_at(errors, TD_FIELD(path, "conditionType"),
                          td_json_text(gate, "conditionType"), td_name_check_qualified);
}

/* Names in the spec, each optional, by the rule that it follows. */
static void check_names(struct td_field_errors *errors, const struct td_field_path *path,
                        const struct td_json *spec)
{
    static const struct {
        td_str member;
        td_kind_name_fn check;
    } rows[] = {
        {TD_STR_INIT("serviceAccountName"), td_name_check_dns1123_subdomain},
        {TD_STR_INIT("nodeName"), td_name_check_dns1123_subdomain},
        {TD_STR_INIT("hostname"), td_name_check_dns1123_label},
        {TD_STR_INIT("subdomain"), td_name_check_dns1123_label},
        {TD_STR_INIT("priorityClassName"), td_name_check_dns1123_subdomain},
        {TD_STR_INIT("runtimeClassName"), td_name_check_dns1123_subdomain},
    };
    for (size_t i = 0; i < TD_COUNT(rows); i++) {
        td_str name = td_kind_text(spec, rows[i].member);
        if (name.len > 0) {
            td_kind_check_name_at(errors, TD_FIELD_AT(path, rows[i].member), name, rows[i].check);
        }
    }
}

static void check_policies(struct td_field_errors *errors, const struct td_field_path *path,
                           const struct td_json *spec)
{
    static const td_str restarts[] = {TD_STR_INIT("Always"), TD_STR_INIT("OnFailure"),
                                      TD_STR_INIT("Never")};
    static const td_str dns[] = {TD_STR_INIT("ClusterFirstWithHostNet"),
                                 TD_STR_INIT("ClusterFirst"), TD_STR_INIT("Default"),
                                 TD_STR_INIT("None")};
    static const td_str preemptions[] = {TD_STR_INIT("PreemptLowerPriority"), TD_STR_INIT("Never")};
    td_kind_check_one_of(errors, path, spec, TD_STR("restartPolicy"), restarts, 3);
    td_kind_check_one_of(errors, path, spec, TD_STR("dnsPolicy"), dns, 4);
    if (td_json_member(spec, "preemptionPolicy")) {
        td_kind_check_one_of(errors, path, spec, TD_STR("preemptionPolicy"), preemptions, 2);
    }
    if (td_json_member(spec, "activeDeadlineSeconds")) {
        int64_t value = td_json_get_int64(spec, TD_STR("activeDeadlineSeconds"), 0);
        if (value < 1 || value > INT32_MAX) {
            td_field_invalid_int(errors, TD_FIELD(path, "activeDeadlineSeconds"), value,
                                 "must be between 1 and 2147483647, inclusive");
        }
    }
}

void td_pod_check_spec(struct td_field_errors *errors, const struct td_field_path *path,
                       const struct td_json *spec)
{
    struct td_pod_check check = {
        .errors = errors,
        .volumes = td_json_new_object(errors->arena),
        .names = td_json_new_object(errors->arena),
        .restart_policy = td_json_text(spec, "restartPolicy"),
    };
    struct td_field_path volumes = td_field_child(path, TD_STR("volumes"));
    size_t index = 0;
    const struct td_json *volume = td_json_first_item(td_json_member(spec, "volumes"));
    for (; volume; volume = volume->next, index++) {
        struct td_field_path place = td_field_item(&volumes, index);
        check_volume(&check, &place, volume);
    }
    check_containers(&check, path, spec, TD_STR("containers"), TD_CONTAINER_REGULAR);
    check_host_ports(errors, path, spec);
    check_containers(&check, path, spec, TD_STR("initContainers"), TD_CONTAINER_INIT);
    check_containers(&check, path, spec, TD_STR("ephemeralContainers"), TD_CONTAINER_EPHEMERAL);
    const struct td_json *resources = td_json_member(spec, "resources");
    if (resources) {
        struct td_field_path place = td_field_child(path, TD_STR("resources"));
        td_pod_check_resources(errors, &place, resources, true);
        td_pod_check_consistency(errors, &place, spec);
    }
    check_policies(errors, path, spec);
    td_kind_check_labels(errors, TD_FIELD(path, "nodeSelector"),
                         td_json_member(spec, "nodeSelector"));
    check_items(errors, path, spec, TD_STR("readinessGates"), check_readiness_gate);
    check_items(errors, path, spec, TD_STR("schedulingGates"), check_gate);
    check_items(errors, path, spec, TD_STR("topologySpreadConstraints"), check_spread);
    check_names(errors, path, spec);
    check_items(errors, path, spec, TD_STR("tolerations"), check_toleration);
}

void td_pod_check_template(struct td_field_errors *errors, const struct td_field_path *path,
                           const struct td_json *template)
{
    const struct td_json *metadata = td_kind_metadata(template);
    const struct td_json *spec = td_kind_spec(template);
    struct td_field_path labels = td_field_child(path, TD_STR("labels"));
    td_kind_check_labels(errors, &labels, td_json_member(metadata, "labels"));
    struct td_field_path annotations = td_field_child(path, TD_STR("annotations"));
    td_kind_check_annotations(errors, &annotations, td_json_member(metadata, "annotations"));
    struct td_field_path spec_path = td_field_child(path, TD_STR("spec"));
    td_pod_check_spec(errors, &spec_path, spec);
    const struct td_json *ephemeral = td_json_member(spec, "ephemeralContainers");
    if (ephemeral && ephemeral->count > 0) {
        td_field_forbidden(errors, TD_FIELD(&spec_path, "ephemeralContainers"),
                           "ephemeral containers not allowed in pod template");
    }
}

/* Images of pods, other than those of templates, have no space around them. */
static void check_images(struct td_field_errors *errors, const struct td_field_path *spec_path,
                         const struct td_json *spec, td_str list)
{
    struct td_field_path path = td_field_child(spec_path, list);
    size_t index = 0;
    const struct td_json *item = td_json_first_item(td_kind_member(spec, list));
    for (; item; item = item->next, index++) {
        td_str image = td_json_text(item, "image");
        if (td_str_trim(image).len != image.len) {
            td_field_invalid_str(errors, TD_FIELD(TD_FIELD_ITEM(&path, index), "image"), image,
                                 "must not have leading or trailing whitespace");
        }
    }
}

void td_pod_check_new(struct td_field_errors *errors, const struct td_field_path *path,
                      const struct td_json *spec)
{
    td_pod_check_spec(errors, path, spec);
    check_images(errors, path, spec, TD_STR("containers"));
    check_images(errors, path, spec, TD_STR("initContainers"));
    const struct td_json *ephemeral = td_json_member(spec, "ephemeralContainers");
    if (ephemeral && ephemeral->count > 0) {
        td_field_forbidden(errors, TD_FIELD(path, "ephemeralContainers"),
                           "cannot be set on create");
    }
}
