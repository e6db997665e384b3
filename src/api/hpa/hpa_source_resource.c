/*
 * Resource and ContainerResource: what pods use of a resource, in all containers or in one, against
 * a share of what they request or against an amount.
 */
#include "api/hpa/hpa_source.h"
#include "base/limits.h"
#include "kube/names.h"

static void resource_decode(const struct td_json *source, struct td_hpa_metric *ret)
{
    ret->name = td_json_text(source, "name");
}

static void container_decode(const struct td_json *source, struct td_hpa_metric *ret)
{
    resource_decode(source, ret);
    ret->container = td_json_text(source, "container");
}

static void resource_validate(struct td_field_errors *errors, const struct td_field_path *path,
                              const struct td_json *source,
                              const struct td_hpa_rules_in_force *rules)
{
    (void)rules; /* they are about references */
    if (td_json_text(source, "name").len == 0) {
        struct td_field_path name = td_field_child(path, TD_STR("name"));
        td_field_required(errors, &name, "must specify a resource name");
    }
}

static bool resource_contains(td_str text, td_str part)
{
    for (size_t i = 0; i + part.len <= text.len; i++) {
        if (td_str_starts_with(td_str_slice(text, i, text.len), part)) {
            return true;
        }
    }
    return false;
}

/* Bare names must be what a container can ask for; names with a prefix are Kubernetes' own or
 * extended resources, which must still be a qualified name as a quota, "requests.NAME". */
static void resource_validate_name(struct td_field_errors *errors, const struct td_field_path *path,
                                   td_str name)
{
    static const td_str standard[] = {TD_STR_INIT("cpu"), TD_STR_INIT("memory"),
                                      TD_STR_INIT("ephemeral-storage")};
    td_auto_buf lines = td_buf_capped(TD_JSON_BYTES_MAX);
    (void)td_name_check_qualified(name, &lines); /* the lines say how many */
    td_field_invalid_lines(errors, path, name, td_buf_str(&lines));
    if (td_str_find(name, '/', 0) == name.len) {
        bool is_standard = td_str_starts_with(name, TD_STR("hugepages-"));
        for (size_t i = 0; i < TD_COUNT(standard); i++) {
            is_standard = is_standard || td_str_equal(name, standard[i]);
        }
        if (!is_standard) {
            td_field_invalid_str(errors, path, name, "must be a standard resource for containers");
        }
    } else if (!resource_contains(name, TD_STR("kubernetes.io/"))) {
        td_str as_quota = td_arena_format(errors->arena, "requests.%.*s", TD_STR_ARG(name));
        if (td_str_starts_with(name, TD_STR("requests.")) ||
            td_name_check_qualified(as_quota, NULL) > 0) {
            td_field_invalid_str(errors, path, name,
                                 "doesn't follow extended resource name standard");
        }
    }
}

static void container_validate(struct td_field_errors *errors, const struct td_field_path *path,
                               const struct td_json *source,
                               const struct td_hpa_rules_in_force *rules)
{
    resource_validate(errors, path, source, rules);
    td_str name = td_json_text(source, "name");
    if (name.len > 0) {
        resource_validate_name(errors, TD_FIELD(path, "name"), name);
    }
    struct td_field_path container_path = td_field_child(path, TD_STR("container"));
    td_str container = td_json_text(source, "container");
    if (container.len == 0) {
        td_field_required(errors, &container_path, "must specify a container");
        return;
    }
    td_auto_buf lines = td_buf_capped(TD_JSON_BYTES_MAX);
    (void)td_name_check_dns1123_label(container, &lines); /* the lines say how many */
    td_field_invalid_lines(errors, &container_path, container, td_buf_str(&lines));
}

#define RESOURCE_CHOICE                                                                            \
    {                                                                                              \
        .first = TD_HPA_UTILIZATION, .second = TD_HPA_AVERAGE_VALUE,                               \
        .missing = TD_HPA_UTILIZATION,                                                             \
        .missing_detail = "must set either a target raw value or a target utilization",            \
        .surplus = TD_HPA_AVERAGE_VALUE,                                                           \
        .surplus_detail = "may not set both a target raw value and a target utilization",          \
    }
#define RESOURCE_PLACES                                                                            \
    PLACE("name", "name", "", "name", TD_HPA_V1_OPTIONAL),                                         \
        PLACE("targetAverageUtilization", "currentAverageUtilization", "target",                   \
              "averageUtilization", TD_HPA_V1_OPTIONAL),                                           \
        PLACE("targetAverageValue", "currentAverageValue", "target", "averageValue",               \
              TD_HPA_V1_ZERO_IN_STATUS)

const struct td_hpa_source td_hpa_source_resource = {
    .type = TD_STR_INIT("Resource"),
    .member = TD_STR_INIT("resource"),
    .is_resource = true,
    .is_of_pods = true,
    .decode = resource_decode,
    .validate = resource_validate,
    .choice = RESOURCE_CHOICE,
    .places = {RESOURCE_PLACES},
};

const struct td_hpa_source td_hpa_source_container_resource = {
    .type = TD_STR_INIT("ContainerResource"),
    .member = TD_STR_INIT("containerResource"),
    .is_resource = true,
    .is_of_pods = true,
    .decode = container_decode,
    .validate = container_validate,
    .choice = RESOURCE_CHOICE,
    .places = {RESOURCE_PLACES,
               PLACE("container", "container", "", "container", TD_HPA_V1_OPTIONAL)},
};
