/*
 * Memory emergencies: containers that were killed for want of memory, or whose pod was evicted from
 * a node under pressure, with the size that they have now. A flag stays until the container got
 * more, or half an hour has passed in which it could have. Pure; lists are in the arena.
 */
#pragma once

#include "decide/tandem/decide.h"
#include "decide/vertical/pod.h"

struct td_tandem_emergencies {
    struct td_arena *arena;
    const struct td_hvpa_status *before;    /* of the reconcile before */
    const struct td_hvpa_requests *decided; /* what pods are to have */
    td_time now;
    td_time seen;   /* kills until then were judged before; TD_TIME_NONE: none was */
    td_time newest; /* for the next reconcile: the newest kill that raised a flag */
    struct td_hvpa_emergency *items;
    size_t count;
};

/* Takes over the flags of the status whose time is not over; the other members are given. */
void td_tandem_emergencies_recall(struct td_tandem_emergencies *all);

/* The flag of a container, or NULL. */
struct td_hvpa_emergency *td_tandem_emergency_find(const struct td_tandem_emergencies *all,
                                                   td_str container);

/* Was a kill at that time, or an eviction of a pod that started then, not judged before? */
bool td_tandem_oom_is_new(const struct td_tandem_emergencies *all, td_time at);

/* Raises the flags of a pod that is there, by its containers' last ends, and of one that was
 * evicted for want of memory. */
void td_tandem_emergencies_add_kills(struct td_tandem_emergencies *all, const struct td_pod *pod);
void td_tandem_emergencies_add_eviction(struct td_tandem_emergencies *all,
                                        const struct td_pod *pod);

/* After a decision that came `seconds` after the one before: time runs for flags that could act,
 * and the flags of containers that get more go. */
void td_tandem_emergencies_settle(struct td_tandem_emergencies *all,
                                  const struct td_tandem_input *in,
                                  const struct td_tandem_outcome *outcomes, int64_t seconds);
