/*
 * Container states, conditions and phases written into the tree of a pod, in the order and the
 * words of a kubelet.
 */
#include "local/nodes/kubelet_status.h"

#include "base/limits.h"
#include "base/map.h"
#include "base/pki/hmac.h"
#include "local/api/write.h"
#include "local/kinds/condition.h"
#include "model/pod.h"

#define LIFE_CONTAINERS "containerStatuses"
#define LIFE_INIT "initContainerStatuses"

static struct td_json *life_status(const struct td_pod_life *life)
{
    return td_json_ensure_object(life->arena, life->pod, TD_STR("status"));
}

static const struct td_json *life_first(const struct td_json *object, const char *key)
{
    const struct td_json *list = td_json_get(object, td_str_from(key));
    return td_json_first_item(list);
}

static struct td_json *life_time(const struct td_pod_life *life)
{
    return td_meta_time(life->arena, td_time_to_instant(life->now));
}

static int64_t life_generation(const struct td_pod_life *life)
{
    return td_json_get_int64(td_json_get(life->pod, TD_STR("metadata")), TD_STR("generation"), 0);
}

bool td_pod_life_condition_of(struct td_pod_life *life, int64_t generation,
                              const struct td_life_condition *reported)
{
    struct td_json *owner = life_status(life);
    const struct td_condition condition = {
        .type = td_str_from(reported->type),
        .status = td_str_from(reported->status),
        .reason = td_str_from(reported->reason),
        .message = reported->message,
        .observed_generation = generation,
        .has_probe_time = true,
    };
    bool is_changed = reported->status ? td_condition_set(life->arena, owner, &condition,
                                                          td_time_to_instant(life->now))
                                       : td_condition_remove(owner, condition.type);
    life->is_changed = life->is_changed || is_changed;
    return is_changed;
}

bool td_pod_life_condition(struct td_pod_life *life, const char *type, const char *status,
                           const char *reason, td_str message)
{
    const struct td_life_condition condition = {
        .type = type, .status = status, .reason = reason, .message = message};
    return td_pod_life_condition_of(life, life_generation(life), &condition);
}

/* ---- One container ---- */

/* 64 hexadecimal digits that follow from what names the container: the same in every run. */
static td_str life_digest(const struct td_pod_life *life, td_str text)
{
    unsigned char hash[TD_HMAC_BYTES];
    td_hmac_sha256(TD_STR("tandem"), text, hash);
    td_auto_buf digits = td_buf_capped(2 * TD_HMAC_BYTES);
    for (size_t i = 0; i < TD_HMAC_BYTES; i++) {
        (void)td_buf_append_format(&digits, "%02x", hash[i]); /* it fits */
    }
    return td_arena_copy_str(life->arena, td_buf_str(&digits));
}

static td_str life_container_id(const struct td_pod_life *life, const struct td_json *status)
{
    td_str uid = td_json_text(td_json_get(life->pod, TD_STR("metadata")), "uid");
    td_str text = td_arena_format(life->arena, "%.*s/%.*s/%lld", TD_STR_ARG(uid),
                                  TD_STR_ARG(td_json_text(status, "name")),
                                  (long long)td_json_get_int64(status, TD_STR("restartCount"), 0));
    return td_arena_format(life->arena, "tandem://%.*s", TD_STR_ARG(life_digest(life, text)));
}

static void life_set_copy(struct td_pod_life *life, struct td_json *object, td_str key,
                          const struct td_json *value)
{
    if (value) {
        td_json_set_copy(life->arena, object, key, value);
    } else {
        (void)td_json_remove(object, key); /* may be absent */
    }
    life->is_changed = true;
}

/* The state of a status is this and nothing else; its object is returned. */
static struct td_json *life_set_state(struct td_pod_life *life, struct td_json *status,
                                      td_str state)
{
    struct td_json *holder = td_json_new_object(life->arena);
    struct td_json *value = td_json_ensure_object(life->arena, holder, state);
    td_json_set(life->arena, status, TD_STR("state"), holder);
    life->is_changed = true;
    return value;
}

enum td_life_state td_life_state(const struct td_life_container *container)
{
    const struct td_json *state = td_json_get(container->status, TD_STR("state"));
    if (td_json_get(state, TD_STR("running"))) {
        return TD_LIFE_RUNNING;
    }
    return td_json_get(state, TD_STR("terminated")) ? TD_LIFE_ENDED : TD_LIFE_WAITING;
}

/* How its last run ended, or NULL. */
static const struct td_json *life_ended(const struct td_life_container *container)
{
    const struct td_json *ended = td_json_get_path(container->status, "state.terminated");
    return ended ? ended : td_json_get_path(container->status, "lastState.terminated");
}

bool td_life_has_run(const struct td_life_container *container)
{
    return td_life_state(container) == TD_LIFE_RUNNING || life_ended(container) != NULL;
}

int64_t td_life_exit_code(const struct td_life_container *container)
{
    return td_json_get_int64(life_ended(container), TD_STR("exitCode"), 0);
}

bool td_life_restarts(const struct td_pod_life *life, const struct td_life_container *container)
{
    const struct td_json *spec = td_json_get(life->pod, TD_STR("spec"));
    td_str policy = td_json_get_str(spec, TD_STR("restartPolicy"), TD_STR("Always"));
    policy = td_json_get_str(container->spec, TD_STR("restartPolicy"), policy);
    bool is_failed = td_life_exit_code(container) != 0;
    if (td_str_equal(policy, TD_STR("Always"))) {
        return is_failed || !container->is_init || container->is_sidecar;
    }
    return is_failed && td_str_equal(policy, TD_STR("OnFailure"));
}

bool td_life_is_initialized(const struct td_life_container *container)
{
    return td_json_get_bool(container->status,
                            container->is_sidecar ? TD_STR("started") : TD_STR("ready"), false);
}

static void life_set_bool(struct td_pod_life *life, struct td_json *object, td_str key, bool value)
{
    const struct td_json *old = td_json_get(object, key);
    if (!old || td_json_get_bool(object, key, false) != value) {
        td_json_set_bool(life->arena, object, key, value);
        life->is_changed = true;
    }
}

void td_life_set_ready(struct td_pod_life *life, struct td_life_container *container,
                       bool is_started, bool is_ready)
{
    life_set_bool(life, container->status, TD_STR("ready"), is_ready);
    life_set_bool(life, container->status, TD_STR("started"), is_started);
}

static void life_wait(struct td_pod_life *life, struct td_life_container *container, td_str message,
                      td_str reason)
{
    struct td_json *waiting = life_set_state(life, container->status, TD_STR("waiting"));
    td_json_set_text(life->arena, waiting, TD_STR("message"), message);
    td_json_set_str(life->arena, waiting, TD_STR("reason"), reason);
    td_life_set_ready(life, container, false, false);
}

/* What its state says of its end is what happened last. */
static void life_keep_end(struct td_pod_life *life, struct td_life_container *container)
{
    const struct td_json *ended = td_json_get_path(container->status, "state.terminated");
    if (ended) {
        struct td_json *last = td_json_new_object(life->arena);
        td_json_set_copy(life->arena, last, TD_STR("terminated"), ended);
        td_json_set(life->arena, container->status, TD_STR("lastState"), last);
    }
}

void td_life_start(struct td_pod_life *life, struct td_life_container *container)
{
    struct td_json *status = container->status;
    if (td_life_has_run(container)) {
        td_json_set_int64(life->arena, status, TD_STR("restartCount"),
                          td_json_get_int64(status, TD_STR("restartCount"), 0) + 1);
    }
    life_keep_end(life, container);
    td_str image = td_json_text(status, "image");
    struct td_json *running = life_set_state(life, status, TD_STR("running"));
    td_json_set(life->arena, running, TD_STR("startedAt"), life_time(life));
    td_json_set_str(life->arena, status, TD_STR("containerID"), life_container_id(life, status));
    td_json_set_str(
        life->arena, status, TD_STR("imageID"),
        td_arena_format(life->arena, "sha256:%.*s", TD_STR_ARG(life_digest(life, image))));
    td_life_set_ready(life, container, false, false);
}

void td_life_end(struct td_pod_life *life, struct td_life_container *container, int64_t exit_code,
                 const char *reason)
{
    struct td_json *status = container->status;
    const struct td_json *began = td_json_get_path(status, "state.running.startedAt");
    struct td_json *since = began ? td_json_copy(life->arena, began, false) : life_time(life);
    const char *usual = exit_code == 0 ? "Completed" : "Error";
    struct td_json *ended = life_set_state(life, status, TD_STR("terminated"));
    life_set_copy(life, ended, TD_STR("containerID"), td_json_get(status, TD_STR("containerID")));
    td_json_set_int64(life->arena, ended, TD_STR("exitCode"), exit_code);
    td_json_set(life->arena, ended, TD_STR("finishedAt"), life_time(life));
    td_json_set_str(life->arena, ended, TD_STR("reason"), td_str_from(reason ? reason : usual));
    td_json_set(life->arena, ended, TD_STR("startedAt"), since);
    bool is_done = container->is_init && !container->is_sidecar && exit_code == 0;
    td_life_set_ready(life, container, false, is_done); /* of an init container: it is done */
}

void td_life_back_off(struct td_pod_life *life, struct td_life_container *container,
                      td_duration pause)
{
    const struct td_json *metadata = td_json_get(life->pod, TD_STR("metadata"));
    char text[TD_DURATION_TEXT_BYTES];
    (void)td_duration_format(pause, text); /* its length is not needed */
    life_keep_end(life, container);
    life_wait(life, container,
              td_arena_format(
                  life->arena, "back-off %s restarting failed container=%.*s pod=%.*s_%.*s(%.*s)",
                  text, TD_STR_ARG(container->name), TD_STR_ARG(td_json_text(metadata, "name")),
                  TD_STR_ARG(td_json_text(metadata, "namespace")),
                  TD_STR_ARG(td_json_text(metadata, "uid"))),
              TD_STR("CrashLoopBackOff"));
}

/* ---- Resources ---- */

bool td_life_same_resources(const struct td_json *a, const struct td_json *b)
{
    static const td_str lists[] = {TD_STR_INIT("requests"), TD_STR_INIT("limits")};
    for (size_t i = 0; i < TD_COUNT(lists); i++) {
        const struct td_json *x = td_json_get(a, lists[i]);
        const struct td_json *y = td_json_get(b, lists[i]);
        bool is_empty = (!x || x->count == 0) && (!y || y->count == 0);
        if (!is_empty && !td_json_equal(x, y)) {
            return false;
        }
    }
    return true;
}

void td_life_allocate(struct td_pod_life *life, struct td_life_container *container,
                      const struct td_json *resources)
{
    life_set_copy(life, container ? container->status : life_status(life),
                  TD_STR("allocatedResources"), td_json_get(resources, TD_STR("requests")));
}

void td_life_use(struct td_pod_life *life, struct td_life_container *container,
                 const struct td_json *resources)
{
    if (container && !resources) {
        resources = td_json_new_object(life->arena); /* theirs are never absent */
    }
    life_set_copy(life, container ? container->status : life_status(life), TD_STR("resources"),
                  resources);
}

static const struct td_json *life_amount(const struct td_json *resources, const char *list,
                                         td_str name)
{
    return td_json_get(td_json_get(resources, td_str_from(list)), name);
}

bool td_life_resize_restarts(const struct td_life_container *container,
                             const struct td_json *resources)
{
    const struct td_json *before = td_json_get(container->status, TD_STR("resources"));
    const struct td_json *p = life_first(container->spec, "resizePolicy");
    for (; p; p = p->next) {
        td_str name = td_json_text(p, "resourceName");
        bool restarts = td_str_equal(td_json_text(p, "restartPolicy"), TD_STR("RestartContainer"));
        if (restarts && (!td_json_equal(life_amount(resources, "requests", name),
                                        life_amount(before, "requests", name)) ||
                         !td_json_equal(life_amount(resources, "limits", name),
                                        life_amount(before, "limits", name)))) {
            return true;
        }
    }
    return false;
}

/* ---- All containers ---- */

static struct td_json *life_new_status(struct td_pod_life *life, const struct td_json *spec)
{
    struct td_json *status = td_json_new_object(life->arena);
    td_json_set_str(life->arena, status, TD_STR("name"), td_json_text(spec, "name"));
    td_json_set_str(life->arena, status, TD_STR("image"), td_json_text(spec, "image"));
    td_json_set_str(life->arena, status, TD_STR("imageID"), TD_STR_EMPTY);
    td_json_set(life->arena, status, TD_STR("lastState"), td_json_new_object(life->arena));
    td_json_set_int64(life->arena, status, TD_STR("restartCount"), 0);
    struct td_life_container container = {.spec = spec, .status = status};
    const struct td_json *resources = td_json_get(spec, TD_STR("resources"));
    td_life_allocate(life, &container, resources);
    td_life_use(life, &container, resources);
    const struct td_json *init =
        life_first(td_json_get(life->pod, TD_STR("spec")), "initContainers");
    life_wait(life, &container, TD_STR_EMPTY,
              init ? TD_STR("PodInitializing") : TD_STR("ContainerCreating"));
    return status;
}

static bool life_has_order(const struct td_json *spec, const struct td_json *status)
{
    while (spec && status &&
           td_str_equal(td_json_text(spec, "name"), td_json_text(status, "name"))) {
        spec = spec->next;
        status = status->next;
    }
    return !spec && !status;
}

/* The statuses of a list in the order of its containers, missing ones made; the first of them. */
static struct td_json *life_statuses(struct td_pod_life *life, const struct td_json *containers,
                                     const char *key)
{
    struct td_json *status = life_status(life);
    const struct td_json *old = life_first(status, key);
    if (life_has_order(containers, old)) {
        return old ? td_json_first_item(td_json_get(status, td_str_from(key))) : NULL;
    }
    struct td_json *statuses = td_json_new_array(life->arena);
    td_auto_map known = td_map_capped(TD_POD_CONTAINERS_MAX);
    for (; old; old = old->next) {
        (void)td_map_put(&known, td_json_text(old, "name"),
                         td_json_copy(life->arena, old, false)); /* at the cap: made anew */
    }
    for (const struct td_json *c = containers; c; c = c->next) {
        struct td_json *one = td_map_remove(&known, td_json_text(c, "name"));
        td_json_append(statuses, one ? one : life_new_status(life, c));
    }
    td_json_set(life->arena, status, td_str_from(key), statuses);
    life->is_changed = true;
    return td_json_first_item(statuses);
}

static size_t life_count(const struct td_json *spec, td_str key)
{
    const struct td_json *list = td_json_get(spec, key);
    return td_json_item_count(list);
}

struct td_life_container *td_pod_life_containers(struct td_pod_life *life, size_t *ret_count)
{
    const struct td_json *spec = td_json_get(life->pod, TD_STR("spec"));
    size_t init_count = life_count(spec, TD_STR("initContainers"));
    size_t count = init_count + life_count(spec, TD_STR("containers"));
    struct td_life_container *containers =
        td_arena_alloc_zero(life->arena, count, sizeof(*containers));
    const struct td_json *c = life_first(spec, "initContainers");
    struct td_json *s = life_statuses(life, c, LIFE_INIT);
    for (size_t i = 0; i < count; i++) {
        if (i == init_count) {
            c = life_first(spec, "containers");
            s = life_statuses(life, c, LIFE_CONTAINERS);
        }
        td_str policy = td_json_text(c, "restartPolicy");
        containers[i] = (struct td_life_container){
            .name = td_json_text(c, "name"),
            .spec = c,
            .status = s,
            .is_init = i < init_count,
            .is_sidecar = i < init_count && td_str_equal(policy, TD_STR("Always")),
        };
        c = c->next;
        s = s->next;
    }
    *ret_count = count;
    return containers;
}

/* ---- The pod ---- */

static void life_set_addresses(struct td_pod_life *life, td_str one, td_str all, td_str address)
{
    struct td_json *entry = td_json_new_object(life->arena);
    struct td_json *list = td_json_new_array(life->arena);
    td_json_set_str(life->arena, entry, TD_STR("ip"), address);
    td_json_append(list, entry);
    td_json_set_str(life->arena, life_status(life), one, address);
    td_json_set(life->arena, life_status(life), all, list);
    life->is_changed = true;
}

void td_pod_life_set_address(struct td_pod_life *life, td_str address)
{
    life_set_addresses(life, TD_STR("podIP"), TD_STR("podIPs"), address);
}

void td_pod_life_create(struct td_pod_life *life)
{
    struct td_json *status = life_status(life);
    const struct td_json *whole = td_json_get_path(life->pod, "spec.resources");
    size_t count;
    (void)td_pod_life_containers(life, &count); /* makes their statuses */
    if (life->host_address.len > 0) {
        life_set_addresses(life, TD_STR("hostIP"), TD_STR("hostIPs"), life->host_address);
    }
    td_json_set(life->arena, status, TD_STR("startTime"), life_time(life));
    td_life_use(life, NULL, whole);
    td_life_allocate(life, NULL, whole);
    td_pod_life_conclude(life, false);
}

bool td_pod_life_is_over(const struct td_pod_life *life)
{
    return td_pod_tree_is_over(life->pod);
}
