/*
 * Regular expressions as definitions of custom resources use them: RE2's syntax, matched in time
 * that is linear in the text, whatever the pattern. Only the question "does it occur in the text?"
 * is answered, so groups capture nothing and non-greedy repeats are plain ones. Not known are
 * Unicode classes (\p{L}), \C, and letters beyond ASCII without regard to case: such patterns are
 * refused with TD_LIMIT, and their user decides what that means. A compiled pattern lives in its
 * arena and is used by one thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/str.h"

struct td_error;
struct td_regex;

/* The syntax and the size alone; gives what td_regex_compile would. */
int td_regex_check(td_str pattern, struct td_error *err);

/* TD_INVALID: no regular expression. TD_LIMIT: one that is not known here, or too large. */
int td_regex_compile(struct td_arena *arena, td_str pattern, struct td_regex **ret,
                     struct td_error *err);

/* How many steps its program has: a measure of its memory and of the work to compile it. */
size_t td_regex_steps(const struct td_regex *regex);

/* Does it match somewhere in the text? Takes its work from *steps, ranges of characters that are
 * looked at included, and gives TD_LIMIT when they are used up; the text must be UTF-8. */
int td_regex_match(struct td_regex *regex, td_str text, int64_t *steps, bool *ret);
