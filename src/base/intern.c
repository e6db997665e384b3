/*
 * The copies are heap pieces with their count in front, so a reference is given back without a
 * search; only the last one has to find the entry to remove it.
 */
#include "base/intern.h"

#include <stddef.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/map.h"

struct intern_copy {
    uint32_t refs;
    char text[]; /* followed by a NUL */
};

struct td_intern {
    struct td_map copies; /* text to struct intern_copy; keys point into the copies */
};

struct td_intern *td_intern_new(size_t count_max)
{
    struct td_intern *table = td_alloc_zero(1, sizeof(*table));
    td_map_init(&table->copies, count_max);
    return table;
}

void td_intern_free(struct td_intern *table)
{
    if (!table) {
        return;
    }
    for (struct td_map_walk at = {.map = &table->copies}; td_map_step(&at);) {
        td_free(at.value);
    }
    td_map_done(&table->copies);
    td_free(table);
}

td_str td_intern_ref(struct td_intern *table, td_str text)
{
    struct intern_copy *copy = td_map_get(&table->copies, text);
    if (copy) {
        td_assert(copy->refs < UINT32_MAX);
        copy->refs++;
        return (td_str){.ptr = copy->text, .len = text.len};
    }
    if (table->copies.count >= table->copies.count_max) {
        return (td_str){.ptr = NULL, .len = 0};
    }
    copy = td_alloc(sizeof(struct intern_copy) + text.len + 1);
    copy->refs = 1;
    if (text.len > 0) {
        memcpy(copy->text, text.ptr, text.len);
    }
    copy->text[text.len] = '\0';
    td_str interned = {.ptr = copy->text, .len = text.len};
    int result = td_map_put(&table->copies, interned, copy);
    td_assert(result == 0); /* room was checked above */
    return interned;
}

void td_intern_unref(struct td_intern *table, td_str interned)
{
    if (!interned.ptr) {
        return;
    }
    const char *start = interned.ptr - offsetof(struct intern_copy, text);
    struct intern_copy *copy = (struct intern_copy *)(uintptr_t)start;
    td_assert(copy->refs > 0);
    copy->refs--;
    if (copy->refs == 0) {
        void *removed = td_map_remove(&table->copies, interned);
        td_assert(removed == copy); /* anything else was not interned here, or was cut */
        td_free(copy);
    }
}

size_t td_intern_count(const struct td_intern *table)
{
    return table->copies.count;
}
