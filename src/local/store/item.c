/*
 * One object on its way out. Most are sent as they are stored: in the storage version and whole, so
 * that the text needs neither reading nor copying; only kind and apiVersion at its start are cut
 * off in a list, where upstream leaves them out. All other forms are made through a tree.
 */
#include "base/error.h"
#include "base/json/json_reader.h"
#include "base/limits.h"
#include "local/api/api_private.h"

static const td_str item_partial_start =
    TD_STR_INIT("{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\","
                "\"metadata\":");

void td_item_writer_init(struct td_item_writer *writer, const struct td_api_call *call,
                         bool is_list)
{
    const struct td_resource *resource = call->at.resource;
    struct td_arena scratch;
    td_arena_init(&scratch, TD_API_CALL_BYTES_MAX);
    *writer = (struct td_item_writer){
        .call = call,
        .scratch = scratch,
        .is_raw = call->form == TD_FORM_OBJECT && call->at.version == resource->storage,
        .is_list = is_list,
        .is_first = true,
    };
}

void td_item_writer_done(struct td_item_writer *writer)
{
    td_arena_done(&writer->scratch);
}

/* Where the text goes on behind the members kind and apiVersion, when it begins with them. */
static size_t item_type_end(td_str json)
{
    static const td_str names[] = {TD_STR_INIT("\"kind\":\""), TD_STR_INIT("\"apiVersion\":\"")};
    size_t at = 1;
    for (size_t i = 0; i < 2; i++) {
        td_str rest = td_str_slice(json, at, json.len);
        bool is_kind = td_str_starts_with(rest, names[0]);
        if (!is_kind && !td_str_starts_with(rest, names[1])) {
            return 0;
        }
        size_t quote = td_str_find(json, '"', at + names[is_kind ? 0 : 1].len);
        if (quote + 1 >= json.len || json.ptr[quote + 1] != ',') {
            return 0;
        }
        at = quote + 2;
    }
    return at;
}

td_str td_item_raw(const struct td_item_writer *writer, const struct td_stored *stored,
                   td_str *ret_rest)
{
    bool is_bare = writer->is_list && !writer->call->at.resource->custom;
    size_t from = is_bare ? item_type_end(stored->json) : 0;
    *ret_rest = td_str_slice(stored->json, from, stored->json.len);
    return from > 0 ? TD_STR("{") : TD_STR_EMPTY;
}

/* The text of the metadata member. */
static bool item_find_metadata(td_str json, td_str *ret)
{
    struct td_json_reader reader;
    td_json_reader_init(&reader, json, 0);
    if (td_json_reader_next(&reader) != TD_JSON_BEGIN_OBJECT) {
        return false;
    }
    while (td_json_reader_next(&reader) == TD_JSON_KEY) {
        bool is_metadata = td_json_reader_key_is(&reader, TD_STR("metadata"));
        const char *begin = reader.at;
        if (td_json_reader_skip(&reader) != TD_OK) {
            return false;
        }
        if (is_metadata) {
            td_str value = td_str_trim((td_str){.ptr = begin, .len = (size_t)(reader.at - begin)});
            size_t colon = value.len > 0 && value.ptr[0] == ':' ? 1 : 0;
            *ret = td_str_slice(value, colon, value.len);
            return true;
        }
    }
    return false;
}

/* A row alone in a list; in a watch a Table of one row, with the columns in the first. */
static struct td_json *item_table(struct td_item_writer *writer, struct td_json *object)
{
    struct td_arena *arena = &writer->scratch;
    if (writer->is_list) {
        return td_form_row(writer->call, arena, object);
    }
    struct td_json *metadata = td_json_new_object(arena);
    td_json_set_str(arena, metadata, TD_STR("resourceVersion"),
                    td_json_text(td_json_get(object, TD_STR("metadata")), "resourceVersion"));
    struct td_json *table = td_form_table(writer->call, arena, metadata, writer->is_first);
    struct td_json *rows = td_json_new_array(arena);
    td_json_append(rows, td_form_row(writer->call, arena, object));
    td_json_set(arena, table, TD_STR("rows"), rows);
    writer->is_first = false;
    return table;
}

int td_item_write_tree(struct td_item_writer *writer, struct td_json *stored, struct td_buf *out,
                       struct td_error *err)
{
    struct td_json *object;
    int code = td_form_convert(writer->call, &writer->scratch, stored, &object, err);
    if (code != TD_OK) {
        return code;
    }
    if (writer->call->form == TD_FORM_PARTIAL) {
        object = td_form_partial(&writer->scratch, object);
    } else if (writer->call->form == TD_FORM_TABLE) {
        object = item_table(writer, object);
    } else if (writer->is_list && !writer->call->at.resource->custom) {
        (void)td_json_remove(object, TD_STR("kind")); /* absent or not: it is not there now */
        (void)td_json_remove(object, TD_STR("apiVersion"));
    }
    td_json_write(object, &(struct td_json_format){.escape_html = true}, out);
    return TD_OK;
}

int td_item_write(struct td_item_writer *writer, const struct td_stored *stored, struct td_buf *out,
                  struct td_error *err)
{
    td_str text;
    if (writer->is_raw) {
        (void)td_buf_append(out, td_item_raw(writer, stored, &text));
        (void)td_buf_append(out, text); /* the caller checks what does not fit */
        return TD_OK;
    }
    bool is_stored_version = writer->call->at.version == writer->call->at.resource->storage;
    if (writer->call->form == TD_FORM_PARTIAL && is_stored_version &&
        item_find_metadata(stored->json, &text)) {
        (void)td_buf_append(out, item_partial_start);
        (void)td_buf_append(out, text);
        (void)td_buf_append_char(out, '}');
        return TD_OK;
    }
    td_arena_reset(&writer->scratch);
    struct td_json *tree;
    int code = td_json_parse(&writer->scratch, stored->json, NULL, &tree, err);
    return code == TD_OK ? td_item_write_tree(writer, tree, out, err) : code;
}
