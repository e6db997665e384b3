/*
 * The pace of a metrics source. The resolution is a slow mean of the times between newest stamps,
 * since nodes are measured at moments of their own. The request after newer values comes a quarter
 * of a second before one resolution has passed: it is too early one time in a few, which is how the
 * moment is followed when it drifts. After some in a row that were not too early the advance
 * doubles: then the source is faster than was thought.
 */
#include "decide/horizontal/pace.h"

#include <stdbool.h>

#define PACE_ADVANCE (250 * TD_MILLISECOND)
#define PACE_HITS 6                   /* in a row, before the advance grows */
#define PACE_VAGUE (2 * TD_SECOND)    /* a moment that is known no better is looked for at once */
#define PACE_HITS_MAX 12              /* and no more than so often doubled */
#define PACE_RETRIES 2                /* a second apart; then ever longer */
#define PACE_BACKOFF_MAX 4            /* doublings */
#define PACE_OUTAGE 6                 /* misses in a row that say nothing about the resolution */
#define PACE_RESOLUTION_MAX TD_MINUTE /* what is slower is asked once in a while */
#define PACE_MEAN 4                   /* the newest time counts for so much of the mean ... */
#define PACE_SHORTER (2 * TD_SECOND)  /* ... and alone when it is shorter by so much */
#define PACE_REQUESTS 7               /* in four periods, for each HPA; upstream's are eight */
#define PACE_CONTAINER TD_MILLISECOND /* each container of an answer costs so much */

static td_duration pace_clamp(td_duration value, td_duration low, td_duration high)
{
    if (value < low) {
        return low;
    }
    return value > high ? high : value;
}

/* From one stamp to the next; between these two, others may have been passed over. */
static td_duration pace_step(const struct td_hpa_pace *pace, td_time newest)
{
    td_duration seen = newest - pace->newest;
    td_duration steps = pace->resolution > 0 ? (seen + pace->resolution / 2) / pace->resolution : 1;
    return pace_clamp(seen / (steps > 1 ? steps : 1), TD_HPA_PACE_FLOOR, PACE_RESOLUTION_MAX);
}

/* After a silence the time between two stamps says nothing. */
static void pace_learn(struct td_hpa_pace *pace, td_time newest)
{
    bool is_slower = pace->misses > PACE_RETRIES; /* than was thought, and so not passed over */
    if (pace->newest > 0 && pace->misses <= PACE_OUTAGE) {
        pace->resolution = is_slower ? 0 : pace->resolution;
        td_duration step = pace_step(pace, newest);
        bool is_other = pace->resolution == 0 || step < pace->resolution - PACE_SHORTER;
        pace->resolution =
            is_other ? step : pace->resolution + (step - pace->resolution) / PACE_MEAN;
    }
    pace->newest = newest;
}

/* After newer values: when the next ones are due. */
static td_duration pace_after_news(const struct td_hpa_pace *pace)
{
    if (pace->resolution == 0) {
        return TD_HPA_PACE_FLOOR;
    }
    unsigned doublings = pace->hits > PACE_HITS ? pace->hits - PACE_HITS : 0;
    doublings = doublings > PACE_HITS_MAX ? PACE_HITS_MAX : doublings;
    td_duration advance = PACE_ADVANCE << doublings;
    return pace_clamp(pace->resolution - advance, pace->resolution / 2, pace->resolution);
}

static td_duration pace_after_nothing(const struct td_hpa_pace *pace)
{
    unsigned doublings = pace->misses > PACE_RETRIES ? pace->misses - PACE_RETRIES : 0;
    doublings = doublings > PACE_BACKOFF_MAX ? PACE_BACKOFF_MAX : doublings;
    return TD_HPA_PACE_FLOOR << doublings;
}

td_duration td_hpa_pace_next(struct td_hpa_pace *pace, const struct td_hpa_pace_answer *answer)
{
    td_duration pause;
    if (answer->newest > pace->newest) {
        bool is_found = pace->misses > 0;
        bool is_vague = answer->now - pace->asked > PACE_VAGUE;
        pace_learn(pace, answer->newest);
        pace->hits = is_found ? (is_vague ? PACE_HITS : 0) : pace->hits + 1;
        pace->misses = 0;
        pause = pace_after_news(pace);
    } else {
        pace->misses++;
        pause = pace_after_nothing(pace);
    }
    pace->asked = answer->now;
    td_duration from = pace->spent > answer->now ? pace->spent : answer->now;
    pace->spent = from + answer->cost;
    td_duration affordable = pace->spent - answer->period;
    pause = pause < TD_HPA_PACE_FLOOR ? TD_HPA_PACE_FLOOR : pause;
    return answer->now + pause > affordable ? answer->now + pause : affordable;
}

td_duration td_hpa_pace_cost(size_t users, size_t containers_in_all, td_duration period)
{
    td_duration share = period * 4 / (PACE_REQUESTS * (td_duration)(users > 0 ? users : 1));
    td_duration size = (td_duration)containers_in_all * PACE_CONTAINER;
    size = size > period ? period : size;
    td_duration cost = share > size ? share : size;
    return cost < TD_HPA_PACE_FLOOR ? TD_HPA_PACE_FLOOR : cost;
}
