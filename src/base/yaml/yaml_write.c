/*
 * Readable YAML. Collections are written in block style and scalars in the plainest style that
 * every reader gives back unchanged: unquoted, then a literal block for texts of several lines,
 * then single quotes, then double quotes with escapes. A text that YAML would take for another type
 * gets double quotes ("yes", "1.0"), as kubectl prints it.
 */
#include "base/yaml/yaml.h"

#include <stdbool.h>
#include <stdint.h>

#include "base/assert.h"
#include "base/limits.h"
#include "base/yaml/yaml_scalar.h"

#define YAML_INDENT 2
/* A key without the '?' indicator must end within 1024 characters. */
#define YAML_SIMPLE_KEY_BYTES_MAX 1000
#define YAML_ESCAPE_BYTES_MAX 6 /* \u2028; of wider characters fewer for each byte */

/* Where the text goes, and whether it may have characters beyond ASCII. */
struct yaml_out {
    struct td_buf *buf;
    bool is_ascii;
};

enum yaml_style { STYLE_PLAIN, STYLE_SINGLE, STYLE_DOUBLE, STYLE_LITERAL };

struct yaml_char {
    uint32_t code; /* U+FFFD for bytes that are no character */
    size_t len;
};

/* The character at `at`; the text is taken to be UTF-8, and bytes that are not stand alone. */
static struct yaml_char yaml_char_at(td_str text, size_t at)
{
    unsigned char lead = (unsigned char)text.ptr[at];
    if (lead < 0x80) {
        return (struct yaml_char){.code = lead, .len = 1};
    }
    size_t len = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    if (!td_str_is_utf8(td_str_slice(text, at, at + len))) {
        return (struct yaml_char){.code = 0xFFFD, .len = 1};
    }
    uint32_t code = lead & (0xFFU >> (len + 1));
    for (size_t i = 1; i < len; i++) {
        code = code << 6 | ((unsigned char)text.ptr[at + i] & 0x3FU);
    }
    return (struct yaml_char){.code = code, .len = len};
}

/* Characters that a reader refuses, drops or takes for a line break unless they are escaped. */
static bool yaml_must_escape(struct yaml_char c, bool is_ascii)
{
    return (is_ascii && c.code >= 0x80) || (c.code < 0x20 && c.code != '\n' && c.code != '\t') ||
           (c.code >= 0x7F && c.code <= 0x9F) || c.code == 0x2028 || c.code == 0x2029 ||
           c.code == 0xFEFF || c.code == 0xFFFE || c.code == 0xFFFF ||
           (c.code == 0xFFFD && c.len == 1);
}

struct yaml_survey {
    bool must_escape;
    bool has_tab;
    bool has_break;
    bool has_text; /* anything but line breaks */
};

static struct yaml_survey yaml_survey_text(td_str text, bool is_ascii)
{
    struct yaml_survey survey = {0};
    for (size_t at = 0; at < text.len;) {
        struct yaml_char c = yaml_char_at(text, at);
        survey.must_escape |= yaml_must_escape(c, is_ascii);
        survey.has_tab |= c.code == '\t';
        survey.has_break |= c.code == '\n';
        survey.has_text |= c.code != '\n';
        at += c.len;
    }
    return survey;
}

static bool yaml_is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

/* 1:30 and 12:30:45.5 are numbers of base 60 to some readers, though not to ours. */
static bool yaml_is_base60(td_str text)
{
    size_t at = text.ptr[0] == '+' || text.ptr[0] == '-' ? 1 : 0;
    if (at == text.len || !yaml_is_digit(text.ptr[at])) {
        return false;
    }
    size_t colons = 0;
    for (; at < text.len && text.ptr[at] != '.'; at++) {
        colons += text.ptr[at] == ':' ? 1 : 0;
        if (!yaml_is_digit(text.ptr[at]) && text.ptr[at] != '_' && text.ptr[at] != ':') {
            return false;
        }
    }
    for (; at < text.len; at++) {
        if (!yaml_is_digit(text.ptr[at]) && text.ptr[at] != '_' && text.ptr[at] != '.') {
            return false;
        }
    }
    return colons > 0;
}

/* Would an unquoted `text` be read as something that is no string? */
static bool yaml_is_typed(td_str text)
{
    return td_yaml_resolve_plain(text).kind != TD_YAML_STRING || yaml_is_base60(text) ||
           td_str_equal(text, TD_STR("=")) || td_str_equal(text, TD_STR("<<"));
}

/* Do the characters of `text` mean anything to YAML when they stand unquoted? */
static bool yaml_has_indicators(td_str text)
{
    char first = text.ptr[0];
    char last = text.ptr[text.len - 1];
    bool is_dash = first == '-' && (text.len == 1 || text.ptr[1] == ' ');
    if (is_dash || first == ' ' || last == ' ' || last == ':' ||
        memchr("?:,[]{}#&*!|>'\"%@`", first, 18) || td_str_starts_with(text, TD_STR("---")) ||
        td_str_starts_with(text, TD_STR("..."))) {
        return true;
    }
    for (size_t i = 0; i + 1 < text.len; i++) {
        bool is_colon = text.ptr[i] == ':' && text.ptr[i + 1] == ' ';
        bool is_comment = text.ptr[i] == ' ' && text.ptr[i + 1] == '#';
        if (is_colon || is_comment) {
            return true;
        }
    }
    return false;
}

static enum yaml_style yaml_choose_style(td_str text, bool is_key, bool is_ascii)
{
    struct yaml_survey survey = yaml_survey_text(text, is_ascii);
    if (survey.must_escape) {
        return STYLE_DOUBLE;
    }
    if (survey.has_break) {
        return is_key || !survey.has_text ? STYLE_DOUBLE : STYLE_LITERAL;
    }
    if (survey.has_tab || text.len == 0 || yaml_is_typed(text)) {
        return STYLE_DOUBLE;
    }
    return yaml_has_indicators(text) ? STYLE_SINGLE : STYLE_PLAIN;
}

static void yaml_write_indent(size_t indent, struct td_buf *out)
{
    for (size_t i = 0; i < indent; i++) {
        (void)td_buf_append_char(out, ' '); /* sticky: the owner of the buffer checks it */
    }
}

static void yaml_write_single(td_str text, struct td_buf *out)
{
    (void)td_buf_append_char(out, '\'');
    for (size_t from = 0; from < text.len;) {
        size_t quote = td_str_find(text, '\'', from);
        (void)td_buf_append(out, td_str_slice(text, from, quote));
        if (quote < text.len) {
            (void)td_buf_append(out, TD_STR("''"));
        }
        from = quote + 1;
    }
    (void)td_buf_append_char(out, '\'');
}

static void yaml_write_escape(uint32_t code, struct td_buf *out)
{
    static const struct {
        uint32_t code;
        char letter;
    } letters[] = {{0x00, '0'}, {0x07, 'a'}, {0x08, 'b'}, {'\t', 't'}, {'\n', 'n'}, {0x0B, 'v'},
                   {0x0C, 'f'}, {'\r', 'r'}, {0x1B, 'e'}, {'"', '"'},  {'\\', '\\'}};
    for (size_t i = 0; i < TD_COUNT(letters); i++) {
        if (letters[i].code == code) {
            (void)td_buf_append_char(out, '\\');
            (void)td_buf_append_char(out, letters[i].letter);
            return;
        }
    }
    (void)td_buf_append_format(out,
                               code < 0x100     ? "\\x%02X"
                               : code < 0x10000 ? "\\u%04X"
                                                : "\\U%08X",
                               (unsigned int)code);
}

static void yaml_write_double(td_str text, bool is_ascii, struct td_buf *out)
{
    (void)td_buf_append_char(out, '"');
    for (size_t at = 0; at < text.len;) {
        struct yaml_char c = yaml_char_at(text, at);
        if (yaml_must_escape(c, is_ascii) || c.code == '\n' || c.code == '\t' || c.code == '"' ||
            c.code == '\\') {
            yaml_write_escape(c.code, out);
        } else {
            (void)td_buf_append(out, td_str_slice(text, at, at + c.len));
        }
        at += c.len;
    }
    (void)td_buf_append_char(out, '"');
}

/*
 * A literal block, its lines at `indent`. The header tells how many line breaks end the text: none
 * ("-"), one (nothing) or more ("+"). A first line that is empty or begins with white space would
 * mislead the reader about the indentation, which is then given as a digit.
 */
static void yaml_write_literal(td_str text, size_t indent, struct td_buf *out)
{
    size_t end = text.len;
    while (end > 0 && text.ptr[end - 1] == '\n') {
        end--;
    }
    size_t breaks = text.len - end;
    (void)td_buf_append_char(out, '|');
    if (text.ptr[0] == ' ' || text.ptr[0] == '\t' || text.ptr[0] == '\n') {
        (void)td_buf_append_int64(out, YAML_INDENT);
    }
    if (breaks != 1) {
        (void)td_buf_append_char(out, breaks == 0 ? '-' : '+');
    }
    size_t lines_end = breaks > 0 ? text.len - 1 : text.len;
    for (size_t from = 0; from <= lines_end;) {
        size_t to = td_str_find(td_str_slice(text, 0, lines_end), '\n', from);
        (void)td_buf_append_char(out, '\n');
        if (to > from) {
            yaml_write_indent(indent, out);
            (void)td_buf_append(out, td_str_slice(text, from, to));
        }
        from = to + 1;
    }
}

static void yaml_write_text(td_str text, enum yaml_style style, size_t indent,
                            const struct yaml_out *out)
{
    switch (style) {
    case STYLE_PLAIN:
        (void)td_buf_append(out->buf, text);
        break;
    case STYLE_SINGLE:
        yaml_write_single(text, out->buf);
        break;
    case STYLE_LITERAL:
        yaml_write_literal(text, indent, out->buf);
        break;
    case STYLE_DOUBLE:
    default:
        yaml_write_double(text, out->is_ascii, out->buf);
        break;
    }
}

/* A scalar or an empty collection, up to the end of its line. */
static void yaml_write_leaf(const struct td_json *node, size_t indent, const struct yaml_out *out)
{
    switch (node->type) {
    case TD_JSON_TYPE_BOOL:
        (void)td_buf_append(out->buf, node->boolean ? TD_STR("true") : TD_STR("false"));
        break;
    case TD_JSON_TYPE_NUMBER:
        (void)td_buf_append(out->buf, node->text);
        break;
    case TD_JSON_TYPE_STRING:
        yaml_write_text(node->text, yaml_choose_style(node->text, false, out->is_ascii),
                        indent + YAML_INDENT, out);
        break;
    case TD_JSON_TYPE_ARRAY:
        (void)td_buf_append(out->buf, TD_STR("[]"));
        break;
    case TD_JSON_TYPE_OBJECT:
        (void)td_buf_append(out->buf, TD_STR("{}"));
        break;
    case TD_JSON_TYPE_NULL:
    default:
        (void)td_buf_append(out->buf, TD_STR("null"));
        break;
    }
    (void)td_buf_append_char(out->buf, '\n');
}

/* The key and its colon. A key that is too long to be found without one gets the '?' indicator. */
static void yaml_write_key(td_str key, size_t indent, const struct yaml_out *out)
{
    enum yaml_style style = yaml_choose_style(key, true, out->is_ascii);
    size_t grow = style == STYLE_DOUBLE ? YAML_ESCAPE_BYTES_MAX : style == STYLE_SINGLE ? 2 : 1;
    bool is_long = key.len > YAML_SIMPLE_KEY_BYTES_MAX / grow;
    if (is_long) {
        (void)td_buf_append(out->buf, TD_STR("? "));
    }
    yaml_write_text(key, style, indent, out);
    if (is_long) {
        (void)td_buf_append_char(out->buf, '\n');
        yaml_write_indent(indent, out->buf);
    }
    (void)td_buf_append_char(out->buf, ':');
}

static bool yaml_is_block(const struct td_json *node)
{
    return (node->type == TD_JSON_TYPE_ARRAY || node->type == TD_JSON_TYPE_OBJECT) &&
           node->count > 0;
}

/*
 * The children of a collection that has some, each at `indent`; the first one continues the current
 * line. A list under a key stands at the key's own column, everything else two further in.
 */
static void yaml_write_block(const struct td_json *node, size_t indent, uint32_t depth,
                             const struct yaml_out *out)
{
    if (depth > TD_JSON_DEPTH_MAX) {
        out->buf->is_full = true; /* the reader would refuse it */
        return;
    }
    bool is_object = node->type == TD_JSON_TYPE_OBJECT;
    for (const struct td_json *child = td_json_first_child(node); child && !out->buf->is_full;
         child = child->next) {
        if (child != td_json_first_child(node)) {
            yaml_write_indent(indent, out->buf);
        }
        if (is_object) {
            yaml_write_key(child->key, indent, out);
        } else {
            (void)td_buf_append_char(out->buf, '-');
        }
        if (!yaml_is_block(child)) {
            (void)td_buf_append_char(out->buf, ' ');
            yaml_write_leaf(child, indent, out);
            continue;
        }
        size_t inner = indent + YAML_INDENT;
        if (is_object) {
            inner = child->type == TD_JSON_TYPE_ARRAY ? indent : inner;
            (void)td_buf_append_char(out->buf, '\n');
            yaml_write_indent(inner, out->buf);
        } else {
            (void)td_buf_append_char(out->buf, ' ');
        }
        yaml_write_block(child, inner, depth + 1, out);
    }
}

static void yaml_write(const struct td_json *node, const struct yaml_out *out)
{
    td_assert(node);
    if (yaml_is_block(node)) {
        yaml_write_block(node, 0, 1, out);
    } else {
        yaml_write_leaf(node, 0, out);
    }
}

void td_yaml_write(const struct td_json *node, struct td_buf *out)
{
    yaml_write(node, &(struct yaml_out){.buf = out});
}

void td_yaml_write_ascii(const struct td_json *node, struct td_buf *out)
{
    yaml_write(node, &(struct yaml_out){.buf = out, .is_ascii = true});
}
