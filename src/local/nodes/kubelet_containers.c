/*
 * The containers of a pod, one by one. A container waits until those before it have done their
 * part, runs until something ends it (memory, its task, its time, its node), and is started again
 * as its policy says: at once the first time, then after pauses that double. The pause is forgotten
 * when it has run well for TD_KUBELET_PAUSE_RESET. An end and the restart after it are two steps,
 * so that a watch sees both.
 */
#include "base/error.h"
#include "base/text.h"
#include "base/timefmt.h"
#include "kube/quantity/quantity.h"
#include "local/nodes/kubelet_private.h"
#include "local/nodes/node_index.h"
#include "local/workloads/pod_workload.h"

#define KUBELET_OOM_CODE 137
#define KUBELET_LOST_CODE 255
#define KUBELET_USAGE "usage.tandem.dev/"

/* ---- What annotations say ---- */

static td_str containers_annotation(const struct kubelet_pod *pod, const char *prefix, td_str name)
{
    td_str key = td_arena_format(pod->life.arena, "%s%.*s", prefix, TD_STR_ARG(name));
    return td_json_get_str(td_json_get_path(pod->life.pod, "metadata.annotations"), key,
                           TD_STR_EMPTY);
}

/* The container's own annotation, or that of the pod, which is not about init containers. */
static td_str containers_setting(const struct kubelet_pod *pod, size_t index, const char *own,
                                 const char *general)
{
    const struct td_life_container *container = &pod->containers[index];
    td_str text = containers_annotation(pod, own, container->name);
    return text.len > 0 || container->is_init ? text
                                              : containers_annotation(pod, general, TD_STR_EMPTY);
}

static int64_t containers_exit_code(const struct kubelet_pod *pod, size_t index)
{
    int64_t code;
    td_str text =
        containers_setting(pod, index, TD_KUBELET_EXIT_CODE_OF, TD_KUBELET_EXIT_CODE_ANNOTATION);
    return td_str_to_int64(text, &code) && code >= 0 && code <= 255 ? code : 0;
}

/* How long a run lasts that nothing ends; KUBELET_NEVER: it goes on. */
static td_duration containers_runs_for(const struct kubelet_pod *pod, size_t index)
{
    const struct td_life_container *container = &pod->containers[index];
    const struct td_json *spec = td_json_get(pod->life.pod, TD_STR("spec"));
    const struct td_engine_container *body = pod->record->containers[index].body;
    td_str text =
        containers_setting(pod, index, TD_KUBELET_RUNS_FOR_OF, TD_KUBELET_RUNS_FOR_ANNOTATION);
    td_str code =
        containers_setting(pod, index, TD_KUBELET_EXIT_CODE_OF, TD_KUBELET_EXIT_CODE_ANNOTATION);
    td_duration named;
    if (body && td_engine_is_task(body)) {
        return KUBELET_NEVER; /* the engine knows when it is done */
    }
    if (td_duration_parse(text, &named, NULL) == TD_OK && named >= 0) {
        return named;
    }
    if (container->is_init) {
        return container->is_sidecar && code.len == 0 ? KUBELET_NEVER : TD_KUBELET_INIT_RUNS_FOR;
    }
    td_str policy = td_json_get_str(spec, TD_STR("restartPolicy"), TD_STR("Always"));
    policy = td_json_get_str(container->spec, TD_STR("restartPolicy"), policy);
    return td_str_equal(policy, TD_STR("Always")) && code.len == 0 ? KUBELET_NEVER
                                                                   : TD_KUBELET_RUNS_FOR;
}

/* "250m,300Mi"; false when it is not that. */
static bool containers_fixed(const struct kubelet_pod *pod, td_str name, struct td_want *ret)
{
    struct td_arena *arena = pod->life.arena;
    td_str text = containers_annotation(pod, KUBELET_USAGE, name);
    size_t comma = td_str_find(text, ',', 0);
    struct td_quantity cpu;
    struct td_quantity memory;
    if (comma >= text.len ||
        td_quantity_parse(arena, td_str_slice(text, 0, comma), &cpu, NULL) != TD_OK ||
        td_quantity_parse(arena, td_str_slice(text, comma + 1, text.len), &memory, NULL) != TD_OK ||
        td_quantity_sign(&cpu) < 0 || td_quantity_sign(&memory) < 0) {
        return false;
    }
    *ret = (struct td_want){
        .cpu_milli = td_quantity_to_double(&cpu) * 1000.0,
        .memory_bytes = td_quantity_to_double(&memory),
    };
    return true;
}

/* ---- Bodies ---- */

static struct td_quantity containers_amount(struct td_arena *arena, const struct td_json *resources,
                                            const char *list, const char *name)
{
    struct td_quantity quantity = td_quantity_new(0, TD_QUANTITY_DECIMAL_SI);
    const struct td_json *amounts = td_json_get(resources, td_str_from(list));
    const struct td_json *amount = td_json_get(amounts, td_str_from(name));
    if (amount) {
        (void)td_quantity_from_json(arena, amount, &quantity, NULL); /* checked when written */
    }
    return quantity;
}

struct td_engine_limits kubelet_limits(struct td_arena *arena, const struct td_json *resources)
{
    struct td_quantity cpu_request = containers_amount(arena, resources, "requests", "cpu");
    struct td_quantity cpu_limit = containers_amount(arena, resources, "limits", "cpu");
    struct td_quantity memory_request = containers_amount(arena, resources, "requests", "memory");
    struct td_quantity memory_limit = containers_amount(arena, resources, "limits", "memory");
    return (struct td_engine_limits){
        .cpu_request_milli = td_quantity_milli(&cpu_request),
        .cpu_limit_milli = td_quantity_milli(&cpu_limit),
        .memory_request_bytes = td_quantity_value(&memory_request),
        .memory_limit_bytes = td_quantity_value(&memory_limit),
    };
}

static td_str containers_role(const struct kubelet_pod *pod)
{
    td_str label = pod->record->role_label;
    return label.len > 0 ? td_json_get_str(td_json_get_path(pod->life.pod, "metadata.labels"),
                                           label, TD_STR_EMPTY)
                         : TD_STR_EMPTY;
}

static void containers_keep_role(struct kubelet_record *record, td_str role)
{
    td_text_set(&record->role, role);
}

void kubelet_embody(struct kubelet_pod *pod)
{
    struct kubelet_record *record = pod->record;
    struct td_engine *engine = pod->kubelet->engine;
    if (!engine || record->body) {
        return;
    }
    const struct td_json *status = td_json_get(pod->life.pod, TD_STR("status"));
    struct td_pod_workload workload =
        td_pod_workload(pod->kubelet->api, pod->life.arena, pod->life.pod);
    record->role_label = td_engine_role_label(engine, pod->bound->ns, workload.kind, workload.name);
    containers_keep_role(record, containers_role(pod));
    const struct td_engine_pod_spec spec = {
        .node = pod->bound->node->name,
        .ns = pod->bound->ns,
        .name = pod->bound->name,
        .workload_kind = workload.kind,
        .workload_name = workload.name,
        .role = record->role,
        .limits = kubelet_limits(pod->life.arena, td_json_get(status, TD_STR("resources"))),
        .owner = record,
    };
    record->body = td_engine_add_pod(engine, &spec);
}

void kubelet_disembody(struct kubelet_record *record)
{
    if (record->body) {
        td_engine_remove_pod(record->body);
    }
    record->body = NULL;
    for (size_t i = 0; i < record->count; i++) {
        record->containers[i].body = NULL;
        record->containers[i].is_ready = false;
    }
}

static void containers_embody(struct kubelet_pod *pod, size_t index)
{
    struct kubelet_container *own = &pod->record->containers[index];
    const struct td_life_container *container = &pod->containers[index];
    if (!pod->record->body || own->body) {
        return;
    }
    own->has_fixed = containers_fixed(pod, container->name, &own->fixed);
    const struct td_engine_spec spec = {
        .name = container->name,
        .is_first = !container->is_init && (index == 0 || pod->containers[index - 1].is_init),
        .has_fixed = own->has_fixed,
        .fixed = own->fixed,
        .limits =
            kubelet_limits(pod->life.arena, td_json_get(container->status, TD_STR("resources"))),
    };
    own->body = td_engine_start(pod->record->body, &spec);
    own->is_ready = false;
}

static void containers_stop(struct kubelet_container *own)
{
    if (own->body) {
        td_engine_stop(own->body);
    }
    own->body = NULL;
    own->is_ready = false;
}

void kubelet_follow(struct kubelet_pod *pod)
{
    struct kubelet_record *record = pod->record;
    if (!record->body) {
        return;
    }
    td_str role = containers_role(pod);
    if (!td_str_equal(role, record->role)) {
        containers_keep_role(record, role);
        td_engine_set_role(record->body, role);
    }
    for (size_t i = 0; i < record->count; i++) {
        struct kubelet_container *own = &record->containers[i];
        struct td_want want = {.cpu_milli = 0};
        bool has_fixed = own->body && containers_fixed(pod, pod->containers[i].name, &want);
        bool is_same = has_fixed == own->has_fixed && want.cpu_milli == own->fixed.cpu_milli &&
                       want.memory_bytes == own->fixed.memory_bytes;
        if (own->body && !is_same && (has_fixed || own->has_fixed)) {
            own->has_fixed = has_fixed;
            own->fixed = want;
            td_engine_set_fixed(own->body, has_fixed ? &want : NULL);
        }
    }
}

/* ---- Moments of a run ---- */

static td_duration containers_delay(const struct td_life_container *container, const char *probe)
{
    const struct td_json *spec = td_json_get(container->spec, td_str_from(probe));
    int64_t seconds = td_json_get_int64(spec, TD_STR("initialDelaySeconds"), 0);
    return seconds > 0 && seconds <= INT32_MAX ? seconds * TD_SECOND : 0;
}

static td_duration containers_longest(td_duration a, td_duration b)
{
    return a > b ? a : b;
}

/* From `since` on it starts up, and its run began at `began`. */
static void containers_set_moments(struct kubelet_pod *pod, size_t index, td_time since,
                                   td_time began)
{
    struct kubelet_container *own = &pod->record->containers[index];
    const struct td_life_container *container = &pod->containers[index];
    td_duration startup = own->body ? containers_longest(td_engine_startup(own->body), 0) : 0;
    td_duration until_started =
        td_json_get(container->spec, TD_STR("startupProbe"))
            ? containers_longest(startup, containers_delay(container, "startupProbe"))
            : 0;
    td_duration until_ready = containers_longest(containers_longest(startup, until_started),
                                                 containers_delay(container, "readinessProbe"));
    td_duration runs_for = containers_runs_for(pod, index);
    bool is_ever_ready = !container->is_init || container->is_sidecar;
    own->started_at = since + until_started;
    own->ready_at = is_ever_ready ? since + until_ready : KUBELET_NEVER;
    own->ends_at = runs_for > KUBELET_NEVER - began ? KUBELET_NEVER : began + runs_for;
    own->is_seen = true;
}

/* A run that began before this process: what the status says of it still holds. */
static void containers_adopt(struct kubelet_pod *pod, size_t index)
{
    struct kubelet_container *own = &pod->record->containers[index];
    const struct td_life_container *container = &pod->containers[index];
    const struct td_json *running = td_json_get_path(container->status, "state.running");
    struct td_instant began;
    td_time now = pod->life.now;
    bool has_time = td_time_parse(td_json_text(running, "startedAt"), &began, NULL) == TD_OK;
    containers_embody(pod, index);
    containers_set_moments(pod, index, now, has_time ? td_time_from_instant(began) : now);
    if (td_json_get_bool(container->status, TD_STR("started"), false)) {
        own->started_at = now;
    }
    if (td_json_get_bool(container->status, TD_STR("ready"), false)) {
        own->ready_at = now;
    }
}

/* ---- Steps ---- */

static void containers_run(struct kubelet_pod *pod, size_t index)
{
    struct kubelet_container *own = &pod->record->containers[index];
    td_time now = pod->life.now;
    if (pod->record->body && !own->body) {
        containers_embody(pod, index); /* its node was not known to the engine before */
    }
    td_life_set_ready(&pod->life, &pod->containers[index], now >= own->started_at,
                      now >= own->ready_at);
    if (own->body && own->is_ready != (now >= own->ready_at)) {
        own->is_ready = now >= own->ready_at;
        td_engine_set_ready(own->body, own->is_ready);
    }
    if (own->started_at > now) {
        kubelet_wake(pod, own->started_at);
    }
    if (own->ready_at > now) {
        kubelet_wake(pod, own->ready_at);
    }
    kubelet_wake(pod, own->ends_at);
}

static void containers_start(struct kubelet_pod *pod, size_t index)
{
    struct td_life_container *container = &pod->containers[index];
    const struct td_json *given = kubelet_given(pod, index);
    if (!td_life_same_resources(given, td_json_get(container->status, TD_STR("resources")))) {
        td_life_use(&pod->life, container, given);
    }
    containers_embody(pod, index);
    td_life_start(&pod->life, container);
    containers_set_moments(pod, index, pod->life.now, pod->life.now);
    kubelet_tell_start(pod, container);
    containers_run(pod, index);
}

static void containers_end(struct kubelet_pod *pod, size_t index, int64_t exit_code,
                           const char *reason)
{
    struct kubelet_container *own = &pod->record->containers[index];
    containers_stop(own);
    td_life_end(&pod->life, &pod->containers[index], exit_code, reason);
    own->end = KUBELET_RUNS_ON;
    own->is_seen = false;
    own->ended_at = pod->life.now;
    kubelet_wake(pod, pod->life.now);
}

/* Of the pause that there is before a restart, what is still ahead; it is over: 0. */
static td_duration containers_pause(const struct kubelet_container *own)
{
    bool is_forgotten = own->ended_at - own->pause_since > TD_KUBELET_PAUSE_RESET;
    return is_forgotten ? 0 : own->pause;
}

static void containers_start_again(struct kubelet_pod *pod, size_t index)
{
    struct kubelet_container *own = &pod->record->containers[index];
    struct td_life_container *container = &pod->containers[index];
    td_duration pause = containers_pause(own);
    td_time due = own->ended_at + pause;
    if (due <= pod->life.now) {
        own->pause = pause == 0 ? TD_KUBELET_PAUSE_MIN : 2 * pause;
        own->pause = own->pause < TD_KUBELET_PAUSE_MAX ? own->pause : TD_KUBELET_PAUSE_MAX;
        own->pause_since = pod->life.now;
        containers_start(pod, index);
        return;
    }
    if (td_life_state(container) == TD_LIFE_ENDED) {
        td_life_back_off(&pod->life, container, pause);
        kubelet_tell_back_off(pod, container);
    }
    kubelet_wake(pod, due);
}

static void containers_step(struct kubelet_pod *pod, size_t index, bool may_start)
{
    struct kubelet_container *own = &pod->record->containers[index];
    const struct td_life_container *container = &pod->containers[index];
    if (td_life_state(container) == TD_LIFE_RUNNING) {
        if (!own->is_seen && own->end != KUBELET_LOST) {
            containers_adopt(pod, index);
        }
        if (own->end == KUBELET_OUT_OF_MEMORY) {
            containers_end(pod, index, KUBELET_OOM_CODE, "OOMKilled");
        } else if (own->end == KUBELET_LOST) {
            containers_end(pod, index, KUBELET_LOST_CODE, "Unknown");
        } else if (own->end == KUBELET_FINISHED || pod->life.now >= own->ends_at) {
            containers_end(pod, index, containers_exit_code(pod, index), NULL);
        } else {
            containers_run(pod, index);
        }
    } else if (td_life_has_run(container)) {
        if (td_life_restarts(&pod->life, container)) {
            containers_start_again(pod, index);
        }
    } else if (may_start) {
        containers_start(pod, index);
    }
}

/* Is every container of the pod's own at its end, or can it never begin? */
static bool containers_are_over(const struct kubelet_pod *pod)
{
    bool is_over = true;
    for (size_t i = 0; i < pod->record->count; i++) {
        const struct td_life_container *container = &pod->containers[i];
        bool has_ended = td_life_state(container) != TD_LIFE_RUNNING &&
                         td_life_has_run(container) && !td_life_restarts(&pod->life, container);
        if (container->is_init && !container->is_sidecar && has_ended &&
            td_life_exit_code(container) != 0) {
            return true;
        }
        is_over = is_over && (container->is_init || has_ended);
    }
    return is_over;
}

bool kubelet_step_containers(struct kubelet_pod *pod)
{
    struct kubelet_record *record = pod->record;
    bool may_start = true;
    bool has_begun = false;
    for (size_t i = 0; i < record->count; i++) {
        has_begun =
            has_begun || (!pod->containers[i].is_init && td_life_has_run(&pod->containers[i]));
    }
    for (size_t i = 0; i < record->count; i++) {
        /* A sidecar that is being restarted does not hold back containers that have run before. */
        containers_step(pod, i, may_start || has_begun);
        if (pod->containers[i].is_init) {
            may_start = may_start && td_life_is_initialized(&pod->containers[i]);
        }
    }
    if (!containers_are_over(pod)) {
        return false;
    }
    for (size_t i = 0; i < record->count; i++) {
        if (td_life_state(&pod->containers[i]) == TD_LIFE_RUNNING) {
            containers_end(pod, i, 0, NULL);
        }
    }
    return true;
}

void kubelet_restart_container(struct kubelet_pod *pod, size_t index)
{
    const struct td_life_container *container = &pod->containers[index];
    kubelet_tell_of(pod, container, "Normal", "Killing",
                    td_arena_format(pod->life.arena, "Container %.*s resize requires restart",
                                    TD_STR_ARG(container->name)));
    containers_end(pod, index, 0, NULL);
    containers_start(pod, index);
}

void kubelet_end_all(struct kubelet_pod *pod, int64_t exit_code)
{
    for (size_t i = 0; i < pod->record->count; i++) {
        if (td_life_state(&pod->containers[i]) != TD_LIFE_ENDED) {
            containers_end(pod, i, exit_code, NULL);
        }
    }
}
