/*
 * The arithmetic of a rolling update: surge, unavailable, and how a scale is shared among
 * ReplicaSets.
 */
#include "local/workloads/workload_rollout.h"

#include <math.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"
#include "kube/intstr.h"

static int64_t rollout_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t td_rollout_share(struct td_arena *arena, const struct td_json *value, int64_t total,
                         bool round_up)
{
    struct td_intstr share;
    int64_t count = 0;
    td_auto_buf text = td_buf_capped(TD_STREAM_BYTES_MAX);
    if (value) {
        td_json_write(value, &(struct td_json_format){.indent = 0}, &text);
    }
    if (!value || td_intstr_parse_json(arena, td_buf_str(&text), &share, NULL) != TD_OK ||
        td_intstr_scaled(&share, total, round_up, &count, NULL) != TD_OK) {
        return 0; /* validation has refused anything else */
    }
    return count;
}

struct td_rollout td_rollout_read(struct td_arena *arena, const struct td_json *deployment)
{
    const struct td_json *strategy = td_json_get_path(deployment, "spec.strategy");
    const struct td_json *limits = td_json_get(strategy, TD_STR("rollingUpdate"));
    struct td_rollout rollout = {
        .replicas =
            td_json_get_int64(td_json_get(deployment, TD_STR("spec")), TD_STR("replicas"), 1),
        .is_rolling = !td_str_equal(td_json_text(strategy, "type"), TD_STR("Recreate")),
        .status_replicas =
            td_json_get_int64(td_json_get(deployment, TD_STR("status")), TD_STR("replicas"), 0),
    };
    if (!rollout.is_rolling) {
        return rollout;
    }
    rollout.surge_max =
        td_rollout_share(arena, td_json_get(limits, TD_STR("maxSurge")), rollout.replicas, true);
    rollout.unavailable_max = td_rollout_share(arena, td_json_get(limits, TD_STR("maxUnavailable")),
                                               rollout.replicas, false);
    if (rollout.surge_max == 0 && rollout.unavailable_max == 0) {
        rollout.unavailable_max = 1;
    }
    rollout.unavailable_max = rollout_least(rollout.unavailable_max, rollout.replicas);
    return rollout;
}

int64_t td_rollout_new_size(const struct td_rollout *rollout, const struct td_rollout_set *sets,
                            size_t count, int64_t new_replicas)
{
    if (!rollout->is_rolling) {
        return rollout->replicas;
    }
    int64_t current = 0;
    for (size_t i = 0; i < count; i++) {
        current += sets[i].replicas;
    }
    int64_t room = rollout->replicas + rollout->surge_max - current;
    if (room <= 0) {
        return new_replicas;
    }
    return new_replicas + rollout_least(room, rollout->replicas - new_replicas);
}

int64_t td_rollout_shrink_old(const struct td_rollout *rollout, struct td_rollout_set *sets,
                              size_t count)
{
    int64_t total = 0;
    int64_t available = 0;
    int64_t new_missing = 0;
    for (size_t i = 0; i < count; i++) {
        sets[i].target = sets[i].replicas;
        total += sets[i].replicas;
        available += sets[i].available;
        new_missing += sets[i].is_new ? sets[i].replicas - sets[i].available : 0;
    }
    int64_t available_min = rollout->replicas - rollout->unavailable_max;
    int64_t most = total - available_min - new_missing;
    int64_t unhealthy = 0;
    for (size_t i = 0; i < count && unhealthy < most; i++) {
        struct td_rollout_set *set = &sets[i];
        if (!set->is_new && set->replicas > set->available) {
            int64_t taken = rollout_least(most - unhealthy, set->replicas - set->available);
            set->target -= taken;
            unhealthy += taken;
        }
    }
    int64_t spare = most > 0 ? available - available_min : 0;
    int64_t taken_available = 0;
    for (size_t i = 0; i < count && taken_available < spare; i++) {
        struct td_rollout_set *set = &sets[i];
        if (!set->is_new && set->target > 0) {
            int64_t taken = rollout_least(set->target, spare - taken_available);
            set->target -= taken;
            taken_available += taken;
        }
    }
    return unhealthy + taken_available;
}

/* ---- Scaling in proportion ---- */

static int rollout_compare_age(const struct td_rollout_set *a, const struct td_rollout_set *b)
{
    int by_time = (a->created > b->created) - (a->created < b->created);
    return by_time != 0 ? by_time : td_str_compare(a->name, b->name);
}

/* Larger first; of equal ones the newer. */
static int rollout_compare_grow(const void *left, const void *right)
{
    const struct td_rollout_set *a = *(struct td_rollout_set *const *)left;
    const struct td_rollout_set *b = *(struct td_rollout_set *const *)right;
    int by_size = (a->replicas < b->replicas) - (a->replicas > b->replicas);
    return by_size != 0 ? by_size : rollout_compare_age(b, a);
}

/* Larger first; of equal ones the older. */
static int rollout_compare_shrink(const void *left, const void *right)
{
    const struct td_rollout_set *a = *(struct td_rollout_set *const *)left;
    const struct td_rollout_set *b = *(struct td_rollout_set *const *)right;
    int by_size = (a->replicas < b->replicas) - (a->replicas > b->replicas);
    return by_size != 0 ? by_size : rollout_compare_age(a, b);
}

/* By how much one set would grow if it kept its share of the whole. */
static int64_t rollout_fraction(const struct td_rollout *rollout, const struct td_rollout_set *set)
{
    if (rollout->replicas == 0) {
        return -set->replicas;
    }
    int64_t before = set->max_before > 0 ? set->max_before : rollout->status_replicas;
    if (before == 0) {
        return 0;
    }
    double size =
        (double)(set->replicas * (rollout->replicas + rollout->surge_max)) / (double)before;
    return (int64_t)(size < 0 ? ceil(size - 0.5) : floor(size + 0.5)) - set->replicas;
}

static void rollout_share_out(const struct td_rollout *rollout, struct td_rollout_set **active,
                              size_t count)
{
    int64_t total = 0;
    for (size_t i = 0; i < count; i++) {
        total += active[i]->replicas;
    }
    int64_t allowed =
        rollout->replicas > 0 ? rollout->replicas + rollout->surge_max : rollout->replicas;
    int64_t to_add = allowed - total;
    if (to_add == 0) {
        return;
    }
    qsort(active, count, sizeof(active[0]),
          to_add > 0 ? rollout_compare_grow : rollout_compare_shrink);
    int64_t added = 0;
    for (size_t i = 0; i < count && added != to_add; i++) {
        int64_t fraction = rollout_fraction(rollout, active[i]);
        int64_t left = to_add - added;
        bool is_over = to_add > 0 ? fraction > left : fraction < left;
        fraction = is_over ? left : fraction;
        active[i]->target += fraction;
        added += fraction;
    }
    active[0]->target += to_add - added; /* what rounding left over */
    active[0]->target = active[0]->target < 0 ? 0 : active[0]->target;
}

/* Everything is where it should be: old sets have nothing to do any more. */
static bool rollout_is_saturated(const struct td_rollout *rollout, const struct td_rollout_set *set)
{
    return set && set->replicas == rollout->replicas && set->desired_before == rollout->replicas &&
           set->available == rollout->replicas;
}

/* The newest old set, when there is no new one and none has pods. */
static struct td_rollout_set *rollout_latest(struct td_rollout_set **sets, size_t count)
{
    struct td_rollout_set *latest = NULL;
    for (size_t i = 0; i < count; i++) {
        if (!latest || sets[i]->is_new ||
            (!latest->is_new && rollout_compare_age(sets[i], latest) > 0)) {
            latest = sets[i];
        }
    }
    return latest;
}

void td_rollout_scale(const struct td_rollout *rollout, struct td_rollout_set **sets, size_t count,
                      bool *ret_is_forced)
{
    struct td_rollout_set *new_set = NULL;
    size_t active = 0;
    for (size_t i = 0; i < count; i++) {
        sets[i]->target = sets[i]->replicas;
        new_set = sets[i]->is_new ? sets[i] : new_set;
    }
    struct td_rollout_set *latest = rollout_latest(sets, count);
    for (size_t i = 0; i < count; i++) { /* those with pods to the front */
        if (sets[i]->replicas > 0) {
            struct td_rollout_set *set = sets[i];
            sets[i] = sets[active];
            sets[active++] = set;
        }
    }
    *ret_is_forced = false;
    if (active == 0 && latest) {
        latest->target = rollout->replicas;
    } else if (active == 1) {
        sets[0]->target = rollout->replicas;
    } else if (rollout_is_saturated(rollout, new_set)) {
        for (size_t i = 0; i < active; i++) {
            sets[i]->target = sets[i]->is_new ? sets[i]->replicas : 0;
        }
    } else if (rollout->is_rolling && active > 0) {
        rollout_share_out(rollout, sets, active);
        *ret_is_forced = true;
    }
}

bool td_rollout_is_scaled(const struct td_rollout *rollout, const struct td_rollout_set *sets,
                          size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (sets[i].replicas > 0 && sets[i].desired_before != TD_ROLLOUT_NONE &&
            sets[i].desired_before != rollout->replicas) {
            return true;
        }
    }
    return false;
}
