/*
 * What follows for a pod from its containers: phase and conditions, by the rules of the kubelet.
 * A phase is Pending until every container has been started once, and is over when no container of
 * the pod's own runs or will be started again; sidecars never hold a pod back from its end.
 */
#include "base/limits.h"
#include "local/kinds/condition.h"
#include "local/nodes/kubelet_status.h"

struct conclusion {
    const struct td_life_container *containers;
    size_t count;
    bool is_last;
    bool is_initialized; /* a container of the pod's own has been started */
    const char *phase;
};

/* Containers by what they say about the phase. */
struct conclude_counts {
    size_t pending_init;
    size_t pending_sidecars;
    size_t failed_init; /* and not started again */
    size_t waiting;
    size_t running;
    size_t stopped;
    size_t succeeded;
    size_t restarting;
};

static void conclude_init(const struct td_pod_life *life, const struct td_life_container *container,
                          struct conclude_counts *counts)
{
    bool is_failed = td_life_state(container) != TD_LIFE_RUNNING && td_life_has_run(container) &&
                     td_life_exit_code(container) != 0;
    if (is_failed) {
        counts->failed_init += !td_life_restarts(life, container);
    } else {
        counts->pending_init += !td_life_is_initialized(container);
    }
}

static void conclude_sidecar(const struct td_life_container *container,
                             struct conclude_counts *counts)
{
    if (td_life_state(container) == TD_LIFE_RUNNING) {
        counts->running++;
        counts->pending_sidecars += !td_life_is_initialized(container);
    } else if (!td_life_has_run(container)) {
        counts->waiting++;
        counts->pending_sidecars++;
    }
}

static void conclude_own(const struct td_pod_life *life, const struct td_life_container *container,
                         struct conclude_counts *counts)
{
    if (td_life_state(container) == TD_LIFE_RUNNING) {
        counts->running++;
    } else if (!td_life_has_run(container)) {
        counts->waiting++;
    } else {
        counts->stopped++;
        counts->succeeded += td_life_exit_code(container) == 0;
        counts->restarting += td_life_restarts(life, container);
    }
}

static const char *conclude_phase(const struct td_pod_life *life, const struct conclusion *c)
{
    struct conclude_counts counts = {.running = 0};
    for (size_t i = 0; i < c->count; i++) {
        const struct td_life_container *container = &c->containers[i];
        if (!container->is_init) {
            conclude_own(life, container, &counts);
        } else if (container->is_sidecar) {
            conclude_sidecar(container, &counts);
        } else {
            conclude_init(life, container, &counts);
        }
    }
    if (counts.failed_init > 0) {
        return "Failed";
    }
    if (counts.pending_init > 0 || (counts.pending_sidecars > 0 && !c->is_initialized) ||
        counts.waiting > 0) {
        return c->is_last ? "Failed" : "Pending";
    }
    if (counts.running > 0 || (!c->is_last && counts.restarting > 0)) {
        return "Running";
    }
    return counts.succeeded == counts.stopped ? "Succeeded" : "Failed";
}

/* "containers with unready status: [a b]", or empty when there are none. */
static td_str conclude_names(const struct td_pod_life *life, const struct conclusion *c,
                             bool (*is_named)(const struct td_life_container *), const char *what)
{
    td_auto_buf text = td_buf_capped(TD_STATUS_MESSAGE_BYTES_MAX);
    size_t named = 0;
    (void)td_buf_append_format(&text, "containers with %s status: [", what); /* sticky */
    for (size_t i = 0; i < c->count; i++) {
        if (is_named(&c->containers[i])) {
            (void)td_buf_append_format(&text, "%s%.*s", named++ > 0 ? " " : "",
                                       TD_STR_ARG(c->containers[i].name)); /* sticky */
        }
    }
    (void)td_buf_append_char(&text, ']'); /* sticky */
    return named > 0 ? td_arena_copy_str(life->arena, td_buf_str(&text)) : TD_STR_EMPTY;
}

static bool conclude_is_incomplete(const struct td_life_container *container)
{
    return container->is_init && !td_life_is_initialized(container);
}

static bool conclude_is_unready(const struct td_life_container *container)
{
    return (!container->is_init || container->is_sidecar) &&
           !td_json_get_bool(container->status, TD_STR("ready"), false);
}

static void conclude_initialized(struct td_pod_life *life, const struct conclusion *c)
{
    td_str lack = conclude_names(life, c, conclude_is_incomplete, "incomplete");
    bool is_completed = td_str_equal(td_str_from(c->phase), TD_STR("Succeeded"));
    if (lack.len == 0 || is_completed || c->is_initialized) {
        (void)td_pod_life_condition(life, "Initialized", "True",
                                    is_completed ? "PodCompleted" : NULL, TD_STR_EMPTY);
    } else {
        (void)td_pod_life_condition(life, "Initialized", "False", "ContainersNotInitialized", lack);
    }
}

/* Gates that are not open, in the words of a condition's message; empty: none. */
static td_str conclude_gates(const struct td_pod_life *life)
{
    const struct td_json *gates = td_json_get_path(life->pod, "spec.readinessGates");
    const struct td_json *status = td_json_get(life->pod, TD_STR("status"));
    td_auto_buf text = td_buf_capped(TD_STATUS_MESSAGE_BYTES_MAX);
    for (const struct td_json *gate = td_json_first_item(gates); gate; gate = gate->next) {
        td_str type = td_json_text(gate, "conditionType");
        const struct td_json *condition = td_condition_find(status, type);
        const char *comma = td_buf_str(&text).len > 0 ? ", " : "";
        if (!condition) {
            (void)td_buf_append_format(
                &text, "%scorresponding condition of pod readiness gate \"%.*s\" does not exist.",
                comma, TD_STR_ARG(type)); /* sticky */
        } else if (!td_condition_is(status, type, TD_STR("True"))) {
            td_str value = td_json_text(condition, "status");
            (void)td_buf_append_format(
                &text, "%sthe status of pod readiness gate \"%.*s\" is not \"True\", but %.*s",
                comma, TD_STR_ARG(type), TD_STR_ARG(value)); /* sticky */
        }
    }
    return td_arena_copy_str(life->arena, td_buf_str(&text));
}

static void conclude_ready(struct td_pod_life *life, const struct conclusion *c)
{
    td_str lack = conclude_names(life, c, conclude_is_unready, "unready");
    const char *reason = NULL;
    td_str gates = TD_STR_EMPTY;
    if (td_str_equal(td_str_from(c->phase), TD_STR("Succeeded"))) {
        reason = "PodCompleted";
    } else if (td_str_equal(td_str_from(c->phase), TD_STR("Failed"))) {
        reason = "PodFailed";
    } else if (lack.len > 0) {
        reason = "ContainersNotReady";
    } else {
        gates = conclude_gates(life);
    }
    td_str message = c->is_last || !reason ? TD_STR_EMPTY : lack;
    if (td_pod_life_is_over(life)) {
        message = TD_STR_EMPTY;
    }
    (void)td_pod_life_condition(life, "Ready", reason || gates.len > 0 ? "False" : "True",
                                gates.len > 0 ? "ReadinessGatesNotReady" : reason,
                                gates.len > 0 ? gates : message);
    (void)td_pod_life_condition(life, "ContainersReady", reason ? "False" : "True", reason,
                                message);
}

static void conclude_generation(struct td_pod_life *life, struct td_json *status)
{
    int64_t generation =
        td_json_get_int64(td_json_get(life->pod, TD_STR("metadata")), TD_STR("generation"), 0);
    if (generation > 0 &&
        td_json_get_int64(status, TD_STR("observedGeneration"), 0) != generation) {
        td_json_set_int64(life->arena, status, TD_STR("observedGeneration"), generation);
        life->is_changed = true;
    }
}

void td_pod_life_conclude(struct td_pod_life *life, bool is_last)
{
    struct td_json *status = td_json_ensure_object(life->arena, life->pod, TD_STR("status"));
    struct conclusion c = {.is_last = is_last};
    c.containers = td_pod_life_containers(life, &c.count);
    for (size_t i = 0; i < c.count && !c.is_initialized; i++) {
        c.is_initialized = !c.containers[i].is_init && td_life_has_run(&c.containers[i]);
    }
    c.phase = conclude_phase(life, &c);
    td_str before = td_json_text(status, "phase");
    if (!td_str_equal(before, td_str_from(c.phase))) {
        td_json_set_str(life->arena, status, TD_STR("phase"), td_str_from(c.phase));
        life->is_changed = true;
    }
    bool has_sandbox = td_json_get(status, TD_STR("podIP")) && !td_pod_life_is_over(life);
    (void)td_pod_life_condition(life, "PodReadyToStartContainers", has_sandbox ? "True" : "False",
                                NULL, TD_STR_EMPTY);
    conclude_initialized(life, &c);
    conclude_ready(life, &c);
    (void)td_pod_life_condition(life, "PodScheduled", "True", NULL, TD_STR_EMPTY);
    if (td_pod_life_is_over(life)) {
        (void)td_pod_life_condition(life, "PodResizePending", NULL, NULL, TD_STR_EMPTY);
        (void)td_pod_life_condition(life, "PodResizeInProgress", NULL, NULL, TD_STR_EMPTY);
    }
    conclude_generation(life, status);
}
