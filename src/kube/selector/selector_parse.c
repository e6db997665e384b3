/*
 * The text form. The parser follows the grammar of upstream's labels.Parse with one token of
 * lookahead and no token list: words are slices of the input. Facts worth knowing, all of them
 * upstream's:
 *
 *   1. "in" and "notin" are words everywhere but in the operator's place, so they may be keys and
 *      values.
 *   2. After "!key" no operator is looked for; whatever follows but a comma is refused.
 *   3. A missing value is the empty one: "a=", "a in ()", "a in (,)", "a in (b,)".
 *   4. A NUL byte where a token would begin ends the text; one that directly follows a word or a
 *      symbol is skipped.
 */
#include "kube/selector/selector.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/limits.h"
#include "kube/selector/selector_build.h"

enum selector_token {
    TOKEN_END,
    TOKEN_WORD,
    TOKEN_COMMA,
    TOKEN_OPEN,
    TOKEN_CLOSE,
    TOKEN_NOT,
    TOKEN_EQUALS,
    TOKEN_DOUBLE_EQUALS,
    TOKEN_NOT_EQUALS,
    TOKEN_GREATER,
    TOKEN_LESS,
};

struct selector_parser {
    struct td_arena *arena;
    td_str text;
    size_t at;                 /* where the next token is looked for */
    enum selector_token token; /* the current one, not yet taken */
    td_str literal;            /* its text; a slice */
    struct td_error *err;
};

static bool parser_is_space(char byte)
{
    return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n';
}

static bool parser_is_symbol(char byte)
{
    return byte == '=' || byte == '!' || byte == '(' || byte == ')' || byte == ',' || byte == '>' ||
           byte == '<';
}

static bool parser_is_word_byte(char byte)
{
    return byte != '\0' && !parser_is_space(byte) && !parser_is_symbol(byte);
}

/* The symbol at `at`, the longer one where two fit; its length is stored too. */
static enum selector_token parser_symbol(const struct selector_parser *parser, size_t *ret_len)
{
    td_str rest = td_str_slice(parser->text, parser->at, parser->text.len);
    bool has_equals = rest.len > 1 && rest.ptr[1] == '=';
    *ret_len = 1;
    switch (rest.ptr[0]) {
    case '=':
        *ret_len = has_equals ? 2 : 1;
        return has_equals ? TOKEN_DOUBLE_EQUALS : TOKEN_EQUALS;
    case '!':
        *ret_len = has_equals ? 2 : 1;
        return has_equals ? TOKEN_NOT_EQUALS : TOKEN_NOT;
    case '(':
        return TOKEN_OPEN;
    case ')':
        return TOKEN_CLOSE;
    case '>':
        return TOKEN_GREATER;
    case '<':
        return TOKEN_LESS;
    default:
        td_assert(rest.ptr[0] == ',');
        return TOKEN_COMMA;
    }
}

/* Takes the current token and reads the next one. The end is never passed. */
static void parser_next(struct selector_parser *parser)
{
    td_str text = parser->text;
    while (parser->at < text.len && parser_is_space(text.ptr[parser->at])) {
        parser->at++;
    }
    if (parser->at >= text.len || text.ptr[parser->at] == '\0') {
        parser->at = text.len;
        parser->token = TOKEN_END;
        parser->literal = TD_STR_EMPTY;
        return;
    }
    size_t len = 0;
    if (parser_is_symbol(text.ptr[parser->at])) {
        parser->token = parser_symbol(parser, &len);
    } else {
        parser->token = TOKEN_WORD;
        while (parser->at + len < text.len && parser_is_word_byte(text.ptr[parser->at + len])) {
            len++;
        }
    }
    parser->literal = td_str_slice(text, parser->at, parser->at + len);
    parser->at += len;
    if (parser->at < text.len && text.ptr[parser->at] == '\0') {
        parser->at++;
    }
}

/* In upstream's words, which HPA conditions quote. */
static int parser_expected(const struct selector_parser *parser, const char *what)
{
    return td_error_set(parser->err, TD_INVALID, "found '%.*s', expected: %s",
                        TD_STR_ARG(parser->literal), what);
}

static int parser_operator(struct selector_parser *parser, enum td_selector_operator *ret)
{
    switch (parser->token) {
    case TOKEN_EQUALS:
        *ret = TD_SELECTOR_EQUALS;
        break;
    case TOKEN_DOUBLE_EQUALS:
        *ret = TD_SELECTOR_DOUBLE_EQUALS;
        break;
    case TOKEN_NOT_EQUALS:
        *ret = TD_SELECTOR_NOT_EQUALS;
        break;
    case TOKEN_GREATER:
        *ret = TD_SELECTOR_GREATER;
        break;
    case TOKEN_LESS:
        *ret = TD_SELECTOR_LESS;
        break;
    default:
        if (parser->token == TOKEN_WORD && td_str_equal(parser->literal, TD_STR("in"))) {
            *ret = TD_SELECTOR_IN;
        } else if (parser->token == TOKEN_WORD && td_str_equal(parser->literal, TD_STR("notin"))) {
            *ret = TD_SELECTOR_NOT_IN;
        } else {
            return parser_expected(parser, "in, notin, =, ==, !=, gt, lt");
        }
        break;
    }
    parser_next(parser);
    return TD_OK;
}

/* The inside of a value list, which begins with a word or one of its signs. An empty value stands
 * wherever a comma has no word on one side; it is remembered as a flag, so that a run of commas
 * takes no memory. */
static int parser_list(struct selector_parser *parser, struct td_selector_values *values)
{
    bool has_empty = parser->token != TOKEN_WORD;
    while (parser->token != TOKEN_CLOSE) {
        if (parser->token == TOKEN_WORD) {
            td_selector_values_push(parser->arena, values, parser->literal);
            parser_next(parser);
            if (parser->token != TOKEN_COMMA && parser->token != TOKEN_CLOSE) {
                return parser_expected(parser, "',' or ')'");
            }
        } else if (parser->token == TOKEN_COMMA) {
            parser_next(parser);
            has_empty |= parser->token == TOKEN_COMMA || parser->token == TOKEN_CLOSE;
        } else {
            return parser_expected(parser, "',', or identifier");
        }
    }
    if (has_empty) {
        td_selector_values_push(parser->arena, values, TD_STR_EMPTY);
    }
    return td_arena_check(parser->arena, parser->err);
}

static int parser_values(struct selector_parser *parser, struct td_selector_values *values)
{
    if (parser->token != TOKEN_OPEN) {
        return td_error_set(parser->err, TD_INVALID, "found '%.*s' expected: '('",
                            TD_STR_ARG(parser->literal)); /* upstream has no comma here */
    }
    parser_next(parser);
    if (parser->token != TOKEN_WORD && parser->token != TOKEN_COMMA &&
        parser->token != TOKEN_CLOSE) {
        return parser_expected(parser, "',', ')' or identifier");
    }
    int code = parser_list(parser, values);
    if (code != TD_OK) {
        return code;
    }
    td_assert(parser->token == TOKEN_CLOSE);
    parser_next(parser);
    return TD_OK;
}

static int parser_exact_value(struct selector_parser *parser, struct td_selector_values *values)
{
    if (parser->token == TOKEN_END || parser->token == TOKEN_COMMA) {
        td_selector_values_push(parser->arena, values, TD_STR_EMPTY);
        return TD_OK;
    }
    if (parser->token != TOKEN_WORD) {
        return parser_expected(parser, "identifier");
    }
    td_selector_values_push(parser->arena, values, parser->literal);
    parser_next(parser);
    return TD_OK;
}

/* Operator and values, when the key is followed by something else than the end or a comma. */
static int parser_condition(struct selector_parser *parser, struct td_requirement *requirement)
{
    int code = parser_operator(parser, &requirement->operation);
    if (code != TD_OK) {
        return code;
    }
    bool is_list =
        requirement->operation == TD_SELECTOR_IN || requirement->operation == TD_SELECTOR_NOT_IN;
    struct td_selector_values values = {.items = NULL, .count = 0, .cap = 0};
    code = is_list ? parser_values(parser, &values) : parser_exact_value(parser, &values);
    if (code != TD_OK) {
        return code;
    }
    td_selector_values_sort(&values);
    td_selector_values_unique(&values);
    requirement->values = values.items;
    requirement->value_count = values.count;
    return td_selector_check(requirement, parser->err);
}

static int parser_requirement(struct selector_parser *parser, struct td_selector_list *list)
{
    struct td_requirement requirement = {.operation = TD_SELECTOR_EXISTS};
    bool is_not = parser->token == TOKEN_NOT;
    if (is_not) {
        requirement.operation = TD_SELECTOR_NOT_EXISTS;
        parser_next(parser);
    }
    if (parser->token != TOKEN_WORD) {
        return parser_expected(parser, "identifier");
    }
    requirement.key = parser->literal;
    int code = td_selector_check_key(requirement.key, parser->err);
    if (code != TD_OK) {
        return code;
    }
    parser_next(parser);
    if (!is_not && parser->token != TOKEN_END && parser->token != TOKEN_COMMA) {
        code = parser_condition(parser, &requirement);
    }
    if (code != TD_OK) {
        return code;
    }
    return td_selector_list_push(parser->arena, list, &requirement, parser->err);
}

int td_selector_parse(struct td_arena *arena, td_str text, struct td_selector *ret,
                      struct td_error *err)
{
    if (text.len > TD_SELECTOR_BYTES_MAX) {
        return td_error_set(err, TD_LIMIT, "label selector has %zu bytes, more than %zu", text.len,
                            TD_SELECTOR_BYTES_MAX);
    }
    struct selector_parser parser = {.arena = arena, .text = text, .err = err};
    struct td_selector_list list = {.items = NULL, .count = 0, .cap = 0};
    const char *expected = "!, identifier, or 'end of string'";
    parser_next(&parser);
    bool is_more = parser.token != TOKEN_END;
    while (is_more) {
        if (parser.token != TOKEN_WORD && parser.token != TOKEN_NOT) {
            return parser_expected(&parser, expected);
        }
        int code = parser_requirement(&parser, &list);
        if (code != TD_OK) {
            return code == TD_INVALID ? td_error_wrap(err, code, "unable to parse requirement")
                                      : code;
        }
        is_more = parser.token == TOKEN_COMMA;
        if (!is_more && parser.token != TOKEN_END) {
            return parser_expected(&parser, "',' or 'end of string'");
        }
        parser_next(&parser);
        expected = "identifier after ','";
    }
    *ret = td_selector_list_finish(arena, &list);
    return TD_OK;
}
