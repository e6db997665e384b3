/*
 * A lookup table over names that came from outside: containers of a pod, their statuses, entries of
 * a recommendation. Lists are matched with each other by name, and a list of thousands of entries
 * must not cost the product of both. Of equal names the first one counts, as upstream's searches
 * from the front. Names are borrowed; the table is in the arena.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/str.h"

#define TD_NAME_NONE SIZE_MAX

struct td_name_entry {
    td_str name;
    size_t position; /* in the list it came from */
};

struct td_name_table {
    struct td_name_entry *entries;
    size_t count;
    bool is_sorted;
};

/* Fill with td_name_table_add, at most `count_max` times; the first lookup sorts. */
struct td_name_table td_name_table_new(struct td_arena *arena, size_t count_max);
void td_name_table_add(struct td_name_table *table, td_str name, size_t position);

/* The position of the first entry with that name, or TD_NAME_NONE. */
size_t td_name_table_find(struct td_name_table *table, td_str name);
