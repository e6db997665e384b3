/*
 * What a tick sees of its target beside the scale: the template, the pods with their sizes, and the
 * HPA as it has to be asked.
 */
#include "base/error.h"
#include "base/limits.h"
#include "control/hvpa/hvpa_private.h"

const td_str hvpa_pod_name = TD_TANDEM_POD;

const struct td_quantity *hvpa_request_of(const struct td_hvpa_requests *requests, td_str container,
                                          enum td_hvpa_resource resource)
{
    for (size_t i = 0; i < requests->count; i++) {
        if (td_str_equal(requests->items[i].container, container)) {
            return td_resource_list_get(&requests->items[i].resources,
                                        td_hvpa_resource_name(resource));
        }
    }
    return NULL;
}

int64_t hvpa_amount(enum td_hvpa_resource resource, const struct td_quantity *quantity)
{
    if (!quantity) {
        return 0;
    }
    int64_t amount =
        resource == TD_HVPA_CPU ? td_quantity_milli(quantity) : td_quantity_value(quantity);
    return amount < 0 ? 0 : amount;
}

struct td_quantity hvpa_quantity(enum td_hvpa_resource resource, int64_t amount)
{
    bool is_mebi = amount % (INT64_C(1) << 20) == 0;
    if (resource == TD_HVPA_CPU) {
        return td_quantity_new_milli(amount, TD_QUANTITY_DECIMAL_SI);
    }
    return td_quantity_new(amount, is_mebi ? TD_QUANTITY_BINARY_SI : TD_QUANTITY_DECIMAL_SI);
}

/* The list of a container, made when it is missing; the array is this tick's own. */
static struct td_resource_list *request_list(struct td_arena *arena,
                                             struct td_hvpa_requests *requests, td_str container)
{
    struct td_hvpa_container_resources *items =
        td_arena_array(arena, struct td_hvpa_container_resources, requests->count + 1);
    size_t at = requests->count;
    for (size_t i = 0; i < requests->count; i++) {
        items[i] = requests->items[i];
        items[i].resources = td_resource_list_copy(arena, &items[i].resources);
        at = td_str_equal(items[i].container, container) ? i : at;
    }
    if (at == requests->count) {
        items[at].container = container;
        requests->count++;
    }
    requests->items = items;
    return &items[at].resources;
}

void hvpa_request_put(struct td_arena *arena, struct td_hvpa_requests *requests, td_str container,
                      enum td_hvpa_resource resource, const struct td_quantity *quantity)
{
    const struct td_quantity *known = hvpa_request_of(requests, container, resource);
    if (known && hvpa_amount(resource, known) == hvpa_amount(resource, quantity)) {
        return; /* written as it was */
    }
    td_resource_list_set(arena, request_list(arena, requests, container),
                         td_hvpa_resource_name(resource), quantity);
}

/* ---- The template ---- */

static const struct td_sight_object *view_workload(const struct hvpa_tick *tick)
{
    static const struct {
        const char *kind;
        enum td_sight_kind sight;
    } rows[] = {
        {"Deployment", TD_SIGHT_DEPLOYMENTS},
        {"StatefulSet", TD_SIGHT_STATEFUL_SETS},
        {"DaemonSet", TD_SIGHT_DAEMON_SETS},
        {"ReplicationController", TD_SIGHT_REPLICATION_CONTROLLERS},
    };
    const struct td_hvpa *hvpa = &tick->hvpa;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct td_cache *cache =
            td_sight_cache(tick->loop->options.control.sight, rows[i].sight);
        if (cache && td_str_equal(hvpa->target.kind, td_str_from(rows[i].kind))) {
            return td_cache_get(cache, hvpa->meta.namespace, hvpa->target.name);
        }
    }
    return NULL;
}

static void view_container(struct td_arena *arena, const struct td_json *container,
                           struct hvpa_container *ret)
{
    const struct td_json *resources = td_json_get(container, TD_STR("resources"));
    *ret =
        (struct hvpa_container){.name = td_json_get_str(container, TD_STR("name"), TD_STR_EMPTY)};
    /* A template that the server took can be read; one that cannot asks for nothing. */
    (void)td_resource_list_decode(arena, td_json_get(resources, TD_STR("requests")), &ret->requests,
                                  NULL);
    (void)td_resource_list_decode(arena, td_json_get(resources, TD_STR("limits")), &ret->limits,
                                  NULL);
}

void hvpa_view_template(struct hvpa_tick *tick)
{
    const struct td_sight_object *object = view_workload(tick);
    struct td_json *tree;
    if (!object || td_sight_tree(&tick->arena, object, &tree, NULL) != TD_OK) {
        return;
    }
    const struct td_json *list = td_json_get_path(tree, "spec.template.spec.containers");
    if (!td_json_is(list, TD_JSON_TYPE_ARRAY)) {
        return;
    }
    tick->template = td_arena_array(&tick->arena, struct hvpa_container, list->count + 2);
    for (const struct td_json *c = td_json_first_item(list); c; c = c->next) {
        view_container(&tick->arena, c, &tick->template[tick->template_count++]);
    }
    const struct td_json *pod = td_json_get_path(tree, "spec.template.spec");
    if (td_json_get(pod, TD_STR("resources")) &&
        tick->loop->options.control.gates.pod_level_resources) {
        struct hvpa_container *whole = &tick->template[tick->template_count++];
        view_container(&tick->arena, pod, whole);
        whole->name = hvpa_pod_name;
    }
}

/* ---- The HPA ---- */

/* The behaviour of an HPA that names one and leaves everything out (docs/internals/tandem.md). */
static const struct td_hpa_policy up_policies[] = {
    {.type = TD_HPA_POLICY_PODS, .value = 4, .period_seconds = 15},
    {.type = TD_HPA_POLICY_PERCENT, .value = 100, .period_seconds = 15},
};
static const struct td_hpa_policy down_policies[] = {
    {.type = TD_HPA_POLICY_PERCENT, .value = 100, .period_seconds = 15},
};

static void view_behavior(struct hvpa_tick *tick)
{
    struct td_hpa *hpa = &tick->hpa;
    td_duration window = tick->loop->options.horizontal.downscale_stabilization;
    if (hpa->has_behavior) {
        return;
    }
    hpa->has_behavior = true;
    hpa->scale_up =
        (struct td_hpa_rules){.has_window = true,
                              .policies = up_policies,
                              .policy_count = sizeof(up_policies) / sizeof(up_policies[0])};
    hpa->scale_down = (struct td_hpa_rules){.has_window = true,
                                            .window_seconds = (int32_t)(window / TD_SECOND),
                                            .policies = down_policies,
                                            .policy_count = 1};
}

/* What utilisation is measured against: the template's requests, of which none may be missing. */
static size_t view_reference(struct hvpa_tick *tick, struct td_tandem_request **ret)
{
    struct td_tandem_request *requests =
        td_arena_array(&tick->arena, struct td_tandem_request, tick->template_count * 2 + 1);
    size_t count = 0;
    for (size_t i = 0; i < tick->template_count; i++) {
        const struct hvpa_container *c = &tick->template[i];
        for (int r = 0; r < TD_HVPA_RESOURCE_COUNT; r++) {
            enum td_hvpa_resource resource = (enum td_hvpa_resource)r;
            const struct td_quantity *kept = hvpa_request_of(&tick->reference, c->name, resource);
            const struct td_quantity *written =
                td_resource_list_get(&c->requests, td_hvpa_resource_name(resource));
            requests[count++] = (struct td_tandem_request){
                .container = c->name,
                .resource = resource,
                .live = hvpa_amount(resource, hvpa_request_of(&tick->decided, c->name, resource)),
                .in_template = hvpa_amount(resource, kept ? kept : written),
            };
        }
    }
    *ret = requests;
    return count;
}

static bool view_is_complete(const struct td_hvpa *hvpa, const struct td_hpa_metric *metric,
                             const struct td_tandem_request *requests, size_t count)
{
    bool is_complete = true;
    bool is_whole = false; /* the pod has a request of its own */
    for (size_t i = 0; i < count; i++) {
        bool is_measured =
            td_str_equal(metric->name, td_hvpa_resource_name(requests[i].resource)) &&
            (metric->type == TD_HPA_RESOURCE ||
             td_str_equal(metric->container, requests[i].container));
        bool is_missing = is_measured && td_tandem_measured_against(hvpa, &requests[i]) == 0;
        if (td_tandem_is_pod(requests[i].container)) {
            is_whole = is_whole || (is_measured && !is_missing);
        } else {
            is_complete = is_complete && !is_missing;
        }
    }
    return count > 0 && (is_complete || is_whole);
}

/* In whole milli-units, not above it: rounded up the HPA would wait for more than its target. */
static int64_t view_milli_below(const struct td_quantity *quantity)
{
    int64_t milli = td_quantity_milli(quantity);
    struct td_quantity rounded = td_quantity_new_milli(milli, TD_QUANTITY_DECIMAL_SI);
    return milli > 1 && td_quantity_compare(&rounded, quantity) > 0 ? milli - 1 : milli;
}

void hvpa_view_hpa(struct hvpa_tick *tick)
{
    const struct td_hvpa *hvpa = &tick->hvpa;
    tick->hpa = hvpa->hpa;
    if (!hvpa->has_hpa) {
        tick->hpa =
            (struct td_hpa){.meta = hvpa->meta, .target = hvpa->target, .max_replicas = INT32_MAX};
        tick->hpa.selection_strategy = TD_STR_EMPTY;
        return;
    }
    view_behavior(tick);
    struct td_tandem_request *requests;
    size_t count = view_reference(tick, &requests);
    struct td_hpa_metric *metrics =
        td_arena_array(&tick->arena, struct td_hpa_metric, hvpa->hpa.metric_count + 1);
    for (size_t i = 0; i < hvpa->hpa.metric_count; i++) {
        struct td_quantity average;
        metrics[i] = hvpa->hpa.metrics[i];
        if (td_tandem_average_value(hvpa, i, requests, count, &average) &&
            view_is_complete(hvpa, &metrics[i], requests, count)) {
            metrics[i].target = (struct td_hpa_target){
                .type = TD_HPA_AVERAGE_VALUE,
                .has_average_value = true,
                .average_value_milli = view_milli_below(&average),
            };
        }
    }
    tick->hpa.metrics = metrics;
}

/* ---- Pods ---- */

static bool pod_is_newer(const struct td_vertical_pod *a, const struct td_vertical_pod *b)
{
    bool is_ready = a->ready == TD_CONDITION_TRUE;
    bool was_ready = b->ready == TD_CONDITION_TRUE;
    if (is_ready != was_ready) {
        return is_ready;
    }
    if (a->meta.created.unix_seconds != b->meta.created.unix_seconds) {
        return a->meta.created.unix_seconds > b->meta.created.unix_seconds;
    }
    return td_str_compare(a->meta.name, b->meta.name) > 0;
}

/* Resources of the pod itself are those of one more container (hvpa.md 5.6). */
static void pod_add_whole(struct td_arena *arena, struct td_vertical_pod *pod)
{
    struct td_vertical_container *containers =
        td_arena_array(arena, struct td_vertical_container, pod->container_count + 1);
    for (size_t i = 0; i < pod->container_count; i++) {
        containers[i] = pod->containers[i];
    }
    containers[pod->container_count] = (struct td_vertical_container){
        .name = hvpa_pod_name,
        .spec_requests = pod->pod_requests,
        .spec_limits = pod->pod_limits,
        .has_spec_requests = pod->pod_requests.count > 0,
        .has_spec_limits = pod->pod_limits.count > 0,
        .last_terminated_reason = TD_STR_EMPTY,
    };
    pod->containers = containers;
    pod->container_count++;
}

/* It was there before sizes last changed, and is not ready now. */
static bool pod_is_upset(const struct hvpa_tick *tick, const struct td_vertical_pod *pod)
{
    const struct td_hvpa_status *status = &tick->hvpa.status;
    return pod->ready != TD_CONDITION_TRUE && status->has_vertical_time &&
           pod->meta.created.unix_seconds < status->vertical_time.unix_seconds;
}

bool hvpa_pod_is_sized(const struct hvpa_tick *tick, const struct td_vertical_pod *pod)
{
    const struct td_vpa *vpa = &tick->hvpa.vpa;
    bool is_subset = tick->hvpa.has_vpa && vpa->has_selector &&
                     tick->loop->options.control.gates.heterogeneous_workloads;
    return !is_subset || td_selector_matches(&vpa->pod_selector, &pod->meta.labels);
}

void hvpa_view_pods(struct hvpa_tick *tick, const td_str *names, size_t count)
{
    tick->pod_names = names;
    tick->name_count = count;
    const struct td_cache *cache = td_sight_cache(tick->loop->options.control.sight, TD_SIGHT_PODS);
    struct td_vertical_pod *pods =
        td_arena_array(&tick->arena, struct td_vertical_pod, count * 2 + 1);
    struct td_vertical_pod *ended = pods + count;
    tick->pods = pods;
    tick->pod_count = 0;
    tick->ended = ended;
    tick->ended_count = 0;
    tick->newest = NULL;
    tick->is_unready = false;
    for (size_t i = 0; i < count; i++) {
        const struct td_sight_pod *seen = td_cache_get(cache, tick->hvpa.meta.namespace, names[i]);
        struct td_json *tree;
        struct td_vertical_pod pod;
        if (!seen || seen->object.is_deleting ||
            td_sight_tree(&tick->arena, &seen->object, &tree, NULL) != TD_OK ||
            td_vertical_pod_decode(&tick->arena, tree, &pod, NULL) != TD_OK) {
            continue;
        }
        if (pod.phase == TD_POD_SUCCEEDED || pod.phase == TD_POD_FAILED) {
            ended[tick->ended_count++] = pod;
            continue;
        }
        if (pod.has_pod_level && tick->loop->options.control.gates.pod_level_resources) {
            pod_add_whole(&tick->arena, &pod);
        }
        pods[tick->pod_count] = pod;
        const struct td_vertical_pod *kept = &pods[tick->pod_count++];
        tick->is_unready = tick->is_unready || pod_is_upset(tick, kept);
        bool is_newer = !tick->newest || pod_is_newer(kept, tick->newest);
        tick->newest = is_newer && hvpa_pod_is_sized(tick, kept) ? kept : tick->newest;
    }
}

bool hvpa_view_daemons(struct hvpa_tick *tick, int32_t *ret_replicas)
{
    struct td_sight *sight = tick->loop->options.control.sight;
    const struct td_hvpa *hvpa = &tick->hvpa;
    const struct td_workload_source *source = td_sight_source(sight);
    const struct td_workload *workload = source->get_workload(
        source->context, hvpa->target.kind, hvpa->meta.namespace, hvpa->target.name);
    if (!workload || workload->selector_error.len > 0) {
        return false;
    }
    td_auto_buf text;
    td_buf_init(&text, TD_MEASURE_PATH_BYTES_MAX);
    td_selector_write(&workload->selector, &text);
    tick->selector = td_arena_copy_str(&tick->arena, td_buf_str(&text));
    const struct td_sight_pod *pod = NULL;
    size_t cap = 0;
    size_t count = 0;
    td_str *names = NULL;
    while ((pod = td_sight_next_pod(sight, hvpa->meta.namespace, pod))) {
        struct td_json *tree;
        if (td_sight_tree(&tick->arena, &pod->object, &tree, NULL) != TD_OK) {
            continue;
        }
        struct td_labels labels =
            td_labels_from_json(&tick->arena, td_json_get_path(tree, "metadata.labels"));
        if (td_selector_matches(&workload->selector, &labels)) {
            names = td_arena_grow(&tick->arena, names, count, &cap, sizeof(*names));
            names[count++] = td_arena_copy_str(&tick->arena, pod->object.head.name);
        }
    }
    int64_t wanted = workload->desired_scheduled;
    *ret_replicas = wanted > INT32_MAX ? INT32_MAX : (int32_t)wanted;
    hvpa_view_pods(tick, names, count);
    return true;
}

static bool pod_list_is(const struct td_hvpa_requests *decided, td_str container,
                        const struct td_resource_list *list, bool *ret_is_smaller)
{
    bool is_same = true;
    for (int r = 0; r < TD_HVPA_RESOURCE_COUNT; r++) {
        enum td_hvpa_resource resource = (enum td_hvpa_resource)r;
        const struct td_quantity *wanted = hvpa_request_of(decided, container, resource);
        if (!wanted) {
            continue;
        }
        int64_t has =
            hvpa_amount(resource, td_resource_list_get(list, td_hvpa_resource_name(resource)));
        int64_t wants = hvpa_amount(resource, wanted);
        is_same = is_same && has == wants;
        *ret_is_smaller = *ret_is_smaller || has < wants;
    }
    return is_same;
}

bool hvpa_pod_is_as_decided(const struct td_hvpa_requests *requests,
                            const struct td_hvpa_requests *limits,
                            const struct td_vertical_pod *pod, bool *ret_is_smaller)
{
    bool is_same = true;
    bool is_ignored = false;
    for (size_t i = 0; i < pod->container_count; i++) {
        const struct td_vertical_container *c = &pod->containers[i];
        is_same =
            pod_list_is(requests, c->name, td_vertical_requests(c), ret_is_smaller) && is_same;
        is_same = pod_list_is(requests, c->name, &c->spec_requests, ret_is_smaller) && is_same;
        is_same = pod_list_is(limits, c->name, &c->spec_limits, &is_ignored) && is_same;
    }
    return is_same && !pod->resize_pending.is_present && !pod->resize_in_progress.is_present;
}
