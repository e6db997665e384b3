/*
 * What the updater would like to do and does not, because the user of a VPA said so or because the
 * pod could not come back: told by one event on the VPA when it begins, and again only after it has
 * ended. What an eviction cannot mend is a condition of the VPA too, for as long as it lasts.
 */
#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/text.h"
#include "control/updater/update_private.h"
#include "decide/vertical/updater/requirements.h"
#include "kube/client/events.h"

/* Why pods of a VPA are held, and how many; key "EvictionRequirements/web". */
struct held_reason {
    const struct td_updater_note *first;
    size_t pod_count;
};

/* Rules for which an eviction could only do harm. */
static const enum td_updater_rule held_blocking[] = {TD_RULE_NOT_SELECTED, TD_RULE_REPLACEMENT,
                                                     TD_RULE_LIMIT_RANGE};
#define HELD_BLOCKING_COUNT (sizeof(held_blocking) / sizeof(held_blocking[0]))

static bool held_is_told(enum td_updater_rule rule)
{
    bool is_blocking = false;
    for (size_t i = 0; i < HELD_BLOCKING_COUNT; i++) {
        is_blocking = is_blocking || rule == held_blocking[i];
    }
    return rule == TD_RULE_REQUIREMENTS || is_blocking;
}

static td_str held_key(struct td_arena *arena, enum td_updater_rule rule, const struct td_vpa *vpa)
{
    return td_arena_format(arena, "%.*s/%.*s", TD_STR_ARG(td_updater_rule_name(rule)),
                           TD_STR_ARG(vpa->meta.name));
}

static void held_gather(struct td_update_loop *loop, struct td_map *reasons)
{
    for (size_t i = 0; i < loop->pass.notes.count; i++) {
        const struct td_updater_note *note = &loop->pass.notes.items[i];
        if (!held_is_told(note->rule)) {
            continue;
        }
        td_str key = held_key(&loop->arena, note->rule, note->vpa);
        struct held_reason *reason = td_map_get(reasons, key);
        if (!reason) {
            reason = td_arena_new(&loop->arena, struct held_reason);
            *reason = (struct held_reason){.first = note};
            (void)td_map_put(reasons, key, reason); /* as many as VPAs: it has room */
        }
        reason->pod_count++;
        if (td_str_compare(note->pod->meta.name, reason->first->pod->meta.name) < 0) {
            reason->first = note; /* the same in every pass */
        }
    }
}

static td_str held_message(struct td_arena *arena, const struct held_reason *reason)
{
    const struct td_updater_note *note = reason->first;
    td_auto_buf text;
    td_buf_init(&text, TD_OBJECT_BYTES_MAX);
    (void)td_buf_append_format(&text, "%zu pod%s not updated: ", reason->pod_count,
                               reason->pod_count == 1 ? " is" : "s are");
    if (note->rule == TD_RULE_REQUIREMENTS) {
        (void)td_buf_append(&text, TD_STR("evictionRequirements let changes through "));
        td_requirements_write(note->vpa, &text);
    } else if (note->rule == TD_RULE_NOT_SELECTED) {
        (void)td_buf_append(&text,
                            TD_STR("the template of their owner lacks labels that selector "));
        td_selector_write(&note->vpa->pod_selector, &text);
        (void)td_buf_append(&text, TD_STR(" asks for, so the pods that would replace them would "
                                          "not be of this VPA"));
        (void)td_buf_append(&text, note->vpa->mode == TD_VPA_RECREATE
                                       ? TD_STR("; updateMode InPlaceOrRecreate resizes in place")
                                       : TD_STR_EMPTY);
    } else if (note->rule == TD_RULE_REPLACEMENT) {
        (void)td_buf_append_format(&text, "they could not come back: %.*s (pod %.*s)",
                                   TD_STR_ARG(note->detail), TD_STR_ARG(note->pod->meta.name));
    } else {
        (void)td_buf_append_format(
            &text,
            "with resources of their own they could not come back, because LimitRange '%.*s' has "
            "an item of type Container",
            TD_STR_ARG(note->detail));
    }
    return td_arena_copy_str(arena, td_buf_str(&text));
}

static void held_tell(struct td_update_loop *loop, const struct held_reason *reason)
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
                         .message = held_message(&loop->arena, reason),
                     });
}

static void held_forget(struct td_map *held, td_str key)
{
    td_str owned = {.ptr = td_map_remove(held, key), .len = key.len};
    td_text_free(owned);
}

/* Whatever does not hold any more, or with NULL all of it. */
static void held_drop(struct td_map *held, const struct td_map *reasons)
{
    size_t position = 0;
    const struct td_map_entry *entry;
    while ((entry = td_map_next(held, &position))) {
        if (!reasons || !td_map_has(reasons, entry->key)) {
            held_forget(held, entry->key);
        }
    }
}

void update_held_init(struct update_part *part)
{
    td_map_init(&part->held, TD_HELD_REASONS_MAX);
}

void update_held_done(struct update_part *part)
{
    held_drop(&part->held, NULL);
    td_map_done(&part->held);
}

/* Was something of the VPA left undecided in this pass? Then a condition of the pass before may
 * still hold. */
static bool held_is_open(const struct td_update_loop *loop, const struct td_vpa *vpa)
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

static void held_set_conditions(struct td_update_loop *loop, const struct td_map *reasons)
{
    for (size_t i = 0; i < loop->pass.input.vpa_count; i++) {
        const struct td_vpa *vpa = loop->pass.input.vpas[i];
        const struct held_reason *reason = NULL;
        for (size_t r = 0; !reason && r < HELD_BLOCKING_COUNT; r++) {
            reason = td_map_get(reasons, held_key(&loop->arena, held_blocking[r], vpa));
        }
        if (reason) {
            update_condition_set(loop, vpa, td_updater_rule_name(reason->first->rule),
                                 held_message(&loop->arena, reason));
        } else if (td_vpa_condition_holds(vpa->conditions, vpa->condition_count,
                                          TD_STR("EvictionBlocked")) &&
                   !held_is_open(loop, vpa)) {
            update_condition_set(loop, vpa, TD_STR_EMPTY, TD_STR_EMPTY);
        }
    }
}

void update_held_tell(struct td_update_loop *loop, struct update_part *part)
{
    struct td_map reasons;
    td_map_init(&reasons, TD_HELD_REASONS_MAX);
    held_gather(loop, &reasons);
    held_set_conditions(loop, &reasons);
    held_drop(&part->held, &reasons);
    size_t position = 0;
    const struct td_map_entry *entry;
    while ((entry = td_map_next(&reasons, &position))) {
        if (td_map_has(&part->held, entry->key) || !loop->options.control.events) {
            continue;
        }
        held_tell(loop, entry->value);
        td_str owned = td_text_copy(entry->key);
        if (td_map_put(&part->held, owned, (void *)(uintptr_t)owned.ptr) != TD_OK) {
            td_text_free(owned); /* told again in the next pass */
        }
    }
    td_map_done(&reasons);
}
