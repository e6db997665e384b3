/*
 * Kinds that run copies of a template: what their selector, strategy and numbers must look like,
 * and what may no longer change once they exist.
 */
#include "api/pod/pod_validate.h"
#include "kube/names.h"
#include "kube/selector/selector.h"
#include "local/kinds/kinds_private.h"

#define PERCENT_ALL 100
#define TEMPLATE_GENERATION "deprecated.daemonset.template.generation"

static const td_str workload_always[] = {TD_STR_INIT("Always")};

/* A count, or a percentage: the number before the sign. */
struct share {
    int64_t value;
    bool is_percent;
};

static bool share_is_percent(td_str text)
{
    bool is_number = text.len > 1 && text.ptr[text.len - 1] == '%';
    for (size_t i = 0; is_number && i + 1 < text.len; i++) {
        is_number = text.ptr[i] >= '0' && text.ptr[i] <= '9';
    }
    return is_number;
}

static struct share share_read(const struct td_json *value)
{
    struct share share = {.value = 0, .is_percent = false};
    if (td_json_is(value, TD_JSON_TYPE_STRING) && share_is_percent(value->text)) {
        share.is_percent = true;
        (void)td_str_to_int64(td_str_slice(value->text, 0, value->text.len - 1),
                              &share.value); /* too many digits: 0 */
    } else if (td_json_is(value, TD_JSON_TYPE_NUMBER)) {
        (void)td_json_to_int64(value, &share.value); /* an int32 by its type */
    }
    return share;
}

void td_kind_check_share(struct td_field_errors *errors, const struct td_field_path *parent,
                         const struct td_json *object, td_str key, bool is_capped)
{
    const struct td_json *value = td_kind_member(object, key);
    struct td_field_path path = td_field_child(parent, key);
    if (td_json_is(value, TD_JSON_TYPE_STRING) && !share_is_percent(value->text)) {
        td_field_invalid_str(errors, &path, value->text,
                             "a valid percent string must be a numeric string followed by an "
                             "ending '%' (e.g. '1%',  or '93%', regex used for validation is "
                             "'[0-9]+%')");
        return;
    }
    struct share share = share_read(value);
    if (share.value < 0) {
        td_field_invalid_int(errors, &path, share.value, "must be greater than or equal to 0");
    }
    if (is_capped && share.is_percent && share.value > PERCENT_ALL) {
        td_field_invalid_str(errors, &path, value->text, "must not be greater than 100%");
    }
}

static void invalid_share(struct td_field_errors *errors, const struct td_field_path *path,
                          const struct td_json *value, const char *detail)
{
    if (td_json_is(value, TD_JSON_TYPE_STRING)) {
        td_field_invalid_str(errors, path, value->text, detail);
    } else {
        td_field_invalid_int(errors, path, share_read(value).value, detail);
    }
}

static bool is_rolling(const struct td_json *strategy)
{
    return td_str_equal(td_json_text(strategy, "type"), TD_STR("RollingUpdate"));
}

static void check_deployment_strategy(struct td_field_errors *errors,
                                      const struct td_field_path *spec_path,
                                      const struct td_json *spec)
{
    static const td_str types[] = {TD_STR_INIT("Recreate"), TD_STR_INIT("RollingUpdate")};
    const struct td_json *strategy = td_kind_member(spec, TD_STR("strategy"));
    const struct td_json *rolling = td_kind_member(strategy, TD_STR("rollingUpdate"));
    struct td_field_path path = td_field_child(spec_path, TD_STR("strategy"));
    struct td_field_path rolling_path = td_field_child(&path, TD_STR("rollingUpdate"));
    td_str type = td_json_text(strategy, "type");
    if (td_str_equal(type, types[0])) {
        if (rolling) {
            td_field_forbidden(errors, &rolling_path,
                               "may not be specified when strategy `type` is 'Recreate'");
        }
        return;
    }
    if (!is_rolling(strategy)) {
        td_field_unsupported(errors, &path, type, types, TD_COUNT(types));
        return;
    }
    td_kind_check_share(errors, &rolling_path, rolling, TD_STR("maxUnavailable"), false);
    td_kind_check_share(errors, &rolling_path, rolling, TD_STR("maxSurge"), false);
    const struct td_json *unavailable = td_kind_member(rolling, TD_STR("maxUnavailable"));
    struct share share = share_read(unavailable);
    struct td_field_path place = td_field_child(&rolling_path, TD_STR("maxUnavailable"));
    if (share.value == 0 && share_read(td_kind_member(rolling, TD_STR("maxSurge"))).value == 0) {
        invalid_share(errors, &place, unavailable, "may not be 0 when `maxSurge` is 0");
    }
    if (share.is_percent && share.value > PERCENT_ALL) {
        invalid_share(errors, &place, unavailable, "must not be greater than 100%");
    }
}

static void check_daemon_set_strategy(struct td_field_errors *errors,
                                      const struct td_field_path *spec_path,
                                      const struct td_json *spec)
{
    static const td_str types[] = {TD_STR_INIT("OnDelete"), TD_STR_INIT("RollingUpdate")};
    const struct td_json *strategy = td_kind_member(spec, TD_STR("updateStrategy"));
    const struct td_json *rolling = td_kind_member(strategy, TD_STR("rollingUpdate"));
    struct td_field_path path = td_field_child(spec_path, TD_STR("updateStrategy"));
    td_str type = td_json_text(strategy, "type");
    if (td_str_equal(type, types[0])) {
        return;
    }
    if (!is_rolling(strategy)) {
        td_field_unsupported(errors, &path, type, types, TD_COUNT(types));
        return;
    }
    struct td_field_path rolling_path = td_field_child(&path, TD_STR("rollingUpdate"));
    td_kind_check_share(errors, &rolling_path, rolling, TD_STR("maxUnavailable"), true);
    td_kind_check_share(errors, &rolling_path, rolling, TD_STR("maxSurge"), true);
    const struct td_json *surge = td_kind_member(rolling, TD_STR("maxSurge"));
    bool has_surge = share_read(surge).value != 0;
    bool has_unavailable = share_read(td_kind_member(rolling, TD_STR("maxUnavailable"))).value != 0;
    if (has_surge && has_unavailable) {
        invalid_share(errors, TD_FIELD(&rolling_path, "maxSurge"), surge,
                      "may not be set when maxUnavailable is non-zero");
    } else if (!has_surge && !has_unavailable) {
        td_field_required(errors, TD_FIELD(&rolling_path, "maxUnavailable"),
                          "cannot be 0 when maxSurge is 0");
    }
}

static void check_stateful_set_strategy(struct td_field_errors *errors,
                                        const struct td_field_path *spec_path,
                                        const struct td_json *spec)
{
    const struct td_json *strategy = td_kind_member(spec, TD_STR("updateStrategy"));
    const struct td_json *rolling = td_kind_member(strategy, TD_STR("rollingUpdate"));
    struct td_field_path path = td_field_child(spec_path, TD_STR("updateStrategy"));
    struct td_field_path rolling_path = td_field_child(&path, TD_STR("rollingUpdate"));
    if (td_str_equal(td_json_text(strategy, "type"), TD_STR("OnDelete"))) {
        if (rolling) {
            td_kind_invalid_tree(errors, &rolling_path, rolling,
                                 "only allowed for updateStrategy 'RollingUpdate'");
        }
    } else if (!is_rolling(strategy)) {
        td_kind_invalid_tree(errors, &path, strategy, "must be 'RollingUpdate' or 'OnDelete'");
    } else if (rolling) {
        const struct td_json *unavailable = td_kind_member(rolling, TD_STR("maxUnavailable"));
        td_kind_check_not_negative(errors, &rolling_path, rolling, TD_STR("partition"));
        td_kind_check_share(errors, &rolling_path, rolling, TD_STR("maxUnavailable"), true);
        if (unavailable && share_read(unavailable).value == 0) {
            invalid_share(errors, TD_FIELD(&rolling_path, "maxUnavailable"), unavailable,
                          "cannot be 0");
        }
    }
}

/* Names of what differs between the kinds in upstream's sentences. */
struct workload_words {
    const char *empty_selector; /* "empty selector is invalid for deployment" */
    const char *deadline;       /* "activeDeadlineSeconds in ReplicaSet is not Supported" */
};

static void check_selector(struct td_field_errors *errors, const struct td_field_path *spec_path,
                           const struct td_json *spec, const struct workload_words *words)
{
    const struct td_json *selector = td_kind_member(spec, TD_STR("selector"));
    struct td_field_path path = td_field_child(spec_path, TD_STR("selector"));
    if (!selector) {
        td_field_required(errors, &path, "");
        return;
    }
    td_kind_check_selector(errors, &path, selector);
    const struct td_json *labels = td_kind_member(selector, TD_STR("matchLabels"));
    const struct td_json *expressions = td_kind_member(selector, TD_STR("matchExpressions"));
    if ((!labels || labels->count == 0) && (!expressions || expressions->count == 0)) {
        td_kind_invalid_tree(errors, &path, selector, words->empty_selector);
    }
}

static void check_template(struct td_field_errors *errors, const struct td_field_path *spec_path,
                           const struct td_json *spec, bool is_selected,
                           const struct workload_words *words)
{
    const struct td_json *template = td_kind_member(spec, TD_STR("template"));
    struct td_field_path path = td_field_child(spec_path, TD_STR("template"));
    if (!template) {
        td_field_required(errors, &path, "");
        return;
    }
    if (!is_selected) {
        struct td_field_path labels = td_field_child(TD_FIELD(&path, "metadata"), TD_STR("labels"));
        td_kind_invalid_tree(errors, &labels,
                             td_kind_member(td_kind_metadata(template), TD_STR("labels")),
                             "`selector` does not match template `labels`");
    }
    td_pod_check_template(errors, &path, template);
    struct td_field_path pod = td_field_child(&path, TD_STR("spec"));
    const struct td_json *pod_spec = td_kind_spec(template);
    td_str policy = td_json_text(pod_spec, "restartPolicy");
    if (!td_str_equal(policy, workload_always[0])) {
        td_field_unsupported(errors, TD_FIELD(&pod, "restartPolicy"), policy, workload_always, 1);
    }
    if (td_kind_member(pod_spec, TD_STR("activeDeadlineSeconds"))) {
        td_field_forbidden(errors, TD_FIELD(&pod, "activeDeadlineSeconds"), words->deadline);
    }
}

static void check_common(struct td_field_errors *errors, const struct td_field_path *path,
                         const struct td_json *spec, const struct workload_words *words)
{
    td_kind_check_not_negative(errors, path, spec, TD_STR("replicas"));
    td_kind_check_not_negative(errors, path, spec, TD_STR("minReadySeconds"));
    td_kind_check_not_negative(errors, path, spec, TD_STR("revisionHistoryLimit"));
    check_selector(errors, path, spec, words);
    const struct td_json *selector = td_kind_member(spec, TD_STR("selector"));
    const struct td_json *metadata = td_kind_metadata(td_kind_member(spec, TD_STR("template")));
    const struct td_json *labels = td_kind_member(metadata, TD_STR("labels"));
    if (selector && td_selector_check_json(errors->arena, selector, NULL) < 0) {
        td_kind_invalid_tree(errors, TD_FIELD(path, "selector"), selector,
                             "invalid label selector");
    } else {
        bool is_selected = td_kind_selects(errors->arena, selector, labels);
        check_template(errors, path, spec, is_selected, words);
    }
}

/* Counts of a status: none is negative, and parts are not more than the whole. */
static void check_status(const struct td_kind_write *write, struct td_field_errors *errors)
{
    static const td_str counts[] = {
        TD_STR_INIT("observedGeneration"),  TD_STR_INIT("replicas"),
        TD_STR_INIT("updatedReplicas"),     TD_STR_INIT("readyReplicas"),
        TD_STR_INIT("currentReplicas"),     TD_STR_INIT("fullyLabeledReplicas"),
        TD_STR_INIT("availableReplicas"),   TD_STR_INIT("unavailableReplicas"),
        TD_STR_INIT("terminatingReplicas"), TD_STR_INIT("collisionCount"),
    };
    static const td_str parts[] = {
        TD_STR_INIT("updatedReplicas"),   TD_STR_INIT("readyReplicas"),
        TD_STR_INIT("currentReplicas"),   TD_STR_INIT("fullyLabeledReplicas"),
        TD_STR_INIT("availableReplicas"),
    };
    const struct td_json *status = td_kind_member(write->object, TD_STR("status"));
    struct td_field_path path = td_field_child(NULL, TD_STR("status"));
    for (size_t i = 0; i < TD_COUNT(counts); i++) {
        td_kind_check_not_negative(errors, &path, status, counts[i]);
    }
    int64_t all = td_json_get_int64(status, TD_STR("replicas"), 0);
    for (size_t i = 0; i < TD_COUNT(parts); i++) {
        int64_t part = td_json_get_int64(status, parts[i], 0);
        if (part > all) {
            td_field_invalid_int(errors, TD_FIELD_AT(&path, parts[i]), part,
                                 "cannot be greater than status.replicas");
        }
    }
    int64_t available = td_json_get_int64(status, TD_STR("availableReplicas"), 0);
    if (available > td_json_get_int64(status, TD_STR("readyReplicas"), 0)) {
        td_field_invalid_int(errors, TD_FIELD(&path, "availableReplicas"), available,
                             "cannot be greater than readyReplicas");
    }
}

static void check_selector_kept(const struct td_kind_write *write, struct td_field_errors *errors,
                                const struct td_field_path *path)
{
    if (write->old) {
        td_kind_check_immutable(errors, TD_FIELD(path, "selector"),
                                td_kind_member(td_kind_spec(write->object), TD_STR("selector")),
                                td_kind_member(td_kind_spec(write->old), TD_STR("selector")));
    }
}

static const struct workload_words replica_set_words = {
    .empty_selector = "empty selector is invalid for deployment",
    .deadline = "activeDeadlineSeconds in ReplicaSet is not Supported",
};

static void deployment_validate(const struct td_kind_write *write, struct td_field_errors *errors)
{
    const struct td_json *spec = td_kind_spec(write->object);
    struct td_field_path path = td_field_child(NULL, TD_STR("spec"));
    if (write->operation == TD_WRITE_STATUS) {
        check_status(write, errors);
        return;
    }
    check_common(errors, &path, spec, &replica_set_words);
    check_deployment_strategy(errors, &path, spec);
    td_kind_check_not_negative(errors, &path, spec, TD_STR("progressDeadlineSeconds"));
    int64_t deadline = td_json_get_int64(spec, TD_STR("progressDeadlineSeconds"), INT64_MAX);
    if (deadline <= td_json_get_int64(spec, TD_STR("minReadySeconds"), 0)) {
        td_field_invalid_int(errors, TD_FIELD(&path, "progressDeadlineSeconds"), deadline,
                             "must be greater than minReadySeconds");
    }
    check_selector_kept(write, errors, &path);
}

static void replica_set_validate(const struct td_kind_write *write, struct td_field_errors *errors)
{
    struct td_field_path path = td_field_child(NULL, TD_STR("spec"));
    if (write->operation == TD_WRITE_STATUS) {
        check_status(write, errors);
        return;
    }
    check_common(errors, &path, td_kind_spec(write->object), &replica_set_words);
    check_selector_kept(write, errors, &path);
}

static void daemon_set_validate(const struct td_kind_write *write, struct td_field_errors *errors)
{
    static const struct workload_words words = {
        .empty_selector = "empty selector is invalid for daemonset",
        .deadline = "activeDeadlineSeconds in DaemonSet is not Supported",
    };
    if (write->operation == TD_WRITE_STATUS) {
        return;
    }
    struct td_field_path path = td_field_child(NULL, TD_STR("spec"));
    const struct td_json *spec = td_kind_spec(write->object);
    check_common(errors, &path, spec, &words);
    check_daemon_set_strategy(errors, &path, spec);
    check_selector_kept(write, errors, &path);
}

/* Everything but a handful of members is fixed once the set exists. */
static void check_stateful_set_kept(const struct td_kind_write *write,
                                    struct td_field_errors *errors,
                                    const struct td_field_path *path)
{
    static const td_str mutable_members[] = {
        TD_STR_INIT("replicas"),
        TD_STR_INIT("template"),
        TD_STR_INIT("updateStrategy"),
        TD_STR_INIT("minReadySeconds"),
        TD_STR_INIT("ordinals"),
        TD_STR_INIT("revisionHistoryLimit"),
        TD_STR_INIT("persistentVolumeClaimRetentionPolicy"),
    };
    struct td_json *now = td_json_copy(write->arena, td_kind_spec(write->object), false);
    const struct td_json *before = td_kind_spec(write->old);
    for (size_t i = 0; i < TD_COUNT(mutable_members); i++) {
        td_kind_take(write->arena, now, before, mutable_members[i]);
    }
    if (!td_json_equal(now, before)) {
        td_field_forbidden(
            errors, path,
            "updates to statefulset spec for fields other than 'replicas', 'ordinals', "
            "'template', 'updateStrategy', 'revisionHistoryLimit', "
            "'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden");
    }
}

/* The volumes of the claims are there for the template's containers. */
static const struct td_json *stateful_set_spec(const struct td_kind_write *write)
{
    const struct td_json *given = td_kind_spec(write->object);
    const struct td_json *claims = td_kind_member(given, TD_STR("volumeClaimTemplates"));
    if (!claims || claims->count == 0) {
        return given;
    }
    struct td_arena *arena = write->arena;
    struct td_json *spec = td_json_copy(arena, given, false);
    struct td_json *pod = td_json_get_path(spec, "template.spec");
    if (!pod) {
        return spec;
    }
    struct td_json *volumes = td_json_new_array(arena);
    struct td_json *names = td_json_new_object(arena);
    for (const struct td_json *claim = td_json_first_item(claims); claim; claim = claim->next) {
        td_str name = td_json_text(td_kind_metadata(claim), "name");
        struct td_json *volume = td_json_new_object(arena);
        td_json_set_str(arena, volume, TD_STR("name"), name);
        struct td_json *source =
            td_json_ensure_object(arena, volume, TD_STR("persistentVolumeClaim"));
        td_json_set_str(arena, source, TD_STR("claimName"), name);
        td_json_append(volumes, volume);
        td_json_set(arena, names, name, td_json_new_null(arena));
    }
    const struct td_json *own = td_json_first_item(td_kind_member(pod, TD_STR("volumes")));
    for (; own; own = own->next) {
        if (!td_json_get(names, td_json_text(own, "name"))) {
            td_json_append(volumes, td_json_copy(arena, own, false));
        }
    }
    td_json_set(arena, pod, TD_STR("volumes"), volumes);
    return spec;
}

static void stateful_set_validate(const struct td_kind_write *write, struct td_field_errors *errors)
{
    static const struct workload_words words = {
        .empty_selector = "empty selector is invalid for statefulset",
        .deadline = "activeDeadlineSeconds in StatefulSet is not Supported",
    };
    static const td_str retentions[] = {TD_STR_INIT("Retain"), TD_STR_INIT("Delete")};
    if (write->operation == TD_WRITE_STATUS) {
        check_status(write, errors);
        return;
    }
    struct td_field_path path = td_field_child(NULL, TD_STR("spec"));
    const struct td_json *spec = stateful_set_spec(write);
    td_str management = td_json_text(spec, "podManagementPolicy");
    if (!td_str_equal(management, TD_STR("OrderedReady")) &&
        !td_str_equal(management, TD_STR("Parallel"))) {
        td_field_invalid_str(errors, TD_FIELD(&path, "podManagementPolicy"), management,
                             "must be 'OrderedReady' or 'Parallel'");
    }
    check_stateful_set_strategy(errors, &path, spec);
    const struct td_json *retention =
        td_kind_member(spec, TD_STR("persistentVolumeClaimRetentionPolicy"));
    struct td_field_path place =
        td_field_child(&path, TD_STR("persistentVolumeClaimRetentionPolicy"));
    if (retention) {
        td_kind_check_one_of(errors, &place, retention, TD_STR("whenDeleted"), retentions, 2);
        td_kind_check_one_of(errors, &place, retention, TD_STR("whenScaled"), retentions, 2);
    }
    td_str service = td_json_text(spec, "serviceName");
    if (!write->old && service.len > 0) {
        td_kind_check_name_at(errors, TD_FIELD(&path, "serviceName"), service,
                              td_name_check_dns1123_label);
    }
    check_common(errors, &path, spec, &words);
    if (write->old) {
        check_stateful_set_kept(write, errors, &path);
    }
}

static void replication_controller_validate(const struct td_kind_write *write,
                                            struct td_field_errors *errors)
{
    static const struct workload_words words = {
        .deadline = "activeDeadlineSeconds in ReplicationController is not Supported",
    };
    if (write->operation == TD_WRITE_STATUS) {
        check_status(write, errors);
        return;
    }
    const struct td_json *spec = td_kind_spec(write->object);
    const struct td_json *selector = td_kind_member(spec, TD_STR("selector"));
    struct td_field_path path = td_field_child(NULL, TD_STR("spec"));
    td_kind_check_not_negative(errors, &path, spec, TD_STR("minReadySeconds"));
    if (!selector || selector->count == 0) {
        td_field_required(errors, TD_FIELD(&path, "selector"), "");
    }
    td_kind_check_not_negative(errors, &path, spec, TD_STR("replicas"));
    const struct td_json *labels = td_json_get_path(spec, "template.metadata.labels");
    bool is_selected = true;
    for (const struct td_json *item = td_json_first_member(selector); item; item = item->next) {
        is_selected = is_selected && td_kind_same(item, td_json_get(labels, item->key));
    }
    check_template(errors, &path, spec, is_selected, &words);
}

static void revision_validate(const struct td_kind_write *write, struct td_field_errors *errors)
{
    td_kind_check_not_negative(errors, NULL, write->object, TD_STR("revision"));
    if (write->old) {
        td_kind_check_immutable(errors, TD_FIELD(NULL, "data"),
                                td_json_get(write->object, TD_STR("data")),
                                td_json_get(write->old, TD_STR("data")));
    }
}

/* Old clients count changes of the template by an annotation. */
static void daemon_set_prepare(struct td_kind_write *write)
{
    if (write->operation == TD_WRITE_STATUS) {
        return;
    }
    int64_t count = 1;
    if (write->old) {
        const struct td_json *before =
            td_kind_member(td_kind_metadata(write->old), TD_STR("annotations"));
        (void)td_str_to_int64(td_json_text(before, TEMPLATE_GENERATION),
                              &count); /* never counted: 1 */
        bool is_changed = !td_kind_same_member(td_kind_spec(write->object),
                                               td_kind_spec(write->old), TD_STR("template"));
        count += is_changed && count < INT64_MAX ? 1 : 0;
    }
    struct td_json *annotations =
        td_json_ensure_object(write->arena, td_kind_metadata(write->object), TD_STR("annotations"));
    td_json_set_str(write->arena, annotations, TD_STR(TEMPLATE_GENERATION),
                    td_arena_format(write->arena, "%lld", (long long)count));
}

static const struct td_kind_field_rule replica_fields[] = {
    {TD_STR_INIT("status.replicas"), NULL, TD_STR_INIT("0")},
};

const struct td_kind_rules td_kind_workload_rules[] = {
    {TD_KIND("apps", "Deployment", deployment_validate)},
    {TD_KIND("apps", "ReplicaSet", replica_set_validate), TD_KIND_FIELDS(replica_fields)},
    {TD_KIND("apps", "StatefulSet", stateful_set_validate),
     .check_name = td_name_check_dns1123_label},
    {TD_KIND("apps", "DaemonSet", daemon_set_validate), .prepare = daemon_set_prepare},
    {TD_KIND("", "ReplicationController", replication_controller_validate),
     TD_KIND_FIELDS(replica_fields)},
    {TD_KIND("apps", "ControllerRevision", revision_validate)},
    TD_KIND_END,
};
