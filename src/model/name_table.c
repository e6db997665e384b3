#include "model/name_table.h"

#include <stdlib.h>

struct td_name_table td_name_table_new(struct td_arena *arena, size_t count_max)
{
    return (struct td_name_table){.entries =
                                      td_arena_array(arena, struct td_name_entry, count_max)};
}

void td_name_table_add(struct td_name_table *table, td_str name, size_t position)
{
    table->entries[table->count++] = (struct td_name_entry){.name = name, .position = position};
    table->is_sorted = false;
}

static int entry_compare(const void *a, const void *b)
{
    const struct td_name_entry *left = a;
    const struct td_name_entry *right = b;
    int order = td_str_compare(left->name, right->name);
    if (order != 0) {
        return order;
    }
    return (left->position > right->position) - (left->position < right->position);
}

size_t td_name_table_find(struct td_name_table *table, td_str name)
{
    if (!table->is_sorted) {
        qsort(table->entries, table->count, sizeof(*table->entries), entry_compare);
        table->is_sorted = true;
    }
    size_t at = td_str_place(table->entries, table->count, sizeof(table->entries[0]), name);
    bool is_found = at < table->count && td_str_equal(table->entries[at].name, name);
    return is_found ? table->entries[at].position : TD_NAME_NONE;
}
