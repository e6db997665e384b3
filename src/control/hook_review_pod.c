/*
 * A pod being created: who controls it, which VPA (or Hvpa) that controller is under, and what is
 * to be written. A pod is refused in one case only, which the proposal on pod-level resources asks
 * for; every other doubt ends in a pod as it was sent.
 */
#include "base/error.h"
#include "control/hook_private.h"
#include "control/sight.h"
#include "decide/vertical/limitrange.h"
#include "decide/vertical/matching.h"
#include "decide/vertical/patchops.h"
#include "decide/vertical/podpatch.h"

/* ---- Probes ---- */

/* True when it is a probe of ours: only a dry run is, so nobody can mark a real pod. */
static bool pod_is_probe(const struct hook_review *review)
{
    const struct td_json *annotations = td_json_get_path(review->object, "metadata.annotations");
    return review->is_dry_run &&
           td_json_is(td_json_get(annotations, TD_STR(HOOK_PROBE_KEY)), TD_JSON_TYPE_STRING);
}

/* ---- Hvpas ---- */

static const struct td_hook_size *pod_size_of(const struct td_hook_sizes *sizes, td_str container)
{
    for (size_t i = 0; i < sizes->count; i++) {
        if (td_str_equal(sizes->items[i].container, container)) {
            return &sizes->items[i];
        }
    }
    return NULL;
}

/* The limits to write: those decided, and where a request would stand above the pod's own limit,
 * which an API server refuses, that limit raised to it. */
static struct td_resource_list pod_fit_limits(struct td_arena *arena,
                                              const struct td_hook_size *size,
                                              const struct td_resource_list *own)
{
    struct td_resource_list limits = td_resource_list_copy(arena, &size->limits);
    for (size_t i = 0; i < size->requests.count; i++) {
        const struct td_resource_amount *request = &size->requests.items[i];
        const struct td_quantity *limit = td_resource_list_get(&limits, request->name);
        limit = limit ? limit : td_resource_list_get(own, request->name);
        if (limit && td_quantity_compare(limit, &request->quantity) < 0) {
            td_resource_list_set(arena, &limits, request->name, &request->quantity);
        }
    }
    return limits;
}

/* A list with what is above the maximum or below the minimum of a LimitRange brought to it. */
static struct td_resource_list pod_within(struct td_arena *arena,
                                          const struct td_resource_list *sizes,
                                          const struct td_limit_summary *range)
{
    struct td_resource_list made = td_resource_list_copy(arena, sizes);
    for (size_t i = 0; i < sizes->count; i++) {
        const struct td_resource_amount *amount = &sizes->items[i];
        const struct td_quantity *max = td_resource_list_get(&range->max, amount->name);
        const struct td_quantity *min = td_resource_list_get(&range->min, amount->name);
        if (max && td_quantity_compare(&amount->quantity, max) > 0) {
            td_resource_list_set(arena, &made, amount->name, max);
        } else if (min && td_quantity_compare(&amount->quantity, min) < 0) {
            td_resource_list_set(arena, &made, amount->name, min);
        }
    }
    return made;
}

/* What is decided for a container, as far as the LimitRanges of the namespace let it in: a pod that
 * the API server refuses is worse than one that the Hvpa has to say is not as decided. */
static struct td_container_change pod_change(struct hook_review *review,
                                             const struct td_hook_size *size,
                                             const struct td_resource_list *own)
{
    struct td_arena *arena = review->arena;
    struct td_hook_size fit = *size;
    const struct td_limit_ranges *limits =
        td_sight_limits(review->hook->options.control.sight, review->namespace);
    if (limits && limits->container.is_set) {
        fit.requests = pod_within(arena, &size->requests, &limits->container);
        fit.limits = pod_within(arena, &size->limits, &limits->container);
    }
    return (struct td_container_change){.requests = fit.requests,
                                        .limits = pod_fit_limits(arena, &fit, own)};
}

/* One for each container; of those that nothing is decided for it is empty. */
static const struct td_container_change *pod_changes(struct hook_review *review,
                                                     const struct td_vertical_pod *pod,
                                                     const struct td_hook_sizes *sizes)
{
    struct td_container_change *changes =
        td_arena_array(review->arena, struct td_container_change, pod->container_count + 1);
    for (size_t i = 0; i < pod->container_count; i++) {
        const struct td_vertical_container *container = &pod->containers[i];
        const struct td_hook_size *size =
            container->name.len > 0 ? pod_size_of(sizes, container->name) : NULL;
        changes[i] = (struct td_container_change){.requests = {.count = 0}};
        if (size && size->requests.count + size->limits.count > 0) {
            changes[i] = pod_change(review, size, td_vertical_limits(container));
        }
    }
    return changes;
}

/* Would all containers together have more of a resource than a LimitRange for pods allows? */
static bool pod_is_too_much(struct td_arena *arena, const struct td_vertical_pod *pod,
                            const struct td_container_change *changes, bool is_limits,
                            const struct td_resource_amount *max)
{
    struct td_quantity total = td_quantity_new(0, TD_QUANTITY_DECIMAL_SI);
    for (size_t i = 0; i < pod->container_count; i++) {
        const struct td_vertical_container *c = &pod->containers[i];
        const struct td_quantity *changed =
            td_resource_list_get(is_limits ? &changes[i].limits : &changes[i].requests, max->name);
        const struct td_quantity *has = td_resource_list_get(
            is_limits ? td_vertical_limits(c) : td_vertical_requests(c), max->name);
        if (changed || has) {
            td_quantity_add(arena, &total, changed ? changed : has);
        }
    }
    return td_quantity_compare(&total, &max->quantity) > 0;
}

static bool pod_is_let_in(struct hook_review *review, const struct td_vertical_pod *pod,
                          const struct td_container_change *changes)
{
    const struct td_limit_ranges *limits =
        td_sight_limits(review->hook->options.control.sight, review->namespace);
    for (size_t i = 0; limits && limits->pod.has_max && i < limits->pod.max.count; i++) {
        const struct td_resource_amount *max = &limits->pod.max.items[i];
        if (pod_is_too_much(review->arena, pod, changes, false, max) ||
            pod_is_too_much(review->arena, pod, changes, true, max)) {
            return false;
        }
    }
    return true;
}

static void pod_add_annotations(struct hook_review *review, const struct td_vertical_pod *pod,
                                struct td_json *patches)
{
    if (!td_json_is(pod->meta.annotations, TD_JSON_TYPE_OBJECT)) {
        td_patchops_add(review->arena, patches, "add", TD_STR("/metadata/annotations"),
                        td_json_new_object(review->arena));
    }
}

static void pod_apply_sizes(struct hook_review *review, const struct td_vertical_pod *pod,
                            const struct td_hook_sizes *sizes)
{
    struct td_arena *arena = review->arena;
    struct td_json *patches = td_json_new_array(arena);
    struct td_notes clauses = {.count = 0};
    pod_add_annotations(review, pod, patches);
    const struct td_hook_size *whole = pod_size_of(sizes, TD_STR_EMPTY);
    struct td_stanza stanza = {.note_count = 0};
    if (whole && pod->has_pod_level) {
        stanza.requests = whole->requests;
        stanza.limits = pod_fit_limits(arena, whole, &pod->pod_limits);
        td_stanza_patch(arena, pod, &stanza, patches);
    }
    size_t empty = patches->count;
    const struct td_container_change *changes = pod_changes(review, pod, sizes);
    if (!pod_is_let_in(review, pod, changes)) {
        hook_review_undecided(review, "limit-range");
        return;
    }
    for (size_t i = 0; i < pod->container_count; i++) {
        const struct td_vertical_container *container = &pod->containers[i];
        if (changes[i].requests.count + changes[i].limits.count == 0) {
            continue;
        }
        const struct td_patch_place place = {
            .path = td_patchops_container_path(arena, i),
            .has_requests = td_vertical_has_requests(container),
            .has_limits = td_vertical_has_limits(container),
        };
        td_patchops_set_resources(arena, patches, &place, &changes[i].requests, &changes[i].limits);
        td_notes_add(arena, &clauses, td_pod_patch_clause(arena, i, &changes[i]));
    }
    if (patches->count > empty || stanza.requests.count + stanza.limits.count > 0) {
        td_patchops_set_annotation(arena, patches, TD_STR("vpaUpdates"),
                                   td_pod_patch_updates(arena, sizes->hvpa, &stanza, &clauses));
        review->patches = patches;
    }
}

/* ---- VPAs ---- */

static void pod_apply_vpa(struct hook_review *review, const struct td_vertical_pod *pod,
                          const struct td_vpa *vpa)
{
    static const struct td_limit_ranges none = {.container_name_count = 0};
    const struct td_hook_options *options = &review->hook->options;
    const struct td_limit_ranges *limits =
        td_sight_limits(options->control.sight, review->namespace);
    const struct td_pod_patch_input input = {
        .pod = pod,
        .vpa = vpa,
        .limits = limits ? limits : &none,
        .gates = options->control.gates,
        .max_cpu_boost = options->max_cpu_boost,
        .warns_of_limit_range = options->warns_of_limit_range,
        .largest_node = options->control.caps_to_node
                            ? td_sight_largest_node(options->control.sight, review->arena)
                            : NULL,
    };
    struct td_pod_patch patch;
    if (td_vpa_condition_holds(vpa->conditions, vpa->condition_count, TD_STR("LowConfidence"))) {
        return;
    }
    if (td_pod_patch(review->arena, &input, &patch, NULL) != TD_OK) {
        hook_review_undecided(review, "no-patch");
        return;
    }
    if (patch.is_rejected) {
        hook_review_refuse(review, 403, "Forbidden", patch.message);
        return;
    }
    if (patch.message.len > 0) {
        hook_review_warn(review, patch.message);
    }
    review->patches = patch.patches;
}

/* The VPA of a pod under this controller, or NULL. */
static const struct td_vpa *pod_vpa(struct hook_review *review, const struct td_vertical_pod *pod,
                                    const struct td_controller *top)
{
    struct td_sight *sight = review->hook->options.control.sight;
    const struct td_vpa *const *vpas;
    size_t count = hook_index_find(review->hook->index, review->arena, review->namespace, top->kind,
                                   top->name, &vpas);
    if (count == 0) {
        return NULL;
    }
    struct td_match_index index;
    td_match_index_init(&index, review->arena,
                        review->hook->options.control.gates.heterogeneous_workloads);
    size_t skipped = 0;
    const struct td_match_vpa *match = NULL;
    int code = td_match_index_add(&index, td_sight_source(sight), vpas, count, TD_MATCH_ADMISSION,
                                  &skipped, NULL);
    if (code == TD_OK) {
        match = td_match_find(&index, top, review->namespace, &pod->meta.labels);
    }
    td_match_index_done(&index);
    if (code == TD_BUSY) {
        hook_review_wait(review, "target-unknown");
    } else if (code != TD_OK || (!match && skipped > 0)) {
        hook_review_undecided(review, "target-unreadable"); /* waiting would not mend it */
    }
    return match && !review->waits ? match->vpa : NULL;
}

static void pod_apply(struct hook_review *review, const struct td_vertical_pod *pod,
                      const struct td_controller *top)
{
    const struct td_hook_options *options = &review->hook->options;
    struct td_hook_sizes sizes = {.count = 0};
    if (options->get_sizes &&
        options->get_sizes(options->sizes_context, review->arena, top, pod, &sizes)) {
        pod_apply_sizes(review, pod, &sizes);
        return;
    }
    const struct td_vpa *vpa = pod_vpa(review, pod, top);
    if (vpa) {
        pod_apply_vpa(review, pod, vpa);
    }
}

/* ---- The pod ---- */

/* Of what is needed here, has all been listed once? */
static bool pod_is_known(const struct td_sight *sight)
{
    static const enum td_sight_kind kinds[] = {
        TD_SIGHT_VPAS,         TD_SIGHT_LIMIT_RANGES,  TD_SIGHT_DEPLOYMENTS,
        TD_SIGHT_REPLICA_SETS, TD_SIGHT_STATEFUL_SETS, TD_SIGHT_DAEMON_SETS,
        TD_SIGHT_JOBS,         TD_SIGHT_CRON_JOBS,     TD_SIGHT_REPLICATION_CONTROLLERS,
    };
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        const struct td_cache *cache = td_sight_cache(sight, kinds[i]);
        if (cache && !td_cache_is_synced(cache)) {
            return false;
        }
    }
    return true;
}

void hook_review_pod(struct hook_review *review)
{
    struct td_sight *sight = review->hook->options.control.sight;
    struct td_vertical_pod pod;
    struct td_controller owner;
    struct td_controller top;
    bool is_found = false;
    if (review->is_update) {
        return; /* not registered for: resources of a pod that exists are the updater's */
    }
    if (pod_is_probe(review)) {
        review->counted_as = "probe"; /* nobody's pod */
        review->patches = td_json_new_array(review->arena);
        td_patchops_set_annotation(review->arena, review->patches, TD_STR(HOOK_PROBE_KEY),
                                   TD_STR(HOOK_PROBE_ANSWER));
        return;
    }
    if (td_vertical_pod_decode(review->arena, review->object, &pod, NULL) != TD_OK) {
        hook_review_undecided(review, "unreadable-pod");
        return;
    }
    if (!td_controller_of_pod(&pod.meta, &owner)) {
        return;
    }
    if (!pod_is_known(sight)) {
        hook_review_wait(review, "not-synced");
        return;
    }
    if (!hook_index_has(review->hook->index, review->namespace)) {
        return; /* without a look at owners: nobody waits in a namespace without autoscalers */
    }
    int code = td_controller_top(td_sight_source(sight), &owner, &top, &is_found, NULL);
    if (code == TD_BUSY || code == TD_NOT_FOUND) {
        hook_review_wait(review, "owner-unknown"); /* it may be younger than what we know */
    } else if (code != TD_OK && code != TD_DENIED) {
        hook_review_undecided(review, "owner-unreadable");
    } else if (code == TD_OK && is_found) {
        pod_apply(review, &pod, &top);
    }
}
