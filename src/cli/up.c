#include <event2/event.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/str.h"
#include "cli/command.h"
#include "local/cluster.h"
#include "local/node_object.h"

#define UP_LISTEN "127.0.0.1:6443"
#define UP_KUBECONFIG "tandem.kubeconfig"
#define UP_NODES 3

static const char up_help[] =
    "start a local cluster: a Kubernetes API server in this process, nothing to install\n\n"
    "  tandem up                                   for example: in memory, until Ctrl-C\n"
    "  tandem up --data cluster/ --listen 127.0.0.1:7443\n\n"
    "usage: tandem up [OPTIONS]\n\n"
    "  --listen HOST:PORT    address of the API (" UP_LISTEN
    ", or a free port when that is taken)\n"
    "  --kubeconfig FILE     where to write the administrator's kubeconfig, readable by you only\n"
    "                        (" UP_KUBECONFIG ")\n"
    "  --data DIR            keep everything in DIR: what was acknowledged survives a crash\n"
    "  --nodes N             how many nodes it has, each with 8 CPUs and 32Gi (3); with 0 pods\n"
    "                        are left to a scheduler and kubelets of your own\n"
    "  --seed N              of uids and generated names (1)\n"
    "  -q, --quiet           no log lines\n"
    "  -v, --verbose         more of them\n\n"
    "Guide: docs/local-cluster.md\n";

struct up {
    const char *listen; /* NULL: the default, with a free port when it is taken */
    const char *kubeconfig;
    const char *data_dir;
    uint64_t seed;
    size_t node_count;
    enum td_log_level level;
    struct td_clock clock;
    struct td_log *log;
    struct td_loop *loop;
    struct td_cluster *cluster;
};

static int up_parse_seed(struct up *up)
{
    int64_t seed;
    if (!td_str_to_int64(td_str_from(optarg), &seed) || seed < 0) {
        return td_command_fail("up: --seed: '%s': must be a whole number from 0 on", optarg);
    }
    up->seed = (uint64_t)seed;
    return TD_EXIT_DONE;
}

static int up_parse_nodes(struct up *up)
{
    int64_t count;
    if (!td_str_to_int64(td_str_from(optarg), &count) || count < 0 || count > TD_NODES_OWN_MAX) {
        return td_command_fail("up: --nodes: '%s': must be a whole number from 0 to %d", optarg,
                               TD_NODES_OWN_MAX);
    }
    up->node_count = (size_t)count;
    return TD_EXIT_DONE;
}

enum {
    UP_OPTION_LISTEN = 256,
    UP_OPTION_KUBECONFIG,
    UP_OPTION_DATA,
    UP_OPTION_SEED,
    UP_OPTION_NODES
};

/* -1: go on. */
static int up_parse(struct up *up, int argc, char **argv)
{
    static const struct option options[] = {
        {"listen", required_argument, NULL, UP_OPTION_LISTEN},
        {"kubeconfig", required_argument, NULL, UP_OPTION_KUBECONFIG},
        {"data", required_argument, NULL, UP_OPTION_DATA},
        {"seed", required_argument, NULL, UP_OPTION_SEED},
        {"nodes", required_argument, NULL, UP_OPTION_NODES},
        {"quiet", no_argument, NULL, 'q'},
        {"verbose", no_argument, NULL, 'v'},
        {"help", no_argument, NULL, 'h'},
        {0},
    };
    opterr = 0; /* one line of ours instead of getopt's */
    for (int option; (option = getopt_long(argc, argv, ":qvh", options, NULL)) != -1;) {
        switch (option) {
        case UP_OPTION_LISTEN:
            up->listen = optarg;
            break;
        case UP_OPTION_KUBECONFIG:
            up->kubeconfig = optarg;
            break;
        case UP_OPTION_DATA:
            up->data_dir = optarg;
            break;
        case UP_OPTION_SEED:
            if (up_parse_seed(up) != TD_EXIT_DONE) {
                return TD_EXIT_FAILED;
            }
            break;
        case UP_OPTION_NODES:
            if (up_parse_nodes(up) != TD_EXIT_DONE) {
                return TD_EXIT_FAILED;
            }
            break;
        case 'q':
            up->level = TD_LOG_ERROR;
            break;
        case 'v':
            up->level = TD_LOG_DEBUG;
            break;
        case 'h':
            (void)fputs(up_help, stdout); /* checked when standard output is flushed */
            return TD_EXIT_DONE;
        default:
            return td_command_fail(
                "up: %s: unknown option or missing value; see 'tandem up --help'",
                argv[optind - 1]);
        }
    }
    if (optind < argc) {
        return td_command_fail("up: '%s': tandem up takes no arguments; see 'tandem up --help'",
                               argv[optind]);
    }
    return -1;
}

static int up_start(struct up *up, struct td_error *err)
{
    const struct td_node_size nodes = td_node_size_usual((int64_t)up->node_count);
    struct td_cluster_options options = {
        .loop = up->loop,
        .log = up->log,
        .name = TD_STR("tandem"),
        .listen = up->listen ? up->listen : UP_LISTEN,
        .data_dir = up->data_dir,
        .seed = up->seed,
        .nodes = &nodes,
        .node_size_count = 1,
    };
    int code = td_cluster_new(&options, &up->cluster, err);
    if (code == TD_IO && !up->listen) {
        options.listen = "127.0.0.1:0";
        code = td_cluster_new(&options, &up->cluster, err);
    }
    return code == TD_OK ? td_cluster_write_kubeconfig(up->cluster, up->kubeconfig, err) : code;
}

static void up_greet(const struct up *up)
{
    char directory[4096];
    bool is_relative = up->kubeconfig[0] != '/' && getcwd(directory, sizeof(directory));
    td_str url = td_cluster_url(up->cluster);
    (void)printf("tandem " TANDEM_VERSION ": local cluster%s%s\n"
                 "  API        %.*s     export KUBECONFIG=%s%s%s   (kubectl works)\n"
                 "  stop       Ctrl-C\n",
                 up->data_dir ? " in " : " in memory", up->data_dir ? up->data_dir : "",
                 TD_STR_ARG(url), is_relative ? directory : "", is_relative ? "/" : "",
                 up->kubeconfig);
    (void)fflush(stdout); /* a reader of a pipe waits for these lines */
}

static void up_stop(evutil_socket_t signal_number, short what, void *context)
{
    struct td_loop *loop = context;
    (void)signal_number;
    (void)what;
    td_loop_stop(loop);
}

static int up_run(struct up *up, struct td_error *err)
{
    struct event *interrupt = evsignal_new(td_loop_base(up->loop), SIGINT, up_stop, up->loop);
    struct event *terminate = evsignal_new(td_loop_base(up->loop), SIGTERM, up_stop, up->loop);
    int code = TD_OK;
    if (!interrupt || !terminate || evsignal_add(interrupt, NULL) != 0 ||
        evsignal_add(terminate, NULL) != 0) {
        code = td_error_set(err, TD_IO, "cannot wait for signals");
    } else {
        up_greet(up);
        code = td_loop_run(up->loop, err);
    }
    if (interrupt) {
        event_free(interrupt);
    }
    if (terminate) {
        event_free(terminate);
    }
    return code;
}

int td_command_up(int argc, char **argv)
{
    struct up up = {
        .kubeconfig = UP_KUBECONFIG, .seed = 1, .node_count = UP_NODES, .level = TD_LOG_INFO};
    int status = up_parse(&up, argc, argv);
    if (status >= 0) {
        return status;
    }
    struct td_error err = TD_ERROR_INIT;
    up.clock = td_clock_real();
    up.log = td_log_new(&(struct td_log_options){
        .stream = stderr, .clock = &up.clock, .level = up.level, .format = TD_LOG_TEXT});
    int code = td_loop_new(&up.clock, &up.loop, &err);
    if (code == TD_OK) {
        code = up_start(&up, &err);
    }
    if (code == TD_OK) {
        code = up_run(&up, &err);
    }
    td_cluster_free(up.cluster);
    td_loop_free(up.loop);
    td_log_free(up.log);
    return code == TD_OK ? TD_EXIT_DONE : td_command_fail("up: %s", err.message);
}
