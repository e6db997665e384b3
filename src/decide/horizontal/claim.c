#include "decide/horizontal/claim.h"

#include "base/error.h"
#include "model/pod.h"

#define CLAIM_SLACK (5 * TD_SECOND) /* for a controller that is late */
#define CLAIM_HOLD_PERIODS 8        /* from a claim that was lost to the next */

struct td_hpa_marks td_hpa_marks_read(struct td_arena *arena, td_str managed_fields, td_str us)
{
    struct td_hpa_marks marks = {.manager = TD_STR_EMPTY};
    struct td_json *list = NULL;
    if (managed_fields.len == 0 ||
        td_json_parse(arena, managed_fields, &(struct td_json_options){.copy_strings = true}, &list,
                      NULL) != TD_OK ||
        !td_json_is(list, TD_JSON_TYPE_ARRAY)) {
        return marks;
    }
    for (const struct td_json *e = td_json_first_item(list); e; e = e->next) {
        struct td_instant at;
        td_str manager = td_json_text(e, "manager");
        if (td_time_parse(td_json_text(e, "time"), &at, NULL) != TD_OK) {
            continue;
        }
        td_time time = td_time_from_instant(at);
        if (td_str_equal(manager, us)) {
            marks.has_ours = true;
            marks.ours = time;
        } else if (!marks.has_other || time > marks.other) {
            marks.has_other = true;
            marks.other = time;
            marks.manager = manager;
        }
    }
    return marks;
}

bool td_hpa_marks_are_fresh(const struct td_hpa_marks *marks, td_duration sync_period, td_time now)
{
    return marks->has_other && now - marks->other < 2 * sync_period;
}

/* The claim was made: does it stand? */
static enum td_hpa_claim_verdict judge_claimed(struct td_hpa_claim *claim,
                                               const struct td_hpa_marks *marks,
                                               td_duration sync_period, td_time now,
                                               td_duration *ret_wait)
{
    td_duration left = claim->claimed + sync_period + CLAIM_SLACK - now;
    if (left > 0) {
        *ret_wait = left;
        return TD_HPA_CLAIM_WAIT;
    }
    claim->claimed = TD_TIME_NONE;
    bool is_ours = marks->has_ours && marks->ours >= marks->other;
    return is_ours ? TD_HPA_CLAIM_GO : TD_HPA_CLAIM_WRITE; /* it could not be written */
}

enum td_hpa_claim_verdict td_hpa_claim_judge(struct td_hpa_claim *claim,
                                             const struct td_hpa_marks *marks,
                                             td_duration sync_period, bool is_alone, td_time now,
                                             td_duration *ret_wait)
{
    if (td_hpa_marks_are_fresh(marks, sync_period, now)) {
        claim->hold_until = claim->claimed != TD_TIME_NONE ? now + CLAIM_HOLD_PERIODS * sync_period
                                                           : claim->hold_until;
        claim->claimed = TD_TIME_NONE;
        claim->is_needed = true;
        return TD_HPA_CLAIM_RIVAL;
    }
    if (is_alone) {
        return TD_HPA_CLAIM_GO;
    }
    if (!marks->has_ours && !marks->has_other) {
        *ret_wait = claim->first_seen + 2 * sync_period - now;
        return *ret_wait > 0 ? TD_HPA_CLAIM_WAIT : TD_HPA_CLAIM_GO;
    }
    if (marks->has_other && now < claim->hold_until) {
        return TD_HPA_CLAIM_RIVAL;
    }
    if (claim->claimed != TD_TIME_NONE) {
        return judge_claimed(claim, marks, sync_period, now, ret_wait);
    }
    bool is_theirs = marks->has_other && (!marks->has_ours || marks->other > marks->ours);
    return is_theirs || (marks->has_other && claim->is_needed) ? TD_HPA_CLAIM_WRITE
                                                               : TD_HPA_CLAIM_GO;
}

void td_hpa_claim_write(struct td_hpa_claim *claim, struct td_hpa_conditions *conditions,
                        td_time now)
{
    bool is_able =
        conditions->count == 0 || td_hpa_condition_is_true(conditions, TD_HPA_ABLE_TO_SCALE);
    td_hpa_condition_set(
        conditions, now, TD_HPA_ABLE_TO_SCALE, is_able, TD_STR("TakingOver"),
        TD_STR(
            "tandem will reconcile this HPA unless another controller updates its status first"));
    claim->claimed = now;
    claim->is_needed = false;
}
