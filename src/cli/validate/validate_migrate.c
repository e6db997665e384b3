#include "cli/validate_migrate.h"

#include <stdio.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/yaml/yaml.h"
#include "cli/command.h"
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

static void migrate_write_yaml(const struct td_migrations *migrations, struct td_buf *out)
{
    if (migrations->count == 0) {
        migrate_comment(out, "",
                        TD_STR("nothing to migrate: no HPA and VPA on one workload, no "
                               "Hvpa of gardener's"));
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
            td_yaml_write(item->object, out);
        }
    }
}

static void migrate_write_json(struct td_arena *arena, const struct td_migrations *migrations,
                               struct td_buf *out)
{
    struct td_json *report = td_json_new_object(arena);
    struct td_json *list = td_json_new_array(arena);
    for (size_t i = 0; i < migrations->count; i++) {
        const struct td_migration *item = &migrations->items[i];
        struct td_json *row = td_json_new_object(arena);
        struct td_json *notes = td_json_new_array(arena);
        for (size_t j = 0; j < item->note_count; j++) {
            td_json_append(notes, td_json_new_string(arena, item->notes[j]));
        }
        td_json_set(arena, row, TD_STR("from"), td_json_new_string(arena, item->title));
        td_json_set(arena, row, TD_STR("notes"), notes);
        td_json_set(arena, row, TD_STR("object"),
                    item->object ? item->object : td_json_new_null(arena));
        td_json_append(list, row);
    }
    td_json_set(arena, report, TD_STR("migrations"), list);
    td_json_write(report, &(struct td_json_format){.indent = 2}, out);
    (void)td_buf_append_char(out, '\n'); /* as above */
}

int td_validate_migrate(struct td_arena *arena, const struct td_manifest *manifest, bool is_json)
{
    struct td_migrations migrations;
    struct td_error err = TD_ERROR_INIT;
    td_auto_buf text;
    td_buf_init(&text, TD_JSON_BYTES_MAX);
    td_migrate_all(arena, manifest, &migrations);
    if (is_json) {
        migrate_write_json(arena, &migrations, &text);
    } else {
        migrate_write_yaml(&migrations, &text);
    }
    if (td_buf_check(&text, "the objects", &err) < 0) {
        return td_command_fail("%s", err.message);
    }
    (void)fwrite(text.ptr, 1, text.len, stdout); /* main looks at the stream's state */
    for (size_t i = 0; i < migrations.count; i++) {
        if (!migrations.items[i].object) {
            return TD_EXIT_PROBLEMS;
        }
    }
    return TD_EXIT_DONE;
}
