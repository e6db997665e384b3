/*
 * What an installation brings or needs: definitions (whose they are, and which of our fields they
 * lack), rights, and pods that admission lets in.
 */
#include "api/hpa/hpa.h"
#include "api/hvpa/hvpa.h"
#include "api/vpa/vpa.h"
#include "base/limits.h"
#include "control/preflight/preflight_private.h"

#define INSTALL_FIELDS_MAX 8 /* named in one line */
#define INSTALL_DEPTH_MAX 24 /* of a schema */
#define INSTALL_RIGHTS_MAX 12

/* ---- Definitions ---- */

struct definition {
    enum preflight_question question;
    const char *plural;
    const char *version;
    struct td_json *(*make)(struct td_arena *arena); /* ours */
    bool is_vpa;                                     /* upstream's too */
};

static const struct definition definitions[] = {
    {PREFLIGHT_VPAS, "verticalpodautoscalers.autoscaling.k8s.io", "v1", td_vpa_crd, true},
    {PREFLIGHT_CHECKPOINTS, "verticalpodautoscalercheckpoints.autoscaling.k8s.io", "v1",
     td_vpa_checkpoint_crd, true},
    {PREFLIGHT_OWN_HPAS, "horizontalpodautoscalers.autoscaling.tandem.dev", "v2", td_hpa_crd,
     false},
    {PREFLIGHT_HVPAS, "hvpas.autoscaling.k8s.io", "v1alpha1", td_hvpa_crd, false},
    {PREFLIGHT_SHADOWS, TD_SHADOW_PLURAL "." TD_SHADOW_GROUP, TD_SHADOW_VERSION, td_vpa_shadow_crd,
     false},
};

static const struct td_json *definition_version(const struct td_json *crd, td_str name)
{
    const struct td_json *versions = td_json_get_path(crd, "spec.versions");
    for (const struct td_json *one = td_json_first_item(versions); one; one = one->next) {
        if (td_str_equal(td_json_text(one, "name"), name) &&
            td_json_get_bool(one, TD_STR("served"), false)) {
            return one;
        }
    }
    return NULL;
}

struct missing_fields {
    struct td_buf text; /* ".spec.selector, .spec.startupBoost" */
    size_t count;
};

static void definition_compare(const struct td_json *ours, const struct td_json *theirs,
                               td_str path, struct td_arena *arena, size_t depth,
                               struct missing_fields *ret);

static void definition_compare_member(const struct td_json *field, const struct td_json *theirs,
                                      td_str path, struct td_arena *arena, size_t depth,
                                      struct missing_fields *ret)
{
    const struct td_json *there =
        td_json_get(td_json_get(theirs, TD_STR("properties")), field->key);
    td_str name = td_arena_format(arena, "%.*s.%.*s", TD_STR_ARG(path), TD_STR_ARG(field->key));
    if (there) {
        definition_compare(field, there, name, arena, depth + 1, ret);
        return;
    }
    if (ret->count < INSTALL_FIELDS_MAX) {
        (void)td_buf_append_format(&ret->text, "%s%.*s", ret->count > 0 ? ", " : "",
                                   TD_STR_ARG(name));
    }
    ret->count++;
}

/* The highest fields of ours that the other schema does not keep. */
static void definition_compare(const struct td_json *ours, const struct td_json *theirs,
                               td_str path, struct td_arena *arena, size_t depth,
                               struct missing_fields *ret)
{
    static const td_str keeps = TD_STR_INIT("x-kubernetes-preserve-unknown-fields");
    if (depth > INSTALL_DEPTH_MAX || td_json_get_bool(theirs, keeps, false)) {
        return;
    }
    const struct td_json *properties = td_json_get(ours, TD_STR("properties"));
    for (const struct td_json *field = td_json_first_member(properties); field;
         field = field->next) {
        definition_compare_member(field, theirs, path, arena, depth, ret);
    }
    const struct td_json *items = td_json_get(ours, TD_STR("items"));
    const struct td_json *there = td_json_get(theirs, TD_STR("items"));
    if (items && there) {
        definition_compare(items, there, td_arena_format(arena, "%.*s[]", TD_STR_ARG(path)), arena,
                           depth + 1, ret);
    }
}

/* Who would have to be taken fields from; empty: the object does not tell. */
static td_str definition_owner(struct td_arena *arena, const struct td_json *crd)
{
    const struct td_json *metadata = td_json_get(crd, TD_STR("metadata"));
    const struct td_json *annotations = td_json_get(metadata, TD_STR("annotations"));
    td_str release = td_json_text(annotations, "meta.helm.sh/release-name");
    td_str names = TD_STR_EMPTY;
    if (release.len > 0) {
        return td_arena_format(
            arena, "Helm release %.*s/%.*s",
            TD_STR_ARG(td_json_text(annotations, "meta.helm.sh/release-namespace")),
            TD_STR_ARG(release));
    }
    for (const struct td_json *one =
             td_json_first_item(td_json_get(metadata, TD_STR("managedFields")));
         one; one = one->next) {
        td_str manager = td_json_text(one, "manager");
        bool is_status = td_json_text(one, "subresource").len > 0;
        if (!is_status && !td_str_equal(manager, TD_STR("kube-apiserver"))) {
            names = td_arena_format(arena, "%.*s%s'%.*s'", TD_STR_ARG(names),
                                    names.len > 0 ? " and " : "", TD_STR_ARG(manager));
        }
    }
    return names.len > 0 ? td_arena_format(arena, "manager %.*s", TD_STR_ARG(names)) : names;
}

/* " --controllers=updater,admission"; empty: all. */
static td_str install_controllers(struct td_arena *arena, const struct td_install_options *install)
{
    td_str list = TD_STR_EMPTY;
    size_t count = 0;
    for (int kind = 0; kind < TD_CONTROLLER_CHOICES; kind++) {
        if (install->has[kind]) {
            list = td_arena_format(arena, "%.*s%s%s", TD_STR_ARG(list),
                                   count == 0 ? " --controllers=" : ",",
                                   td_controller_name((enum td_controller_kind)kind));
            count++;
        }
    }
    return count == TD_CONTROLLER_CHOICES ? TD_STR_EMPTY : list;
}

/* The options that were given here. */
static td_str install_flags(struct td_preflight *preflight)
{
    const struct td_install_options *install = &preflight->options.install;
    struct td_arena *arena = &preflight->arena;
    bool is_usual = td_str_equal(install->namespace, TD_STR(TD_INSTALL_NAMESPACE));
    td_str place =
        is_usual ? TD_STR_EMPTY
                 : td_arena_format(arena, " --namespace %.*s", TD_STR_ARG(install->namespace));
    if (preflight_is_shadow(preflight)) {
        return td_arena_format(arena, " --shadow%.*s", TD_STR_ARG(place));
    }
    td_str shards = install->shards > 0 ? td_arena_format(arena, " --shards %zu", install->shards)
                                        : TD_STR_EMPTY;
    return td_arena_format(
        arena, "%s%.*s%.*s%s%.*s", install->replaces_upstream ? " --replace-upstream" : "",
        TD_STR_ARG(place), TD_STR_ARG(install_controllers(arena, install)),
        install->features[TD_FEATURE_BUILTIN] ? " --horizontal=builtin" : "", TD_STR_ARG(shards));
}

/* The command that installs a part. */
static td_str install_command(struct td_preflight *preflight, const char *part, const char *how)
{
    return td_arena_format(&preflight->arena,
                           "tandem manifests%.*s --only %s | kubectl apply --server-side%s -f -",
                           TD_STR_ARG(install_flags(preflight)), part, how);
}

/* How ours get there in place of another's. */
static td_str definition_remedy(struct td_preflight *preflight, td_str owner)
{
    return td_arena_format(&preflight->arena, "%.*s%s%.*s",
                           TD_STR_ARG(install_command(preflight, "crds", " --force-conflicts")),
                           owner.len > 0 ? " takes .spec.versions from " : "", TD_STR_ARG(owner));
}

/* "verticalpodautoscalers.autoscaling.k8s.io of Helm release a/b". */
static td_str definition_name(struct td_arena *arena, const struct definition *row, td_str owner)
{
    return td_arena_format(arena, "%s%s%.*s", row->plural, owner.len > 0 ? " of " : "",
                           TD_STR_ARG(owner));
}

static td_str definition_condition(const struct td_json *crd, const char *type)
{
    const struct td_json *conditions = td_json_get_path(crd, "status.conditions");
    for (const struct td_json *one = td_json_first_item(conditions); one; one = one->next) {
        if (td_str_equal(td_json_text(one, "type"), td_str_from(type))) {
            return td_str_equal(td_json_text(one, "status"), TD_STR("True"))
                       ? TD_STR_EMPTY
                       : td_json_text(one, "message");
        }
    }
    return TD_STR_EMPTY;
}

static void definition_judge_fields(struct td_preflight *preflight, const struct definition *row,
                                    const struct td_json *version, td_str owner)
{
    td_auto_arena turn = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_arena *arena = &preflight->arena;
    td_auto_buf text = td_buf_capped(TD_OBJECT_BYTES_MAX);
    struct missing_fields missing = {.text = text};
    td_str name = definition_name(arena, row, owner);
    const struct td_json *ours = definition_version(row->make(&turn), td_str_from(row->version));
    definition_compare(td_json_get_path(ours, "schema.openAPIV3Schema"),
                       td_json_get_path(version, "schema.openAPIV3Schema"), TD_STR_EMPTY, &turn, 0,
                       &missing);
    text = missing.text; /* it may have moved */
    if (missing.count == 0) {
        preflight_tell(preflight, TD_FINDING_OK, "crds",
                       td_arena_format(arena, "%.*s serves %s", TD_STR_ARG(name), row->version),
                       TD_STR_EMPTY);
        return;
    }
    td_str more = missing.count > INSTALL_FIELDS_MAX
                      ? td_arena_format(arena, " and %zu more", missing.count - INSTALL_FIELDS_MAX)
                      : TD_STR_EMPTY;
    if (row->is_vpa && preflight_is_shadow(preflight)) {
        return; /* upstream's own serves upstream */
    }
    preflight_tell(
        preflight, row->is_vpa ? TD_FINDING_NOTE : TD_FINDING_MEND, "crds",
        td_arena_format(arena, "%.*s does not keep %.*s%.*s", TD_STR_ARG(name),
                        TD_STR_ARG(td_buf_str(&missing.text)), TD_STR_ARG(more)),
        row->is_vpa ? td_arena_format(arena, "install with --skip-vpa-crds and do without, or %.*s",
                                      TD_STR_ARG(definition_remedy(preflight, owner)))
                    : definition_remedy(preflight, owner));
}

/* What upstream's has had for years and ours cannot do without. */
static bool definition_is_old(const struct td_json *version)
{
    static const char *const needed[] = {
        "spec.properties.updatePolicy.properties.minReplicas",
        "spec.properties.recommenders",
        "spec.properties.updatePolicy.properties.evictionRequirements",
    };
    const struct td_json *fields = td_json_get_path(version, "schema.openAPIV3Schema.properties");
    bool is_old = !td_json_get_path(version, "subresources.status");
    for (size_t i = 0; i < TD_COUNT(needed); i++) {
        is_old = is_old || !td_json_get_path(fields, needed[i]);
    }
    return is_old;
}

static void definition_judge(struct td_preflight *preflight, const struct definition *row)
{
    struct td_arena *arena = &preflight->arena;
    const struct td_json *crd = preflight_tree(preflight, row->question);
    const struct td_json *version = definition_version(crd, td_str_from(row->version));
    td_str owner = definition_owner(arena, crd);
    td_str name = definition_name(arena, row, owner);
    td_str problem = definition_condition(crd, "Established");
    problem = problem.len > 0 ? problem : definition_condition(crd, "NamesAccepted");
    if (!version) {
        preflight_tell(
            preflight, TD_FINDING_MEND, "crds",
            td_arena_format(arena, "%.*s does not serve %s", TD_STR_ARG(name), row->version),
            definition_remedy(preflight, owner));
    } else if (problem.len > 0) {
        preflight_tell(preflight, TD_FINDING_MEND, "crds",
                       td_arena_format(arena, "%s is not established (%.*s)", row->plural,
                                       TD_STR_ARG(problem)),
                       TD_STR("delete the definition that has its names"));
    } else if (row->question == PREFLIGHT_VPAS && definition_is_old(version)) {
        preflight_tell(preflight, TD_FINDING_MEND, "crds",
                       td_arena_format(arena,
                                       "%.*s is too old: it lacks the status subresource, or "
                                       "spec.recommenders, updatePolicy.minReplicas or "
                                       "updatePolicy.evictionRequirements",
                                       TD_STR_ARG(name)),
                       definition_remedy(preflight, owner));
    } else {
        definition_judge_fields(preflight, row, version, owner);
    }
}

static bool definition_is_needed(const struct td_preflight *preflight, const struct definition *row)
{
    const bool *has = preflight->options.install.has;
    switch (row->question) {
    case PREFLIGHT_OWN_HPAS:
        return has[TD_CONTROLLER_HORIZONTAL];
    case PREFLIGHT_HVPAS:
        return has[TD_CONTROLLER_HVPA];
    case PREFLIGHT_SHADOWS:
        return has[TD_CONTROLLER_SHADOW];
    default:
        return has[TD_CONTROLLER_RECOMMENDER] || has[TD_CONTROLLER_UPDATER] ||
               has[TD_CONTROLLER_ADMISSION] || has[TD_CONTROLLER_HVPA] || has[TD_CONTROLLER_SHADOW];
    }
}

/* With the eyes of a user who may read no definition: whether VPAs are served. */
static void definition_judge_short(struct td_preflight *preflight)
{
    const struct preflight_answer *served = preflight_answer(preflight, PREFLIGHT_SERVED);
    if (served->is_asked && served->code == TD_NOT_FOUND &&
        definition_is_needed(preflight, &definitions[0])) {
        preflight_tell(preflight, TD_FINDING_MEND, "crds",
                       TD_STR("autoscaling.k8s.io/v1 is not served: there are no VPAs"),
                       TD_STR("tandem manifests --only crds | kubectl apply --server-side -f -"));
    }
}

void preflight_judge_definitions(struct td_preflight *preflight)
{
    bool is_installed = preflight_tree(preflight, PREFLIGHT_ACCOUNT) != NULL;
    if (preflight->options.is_short) {
        definition_judge_short(preflight);
        return;
    }
    for (size_t i = 0; i < TD_COUNT(definitions); i++) {
        const struct definition *row = &definitions[i];
        const struct preflight_answer *answer = preflight_answer(preflight, row->question);
        td_str name = td_str_from(row->plural);
        if (!definition_is_needed(preflight, row)) {
            continue;
        }
        if (answer->code == TD_NOT_FOUND) {
            preflight_tell(
                preflight, is_installed ? TD_FINDING_MEND : TD_FINDING_OK, "crds",
                td_arena_format(&preflight->arena, "%.*s is not installed", TD_STR_ARG(name)),
                is_installed ? install_command(preflight, "crds", "") : TD_STR_EMPTY);
        } else if (answer->code != TD_OK) {
            preflight_tell(
                preflight, TD_FINDING_NOTE, "crds",
                td_arena_format(&preflight->arena, "%.*s cannot be read", TD_STR_ARG(name)),
                TD_STR("ask one who may read customresourcedefinitions"));
        } else {
            definition_judge(preflight, row);
        }
    }
}

/* ---- Rights ---- */

void preflight_judge_rights(struct td_preflight *preflight)
{
    struct td_arena *arena = &preflight->arena;
    td_str place = preflight->options.install.namespace;
    td_str who = preflight->is_account
                     ? td_arena_format(arena, "service account %.*s/tandem", TD_STR_ARG(place))
                     : TD_STR("you");
    td_str remedy = preflight->is_account ? install_command(preflight, "rbac", "")
                                          : TD_STR("install with an account that has it");
    td_str lines = preflight->missing;
    if (preflight->options.is_short) {
        return;
    }
    for (size_t i = 0; i < INSTALL_RIGHTS_MAX && lines.len > 0; i++) {
        size_t end = td_str_find(lines, '\n', 0);
        td_str line = td_str_slice(lines, 0, end);
        lines = td_str_slice(lines, end < lines.len ? end + 1 : end, lines.len);
        preflight_tell(preflight, TD_FINDING_MEND, "rights",
                       td_arena_format(arena, "%.*s lack%s %.*s", TD_STR_ARG(who),
                                       preflight->is_account ? "s" : "", TD_STR_ARG(line)),
                       remedy);
    }
    if (preflight->missing_count > INSTALL_RIGHTS_MAX) {
        preflight_tell(preflight, TD_FINDING_MEND, "rights",
                       td_arena_format(arena, "%.*s lack%s %zu more", TD_STR_ARG(who),
                                       preflight->is_account ? "s" : "",
                                       preflight->missing_count - INSTALL_RIGHTS_MAX),
                       remedy);
    } else if (preflight->access_error.code != TD_OK) {
        preflight_tell(preflight, TD_FINDING_NOTE, "rights",
                       td_arena_format(arena, "cannot ask for the rights of %.*s (%s)",
                                       TD_STR_ARG(who), preflight->access_error.message),
                       TD_STR("ask one who may create subjectaccessreviews"));
    } else if (preflight->missing_count == 0) {
        preflight_tell(preflight, TD_FINDING_OK, "rights",
                       td_arena_format(arena, "%.*s ha%s all %zu", TD_STR_ARG(who),
                                       preflight->is_account ? "s" : "ve", preflight->rights_count),
                       TD_STR_EMPTY);
    }
}

/* ---- Pods ---- */

void preflight_judge_pods(struct td_preflight *preflight)
{
    struct td_arena *arena = &preflight->arena;
    const struct preflight_answer *pod = preflight_answer(preflight, PREFLIGHT_TRY_POD);
    td_str place = preflight_place(preflight);
    if (preflight->options.is_short) {
        return;
    }
    if (pod->code == TD_OK && pod->warning.len > 0) {
        preflight_tell(preflight, TD_FINDING_NOTE, "pods",
                       td_arena_format(arena, "the program's pod is let in with a warning: %.*s",
                                       TD_STR_ARG(pod->warning)),
                       TD_STR_EMPTY);
    } else if (pod->code == TD_OK) {
        preflight_tell(preflight, TD_FINDING_OK, "pods",
                       td_arena_format(arena, "the program's pod is let into namespace %.*s",
                                       TD_STR_ARG(place)),
                       TD_STR_EMPTY);
    } else {
        preflight_tell(preflight, TD_FINDING_MEND, "pods",
                       td_arena_format(arena, "the program's pod is refused in namespace %.*s: %s",
                                       TD_STR_ARG(place), pod->err.message),
                       td_arena_format(arena,
                                       "exempt namespace %.*s from what refuses it, or change that",
                                       TD_STR_ARG(preflight->options.install.namespace)));
    }
}
