#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/os/env.h"
#include "base/os/file.h"
#include "base/os/loop.h"
#include "base/yaml/yaml.h"
#include "cli/command.h"
#include "cli/connect.h"
#include "cli/output.h"
#include "control/inspect/recommend_once.h"
#include "control/recommender/recommend_prometheus.h"
#include "sim/scenario/scenario.h"

#define RECOMMEND_WINDOW (14 * 24 * TD_HOUR)
#define RECOMMEND_WINDOW_MIN TD_HOUR
#define RECOMMEND_WINDOW_MAX (90 * 24 * TD_HOUR)
#define RECOMMEND_QUERY_TIMEOUT (5 * TD_MINUTE)
#define RECOMMEND_BAR_AFTER (2 * TD_SECOND)
#define RECOMMEND_BAR_WIDTH 20

static const char recommend_help[] =
    "right sizes of every container of a cluster, once; nothing is installed or written\n\n"
    "  tandem recommend -n shop                          for example\n"
    "  tandem recommend --from prometheus http://127.0.0.1:9090 --window 14d\n"
    "  tandem recommend --output yaml > sizes.yaml       to read, and then:\n"
    "      kubectl apply --server-side --force-conflicts --field-manager=tandem-recommend -f "
    "sizes.yaml\n\n"
    "usage: tandem recommend [FLAGS]\n"
    "       tandem recommend --from prometheus URL [FLAGS]\n\n"
    "  -n, --namespace NAMESPACE        one namespace (all of them)\n"
    "  -o, --output table|json|yaml     yaml: the workloads that no VPA or Hvpa sizes, with the\n"
    "                                   requests that they should have\n"
    "  --kubeconfig FILE                where the cluster is ($KUBECONFIG, ~/.kube/config, or the "
    "pod's\n"
    "                                   own)\n"
    "  --context NAME                   another context than the current one\n"
    "  --feature-gates LIST             as tandem run was given them\n"
    "  --window SPAN                    how far back Prometheus is asked (14d)\n"
    "  --prometheus-bearer-token-file F for Prometheus; else $PROMETHEUS_USERNAME and _PASSWORD\n"
    "  --prometheus-insecure            its certificate is not verified\n\n"
    "From a cluster: where a VPA has learnt, its checkpoints count; elsewhere only what is "
    "measured at\nthis moment. From Prometheus: its history, and no cluster is asked.\n"
    "Exit status: 0 done, 2 the cluster or Prometheus cannot be read. Guide: docs/explain.md\n";

struct recommend {
    struct td_connect connect;
    const char *namespace;
    enum td_output output;
    struct td_recommend_once *once;
    /* From Prometheus. */
    const char *url; /* NULL: from the cluster */
    bool is_from_prometheus;
    td_duration window;
    const char *token_file;
    bool is_insecure;
    const char *first_prometheus; /* the first flag that only Prometheus has; NULL: none */
    struct td_arena arena;
    struct td_clock clock;
    struct td_loop *loop;
    struct td_prometheus *prometheus;
    struct td_recommend_prometheus *sizes;
    td_duration began;
    bool has_bar;
    int status;
};

static int recommend_print_yaml(const struct td_right_sizes *sizes)
{
    td_auto_arena arena;
    td_auto_buf text;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    td_buf_init(&text, TD_TREE_ARENA_BYTES_MAX);
    struct td_error err = TD_ERROR_INIT;
    const struct td_json *list = td_right_sizes_patches(&arena, sizes);
    for (const struct td_json *object = td_json_first_item(list); object; object = object->next) {
        (void)td_buf_append(&text, TD_STR("---\n"));
        td_yaml_write(object, &text);
    }
    if (td_buf_check(&text, "the report", &err) < 0) {
        return td_command_fail("recommend: %s", err.message);
    }
    if (sizes->trouble.len > 0) {
        (void)fprintf(stderr, "tandem: recommend: %.*s\n", TD_STR_ARG(sizes->trouble));
    }
    (void)fwrite(td_buf_str(&text).ptr, 1, text.len, stdout); /* main looks at the stream's state */
    return TD_EXIT_DONE;
}

static int recommend_print_table(const struct td_right_sizes *sizes)
{
    td_auto_buf text;
    td_buf_init(&text, TD_TREE_ARENA_BYTES_MAX);
    struct td_error err = TD_ERROR_INIT;
    td_right_sizes_write(sizes, &text);
    if (td_buf_check(&text, "the report", &err) < 0) {
        return td_command_fail("recommend: %s", err.message);
    }
    (void)fwrite(text.ptr, 1, text.len, stdout); /* main looks at the stream's state */
    return TD_EXIT_DONE;
}

static int recommend_print(const struct recommend *run, const struct td_right_sizes *sizes)
{
    if (sizes->code != TD_OK) {
        return td_command_fail("recommend: %s", sizes->err.message);
    }
    if (run->output == TD_OUTPUT_TABLE) {
        return recommend_print_table(sizes);
    }
    if (run->output == TD_OUTPUT_YAML) {
        return recommend_print_yaml(sizes);
    }
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    return td_output_print(td_right_sizes_json(&arena, sizes), TD_OUTPUT_JSON);
}

static void recommend_told(void *context, const struct td_right_sizes *sizes)
{
    struct recommend *run = context;
    td_connect_end(&run->connect, recommend_print(run, sizes));
}

static void recommend_seen(void *context)
{
    struct recommend *run = context;
    run->once = td_recommend_once_start(run->connect.glance, td_str_from(run->namespace),
                                        recommend_told, run);
}

/* ---- From Prometheus ---- */

static void recommend_clear_bar(struct recommend *run)
{
    if (run->has_bar) {
        (void)fputs("\r\033[K", stderr); /* a bar that cannot be drawn is no failure */
    }
    run->has_bar = false;
}

/* Long work only, on a terminal only. */
static void recommend_progress(void *context, const struct td_history_counts *counts)
{
    struct recommend *run = context;
    td_duration passed = td_clock_steady(&run->clock) - run->began;
    if (passed < RECOMMEND_BAR_AFTER || !isatty(STDERR_FILENO)) {
        return;
    }
    double share = (double)counts->steps_done / (double)counts->steps;
    double rate = (double)td_prometheus_bytes(run->prometheus) * (double)TD_SECOND / (double)passed;
    run->has_bar = true;
    (void)fprintf(stderr, "\rreading %zu containers ", counts->containers); /* the same */
    for (int i = 0; i < RECOMMEND_BAR_WIDTH; i++) {
        (void)fputs(i < (int)(share * RECOMMEND_BAR_WIDTH) ? "█" : "░", stderr);
    }
    (void)fprintf(stderr, " %3.0f%%  %.1f MiB/s \033[K", share * 100, rate / (1 << 20));
}

static void recommend_sized(void *context, const struct td_right_sizes *sizes)
{
    struct recommend *run = context;
    recommend_clear_bar(run);
    run->status = recommend_print(run, sizes);
    td_loop_stop(run->loop);
}

static int recommend_ask(struct recommend *run, struct td_error *err)
{
    struct td_prometheus_options options = {
        .address = td_str_from(run->url),
        .is_insecure = run->is_insecure,
        .username = td_str_from(td_env_get("PROMETHEUS_USERNAME", NULL)),
        .password = td_str_from(td_env_get("PROMETHEUS_PASSWORD", NULL)),
    };
    int code = TD_OK;
    if (run->token_file) {
        code = td_file_read(run->token_file, &run->arena, TD_TOKEN_FILE_BYTES_MAX,
                            &options.bearer_token, err);
        options.bearer_token = td_str_trim(options.bearer_token);
    }
    code = code == TD_OK ? td_loop_new(&run->clock, &run->loop, err) : code;
    code =
        code == TD_OK ? td_prometheus_new(run->loop, &options, NULL, &run->prometheus, err) : code;
    if (code != TD_OK) {
        return code;
    }
    const struct td_recommend_prometheus_options sizes = {
        .loop = run->loop,
        .prometheus = run->prometheus,
        .namespace = td_str_from(run->namespace),
        .window = run->window,
        .query_timeout = RECOMMEND_QUERY_TIMEOUT,
        .progress = recommend_progress,
    };
    run->sizes = td_recommend_prometheus_start(&sizes, recommend_sized, run);
    return td_loop_run(run->loop, err);
}

static int recommend_from_prometheus(struct recommend *run)
{
    struct td_error err = TD_ERROR_INIT;
    td_arena_init(&run->arena, TD_TREE_ARENA_BYTES_MAX);
    run->clock = td_clock_real();
    run->began = td_clock_steady(&run->clock);
    run->status = TD_EXIT_FAILED;
    int code = recommend_ask(run, &err);
    td_recommend_prometheus_free(run->sizes);
    td_prometheus_free(run->prometheus);
    td_loop_free(run->loop);
    td_arena_done(&run->arena);
    return code == TD_OK ? run->status : td_command_fail("recommend: %s", err.message);
}

/* ---- The command line ---- */

enum {
    RECOMMEND_KUBECONFIG = 256,
    RECOMMEND_CONTEXT,
    RECOMMEND_GATES,
    RECOMMEND_FROM,
    RECOMMEND_SPAN,
    RECOMMEND_TOKEN_FILE,
    RECOMMEND_INSECURE,
};

static int recommend_window(struct recommend *run)
{
    td_duration span;
    if (!td_scenario_parse_duration(td_str_from(optarg), &span) || span < RECOMMEND_WINDOW_MIN ||
        span > RECOMMEND_WINDOW_MAX) {
        return td_command_fail("recommend: --window: '%s': use a time from 1h to 90d", optarg);
    }
    run->window = span;
    return TD_EXIT_DONE;
}

static int recommend_prometheus_option(struct recommend *run, int option)
{
    const char *name = option == RECOMMEND_SPAN         ? "--window"
                       : option == RECOMMEND_TOKEN_FILE ? "--prometheus-bearer-token-file"
                                                        : "--prometheus-insecure";
    run->first_prometheus = run->first_prometheus ? run->first_prometheus : name;
    if (option == RECOMMEND_SPAN) {
        return recommend_window(run);
    }
    run->token_file = option == RECOMMEND_TOKEN_FILE ? optarg : run->token_file;
    run->is_insecure = run->is_insecure || option == RECOMMEND_INSECURE;
    return TD_EXIT_DONE;
}

static int recommend_option(struct recommend *run, int option, const char *word)
{
    switch (option) {
    case 'n':
        run->namespace = optarg;
        return TD_EXIT_DONE;
    case 'o':
        return td_output_parse("recommend", optarg, &run->output);
    case RECOMMEND_KUBECONFIG:
        run->connect.kubeconfig = optarg;
        return TD_EXIT_DONE;
    case RECOMMEND_CONTEXT:
        run->connect.context = optarg;
        return TD_EXIT_DONE;
    case RECOMMEND_GATES:
        run->connect.feature_gates = optarg;
        return TD_EXIT_DONE;
    case RECOMMEND_FROM:
        run->is_from_prometheus = true;
        return strcmp(optarg, "prometheus") == 0
                   ? TD_EXIT_DONE
                   : td_command_fail("recommend: --from: '%s': use prometheus", optarg);
    case RECOMMEND_SPAN:
    case RECOMMEND_TOKEN_FILE:
    case RECOMMEND_INSECURE:
        return recommend_prometheus_option(run, option);
    default:
        return td_command_fail(
            "recommend: %s: unknown option or missing value; see 'tandem recommend --help'", word);
    }
}

/* What is written beside the options. -1: go on. */
static int recommend_words(struct recommend *run, int count, char **words)
{
    if (run->is_from_prometheus && count == 0) {
        return td_command_fail("recommend: --from prometheus: needs a URL behind it");
    }
    if (count > (run->is_from_prometheus ? 1 : 0)) {
        return td_command_fail("recommend: '%s': takes options only; see 'tandem recommend --help'",
                               words[run->is_from_prometheus ? 1 : 0]);
    }
    if (run->is_from_prometheus && (run->connect.kubeconfig || run->connect.context)) {
        return td_command_fail("recommend: %s: no cluster is asked with --from prometheus",
                               run->connect.kubeconfig ? "--kubeconfig" : "--context");
    }
    if (!run->is_from_prometheus && run->first_prometheus) {
        return td_command_fail("recommend: %s: goes with --from prometheus only",
                               run->first_prometheus);
    }
    run->url = run->is_from_prometheus ? words[0] : NULL;
    return -1;
}

/* -1: go on. */
static int recommend_parse(struct recommend *run, int argc, char **argv)
{
    static const struct option options[] = {
        {"namespace", required_argument, NULL, 'n'},
        {"output", required_argument, NULL, 'o'},
        {"kubeconfig", required_argument, NULL, RECOMMEND_KUBECONFIG},
        {"context", required_argument, NULL, RECOMMEND_CONTEXT},
        {"feature-gates", required_argument, NULL, RECOMMEND_GATES},
        {"from", required_argument, NULL, RECOMMEND_FROM},
        {"window", required_argument, NULL, RECOMMEND_SPAN},
        {"prometheus-bearer-token-file", required_argument, NULL, RECOMMEND_TOKEN_FILE},
        {"prometheus-insecure", no_argument, NULL, RECOMMEND_INSECURE},
        {"help", no_argument, NULL, 'h'},
        {0},
    };
    opterr = 0; /* one line of ours instead of getopt's */
    for (int option; (option = getopt_long(argc, argv, ":hn:o:", options, NULL)) != -1;) {
        if (option == 'h') {
            (void)fputs(recommend_help, stdout); /* main looks at the stream's state */
            return TD_EXIT_DONE;
        }
        if (recommend_option(run, option, argv[optind - 1]) != TD_EXIT_DONE) {
            return TD_EXIT_FAILED;
        }
    }
    return recommend_words(run, argc - optind, argv + optind);
}

int td_command_recommend(int argc, char **argv)
{
    struct recommend run = {.output = TD_OUTPUT_TABLE, .window = RECOMMEND_WINDOW};
    td_connect_init(&run.connect, "recommend");
    int status = recommend_parse(&run, argc, argv);
    if (status < 0 && run.url) {
        status = recommend_from_prometheus(&run);
    } else if (status < 0) {
        status = td_connect_load(&run.connect);
        if (status == TD_EXIT_DONE) {
            run.connect.namespace = td_str_from(run.namespace);
            status = td_connect_run(&run.connect, recommend_seen, &run);
        }
    }
    td_recommend_once_free(run.once);
    td_connect_done(&run.connect);
    return status;
}
