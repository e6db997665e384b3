#include "decide/vertical/recommender/scaleout.h"

void td_scale_out_begin(struct td_scale_out *scale_out, const struct td_scale_out_pods *pods,
                        td_time now)
{
    bool is_grown = pods->old_count > 0 && pods->count > pods->old_count;
    *scale_out = (struct td_scale_out){
        .at = is_grown ? pods->last_start : 0,
        .since = now,
        .most_now = pods->count,
        .is_known = true,
        .is_set = is_grown,
    };
}

void td_scale_out_see(struct td_scale_out *scale_out, uint32_t count, td_time now)
{
    td_duration passed = now - scale_out->since;
    if (passed >= TD_SCALE_OUT_HOLD) {
        scale_out->most_before = passed < 2 * TD_SCALE_OUT_HOLD ? scale_out->most_now : 0;
        scale_out->most_now = 0;
        scale_out->since = now;
    }
    uint32_t most =
        scale_out->most_now > scale_out->most_before ? scale_out->most_now : scale_out->most_before;
    if (most > 0 && count > most) {
        scale_out->at = now;
        scale_out->is_set = true;
    }
    scale_out->most_now = count > scale_out->most_now ? count : scale_out->most_now;
}

bool td_scale_out_holds(const struct td_scale_out *scale_out, td_time now, td_time *ret_until)
{
    *ret_until = scale_out->at + TD_SCALE_OUT_HOLD;
    return scale_out->is_set && now < *ret_until;
}
