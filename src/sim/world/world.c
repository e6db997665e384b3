/*
 * Puts a world together, in this order: cluster, engine, controllers, index of what there is,
 * manifests, events. Takes it apart in the reverse order.
 */
#include "sim/world/world.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "control/controllers.h"
#include "local/api/transport.h"
#include "local/cluster.h"
#include "sim/world/world_private.h"

/* How the manifests fared. */
struct world_outcome {
    bool is_over;
    bool is_running; /* the loop runs until they are applied */
    int code;
    struct td_error err;
};

static int world_start_cluster(struct td_world *world, const struct td_world_options *options,
                               struct td_error *err)
{
    const struct td_scenario *scenario = world->scenario;
    bool has_nodes = scenario && scenario->node_count > 0;
    const struct td_cluster_options cluster = {
        .loop = options->loop,
        .log = options->log,
        .name = scenario ? scenario->name : TD_STR("tandem"),
        .listen = options->listen,
        .data_dir = options->data_dir,
        .seed = scenario ? scenario->seed : options->seed,
        .nodes = has_nodes ? scenario->nodes : options->nodes,
        .node_size_count = has_nodes ? scenario->node_count : options->node_size_count,
        .demands = scenario ? scenario->demands : NULL,
        .demand_count = scenario ? scenario->demand_count : 0,
        .measures = scenario ? scenario->metrics : NULL,
        .measure_count = scenario ? scenario->metric_count : 0,
        .metrics_every = scenario ? scenario->metrics_every : 0,
        .metrics_lag = scenario ? scenario->metrics_lag : 0,
        .faults = &world->faults,
        .has_no_strategy = options->has_no_strategy,
    };
    int code = td_cluster_new(&cluster, &world->cluster, err);
    if (code == TD_OK) {
        world->api = td_cluster_api(world->cluster);
        world->engine = td_cluster_engine(world->cluster);
    }
    return code;
}

static void world_applied(struct td_world *world, size_t tag, int code, const struct td_error *err)
{
    struct world_outcome *outcome = world->outcome;
    (void)tag;
    outcome->is_over = true;
    outcome->code = code;
    if (code != TD_OK) {
        outcome->err = *err;
    }
    if (outcome->is_running) {
        td_loop_stop(world->loop);
    }
}

/* The namespace of demand targets, in front of what the files have: applied, it is there either
 * way. */
static void world_add_namespace(struct td_arena *arena, const struct td_scenario *scenario,
                                struct td_manifest *manifest)
{
    struct td_json *object = td_json_new_object(arena);
    struct td_json *metadata = td_json_new_object(arena);
    td_json_set_str(arena, object, TD_STR("apiVersion"), TD_STR("v1"));
    td_json_set_str(arena, object, TD_STR("kind"), TD_STR("Namespace"));
    td_json_set_str(arena, metadata, TD_STR("name"), scenario->ns);
    td_json_set(arena, object, TD_STR("metadata"), metadata);
    manifest->items = td_arena_grow(arena, manifest->items, manifest->count, &manifest->cap,
                                    sizeof(manifest->items[0]));
    manifest->items[manifest->count++] = (struct td_manifest_object){
        .tree = object,
        .file = scenario->path,
        .line = 1,
        .api_version = TD_STR("v1"),
        .kind = TD_STR("Namespace"),
        .name = scenario->ns,
    };
}

/* Brings the manifests into the cluster. Most answers are there at once; for those that are not,
 * the loop runs until they are. */
static int world_bring(struct td_world *world, struct td_error *err)
{
    const struct td_scenario *scenario = world->scenario;
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_manifest manifest = {.count = 0};
    int code = TD_OK;
    if (!td_str_equal(scenario->ns, TD_STR("default"))) {
        world_add_namespace(&arena, scenario, &manifest);
    }
    for (size_t i = 0; code == TD_OK && i < scenario->manifest_count; i++) {
        code = td_world_read_manifest(&arena, scenario->manifests[i], &manifest, err);
        if (code < 0 && code != TD_INVALID) { /* else the file has named itself and a line */
            return td_error_wrap(err, code, "%.*s: spec.manifests[%zu]", TD_STR_ARG(scenario->path),
                                 i);
        }
    }
    if (code < 0) {
        return code;
    }
    struct world_outcome outcome = {.is_over = false};
    world->outcome = &outcome;
    td_world_apply(world, &manifest, 0, world_applied);
    if (!outcome.is_over) {
        outcome.is_running = true;
        code = td_loop_run(world->loop, err);
    }
    td_world_calls_done(world); /* of a loop that was stopped from outside */
    world->outcome = NULL;
    if (code == TD_OK && !outcome.is_over) {
        return td_error_set(err, TD_TIMEOUT, "stopped before the manifests were applied");
    }
    if (code == TD_OK && outcome.code != TD_OK && err) {
        *err = outcome.err;
    }
    return code == TD_OK ? outcome.code : code;
}

static void world_review(void *context, td_str review, struct td_buf *answer)
{
    td_webhook_review(context, review, answer);
}

/* The autoscalers, as clients of the cluster like any other. */
static int world_start_controllers(struct td_world *world, const struct td_world_options *options,
                                   struct td_error *err)
{
    struct td_controllers_options controllers = *options->controllers;
    const struct td_transport_local_options transport = {
        .api = world->api,
        .loop = world->loop,
        .user = TD_STR("system:serviceaccount:kube-system:tandem"),
        .group = TD_STR("system:masters"),
        .user_agent = TD_STR("tandem"),
    };
    controllers.loop = world->loop;
    controllers.transport = td_transport_local_new(&transport);
    controllers.seed = world->scenario ? world->scenario->seed : options->seed;
    controllers.horizontal.serves_builtin = true;
    controllers.horizontal.is_alone = true;
    controllers.webhook.listen = NULL;
    int code = td_controllers_new(&controllers, &world->controllers, err);
    if (code != TD_OK) {
        return code;
    }
    struct td_webhook *webhook = td_controllers_webhook(world->controllers);
    if (webhook) {
        td_api_answer_reviews(world->api, td_webhook_url(webhook), world_review, webhook);
    }
    td_controllers_start(world->controllers);
    return TD_OK;
}

static int world_start(struct td_world *world, const struct td_world_options *options,
                       struct td_error *err)
{
    const struct td_scenario *scenario = world->scenario;
    world->flows =
        td_arena_array(&world->arena, struct td_world_flow, scenario ? scenario->demand_count : 0);
    int code = td_world_events_load(world, err);
    if (code == TD_OK) {
        code = world_start_cluster(world, options, err);
    }
    if (code != TD_OK) {
        return code;
    }
    td_world_index_start(world);
    if (scenario) {
        code = world_bring(world, err);
    }
    if (code == TD_OK) {
        code = td_world_check_targets(world, err);
    }
    if (code == TD_OK && options->controllers) {
        code = world_start_controllers(world, options, err);
    }
    if (code == TD_OK) {
        td_world_events_start(world);
        td_world_rows_start(world);
    }
    return code;
}

int td_world_new(const struct td_world_options *options, struct td_world **ret,
                 struct td_error *err)
{
    struct td_world *world = td_alloc_zero(1, sizeof(*world));
    world->loop = options->loop;
    world->log = options->log;
    world->happened = options->happened;
    world->context = options->context;
    world->hvpa_gate = !options->controllers || options->controllers->hvpa_gate;
    world->selector_gate =
        !options->controllers || options->controllers->gates.heterogeneous_workloads;
    td_arena_init(&world->arena, TD_TREE_ARENA_BYTES_MAX);
    if (options->scenario) {
        world->own_scenario = *options->scenario;
        world->scenario = &world->own_scenario;
    }
    if (world->scenario && options->has_seed) {
        td_scenario_set_seed(&world->arena, &world->own_scenario, options->seed);
    }
    int code = world_start(world, options, err);
    if (code != TD_OK) {
        td_world_free(world);
        return code;
    }
    *ret = world;
    return TD_OK;
}

void td_world_free(struct td_world *world)
{
    if (!world) {
        return;
    }
    if (world->controllers) {
        td_api_answer_reviews(world->api, TD_STR_EMPTY, NULL, NULL);
        td_controllers_free(world->controllers);
    }
    td_world_rows_done(world);
    td_world_events_done(world);
    td_world_calls_done(world);
    td_world_index_done(world);
    td_cluster_free(world->cluster);
    td_arena_done(&world->arena);
    td_free(world);
}

struct td_controllers *td_world_controllers(struct td_world *world)
{
    return world->controllers;
}

struct td_cluster *td_world_cluster(struct td_world *world)
{
    return world->cluster;
}
