/*
 * What one pod is worth to a calculation: its sample and its request, and the reason for which it
 * does not count. A pod is looked at once for each metric, without allocation.
 */
#include "decide/horizontal/pods.h"

#include "base/map.h"

enum td_hpa_why td_hpa_pod_judge(const struct td_hpa_pod *pod,
                                 const struct td_hpa_grouping *grouping)
{
    if (pod->is_terminating) {
        return TD_HPA_WHY_TERMINATING;
    }
    if (pod->phase == TD_POD_FAILED) {
        return TD_HPA_WHY_FAILED;
    }
    if (pod->phase == TD_POD_PENDING) {
        return TD_HPA_WHY_PENDING;
    }
    if (!pod->has_sample) {
        return TD_HPA_WHY_NO_SAMPLE;
    }
    if (!grouping->is_cpu) {
        return TD_HPA_WHY_COUNTED;
    }
    if (pod->ready == TD_CONDITION_ABSENT || pod->start_time == TD_TIME_NONE) {
        return TD_HPA_WHY_NO_READINESS;
    }
    if (td_hpa_add(pod->start_time, grouping->cpu_initialization) > grouping->now) {
        if (pod->ready == TD_CONDITION_FALSE) {
            return TD_HPA_WHY_STARTING;
        }
        return pod->sample_time < td_hpa_add(pod->ready_since, pod->sample_window)
                   ? TD_HPA_WHY_OLD_SAMPLE
                   : TD_HPA_WHY_COUNTED;
    }
    if (pod->ready == TD_CONDITION_FALSE &&
        td_hpa_add(pod->start_time, grouping->readiness_delay) > pod->ready_since) {
        return TD_HPA_WHY_NEVER_READY;
    }
    return TD_HPA_WHY_COUNTED;
}

enum td_hpa_group td_hpa_why_group(enum td_hpa_why why)
{
    static const uint8_t groups[TD_HPA_WHY_COUNT] = {
        [TD_HPA_WHY_COUNTED] = TD_HPA_GROUP_READY,
        [TD_HPA_WHY_TERMINATING] = TD_HPA_GROUP_IGNORED,
        [TD_HPA_WHY_FAILED] = TD_HPA_GROUP_IGNORED,
        [TD_HPA_WHY_PENDING] = TD_HPA_GROUP_UNREADY,
        [TD_HPA_WHY_NO_SAMPLE] = TD_HPA_GROUP_MISSING,
        [TD_HPA_WHY_NO_READINESS] = TD_HPA_GROUP_UNREADY,
        [TD_HPA_WHY_STARTING] = TD_HPA_GROUP_UNREADY,
        [TD_HPA_WHY_OLD_SAMPLE] = TD_HPA_GROUP_UNREADY,
        [TD_HPA_WHY_NEVER_READY] = TD_HPA_GROUP_UNREADY,
    };
    return (enum td_hpa_group)groups[why];
}

td_str td_hpa_why_name(enum td_hpa_why why)
{
    static const td_str names[TD_HPA_WHY_COUNT] = {
        [TD_HPA_WHY_COUNTED] = TD_STR_INIT("counted"),
        [TD_HPA_WHY_TERMINATING] = TD_STR_INIT("terminating"),
        [TD_HPA_WHY_FAILED] = TD_STR_INIT("failed"),
        [TD_HPA_WHY_PENDING] = TD_STR_INIT("pending"),
        [TD_HPA_WHY_NO_SAMPLE] = TD_STR_INIT("without a sample"),
        [TD_HPA_WHY_NO_READINESS] = TD_STR_INIT("without a Ready condition or start time"),
        [TD_HPA_WHY_STARTING] = TD_STR_INIT("starting"),
        [TD_HPA_WHY_OLD_SAMPLE] = TD_STR_INIT("measured before ready"),
        [TD_HPA_WHY_NEVER_READY] = TD_STR_INIT("never ready"),
    };
    return names[why];
}

size_t td_hpa_ready_count(const struct td_hpa_view *view)
{
    size_t count = 0;
    for (size_t i = 0; i < view->count; i++) {
        count += view->pods[i].phase == TD_POD_RUNNING && view->pods[i].ready == TD_CONDITION_TRUE;
    }
    return count;
}

void td_hpa_pod_fill(struct td_hpa_pod *item, const struct td_pod *pod)
{
    *item = (struct td_hpa_pod){
        .name = pod->meta.name,
        .phase = (uint8_t)pod->phase,
        .ready = (uint8_t)pod->ready,
        .is_terminating = pod->is_terminating,
        .start_time = pod->start_time,
        .ready_since = pod->ready_since,
        .sample_time = TD_TIME_NONE,
    };
}

/* Upstream's IsPodLevelRequestsSet: at least one resource that a pod may ask for as a whole. */
static bool has_pod_level_request(const struct td_pod *pod)
{
    for (size_t i = 0; i < pod->pod_requests.count; i++) {
        td_str name = pod->pod_requests.items[i].name;
        if (td_str_equal(name, TD_STR("cpu")) || td_str_equal(name, TD_STR("memory")) ||
            td_str_starts_with(name, TD_STR("hugepages-"))) {
            return true;
        }
    }
    return false;
}

static void fill_pod_level(struct td_hpa_pod *item, const struct td_pod *pod, td_str resource)
{
    const struct td_quantity *request = td_resource_list_get(&pod->whole_requests, resource);
    item->request_milli = request ? td_quantity_milli(request) : 0;
    item->request_problem = request ? TD_HPA_REQUEST_OK : TD_HPA_REQUEST_NO_POD_LEVEL;
}

/* Regular containers first, then sidecars: upstream's order, which decides what an error names. */
static void fill_from_containers(struct td_hpa_pod *item, const struct td_pod *pod, td_str resource,
                                 td_str container)
{
    int64_t sum = 0;
    bool is_found = container.len == 0;
    for (size_t i = 0; i < pod->container_count + pod->init_container_count; i++) {
        bool is_init = i >= pod->container_count;
        const struct td_pod_container *each =
            is_init ? &pod->init_containers[i - pod->container_count] : &pod->containers[i];
        if ((is_init && !each->is_sidecar) ||
            (container.len > 0 && !td_str_equal(container, each->name))) {
            continue;
        }
        const struct td_quantity *request = td_resource_list_get(&each->spec_requests, resource);
        if (!request) {
            item->request_problem = TD_HPA_REQUEST_MISSING;
            item->request_container = each->name;
            return;
        }
        sum = td_hpa_add(sum, td_quantity_milli(request));
        is_found = true;
        if (container.len > 0) {
            break;
        }
    }
    if (!is_found) {
        item->request_problem = TD_HPA_REQUEST_NO_CONTAINER;
        item->request_container = container;
        return;
    }
    item->request_milli = sum;
}

void td_hpa_pod_fill_request(struct td_hpa_pod *item, const struct td_pod *pod, td_str resource,
                             td_str container)
{
    item->request_milli = 0;
    item->request_problem = TD_HPA_REQUEST_OK;
    if (container.len == 0 && has_pod_level_request(pod)) {
        fill_pod_level(item, pod, resource);
    } else {
        fill_from_containers(item, pod, resource, container);
    }
}

/* The slot of `name` in an open table of 1 + sample indices: its own, or the free one where it
 * would go. The table has at least twice as many slots as names, so the walk ends. */
static uint32_t *find_slot(uint32_t *slots, size_t slot_count, const struct td_hpa_sample *samples,
                           td_str name)
{
    size_t at = (size_t)td_map_hash(name) & (slot_count - 1);
    while (slots[at] != 0 && !td_str_equal(samples[slots[at] - 1].pod, name)) {
        at = (at + 1) & (slot_count - 1);
    }
    return &slots[at];
}

static void take_sample(struct td_hpa_pod *pod, const struct td_hpa_sample *sample)
{
    pod->has_sample = true;
    pod->sample_milli = sample->value_milli;
    pod->sample_time = sample->at;
    pod->sample_window = sample->window;
}

/* Lists that come in one order need no table: every sample is the next pod's, or a later one's. Pod
 * names are unique, so are then the samples. False when they do not; the pods are as before. */
static bool join_in_order(struct td_hpa_pod *pods, size_t pod_count,
                          const struct td_hpa_sample *samples, size_t sample_count)
{
    size_t at = 0;
    for (size_t i = 0; i < pod_count && at < sample_count; i++) {
        at += td_str_equal(pods[i].name, samples[at].pod);
    }
    if (at < sample_count) {
        return false;
    }
    at = 0;
    for (size_t i = 0; i < pod_count && at < sample_count; i++) {
        if (td_str_equal(pods[i].name, samples[at].pod)) {
            take_sample(&pods[i], &samples[at++]);
        }
    }
    return true;
}

void td_hpa_samples_join(struct td_arena *arena, struct td_hpa_pod *pods, size_t pod_count,
                         const struct td_hpa_sample *samples, size_t sample_count,
                         struct td_hpa_view *view)
{
    view->pods = pods;
    view->count = pod_count;
    view->extra_count = 0;
    view->extra_milli = 0;
    if (join_in_order(pods, pod_count, samples, sample_count)) {
        return;
    }
    size_t slot_count = 4;
    while (slot_count < 2 * sample_count) {
        slot_count *= 2;
    }
    uint32_t *slots = td_arena_array(arena, uint32_t, slot_count);
    int64_t extra_milli = 0;
    size_t left = 0;
    for (size_t i = 0; i < sample_count; i++) {
        uint32_t *slot = find_slot(slots, slot_count, samples, samples[i].pod);
        left += *slot == 0;
        *slot = (uint32_t)(i + 1);
    }
    /* A sample that a pod takes is remembered, so that what remains belongs to no pod. */
    bool *is_taken = td_arena_array(arena, bool, sample_count);
    for (size_t i = 0; i < pod_count; i++) {
        uint32_t at = *find_slot(slots, slot_count, samples, pods[i].name);
        if (at != 0) {
            take_sample(&pods[i], &samples[at - 1]);
            left -= !is_taken[at - 1];
            is_taken[at - 1] = true;
        }
    }
    for (size_t i = 0; i < slot_count && left > 0; i++) {
        if (slots[i] != 0 && !is_taken[slots[i] - 1]) {
            extra_milli = td_hpa_add(extra_milli, samples[slots[i] - 1].value_milli);
        }
    }
    view->extra_count = view->is_owner_filtered ? 0 : left;
    view->extra_milli = view->is_owner_filtered ? 0 : extra_milli;
}
