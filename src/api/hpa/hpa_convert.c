/*
 * Between versions. The form in the middle, upstream's "internal" one, is v2 without the round-trip
 * annotations; every conversion goes through it, also from a version to itself, because that is
 * what a client gets back from a server. Each step is done on a copy, so unknown members survive
 * wherever their parent exists in both versions.
 */
#include "api/hpa/hpa.h"
#include "api/hpa/hpa_metric.h"
#include "api/hpa/hpa_private.h"
#include "base/error.h"
#include "base/limits.h"

#define ANNOTATION(name) TD_STR_INIT("autoscaling.alpha.kubernetes.io/" name)

enum round_trip {
    ROUND_TRIP_METRICS,
    ROUND_TRIP_CURRENT_METRICS,
    ROUND_TRIP_CONDITIONS,
    ROUND_TRIP_BEHAVIOR,
    ROUND_TRIP_TOLERANCE_DOWN, /* of old releases: only ever removed */
    ROUND_TRIP_TOLERANCE_UP,
    ROUND_TRIP_SELECTION, /* ours: upstream has no such field */
    ROUND_TRIP_COUNT,
};

static const td_str round_trip_keys[ROUND_TRIP_COUNT] = {
    [ROUND_TRIP_METRICS] = ANNOTATION("metrics"),
    [ROUND_TRIP_CURRENT_METRICS] = ANNOTATION("current-metrics"),
    [ROUND_TRIP_CONDITIONS] = ANNOTATION("conditions"),
    [ROUND_TRIP_BEHAVIOR] = ANNOTATION("behavior"),
    [ROUND_TRIP_TOLERANCE_DOWN] = ANNOTATION("scale-down-tolerance"),
    [ROUND_TRIP_TOLERANCE_UP] = ANNOTATION("scale-up-tolerance"),
    [ROUND_TRIP_SELECTION] = TD_STR_INIT("tandem.dev/spec-selection-strategy"),
};

static struct td_json *convert_annotations(const struct td_json *object)
{
    return td_json_member(td_json_member(object, "metadata"), "annotations");
}

static void convert_drop_annotations(struct td_json *object)
{
    struct td_json *metadata = td_json_member(object, "metadata");
    struct td_json *annotations = convert_annotations(object);
    for (size_t i = 0; i < ROUND_TRIP_COUNT && annotations; i++) {
        (void)td_json_remove(annotations, round_trip_keys[i]); /* mostly not there */
    }
    if (annotations && annotations->count == 0) {
        (void)td_json_remove(metadata, TD_STR("annotations")); /* it was just found */
    }
}

static const struct td_json *convert_text(const struct td_json *annotations, enum round_trip which)
{
    const struct td_json *text = td_json_get(annotations, round_trip_keys[which]);
    return td_json_is(text, TD_JSON_TYPE_STRING) ? text : NULL;
}

/* A member that the object's own version does not have, but the other one does, is an unknown
 * member: it must not come alive by conversion, and its type was not checked. */
static void convert_drop_foreign(struct td_json *object, bool is_v1)
{
    static const td_str of_v2[] = {TD_STR_INIT("metrics"), TD_STR_INIT("behavior"),
                                   TD_STR_INIT("selectionStrategy"), TD_STR_INIT("currentMetrics"),
                                   TD_STR_INIT("conditions")};
    static const td_str of_v1[] = {TD_STR_INIT("targetCPUUtilizationPercentage"),
                                   TD_STR_INIT("currentCPUUtilizationPercentage")};
    const td_str *names = is_v1 ? of_v2 : of_v1;
    size_t count = is_v1 ? TD_COUNT(of_v2) : TD_COUNT(of_v1);
    for (size_t i = 0; i < count; i++) {
        (void)td_json_remove(td_json_get(object, TD_STR("spec")), names[i]); /* mostly absent */
        (void)td_json_remove(td_json_get(object, TD_STR("status")), names[i]);
    }
}

/* --- v1 to the middle --- */

static void convert_spec_from_v1(struct td_arena *arena, struct td_json *spec,
                                 const struct td_json *annotations)
{
    const struct td_json *text = convert_text(annotations, ROUND_TRIP_METRICS);
    struct td_json *metrics =
        text ? td_hpa_metrics_from_text(arena, TD_HPA_METRIC_SPECS, text->text) : NULL;
    metrics = metrics ? metrics : td_json_new_array(arena);
    const struct td_json *percent = td_json_member(spec, "targetCPUUtilizationPercentage");
    int64_t value = TD_HPA_DEFAULT_CPU_PERCENT;
    if (percent || metrics->count == 0) {
        (void)td_json_to_int64(percent, &value); /* absent: the default stays */
        td_json_append(metrics, td_hpa_new_cpu_metric(arena, false, value));
    }
    (void)td_json_remove(spec, TD_STR("targetCPUUtilizationPercentage")); /* may be absent */
    td_json_set(arena, spec, TD_STR("metrics"), metrics);
    text = convert_text(annotations, ROUND_TRIP_BEHAVIOR);
    struct td_json *behavior = text ? td_hpa_behavior_from_text(arena, text->text) : NULL;
    if (behavior) {
        td_json_set(arena, spec, TD_STR("behavior"), behavior);
    }
    text = convert_text(annotations, ROUND_TRIP_SELECTION);
    if (text) {
        td_json_set_str(arena, spec, TD_STR("selectionStrategy"), text->text);
    }
}

/* What annotations say has more detail than v1's one number, and so replaces it. */
static void convert_status_from_v1(struct td_arena *arena, struct td_json *status,
                                   const struct td_json *annotations)
{
    const struct td_json *percent = td_json_member(status, "currentCPUUtilizationPercentage");
    struct td_json *metrics = NULL;
    int64_t value;
    if (td_json_to_int64(percent, &value)) {
        metrics = td_json_new_array(arena);
        td_json_append(metrics, td_hpa_new_cpu_metric(arena, true, value));
    }
    const struct td_json *text = convert_text(annotations, ROUND_TRIP_CURRENT_METRICS);
    struct td_json *detailed =
        text ? td_hpa_metrics_from_text(arena, TD_HPA_METRIC_STATUSES, text->text) : NULL;
    metrics = detailed ? detailed : metrics;
    (void)td_json_remove(status, TD_STR("currentCPUUtilizationPercentage")); /* may be absent */
    if (metrics) {
        td_json_set(arena, status, TD_STR("currentMetrics"), metrics);
    }
    text = convert_text(annotations, ROUND_TRIP_CONDITIONS);
    struct td_json *conditions = text ? td_hpa_conditions_from_text(arena, text->text) : NULL;
    if (conditions) {
        td_json_set(arena, status, TD_STR("conditions"), conditions);
    }
}

/* --- the middle to v1 --- */

static bool convert_is_cpu(const struct td_json *metric, const struct td_json **ret_resource)
{
    *ret_resource = td_json_member(metric, "resource");
    return td_str_equal(td_json_text(metric, "type"), TD_STR("Resource")) &&
           td_str_equal(td_json_text(*ret_resource, "name"), TD_STR("cpu"));
}

static void convert_annotate(struct td_arena *arena, struct td_json *object, enum round_trip which,
                             const struct td_json *value)
{
    td_auto_buf text = td_buf_capped(TD_JSON_BYTES_MAX);
    td_json_write(value, &(struct td_json_format){.escape_html = true}, &text);
    if (text.is_full) {
        return; /* larger than anything that could be stored */
    }
    struct td_json *metadata = td_json_ensure_object(arena, object, TD_STR("metadata"));
    struct td_json *annotations = td_json_ensure_object(arena, metadata, TD_STR("annotations"));
    td_json_set_str(arena, annotations, round_trip_keys[which],
                    td_arena_copy_str(arena, td_buf_str(&text)));
}

/* The first CPU utilization becomes v1's own field; further ones are lost, as upstream. */
static void convert_metrics_to_v1(struct td_arena *arena, struct td_json *object,
                                  struct td_json *spec)
{
    const struct td_json *metrics = td_json_member(spec, "metrics");
    struct td_json *others = td_json_new_array(arena);
    const struct td_json *percent = NULL;
    for (const struct td_json *item = td_json_first_item(metrics); item; item = item->next) {
        const struct td_json *resource;
        bool is_cpu = convert_is_cpu(item, &resource);
        const struct td_json *target = td_json_member(resource, "target");
        const struct td_json *value = td_json_member(target, "averageUtilization");
        if (!is_cpu || !value) {
            td_json_append(others, td_json_copy(arena, item, false));
        } else if (!percent) {
            percent = value;
        }
    }
    if (others->count > 0) {
        convert_annotate(arena, object, ROUND_TRIP_METRICS,
                         td_hpa_metrics_to_v1(arena, TD_HPA_METRIC_SPECS, others));
    }
    if (percent) {
        td_json_set(arena, spec, TD_STR("targetCPUUtilizationPercentage"),
                    td_json_copy(arena, percent, false));
    }
    (void)td_json_remove(spec, TD_STR("metrics")); /* may be absent */
}

static void convert_spec_to_v1(struct td_arena *arena, struct td_json *object)
{
    struct td_json *spec = td_json_ensure_object(arena, object, TD_STR("spec"));
    convert_metrics_to_v1(arena, object, spec);
    const struct td_json *behavior = td_json_member(spec, "behavior");
    if (behavior) {
        convert_annotate(arena, object, ROUND_TRIP_BEHAVIOR,
                         td_hpa_behavior_to_v1(arena, behavior));
        (void)td_json_remove(spec, TD_STR("behavior")); /* it was just found */
    }
    const struct td_json *strategy = td_json_member(spec, "selectionStrategy");
    if (strategy) {
        struct td_json *metadata = td_json_ensure_object(arena, object, TD_STR("metadata"));
        struct td_json *annotations = td_json_ensure_object(arena, metadata, TD_STR("annotations"));
        td_json_set_str(arena, annotations, round_trip_keys[ROUND_TRIP_SELECTION], strategy->text);
        (void)td_json_remove(spec, TD_STR("selectionStrategy")); /* it was just found */
    }
}

static void convert_status_to_v1(struct td_arena *arena, struct td_json *object)
{
    struct td_json *status = td_json_ensure_object(arena, object, TD_STR("status"));
    const struct td_json *metrics = td_json_member(status, "currentMetrics");
    const struct td_json *percent = NULL; /* the last one counts here */
    for (const struct td_json *item = td_json_first_item(metrics); item; item = item->next) {
        const struct td_json *resource;
        bool is_cpu = convert_is_cpu(item, &resource);
        const struct td_json *current = td_json_member(resource, "current");
        const struct td_json *value = td_json_member(current, "averageUtilization");
        percent = is_cpu && value ? value : percent;
    }
    if (metrics && metrics->count > 0) {
        convert_annotate(arena, object, ROUND_TRIP_CURRENT_METRICS,
                         td_hpa_metrics_to_v1(arena, TD_HPA_METRIC_STATUSES, metrics));
    }
    if (percent) {
        td_json_set(arena, status, TD_STR("currentCPUUtilizationPercentage"),
                    td_json_copy(arena, percent, false));
    }
    const struct td_json *conditions = td_json_member(status, "conditions");
    if (conditions && conditions->count > 0) {
        convert_annotate(arena, object, ROUND_TRIP_CONDITIONS, conditions);
    }
    (void)td_json_remove(status, TD_STR("currentMetrics")); /* may be absent */
    (void)td_json_remove(status, TD_STR("conditions"));     /* likewise */
}

int td_hpa_convert(struct td_arena *arena, const struct td_json *object, td_str to_api_version,
                   struct td_json **ret, struct td_error *err)
{
    const struct td_schema_type *to = td_hpa_schema_of(to_api_version);
    if (!to) {
        return td_error_set(err, TD_INVALID, "\"%.*s\" is not a version of HorizontalPodAutoscaler",
                            TD_STR_ARG(to_api_version));
    }
    struct td_json *made = object ? td_json_copy(arena, object, false) : td_json_new_null(arena);
    int code = td_hpa_default(arena, made, err);
    if (code < 0) {
        return code;
    }
    bool is_v1 = td_str_equal(td_json_text(made, "apiVersion"), TD_HPA_V1);
    convert_drop_foreign(made, is_v1);
    if (is_v1) {
        const struct td_json *annotations = convert_annotations(made);
        convert_spec_from_v1(arena, td_json_member(made, "spec"), annotations);
        convert_status_from_v1(arena, td_json_member(made, "status"), annotations);
    }
    convert_drop_annotations(made);
    td_hpa_to_wire(arena, td_hpa_schema(), made);
    if (td_str_equal(to_api_version, TD_HPA_V1)) {
        convert_spec_to_v1(arena, made);
        convert_status_to_v1(arena, made);
        td_hpa_to_wire(arena, to, made);
    }
    td_json_set_str(arena, made, TD_STR("apiVersion"), td_arena_copy_str(arena, to_api_version));
    *ret = made;
    return TD_OK;
}
