#include "decide/vertical/updater/updater_account.h"

#include "base/timefmt.h"

static const struct rule_text {
    const char *name;
    const char *text;
} rule_texts[] = {
    [TD_RULE_EVICTED] = {"Evicted", "evicted, to come back with the recommended resources"},
    [TD_RULE_RESIZED] = {"Resized", "resized in place"},
    [TD_RULE_EVICTION_FAILED] = {"EvictionFailed", "the eviction was refused"},
    [TD_RULE_RESIZE_FAILED] = {"ResizeFailed", "the resize was refused"},
    [TD_RULE_RESIZE_IMPOSSIBLE] = {"ResizeImpossible", "a resize is not possible"},
    [TD_RULE_MODE] = {"Mode", "the update mode leaves running pods alone"},
    [TD_RULE_GATE_OFF] = {"GateOff", "mode InPlace needs feature gate InPlace"},
    [TD_RULE_LOW_CONFIDENCE] = {"LowConfidence", "too little was measured yet to act on it"},
    [TD_RULE_METRICS_STALE] = {"MetricsStale", "what is recommended comes from old metrics"},
    [TD_RULE_NO_RECOMMENDATION] = {"NoRecommendation", "there is no recommendation yet"},
    [TD_RULE_BOOSTED] = {"Boosted", "its startup boost still lasts"},
    [TD_RULE_TOO_FEW_REPLICAS] = {"TooFewReplicas", "its group has fewer pods than minReplicas"},
    [TD_RULE_UNKNOWN_REPLICAS] = {"UnknownReplicas", "nobody knows how many pods its group needs"},
    [TD_RULE_BUDGET] = {"Budget", "its group can spare no more pods now"},
    [TD_RULE_PENDING] = {"Pending", "it does not run yet, so it cannot be resized"},
    [TD_RULE_RESIZING] = {"Resizing", "a resize is under way"},
    [TD_RULE_INFEASIBLE] = {"Infeasible",
                            "its node could not take the last resize, and nothing asks for less"},
    [TD_RULE_YOUNG] = {"Young", "its requests are in range and it is not old enough"},
    [TD_RULE_NO_START_TIME] = {"NoStartTime", "its requests are in range and its age is unknown"},
    [TD_RULE_SMALL_CHANGE] = {"SmallChange", "its requests are in range and close to the target"},
    [TD_RULE_WAITING] = {"Waiting", "smaller requests are due twelve hours after the last change"},
    [TD_RULE_IN_BAND] = {"InBand", "its requests are close to the target"},
    [TD_RULE_OOM_NO_CHANGE] = {"OomNoChange",
                               "it ran out of memory, but its resources would not change"},
    [TD_RULE_REQUIREMENTS] = {"EvictionRequirements", "the eviction requirements are not met"},
    [TD_RULE_LEFT_ALONE] = {"LeftAlone",
                            "it came back unchanged after its evictions; is the webhook at work?"},
    [TD_RULE_LIMIT_RANGE] = {"LimitRange",
                             "it has pod-level resources and would be refused when it comes back, "
                             "because of a LimitRange with an item of type Container"},
    [TD_RULE_NOT_SELECTED] = {"ReplacementNotSelected",
                              "the pod that would replace it, by the labels of its owner's "
                              "template, would not be of this VPA"},
    [TD_RULE_REPLACEMENT] = {"ReplacementRefused", "it could not come back"},
    [TD_RULE_RATE_LIMIT] = {"RateLimit", "the rate limit leaves no room in this pass"},
};

void td_updater_notes_add(struct td_updater_notes *notes, const struct td_updater_note *note)
{
    notes->items =
        td_arena_grow(notes->arena, notes->items, notes->count, &notes->cap, sizeof(*notes->items));
    notes->items[notes->count++] = *note;
}

td_str td_updater_rule_name(enum td_updater_rule rule)
{
    return td_str_from(rule_texts[rule].name);
}

bool td_updater_rule_is_action(enum td_updater_rule rule)
{
    return rule == TD_RULE_EVICTED || rule == TD_RULE_RESIZED;
}

static bool is_about_group(enum td_updater_rule rule)
{
    return rule == TD_RULE_BUDGET || rule == TD_RULE_TOO_FEW_REPLICAS ||
           rule == TD_RULE_UNKNOWN_REPLICAS || td_updater_rule_is_action(rule);
}

static void write_group(const struct td_updater_note *note, struct td_buf *out)
{
    const struct td_group_view *group = &note->group;
    if (note->rule == TD_RULE_TOO_FEW_REPLICAS) {
        (void)td_buf_append_format(out, " (%lld live, %lld required)", (long long)group->actual,
                                   (long long)group->required);
    } else {
        (void)td_buf_append_format(out,
                                   " (%lld running, %lld configured, %lld may be missing, %lld "
                                   "evicted and %lld resized in this pass)",
                                   (long long)group->running, (long long)group->configured,
                                   (long long)group->tolerance, (long long)note->evicted,
                                   (long long)note->initiated);
    }
}

static void write_answer(const struct td_updater_note *note, struct td_buf *out)
{
    const struct td_update_answer *answer = &note->answer;
    if (answer->text.len > 0) {
        (void)td_buf_append_format(out, "; %.*s", TD_STR_ARG(answer->text));
        return;
    }
    (void)td_buf_append_format(out, "; differs by %.3g (threshold %.3g)%s%s%s",
                               answer->priority.resource_diff, note->threshold,
                               answer->priority.is_outside ? ", outside its range" : "",
                               answer->is_moved ? ", moved to this VPA" : "",
                               answer->is_quick_oom ? ", ran out of memory early" : "");
}

void td_updater_note_write(const struct td_updater_note *note, struct td_buf *out)
{
    if (note->pod) {
        (void)td_buf_append_format(
            out, "Pod %.*s/%.*s (VPA %.*s): ", TD_STR_ARG(note->pod->meta.namespace),
            TD_STR_ARG(note->pod->meta.name), TD_STR_ARG(note->vpa->meta.name));
    } else {
        (void)td_buf_append_format(out, "VPA %.*s/%.*s: ", TD_STR_ARG(note->vpa->meta.namespace),
                                   TD_STR_ARG(note->vpa->meta.name));
    }
    (void)td_buf_append(out, td_str_from(rule_texts[note->rule].text));
    if (note->has_group && is_about_group(note->rule)) {
        write_group(note, out);
    }
    if (note->detail.len > 0) {
        (void)td_buf_append_format(out, ": %.*s", TD_STR_ARG(note->detail));
    }
    if (note->has_answer) {
        write_answer(note, out);
    }
    if (note->until != 0) {
        char text[TD_TIME_TEXT_BYTES];
        (void)td_time_format(td_time_to_instant(note->until), 0, text);
        (void)td_buf_append_format(out, "; until %s", text);
    }
}

static void set_text(struct td_arena *arena, struct td_json *object, td_str key, td_str text)
{
    td_json_set(arena, object, key, td_json_new_string(arena, text));
}

static void set_int(struct td_arena *arena, struct td_json *object, td_str key, int64_t value)
{
    td_json_set(arena, object, key, td_json_new_int64(arena, value));
}

static void set_bool(struct td_arena *arena, struct td_json *object, td_str key, bool value)
{
    td_json_set(arena, object, key, td_json_new_bool(arena, value));
}

static struct td_json *group_json(struct td_arena *arena, const struct td_updater_note *note)
{
    const struct td_group_view *view = &note->group;
    struct td_json *object = td_json_new_object(arena);
    set_text(arena, object, TD_STR("kind"), view->group->kind);
    set_text(arena, object, TD_STR("name"), view->group->name);
    set_int(arena, object, TD_STR("live"), view->actual);
    set_int(arena, object, TD_STR("running"), view->running);
    set_int(arena, object, TD_STR("pending"), view->pending);
    set_int(arena, object, TD_STR("required"), view->required);
    set_int(arena, object, TD_STR("configured"), view->configured);
    set_int(arena, object, TD_STR("tolerance"), view->tolerance);
    set_int(arena, object, TD_STR("evicted"), note->evicted);
    set_int(arena, object, TD_STR("resized"), note->initiated);
    return object;
}

static struct td_json *answer_json(struct td_arena *arena, const struct td_updater_note *note)
{
    const struct td_update_answer *answer = &note->answer;
    struct td_json *object = td_json_new_object(arena);
    td_json_set(arena, object, TD_STR("resourceDiff"),
                td_json_new_double(arena, answer->priority.resource_diff));
    td_json_set(arena, object, TD_STR("threshold"), td_json_new_double(arena, note->threshold));
    set_bool(arena, object, TD_STR("outside"), answer->priority.is_outside);
    set_bool(arena, object, TD_STR("scaleUp"), answer->priority.is_scale_up);
    set_bool(arena, object, TD_STR("quickOOM"), answer->is_quick_oom);
    set_bool(arena, object, TD_STR("moved"), answer->is_moved);
    set_bool(arena, object, TD_STR("podLevel"), answer->is_pod_checked);
    if (answer->text.len > 0) {
        set_text(arena, object, TD_STR("adaptive"), answer->text);
    }
    return object;
}

struct td_json *td_updater_note_json(struct td_arena *arena, const struct td_updater_note *note)
{
    struct td_json *object = td_json_new_object(arena);
    set_text(arena, object, TD_STR("namespace"), note->vpa->meta.namespace);
    set_text(arena, object, TD_STR("vpa"), note->vpa->meta.name);
    if (note->pod) {
        set_text(arena, object, TD_STR("pod"), note->pod->meta.name);
    }
    set_text(arena, object, TD_STR("rule"), td_updater_rule_name(note->rule));
    set_bool(arena, object, TD_STR("acted"), td_updater_rule_is_action(note->rule));
    if (note->has_group) {
        td_json_set(arena, object, TD_STR("group"), group_json(arena, note));
    }
    if (note->has_answer) {
        td_json_set(arena, object, TD_STR("change"), answer_json(arena, note));
    }
    if (note->until != 0) {
        char text[TD_TIME_TEXT_BYTES];
        (void)td_time_format(td_time_to_instant(note->until), 0, text);
        set_text(arena, object, TD_STR("until"), td_arena_copy_str(arena, td_str_from(text)));
    }
    if (note->detail.len > 0) {
        set_text(arena, object, TD_STR("detail"), note->detail);
    }
    return object;
}
