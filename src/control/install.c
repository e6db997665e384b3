/*
 * Templates of the objects as YAML text, read into trees and filled with names, rights and flags.
 * The order of td_install_objects is the order in which a cluster can take them.
 */
#include "control/install.h"

#include <string.h>

#include "api/hpa/hpa.h"
#include "api/hvpa/hvpa.h"
#include "api/vpa/vpa.h"
#include "base/assert.h"
#include "base/error.h"
#include "base/yaml/yaml.h"
#include "control/admission/webhook_private.h"
#include "control/controllers.h"
#include "control/upstream.h"
#include "kube/names.h"

#define INSTALL_NAME "tandem"

struct install {
    struct td_arena *arena;
    const struct td_install_options *options;
    struct td_json *objects;
    td_str name;      /* of account and program */
    td_str component; /* the controller that is alone; empty: there are more */
};

static struct install install_begin(struct td_arena *arena,
                                    const struct td_install_options *options)
{
    struct install install = {.arena = arena,
                              .options = options,
                              .objects = td_json_new_array(arena),
                              .name = TD_STR(INSTALL_NAME)};
    size_t count = 0;
    for (size_t kind = 0; kind < TD_CONTROLLER_COUNT; kind++) {
        const char *name = td_controller_name((enum td_controller_kind)kind);
        count += options->has[kind];
        count += options->has[kind] && kind == TD_CONTROLLER_SHADOW; /* it makes way for all */
        install.component = options->has[kind] ? td_str_from(name) : install.component;
    }
    install.component = count == 1 ? install.component : TD_STR_EMPTY;
    if (install.component.len > 0) {
        install.name = td_arena_format(arena, INSTALL_NAME "-%.*s", TD_STR_ARG(install.component));
    }
    return install;
}

const char *td_install_part_name(enum td_install_part part)
{
    static const char *const names[TD_INSTALL_PARTS] = {
        [TD_INSTALL_CRDS] = "crds",
        [TD_INSTALL_RBAC] = "rbac",
        [TD_INSTALL_WEBHOOKS] = "webhooks",
        [TD_INSTALL_DEPLOYMENT] = "deployment",
    };
    return names[part];
}

/* An object from a text of ours. */
static struct td_json *install_read(struct install *install, const char *text)
{
    struct td_yaml_documents documents = {.count = 0};
    int code = td_yaml_parse(install->arena, td_str_from(text), &documents, NULL);
    td_assert(code == TD_OK);
    td_assert(documents.count == 1);
    return documents.items[0];
}

static void install_add(struct install *install, struct td_json *object)
{
    td_json_append(install->objects, object);
}

/* What tells its pods from those of another controller that is alone. */
static void install_mark(const struct install *install, struct td_json *labels)
{
    td_json_set_text(install->arena, labels, TD_STR("app.kubernetes.io/component"),
                     install->component);
}

/* With name, and namespace unless that is empty. */
static struct td_json *install_name(struct install *install, struct td_json *object, td_str name,
                                    td_str namespace)
{
    struct td_arena *arena = install->arena;
    struct td_json *metadata = td_json_ensure_object(arena, object, TD_STR("metadata"));
    td_json_set_str(arena, metadata, TD_STR("name"), name);
    td_json_set_text(arena, metadata, TD_STR("namespace"), namespace);
    struct td_json *labels = td_json_ensure_object(arena, metadata, TD_STR("labels"));
    td_json_set_str(arena, labels, TD_STR("app.kubernetes.io/name"), TD_STR(INSTALL_NAME));
    install_mark(install, labels);
    return object;
}

/* An object of the program's namespace, from a text of ours; `selector`: the path of the labels by
 * which it finds the pods, or NULL. */
static struct td_json *install_add_text(struct install *install, const char *text, td_str name,
                                        const char *selector)
{
    struct td_json *object =
        install_name(install, install_read(install, text), name, install->options->namespace);
    if (selector) {
        install_mark(install, td_json_get_path(object, selector));
    }
    install_add(install, object);
    return object;
}

/* ---- Definitions ---- */

/* Helm leaves such an object when a release that has it is uninstalled: its objects go with it. */
static void install_add_crd(struct install *install, struct td_json *crd)
{
    struct td_arena *arena = install->arena;
    struct td_json *metadata = td_json_ensure_object(arena, crd, TD_STR("metadata"));
    struct td_json *annotations = td_json_ensure_object(arena, metadata, TD_STR("annotations"));
    td_json_set_str(arena, annotations, TD_STR("helm.sh/resource-policy"), TD_STR("keep"));
    install_add(install, crd);
}

static void install_crds(struct install *install)
{
    const bool *has = install->options->has;
    bool is_vertical = has[TD_CONTROLLER_RECOMMENDER] || has[TD_CONTROLLER_UPDATER] ||
                       has[TD_CONTROLLER_ADMISSION] || has[TD_CONTROLLER_HVPA];
    if (is_vertical && !install->options->skips_vpa_crds) {
        install_add_crd(install, td_vpa_crd(install->arena));
        install_add_crd(install, td_vpa_checkpoint_crd(install->arena));
    }
    if (has[TD_CONTROLLER_HORIZONTAL]) {
        install_add_crd(install, td_hpa_crd(install->arena));
    }
    if (has[TD_CONTROLLER_HVPA]) {
        install_add_crd(install, td_hvpa_crd(install->arena));
    }
    if (has[TD_CONTROLLER_SHADOW]) {
        install_add_crd(install, td_vpa_shadow_crd(install->arena));
    }
}

/* ---- Rights ---- */

static struct td_json *install_words(struct install *install, const char *list)
{
    struct td_json *words = td_json_new_array(install->arena);
    td_str rest = td_str_from(list);
    if (rest.len == 0) {
        td_json_append(words, td_json_new_string(install->arena, TD_STR_EMPTY));
    }
    while (rest.len > 0) {
        td_json_append(words, td_json_new_string(install->arena, td_rights_word(&rest)));
    }
    return words;
}

/* The namespace of what a right is about; empty: everywhere. All leases are in one namespace, in
 * which every installation sees those of the others. */
static td_str install_place(const struct install *install, const struct td_right *right)
{
    switch (right->place) {
    case TD_RIGHT_EVERYWHERE:
    case TD_RIGHT_PLACES:
        break;
    case TD_RIGHT_OWN:
        return install->options->namespace;
    case TD_RIGHT_ELECTION:
    case TD_RIGHT_STATUS:
    case TD_RIGHT_STATUS_READ:
    case TD_RIGHT_UPSTREAM:
    case TD_RIGHT_SHARDS:
        return TD_STR(TD_UPSTREAM_NAMESPACE);
    }
    return TD_STR_EMPTY;
}

/* As the flags of `tandem run` settle them. */
static td_str install_right_name(const struct install *install, const struct td_right *right)
{
    const struct td_install_options *options = install->options;
    bool is_status = right->place == TD_RIGHT_STATUS || right->place == TD_RIGHT_STATUS_READ;
    bool is_mixed = options->has[TD_CONTROLLER_UPDATER] != options->has[TD_CONTROLLER_ADMISSION];
    return td_right_name(right, options->replaces_upstream || (is_status && is_mixed));
}

/* What one controller needs in a namespace, or everywhere; `word`: for that feature. */
static struct td_json *install_rules(struct install *install, size_t kind, td_str namespace,
                                     td_str word)
{
    struct td_arena *arena = install->arena;
    struct td_json *rules = td_json_new_array(arena);
    size_t count;
    const struct td_right *rights = td_rights(&count);
    for (size_t i = 0; i < count; i++) {
        const struct td_right *right = &rights[i];
        bool is_sharded = install->options->shards > 0;
        bool is_off = (right->place == TD_RIGHT_UPSTREAM && install->options->replaces_upstream) ||
                      (right->place == TD_RIGHT_SHARDS && !is_sharded) ||
                      (right->place == TD_RIGHT_ELECTION && is_sharded);
        if (is_off || !td_str_equal(td_feature_word(right->feature), word) ||
            !td_right_is_needed(right, (enum td_controller_kind)kind, install->options->features) ||
            !td_str_equal(install_place(install, right), namespace)) {
            continue;
        }
        struct td_json *rule = td_json_new_object(arena);
        td_json_set(arena, rule, TD_STR("apiGroups"), install_words(install, right->group));
        td_json_set(arena, rule, TD_STR("resources"), install_words(install, right->resources));
        if (right->name) {
            struct td_json *names = td_json_new_array(arena);
            td_json_append(names, td_json_new_string(arena, install_right_name(install, right)));
            td_json_set(arena, rule, TD_STR("resourceNames"), names);
        }
        td_json_set(arena, rule, TD_STR("verbs"), install_words(install, right->verbs));
        td_json_append(rules, rule);
    }
    return rules;
}

/* A role of one controller, or for a feature of it, and that the program has it. */
static void install_role(struct install *install, size_t kind, td_str place, td_str word)
{
    struct td_arena *arena = install->arena;
    bool is_local = place.len > 0;
    td_str name = td_arena_format(arena, INSTALL_NAME "-%s%s%.*s",
                                  td_controller_name((enum td_controller_kind)kind),
                                  word.len > 0 ? "-" : "", TD_STR_ARG(word));
    struct td_json *rules = install_rules(install, kind, place, word);
    struct td_json *role = install_read(
        install, is_local ? "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role}"
                          : "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole}");
    struct td_json *binding = install_read(
        install, is_local ? "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding}"
                          : "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding}");
    if (rules->count == 0) {
        return;
    }
    td_json_set(arena, install_name(install, role, name, place), TD_STR("rules"), rules);
    (void)install_name(install, binding, name, place);
    struct td_json *reference = td_json_ensure_object(arena, binding, TD_STR("roleRef"));
    td_json_set_str(arena, reference, TD_STR("apiGroup"), TD_STR("rbac.authorization.k8s.io"));
    td_json_set_str(arena, reference, TD_STR("kind"),
                    is_local ? TD_STR("Role") : TD_STR("ClusterRole"));
    td_json_set_str(arena, reference, TD_STR("name"), name);
    struct td_json *subjects = install_read(install, "[{kind: ServiceAccount}]");
    struct td_json *subject = td_json_first_item(subjects);
    td_json_set_str(arena, subject, TD_STR("name"), install->name);
    td_json_set_str(arena, subject, TD_STR("namespace"), install->options->namespace);
    td_json_set(arena, binding, TD_STR("subjects"), subjects);
    install_add(install, role);
    install_add(install, binding);
}

/* A namespace of ours is made with it; those of the cluster are there. */
static bool install_has_namespace(const struct td_install_options *options)
{
    return !td_str_equal(options->namespace, TD_STR("default")) &&
           !td_str_starts_with(options->namespace, TD_STR("kube-"));
}

static void install_rbac(struct install *install)
{
    const struct td_install_options *options = install->options;
    td_str leases = TD_STR(TD_UPSTREAM_NAMESPACE);
    if (install_has_namespace(options)) {
        install_add(install,
                    install_name(install,
                                 install_read(install, "{apiVersion: v1, kind: Namespace}"),
                                 options->namespace, TD_STR_EMPTY));
    }
    (void)install_add_text(install, "{apiVersion: v1, kind: ServiceAccount}", install->name, NULL);
    for (size_t kind = 0; kind < TD_CONTROLLER_COUNT; kind++) {
        if (!options->has[kind]) {
            continue;
        }
        install_role(install, kind, TD_STR_EMPTY, TD_STR_EMPTY);
        install_role(install, kind, options->namespace, TD_STR_EMPTY);
        if (!td_str_equal(options->namespace, leases)) {
            install_role(install, kind, leases, TD_STR_EMPTY);
        }
        for (size_t feature = 0; feature < TD_FEATURES; feature++) {
            td_str word = td_feature_word((enum td_feature)feature);
            if (word.len > 0) {
                install_role(install, kind, TD_STR_EMPTY, word);
            }
        }
    }
}

/* ---- The webhooks ---- */

static td_str install_service(const struct td_install_options *options)
{
    return options->replaces_upstream ? TD_STR("vpa-webhook")
                                      : td_controllers_options_default().webhook.service;
}

/* As the program registers them itself, but for the authority that only it knows. Upstream's is
 * left to the program, which changes it when it can answer. */
static void install_webhooks(struct install *install)
{
    const struct td_install_options *options = install->options;
    const struct td_controllers_options defaults = td_controllers_options_default();
    struct td_webhook webhook = {.options = defaults.webhook};
    webhook.options.listen = "0.0.0.0:8000";
    webhook.options.replaces_upstream = options->replaces_upstream;
    webhook.options.service = install_service(options);
    webhook.options.labels = TD_STR("app.kubernetes.io/name:" INSTALL_NAME);
    webhook.options.control.hvpa_gate =
        options->has[TD_CONTROLLER_HVPA] && options->features[TD_FEATURE_HVPA];
    webhook.options.namespace = options->namespace;
    webhook.options.exempt_namespaces = &options->namespace;
    webhook.options.exempt_count = 1;
    for (int which = 0; options->has[TD_CONTROLLER_ADMISSION] && which < WEBHOOK_CONFIGURATIONS;
         which++) {
        if (which == WEBHOOK_MUTATING && options->replaces_upstream) {
            continue;
        }
        install_add(install,
                    webhook_configuration_make(install->arena, &webhook,
                                               (enum webhook_configuration)which, TD_STR_EMPTY));
    }
}

/* ---- The program ---- */

static const char install_deployment_text[] =
    "apiVersion: apps/v1\n"
    "kind: Deployment\n"
    "metadata: {}\n"
    "spec:\n"
    "  replicas: 2\n"
    "  selector: {matchLabels: {app.kubernetes.io/name: " INSTALL_NAME "}}\n"
    "  template:\n"
    "    metadata:\n"
    "      labels: {app.kubernetes.io/name: " INSTALL_NAME "}\n"
    "      annotations: {prometheus.io/scrape: 'true', prometheus.io/port: '8942'}\n"
    "    spec:\n"
    "      serviceAccountName: ''\n"
    "      terminationGracePeriodSeconds: 30\n"
    "      securityContext:\n"
    "        runAsNonRoot: true\n"
    "        runAsUser: 65532\n"
    "        runAsGroup: 65532\n"
    "        seccompProfile: {type: RuntimeDefault}\n"
    "      topologySpreadConstraints:\n"
    "      - maxSkew: 1\n"
    "        topologyKey: kubernetes.io/hostname\n"
    "        whenUnsatisfiable: ScheduleAnyway\n"
    "        labelSelector: {matchLabels: {app.kubernetes.io/name: " INSTALL_NAME "}}\n"
    "      containers:\n"
    "      - name: " INSTALL_NAME "\n"
    "        image: ''\n"
    "        args: []\n"
    "        env:\n"
    "        - {name: NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}\n"
    "        ports:\n"
    "        - {name: metrics, containerPort: 8942}\n"
    "        - {name: webhook, containerPort: 8000}\n"
    "        livenessProbe: {httpGet: {path: /health-check, port: metrics}, periodSeconds: 10, "
    "failureThreshold: 6}\n"
    "        readinessProbe: {httpGet: {path: /readyz, port: metrics}, periodSeconds: 5}\n"
    "        resources: {requests: {cpu: 50m, memory: 64Mi}, limits: {memory: 1Gi}}\n"
    "        securityContext:\n"
    "          allowPrivilegeEscalation: false\n"
    "          readOnlyRootFilesystem: true\n"
    "          capabilities: {drop: [ALL]}\n";

static const char install_service_text[] =
    "apiVersion: v1\n"
    "kind: Service\n"
    "metadata: {}\n"
    "spec:\n"
    "  selector: {app.kubernetes.io/name: " INSTALL_NAME "}\n"
    "  ports: [{name: webhook, port: 443, targetPort: webhook}]\n";

static const char install_budget_text[] =
    "apiVersion: policy/v1\n"
    "kind: PodDisruptionBudget\n"
    "metadata: {}\n"
    "spec:\n"
    "  maxUnavailable: 1\n"
    "  selector: {matchLabels: {app.kubernetes.io/name: " INSTALL_NAME "}}\n";

/* Only what it serves can be reached. Who may is open: the API server calls from outside of the pod
 * network, and Prometheus from a namespace that has any name. */
static const char install_network_text[] =
    "apiVersion: networking.k8s.io/v1\n"
    "kind: NetworkPolicy\n"
    "metadata: {}\n"
    "spec:\n"
    "  podSelector: {matchLabels: {app.kubernetes.io/name: " INSTALL_NAME "}}\n"
    "  policyTypes: [Ingress]\n"
    "  ingress: [{ports: [{port: metrics}, {port: webhook}]}]\n";

static void install_argument(struct install *install, struct td_json *args, td_str text)
{
    td_json_append(args, td_json_new_string(install->arena, text));
}

static struct td_json *install_arguments(struct install *install)
{
    struct td_arena *arena = install->arena;
    const struct td_install_options *options = install->options;
    struct td_json *args = td_json_new_array(arena);
    td_str names = TD_STR_EMPTY;
    for (size_t kind = 0; kind < TD_CONTROLLER_COUNT; kind++) {
        if (options->has[kind]) {
            names = td_arena_format(arena, "%.*s%s%s", TD_STR_ARG(names), names.len > 0 ? "," : "",
                                    td_controller_name((enum td_controller_kind)kind));
        }
    }
    install_argument(install, args, TD_STR("run"));
    install_argument(install, args,
                     options->has[TD_CONTROLLER_SHADOW]
                         ? TD_STR("--shadow")
                         : td_arena_format(arena, "--controllers=%.*s", TD_STR_ARG(names)));
    install_argument(install, args,
                     options->shards > 0 ? td_arena_format(arena, "--shards=%zu", options->shards)
                                         : TD_STR("--leader-elect"));
    install_argument(install, args, TD_STR("--address=:8942"));
    if (options->replaces_upstream) {
        install_argument(install, args, TD_STR("--replace-upstream"));
    }
    if (options->features[TD_FEATURE_BUILTIN]) {
        install_argument(install, args, TD_STR("--horizontal=builtin"));
    }
    if (options->features[TD_FEATURE_REVIEWS]) {
        install_argument(install, args, TD_STR("--metrics-tls"));
    }
    if (options->features[TD_FEATURE_NODES]) {
        install_argument(install, args, TD_STR("--cap-to-node"));
    }
    if (options->has[TD_CONTROLLER_UPDATER] && !options->features[TD_FEATURE_ANNOTATE]) {
        install_argument(install, args, TD_STR("--annotate-resized-pods=false"));
    }
    if (options->gates.len > 0) {
        install_argument(
            install, args,
            td_arena_format(arena, "--feature-gates=%.*s", TD_STR_ARG(options->gates)));
    }
    return args;
}

static void install_network(struct install *install)
{
    struct td_json *policy = install_add_text(install, install_network_text, install->name,
                                              "spec.podSelector.matchLabels");
    if (!install->options->has[TD_CONTROLLER_ADMISSION]) {
        struct td_json *rule = td_json_first_item(td_json_get_path(policy, "spec.ingress"));
        td_json_remove_at(td_json_get(rule, TD_STR("ports")), 1);
    }
}

static void install_deployment(struct install *install)
{
    struct td_arena *arena = install->arena;
    const struct td_install_options *options = install->options;
    struct td_json *deployment = install_add_text(install, install_deployment_text, install->name,
                                                  "spec.selector.matchLabels");
    struct td_json *template = td_json_get_path(deployment, "spec.template");
    struct td_json *pod = td_json_get(template, TD_STR("spec"));
    struct td_json *container = td_json_first_item(td_json_get(pod, TD_STR("containers")));
    install_mark(install, td_json_get_path(template, "metadata.labels"));
    if (options->features[TD_FEATURE_REVIEWS]) {
        static const char *const probes[] = {"livenessProbe.httpGet", "readinessProbe.httpGet"};
        for (size_t i = 0; i < TD_COUNT(probes); i++) {
            td_json_set_str(arena, td_json_get_path(container, probes[i]), TD_STR("scheme"),
                            TD_STR("HTTPS"));
        }
        td_json_set_str(arena, td_json_get_path(template, "metadata.annotations"),
                        TD_STR("prometheus.io/scheme"), TD_STR("https"));
    }
    td_json_set_str(arena, pod, TD_STR("serviceAccountName"), install->name);
    td_json_set_str(arena, container, TD_STR("image"), options->image);
    td_json_set(arena, container, TD_STR("args"), install_arguments(install));
    if (options->shards > 0) { /* one more than hold a shard each */
        td_json_set_int64(arena, td_json_get(deployment, TD_STR("spec")), TD_STR("replicas"),
                          (int64_t)options->shards + 1);
    }
    if (!options->has[TD_CONTROLLER_ADMISSION]) {
        td_json_remove_at(td_json_get(container, TD_STR("ports")), 1);
    }
    (void)install_add_text(install, install_budget_text, install->name,
                           "spec.selector.matchLabels");
    install_network(install);
    if (options->has[TD_CONTROLLER_ADMISSION]) {
        (void)install_add_text(install, install_service_text, install_service(options),
                               "spec.selector");
    }
}

/* ---- The whole ---- */

static int install_check(const struct td_install_options *options, bool needs_image,
                         struct td_error *err)
{
    td_auto_buf problem = td_buf_capped(TD_ERROR_MESSAGE_BYTES);
    if (td_name_check_dns1123_label(options->namespace, &problem) > 0) {
        return td_error_set(err, TD_INVALID, "--namespace: '%.*s': %.*s",
                            TD_STR_ARG(options->namespace),
                            TD_STR_ARG(td_str_trim(td_buf_str(&problem))));
    }
    for (size_t i = 0; i < options->image.len; i++) {
        if ((unsigned char)options->image.ptr[i] <= ' ') {
            return td_error_set(err, TD_INVALID, "--image: '%.*s': must not contain spaces",
                                TD_STR_ARG(options->image));
        }
    }
    return options->image.len > 0 || !needs_image
               ? TD_OK
               : td_error_set(err, TD_INVALID,
                              "--image: name the container image; 'make image' in the source tree "
                              "makes one, docs/run.md says how to push it");
}

static void install_fill(struct install *install)
{
    static void (*const parts[TD_INSTALL_PARTS])(struct install *) = {
        [TD_INSTALL_CRDS] = install_crds,
        [TD_INSTALL_RBAC] = install_rbac,
        [TD_INSTALL_WEBHOOKS] = install_webhooks,
        [TD_INSTALL_DEPLOYMENT] = install_deployment,
    };
    for (size_t part = 0; part < TD_INSTALL_PARTS; part++) {
        if (install->options->wants[part]) {
            parts[part](install);
        }
    }
}

int td_install_objects(struct td_arena *arena, const struct td_install_options *options,
                       struct td_json **ret, struct td_error *err)
{
    struct install install = install_begin(arena, options);
    int code = install_check(options, options->wants[TD_INSTALL_DEPLOYMENT], err);
    if (code == TD_OK) {
        install_fill(&install);
        *ret = install.objects;
    }
    return code;
}

/* What is enough to delete it. */
static void install_leave(struct install *install, struct td_json *objects,
                          const struct td_json *object)
{
    struct td_arena *arena = install->arena;
    if (td_str_equal(td_json_text(object, "kind"), TD_STR("Namespace"))) {
        return;
    }
    const struct td_json *metadata = td_json_get(object, TD_STR("metadata"));
    struct td_json *left = td_json_new_object(arena);
    static const td_str heads[] = {TD_STR_INIT("apiVersion"), TD_STR_INIT("kind")};
    static const td_str names[] = {TD_STR_INIT("name"), TD_STR_INIT("namespace")};
    for (size_t i = 0; i < 2; i++) {
        td_json_set_str(arena, left, heads[i], td_json_get_str(object, heads[i], TD_STR_EMPTY));
    }
    struct td_json *head = td_json_ensure_object(arena, left, TD_STR("metadata"));
    for (size_t i = 0; i < 2; i++) {
        td_str value = td_json_get_str(metadata, names[i], TD_STR_EMPTY);
        td_json_set_text(arena, head, names[i], value);
    }
    td_json_append(objects, left);
}

/* What the program makes: leases and the certificate. */
static void install_own(struct install *install)
{
    const struct td_install_options *options = install->options;
    for (size_t kind = 0; kind < TD_CONTROLLER_COUNT; kind++) {
        const char *lease = kind == TD_CONTROLLER_ADMISSION
                                ? TD_STATUS_LEASE
                                : td_controller_lease((enum td_controller_kind)kind);
        if (options->has[kind]) {
            struct td_json *object =
                install_read(install, "{apiVersion: coordination.k8s.io/v1, kind: Lease}");
            install_add(install, install_name(install, object, td_str_from(lease),
                                              TD_STR(TD_UPSTREAM_NAMESPACE)));
        }
    }
    if (options->has[TD_CONTROLLER_ADMISSION]) {
        (void)install_add_text(install, "{apiVersion: v1, kind: Secret}",
                               TD_STR("tandem-webhook-tls"), NULL);
    }
}

int td_install_leftovers(struct td_arena *arena, const struct td_install_options *options,
                         struct td_json **ret, struct td_error *err)
{
    static const enum td_install_part order[TD_INSTALL_PARTS] = {
        TD_INSTALL_DEPLOYMENT, TD_INSTALL_RBAC, TD_INSTALL_WEBHOOKS, TD_INSTALL_CRDS};
    struct td_json *left = td_json_new_array(arena);
    int code = install_check(options, false, err);
    if (code != TD_OK) {
        return code;
    }
    for (size_t i = 0; i < TD_INSTALL_PARTS; i++) {
        struct td_install_options one = *options;
        for (size_t part = 0; part < TD_INSTALL_PARTS; part++) {
            one.wants[part] = options->wants[part] && part == order[i];
        }
        memset(one.features, true, sizeof(one.features)); /* whatever was once installed */
        struct install install = install_begin(arena, &one);
        install_fill(&install);
        if (order[i] == TD_INSTALL_WEBHOOKS && options->wants[TD_INSTALL_DEPLOYMENT]) {
            install_own(&install);
        }
        for (const struct td_json *object = td_json_first_item(install.objects); object;
             object = object->next) {
            install_leave(&install, left, object);
        }
    }
    /* Last, when it is empty; one of another name may be the home of others, as it is where each
     * controller is alone. */
    if (options->wants[TD_INSTALL_RBAC] && install_begin(arena, options).component.len == 0 &&
        td_str_equal(options->namespace, TD_STR(TD_INSTALL_NAMESPACE))) {
        struct install install = {.arena = arena};
        struct td_json *namespace = install_read(&install, "{apiVersion: v1, kind: Namespace}");
        struct td_json *head = td_json_ensure_object(arena, namespace, TD_STR("metadata"));
        td_json_set_str(arena, head, TD_STR("name"), options->namespace);
        td_json_append(left, namespace);
    }
    *ret = left;
    return TD_OK;
}
