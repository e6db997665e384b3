#include "kube/apply/apply_conflict.h"

#include "base/error.h"
#include "base/limits.h"
#include "kube/apply/fieldset_types.h"

void td_conflicts_add(struct td_arena *arena, struct td_conflicts *conflicts,
                      const struct td_manager *manager, const struct td_fieldset *fields)
{
    if (!fields) {
        return;
    }
    conflicts->items = td_arena_grow(arena, conflicts->items, conflicts->count, &conflicts->cap,
                                     sizeof(*conflicts->items));
    conflicts->items[conflicts->count++] =
        (struct td_conflict){.manager = *manager, .fields = fields};
}

struct td_conflicts td_conflicts_without(struct td_arena *arena,
                                         const struct td_conflicts *conflicts,
                                         const struct td_fieldset *allowed)
{
    struct td_conflicts left = {.count = 0};
    for (size_t i = 0; i < conflicts->count; i++) {
        const struct td_conflict *conflict = &conflicts->items[i];
        td_conflicts_add(arena, &left, &conflict->manager,
                         td_fieldset_difference(arena, conflict->fields, allowed));
    }
    return left;
}

/* Paths are copied into both texts until the cap; the count in the message is always whole. */
struct report {
    struct td_arena *arena;
    td_str manager; /* as described */
    struct td_json *json;
    struct td_buf *message;
    size_t total;
    size_t bytes; /* of paths so far */
};

static bool report_path(void *context, td_str path)
{
    struct report *report = context;
    report->bytes += path.len;
    if (report->bytes > TD_APPLY_CONFLICT_BYTES_MAX) {
        return false;
    }
    struct td_json *item = td_json_new_object(report->arena);
    td_json_set_str(report->arena, item, TD_STR("manager"), report->manager);
    td_json_set_str(report->arena, item, TD_STR("field"), td_arena_copy_str(report->arena, path));
    td_json_append(report->json, item);
    td_buf_append(report->message, report->total == 1 ? TD_STR_EMPTY : TD_STR("\n- "));
    td_buf_append(report->message, path);
    return true;
}

static size_t conflicts_size(const struct td_conflicts *conflicts)
{
    size_t size = 0;
    for (size_t i = 0; i < conflicts->count; i++) {
        size += td_fieldset_size(conflicts->items[i].fields);
    }
    return size;
}

int td_conflicts_report(struct td_arena *arena, const struct td_conflicts *conflicts,
                        struct td_json **ret_json, struct td_error *err)
{
    td_auto_buf message = td_buf_capped(TD_APPLY_CONFLICT_BYTES_MAX * 2);
    struct report report = {
        .arena = arena,
        .json = td_json_new_array(arena),
        .message = &message,
        .total = conflicts_size(conflicts),
    };
    bool is_one = report.total == 1;
    for (size_t i = 0; i < conflicts->count; i++) {
        report.manager = td_managed_describe(arena, &conflicts->items[i].manager);
        td_buf_append(&message, i > 0 ? TD_STR("\n") : TD_STR_EMPTY);
        td_buf_append(&message, is_one ? TD_STR("conflict with ") : TD_STR("conflicts with "));
        td_buf_append(&message, report.manager);
        td_buf_append(&message, is_one ? TD_STR(": ") : TD_STR(":"));
        td_fieldset_visit(conflicts->items[i].fields, report_path, &report);
    }
    if (ret_json) {
        *ret_json = report.json;
    }
    return td_error_set(err, TD_CONFLICT, "Apply failed with %zu conflict%s: %.*s", report.total,
                        is_one ? "" : "s", TD_STR_ARG(td_buf_str(&message)));
}
