/*
 * The band of each resource around its request, in permille of the request: outside of it an
 * increase comes at once, a decrease after a wait. All products are of bounded amounts, so none
 * overflows.
 */
#include "decide/vertical/estimator/adaptive_apply.h"

#include "base/timefmt.h"
#include "kube/quantity/quantity.h"

#define WHOLE 1000 /* permille */

/* One resource against its band. */
struct band {
    int64_t current;
    int64_t target;
    int64_t step; /* permille; an increase is at least this large */
    bool is_up;
    bool is_down;
};

const char *td_adaptive_apply_reason_name(enum td_adaptive_apply_reason reason)
{
    static const char *const names[] = {
        [TD_APPLY_NO_REQUEST] = "no-request", [TD_APPLY_OOM] = "oom",
        [TD_APPLY_INCREASE] = "increase",     [TD_APPLY_DECREASE] = "decrease",
        [TD_APPLY_WAITING] = "waiting",       [TD_APPLY_IN_BAND] = "in-band",
    };
    return names[reason];
}

/* Amounts far outside what there is would overflow a product; capped ones decide alike. */
static int64_t bounded(int64_t amount)
{
    if (amount < 0) {
        return 0;
    }
    return amount < 2 * TD_ADAPTIVE_MAX ? amount : 2 * TD_ADAPTIVE_MAX;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

int64_t td_adaptive_passed(int64_t from, int64_t to)
{
    int64_t passed;
    return __builtin_sub_overflow(to, from, &passed) ? (to < from ? INT64_MIN : INT64_MAX) : passed;
}

static struct band band_of(int64_t current, int64_t target, int64_t up, int64_t down, int64_t step)
{
    int64_t from = bounded(current);
    int64_t to = bounded(target) * WHOLE;
    return (struct band){
        .current = current,
        .target = target,
        .step = step,
        .is_up = to > from * (WHOLE + up),
        .is_down = to < from * (WHOLE - down),
    };
}

/* What an increase of either resource makes of this one. */
static int64_t raised(const struct band *band, bool has_waited)
{
    if (band->is_up) {
        /* A ramp is climbed in few steps. */
        return larger(band->target, bounded(band->current) * (WHOLE + band->step) / WHOLE);
    }
    return has_waited ? band->target : larger(band->current, band->target);
}

struct td_adaptive_decision td_adaptive_apply(const struct td_adaptive_apply_input *input,
                                              const struct td_adaptive_params *params)
{
    const struct td_adaptive_amounts *current = &input->current;
    const struct td_adaptive_amounts *target = &input->target;
    int64_t passed = td_adaptive_passed(input->changed, input->now);
    bool has_waited = passed >= params->wait;
    struct band cpu = band_of(current->cpu_milli, target->cpu_milli, params->cpu_up,
                              params->cpu_down, params->cpu_step);
    struct band memory = band_of(current->memory_bytes, target->memory_bytes, params->mem_up,
                                 params->mem_down, params->mem_step);
    cpu.is_up = cpu.is_up && passed >= params->cpu_wait;
    bool is_oom = input->is_oom && memory.target > memory.current;
    struct td_adaptive_decision made = {.reason = TD_APPLY_IN_BAND, .request = *current};
    if (cpu.current == 0 || memory.current == 0) {
        made.is_apply = true;
        made.reason = TD_APPLY_NO_REQUEST;
        made.request.cpu_milli = larger(cpu.current, cpu.target);
        made.request.memory_bytes = larger(memory.current, memory.target);
    } else if (cpu.is_up || memory.is_up || is_oom) {
        made.is_apply = true;
        made.reason = is_oom ? TD_APPLY_OOM : TD_APPLY_INCREASE;
        made.request.cpu_milli = raised(&cpu, has_waited);
        made.request.memory_bytes = raised(&memory, has_waited);
    } else if ((cpu.is_down || memory.is_down) && has_waited) {
        made.is_apply = true;
        made.reason = TD_APPLY_DECREASE;
        made.request = *target;
    } else if (cpu.is_down || memory.is_down) {
        made.reason = TD_APPLY_WAITING;
        made.until = __builtin_add_overflow(input->changed, params->wait, &made.until) ? INT64_MAX
                                                                                       : made.until;
    }
    return made;
}

static void write_pair(struct td_buf *out, const char *name, bool is_cpu, int64_t current,
                       int64_t target)
{
    struct td_quantity from = is_cpu ? td_quantity_new_milli(current, TD_QUANTITY_DECIMAL_SI)
                                     : td_quantity_new(current, TD_QUANTITY_BINARY_SI);
    struct td_quantity to = is_cpu ? td_quantity_new_milli(target, TD_QUANTITY_DECIMAL_SI)
                                   : td_quantity_new(target, TD_QUANTITY_BINARY_SI);
    (void)td_buf_append_format(out, "%s ", name);
    if (current == 0) {
        (void)td_buf_append(out, TD_STR("unset"));
    } else {
        td_quantity_write(&from, out);
    }
    (void)td_buf_append(out, TD_STR(" → "));
    td_quantity_write(&to, out);
}

void td_adaptive_write_decision(const struct td_adaptive_apply_input *input,
                                const struct td_adaptive_params *params,
                                const struct td_adaptive_decision *decision, struct td_buf *out)
{
    (void)td_buf_append_format(out, "%s: ", td_adaptive_apply_reason_name(decision->reason));
    write_pair(out, "cpu", true, input->current.cpu_milli, input->target.cpu_milli);
    (void)td_buf_append(out, TD_STR(", "));
    write_pair(out, "memory", false, input->current.memory_bytes, input->target.memory_bytes);
    (void)td_buf_append_format(
        out, "; changed when the target is above +%lld %% or below −%lld %% (memory +%lld, −%lld)",
        (long long)params->cpu_up / 10, (long long)params->cpu_down / 10,
        (long long)params->mem_up / 10, (long long)params->mem_down / 10);
    if (decision->reason == TD_APPLY_WAITING) {
        char until[TD_TIME_TEXT_BYTES];
        (void)td_time_format((struct td_instant){.unix_seconds = decision->until}, 0, until);
        (void)td_buf_append_format(out, "; a decrease is possible from %s", until);
    }
}
