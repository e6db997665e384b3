/* Requests and targets are summed by resource over all containers, as upstream does; a pod within
 * its bounds needs a quick OOM kill, or age and a large enough change, to be updated. */
#include "decide/vertical/updater/priority.h"

#include <math.h>
#include <stdlib.h>

#include "decide/vertical/patch/capping.h"
#include "kube/names.h"

/* One resource of one container, or of the pod. */
struct entry {
    td_str resource;
    int64_t target; /* thousandths */
    int64_t request;
};

struct entries {
    struct entry *items;
    size_t count;
};

static int compare_entries(const void *a, const void *b)
{
    const struct entry *left = a;
    const struct entry *right = b;
    return td_str_compare(left->resource, right->resource);
}

static int64_t add_saturated(int64_t a, int64_t b)
{
    int64_t sum;
    if (__builtin_add_overflow(a, b, &sum)) {
        return a > 0 ? INT64_MAX : INT64_MIN;
    }
    return sum;
}

/* The sum over resources of |request - target| / request, each over all containers. */
static double diff_of(struct entries *entries)
{
    double diff = 0;
    qsort(entries->items, entries->count, sizeof(entries->items[0]), compare_entries);
    for (size_t i = 0; i < entries->count;) {
        int64_t target = 0;
        int64_t request = 0;
        size_t first = i;
        for (; i < entries->count &&
               td_str_equal(entries->items[i].resource, entries->items[first].resource);
             i++) {
            target = add_saturated(target, entries->items[i].target);
            request = add_saturated(request, entries->items[i].request);
        }
        double base = fmax((double)request, 1.0);
        diff += fabs(base - (double)target) / base;
    }
    return diff;
}

/* The three lists of one level. */
struct bounds {
    const struct td_resource_list *target;
    const struct td_resource_list *lower;
    const struct td_resource_list *upper;
};

static void add_level(const struct bounds *bounds, const struct td_resource_list *requests,
                      bool skip_absent, struct entries *entries, struct td_update_priority *ret)
{
    for (size_t i = 0; i < bounds->target->count; i++) {
        const struct td_resource_amount *target = &bounds->target->items[i];
        const struct td_quantity *request = td_resource_list_get(requests, target->name);
        struct entry entry = {.resource = target->name,
                              .target = td_quantity_milli(&target->quantity)};
        if (request) {
            entry.request = td_quantity_milli(request);
            const struct td_quantity *lower = td_resource_list_get(bounds->lower, target->name);
            const struct td_quantity *upper = td_resource_list_get(bounds->upper, target->name);
            ret->is_scale_up |= entry.target > entry.request;
            ret->is_outside |= (lower && td_quantity_compare(request, lower) < 0) ||
                               (upper && td_quantity_compare(request, upper) > 0);
        } else if (skip_absent) {
            continue;
        } else {
            ret->is_scale_up = true;
            ret->is_outside = true;
        }
        entries->items[entries->count++] = entry;
    }
}

/* Where the next ", " begins, or the end. */
static size_t find_separator(td_str text)
{
    for (size_t at = 0; at + 1 < text.len; at++) {
        if (text.ptr[at] == ',' && text.ptr[at + 1] == ' ') {
            return at;
        }
    }
    return text.len;
}

bool td_update_observed(struct td_arena *arena, const struct td_pod *pod, struct td_name_table *ret)
{
    const struct td_json *value =
        td_json_get(pod->meta.annotations, TD_STR("vpaObservedContainers"));
    if (!td_json_is(value, TD_JSON_TYPE_STRING)) {
        return false;
    }
    td_str rest = value->text;
    struct td_name_table names = td_name_table_new(arena, rest.len / 3 + 1);
    bool is_more = rest.len > 0;
    while (is_more) {
        size_t end = find_separator(rest);
        td_str name = td_str_slice(rest, 0, end);
        if (td_name_check_dns1123_label(name, NULL) > 0) {
            return false;
        }
        td_name_table_add(&names, name, 0);
        is_more = end < rest.len;
        rest = td_str_slice(rest, end + 2, rest.len);
    }
    *ret = names;
    return true;
}

struct td_update_priority td_update_priority(struct td_arena *arena, const struct td_pod *pod,
                                             const struct td_recommendation *recommendation,
                                             bool skip_absent)
{
    struct td_name_table observed;
    bool has_observed = td_update_observed(arena, pod, &observed);
    struct td_name_table names = td_recommendation_names(arena, recommendation);
    const struct td_container_recommendation **chosen =
        td_arena_array(arena, const struct td_container_recommendation *, pod->container_count);
    size_t entry_max = 0;
    for (size_t i = 0; i < pod->container_count; i++) {
        size_t found = td_name_table_find(&names, pod->containers[i].name);
        if (found == TD_NAME_NONE ||
            (has_observed &&
             td_name_table_find(&observed, pod->containers[i].name) == TD_NAME_NONE)) {
            continue;
        }
        chosen[i] = &recommendation->containers[found];
        entry_max += chosen[i]->target.count;
    }
    struct td_update_priority priority = {.is_outside = false};
    struct entries entries = {.items = td_arena_array(arena, struct entry, entry_max)};
    for (size_t i = 0; i < pod->container_count; i++) {
        if (chosen[i]) {
            struct bounds bounds = {.target = &chosen[i]->target,
                                    .lower = &chosen[i]->lower_bound,
                                    .upper = &chosen[i]->upper_bound};
            add_level(&bounds, td_vertical_requests(&pod->containers[i]), skip_absent, &entries,
                      &priority);
        }
    }
    priority.resource_diff = diff_of(&entries);
    return priority;
}

static struct td_update_priority pod_priority(struct td_arena *arena, const struct td_pod *pod,
                                              const struct td_pod_recommendation *recommendation)
{
    struct td_update_priority priority = {.is_outside = false};
    struct entries entries = {
        .items = td_arena_array(arena, struct entry, recommendation->target.count)};
    struct bounds bounds = {.target = &recommendation->target,
                            .lower = &recommendation->lower_bound,
                            .upper = &recommendation->upper_bound};
    add_level(&bounds, &pod->pod_requests, true, &entries, &priority);
    priority.resource_diff = diff_of(&entries);
    return priority;
}

static bool is_early_kill(const struct td_pod_container *container, td_duration threshold,
                          td_time now)
{
    if (!container->has_last_terminated ||
        !td_str_equal(container->last_terminated_reason, TD_STR("OOMKilled")) ||
        container->last_started == TD_TIME_NONE || container->last_finished == TD_TIME_NONE) {
        return false;
    }
    td_duration lived;
    td_duration since;
    if (__builtin_sub_overflow(container->last_finished, container->last_started, &lived) ||
        __builtin_sub_overflow(now, container->last_finished, &since)) {
        return false;
    }
    return lived < threshold && since < threshold;
}

/* Was a container that counts killed early for its memory, and lately? */
static bool is_quick_oom(struct td_arena *arena, const struct td_vpa *vpa, const struct td_pod *pod,
                         td_duration threshold, td_time now)
{
    struct td_name_table observed;
    bool has_observed = td_update_observed(arena, pod, &observed);
    for (size_t i = 0; i < pod->container_count; i++) {
        const struct td_pod_container *container = &pod->containers[i];
        if (!is_early_kill(container, threshold, now)) {
            continue;
        }
        const struct td_container_policy *policy =
            td_vpa_container_policy(&vpa->policy, container->name);
        bool is_seen =
            !has_observed || td_name_table_find(&observed, container->name) != TD_NAME_NONE;
        if (is_seen && !(policy && policy->is_off)) {
            return true;
        }
    }
    return false;
}

bool td_recommendation_is_lower(struct td_arena *arena, const struct td_recommendation *before,
                                const struct td_recommendation *now)
{
    struct td_name_table names = td_recommendation_names(arena, before);
    for (size_t i = 0; i < now->container_count; i++) {
        size_t found = td_name_table_find(&names, now->containers[i].container_name);
        if (found == TD_NAME_NONE) {
            continue;
        }
        const struct td_resource_list *target = &now->containers[i].target;
        for (size_t r = 0; r < target->count; r++) {
            const struct td_quantity *old =
                td_resource_list_get(&before->containers[found].target, target->items[r].name);
            if (old && td_quantity_compare(&target->items[r].quantity, old) < 0) {
                return true;
            }
        }
    }
    return false;
}

/* Is there a recommendation for each container that the VPA controls? Until then the difference
 * says nothing about a pod that has just come to it. */
static bool is_all_recommended(struct td_arena *arena, const struct td_update_question *question)
{
    const struct td_pod *pod = question->pod;
    struct td_name_table observed;
    bool has_observed = td_update_observed(arena, pod, &observed);
    /* The VPA's own: what is capped for the pod may have rows that only a LimitRange wrote. */
    struct td_name_table names = td_recommendation_names(arena, &question->vpa->recommendation);
    for (size_t i = 0; i < pod->container_count; i++) {
        td_str name = pod->containers[i].name;
        const struct td_container_policy *policy =
            td_vpa_container_policy(&question->vpa->policy, name);
        bool is_controlled = !(policy && policy->is_off) &&
                             (!has_observed || td_name_table_find(&observed, name) != TD_NAME_NONE);
        if (is_controlled && td_name_table_find(&names, name) == TD_NAME_NONE) {
            return false;
        }
    }
    return question->vpa->has_recommendation;
}

static td_duration oom_threshold(const struct td_update_question *question)
{
    const struct td_vpa *vpa = question->vpa;
    return question->gates->per_vpa_config && vpa->has_evict_after_oom
               ? vpa->evict_after_oom_seconds * TD_SECOND
               : question->config->oom_threshold;
}

/* Inside its range: only age and distance can be reasons. */
static enum td_update_verdict judge_inside(const struct td_update_question *question,
                                           struct td_update_answer *answer)
{
    td_time start = question->pod->start_time;
    if (start == TD_TIME_NONE) {
        return TD_UPDATE_NO_START_TIME;
    }
    td_time until;
    if (__builtin_add_overflow(start, question->config->lifetime, &until)) {
        until = INT64_MAX;
    }
    if (question->now < until) {
        answer->until = until;
        return TD_UPDATE_YOUNG;
    }
    return answer->priority.resource_diff < question->config->threshold ? TD_UPDATE_SMALL_CHANGE
                                                                        : TD_UPDATE_ACCEPTED;
}

struct td_update_answer td_update_judge(struct td_arena *arena,
                                        const struct td_update_question *question)
{
    const struct td_pod *pod = question->pod;
    double threshold = question->config->threshold;
    bool has_pod_level = question->gates->pod_level_resources && pod->has_pod_level;
    struct td_update_answer answer = {
        .container = td_update_priority(arena, pod, question->recommendation, has_pod_level),
        .is_quick_oom =
            is_quick_oom(arena, question->vpa, pod, oom_threshold(question), question->now),
    };
    answer.priority = answer.container;
    answer.is_moved = question->is_moved && question->gates->heterogeneous_workloads &&
                      answer.container.resource_diff >= threshold;
    answer.ends_move = question->is_moved && answer.container.resource_diff < threshold &&
                       is_all_recommended(arena, question);
    bool is_outside = answer.container.is_outside || answer.is_moved;
    if (has_pod_level && !answer.container.is_outside &&
        answer.container.resource_diff < threshold) {
        answer.is_pod_checked = true;
        answer.pod = pod_priority(arena, pod, &question->recommendation->pod);
        answer.priority = answer.pod;
        is_outside = answer.pod.is_outside;
    }
    bool changes = answer.priority.resource_diff != 0 || answer.container.resource_diff != 0;
    if (question->failed && question->vpa->mode == TD_VPA_IN_PLACE &&
        !td_recommendation_is_lower(arena, question->failed, question->recommendation)) {
        answer.verdict = TD_UPDATE_INFEASIBLE;
    } else if (!is_outside && !answer.is_quick_oom) {
        answer.verdict = judge_inside(question, &answer);
    }
    if (answer.verdict == TD_UPDATE_ACCEPTED && answer.is_quick_oom && !changes) {
        answer.verdict = TD_UPDATE_OOM_NO_CHANGE;
    }
    return answer;
}

int td_update_priority_compare(const struct td_update_priority *a,
                               const struct td_update_priority *b)
{
    if (a->is_scale_up != b->is_scale_up) {
        return a->is_scale_up ? -1 : 1;
    }
    if (a->resource_diff > b->resource_diff) {
        return -1;
    }
    return a->resource_diff < b->resource_diff ? 1 : 0;
}
