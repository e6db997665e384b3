/*
 * The compiler and the machine. Trees of sequences are as deep as the pattern is long, so they are
 * walked down their left side by a loop and recursion follows groups only. Counted repeats are
 * copies of their body, which is why programs have a cap; the parser has checked it. The machine
 * keeps the set of steps that are alive and moves all of them over one character at a time
 * (Thompson): a text of n characters costs at most n times the program's length, and each move and
 * each range of characters that it looks at is taken from the caller's budget.
 */
#include "kube/schema/regex_private.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/limits.h"

/* --- compiling --- */

struct regex_writer {
    struct regex_step *program;
    size_t count;
    size_t cap;
};

static uint32_t writer_add(struct regex_writer *writer, struct regex_step step)
{
    td_assert(writer->count < writer->cap);
    writer->program[writer->count] = step;
    return (uint32_t)writer->count++;
}

/* Writes a node in front of the step `next`, which is already there; returns where it begins. */
static uint32_t write_node(struct regex_writer *writer, const struct regex_node *node,
                           uint32_t next);

/* x{2,4} is xx(x(x)?)?; x{2,} is xxx*. */
static uint32_t write_repeat(struct regex_writer *writer, const struct regex_node *node,
                             uint32_t next)
{
    uint32_t end = next;
    if (node->most == REGEX_NONE) {
        uint32_t split =
            writer_add(writer, (struct regex_step){.op = REGEX_OP_SPLIT, .other = next});
        writer->program[split].next = write_node(writer, node->left, split);
        next = split;
    } else {
        for (uint32_t i = node->least; i < node->most; i++) {
            uint32_t body = write_node(writer, node->left, next);
            next = writer_add(
                writer, (struct regex_step){.op = REGEX_OP_SPLIT, .next = body, .other = end});
        }
    }
    for (uint32_t i = 0; i < node->least; i++) {
        next = write_node(writer, node->left, next);
    }
    return next;
}

static uint32_t write_either(struct regex_writer *writer, const struct regex_node *node,
                             uint32_t next)
{
    uint32_t way = write_node(writer, node->right, next);
    /* More alternatives hang on the left side. */
    const struct regex_node *left = node->left;
    while (left->kind == REGEX_EITHER) {
        uint32_t right = write_node(writer, left->right, next);
        way = writer_add(writer,
                         (struct regex_step){.op = REGEX_OP_SPLIT, .next = right, .other = way});
        left = left->left;
    }
    uint32_t first = write_node(writer, left, next);
    return writer_add(writer,
                      (struct regex_step){.op = REGEX_OP_SPLIT, .next = first, .other = way});
}

static uint32_t write_node(struct regex_writer *writer, const struct regex_node *node,
                           uint32_t next)
{
    while (node->kind == REGEX_CONCAT) {
        next = write_node(writer, node->right, next);
        node = node->left;
    }
    switch (node->kind) {
    case REGEX_CLASS:
        return writer_add(
            writer, (struct regex_step){.op = REGEX_OP_CLASS, .class = node->class, .next = next});
    case REGEX_PLACE:
        return writer_add(
            writer, (struct regex_step){.op = REGEX_OP_PLACE, .place = node->place, .next = next});
    case REGEX_EITHER:
        return write_either(writer, node, next);
    case REGEX_REPEAT:
        return write_repeat(writer, node, next);
    case REGEX_EMPTY:
    case REGEX_CONCAT:
        break;
    }
    return next;
}

static struct regex_set set_new(struct td_arena *arena, size_t count)
{
    return (struct regex_set){.items = td_arena_array(arena, uint32_t, count),
                              .where = td_arena_array(arena, uint32_t, count)};
}

int td_regex_compile(struct td_arena *arena, td_str pattern, struct td_regex **ret,
                     struct td_error *err)
{
    struct regex_node *tree;
    int code = td_regex_parse(arena, pattern, &tree, err);
    if (code != TD_OK) {
        return code;
    }
    size_t steps = (size_t)tree->steps + 1;
    struct regex_writer writer = {.program = td_arena_array(arena, struct regex_step, steps),
                                  .cap = steps};
    uint32_t match = writer_add(&writer, (struct regex_step){.op = REGEX_OP_MATCH});
    uint32_t start = write_node(&writer, tree, match);
    struct td_regex *regex = td_arena_new(arena, struct td_regex);
    *regex = (struct td_regex){
        .program = writer.program,
        .count = (uint32_t)writer.count,
        .start = start,
        .now = set_new(arena, writer.count),
        .then = set_new(arena, writer.count),
        .stack = td_arena_array(arena, uint32_t, writer.count * 2 + 1),
    };
    *ret = regex;
    return TD_OK;
}

int td_regex_check(td_str pattern, struct td_error *err)
{
    td_auto_arena scratch;
    struct regex_node *tree;
    td_arena_init(&scratch, TD_TREE_ARENA_BYTES_MAX);
    return td_regex_parse(&scratch, pattern, &tree, err);
}

size_t td_regex_steps(const struct td_regex *regex)
{
    return regex->count;
}

/* --- matching --- */

#define REGEX_NO_RUNE UINT32_MAX /* before the text and behind it */

static bool set_has(const struct regex_set *set, uint32_t item)
{
    return set->where[item] < set->count && set->items[set->where[item]] == item;
}

static bool rune_is_word(uint32_t rune)
{
    return (rune >= '0' && rune <= '9') || (rune >= 'A' && rune <= 'Z') ||
           (rune >= 'a' && rune <= 'z') || rune == '_';
}

static bool place_holds(enum regex_place place, uint32_t before, uint32_t after)
{
    switch (place) {
    case REGEX_TEXT_START:
        return before == REGEX_NO_RUNE;
    case REGEX_TEXT_END:
        return after == REGEX_NO_RUNE;
    case REGEX_LINE_START:
        return before == REGEX_NO_RUNE || before == '\n';
    case REGEX_LINE_END:
        return after == REGEX_NO_RUNE || after == '\n';
    case REGEX_WORD_BOUNDARY:
        return rune_is_word(before) != rune_is_word(after);
    case REGEX_NO_BOUNDARY:
        break;
    }
    return rune_is_word(before) == rune_is_word(after);
}

/* Adds a step and all that can be reached from it without taking a character; true when the match
 * is among them. */
static bool regex_enter(struct td_regex *regex, struct regex_set *set, uint32_t start,
                        uint32_t before, uint32_t after)
{
    size_t depth = 0;
    regex->stack[depth++] = start;
    while (depth > 0) {
        uint32_t at = regex->stack[--depth];
        const struct regex_step *step = &regex->program[at];
        if (set_has(set, at)) {
            continue;
        }
        set->where[at] = set->count;
        set->items[set->count++] = at;
        if (step->op == REGEX_OP_MATCH) {
            return true;
        }
        td_assert(depth + 2 <= (size_t)regex->count * 2 + 1);
        if (step->op == REGEX_OP_SPLIT) {
            regex->stack[depth++] = step->other;
            regex->stack[depth++] = step->next;
        } else if (step->op == REGEX_OP_PLACE && place_holds(step->place, before, after)) {
            regex->stack[depth++] = step->next;
        }
    }
    return false;
}

/* Moves all that is alive over one character; true when the match is reached. */
static bool regex_move(struct td_regex *regex, uint32_t rune, uint32_t next, int64_t *steps)
{
    const struct regex_set *now = &regex->now;
    regex->then.count = 0;
    for (uint32_t i = 0; i < now->count; i++) {
        const struct regex_step *step = &regex->program[now->items[i]];
        if (step->op != REGEX_OP_CLASS) {
            continue;
        }
        *steps -= (int64_t)step->class->count;
        if (td_regex_has(step->class, rune) &&
            regex_enter(regex, &regex->then, step->next, rune, next)) {
            return true;
        }
    }
    return false;
}

int td_regex_match(struct td_regex *regex, td_str text, int64_t *steps, bool *ret)
{
    uint32_t before = REGEX_NO_RUNE;
    size_t bytes = 0;
    uint32_t rune = text.len > 0 ? td_regex_rune(text, &bytes) : REGEX_NO_RUNE;
    regex->now.count = 0;
    *ret = true;
    /* The position behind the last character counts too: a pattern can match there. */
    for (size_t at = 0; !regex_enter(regex, &regex->now, regex->start, before, rune);) {
        *steps -= (int64_t)regex->now.count;
        if (*steps < 0) {
            return TD_LIMIT;
        }
        if (at == text.len) {
            *ret = false;
            return TD_OK;
        }
        at += bytes;
        uint32_t next = at == text.len ? REGEX_NO_RUNE
                                       : td_regex_rune(td_str_slice(text, at, text.len), &bytes);
        if (regex_move(regex, rune, next, steps)) {
            return TD_OK;
        }
        struct regex_set spent = regex->now;
        regex->now = regex->then;
        regex->then = spent;
        before = rune;
        rune = next;
    }
    return TD_OK;
}
