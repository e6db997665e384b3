/*
 * Which pods an HPA counts, by labels or by owners: where the choice comes from (gate, spec,
 * annotation, alias, default), and the events that tell of it, each once.
 */
#include "decide/horizontal/strategy.h"

#include "base/map.h"
#include "base/text.h"
#include "decide/horizontal/pods.h"

#define STRATEGY_SHOWN_BYTES 100 /* of a value that is not supported */

struct td_hpa_gates td_hpa_gates_of(const struct td_hpa_config *config,
                                    const struct td_hpa_strategy_options *options)
{
    return (struct td_hpa_gates){
        .scale_to_zero = config->can_scale_to_zero,
        .selection_strategy = options->is_gate_on,
        .configurable_tolerance = config->is_tolerance_configurable,
    };
}

td_str td_hpa_strategy_name(enum td_hpa_strategy strategy)
{
    return strategy == TD_HPA_STRATEGY_OWNERS ? TD_STR("OwnerReference") : TD_STR("LabelSelector");
}

static struct td_hpa_strategy_choice read_value(td_str value, enum td_hpa_strategy_source source)
{
    struct td_hpa_strategy_choice choice = {
        .strategy = TD_HPA_STRATEGY_LABELS, .source = source, .value = TD_STR_EMPTY};
    if (td_str_equal(value, TD_STR("OwnerReference")) ||
        td_str_equal(value, TD_STR("OwnerReferences"))) {
        choice.strategy = TD_HPA_STRATEGY_OWNERS;
    } else if (!td_str_equal(value, TD_STR("LabelSelector"))) {
        choice.is_unsupported = true;
        choice.value = value;
    }
    return choice;
}

struct td_hpa_strategy_choice td_hpa_strategy_choose(const struct td_hpa *hpa,
                                                     const struct td_hpa_strategy_options *options)
{
    if (!options->is_gate_on) {
        return (struct td_hpa_strategy_choice){.strategy = TD_HPA_STRATEGY_LABELS,
                                               .source = TD_HPA_STRATEGY_FROM_GATE,
                                               .value = TD_STR_EMPTY};
    }
    if (hpa->has_selection_strategy) {
        return read_value(hpa->selection_strategy, TD_HPA_STRATEGY_FROM_SPEC);
    }
    const struct td_json *primary = td_json_get(hpa->meta.annotations, options->primary_key);
    if (td_json_is(primary, TD_JSON_TYPE_STRING)) {
        return read_value(td_str_trim(primary->text), TD_HPA_STRATEGY_FROM_PRIMARY);
    }
    const struct td_json *alias = td_json_get(hpa->meta.annotations, TD_HPA_STRATEGY_ALIAS);
    if (td_json_is(alias, TD_JSON_TYPE_STRING)) {
        return read_value(td_str_trim(alias->text), TD_HPA_STRATEGY_FROM_ALIAS);
    }
    return (struct td_hpa_strategy_choice){.strategy = options->by_default,
                                           .source = TD_HPA_STRATEGY_FROM_DEFAULT,
                                           .value = TD_STR_EMPTY};
}

/* No strategy was asked for, so nothing is said of one. */
static bool is_silent(const struct td_hpa_strategy_choice *choice)
{
    return choice->source == TD_HPA_STRATEGY_FROM_GATE ||
           (choice->source == TD_HPA_STRATEGY_FROM_DEFAULT &&
            choice->strategy == TD_HPA_STRATEGY_LABELS);
}

static td_str report_counts(struct td_arena *arena,
                            const struct td_hpa_account_selection *selection)
{
    size_t counted = selection->owned_count;
    size_t matched = selection->matched_count;
    return td_arena_format(arena,
                           "%zu of %zu pod%s that the selector matches counted, %zu excluded",
                           counted, matched, TD_PLURAL(matched), matched - counted);
}

void td_hpa_strategy_report(const struct td_hpa_account_selection *selection, bool is_counted,
                            struct td_hpa_conditions *conditions, td_time now)
{
    const struct td_hpa_strategy_choice *choice = &selection->choice;
    struct td_arena *arena = conditions->arena;
    if (is_silent(choice)) {
        td_hpa_condition_remove(conditions, TD_HPA_SELECTION_STRATEGY);
        return;
    }
    if (!is_counted) {
        return;
    }
    bool is_owned = choice->strategy == TD_HPA_STRATEGY_OWNERS && !selection->is_failed;
    td_str counts = report_counts(arena, selection);
    td_str reason = td_hpa_strategy_name(choice->strategy);
    td_str message = td_arena_format(arena, "%.*s: %.*s", TD_STR_ARG(reason), TD_STR_ARG(counts));
    if (choice->is_unsupported) {
        reason = TD_STR("InvalidValue");
        message = td_arena_format(arena,
                                  "unsupported value '%.*s' (LabelSelector, OwnerReference), so "
                                  "LabelSelector: %.*s",
                                  TD_STR_ARG(td_str_cut_utf8(choice->value, STRATEGY_SHOWN_BYTES)),
                                  TD_STR_ARG(counts));
    } else if (selection->is_failed) {
        reason = TD_STR("PodFilterFailed");
        message = td_arena_format(arena, "owner '%.*s' cannot be read, so LabelSelector: %.*s",
                                  TD_STR_ARG(selection->culprit), TD_STR_ARG(counts));
    }
    td_hpa_condition_set(conditions, now, TD_HPA_SELECTION_STRATEGY, is_owned, reason, message);
}

static void complain(struct td_hpa_strategy_memory *memory,
                     const struct td_hpa_strategy_choice *choice, struct td_hpa_events *events)
{
    uint64_t hash = td_map_hash(choice->value) | 1; /* 0 means none */
    if (memory->unsupported_hash != hash) {
        memory->unsupported_hash = hash;
        td_hpa_event_add(events, true, TD_STR("InvalidSelectionStrategy"),
                         td_arena_format(events->arena,
                                         "Unsupported pod selection strategy '%.*s', using "
                                         "'LabelSelector'",
                                         TD_STR_ARG(choice->value)));
    }
}

void td_hpa_strategy_observe(struct td_hpa_strategy_memory *memory,
                             const struct td_hpa_strategy_choice *choice,
                             struct td_hpa_events *events)
{
    if (choice->source == TD_HPA_STRATEGY_FROM_GATE) {
        return;
    }
    if (choice->is_unsupported) {
        complain(memory, choice, events);
    }
    bool is_change = memory->is_known && memory->last != choice->strategy;
    if (is_change) {
        td_hpa_event_add(events, false, TD_STR("StrategyChanged"),
                         td_arena_format(events->arena,
                                         "Pod selection strategy changed from '%.*s' to '%.*s'",
                                         TD_STR_ARG(td_hpa_strategy_name(memory->last)),
                                         TD_STR_ARG(td_hpa_strategy_name(choice->strategy))));
    }
    if (choice->strategy == TD_HPA_STRATEGY_OWNERS && (is_change || !memory->is_known)) {
        td_hpa_event_add(events, false, TD_STR("SelectionStrategyActive"),
                         TD_STR("Pod selection strategy 'OwnerReference' is active"));
    }
    memory->is_known = true;
    memory->last = choice->strategy;
}

void td_hpa_strategy_filter_failed(struct td_hpa_strategy_memory *memory,
                                   enum td_hpa_filter_cause cause, td_str owner, td_time now,
                                   struct td_hpa_events *events)
{
    static const char *const words[TD_HPA_FILTER_CAUSES] = {
        [TD_HPA_FILTER_FORBIDDEN] = "reading it is forbidden; grant 'get' on its kind",
        [TD_HPA_FILTER_THROTTLED] = "the API server throttles requests",
        [TD_HPA_FILTER_ERROR] = "the API server returned an error",
        [TD_HPA_FILTER_TIMEOUT] = "the request to the API server timed out",
        [TD_HPA_FILTER_UNMAPPED] = "the API server does not serve its kind",
    };
    td_time *reported_at = &memory->reported_at[cause];
    if (*reported_at != TD_TIME_NONE && now < td_hpa_add(*reported_at, TD_HPA_FILTER_EVENT_PAUSE)) {
        return;
    }
    *reported_at = now;
    td_hpa_event_add(events, true, TD_STR("PodFilterFailed"),
                     td_arena_format(events->arena,
                                     "Cannot determine which pods the target owns, counting all "
                                     "pods that its selector matches: owner '%.*s': %s",
                                     TD_STR_ARG(owner), words[cause]));
}
