/*
 * What the parser, the compiler and the runner of regular expressions share. A pattern becomes a
 * tree, the tree a program for a machine that follows all ways through it at once.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "kube/schema/regex.h"

#define REGEX_RUNE_MAX 0x10ffffu
#define REGEX_NONE UINT32_MAX

struct regex_range {
    uint32_t low;
    uint32_t high;
};

/* A set of characters: those in the ranges, or all others. */
struct regex_class {
    struct regex_range *ranges; /* in any order */
    size_t count;
    size_t cap;
    bool is_negated;
};

enum regex_place {
    REGEX_TEXT_START, /* \A, and ^ unless (?m) */
    REGEX_TEXT_END,   /* \z, and $ unless (?m) */
    REGEX_LINE_START,
    REGEX_LINE_END,
    REGEX_WORD_BOUNDARY,
    REGEX_NO_BOUNDARY,
};

enum regex_kind {
    REGEX_EMPTY,
    REGEX_CLASS,
    REGEX_PLACE,
    REGEX_CONCAT,
    REGEX_EITHER,
    REGEX_REPEAT,
};

struct regex_node {
    enum regex_kind kind;
    enum regex_place place;
    const struct regex_class *class;
    struct regex_node *left;
    struct regex_node *right;
    uint32_t least;
    uint32_t most;   /* REGEX_NONE: without end */
    uint32_t copies; /* of what is written most often below, by counted repeats inside each other */
    uint32_t steps;  /* of its program */
    uint32_t work;   /* nodes that writing its program visits: those without steps count too */
};

enum regex_op { REGEX_OP_CLASS, REGEX_OP_PLACE, REGEX_OP_SPLIT, REGEX_OP_MATCH };

struct regex_step {
    enum regex_op op;
    enum regex_place place;
    const struct regex_class *class;
    uint32_t next;  /* where to go on */
    uint32_t other; /* of a split */
};

/* Steps of the program that are alive, each once. */
struct regex_set {
    uint32_t *items;
    uint32_t *where; /* index in items, valid when items agrees */
    uint32_t count;
};

struct td_regex {
    struct regex_step *program;
    uint32_t count;
    uint32_t start;
    struct regex_set now;
    struct regex_set then;
    uint32_t *stack;
};

/* ---- regex_parse.c ---- */

/* The tree fits: its program has at most TD_REGEX_STEPS_MAX steps with the one for the match. */
int td_regex_parse(struct td_arena *arena, td_str pattern, struct regex_node **ret,
                   struct td_error *err);

bool td_regex_has(const struct regex_class *class, uint32_t rune);
/* The character that `text` begins with and its bytes; what is no UTF-8 counts byte for byte. */
uint32_t td_regex_rune(td_str text, size_t *ret_bytes);
