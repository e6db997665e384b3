/*
 * One installation on a cluster: two would evict and resize the same pods, and mutate each of them
 * twice. Leases tell of others. A process outside the cluster that does not elect a leader is
 * alone: it takes the lease of every controller that it runs, begins when it has them all, and any
 * other holder is of another installation. Processes that elect share leases with those of their
 * place (in the cluster, or outside of it). A holder of another installation is alive when its
 * lease is renewed while we look: then this process says so and stops. A lease that its holder left
 * behind ends by itself and is taken over.
 */
#include "base/error.h"
#include "base/os/log.h"
#include "base/os/loop.h"
#include "base/text.h"
#include "control/controllers_private.h"
#include "kube/client/lease.h"

#define GUARD_LOOK TD_SECOND
#define GUARD_RENEWALS 2 /* the record that was found first, and one that came later */

enum guard_place { GUARD_IN_CLUSTER, GUARD_OUTSIDE, GUARD_ALONE };

static enum guard_place guard_place_of(td_str identity)
{
    return td_str_starts_with(identity, TD_STR(TD_IDENTITY_ALONE))     ? GUARD_ALONE
           : td_str_starts_with(identity, TD_STR(TD_IDENTITY_OUTSIDE)) ? GUARD_OUTSIDE
                                                                       : GUARD_IN_CLUSTER;
}

bool td_leader_is_foreign(td_str own, td_str holder)
{
    if (holder.len == 0 || td_str_equal(own, holder)) {
        return false;
    }
    return guard_place_of(own) == GUARD_ALONE || guard_place_of(own) != guard_place_of(holder);
}

static bool guard_is_foreign(const struct controllers_one *one)
{
    return one->lease && !td_lease_is_held(one->lease) &&
           td_leader_is_foreign(one->all->options.leader.identity, one->holder);
}

bool controllers_is_clear(const struct td_controllers *all)
{
    bool is_alone = all->options.leader.is_alone;
    for (size_t kind = 0; kind < TD_CONTROLLER_COUNT; kind++) {
        const struct controllers_one *one = &all->ones[kind];
        /* One that does not compete, as for Hvpas without the recommender's lease, tells nothing.
         */
        bool is_known = (one->has_seen && !guard_is_foreign(one)) || one->state == CONTROLLERS_IDLE;
        if (one->lease && !one->is_denied && !td_lease_is_held(one->lease) &&
            (is_alone || !is_known)) {
            return false;
        }
    }
    return true;
}

static const char *guard_words(td_str holder)
{
    switch (guard_place_of(holder)) {
    case GUARD_ALONE:
    case GUARD_OUTSIDE:
        return "a 'tandem run' outside the cluster";
    case GUARD_IN_CLUSTER:
        break;
    }
    return "an installation in the cluster";
}

static void guard_refuse(struct td_controllers *all, const struct controllers_one *one)
{
    struct td_error err = TD_ERROR_INIT;
    (void)td_error_set(
        &err, TD_CONFLICT,
        "%s already runs the %s here: lease %.*s/%.*s is held and renewed by '%.*s'; "
        "stop it first, or leave out controllers that it runs with --controllers",
        guard_words(one->holder), td_controller_name(one->kind),
        TD_STR_ARG(all->options.leader.namespace), TD_STR_ARG(one->lease_name),
        TD_STR_ARG(one->holder));
    all->is_refused = true;
    td_timer_stop(all->guard);
    if (all->options.refused) {
        all->options.refused(all->options.refused_context, &err);
    }
}

void controllers_guard_rings(struct td_timer *timer, void *context)
{
    struct td_controllers *all = context;
    bool is_watching = false;
    for (size_t kind = 0; kind < TD_CONTROLLER_COUNT && !all->is_refused && !all->is_ending;
         kind++) {
        const struct controllers_one *one = &all->ones[kind];
        if (!guard_is_foreign(one)) {
            continue;
        }
        is_watching = true;
        if (td_lease_renewals(one->lease) >= GUARD_RENEWALS) {
            guard_refuse(all, one);
        }
    }
    if (is_watching && !all->is_refused) {
        td_timer_set(timer, GUARD_LOOK);
    }
}

void controllers_guard_see(struct controllers_one *one, td_str holder)
{
    struct td_controllers *all = one->all;
    td_text_set(&one->holder, holder);
    one->has_seen = true;
    if (guard_is_foreign(one) && !all->is_refused) {
        td_log_line(all->options.log, TD_LOG_WARN,
                    "another installation holds the lease; waiting to see whether it is alive",
                    TD_LOG_S("lease", one->lease_name), TD_LOG_S("holder", holder));
        td_timer_set(all->guard, GUARD_LOOK);
    }
}
