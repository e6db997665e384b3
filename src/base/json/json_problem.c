#include "base/json/json_problem.h"

/* As Go's %q, for the bytes that occur in names: quotes, backslashes and control characters. */
static void problem_put_name(td_str name, struct td_buf *out)
{
    for (size_t i = 0; i < name.len && !out->is_full; i++) {
        char byte = name.ptr[i];
        static const char letters[] = "abtnvfr";
        if (byte == '"' || byte == '\\') {
            (void)td_buf_append_format(out, "\\%c", byte);
        } else if (byte >= '\a' && byte <= '\r') {
            (void)td_buf_append_format(out, "\\%c", letters[byte - '\a']);
        } else if ((unsigned char)byte < 0x20 || byte == 0x7F) {
            (void)td_buf_append_format(out, "\\x%02x", (unsigned)byte);
        } else {
            (void)td_buf_append_char(out, byte);
        }
    }
}

static void problem_put_member(td_str name, bool is_first, struct td_buf *out)
{
    if (!is_first) {
        (void)td_buf_append_char(out, '.');
    }
    problem_put_name(name, out);
}

/* A path longer than the buffer is cut at a whole character. */
static void problem_cut(struct td_buf *out)
{
    static const td_str mark = TD_STR_INIT("...");
    size_t len = out->max - 1 - mark.len;
    len = len < out->len ? len : out->len;
    while (len > 0 && ((unsigned char)out->ptr[len] & 0xC0) == 0x80) {
        len--;
    }
    td_str kept = {.ptr = out->ptr, .len = len};
    out->is_full = false;
    out->len = kept.len;
    (void)td_buf_append(out, mark);
}

void td_json_problem_duplicate(struct td_json_problems *problems,
                               const struct td_json *const path[], uint32_t depth, td_str key)
{
    if (problems->count == TD_STRICT_PROBLEMS_MAX) {
        problems->is_cut = true;
        return;
    }
    td_auto_buf text = td_buf_capped(TD_STRICT_PATH_BYTES_MAX);
    (void)td_buf_append(&text, TD_STR("duplicate field \""));
    for (uint32_t i = 0; i < depth && !text.is_full; i++) {
        if (path[i]->type == TD_JSON_TYPE_ARRAY) {
            (void)td_buf_append_format(&text, "[%zu]", path[i]->count - 1);
        } else {
            td_str name = i + 1 < depth ? path[i + 1]->key : key;
            problem_put_member(name, i == 0, &text);
        }
    }
    if (text.is_full) {
        problem_cut(&text);
    }
    text.max++; /* room for the closing quote whatever was cut */
    (void)td_buf_append_char(&text, '"');
    for (size_t i = 0; i < problems->count; i++) {
        if (td_str_equal(problems->items[i], td_buf_str(&text))) {
            return;
        }
    }
    problems->items[problems->count++] = td_arena_copy_str(problems->arena, td_buf_str(&text));
}
