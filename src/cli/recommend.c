/*
 * `tandem recommend`: right sizes of workloads, from one look at a cluster or from a Prometheus,
 * as a table, YAML, JSON or CSV, or written into manifests. The options of both sources are read
 * here; the sizes are made by control/inspect/recommend_once.h and recommend_prometheus.h, and
 * manifests are edited by control/inspect/recommend_patch.h.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/os/env.h"
#include "base/os/file.h"
#include "base/os/loop.h"
#include "base/os/table.h"
#include "cli/bar.h"
#include "cli/command.h"
#include "cli/connect.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/report_file.h"
#include "control/inspect/diff.h"
#include "control/inspect/recommend_once.h"
#include "control/inspect/recommend_patch.h"
#include "control/inspect/shadow_table.h"
#include "control/recommender/recommend_prometheus.h"
#include "decide/vertical/estimator/estimator.h"
#include "sim/scenario/scenario.h"

#define RECOMMEND_WINDOW (14 * 24 * TD_HOUR)
#define RECOMMEND_WINDOW_MIN TD_HOUR
#define RECOMMEND_WINDOW_MAX (90 * 24 * TD_HOUR)
#define RECOMMEND_WORK_BYTES 64 /* of what the bar says is done */
#define RECOMMEND_QUERY_TIMEOUT (5 * TD_MINUTE)

static const char recommend_help[] =
    "recommend requests for every container of a cluster, once, read-only\n\n"
    "  tandem recommend -n shop                          for example\n"
    "  tandem recommend --from prometheus http://127.0.0.1:9090 --window 14d\n"
    "  tandem recommend --output yaml > sizes.yaml       to review, and then:\n"
    "      kubectl apply --server-side --force-conflicts \\\n"
    "          --field-manager=tandem-recommend -f sizes.yaml\n"
    "  tandem recommend -n shop --patch k8s/*.yaml --dry-run\n\n"
    "usage: tandem recommend [FLAGS] [--patch FILE... [--dry-run]]\n"
    "       tandem recommend --from prometheus URL [FLAGS]\n"
    "                        [--patch FILE... [--dry-run]]\n\n"
    "  -n, --namespace NAMESPACE     one namespace (all)\n"
    "  --shadow                      beside upstream's VPA: its recommendations and\n"
    "                                those of 'tandem run --shadow' in one table\n"
    "  -o, --output table|json|yaml|csv\n"
    "                                output format (table); yaml: objects to apply,\n"
    "                                with the recommended requests of workloads\n"
    "                                that no VPA or Hvpa targets\n"
    "  --report FILE                 write the table and the YAML as one HTML file\n"
    "  --patch FILE...               write those requests, and limits in proportion,\n"
    "                                into these manifests; the rest stays as it is\n"
    "  --dry-run                     with --patch: print a diff, change nothing\n"
    "  --min-samples N, --min-history SPAN\n"
    "                                data that is enough: one of the two (100, 6h)\n"
    "  --cpu-min, --memory-min QUANTITY\n"
    "                                smallest recommendation (10m, 64Mi) for what no\n"
    "                                VPA or Hvpa sizes\n"
    "  --kubeconfig FILE             path to a kubeconfig ($KUBECONFIG,\n"
    "                                ~/.kube/config, or the pod's service account)\n"
    "  --context NAME                kubeconfig context (the current one)\n"
    "  --feature-gates LIST          the --feature-gates of tandem run\n"
    "  --estimator NAME              size every container by this estimator (the one\n"
    "                                that each VPA or Hvpa asks for, else upstream)\n"
    "  --from prometheus URL         size by the history of a Prometheus\n"
    "  --window SPAN                 history to query from Prometheus (14d)\n"
    "  --prometheus-bearer-token-file FILE\n"
    "                                bearer token for Prometheus; without it\n"
    "                                $PROMETHEUS_USERNAME and $PROMETHEUS_PASSWORD\n"
    "  --prometheus-insecure         skip verification of Prometheus' certificate\n\n"
    "From a cluster: uses the checkpoints of VPAs, and current metrics of all other\n"
    "workloads. From Prometheus: uses its history and contacts no API server.\n"
    "Exit status: 0 done, 1 a manifest was not edited, 2 the cluster, Prometheus or\n"
    "a file cannot be read.\n"
    "Guide: docs/explain.md\n";

enum recommend_format { RECOMMEND_TABLE, RECOMMEND_JSON, RECOMMEND_YAML, RECOMMEND_CSV };

struct recommend {
    struct td_connect connect;
    const char *namespace;
    enum recommend_format format;
    struct td_right_limits limits;
    const char *report_path; /* NULL: no report */
    struct td_arena words;   /* of the command line */
    td_str command;
    const char *patch; /* the first manifest; NULL: none is edited */
    char **files;      /* the others */
    int file_count;
    bool is_dry_run;
    bool is_shadow;
    struct td_shadow_table *shadow;
    struct td_recommend_once *once;
    /* From Prometheus. */
    const char *url; /* NULL: from the cluster */
    bool is_from_prometheus;
    td_duration window; /* 0: RECOMMEND_WINDOW */
    const char *token_file;
    bool is_insecure;
    struct td_arena arena;
    struct td_clock clock;
    struct td_loop *loop;
    struct td_prometheus *prometheus;
    struct td_recommend_prometheus *sizes;
    struct td_bar bar;
    int status;
};

static void recommend_write_table(const struct recommend *run, const struct td_right_sizes *sizes,
                                  struct td_buf *out)
{
    td_auto_buf cells = td_buf_capped(TD_TREE_ARENA_BYTES_MAX);
    const struct td_table_options shape = {
        .width = td_output_width(), .has_utf8 = td_output_has_utf8(), .has_sentences = sizes};
    if (sizes) {
        td_right_sizes_write(sizes, &cells);
    } else {
        td_shadow_table_write(run->shadow, &cells);
    }
    td_table_write(td_buf_str(&cells), &shape, out);
    out->is_full = out->is_full || cells.is_full;
}

/* Why a manifest may lack an edit: the table has it in a line of its own. */
static void recommend_note_left_out(const struct td_right_sizes *sizes)
{
    size_t count = td_right_sizes_left_out(sizes);
    if (count > 0) {
        (void)fprintf(stderr,
                      "tandem: recommend: %zu container%s left out: not enough data "
                      "(--min-samples, --min-history)\n",
                      count, TD_PLURAL(count));
    }
}

static int recommend_print_text(const struct recommend *run, const struct td_right_sizes *sizes)
{
    td_auto_buf text = td_buf_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_error err = TD_ERROR_INIT;
    bool is_table = run->format == RECOMMEND_TABLE;
    if (run->format == RECOMMEND_CSV) {
        td_right_sizes_csv(sizes, &text);
    } else if (run->format == RECOMMEND_YAML) {
        td_right_sizes_yaml(sizes, &text);
    } else {
        recommend_write_table(run, sizes, &text);
    }
    if (td_buf_check(&text, "the report", &err) < 0) {
        return td_command_fail("recommend: %s", err.message);
    }
    if (sizes->problem.len > 0 && !is_table) { /* the table has it */
        (void)fprintf(stderr, "tandem: recommend: %.*s\n", TD_STR_ARG(sizes->problem));
    }
    (void)fwrite(td_buf_str(&text).ptr, 1, text.len, stdout); /* main looks at the stream's state */
    return TD_EXIT_DONE;
}

/* ---- Manifests ---- */

/* Writes the edited file, or its diff. */
static int recommend_patch_write(const struct recommend *run,
                                 const struct td_recommend_patch *patch, struct td_error *err)
{
    td_auto_buf diff = td_buf_capped(TD_TREE_ARENA_BYTES_MAX);
    if (!run->is_dry_run) {
        int code = patch->edit_count > 0 ? td_file_replace(patch->path, patch->edited, err) : TD_OK;
        if (code == TD_OK) {
            (void)printf("%s: %zu container%s changed\n", patch->path, patch->edit_count,
                         TD_PLURAL(patch->edit_count)); /* main looks at the stream's state */
        }
        return code;
    }
    td_diff_write(td_str_from(patch->path), patch->text, patch->edited, &diff);
    (void)fwrite(td_buf_str(&diff).ptr, 1, diff.len, stdout); /* the same */
    return td_buf_check(&diff, "the diff", err);
}

static int recommend_patch_file(const struct recommend *run, const struct td_right_sizes *sizes,
                                const char *path)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_error err = TD_ERROR_INIT;
    struct td_recommend_patch patch = {
        .sizes = sizes, .path = path, .namespace = td_str_from(run->namespace)};
    int code = td_file_read(path, &arena, TD_YAML_BYTES_MAX, &patch.text, &err);
    code = code == TD_OK ? td_recommend_patch(&arena, &patch, &err) : code;
    code = code == TD_OK ? recommend_patch_write(run, &patch, &err) : code;
    td_recommend_patch_done(&patch);
    if (code != TD_OK) {
        return td_command_fail("recommend: %s", err.message);
    }
    for (size_t i = 0; i < patch.refusal_count; i++) {
        (void)fprintf(stderr, "tandem: recommend: %.*s\n", TD_STR_ARG(patch.refusals[i]));
    }
    return patch.refusal_count > 0 ? TD_EXIT_PROBLEMS : TD_EXIT_DONE;
}

static int recommend_patch(const struct recommend *run, const struct td_right_sizes *sizes)
{
    int status = TD_EXIT_DONE;
    for (int i = -1; i < run->file_count; i++) {
        int one = recommend_patch_file(run, sizes, i < 0 ? run->patch : run->files[i]);
        status = one > status ? one : status;
    }
    if (status != TD_EXIT_FAILED) { /* a failure is told in one line */
        recommend_note_left_out(sizes);
    }
    return status;
}

static int recommend_write_report(const struct recommend *run, const struct td_right_sizes *sizes,
                                  struct td_error *err)
{
    td_auto_buf data = td_buf_capped(TD_REPORT_BYTES_MAX);
    td_str title = TD_STR("tandem recommend");
    const struct td_report_head head = td_report_head(title, run->command);
    td_report_recommend(&head, sizes, &data);
    return td_report_save(run->report_path, title, &data, err);
}

static int recommend_print(const struct recommend *run, const struct td_right_sizes *sizes)
{
    struct td_error err = TD_ERROR_INIT;
    if (sizes->code != TD_OK) {
        return td_command_fail("recommend: %s", sizes->err.message);
    }
    if (run->report_path && recommend_write_report(run, sizes, &err) != TD_OK) {
        return td_command_fail("recommend: %s", err.message);
    }
    if (run->patch) {
        return recommend_patch(run, sizes);
    }
    if (run->format != RECOMMEND_JSON) {
        return recommend_print_text(run, sizes);
    }
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    return td_output_print(td_right_sizes_json(&arena, sizes), TD_OUTPUT_JSON);
}

static void recommend_reported(void *context, const struct td_right_sizes *sizes)
{
    struct recommend *run = context;
    td_connect_end(&run->connect, recommend_print(run, sizes));
}

static void recommend_seen(void *context)
{
    struct recommend *run = context;
    run->once = td_recommend_once_start(run->connect.snapshot, td_str_from(run->namespace),
                                        &run->limits, recommend_reported, run);
}

/* ---- Beside upstream's ---- */

static int recommend_report_shadow(const struct recommend *run, struct td_error *err)
{
    td_auto_buf data = td_buf_capped(TD_REPORT_BYTES_MAX);
    td_str title = TD_STR("tandem recommend --shadow");
    const struct td_report_head head = td_report_head(title, run->command);
    td_report_shadow(&head, run->shadow, &data);
    return td_report_save(run->report_path, title, &data, err);
}

static int recommend_print_shadow(const struct recommend *run)
{
    td_auto_buf text = td_buf_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_error err = TD_ERROR_INIT;
    if (run->report_path && recommend_report_shadow(run, &err) != TD_OK) {
        return td_command_fail("recommend: %s", err.message);
    }
    if (run->format != RECOMMEND_TABLE) {
        return td_output_print(td_shadow_table_json(run->shadow),
                               run->format == RECOMMEND_JSON ? TD_OUTPUT_JSON : TD_OUTPUT_YAML);
    }
    recommend_write_table(run, NULL, &text);
    if (td_buf_check(&text, "the table", &err) < 0) {
        return td_command_fail("recommend: %s", err.message);
    }
    (void)fwrite(text.ptr, 1, text.len, stdout); /* main looks at the stream's state */
    return TD_EXIT_DONE;
}

static void recommend_compared(void *context, int code, const struct td_error *err)
{
    struct recommend *run = context;
    td_connect_end(&run->connect, code == TD_OK ? recommend_print_shadow(run)
                                                : td_connect_fail(&run->connect, code, err));
}

static void recommend_compare(void *context)
{
    struct recommend *run = context;
    run->shadow = td_shadow_table_start(run->connect.client, run->connect.flow,
                                        run->connect.namespace, recommend_compared, run);
    if (!run->shadow) {
        td_connect_end(&run->connect,
                       td_command_fail("recommend: --namespace: '%.*s': cannot be a namespace",
                                       TD_STR_ARG(run->connect.namespace)));
    }
}

/* ---- From Prometheus ---- */

static void recommend_progress(void *context, const struct td_history_counts *counts)
{
    struct recommend *run = context;
    if (!td_bar_is_due(&run->bar)) {
        return;
    }
    char work[RECOMMEND_WORK_BYTES];
    double bytes = (double)td_prometheus_bytes(run->prometheus);
    (void)snprintf(work, sizeof(work), "reading %zu container%s", counts->containers,
                   TD_PLURAL(counts->containers));
    td_bar_draw(&run->bar, work, (double)counts->steps_done / (double)counts->steps, "%.1f MiB/s",
                bytes * (double)TD_SECOND / (double)td_bar_passed(&run->bar) / (1 << 20));
}

static void recommend_sized(void *context, const struct td_right_sizes *sizes)
{
    struct recommend *run = context;
    td_bar_clear(&run->bar);
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
        .window = run->window != 0 ? run->window : RECOMMEND_WINDOW,
        .estimator = td_str_from(run->connect.estimator),
        .limits = run->limits,
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
    td_bar_begin(&run->bar, false);
    run->status = TD_EXIT_FAILED;
    int code = recommend_ask(run, &err);
    td_recommend_prometheus_free(run->sizes);
    td_prometheus_free(run->prometheus);
    td_loop_free(run->loop);
    td_arena_done(&run->arena);
    return code == TD_OK ? run->status : td_command_fail("recommend: %s", err.message);
}

/* ---- The command line ---- */

static int recommend_quantity(const char *flag, const char *value, const char *example,
                              struct td_quantity *ret)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    return td_quantity_parse(&arena, td_str_from(value), ret, NULL) == TD_OK &&
                   td_quantity_sign(ret) >= 0
               ? TD_EXIT_DONE
               : td_command_fail("recommend: %s: '%s': must be a quantity such as %s", flag, value,
                                 example);
}

static int recommend_cpu_min(void *place, const char *value)
{
    struct td_quantity quantity = {0};
    int status = recommend_quantity("--cpu-min", value, "10m", &quantity);
    *(int64_t *)place = td_quantity_milli(&quantity);
    return status;
}

static int recommend_memory_min(void *place, const char *value)
{
    struct td_quantity quantity = {0};
    int status = recommend_quantity("--memory-min", value, "64Mi", &quantity);
    *(int64_t *)place = td_quantity_value(&quantity);
    return status;
}

static int recommend_min_history(void *place, const char *value)
{
    return td_scenario_parse_duration(td_str_from(value), place)
               ? TD_EXIT_DONE
               : td_command_fail("recommend: --min-history: '%s': must be a duration such as 6h",
                                 value);
}

static int recommend_min_samples(void *place, const char *value)
{
    int64_t *samples = place;
    return td_str_to_int64(td_str_from(value), samples) && *samples >= 0
               ? TD_EXIT_DONE
               : td_command_fail("recommend: --min-samples: '%s': must be a whole number", value);
}

static int recommend_output(void *place, const char *value)
{
    static const char *const words[] = {"table", "json", "yaml", "csv"};
    for (size_t i = 0; i < TD_COUNT(words); i++) {
        if (strcmp(value, words[i]) == 0) {
            *(enum recommend_format *)place = (enum recommend_format)i;
            return TD_EXIT_DONE;
        }
    }
    return td_command_fail("recommend: --output: '%s': use table, json, yaml or csv", value);
}

static int recommend_window(void *place, const char *value)
{
    td_duration *span = place;
    return td_scenario_parse_duration(td_str_from(value), span) && *span >= RECOMMEND_WINDOW_MIN &&
                   *span <= RECOMMEND_WINDOW_MAX
               ? TD_EXIT_DONE
               : td_command_fail("recommend: --window: '%s': must be a duration from 1h to 90d",
                                 value);
}

static int recommend_estimator(void *place, const char *value)
{
    if (!td_estimator_find(td_str_from(value))) {
        td_auto_buf names = td_buf_capped(TD_OBJECT_BYTES_MAX);
        td_estimator_write_names(&names);
        return td_command_fail("recommend: --estimator: '%s': use %.*s", value,
                               TD_STR_ARG(td_buf_str(&names)));
    }
    return td_option_take_text(place, value);
}

static int recommend_from(void *place, const char *value)
{
    return strcmp(value, "prometheus") == 0
               ? td_option_take_flag(place, value)
               : td_command_fail("recommend: --from: '%s': must be prometheus", value);
}

/* The first manifest; words that follow are the others. */
static int recommend_patch_first(void *place, const char *value)
{
    const char **patch = place;
    *patch = *patch ? *patch : value;
    return TD_EXIT_DONE;
}

static const struct td_option recommend_options[] = {
    TD_OPTION_TEXT("namespace", 'n', struct recommend, namespace),
    TD_OPTION("output", 'o', struct recommend, format, recommend_output),
    TD_CONNECT_OPTIONS(struct recommend, connect),
    TD_OPTION("estimator", 0, struct recommend, connect.estimator, recommend_estimator),
    TD_OPTION("from", 0, struct recommend, is_from_prometheus, recommend_from),
    TD_OPTION("window", 0, struct recommend, window, recommend_window),
    TD_OPTION_TEXT("prometheus-bearer-token-file", 0, struct recommend, token_file),
    TD_OPTION_FLAG("prometheus-insecure", 0, struct recommend, is_insecure),
    TD_OPTION("min-samples", 0, struct recommend, limits.samples_min, recommend_min_samples),
    TD_OPTION("min-history", 0, struct recommend, limits.history_min, recommend_min_history),
    TD_OPTION("cpu-min", 0, struct recommend, limits.cpu_min_milli, recommend_cpu_min),
    TD_OPTION("memory-min", 0, struct recommend, limits.memory_min_bytes, recommend_memory_min),
    TD_OPTION_TEXT("report", 0, struct recommend, report_path),
    TD_OPTION("patch", 0, struct recommend, patch, recommend_patch_first),
    TD_OPTION_FLAG("dry-run", 0, struct recommend, is_dry_run),
    TD_OPTION_FLAG("shadow", 0, struct recommend, is_shadow),
};

/* What is written beside the options. -1: go on. */
static int recommend_words(struct recommend *run, int count, char **words)
{
    if (run->is_from_prometheus && count == 0) {
        return td_command_fail("recommend: --from prometheus: must be followed by a URL");
    }
    int own = run->is_from_prometheus ? 1 : 0;
    if (run->is_dry_run && !run->patch) {
        return td_command_fail("recommend: --dry-run: only allowed with --patch");
    }
    if (run->patch && run->format != RECOMMEND_TABLE) {
        return td_command_fail("recommend: --output: not allowed with --patch, which edits files");
    }
    if (count > own && !run->patch) {
        return td_command_fail("recommend: '%s': takes options only; see 'tandem recommend --help'",
                               words[own]);
    }
    if (run->is_shadow && (run->is_from_prometheus || run->patch || run->format == RECOMMEND_CSV)) {
        return td_command_fail("recommend: --shadow: not allowed with %s",
                               run->is_from_prometheus ? "--from prometheus"
                               : run->patch            ? "--patch"
                                                       : "--output csv");
    }
    if (run->is_from_prometheus && (run->connect.kubeconfig || run->connect.context)) {
        return td_command_fail(
            "recommend: %s: not allowed with --from prometheus, which contacts no cluster",
            run->connect.kubeconfig ? "--kubeconfig" : "--context");
    }
    const char *alone = run->window != 0   ? "--window"
                        : run->token_file  ? "--prometheus-bearer-token-file"
                        : run->is_insecure ? "--prometheus-insecure"
                                           : NULL;
    if (!run->is_from_prometheus && alone) {
        return td_command_fail("recommend: %s: only allowed with --from prometheus", alone);
    }
    run->url = run->is_from_prometheus ? words[0] : NULL;
    run->files = words + own;
    run->file_count = count - own;
    return -1;
}

/* -1: go on. */
static int recommend_parse(struct recommend *run, int argc, char **argv)
{
    const struct td_options options = {"recommend", recommend_help, recommend_options,
                                       TD_COUNT(recommend_options)};
    run->command = td_report_command(&run->words, argc, argv);
    int status = td_options_parse(&options, run, argc, argv);
    struct td_error err = TD_ERROR_INIT;
    if (status < 0 && run->report_path && td_report_check(run->report_path, &err) != TD_OK) {
        return td_command_fail("recommend: %s", err.message);
    }
    return status < 0 ? recommend_words(run, argc - optind, argv + optind) : status;
}

int td_command_recommend(int argc, char **argv)
{
    struct recommend run = {.limits = td_right_limits_default()};
    td_connect_init(&run.connect, "recommend");
    td_arena_init(&run.words, TD_TREE_ARENA_BYTES_MAX);
    int status = recommend_parse(&run, argc, argv);
    if (status < 0 && run.url) {
        status = recommend_from_prometheus(&run);
    } else if (status < 0) {
        status = td_connect_load(&run.connect);
        if (status == TD_EXIT_DONE) {
            run.connect.namespace = td_str_from(run.namespace);
            status = run.is_shadow ? td_connect_call(&run.connect, recommend_compare, &run)
                                   : td_connect_run(&run.connect, recommend_seen, &run);
        }
    }
    td_recommend_once_free(run.once);
    td_shadow_table_free(run.shadow);
    td_connect_done(&run.connect);
    td_arena_done(&run.words);
    return status;
}
