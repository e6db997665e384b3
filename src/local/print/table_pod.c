/*
 * The one word that sums a pod up. It begins as the pod's phase, or the reason its status gives,
 * and is replaced by what is more telling, in this order:
 *
 * 1. a scheduling gate;
 * 2. the first init container that holds the others up ("Init:1/3", "Init:CrashLoopBackOff");
 * 3. when there is none, the first container that waits or has ended (they are asked from the last
 *    to the first), where "Completed" gives way to a container that still runs or failed;
 * 4. deletion.
 *
 * Restarts are counted on the way: of all containers asked, init containers only as long as they
 * are what the pod waits for, except sidecars.
 */
#include "local/print/table_private.h"

#include "base/error.h"
#include "base/map.h"
#include "model/pod.h"

struct td_table_pod {
    td_str status;
    int64_t ready;
    int64_t total;
    int64_t restarts;
    struct td_instant last_restart;
    /* Of init containers that go on running (sidecars). */
    int64_t sidecar_restarts;
    struct td_instant sidecar_last_restart;
};

static bool pod_is_later(struct td_instant a, struct td_instant b)
{
    return a.unix_seconds != b.unix_seconds ? a.unix_seconds > b.unix_seconds : a.nanos > b.nanos;
}

static void pod_note_restart(const struct td_json *container, struct td_instant *last)
{
    struct td_instant ended;
    td_str text = td_table_text(container, "lastState.terminated.finishedAt", TD_STR_EMPTY);
    if (text.len > 0 && td_time_parse(text, &ended, NULL) == TD_OK && pod_is_later(ended, *last)) {
        *last = ended;
    }
}

static bool pod_is_sidecar(const struct td_json *container)
{
    return td_str_equal(td_json_text(container, "restartPolicy"), TD_STR("Always"));
}

/* Items by the text of a member, the first of each: a pod can have thousands. */
static void pod_index(const struct td_json *list, td_str key, struct td_map *map)
{
    td_map_init(map, td_json_item_count(list));
    for (struct td_json *item = td_json_first_item(list); item; item = item->next) {
        td_str text = td_json_get_str(item, key, TD_STR_EMPTY);
        if (!td_map_has(map, text)) {
            (void)td_map_put(map, text, item); /* as many as the list has: it fits */
        }
    }
}

/* How a container ended: its reason, else the signal or the exit code. */
static td_str pod_end(struct td_arena *arena, const char *prefix, const struct td_json *terminated)
{
    td_str reason = td_json_text(terminated, "reason");
    int64_t signal = td_json_get_int64(terminated, TD_STR("signal"), 0);
    if (reason.len > 0) {
        return td_arena_format(arena, "%s%.*s", prefix, TD_STR_ARG(reason));
    }
    if (signal != 0) {
        return td_arena_format(arena, "%sSignal:%lld", prefix, (long long)signal);
    }
    return td_arena_format(arena, "%sExitCode:%lld", prefix,
                           (long long)td_json_get_int64(terminated, TD_STR("exitCode"), 0));
}

/* The init containers of the spec and how many were asked. */
struct pod_init {
    struct td_map by_name;
    size_t index;
};

/* Does this init container hold the others up? Then it gives the word. */
static bool pod_waits_for(struct td_table_row *row, struct td_table_pod *made,
                          const struct td_json *container, const struct pod_init *init)
{
    const struct td_json *terminated = td_json_get_path(container, "state.terminated");
    td_str waiting = td_table_text(container, "state.waiting.reason", TD_STR_EMPTY);
    bool is_sidecar = pod_is_sidecar(td_map_get(&init->by_name, td_json_text(container, "name")));
    if (is_sidecar) {
        made->sidecar_restarts += td_json_get_int64(container, TD_STR("restartCount"), 0);
        pod_note_restart(container, &made->sidecar_last_restart);
    }
    if (terminated && td_json_get_int64(terminated, TD_STR("exitCode"), 0) == 0) {
        return false;
    }
    if (is_sidecar && td_json_get_bool(container, TD_STR("started"), false)) {
        made->ready += td_json_get_bool(container, TD_STR("ready"), false);
        return false;
    }
    if (terminated) {
        made->status = pod_end(row->arena, "Init:", terminated);
    } else if (waiting.len > 0 && !td_str_equal(waiting, TD_STR("PodInitializing"))) {
        made->status = td_arena_format(row->arena, "Init:%.*s", TD_STR_ARG(waiting));
    } else {
        made->status =
            td_arena_format(row->arena, "Init:%zu/%zu", init->index, init->by_name.count);
    }
    return true;
}

static bool pod_is_initializing(struct td_table_row *row, struct td_table_pod *made)
{
    const struct td_json *list = td_json_get_path(row->object, "status.initContainerStatuses");
    struct pod_init init = {.index = 0};
    bool is_waiting = false;
    pod_index(td_json_get_path(row->object, "spec.initContainers"), TD_STR("name"), &init.by_name);
    for (const struct td_json *item = td_json_first_item(list); item && !is_waiting;
         item = item->next) {
        made->restarts += td_json_get_int64(item, TD_STR("restartCount"), 0);
        pod_note_restart(item, &made->last_restart);
        is_waiting = pod_waits_for(row, made, item, &init);
        init.index++;
    }
    td_map_done(&init.by_name);
    return is_waiting;
}

struct pod_running {
    bool has_running;
    td_str failure; /* of the container asked last that ended with an error; or empty */
};

static void pod_take_container(struct td_table_row *row, struct td_table_pod *made,
                               const struct td_json *container, struct pod_running *running)
{
    const struct td_json *terminated = td_json_get_path(container, "state.terminated");
    td_str waiting = td_table_text(container, "state.waiting.reason", TD_STR_EMPTY);
    made->restarts += td_json_get_int64(container, TD_STR("restartCount"), 0);
    pod_note_restart(container, &made->last_restart);
    if (waiting.len > 0) {
        made->status = waiting;
    } else if (terminated) {
        made->status = pod_end(row->arena, "", terminated);
        if (td_json_get_int64(terminated, TD_STR("exitCode"), 0) != 0) {
            running->failure = made->status;
        }
    } else if (td_json_get_bool(container, TD_STR("ready"), false) &&
               td_json_get_path(container, "state.running")) {
        running->has_running = true;
        made->ready++;
    }
}

/* Lists are linked forwards only, so an array of the items is turned around. */
static void pod_take_containers(struct td_table_row *row, struct td_table_pod *made)
{
    struct pod_running running = {.failure = TD_STR_EMPTY};
    const struct td_json *list = td_json_get_path(row->object, "status.containerStatuses");
    size_t count = td_json_item_count(list);
    const struct td_json **items = td_arena_array(row->arena, const struct td_json *, count);
    size_t filled = 0;
    for (const struct td_json *item = td_json_first_item(list); item; item = item->next) {
        items[filled++] = item;
    }
    made->restarts = made->sidecar_restarts;
    made->last_restart = made->sidecar_last_restart;
    while (filled > 0) {
        pod_take_container(row, made, items[--filled], &running);
    }
    if (!td_str_equal(made->status, TD_STR("Completed"))) {
        return;
    }
    td_str ready =
        td_table_condition(td_json_get_path(row->object, "status.conditions"), TD_STR("Ready"));
    if (running.has_running && td_str_equal(ready, TD_STR("True"))) {
        made->status = TD_STR("Running");
    } else if (running.failure.len > 0) {
        made->status = running.failure;
    } else if (running.has_running) {
        made->status = TD_STR("NotReady");
    }
}

static td_str pod_first_word(const struct td_json *pod)
{
    const struct td_json *conditions = td_json_get_path(pod, "status.conditions");
    for (const struct td_json *item = td_json_first_item(conditions); item; item = item->next) {
        td_str reason = td_json_text(item, "reason");
        if (td_str_equal(td_json_text(item, "type"), TD_STR("PodScheduled")) &&
            td_str_equal(reason, TD_STR("SchedulingGated"))) {
            return reason;
        }
    }
    return td_table_text(pod, "status.reason", td_table_text(pod, "status.phase", TD_STR_EMPTY));
}

static const struct td_table_pod *pod_of(struct td_table_row *row)
{
    if (row->pod) {
        return row->pod;
    }
    const struct td_json *pod = row->object;
    struct td_table_pod *made = td_arena_new(row->arena, struct td_table_pod);
    *made = (struct td_table_pod){.status = pod_first_word(pod),
                                  .last_restart = TD_INSTANT_ZERO,
                                  .sidecar_last_restart = TD_INSTANT_ZERO};
    const struct td_json *containers = td_json_get_path(pod, "spec.containers");
    made->total = td_json_is(containers, TD_JSON_TYPE_ARRAY) ? (int64_t)containers->count : 0;
    const struct td_json *init = td_json_get_path(pod, "spec.initContainers");
    for (const struct td_json *item = td_json_first_item(init); item; item = item->next) {
        made->total += pod_is_sidecar(item);
    }
    td_str initialized =
        td_table_condition(td_json_get_path(pod, "status.conditions"), TD_STR("Initialized"));
    if (!pod_is_initializing(row, made) || td_str_equal(initialized, TD_STR("True"))) {
        pod_take_containers(row, made);
    }
    td_str phase = td_table_text(pod, "status.phase", TD_STR_EMPTY);
    bool has_ended = td_pod_phase_is_over(td_pod_phase_from(phase));
    bool is_deleted = td_table_text(pod, "metadata.deletionTimestamp", TD_STR_EMPTY).len > 0;
    td_str reason = td_table_text(pod, "status.reason", TD_STR_EMPTY);
    if (is_deleted && td_str_equal(reason, TD_STR("NodeLost"))) {
        made->status = TD_STR("Unknown");
    } else if (is_deleted && !has_ended) {
        made->status = TD_STR("Terminating");
    }
    row->pod = made;
    return made;
}

struct td_json *td_cell_pod_ready(struct td_table_row *row, const struct td_table_column *column)
{
    (void)column;
    const struct td_table_pod *pod = pod_of(row);
    return td_table_string(row, td_arena_format(row->arena, "%lld/%lld", (long long)pod->ready,
                                                (long long)pod->total));
}

struct td_json *td_cell_pod_status(struct td_table_row *row, const struct td_table_column *column)
{
    (void)column;
    return td_table_string(row, pod_of(row)->status);
}

struct td_json *td_cell_pod_restarts(struct td_table_row *row, const struct td_table_column *column)
{
    (void)column;
    const struct td_table_pod *pod = pod_of(row);
    if (pod->restarts == 0 || !pod_is_later(pod->last_restart, TD_INSTANT_ZERO)) {
        return td_table_string(row, td_arena_format(row->arena, "%lld", (long long)pod->restarts));
    }
    td_str span = td_table_span(row->arena, pod->last_restart, row->now);
    return td_table_string(row, td_arena_format(row->arena, "%lld (%.*s ago)",
                                                (long long)pod->restarts, TD_STR_ARG(span)));
}

struct td_json *td_cell_pod_ip(struct td_table_row *row, const struct td_table_column *column)
{
    const struct td_json *first = td_json_first_item(td_json_get_path(row->object, column->path));
    return td_table_string(row, td_table_text(first, "ip", td_str_from(column->fallback)));
}

struct td_json *td_cell_pod_gates(struct td_table_row *row, const struct td_table_column *column)
{
    const struct td_json *gates = td_json_get_path(row->object, column->path);
    size_t open = 0;
    if (!td_json_is(gates, TD_JSON_TYPE_ARRAY) || gates->count == 0) {
        return td_table_string(row, td_str_from(column->fallback));
    }
    td_auto_map by_type;
    pod_index(td_json_get_path(row->object, "status.conditions"), TD_STR("type"), &by_type);
    for (const struct td_json *gate = td_json_first_item(gates); gate; gate = gate->next) {
        td_str type = td_json_text(gate, "conditionType");
        td_str status = td_json_text(td_map_get(&by_type, type), "status");
        open += td_str_equal(status, TD_STR("True"));
    }
    return td_table_string(row, td_arena_format(row->arena, "%zu/%zu", open, gates->count));
}
