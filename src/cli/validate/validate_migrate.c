/* `--migrate`: the Hvpas that the files could hold instead of what they hold, as YAML with notes in
 * comments or as JSON. */
#include "base/limits.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/validate/validate_private.h"
#include "decide/tandem/migrate/migrate.h"

/* Texts of files stand in comments: a line break in them must not end the comment. */
static void migrate_comment(struct td_buf *out, const char *lead, td_str text)
{
    (void)td_buf_append_format(out, "# %s", lead); /* the buffer is checked at the end */
    for (size_t i = 0; i < text.len; i++) {
        bool is_control = (unsigned char)text.ptr[i] < ' ';
        (void)td_buf_append_char(out, is_control ? ' ' : text.ptr[i]);
    }
    (void)td_buf_append_char(out, '\n');
}

static void migrate_write_yaml(const struct td_validate *run,
                               const struct td_migrations *migrations, struct td_buf *out)
{
    for (size_t i = 0; i < run->finding_count; i++) { /* files that could not be read */
        migrate_comment(out, "Not read: ", run->findings[i].file);
        migrate_comment(out, "  ", run->findings[i].problem->message);
    }
    if (migrations->count == 0) {
        migrate_comment(
            out, "",
            TD_STR("nothing to migrate: no HPA and VPA on one workload, no Hvpa of gardener"));
    }
    for (size_t i = 0; i < migrations->count; i++) {
        const struct td_migration *item = &migrations->items[i];
        if (i > 0) {
            (void)td_buf_append(out, TD_STR("---\n"));
        }
        migrate_comment(out, "From ", item->title);
        for (size_t j = 0; j < item->note_count; j++) {
            migrate_comment(out, "", item->notes[j]);
        }
        if (item->object) {
            td_output_yaml(item->object, out);
        }
    }
}

static void migrate_write_json(struct td_validate *run, const struct td_migrations *migrations,
                               struct td_buf *out)
{
    struct td_arena *arena = &run->arena;
    struct td_json *unread = td_json_new_array(arena);
    for (size_t i = 0; i < run->finding_count; i++) {
        td_json_append(unread, td_validate_row(arena, &run->findings[i]));
    }
    struct td_json *report = td_json_new_object(arena);
    struct td_json *list = td_json_new_array(arena);
    for (size_t i = 0; i < migrations->count; i++) {
        const struct td_migration *item = &migrations->items[i];
        struct td_json *row = td_json_new_object(arena);
        struct td_json *notes = td_json_new_array(arena);
        for (size_t j = 0; j < item->note_count; j++) {
            td_json_append(notes, td_json_new_string(arena, item->notes[j]));
        }
        td_json_set_str(arena, row, TD_STR("from"), item->title);
        td_json_set(arena, row, TD_STR("notes"), notes);
        td_json_set(arena, row, TD_STR("object"),
                    item->object ? item->object : td_json_new_null(arena));
        td_json_append(list, row);
    }
    td_json_set(arena, report, TD_STR("migrations"), list);
    td_json_set(arena, report, TD_STR("problems"), unread);
    td_output_json(report, out);
}

int td_validate_migrate(struct td_validate *run)
{
    struct td_migrations migrations;
    td_auto_buf text = td_buf_capped(TD_JSON_BYTES_MAX);
    td_migrate_all(&run->arena, &run->manifest, &migrations);
    if (run->output == TD_VALIDATE_JSON) {
        migrate_write_json(run, &migrations, &text);
    } else {
        migrate_write_yaml(run, &migrations, &text);
    }
    int status = td_validate_write(&text);
    for (size_t i = 0; i < migrations.count && status == TD_EXIT_DONE; i++) {
        status = migrations.items[i].object ? TD_EXIT_DONE : TD_EXIT_PROBLEMS;
    }
    return status;
}
