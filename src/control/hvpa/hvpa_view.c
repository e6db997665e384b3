/*
 * What a reconcile sees of its target beside the scale: the template, the pods with their sizes,
 * and the HPA as it has to be asked.
 */
#include "base/error.h"
#include "base/limits.h"
#include "control/hvpa/hvpa_private.h"

const td_str hvpa_pod_name = TD_TANDEM_POD;

/* ---- The template ---- */

static const struct td_informer_object *view_workload(const struct hvpa_reconcile *run)
{
    static const struct {
        const char *kind;
        enum td_informer_kind informers;
    } rows[] = {
        {"Deployment", TD_INFORMER_DEPLOYMENTS},
        {"StatefulSet", TD_INFORMER_STATEFUL_SETS},
        {"DaemonSet", TD_INFORMER_DAEMON_SETS},
        {"ReplicationController", TD_INFORMER_REPLICATION_CONTROLLERS},
    };
    const struct td_hvpa *hvpa = &run->hvpa;
    for (size_t i = 0; i < TD_COUNT(rows); i++) {
        const struct td_cache *cache =
            td_informers_cache(run->loop->options.control.informers, rows[i].informers);
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
    *ret = (struct hvpa_container){.name = td_json_text(container, "name")};
    /* A template that the server took can be read; one that cannot asks for nothing. */
    (void)td_resource_list_decode(arena, td_json_get(resources, TD_STR("requests")), &ret->requests,
                                  NULL);
    (void)td_resource_list_decode(arena, td_json_get(resources, TD_STR("limits")), &ret->limits,
                                  NULL);
}

void hvpa_view_template(struct hvpa_reconcile *run)
{
    const struct td_informer_object *object = view_workload(run);
    struct td_json *tree;
    if (!object || td_informers_tree(&run->arena, object, &tree, NULL) != TD_OK) {
        return;
    }
    const struct td_json *list = td_json_get_path(tree, "spec.template.spec.containers");
    if (!td_json_is(list, TD_JSON_TYPE_ARRAY)) {
        return;
    }
    run->seen.template = td_arena_array(&run->arena, struct hvpa_container, list->count + 2);
    for (const struct td_json *c = td_json_first_item(list); c; c = c->next) {
        view_container(&run->arena, c, &run->seen.template[run->seen.template_count++]);
    }
    const struct td_json *pod = td_json_get_path(tree, "spec.template.spec");
    if (td_json_get(pod, TD_STR("resources")) &&
        run->loop->options.control.gates.pod_level_resources) {
        struct hvpa_container *whole = &run->seen.template[run->seen.template_count++];
        view_container(&run->arena, pod, whole);
        whole->name = hvpa_pod_name;
    }
}

/* ---- The HPA ---- */

/* The behaviour of an HPA that names one and leaves everything out
 * (docs/internals/decide/tandem.md). */
static const struct td_hpa_policy up_policies[] = {
    {.type = TD_HPA_POLICY_PODS, .value = 4, .period_seconds = 15},
    {.type = TD_HPA_POLICY_PERCENT, .value = 100, .period_seconds = 15},
};
static const struct td_hpa_policy down_policies[] = {
    {.type = TD_HPA_POLICY_PERCENT, .value = 100, .period_seconds = 15},
};

static void view_behavior(struct hvpa_reconcile *run)
{
    struct td_hpa *hpa = &run->hpa;
    td_duration window = run->loop->options.horizontal.downscale_stabilization;
    if (hpa->has_behavior) {
        return;
    }
    hpa->has_behavior = true;
    hpa->scale_up = (struct td_hpa_rules){
        .has_window = true, .policies = up_policies, .policy_count = TD_COUNT(up_policies)};
    hpa->scale_down = (struct td_hpa_rules){.has_window = true,
                                            .window_seconds = (int32_t)(window / TD_SECOND),
                                            .policies = down_policies,
                                            .policy_count = 1};
}

/* What utilisation is measured against: the template's requests, of which none may be missing. */
static size_t view_reference(struct hvpa_reconcile *run, struct td_tandem_request **ret)
{
    struct td_tandem_request *requests =
        td_arena_array(&run->arena, struct td_tandem_request, run->seen.template_count * 2 + 1);
    size_t count = 0;
    for (size_t i = 0; i < run->seen.template_count; i++) {
        const struct hvpa_container *c = &run->seen.template[i];
        for (int r = 0; r < TD_HVPA_RESOURCE_COUNT; r++) {
            enum td_hvpa_resource resource = (enum td_hvpa_resource)r;
            const struct td_quantity *kept =
                td_tandem_request_of(&run->decided.reference, c->name, resource);
            const struct td_quantity *written =
                td_resource_list_get(&c->requests, td_hvpa_resource_name(resource));
            requests[count++] = (struct td_tandem_request){
                .container = c->name,
                .resource = resource,
                .live = td_tandem_amount_of(
                    resource, td_tandem_request_of(&run->decided.requests, c->name, resource)),
                .in_template = td_tandem_amount_of(resource, kept ? kept : written),
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

void hvpa_view_hpa(struct hvpa_reconcile *run)
{
    const struct td_hvpa *hvpa = &run->hvpa;
    run->hpa = hvpa->hpa;
    if (!hvpa->has_hpa) {
        run->hpa =
            (struct td_hpa){.meta = hvpa->meta, .target = hvpa->target, .max_replicas = INT32_MAX};
        run->hpa.selection_strategy = TD_STR_EMPTY;
        return;
    }
    view_behavior(run);
    struct td_tandem_request *requests;
    size_t count = view_reference(run, &requests);
    struct td_hpa_metric *metrics =
        td_arena_array(&run->arena, struct td_hpa_metric, hvpa->hpa.metric_count + 1);
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
    run->hpa.metrics = metrics;
}

/* ---- Pods ---- */

static bool pod_is_newer(const struct td_pod *a, const struct td_pod *b)
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
static void pod_add_whole(struct td_arena *arena, struct td_pod *pod)
{
    struct td_pod_container *containers =
        td_arena_array(arena, struct td_pod_container, pod->container_count + 1);
    for (size_t i = 0; i < pod->container_count; i++) {
        containers[i] = pod->containers[i];
    }
    containers[pod->container_count] = (struct td_pod_container){
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
static bool pod_is_upset(const struct hvpa_reconcile *run, const struct td_pod *pod)
{
    const struct td_hvpa_status *status = &run->hvpa.status;
    return pod->ready != TD_CONDITION_TRUE && status->has_vertical_time &&
           pod->meta.created.unix_seconds < status->vertical_time.unix_seconds;
}

bool hvpa_pod_is_sized(const struct hvpa_reconcile *run, const struct td_pod *pod)
{
    return td_tandem_pod_is_sized(&run->hvpa,
                                  run->loop->options.control.gates.heterogeneous_workloads, pod);
}

void hvpa_view_pods(struct hvpa_reconcile *run, const td_str *names, size_t count)
{
    run->seen.pod_names = names;
    run->seen.name_count = count;
    const struct td_cache *cache =
        td_informers_cache(run->loop->options.control.informers, TD_INFORMER_PODS);
    struct td_pod *pods = td_arena_array(&run->arena, struct td_pod, count * 2 + 1);
    struct td_pod *ended = pods + count;
    run->seen.pods = pods;
    run->seen.pod_count = 0;
    run->seen.ended = ended;
    run->seen.ended_count = 0;
    run->seen.newest = NULL;
    run->seen.is_unready = false;
    for (size_t i = 0; i < count; i++) {
        const struct td_informer_pod *seen =
            td_cache_get(cache, run->hvpa.meta.namespace, names[i]);
        struct td_json *tree;
        struct td_pod pod;
        if (!seen || seen->object.is_deleting ||
            td_informers_tree(&run->arena, &seen->object, &tree, NULL) != TD_OK ||
            td_pod_decode(&run->arena, tree, &pod, NULL) != TD_OK) {
            continue;
        }
        if (td_pod_phase_is_over(pod.phase)) {
            ended[run->seen.ended_count++] = pod;
            continue;
        }
        if (pod.has_pod_level && run->loop->options.control.gates.pod_level_resources) {
            pod_add_whole(&run->arena, &pod);
        }
        pods[run->seen.pod_count] = pod;
        const struct td_pod *kept = &pods[run->seen.pod_count++];
        run->seen.is_unready = run->seen.is_unready || pod_is_upset(run, kept);
        bool is_newer = !run->seen.newest || pod_is_newer(kept, run->seen.newest);
        run->seen.newest = is_newer && hvpa_pod_is_sized(run, kept) ? kept : run->seen.newest;
    }
}

bool hvpa_view_daemons(struct hvpa_reconcile *run, int32_t *ret_replicas)
{
    struct td_informers *informers = run->loop->options.control.informers;
    const struct td_hvpa *hvpa = &run->hvpa;
    const struct td_workload_source *source = td_informers_source(informers);
    const struct td_workload *workload = source->get_workload(
        source->context, hvpa->target.kind, hvpa->meta.namespace, hvpa->target.name);
    if (!workload || workload->selector_error.len > 0) {
        return false;
    }
    td_auto_buf text = td_buf_capped(TD_METRICS_PATH_BYTES_MAX);
    td_selector_write(&workload->selector, &text);
    run->seen.selector = td_arena_copy_str(&run->arena, td_buf_str(&text));
    const struct td_informer_pod *pod = NULL;
    size_t cap = 0;
    size_t count = 0;
    td_str *names = NULL;
    while ((pod = td_informers_next_pod(informers, hvpa->meta.namespace, pod))) {
        struct td_json *tree;
        if (td_informers_tree(&run->arena, &pod->object, &tree, NULL) != TD_OK) {
            continue;
        }
        struct td_labels labels =
            td_labels_from_json(&run->arena, td_json_get_path(tree, "metadata.labels"));
        if (td_selector_matches(&workload->selector, &labels)) {
            names = td_arena_grow(&run->arena, names, count, &cap, sizeof(*names));
            names[count++] = td_arena_copy_str(&run->arena, pod->object.head.name);
        }
    }
    int64_t wanted = workload->desired_scheduled;
    *ret_replicas = wanted > INT32_MAX ? INT32_MAX : (int32_t)wanted;
    hvpa_view_pods(run, names, count);
    return true;
}
