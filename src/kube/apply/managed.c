/*
 * An entry is identified by the JSON text of its manager, operation, version and subresource, as
 * upstream does it; entries are kept sorted by that text, and of equal ones the last counts.
 * Written entries are sorted anew: appliers first, then by time and name.
 */
#include "kube/apply/managed.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/limits.h"
#include "kube/apply/fieldset_types.h"
#include "kube/quote.h"

/* The object, metadata, the list, the entry and fieldsV1 are levels of their own. */
#define FIELDS_DEPTH_MAX (TD_JSON_DEPTH_MAX - 5)

/* Reading. */

static const struct td_json *managed_list(const struct td_json *object)
{
    const struct td_json *metadata = td_json_get(object, TD_STR("metadata"));
    return td_json_get(metadata, TD_STR("managedFields"));
}

static bool is_string_or_nothing(const struct td_json *entry, td_str key)
{
    const struct td_json *value = td_json_get(entry, key);
    return !value || value->type == TD_JSON_TYPE_NULL || value->type == TD_JSON_TYPE_STRING;
}

/* Can it be read as an entry, whatever it says? */
static bool entry_is_readable(const struct td_json *entry)
{
    if (entry->type != TD_JSON_TYPE_OBJECT) {
        return false;
    }
    bool is_readable = is_string_or_nothing(entry, TD_STR("manager")) &&
                       is_string_or_nothing(entry, TD_STR("operation")) &&
                       is_string_or_nothing(entry, TD_STR("apiVersion")) &&
                       is_string_or_nothing(entry, TD_STR("fieldsType")) &&
                       is_string_or_nothing(entry, TD_STR("subresource")) &&
                       is_string_or_nothing(entry, TD_STR("time"));
    const struct td_json *time = td_json_get(entry, TD_STR("time"));
    if (is_readable && td_json_is(time, TD_JSON_TYPE_STRING)) {
        struct td_instant instant;
        is_readable = td_time_parse(time->text, &instant, NULL) == TD_OK;
    }
    return is_readable;
}

static bool entry_has(const struct td_json *entry, td_str key)
{
    const struct td_json *value = td_json_get(entry, key);
    bool is_nothing = !value || value->type == TD_JSON_TYPE_NULL ||
                      (value->type == TD_JSON_TYPE_STRING && value->text.len == 0);
    return !is_nothing;
}

static bool entry_is_blank(const struct td_json *entry)
{
    static const td_str keys[] = {
        TD_STR_INIT("manager"),    TD_STR_INIT("operation"), TD_STR_INIT("apiVersion"),
        TD_STR_INIT("fieldsType"), TD_STR_INIT("fieldsV1"),  TD_STR_INIT("subresource"),
        TD_STR_INIT("time"),
    };
    for (size_t i = 0; i < TD_COUNT(keys); i++) {
        if (entry_has(entry, keys[i])) {
            return false;
        }
    }
    return true;
}

enum td_managed_state td_managed_state(const struct td_json *object)
{
    const struct td_json *list = managed_list(object);
    if (!td_json_is(list, TD_JSON_TYPE_ARRAY)) {
        return TD_MANAGED_ABSENT;
    }
    for (const struct td_json *entry = td_json_first_item(list); entry; entry = entry->next) {
        if (!entry_is_readable(entry)) {
            return TD_MANAGED_ABSENT;
        }
    }
    bool is_reset =
        list->count == 0 || (list->count == 1 && entry_is_blank(td_json_first_item(list)));
    return is_reset ? TD_MANAGED_RESET : TD_MANAGED_LISTED;
}

static int managed_decode_entry(struct td_arena *arena, const struct td_json *json,
                                struct td_managed_entry *ret, struct td_error *err)
{
    td_str operation = td_json_text(json, "operation");
    td_str fields_type = td_json_text(json, "fieldsType");
    struct td_managed_entry entry = {
        .manager =
            {
                .name = td_json_text(json, "manager"),
                .api_version = td_json_text(json, "apiVersion"),
                .subresource = td_json_text(json, "subresource"),
                .is_apply = td_str_equal(operation, TD_STR("Apply")),
            },
    };
    if (!entry.manager.is_apply && !td_str_equal(operation, TD_STR("Update"))) {
        return td_error_set(err, TD_INVALID, "operation is '%.*s': use Apply or Update",
                            TD_STR_ARG(operation));
    }
    if (entry.manager.api_version.len == 0) {
        return td_error_set(err, TD_INVALID, "apiVersion is empty");
    }
    if (!td_str_equal(fields_type, TD_STR("FieldsV1"))) {
        return td_error_set(err, TD_INVALID, "fieldsType is '%.*s': only FieldsV1 is known",
                            TD_STR_ARG(fields_type));
    }
    int r = td_fieldset_parse(arena, td_json_get(json, TD_STR("fieldsV1")), &entry.fields, err);
    if (r < 0) {
        return r;
    }
    const struct td_json *time = td_json_get(json, TD_STR("time"));
    if (td_json_is(time, TD_JSON_TYPE_STRING)) {
        entry.has_time = td_time_parse(time->text, &entry.time, NULL) == TD_OK;
    }
    entry.id = td_managed_id(arena, &entry.manager);
    entry.is_present = true;
    *ret = entry;
    return TD_OK;
}

/* Sort by identity; of entries with the same one the last in the list counts. The sort is not
 * stable, so each carries its place until the duplicates are gone. */
struct placed_entry {
    struct td_managed_entry entry;
    size_t place;
};

static int placed_compare(const void *a, const void *b)
{
    const struct placed_entry *left = a;
    const struct placed_entry *right = b;
    int order = td_str_compare(left->entry.id, right->entry.id);
    if (order == 0) {
        order = (left->place > right->place) - (left->place < right->place);
    }
    return order;
}

int td_managed_decode(struct td_arena *arena, const struct td_json *object, struct td_managed *ret,
                      struct td_error *err)
{
    if (td_managed_state(object) == TD_MANAGED_ABSENT) {
        *ret = (struct td_managed){.count = 0};
        return TD_OK;
    }
    const struct td_json *list = managed_list(object);
    struct placed_entry *placed = td_arena_array(arena, struct placed_entry, list->count);
    size_t count = 0;
    for (const struct td_json *json = td_json_first_item(list); json; json = json->next, count++) {
        int r = managed_decode_entry(arena, json, &placed[count].entry, err);
        if (r < 0) {
            return td_error_wrap(err, r, "metadata.managedFields[%zu]", count);
        }
        placed[count].place = count;
    }
    qsort(placed, count, sizeof(*placed), placed_compare);
    struct td_managed managed = {
        .entries = td_arena_array(arena, struct td_managed_entry, count),
    };
    for (size_t i = 0; i < count; i++) {
        bool is_last = i + 1 == count || !td_str_equal(placed[i].entry.id, placed[i + 1].entry.id);
        if (is_last) {
            managed.entries[managed.count++] = placed[i].entry;
        }
    }
    *ret = managed;
    return TD_OK;
}

struct td_managed td_managed_copy(struct td_arena *arena, const struct td_managed *managed)
{
    struct td_managed copy = {
        .entries = td_arena_array(arena, struct td_managed_entry, managed->count),
        .count = managed->count,
    };
    for (size_t i = 0; i < copy.count; i++) {
        copy.entries[i] = managed->entries[i];
    }
    return copy;
}

bool td_managed_is_empty(const struct td_managed *managed)
{
    for (size_t i = 0; i < managed->count; i++) {
        if (managed->entries[i].is_present) {
            return false;
        }
    }
    return true;
}

/* Identity. */

static void id_write_member(struct td_buf *out, td_str key, td_str value)
{
    if (value.len == 0) {
        return;
    }
    td_buf_append(out, out->len > 1 ? TD_STR(",") : TD_STR_EMPTY);
    td_json_write_string(key, false, out);
    td_buf_append_char(out, ':');
    td_json_write_string(value, true, out);
}

td_str td_managed_id(struct td_arena *arena, const struct td_manager *manager)
{
    td_auto_buf text = td_buf_capped(TD_JSON_BYTES_MAX);
    td_buf_append_char(&text, '{');
    id_write_member(&text, TD_STR("manager"), manager->name);
    id_write_member(&text, TD_STR("operation"),
                    manager->is_apply ? TD_STR("Apply") : TD_STR("Update"));
    if (!manager->is_apply) {
        id_write_member(&text, TD_STR("apiVersion"), manager->api_version);
    }
    id_write_member(&text, TD_STR("subresource"), manager->subresource);
    td_buf_append_char(&text, '}');
    return td_arena_copy_str(arena, td_buf_str(&text));
}

td_str td_managed_describe(struct td_arena *arena, const struct td_manager *manager)
{
    td_auto_buf text = td_buf_capped(TD_JSON_BYTES_MAX);
    td_quote_write(manager->name, &text);
    if (manager->subresource.len > 0) {
        td_buf_append(&text, TD_STR(" with subresource "));
        td_quote_write(manager->subresource, &text);
    }
    if (!manager->is_apply) {
        td_buf_append(&text, TD_STR(" using "));
        td_buf_append(&text, manager->api_version);
    }
    return td_arena_copy_str(arena, td_buf_str(&text));
}

struct td_managed_entry *td_managed_entry(struct td_arena *arena, struct td_managed *managed,
                                          const struct td_manager *manager)
{
    struct td_managed_entry wanted = {.manager = *manager, .id = td_managed_id(arena, manager)};
    struct td_managed_entry *found =
        managed->count == 0 ? NULL
                            : bsearch(&wanted, managed->entries, managed->count,
                                      sizeof(managed->entries[0]), td_str_compare_items);
    if (found) {
        return found;
    }
    struct td_managed_entry *entries =
        td_arena_array(arena, struct td_managed_entry, managed->count + 1);
    size_t at = 0;
    while (at < managed->count && td_str_compare_items(&managed->entries[at], &wanted) < 0) {
        entries[at] = managed->entries[at];
        at++;
    }
    entries[at] = wanted;
    for (size_t i = at; i < managed->count; i++) {
        entries[i + 1] = managed->entries[i];
    }
    managed->entries = entries;
    managed->count++;
    return &entries[at];
}

/* Writing. */

static int64_t entry_seconds(const struct td_managed_entry *entry)
{
    return entry->has_time ? entry->time.unix_seconds : 0;
}

/* Appliers first, then by time, then by name. */
static int entry_compare_written(const void *a, const void *b)
{
    const struct td_managed_entry *left = *(const struct td_managed_entry *const *)a;
    const struct td_managed_entry *right = *(const struct td_managed_entry *const *)b;
    if (left->manager.is_apply != right->manager.is_apply) {
        return left->manager.is_apply ? -1 : 1;
    }
    if (entry_seconds(left) != entry_seconds(right)) {
        return entry_seconds(left) < entry_seconds(right) ? -1 : 1;
    }
    int order = td_str_compare(left->manager.name, right->manager.name);
    if (order == 0) {
        order = td_str_compare(left->manager.api_version, right->manager.api_version);
    }
    if (order == 0) {
        order = td_str_compare(left->manager.subresource, right->manager.subresource);
    }
    return order;
}

static struct td_json *entry_to_json(struct td_arena *arena, const struct td_managed_entry *entry)
{
    struct td_json *json = td_json_new_object(arena);
    td_json_set_text(arena, json, TD_STR("manager"), entry->manager.name);
    td_json_set_text(arena, json, TD_STR("operation"),
                     entry->manager.is_apply ? TD_STR("Apply") : TD_STR("Update"));
    td_json_set_text(arena, json, TD_STR("apiVersion"), entry->manager.api_version);
    if (entry->has_time) {
        td_json_set_str(arena, json, TD_STR("time"), td_time_text(arena, entry->time, 0));
    }
    td_json_set_text(arena, json, TD_STR("fieldsType"), TD_STR("FieldsV1"));
    td_json_set(arena, json, TD_STR("fieldsV1"), td_fieldset_to_json(arena, entry->fields));
    td_json_set_text(arena, json, TD_STR("subresource"), entry->manager.subresource);
    return json;
}

/* The entries that are present, in the order in which they are written. */
static int managed_to_json(struct td_arena *arena, const struct td_managed *managed,
                           struct td_json *list, struct td_error *err)
{
    const struct td_managed_entry **sorted =
        td_arena_array(arena, const struct td_managed_entry *, managed->count);
    size_t count = 0;
    for (size_t i = 0; i < managed->count; i++) {
        if (managed->entries[i].is_present) {
            sorted[count++] = &managed->entries[i];
        }
    }
    qsort(sorted, count, sizeof(sorted[0]), entry_compare_written);
    for (size_t i = 0; i < count; i++) {
        if (td_fieldset_depth(sorted[i]->fields) > FIELDS_DEPTH_MAX) {
            return td_error_set(err, TD_LIMIT,
                                "metadata.managedFields: the object is nested too deeply");
        }
        td_json_append(list, entry_to_json(arena, sorted[i]));
    }
    return TD_OK;
}

int td_managed_encode(struct td_arena *arena, const struct td_managed *managed,
                      struct td_json *object, struct td_error *err)
{
    struct td_json *metadata = td_json_get(object, TD_STR("metadata"));
    if (metadata && metadata->type != TD_JSON_TYPE_OBJECT) {
        return TD_OK; /* as upstream: there is no place for it */
    }
    if (td_managed_is_empty(managed)) {
        (void)td_json_remove(metadata, TD_STR("managedFields")); /* it may not be there */
        return TD_OK;
    }
    struct td_json *list = td_json_new_array(arena);
    int r = managed_to_json(arena, managed, list, err);
    if (r < 0) {
        return r;
    }
    metadata = td_json_ensure_object(arena, object, TD_STR("metadata"));
    td_json_set(arena, metadata, TD_STR("managedFields"), list);
    return td_arena_check(arena, err);
}
