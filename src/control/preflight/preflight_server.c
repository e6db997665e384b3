/*
 * The server: what it can do, told by what it serves, what its nodes declare and what it keeps of a
 * dry run, never by its version alone; the metrics API; and who else scales.
 */
#include "base/limits.h"
#include "control/preflight/preflight_private.h"

#define SERVER_MINOR_MIN 34 /* those that are tested */
#define SERVER_MINOR_MAX 36
#define SERVER_METRICS_MAX (5 * TD_MINUTE)
#define SERVER_METRICS_FIRST (3 * TD_MINUTE) /* until a new pod has some */
#define SERVER_HPA_MAX (2 * TD_MINUTE)       /* a controller looks at each every 15 s */
#define SERVER_POD_LEVEL "InPlacePodLevelResourcesVerticalScaling"

/* ---- What it can do ---- */

static bool server_has_resource(const struct td_json *list, td_str name)
{
    for (const struct td_json *item = td_json_first_item(td_json_get(list, TD_STR("resources")));
         item; item = item->next) {
        if (td_str_equal(td_json_text(item, "name"), name)) {
            return true;
        }
    }
    return false;
}

static bool server_has_group(const struct td_preflight *preflight, td_str name)
{
    const struct td_json *groups =
        td_json_get(preflight_tree(preflight, PREFLIGHT_GROUPS), TD_STR("groups"));
    for (const struct td_json *item = td_json_first_item(groups); item; item = item->next) {
        if (td_str_equal(td_json_text(item, "name"), name)) {
            return true;
        }
    }
    return false;
}

static bool server_has_node_feature(const struct td_preflight *preflight, td_str name)
{
    const struct td_json *items =
        td_json_get(preflight_tree(preflight, PREFLIGHT_NODES), TD_STR("items"));
    for (const struct td_json *node = td_json_first_item(items); node; node = node->next) {
        if (td_json_has_text(td_json_get_path(node, "status.declaredFeatures"), name)) {
            return true;
        }
    }
    return false;
}

static void server_lacks(struct td_preflight *preflight, const char *found, const char *todo)
{
    preflight_tell(preflight, TD_FINDING_NOTE, "server", td_str_from(found), td_str_from(todo));
}

/* What an older server, or one with a gate off, does not do, and what happens instead. */
static void server_judge_lacks(struct td_preflight *preflight)
{
    if (preflight_tree(preflight, PREFLIGHT_CORE) &&
        !server_has_resource(preflight_tree(preflight, PREFLIGHT_CORE), TD_STR("pods/resize"))) {
        server_lacks(preflight, "no in-place resize: pods/resize is not served",
                     "InPlaceOrRecreate evicts, InPlace changes no running pod");
    }
    if (preflight->options.is_short) {
        return;
    }
    const struct td_json *pod = preflight_tree(preflight, PREFLIGHT_TRY_POD_LEVEL);
    if (pod && !td_json_get_path(pod, "spec.resources.requests.cpu")) {
        server_lacks(preflight, "no pod-level resources: spec.resources of a pod is not kept",
                     "pods are sized by container");
    } else if (pod && preflight_tree(preflight, PREFLIGHT_NODES) &&
               !server_has_node_feature(preflight, TD_STR(SERVER_POD_LEVEL))) {
        server_lacks(preflight, "no node declares " SERVER_POD_LEVEL,
                     "pods with pod-level resources are evicted where the mode allows, not "
                     "resized in place");
    }
    const struct td_json *sharded = preflight_tree(preflight, PREFLIGHT_SHARDED);
    if (sharded && !td_json_get_path(sharded, "metadata.shardInfo")) {
        server_lacks(preflight, "no sharded lists and watches: shardSelector is passed over",
                     "with --shards each replica is sent all objects, and drops those of others");
    }
    const struct preflight_answer *zero = preflight_answer(preflight, PREFLIGHT_TRY_ZERO);
    if (zero->is_asked && zero->status == 422) {
        server_lacks(preflight,
                     "no scale to zero: minReplicas 0 of an autoscaling/v2 HPA is refused",
                     "an HPA of autoscaling.tandem.dev has it with the gate HPAScaleToZero");
    }
    const struct td_json *hpa = preflight_tree(preflight, PREFLIGHT_TRY_TOLERANCE);
    if (hpa && !td_json_get_path(hpa, "spec.behavior.scaleUp.tolerance")) {
        server_lacks(preflight,
                     "no tolerance in the behavior of an HPA: the server does not keep the field",
                     "--horizontal-pod-autoscaler-tolerance is for all, or use "
                     "autoscaling.tandem.dev");
    }
}

void preflight_judge_server(struct td_preflight *preflight)
{
    const struct td_json *version = preflight_tree(preflight, PREFLIGHT_VERSION);
    td_str text = td_json_text(version, "gitVersion");
    td_str digits = td_json_text(version, "minor"); /* "36", of some clouds "36+" */
    int64_t minor = 0;
    size_t plus = td_str_find(digits, '+', 0);
    bool is_tested = td_str_equal(td_json_text(version, "major"), TD_STR("1")) &&
                     td_str_to_int64(td_str_slice(digits, 0, plus), &minor) &&
                     minor >= SERVER_MINOR_MIN && minor <= SERVER_MINOR_MAX;
    preflight_tell(preflight, is_tested ? TD_FINDING_OK : TD_FINDING_NOTE, "server",
                   td_arena_format(&preflight->arena, "Kubernetes %.*s", TD_STR_ARG(text)),
                   is_tested ? TD_STR_EMPTY
                             : td_arena_format(&preflight->arena,
                                               "tested with 1.%d to 1.%d; what it lacks is below",
                                               SERVER_MINOR_MIN, SERVER_MINOR_MAX));
    server_judge_lacks(preflight);
}

/* ---- The metrics API ---- */

static void server_metrics_fail(struct td_preflight *preflight, td_str found, const char *todo)
{
    preflight_tell(preflight, TD_FINDING_MEND, "metrics", found, td_str_from(todo));
}

/* Why the aggregation layer cannot reach it, in its words. */
static td_str server_metrics_why(struct td_preflight *preflight)
{
    const struct td_json *conditions =
        td_json_get_path(preflight_tree(preflight, PREFLIGHT_SERVICE), "status.conditions");
    for (const struct td_json *one = td_json_first_item(conditions); one; one = one->next) {
        if (td_str_equal(td_json_text(one, "type"), TD_STR("Available")) &&
            !td_str_equal(td_json_text(one, "status"), TD_STR("True"))) {
            return td_arena_format(&preflight->arena, "%.*s: %.*s",
                                   TD_STR_ARG(td_json_text(one, "reason")),
                                   TD_STR_ARG(td_json_text(one, "message")));
        }
    }
    return td_str_from(preflight_answer(preflight, PREFLIGHT_METRICS)->err.message);
}

/* Does a pod run for long enough to have metrics? */
static bool server_has_old_pod(const struct td_preflight *preflight)
{
    const struct td_json *items =
        td_json_get(preflight_tree(preflight, PREFLIGHT_PODS), TD_STR("items"));
    for (const struct td_json *pod = td_json_first_item(items); pod; pod = pod->next) {
        td_duration age = preflight_age(
            preflight, td_json_text(td_json_get(pod, TD_STR("metadata")), "creationTimestamp"));
        if (age == TD_TIME_NONE || age > SERVER_METRICS_FIRST) {
            return true;
        }
    }
    return false;
}

/* Metrics that came: are there any, and are they of now? */
static void server_judge_measured(struct td_preflight *preflight, const struct td_json *items)
{
    struct td_arena *arena = &preflight->arena;
    size_t count = td_json_item_count(items);
    td_duration youngest = TD_TIME_NONE;
    for (const struct td_json *item = td_json_first_item(items); item; item = item->next) {
        td_duration age = preflight_age(preflight, td_json_text(item, "timestamp"));
        bool is_younger = youngest == TD_TIME_NONE || age < youngest;
        youngest = age != TD_TIME_NONE && is_younger ? age : youngest;
    }
    if (count == 0 && server_has_old_pod(preflight)) {
        server_metrics_fail(preflight, TD_STR("metrics.k8s.io answers, but has metrics of no pod"),
                            "look at the log of metrics-server: it cannot read the kubelets");
    } else if (youngest != TD_TIME_NONE && youngest > SERVER_METRICS_MAX) {
        server_metrics_fail(preflight,
                            td_arena_format(arena, "the newest metrics are %lld minutes old",
                                            (long long)(youngest / TD_MINUTE)),
                            "look at the log of metrics-server; nothing is updated by old metrics");
    } else {
        preflight_tell(preflight, TD_FINDING_OK, "metrics", TD_STR("metrics.k8s.io answers"),
                       TD_STR_EMPTY);
    }
}

void preflight_judge_metrics(struct td_preflight *preflight)
{
    const struct preflight_answer *metrics = preflight_answer(preflight, PREFLIGHT_METRICS);
    const struct td_json *list = preflight_tree(preflight, PREFLIGHT_METRICS);
    bool has_group = server_has_group(preflight, TD_STR("metrics.k8s.io"));
    if (list) {
        server_judge_measured(preflight, td_json_get(list, TD_STR("items")));
    } else if (metrics->is_asked && metrics->code == TD_DENIED) {
        preflight_tell(preflight, TD_FINDING_NOTE, "metrics",
                       TD_STR("you may not list pods of metrics.k8s.io"),
                       TD_STR("ask one who may, to see whether it answers"));
    } else if (preflight_tree(preflight, PREFLIGHT_GROUPS) && !has_group) {
        server_metrics_fail(preflight, TD_STR("metrics.k8s.io is not served"),
                            "install metrics-server; until then nothing is learnt from use");
    } else if (!metrics->is_asked) {
        preflight_tell(preflight, TD_FINDING_OK, "metrics", TD_STR("metrics.k8s.io is served"),
                       TD_STR_EMPTY);
    } else {
        server_metrics_fail(preflight,
                            td_arena_format(&preflight->arena,
                                            "metrics.k8s.io does not answer (%.*s)",
                                            TD_STR_ARG(server_metrics_why(preflight))),
                            "mend the Service of APIService v1beta1.metrics.k8s.io");
    }
}

/* ---- Who else scales ---- */

enum server_hpa { SERVER_HPA_UNKNOWN, SERVER_HPA_ON, SERVER_HPA_OFF };

/* By its flags, where its pods are to be seen: "*,-horizontal-pod-autoscaler-controller". */
static enum server_hpa server_hpa_by_flags(const struct td_preflight *preflight)
{
    static const td_str flag = TD_STR_INIT("--controllers=");
    const struct td_json *pod = td_json_first_item(
        td_json_get(preflight_tree(preflight, PREFLIGHT_MANAGERS), TD_STR("items")));
    const struct td_json *container = td_json_first_item(td_json_get_path(pod, "spec.containers"));
    static const char *const lists[] = {"command", "args"};
    for (size_t i = 0; i < TD_COUNT(lists); i++) {
        for (const struct td_json *word = td_json_first_item(td_json_member(container, lists[i]));
             word; word = word->next) {
            if (!td_json_is(word, TD_JSON_TYPE_STRING) || !td_str_starts_with(word->text, flag)) {
                continue;
            }
            td_str list = td_str_slice(word->text, flag.len, word->text.len);
            bool is_on = false;
            for (td_str name; (name = td_rights_word(&list)).len > 0;) {
                bool is_off = td_str_starts_with(name, TD_STR("-horizontal"));
                is_on = (is_on || td_str_equal(name, TD_STR("*")) ||
                         td_str_starts_with(name, TD_STR("horizontal"))) &&
                        !is_off;
            }
            return is_on ? SERVER_HPA_ON : SERVER_HPA_OFF;
        }
    }
    return pod ? SERVER_HPA_ON : SERVER_HPA_UNKNOWN;
}

/* By what became of the HPAs: one that was never looked at has no condition. */
static enum server_hpa server_hpa_by_objects(const struct td_preflight *preflight)
{
    const struct td_json *items =
        td_json_get(preflight_tree(preflight, PREFLIGHT_HPAS), TD_STR("items"));
    enum server_hpa seen = SERVER_HPA_UNKNOWN;
    for (const struct td_json *hpa = td_json_first_item(items); hpa; hpa = hpa->next) {
        td_duration age = preflight_age(
            preflight, td_json_text(td_json_get(hpa, TD_STR("metadata")), "creationTimestamp"));
        if (td_json_item_count(td_json_get_path(hpa, "status.conditions")) > 0) {
            return SERVER_HPA_ON;
        }
        seen = age != TD_TIME_NONE && age > SERVER_HPA_MAX ? SERVER_HPA_OFF : seen;
    }
    return seen;
}

void preflight_judge_horizontal(struct td_preflight *preflight)
{
    const struct td_install_options *install = &preflight->options.install;
    enum server_hpa found = server_hpa_by_flags(preflight);
    bool by_flags = found != SERVER_HPA_UNKNOWN;
    found = by_flags ? found : server_hpa_by_objects(preflight);
    if (!install->has[TD_CONTROLLER_HORIZONTAL] || preflight->options.is_short) {
        return;
    }
    if (install->features[TD_FEATURE_BUILTIN] && found == SERVER_HPA_ON) {
        preflight_tell(
            preflight, TD_FINDING_MEND, "hpa",
            TD_STR("kube-controller-manager reconciles HPAs of autoscaling/v2 too"),
            TD_STR("start it with --controllers=*,-horizontal-pod-autoscaler-controller, or leave "
                   "out --horizontal=builtin"));
    } else if (!install->features[TD_FEATURE_BUILTIN] && found == SERVER_HPA_OFF) {
        preflight_tell(preflight, by_flags ? TD_FINDING_NOTE : TD_FINDING_MEND, "hpa",
                       TD_STR("no controller reconciles HPAs of autoscaling/v2"),
                       TD_STR("--horizontal=builtin lets Tandem do it"));
    } else {
        preflight_tell(preflight, TD_FINDING_OK, "hpa",
                       install->features[TD_FEATURE_BUILTIN]
                           ? TD_STR("HPAs of autoscaling/v2 are Tandem's")
                       : found == SERVER_HPA_ON
                           ? TD_STR("HPAs of autoscaling/v2 are kube-controller-manager's")
                           : TD_STR("HPAs of autoscaling/v2 are left to kube-controller-manager"),
                       TD_STR_EMPTY);
    }
}

/* ---- KEDA ---- */

/* "Deployment/shop/web"; a ScaledObject's target has that kind unless it names one. */
static td_str server_target(struct td_arena *arena, const struct td_json *object,
                            const char *member)
{
    const struct td_json *target = td_json_get_path(object, member);
    td_str kind = td_json_text(target, "kind");
    return td_arena_format(
        arena, "%.*s %.*s/%.*s", TD_STR_ARG(kind.len > 0 ? kind : TD_STR("Deployment")),
        TD_STR_ARG(td_json_text(td_json_get(object, TD_STR("metadata")), "namespace")),
        TD_STR_ARG(td_json_text(target, "name")));
}

void preflight_judge_keda(struct td_preflight *preflight)
{
    struct td_arena *arena = &preflight->arena;
    const struct td_json *scaled =
        td_json_get(preflight_tree(preflight, PREFLIGHT_SCALED), TD_STR("items"));
    const struct td_json *hvpas =
        td_json_get(preflight_tree(preflight, PREFLIGHT_HVPA_OBJECTS), TD_STR("items"));
    if (preflight->options.is_short || !server_has_group(preflight, TD_STR("keda.sh"))) {
        return;
    }
    for (const struct td_json *one = td_json_first_item(scaled); one; one = one->next) {
        td_str target = server_target(arena, one, "spec.scaleTargetRef");
        for (const struct td_json *hvpa = td_json_first_item(hvpas); hvpa; hvpa = hvpa->next) {
            if (td_str_equal(target, server_target(arena, hvpa, "spec.targetRef"))) {
                const struct td_json *meta = td_json_get(one, TD_STR("metadata"));
                preflight_tell(preflight, TD_FINDING_MEND, "keda",
                               td_arena_format(arena,
                                               "ScaledObject %.*s/%.*s and an Hvpa both scale "
                                               "%.*s",
                                               TD_STR_ARG(td_json_text(meta, "namespace")),
                                               TD_STR_ARG(td_json_text(meta, "name")),
                                               TD_STR_ARG(target)),
                               TD_STR("delete one of the two; an Hvpa takes KEDA's metrics as "
                                      "External ones"));
            }
        }
    }
    preflight_tell(preflight, TD_FINDING_OK, "keda",
                   TD_STR("KEDA makes HPAs of autoscaling/v2, and Tandem leaves them alone"),
                   TD_STR_EMPTY);
}
