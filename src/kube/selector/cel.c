/*
 * The parser of CEL's grammar, by precedence. What upstream's parser (ANTLR's, with its recovery)
 * says of the first mistake follows from three questions, asked where a token is wanted and another
 * one is there: is the one behind it the wanted one ("extraneous input")? Could what is there come
 * after the wanted one ("missing")? Else it is "mismatched". Mistakes that upstream finds only on
 * its way through the finished tree (a reserved word, a number out of range) are kept back until
 * the whole text has been read.
 */
#include "kube/selector/cel.h"

#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"

#define CEL_SHOWN_BYTES_MAX 512 /* of a message */

struct cel_parser {
    struct td_arena *arena;
    td_str text;
    struct td_cel_token token;
    struct td_error *err;
    struct td_error later; /* found on the way through the tree; code 0: none */
    int depth;             /* expressions within each other */
    int open;              /* brackets and conditions that are not closed */
};

static struct td_cel *cel_expression(struct cel_parser *parser, const char *also);
static struct td_cel *cel_unary(struct cel_parser *parser, const char *also);

static struct td_cel *cel_new(struct cel_parser *parser, enum td_cel_kind kind, td_str name)
{
    struct td_cel *node = td_arena_new(parser->arena, struct td_cel);
    node->kind = kind;
    node->name = name;
    return node;
}

static void cel_add(struct td_cel *call, struct td_cel *argument)
{
    if (call->last) {
        call->last->next = argument;
    } else {
        call->first = argument;
    }
    call->last = argument;
    call->count++;
}

static bool cel_next(struct cel_parser *parser)
{
    return td_cel_next(parser->text, parser->token.end, &parser->token, parser->err) == TD_OK;
}

static bool cel_is(const struct cel_parser *parser, const char *symbol)
{
    return parser->token.type == TD_CEL_SYMBOL &&
           td_str_equal(parser->token.text, td_str_from(symbol));
}

/* Kept until the whole text has been read. */
#define cel_note(parser, ...)                                                                      \
    do {                                                                                           \
        if ((parser)->later.code == TD_OK) {                                                       \
            (void)td_error_set(&(parser)->later, TD_INVALID, __VA_ARGS__);                         \
        }                                                                                          \
    } while (0)

/* ---- Mistakes ---- */

static bool cel_begins_expression(const struct td_cel_token *token)
{
    if (token->type == TD_CEL_SYMBOL) {
        return token->text.len == 1 && strchr("[{(.-!", token->text.ptr[0]);
    }
    return token->type != TD_CEL_END && token->type != TD_CEL_ESCAPED;
}

/* The token behind the one that is there; the end when it is none. */
static struct td_cel_token cel_peek(const struct cel_parser *parser)
{
    struct td_cel_token token;
    int code = td_cel_next(parser->text, parser->token.end, &token, NULL);
    return code == TD_OK ? token : (struct td_cel_token){.type = TD_CEL_END};
}

static td_str cel_shown(const struct cel_parser *parser)
{
    return td_str_cut_utf8(parser->token.text, CEL_SHOWN_BYTES_MAX);
}

static void cel_refuse(struct cel_parser *parser, bool is_extraneous, td_str expected)
{
    (void)td_error_set(parser->err, TD_INVALID, "Syntax error: %s input '%.*s' expecting %.*s",
                       is_extraneous ? "extraneous" : "mismatched", TD_STR_ARG(cel_shown(parser)),
                       TD_STR_ARG(expected));
}

/* `also`: symbols that may stand there besides an expression, such as ")". */
static void cel_refuse_expression(struct cel_parser *parser, const char *also)
{
    td_auto_buf set = td_buf_capped(CEL_SHOWN_BYTES_MAX);
    for (const char *symbol = "[]{}().,-!?"; *symbol != '\0'; symbol++) {
        if (strchr("[{(.-!", *symbol) || strchr(also, *symbol)) {
            (void)td_buf_append_format(&set, "%s'%c'", set.len > 0 ? ", " : "{", *symbol);
        }
    }
    (void)td_buf_append(&set, TD_STR(", 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, "
                                     "STRING, BYTES, IDENTIFIER}"));
    struct td_cel_token behind = cel_peek(parser);
    bool is_also = behind.type == TD_CEL_SYMBOL && behind.text.len == 1 &&
                   strchr(also, behind.text.ptr[0]) != NULL;
    cel_refuse(parser, is_also || cel_begins_expression(&behind), td_buf_str(&set));
}

/* Takes the symbol, or tells what is wrong. `shown`: the set upstream names. */
static bool cel_take_of(struct cel_parser *parser, const char *symbol, const char *shown)
{
    if (cel_is(parser, symbol)) {
        return cel_next(parser);
    }
    struct td_cel_token behind = cel_peek(parser);
    bool is_extraneous =
        behind.type == TD_CEL_SYMBOL && td_str_equal(behind.text, td_str_from(symbol));
    cel_refuse(parser, is_extraneous, td_str_from(shown));
    return false;
}

/* The same of one symbol, which could also be missing. */
static bool cel_take(struct cel_parser *parser, const char *symbol)
{
    bool is_colon = symbol[0] == ':';
    bool fits_behind = is_colon ? cel_begins_expression(&parser->token)
                                : parser->token.type == TD_CEL_END && parser->open == 1;
    td_str wanted = td_arena_format(parser->arena, "'%s'", symbol);
    struct td_cel_token behind = cel_peek(parser);
    bool is_behind = behind.type == TD_CEL_SYMBOL && td_str_equal(behind.text, td_str_from(symbol));
    if (!cel_is(parser, symbol) && fits_behind && !is_behind) {
        (void)td_error_set(parser->err, TD_INVALID, "Syntax error: missing %.*s at '%.*s'",
                           TD_STR_ARG(wanted), TD_STR_ARG(cel_shown(parser)));
        return false;
    }
    return cel_take_of(parser, symbol, wanted.ptr);
}

/* A '.' or '-' with something behind it that no rule has. */
static void cel_refuse_pair(struct cel_parser *parser, char first)
{
    td_str shown = parser->token.type == TD_CEL_END ? TD_STR_EMPTY : cel_shown(parser);
    (void)td_error_set(parser->err, TD_INVALID,
                       "Syntax error: no viable alternative at input '%c%.*s'", first,
                       TD_STR_ARG(shown));
}

/* ---- Primaries ---- */

/* Where a value may be optional: upstream reads the "?" and refuses it afterwards. Behind it only
 * an expression may follow. */
static bool cel_skip_optional(struct cel_parser *parser, const char **also)
{
    if (!cel_is(parser, "?")) {
        return true;
    }
    cel_note(parser, "unsupported syntax '?'");
    *also = "";
    return cel_next(parser);
}

/* Behind "(". */
static bool cel_arguments(struct cel_parser *parser, struct td_cel *call)
{
    if (cel_is(parser, ")")) {
        return cel_next(parser);
    }
    for (const char *also = ")";; also = "") {
        struct td_cel *argument = cel_expression(parser, also);
        if (!argument) {
            return false;
        }
        cel_add(call, argument);
        if (!cel_is(parser, ",")) {
            return cel_take(parser, ")");
        }
        if (!cel_next(parser)) {
            return false;
        }
    }
}

/* Behind "[". */
static bool cel_elements(struct cel_parser *parser)
{
    for (const char *also = "],?"; !cel_is(parser, "]"); also = "") {
        if (also[0] == '\0' && !cel_begins_expression(&parser->token) && !cel_is(parser, "?")) {
            return cel_take(parser, "]");
        }
        if (!cel_skip_optional(parser, &also) || !cel_expression(parser, also)) {
            return false;
        }
        if (!cel_is(parser, ",")) {
            return cel_take_of(parser, "]", "{']', ','}");
        }
        if (!cel_next(parser)) {
            return false;
        }
    }
    return cel_next(parser);
}

/* Behind "{": entries of a map, or fields of a struct. */
static bool cel_entries(struct cel_parser *parser, bool is_struct)
{
    static const char fields[] = "{'}', ',', '?', IDENTIFIER, ESC_IDENTIFIER}";
    while (!cel_is(parser, "}")) {
        const char *also = "},?";
        if (!cel_skip_optional(parser, &also)) {
            return false;
        }
        bool is_field =
            parser->token.type == TD_CEL_IDENTIFIER || parser->token.type == TD_CEL_ESCAPED;
        if (is_struct && !is_field) {
            return cel_take_of(parser, "}", fields);
        }
        if (is_struct ? !cel_next(parser) : !cel_expression(parser, also)) {
            return false;
        }
        if (!cel_take(parser, ":") || !cel_expression(parser, "")) {
            return false;
        }
        if (!cel_is(parser, ",")) {
            return cel_take_of(parser, "}", "{'}', ','}");
        }
        if (!cel_next(parser)) {
            return false;
        }
    }
    return cel_next(parser);
}

/* At the bracket that opens the node; it counts as open until it is closed. */
static bool cel_inside(struct cel_parser *parser, struct td_cel *node)
{
    parser->open++;
    bool is_read = cel_next(parser);
    if (node->kind == TD_CEL_CALL) {
        is_read = is_read && cel_arguments(parser, node);
    } else if (node->kind == TD_CEL_LIST) {
        is_read = is_read && cel_elements(parser);
    } else {
        is_read = is_read && cel_entries(parser, node->kind == TD_CEL_STRUCT);
    }
    parser->open--;
    return is_read;
}

static bool cel_is_reserved(td_str name)
{
    static const td_str names[] = {
        TD_STR_INIT("as"),       TD_STR_INIT("break"),  TD_STR_INIT("const"),
        TD_STR_INIT("continue"), TD_STR_INIT("else"),   TD_STR_INIT("for"),
        TD_STR_INIT("function"), TD_STR_INIT("if"),     TD_STR_INIT("import"),
        TD_STR_INIT("let"),      TD_STR_INIT("loop"),   TD_STR_INIT("namespace"),
        TD_STR_INIT("package"),  TD_STR_INIT("return"), TD_STR_INIT("var"),
        TD_STR_INIT("void"),     TD_STR_INIT("while")};
    return td_str_is_among(name, names, TD_COUNT(names));
}

/* An identifier or a call of one, with its leading dot when there was one. */
static struct td_cel *cel_name(struct cel_parser *parser, bool has_dot)
{
    if (parser->token.type != TD_CEL_IDENTIFIER) {
        cel_refuse_pair(parser, '.');
        return NULL;
    }
    td_str word = parser->token.text;
    if (cel_is_reserved(word)) {
        cel_note(parser, "reserved identifier: %.*s", TD_STR_ARG(word));
    }
    td_str name = has_dot ? td_arena_format(parser->arena, ".%.*s", TD_STR_ARG(word)) : word;
    struct td_cel *node = cel_new(parser, TD_CEL_IDENT, name);
    if (!cel_next(parser)) {
        return NULL;
    }
    node->kind = cel_is(parser, "(") ? TD_CEL_CALL : TD_CEL_IDENT;
    return node->kind == TD_CEL_IDENT || cel_inside(parser, node) ? node : NULL;
}

/* Does the number fit? `digits` has neither sign nor suffix. */
static bool cel_fits(td_str digits, bool is_unsigned)
{
    bool is_hex = td_str_starts_with(digits, TD_STR("0x"));
    uint64_t value = 0;
    for (size_t i = is_hex ? 2 : 0; i < digits.len; i++) {
        char c = digits.ptr[i];
        uint64_t digit = (uint64_t)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
        uint64_t base = is_hex ? 16 : 10;
        if (value > (UINT64_MAX - digit) / base) {
            return false;
        }
        value = value * base + digit;
    }
    return is_unsigned || value <= INT64_MAX;
}

static struct td_cel *cel_literal(struct cel_parser *parser)
{
    static const td_str types[] = {
        [TD_CEL_INT] = TD_STR_INIT("int64"),     [TD_CEL_UINT] = TD_STR_INIT("uint64"),
        [TD_CEL_FLOAT] = TD_STR_INIT("float64"), [TD_CEL_STRING] = TD_STR_INIT("string"),
        [TD_CEL_BYTES] = TD_STR_INIT("[]uint8"), [TD_CEL_WORD] = TD_STR_INIT("bool")};
    const struct td_cel_token token = parser->token;
    struct td_cel *node = cel_new(parser, TD_CEL_LITERAL, types[token.type]);
    td_str text = token.text;
    if (td_str_equal(text, TD_STR("null"))) {
        node->name = TD_STR("structpb.NullValue");
    }
    if (token.type == TD_CEL_INT && !cel_fits(text, false)) {
        cel_note(parser, "invalid int literal");
    }
    if (token.type == TD_CEL_UINT && !cel_fits(td_str_slice(text, 0, text.len - 1), true)) {
        cel_note(parser, "invalid uint literal");
    }
    if (token.type == TD_CEL_STRING) {
        struct td_error err = TD_ERROR_INIT;
        if (td_cel_unquote(parser->arena, text, &node->value, &err) != TD_OK) {
            cel_note(parser, "%s", err.message);
        }
    }
    return cel_next(parser) ? node : NULL;
}

static struct td_cel *cel_primary(struct cel_parser *parser, const char *also)
{
    bool has_dot = cel_is(parser, ".");
    if (!cel_begins_expression(&parser->token) || cel_is(parser, "!") || cel_is(parser, "in")) {
        cel_refuse_expression(parser, also);
        return NULL;
    }
    if (has_dot && !cel_next(parser)) {
        return NULL;
    }
    if (has_dot || parser->token.type == TD_CEL_IDENTIFIER) {
        return cel_name(parser, has_dot);
    }
    if (cel_is(parser, "(")) {
        parser->open++;
        struct td_cel *inner = cel_next(parser) ? cel_expression(parser, "") : NULL;
        bool is_closed = inner && cel_take(parser, ")");
        parser->open--;
        return is_closed ? inner : NULL;
    }
    bool is_list = cel_is(parser, "[");
    if (is_list || cel_is(parser, "{")) {
        struct td_cel *node = cel_new(parser, is_list ? TD_CEL_LIST : TD_CEL_MAP, TD_STR_EMPTY);
        return cel_inside(parser, node) ? node : NULL;
    }
    return cel_literal(parser);
}

/* ---- Members ---- */

/* Behind ".": a field, or a method with its arguments. */
static struct td_cel *cel_field(struct cel_parser *parser, struct td_cel *operand)
{
    if (cel_is(parser, "?")) {
        cel_note(parser, "unsupported syntax '.?'");
        if (!cel_next(parser)) {
            return NULL;
        }
    }
    if (parser->token.type == TD_CEL_WORD) {
        cel_refuse(parser, false, TD_STR("IDENTIFIER"));
        return NULL;
    }
    if (parser->token.type != TD_CEL_IDENTIFIER && parser->token.type != TD_CEL_ESCAPED) {
        cel_refuse_pair(parser, '.');
        return NULL;
    }
    if (parser->token.type == TD_CEL_ESCAPED) {
        cel_note(parser, "unsupported syntax: '`'");
    }
    struct td_cel *node = cel_new(parser, TD_CEL_SELECT, parser->token.text);
    node->operand = operand;
    if (!cel_next(parser)) {
        return NULL;
    }
    node->kind = cel_is(parser, "(") ? TD_CEL_CALL : TD_CEL_SELECT;
    return node->kind == TD_CEL_SELECT || cel_inside(parser, node) ? node : NULL;
}

/* At "[". */
static struct td_cel *cel_index(struct cel_parser *parser, struct td_cel *operand)
{
    struct td_cel *node = cel_new(parser, TD_CEL_CALL, TD_STR("_[_]"));
    cel_add(node, operand);
    parser->open++;
    bool is_read = cel_next(parser);
    bool is_optional = is_read && cel_is(parser, "?");
    if (is_optional) {
        cel_note(parser, "unsupported syntax '[?'");
        is_read = cel_next(parser);
    }
    is_read = is_read && cel_expression(parser, is_optional ? "" : "?") && cel_take(parser, "]");
    parser->open--;
    return is_read ? node : NULL;
}

/* Names joined by dots only: what a struct may be named by. */
static bool cel_is_path(const struct td_cel *node)
{
    while (node->kind == TD_CEL_SELECT) {
        node = node->operand;
    }
    return node->kind == TD_CEL_IDENT;
}

static struct td_cel *cel_member(struct cel_parser *parser, const char *also)
{
    struct td_cel *node = cel_primary(parser, also);
    while (node) {
        if (cel_is(parser, ".")) {
            node = cel_next(parser) ? cel_field(parser, node) : NULL;
        } else if (cel_is(parser, "[")) {
            node = cel_index(parser, node);
        } else if (cel_is(parser, "{") && cel_is_path(node)) {
            struct td_cel *named = cel_new(parser, TD_CEL_STRUCT, TD_STR_EMPTY);
            node = cel_inside(parser, named) ? named : NULL;
        } else {
            return node;
        }
    }
    return NULL;
}

/* ---- Operators ---- */

static struct td_cel *cel_unary(struct cel_parser *parser, const char *also)
{
    bool is_not = cel_is(parser, "!");
    const char *sign = is_not ? "!" : "-";
    size_t count = 0;
    while (cel_is(parser, sign)) {
        if (!cel_next(parser)) {
            return NULL;
        }
        also = "";
        count++;
    }
    bool is_number = parser->token.type == TD_CEL_INT || parser->token.type == TD_CEL_FLOAT;
    if (!is_not && count > 0 && cel_is(parser, "!")) {
        cel_refuse_pair(parser, '-');
        return NULL;
    }
    if (is_not && cel_is(parser, "-")) {
        if (cel_next(parser)) {
            cel_refuse_pair(parser, '-');
        }
        return NULL;
    }
    struct td_cel *node = cel_member(parser, also);
    bool is_signed_literal = !is_not && count == 1 && is_number;
    if (!node || count % 2 == 0 || is_signed_literal) {
        return node;
    }
    struct td_cel *call = cel_new(parser, TD_CEL_CALL, is_not ? TD_STR("!_") : TD_STR("-_"));
    cel_add(call, node);
    return call;
}

static const struct cel_operator {
    td_str symbol;
    td_str name;
    int level; /* binds more tightly when higher */
} cel_operators[] = {
    {TD_STR_INIT("||"), TD_STR_INIT("_||_"), 1}, {TD_STR_INIT("&&"), TD_STR_INIT("_&&_"), 2},
    {TD_STR_INIT("=="), TD_STR_INIT("_==_"), 3}, {TD_STR_INIT("!="), TD_STR_INIT("_!=_"), 3},
    {TD_STR_INIT("<"), TD_STR_INIT("_<_"), 3},   {TD_STR_INIT("<="), TD_STR_INIT("_<=_"), 3},
    {TD_STR_INIT(">"), TD_STR_INIT("_>_"), 3},   {TD_STR_INIT(">="), TD_STR_INIT("_>=_"), 3},
    {TD_STR_INIT("in"), TD_STR_INIT("@in"), 3},  {TD_STR_INIT("+"), TD_STR_INIT("_+_"), 4},
    {TD_STR_INIT("-"), TD_STR_INIT("_-_"), 4},   {TD_STR_INIT("*"), TD_STR_INIT("_*_"), 5},
    {TD_STR_INIT("/"), TD_STR_INIT("_/_"), 5},   {TD_STR_INIT("%"), TD_STR_INIT("_%_"), 5},
};

static const struct cel_operator *cel_operator_here(const struct cel_parser *parser)
{
    for (size_t i = 0; i < TD_COUNT(cel_operators); i++) {
        if (parser->token.type == TD_CEL_SYMBOL &&
            td_str_equal(parser->token.text, cel_operators[i].symbol)) {
            return &cel_operators[i];
        }
    }
    return NULL;
}

/* Operators of this level and above; at most five calls deep. */
static struct td_cel *cel_binary(struct cel_parser *parser, int level, const char *also)
{
    const int level_max = 5;
    struct td_cel *left =
        level > level_max ? cel_unary(parser, also) : cel_binary(parser, level + 1, also);
    if (!left) {
        return NULL;
    }
    const struct cel_operator *found = level > level_max ? NULL : cel_operator_here(parser);
    while (found && found->level == level) {
        struct td_cel *right = cel_next(parser) ? cel_binary(parser, level + 1, "") : NULL;
        if (!right) {
            return NULL;
        }
        bool is_same = level == 1 && left->kind == TD_CEL_CALL && left->count > 1 &&
                       td_str_equal(left->name, found->name);
        struct td_cel *call = is_same ? left : cel_new(parser, TD_CEL_CALL, found->name);
        if (!is_same) {
            cel_add(call, left);
        }
        cel_add(call, right);
        left = call;
        found = cel_operator_here(parser);
    }
    return left;
}

/* Behind "?". */
static struct td_cel *cel_condition(struct cel_parser *parser, struct td_cel *asked)
{
    struct td_cel *call = cel_new(parser, TD_CEL_CALL, TD_STR("_?_:_"));
    cel_add(call, asked);
    parser->open++;
    struct td_cel *yes = cel_binary(parser, 1, "");
    bool is_read = yes && cel_take(parser, ":");
    parser->open--;
    struct td_cel *no = is_read ? cel_expression(parser, "") : NULL;
    return no ? call : NULL;
}

static struct td_cel *cel_expression(struct cel_parser *parser, const char *also)
{
    if (parser->depth == TD_CEL_DEPTH_MAX) {
        (void)td_error_set(parser->err, TD_INVALID, "expression recursion limit exceeded: %d",
                           TD_CEL_DEPTH_MAX);
        return NULL;
    }
    parser->depth++;
    struct td_cel *node = cel_binary(parser, 1, also);
    if (node && cel_is(parser, "?")) {
        node = cel_next(parser) ? cel_condition(parser, node) : NULL;
    }
    parser->depth--;
    return node;
}

int td_cel_parse(struct td_arena *arena, td_str text, struct td_cel **ret, struct td_error *err)
{
    struct td_error first = TD_ERROR_INIT;
    struct cel_parser parser = {.arena = arena, .text = text, .err = &first};
    struct td_cel *node = cel_next(&parser) ? cel_expression(&parser, "") : NULL;
    if (node && parser.token.type != TD_CEL_END) {
        cel_refuse(&parser, cel_peek(&parser).type == TD_CEL_END, TD_STR("<EOF>"));
    }
    if (first.code == TD_OK) {
        first = parser.later;
    }
    if (first.code != TD_OK) {
        return td_error_set(err, TD_INVALID, "%s", first.message);
    }
    *ret = node;
    return TD_OK;
}
