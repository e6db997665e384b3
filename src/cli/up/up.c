/*
 * `tandem up`: a scenario or manifests on a local cluster with the controllers beside it, served
 * on loopback, until q or a signal.
 */
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/json/json.h"
#include "base/limits.h"
#include "base/os/clock.h"
#include "base/os/env.h"
#include "base/os/log.h"
#include "base/os/loop.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/page_flags.h"
#include "cli/run/run_flags.h"
#include "cli/scenario_path.h"
#include "cli/up/up_live.h"
#include "cli/world_flags.h"
#include "kube/quantity/quantity.h"
#include "local/api/transport.h"
#include "local/cluster.h"
#include "local/nodes/node_object.h"
#include "sim/scenario/scenario.h"
#include "sim/world/world.h"
#include "web/web.h"

#define UP_LISTEN "127.0.0.1:6443"
#define UP_PAGE "127.0.0.1:8080"
#define UP_NODES 3
#define UP_SEED 1
#define UP_SPEED_MIN 0.1
#define UP_DAYS_BACK                                                                               \
    28 /* an accelerated clock begins that long ago, so that it stays in the past */
#define UP_SIGNALS 3

static const char up_help[] =
    "start a local cluster: a Kubernetes API server with nodes in this process\n\n"
    "  tandem up examples/shop --speed 60      for example: a day in 24 minutes\n"
    "  tandem up                               an empty cluster, until Ctrl-C\n"
    "  tandem up --data cluster/ --listen 127.0.0.1:7443\n\n"
    "usage: tandem up [OPTIONS] [SCENARIO]\n\n"
    "  SCENARIO              a file, or a folder with a scenario.yaml: nodes,\n"
    "                        workloads, their demand, events (docs/scenario.md)\n"
    "  --speed N             clock speed of the cluster, 0.1 to 10000 (1)\n"
    "  --listen HOST:PORT    address of the API server (" UP_LISTEN ", or a free\n"
    "                        port if that is taken)\n"
    "  --page ADDR|off       address of the page, on loopback (" UP_PAGE ", or the\n"
    "                        next free port)\n"
    "  --price-cpu N         price of a core for a month, for the page\n"
    "  --price-memory N      price of a GiB for a month\n"
    "  --kubeconfig FILE     file for the administrator's kubeconfig, mode 0600\n"
    "                        (tandem.kubeconfig, or SCENARIO-NAME.kubeconfig)\n"
    "  --data DIR            store objects in DIR; acknowledged writes survive a\n"
    "                        crash\n"
    "  --controllers LIST    controllers to run, of recommender, updater, admission,\n"
    "                        horizontal, hvpa, or none (all)\n"
    "  --feature-gates LIST  Name=true,Name=false, as of tandem run\n"
    "  --FLAG VALUE          flags of the controllers, as of tandem run\n"
    "                        (docs/run.md), such as --updater-interval 30s\n"
    "  --address HOST:PORT   serve /metrics and health of the controllers\n"
    "  --nodes N             number of nodes, each with 8 CPUs and 32Gi (3); 0: use\n"
    "                        your own scheduler and kubelets\n"
    "  --seed N              random seed for UIDs, generated names and noise (1, or\n"
    "                        the scenario's)\n"
    "  -q, --quiet           no log lines\n"
    "  -v, --verbose         more log lines\n\n"
    "Keys on a terminal: q quits, ? explains the columns.\n"
    "Guide: docs/local-cluster.md\n";

struct up {
    const char *scenario_path; /* NULL: an empty cluster */
    const char *listen;        /* NULL: the default, with a free port when it is taken */
    const char *kubeconfig;    /* NULL: by the cluster's name */
    const char *data_dir;
    const char *page; /* NULL: the default, with the next free port when it is taken */
    double price_cpu;
    double price_memory;
    double speed;
    int64_t node_count; /* -1: not said */
    struct td_world_flags flags;
    struct td_arena arena; /* for the whole run */
    struct td_scenario scenario;
    struct td_clock clock;
    struct td_log *log;
    struct td_loop *loop;
    struct td_world *world;
    struct td_live *live;
    struct td_web *web; /* NULL: there is no page */
};

/* ---- Options ---- */

static int up_parse_nodes(void *place, const char *value)
{
    int64_t *count = place;
    return td_str_to_int64(td_str_from(value), count) && *count >= 0 && *count <= TD_NODES_OWN_MAX
               ? TD_EXIT_DONE
               : td_command_fail("up: --nodes: '%s': must be an integer from 0 to %d", value,
                                 TD_NODES_OWN_MAX);
}

static int up_parse_speed(void *place, const char *value)
{
    td_auto_arena arena = td_arena_capped(TD_OBJECT_BYTES_MAX);
    double *speed = place;
    struct td_json *number;
    return td_json_parse(&arena, td_str_from(value), NULL, &number, NULL) == TD_OK &&
                   td_json_to_double(number, speed) && *speed >= UP_SPEED_MIN &&
                   *speed <= TD_CLOCK_SPEED_MAX
               ? TD_EXIT_DONE
               : td_command_fail("up: --speed: '%s': must be a number from %g to %g", value,
                                 UP_SPEED_MIN, TD_CLOCK_SPEED_MAX);
}

static const struct td_option up_options[] = {
    TD_OPTION_TEXT("listen", 0, struct up, listen),
    TD_OPTION_TEXT("kubeconfig", 0, struct up, kubeconfig),
    TD_OPTION_TEXT("data", 0, struct up, data_dir),
    TD_OPTION_TEXT("page", 0, struct up, page),
    TD_OPTION("price-cpu", 0, struct up, price_cpu, td_page_parse_price),
    TD_OPTION("price-memory", 0, struct up, price_memory, td_page_parse_price),
    TD_OPTION_TEXT("address", 0, struct up, flags.controllers.address),
    TD_OPTION("nodes", 0, struct up, node_count, up_parse_nodes),
    TD_OPTION("speed", 0, struct up, speed, up_parse_speed),
    TD_WORLD_OPTIONS(struct up, flags),
};

static int up_check_options(const struct up *up, int argc, char **argv)
{
    if (optind < argc) {
        return td_command_fail("up: '%s': tandem up takes one scenario; see 'tandem up --help'",
                               argv[optind]);
    }
    /* What is kept would have been written at times that were never there. */
    if (up->data_dir && up->scenario_path) {
        return td_command_fail(
            "up: --data: '%s': not allowed with a scenario, which starts from scratch each time",
            up->data_dir);
    }
    if (up->data_dir && up->speed != 1) {
        return td_command_fail("up: --data: '%s': only allowed with --speed 1", up->data_dir);
    }
    return -1;
}

/* -1: go on. */
static int up_parse(struct up *up, int argc, char **argv)
{
    const struct td_options options = {"up", up_help, up_options, TD_COUNT(up_options)};
    struct td_error err = TD_ERROR_INIT;
    if (!td_options_is_question(argc, argv) &&
        td_run_flags_extract(&up->arena, &argc, argv, &up->flags.controllers, &err) != TD_OK) {
        return td_command_fail("up: %s", err.message);
    }
    int status = td_options_parse(&options, up, argc, argv);
    if (status >= 0) {
        return status;
    }
    if (optind < argc) {
        up->scenario_path = argv[optind++];
    }
    return up_check_options(up, argc, argv);
}

/* ---- Start ---- */

static int up_load_scenario(struct up *up, struct td_error *err)
{
    if (!up->scenario_path) {
        return TD_OK;
    }
    const char *path = td_scenario_path(&up->arena, up->scenario_path);
    int code = td_scenario_load(&up->arena, path, &up->scenario, err);
    if (code == TD_OK && up->node_count >= 0 && up->scenario.node_count > 0) {
        return td_error_set(err, TD_INVALID, "--nodes: '%lld': not allowed, %s defines its nodes",
                            (long long)up->node_count, path);
    }
    return code;
}

static void up_happened(const struct td_world_event *event, void *context)
{
    struct up *up = context;
    td_live_happened(event, up->live);
    if (up->web) {
        td_web_happened(up->web, event);
    }
}

static td_str up_name(const struct up *up)
{
    return up->scenario_path ? up->scenario.name : TD_STR("tandem");
}

/* Scenarios begin at midnight before a Monday; so that programs which check certificates and ages
 * by the machine's time find nothing in the future, it is one well before now. */
static struct td_clock up_clock(const struct up *up)
{
    struct td_clock real = td_clock_real();
    if (up->speed == 1) {
        return real;
    }
    int64_t day = td_clock_wall(&real) / (24 * TD_HOUR) - UP_DAYS_BACK;
    day -= (day + 3) % 7; /* 1970 began on a Thursday */
    return td_clock_accelerated(up->speed, day * 24 * TD_HOUR);
}

static int up_start(struct up *up, struct td_error *err)
{
    const struct td_node_size nodes =
        td_node_size_usual(up->node_count >= 0 ? up->node_count : UP_NODES);
    struct td_world_options options = {
        .loop = up->loop,
        .log = up->log,
        .scenario = up->scenario_path ? &up->scenario : NULL,
        .listen = up->listen ? up->listen : UP_LISTEN,
        .data_dir = up->data_dir,
        .seed = up->flags.seed,
        .has_seed = up->flags.has_seed,
        .nodes = &nodes,
        .node_size_count = 1,
        .controllers = up->flags.has_controllers ? &up->flags.controllers : NULL,
        .has_no_strategy = !up->flags.controllers.selection_strategy_gate,
        .happened = up_happened,
        .context = up,
    };
    /* Events tell most of it. */
    up->flags.controllers.log = up->flags.level == TD_LOG_DEBUG ? up->log : NULL;
    int code = td_world_new(&options, &up->world, err);
    if (code == TD_IO && !up->listen) {
        options.listen = "127.0.0.1:0";
        code = td_world_new(&options, &up->world, err);
    }
    if (code == TD_OK && !up->kubeconfig) {
        td_str name = up_name(up);
        up->kubeconfig = td_arena_format(&up->arena, "%.*s.kubeconfig", TD_STR_ARG(name)).ptr;
    }
    return code == TD_OK
               ? td_cluster_write_kubeconfig(td_world_cluster(up->world), up->kubeconfig, err)
               : code;
}

/* ---- The page ---- */

static int up_connect(void *context, struct td_transport **ret, struct td_error *err)
{
    struct up *up = context;
    const struct td_transport_local_options options = {
        .api = td_cluster_api(td_world_cluster(up->world)),
        .loop = up->loop,
        .user = TD_STR("system:serviceaccount:kube-system:tandem-page"),
        .group = TD_STR("system:masters"),
        .user_agent = TD_STR("tandem-page"),
    };
    (void)err;
    *ret = td_transport_local_new(&options);
    return TD_OK;
}

static int up_start_page(struct up *up, struct td_error *err)
{
    const struct td_web_options options = {
        .loop = up->loop,
        .log = up->log,
        .listen = up->page ? up->page : UP_PAGE,
        .moves_port = !up->page,
        .title = up_name(up),
        .price_cpu = up->price_cpu,
        .price_memory = up->price_memory,
        .selector_gate = up->flags.controllers.gates.heterogeneous_workloads,
        .connect = up_connect,
        .context = up,
        .world = up->world,
    };
    if (up->page && strcmp(up->page, "off") == 0) {
        return TD_OK;
    }
    int code = td_web_new(&options, &up->web, err);
    return code == TD_OK ? code : td_error_wrap(err, code, "up: --page");
}

/* ---- The greeting ---- */

/* "3 nodes, 24 cores, 96Gi" */
static td_str up_size(struct up *up)
{
    struct td_node_size usual = td_node_size_usual(up->node_count >= 0 ? up->node_count : UP_NODES);
    const struct td_node_size *sizes = up->scenario.node_count > 0 ? up->scenario.nodes : &usual;
    size_t size_count = up->scenario.node_count > 0 ? up->scenario.node_count : 1;
    int64_t count = 0;
    int64_t cpu_milli = 0;
    int64_t memory_bytes = 0;
    for (size_t i = 0; i < size_count; i++) {
        count += sizes[i].count;
        cpu_milli += sizes[i].count * sizes[i].cpu_milli;
        memory_bytes += sizes[i].count * sizes[i].memory_bytes;
    }
    if (count == 0) {
        return TD_STR("no nodes");
    }
    struct td_quantity cpu = td_quantity_new_milli(cpu_milli, TD_QUANTITY_DECIMAL_SI);
    struct td_quantity memory = td_quantity_new(memory_bytes, TD_QUANTITY_BINARY_SI);
    td_str cpu_text = td_quantity_text(&up->arena, &cpu);
    td_str memory_text = td_quantity_text(&up->arena, &memory);
    return td_arena_format(&up->arena, "%lld node%s, %.*s cores, %.*s", (long long)count,
                           TD_PLURAL(count), TD_STR_ARG(cpu_text), TD_STR_ARG(memory_text));
}

static td_str up_greeting(struct up *up)
{
    char directory[TD_PATH_BYTES_MAX];
    bool is_relative = up->kubeconfig[0] != '/' && getcwd(directory, sizeof(directory));
    td_str url = td_cluster_url(td_world_cluster(up->world));
    td_str speed =
        up->speed == 1 ? TD_STR_EMPTY : td_arena_format(&up->arena, ", %gx speed", up->speed);
    td_str size = up_size(up);
    uint64_t seed = up->flags.has_seed  ? up->flags.seed
                    : up->scenario_path ? up->scenario.seed
                                        : UP_SEED;
    const struct td_controllers *controllers = td_world_controllers(up->world);
    unsigned port = controllers ? td_controllers_port(controllers) : 0;
    td_str metrics =
        port > 0 ? td_arena_format(&up->arena, "  metrics    http://127.0.0.1:%u/metrics\n", port)
                 : TD_STR_EMPTY;
    td_str page = up->web ? td_arena_format(&up->arena, "  page       http://127.0.0.1:%u\n",
                                            (unsigned)td_web_port(up->web))
                          : TD_STR_EMPTY;
    return td_arena_format(
        &up->arena,
        "tandem " TANDEM_VERSION ": local cluster \"%.*s\"%s%s (%.*s)%.*s, seed %llu\n"
        "  API        %.*s     export KUBECONFIG=%s%s%s   (kubectl works)\n"
        "%.*s%.*s  stop       %s\n",
        TD_STR_ARG(up_name(up)), up->data_dir ? " in " : "", up->data_dir ? up->data_dir : "",
        TD_STR_ARG(size), TD_STR_ARG(speed), (unsigned long long)seed, TD_STR_ARG(url),
        is_relative ? directory : "", is_relative ? "/" : "", up->kubeconfig, TD_STR_ARG(page),
        TD_STR_ARG(metrics),
        td_live_has_keys(up->live) ? "q or Ctrl-C; ? explains the columns" : "Ctrl-C");
}

/* ---- The run ---- */

static void up_stop(evutil_socket_t signal_number, short what, void *context)
{
    struct td_loop *loop = context;
    (void)signal_number;
    (void)what;
    td_loop_stop(loop);
}

static int up_run(struct up *up, struct td_error *err)
{
    static const int numbers[UP_SIGNALS] = {SIGINT, SIGTERM, SIGHUP};
    struct event *events[UP_SIGNALS] = {NULL};
    int code = TD_OK;
    for (size_t i = 0; i < UP_SIGNALS && code == TD_OK; i++) {
        events[i] = evsignal_new(td_loop_base(up->loop), numbers[i], up_stop, up->loop);
        if (!events[i] || evsignal_add(events[i], NULL) != 0) {
            code = td_error_set(err, TD_IO, "cannot wait for signals");
        }
    }
    code =
        code == TD_OK ? td_live_begin(up->live, up->loop, up->world, up_greeting(up), err) : code;
    code = code == TD_OK ? td_loop_run(up->loop, err) : code;
    td_live_end(up->live);
    for (size_t i = 0; i < UP_SIGNALS; i++) {
        if (events[i]) {
            event_free(events[i]);
        }
    }
    return code;
}

static int up_do(struct up *up)
{
    struct td_error err = TD_ERROR_INIT;
    int code = up_load_scenario(up, &err);
    up->clock = up_clock(up);
    up->live = td_live_new(td_env_get, NULL);
    up->log = td_log_new(&(struct td_log_options){.stream = td_live_log_stream(up->live),
                                                  .clock = &up->clock,
                                                  .level = up->flags.level,
                                                  .format = TD_LOG_TEXT});
    code = code == TD_OK ? td_loop_new(&up->clock, &up->loop, &err) : code;
    code = code == TD_OK ? up_start(up, &err) : code;
    code = code == TD_OK ? up_start_page(up, &err) : code;
    code = code == TD_OK ? up_run(up, &err) : code;
    struct td_web *web = up->web;
    up->web = NULL; /* no page is told what happens from now on */
    td_web_free(web);
    td_world_free(up->world);
    td_loop_free(up->loop);
    td_log_free(up->log);
    td_live_free(up->live);
    return code == TD_OK ? TD_EXIT_DONE : td_command_fail("%s", err.message);
}

int td_command_up(int argc, char **argv)
{
    struct up up = {.speed = 1,
                    .node_count = -1,
                    .flags = {.command = "up",
                              .seed = UP_SEED,
                              .level = TD_LOG_INFO,
                              .has_controllers = true,
                              .controllers = td_controllers_options_default()}};
    td_arena_init(&up.arena, TD_TREE_ARENA_BYTES_MAX);
    int status = up_parse(&up, argc, argv);
    status = status < 0 ? up_do(&up) : status;
    td_arena_done(&up.arena);
    return status;
}
