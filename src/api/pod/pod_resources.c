/* Requests and limits of containers and of pods as a whole. */
#include "api/pod/pod_private.h"
#include "base/error.h"
#include "kube/names.h"
#include "kube/podresources.h"
#include "kube/quantity/quantity.h"

#define MILLI 1000

static bool is_huge_pages(td_str name)
{
    return td_str_starts_with(name, TD_STR("hugepages-"));
}

static bool is_qualified(td_str name)
{
    return td_str_find(name, '/', 0) < name.len;
}

/* Can more be requested in sum than there is? Only of what the kubelet shares out itself. */
static bool can_overcommit(td_str name)
{
    return !is_huge_pages(name) &&
           (!is_qualified(name) || td_str_starts_with(name, TD_STR("kubernetes.io/")));
}

static bool check_resource_name(struct td_field_errors *errors, const struct td_field_path *path,
                                td_str name, bool is_pod)
{
    static const td_str of_pods[] = {TD_STR_INIT("cpu"), TD_STR_INIT("hugepages-"),
                                     TD_STR_INIT("memory")};
    if (td_name_check_qualified(name, NULL) > 0) {
        td_kind_check_name_at(errors, path, name, td_name_check_qualified);
        return false;
    }
    bool is_compute = td_str_equal(name, TD_STR("cpu")) || td_str_equal(name, TD_STR("memory")) ||
                      is_huge_pages(name);
    if (is_compute) {
        return true;
    }
    if (is_pod) {
        td_field_unsupported(errors, path, name, of_pods, TD_COUNT(of_pods));
        return false;
    }
    if (!is_qualified(name) && !td_str_equal(name, TD_STR("ephemeral-storage"))) {
        td_field_invalid_str(errors, path, name,
                             "must be a standard resource type or fully qualified");
        td_field_invalid_str(errors, path, name, "must be a standard resource for containers");
        return false;
    }
    return true;
}

static void check_quantity(struct td_field_errors *errors, const struct td_field_path *path,
                           td_str name, const struct td_quantity *quantity)
{
    td_str text = td_quantity_text(errors->arena, quantity);
    if (td_quantity_sign(quantity) < 0) {
        td_field_invalid_str(errors, path, text, "must be greater than or equal to 0");
    }
    bool is_whole = td_quantity_milli(quantity) % MILLI == 0;
    if (!can_overcommit(name) && !is_huge_pages(name) && !is_whole) {
        td_field_invalid_str(errors, path, text, "must be an integer");
    }
}

static void check_list(struct td_field_errors *errors, const struct td_field_path *path,
                       const struct td_json *list, bool is_pod)
{
    for (const struct td_json *item = td_json_first_member(list); item; item = item->next) {
        struct td_field_path place = td_kind_key(path, item->key);
        struct td_quantity quantity;
        (void)check_resource_name(errors, &place, item->key, is_pod); /* the amount counts too */
        if (td_quantity_from_json(errors->arena, item, &quantity, NULL) == TD_OK) {
            check_quantity(errors, &place, item->key, &quantity);
        }
    }
}

static void check_request(struct td_field_errors *errors, const struct td_field_path *path,
                          const struct td_json *request, const struct td_json *limits)
{
    const struct td_json *limit = td_json_get(limits, request->key);
    struct td_quantity requested;
    struct td_quantity allowed;
    if (!limit) {
        if (!can_overcommit(request->key)) {
            td_field_required(errors, TD_FIELD(path, "limits"),
                              "Limit must be set for non overcommitable resources");
        }
        return;
    }
    if (td_quantity_from_json(errors->arena, request, &requested, NULL) < 0 ||
        td_quantity_from_json(errors->arena, limit, &allowed, NULL) < 0) {
        return; /* types were checked */
    }
    int order = td_quantity_compare(&requested, &allowed);
    bool must_equal = !can_overcommit(request->key);
    if (order > 0 || (must_equal && order != 0)) {
        td_kind_invalid_text(
            errors, TD_FIELD(path, "requests"), td_quantity_text(errors->arena, &requested),
            "must be %s %.*s limit of %.*s", must_equal ? "equal to" : "less than or equal to",
            TD_STR_ARG(request->key), TD_STR_ARG(td_quantity_text(errors->arena, &allowed)));
    }
}

void td_pod_check_resources(struct td_field_errors *errors, const struct td_field_path *path,
                            const struct td_json *resources, bool is_pod)
{
    const struct td_json *limits = td_json_member(resources, "limits");
    const struct td_json *requests = td_json_member(resources, "requests");
    if (is_pod && td_json_member(resources, "claims")) {
        td_field_forbidden(errors, TD_FIELD(path, "claims"),
                           "claims may not be set for Resources at pod-level");
    }
    check_list(errors, TD_FIELD(path, "limits"), limits, is_pod);
    check_list(errors, TD_FIELD(path, "requests"), requests, is_pod);
    bool has_huge_pages = false;
    bool has_compute = false;
    const struct td_json *sides[] = {limits, requests};
    for (size_t i = 0; i < 2; i++) {
        for (const struct td_json *item = td_json_first_member(sides[i]); item; item = item->next) {
            has_huge_pages = has_huge_pages || is_huge_pages(item->key);
            has_compute = has_compute || td_str_equal(item->key, TD_STR("cpu")) ||
                          td_str_equal(item->key, TD_STR("memory"));
        }
    }
    for (const struct td_json *item = td_json_first_member(requests); item; item = item->next) {
        check_request(errors, path, item, limits);
    }
    if (has_huge_pages && !has_compute) {
        td_field_forbidden(errors, path, "HugePages require cpu or memory");
    }
}

static void check_sum(struct td_field_errors *errors, const struct td_field_path *path,
                      const struct td_json *list, const struct td_resource_amount *sum)
{
    const struct td_json *own = td_json_get(list, sum->name);
    struct td_quantity quantity;
    if (own && td_quantity_from_json(errors->arena, own, &quantity, NULL) == TD_OK &&
        td_quantity_compare(&sum->quantity, &quantity) > 0) {
        struct td_field_path requests = td_field_child(path, TD_STR("requests"));
        struct td_field_path place = td_kind_key(&requests, sum->name);
        td_kind_invalid_text(errors, &place, td_quantity_text(errors->arena, &quantity),
                             "must be greater than or equal to aggregate container requests of "
                             "%.*s",
                             TD_STR_ARG(td_quantity_text(errors->arena, &sum->quantity)));
    }
}

static void check_container_limits(struct td_field_errors *errors, const struct td_field_path *path,
                                   const struct td_json *limits, const struct td_json *container)
{
    const struct td_json *own = td_json_member(td_json_member(container, "resources"), "limits");
    for (const struct td_json *item = td_json_first_member(own); item; item = item->next) {
        const struct td_json *limit = td_json_get(limits, item->key);
        struct td_quantity mine;
        struct td_quantity allowed;
        if (!limit || td_quantity_from_json(errors->arena, item, &mine, NULL) < 0 ||
            td_quantity_from_json(errors->arena, limit, &allowed, NULL) < 0 ||
            td_quantity_compare(&mine, &allowed) <= 0) {
            continue;
        }
        struct td_field_path key = td_kind_key(path, item->key);
        td_kind_invalid_text(errors, TD_FIELD(&key, "limits"),
                             td_quantity_text(errors->arena, &mine),
                             "must be less than or equal to pod limits of %.*s",
                             TD_STR_ARG(td_quantity_text(errors->arena, &allowed)));
    }
}

void td_pod_check_consistency(struct td_field_errors *errors, const struct td_field_path *path,
                              const struct td_json *spec)
{
    static const struct td_pod_resource_options options = {.exclude_overhead = true,
                                                           .skip_pod_level_resources = true};
    const struct td_json *resources = td_json_member(spec, "resources");
    struct td_json *pod = td_json_new_object(errors->arena);
    td_json_set(errors->arena, pod, TD_STR("spec"), td_json_copy(errors->arena, spec, false));
    struct td_resource_list sum;
    if (td_pod_requests(errors->arena, pod, &options, &sum, NULL) == TD_OK) {
        for (size_t i = 0; i < sum.count; i++) {
            check_sum(errors, path, td_json_member(resources, "requests"), &sum.items[i]);
        }
    }
    struct td_field_path containers = td_field_child(path, TD_STR("containers"));
    const struct td_json *item = td_json_first_item(td_json_member(spec, "containers"));
    for (size_t index = 0; item; item = item->next, index++) {
        check_container_limits(errors, TD_FIELD_ITEM(&containers, index),
                               td_json_member(resources, "limits"), item);
    }
}
