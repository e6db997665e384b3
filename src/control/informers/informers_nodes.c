/*
 * The largest node, for --cap-to-node: the one that has most of the resource that it has least of,
 * measured against the most that any node has. Nodes report every few seconds and rarely change in
 * size, so it is looked for once a minute.
 */
#include "base/limits.h"
#include "base/os/clock.h"
#include "base/os/loop.h"
#include "control/informers/informers_private.h"
#include "decide/vertical/resourcelist.h"

#define NODES_PERIOD TD_MINUTE

struct nodes_size {
    int64_t cpu_milli;
    int64_t memory;
};

static bool nodes_size_of(struct td_arena *scratch, const struct td_informer_object *node,
                          struct nodes_size *ret)
{
    struct td_json *tree;
    struct td_resource_list offered;
    td_arena_reset(scratch);
    if (td_informers_tree(scratch, node, &tree, NULL) != TD_OK ||
        td_resource_list_decode(scratch, td_json_get_path(tree, "status.allocatable"), &offered,
                                NULL) != TD_OK) {
        return false;
    }
    const struct td_quantity *cpu = td_resource_list_get(&offered, TD_CPU);
    const struct td_quantity *memory = td_resource_list_get(&offered, TD_MEMORY);
    ret->cpu_milli = cpu ? td_quantity_milli(cpu) : 0;
    ret->memory = memory ? td_quantity_value(memory) : 0;
    return ret->cpu_milli > 0 && ret->memory > 0;
}

static double nodes_share(const struct nodes_size *size, const struct nodes_size *most)
{
    double cpu = (double)size->cpu_milli / (double)most->cpu_milli;
    double memory = (double)size->memory / (double)most->memory;
    return cpu < memory ? cpu : memory;
}

static struct nodes_size nodes_largest(const struct td_cache *nodes)
{
    struct nodes_size most = {0};
    struct nodes_size best = {0};
    struct nodes_size size;
    td_auto_arena scratch = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    const struct td_informer_object *node;
    for (size_t position = 0; (node = td_cache_next(nodes, &position));) {
        if (nodes_size_of(&scratch, node, &size)) {
            most.cpu_milli = size.cpu_milli > most.cpu_milli ? size.cpu_milli : most.cpu_milli;
            most.memory = size.memory > most.memory ? size.memory : most.memory;
        }
    }
    for (size_t position = 0; (node = td_cache_next(nodes, &position));) {
        if (nodes_size_of(&scratch, node, &size) &&
            (best.cpu_milli == 0 || nodes_share(&size, &most) > nodes_share(&best, &most))) {
            best = size;
        }
    }
    return best;
}

const struct td_resource_list *td_informers_largest_node(struct td_informers *informers,
                                                         struct td_arena *arena)
{
    td_time now = td_clock_wall(td_loop_clock(informers->loop));
    const struct td_cache *nodes = informers->caches[TD_INFORMER_NODES];
    if (!nodes) {
        return NULL;
    }
    if (informers->largest_cpu_milli == 0 || now - informers->largest_found >= NODES_PERIOD) {
        struct nodes_size largest = nodes_largest(nodes);
        informers->largest_cpu_milli = largest.cpu_milli;
        informers->largest_memory = largest.memory;
        informers->largest_found = now;
    }
    if (informers->largest_cpu_milli == 0) {
        return NULL; /* no node is known */
    }
    struct td_resource_list *list = td_arena_new(arena, struct td_resource_list);
    struct td_quantity cpu =
        td_quantity_new_milli(informers->largest_cpu_milli, TD_QUANTITY_DECIMAL_SI);
    struct td_quantity memory = td_quantity_new(informers->largest_memory, TD_QUANTITY_BINARY_SI);
    *list = (struct td_resource_list){.count = 0};
    td_resource_list_set(arena, list, TD_CPU, &cpu);
    td_resource_list_set(arena, list, TD_MEMORY, &memory);
    return list;
}
