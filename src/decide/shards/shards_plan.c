/* What a replica does about the leases of shards that it sees. */
#include "decide/shards/shards.h"

static bool lease_is_newest(const struct td_shards_view *view, const struct td_shard_lease *lease)
{
    return lease->count == view->count && lease->epoch == view->epoch;
}

bool td_shards_is_free(const struct td_shards_view *view, size_t index)
{
    for (size_t i = 0; i < view->lease_count; i++) {
        const struct td_shard_lease *lease = &view->leases[i];
        if (lease->index == index && lease->count == view->count && lease->is_alive) {
            return false;
        }
    }
    return true;
}

/* Was this holder told of by an earlier lease? */
static bool holder_is_known(const struct td_shards_view *view, size_t before)
{
    td_str holder = view->leases[before].holder;
    bool is_known = td_str_equal(holder, view->self);
    for (size_t i = 0; i < before && !is_known; i++) {
        is_known = view->leases[i].is_alive && td_str_equal(view->leases[i].holder, holder);
    }
    return is_known;
}

static size_t holder_count(const struct td_shards_view *view)
{
    bool is_claimant_known = view->claimant.len == 0 || td_str_equal(view->claimant, view->self);
    size_t live = 1; /* this one */
    for (size_t i = 0; i < view->lease_count; i++) {
        const struct td_shard_lease *lease = &view->leases[i];
        live += lease->is_alive && !holder_is_known(view, i);
        is_claimant_known =
            is_claimant_known || (lease->is_alive && td_str_equal(lease->holder, view->claimant));
    }
    return live + !is_claimant_known;
}

struct td_shards_plan td_shards_plan(const struct td_shards_view *view, size_t held)
{
    struct td_shards_plan plan = {.live = holder_count(view), .is_drained = true};
    if (view->epoch == 0 || view->count == 0) {
        plan.is_drained = false;
        return plan;
    }
    plan.share = (view->count + plan.live - 1) / plan.live;
    size_t free_count = 0;
    for (size_t i = 0; i < view->count; i++) {
        free_count += td_shards_is_free(view, i);
    }
    for (size_t i = 0; i < view->lease_count; i++) {
        const struct td_shard_lease *lease = &view->leases[i];
        plan.is_drained = plan.is_drained && (!lease->is_alive || lease_is_newest(view, lease));
    }
    size_t wanted = held < plan.share ? plan.share - held : 0;
    plan.release = held > plan.share ? held - plan.share : 0;
    plan.take = wanted < free_count ? wanted : free_count;
    plan.is_claiming = held == 0 && plan.take == 0;
    return plan;
}
