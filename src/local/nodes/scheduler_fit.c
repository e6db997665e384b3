/*
 * The filters one after another; the first that fails gives the reason that is counted in the
 * FailedScheduling event.
 */
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
        .affinity = td_json_get_path(spec, TD_NODE_AFFINITY_PATH),
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

/* ---- Resources ---- */

static void fit_refuse(struct td_fit *fit, td_str reason, bool is_hopeless)
{
    fit->fits = false;
    fit->is_hopeless |= is_hopeless;
    if (fit->reason_count < TD_COUNT(fit->reasons)) {
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
    } else if (!td_node_fits_affinity(pod->node_selector, pod->affinity, node->name,
                                      &node->labels)) {
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
