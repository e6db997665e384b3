/*
 * The compiler and the machine. Trees of sequences are as deep as the pattern is long, so they are
 * walked down their left side by a loop and recursion follows groups only. Counted repeats are
 * copies of their body, which is why programs have a cap. The machine keeps the set of steps that
 * are alive and moves all of them over one character at a time (Thompson): a text of n characters
 * costs at most n times the program's length, and each move is taken from the caller's budget.
 */
#include "local/regex_private.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/limits.h"

/* --- compiling --- */

struct regex_writer {
    struct td_arena *arena;
    struct regex_step *program;
    size_t count;
    size_t cap;
    bool is_full;
};

static uint32_t writer_add(struct regex_writer *writer, struct regex_step step)
{
    if (writer->count >= TD_REGEX_STEPS_MAX) {
        writer->is_full = true;
        return 0;
    }
    writer->program = td_arena_grow(writer->arena, writer->program, writer->count, &writer->cap,
                                    sizeof(writer->program[0]));
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
        uint32_t body = write_node(writer, node->left, split);
        if (!writer->is_full) {
            writer->program[split].next = body;
        }
        next = split;
    } else {
        for (uint32_t i = node->least; i < node->most && !writer->is_full; i++) {
            uint32_t body = write_node(writer, node->left, next);
            next = writer_add(
                writer, (struct regex_step){.op = REGEX_OP_SPLIT, .next = body, .other = end});
        }
    }
    for (uint32_t i = 0; i < node->least && !writer->is_full; i++) {
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
    while (left->kind == REGEX_EITHER && !writer->is_full) {
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
    while (node->kind == REGEX_CONCAT && !writer->is_full) {
        next = write_node(writer, node->right, next);
        node = node->left;
    }
    if (writer->is_full) {
        return 0;
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
    struct regex_writer writer = {.arena = arena};
    int code = td_regex_parse(arena, pattern, &tree, err);
    if (code != TD_OK) {
        return code;
    }
    uint32_t match = writer_add(&writer, (struct regex_step){.op = REGEX_OP_MATCH});
    uint32_t start = write_node(&writer, tree, match);
    if (writer.is_full) {
        return td_error_set(err, TD_LIMIT, "pattern '%.*s' needs more than %d steps",
                            TD_STR_ARG(pattern), TD_REGEX_STEPS_MAX);
    }
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

int td_regex_match(struct td_regex *regex, td_str text, int64_t *steps, bool *ret)
{
    uint32_t before = REGEX_NO_RUNE;
    size_t bytes = 0;
    regex->now.count = 0;
    /* The position behind the last character counts too: a pattern can match there. */
    for (size_t at = 0; at <= text.len; at += bytes) {
        bool is_end = at == text.len;
        uint32_t rune =
            is_end ? REGEX_NO_RUNE : td_regex_rune(td_str_slice(text, at, text.len), &bytes);
        struct regex_set now = regex->now;
        struct regex_set *then = &regex->then;
        if (regex_enter(regex, &now, regex->start, before, rune)) {
            *ret = true;
            return TD_OK;
        }
        *steps -= (int64_t)now.count;
        if (*steps < 0) {
            return TD_LIMIT;
        }
        if (is_end) {
            break;
        }
        size_t next_bytes = 0;
        size_t next_at = at + bytes;
        uint32_t next = next_at == text.len
                            ? REGEX_NO_RUNE
                            : td_regex_rune(td_str_slice(text, next_at, text.len), &next_bytes);
        then->count = 0;
        for (uint32_t i = 0; i < now.count; i++) {
            const struct regex_step *step = &regex->program[now.items[i]];
            if (step->op == REGEX_OP_CLASS && td_regex_has(step->class, rune) &&
                regex_enter(regex, then, step->next, rune, next)) {
                *ret = true;
                return TD_OK;
            }
        }
        regex->now = *then;
        regex->then = now;
        before = rune;
    }
    *ret = false;
    return TD_OK;
}
