/*
 * Who has which role: what an operator of a database does, in small. Of the roles that a demand
 * entry names, the first is held by one pod, which keeps it while it lives and works; the last is
 * that of all other pods. When the holder is deleted, or not ready for a while, the ready pod with
 * the lowest name takes over. A scenario may move a role by hand. The label is the only memory:
 * what it says is true.
 */
#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/text.h"
#include "local/store/edit.h"
#include "sim/world/world_private.h"

#define ROLES_DELAY (1 * TD_SECOND)     /* from a change to a look */
#define ROLES_PATIENCE (15 * TD_SECOND) /* with a holder that is not ready */

/* The keeper's timer needs both. */
struct roles_keeper {
    struct td_world *world;
    struct td_world_workload *workload;
};

/* ---- Labels ---- */

/* An empty value takes the label away. */
static int role_write(struct td_world *world, td_str ns, td_str name, td_str label, td_str value,
                      struct td_error *err)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    const struct td_resource *pods = td_api_kind(world->api, TD_STR("v1"), TD_STR("Pod"));
    struct td_json *pod;
    int code = td_edit_get(world->api, pods, ns, name, &arena, &pod, err);
    if (code < 0) {
        return code;
    }
    struct td_json *metadata = td_json_ensure_object(&arena, pod, TD_STR("metadata"));
    struct td_json *labels = td_json_ensure_object(&arena, metadata, TD_STR("labels"));
    if (value.len > 0) {
        td_json_set_str(&arena, labels, label, value);
    } else {
        (void)td_json_remove(labels, label); /* or it had none */
    }
    return td_edit_put(world->api, pods, &arena, pod, err);
}

/* Remembered at once, since the observer is told later. */
static void role_give(struct td_world *world, struct td_world_pod *pod, td_str value)
{
    td_str label = pod->workload->roles->role_label;
    if (td_str_equal(pod->role, value) ||
        role_write(world, pod->ns, pod->name, label, value, NULL) != TD_OK) {
        return; /* a pod that is gone needs none */
    }
    td_text_set(&pod->role, value);
}

/* ---- The keeper ---- */

static bool role_is_known(const struct td_demand *roles, td_str value)
{
    for (size_t i = 0; i < roles->role_count; i++) {
        if (td_str_equal(roles->roles[i].value, value)) {
            return true;
        }
    }
    return false;
}

/* Ready ones first, then by name. */
static bool role_is_better(const struct td_world_pod *a, const struct td_world_pod *b)
{
    if (!b || a->is_ready != b->is_ready) {
        return !b || a->is_ready;
    }
    return td_str_compare(a->name, b->name) < 0;
}

struct roles_look {
    struct td_world_pod *holder; /* who has the first role; the best when several do */
    struct td_world_pod *best;   /* the ready pod with the lowest name */
};

static struct roles_look roles_look(const struct td_world_workload *workload)
{
    td_str first = workload->roles->roles[0].value;
    struct roles_look look = {.holder = NULL};
    for (struct td_world_pod *pod = workload->first_pod; pod; pod = pod->next) {
        if (pod->is_going) {
            continue;
        }
        if (td_str_equal(pod->role, first) && role_is_better(pod, look.holder)) {
            look.holder = pod;
        }
        if (pod->is_ready && role_is_better(pod, look.best)) {
            look.best = pod;
        }
    }
    return look;
}

/* Who is to hold the first role. */
static struct td_world_pod *roles_choose(const struct td_world *world,
                                         struct td_world_workload *workload)
{
    struct roles_look look = roles_look(workload);
    if (!look.holder || look.holder->is_ready || !look.best) {
        return look.holder ? look.holder : look.best;
    }
    td_duration left = look.holder->unready_since + ROLES_PATIENCE - td_engine_since(world->engine);
    if (left > 0) {
        td_timer_set(workload->role_timer, left);
        return look.holder;
    }
    return look.best;
}

static void roles_tell(struct td_world *world, const struct td_world_pod *pod, td_str value)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    const struct td_world_event event = {
        .at = td_engine_since(world->engine),
        .type = TD_STR("Normal"),
        .reason = TD_STR("RoleTaken"),
        .kind = TD_STR("Pod"),
        .ns = pod->ns,
        .name = pod->name,
        .message = td_arena_format(&arena, "is %.*s now", TD_STR_ARG(value)),
        .workload_kind = pod->workload->kind,
        .workload_name = pod->workload->name,
        .role = value,
    };
    td_world_tell(world, &event);
}

static void roles_keep(struct td_timer *timer, void *context)
{
    const struct roles_keeper *keeper = context;
    struct td_world_workload *workload = keeper->workload;
    const struct td_demand *roles = workload->roles;
    td_str first = roles->roles[0].value;
    td_str last = roles->role_count > 1 ? roles->roles[roles->role_count - 1].value : TD_STR_EMPTY;
    struct td_world_pod *holder = roles_choose(keeper->world, workload);
    (void)timer;
    for (struct td_world_pod *pod = workload->first_pod; pod; pod = pod->next) {
        bool is_holder = td_str_equal(pod->role, first);
        if (pod->is_going || pod == holder || (!is_holder && role_is_known(roles, pod->role))) {
            continue;
        }
        role_give(keeper->world, pod, last);
    }
    if (holder && !td_str_equal(holder->role, first)) {
        role_give(keeper->world, holder, first);
        roles_tell(keeper->world, holder, first);
    }
}

void td_world_roles_attach(struct td_world *world, struct td_world_workload *workload)
{
    const struct td_world_flow *entry = td_map_get(&world->role_entries, workload->key);
    if (!entry) {
        return;
    }
    struct roles_keeper *keeper = td_alloc_zero(1, sizeof(*keeper));
    keeper->world = world;
    keeper->workload = workload;
    workload->roles = &world->scenario->demands[entry - world->flows];
    workload->role_keeper = keeper;
    workload->role_timer = td_timer_new(world->loop, roles_keep, keeper);
}

void td_world_roles_detach(struct td_world_workload *workload)
{
    td_timer_free(workload->role_timer);
    td_free(workload->role_keeper);
}

void td_world_roles_wake(struct td_world_workload *workload)
{
    if (workload->role_timer && !td_timer_is_set(workload->role_timer)) {
        td_timer_set(workload->role_timer, ROLES_DELAY);
    }
}

/* ---- By hand ---- */

static td_str pod_label(struct td_world *world, const struct td_world_pod *pod, td_str label,
                        struct td_arena *arena)
{
    const struct td_resource *pods = td_api_kind(world->api, TD_STR("v1"), TD_STR("Pod"));
    struct td_json *object;
    if (td_edit_get(world->api, pods, pod->ns, pod->name, arena, &object, NULL) < 0) {
        return TD_STR_EMPTY;
    }
    return td_json_get_str(td_json_get_path(object, "metadata.labels"), label, TD_STR_EMPTY);
}

int td_world_roles_move(struct td_world *world, const struct td_scenario_event *event,
                        struct td_error *err)
{
    td_str ns = world->scenario->ns;
    struct td_world_workload *workload =
        td_world_find_workload(world, ns, event->kind, event->name);
    const struct td_world_pod *to = td_world_find_pod(world, ns, event->to);
    if (!workload || !to || to->workload != workload || to->is_going) {
        return td_error_set(err, TD_NOT_FOUND, "there is no pod %.*s of %.*s",
                            TD_STR_ARG(event->to), TD_STR_ARG(event->name));
    }
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    td_str had = pod_label(world, to, event->label_key, &arena);
    if (td_str_equal(had, event->label_value)) {
        return TD_OK;
    }
    for (const struct td_world_pod *pod = workload->first_pod; pod; pod = pod->next) {
        td_str value = pod == to ? TD_STR_EMPTY : pod_label(world, pod, event->label_key, &arena);
        if (pod != to && td_str_equal(value, event->label_value)) {
            int code = role_write(world, ns, pod->name, event->label_key, had, err);
            if (code < 0) {
                return code;
            }
        }
    }
    return role_write(world, ns, to->name, event->label_key, event->label_value, err);
}
