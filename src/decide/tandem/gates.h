/*
 * What may hold a wish back for a while: switched-off directions, closed maintenance windows,
 * stabilization and settling (hvpa.md 2.9). Pure questions about one direction of one axis.
 */
#pragma once

#include "decide/tandem/decide.h"

/* Off, or outside of the window that the direction is tied to. */
enum td_tandem_block td_tandem_policy_block(const struct td_tandem_input *in,
                                            const struct td_hvpa_scale_policy *policy);

/* Stabilization of the horizontal axis, for a wish up or down. */
enum td_tandem_block td_tandem_horizontal_gate(const struct td_tandem_input *in, bool is_up);

/* Stabilization and, for decreases, settling. */
enum td_tandem_block td_tandem_vertical_gate(const struct td_tandem_input *in, bool is_up);

/* When each gate opens that is closed now, by the timestamps given; for the account. */
struct td_tandem_openings {
    struct td_tandem_time horizontal_up;
    struct td_tandem_time horizontal_down;
    struct td_tandem_time vertical_up;
    struct td_tandem_time vertical_down; /* its stabilization */
    struct td_tandem_time settling;
};
struct td_tandem_openings td_tandem_openings_of(const struct td_tandem_input *in);

/* Has at least `seconds` passed since `since`? A clock that went back counts as no time. */
bool td_tandem_has_passed(struct td_instant since, struct td_instant now, int64_t seconds);
