/*
 * A pod whose time runs is in a map, with the moment it ends; the queue only wakes us, and the code
 * that is woken early or for nothing finds that in the map. So taking a removal back is forgetting
 * it. As upstream has it, the time of a pod begins with the first taint that it tolerates for a
 * while only and is not changed by later ones.
 */
#include "local/nodes/node_taints.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/json/json.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/os/clock.h"
#include "base/os/log.h"
#include "base/os/loop.h"
#include "base/text.h"
#include "kube/objectkey.h"
#include "local/api/api.h"
#include "local/api/write.h"
#include "local/kinds/condition.h"
#include "local/nodes/node_fit.h"
#include "local/nodes/node_index.h"
#include "local/store/edit.h"

#define TAINTS_COMPONENT TD_STR("taint-eviction-controller")
#define TAINTS_FOREVER ((td_duration)-1)

struct td_node_taints {
    struct td_api *api;
    struct td_log *log;
    struct td_node_index *index;
    struct td_map pods;     /* struct taints_pod by key */
    struct td_queue *queue; /* their keys */
};

/* A pod that is to go, or was told to. */
struct taints_pod {
    td_str key; /* owned, behind the structure, as the next */
    td_str uid;
    td_time due;
    bool is_done;
};

static void taints_event(struct td_node_taints *taints, struct td_arena *arena,
                         const struct td_json *pod, td_str key, const char *what)
{
    td_edit_event(taints->api, pod, TD_STR("Normal"), TD_STR("TaintManagerEviction"),
                  TAINTS_COMPONENT, td_arena_format(arena, "%s Pod %.*s", what, TD_STR_ARG(key)));
}

/* ---- The map ---- */

static void taints_forget(struct td_node_taints *taints, td_str key)
{
    struct taints_pod *pod = td_map_remove(&taints->pods, key);
    td_free(pod);
}

/* Takes back what was planned; told when it was not done yet and the pod is still there. */
static void taints_cancel(struct td_node_taints *taints, td_str key)
{
    const struct taints_pod *planned = td_map_get(&taints->pods, key);
    if (!planned) {
        return;
    }
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_object_key of = td_object_key_read(key);
    struct td_json *pod;
    if (!planned->is_done &&
        td_edit_get(taints->api, td_api_kind(taints->api, TD_STR("v1"), TD_STR("Pod")),
                    of.namespace, of.name, &arena, &pod, NULL) == TD_OK) {
        taints_event(taints, &arena, pod, key, "Cancelling deletion of");
    }
    taints_forget(taints, td_arena_copy_str(&arena, key));
}

static void taints_plan(struct td_node_taints *taints, const struct td_bound_pod *record,
                        td_duration after)
{
    struct taints_pod *pod = td_alloc_zero(1, sizeof(*pod) + record->key.len + record->uid.len);
    char *text = (char *)(pod + 1);
    pod->key = td_text_place(&text, record->key);
    pod->uid = td_text_place(&text, record->uid);
    pod->due = td_api_now(taints->api) + after;
    struct td_error err = TD_ERROR_INIT;
    int code = td_map_put(&taints->pods, pod->key, pod);
    if (code != TD_OK) {
        td_free(pod);
        return; /* at the cap of objects */
    }
    code = after > 0 ? td_queue_add_after(taints->queue, pod->key, after, &err)
                     : td_queue_add(taints->queue, pod->key, &err);
    if (code != TD_OK) {
        td_log_line(taints->log, TD_LOG_ERROR,
                    "taint eviction queue full, pod stays on the tainted node",
                    TD_LOG_C("error", err.message));
        taints_forget(taints, pod->key);
    }
}

/* ---- Who has to go when ---- */

/* How long the pod may stay: 0 when a taint is not tolerated at all. Of the tolerations that match,
 * the shortest counts; for each taint the first that matches is the one. */
static td_duration taints_time(const struct td_json *tolerations, const struct td_node *node)
{
    td_duration shortest = TAINTS_FOREVER;
    for (size_t i = 0; i < node->taint_count; i++) {
        const struct td_taint *taint = &node->taints[i];
        if (!td_str_equal(taint->effect, TD_STR("NoExecute"))) {
            continue;
        }
        const struct td_json *t = td_json_first_item(tolerations);
        while (t && !td_toleration_matches(t, taint->key, taint->value, taint->effect)) {
            t = t->next;
        }
        if (!t) {
            return 0;
        }
        int64_t seconds = td_json_get_int64(t, TD_STR("tolerationSeconds"), INT64_MAX);
        if (seconds <= 0) {
            return 0;
        }
        td_duration time = seconds < INT64_MAX / TD_SECOND ? seconds * TD_SECOND : TAINTS_FOREVER;
        shortest = shortest == TAINTS_FOREVER || (time != TAINTS_FOREVER && time < shortest)
                       ? time
                       : shortest;
    }
    return shortest;
}

static void taints_judge(struct td_node_taints *taints, const struct td_bound_pod *record)
{
    struct taints_pod *planned = td_map_get(&taints->pods, record->key);
    if (planned && !td_str_equal(planned->uid, record->uid)) {
        taints_forget(taints, record->key);
        planned = NULL;
    }
    if (planned && planned->is_done) {
        return;
    }
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_json *pod;
    if (td_edit_get(taints->api, td_api_kind(taints->api, TD_STR("v1"), TD_STR("Pod")), record->ns,
                    record->name, &arena, &pod, NULL) != TD_OK) {
        return;
    }
    td_duration time = taints_time(
        td_json_get(td_json_get(pod, TD_STR("spec")), TD_STR("tolerations")), record->node);
    if (time == TAINTS_FOREVER) {
        taints_cancel(taints, record->key);
    } else if (!planned) {
        taints_plan(taints, record, time);
    } else if (time == 0 && planned->due > td_api_now(taints->api)) {
        taints_cancel(taints, record->key);
        taints_plan(taints, record, 0);
    }
}

void td_node_taints_node(struct td_node_taints *taints, const struct td_node *node)
{
    bool is_tainted =
        taints->index->own_count > 0 && td_node_has_taint(node, TD_STR_EMPTY, TD_STR("NoExecute"));
    if (!is_tainted && taints->pods.count == 0) {
        return;
    }
    for (const struct td_bound_pod *pod = node->first; pod; pod = pod->next) {
        if (is_tainted) {
            taints_judge(taints, pod);
        } else {
            taints_cancel(taints, pod->key);
        }
    }
}

void td_node_taints_pod(struct td_node_taints *taints, td_str key)
{
    const struct td_bound_pod *record = td_node_index_pod(taints->index, key);
    if (!record) {
        taints_forget(taints, key);
    } else if (record->node->taint_count > 0 && taints->index->own_count > 0 &&
               td_node_has_taint(record->node, TD_STR_EMPTY, TD_STR("NoExecute"))) {
        taints_judge(taints, record);
    } else if (taints->pods.count > 0) {
        taints_cancel(taints, key);
    }
}

/* ---- Removing ---- */

static void taints_remove(struct td_node_taints *taints, const struct td_bound_pod *record)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    const struct td_resource *pods = td_api_kind(taints->api, TD_STR("v1"), TD_STR("Pod"));
    td_str ns = td_arena_copy_str(&arena, record->ns);
    td_str name = td_arena_copy_str(&arena, record->name);
    td_str uid = td_arena_copy_str(&arena, record->uid);
    struct td_json *pod;
    struct td_error err = TD_ERROR_INIT;
    if (td_edit_get(taints->api, pods, ns, name, &arena, &pod, NULL) != TD_OK) {
        return;
    }
    const struct td_condition condition = {
        .type = TD_STR("DisruptionTarget"),
        .status = TD_STR("True"),
        .reason = TD_STR("DeletionByTaintManager"),
        .message = TD_STR("Taint manager: deleting due to NoExecute taint"),
        .observed_generation =
            td_json_get_int64(td_json_get(pod, TD_STR("metadata")), TD_STR("generation"), 0),
        .has_probe_time = true,
    };
    taints_event(taints, &arena, pod, record->key, "Marking for deletion");
    int code = TD_OK;
    if (td_condition_set(&arena, td_json_ensure_object(&arena, pod, TD_STR("status")), &condition,
                         td_time_to_instant(td_api_now(taints->api)))) {
        code = td_edit_put(taints->api, pods, &arena, pod, &err);
    }
    if (code == TD_OK) {
        code = td_edit_delete(taints->api, pods, ns, name, uid, TD_STR_EMPTY, TD_GRACE_UNSET, &err);
    }
    if (code != TD_OK && code != TD_NOT_FOUND && code != TD_CONFLICT) {
        td_log_line(taints->log, TD_LOG_ERROR, "cannot delete pod from tainted node",
                    TD_LOG_C("error", err.message));
    }
}

static enum td_job_result taints_work(td_str key, void *context)
{
    struct td_node_taints *taints = context;
    struct taints_pod *planned = td_map_get(&taints->pods, key);
    if (!planned || planned->is_done) {
        return TD_JOB_DONE;
    }
    td_duration left = planned->due - td_api_now(taints->api);
    if (left > 0) {
        /* A full queue: the pod's time goes on when its node changes next. */
        (void)td_queue_add_after(taints->queue, key, left, NULL);
        return TD_JOB_DONE;
    }
    const struct td_bound_pod *record = td_node_index_pod(taints->index, key);
    if (!record || !td_str_equal(record->uid, planned->uid)) {
        taints_forget(taints, key);
        return TD_JOB_DONE;
    }
    planned->is_done = true;
    taints_remove(taints, record);
    return TD_JOB_DONE;
}

struct td_node_taints *td_node_taints_new(struct td_api *api, struct td_log *log,
                                          struct td_node_index *index)
{
    struct td_node_taints *taints = td_alloc_zero(1, sizeof(*taints));
    taints->api = api;
    taints->log = log;
    taints->index = index;
    td_map_init(&taints->pods, TD_COLLECTION_OBJECTS_MAX);
    taints->queue = td_queue_new(td_api_loop(api), taints_work, taints, TD_WORK_QUEUE_MAX);
    return taints;
}

void td_node_taints_free(struct td_node_taints *taints)
{
    if (!taints) {
        return;
    }
    td_queue_free(taints->queue);
    for (struct td_map_walk at = {.map = &taints->pods}; td_map_step(&at);) {
        td_free(at.value);
    }
    td_map_done(&taints->pods);
    td_free(taints);
}
