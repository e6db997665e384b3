/*
 * One reconcile, up to its decision: object, scale, pods, owners, metrics. Each step either ends in
 * the next one or leaves a call under way whose answer does.
 */
#include "api/gates.h"
#include "base/alloc.h"
#include "base/assert.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/os/log.h"
#include "base/os/loop.h"
#include "control/horizontal/horizontal_private.h"
#include "kube/client/client.h"
#include "kube/client/events.h"
#include "kube/client/verbs.h"

#define SYNC_SEEN_FRESH (150 * TD_SECOND) /* a quiet watch is confirmed each minute */
#define SYNC_RIVAL_PAUSE (10 * TD_MINUTE) /* between two events about the same */

/* ---- Its life ---- */

static struct horizontal_sync *sync_new(struct td_horizontal_loop *loop,
                                        enum horizontal_group group, struct horizontal_item *item)
{
    struct horizontal_sync *sync = td_alloc_zero(1, sizeof(*sync));
    sync->loop = loop;
    sync->group = group;
    sync->item = item;
    sync->began = horizontal_now(loop);
    sync->warning = TD_STR_EMPTY;
    sync->gated = TD_STR_EMPTY;
    td_arena_init(&sync->arena, TD_TREE_ARENA_BYTES_MAX);
    sync->next = loop->syncs;
    if (loop->syncs) {
        loop->syncs->previous = sync;
    }
    loop->syncs = sync;
    if (item) {
        item->sync = sync;
        loop->sync_count++;
        sync->state = &item->state;
        sync->tracker = &loop->tracker;
    } else {
        td_hpa_state_init(&sync->own_state);
        td_hpa_tracker_init(&sync->own_tracker);
        sync->state = &sync->own_state;
        sync->tracker = &sync->own_tracker;
    }
    return sync;
}

void horizontal_sync_free(struct horizontal_sync *sync)
{
    struct td_horizontal_loop *loop = sync->loop;
    *(sync->previous ? &sync->previous->next : &loop->syncs) = sync->next;
    if (sync->next) {
        sync->next->previous = sync->previous;
    }
    if (sync->call) {
        td_client_cancel(sync->call);
    }
    horizontal_owners_leave(sync);
    horizontal_measures_leave(sync);
    if (sync->has_filter) {
        td_owner_filter_done(&sync->filter);
    }
    if (sync->item) {
        sync->item->sync = NULL;
        loop->sync_count--;
    } else {
        td_hpa_state_done(&sync->own_state);
        td_hpa_tracker_done(&sync->own_tracker);
    }
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

/* Whoever goes on may end, and others may begin: look from the start again each time. */
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

/* ---- The scale ---- */

td_str horizontal_message(struct td_arena *arena, const struct td_client_reply *reply)
{
    struct td_json *status;
    td_str message = TD_STR_EMPTY;
    if (td_json_parse(arena, reply->body, &(struct td_json_options){.copy_strings = true}, &status,
                      NULL) == TD_OK) {
        message = td_json_get_str(status, TD_STR("message"), TD_STR_EMPTY);
    }
    return message.len > 0 ? message : td_arena_copy_str(arena, td_str_from(reply->err.message));
}

int horizontal_get_scale(struct horizontal_sync *sync,
                         void (*done)(void *context, const struct td_client_reply *reply),
                         struct td_error *err)
{
    const struct td_api_path path = {
        .group = sync->resource.group,
        .version = sync->resource.version,
        .namespace = sync->resource.is_namespaced ? sync->hpa.meta.namespace : TD_STR_EMPTY,
        .plural = sync->resource.plural,
        .name = sync->hpa.target.name,
        .subresource = TD_STR("scale"),
    };
    struct td_client_request request;
    int code = td_verb_get(&sync->arena, &path, &request, err);
    if (code != TD_OK) {
        return code;
    }
    request.flow = sync->loop->options.control.flow;
    request.deadline = HORIZONTAL_DEADLINE;
    sync->call = td_client_send(sync->loop->options.control.client, &request, done, sync);
    return TD_OK;
}

int horizontal_read_scale(struct horizontal_sync *sync, const struct td_client_reply *reply,
                          td_str *ret_error)
{
    struct td_error err = TD_ERROR_INIT;
    if (reply->code != TD_OK) {
        *ret_error = horizontal_message(&sync->arena, reply);
        return reply->code;
    }
    int code = td_json_parse(&sync->arena, reply->body,
                             &(struct td_json_options){.copy_strings = true}, &sync->scale, &err);
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

static void sync_ask_scale(struct horizontal_sync *sync);

/* A kind may be served by several resources, of which not all can be scaled: the first that answers
 * counts, and when none does, what the first of all said. */
static void sync_next_resource(struct horizontal_sync *sync, td_str error)
{
    sync->scale_error = sync->scale_error.len > 0 ? sync->scale_error : error;
    sync->resource_at++;
    sync_ask_scale(sync);
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
    if (sync->item) {
        sync->item->reads_scale = false;
    }
    const struct td_json *status = td_json_get(sync->scale, TD_STR("status"));
    const struct td_hpa_scale scale = {
        .fault = TD_HPA_SCALE_OK,
        .error = TD_STR_EMPTY,
        .spec_replicas = sync_count(td_json_get(sync->scale, TD_STR("spec")), TD_STR("replicas")),
        .status_replicas = sync_count(status, TD_STR("replicas")),
        .selector = td_json_get_str(status, TD_STR("selector"), TD_STR_EMPTY),
        .uid = td_json_get_str(td_json_get(sync->scale, TD_STR("metadata")), TD_STR("uid"),
                               TD_STR_EMPTY),
    };
    sync_judge(sync, &scale);
}

static bool sync_is_bad_version(td_str api_version)
{
    size_t slash = td_str_find(api_version, '/', 0);
    return td_str_find(api_version, '/', slash + 1) < api_version.len;
}

/* ---- The target as it was seen ---- */

/* The object of the target, where the sight has all that its scale would say and is fresh. */
static const struct td_sight_object *sync_find_target(const struct horizontal_sync *sync)
{
    const struct td_sight *sight = sync->loop->options.control.sight;
    const struct td_object_reference *target = &sync->hpa.target;
    if (!sync->item || sync->item->reads_scale ||
        !td_str_equal(sync->resource.group, TD_STR("apps"))) {
        return NULL;
    }
    bool is_deployment = td_str_equal(target->kind, TD_STR("Deployment"));
    bool is_stateful = td_str_equal(target->kind, TD_STR("StatefulSet"));
    const struct td_cache *cache =
        is_deployment || is_stateful
            ? td_sight_cache(sight, is_deployment ? TD_SIGHT_DEPLOYMENTS : TD_SIGHT_STATEFUL_SETS)
            : NULL;
    bool is_fresh = cache && td_cache_is_synced(cache) && td_cache_trouble(cache)->code == TD_OK &&
                    td_cache_age(cache) < SYNC_SEEN_FRESH;
    return is_fresh ? td_cache_get(cache, sync->hpa.meta.namespace, target->name) : NULL;
}

/* What the scale subresource would answer, out of the object that is watched: of a thousand HPAs
 * hardly one has something to change at a time, and the others need not ask. Before anything is
 * written the scale is read. */
static bool sync_see_scale(struct horizontal_sync *sync, struct td_hpa_scale *ret)
{
    const struct td_sight_object *object = sync_find_target(sync);
    struct td_json *tree;
    struct td_selector selector;
    if (!object || td_sight_tree(&sync->arena, object, &tree, NULL) != TD_OK) {
        return false;
    }
    const struct td_json *spec = td_json_get(tree, TD_STR("spec"));
    if (!td_json_is(td_json_get(spec, TD_STR("replicas")), TD_JSON_TYPE_NUMBER) ||
        td_selector_from_json(&sync->arena, td_json_get(spec, TD_STR("selector")), &selector,
                              NULL) != TD_OK) {
        return false;
    }
    td_auto_buf text;
    td_buf_init(&text, TD_MEASURE_PATH_BYTES_MAX);
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

static void sync_ask_scale(struct horizontal_sync *sync)
{
    const struct td_object_reference *target = &sync->hpa.target;
    struct td_error err = TD_ERROR_INIT;
    if (sync_is_bad_version(target->api_version)) {
        sync_fail_scale(sync, TD_HPA_SCALE_BAD_API_VERSION,
                        td_arena_format(&sync->arena, "unexpected GroupVersion string: %.*s",
                                        TD_STR_ARG(target->api_version)));
        return;
    }
    td_str group = td_group_version_parse(target->api_version).group;
    struct td_sight_resource found;
    int code = td_sight_resource(sync->loop->options.control.sight, group, target->kind,
                                 sync->resource_at, &found, &err);
    if (code == TD_BUSY) {
        horizontal_sync_wait(sync, sync_ask_scale);
        return;
    }
    if (code != TD_OK && sync->resource_at > 0) {
        sync_fail_scale(sync, TD_HPA_SCALE_NOT_READ, sync->scale_error);
        return;
    }
    if (code != TD_OK) {
        sync_fail_scale(sync, TD_HPA_SCALE_NO_MAPPING,
                        td_arena_copy_str(&sync->arena, td_str_from(err.message)));
        return;
    }
    sync->resource = (struct td_sight_resource){
        .group = td_arena_copy_str(&sync->arena, found.group),
        .version = td_arena_copy_str(&sync->arena, found.version),
        .plural = td_arena_copy_str(&sync->arena, found.plural),
        .is_namespaced = found.is_namespaced,
    };
    struct td_hpa_scale seen;
    if (sync_see_scale(sync, &seen)) {
        sync_judge(sync, &seen);
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
    struct td_hpa_pass *pass = &sync->pass;
    const struct td_meta *meta = &sync->hpa.meta;
    if (!td_hpa_select(pass, now)) {
        horizontal_write(sync);
        return;
    }
    horizontal_pods_match(sync);
    sync->selection.matched_count = sync->pod_count;
    sync->selection.owned_count = sync->pod_count;
    if (sync->explain) {
        horizontal_explain_track(sync);
    }
    /* An HPA of that name in the other group may have taken the entry with it. */
    (void)td_hpa_tracker_add(sync->tracker, meta->namespace, meta->name);
    const struct td_hpa_matched matched = {
        .pods = sync->pods,
        .count = sync->pod_count,
        .source = td_sight_source(sync->loop->options.control.sight),
    };
    if (!td_hpa_select_alone(pass, sync->tracker, &matched, now)) {
        horizontal_write(sync);
        return;
    }
    if (pass->strategy != TD_HPA_STRATEGY_OWNERS || sync->pod_count == 0) {
        horizontal_measures_ask(sync);
        return;
    }
    const struct td_owner_target target = {
        .group = td_group_version_parse(sync->hpa.target.api_version).group,
        .kind = sync->hpa.target.kind,
        .name = sync->hpa.target.name,
        .namespace = meta->namespace,
        .uid = pass->scale.uid,
    };
    td_owner_filter_begin(&sync->filter, &sync->arena, &sync->loop->owners, &target, sync->pods,
                          sync->pod_count, now);
    sync->has_filter = true;
    horizontal_sync_filter(sync);
}

/* A field that is stored although its gate is off is named in the status; what is stored says
 * whether an event told it. */
static void sync_report_gates(struct horizontal_sync *sync)
{
    struct td_hpa_pass *pass = &sync->pass;
    struct td_hpa_conditions *conditions = &pass->status.conditions;
    bool is_told = false;
    if (sync->gated.len == 0) {
        td_hpa_condition_remove(conditions, TD_STR(TD_GATE_OFF));
        return;
    }
    for (size_t i = 0; i < conditions->count; i++) {
        is_told = is_told || (td_str_equal(conditions->items[i].type, TD_STR(TD_GATE_OFF)) &&
                              td_str_equal(conditions->items[i].message, sync->gated));
    }
    if (!is_told) {
        td_hpa_event_add(&pass->events, true, TD_STR(TD_GATE_OFF), sync->gated);
    }
    td_hpa_condition_set(conditions, pass->now, TD_STR(TD_GATE_OFF), true, TD_STR("FieldIgnored"),
                         sync->gated);
}

static void sync_judge(struct horizontal_sync *sync, const struct td_hpa_scale *scale)
{
    struct td_hpa_pass *pass = &sync->pass;
    struct td_horizontal_loop *loop = sync->loop;
    td_hpa_begin(pass, &sync->arena, &sync->hpa,
                 sync->config ? sync->config : &loop->options.config, sync->state, scale,
                 horizontal_now(loop));
    sync_report_gates(sync);
    sync->selection.choice = td_hpa_strategy_choose(&sync->hpa, &loop->options.strategy);
    sync->selection.culprit = TD_STR_EMPTY;
    pass->strategy = sync->selection.choice.strategy;
    td_hpa_strategy_observe(&sync->state->strategy, &sync->selection.choice, &pass->events);
    if (pass->path == TD_HPA_PATH_METRICS) {
        sync_select(sync);
    } else {
        horizontal_write(sync);
    }
}

void horizontal_sync_filter(struct horizontal_sync *sync)
{
    struct td_owner_filter *filter = &sync->filter;
    struct td_horizontal_loop *loop = sync->loop;
    enum td_owner_step step = td_owner_filter_step(filter);
    if (step == TD_OWNER_FETCH) {
        horizontal_owners_fetch(sync);
        return;
    }
    sync->selection.is_filtered = true;
    sync->selection.is_failed = step == TD_OWNER_GIVEN_UP;
    if (sync->selection.is_failed) {
        sync->selection.culprit = filter->culprit;
        td_hpa_strategy_filter_failed(&sync->state->strategy, filter->cause, filter->culprit,
                                      horizontal_now(loop), &sync->pass.events);
        if (sync->item) {
            horizontal_tally_fallback(loop, filter->cause);
        }
    } else {
        sync->selection.owned_count = filter->owned_count;
    }
    if (filter->too_deep_count > 0) {
        td_log_line(loop->options.control.log, TD_LOG_WARN,
                    "owners of pods are followed no further, the pods do not count",
                    TD_LOG_S("namespace", sync->hpa.meta.namespace),
                    TD_LOG_S("hpa", sync->hpa.meta.name),
                    TD_LOG_I("pods", (int64_t)filter->too_deep_count));
    }
    horizontal_measures_ask(sync);
}

/* Without a behavior an earlier proposal, cut by the limit on growth at its time, goes on acting
 * for the whole window. Upstream then grows the target with no reason at all, or with that for
 * shrinking. */
static void sync_name_reason(struct horizontal_sync *sync)
{
    struct td_hpa_pass *pass = &sync->pass;
    int32_t current = pass->scale.spec_replicas;
    if (pass->is_normalized && pass->desired > current && pass->proposed <= current &&
        pass->normalized.stabilized.replicas > current) {
        pass->rescale_reason = td_arena_format(
            &sync->arena, "%d replicas were proposed within the stabilization window",
            pass->normalized.stabilized.replicas);
    }
}

void horizontal_sync_decide(struct horizontal_sync *sync)
{
    struct td_hpa_answer *answers =
        td_arena_array(&sync->arena, struct td_hpa_answer, sync->question_count + 1);
    for (size_t i = 0; i < sync->question_count; i++) {
        answers[i] = horizontal_pods_answer(sync, &sync->questions[i]);
    }
    td_hpa_decide(&sync->pass, answers, horizontal_now(sync->loop));
    sync_name_reason(sync);
    if (sync->item) {
        horizontal_tally_metrics(sync);
    }
    horizontal_write(sync);
}

/* ---- The object ---- */

static int sync_read_object(struct horizontal_sync *sync, const struct td_sight_object *object,
                            struct td_error *err)
{
    struct td_arena *arena = &sync->arena;
    int code = td_sight_tree(arena, object, &sync->tree, err);
    if (code != TD_OK) {
        return code;
    }
    td_json_set_str(arena, sync->tree, TD_STR("apiVersion"), horizontal_api_version(sync->group));
    td_json_set_str(arena, sync->tree, TD_STR("kind"), TD_STR("HorizontalPodAutoscaler"));
    if (sync->group == HORIZONTAL_OWN) { /* the API server has defaulted those of its own kind */
        code = td_hpa_default(arena, sync->tree, err);
    }
    code = code == TD_OK ? td_hpa_decode(arena, sync->tree, &sync->hpa, err) : code;
    if (code == TD_OK) {
        const struct td_horizontal_options *options = &sync->loop->options;
        const struct td_hpa_gates gates = td_hpa_gates_of(&options->config, &options->strategy);
        sync->gated = td_hpa_close_gates(arena, &gates, options->strategy.primary_key, &sync->hpa);
    }
    return code;
}

/* A pass that decides nothing and keeps the status but for conditions. */
static void sync_stand_still(struct horizontal_sync *sync, td_time now)
{
    sync->pass = (struct td_hpa_pass){
        .arena = &sync->arena,
        .hpa = &sync->hpa,
        .config = &sync->loop->options.config,
        .state = sync->state,
        .scale = {.fault = TD_HPA_SCALE_NOT_READ,
                  .error = TD_STR_EMPTY,
                  .selector = TD_STR_EMPTY,
                  .uid = TD_STR_EMPTY},
        .path = TD_HPA_PATH_FAILED,
        .now = now,
        .events = {.arena = &sync->arena},
        .rescale_reason = TD_STR_EMPTY,
        .is_failed = true,
        .error = TD_STR_EMPTY,
        .late_event = TD_STR_EMPTY,
    };
    td_hpa_status_read(&sync->arena, sync->hpa.status, &sync->pass.status);
}

/* Ours steps back before it reads anything. */
static bool sync_is_in_conflict(struct horizontal_sync *sync)
{
    td_str words = sync->group == HORIZONTAL_OWN
                       ? horizontal_guard_conflict(&sync->arena, sync->loop, &sync->hpa)
                       : TD_STR_EMPTY;
    if (words.len == 0) {
        return false;
    }
    struct td_hpa_pass *pass = &sync->pass;
    td_time now = horizontal_now(sync->loop);
    sync_stand_still(sync, now);
    pass->scale.error = words;
    pass->has_error = true;
    pass->is_spec_fault = true;
    pass->error = words;
    td_hpa_condition_set(&pass->status.conditions, now, TD_HPA_ABLE_TO_SCALE, false,
                         TD_STR("TargetConflict"), words);
    td_hpa_event_add(&pass->events, true, TD_STR("TargetConflict"), words);
    return true;
}

static void sync_begin(struct horizontal_sync *sync)
{
    if (sync_is_in_conflict(sync)) {
        horizontal_write(sync);
    } else {
        sync_ask_scale(sync);
    }
}

static void sync_tell_rival(struct horizontal_sync *sync, td_str manager)
{
    struct horizontal_item *item = sync->item;
    struct td_events *events = sync->loop->options.control.events;
    td_time now = horizontal_now(sync->loop);
    bool is_told = item->rival_told != TD_TIME_NONE && now - item->rival_told < SYNC_RIVAL_PAUSE;
    if (is_told || !events) {
        return;
    }
    item->rival_told = now;
    td_events_record(events, &(struct td_event){
                                 .api_version = horizontal_api_version(sync->group),
                                 .kind = TD_STR("HorizontalPodAutoscaler"),
                                 .namespace = item->namespace,
                                 .name = item->name,
                                 .uid = sync->hpa.meta.uid,
                                 .is_warning = true,
                                 .reason = TD_STR("AnotherControllerActive"),
                                 .message = horizontal_guard_words(&sync->arena, manager),
                             });
}

/* A word in the status that a controller at work would not leave there. */
static void sync_claim(struct horizontal_sync *sync)
{
    struct td_hpa_pass *pass = &sync->pass;
    td_time now = horizontal_now(sync->loop);
    sync_stand_still(sync, now);
    bool is_able = pass->status.conditions.count == 0 ||
                   td_hpa_condition_is_true(&pass->status.conditions, TD_HPA_ABLE_TO_SCALE);
    td_hpa_condition_set(&pass->status.conditions, now, TD_HPA_ABLE_TO_SCALE, is_able,
                         TD_STR("TakingOver"),
                         TD_STR("tandem takes this HPA over, unless another controller writes this "
                                "status first"));
    sync->item->claimed = now;
    sync->item->needs_claim = false;
    horizontal_write(sync);
}

void horizontal_sync_start(struct horizontal_item *item, const struct td_sight_object *object)
{
    struct td_horizontal_loop *loop = item->loop;
    struct horizontal_sync *sync = sync_new(loop, item->group, item);
    struct td_error err = TD_ERROR_INIT;
    td_str manager;
    td_duration wait = 0;
    if (sync_read_object(sync, object, &err) != TD_OK) {
        td_log_line(loop->options.control.log, TD_LOG_WARN, "an HPA cannot be read",
                    TD_LOG_S("namespace", item->namespace), TD_LOG_S("hpa", item->name),
                    TD_LOG_C("error", err.message));
        horizontal_sync_free(sync);
        horizontal_item_done(item);
        return;
    }
    switch (horizontal_guard_judge(&sync->arena, item, object, &manager, &wait)) {
    case HORIZONTAL_GO:
        sync_begin(sync);
        return;
    case HORIZONTAL_CLAIM:
        sync_claim(sync);
        return;
    case HORIZONTAL_WAIT:
        horizontal_sync_free(sync);
        horizontal_item_put_off(item, wait);
        return;
    case HORIZONTAL_RIVAL:
        break;
    }
    sync_tell_rival(sync, manager);
    horizontal_sync_free(sync);
    horizontal_item_done(item);
}

void horizontal_sync_start_dry(struct td_horizontal_loop *loop, enum horizontal_group group,
                               const struct td_sight_object *object,
                               const struct horizontal_sync *how)
{
    struct horizontal_sync *sync = sync_new(loop, group, NULL);
    sync->explain = how->explain;
    sync->explain_context = how->explain_context;
    sync->is_last = how->is_last;
    sync->namespace = td_arena_copy_str(&sync->arena, object->head.namespace);
    sync->name = td_arena_copy_str(&sync->arena, object->head.name);
    struct td_error err = TD_ERROR_INIT;
    td_str manager;
    if (sync_read_object(sync, object, &err) != TD_OK) {
        horizontal_explain_tell(sync, TD_INVALID, td_str_from(err.message));
        return;
    }
    if (group == HORIZONTAL_BUILTIN &&
        horizontal_guard_rival(&sync->arena, loop, object, &manager)) {
        sync->warning = horizontal_guard_words(&sync->arena, manager);
    }
    horizontal_explain_state(sync);
    sync_begin(sync);
}

struct horizontal_sync *horizontal_sync_start_verdict(struct td_horizontal_loop *loop,
                                                      const struct td_horizontal_question *how,
                                                      td_horizontal_verdict_fn fn, void *context)
{
    struct horizontal_sync *sync = sync_new(loop, HORIZONTAL_OWN, NULL);
    sync->verdict = fn;
    sync->verdict_context = context;
    sync->config = how->config;
    sync->hpa = *how->hpa;
    sync->state = how->state;
    horizontal_sync_resume(sync, sync_ask_scale);
    return sync;
}
