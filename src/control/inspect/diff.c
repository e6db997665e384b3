/*
 * For texts that are alike but for a few edited lines: both are walked together, and where they
 * part, the nearest line that both go on with is looked for, ahead in either. That need not be the
 * shortest diff, but always is a right one.
 */
#include "control/inspect/diff.h"

#include <stdbool.h>
#include <string.h>

#include "base/vec.h"

#define DIFF_CONTEXT 3
#define DIFF_AHEAD_MAX 256 /* lines looked ahead; farther apart, all the rest is one change */
#define DIFF_LINES_MAX ((size_t)1 << 24)

struct diff_lines {
    TD_VEC_FIELDS(td_str); /* with their ends */
};

/* Lines of both texts that differ. */
struct diff_change {
    size_t before;
    size_t before_count;
    size_t after;
    size_t after_count;
};

struct diff_changes {
    TD_VEC_FIELDS(struct diff_change);
};

static void diff_split(td_str text, struct diff_lines *lines)
{
    *lines = (struct diff_lines){.count_max = DIFF_LINES_MAX};
    for (size_t at = 0; at < text.len;) {
        size_t end = td_str_find(text, '\n', at);
        end = end < text.len ? end + 1 : text.len;
        td_str *line = td_vec_push(lines);
        if (line) { /* a text has fewer lines than the cap */
            *line = td_str_slice(text, at, end);
        }
        at = end;
    }
}

static bool diff_is_same(const struct diff_lines *before, size_t i, const struct diff_lines *after,
                         size_t j)
{
    bool is_end = i == before->count && j == after->count;
    return is_end || (i < before->count && j < after->count &&
                      td_str_equal(before->items[i], after->items[j]));
}

/* The nearest place where both go on alike, for two lines where there are two. */
static struct diff_change diff_next(const struct diff_lines *before, size_t i,
                                    const struct diff_lines *after, size_t j)
{
    for (size_t sum = 1; sum <= DIFF_AHEAD_MAX; sum++) {
        for (size_t k = 0; k <= sum; k++) {
            size_t x = i + k;
            size_t y = j + sum - k;
            bool is_sure = x >= before->count || diff_is_same(before, x + 1, after, y + 1);
            if (diff_is_same(before, x, after, y) && is_sure) {
                return (struct diff_change){i, k, j, sum - k};
            }
        }
    }
    return (struct diff_change){i, before->count - i, j, after->count - j};
}

static void diff_find(const struct diff_lines *before, const struct diff_lines *after,
                      struct diff_changes *changes)
{
    *changes = (struct diff_changes){.count_max = DIFF_LINES_MAX};
    size_t i = 0;
    size_t j = 0;
    while (i < before->count || j < after->count) {
        if (diff_is_same(before, i, after, j)) {
            i++;
            j++;
            continue;
        }
        struct diff_change change = diff_next(before, i, after, j);
        struct diff_change *place = td_vec_push(changes);
        if (place) { /* no more changes than lines */
            *place = change;
        }
        i += change.before_count;
        j += change.after_count;
    }
}

static void diff_put(struct td_buf *out, char mark, td_str line)
{
    (void)td_buf_append_char(out, mark);
    (void)td_buf_append(out, line);
    if (!td_str_ends_with(line, TD_STR("\n"))) {
        (void)td_buf_append(out, TD_STR("\n\\ No newline at end of file\n"));
    }
}

static void diff_range(struct td_buf *out, char mark, size_t from, size_t count)
{
    (void)td_buf_append_format(out, "%c%zu", mark, count > 0 ? from + 1 : from);
    if (count != 1) {
        (void)td_buf_append_format(out, ",%zu", count);
    }
}

/* Changes from `first` to before `end`, whose contexts touch, are one hunk. */
static void diff_hunk(const struct diff_lines *before, const struct diff_lines *after,
                      const struct diff_change *first, const struct diff_change *end,
                      struct td_buf *out)
{
    const struct diff_change *last = end - 1;
    size_t lead = first->before < DIFF_CONTEXT ? first->before : DIFF_CONTEXT;
    size_t left = before->count - (last->before + last->before_count);
    size_t trail = left < DIFF_CONTEXT ? left : DIFF_CONTEXT;
    size_t i = first->before - lead;
    size_t j = first->after - lead;
    size_t i_end = last->before + last->before_count + trail;
    size_t j_end = last->after + last->after_count + trail;
    (void)td_buf_append(out, TD_STR("@@ "));
    diff_range(out, '-', i, i_end - i);
    (void)td_buf_append_char(out, ' ');
    diff_range(out, '+', j, j_end - j);
    (void)td_buf_append(out, TD_STR(" @@\n"));
    for (const struct diff_change *change = first; change < end; change++) {
        for (; i < change->before; i++) {
            diff_put(out, ' ', before->items[i]);
        }
        for (; i < change->before + change->before_count; i++) {
            diff_put(out, '-', before->items[i]);
        }
        for (j = change->after; j < change->after + change->after_count; j++) {
            diff_put(out, '+', after->items[j]);
        }
    }
    for (; i < i_end; i++) {
        diff_put(out, ' ', before->items[i]);
    }
}

void td_diff_write(td_str name, td_str before, td_str after, struct td_buf *out)
{
    struct diff_lines old;
    struct diff_lines new;
    struct diff_changes changes;
    diff_split(before, &old);
    diff_split(after, &new);
    diff_find(&old, &new, &changes);
    if (changes.count > 0) {
        (void)td_buf_append_format(out, "--- a/%.*s\n+++ b/%.*s\n", TD_STR_ARG(name),
                                   TD_STR_ARG(name));
    }
    for (size_t i = 0; i < changes.count;) {
        size_t end = i + 1;
        while (end < changes.count && changes.items[end].before - changes.items[end - 1].before -
                                              changes.items[end - 1].before_count <=
                                          2 * DIFF_CONTEXT) {
            end++;
        }
        diff_hunk(&old, &new, &changes.items[i], &changes.items[end], out);
        i = end;
    }
    td_vec_done(&changes);
    td_vec_done(&new);
    td_vec_done(&old);
}
