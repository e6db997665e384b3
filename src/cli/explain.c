/*
 * `tandem explain`: options and words of the command line, one look at a cluster, and the
 * explanation as text, JSON or YAML. What is said is made by control/inspect/explain.h.
 */
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "cli/command.h"
#include "cli/connect.h"
#include "cli/output.h"
#include "control/inspect/explain.h"

static const char explain_help[] =
    "explain what an autoscaler decided, what it does next and what would change it\n\n"
    "  tandem explain hvpa web -n shop           for example\n"
    "  tandem explain pod db-1                   which VPA manages it, or why none\n\n"
    "usage: tandem explain KIND NAME [FLAGS]\n\n"
    "KIND is vpa, hpa (of both API groups), hvpa, pod, or a workload: deployment,\n"
    "statefulset, daemonset, replicaset, job, cronjob, replicationcontroller.\n\n"
    "  -n, --namespace NAMESPACE   namespace (that of the kubeconfig context)\n"
    "  --kubeconfig FILE           path to a kubeconfig ($KUBECONFIG,\n"
    "                              ~/.kube/config, or the pod's service account)\n"
    "  --context NAME              kubeconfig context (the current one)\n"
    "  --feature-gates LIST        the --feature-gates of tandem run\n"
    "  -o, --output text|json|yaml output format (text)\n\n"
    "Writes nothing to the cluster. Exit status: 0 explained, 1 object not found,\n"
    "2 the cluster cannot be read. Guide: docs/explain.md\n";

struct explain {
    struct td_connect connect;
    struct td_explain_subject subject;
    const char *namespace;
    enum td_output output; /* TABLE: text */
    struct td_explain *explain;
};

static void explain_told(void *context, const struct td_explanation *explanation)
{
    struct explain *run = context;
    int status = TD_EXIT_DONE;
    if (explanation->code != TD_OK) {
        (void)td_command_fail("explain: %s", explanation->err.message); /* the status is below */
        status = explanation->code == TD_NOT_FOUND ? TD_EXIT_PROBLEMS : TD_EXIT_FAILED;
    } else if (run->output != TD_OUTPUT_TABLE) {
        status = td_output_print(explanation->json, run->output);
    } else {
        /* main looks at the stream's state */
        (void)fwrite(explanation->text.ptr, 1, explanation->text.len, stdout);
    }
    td_connect_end(&run->connect, status);
}

static void explain_seen(void *context)
{
    struct explain *run = context;
    run->explain = td_explain_start(run->connect.snapshot, &run->subject, explain_told, run);
}

enum { EXPLAIN_KUBECONFIG = 256, EXPLAIN_CONTEXT, EXPLAIN_GATES };

static int explain_output(struct explain *run)
{
    bool is_json = strcmp(optarg, "json") == 0;
    bool is_yaml = strcmp(optarg, "yaml") == 0;
    if (!is_json && !is_yaml && strcmp(optarg, "text") != 0) {
        return td_command_fail("explain: --output: '%s': use text, json or yaml", optarg);
    }
    run->output = is_json ? TD_OUTPUT_JSON : is_yaml ? TD_OUTPUT_YAML : TD_OUTPUT_TABLE;
    return TD_EXIT_DONE;
}

/* -1: it is none. */
static int explain_option(struct explain *run, int option)
{
    switch (option) {
    case 'n':
        run->namespace = optarg;
        return TD_EXIT_DONE;
    case 'o':
        return explain_output(run);
    case EXPLAIN_KUBECONFIG:
        run->connect.kubeconfig = optarg;
        return TD_EXIT_DONE;
    case EXPLAIN_CONTEXT:
        run->connect.context = optarg;
        return TD_EXIT_DONE;
    case EXPLAIN_GATES:
        run->connect.feature_gates = optarg;
        return TD_EXIT_DONE;
    default:
        return -1;
    }
}

/* KIND NAME, or KIND/NAME as kubectl takes it. */
static int explain_words(struct explain *run, int count, char **words)
{
    struct td_error err = TD_ERROR_INIT;
    td_str kind = td_str_from(count > 0 ? words[0] : "");
    size_t slash = td_str_find(kind, '/', 0);
    bool is_joined = count == 1 && slash < kind.len;
    if (count != 2 && !is_joined) {
        return td_command_fail(
            "explain: takes a kind and a name: tandem explain hvpa web; see 'tandem explain "
            "--help'");
    }
    run->subject.name = is_joined ? td_str_slice(kind, slash + 1, kind.len) : td_str_from(words[1]);
    if (td_explain_parse_kind(td_str_slice(kind, 0, is_joined ? slash : kind.len), &run->subject,
                              &err) != TD_OK) {
        return td_command_fail("explain: %s", err.message);
    }
    return TD_EXIT_DONE;
}

/* -1: go on. */
static int explain_parse(struct explain *run, int argc, char **argv)
{
    static const struct option options[] = {
        {"namespace", required_argument, NULL, 'n'},
        {"output", required_argument, NULL, 'o'},
        {"kubeconfig", required_argument, NULL, EXPLAIN_KUBECONFIG},
        {"context", required_argument, NULL, EXPLAIN_CONTEXT},
        {"feature-gates", required_argument, NULL, EXPLAIN_GATES},
        {"help", no_argument, NULL, 'h'},
        {0},
    };
    opterr = 0; /* one line of ours instead of getopt's */
    for (int option; (option = getopt_long(argc, argv, ":hn:o:", options, NULL)) != -1;) {
        if (option == 'h') {
            (void)fputs(explain_help, stdout); /* main looks at the stream's state */
            return TD_EXIT_DONE;
        }
        int status = explain_option(run, option);
        if (status != TD_EXIT_DONE) {
            return status > 0 ? status : td_command_bad_option("explain", options, option, argv);
        }
    }
    return explain_words(run, argc - optind, argv + optind) == TD_EXIT_DONE ? -1 : TD_EXIT_FAILED;
}

int td_command_explain(int argc, char **argv)
{
    struct explain run = {.namespace = NULL};
    td_connect_init(&run.connect, "explain");
    int status = explain_parse(&run, argc, argv);
    if (status < 0) {
        status = td_connect_load(&run.connect);
        if (status == TD_EXIT_DONE) {
            run.subject.namespace =
                run.namespace ? td_str_from(run.namespace) : run.connect.config.namespace;
            run.connect.namespace = run.subject.namespace;
            td_explain_needs(&run.subject, run.connect.needs);
            status = td_connect_run(&run.connect, explain_seen, &run);
        }
    }
    td_explain_free(run.explain);
    td_connect_done(&run.connect);
    return status;
}
