/*
 * `tandem explain`: options and words of the command line, one look at a cluster, and the
 * explanation as text, JSON or YAML. What is said is made by control/inspect/explain.h.
 */
#include <stdio.h>

#include "base/error.h"
#include "cli/command.h"
#include "cli/connect.h"
#include "cli/options.h"
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
    "  -o, --output text|json|yaml\n"
    "                              output format (text)\n\n"
    "Writes nothing to the cluster. Exit status: 0 explained, 1 object not found,\n"
    "2 the cluster cannot be read. Guide: docs/explain.md\n";

struct explain {
    struct td_connect connect;
    struct td_explain_subject subject;
    const char *namespace;
    enum td_output output; /* TABLE: text */
    struct td_explain *explain;
};

static void explain_reported(void *context, const struct td_explanation *explanation)
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
    run->explain = td_explain_start(run->connect.snapshot, &run->subject, explain_reported, run);
}

static int explain_output(void *place, const char *value)
{
    return td_output_parse_text("explain", value, place);
}

static const struct td_option explain_options[] = {
    TD_OPTION_TEXT("namespace", 'n', struct explain, namespace),
    TD_OPTION("output", 'o', struct explain, output, explain_output),
    TD_CONNECT_OPTIONS(struct explain, connect),
};

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
    const struct td_options options = {"explain", explain_help, explain_options,
                                       TD_COUNT(explain_options)};
    int status = td_options_parse(&options, run, argc, argv);
    if (status >= 0) {
        return status;
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
