/*
 * Pods, Object and External: metrics that have a name and a selector of their own, of each pod, of
 * an object of the cluster, or of something outside.
 */
#include "api/hpa/hpa_source.h"
#include "api/hpa/hpa_validate.h"

/* metric.name and metric.selector. */
static void metric_decode_identifier(const struct td_json *source, struct td_hpa_metric *ret)
{
    const struct td_json *identifier = td_json_member(source, "metric");
    ret->name = td_json_text(identifier, "name");
    ret->metric_selector = td_json_member(identifier, "selector");
}

static void object_decode(const struct td_json *source, struct td_hpa_metric *ret)
{
    metric_decode_identifier(source, ret);
    ret->described = td_hpa_decode_reference(td_json_member(source, "describedObject"));
}

static void metric_validate(struct td_field_errors *errors, const struct td_field_path *path,
                            const struct td_json *source, const struct td_hpa_rules_in_force *rules)
{
    (void)rules; /* they are about references */
    struct td_field_path metric = td_field_child(path, TD_STR("metric"));
    td_hpa_validate_segment(errors, &metric, TD_STR("name"), td_json_member(source, "metric"),
                            "must specify a metric name");
}

static void object_validate(struct td_field_errors *errors, const struct td_field_path *path,
                            const struct td_json *source, const struct td_hpa_rules_in_force *rules)
{
    td_hpa_validate_reference(errors, TD_FIELD(path, "describedObject"),
                              td_json_member(source, "describedObject"),
                              rules->allows_any_described_version, true);
    metric_validate(errors, path, source, rules);
}

const struct td_hpa_source td_hpa_source_pods = {
    .type = TD_STR_INIT("Pods"),
    .member = TD_STR_INIT("pods"),
    .is_of_pods = true,
    .decode = metric_decode_identifier,
    .validate = metric_validate,
    .choice = {.first = TD_HPA_AVERAGE_VALUE,
               .second = TD_HPA_AVERAGE_VALUE,
               .missing = TD_HPA_AVERAGE_VALUE,
               .missing_detail = "must specify a positive target averageValue"},
    .places = {PLACE("metricName", "metricName", "metric", "name", TD_HPA_V1_OPTIONAL),
               PLACE("targetAverageValue", "currentAverageValue", "target", "averageValue",
                     TD_HPA_V1_ZERO),
               PLACE("selector", "selector", "metric", "selector", TD_HPA_V1_OPTIONAL)},
};

const struct td_hpa_source td_hpa_source_object = {
    .type = TD_STR_INIT("Object"),
    .member = TD_STR_INIT("object"),
    .decode = object_decode,
    .validate = object_validate,
    .choice = {.first = TD_HPA_AVERAGE_VALUE,
               .second = TD_HPA_VALUE,
               .missing = TD_HPA_AVERAGE_VALUE,
               .missing_detail = "must set either a target value or averageValue"},
    .places = {PLACE("target", "target", "", "describedObject", TD_HPA_V1_OPTIONAL),
               PLACE("metricName", "metricName", "metric", "name", TD_HPA_V1_OPTIONAL),
               PLACE("targetValue", "currentValue", "target", "value", TD_HPA_V1_ZERO),
               PLACE("selector", "selector", "metric", "selector", TD_HPA_V1_OPTIONAL),
               PLACE("averageValue", "averageValue", "target", "averageValue", TD_HPA_V1_OPTIONAL)},
};

const struct td_hpa_source td_hpa_source_external = {
    .type = TD_STR_INIT("External"),
    .member = TD_STR_INIT("external"),
    .decode = metric_decode_identifier,
    .validate = metric_validate,
    .choice = {.first = TD_HPA_VALUE,
               .second = TD_HPA_AVERAGE_VALUE,
               .missing = TD_HPA_AVERAGE_VALUE,
               .missing_detail = "must set either a target value for metric or a per-pod target",
               .surplus = TD_HPA_VALUE,
               .surplus_detail = "may not set both a target value for metric and a per-pod target"},
    .places = {PLACE("metricName", "metricName", "metric", "name", TD_HPA_V1_OPTIONAL),
               PLACE("metricSelector", "metricSelector", "metric", "selector", TD_HPA_V1_OPTIONAL),
               PLACE("targetValue", "currentValue", "target", "value", TD_HPA_V1_ZERO_IN_STATUS),
               PLACE("targetAverageValue", "currentAverageValue", "target", "averageValue",
                     TD_HPA_V1_OPTIONAL)},
};
