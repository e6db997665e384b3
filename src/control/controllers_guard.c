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
#include "control/upstream.h"
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

/* Upstream's holders share its leases with us where its place is taken: they are waited for. */
static bool guard_is_upstream(const struct controllers_one *one)
{
    return one->all->options.replaces_upstream && td_controller_upstream_lease(one->kind) &&
           !td_str_starts_with(one->holder, TD_STR(TD_IDENTITY_OURS));
}

static bool guard_is_foreign(const struct controllers_one *one)
{
    return one->lease && !guard_is_upstream(one) && !td_lease_is_held(one->lease) &&
           td_leader_is_foreign(one->all->options.leader.identity, one->holder);
}

bool controllers_is_clear(const struct td_controllers *all)
{
    bool is_alone = all->options.leader.is_alone;
    for (size_t kind = 0; kind < TD_CONTROLLER_COUNT; kind++) {
        const struct controllers_one *one = &all->ones[kind];
        /* One that does not compete, as for Hvpas without the recommender's lease, tells nothing.
         */
        bool is_out =
            one->state == CONTROLLERS_IDLE && (td_upstream_allows(all->upstream, one->kind) ||
                                               td_upstream_is_alive(all->upstream, one->kind));
        bool is_known = (one->has_seen && !guard_is_foreign(one)) || is_out;
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

static void guard_tell(struct td_controllers *all, const struct td_error *err)
{
    all->is_refused = true;
    td_timer_stop(all->guard);
    if (all->options.refused) {
        all->options.refused(all->options.refused_context, err);
    }
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
    guard_tell(all, &err);
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
        td_timer_set_machine(timer, GUARD_LOOK);
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
        td_timer_set_machine(all->guard, GUARD_LOOK);
    }
}

/* ---- Upstream's ---- */

static bool guard_has_begun(const struct td_controllers *all)
{
    bool has_begun = false;
    for (size_t kind = 0; kind < TD_CONTROLLER_COUNT; kind++) {
        has_begun = has_begun || all->ones[kind].since > 0;
    }
    return has_begun;
}

static void guard_upstream_changed(void *context, enum td_controller_kind kind)
{
    struct td_controllers *all = context;
    struct controllers_one *one = &all->ones[kind];
    if (all->is_ending || all->is_refused) {
        return;
    }
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    td_str words = td_upstream_words(all->upstream, kind, &arena);
    if (words.len > 0 && all->options.leader.is_alone && !guard_has_begun(all)) {
        struct td_error err = TD_ERROR_INIT;
        (void)td_error_set(
            &err, TD_CONFLICT,
            "%.*s; stop it first, leave out %s with --controllers, or take its place "
            "with --replace-upstream",
            TD_STR_ARG(words), td_controller_name(kind));
        guard_tell(all, &err);
        return;
    }
    if (words.len > 0) {
        bool stays = kind == TD_CONTROLLER_ADMISSION && one->state == CONTROLLERS_RUNNING;
        td_str line = stays ? TD_STR("upstream's admission controller was started beside this one")
                            : td_arena_format(&arena, "%s holds until upstream's is gone",
                                              td_controller_name(kind));
        td_log_line(all->options.log, TD_LOG_WARN, line.ptr, TD_LOG_S("because", words));
    }
    controllers_follow(one);
    controllers_follow(&all->ones[TD_CONTROLLER_HVPA]);
    controllers_begin_clear(all);
}

/* A lease of another name is of VPAs of its own; a webhook that is not registered changes no pod.
 */
struct td_upstream *controllers_watch_upstream(struct td_controllers *all)
{
    const struct td_controllers_options *options = &all->options;
    bool is_usual = options->leader.name.len == 0 && options->vpa_namespace.len == 0;
    return td_upstream_new(&(struct td_upstream_options){
        .loop = options->loop,
        .client = all->client,
        .flow = all->lease_flow,
        .informers = all->informers,
        .log = options->log,
        .looks_for = {[TD_CONTROLLER_RECOMMENDER] =
                          options->has[TD_CONTROLLER_RECOMMENDER] && is_usual &&
                          td_str_equal(options->recommend.name, TD_STR("default")),
                      [TD_CONTROLLER_UPDATER] = options->has[TD_CONTROLLER_UPDATER] && is_usual,
                      [TD_CONTROLLER_ADMISSION] = options->has[TD_CONTROLLER_ADMISSION] &&
                                                  options->webhook.registers &&
                                                  !options->replaces_upstream},
        .shares_leases = options->replaces_upstream,
        .changed = guard_upstream_changed,
        .context = all,
    });
}
