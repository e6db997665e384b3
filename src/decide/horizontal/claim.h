/*
 * May this controller serve a built-in HPA? Another one that serves it is noticed by the marks that
 * its status writes leave in managedFields. A controller that agrees with what is stored writes
 * nothing, so silence alone does not mean that it is gone: who wants to follow another claims the
 * HPA first, with a word in the status that the other takes away in its next pass if there is one.
 * Only a claim that stood for longer than that is acted on. Pure.
 */
#pragma once

#include "decide/horizontal/status.h"

/* Who wrote the status, and when; times have whole seconds. */
struct td_hpa_marks {
    bool has_ours;
    td_time ours;
    bool has_other;
    td_time other; /* the newest of the others' */
    td_str manager;
};

/* From the entries of managedFields about the status, a JSON list; texts are in the arena. */
struct td_hpa_marks td_hpa_marks_read(struct td_arena *arena, td_str managed_fields, td_str us);

/* Did another one serve it within the last two sync periods? */
bool td_hpa_marks_are_fresh(const struct td_hpa_marks *marks, td_duration sync_period, td_time now);

/* What is remembered of an HPA. */
struct td_hpa_claim {
    td_time first_seen; /* since the start of this controller */
    td_time claimed;    /* our claim was written, and is not old enough; TD_TIME_NONE */
    td_time hold_until; /* a claim was lost */
    bool is_needed;     /* another controller was seen at work */
};

enum td_hpa_claim_verdict {
    TD_HPA_CLAIM_GO,
    TD_HPA_CLAIM_WAIT,  /* for a while, then it is judged again */
    TD_HPA_CLAIM_RIVAL, /* another controller serves it */
    TD_HPA_CLAIM_WRITE, /* another one did: say in the status that we take over, and see */
};

/* `is_alone`: no other controller can exist. */
enum td_hpa_claim_verdict td_hpa_claim_judge(struct td_hpa_claim *claim,
                                             const struct td_hpa_marks *marks,
                                             td_duration sync_period, bool is_alone, td_time now,
                                             td_duration *ret_wait);

/* A word in the status that a controller at work would not leave there. */
void td_hpa_claim_write(struct td_hpa_claim *claim, struct td_hpa_conditions *conditions,
                        td_time now);
