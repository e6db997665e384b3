/* Puts the parts together in the order they need each other, and takes them apart in reverse. */
#include "local/cluster.h"

#include <openssl/ssl.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/os/clock.h"
#include "base/os/loop.h"
#include "local/api/api.h"
#include "local/api/serve.h"
#include "local/auth/auth.h"
#include "local/auth/identity.h"
#include "local/controllers/disruption.h"
#include "local/controllers/expiry.h"
#include "local/controllers/gc.h"
#include "local/controllers/namespaces.h"
#include "local/engine/engine.h"
#include "local/engine/measures.h"
#include "local/kinds/crds.h"
#include "local/nodes/nodes.h"
#include "local/store/store.h"
#include "local/system.h"
#include "local/workloads/workloads.h"

/* Between two looks at what containers want: as often as metrics tell of it. What jumps, starts,
 * ends or is resized is exact whatever this is; only smooth shapes are taken in pieces of it. */
#define CLUSTER_TICK (15 * TD_SECOND)

struct td_cluster {
    struct td_arena arena; /* of texts */
    td_str name;
    td_str url;
    struct td_identity identity;
    struct td_engine *engine;
    struct td_measures measures;
    struct td_store *store;
    struct td_auth *auth;
    struct td_api *api;
    struct td_crds *crds;
    struct td_gc *gc;
    struct td_expiry *expiry;
    struct td_namespaces *namespaces;
    struct td_workloads *workloads;
    struct td_disruption *disruption;
    struct td_nodes *nodes;
    struct td_serve *serve;
};

/* The host of "host:port", without brackets. */
static td_str cluster_host(td_str listen)
{
    size_t colon = listen.len;
    while (colon > 0 && listen.ptr[colon - 1] != ':') {
        colon--;
    }
    td_str host = td_str_slice(listen, 0, colon > 0 ? colon - 1 : 0);
    return td_str_starts_with(host, TD_STR("[")) ? td_str_slice(host, 1, host.len - 1) : host;
}

static int cluster_start_api(struct td_cluster *cluster, const struct td_cluster_options *options,
                             struct td_error *err)
{
    const struct td_store_options store = {.data_dir = options->data_dir, .log = options->log};
    int code = td_store_new(options->loop, &store, &cluster->store, err);
    if (code != TD_OK) {
        return code;
    }
    cluster->measures = (struct td_measures){
        .engine = cluster->engine,
        .items = options->measures,
        .count = options->measure_count,
        .demands = options->demands,
        .demand_count = options->demand_count,
    };
    struct td_clock real = td_clock_real(); /* certificates are checked by other programs' clocks */
    code = td_identity_load(&cluster->identity, options->data_dir,
                            options->listen ? cluster_host(td_str_from(options->listen))
                                            : TD_STR("127.0.0.1"),
                            td_time_to_instant(td_clock_wall(&real)), err);
    if (code != TD_OK) {
        return code;
    }
    const struct td_auth_options auth = {
        .store = cluster->store,
        .clock = td_loop_clock(options->loop),
        .token_key = td_buf_str(&cluster->identity.token_key),
    };
    cluster->auth = td_auth_new(&auth);
    const struct td_api_options api = {
        .loop = options->loop,
        .store = cluster->store,
        .auth = cluster->auth,
        .seed = options->seed,
        .faults = options->faults,
        .measures = &cluster->measures,
        .has_no_strategy = options->has_no_strategy,
    };
    code = td_api_new(&api, &cluster->api, err);
    if (code == TD_OK) {
        code = td_crds_new(cluster->api, options->log, &cluster->crds, err);
    }
    if (code == TD_OK) {
        cluster->gc = td_gc_new(cluster->api, options->log);
        cluster->expiry = td_expiry_new(cluster->api);
        cluster->namespaces = td_namespaces_new(cluster->api, options->log,
                                                td_buf_str(&cluster->identity.ca.certificate_pem));
        cluster->workloads = td_workloads_new(cluster->api, options->log);
        cluster->disruption = td_disruption_new(cluster->api, options->log);
    }
    if (code == TD_OK) {
        code = td_system_install(cluster->api, err);
    }
    const struct td_nodes_options nodes = {
        .api = cluster->api,
        .log = options->log,
        .sizes = options->nodes,
        .size_count = options->node_size_count,
        .engine = cluster->engine,
    };
    return code == TD_OK ? td_nodes_new(&nodes, &cluster->nodes, err) : code;
}

static int cluster_start_server(struct td_cluster *cluster,
                                const struct td_cluster_options *options, struct td_error *err)
{
    struct ssl_ctx_st *tls;
    int code = td_identity_tls(&cluster->identity, &tls, err);
    if (code != TD_OK) {
        return code;
    }
    const struct td_serve_options serve = {
        .loop = options->loop,
        .api = cluster->api,
        .auth = cluster->auth,
        .address = options->listen,
        .tls = tls,
    };
    code = td_serve_new(&serve, &cluster->serve, err);
    SSL_CTX_free(tls);
    if (code != TD_OK) {
        return code;
    }
    td_str host = cluster_host(td_str_from(options->listen));
    bool is_six = td_str_find(host, ':', 0) < host.len;
    cluster->url =
        td_arena_format(&cluster->arena, "https://%s%.*s%s:%u", is_six ? "[" : "", TD_STR_ARG(host),
                        is_six ? "]" : "", (unsigned)td_serve_port(cluster->serve));
    return TD_OK;
}

int td_cluster_new(const struct td_cluster_options *options, struct td_cluster **ret,
                   struct td_error *err)
{
    struct td_cluster *cluster = td_alloc_zero(1, sizeof(*cluster));
    td_arena_init(&cluster->arena, TD_TREE_ARENA_BYTES_MAX);
    td_identity_init(&cluster->identity);
    cluster->name = td_arena_copy_str(&cluster->arena, options->name);
    td_duration every = options->metrics_every;
    const struct td_engine_options engine = {
        .loop = options->loop,
        .tick = every > 0 && every < CLUSTER_TICK ? every : CLUSTER_TICK,
        .demands = options->demands,
        .demand_count = options->demand_count,
        .metrics_every = options->metrics_every,
        .metrics_lag = options->metrics_lag,
    };
    cluster->engine = td_engine_new(&engine);
    int code = cluster_start_api(cluster, options, err);
    if (code == TD_OK && options->listen) {
        code = cluster_start_server(cluster, options, err);
    }
    if (code != TD_OK) {
        td_cluster_free(cluster);
        return code;
    }
    *ret = cluster;
    return TD_OK;
}

void td_cluster_free(struct td_cluster *cluster)
{
    if (!cluster) {
        return;
    }
    td_serve_free(cluster->serve);
    td_nodes_free(cluster->nodes);
    td_disruption_free(cluster->disruption);
    td_namespaces_free(cluster->namespaces);
    td_expiry_free(cluster->expiry);
    td_workloads_free(cluster->workloads);
    td_gc_free(cluster->gc);
    td_crds_free(cluster->crds);
    td_api_free(cluster->api);
    td_engine_free(cluster->engine);
    td_auth_free(cluster->auth);
    td_store_free(cluster->store);
    td_identity_done(&cluster->identity);
    td_arena_done(&cluster->arena);
    td_free(cluster);
}

td_str td_cluster_url(const struct td_cluster *cluster)
{
    return cluster->url;
}

int td_cluster_write_kubeconfig(const struct td_cluster *cluster, const char *path,
                                struct td_error *err)
{
    return td_identity_write_kubeconfig(&cluster->identity, path, cluster->name, cluster->url, err);
}

struct td_api *td_cluster_api(struct td_cluster *cluster)
{
    return cluster->api;
}

struct td_engine *td_cluster_engine(struct td_cluster *cluster)
{
    return cluster->engine;
}

int td_cluster_lose_node(struct td_cluster *cluster, td_str node, bool is_lost,
                         struct td_error *err)
{
    return td_nodes_lose(cluster->nodes, node, is_lost, err);
}
