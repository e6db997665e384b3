/*
 * Findings about workloads, their autoscalers and the budgets and limits of their namespaces. Each
 * lint is one function over one object, looked up from lists that are made once: workloads, budgets
 * and LimitRanges. What cannot work is a problem, what can but hardly as meant a warning. A lint
 * that needs an object which no file has is silent: the cluster may have it.
 */
#include "base/error.h"
#include "decide/manifests_private.h"
#include "kube/intstr.h"
#include "model/owners.h"

#define LINT_EVICTION_REPLICAS_MIN 2 /* the updater's --min-replicas */

struct lint_workload {
    size_t item;
    td_str namespace;
    struct td_workload workload;
};

struct lint {
    const struct td_manifests_files *files;
    struct td_arena *arena;
    struct lint_workload *workloads;
    size_t workload_count;
    size_t *budgets; /* PodDisruptionBudgets */
    size_t budget_count;
    size_t *limits; /* LimitRanges */
    size_t limit_count;
};

static const struct td_manifest_object *lint_object(const struct lint *lint, size_t item)
{
    return &lint->files->manifest->items[item];
}

static td_str lint_place(const struct lint *lint, size_t item)
{
    return td_manifests_place(lint->arena, lint_object(lint, item));
}

static const struct lint_workload *lint_workload(const struct lint *lint, size_t item)
{
    for (size_t i = 0; i < lint->workload_count; i++) {
        if (lint->workloads[i].item == item) {
            return &lint->workloads[i];
        }
    }
    return NULL;
}

/* ---- HPAs ---- */

static void lint_hpa_size(const struct lint *lint, size_t item, const struct td_hpa *hpa)
{
    if (hpa->min_replicas == hpa->max_replicas) {
        td_str message = td_arena_format(
            lint->arena,
            "%d is minReplicas too, so this HPA never scales; raise maxReplicas, or delete the HPA "
            "and set replicas of its target",
            (int)hpa->max_replicas);
        td_manifests_say(lint->files, item,
                         &(struct td_manifests_finding){.rule = "hpa-fixed-size",
                                                        .is_warning = true,
                                                        .field = TD_STR("spec.maxReplicas"),
                                                        .message = message});
    }
}

/* Does a LimitRange of the namespace give containers a request? Its default, and for want of one
 * its max or min, become the request of a container that has none. */
static bool lint_limits_default(const struct lint *lint, td_str namespace, td_str resource)
{
    static const char *const sources[] = {"defaultRequest", "default", "max", "min"};
    for (size_t i = 0; i < lint->limit_count; i++) {
        const struct td_manifest_object *range = lint_object(lint, lint->limits[i]);
        const struct td_json *item =
            td_json_first_item(td_json_get_path(range->tree, "spec.limits"));
        for (; item && td_str_equal(td_manifests_namespace(range), namespace); item = item->next) {
            bool is_container = td_str_equal(td_json_text(item, "type"), TD_STR("Container"));
            for (size_t j = 0; j < TD_COUNT(sources) && is_container; j++) {
                if (td_json_get(td_json_get(item, td_str_from(sources[j])), resource)) {
                    return true;
                }
            }
        }
    }
    return false;
}

/* Does a VPA or an Hvpa set this request when pods are made? */
static bool lint_group_sets(const struct lint *lint, const struct td_autoscaled *group,
                            td_str resource)
{
    for (size_t i = 0; i < group->count; i++) {
        const struct td_ownership_object *object = &lint->files->list.objects[group->items[i]];
        struct td_vpa vpa;
        if (object->kind == TD_OWNERSHIP_HVPA) {
            return true;
        }
        if (object->kind == TD_OWNERSHIP_VPA && !object->is_off &&
            td_vpa_decode(lint->arena, lint_object(lint, group->items[i])->tree, &vpa, NULL) ==
                TD_OK &&
            td_manifests_controls(&vpa.policy, resource)) {
            return true;
        }
    }
    return false;
}

static bool lint_requests(const struct td_resource_list *requests,
                          const struct td_resource_list *limits, td_str resource)
{
    return td_resource_list_get(requests, resource) || td_resource_list_get(limits, resource);
}

/* The container that has no request which the metric needs, "the pod" when pods have requests as a
 * whole and not this one, or nothing. */
static td_str lint_lacks_request(const struct lint *lint, const struct td_pod_template *template,
                                 const struct td_hpa_metric *metric)
{
    bool is_container = metric->type == TD_HPA_CONTAINER_RESOURCE;
    if (!is_container && (template->pod_requests.count > 0 || template->pod_limits.count > 0)) {
        return lint_requests(&template->pod_requests, &template->pod_limits, metric->name)
                   ? TD_STR_EMPTY
                   : TD_STR("the pod");
    }
    for (size_t i = 0; i < template->container_count; i++) {
        const struct td_template_container *container = &template->containers[i];
        if ((!is_container || td_str_equal(container->name, metric->container)) &&
            !lint_requests(&container->requests, &container->limits, metric->name)) {
            return td_arena_format(lint->arena, "container %.*s", TD_STR_ARG(container->name));
        }
    }
    return TD_STR_EMPTY;
}

static void lint_hpa_requests(const struct lint *lint, const struct td_autoscaled *group,
                              size_t item, const struct td_hpa *hpa)
{
    const struct lint_workload *target = lint_workload(lint, group->workload);
    bool is_written = td_json_get_path(lint_object(lint, item)->tree, "spec.metrics") != NULL;
    for (size_t i = 0; target && target->workload.template.is_set && i < hpa->metric_count; i++) {
        const struct td_hpa_metric *metric = &hpa->metrics[i];
        bool is_resource =
            metric->type == TD_HPA_RESOURCE || metric->type == TD_HPA_CONTAINER_RESOURCE;
        if (!is_resource || metric->target.type != TD_HPA_UTILIZATION) {
            continue;
        }
        td_str lacking = lint_lacks_request(lint, &target->workload.template, metric);
        if (lacking.len == 0 || lint_limits_default(lint, target->namespace, metric->name) ||
            lint_group_sets(lint, group, metric->name)) {
            continue;
        }
        td_str message = td_arena_format(
            lint->arena,
            "%.*s of %.*s has no %.*s request, so there is no utilization to scale on; set "
            "resources.requests.%.*s there, or use an averageValue target",
            TD_STR_ARG(lacking), TD_STR_ARG(lint_place(lint, target->item)),
            TD_STR_ARG(metric->name), TD_STR_ARG(metric->name));
        td_str field =
            is_written ? td_arena_format(lint->arena, "spec.metrics[%zu]", i) : TD_STR("spec");
        td_manifests_say(lint->files, item,
                         &(struct td_manifests_finding){
                             .rule = "hpa-without-request", .field = field, .message = message});
    }
}

/* ---- KEDA ---- */

static td_str lint_trigger_resource(const struct td_json *trigger)
{
    td_str type = td_json_text(trigger, "type");
    td_str how = td_json_text(trigger, "metricType");
    how = how.len > 0 ? how : td_json_text(td_json_get(trigger, TD_STR("metadata")), "type");
    bool is_resource = td_str_equal(type, TD_STR("cpu")) || td_str_equal(type, TD_STR("memory"));
    /* An absolute target does not move when requests do. */
    return is_resource && !td_str_equal(how, TD_STR("AverageValue")) ? type : TD_STR_EMPTY;
}

static void lint_scaled_vpa(const struct lint *lint, size_t item, size_t vpa_item)
{
    struct td_vpa vpa;
    const struct td_json *triggers =
        td_json_get_path(lint_object(lint, item)->tree, "spec.triggers");
    if (td_vpa_decode(lint->arena, lint_object(lint, vpa_item)->tree, &vpa, NULL) < 0) {
        return;
    }
    size_t index = 0;
    for (const struct td_json *trigger = td_json_first_item(triggers); trigger;
         trigger = trigger->next, index++) {
        td_str resource = lint_trigger_resource(trigger);
        if (resource.len == 0 || !td_manifests_controls(&vpa.policy, resource)) {
            continue;
        }
        td_str message = td_arena_format(
            lint->arena,
            "%.*s changes the %.*s requests that this trigger measures against, so the two drive "
            "each other; use metricType: AverageValue, or take %.*s out of the VPA",
            TD_STR_ARG(lint_place(lint, vpa_item)), TD_STR_ARG(resource), TD_STR_ARG(resource));
        td_manifests_say(lint->files, item,
                         &(struct td_manifests_finding){
                             .rule = "scaledobject-conflict",
                             .field = td_arena_format(lint->arena, "spec.triggers[%zu]", index),
                             .message = message});
    }
}

/* KEDA scales by an HPA of its own; it can be told to take over one that is there. */
static bool lint_takes_over(const struct td_json *scaled, td_str hpa)
{
    const struct td_json *annotations = td_json_get_path(scaled, "metadata.annotations");
    td_str wish = td_json_text(annotations, "scaledobject.keda.sh/transfer-hpa-ownership");
    const struct td_json *config =
        td_json_get_path(scaled, "spec.advanced.horizontalPodAutoscalerConfig");
    return td_str_equal(wish, TD_STR("true")) && td_str_equal(td_json_text(config, "name"), hpa);
}

static void lint_scaled_hpa(const struct lint *lint, size_t item, size_t hpa_item)
{
    const struct td_manifest_object *hpa = lint_object(lint, hpa_item);
    if (lint_takes_over(lint_object(lint, item)->tree, hpa->name)) {
        return;
    }
    td_str message = td_arena_format(
        lint->arena,
        "%.*s scales this target too, and KEDA makes an HPA for this object: delete one, or let "
        "KEDA take it over (annotation scaledobject.keda.sh/transfer-hpa-ownership)",
        TD_STR_ARG(lint_place(lint, hpa_item)));
    td_manifests_say(lint->files, item,
                     &(struct td_manifests_finding){.rule = "scaledobject-conflict",
                                                    .field = TD_STR("spec.scaleTargetRef"),
                                                    .message = message});
}

static void lint_scaled_object(const struct lint *lint, const struct td_autoscaled *group,
                               size_t item)
{
    for (size_t i = 0; i < group->count; i++) {
        const struct td_ownership_object *other = &lint->files->list.objects[group->items[i]];
        if (other->kind == TD_OWNERSHIP_VPA && !other->is_off) {
            lint_scaled_vpa(lint, item, group->items[i]);
        } else if (other->kind == TD_OWNERSHIP_HPA) {
            lint_scaled_hpa(lint, item, group->items[i]);
        }
    }
}

/* ---- Budgets ---- */

static bool lint_selects(const struct lint *lint, size_t budget, const struct lint_workload *target)
{
    const struct td_manifest_object *item = lint_object(lint, budget);
    struct td_selector selector;
    return target->workload.template.is_set &&
           td_str_equal(td_manifests_namespace(item), target->namespace) &&
           td_selector_from_json(lint->arena, td_json_get_path(item->tree, "spec.selector"),
                                 &selector, NULL) == TD_OK &&
           td_selector_matches(&selector, &target->workload.template.labels);
}

static bool lint_has_budget(const struct lint *lint, const struct lint_workload *target)
{
    for (size_t i = 0; i < lint->budget_count; i++) {
        if (lint_selects(lint, lint->budgets[i], target)) {
            return true;
        }
    }
    return false;
}

/* The most replicas that the files let a workload have; -1: not known. */
static int64_t lint_replicas_max(const struct lint *lint, const struct lint_workload *target)
{
    const struct td_autoscaled_list *list = &lint->files->list;
    int64_t replicas = target->workload.has_replicas ? target->workload.replicas : 1;
    for (size_t i = 0; i < list->count; i++) {
        const struct td_autoscaled *group = &list->items[i];
        for (size_t j = 0; j < group->count && group->workload == target->item; j++) {
            size_t item = group->items[j];
            struct td_hpa hpa;
            if (list->objects[item].kind == TD_OWNERSHIP_HPA &&
                td_manifests_hpa(lint->arena, lint_object(lint, item)->tree, &hpa, NULL) == TD_OK) {
                replicas = hpa.max_replicas;
            } else if (list->objects[item].kind != TD_OWNERSHIP_VPA) {
                return -1;
            }
        }
    }
    enum td_workload_kind kind = td_workload_kind_of(target->workload.kind);
    bool is_counted = kind == TD_WORKLOAD_DEPLOYMENT || kind == TD_WORKLOAD_STATEFUL_SET ||
                      kind == TD_WORKLOAD_REPLICA_SET || kind == TD_WORKLOAD_REPLICATION_CONTROLLER;
    return is_counted ? replicas : -1;
}

/* A VPA that evicts the pods of this workload, or TD_OWNERSHIP_NONE. */
static size_t lint_evictor(const struct lint *lint, const struct lint_workload *target)
{
    const struct td_autoscaled_list *list = &lint->files->list;
    for (size_t i = 0; i < list->count; i++) {
        const struct td_autoscaled *group = &list->items[i];
        for (size_t j = 0; j < group->count && group->workload == target->item; j++) {
            size_t item = group->items[j];
            struct td_vpa vpa;
            if (list->objects[item].kind == TD_OWNERSHIP_VPA &&
                td_vpa_decode(lint->arena, lint_object(lint, item)->tree, &vpa, NULL) == TD_OK &&
                vpa.mode == TD_VPA_RECREATE) {
                return item;
            }
        }
    }
    return TD_OWNERSHIP_NONE;
}

/* How many pods the files let the budget select, -1 when that is not known, and a VPA that would
 * evict them. */
static int64_t lint_budget_pods(const struct lint *lint, size_t budget, size_t *ret_vpa)
{
    int64_t sum = 0;
    size_t found = 0;
    for (size_t i = 0; i < lint->workload_count; i++) {
        const struct lint_workload *target = &lint->workloads[i];
        if (!lint_selects(lint, budget, target)) {
            continue;
        }
        int64_t replicas = lint_replicas_max(lint, target);
        size_t vpa = lint_evictor(lint, target);
        sum = replicas < 0 || sum < 0 ? -1 : sum + replicas;
        *ret_vpa = vpa == TD_OWNERSHIP_NONE ? *ret_vpa : vpa;
        found++;
    }
    return found > 0 ? sum : -1;
}

static bool lint_intstr(const struct lint *lint, const struct td_json *node, struct td_intstr *ret)
{
    return node &&
           td_intstr_parse_json(lint->arena, td_json_line(lint->arena, node), ret, NULL) == TD_OK;
}

/* Why no pod may ever be evicted under this budget, or nothing. */
static td_str lint_budget_blocks(const struct lint *lint, const struct td_json *spec, int64_t pods,
                                 td_str *ret_field)
{
    const struct td_json *most = td_json_get(spec, TD_STR("maxUnavailable"));
    const struct td_json *least = td_json_get(spec, TD_STR("minAvailable"));
    struct td_intstr value;
    int64_t count = 0;
    if (lint_intstr(lint, most, &value) &&
        td_intstr_scaled(&value, 100, true, &count, NULL) == TD_OK && count == 0) {
        *ret_field = TD_STR("spec.maxUnavailable");
        return TD_STR("0 pods may be unavailable");
    }
    if (!lint_intstr(lint, least, &value)) {
        return TD_STR_EMPTY;
    }
    *ret_field = TD_STR("spec.minAvailable");
    if (value.is_string && td_intstr_scaled(&value, 100, true, &count, NULL) == TD_OK &&
        count >= 100) {
        return TD_STR("all pods must be available");
    }
    if (pods > 0 && td_intstr_scaled(&value, pods, true, &count, NULL) == TD_OK && count >= pods) {
        return td_arena_format(lint->arena, "%lld pod%s must be available and at most %lld run%s",
                               (long long)count, count == 1 ? "" : "s", (long long)pods,
                               pods == 1 ? "s" : "");
    }
    return TD_STR_EMPTY;
}

static void lint_budget(const struct lint *lint, size_t item)
{
    const struct td_json *spec = td_json_get(lint_object(lint, item)->tree, TD_STR("spec"));
    size_t vpa = TD_OWNERSHIP_NONE;
    td_str field = TD_STR_EMPTY;
    int64_t pods = lint_budget_pods(lint, item, &vpa);
    td_str why = lint_budget_blocks(lint, spec, pods, &field);
    if (why.len == 0) {
        return;
    }
    bool has_vpa = vpa != TD_OWNERSHIP_NONE;
    td_str victim = has_vpa ? td_arena_format(lint->arena, "%.*s cannot update its pods",
                                              TD_STR_ARG(lint_place(lint, vpa)))
                            : TD_STR("drains of nodes and the VPA's updater wait forever");
    td_manifests_say(
        lint->files, item,
        &(struct td_manifests_finding){
            .rule = "pdb-blocks-evictions",
            .is_warning = !has_vpa,
            .field = field,
            .message = td_arena_format(lint->arena,
                                       "%.*s, so no pod can be evicted: %.*s; allow one pod to be "
                                       "unavailable",
                                       TD_STR_ARG(why), TD_STR_ARG(victim)),
        });
}

/* ---- VPAs ---- */

/* Nothing but this VPA acts on the target. */
static bool lint_is_alone(const struct lint *lint, const struct td_autoscaled *group)
{
    for (size_t i = 0; i < group->count; i++) {
        if (lint->files->list.objects[group->items[i]].kind != TD_OWNERSHIP_VPA) {
            return false;
        }
    }
    return true;
}

static void lint_vpa_replica(const struct lint *lint, const struct td_autoscaled *group,
                             size_t item, const struct td_vpa *vpa)
{
    const struct lint_workload *target = lint_workload(lint, group->workload);
    if (!target || vpa->mode != TD_VPA_RECREATE || !lint_is_alone(lint, group) ||
        lint_replicas_max(lint, target) != 1) {
        return;
    }
    bool is_evicted = vpa->has_min_replicas && vpa->min_replicas < LINT_EVICTION_REPLICAS_MIN;
    if (is_evicted && lint_has_budget(lint, target)) {
        return; /* a budget says that this was thought of */
    }
    const char *what =
        is_evicted
            ? "evicting its only pod is an outage, and no PodDisruptionBudget says that this is "
              "meant; run 2 replicas, use InPlaceOrRecreate, or add a budget"
            : "and the updater evicts from 2 replicas on (--min-replicas): its pod is not "
              "updated while it runs; run 2 replicas, use InPlaceOrRecreate, or accept the outage "
              "with minReplicas: 1";
    td_manifests_say(lint->files, item,
                     &(struct td_manifests_finding){
                         .rule = "vpa-one-replica",
                         .is_warning = true,
                         .field = TD_STR("spec.updatePolicy"),
                         .message = td_arena_format(lint->arena, "%.*s has one replica%s %s",
                                                    TD_STR_ARG(lint_place(lint, target->item)),
                                                    is_evicted ? ";" : ",", what),
                     });
}

/* A maxAllowed of a VPA. */
struct lint_allowed {
    size_t item;
    td_str field;
    const struct td_resource_list *amounts;
};

static void lint_compare_max(const struct lint *lint, const struct lint_allowed *allowed,
                             size_t range, const struct td_resource_list *max)
{
    for (size_t i = 0; i < allowed->amounts->count; i++) {
        const struct td_resource_amount *mine = &allowed->amounts->items[i];
        const struct td_quantity *bound = td_resource_list_get(max, mine->name);
        if (!bound || td_quantity_compare(&mine->quantity, bound) <= 0) {
            continue;
        }
        td_str message = td_arena_format(
            lint->arena,
            "%.*s is above the maximum of %.*s, %.*s: recommendations end there; lower maxAllowed "
            "or raise the LimitRange",
            TD_STR_ARG(td_quantity_text(lint->arena, &mine->quantity)),
            TD_STR_ARG(lint_place(lint, range)), TD_STR_ARG(td_quantity_text(lint->arena, bound)));
        td_str field = td_arena_format(lint->arena, "%.*s.%.*s", TD_STR_ARG(allowed->field),
                                       TD_STR_ARG(mine->name));
        td_manifests_say(lint->files, allowed->item,
                         &(struct td_manifests_finding){.rule = "vpa-above-limitrange",
                                                        .is_warning = true,
                                                        .field = field,
                                                        .message = message});
    }
}

/* Against every LimitRange of the namespace, whose items of one type count. */
static void lint_max_allowed(const struct lint *lint, const struct lint_allowed *allowed,
                             td_str type)
{
    td_str namespace = td_manifests_namespace(lint_object(lint, allowed->item));
    for (size_t i = 0; i < lint->limit_count; i++) {
        const struct td_manifest_object *range = lint_object(lint, lint->limits[i]);
        const struct td_json *limits = td_json_get_path(range->tree, "spec.limits");
        bool is_same = td_str_equal(td_manifests_namespace(range), namespace);
        for (const struct td_json *limit = is_same ? td_json_first_item(limits) : NULL; limit;
             limit = limit->next) {
            struct td_resource_list max;
            const struct td_json *tree = td_json_get(limit, TD_STR("max"));
            if (td_str_equal(td_json_text(limit, "type"), type) &&
                td_resource_list_decode(lint->arena, tree, &max, NULL) == TD_OK) {
                lint_compare_max(lint, allowed, lint->limits[i], &max);
            }
        }
    }
}

static void lint_vpa_limits(const struct lint *lint, size_t item, const struct td_vpa *vpa)
{
    for (size_t i = 0; i < vpa->policy.container_count; i++) {
        const struct lint_allowed allowed = {
            .item = item,
            .field = td_arena_format(lint->arena,
                                     "spec.resourcePolicy.containerPolicies[%zu].maxAllowed", i),
            .amounts = &vpa->policy.containers[i].max_allowed,
        };
        lint_max_allowed(lint, &allowed, TD_STR("Container"));
    }
    const struct lint_allowed of_pod = {
        .item = item,
        .field = TD_STR("spec.resourcePolicy.podPolicies.maxAllowed"),
        .amounts = &vpa->policy.pod.max_allowed,
    };
    lint_max_allowed(lint, &of_pod, TD_STR("Pod"));
}

/* ---- Targets ---- */

/* A target that no file has although the files have other workloads of its namespace. Files that
 * say no namespace may be of any. */
static void lint_target(const struct lint *lint, const struct td_autoscaled *group)
{
    const struct td_ownership_target *target = &group->target;
    const struct lint_workload *neighbour = NULL;
    bool is_written = lint_object(lint, group->items[0])->namespace.len > 0;
    if (td_workload_kind_of(target->kind) == TD_WORKLOAD_OTHER) {
        return;
    }
    for (size_t i = 0; i < lint->workload_count; i++) {
        const struct lint_workload *other = &lint->workloads[i];
        bool is_near = td_str_equal(other->namespace, target->namespace);
        bool is_open = !is_written || lint_object(lint, other->item)->namespace.len == 0;
        if ((is_near || is_open) && td_str_equal(other->workload.name, target->name) &&
            td_str_equal(other->workload.kind, target->kind)) {
            return;
        }
        neighbour = is_near && !neighbour ? other : neighbour;
    }
    for (size_t i = 0; i < group->count && neighbour; i++) {
        td_str message = td_arena_format(
            lint->arena,
            "no file has %.*s %.*s, though they have other workloads of the namespace, such as "
            "%.*s; correct the reference, or validate the target's file too",
            TD_STR_ARG(target->kind), TD_STR_ARG(target->name),
            TD_STR_ARG(lint_place(lint, neighbour->item)));
        td_manifests_say(lint->files, group->items[i],
                         &(struct td_manifests_finding){
                             .rule = "target-missing",
                             .is_warning = true,
                             .field = lint->files->list.objects[group->items[i]].target_field,
                             .message = message});
    }
}

/* ---- All of them ---- */

static void lint_group(const struct lint *lint, const struct td_autoscaled *group)
{
    for (size_t i = 0; i < group->count; i++) {
        size_t item = group->items[i];
        const struct td_json *tree = lint_object(lint, item)->tree;
        struct td_hpa hpa;
        struct td_vpa vpa;
        switch (lint->files->list.objects[item].kind) {
        case TD_OWNERSHIP_HPA:
            if (td_manifests_hpa(lint->arena, tree, &hpa, NULL) == TD_OK) {
                lint_hpa_size(lint, item, &hpa);
                lint_hpa_requests(lint, group, item, &hpa);
            }
            break;
        case TD_OWNERSHIP_VPA:
            if (td_vpa_decode(lint->arena, tree, &vpa, NULL) == TD_OK) {
                lint_vpa_replica(lint, group, item, &vpa);
                lint_vpa_limits(lint, item, &vpa);
            }
            break;
        case TD_OWNERSHIP_SCALED_OBJECT:
            lint_scaled_object(lint, group, item);
            break;
        case TD_OWNERSHIP_HVPA:
            break;
        }
    }
    if (group->workload == TD_OWNERSHIP_NONE) {
        lint_target(lint, group);
    }
}

static bool lint_is(const struct td_manifest_object *item, td_str api_version, td_str kind)
{
    return td_str_equal(item->api_version, api_version) && td_str_equal(item->kind, kind);
}

static void lint_collect(struct lint *lint)
{
    size_t count = lint->files->manifest->count;
    lint->workloads = td_arena_array(lint->arena, struct lint_workload, count);
    lint->budgets = td_arena_array(lint->arena, size_t, count);
    lint->limits = td_arena_array(lint->arena, size_t, count);
    for (size_t i = 0; i < count; i++) {
        const struct td_manifest_object *item = lint_object(lint, i);
        struct lint_workload *next = &lint->workloads[lint->workload_count];
        if (lint_is(item, TD_STR("policy/v1"), TD_STR("PodDisruptionBudget"))) {
            lint->budgets[lint->budget_count++] = i;
        } else if (lint_is(item, TD_STR("v1"), TD_STR("LimitRange"))) {
            lint->limits[lint->limit_count++] = i;
        } else if (td_workload_kind_of(item->kind) != TD_WORKLOAD_OTHER &&
                   td_workload_decode(lint->arena, item->tree, &next->workload, NULL) == TD_OK) {
            next->item = i;
            next->namespace = td_manifests_namespace(item);
            lint->workload_count++;
        }
    }
}

void td_manifests_lint(const struct td_manifests_files *files)
{
    struct lint lint = {.files = files, .arena = files->arena};
    lint_collect(&lint);
    for (size_t i = 0; i < files->list.count; i++) {
        lint_group(&lint, &files->list.items[i]);
    }
    for (size_t i = 0; i < lint.budget_count; i++) {
        lint_budget(&lint, lint.budgets[i]);
    }
}
