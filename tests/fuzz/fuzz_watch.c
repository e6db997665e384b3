/* The answer of a watch from any bytes. The first byte chooses the size of pieces: fed whole and in
 * pieces, a stream gives the same events and the same end, every object keeps what its header
 * promises, and names are given back. The rest is also read as one page of a list. */
#include <stdint.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/intern.h"
#include "base/json/json.h"
#include "base/limits.h"
#include "kube/cache/cache_watch.h"

#define TEXT_BYTES ((size_t)256 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct sample {
    struct td_cache_head head;
    td_str node;
    td_str labels;
    td_str whole;
    td_time time;
    int64_t milli;
    int64_t number;
    bool is_ready;
    bool is_there;
};

static const struct td_cache_field fields[] = {
    {"spec.node", TD_CACHE_NAME, offsetof(struct sample, node)},
    {"metadata.labels", TD_CACHE_RAW, offsetof(struct sample, labels)},
    {"", TD_CACHE_RAW, offsetof(struct sample, whole)},
    {"status.time", TD_CACHE_TIME, offsetof(struct sample, time)},
    {"spec.cpu", TD_CACHE_MILLI, offsetof(struct sample, milli)},
    {"spec.number", TD_CACHE_INT64, offsetof(struct sample, number)},
    {"status.ready", TD_CACHE_BOOL, offsetof(struct sample, is_ready)},
    {"status", TD_CACHE_PRESENT, offsetof(struct sample, is_there)},
};

struct run {
    struct td_cache_plan *plan;
    struct td_intern *names;
    struct td_buf text; /* everything that came out */
};

static void describe(struct td_buf *out, td_str text)
{
    (void)td_buf_append_format(out, "%zu:", text.len); /* the cap is checked at the end */
    (void)td_buf_append(out, text);
}

/* What is kept as raw text is JSON, compact, and no longer than what came. */
static void check_raw(td_str raw)
{
    if (raw.len > 0) {
        td_auto_arena arena;
        td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
        struct td_json *tree;
        int code = td_json_parse(&arena, raw, NULL, &tree, NULL);
        td_assert(code == TD_OK);
        td_assert(raw.ptr[raw.len] == '\0');
    }
}

static int on_event(void *context, enum td_watch_type type, struct td_cache_decoded *decoded,
                    struct td_error *err)
{
    struct run *run = context;
    (void)td_buf_append_format(&run->text, "\n%d %lld %zu ", (int)type,
                               (long long)decoded->status_code, decoded->wrong_count);
    describe(&run->text, decoded->status_message);
    describe(&run->text, decoded->initial_end);
    if (td_cache_decode_key(decoded, err) != TD_OK) {
        return type == TD_WATCH_BOOKMARK || type == TD_WATCH_ERROR ? TD_OK : TD_INVALID;
    }
    struct sample *sample = td_cache_object_new(run->plan, decoded, run->names);
    td_assert(td_cache_object_key(sample).len <= TD_OBJECT_KEY_BYTES_MAX);
    describe(&run->text, td_cache_object_key(sample));
    describe(&run->text, sample->head.uid);
    describe(&run->text, sample->head.version);
    describe(&run->text, sample->node);
    describe(&run->text, sample->labels);
    describe(&run->text, sample->whole);
    (void)td_buf_append_format(&run->text, "%lld %lld %lld %d%d", (long long)sample->time,
                               (long long)sample->milli, (long long)sample->number,
                               sample->is_ready, sample->is_there);
    check_raw(sample->labels);
    check_raw(sample->whole);
    td_cache_object_free(run->plan, sample, run->names);
    return TD_OK;
}

static void run_init(struct run *run)
{
    int code = td_cache_plan_new(fields, sizeof(fields) / sizeof(fields[0]), sizeof(struct sample),
                                 &run->plan, NULL);
    td_assert(code == TD_OK);
    run->names = td_intern_new(3);
    td_buf_init(&run->text, TEXT_BYTES);
}

static void run_done(struct run *run)
{
    td_assert(td_intern_count(run->names) == 0);
    td_intern_free(run->names);
    td_cache_plan_free(run->plan);
    td_buf_done(&run->text);
}

static void run_watch(struct run *run, td_str input, size_t piece)
{
    struct td_cache_decoded decoded;
    td_cache_decoded_init(&decoded, run->plan);
    struct td_watch_reader reader;
    td_watch_reader_init(&reader, run->plan, &decoded, on_event, run);
    int code = TD_OK;
    for (size_t at = 0; at < input.len && code == TD_OK; at += piece) {
        struct td_error err = TD_ERROR_INIT;
        /* A copy of its own, so that reading past a piece is seen. */
        td_auto_buf copy;
        td_buf_init(&copy, input.len);
        size_t end = input.len - at < piece ? input.len : at + piece;
        (void)td_buf_append(&copy, td_str_slice(input, at, end));
        code = td_watch_reader_feed(&reader, td_buf_str(&copy), &err);
        td_assert(code == TD_OK || err.message[0] != '\0');
    }
    (void)td_buf_append_format(&run->text, "\nend %d", code);
    td_watch_reader_done(&reader);
    td_cache_decoded_done(&decoded);
}

static void run_list(struct run *run, td_str input)
{
    struct td_cache_decoded decoded;
    td_cache_decoded_init(&decoded, run->plan);
    struct td_watch_reader reader;
    td_watch_reader_init(&reader, run->plan, &decoded, on_event, run);
    td_auto_buf version;
    td_auto_buf next;
    td_buf_init(&version, TD_CACHE_VERSION_BYTES_MAX);
    td_buf_init(&next, TD_CACHE_CONTINUE_BYTES_MAX);
    struct td_error err = TD_ERROR_INIT;
    int code = td_watch_read_list(&reader, input, &version, &next, &err);
    td_assert(code == TD_OK ? version.len > 0 : err.message[0] != '\0');
    td_watch_reader_done(&reader);
    td_cache_decoded_done(&decoded);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    td_str input = {.ptr = (const char *)data + 1, .len = size - 1};
    struct run whole;
    struct run pieces;
    run_init(&whole);
    run_init(&pieces);
    run_watch(&whole, input, input.len + 1);
    run_watch(&pieces, input, (size_t)data[0] % 67 + 1);
    td_assert(!whole.text.is_full);
    td_assert(td_str_equal(td_buf_str(&whole.text), td_buf_str(&pieces.text)));
    run_list(&whole, input);
    run_done(&whole);
    run_done(&pieces);
    return 0;
}
