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
#include "cli/command.h"
#include "cli/options.h"
#include "cli/output.h"
#include "control/controllers.h"
#include "control/install.h"

static const char manifests_help[] =
    "print the manifests that a cluster needs to run the controllers\n\n"
    "  tandem manifests | kubectl apply --server-side -f -     for example: install\n"
    "  tandem manifests --uninstall | kubectl delete --ignore-not-found -f -\n"
    "  tandem manifests --only crds,rbac                       only some parts\n\n"
    "usage: tandem manifests [OPTIONS]\n\n"
    "  --only PARTS          comma-separated parts, of crds, rbac, webhooks,\n"
    "                        deployment (all)\n"
    "  --namespace NAME      namespace of the Deployment, must exist (kube-system)\n"
    "  --image IMAGE         container image (tandem:" TANDEM_VERSION ")\n"
    "  --controllers LIST    controllers to run, of recommender, updater, admission,\n"
    "                        horizontal, hvpa (all); omits what the others need\n"
    "  --horizontal=builtin  reconcile HPAs of autoscaling/v2 too, in clusters where\n"
    "                        kube-controller-manager does not (off)\n"
    "  --uninstall           print the objects to delete, in order; deleting the\n"
    "                        CRDs deletes all their objects\n\n"
    "Guide: docs/run.md\n";

struct manifests {
    struct td_install_options options;
    bool is_uninstall;
};

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
    struct td_error err = TD_ERROR_INIT;
    if (td_controllers_choose(td_str_from(text), place, &err) != TD_OK) {
        return td_command_fail("manifests: --controllers: %s", err.message);
    }
    return TD_EXIT_DONE;
}

static int manifests_parse_horizontal(void *place, const char *text)
{
    bool *serves_builtin = place;
    *serves_builtin = strcmp(text, "builtin") == 0;
    if (!*serves_builtin && strcmp(text, "off") != 0) {
        return td_command_fail("manifests: --horizontal: '%s': must be off or builtin", text);
    }
    return TD_EXIT_DONE;
}

static int manifests_parse_text(void *place, const char *text)
{
    *(td_str *)place = td_str_from(text);
    return TD_EXIT_DONE;
}

static const struct td_option manifests_options[] = {
    TD_OPTION("only", 0, struct manifests, options.wants, manifests_parse_only),
    TD_OPTION("namespace", 0, struct manifests, options.namespace, manifests_parse_text),
    TD_OPTION("image", 0, struct manifests, options.image, manifests_parse_text),
    TD_OPTION("controllers", 0, struct manifests, options.has, manifests_parse_controllers),
    TD_OPTION("horizontal", 0, struct manifests, options.serves_builtin,
              manifests_parse_horizontal),
    TD_OPTION_FLAG("uninstall", 0, struct manifests, is_uninstall),
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

static int manifests_print(const struct manifests *run)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
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
    const struct td_controllers_options defaults = td_controllers_options_default();
    struct manifests run = {
        .options = {.wants = {true, true, true, true},
                    .namespace = TD_STR("kube-system"),
                    .image = TD_STR("tandem:" TANDEM_VERSION)},
    };
    memcpy(run.options.has, defaults.has, sizeof(run.options.has));
    int status = manifests_parse(&run, argc, argv);
    return status < 0 ? manifests_print(&run) : status;
}
