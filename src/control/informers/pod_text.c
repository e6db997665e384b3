/*
 * The text is compact JSON, which has no bytes below 0x20: those are the marks.
 *
 *     text
 * {"name":"web-7f-x1","restartCount":2,"startTime":"2026-01-02T03:04:05Z","phase":"Running"} shape
 * {"name":"N","restartCount":C,"startTime":"T","phase":"Running"}     N, C, T: one byte each values
 * 02 | 20260102030405 as a number of six bytes
 *
 * A string that equals one that the object has anyway needs no value. A time is one by its form,
 * whatever its member is called; texts and counts that differ from pod to pod are known by the
 * name of their member. What is not recognised stays in the shape: right, but shared by fewer.
 */
#include "control/informers/pod_text.h"

#include <stdint.h>

#include "base/assert.h"

enum {
    MARK_NAME = 1,
    MARK_UID,
    MARK_VERSION,
    MARK_NODE,
    MARK_TIME,  /* six bytes, the lowest first */
    MARK_TEXT,  /* its length as a number, then its bytes */
    MARK_COUNT, /* seven bits a byte, the lowest first, all but the last with the top bit set */
    MARKS,
};

#define TIME_FORM "0000-00-00T00:00:00Z" /* a digit for each 0 */
#define TIME_LEN (sizeof(TIME_FORM) - 1)
#define TIME_BYTES 6 /* 14 digits are less than 2^48 */
#define COUNT_DIGITS_MAX 18

static bool is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

/* ---- Values ---- */

static void put_count(struct td_buf *values, uint64_t count)
{
    for (; count >= 0x80; count >>= 7) {
        (void)td_buf_append_char(values, (char)(count | 0x80));
    }
    (void)td_buf_append_char(values, (char)count);
}

static uint64_t take_count(td_str *values)
{
    uint64_t count = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        td_assert(values->len > 0);
        unsigned char byte = (unsigned char)values->ptr[0];
        *values = td_str_slice(*values, 1, values->len);
        count |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            break;
        }
    }
    return count;
}

static bool time_digits(td_str text, uint64_t *ret)
{
    uint64_t digits = 0;
    for (size_t i = 0; i < TIME_LEN; i++) {
        bool is_wanted_digit = TIME_FORM[i] == '0';
        if (is_wanted_digit ? !is_digit(text.ptr[i]) : text.ptr[i] != TIME_FORM[i]) {
            return false;
        }
        digits = is_wanted_digit ? digits * 10 + (uint64_t)(text.ptr[i] - '0') : digits;
    }
    *ret = digits;
    return true;
}

static void put_time(struct td_buf *values, uint64_t digits)
{
    for (unsigned i = 0; i < TIME_BYTES; i++) {
        (void)td_buf_append_char(values, (char)(digits >> 8 * i));
    }
}

static void take_time(td_str *values, char out[TIME_LEN])
{
    uint64_t digits = 0;
    td_assert(values->len >= TIME_BYTES);
    for (unsigned i = 0; i < TIME_BYTES; i++) {
        digits |= (uint64_t)(unsigned char)values->ptr[i] << 8 * i;
    }
    *values = td_str_slice(*values, TIME_BYTES, values->len);
    for (size_t i = TIME_LEN; i-- > 0;) {
        bool is_wanted_digit = TIME_FORM[i] == '0';
        out[i] = is_wanted_digit ? (char)('0' + digits % 10) : TIME_FORM[i];
        digits = is_wanted_digit ? digits / 10 : digits;
    }
}

/* ---- Splitting ---- */

static const td_str own_texts[] = {
    TD_STR_INIT("containerID"),
    TD_STR_INIT("message"),
    TD_STR_INIT("apps.kubernetes.io/pod-index"),
    TD_STR_INIT("batch.kubernetes.io/job-completion-index"),
};

static const td_str own_counts[] = {
    TD_STR_INIT("restartCount"),
    TD_STR_INIT("generation"),
    TD_STR_INIT("observedGeneration"),
};

static bool is_among(td_str text, const td_str *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (td_str_equal(text, list[i])) {
            return true;
        }
    }
    return false;
}

/* The mark of a text that the object has, or 0. */
static int known_mark(td_str text, const struct td_pod_text_known *known)
{
    const td_str texts[] = {known->name, known->uid, known->version, known->node};
    for (int i = 0; i < (int)TD_COUNT(texts) && text.len > 0; i++) {
        if (td_str_equal(text, texts[i])) {
            return MARK_NAME + i;
        }
    }
    return 0;
}

/* The mark for a text that is the value of `member`, its value put; 0: it stays in the shape. */
static int split_text(td_str text, td_str member, const struct td_pod_text_known *known,
                      struct td_buf *values)
{
    uint64_t digits;
    int mark = known_mark(text, known);
    if (mark == 0 && text.len == TIME_LEN && time_digits(text, &digits)) {
        put_time(values, digits);
        mark = MARK_TIME;
    } else if (mark == 0 && is_among(member, own_texts, TD_COUNT(own_texts))) {
        put_count(values, text.len);
        (void)td_buf_append(values, text);
        mark = MARK_TEXT;
    }
    return mark;
}

/* The quote that ends the string behind `from`; text.len: there is none, or a mark is before it. */
static size_t string_end(td_str text, size_t from)
{
    while (from < text.len && text.ptr[from] != '"') {
        if ((unsigned char)text.ptr[from] < MARKS) {
            return text.len;
        }
        bool is_escape = text.ptr[from] == '\\' && from + 1 < text.len;
        from += is_escape && (unsigned char)text.ptr[from + 1] >= MARKS ? 2 : 1;
    }
    return from < text.len ? from : text.len;
}

/* How many digits at `from` are a whole number as it is usually written; 0: none. */
static size_t count_digits(td_str text, size_t from, uint64_t *ret)
{
    size_t len = 0;
    uint64_t count = 0;
    while (from + len < text.len && is_digit(text.ptr[from + len]) && len < COUNT_DIGITS_MAX) {
        count = count * 10 + (uint64_t)(text.ptr[from + len] - '0');
        len++;
    }
    char after = from + len < text.len ? text.ptr[from + len] : '\0';
    bool is_whole = after == ',' || after == '}';
    bool is_plain = len == 1 || (len > 1 && text.ptr[from] != '0');
    *ret = count;
    return is_whole && is_plain ? len : 0;
}

/* One text on its way into two. */
struct split {
    td_str text;
    size_t done;   /* that much is in the shape */
    td_str member; /* the last one that was begun */
    const struct td_pod_text_known *known;
    struct td_buf *shape;
    struct td_buf *values;
};

/* A mark in place of what is between. */
static void split_at(struct split *split, size_t from, size_t to, int mark)
{
    (void)td_buf_append(split->shape, td_str_slice(split->text, split->done, from));
    (void)td_buf_append_char(split->shape, (char)mark);
    split->done = to;
}

/* From the quote at `at`; the place behind the string, or text.len + 1: there is no end. */
static size_t split_string(struct split *split, size_t at)
{
    size_t end = string_end(split->text, at + 1);
    td_str string = td_str_slice(split->text, at + 1, end);
    if (end + 1 < split->text.len && split->text.ptr[end + 1] == ':') {
        split->member = string;
    } else if (end < split->text.len) {
        int mark = split_text(string, split->member, split->known, split->values);
        if (mark != 0) {
            split_at(split, at + 1, end, mark);
        }
    }
    return end + 1;
}

bool td_pod_text_split(td_str text, const struct td_pod_text_known *known, struct td_buf *shape,
                       struct td_buf *values)
{
    struct split split = {.text = text, .known = known, .shape = shape, .values = values};
    size_t at = 0;
    while (at < text.len) {
        uint64_t count;
        size_t digits = 0;
        if ((unsigned char)text.ptr[at] < MARKS) {
            return false;
        }
        if (text.ptr[at] == '"') {
            at = split_string(&split, at);
            continue;
        }
        if (text.ptr[at] == ':' && is_among(split.member, own_counts, TD_COUNT(own_counts)) &&
            (digits = count_digits(text, at + 1, &count)) > 0) {
            put_count(values, count);
            split_at(&split, at + 1, at + 1 + digits, MARK_COUNT);
        }
        at += 1 + digits;
    }
    if (at == text.len) {
        (void)td_buf_append(shape, td_str_slice(text, split.done, text.len));
    }
    return at == text.len && !shape->is_full && !values->is_full;
}

/* ---- Joining ---- */

static void join_mark(struct td_buf *out, int mark, td_str *values,
                      const struct td_pod_text_known *known)
{
    char time[TIME_LEN];
    const td_str texts[] = {known->name, known->uid, known->version, known->node};
    if (mark < MARK_TIME) {
        (void)td_buf_append(out, texts[mark - MARK_NAME]);
    } else if (mark == MARK_TIME) {
        take_time(values, time);
        (void)td_buf_append(out, (td_str){.ptr = time, .len = TIME_LEN});
    } else if (mark == MARK_TEXT) {
        size_t len = take_count(values);
        td_assert(len <= values->len);
        (void)td_buf_append(out, td_str_slice(*values, 0, len));
        *values = td_str_slice(*values, len, values->len);
    } else {
        td_assert(mark == MARK_COUNT);
        (void)td_buf_append_int64(out, (int64_t)take_count(values));
    }
}

void td_pod_text_join(td_str shape, td_str values, const struct td_pod_text_known *known,
                      struct td_buf *out)
{
    for (size_t at = 0; at < shape.len; at++) {
        size_t from = at;
        while (at < shape.len && (unsigned char)shape.ptr[at] >= MARKS) {
            at++;
        }
        (void)td_buf_append(out, td_str_slice(shape, from, at));
        if (at < shape.len) {
            join_mark(out, shape.ptr[at], &values, known);
        }
    }
}
