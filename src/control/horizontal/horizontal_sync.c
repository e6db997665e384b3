/*
 * One reconcile, up to its decision: object, scale, pods, owners, metrics. Each step either ends in
 * the next one or leaves a call under way whose answer does.
 */
#include "api/gates.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/os/log.h"
#include "base/os/loop.h"
#include "control/horizontal/horizontal_private.h"
#include "kube/client/client.h"
#include "kube/client/client_reply.h"
#include "kube/client/events.h"
#include "kube/client/verbs.h"

#define SYNC_SEEN_FRESH (150 * TD_SECOND) /* a quiet watch is confirmed each minute */
#define SYNC_RIVAL_PAUSE (10 * TD_MINUTE) /* between two events about the same */

/* ---- Its life ---- */

struct horizontal_sync *horizontal_sync_new(struct td_horizontal_loop *loop,
                                            enum horizontal_group group,
                                            const struct horizontal_purpose *purpose)
{
    struct horizontal_sync *sync = td_alloc_zero(1, sizeof(*sync));
    sync->loop = loop;
    sync->purpose = purpose;
    sync->group = group;
    sync->began = horizontal_now(loop);
    sync->seen.gated = TD_STR_EMPTY;
    sync->decided.config = &loop->options.config;
    sync->decided.state = &sync->decided.own_state;
    sync->decided.tracker = &sync->decided.own_tracker;
    td_hpa_state_init(&sync->decided.own_state);
    td_hpa_tracker_init(&sync->decided.own_tracker);
    td_arena_init(&sync->arena, TD_TREE_ARENA_BYTES_MAX);
    sync->next = loop->syncs;
    if (loop->syncs) {
        loop->syncs->previous = sync;
    }
    loop->syncs = sync;
    return sync;
}

void horizontal_sync_free(struct horizontal_sync *sync)
{
    struct td_horizontal_loop *loop = sync->loop;
    *(sync->previous ? &sync->previous->next : &loop->syncs) = sync->next;
    if (sync->next) {
        sync->next->previous = sync->previous;
    }
    td_client_cancel(sync->call);
    horizontal_owners_leave(sync);
    horizontal_queries_leave(sync);
    if (sync->seen.has_filter) {
        td_owner_filter_done(&sync->seen.filter);
    }
    if (sync->item) {
        sync->item->sync = NULL;
        loop->sync_count--;
    }
    td_hpa_state_done(&sync->decided.own_state);
    td_hpa_tracker_done(&sync->decided.own_tracker);
    td_timer_free(sync->timer);
    td_arena_done(&sync->arena);
    td_free(sync);
}

void horizontal_sync_wait(struct horizontal_sync *sync,
                          void (*resume)(struct horizontal_sync *sync))
{
    sync->resume = resume;
    sync->is_settled = false;
}

void horizontal_sync_resume(struct horizontal_sync *sync,
                            void (*resume)(struct horizontal_sync *sync))
{
    sync->resume = resume;
    sync->is_settled = true;
    td_timer_set(sync->loop->wake, 0);
}

/* A sync that goes on may end, and others may begin: look from the start again each time. */
void horizontal_sync_wake(struct td_horizontal_loop *loop)
{
    struct horizontal_sync *sync = loop->syncs;
    while (sync) {
        if (!sync->resume || !sync->is_settled) {
            sync = sync->next;
            continue;
        }
        void (*resume)(struct horizontal_sync * sync) = sync->resume;
        sync->resume = NULL;
        sync->is_settled = false;
        resume(sync);
        sync = loop->syncs;
    }
}

void horizontal_record(const struct horizontal_sync *sync, const struct td_hpa_event *event)
{
    const struct td_meta *meta = &sync->seen.hpa.meta;
    if (sync->loop->options.control.events) {
        td_events_record(sync->loop->options.control.events,
                         &(struct td_event){
                             .api_version = horizontal_api_version(sync->group),
                             .kind = TD_STR("HorizontalPodAutoscaler"),
                             .namespace = meta->namespace,
                             .name = meta->name,
                             .uid = meta->uid,
                             .is_warning = event->is_warning,
                             .reason = event->reason,
                             .message = event->message,
                             .decision = event->decision,
                         });
    }
}

/* ---- The scale ---- */

void horizontal_send(struct horizontal_sync *sync, struct td_client_request *request,
                     void (*done)(void *context, const struct td_client_reply *reply))
{
    request->flow = sync->loop->options.control.flow;
    request->deadline = HORIZONTAL_DEADLINE;
    sync->call = td_client_send(sync->loop->options.control.client, request, done, sync);
}

int horizontal_get_scale(struct horizontal_sync *sync,
                         void (*done)(void *context, const struct td_client_reply *reply),
                         struct td_error *err)
{
    const struct td_api_path path =
        td_path_scale(&sync->seen.resource,
                      TD_OBJECT_KEY(sync->seen.hpa.meta.namespace, sync->seen.hpa.target.name));
    struct td_client_request request;
    int code = td_verb_get(&sync->arena, &path, &request, err);
    if (code == TD_OK) {
        horizontal_send(sync, &request, done);
    }
    return code;
}

int horizontal_read_scale(struct horizontal_sync *sync, const struct td_client_reply *reply,
                          td_str *ret_error)
{
    struct td_error err = TD_ERROR_INIT;
    if (reply->code != TD_OK) {
        *ret_error = td_reply_message(&sync->arena, reply);
        return reply->code;
    }
    int code =
        td_json_parse(&sync->arena, reply->body, &(struct td_json_options){.copy_strings = true},
                      &sync->seen.scale, &err);
    if (code != TD_OK) {
        *ret_error = td_arena_copy_str(&sync->arena, td_str_from(err.message));
    }
    return code;
}

static int32_t sync_count(const struct td_json *object, td_str key)
{
    int64_t count = td_json_get_int64(object, key, 0);
    count = count < 0 ? 0 : count;
    return count > INT32_MAX ? INT32_MAX : (int32_t)count;
}

static void sync_judge(struct horizontal_sync *sync, const struct td_hpa_scale *scale);

static void sync_fail_scale(struct horizontal_sync *sync, enum td_hpa_scale_fault fault,
                            td_str error)
{
    const struct td_hpa_scale scale = {
        .fault = fault, .error = error, .selector = TD_STR_EMPTY, .uid = TD_STR_EMPTY};
    sync_judge(sync, &scale);
}

/* A kind may be served by several resources, of which not all can be scaled: the first that answers
 * counts, and when none does, what the first of all said. */
static void sync_next_resource(struct horizontal_sync *sync, td_str error)
{
    sync->seen.scale_error = sync->seen.scale_error.len > 0 ? sync->seen.scale_error : error;
    sync->seen.resource_at++;
    horizontal_sync_ask_scale(sync);
}

static void sync_scale_answered(void *context, const struct td_client_reply *reply)
{
    struct horizontal_sync *sync = context;
    sync->call = NULL;
    td_str error;
    if (horizontal_read_scale(sync, reply, &error) != TD_OK) {
        sync_next_resource(sync, error);
        return;
    }
    const struct td_json *status = td_json_get(sync->seen.scale, TD_STR("status"));
    const struct td_hpa_scale scale = {
        .fault = TD_HPA_SCALE_OK,
        .error = TD_STR_EMPTY,
        .spec_replicas =
            sync_count(td_json_get(sync->seen.scale, TD_STR("spec")), TD_STR("replicas")),
        .status_replicas = sync_count(status, TD_STR("replicas")),
        .selector = td_json_text(status, "selector"),
        .uid = td_json_text(td_json_get(sync->seen.scale, TD_STR("metadata")), "uid"),
    };
    if (sync->item) {
        horizontal_scale_keep(&sync->item->scale, &scale);
    }
    sync_judge(sync, &scale);
}

/* ---- The target as it was seen ---- */

/* The object of the target, where the informers have all that its scale would say and is fresh. */
static const struct td_informer_object *sync_find_target(const struct horizontal_sync *sync)
{
    const struct td_informers *informers = sync->loop->options.control.informers;
    const struct td_object_reference *target = &sync->seen.hpa.target;
    if (!sync->purpose->is_periodic || sync->item->reads_scale ||
        !td_str_equal(sync->seen.resource.group, TD_STR("apps"))) {
        return NULL;
    }
    bool is_deployment = td_str_equal(target->kind, TD_STR("Deployment"));
    bool is_stateful = td_str_equal(target->kind, TD_STR("StatefulSet"));
    const struct td_cache *cache =
        is_deployment || is_stateful
            ? td_informers_cache(informers, is_deployment ? TD_INFORMER_DEPLOYMENTS
                                                          : TD_INFORMER_STATEFUL_SETS)
            : NULL;
    bool is_fresh = cache && td_cache_is_synced(cache) && td_cache_error(cache)->code == TD_OK &&
                    td_cache_age(cache) < SYNC_SEEN_FRESH;
    return is_fresh ? td_cache_get(cache, sync->seen.hpa.meta.namespace, target->name) : NULL;
}

/* What the scale subresource would answer, out of the object that is watched: of a thousand HPAs
 * hardly one has something to change at a time, and the others need not ask. Before anything is
 * written the scale is read. */
static bool sync_see_scale(struct horizontal_sync *sync, struct td_hpa_scale *ret)
{
    const struct td_informer_object *object = sync_find_target(sync);
    struct td_json *tree;
    struct td_selector selector;
    if (!object || td_informers_tree(&sync->arena, object, &tree, NULL) != TD_OK) {
        return false;
    }
    const struct td_json *spec = td_json_get(tree, TD_STR("spec"));
    if (!td_json_is(td_json_get(spec, TD_STR("replicas")), TD_JSON_TYPE_NUMBER) ||
        td_selector_from_json(&sync->arena, td_json_get(spec, TD_STR("selector")), &selector,
                              NULL) != TD_OK) {
        return false;
    }
    td_auto_buf text = td_buf_capped(TD_METRICS_PATH_BYTES_MAX);
    td_selector_write(&selector, &text);
    *ret = (struct td_hpa_scale){
        .fault = TD_HPA_SCALE_OK,
        .error = TD_STR_EMPTY,
        .spec_replicas = sync_count(spec, TD_STR("replicas")),
        .status_replicas = sync_count(td_json_get(tree, TD_STR("status")), TD_STR("replicas")),
        .selector = td_arena_copy_str(&sync->arena, td_buf_str(&text)),
        .uid = td_arena_copy_str(&sync->arena, object->head.uid),
    };
    return !text.is_full;
}

/* A look asks for nothing: what the last sync read will do, since one that changes something reads
 * it anew. */
static bool sync_recall_scale(struct horizontal_sync *sync, struct td_hpa_scale *ret)
{
    if (!sync->purpose->is_look || !sync->item->scale.is_known) {
        return false;
    }
    const struct horizontal_scale *kept = &sync->item->scale;
    *ret = (struct td_hpa_scale){
        .fault = TD_HPA_SCALE_OK,
        .error = TD_STR_EMPTY,
        .spec_replicas = kept->spec_replicas,
        .status_replicas = kept->status_replicas,
        .selector = td_arena_copy_str(&sync->arena, kept->selector),
        .uid = td_arena_copy_str(&sync->arena, kept->uid),
    };
    return true;
}

void horizontal_sync_ask_scale(struct horizontal_sync *sync)
{
    const struct td_object_reference *target = &sync->seen.hpa.target;
    struct td_error err = TD_ERROR_INIT;
    const char *problem = td_hpa_version_problem(&sync->arena, target->api_version, true);
    if (problem) {
        sync_fail_scale(sync, TD_HPA_SCALE_BAD_API_VERSION, td_str_from(problem));
        return;
    }
    td_str group = td_group_version_parse(target->api_version).group;
    struct td_served_resource found;
    int code = td_informers_resource(sync->loop->options.control.informers, group, target->kind,
                                     sync->seen.resource_at, &found, &err);
    if (code == TD_BUSY) {
        horizontal_sync_wait(sync, horizontal_sync_ask_scale);
        return;
    }
    if (code != TD_OK && sync->seen.resource_at > 0) {
        sync_fail_scale(sync, TD_HPA_SCALE_NOT_READ, sync->seen.scale_error);
        return;
    }
    if (code != TD_OK) {
        sync_fail_scale(sync, TD_HPA_SCALE_NO_MAPPING,
                        td_arena_copy_str(&sync->arena, td_str_from(err.message)));
        return;
    }
    sync->seen.resource = (struct td_served_resource){
        .group = td_arena_copy_str(&sync->arena, found.group),
        .version = td_arena_copy_str(&sync->arena, found.version),
        .plural = td_arena_copy_str(&sync->arena, found.plural),
        .is_namespaced = found.is_namespaced,
    };
    struct td_hpa_scale seen;
    if (sync_see_scale(sync, &seen) || sync_recall_scale(sync, &seen)) {
        sync_judge(sync, &seen);
        return;
    }
    if (sync->purpose->is_look) {
        sync_fail_scale(sync, TD_HPA_SCALE_NOT_READ, TD_STR_EMPTY);
        return;
    }
    if (horizontal_get_scale(sync, sync_scale_answered, &err) != TD_OK) {
        sync_fail_scale(sync, TD_HPA_SCALE_NOT_READ,
                        td_arena_copy_str(&sync->arena, td_str_from(err.message)));
    }
}

/* ---- From the scale to the decision ---- */

static void sync_select(struct horizontal_sync *sync)
{
    td_time now = horizontal_now(sync->loop);
    struct td_hpa_pass *pass = &sync->decided.pass;
    const struct td_meta *meta = &sync->seen.hpa.meta;
    if (!td_hpa_select(pass, now)) {
        sync->purpose->decided(sync);
        return;
    }
    horizontal_pods_match(sync);
    sync->decided.selection.matched_count = sync->seen.pod_count;
    sync->decided.selection.owned_count = sync->seen.pod_count;
    if (sync->purpose->finds_peers) {
        horizontal_explain_track(sync);
    }
    /* An HPA of that name in the other group may have taken the entry with it. */
    (void)td_hpa_tracker_add(sync->decided.tracker, meta->namespace, meta->name);
    const struct td_hpa_matched matched = {
        .pods = sync->seen.pods,
        .count = sync->seen.pod_count,
        .source = td_informers_source(sync->loop->options.control.informers),
    };
    if (!td_hpa_select_alone(pass, sync->decided.tracker, &matched, now)) {
        sync->purpose->decided(sync);
        return;
    }
    if (pass->strategy != TD_HPA_STRATEGY_OWNERS || sync->seen.pod_count == 0) {
        horizontal_queries_ask(sync);
        return;
    }
    const struct td_owner_target target = {
        .group = td_group_version_parse(sync->seen.hpa.target.api_version).group,
        .kind = sync->seen.hpa.target.kind,
        .name = sync->seen.hpa.target.name,
        .namespace = meta->namespace,
        .uid = pass->scale.uid,
    };
    td_owner_filter_begin(&sync->seen.filter, &sync->arena, &sync->loop->owners, &target,
                          sync->seen.pods, sync->seen.pod_count, now);
    sync->seen.has_filter = true;
    horizontal_sync_filter(sync);
}

static void sync_judge(struct horizontal_sync *sync, const struct td_hpa_scale *scale)
{
    struct td_hpa_pass *pass = &sync->decided.pass;
    struct td_horizontal_loop *loop = sync->loop;
    td_hpa_begin(pass, &sync->arena, &sync->seen.hpa, sync->decided.config, sync->decided.state,
                 scale, horizontal_now(loop));
    td_hpa_report_gates(pass, sync->seen.gated);
    sync->decided.selection.choice =
        td_hpa_strategy_choose(&sync->seen.hpa, &loop->options.strategy);
    sync->decided.selection.culprit = TD_STR_EMPTY;
    pass->strategy = sync->decided.selection.choice.strategy;
    td_hpa_strategy_observe(&sync->decided.state->strategy, &sync->decided.selection.choice,
                            &pass->events);
    td_hpa_strategy_report(&sync->decided.selection, false, &pass->status.conditions,
                           horizontal_now(loop));
    if (pass->path == TD_HPA_PATH_METRICS) {
        sync_select(sync);
    } else {
        sync->purpose->decided(sync);
    }
}

void horizontal_sync_filter(struct horizontal_sync *sync)
{
    struct td_owner_filter *filter = &sync->seen.filter;
    struct td_horizontal_loop *loop = sync->loop;
    enum td_owner_step step = td_owner_filter_step(filter);
    if (step == TD_OWNER_FETCH) {
        horizontal_owners_fetch(sync);
        return;
    }
    sync->decided.selection.is_filtered = true;
    sync->decided.selection.is_failed = step == TD_OWNER_GIVEN_UP;
    if (sync->decided.selection.is_failed) {
        sync->decided.selection.culprit = filter->culprit;
        td_hpa_strategy_filter_failed(&sync->decided.state->strategy, filter->cause,
                                      filter->culprit, horizontal_now(loop),
                                      &sync->decided.pass.events);
    } else {
        sync->decided.selection.owned_count = filter->owned_count;
    }
    if (filter->too_deep_count > 0) {
        td_log_line(loop->options.control.log, TD_LOG_WARN,
                    "pods with too many levels of owners are not counted",
                    TD_LOG_S("namespace", sync->seen.hpa.meta.namespace),
                    TD_LOG_S("hpa", sync->seen.hpa.meta.name),
                    TD_LOG_I("pods", (int64_t)filter->too_deep_count));
    }
    horizontal_queries_ask(sync);
}

void horizontal_sync_decide(struct horizontal_sync *sync)
{
    struct td_hpa_answer *answers =
        td_arena_array(&sync->arena, struct td_hpa_answer, sync->seen.query_count + 1);
    for (size_t i = 0; i < sync->seen.query_count; i++) {
        answers[i] = horizontal_pods_answer(sync, &sync->seen.queries[i]);
    }
    td_hpa_decide(&sync->decided.pass, answers, horizontal_now(sync->loop));
    td_hpa_strategy_report(&sync->decided.selection, true, &sync->decided.pass.status.conditions,
                           horizontal_now(sync->loop));
    sync->purpose->decided(sync);
}

/* ---- The object ---- */

int horizontal_sync_read(struct horizontal_sync *sync, const struct td_informer_object *object,
                         struct td_error *err)
{
    struct td_arena *arena = &sync->arena;
    int code = td_informers_tree(arena, object, &sync->seen.tree, err);
    if (code != TD_OK) {
        return code;
    }
    td_json_set_str(arena, sync->seen.tree, TD_STR("apiVersion"),
                    horizontal_api_version(sync->group));
    td_json_set_str(arena, sync->seen.tree, TD_STR("kind"), TD_STR("HorizontalPodAutoscaler"));
    if (sync->group == HORIZONTAL_OWN) { /* the API server has defaulted those of its own kind */
        code = td_hpa_default(arena, sync->seen.tree, err);
    }
    code = code == TD_OK ? td_hpa_decode(arena, sync->seen.tree, &sync->seen.hpa, err) : code;
    if (code == TD_OK) {
        const struct td_horizontal_options *options = &sync->loop->options;
        const struct td_hpa_gates gates = td_hpa_gates_of(&options->config, &options->strategy);
        sync->seen.gated =
            td_hpa_close_gates(arena, &gates, options->strategy.primary_key, &sync->seen.hpa);
    }
    return code;
}

/* A pass that is over before the scale is read; ours step back from a target of another. */
void horizontal_sync_begin(struct horizontal_sync *sync)
{
    td_str words = sync->group == HORIZONTAL_OWN
                       ? horizontal_guard_conflict(&sync->arena, sync->loop, &sync->seen.hpa)
                       : TD_STR_EMPTY;
    if (words.len == 0) {
        horizontal_sync_ask_scale(sync);
        return;
    }
    td_hpa_begin_aside(&sync->decided.pass, &sync->arena, &sync->seen.hpa, sync->decided.config,
                       sync->decided.state, horizontal_now(sync->loop));
    td_hpa_yield_target(&sync->decided.pass, words);
    sync->purpose->decided(sync);
}

static void sync_tell_rival(struct horizontal_sync *sync, td_str manager)
{
    struct horizontal_item *item = sync->item;
    td_time now = horizontal_now(sync->loop);
    if (item->rival_reported == TD_TIME_NONE || now - item->rival_reported >= SYNC_RIVAL_PAUSE) {
        item->rival_reported = now;
        horizontal_record(sync, &(struct td_hpa_event){
                                    .is_warning = true,
                                    .reason = TD_STR("AnotherControllerActive"),
                                    .message = horizontal_guard_words(&sync->arena, manager),
                                });
    }
}

static void sync_claim(struct horizontal_sync *sync)
{
    td_time now = horizontal_now(sync->loop);
    td_hpa_begin_aside(&sync->decided.pass, &sync->arena, &sync->seen.hpa, sync->decided.config,
                       sync->decided.state, now);
    td_hpa_claim_write(&sync->item->claim, &sync->decided.pass.status.conditions, now);
    sync->purpose->decided(sync);
}

void horizontal_sync_start(struct horizontal_item *item, const struct td_informer_object *object)
{
    struct td_horizontal_loop *loop = item->loop;
    struct horizontal_sync *sync =
        horizontal_sync_new(loop, item->group, &horizontal_purpose_reconcile);
    sync->item = item;
    sync->decided.state = &item->state;
    sync->decided.tracker = &loop->tracker;
    item->sync = sync;
    item->is_evaluated = false;
    horizontal_metrics_waited(item);
    loop->sync_count++;
    struct td_error err = TD_ERROR_INIT;
    td_str manager;
    td_duration wait = 0;
    if (horizontal_sync_read(sync, object, &err) != TD_OK) {
        td_log_line(loop->options.control.log, TD_LOG_WARN, "cannot decode HPA",
                    TD_LOG_S("namespace", item->namespace), TD_LOG_S("hpa", item->name),
                    TD_LOG_C("error", err.message));
        horizontal_sync_free(sync);
        horizontal_item_done(item);
        return;
    }
    switch (horizontal_guard_judge(&sync->arena, item, object, &manager, &wait)) {
    case TD_HPA_CLAIM_GO:
        horizontal_sync_begin(sync);
        return;
    case TD_HPA_CLAIM_WRITE:
        sync_claim(sync);
        return;
    case TD_HPA_CLAIM_WAIT:
        horizontal_sync_free(sync);
        horizontal_item_put_off(item, wait);
        return;
    case TD_HPA_CLAIM_RIVAL:
        break;
    }
    sync_tell_rival(sync, manager);
    horizontal_sync_free(sync);
    horizontal_item_done(item);
}
