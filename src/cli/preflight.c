/*
 * `tandem preflight`: looks at a cluster and prints a line for each thing that the controllers need
 * (control/preflight/preflight.h).
 */
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"
#include "cli/command.h"
#include "cli/connect.h"
#include "cli/install_flags.h"
#include "cli/output.h"
#include "control/controllers.h"
#include "control/preflight/preflight.h"

static const char preflight_help[] =
    "check whether a cluster is fit for the controllers, and say what to mend\n\n"
    "  tandem preflight                     for example: before and after installing\n"
    "  tandem preflight --replace-upstream  before upstream's VPA is taken over\n\n"
    "usage: tandem preflight [FLAGS]\n\n"
    "Say what is or will be installed, with the words of 'tandem manifests':\n"
    "  --namespace NAME      namespace of the Deployment (tandem-system)\n"
    "  --image IMAGE         container image, for policies that look at it\n"
    "  --controllers LIST    controllers to run, of recommender, updater, admission,\n"
    "                        horizontal, hvpa (all)\n"
    "  --horizontal=builtin  reconcile HPAs of autoscaling/v2 too (off)\n"
    "  --shards N            parts of the namespaces that replicas share\n"
    "  --replace-upstream    upstream's VPA is taken over by its names\n"
    "  --shadow              only compute beside upstream's VPA\n\n"
    "  --kubeconfig FILE     path to a kubeconfig ($KUBECONFIG, ~/.kube/config, or\n"
    "                        the pod's service account)\n"
    "  --context NAME        kubeconfig context (the current one)\n"
    "  -o, --output FORMAT   text, json or yaml (text)\n\n"
    "Writes nothing to the cluster; what is created is a dry run. Exit status: 0 fit,\n"
    "1 something must be mended, 2 the cluster cannot be read. Guide:\n"
    "docs/preflight.md\n";

struct preflight {
    struct td_connect connect;
    struct td_install_options install;
    bool is_shadow;
    enum td_output output; /* TABLE: text */
    struct td_preflight *preflight;
};

static int preflight_take_controllers(void *place, const char *text)
{
    return td_install_take_controllers("preflight", place, text);
}

static int preflight_take_horizontal(void *place, const char *text)
{
    return td_install_take_horizontal("preflight", place, text);
}

static int preflight_take_shards(void *place, const char *text)
{
    return td_install_take_shards("preflight", place, text);
}

static int preflight_take_text(void *place, const char *text)
{
    *(td_str *)place = td_str_from(text);
    return TD_EXIT_DONE;
}

static int preflight_take_output(void *place, const char *text)
{
    return td_output_parse_text("preflight", text, place);
}

static const struct td_option preflight_options[] = {
    TD_OPTION("namespace", 0, struct preflight, install.namespace, preflight_take_text),
    TD_OPTION("image", 0, struct preflight, install.image, preflight_take_text),
    TD_OPTION("controllers", 0, struct preflight, install.has, preflight_take_controllers),
    TD_OPTION("horizontal", 0, struct preflight, install.features[TD_FEATURE_BUILTIN],
              preflight_take_horizontal),
    TD_OPTION("shards", 0, struct preflight, install.shards, preflight_take_shards),
    TD_OPTION_FLAG("replace-upstream", 0, struct preflight, install.replaces_upstream),
    TD_OPTION_FLAG("shadow", 0, struct preflight, is_shadow),
    TD_OPTION("output", 'o', struct preflight, output, preflight_take_output),
    TD_OPTION_TEXT("kubeconfig", 0, struct preflight, connect.kubeconfig),
    TD_OPTION_TEXT("context", 0, struct preflight, connect.context),
};

static int preflight_print(const struct preflight *run, const struct td_findings *findings)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    td_auto_buf text = td_buf_capped(TD_TREE_ARENA_BYTES_MAX);
    int status = TD_EXIT_DONE;
    if (run->output == TD_OUTPUT_TABLE) {
        td_findings_write(findings, &text);
        (void)fwrite(text.ptr, 1, text.len, stdout); /* main looks at the stream's state */
    } else {
        status = td_output_print(td_findings_json(&arena, findings), run->output);
    }
    return status == TD_EXIT_DONE && findings->mends > 0 ? TD_EXIT_PROBLEMS : status;
}

static void preflight_ended(void *context, const struct td_findings *findings)
{
    struct preflight *run = context;
    int status = findings->code == TD_OK
                     ? preflight_print(run, findings)
                     : td_connect_fail(&run->connect, findings->code, &findings->err);
    td_connect_end(&run->connect, status);
}

/* What the flags say together, before anything is asked. */
static int preflight_check(struct preflight *run)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_install_options install = run->install;
    struct td_json *objects;
    struct td_error err = TD_ERROR_INIT;
    if (run->is_shadow && install.replaces_upstream) {
        return td_command_fail("preflight: --shadow and --replace-upstream exclude each other");
    }
    if (run->is_shadow) {
        td_install_take_shadow(run->install.has);
    }
    install.wants[TD_INSTALL_RBAC] = true;
    return td_install_objects(&arena, &install, &objects, &err) == TD_OK
               ? TD_EXIT_DONE
               : td_command_fail("preflight: %s", err.message);
}

static void preflight_begin(void *context)
{
    struct preflight *run = context;
    const struct td_preflight_options options = {.client = run->connect.client,
                                                 .flow = run->connect.flow,
                                                 .clock = td_loop_clock(run->connect.loop),
                                                 .install = run->install};
    run->preflight = td_preflight_start(&options, preflight_ended, run);
}

int td_command_preflight(int argc, char **argv)
{
    const struct td_options options = {"preflight", preflight_help, preflight_options,
                                       TD_COUNT(preflight_options)};
    const struct td_controllers_options defaults = td_controllers_options_default();
    struct preflight run = {.install = {.namespace = TD_STR(TD_INSTALL_NAMESPACE)}};
    memcpy(run.install.has, defaults.has, sizeof(run.install.has));
    run.install.features[TD_FEATURE_HVPA] = defaults.hvpa_gate;
    td_connect_init(&run.connect, "preflight");
    int status = td_options_parse(&options, &run, argc, argv);
    if (status < 0 && optind < argc) {
        status = td_command_fail(
            "preflight: '%s': takes options only; see 'tandem preflight --help'", argv[optind]);
    }
    if (status < 0) {
        status = preflight_check(&run);
        status = status == TD_EXIT_DONE ? td_connect_load(&run.connect) : status;
        status =
            status == TD_EXIT_DONE ? td_connect_call(&run.connect, preflight_begin, &run) : status;
    }
    td_preflight_free(run.preflight);
    td_connect_done(&run.connect);
    return status;
}
