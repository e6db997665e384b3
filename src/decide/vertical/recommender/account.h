/*
 * Why a recommendation is what it is: the data it rests on and every step from a percentile to the
 * number in the status, in the order taken. Estimators and the steps after them fill it; status,
 * events, `tandem explain`, reports and the dashboard only render it. Plain values; texts are
 * slices that outlive it (names of a VPA, literals) or fixed-size.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/json/json.h"
#include "base/os/clock.h"
#include "base/str.h"
#include "base/timefmt.h"

enum td_cap_source {
    TD_CAP_NONE,
    TD_CAP_MIN_ALLOWED, /* minAllowed of the container's policy */
    TD_CAP_MAX_ALLOWED, /* maxAllowed of the container's policy */
    TD_CAP_GLOBAL_MAX,  /* --container-recommendation-max-allowed-* */
};

/* One of target, lower and upper bound, in milli-cores or bytes. */
struct td_bound_account {
    double percentile;        /* of the histogram, 0 to 1 */
    int64_t base;             /* the percentile's value */
    int64_t with_margin;      /* base and margin */
    double confidence_factor; /* what low confidence multiplies it by; 1 for the target */
    int64_t estimate;         /* after confidence and floor */
    bool is_floor;            /* the floor decided */
    enum td_cap_source cap;   /* the last cap that changed it */
};

struct td_resource_account {
    bool is_controlled;
    bool lacks_data; /* nothing was measured: nothing is recommended */
    double margin_fraction;
    double confidence;    /* in confidence intervals: 1 is a whole one, with all its samples */
    int64_t floor;        /* this container's share of the pod's minimum */
    int64_t rounded_to;   /* multiple it was rounded up to; 1 without rounding */
    bool is_whole_cpu;    /* rounded up to a whole CPU by annotation */
    bool is_display_only; /* the upper bound is shown without the inflation of low confidence */
    int64_t held;         /* memory that the target does not fall below after a scale-out; else 0 */
    td_time held_until;   /* valid when held is above 0 */
    struct td_bound_account target;
    struct td_bound_account lower;
    struct td_bound_account upper;
    char reason[32];  /* an estimator's word for the rule that decided, e.g. "percentile" */
    char detail[192]; /* a sentence of the estimator; empty: made from the fields above */
};

struct td_account {
    td_str container;
    const char *estimator; /* its name; static */
    int64_t samples;       /* CPU samples ever taken */
    struct td_instant first_sample;
    struct td_instant last_sample;
    int64_t ooms;
    td_time last_oom;         /* valid when ooms is above 0 */
    int64_t oom_bytes;        /* what the latest demanded */
    int64_t oom_capped_bytes; /* maxAllowed, when that stopped it; else 0 */
    int64_t short_runs;       /* instances too short to be measured */
    bool is_adaptive;         /* pods follow by the rule of adaptive_apply.h, and not upstream's */
    td_time adaptive_since;   /* the adaptive estimator's first sample; valid when is_adaptive */
    const char *tracked_risk; /* CPU follows by the rule of track.h at this risk; NULL: not */
    td_time tracked_since;    /* the track estimator's first sample; valid with a risk */
    const char *instead;      /* why `estimator` sizes it and not track; NULL: as was asked */
    struct td_resource_account cpu;
    struct td_resource_account memory;
};

/* The smaller confidence of the controlled resources; 0 when nothing was measured. */
double td_account_confidence(const struct td_account *account);

/* May a recommendation with this account be applied, when its user asks for at least
 * `min_confidence` (0: always)? An OOM is reason enough to act before. */
bool td_confidence_allows(const struct td_account *account, double min_confidence);

/* One paragraph, one line a resource, ending with what would change it. */
void td_account_write(const struct td_account *account, struct td_buf *out);
/* How the target of one resource came about, up to the floor: part of a sentence. */
void td_account_write_target(const struct td_resource_account *resource, bool is_cpu,
                             struct td_buf *out);
struct td_json *td_account_json(struct td_arena *arena, const struct td_account *account);
