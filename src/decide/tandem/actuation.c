#include "decide/tandem/actuation.h"

#include "base/assert.h"

static void add(struct td_tandem_plan *plan, enum td_tandem_step step)
{
    td_assert(plan->count < TD_TANDEM_STEPS_MAX);
    plan->steps[plan->count++] = step;
}

struct td_tandem_plan td_tandem_plan_of(const struct td_hvpa *hvpa,
                                        const struct td_tandem_input *in,
                                        const struct td_tandem_decision *decision)
{
    struct td_tandem_plan plan = {.count = 0};
    bool is_resized = false;
    bool is_increased = false;
    for (size_t i = 0; i < in->row_count; i++) {
        int64_t request = decision->outcomes[i].request;
        is_resized = is_resized || request != in->rows[i].request;
        is_increased = is_increased || request > in->rows[i].request;
    }
    bool is_scaled = decision->replicas != in->replicas;
    bool is_in = decision->replicas < in->replicas;
    enum td_tandem_step resize = hvpa->actuation == TD_HVPA_ACTUATE_TEMPLATE
                                     ? TD_TANDEM_STEP_PATCH_TEMPLATE
                                     : TD_TANDEM_STEP_RESIZE;
    if (hvpa->paused) {
        return plan;
    }
    if (is_scaled && is_in && is_increased) {
        add(&plan, resize);
        add(&plan, TD_TANDEM_STEP_WAIT_READY);
        add(&plan, TD_TANDEM_STEP_SCALE);
        return plan;
    }
    if (is_scaled) {
        add(&plan, TD_TANDEM_STEP_SCALE);
    }
    if (is_resized) {
        add(&plan, resize);
    }
    return plan;
}
