/* The public pull reader: one step of json_scan.h at a time, with the stack of open containers. */
#include "base/json/json_reader.h"

#include "base/arena.h"
#include "base/assert.h"
#include "base/error.h"
#include "base/json/json_number.h"
#include "base/json/json_scan.h"

void td_json_reader_init(struct td_json_reader *reader, td_str text, uint32_t depth_max)
{
    const char *begin = text.ptr ? text.ptr : "";
    if (depth_max == 0 || depth_max > TD_JSON_DEPTH_MAX) {
        depth_max = TD_JSON_DEPTH_MAX;
    }
    *reader = (struct td_json_reader){
        .at = begin,
        .end = begin + text.len,
        .begin = begin,
        .text = TD_STR_EMPTY,
        .depth_max = depth_max,
        .expect = TD_JSON_EXPECT_VALUE,
    };
}

enum td_json_token td_json_reader_next(struct td_json_reader *reader)
{
    enum td_json_token token = TD_JSON_ERROR;
    uint8_t expect = reader->expect;
    const char *at = json_scan_step(reader, reader->at, reader->end, &expect, &token);
    if (!at) {
        return TD_JSON_ERROR;
    }
    reader->at = at;
    reader->expect = expect;
    return token;
}

/* Steps until `depth` collections are open and a value is complete. */
static int reader_skip_to(struct td_json_reader *reader, uint32_t depth)
{
    const char *at = reader->at;
    const char *end = reader->end;
    uint8_t expect = reader->expect;
    do {
        enum td_json_token token;
        at = json_scan_step(reader, at, end, &expect, &token);
        if (!at) {
            return reader->code;
        }
    } while (reader->depth > depth || expect < TD_JSON_EXPECT_AFTER_MEMBER);
    reader->at = at;
    reader->expect = expect;
    return TD_OK;
}

int td_json_reader_skip(struct td_json_reader *reader)
{
    switch (reader->expect) {
    case TD_JSON_EXPECT_VALUE:
        return reader_skip_to(reader, reader->depth);
    case TD_JSON_EXPECT_FIRST_MEMBER:
    case TD_JSON_EXPECT_FIRST_ITEM:
        return reader_skip_to(reader, reader->depth - 1);
    default:
        return reader->code;
    }
}

td_str td_json_reader_decode(const struct td_json_reader *reader, struct td_arena *arena)
{
    if (!reader->has_escape) {
        return reader->text;
    }
    char *out = td_arena_alloc(arena, reader->text.len + 1);
    size_t len = td_json_scan_unescape(reader->text, out);
    out[len] = '\0';
    return (td_str){.ptr = out, .len = len};
}

bool td_json_reader_escaped_key_is(const struct td_json_reader *reader, td_str name)
{
    return td_json_scan_is_unescaped(reader->text, name);
}

bool td_json_reader_int64(const struct td_json_reader *reader, int64_t *ret)
{
    return td_json_number_to_int64(reader->text, ret);
}

int td_json_reader_error(const struct td_json_reader *reader, struct td_error *err)
{
    td_assert(reader->code < 0);
    size_t line = 1;
    size_t column = 1;
    for (const char *p = reader->begin; p < reader->at; p++) {
        if (*p == '\n') {
            line++;
            column = 1;
        } else {
            column += ((unsigned char)*p & 0xC0) != 0x80; /* characters, as an editor counts */
        }
    }
    if (reader->begin == reader->end) {
        return td_error_set(err, reader->code, "line 1 column 1: the text is empty");
    }
    if (reader->code == TD_LIMIT) {
        return td_error_set(err, TD_LIMIT, "line %zu column %zu: nested deeper than %u levels",
                            line, column, (unsigned)reader->depth_max);
    }
    return td_error_set(err, reader->code, "line %zu column %zu: %s", line, column,
                        reader->problem);
}
