/*
 * Go escapes what has no visible form; the ranges of those characters are a table here. ASCII has
 * its own short escapes.
 */
#include "kube/quote.h"

#include <stdbool.h>
#include <stdint.h>

/* Characters above ASCII without a visible form (separators, controls, formats, private use, and
 * the blocks at the end that hold nothing else), in order. */
static const struct {
    uint32_t first;
    uint32_t last;
} quote_hidden[] = {
    {0x80, 0xa0},        {0xad, 0xad},       {0x600, 0x605},     {0x61c, 0x61c},
    {0x6dd, 0x6dd},      {0x70f, 0x70f},     {0x890, 0x891},     {0x8e2, 0x8e2},
    {0x1680, 0x1680},    {0x180e, 0x180e},   {0x2000, 0x200f},   {0x2028, 0x202f},
    {0x205f, 0x206f},    {0x3000, 0x3000},   {0xe000, 0xf8ff},   {0xfeff, 0xfeff},
    {0xfff0, 0xfffb},    {0xfffe, 0xffff},   {0x110bd, 0x110bd}, {0x110cd, 0x110cd},
    {0x13430, 0x1343f},  {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe00ff},
    {0xe01f0, 0x10ffff},
};

static bool quote_is_hidden(uint32_t character)
{
    for (size_t i = 0; i < TD_COUNT(quote_hidden); i++) {
        if (character <= quote_hidden[i].last) {
            return character >= quote_hidden[i].first;
        }
    }
    return false;
}

/* The character of a whole UTF-8 sequence. */
static uint32_t quote_decode(td_str sequence)
{
    static const uint8_t lead_masks[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t character = (uint8_t)sequence.ptr[0] & lead_masks[sequence.len];
    for (size_t i = 1; i < sequence.len; i++) {
        character = character << 6 | ((uint8_t)sequence.ptr[i] & 0x3f);
    }
    return character;
}

/* The letter behind the backslash of an ASCII character that has one, or 0. */
static char quote_letter(char byte)
{
    switch (byte) {
    case '"':
    case '\\':
        return byte;
    case '\a':
        return 'a';
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
    case '\v':
        return 'v';
    default:
        return 0;
    }
}

/* By hand: a text of 3 MiB of such bytes is quoted without a format call for each. */
static void quote_byte(uint8_t byte, struct td_buf *out)
{
    static const char digits[] = "0123456789abcdef";
    const char escape[] = {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
    (void)td_buf_append(out, (td_str){escape, sizeof(escape)});
}

static void quote_ascii(char byte, struct td_buf *out)
{
    char letter = quote_letter(byte);
    if (letter != 0) {
        (void)td_buf_append(out, (td_str){(const char[]){'\\', letter}, 2});
    } else if (byte < ' ' || byte == 0x7f) {
        quote_byte((uint8_t)byte, out);
    } else {
        (void)td_buf_append_char(out, byte);
    }
}

/* One character; `sequence` is empty when the byte at `at` begins none. */
static void quote_character(td_str sequence, const char *at, struct td_buf *out)
{
    uint32_t character = sequence.len > 0 ? quote_decode(sequence) : 0;
    if (sequence.len == 0) {
        quote_byte((uint8_t)*at, out);
    } else if (sequence.len == 1) {
        quote_ascii(*at, out);
    } else if (!quote_is_hidden(character)) {
        (void)td_buf_append(out, sequence);
    } else {
        (void)td_buf_append_format(out, character < 0x10000 ? "\\u%04x" : "\\U%08x",
                                   (unsigned)character);
    }
}

void td_quote_write(td_str text, struct td_buf *out)
{
    (void)td_buf_append_char(out, '"');
    for (size_t i = 0; i < text.len;) {
        td_str rest = td_str_slice(text, i, text.len);
        size_t len = td_str_utf8_char(rest);
        quote_character(td_str_slice(rest, 0, len), rest.ptr, out);
        i += len > 0 ? len : 1;
    }
    (void)td_buf_append_char(out, '"');
}
