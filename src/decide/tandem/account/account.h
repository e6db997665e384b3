/*
 * Why an Hvpa was decided as it was, for users and for programs: what both autoscalers wanted,
 * what was done and by which arithmetic, what was held and why, what comes next, and what would
 * have changed it. The last is found by deciding again with other inputs, which costs nothing since
 * deciding is pure. Both forms are made from one tree in the arena.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/json/json.h"
#include "decide/tandem/decide.h"

enum td_tandem_account_format { TD_TANDEM_ACCOUNT_TEXT, TD_TANDEM_ACCOUNT_JSON };

struct td_tandem_account {
    const struct td_tandem_input *in;
    const struct td_tandem_decision *decision;
    td_str horizontal_why;      /* the horizontal decider's words; may be empty */
    const td_str *vertical_why; /* the recommender's words, one a row; may be NULL */
};

struct td_json *td_tandem_account_json(struct td_arena *arena,
                                       const struct td_tandem_account *account);

/* Text ends with a newline; the owner of the buffer checks the appends. */
void td_tandem_account_write(struct td_arena *arena, const struct td_tandem_account *account,
                             enum td_tandem_account_format format, struct td_buf *out);
