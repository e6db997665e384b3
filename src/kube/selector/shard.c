/* Shard selectors: from CEL's tree to ranges, matching, and the canonical text. */
#include "kube/selector/shard.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "kube/quote.h"
#include "kube/selector/cel.h"

#define SHARD_HEX_DIGITS 16
#define SHARD_SHOWN_BYTES_MAX 512 /* of a message */

static const td_str shard_namespace = TD_STR_INIT("object.metadata.namespace");
static const td_str shard_uid = TD_STR_INIT("object.metadata.uid");

uint64_t td_shard_hash(td_str text)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < text.len; i++) {
        hash = (hash ^ (unsigned char)text.ptr[i]) * UINT64_C(1099511628211);
    }
    return hash;
}

bool td_shard_range_has(const struct td_shard_range *range, uint64_t hash)
{
    return hash >= range->first && hash <= range->last;
}

bool td_shard_selector_matches(const struct td_shard_selector *selector, td_str ns, td_str uid)
{
    uint64_t hash = td_shard_hash(selector->is_of_uids ? uid : ns);
    bool is_selected = selector->count == 0;
    for (size_t i = 0; i < selector->count && !is_selected; i++) {
        is_selected = td_shard_range_has(&selector->ranges[i], hash);
    }
    return is_selected;
}

void td_shard_selector_write(const struct td_shard_selector *selector, struct td_buf *out)
{
    td_str field = selector->is_of_uids ? shard_uid : shard_namespace;
    for (size_t i = 0; i < selector->count; i++) {
        const struct td_shard_range *range = &selector->ranges[i];
        bool is_last = range->last == UINT64_MAX;
        (void)td_buf_append_format(out,
                                   "%sshardRange(%.*s, '0x%016" PRIx64 "', '0x%s%016" PRIx64 "')",
                                   i > 0 ? " || " : "", TD_STR_ARG(field), range->first,
                                   is_last ? "1" : "", is_last ? 0 : range->last + 1);
    }
}

/* ---- Reading ---- */

struct shard_parser {
    struct td_arena *arena;
    struct td_shard_range *ranges;
    size_t count;
    size_t cap;
    td_str field; /* of the first range */
    td_str other; /* the first field that is another one; empty: none */
    struct td_error *err;
};

static int shard_refuse_quoted(struct td_error *err, const char *name, const char *what,
                               td_str shown, td_str wanted)
{
    td_auto_buf text = td_buf_capped(SHARD_SHOWN_BYTES_MAX);
    (void)td_buf_append_format(&text, "%s%s", name, what);
    td_quote_write(td_str_cut_utf8(shown, SHARD_SHOWN_BYTES_MAX / 8), &text);
    if (wanted.len > 0) {
        (void)td_buf_append_format(&text, " (did you mean \"%.*s\"?)", TD_STR_ARG(wanted));
    }
    return td_error_set(err, TD_INVALID, "%s", td_buf_str(&text).ptr);
}

static bool shard_is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

static int shard_check_digits(const struct shard_parser *parser, const char *name, td_str text)
{
    td_str hex = td_str_slice(text, 2, text.len);
    if (hex.len == 0) {
        return td_error_set(parser->err, TD_INVALID, "%s: hex value is required after '0x'", name);
    }
    if (hex.len > SHARD_HEX_DIGITS + 1) {
        td_str what =
            td_arena_format(parser->arena, ": hex value too long (%zu chars, max 17): ", hex.len);
        return shard_refuse_quoted(parser->err, name, what.ptr, hex, TD_STR_EMPTY);
    }
    size_t good = 0;
    while (good < hex.len && shard_is_hex(hex.ptr[good])) {
        good++;
    }
    if (good < hex.len) {
        td_str rest = td_str_slice(hex, good, hex.len);
        size_t bytes = td_str_utf8_char(rest);
        td_auto_buf what = td_buf_capped(SHARD_SHOWN_BYTES_MAX);
        (void)td_buf_append(&what, TD_STR(": invalid hex character "));
        td_quote_write(td_str_slice(rest, 0, bytes > 0 ? bytes : 1), &what);
        (void)td_buf_append(&what, TD_STR(" in "));
        return shard_refuse_quoted(parser->err, name, td_buf_str(&what).ptr, text, TD_STR_EMPTY);
    }
    if (hex.len > SHARD_HEX_DIGITS && !td_str_equal(hex, TD_STR("10000000000000000"))) {
        return shard_refuse_quoted(
            parser->err, name, ": 17-digit hex value must be '0x10000000000000000' (2^64), got ",
            text, TD_STR_EMPTY);
    }
    if (hex.len < SHARD_HEX_DIGITS) {
        td_str padded = td_arena_format(parser->arena, "0x%.*s%.*s", (int)(16 - hex.len),
                                        "0000000000000000", TD_STR_ARG(hex));
        return shard_refuse_quoted(parser->err, name,
                                   " must be a 0x-prefixed 16-digit hex value, got ", text, padded);
    }
    return TD_OK;
}

/* A bound of a range: 16 digits, or the text of 2^64. */
static int shard_bound(const struct shard_parser *parser, const char *name,
                       const struct td_cel *literal, td_str *ret)
{
    if (literal->kind != TD_CEL_LITERAL) {
        return td_error_set(parser->err, TD_INVALID,
                            "%s must be a string literal (e.g. '0xff'), got expression kind %d",
                            name, (int)literal->kind);
    }
    if (!td_str_equal(literal->name, TD_STR("string"))) {
        return td_error_set(parser->err, TD_INVALID, "%s must be a string literal, got %.*s", name,
                            TD_STR_ARG(literal->name));
    }
    if (!td_str_starts_with(literal->value, TD_STR("0x"))) {
        return shard_refuse_quoted(parser->err, name, " must have '0x' prefix, got ",
                                   literal->value, TD_STR_EMPTY);
    }
    int code = shard_check_digits(parser, name, literal->value);
    if (code == TD_OK) {
        *ret = literal->value;
    }
    return code;
}

/* Of 16 checked digits behind 0x. */
static uint64_t shard_number(td_str text)
{
    uint64_t value = 0;
    for (size_t i = 2; i < text.len; i++) {
        char c = text.ptr[i];
        value = value << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    return value;
}

/* "object.metadata.namespace" of a chain of selects. */
static int shard_field(const struct shard_parser *parser, const struct td_cel *node, td_str *ret)
{
    td_str path = TD_STR_EMPTY;
    while (node->kind == TD_CEL_SELECT && path.len < SHARD_SHOWN_BYTES_MAX) {
        path =
            td_arena_format(parser->arena, ".%.*s%.*s", TD_STR_ARG(node->name), TD_STR_ARG(path));
        node = node->operand;
    }
    if (node->kind != TD_CEL_IDENT && node->kind != TD_CEL_SELECT) {
        return td_error_set(parser->err, TD_INVALID,
                            "shardRange() first argument: expected field path (e.g. "
                            "object.metadata.uid), got expression kind %d",
                            (int)node->kind);
    }
    path = td_arena_format(parser->arena, "%.*s%.*s", TD_STR_ARG(node->name), TD_STR_ARG(path));
    if (!td_str_equal(path, shard_namespace) && !td_str_equal(path, shard_uid)) {
        return td_error_set(parser->err, TD_INVALID,
                            "unsupported field path \"%.*s\"; supported: object.metadata.uid, "
                            "object.metadata.namespace",
                            TD_STR_ARG(path));
    }
    *ret = path;
    return TD_OK;
}

static int shard_add_range(struct shard_parser *parser, const struct td_cel *call)
{
    if (call->count != 3) {
        return td_error_set(parser->err, TD_INVALID,
                            "shardRange() requires exactly 3 arguments, got %zu", call->count);
    }
    td_str field;
    td_str start;
    td_str end;
    int code = shard_field(parser, call->first, &field);
    code = code != TD_OK ? code : shard_bound(parser, "hexStart", call->first->next, &start);
    code = code != TD_OK ? code : shard_bound(parser, "hexEnd", call->last, &end);
    if (code != TD_OK) {
        return code;
    }
    if (start.len > end.len || (start.len == end.len && td_str_compare(start, end) >= 0)) {
        return td_error_set(parser->err, TD_INVALID,
                            "shard range start %.*s must be less than end %.*s", TD_STR_ARG(start),
                            TD_STR_ARG(end));
    }
    parser->ranges = td_arena_grow(parser->arena, parser->ranges, parser->count, &parser->cap,
                                   sizeof(*parser->ranges));
    parser->field = parser->count == 0 ? field : parser->field;
    if (parser->other.len == 0 && !td_str_equal(field, parser->field)) {
        parser->other = field;
    }
    /* 2^64 has one digit more, which falls out at the left: 0, and one below it is the largest. */
    parser->ranges[parser->count++] =
        (struct td_shard_range){.first = shard_number(start), .last = shard_number(end) - 1};
    return TD_OK;
}

static int shard_refuse_function(const struct shard_parser *parser, td_str name)
{
    td_auto_buf shown = td_buf_capped(SHARD_SHOWN_BYTES_MAX);
    td_quote_write(td_str_cut_utf8(name, SHARD_SHOWN_BYTES_MAX / 8), &shown);
    return td_error_set(parser->err, TD_INVALID,
                        "unsupported function %s; only shardRange() and || are allowed",
                        td_buf_str(&shown).ptr);
}

/* Recursion is as deep as the tree, which the parser bounds. */
static int shard_walk(struct shard_parser *parser, const struct td_cel *node)
{
    if (node->kind != TD_CEL_CALL) {
        return td_error_set(
            parser->err, TD_INVALID,
            "unexpected expression kind %d; expected shardRange() call or || operator",
            (int)node->kind);
    }
    if (td_str_equal(node->name, TD_STR("shardRange"))) {
        return shard_add_range(parser, node);
    }
    if (!td_str_equal(node->name, TD_STR("_||_"))) {
        return shard_refuse_function(parser, node->name);
    }
    int code = TD_OK;
    for (const struct td_cel *side = node->first; side && code == TD_OK; side = side->next) {
        code = shard_walk(parser, side);
    }
    return code;
}

static size_t shard_runes(td_str text)
{
    size_t runes = 0;
    for (size_t i = 0; i < text.len; i++) {
        runes += ((unsigned char)text.ptr[i] & 0xc0) != 0x80 ? 1 : 0;
    }
    return runes;
}

static int shard_parse(struct shard_parser *parser, td_str text)
{
    size_t runes = shard_runes(text);
    if (text.len == 0) {
        return td_error_set(parser->err, TD_INVALID,
                            "empty shard selector is not allowed; omit the parameter for "
                            "unfiltered lists");
    }
    if (runes > TD_SHARD_SELECTOR_RUNES_MAX) {
        return td_error_set(
            parser->err, TD_INVALID,
            "CEL parse error: expression code point size exceeds limit: size: %zu, limit %d", runes,
            TD_SHARD_SELECTOR_RUNES_MAX);
    }
    struct td_cel *tree;
    int code = td_cel_parse(parser->arena, text, &tree, parser->err);
    if (code != TD_OK) {
        return td_error_wrap(parser->err, code, "CEL parse error");
    }
    code = shard_walk(parser, tree);
    if (code == TD_OK && parser->other.len > 0) {
        return td_error_set(parser->err, TD_INVALID,
                            "all shard ranges must use the same field, got \"%.*s\" and \"%.*s\"",
                            TD_STR_ARG(parser->field), TD_STR_ARG(parser->other));
    }
    return code;
}

int td_shard_selector_parse(struct td_arena *arena, td_str text, struct td_shard_selector *ret,
                            struct td_error *err)
{
    struct shard_parser parser = {.arena = arena, .err = err};
    int code = shard_parse(&parser, td_str_trim(text));
    if (code != TD_OK) {
        return td_error_wrap(err, code, "invalid shard selector");
    }
    *ret = (struct td_shard_selector){.ranges = parser.ranges,
                                      .count = parser.count,
                                      .is_of_uids = td_str_equal(parser.field, shard_uid)};
    return TD_OK;
}
