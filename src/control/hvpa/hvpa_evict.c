/*
 * Which pods of an Hvpa may be evicted. The rules are those of the updater: budgets, minReplicas,
 * requirements, no eviction where the webhook does not give new pods their size, and none of a
 * replica that came back unchanged twice. And never for a size that no node has, or that a
 * LimitRange of the namespace refuses: such a pod would be lost.
 */
#include "base/error.h"
#include "base/limits.h"
#include "control/hvpa/hvpa_private.h"
#include "decide/vertical/patch/podsizes.h"
#include "decide/vertical/updater/requirements.h"
#include "decide/vertical/updater/restriction.h"

/* What is decided, as the updater's rules know it. */
static struct td_recommendation evict_targets(struct hvpa_reconcile *run)
{
    struct td_recommendation made = {
        .containers = td_arena_array(&run->arena, struct td_container_recommendation,
                                     run->decided.requests.count + 1),
        .container_count = run->decided.requests.count,
    };
    for (size_t i = 0; i < run->decided.requests.count; i++) {
        made.containers[i] = (struct td_container_recommendation){
            .container_name = run->decided.requests.items[i].container,
            .target = run->decided.requests.items[i].resources,
            .has_target = true,
        };
    }
    return made;
}

static int64_t evict_total(const struct hvpa_reconcile *run, const struct td_pod *pod,
                           enum td_hvpa_resource resource)
{
    int64_t total = 0;
    for (size_t i = 0; i < pod->container_count; i++) {
        const struct td_pod_container *c = &pod->containers[i];
        bool is_pod = td_tandem_is_pod(c->name);
        const struct td_quantity *decided =
            td_tandem_request_of(&run->decided.requests, c->name, resource);
        int64_t amount = td_tandem_amount_of(
            resource,
            decided ? decided
                    : td_resource_list_get(&c->spec_requests, td_hvpa_resource_name(resource)));
        if (is_pod && amount > 0) {
            return amount; /* it asks for itself */
        }
        total = amount > INT64_MAX - total ? INT64_MAX : total + amount;
    }
    return total;
}

/* Evicted for a size that no node has, a pod would be lost. */
static bool evict_fits_a_node(struct hvpa_reconcile *run, const struct td_pod *pod)
{
    const struct td_cache *nodes =
        td_informers_cache(run->loop->options.control.informers, TD_INFORMER_NODES);
    int64_t cpu = evict_total(run, pod, TD_HVPA_CPU);
    int64_t memory = evict_total(run, pod, TD_HVPA_MEMORY);
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    size_t position = 0;
    for (const struct td_informer_object *node;
         nodes && (node = td_cache_next(nodes, &position));) {
        struct td_json *tree;
        struct td_resource_list offered;
        td_arena_reset(&arena);
        if (td_informers_tree(&arena, node, &tree, NULL) == TD_OK &&
            td_resource_list_decode(&arena, td_json_get_path(tree, "status.allocatable"), &offered,
                                    NULL) == TD_OK &&
            td_tandem_amount_of(TD_HVPA_CPU, td_resource_list_get(&offered, TD_STR("cpu"))) >=
                cpu &&
            td_tandem_amount_of(TD_HVPA_MEMORY, td_resource_list_get(&offered, TD_STR("memory"))) >=
                memory) {
            return true;
        }
    }
    return !nodes;
}

/* Would another pod in its place have another size? */
static bool evict_is_mutated(const struct hvpa_reconcile *run)
{
    const struct td_hvpa_options *options = &run->loop->options;
    bool is_exempt =
        options->is_exempt && options->is_exempt(options->context, run->hvpa.meta.namespace);
    return !is_exempt && (!options->get_webhook_problem ||
                          options->get_webhook_problem(options->context).len == 0);
}

void hvpa_evict_meet(struct hvpa_reconcile *run)
{
    struct td_updater_state *state = &run->item->restrictions;
    td_updater_state_begin(state);
    for (size_t i = 0; i < run->seen.pod_count; i++) {
        bool is_new = false;
        struct td_pod_memory *memory = td_updater_state_pod(state, &run->seen.pods[i], &is_new);
        if (memory && is_new) {
            td_updater_state_born(&run->arena, state, memory, &run->seen.pods[i], run->now);
        }
    }
    td_updater_state_end(state, run->now);
}

bool hvpa_is_left_alone(struct hvpa_reconcile *run, const struct td_pod *pod)
{
    struct td_pod_memory *memory = td_updater_state_find(&run->item->restrictions, pod);
    if (!memory || memory->fruitless == 0) {
        return false;
    }
    struct td_recommendation targets = evict_targets(run);
    bool is_left_alone = td_updater_state_is_left_alone(memory, &targets, hvpa_now(run->loop));
    if (is_left_alone && !memory->is_reported) {
        memory->is_reported = true;
        hvpa_reconcile_event(run, true, TD_STR("LeftAlone"),
                             td_arena_format(&run->arena,
                                             "Pod %.*s was evicted twice and its replacements did "
                                             "not get the decided sizes; it is not evicted again",
                                             TD_STR_ARG(pod->meta.name)));
    }
    return is_left_alone;
}

void hvpa_evicted(struct hvpa_reconcile *run, td_str name)
{
    struct td_recommendation targets = evict_targets(run);
    for (size_t i = 0; i < run->seen.pod_count; i++) {
        if (td_str_equal(run->seen.pods[i].meta.name, name)) {
            td_updater_state_evicted(&run->arena, &run->item->restrictions, &run->seen.pods[i],
                                     &targets, hvpa_now(run->loop));
        }
    }
}

bool hvpa_may_evict(struct hvpa_reconcile *run, const struct td_pod *pod)
{
    const struct td_control *control = &run->loop->options.control;
    const struct td_pod_sizes sizes = hvpa_decided_sizes(run);
    struct td_vpa vpa = run->hvpa.vpa;
    vpa.mode = TD_VPA_RECREATE; /* Off is what keeps others from acting */
    struct td_recommendation targets = evict_targets(run);
    if (run->doing.has_evicted || !evict_is_mutated(run) ||
        td_pod_sizes_exceed(&sizes,
                            td_informers_limits(control->informers, run->hvpa.meta.namespace)) ||
        !evict_fits_a_node(run, pod) ||
        !td_requirements_admit(&run->arena, &vpa, pod, &targets, false)) {
        return false;
    }
    struct td_groups groups;
    struct td_restriction restriction;
    const struct td_pod **pods =
        td_arena_array(&run->arena, const struct td_pod *, run->seen.pod_count + 1);
    td_groups_init(&groups, &run->arena);
    for (size_t i = 0; i < run->seen.pod_count; i++) {
        pods[i] = &run->seen.pods[i];
        (void)td_groups_add(&groups, pods[i]); /* a group past the cap is not disturbed */
    }
    const struct td_restriction_input input = {
        .arena = &run->arena,
        .groups = &groups,
        .source = td_informers_source(control->informers),
        .vpa = &vpa,
        .pods = pods,
        .pod_count = run->seen.pod_count,
        .config = &run->loop->restriction,
        .gates = &control->gates,
        .state = &run->item->restrictions,
        .now = hvpa_now(run->loop),
    };
    td_restriction_init(&restriction, &input);
    bool may = td_restriction_can_evict(&restriction, pod, NULL) == TD_EVICTION_YES;
    td_restriction_done(&restriction);
    td_groups_done(&groups);
    return may;
}
