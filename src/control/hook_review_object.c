/* VPAs, HPAs of our group and Hvpas: judged before they are stored, with every fault by its path.
 */
#include "api/gates.h"
#include "api/hpa.h"
#include "api/hvpa.h"
#include "api/vpa.h"
#include "base/error.h"
#include "control/hook_private.h"
#include "control/sight.h"
#include "decide/horizontal/strategy.h"
#include "decide/vertical/selected.h"
#include "decide/vertical/siblings.h"

/* What does not even decode: the message has the path. */
static void object_refuse_unreadable(struct hook_review *review, const struct td_error *err)
{
    td_str message =
        td_arena_format(review->arena, "%.*s%s%.*s \"%.*s\" is invalid: %s",
                        TD_STR_ARG(review->kind), review->kind_group.len > 0 ? "." : "",
                        TD_STR_ARG(review->kind_group), TD_STR_ARG(review->name), err->message);
    hook_review_refuse(review, 422, "Invalid", message);
}

static void object_warn(struct hook_review *review, td_str sentence)
{
    if (sentence.len > 0) {
        hook_review_warn(review, sentence);
    }
}

/* ---- VPAs ---- */

/* VPAs of the same target that are stored, and of this one the version that was. */
static size_t vpa_existing(struct hook_review *review, const struct td_vpa *vpa,
                           const struct td_vpa *const **ret)
{
    const struct td_vpa *const *others;
    size_t count = hook_index_find(review->hook->index, review->arena, vpa->meta.namespace,
                                   vpa->target_kind, vpa->target_name, &others);
    const struct td_vpa **existing =
        td_arena_array(review->arena, const struct td_vpa *, count + 1);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (!td_str_equal(others[i]->meta.name, vpa->meta.name)) {
            existing[kept++] = others[i];
        }
    }
    struct td_vpa *old = td_arena_new(review->arena, struct td_vpa);
    if (review->is_update && review->old &&
        td_vpa_decode(review->arena, review->old, old, NULL) == TD_OK) {
        old->meta.namespace = vpa->meta.namespace; /* as the request has it */
        existing[kept++] = old;
    }
    *ret = existing;
    return kept;
}

static void vpa_judge_siblings(struct hook_review *review, struct td_field_errors *errors)
{
    const struct td_control *control = &review->hook->options.control;
    struct td_vpa vpa;
    if (td_vpa_decode(review->arena, review->object, &vpa, NULL) != TD_OK) {
        return; /* was said before */
    }
    if (!td_cache_is_synced(td_sight_cache(control->sight, TD_SIGHT_VPAS))) {
        hook_tally_undecided(review->hook, "siblings-unknown"); /* the controllers check again */
        return;
    }
    struct td_sibling_request request = {
        .vpa = &vpa,
        .is_update = review->is_update,
        .gate = control->gates.heterogeneous_workloads,
    };
    request.existing_count = vpa_existing(review, &vpa, &request.existing);
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
}

/* A selector that no pod meets when it is made: said now, not when pods are left alone. */
static void vpa_warn_of_selector(struct hook_review *review)
{
    const struct td_control *control = &review->hook->options.control;
    struct td_vpa vpa;
    if (!control->gates.heterogeneous_workloads ||
        td_vpa_decode(review->arena, review->object, &vpa, NULL) != TD_OK || !vpa.has_target) {
        return;
    }
    const struct td_workload_source *source = td_sight_source(control->sight);
    const struct td_workload *target =
        source->get_workload(source->context, vpa.target_kind, review->namespace, vpa.target_name);
    if (target && target->template.is_set) {
        td_str text = td_vpa_selector_warning(review->arena, &vpa, &target->template.labels);
        if (text.len > 0) {
            hook_review_warn(
                review, td_arena_format(review->arena, "spec.selector: %.*s", TD_STR_ARG(text)));
        }
    }
}

void hook_review_vpa(struct hook_review *review)
{
    struct td_field_errors errors = {.arena = review->arena};
    struct td_json *patches;
    struct td_json *warnings;
    struct td_error err = TD_ERROR_INIT;
    const struct td_vpa_admission admission = {
        .is_update = review->is_update,
        .object = review->object,
        .old = review->old,
        .gates = review->hook->options.control.gates,
    };
    if (td_vpa_admit(review->arena, &admission, &errors, &patches, &warnings, &err) != TD_OK) {
        object_refuse_unreadable(review, &err);
        return;
    }
    vpa_judge_siblings(review, &errors);
    review->warnings = warnings;
    review->patches = patches;
    vpa_warn_of_selector(review);
    if (errors.count > 0) {
        hook_review_refuse_fields(review, &errors);
        return;
    }
    struct td_vpa vpa;
    if (td_vpa_decode(review->arena, review->object, &vpa, NULL) == TD_OK) {
        object_warn(review, td_vpa_close_gates(review->arena, &admission.gates, &vpa));
    }
}

/* ---- HPAs ---- */

static void hpa_warn(struct hook_review *review, const struct td_hpa_gates *gates)
{
    struct td_hpa hpa;
    struct td_json *copy = td_json_copy(review->arena, review->object, false);
    if (td_hpa_default(review->arena, copy, NULL) == TD_OK &&
        td_hpa_decode(review->arena, copy, &hpa, NULL) == TD_OK) {
        object_warn(review,
                    td_hpa_close_gates(review->arena, gates, TD_HPA_STRATEGY_ANNOTATION, &hpa));
    }
}

void hook_review_hpa(struct hook_review *review)
{
    struct td_field_errors errors = {.arena = review->arena};
    struct td_error err = TD_ERROR_INIT;
    const struct td_hpa_admission admission = {
        .operation = review->is_update ? TD_HPA_UPDATE : TD_HPA_CREATE,
        .object = review->object,
        .old = review->is_update ? review->old : NULL,
        .gates = {.selection_strategy = review->hook->options.control.selection_strategy_gate,
                  .scale_to_zero = review->hook->options.control.scale_to_zero_gate,
                  .configurable_tolerance = review->hook->options.control.tolerance_gate},
    };
    if (review->is_update && !review->old) {
        hook_review_undecided(review, "unreadable-review");
        return;
    }
    if (td_hpa_admit(review->arena, &admission, &errors, NULL, &err) != TD_OK) {
        object_refuse_unreadable(review, &err);
    } else if (errors.count > 0) {
        hook_review_refuse_fields(review, &errors);
    } else {
        hpa_warn(review, &admission.gates);
    }
}

/* ---- Hvpas ---- */

void hook_review_hvpa(struct hook_review *review)
{
    const struct td_json *spec = td_json_get(review->object, TD_STR("spec"));
    struct td_hvpa hvpa;
    struct td_hvpa_findings findings = {.is_target_mismatch = false};
    struct td_error err = TD_ERROR_INIT;
    const struct td_control *control = &review->hook->options.control;
    if (!control->hvpa_gate) {
        hook_review_warn(review, TD_STR("the feature gate Hvpa is off: nothing acts by it"));
        return;
    }
    if (review->is_update && spec &&
        td_json_equal(spec, td_json_get(review->old, TD_STR("spec")))) {
        return; /* stored as it is already: other edits must be possible */
    }
    int code = td_hvpa_decode(review->arena, review->object, &hvpa, &findings, &err);
    for (size_t i = 0; i < findings.warnings.count; i++) {
        const struct td_field_error *warning = &findings.warnings.items[i];
        hook_review_warn(review,
                         td_arena_format(review->arena, "%.*s: %.*s", TD_STR_ARG(warning->field),
                                         TD_STR_ARG(warning->detail)));
    }
    if (code != TD_OK && findings.errors.count > 0) {
        hook_review_refuse_fields(review, &findings.errors);
    } else if (code != TD_OK) {
        object_refuse_unreadable(review, &err);
    } else {
        const struct td_hpa_gates gates = {.scale_to_zero = control->scale_to_zero_gate,
                                           .selection_strategy = control->selection_strategy_gate,
                                           .configurable_tolerance = control->tolerance_gate};
        object_warn(review, td_hvpa_close_gates(review->arena, &control->gates, &gates,
                                                TD_HPA_STRATEGY_ANNOTATION, &hvpa));
    }
}
