#include "kube/kubeconfig/kubeconfig_private.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/base64.h"
#include "base/error.h"
#include "base/json/json.h"
#include "base/limits.h"
#include "base/os/file.h"

bool td_kubeconfig_is_header(td_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char byte = (unsigned char)text.ptr[i];
        if ((byte < ' ' && byte != '\t') || byte == 0x7f) {
            return false;
        }
    }
    return true;
}

const td_str *td_kubeconfig_texts(struct td_arena *arena, const struct td_json *list,
                                  size_t *ret_count)
{
    size_t count = td_json_item_count(list);
    td_str *texts = td_arena_array(arena, td_str, count);
    const struct td_json *item = td_json_first_item(list);
    for (size_t i = 0; i < count; i++, item = item->next) {
        bool is_text = td_json_is(item, TD_JSON_TYPE_STRING);
        texts[i] = td_arena_copy_str(arena, is_text ? item->text : TD_STR_EMPTY);
    }
    *ret_count = count;
    return texts;
}

int td_kubeconfig_fail(const struct td_kubeconfig_named *entry, const char *field, int code,
                       struct td_error *err, const char *format, ...)
{
    char problem[TD_ERROR_MESSAGE_BYTES];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(problem, sizeof(problem), format, args); /* cut like every message */
    va_end(args);
    return td_error_set(err, code, "%.*s: %s[%.*s].%s.%s: %s", TD_STR_ARG(entry->file->path),
                        entry->list, TD_STR_ARG(entry->name), entry->kind, field, problem);
}

int td_kubeconfig_one_line(struct td_error *err, int code)
{
    for (char *at = err ? err->message : NULL; at && *at; at++) {
        *at = (unsigned char)*at < ' ' || *at == 0x7f ? '?' : *at;
    }
    return code;
}

td_str td_kubeconfig_text(struct td_arena *arena, const struct td_kubeconfig_named *entry,
                          td_str field)
{
    return td_arena_copy_str(arena, td_json_get_str(entry->value, field, TD_STR_EMPTY));
}

td_str td_kubeconfig_path(struct td_arena *arena, const struct td_kubeconfig_named *entry,
                          td_str field)
{
    td_str path = td_kubeconfig_text(arena, entry, field);
    if (path.len == 0 || path.ptr[0] == '/' || entry->file->folder.len == 0) {
        return path;
    }
    return td_arena_format(arena, "%s%s", entry->file->folder.ptr, path.ptr);
}

int td_kubeconfig_bytes(struct td_arena *arena, const struct td_kubeconfig_named *entry,
                        const struct td_kubeconfig_source *source, td_str *ret_bytes,
                        td_str *ret_path, struct td_error *err)
{
    td_str data = td_json_get_str(entry->value, source->data_field, TD_STR_EMPTY);
    td_str path = td_kubeconfig_path(arena, entry, source->file_field);
    td_str bytes = TD_STR_EMPTY;
    if (data.len > 0 && path.len > 0) {
        return td_kubeconfig_fail(entry, source->file_field.ptr, TD_INVALID, err,
                                  "'%s': %s is set too, only one may be", path.ptr,
                                  source->data_field.ptr);
    }
    if (data.len > 0 && !td_base64_read(arena, data, TD_BASE64_STANDARD, &bytes)) {
        return td_kubeconfig_fail(entry, source->data_field.ptr, TD_INVALID, err, "must be base64");
    }
    struct td_error cause = TD_ERROR_INIT;
    if (path.len > 0 && td_file_read(path.ptr, arena, TD_PEM_BYTES_MAX, &bytes, &cause) < 0) {
        return td_kubeconfig_fail(entry, source->file_field.ptr, TD_INVALID, err, "%s",
                                  cause.message);
    }
    *ret_bytes = td_arena_copy_str(arena, bytes);
    *ret_path = path;
    return TD_OK;
}
