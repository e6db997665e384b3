#include "local/workloads/pod_workload.h"

#include "base/error.h"
#include "local/api/api.h"
#include "local/resources/resource.h"
#include "local/store/edit.h"
#include "model/owners.h"

struct workload_walk {
    struct td_api *api;
    struct td_arena *arena;
    struct td_pod_workload top;
};

static bool workload_controller(const struct td_json *object, td_str ns, struct td_controller *ret)
{
    const struct td_json *owner = td_meta_controller_tree(object);
    *ret = (struct td_controller){
        .namespace = ns,
        .api_version = td_json_get_str(owner, TD_STR("apiVersion"), TD_STR_EMPTY),
        .kind = td_json_get_str(owner, TD_STR("kind"), TD_STR_EMPTY),
        .name = td_json_get_str(owner, TD_STR("name"), TD_STR_EMPTY),
        .uid = td_json_get_str(owner, TD_STR("uid"), TD_STR_EMPTY),
    };
    return owner != NULL;
}

/* The walk ends below an owner that is gone, or whose name another object has now. */
static int workload_visit(void *context, const struct td_controller *at,
                          struct td_controller *ret_parent, bool *ret_has_parent,
                          struct td_error *err)
{
    struct workload_walk *walk = context;
    const struct td_resource *resource = td_api_kind(walk->api, at->api_version, at->kind);
    struct td_json *owner;
    (void)err;
    walk->top = (struct td_pod_workload){.kind = at->kind, .name = at->name};
    if (resource &&
        td_edit_get(walk->api, resource, resource->is_namespaced ? at->namespace : TD_STR_EMPTY,
                    at->name, walk->arena, &owner, NULL) == TD_OK &&
        td_str_equal(
            td_json_get_str(td_json_get(owner, TD_STR("metadata")), TD_STR("uid"), TD_STR_EMPTY),
            at->uid)) {
        *ret_has_parent = workload_controller(owner, at->namespace, ret_parent);
    }
    return TD_OK;
}

struct td_pod_workload td_pod_workload(struct td_api *api, struct td_arena *arena,
                                       const struct td_json *pod)
{
    const struct td_json *metadata = td_json_get(pod, TD_STR("metadata"));
    struct workload_walk walk = {
        .api = api,
        .arena = arena,
        .top = {.kind = TD_STR("Pod"),
                .name = td_json_get_str(metadata, TD_STR("name"), TD_STR_EMPTY)},
    };
    td_str ns = td_json_get_str(metadata, TD_STR("namespace"), TD_STR_EMPTY);
    struct td_controller owner;
    if (workload_controller(pod, ns, &owner)) {
        /* A cycle, or too long a chain: the last one counts. */
        (void)td_controllers_walk(&owner, workload_visit, &walk, NULL);
    }
    return (struct td_pod_workload){.kind = td_arena_copy_str(arena, walk.top.kind),
                                    .name = td_arena_copy_str(arena, walk.top.name)};
}
