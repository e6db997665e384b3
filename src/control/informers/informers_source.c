/*
 * The workload source over the caches. A workload is decoded when it is first asked for and
 * kept with its object, so a thousand old ReplicaSets that are never asked for cost their text
 * only. Decoded it is as large as its text again: when they are many all are let go of, once
 * no caller borrows from them, and decoded anew when they are asked for.
 */
#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/os/loop.h"
#include "control/informers/informers_private.h"

void td_informer_workload_free(struct td_informer_workload *workload)
{
    if (workload) {
        td_arena_done(&workload->arena);
        td_free(workload);
    }
}

static bool source_kind_of(td_str kind, enum td_informer_kind *ret)
{
    for (size_t i = TD_INFORMER_DEPLOYMENTS; i < TD_INFORMER_COUNT; i++) {
        if (td_str_equal(kind, td_str_from(td_informer_rows[i].kind))) {
            *ret = (enum td_informer_kind)i;
            return true;
        }
    }
    return false;
}

/* Only what was decoded stays, in a piece of memory of just its size: the tree is many times
 * larger. */
static struct td_informer_workload *source_keep(struct td_arena *scratch,
                                                const struct td_workload *decoded)
{
    size_t used = scratch->used_bytes;
    (void)td_workload_copy(scratch, decoded); /* to know the size */
    struct td_informer_workload *workload = td_alloc_zero(1, sizeof(*workload));
    td_arena_init_exact(&workload->arena, scratch->used_bytes - used, TD_TREE_ARENA_BYTES_MAX);
    workload->workload = td_workload_copy(&workload->arena, decoded);
    return workload;
}

static struct td_informer_workload *source_decode(const struct td_informer_object *object,
                                                  enum td_informer_kind kind)
{
    td_auto_arena scratch = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_json *tree;
    struct td_workload decoded;
    if (td_informers_tree(&scratch, object, &tree, NULL) != TD_OK) {
        return NULL;
    }
    td_json_set_str(&scratch, tree, TD_STR("kind"), td_str_from(td_informer_rows[kind].kind));
    bool is_read = td_workload_decode(&scratch, tree, &decoded, NULL) == TD_OK;
    return is_read ? source_keep(&scratch, &decoded) : NULL;
}

static const struct td_workload *source_workload(void *context, td_str kind_name, td_str namespace,
                                                 td_str name)
{
    struct td_informers *informers = context;
    enum td_informer_kind kind;
    if (!source_kind_of(kind_name, &kind) || !informers->caches[kind]) {
        return NULL;
    }
    /* The object is ours to complete: const is for consumers. */
    struct td_informer_object *object = (struct td_informer_object *)(uintptr_t)td_cache_get(
        informers->caches[kind], namespace, name);
    if (object && !object->workload) {
        object->workload = source_decode(object, kind);
        if (++informers->workload_count > TD_INFORMER_WORKLOADS_MAX &&
            !td_timer_is_set(informers->forgetting)) {
            td_timer_set(informers->forgetting, 0);
        }
    }
    return object && object->workload ? &object->workload->workload : NULL;
}

void td_informers_forget_workloads(struct td_informers *informers)
{
    for (size_t kind = TD_INFORMER_DEPLOYMENTS; kind < TD_INFORMER_COUNT; kind++) {
        size_t position = 0;
        const void *next;
        while (informers->caches[kind] &&
               (next = td_cache_next(informers->caches[kind], &position)) != NULL) {
            struct td_informer_object *object = (struct td_informer_object *)(uintptr_t)next;
            td_informer_workload_free(object->workload);
            object->workload = NULL;
        }
    }
    informers->workload_count = 0;
}

static void source_forget(struct td_timer *timer, void *context)
{
    (void)timer;
    td_informers_forget_workloads(context);
}

static bool source_resource(void *context, td_str group, td_str kind, size_t index,
                            td_str *ret_resource)
{
    struct td_informers *informers = context;
    struct td_served_resource resource;
    int code = td_api_discovery_resource(informers->discovery, group, kind, index, &resource, NULL);
    if (code == TD_BUSY && index == 0) {
        *ret_resource = TD_STR_EMPTY; /* its scale is not known either: busy */
        return true;
    }
    if (code == TD_OK) {
        *ret_resource = resource.plural;
    }
    return code == TD_OK;
}

static struct td_scale_answer source_scale(void *context, td_str group, td_str resource,
                                           td_str namespace, td_str name)
{
    struct td_informers *informers = context;
    if (resource.len == 0) {
        return (struct td_scale_answer){.code = TD_BUSY};
    }
    return td_api_discovery_scale(informers->discovery, group, resource, namespace, name);
}

void td_informers_source_done(struct td_informers *informers)
{
    td_timer_free(informers->forgetting);
}

void td_informers_source_init(struct td_informers *informers)
{
    informers->forgetting = td_timer_new(informers->loop, source_forget, informers);
    informers->source = (struct td_workload_source){
        .context = informers,
        .get_workload = source_workload,
        .get_resource = source_resource,
        .get_scale = source_scale,
    };
}
