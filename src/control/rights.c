/*
 * The table of rights by controller, resource and verb, the names of controllers and of their
 * leases, and the questions that the check at the start asks the API server.
 */
#include "control/rights.h"

#include "api/vpa/vpa.h"
#include "base/limits.h"

#define RIGHTS_R (1u << TD_CONTROLLER_RECOMMENDER)
#define RIGHTS_U (1u << TD_CONTROLLER_UPDATER)
#define RIGHTS_A (1u << TD_CONTROLLER_ADMISSION)
#define RIGHTS_H (1u << TD_CONTROLLER_HORIZONTAL)
#define RIGHTS_V (1u << TD_CONTROLLER_HVPA)
#define RIGHTS_S (1u << TD_CONTROLLER_SHADOW)
#define RIGHTS_ALL (RIGHTS_R | RIGHTS_U | RIGHTS_A | RIGHTS_H | RIGHTS_V)
/* Of the Hvpa controller with its gate off: it says of each Hvpa that nothing acts on it. */
#define RIGHTS_V_IDLE (1u << TD_CONTROLLER_COUNT)

static const struct td_right rights_table[] = {
    /* What there is. */
    {"", "pods", "list,watch", .controllers = RIGHTS_R | RIGHTS_U | RIGHTS_H | RIGHTS_V | RIGHTS_S},
    {"", "replicationcontrollers", "list,watch",
     .controllers = RIGHTS_ALL | RIGHTS_V_IDLE | RIGHTS_S},
    {"apps", "deployments,replicasets,statefulsets,daemonsets", "list,watch",
     .controllers = RIGHTS_ALL | RIGHTS_V_IDLE | RIGHTS_S},
    {"batch", "jobs,cronjobs", "list,watch", .controllers = RIGHTS_ALL | RIGHTS_V_IDLE | RIGHTS_S},
    /* Owners of pods that no cache has yet, and whole templates before an eviction. */
    {"", "replicationcontrollers", "get", .controllers = RIGHTS_U | RIGHTS_H | RIGHTS_V},
    {"apps", "deployments,replicasets,statefulsets,daemonsets", "get",
     .controllers = RIGHTS_U | RIGHTS_H | RIGHTS_V},
    {"batch", "jobs,cronjobs", "get", .controllers = RIGHTS_U | RIGHTS_H | RIGHTS_V},
    {"*", "*/scale", "get", .controllers = RIGHTS_ALL | RIGHTS_S},
    {"*", "*/scale", "update", .controllers = RIGHTS_H | RIGHTS_V},
    {"", "limitranges", "list,watch", .controllers = RIGHTS_U | RIGHTS_A | RIGHTS_V | RIGHTS_S},
    {"", "nodes", "list,watch", .controllers = RIGHTS_V},
    {"", "nodes", "list,watch", .controllers = RIGHTS_U | RIGHTS_A | RIGHTS_S,
     .feature = TD_FEATURE_NODES},
    {"", "events", "list,watch", .controllers = RIGHTS_R | RIGHTS_S},
    {"", "events", "list", .controllers = RIGHTS_U | RIGHTS_V},
    {"", "resourcequotas", "list", .controllers = RIGHTS_U | RIGHTS_V},
    {"", "events", "create,patch", .controllers = RIGHTS_ALL | RIGHTS_V_IDLE},
    /* Autoscalers. */
    {"autoscaling.k8s.io", "verticalpodautoscalers", "list,watch",
     .controllers = RIGHTS_R | RIGHTS_U | RIGHTS_A | RIGHTS_V | RIGHTS_S},
    {"autoscaling.k8s.io", "verticalpodautoscalers/status", "patch",
     .controllers = RIGHTS_R | RIGHTS_U},
    {"autoscaling.k8s.io", "verticalpodautoscalercheckpoints", "list,create,patch,delete",
     .controllers = RIGHTS_R},
    {"autoscaling.k8s.io", "verticalpodautoscalercheckpoints", "list", .controllers = RIGHTS_S},
    {TD_SHADOW_GROUP, TD_SHADOW_PLURAL, "create,patch", .controllers = RIGHTS_S},
    {"autoscaling", "horizontalpodautoscalers", "list,watch", .controllers = RIGHTS_H | RIGHTS_V},
    {"autoscaling", "horizontalpodautoscalers/status", "update", .controllers = RIGHTS_H,
     .feature = TD_FEATURE_BUILTIN},
    {"autoscaling.tandem.dev", "horizontalpodautoscalers", "list,watch",
     .controllers = RIGHTS_A | RIGHTS_H | RIGHTS_V},
    {"autoscaling.tandem.dev", "horizontalpodautoscalers/status", "update",
     .controllers = RIGHTS_H},
    {"autoscaling.k8s.io", "hvpas", "list,watch", .controllers = RIGHTS_V | RIGHTS_V_IDLE},
    {"autoscaling.k8s.io", "hvpas", "list,watch", .controllers = RIGHTS_R | RIGHTS_A | RIGHTS_H,
     .feature = TD_FEATURE_HVPA},
    {"autoscaling.k8s.io", "hvpas,hvpas/status", "patch", .controllers = RIGHTS_V | RIGHTS_V_IDLE},
    /* Children of an Hvpa that takes its verdicts from objects, and templates that it writes. */
    {"autoscaling.k8s.io", "verticalpodautoscalers", "create,patch,delete",
     .controllers = RIGHTS_V},
    {"autoscaling", "horizontalpodautoscalers", "create,patch,delete", .controllers = RIGHTS_V},
    {"apps", "deployments,statefulsets,daemonsets", "patch", .controllers = RIGHTS_V,
     .feature = TD_FEATURE_TEMPLATES},
    {"", "replicationcontrollers", "patch", .controllers = RIGHTS_V,
     .feature = TD_FEATURE_TEMPLATES},
    /* Metrics. */
    {"metrics.k8s.io", "pods", "list", .controllers = RIGHTS_R | RIGHTS_H | RIGHTS_V | RIGHTS_S},
    {"custom.metrics.k8s.io", "*", "get", .controllers = RIGHTS_H | RIGHTS_V},
    {"external.metrics.k8s.io", "*", "list", .controllers = RIGHTS_H | RIGHTS_V},
    /* Pods that run. */
    {"", "pods", "patch", .controllers = RIGHTS_U, .feature = TD_FEATURE_ANNOTATE},
    {"", "pods/resize", "patch", .controllers = RIGHTS_U | RIGHTS_V},
    {"", "pods/eviction", "create", .controllers = RIGHTS_U | RIGHTS_V},
    /* The webhook: its certificate, its registration, and the pod that is never made. */
    {"", "secrets", "create", .place = TD_RIGHT_OWN, .controllers = RIGHTS_A},
    {"", "secrets", "list,watch,patch", .name = "tandem-webhook-tls", .place = TD_RIGHT_OWN,
     .controllers = RIGHTS_A},
    {"", "pods", "create", .place = TD_RIGHT_OWN, .controllers = RIGHTS_A},
    {"admissionregistration.k8s.io",
     "mutatingwebhookconfigurations,validatingwebhookconfigurations", "create",
     .controllers = RIGHTS_A},
    {"admissionregistration.k8s.io", "mutatingwebhookconfigurations", "list,watch,patch",
     .name = "tandem-webhook-config", .upstream_name = "vpa-webhook-config",
     .controllers = RIGHTS_A},
    {"admissionregistration.k8s.io", "validatingwebhookconfigurations", "list,watch,patch",
     .name = "tandem-webhook-config", .controllers = RIGHTS_A},
    /* Of the same account outside the cluster, or what it left there. */
    {"admissionregistration.k8s.io",
     "mutatingwebhookconfigurations,validatingwebhookconfigurations", "list,watch,patch,delete",
     .name = "tandem-outside-webhook-config", .controllers = RIGHTS_A},
    /* Who asks for metrics, and may they? */
    {"authentication.k8s.io", "tokenreviews", "create", .controllers = RIGHTS_A,
     .feature = TD_FEATURE_REVIEWS},
    {"authorization.k8s.io", "subjectaccessreviews", "create", .controllers = RIGHTS_A,
     .feature = TD_FEATURE_REVIEWS},
    /* Leases. */
    {"coordination.k8s.io", "leases", "create", .place = TD_RIGHT_ELECTION,
     .controllers = RIGHTS_R | RIGHTS_U | RIGHTS_H | RIGHTS_V | RIGHTS_S},
    {"coordination.k8s.io", "leases", "create", .place = TD_RIGHT_STATUS, .controllers = RIGHTS_A},
    {"coordination.k8s.io", "leases", "get,update", .name = "tandem-recommender",
     .upstream_name = "vpa-recommender-lease", .place = TD_RIGHT_ELECTION, .controllers = RIGHTS_R},
    {"coordination.k8s.io", "leases", "get,update", .name = "tandem-updater",
     .upstream_name = "vpa-updater", .place = TD_RIGHT_ELECTION, .controllers = RIGHTS_U},
    {"coordination.k8s.io", "leases", "get", .name = "tandem-admission",
     .upstream_name = "vpa-admission-controller", .place = TD_RIGHT_STATUS_READ,
     .controllers = RIGHTS_U},
    {"coordination.k8s.io", "leases", "patch", .name = "tandem-admission",
     .upstream_name = "vpa-admission-controller", .place = TD_RIGHT_STATUS,
     .controllers = RIGHTS_A},
    /* Whether upstream's parts are alive (upstream.h). */
    {"coordination.k8s.io", "leases", "get", .name = "vpa-recommender-lease",
     .place = TD_RIGHT_UPSTREAM, .controllers = RIGHTS_R},
    {"coordination.k8s.io", "leases", "get", .name = "vpa-updater", .place = TD_RIGHT_UPSTREAM,
     .controllers = RIGHTS_U},
    {"coordination.k8s.io", "leases", "get", .name = "vpa-admission-controller",
     .place = TD_RIGHT_UPSTREAM, .controllers = RIGHTS_A},
    {"admissionregistration.k8s.io", "mutatingwebhookconfigurations", "get",
     .name = "vpa-webhook-config", .controllers = RIGHTS_A},
    {"coordination.k8s.io", "leases", "get,update", .name = "tandem-horizontal",
     .place = TD_RIGHT_ELECTION, .controllers = RIGHTS_H},
    {"coordination.k8s.io", "leases", "get,update", .name = "tandem-hvpa",
     .place = TD_RIGHT_ELECTION, .controllers = RIGHTS_V},
    {"coordination.k8s.io", "leases", "get,update", .name = "tandem-shadow",
     .place = TD_RIGHT_ELECTION, .controllers = RIGHTS_S},
    /* Shards: leases by their number, the cut, and what namespaces weigh. */
    {"coordination.k8s.io", "leases", "list,get,create,update", .place = TD_RIGHT_SHARDS,
     .controllers = RIGHTS_ALL},
    {"", "configmaps", "create", .place = TD_RIGHT_SHARDS, .controllers = RIGHTS_ALL},
    {"", "configmaps", "get,update", .name = "tandem-shards", .place = TD_RIGHT_SHARDS,
     .controllers = RIGHTS_ALL},
};

const char *td_controller_name(enum td_controller_kind kind)
{
    static const char *const names[TD_CONTROLLER_COUNT] = {
        [TD_CONTROLLER_RECOMMENDER] = "recommender",
        [TD_CONTROLLER_UPDATER] = "updater",
        [TD_CONTROLLER_ADMISSION] = "admission",
        [TD_CONTROLLER_HORIZONTAL] = "horizontal",
        [TD_CONTROLLER_HVPA] = "hvpa",
        [TD_CONTROLLER_SHADOW] = "shadow",
    };
    return names[kind];
}

const char *td_controller_lease(enum td_controller_kind kind)
{
    static const char *const names[TD_CONTROLLER_COUNT] = {
        [TD_CONTROLLER_RECOMMENDER] = "tandem-recommender",
        [TD_CONTROLLER_UPDATER] = "tandem-updater",
        [TD_CONTROLLER_HORIZONTAL] = "tandem-horizontal",
        [TD_CONTROLLER_HVPA] = "tandem-hvpa",
        [TD_CONTROLLER_SHADOW] = "tandem-shadow",
    };
    return names[kind];
}

const char *td_controller_upstream_lease(enum td_controller_kind kind)
{
    static const char *const names[TD_CONTROLLER_COUNT] = {
        [TD_CONTROLLER_RECOMMENDER] = "vpa-recommender-lease",
        [TD_CONTROLLER_UPDATER] = "vpa-updater",
        [TD_CONTROLLER_ADMISSION] = TD_UPSTREAM_STATUS_LEASE,
    };
    return names[kind];
}

td_str td_controller_lease_name(struct td_arena *arena, enum td_controller_kind kind,
                                const bool has[TD_CONTROLLER_COUNT], td_str chosen,
                                bool replaces_upstream)
{
    size_t elected = 0;
    for (size_t i = 0; i < TD_CONTROLLER_COUNT; i++) {
        elected += has[i] && td_controller_lease((enum td_controller_kind)i);
    }
    if (chosen.len == 0) {
        const char *upstream = td_controller_upstream_lease(kind);
        return td_str_from(replaces_upstream && upstream ? upstream : td_controller_lease(kind));
    }
    return elected > 1
               ? td_arena_format(arena, "%.*s-%s", TD_STR_ARG(chosen), td_controller_name(kind))
               : chosen;
}

const struct td_right *td_rights(size_t *ret_count)
{
    *ret_count = TD_COUNT(rights_table);
    return rights_table;
}

bool td_right_is_needed(const struct td_right *right, enum td_controller_kind kind,
                        const bool features[TD_FEATURES])
{
    bool is_idle = kind == TD_CONTROLLER_HVPA && !features[TD_FEATURE_HVPA];
    bool is_on = right->feature == TD_FEATURE_ALWAYS || features[right->feature];
    return is_on && right->controllers & (is_idle ? RIGHTS_V_IDLE : 1u << kind);
}

td_str td_feature_word(enum td_feature feature)
{
    static const td_str words[TD_FEATURES] = {
        [TD_FEATURE_ANNOTATE] = TD_STR_INIT("annotate"),
        [TD_FEATURE_NODES] = TD_STR_INIT("nodes"),
        [TD_FEATURE_BUILTIN] = TD_STR_INIT("builtin"),
        [TD_FEATURE_REVIEWS] = TD_STR_INIT("reviews"),
        [TD_FEATURE_TEMPLATES] = TD_STR_INIT("templates"),
    };
    return words[feature];
}

td_str td_right_name(const struct td_right *right, bool replaces_upstream)
{
    return td_str_from(replaces_upstream && right->upstream_name ? right->upstream_name
                                                                 : right->name);
}

td_str td_rights_word(td_str *list)
{
    size_t end = td_str_find(*list, ',', 0);
    td_str word = td_str_slice(*list, 0, end);
    *list = end < list->len ? td_str_slice(*list, end + 1, list->len) : TD_STR_EMPTY;
    return word;
}

/* The name of the only object that a row is about, as this process calls it. */
static td_str rights_name(struct td_arena *arena, const struct td_right *right,
                          const struct td_rights_scope *scope)
{
    if (!right->name) {
        return TD_STR_EMPTY;
    }
    for (size_t kind = 0; kind < TD_CONTROLLER_COUNT; kind++) {
        if (right->place == TD_RIGHT_ELECTION && right->controllers == 1u << kind) {
            return td_controller_lease_name(arena, (enum td_controller_kind)kind, scope->has,
                                            scope->lease_name, scope->replaces_upstream);
        }
    }
    td_str chosen = scope->places[right->place].name;
    return chosen.len > 0 ? chosen : td_right_name(right, scope->replaces_upstream);
}

/* The questions of one row, for each resource and verb. */
static size_t rights_ask(struct td_arena *arena, const struct td_right *right,
                         const struct td_rights_scope *scope, struct td_access_rule *rules,
                         size_t room)
{
    size_t count = 0;
    td_str resources = td_str_from(right->resources);
    td_str name = rights_name(arena, right, scope);
    for (td_str resource; (resource = td_rights_word(&resources)).len > 0;) {
        td_str verbs = td_str_from(right->verbs);
        size_t slash = td_str_find(resource, '/', 0);
        bool has_sub = slash < resource.len;
        for (td_str verb; count < room && (verb = td_rights_word(&verbs)).len > 0;) {
            rules[count++] = (struct td_access_rule){
                .verb = verb,
                .group = td_str_from(right->group),
                .resource = td_str_slice(resource, 0, slash),
                .subresource =
                    has_sub ? td_str_slice(resource, slash + 1, resource.len) : TD_STR_EMPTY,
                .namespace = right->place == TD_RIGHT_EVERYWHERE
                                 ? TD_STR_EMPTY
                                 : scope->places[right->place].namespace,
                .name = name,
            };
        }
    }
    return count;
}

size_t td_rights_questions(struct td_arena *arena, const struct td_rights_scope *scope,
                           const struct td_access_rule **ret)
{
    struct td_access_rule *rules =
        td_arena_array(arena, struct td_access_rule, TD_ACCESS_RULES_MAX);
    size_t row_count;
    const struct td_right *rows = td_rights(&row_count);
    size_t count = 0;
    for (size_t i = 0; i < row_count; i++) {
        bool is_needed = false;
        for (size_t kind = 0; kind < TD_CONTROLLER_COUNT; kind++) {
            is_needed = is_needed || (scope->has[kind] &&
                                      td_right_is_needed(&rows[i], (enum td_controller_kind)kind,
                                                         scope->features));
        }
        if (is_needed && !scope->places[rows[i].place].is_off) {
            count += rights_ask(arena, &rows[i], scope, rules + count, TD_ACCESS_RULES_MAX - count);
        }
    }
    *ret = rules;
    return count;
}
