/*
 * One row for each of upstream's three programs, each with a timer that reads its lease. A row is
 * unknown until its first answer says that the lease has no holder, or until a record that was
 * found has stayed the same for as long as its holder would at most leave it. What cannot be read
 * for lack of rights counts as not there, said once; what fails otherwise leaves the row as it is.
 */
#include "control/upstream.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/assert.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/os/log.h"
#include "base/os/loop.h"
#include "base/text.h"
#include "control/admission/webhook.h"
#include "control/informers/informers.h"
#include "kube/client/client.h"
#include "kube/client/lease_object.h"
#include "kube/client/verbs.h"

#define UPSTREAM_LOOK (2 * TD_SECOND)
#define UPSTREAM_LOOK_SOON (200 * TD_MILLISECOND) /* while pods are not listed yet */
#define UPSTREAM_ELECTED_MAX (15 * TD_SECOND)     /* an elected leader renews every 2 s */
#define UPSTREAM_STATUS_MAX (25 * TD_SECOND)      /* a heartbeat comes every 10 s */

enum upstream_state { UPSTREAM_UNKNOWN, UPSTREAM_ABSENT, UPSTREAM_ALIVE };

struct upstream_one {
    struct td_upstream *upstream;
    enum td_controller_kind kind;
    enum upstream_state state;
    struct td_timer *timer;
    struct td_client_call *call;
    td_str record;       /* owned; the spec that was seen last, empty: none */
    td_str holder;       /* owned */
    td_duration seen_at; /* steady; the record changed */
    bool has_moved;      /* the record changed while we looked */
    bool is_registered;  /* of admission: its webhook configuration was there at the first look */
    bool has_looked;
    bool is_denied;
    bool by_pod; /* a running pod says it, not the lease */
};

struct td_upstream {
    struct td_upstream_options options;
    struct upstream_one ones[TD_CONTROLLER_COUNT];
};

static const char *upstream_program(enum td_controller_kind kind)
{
    static const char *const names[TD_CONTROLLER_COUNT] = {
        [TD_CONTROLLER_RECOMMENDER] = "vpa-recommender",
        [TD_CONTROLLER_UPDATER] = "vpa-updater",
        [TD_CONTROLLER_ADMISSION] = "vpa-admission-controller",
    };
    return names[kind];
}

/* ---- What is seen ---- */

static const struct td_cache *upstream_pods(const struct upstream_one *one)
{
    const struct td_informers *informers = one->upstream->options.informers;
    return informers ? td_informers_cache(informers, TD_INFORMER_PODS) : NULL;
}

static bool upstream_has_pod(const struct upstream_one *one)
{
    const struct td_informers *informers = one->upstream->options.informers;
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    td_str prefix = td_arena_format(&arena, "%s-", upstream_program(one->kind));
    const struct td_informer_pod *pod = NULL;
    while (upstream_pods(one) &&
           (pod = td_informers_next_pod(informers, TD_STR(TD_UPSTREAM_NAMESPACE), pod))) {
        if (td_str_starts_with(pod->object.head.name, prefix) &&
            td_str_equal(pod->phase, TD_STR("Running"))) {
            return true;
        }
    }
    return false;
}

/* What the record says by itself. */
static enum upstream_state upstream_judge(const struct upstream_one *one)
{
    td_duration now = td_clock_machine(td_loop_clock(one->upstream->options.loop));
    td_duration most =
        one->kind == TD_CONTROLLER_ADMISSION ? UPSTREAM_STATUS_MAX : UPSTREAM_ELECTED_MAX;
    if (one->holder.len == 0 && one->is_registered && now - one->seen_at <= most) {
        return UPSTREAM_UNKNOWN; /* it registers itself before its heart beats */
    }
    if (one->holder.len == 0 || td_str_starts_with(one->holder, TD_STR(TD_IDENTITY_OURS)) ||
        now - one->seen_at > most) {
        return UPSTREAM_ABSENT;
    }
    return one->has_moved ? UPSTREAM_ALIVE : UPSTREAM_UNKNOWN;
}

static void upstream_settle(struct upstream_one *one)
{
    td_auto_arena arena = td_arena_capped(TD_ERROR_MESSAGE_BYTES);
    enum upstream_state state = upstream_judge(one);
    bool is_shared = one->upstream->options.shares_leases && one->holder.len > 0;
    bool is_elected = is_shared && (state == UPSTREAM_ALIVE ||
                                    td_str_starts_with(one->holder, TD_STR(TD_IDENTITY_OURS)));
    state = is_elected ? UPSTREAM_ABSENT : state;
    one->by_pod = state != UPSTREAM_ALIVE && !is_elected && upstream_has_pod(one);
    state = one->by_pod ? UPSTREAM_ALIVE : state;
    if (state == UPSTREAM_ABSENT && upstream_pods(one) && !td_cache_is_synced(upstream_pods(one))) {
        td_timer_set_machine(one->timer, UPSTREAM_LOOK_SOON);
        state = UPSTREAM_UNKNOWN;
    }
    if (state == UPSTREAM_UNKNOWN && one->state == UPSTREAM_UNKNOWN && one->record.len > 0) {
        td_str line = td_arena_format(&arena, "waiting to see whether upstream's %s is alive",
                                      upstream_program(one->kind));
        td_log_line(one->upstream->options.log, TD_LOG_INFO, line.ptr,
                    TD_LOG_S("lease", td_str_from(td_controller_upstream_lease(one->kind))),
                    TD_LOG_S("holder", one->holder));
    }
    if (state != one->state) {
        one->state = state;
        one->upstream->options.changed(one->upstream->options.context, one->kind);
    }
}

static void upstream_see(struct upstream_one *one, const struct td_lease_record *record)
{
    td_duration now = td_clock_machine(td_loop_clock(one->upstream->options.loop));
    bool is_same = td_str_equal(one->record, record->spec);
    if (!is_same) {
        one->has_moved = one->record.len > 0 && td_str_equal(one->holder, record->holder);
        one->seen_at = now;
        td_text_set(&one->record, record->spec);
        td_text_set(&one->holder, record->holder);
    }
}

static void upstream_read(void *context, const struct td_client_reply *reply)
{
    struct upstream_one *one = context;
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_lease_record record = {.holder = TD_STR_EMPTY, .spec = TD_STR_EMPTY};
    struct td_json *object = NULL;
    one->call = NULL;
    td_timer_set_machine(one->timer, UPSTREAM_LOOK);
    if (reply->code == TD_DENIED && !one->is_denied) {
        one->is_denied = true;
        td_log_line(one->upstream->options.log, TD_LOG_WARN,
                    "cannot tell whether upstream's programs are alive",
                    TD_LOG_C("error", reply->err.message));
    }
    bool is_read = reply->code == TD_OK &&
                   td_lease_decode(&arena, reply->body, &object, &record, NULL) == TD_OK;
    if (is_read || reply->code == TD_NOT_FOUND || reply->code == TD_DENIED) {
        upstream_see(one, &record);
        upstream_settle(one);
    }
}

static void upstream_ask(struct upstream_one *one, const struct td_api_path *path,
                         td_client_done_fn done)
{
    const struct td_upstream_options *options = &one->upstream->options;
    td_auto_arena arena = td_arena_capped(TD_API_PATH_BYTES_MAX);
    struct td_client_request request;
    int code = td_verb_get(&arena, path, &request, NULL);
    td_assert(code == TD_OK); /* names of ours */
    request.flow = options->flow;
    one->call = td_client_send(options->client, &request, done, one);
}

static void upstream_ask_lease(struct upstream_one *one)
{
    td_str name = td_str_from(td_controller_upstream_lease(one->kind));
    struct td_api_path path = td_lease_path(TD_STR(TD_UPSTREAM_NAMESPACE), name);
    upstream_ask(one, &path, upstream_read);
}

static void upstream_read_registration(void *context, const struct td_client_reply *reply)
{
    struct upstream_one *one = context;
    one->is_registered = reply->code == TD_OK;
    one->seen_at = td_clock_machine(td_loop_clock(one->upstream->options.loop));
    upstream_ask_lease(one);
}

static void upstream_look(struct td_timer *timer, void *context)
{
    struct upstream_one *one = context;
    const struct td_api_path registration = {
        .group = TD_STR("admissionregistration.k8s.io"),
        .version = TD_STR("v1"),
        .plural = TD_STR("mutatingwebhookconfigurations"),
        .name = TD_STR(TD_WEBHOOK_UPSTREAM),
    };
    bool is_first = one->kind == TD_CONTROLLER_ADMISSION && !one->has_looked;
    (void)timer;
    one->has_looked = true;
    if (is_first) {
        upstream_ask(one, &registration, upstream_read_registration);
    } else {
        upstream_ask_lease(one);
    }
}

/* ---- The whole ---- */

struct td_upstream *td_upstream_new(const struct td_upstream_options *options)
{
    struct td_upstream *upstream = td_alloc_zero(1, sizeof(*upstream));
    upstream->options = *options;
    for (size_t kind = 0; kind < TD_CONTROLLER_COUNT; kind++) {
        struct upstream_one *one = &upstream->ones[kind];
        one->upstream = upstream;
        one->kind = (enum td_controller_kind)kind;
        if (options->looks_for[kind]) {
            td_assert(td_controller_upstream_lease(one->kind));
            one->timer = td_timer_new(options->loop, upstream_look, one);
        }
    }
    return upstream;
}

void td_upstream_start(struct td_upstream *upstream)
{
    for (size_t kind = 0; upstream && kind < TD_CONTROLLER_COUNT; kind++) {
        if (upstream->ones[kind].timer) {
            td_timer_set_machine(upstream->ones[kind].timer, 0);
        }
    }
}

void td_upstream_free(struct td_upstream *upstream)
{
    for (size_t kind = 0; upstream && kind < TD_CONTROLLER_COUNT; kind++) {
        struct upstream_one *one = &upstream->ones[kind];
        td_client_cancel(one->call);
        td_timer_free(one->timer);
        td_text_free(one->record);
        td_text_free(one->holder);
    }
    td_free(upstream);
}

bool td_upstream_allows(const struct td_upstream *upstream, enum td_controller_kind kind)
{
    return !upstream || !upstream->ones[kind].timer ||
           upstream->ones[kind].state == UPSTREAM_ABSENT;
}

bool td_upstream_is_alive(const struct td_upstream *upstream, enum td_controller_kind kind)
{
    return upstream && upstream->ones[kind].state == UPSTREAM_ALIVE;
}

td_str td_upstream_words(const struct td_upstream *upstream, enum td_controller_kind kind,
                         struct td_arena *arena)
{
    const struct upstream_one *one = upstream ? &upstream->ones[kind] : NULL;
    if (!td_upstream_is_alive(upstream, kind)) {
        return TD_STR_EMPTY;
    }
    if (one->by_pod) {
        return td_arena_format(arena,
                               "upstream's %s is alive: a pod of Deployment " TD_UPSTREAM_NAMESPACE
                               "/%s is running",
                               upstream_program(kind), upstream_program(kind));
    }
    return td_arena_format(
        arena,
        "upstream's %s is alive: lease " TD_UPSTREAM_NAMESPACE "/%s is held and renewed by '%.*s'",
        upstream_program(kind), td_controller_upstream_lease(kind), TD_STR_ARG(one->holder));
}
