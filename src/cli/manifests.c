/*
 * `tandem manifests`: prints what an installation consists of (control/install.h), or what
 * `kubectl delete` needs to remove it.
 */
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/os/file.h"
#include "cli/command.h"
#include "cli/install_flags.h"
#include "cli/options.h"
#include "cli/output.h"
#include "control/controllers.h"
#include "control/gates.h"
#include "control/install.h"

static const char manifests_help[] =
    "print the manifests that a cluster needs to run the controllers\n\n"
    "  tandem manifests --image IMAGE | kubectl apply --server-side -f -    install\n"
    "  tandem manifests --uninstall | kubectl delete --ignore-not-found -f -\n"
    "  tandem manifests --only crds,rbac                       only some parts\n\n"
    "usage: tandem manifests [OPTIONS]\n\n"
    "  --only PARTS          comma-separated parts, of crds, rbac, webhooks,\n"
    "                        deployment (all)\n"
    "  --namespace NAME      namespace of the Deployment (tandem-system)\n"
    "  --image IMAGE         container image (by digest, that which 'make image' left\n"
    "                        beside this program)\n"
    "  --controllers LIST    controllers to run, of recommender, updater, admission,\n"
    "                        horizontal, hvpa (all); omits what the others need\n"
    "                        One controller has an account and names of its own.\n"
    "  --feature-gates LIST  gates, as of 'tandem run': rights follow them\n"
    "  --horizontal=builtin  reconcile HPAs of autoscaling/v2 too, in clusters where\n"
    "                        kube-controller-manager does not (off)\n"
    "  --template-actuation  allow Hvpas with actuation Template to patch workloads\n"
    "  --metrics-tls         metrics with TLS, to tokens that may get them\n"
    "  --cap-to-node         cap pods at the largest node; allows to list nodes\n"
    "  --annotate-resized-pods  note in-place resizes on pods; allows to patch pods\n"
    "  --shards N            share the namespaces among N + 1 replicas (a leader per\n"
    "                        controller)\n"
    "  --skip-vpa-crds       leave the CRDs of VPA and its checkpoints as others have\n"
    "                        installed them\n"
    "  --replace-upstream    take over leases, webhook configuration and Service of\n"
    "                        upstream's VPA, by its names (own names)\n"
    "  --shadow              only what 'tandem run --shadow' needs: it reads what is\n"
    "                        there and writes objects of its own kind only\n"
    "  --uninstall           print the objects to delete, in order; the CRDs stay,\n"
    "                        and with them all VPAs and checkpoints\n"
    "  --with-crds           with --uninstall: the CRDs and all their objects too\n\n"
    "Guide: docs/run.md\n";

struct manifests {
    struct td_install_options options;
    bool is_uninstall;
    bool is_shadow;
    bool with_crds;
    bool has_image;
    struct td_controllers_options controllers; /* what --feature-gates switches */
};

#define MANIFESTS_DIGEST "tandem-" TANDEM_VERSION ".oci.digest"

static int manifests_parse_only(void *place, const char *text)
{
    bool *wants = place;
    td_str list = td_str_from(text);
    memset(wants, 0, TD_INSTALL_PARTS * sizeof(*wants));
    do {
        td_str word = td_rights_word(&list);
        size_t part = 0;
        while (part < TD_INSTALL_PARTS &&
               !td_str_equal(word, td_str_from(td_install_part_name((enum td_install_part)part)))) {
            part++;
        }
        if (part == TD_INSTALL_PARTS) {
            return td_command_fail(
                "manifests: --only: '%.*s': must be one of crds, rbac, webhooks, deployment",
                TD_STR_ARG(word));
        }
        wants[part] = true;
    } while (list.len > 0);
    return TD_EXIT_DONE;
}

static int manifests_parse_controllers(void *place, const char *text)
{
    return td_install_take_controllers("manifests", place, text);
}

static int manifests_parse_horizontal(void *place, const char *text)
{
    bool *features = place;
    return td_install_take_horizontal("manifests", &features[TD_FEATURE_BUILTIN], text);
}

static int manifests_parse_gates(void *place, const char *text)
{
    struct manifests *run = place;
    struct td_error err = TD_ERROR_INIT;
    run->options.gates = td_str_from(text);
    return td_gates_set(&run->controllers, run->options.gates, &err) == TD_OK
               ? TD_EXIT_DONE
               : td_command_fail("manifests: %s", err.message);
}

static int manifests_parse_text(void *place, const char *text)
{
    *(td_str *)place = td_str_from(text);
    return TD_EXIT_DONE;
}

static int manifests_parse_shards(void *place, const char *text)
{
    return td_install_take_shards("manifests", place, text);
}

static int manifests_parse_image(void *place, const char *text)
{
    struct manifests *run = place;
    run->options.image = td_str_from(text);
    run->has_image = true;
    return text[0] != '\0'
               ? TD_EXIT_DONE
               : td_command_fail("manifests: --image: '': must be the name of an image");
}

static const struct td_option manifests_options[] = {
    TD_OPTION("only", 0, struct manifests, options.wants, manifests_parse_only),
    TD_OPTION("namespace", 0, struct manifests, options.namespace, manifests_parse_text),
    {"image", 0, true, 0, manifests_parse_image},
    TD_OPTION("controllers", 0, struct manifests, options.has, manifests_parse_controllers),
    TD_OPTION("horizontal", 0, struct manifests, options.features, manifests_parse_horizontal),
    {"feature-gates", 0, true, 0, manifests_parse_gates},
    TD_OPTION_FLAG("template-actuation", 0, struct manifests,
                   options.features[TD_FEATURE_TEMPLATES]),
    TD_OPTION_FLAG("metrics-tls", 0, struct manifests, options.features[TD_FEATURE_REVIEWS]),
    TD_OPTION_FLAG("cap-to-node", 0, struct manifests, options.features[TD_FEATURE_NODES]),
    TD_OPTION_FLAG("annotate-resized-pods", 0, struct manifests,
                   options.features[TD_FEATURE_ANNOTATE]),
    TD_OPTION("shards", 0, struct manifests, options.shards, manifests_parse_shards),
    TD_OPTION_FLAG("skip-vpa-crds", 0, struct manifests, options.skips_vpa_crds),
    TD_OPTION_FLAG("replace-upstream", 0, struct manifests, options.replaces_upstream),
    TD_OPTION_FLAG("shadow", 0, struct manifests, is_shadow),
    TD_OPTION_FLAG("uninstall", 0, struct manifests, is_uninstall),
    TD_OPTION_FLAG("with-crds", 0, struct manifests, with_crds),
};

/* -1: go on. */
static int manifests_parse(struct manifests *run, int argc, char **argv)
{
    const struct td_options options = {"manifests", manifests_help, manifests_options,
                                       TD_COUNT(manifests_options)};
    int status = td_options_parse(&options, run, argc, argv);
    return status < 0 && optind < argc
               ? td_command_fail("manifests: '%s': takes options only; see 'tandem manifests "
                                 "--help'",
                                 argv[optind])
               : status;
}

/* The image that was built with this program, if it was: the file holds one digest. */
static td_str manifests_image(struct td_arena *arena)
{
    const char *path = td_file_beside_program(arena, MANIFESTS_DIGEST);
    td_str digest;
    if (!path || !td_file_exists(path) ||
        td_file_read(path, arena, TD_ERROR_MESSAGE_BYTES, &digest, NULL) != TD_OK) {
        return TD_STR_EMPTY;
    }
    digest = td_str_trim(digest);
    return td_str_starts_with(digest, TD_STR("sha256:"))
               ? td_arena_format(arena, "tandem@%.*s", TD_STR_ARG(digest))
               : TD_STR_EMPTY;
}

/* -1: go on. */
static int manifests_settle(struct td_arena *arena, struct manifests *run)
{
    bool *wants = run->options.wants;
    bool *features = run->options.features;
    features[TD_FEATURE_HVPA] = run->controllers.hvpa_gate;
    features[TD_FEATURE_ANNOTATE] =
        features[TD_FEATURE_ANNOTATE] || run->controllers.gates.cpu_startup_boost;
    if (run->is_shadow && run->options.replaces_upstream) {
        return td_command_fail("manifests: --shadow and --replace-upstream exclude each other");
    }
    if (run->is_shadow) {
        td_install_take_shadow(run->options.has);
    }
    if (run->with_crds && !run->is_uninstall) {
        return td_command_fail("manifests: --with-crds: goes with --uninstall only");
    }
    if (run->is_uninstall && !run->with_crds) {
        wants[TD_INSTALL_CRDS] = false;
        if (!wants[TD_INSTALL_RBAC] && !wants[TD_INSTALL_WEBHOOKS] &&
            !wants[TD_INSTALL_DEPLOYMENT]) {
            return td_command_fail("manifests: --only crds --uninstall: deletes every VPA and "
                                   "checkpoint; add --with-crds if that is meant");
        }
    }
    if (features[TD_FEATURE_REVIEWS] && !run->options.has[TD_CONTROLLER_ADMISSION]) {
        return td_command_fail("manifests: --metrics-tls: needs the certificate of the webhook; "
                               "install admission too (--controllers)");
    }
    if (!run->has_image) {
        run->options.image = manifests_image(arena);
    }
    return -1;
}

static int manifests_print(struct manifests *run)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    int status = manifests_settle(&arena, run);
    if (status >= 0) {
        return status;
    }
    td_auto_buf text = td_buf_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_json *objects = NULL;
    struct td_error err = TD_ERROR_INIT;
    int code = run->is_uninstall ? td_install_leftovers(&arena, &run->options, &objects, &err)
                                 : td_install_objects(&arena, &run->options, &objects, &err);
    if (code != TD_OK) {
        return td_command_fail("manifests: %s", err.message);
    }
    for (const struct td_json *object = td_json_first_item(objects); object;
         object = object->next) {
        td_str kind = td_json_get_str(object, TD_STR("kind"), TD_STR_EMPTY);
        (void)td_buf_append(&text, TD_STR("---\n"));
        if (run->is_uninstall && !run->with_crds && object == td_json_first_item(objects)) {
            (void)td_buf_append(&text, TD_STR("# The CustomResourceDefinitions stay, and with them "
                                              "every VPA and checkpoint (--with-crds).\n"));
        }
        if (!run->is_uninstall && td_str_ends_with(kind, TD_STR("WebhookConfiguration"))) {
            (void)td_buf_append(&text, TD_STR("# The admission controller adds the caBundle, and "
                                              "restores this when it is deleted.\n"));
        }
        td_output_yaml(object, &text);
    }
    if (td_buf_check(&text, "the manifests", &err) < 0) {
        return td_command_fail("%s", err.message);
    }
    (void)fwrite(text.ptr, 1, text.len, stdout); /* main looks at the stream's state */
    return TD_EXIT_DONE;
}

int td_command_manifests(int argc, char **argv)
{
    struct manifests run = {
        .options = {.wants = {true, true, true, true}, .namespace = TD_STR(TD_INSTALL_NAMESPACE)},
        .controllers = td_controllers_options_default(),
    };
    memcpy(run.options.has, run.controllers.has, sizeof(run.options.has));
    int status = manifests_parse(&run, argc, argv);
    return status < 0 ? manifests_print(&run) : status;
}
