/* Patches that admission and updater send for pods. */
#include "golden/golden.h"
#include "golden/hpa_support.h"
#include "golden/vpa_support.h"

#include "decide/vertical/patch/podpatch.h"
#include "decide/vertical/patch/resizepatch.h"
#include "decide/vertical/resourcelist.h"
#include "kube/patch/patch.h"

static struct td_vpa_gates read_gates(const struct td_json *in)
{
    const struct td_json *gates = td_json_get(in, TD_STR("gates"));
    return (struct td_vpa_gates){
        .in_place = td_json_get_bool(gates, TD_STR("InPlace"), false),
        .per_vpa_config = td_json_get_bool(gates, TD_STR("PerVPAConfig"), false),
        .cpu_startup_boost = td_json_get_bool(gates, TD_STR("CPUStartupBoost"), false),
    };
}

struct patch_case {
    struct td_pod pod;
    struct td_vpa vpa;
    struct td_limit_ranges limits;
};

static int read_case(struct td_arena *arena, const struct td_json *in, td_str namespace,
                     struct patch_case *ret, struct td_error *err)
{
    int code = td_pod_decode(arena, td_json_get(in, TD_STR("pod")), &ret->pod, err);
    if (code == TD_OK) {
        code = td_vpa_decode(arena, td_json_get(in, TD_STR("vpa")), &ret->vpa, err);
    }
    if (code == TD_OK && namespace.len == 0) {
        namespace = ret->pod.meta.namespace;
    }
    if (code == TD_OK) {
        code = golden_limit_ranges(arena, td_json_get(in, TD_STR("limitRanges")), namespace,
                                   &ret->limits, err);
    }
    return code;
}

static int run_pod_patch(struct td_arena *arena, const struct td_json *in, struct td_json **ret_out,
                         struct td_error *err)
{
    struct patch_case given;
    int code = read_case(arena, in, golden_text(in, TD_STR("namespace")), &given, err);
    if (code < 0) {
        return code;
    }
    struct td_quantity max_boost = td_quantity_new(0, TD_QUANTITY_NONE);
    td_str max_text = golden_text(in, TD_STR("maxAllowedCPUBoost"));
    if (max_text.len > 0) {
        code = td_quantity_parse(arena, max_text, &max_boost, err);
    }
    struct td_pod_patch made;
    if (code == TD_OK) {
        code = td_pod_patch(arena,
                            &(struct td_pod_patch_input){.pod = &given.pod,
                                                         .vpa = &given.vpa,
                                                         .limits = &given.limits,
                                                         .gates = read_gates(in),
                                                         .max_cpu_boost = &max_boost},
                            &made, err);
    }
    if (code < 0) {
        return code;
    }
    struct td_json *patched = NULL;
    if (td_patch_json(arena, given.pod.tree, made.patches, &patched, NULL) < 0) {
        patched = td_json_new_null(arena);
    }
    *ret_out = td_json_new_object(arena);
    td_json_set(arena, *ret_out, TD_STR("patches"), made.patches);
    td_json_set(arena, *ret_out, TD_STR("pod"), patched);
    return TD_OK;
}

static int run_inplace_patch(struct td_arena *arena, const struct td_json *in,
                             struct td_json **ret_out, struct td_error *err)
{
    struct patch_case given;
    struct td_resize_patch made;
    int code = read_case(arena, in, TD_STR_EMPTY, &given, err);
    if (code == TD_OK) {
        code = td_resize_patch(arena,
                               &(struct td_resize_input){.pod = &given.pod,
                                                         .vpa = &given.vpa,
                                                         .limits = &given.limits,
                                                         .gates = read_gates(in),
                                                         .now = golden_time(in, TD_STR("now"))},
                               &made, err);
    }
    if (code < 0) {
        return code;
    }
    *ret_out = td_json_new_object(arena);
    td_json_set(arena, *ret_out, TD_STR("resize"), made.resize);
    td_json_set(arena, *ret_out, TD_STR("pod"), made.pod);
    return TD_OK;
}

/* Resources of one container, texts of one vpaUpdates clause and removals come in any order. */
static struct td_json *sorted_patches(struct td_arena *arena, const struct td_json *patches)
{
    struct td_json *object = td_json_new_object(arena);
    for (const struct td_json *item = td_json_first_child(patches); item; item = item->next) {
        td_str path = td_json_get_str(item, TD_STR("path"), TD_STR_EMPTY);
        struct td_json *copy = td_json_copy(arena, item, false);
        td_str text = td_json_get_str(item, TD_STR("value"), TD_STR_EMPTY);
        if (td_str_ends_with(path, TD_STR("/vpaUpdates"))) {
            td_json_set(arena, copy, TD_STR("value"), golden_sorted_clauses(arena, text));
        }
        td_json_set(arena, object, path, copy);
    }
    return object;
}

static bool is_same_patches(const struct td_json *expected, const struct td_json *got)
{
    const td_str lists[] = {TD_STR("patches"), TD_STR("resize"), TD_STR("pod")};
    td_auto_arena arena;
    td_arena_init(&arena, SIZE_MAX);
    for (size_t i = 0; i < 3; i++) {
        const struct td_json *a = td_json_get(expected, lists[i]);
        const struct td_json *b = td_json_get(got, lists[i]);
        if (!td_json_is(a, TD_JSON_TYPE_ARRAY)) {
            continue;
        }
        if (!b || a->count != b->count ||
            !td_json_equal(sorted_patches(&arena, a), sorted_patches(&arena, b))) {
            return false;
        }
    }
    const struct td_json *pod = td_json_get(expected, TD_STR("pod"));
    return td_json_is(pod, TD_JSON_TYPE_ARRAY) ||
           td_json_equal(td_json_get_path(pod, "spec"),
                         td_json_get_path(td_json_get(got, TD_STR("pod")), "spec"));
}

const struct golden_topic golden_vpa_patches[] = {
    {.name = "vpa/pod-patch", .run = run_pod_patch, .is_same = is_same_patches},
    {.name = "vpa/inplace-patch", .run = run_inplace_patch, .is_same = is_same_patches},
    {.name = NULL},
};
