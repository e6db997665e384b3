#include "local/nodes/scheduler_fit.h"

#include "base/error.h"
#include "base/limits.h"
#include "kube/meta.h"
#include "local/nodes/node_fit.h"

#define FIT_UNSCHEDULABLE_TAINT TD_STR("node.kubernetes.io/unschedulable")
#define FIT_NOT_READY_TAINT TD_STR("node.kubernetes.io/not-ready")
#define FIT_SHARE_PARTS 1000 /* free shares are compared in thousandths */

int td_fit_pod_read(struct td_arena *arena, const struct td_json *pod, struct td_fit_pod *ret)
{
    struct td_meta meta;
    struct td_node_amount *requests;
    size_t count;
    int code = td_meta_decode(arena, pod, &meta, NULL);
    if (code == TD_OK) {
        code = td_pod_amounts(arena, pod, false, &requests, &count);
    }
    if (code != TD_OK) {
        return code;
    }
    const struct td_json *spec = td_json_get(pod, TD_STR("spec"));
    const struct td_owner_reference *owner = td_meta_controller(&meta);
    *ret = (struct td_fit_pod){
        .requests = requests,
        .request_count = count,
        .node_selector = td_json_get(spec, TD_STR("nodeSelector")),
        .affinity = td_json_get_path(
            spec, "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"),
        .tolerations = td_json_get(spec, TD_STR("tolerations")),
        .controller_uid = owner ? owner->uid : TD_STR_EMPTY,
    };
    return TD_OK;
}

/* ---- Taints ---- */

static bool fit_tolerates_all(const struct td_json *tolerations, const struct td_taint *taint)
{
    const struct td_json *t = td_json_first_item(tolerations);
    while (t && !td_toleration_matches(t, taint->key, taint->value, taint->effect)) {
        t = t->next;
    }
    return t != NULL;
}

static bool fit_passes_taints(const struct td_fit_pod *pod, const struct td_node *node)
{
    const struct td_taint not_ready = {.key = FIT_NOT_READY_TAINT, .effect = TD_STR("NoSchedule")};
    if (node->taint_count > TD_NODE_TAINTS_MAX ||
        (!node->is_ready && !fit_tolerates_all(pod->tolerations, &not_ready))) {
        return false;
    }
    for (size_t i = 0; i < node->taint_count; i++) {
        const struct td_taint *taint = &node->taints[i];
        bool counts = td_str_equal(taint->effect, TD_STR("NoSchedule")) ||
                      td_str_equal(taint->effect, TD_STR("NoExecute"));
        if (counts && !fit_tolerates_all(pod->tolerations, taint)) {
            return false;
        }
    }
    return true;
}

/* ---- Affinity ---- */

static bool fit_has_value(const struct td_json *values, td_str text)
{
    const struct td_json *v = td_json_first_item(values);
    while (v && !(v->type == TD_JSON_TYPE_STRING && td_str_equal(v->text, text))) {
        v = v->next;
    }
    return v != NULL;
}

/* Gt and Lt: both sides are whole numbers. */
static bool fit_compares(const struct td_json *values, const td_str *label, bool is_greater)
{
    const struct td_json *bound = td_json_first_item(values);
    int64_t left;
    int64_t right;
    if (!label || !td_json_is(bound, TD_JSON_TYPE_STRING) || !td_str_to_int64(*label, &left) ||
        !td_str_to_int64(bound->text, &right)) {
        return false;
    }
    return is_greater ? left > right : left < right;
}

static bool fit_meets(const struct td_json *requirement, const td_str *label)
{
    td_str operation = td_json_get_str(requirement, TD_STR("operator"), TD_STR_EMPTY);
    const struct td_json *values = td_json_get(requirement, TD_STR("values"));
    if (td_str_equal(operation, TD_STR("In"))) {
        return label && fit_has_value(values, *label);
    }
    if (td_str_equal(operation, TD_STR("NotIn"))) {
        return !label || !fit_has_value(values, *label);
    }
    if (td_str_equal(operation, TD_STR("Exists"))) {
        return label != NULL;
    }
    if (td_str_equal(operation, TD_STR("DoesNotExist"))) {
        return !label;
    }
    bool is_greater = td_str_equal(operation, TD_STR("Gt"));
    return (is_greater || td_str_equal(operation, TD_STR("Lt"))) &&
           fit_compares(values, label, is_greater);
}

/* All expressions and fields of one term; a term without any selects nothing. */
static bool fit_meets_term(const struct td_json *term, const struct td_node *node)
{
    const struct td_json *expressions = td_json_get(term, TD_STR("matchExpressions"));
    const struct td_json *fields = td_json_get(term, TD_STR("matchFields"));
    bool has_any = (td_json_is(expressions, TD_JSON_TYPE_ARRAY) && expressions->count > 0) ||
                   (td_json_is(fields, TD_JSON_TYPE_ARRAY) && fields->count > 0);
    const struct td_json *r = td_json_first_item(expressions);
    for (; r; r = r->next) {
        td_str key = td_json_get_str(r, TD_STR("key"), TD_STR_EMPTY);
        if (!fit_meets(r, td_labels_get(&node->labels, key))) {
            return false;
        }
    }
    r = td_json_first_item(fields);
    for (; r; r = r->next) {
        td_str key = td_json_get_str(r, TD_STR("key"), TD_STR_EMPTY);
        bool is_name = td_str_equal(key, TD_STR("metadata.name"));
        if (!fit_meets(r, is_name ? &node->name : NULL)) {
            return false;
        }
    }
    return has_any;
}

static bool fit_matches_affinity(const struct td_fit_pod *pod, const struct td_node *node)
{
    const struct td_json *s = td_json_first_member(pod->node_selector);
    for (; s; s = s->next) {
        const td_str *value = td_labels_get(&node->labels, s->key);
        if (!value || s->type != TD_JSON_TYPE_STRING || !td_str_equal(*value, s->text)) {
            return false;
        }
    }
    if (!td_json_is(pod->affinity, TD_JSON_TYPE_OBJECT)) {
        return true;
    }
    const struct td_json *terms = td_json_get(pod->affinity, TD_STR("nodeSelectorTerms"));
    const struct td_json *term = td_json_first_item(terms);
    while (term && !fit_meets_term(term, node)) {
        term = term->next;
    }
    return term != NULL;
}

/* ---- Resources ---- */

static void fit_refuse(struct td_fit *fit, td_str reason, bool is_hopeless)
{
    fit->fits = false;
    fit->is_hopeless |= is_hopeless;
    if (fit->reason_count < sizeof(fit->reasons) / sizeof(fit->reasons[0])) {
        fit->reasons[fit->reason_count++] = reason;
    }
}

static void fit_check_resources(struct td_arena *arena, const struct td_fit_pod *pod,
                                const struct td_node *node, struct td_fit *fit)
{
    if (node->pod_count + 1 > node->pods_max) {
        fit_refuse(fit, TD_STR("Too many pods"), false);
    }
    for (size_t i = 0; i < pod->request_count; i++) {
        const struct td_node_amount *request = &pod->requests[i];
        size_t place = td_node_resource(node, request->name);
        bool is_offered = place < node->resource_count;
        int64_t offered = is_offered ? node->allocatable[place].value : 0;
        int64_t used = is_offered ? node->used[place] : 0;
        if (request->value > 0 && request->value > offered - used) {
            fit_refuse(fit, td_arena_format(arena, "Insufficient %.*s", TD_STR_ARG(request->name)),
                       request->value > offered);
        }
    }
}

void td_fit_check(struct td_arena *arena, const struct td_fit_pod *pod, const struct td_node *node,
                  struct td_fit *ret)
{
    const struct td_taint cordon = {.key = FIT_UNSCHEDULABLE_TAINT, .effect = TD_STR("NoSchedule")};
    *ret = (struct td_fit){.fits = true};
    if (node->is_unschedulable && !fit_tolerates_all(pod->tolerations, &cordon)) {
        fit_refuse(ret, TD_STR("node(s) were unschedulable"), true);
    } else if (!fit_passes_taints(pod, node)) {
        fit_refuse(ret, TD_STR("node(s) had untolerated taint(s)"), true);
    } else if (!fit_matches_affinity(pod, node)) {
        fit_refuse(ret, TD_STR("node(s) didn't match Pod's node affinity/selector"), true);
    } else {
        fit_check_resources(arena, pod, node, ret);
    }
}

/* ---- Choice ---- */

/* The free shares of cpu and memory together, in thousandths. */
static int64_t fit_free(const struct td_node *node)
{
    static const td_str names[] = {TD_STR_INIT("cpu"), TD_STR_INIT("memory")};
    int64_t shares = 0;
    for (size_t i = 0; i < 2; i++) {
        size_t place = td_node_resource(node, names[i]);
        int64_t offered = place < node->resource_count ? node->allocatable[place].value : 0;
        if (offered > 0) {
            double part = (double)(offered - node->used[place]) / (double)offered;
            shares += (int64_t)(part * FIT_SHARE_PARTS);
        }
    }
    return shares;
}

bool td_fit_is_better(const struct td_fit_pod *pod, const struct td_node *a,
                      const struct td_node *b)
{
    size_t siblings_a = td_node_siblings(a, pod->controller_uid);
    size_t siblings_b = td_node_siblings(b, pod->controller_uid);
    if (siblings_a != siblings_b) {
        return siblings_a < siblings_b;
    }
    int64_t free_a = fit_free(a);
    int64_t free_b = fit_free(b);
    return free_a != free_b ? free_a > free_b : td_str_compare(a->name, b->name) < 0;
}
