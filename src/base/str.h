/*
 * String slices: a pointer and a length, never NUL-terminated by promise, never owning. The owner
 * of the bytes keeps them alive; functions that return a slice into their input say so. Copies live
 * in an arena (td_arena_copy_str).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct {
    const char *ptr; /* may be NULL only when len is 0 */
    size_t len;
} td_str;

#define TD_STR(literal) ((td_str){.ptr = "" literal, .len = sizeof(literal) - 1})
#define TD_STR_INIT(literal)                                                                       \
    {                                                                                              \
        .ptr = "" literal, .len = sizeof(literal) - 1                                              \
    } /* static tables */
#define TD_STR_EMPTY ((td_str){.ptr = "", .len = 0})

/* Items of an array whose size the compiler knows. */
#define TD_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* What an English noun has behind that many of it. */
#define TD_PLURAL(count) ((count) == 1 ? "" : "s")

/* For printf: "%.*s", TD_STR_ARG(name). Slices longer than INT_MAX are cut. */
#define TD_STR_ARG(s) ((s).len > INT32_MAX ? INT32_MAX : (int)(s).len), ((s).ptr ? (s).ptr : "")

/* The slice of a NUL-terminated text; NULL gives the empty slice. */
td_str td_str_from(const char *text);

static inline bool td_str_equal(td_str a, td_str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}
static inline bool td_str_is_among(td_str text, const td_str *list, size_t count)
{
    size_t i = 0;
    while (i < count && !td_str_equal(list[i], text)) {
        i++;
    }
    return i < count;
}

/* Byte order, shorter first when one is the start of the other; as Go compares strings. */
int td_str_compare(td_str a, td_str b);

/* td_str_compare for qsort over an array of td_str, or of structs that begin with one. */
int td_str_compare_items(const void *a, const void *b);

/* The first place in such an array, sorted, whose text is not below `text`; `count` past the last.
 */
size_t td_str_place(const void *items, size_t count, size_t item_bytes, td_str text);

bool td_str_starts_with(td_str s, td_str prefix);
bool td_str_ends_with(td_str s, td_str suffix);

/* Index of the first `byte` at or after `from`, or s.len. */
size_t td_str_find(td_str s, char byte, size_t from);

/* The part [from, to); both are clamped to the length. */
td_str td_str_slice(td_str s, size_t from, size_t to);

/* Without spaces, tabs, CR and LF at both ends. */
td_str td_str_trim(td_str s);

/* Whole text as a decimal int64: optional sign, digits, nothing else; false when malformed or out
 * of range (*ret is then untouched). Same texts as Go's strconv.ParseInt(s, 10, 64). */
bool td_str_to_int64(td_str s, int64_t *ret);

/* Is it well-formed UTF-8 (no surrogates, no overlong forms, at most U+10FFFF)? */
bool td_str_is_utf8(td_str s);

/* Bytes of the well-formed UTF-8 character that `s` begins with (1 to 4), 0 when there is none. */
size_t td_str_utf8_char(td_str s);

/* The longest start of `s` of at most `bytes_max` bytes that does not end inside a character. */
td_str td_str_cut_utf8(td_str s, size_t bytes_max);

/* The name that was meant by a word that is none of them: the one with the fewest letters to put
 * in, take out, exchange or swap, at most 2, of short words 1; the first of equals. NULL: none
 * comes near. A row begins with its name as a `const char *`; NULL is passed over. */
const char *td_str_suggest(td_str given, const void *rows, size_t count, size_t row_bytes);
