/*
 * A text is parsed as JSON values or as YAML documents, Lists are unpacked one level deep, and an
 * error of either parser is rewritten to begin with "FILE:LINE:COLUMN:", which editors can follow.
 */
#include "kube/manifest.h"

#include <string.h>

#include "base/error.h"
#include "base/json/json_reader.h"
#include "base/limits.h"
#include "kube/objectkey.h"

static struct td_manifest_object *manifest_push(struct td_arena *arena,
                                                struct td_manifest *manifest)
{
    manifest->items = td_arena_grow(arena, manifest->items, manifest->count, &manifest->cap,
                                    sizeof(*manifest->items));
    return &manifest->items[manifest->count++];
}

static int manifest_add_object(struct td_arena *arena, td_str file, const struct td_json *tree,
                               struct td_manifest *manifest, struct td_error *err)
{
    const struct td_json *api_version = td_json_get(tree, TD_STR("apiVersion"));
    const struct td_json *kind = td_json_get(tree, TD_STR("kind"));
    const char *wrong = NULL;
    if (!td_json_is(tree, TD_JSON_TYPE_OBJECT)) {
        wrong = "not an object";
    } else if (!td_json_is(api_version, TD_JSON_TYPE_STRING) || api_version->text.len == 0) {
        wrong = "apiVersion: must be set to a string such as apps/v1";
    } else if (!td_json_is(kind, TD_JSON_TYPE_STRING) || kind->text.len == 0) {
        wrong = "kind: must be set to a string such as Deployment";
    }
    if (wrong) {
        return td_error_set(err, TD_INVALID, "%.*s:%u: %s", TD_STR_ARG(file), tree->line, wrong);
    }
    const struct td_json *metadata = td_json_get(tree, TD_STR("metadata"));
    td_str prefix = td_json_text(metadata, "generateName");
    *manifest_push(arena, manifest) = (struct td_manifest_object){
        .tree = tree,
        .file = file,
        .line = tree->line,
        .api_version = api_version->text,
        .kind = kind->text,
        .namespace = td_json_text(metadata, "namespace"),
        .name = td_json_get_str(metadata, TD_STR("name"), prefix),
    };
    return TD_OK;
}

const struct td_json *td_manifest_item(struct td_arena *arena, const struct td_json *list,
                                       const struct td_json *item)
{
    td_str kind = td_json_text(list, "kind");
    td_str item_kind = td_str_slice(kind, 0, kind.len - TD_STR("List").len);
    td_str api_version = td_json_text(list, "apiVersion");
    if (item_kind.len == 0 || api_version.len == 0 || !td_json_is(item, TD_JSON_TYPE_OBJECT) ||
        td_json_get(item, TD_STR("kind"))) {
        return item;
    }
    struct td_json *copy = td_json_copy(arena, item, false);
    td_json_set_str(arena, copy, TD_STR("apiVersion"), api_version);
    td_json_set_str(arena, copy, TD_STR("kind"), item_kind);
    return copy;
}

int td_manifest_add(struct td_arena *arena, td_str file, const struct td_json *tree,
                    struct td_manifest *manifest, struct td_error *err)
{
    const struct td_json *items = td_json_get(tree, TD_STR("items"));
    td_str kind = td_json_text(tree, "kind");
    if (!td_str_ends_with(kind, TD_STR("List")) || !td_json_is(items, TD_JSON_TYPE_ARRAY)) {
        return manifest_add_object(arena, file, tree, manifest, err);
    }
    size_t count_before = manifest->count;
    for (const struct td_json *item = td_json_first_item(items); item; item = item->next) {
        const struct td_json *whole = td_manifest_item(arena, tree, item);
        int code = manifest_add_object(arena, file, whole, manifest, err);
        if (code < 0) {
            manifest->count = count_before;
            return code;
        }
    }
    return TD_OK;
}

/* Editors of some systems put it in front of a text; YAML's parser knows it. */
static td_str manifest_skip_mark(td_str text)
{
    static const td_str mark = TD_STR_INIT("\xef\xbb\xbf");
    return td_str_starts_with(text, mark) ? td_str_slice(text, mark.len, text.len) : text;
}

td_str td_manifest_title(struct td_arena *arena, const struct td_manifest_object *object)
{
    td_str key = td_object_key_text(arena, TD_OBJECT_KEY(object->namespace, object->name));
    return td_arena_format(arena, "%.*s %.*s", TD_STR_ARG(object->kind), TD_STR_ARG(key));
}

bool td_manifest_is_json(td_str file, td_str text)
{
    td_str rest = manifest_skip_mark(text);
    size_t start = 0;
    while (start < rest.len && memchr(" \t\r\n", rest.ptr[start], 4)) {
        start++;
    }
    return td_str_ends_with(file, TD_STR(".json")) || (start < rest.len && rest.ptr[start] == '{');
}

/* A text with nothing but its line breaks up to `start`: what an error says of it is true of the
 * whole. */
static td_str manifest_blank(struct td_arena *arena, td_str text, size_t start, size_t end)
{
    char *copy = td_arena_alloc(arena, end);
    for (size_t i = 0; i < end; i++) {
        copy[i] = i >= start || text.ptr[i] == '\n' ? text.ptr[i] : ' ';
    }
    return (td_str){.ptr = copy, .len = end};
}

static int manifest_parse_value(struct td_arena *arena, td_str text, uint32_t line,
                                struct td_json **ret, struct td_error *err)
{
    struct td_json_problems duplicates = {.arena = arena};
    const struct td_json_options options = {
        .track_lines = true, .first_line = line, .problems = &duplicates};
    int code = td_json_parse(arena, text, &options, ret, err);
    if (code == TD_OK && duplicates.count > 0) {
        return td_error_set(err, TD_INVALID, "%.*s", TD_STR_ARG(duplicates.items[0]));
    }
    return code;
}

/* One value after the other, as `kubectl` reads them and `jq -c` writes them. */
static int manifest_parse_json(struct td_arena *arena, td_str text, struct td_yaml_documents *ret,
                               struct td_error *err)
{
    size_t cap = 0;
    uint32_t line = 1;
    size_t start = 0;
    do {
        struct td_json_reader reader;
        td_str rest = td_str_slice(text, start, text.len);
        td_json_reader_init(&reader, rest, 0);
        bool is_cut = td_json_reader_skip(&reader) < 0;
        size_t end = is_cut ? text.len : start + (size_t)(reader.at - reader.begin);
        while (end < text.len && memchr(" \t\r\n", text.ptr[end], 4)) {
            end++;
        }
        struct td_json *tree = NULL;
        int code = manifest_parse_value(arena, td_str_slice(text, start, end), line, &tree, err);
        if (code < 0 && start > 0) {
            return manifest_parse_value(arena, manifest_blank(arena, text, start, end), 1, &tree,
                                        err);
        }
        if (code < 0) {
            return code;
        }
        ret->items = td_arena_grow(arena, ret->items, ret->count, &cap, sizeof(*ret->items));
        ret->items[ret->count++] = tree;
        for (; start < end; start++) {
            line += text.ptr[start] == '\n';
        }
    } while (start < text.len);
    return TD_OK;
}

/* What begins as JSON and is none may still be YAML. */
static int manifest_parse(struct td_arena *arena, td_str file, td_str text,
                          struct td_yaml_documents *ret, struct td_error *err)
{
    if (!td_manifest_is_json(file, text)) {
        return td_yaml_parse(arena, text, ret, err);
    }
    struct td_yaml_documents documents = {.count = 0};
    int code = manifest_parse_json(arena, manifest_skip_mark(text), &documents, err);
    if (code < 0 && !td_str_ends_with(file, TD_STR(".json"))) {
        return td_yaml_parse(arena, text, ret, err);
    }
    if (code == TD_OK) {
        *ret = documents;
    }
    return code;
}

/* Both parsers say "line 3 column 7: what" or "line 3: what"; users and editors expect "FILE:3:7:
 * what". */
static int manifest_fail(td_str file, const struct td_error *cause, struct td_error *err)
{
    td_str message = td_str_from(cause->message);
    td_str rest = message;
    td_str place[2] = {TD_STR_EMPTY, TD_STR_EMPTY};
    const td_str words[2] = {TD_STR("line "), TD_STR(" column ")};
    for (size_t i = 0; i < 2 && td_str_starts_with(rest, words[i]); i++) {
        size_t end = words[i].len;
        while (end < rest.len && rest.ptr[end] >= '0' && rest.ptr[end] <= '9') {
            end++;
        }
        place[i] = td_str_slice(rest, words[i].len, end);
        rest = td_str_slice(rest, end, rest.len);
    }
    if (place[0].len == 0 || !td_str_starts_with(rest, TD_STR(": "))) {
        return td_error_set(err, cause->code, "%.*s: %.*s", TD_STR_ARG(file), TD_STR_ARG(message));
    }
    return td_error_set(err, cause->code, "%.*s:%.*s%s%.*s%.*s", TD_STR_ARG(file),
                        TD_STR_ARG(place[0]), place[1].len > 0 ? ":" : "", TD_STR_ARG(place[1]),
                        TD_STR_ARG(rest));
}

int td_manifest_parse(struct td_arena *arena, td_str file, td_str text,
                      struct td_yaml_documents *ret, struct td_error *err)
{
    struct td_error cause = TD_ERROR_INIT;
    if (manifest_parse(arena, file, text, ret, &cause) < 0) {
        return manifest_fail(file, &cause, err);
    }
    return TD_OK;
}

int td_manifest_read(struct td_arena *arena, td_str file, td_str text, struct td_manifest *manifest,
                     struct td_error *err)
{
    struct td_yaml_documents documents = {.count = 0};
    int code = td_manifest_parse(arena, file, text, &documents, err);
    size_t count_before = manifest->count;
    for (size_t i = 0; code == TD_OK && i < documents.count; i++) {
        code = td_manifest_add(arena, file, documents.items[i], manifest, err);
    }
    manifest->count = code == TD_OK ? manifest->count : count_before;
    return code;
}
