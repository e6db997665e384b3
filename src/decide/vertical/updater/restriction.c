/* Counting comes first (td_groups_add, td_restriction_init), then the questions about one pod, in
 * the order of upstream's decision tables. */
#include "decide/vertical/updater/restriction.h"

#include "base/limits.h"
#include "decide/vertical/patch/boost.h"
#include "decide/vertical/updater/priority.h"
#include "decide/vertical/updater/updater_state.h"
#include "kube/objectkey.h"

int64_t td_restriction_tolerance(const struct td_restriction_config *config, int64_t replicas)
{
    return (int64_t)((double)replicas * config->tolerance);
}

void td_groups_init(struct td_groups *groups, struct td_arena *arena)
{
    *groups = (struct td_groups){.arena = arena};
    td_map_init(&groups->by_key, TD_CONTROLLERS_MAX);
}

void td_groups_done(struct td_groups *groups)
{
    td_map_done(&groups->by_key);
}

/* The direct controller's namespace, kind and name; the latter two are empty without one. */
static td_str group_key(const struct td_pod *pod, char buffer[TD_OBJECT_KEY_BYTES_MAX])
{
    const struct td_owner_reference *owner = td_meta_controller(&pod->meta);
    td_str kind = owner ? owner->kind : TD_STR_EMPTY;
    td_str name = owner ? owner->name : TD_STR_EMPTY;
    return TD_KEY_LINES(buffer, pod->meta.namespace, kind, name);
}

struct td_replica_group *td_groups_add(struct td_groups *groups, const struct td_pod *pod)
{
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    td_str key = group_key(pod, buffer);
    struct td_replica_group *group = td_map_get(&groups->by_key, key);
    if (!group) {
        const struct td_owner_reference *owner = td_meta_controller(&pod->meta);
        group = td_arena_new(groups->arena, struct td_replica_group);
        group->namespace = pod->meta.namespace;
        group->kind = owner ? owner->kind : TD_STR_EMPTY;
        group->name = owner ? owner->name : TD_STR_EMPTY;
        if (td_map_put(&groups->by_key, td_arena_copy_str(groups->arena, key), group) < 0) {
            return NULL;
        }
    }
    group->all_count++;
    group->all_pending += pod->phase == TD_POD_PENDING;
    group->has_boosted |= td_boost_is_in_progress(pod);
    return group;
}

/* How many replicas the group's controller wants; a text when that cannot be read. */
static const char *read_configured(const struct td_workload_source *source,
                                   struct td_group_view *view)
{
    const struct td_replica_group *group = view->group;
    enum td_workload_kind kind = td_workload_kind_of(group->kind);
    if (kind == TD_WORKLOAD_JOB) {
        view->configured = view->actual;
        return NULL;
    }
    if (kind != TD_WORKLOAD_REPLICATION_CONTROLLER && kind != TD_WORKLOAD_REPLICA_SET &&
        kind != TD_WORKLOAD_STATEFUL_SET && kind != TD_WORKLOAD_DAEMON_SET) {
        view->configured = 0; /* upstream knows no number for any other kind */
        return NULL;
    }
    const struct td_workload *workload =
        source->get_workload(source->context, group->kind, group->namespace, group->name);
    if (!workload) {
        return "its controller does not exist";
    }
    if (kind == TD_WORKLOAD_DAEMON_SET) {
        view->configured = workload->desired_scheduled;
        return view->configured == 0 ? "its controller has no desired scheduled pods" : NULL;
    }
    view->configured = workload->replicas;
    return !workload->has_replicas || workload->replicas == 0
               ? "its controller has no replicas configured"
               : NULL;
}

static void judge_view(const struct td_restriction_input *input, struct td_group_view *view)
{
    const struct td_vpa *vpa = input->vpa;
    bool skips_count = input->config->in_place_skips_budget &&
                       (vpa->mode == TD_VPA_IN_PLACE_OR_RECREATE || vpa->mode == TD_VPA_IN_PLACE);
    if (input->gates->heterogeneous_workloads && vpa->has_selector) {
        view->actual = view->group->all_count;
        view->pending = view->group->all_pending;
        view->has_boosted = view->group->has_boosted;
    }
    view->running = view->actual - view->pending;
    view->required = vpa->has_min_replicas ? vpa->min_replicas : input->config->min_replicas;
    view->fate = TD_GROUP_KEPT;
    if (view->actual < view->required && skips_count) {
        view->fate = TD_GROUP_BELOW_MIN;
    } else if (view->actual < view->required && !view->has_boosted) {
        view->fate = TD_GROUP_TOO_FEW;
    }
    view->why = read_configured(input->source, view);
    if (view->why && view->fate != TD_GROUP_TOO_FEW) {
        view->fate = TD_GROUP_NO_REPLICAS;
    }
    view->tolerance = td_restriction_tolerance(input->config, view->configured);
}

static td_str pod_key(struct td_arena *arena, const struct td_pod *pod)
{
    return td_object_key_text(arena, TD_OBJECT_KEY(pod->meta.namespace, pod->meta.name));
}

static void add_pod(struct td_restriction *restriction, const struct td_groups *groups,
                    const struct td_pod *pod)
{
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    td_str key = td_arena_copy_str(restriction->arena, group_key(pod, buffer));
    struct td_group_view *view = td_map_get(&restriction->views, key);
    if (!view) {
        view = td_arena_new(restriction->arena, struct td_group_view);
        view->group = td_map_get(&groups->by_key, key);
        if (!view->group || td_map_put(&restriction->views, key, view) < 0) {
            return; /* too many groups: the pod is in none */
        }
    }
    view->actual++;
    view->pending += pod->phase == TD_POD_PENDING;
    view->has_boosted |= td_boost_is_in_progress(pod);
    (void)td_map_put(&restriction->pods, pod_key(restriction->arena, pod), view); /* likewise */
}

void td_restriction_init(struct td_restriction *restriction,
                         const struct td_restriction_input *input)
{
    *restriction = (struct td_restriction){
        .arena = input->arena,
        .vpa = input->vpa,
        .config = input->config,
        .gates = input->gates,
        .state = input->state,
        .now = input->now,
    };
    td_map_init(&restriction->views, TD_CONTROLLERS_MAX);
    td_map_init(&restriction->pods, TD_UPDATER_PODS_MAX);
    for (size_t i = 0; i < input->pod_count; i++) {
        add_pod(restriction, input->groups, input->pods[i]);
    }
    size_t position = 0;
    for (const struct td_map_entry *entry = td_map_next(&restriction->views, &position); entry;
         entry = td_map_next(&restriction->views, &position)) {
        judge_view(input, entry->value);
    }
}

void td_restriction_done(struct td_restriction *restriction)
{
    td_map_done(&restriction->views);
    td_map_done(&restriction->pods);
}

static struct td_group_view *find_view(const struct td_restriction *restriction,
                                       const struct td_pod *pod)
{
    return td_map_get(&restriction->pods, pod_key(restriction->arena, pod));
}

const struct td_group_view *td_restriction_any_view(const struct td_restriction *restriction,
                                                    const struct td_pod *pod)
{
    return find_view(restriction, pod);
}

const struct td_group_view *td_restriction_view(const struct td_restriction *restriction,
                                                const struct td_pod *pod)
{
    const struct td_group_view *view = find_view(restriction, pod);
    bool is_kept = view && (view->fate == TD_GROUP_KEPT || view->fate == TD_GROUP_BELOW_MIN);
    return is_kept ? view : NULL;
}

/* May one more pod of the group be disturbed? */
static bool group_is_disruptable(const struct td_group_view *view)
{
    const struct td_replica_group *group = view->group;
    int64_t lost = group->evicted + group->initiated;
    return view->running - lost > view->configured - view->tolerance ||
           (view->configured == view->running && view->tolerance == 0 && lost == 0);
}

enum td_resize_status td_resize_status_of(const struct td_pod *pod)
{
    const struct td_resize_condition *pending = &pod->resize_pending;
    const struct td_resize_condition *running = &pod->resize_in_progress;
    const struct td_resize_condition *first =
        pending->is_present && (pod->is_pending_first || !running->is_present) ? pending : running;
    if (!first->is_present || !first->is_true) {
        return TD_RESIZE_NONE;
    }
    if (pending->is_present) {
        if (td_str_equal(pending->reason, TD_STR("Deferred"))) {
            return TD_RESIZE_DEFERRED;
        }
        return td_str_equal(pending->reason, TD_STR("Infeasible")) ? TD_RESIZE_INFEASIBLE
                                                                   : TD_RESIZE_UNKNOWN;
    }
    if (running->reason.len == 0 && running->message.len == 0) {
        return TD_RESIZE_IN_PROGRESS;
    }
    return td_str_equal(running->reason, TD_STR("Error")) ? TD_RESIZE_ERROR : TD_RESIZE_UNKNOWN;
}

/* A pod whose resize did not work out may be evicted instead. */
static enum td_evict_verdict evict_while_resizing(struct td_restriction *restriction,
                                                  const struct td_group_view *view,
                                                  const struct td_pod *pod, td_time *ret_until)
{
    td_time since = td_updater_state_resizing_since(restriction->state, pod->meta.namespace,
                                                    pod->meta.name, restriction->now);
    if (!group_is_disruptable(view)) {
        return TD_EVICTION_BUDGET;
    }
    enum td_resize_status status = td_resize_status_of(pod);
    if (status != TD_RESIZE_DEFERRED && status != TD_RESIZE_IN_PROGRESS) {
        return TD_EVICTION_YES;
    }
    td_duration patience =
        status == TD_RESIZE_DEFERRED ? TD_RESIZE_DEFERRED_MAX : TD_RESIZE_RUNNING_MAX;
    if (restriction->now - since > patience) {
        return TD_EVICTION_YES;
    }
    *ret_until = since + patience;
    return TD_EVICTION_RESIZING;
}

enum td_evict_verdict td_restriction_can_evict(struct td_restriction *restriction,
                                               const struct td_pod *pod, td_time *ret_until)
{
    td_time until = 0;
    const struct td_group_view *view = td_restriction_view(restriction, pod);
    if (!view) {
        return TD_EVICTION_NO_GROUP;
    }
    if (pod->phase == TD_POD_PENDING) {
        return TD_EVICTION_YES;
    }
    if (view->fate == TD_GROUP_BELOW_MIN) {
        return TD_EVICTION_BELOW_MIN;
    }
    if (td_resize_status_of(pod) == TD_RESIZE_NONE) {
        return group_is_disruptable(view) ? TD_EVICTION_YES : TD_EVICTION_BUDGET;
    }
    enum td_evict_verdict verdict = evict_while_resizing(restriction, view, pod, &until);
    if (ret_until && verdict == TD_EVICTION_RESIZING) {
        *ret_until = until;
    }
    return verdict;
}

static struct td_in_place_answer answer_of(enum td_in_place_decision decision,
                                           enum td_in_place_cause cause)
{
    return (struct td_in_place_answer){.decision = decision, .cause = cause};
}

/* A resize is under way. */
static struct td_in_place_answer answer_resizing(struct td_restriction *restriction,
                                                 const struct td_group_view *view,
                                                 const struct td_pod *pod)
{
    struct td_in_place_answer answer = answer_of(TD_IN_PLACE_DEFERRED, TD_IN_PLACE_RESIZING);
    answer.resize = td_resize_status_of(pod);
    if (restriction->vpa->mode == TD_VPA_IN_PLACE) {
        if (answer.resize == TD_RESIZE_INFEASIBLE) {
            answer.decision = TD_IN_PLACE_INFEASIBLE;
        }
        return answer;
    }
    if (evict_while_resizing(restriction, view, pod, &answer.until) == TD_EVICTION_YES) {
        answer.decision = TD_IN_PLACE_EVICT;
    }
    return answer;
}

static bool restarts_on_resize(const struct td_pod *pod)
{
    for (size_t i = 0; i < pod->container_count; i++) {
        if (pod->containers[i].restarts_on_resize) {
            return true;
        }
    }
    return false;
}

struct td_in_place_answer td_restriction_in_place(struct td_restriction *restriction,
                                                  const struct td_pod *pod,
                                                  const struct td_recommendation *failed)
{
    const struct td_vpa *vpa = restriction->vpa;
    if (vpa->mode == TD_VPA_IN_PLACE && !restriction->gates->in_place) {
        return answer_of(TD_IN_PLACE_DEFERRED, TD_IN_PLACE_GATE_OFF);
    }
    const struct td_group_view *view = td_restriction_view(restriction, pod);
    if (!view) {
        return answer_of(TD_IN_PLACE_DEFERRED, TD_IN_PLACE_NO_GROUP);
    }
    if (pod->phase == TD_POD_PENDING) {
        return answer_of(TD_IN_PLACE_DEFERRED, TD_IN_PLACE_PENDING);
    }
    if (!vpa->has_recommendation) {
        return answer_of(TD_IN_PLACE_DEFERRED, TD_IN_PLACE_NO_RECOMMENDATION);
    }
    if (vpa->mode == TD_VPA_IN_PLACE && failed &&
        !td_recommendation_is_lower(restriction->arena, failed, &vpa->recommendation)) {
        return answer_of(TD_IN_PLACE_INFEASIBLE_CACHED, TD_IN_PLACE_FAILED_BEFORE);
    }
    if (td_resize_status_of(pod) != TD_RESIZE_NONE) {
        return answer_resizing(restriction, view, pod);
    }
    if (restriction->config->in_place_skips_budget && !restarts_on_resize(pod)) {
        return answer_of(TD_IN_PLACE_APPROVED, TD_IN_PLACE_NO_RESTART);
    }
    return answer_of(group_is_disruptable(view) ? TD_IN_PLACE_APPROVED : TD_IN_PLACE_DEFERRED,
                     TD_IN_PLACE_BUDGET);
}

static bool has_expired_boost(const struct td_restriction *restriction, const struct td_pod *pod)
{
    const struct td_json *annotations = pod->meta.annotations;
    for (const struct td_json *item = td_json_first_member(annotations); item; item = item->next) {
        if (td_boost_is_expired(pod, restriction->vpa, item->key, restriction->now)) {
            return true;
        }
    }
    return false;
}

bool td_restriction_can_revert_boost(struct td_restriction *restriction, const struct td_pod *pod)
{
    if (!restriction->gates->cpu_startup_boost || pod->phase == TD_POD_PENDING ||
        !has_expired_boost(restriction, pod)) {
        return false;
    }
    const struct td_group_view *view = td_restriction_view(restriction, pod);
    return view && td_resize_status_of(pod) == TD_RESIZE_NONE && group_is_disruptable(view);
}

void td_restriction_evicted(struct td_restriction *restriction, const struct td_pod *pod)
{
    const struct td_group_view *view = find_view(restriction, pod);
    if (view && pod->phase != TD_POD_PENDING) {
        view->group->evicted++;
    }
}

void td_restriction_resized(struct td_restriction *restriction, const struct td_pod *pod)
{
    const struct td_group_view *view = find_view(restriction, pod);
    if (view) {
        view->group->initiated++;
    }
}
