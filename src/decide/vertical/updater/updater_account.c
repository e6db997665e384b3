/* One table says of each rule its name, its sentence, and whether it is an action; a note is
 * written from it as a line and as JSON. */
#include "decide/vertical/updater/updater_account.h"

#include "base/timefmt.h"

static const struct rule_text {
    const char *name;
    const char *text;
} rule_texts[] = {
    [TD_RULE_EVICTED] = {"Evicted",
                         "evicted, so that its replacement gets the recommended resources"},
    [TD_RULE_RESIZED] = {"Resized", "resized in place"},
    [TD_RULE_EVICTION_FAILED] = {"EvictionFailed", "the API server refused the eviction"},
    [TD_RULE_RESIZE_FAILED] = {"ResizeFailed", "the API server refused the resize"},
    [TD_RULE_RESIZE_IMPOSSIBLE] = {"ResizeImpossible", "an in-place resize is not possible"},
    [TD_RULE_MODE] = {"Mode", "the update mode does not change running pods"},
    [TD_RULE_GATE_OFF] = {"GateOff", "update mode InPlace needs feature gate InPlace"},
    [TD_RULE_LOW_CONFIDENCE] = {"LowConfidence",
                                "the recommendation has too little history to be applied"},
    [TD_RULE_METRICS_STALE] = {"MetricsStale", "the recommendation is based on stale metrics"},
    [TD_RULE_NO_RECOMMENDATION] = {"NoRecommendation", "the VPA has no recommendation yet"},
    [TD_RULE_BOOSTED] = {"Boosted", "its CPU startup boost is still active"},
    [TD_RULE_TOO_FEW_REPLICAS] = {"TooFewReplicas",
                                  "its workload has fewer live pods than minReplicas"},
    [TD_RULE_UNKNOWN_REPLICAS] = {"UnknownReplicas",
                                  "the configured replicas of its workload are unknown"},
    [TD_RULE_BUDGET] = {"Budget", "its workload is at its eviction tolerance"},
    [TD_RULE_PENDING] = {"Pending", "it is not running yet, so it cannot be resized"},
    [TD_RULE_RESIZING] = {"Resizing", "an in-place resize is in progress"},
    [TD_RULE_INFEASIBLE] =
        {"Infeasible",
         "its last in-place resize was infeasible and the recommendation is not lower"},
    [TD_RULE_RESIZE_HELD] = {"ResizeHeld", "its in-place resize was deferred or refused and is "
                                           "tried again after a pause; it is not evicted for it"},
    [TD_RULE_YOUNG] = {"Young", "its requests are within bounds and the pod is too young"},
    [TD_RULE_NO_START_TIME] = {"NoStartTime",
                               "its requests are within bounds and its start time is unknown"},
    [TD_RULE_SMALL_CHANGE] = {"SmallChange",
                              "its requests are within bounds and close to the target"},
    [TD_RULE_WAITING] = {"Waiting", "decreases wait for some hours after the last change"},
    [TD_RULE_IN_BAND] = {"InBand", "its requests are close to the target"},
    [TD_RULE_OOM_NO_CHANGE] = {"OomNoChange",
                               "it was OOM-killed, but its resources would not change"},
    [TD_RULE_REQUIREMENTS] = {"EvictionRequirements", "its evictionRequirements are not met"},
    [TD_RULE_LEFT_ALONE] = {"LeftAlone", "its replacements did not get the recommended resources "
                                         "after two evictions; check the webhook"},
    [TD_RULE_LIMIT_RANGE] = {"LimitRange",
                             "its replacement with pod-level resources would be refused, because "
                             "of a LimitRange with an item of type Container"},
    [TD_RULE_NOT_SELECTED] = {"ReplacementNotSelected",
                              "its replacement, with the labels of its owner's pod template, would "
                              "not be selected by this VPA"},
    [TD_RULE_REPLACEMENT] = {"ReplacementRefused", "its replacement would be refused"},
    [TD_RULE_RATE_LIMIT] = {"RateLimit",
                            "the eviction or resize rate limit is reached in this pass"},
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
                                   " (%lld running, %lld configured, %lld may be unavailable, %lld "
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
    (void)td_buf_append(out, TD_STR("; differs by "));
    (void)td_buf_append_number(out, answer->priority.resource_diff, 3);
    (void)td_buf_append(out, TD_STR("x (threshold "));
    (void)td_buf_append_number(out, note->threshold, 3);
    (void)td_buf_append_format(out, "x)%s%s%s",
                               answer->priority.is_outside ? ", outside its bounds" : "",
                               answer->is_moved ? ", moved to this VPA" : "",
                               answer->is_quick_oom ? ", OOM-killed soon after its start" : "");
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

static struct td_json *group_json(struct td_arena *arena, const struct td_updater_note *note)
{
    const struct td_group_view *view = &note->group;
    struct td_json *object = td_json_new_object(arena);
    td_json_set_str(arena, object, TD_STR("kind"), view->group->kind);
    td_json_set_str(arena, object, TD_STR("name"), view->group->name);
    td_json_set_int64(arena, object, TD_STR("live"), view->actual);
    td_json_set_int64(arena, object, TD_STR("running"), view->running);
    td_json_set_int64(arena, object, TD_STR("pending"), view->pending);
    td_json_set_int64(arena, object, TD_STR("required"), view->required);
    td_json_set_int64(arena, object, TD_STR("configured"), view->configured);
    td_json_set_int64(arena, object, TD_STR("tolerance"), view->tolerance);
    td_json_set_int64(arena, object, TD_STR("evicted"), note->evicted);
    td_json_set_int64(arena, object, TD_STR("resized"), note->initiated);
    return object;
}

static struct td_json *answer_json(struct td_arena *arena, const struct td_updater_note *note)
{
    const struct td_update_answer *answer = &note->answer;
    struct td_json *object = td_json_new_object(arena);
    td_json_set_double(arena, object, TD_STR("resourceDiff"), answer->priority.resource_diff);
    td_json_set_double(arena, object, TD_STR("threshold"), note->threshold);
    td_json_set_bool(arena, object, TD_STR("outside"), answer->priority.is_outside);
    td_json_set_bool(arena, object, TD_STR("scaleUp"), answer->priority.is_scale_up);
    td_json_set_bool(arena, object, TD_STR("quickOOM"), answer->is_quick_oom);
    td_json_set_bool(arena, object, TD_STR("moved"), answer->is_moved);
    td_json_set_bool(arena, object, TD_STR("podLevel"), answer->is_pod_checked);
    td_json_set_text(arena, object, TD_STR("adaptive"), answer->text);
    return object;
}

struct td_json *td_updater_note_json(struct td_arena *arena, const struct td_updater_note *note)
{
    struct td_json *object = td_json_new_object(arena);
    td_json_set_str(arena, object, TD_STR("namespace"), note->vpa->meta.namespace);
    td_json_set_str(arena, object, TD_STR("vpa"), note->vpa->meta.name);
    if (note->pod) {
        td_json_set_str(arena, object, TD_STR("pod"), note->pod->meta.name);
    }
    td_json_set_str(arena, object, TD_STR("rule"), td_updater_rule_name(note->rule));
    td_json_set_bool(arena, object, TD_STR("acted"), td_updater_rule_is_action(note->rule));
    if (note->has_group) {
        td_json_set(arena, object, TD_STR("group"), group_json(arena, note));
    }
    if (note->has_answer) {
        td_json_set(arena, object, TD_STR("change"), answer_json(arena, note));
    }
    if (note->until != 0) {
        char text[TD_TIME_TEXT_BYTES];
        (void)td_time_format(td_time_to_instant(note->until), 0, text);
        td_json_set_str(arena, object, TD_STR("until"),
                        td_arena_copy_str(arena, td_str_from(text)));
    }
    td_json_set_text(arena, object, TD_STR("detail"), note->detail);
    return object;
}
