/*
 * What the updater would like to do and does not, because the user of a VPA said so or because the
 * pod could not come back: told by one event on the VPA when it begins, and again only after it has
 * ended. What an eviction cannot mend is a condition of the VPA too, for as long as it lasts.
 */
#include "base/limits.h"
#include "control/updater/update_private.h"
#include "decide/vertical/updater/requirements.h"
#include "kube/client/events.h"

/* Why pods of a VPA are held, and how many; key "EvictionRequirements/web". */
struct blocked_reason {
    const struct td_updater_note *first;
    size_t pod_count;
};

/* Rules for which an eviction could only do harm. */
static const enum td_updater_rule blocked_blocking[] = {TD_RULE_NOT_SELECTED, TD_RULE_REPLACEMENT,
                                                        TD_RULE_LIMIT_RANGE};
#define BLOCKED_BLOCKING_COUNT (TD_COUNT(blocked_blocking))

static bool blocked_is_reported(enum td_updater_rule rule)
{
    bool is_blocking = false;
    for (size_t i = 0; i < BLOCKED_BLOCKING_COUNT; i++) {
        is_blocking = is_blocking || rule == blocked_blocking[i];
    }
    return rule == TD_RULE_REQUIREMENTS || is_blocking;
}

static td_str blocked_key(struct td_arena *arena, enum td_updater_rule rule,
                          const struct td_vpa *vpa)
{
    return td_arena_format(arena, "%.*s/%.*s", TD_STR_ARG(td_updater_rule_name(rule)),
                           TD_STR_ARG(vpa->meta.name));
}

static void blocked_gather(struct td_update_loop *loop, struct td_map *reasons)
{
    for (size_t i = 0; i < loop->pass.notes.count; i++) {
        const struct td_updater_note *note = &loop->pass.notes.items[i];
        if (!blocked_is_reported(note->rule)) {
            continue;
        }
        td_str key = blocked_key(&loop->arena, note->rule, note->vpa);
        struct blocked_reason *reason = td_map_get(reasons, key);
        if (!reason) {
            reason = td_arena_new(&loop->arena, struct blocked_reason);
            *reason = (struct blocked_reason){.first = note};
            (void)td_map_put(reasons, key, reason); /* as many as VPAs: it has room */
        }
        reason->pod_count++;
        if (td_str_compare(note->pod->meta.name, reason->first->pod->meta.name) < 0) {
            reason->first = note; /* the same in every pass */
        }
    }
}

static td_str blocked_message(struct td_arena *arena, const struct blocked_reason *reason)
{
    const struct td_updater_note *note = reason->first;
    td_auto_buf text = td_buf_capped(TD_OBJECT_BYTES_MAX);
    (void)td_buf_append_format(&text, "%zu pod%s not updated: ", reason->pod_count,
                               reason->pod_count == 1 ? " is" : "s are");
    if (note->rule == TD_RULE_REQUIREMENTS) {
        (void)td_buf_append(&text, TD_STR("evictionRequirements allow only changes "));
        td_requirements_write(note->vpa, &text);
    } else if (note->rule == TD_RULE_NOT_SELECTED) {
        (void)td_buf_append(&text,
                            TD_STR("the pod template of their owner lacks labels of selector "));
        td_selector_write(&note->vpa->pod_selector, &text);
        (void)td_buf_append(&text, TD_STR(", so this VPA would not manage their replacements"));
        (void)td_buf_append(&text, note->vpa->mode == TD_VPA_RECREATE
                                       ? TD_STR("; updateMode InPlaceOrRecreate resizes in place")
                                       : TD_STR_EMPTY);
    } else if (note->rule == TD_RULE_REPLACEMENT) {
        (void)td_buf_append_format(&text, "their replacements would be refused: %.*s (pod %.*s)",
                                   TD_STR_ARG(note->detail), TD_STR_ARG(note->pod->meta.name));
    } else {
        (void)td_buf_append_format(&text,
                                   "their replacements with pod-level resources would be refused, "
                                   "because LimitRange '%.*s' has an item of type Container",
                                   TD_STR_ARG(note->detail));
    }
    return td_arena_copy_str(arena, td_buf_str(&text));
}

static void blocked_tell(struct td_update_loop *loop, const struct blocked_reason *reason)
{
    const struct td_meta *meta = &reason->first->vpa->meta;
    td_events_record(loop->options.control.events,
                     &(struct td_event){
                         .api_version = TD_STR("autoscaling.k8s.io/v1"),
                         .kind = TD_STR("VerticalPodAutoscaler"),
                         .namespace = meta->namespace,
                         .name = meta->name,
                         .uid = meta->uid,
                         .reason = td_updater_rule_name(reason->first->rule),
                         .message = blocked_message(&loop->arena, reason),
                     });
}

/* Was something of the VPA left undecided in this pass? Then a condition of the pass before may
 * still hold. */
static bool blocked_is_open(const struct td_update_loop *loop, const struct td_vpa *vpa)
{
    for (size_t i = 0; i < loop->pass.notes.count; i++) {
        const struct td_updater_note *note = &loop->pass.notes.items[i];
        if (note->vpa == vpa &&
            (note->rule == TD_RULE_BUDGET || note->rule == TD_RULE_RESIZING ||
             note->rule == TD_RULE_RATE_LIMIT || note->rule == TD_RULE_EVICTION_FAILED)) {
            return true;
        }
    }
    return loop->pass.job_at < loop->pass.job_count; /* the pass ended early */
}

static void blocked_set_conditions(struct td_update_loop *loop, const struct td_map *reasons)
{
    for (size_t i = 0; i < loop->pass.input.vpa_count; i++) {
        const struct td_vpa *vpa = loop->pass.input.vpas[i];
        const struct blocked_reason *reason = NULL;
        for (size_t r = 0; !reason && r < BLOCKED_BLOCKING_COUNT; r++) {
            reason = td_map_get(reasons, blocked_key(&loop->arena, blocked_blocking[r], vpa));
        }
        if (reason) {
            update_condition_set(loop, vpa, td_updater_rule_name(reason->first->rule),
                                 blocked_message(&loop->arena, reason));
        } else if (td_vpa_condition_holds(vpa->conditions, vpa->condition_count,
                                          TD_STR("EvictionBlocked")) &&
                   !blocked_is_open(loop, vpa)) {
            update_condition_set(loop, vpa, TD_STR_EMPTY, TD_STR_EMPTY);
        }
    }
}

void update_blocked_tell(struct td_update_loop *loop, struct update_part *part)
{
    struct td_map reasons;
    td_map_init(&reasons, TD_HELD_REASONS_MAX);
    blocked_gather(loop, &reasons);
    blocked_set_conditions(loop, &reasons);
    size_t position = 0;
    const td_str *held;
    while ((held = td_string_set_next(&part->held, &position))) {
        if (!td_map_has(&reasons, *held)) {
            td_string_set_remove(&part->held, *held);
        }
    }
    for (struct td_map_walk at = {.map = &reasons}; td_map_step(&at);) {
        if (loop->options.control.events && !td_string_set_has(&part->held, at.key)) {
            blocked_tell(loop, at.value);
            (void)td_string_set_add(&part->held, at.key); /* full: told again in the next pass */
        }
    }
    td_map_done(&reasons);
}
