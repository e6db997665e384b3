/* A VPA: what it recommends and from what, and what the updater would do to its pods. */
#include "api/gates.h"
#include "control/inspect/explain_private.h"
#include "decide/vertical/recommender/recommender.h"
#include "decide/vertical/updater/requirements.h"

static void vpa_container(struct td_explain *explain,
                          const struct td_container_recommendation *container, const char *label)
{
    struct td_arena *arena = &explain->arena;
    td_str target = explain_amounts(arena, &container->target);
    td_str lower = explain_amounts(arena, &container->lower_bound);
    td_str upper = explain_amounts(arena, &container->upper_bound);
    explain_say(explain, label,
                td_arena_format(arena, "%.*s: %.*s  (no update for requests from %.*s to %.*s)",
                                TD_STR_ARG(container->container_name), TD_STR_ARG(target),
                                TD_STR_ARG(lower), TD_STR_ARG(upper)));
}

static void vpa_recommendation(struct td_explain *explain,
                               const struct td_recommendation *recommendation)
{
    for (size_t i = 0; i < recommendation->container_count; i++) {
        vpa_container(explain, &recommendation->containers[i], i == 0 ? "recommends" : "");
    }
    if (recommendation->pod.is_set) {
        explain_say(explain, "",
                    td_arena_format(
                        &explain->arena, "the pod: %.*s",
                        TD_STR_ARG(explain_amounts(&explain->arena, &recommendation->pod.target))));
    }
    if (recommendation->container_count == 0) {
        explain_say(explain, "recommends",
                    TD_STR("nothing yet: the recommender has no samples of its pods"));
    }
    td_json_set(&explain->arena, explain->json, TD_STR("recommendation"),
                td_recommendation_encode(&explain->arena, recommendation));
}

static void vpa_accounts(struct td_explain *explain, const struct td_vpa_status *status)
{
    struct td_json *list = td_json_new_array(&explain->arena);
    for (size_t i = 0; i < status->recommendation.container_count && status->accounts; i++) {
        td_auto_buf text = td_buf_capped(TD_OBJECT_BYTES_MAX);
        td_account_write(&status->accounts[i], &text);
        explain_quote(explain, i == 0 ? "because" : "", td_buf_str(&text));
        td_json_append(list, td_account_json(&explain->arena, &status->accounts[i]));
    }
    td_json_set(&explain->arena, explain->json, TD_STR("accounts"), list);
}

/* The direction in which running pods may be changed: why a wish is withheld. */
static void vpa_requirements(struct td_explain *explain, const struct td_vpa *vpa)
{
    td_auto_buf text = td_buf_capped(TD_OBJECT_BYTES_MAX);
    if (vpa->eviction_requirement_count > 0) {
        td_requirements_write(vpa, &text);
        td_buf_append(&text, TD_STR(": see spec.updatePolicy.evictionRequirements"));
        explain_say(explain, "evicts", td_arena_copy_str(&explain->arena, td_buf_str(&text)));
    }
}

/* What the updater would do next, pod by pod. */
static int vpa_pods(struct td_explain *explain, const struct td_vpa *vpa, struct td_error *err)
{
    struct td_updater_notes notes = {.count = 0};
    struct td_json *list = td_json_new_array(&explain->arena);
    const char *label = "pods";
    int code = explain_updater(explain, vpa, &notes, err);
    if (code != TD_OK) {
        return code;
    }
    for (size_t i = 0; i < notes.count; i++) {
        if (td_str_equal(notes.items[i].vpa->meta.name, vpa->meta.name)) {
            explain_say(explain, label, explain_note(explain, &notes.items[i]));
            td_json_append(list, td_updater_note_json(&explain->arena, &notes.items[i]));
            label = "";
        }
    }
    td_json_set(&explain->arena, explain->json, TD_STR("updater"), list);
    return TD_OK;
}

static void vpa_title(struct td_explain *explain, const struct td_vpa *vpa)
{
    struct td_arena *arena = &explain->arena;
    td_str selector = TD_STR_EMPTY;
    td_auto_buf text = td_buf_capped(TD_OBJECT_BYTES_MAX);
    if (vpa->has_selector) {
        td_selector_write(&vpa->pod_selector, &text);
        selector = td_arena_format(arena, ", pods with %.*s", TD_STR_ARG(td_buf_str(&text)));
    }
    explain_title(explain, TD_STR("VerticalPodAutoscaler"), TD_STR("autoscaling.k8s.io/v1"),
                  td_arena_format(arena, "%.*s, of %.*s %.*s%.*s",
                                  TD_STR_ARG(td_vpa_mode_name(vpa->mode)),
                                  TD_STR_ARG(vpa->target_kind), TD_STR_ARG(vpa->target_name),
                                  TD_STR_ARG(selector)));
}

/* Another recommender's: only what it wrote is known. */
static void vpa_of_another(struct td_explain *explain, const struct td_vpa *vpa, td_str gated)
{
    if (gated.len > 0) {
        explain_say(explain, "ignored", gated);
    }
    explain_say(explain, "recommender",
                td_arena_format(
                    &explain->arena,
                    "'%.*s', not the default one: the values below are what that recommender wrote",
                    TD_STR_ARG(vpa->recommender)));
    vpa_recommendation(explain, &vpa->recommendation);
    explain_conditions(explain, vpa->conditions, vpa->condition_count);
}

int explain_vpa(struct td_explain *explain, struct td_error *err)
{
    struct td_arena *arena = &explain->arena;
    const struct td_explain_subject *subject = &explain->subject;
    const struct td_json *tree =
        explain_object(explain, TD_INFORMER_VPAS, subject->namespace, subject->name);
    struct td_vpa vpa;
    struct td_vpa_status status;
    if (!tree) {
        return td_error_set(err, TD_NOT_FOUND, "not found");
    }
    int code = td_vpa_decode(arena, tree, &vpa, err);
    if (code != TD_OK) {
        return code;
    }
    td_str gated = td_vpa_close_gates(arena, &explain->snapshot->update.control.gates, &vpa);
    vpa_title(explain, &vpa);
    code = td_recommend_loop_vpa(explain->snapshot->recommend, arena, subject->namespace,
                                 subject->name, &vpa, &status, NULL);
    if (code == TD_OK) {
        vpa_recommendation(explain, &status.recommendation);
        vpa_accounts(explain, &status);
        explain_conditions(explain, status.conditions, status.condition_count);
    } else {
        vpa_of_another(explain, &vpa, gated);
    }
    vpa_requirements(explain, &vpa);
    explain_problems(explain, vpa.mode != TD_VPA_OFF);
    return vpa_pods(explain, &vpa, err);
}
