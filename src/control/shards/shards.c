/*
 * A look, each retry period: all leases of the place, then the ConfigMap with the cut. What follows
 * is decided from these two alone:
 *
 *   the cut is of another N or missing   the first look of a replica weighs the namespaces and
 *                                        writes a cut of its own N; later ones follow what is there
 *   a shard of an older cut              is given up: controllers end in order, then the lease goes
 *   fewer shards than this one's share   leases of free ones are tried for
 *   more                                 the last ones are given up
 *   a shard is held since before the     its controllers begin, unless a lease of another cut, or
 *   look                                 of a replica without shards, is alive
 *
 * A lease that is lost ends its controllers where they stand: others take the shard when it runs
 * out.
 */
#include "control/shards/shards.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/json/json.h"
#include "base/limits.h"
#include "base/metrics.h"
#include "base/os/log.h"
#include "base/text.h"
#include "control/shards/shards_private.h"
#include "kube/client/lease.h"
#include "kube/client/lease_object.h"
#include "kube/client/transport.h"
#include "kube/client/verbs.h"

#define SHARDS_LEASE "tandem-shard-"
#define SHARDS_CLAIM "tandem-shard-claim"
#define SHARDS_SURVEY_EVERY (5 * TD_MINUTE)

static td_duration shards_now(const struct td_shards *shards)
{
    return td_clock_steady(td_loop_clock(shards->options.controllers.loop));
}

/* ---- One shard ---- */

static struct shard_seen *seen_find(struct td_shards *shards, td_str name)
{
    for (size_t i = 0; i < shards->seen.count; i++) {
        if (td_str_equal(shards->seen.items[i].name, name)) {
            return &shards->seen.items[i];
        }
    }
    return NULL;
}

static void one_free(struct shard_one *one)
{
    td_controllers_free(one->controllers);
    td_lease_free(one->lease);
    td_free(one);
}

static void shards_check_end(struct td_shards *shards)
{
    if (shards->is_ending && shards->pending == 0 && shards->ones.count == 0 && shards->done) {
        void (*done)(void *context) = shards->done;
        shards->done = NULL;
        done(shards->done_context);
    }
}

static void shards_reap(struct td_timer *timer, void *context)
{
    struct td_shards *shards = context;
    (void)timer;
    for (size_t i = shards->ones.count; i-- > 0;) {
        struct shard_one *one = shards->ones.items[i];
        if (one->state == SHARD_OVER) {
            td_vec_remove(&shards->ones, i);
            one_free(one);
        }
    }
    shards_check_end(shards);
}

static void one_over(void *context)
{
    struct shard_one *one = context;
    one->state = SHARD_OVER;
    td_timer_set(one->shards->reap, 0);
}

static void one_say(const struct shard_one *one, enum td_log_level level, const char *what,
                    const char *key, td_str value)
{
    char message[SHARDS_TEXT_BYTES + 32];
    (void)snprintf(message, sizeof(message), "shard %s %s", one->label, what);
    td_log_line(one->shards->options.controllers.log, level, message, TD_LOG_S(key, value));
}

static void one_release(void *context)
{
    struct shard_one *one = context;
    one->state = SHARD_RELEASING;
    td_lease_stop(one->lease, one_over, one);
}

/* In order: what its controllers have begun is done, then the lease goes to others. */
static void one_give_up(struct shard_one *one, const char *why)
{
    if (one->state == SHARD_RUNNING) {
        one_say(one, TD_LOG_INFO, "is released", "because", td_str_from(why));
        one->state = SHARD_STOPPING;
        td_controllers_stop(one->controllers, one_release, one);
    } else if (one->state == SHARD_TRYING || one->state == SHARD_HELD) {
        one_release(one);
    }
}

static void one_won(void *context)
{
    struct shard_one *one = context;
    if (one->state == SHARD_TRYING) {
        one->state = SHARD_HELD;
        one->won = one->shards->look;
    }
}

static void one_lost(void *context, const struct td_error *why)
{
    struct shard_one *one = context;
    if (one->state == SHARD_RUNNING || one->state == SHARD_HELD) {
        one_say(one, TD_LOG_WARN, "is lost", "because", td_str_from(why->message));
    }
    one_over(one);
}

/* A lease as all of them are; its events and seed are the caller's. */
static struct td_lease_options shards_lease(const struct td_shards *shards, td_str name)
{
    const struct td_leader_options *leader = &shards->options.controllers.leader;
    return (struct td_lease_options){
        .loop = shards->options.controllers.loop,
        .client = shards->client,
        .flow = shards->flow,
        .namespace = leader->namespace,
        .name = name,
        .identity = leader->identity,
        .duration = leader->lease_duration,
        .renew_deadline = leader->renew_deadline,
        .retry_period = leader->retry_period,
        .seed = shards->options.controllers.seed,
    };
}

static int one_make_lease(struct shard_one *one, td_str identity, struct td_error *err)
{
    struct td_shards *shards = one->shards;
    const struct shard_seen *seen = seen_find(shards, td_str_from(one->name));
    struct td_lease_options options = shards_lease(shards, td_str_from(one->name));
    options.identity = identity;
    options.seed += one->index;
    options.known_spec = seen ? seen->spec : TD_STR_EMPTY;
    options.known_since = seen ? seen->seen_at : 0;
    options.events = (struct td_lease_events){.started = one_won, .stopped = one_lost};
    options.context = one;
    return td_lease_new(&options, &one->lease, err);
}

static void shards_try(struct td_shards *shards, size_t index)
{
    struct shard_one **place = td_vec_push(&shards->ones);
    if (!place) {
        return; /* no more of them than shards and those that end */
    }
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct shard_one *one = td_alloc_zero(1, sizeof(*one));
    *place = one;
    one->shards = shards;
    one->index = index;
    one->epoch = shards->cut.epoch;
    one->range = shards_cut_range(&shards->cut, index);
    (void)snprintf(one->label, sizeof(one->label), "%zu-of-%zu", index + 1, shards->cut.count);
    (void)snprintf(one->name, sizeof(one->name), SHARDS_LEASE "%s", one->label);
    td_str identity = td_arena_format(&arena, "%.*s@%llu",
                                      TD_STR_ARG(shards->options.controllers.leader.identity),
                                      (unsigned long long)one->epoch);
    struct td_error err = TD_ERROR_INIT;
    if (one_make_lease(one, identity, &err) == TD_OK) {
        td_lease_start(one->lease);
    } else {
        one_say(one, TD_LOG_ERROR, "has no lease", "because", td_str_from(err.message));
        one_over(one);
    }
}

/* The controllers of a shard: all that act, and nothing that is the replica's. */
static int one_make(struct shard_one *one, struct td_error *err)
{
    const struct td_shards_options *all = &one->shards->options;
    struct td_controllers_options options = all->controllers;
    int code = all->connect(all->context, &options.transport, err);
    if (code != TD_OK) {
        return code;
    }
    options.has[TD_CONTROLLER_ADMISSION] = false;
    options.address = NULL;
    options.checks_access = false;
    options.server = TD_STR_EMPTY;
    options.leader.is_on = false;
    options.leader.is_alone = false;
    options.shard = &one->range;
    options.common = one->shards->common;
    options.seed += one->index + 1;
    return td_controllers_new(&options, &one->controllers, err);
}

static void one_begin(struct shard_one *one)
{
    struct td_error err = TD_ERROR_INIT;
    if (one_make(one, &err) != TD_OK) {
        one_say(one, TD_LOG_ERROR, "cannot begin", "because", td_str_from(err.message));
        one_give_up(one, "it cannot begin");
        return;
    }
    one->state = SHARD_RUNNING;
    one_say(one, TD_LOG_INFO, "begins", "lease", td_str_from(one->name));
    td_controllers_start(one->controllers);
}

/* ---- What is seen ---- */

static struct shard_seen *seen_make(struct td_shards *shards, td_str name)
{
    struct shard_seen *seen = seen_find(shards, name);
    if (!seen) {
        seen = td_vec_push(&shards->seen);
        if (seen) {
            *seen = (struct shard_seen){.name = td_text_copy(name),
                                        .holder = td_text_copy(TD_STR_EMPTY),
                                        .spec = td_text_copy(TD_STR_EMPTY)};
        }
    }
    return seen;
}

static void seen_free(struct shard_seen *seen)
{
    td_text_free(seen->name);
    td_text_free(seen->holder);
    td_text_free(seen->spec);
}

/* Leases of shards, the claim, and those of controllers of replicas without shards. */
static bool seen_is_ours(td_str name)
{
    bool is_ours = td_str_starts_with(name, TD_STR(SHARDS_LEASE));
    for (size_t kind = 0; kind < TD_CONTROLLER_COUNT; kind++) {
        const char *lease = td_controller_lease((enum td_controller_kind)kind);
        is_ours = is_ours || (lease && td_str_equal(name, td_str_from(lease)));
    }
    return is_ours;
}

static int seen_take(struct td_shards *shards, struct td_arena *arena, const struct td_json *item,
                     struct td_error *err)
{
    td_str name = td_json_text(td_json_get(item, TD_STR("metadata")), "name");
    const struct td_json *spec = td_json_get(item, TD_STR("spec"));
    if (!seen_is_ours(name)) {
        return TD_OK;
    }
    struct shard_seen *seen = seen_make(shards, name);
    if (!seen) {
        return td_error_set(err, TD_LIMIT, "more than %d leases of shards", TD_SHARD_LEASES_MAX);
    }
    td_str text = spec ? td_json_line(arena, spec) : TD_STR("{}");
    if (!td_str_equal(text, seen->spec)) {
        td_text_set(&seen->spec, text);
        td_text_set(&seen->holder, td_json_text(spec, "holderIdentity"));
        seen->seen_at = shards_now(shards);
        seen->lasts = td_json_get_int64(spec, TD_STR("leaseDurationSeconds"), 0) * TD_SECOND;
    }
    seen->look = shards->look;
    return TD_OK;
}

/* Those that the look did not bring are gone. */
static void seen_forget(struct td_shards *shards)
{
    for (size_t i = shards->seen.count; i-- > 0;) {
        if (shards->seen.items[i].look != shards->look) {
            seen_free(&shards->seen.items[i]);
            td_vec_remove(&shards->seen, i);
        }
    }
}

static size_t seen_number(td_str text)
{
    int64_t value = 0;
    return td_str_to_int64(text, &value) && value > 0 ? (size_t)value : 0;
}

/* "tandem-shard-3-of-8", held by "IDENTITY@5". A lease of a replica without shards is that of one
 * shard under no cut: it overlaps every shard. */
static struct td_shard_lease seen_lease(const struct td_shards *shards,
                                        const struct shard_seen *seen)
{
    td_str rest = td_str_slice(seen->name, sizeof(SHARDS_LEASE) - 1, seen->name.len);
    size_t dash = td_str_find(rest, '-', 0);
    size_t at = td_str_find(seen->holder, '@', 0);
    bool is_shard = td_str_starts_with(seen->name, TD_STR(SHARDS_LEASE)) &&
                    td_str_starts_with(td_str_slice(rest, dash, rest.len), TD_STR("-of-"));
    struct td_shard_lease lease = {
        .index = is_shard ? seen_number(td_str_slice(rest, 0, dash)) - 1 : 0,
        .count = is_shard ? seen_number(td_str_slice(rest, dash + 4, rest.len)) : 1,
        .holder = td_str_slice(seen->holder, 0, at),
        .epoch = seen_number(td_str_slice(seen->holder, at + 1, seen->holder.len)),
        .is_alive = seen->holder.len > 0 && shards_now(shards) < seen->seen_at + seen->lasts,
    };
    return lease;
}

static struct td_shards_view seen_view(struct td_shards *shards, struct td_arena *arena)
{
    struct td_shard_lease *leases =
        td_arena_array(arena, struct td_shard_lease, shards->seen.count + 1);
    struct td_shards_view view = {.self = shards->options.controllers.leader.identity,
                                  .epoch = shards->cut.epoch,
                                  .count = shards->cut.count,
                                  .leases = leases,
                                  .claimant = TD_STR_EMPTY};
    for (size_t i = 0; i < shards->seen.count; i++) {
        struct td_shard_lease lease = seen_lease(shards, &shards->seen.items[i]);
        if (!td_str_equal(shards->seen.items[i].name, TD_STR(SHARDS_CLAIM))) {
            leases[view.lease_count++] = lease;
        } else if (lease.is_alive) {
            view.claimant = lease.holder;
        }
    }
    return view;
}

/* ---- What follows ---- */

static bool shards_has(const struct td_shards *shards, size_t index)
{
    for (size_t i = 0; i < shards->ones.count; i++) {
        const struct shard_one *one = shards->ones.items[i];
        if (one->index == index && one->state != SHARD_OVER) {
            return true;
        }
    }
    return false;
}

/* Free ones from a place that differs by replica, so that not all try for the same. */
static void shards_take(struct td_shards *shards, const struct td_shards_view *view, size_t count)
{
    if (count == 0) {
        return; /* so it is before there is a cut */
    }
    size_t from = (size_t)(td_shard_hash(view->self) >> 32) % shards->cut.count;
    for (size_t i = 0; i < shards->cut.count && count > 0; i++) {
        size_t index = (from + i) % shards->cut.count;
        if (td_shards_is_free(view, index) && !shards_has(shards, index)) {
            shards_try(shards, index);
            count--;
        }
    }
}

/* Is it a shard of the newest cut, with the same namespaces? */
static bool one_is_newest(const struct shard_one *one)
{
    const struct shards_cut *cut = &one->shards->cut;
    if (one->epoch != cut->epoch || one->index >= cut->count) {
        return false;
    }
    struct td_shard_range range = shards_cut_range(cut, one->index);
    return range.first == one->range.first && range.last == one->range.last;
}

/* Gives up what is of an older cut, or what another holds; returns how many are held or tried for
 * under the newest. */
static size_t shards_settle(struct td_shards *shards, const struct td_shards_view *view)
{
    size_t held = 0;
    for (size_t i = 0; i < shards->ones.count; i++) {
        struct shard_one *one = shards->ones.items[i];
        bool is_trying = one->state == SHARD_TRYING;
        if (!one_is_newest(one)) {
            one_give_up(one, "shard boundaries moved");
        } else if (is_trying && !td_shards_is_free(view, one->index)) {
            one_give_up(one, "another replica has it");
        } else {
            held += is_trying || one->state == SHARD_HELD || one->state == SHARD_RUNNING;
        }
    }
    return held;
}

static void shards_claim(struct td_shards *shards, bool is_claiming)
{
    if (is_claiming && !shards->is_claiming) {
        td_lease_start(shards->claim);
    }
    if (!is_claiming && shards->is_claiming) {
        td_lease_free(shards->claim); /* runs out by itself: asking longer does no harm */
        shards->claim = NULL;
    }
    shards->is_claiming = is_claiming;
}

static void claim_event(void *context)
{
    (void)context;
}

static void claim_stopped(void *context, const struct td_error *why)
{
    struct td_shards *shards = context;
    (void)why;
    shards->is_claiming = false; /* the next look asks again when it must */
}

static void shards_make_claim(struct td_shards *shards)
{
    struct td_lease_options options = shards_lease(shards, TD_STR(SHARDS_CLAIM));
    options.events = (struct td_lease_events){.started = claim_event, .stopped = claim_stopped};
    options.context = shards;
    int code = td_lease_new(&options, &shards->claim, NULL);
    td_assert(code == TD_OK); /* the same times as of the others, which were judged */
}

static void shards_decide(struct td_shards *shards)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_shards_view view = seen_view(shards, &arena);
    size_t held = shards_settle(shards, &view);
    struct td_shards_plan plan = td_shards_plan(&view, held);
    for (size_t i = shards->ones.count; i-- > 0 && plan.release > 0;) {
        struct shard_one *one = shards->ones.items[i];
        if (one->epoch == shards->cut.epoch &&
            (one->state == SHARD_HELD || one->state == SHARD_RUNNING)) {
            one_give_up(one, "another replica has none");
            plan.release--;
        }
    }
    for (size_t i = 0; i < shards->ones.count; i++) {
        struct shard_one *one = shards->ones.items[i];
        if (one->state == SHARD_HELD && one->won < shards->look && plan.is_drained) {
            one_begin(one);
        }
    }
    shards_take(shards, &view, plan.take);
    if (plan.is_claiming && !shards->claim) {
        shards_make_claim(shards);
    }
    if (shards->claim) {
        shards_claim(shards, plan.is_claiming);
    }
}

/* A cut of this replica's N, once; then only when the holder of the first shard finds it uneven. */
static void shards_cut_when_due(struct td_shards *shards)
{
    bool is_own = shards->cut.epoch > 0 && shards->cut.count == shards->options.count;
    shards->has_asserted = shards->has_asserted || is_own;
    bool is_needed = shards->cut.epoch == 0 || (!is_own && !shards->has_asserted);
    bool is_first = false;
    for (size_t i = 0; i < shards->ones.count; i++) {
        const struct shard_one *one = shards->ones.items[i];
        is_first = is_first || (one->index == 0 && one->state == SHARD_RUNNING);
    }
    bool is_due = is_first && shards_now(shards) - shards->surveyed_at >= SHARDS_SURVEY_EVERY;
    if (!shards->survey && (is_needed || is_due)) {
        shards->surveyed_at = shards_now(shards);
        shards_survey(shards, is_needed);
    }
}

/* ---- The look ---- */

static void look_failed(struct td_shards *shards, const char *what, const struct td_error *err)
{
    td_log_line(shards->options.controllers.log, TD_LOG_WARN,
                "cannot read leases and boundaries of shards", TD_LOG_C("at", what),
                TD_LOG_C("error", err->message));
}

static void look_again(struct td_shards *shards)
{
    if (!shards->is_ending) {
        td_timer_set(shards->tick, shards->options.controllers.leader.retry_period);
    }
}

static void look_at_cut(void *context, const struct td_client_reply *reply)
{
    struct td_shards *shards = context;
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_error err = reply->err;
    struct td_json *object = NULL;
    struct shards_cut cut = {.epoch = 0};
    int code = reply->code;
    shards->call = NULL;
    if (code == TD_OK) {
        code = td_json_parse(&arena, reply->body, NULL, &object, &err);
    }
    if (code == TD_OK) {
        code = shards_cut_read(object, &cut, &err);
        td_text_set(&shards->cut_version,
                    td_json_text(td_json_get(object, TD_STR("metadata")), "resourceVersion"));
    }
    if (code == TD_NOT_FOUND) {
        td_text_set(&shards->cut_version, TD_STR_EMPTY);
    } else if (code == TD_INVALID) {
        look_failed(shards, TD_SHARDS_CONFIG, &err); /* a new cut takes its place */
    } else if (code != TD_OK) {
        look_failed(shards, TD_SHARDS_CONFIG, &err);
        look_again(shards);
        return;
    }
    if (!shards->is_ending) {
        shards->cut = cut;
        shards_cut_when_due(shards);
        shards_decide(shards);
    }
    look_again(shards);
}

static void shards_get(struct td_shards *shards, const struct td_api_path *path,
                       td_client_done_fn done)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_client_request request;
    struct td_error err = TD_ERROR_INIT;
    if (td_verb_get(&arena, path, &request, &err) != TD_OK) {
        look_failed(shards, "path", &err);
        look_again(shards);
        return;
    }
    request.flow = shards->flow;
    request.deadline = shards->options.controllers.leader.renew_deadline;
    shards->call = td_client_send(shards->client, &request, done, shards);
}

static void look_at_leases(void *context, const struct td_client_reply *reply)
{
    struct td_shards *shards = context;
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_error err = reply->err;
    struct td_json *list = NULL;
    int code = reply->code;
    shards->call = NULL;
    if (code == TD_OK) {
        code = td_json_parse(&arena, reply->body, NULL, &list, &err);
    }
    const struct td_json *items = td_json_get(list, TD_STR("items"));
    for (const struct td_json *item = td_json_first_item(items); item && code == TD_OK;
         item = item->next) {
        code = seen_take(shards, &arena, item, &err);
    }
    if (code != TD_OK) {
        look_failed(shards, "leases", &err);
        look_again(shards);
        return;
    }
    seen_forget(shards);
    const struct td_api_path path = {.version = TD_STR("v1"),
                                     .namespace = shards->options.controllers.leader.namespace,
                                     .plural = TD_STR("configmaps"),
                                     .name = TD_STR(TD_SHARDS_CONFIG)};
    shards_get(shards, &path, look_at_cut);
}

static void shards_look(struct td_shards *shards)
{
    struct td_api_path path =
        td_lease_path(shards->options.controllers.leader.namespace, TD_STR_EMPTY);
    shards->look++;
    shards_get(shards, &path, look_at_leases);
}

static void shards_rings(struct td_timer *timer, void *context)
{
    (void)timer;
    shards_look(context);
}

/* ---- Metrics ---- */

static void shards_count(struct td_shards *shards)
{
    static const struct td_metric_declaration rows[] = {
        {"tandem_shards", "Shards of the newest cut.", .kind = TD_METRIC_GAUGE},
        {"tandem_shards_held", "Shards that this replica works on.", .kind = TD_METRIC_GAUGE},
        {"tandem_shards_epoch", "Number of the newest cut.", .kind = TD_METRIC_GAUGE},
    };
    size_t held = 0;
    for (size_t i = 0; i < shards->ones.count; i++) {
        held += shards->ones.items[i]->state == SHARD_RUNNING;
    }
    const double values[] = {(double)shards->cut.count, (double)held, (double)shards->cut.epoch};
    for (size_t i = 0; i < TD_COUNT(rows); i++) {
        td_metric_set(td_metric_series(td_metric_declare(shards->registry, &rows[i]), NULL),
                      values[i]);
    }
}

static void shards_write_metrics(void *context, struct td_buf *out)
{
    struct td_shards *shards = context;
    struct td_metric_source sources[TD_SHARDS_MAX + 2];
    size_t count = 0;
    shards_count(shards);
    sources[count++] =
        (struct td_metric_source){.registry = shards->registry, .shard = TD_STR_EMPTY};
    sources[count++] = (struct td_metric_source){.registry = td_controllers_metrics(shards->common),
                                                 .shard = TD_STR_EMPTY};
    for (size_t i = 0; i < shards->ones.count && count < TD_COUNT(sources); i++) {
        struct shard_one *one = shards->ones.items[i];
        if (one->state == SHARD_RUNNING) {
            sources[count++] =
                (struct td_metric_source){.registry = td_controllers_metrics(one->controllers),
                                          .shard = td_str_from(one->label)};
        }
    }
    td_metric_sources_write(sources, count, out);
}

/* ---- The whole ---- */

static int shards_make_common(struct td_shards *shards, struct td_error *err)
{
    struct td_controllers_options options = shards->options.controllers;
    for (size_t kind = 0; kind < TD_CONTROLLER_COUNT; kind++) {
        options.has[kind] = options.has[kind] && kind == TD_CONTROLLER_ADMISSION;
    }
    options.asks_rights_of = shards->options.controllers.has;
    options.leader.is_on = false;
    options.leader.is_alone = false;
    options.write_metrics = shards_write_metrics;
    options.shards_context = shards;
    return td_controllers_new(&options, &shards->common, err);
}

int td_shards_new(const struct td_shards_options *options, struct td_shards **ret,
                  struct td_error *err)
{
    td_assert(options->count > 0);
    td_assert(options->count <= TD_SHARDS_MAX);
    struct td_transport *transport;
    int code = options->connect(options->context, &transport, err);
    if (code != TD_OK) {
        options->controllers.transport->ops->free(options->controllers.transport);
        return code;
    }
    struct td_shards *shards = td_alloc_zero(1, sizeof(*shards));
    shards->options = *options;
    shards->ones.count_max = (size_t)2 * TD_SHARDS_MAX;
    shards->seen.count_max = TD_SHARD_LEASES_MAX;
    shards->registry = td_metric_registry_new();
    shards->tick = td_timer_new(options->controllers.loop, shards_rings, shards);
    shards->reap = td_timer_new(options->controllers.loop, shards_reap, shards);
    shards->client = td_client_new(&(struct td_client_options){.loop = options->controllers.loop,
                                                               .transport = transport,
                                                               .qps = options->controllers.qps,
                                                               .burst = options->controllers.burst,
                                                               .seed = options->controllers.seed});
    shards->flow = td_client_flow_new(shards->client, TD_STR("shards"));
    code = shards_make_common(shards, err);
    if (code != TD_OK) {
        td_shards_free(shards);
        return code;
    }
    *ret = shards;
    return TD_OK;
}

void td_shards_start(struct td_shards *shards)
{
    td_controllers_start(shards->common);
    shards_look(shards);
}

static void shards_part_ended(void *context)
{
    struct td_shards *shards = context;
    shards->pending--;
    td_timer_set(shards->reap, 0);
}

void td_shards_stop(struct td_shards *shards, void (*done)(void *context), void *context)
{
    shards->is_ending = true;
    shards->done = done;
    shards->done_context = context;
    shards->pending = 1;
    td_timer_stop(shards->tick);
    td_client_cancel(shards->call);
    shards->call = NULL;
    shards_survey_free(shards);
    if (shards->claim) {
        shards->pending++;
        td_lease_stop(shards->claim, shards_part_ended, shards);
    }
    for (size_t i = 0; i < shards->ones.count; i++) {
        one_give_up(shards->ones.items[i], "shutdown");
    }
    td_controllers_stop(shards->common, shards_part_ended, shards);
}

void td_shards_free(struct td_shards *shards)
{
    if (!shards) {
        return;
    }
    shards_survey_free(shards);
    td_client_cancel(shards->call);
    for (size_t i = 0; i < shards->ones.count; i++) {
        one_free(shards->ones.items[i]);
    }
    for (size_t i = 0; i < shards->seen.count; i++) {
        seen_free(&shards->seen.items[i]);
    }
    td_vec_done(&shards->ones);
    td_vec_done(&shards->seen);
    td_lease_free(shards->claim);
    td_text_free(shards->cut_version);
    td_controllers_free(shards->common);
    td_timer_free(shards->tick);
    td_timer_free(shards->reap);
    td_client_free(shards->client);
    td_metric_registry_free(shards->registry);
    td_free(shards);
}

struct td_controllers *td_shards_common(struct td_shards *shards)
{
    return shards->common;
}
