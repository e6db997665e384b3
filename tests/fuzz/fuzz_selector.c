/* Label, field and shard selectors from any bytes: what parses can be written, read again and means
 * the same. The labels matched are taken from the input too, so that keys meet. */
#include <stdint.h>

#include "base/assert.h"
#include "base/error.h"
#include "kube/schema/fields.h"
#include "kube/selector/selector.h"
#include "kube/selector/shard.h"

#define ARENA_BYTES ((size_t)256 << 20)
#define TEXT_BYTES ((size_t)16 << 20)
#define LABELS_MAX 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static td_str written(struct td_arena *arena, const struct td_selector *selector)
{
    td_auto_buf text;
    td_buf_init(&text, TEXT_BYTES);
    td_selector_write(selector, &text);
    td_assert(!text.is_full);
    return td_arena_copy_str(arena, td_buf_str(&text));
}

static td_str fields_written(struct td_arena *arena, const struct td_field_selector *selector)
{
    td_auto_buf text;
    td_buf_init(&text, TEXT_BYTES);
    td_field_selector_write(selector, &text);
    td_assert(!text.is_full);
    return td_arena_copy_str(arena, td_buf_str(&text));
}

/* Pieces of the input between symbols, taken in pairs. */
static struct td_labels labels_of(struct td_arena *arena, td_str text)
{
    struct td_label pairs[LABELS_MAX];
    td_str pieces[2 * LABELS_MAX];
    size_t count = 0;
    size_t from = 0;
    for (size_t i = 0; i <= text.len && count < 2 * LABELS_MAX; i++) {
        bool is_end = i == text.len || memchr("=!,()<> ", text.ptr[i], 8);
        if (is_end && i > from) {
            pieces[count++] = td_str_slice(text, from, i);
        }
        from = is_end ? i + 1 : from;
    }
    for (size_t i = 0; i < count / 2; i++) {
        pairs[i] = (struct td_label){.key = pieces[2 * i], .value = pieces[2 * i + 1]};
    }
    return td_labels_from_pairs(arena, pairs, count / 2);
}

static void check_order(const struct td_selector *selector)
{
    for (size_t i = 0; i < selector->count; i++) {
        const struct td_requirement *requirement = &selector->requirements[i];
        td_assert(i == 0 ||
                  td_str_compare(selector->requirements[i - 1].key, requirement->key) <= 0);
        for (size_t j = 1; j < requirement->value_count; j++) {
            td_assert(td_str_compare(requirement->values[j - 1], requirement->values[j]) < 0);
        }
    }
}

static void run_labels(struct td_arena *arena, td_str text)
{
    struct td_error err = TD_ERROR_INIT;
    struct td_selector selector;
    if (td_selector_parse(arena, text, &selector, &err) != TD_OK) {
        td_assert(err.message[0] != '\0');
        return;
    }
    check_order(&selector);
    struct td_selector again;
    td_str canonical = written(arena, &selector);
    td_assert(td_selector_parse(arena, canonical, &again, NULL) == TD_OK);
    td_assert(td_str_equal(written(arena, &again), canonical));
    struct td_labels labels = labels_of(arena, text);
    td_assert(td_selector_matches(&selector, &labels) == td_selector_matches(&again, &labels));
}

static td_str get_field(td_str field, void *context)
{
    const struct td_labels *labels = context;
    const td_str *value = td_labels_get(labels, field);
    return value ? *value : TD_STR_EMPTY;
}

/* Terms are ordered by the text they were written in, so the canonical text is stable from the
 * second writing on. */
static void run_fields(struct td_arena *arena, td_str text)
{
    struct td_error err = TD_ERROR_INIT;
    struct td_field_selector selector;
    if (td_field_selector_parse(arena, text, &selector, &err) != TD_OK) {
        td_assert(err.message[0] != '\0');
        return;
    }
    struct td_field_selector second;
    struct td_field_selector third;
    td_str once = fields_written(arena, &selector);
    td_assert(td_field_selector_parse(arena, once, &second, NULL) == TD_OK);
    td_str twice = fields_written(arena, &second);
    td_assert(td_field_selector_parse(arena, twice, &third, NULL) == TD_OK);
    td_assert(once.len == twice.len && selector.count == second.count);
    td_assert(td_str_equal(twice, fields_written(arena, &third)));
    struct td_labels labels = labels_of(arena, text);
    td_assert(td_field_selector_matches(&selector, get_field, &labels) ==
              td_field_selector_matches(&second, get_field, &labels));
}

static void run_shards(struct td_arena *arena, td_str text)
{
    struct td_error err = TD_ERROR_INIT;
    struct td_shard_selector selector;
    if (td_shard_selector_parse(arena, text, &selector, &err) != TD_OK) {
        td_assert(err.message[0] != '\0');
        return;
    }
    td_auto_buf once = td_buf_capped(TEXT_BYTES);
    td_auto_buf twice = td_buf_capped(TEXT_BYTES);
    struct td_shard_selector again;
    td_shard_selector_write(&selector, &once);
    td_assert(td_shard_selector_parse(arena, td_buf_str(&once), &again, NULL) == TD_OK);
    td_shard_selector_write(&again, &twice);
    td_assert(td_str_equal(td_buf_str(&once), td_buf_str(&twice)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    td_str text = {.ptr = (const char *)data, .len = size};
    run_labels(&arena, text);
    run_fields(&arena, text);
    run_shards(&arena, text);
    return 0;
}
