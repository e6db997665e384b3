/*
 * Does everything that a scenario names exist? Objects may be in the cluster already, or come with
 * a manifest that an event of the scenario applies later.
 */
#include "base/error.h"
#include "base/limits.h"
#include "local/resources/resource.h"
#include "sim/world/world_private.h"

/* Where a name stands in the scenario's file: "spec.demand[0].target". */
struct target_place {
    uint32_t line;
    const char *list;
    size_t index;
    const char *part;
    td_str value;
};

static int target_refuse(const struct td_world *world, const struct target_place *place,
                         const char *why, struct td_error *err)
{
    return td_error_set(err, TD_INVALID, "%.*s:%u: spec.%s[%zu].%s: %.*s: %s",
                        TD_STR_ARG(world->scenario->path), (unsigned)place->line, place->list,
                        place->index, place->part, TD_STR_ARG(place->value), why);
}

/* Among the objects that events bring. */
static const struct td_json *target_in_files(const struct td_world *world, td_str kind, td_str name)
{
    td_str ns = world->scenario->ns;
    for (size_t e = 0; e < world->scenario->event_count; e++) {
        const struct td_manifest *file = &world->schedule.files[e];
        for (size_t i = 0; i < file->count; i++) {
            const struct td_manifest_object *object = &file->items[i];
            bool is_here = object->namespace.len == 0 || td_str_equal(object->namespace, ns);
            if (is_here && td_str_equal(object->kind, kind) && td_str_equal(object->name, name)) {
                return object->tree;
            }
        }
    }
    return NULL;
}

static const struct td_json *target_find(struct td_world *world, struct td_arena *arena,
                                         td_str kind, td_str name)
{
    const struct td_resource *resource = td_world_resource_of_kind(world, kind);
    const struct td_collection *collection =
        resource ? td_store_find(td_api_store(world->api), resource->collection) : NULL;
    td_str ns = resource && resource->is_namespaced ? world->scenario->ns : TD_STR_EMPTY;
    const struct td_stored *stored = collection ? td_collection_get(collection, ns, name) : NULL;
    struct td_json *object;
    if (stored && td_json_parse(arena, stored->json, NULL, &object, NULL) == TD_OK) {
        return object;
    }
    return target_in_files(world, kind, name);
}

/* The pod that the object makes, or NULL: its kind keeps it elsewhere. */
static const struct td_json *target_pod_spec(const struct td_json *object, td_str kind)
{
    if (td_str_equal(kind, TD_STR("Pod"))) {
        return td_json_get(object, TD_STR("spec"));
    }
    return td_json_get_path(object, td_str_equal(kind, TD_STR("CronJob"))
                                        ? "spec.jobTemplate.spec.template.spec"
                                        : "spec.template.spec");
}

static bool target_has_container(const struct td_json *spec, td_str name)
{
    static const char *const lists[] = {"containers", "initContainers"};
    for (size_t i = 0; i < TD_COUNT(lists); i++) {
        const struct td_json *list = td_json_get(spec, td_str_from(lists[i]));
        for (const struct td_json *c = td_json_first_item(list); c; c = c->next) {
            if (td_str_equal(td_json_text(c, "name"), name)) {
                return true;
            }
        }
    }
    return false;
}

static int check_demand(struct td_world *world, struct td_arena *arena, size_t index,
                        struct td_error *err)
{
    const struct td_demand *demand = &world->scenario->demands[index];
    struct target_place place = {
        .line = demand->line,
        .list = "demand",
        .index = index,
        .part = "target",
        .value =
            td_arena_format(arena, "%.*s/%.*s", TD_STR_ARG(demand->kind), TD_STR_ARG(demand->name)),
    };
    const struct td_json *object = target_find(world, arena, demand->kind, demand->name);
    if (!object) {
        return target_refuse(world, &place, "no such object in the manifests", err);
    }
    const struct td_json *spec = target_pod_spec(object, demand->kind);
    if (demand->container.len > 0 && spec && !target_has_container(spec, demand->container)) {
        place.part = "target.container";
        place.value = demand->container;
        return target_refuse(world, &place, "no such container in its pods", err);
    }
    td_str schedule = td_json_text(td_json_get(object, TD_STR("spec")), "schedule");
    bool is_cron = td_str_equal(demand->kind, TD_STR("CronJob"));
    return is_cron ? td_scenario_check_schedule(world->scenario, index, schedule,
                                                td_clock_wall(td_loop_clock(world->loop)), err)
                   : TD_OK;
}

static int event_refuse(const struct td_world *world, const struct td_scenario_event *event,
                        const char *part, td_str value, const char *why, struct td_error *err)
{
    const struct target_place place = {
        .line = event->line,
        .list = "events",
        .index = td_world_event_index(world->scenario, event),
        .part = part,
        .value = value,
    };
    return target_refuse(world, &place, why, err);
}

static int check_event_target(struct td_world *world, struct td_arena *arena,
                              const struct td_scenario_event *event, struct td_error *err)
{
    const struct td_resource *resource = td_world_resource_of_kind(world, event->kind);
    td_str value =
        td_arena_format(arena, "%.*s/%.*s", TD_STR_ARG(event->kind), TD_STR_ARG(event->name));
    if (!target_find(world, arena, event->kind, event->name)) {
        return event_refuse(world, event, "target", value, "no such object in the manifests", err);
    }
    if (event->action == TD_ACTION_SCALE && resource &&
        (resource->subresources & TD_SUB_SCALE) == 0) {
        return event_refuse(world, event, "target", value, "cannot be scaled", err);
    }
    td_str start = td_arena_format(arena, "%.*s-", TD_STR_ARG(event->name));
    if (event->action == TD_ACTION_MOVE_ROLE && td_str_equal(event->kind, TD_STR("StatefulSet")) &&
        !td_str_starts_with(event->to, start)) {
        return event_refuse(world, event, "to", event->to, "not a pod of the target", err);
    }
    return TD_OK;
}

static int check_event(struct td_world *world, struct td_arena *arena,
                       const struct td_scenario_event *event, struct td_error *err)
{
    if (event->action != TD_ACTION_NODE_LOSS) {
        return event->name.len > 0 ? check_event_target(world, arena, event, err) : TD_OK;
    }
    const struct td_collection *nodes = td_store_find(td_api_store(world->api), TD_STR("nodes"));
    return nodes && td_collection_get(nodes, TD_STR_EMPTY, event->node)
               ? TD_OK
               : event_refuse(world, event, "node", event->node, "no such node in the cluster",
                              err);
}

int td_world_check_targets(struct td_world *world, struct td_error *err)
{
    const struct td_scenario *scenario = world->scenario;
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    int code = TD_OK;
    for (size_t i = 0; scenario && code == TD_OK && i < scenario->demand_count; i++) {
        td_arena_reset(&arena);
        code = check_demand(world, &arena, i, err);
    }
    for (size_t i = 0; scenario && code == TD_OK && i < scenario->event_count; i++) {
        td_arena_reset(&arena);
        code = check_event(world, &arena, &scenario->events[i], err);
    }
    return code;
}
