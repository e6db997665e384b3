/*
 * What the engine tells comes from the middle of a tick; so it is only noted, and a job of the
 * node's acts on it in the same moment. There is no kernel that kills when a node's memory is used
 * up entirely: containers then use more than there is until the pods that are too many were
 * evicted.
 */
#include "local/nodes/node_pressure.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/json/json.h"
#include "base/limits.h"
#include "base/os/loop.h"
#include "kube/quantity/quantity.h"
#include "local/api/api.h"
#include "local/engine/engine.h"
#include "local/nodes/kubelet.h"
#include "local/nodes/node_index.h"
#include "local/nodes/node_report.h"
#include "local/store/edit.h"

#define PRESSURE_CRITICAL INT64_C(2000000000) /* priority from which a pod is critical */
#define PRESSURE_UNIT 1024                    /* memory is told in Ki */

struct td_node_pressure {
    struct td_node_pressure_options options;
    struct td_queue *queue; /* names of nodes */
    size_t pressed_count;   /* nodes; at least those that are */
};

/* ---- Who goes ---- */

static bool pressure_is_before(const struct td_pressure_pod *a, const struct td_pressure_pod *b)
{
    bool is_above_a = a->used_bytes > a->request_bytes;
    bool is_above_b = b->used_bytes > b->request_bytes;
    if (is_above_a != is_above_b) {
        return is_above_a;
    }
    if (a->priority != b->priority) {
        return a->priority < b->priority;
    }
    return a->used_bytes - a->request_bytes > b->used_bytes - b->request_bytes;
}

size_t td_pressure_pick(const struct td_pressure_pod *pods, size_t count)
{
    size_t best = count;
    for (size_t i = 0; i < count; i++) {
        if (pods[i].priority < PRESSURE_CRITICAL &&
            (best == count || pressure_is_before(&pods[i], &pods[best]))) {
            best = i;
        }
    }
    return best;
}

static struct td_json *pressure_pod(const struct td_node_pressure *pressure, struct td_arena *arena,
                                    const struct td_bound_pod *record)
{
    const struct td_resource *pods =
        td_api_kind(pressure->options.api, TD_STR("v1"), TD_STR("Pod"));
    struct td_json *pod;
    return td_edit_get(pressure->options.api, pods, record->ns, record->name, arena, &pod, NULL) ==
                   TD_OK
               ? pod
               : NULL;
}

static struct td_pressure_pod pressure_measure(const struct td_node_pressure *pressure,
                                               const struct td_engine_pod *body,
                                               const struct td_bound_pod *record)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_pressure_pod measured = {.used_bytes = td_engine_pod_use(body).memory_bytes};
    const struct td_json *pod = pressure_pod(pressure, &arena, record);
    struct td_node_amount *requests;
    size_t count;
    if (!pod || td_pod_amounts(&arena, pod, false, &requests, &count) != TD_OK) {
        return measured;
    }
    measured.priority = td_json_get_int64(td_json_get(pod, TD_STR("spec")), TD_STR("priority"), 0);
    for (size_t i = 0; i < count; i++) {
        if (td_str_equal(requests[i].name, TD_STR("memory"))) {
            measured.request_bytes = (double)requests[i].value;
        }
    }
    return measured;
}

/* The pod of the node that goes first, or NULL. Only those of which something runs count. */
static const struct td_bound_pod *pressure_choose(const struct td_node_pressure *pressure,
                                                  const struct td_node *node)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    size_t count = (size_t)(node->pod_count > 0 ? node->pod_count : 0);
    const struct td_bound_pod **records =
        td_arena_array(&arena, const struct td_bound_pod *, count);
    struct td_pressure_pod *pods = td_arena_array(&arena, struct td_pressure_pod, count);
    size_t found = 0;
    for (const struct td_bound_pod *p = node->first; p && found < count; p = p->next) {
        const struct td_engine_pod *body =
            p->is_over ? NULL : td_engine_find_pod(pressure->options.engine, p->ns, p->name);
        if (body) {
            records[found] = p;
            pods[found++] = pressure_measure(pressure, body, p);
        }
    }
    size_t best = td_pressure_pick(pods, found);
    return best < found ? records[best] : NULL;
}

/* ---- What is said of it ---- */

/* "104Ki" */
static td_str pressure_text(struct td_arena *arena, double bytes)
{
    int64_t whole = bytes > 0 ? (int64_t)bytes / PRESSURE_UNIT * PRESSURE_UNIT : 0;
    struct td_quantity quantity = td_quantity_new(whole, TD_QUANTITY_BINARY_SI);
    return td_quantity_text(arena, &quantity);
}

/* Containers that use more than they asked for. */
static void pressure_blame(struct td_arena *arena, const struct td_engine_pod *body,
                           const struct td_json *containers, struct td_buf *text)
{
    for (const struct td_json *c = td_json_first_item(containers); c; c = c->next) {
        td_str name = td_json_text(c, "name");
        const struct td_engine_container *running = td_engine_find(body, name);
        if (!running) {
            continue;
        }
        double used = td_engine_body(running)->memory_bytes;
        struct td_quantity request = td_quantity_new(0, TD_QUANTITY_DECIMAL_SI);
        const struct td_json *asked = td_json_get_path(c, "resources.requests.memory");
        if (asked) {
            (void)td_quantity_from_json(arena, asked, &request, NULL); /* else nothing */
        }
        if (used > (double)td_quantity_value(&request)) {
            (void)td_buf_append_format(text,
                                       "Container %.*s was using %.*s, request is %.*s, has larger "
                                       "consumption of memory. ",
                                       TD_STR_ARG(name), TD_STR_ARG(pressure_text(arena, used)),
                                       TD_STR_ARG(td_quantity_text(arena, &request)));
        }
    }
}

static td_str pressure_message(const struct td_node_pressure *pressure, struct td_arena *arena,
                               const struct td_bound_pod *record, double available_bytes)
{
    td_auto_buf text =
        td_buf_capped(TD_STATUS_MESSAGE_BYTES_MAX); /* what does not fit is not said */
    (void)td_buf_append_format(&text,
                               "The node was low on resource: memory. Threshold quantity: %.*s, "
                               "available: %.*s. ",
                               TD_STR_ARG(pressure_text(arena, TD_NODE_AVAILABLE_MIN)),
                               TD_STR_ARG(pressure_text(arena, available_bytes)));
    const struct td_json *pod = pressure_pod(pressure, arena, record);
    const struct td_engine_pod *body =
        td_engine_find_pod(pressure->options.engine, record->ns, record->name);
    if (pod && body) {
        const struct td_json *spec = td_json_get(pod, TD_STR("spec"));
        const struct td_json *asked = td_json_get_path(spec, "resources.requests.memory");
        struct td_quantity request;
        if (asked && td_quantity_from_json(arena, asked, &request, NULL) == TD_OK) {
            td_str used = pressure_text(arena, td_engine_pod_use(body).memory_bytes);
            (void)td_buf_append_format(
                &text,
                "Pod %.*s was using %.*s, request is %.*s, has larger consumption of memory. ",
                TD_STR_ARG(record->name), TD_STR_ARG(used),
                TD_STR_ARG(td_quantity_text(arena, &request)));
        }
        pressure_blame(arena, body, td_json_get(spec, TD_STR("containers")), &text);
        pressure_blame(arena, body, td_json_get(spec, TD_STR("initContainers")), &text);
    }
    return td_arena_copy_str(arena, td_buf_str(&text));
}

/* ---- Acting ---- */

static void pressure_evict(struct td_node_pressure *pressure, struct td_node *node)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    const struct td_bound_pod *record = pressure_choose(pressure, node);
    td_node_report_event(pressure->options.report, node, TD_STR("Warning"),
                         TD_STR("EvictionThresholdMet"), TD_STR("Attempting to reclaim memory"));
    if (!record) {
        return;
    }
    td_str key = td_arena_copy_str(&arena, record->key);
    td_str message = pressure_message(pressure, &arena, record, node->available);
    (void)td_kubelet_evict(pressure->options.kubelet, key, message); /* else the next time */
}

static enum td_job_result pressure_work(td_str name, void *context)
{
    struct td_node_pressure *pressure = context;
    struct td_node *node = td_node_index_node(pressure->options.index, name);
    td_time now = td_api_now(pressure->options.api);
    if (!node || !node->exists || !node->is_ours || node->is_lost) {
        return TD_JOB_DONE;
    }
    if (!node->is_pressed) {
        node->is_pressed = true;
        pressure->pressed_count++;
        td_node_report_status(pressure->options.report, node, false);
    }
    if (node->evicted == 0 || now - node->evicted >= TD_PRESSURE_EVICT_EVERY) {
        node->evicted = now;
        pressure_evict(pressure, node);
    }
    return TD_JOB_DONE;
}

void td_node_pressure_tell(struct td_node_pressure *pressure, td_str name, double available_bytes)
{
    struct td_node *node = td_node_index_node(pressure->options.index, name);
    if (!node || !node->exists || !node->is_ours || node->is_lost) {
        return;
    }
    node->pressed = td_api_now(pressure->options.api);
    node->available = available_bytes;
    if (!node->is_pressed || node->pressed - node->evicted >= TD_PRESSURE_EVICT_EVERY) {
        (void)td_queue_add(pressure->queue, name, NULL); /* full: it is told again */
    }
}

void td_node_pressure_look(struct td_node_pressure *pressure)
{
    if (pressure->pressed_count == 0) {
        return;
    }
    td_time now = td_api_now(pressure->options.api);
    pressure->pressed_count = 0;
    for (struct td_map_walk at = {.map = &pressure->options.index->nodes}; td_map_step(&at);) {
        struct td_node *node = at.value;
        if (!node->is_pressed) {
            continue;
        }
        if (now - node->pressed >= TD_PRESSURE_TRANSITION) {
            node->is_pressed = false;
            td_node_report_status(pressure->options.report, node, false);
        } else {
            pressure->pressed_count++;
        }
    }
}

struct td_node_pressure *td_node_pressure_new(const struct td_node_pressure_options *options)
{
    struct td_node_pressure *pressure = td_alloc_zero(1, sizeof(*pressure));
    pressure->options = *options;
    pressure->queue =
        td_queue_new(td_api_loop(options->api), pressure_work, pressure, TD_WORK_QUEUE_MAX);
    return pressure;
}

void td_node_pressure_free(struct td_node_pressure *pressure)
{
    if (!pressure) {
        return;
    }
    td_queue_free(pressure->queue);
    td_free(pressure);
}
