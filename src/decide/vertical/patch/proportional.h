/*
 * Limits in proportion to requests (vpa.md 4.4): a new request keeps the ratio that the old limit
 * had to the old request. Products are exact in 128 bits; a quotient past int64 becomes the largest
 * int64 and a note says so. Where upstream's quantities overflow before the product (1000 times a
 * cpu amount past int64), ours are clamped. A NULL quantity is the zero one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/str.h"
#include "kube/podresources.h"
#include "kube/quantity/quantity.h"

enum td_rounding { TD_ROUND_DOWN, TD_ROUND_UP };

/* quantity * numerator / base, in thousandths for cpu and in units for anything else, in the
 * format of quantity. A base of zero leaves the quantity as it is. *ret_is_capped (may be NULL)
 * tells whether int64 did not suffice. */
struct td_quantity td_scale_quantity(td_str resource, const struct td_quantity *quantity,
                                     const struct td_quantity *numerator,
                                     const struct td_quantity *base, enum td_rounding rounding,
                                     bool *ret_is_capped);

struct td_proportion {
    const struct td_quantity *limit;         /* original */
    const struct td_quantity *request;       /* original */
    const struct td_quantity *recommended;   /* request */
    const struct td_quantity *default_limit; /* stands in for a missing limit */
};

struct td_proportional_limit {
    bool is_set;
    struct td_quantity limit;
    const char *note; /* static, to follow "<resource>: "; NULL when there is none */
};

struct td_proportional_limit td_proportional_limit(td_str resource,
                                                   const struct td_proportion *proportion);

struct td_original {
    const struct td_resource_list *limits;
    const struct td_resource_list *requests;
    const struct td_resource_list *default_limits; /* NULL: none */
};

struct td_proportional_limits {
    struct td_resource_list limits; /* empty: no limits are set */
    td_str notes[2];
    size_t note_count; /* 0 when no limits are set */
};

/* cpu and memory together. */
struct td_proportional_limits td_proportional_limits(struct td_arena *arena,
                                                     const struct td_original *original,
                                                     const struct td_resource_list *recommended);

/* The request at which the limit reaches `boundary`; zero when there is none. */
struct td_quantity td_boundary_request(td_str resource, const struct td_proportion *proportion,
                                       const struct td_quantity *boundary);
