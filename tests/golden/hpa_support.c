#include "golden/hpa_support.h"

#include "kube/quantity/quantity.h"

struct td_instant golden_instant(const struct td_json *object, td_str key)
{
    struct td_instant instant = TD_INSTANT_ZERO;
    (void)td_time_parse(td_json_get_str(object, key, TD_STR_EMPTY), &instant, NULL);
    return instant;
}

td_time golden_time(const struct td_json *object, td_str key)
{
    return td_time_from_instant(golden_instant(object, key));
}

td_duration golden_duration(const struct td_json *object, td_str key, td_duration fallback)
{
    td_duration duration = fallback;
    (void)td_duration_parse(td_json_get_str(object, key, TD_STR_EMPTY), &duration, NULL);
    return duration;
}

double golden_double(const struct td_json *object, td_str key, double fallback)
{
    double value = fallback;
    const struct td_json *node = td_json_get(object, key);
    if (td_json_is(node, TD_JSON_TYPE_NUMBER)) {
        (void)td_json_to_double(node, &value);
    }
    return value;
}

td_str golden_text(const struct td_json *object, td_str key)
{
    return td_json_get_str(object, key, TD_STR_EMPTY);
}

struct td_json *golden_instant_json(struct td_arena *arena, struct td_instant instant)
{
    char text[TD_TIME_TEXT_BYTES];
    size_t len = td_time_format(instant, 9, text);
    td_str whole = {.ptr = text, .len = len - 1};
    while (td_str_ends_with(whole, TD_STR("0"))) {
        whole.len--;
    }
    if (td_str_ends_with(whole, TD_STR("."))) {
        whole.len--;
    }
    return td_json_new_string(arena, td_arena_format(arena, "%.*sZ", TD_STR_ARG(whole)));
}

struct td_json *golden_time_json(struct td_arena *arena, td_time time)
{
    return golden_instant_json(arena, td_time_to_instant(time));
}

void golden_set_text(struct td_arena *arena, struct td_json *object, td_str key, td_str text)
{
    td_json_set(arena, object, key, td_json_new_string(arena, text));
}

void golden_set_int(struct td_arena *arena, struct td_json *object, td_str key, int64_t value)
{
    td_json_set(arena, object, key, td_json_new_int64(arena, value));
}

int golden_read_pods(struct td_arena *arena, const struct td_json *list, struct golden_pods *ret,
                     struct td_error *err)
{
    size_t count = list ? list->count : 0;
    struct td_pod *pods = td_arena_array(arena, struct td_pod, count);
    ret->items = td_arena_array(arena, const struct td_pod *, count);
    ret->count = count;
    size_t i = 0;
    for (const struct td_json *item = td_json_first_child(list); item; item = item->next) {
        int code = td_pod_decode(arena, item, &pods[i], err);
        if (code < 0) {
            return code;
        }
        ret->items[i] = &pods[i];
        i++;
    }
    return TD_OK;
}

struct golden_pods golden_match_pods(struct td_arena *arena, const struct golden_pods *pods,
                                     td_str namespace, const struct td_selector *selector)
{
    struct golden_pods matched = {.items =
                                      td_arena_array(arena, const struct td_pod *, pods->count)};
    for (size_t i = 0; i < pods->count; i++) {
        if (td_str_equal(pods->items[i]->meta.namespace, namespace) &&
            td_selector_matches(selector, &pods->items[i]->meta.labels)) {
            matched.items[matched.count++] = pods->items[i];
        }
    }
    return matched;
}

struct td_hpa_view golden_view(struct td_arena *arena, const struct golden_pods *pods,
                               td_str resource, td_str container,
                               const struct td_hpa_sample *samples, size_t sample_count)
{
    struct td_hpa_view view = {.pods = NULL};
    struct td_hpa_pod *items = td_arena_array(arena, struct td_hpa_pod, pods->count);
    for (size_t i = 0; i < pods->count; i++) {
        td_hpa_pod_fill(&items[i], pods->items[i]);
        if (resource.len > 0) {
            td_hpa_pod_fill_request(&items[i], pods->items[i], resource, container);
        }
    }
    td_hpa_samples_join(arena, items, pods->count, samples, sample_count, &view);
    return view;
}

struct td_hpa_config golden_config(const struct td_json *flags)
{
    struct td_hpa_config config = td_hpa_config_default();
    config.tolerance = golden_double(flags, TD_STR("tolerance"), config.tolerance);
    config.cpu_initialization =
        golden_duration(flags, TD_STR("cpuInitializationPeriod"), config.cpu_initialization);
    config.readiness_delay =
        golden_duration(flags, TD_STR("initialReadinessDelay"), config.readiness_delay);
    config.downscale_stabilization =
        golden_duration(flags, TD_STR("downscaleStabilization"), config.downscale_stabilization);
    config.can_scale_to_zero = td_json_get_bool(flags, TD_STR("gateHPAScaleToZero"), false);
    config.names_earlier_proposals = false; /* upstream does not */
    return config;
}

struct td_json *golden_events_json(struct td_arena *arena, const struct td_hpa_events *events)
{
    struct td_json *list = td_json_new_array(arena);
    for (size_t i = 0; i < events->count; i++) {
        struct td_json *item = td_json_new_object(arena);
        golden_set_text(arena, item, TD_STR("type"),
                        events->items[i].is_warning ? TD_STR("Warning") : TD_STR("Normal"));
        golden_set_text(arena, item, TD_STR("reason"), events->items[i].reason);
        golden_set_text(arena, item, TD_STR("message"), events->items[i].message);
        td_json_append(list, item);
    }
    return list;
}

struct td_json *golden_conditions_json(struct td_arena *arena,
                                       const struct td_hpa_conditions *conditions)
{
    struct td_json *list = td_json_new_array(arena);
    for (size_t i = 0; i < conditions->count; i++) {
        struct td_json *item = td_json_new_object(arena);
        golden_set_text(arena, item, TD_STR("type"), conditions->items[i].type);
        golden_set_text(arena, item, TD_STR("status"), conditions->items[i].status);
        golden_set_text(arena, item, TD_STR("reason"), conditions->items[i].reason);
        golden_set_text(arena, item, TD_STR("message"), conditions->items[i].message);
        td_json_append(list, item);
    }
    return list;
}

struct td_json *golden_recommendations_json(struct td_arena *arena,
                                            const struct td_hpa_history *history)
{
    struct td_json *list = td_json_new_array(arena);
    for (size_t i = 0; i < history->recommendations.count; i++) {
        const struct td_hpa_recommendation *each = &history->recommendations.items[i];
        struct td_json *item = td_json_new_object(arena);
        golden_set_int(arena, item, TD_STR("replicas"), each->replicas);
        td_json_set(arena, item, TD_STR("at"), golden_time_json(arena, each->at));
        td_json_append(list, item);
    }
    return list;
}

struct td_json *golden_scale_events_json(struct td_arena *arena,
                                         const struct td_hpa_scale_events *events)
{
    struct td_json *list = td_json_new_array(arena);
    for (size_t i = 0; i < events->count; i++) {
        struct td_json *item = td_json_new_object(arena);
        golden_set_int(arena, item, TD_STR("change"), events->items[i].change);
        td_json_set(arena, item, TD_STR("at"), golden_time_json(arena, events->items[i].at));
        if (events->items[i].is_outdated) {
            td_json_set(arena, item, TD_STR("outdated"), td_json_new_bool(arena, true));
        }
        td_json_append(list, item);
    }
    return list;
}

/* A quantity of a case, in thousandths. */
static bool read_milli(struct td_arena *arena, const struct td_json *value, int64_t *ret)
{
    struct td_quantity quantity;
    if (!value || td_quantity_parse(arena, value->text, &quantity, NULL) < 0) {
        return false;
    }
    *ret = td_quantity_milli(&quantity);
    return true;
}

/* The servers, as a case describes them. */
struct servers {
    struct td_arena *arena;
    const struct td_json *metrics;
    const struct td_hpa *hpa;
    const struct golden_pods *matched;
};

static void fail_answer(struct servers *servers, struct td_hpa_answer *answer, const char *api,
                        const td_str *error)
{
    answer->is_failed = true;
    answer->error =
        error ? td_arena_format(servers->arena, "unable to fetch metrics from %s metrics API: %.*s",
                                api, TD_STR_ARG(*error))
              : td_arena_format(servers->arena, "no metrics returned from %s metrics API", api);
}

/* A pod's usage: of one container, or of all when each of them names the resource. */
static bool sum_usage(struct td_arena *arena, const struct td_json *item,
                      const struct td_hpa_metric *metric, int64_t *ret)
{
    const struct td_json *containers = td_json_get(item, TD_STR("containers"));
    int64_t sum = 0;
    bool is_found = false;
    const struct td_json *each = td_json_first_child(containers);
    for (; each; each = each->next) {
        if (metric->container.len > 0 &&
            !td_str_equal(golden_text(each, TD_STR("name")), metric->container)) {
            continue;
        }
        int64_t milli = 0;
        if (!read_milli(arena, td_json_get(td_json_get(each, TD_STR("usage")), metric->name),
                        &milli)) {
            return false;
        }
        sum = td_hpa_add(sum, milli);
        is_found = true;
    }
    *ret = sum;
    return is_found;
}

static void answer_resource(struct servers *servers, const struct td_hpa_metric *metric,
                            struct td_hpa_answer *answer)
{
    const struct td_json *error = td_json_get(servers->metrics, TD_STR("podMetricsError"));
    const struct td_json *items = td_json_get(servers->metrics, TD_STR("podMetrics"));
    if (error || !items || items->count == 0) {
        fail_answer(servers, answer, "resource", error ? &error->text : NULL);
        return;
    }
    struct td_hpa_sample *samples =
        td_arena_array(servers->arena, struct td_hpa_sample, items->count);
    size_t count = 0;
    for (const struct td_json *item = td_json_first_child(items); item; item = item->next) {
        struct td_hpa_sample *sample = &samples[count];
        if (sum_usage(servers->arena, item, metric, &sample->value_milli)) {
            sample->pod = golden_text(td_json_get(item, TD_STR("metadata")), TD_STR("name"));
            sample->at = golden_time(item, TD_STR("timestamp"));
            sample->window = golden_duration(item, TD_STR("window"), 0);
            count++;
        }
    }
    answer->timestamp = golden_instant(td_json_first_child(items), TD_STR("timestamp"));
    bool is_utilization = !metric->target.has_average_value;
    answer->view =
        golden_view(servers->arena, servers->matched, is_utilization ? metric->name : TD_STR_EMPTY,
                    metric->container, samples, count);
}

/* Is it an item of the metric, and of the object where one is named? */
static bool is_custom(const struct td_json *item, const struct td_hpa_metric *metric, td_str kind,
                      td_str name)
{
    const struct td_json *described = td_json_get(item, TD_STR("describedObject"));
    return td_str_equal(golden_text(td_json_get(item, TD_STR("metric")), TD_STR("name")),
                        metric->name) &&
           td_str_equal(golden_text(described, TD_STR("kind")), kind) &&
           (name.len == 0 || td_str_equal(golden_text(described, TD_STR("name")), name));
}

static const struct td_json *first_of(const struct td_json *list)
{
    return td_json_first_child(list);
}

static void answer_pods(struct servers *servers, const struct td_hpa_metric *metric,
                        struct td_hpa_answer *answer)
{
    const struct td_json *error =
        td_json_get(td_json_get(servers->metrics, TD_STR("customMetricsErrors")), metric->name);
    const struct td_json *items = td_json_get(servers->metrics, TD_STR("customMetrics"));
    struct td_hpa_sample *samples =
        td_arena_array(servers->arena, struct td_hpa_sample, items ? items->count : 0);
    size_t count = 0;
    for (const struct td_json *item = first_of(items); item && !error; item = item->next) {
        struct td_hpa_sample *sample = &samples[count];
        if (!is_custom(item, metric, TD_STR("Pod"), TD_STR_EMPTY) ||
            !read_milli(servers->arena, td_json_get(item, TD_STR("value")), &sample->value_milli)) {
            continue;
        }
        if (count++ == 0) {
            answer->timestamp = golden_instant(item, TD_STR("timestamp"));
        }
        sample->pod = golden_text(td_json_get(item, TD_STR("describedObject")), TD_STR("name"));
        sample->at = golden_time(item, TD_STR("timestamp"));
        sample->window = td_json_get_int64(item, TD_STR("windowSeconds"), 60) * TD_SECOND;
    }
    if (error || count == 0) {
        fail_answer(servers, answer, "custom", error ? &error->text : NULL);
        return;
    }
    answer->view =
        golden_view(servers->arena, servers->matched, TD_STR_EMPTY, TD_STR_EMPTY, samples, count);
}

static void answer_object(struct servers *servers, const struct td_hpa_metric *metric,
                          struct td_hpa_answer *answer)
{
    static const td_str not_found = TD_STR_INIT("metric not found");
    const struct td_json *error =
        td_json_get(td_json_get(servers->metrics, TD_STR("customMetricsErrors")), metric->name);
    const struct td_json *items = td_json_get(servers->metrics, TD_STR("customMetrics"));
    td_str kind = metric->described.kind;
    td_str name = td_str_equal(kind, TD_STR("Namespace")) ? servers->hpa->meta.namespace
                                                          : metric->described.name;
    int64_t *value = td_arena_new(servers->arena, int64_t);
    for (const struct td_json *item = first_of(items); item && !error; item = item->next) {
        if (is_custom(item, metric, kind, name) &&
            read_milli(servers->arena, td_json_get(item, TD_STR("value")), value)) {
            answer->values_milli = value;
            answer->value_count = 1;
            answer->timestamp = golden_instant(item, TD_STR("timestamp"));
            return;
        }
    }
    fail_answer(servers, answer, "custom", error ? &error->text : &not_found);
}

static void answer_external(struct servers *servers, const struct td_hpa_metric *metric,
                            struct td_hpa_answer *answer)
{
    const struct td_json *error =
        td_json_get(td_json_get(servers->metrics, TD_STR("externalMetricsErrors")), metric->name);
    const struct td_json *items = td_json_get(servers->metrics, TD_STR("externalMetrics"));
    int64_t *values = td_arena_array(servers->arena, int64_t, items ? items->count : 0);
    for (const struct td_json *item = first_of(items); item && !error; item = item->next) {
        if (td_str_equal(golden_text(item, TD_STR("metricName")), metric->name) &&
            read_milli(servers->arena, td_json_get(item, TD_STR("value")),
                       &values[answer->value_count])) {
            if (answer->value_count++ == 0) {
                answer->timestamp = golden_instant(item, TD_STR("timestamp"));
            }
        }
    }
    answer->values_milli = values;
    if (error) {
        fail_answer(servers, answer, "external", &error->text);
    }
}

static void (*const answer_of[TD_HPA_METRIC_UNKNOWN])(struct servers *,
                                                      const struct td_hpa_metric *,
                                                      struct td_hpa_answer *) = {
    [TD_HPA_RESOURCE] = answer_resource, [TD_HPA_CONTAINER_RESOURCE] = answer_resource,
    [TD_HPA_PODS] = answer_pods,         [TD_HPA_OBJECT] = answer_object,
    [TD_HPA_EXTERNAL] = answer_external,
};

int golden_answers(struct td_arena *arena, const struct td_json *metrics, const struct td_hpa *hpa,
                   const struct golden_pods *matched, const struct td_hpa_answer **ret,
                   struct td_error *err)
{
    (void)err;
    struct servers servers = {.arena = arena, .metrics = metrics, .hpa = hpa, .matched = matched};
    struct td_hpa_answer *answers = td_arena_array(arena, struct td_hpa_answer, hpa->metric_count);
    for (size_t i = 0; i < hpa->metric_count; i++) {
        const struct td_hpa_metric *metric = &hpa->metrics[i];
        answers[i] = (struct td_hpa_answer){.timestamp = TD_INSTANT_ZERO};
        answers[i].view = golden_view(arena, matched, TD_STR_EMPTY, TD_STR_EMPTY, NULL, 0);
        if (metric->type != TD_HPA_METRIC_UNKNOWN && answer_of[metric->type]) {
            answer_of[metric->type](&servers, metric, &answers[i]);
        }
    }
    *ret = answers;
    return TD_OK;
}
