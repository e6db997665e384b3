/* Whole passes of the updater, and its judgement of single pods under the proposals. */
#include "golden/golden.h"

#include <math.h>
#include <stdlib.h>

#include "decide/vertical/pass.h"
#include "decide/vertical/requirements.h"
#include "golden/hpa_support.h"
#include "golden/updater_support.h"
#include "golden/vpa_support.h"

struct pass_case {
    struct td_arena *arena;
    const struct td_json *in;
};

static const struct td_limit_ranges *get_limits(void *context, td_str namespace)
{
    const struct pass_case *run = context;
    struct td_limit_ranges *limits = td_arena_new(run->arena, struct td_limit_ranges);
    int code = golden_limit_ranges(run->arena, td_json_get(run->in, TD_STR("limitRanges")),
                                   namespace, limits, NULL);
    return code == TD_OK ? limits : NULL;
}

static td_str vpa_key(struct td_arena *arena, const struct td_vpa *vpa)
{
    return td_arena_format(arena, "%.*s/%.*s", TD_STR_ARG(vpa->meta.namespace),
                           TD_STR_ARG(vpa->meta.name));
}

/* Makes the call as in.fail says, and writes it down. */
static enum td_updater_result make_call(const struct pass_case *run, struct td_json *actions,
                                        const struct td_updater_action *action)
{
    static const char *const names[] = {"evict", "resize", "annotate"};
    struct td_arena *arena = run->arena;
    td_str key =
        td_arena_format(arena, "%s:%.*s", names[action->call], TD_STR_ARG(action->pod->meta.name));
    const struct td_json *fail = td_json_get(td_json_get(run->in, TD_STR("fail")), key);
    struct td_json *call = td_json_new_object(arena);
    golden_set_text(arena, call, TD_STR("call"), td_str_from(names[action->call]));
    golden_set_text(arena, call, TD_STR("pod"), action->pod->meta.name);
    if (action->call != TD_UPDATER_ANNOTATE) {
        td_json_set(arena, call, TD_STR("ok"), td_json_new_bool(arena, !fail));
    }
    if (action->patch) {
        td_json_set(arena, call, TD_STR("patch"), td_json_copy(arena, action->patch, false));
    }
    td_str vpa = vpa_key(arena, action->vpa);
    struct td_json *calls = td_json_get(actions, vpa);
    if (!calls) {
        calls = td_json_new_array(arena);
        td_json_set(arena, actions, vpa, calls);
    }
    td_json_append(calls, call);
    if (!fail) {
        return TD_UPDATER_DONE;
    }
    return td_str_equal(fail->text, TD_STR("infeasible")) ? TD_UPDATER_INFEASIBLE
                                                          : TD_UPDATER_FAILED;
}

static struct td_json *sorted_json(struct td_arena *arena, td_str *texts, size_t count)
{
    qsort(texts, count, sizeof(texts[0]), td_str_compare_items);
    struct td_json *list = td_json_new_array(arena);
    for (size_t i = 0; i < count; i++) {
        td_json_append(list, td_json_new_string(arena, texts[i]));
    }
    return list;
}

static struct td_json *events_json(struct td_arena *arena, const struct td_updater_events *events)
{
    td_str *texts = td_arena_array(arena, td_str, events->count);
    for (size_t i = 0; i < events->count; i++) {
        texts[i] = td_arena_format(arena, "Normal %.*s %.*s", TD_STR_ARG(events->items[i].reason),
                                   TD_STR_ARG(events->items[i].message));
    }
    return sorted_json(arena, texts, events->count);
}

static struct td_json *infeasible_json(struct td_arena *arena, const struct td_updater_state *state)
{
    td_str *texts = td_arena_array(arena, td_str, state->pods.count);
    size_t count = 0;
    size_t position = 0;
    const struct td_map_entry *entry;
    while ((entry = td_map_next(&state->pods, &position))) {
        const struct td_pod_memory *memory = entry->value;
        if (memory->failed.len > 0) {
            texts[count++] = td_arena_copy_str(arena, memory->key);
        }
    }
    return sorted_json(arena, texts, count);
}

static struct td_updater_config read_config(struct td_arena *arena, const struct td_json *config)
{
    struct td_updater_config made = td_updater_config_default();
    made.update = (struct td_update_config){
        .threshold = golden_double(config, TD_STR("podUpdateThreshold"), 0.1),
        .lifetime = golden_duration(config, TD_STR("lifetimeThreshold"), 0),
        .oom_threshold = golden_duration(config, TD_STR("evictAfterOOMThreshold"), 0),
    };
    made.restriction = golden_restriction_config(config);
    made.requirements_count_off = true;
    const struct td_json *ignored = td_json_get(config, TD_STR("ignoredNamespaces"));
    if (td_json_is(ignored, TD_JSON_TYPE_ARRAY)) {
        td_str *names = td_arena_array(arena, td_str, ignored->count);
        for (const struct td_json *item = ignored->first; item; item = item->next) {
            names[made.ignored_namespace_count++] = item->text;
        }
        made.ignored_namespaces = names;
    }
    return made;
}

static int drive(const struct td_updater_input *input, const struct pass_case *run,
                 struct td_json **ret_out, struct td_error *err)
{
    struct td_arena *arena = run->arena;
    struct td_updater_pass pass;
    int code = td_updater_pass_begin(&pass, input, err);
    if (code < 0) {
        return code;
    }
    struct td_json *out = td_json_new_object(arena);
    struct td_json *actions = td_json_ensure_object(arena, out, TD_STR("actions"));
    struct td_updater_action action;
    while (td_updater_pass_next(&pass, input->now, &action)) {
        td_updater_pass_result(&pass, make_call(run, actions, &action), TD_STR("refused"));
    }
    td_json_set(arena, out, TD_STR("events"), events_json(arena, &pass.events));
    td_updater_pass_end(&pass);
    td_json_set(arena, out, TD_STR("infeasible"), infeasible_json(arena, input->state));
    td_json_set(arena, out, TD_STR("lastInPlaceAttempt"),
                golden_resizing_json(arena, input->state));
    *ret_out = out;
    return TD_OK;
}

static int run_pass(struct td_arena *arena, const struct td_json *in, struct td_json **ret_out,
                    struct td_error *err)
{
    struct pass_case run = {.arena = arena, .in = in};
    struct golden_workloads workloads;
    struct golden_vpas vpas;
    struct golden_vertical_pods pods;
    int code = golden_read_workloads(arena, in, &workloads, err);
    code = code < 0 ? code : golden_read_vpas(arena, td_json_get(in, TD_STR("vpas")), &vpas, err);
    code = code < 0 ? code
                    : golden_read_vertical_pods(arena, td_json_get(in, TD_STR("pods")), &pods, err);
    if (code < 0) {
        return code;
    }
    struct td_workload_source source = golden_source(&workloads);
    struct td_updater_config config = read_config(arena, td_json_get(in, TD_STR("config")));
    struct td_updater_state state;
    td_updater_state_init(&state);
    code = golden_read_state(arena, in, &pods, &state, err);
    const struct td_updater_input input = {
        .arena = arena,
        .now = golden_time(in, TD_STR("now")),
        .config = &config,
        .gates = golden_vpa_gates(td_json_get(in, TD_STR("gates"))),
        .vpas = vpas.items,
        .vpa_count = vpas.count,
        .pods = pods.items,
        .pod_count = pods.count,
        .source = &source,
        .state = &state,
        .context = &run,
        .get_limits = get_limits,
    };
    code = code < 0 ? code : drive(&input, &run, ret_out, err);
    td_updater_state_done(&state);
    return code;
}

static int compare_records(const void *a, const void *b)
{
    const struct td_json *const *left = a;
    const struct td_json *const *right = b;
    return td_str_compare(golden_text(*left, TD_STR("path")), golden_text(*right, TD_STR("path")));
}

/* A patch with its records by path: the order of resources inside a container is free, and a parent
 * sorts before its children. */
static struct td_json *sorted_patch(struct td_arena *arena, const struct td_json *patch)
{
    const struct td_json **items = td_arena_array(arena, const struct td_json *, patch->count);
    size_t count = 0;
    for (const struct td_json *item = patch->first; item; item = item->next) {
        items[count++] = item;
    }
    qsort(items, count, sizeof(items[0]), compare_records);
    struct td_json *sorted = td_json_new_array(arena);
    for (size_t i = 0; i < count; i++) {
        td_json_append(sorted, td_json_copy(arena, items[i], false));
    }
    return sorted;
}

static struct td_json *with_sorted_patches(struct td_arena *arena, const struct td_json *out)
{
    struct td_json *copy = td_json_copy(arena, out, false);
    for (struct td_json *calls = td_json_get(copy, TD_STR("actions"))->first; calls;
         calls = calls->next) {
        for (struct td_json *call = calls->first; call; call = call->next) {
            const struct td_json *patch = td_json_get(call, TD_STR("patch"));
            if (td_json_is(patch, TD_JSON_TYPE_ARRAY)) {
                td_json_set(arena, call, TD_STR("patch"), sorted_patch(arena, patch));
            }
        }
    }
    return copy;
}

static bool is_same_pass(const struct td_json *expected, const struct td_json *got)
{
    td_auto_arena arena;
    td_arena_init(&arena, SIZE_MAX);
    return td_json_equal(with_sorted_patches(&arena, expected), with_sorted_patches(&arena, got));
}

const struct golden_topic golden_vpa_pass[] = {
    {.name = "vpa/updater-pass", .run = run_pass, .is_same = is_same_pass},
    {.name = NULL},
};
