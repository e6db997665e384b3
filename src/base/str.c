/* Comparing, searching, trimming and parsing slices. Nothing here allocates. */
#include "base/str.h"

td_str td_str_from(const char *text)
{
    return text ? (td_str){.ptr = text, .len = strlen(text)} : TD_STR_EMPTY;
}

int td_str_compare(td_str a, td_str b)
{
    size_t shared = a.len < b.len ? a.len : b.len;
    int order = shared > 0 ? memcmp(a.ptr, b.ptr, shared) : 0;
    if (order != 0) {
        return order < 0 ? -1 : 1;
    }
    return (a.len > b.len) - (a.len < b.len);
}

int td_str_compare_items(const void *a, const void *b)
{
    return td_str_compare(*(const td_str *)a, *(const td_str *)b);
}

size_t td_str_place(const void *items, size_t count, size_t item_bytes, td_str text)
{
    size_t low = 0;
    size_t high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (td_str_compare_items((const char *)items + middle * item_bytes, &text) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

bool td_str_starts_with(td_str s, td_str prefix)
{
    return s.len >= prefix.len && td_str_equal(td_str_slice(s, 0, prefix.len), prefix);
}

bool td_str_ends_with(td_str s, td_str suffix)
{
    return s.len >= suffix.len && td_str_equal(td_str_slice(s, s.len - suffix.len, s.len), suffix);
}

size_t td_str_find(td_str s, char byte, size_t from)
{
    if (from >= s.len) {
        return s.len;
    }
    const char *hit = memchr(s.ptr + from, byte, s.len - from);
    return hit ? (size_t)(hit - s.ptr) : s.len;
}

td_str td_str_slice(td_str s, size_t from, size_t to)
{
    to = to < s.len ? to : s.len;
    from = from < to ? from : to;
    return s.ptr ? (td_str){.ptr = s.ptr + from, .len = to - from} : TD_STR_EMPTY;
}

static bool str_is_space(char byte)
{
    return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n';
}

td_str td_str_trim(td_str s)
{
    size_t from = 0;
    size_t to = s.len;
    while (from < to && str_is_space(s.ptr[from])) {
        from++;
    }
    while (to > from && str_is_space(s.ptr[to - 1])) {
        to--;
    }
    return td_str_slice(s, from, to);
}

bool td_str_to_int64(td_str s, int64_t *ret)
{
    size_t i = 0;
    bool is_negative = false;
    if (s.len > 0 && (s.ptr[0] == '-' || s.ptr[0] == '+')) {
        is_negative = s.ptr[0] == '-';
        i = 1;
    }
    if (i == s.len) {
        return false;
    }
    uint64_t value = 0;
    uint64_t value_max = is_negative ? (uint64_t)INT64_MAX + 1 : (uint64_t)INT64_MAX;
    for (; i < s.len; i++) {
        if (s.ptr[i] < '0' || s.ptr[i] > '9') {
            return false;
        }
        uint64_t digit = (uint64_t)(s.ptr[i] - '0');
        if (value > (value_max - digit) / 10) {
            return false;
        }
        value = value * 10 + digit;
    }
    *ret = is_negative ? (int64_t)(0 - value) : (int64_t)value;
    return true;
}

/* The second byte's range depends on the lead byte: that is what excludes overlong forms (E0, F0),
 * surrogates (ED) and what lies past U+10FFFF (F4). */
size_t td_str_utf8_char(td_str s)
{
    if (s.len == 0) {
        return 0;
    }
    const unsigned char *p = (const unsigned char *)s.ptr;
    unsigned char lead = p[0];
    if (lead < 0x80) {
        return 1;
    }
    size_t need = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    if (lead < 0xC2 || lead > 0xF4 || s.len < need) {
        return 0;
    }
    unsigned char low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    unsigned char high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    if (p[1] < low || p[1] > high) {
        return 0;
    }
    for (size_t i = 2; i < need; i++) {
        if ((p[i] & 0xC0) != 0x80) {
            return 0;
        }
    }
    return need;
}

bool td_str_is_utf8(td_str s)
{
    size_t at = 0;
    while (at < s.len) {
        uint64_t word;
        /* Eight ASCII bytes at a time: nearly all text is. */
        if (s.len - at >= sizeof(word)) {
            memcpy(&word, s.ptr + at, sizeof(word));
            if ((word & 0x8080808080808080) == 0) {
                at += sizeof(word);
                continue;
            }
        }
        size_t n = td_str_utf8_char((td_str){.ptr = s.ptr + at, .len = s.len - at});
        if (n == 0) {
            return false;
        }
        at += n;
    }
    return true;
}

td_str td_str_cut_utf8(td_str s, size_t bytes_max)
{
    if (s.len <= bytes_max) {
        return s;
    }
    /* Go back to the lead byte of the character that the cut would hit. Bytes that are no UTF-8 at
     * all are cut where they are: more than three continuation bytes have no lead. */
    size_t end = bytes_max;
    while (end > 0 && bytes_max - end < 3 && ((unsigned char)s.ptr[end] & 0xC0) == 0x80) {
        end--;
    }
    bool is_inside = end + td_str_utf8_char(td_str_slice(s, end, s.len)) > bytes_max;
    return td_str_slice(s, 0, is_inside ? end : bytes_max);
}

/* ---- What was meant ---- */

#define SUGGEST_BYTES_MAX ((size_t)64) /* of names and of words that may be one */
#define SUGGEST_DISTANCE_MAX ((size_t)2)
#define SUGGEST_SHORT ((size_t)6) /* words below may be one letter off: others are too many */

static size_t suggest_min(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Letters to put in, take out, exchange, or swap with their neighbour; both texts are short. */
static size_t suggest_distance(td_str a, td_str b)
{
    size_t rows[3][SUGGEST_BYTES_MAX + 1];
    for (size_t j = 0; j <= b.len; j++) {
        rows[0][j] = j;
    }
    for (size_t i = 1; i <= a.len; i++) {
        size_t *row = rows[i % 3];
        const size_t *above = rows[(i - 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= b.len; j++) {
            size_t best = above[j - 1] + (a.ptr[i - 1] != b.ptr[j - 1]);
            best = suggest_min(best, suggest_min(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a.ptr[i - 1] == b.ptr[j - 2] && a.ptr[i - 2] == b.ptr[j - 1]) {
                best = suggest_min(best, rows[(i - 2) % 3][j - 2] + 1);
            }
            row[j] = best;
        }
    }
    return rows[a.len % 3][b.len];
}

const char *td_str_suggest(td_str given, const void *rows, size_t count, size_t row_bytes)
{
    const char *nearest = NULL;
    size_t best = (given.len < SUGGEST_SHORT ? 1 : SUGGEST_DISTANCE_MAX) + 1;
    for (size_t i = 0; given.len <= SUGGEST_BYTES_MAX && i < count; i++) {
        const char *name;
        memcpy(&name, (const char *)rows + i * row_bytes, sizeof(name));
        td_str text = td_str_from(name);
        if (text.len == 0 || text.len > SUGGEST_BYTES_MAX) {
            continue;
        }
        /* A name of which nothing is left over was not meant. */
        size_t distance = suggest_distance(given, text);
        if (distance < best && distance < text.len && distance < given.len) {
            best = distance;
            nearest = name;
        }
    }
    return nearest;
}
