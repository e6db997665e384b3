/*
 * Pods: what a write may set (status, resize and ephemeral containers each have their own door),
 * the quality of service class, and the fields that schedulers, kubelets and users select by.
 */
#include "local/kinds/kinds_pod.h"

/* A pod that is held back by scheduling gates says so from the start. */
static void pod_add_gated_condition(struct td_kind_write *write, struct td_json *status)
{
    const struct td_json *gates =
        td_kind_member(td_kind_spec(write->object), TD_STR("schedulingGates"));
    if (!gates || gates->count == 0) {
        return;
    }
    struct td_arena *arena = write->arena;
    struct td_json *condition = td_json_new_object(arena);
    td_json_set_str(arena, condition, TD_STR("type"), TD_STR("PodScheduled"));
    td_json_set_str(arena, condition, TD_STR("status"), TD_STR("False"));
    td_json_set(arena, condition, TD_STR("lastProbeTime"), td_json_new_null(arena));
    td_json_set_str(arena, condition, TD_STR("lastTransitionTime"), td_kind_now(write));
    td_json_set_str(arena, condition, TD_STR("reason"), TD_STR("SchedulingGated"));
    td_json_set_str(arena, condition, TD_STR("message"),
                    TD_STR("Scheduling is blocked due to non-empty scheduling gates"));
    struct td_json *conditions = td_json_new_array(arena);
    td_json_append(conditions, condition);
    td_json_set(arena, status, TD_STR("conditions"), conditions);
}

static void pod_prepare_create(struct td_kind_write *write)
{
    struct td_json *status = td_json_new_object(write->arena);
    td_json_set_str(write->arena, status, TD_STR("phase"), TD_STR("Pending"));
    td_json_set_str(write->arena, status, TD_STR("qosClass"),
                    td_pod_qos_class(write->arena, write->object));
    pod_add_gated_condition(write, status);
    td_json_set(write->arena, write->object, TD_STR("status"), status);
}

/* The stored containers with the new ones' resources; as they came when they are not the same
 * containers, which validation refuses. */
static void pod_keep_resources(struct td_arena *arena, struct td_json *spec,
                               const struct td_json *new_spec, td_str list)
{
    const struct td_json *given = td_kind_member(new_spec, list);
    struct td_json *stored = td_kind_member(spec, list);
    const struct td_json *from = td_json_first_item(given);
    for (struct td_json *to = td_json_first_item(stored); to && from; from = from->next) {
        if (!td_str_equal(td_json_text(to, "name"), td_json_text(from, "name"))) {
            td_json_set_copy(arena, spec, list, given);
            return;
        }
        td_kind_take(arena, to, from, TD_STR("resources"));
        td_kind_take(arena, to, from, TD_STR("resizePolicy"));
        to = to->next;
    }
}

static size_t pod_count(const struct td_json *spec, td_str list)
{
    return td_json_item_count(td_kind_member(spec, list));
}

/* Labels, annotations and the like are not the business of a subresource. */
static void pod_restore_metadata(struct td_kind_write *write)
{
    static const td_str members[] = {TD_STR_INIT("labels"),
                                     TD_STR_INIT("annotations"),
                                     TD_STR_INIT("finalizers"),
                                     TD_STR_INIT("ownerReferences"),
                                     TD_STR_INIT("deletionTimestamp"),
                                     TD_STR_INIT("deletionGracePeriodSeconds")};
    struct td_json *metadata = td_kind_metadata(write->object);
    for (size_t i = 0; i < TD_COUNT(members); i++) {
        td_kind_take(write->arena, metadata, td_kind_metadata(write->old), members[i]);
    }
}

static void pod_prepare_resize(struct td_kind_write *write)
{
    static const td_str lists[] = {TD_STR_INIT("containers"), TD_STR_INIT("initContainers")};
    const struct td_json *before = td_kind_spec(write->old);
    const struct td_json *now = td_kind_spec(write->object);
    for (size_t i = 0; i < TD_COUNT(lists); i++) {
        if (pod_count(now, lists[i]) != pod_count(before, lists[i])) {
            return; /* refused by validation */
        }
    }
    struct td_json *spec = td_json_copy(write->arena, before, false);
    for (size_t i = 0; i < TD_COUNT(lists); i++) {
        pod_keep_resources(write->arena, spec, now, lists[i]);
    }
    td_kind_take(write->arena, spec, now, TD_STR("resources"));
    td_json_set(write->arena, write->object, TD_STR("spec"), spec);
    pod_restore_metadata(write);
}

static void pod_prepare_ephemeral(struct td_kind_write *write)
{
    const struct td_json *now = td_kind_spec(write->object);
    struct td_json *spec = td_json_copy(write->arena, td_kind_spec(write->old), false);
    td_kind_take(write->arena, spec, now, TD_STR("ephemeralContainers"));
    td_json_set(write->arena, write->object, TD_STR("spec"), spec);
    pod_restore_metadata(write);
}

static void pod_prepare(struct td_kind_write *write)
{
    switch (write->operation) {
    case TD_WRITE_CREATE:
        pod_prepare_create(write);
        break;
    case TD_WRITE_RESIZE:
        pod_prepare_resize(write);
        break;
    case TD_WRITE_EPHEMERAL:
        pod_prepare_ephemeral(write);
        break;
    case TD_WRITE_STATUS: {
        struct td_json *status =
            td_json_ensure_object(write->arena, write->object, TD_STR("status"));
        if (td_json_text(status, "qosClass").len == 0) {
            td_kind_take(write->arena, status, td_kind_member(write->old, TD_STR("status")),
                         TD_STR("qosClass"));
        }
        break;
    }
    case TD_WRITE_UPDATE:
        break;
    }
}

static const struct td_kind_field_rule pod_fields[] = {
    {TD_STR_INIT("spec.nodeName"), NULL, TD_STR_INIT("")},
    {TD_STR_INIT("spec.restartPolicy"), NULL, TD_STR_INIT("")},
    {TD_STR_INIT("spec.schedulerName"), NULL, TD_STR_INIT("")},
    {TD_STR_INIT("spec.serviceAccountName"), NULL, TD_STR_INIT("")},
    {TD_STR_INIT("spec.hostNetwork"), NULL, TD_STR_INIT("false")},
    {TD_STR_INIT("status.phase"), NULL, TD_STR_INIT("")},
    {TD_STR_INIT("status.podIP"), NULL, TD_STR_INIT("")},
    {TD_STR_INIT("status.nominatedNodeName"), NULL, TD_STR_INIT("")},
};

static void pod_validate(const struct td_kind_write *write, struct td_field_errors *errors)
{
    struct td_field_path path = td_field_child(NULL, TD_STR("spec"));
    const struct td_json *spec = td_kind_spec(write->object);
    if (write->operation == TD_WRITE_STATUS) {
        return;
    }
    if (write->operation == TD_WRITE_CREATE) {
        td_pod_check_new(errors, &path, spec);
        return;
    }
    td_pod_check_spec(errors, &path, spec);
    if (write->operation == TD_WRITE_UPDATE) {
        td_pod_check_update(write, errors);
    } else if (write->operation == TD_WRITE_RESIZE) {
        td_pod_check_resize(write, errors);
    }
}

static void pod_template_validate(const struct td_kind_write *write, struct td_field_errors *errors)
{
    td_pod_check_template(errors, TD_FIELD(NULL, "template"),
                          td_kind_member(write->object, TD_STR("template")));
}

const struct td_kind_rules td_kind_pod_rules[] = {
    {TD_KIND("", "Pod", pod_validate), TD_KIND_FIELDS(pod_fields), .prepare = pod_prepare},
    {TD_KIND("", "PodTemplate", pod_template_validate)},
    TD_KIND_END,
};
