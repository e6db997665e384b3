/* The containers are summed up, the stanza is overwritten from the recommendation, and each
 * resource is then corrected: request up to the sum, limit up to the request, containers down. */
#include "decide/vertical/patch/podstanza.h"

#include "base/error.h"
#include "decide/vertical/patch/patchops.h"
#include "decide/vertical/patch/proportional.h"
#include "decide/vertical/resourcelist.h"

struct stanza {
    struct td_arena *arena;
    const struct td_changes_input *input;
    struct td_container_change *changes;
    struct td_resource_list old_requests; /* as the API server fills them in */
    struct td_resource_list container_sum;
    struct td_cap_steps *steps;
    struct td_stanza *made;
};

static const char *const note_texts[] = {
    [TD_STANZA_REQUEST] = "request",
    [TD_STANZA_LIMIT] = "limit",
    [TD_STANZA_LIMIT_NOT_SET] = "limit NOT set since the Pod has none",
    [TD_STANZA_CAPPED_MIN] = "capped to fit Min in Pod LimitRange",
    [TD_STANZA_CAPPED_MAX] = "capped to fit Max in Pod LimitRange",
    [TD_STANZA_CAPPED_NODE] = "capped to largest node",
    [TD_STANZA_LIMIT_CAPPED] = "limit capped to fit Max in Pod LimitRange",
    [TD_STANZA_REQUEST_RAISED] = "request raised to the sum of containers",
    [TD_STANZA_LIMIT_RAISED] = "limit raised to hold requests and init containers",
    [TD_STANZA_CONTAINER_LIMIT_LOWERED] = "limit lowered to the Pod limit",
};

td_str td_stanza_note_text(struct td_arena *arena, const struct td_stanza_note *note)
{
    return td_arena_format(arena, "%.*s %s", TD_STR_ARG(note->resource), note_texts[note->kind]);
}

static void stanza_note(const struct stanza *stanza, enum td_stanza_note_kind kind, td_str resource,
                        td_str container)
{
    struct td_stanza *made = stanza->made;
    made->notes = td_arena_grow(stanza->arena, made->notes, made->note_count, &made->note_cap,
                                sizeof(*made->notes));
    made->notes[made->note_count++] =
        (struct td_stanza_note){.kind = kind, .resource = resource, .container = container};
}

/* cpu and memory requests of the pod, with those that the API server would fill in: from the sum of
 * its containers where one of them asks, else from the limit. */
static struct td_resource_list default_requests(struct td_arena *arena, const struct td_pod *pod)
{
    const td_str names[] = {TD_CPU, TD_MEMORY};
    struct td_resource_list requests = {.items = NULL, .count = 0};
    for (size_t i = 0; i < 2; i++) {
        const struct td_quantity *request = td_resource_list_get(&pod->pod_requests, names[i]);
        const struct td_quantity *limit = td_resource_list_get(&pod->pod_limits, names[i]);
        struct td_quantity sum = td_quantity_new(0, TD_QUANTITY_NONE);
        bool is_asked = false;
        for (size_t c = 0; !request && limit && c < pod->container_count; c++) {
            const struct td_quantity *part =
                td_resource_list_get(&pod->containers[c].spec_requests, names[i]);
            if (part) {
                td_quantity_add(arena, &sum, part);
                is_asked = true;
            }
        }
        if (request || limit) {
            td_resource_list_set(arena, &requests, names[i],
                                 request    ? request
                                 : is_asked ? &sum
                                            : limit);
        }
    }
    return requests;
}

/* What the containers ask for together once they are changed, init containers included. */
static int sum_containers(struct stanza *stanza, struct td_error *err)
{
    struct td_arena *arena = stanza->arena;
    const struct td_pod *pod = stanza->input->pod;
    struct td_json *tree = td_json_copy(arena, pod->tree, false);
    const struct td_json *list = td_json_get_path(tree, "spec.containers");
    struct td_json *item = td_json_first_item(list);
    for (size_t i = 0; item && i < pod->container_count; item = item->next, i++) {
        const struct td_resource_list *requests = &stanza->changes[i].requests;
        if (requests->count == 0) {
            continue;
        }
        struct td_json *resources = td_json_ensure_object(arena, item, TD_STR("resources"));
        struct td_json *into = td_json_ensure_object(arena, resources, TD_STR("requests"));
        for (size_t r = 0; r < requests->count; r++) {
            td_str text = td_quantity_text(arena, &requests->items[r].quantity);
            td_json_set_str(arena, into, requests->items[r].name, text);
        }
    }
    const struct td_pod_resource_options options = {.skip_pod_level_resources = true,
                                                    .exclude_overhead = true};
    return td_pod_requests(arena, tree, &options, &stanza->container_sum, err);
}

static void note_caps(const struct stanza *stanza, td_str resource)
{
    /* The steps of this resource's target at pod level say what moved it. */
    for (size_t i = 0; i < stanza->steps->count; i++) {
        const struct td_cap_step *step = &stanza->steps->items[i];
        if (step->container.len > 0 || step->value != TD_CAP_TARGET ||
            !td_str_equal(step->resource, resource)) {
            continue;
        }
        stanza_note(stanza,
                    step->rule == TD_CAP_RULE_POD_RANGE_MIN   ? TD_STANZA_CAPPED_MIN
                    : step->rule == TD_CAP_RULE_POD_RANGE_MAX ? TD_STANZA_CAPPED_MAX
                                                              : TD_STANZA_CAPPED_NODE,
                    resource, TD_STR_EMPTY);
    }
}

/* The limit that goes with a new request. A Pod LimitRange's maximum holds it, the request too. */
static void set_limit(const struct stanza *stanza, td_str resource,
                      const struct td_quantity *request)
{
    const struct td_limit_summary *limits = td_limit_summary_or_null(&stanza->input->limits->pod);
    const struct td_pod *pod = stanza->input->pod;
    struct td_proportion proportion = {
        .limit = td_resource_list_get(&pod->pod_limits, resource),
        .request = td_resource_list_get(&stanza->old_requests, resource),
        .recommended = request,
    };
    const struct td_quantity *origin = td_resource_list_get(&pod->origin_pod_limits, resource);
    if (proportion.limit && origin) {
        proportion.limit = origin;
        proportion.request = td_resource_list_get(&pod->origin_pod_requests, resource);
    }
    if (!proportion.limit) {
        stanza_note(stanza, TD_STANZA_LIMIT_NOT_SET, resource, TD_STR_EMPTY);
        return;
    }
    struct td_proportional_limit made = td_proportional_limit(resource, &proportion);
    if (!made.is_set) {
        return;
    }
    const struct td_quantity *max = limits ? td_resource_list_get(&limits->max, resource) : NULL;
    if (max && td_quantity_sign(max) != 0 && td_quantity_compare(&made.limit, max) > 0) {
        const struct td_quantity *held = td_quantity_compare(request, max) > 0 ? request : max;
        if (td_quantity_compare(&made.limit, held) > 0) {
            td_cap_steps_add(stanza->arena, stanza->steps,
                             &(struct td_cap_step){.resource = resource,
                                                   .value = TD_CAP_LIMIT,
                                                   .rule = TD_CAP_RULE_POD_RANGE_MAX,
                                                   .before = made.limit,
                                                   .after = *held});
            made.limit = *held;
            stanza_note(stanza, TD_STANZA_LIMIT_CAPPED, resource, TD_STR_EMPTY);
        }
    }
    td_resource_list_set(stanza->arena, &stanza->made->limits, resource, &made.limit);
    stanza_note(stanza, TD_STANZA_LIMIT, resource, TD_STR_EMPTY);
}

static void overwrite(const struct stanza *stanza)
{
    const struct td_resource_policy *policy = &stanza->input->vpa->policy;
    for (size_t i = 0; i < stanza->old_requests.count; i++) {
        td_str resource = stanza->old_requests.items[i].name;
        const struct td_quantity *target =
            td_resource_list_get(&stanza->made->recommendation.target, resource);
        if (!target) {
            stanza->made->lacks_recommendation = true;
            continue;
        }
        note_caps(stanza, resource);
        td_resource_list_set(stanza->arena, &stanza->made->requests, resource, target);
        stanza_note(stanza, TD_STANZA_REQUEST, resource, TD_STR_EMPTY);
        if (!policy->pod.is_requests_only) {
            set_limit(stanza, resource, target);
        }
    }
}

/* What a list will hold after the change: the new value, else the old one, else NULL. */
static const struct td_quantity *after(const struct td_resource_list *changed,
                                       const struct td_resource_list *old, td_str resource)
{
    const struct td_quantity *found = td_resource_list_get(changed, resource);
    return found ? found : td_resource_list_get(old, resource);
}

/* The highest limit of an init container; those are never changed. */
static int init_limit(const struct stanza *stanza, td_str resource, struct td_quantity *ret,
                      bool *ret_has, struct td_error *err)
{
    const struct td_json *list = td_json_get_path(stanza->input->pod->tree, "spec.initContainers");
    const struct td_json *item = td_json_first_item(list);
    *ret_has = false;
    for (; item; item = item->next) {
        const struct td_json *limit =
            td_json_get(td_json_get_path(item, "resources.limits"), resource);
        struct td_quantity quantity;
        if (!limit) {
            continue;
        }
        int code = td_quantity_from_json(stanza->arena, limit, &quantity, err);
        if (code < 0) {
            return td_error_wrap(err, code, "spec.initContainers[].resources.limits");
        }
        if (!*ret_has || td_quantity_compare(&quantity, ret) > 0) {
            *ret = quantity;
        }
        *ret_has = true;
    }
    return TD_OK;
}

static void raise_to(const struct stanza *stanza, struct td_resource_list *list, td_str resource,
                     const struct td_quantity *from, const struct td_quantity *to,
                     enum td_cap_rule rule)
{
    bool is_request = rule == TD_CAP_RULE_CONTAINER_SUM;
    td_cap_steps_add(stanza->arena, stanza->steps,
                     &(struct td_cap_step){.resource = resource,
                                           .value = is_request ? TD_CAP_REQUEST : TD_CAP_LIMIT,
                                           .rule = rule,
                                           .before = *from,
                                           .after = *to});
    td_resource_list_set(stanza->arena, list, resource, to);
    stanza_note(stanza, is_request ? TD_STANZA_REQUEST_RAISED : TD_STANZA_LIMIT_RAISED, resource,
                TD_STR_EMPTY);
}

static void lower_container_limits(const struct stanza *stanza, td_str resource,
                                   const struct td_quantity *pod_limit)
{
    const struct td_pod *pod = stanza->input->pod;
    for (size_t i = 0; i < pod->container_count; i++) {
        const struct td_pod_container *container = &pod->containers[i];
        struct td_container_change *change = &stanza->changes[i];
        const struct td_quantity *limit = after(&change->limits, &container->spec_limits, resource);
        const struct td_quantity *request =
            after(&change->requests, &container->spec_requests, resource);
        if (!limit || td_quantity_compare(limit, pod_limit) <= 0) {
            continue;
        }
        struct td_quantity lowered =
            request && td_quantity_compare(request, pod_limit) > 0 ? *request : *pod_limit;
        td_cap_steps_add(stanza->arena, stanza->steps,
                         &(struct td_cap_step){.container = container->name,
                                               .resource = resource,
                                               .value = TD_CAP_LIMIT,
                                               .rule = TD_CAP_RULE_POD_LIMIT,
                                               .before = *limit,
                                               .after = lowered});
        td_resource_list_set(stanza->arena, &change->limits, resource, &lowered);
        const struct td_stanza_note note = {.kind = TD_STANZA_CONTAINER_LIMIT_LOWERED,
                                            .resource = resource,
                                            .container = container->name};
        td_notes_add(stanza->arena, &change->notes, td_stanza_note_text(stanza->arena, &note));
        stanza_note(stanza, note.kind, resource, container->name);
    }
}

/* The rules of the API server for one resource of the pod. */
static int correct(const struct stanza *stanza, td_str resource, struct td_error *err)
{
    struct td_stanza *made = stanza->made;
    const struct td_pod *pod = stanza->input->pod;
    const struct td_quantity *request = after(&made->requests, &stanza->old_requests, resource);
    const struct td_quantity *sum = td_resource_list_get(&stanza->container_sum, resource);
    if (request && sum && td_quantity_compare(request, sum) < 0) {
        raise_to(stanza, &made->requests, resource, request, sum, TD_CAP_RULE_CONTAINER_SUM);
        request = sum;
    }
    const struct td_quantity *limit = after(&made->limits, &pod->pod_limits, resource);
    if (!limit) {
        return TD_OK;
    }
    if (request && td_quantity_compare(limit, request) < 0) {
        raise_to(stanza, &made->limits, resource, limit, request, TD_CAP_RULE_POD_REQUEST);
        limit = request;
    }
    struct td_quantity highest;
    bool has_init = false;
    int code = init_limit(stanza, resource, &highest, &has_init, err);
    if (code < 0) {
        return code;
    }
    if (has_init && td_quantity_compare(limit, &highest) < 0) {
        raise_to(stanza, &made->limits, resource, limit, &highest, TD_CAP_RULE_INIT_LIMIT);
        limit = &highest;
    }
    struct td_quantity held = *limit;
    lower_container_limits(stanza, resource, &held);
    return TD_OK;
}

int td_stanza_make(struct td_arena *arena, const struct td_changes_input *input,
                   struct td_container_change *changes, struct td_cap_steps *steps,
                   struct td_stanza *ret, struct td_error *err)
{
    const struct td_pod_recommendation none = {.is_set = false};
    const struct td_vpa *vpa = input->vpa;
    struct td_cap_steps own = {.items = NULL};
    struct td_stanza made = {.notes = NULL};
    struct stanza stanza = {
        .arena = arena,
        .input = input,
        .changes = changes,
        .old_requests = default_requests(arena, input->pod),
        .steps = steps ? steps : &own,
        .made = &made,
    };
    bool is_off = vpa->mode == TD_VPA_OFF;
    made.recommendation = td_pod_level_cap(
        arena, vpa->has_recommendation && !is_off ? &vpa->recommendation.pod : &none,
        td_limit_summary_or_null(&input->limits->pod), input->largest_node, stanza.steps);
    if (!is_off) {
        overwrite(&stanza);
    }
    int code = sum_containers(&stanza, err);
    for (size_t i = 0; i < stanza.old_requests.count && code == TD_OK; i++) {
        code = correct(&stanza, stanza.old_requests.items[i].name, err);
    }
    if (code == TD_OK) {
        *ret = made;
    }
    return code;
}

struct td_lacking td_stanza_lacking(struct td_arena *arena, const struct td_pod *pod,
                                    const struct td_changes *changes,
                                    const struct td_stanza *stanza)
{
    td_str *names = td_arena_array(arena, td_str, pod->container_count + 1);
    struct td_lacking lacking = {.containers = names, .is_pod = stanza->lacks_recommendation};
    for (size_t i = 0; i < pod->container_count; i++) {
        if (changes->containers[i].lacks_recommendation) {
            names[lacking.container_count++] = pod->containers[i].name;
        }
    }
    return lacking;
}

void td_stanza_patch(struct td_arena *arena, const struct td_pod *pod,
                     const struct td_stanza *stanza, struct td_json *patches)
{
    const struct td_json *old = td_json_get_path(pod->tree, "spec.resources");
    const struct td_patch_place place = {
        .path = TD_STR("/spec/resources"),
        .has_requests = td_json_is(td_json_get(old, TD_STR("requests")), TD_JSON_TYPE_OBJECT),
        .has_limits = td_json_is(td_json_get(old, TD_STR("limits")), TD_JSON_TYPE_OBJECT),
    };
    if (stanza->requests.count + stanza->limits.count > 0) {
        td_patchops_set_resources(arena, patches, &place, &stanza->requests, &stanza->limits);
    }
}
