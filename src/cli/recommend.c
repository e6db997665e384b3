#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/yaml.h"
#include "cli/command.h"
#include "cli/connect.h"
#include "cli/output.h"
#include "control/recommend_once.h"

static const char recommend_help[] =
    "right sizes of every container of a cluster, once; nothing is installed or written\n\n"
    "  tandem recommend -n shop                          for example\n"
    "  tandem recommend --output yaml > sizes.yaml       to read, and then:\n"
    "      kubectl apply --server-side --force-conflicts --field-manager=tandem-recommend -f "
    "sizes.yaml\n\n"
    "usage: tandem recommend [FLAGS]\n\n"
    "  -n, --namespace NAMESPACE        one namespace (all of them)\n"
    "  --kubeconfig FILE                where the cluster is ($KUBECONFIG, ~/.kube/config, or the "
    "pod's\n"
    "                                   own)\n"
    "  --context NAME                   another context than the current one\n"
    "  -o, --output table|json|yaml     yaml: the workloads that no VPA or Hvpa sizes, with the\n"
    "                                   requests that they should have\n\n"
    "Where a VPA has learnt, its checkpoints count; elsewhere only what is measured at this "
    "moment.\n"
    "Exit status: 0 done, 2 the cluster cannot be read. Guide: docs/explain.md\n";

struct recommend {
    struct td_connect connect;
    const char *namespace;
    enum td_output output;
    struct td_recommend_once *once;
};

static int recommend_print_yaml(const struct td_right_sizes *sizes)
{
    td_auto_arena arena;
    td_auto_buf text;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    td_buf_init(&text, TD_TREE_ARENA_BYTES_MAX);
    struct td_error err = TD_ERROR_INIT;
    const struct td_json *list = td_right_sizes_patches(&arena, sizes);
    for (const struct td_json *object = list->first; object; object = object->next) {
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

enum { RECOMMEND_KUBECONFIG = 256, RECOMMEND_CONTEXT };

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
    default:
        return td_command_fail(
            "recommend: %s: unknown option or missing value; see 'tandem recommend --help'", word);
    }
}

/* -1: go on. */
static int recommend_parse(struct recommend *run, int argc, char **argv)
{
    static const struct option options[] = {
        {"namespace", required_argument, NULL, 'n'},
        {"output", required_argument, NULL, 'o'},
        {"kubeconfig", required_argument, NULL, RECOMMEND_KUBECONFIG},
        {"context", required_argument, NULL, RECOMMEND_CONTEXT},
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
    return optind < argc ? td_command_fail("recommend: '%s': takes options only; see 'tandem "
                                           "recommend --help'",
                                           argv[optind])
                         : -1;
}

int td_command_recommend(int argc, char **argv)
{
    struct recommend run = {.output = TD_OUTPUT_TABLE};
    td_connect_init(&run.connect, "recommend");
    int status = recommend_parse(&run, argc, argv);
    if (status < 0) {
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
