/*
 * JSON from every side: the tree, the tokens and skip accept the same texts; jansson agrees on them
 * and on the values; what is written reads back as the same value and is written the same again;
 * and a stream gives the same values however it is cut.
 */
#include <stddef.h>
#include <stdint.h>

#include "../support/json_oracle.h"
#include "base/assert.h"
#include "base/error.h"
#include "base/json/json.h"
#include "base/json/json_reader.h"
#include "base/json/json_stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int fuzz_tokens(td_str text, struct td_arena *arena)
{
    struct td_json_reader reader;
    td_json_reader_init(&reader, text, 0);
    enum td_json_token token;
    while ((token = td_json_reader_next(&reader)) > TD_JSON_END) {
        int64_t whole;
        if (token == TD_JSON_KEY) {
            td_str name = td_json_reader_decode(&reader, arena);
            td_assert(td_json_reader_key_is(&reader, name));
            td_assert(td_str_is_utf8(name));
        } else if (token == TD_JSON_NUMBER) {
            (void)td_json_reader_int64(&reader, &whole); /* only that it is safe */
        }
    }
    return reader.code;
}

static int fuzz_skip(td_str text)
{
    struct td_json_reader reader;
    td_json_reader_init(&reader, text, 0);
    if (td_json_reader_skip(&reader) == TD_OK) {
        (void)td_json_reader_next(&reader); /* the code is what counts */
    }
    return reader.code;
}

/* Reads back equal, and is written the same the second time. */
static void fuzz_round_trip(struct td_arena *arena, const struct td_json *root,
                            const struct td_json_format *format)
{
    td_auto_buf first;
    td_auto_buf second;
    td_buf_init(&first, (size_t)1 << 28);
    td_buf_init(&second, (size_t)1 << 28);
    td_json_write(root, format, &first);
    struct td_json *back = NULL;
    td_assert(td_json_parse(arena, td_buf_str(&first), NULL, &back, NULL) == TD_OK);
    td_assert(td_json_equal(root, back));
    td_assert(td_json_equal(back, root));
    td_json_write(back, format, &second);
    td_assert(td_str_equal(td_buf_str(&first), td_buf_str(&second)));
}

static void fuzz_tree(struct td_arena *arena, const struct td_json *root)
{
    fuzz_round_trip(arena, root, NULL);
    fuzz_round_trip(arena, root, &(struct td_json_format){.indent = 1, .escape_html = true});
    struct td_json *copy = td_json_copy(arena, root, true);
    td_json_sort(arena, copy);
    td_assert(td_json_equal(root, copy));
    td_assert(td_json_depth(root) == td_json_depth(copy));
    while (copy->type == TD_JSON_TYPE_OBJECT && copy->count > 0) {
        td_assert(td_json_remove(copy, copy->count % 2 ? td_json_first_child(copy)->key
                                                       : td_json_last_child(copy)->key));
    }
}

/* Everything that comes out, each value followed by a bar, and the final code. */
static int fuzz_split(td_str text, size_t cut, struct td_buf *out)
{
    struct td_json_stream stream;
    td_json_stream_init(&stream, (size_t)1 << 26);
    td_str pieces[] = {td_str_slice(text, 0, cut), td_str_slice(text, cut, text.len), TD_STR_EMPTY};
    int code = TD_OK;
    for (size_t i = 0; i < 3; i++) {
        code = i < 2 ? td_json_stream_feed(&stream, pieces[i], NULL)
                     : td_json_stream_finish(&stream, NULL);
        td_str value;
        while (td_json_stream_next(&stream, &value)) {
            (void)td_buf_append(out, value);
            (void)td_buf_append_char(out, '|');
        }
    }
    td_json_stream_done(&stream);
    return code;
}

static void fuzz_stream(td_str text, bool is_json)
{
    td_auto_buf whole;
    td_auto_buf cut;
    td_buf_init(&whole, (size_t)1 << 26);
    td_buf_init(&cut, (size_t)1 << 26);
    int code = fuzz_split(text, text.len, &whole);
    size_t step = text.len / 16 + 1;
    for (size_t at = text.len > 0 ? (unsigned char)text.ptr[0] % step : 0; at < text.len;
         at += step) {
        td_buf_reset(&cut);
        td_assert(fuzz_split(text, at, &cut) == code);
        td_assert(td_str_equal(td_buf_str(&whole), td_buf_str(&cut)));
    }
    if (is_json) {
        td_str value = td_str_trim(text);
        td_assert(code == TD_OK && whole.len == value.len + 1);
        td_assert(td_str_starts_with(td_buf_str(&whole), value));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    td_str text = {.ptr = (const char *)data, .len = size};
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    struct td_json_problems problems = {.arena = &arena};
    struct td_json_options options = {.track_lines = true, .problems = &problems};
    struct td_json *root = NULL;
    struct td_error err = TD_ERROR_INIT;
    int code = td_json_parse(&arena, text, &options, &root, &err);
    td_assert(fuzz_tokens(text, &arena) == code);
    td_assert(fuzz_skip(text) == code);
    td_assert(json_oracle_judge(text, code, root) != JSON_ORACLE_DIFFERS);
    if (code == TD_OK) {
        fuzz_tree(&arena, root);
    } else {
        td_assert(err.code == code);
    }
    fuzz_stream(text, code == TD_OK);
    return 0;
}
