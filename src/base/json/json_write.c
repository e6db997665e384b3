/* Trees as text, compact or indented. Strings are escaped as Go escapes them. */
#include "base/json/json.h"

#include "base/json/json_scan.h"
#include "base/json/json_stack.h"
#include "base/limits.h"

/* Append inside the memory that is there; td_buf_append grows it and keeps the cap. */
JSON_INLINE void write_bytes(struct td_buf *out, const char *bytes, size_t len)
{
    if (out->is_full || len >= out->cap - out->len) {
        (void)td_buf_append(out, (td_str){.ptr = bytes, .len = len}); /* the buffer remembers */
        return;
    }
    memcpy(out->ptr + out->len, bytes, len);
    out->len += len;
    out->ptr[out->len] = '\0';
}

JSON_INLINE void write_char(struct td_buf *out, char byte)
{
    write_bytes(out, &byte, 1);
}

#define WRITE_HTML 'h'

/* What stands for a byte: 0 for itself, 'u' for \u00XX, WRITE_HTML for that only with escape_html,
 * 'w' for bytes of wider characters, else the letter of its escape. */
static const char write_escapes[256] = {
    [0x00 ... 0x07] = 'u', ['\b'] = 'b',          ['\t'] = 't',       ['\n'] = 'n',
    [0x0B] = 'u',          ['\f'] = 'f',          ['\r'] = 'r',       [0x0E ... 0x1F] = 'u',
    ['"'] = '"',           ['&'] = WRITE_HTML,    ['<'] = WRITE_HTML, ['>'] = WRITE_HTML,
    ['\\'] = '\\',         [0x80 ... 0xFF] = 'w',
};

/* Length of a character that is not ASCII and is written as it is, or 0: for bytes that are not
 * UTF-8, and for U+2028 and U+2029, which end lines in JavaScript, so that Go escapes them always.
 */
static size_t write_wide(const char *at, size_t len)
{
    size_t n = td_json_scan_utf8_char(at, len);
    bool is_separator =
        n == 3 && memcmp(at, "\xE2\x80", 2) == 0 && ((unsigned char)at[2] & 0xFE) == 0xA8;
    return is_separator ? 0 : n;
}

/* How many bytes from `at` are written as they are. */
static size_t write_plain(const char *at, size_t len, bool escape_html)
{
    size_t i = 0;
    for (;;) {
        while (!escape_html && len - i >= JSON_SCAN_WIDTH &&
               json_scan_plain(at + i) == JSON_SCAN_WIDTH) {
            i += JSON_SCAN_WIDTH;
        }
        if (i == len) {
            return i;
        }
        char escape = write_escapes[(unsigned char)at[i]];
        size_t n = escape == 0 || (escape == WRITE_HTML && !escape_html);
        if (escape == 'w') {
            n = write_wide(at + i, len - i);
        }
        if (n == 0) {
            return i;
        }
        i += n;
    }
}

/* The escape of what is at `at`; returns how many bytes it stands for. */
static size_t write_escape(const char *at, size_t len, struct td_buf *out)
{
    static const char hex[] = "0123456789abcdef";
    unsigned char byte = (unsigned char)*at;
    char letter = write_escapes[byte];
    if (letter == 'w') {
        /* Go's replacement for what is not UTF-8, so that whatever is written can be read. */
        size_t n = td_json_scan_utf8_char(at, len);
        write_bytes(out,
                    n == 0                         ? "\\ufffd"
                    : (unsigned char)at[2] == 0xA8 ? "\\u2028"
                                                   : "\\u2029",
                    6);
        return n == 0 ? 1 : n;
    }
    if (letter == 'u' || letter == WRITE_HTML) {
        char text[6] = {'\\', 'u', '0', '0', hex[byte >> 4], hex[byte & 15]};
        write_bytes(out, text, sizeof(text));
    } else {
        char text[2] = {'\\', letter};
        write_bytes(out, text, sizeof(text));
    }
    return 1;
}

void td_json_write_string(td_str text, bool escape_html, struct td_buf *out)
{
    write_char(out, '"');
    size_t at = 0;
    while (at < text.len) {
        size_t plain = write_plain(text.ptr + at, text.len - at, escape_html);
        write_bytes(out, text.ptr + at, plain);
        at += plain;
        if (at < text.len) {
            at += write_escape(text.ptr + at, text.len - at, out);
        }
    }
    write_char(out, '"');
}

static void write_newline(const struct td_json_format *format, size_t level, struct td_buf *out)
{
    static const char spaces[] = "                                ";
    if (format->indent <= 0) {
        return;
    }
    write_char(out, '\n');
    size_t left = level * (size_t)format->indent;
    while (left > 0 && !out->is_full) {
        size_t n = left < sizeof(spaces) - 1 ? left : sizeof(spaces) - 1;
        write_bytes(out, spaces, n);
        left -= n;
    }
}

/* A scalar, or the opening of a collection; returns whether there are children to write. */
static bool write_one(const struct td_json *node, const struct td_json_format *format,
                      struct td_buf *out)
{
    switch (node->type) {
    case TD_JSON_TYPE_NULL:
        write_bytes(out, "null", 4);
        return false;
    case TD_JSON_TYPE_BOOL:
        write_bytes(out, node->boolean ? "true" : "false", node->boolean ? 4 : 5);
        return false;
    case TD_JSON_TYPE_NUMBER:
        write_bytes(out, node->text.ptr, node->text.len);
        return false;
    case TD_JSON_TYPE_STRING:
        td_json_write_string(node->text, format->escape_html, out);
        return false;
    default:
        break;
    }
    bool is_object = node->type == TD_JSON_TYPE_OBJECT;
    if (!node->head_child) {
        write_bytes(out, is_object ? "{}" : "[]", 2);
        return false;
    }
    write_char(out, is_object ? '{' : '[');
    return true;
}

void td_json_write(const struct td_json *node, const struct td_json_format *format,
                   struct td_buf *out)
{
    static const struct td_json_format compact = {0};
    format = format ? format : &compact;
    if (!write_one(node, format, out)) {
        return;
    }
    struct json_stack stack;
    json_stack_init(&stack);
    json_stack_push(&stack, (struct json_stack_frame){.parent = node, .child = node->head_child});
    while (stack.count > 0 && !out->is_full) {
        struct json_stack_frame *top = json_stack_top(&stack);
        const struct td_json *parent = top->parent;
        const struct td_json *child = top->child;
        bool is_object = parent->type == TD_JSON_TYPE_OBJECT;
        if (!child) {
            write_newline(format, stack.count - 1, out);
            write_char(out, is_object ? '}' : ']');
            stack.count--;
            continue;
        }
        if (child != parent->head_child) {
            write_char(out, ',');
        }
        write_newline(format, stack.count, out);
        if (is_object) {
            td_json_write_string(child->key, format->escape_html, out);
            write_bytes(out, ": ", format->indent > 0 ? 2 : 1);
        }
        top->child = child->next;
        if (write_one(child, format, out)) {
            json_stack_push(&stack,
                            (struct json_stack_frame){.parent = child, .child = child->head_child});
        }
    }
    json_stack_done(&stack);
}

td_str td_json_line(struct td_arena *arena, const struct td_json *node)
{
    td_auto_buf text = td_buf_capped(TD_JSON_BYTES_MAX);
    td_json_write(node, &(struct td_json_format){.indent = 0}, &text);
    return td_arena_copy_str(arena, td_buf_str(&text));
}
