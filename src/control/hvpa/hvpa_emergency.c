/*
 * Out of memory: containers of an Hvpa that were killed, or evicted from a node under pressure,
 * with the size that they have now. Their flags are in the status until they got more, or half an
 * hour has passed in which they could have.
 */
#include "base/limits.h"
#include "control/hvpa/hvpa_private.h"

struct td_hvpa_emergency *hvpa_emergency_find(struct hvpa_tick *tick, td_str container)
{
    for (size_t i = 0; i < tick->emergency_count; i++) {
        if (td_str_equal(tick->emergencies[i].container, container)) {
            return &tick->emergencies[i];
        }
    }
    return NULL;
}

static void emergency_raise(struct hvpa_tick *tick, td_str container, td_time at)
{
    struct td_hvpa_emergency *flag = hvpa_emergency_find(tick, container);
    if (flag) {
        flag->usable_seconds = 0; /* it happened again */
        return;
    }
    struct td_hvpa_emergency *flags =
        td_arena_array(&tick->arena, struct td_hvpa_emergency, tick->emergency_count + 1);
    for (size_t i = 0; i < tick->emergency_count; i++) {
        flags[i] = tick->emergencies[i];
    }
    flags[tick->emergency_count] =
        (struct td_hvpa_emergency){.container = container, .since = td_time_to_instant(at)};
    flags[tick->emergency_count++].since.nanos = 0;
    tick->emergencies = flags;
}

/* Both times are whole seconds: one in that of the last scaling may have come behind it. */
static bool oom_is_new(const struct hvpa_tick *tick, td_time at)
{
    const struct td_hvpa_status *status = &tick->hvpa.status;
    td_time applied = status->has_vertical_time ? td_time_from_instant(status->vertical_time) : 0;
    bool is_seen = tick->item->oom_seen != TD_TIME_NONE && at <= tick->item->oom_seen;
    return at > applied - TD_SECOND && !is_seen &&
           tick->now - at < HVPA_EMERGENCY_SECONDS * TD_SECOND;
}

/* Those who died with another size have nothing to say about the present one. */
static bool oom_is_of_this_size(const struct hvpa_tick *tick,
                                const struct td_vertical_container *container)
{
    const struct td_quantity *decided =
        hvpa_request_of(&tick->decided, container->name, TD_HVPA_MEMORY);
    const struct td_quantity *has =
        td_resource_list_get(td_vertical_requests(container), TD_STR("memory"));
    return !decided || hvpa_amount(TD_HVPA_MEMORY, decided) == hvpa_amount(TD_HVPA_MEMORY, has);
}

static bool pod_is_evicted_for_memory(const struct hvpa_tick *tick,
                                      const struct td_vertical_pod *pod)
{
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    const struct td_json *status = td_json_get(pod->tree, TD_STR("status"));
    const struct td_cache *nodes =
        td_sight_cache(tick->loop->options.control.sight, TD_SIGHT_NODES);
    td_str node =
        td_json_get_str(td_json_get(pod->tree, TD_STR("spec")), TD_STR("nodeName"), TD_STR_EMPTY);
    const struct td_sight_object *seen = nodes ? td_cache_get(nodes, TD_STR_EMPTY, node) : NULL;
    struct td_json *tree;
    bool is_evicted =
        td_str_equal(td_json_get_str(status, TD_STR("reason"), TD_STR_EMPTY), TD_STR("Evicted"));
    if (!is_evicted || !seen || td_sight_tree(&arena, seen, &tree, NULL) != TD_OK) {
        return false;
    }
    const struct td_json *list = td_json_get_path(tree, "status.conditions");
    for (const struct td_json *c = td_json_first_item(list); c; c = c->next) {
        if (td_str_equal(td_json_get_str(c, TD_STR("type"), TD_STR_EMPTY),
                         TD_STR("MemoryPressure"))) {
            return td_str_equal(td_json_get_str(c, TD_STR("status"), TD_STR_EMPTY), TD_STR("True"));
        }
    }
    return false;
}

static td_time oom_of(const struct td_vertical_container *container)
{
    bool is_oom = container->has_last_terminated &&
                  td_str_equal(container->last_terminated_reason, TD_STR("OOMKilled"));
    return is_oom ? container->last_finished : TD_TIME_NONE;
}

static void emergencies_find(struct hvpa_tick *tick)
{
    td_time newest = tick->item->oom_seen;
    for (size_t i = 0; i < tick->pod_count; i++) {
        bool is_sized = hvpa_pod_is_sized(tick, &tick->pods[i]);
        for (size_t j = 0; j < tick->pods[i].container_count && is_sized; j++) {
            const struct td_vertical_container *c = &tick->pods[i].containers[j];
            td_time at = oom_of(c);
            if (at != TD_TIME_NONE && oom_is_new(tick, at) && oom_is_of_this_size(tick, c)) {
                emergency_raise(tick, c->name, at);
                newest = newest == TD_TIME_NONE || at > newest ? at : newest;
            }
        }
    }
    for (size_t i = 0; i < tick->ended_count; i++) {
        const struct td_vertical_pod *pod = &tick->ended[i];
        td_time at = pod->start_time;
        bool is_new = at != TD_TIME_NONE && oom_is_new(tick, at);
        for (size_t j = 0; j < pod->container_count && is_new; j++) {
            const struct td_vertical_container *c = &pod->containers[j];
            if (oom_is_of_this_size(tick, c) && pod_is_evicted_for_memory(tick, pod)) {
                emergency_raise(tick, c->name, tick->now);
                newest = newest == TD_TIME_NONE || at > newest ? at : newest;
            }
        }
    }
    tick->item->oom_seen = newest;
}

void hvpa_emergencies_recall(struct hvpa_tick *tick)
{
    const struct td_hvpa_status *status = &tick->hvpa.status;
    tick->emergencies =
        td_arena_array(&tick->arena, struct td_hvpa_emergency, status->emergency_count + 1);
    for (size_t i = 0; i < status->emergency_count; i++) {
        td_time since = td_time_from_instant(status->emergency[i].since);
        if (status->emergency[i].usable_seconds < HVPA_EMERGENCY_SECONDS) {
            tick->emergencies[tick->emergency_count++] = status->emergency[i];
        }
        if (tick->item->oom_seen == TD_TIME_NONE || since > tick->item->oom_seen) {
            tick->item->oom_seen = since;
        }
    }
    emergencies_find(tick);
}

void hvpa_emergencies_keep(struct hvpa_tick *tick)
{
    td_time last = tick->item->last_tick;
    int64_t seconds = last == TD_TIME_NONE ? 0 : (tick->now - last) / TD_SECOND;
    for (size_t i = 0; i < tick->row_count; i++) {
        const struct td_tandem_row *row = &tick->rows[i];
        bool is_more = tick->outcomes[i].request > row->request && !tick->hvpa.paused;
        if (row->resource != TD_HVPA_MEMORY) {
            continue;
        }
        if (td_tandem_is_pod(row->container) && is_more) {
            tick->emergency_count = 0; /* room for every container */
        }
        struct td_hvpa_emergency *flag = hvpa_emergency_find(tick, row->container);
        if (!flag) {
            continue;
        }
        if (tick->outcomes[i].can_emergency_act) {
            flag->usable_seconds += seconds > 0 ? seconds : 0;
        }
        if (is_more) {
            *flag = tick->emergencies[--tick->emergency_count]; /* it has what it needed */
        }
    }
}
