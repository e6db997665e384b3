/*
 * A quota is judged in the order of the plugin: does it count this pod (scopes), is every compute
 * resource that it limits stated by the pod or by each container, and does the usage stay within
 * the hard limits once the replaced pod is gone.
 */
#include "api/pod/pod_quota.h"

#include "api/object_check.h"
#include "api/pod/pod_validate.h"
#include "base/error.h"
#include "kube/podresources.h"

/* ---- Which quotas count a pod ---- */

static bool has_value(const struct td_json *values, td_str value)
{
    for (const struct td_json *item = td_json_first_item(values); item; item = item->next) {
        if (td_json_is(item, TD_JSON_TYPE_STRING) && td_str_equal(item->text, value)) {
            return true;
        }
    }
    return false;
}

static bool meets_priority(const struct td_json *pod, td_str operation,
                           const struct td_json *values)
{
    td_str name = td_json_text(td_kind_spec(pod), "priorityClassName");
    if (td_str_equal(operation, TD_STR("In"))) {
        return has_value(values, name);
    }
    if (td_str_equal(operation, TD_STR("NotIn"))) {
        return !has_value(values, name);
    }
    return td_str_equal(operation, TD_STR("DoesNotExist")) ? name.len == 0 : name.len > 0;
}

static bool meets_scope(struct td_arena *arena, const struct td_json *pod, td_str scope,
                        td_str operation, const struct td_json *values)
{
    bool is_best_effort = td_str_equal(td_pod_qos_class(arena, pod), TD_STR("BestEffort"));
    bool is_terminating = td_json_member(td_kind_spec(pod), "activeDeadlineSeconds");
    if (td_str_equal(scope, TD_STR("BestEffort")) || td_str_equal(scope, TD_STR("NotBestEffort"))) {
        return is_best_effort == td_str_equal(scope, TD_STR("BestEffort"));
    }
    if (td_str_equal(scope, TD_STR("Terminating")) ||
        td_str_equal(scope, TD_STR("NotTerminating"))) {
        return is_terminating == td_str_equal(scope, TD_STR("Terminating"));
    }
    return td_str_equal(scope, TD_STR("PriorityClass")) && meets_priority(pod, operation, values);
}

static bool counts_pod(struct td_arena *arena, const struct td_json *quota,
                       const struct td_json *pod)
{
    const struct td_json *spec = td_kind_spec(quota);
    const struct td_json *scope = td_json_first_item(td_json_member(spec, "scopes"));
    for (; scope; scope = scope->next) {
        if (!td_json_is(scope, TD_JSON_TYPE_STRING) ||
            !meets_scope(arena, pod, scope->text, TD_STR("Exists"), NULL)) {
            return false;
        }
    }
    const struct td_json *row =
        td_json_first_item(td_json_get_path(spec, "scopeSelector.matchExpressions"));
    for (; row; row = row->next) {
        if (!meets_scope(arena, pod, td_json_text(row, "scopeName"), td_json_text(row, "operator"),
                         td_json_member(row, "values"))) {
            return false;
        }
    }
    return true;
}

/* ---- What a pod takes of it ---- */

static const td_str bare_names[] = {TD_STR_INIT("cpu"), TD_STR_INIT("memory"),
                                    TD_STR_INIT("ephemeral-storage")};

/* The amount of a quota's resource in requests and limits; false: they do not tell of it. */
static bool usage_in(td_str resource, const struct td_resource_list *requests,
                     const struct td_resource_list *limits, struct td_quantity *ret)
{
    td_str name = resource;
    const struct td_resource_list *list = NULL;
    if (td_str_starts_with(resource, TD_STR("requests."))) {
        name = td_str_slice(resource, TD_STR("requests.").len, resource.len);
        list = requests;
    } else if (td_str_starts_with(resource, TD_STR("limits."))) {
        name = td_str_slice(resource, TD_STR("limits.").len, resource.len);
        list = limits;
    } else if (td_str_starts_with(resource, TD_STR("hugepages-"))) {
        list = requests;
    }
    for (size_t i = 0; !list && i < TD_COUNT(bare_names); i++) {
        list = td_str_equal(resource, bare_names[i]) ? requests : NULL;
    }
    const struct td_quantity *found = list ? td_resource_list_get(list, name) : NULL;
    if (found) {
        *ret = *found;
    }
    return found != NULL;
}

static bool is_count(td_str resource)
{
    return td_str_equal(resource, TD_STR("pods")) || td_str_equal(resource, TD_STR("count/pods"));
}

static struct td_quantity usage_of(struct td_arena *arena, const struct td_json *pod,
                                   td_str resource)
{
    static const struct td_pod_resource_options options = {.exclude_overhead = false};
    struct td_quantity usage = td_quantity_new(is_count(resource), TD_QUANTITY_DECIMAL_SI);
    struct td_resource_list requests;
    struct td_resource_list limits;
    if (!is_count(resource) && td_pod_requests(arena, pod, &options, &requests, NULL) == TD_OK &&
        td_pod_limits(arena, pod, &options, &limits, NULL) == TD_OK) {
        (void)usage_in(resource, &requests, &limits, &usage); /* else it takes none */
    }
    return usage;
}

/* ---- Problems ---- */

struct exceeded {
    td_str requested;
    td_str used;
    td_str limited;
    size_t count;
};

static td_str joined(struct td_arena *arena, td_str before, td_str resource,
                     const struct td_quantity *amount)
{
    return td_arena_format(arena, "%.*s%s%.*s=%.*s", TD_STR_ARG(before), before.len > 0 ? "," : "",
                           TD_STR_ARG(resource), TD_STR_ARG(td_quantity_text(arena, amount)));
}

static void check_hard(struct td_arena *arena, const struct td_json *quota,
                       const struct td_json *hard, const struct td_json *pod,
                       const struct td_json *replaced, struct exceeded *ret)
{
    const struct td_json *stated = td_json_get(td_json_get_path(quota, "status.used"), hard->key);
    struct td_quantity limited;
    struct td_quantity used = td_quantity_new(0, TD_QUANTITY_DECIMAL_SI);
    if (td_quantity_from_json(arena, hard, &limited, NULL) < 0 ||
        (stated && td_quantity_from_json(arena, stated, &used, NULL) < 0)) {
        return;
    }
    struct td_quantity requested = usage_of(arena, pod, hard->key);
    if (replaced) {
        struct td_quantity freed = usage_of(arena, replaced, hard->key);
        td_quantity_sub(arena, &used, &freed);
    }
    struct td_quantity sum = used;
    td_quantity_add(arena, &sum, &requested);
    if (td_quantity_sign(&requested) > 0 && td_quantity_compare(&sum, &limited) > 0) {
        ret->requested = joined(arena, ret->requested, hard->key, &requested);
        ret->used = joined(arena, ret->used, hard->key, &used);
        ret->limited = joined(arena, ret->limited, hard->key, &limited);
        ret->count++;
    }
}

/* Compute resources that a quota counts have to be stated: by the pod, else by each container. */
static bool is_stated(struct td_arena *arena, const struct td_json *owner, td_str resource)
{
    static const td_str computed[] = {TD_STR_INIT("cpu"),          TD_STR_INIT("memory"),
                                      TD_STR_INIT("requests.cpu"), TD_STR_INIT("requests.memory"),
                                      TD_STR_INIT("limits.cpu"),   TD_STR_INIT("limits.memory")};
    const struct td_json *resources = td_json_member(owner, "resources");
    struct td_resource_list requests;
    struct td_resource_list limits;
    struct td_quantity amount;
    bool is_computed = false;
    for (size_t i = 0; i < TD_COUNT(computed); i++) {
        is_computed = is_computed || td_str_equal(resource, computed[i]);
    }
    return !is_computed ||
           td_resource_list_decode(arena, td_json_member(resources, "requests"), &requests, NULL) <
               0 ||
           td_resource_list_decode(arena, td_json_member(resources, "limits"), &limits, NULL) < 0 ||
           usage_in(resource, &requests, &limits, &amount);
}

static td_str unstated(struct td_arena *arena, const struct td_json *hard,
                       const struct td_json *pod)
{
    static const td_str lists[] = {TD_STR_INIT("containers"), TD_STR_INIT("initContainers")};
    const struct td_json *spec = td_kind_spec(pod);
    for (; hard; hard = hard->next) {
        for (size_t i = 0; i < TD_COUNT(lists); i++) {
            const struct td_json *item = td_json_first_item(td_kind_member(spec, lists[i]));
            for (; item; item = item->next) {
                if (!is_stated(arena, item, hard->key)) {
                    return td_arena_format(arena, "must specify %.*s for: %.*s",
                                           TD_STR_ARG(hard->key),
                                           TD_STR_ARG(td_json_text(item, "name")));
                }
            }
        }
    }
    return TD_STR_EMPTY;
}

static td_str check_quota(struct td_arena *arena, const struct td_json *quota,
                          const struct td_json *pod, const struct td_json *replaced)
{
    td_str name = td_json_text(td_kind_metadata(quota), "name");
    const struct td_json *hard = td_json_first_member(td_json_get_path(quota, "spec.hard"));
    const struct td_json *own = td_json_member(td_kind_spec(pod), "resources");
    bool has_own = td_json_member(own, "requests") || td_json_member(own, "limits");
    td_str missing = has_own ? TD_STR_EMPTY : unstated(arena, hard, pod);
    if (missing.len > 0) {
        return td_arena_format(arena, "failed quota: %.*s: %.*s", TD_STR_ARG(name),
                               TD_STR_ARG(missing));
    }
    struct exceeded exceeded = {.count = 0};
    for (; hard; hard = hard->next) {
        check_hard(arena, quota, hard, pod, replaced, &exceeded);
    }
    return exceeded.count == 0
               ? TD_STR_EMPTY
               : td_arena_format(arena,
                                 "exceeded quota: %.*s, requested: %.*s, used: %.*s, limited: %.*s",
                                 TD_STR_ARG(name), TD_STR_ARG(exceeded.requested),
                                 TD_STR_ARG(exceeded.used), TD_STR_ARG(exceeded.limited));
}

td_str td_pod_quota_problem(struct td_arena *arena, const struct td_quota_objects *quotas,
                            const struct td_json *pod, const struct td_json *replaced)
{
    td_str problem = TD_STR_EMPTY;
    for (size_t i = 0; problem.len == 0 && i < quotas->count; i++) {
        if (counts_pod(arena, quotas->items[i], pod)) {
            problem = check_quota(arena, quotas->items[i], pod, replaced);
        }
    }
    return problem;
}
