/*
 * Each look has two passes. The first finds who is silent, and writes it at once. The second gives
 * and takes the taints that remove pods, which is dangerous when the fault is not the nodes' but
 * the watcher's: so it is done node by node, ten seconds apart, slower or not at all when most
 * nodes are silent, and taken back when all are. Upstream does that zone by zone; here all nodes
 * are one. In the usual case, all nodes ready and none tainted, a look costs a few nanoseconds a
 * node.
 */
#include "local/nodes/node_life.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/os/log.h"
#include "local/api/api.h"
#include "local/kinds/condition.h"
#include "local/nodes/node_index.h"
#include "local/nodes/node_object.h"
#include "local/nodes/node_report.h"
#include "local/store/edit.h"
#include "local/store/store.h"

#define LIFE_COMPONENT TD_STR("node-controller")
#define LIFE_NO_EXECUTE TD_STR("NoExecute")
#define LIFE_TAINT_EVERY (10 * TD_SECOND)       /* node-eviction-rate 0.1 */
#define LIFE_TAINT_EVERY_SLOW (100 * TD_SECOND) /* secondary-node-eviction-rate 0.01 */
#define LIFE_LARGE 50                           /* large-cluster-size-threshold */
#define LIFE_UNHEALTHY_MIN 3                    /* so many silent ones ... */
#define LIFE_UNHEALTHY_PERCENT 55 /* ... and such a share is a fault of another kind */

struct td_node_life {
    struct td_api *api;
    struct td_log *log;
    struct td_node_index *index;
    td_time next_taint; /* not before */
    bool is_disrupted;  /* no node was ready at the last look */
};

struct life_count {
    size_t ready;
    size_t silent;
    size_t tainted; /* with any taint */
};

static bool life_put(struct td_node_life *life, const char *kind, struct td_arena *arena,
                     struct td_json *object)
{
    struct td_error err = TD_ERROR_INIT;
    int code = td_edit_put(life->api, td_api_kind(life->api, TD_STR("v1"), td_str_from(kind)),
                           arena, object, &err);
    if (code != TD_OK && code != TD_CONFLICT && code != TD_NOT_FOUND) {
        td_log_line(life->log, TD_LOG_ERROR, "cannot update node conditions and taints",
                    TD_LOG_C("error", err.message));
    }
    return code == TD_OK;
}

static const struct td_stored *life_lease(const struct td_node_life *life,
                                          const struct td_node *node)
{
    return td_store_get(td_api_store(life->api), TD_STR(TD_NODE_LEASE_COLLECTION),
                        TD_STR(TD_NODE_LEASE_NAMESPACE), node->name);
}

bool td_node_life_watches(const struct td_node_life *life, const struct td_node *node)
{
    return node->exists && (node->is_ours || node->probed > 0 || life_lease(life, node));
}

/* ---- Silence ---- */

static void life_unready_pod(struct td_node_life *life, const struct td_bound_pod *record)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_json *pod;
    if (td_edit_get(life->api, td_api_kind(life->api, TD_STR("v1"), TD_STR("Pod")), record->ns,
                    record->name, &arena, &pod, NULL) != TD_OK) {
        return;
    }
    struct td_json *status = td_json_get(pod, TD_STR("status"));
    struct td_json *ready = td_condition_find(status, TD_STR("Ready"));
    if (!ready || td_condition_is(status, TD_STR("Ready"), TD_STR("False"))) {
        return;
    }
    const struct td_condition condition = {
        .type = TD_STR("Ready"),
        .status = TD_STR("False"),
        .reason = td_json_text(ready, "reason"),
        .message = td_json_text(ready, "message"),
        .observed_generation = td_json_get_int64(ready, TD_STR("observedGeneration"), 0),
        .has_probe_time = true,
    };
    (void)td_condition_set(&arena, status, &condition, td_time_to_instant(td_api_now(life->api)));
    if (life_put(life, "Pod", &arena, pod)) {
        td_edit_event(life->api, pod, TD_STR("Warning"), TD_STR("NodeNotReady"), LIFE_COMPONENT,
                      TD_STR("Node is not ready"));
    }
}

static void life_silence(struct td_node_life *life, struct td_node *node)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_json *object;
    bool was_ready = node->is_ready;
    if (td_edit_get(life->api, td_api_kind(life->api, TD_STR("v1"), TD_STR("Node")), TD_STR_EMPTY,
                    node->name, &arena, &object, NULL) != TD_OK ||
        !td_node_object_silence(&arena, object, td_api_now(life->api))) {
        return;
    }
    (void)td_node_object_follow(&arena, object, td_api_now(life->api)); /* it changed anyway */
    if (!life_put(life, "Node", &arena, object)) {
        return;
    }
    node->is_ready = false;
    node->is_unknown = true;
    if (!was_ready) {
        return;
    }
    td_edit_event(
        life->api, object, TD_STR("Normal"), TD_STR("NodeNotReady"), LIFE_COMPONENT,
        td_arena_format(&arena, "Node %.*s status is now: NodeNotReady", TD_STR_ARG(node->name)));
    for (const struct td_bound_pod *pod = node->first; pod; pod = pod->next) {
        life_unready_pod(life, pod);
    }
}

/* When was it heard of last? Any new revision of its lease counts; ours say so when they renew. */
static void life_probe(const struct td_node_life *life, struct td_node *node, td_time now)
{
    if (node->is_ours && !node->is_lost) {
        return;
    }
    const struct td_stored *lease = life_lease(life, node);
    if (lease && lease->version != node->lease.version) {
        node->lease = (struct td_node_lease){.version = lease->version};
        node->probed = now;
    }
}

static struct life_count life_find_silent(struct td_node_life *life, td_time now)
{
    struct life_count count = {.ready = 0};
    for (struct td_map_walk at = {.map = &life->index->nodes}; td_map_step(&at);) {
        struct td_node *node = at.value;
        if (!node->exists) {
            continue;
        }
        life_probe(life, node, now);
        if (node->probed == 0) {
            continue; /* no kubelet renews a lease for it */
        }
        if (now - node->probed > TD_NODE_LIFE_GRACE) {
            life_silence(life, node);
        }
        count.ready += node->is_ready ? 1 : 0;
        count.silent += node->is_ready ? 0 : 1;
        count.tainted += node->taint_count > 0 ? 1 : 0;
    }
    return count;
}

/* ---- Taints that remove pods ---- */

/* Gives it the one and takes the other; NULL: takes both. */
static bool life_swap(struct td_node_life *life, const struct td_node *node, const char *added)
{
    static const char *const keys[] = {TD_TAINT_NOT_READY, TD_TAINT_UNREACHABLE};
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_json *object;
    if (td_edit_get(life->api, td_api_kind(life->api, TD_STR("v1"), TD_STR("Node")), TD_STR_EMPTY,
                    node->name, &arena, &object, NULL) != TD_OK) {
        return false;
    }
    bool is_changed = false;
    for (size_t i = 0; i < 2; i++) {
        td_str key = td_str_from(keys[i]);
        is_changed |= added && td_str_equal(key, td_str_from(added))
                          ? td_node_object_add_taint(&arena, object, key, LIFE_NO_EXECUTE,
                                                     td_api_now(life->api))
                          : td_node_object_remove_taint(object, key, LIFE_NO_EXECUTE);
    }
    return is_changed && life_put(life, "Node", &arena, object);
}

/* Between two nodes; negative: none gets a taint. */
static td_duration life_pause(const struct life_count *count)
{
    size_t all = count->ready + count->silent;
    if (count->ready == 0) {
        return -1;
    }
    if (count->silent >= LIFE_UNHEALTHY_MIN &&
        count->silent * 100 >= all * LIFE_UNHEALTHY_PERCENT) {
        return all > LIFE_LARGE ? LIFE_TAINT_EVERY_SLOW : -1;
    }
    return LIFE_TAINT_EVERY;
}

static void life_taint(struct td_node_life *life, struct td_node *node, td_duration pause)
{
    bool is_not_ready = td_node_has_taint(node, TD_STR(TD_TAINT_NOT_READY), LIFE_NO_EXECUTE);
    bool is_unreachable = td_node_has_taint(node, TD_STR(TD_TAINT_UNREACHABLE), LIFE_NO_EXECUTE);
    if (node->is_ready || life->is_disrupted) {
        if (is_not_ready || is_unreachable) {
            (void)life_swap(life, node, NULL); /* else the next look does it */
        }
        return;
    }
    td_time now = td_api_now(life->api);
    if (node->is_unknown ? is_unreachable : is_not_ready) {
        return;
    }
    bool is_swapped = is_not_ready || is_unreachable; /* it is counted already */
    if (!is_swapped && (pause < 0 || now < life->next_taint)) {
        return;
    }
    if (life_swap(life, node, node->is_unknown ? TD_TAINT_UNREACHABLE : TD_TAINT_NOT_READY) &&
        !is_swapped) {
        life->next_taint = now + pause;
    }
}

/* After a time without any heartbeat, all nodes get a new grace period. */
static void life_forgive(struct td_node_life *life, td_time now)
{
    for (struct td_map_walk at = {.map = &life->index->nodes}; td_map_step(&at);) {
        struct td_node *node = at.value;
        node->probed = node->probed > 0 ? now : 0;
    }
}

void td_node_life_look(struct td_node_life *life)
{
    if (life->index->own_count == 0) {
        return;
    }
    td_time now = td_api_now(life->api);
    struct life_count count = life_find_silent(life, now);
    bool was_disrupted = life->is_disrupted;
    life->is_disrupted = count.ready == 0 && count.silent > 0;
    if (was_disrupted && !life->is_disrupted) {
        life_forgive(life, now);
    }
    if (count.silent == 0 && count.tainted == 0) {
        return;
    }
    td_duration pause = life_pause(&count);
    for (struct td_map_walk at = {.map = &life->index->nodes}; td_map_step(&at);) {
        struct td_node *node = at.value;
        if (node->exists && node->probed > 0) {
            life_taint(life, node, pause);
        }
    }
}

struct td_node_life *td_node_life_new(struct td_api *api, struct td_log *log,
                                      struct td_node_index *index)
{
    struct td_node_life *life = td_alloc_zero(1, sizeof(*life));
    life->api = api;
    life->log = log;
    life->index = index;
    return life;
}

void td_node_life_free(struct td_node_life *life)
{
    td_free(life);
}
