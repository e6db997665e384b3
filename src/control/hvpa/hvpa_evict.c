/*
 * Which pods of an Hvpa may be evicted. The rules are those of the updater: budgets, minReplicas,
 * requirements, nobody where the webhook does not give new pods their size, and none again that
 * came back unchanged twice. And never for a size that no node has, or that a LimitRange of the
 * namespace refuses: such a pod would be lost.
 */
#include "base/error.h"
#include "base/limits.h"
#include "control/hvpa/hvpa_private.h"
#include "decide/vertical/patch/limitrange.h"
#include "decide/vertical/patch/podsizes.h"
#include "decide/vertical/updater/pass.h"
#include "decide/vertical/updater/requirements.h"
#include "decide/vertical/updater/restriction.h"

/* What is decided, as the updater's rules know it. */
static struct td_recommendation evict_targets(struct hvpa_tick *tick)
{
    struct td_recommendation made = {
        .containers = td_arena_array(&tick->arena, struct td_container_recommendation,
                                     tick->decided.count + 1),
        .container_count = tick->decided.count,
    };
    for (size_t i = 0; i < tick->decided.count; i++) {
        made.containers[i] = (struct td_container_recommendation){
            .container_name = tick->decided.items[i].container,
            .target = tick->decided.items[i].resources,
            .has_target = true,
        };
    }
    return made;
}

/* What the pod would ask for in all. */
static int64_t evict_total(const struct hvpa_tick *tick, const struct td_vertical_pod *pod,
                           enum td_hvpa_resource resource)
{
    int64_t total = 0;
    for (size_t i = 0; i < pod->container_count; i++) {
        const struct td_vertical_container *c = &pod->containers[i];
        bool is_pod = td_tandem_is_pod(c->name);
        const struct td_quantity *decided = hvpa_request_of(&tick->decided, c->name, resource);
        int64_t amount =
            hvpa_amount(resource, decided ? decided
                                          : td_resource_list_get(&c->spec_requests,
                                                                 td_hvpa_resource_name(resource)));
        if (is_pod && amount > 0) {
            return amount; /* it asks for itself */
        }
        total = amount > INT64_MAX - total ? INT64_MAX : total + amount;
    }
    return total;
}

/* Evicted for a size that no node has, a pod would be lost. */
static bool evict_fits_a_node(struct hvpa_tick *tick, const struct td_vertical_pod *pod)
{
    const struct td_cache *nodes =
        td_sight_cache(tick->loop->options.control.sight, TD_SIGHT_NODES);
    int64_t cpu = evict_total(tick, pod, TD_HVPA_CPU);
    int64_t memory = evict_total(tick, pod, TD_HVPA_MEMORY);
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    size_t position = 0;
    for (const struct td_sight_object *node; nodes && (node = td_cache_next(nodes, &position));) {
        struct td_json *tree;
        struct td_resource_list offered;
        td_arena_reset(&arena);
        if (td_sight_tree(&arena, node, &tree, NULL) == TD_OK &&
            td_resource_list_decode(&arena, td_json_get_path(tree, "status.allocatable"), &offered,
                                    NULL) == TD_OK &&
            hvpa_amount(TD_HVPA_CPU, td_resource_list_get(&offered, TD_STR("cpu"))) >= cpu &&
            hvpa_amount(TD_HVPA_MEMORY, td_resource_list_get(&offered, TD_STR("memory"))) >=
                memory) {
            return true;
        }
    }
    return !nodes;
}

/* Would another pod in its place have another size? */
static bool evict_is_mutated(const struct hvpa_tick *tick)
{
    const struct td_hvpa_options *options = &tick->loop->options;
    bool is_exempt =
        options->is_exempt && options->is_exempt(options->context, tick->hvpa.meta.namespace);
    return !is_exempt &&
           (!options->get_hook_trouble || options->get_hook_trouble(options->context).len == 0);
}

/* Would a LimitRange keep out a pod of the decided sizes? */
static bool evict_is_kept_out(struct hvpa_tick *tick)
{
    const struct td_limit_ranges *limits =
        td_sight_limits(tick->loop->options.control.sight, tick->hvpa.meta.namespace);
    const struct td_hvpa_requests *sides[] = {&tick->decided, &tick->decided_limits};
    for (size_t s = 0; limits && limits->container.has_max && s < 2; s++) {
        for (size_t i = 0; i < sides[s]->count; i++) {
            const struct td_hvpa_container_resources *sizes = &sides[s]->items[i];
            for (size_t j = 0; j < sizes->resources.count && !td_tandem_is_pod(sizes->container);
                 j++) {
                const struct td_resource_amount *amount = &sizes->resources.items[j];
                const struct td_quantity *max =
                    td_resource_list_get(&limits->container.max, amount->name);
                if (max && td_quantity_compare(max, &amount->quantity) < 0) {
                    return true;
                }
            }
        }
    }
    return false;
}

td_str hvpa_replacement_problem(struct hvpa_tick *tick, const struct td_vertical_pod *pod)
{
    const struct td_control *control = &tick->loop->options.control;
    const struct td_pod_sizes sizes =
        hvpa_pod_sizes(&tick->arena, tick->item->name, &tick->decided, &tick->decided_limits);
    struct td_replacement_input input = {.pod = pod, .sizes = &sizes, .gates = control->gates};
    return td_replacement_facts_problem(&tick->facts, &tick->arena, control, &input);
}

void hvpa_evict_meet(struct hvpa_tick *tick)
{
    struct td_updater_state *state = &tick->item->restrictions;
    td_updater_state_begin(state);
    for (size_t i = 0; i < tick->pod_count; i++) {
        bool is_new = false;
        struct td_pod_memory *memory = td_updater_state_pod(state, &tick->pods[i], &is_new);
        if (memory && is_new) {
            td_updater_state_born(&tick->arena, state, memory, &tick->pods[i], tick->now);
        }
    }
    td_updater_state_end(state, tick->now);
}

bool hvpa_is_left_alone(struct hvpa_tick *tick, const struct td_vertical_pod *pod)
{
    struct td_pod_memory *memory = td_updater_state_find(&tick->item->restrictions, pod);
    if (!memory || memory->fruitless == 0) {
        return false;
    }
    struct td_recommendation targets = evict_targets(tick);
    bool is_left_alone = td_updater_state_is_left_alone(memory, &targets, hvpa_now(tick->loop));
    if (is_left_alone && !memory->is_told) {
        memory->is_told = true;
        hvpa_tick_event(tick, true, TD_STR("LeftAlone"),
                        td_arena_format(&tick->arena,
                                        "Pod %.*s came back unchanged after two evictions and is "
                                        "left alone: the decided sizes do not reach it",
                                        TD_STR_ARG(pod->meta.name)));
    }
    return is_left_alone;
}

void hvpa_evicted(struct hvpa_tick *tick, td_str name)
{
    struct td_recommendation targets = evict_targets(tick);
    for (size_t i = 0; i < tick->pod_count; i++) {
        if (td_str_equal(tick->pods[i].meta.name, name)) {
            td_updater_state_evicted(&tick->arena, &tick->item->restrictions, &tick->pods[i],
                                     &targets, hvpa_now(tick->loop));
        }
    }
}

bool hvpa_may_evict(struct hvpa_tick *tick, const struct td_vertical_pod *pod)
{
    const struct td_updater_config config = td_updater_config_default();
    const struct td_restriction_config *given = tick->loop->options.restriction;
    struct td_vpa vpa = tick->hvpa.vpa;
    vpa.mode = TD_VPA_RECREATE; /* Off is what keeps others from acting */
    struct td_recommendation targets = evict_targets(tick);
    if (tick->has_evicted || !evict_is_mutated(tick) || evict_is_kept_out(tick) ||
        !evict_fits_a_node(tick, pod) ||
        !td_requirements_admit(&tick->arena, &vpa, pod, &targets, false)) {
        return false;
    }
    struct td_groups groups;
    struct td_restriction restriction;
    const struct td_vertical_pod **pods =
        td_arena_array(&tick->arena, const struct td_vertical_pod *, tick->pod_count + 1);
    td_groups_init(&groups, &tick->arena);
    for (size_t i = 0; i < tick->pod_count; i++) {
        pods[i] = &tick->pods[i];
        (void)td_groups_add(&groups, pods[i]); /* a group past the cap is not disturbed */
    }
    const struct td_restriction_input input = {
        .arena = &tick->arena,
        .groups = &groups,
        .source = td_sight_source(tick->loop->options.control.sight),
        .vpa = &vpa,
        .pods = pods,
        .pod_count = tick->pod_count,
        .config = given ? given : &config.restriction,
        .gates = &tick->loop->options.control.gates,
        .state = &tick->item->restrictions,
        .now = hvpa_now(tick->loop),
    };
    td_restriction_init(&restriction, &input);
    bool may = td_restriction_can_evict(&restriction, pod, NULL) == TD_EVICTION_YES;
    td_restriction_done(&restriction);
    td_groups_done(&groups);
    return may;
}
