#include "decide/tandem/gates.h"

#include "decide/tandem/amount.h"

static td_wide elapsed_ns(struct td_instant since, struct td_instant now)
{
    td_wide seconds = (td_wide)now.unix_seconds - since.unix_seconds;
    td_wide elapsed = seconds * TD_SECOND + (now.nanos - since.nanos);
    return elapsed < 0 ? 0 : elapsed;
}

bool td_tandem_has_passed(struct td_instant since, struct td_instant now, int64_t seconds)
{
    return elapsed_ns(since, now) >= (td_wide)seconds * TD_SECOND;
}

static bool is_running(struct td_tandem_time since, struct td_instant now, td_wide duration_ns)
{
    return since.is_set && elapsed_ns(since.at, now) < duration_ns;
}

enum td_tandem_block td_tandem_policy_block(const struct td_tandem_input *in,
                                            const struct td_hvpa_scale_policy *policy)
{
    if (policy->update == TD_HVPA_UPDATE_OFF) {
        return TD_TANDEM_BLOCK_UPDATE_POLICY;
    }
    if (policy->update == TD_HVPA_UPDATE_WINDOW &&
        !td_hvpa_window_contains(&in->hvpa->window, in->now)) {
        return TD_TANDEM_BLOCK_MAINTENANCE_WINDOW;
    }
    return TD_TANDEM_BLOCK_NONE;
}

enum td_tandem_block td_tandem_horizontal_gate(const struct td_tandem_input *in, bool is_up)
{
    td_duration stabilization =
        is_up ? in->hvpa->horizontal_up.stabilization : in->hvpa->horizontal_down.stabilization;
    return is_running(in->last_horizontal, in->now, stabilization)
               ? TD_TANDEM_BLOCK_STABILIZATION_WINDOW
               : TD_TANDEM_BLOCK_NONE;
}

/* After a restart nothing is known; a decrease then waits as if the last change had just been. */
static struct td_tandem_time last_for_decrease(const struct td_tandem_input *in,
                                               struct td_tandem_time last)
{
    return last.is_set ? last : in->first_seen;
}

enum td_tandem_block td_tandem_vertical_gate(const struct td_tandem_input *in, bool is_up)
{
    const struct td_hvpa *hvpa = in->hvpa;
    if (is_up) {
        return is_running(in->last_vertical, in->now, hvpa->vertical_up.stabilization)
                   ? TD_TANDEM_BLOCK_STABILIZATION_WINDOW
                   : TD_TANDEM_BLOCK_NONE;
    }
    if (is_running(last_for_decrease(in, in->last_vertical), in->now,
                   hvpa->vertical_down.stabilization)) {
        return TD_TANDEM_BLOCK_STABILIZATION_WINDOW;
    }
    td_wide settle_ns = (td_wide)hvpa->settle_seconds * TD_SECOND;
    return is_running(last_for_decrease(in, in->last_horizontal), in->now, settle_ns)
               ? TD_TANDEM_BLOCK_SETTLING
               : TD_TANDEM_BLOCK_NONE;
}

static struct td_tandem_time opens_at(struct td_tandem_time since, struct td_instant now,
                                      td_wide duration_ns)
{
    if (!is_running(since, now, duration_ns)) {
        return (struct td_tandem_time){.is_set = false};
    }
    td_wide at_ns = (td_wide)since.at.unix_seconds * TD_SECOND + since.at.nanos + duration_ns;
    td_wide seconds = at_ns / TD_SECOND - (at_ns % TD_SECOND < 0 ? 1 : 0);
    return (struct td_tandem_time){
        .is_set = true,
        .at = {.unix_seconds = td_tandem_saturate(seconds),
               .nanos = (int32_t)(at_ns - seconds * TD_SECOND)},
    };
}

struct td_tandem_openings td_tandem_openings_of(const struct td_tandem_input *in)
{
    const struct td_hvpa *hvpa = in->hvpa;
    return (struct td_tandem_openings){
        .horizontal_up = opens_at(in->last_horizontal, in->now, hvpa->horizontal_up.stabilization),
        .horizontal_down =
            opens_at(in->last_horizontal, in->now, hvpa->horizontal_down.stabilization),
        .vertical_up = opens_at(in->last_vertical, in->now, hvpa->vertical_up.stabilization),
        .vertical_down = opens_at(last_for_decrease(in, in->last_vertical), in->now,
                                  hvpa->vertical_down.stabilization),
        .settling = opens_at(last_for_decrease(in, in->last_horizontal), in->now,
                             (td_wide)hvpa->settle_seconds * TD_SECOND),
    };
}
