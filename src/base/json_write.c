#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/json_scan.h"
#include "base/json_stack.h"

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

/* What stands for one ASCII byte: 0 for itself, 'u' for \u00XX, else the letter of its escape. */
static char write_escape_of(unsigned char byte, bool escape_html)
{
    switch (byte) {
    case '"':
    case '\\':
        return (char)byte;
    case '\b':
        return 'b';
    case '\f':
        return 'f';
    case '\n':
        return 'n';
    case '\r':
        return 'r';
    case '\t':
        return 't';
    case '<':
    case '>':
    case '&':
        return escape_html ? 'u' : 0;
    default:
        return byte < 0x20 ? 'u' : 0;
    }
}

static void write_ascii_escape(unsigned char byte, char letter, struct td_buf *out)
{
    static const char hex[] = "0123456789abcdef";
    if (letter == 'u') {
        char text[6] = {'\\', 'u', '0', '0', hex[byte >> 4], hex[byte & 15]};
        write_bytes(out, text, sizeof(text));
    } else {
        char text[2] = {'\\', letter};
        write_bytes(out, text, sizeof(text));
    }
}

/* One character that is not ASCII; returns its length. U+2028 and U+2029 end lines in JavaScript,
 * so Go escapes them always; bytes that are not UTF-8 become U+FFFD, as Go has it, so that what is
 * written can be read. */
static size_t write_wide(const char *at, size_t len, struct td_buf *out)
{
    size_t n = td_json_scan_utf8_char(at, len);
    if (n == 0) {
        write_bytes(out, "\\ufffd", 6);
        return 1;
    }
    if (n == 3 && memcmp(at, "\xE2\x80", 2) == 0 && ((unsigned char)at[2] & 0xFE) == 0xA8) {
        write_bytes(out, (unsigned char)at[2] == 0xA8 ? "\\u2028" : "\\u2029", 6);
        return n;
    }
    write_bytes(out, at, n);
    return n;
}

/* How many bytes from `at` are written as they are. */
static size_t write_plain(const char *at, size_t len, bool escape_html)
{
    size_t i = 0;
    while (!escape_html && len - i >= JSON_SCAN_WIDTH) {
        unsigned n = json_scan_plain(at + i);
        i += n;
        if (n < JSON_SCAN_WIDTH) {
            return i;
        }
    }
    while (i < len && (unsigned char)at[i] < 0x80 &&
           write_escape_of((unsigned char)at[i], escape_html) == 0) {
        i++;
    }
    return i;
}

void td_json_write_string(td_str text, bool escape_html, struct td_buf *out)
{
    write_char(out, '"');
    size_t at = 0;
    while (at < text.len) {
        size_t plain = write_plain(text.ptr + at, text.len - at, escape_html);
        write_bytes(out, text.ptr + at, plain);
        at += plain;
        if (at == text.len) {
            break;
        }
        unsigned char byte = (unsigned char)text.ptr[at];
        if (byte < 0x80) {
            write_ascii_escape(byte, write_escape_of(byte, escape_html), out);
            at++;
        } else {
            at += write_wide(text.ptr + at, text.len - at, out);
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
    if (!node->first) {
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
    json_stack_push(&stack, (struct json_stack_frame){.parent = node, .child = node->first});
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
        if (child != parent->first) {
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
                            (struct json_stack_frame){.parent = child, .child = child->first});
        }
    }
    json_stack_done(&stack);
}
