/* Topics on controllers: which VPA has a pod, which pods a target selects. */
#include "golden/golden.h"

#include <stdlib.h>

#include "golden/hpa_support.h"
#include "golden/updater_support.h"

static struct td_json *controller_json(struct td_arena *arena, const struct td_controller *top)
{
    if (!top) {
        return td_json_new_null(arena);
    }
    struct td_json *object = td_json_new_object(arena);
    golden_set_text(arena, object, TD_STR("apiVersion"), top->api_version);
    golden_set_text(arena, object, TD_STR("kind"), top->kind);
    golden_set_text(arena, object, TD_STR("name"), top->name);
    return object;
}

static int run_pod_matching(struct td_arena *arena, const struct td_json *in,
                            struct td_json **ret_out, struct td_error *err)
{
    struct golden_workloads workloads;
    struct golden_vpas vpas;
    struct td_meta pod;
    const struct td_json *pod_tree = td_json_get(in, TD_STR("pod"));
    int code = golden_read_workloads(arena, in, &workloads, err);
    code = code < 0 ? code : golden_read_vpas(arena, td_json_get(in, TD_STR("vpas")), &vpas, err);
    code = code < 0 ? code : td_meta_decode(arena, pod_tree, &pod, err);
    if (code < 0) {
        return code;
    }
    struct td_workload_source source = golden_source(&workloads);
    struct td_match_index index;
    td_match_index_init(&index, arena, false);
    struct td_top_memo memo;
    td_top_memo_init(&memo, arena);
    bool is_admission = td_str_equal(golden_text(in, TD_STR("component")), TD_STR("admission"));
    const struct td_controller *top = NULL;
    td_str why = TD_STR_EMPTY;
    code = td_match_index_add(&index, &source, vpas.items, vpas.count,
                              is_admission ? TD_MATCH_ADMISSION : TD_MATCH_ANY, NULL, err);
    code = code < 0 ? code : td_top_memo_get(&memo, &source, &pod, &top, &why, err);
    if (code == TD_OK) {
        const struct td_match_vpa *found = td_match_find(&index, top, pod.namespace, &pod.labels);
        struct td_json *out = td_json_new_object(arena);
        td_json_set(arena, out, TD_STR("top"), controller_json(arena, top));
        td_json_set(arena, out, TD_STR("vpa"),
                    found ? td_json_new_string(arena, found->key) : td_json_new_null(arena));
        if (why.len > 0) {
            golden_set_text(arena, out, TD_STR("topError"), why);
        }
        *ret_out = out;
    }
    td_top_memo_done(&memo);
    td_match_index_done(&index);
    return code;
}

static int compare_types(const void *a, const void *b)
{
    const struct td_json *const *left = a;
    const struct td_json *const *right = b;
    return td_str_compare(golden_text(*left, TD_STR("type")), golden_text(*right, TD_STR("type")));
}

static struct td_json *condition_json(struct td_arena *arena, td_str type, td_str status,
                                      td_str reason, td_str message)
{
    struct td_json *condition = td_json_new_object(arena);
    golden_set_text(arena, condition, TD_STR("type"), type);
    golden_set_text(arena, condition, TD_STR("status"), status);
    golden_set_text(arena, condition, TD_STR("reason"), reason);
    golden_set_text(arena, condition, TD_STR("message"), message);
    return condition;
}

/* The conditions that stay, and ConfigUnsupported when there is something to say. */
static struct td_json *conditions_json(struct td_arena *arena, const struct td_vpa *vpa,
                                       bool is_supported, td_str message)
{
    const struct td_json **items =
        td_arena_array(arena, const struct td_json *, vpa->condition_count + 1);
    size_t count = 0;
    for (size_t i = 0; i < vpa->condition_count; i++) {
        const struct td_vpa_condition *old = &vpa->conditions[i];
        if (!td_str_equal(old->type, TD_STR("ConfigUnsupported")) &&
            !td_str_equal(old->type, TD_STR("ConfigDeprecated"))) {
            items[count++] =
                condition_json(arena, old->type, old->status, old->reason, old->message);
        }
    }
    if (!is_supported) {
        items[count++] = condition_json(arena, TD_STR("ConfigUnsupported"), TD_STR("True"),
                                        TD_STR_EMPTY, message);
    }
    qsort(items, count, sizeof(items[0]), compare_types);
    struct td_json *list = td_json_new_array(arena);
    for (size_t i = 0; i < count; i++) {
        td_json_append(list, td_json_copy(arena, items[i], false));
    }
    return list;
}

static int run_target_ref(struct td_arena *arena, const struct td_json *in,
                          struct td_json **ret_out, struct td_error *err)
{
    struct golden_workloads workloads;
    struct td_vpa vpa;
    int code = golden_read_workloads(arena, in, &workloads, err);
    code = code < 0 ? code : td_vpa_decode(arena, td_json_get(in, TD_STR("vpa")), &vpa, err);
    if (code < 0) {
        return code;
    }
    struct td_workload_source source = golden_source(&workloads);
    struct td_controller target = {
        .namespace = vpa.meta.namespace,
        .api_version = vpa.target_api_version,
        .kind = vpa.target_kind,
        .name = vpa.target_name,
    };
    struct td_json *out = td_json_new_object(arena);
    struct td_selector selector;
    struct td_error reason = TD_ERROR_INIT;
    td_str message = TD_STR_EMPTY;
    code = td_target_selector(arena, &source, &target, &selector, &reason);
    if (code < 0) {
        td_str text = td_arena_copy_str(arena, td_str_from(reason.message));
        golden_set_text(arena, out, TD_STR("fetchError"), text);
        message = td_arena_format(arena, "Cannot read targetRef. Reason: %s", text.ptr);
    } else {
        code = td_target_check(&source, &target, &reason);
        message = td_arena_copy_str(arena, td_str_from(reason.message));
    }
    if (code < 0) {
        selector = (struct td_selector){.matches_nothing = true};
    }
    td_auto_buf text;
    td_buf_init(&text, TD_SELECTOR_BYTES_MAX);
    td_selector_write(&selector, &text);
    bool is_empty = selector.count == 0;
    td_json_set(arena, out, TD_STR("selector"),
                td_json_new_string(arena, td_arena_copy_str(arena, td_buf_str(&text))));
    td_json_set(arena, out, TD_STR("matchesNothing"),
                td_json_new_bool(arena, selector.matches_nothing));
    td_json_set(arena, out, TD_STR("matchesEverything"),
                td_json_new_bool(arena, is_empty && !selector.matches_nothing));
    td_json_set(arena, out, TD_STR("conditions"),
                conditions_json(arena, &vpa, code == TD_OK, message));
    *ret_out = out;
    return TD_OK;
}

const struct golden_topic golden_vpa_owners[] = {
    {.name = "vpa/pod-matching", .run = run_pod_matching},
    {.name = "vpa/target-ref", .run = run_target_ref},
    {.name = NULL},
};
