/*
 * Two things one can do to a pod beside writing it: bind it to a node, and ask for its eviction,
 * which a disruption budget may refuse. The budget's own numbers are kept by its controller; an
 * eviction takes one disruption off at once, so that two at the same moment cannot both pass.
 */
#include "base/error.h"
#include "kube/selector/labels.h"
#include "kube/selector/selector.h"
#include "local/api/write.h"
#include "local/kinds/condition.h"
#include "local/store/edit.h"
#include "local/store/store.h"
#include "model/pod.h"

#define POD_DISRUPTED_MAX 2000 /* evictions that a budget's controller has not seen yet */

static void pod_reply_success(struct td_api_call *call)
{
    struct td_arena *arena = &call->arena;
    struct td_json *status = td_json_new_object(arena);
    td_json_set_str(arena, status, TD_STR("kind"), TD_STR("Status"));
    td_json_set_str(arena, status, TD_STR("apiVersion"), TD_STR("v1"));
    td_json_set(arena, status, TD_STR("metadata"), td_json_new_object(arena));
    td_json_set_str(arena, status, TD_STR("status"), TD_STR("Success"));
    td_json_set_int64(arena, status, TD_STR("code"), 201);
    td_call_reply_json(call, 201, status);
}

static void pod_reply_error(struct td_api_call *call, const struct td_error *err)
{
    if (err->code == TD_NOT_FOUND) {
        td_call_not_found(call, call->path.name);
    } else if (err->code == TD_CONFLICT) {
        td_call_conflict(call, call->path.name, err->message);
    } else {
        td_call_fail(call, 500, "InternalError", "%s", err->message);
    }
}

/* The body, of the kind named; false when the call was answered. */
static bool pod_decode(struct td_api_call *call, const char *version, const char *kind,
                       struct td_json **ret)
{
    const struct td_body_want want = {
        .api_version = td_str_from(version),
        .kind = td_str_from(kind),
        .type = td_schema_find(td_str_from(version), td_str_from(kind)),
        .is_checked = true,
    };
    if (!td_body_decode(call, &want, ret)) {
        return false;
    }
    td_str name = td_json_text(td_json_get(*ret, TD_STR("metadata")), "name");
    if (call->path.name.len == 0) {
        call->path.name = name; /* POST bindings: the name is in the body only */
    }
    if (call->path.name.len > 0 && (name.len == 0 || td_str_equal(name, call->path.name))) {
        return true;
    }
    td_call_fail(call, 400, "BadRequest", "name in URL does not match name in %s object", kind);
    return false;
}

/* The condition of that type is set, and others kept. */
static void pod_set_condition(struct td_api_call *call, struct td_json *pod, const char *type,
                              const char *reason, const char *message)
{
    struct td_arena *arena = &call->arena;
    struct td_json *status = td_json_ensure_object(arena, pod, TD_STR("status"));
    struct td_json *conditions = td_json_ensure_array(arena, status, TD_STR("conditions"));
    struct td_json *condition = td_condition_find(status, td_str_from(type));
    if (!condition) {
        condition = td_json_new_object(arena);
        td_json_set_str(arena, condition, TD_STR("type"), td_str_from(type));
        td_json_append(conditions, condition);
    }
    td_json_set_str(arena, condition, TD_STR("status"), TD_STR("True"));
    td_json_set(arena, condition, TD_STR("lastProbeTime"), td_json_new_null(arena));
    td_json_set(arena, condition, TD_STR("lastTransitionTime"),
                td_meta_time(arena, td_call_now(call)));
    if (reason) {
        td_json_set_str(arena, condition, TD_STR("reason"), td_str_from(reason));
        td_json_set_str(arena, condition, TD_STR("message"), td_str_from(message));
    }
}

/* ---- Binding ---- */

static bool pod_bind_check(struct td_api_call *call, const struct td_json *pod, td_str node)
{
    td_str bound = td_json_text(td_json_get(pod, TD_STR("spec")), "nodeName");
    if (node.len == 0) {
        struct td_field_errors errors = {.arena = &call->arena};
        td_field_required(&errors, TD_FIELD(TD_FIELD(NULL, "target"), "name"), "");
        td_call_invalid(call, TD_STR("Binding"), call->path.name, &errors);
        return false;
    }
    if (td_json_get_path(pod, "metadata.deletionTimestamp")) {
        td_call_conflict(call, call->path.name,
                         "pod is being deleted, cannot be assigned to a host");
        return false;
    }
    if (bound.len > 0) {
        td_str text = td_arena_format(&call->arena, "pod %.*s is already assigned to node \"%.*s\"",
                                      TD_STR_ARG(call->path.name), TD_STR_ARG(bound));
        td_call_conflict(call, call->path.name, text.ptr);
        return false;
    }
    return true;
}

void td_pod_bind(struct td_api_call *call)
{
    struct td_json *binding;
    if (!pod_decode(call, "v1", "Binding", &binding)) {
        return;
    }
    struct td_arena *arena = &call->arena;
    const struct td_resource *pods = td_api_kind(call->api, TD_STR("v1"), TD_STR("Pod"));
    struct td_error err = TD_ERROR_INIT;
    struct td_json *pod;
    if (td_edit_get(call->api, pods, call->path.ns, call->path.name, arena, &pod, &err) != TD_OK) {
        pod_reply_error(call, &err);
        return;
    }
    td_str node = td_json_text(td_json_get(binding, TD_STR("target")), "name");
    if (!pod_bind_check(call, pod, node)) {
        return;
    }
    td_json_set_str(arena, td_json_ensure_object(arena, pod, TD_STR("spec")), TD_STR("nodeName"),
                    node);
    const struct td_json *annotations = td_json_get_path(binding, "metadata.annotations");
    for (const struct td_json *a = td_json_first_member(annotations); a; a = a->next) {
        struct td_json *metadata = td_json_get(pod, TD_STR("metadata"));
        struct td_json *kept = td_json_ensure_object(arena, metadata, TD_STR("annotations"));
        td_json_set_copy(arena, kept, a->key, a);
    }
    pod_set_condition(call, pod, "PodScheduled", NULL, NULL);
    if (!call->query.is_dry_run && td_edit_put(call->api, pods, arena, pod, &err) != TD_OK) {
        pod_reply_error(call, &err);
        return;
    }
    pod_reply_success(call);
}

/* ---- Eviction ---- */

struct pod_eviction {
    struct td_api_call *call;
    const struct td_json *body;
    struct td_json *pod;
    td_str uid;
    int64_t grace_seconds; /* -1: the pod's own */
};

static bool pod_is_ready(const struct td_json *pod)
{
    return td_condition_is(td_json_get(pod, TD_STR("status")), TD_STR("Ready"), TD_STR("True"));
}

/* Evicting a pod that is over, not yet begun or already going is no disruption. */
static bool pod_needs_no_budget(const struct td_json *pod)
{
    td_str phase = td_json_text(td_json_get(pod, TD_STR("status")), "phase");
    return td_pod_tree_is_over(pod) || td_str_equal(phase, TD_STR("Pending")) ||
           td_json_get_path(pod, "metadata.deletionTimestamp");
}

/* The budgets that select the pod: how many, and the first of them. */
static size_t pod_find_budgets(struct td_api_call *call, const struct td_json *pod,
                               struct td_json **ret)
{
    struct td_arena *arena = &call->arena;
    const struct td_collection *budgets =
        td_store_find(td_api_store(call->api), TD_STR("poddisruptionbudgets.policy"));
    struct td_labels labels = td_labels_from_json(arena, td_json_get_path(pod, "metadata.labels"));
    size_t count = 0;
    struct td_collection_iter iter = td_collection_walk(budgets, call->path.ns);
    for (const struct td_stored *stored; (stored = td_collection_iter_next(&iter));) {
        struct td_json *budget;
        struct td_selector selector;
        if (td_json_parse(arena, stored->json, &(struct td_json_options){.copy_strings = true},
                          &budget, NULL) != TD_OK ||
            td_selector_from_json(arena, td_json_get_path(budget, "spec.selector"), &selector,
                                  NULL) != TD_OK ||
            !td_selector_matches(&selector, &labels)) {
            continue;
        }
        if (count++ == 0) {
            *ret = budget;
        }
    }
    return count;
}

static void pod_refuse_by_budget(struct td_api_call *call, const char *message, td_str cause,
                                 int retry_after_seconds)
{
    struct td_arena *arena = &call->arena;
    struct td_json *status = td_call_status(call, 429, "TooManyRequests", td_str_from(message));
    struct td_json *details = td_json_ensure_object(arena, status, TD_STR("details"));
    if (cause.len > 0) {
        struct td_json *causes = td_json_new_array(arena);
        struct td_json *entry = td_json_new_object(arena);
        td_json_set_str(arena, entry, TD_STR("reason"), TD_STR("DisruptionBudget"));
        td_json_set_str(arena, entry, TD_STR("message"), cause);
        td_json_append(causes, entry);
        td_json_set(arena, details, TD_STR("causes"), causes);
    }
    if (retry_after_seconds > 0) {
        td_json_set_int64(arena, details, TD_STR("retryAfterSeconds"), retry_after_seconds);
        call->retry_after_seconds = retry_after_seconds;
    }
    td_call_reply_json(call, 429, status);
}

static bool pod_ignores_budget(const struct td_json *pod, const struct td_json *budget)
{
    const struct td_json *status = td_json_get(budget, TD_STR("status"));
    td_str policy = td_json_text(td_json_get(budget, TD_STR("spec")), "unhealthyPodEvictionPolicy");
    int64_t desired = td_json_get_int64(status, TD_STR("desiredHealthy"), 0);
    int64_t current = td_json_get_int64(status, TD_STR("currentHealthy"), 0);
    bool is_always = td_str_equal(policy, TD_STR("AlwaysAllow"));
    return !pod_is_ready(pod) && (is_always || (desired > 0 && current >= desired));
}

/* Why a budget allows nothing. What could not be judged is said first: its numbers mean nothing. */
static td_str pod_budget_cause(struct td_arena *arena, td_str name, const struct td_json *status)
{
    const struct td_json *condition = td_condition_find(status, TD_STR("DisruptionAllowed"));
    td_str reason = td_json_text(condition, "reason");
    td_str message = td_json_text(condition, "message");
    int64_t desired = td_json_get_int64(status, TD_STR("desiredHealthy"), 0);
    int64_t current = td_json_get_int64(status, TD_STR("currentHealthy"), 0);
    bool says_why =
        td_condition_is(status, TD_STR("DisruptionAllowed"), TD_STR("False")) && message.len > 0;
    if (says_why && td_str_equal(reason, TD_STR("SyncFailed"))) {
        return td_arena_format(arena,
                               "The disruption budget %.*s does not allow evicting pods currently "
                               "because it failed sync: %.*s",
                               TD_STR_ARG(name), TD_STR_ARG(message));
    }
    if (current <= desired) {
        return td_arena_format(
            arena, "The disruption budget %.*s needs %lld healthy pods and has %lld currently",
            TD_STR_ARG(name), (long long)desired, (long long)current);
    }
    return says_why
               ? td_arena_format(arena,
                                 "The disruption budget %.*s does not allow evicting pods "
                                 "currently (%.*s): %.*s",
                                 TD_STR_ARG(name), TD_STR_ARG(reason), TD_STR_ARG(message))
               : td_arena_format(
                     arena, "The disruption budget %.*s does not allow evicting pods currently",
                     TD_STR_ARG(name));
}

/* Takes one disruption off the budget; false when the call was answered. */
static bool pod_spend_budget(struct pod_eviction *eviction, struct td_json *budget)
{
    struct td_api_call *call = eviction->call;
    struct td_arena *arena = &call->arena;
    const struct td_json *metadata = td_json_get(budget, TD_STR("metadata"));
    td_str name = td_json_text(metadata, "name");
    struct td_json *status = td_json_ensure_object(arena, budget, TD_STR("status"));
    int64_t allowed = td_json_get_int64(status, TD_STR("disruptionsAllowed"), 0);
    if (td_json_get_int64(status, TD_STR("observedGeneration"), 0) <
        td_json_get_int64(metadata, TD_STR("generation"), 0)) {
        pod_refuse_by_budget(
            call, "Cannot evict pod as it would violate the pod's disruption budget.",
            td_arena_format(arena,
                            "The disruption budget %.*s is still being processed by the "
                            "server.",
                            TD_STR_ARG(name)),
            10);
        return false;
    }
    struct td_json *disrupted = td_json_ensure_object(arena, status, TD_STR("disruptedPods"));
    if (disrupted->count > POD_DISRUPTED_MAX) {
        td_call_fail(call, 403, "Forbidden",
                     "pods \"%.*s\" is forbidden: DisruptedPods map too big - too many evictions "
                     "not confirmed by PDB controller",
                     TD_STR_ARG(call->path.name));
        return false;
    }
    if (allowed <= 0) {
        pod_refuse_by_budget(call,
                             "Cannot evict pod as it would violate the pod's disruption budget.",
                             pod_budget_cause(arena, name, status), 0);
        return false;
    }
    if (call->query.is_dry_run) {
        return true;
    }
    td_json_set_int64(arena, status, TD_STR("disruptionsAllowed"), allowed - 1);
    td_json_set(arena, disrupted, call->path.name, td_meta_time(arena, td_call_now(call)));
    struct td_error err = TD_ERROR_INIT;
    const struct td_resource *budgets =
        td_api_kind(call->api, TD_STR("policy/v1"), TD_STR("PodDisruptionBudget"));
    if (td_edit_put(call->api, budgets, arena, budget, &err) != TD_OK) {
        pod_reply_error(call, &err);
        return false;
    }
    return true;
}

/* False when the call was answered. */
static bool pod_ask_budget(struct pod_eviction *eviction)
{
    struct td_json *budget = NULL;
    if (pod_needs_no_budget(eviction->pod)) {
        return true;
    }
    size_t count = pod_find_budgets(eviction->call, eviction->pod, &budget);
    if (count > 1) {
        td_call_fail(eviction->call, 500, "InternalError",
                     "This pod has more than one PodDisruptionBudget, which the eviction "
                     "subresource does not support.");
        return false;
    }
    return count == 0 || pod_ignores_budget(eviction->pod, budget) ||
           pod_spend_budget(eviction, budget);
}

/* deleteOptions of the eviction: preconditions and grace; false when the call was answered. */
static bool pod_eviction_options(struct pod_eviction *eviction)
{
    struct td_api_call *call = eviction->call;
    const struct td_json *options = td_json_get(eviction->body, TD_STR("deleteOptions"));
    const struct td_json *wanted = td_json_get(options, TD_STR("preconditions"));
    const struct td_json *metadata = td_json_get(eviction->pod, TD_STR("metadata"));
    td_str uid = td_json_text(metadata, "uid");
    td_str version = td_json_text(metadata, "resourceVersion");
    td_str wanted_uid = td_json_get_str(wanted, TD_STR("uid"), uid);
    td_str wanted_version = td_json_get_str(wanted, TD_STR("resourceVersion"), version);
    const struct td_json *dry_run = td_json_get(options, TD_STR("dryRun"));
    if (!td_str_equal(wanted_uid, uid) || !td_str_equal(wanted_version, version)) {
        td_call_conflict(call, call->path.name,
                         "the pod does not meet the precondition of the eviction");
        return false;
    }
    call->query.is_dry_run |= dry_run && dry_run->count > 0;
    eviction->uid = uid;
    eviction->grace_seconds = td_json_get_int64(options, TD_STR("gracePeriodSeconds"), -1);
    return true;
}

void td_pod_evict(struct td_api_call *call)
{
    struct pod_eviction eviction = {.call = call};
    struct td_json *body;
    struct td_error err = TD_ERROR_INIT;
    const struct td_resource *pods = call->at.resource;
    if (!pod_decode(call, "policy/v1", "Eviction", &body)) {
        return;
    }
    eviction.body = body;
    if (td_edit_get(call->api, pods, call->path.ns, call->path.name, &call->arena, &eviction.pod,
                    &err) != TD_OK) {
        pod_reply_error(call, &err);
        return;
    }
    if (!pod_eviction_options(&eviction) || !pod_ask_budget(&eviction)) {
        return;
    }
    if (!call->query.is_dry_run) {
        pod_set_condition(call, eviction.pod, "DisruptionTarget", "EvictionByEvictionAPI",
                          "Eviction API: evicting");
        int code = td_edit_put(call->api, pods, &call->arena, eviction.pod, &err);
        if (code == TD_OK) {
            code = td_edit_delete(call->api, pods, call->path.ns, call->path.name, eviction.uid,
                                  TD_STR_EMPTY, eviction.grace_seconds, &err);
        }
        if (code != TD_OK && code != TD_NOT_FOUND) {
            pod_reply_error(call, &err);
            return;
        }
    }
    pod_reply_success(call);
}
