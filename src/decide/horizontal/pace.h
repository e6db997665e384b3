/*
 * When a metrics API is asked next. A source has new values at a pace of its own: metrics-server
 * each 15 s, all at once; others at each request. Who asks at that pace, a moment after the values
 * are there, sees them within a second and asks hardly more often than there is something to see.
 * The pace is learnt from the newest stamp of each answer: the time from one to the next. A request
 * that comes early by a little and finds nothing is made again a second later, so that the moment
 * is found and followed; where none is ever too early they come earlier and earlier, down to the
 * floor.
 *
 * A budget holds beside that: each request costs time, and what is spent is waited for. Pure:
 * steady times in, steady times out.
 */
#pragma once

#include <stddef.h>

#include "base/os/clock.h"

#define TD_HPA_PACE_FLOOR TD_SECOND /* no source is asked more often */

/* Zero: nothing is known. */
struct td_hpa_pace {
    td_time newest;         /* stamp seen so far; 0: none */
    td_duration resolution; /* of the source; 0: not known yet */
    td_duration asked;      /* when the last answer came; 0: never */
    td_duration spent;      /* until when the budget is spent */
    unsigned hits;          /* answers with newer stamps, one after the other */
    unsigned misses;        /* answers without, likewise */
};

struct td_hpa_pace_answer {
    td_duration now;
    td_time newest;     /* stamp in it */
    td_duration cost;   /* of one request: the mean time between two is no less */
    td_duration period; /* the sync period: what may be spent ahead */
};

/* An answer has come; returns when to ask again, after now. */
td_duration td_hpa_pace_next(struct td_hpa_pace *pace, const struct td_hpa_pace_answer *answer);

/* The cost of a request on behalf of `users` HPAs, out of an answer with so many containers, when
 * the answers of all sources have `containers_in_all`. Upstream asks twice for each HPA in a sync
 * period, for scale and metrics; and what all answers together bring is bounded, up to one of each
 * source in a period. */
td_duration td_hpa_pace_cost(size_t users, size_t containers_in_all, td_duration period);
