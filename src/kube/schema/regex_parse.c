/*
 * The syntax: alternatives of sequences of repeated atoms, read by one function each. Flags in
 * force ((?i), (?s), (?m)) are part of the reader and restored where a group ends.
 */
#include "kube/schema/regex_private.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"

#define REGEX_REPEAT_MAX 1000u /* in {n,m}, as RE2 */
#define REGEX_KELVIN 0x212au   /* folds to k */
#define REGEX_LONG_S 0x17fu    /* folds to s */

struct regex_reader {
    struct td_arena *arena;
    td_str text;
    size_t at;
    struct td_error *err;
    int code; /* the first failure */
    bool ignores_case;
    bool dot_is_all;
    bool has_lines;
};

static const struct regex_range regex_digits[] = {{'0', '9'}};
static const struct regex_range regex_words[] = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
static const struct regex_range regex_spaces[] = {{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}};

uint32_t td_regex_rune(td_str text, size_t *ret_bytes)
{
    const unsigned char *p = (const unsigned char *)text.ptr;
    size_t bytes = p[0] < 0x80 ? 1 : td_str_utf8_char(text);
    static const unsigned char masks[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    if (bytes == 0) {
        *ret_bytes = 1;
        return p[0];
    }
    uint32_t rune = p[0] & masks[bytes];
    for (size_t i = 1; i < bytes; i++) {
        rune = rune << 6 | (p[i] & 0x3f);
    }
    *ret_bytes = bytes;
    return rune;
}

bool td_regex_has(const struct regex_class *class, uint32_t rune)
{
    for (size_t i = 0; i < class->count; i++) {
        if (rune >= class->ranges[i].low && rune <= class->ranges[i].high) {
            return !class->is_negated;
        }
    }
    return class->is_negated;
}

/* --- reading --- */

static bool reader_fail(struct regex_reader *reader, int code, const char *what)
{
    if (reader->code == TD_OK) {
        reader->code = td_error_set(reader->err, code, "pattern '%.*s': %s at byte %zu",
                                    TD_STR_ARG(reader->text), what, reader->at);
    }
    return false;
}

static bool reader_more(const struct regex_reader *reader)
{
    return reader->code == TD_OK && reader->at < reader->text.len;
}

static bool reader_is(const struct regex_reader *reader, const char *text)
{
    return reader_more(reader) &&
           td_str_starts_with(td_str_slice(reader->text, reader->at, reader->text.len),
                              td_str_from(text));
}

static bool reader_take(struct regex_reader *reader, const char *text)
{
    bool is_there = reader_is(reader, text);
    reader->at += is_there ? strlen(text) : 0;
    return is_there;
}

/* Is the next byte one of these? Most are none, so that all other questions are spared them. */
static bool reader_is_any(const struct regex_reader *reader, const char *bytes)
{
    char c = reader_more(reader) ? reader->text.ptr[reader->at] : '\0';
    return c != '\0' && strchr(bytes, c);
}

static uint32_t reader_rune(struct regex_reader *reader)
{
    size_t bytes = 0;
    uint32_t rune = td_regex_rune(td_str_slice(reader->text, reader->at, reader->text.len), &bytes);
    reader->at += bytes;
    return rune;
}

/* --- classes --- */

static void class_add(struct regex_reader *reader, struct regex_class *class, uint32_t low,
                      uint32_t high)
{
    class->ranges = td_arena_grow(reader->arena, class->ranges, class->count, &class->cap,
                                  sizeof(class->ranges[0]));
    class->ranges[class->count++] = (struct regex_range){low, high};
}

/* Adds the other case of what a range has of the letters from `first` on. */
static void class_add_case(struct regex_reader *reader, struct regex_class *class,
                           struct regex_range range, uint32_t first, int32_t shift)
{
    uint32_t low = range.low > first ? range.low : first;
    uint32_t high = range.high < first + 25 ? range.high : first + 25;
    if (low <= high) {
        class_add(reader, class, (uint32_t)((int32_t)low + shift),
                  (uint32_t)((int32_t)high + shift));
    }
}

static bool range_has(struct regex_range range, uint32_t rune)
{
    return rune >= range.low && rune <= range.high;
}

/* A range as the flags have it. Beyond ASCII only the two letters that fold into it are known. */
static void class_add_folded(struct regex_reader *reader, struct regex_class *class, uint32_t low,
                             uint32_t high)
{
    struct regex_range range = {low, high};
    class_add(reader, class, low, high);
    if (!reader->ignores_case) {
        return;
    }
    bool is_all = low <= 0x80 && high == REGEX_RUNE_MAX;
    if (high >= 0x80 && !is_all) {
        (void)reader_fail(reader, TD_LIMIT, "letters beyond ASCII in any case are not known");
        return;
    }
    class_add_case(reader, class, range, 'A', 'a' - 'A');
    class_add_case(reader, class, range, 'a', 'A' - 'a');
    if (range_has(range, 'k') || range_has(range, 'K')) {
        class_add(reader, class, REGEX_KELVIN, REGEX_KELVIN);
    }
    if (range_has(range, 's') || range_has(range, 'S')) {
        class_add(reader, class, REGEX_LONG_S, REGEX_LONG_S);
    }
}

static int range_compare(const void *a, const void *b)
{
    const struct regex_range *left = a;
    const struct regex_range *right = b;
    return (left->low > right->low) - (left->low < right->low);
}

/* Adds what a small set lacks. The set is copied, since folding may have put it out of order. */
static void class_add_others(struct regex_reader *reader, struct regex_class *class,
                             struct regex_class set)
{
    uint32_t next = 0;
    qsort(set.ranges, set.count, sizeof(set.ranges[0]), range_compare);
    for (size_t i = 0; i < set.count; i++) {
        if (set.ranges[i].low > next) {
            class_add(reader, class, next, set.ranges[i].low - 1);
        }
        next = set.ranges[i].high >= next ? set.ranges[i].high + 1 : next;
    }
    class_add(reader, class, next, REGEX_RUNE_MAX);
}

static void class_add_set(struct regex_reader *reader, struct regex_class *class,
                          const struct regex_range *ranges, size_t count, bool is_negated)
{
    struct regex_class set = {.ranges = NULL};
    for (size_t i = 0; i < count; i++) {
        class_add_folded(reader, is_negated ? &set : class, ranges[i].low, ranges[i].high);
    }
    if (is_negated) {
        class_add_others(reader, class, set);
    }
}

/* \d, \w, \s and their opposites; false when it is none of them. */
static bool class_take_perl(struct regex_reader *reader, struct regex_class *class)
{
    static const struct {
        const char *text;
        const struct regex_range *ranges;
        size_t count;
        bool is_negated;
    } rows[] = {
        {"\\d", regex_digits, 1, false}, {"\\D", regex_digits, 1, true},
        {"\\w", regex_words, 4, false},  {"\\W", regex_words, 4, true},
        {"\\s", regex_spaces, 3, false}, {"\\S", regex_spaces, 3, true},
    };
    for (size_t i = 0; i < TD_COUNT(rows); i++) {
        if (reader_take(reader, rows[i].text)) {
            class_add_set(reader, class, rows[i].ranges, rows[i].count, rows[i].is_negated);
            return true;
        }
    }
    return false;
}

/* [:alpha:] and the like, inside brackets. */
static bool class_take_posix(struct regex_reader *reader, struct regex_class *class)
{
    static const struct {
        const char *name;
        size_t count;
        struct regex_range ranges[4];
    } rows[] = {
        {"alnum:]", 3, {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}},
        {"alpha:]", 2, {{'A', 'Z'}, {'a', 'z'}}},
        {"ascii:]", 1, {{0, 0x7f}}},
        {"blank:]", 2, {{'\t', '\t'}, {' ', ' '}}},
        {"cntrl:]", 2, {{0, 0x1f}, {0x7f, 0x7f}}},
        {"digit:]", 1, {{'0', '9'}}},
        {"graph:]", 1, {{'!', '~'}}},
        {"lower:]", 1, {{'a', 'z'}}},
        {"print:]", 1, {{' ', '~'}}},
        {"punct:]", 4, {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}},
        {"space:]", 2, {{'\t', '\r'}, {' ', ' '}}},
        {"upper:]", 1, {{'A', 'Z'}}},
        {"word:]", 4, {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}},
        {"xdigit:]", 3, {{'0', '9'}, {'A', 'F'}, {'a', 'f'}}},
    };
    size_t from = reader->at;
    if (!reader_take(reader, "[:")) {
        return false;
    }
    bool is_negated = reader_take(reader, "^");
    for (size_t i = 0; i < TD_COUNT(rows); i++) {
        if (reader_take(reader, rows[i].name)) {
            class_add_set(reader, class, rows[i].ranges, rows[i].count, is_negated);
            return true;
        }
    }
    td_str rest = td_str_slice(reader->text, reader->at, reader->text.len);
    size_t colon = td_str_find(rest, ':', 0);
    reader->at = from;
    if (colon + 1 < rest.len && rest.ptr[colon + 1] == ']') {
        return reader_fail(reader, TD_INVALID, "unknown character class");
    }
    return false; /* an ordinary bracket */
}

static int regex_hex(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    char lower = (char)(c | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/* Behind "\x": two digits, or any number of them in braces. */
static uint32_t reader_hex(struct regex_reader *reader)
{
    bool is_braced = reader_take(reader, "{");
    size_t count = 0;
    uint32_t rune = 0;
    while (reader_more(reader) && regex_hex(reader->text.ptr[reader->at]) >= 0 &&
           rune <= REGEX_RUNE_MAX && (is_braced || count < 2)) {
        rune = rune * 16 + (uint32_t)regex_hex(reader->text.ptr[reader->at++]);
        count++;
    }
    bool is_whole = is_braced ? count > 0 && reader_take(reader, "}") : count == 2;
    if (!is_whole || rune > REGEX_RUNE_MAX) {
        (void)reader_fail(reader, TD_INVALID, "bad hexadecimal escape");
    }
    return rune;
}

/* One octal escape: \0, \01, \012; \1 to \7 only with more digits, since \1 would refer back. */
static uint32_t reader_octal(struct regex_reader *reader, uint32_t first)
{
    uint32_t rune = first - '0';
    size_t count = 1;
    while (reader_more(reader) && count < 3 && reader->text.ptr[reader->at] >= '0' &&
           reader->text.ptr[reader->at] <= '7') {
        rune = rune * 8 + (uint32_t)(reader->text.ptr[reader->at++] - '0');
        count++;
    }
    if (first != '0' && count == 1) {
        (void)reader_fail(reader, TD_INVALID, "references back are not regular");
    }
    return rune;
}

/* The character of an escape; the backslash was taken. */
static uint32_t reader_escape(struct regex_reader *reader)
{
    static const char letters[] = "aftnrv";
    static const char values[] = "\a\f\t\n\r\v";
    if (!reader_more(reader)) {
        (void)reader_fail(reader, TD_INVALID, "a backslash at the end");
        return 0;
    }
    uint32_t rune = reader_rune(reader);
    const char *letter = rune < 0x80 && rune != 0 ? strchr(letters, (int)rune) : NULL;
    if (letter) {
        return (uint32_t)values[letter - letters];
    }
    if (rune == 'x') {
        return reader_hex(reader);
    }
    if (rune >= '0' && rune <= '7') {
        return reader_octal(reader, rune);
    }
    if (rune == 'p' || rune == 'P' || rune == 'C') {
        (void)reader_fail(reader, TD_LIMIT, "Unicode classes are not known");
        return 0;
    }
    bool is_word = (rune >= '0' && rune <= '9') || (rune >= 'A' && rune <= 'Z') ||
                   (rune >= 'a' && rune <= 'z');
    if (rune >= 0x80 || is_word) {
        (void)reader_fail(reader, TD_INVALID, "unknown escape");
    }
    return rune;
}

static uint32_t class_rune(struct regex_reader *reader)
{
    if (!reader_more(reader)) {
        (void)reader_fail(reader, TD_INVALID, "a bracket that is not closed");
        return 0;
    }
    return reader_take(reader, "\\") ? reader_escape(reader) : reader_rune(reader);
}

/* One range or single character inside brackets. */
static void class_take_range(struct regex_reader *reader, struct regex_class *class)
{
    uint32_t low = class_rune(reader);
    uint32_t high = low;
    if (reader_is(reader, "-") && !reader_is(reader, "-]")) {
        reader->at++;
        high = class_rune(reader);
    }
    if (high < low) {
        (void)reader_fail(reader, TD_INVALID, "a range that ends before it begins");
    }
    if (reader->code == TD_OK) {
        class_add_folded(reader, class, low, high);
    }
}

static struct regex_node *regex_new(struct regex_reader *reader, enum regex_kind kind)
{
    struct regex_node *node = td_arena_new(reader->arena, struct regex_node);
    node->kind = kind;
    node->steps = kind == REGEX_CLASS || kind == REGEX_PLACE;
    node->work = 1;
    node->copies = 1;
    return node;
}

/* A node whose program is too large ends the reading; counts below it are small, so that sums and
 * products of them fit. */
static struct regex_node *regex_sized(struct regex_reader *reader, struct regex_node *node)
{
    if (node->steps >= TD_REGEX_STEPS_MAX) {
        (void)reader_fail(reader, TD_LIMIT, "more steps than are kept");
    } else if (node->work > TD_REGEX_WORK_MAX) {
        (void)reader_fail(reader, TD_LIMIT, "more work than is done");
    }
    return node;
}

/* A sequence, or one more alternative. */
static struct regex_node *regex_join(struct regex_reader *reader, enum regex_kind kind,
                                     struct regex_node *left, struct regex_node *right)
{
    struct regex_node *node = regex_new(reader, kind);
    node->left = left;
    node->right = right;
    node->copies = left->copies > right->copies ? left->copies : right->copies;
    node->steps = left->steps + right->steps + (kind == REGEX_EITHER);
    node->work += left->work + right->work;
    return regex_sized(reader, node);
}

/* As RE2: counts inside each other must not multiply to more than 1,000 copies. */
static struct regex_node *regex_repeat(struct regex_reader *reader, struct regex_node *body,
                                       uint32_t least, uint32_t most)
{
    struct regex_node *node = regex_new(reader, REGEX_REPEAT);
    bool is_endless = most == REGEX_NONE;
    uint32_t copies = is_endless ? least + 1 : most;
    uint32_t factor = is_endless && least == 0 ? 1 : (is_endless ? least : most);
    node->left = body;
    node->least = least;
    node->most = most;
    node->copies = body->copies * factor;
    node->steps = copies * body->steps + (is_endless ? 1 : most - least);
    node->work += copies * (body->work + 1);
    if (node->copies > REGEX_REPEAT_MAX) {
        (void)reader_fail(reader, TD_INVALID, "bad repeat count");
    }
    return regex_sized(reader, node);
}

static struct regex_node *regex_new_class(struct regex_reader *reader, struct regex_class **ret)
{
    struct regex_node *node = regex_new(reader, REGEX_CLASS);
    *ret = td_arena_new(reader->arena, struct regex_class);
    node->class = *ret;
    return node;
}

/* [...]; the bracket was taken. A bracket that closes at once stands for itself. */
static struct regex_node *regex_brackets(struct regex_reader *reader)
{
    struct regex_class *class;
    struct regex_node *node = regex_new_class(reader, &class);
    class->is_negated = reader_take(reader, "^");
    bool is_first = true;
    while (reader->code == TD_OK && (is_first || !reader_is(reader, "]"))) {
        bool is_set = class_take_posix(reader, class) || class_take_perl(reader, class);
        if (!is_set && reader->code == TD_OK) {
            class_take_range(reader, class);
        }
        is_first = false;
    }
    reader->at++;
    return node;
}

/* --- atoms, sequences, alternatives --- */

static struct regex_node *regex_either(struct regex_reader *reader, unsigned depth);

static struct regex_node *regex_literal(struct regex_reader *reader, uint32_t rune)
{
    struct regex_class *class;
    struct regex_node *node = regex_new_class(reader, &class);
    class_add_folded(reader, class, rune, rune);
    return node;
}

/* Flags as in "(?i-s)" or "(?i:"; false when the text has none. */
static bool regex_flags(struct regex_reader *reader)
{
    bool is_on = true;
    bool has_letters = false;
    while (reader_more(reader) && !reader_is(reader, ":") && !reader_is(reader, ")")) {
        char c = reader->text.ptr[reader->at++];
        if (c == '-' && is_on) {
            is_on = false;
            has_letters = false;
            continue;
        }
        reader->ignores_case = c == 'i' ? is_on : reader->ignores_case;
        reader->dot_is_all = c == 's' ? is_on : reader->dot_is_all;
        reader->has_lines = c == 'm' ? is_on : reader->has_lines;
        has_letters = true;
        if (c == '\0' || !strchr("imsU", c)) {
            return reader_fail(reader, TD_INVALID, "unknown flag");
        }
    }
    return (is_on || has_letters) ? true : reader_fail(reader, TD_INVALID, "flags without letters");
}

/* "name>" of a group that has one. */
static void regex_group_name(struct regex_reader *reader)
{
    size_t from = reader->at;
    while (reader_more(reader) && !reader_is(reader, ">")) {
        char c = reader->text.ptr[reader->at++];
        bool is_word =
            (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
        if (!is_word) {
            (void)reader_fail(reader, TD_INVALID, "bad group name");
        }
    }
    if (reader->at == from || !reader_take(reader, ">")) {
        (void)reader_fail(reader, TD_INVALID, "bad group name");
    }
}

/* "(?i)": flags that hold until the group around them ends, and no part of the sequence. */
static bool regex_take_flags(struct regex_reader *reader)
{
    td_str rest = td_str_slice(reader->text, reader->at, reader->text.len);
    size_t end = 2;
    while (end < rest.len && rest.ptr[end] != '\0' && strchr("imsU-", rest.ptr[end])) {
        end++;
    }
    if (!reader_is(reader, "(?") || end >= rest.len || rest.ptr[end] != ')') {
        return false;
    }
    reader->at += 2;
    (void)(regex_flags(reader) && reader_take(reader, ")")); /* a failure is in the reader */
    return true;
}

/* (...); the parenthesis was taken. Flags set inside a group end with it. */
static struct regex_node *regex_group(struct regex_reader *reader, unsigned depth)
{
    struct regex_reader before = *reader;
    if (reader_take(reader, "?P<") || reader_take(reader, "?<")) {
        regex_group_name(reader);
    } else if (reader_take(reader, "?")) {
        if (!regex_flags(reader)) {
            return regex_new(reader, REGEX_EMPTY);
        }
        (void)reader_take(reader, ":");
    }
    struct regex_node *node = regex_either(reader, depth + 1);
    if (!reader_take(reader, ")")) {
        (void)reader_fail(reader, TD_INVALID, "a group that is not closed");
    }
    reader->ignores_case = before.ignores_case;
    reader->dot_is_all = before.dot_is_all;
    reader->has_lines = before.has_lines;
    return node;
}

/* A place between characters, or NULL. */
static struct regex_node *regex_take_place(struct regex_reader *reader)
{
    const struct {
        const char *text;
        enum regex_place place;
    } rows[] = {
        {"^", reader->has_lines ? REGEX_LINE_START : REGEX_TEXT_START},
        {"$", reader->has_lines ? REGEX_LINE_END : REGEX_TEXT_END},
        {"\\A", REGEX_TEXT_START},
        {"\\z", REGEX_TEXT_END},
        {"\\b", REGEX_WORD_BOUNDARY},
        {"\\B", REGEX_NO_BOUNDARY},
    };
    for (size_t i = 0; i < TD_COUNT(rows); i++) {
        if (reader_take(reader, rows[i].text)) {
            struct regex_node *node = regex_new(reader, REGEX_PLACE);
            node->place = rows[i].place;
            return node;
        }
    }
    return NULL;
}

static struct regex_node *regex_atom(struct regex_reader *reader, unsigned depth)
{
    struct regex_class *class;
    if (!reader_is_any(reader, "^$\\([.")) {
        return regex_literal(reader, reader_rune(reader));
    }
    struct regex_node *place = regex_take_place(reader);
    if (place) {
        return place;
    }
    if (reader_take(reader, "(")) {
        return regex_group(reader, depth);
    }
    if (reader_take(reader, "[")) {
        return regex_brackets(reader);
    }
    if (reader_take(reader, ".")) {
        struct regex_node *node = regex_new_class(reader, &class);
        class_add(reader, class, 0, reader->dot_is_all ? REGEX_RUNE_MAX : '\n' - 1);
        if (!reader->dot_is_all) {
            class_add(reader, class, '\n' + 1, REGEX_RUNE_MAX);
        }
        return node;
    }
    struct regex_node *node = regex_new_class(reader, &class);
    if (class_take_perl(reader, class)) {
        return node;
    }
    reader->at++; /* a backslash: nothing else is left */
    return regex_literal(reader, reader_escape(reader));
}

static bool reader_count(struct regex_reader *reader, uint32_t *ret)
{
    size_t from = reader->at;
    uint32_t count = 0;
    while (reader_more(reader) && reader->text.ptr[reader->at] >= '0' &&
           reader->text.ptr[reader->at] <= '9') {
        uint32_t digit = (uint32_t)(reader->text.ptr[reader->at++] - '0');
        count = count > REGEX_REPEAT_MAX ? count : count * 10 + digit;
    }
    *ret = count;
    return reader->at > from;
}

/* "{n}", "{n,}" or "{n,m}"; what only looks like it is text. */
static bool reader_take_counts(struct regex_reader *reader, uint32_t *least, uint32_t *most)
{
    size_t from = reader->at;
    bool is_counts = reader_take(reader, "{") && reader_count(reader, least);
    *most = *least;
    if (is_counts && reader_take(reader, ",")) {
        *most = REGEX_NONE;
        (void)(!reader_is(reader, "}") &&
               reader_count(reader, most)); /* else the brace is missing */
    }
    if (!is_counts || !reader_take(reader, "}")) {
        reader->at = from;
        return false;
    }
    bool is_bad = *least > REGEX_REPEAT_MAX ||
                  (*most != REGEX_NONE && (*most > REGEX_REPEAT_MAX || *most < *least));
    if (is_bad) {
        (void)reader_fail(reader, TD_INVALID, "bad repeat count");
    }
    return true;
}

static bool reader_take_repeat(struct regex_reader *reader, uint32_t *least, uint32_t *most)
{
    *least = 0;
    *most = REGEX_NONE;
    if (!reader_is_any(reader, "*+?{")) {
        return false;
    }
    if (reader_take(reader, "*")) {
        return true;
    }
    if (reader_take(reader, "+")) {
        *least = 1;
        return true;
    }
    if (reader_take(reader, "?")) {
        *most = 1;
        return true;
    }
    return reader_take_counts(reader, least, most);
}

/* The repeat that may follow an atom. */
static struct regex_node *regex_suffix(struct regex_reader *reader, struct regex_node *node)
{
    uint32_t least;
    uint32_t most;
    if (!reader_take_repeat(reader, &least, &most)) {
        return node;
    }
    (void)reader_take(reader, "?"); /* greedy or not, it matches the same texts */
    if (reader->code != TD_OK) {
        return node;
    }
    struct regex_node *repeat = regex_repeat(reader, node, least, most);
    if (reader_take_repeat(reader, &least, &most)) {
        (void)reader_fail(reader, TD_INVALID, "a repeat of a repeat");
    }
    return repeat;
}

static struct regex_node *regex_repeated(struct regex_reader *reader, unsigned depth)
{
    uint32_t least;
    uint32_t most;
    if (reader_take_repeat(reader, &least, &most)) {
        (void)reader_fail(reader, TD_INVALID, "a repeat of nothing");
        return regex_new(reader, REGEX_EMPTY); /* nothing may be left to read */
    }
    struct regex_node *node = regex_atom(reader, depth);
    return reader->code == TD_OK ? regex_suffix(reader, node) : node;
}

/* "\Q...\E", not empty: everything between stands for itself; a repeat behind it is of the last
 * character. */
static struct regex_node *regex_quoted(struct regex_reader *reader, struct regex_node *before)
{
    bool is_open = true;
    while (is_open && reader_more(reader)) {
        struct regex_node *letter = regex_literal(reader, reader_rune(reader));
        is_open = !reader_take(reader, "\\E");
        before = regex_join(reader, REGEX_CONCAT, before,
                            is_open ? letter : regex_suffix(reader, letter));
    }
    return before;
}

/* A repeat behind flags or behind an empty quote is of what stands before those, as RE2 has it. */
static struct regex_node *regex_repeat_last(struct regex_reader *reader,
                                            struct regex_node *sequence)
{
    if (reader->code != TD_OK || sequence->kind != REGEX_CONCAT) {
        return sequence;
    }
    struct regex_node *last = regex_suffix(reader, sequence->right);
    return last == sequence->right ? sequence
                                   : regex_join(reader, REGEX_CONCAT, sequence->left, last);
}

static struct regex_node *regex_sequence(struct regex_reader *reader, unsigned depth)
{
    struct regex_node *sequence = regex_new(reader, REGEX_EMPTY);
    while (reader_more(reader) && !reader_is_any(reader, "|)")) {
        bool is_special = reader_is_any(reader, "\\(");
        if (is_special && (reader_take(reader, "\\Q\\E") || regex_take_flags(reader))) {
            sequence = regex_repeat_last(reader, sequence);
            continue;
        }
        if (is_special && reader_take(reader, "\\Q")) {
            sequence = regex_quoted(reader, sequence);
            continue;
        }
        sequence = regex_join(reader, REGEX_CONCAT, sequence, regex_repeated(reader, depth));
    }
    return sequence;
}

static struct regex_node *regex_either(struct regex_reader *reader, unsigned depth)
{
    if (depth > TD_REGEX_DEPTH_MAX) {
        (void)reader_fail(reader, TD_LIMIT, "groups are too deep");
        return regex_new(reader, REGEX_EMPTY);
    }
    struct regex_node *node = regex_sequence(reader, depth);
    while (reader_take(reader, "|")) {
        node = regex_join(reader, REGEX_EITHER, node, regex_sequence(reader, depth));
    }
    return node;
}

int td_regex_parse(struct td_arena *arena, td_str pattern, struct regex_node **ret,
                   struct td_error *err)
{
    struct regex_reader reader = {.arena = arena, .text = pattern, .err = err};
    if (pattern.len > TD_REGEX_BYTES_MAX) {
        return td_error_set(err, TD_LIMIT, "pattern of %zu bytes is too long", pattern.len);
    }
    struct regex_node *node = regex_either(&reader, 0);
    if (reader.code == TD_OK && reader.at < pattern.len) {
        (void)reader_fail(&reader, TD_INVALID, "a parenthesis that was not opened");
    }
    if (reader.code == TD_OK) {
        *ret = node;
    }
    return reader.code;
}
