/*
 * Flags are few: one a container. Each is found by its name, and a new one makes the list anew in
 * the arena.
 */
#include "decide/tandem/emergency.h"

#include "decide/tandem/coupling.h"
#include "decide/tandem/requests.h"

#define EMERGENCY_SECONDS 1800 /* until a flag is dropped that led to nothing */

struct td_hvpa_emergency *td_tandem_emergency_find(const struct td_tandem_emergencies *all,
                                                   td_str container)
{
    for (size_t i = 0; i < all->count; i++) {
        if (td_str_equal(all->items[i].container, container)) {
            return &all->items[i];
        }
    }
    return NULL;
}

static td_time later(td_time a, td_time b)
{
    return a == TD_TIME_NONE || b > a ? b : a;
}

void td_tandem_emergencies_recall(struct td_tandem_emergencies *all)
{
    const struct td_hvpa_status *status = all->before;
    all->items = td_arena_array(all->arena, struct td_hvpa_emergency, status->emergency_count + 1);
    for (size_t i = 0; i < status->emergency_count; i++) {
        if (status->emergency[i].usable_seconds < EMERGENCY_SECONDS) {
            all->items[all->count++] = status->emergency[i];
        }
        all->seen = later(all->seen, td_time_from_instant(status->emergency[i].since));
    }
    all->newest = all->seen;
}

static void raise_flag(struct td_tandem_emergencies *all, td_str container, td_time at)
{
    struct td_hvpa_emergency *flag = td_tandem_emergency_find(all, container);
    if (flag) {
        flag->usable_seconds = 0; /* it happened again */
        return;
    }
    struct td_hvpa_emergency *items =
        td_arena_array(all->arena, struct td_hvpa_emergency, all->count + 1);
    for (size_t i = 0; i < all->count; i++) {
        items[i] = all->items[i];
    }
    items[all->count] =
        (struct td_hvpa_emergency){.container = container, .since = td_time_to_instant(at)};
    items[all->count++].since.nanos = 0;
    all->items = items;
}

/* Both times are whole seconds: a kill in that of the last scaling may have come after it. */
bool td_tandem_oom_is_new(const struct td_tandem_emergencies *all, td_time at)
{
    const struct td_hvpa_status *status = all->before;
    td_time applied = status->has_vertical_time ? td_time_from_instant(status->vertical_time) : 0;
    return at != TD_TIME_NONE && at > applied - TD_SECOND &&
           (all->seen == TD_TIME_NONE || at > all->seen) &&
           all->now - at < EMERGENCY_SECONDS * TD_SECOND;
}

/* A container that died with another size says nothing about the present one. */
static bool is_of_this_size(const struct td_tandem_emergencies *all,
                            const struct td_pod_container *container)
{
    const struct td_quantity *decided =
        td_tandem_request_of(all->decided, container->name, TD_HVPA_MEMORY);
    const struct td_quantity *has =
        td_resource_list_get(td_vertical_requests(container), TD_STR("memory"));
    return !decided ||
           td_tandem_amount_of(TD_HVPA_MEMORY, decided) == td_tandem_amount_of(TD_HVPA_MEMORY, has);
}

void td_tandem_emergencies_add_kills(struct td_tandem_emergencies *all, const struct td_pod *pod)
{
    for (size_t i = 0; i < pod->container_count; i++) {
        const struct td_pod_container *c = &pod->containers[i];
        if (c->has_last_terminated &&
            td_str_equal(c->last_terminated_reason, TD_STR("OOMKilled")) &&
            td_tandem_oom_is_new(all, c->last_finished) && is_of_this_size(all, c)) {
            raise_flag(all, c->name, c->last_finished);
            all->newest = later(all->newest, c->last_finished);
        }
    }
}

void td_tandem_emergencies_add_eviction(struct td_tandem_emergencies *all, const struct td_pod *pod)
{
    for (size_t i = 0; i < pod->container_count; i++) {
        if (is_of_this_size(all, &pod->containers[i])) {
            raise_flag(all, pod->containers[i].name, all->now);
            all->newest = later(all->newest, pod->start_time);
        }
    }
}

void td_tandem_emergencies_settle(struct td_tandem_emergencies *all,
                                  const struct td_tandem_input *in,
                                  const struct td_tandem_outcome *outcomes, int64_t seconds)
{
    for (size_t i = 0; i < in->row_count; i++) {
        const struct td_tandem_row *row = &in->rows[i];
        bool is_more = outcomes[i].request > row->request && !in->hvpa->paused;
        if (row->resource != TD_HVPA_MEMORY) {
            continue;
        }
        if (td_tandem_is_pod(row->container) && is_more) {
            all->count = 0; /* room for every container */
        }
        struct td_hvpa_emergency *flag = td_tandem_emergency_find(all, row->container);
        if (!flag) {
            continue;
        }
        if (outcomes[i].can_emergency_act) {
            flag->usable_seconds += seconds > 0 ? seconds : 0;
        }
        if (is_more) {
            *flag = all->items[--all->count]; /* it has what it needed */
        }
    }
}
