/* The tree of the account: one member for each question, and each counterfactual found by deciding
 * once more with one input changed. */
#include "decide/tandem/account/account.h"

#include "decide/tandem/account/account_words.h"
#include "decide/tandem/amount.h"
#include "decide/tandem/gates.h"

#define TARGET_PROBE_FACTOR 8 /* targets are tried up to this many times the request */

/* The tree under construction. */
struct telling {
    struct td_arena *arena;
    const struct td_tandem_account *account;
    const struct td_tandem_input *in;
    const struct td_tandem_decision *decision;
    struct td_tandem_row *probe_rows; /* for deciding again */
    struct td_tandem_outcome *probe_outcomes;
    struct td_json *held;
    struct td_json *next;
    struct td_json *changes;
};

static void say(struct telling *telling, struct td_json *list, td_str sentence)
{
    td_json_append(list, td_json_new_string(telling->arena, sentence));
}

static td_str amount_of(struct telling *telling, size_t row, int64_t amount)
{
    return tandem_amount_text(telling->arena, telling->in->rows[row].resource, amount);
}

static td_str exact_of(struct telling *telling, size_t row, int64_t amount)
{
    return tandem_amount_exact(telling->arena, telling->in->rows[row].resource, amount);
}

/* "web (Hvpa shop/web, RatioBased 1:1, replicas 1..20, ratio stage 2..18) decided at 09:41:15" */
static td_str title_of(struct telling *telling)
{
    const struct td_hvpa *hvpa = telling->in->hvpa;
    const struct td_tandem_decision *decision = telling->decision;
    td_auto_buf text = td_buf_capped(4096);
    (void)td_buf_append_format(&text, "%.*s (Hvpa %.*s/%.*s, %.*s", TD_STR_ARG(hvpa->meta.name),
                               TD_STR_ARG(hvpa->meta.namespace), TD_STR_ARG(hvpa->meta.name),
                               TD_STR_ARG(td_hvpa_mode_name(hvpa->mode)));
    if (hvpa->mode == TD_HVPA_RATIO_BASED) {
        (void)td_buf_append_char(&text, ' ');
        (void)td_buf_append_number(&text, hvpa->ratio.v_to_h, 4);
        (void)td_buf_append(&text, TD_STR(":1"));
    }
    (void)td_buf_append_format(&text, ", replicas %d..%d", decision->min_replicas,
                               decision->max_replicas);
    if (hvpa->mode == TD_HVPA_RATIO_BASED) {
        (void)td_buf_append_format(
            &text, ", ratio stage %d..%d",
            hvpa->ratio.has_start ? hvpa->ratio.start : decision->min_replicas,
            hvpa->ratio.has_finish ? hvpa->ratio.finish : decision->max_replicas);
    }
    char time[TD_TIME_TEXT_BYTES];
    (void)td_time_format(telling->in->now, 0, time);
    (void)td_buf_append_format(&text, ") decided at %s", time);
    return td_arena_copy_str(telling->arena, td_buf_str(&text));
}

static struct td_json *wanted_horizontally(struct telling *telling)
{
    const struct td_tandem_input *in = telling->in;
    struct td_json *wish = td_json_new_object(telling->arena);
    bool has_axis = td_hvpa_scales_horizontally(in->hvpa);
    bool is_valid = has_axis && in->is_horizontal_valid;
    td_json_set_bool(telling->arena, wish, TD_STR("valid"), is_valid);
    td_str says = TD_STR("not scaled");
    if (is_valid) {
        td_json_set_int64(telling->arena, wish, TD_STR("replicas"), in->desired_replicas);
        bool is_clamped = in->desired_replicas != telling->decision->desired_replicas;
        says = is_clamped ? td_arena_format(telling->arena, "%d replica%s, %d within %d..%d",
                                            in->desired_replicas, TD_PLURAL(in->desired_replicas),
                                            telling->decision->desired_replicas,
                                            telling->decision->min_replicas,
                                            telling->decision->max_replicas)
                          : td_arena_format(telling->arena, "%d replica%s", in->desired_replicas,
                                            TD_PLURAL(in->desired_replicas));
    } else if (has_axis) {
        says = TD_STR("unknown: no usable metric");
    }
    td_json_set_str(telling->arena, wish, TD_STR("says"), says);
    td_json_set_str(telling->arena, wish, TD_STR("why"), telling->account->horizontal_why);
    return wish;
}

static td_str change_text(struct telling *telling, size_t i)
{
    const struct td_tandem_row *row = &telling->in->rows[i];
    const struct td_tandem_outcome *outcome = &telling->decision->outcomes[i];
    if (outcome->wish == row->request) {
        return outcome->is_kept ? TD_STR("no change: the floor at which the HPA works")
                                : TD_STR("no change");
    }
    if (row->request == 0) {
        return TD_STR("has no request yet");
    }
    td_wide percent = ((td_wide)outcome->wish - row->request) * 100 / row->request;
    const char *why = outcome->is_kept              ? ", the floor at which the HPA works"
                      : outcome->is_coupling_raised ? ", the size at which the HPA's target is met"
                                                    : "";
    return td_arena_format(telling->arena, "%+lld%% of %.*s%s", (long long)percent,
                           TD_STR_ARG(amount_of(telling, i, row->request)), why);
}

static struct td_json *wanted_vertically(struct telling *telling)
{
    struct td_json *list = td_json_new_array(telling->arena);
    bool is_valid = telling->in->is_vertical_valid && telling->in->hvpa->has_vpa;
    for (size_t i = 0; is_valid && i < telling->in->row_count; i++) {
        const struct td_tandem_row *row = &telling->in->rows[i];
        int64_t target = telling->decision->outcomes[i].wish;
        struct td_json *wish = td_json_new_object(telling->arena);
        td_json_set_str(telling->arena, wish, TD_STR("container"), row->container);
        td_json_set_str(telling->arena, wish, TD_STR("resource"),
                        td_hvpa_resource_name(row->resource));
        td_json_set_str(telling->arena, wish, TD_STR("target"), exact_of(telling, i, target));
        td_json_set_str(telling->arena, wish, TD_STR("says"),
                        td_arena_format(telling->arena, "%.*s %.*s",
                                        TD_STR_ARG(tandem_row_name(telling->arena, telling->in, i)),
                                        TD_STR_ARG(amount_of(telling, i, target))));
        td_str change = change_text(telling, i);
        td_str why =
            telling->account->vertical_why ? telling->account->vertical_why[i] : TD_STR_EMPTY;
        td_json_set_str(telling->arena, wish, TD_STR("why"),
                        why.len > 0 ? td_arena_format(telling->arena, "%.*s; %.*s",
                                                      TD_STR_ARG(change), TD_STR_ARG(why))
                                    : change);
        td_json_append(list, wish);
    }
    return list;
}

/* "4 → 6 replicas and cpu 500m → 667m" */
static td_str deed_text(struct telling *telling)
{
    const struct td_tandem_input *in = telling->in;
    td_auto_buf text = td_buf_capped(16384);
    if (telling->decision->replicas != in->replicas) {
        (void)td_buf_append_format(&text, "%d → %d replica%s", in->replicas,
                                   telling->decision->replicas,
                                   TD_PLURAL(telling->decision->replicas));
    }
    for (size_t i = 0; i < in->row_count; i++) {
        int64_t request = telling->decision->outcomes[i].request;
        if (request == in->rows[i].request) {
            continue;
        }
        (void)td_buf_append_format(&text, "%s%.*s %.*s → %.*s", text.len > 0 ? " and " : "",
                                   TD_STR_ARG(tandem_row_name(telling->arena, in, i)),
                                   TD_STR_ARG(amount_of(telling, i, in->rows[i].request)),
                                   TD_STR_ARG(amount_of(telling, i, request)));
    }
    if (text.len == 0) {
        (void)td_buf_append(&text, TD_STR("nothing"));
    }
    return td_arena_copy_str(telling->arena, td_buf_str(&text));
}

/* The replicas of a blend: "4·(8/4)^0.5 = 5.66 → 6". */
static void say_blend(struct telling *telling, struct td_json *says)
{
    const struct td_tandem_blend *blend = &telling->decision->blend;
    const struct td_tandem_input *in = telling->in;
    if (blend->carrier != TD_TANDEM_CARRIED_BY_BOTH) {
        say(telling, says,
            blend->carrier == TD_TANDEM_CARRIED_BY_SIZE
                ? TD_STR("by size alone: one more replica would be a larger step")
                : TD_STR("by replicas alone: a step of size would be too short"));
    }
    if (blend->is_max || telling->decision->replicas == in->replicas || blend->exponent == 0 ||
        blend->exponent == 1) {
        return;
    }
    say(telling, says,
        td_arena_format(telling->arena, "%d·(%d/%d)^%.*s = %.2f → %d%s", in->replicas,
                        telling->decision->desired_replicas, in->replicas,
                        TD_STR_ARG(tandem_number_text(telling->arena, blend->exponent)),
                        blend->replicas_exact, telling->decision->replicas,
                        blend->is_cut_by_border ? ", the border of this stage" : ""));
}

/* A row's share: "the rest goes into size: 500m·(1/500m)^0.5·5.66/6 = 667m". */
static void say_share(struct telling *telling, struct td_json *says, size_t i)
{
    const struct td_tandem_row *row = &telling->in->rows[i];
    const struct td_tandem_outcome *outcome = &telling->decision->outcomes[i];
    const struct td_tandem_blend *blend = &telling->decision->blend;
    if (outcome->request == row->request || outcome->request == outcome->target ||
        outcome->exponent == 0 || outcome->exponent == 1 || blend->is_max) {
        return;
    }
    td_str before = amount_of(telling, i, row->request);
    bool is_alone = telling->decision->replicas == telling->in->replicas;
    td_str compensation = is_alone
                              ? TD_STR_EMPTY
                              : td_arena_format(telling->arena, "·%.2f/%d", blend->replicas_exact,
                                                telling->decision->replicas);
    say(telling, says,
        td_arena_format(telling->arena, "%s%.*s·(%.*s/%.*s)^%.*s%.*s = %.*s",
                        is_alone ? "" : "the rest goes into size: ", TD_STR_ARG(before),
                        TD_STR_ARG(amount_of(telling, i, outcome->target)), TD_STR_ARG(before),
                        TD_STR_ARG(tandem_number_text(telling->arena, outcome->exponent)),
                        TD_STR_ARG(compensation),
                        TD_STR_ARG(amount_of(telling, i, outcome->request))));
}

/* "capacity 2 → 4002m cpu", over all containers. */
static void say_capacity(struct telling *telling, struct td_json *says)
{
    td_wide before = 0;
    td_wide after = 0;
    for (size_t i = 0; i < telling->in->row_count; i++) {
        if (telling->in->rows[i].resource == TD_HVPA_CPU) {
            before += (td_wide)telling->in->rows[i].request * telling->in->replicas;
            after += (td_wide)telling->decision->outcomes[i].request * telling->decision->replicas;
        }
    }
    if (before != 0 && before != after) {
        td_str from = tandem_amount_text(telling->arena, TD_HVPA_CPU, td_tandem_saturate(before));
        td_str to = tandem_amount_text(telling->arena, TD_HVPA_CPU, td_tandem_saturate(after));
        say(telling, says,
            td_arena_format(telling->arena, "capacity %.*s → %.*s cpu", TD_STR_ARG(from),
                            TD_STR_ARG(to)));
    }
}

static struct td_json *done(struct telling *telling)
{
    const struct td_tandem_decision *decision = telling->decision;
    struct td_json *did = td_json_new_object(telling->arena);
    td_json_set_str(telling->arena, did, TD_STR("axis"), td_tandem_axis_name(decision->axis));
    td_json_set_str(telling->arena, did, TD_STR("reason"), td_tandem_reason_name(decision->reason));
    td_json_set_bool(telling->arena, did, TD_STR("emergency"), decision->is_emergency);
    td_json_set_int64(telling->arena, did, TD_STR("replicas"), decision->replicas);
    struct td_json *requests = td_json_ensure_object(telling->arena, did, TD_STR("requests"));
    struct td_json *says = td_json_new_array(telling->arena);
    say(telling, says,
        td_arena_format(telling->arena, "%.*s: %s", TD_STR_ARG(deed_text(telling)),
                        tandem_reason_words(decision->reason)));
    say_blend(telling, says);
    for (size_t i = 0; i < telling->in->row_count; i++) {
        const struct td_tandem_row *row = &telling->in->rows[i];
        if (decision->outcomes[i].request != 0) {
            td_json_set_str(telling->arena,
                            td_json_ensure_object(telling->arena, requests, row->container),
                            td_hvpa_resource_name(row->resource),
                            exact_of(telling, i, decision->outcomes[i].request));
        }
        say_share(telling, says, i);
        if (decision->outcomes[i].is_at_max_allowed) {
            say(telling, says,
                td_arena_format(telling->arena,
                                "%.*s was OOM-killed and is at maxAllowed already: raise it",
                                TD_STR_ARG(row->container)));
        }
    }
    say_capacity(telling, says);
    td_json_set(telling->arena, did, TD_STR("says"), says);
    return did;
}

/* One wish that was not carried out, and what would let it through. */
static void hold(struct telling *telling, const char *axis, td_str wish, bool is_up,
                 enum td_tandem_block block)
{
    struct td_json *item = td_json_new_object(telling->arena);
    td_json_set_str(telling->arena, item, TD_STR("axis"), td_str_from(axis));
    td_json_set_str(telling->arena, item, TD_STR("wish"), wish);
    td_json_set_str(telling->arena, item, TD_STR("reason"),
                    block != TD_TANDEM_BLOCK_NONE
                        ? td_tandem_block_name(block)
                        : td_tandem_reason_name(telling->decision->reason));
    bool is_nothing_done = telling->decision->axis == TD_TANDEM_AXIS_NONE;
    const char *words = block == TD_TANDEM_BLOCK_NONE && is_nothing_done
                            ? tandem_reason_words(telling->decision->reason)
                            : tandem_block_words(block);
    td_json_set_str(telling->arena, item, TD_STR("says"),
                    td_arena_format(telling->arena, "%.*s: %s", TD_STR_ARG(wish), words));
    td_json_append(telling->held, item);
    td_str remedy = tandem_block_remedy(telling->arena, block, axis, is_up);
    if (remedy.len > 0) {
        say(telling, telling->changes,
            td_arena_format(telling->arena, "%.*s: %.*s", TD_STR_ARG(wish), TD_STR_ARG(remedy)));
    }
}

static void tell_held(struct telling *telling)
{
    const struct td_tandem_decision *decision = telling->decision;
    const struct td_tandem_input *in = telling->in;
    bool is_wish = in->replicas > 0 && decision->desired_replicas != in->replicas;
    if (is_wish && decision->replicas == in->replicas) {
        hold(telling, "horizontal",
             td_arena_format(telling->arena, "%d → %d replica%s", in->replicas,
                             decision->desired_replicas, TD_PLURAL(decision->desired_replicas)),
             decision->desired_replicas > in->replicas, decision->horizontal_block);
    }
    for (size_t i = 0; i < in->row_count; i++) {
        const struct td_tandem_outcome *outcome = &decision->outcomes[i];
        int64_t request = in->rows[i].request;
        bool is_held = outcome->block != TD_TANDEM_BLOCK_NONE || outcome->is_significant;
        if (outcome->request != request || !is_held) {
            continue;
        }
        hold(telling, "vertical",
             td_arena_format(telling->arena, "%.*s %.*s → %.*s",
                             TD_STR_ARG(tandem_row_name(telling->arena, in, i)),
                             TD_STR_ARG(amount_of(telling, i, request)),
                             TD_STR_ARG(amount_of(telling, i, outcome->wish))),
             outcome->wish > request, outcome->block);
    }
}

/* What the next tick will know: this decision carried out. */
static struct td_tandem_input after_decision(const struct telling *telling)
{
    struct td_tandem_input after = *telling->in;
    struct td_tandem_time now = {.is_set = true, .at = telling->in->now};
    enum td_tandem_axis axis = telling->decision->axis;
    if (axis == TD_TANDEM_AXIS_HORIZONTAL || axis == TD_TANDEM_AXIS_BOTH) {
        after.last_horizontal = now;
    }
    if (axis == TD_TANDEM_AXIS_VERTICAL || axis == TD_TANDEM_AXIS_BOTH) {
        after.last_vertical = now;
    }
    return after;
}

static void tell_opening(struct telling *telling, struct td_tandem_time opens, const char *what,
                         td_duration duration)
{
    if (opens.is_set) {
        say(telling, telling->next,
            td_arena_format(
                telling->arena, "%s from %.*s (%.*s)", what,
                TD_STR_ARG(tandem_time_text(telling->arena, telling->in->now, opens.at)),
                TD_STR_ARG(tandem_duration_text(telling->arena, duration))));
    }
}

static void tell_next(struct telling *telling)
{
    const struct td_hvpa *hvpa = telling->in->hvpa;
    struct td_tandem_input after = after_decision(telling);
    if (telling->in->replicas == 0) {
        return;
    }
    if (telling->decision->blend.is_cut_by_border) {
        say(telling, telling->next,
            td_arena_format(telling->arena, "decided again at once: %d replicas are a border",
                            telling->decision->blend.border_replicas));
    }
    struct td_tandem_openings openings = td_tandem_openings_of(&after);
    tell_opening(telling, openings.horizontal_up, "more replicas are possible",
                 hvpa->horizontal_up.stabilization);
    tell_opening(telling, openings.horizontal_down, "fewer replicas are possible",
                 hvpa->horizontal_down.stabilization);
    if (hvpa->has_vpa) {
        tell_opening(telling, openings.vertical_up, "larger requests are possible",
                     hvpa->vertical_up.stabilization);
        tell_opening(telling, openings.settling, "usage counts as settled",
                     hvpa->settle_seconds * TD_SECOND);
        tell_opening(telling, openings.vertical_down, "smaller requests are possible",
                     hvpa->vertical_down.stabilization);
    }
}

/* Decide again; the rows are a copy that the caller may have changed. */
static struct td_tandem_decision decide_again(struct telling *telling,
                                              const struct td_tandem_input *in)
{
    struct td_tandem_decision decision;
    td_tandem_decide(in, telling->probe_outcomes, &decision);
    return decision;
}

static int32_t replicas_for(struct telling *telling, int32_t desired)
{
    struct td_tandem_input in = *telling->in;
    in.desired_replicas = desired;
    in.is_horizontal_valid = true;
    return decide_again(telling, &in).replicas;
}

/* The wish nearest to `quiet` that still gives what `loud` gives; both are included in the search,
 * which may halve because a higher wish never gives fewer replicas. */
static int32_t nearest_wish(struct telling *telling, int32_t quiet, int32_t loud, int32_t replicas)
{
    while (quiet != loud) {
        int32_t middle = quiet + (loud - quiet) / 2;
        bool is_same = replicas_for(telling, middle) == replicas;
        if (is_same && middle == quiet) {
            return quiet;
        }
        if (is_same) {
            loud = middle;
        } else {
            quiet = middle == quiet ? loud : middle;
        }
    }
    return loud;
}

static void tell_replicas(struct telling *telling)
{
    const struct td_tandem_decision *decision = telling->decision;
    int32_t n = telling->in->replicas;
    if (!td_hvpa_scales_horizontally(telling->in->hvpa) || n == 0) {
        return;
    }
    if (decision->replicas != n && decision->desired_replicas != n) {
        int32_t wish = nearest_wish(telling, n, decision->desired_replicas, decision->replicas);
        int32_t other = wish + (decision->replicas > n ? -1 : 1);
        say(telling, telling->changes,
            td_arena_format(telling->arena, "a desired count of %d replica%s gives %d", other,
                            TD_PLURAL(other), replicas_for(telling, other)));
        return;
    }
    int32_t most = replicas_for(telling, decision->max_replicas);
    if (most > n && decision->desired_replicas >= n) {
        int32_t low = decision->desired_replicas;
        int32_t high = decision->max_replicas;
        while (high - low > 1) {
            int32_t middle = low + (high - low) / 2;
            if (replicas_for(telling, middle) > n) {
                high = middle;
            } else {
                low = middle;
            }
        }
        say(telling, telling->changes,
            td_arena_format(telling->arena, "a desired count of %d replica%s gives %d", high,
                            TD_PLURAL(high), replicas_for(telling, high)));
    }
}

static bool does_row_move(struct telling *telling, size_t row, int64_t target)
{
    struct td_tandem_input in = *telling->in;
    in.rows = telling->probe_rows;
    telling->probe_rows[row].target = target;
    (void)decide_again(telling, &in);
    telling->probe_rows[row].target = telling->in->rows[row].target;
    return telling->probe_outcomes[row].request > telling->in->rows[row].request;
}

/* The smallest target that makes a resting row grow. */
static void tell_row(struct telling *telling, size_t i)
{
    const struct td_tandem_row *row = &telling->in->rows[i];
    const struct td_tandem_outcome *outcome = &telling->decision->outcomes[i];
    td_str name = tandem_row_name(telling->arena, telling->in, i);
    if (outcome->request > row->request) {
        td_str amount = amount_of(telling, i, outcome->request);
        say(telling, telling->changes,
            td_arena_format(telling->arena, "maxAllowed of %.*s below %.*s caps it",
                            TD_STR_ARG(name), TD_STR_ARG(amount)));
        return;
    }
    int64_t high = td_tandem_saturate((td_wide)row->request * TARGET_PROBE_FACTOR);
    if (outcome->request != row->request || row->request == 0 ||
        outcome->block != TD_TANDEM_BLOCK_NONE || !does_row_move(telling, i, high)) {
        return;
    }
    int64_t low = row->request;
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (does_row_move(telling, i, middle)) {
            high = middle;
        } else {
            low = middle;
        }
    }
    int64_t shown = td_tandem_round_up(row->resource, (double)high);
    say(telling, telling->changes,
        td_arena_format(telling->arena, "a target of %.*s for %.*s is followed",
                        TD_STR_ARG(amount_of(telling, i, shown)), TD_STR_ARG(name)));
}

static void tell_changes(struct telling *telling)
{
    tell_replicas(telling);
    bool is_valid = telling->in->is_vertical_valid && telling->in->hvpa->has_vpa;
    for (size_t i = 0; is_valid && telling->in->replicas > 0 && i < telling->in->row_count; i++) {
        tell_row(telling, i);
    }
}

struct td_json *td_tandem_account_json(struct td_arena *arena,
                                       const struct td_tandem_account *account)
{
    const struct td_tandem_input *in = account->in;
    struct telling telling = {
        .arena = arena,
        .account = account,
        .in = in,
        .decision = account->decision,
        .probe_rows = td_arena_array(arena, struct td_tandem_row, in->row_count),
        .probe_outcomes = td_arena_array(arena, struct td_tandem_outcome, in->row_count),
        .held = td_json_new_array(arena),
        .next = td_json_new_array(arena),
        .changes = td_json_new_array(arena),
    };
    for (size_t i = 0; i < in->row_count; i++) {
        telling.probe_rows[i] = in->rows[i];
    }
    struct td_json *tree = td_json_new_object(arena);
    td_json_set_str(telling.arena, tree, TD_STR("title"), title_of(&telling));
    struct td_json *wanted = td_json_ensure_object(arena, tree, TD_STR("wanted"));
    td_json_set(arena, wanted, TD_STR("horizontal"), wanted_horizontally(&telling));
    td_json_set(arena, wanted, TD_STR("vertical"), wanted_vertically(&telling));
    td_json_set(arena, tree, TD_STR("did"), done(&telling));
    tell_held(&telling);
    tell_next(&telling);
    tell_changes(&telling);
    td_json_set(arena, tree, TD_STR("held"), telling.held);
    td_json_set(arena, tree, TD_STR("next"), telling.next);
    td_json_set(arena, tree, TD_STR("wouldChange"), telling.changes);
    return tree;
}
