/* The pod is made from the template, patched as admission would patch it, and validated twice: what
 * is wrong without the patch too is not the patch's fault. */
#include "decide/vertical/updater/replacement.h"

#include "api/pod/pod_validate.h"
#include "base/buf.h"
#include "base/limits.h"
#include "decide/vertical/patch/podpatch.h"
#include "decide/vertical/updater/selected.h"
#include "kube/patch/patch.h"

/* ---- The pod ---- */

/* As the owner would send it, and the API server decode it. */
static struct td_json *make_pod(struct td_arena *arena, const struct td_replacement_input *input)
{
    struct td_json *pod = td_json_new_object(arena);
    td_json_set_str(arena, pod, TD_STR("apiVersion"), TD_STR("v1"));
    td_json_set_str(arena, pod, TD_STR("kind"), TD_STR("Pod"));
    const struct td_json *template = td_json_get(input->template, TD_STR("metadata"));
    struct td_json *metadata = td_json_is(template, TD_JSON_TYPE_OBJECT)
                                   ? td_json_copy(arena, template, false)
                                   : td_json_new_object(arena);
    td_json_set_str(arena, metadata, TD_STR("name"), input->pod->meta.name);
    td_json_set_str(arena, metadata, TD_STR("namespace"), input->pod->meta.namespace);
    td_json_set(arena, pod, TD_STR("metadata"), metadata);
    td_json_set(arena, pod, TD_STR("spec"),
                td_json_copy(arena, td_json_get(input->template, TD_STR("spec")), false));
    td_default_pod(arena, pod);
    td_pod_limit_defaults(arena, &input->limit_objects, pod);
    return pod;
}

/* What a VPA makes of it; *ret_refusal is why admission itself would refuse it. NULL: nothing. */
static const struct td_json *patch_of_vpa(struct td_arena *arena,
                                          const struct td_replacement_input *input,
                                          const struct td_pod *pod, td_str *ret_refusal)
{
    static const struct td_limit_ranges no_limits;
    struct td_pod_patch patch;
    const struct td_pod_patch_input admission = {
        .pod = pod,
        .vpa = input->vpa,
        .limits = input->limits ? input->limits : &no_limits,
        .gates = input->gates,
        .max_cpu_boost = input->max_cpu_boost,
        .largest_node = input->largest_node,
        .warns_of_limit_range = input->warns_of_limit_range,
    };
    if (td_pod_patch(arena, &admission, &patch, NULL) < 0) {
        return NULL;
    }
    *ret_refusal = patch.is_rejected ? patch.message : TD_STR_EMPTY;
    return patch.is_rejected ? NULL : patch.patches;
}

static const struct td_json *patch_of_hvpa(struct td_arena *arena,
                                           const struct td_replacement_input *input,
                                           const struct td_pod *pod, td_str *ret_refusal)
{
    const struct td_pod_sizes_patch patch =
        td_pod_sizes_patch(arena, input->sizes, pod, input->limits);
    if (patch.is_kept_out) {
        *ret_refusal = TD_STR("a LimitRange of type Pod does not allow the decided sizes, so the "
                              "replacement would be admitted without them");
    }
    return patch.patches;
}

/* Changed as admission would; *ret_refusal is why that would be of no use. */
static struct td_json *admit(struct td_arena *arena, const struct td_replacement_input *input,
                             struct td_json *pod, td_str *ret_refusal)
{
    struct td_pod decoded;
    struct td_json *patched = NULL;
    if (td_pod_decode(arena, pod, &decoded, NULL) < 0) {
        return pod; /* admitted as it is */
    }
    const struct td_json *patches = input->sizes
                                        ? patch_of_hvpa(arena, input, &decoded, ret_refusal)
                                        : patch_of_vpa(arena, input, &decoded, ret_refusal);
    if (!patches || td_patch_json(arena, pod, patches, &patched, NULL) < 0) {
        return pod;
    }
    td_default_pod(arena, patched);
    return patched;
}

/* ---- What an API server says of it ---- */

static struct td_field_errors check(struct td_arena *arena, const struct td_json *pod)
{
    struct td_field_errors errors = {.arena = arena};
    struct td_field_path spec = td_field_child(NULL, TD_STR("spec"));
    td_pod_check_new(&errors, &spec, td_json_get(pod, TD_STR("spec")));
    return errors;
}

static bool has_error(const struct td_field_errors *errors, const struct td_field_error *error)
{
    for (size_t i = 0; i < errors->count; i++) {
        if (td_str_equal(errors->items[i].field, error->field) &&
            errors->items[i].type == error->type) {
            return true;
        }
    }
    return false;
}

/* The first fault that the change brings. */
static td_str new_fault(struct td_arena *arena, const struct td_json *before,
                        const struct td_json *after)
{
    struct td_field_errors old = check(arena, before);
    struct td_field_errors now = check(arena, after);
    for (size_t i = 0; i < now.count; i++) {
        if (!has_error(&old, &now.items[i])) {
            td_auto_buf text = td_buf_capped(TD_OBJECT_BYTES_MAX);
            td_field_error_write(&now.items[i], &text);
            return td_arena_copy_str(arena, td_buf_str(&text));
        }
    }
    return TD_STR_EMPTY;
}

td_str td_replacement_problem(struct td_arena *arena, const struct td_replacement_input *input)
{
    struct td_labels labels =
        td_labels_from_json(arena, td_json_get_path(input->template, "metadata.labels"));
    if (input->vpa &&
        !td_vpa_selects_replacement(arena, input->vpa, input->gates.heterogeneous_workloads,
                                    &labels, &input->pod->meta.labels)) {
        return TD_STR(
            "with the labels of its owner's pod template it would not be selected by this VPA");
    }
    struct td_json *pod = make_pod(arena, input);
    td_str problem = TD_STR_EMPTY;
    struct td_json *admitted = admit(arena, input, pod, &problem);
    problem = problem.len > 0 ? problem : new_fault(arena, pod, admitted);
    problem =
        problem.len > 0 ? problem : td_pod_limit_problems(arena, &input->limit_objects, admitted);
    return problem.len > 0
               ? problem
               : td_pod_quota_problem(arena, &input->quotas, admitted, input->pod->tree);
}

/* ---- What became of others ---- */

static int64_t number_at(const struct td_json *object, const char *path, int64_t fallback)
{
    const struct td_json *node = td_json_get_path(object, path);
    int64_t number = fallback;
    bool is_read = td_json_is(node, TD_JSON_TYPE_NUMBER) && td_json_to_int64(node, &number);
    return is_read ? number : fallback;
}

/* Does it have fewer pods than it should, those that are on their way out left out? */
static bool lacks_pods(const struct td_json *owner)
{
    int64_t daemons = number_at(owner, "status.desiredNumberScheduled", -1);
    if (daemons >= 0) {
        return number_at(owner, "status.currentNumberScheduled", 0) < daemons;
    }
    int64_t parallelism = number_at(owner, "spec.parallelism", -1);
    if (parallelism >= 0) {
        return number_at(owner, "status.active", 0) < parallelism;
    }
    return number_at(owner, "status.replicas", 0) < number_at(owner, "spec.replicas", 1);
}

/* Condition ReplicaFailure of ReplicaSets and ReplicationControllers. */
static td_str replica_failure(const struct td_json *owner)
{
    const struct td_json *list = td_json_get_path(owner, "status.conditions");
    for (const struct td_json *item = td_json_first_item(list); item; item = item->next) {
        bool is_it = td_str_equal(td_json_text(item, "type"), TD_STR("ReplicaFailure")) &&
                     td_str_equal(td_json_text(item, "status"), TD_STR("True")) &&
                     td_str_equal(td_json_text(item, "reason"), TD_STR("FailedCreate"));
        if (is_it) {
            return td_json_get_str(item, TD_STR("message"), TD_STR("FailedCreate"));
        }
    }
    return TD_STR_EMPTY;
}

/* When it was last seen, of old and new events; times of one form compare as text. */
static td_str event_time(const struct td_json *event)
{
    static const char *const places[] = {"series.lastObservedTime", "lastTimestamp", "eventTime",
                                         "metadata.creationTimestamp"};
    for (size_t i = 0; i < TD_COUNT(places); i++) {
        const struct td_json *time = td_json_get_path(event, places[i]);
        if (td_json_is(time, TD_JSON_TYPE_STRING) && time->text.len > 0) {
            return td_str_slice(time->text, 0, TD_STR("2026-01-01T00:00:00").len);
        }
    }
    return TD_STR_EMPTY;
}

td_str td_owner_problem(struct td_arena *arena, const struct td_json *owner,
                        const struct td_json *events)
{
    td_str why = replica_failure(owner);
    td_str failed = TD_STR_EMPTY;
    td_str made = TD_STR_EMPTY;
    td_str message = TD_STR_EMPTY;
    for (const struct td_json *event = td_json_first_item(events); event; event = event->next) {
        td_str reason = td_json_text(event, "reason");
        td_str at = event_time(event);
        if (td_str_equal(reason, TD_STR("FailedCreate")) && td_str_compare(at, failed) >= 0) {
            failed = at;
            message = td_json_get_str(event, TD_STR("message"), reason);
        } else if (td_str_equal(reason, TD_STR("SuccessfulCreate")) &&
                   td_str_compare(at, made) > 0) {
            made = at;
        }
    }
    bool is_failing = lacks_pods(owner) && td_str_compare(failed, made) > 0;
    why = why.len == 0 && is_failing ? message : why;
    return why.len == 0
               ? why
               : td_arena_format(arena, "its owner cannot create pods: %.*s", TD_STR_ARG(why));
}
