/* From a recommendation to the values a pod may get: LimitRange summaries, proportional limits,
 * capping. */
#include "golden/golden.h"
#include "golden/vpa_support.h"

#include <stdlib.h>

#include "decide/vertical/patch/capping.h"
#include "decide/vertical/patch/proportional.h"
#include "decide/vertical/resourcelist.h"

static struct td_json *summary_json(struct td_arena *arena, const struct td_limit_summary *summary)
{
    if (!summary->is_set) {
        return td_json_new_null(arena);
    }
    struct td_json *object = td_json_new_object(arena);
    if (summary->has_min) {
        td_json_set(arena, object, TD_STR("min"), td_resource_list_json(arena, &summary->min));
    }
    if (summary->has_max) {
        td_json_set(arena, object, TD_STR("max"), td_resource_list_json(arena, &summary->max));
    }
    if (summary->has_default) {
        td_json_set(arena, object, TD_STR("default"),
                    td_resource_list_json(arena, &summary->default_limit));
    }
    return object;
}

static int run_limit_range(struct td_arena *arena, const struct td_json *in,
                           struct td_json **ret_out, struct td_error *err)
{
    struct td_limit_ranges limits;
    int code =
        golden_limit_ranges(arena, td_json_get(in, TD_STR("limitRanges")),
                            td_json_get_str(in, TD_STR("namespace"), TD_STR_EMPTY), &limits, err);
    if (code < 0) {
        return code;
    }
    *ret_out = td_json_new_object(arena);
    td_json_set(arena, *ret_out, TD_STR("container"), summary_json(arena, &limits.container));
    td_json_set(arena, *ret_out, TD_STR("pod"), summary_json(arena, &limits.pod));
    return TD_OK;
}

static struct td_quantity *quantity_of(struct td_arena *arena, const struct td_json *in, td_str key)
{
    const struct td_json *node = td_json_get(in, key);
    struct td_quantity *quantity = td_arena_new(arena, struct td_quantity);
    if (!node || td_json_is(node, TD_JSON_TYPE_NULL) ||
        td_quantity_from_json(arena, node, quantity, NULL) < 0) {
        return NULL;
    }
    return quantity;
}

static struct td_json *run_boundary(struct td_arena *arena, const struct td_json *in)
{
    const struct td_proportion proportion = {
        .limit = quantity_of(arena, in, TD_STR("limit")),
        .request = quantity_of(arena, in, TD_STR("request")),
        .default_limit = quantity_of(arena, in, TD_STR("default")),
    };
    struct td_quantity request =
        td_boundary_request(td_json_get_str(in, TD_STR("resource"), TD_STR_EMPTY), &proportion,
                            quantity_of(arena, in, TD_STR("boundary")));
    struct td_json *out = td_json_new_object(arena);
    td_json_set(arena, out, TD_STR("request"),
                td_json_new_string(arena, td_quantity_text(arena, &request)));
    return out;
}

static int run_proportional(struct td_arena *arena, const struct td_json *in,
                            struct td_json **ret_out, struct td_error *err)
{
    if (td_str_equal(td_json_get_str(in, TD_STR("kind"), TD_STR_EMPTY), TD_STR("boundary"))) {
        *ret_out = run_boundary(arena, in);
        return TD_OK;
    }
    const td_str keys[] = {TD_STR("limit"), TD_STR("request"), TD_STR("recommended"),
                           TD_STR("default")};
    struct td_resource_list lists[4];
    for (size_t i = 0; i < 4; i++) {
        int code = td_resource_list_decode(arena, td_json_get(in, keys[i]), &lists[i], err);
        if (code < 0) {
            return code;
        }
    }
    struct td_proportional_limits made = td_proportional_limits(
        arena,
        &(struct td_original){
            .limits = &lists[0], .requests = &lists[1], .default_limits = &lists[3]},
        &lists[2]);
    struct td_json *notes = td_json_new_array(arena);
    for (size_t i = 0; i < made.note_count; i++) {
        td_json_append(notes, td_json_new_string(arena, made.notes[i]));
    }
    *ret_out = td_json_new_object(arena);
    td_json_set(arena, *ret_out, TD_STR("limit"),
                made.limits.count > 0 ? td_resource_list_json(arena, &made.limits)
                                      : td_json_new_null(arena));
    td_json_set(arena, *ret_out, TD_STR("annotations"), notes);
    return TD_OK;
}

static struct td_json *notes_json(struct td_arena *arena, const struct td_capped *capped)
{
    struct td_json *object = td_json_new_object(arena);
    for (size_t i = 0; i < capped->recommendation.container_count; i++) {
        const struct td_notes *notes = &capped->notes[i];
        if (notes->count == 0) {
            continue;
        }
        qsort(notes->items, notes->count, sizeof(notes->items[0]), td_str_compare_items);
        struct td_json *array = td_json_new_array(arena);
        for (size_t n = 0; n < notes->count; n++) {
            td_json_append(array, td_json_new_string(arena, notes->items[n]));
        }
        td_json_set(arena, object, capped->recommendation.containers[i].container_name, array);
    }
    return object;
}

/* The spec.limits lists of LimitRanges as whole objects. */
static struct td_json *whole_limit_ranges(struct td_arena *arena, const struct td_json *lists)
{
    struct td_json *objects = td_json_new_array(arena);
    for (const struct td_json *list = td_json_first_child(lists); list; list = list->next) {
        struct td_json *object = td_json_new_object(arena);
        struct td_json *spec = td_json_ensure_object(arena, object, TD_STR("spec"));
        td_json_set(arena, spec, TD_STR("limits"), td_json_copy(arena, list, false));
        td_json_append(objects, object);
    }
    return objects;
}

static int cap_for_pod(struct td_arena *arena, const struct td_json *in, const struct td_vpa *vpa,
                       struct td_json **ret_out, struct td_error *err)
{
    struct td_pod pod;
    struct td_limit_ranges limits;
    int code = td_pod_decode(arena, td_json_get(in, TD_STR("pod")), &pod, err);
    if (code == TD_OK) {
        code = golden_limit_ranges(
            arena, whole_limit_ranges(arena, td_json_get(in, TD_STR("limitRanges"))), TD_STR_EMPTY,
            &limits, err);
    }
    if (code < 0) {
        return code;
    }
    struct td_capped capped;
    td_cap_for_pod(arena,
                   &(struct td_capping){.pod = &pod,
                                        .recommendation =
                                            vpa->has_recommendation ? &vpa->recommendation : NULL,
                                        .policy = &vpa->policy,
                                        .container_limits = &limits.container,
                                        .pod_limits = &limits.pod,
                                        .is_upstream_exact = true},
                   &capped);
    td_json_set(arena, *ret_out, TD_STR("recommendation"),
                capped.is_set ? golden_recommendation_json(arena, &capped.recommendation)
                              : td_json_new_null(arena));
    td_json_set(arena, *ret_out, TD_STR("annotations"), notes_json(arena, &capped));
    return TD_OK;
}

static int run_capping(struct td_arena *arena, const struct td_json *in, struct td_json **ret_out,
                       struct td_error *err)
{
    struct td_vpa vpa;
    struct td_resource_list global_max;
    int code = golden_vpa_of(arena, td_json_get(in, TD_STR("resourcePolicy")),
                             td_json_get(in, TD_STR("recommendation")), &vpa, err);
    if (code == TD_OK) {
        code = td_resource_list_decode(arena, td_json_get(in, TD_STR("globalMaxAllowed")),
                                       &global_max, err);
    }
    if (code < 0) {
        return code;
    }
    *ret_out = td_json_new_object(arena);
    if (td_str_equal(td_json_get_str(in, TD_STR("kind"), TD_STR_EMPTY), TD_STR("pod"))) {
        return cap_for_pod(arena, in, &vpa, ret_out, err);
    }
    struct td_json *made = td_json_new_null(arena);
    if (vpa.has_recommendation) {
        struct td_recommendation capped =
            td_cap_by_policy(arena, &vpa.recommendation, &vpa.policy, &global_max);
        made = golden_recommendation_json(arena, &capped);
    }
    td_json_set(arena, *ret_out, TD_STR("recommendation"), made);
    return TD_OK;
}

const struct golden_topic golden_vpa_pods[] = {
    {.name = "vpa/limit-range", .run = run_limit_range},
    {.name = "vpa/proportional-limits", .run = run_proportional},
    {.name = "vpa/capping", .run = run_capping},
    {.name = NULL},
};
