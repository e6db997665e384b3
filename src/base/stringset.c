#include "base/stringset.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/text.h"

void td_string_set_init(struct td_string_set *set, size_t count_max)
{
    td_map_init(&set->texts, count_max);
}

void td_string_set_reset(struct td_string_set *set)
{
    size_t position = 0;
    const struct td_map_entry *entry;
    while ((entry = td_map_next(&set->texts, &position))) {
        td_text_free(entry->key);
    }
    td_map_reset(&set->texts);
}

void td_string_set_done(struct td_string_set *set)
{
    td_string_set_reset(set);
    td_map_done(&set->texts);
}

bool td_string_set_has(const struct td_string_set *set, td_str text)
{
    return td_map_has(&set->texts, text);
}

int td_string_set_add(struct td_string_set *set, td_str text)
{
    if (td_map_has(&set->texts, text)) {
        return TD_EXISTS;
    }
    td_str copy = td_text_copy(text);
    int code = td_map_put(&set->texts, copy, (void *)(uintptr_t)copy.ptr);
    if (code != TD_OK) {
        td_text_free(copy);
    }
    return code;
}

void td_string_set_remove(struct td_string_set *set, td_str text)
{
    td_free(td_map_remove(&set->texts, text));
}

const td_str *td_string_set_next(const struct td_string_set *set, size_t *position)
{
    const struct td_map_entry *entry = td_map_next(&set->texts, position);
    return entry ? &entry->key : NULL;
}
