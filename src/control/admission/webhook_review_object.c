/* VPAs, HPAs of our group and Hvpas: judged before they are stored, with every fault by its path.
 */
#include "api/gates.h"
#include "api/hpa/hpa.h"
#include "api/hvpa/hvpa.h"
#include "api/vpa/vpa.h"
#include "base/error.h"
#include "control/admission/webhook_private.h"
#include "control/informers/informers.h"
#include "decide/horizontal/strategy.h"
#include "decide/tandem/ownership.h"
#include "decide/vertical/siblings.h"
#include "decide/vertical/updater/selected.h"

/* What does not even decode: the message has the path. */
static void object_refuse_unreadable(struct webhook_review *review, const struct td_error *err)
{
    td_str message =
        td_arena_format(review->arena, "%.*s%s%.*s \"%.*s\" is invalid: %s",
                        TD_STR_ARG(review->kind), review->kind_group.len > 0 ? "." : "",
                        TD_STR_ARG(review->kind_group), TD_STR_ARG(review->name), err->message);
    webhook_review_refuse(review, 422, "Invalid", message);
}

static void object_warn(struct webhook_review *review, td_str sentence)
{
    if (sentence.len > 0) {
        webhook_review_warn(review, sentence);
    }
}

/* ---- VPAs ---- */

/* Is it created, or an update that changes its selector or target? */
static bool vpa_is_moved(struct webhook_review *review, const struct td_vpa *vpa)
{
    struct td_vpa old;
    return !review->is_update || !review->old ||
           td_vpa_decode(review->arena, review->old, &old, NULL) != TD_OK ||
           !td_vpa_is_same_selection(&old, vpa);
}

/* False: what is stored is not known yet, and the review waits. */
static bool vpa_judge_siblings(struct webhook_review *review, const struct td_vpa *vpa,
                               struct td_field_errors *errors)
{
    struct webhook_sibling_list stored;
    if (webhook_siblings_get(review, TD_INFORMER_VPAS, &stored) != TD_OK) {
        return false;
    }
    const struct td_vpa **existing =
        td_arena_array(review->arena, const struct td_vpa *, stored.count + 1);
    struct td_sibling_request request = {.vpa = vpa, .existing = existing, .gate = true};
    for (size_t i = 0; i < stored.count; i++) {
        struct td_vpa *sibling = td_arena_new(review->arena, struct td_vpa);
        if (td_vpa_decode(review->arena, stored.items[i], sibling, NULL) == TD_OK) {
            existing[request.existing_count++] = sibling;
        }
    }
    struct td_sibling_judgement judgement = td_vpa_judge_siblings(review->arena, &request);
    const struct td_field_path spec = td_field_child(NULL, TD_STR("spec"));
    const struct td_field_path selector = td_field_child(&spec, TD_STR("selector"));
    for (size_t i = 0; !judgement.is_allowed && i < judgement.conflict_count; i++) {
        td_field_error_add(errors, &selector, TD_FIELD_FORBIDDEN, TD_STR_EMPTY,
                           judgement.conflicts[i].message);
    }
    if (!judgement.is_allowed && judgement.is_contradictory) {
        td_field_error_add(
            errors, &selector, TD_FIELD_FORBIDDEN, TD_STR_EMPTY,
            td_selector_contradiction_text(review->arena, judgement.contradictory_keys.items[0]));
    }
    return true;
}

/* A selector that no pod meets when it is made: said now, not when pods are left alone. */
static void vpa_warn_of_selector(struct webhook_review *review)
{
    const struct td_control *control = &review->webhook->options.control;
    struct td_vpa vpa;
    if (!control->gates.heterogeneous_workloads ||
        td_vpa_decode(review->arena, review->object, &vpa, NULL) != TD_OK || !vpa.has_target) {
        return;
    }
    const struct td_workload_source *source = td_informers_source(control->informers);
    const struct td_workload *target =
        source->get_workload(source->context, vpa.target_kind, review->namespace, vpa.target_name);
    if (target && target->template.is_set) {
        td_str text = td_vpa_selector_warning(review->arena, &vpa, &target->template.labels);
        if (text.len > 0) {
            webhook_review_warn(
                review, td_arena_format(review->arena, "spec.selector: %.*s", TD_STR_ARG(text)));
        }
    }
}

/* What is right and has no effect. */
static void object_warn_fields(struct webhook_review *review, const struct td_field_errors *list)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct td_field_error *warning = &list->items[i];
        webhook_review_warn(review,
                            td_arena_format(review->arena, "%.*s: %.*s", TD_STR_ARG(warning->field),
                                            TD_STR_ARG(warning->detail)));
    }
}

static void vpa_warn_of_unused(struct webhook_review *review, const struct td_vpa *vpa)
{
    struct td_field_errors unused = {.arena = review->arena};
    struct td_field_path spec = td_field_child(NULL, TD_STR("spec"));
    td_vpa_find_unused(vpa, &spec, &unused);
    object_warn_fields(review, &unused);
}

void webhook_review_vpa(struct webhook_review *review)
{
    struct td_field_errors errors = {.arena = review->arena};
    struct td_json *patches;
    struct td_json *warnings;
    struct td_error err = TD_ERROR_INIT;
    const struct td_vpa_admission admission = {
        .is_update = review->is_update,
        .object = review->object,
        .old = review->old,
        .gates = review->webhook->options.control.gates,
    };
    if (td_vpa_admit(review->arena, &admission, &errors, &patches, &warnings, &err) != TD_OK) {
        object_refuse_unreadable(review, &err);
        return;
    }
    struct td_vpa vpa;
    bool is_read = td_vpa_decode(review->arena, review->object, &vpa, NULL) == TD_OK;
    bool is_judged =
        is_read && admission.gates.heterogeneous_workloads && vpa_is_moved(review, &vpa);
    if (is_judged && !vpa_judge_siblings(review, &vpa, &errors)) {
        return;
    }
    review->warnings = warnings;
    review->patches = patches;
    vpa_warn_of_selector(review);
    if (errors.count > 0) {
        webhook_review_refuse_fields(review, &errors);
        return;
    }
    if (is_judged) {
        webhook_siblings_admitted(review, TD_INFORMER_VPAS);
    }
    if (is_read) {
        vpa_warn_of_unused(review, &vpa);
        object_warn(review, td_vpa_close_gates(review->arena, &admission.gates, &vpa));
    }
}

/* ---- HPAs ---- */

static void hpa_warn(struct webhook_review *review, const struct td_hpa_gates *gates)
{
    struct td_hpa hpa;
    struct td_json *copy = td_json_copy(review->arena, review->object, false);
    if (td_hpa_default(review->arena, copy, NULL) == TD_OK &&
        td_hpa_decode(review->arena, copy, &hpa, NULL) == TD_OK) {
        object_warn(review,
                    td_hpa_close_gates(review->arena, gates, TD_HPA_STRATEGY_ANNOTATION, &hpa));
    }
}

void webhook_review_hpa(struct webhook_review *review)
{
    struct td_field_errors errors = {.arena = review->arena};
    struct td_error err = TD_ERROR_INIT;
    const struct td_hpa_admission admission = {
        .operation = review->is_update ? TD_HPA_UPDATE : TD_HPA_CREATE,
        .object = review->object,
        .old = review->is_update ? review->old : NULL,
        .gates = {.selection_strategy = review->webhook->options.control.selection_strategy_gate,
                  .scale_to_zero = review->webhook->options.control.scale_to_zero_gate,
                  .configurable_tolerance = review->webhook->options.control.tolerance_gate},
    };
    if (review->is_update && !review->old) {
        webhook_review_undecided(review, "unreadable-review");
        return;
    }
    if (td_hpa_admit(review->arena, &admission, &errors, NULL, &err) != TD_OK) {
        object_refuse_unreadable(review, &err);
    } else if (errors.count > 0) {
        webhook_review_refuse_fields(review, &errors);
    } else {
        hpa_warn(review, &admission.gates);
    }
}

/* ---- Hvpas ---- */

static bool hvpa_read_target(struct webhook_review *review, const struct td_json *object,
                             struct td_ownership_object *ret)
{
    struct td_json *copy = td_json_copy(review->arena, object, false);
    td_json_set_str(review->arena, copy, TD_STR("apiVersion"), TD_STR(TD_HVPA_API_VERSION));
    td_json_set_str(review->arena, copy, TD_STR("kind"), TD_STR("Hvpa"));
    return td_ownership_read(copy, ret);
}

/* An Hvpa shares its target with no other. False: the review waits. */
static bool hvpa_judge_siblings(struct webhook_review *review, struct td_field_errors *errors)
{
    struct td_ownership_object mine;
    struct td_ownership_object old;
    struct td_ownership_object other;
    struct webhook_sibling_list stored;
    if (!hvpa_read_target(review, review->object, &mine)) {
        return true;
    }
    if (review->is_update && review->old && hvpa_read_target(review, review->old, &old) &&
        td_ownership_is_same_target(&mine.target, &old.target)) {
        return true;
    }
    if (webhook_siblings_get(review, TD_INFORMER_HVPAS, &stored) != TD_OK) {
        return false;
    }
    const struct td_field_path field = td_field_child(NULL, mine.target_field);
    for (size_t i = 0; i < stored.count; i++) {
        if (hvpa_read_target(review, stored.items[i], &other) &&
            td_ownership_is_same_target(&mine.target, &other.target)) {
            td_field_error_add(
                errors, &field, TD_FIELD_FORBIDDEN, TD_STR_EMPTY,
                td_arena_format(review->arena, "Hvpa %.*s/%.*s already scales this target",
                                TD_STR_ARG(review->namespace), TD_STR_ARG(other.name)));
        }
    }
    if (errors->count == 0) {
        webhook_siblings_admitted(review, TD_INFORMER_HVPAS);
    }
    return true;
}

static void hvpa_warn(struct webhook_review *review, struct td_hvpa *hvpa,
                      const struct td_hvpa_findings *findings)
{
    const struct td_control *control = &review->webhook->options.control;
    const struct td_hpa_gates gates = {.scale_to_zero = control->scale_to_zero_gate,
                                       .selection_strategy = control->selection_strategy_gate,
                                       .configurable_tolerance = control->tolerance_gate};
    object_warn_fields(review, &findings->warnings);
    if (hvpa) {
        object_warn(review, td_hvpa_close_gates(review->arena, &control->gates, &gates,
                                                TD_HPA_STRATEGY_ANNOTATION, hvpa));
    }
}

void webhook_review_hvpa(struct webhook_review *review)
{
    const struct td_json *spec = td_json_get(review->object, TD_STR("spec"));
    struct td_hvpa hvpa;
    struct td_hvpa_findings findings = {.is_target_mismatch = false};
    struct td_error err = TD_ERROR_INIT;
    if (!review->webhook->options.control.hvpa_gate) {
        webhook_review_warn(
            review, TD_STR("the feature gate Hvpa is off: no controller acts on this object"));
        return;
    }
    if (review->is_update && spec &&
        td_json_equal(spec, td_json_get(review->old, TD_STR("spec")))) {
        return; /* stored as it is already: other edits must be possible */
    }
    int code = td_hvpa_decode(review->arena, review->object, &hvpa, &findings, &err);
    if (code == TD_OK && !hvpa_judge_siblings(review, &findings.errors)) {
        return;
    }
    hvpa_warn(review, code == TD_OK ? &hvpa : NULL, &findings);
    if (findings.errors.count > 0) {
        webhook_review_refuse_fields(review, &findings.errors);
    } else if (code != TD_OK) {
        object_refuse_unreadable(review, &err);
    }
}
