/*
 * A pod: who owns it, which VPA or Hvpa that makes its own and why the others are not, what it asks
 * for beside what is recommended, what admission did to it, and what comes next. A workload: which
 * autoscalers act on it.
 */
#include "api/gates.h"
#include "api/hpa/hpa.h"
#include "api/hvpa/hvpa.h"
#include "control/inspect/explain_private.h"
#include "decide/vertical/recommender/recommender.h"
#include "decide/vertical/siblings.h"
#include "decide/vertical/updater/matching.h"

/* ---- VPAs and a pod ---- */

struct pod_case {
    struct td_pod pod;
    const struct td_controller *top; /* NULL: the pod has no controller */
    const struct td_vpa *const *vpas;
    size_t vpa_count;
    const struct td_vpa *owner; /* NULL: none */
};

static td_str pod_labels(struct td_arena *arena, const struct td_labels *labels)
{
    td_auto_buf text = td_buf_capped(TD_OBJECT_BYTES_MAX);
    for (size_t i = 0; i < labels->count; i++) {
        (void)td_buf_append_format(&text, "%s%.*s=%.*s", i > 0 ? "," : "",
                                   TD_STR_ARG(labels->items[i].key),
                                   TD_STR_ARG(labels->items[i].value));
    }
    return text.len > 0 ? td_arena_copy_str(arena, td_buf_str(&text)) : TD_STR("none");
}

static bool pod_is_target(const struct td_vpa *vpa, const struct td_controller *top)
{
    return top && td_str_equal(vpa->target_kind, top->kind) &&
           td_str_equal(vpa->target_name, top->name);
}

static td_str pod_selector(struct td_arena *arena, const struct td_vpa *vpa)
{
    td_auto_buf text = td_buf_capped(TD_OBJECT_BYTES_MAX);
    td_selector_write(&vpa->pod_selector, &text);
    return td_arena_copy_str(arena, td_buf_str(&text));
}

/* Its owners, upwards; TD_BUSY. */
static int pod_owner(struct td_explain *explain, struct pod_case *in, struct td_error *err)
{
    struct td_arena *arena = &explain->arena;
    struct td_top_memo memo;
    td_str why = TD_STR_EMPTY;
    struct td_controller direct;
    td_top_memo_init(&memo, arena);
    int code = td_top_memo_get(&memo, td_informers_source(explain->snapshot->informers),
                               &in->pod.meta, &in->top, &why, err);
    td_top_memo_done(&memo);
    if (code == TD_BUSY) {
        return code;
    }
    if (!in->top) {
        explain_say(explain, "owner",
                    why.len > 0 ? td_arena_copy_str(arena, why)
                                : TD_STR("none: VPAs manage only pods of a controller; create the "
                                         "pod by a Deployment or another workload"));
        return TD_OK;
    }
    bool has_direct = td_controller_of_pod(&in->pod.meta, &direct);
    bool is_direct = has_direct && td_str_equal(direct.kind, in->top->kind);
    td_str by = has_direct && !is_direct
                    ? td_arena_format(arena, " by %.*s %.*s", TD_STR_ARG(direct.kind),
                                      TD_STR_ARG(direct.name))
                    : TD_STR_EMPTY;
    explain_say(explain, "owner",
                td_arena_format(arena, "%.*s %.*s%.*s", TD_STR_ARG(in->top->kind),
                                TD_STR_ARG(in->top->name), TD_STR_ARG(by)));
    return TD_OK;
}

static const struct td_vpa *pod_find_vpa(struct td_explain *explain, const struct pod_case *in)
{
    struct td_match_index index;
    td_match_index_init(&index, &explain->arena,
                        explain->snapshot->update.control.gates.heterogeneous_workloads);
    const struct td_match_vpa *found = NULL;
    if (in->top && td_match_index_add(&index, td_informers_source(explain->snapshot->informers),
                                      in->vpas, in->vpa_count, TD_MATCH_ANY, NULL, NULL) == TD_OK) {
        found = td_match_find(&index, in->top, in->pod.meta.namespace, &in->pod.meta.labels);
    }
    td_match_index_done(&index);
    return found ? found->vpa : NULL;
}

/* Why a VPA that names the same workload does not have the pod. */
static td_str pod_why_not(struct td_explain *explain, const struct pod_case *in,
                          const struct td_vpa *vpa)
{
    struct td_arena *arena = &explain->arena;
    if (vpa->has_selector && !td_selector_matches(&vpa->pod_selector, &in->pod.meta.labels)) {
        return td_arena_format(arena, "VPA %.*s: its selector %.*s does not match labels %.*s",
                               TD_STR_ARG(vpa->meta.name), TD_STR_ARG(pod_selector(arena, vpa)),
                               TD_STR_ARG(pod_labels(arena, &in->pod.meta.labels)));
    }
    if (in->owner) {
        return td_arena_format(arena,
                               "VPA %.*s: its selector matches too, but VPA %.*s is older; make "
                               "the selectors disjoint (tandem validate)",
                               TD_STR_ARG(vpa->meta.name), TD_STR_ARG(in->owner->meta.name));
    }
    return td_arena_format(arena, "VPA %.*s: the selector of its target does not match labels %.*s",
                           TD_STR_ARG(vpa->meta.name),
                           TD_STR_ARG(pod_labels(arena, &in->pod.meta.labels)));
}

static bool pod_hvpa(struct td_explain *explain, const struct pod_case *in)
{
    struct td_arena *arena = &explain->arena;
    const struct td_cache *cache =
        td_informers_cache(explain->snapshot->informers, TD_INFORMER_HVPAS);
    size_t position = 0;
    if (!explain->snapshot->update.control.hvpa_gate) {
        return false; /* the workload is told that its Hvpa does not act */
    }
    for (const struct td_informer_object *object; (object = td_cache_next(cache, &position));) {
        struct td_json *tree;
        struct td_hvpa hvpa;
        bool is_read = td_str_equal(object->head.namespace, in->pod.meta.namespace) &&
                       td_informers_tree(arena, object, &tree, NULL) == TD_OK &&
                       td_hvpa_decode(arena, tree, &hvpa, NULL, NULL) == TD_OK;
        if (is_read && in->top && td_str_equal(hvpa.target.kind, in->top->kind) &&
            td_str_equal(hvpa.target.name, in->top->name)) {
            td_str name = td_arena_copy_str(arena, object->head.name);
            explain_say(explain, "managed",
                        td_arena_format(arena,
                                        "by Hvpa %.*s, mode %.*s, which scales %.*s %.*s and sizes "
                                        "its pods; see tandem explain hvpa %.*s -n %.*s",
                                        TD_STR_ARG(name), TD_STR_ARG(td_hvpa_mode_name(hvpa.mode)),
                                        TD_STR_ARG(in->top->kind), TD_STR_ARG(in->top->name),
                                        TD_STR_ARG(name), TD_STR_ARG(in->pod.meta.namespace)));
            td_json_set_str(arena, explain->json, TD_STR("hvpa"), name);
            return true;
        }
    }
    return false;
}

/* Would a VPA with this requirement be apart from all that name the workload? */
static bool pod_is_apart(struct td_explain *explain, const struct pod_case *in,
                         const struct td_requirement *requirement)
{
    const struct td_selector selector = {.requirements = requirement, .count = 1};
    for (size_t i = 0; i < in->vpa_count; i++) {
        const struct td_vpa *vpa = in->vpas[i];
        if (pod_is_target(vpa, in->top) &&
            td_selector_disjoint(&explain->arena, &selector,
                                 vpa->has_selector ? &vpa->pod_selector : NULL)
                    .verdict != TD_SELECTOR_DISJOINT) {
            return false;
        }
    }
    return true;
}

/* A selector for a VPA of its own, beside those of the workload that do not select the pod: one key
 * that they look at, with what the pod has there. Empty: no single key would do. */
static td_str pod_own_selector(struct td_explain *explain, const struct pod_case *in)
{
    for (size_t i = 0; i < in->vpa_count; i++) {
        const struct td_vpa *vpa = in->vpas[i];
        bool is_one = pod_is_target(vpa, in->top) && vpa->has_selector;
        for (size_t k = 0; is_one && k < vpa->pod_selector.count; k++) {
            td_str key = vpa->pod_selector.requirements[k].key;
            const td_str *value = td_labels_get(&in->pod.meta.labels, key);
            const struct td_requirement own = {
                .key = key,
                .operation = value ? TD_SELECTOR_IN : TD_SELECTOR_NOT_EXISTS,
                .values = value,
                .value_count = value ? 1 : 0,
            };
            if (pod_is_apart(explain, in, &own)) {
                return value
                           ? td_arena_format(&explain->arena, "%.*s In (%.*s)", TD_STR_ARG(key),
                                             TD_STR_ARG(*value))
                           : td_arena_format(&explain->arena, "%.*s DoesNotExist", TD_STR_ARG(key));
            }
        }
    }
    return TD_STR_EMPTY;
}

/* What would give it a VPA: one without a selector beside others of the workload is refused. */
static td_str pod_advice(struct td_explain *explain, const struct pod_case *in)
{
    struct td_arena *arena = &explain->arena;
    size_t count = 0;
    for (size_t i = 0; i < in->vpa_count; i++) {
        count += pod_is_target(in->vpas[i], in->top);
    }
    td_str target = td_arena_format(arena, "create one with targetRef %.*s %.*s",
                                    TD_STR_ARG(in->top->kind), TD_STR_ARG(in->top->name));
    if (count == 0) {
        return td_arena_format(arena, "%.*s, or run tandem recommend -n %.*s", TD_STR_ARG(target),
                               TD_STR_ARG(in->pod.meta.namespace));
    }
    td_str selector = pod_own_selector(explain, in);
    return selector.len > 0
               ? td_arena_format(arena,
                                 "label it so that one of them does, or %.*s and the selector %.*s",
                                 TD_STR_ARG(target), TD_STR_ARG(selector))
               : TD_STR("label it so that one of them does");
}

static void pod_managed(struct td_explain *explain, struct pod_case *in)
{
    struct td_arena *arena = &explain->arena;
    bool has_hvpa = pod_hvpa(explain, in);
    in->owner = pod_find_vpa(explain, in);
    const struct td_vpa *vpa = in->owner;
    if (vpa) {
        td_str selector = vpa->has_selector
                              ? td_arena_format(arena, " and its selector %.*s matches",
                                                TD_STR_ARG(pod_selector(arena, vpa)))
                              : TD_STR_EMPTY;
        explain_say(explain, "managed",
                    td_arena_format(arena, "by VPA %.*s, mode %.*s: its target is %.*s %.*s%.*s",
                                    TD_STR_ARG(vpa->meta.name),
                                    TD_STR_ARG(td_vpa_mode_name(vpa->mode)),
                                    TD_STR_ARG(vpa->target_kind), TD_STR_ARG(vpa->target_name),
                                    TD_STR_ARG(selector)));
        td_json_set_str(arena, explain->json, TD_STR("vpa"), vpa->meta.name);
    } else if (!has_hvpa && in->top) {
        explain_say(explain, "managed",
                    td_arena_format(arena,
                                    "by no VPA: none of the %zu in namespace %.*s selects it; %.*s",
                                    in->vpa_count, TD_STR_ARG(in->pod.meta.namespace),
                                    TD_STR_ARG(pod_advice(explain, in))));
    } else if (!has_hvpa) {
        explain_say(explain, "managed", TD_STR("by no VPA"));
    }
    const char *label = "not by";
    for (size_t i = 0; i < in->vpa_count; i++) {
        if (in->vpas[i] != vpa && pod_is_target(in->vpas[i], in->top)) {
            explain_say(explain, label, pod_why_not(explain, in, in->vpas[i]));
            label = "";
        }
    }
}

static const struct td_container_recommendation *
pod_recommended(const struct td_recommendation *recommendation, td_str container)
{
    for (size_t i = 0; i < recommendation->container_count; i++) {
        if (td_str_equal(recommendation->containers[i].container_name, container)) {
            return &recommendation->containers[i];
        }
    }
    return NULL;
}

static void pod_sizes(struct td_explain *explain, const struct pod_case *in)
{
    struct td_arena *arena = &explain->arena;
    struct td_vpa object;
    struct td_vpa_status status = {.condition_count = 0};
    struct td_recommendation recommendation = {.container_count = 0};
    if (in->owner) {
        recommendation = in->owner->recommendation;
        if (td_recommend_loop_vpa(explain->snapshot->recommend, arena, in->owner->meta.namespace,
                                  in->owner->meta.name, &object, &status, NULL) == TD_OK) {
            recommendation = status.recommendation;
        }
    }
    for (size_t i = 0; i < in->pod.container_count; i++) {
        const struct td_pod_container *c = &in->pod.containers[i];
        const struct td_container_recommendation *r = pod_recommended(&recommendation, c->name);
        td_str should = TD_STR_EMPTY;
        if (in->owner) {
            should = td_arena_format(
                arena, "; recommended %.*s",
                TD_STR_ARG(r ? explain_amounts(arena, &r->target) : TD_STR("nothing yet")));
        }
        explain_say(explain, i == 0 ? "requests" : "",
                    td_arena_format(arena, "%.*s: %.*s%.*s", TD_STR_ARG(c->name),
                                    TD_STR_ARG(explain_amounts(arena, td_vertical_requests(c))),
                                    TD_STR_ARG(should)));
    }
    if (in->owner) {
        explain_conditions(explain, status.conditions, status.condition_count);
    }
}

/* What admission and updater left in its annotations. */
static void pod_annotations(struct td_explain *explain, const struct pod_case *in)
{
    static const char *const names[] = {"vpaUpdates", "vpaInPlaceUpdated", "vpaObservedContainers",
                                        "tandem.dev/hvpa"};
    const char *label = "annotations";
    bool is_mutated = false;
    for (size_t i = 0; i < TD_COUNT(names); i++) {
        td_str value =
            td_json_get_str(in->pod.meta.annotations, td_str_from(names[i]), TD_STR_EMPTY);
        if (value.len > 0) {
            explain_say(explain, label,
                        td_arena_format(&explain->arena, "%s: %.*s", names[i], TD_STR_ARG(value)));
            label = "";
            is_mutated = true;
        }
    }
    if (!is_mutated && in->owner && in->owner->mode != TD_VPA_OFF) {
        explain_say(explain, "annotations",
                    TD_STR("none from the webhook: the pod was created before the first "
                           "recommendation, or while the webhook was not serving"));
    }
}

static int pod_next(struct td_explain *explain, const struct pod_case *in, struct td_error *err)
{
    struct td_updater_notes notes = {.count = 0};
    if (!in->owner) {
        return TD_OK;
    }
    explain_problems(explain, in->owner->mode != TD_VPA_OFF);
    int code = explain_updater(explain, in->owner, &notes, err);
    for (size_t i = 0; i < notes.count && code == TD_OK; i++) {
        const struct td_updater_note *note = &notes.items[i];
        bool is_about = note->pod ? td_str_equal(note->pod->meta.name, in->pod.meta.name)
                                  : td_str_equal(note->vpa->meta.name, in->owner->meta.name);
        if (is_about) {
            explain_say(explain, "next", explain_note(explain, note));
            td_json_set(&explain->arena, explain->json, TD_STR("updater"),
                        td_updater_note_json(&explain->arena, note));
        }
    }
    return code;
}

/* The VPAs of a namespace, those that can be read. */
static size_t pod_vpas(struct td_explain *explain, td_str namespace,
                       const struct td_vpa *const **ret)
{
    const struct td_cache *cache =
        td_informers_cache(explain->snapshot->informers, TD_INFORMER_VPAS);
    const struct td_vpa **vpas =
        td_arena_array(&explain->arena, const struct td_vpa *, td_cache_count(cache) + 1);
    size_t count = 0;
    size_t position = 0;
    for (const struct td_informer_object *object; (object = td_cache_next(cache, &position));) {
        struct td_json *tree;
        struct td_vpa *vpa = td_arena_new(&explain->arena, struct td_vpa);
        if (td_str_equal(object->head.namespace, namespace) &&
            td_informers_tree(&explain->arena, object, &tree, NULL) == TD_OK &&
            td_vpa_decode(&explain->arena, tree, vpa, NULL) == TD_OK) {
            (void)td_vpa_close_gates(&explain->arena, &explain->snapshot->update.control.gates,
                                     vpa); /* tandem explain vpa says so */
            vpas[count++] = vpa;
        }
    }
    *ret = vpas;
    return count;
}

int explain_pod(struct td_explain *explain, struct td_error *err)
{
    const struct td_explain_subject *subject = &explain->subject;
    struct pod_case in = {.owner = NULL};
    const struct td_json *tree =
        explain_object(explain, TD_INFORMER_PODS, subject->namespace, subject->name);
    if (!tree) {
        return td_error_set(err, TD_NOT_FOUND, "not found");
    }
    int code = td_pod_decode(&explain->arena, tree, &in.pod, err);
    if (code != TD_OK) {
        return code;
    }
    td_str phase =
        td_json_get_str(td_json_get(tree, TD_STR("status")), TD_STR("phase"), TD_STR("Pending"));
    explain_title(explain, TD_STR("Pod"), TD_STR("v1"), phase);
    in.vpa_count = pod_vpas(explain, subject->namespace, &in.vpas);
    code = pod_owner(explain, &in, err);
    if (code != TD_OK) {
        return code;
    }
    pod_managed(explain, &in);
    pod_sizes(explain, &in);
    pod_annotations(explain, &in);
    return pod_next(explain, &in, err);
}

/* ---- A workload ---- */

static bool workload_is(const struct td_explain *explain, const struct td_json *target)
{
    return td_str_equal(td_json_text(target, "kind"), explain->subject.workload) &&
           td_str_equal(td_json_text(target, "name"), explain->subject.name);
}

struct workload_row {
    enum td_informer_kind kind;
    const char *word;
    const char *command;
};

/* Who of one kind acts on it; each is a line. */
static size_t workload_list(struct td_explain *explain, const struct workload_row *row,
                            const char *label)
{
    struct td_arena *arena = &explain->arena;
    const struct td_cache *cache = td_informers_cache(explain->snapshot->informers, row->kind);
    size_t count = 0;
    size_t position = 0;
    for (const struct td_informer_object *object; (object = td_cache_next(cache, &position));) {
        struct td_json *tree;
        if (!td_str_equal(object->head.namespace, explain->subject.namespace) ||
            td_informers_tree(arena, object, &tree, NULL) != TD_OK) {
            continue;
        }
        if (!workload_is(explain, td_informers_target(row->kind, tree))) {
            continue;
        }
        td_str name = td_arena_copy_str(arena, object->head.name);
        if (row->kind == TD_INFORMER_HVPAS && !explain->snapshot->update.control.hvpa_gate) {
            explain_say(explain, "ignored",
                        td_arena_format(arena, "Hvpa %.*s: the feature gate Hvpa is off",
                                        TD_STR_ARG(name)));
            continue;
        }
        explain_say(explain, count == 0 ? label : "",
                    td_arena_format(arena, "%s %.*s: tandem explain %s %.*s -n %.*s", row->word,
                                    TD_STR_ARG(name), row->command, TD_STR_ARG(name),
                                    TD_STR_ARG(explain->subject.namespace)));
        count++;
    }
    return count;
}

int explain_workload(struct td_explain *explain, struct td_error *err)
{
    static const struct workload_row rows[] = {
        {TD_INFORMER_HVPAS, "Hvpa", "hvpa"},
        {TD_INFORMER_VPAS, "VPA", "vpa"},
        {TD_INFORMER_HPAS, "HPA (autoscaling/v2)", "hpa"},
        {TD_INFORMER_OWN_HPAS, "HPA (autoscaling.tandem.dev/v2)", "hpa"},
    };
    static const char *const versions[] = {"v1", "apps/v1", "batch/v1"};
    const struct td_explain_subject *subject = &explain->subject;
    const struct td_workload_source *source = td_informers_source(explain->snapshot->informers);
    const struct td_workload *workload =
        source->get_workload(source->context, subject->workload, subject->namespace, subject->name);
    size_t counts[4] = {0};
    size_t total = 0;
    if (!workload) {
        return td_error_set(err, TD_NOT_FOUND, "not found");
    }
    enum td_workload_kind kind = td_workload_kind_of(subject->workload);
    bool is_batch = kind == TD_WORKLOAD_JOB || kind == TD_WORKLOAD_CRON_JOB;
    bool is_core = kind == TD_WORKLOAD_REPLICATION_CONTROLLER;
    td_str replicas = workload->has_replicas ? td_arena_format(&explain->arena, "%lld replica%s",
                                                               (long long)workload->replicas,
                                                               TD_PLURAL(workload->replicas))
                                             : TD_STR_EMPTY;
    explain_title(explain, subject->workload,
                  td_str_from(versions[is_core    ? 0
                                       : is_batch ? 2
                                                  : 1]),
                  replicas);
    for (size_t i = 0; i < 4; i++) {
        counts[i] = workload_list(explain, &rows[i], total == 0 ? "acted on by" : "");
        total += counts[i];
    }
    if (total == 0) {
        explain_say(explain, "acted on by",
                    td_arena_format(&explain->arena,
                                    "no autoscaler; create a VerticalPodAutoscaler, a "
                                    "HorizontalPodAutoscaler or an Hvpa, or run tandem recommend "
                                    "-n %.*s",
                                    TD_STR_ARG(subject->namespace)));
    }
    if (counts[0] > 0 && total > counts[0]) {
        explain_say(explain, "warning",
                    TD_STR("an Hvpa scales both axes: with another autoscaler on the same target "
                           "its Ready condition has reason TargetConflict"));
    } else if (counts[1] > 0 && counts[2] + counts[3] > 0) {
        explain_say(
            explain, "warning",
            TD_STR("a VPA and an HPA: replicas can drift when both act on the same resource; "
                   "tandem validate computes the loop gain, an Hvpa couples them"));
    }
    explain_problems(explain, false);
    return TD_OK;
}
