/* An answer of Prometheus from any bytes. The first byte chooses the size of pieces: fed whole and
 * in pieces it gives the same series, the same points and the same end. What is taken is JSON as a
 * whole, with as many series as were handed on. */
#include <stdint.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/json/json.h"
#include "control/prometheus/prometheus_answer.h"

#define TEXT_BYTES ((size_t)256 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool run_series(void *context, const struct td_labels *labels)
{
    struct td_buf *out = context;
    for (size_t i = 0; i < labels->count; i++) {
        td_assert(i == 0 || td_str_compare(labels->items[i - 1].key, labels->items[i].key) < 0);
        (void)td_buf_append(out, labels->items[i].key); /* the cap is checked at the end */
        (void)td_buf_append(out, labels->items[i].value);
    }
    return labels->count % 3 != 2;
}

static int run_point(void *context, td_time time, double value, struct td_error *err)
{
    struct td_buf *out = context;
    td_assert(time >= 0);
    td_assert(value - value == 0); /* no NaN, no infinity */
    (void)td_buf_append_format(out, " %lld:%a", (long long)time, value);
    return value < 0 ? td_error_set(err, TD_LIMIT, "negative") : TD_OK;
}

static int run_read(td_str text, size_t piece, struct td_buf *out, struct td_error *err,
                    size_t *ret_count)
{
    static const struct td_prometheus_handler handler = {.series = run_series, .point = run_point};
    struct td_prometheus_answer answer;
    td_buf_init(out, TEXT_BYTES);
    td_prometheus_answer_init(&answer, &handler, out);
    int code = TD_OK;
    for (size_t at = 0; at < text.len && code == TD_OK; at += piece) {
        code = td_prometheus_answer_feed(&answer, td_str_slice(text, at, at + piece), err);
    }
    code = code == TD_OK ? td_prometheus_answer_finish(&answer, err) : code;
    *ret_count = answer.series_count;
    td_prometheus_answer_done(&answer);
    td_assert((code == TD_OK) == (err->message[0] == '\0'));
    return code;
}

static void check_whole(td_str text, size_t count)
{
    td_auto_arena arena;
    td_arena_init(&arena, TEXT_BYTES);
    struct td_json *tree;
    td_assert(td_json_parse(&arena, text, NULL, &tree, NULL) == TD_OK);
    const struct td_json *result = td_json_get_path(tree, "data.result");
    td_assert(td_json_is(result, TD_JSON_TYPE_ARRAY));
    td_assert(result->count == count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    td_str text = {.ptr = (const char *)data + 1, .len = size - 1};
    struct td_error err = TD_ERROR_INIT;
    struct td_error err_pieces = TD_ERROR_INIT;
    td_auto_buf whole;
    td_auto_buf pieces;
    size_t count;
    size_t count_pieces;
    int code = run_read(text, text.len > 0 ? text.len : 1, &whole, &err, &count);
    int code_pieces = run_read(text, 1 + data[0] % 16, &pieces, &err_pieces, &count_pieces);
    td_assert(code == code_pieces);
    td_assert(count == count_pieces);
    td_assert(td_str_equal(td_buf_str(&whole), td_buf_str(&pieces)));
    td_assert(td_str_equal(td_str_from(err.message), td_str_from(err_pieces.message)));
    if (code == TD_OK) {
        check_whole(text, count);
    }
    return 0;
}
