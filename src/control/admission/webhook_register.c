/*
 * The registration at the API server: made when there is none, adopted and corrected when there is
 * one, put back when another client deletes it, its bundle kept current. Two watches of one object
 * each tell of every change, so nothing is asked for again and again.
 *
 * Where upstream's registration is taken over (--replace-upstream) it is changed by one patch, so
 * that one of the two programs answers at every moment. When upstream's admission controller then
 * registers itself again, which deletes and creates it, ours steps back instead of fighting: that
 * is the way back. It steps forward when the registration is gone.
 */
#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/os/log.h"
#include "base/os/loop.h"
#include "base/text.h"
#include "control/admission/webhook_private.h"
#include "kube/cache/cache.h"
#include "kube/client/client.h"
#include "kube/client/verbs.h"

#define REGISTER_RETRY (5 * TD_SECOND) /* after a write, should it have failed or been undone */
#define REGISTER_GONE                                                                              \
    (2 * TD_SECOND) /* for upstream's to put back what it deletes at its start                     \
                     */
#define REGISTER_REMOVE_AGAIN (100 * TD_MILLISECOND)
#define REGISTER_REMOVALS_MAX 20

struct register_found {
    struct td_cache_head head;
    td_str labels;   /* JSON */
    td_str webhooks; /* JSON */
};

struct register_one {
    struct webhook_registration *registration;
    enum webhook_configuration which;
    struct td_cache *cache;
    struct td_client_call *call;
    struct td_client_call *leftover_call;
    struct td_timer *timer;
    td_duration held_until; /* of the steady clock: a write was made lately */
    bool is_right;          /* but for its bundle, perhaps */
    bool is_current;        /* and the bundle too */
    bool has_been_right;    /* from then on another program's is that program's wish */
    bool is_given_up;       /* another program registered itself under this name */
    unsigned removal_tries;
};

struct webhook_registration {
    struct td_webhook *webhook;
    struct register_one ones[WEBHOOK_CONFIGURATIONS];
    td_str problem; /* owned */
    bool is_started;
    bool is_stopping;
    size_t removals; /* under way */
    struct td_client_call *lease_call;
    void (*removed)(void *context);
    void *removed_context;
};

static struct td_api_path register_path(enum webhook_configuration which, td_str name)
{
    return (struct td_api_path){
        .group = TD_STR("admissionregistration.k8s.io"),
        .version = TD_STR("v1"),
        .plural = webhook_configuration_plural(which),
        .name = name,
    };
}

static td_str register_name(const struct register_one *one)
{
    return webhook_configuration_name(one->registration->webhook, one->which);
}

static void register_set_problem(struct webhook_registration *registration, td_str problem)
{
    td_text_set(&registration->problem, problem);
}

/* ---- Comparing ---- */

static const struct register_found *register_find(const struct register_one *one)
{
    return td_cache_get(one->cache, TD_STR_EMPTY, register_name(one));
}

static struct td_json *register_tree(struct td_arena *arena, const struct register_found *found)
{
    const struct td_json_options options = {.copy_strings = true};
    struct td_json *tree = td_json_new_object(arena);
    struct td_json *metadata = td_json_ensure_object(arena, tree, TD_STR("metadata"));
    struct td_json *part = NULL;
    if (td_json_parse(arena, found->labels, &options, &part, NULL) == TD_OK) {
        td_json_set(arena, metadata, TD_STR("labels"), part);
    }
    if (td_json_parse(arena, found->webhooks, &options, &part, NULL) == TD_OK) {
        td_json_set(arena, tree, TD_STR("webhooks"), part);
    }
    return tree;
}

/* Does the first webhook of what was found lead to this process, by its URL, or to our Service? */
static bool register_is_ours(const struct td_webhook *webhook, const struct register_found *found)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    const struct td_json *webhooks = td_json_get(register_tree(&arena, found), TD_STR("webhooks"));
    const struct td_json *client =
        td_json_get(td_json_first_item(webhooks), TD_STR("clientConfig"));
    const struct td_json *service = td_json_get(client, TD_STR("service"));
    return webhook->options.is_by_url || !webhook->options.listen
               ? td_str_equal(td_json_text(client, "url"), webhook->url)
               : td_str_equal(td_json_text(service, "name"), webhook->options.service) &&
                     td_str_equal(td_json_text(service, "namespace"), webhook->options.namespace);
}

/* ---- Writing ---- */

static void register_written(void *context, const struct td_client_reply *reply)
{
    struct register_one *one = context;
    struct webhook_registration *registration = one->registration;
    one->call = NULL;
    td_timer_set(one->timer, 0); /* the watch may have told before this answer came */
    if (reply->code != TD_OK && reply->code != TD_EXISTS && reply->code != TD_CONFLICT) {
        register_set_problem(registration, td_str_from(reply->err.message));
        td_log_line(registration->webhook->options.control.log, TD_LOG_WARN,
                    "webhook registration failed", TD_LOG_S("configuration", register_name(one)),
                    TD_LOG_C("error", reply->err.message));
    }
}

static int register_send(struct register_one *one, struct td_arena *arena,
                         const struct td_json *wanted, bool is_there, struct td_error *err)
{
    const struct td_webhook_options *options = &one->registration->webhook->options;
    td_auto_buf body = td_buf_capped(TD_OBJECT_BYTES_MAX);
    td_json_write(wanted, &(struct td_json_format){.indent = 0}, &body);
    const struct td_api_path path =
        register_path(one->which, is_there ? register_name(one) : TD_STR_EMPTY);
    struct td_client_request request;
    int code = td_buf_check(&body, "the webhook configuration", err);
    if (code == TD_OK) {
        code = is_there ? td_verb_patch(arena, &path, TD_PATCH_MERGE, td_buf_str(&body), NULL,
                                        &request, err)
                        : td_verb_create(arena, &path, td_buf_str(&body), NULL, &request, err);
    }
    if (code == TD_OK) {
        request.flow = options->control.flow;
        one->call = td_client_send(options->control.client, &request, register_written, one);
    }
    return code;
}

/* A bundle that is being renewed still trusts what is served: the probe knows better. */
static bool register_is_right_but_bundle(struct td_arena *arena, const struct register_one *one,
                                         const struct td_json *there)
{
    struct td_json *bare = td_json_copy(arena, there, false);
    const struct td_json *webhooks = td_json_get(bare, TD_STR("webhooks"));
    for (const struct td_json *w = td_json_first_item(webhooks); w; w = w->next) {
        (void)td_json_remove(td_json_get(w, TD_STR("clientConfig")), TD_STR("caBundle"));
    }
    return webhook_configuration_is_same(
        webhook_configuration_make(arena, one->registration->webhook, one->which, TD_STR_EMPTY),
        bare);
}

/* Upstream's admission controller took its name back. */
static bool register_gives_up(struct register_one *one, const struct register_found *found)
{
    struct webhook_registration *registration = one->registration;
    bool is_taken = found && one->which == WEBHOOK_MUTATING &&
                    registration->webhook->options.replaces_upstream &&
                    !register_is_ours(registration->webhook, found);
    if (!is_taken) {
        one->is_given_up = false;
    } else if (one->has_been_right && !one->is_given_up) {
        one->is_given_up = true;
        td_log_line(registration->webhook->options.control.log, TD_LOG_WARN,
                    "another program registered itself for pods: this webhook steps back",
                    TD_LOG_S("configuration", register_name(one)));
        register_set_problem(registration,
                             TD_STR("webhook configuration " TD_WEBHOOK_UPSTREAM
                                    " was registered anew by another program, which answers for "
                                    "pods now"));
    }
    return one->is_given_up;
}

static void register_look(struct register_one *one)
{
    struct webhook_registration *registration = one->registration;
    struct td_webhook *webhook = registration->webhook;
    td_str bundle = webhook_identity_bundle(webhook->identity);
    if (one->call || registration->is_stopping || !registration->is_started ||
        !td_cache_is_synced(one->cache) || (webhook->identity && bundle.len == 0)) {
        return;
    }
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    const struct register_found *found = register_find(one);
    struct td_json *wanted = webhook_configuration_make(&arena, webhook, one->which, bundle);
    struct td_json *there = found ? register_tree(&arena, found) : NULL;
    bool is_same = there && webhook_configuration_is_same(wanted, there);
    one->is_current = is_same;
    bool was_right = one->is_right;
    one->is_right = is_same || (there && register_is_right_but_bundle(&arena, one, there));
    one->has_been_right = one->has_been_right || one->is_right;
    if (was_right != one->is_right && one->which == WEBHOOK_MUTATING) {
        webhook_probe_registered(webhook->probe);
    }
    if (register_gives_up(one, found)) {
        return;
    }
    if (is_same) {
        register_set_problem(registration, TD_STR_EMPTY);
        return;
    }
    struct td_error err = TD_ERROR_INIT;
    td_duration now = td_clock_steady(td_loop_clock(webhook->options.control.loop));
    if (now < one->held_until) {
        td_timer_set(one->timer, one->held_until - now);
        return;
    }
    if (register_send(one, &arena, wanted, found != NULL, &err) != TD_OK) {
        register_set_problem(registration, td_str_from(err.message));
    }
    one->held_until = now + REGISTER_RETRY; /* two that disagree do not fight without a pause */
    td_timer_set(one->timer, REGISTER_RETRY);
}

static bool register_remove_one(struct register_one *one);
static void register_removal_ended(struct webhook_registration *registration);

static void register_rings(struct td_timer *timer, void *context)
{
    struct register_one *one = context;
    (void)timer;
    if (one->registration->is_stopping) {
        if (!register_remove_one(one)) {
            register_removal_ended(one->registration);
        }
        return;
    }
    register_look(one);
}

/* From inside a handler of a cache, which must not be changed there. */
static void register_soon(struct register_one *one)
{
    if (!one->registration->is_stopping) {
        td_timer_set(one->timer, 0);
    }
}

static void register_added(void *context, const void *object)
{
    (void)object;
    register_soon(context);
}

static void register_changed(void *context, const void *before, const void *after)
{
    (void)before;
    register_added(context, after);
}

static void register_deleted(void *context, const void *object)
{
    struct register_one *one = context;
    (void)object;
    one->is_right = false;
    one->is_current = false;
    if (one->which == WEBHOOK_MUTATING) {
        webhook_probe_registered(one->registration->webhook->probe);
    }
    if (one->registration->webhook->options.replaces_upstream) {
        const struct td_clock *clock =
            td_loop_clock(one->registration->webhook->options.control.loop);
        one->held_until = td_clock_steady(clock) + REGISTER_GONE;
    }
    register_soon(one);
}

static void register_synced(void *context)
{
    register_soon(context);
}

void webhook_registration_check(struct webhook_registration *registration)
{
    for (size_t i = 0; registration && i < WEBHOOK_CONFIGURATIONS; i++) {
        registration->ones[i].is_current = false;
        registration->ones[i].held_until = 0;
        register_soon(&registration->ones[i]);
    }
}

bool webhook_registration_is_current(const struct webhook_registration *registration)
{
    return !registration || (registration->ones[WEBHOOK_MUTATING].is_current &&
                             registration->ones[WEBHOOK_VALIDATING].is_current);
}

bool webhook_registration_is_right(const struct webhook_registration *registration)
{
    return !registration || registration->ones[WEBHOOK_MUTATING].is_right;
}

td_str webhook_registration_problem(const struct webhook_registration *registration)
{
    return registration ? registration->problem : TD_STR_EMPTY;
}

/* ---- Removing ---- */

static void register_removal_ended(struct webhook_registration *registration)
{
    if (--registration->removals == 0) {
        registration->removed(registration->removed_context);
    }
}

static void register_lease_taken(void *context, const struct td_client_reply *reply)
{
    struct webhook_registration *registration = context;
    registration->lease_call = NULL;
    if (reply->code != TD_OK && reply->code != TD_NOT_FOUND) {
        td_log_line(registration->webhook->options.control.log, TD_LOG_WARN,
                    "cannot delete the webhook's status lease",
                    TD_LOG_C("error", reply->err.message));
    }
    register_removal_ended(registration);
}

/* With the registration goes what says that pods are mutated: an updater, ours or upstream's, would
 * otherwise believe it for another minute. */
static void register_take_lease(struct webhook_registration *registration)
{
    const struct td_webhook_options *options = &registration->webhook->options;
    const struct td_api_path path = {
        .group = TD_STR("coordination.k8s.io"),
        .version = TD_STR("v1"),
        .namespace =
            options->lease_namespace.len > 0 ? options->lease_namespace : TD_STR("kube-system"),
        .plural = TD_STR("leases"),
        .name = options->lease_name,
    };
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_client_request request;
    if (options->lease_name.len == 0 ||
        td_verb_patch(&arena, &path, TD_PATCH_MERGE, TD_STR("{\"spec\":{\"renewTime\":null}}"),
                      NULL, &request, NULL) != TD_OK) {
        return;
    }
    request.flow = options->control.flow;
    registration->removals++;
    registration->lease_call =
        td_client_send(options->control.client, &request, register_lease_taken, registration);
}

static void register_removed(void *context, const struct td_client_reply *reply)
{
    struct register_one *one = context;
    struct webhook_registration *registration = one->registration;
    one->call = NULL;
    if (reply->code == TD_CONFLICT && one->removal_tries++ < REGISTER_REMOVALS_MAX) {
        td_timer_set(one->timer, REGISTER_REMOVE_AGAIN); /* a change is on its way here */
        return;
    }
    if (reply->code != TD_OK && reply->code != TD_NOT_FOUND) {
        td_log_line(registration->webhook->options.control.log, TD_LOG_WARN,
                    "cannot delete the webhook configuration",
                    TD_LOG_S("configuration", register_name(one)),
                    TD_LOG_C("error", reply->err.message));
    }
    if (reply->code == TD_OK && one->which == WEBHOOK_MUTATING) {
        register_take_lease(registration);
    }
    register_removal_ended(registration);
}

/* One that others took over is left alone. */
static bool register_remove_one(struct register_one *one)
{
    const struct td_webhook_options *options = &one->registration->webhook->options;
    const struct register_found *found = register_find(one);
    struct td_delete_options delete = TD_DELETE_OPTIONS_INIT;
    struct td_client_request request;
    const struct td_api_path path = register_path(one->which, register_name(one));
    if (!found || !register_is_ours(one->registration->webhook, found)) {
        return false;
    }
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    delete.uid = found->head.uid;
    delete.resource_version = found->head.version; /* only as it was seen */
    if (td_verb_delete(&arena, &path, &delete, &request, NULL) != TD_OK) {
        return false;
    }
    request.flow = options->control.flow;
    one->call = td_client_send(options->control.client, &request, register_removed, one);
    return true;
}

void webhook_registration_remove(struct webhook_registration *registration,
                                 void (*done)(void *context), void *context)
{
    if (!registration) {
        done(context);
        return;
    }
    registration->is_stopping = true;
    registration->removed = done;
    registration->removed_context = context;
    registration->removals = 1; /* this call */
    bool stays =
        registration->webhook->options.keeps ||
        (registration->webhook->options.listen && !registration->webhook->options.is_by_url);
    for (size_t i = 0; i < WEBHOOK_CONFIGURATIONS; i++) {
        struct register_one *one = &registration->ones[i];
        td_timer_stop(one->timer);
        td_client_cancel(one->call);
        one->call = NULL;
        registration->removals++;
        if (stays || !register_remove_one(one)) {
            registration->removals--;
        }
    }
    register_removal_ended(registration);
}

/* ---- What others left behind ---- */

static void register_leftover_removed(void *context, const struct td_client_reply *reply)
{
    struct register_one *one = context;
    struct td_log *log = one->registration->webhook->options.control.log;
    td_str plural = webhook_configuration_plural(one->which);
    one->leftover_call = NULL;
    if (reply->code == TD_OK) {
        td_log_line(log, TD_LOG_INFO,
                    "removed the webhook configuration that a process outside the cluster left",
                    TD_LOG_S("kind", plural), TD_LOG_S("name", TD_STR(TD_WEBHOOK_OUTSIDE)));
    } else if (reply->code != TD_NOT_FOUND) {
        td_log_line(log, TD_LOG_WARN,
                    "cannot remove the webhook configuration of a process outside the cluster",
                    TD_LOG_S("kind", plural), TD_LOG_C("error", reply->err.message));
    }
}

/* Begun in the cluster, when no process outside of it is alive (controllers_guard.c): what one of
 * them registered leads nowhere. */
static void register_remove_leftover(struct register_one *one)
{
    const struct td_webhook_options *options = &one->registration->webhook->options;
    const struct td_api_path path = register_path(one->which, TD_STR(TD_WEBHOOK_OUTSIDE));
    const struct td_delete_options delete = TD_DELETE_OPTIONS_INIT;
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    struct td_client_request request;
    if (options->is_by_url || !options->listen ||
        td_verb_delete(&arena, &path, &delete, &request, NULL) != TD_OK) {
        return;
    }
    request.flow = options->control.flow;
    one->leftover_call =
        td_client_send(options->control.client, &request, register_leftover_removed, one);
}

/* ---- The whole ---- */

static int register_make(struct webhook_registration *registration,
                         enum webhook_configuration which, struct td_error *err)
{
    static const struct td_cache_field fields[] = {
        {"metadata.labels", TD_CACHE_RAW, offsetof(struct register_found, labels)},
        {"webhooks", TD_CACHE_RAW, offsetof(struct register_found, webhooks)},
    };
    static const struct td_cache_handler handler = {.added = register_added,
                                                    .changed = register_changed,
                                                    .deleted = register_deleted,
                                                    .synced = register_synced};
    const struct td_webhook_options *options = &registration->webhook->options;
    struct register_one *one = &registration->ones[which];
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    td_str name = webhook_configuration_name(registration->webhook, which);
    const struct td_cache_options cache = {
        .loop = options->control.loop,
        .client = options->control.client,
        .flow = options->control.flow,
        .group = TD_STR("admissionregistration.k8s.io"),
        .version = TD_STR("v1"),
        .plural = webhook_configuration_plural(which),
        .field_selector = td_arena_format(&arena, "metadata.name=%.*s", TD_STR_ARG(name)),
        .fields = fields,
        .field_count = sizeof(fields) / sizeof(fields[0]),
        .struct_bytes = sizeof(struct register_found),
        .seed = options->control.seed + (uint64_t)which,
    };
    one->registration = registration;
    one->which = which;
    int code = td_cache_new(&cache, &one->cache, err);
    if (code == TD_OK) {
        one->timer = td_timer_new(options->control.loop, register_rings, one);
        td_cache_subscribe(one->cache, &handler, one);
    }
    return code;
}

int webhook_registration_new(struct td_webhook *webhook, struct webhook_registration **ret,
                             struct td_error *err)
{
    struct webhook_registration *registration = td_alloc_zero(1, sizeof(*registration));
    registration->webhook = webhook;
    int code = TD_OK;
    for (int which = 0; which < WEBHOOK_CONFIGURATIONS && code == TD_OK; which++) {
        code = register_make(registration, (enum webhook_configuration)which, err);
    }
    if (code != TD_OK) {
        webhook_registration_free(registration);
        return code;
    }
    *ret = registration;
    return TD_OK;
}

void webhook_registration_start(struct webhook_registration *registration)
{
    if (!registration) {
        return;
    }
    registration->is_started = true;
    for (size_t i = 0; i < WEBHOOK_CONFIGURATIONS; i++) {
        td_cache_start(registration->ones[i].cache);
        register_remove_leftover(&registration->ones[i]);
    }
}

void webhook_registration_free(struct webhook_registration *registration)
{
    if (!registration) {
        return;
    }
    for (size_t i = 0; i < WEBHOOK_CONFIGURATIONS; i++) {
        struct register_one *one = &registration->ones[i];
        td_client_cancel(one->call);
        td_client_cancel(one->leftover_call);
        td_cache_free(one->cache);
        td_timer_free(one->timer);
    }
    td_client_cancel(registration->lease_call);
    td_text_free(registration->problem);
    td_free(registration);
}
