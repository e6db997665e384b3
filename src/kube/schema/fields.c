/*
 * Upstream's order of work decides what a text means: split at commas that no backslash escapes,
 * sort the terms as text, then split each at its first operator and unescape the right side. Terms
 * are therefore ordered by what was written ("x==b" before "x=a"). Nothing is trimmed, empty terms
 * are skipped, and so is a term whose two sides are both empty.
 */
#include "kube/schema/fields.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/limits.h"

struct field_term {
    td_str field;
    td_str value; /* still escaped */
    bool is_not;
};

/* The end of the term that begins at `from`: the next comma that is not escaped, or the length. */
static size_t field_term_end(td_str text, size_t from)
{
    bool is_escaped = false;
    for (size_t i = from; i < text.len; i++) {
        char byte = text.ptr[i];
        if (byte == ',' && !is_escaped) {
            return i;
        }
        is_escaped = byte == '\\' && !is_escaped;
    }
    return text.len;
}

/* Counts the terms that are not empty and, when `terms` is given, stores them. */
static size_t field_split(td_str text, td_str *terms)
{
    size_t count = 0;
    for (size_t from = 0; from < text.len;) {
        size_t end = field_term_end(text, from);
        if (end > from && terms) {
            terms[count] = td_str_slice(text, from, end);
        }
        count += end > from;
        from = end + 1;
    }
    return count;
}

/* Splits at the first of "!=", "==" and "="; false when there is none. */
static bool field_split_term(td_str term, struct field_term *ret)
{
    size_t equals = td_str_find(term, '=', 0);
    if (equals == term.len) {
        return false;
    }
    bool is_not = equals > 0 && term.ptr[equals - 1] == '!';
    bool is_double = !is_not && equals + 1 < term.len && term.ptr[equals + 1] == '=';
    ret->field = td_str_slice(term, 0, is_not ? equals - 1 : equals);
    ret->value = td_str_slice(term, equals + (is_double ? 2 : 1), term.len);
    ret->is_not = is_not;
    return true;
}

static bool field_is_special(char byte)
{
    return byte == '\\' || byte == ',' || byte == '=';
}

/* Copies one character to `out` and returns its length. As upstream goes through code points, a
 * malformed byte turns into U+FFFD here, though only in values that hold something to unescape. */
static size_t field_copy_char(td_str text, char *out, size_t *out_len)
{
    static const char replacement[] = "\xEF\xBF\xBD";
    size_t len = td_str_utf8_char(text);
    const char *from = len > 0 ? text.ptr : replacement;
    size_t written = len > 0 ? len : sizeof(replacement) - 1;
    memcpy(out + *out_len, from, written);
    *out_len += written;
    return len > 0 ? len : 1;
}

static int field_unescape_slow(struct td_arena *arena, td_str text, td_str *ret,
                               struct td_error *err)
{
    char *out = td_arena_alloc(arena, text.len * 3); /* each byte may become U+FFFD */
    size_t len = 0;
    for (size_t i = 0; i < text.len;) {
        bool is_escape = text.ptr[i] == '\\';
        if (!is_escape && field_is_special(text.ptr[i])) {
            return td_error_set(err, TD_INVALID,
                                "field selector: '%c' in value '%.*s' needs a backslash in front",
                                text.ptr[i], TD_STR_ARG(text));
        }
        i += is_escape;
        if (is_escape && (i == text.len || !field_is_special(text.ptr[i]))) {
            return td_error_set(err, TD_INVALID,
                                "field selector: in value '%.*s' a backslash escapes neither "
                                "'\\', ',' nor '='",
                                TD_STR_ARG(text));
        }
        i += field_copy_char(td_str_slice(text, i, text.len), out, &len);
    }
    *ret = (td_str){.ptr = out, .len = len};
    return td_arena_check(arena, err);
}

static int field_unescape(struct td_arena *arena, td_str text, td_str *ret, struct td_error *err)
{
    for (size_t i = 0; i < text.len; i++) {
        if (field_is_special(text.ptr[i])) {
            return field_unescape_slow(arena, text, ret, err);
        }
    }
    *ret = text;
    return TD_OK;
}

static int field_parse_term(struct td_arena *arena, td_str text, struct td_field_requirement *ret,
                            struct td_error *err)
{
    struct field_term term;
    if (!field_split_term(text, &term)) {
        return td_error_set(
            err, TD_INVALID,
            "field selector: '%.*s' has none of the operators =, == and !=", TD_STR_ARG(text));
    }
    int code = field_unescape(arena, term.value, &ret->value, err);
    if (code != TD_OK) {
        return code;
    }
    ret->field = term.field;
    ret->is_not = term.is_not;
    return TD_OK;
}

int td_field_selector_parse(struct td_arena *arena, td_str text, struct td_field_selector *ret,
                            struct td_error *err)
{
    if (text.len > TD_SELECTOR_BYTES_MAX) {
        return td_error_set(err, TD_LIMIT, "field selector has %zu bytes, more than %zu", text.len,
                            TD_SELECTOR_BYTES_MAX);
    }
    size_t term_count = field_split(text, NULL);
    td_str *terms = td_arena_array(arena, td_str, term_count);
    (void)field_split(text, terms); /* the same count again */
    if (term_count > 1) {
        qsort(terms, term_count, sizeof(*terms), td_str_compare_items);
    }
    struct td_field_requirement *items =
        td_arena_array(arena, struct td_field_requirement, term_count);
    size_t count = 0;
    int code = td_arena_check(arena, err);
    for (size_t i = 0; i < term_count && code == TD_OK; i++) {
        code = field_parse_term(arena, terms[i], &items[count], err);
        if (code == TD_OK && (items[count].field.len > 0 || items[count].value.len > 0)) {
            count++;
        }
    }
    if (code != TD_OK) {
        return code;
    }
    *ret = (struct td_field_selector){.requirements = items, .count = count};
    return TD_OK;
}

bool td_field_selector_matches(const struct td_field_selector *selector, td_field_get_fn get,
                               void *context)
{
    for (size_t i = 0; i < selector->count; i++) {
        const struct td_field_requirement *requirement = &selector->requirements[i];
        bool is_equal = td_str_equal(get(requirement->field, context), requirement->value);
        if (is_equal == requirement->is_not) {
            return false;
        }
    }
    return true;
}

/* Appends are not checked one by one: a full buffer is sticky and its owner asks at the end. */
static void field_write_value(td_str value, struct td_buf *out)
{
    for (size_t i = 0; i < value.len; i++) {
        if (field_is_special(value.ptr[i])) {
            (void)td_buf_append_char(out, '\\');
        }
        (void)td_buf_append_char(out, value.ptr[i]);
    }
}

void td_field_selector_write(const struct td_field_selector *selector, struct td_buf *out)
{
    for (size_t i = 0; i < selector->count; i++) {
        const struct td_field_requirement *requirement = &selector->requirements[i];
        if (i > 0) {
            (void)td_buf_append_char(out, ',');
        }
        (void)td_buf_append(out, requirement->field);
        (void)td_buf_append(out, requirement->is_not ? TD_STR("!=") : TD_STR("="));
        field_write_value(requirement->value, out);
    }
}
