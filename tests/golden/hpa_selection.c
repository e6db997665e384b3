/* Topics of which pods count: selectors with their ambiguity, and the selection strategy. */
#include <stdlib.h>

#include "decide/horizontal/owners.h"
#include "decide/horizontal/reconcile.h"
#include "golden/golden.h"
#include "golden/hpa_support.h"

/* Pods given as {namespace?, name, uid?, labels, ownerReferences?} instead of whole objects. */
static struct golden_pods read_short_pods(struct td_arena *arena, const struct td_json *list,
                                          td_str namespace)
{
    struct td_json *whole = td_json_new_array(arena);
    for (const struct td_json *item = td_json_first_child(list); item; item = item->next) {
        struct td_json *pod = td_json_new_object(arena);
        struct td_json *meta = td_json_copy(arena, item, false);
        if (!td_json_get(meta, TD_STR("namespace"))) {
            golden_set_text(arena, meta, TD_STR("namespace"), namespace);
        }
        td_json_set(arena, pod, TD_STR("metadata"), meta);
        td_json_append(whole, pod);
    }
    struct golden_pods pods = {.count = 0};
    (void)golden_read_pods(arena, whole, &pods, NULL);
    return pods;
}

static void track_others(struct td_hpa_tracker *tracker, const struct td_json *others)
{
    for (const struct td_json *each = td_json_first_child(others); each; each = each->next) {
        td_str namespace = golden_text(each, TD_STR("namespace"));
        td_str name = golden_text(each, TD_STR("name"));
        const struct td_json *selector = td_json_get(each, TD_STR("selector"));
        (void)td_hpa_tracker_add(tracker, namespace, name);
        if (td_json_is(selector, TD_JSON_TYPE_STRING)) {
            (void)td_hpa_tracker_put(tracker, namespace, name, selector->text, NULL);
        }
    }
}

static struct td_json *names_json(struct td_arena *arena, const struct golden_pods *pods)
{
    struct td_json *list = td_json_new_array(arena);
    for (size_t i = 0; i < pods->count; i++) {
        td_json_append(list, td_json_new_string(arena, pods->items[i]->meta.name));
    }
    return list;
}

static void select_pods(struct td_hpa_pass *pass, struct td_hpa_tracker *tracker,
                        const struct td_json *in, struct td_json *out)
{
    struct td_arena *arena = pass->arena;
    if (!td_hpa_select(pass, 0)) {
        return;
    }
    td_str namespace = pass->hpa->meta.namespace;
    struct golden_pods pods = read_short_pods(arena, td_json_get(in, TD_STR("pods")), namespace);
    struct golden_pods matched = golden_match_pods(arena, &pods, namespace, &pass->selector);
    bool is_alone = td_hpa_select_alone(
        pass, tracker, &(struct td_hpa_matched){.pods = matched.items, .count = matched.count}, 0);
    td_auto_buf text;
    td_buf_init(&text, 1 << 20);
    td_selector_write(&pass->selector, &text);
    golden_set_text(arena, out, TD_STR("selector"), td_arena_copy_str(arena, td_buf_str(&text)));
    td_json_set(arena, out, TD_STR("matched"), names_json(arena, &matched));
    if (!is_alone) {
        td_str found[TD_HPA_AMBIGUOUS_MAX];
        size_t count =
            td_hpa_tracker_find(tracker, NULL, namespace, matched.items, matched.count, found);
        struct td_json *list = td_json_new_array(arena);
        for (size_t i = 0; i < count; i++) {
            td_json_append(list, td_json_new_string(arena, td_arena_copy_str(arena, found[i])));
        }
        td_json_set(arena, out, TD_STR("ambiguous"), list);
    }
}

static int run_selector(struct td_arena *arena, const struct td_json *in, struct td_json **ret_out,
                        struct td_error *err)
{
    (void)err;
    struct td_hpa hpa = {.meta = {.namespace = golden_text(in, TD_STR("namespace")),
                                  .name = golden_text(in, TD_STR("name"))}};
    struct td_hpa_config config = td_hpa_config_default();
    struct td_hpa_pass pass = {
        .arena = arena,
        .hpa = &hpa,
        .config = &config,
        .scale = {.selector = golden_text(in, TD_STR("selector"))},
        .events = {.arena = arena},
        .late_event = TD_STR_EMPTY,
    };
    td_hpa_status_read(arena, NULL, &pass.status);
    struct td_hpa_tracker tracker;
    td_hpa_tracker_init(&tracker);
    if (td_json_get_bool(in, TD_STR("registered"), true)) {
        (void)td_hpa_tracker_add(&tracker, hpa.meta.namespace, hpa.meta.name);
    }
    track_others(&tracker, td_json_get(in, TD_STR("others")));
    struct td_json *out = td_json_new_object(arena);
    select_pods(&pass, &tracker, in, out);
    td_hpa_tracker_done(&tracker);
    td_json_set(arena, out, TD_STR("conditions"),
                golden_conditions_json(arena, &pass.status.conditions));
    td_json_set(arena, out, TD_STR("events"), golden_events_json(arena, &pass.events));
    if (pass.late_event.len > 0) {
        golden_set_text(arena, out, TD_STR("error"), pass.late_event);
    }
    *ret_out = out;
    return TD_OK;
}

/* One process over its passes. */
struct process {
    struct td_arena *arena;
    const struct td_json *in;
    struct td_owner_cache cache;
    struct td_hpa_strategy_memory memory;
    struct td_hpa_strategy_options options;
    struct td_owner_target target;
    struct td_selector selector;
    bool has_failed; /* in an earlier pass: what is fetched is then not compared */
};

static td_str object_name(struct td_arena *arena, td_str kind, td_str name)
{
    return td_arena_format(arena, "%.*s/%.*s", TD_STR_ARG(kind), TD_STR_ARG(name));
}

static const struct td_json *find_object(const struct td_json *objects,
                                         const struct td_owner_key *key)
{
    for (const struct td_json *each = td_json_first_child(objects); each; each = each->next) {
        if (td_str_equal(golden_text(each, TD_STR("kind")), key->kind) &&
            td_str_equal(golden_text(each, TD_STR("name")), key->name) &&
            td_str_equal(td_group_version_parse(golden_text(each, TD_STR("apiVersion"))).group,
                         td_group_version_parse(key->api_version).group)) {
            return each;
        }
    }
    return NULL;
}

static enum td_owner_answer answer_of(const struct td_json *object)
{
    static const struct {
        td_str name;
        enum td_owner_answer answer;
    } names[] = {
        {TD_STR_INIT("ok"), TD_OWNER_FOUND},
        {TD_STR_INIT("forbidden"), TD_OWNER_FORBIDDEN},
        {TD_STR_INIT("toomany"), TD_OWNER_THROTTLED},
        {TD_STR_INIT("error"), TD_OWNER_FAILED},
        {TD_STR_INIT("timeout"), TD_OWNER_TIMED_OUT},
        {TD_STR_INIT("unmapped"), TD_OWNER_UNMAPPED},
    };
    td_str get = td_json_get_str(object, TD_STR("get"), TD_STR("ok"));
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (td_str_equal(names[i].name, get)) {
            return names[i].answer;
        }
    }
    return TD_OWNER_FAILED;
}

static void fetch_wanted(struct td_owner_filter *filter, const struct td_json *objects,
                         struct td_json *fetched)
{
    size_t count = filter->wanted_count;
    for (size_t i = 0; i < count; i++) {
        const struct td_owner_key *key = &filter->wanted[i];
        td_json_set(filter->arena, fetched, object_name(filter->arena, key->kind, key->name),
                    td_json_new_bool(filter->arena, true));
        const struct td_json *object = find_object(objects, key);
        if (!object) {
            td_owner_filter_answer(filter, i, TD_OWNER_MISSING, TD_STR_EMPTY, NULL, 0);
            continue;
        }
        struct td_json *whole = td_json_new_object(filter->arena);
        td_json_set(filter->arena, whole, TD_STR("metadata"),
                    td_json_copy(filter->arena, object, false));
        struct td_meta meta = {.uid = TD_STR_EMPTY};
        (void)td_meta_decode(filter->arena, whole, &meta, NULL);
        td_owner_filter_answer(filter, i, answer_of(object), meta.uid, meta.owners,
                               meta.owner_count);
    }
}

static struct td_json *sorted_json(struct td_arena *arena, td_str *names, size_t count)
{
    struct td_json *list = td_json_new_array(arena);
    qsort(names, count, sizeof(names[0]), td_str_compare_items);
    for (size_t i = 0; i < count; i++) {
        td_json_append(list, td_json_new_string(arena, names[i]));
    }
    return list;
}

/* Names of the pods whose verdict is in the set; all of them without a filter. */
static struct td_json *verdict_json(struct td_arena *arena, const struct golden_pods *pods,
                                    const struct td_owner_filter *filter, unsigned verdicts)
{
    td_str *names = td_arena_array(arena, td_str, pods->count);
    size_t count = 0;
    for (size_t i = 0; i < pods->count; i++) {
        if (!filter || (verdicts & (1U << filter->verdicts[i])) != 0) {
            names[count++] = pods->items[i]->meta.name;
        }
    }
    return sorted_json(arena, names, count);
}

static struct td_json *errors_json(struct process *process)
{
    struct td_arena *arena = process->arena;
    struct td_hpa hpa = {.meta = {.namespace = process->target.namespace},
                         .target = {.kind = process->target.kind, .name = process->target.name}};
    struct td_hpa_view view = {.is_owner_filtered = true};
    struct td_hpa_calc_options options = {.replicas = 1};
    struct td_json *errors = td_json_new_object(arena);
    td_auto_buf text;
    td_buf_init(&text, 1 << 16);
    struct td_hpa_calculation calculation = td_hpa_calc_average(&view, &options, 1);
    td_hpa_calc_write_problem(&calculation, TD_STR_EMPTY, &hpa, &text);
    golden_set_text(arena, errors, TD_STR("resource"), td_arena_copy_str(arena, td_buf_str(&text)));
    td_buf_reset(&text);
    calculation = td_hpa_calc_value(&view, &options, 5000, 1000);
    td_hpa_calc_write_problem(&calculation, TD_STR_EMPTY, &hpa, &text);
    golden_set_text(arena, errors, TD_STR("value"), td_arena_copy_str(arena, td_buf_str(&text)));
    return errors;
}

static void filter_pods(struct process *process, const struct td_json *pass,
                        const struct golden_pods *matched, td_time now,
                        struct td_hpa_events *events, struct td_json *out)
{
    struct td_arena *arena = process->arena;
    struct td_owner_filter filter;
    struct td_json *fetched = td_json_new_object(arena);
    td_owner_filter_begin(&filter, arena, &process->cache, &process->target, matched->items,
                          matched->count, now);
    enum td_owner_step step = td_owner_filter_step(&filter);
    while (step == TD_OWNER_FETCH) {
        fetch_wanted(&filter, td_json_get(pass, TD_STR("objects")), fetched);
        step = td_owner_filter_step(&filter);
    }
    bool is_failed = step == TD_OWNER_GIVEN_UP;
    td_json_set(arena, out, TD_STR("failed"), td_json_new_bool(arena, is_failed));
    unsigned owned = 1U << TD_OWNER_OWNED;
    unsigned undetermined = 1U << TD_OWNER_UNDETERMINED;
    unsigned excluded = undetermined | 1U << TD_OWNER_NOT_OWNED;
    td_json_set(arena, out, TD_STR("counted"),
                verdict_json(arena, matched, is_failed ? NULL : &filter, owned));
    if (is_failed) {
        process->has_failed = true;
        td_hpa_strategy_filter_failed(&process->memory, filter.cause, filter.culprit, now, events);
    } else {
        td_json_set(arena, out, TD_STR("owned"), verdict_json(arena, matched, &filter, owned));
        td_json_set(arena, out, TD_STR("excluded"),
                    verdict_json(arena, matched, &filter, excluded));
        td_json_set(arena, out, TD_STR("undetermined"),
                    verdict_json(arena, matched, &filter, undetermined));
        if (filter.owned_count == 0) {
            td_json_set(arena, out, TD_STR("errors"), errors_json(process));
        }
    }
    if (!process->has_failed && filter.too_deep_count == 0) {
        td_str *names = td_arena_array(arena, td_str, fetched->count);
        size_t count = 0;
        for (const struct td_json *each = td_json_first_child(fetched); each; each = each->next) {
            names[count++] = each->key;
        }
        td_json_set(arena, out, TD_STR("fetched"), sorted_json(arena, names, count));
    }
    td_owner_filter_done(&filter);
}

static void run_pass(struct process *process, const struct td_json *pass, struct td_json *out)
{
    struct td_arena *arena = process->arena;
    td_time now = golden_time(pass, TD_STR("at"));
    struct td_hpa_events events = {.arena = arena};
    const struct td_json *setting = td_json_get(pass, TD_STR("strategy"));
    struct td_hpa hpa = {.has_selection_strategy = td_json_is(setting, TD_JSON_TYPE_STRING)};
    if (hpa.has_selection_strategy) {
        hpa.selection_strategy = setting->text;
    }
    struct td_hpa_strategy_choice choice = td_hpa_strategy_choose(&hpa, &process->options);
    td_hpa_strategy_observe(&process->memory, &choice, &events);
    struct golden_pods pods =
        read_short_pods(arena, td_json_get(pass, TD_STR("pods")), process->target.namespace);
    struct golden_pods matched =
        golden_match_pods(arena, &pods, process->target.namespace, &process->selector);
    bool is_filtered = choice.strategy == TD_HPA_STRATEGY_OWNERS && matched.count > 0;
    td_json_set(arena, out, TD_STR("matched"), verdict_json(arena, &matched, NULL, 0));
    td_json_set(arena, out, TD_STR("filtered"), td_json_new_bool(arena, is_filtered));
    if (is_filtered) {
        filter_pods(process, pass, &matched, now, &events, out);
    } else {
        td_json_set(arena, out, TD_STR("counted"), verdict_json(arena, &matched, NULL, 0));
        td_json_set(arena, out, TD_STR("fetched"), td_json_new_array(arena));
    }
    td_json_set(arena, out, TD_STR("events"), golden_events_json(arena, &events));
}

static int run_selection(struct td_arena *arena, const struct td_json *in, struct td_json **ret_out,
                         struct td_error *err)
{
    const struct td_json *target = td_json_get(in, TD_STR("target"));
    struct process process = {
        .arena = arena,
        .in = in,
        .memory = TD_HPA_STRATEGY_MEMORY_INIT,
        .options = {.is_gate_on = td_json_get_bool(in, TD_STR("gate"), false),
                    .primary_key = TD_HPA_STRATEGY_ANNOTATION},
        .target = {.group = td_group_version_parse(golden_text(target, TD_STR("apiVersion"))).group,
                   .kind = golden_text(target, TD_STR("kind")),
                   .name = golden_text(target, TD_STR("name")),
                   .namespace = golden_text(in, TD_STR("namespace")),
                   .uid = golden_text(in, TD_STR("scaleUid"))},
    };
    int code =
        td_selector_from_json(arena, td_json_get(in, TD_STR("selector")), &process.selector, err);
    if (code < 0) {
        return code;
    }
    td_owner_cache_init(&process.cache, golden_duration(in, TD_STR("ttl"), TD_OWNER_TTL_DEFAULT),
                        golden_duration(in, TD_STR("syncPeriod"), TD_OWNER_MISSING_TTL_DEFAULT));
    struct td_json *passes = td_json_new_array(arena);
    const struct td_json *list = td_json_get(in, TD_STR("passes"));
    for (const struct td_json *pass = td_json_first_child(list); pass; pass = pass->next) {
        struct td_json *out = td_json_new_object(arena);
        run_pass(&process, pass, out);
        td_json_append(passes, out);
    }
    td_owner_cache_done(&process.cache);
    *ret_out = td_json_new_object(arena);
    td_json_set(arena, *ret_out, TD_STR("passes"), passes);
    return TD_OK;
}

/* The text of PodFilterFailed is free; everything else is compared. */
static td_str source_name(enum td_hpa_strategy_source source)
{
    static const td_str names[] = {
        [TD_HPA_STRATEGY_FROM_SPEC] = TD_STR_INIT("spec"),
        [TD_HPA_STRATEGY_FROM_PRIMARY] = TD_STR_INIT("primary"),
        [TD_HPA_STRATEGY_FROM_ALIAS] = TD_STR_INIT("alias"),
        [TD_HPA_STRATEGY_FROM_DEFAULT] = TD_STR_INIT("default"),
        [TD_HPA_STRATEGY_FROM_GATE] = TD_STR_INIT("gate"),
    };
    return names[source];
}

static bool is_same_selection(const struct td_json *expected, const struct td_json *got)
{
    const struct td_json *passes = td_json_get(got, TD_STR("passes"));
    const struct td_json *wanted = td_json_first_child(td_json_get(expected, TD_STR("passes")));
    for (const struct td_json *pass = td_json_first_child(passes); pass && wanted;
         pass = pass->next) {
        const struct td_json *events = td_json_get(pass, TD_STR("events"));
        for (struct td_json *event = td_json_first_child(events); event; event = event->next) {
            if (td_str_equal(golden_text(event, TD_STR("reason")), TD_STR("PodFilterFailed"))) {
                (void)td_json_remove(event, TD_STR("message"));
            }
        }
        wanted = wanted->next;
    }
    return td_json_equal(expected, got);
}

/* The controller's side of seeds/hpa-selection-validation. */
int golden_hpa_effective_strategy(struct td_arena *arena, const struct td_json *in,
                                  struct td_json **ret_out, struct td_error *err)
{
    (void)err;
    const struct td_json *spec = td_json_get(in, TD_STR("spec"));
    struct td_hpa hpa = {.has_selection_strategy = td_json_is(spec, TD_JSON_TYPE_STRING),
                         .meta = {.annotations = td_json_get(in, TD_STR("annotations"))}};
    if (hpa.has_selection_strategy) {
        hpa.selection_strategy = spec->text;
    }
    struct td_hpa_strategy_options options = {
        .is_gate_on = td_json_get_bool(in, TD_STR("gate"), false),
        .primary_key = golden_text(in, TD_STR("primaryKey")),
        .by_default = td_str_equal(golden_text(in, TD_STR("flagDefault")), TD_STR("OwnerReference"))
                          ? TD_HPA_STRATEGY_OWNERS
                          : TD_HPA_STRATEGY_LABELS,
    };
    struct td_hpa_strategy_choice choice = td_hpa_strategy_choose(&hpa, &options);
    struct td_hpa_strategy_memory memory = TD_HPA_STRATEGY_MEMORY_INIT;
    struct td_hpa_events events = {.arena = arena};
    td_hpa_strategy_observe(&memory, &choice, &events);
    struct td_json *out = td_json_new_object(arena);
    golden_set_text(arena, out, TD_STR("effective"), td_hpa_strategy_name(choice.strategy));
    golden_set_text(arena, out, TD_STR("source"), source_name(choice.source));
    struct td_json *list = golden_events_json(arena, &events);
    struct td_json *event = td_json_new_null(arena);
    for (const struct td_json *each = td_json_first_child(list); each; each = each->next) {
        if (td_str_equal(golden_text(each, TD_STR("reason")), TD_STR("InvalidSelectionStrategy"))) {
            event = td_json_copy(arena, each, false);
        }
    }
    td_json_set(arena, out, TD_STR("event"), event);
    *ret_out = out;
    return TD_OK;
}

const struct golden_topic golden_hpa_selection[] = {
    {.name = "hpa/selector", .run = run_selector},
    {.name = "seeds/hpa-selection", .run = run_selection, .is_same = is_same_selection},
    {.name = NULL},
};
