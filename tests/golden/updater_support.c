#include "golden/updater_support.h"

#include "golden/hpa_support.h"

static size_t count_of(const struct td_json *list)
{
    return td_json_item_count(list);
}

static const struct td_json *first_of(const struct td_json *list)
{
    return td_json_first_child(list);
}

int golden_read_workloads(struct td_arena *arena, const struct td_json *in,
                          struct golden_workloads *ret, struct td_error *err)
{
    const struct td_json *objects = td_json_get(in, TD_STR("objects"));
    *ret = (struct golden_workloads){
        .arena = arena,
        .workloads = td_arena_array(arena, struct td_workload, count_of(objects)),
        .kinds = td_json_get(in, TD_STR("kinds")),
        .scales = td_json_get(in, TD_STR("scales")),
    };
    for (const struct td_json *item = first_of(objects); item; item = item->next) {
        int code = td_workload_decode(arena, item, &ret->workloads[ret->workload_count++], err);
        if (code < 0) {
            return code;
        }
    }
    return TD_OK;
}

static const struct td_workload *get_workload(void *context, td_str kind, td_str namespace,
                                              td_str name)
{
    const struct golden_workloads *workloads = context;
    for (size_t i = 0; i < workloads->workload_count; i++) {
        const struct td_workload *workload = &workloads->workloads[i];
        if (td_str_equal(workload->kind, kind) && td_str_equal(workload->namespace, namespace) &&
            td_str_equal(workload->name, name)) {
            return workload;
        }
    }
    return NULL;
}

static bool get_resource(void *context, td_str group, td_str kind, size_t index,
                         td_str *ret_resource)
{
    const struct golden_workloads *workloads = context;
    for (const struct td_json *item = first_of(workloads->kinds); item; item = item->next) {
        if (td_str_equal(golden_text(item, TD_STR("group")), group) &&
            td_str_equal(golden_text(item, TD_STR("kind")), kind) && index-- == 0) {
            *ret_resource = golden_text(item, TD_STR("resource"));
            return true;
        }
    }
    return false;
}

static struct td_scale_answer get_scale(void *context, td_str group, td_str resource,
                                        td_str namespace, td_str name)
{
    const struct golden_workloads *workloads = context;
    struct td_scale_answer answer = {.code = TD_NOT_FOUND};
    for (const struct td_json *item = first_of(workloads->scales); item; item = item->next) {
        if (!td_str_equal(golden_text(item, TD_STR("group")), group) ||
            !td_str_equal(golden_text(item, TD_STR("resource")), resource) ||
            !td_str_equal(golden_text(item, TD_STR("namespace")), namespace) ||
            !td_str_equal(golden_text(item, TD_STR("name")), name)) {
            continue;
        }
        answer.message = golden_text(item, TD_STR("error"));
        answer.code = answer.message.len > 0 ? TD_IO : TD_OK;
        answer.selector = golden_text(item, TD_STR("selector"));
        answer.uid = golden_text(item, TD_STR("uid"));
        struct td_json *object = td_json_new_object(workloads->arena);
        td_json_set(workloads->arena, object, TD_STR("metadata"),
                    td_json_copy(workloads->arena, item, false));
        struct td_meta meta;
        if (td_meta_decode(workloads->arena, object, &meta, NULL) == TD_OK) {
            answer.owners = meta.owners;
            answer.owner_count = meta.owner_count;
        }
        return answer;
    }
    return answer;
}

struct td_workload_source golden_source(struct golden_workloads *workloads)
{
    return (struct td_workload_source){
        .context = workloads,
        .get_workload = get_workload,
        .get_resource = get_resource,
        .get_scale = get_scale,
    };
}

int golden_read_vpas(struct td_arena *arena, const struct td_json *list, struct golden_vpas *ret,
                     struct td_error *err)
{
    size_t count = count_of(list);
    struct td_vpa *vpas = td_arena_array(arena, struct td_vpa, count);
    *ret = (struct golden_vpas){.items = td_arena_array(arena, const struct td_vpa *, count)};
    for (const struct td_json *item = first_of(list); item; item = item->next) {
        int code = td_vpa_decode(arena, item, &vpas[ret->count], err);
        if (code < 0) {
            return code;
        }
        ret->items[ret->count] = &vpas[ret->count];
        ret->count++;
    }
    return TD_OK;
}

int golden_read_vertical_pods(struct td_arena *arena, const struct td_json *list,
                              struct golden_vertical_pods *ret, struct td_error *err)
{
    *ret = (struct golden_vertical_pods){.items =
                                             td_arena_array(arena, struct td_pod, count_of(list))};
    for (const struct td_json *item = first_of(list); item; item = item->next) {
        int code = td_pod_decode(arena, item, &ret->items[ret->count++], err);
        if (code < 0) {
            return code;
        }
    }
    return TD_OK;
}

struct td_vpa_gates golden_vpa_gates(const struct td_json *gates)
{
    return (struct td_vpa_gates){
        .in_place = td_json_get_bool(gates, TD_STR("InPlace"), false),
        .per_vpa_config = td_json_get_bool(gates, TD_STR("PerVPAConfig"), false),
        .cpu_startup_boost = td_json_get_bool(gates, TD_STR("CPUStartupBoost"), false),
    };
}

struct td_restriction_config golden_restriction_config(const struct td_json *config)
{
    return (struct td_restriction_config){
        .min_replicas = td_json_get_int64(config, TD_STR("minReplicas"), 2),
        .tolerance = golden_double(config, TD_STR("evictionTolerance"), 0.5),
        .in_place_skips_budget =
            td_json_get_bool(config, TD_STR("inPlaceSkipDisruptionBudget"), false),
    };
}

int golden_read_state(struct td_arena *arena, const struct td_json *in,
                      const struct golden_vertical_pods *pods, struct td_updater_state *state,
                      struct td_error *err)
{
    const struct td_json *attempts = td_json_get(in, TD_STR("lastInPlaceAttempt"));
    const struct td_json *item = td_json_first_child(attempts);
    for (; item; item = item->next) {
        td_updater_state_set_resizing(state, item->key, golden_time(attempts, item->key));
    }
    const struct td_json *infeasible = td_json_get(in, TD_STR("infeasibleAttempts"));
    for (size_t i = 0; i < pods->count; i++) {
        const struct td_json *found = td_json_get(infeasible, pods->items[i].meta.uid);
        struct td_recommendation recommendation;
        if (!found) {
            continue;
        }
        int code = td_recommendation_decode(arena, found, &recommendation, err);
        if (code < 0) {
            return code;
        }
        td_updater_state_set_failed(td_updater_state_pod(state, &pods->items[i], NULL),
                                    &recommendation);
    }
    return TD_OK;
}

struct td_json *golden_resizing_json(struct td_arena *arena, const struct td_updater_state *state)
{
    struct td_json *object = td_json_new_object(arena);
    size_t position = 0;
    td_str key;
    td_time since;
    while (td_updater_state_next_resizing(state, &position, &key, &since)) {
        td_json_set(arena, object, td_arena_copy_str(arena, key), golden_time_json(arena, since));
    }
    return object;
}
