/*
 * The machine: jobs are VPAs, opened one after the other. A job's resizes come first, then its
 * evictions, to which resizes that failed or were given up are added. Every action asks its limiter
 * again just before it is taken, because the actions before it have changed the counts.
 */
#include "decide/vertical/updater/pass.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/limits.h"
#include "decide/vertical/patch/resizepatch.h"
#include "decide/vertical/updater/pass_private.h"

struct td_updater_config td_updater_config_default(void)
{
    return (struct td_updater_config){
        .update = {.threshold = TD_UPDATE_THRESHOLD_DEFAULT,
                   .lifetime = TD_UPDATE_LIFETIME_DEFAULT,
                   .oom_threshold = TD_UPDATE_OOM_THRESHOLD_DEFAULT},
        .restriction = {.min_replicas = 2, .tolerance = 0.5},
        .rate_per_second = -1,
        .rate_burst = 1,
    };
}

void td_updater_event(struct td_updater_pass *pass, const struct td_pod *pod,
                      const struct td_vpa *vpa, td_str reason, td_str message)
{
    struct td_updater_events *events = &pass->events;
    events->items = td_arena_grow(pass->input.arena, events->items, events->count, &events->cap,
                                  sizeof(*events->items));
    events->items[events->count++] =
        (struct td_updater_event){.pod = pod, .vpa = vpa, .reason = reason, .message = message};
}

/* Of the event added last. */
static void decided(struct td_updater_pass *pass, const char *deed)
{
    const struct td_updater_candidate *candidate = pass->candidate;
    pass->events.items[pass->events.count - 1].decision =
        td_updater_words(pass->input.arena, deed, candidate->pod, candidate->recommendation);
}

void td_updater_note(struct td_updater_pass *pass, const struct td_updater_job *job,
                     const struct td_pod *pod, const struct td_updater_candidate *candidate,
                     enum td_updater_rule rule, td_time until, td_str detail)
{
    struct td_updater_note note = {
        .pod = pod, .vpa = job->match->vpa, .rule = rule, .until = until, .detail = detail};
    const struct td_group_view *view = pod ? td_restriction_any_view(&job->restriction, pod) : NULL;
    if (view) {
        note.has_group = true;
        note.group = *view;
        note.evicted = view->group->evicted;
        note.initiated = view->group->initiated;
    }
    if (candidate) {
        note.has_answer = true;
        note.answer = candidate->answer;
        note.threshold = pass->input.config->update.threshold;
    }
    td_updater_notes_add(&pass->notes, &note);
}

static bool is_ignored(const struct td_updater_config *config, td_str namespace)
{
    return td_str_is_among(namespace, config->ignored_namespaces, config->ignored_namespace_count);
}

static int build_index(struct td_updater_pass *pass, struct td_error *err)
{
    const struct td_updater_input *input = &pass->input;
    const struct td_vpa **vpas =
        td_arena_array(input->arena, const struct td_vpa *, input->vpa_count);
    size_t count = 0;
    for (size_t i = 0; i < input->vpa_count; i++) {
        if (!is_ignored(input->config, input->vpas[i]->meta.namespace)) {
            vpas[count++] = input->vpas[i];
        }
    }
    int code =
        td_match_index_add(&pass->index, input->source, vpas, count, TD_MATCH_UPDATER, NULL, err);
    return code < 0 ? code
                    : td_match_index_add(&pass->roles, input->source, input->vpas, input->vpa_count,
                                         TD_MATCH_ANY, NULL, err);
}

/* What is known of one live pod. */
struct pod_view {
    const struct td_match_vpa *master; /* the VPA that may act on it, or NULL */
    const struct td_match_vpa *role;   /* the VPA whose pod it is, whatever its mode, or NULL */
    bool is_unclear;                   /* its controllers could not be read just now */
};

static int look_at_pods(struct td_updater_pass *pass, struct pod_view *pod_views,
                        struct td_error *err)
{
    const struct td_updater_input *input = &pass->input;
    for (size_t i = 0; i < input->pod_count; i++) {
        const struct td_meta *meta = &input->pods[i].meta;
        if (input->pods[i].is_terminating) {
            continue;
        }
        const struct td_controller *top;
        td_str why;
        int code = td_top_memo_get(&pass->memo, input->source, meta, &top, &why, err);
        if (code < 0) {
            return code;
        }
        pod_views[i].is_unclear = why.len > 0;
        pod_views[i].master = td_match_find(&pass->index, top, meta->namespace, &meta->labels);
        pod_views[i].role = pod_views[i].master
                                ? pod_views[i].master
                                : td_match_find(&pass->roles, top, meta->namespace, &meta->labels);
    }
    return TD_OK;
}

static void remember(struct td_updater_pass *pass, const struct td_pod *pod,
                     const struct pod_view *view)
{
    const struct td_updater_input *input = &pass->input;
    bool is_new = false;
    struct td_pod_memory *memory = td_updater_state_pod(input->state, pod, &is_new);
    if (!memory) {
        return;
    }
    if (is_new) {
        td_updater_state_born(input->arena, input->state, memory, pod, input->now);
    }
    if (!view->is_unclear) {
        td_updater_state_see(memory, view->role ? view->role->key : TD_STR_EMPTY, is_new);
    }
}

/* One job a VPA that has pods, in the order of the VPAs, the one to resume at first. */
static void make_jobs(struct td_updater_pass *pass, const struct pod_view *pod_views)
{
    const struct td_updater_input *input = &pass->input;
    struct td_map jobs;
    td_map_init(&jobs, TD_VPAS_MAX);
    struct td_updater_job *made =
        td_arena_array(input->arena, struct td_updater_job, input->vpa_count);
    size_t count = 0;
    for (size_t i = 0; i < input->pod_count; i++) {
        const struct td_match_vpa *master = pod_views[i].master;
        struct td_updater_job *job = master ? td_map_get(&jobs, master->key) : NULL;
        if (master && !job) {
            job = &made[count++];
            job->match = master;
            (void)td_map_put(&jobs, master->key, job); /* as many as VPAs: it has room */
        }
        if (job) {
            job->pod_count++;
            pass->controlled_count++;
        }
    }
    for (size_t i = 0; i < count; i++) {
        made[i].pods = td_arena_array(input->arena, const struct td_pod *, made[i].pod_count);
        made[i].pod_count = 0;
    }
    for (size_t i = 0; i < input->pod_count; i++) {
        if (pod_views[i].master) {
            struct td_updater_job *job = td_map_get(&jobs, pod_views[i].master->key);
            job->pods[job->pod_count++] = &input->pods[i];
        }
    }
    td_map_done(&jobs);
    pass->jobs = td_arena_array(input->arena, struct td_updater_job, count);
    size_t first = 0;
    for (size_t i = 0; i < count; i++) {
        if (td_str_equal(made[i].match->key, input->state->resume)) {
            first = i;
        }
    }
    for (size_t i = 0; i < count; i++) {
        pass->jobs[i] = made[(first + i) % count];
    }
    pass->job_count = count;
}

int td_updater_pass_begin(struct td_updater_pass *pass, const struct td_updater_input *input,
                          struct td_error *err)
{
    *pass = (struct td_updater_pass){.input = *input, .notes = {.arena = input->arena}};
    td_match_index_init(&pass->index, input->arena, input->gates.heterogeneous_workloads);
    td_match_index_init(&pass->roles, input->arena, input->gates.heterogeneous_workloads);
    td_top_memo_init(&pass->memo, input->arena);
    td_groups_init(&pass->groups, input->arena);
    struct pod_view *pod_views = td_arena_array(input->arena, struct pod_view, input->pod_count);
    int code = build_index(pass, err);
    code = code < 0 ? code : look_at_pods(pass, pod_views, err);
    if (code < 0) {
        td_groups_done(&pass->groups);
        td_top_memo_done(&pass->memo);
        td_match_index_done(&pass->roles);
        td_match_index_done(&pass->index);
        return code;
    }
    td_updater_state_begin(input->state);
    for (size_t i = 0; i < input->pod_count; i++) {
        if (!input->pods[i].is_terminating) {
            (void)td_groups_add(&pass->groups, &input->pods[i]); /* else it is in no group */
            remember(pass, &input->pods[i], &pod_views[i]);
        }
    }
    make_jobs(pass, pod_views);
    td_updater_state_set_resume(input->state, TD_STR_EMPTY);
    return TD_OK;
}

static struct td_updater_job *current_job(struct td_updater_pass *pass)
{
    return &pass->jobs[pass->job_at];
}

static void close_job(struct td_updater_pass *pass)
{
    td_restriction_done(&current_job(pass)->restriction);
    pass->is_job_open = false;
    pass->job_at++;
}

/* A resize that does not come about is a reason to evict, in the mode that does, but for pods
 * under the track estimator unless they have long been short. */
static bool may_evict(const struct td_updater_job *job,
                      const struct td_updater_candidate *candidate)
{
    return job->match->vpa->mode != TD_VPA_IN_PLACE &&
           (!candidate->is_tracked || candidate->may_evict);
}

static void redirect(struct td_updater_job *job, const struct td_updater_candidate *candidate)
{
    job->evictions.items[job->evictions.count++] = *candidate;
}

/* A token of the rate limit; false when the pass has no time to wait for it. */
static bool take_token(struct td_updater_pass *pass, struct td_token_bucket *bucket,
                       const struct td_updater_candidate *candidate, td_time now,
                       td_time *ret_not_before)
{
    const struct td_updater_config *config = pass->input.config;
    td_time at = td_token_bucket_take(bucket, config->rate_per_second, config->rate_burst, now);
    *ret_not_before = at;
    if (pass->input.deadline == 0 || at <= pass->input.deadline) {
        return true;
    }
    bucket->tokens += 1; /* not used after all */
    struct td_updater_job *job = current_job(pass);
    td_updater_note(pass, job, candidate->pod, candidate, TD_RULE_RATE_LIMIT, at, TD_STR_EMPTY);
    td_updater_state_set_resume(pass->input.state, job->match->key);
    close_job(pass);
    pass->phase = TD_PASS_OVER;
    return false;
}

/* A resize that cannot even be asked for. */
static void fail_resize(struct td_updater_pass *pass, struct td_updater_job *job,
                        const struct td_updater_candidate *candidate, enum td_updater_rule rule,
                        td_str detail)
{
    if (may_evict(job, candidate)) {
        redirect(job, candidate);
    } else {
        td_updater_note(pass, job, candidate->pod, candidate, rule, 0, detail);
    }
}

/* Fills the action. A resize that would change nothing is an attempt that failed: nothing is sent,
 * no event, no token, no share of the group's budget. */
static bool make_resize(struct td_updater_pass *pass, struct td_updater_job *job,
                        const struct td_updater_candidate *candidate)
{
    const struct td_updater_input *input = &pass->input;
    const struct td_pod *pod = candidate->pod;
    td_str detail = TD_STR_EMPTY;
    if (!td_restriction_view(&job->restriction, pod)) {
        enum td_updater_rule rule = td_updater_group_rule(job, pod, &detail);
        fail_resize(pass, job, candidate, rule, detail);
        return false;
    }
    static const struct td_limit_ranges no_limits;
    const struct td_limit_ranges *limits = input->get_limits(input->context, pod->meta.namespace);
    const struct td_resize_input resize = {
        .pod = pod,
        .vpa = candidate->resized ? candidate->resized : job->match->vpa,
        .limits = limits ? limits : &no_limits,
        .gates = input->gates,
        .largest_node = input->largest_node,
        .now = input->now,
        .is_tracked = candidate->is_tracked,
    };
    struct td_resize_patch patch;
    struct td_error err = TD_ERROR_INIT;
    int code = td_resize_patch(input->arena, &resize, &patch, &err);
    if (code == TD_OK && !patch.has_change && td_vertical_is_behind(pod)) {
        /* Another pod would have the same spec: an eviction would not help either. */
        td_updater_note(pass, job, pod, candidate, TD_RULE_RESIZING, 0, TD_STR_EMPTY);
        return false;
    }
    if (code == TD_OK && !patch.has_change) {
        code = td_error_set(&err, TD_NOT_FOUND, TD_RESIZE_NOTHING);
    }
    if (code < 0) {
        detail = td_arena_copy_str(input->arena, td_str_from(err.message));
        fail_resize(pass, job, candidate, TD_RULE_RESIZE_IMPOSSIBLE, detail);
        return false;
    }
    pass->annotations = patch.pod;
    pass->action = (struct td_updater_action){
        .call = TD_UPDATER_RESIZE, .vpa = job->match->vpa, .pod = pod, .patch = patch.resize};
    if (patch.is_pod_level) {
        pass->action.lacking = td_stanza_lacking(input->arena, pod, &patch.changes, &patch.stanza);
    }
    return true;
}

/* Fills the action when the pod is to be resized now. */
static bool try_resize(struct td_updater_pass *pass, struct td_updater_job *job,
                       struct td_updater_candidate *candidate, td_time now)
{
    const struct td_updater_input *input = &pass->input;
    const struct td_vpa *vpa = job->match->vpa;
    const struct td_recommendation *failed =
        td_updater_state_failed(input->arena, candidate->memory);
    struct td_in_place_answer answer =
        td_restriction_in_place(&job->restriction, candidate->pod, failed);
    bool is_retried = candidate->is_tracked && answer.cause == TD_IN_PLACE_RESIZING;
    if (answer.decision == TD_IN_PLACE_EVICT && may_evict(job, candidate)) {
        redirect(job, candidate);
        return false;
    }
    if (answer.decision == TD_IN_PLACE_INFEASIBLE_CACHED ||
        (answer.decision == TD_IN_PLACE_DEFERRED && vpa->mode != TD_VPA_IN_PLACE && !is_retried)) {
        td_str detail = TD_STR_EMPTY;
        enum td_updater_rule rule = answer.decision == TD_IN_PLACE_INFEASIBLE_CACHED
                                        ? TD_RULE_INFEASIBLE
                                        : td_updater_group_rule(job, candidate->pod, &detail);
        td_updater_note(pass, job, candidate->pod, candidate, rule, answer.until, detail);
        return false;
    }
    if (answer.decision == TD_IN_PLACE_INFEASIBLE && candidate->memory && !is_retried) {
        td_updater_state_set_failed(candidate->memory, &vpa->recommendation);
    }
    if (!make_resize(pass, job, candidate)) {
        return false;
    }
    return take_token(pass, &input->state->resizes, candidate, now, &pass->action.not_before);
}

/* Said once for each replica and recommendation, not in every pass. */
static void leave_alone(struct td_updater_pass *pass, struct td_updater_job *job,
                        struct td_updater_candidate *candidate)
{
    struct td_pod_memory *memory = candidate->memory;
    td_updater_note(pass, job, candidate->pod, candidate, TD_RULE_LEFT_ALONE,
                    memory->left_alone_until, TD_STR_EMPTY);
    if (memory->is_reported) {
        return;
    }
    memory->is_reported = true;
    td_str reason = td_updater_rule_name(TD_RULE_LEFT_ALONE);
    td_updater_event(pass, candidate->pod, job->match->vpa, reason,
                     TD_STR("Pod was evicted twice and its replacements did not get the "
                            "recommended resources; it is not evicted again."));
    td_updater_event(pass, NULL, job->match->vpa, reason,
                     td_arena_format(pass->input.arena,
                                     "Pod %.*s was evicted twice and its replacements did not get "
                                     "the recommended resources; it is not evicted again.",
                                     TD_STR_ARG(candidate->pod->meta.name)));
}

/* The LimitRange for which admission would refuse the pod when it comes back; empty: none. */
static td_str refusing_limit_range(const struct td_updater_pass *pass, const struct td_pod *pod)
{
    const struct td_updater_input *input = &pass->input;
    if (!pod->has_pod_level || !input->gates.pod_level_resources ||
        input->config->warns_of_limit_range) {
        return TD_STR_EMPTY;
    }
    const struct td_limit_ranges *limits = input->get_limits(input->context, pod->meta.namespace);
    return limits && limits->container_name_count > 0 ? limits->container_names[0] : TD_STR_EMPTY;
}

static bool try_evict(struct td_updater_pass *pass, struct td_updater_job *job,
                      struct td_updater_candidate *candidate, td_time now)
{
    struct td_updater_state *state = pass->input.state;
    td_time until = 0;
    td_str detail = TD_STR_EMPTY;
    if (!td_updater_is_reselected(pass, job, candidate->pod)) { /* a resize was its only way */
        td_updater_note(pass, job, candidate->pod, candidate, TD_RULE_NOT_SELECTED, 0, detail);
        return false;
    }
    enum td_evict_verdict verdict =
        td_restriction_can_evict(&job->restriction, candidate->pod, &until);
    if (verdict != TD_EVICTION_YES) {
        enum td_updater_rule rule = verdict == TD_EVICTION_RESIZING
                                        ? TD_RULE_RESIZING
                                        : td_updater_group_rule(job, candidate->pod, &detail);
        td_updater_note(pass, job, candidate->pod, candidate, rule, until, detail);
        return false;
    }
    if (!candidate->is_admitted) { /* the requirements were waived for a resize only */
        td_updater_note(pass, job, candidate->pod, candidate, TD_RULE_REQUIREMENTS, 0, detail);
        return false;
    }
    td_str limit_range = refusing_limit_range(pass, candidate->pod);
    if (limit_range.len > 0) {
        td_updater_note(pass, job, candidate->pod, candidate, TD_RULE_LIMIT_RANGE, 0, limit_range);
        return false;
    }
    if (candidate->memory && td_updater_state_is_left_alone(
                                 candidate->memory, candidate->recommendation, pass->input.now)) {
        leave_alone(pass, job, candidate);
        return false;
    }
    td_time not_before;
    if (!take_token(pass, &state->evictions, candidate, now, &not_before)) {
        return false;
    }
    pass->action = (struct td_updater_action){.call = TD_UPDATER_EVICT,
                                              .vpa = job->match->vpa,
                                              .pod = candidate->pod,
                                              .not_before = not_before};
    return true;
}

/* The next action of the open job; false when it has no more, or the pass is over. */
static bool next_of_job(struct td_updater_pass *pass, td_time now)
{
    struct td_updater_job *job = current_job(pass);
    while (pass->phase == TD_PASS_READY && job->in_place_at < job->in_place.count) {
        pass->candidate = &job->in_place.items[job->in_place_at++];
        if (try_resize(pass, job, pass->candidate, now)) {
            return true;
        }
    }
    while (pass->phase == TD_PASS_READY && job->eviction_at < job->evictions.count) {
        pass->candidate = &job->evictions.items[job->eviction_at++];
        if (try_evict(pass, job, pass->candidate, now)) {
            return true;
        }
    }
    return false;
}

bool td_updater_pass_next(struct td_updater_pass *pass, td_time now, struct td_updater_action *ret)
{
    td_assert(pass->phase != TD_PASS_WAITING);
    if (pass->phase == TD_PASS_ANNOTATING) {
        pass->action.call = TD_UPDATER_ANNOTATE;
        pass->action.patch = pass->annotations;
        pass->action.not_before = now;
        pass->phase = TD_PASS_WAITING;
        *ret = pass->action;
        return true;
    }
    while (pass->phase == TD_PASS_READY && pass->job_at < pass->job_count) {
        if (!pass->is_job_open) {
            pass->is_job_open = true;
            td_updater_select(pass, current_job(pass));
        }
        if (next_of_job(pass, now)) {
            pass->phase = TD_PASS_WAITING;
            *ret = pass->action;
            return true;
        }
        if (pass->phase == TD_PASS_READY) {
            close_job(pass);
        }
    }
    pass->phase = TD_PASS_OVER;
    return false;
}

static void take_eviction(struct td_updater_pass *pass, struct td_updater_job *job,
                          enum td_updater_result result, td_str message)
{
    struct td_updater_candidate *candidate = pass->candidate;
    const struct td_pod *pod = candidate->pod;
    struct td_arena *arena = pass->input.arena;
    if (result != TD_UPDATER_DONE) {
        bool is_refused = result == TD_UPDATER_REFUSED;
        pass->input.state->evictions.tokens += is_refused; /* not used after all */
        td_updater_note(pass, job, pod, candidate,
                        is_refused ? TD_RULE_REPLACEMENT : TD_RULE_EVICTION_FAILED, 0,
                        td_arena_copy_str(arena, message));
        return;
    }
    td_updater_note(pass, job, pod, candidate, TD_RULE_EVICTED, 0, TD_STR_EMPTY);
    td_updater_event(pass, pod, job->match->vpa, TD_STR("EvictedByVPA"),
                     TD_STR("Pod was evicted by VPA Updater to apply resource recommendation."));
    decided(pass, "evicted");
    td_updater_event(
        pass, NULL, job->match->vpa, TD_STR("EvictedPod"),
        td_arena_format(arena, "VPA Updater evicted Pod %.*s to apply resource recommendation.",
                        TD_STR_ARG(pod->meta.name)));
    td_restriction_evicted(&job->restriction, pod);
    job->evicted++;
    td_updater_state_evicted(arena, pass->input.state, pod, candidate->recommendation,
                             pass->input.now);
    if (candidate->memory) {
        td_updater_state_settled(candidate->memory);
    }
}

static void take_resize(struct td_updater_pass *pass, struct td_updater_job *job,
                        enum td_updater_result result, td_str message)
{
    struct td_updater_candidate *candidate = pass->candidate;
    if (result == TD_UPDATER_DONE) {
        pass->phase = TD_PASS_ANNOTATING;
        return;
    }
    const struct td_vpa *vpa = job->match->vpa;
    bool is_infeasible = result == TD_UPDATER_INFEASIBLE;
    if (candidate->is_tracked && candidate->memory) {
        candidate->memory->is_refused = true;
        td_updater_state_hold_resize(candidate->memory, pass->input.now);
    } else if (vpa->mode == TD_VPA_IN_PLACE && is_infeasible && candidate->memory) {
        td_updater_state_set_failed(candidate->memory, &vpa->recommendation);
    }
    td_updater_note(pass, job, candidate->pod, candidate,
                    is_infeasible ? TD_RULE_RESIZE_IMPOSSIBLE : TD_RULE_RESIZE_FAILED, 0,
                    td_arena_copy_str(pass->input.arena, message));
    if (may_evict(job, candidate)) {
        redirect(job, candidate);
    }
}

void td_updater_pass_result(struct td_updater_pass *pass, enum td_updater_result result,
                            td_str message)
{
    td_assert(pass->phase == TD_PASS_WAITING);
    struct td_updater_job *job = current_job(pass);
    pass->phase = TD_PASS_READY;
    switch (pass->action.call) {
    case TD_UPDATER_EVICT:
        take_eviction(pass, job, result, message);
        break;
    case TD_UPDATER_RESIZE:
        take_resize(pass, job, result, message);
        break;
    case TD_UPDATER_ANNOTATE: /* the resize stands, whatever became of its annotation */
        td_updater_note(pass, job, pass->action.pod, pass->candidate, TD_RULE_RESIZED, 0,
                        TD_STR_EMPTY);
        td_updater_event(pass, pass->action.pod, pass->action.vpa, TD_STR("InPlaceResizedByVPA"),
                         TD_STR("Pod was resized in place by VPA Updater."));
        decided(pass, "resized in place");
        td_restriction_resized(&job->restriction, pass->action.pod);
        job->resized++;
        if (pass->candidate->memory) {
            pass->candidate->memory->is_refused = false;
            td_updater_state_settled(pass->candidate->memory);
        }
        break;
    }
}

void td_updater_pass_end(struct td_updater_pass *pass)
{
    if (pass->is_job_open) {
        close_job(pass);
    }
    td_groups_done(&pass->groups);
    td_top_memo_done(&pass->memo);
    td_match_index_done(&pass->roles);
    td_match_index_done(&pass->index);
    td_updater_state_end(pass->input.state, pass->input.now);
}
