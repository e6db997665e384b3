/*
 * What the recommender learns from pods: who they are, what they use, and that they ran out of
 * memory. An OOM is any termination with reason OOMKilled that the object before did not know of,
 * in the container's state or in its last state, so that it is noticed however many updates were
 * joined into one; and, of pods that are seen for the first time, each that is younger than what
 * the checkpoints remember, so that a restart forgets none. The same goes for the kubelet's
 * evictions for want of memory, which are events.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/os/log.h"
#include "base/os/loop.h"
#include "base/text.h"
#include "control/recommender/recommend_metrics.h"
#include "control/recommender/recommend_private.h"
#include "control/rights.h"
#include "decide/vertical/estimator/adaptive_pod.h"
#include "decide/vertical/pod.h"
#include "kube/cache/cache.h"

static td_str pods_key(const struct td_cache_head *head, char buffer[TD_OBJECT_KEY_BYTES_MAX])
{
    return td_object_key_write(TD_OBJECT_KEY(head->namespace, head->name), buffer);
}

static void pods_put(struct td_string_set *set, const struct td_cache_head *head)
{
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    (void)td_string_set_add(set, pods_key(head, buffer)); /* has room for all pods of the cache */
}

/* ---- Moves ----
 *
 * What is read in a pass was measured before it, up to a minute or more. A measurement of a pod
 * that has since come to another VPA is no knowledge of that one: a leader's memory would be the
 * followers' peak for days.
 */

#define MOVES_MEMORY (10 * TD_MINUTE) /* nothing older is told as new */

static void moves_free(struct recommend_move *move)
{
    td_text_free(move->pod);
    td_free(move);
}

static void moves_put(struct td_recommend_loop *loop, const struct td_cache_head *head, td_time at)
{
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    td_str key = pods_key(head, buffer);
    struct recommend_move *move = td_map_get(&loop->pods.moves, key);
    if (!move) {
        move = td_alloc_zero(1, sizeof(*move));
        move->pod = td_text_copy(key);
        if (td_map_put(&loop->pods.moves, move->pod, move) != TD_OK) {
            moves_free(move); /* its next measurement counts for whom it does not belong to */
            return;
        }
    }
    move->at = at;
}

/* Those of before `since`. */
static void moves_drop(struct td_recommend_loop *loop, td_time since)
{
    for (struct td_map_walk at = {.map = &loop->pods.moves}; td_map_step(&at);) {
        struct recommend_move *move = at.value;
        if (move->at < since) {
            (void)td_map_remove(&loop->pods.moves, move->pod);
            moves_free(move);
        }
    }
}

bool recommend_is_of_another(const struct td_recommend_loop *loop, td_str ns, td_str pod,
                             td_time measured)
{
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    const struct recommend_move *move =
        td_map_get(&loop->pods.moves, td_object_key_write(TD_OBJECT_KEY(ns, pod), buffer));
    return move && measured <= move->at;
}

/* ---- Out of memory ---- */

static void ooms_add(struct td_recommend_loop *loop, const struct recommend_oom *oom)
{
    struct recommend_oom *place = td_vec_push(&loop->pods.ooms);
    if (!place) {
        td_log_line(loop->options.control.log, TD_LOG_WARN, "OOM queue full, OOM dropped",
                    TD_LOG_S("pod", oom->pod));
        return;
    }
    *place = *oom;
    place->ns = td_text_copy(oom->ns);
    place->pod = td_text_copy(oom->pod);
    place->container = td_text_copy(oom->container);
    if (!td_timer_is_set(loop->urgent)) {
        td_timer_set(loop->urgent, TD_RECOMMEND_URGENT_MS * TD_MILLISECOND);
    }
}

static const struct td_json *ooms_find(const struct td_json *list, td_str name)
{
    const struct td_json *item = td_json_first_item(list);
    while (item && !td_str_equal(td_json_text(item, "name"), name)) {
        item = item->next;
    }
    return item;
}

/* The end of a termination by OOM in that state; empty: it is none. */
static td_str ooms_finished(const struct td_json *status, const char *state)
{
    const struct td_json *terminated =
        td_json_get(td_json_get(status, td_str_from(state)), TD_STR("terminated"));
    bool is_oom = td_str_equal(td_json_text(terminated, "reason"), TD_STR("OOMKilled"));
    return is_oom ? td_json_text(terminated, "finishedAt") : TD_STR_EMPTY;
}

static int64_t pods_memory(const struct td_resource_list *list)
{
    const struct td_quantity *memory = td_resource_list_get(list, TD_STR("memory"));
    return memory ? td_quantity_value(memory) : 0;
}

/* Memory that the container asks for and may have, as the kubelet has it, else as the spec. */
static struct td_oom_kill ooms_kill(struct td_arena *arena, const struct td_json *pod, td_str name)
{
    struct td_pod decoded;
    if (td_pod_decode(arena, pod, &decoded, NULL) != TD_OK) {
        return (struct td_oom_kill){.request_bytes = 0};
    }
    for (size_t i = 0; i < decoded.container_count; i++) {
        const struct td_pod_container *container = &decoded.containers[i];
        if (td_str_equal(container->name, name)) {
            return (struct td_oom_kill){
                .request_bytes = pods_memory(td_vertical_requests(container)),
                .limit_bytes = pods_memory(td_vertical_limits(container)),
            };
        }
    }
    return (struct td_oom_kill){.request_bytes = 0};
}

/* Does it wait already, because the pod's change told of it before the pod was known? */
static bool ooms_waits(const struct td_recommend_loop *loop, td_str ns, td_str pod,
                       td_str container, td_time at)
{
    for (size_t i = 0; i < loop->pods.ooms.count; i++) {
        const struct recommend_oom *oom = &loop->pods.ooms.items[i];
        if (oom->at == at && td_str_equal(oom->pod, pod) && td_str_equal(oom->ns, ns) &&
            td_str_equal(oom->container, container)) {
            return true;
        }
    }
    return false;
}

/* The webhook and resizes leave their annotations on a pod. */
static enum recommend_sizer ooms_sizer(const struct td_json *metadata)
{
    const struct td_json *annotations = td_json_member(metadata, "annotations");
    if (td_json_member(annotations, "vpaInPlaceUpdated")) {
        return RECOMMEND_SIZED_BY_RESIZE;
    }
    return td_json_member(annotations, "vpaUpdates") ? RECOMMEND_SIZED_BY_ADMISSION
                                                     : RECOMMEND_SIZED_BY_OWNER;
}

/* Compares two states of a pod; without one before, what is younger than `since` counts. */
static void ooms_compare(struct td_recommend_loop *loop, struct td_arena *arena,
                         const struct td_json *before, const struct td_json *after, td_time since)
{
    static const char *const states[] = {"state", "lastState"};
    const struct td_json *metadata = td_json_get(after, TD_STR("metadata"));
    td_str ns = td_json_text(metadata, "namespace");
    td_str pod = td_json_text(metadata, "name");
    const struct td_json *list = td_json_get_path(after, "status.containerStatuses");
    const struct td_json *old_list = td_json_get_path(before, "status.containerStatuses");
    for (const struct td_json *s = td_json_first_item(list); s; s = s->next) {
        td_str name = td_json_text(s, "name");
        const struct td_json *old = ooms_find(old_list, name);
        for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
            td_str finished = ooms_finished(s, states[i]);
            struct td_instant at;
            bool is_known =
                finished.len == 0 || td_time_parse(finished, &at, NULL) != TD_OK ||
                td_str_equal(finished, ooms_finished(old, "state")) ||
                td_str_equal(finished, ooms_finished(old, "lastState")) ||
                (!before && (td_time_from_instant(at) <= since ||
                             ooms_waits(loop, ns, pod, name, td_time_from_instant(at))));
            if (!is_known) {
                recommend_metrics_kill(loop, ooms_sizer(metadata));
                ooms_add(loop,
                         &(struct recommend_oom){
                             .ns = ns,
                             .pod = pod,
                             .container = name,
                             .at = td_time_from_instant(at),
                             .kill = ooms_kill(arena, i == 1 && before ? before : after, name),
                         });
            }
        }
    }
}

/* Quick: most changes of pods tell of no OOM. */
static bool ooms_may_be(const struct td_informer_pod *pod)
{
    return td_informers_mentions(&pod->object, TD_STR("OOMKilled"));
}

/* ---- What the informers tell ---- */

static const struct td_cache *pods_cache(const struct td_recommend_loop *loop)
{
    return td_informers_cache(loop->options.control.informers, TD_INFORMER_PODS);
}

/* Those of the first list are put at its end, all at once: their names, which are soon gone again,
 * would leave a hole behind each pod's memory. */
static void pods_added(void *context, const void *object)
{
    struct td_recommend_loop *loop = context;
    if (td_cache_is_synced(pods_cache(loop))) {
        pods_put(&loop->pods.dirty, object);
    }
}

static void pods_synced(void *context)
{
    struct td_recommend_loop *loop = context;
    size_t position = 0;
    const void *pod;
    while (!loop->pods.is_listed && (pod = td_cache_next(pods_cache(loop), &position))) {
        pods_put(&loop->pods.dirty, pod);
    }
    loop->pods.is_listed = true;
}

static void pods_changed(void *context, const void *before, const void *after)
{
    struct td_recommend_loop *loop = context;
    const struct td_informer_pod *old = before;
    const struct td_informer_pod *new = after;
    pods_put(&loop->pods.dirty, after);
    if (!ooms_may_be(new)) {
        return;
    }
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_json *tree;
    struct td_json *old_tree;
    if (td_informers_tree(&arena, &old->object, &old_tree, NULL) == TD_OK &&
        td_informers_tree(&arena, &new->object, &tree, NULL) == TD_OK) {
        ooms_compare(loop, &arena, old_tree, tree, 0);
    }
}

static void pods_deleted(void *context, const void *object)
{
    struct td_recommend_loop *loop = context;
    pods_put(&loop->pods.gone, object);
}

void recommend_look_at(struct td_recommend_loop *loop, const struct td_informer_pod *pod)
{
    pods_put(&loop->pods.dirty, &pod->object.head);
}

/* A workload that is adopted, or left alone, says nothing of its pods. */
static void owners_changed(void *context, const void *before, const void *after)
{
    struct td_recommend_loop *loop = context;
    const struct td_informers *informers = loop->options.control.informers;
    const struct td_cache_head *head = after;
    const struct td_informer_pod *pod = NULL;
    if (td_informers_has_same_owners(before, after)) {
        return;
    }
    while ((pod = td_informers_next_pod(informers, head->namespace, pod))) {
        pods_put(&loop->pods.dirty, &pod->object.head);
    }
}

/* ---- Evictions by the kubelet for want of memory ---- */

struct recommend_eviction {
    struct td_cache_head head;
    td_str kind;
    td_str ns;
    td_str pod;
    td_str annotations; /* JSON */
    td_time created;
};

static void evictions_added(void *context, const void *object)
{
    struct td_recommend_loop *loop = context;
    const struct recommend_eviction *eviction = object;
    if (!td_str_equal(eviction->kind, TD_STR("Pod"))) {
        return;
    }
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_json *annotations;
    if (td_json_parse(&arena, eviction->annotations, NULL, &annotations, NULL) != TD_OK) {
        return;
    }
    bool is_recalled = !td_cache_is_synced(loop->pods.evictions);
    td_str names = td_json_text(annotations, "offending_containers");
    td_str uses = td_json_text(annotations, "offending_containers_usage");
    td_str starved = td_json_text(annotations, "starved_resource");
    while (names.len > 0) {
        td_str name = td_rights_word(&names);
        td_str use = td_rights_word(&uses);
        td_str resource = td_rights_word(&starved);
        struct td_quantity amount;
        if (td_str_equal(resource, TD_STR("memory")) &&
            td_quantity_parse(&arena, use, &amount, NULL) == TD_OK) {
            ooms_add(loop,
                     &(struct recommend_oom){.ns = eviction->ns,
                                             .pod = eviction->pod,
                                             .container = name,
                                             .at = eviction->created,
                                             .kill = {.request_bytes = td_quantity_value(&amount)},
                                             .is_recalled = is_recalled});
        }
    }
}

static int evictions_init(struct td_recommend_loop *loop, struct td_error *err)
{
    static const struct td_cache_field fields[] = {
        {"involvedObject.kind", TD_CACHE_TEXT, offsetof(struct recommend_eviction, kind)},
        {"involvedObject.namespace", TD_CACHE_TEXT, offsetof(struct recommend_eviction, ns)},
        {"involvedObject.name", TD_CACHE_TEXT, offsetof(struct recommend_eviction, pod)},
        {"metadata.annotations", TD_CACHE_RAW, offsetof(struct recommend_eviction, annotations)},
        {"metadata.creationTimestamp", TD_CACHE_TIME, offsetof(struct recommend_eviction, created)},
    };
    static const struct td_cache_handler handler = {.added = evictions_added};
    const struct td_control *control = &loop->options.control;
    const struct td_cache_options options = {
        .loop = control->loop,
        .client = control->client,
        .flow = control->flow,
        .version = TD_STR("v1"),
        .plural = TD_STR("events"),
        .field_selector = TD_STR("reason=Evicted"),
        .fields = fields,
        .field_count = sizeof(fields) / sizeof(fields[0]),
        .struct_bytes = sizeof(struct recommend_eviction),
        .seed = control->seed,
    };
    int code = td_cache_new(&options, &loop->pods.evictions, err);
    if (code == TD_OK) {
        td_cache_subscribe(loop->pods.evictions, &handler, loop);
    }
    return code;
}

int recommend_pods_init(struct td_recommend_loop *loop, struct td_error *err)
{
    static const struct td_cache_handler handler = {
        .added = pods_added,
        .changed = pods_changed,
        .deleted = pods_deleted,
        .synced = pods_synced,
    };
    td_string_set_init(&loop->pods.dirty, TD_CACHE_OBJECTS_MAX);
    td_string_set_init(&loop->pods.feeding, TD_CACHE_OBJECTS_MAX);
    td_string_set_init(&loop->pods.lost, TD_CACHE_OBJECTS_MAX);
    td_string_set_init(&loop->pods.gone, TD_CACHE_OBJECTS_MAX);
    td_string_set_init(&loop->pods.stanzas, TD_CACHE_OBJECTS_MAX);
    td_map_init(&loop->pods.moves, TD_CACHE_OBJECTS_MAX);
    loop->pods.ooms.count_max = TD_RECOMMEND_OOMS_MAX;
    static const struct td_cache_handler owners = {.changed = owners_changed};
    td_informers_subscribe(loop->options.control.informers, TD_INFORMER_PODS, &handler, loop);
    td_informers_subscribe(loop->options.control.informers, TD_INFORMER_REPLICA_SETS, &owners,
                           loop);
    td_informers_subscribe(loop->options.control.informers, TD_INFORMER_JOBS, &owners, loop);
    return evictions_init(loop, err);
}

static void ooms_forget(struct td_recommend_loop *loop)
{
    for (size_t i = 0; i < loop->pods.ooms.count; i++) {
        td_text_free(loop->pods.ooms.items[i].ns);
        td_text_free(loop->pods.ooms.items[i].pod);
        td_text_free(loop->pods.ooms.items[i].container);
    }
    td_vec_reset(&loop->pods.ooms);
}

void recommend_pods_done(struct td_recommend_loop *loop)
{
    td_cache_free(loop->pods.evictions);
    ooms_forget(loop);
    td_vec_done(&loop->pods.ooms);
    moves_drop(loop, INT64_MAX);
    td_string_set_done(&loop->pods.dirty);
    td_string_set_done(&loop->pods.feeding);
    td_string_set_done(&loop->pods.lost);
    td_string_set_done(&loop->pods.gone);
    td_string_set_done(&loop->pods.stanzas);
    td_map_done(&loop->pods.moves);
}

/* ---- Feeding the model ---- */

struct pods_feed {
    struct td_recommend_loop *loop;
    struct td_arena *arena; /* of one pod */
    struct td_top_memo memo;
    td_time now;
};

/* TD_BUSY: who owns it is being asked for. TD_NOT_FOUND: an owner of it is not seen, or cannot be
 * read. Nothing orders what comes from different watches, and one that was broken may be half a
 * minute behind. */
static int pods_target(struct pods_feed *feed, const struct td_meta *meta, td_str *ret)
{
    const struct td_controller *top;
    td_str why;
    const struct td_workload_source *source =
        td_informers_source(feed->loop->options.control.informers);
    int code = td_top_memo_get(&feed->memo, source, meta, &top, &why, NULL);
    if (code != TD_OK || why.len > 0) {
        return code != TD_OK ? code : TD_NOT_FOUND;
    }
    if (!top) {
        *ret = TD_STR("-"); /* no controller: no VPA has such a target */
        return TD_OK;
    }
    struct td_group_version version = td_group_version_parse(top->api_version);
    *ret = td_target_key(feed->arena, version.group, top->kind, top->name);
    return TD_OK;
}

/* A container that runs and of which no resources are reported is on a node that cannot resize it,
 * or the API server does not keep what the kubelet reports. */
static enum td_resize_lack pods_lack(const struct td_pod_container *container)
{
    if (container->is_running && !container->has_status_resources) {
        return TD_RESIZE_LACKS_NODE;
    }
    return container->restarts_on_cpu ? TD_RESIZE_RESTARTS : TD_RESIZE_POSSIBLE;
}

/* What the estimator asks for beside samples. */
static void pods_terms(struct pods_feed *feed, const struct td_json *tree,
                       struct td_tracked_pod *tracked)
{
    struct td_recommend_loop *loop = feed->loop;
    struct td_pod pod;
    if (!td_recommender_wants_terms(tracked) ||
        td_pod_decode(feed->arena, tree, &pod, NULL) != TD_OK) {
        return;
    }
    const struct td_pod_template *template =
        td_template_of_pod(td_informers_source(loop->options.control.informers), &pod.meta);
    for (size_t i = 0; i < pod.container_count; i++) {
        const struct td_pod_container *container = &pod.containers[i];
        const struct td_quantity *cpu =
            td_resource_list_get(td_vertical_requests(container), TD_STR("cpu"));
        struct td_track_template memory = td_track_template_of(template, container);
        const struct td_container_terms terms = {
            .cpu_request_milli = cpu ? td_quantity_milli(cpu) : 0,
            .memory_request_bytes = memory.request_bytes,
            .memory_limit_bytes = memory.limit_bytes,
            .lack = pods_lack(container),
        };
        td_recommender_set_terms(loop->model, tracked, container->name, &terms, feed->now);
    }
}

/* What happened until then is in the checkpoints, or of no concern. */
static td_time pods_since(const struct recommend_vpa *vpa)
{
    return vpa->remembered > vpa->created ? vpa->remembered : vpa->created;
}

/* OOMs of a pod that was not seen before. */
static void pods_recall(struct pods_feed *feed, const struct td_informer_pod *pod,
                        const struct td_tracked_pod *tracked, const struct td_json *tree)
{
    struct td_recommend_loop *loop = feed->loop;
    td_str owner = td_recommender_vpa_of(loop->model, feed->arena, tracked);
    const struct recommend_vpa *vpa = td_map_get(&loop->vpas, owner);
    if (vpa && ooms_may_be(pod)) {
        ooms_compare(loop, feed->arena, NULL, tree, pods_since(vpa));
    }
}

static int pods_feed_one(struct pods_feed *feed, const struct td_informer_pod *pod)
{
    struct td_recommend_loop *loop = feed->loop;
    struct td_json *tree;
    struct td_pod decoded;
    td_arena_reset(feed->arena);
    if (td_str_equal(pod->phase, TD_STR("Pending")) || pod->phase.len == 0 ||
        td_informers_tree(feed->arena, &pod->object, &tree, NULL) != TD_OK ||
        td_pod_decode_brief(feed->arena, tree, &decoded, NULL) != TD_OK) {
        return TD_OK;
    }
    struct td_observed_pod observed = {
        .namespace = decoded.meta.namespace,
        .name = decoded.meta.name,
        .labels = decoded.meta.labels,
        .phase = decoded.phase,
        .started = decoded.start_time,
    };
    int code = pods_target(feed, &decoded.meta, &observed.target);
    if (code != TD_OK) {
        return code; /* what is known of it stays */
    }
    struct td_tracked_pod *tracked =
        td_recommender_find_pod(loop->model, decoded.meta.namespace, decoded.meta.name);
    bool is_new = !tracked;
    td_str before =
        tracked ? td_recommender_vpa_of(loop->model, feed->arena, tracked) : TD_STR_EMPTY;
    struct td_error err = TD_ERROR_INIT;
    code = td_recommender_set_pod(loop->model, &observed, feed->now, &tracked, &err);
    for (size_t i = 0; i < decoded.container_count && code == TD_OK; i++) {
        const struct td_pod_container *c = &decoded.containers[i];
        const struct td_quantity *limit = td_resource_list_get(&c->spec_limits, TD_STR("cpu"));
        code = td_recommender_set_container(loop->model, &tracked, c->name,
                                            limit ? td_quantity_milli(limit) : 0, feed->now, &err);
    }
    if (code != TD_OK) {
        td_log_line(loop->options.control.log, TD_LOG_WARN, "pod ignored by the recommender",
                    TD_LOG_S("pod", decoded.meta.name), TD_LOG_C("error", err.message));
        return TD_OK;
    }
    pods_terms(feed, tree, tracked);
    if (!is_new &&
        !td_str_equal(before, td_recommender_vpa_of(loop->model, feed->arena, tracked))) {
        moves_put(loop, &pod->object.head, feed->now);
    }
    if (is_new) {
        pods_recall(feed, pod, tracked, tree);
    }
    if (decoded.has_pod_level) {
        pods_put(&loop->pods.stanzas, &pod->object.head);
    }
    return TD_OK;
}

void recommend_take_pods(struct td_recommend_loop *loop)
{
    if (loop->pods.feeding.texts.count > 0) {
        return; /* of a pass that was broken off: the others come in the next */
    }
    struct td_string_set taken = loop->pods.dirty;
    loop->pods.dirty = loop->pods.feeding;
    loop->pods.feeding = taken;
    size_t position = 0;
    const td_str *key;
    while ((key = td_string_set_next(&loop->pods.lost, &position))) {
        (void)td_string_set_add(&loop->pods.feeding, *key); /* as above */
    }
    td_string_set_reset(&loop->pods.lost);
}

bool recommend_feed_pods(struct td_recommend_loop *loop)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    td_auto_arena memo_arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct pods_feed feed = {.loop = loop, .arena = &arena, .now = recommend_now(loop)};
    td_top_memo_init(&feed.memo, &memo_arena);
    const struct td_cache *cache =
        td_informers_cache(loop->options.control.informers, TD_INFORMER_PODS);
    size_t position = 0;
    const td_str *key = NULL;
    while (!td_loop_slice_is_over(loop->options.control.loop) &&
           (key = td_string_set_next(&loop->pods.feeding, &position))) {
        struct td_object_key of = td_object_key_read(*key);
        const struct td_informer_pod *pod = td_cache_get(cache, of.namespace, of.name);
        int code = pod ? pods_feed_one(&feed, pod) : TD_OK;
        if (code != TD_OK) { /* once more in the next pass; only answers are waited for */
            (void)td_string_set_add(code == TD_BUSY ? &loop->pods.dirty : &loop->pods.lost, *key);
        }
        td_string_set_remove(&loop->pods.feeding, *key);
    }
    td_top_memo_done(&feed.memo);
    return loop->pods.feeding.texts.count == 0;
}

static void ooms_feed(struct td_recommend_loop *loop, struct td_arena *arena,
                      const struct recommend_oom *oom)
{
    struct td_tracked_pod *pod = td_recommender_find_pod(loop->model, oom->ns, oom->pod);
    struct recommend_vpa *vpa =
        pod ? td_map_get(&loop->vpas, td_recommender_vpa_of(loop->model, arena, pod)) : NULL;
    if (oom->is_recalled && (!vpa || oom->at <= pods_since(vpa))) {
        return;
    }
    enum td_feed result = pod ? td_recommender_oom(loop->model, pod, oom->container, oom->at,
                                                   &oom->kill, recommend_now(loop))
                              : TD_FEED_UNMANAGED;
    if (vpa && (result == TD_FEED_TAKEN || result == TD_FEED_OOM_CAPPED)) {
        vpa->is_urgent = true;
    }
    td_log_line(loop->options.control.log, TD_LOG_INFO, "container OOM-killed",
                TD_LOG_S("namespace", oom->ns), TD_LOG_S("pod", oom->pod),
                TD_LOG_S("container", oom->container), TD_LOG_I("request", oom->kill.request_bytes),
                TD_LOG_B("learnt", vpa && vpa->is_urgent));
}

void recommend_feed_ooms(struct td_recommend_loop *loop)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    for (size_t i = 0; i < loop->pods.ooms.count; i++) {
        td_arena_reset(&arena);
        ooms_feed(loop, &arena, &loop->pods.ooms.items[i]);
    }
    ooms_forget(loop);
}

bool recommend_drop_pods(struct td_recommend_loop *loop)
{
    const struct td_cache *cache =
        td_informers_cache(loop->options.control.informers, TD_INFORMER_PODS);
    size_t position = 0;
    const td_str *key;
    while (!td_loop_slice_is_over(loop->options.control.loop) &&
           (key = td_string_set_next(&loop->pods.gone, &position))) {
        struct td_object_key of = td_object_key_read(*key);
        if (!td_cache_get(cache, of.namespace, of.name)) { /* else another one has its name */
            td_recommender_delete_pod(loop->model, of.namespace, of.name);
            td_string_set_remove(&loop->pods.stanzas, *key);
        }
        td_string_set_remove(&loop->pods.gone, *key);
    }
    moves_drop(loop, recommend_now(loop) - MOVES_MEMORY);
    return loop->pods.gone.texts.count == 0;
}

void recommend_begin_stanzas(struct td_recommend_loop *loop)
{
    for (struct td_map_walk at = {.map = &loop->vpas}; td_map_step(&at);) {
        struct recommend_vpa *vpa = at.value;
        vpa->use = (struct td_pod_level_use){.has_cpu = false};
    }
    loop->pods.stanza_at = 0;
}

static void stanzas_find(struct td_recommend_loop *loop, struct td_arena *arena, td_str key)
{
    struct td_object_key of = td_object_key_read(key);
    struct td_json *tree;
    struct td_pod pod;
    td_arena_reset(arena);
    const struct td_informer_pod *seen =
        td_cache_get(td_informers_cache(loop->options.control.informers, TD_INFORMER_PODS),
                     of.namespace, of.name);
    const struct td_tracked_pod *tracked =
        td_recommender_find_pod(loop->model, of.namespace, of.name);
    if (!seen || !tracked || !td_str_equal(seen->phase, TD_STR("Running")) ||
        td_informers_tree(arena, &seen->object, &tree, NULL) != TD_OK ||
        td_pod_decode(arena, tree, &pod, NULL) != TD_OK) {
        return;
    }
    struct recommend_vpa *vpa =
        td_map_get(&loop->vpas, td_recommender_vpa_of(loop->model, arena, tracked));
    if (vpa) {
        td_pod_level_use_add(&vpa->use, &pod);
    }
}

/* Stanzas are neither added nor removed in this phase, so the place among them stays good. */
bool recommend_find_stanzas(struct td_recommend_loop *loop)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    const td_str *key;
    while (loop->options.control.gates.pod_level_resources) {
        if (td_loop_slice_is_over(loop->options.control.loop)) {
            return false;
        }
        if (!(key = td_string_set_next(&loop->pods.stanzas, &loop->pods.stanza_at))) {
            return true;
        }
        stanzas_find(loop, &arena, *key);
    }
    return true;
}
