/*
 * First the facts about pods, then what they used, step by step into the model: a pod is tracked
 * from its first sample on, under the workload that owns it. OOMs are fed at the step behind them,
 * so that they fall into the memory window that they belong to. At the end each workload is a VPA
 * whose status is asked for, and its containers are rows: those that run now, or, of CronJobs
 * between two runs, those that ran.
 */
#include "control/recommender/recommend_prometheus.h"

#include "base/alloc.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/os/loop.h"
#include "base/vec.h"
#include "control/inspect/recommend_facts.h"
#include "decide/vertical/recommender/recommender.h"
#include "decide/vertical/resourcelist.h"
#include "kube/objectkey.h"

#define SIZES_GUESSED "?" /* kind of a workload that is guessed from names */

struct sizes_workload {
    td_str namespace;
    td_str kind;
    td_str name;
    td_str vpa;
    struct td_map containers; /* by name to struct sizes_container */
};

struct sizes_container {
    td_str name;
    size_t running;
    td_time born;                         /* of the instance whose requests are shown */
    const struct td_fact_container *fact; /* of that one; NULL: nothing is known */
    bool is_running;                      /* that one */
};

/* A pod of the history, with or without a workload. */
struct sizes_pod {
    struct sizes_workload *workload; /* NULL: none owns it */
    bool is_counted;                 /* among the running pods without a workload */
};

/* One container of one pod, as history knows it. */
struct sizes_instance {
    td_str namespace;
    td_str pod;
    td_str name;
    struct sizes_container *container;
    const struct td_fact_container *fact;
    td_time born; /* its first sample; 0: none yet */
    td_time last;
    struct td_tracked_pod *tracked; /* as of `generation`; NULL: not looked for */
    uint64_t generation;
};

struct td_recommend_prometheus {
    struct td_recommend_prometheus_options options;
    td_right_sizes_fn fn;
    void *context;
    struct td_arena arena;
    td_time end;
    struct td_recommender *model;
    struct td_facts *facts;
    struct td_history *history;
    struct td_timer *next; /* out of the callback of a query */
    struct td_map workloads;
    struct td_map pods;
    struct {
        TD_VEC_FIELDS(struct sizes_instance *);
    } instances;
    size_t oom_at;
    td_time newest;      /* sample of all */
    uint64_t generation; /* pods may have moved since the one before */
    size_t unowned;
    bool is_read;
    struct {
        TD_VEC_FIELDS(struct td_right_size);
    } rows;
};

static void sizes_fail(struct td_recommend_prometheus *sizes, int code, const struct td_error *err)
{
    const struct td_right_sizes failed = {.code = code, .err = *err};
    sizes->fn(sizes->context, &failed);
}

/* ---- Whose a pod is ---- */

static bool guess_is_hash(td_str part, size_t least, size_t most)
{
    for (size_t i = 0; i < part.len; i++) {
        char byte = part.ptr[i];
        if (!(byte >= 'a' && byte <= 'z') && !(byte >= '0' && byte <= '9')) {
            return false;
        }
    }
    return part.len >= least && part.len <= most;
}

/* A name without its last part, when that is as long as those that controllers make up. */
static td_str guess_cut(td_str name, size_t least, size_t most)
{
    size_t dash = name.len;
    while (dash > 0 && name.ptr[dash - 1] != '-') {
        dash--;
    }
    bool is_made_up = dash > 1 && guess_is_hash(td_str_slice(name, dash, name.len), least, most);
    return is_made_up ? td_str_slice(name, 0, dash - 1) : name;
}

/* web-7d4b9c6f5-x2x4z and db-0: the names of what made them. */
static td_str guess_workload(td_str pod)
{
    td_str cut = guess_cut(pod, 5, 5);
    return cut.len < pod.len ? guess_cut(cut, 8, 10) : guess_cut(pod, 1, 4);
}

/* The topmost controller; false: the pod has none. */
static bool sizes_find_top(const struct td_recommend_prometheus *sizes, td_str ns, td_str pod,
                           struct td_fact_owner *ret)
{
    const struct td_facts *facts = sizes->facts;
    const struct td_fact_owner *owner = td_facts_owner(facts, TD_FACT_POD_OWNERS, ns, pod);
    if (td_facts_count(facts, TD_FACT_POD_OWNERS) == 0) {
        *ret = (struct td_fact_owner){.kind = TD_STR(SIZES_GUESSED), .name = guess_workload(pod)};
        return true;
    }
    if (!owner || td_str_equal(owner->kind, TD_STR("Node"))) {
        return false; /* a static pod is its node's */
    }
    bool is_set = td_str_equal(owner->kind, TD_STR("ReplicaSet"));
    bool is_job = td_str_equal(owner->kind, TD_STR("Job"));
    const struct td_fact_owner *above = NULL;
    if (is_set || is_job) {
        above = td_facts_owner(facts, is_set ? TD_FACT_REPLICA_SET_OWNERS : TD_FACT_JOB_OWNERS, ns,
                               owner->name);
    }
    if (is_set && !above && td_facts_count(facts, TD_FACT_REPLICA_SET_OWNERS) == 0) {
        *ret = (struct td_fact_owner){.kind = TD_STR(SIZES_GUESSED),
                                      .name = guess_cut(owner->name, 8, 10)};
        return true;
    }
    *ret = above ? *above : *owner;
    return true;
}

/* The VPA that stands for a workload in the model. */
static struct td_vpa sizes_vpa(const struct sizes_workload *workload)
{
    return (struct td_vpa){
        .meta = {.namespace = workload->namespace, .name = workload->vpa},
        .has_target = true,
        .target_kind = workload->kind,
        .target_name = workload->name,
        .mode = TD_VPA_OFF,
    };
}

static struct sizes_workload *sizes_workload(struct td_recommend_prometheus *sizes, td_str ns,
                                             const struct td_fact_owner *top)
{
    struct td_arena *arena = &sizes->arena;
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    td_str key = td_arena_copy_str(arena, TD_KEY_LINES(buffer, ns, top->kind, top->name));
    struct sizes_workload *made = td_map_get(&sizes->workloads, key);
    if (made) {
        return made;
    }
    made = td_arena_new(arena, struct sizes_workload);
    made->namespace = td_arena_copy_str(arena, ns);
    made->kind = td_arena_copy_str(arena, top->kind);
    made->name = td_arena_copy_str(arena, top->name);
    made->vpa = td_arena_format(arena, "%.*s:%.*s", TD_STR_ARG(top->kind), TD_STR_ARG(top->name));
    td_map_init(&made->containers, TD_RECOMMEND_CONTAINERS_MAX);
    const struct td_selector all = {.count = 0};
    const struct td_vpa vpa = sizes_vpa(made);
    const struct td_vpa_link link = {.vpa = &vpa,
                                     .target_selector = &all,
                                     .target = made->vpa,
                                     .estimator = td_estimator_find(sizes->options.estimator)};
    if (td_map_put(&sizes->workloads, key, made) != TD_OK ||
        td_recommender_set_vpa(sizes->model, &link, sizes->end, NULL) != TD_OK) {
        return NULL;
    }
    return made;
}

static struct sizes_pod *sizes_pod(struct td_recommend_prometheus *sizes, td_str ns, td_str name)
{
    td_str key = td_object_key_text(&sizes->arena, TD_OBJECT_KEY(ns, name));
    struct sizes_pod *pod = td_map_get(&sizes->pods, key);
    if (pod) {
        return pod;
    }
    pod = td_arena_new(&sizes->arena, struct sizes_pod);
    struct td_fact_owner top;
    if (td_map_put(&sizes->pods, key, pod) == TD_OK && sizes_find_top(sizes, ns, name, &top)) {
        pod->workload = sizes_workload(sizes, ns, &top);
    }
    if (pod->workload) {
        const struct td_observed_pod observed = {
            .namespace = ns, .name = name, .target = pod->workload->vpa, .phase = TD_POD_RUNNING};
        if (td_recommender_set_pod(sizes->model, &observed, sizes->end, NULL, NULL) != TD_OK) {
            pod->workload = NULL;
        }
    }
    return pod;
}

/* ---- History ---- */

static struct sizes_container *sizes_container(struct td_recommend_prometheus *sizes,
                                               struct sizes_workload *workload, td_str name)
{
    struct sizes_container *made = td_map_get(&workload->containers, name);
    if (!made) {
        made = td_arena_new(&sizes->arena, struct sizes_container);
        made->name = td_arena_copy_str(&sizes->arena, name);
        if (td_map_put(&workload->containers, made->name, made) != TD_OK) {
            return NULL;
        }
    }
    return made;
}

/* Whole amounts; what is not known counts as none. */
static int64_t sizes_bytes(double amount)
{
    return amount > 0 && amount < 1e15 ? (int64_t)amount : 0;
}

static void *sizes_find(void *context, td_str ns, td_str pod_name, td_str name)
{
    struct td_recommend_prometheus *sizes = context;
    struct td_arena *arena = &sizes->arena;
    struct sizes_pod *pod = sizes_pod(sizes, ns, pod_name);
    const struct td_fact_container *fact = td_facts_container(sizes->facts, ns, pod_name, name);
    if (!pod->workload) {
        bool is_one = fact && fact->is_running && !pod->is_counted;
        sizes->unowned += is_one;
        pod->is_counted = pod->is_counted || is_one;
        return NULL;
    }
    struct td_tracked_pod *tracked = td_recommender_find_pod(sizes->model, ns, pod_name);
    sizes->generation++;
    struct sizes_container *container = sizes_container(sizes, pod->workload, name);
    struct sizes_instance **place =
        container && tracked &&
                td_recommender_set_container(sizes->model, &tracked, name, 0, sizes->end, NULL) ==
                    TD_OK
            ? td_vec_push(&sizes->instances)
            : NULL;
    if (!place) {
        return NULL;
    }
    if (fact) { /* as it is now: earlier requests are not asked for */
        const struct td_container_terms terms = {
            .cpu_request_milli = sizes_bytes(fact->requests[0] * 1000),
            .memory_request_bytes = sizes_bytes(fact->requests[1]),
            .memory_limit_bytes = sizes_bytes(fact->limits[1]),
        };
        td_recommender_set_terms(sizes->model, tracked, name, &terms, sizes->end);
    }
    *place = td_arena_new(arena, struct sizes_instance);
    **place = (struct sizes_instance){
        .namespace = td_arena_copy_str(arena, ns),
        .pod = td_arena_copy_str(arena, pod_name),
        .name = container->name,
        .container = container,
        .fact = fact,
    };
    return *place;
}

static void sizes_feed_ooms(struct td_recommend_prometheus *sizes, td_time until)
{
    size_t count;
    const struct td_fact_oom *ooms = td_facts_ooms(sizes->facts, &count);
    for (; sizes->oom_at < count && ooms[sizes->oom_at].time <= until; sizes->oom_at++) {
        const struct td_fact_oom *oom = &ooms[sizes->oom_at];
        struct td_tracked_pod *pod =
            td_recommender_find_pod(sizes->model, oom->namespace, oom->pod);
        const struct td_fact_container *fact =
            td_facts_container(sizes->facts, oom->namespace, oom->pod, oom->container);
        int64_t request = sizes_bytes(fact ? fact->requests[1] : 0);
        if (pod) {
            const struct td_oom_kill kill = {
                .request_bytes = request, .limit_bytes = sizes_bytes(fact ? fact->limits[1] : 0)};
            (void)td_recommender_oom(sizes->model, pod, oom->container, oom->time, &kill,
                                     sizes->end);
        }
    }
}

static void sizes_sample(void *context, void *container, enum td_learn_resource resource,
                         td_time time, int64_t amount)
{
    struct td_recommend_prometheus *sizes = context;
    struct sizes_instance *from = container;
    sizes_feed_ooms(sizes, time - TD_RECOMMEND_RESOLUTION);
    if (from->generation != sizes->generation || !from->tracked) {
        from->tracked = td_recommender_find_pod(sizes->model, from->namespace, from->pod);
        from->generation = sizes->generation;
    }
    from->born = from->born > 0 ? from->born : time;
    from->last = time;
    sizes->newest = time;
    if (from->tracked) {
        (void)td_recommender_sample(sizes->model, from->tracked, from->name, resource, time, amount,
                                    sizes->end);
    }
}

/* ---- Rows ---- */

static struct td_resource_list rows_amounts(struct td_arena *arena, const double amounts[2])
{
    struct td_resource_list list = {.count = 0};
    if (amounts[0] >= 0 && amounts[0] < 1e6) {
        struct td_quantity cpu =
            td_quantity_new_milli((int64_t)(amounts[0] * 1000 + 0.5), TD_QUANTITY_DECIMAL_SI);
        td_resource_list_set(arena, &list, TD_CPU, &cpu);
    }
    if (amounts[1] >= 0 && amounts[1] < 1e18) {
        struct td_quantity memory = td_quantity_new((int64_t)amounts[1], TD_QUANTITY_BINARY_SI);
        td_resource_list_set(arena, &list, TD_MEMORY, &memory);
    }
    return list;
}

static td_str rows_api_version(td_str kind)
{
    static const char *const rows[][2] = {
        {"Deployment", "apps/v1"},       {"StatefulSet", "apps/v1"}, {"DaemonSet", "apps/v1"},
        {"ReplicaSet", "apps/v1"},       {"CronJob", "batch/v1"},    {"Job", "batch/v1"},
        {"ReplicationController", "v1"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (td_str_equal(kind, td_str_from(rows[i][0]))) {
            return td_str_from(rows[i][1]);
        }
    }
    return TD_STR_EMPTY; /* not known; the report prints no YAML of it */
}

/* Does it run? Where Prometheus has no recent samples at all, at the end of those it has. */
static bool rows_is_running(const struct td_recommend_prometheus *sizes,
                            const struct sizes_instance *instance)
{
    if (td_facts_count(sizes->facts, TD_FACT_RUNNING) == 0) {
        return instance->last >= sizes->newest - TD_RECOMMEND_RESOLUTION;
    }
    return instance->fact && instance->fact->is_running;
}

/* Which instance stands for its container: one that runs before one that is gone, then the
 * youngest. */
static void rows_choose(struct td_recommend_prometheus *sizes)
{
    for (size_t i = 0; i < sizes->instances.count; i++) {
        const struct sizes_instance *instance = sizes->instances.items[i];
        struct sizes_container *container = instance->container;
        bool is_running = rows_is_running(sizes, instance);
        bool is_better =
            is_running != container->is_running ? is_running : instance->born >= container->born;
        container->running += is_running;
        if (is_better) {
            container->born = instance->born;
            container->fact = instance->fact;
            container->is_running = is_running;
        }
    }
}

static int rows_add(struct td_recommend_prometheus *sizes, const struct sizes_workload *workload,
                    const struct td_vpa_status *status, struct td_error *err)
{
    bool is_cron = td_str_equal(workload->kind, TD_STR("CronJob"));
    for (struct td_map_walk at = {.map = &workload->containers}; td_map_step(&at);) {
        const struct sizes_container *container = at.value;
        if (container->running == 0 && !is_cron) {
            continue;
        }
        struct td_right_size *row = td_vec_push(&sizes->rows);
        if (!row) {
            return td_error_set(err, TD_LIMIT, "too many containers");
        }
        *row = (struct td_right_size){
            .namespace = workload->namespace,
            .api_version = rows_api_version(workload->kind),
            .kind = workload->kind,
            .workload = workload->name,
            .container = container->name,
            .pods = container->running,
        };
        if (container->fact) {
            row->now = rows_amounts(&sizes->arena, container->fact->requests);
            row->limits = rows_amounts(&sizes->arena, container->fact->limits);
        }
        td_right_size_fill(&sizes->arena, row, status, &sizes->options.limits);
    }
    return TD_OK;
}

static int rows_make(struct td_recommend_prometheus *sizes, struct td_error *err)
{
    int code = TD_OK;
    rows_choose(sizes);
    for (struct td_map_walk at = {.map = &sizes->workloads}; code == TD_OK && td_map_step(&at);) {
        const struct sizes_workload *workload = at.value;
        const struct td_vpa vpa = sizes_vpa(workload);
        struct td_vpa_status status = {.pod_count = 0};
        code = td_recommender_status(sizes->model, &sizes->arena, &vpa, NULL, sizes->end, &status,
                                     err);
        code = code == TD_OK ? rows_add(sizes, workload, &status, err) : code;
        code = code == TD_OK ? td_arena_check(&sizes->arena, err) : code;
    }
    return code;
}

/* What the report lacks, and why. */
static td_str rows_problem(const struct td_recommend_prometheus *sizes)
{
    static const struct {
        enum td_fact fact;
        const char *text;
    } rows[] = {
        {TD_FACT_POD_OWNERS,
         "Prometheus has no kube_pod_owner series for these pods (kube-state-metrics): workloads "
         "are guessed from pod names; requests and OOMs may be missing"},
        {TD_FACT_REQUESTS, "Prometheus has no kube_pod_container_resource_requests series for "
                           "these pods (kube-state-metrics): their current requests are unknown"},
        {TD_FACT_REPLICA_SET_OWNERS,
         "Prometheus has no kube_replicaset_owner series (kube-state-metrics): Deployments are "
         "guessed from ReplicaSet names"},
    };
    if (td_facts_count(sizes->facts, TD_FACT_RUNNING) == 0) {
        return TD_STR("Prometheus has no samples of the last minutes: containers with the newest "
                      "samples are assumed to run");
    }
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (td_facts_count(sizes->facts, rows[i].fact) == 0) {
            return td_str_from(rows[i].text);
        }
    }
    return TD_STR_EMPTY;
}

static void sizes_end(struct td_recommend_prometheus *sizes)
{
    struct td_error err = TD_ERROR_INIT;
    sizes_feed_ooms(sizes, sizes->end);
    int code = rows_make(sizes, &err);
    if (code == TD_OK && td_history_counts(sizes->history).series == 0) {
        char window[TD_PROMETHEUS_SPAN_BYTES];
        td_prometheus_span(sizes->options.window, window);
        code = td_error_set(
            &err, TD_NOT_FOUND,
            "%.*s: no containers in the last %s: no series container_cpu_usage_seconds_total or "
            "container_memory_working_set_bytes%s",
            TD_STR_ARG(td_prometheus_url(sizes->options.prometheus)), window,
            sizes->options.namespace.len > 0 ? " in this namespace" : "");
    }
    if (code != TD_OK) {
        sizes_fail(sizes, code, &err);
        return;
    }
    td_right_sizes_sort(sizes->rows.items, sizes->rows.count);
    char window[TD_PROMETHEUS_SPAN_BYTES];
    td_prometheus_span(sizes->options.window, window);
    const struct td_right_sizes report = {
        .code = TD_OK,
        .items = sizes->rows.items,
        .count = sizes->rows.count,
        .window = td_arena_format(&sizes->arena, "%s of Prometheus", window),
        .unowned = sizes->unowned,
        .problem = rows_problem(sizes),
    };
    sizes->fn(sizes->context, &report);
}

/* ---- The whole ---- */

static void sizes_progress(void *context, const struct td_history_counts *counts)
{
    struct td_recommend_prometheus *sizes = context;
    if (sizes->options.progress) {
        sizes->options.progress(sizes->context, counts);
    }
}

static void sizes_read(void *context, int code, const struct td_error *err)
{
    struct td_recommend_prometheus *sizes = context;
    if (code != TD_OK) {
        sizes_fail(sizes, code, err);
        return;
    }
    sizes->is_read = true;
    td_timer_set_machine(sizes->next, 0);
}

static void sizes_ask_usage(struct td_recommend_prometheus *sizes)
{
    static const struct td_history_handler handler = {.container = sizes_find,
                                                      .sample = sizes_sample,
                                                      .progress = sizes_progress,
                                                      .done = sizes_read};
    td_auto_buf where = td_buf_capped(TD_PROMETHEUS_QUERY_BYTES_MAX);
    (void)td_buf_append(&where, TD_STR("container!=\"\",container!=\"POD\",pod!=\"\""));
    if (sizes->options.namespace.len > 0) {
        (void)td_buf_append(&where, TD_STR(",namespace="));
        td_prometheus_quote(sizes->options.namespace, &where);
    }
    char span[TD_PROMETHEUS_SPAN_BYTES];
    td_prometheus_span(TD_RECOMMEND_RESOLUTION, span);
    struct td_arena *arena = &sizes->arena;
    /* `max by` counts once what two scrapers report, and the series of a container's last run. */
    const struct td_history_options options = {
        .loop = sizes->options.loop,
        .prometheus = sizes->options.prometheus,
        .cpu_query = td_arena_format(arena,
                                     "max by (namespace, pod, container) "
                                     "(rate(container_cpu_usage_seconds_total{%.*s}[%s]))",
                                     TD_STR_ARG(td_buf_str(&where)), span),
        .memory_query =
            td_arena_format(arena,
                            "max by (namespace, pod, container) "
                            "(max_over_time(container_memory_working_set_bytes{%.*s}[%s]))",
                            TD_STR_ARG(td_buf_str(&where)), span),
        .namespace_label = TD_STR("namespace"),
        .pod_label = TD_STR("pod"),
        .container_label = TD_STR("container"),
        .start = sizes->end - sizes->options.window,
        .end = sizes->end,
        .step = TD_RECOMMEND_RESOLUTION,
        .query_timeout = sizes->options.query_timeout,
    };
    sizes->history = td_history_start(&options, &handler, sizes);
}

static void sizes_know(void *context, int code, const struct td_error *err)
{
    struct td_recommend_prometheus *sizes = context;
    if (code != TD_OK) {
        sizes_fail(sizes, code, err);
        return;
    }
    td_timer_set_machine(sizes->next, 0);
}

static void sizes_next(struct td_timer *timer, void *context)
{
    struct td_recommend_prometheus *sizes = context;
    (void)timer;
    if (sizes->is_read) {
        sizes_end(sizes);
    } else {
        sizes_ask_usage(sizes);
    }
}

struct td_recommend_prometheus *
td_recommend_prometheus_start(const struct td_recommend_prometheus_options *options,
                              td_right_sizes_fn fn, void *context)
{
    struct td_recommend_prometheus *sizes = td_alloc_zero(1, sizeof(*sizes));
    td_arena_init(&sizes->arena, TD_UPDATE_ARENA_BYTES_MAX);
    sizes->options = *options;
    sizes->options.namespace = td_arena_copy_str(&sizes->arena, options->namespace);
    sizes->fn = fn;
    sizes->context = context;
    sizes->end = td_clock_wall(td_loop_clock(options->loop));
    const struct td_vertical_config config = td_vertical_config_default();
    sizes->model = td_recommender_new(&config);
    td_map_init(&sizes->workloads, TD_RECOMMENDER_VPAS_MAX);
    td_map_init(&sizes->pods, TD_RECOMMENDER_PODS_MAX);
    sizes->instances.count_max = TD_HISTORY_CONTAINERS_MAX;
    sizes->rows.count_max = TD_CACHE_OBJECTS_MAX;
    sizes->next = td_timer_new(options->loop, sizes_next, sizes);
    const struct td_facts_options facts = {
        .prometheus = options->prometheus,
        .namespace = sizes->options.namespace,
        .end = sizes->end,
        .window = options->window,
        .step = TD_RECOMMEND_RESOLUTION,
        .query_timeout = options->query_timeout,
    };
    sizes->facts = td_facts_start(&facts, sizes_know, sizes);
    return sizes;
}

void td_recommend_prometheus_free(struct td_recommend_prometheus *sizes)
{
    if (!sizes) {
        return;
    }
    td_history_free(sizes->history);
    td_facts_free(sizes->facts);
    td_timer_free(sizes->next);
    for (struct td_map_walk at = {.map = &sizes->workloads}; td_map_step(&at);) {
        struct sizes_workload *workload = at.value;
        td_map_done(&workload->containers);
    }
    td_map_done(&sizes->workloads);
    td_map_done(&sizes->pods);
    td_vec_done(&sizes->instances);
    td_vec_done(&sizes->rows);
    td_recommender_free(sizes->model);
    td_arena_done(&sizes->arena);
    td_free(sizes);
}
