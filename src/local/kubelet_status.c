#include "local/kubelet_status.h"

#include "base/hmac.h"
#include "base/limits.h"
#include "base/map.h"
#include "local/condition.h"
#include "local/write.h"

/* Which containers a list of statuses is about. */
enum life_list { LIFE_CONTAINERS, LIFE_INIT };

static struct td_json *life_status(const struct td_pod_life *life)
{
    return td_json_ensure_object(life->arena, life->pod, TD_STR("status"));
}

static const struct td_json *life_containers(const struct td_pod_life *life, enum life_list list)
{
    const struct td_json *spec = td_json_get(life->pod, TD_STR("spec"));
    const struct td_json *containers =
        td_json_get(spec, list == LIFE_INIT ? TD_STR("initContainers") : TD_STR("containers"));
    return td_json_is(containers, TD_JSON_TYPE_ARRAY) && containers->first ? containers : NULL;
}

static td_str life_statuses_key(enum life_list list)
{
    return list == LIFE_INIT ? TD_STR("initContainerStatuses") : TD_STR("containerStatuses");
}

static struct td_json *life_time(const struct td_pod_life *life)
{
    return td_meta_time(life->arena, td_time_to_instant(life->now));
}

static bool life_is_sidecar(const struct td_json *container)
{
    return td_str_equal(td_json_get_str(container, TD_STR("restartPolicy"), TD_STR_EMPTY),
                        TD_STR("Always"));
}

static int64_t life_generation(const struct td_pod_life *life)
{
    return td_json_get_int64(td_json_get(life->pod, TD_STR("metadata")), TD_STR("generation"), 0);
}

bool td_pod_life_condition(const struct td_pod_life *life, const char *type, const char *status,
                           const char *reason, td_str message)
{
    struct td_json *owner = life_status(life);
    if (!status) {
        return td_condition_remove(owner, td_str_from(type));
    }
    const struct td_condition condition = {
        .type = td_str_from(type),
        .status = td_str_from(status),
        .reason = td_str_from(reason),
        .message = message,
        .observed_generation = life_generation(life),
        .has_probe_time = true,
    };
    return td_condition_set(life->arena, owner, &condition, td_time_to_instant(life->now));
}

void td_pod_life_observe(const struct td_pod_life *life)
{
    if (life_generation(life) > 0) {
        td_json_set_int64(life->arena, life_status(life), TD_STR("observedGeneration"),
                          life_generation(life));
    }
}

/* ---- One container ---- */

/* 64 hexadecimal digits that follow from what names the container: the same in every run. */
static td_str life_digest(const struct td_pod_life *life, td_str text)
{
    unsigned char hash[TD_HMAC_BYTES];
    td_hmac_sha256(TD_STR("tandem"), text, hash);
    td_auto_buf digits;
    td_buf_init(&digits, 2 * TD_HMAC_BYTES);
    for (size_t i = 0; i < TD_HMAC_BYTES; i++) {
        (void)td_buf_append_format(&digits, "%02x", hash[i]); /* it fits */
    }
    return td_arena_copy_str(life->arena, td_buf_str(&digits));
}

static td_str life_container_id(const struct td_pod_life *life, const struct td_json *status)
{
    td_str uid =
        td_json_get_str(td_json_get(life->pod, TD_STR("metadata")), TD_STR("uid"), TD_STR_EMPTY);
    td_str text = td_arena_format(life->arena, "%.*s/%.*s/%lld", TD_STR_ARG(uid),
                                  TD_STR_ARG(td_json_get_str(status, TD_STR("name"), TD_STR_EMPTY)),
                                  (long long)td_json_get_int64(status, TD_STR("restartCount"), 0));
    return td_arena_format(life->arena, "tandem://%.*s", TD_STR_ARG(life_digest(life, text)));
}

static void life_set_bool(const struct td_pod_life *life, struct td_json *object, td_str key,
                          bool value)
{
    td_json_set(life->arena, object, key, td_json_new_bool(life->arena, value));
}

static void life_set_copy(const struct td_pod_life *life, struct td_json *object, td_str key,
                          const struct td_json *value)
{
    if (value) {
        td_json_set(life->arena, object, key, td_json_copy(life->arena, value, false));
    } else {
        (void)td_json_remove(object, key); /* may be absent */
    }
}

/* The state of a status is this and nothing else; its object is returned. */
static struct td_json *life_set_state(const struct td_pod_life *life, struct td_json *status,
                                      td_str key, td_str state)
{
    struct td_json *holder = td_json_new_object(life->arena);
    struct td_json *value = td_json_ensure_object(life->arena, holder, state);
    td_json_set(life->arena, status, key, holder);
    return value;
}

static void life_wait(const struct td_pod_life *life, struct td_json *status, td_str reason)
{
    struct td_json *waiting = life_set_state(life, status, TD_STR("state"), TD_STR("waiting"));
    td_json_set_str(life->arena, waiting, TD_STR("reason"), reason);
    life_set_bool(life, status, TD_STR("ready"), false);
    life_set_bool(life, status, TD_STR("started"), false);
}

static void life_start(const struct td_pod_life *life, struct td_json *status)
{
    td_str image = td_json_get_str(status, TD_STR("image"), TD_STR_EMPTY);
    struct td_json *running = life_set_state(life, status, TD_STR("state"), TD_STR("running"));
    td_json_set(life->arena, running, TD_STR("startedAt"), life_time(life));
    td_json_set_str(life->arena, status, TD_STR("containerID"), life_container_id(life, status));
    td_json_set_str(
        life->arena, status, TD_STR("imageID"),
        td_arena_format(life->arena, "sha256:%.*s", TD_STR_ARG(life_digest(life, image))));
    life_set_bool(life, status, TD_STR("ready"), true);
    life_set_bool(life, status, TD_STR("started"), true);
}

/* Under `key`: "state", or "lastState" of one that is started again. */
static void life_end(const struct td_pod_life *life, struct td_json *status, td_str key,
                     int64_t exit_code)
{
    const struct td_json *began =
        td_json_get_path(td_json_get(status, TD_STR("state")), "running.startedAt");
    struct td_json *since = began ? td_json_copy(life->arena, began, false) : life_time(life);
    struct td_json *ended = life_set_state(life, status, key, TD_STR("terminated"));
    life_set_copy(life, ended, TD_STR("containerID"), td_json_get(status, TD_STR("containerID")));
    td_json_set_int64(life->arena, ended, TD_STR("exitCode"), exit_code);
    td_json_set(life->arena, ended, TD_STR("finishedAt"), life_time(life));
    td_json_set_str(life->arena, ended, TD_STR("reason"),
                    exit_code == 0 ? TD_STR("Completed") : TD_STR("Error"));
    td_json_set(life->arena, ended, TD_STR("startedAt"), since);
    life_set_bool(life, status, TD_STR("ready"), false);
    life_set_bool(life, status, TD_STR("started"), false);
}

/* What is in use is what the spec says. */
static void life_set_resources(const struct td_pod_life *life, struct td_json *status,
                               const struct td_json *container)
{
    const struct td_json *resources = td_json_get(container, TD_STR("resources"));
    life_set_copy(life, status, TD_STR("allocatedResources"),
                  td_json_get(resources, TD_STR("requests")));
    td_json_set(life->arena, status, TD_STR("resources"),
                resources ? td_json_copy(life->arena, resources, false)
                          : td_json_new_object(life->arena));
}

static struct td_json *life_new_status(const struct td_pod_life *life,
                                       const struct td_json *container)
{
    struct td_json *status = td_json_new_object(life->arena);
    td_json_set_str(life->arena, status, TD_STR("name"),
                    td_json_get_str(container, TD_STR("name"), TD_STR_EMPTY));
    td_json_set_str(life->arena, status, TD_STR("image"),
                    td_json_get_str(container, TD_STR("image"), TD_STR_EMPTY));
    td_json_set_str(life->arena, status, TD_STR("imageID"), TD_STR_EMPTY);
    td_json_set(life->arena, status, TD_STR("lastState"), td_json_new_object(life->arena));
    td_json_set_int64(life->arena, status, TD_STR("restartCount"), 0);
    life_set_resources(life, status, container);
    return status;
}

/* ---- Lists of them ---- */

/* The statuses of a list in the order of its containers, missing ones made. */
static struct td_json *life_statuses(const struct td_pod_life *life, enum life_list list)
{
    const struct td_json *containers = life_containers(life, list);
    const struct td_json *old = td_json_get(life_status(life), life_statuses_key(list));
    struct td_json *statuses = td_json_new_array(life->arena);
    td_auto_map known;
    td_map_init(&known, TD_POD_CONTAINERS_MAX);
    const struct td_json *s = td_json_is(old, TD_JSON_TYPE_ARRAY) ? old->first : NULL;
    for (; s; s = s->next) {
        (void)td_map_put(&known, td_json_get_str(s, TD_STR("name"), TD_STR_EMPTY),
                         td_json_copy(life->arena, s, false)); /* at the cap: made anew */
    }
    for (const struct td_json *c = containers ? containers->first : NULL; c; c = c->next) {
        struct td_json *status =
            td_map_remove(&known, td_json_get_str(c, TD_STR("name"), TD_STR_EMPTY));
        td_json_append(statuses, status ? status : life_new_status(life, c));
    }
    if (statuses->count > 0) {
        td_json_set(life->arena, life_status(life), life_statuses_key(list), statuses);
    }
    return statuses;
}

static td_str life_names(const struct td_pod_life *life, enum life_list list)
{
    const struct td_json *containers = life_containers(life, list);
    td_auto_buf text;
    td_buf_init(&text, TD_STATUS_MESSAGE_BYTES_MAX);
    for (const struct td_json *c = containers ? containers->first : NULL; c; c = c->next) {
        (void)td_buf_append_format(
            &text, "%s%.*s", c == containers->first ? "" : " ",
            TD_STR_ARG(td_json_get_str(c, TD_STR("name"), TD_STR_EMPTY))); /* sticky */
    }
    return td_arena_copy_str(life->arena, td_buf_str(&text));
}

static void life_set_unready(const struct td_pod_life *life, const char *reason, td_str message)
{
    (void)td_pod_life_condition(life, "Ready", "False", reason, message);
    (void)td_pod_life_condition(life, "ContainersReady", "False", reason, message);
}

static void life_set_not_ready(const struct td_pod_life *life)
{
    life_set_unready(life, "ContainersNotReady",
                     td_arena_format(life->arena, "containers with unready status: [%s]",
                                     life_names(life, LIFE_CONTAINERS).ptr));
}

static void life_set_addresses(const struct td_pod_life *life, td_str one, td_str all,
                               td_str address)
{
    struct td_json *entry = td_json_new_object(life->arena);
    struct td_json *list = td_json_new_array(life->arena);
    td_json_set_str(life->arena, entry, TD_STR("ip"), address);
    td_json_append(list, entry);
    td_json_set_str(life->arena, life_status(life), one, address);
    td_json_set(life->arena, life_status(life), all, list);
}

/* The pod's own resources, of those that have them. */
static void life_set_whole(const struct td_pod_life *life)
{
    const struct td_json *whole = td_json_get_path(life->pod, "spec.resources");
    life_set_copy(life, life_status(life), TD_STR("resources"), whole);
    life_set_copy(life, life_status(life), TD_STR("allocatedResources"),
                  td_json_get(whole, TD_STR("requests")));
}

/* ---- Steps ---- */

void td_pod_life_create(const struct td_pod_life *life)
{
    struct td_json *status = life_status(life);
    bool has_init = life_containers(life, LIFE_INIT) != NULL;
    td_json_set_str(life->arena, status, TD_STR("phase"), TD_STR("Pending"));
    (void)td_pod_life_condition(life, "PodReadyToStartContainers", "False", NULL, TD_STR_EMPTY);
    (void)td_pod_life_condition(
        life, "Initialized", has_init ? "False" : "True",
        has_init ? "ContainersNotInitialized" : NULL,
        has_init ? td_arena_format(life->arena, "containers with incomplete status: [%s]",
                                   life_names(life, LIFE_INIT).ptr)
                 : TD_STR_EMPTY);
    life_set_not_ready(life);
    (void)td_pod_life_condition(life, "PodScheduled", "True", NULL, TD_STR_EMPTY);
    if (life->host_address.len > 0) {
        life_set_addresses(life, TD_STR("hostIP"), TD_STR("hostIPs"), life->host_address);
    }
    td_json_set(life->arena, status, TD_STR("startTime"), life_time(life));
    td_str reason = has_init ? TD_STR("PodInitializing") : TD_STR("ContainerCreating");
    for (enum life_list list = LIFE_CONTAINERS; list <= LIFE_INIT; list++) {
        for (struct td_json *s = life_statuses(life, list)->first; s; s = s->next) {
            life_wait(life, s, reason);
        }
    }
    life_set_whole(life);
    td_pod_life_observe(life);
}

/* Was it started before? Then it counts a restart now. */
static void life_start_again(const struct td_pod_life *life, struct td_json *status)
{
    bool ran = td_json_get_path(td_json_get(status, TD_STR("lastState")), "terminated") != NULL &&
               td_json_get_path(td_json_get(status, TD_STR("state")), "waiting") != NULL;
    if (ran) {
        td_json_set_int64(life->arena, status, TD_STR("restartCount"),
                          td_json_get_int64(status, TD_STR("restartCount"), 0) + 1);
    }
    life_start(life, status);
}

static void life_run_init(const struct td_pod_life *life)
{
    const struct td_json *container = life_containers(life, LIFE_INIT);
    container = container ? container->first : NULL;
    struct td_json *s = container ? life_statuses(life, LIFE_INIT)->first : NULL;
    for (; s && container; s = s->next, container = container->next) {
        bool is_over = td_json_get_path(td_json_get(s, TD_STR("state")), "terminated") != NULL;
        bool is_running = td_json_get_path(td_json_get(s, TD_STR("state")), "running") != NULL;
        if (life_is_sidecar(container) ? !is_running : !is_over) {
            life_start(life, s);
        }
        if (!life_is_sidecar(container) && !is_over) {
            life_end(life, s, TD_STR("state"), 0);
            life_set_bool(life, s, TD_STR("ready"), true); /* of an init container: it is done */
        }
    }
}

void td_pod_life_run(const struct td_pod_life *life)
{
    struct td_json *status = life_status(life);
    life_run_init(life);
    for (struct td_json *s = life_statuses(life, LIFE_CONTAINERS)->first; s; s = s->next) {
        if (!td_json_get_path(td_json_get(s, TD_STR("state")), "running")) {
            life_start_again(life, s);
        }
    }
    td_json_set_str(life->arena, status, TD_STR("phase"), TD_STR("Running"));
    if (life->pod_address.len > 0) {
        life_set_addresses(life, TD_STR("podIP"), TD_STR("podIPs"), life->pod_address);
    }
    static const char *const conditions[] = {"PodReadyToStartContainers", "Initialized", "Ready",
                                             "ContainersReady"};
    for (size_t i = 0; i < sizeof(conditions) / sizeof(conditions[0]); i++) {
        (void)td_pod_life_condition(life, conditions[i], "True", NULL, TD_STR_EMPTY);
    }
    td_pod_life_observe(life);
}

void td_pod_life_finish(const struct td_pod_life *life, int64_t exit_code)
{
    const char *reason = exit_code == 0 ? "PodCompleted" : "PodFailed";
    for (enum life_list list = LIFE_CONTAINERS; list <= LIFE_INIT; list++) {
        for (struct td_json *s = life_statuses(life, list)->first; s; s = s->next) {
            if (!td_json_get_path(td_json_get(s, TD_STR("state")), "terminated")) {
                life_end(life, s, TD_STR("state"), list == LIFE_INIT ? 0 : exit_code);
            }
        }
    }
    td_json_set_str(life->arena, life_status(life), TD_STR("phase"),
                    exit_code == 0 ? TD_STR("Succeeded") : TD_STR("Failed"));
    (void)td_pod_life_condition(life, "PodReadyToStartContainers", "False", NULL, TD_STR_EMPTY);
    (void)td_pod_life_condition(life, "Initialized", "True", exit_code == 0 ? reason : NULL,
                                TD_STR_EMPTY);
    life_set_unready(life, reason, TD_STR_EMPTY);
    (void)td_pod_life_condition(life, "PodResizePending", NULL, NULL, TD_STR_EMPTY);
    (void)td_pod_life_condition(life, "PodResizeInProgress", NULL, NULL, TD_STR_EMPTY);
    td_pod_life_observe(life);
}

void td_pod_life_crash(const struct td_pod_life *life, int64_t exit_code, td_duration pause)
{
    char text[TD_DURATION_TEXT_BYTES];
    (void)td_duration_format(pause, text); /* its length is not needed */
    for (struct td_json *s = life_statuses(life, LIFE_CONTAINERS)->first; s; s = s->next) {
        life_end(life, s, TD_STR("lastState"), exit_code);
        life_wait(life, s, TD_STR("CrashLoopBackOff"));
        td_json_set_str(
            life->arena, td_json_get_path(td_json_get(s, TD_STR("state")), "waiting"),
            TD_STR("message"),
            td_arena_format(life->arena, "back-off %s restarting failed container=%.*s", text,
                            TD_STR_ARG(td_json_get_str(s, TD_STR("name"), TD_STR_EMPTY))));
    }
    life_set_not_ready(life);
    td_pod_life_observe(life);
}

bool td_pod_life_is_crashed(const struct td_pod_life *life)
{
    const struct td_json *list =
        td_json_get(td_json_get(life->pod, TD_STR("status")), TD_STR("containerStatuses"));
    return td_json_is(list, TD_JSON_TYPE_ARRAY) && list->first &&
           td_json_get_path(list->first, "state.waiting") &&
           td_json_get_path(list->first, "lastState.terminated");
}

int64_t td_pod_life_restarts(const struct td_pod_life *life)
{
    const struct td_json *list =
        td_json_get(td_json_get(life->pod, TD_STR("status")), TD_STR("containerStatuses"));
    int64_t most = 0;
    for (const struct td_json *s = td_json_is(list, TD_JSON_TYPE_ARRAY) ? list->first : NULL; s;
         s = s->next) {
        int64_t restarts = td_json_get_int64(s, TD_STR("restartCount"), 0);
        most = restarts > most ? restarts : most;
    }
    return most;
}

/* ---- Resizing ---- */

/* Equal requests and limits; one that is not there is like an empty one. */
static bool life_same_resources(const struct td_json *a, const struct td_json *b)
{
    static const td_str lists[] = {TD_STR_INIT("requests"), TD_STR_INIT("limits")};
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        const struct td_json *x = td_json_get(a, lists[i]);
        const struct td_json *y = td_json_get(b, lists[i]);
        bool is_empty = (!x || x->count == 0) && (!y || y->count == 0);
        if (!is_empty && !td_json_equal(x, y)) {
            return false;
        }
    }
    return true;
}

/* Only what runs is resized: containers and sidecars. */
static bool life_is_resizable(enum life_list list, const struct td_json *container)
{
    return list == LIFE_CONTAINERS || life_is_sidecar(container);
}

bool td_pod_life_is_resized(const struct td_pod_life *life)
{
    const struct td_json *status = td_json_get(life->pod, TD_STR("status"));
    if (!life_same_resources(td_json_get_path(life->pod, "spec.resources"),
                             td_json_get(status, TD_STR("resources")))) {
        return true;
    }
    for (enum life_list list = LIFE_CONTAINERS; list <= LIFE_INIT; list++) {
        const struct td_json *c = life_containers(life, list);
        const struct td_json *s = td_json_get(status, life_statuses_key(list));
        c = c ? c->first : NULL;
        s = td_json_is(s, TD_JSON_TYPE_ARRAY) ? s->first : NULL;
        for (; c && s; c = c->next, s = s->next) {
            if (life_is_resizable(list, c) &&
                !life_same_resources(td_json_get(c, TD_STR("resources")),
                                     td_json_get(s, TD_STR("resources")))) {
                return true;
            }
        }
    }
    return false;
}

void td_pod_life_allocate(const struct td_pod_life *life)
{
    for (enum life_list list = LIFE_CONTAINERS; list <= LIFE_INIT; list++) {
        const struct td_json *c = life_containers(life, list);
        c = c ? c->first : NULL;
        struct td_json *s = c ? life_statuses(life, list)->first : NULL;
        for (; c && s; c = c->next, s = s->next) {
            if (life_is_resizable(list, c)) {
                life_set_copy(life, s, TD_STR("allocatedResources"),
                              td_json_get_path(c, "resources.requests"));
            }
        }
    }
    life_set_copy(life, life_status(life), TD_STR("allocatedResources"),
                  td_json_get_path(life->pod, "spec.resources.requests"));
    td_pod_life_observe(life);
}

static const struct td_json *life_amount(const struct td_json *resources, const char *list,
                                         td_str name)
{
    return td_json_get(td_json_get(resources, td_str_from(list)), name);
}

/* Does a change of cpu or memory demand a restart of the container? */
static bool life_restarts_by_resize(const struct td_json *container, const struct td_json *status)
{
    const struct td_json *policies = td_json_get(container, TD_STR("resizePolicy"));
    const struct td_json *now = td_json_get(container, TD_STR("resources"));
    const struct td_json *before = td_json_get(status, TD_STR("resources"));
    const struct td_json *p = td_json_is(policies, TD_JSON_TYPE_ARRAY) ? policies->first : NULL;
    for (; p; p = p->next) {
        td_str name = td_json_get_str(p, TD_STR("resourceName"), TD_STR_EMPTY);
        bool restarts = td_str_equal(td_json_get_str(p, TD_STR("restartPolicy"), TD_STR_EMPTY),
                                     TD_STR("RestartContainer"));
        if (restarts && (!td_json_equal(life_amount(now, "requests", name),
                                        life_amount(before, "requests", name)) ||
                         !td_json_equal(life_amount(now, "limits", name),
                                        life_amount(before, "limits", name)))) {
            return true;
        }
    }
    return false;
}

void td_pod_life_actuate(const struct td_pod_life *life)
{
    for (enum life_list list = LIFE_CONTAINERS; list <= LIFE_INIT; list++) {
        const struct td_json *c = life_containers(life, list);
        c = c ? c->first : NULL;
        struct td_json *s = c ? life_statuses(life, list)->first : NULL;
        for (; c && s; c = c->next, s = s->next) {
            if (!life_is_resizable(list, c)) {
                continue;
            }
            if (life_restarts_by_resize(c, s)) {
                life_end(life, s, TD_STR("lastState"), 0);
                td_json_set_int64(life->arena, s, TD_STR("restartCount"),
                                  td_json_get_int64(s, TD_STR("restartCount"), 0) + 1);
                life_start(life, s);
            }
            life_set_resources(life, s, c);
        }
    }
    life_set_whole(life);
    (void)td_pod_life_condition(life, "PodResizeInProgress", NULL, NULL, TD_STR_EMPTY);
    (void)td_pod_life_condition(life, "PodResizePending", NULL, NULL, TD_STR_EMPTY);
    td_pod_life_observe(life);
}
