/*
 * A queue of budgets whose pods changed; each turn recomputes one status and writes it when it
 * differs.
 */
#include "local/controllers/disruption.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/json/json.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/os/clock.h"
#include "base/os/log.h"
#include "base/os/loop.h"
#include "base/stringset.h"
#include "kube/intstr.h"
#include "kube/meta.h"
#include "local/api/api.h"
#include "local/api/write.h"
#include "local/controllers/disruption_index.h"
#include "local/kinds/condition.h"
#include "local/resources/resource.h"
#include "local/store/edit.h"
#include "local/store/observer.h"

#define DISRUPTION_COMPONENT TD_STR("controllermanager")
#define DISRUPTION_DELETION_TIMEOUT (2 * TD_MINUTE) /* an evicted pod is deleted by then */

struct td_disruption {
    struct td_api *api;
    struct td_log *log;
    struct td_observer *observer;
    struct td_queue *queue; /* namespace and name of budgets, a line each */
    struct td_disruption_index index;
};

/* A budget in hand. */
struct judgement {
    struct td_disruption *disruption;
    struct td_arena *arena;
    const struct td_budget *budget;
    struct td_json *object;
    td_time now;
    int64_t expected;
    int64_t desired;
    int64_t healthy;
    struct td_json *disrupted; /* those that are still to go */
    td_duration recheck;       /* after this long; 0: never */
};

/* ---- Controllers ---- */

/* The stored object that a reference names; NULL when it is not there, or another one. */
static struct td_json *owner_get(struct judgement *j, const struct td_resource *resource,
                                 td_str name, td_str uid)
{
    struct td_json *object;
    if (td_edit_get(j->disruption->api, resource, j->budget->ns, name, j->arena, &object, NULL) !=
        TD_OK) {
        return NULL;
    }
    td_str found = td_json_text(td_json_get(object, TD_STR("metadata")), "uid");
    return td_str_equal(found, uid) ? object : NULL;
}

static td_str owner_group_resource(struct td_arena *arena, const struct td_resource *resource)
{
    return td_arena_format(arena, "%.*s%s%.*s", TD_STR_ARG(resource->plural),
                           resource->group.len > 0 ? "." : "", TD_STR_ARG(resource->group));
}

/* The Deployment above a ReplicaSet counts instead of it; *uid becomes the Deployment's. */
static int owner_climb(struct judgement *j, struct td_json **object,
                       const struct td_resource **resource, td_str *uid)
{
    struct td_meta meta;
    if (!td_str_equal((*resource)->collection, TD_STR("replicasets.apps")) ||
        td_meta_decode(j->arena, *object, &meta, NULL) != TD_OK) {
        return TD_OK;
    }
    const struct td_owner_reference *above = td_meta_controller(&meta);
    if (!above || !td_str_equal(above->kind, TD_STR("Deployment"))) {
        return TD_OK;
    }
    *resource = td_api_kind(j->disruption->api, above->api_version, above->kind);
    *object = *resource ? owner_get(j, *resource, above->name, above->uid) : NULL;
    *uid = above->uid;
    return *object ? TD_OK : TD_NOT_FOUND;
}

/* TD_NOT_FOUND: no controller of that name has that uid. */
static int owner_scale(struct judgement *j, const struct td_budget_owner *owner, td_str *ret_uid,
                       int64_t *ret_scale, struct td_error *err)
{
    const struct td_resource *resource =
        td_api_kind(j->disruption->api, owner->api_version, owner->kind);
    if (!resource) {
        return td_error_set(err, TD_INVALID, "no matches for kind \"%.*s\" in version \"%.*s\"",
                            TD_STR_ARG(owner->kind), TD_STR_ARG(owner->api_version));
    }
    if (!(resource->subresources & TD_SUB_SCALE)) {
        return td_error_set(err, TD_INVALID, "%s does not implement the scale subresource",
                            owner_group_resource(j->arena, resource).ptr);
    }
    struct td_json *object = owner_get(j, resource, owner->name, owner->uid);
    td_str uid = owner->uid;
    if (!object || owner_climb(j, &object, &resource, &uid) != TD_OK) {
        return TD_NOT_FOUND;
    }
    const struct td_json *scale = td_scale_view(j->arena, resource, resource->storage, object);
    *ret_scale = td_json_get_int64(td_json_get(scale, TD_STR("spec")), TD_STR("replicas"), 0);
    *ret_uid = uid;
    return TD_OK;
}

/* The first pod that the owner controls, for a message. */
static td_str owner_pod(const struct td_budget *budget, const struct td_budget_owner *owner)
{
    for (struct td_map_walk at = {.map = &budget->members}; td_map_step(&at);) {
        const struct td_budget_member *member = at.value;
        if (member->owner == owner) {
            return member->name;
        }
    }
    return TD_STR_EMPTY;
}

/* The replicas that all controllers of the pods want together, each controller once. */
static int expected_scale(struct judgement *j, int64_t *ret, struct td_error *err)
{
    td_auto_string_set counted = td_string_set_capped(TD_COLLECTION_OBJECTS_MAX);
    int64_t total = 0;
    for (struct td_map_walk at = {.map = &j->budget->owners}; td_map_step(&at);) {
        const struct td_budget_owner *owner = at.value;
        td_str uid;
        int64_t scale = 0;
        int code = owner_scale(j, owner, &uid, &scale, err);
        if (code == TD_NOT_FOUND) {
            return td_error_set(err, TD_NOT_FOUND, "found no controllers for pod \"%.*s\"",
                                TD_STR_ARG(owner_pod(j->budget, owner)));
        }
        if (code != TD_OK) {
            return code;
        }
        if (td_string_set_add(&counted, uid) == TD_OK) { /* as many as there are owners fit */
            total += scale;
        }
    }
    *ret = total;
    return TD_OK;
}

/* ---- Numbers ---- */

static bool budget_bound(const struct td_json *spec, td_str name, struct td_intstr *ret)
{
    const struct td_json *value = td_json_get(spec, name);
    int64_t number = 0;
    if (td_json_is(value, TD_JSON_TYPE_STRING)) {
        *ret = (struct td_intstr){.is_string = true, .string = value->text};
        return true;
    }
    if (td_json_is(value, TD_JSON_TYPE_NUMBER) && td_json_to_int64(value, &number)) {
        *ret = (struct td_intstr){.number = (int32_t)number};
        return true;
    }
    return false;
}

static int judge_expected(struct judgement *j, struct td_error *err)
{
    const struct td_json *spec = td_json_get(j->object, TD_STR("spec"));
    struct td_intstr bound;
    int code = TD_OK;
    if (budget_bound(spec, TD_STR("maxUnavailable"), &bound)) {
        int64_t unavailable = 0;
        code = expected_scale(j, &j->expected, err);
        if (code == TD_OK) {
            code = td_intstr_scaled(&bound, j->expected, true, &unavailable, err);
        }
        j->desired = j->expected > unavailable ? j->expected - unavailable : 0;
    } else if (budget_bound(spec, TD_STR("minAvailable"), &bound) && bound.is_string) {
        code = expected_scale(j, &j->expected, err);
        if (code == TD_OK) {
            code = td_intstr_scaled(&bound, j->expected, true, &j->desired, err);
        }
    } else if (budget_bound(spec, TD_STR("minAvailable"), &bound)) {
        j->expected = (int64_t)j->budget->members.count;
        j->desired = bound.number;
    }
    return code;
}

static void judge_not_deleted(struct judgement *j, td_str pod)
{
    const struct td_resource *pods = td_api_kind(j->disruption->api, TD_STR("v1"), TD_STR("Pod"));
    struct td_json *object;
    if (td_edit_get(j->disruption->api, pods, j->budget->ns, pod, j->arena, &object, NULL) ==
        TD_OK) {
        td_edit_event(j->disruption->api, object, TD_STR("Warning"), TD_STR("NotDeleted"),
                      DISRUPTION_COMPONENT,
                      td_arena_format(j->arena,
                                      "Pod was expected by PDB %.*s/%.*s to be deleted but it "
                                      "wasn't",
                                      TD_STR_ARG(j->budget->ns), TD_STR_ARG(j->budget->name)));
    }
}

/* Evicted pods that are still there count as gone for two minutes. */
static void judge_disrupted(struct judgement *j)
{
    const struct td_json *before = td_json_get_path(j->object, "status.disruptedPods");
    j->disrupted = td_json_new_object(j->arena);
    j->healthy = (int64_t)j->budget->healthy;
    for (const struct td_json *d = td_json_first_member(before); d; d = d->next) {
        const struct td_budget_member *member = td_map_get(&j->budget->members, d->key);
        struct td_instant at;
        if (!member || member->is_deleting || !td_json_is(d, TD_JSON_TYPE_STRING) ||
            td_time_parse(d->text, &at, NULL) != TD_OK) {
            continue;
        }
        td_time until = td_time_from_instant(at) + DISRUPTION_DELETION_TIMEOUT;
        if (until < j->now) {
            judge_not_deleted(j, d->key);
            continue;
        }
        td_duration wait = until - j->now + TD_NANOSECOND;
        j->recheck = j->recheck == 0 || wait < j->recheck ? wait : j->recheck;
        td_json_set_copy(j->arena, j->disrupted, d->key, d);
        j->healthy -= member->is_ready ? 1 : 0;
    }
}

/* ---- Status ---- */

static bool judge_write(struct judgement *j)
{
    struct td_error err = TD_ERROR_INIT;
    const struct td_resource *budgets =
        td_api_kind(j->disruption->api, TD_STR("policy/v1"), TD_STR("PodDisruptionBudget"));
    td_str before = td_json_text(td_json_get(j->object, TD_STR("metadata")), "resourceVersion");
    int code = td_edit_put(j->disruption->api, budgets, j->arena, j->object, &err);
    if (code != TD_OK && code != TD_CONFLICT && code != TD_NOT_FOUND) {
        td_log_line(j->disruption->log, TD_LOG_ERROR,
                    "cannot update the PodDisruptionBudget's status",
                    TD_LOG_S("budget", j->budget->name), TD_LOG_C("error", err.message));
    }
    return code == TD_OK &&
           !td_str_equal(
               before, td_json_text(td_json_get(j->object, TD_STR("metadata")), "resourceVersion"));
}

static void judge_condition(struct judgement *j, struct td_json *status, const char *reason,
                            td_str message)
{
    bool is_allowed = td_json_get_int64(status, TD_STR("disruptionsAllowed"), 0) > 0;
    const struct td_condition condition = {
        .type = TD_STR("DisruptionAllowed"),
        .status = is_allowed ? TD_STR("True") : TD_STR("False"),
        .reason = td_str_from(reason),
        .message = message,
        .observed_generation = td_json_get_int64(status, TD_STR("observedGeneration"), 0),
        .has_empty_texts = true,
    };
    (void)td_condition_set(j->arena, status, &condition, td_time_to_instant(j->now));
}

/* A budget whose pods cannot be counted allows no eviction. */
static void judge_fail(struct judgement *j, const struct td_error *err)
{
    struct td_json *status = td_json_ensure_object(j->arena, j->object, TD_STR("status"));
    static const td_str counts[] = {TD_STR_INIT("currentHealthy"), TD_STR_INIT("desiredHealthy"),
                                    TD_STR_INIT("expectedPods")};
    td_json_set_int64(j->arena, status, TD_STR("disruptionsAllowed"), 0);
    for (size_t i = 0; i < TD_COUNT(counts); i++) {
        td_json_set_int64(j->arena, status, counts[i], td_json_get_int64(status, counts[i], 0));
    }
    judge_condition(j, status, "SyncFailed", td_str_from(err->message));
    if (judge_write(j)) {
        td_edit_event(j->disruption->api, j->object, TD_STR("Warning"),
                      TD_STR("CalculateExpectedPodCountFailed"), DISRUPTION_COMPONENT,
                      td_arena_format(j->arena,
                                      "Failed to calculate the number of expected pods: %s",
                                      err->message));
    }
}

/* Are expected pods those that controllers want, rather than those that are there? */
static bool judge_counts_controllers(const struct judgement *j)
{
    const struct td_json *spec = td_json_get(j->object, TD_STR("spec"));
    return td_json_get(spec, TD_STR("maxUnavailable")) ||
           td_json_is(td_json_get(spec, TD_STR("minAvailable")), TD_JSON_TYPE_STRING);
}

/* The selector as upstream's message has it, which is how Go prints it. */
static td_str judge_selector_text(struct judgement *j)
{
    td_auto_buf text = td_buf_capped(TD_STREAM_BYTES_MAX);
    const struct td_json *selector = td_json_get_path(j->object, "spec.selector");
    const struct td_json *labels = td_json_get(selector, TD_STR("matchLabels"));
    const struct td_json *rules = td_json_get(selector, TD_STR("matchExpressions"));
    const char *open = "&LabelSelector{MatchLabels:map[string]string{";
    (void)td_buf_append_format(&text, "%s", open); /* an object's text has room, and so below */
    for (const struct td_json *l = td_json_first_member(labels); l; l = l->next) {
        (void)td_buf_append_format(&text, "%.*s: %.*s,", TD_STR_ARG(l->key), TD_STR_ARG(l->text));
    }
    (void)td_buf_append_format(&text, "},MatchExpressions:[]LabelSelectorRequirement{");
    for (const struct td_json *r = td_json_first_item(rules); r; r = r->next) {
        const struct td_json *values = td_json_get(r, TD_STR("values"));
        td_str key = td_json_text(r, "key");
        td_str relation = td_json_text(r, "operator");
        (void)td_buf_append_format(&text,
                                   "LabelSelectorRequirement{Key:%.*s,Operator:%.*s,Values:[",
                                   TD_STR_ARG(key), TD_STR_ARG(relation));
        for (const struct td_json *v = td_json_first_item(values); v; v = v->next) {
            (void)td_buf_append_format(&text, "%s%.*s", v == td_json_first_item(values) ? "" : " ",
                                       TD_STR_ARG(v->text));
        }
        (void)td_buf_append_format(&text, "],},");
    }
    (void)td_buf_append_format(&text, "},}");
    return td_arena_copy_str(j->arena, td_buf_str(&text));
}

static void judge_warn_unmanaged(struct judgement *j)
{
    td_edit_event(
        j->disruption->api, j->object, TD_STR("Warning"), TD_STR("UnmanagedPods"),
        DISRUPTION_COMPONENT,
        td_arena_format(j->arena,
                        "Pods selected by this PodDisruptionBudget (selector: %.*s) were found to "
                        "be unmanaged. As a result, the status of the PDB cannot be calculated "
                        "correctly, which may result in undefined behavior. To account for these "
                        "pods please set \".spec.minAvailable\" field of the PDB to an integer "
                        "value.",
                        TD_STR_ARG(judge_selector_text(j))));
}

static void judge_store(struct judgement *j)
{
    const struct td_json *old = td_json_get(j->object, TD_STR("status"));
    const struct td_json *metadata = td_json_get(j->object, TD_STR("metadata"));
    struct td_json *status = td_json_new_object(j->arena);
    const struct td_json *conditions = td_json_get(old, TD_STR("conditions"));
    int64_t allowed = j->healthy - j->desired;
    allowed = j->expected <= 0 || allowed < 0 ? 0 : allowed;
    td_json_set_copy(j->arena, status, TD_STR("conditions"), conditions);
    td_json_set_int64(j->arena, status, TD_STR("currentHealthy"), j->healthy);
    td_json_set_int64(j->arena, status, TD_STR("desiredHealthy"), j->desired);
    if (j->disrupted->count > 0) {
        td_json_set(j->arena, status, TD_STR("disruptedPods"), j->disrupted);
    }
    td_json_set_int64(j->arena, status, TD_STR("disruptionsAllowed"), allowed);
    td_json_set_int64(j->arena, status, TD_STR("expectedPods"), j->expected);
    td_json_set_int64(j->arena, status, TD_STR("observedGeneration"),
                      td_json_get_int64(metadata, TD_STR("generation"), 0));
    judge_condition(j, status, allowed > 0 ? "SufficientPods" : "InsufficientPods", TD_STR_EMPTY);
    td_json_set(j->arena, j->object, TD_STR("status"), status);
    bool is_written = judge_write(j);
    if (is_written && judge_counts_controllers(j) && j->budget->unmanaged > 0) {
        judge_warn_unmanaged(j);
    }
    if (is_written && j->budget->members.count == 0) {
        td_edit_event(j->disruption->api, j->object, TD_STR("Normal"), TD_STR("NoPods"),
                      DISRUPTION_COMPONENT, TD_STR("No matching pods found"));
    }
}

static enum td_job_result disruption_work(td_str key, void *context)
{
    struct td_disruption *disruption = context;
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    const struct td_resource *budgets =
        td_api_kind(disruption->api, TD_STR("policy/v1"), TD_STR("PodDisruptionBudget"));
    struct judgement j = {
        .disruption = disruption,
        .arena = &arena,
        .budget = td_disruption_index_get(&disruption->index, key),
        .now = td_api_now(disruption->api),
    };
    if (!j.budget || td_edit_get(disruption->api, budgets, j.budget->ns, j.budget->name, &arena,
                                 &j.object, NULL) != TD_OK) {
        return TD_JOB_DONE;
    }
    struct td_error err = TD_ERROR_INIT;
    if (judge_expected(&j, &err) != TD_OK) {
        judge_fail(&j, &err);
        return TD_JOB_DONE;
    }
    judge_disrupted(&j);
    judge_store(&j);
    if (j.recheck > 0) {
        (void)td_queue_add_after(disruption->queue, key, j.recheck, NULL); /* room: it ran */
    }
    return TD_JOB_DONE;
}

/* ---- Observing ---- */

static void disruption_enqueue(void *context, td_str key)
{
    struct td_disruption *disruption = context;
    struct td_error err = TD_ERROR_INIT;
    if (td_queue_add(disruption->queue, key, &err) != TD_OK) {
        td_log_line(disruption->log, TD_LOG_ERROR,
                    "disruption queue full, PodDisruptionBudget dropped",
                    TD_LOG_C("error", err.message));
    }
}

static void disruption_observe(const struct td_resource *resource, struct td_stored *before,
                               struct td_stored *after, void *context)
{
    struct td_disruption *disruption = context;
    const struct td_stored *stored = after ? after : before;
    if (td_str_equal(resource->collection, TD_STR("pods"))) {
        td_disruption_index_pod(&disruption->index, stored->ns, stored->name,
                                after ? after->json : TD_STR_EMPTY);
    } else if (after) {
        td_disruption_index_put(&disruption->index, stored->ns, stored->name, after->json);
    } else {
        td_disruption_index_drop(&disruption->index, stored->ns, stored->name);
    }
}

struct td_disruption *td_disruption_new(struct td_api *api, struct td_log *log)
{
    static const td_str collections[] = {TD_STR_INIT("poddisruptionbudgets.policy"),
                                         TD_STR_INIT("pods")};
    struct td_disruption *disruption = td_alloc_zero(1, sizeof(*disruption));
    disruption->api = api;
    disruption->log = log;
    disruption->queue =
        td_queue_new(td_api_loop(api), disruption_work, disruption, TD_WORK_QUEUE_MAX);
    td_disruption_index_init(&disruption->index, td_api_store(api), disruption_enqueue, disruption);
    disruption->observer = td_observer_new(api, collections, 2, disruption_observe, disruption);
    return disruption;
}

void td_disruption_free(struct td_disruption *disruption)
{
    if (!disruption) {
        return;
    }
    td_observer_free(disruption->observer);
    td_queue_free(disruption->queue);
    td_disruption_index_done(&disruption->index);
    td_free(disruption);
}
