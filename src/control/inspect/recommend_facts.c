/*
 * One query after another (the table `queries`), each series read into two maps: owners by kind
 * and name, containers by namespace, pod and name. A counter of restarts that rises is an OOM when
 * the last termination was one.
 */
#include "control/inspect/recommend_facts.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "kube/objectkey.h"

#define FACTS_OOMS_AT_ONCE                                                                         \
    10 /* restarts between two looks that count; more is a broken counter                          \
        */

/* A query around the selector: BEFORE{namespace=...AFTER. %s of AFTER is the window. */
static const struct {
    const char *before;
    const char *after;
    const char *name; /* label with the name of what is owned */
} facts_queries[TD_FACT_COUNT] = {
    [TD_FACT_POD_OWNERS] = {"max by (namespace, pod, owner_kind, owner_name) "
                            "(max_over_time(kube_pod_owner{",
                            ",owner_is_controller=\"true\"}[%s]))", "pod"},
    [TD_FACT_REPLICA_SET_OWNERS] = {"max by (namespace, replicaset, owner_kind, owner_name) "
                                    "(max_over_time(kube_replicaset_owner{",
                                    "}[%s]))", "replicaset"},
    [TD_FACT_JOB_OWNERS] = {"max by (namespace, job_name, owner_kind, owner_name) "
                            "(max_over_time(kube_job_owner{",
                            "}[%s]))", "job_name"},
    [TD_FACT_REQUESTS] = {"max by (namespace, pod, container, resource) "
                          "(last_over_time(kube_pod_container_resource_requests{",
                          ",resource=~\"cpu|memory\"}[%s]))", NULL},
    [TD_FACT_LIMITS] = {"max by (namespace, pod, container, resource) "
                        "(last_over_time(kube_pod_container_resource_limits{",
                        ",resource=~\"cpu|memory\"}[%s]))", NULL},
    [TD_FACT_RUNNING] = {"max by (namespace, pod, container) (container_memory_working_set_bytes{",
                         ",container!=\"\",container!=\"POD\"})", NULL},
    /* Restarts while the last end was an OOM: each more is one more. */
    [TD_FACT_OOMS] = {"max by (namespace, pod, container) "
                      "(kube_pod_container_status_restarts_total{",
                      "})", NULL},
};

struct td_facts {
    struct td_facts_options options;
    td_facts_fn done;
    void *context;
    struct td_arena arena;
    struct td_map owners;     /* digit of the fact, namespace, name */
    struct td_map containers; /* "namespace\npod\ncontainer" */
    struct {
        TD_VEC_FIELDS(struct td_fact_oom);
    } ooms;
    size_t counts[TD_FACT_COUNT];
    enum td_fact fact; /* being asked for */
    struct td_prometheus_call *call;
    /* Of the series that is read. */
    struct td_fact_container *container;
    bool is_cpu;
    struct td_fact_oom oom;
    double restarts; /* of the point before; below 0: there was none */
};

/* ---- Facts ---- */

static td_str facts_label(const struct td_labels *labels, const char *name)
{
    const td_str *value = td_labels_get(labels, td_str_from(name));
    return value ? *value : TD_STR_EMPTY;
}

static td_str facts_owner_key(char buffer[TD_OBJECT_KEY_BYTES_MAX], enum td_fact fact,
                              td_str namespace, td_str name)
{
    const char number[] = {(char)('0' + (int)fact)};
    return TD_KEY_LINES(buffer, (td_str){.ptr = number, .len = 1}, namespace, name);
}

static void facts_add_owner(struct td_facts *facts, const struct td_labels *labels)
{
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    td_str key = facts_owner_key(buffer, facts->fact, facts_label(labels, "namespace"),
                                 facts_label(labels, facts_queries[facts->fact].name));
    td_str kind = facts_label(labels, "owner_kind");
    td_str name = facts_label(labels, "owner_name");
    /* kube-state-metrics says "<none>" of what has no owner. */
    if (kind.len == 0 || name.len == 0 || kind.ptr[0] == '<' || td_map_has(&facts->owners, key)) {
        return;
    }
    struct td_fact_owner *owner = td_arena_new(&facts->arena, struct td_fact_owner);
    owner->kind = td_arena_copy_str(&facts->arena, kind);
    owner->name = td_arena_copy_str(&facts->arena, name);
    /* Past the cap it has none. */
    (void)td_map_put(&facts->owners, td_arena_copy_str(&facts->arena, key), owner);
}

static struct td_fact_container *facts_add_container(struct td_facts *facts,
                                                     const struct td_labels *labels)
{
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    td_str key = TD_KEY_LINES(buffer, facts_label(labels, "namespace"), facts_label(labels, "pod"),
                              facts_label(labels, "container"));
    struct td_fact_container *container = td_map_get(&facts->containers, key);
    if (!container) {
        container = td_arena_new(&facts->arena, struct td_fact_container);
        *container = (struct td_fact_container){.requests = {-1, -1}, .limits = {-1, -1}};
        if (td_map_put(&facts->containers, td_arena_copy_str(&facts->arena, key), container) !=
            TD_OK) {
            return NULL;
        }
    }
    return container;
}

static bool facts_series(void *context, const struct td_labels *labels)
{
    struct td_facts *facts = context;
    facts->counts[facts->fact]++;
    facts->container = NULL;
    switch (facts->fact) {
    case TD_FACT_POD_OWNERS:
    case TD_FACT_REPLICA_SET_OWNERS:
    case TD_FACT_JOB_OWNERS:
        facts_add_owner(facts, labels);
        return false;
    case TD_FACT_REQUESTS:
    case TD_FACT_LIMITS:
    case TD_FACT_RUNNING:
        facts->is_cpu = td_str_equal(facts_label(labels, "resource"), TD_STR("cpu"));
        facts->container = facts_add_container(facts, labels);
        return facts->container != NULL;
    default:
        facts->restarts = -1;
        facts->oom = (struct td_fact_oom){
            .namespace = td_arena_copy_str(&facts->arena, facts_label(labels, "namespace")),
            .pod = td_arena_copy_str(&facts->arena, facts_label(labels, "pod")),
            .container = td_arena_copy_str(&facts->arena, facts_label(labels, "container")),
        };
        return true;
    }
}

/* A count of restarts at a time when the last of them was by OOM. One that is there from the first
 * look on may be older than the window. */
static void facts_restarts(struct td_facts *facts, td_time time, double value)
{
    const struct td_facts_options *options = &facts->options;
    bool is_first = facts->restarts < 0;
    bool is_old = is_first && time < options->end - options->window + options->step;
    double more = is_first ? (is_old ? 0 : 1) : value - facts->restarts;
    facts->restarts = value >= 0 ? value : 0;
    more = more < FACTS_OOMS_AT_ONCE ? more : FACTS_OOMS_AT_ONCE;
    for (double i = 0; i < more; i++) {
        struct td_fact_oom *place = td_vec_push(&facts->ooms);
        if (place) { /* past the cap one more changes nothing */
            *place = facts->oom;
            place->time = time;
        }
    }
}

static int facts_point(void *context, td_time time, double value, struct td_error *err)
{
    struct td_facts *facts = context;
    (void)err;
    if (facts->fact == TD_FACT_OOMS) {
        facts_restarts(facts, time, value);
    } else if (facts->fact == TD_FACT_RUNNING) {
        facts->container->is_running = true;
    } else {
        double *amounts =
            facts->fact == TD_FACT_REQUESTS ? facts->container->requests : facts->container->limits;
        amounts[facts->is_cpu ? 0 : 1] = value;
    }
    return TD_OK;
}

/* ---- Queries ---- */

static void facts_ask(struct td_facts *facts);

static int facts_compare_ooms(const void *a, const void *b)
{
    const struct td_fact_oom *x = a;
    const struct td_fact_oom *y = b;
    return x->time < y->time ? -1 : x->time > y->time;
}

static void facts_answered(void *context, int code, const struct td_error *err)
{
    struct td_facts *facts = context;
    facts->call = NULL;
    struct td_error full = TD_ERROR_INIT;
    if (code == TD_OK) {
        code = td_arena_check(&facts->arena, &full);
    }
    if (code == TD_OK && facts->fact + 1 < TD_FACT_COUNT) {
        facts->fact++;
        facts_ask(facts);
        return;
    }
    if (facts->ooms.count > 0) {
        qsort(facts->ooms.items, facts->ooms.count, sizeof(*facts->ooms.items), facts_compare_ooms);
    }
    facts->done(facts->context, code, full.code != TD_OK ? &full : err);
}

static void facts_write_query(const struct td_facts *facts, struct td_buf *out)
{
    td_auto_buf where;
    td_buf_init(&where, TD_PROMETHEUS_QUERY_BYTES_MAX);
    if (facts->options.namespace.len > 0) {
        (void)td_buf_append(&where, TD_STR("namespace="));
        td_prometheus_quote(facts->options.namespace, &where);
    } else {
        (void)td_buf_append(&where, TD_STR("namespace!=\"\""));
    }
    char window[TD_PROMETHEUS_SPAN_BYTES];
    td_prometheus_span(facts->options.window, window);
    (void)td_buf_append_format(out, "%s%.*s", facts_queries[facts->fact].before,
                               TD_STR_ARG(td_buf_str(&where)));
    td_str after = td_str_from(facts_queries[facts->fact].after);
    size_t mark = td_str_find(after, '%', 0);
    (void)td_buf_append(out, td_str_slice(after, 0, mark));
    if (mark < after.len) {
        (void)td_buf_append(out, td_str_from(window));
        (void)td_buf_append(out, td_str_slice(after, mark + 2, after.len));
    }
    if (facts->fact == TD_FACT_OOMS) {
        (void)td_buf_append_format(out,
                                   " and on (namespace, pod, container) "
                                   "(kube_pod_container_status_last_terminated_reason{%.*s,"
                                   "reason=\"OOMKilled\"} == 1)",
                                   TD_STR_ARG(td_buf_str(&where)));
    }
}

static void facts_ask(struct td_facts *facts)
{
    static const struct td_prometheus_events events = {
        .series = {.series = facts_series, .point = facts_point}, .done = facts_answered};
    const struct td_facts_options *options = &facts->options;
    td_auto_buf text;
    td_buf_init(&text, TD_PROMETHEUS_QUERY_BYTES_MAX);
    facts_write_query(facts, &text);
    bool is_range = facts->fact == TD_FACT_OOMS;
    const struct td_prometheus_query query = {
        .text = td_buf_str(&text),
        .at = is_range ? options->end - options->window : options->end,
        .end = options->end,
        .step = is_range ? options->step : 0,
        .timeout = options->query_timeout,
    };
    facts->call = td_prometheus_ask(options->prometheus, &query, &events, facts);
}

/* ---- The whole ---- */

struct td_facts *td_facts_start(const struct td_facts_options *options, td_facts_fn done,
                                void *context)
{
    struct td_facts *facts = td_alloc_zero(1, sizeof(*facts));
    td_arena_init(&facts->arena, TD_TREE_ARENA_BYTES_MAX);
    facts->options = *options;
    facts->options.namespace = td_arena_copy_str(&facts->arena, options->namespace);
    facts->done = done;
    facts->context = context;
    td_map_init(&facts->owners, TD_HISTORY_CONTAINERS_MAX);
    td_map_init(&facts->containers, TD_HISTORY_CONTAINERS_MAX);
    facts->ooms.count_max = TD_FACTS_OOMS_MAX;
    facts_ask(facts);
    return facts;
}

void td_facts_free(struct td_facts *facts)
{
    if (!facts) {
        return;
    }
    if (facts->call) {
        td_prometheus_cancel(facts->call);
    }
    td_vec_done(&facts->ooms);
    td_map_done(&facts->owners);
    td_map_done(&facts->containers);
    td_arena_done(&facts->arena);
    td_free(facts);
}

size_t td_facts_count(const struct td_facts *facts, enum td_fact fact)
{
    return facts->counts[fact];
}

const struct td_fact_owner *td_facts_owner(const struct td_facts *facts, enum td_fact fact,
                                           td_str namespace, td_str name)
{
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    return td_map_get(&facts->owners, facts_owner_key(buffer, fact, namespace, name));
}

const struct td_fact_container *td_facts_container(const struct td_facts *facts, td_str namespace,
                                                   td_str pod, td_str container)
{
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    return td_map_get(&facts->containers, TD_KEY_LINES(buffer, namespace, pod, container));
}

const struct td_fact_oom *td_facts_ooms(const struct td_facts *facts, size_t *ret_count)
{
    *ret_count = facts->ooms.count;
    return facts->ooms.items;
}
