/*
 * What Prometheus remembers, learnt once after the start (vpa.md 2.12). By then checkpoints were
 * read and the pods that there are were fed. Pods that are gone are found in the series that has
 * labels of pods (--metric-for-pod-labels), are tracked while their history is learnt, and dropped
 * again; those that no VPA selects are not kept at all, nor are their points.
 *
 * Nothing counts twice: a sample is left out when it lies in the time that the checkpoint of its
 * container covers. So Prometheus fills in what is before a young checkpoint and the time in which
 * no recommender ran. Upstream takes one or the other instead (docs/deviations.md).
 *
 * It is all or nothing: when a query fails half-way, what the VPAs have learnt is forgotten, the
 * checkpoints are read again, and Prometheus is not asked any more. The pass waits for the answers,
 * the loop does not.
 */

#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/os/log.h"
#include "control/prometheus/history.h"
#include "control/recommender/recommend_metrics.h"
#include "control/recommender/recommend_private.h"

#define HISTORY_BUDGET_QUERIES 3 /* as many whole timeouts in all as upstream has queries */

/* A pod that is gone. */
struct history_pod {
    td_str ns;
    td_str name;
    td_time seen; /* the last point of its labels */
};

/* A container whose samples are wanted. */
struct history_container {
    td_str ns;
    td_str pod;
    td_str name;
    td_time covered_from; /* by its checkpoint; both 0: there is none */
    td_time covered_to;
    struct td_tracked_pod *tracked; /* as of `generation`; NULL: not looked for */
    uint64_t generation;
};

struct history_cover {
    td_time from;
    td_time to;
};

struct recommend_history {
    struct td_recommend_loop *loop;
    struct td_arena arena;
    struct td_map covers;    /* "namespace/vpa\ncontainer" to struct history_cover */
    struct td_map pods;      /* "namespace/name" of those that are gone to struct history_pod */
    struct td_map true_keys; /* of labels, by what Prometheus makes of them */
    struct td_prometheus *prometheus;
    struct td_prometheus_call *labels; /* being asked for */
    struct history_pod *pod;           /* whose labels are read; NULL: not wanted */
    td_time pod_seen;
    struct td_labels pod_labels;
    struct td_arena series; /* of those labels */
    struct td_history *usage;
    bool is_over;
    size_t learnt;
    uint64_t generation; /* pods may have moved since the one before */
};

/* ---- What checkpoints know already ---- */

void recommend_history_cover(struct td_recommend_loop *loop, td_str vpa,
                             const struct td_checkpoint *checkpoint)
{
    struct recommend_history *history = loop->history;
    if (!history || checkpoint->total_samples == 0) {
        return;
    }
    struct history_cover *cover = td_arena_new(&history->arena, struct history_cover);
    cover->from = td_time_from_instant(checkpoint->first_sample);
    cover->to = td_time_from_instant(checkpoint->last_sample);
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    td_str key = TD_KEY_LINES(buffer, vpa, checkpoint->container_name);
    /* Past the cap it may count twice. */
    (void)td_map_put(&history->covers, td_arena_copy_str(&history->arena, key), cover);
}

/* ---- The end ---- */

static void history_drop_pods(struct recommend_history *history)
{
    struct td_recommend_loop *loop = history->loop;
    const struct td_cache *cache =
        td_informers_cache(loop->options.control.informers, TD_INFORMER_PODS);
    for (struct td_map_walk at = {.map = &history->pods}; td_map_step(&at);) {
        const struct history_pod *pod = at.value;
        if (!td_cache_get(cache, pod->ns, pod->name)) { /* else one of its name has come */
            td_recommender_delete_pod(loop->model, pod->ns, pod->name);
        }
    }
}

/* Whatever was learnt goes; the pass begins anew, with checkpoints only. */
static void history_give_up(struct recommend_history *history)
{
    struct td_recommend_loop *loop = history->loop;
    for (struct td_map_walk at = {.map = &loop->vpas}; td_map_step(&at);) {
        struct recommend_vpa *vpa = at.value;
        (void)td_recommender_delete_vpa(loop->model, vpa->of.namespace, vpa->of.name);
        vpa->linked = 0;
    }
    loop->has_history = false;
}

static void history_end(struct recommend_history *history, int code, const struct td_error *err)
{
    struct td_recommend_loop *loop = history->loop;
    struct td_history_counts counts = {.series = 0};
    if (history->usage) {
        counts = td_history_counts(history->usage);
    }
    history_drop_pods(history);
    if (code != TD_OK) {
        td_log_line(loop->options.control.log, TD_LOG_WARN,
                    "cannot read history from Prometheus, continuing with checkpoints",
                    TD_LOG_C("error", err->message));
        history_give_up(history);
    } else if (counts.series == 0) {
        td_log_line(loop->options.control.log, TD_LOG_WARN,
                    "Prometheus returned no container series, continuing with checkpoints; check "
                    "--prometheus-cadvisor-job-name and --container-pod-name-label",
                    TD_LOG_S("address", loop->options.prometheus.address));
    } else {
        td_log_line(loop->options.control.log, TD_LOG_INFO, "loaded history from Prometheus",
                    TD_LOG_I("containers", (int64_t)counts.containers),
                    TD_LOG_I("pods_gone", (int64_t)history->pods.count),
                    TD_LOG_I("samples", (int64_t)history->learnt));
    }
    recommend_metrics_history(loop, code != TD_OK || counts.series == 0, history->learnt);
    history->is_over = true;
    recommend_wake(loop);
}

/* ---- Samples ---- */

static void *history_container(void *context, td_str ns, td_str pod, td_str name)
{
    struct recommend_history *history = context;
    struct td_recommend_loop *loop = history->loop;
    struct td_arena *arena = &history->arena;
    struct td_tracked_pod *tracked = td_recommender_find_pod(loop->model, ns, pod);
    if (!tracked) {
        return NULL;
    }
    td_auto_arena scratch = td_arena_capped(TD_OBJECT_BYTES_MAX);
    td_str vpa = td_recommender_vpa_of(loop->model, &scratch, tracked);
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    bool is_gone = td_map_has(&history->pods, td_object_key_write(TD_OBJECT_KEY(ns, pod), buffer));
    if (vpa.len == 0 ||
        (is_gone && td_recommender_set_container(loop->model, &tracked, name, 0,
                                                 recommend_now(loop), NULL) != TD_OK)) {
        return NULL;
    }
    const struct history_cover *cover =
        td_map_get(&history->covers, TD_KEY_LINES(buffer, vpa, name));
    struct history_container *made = td_arena_new(arena, struct history_container);
    *made = (struct history_container){
        .ns = td_arena_copy_str(arena, ns),
        .pod = td_arena_copy_str(arena, pod),
        .name = td_arena_copy_str(arena, name),
        .covered_from = cover ? cover->from : 0,
        .covered_to = cover ? cover->to : 0,
    };
    return made;
}

static void history_sample(void *context, void *container, enum td_learn_resource resource,
                           td_time time, int64_t amount)
{
    struct recommend_history *history = context;
    struct td_recommend_loop *loop = history->loop;
    struct history_container *from = container;
    if (from->covered_to > 0 && time >= from->covered_from && time <= from->covered_to) {
        return;
    }
    if (from->generation != history->generation || !from->tracked) {
        from->tracked = td_recommender_find_pod(loop->model, from->ns, from->pod);
        from->generation = history->generation;
    }
    if (from->tracked &&
        td_recommender_sample(loop->model, from->tracked, from->name, resource, time, amount,
                              recommend_now(loop)) == TD_FEED_TAKEN) {
        history->learnt++;
    }
}

static void history_read(void *context, int code, const struct td_error *err)
{
    history_end(context, code, err);
}

/* {job="...", pod=~".+", name!="POD", name!="", namespace="..."} */
static void history_selector(const struct td_recommend_loop *loop, struct td_buf *out)
{
    const struct td_prometheus_options *options = &loop->options.prometheus;
    (void)td_buf_append_char(out, '{');
    if (options->job.len > 0) {
        (void)td_buf_append(out, TD_STR("job="));
        td_prometheus_quote(options->job, out);
        (void)td_buf_append(out, TD_STR(", "));
    }
    (void)td_buf_append_format(out, "%.*s=~\".+\", %.*s!=\"POD\", %.*s!=\"\"",
                               TD_STR_ARG(options->container_pod_name_label),
                               TD_STR_ARG(options->container_name_label),
                               TD_STR_ARG(options->container_name_label));
    if (loop->options.vpa_namespace.len > 0) {
        (void)td_buf_append_format(out, ", %.*s=", TD_STR_ARG(options->container_namespace_label));
        td_prometheus_quote(loop->options.vpa_namespace, out);
    }
    (void)td_buf_append_char(out, '}');
}

static void history_read_usage(struct recommend_history *history)
{
    static const struct td_history_handler handler = {
        .container = history_container, .sample = history_sample, .done = history_read};
    struct td_recommend_loop *loop = history->loop;
    const struct td_prometheus_options *options = &loop->options.prometheus;
    td_auto_buf selector = td_buf_capped(TD_PROMETHEUS_QUERY_BYTES_MAX);
    td_auto_buf cpu = td_buf_capped(TD_PROMETHEUS_QUERY_BYTES_MAX);
    td_auto_buf memory = td_buf_capped(TD_PROMETHEUS_QUERY_BYTES_MAX);
    history_selector(loop, &selector);
    td_str where = td_buf_str(&selector);
    char span[TD_PROMETHEUS_SPAN_BYTES];
    td_prometheus_span(options->history_resolution, span);
    (void)td_buf_append_format(&cpu, "rate(%.*s%.*s[%s])", TD_STR_ARG(options->cpu_metric),
                               TD_STR_ARG(where), span);
    (void)td_buf_append_format(&memory, "%.*s%.*s", TD_STR_ARG(options->memory_metric),
                               TD_STR_ARG(where));
    td_time now = recommend_now(loop);
    const struct td_history_options usage = {
        .loop = loop->options.control.loop,
        .prometheus = history->prometheus,
        .cpu_query = td_buf_str(&cpu),
        .memory_query = td_buf_str(&memory),
        .namespace_label = options->container_namespace_label,
        .pod_label = options->container_pod_name_label,
        .container_label = options->container_name_label,
        .start = now - options->history_length,
        .end = now,
        .step = options->history_resolution,
        .query_timeout = options->query_timeout,
        .budget = HISTORY_BUDGET_QUERIES * options->query_timeout,
    };
    history->usage = td_history_start(&usage, &handler, history);
}

/* ---- Labels of pods that are gone ---- */

/* What Prometheus makes of a label's name: whatever cannot stand in one of its own is "_". */
static td_str labels_plain(struct td_arena *arena, td_str key)
{
    char *bytes = td_arena_array(arena, char, key.len + 1);
    for (size_t i = 0; i < key.len; i++) {
        char byte = key.ptr[i];
        bool is_plain = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
                        (byte >= '0' && byte <= '9');
        bytes[i] = is_plain ? byte : '_';
    }
    return (td_str){.ptr = bytes, .len = key.len};
}

/* Labels of the pods that there are tell what others were called. */
static void labels_learn_keys(struct recommend_history *history)
{
    const struct td_recommend_loop *loop = history->loop;
    const struct td_cache *cache =
        td_informers_cache(loop->options.control.informers, TD_INFORMER_PODS);
    size_t position = 0;
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    for (const struct td_informer_pod *pod; (pod = td_cache_next(cache, &position));) {
        struct td_json *tree;
        td_arena_reset(&arena);
        if (td_informers_tree(&arena, &pod->object, &tree, NULL) != TD_OK) {
            continue;
        }
        const struct td_json *labels = td_json_get_path(tree, "metadata.labels");
        for (const struct td_json *m = td_json_first_member(labels); m; m = m->next) {
            if (!td_map_has(&history->true_keys, labels_plain(&arena, m->key))) {
                td_str *key = td_arena_new(&history->arena, td_str);
                *key = td_arena_copy_str(&history->arena, m->key);
                /* Past the cap a name stays as Prometheus has it. */
                (void)td_map_put(&history->true_keys, labels_plain(&history->arena, m->key), key);
            }
        }
    }
}

static struct td_labels labels_of_pod(struct recommend_history *history,
                                      const struct td_labels *series)
{
    td_str prefix = history->loop->options.prometheus.pod_label_prefix;
    struct td_label *pairs = td_arena_array(&history->series, struct td_label, series->count);
    size_t count = 0;
    for (size_t i = 0; i < series->count; i++) {
        td_str key = series->items[i].key;
        if (prefix.len == 0 || key.len <= prefix.len || !td_str_starts_with(key, prefix)) {
            continue; /* an empty prefix is none of them, as upstream has it */
        }
        key = td_str_slice(key, prefix.len, key.len);
        const td_str *known = td_map_get(&history->true_keys, key);
        pairs[count++] = (struct td_label){
            .key = known ? *known : td_arena_copy_str(&history->series, key),
            .value = td_arena_copy_str(&history->series, series->items[i].value),
        };
    }
    return td_labels_from_pairs(&history->series, pairs, count);
}

/* A series is through: the newest labels of a pod count. */
static void labels_set(struct recommend_history *history)
{
    struct td_recommend_loop *loop = history->loop;
    struct history_pod *pod = history->pod;
    if (!pod || history->pod_seen <= pod->seen) {
        return;
    }
    pod->seen = history->pod_seen;
    const struct td_observed_pod observed = {
        .namespace = pod->ns,
        .name = pod->name,
        .labels = history->pod_labels,
        .target = TD_TARGET_UNKNOWN,
        .phase = TD_POD_PHASE_UNKNOWN,
    };
    /* At the cap of pods it is not learnt from. */
    (void)td_recommender_set_pod(loop->model, &observed, recommend_now(loop), NULL, NULL);
}

static bool labels_series(void *context, const struct td_labels *labels)
{
    struct recommend_history *history = context;
    const struct td_recommend_loop *loop = history->loop;
    const struct td_prometheus_options *options = &loop->options.prometheus;
    const td_str *ns = td_labels_get(labels, options->pod_namespace_label);
    const td_str *name = td_labels_get(labels, options->pod_name_label);
    labels_set(history);
    history->pod = NULL;
    history->pod_seen = 0;
    td_arena_reset(&history->series);
    if (!ns || !name || ns->len == 0 || name->len == 0 ||
        td_cache_get(td_informers_cache(loop->options.control.informers, TD_INFORMER_PODS), *ns,
                     *name)) {
        return false; /* one that is there has told its labels itself */
    }
    td_str key = td_object_key_text(&history->arena, TD_OBJECT_KEY(*ns, *name));
    struct history_pod *pod = td_map_get(&history->pods, key);
    if (!pod) {
        pod = td_arena_new(&history->arena, struct history_pod);
        pod->ns = td_str_slice(key, 0, ns->len);
        pod->name = td_str_slice(key, ns->len + 1, key.len);
        if (td_map_put(&history->pods, key, pod) != TD_OK) {
            return false;
        }
    }
    history->pod = pod;
    history->pod_labels = labels_of_pod(history, labels);
    return true;
}

static int labels_point(void *context, td_time time, double value, struct td_error *err)
{
    struct recommend_history *history = context;
    (void)value;
    (void)err;
    history->pod_seen = time > history->pod_seen ? time : history->pod_seen;
    return TD_OK;
}

/* Pods that no VPA selects are not learnt from. */
static void labels_drop_unmanaged(struct recommend_history *history)
{
    struct td_recommend_loop *loop = history->loop;
    td_auto_arena scratch = td_arena_capped(TD_OBJECT_BYTES_MAX);
    for (struct td_map_walk at = {.map = &history->pods}; td_map_step(&at);) {
        const struct history_pod *pod = at.value;
        const struct td_tracked_pod *tracked =
            td_recommender_find_pod(loop->model, pod->ns, pod->name);
        td_arena_reset(&scratch);
        if (!tracked || td_recommender_vpa_of(loop->model, &scratch, tracked).len == 0) {
            td_recommender_delete_pod(loop->model, pod->ns, pod->name);
            (void)td_map_remove(&history->pods, at.key);
        }
    }
}

static void labels_answered(void *context, int code, const struct td_error *err)
{
    struct recommend_history *history = context;
    history->labels = NULL;
    if (code != TD_OK) {
        history_end(history, code, err);
        return;
    }
    labels_set(history);
    labels_drop_unmanaged(history);
    history_read_usage(history);
}

/* ---- The whole ---- */

int recommend_history_new(struct td_recommend_loop *loop, struct td_error *err)
{
    const struct td_prometheus_options *options = &loop->options.prometheus;
    if (options->address.len == 0) {
        return TD_OK;
    }
    struct td_prometheus *prometheus;
    int code = td_prometheus_new(loop->options.control.loop, options,
                                 loop->options.control.registry, &prometheus, err);
    if (code != TD_OK) {
        return td_error_wrap(err, code, "--prometheus-address");
    }
    struct recommend_history *history = td_alloc_zero(1, sizeof(*history));
    history->loop = loop;
    history->prometheus = prometheus;
    td_arena_init(&history->arena, TD_TREE_ARENA_BYTES_MAX);
    td_arena_init(&history->series, TD_TREE_ARENA_BYTES_MAX);
    td_map_init(&history->covers, TD_CACHE_OBJECTS_MAX);
    td_map_init(&history->pods, TD_RECOMMENDER_PODS_MAX);
    td_map_init(&history->true_keys, TD_CACHE_OBJECTS_MAX);
    loop->history = history;
    return TD_OK;
}

static void history_cancel(struct recommend_history *history)
{
    if (history->labels) {
        td_prometheus_cancel(history->labels);
        history->labels = NULL;
    }
    td_history_free(history->usage);
    history->usage = NULL;
}

void recommend_history_free(struct td_recommend_loop *loop)
{
    struct recommend_history *history = loop->history;
    if (!history) {
        return;
    }
    history_cancel(history);
    td_prometheus_free(history->prometheus);
    td_map_done(&history->covers);
    td_map_done(&history->pods);
    td_map_done(&history->true_keys);
    td_arena_done(&history->arena);
    td_arena_done(&history->series);
    td_free(history);
    loop->history = NULL;
}

void recommend_history_start(struct td_recommend_loop *loop)
{
    static const struct td_prometheus_events events = {
        .series = {.series = labels_series, .point = labels_point}, .done = labels_answered};
    struct recommend_history *history = loop->history;
    const struct td_prometheus_options *options = &loop->options.prometheus;
    if (options->pod_labels_metric.len == 0) {
        history_read_usage(history); /* only the pods that there are */
        return;
    }
    labels_learn_keys(history);
    const struct td_prometheus_query query = {
        .text = options->pod_labels_metric,
        .at = recommend_now(loop),
        .timeout = options->query_timeout,
    };
    history->labels = td_prometheus_ask(history->prometheus, &query, &events, history);
}

bool recommend_history_is_over(const struct td_recommend_loop *loop)
{
    return loop->history->is_over;
}

void recommend_history_stop(struct td_recommend_loop *loop)
{
    struct recommend_history *history = loop->history;
    history_cancel(history);
    history_drop_pods(history);
    history_give_up(history);
    td_map_reset(&history->pods);
    history->learnt = 0;
}
