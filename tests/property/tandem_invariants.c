/* What must hold of every decision, whatever comes in: checked over random inputs.
 *
 *     tandem_invariants [COUNT [SEED]]
 *
 * Prints one line; exits 1 with the seed and number of the first input that breaks a rule. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "decide/tandem/amount.h"
#include "decide/tandem/gates.h"
#include "support/tandem_random.h"

#define DEFAULT_COUNT 200000
#define DEFAULT_SEED 7

typedef const char *(*rule)(const struct tandem_case *self);

static bool is_blend(const struct tandem_case *self)
{
    return self->hvpa.mode != TD_HVPA_RATIO_BASED || self->hvpa.ratio.capacity == TD_HVPA_BLEND;
}

static bool is_between(int64_t value, int64_t a, int64_t b)
{
    return (a <= value && value <= b) || (b <= value && value <= a);
}

static const char *check_replicas(const struct tandem_case *self)
{
    const struct td_tandem_decision *decision = &self->decision;
    int32_t n = self->in.replicas;
    if (is_between(n, decision->min_replicas, decision->max_replicas) &&
        !is_between(decision->replicas, decision->min_replicas, decision->max_replicas)) {
        return "replicas leave their range";
    }
    if (is_blend(self) && !is_between(decision->replicas, n, decision->desired_replicas)) {
        return "replicas are not between the present and the desired count";
    }
    return NULL;
}

static const char *check_requests(const struct tandem_case *self)
{
    for (size_t i = 0; i < self->in.row_count; i++) {
        const struct td_tandem_row *row = &self->rows[i];
        const struct td_tandem_outcome *outcome = &self->outcomes[i];
        /* A stride ends less than a tolerance above the target. */
        int64_t most = outcome->wish > row->request
                           ? outcome->wish + outcome->wish * self->hvpa.tolerance_percent / 100
                           : outcome->wish;
        if (is_blend(self) && !is_between(outcome->request, row->request, most)) {
            return "a request is not between the present and the target";
        }
        if (outcome->request == row->request) {
            continue;
        }
        if (row->max_allowed.is_set && outcome->request > row->max_allowed.amount) {
            return "a request is above maxAllowed";
        }
        if (outcome->limit.is_set && outcome->request > outcome->limit.amount) {
            return "a request is above its limit";
        }
        if (row->is_requests_only && outcome->limit.amount != row->limit.amount) {
            return "a fixed limit was changed";
        }
    }
    return NULL;
}

/* Nothing is made smaller than its floor. */
static const char *check_floor(const struct tandem_case *self)
{
    for (size_t i = 0; i < self->in.row_count; i++) {
        const struct td_tandem_outcome *outcome = &self->outcomes[i];
        if (outcome->request < self->rows[i].request && outcome->request < outcome->floor) {
            return "a request was made smaller than its floor";
        }
    }
    return NULL;
}

static const char *check_opposing(const struct tandem_case *self)
{
    if (!self->hvpa.opposing_guard || !is_blend(self) ||
        self->decision.replicas <= self->in.replicas) {
        return NULL;
    }
    for (size_t i = 0; i < self->in.row_count; i++) {
        if (self->outcomes[i].request < self->rows[i].request) {
            return "more replicas together with a smaller request";
        }
    }
    return NULL;
}

static const char *check_nothing_wanted(const struct tandem_case *self)
{
    bool is_wanted = self->decision.desired_replicas != self->in.replicas;
    for (size_t i = 0; i < self->in.row_count; i++) {
        is_wanted = is_wanted || self->outcomes[i].wish != self->rows[i].request;
    }
    if (!is_wanted && self->decision.axis != TD_TANDEM_AXIS_NONE) {
        return "a change that neither HPA nor VPA wants";
    }
    if ((self->decision.reason == TD_TANDEM_NO_RECOMMENDATION ||
         self->decision.reason == TD_TANDEM_NO_CHANGE) &&
        self->decision.desired_replicas != self->in.replicas) {
        return "a horizontal wish vanished without a reason";
    }
    return NULL;
}

static const char *check_axis(const struct tandem_case *self)
{
    bool is_vertical = false;
    for (size_t i = 0; i < self->in.row_count; i++) {
        is_vertical = is_vertical || self->outcomes[i].request != self->rows[i].request;
    }
    bool is_horizontal = self->decision.replicas != self->in.replicas;
    enum td_tandem_axis axis =
        (enum td_tandem_axis)((is_horizontal ? TD_TANDEM_AXIS_HORIZONTAL : 0) +
                              (is_vertical ? TD_TANDEM_AXIS_VERTICAL : 0));
    return axis == self->decision.axis ? NULL : "the axis does not say what changes";
}

/* Off means off, for every mode, policy and emergency. */
static const char *check_policies(const struct tandem_case *self)
{
    const struct td_hvpa *hvpa = &self->hvpa;
    int32_t n = self->in.replicas;
    if ((self->decision.replicas > n && td_tandem_policy_block(&self->in, &hvpa->horizontal_up)) ||
        (self->decision.replicas < n &&
         td_tandem_policy_block(&self->in, &hvpa->horizontal_down))) {
        return "replicas move in a direction that is switched off";
    }
    bool is_up_off = td_tandem_policy_block(&self->in, &hvpa->vertical_up) != 0;
    bool is_down_off = td_tandem_policy_block(&self->in, &hvpa->vertical_down) != 0;
    for (size_t i = 0; i < self->in.row_count; i++) {
        if ((is_up_off && self->outcomes[i].request > self->rows[i].request) ||
            (is_down_off && self->outcomes[i].request < self->rows[i].request)) {
            return "a request moves in a direction that is switched off";
        }
    }
    return NULL;
}

static const char *check_gates(const struct tandem_case *self)
{
    int32_t n = self->in.replicas;
    if (self->decision.replicas != n &&
        td_tandem_horizontal_gate(&self->in, self->decision.replicas > n)) {
        return "replicas move inside their stabilization window";
    }
    for (size_t i = 0; i < self->in.row_count; i++) {
        int64_t request = self->outcomes[i].request;
        if (request != self->rows[i].request && !self->outcomes[i].is_emergency &&
            (td_tandem_vertical_gate(&self->in, request > self->rows[i].request) ||
             self->in.resize != TD_TANDEM_RESIZE_NONE)) {
            return "a request moves while a gate holds it";
        }
    }
    return NULL;
}

static const char *check_emergency(const struct tandem_case *self)
{
    for (size_t i = 0; i < self->in.row_count; i++) {
        const struct td_tandem_row *row = &self->rows[i];
        const struct td_tandem_outcome *outcome = &self->outcomes[i];
        bool is_due = row->is_emergency && row->resource == TD_HVPA_MEMORY &&
                      outcome->wish > row->request && outcome->can_emergency_act;
        if (self->in.replicas > 0 && is_due && outcome->request != outcome->wish) {
            return "an emergency did not get its memory in full";
        }
    }
    return NULL;
}

/* Raising the HPA's wish never lowers what is decided. */
static const char *check_monotone(const struct tandem_case *self)
{
    static struct tandem_case raised;
    raised = *self;
    raised.in.desired_replicas++;
    tandem_case_decide(&raised);
    return is_blend(self) && raised.decision.replicas < self->decision.replicas
               ? "a higher wish gave fewer replicas"
               : NULL;
}

static const char *check_repeats(const struct tandem_case *self)
{
    static struct tandem_case again;
    again = *self;
    tandem_case_decide(&again);
    return tandem_digest_decision(TANDEM_DIGEST_START, self) ==
                   tandem_digest_decision(TANDEM_DIGEST_START, &again)
               ? NULL
               : "the same input gave another decision";
}

/* Both autoscalers ask for the same factor: nothing of it is lost or doubled. */
static const char *check_capacity(struct tandem_random *random)
{
    static struct tandem_case self;
    int32_t factor = (int32_t)tandem_pick(random, 9) + 2;
    int32_t n = (int32_t)tandem_pick(random, 200) + 2;
    bool is_cpu = tandem_chance(random, 50);
    int64_t granule = is_cpu ? 1 : MI;
    int64_t request = (100 + tandem_pick(random, 50000)) * granule;
    bool is_up = tandem_chance(random, 50);
    tandem_case_init(&self, TD_HVPA_RATIO_BASED);
    self.hvpa.coupling = TD_HVPA_REFERENCE;
    self.hvpa.hpa.min_replicas = 1;
    self.hvpa.hpa.max_replicas = INT32_MAX;
    self.hvpa.ratio.v_to_h = (double)(tandem_pick(random, 40) + 1) / 8;
    self.in.replicas = is_up ? n : n * factor;
    self.in.desired_replicas = is_up ? n * factor : n;
    tandem_case_add(&self, TD_STR("app"), is_cpu ? TD_HVPA_CPU : TD_HVPA_MEMORY,
                    is_up ? request : request * factor, is_up ? request * factor : request);
    tandem_case_decide(&self);
    int64_t decided = self.outcomes[0].request;
    if (decided == self.rows[0].request || decided == self.rows[0].target) {
        return NULL; /* a bound held it */
    }
    double wanted = (double)self.in.desired_replicas * (double)self.rows[0].request;
    double got = (double)self.decision.replicas * (double)decided;
    double slack = wanted * 2e-9;
    bool is_exact = got >= wanted - slack &&
                    got < wanted + (double)self.decision.replicas * (double)granule + slack;
    return is_exact ? NULL : "capacity was lost or doubled";
}

static const rule rules[] = {
    check_replicas,       check_requests, check_floor,    check_opposing,
    check_nothing_wanted, check_axis,     check_policies, check_gates,
    check_emergency,      check_monotone, check_repeats,
};

static const char *check_one(struct tandem_random *random)
{
    static struct tandem_case self;
    tandem_random_case(random, &self);
    tandem_case_decide(&self);
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        const char *broken = rules[i](&self);
        if (broken) {
            return broken;
        }
    }
    return check_capacity(random);
}

int main(int argc, char **argv)
{
    long long count = argc > 1 ? atoll(argv[1]) : DEFAULT_COUNT;
    long long seed = argc > 2 ? atoll(argv[2]) : DEFAULT_SEED;
    struct tandem_random random = {.state = (uint64_t)seed * 2 + 1};
    clock_t begin = clock();
    for (long long i = 0; i < count; i++) {
        const char *broken = check_one(&random);
        if (broken) {
            printf("seed %lld, input %lld: %s\n", seed, i, broken);
            return 1;
        }
    }
    printf("tandem invariants: %lld inputs, %zu rules each, none broken, %.1f s\n", count,
           sizeof(rules) / sizeof(rules[0]) + 1, (double)(clock() - begin) / CLOCKS_PER_SEC);
    return 0;
}
