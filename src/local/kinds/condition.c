#include "local/kinds/condition.h"

#include "local/api/write.h"

struct td_json *td_condition_find(const struct td_json *status, td_str type)
{
    const struct td_json *list = td_json_get(status, TD_STR("conditions"));
    struct td_json *item = td_json_first_item(list);
    while (item && !td_str_equal(td_json_text(item, "type"), type)) {
        item = item->next;
    }
    return item;
}

bool td_condition_is(const struct td_json *status, td_str type, td_str value)
{
    const struct td_json *found = td_condition_find(status, type);
    return found && td_str_equal(td_json_text(found, "status"), value);
}

static void condition_text(struct td_arena *arena, struct td_json *entry, td_str key, td_str text,
                           bool is_always)
{
    if (text.len > 0 || is_always) {
        td_json_set_str(arena, entry, key, text);
    }
}

static struct td_json *condition_entry(struct td_arena *arena, const struct td_condition *condition,
                                       struct td_json *since)
{
    struct td_json *entry = td_json_new_object(arena);
    if (condition->has_probe_time) {
        td_json_set(arena, entry, TD_STR("lastProbeTime"), td_json_new_null(arena));
    }
    td_json_set(arena, entry, TD_STR("lastTransitionTime"), since);
    condition_text(arena, entry, TD_STR("message"), condition->message, condition->has_empty_texts);
    if (condition->observed_generation > 0) {
        td_json_set_int64(arena, entry, TD_STR("observedGeneration"),
                          condition->observed_generation);
    }
    condition_text(arena, entry, TD_STR("reason"), condition->reason, condition->has_empty_texts);
    td_json_set_str(arena, entry, TD_STR("status"), condition->status);
    td_json_set_str(arena, entry, TD_STR("type"), condition->type);
    return entry;
}

/* Its place in the list, or the count. */
static size_t condition_index(const struct td_json *list, td_str type)
{
    size_t index = 0;
    const struct td_json *item = td_json_first_item(list);
    while (item && !td_str_equal(td_json_text(item, "type"), type)) {
        item = item->next;
        index++;
    }
    return index;
}

bool td_condition_set(struct td_arena *arena, struct td_json *status,
                      const struct td_condition *condition, struct td_instant now)
{
    struct td_json *list = td_json_ensure_array(arena, status, TD_STR("conditions"));
    const struct td_json *old = td_condition_find(status, condition->type);
    const struct td_json *since = td_json_get(old, TD_STR("lastTransitionTime"));
    bool is_kept = since && td_condition_is(status, condition->type, condition->status);
    struct td_json *entry = condition_entry(
        arena, condition, is_kept ? td_json_copy(arena, since, false) : td_meta_time(arena, now));
    if (!old) {
        td_json_append(list, entry);
        return true;
    }
    if (td_json_equal(old, entry)) {
        return false;
    }
    td_json_replace_at(list, condition_index(list, condition->type), entry);
    return true;
}

bool td_condition_remove(struct td_json *status, td_str type)
{
    struct td_json *list = td_json_get(status, TD_STR("conditions"));
    if (!td_condition_find(status, type)) {
        return false;
    }
    td_json_remove_at(list, condition_index(list, type));
    return true;
}
