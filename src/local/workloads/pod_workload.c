#include "local/workloads/pod_workload.h"

#include "base/error.h"
#include "base/limits.h"
#include "local/api/api.h"
#include "local/resources/resource.h"
#include "local/store/edit.h"

static const struct td_json *workload_controller(const struct td_json *object)
{
    const struct td_json *owners = td_json_get_path(object, "metadata.ownerReferences");
    const struct td_json *owner = td_json_first_item(owners);
    while (owner && !td_json_get_bool(owner, TD_STR("controller"), false)) {
        owner = owner->next;
    }
    return owner;
}

/* The object that a reference means, or NULL: it is gone, or another one has its name now. */
static const struct td_json *workload_owner(struct td_api *api, struct td_arena *arena, td_str ns,
                                            const struct td_json *reference)
{
    const struct td_resource *resource =
        td_resources_find_kind(td_api_resources(api),
                               td_json_get_str(reference, TD_STR("apiVersion"), TD_STR_EMPTY),
                               td_json_get_str(reference, TD_STR("kind"), TD_STR_EMPTY))
            .resource;
    struct td_json *owner;
    if (!resource || td_edit_get(api, resource, resource->is_namespaced ? ns : TD_STR_EMPTY,
                                 td_json_get_str(reference, TD_STR("name"), TD_STR_EMPTY), arena,
                                 &owner, NULL) != TD_OK) {
        return NULL;
    }
    td_str uid =
        td_json_get_str(td_json_get(owner, TD_STR("metadata")), TD_STR("uid"), TD_STR_EMPTY);
    return td_str_equal(uid, td_json_get_str(reference, TD_STR("uid"), TD_STR_EMPTY)) ? owner
                                                                                      : NULL;
}

struct td_pod_workload td_pod_workload(struct td_api *api, struct td_arena *arena,
                                       const struct td_json *pod)
{
    const struct td_json *metadata = td_json_get(pod, TD_STR("metadata"));
    td_str ns = td_json_get_str(metadata, TD_STR("namespace"), TD_STR_EMPTY);
    struct td_pod_workload workload = {
        .kind = TD_STR("Pod"),
        .name = td_json_get_str(metadata, TD_STR("name"), TD_STR_EMPTY),
    };
    const struct td_json *object = pod;
    for (size_t i = 0; i < TD_CONTROLLER_CHAIN_MAX && object; i++) {
        const struct td_json *reference = workload_controller(object);
        if (!reference) {
            break;
        }
        workload.kind = td_json_get_str(reference, TD_STR("kind"), TD_STR_EMPTY);
        workload.name = td_json_get_str(reference, TD_STR("name"), TD_STR_EMPTY);
        object = workload_owner(api, arena, ns, reference);
    }
    workload.kind = td_arena_copy_str(arena, workload.kind);
    workload.name = td_arena_copy_str(arena, workload.name);
    return workload;
}
