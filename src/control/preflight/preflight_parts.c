/*
 * Programs that do the same work: upstream's parts and other installations of ours, found by the
 * images of Deployments of every namespace and by the leases in kube-system; and the registration
 * of webhooks, ours and upstream's.
 */
#include "base/base64.h"
#include "base/limits.h"
#include "base/pki/pki.h"
#include "control/admission/webhook.h"
#include "control/controllers.h"
#include "control/preflight/preflight_private.h"
#include "control/upstream.h"

#define PARTS_LEASE_MAX TD_MINUTE /* the slowest of them is renewed every ten seconds */

struct parts_program {
    const char *image; /* its last part */
    enum td_controller_kind kind;
};

static const struct parts_program parts_programs[] = {
    {"vpa-recommender", TD_CONTROLLER_RECOMMENDER},
    {"vpa-updater", TD_CONTROLLER_UPDATER},
    {"vpa-admission-controller", TD_CONTROLLER_ADMISSION},
    {"hvpa-controller", TD_CONTROLLER_HVPA},
    {"tandem", TD_CONTROLLER_COUNT},
};

/* ---- Deployments ---- */

/* "registry.k8s.io/autoscaling/vpa-updater-amd64:1.8.1" is of "vpa-updater". */
static const char *parts_program_of(td_str image)
{
    size_t from = image.len;
    while (from > 0 && image.ptr[from - 1] != '/') {
        from--;
    }
    td_str last = td_str_slice(image, from, image.len);
    size_t tag = td_str_find(last, ':', 0);
    size_t digest = td_str_find(last, '@', 0);
    last = td_str_slice(last, 0, tag < digest ? tag : digest);
    for (size_t i = 0; i < TD_COUNT(parts_programs); i++) {
        td_str name = td_str_from(parts_programs[i].image);
        bool is_name = td_str_starts_with(last, name);
        if (is_name && (last.len == name.len || last.ptr[name.len] == '-')) {
            return parts_programs[i].image;
        }
    }
    return NULL;
}

static void parts_take(struct td_preflight *preflight, const struct td_json *deployment)
{
    const struct td_json *container =
        td_json_first_item(td_json_get_path(deployment, "spec.template.spec.containers"));
    const struct td_json *metadata = td_json_get(deployment, TD_STR("metadata"));
    for (; container; container = container->next) {
        td_str image = td_json_text(container, "image");
        const char *program = parts_program_of(image);
        struct preflight_part *part = program ? td_vec_push(&preflight->parts) : NULL;
        if (part) {
            struct td_arena *arena = &preflight->arena;
            *part = (struct preflight_part){
                .program = program,
                .namespace = td_arena_copy_str(arena, td_json_text(metadata, "namespace")),
                .name = td_arena_copy_str(arena, td_json_text(metadata, "name")),
                .image = td_arena_copy_str(arena, image),
                .replicas = td_json_get_int64(td_json_get(deployment, TD_STR("spec")),
                                              TD_STR("replicas"), 1),
            };
        }
    }
}

void preflight_take_parts(struct td_preflight *preflight, const struct td_json *list)
{
    for (const struct td_json *one = td_json_first_item(td_json_get(list, TD_STR("items"))); one;
         one = one->next) {
        parts_take(preflight, one);
    }
}

/* ---- Leases ---- */

/* The holder of a lease of kube-system that is renewed; empty: none. */
static td_str parts_holder(const struct td_preflight *preflight, td_str name)
{
    const struct td_json *items =
        td_json_get(preflight_tree(preflight, PREFLIGHT_LEASES), TD_STR("items"));
    for (const struct td_json *lease = td_json_first_item(items); lease; lease = lease->next) {
        const struct td_json *spec = td_json_get(lease, TD_STR("spec"));
        const struct td_json *metadata = td_json_get(lease, TD_STR("metadata"));
        td_str found = td_json_text(metadata, "name");
        td_str renewed = td_json_text(spec, "renewTime"); /* upstream's has none at first */
        td_duration age = preflight_age(
            preflight, renewed.len > 0 ? renewed : td_json_text(metadata, "creationTimestamp"));
        if (td_str_equal(found, name) && (age == TD_TIME_NONE || age < PARTS_LEASE_MAX)) {
            return td_json_text(spec, "holderIdentity");
        }
    }
    return TD_STR_EMPTY;
}

static td_str parts_upstream_holder(const struct td_preflight *preflight,
                                    enum td_controller_kind kind)
{
    const char *lease = td_controller_upstream_lease(kind);
    td_str holder = lease ? parts_holder(preflight, td_str_from(lease)) : TD_STR_EMPTY;
    return td_str_starts_with(holder, TD_STR(TD_IDENTITY_OURS)) ? TD_STR_EMPTY : holder;
}

/* ---- Upstream's ---- */

static void parts_tell_upstream(struct td_preflight *preflight, const struct preflight_part *part,
                                enum td_controller_kind kind)
{
    struct td_arena *arena = &preflight->arena;
    const struct td_preflight_options *options = &preflight->options;
    bool is_seen = td_str_equal(part->namespace, TD_STR(TD_UPSTREAM_NAMESPACE)) ||
                   parts_upstream_holder(preflight, kind).len > 0;
    bool is_taken = options->install.replaces_upstream && is_seen;
    td_str found =
        td_arena_format(arena, "%s acts: Deployment %.*s/%.*s, %lld replica%s", part->program,
                        TD_STR_ARG(part->namespace), TD_STR_ARG(part->name),
                        (long long)part->replicas, TD_PLURAL(part->replicas));
    if (preflight_is_shadow(preflight) || (is_taken && kind != TD_CONTROLLER_HVPA)) {
        preflight_tell(
            preflight, TD_FINDING_OK, "upstream", found,
            preflight_is_shadow(preflight)
                ? TD_STR("--shadow leaves everything to it")
                : TD_STR("--replace-upstream stands by and takes over (docs/migrate.md)"));
        return;
    }
    preflight_tell(preflight, TD_FINDING_MEND, "upstream", found,
                   td_arena_format(arena, "kubectl -n %.*s scale deployment %.*s --replicas=0; %s",
                                   TD_STR_ARG(part->namespace), TD_STR_ARG(part->name),
                                   is_seen && kind != TD_CONTROLLER_HVPA
                                       ? "until then ours holds, or use --replace-upstream"
                                       : "ours would act beside it"));
}

/* A program that is no Deployment here, known by its lease only. */
static void parts_tell_lease(struct td_preflight *preflight, enum td_controller_kind kind,
                             td_str holder)
{
    const struct td_preflight_options *options = &preflight->options;
    bool is_fine = preflight_is_shadow(preflight) || options->install.replaces_upstream;
    preflight_tell(
        preflight, is_fine ? TD_FINDING_OK : TD_FINDING_MEND, "upstream",
        td_arena_format(&preflight->arena, "'%.*s' holds lease " TD_UPSTREAM_NAMESPACE "/%s",
                        TD_STR_ARG(holder), td_controller_upstream_lease(kind)),
        preflight_is_shadow(preflight) ? TD_STR("--shadow leaves everything to it")
        : is_fine ? TD_STR("--replace-upstream stands by and takes over (docs/migrate.md)")
                  : TD_STR("stop it; until then ours holds, or use --replace-upstream"));
}

static size_t parts_judge_kind(struct td_preflight *preflight, enum td_controller_kind kind)
{
    size_t reported = 0;
    for (size_t i = 0; i < preflight->parts.count; i++) {
        const struct preflight_part *part = &preflight->parts.items[i];
        for (size_t row = 0; row < TD_COUNT(parts_programs); row++) {
            if (part->replicas > 0 && part->program == parts_programs[row].image &&
                parts_programs[row].kind == kind) {
                parts_tell_upstream(preflight, part, kind);
                reported++;
            }
        }
    }
    td_str holder = parts_upstream_holder(preflight, kind);
    if (reported == 0 && holder.len > 0) {
        parts_tell_lease(preflight, kind, holder);
        reported++;
    }
    return reported;
}

/* ---- Ours ---- */

static size_t parts_judge_own(struct td_preflight *preflight)
{
    struct td_arena *arena = &preflight->arena;
    td_str namespace = preflight->options.install.namespace;
    size_t reported = 0;
    for (size_t i = 0; i < preflight->parts.count; i++) {
        const struct preflight_part *part = &preflight->parts.items[i];
        if (part->program == parts_programs[TD_COUNT(parts_programs) - 1].image &&
            part->replicas > 0 && !td_str_equal(part->namespace, namespace)) {
            td_str place = part->namespace;
            reported++;
            preflight_tell(
                preflight, TD_FINDING_MEND, "tandem",
                td_arena_format(arena, "another installation: Deployment %.*s/%.*s",
                                TD_STR_ARG(place), TD_STR_ARG(part->name)),
                td_arena_format(arena,
                                "tandem manifests --uninstall --namespace %.*s | kubectl delete "
                                "--ignore-not-found -f -",
                                TD_STR_ARG(place)));
        }
    }
    for (size_t kind = 0; kind < TD_CONTROLLER_COUNT; kind++) {
        const char *lease = td_controller_lease((enum td_controller_kind)kind);
        td_str holder = lease ? parts_holder(preflight, td_str_from(lease)) : TD_STR_EMPTY;
        if (preflight->options.install.has[kind] &&
            td_str_starts_with(holder, TD_STR(TD_IDENTITY_ALONE))) {
            reported++;
            preflight_tell(
                preflight, TD_FINDING_MEND, "tandem",
                td_arena_format(arena,
                                "a 'tandem run' outside the cluster runs the %s: '%.*s' holds "
                                "lease " TD_UPSTREAM_NAMESPACE "/%s",
                                td_controller_name((enum td_controller_kind)kind),
                                TD_STR_ARG(holder), lease),
                TD_STR("stop it, or leave that controller out with --controllers"));
        }
    }
    return reported;
}

void preflight_judge_parts(struct td_preflight *preflight)
{
    const struct preflight_answer *list = preflight_answer(preflight, PREFLIGHT_DEPLOYMENTS);
    size_t reported = 0;
    if (preflight->options.is_short) {
        return;
    }
    for (size_t kind = 0; kind < TD_CONTROLLER_COUNT; kind++) {
        if (preflight->options.install.has[kind] || preflight_is_shadow(preflight)) {
            reported += parts_judge_kind(preflight, (enum td_controller_kind)kind);
        }
    }
    reported += preflight_is_shadow(preflight) ? 0 : parts_judge_own(preflight);
    if (list->code != TD_OK || preflight_is_denied(preflight, PREFLIGHT_LEASES)) {
        preflight_tell(preflight, TD_FINDING_NOTE, "upstream",
                       TD_STR("Deployments of all namespaces, or leases of kube-system, may not be "
                              "listed"),
                       TD_STR("ask one who may, to see whether another autoscaler runs"));
    } else if (reported == 0) {
        preflight_tell(preflight, TD_FINDING_OK, "upstream",
                       TD_STR("no other vertical autoscaler runs"), TD_STR_EMPTY);
    }
}

/* ---- Webhooks ---- */

static const struct td_json *parts_configuration(const struct td_preflight *preflight, td_str name)
{
    const struct td_json *items =
        td_json_get(preflight_tree(preflight, PREFLIGHT_WEBHOOKS), TD_STR("items"));
    for (const struct td_json *one = td_json_first_item(items); one; one = one->next) {
        if (td_str_equal(td_json_text(td_json_get(one, TD_STR("metadata")), "name"), name)) {
            return one;
        }
    }
    return NULL;
}

static td_str parts_pem(struct td_preflight *preflight, const struct td_json *data, const char *key)
{
    td_str bytes = TD_STR_EMPTY;
    return td_base64_read(&preflight->arena, td_json_text(data, key), TD_BASE64_STANDARD, &bytes)
               ? td_str_trim(bytes)
               : TD_STR_EMPTY;
}

static void parts_judge_authority(struct td_preflight *preflight,
                                  const struct td_json *configuration, td_str name)
{
    struct td_arena *arena = &preflight->arena;
    const struct td_json *hook = td_json_first_item(td_json_get(configuration, TD_STR("webhooks")));
    const struct td_json *data =
        td_json_get(preflight_tree(preflight, PREFLIGHT_SECRET), TD_STR("data"));
    td_str known = parts_pem(preflight, td_json_get(hook, TD_STR("clientConfig")), "caBundle");
    td_str authority = parts_pem(preflight, data, "caCert.pem");
    td_str certificate = parts_pem(preflight, data, "serverCert.pem");
    struct td_pki_validity valid;
    bool is_known = td_pki_validity_of(certificate, &valid, NULL) == TD_OK;
    td_str place = preflight->options.install.namespace;
    if (known.len == 0) {
        preflight_tell(preflight, TD_FINDING_NOTE, "webhook",
                       td_arena_format(arena, "%.*s has no caBundle yet", TD_STR_ARG(name)),
                       td_arena_format(arena, "kubectl -n %.*s rollout status deployment tandem",
                                       TD_STR_ARG(place)));
    } else if (data && !td_str_equal(known, authority)) {
        preflight_tell(preflight, TD_FINDING_MEND, "webhook",
                       td_arena_format(arena,
                                       "caBundle of %.*s is not the authority in Secret "
                                       "%.*s/tandem-webhook-tls: no pod is changed",
                                       TD_STR_ARG(name), TD_STR_ARG(place)),
                       td_arena_format(arena, "kubectl -n %.*s rollout restart deployment tandem",
                                       TD_STR_ARG(place)));
    } else if (is_known &&
               td_time_from_instant(valid.not_after) < td_clock_wall(preflight->options.clock)) {
        preflight_tell(preflight, TD_FINDING_MEND, "webhook",
                       TD_STR("the webhook's certificate has expired"),
                       td_arena_format(arena, "kubectl -n %.*s delete secret tandem-webhook-tls",
                                       TD_STR_ARG(place)));
    } else {
        preflight_tell(preflight, TD_FINDING_OK, "webhook",
                       td_arena_format(arena, "%.*s is registered%s", TD_STR_ARG(name),
                                       data ? " with its authority" : ""),
                       TD_STR_EMPTY);
    }
}

void preflight_judge_webhook(struct td_preflight *preflight)
{
    const struct td_preflight_options *options = &preflight->options;
    bool replaces = options->install.replaces_upstream;
    td_str name = replaces ? TD_STR(TD_WEBHOOK_UPSTREAM) : TD_STR(TD_WEBHOOK_INSIDE);
    const struct td_json *ours = parts_configuration(preflight, name);
    const struct td_json *theirs = parts_configuration(preflight, TD_STR(TD_WEBHOOK_UPSTREAM));
    bool is_alive = parts_upstream_holder(preflight, TD_CONTROLLER_ADMISSION).len > 0;
    if (options->is_short || preflight_is_shadow(preflight) ||
        !options->install.has[TD_CONTROLLER_ADMISSION]) {
        return;
    }
    if (preflight_is_denied(preflight, PREFLIGHT_WEBHOOKS)) {
        preflight_tell(preflight, TD_FINDING_NOTE, "webhook",
                       TD_STR("mutatingwebhookconfigurations may not be listed"),
                       TD_STR("ask one who may, to see who changes pods"));
        return;
    }
    if (theirs && !replaces && ours && is_alive) {
        preflight_tell(preflight, TD_FINDING_MEND, "webhook",
                       TD_STR(TD_WEBHOOK_INSIDE " and " TD_WEBHOOK_UPSTREAM " both change pods"),
                       TD_STR("stop upstream's admission controller, or use --replace-upstream"));
    } else if (theirs && !replaces && !is_alive) {
        preflight_tell(preflight, TD_FINDING_NOTE, "webhook",
                       TD_STR(TD_WEBHOOK_UPSTREAM " is registered, but no server answers for it"),
                       TD_STR("kubectl delete mutatingwebhookconfiguration " TD_WEBHOOK_UPSTREAM));
    }
    if (ours && !(replaces && is_alive)) {
        parts_judge_authority(preflight, ours, name);
    } else if (!ours) {
        preflight_tell(
            preflight, TD_FINDING_OK, "webhook",
            td_arena_format(&preflight->arena, "%.*s is not registered yet", TD_STR_ARG(name)),
            TD_STR_EMPTY);
    }
}
