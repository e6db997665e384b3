/*
 * The table of rights by controller, resource and verb, the names of controllers and of their
 * leases, and the questions that the check at the start asks the API server.
 */
#include "control/rights.h"

#include "base/limits.h"

#define RIGHTS_R (1u << TD_CONTROLLER_RECOMMENDER)
#define RIGHTS_U (1u << TD_CONTROLLER_UPDATER)
#define RIGHTS_A (1u << TD_CONTROLLER_ADMISSION)
#define RIGHTS_H (1u << TD_CONTROLLER_HORIZONTAL)
#define RIGHTS_V (1u << TD_CONTROLLER_HVPA)
#define RIGHTS_ALL (RIGHTS_R | RIGHTS_U | RIGHTS_A | RIGHTS_H | RIGHTS_V)

static const struct td_right rights_table[] = {
    /* What there is. */
    {"", "pods,replicationcontrollers", "list,watch", .controllers = RIGHTS_ALL},
    {"apps", "deployments,replicasets,statefulsets,daemonsets", "list,watch",
     .controllers = RIGHTS_ALL},
    {"batch", "jobs,cronjobs", "list,watch", .controllers = RIGHTS_ALL},
    /* Owners of pods that no cache has yet, and whole templates before an eviction. */
    {"", "replicationcontrollers", "get", .controllers = RIGHTS_U | RIGHTS_H | RIGHTS_V},
    {"apps", "deployments,replicasets,statefulsets,daemonsets", "get",
     .controllers = RIGHTS_U | RIGHTS_H | RIGHTS_V},
    {"batch", "jobs,cronjobs", "get", .controllers = RIGHTS_U | RIGHTS_H | RIGHTS_V},
    {"*", "*/scale", "get", .controllers = RIGHTS_ALL},
    {"*", "*/scale", "update", .controllers = RIGHTS_H | RIGHTS_V},
    {"", "limitranges", "list,watch", .controllers = RIGHTS_U | RIGHTS_A | RIGHTS_V},
    {"", "nodes", "list,watch", .controllers = RIGHTS_V, .capping = RIGHTS_U | RIGHTS_A},
    {"", "events", "list,watch", .controllers = RIGHTS_R},
    {"", "events", "list", .controllers = RIGHTS_U | RIGHTS_V},
    {"", "resourcequotas", "list", .controllers = RIGHTS_U | RIGHTS_V},
    {"", "events", "create,patch", .controllers = RIGHTS_ALL},
    /* Autoscalers. */
    {"autoscaling.k8s.io", "verticalpodautoscalers", "list,watch",
     .controllers = RIGHTS_R | RIGHTS_U | RIGHTS_A | RIGHTS_V},
    {"autoscaling.k8s.io", "verticalpodautoscalers/status", "patch",
     .controllers = RIGHTS_R | RIGHTS_U},
    {"autoscaling.k8s.io", "verticalpodautoscalercheckpoints", "list,create,patch,delete",
     .controllers = RIGHTS_R},
    {"autoscaling", "horizontalpodautoscalers", "list,watch", .controllers = RIGHTS_H | RIGHTS_V},
    {"autoscaling", "horizontalpodautoscalers/status", "update", .controllers = RIGHTS_H},
    {"autoscaling.tandem.dev", "horizontalpodautoscalers", "list,watch",
     .controllers = RIGHTS_A | RIGHTS_H | RIGHTS_V},
    {"autoscaling.tandem.dev", "horizontalpodautoscalers/status", "update",
     .controllers = RIGHTS_H},
    {"autoscaling.k8s.io", "hvpas", "list,watch",
     .controllers = RIGHTS_R | RIGHTS_A | RIGHTS_H | RIGHTS_V},
    {"autoscaling.k8s.io", "hvpas,hvpas/status", "patch", .controllers = RIGHTS_V},
    /* Children of an Hvpa that takes its verdicts from objects, and templates that it writes. */
    {"autoscaling.k8s.io", "verticalpodautoscalers", "create,patch,delete",
     .controllers = RIGHTS_V},
    {"autoscaling", "horizontalpodautoscalers", "create,patch,delete", .controllers = RIGHTS_V},
    {"apps", "deployments,statefulsets,daemonsets", "patch", .controllers = RIGHTS_V},
    {"", "replicationcontrollers", "patch", .controllers = RIGHTS_V},
    /* Metrics. */
    {"metrics.k8s.io", "pods", "list", .controllers = RIGHTS_R | RIGHTS_H | RIGHTS_V},
    {"custom.metrics.k8s.io", "*", "get", .controllers = RIGHTS_H | RIGHTS_V},
    {"external.metrics.k8s.io", "*", "list", .controllers = RIGHTS_H | RIGHTS_V},
    /* Pods that run. */
    {"", "pods", "patch", .controllers = RIGHTS_U},
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
     .name = "vpa-webhook-config", .controllers = RIGHTS_A},
    {"admissionregistration.k8s.io", "validatingwebhookconfigurations", "list,watch,patch",
     .name = "tandem-webhook-config", .controllers = RIGHTS_A},
    /* Of the same account outside the cluster, or what it left there. */
    {"admissionregistration.k8s.io",
     "mutatingwebhookconfigurations,validatingwebhookconfigurations", "list,watch,patch,delete",
     .name = "tandem-outside-webhook-config", .controllers = RIGHTS_A},
    /* Leases. */
    {"coordination.k8s.io", "leases", "create", .place = TD_RIGHT_ELECTION,
     .controllers = RIGHTS_R | RIGHTS_U | RIGHTS_H | RIGHTS_V},
    {"coordination.k8s.io", "leases", "create", .place = TD_RIGHT_STATUS, .controllers = RIGHTS_A},
    {"coordination.k8s.io", "leases", "get,update", .name = "vpa-recommender-lease",
     .place = TD_RIGHT_ELECTION, .controllers = RIGHTS_R},
    {"coordination.k8s.io", "leases", "get,update", .name = "vpa-updater",
     .place = TD_RIGHT_ELECTION, .controllers = RIGHTS_U},
    {"coordination.k8s.io", "leases", "get", .name = "vpa-admission-controller",
     .place = TD_RIGHT_STATUS_READ, .controllers = RIGHTS_U},
    {"coordination.k8s.io", "leases", "patch", .name = "vpa-admission-controller",
     .place = TD_RIGHT_STATUS, .controllers = RIGHTS_A},
    {"coordination.k8s.io", "leases", "get,update", .name = "tandem-horizontal",
     .place = TD_RIGHT_ELECTION, .controllers = RIGHTS_H},
    {"coordination.k8s.io", "leases", "get,update", .name = "tandem-hvpa",
     .place = TD_RIGHT_ELECTION, .controllers = RIGHTS_V},
};

const char *td_controller_name(enum td_controller_kind kind)
{
    static const char *const names[TD_CONTROLLER_COUNT] = {
        [TD_CONTROLLER_RECOMMENDER] = "recommender",
        [TD_CONTROLLER_UPDATER] = "updater",
        [TD_CONTROLLER_ADMISSION] = "admission",
        [TD_CONTROLLER_HORIZONTAL] = "horizontal",
        [TD_CONTROLLER_HVPA] = "hvpa",
    };
    return names[kind];
}

const char *td_controller_lease(enum td_controller_kind kind)
{
    static const char *const names[TD_CONTROLLER_COUNT] = {
        [TD_CONTROLLER_RECOMMENDER] = "vpa-recommender-lease",
        [TD_CONTROLLER_UPDATER] = "vpa-updater",
        [TD_CONTROLLER_HORIZONTAL] = "tandem-horizontal",
        [TD_CONTROLLER_HVPA] = "tandem-hvpa",
    };
    return names[kind];
}

td_str td_controller_lease_name(struct td_arena *arena, enum td_controller_kind kind,
                                const bool has[TD_CONTROLLER_COUNT], td_str chosen)
{
    size_t elected = 0;
    for (size_t i = 0; i < TD_CONTROLLER_COUNT; i++) {
        elected += has[i] && td_controller_lease((enum td_controller_kind)i);
    }
    if (chosen.len == 0) {
        return td_str_from(td_controller_lease(kind));
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
                                            scope->lease_name);
        }
    }
    td_str chosen = scope->places[right->place].name;
    return chosen.len > 0 ? chosen : td_str_from(right->name);
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
    unsigned wanted = 0;
    for (size_t kind = 0; kind < TD_CONTROLLER_COUNT; kind++) {
        wanted |= scope->has[kind] ? 1u << kind : 0;
    }
    for (size_t i = 0; i < row_count; i++) {
        unsigned needed = rows[i].controllers | (scope->caps_to_node ? rows[i].capping : 0);
        if (needed & wanted && !scope->places[rows[i].place].is_off) {
            count += rights_ask(arena, &rows[i], scope, rules + count, TD_ACCESS_RULES_MAX - count);
        }
    }
    *ret = rules;
    return count;
}
