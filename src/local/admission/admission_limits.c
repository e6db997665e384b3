/* The plugin LimitRanger of the local API server: the LimitRanges of the store, at work. */
#include "api/pod/pod_limits.h"
#include "base/error.h"
#include "local/admission/admission_private.h"
#include "local/store/store.h"

/* The LimitRanges of the namespace, in order of names. */
static struct td_limit_objects limits_read(struct td_api *api, struct td_arena *arena, td_str ns)
{
    const struct td_collection *ranges = td_store_find(td_api_store(api), TD_STR("limitranges"));
    size_t most = ranges ? td_collection_count(ranges, ns) : 0;
    if (most == 0) {
        return (struct td_limit_objects){.count = 0};
    }
    const struct td_json **trees = td_arena_array(arena, const struct td_json *, most);
    struct td_limit_objects found = {.items = trees};
    const struct td_stored *stored;
    struct td_collection_iter iter = td_collection_walk(ranges, ns);
    while (found.count < most && (stored = td_collection_iter_next(&iter))) {
        struct td_json *tree;
        if (td_json_parse(arena, stored->json, &(struct td_json_options){.copy_strings = true},
                          &tree, NULL) == TD_OK) {
            trees[found.count++] = tree;
        }
    }
    td_collection_iter_done(&iter);
    return found;
}

void td_admission_limit_defaults(struct td_api *api, struct td_admission_request *request)
{
    struct td_limit_objects ranges = limits_read(api, request->arena, request->ns);
    td_pod_limit_defaults(request->arena, &ranges, request->object);
}

/* An update that does not touch resources passes, whatever the bounds are by now, and so does a pod
 * on its way out. */
static bool limits_is_due(const struct td_admission_request *request)
{
    bool is_going = td_json_get_path(request->old, "metadata.deletionTimestamp");
    bool is_resize = td_str_equal(request->subresource, TD_STR("resize"));
    return request->object && !is_going && (!request->old || is_resize);
}

bool td_admission_limit_check(struct td_api *api, const struct td_admission_request *request,
                              struct td_admission_verdict *ret)
{
    if (!limits_is_due(request)) {
        return true;
    }
    struct td_limit_objects ranges = limits_read(api, request->arena, request->ns);
    td_str problems = td_pod_limit_problems(request->arena, &ranges, request->object);
    if (problems.len == 0) {
        return true;
    }
    *ret = (struct td_admission_verdict){
        .status = 403,
        .reason = TD_STR("Forbidden"),
        .message = td_arena_format(request->arena, "pods \"%.*s\" is forbidden: %.*s",
                                   TD_STR_ARG(td_admission_name(request)), TD_STR_ARG(problems)),
    };
    return false;
}
