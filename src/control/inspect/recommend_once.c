/*
 * The pods are walked twice. Before the recommender looks, to find the workloads that no VPA and no
 * Hvpa is on, and to make one up for each, since nothing is learnt from pods that no VPA selects.
 * Afterwards, to see which VPA each pod taught: pods of one workload and one VPA are a group, and
 * each of its containers is a row.
 */
#include "control/inspect/recommend_once.h"

#include "api/hvpa/hvpa.h"
#include "base/alloc.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/os/loop.h"
#include "base/vec.h"
#include "control/inspect/snapshot.h"
#include "decide/vertical/pod.h"
#include "decide/vertical/recommender/recommender.h"
#include "decide/vertical/updater/matching.h"
#include "kube/client/client.h"
#include "kube/client/verbs.h"
#include "kube/objectkey.h"

#define ONCE_PREFIX "once:" /* of made-up VPAs: no object can have such a name */
#define ONCE_HVPA "hvpa:"   /* as the recommender calls them */
#define ONCE_PAUSE (50 * TD_MILLISECOND)
#define ONCE_TRIES_MAX 100

/* Pods of one workload that one VPA has. */
struct once_group {
    td_str namespace;
    struct td_controller top;
    td_str vpa; /* name in the model */
    size_t pods;
    struct td_pod newest;
};

struct td_recommend_once {
    struct td_snapshot *snapshot;
    struct td_arena arena; /* of the whole */
    td_str namespace;
    struct td_right_limits limits;
    struct td_client_call *call; /* whether there is such a namespace */
    struct td_map groups;        /* by namespace, workload and VPA */
    struct {
        TD_VEC_FIELDS(struct td_right_size);
    } sizes;
    size_t unowned;
    struct td_timer *again;
    int tries;
    td_right_sizes_fn fn;
    void *context;
};

static void once_fail(struct td_recommend_once *once, const struct td_error *err)
{
    const struct td_right_sizes sizes = {.code = err->code, .err = *err};
    once->fn(once->context, &sizes);
}

/* ---- Walking ---- */

typedef int (*once_pod_fn)(struct td_recommend_once *once, const struct td_pod *pod,
                           const struct td_controller *top, struct td_error *err);

static bool once_is_wanted(const struct td_recommend_once *once, const struct td_informer_pod *pod)
{
    bool is_here =
        once->namespace.len == 0 || td_str_equal(pod->object.head.namespace, once->namespace);
    return is_here && td_str_equal(pod->phase, TD_STR("Running"));
}

/* Every running pod with its topmost controller (NULL: none). TD_BUSY: an owner is asked for. */
static int once_walk(struct td_recommend_once *once, once_pod_fn fn, struct td_error *err)
{
    struct td_informers *informers = once->snapshot->informers;
    const struct td_cache *cache = td_informers_cache(informers, TD_INFORMER_PODS);
    struct td_top_memo memo;
    size_t position = 0;
    int code = TD_OK;
    td_top_memo_init(&memo, &once->arena);
    for (const struct td_informer_pod *seen;
         code == TD_OK && (seen = td_cache_next(cache, &position));) {
        struct td_json *tree;
        struct td_pod pod;
        const struct td_controller *top = NULL;
        if (!once_is_wanted(once, seen) ||
            td_informers_tree(&once->arena, &seen->object, &tree, NULL) != TD_OK ||
            td_pod_decode(&once->arena, tree, &pod, NULL) != TD_OK) {
            continue;
        }
        code = td_top_memo_get(&memo, td_informers_source(informers), &pod.meta, &top, NULL, err);
        if (code != TD_BUSY) {
            code = fn(once, &pod, code == TD_OK ? top : NULL, err);
        }
        if (code == TD_OK) {
            code = td_arena_check(&once->arena, err);
        }
    }
    td_top_memo_done(&memo);
    return code;
}

static td_str once_key(struct td_recommend_once *once, const struct td_controller *top, td_str vpa)
{
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    td_str key = TD_KEY_LINES(buffer, top->namespace, top->kind, top->name, vpa);
    return td_arena_copy_str(&once->arena, key);
}

/* ---- Before the look ---- */

/* Is a VPA or an Hvpa on it already? */
static bool once_is_sized(struct td_recommend_once *once, const struct td_controller *top)
{
    static const enum td_informer_kind kinds[] = {TD_INFORMER_VPAS, TD_INFORMER_HVPAS};
    size_t count = once->snapshot->update.control.hvpa_gate ? 2 : 1; /* with it off none sizes */
    for (size_t i = 0; i < count; i++) {
        const struct td_cache *cache = td_informers_cache(once->snapshot->informers, kinds[i]);
        size_t position = 0;
        for (const struct td_informer_object *object; (object = td_cache_next(cache, &position));) {
            td_auto_arena arena;
            td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
            struct td_json *tree;
            if (!td_str_equal(object->head.namespace, top->namespace) ||
                td_informers_tree(&arena, object, &tree, NULL) != TD_OK) {
                continue;
            }
            const struct td_json *target = td_informers_target(kinds[i], tree);
            if (td_str_equal(td_json_get_str(target, TD_STR("kind"), TD_STR_EMPTY), top->kind) &&
                td_str_equal(td_json_get_str(target, TD_STR("name"), TD_STR_EMPTY), top->name)) {
                return true;
            }
        }
    }
    return false;
}

static struct td_vpa once_vpa(struct td_recommend_once *once, const struct td_controller *top)
{
    return (struct td_vpa){
        .meta = {.namespace = top->namespace,
                 .name = td_arena_format(&once->arena, ONCE_PREFIX "%.*s:%.*s",
                                         TD_STR_ARG(top->kind), TD_STR_ARG(top->name))},
        .has_target = true,
        .target_api_version = top->api_version,
        .target_kind = top->kind,
        .target_name = top->name,
        .mode = TD_VPA_OFF,
    };
}

static int once_make_up(struct td_recommend_once *once, const struct td_pod *pod,
                        const struct td_controller *top, struct td_error *err)
{
    struct td_selector selector;
    (void)pod;
    if (!top) {
        return TD_OK;
    }
    td_str key = once_key(once, top, TD_STR_EMPTY);
    if (td_map_has(&once->groups, key)) {
        return TD_OK;
    }
    const struct td_vpa vpa = once_vpa(once, top);
    int code = td_target_selector(&once->arena, td_informers_source(once->snapshot->informers), top,
                                  &selector, err);
    if (code == TD_BUSY) {
        return code;
    }
    (void)td_map_put(&once->groups, key, once); /* only that it was seen: no more than pods */
    if (code != TD_OK || once_is_sized(once, top)) {
        return TD_OK;
    }
    struct td_group_version version = td_group_version_parse(top->api_version);
    const struct td_vpa_link link = {
        .vpa = &vpa,
        .target_selector = &selector,
        .target = td_target_key(&once->arena, version.group, top->kind, top->name),
        .estimator = td_recommend_loop_estimator(once->snapshot->recommend),
    };
    return td_recommender_set_vpa(td_recommend_loop_model(once->snapshot->recommend), &link,
                                  td_snapshot_now(once->snapshot), err);
}

/* ---- After it ---- */

static int once_group(struct td_recommend_once *once, const struct td_pod *pod,
                      const struct td_controller *top, struct td_error *err)
{
    struct td_recommender *model = td_recommend_loop_model(once->snapshot->recommend);
    const struct td_tracked_pod *tracked =
        td_recommender_find_pod(model, pod->meta.namespace, pod->meta.name);
    td_str vpa = tracked ? td_recommender_vpa_of(model, &once->arena, tracked) : TD_STR_EMPTY;
    once->unowned += top ? 0 : 1;
    if (!top || vpa.len == 0) {
        return TD_OK;
    }
    vpa = td_object_key_read(vpa).name;
    td_str key = once_key(once, top, vpa);
    struct once_group *group = td_map_get(&once->groups, key);
    if (!group) {
        group = td_arena_new(&once->arena, struct once_group);
        group->namespace = pod->meta.namespace;
        group->top = *top;
        group->vpa = vpa;
        if (td_map_put(&once->groups, key, group) != TD_OK) {
            return td_error_set(err, TD_LIMIT, "too many workloads");
        }
    }
    bool is_newer = group->pods == 0 ||
                    pod->meta.created.unix_seconds > group->newest.meta.created.unix_seconds;
    group->newest = is_newer ? *pod : group->newest;
    group->pods++;
    return TD_OK;
}

/* The status of the VPA that a group has. */
static int once_status(struct td_recommend_once *once, const struct once_group *group,
                       struct td_vpa_status *ret)
{
    struct td_snapshot *snapshot = once->snapshot;
    struct td_arena *arena = &once->arena;
    struct td_vpa object;
    if (td_str_starts_with(group->vpa, TD_STR(ONCE_PREFIX))) {
        object = once_vpa(once, &group->top);
        return td_recommender_status(td_recommend_loop_model(snapshot->recommend), arena, &object,
                                     NULL, td_snapshot_now(snapshot), ret, NULL);
    }
    if (!td_str_starts_with(group->vpa, TD_STR(ONCE_HVPA))) {
        return td_recommend_loop_vpa(snapshot->recommend, arena, group->namespace, group->vpa,
                                     &object, ret, NULL);
    }
    td_str name = td_str_slice(group->vpa, sizeof(ONCE_HVPA) - 1, group->vpa.len);
    const struct td_cache *cache = td_informers_cache(snapshot->informers, TD_INFORMER_HVPAS);
    const struct td_informer_object *seen = td_cache_get(cache, group->namespace, name);
    struct td_json *tree;
    struct td_hvpa hvpa;
    if (!seen || td_informers_tree(arena, seen, &tree, NULL) != TD_OK ||
        td_hvpa_decode(arena, tree, &hvpa, NULL, NULL) != TD_OK) {
        return TD_NOT_FOUND;
    }
    return td_recommend_loop_hvpa(snapshot->recommend, arena, &hvpa, ret, NULL);
}

static td_str once_by(struct td_recommend_once *once, const struct once_group *group)
{
    if (td_str_starts_with(group->vpa, TD_STR(ONCE_PREFIX))) {
        return TD_STR_EMPTY;
    }
    bool is_hvpa = td_str_starts_with(group->vpa, TD_STR(ONCE_HVPA));
    td_str name = td_str_slice(group->vpa, is_hvpa ? sizeof(ONCE_HVPA) - 1 : 0, group->vpa.len);
    return td_arena_format(&once->arena, "%s/%.*s", is_hvpa ? "hvpa" : "vpa", TD_STR_ARG(name));
}

/* The rows of a group: one for each container that it has. */
static int once_rows(struct td_recommend_once *once, const struct once_group *group,
                     struct td_error *err)
{
    struct td_vpa_status status = {.pod_count = 0};
    bool is_known = once_status(once, group, &status) == TD_OK;
    for (size_t i = 0; i < group->newest.container_count; i++) {
        const struct td_pod_container *c = &group->newest.containers[i];
        struct td_right_size *size = td_vec_push(&once->sizes);
        if (!size) {
            return td_error_set(err, TD_LIMIT, "too many containers");
        }
        *size = (struct td_right_size){
            .namespace = group->namespace,
            .api_version = group->top.api_version,
            .kind = group->top.kind,
            .workload = group->top.name,
            .container = c->name,
            .by = once_by(once, group),
            .pods = group->pods,
            .now = *td_vertical_requests(c),
            .limits = *td_vertical_limits(c),
            .is_pod_level = group->newest.has_pod_level && td_vertical_requests(c)->count == 0,
        };
        if (is_known) {
            td_right_size_fill(&once->arena, size, &status, &once->limits);
        }
    }
    return TD_OK;
}

static td_str once_problem(struct td_recommend_once *once)
{
    /* Where no pod runs there is nothing to measure. */
    td_str metrics = once->sizes.count > 0
                         ? td_snapshot_metrics_problem(once->snapshot, &once->arena)
                         : TD_STR_EMPTY;
    td_str rights = td_snapshot_rights_problem(once->snapshot, &once->arena);
    return metrics.len > 0 && rights.len > 0
               ? td_arena_format(&once->arena, "%.*s; also, %.*s", TD_STR_ARG(metrics),
                                 TD_STR_ARG(rights))
           : rights.len > 0 ? rights
                            : metrics;
}

static void once_end(struct td_recommend_once *once)
{
    struct td_error err = TD_ERROR_INIT;
    td_map_reset(&once->groups);
    int code = once_walk(once, once_group, &err);
    size_t position = 0;
    const struct td_map_entry *entry;
    while (code == TD_OK && (entry = td_map_next(&once->groups, &position))) {
        code = once_rows(once, entry->value, &err);
    }
    if (code != TD_OK) {
        once_fail(once, &err);
        return;
    }
    td_right_sizes_sort(once->sizes.items, once->sizes.count);
    const struct td_right_sizes sizes = {
        .code = TD_OK,
        .items = once->sizes.items,
        .count = once->sizes.count,
        .window = TD_STR("checkpoints of VPAs, and metrics of this moment"),
        .unowned = once->unowned,
        .problem = once_problem(once),
    };
    once->fn(once->context, &sizes);
}

/* ---- The whole ---- */

static void once_looked(void *context)
{
    once_end(context);
}

static void once_begin(struct td_timer *timer, void *context)
{
    struct td_recommend_once *once = context;
    struct td_error err = TD_ERROR_INIT;
    int code = once_walk(once, once_make_up, &err);
    if (code == TD_BUSY && once->tries++ < ONCE_TRIES_MAX) {
        td_timer_set_machine(timer, ONCE_PAUSE);
    } else if (code != TD_OK) {
        once_fail(once, &err);
    } else {
        td_recommend_loop_look(once->snapshot->recommend, once_looked, once);
    }
}

static void once_found(void *context, const struct td_client_reply *reply)
{
    struct td_recommend_once *once = context;
    once->call = NULL;
    if (reply->code == TD_NOT_FOUND) {
        struct td_error err = TD_ERROR_INIT;
        (void)td_error_set(&err, TD_NOT_FOUND, "namespace '%.*s' does not exist",
                           TD_STR_ARG(once->namespace));
        once_fail(once, &err);
        return;
    }
    td_timer_set_machine(once->again, 0); /* a reader of pods may lack the right to read it */
}

/* An empty answer would be taken for a namespace without pods. */
static void once_find_namespace(struct td_recommend_once *once)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    const struct td_api_path path = {
        .version = TD_STR("v1"), .plural = TD_STR("namespaces"), .name = once->namespace};
    struct td_client_request request;
    if (once->namespace.len == 0 || td_verb_get(&arena, &path, &request, NULL) != TD_OK) {
        td_timer_set_machine(once->again, 0);
        return;
    }
    request.flow = once->snapshot->flow;
    once->call = td_client_send(once->snapshot->client, &request, once_found, once);
}

struct td_recommend_once *td_recommend_once_start(struct td_snapshot *snapshot, td_str namespace,
                                                  const struct td_right_limits *limits,
                                                  td_right_sizes_fn fn, void *context)
{
    struct td_recommend_once *once = td_alloc_zero(1, sizeof(*once));
    once->snapshot = snapshot;
    once->fn = fn;
    once->context = context;
    td_arena_init(&once->arena, TD_UPDATE_ARENA_BYTES_MAX);
    td_map_init(&once->groups, TD_CACHE_OBJECTS_MAX);
    once->sizes.count_max = TD_CACHE_OBJECTS_MAX;
    once->namespace = td_arena_copy_str(&once->arena, namespace);
    once->again = td_timer_new(snapshot->loop, once_begin, once);
    once->limits = *limits;
    once_find_namespace(once);
    return once;
}

void td_recommend_once_free(struct td_recommend_once *once)
{
    if (!once) {
        return;
    }
    if (once->call) {
        td_client_cancel(once->call);
    }
    td_timer_free(once->again);
    td_map_done(&once->groups);
    td_vec_done(&once->sizes);
    td_arena_done(&once->arena);
    td_free(once);
}
