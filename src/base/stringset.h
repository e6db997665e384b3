/*
 * A set of texts, of each a copy: what has been seen, said or is still to be done. Born with a
 * maximum count; iteration is in the order of insertion while nothing was removed. One owner, no
 * locking.
 */
#pragma once

#include "base/map.h"

struct td_string_set {
    struct td_map texts; /* values are the keys' own bytes */
};

#define td_auto_string_set __attribute__((cleanup(td_string_set_done))) struct td_string_set

void td_string_set_init(struct td_string_set *set, size_t count_max);
/* For a local, as td_map_capped. */
static inline struct td_string_set td_string_set_capped(size_t count_max)
{
    return (struct td_string_set){.texts = td_map_capped(count_max)};
}
void td_string_set_done(struct td_string_set *set);
void td_string_set_reset(struct td_string_set *set);

bool td_string_set_has(const struct td_string_set *set, td_str text);

/* TD_EXISTS when it is there already, TD_LIMIT when the set is at its maximum. */
int td_string_set_add(struct td_string_set *set, td_str text);

/* `text` may be the set's own. */
void td_string_set_remove(struct td_string_set *set, td_str text);

/* Next text at or after *position, or NULL; the rules of td_map_next. */
const td_str *td_string_set_next(const struct td_string_set *set, size_t *position);
