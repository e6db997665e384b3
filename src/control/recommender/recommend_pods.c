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
#include "control/measure_client.h"
#include "control/recommender/recommend_private.h"
#include "decide/vertical/pod.h"
#include "kube/cache/cache.h"

/* ---- Sets of pods: keys of their own, "namespace/name" ---- */

static td_str pods_key(const struct td_cache_head *head, struct td_buf *buf)
{
    td_buf_init(buf, TD_CACHE_KEY_BYTES_MAX);
    (void)td_buf_append_format(buf, "%.*s/%.*s", TD_STR_ARG(head->namespace),
                               TD_STR_ARG(head->name));
    return td_buf_str(buf);
}

static void pods_put_key(struct td_map *set, td_str key)
{
    if (td_map_has(set, key)) {
        return;
    }
    td_str owned = td_text_copy(key);
    if (td_map_put(set, owned, (void *)(uintptr_t)owned.ptr) != TD_OK) {
        td_text_free(owned); /* as many pods as can be are known already */
    }
}

static void pods_put(struct td_map *set, const struct td_cache_head *head)
{
    td_auto_buf buf;
    pods_put_key(set, pods_key(head, &buf));
}

static void pods_take(struct td_map *set, td_str key)
{
    td_str owned = {.ptr = td_map_remove(set, key), .len = key.len};
    if (owned.ptr) {
        td_text_free(owned);
    }
}

static void pods_clear(struct td_map *set)
{
    size_t position = 0;
    const struct td_map_entry *entry;
    while ((entry = td_map_next(set, &position))) {
        td_text_free(entry->key);
    }
    td_map_reset(set);
}

static void pods_split(td_str key, td_str *ret_ns, td_str *ret_name)
{
    size_t slash = td_str_find(key, '/', 0);
    *ret_ns = td_str_slice(key, 0, slash);
    *ret_name = td_str_slice(key, slash + 1, key.len);
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
    td_auto_buf buf;
    td_str key = pods_key(head, &buf);
    struct recommend_move *move = td_map_get(&loop->moves, key);
    if (!move) {
        move = td_alloc_zero(1, sizeof(*move));
        move->pod = td_text_copy(key);
        if (td_map_put(&loop->moves, move->pod, move) != TD_OK) {
            moves_free(move); /* its next measurement counts for whom it does not belong to */
            return;
        }
    }
    move->at = at;
}

/* Those of before `since`. */
static void moves_drop(struct td_recommend_loop *loop, td_time since)
{
    size_t position = 0;
    const struct td_map_entry *entry;
    while ((entry = td_map_next(&loop->moves, &position))) {
        struct recommend_move *move = entry->value;
        if (move->at < since) {
            (void)td_map_remove(&loop->moves, move->pod);
            moves_free(move);
        }
    }
}

bool recommend_is_of_another(const struct td_recommend_loop *loop, td_str ns, td_str pod,
                             td_time measured)
{
    td_auto_buf buf;
    const struct td_cache_head head = {.namespace = ns, .name = pod};
    const struct recommend_move *move = td_map_get(&loop->moves, pods_key(&head, &buf));
    return move && measured <= move->at;
}

/* ---- Out of memory ---- */

static void ooms_add(struct td_recommend_loop *loop, const struct recommend_oom *oom)
{
    struct recommend_oom *place = td_vec_push(&loop->ooms);
    if (!place) {
        td_log_line(loop->options.control.log, TD_LOG_WARN, "an OOM is dropped: too many wait",
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
    while (item && !td_str_equal(td_json_get_str(item, TD_STR("name"), TD_STR_EMPTY), name)) {
        item = item->next;
    }
    return item;
}

/* The end of a termination by OOM in that state; empty: it is none. */
static td_str ooms_finished(const struct td_json *status, const char *state)
{
    const struct td_json *terminated =
        td_json_get(td_json_get(status, td_str_from(state)), TD_STR("terminated"));
    bool is_oom = td_str_equal(td_json_get_str(terminated, TD_STR("reason"), TD_STR_EMPTY),
                               TD_STR("OOMKilled"));
    return is_oom ? td_json_get_str(terminated, TD_STR("finishedAt"), TD_STR_EMPTY) : TD_STR_EMPTY;
}

/* Memory that the container asks for, as the kubelet has it, else as the spec. */
static int64_t ooms_request(struct td_arena *arena, const struct td_json *pod, td_str name)
{
    struct td_vertical_pod decoded;
    if (td_vertical_pod_decode(arena, pod, &decoded, NULL) != TD_OK) {
        return 0;
    }
    for (size_t i = 0; i < decoded.container_count; i++) {
        if (td_str_equal(decoded.containers[i].name, name)) {
            const struct td_quantity *memory = td_resource_list_get(
                td_vertical_requests(&decoded.containers[i]), TD_STR("memory"));
            return memory ? td_quantity_value(memory) : 0;
        }
    }
    return 0;
}

/* Does it wait already, because the pod's change told of it before the pod was known? */
static bool ooms_waits(const struct td_recommend_loop *loop, td_str ns, td_str pod,
                       td_str container, td_time at)
{
    for (size_t i = 0; i < loop->ooms.count; i++) {
        const struct recommend_oom *oom = &loop->ooms.items[i];
        if (oom->at == at && td_str_equal(oom->pod, pod) && td_str_equal(oom->ns, ns) &&
            td_str_equal(oom->container, container)) {
            return true;
        }
    }
    return false;
}

/* Compares two states of a pod; without one before, what is younger than `since` counts. */
static void ooms_compare(struct td_recommend_loop *loop, struct td_arena *arena,
                         const struct td_json *before, const struct td_json *after, td_time since)
{
    static const char *const states[] = {"state", "lastState"};
    const struct td_json *metadata = td_json_get(after, TD_STR("metadata"));
    td_str ns = td_json_get_str(metadata, TD_STR("namespace"), TD_STR_EMPTY);
    td_str pod = td_json_get_str(metadata, TD_STR("name"), TD_STR_EMPTY);
    const struct td_json *list = td_json_get_path(after, "status.containerStatuses");
    const struct td_json *old_list = td_json_get_path(before, "status.containerStatuses");
    const struct td_json *s = td_json_first_item(list);
    for (; s; s = s->next) {
        td_str name = td_json_get_str(s, TD_STR("name"), TD_STR_EMPTY);
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
                ooms_add(loop, &(struct recommend_oom){
                                   .ns = ns,
                                   .pod = pod,
                                   .container = name,
                                   .at = td_time_from_instant(at),
                                   .requested_bytes =
                                       ooms_request(arena, i == 1 && before ? before : after, name),
                               });
            }
        }
    }
}

/* Quick: most changes are of nobody's memory. */
static bool ooms_may_be(const struct td_sight_pod *pod)
{
    return memmem(pod->object.text.ptr, pod->object.text.len, "OOMKilled", strlen("OOMKilled"));
}

/* ---- What the sight tells ---- */

static void pods_added(void *context, const void *object)
{
    struct td_recommend_loop *loop = context;
    pods_put(&loop->dirty, object);
}

static void pods_changed(void *context, const void *before, const void *after)
{
    struct td_recommend_loop *loop = context;
    const struct td_sight_pod *old = before;
    const struct td_sight_pod *new = after;
    pods_put(&loop->dirty, after);
    if (!ooms_may_be(new)) {
        return;
    }
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    struct td_json *tree;
    struct td_json *old_tree;
    if (td_sight_tree(&arena, &old->object, &old_tree, NULL) == TD_OK &&
        td_sight_tree(&arena, &new->object, &tree, NULL) == TD_OK) {
        ooms_compare(loop, &arena, old_tree, tree, 0);
    }
}

static void pods_deleted(void *context, const void *object)
{
    struct td_recommend_loop *loop = context;
    pods_put(&loop->gone, object);
}

/* A workload that is adopted, or left alone, says nothing of its pods. */
static void owners_changed(void *context, const void *before, const void *after)
{
    struct td_recommend_loop *loop = context;
    const struct td_sight *sight = loop->options.control.sight;
    const struct td_cache_head *head = after;
    const struct td_sight_pod *pod = NULL;
    if (td_sight_has_same_owners(before, after)) {
        return;
    }
    while ((pod = td_sight_next_pod(sight, head->namespace, pod))) {
        pods_put(&loop->dirty, &pod->object.head);
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

/* The next of a list by commas. */
static td_str evictions_next(td_str *rest)
{
    size_t comma = td_str_find(*rest, ',', 0);
    td_str item = td_str_slice(*rest, 0, comma);
    *rest = td_str_slice(*rest, comma < rest->len ? comma + 1 : comma, rest->len);
    return item;
}

static void evictions_added(void *context, const void *object)
{
    struct td_recommend_loop *loop = context;
    const struct recommend_eviction *eviction = object;
    if (!td_str_equal(eviction->kind, TD_STR("Pod"))) {
        return;
    }
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    struct td_json *annotations;
    if (td_json_parse(&arena, eviction->annotations, NULL, &annotations, NULL) != TD_OK) {
        return;
    }
    bool is_recalled = !td_cache_is_synced(loop->evictions);
    td_str names = td_json_get_str(annotations, TD_STR("offending_containers"), TD_STR_EMPTY);
    td_str uses = td_json_get_str(annotations, TD_STR("offending_containers_usage"), TD_STR_EMPTY);
    td_str starved = td_json_get_str(annotations, TD_STR("starved_resource"), TD_STR_EMPTY);
    while (names.len > 0) {
        td_str name = evictions_next(&names);
        td_str use = evictions_next(&uses);
        td_str resource = evictions_next(&starved);
        struct td_quantity amount;
        if (td_str_equal(resource, TD_STR("memory")) &&
            td_quantity_parse(&arena, use, &amount, NULL) == TD_OK) {
            ooms_add(loop, &(struct recommend_oom){.ns = eviction->ns,
                                                   .pod = eviction->pod,
                                                   .container = name,
                                                   .at = eviction->created,
                                                   .requested_bytes = td_quantity_value(&amount),
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
    int code = td_cache_new(&options, &loop->evictions, err);
    if (code == TD_OK) {
        td_cache_subscribe(loop->evictions, &handler, loop);
    }
    return code;
}

int recommend_pods_init(struct td_recommend_loop *loop, struct td_error *err)
{
    static const struct td_cache_handler handler = {
        .added = pods_added, .changed = pods_changed, .deleted = pods_deleted};
    td_map_init(&loop->dirty, TD_CACHE_OBJECTS_MAX);
    td_map_init(&loop->feeding, TD_CACHE_OBJECTS_MAX);
    td_map_init(&loop->lost, TD_CACHE_OBJECTS_MAX);
    td_map_init(&loop->gone, TD_CACHE_OBJECTS_MAX);
    td_map_init(&loop->stanzas, TD_CACHE_OBJECTS_MAX);
    td_map_init(&loop->moves, TD_CACHE_OBJECTS_MAX);
    loop->ooms.count_max = TD_RECOMMEND_OOMS_MAX;
    static const struct td_cache_handler owners = {.changed = owners_changed};
    td_sight_subscribe(loop->options.control.sight, TD_SIGHT_PODS, &handler, loop);
    td_sight_subscribe(loop->options.control.sight, TD_SIGHT_REPLICA_SETS, &owners, loop);
    td_sight_subscribe(loop->options.control.sight, TD_SIGHT_JOBS, &owners, loop);
    return evictions_init(loop, err);
}

static void ooms_forget(struct td_recommend_loop *loop)
{
    for (size_t i = 0; i < loop->ooms.count; i++) {
        td_text_free(loop->ooms.items[i].ns);
        td_text_free(loop->ooms.items[i].pod);
        td_text_free(loop->ooms.items[i].container);
    }
    td_vec_reset(&loop->ooms);
}

void recommend_pods_done(struct td_recommend_loop *loop)
{
    td_cache_free(loop->evictions);
    ooms_forget(loop);
    td_vec_done(&loop->ooms);
    pods_clear(&loop->dirty);
    pods_clear(&loop->feeding);
    pods_clear(&loop->lost);
    pods_clear(&loop->gone);
    pods_clear(&loop->stanzas);
    moves_drop(loop, INT64_MAX);
    td_map_done(&loop->dirty);
    td_map_done(&loop->feeding);
    td_map_done(&loop->lost);
    td_map_done(&loop->gone);
    td_map_done(&loop->stanzas);
    td_map_done(&loop->moves);
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
    const struct td_workload_source *source = td_sight_source(feed->loop->options.control.sight);
    int code = td_top_memo_get(&feed->memo, source, meta, &top, &why, NULL);
    if (code != TD_OK || why.len > 0) {
        return code != TD_OK ? code : TD_NOT_FOUND;
    }
    if (!top) {
        *ret = TD_STR("-"); /* nobody's: no VPA has such a target */
        return TD_OK;
    }
    struct td_group_version version = td_group_version_parse(top->api_version);
    *ret = td_arena_format(feed->arena, "%.*s/%.*s/%.*s", TD_STR_ARG(version.group),
                           TD_STR_ARG(top->kind), TD_STR_ARG(top->name));
    return TD_OK;
}

/* What happened until then is in the checkpoints, or of no concern. */
static td_time pods_since(const struct recommend_vpa *vpa)
{
    return vpa->remembered > vpa->created ? vpa->remembered : vpa->created;
}

/* OOMs of a pod that was not seen before. */
static void pods_recall(struct pods_feed *feed, const struct td_sight_pod *pod,
                        const struct td_tracked_pod *tracked, const struct td_json *tree)
{
    struct td_recommend_loop *loop = feed->loop;
    td_str owner = td_recommender_vpa_of(loop->model, feed->arena, tracked);
    const struct recommend_vpa *vpa = td_map_get(&loop->vpas, owner);
    if (vpa && ooms_may_be(pod)) {
        ooms_compare(loop, feed->arena, NULL, tree, pods_since(vpa));
    }
}

static int pods_feed_one(struct pods_feed *feed, const struct td_sight_pod *pod)
{
    struct td_recommend_loop *loop = feed->loop;
    struct td_json *tree;
    struct td_pod decoded;
    struct td_meta meta;
    td_arena_reset(feed->arena);
    if (td_str_equal(pod->phase, TD_STR("Pending")) || pod->phase.len == 0 ||
        td_sight_tree(feed->arena, &pod->object, &tree, NULL) != TD_OK ||
        td_pod_decode(feed->arena, tree, &decoded, NULL) != TD_OK ||
        td_meta_decode(feed->arena, tree, &meta, NULL) != TD_OK) {
        return TD_OK;
    }
    struct td_pod_sight sight = {
        .namespace = decoded.namespace,
        .name = decoded.name,
        .labels = decoded.labels,
        .phase = decoded.phase,
        .started = decoded.start_time,
    };
    int code = pods_target(feed, &meta, &sight.target);
    if (code != TD_OK) {
        return code; /* what is known of it stays */
    }
    struct td_tracked_pod *tracked =
        td_recommender_find_pod(loop->model, decoded.namespace, decoded.name);
    bool is_new = !tracked;
    td_str before =
        tracked ? td_recommender_vpa_of(loop->model, feed->arena, tracked) : TD_STR_EMPTY;
    struct td_error err = TD_ERROR_INIT;
    code = td_recommender_set_pod(loop->model, &sight, feed->now, &tracked, &err);
    for (size_t i = 0; i < decoded.container_count && code == TD_OK; i++) {
        const struct td_pod_container *c = &decoded.containers[i];
        const int64_t *limit = td_amounts_get(&c->limits, TD_STR("cpu"));
        if (c->kind == TD_CONTAINER_REGULAR) {
            code = td_recommender_set_container(loop->model, &tracked, c->name, limit ? *limit : 0,
                                                feed->now, &err);
        }
    }
    if (code != TD_OK) {
        td_log_line(loop->options.control.log, TD_LOG_WARN, "a pod cannot be tracked",
                    TD_LOG_S("pod", decoded.name), TD_LOG_C("error", err.message));
        return TD_OK;
    }
    if (!is_new &&
        !td_str_equal(before, td_recommender_vpa_of(loop->model, feed->arena, tracked))) {
        moves_put(loop, &pod->object.head, feed->now);
    }
    if (is_new) {
        pods_recall(feed, pod, tracked, tree);
    }
    if (decoded.pod_requests.count > 0 || decoded.pod_limits.count > 0) {
        pods_put(&loop->stanzas, &pod->object.head);
    }
    return TD_OK;
}

void recommend_take_pods(struct td_recommend_loop *loop)
{
    if (loop->feeding.count > 0) {
        return; /* of a pass that was broken off: the others come in the next */
    }
    struct td_map taken = loop->dirty;
    loop->dirty = loop->feeding;
    loop->feeding = taken;
    size_t position = 0;
    const struct td_map_entry *entry;
    while ((entry = td_map_next(&loop->lost, &position))) {
        pods_put_key(&loop->feeding, entry->key);
    }
    pods_clear(&loop->lost);
}

bool recommend_feed_pods(struct td_recommend_loop *loop)
{
    td_auto_arena arena;
    td_auto_arena memo_arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    td_arena_init(&memo_arena, TD_TREE_ARENA_BYTES_MAX);
    struct pods_feed feed = {.loop = loop, .arena = &arena, .now = recommend_now(loop)};
    td_top_memo_init(&feed.memo, &memo_arena);
    const struct td_cache *cache = td_sight_cache(loop->options.control.sight, TD_SIGHT_PODS);
    size_t position = 0;
    const struct td_map_entry *entry = NULL;
    while (!td_loop_slice_is_over(loop->options.control.loop) &&
           (entry = td_map_next(&loop->feeding, &position))) {
        td_str ns;
        td_str name;
        pods_split(entry->key, &ns, &name);
        const struct td_sight_pod *pod = td_cache_get(cache, ns, name);
        int code = pod ? pods_feed_one(&feed, pod) : TD_OK;
        if (code != TD_OK) { /* once more in the next pass; only answers are waited for */
            pods_put_key(code == TD_BUSY ? &loop->dirty : &loop->lost, entry->key);
        }
        pods_take(&loop->feeding, entry->key);
    }
    td_top_memo_done(&feed.memo);
    return loop->feeding.count == 0;
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
                                                   oom->requested_bytes, recommend_now(loop))
                              : TD_FEED_UNMANAGED;
    if (vpa && (result == TD_FEED_TAKEN || result == TD_FEED_OOM_CAPPED)) {
        vpa->is_urgent = true;
    }
    td_log_line(loop->options.control.log, TD_LOG_INFO, "a container ran out of memory",
                TD_LOG_S("namespace", oom->ns), TD_LOG_S("pod", oom->pod),
                TD_LOG_S("container", oom->container), TD_LOG_I("request", oom->requested_bytes),
                TD_LOG_B("learnt", vpa && vpa->is_urgent));
}

void recommend_feed_ooms(struct td_recommend_loop *loop)
{
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    for (size_t i = 0; i < loop->ooms.count; i++) {
        td_arena_reset(&arena);
        ooms_feed(loop, &arena, &loop->ooms.items[i]);
    }
    ooms_forget(loop);
}

bool recommend_drop_pods(struct td_recommend_loop *loop)
{
    const struct td_cache *cache = td_sight_cache(loop->options.control.sight, TD_SIGHT_PODS);
    size_t position = 0;
    const struct td_map_entry *entry;
    while (!td_loop_slice_is_over(loop->options.control.loop) &&
           (entry = td_map_next(&loop->gone, &position))) {
        td_str ns;
        td_str name;
        pods_split(entry->key, &ns, &name);
        if (!td_cache_get(cache, ns, name)) { /* else another one has its name */
            td_recommender_delete_pod(loop->model, ns, name);
            pods_take(&loop->stanzas, entry->key);
        }
        pods_take(&loop->gone, entry->key);
    }
    moves_drop(loop, recommend_now(loop) - MOVES_MEMORY);
    return loop->gone.count == 0;
}

void recommend_begin_stanzas(struct td_recommend_loop *loop)
{
    size_t position = 0;
    const struct td_map_entry *entry;
    while ((entry = td_map_next(&loop->vpas, &position))) {
        struct recommend_vpa *vpa = entry->value;
        vpa->use = (struct td_pod_level_use){.has_cpu = false};
    }
    loop->stanza_at = 0;
}

static void stanzas_find(struct td_recommend_loop *loop, struct td_arena *arena, td_str key)
{
    td_str ns;
    td_str name;
    struct td_json *tree;
    struct td_vertical_pod pod;
    td_arena_reset(arena);
    pods_split(key, &ns, &name);
    const struct td_sight_pod *seen =
        td_cache_get(td_sight_cache(loop->options.control.sight, TD_SIGHT_PODS), ns, name);
    const struct td_tracked_pod *tracked = td_recommender_find_pod(loop->model, ns, name);
    if (!seen || !tracked || !td_str_equal(seen->phase, TD_STR("Running")) ||
        td_sight_tree(arena, &seen->object, &tree, NULL) != TD_OK ||
        td_vertical_pod_decode(arena, tree, &pod, NULL) != TD_OK) {
        return;
    }
    struct recommend_vpa *vpa =
        td_map_get(&loop->vpas, td_recommender_vpa_of(loop->model, arena, tracked));
    if (vpa) {
        td_pod_level_use_add(&vpa->use, &pod);
    }
}

/* Nobody adds or removes stanzas in this phase, so the place among them stays good. */
bool recommend_find_stanzas(struct td_recommend_loop *loop)
{
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    const struct td_map_entry *entry;
    while (loop->options.control.gates.pod_level_resources) {
        if (td_loop_slice_is_over(loop->options.control.loop)) {
            return false;
        }
        if (!(entry = td_map_next(&loop->stanzas, &loop->stanza_at))) {
            return true;
        }
        stanzas_find(loop, &arena, entry->key);
    }
    return true;
}
