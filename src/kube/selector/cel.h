/*
 * The shape of a CEL expression: calls with their function's name, field paths, literals. A shard
 * selector is such an expression, and what is wrong with one is said in the words of the API
 * server's CEL parser. Nothing is evaluated. Private to the selector module.
 */
#pragma once

#include <stddef.h>

#include "base/arena.h"
#include "base/str.h"

struct td_error;

/* The numbers are cel-go's and appear in upstream's messages. */
enum td_cel_kind {
    TD_CEL_CALL = 1,
    TD_CEL_IDENT = 3,
    TD_CEL_LIST = 4,
    TD_CEL_LITERAL = 5,
    TD_CEL_MAP = 6,
    TD_CEL_SELECT = 7,
    TD_CEL_STRUCT = 8,
};

struct td_cel {
    enum td_cel_kind kind;
    td_str name;            /* function ("_||_" for ||), identifier, field, Go type of a literal */
    td_str value;           /* of a string literal */
    struct td_cel *operand; /* of a select */
    struct td_cel *first;   /* arguments of a call; those of a||b||c are one list */
    struct td_cel *last;
    struct td_cel *next; /* argument */
    size_t count;        /* of arguments */
};

/* TD_INVALID with the first error, as cel-go tells it ("Syntax error: ..."). The tree is in the
 * arena, texts are slices of the input where nothing had to be decoded. */
int td_cel_parse(struct td_arena *arena, td_str text, struct td_cel **ret, struct td_error *err);

/* ---- cel_lex.c ---- */

enum td_cel_token_type {
    TD_CEL_END,
    TD_CEL_IDENTIFIER,
    TD_CEL_ESCAPED, /* `identifier` */
    TD_CEL_WORD,    /* true, false, null */
    TD_CEL_INT,
    TD_CEL_UINT,
    TD_CEL_FLOAT,
    TD_CEL_STRING,
    TD_CEL_BYTES,
    TD_CEL_SYMBOL, /* and "in" */
};

struct td_cel_token {
    enum td_cel_token_type type;
    td_str text; /* slice of the input; "<EOF>" at the end */
    size_t end;  /* place behind it */
};

/* The token at or behind `from`; TD_INVALID when there is none. */
int td_cel_next(td_str text, size_t from, struct td_cel_token *ret, struct td_error *err);

/* What a string token means; TD_INVALID on a code point that is none. */
int td_cel_unquote(struct td_arena *arena, td_str token, td_str *ret, struct td_error *err);
