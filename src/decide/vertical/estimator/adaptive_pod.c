/*
 * Each container with a recommendation is a row, and so is the pod itself where it has resources
 * of its own. Rows are decided one by one; the row that weighs most gives the reason, and the copy
 * of the VPA recommends for rows that change and for no other.
 */
#include "decide/vertical/estimator/adaptive_pod.h"

#include "decide/vertical/patch/capping.h"
#include "decide/vertical/resourcelist.h"
#include "decide/vertical/updater/priority.h"
#include "model/name_table.h"

#define TEXT_BYTES_MAX ((size_t)1024)

/* A container or the pod, before and after the decision. */
struct row {
    td_str name; /* empty: the pod itself */
    struct td_adaptive_apply_input input;
    struct td_adaptive_params params;
    struct td_adaptive_decision decision;
};

bool td_adaptive_since(const struct td_vpa *vpa, td_time *ret)
{
    for (size_t i = 0; i < vpa->condition_count; i++) {
        const struct td_vpa_condition *condition = &vpa->conditions[i];
        if (td_str_equal(condition->type, TD_ADAPTIVE_CONDITION) &&
            td_str_equal(condition->status, TD_STR("True"))) {
            *ret = td_time_from_instant(condition->last_transition);
            return true;
        }
    }
    return false;
}

const struct td_track_params *td_track_since(const struct td_vpa *vpa, td_time *ret)
{
    const struct td_vpa_condition *found =
        td_vpa_condition_find(vpa->conditions, vpa->condition_count, TD_TRACK_CONDITION);
    const struct td_track_params *params = found && td_str_equal(found->status, TD_STR("True"))
                                               ? td_track_params_of_reason(found->reason)
                                               : NULL;
    if (params) {
        *ret = td_time_from_instant(found->last_transition);
    }
    return params;
}

int td_adaptive_rank(enum td_adaptive_apply_reason reason)
{
    static const int ranks[] = {
        [TD_APPLY_OOM] = 0,      [TD_APPLY_NO_REQUEST] = 1, [TD_APPLY_INCREASE] = 1,
        [TD_APPLY_DECREASE] = 2, [TD_APPLY_WAITING] = 3,    [TD_APPLY_IN_BAND] = 4,
    };
    return ranks[reason];
}

static int64_t amount_of(const struct td_resource_list *list, td_str resource)
{
    const struct td_quantity *quantity = td_resource_list_get(list, resource);
    if (!quantity) {
        return 0;
    }
    return td_str_equal(resource, TD_CPU) ? td_quantity_milli(quantity)
                                          : td_quantity_value(quantity);
}

/* What is not recommended stays as it is. Where it is not even requested any amount that equals
 * itself does: a 0 would ask for a request of it, and hold every decrease of the other. */
static void set_pair(const struct td_resource_list *requests, const struct td_resource_list *target,
                     td_str resource, bool skip_absent, int64_t *ret_current, int64_t *ret_target)
{
    *ret_current = amount_of(requests, resource);
    bool is_left = !td_resource_list_get(target, resource) || (skip_absent && *ret_current == 0);
    if (is_left && *ret_current == 0) {
        *ret_current = 1;
    }
    *ret_target = is_left ? *ret_current : amount_of(target, resource);
}

static void fill_row(struct row *row, const struct td_resource_list *requests,
                     const struct td_resource_list *target, bool skip_absent)
{
    struct td_adaptive_apply_input *input = &row->input;
    set_pair(requests, target, TD_CPU, skip_absent, &input->current.cpu_milli,
             &input->target.cpu_milli);
    set_pair(requests, target, TD_MEMORY, skip_absent, &input->current.memory_bytes,
             &input->target.memory_bytes);
    /* What the risks differ in is no part of this rule. */
    row->params = *td_adaptive_params_of(TD_RISK_BALANCED);
}

/* An apply that would leave everything as it is holds. */
static void hold_equal(struct row *row)
{
    const struct td_adaptive_apply_input *input = &row->input;
    const struct td_adaptive_amounts *made = &row->decision.request;
    if (row->decision.is_apply && made->cpu_milli == input->current.cpu_milli &&
        made->memory_bytes == input->current.memory_bytes) {
        row->decision.is_apply = false;
        row->decision.reason = TD_APPLY_IN_BAND;
    }
}

static void decide_row(struct row *row, const struct td_resource_list *requests,
                       const struct td_resource_list *target, bool skip_absent)
{
    fill_row(row, requests, target, skip_absent);
    row->decision = td_adaptive_apply(&row->input, &row->params);
    hold_equal(row);
}

bool td_adaptive_is_short(const struct td_pod *pod, const struct td_recommendation *recommendation)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_name_table rows = td_recommendation_names(&arena, recommendation);
    for (size_t i = 0; i < pod->container_count; i++) {
        const struct td_pod_container *container = &pod->containers[i];
        size_t found = td_name_table_find(&rows, container->name);
        for (size_t r = 0; found != TD_NAME_NONE && r < 2; r++) {
            td_str resource = r == 0 ? TD_CPU : TD_MEMORY;
            int64_t has = amount_of(td_vertical_requests(container), resource);
            int64_t wanted = amount_of(&recommendation->containers[found].target, resource);
            if (has > 0 && wanted - has >= has - has / 2) {
                return true;
            }
        }
    }
    return false;
}

static bool is_oom(const struct td_pod_container *container, int64_t changed)
{
    return container->has_last_terminated &&
           td_str_equal(container->last_terminated_reason, TD_STR("OOMKilled")) &&
           container->last_finished != TD_TIME_NONE &&
           td_adaptive_seconds(container->last_finished) >= changed;
}

static int64_t changed_at(const struct td_adaptive_pod_input *input)
{
    td_time changed = td_time_from_instant(input->pod->meta.created);
    changed = input->pod->resized > changed ? input->pod->resized : changed;
    changed = input->since > changed ? input->since : changed;
    return td_adaptive_seconds(changed);
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* CPU and memory of a container under the track estimator, each by its own rule and from its own
 * last change on; one decision is made of the two. */
static void decide_tracked(struct row *row, const struct td_adaptive_pod_input *input,
                           const struct td_pod_container *container,
                           const struct td_resource_list *target)
{
    const struct td_pod *pod = input->pod;
    struct td_track_template template = td_track_template_of(input->template, container);
    fill_row(row, td_vertical_requests(container), target, input->is_pod_level);
    row->params = td_track_memory_params(&template, TD_RISK_BALANCED);
    row->params.cpu_up = input->track->up;
    row->params.cpu_down = input->track->down;
    const struct td_track_apply_input cpu = {
        .now = row->input.now,
        .changed =
            later(td_resized_at(pod, container, TD_CPU), td_adaptive_seconds(input->track_since)),
        .current = row->input.current.cpu_milli,
        .target = row->input.target.cpu_milli,
    };
    struct td_adaptive_apply_input memory = row->input;
    memory.changed =
        later(td_resized_at(pod, container, TD_MEMORY), td_adaptive_seconds(input->since));
    memory.is_oom = is_oom(container, memory.changed);
    memory.current.cpu_milli = 1;
    memory.target.cpu_milli = 1;
    struct td_track_decision across = td_track_apply(&cpu, input->track);
    row->decision = td_adaptive_apply(&memory, &row->params);
    row->decision.request.cpu_milli = across.request;
    row->decision.is_apply = row->decision.is_apply || across.is_apply;
    if (across.reason == TD_APPLY_WAITING &&
        (row->decision.reason != TD_APPLY_WAITING || across.until < row->decision.until)) {
        row->decision.until = across.until;
    }
    if (td_adaptive_rank(across.reason) < td_adaptive_rank(row->decision.reason)) {
        row->decision.reason = across.reason;
    }
    hold_equal(row);
}

/* `list` with the row's new amounts for the resources that it names. */
static struct td_resource_list take_amounts(struct td_arena *arena, const struct row *row,
                                            const struct td_resource_list *list)
{
    struct td_resource_list made = td_resource_list_copy(arena, list);
    struct td_quantity *cpu = td_resource_list_edit(&made, TD_CPU);
    struct td_quantity *memory = td_resource_list_edit(&made, TD_MEMORY);
    if (cpu && row->decision.request.cpu_milli != row->input.target.cpu_milli) {
        *cpu = td_quantity_new_milli(row->decision.request.cpu_milli, TD_QUANTITY_DECIMAL_SI);
    }
    if (memory && row->decision.request.memory_bytes != row->input.target.memory_bytes) {
        *memory = td_quantity_new(row->decision.request.memory_bytes, TD_QUANTITY_BINARY_SI);
    }
    return made;
}

/* Of the rows so far this one weighs more, or is the first of its weight. */
static void weigh(struct td_arena *arena, const struct row *row, struct td_adaptive_pod *ret)
{
    const struct td_adaptive_decision *decision = &row->decision;
    td_time until = decision->reason == TD_APPLY_WAITING && decision->until < INT64_MAX / TD_SECOND
                        ? decision->until * TD_SECOND
                        : 0;
    if (until != 0 && (ret->until == 0 || until < ret->until)) {
        ret->until = until;
    }
    ret->is_apply = ret->is_apply || decision->is_apply;
    if (ret->text.len > 0 && td_adaptive_rank(decision->reason) >= td_adaptive_rank(ret->reason)) {
        return;
    }
    td_auto_buf text = td_buf_capped(TEXT_BYTES_MAX);
    (void)(row->name.len > 0
               ? td_buf_append_format(&text, "container %.*s: ", TD_STR_ARG(row->name))
               : td_buf_append(&text, TD_STR("pod: ")));
    td_adaptive_write_decision(&row->input, &row->params, decision, &text);
    ret->reason = decision->reason;
    ret->text = td_arena_copy_str(arena, td_buf_str(&text));
}

/* The row of each container that has one, and what it makes of the recommendation. */
static void judge_containers(struct td_arena *arena, const struct td_adaptive_pod_input *input,
                             struct row row, struct td_recommendation *made,
                             struct td_adaptive_pod *ret)
{
    const struct td_pod *pod = input->pod;
    const struct td_recommendation *capped = input->recommendation;
    struct td_name_table observed;
    bool has_observed = td_update_observed(arena, pod, &observed);
    struct td_name_table rows = td_recommendation_names(arena, capped);
    /* Of what is capped for the pod some may be a LimitRange's alone. */
    struct td_name_table own = td_recommendation_names(arena, &input->vpa->recommendation);
    made->containers =
        td_arena_array(arena, struct td_container_recommendation, pod->container_count);
    for (size_t i = 0; i < pod->container_count; i++) {
        const struct td_pod_container *container = &pod->containers[i];
        size_t found = td_name_table_find(&rows, container->name);
        if (found == TD_NAME_NONE || td_name_table_find(&own, container->name) == TD_NAME_NONE ||
            (has_observed && td_name_table_find(&observed, container->name) == TD_NAME_NONE)) {
            continue;
        }
        const struct td_container_recommendation *entry = &capped->containers[found];
        row.name = container->name;
        row.input.is_oom = is_oom(container, row.input.changed);
        if (input->track && !container->restarts_on_cpu) {
            decide_tracked(&row, input, container, &entry->target);
        } else {
            decide_row(&row, td_vertical_requests(container), &entry->target, input->is_pod_level);
        }
        weigh(arena, &row, ret);
        if (row.decision.is_apply) {
            struct td_container_recommendation *kept = &made->containers[made->container_count++];
            *kept = *entry;
            kept->target = take_amounts(arena, &row, &entry->target);
        }
    }
}

struct td_adaptive_pod td_adaptive_judge_pod(struct td_arena *arena,
                                             const struct td_adaptive_pod_input *input)
{
    struct td_adaptive_pod answer = {.reason = TD_APPLY_IN_BAND};
    struct row row = {
        .input = {.now = td_adaptive_seconds(input->now), .changed = changed_at(input)}};
    struct td_recommendation made = {.pod = input->recommendation->pod};
    judge_containers(arena, input, row, &made, &answer);
    if (input->is_pod_level) {
        decide_row(&row, &input->pod->pod_requests, &made.pod.target, true);
        weigh(arena, &row, &answer);
        made.pod.target = take_amounts(arena, &row, &made.pod.target); /* held: what it has */
    }
    if (answer.is_apply) {
        struct td_vpa *vpa = td_arena_new(arena, struct td_vpa);
        *vpa = *input->vpa;
        vpa->recommendation = made;
        answer.vpa = vpa;
    }
    return answer;
}
