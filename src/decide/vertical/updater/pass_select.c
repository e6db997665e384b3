/*
 * Which pods of a VPA are candidates, and in which order (vpa.md 3.1, 3.3, 3.5 filter). The order
 * of the questions is upstream's: whether a pod may be touched is asked before whether it should
 * be, since the first question also remembers when a resize was first seen.
 */
#include "decide/vertical/updater/pass_private.h"

#include <stdlib.h>

#include "decide/vertical/estimator/adaptive_pod.h"
#include "decide/vertical/patch/boost.h"
#include "decide/vertical/patch/capping.h"
#include "decide/vertical/patch/podcaps.h"
#include "decide/vertical/patch/podlevel.h"
#include "decide/vertical/resourcelist.h"
#include "decide/vertical/updater/requirements.h"
#include "decide/vertical/updater/selected.h"

enum td_updater_rule td_updater_group_rule(const struct td_updater_job *job,
                                           const struct td_pod *pod, td_str *ret_detail)
{
    const struct td_group_view *view = td_restriction_any_view(&job->restriction, pod);
    if (view && view->fate == TD_GROUP_NO_REPLICAS) {
        *ret_detail = td_str_from(view->why);
        return TD_RULE_UNKNOWN_REPLICAS;
    }
    bool is_kept = view && view->fate == TD_GROUP_KEPT;
    return is_kept ? TD_RULE_BUDGET : TD_RULE_TOO_FEW_REPLICAS;
}

static enum td_updater_rule evict_rule(const struct td_updater_job *job, const struct td_pod *pod,
                                       enum td_evict_verdict verdict, td_str *ret_detail)
{
    return verdict == TD_EVICTION_RESIZING ? TD_RULE_RESIZING
                                           : td_updater_group_rule(job, pod, ret_detail);
}

/* The pod may be evicted, or a note says why not. */
static bool filter_eviction(struct td_updater_pass *pass, struct td_updater_job *job,
                            const struct td_pod *pod)
{
    td_time until = 0;
    td_str detail = TD_STR_EMPTY;
    enum td_evict_verdict verdict = td_restriction_can_evict(&job->restriction, pod, &until);
    if (verdict == TD_EVICTION_YES) {
        return true;
    }
    enum td_updater_rule rule = evict_rule(job, pod, verdict, &detail);
    td_updater_note(pass, job, pod, NULL, rule, until, detail);
    return false;
}

static void note_deferred(struct td_updater_pass *pass, const struct td_updater_job *job,
                          const struct td_pod *pod, const struct td_in_place_answer *answer)
{
    static const enum td_updater_rule rules[] = {
        [TD_IN_PLACE_GATE_OFF] = TD_RULE_GATE_OFF,
        [TD_IN_PLACE_NO_GROUP] = TD_RULE_TOO_FEW_REPLICAS,
        [TD_IN_PLACE_PENDING] = TD_RULE_PENDING,
        [TD_IN_PLACE_NO_RECOMMENDATION] = TD_RULE_NO_RECOMMENDATION,
        [TD_IN_PLACE_FAILED_BEFORE] = TD_RULE_INFEASIBLE,
        [TD_IN_PLACE_RESIZING] = TD_RULE_RESIZING,
        [TD_IN_PLACE_NO_RESTART] = TD_RULE_BUDGET,
        [TD_IN_PLACE_BUDGET] = TD_RULE_BUDGET,
    };
    td_str detail = TD_STR_EMPTY;
    enum td_updater_rule rule = answer->cause == TD_IN_PLACE_NO_GROUP
                                    ? td_updater_group_rule(job, pod, &detail)
                                    : rules[answer->cause];
    td_updater_note(pass, job, pod, NULL, rule, answer->until, detail);
}

static const struct td_recommendation *cap_for(const struct td_updater_pass *pass,
                                               const struct td_vpa *vpa, const struct td_pod *pod);

static bool is_tracked(const struct td_vpa *vpa)
{
    td_time since;
    return td_track_since(vpa, &since) != NULL;
}

/* Notes since when the target of some container has been half as much again as what it has. */
static void note_starved(struct td_updater_pass *pass, const struct td_vpa *vpa,
                         const struct td_pod *pod, struct td_pod_memory *memory)
{
    bool is_short = td_adaptive_is_short(pod, cap_for(pass, vpa, pod));
    td_time since = memory->starved_since > 0 ? memory->starved_since : pass->input.now;
    memory->starved_since = is_short ? since : 0;
}

/* Has it been for an hour, in a mode that evicts? */
static bool is_starved(const struct td_updater_pass *pass, const struct td_vpa *vpa,
                       const struct td_pod_memory *memory)
{
    return memory && memory->starved_since > 0 && vpa->mode == TD_VPA_IN_PLACE_OR_RECREATE &&
           pass->input.now - memory->starved_since >= TD_STARVED_MAX;
}

/* Under the track estimator a resize that is not granted is tried again after growing pauses. */
static bool filter_tracked(struct td_updater_pass *pass, struct td_updater_job *job,
                           const struct td_pod *pod)
{
    struct td_pod_memory *memory = td_updater_state_find(pass->input.state, pod);
    bool is_pending = td_resize_status_of(pod) != TD_RESIZE_NONE;
    if (!memory) {
        return true; /* too many are remembered */
    }
    note_starved(pass, job->match->vpa, pod, memory);
    if (is_starved(pass, job->match->vpa, memory)) {
        return true;
    }
    if (!is_pending && !memory->is_refused) {
        memory->held_count = 0;
        memory->held_until = 0;
        return true;
    }
    bool is_first = memory->held_count == 0;
    bool is_due = !is_first && pass->input.now >= memory->held_until;
    if (is_first || (is_due && is_pending)) {
        td_updater_state_hold_resize(memory, pass->input.now);
    }
    if (!is_due) {
        td_updater_note(pass, job, pod, NULL, TD_RULE_RESIZE_HELD, memory->held_until,
                        TD_STR_EMPTY);
    }
    return is_due;
}

static bool filter_in_place(struct td_updater_pass *pass, struct td_updater_job *job,
                            const struct td_pod *pod)
{
    const struct td_vpa *vpa = job->match->vpa;
    const struct td_recommendation *failed =
        td_updater_state_failed(pass->input.arena, td_updater_state_find(pass->input.state, pod));
    struct td_in_place_answer answer = td_restriction_in_place(&job->restriction, pod, failed);
    if (is_tracked(vpa) &&
        (answer.decision == TD_IN_PLACE_APPROVED || answer.cause == TD_IN_PLACE_RESIZING)) {
        return filter_tracked(pass, job, pod);
    }
    switch (answer.decision) {
    case TD_IN_PLACE_APPROVED:
        return true;
    case TD_IN_PLACE_EVICT:
        return vpa->mode == TD_VPA_IN_PLACE_OR_RECREATE;
    case TD_IN_PLACE_INFEASIBLE_CACHED:
        job->skipped++;
        td_updater_event(pass, pod, vpa, TD_STR("InPlaceResizeSkipped"),
                         TD_STR("Previously recorded in-place update was infeasible, current "
                                "recommendation is not lower than previous, skipping resize"));
        break;
    case TD_IN_PLACE_DEFERRED:
    case TD_IN_PLACE_INFEASIBLE:
        if (vpa->mode == TD_VPA_IN_PLACE) {
            return true; /* upstream resizes all the same */
        }
        break;
    }
    note_deferred(pass, job, pod, &answer);
    return false;
}

/* What the containers will ask for together once the recommendation is applied. */
static struct td_quantity sum_containers(struct td_arena *arena, const struct td_pod *pod,
                                         const struct td_recommendation *recommendation,
                                         td_str resource)
{
    const struct td_podcaps_pair *pairs = td_podcaps_pair(arena, pod, recommendation);
    struct td_quantity sum = td_quantity_new(0, TD_QUANTITY_DECIMAL_SI);
    for (size_t i = 0; i < pod->container_count; i++) {
        const struct td_quantity *requested =
            td_resource_list_get(&pod->containers[i].spec_requests, resource);
        const struct td_container_recommendation *entry = pairs[i].entry;
        const struct td_quantity *wanted =
            entry ? td_resource_list_get(&entry->target, resource) : NULL;
        if (requested) { /* a request that is not there is not written */
            td_quantity_add(arena, &sum, wanted ? wanted : requested);
        }
    }
    return sum;
}

/* A pod's own request is never written below those of its containers. Where it was raised to just
 * that, it has what it can get: judged by the lower target it would be written the same again and
 * again. */
static void take_raised(struct td_arena *arena, const struct td_pod *pod,
                        struct td_recommendation *recommendation)
{
    struct td_pod_recommendation *level = &recommendation->pod;
    level->target = td_resource_list_copy(arena, &level->target);
    level->upper_bound = td_resource_list_copy(arena, &level->upper_bound);
    for (size_t i = 0; i < level->target.count; i++) {
        struct td_resource_amount *target = &level->target.items[i];
        const struct td_quantity *request = td_resource_list_get(&pod->pod_requests, target->name);
        struct td_quantity sum = sum_containers(arena, pod, recommendation, target->name);
        if (!request || td_quantity_compare(request, &sum) != 0 ||
            td_quantity_compare(&sum, &target->quantity) <= 0) {
            continue;
        }
        target->quantity = sum;
        const struct td_quantity *upper = td_resource_list_get(&level->upper_bound, target->name);
        if (upper && td_quantity_compare(upper, &sum) < 0) {
            td_resource_list_set(arena, &level->upper_bound, target->name, &sum);
        }
    }
}

/* The recommendation as it may be applied to this pod. */
static const struct td_recommendation *cap_for(const struct td_updater_pass *pass,
                                               const struct td_vpa *vpa, const struct td_pod *pod)
{
    const struct td_updater_input *input = &pass->input;
    const struct td_limit_ranges *limits = input->get_limits(input->context, pod->meta.namespace);
    bool is_pod_level = input->gates.pod_level_resources && pod->has_pod_level;
    const struct td_capping capping = {
        .pod = pod,
        .recommendation = vpa->has_recommendation ? &vpa->recommendation : NULL,
        .policy = &vpa->policy,
        .container_limits =
            limits && !is_pod_level ? td_limit_summary_or_null(&limits->container) : NULL,
        .pod_limits = limits ? td_limit_summary_or_null(&limits->pod) : NULL,
        .largest_node = input->largest_node,
    };
    struct td_capped capped = {.is_set = false};
    td_cap_for_pod(input->arena, &capping, &capped);
    struct td_recommendation *made = td_arena_new(input->arena, struct td_recommendation);
    *made = capped.recommendation;
    if (is_pod_level && vpa->has_recommendation) {
        made->pod = td_pod_level_cap(input->arena, &vpa->recommendation.pod, capping.pod_limits,
                                     input->largest_node, NULL);
        take_raised(input->arena, pod, made);
    }
    return made;
}

static void note_verdict(struct td_updater_pass *pass, const struct td_updater_job *job,
                         const struct td_updater_candidate *candidate)
{
    static const enum td_updater_rule rules[] = {
        [TD_UPDATE_ACCEPTED] = TD_RULE_SMALL_CHANGE,
        [TD_UPDATE_INFEASIBLE] = TD_RULE_INFEASIBLE,
        [TD_UPDATE_NO_START_TIME] = TD_RULE_NO_START_TIME,
        [TD_UPDATE_YOUNG] = TD_RULE_YOUNG,
        [TD_UPDATE_SMALL_CHANGE] = TD_RULE_SMALL_CHANGE,
        [TD_UPDATE_OOM_NO_CHANGE] = TD_RULE_OOM_NO_CHANGE,
        [TD_UPDATE_WAITING] = TD_RULE_WAITING,
        [TD_UPDATE_IN_BAND] = TD_RULE_IN_BAND,
    };
    enum td_updater_rule rule = job->match->vpa->has_recommendation
                                    ? rules[candidate->answer.verdict]
                                    : TD_RULE_NO_RECOMMENDATION;
    td_updater_note(pass, job, candidate->pod, candidate, rule, candidate->answer.until,
                    TD_STR_EMPTY);
}

/* Has the pod already all that is recommended? */
static bool is_applied(struct td_arena *arena, const struct td_pod *pod,
                       const struct td_recommendation *recommendation, bool is_pod_level)
{
    const struct td_podcaps_pair *pairs = td_podcaps_pair(arena, pod, recommendation);
    for (size_t i = 0; i < pod->container_count; i++) {
        if (pairs[i].entry && !td_resource_list_has_all(td_vertical_requests(&pod->containers[i]),
                                                        &pairs[i].entry->target)) {
            return false;
        }
    }
    return !is_pod_level ||
           td_resource_list_has_all(&pod->pod_requests, &recommendation->pod.target);
}

/* Under the adaptive estimator the verdict is its own rule's. What that sets is capped again, and
 * may then be what the pod has. */
static void judge_adaptive(struct td_updater_pass *pass, const struct td_vpa *vpa,
                           struct td_updater_candidate *candidate)
{
    const struct td_updater_input *input = &pass->input;
    struct td_adaptive_pod_input question = {
        .vpa = vpa,
        .pod = candidate->pod,
        .recommendation = candidate->recommendation,
        .now = input->now,
        .is_pod_level = input->gates.pod_level_resources && candidate->pod->has_pod_level,
    };
    struct td_update_answer *answer = &candidate->answer;
    if (answer->verdict == TD_UPDATE_INFEASIBLE || answer->is_moved ||
        !td_adaptive_since(vpa, &question.since)) {
        return; /* a pod that has just come to this VPA follows it at once */
    }
    question.track = td_track_since(vpa, &question.track_since);
    question.template = td_template_of_pod(input->source, &candidate->pod->meta);
    struct td_adaptive_pod decided = td_adaptive_judge_pod(input->arena, &question);
    answer->verdict = decided.is_apply                     ? TD_UPDATE_ACCEPTED
                      : decided.reason == TD_APPLY_WAITING ? TD_UPDATE_WAITING
                                                           : TD_UPDATE_IN_BAND;
    answer->until = decided.is_apply ? 0 : decided.until;
    answer->rank = td_adaptive_rank(decided.reason);
    answer->text = decided.text;
    candidate->resized = decided.vpa;
    if (decided.is_apply &&
        is_applied(input->arena, candidate->pod, cap_for(pass, decided.vpa, candidate->pod),
                   question.is_pod_level)) {
        answer->verdict = TD_UPDATE_IN_BAND;
    }
}

/* Do the eviction requirements let the update through that the mode makes of it? */
static bool is_let_through(struct td_updater_pass *pass, const struct td_vpa *vpa,
                           struct td_updater_candidate *candidate)
{
    const struct td_updater_config *config = pass->input.config;
    candidate->is_admitted =
        td_requirements_admit(pass->input.arena, vpa, candidate->pod, candidate->recommendation,
                              config->is_upstream_exact);
    if (vpa->mode == TD_VPA_RECREATE || config->in_place_ignores_requirements) {
        return candidate->is_admitted || vpa->mode != TD_VPA_RECREATE;
    }
    if (!candidate->resized) {
        return candidate->is_admitted;
    }
    return td_requirements_admit(pass->input.arena, vpa, candidate->pod,
                                 cap_for(pass, candidate->resized, candidate->pod),
                                 config->is_upstream_exact);
}

/* Is the pod far enough from its recommendation, and do the requirements let it through? */
static bool judge(struct td_updater_pass *pass, struct td_updater_job *job,
                  struct td_updater_candidate *candidate)
{
    const struct td_updater_input *input = &pass->input;
    const struct td_vpa *vpa = job->match->vpa;
    const struct td_pod *pod = candidate->pod;
    candidate->recommendation = cap_for(pass, vpa, pod);
    const struct td_update_question question = {
        .vpa = vpa,
        .pod = pod,
        .recommendation = candidate->recommendation,
        .failed = td_updater_state_failed(input->arena, candidate->memory),
        .config = &input->config->update,
        .gates = &input->gates,
        .now = input->now,
        .is_moved = candidate->memory && candidate->memory->is_moved,
    };
    candidate->answer = td_update_judge(input->arena, &question);
    if (candidate->answer.ends_move) {
        td_updater_state_settled(candidate->memory);
    }
    judge_adaptive(pass, vpa, candidate);
    if (candidate->answer.verdict != TD_UPDATE_ACCEPTED) {
        note_verdict(pass, job, candidate);
        return false;
    }
    if (!is_let_through(pass, vpa, candidate)) {
        td_updater_note(pass, job, pod, candidate, TD_RULE_REQUIREMENTS, 0, TD_STR_EMPTY);
        return false;
    }
    return true;
}

static int compare_candidates(const void *a, const void *b)
{
    const struct td_updater_candidate *left = a;
    const struct td_updater_candidate *right = b;
    if (left->answer.rank != right->answer.rank) {
        return left->answer.rank < right->answer.rank ? -1 : 1;
    }
    int order = td_update_priority_compare(&left->answer.priority, &right->answer.priority);
    if (order != 0) {
        return order;
    }
    return left->position < right->position ? -1 : left->position > right->position;
}

bool td_updater_is_reselected(const struct td_updater_pass *pass, const struct td_updater_job *job,
                              const struct td_pod *pod)
{
    const struct td_updater_input *input = &pass->input;
    const struct td_pod_template *template = td_template_of_pod(input->source, &pod->meta);
    return !template || td_vpa_selects_replacement(input->arena, job->match->vpa,
                                                   input->gates.heterogeneous_workloads,
                                                   &template->labels, &pod->meta.labels);
}

/* Is it a pod that must not be evicted, and that its mode does not resize? Then it is judged
 * without a look at budgets, and the note says why it stays as it is. */
static bool is_stuck(const struct td_updater_pass *pass, const struct td_updater_job *job,
                     const struct td_pod *pod)
{
    return job->match->vpa->mode == TD_VPA_RECREATE && !td_updater_is_reselected(pass, job, pod);
}

/* Filter first, then judge and order: as upstream, all filters run before the first judgement. */
static void choose(struct td_updater_pass *pass, struct td_updater_job *job,
                   const struct td_pod **pods, size_t count, struct td_updater_candidates *ret)
{
    bool is_in_place = job->match->vpa->mode != TD_VPA_RECREATE;
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (is_in_place ? filter_in_place(pass, job, pods[i])
                        : is_stuck(pass, job, pods[i]) || filter_eviction(pass, job, pods[i])) {
            pods[kept++] = pods[i];
        }
    }
    ret->items = td_arena_array(pass->input.arena, struct td_updater_candidate, kept);
    for (size_t i = 0; i < kept; i++) {
        struct td_updater_candidate *candidate = &ret->items[ret->count];
        *candidate = (struct td_updater_candidate){
            .pod = pods[i],
            .memory = td_updater_state_find(pass->input.state, pods[i]),
            .position = i,
        };
        candidate->is_tracked = is_tracked(job->match->vpa);
        candidate->may_evict =
            candidate->is_tracked && is_starved(pass, job->match->vpa, candidate->memory);
        bool is_due = judge(pass, job, candidate);
        if (is_due && is_stuck(pass, job, pods[i])) {
            td_updater_note(pass, job, pods[i], candidate, TD_RULE_NOT_SELECTED, 0, TD_STR_EMPTY);
        } else if (is_due) {
            ret->count++;
        }
    }
    qsort(ret->items, ret->count, sizeof(ret->items[0]), compare_candidates);
}

/* Pods whose boost lasts are left to the queue that reverts boosts. */
static size_t drop_boosted(struct td_updater_pass *pass, const struct td_updater_job *job,
                           const struct td_pod **pods)
{
    bool is_boosting = pass->input.gates.cpu_startup_boost && td_vpa_has_boost(job->match->vpa);
    size_t count = 0;
    for (size_t i = 0; i < job->pod_count; i++) {
        if (is_boosting && td_boost_is_in_progress(job->pods[i])) {
            td_updater_note(pass, job, job->pods[i], NULL, TD_RULE_BOOSTED, 0, TD_STR_EMPTY);
        } else {
            pods[count++] = job->pods[i];
        }
    }
    return count;
}

/* Does its recommender say that what it recommends must wait? Then `ret` is the rule. */
static bool must_wait(const struct td_vpa *vpa, enum td_updater_rule *ret)
{
    if (td_vpa_condition_holds(vpa->conditions, vpa->condition_count, TD_STR("MetricsStale"))) {
        *ret = TD_RULE_METRICS_STALE;
        return true;
    }
    *ret = TD_RULE_LOW_CONFIDENCE;
    return td_vpa_condition_holds(vpa->conditions, vpa->condition_count, TD_STR("LowConfidence"));
}

void td_updater_select(struct td_updater_pass *pass, struct td_updater_job *job)
{
    const struct td_vpa *vpa = job->match->vpa;
    const struct td_updater_input *input = &pass->input;
    const struct td_restriction_input restriction = {
        .arena = input->arena,
        .groups = &pass->groups,
        .source = input->source,
        .vpa = vpa,
        .pods = job->pods,
        .pod_count = job->pod_count,
        .config = &input->config->restriction,
        .gates = &input->gates,
        .state = input->state,
        .now = input->now,
    };
    td_restriction_init(&job->restriction, &restriction);
    enum td_updater_rule wait;
    if (vpa->mode == TD_VPA_OFF || vpa->mode == TD_VPA_INITIAL) {
        td_updater_note(pass, job, NULL, NULL, TD_RULE_MODE, 0, TD_STR_EMPTY);
        return;
    }
    if (vpa->mode == TD_VPA_IN_PLACE && !input->gates.in_place) {
        td_updater_note(pass, job, NULL, NULL, TD_RULE_GATE_OFF, 0, TD_STR_EMPTY);
        return;
    }
    if (must_wait(vpa, &wait)) {
        td_updater_note(pass, job, NULL, NULL, wait, 0, TD_STR_EMPTY);
        return;
    }
    const struct td_pod **pods =
        td_arena_array(input->arena, const struct td_pod *, job->pod_count);
    size_t count = drop_boosted(pass, job, pods);
    if (vpa->mode == TD_VPA_RECREATE) {
        choose(pass, job, pods, count, &job->evictions);
    } else {
        choose(pass, job, pods, count, &job->in_place);
        job->evictions.items =
            td_arena_array(input->arena, struct td_updater_candidate, job->in_place.count);
    }
}
