#include "decide/tandem/loopgain.h"

#include "base/assert.h"

#define LOOP_PERCENT 100
#define LOOP_TOLERANCE_PERCENT 10 /* of the HPA */

typedef unsigned __int128 loop_wide; /* products of two int64 */

bool td_loop_gain(int64_t usage, int64_t target, int64_t utilization_percent, double *ret)
{
    if (usage <= 0 || target <= 0 || utilization_percent <= 0) {
        return false;
    }
    *ret = (double)usage / ((double)utilization_percent / LOOP_PERCENT * (double)target);
    return true;
}

bool td_loop_gain_of_target(int64_t utilization_percent, double *ret)
{
    return td_loop_gain(LOOP_PERCENT, LOOP_PERCENT + TD_LOOP_MARGIN_PERCENT, utilization_percent,
                        ret);
}

bool td_loop_gain_is_quiet(double gain)
{
    return gain >= TD_LOOP_GAIN_QUIET_MIN && gain <= TD_LOOP_GAIN_QUIET_MAX;
}

static int64_t loop_clamp(loop_wide value, int64_t min, int64_t max)
{
    if (value > (loop_wide)max) {
        return max;
    }
    return (int64_t)value < min ? min : (int64_t)value;
}

static loop_wide loop_div_ceil(loop_wide a, loop_wide b)
{
    return a / b + (a % b != 0);
}

/* What the VPA asks for: the usage of one pod and a margin. */
static int64_t loop_request(const struct td_loop_pair *loop, int64_t replicas)
{
    loop_wide usage = (loop_wide)loop->usage_total * (LOOP_PERCENT + TD_LOOP_MARGIN_PERCENT);
    loop_wide request = loop_div_ceil(usage, (loop_wide)replicas * LOOP_PERCENT);
    return loop_clamp(request, loop->request_min, loop->request_max);
}

/* What the HPA asks for. Its utilisation is a whole percentage, cut, as upstream's is. */
static int64_t loop_replicas(const struct td_loop_pair *loop, int64_t replicas, int64_t request)
{
    loop_wide requested = (loop_wide)replicas * (loop_wide)request;
    loop_wide percent = (loop_wide)loop->usage_total * LOOP_PERCENT / requested;
    loop_wide target = (loop_wide)loop->utilization_percent;
    loop_wide distance = percent > target ? percent - target : target - percent;
    if (distance * LOOP_PERCENT <= target * LOOP_TOLERANCE_PERCENT) {
        return replicas;
    }
    /* A percentage beyond all sense would only overflow the product. */
    percent = (loop_wide)loop_clamp(percent, 0, INT64_MAX);
    return loop_clamp(loop_div_ceil((loop_wide)replicas * percent, target), loop->replicas_min,
                      loop->replicas_max);
}

struct td_loop_end td_loop_pair_run(const struct td_loop_pair *loop)
{
    td_assert(loop->replicas >= 1);
    td_assert(loop->request >= 1);
    td_assert(loop->utilization_percent >= 1);
    td_assert(loop->usage_total >= 0);
    td_assert(loop->replicas_min >= 1);
    td_assert(loop->replicas_min <= loop->replicas_max);
    td_assert(loop->request_min >= 1);
    td_assert(loop->request_min <= loop->request_max);
    struct td_loop_end end = {.replicas = loop->replicas, .request = loop->request};
    for (int64_t i = 0; i < TD_LOOP_ROUNDS_MAX && !end.is_settled; i++) {
        int64_t request = loop_request(loop, end.replicas);
        int64_t replicas = loop_replicas(loop, end.replicas, request);
        end.is_settled = request == end.request && replicas == end.replicas;
        end.rounds += end.is_settled ? 0 : 1;
        end.request = request;
        end.replicas = replicas;
    }
    return end;
}
