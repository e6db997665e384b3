/*
 * The text is read twice: by td_yaml_parse, which says what it means and whether it is sound, and
 * here, into nodes that know the bytes they stand on. libyaml counts characters, so positions are
 * turned into bytes by a cursor that walks with them. A block collection has no end of its own:
 * it ends with the last byte of its last value.
 */
#include "base/yaml/yaml_edit.h"

#include <stdbool.h>

#include <yaml.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/yaml/yaml.h"
#include "base/yaml/yaml_scalar.h"

#define EDIT_STEP 2 /* columns of indentation when the text shows none */
#define EDIT_BOM TD_STR("\xEF\xBB\xBF")

enum edit_kind { EDIT_SCALAR, EDIT_MAP, EDIT_LIST, EDIT_ALIAS };

struct edit_node {
    enum edit_kind kind;
    bool is_flow;          /* a collection between brackets */
    bool is_named;         /* has an anchor or a tag in front */
    bool is_plain;         /* a scalar without quotes */
    bool is_quoted;        /* a scalar in double quotes */
    bool is_block;         /* a literal or folded scalar */
    size_t start;          /* bytes */
    size_t end;            /* of scalars, aliases and flow collections */
    size_t line;           /* from 1 */
    size_t column;         /* characters before it */
    td_str text;           /* of a scalar: decoded */
    struct edit_node *key; /* when it is a member */
    struct edit_node *parent;
    struct edit_node *first; /* children */
    struct edit_node *last;
    struct edit_node *next;
};

struct edit {
    struct td_arena *arena;
    td_str text;
    const struct td_yaml_place *place;
    td_str value;
    struct edit_node *root; /* of the document */
    bool is_json;
    size_t step;
    /* Where characters are in bytes. */
    size_t cursor;
    size_t cursor_chars;
    /* What to do: the bytes from `from` to `to` become `put`. */
    size_t from;
    size_t to;
    struct td_buf put;
};

/* ---- Reading ---- */

static bool edit_is_continued(td_str text, size_t at)
{
    return at < text.len && ((unsigned char)text.ptr[at] & 0xc0) == 0x80;
}

static size_t edit_byte(struct edit *edit, size_t chars)
{
    while (edit->cursor_chars < chars && edit->cursor < edit->text.len) {
        edit->cursor++;
        while (edit_is_continued(edit->text, edit->cursor)) {
            edit->cursor++;
        }
        edit->cursor_chars++;
    }
    while (edit->cursor_chars > chars) {
        edit->cursor--;
        while (edit_is_continued(edit->text, edit->cursor)) {
            edit->cursor--;
        }
        edit->cursor_chars--;
    }
    return edit->cursor;
}

static struct edit_node *edit_node(struct edit *edit, const yaml_event_t *event)
{
    struct edit_node *node = td_arena_new(edit->arena, struct edit_node);
    *node = (struct edit_node){
        .start = edit_byte(edit, event->start_mark.index),
        .end = edit_byte(edit, event->end_mark.index),
        .line = event->start_mark.line + 1,
        .column = event->start_mark.column,
    };
    if (event->type == YAML_SCALAR_EVENT) {
        yaml_scalar_style_t style = event->data.scalar.style;
        td_str text = {.ptr = (const char *)event->data.scalar.value,
                       .len = event->data.scalar.length};
        node->kind = EDIT_SCALAR;
        node->text = td_arena_copy_str(edit->arena, text);
        node->is_named = event->data.scalar.anchor || event->data.scalar.tag;
        node->is_plain = style == YAML_PLAIN_SCALAR_STYLE;
        node->is_quoted = style == YAML_DOUBLE_QUOTED_SCALAR_STYLE;
        node->is_block = style == YAML_LITERAL_SCALAR_STYLE || style == YAML_FOLDED_SCALAR_STYLE;
    } else if (event->type == YAML_MAPPING_START_EVENT) {
        node->kind = EDIT_MAP;
        node->is_flow = event->data.mapping_start.style == YAML_FLOW_MAPPING_STYLE;
        node->is_named = event->data.mapping_start.anchor || event->data.mapping_start.tag;
    } else if (event->type == YAML_SEQUENCE_START_EVENT) {
        node->kind = EDIT_LIST;
        node->is_flow = event->data.sequence_start.style == YAML_FLOW_SEQUENCE_STYLE;
        node->is_named = event->data.sequence_start.anchor || event->data.sequence_start.tag;
    } else {
        node->kind = EDIT_ALIAS;
    }
    return node;
}

/* Puts a node where the open collection expects one. */
static void edit_place(struct edit_node *open, struct edit_node **key, struct edit_node *node)
{
    node->parent = open;
    if (open->kind == EDIT_MAP && !*key) {
        *key = node;
        return;
    }
    node->key = *key;
    *key = NULL;
    *(open->last ? &open->last->next : &open->first) = node;
    open->last = node;
}

static bool edit_is_null(const struct edit_node *node)
{
    return node->kind == EDIT_SCALAR && node->is_plain && !node->is_named &&
           td_yaml_resolve_plain(node->text).kind == TD_YAML_NULL;
}

/* The tree of one document. Keys are scalars: td_yaml_parse has refused others. */
static struct edit_node *edit_read_document(struct edit *edit, yaml_parser_t *parser)
{
    struct edit_node *root = NULL;
    struct edit_node *open = NULL;
    struct edit_node *key = NULL;
    for (bool is_last = false; !is_last;) {
        yaml_event_t event;
        if (!yaml_parser_parse(parser, &event)) {
            return NULL; /* was read once already, so it cannot be */
        }
        bool is_start =
            event.type == YAML_MAPPING_START_EVENT || event.type == YAML_SEQUENCE_START_EVENT;
        is_last = event.type == YAML_DOCUMENT_END_EVENT || event.type == YAML_STREAM_END_EVENT;
        if (is_start || event.type == YAML_SCALAR_EVENT || event.type == YAML_ALIAS_EVENT) {
            struct edit_node *node = edit_node(edit, &event);
            if (open) {
                edit_place(open, &key, node);
            } else {
                root = node;
            }
            open = is_start ? node : open;
        } else if (open && !is_last) {
            open->end = edit_byte(edit, event.end_mark.index);
            open = open->parent;
        }
        yaml_event_delete(&event);
    }
    return root;
}

/* Reads on until the document that is wanted. */
static int edit_read(struct edit *edit, struct td_error *err)
{
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser)) {
        td_out_of_memory();
    }
    yaml_parser_set_input_string(&parser, (const unsigned char *)edit->text.ptr, edit->text.len);
    edit->cursor = td_str_starts_with(edit->text, EDIT_BOM) ? EDIT_BOM.len : 0;
    size_t seen = 0;
    bool is_end = false;
    while (!edit->root && !is_end) {
        yaml_event_t event;
        is_end = !yaml_parser_parse(&parser, &event);
        bool is_document = !is_end && event.type == YAML_DOCUMENT_START_EVENT;
        is_end = is_end || event.type == YAML_STREAM_END_EVENT;
        yaml_event_delete(&event);
        struct edit_node *root = is_document ? edit_read_document(edit, &parser) : NULL;
        /* After a failure the parser would go on for ever, with events of no kind. The text was
         * read once already: it is memory that ran out. */
        if (parser.error != YAML_NO_ERROR) {
            td_out_of_memory();
        }
        if (root && !edit_is_null(root) && seen++ == edit->place->document) {
            edit->root = root;
        }
    }
    yaml_parser_delete(&parser);
    return edit->root ? TD_OK
                      : td_error_set(err, TD_NOT_FOUND, "there is no document %zu",
                                     edit->place->document + 1);
}

/* ---- Looking around ---- */

static const struct edit_node *edit_find(const struct edit_node *node,
                                         const struct td_yaml_step *step)
{
    size_t index = 0;
    for (const struct edit_node *child = node->first; child; child = child->next, index++) {
        if (node->kind == EDIT_MAP ? step->key.len > 0 && td_str_equal(child->key->text, step->key)
                                   : step->key.len == 0 && index == step->index) {
            return child;
        }
    }
    return NULL;
}

static size_t edit_content_end(const struct edit_node *node)
{
    while (node->kind != EDIT_SCALAR && node->kind != EDIT_ALIAS && !node->is_flow && node->last) {
        node = node->last;
    }
    return node->key && node->key->end > node->end ? node->key->end : node->end;
}

/* Where the line behind `at` begins. */
static size_t edit_next_line(td_str text, size_t at)
{
    if (at > 0 && text.ptr[at - 1] == '\n') {
        return at;
    }
    size_t end = td_str_find(text, '\n', at);
    return end < text.len ? end + 1 : text.len;
}

static td_str edit_line_end(td_str text)
{
    size_t end = td_str_find(text, '\n', 0);
    return end < text.len && end > 0 && text.ptr[end - 1] == '\r' ? TD_STR("\r\n") : TD_STR("\n");
}

/* How far a mapping stands inside another, by the first of them in the text. */
static size_t edit_indentation(const struct edit_node *node)
{
    for (size_t depth = 0;
         node && node->kind == EDIT_MAP && !node->is_flow && depth < TD_YAML_DEPTH_MAX; depth++) {
        const struct edit_node *inner = NULL;
        for (const struct edit_node *child = node->first; child && !inner; child = child->next) {
            inner = child->kind == EDIT_MAP && !child->is_flow ? child : NULL;
        }
        if (inner && inner->first->key->column > node->first->key->column) {
            return inner->first->key->column - node->first->key->column;
        }
        node = inner;
    }
    return EDIT_STEP;
}

static int edit_refuse(struct td_error *err, const struct edit_node *node, const char *why)
{
    size_t line = node->key ? node->key->line : node->line;
    return td_error_set(err, TD_INVALID, "line %zu: %s", line, why);
}

/* ---- Writing ---- */

static void edit_put_spaces(struct edit *edit, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        (void)td_buf_append_char(&edit->put, ' ');
    }
}

static void edit_put_quoted(struct edit *edit, td_str text, bool is_quoted)
{
    (void)td_buf_append_format(&edit->put, "%s%.*s%s", is_quoted ? "\"" : "", TD_STR_ARG(text),
                               is_quoted ? "\"" : "");
}

/* The missing rest of the path on one line: "requests: {cpu: 430m}". */
static void edit_put_flow(struct edit *edit, size_t from)
{
    const struct td_yaml_place *place = edit->place;
    for (size_t i = from; i < place->step_count; i++) {
        edit_put_quoted(edit, place->steps[i].key, edit->is_json);
        (void)td_buf_append(&edit->put, i + 1 < place->step_count ? TD_STR(": {") : TD_STR(": "));
    }
    edit_put_quoted(edit, edit->value, edit->is_json);
    for (size_t i = from; i + 1 < place->step_count; i++) {
        (void)td_buf_append_char(&edit->put, '}');
    }
}

/* The missing rest of the path, a line for each key, the first in `column`. */
static void edit_put_block(struct edit *edit, size_t from, size_t column)
{
    const struct td_yaml_place *place = edit->place;
    td_str end = edit_line_end(edit->text);
    bool is_cut = edit->from > 0 && edit->text.ptr[edit->from - 1] != '\n';
    (void)td_buf_append(&edit->put, is_cut ? end : TD_STR_EMPTY); /* no line end at the file's */
    for (size_t i = from; i < place->step_count; i++) {
        bool is_leaf = i + 1 == place->step_count;
        edit_put_spaces(edit, column + (i - from) * edit->step);
        (void)td_buf_append_format(&edit->put, "%.*s:%s%.*s", TD_STR_ARG(place->steps[i].key),
                                   is_leaf ? " " : "",
                                   TD_STR_ARG(is_leaf ? edit->value : TD_STR_EMPTY));
        (void)td_buf_append(&edit->put, is_leaf && is_cut ? TD_STR_EMPTY : end);
    }
}

/* A scalar gives way to another, in its quotes. */
static int edit_replace(struct edit *edit, const struct edit_node *node, struct td_error *err)
{
    if (node->kind == EDIT_ALIAS) {
        return edit_refuse(err, node, "the value is an alias; change its anchor by hand");
    }
    if (node->kind != EDIT_SCALAR || node->is_block || node->is_named) {
        return edit_refuse(err, node, "the value is not a plain or quoted text");
    }
    bool is_number = td_yaml_resolve_plain(edit->value).kind != TD_YAML_STRING;
    bool is_behind_colon = node->start > 0 && edit->text.ptr[node->start - 1] == ':';
    edit->from = node->start;
    edit->to = node->end;
    if (node->is_plain) {
        (void)td_buf_append(&edit->put, is_behind_colon ? TD_STR(" ") : TD_STR_EMPTY);
        edit_put_quoted(edit, edit->value, edit->is_json && !is_number);
    } else {
        const char *quote = node->is_quoted ? "\"" : "'";
        (void)td_buf_append_format(&edit->put, "%s%.*s%s", quote, TD_STR_ARG(edit->value), quote);
    }
    return TD_OK;
}

/* Behind the last member of a mapping between brackets; on a line of its own when that is. */
static int edit_insert_flow(struct edit *edit, const struct edit_node *map, size_t from,
                            struct td_error *err)
{
    if (!map->last) {
        size_t brace = td_str_find(edit->text, '{', map->start);
        if (map->is_named || brace >= map->end) {
            return edit_refuse(err, map, "the mapping has an anchor or a tag");
        }
        edit->from = edit->to = brace + 1;
        edit_put_flow(edit, from);
        return TD_OK;
    }
    const struct edit_node *key = map->last->key;
    size_t line = key->start;
    while (line > 0 && (edit->text.ptr[line - 1] == ' ' || edit->text.ptr[line - 1] == '\t')) {
        line--;
    }
    bool is_alone = line > 0 && edit->text.ptr[line - 1] == '\n';
    edit->from = edit->to = edit_content_end(map->last);
    (void)td_buf_append_char(&edit->put, ',');
    if (is_alone) {
        (void)td_buf_append(&edit->put, edit_line_end(edit->text));
        (void)td_buf_append(&edit->put, td_str_slice(edit->text, line, key->start));
    } else {
        (void)td_buf_append_char(&edit->put, ' ');
    }
    edit_put_flow(edit, from);
    return TD_OK;
}

/* `node` has no member steps[from]. */
static int edit_insert(struct edit *edit, const struct edit_node *node, size_t from,
                       struct td_error *err)
{
    if (node->kind == EDIT_ALIAS) {
        return edit_refuse(err, node, "the value is an alias; change its anchor by hand");
    }
    if (edit_is_null(node) && node->key && node->start == node->end && !node->parent->is_flow) {
        edit->from = edit->to = edit_next_line(edit->text, node->key->end);
        edit_put_block(edit, from, node->key->column + edit->step);
        return TD_OK;
    }
    if (edit_is_null(node) && node->key) {
        edit->from = node->start;
        edit->to = node->end;
        (void)td_buf_append(&edit->put, node->start == node->end ? TD_STR(" {") : TD_STR("{"));
        edit_put_flow(edit, from);
        (void)td_buf_append_char(&edit->put, '}');
        return TD_OK;
    }
    if (node->kind != EDIT_MAP) {
        return edit_refuse(err, node, "the value is not a mapping");
    }
    const struct td_yaml_step merge = {.key = TD_STR("<<")};
    if (edit_find(node, &merge)) {
        return edit_refuse(err, node,
                           "the mapping takes members from an anchor (<<); change that by hand");
    }
    if (node->is_flow) {
        return edit_insert_flow(edit, node, from, err);
    }
    edit->from = edit->to = edit_next_line(edit->text, edit_content_end(node));
    edit_put_block(edit, from, node->first->key->column);
    return TD_OK;
}

static int edit_decide(struct edit *edit, struct td_error *err)
{
    const struct td_yaml_place *place = edit->place;
    const struct edit_node *node = edit->root;
    for (size_t i = 0; i < place->step_count; i++) {
        const struct edit_node *child = edit_find(node, &place->steps[i]);
        if (!child && place->steps[i].key.len == 0) {
            return edit_refuse(err, node, "the list has no such item");
        }
        if (!child) {
            return edit_insert(edit, node, i, err);
        }
        node = child;
    }
    return edit_replace(edit, node, err);
}

/* ---- Checking ---- */

static struct td_json *edit_item(const struct td_json *list, size_t index)
{
    struct td_json *item = td_json_is(list, TD_JSON_TYPE_ARRAY) ? td_json_first_item(list) : NULL;
    for (; item && index > 0; index--) {
        item = item->next;
    }
    return item;
}

static struct td_json *edit_at(struct td_arena *arena, struct td_json *node,
                               const struct td_yaml_place *place, size_t count, bool is_made)
{
    for (size_t i = 0; i < count && node; i++) {
        const struct td_yaml_step *step = &place->steps[i];
        if (step->key.len > 0) {
            struct td_json *member =
                td_json_is(node, TD_JSON_TYPE_OBJECT) ? td_json_get(node, step->key) : NULL;
            bool is_missing = !member || td_json_is(member, TD_JSON_TYPE_NULL);
            node = is_missing && is_made ? td_json_ensure_object(arena, node, step->key) : member;
        } else {
            node = edit_item(node, step->index);
        }
    }
    return node;
}

/* The new text must mean the old one with the value, and nothing else. */
static int edit_check(struct edit *edit, const struct td_yaml_documents *before, td_str text,
                      struct td_error *err)
{
    struct td_yaml_documents after;
    const struct td_yaml_place *place = edit->place;
    struct td_error ignored = TD_ERROR_INIT;
    bool is_right = td_yaml_parse(edit->arena, text, &after, &ignored) == TD_OK &&
                    after.count == before->count && place->step_count > 0;
    if (is_right) {
        const struct td_yaml_step *leaf = &place->steps[place->step_count - 1];
        const struct td_json *made =
            edit_at(edit->arena, after.items[place->document], place, place->step_count, false);
        struct td_json *parent = edit_at(edit->arena, before->items[place->document], place,
                                         place->step_count - 1, true);
        bool is_text =
            td_json_is(made, TD_JSON_TYPE_STRING) || td_json_is(made, TD_JSON_TYPE_NUMBER);
        is_right = is_text && td_str_equal(made->text, edit->value) &&
                   td_json_is(parent, TD_JSON_TYPE_OBJECT);
        if (is_right) {
            td_json_set(edit->arena, parent, leaf->key, td_json_copy(edit->arena, made, true));
        }
    }
    for (size_t i = 0; is_right && i < after.count; i++) {
        is_right = td_json_equal(before->items[i], after.items[i]);
    }
    return is_right ? TD_OK
                    : td_error_set(err, TD_INVALID,
                                   "line %zu: an anchor shares the value with another place, or "
                                   "its style does not allow an edit; change it by hand",
                                   edit->root->line);
}

int td_yaml_edit(struct td_arena *arena, td_str text, const struct td_yaml_place *place,
                 td_str value, td_str *ret, struct td_error *err)
{
    struct td_yaml_documents before;
    struct edit edit = {.arena = arena, .text = text, .place = place, .value = value};
    int code = td_yaml_parse(arena, text, &before, err);
    if (code == TD_OK && !td_str_is_utf8(text)) {
        code = td_error_set(err, TD_INVALID, "line 1: the text is not UTF-8");
    }
    code = code == TD_OK ? edit_read(&edit, err) : code;
    if (code != TD_OK) {
        return code;
    }
    edit.is_json = edit.root->is_flow && edit.root->first && edit.root->first->key &&
                   edit.root->first->key->is_quoted;
    edit.step = edit_indentation(edit.root);
    td_buf_init(&edit.put, TD_YAML_BYTES_MAX);
    code = edit_decide(&edit, err);
    if (code == TD_OK) {
        td_str made = td_arena_format(arena, "%.*s%.*s%.*s", (int)edit.from, text.ptr,
                                      TD_STR_ARG(td_buf_str(&edit.put)), (int)(text.len - edit.to),
                                      text.ptr + edit.to);
        code = edit_check(&edit, &before, made, err);
        if (code == TD_OK) {
            *ret = made;
        }
    }
    td_buf_done(&edit.put);
    return code;
}
