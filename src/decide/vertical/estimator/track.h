/*
 * The track estimator: CPU that follows use through the day in small in-place steps. What is
 * remembered of the CPU of one container, how samples change it, what it recommends, and when a
 * pod is resized to follow. Memory is the adaptive estimator's (adaptive.h), with closer
 * parameters where the template's limit leaves room above the request. Conventions, units and
 * maxima are those of adaptive.h: integers only, plain state, pure. The rules and their reasons:
 * docs/internals/decide/track.md.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/json/json.h"
#include "decide/vertical/estimator/adaptive.h"
#include "decide/vertical/estimator/adaptive_apply.h"

struct td_error;

#define TD_TRACK_RECENT                                                                            \
    12                    /* closed slots of five minutes kept, of the last hour and the open one */
#define TD_TRACK_HOURS 24 /* closed hours kept */
#define TD_TRACK_MARGIN_MAX ((int64_t)490000) /* parts per million */
#define TD_TRACK_JUDGED_MAX 2016 /* a week of slots; then both counts of shortage are halved */

#define TD_TRACK_ANNOTATION TD_STR("tandem.dev/track") /* on the checkpoint */
/* Of a VPA whose CPU is this estimator's: since its first sample; the reason is the risk. */
#define TD_TRACK_CONDITION TD_STR("TrackEstimator")
#define TD_TRACK_VERSION TD_STR("t1")

struct td_track {
    int64_t first; /* time of the first accepted sample; -1 before it */
    int64_t slot;  /* index of the open slot, t / 300; -1 before the first sample */
    int64_t slot_sum;
    int64_t slot_samples;
    int64_t slot_top;
    int64_t slot_requests;            /* sum of the requests in force; -1 once a sample had none */
    int64_t hour;                     /* index of the open hour; -1 before the first closed slot */
    int64_t margin;                   /* parts per million */
    uint32_t recent[TD_TRACK_RECENT]; /* values of closed slots, oldest first */
    uint32_t hour_values[TD_TRACK_RECENT]; /* of the open hour, likewise */
    uint32_t hours[TD_TRACK_HOURS];        /* one number a closed hour, likewise */
    uint8_t recent_count;
    uint8_t hour_count;
    uint8_t hours_count;
    /* For the explanation only, not saved with the rest: of the slots whose requests were known,
     * how many were above them. */
    uint16_t judged;
    uint16_t over;
};

enum td_track_risk { TD_TRACK_BALANCED, TD_TRACK_CAREFUL, TD_TRACK_FRUGAL, TD_TRACK_CALM };

/* Shares in permille but for rise, fall and margin_min, which are parts per million; seconds. */
struct td_track_params {
    const char *risk; /* "balanced"; value of annotation tandem.dev/risk */
    int64_t rise;     /* of the margin, a slot above its request */
    int64_t fall;     /* a slot at or below it */
    int64_t margin_min;
    int64_t usual; /* quantile of the day's hours */
    int64_t up;
    int64_t down;
    int64_t step;
    int64_t wait;
    int64_t min_cpu; /* millicores */
};

const struct td_track_params *td_track_params_of(enum td_track_risk risk);
/* By its name, NULL: there is none. */
const struct td_track_params *td_track_params_find(td_str risk);

/* The risk as the reason of a condition ("Balanced"), and back. */
td_str td_track_risk_reason(struct td_arena *arena, const char *risk);
const struct td_track_params *td_track_params_of_reason(td_str reason); /* or NULL */

void td_track_init(struct td_track *state);

/* A sample of what one container used under a CPU limit and request in force, 0 without one.
 * Negative amounts and samples of a closed slot are ignored. */
void td_track_cpu(struct td_track *state, const struct td_track_params *params, int64_t t,
                  int64_t milli, int64_t limit_milli, int64_t request_milli);

enum td_track_reason {
    TD_TRACK_NO_DATA,
    TD_TRACK_MINIMUM,
    TD_TRACK_RECENT_USE, /* the last hour */
    TD_TRACK_FIRST_DAY,  /* a busy hour, until a day was seen */
    TD_TRACK_FLAT_DAY,   /* a busy hour of a day whose hours are alike */
    TD_TRACK_USUAL_HOUR, /* of the last day */
};

const char *td_track_reason_name(enum td_track_reason reason);

struct td_track_answer {
    int64_t target;
    int64_t lower;
    int64_t upper;
    enum td_track_reason reason;
    enum td_track_reason base; /* what the margin was added to, also when the minimum decided */
    int64_t recent;            /* what three quarters of the last hour needed */
    int64_t floor;             /* what an hour of the last day needed */
    int64_t quantile;          /* which hour, permille */
    int64_t margin;            /* parts per million */
    int64_t slots;             /* of the last hour */
    int64_t hours;             /* of the last day */
    int64_t judged;            /* slots whose requests were known, and those of them above */
    int64_t over;
};

void td_track_recommend(const struct td_track *state, const struct td_track_params *params,
                        struct td_track_answer *ret);

/* "cpu 431m: three quarters of the last hour 392m, +10 % margin learnt from 3.6 % shortage"; with
 * is_detail without the resource and the amount. No line end. */
void td_track_write_cpu(const struct td_track_answer *answer, bool is_detail, struct td_buf *out);

/* As of adaptive.h; the field that is named is the first bad one. */
struct td_json *td_track_save(struct td_arena *arena, const struct td_track *state);
int td_track_load(struct td_track *state, const struct td_json *saved, struct td_error *err);

/* ---- Memory ---- */

/* What the pod template says of a container's memory, bytes; 0: not set. */
struct td_track_template {
    int64_t request_bytes;
    int64_t limit_bytes;
};

/* Is there room above the request, so that an error in size costs no kill? */
bool td_track_is_close(const struct td_track_template *template);

/* What holds of the adaptive estimator for memory: its own parameters at this risk, or the closer
 * ones. */
struct td_adaptive_params td_track_memory_params(const struct td_track_template *template,
                                                 enum td_adaptive_risk risk);

/* ---- Apply ---- */

struct td_track_apply_input {
    int64_t now;
    int64_t changed; /* latest of: last change of the CPU request, the pod's creation, the state's
                        first sample */
    int64_t current; /* millicores; 0: not set */
    int64_t target;  /* capped; equal to current where CPU is not controlled or has no data */
};

struct td_track_decision {
    bool is_apply;
    enum td_adaptive_apply_reason reason;
    int64_t request; /* what is set afterwards; may pass maxAllowed: the caller caps it again */
    int64_t until;   /* WAITING: the time from which a decrease is possible */
};

struct td_track_decision td_track_apply(const struct td_track_apply_input *input,
                                        const struct td_track_params *params);
