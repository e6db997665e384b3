/* Traces from any bytes, as CSV or as a Prometheus dump: what is read is in order and in range, and
 * every policy can be replayed over it. */
#include <stdint.h>

#include "base/assert.h"
#include "base/error.h"
#include "sim/replay/replay.h"

#define REPLAYED_WINDOWS_MAX 2000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_trace(const struct td_trace *trace)
{
    for (size_t i = 0; i < trace->count; i++) {
        const struct td_trace_window *window = &trace->items[i];
        td_assert(i == 0 || window->time > trace->items[i - 1].time);
        td_assert(window->time >= 0);
        td_assert(window->cpu_milli >= 0);
        td_assert(window->cpu_p90_milli >= 0);
        td_assert(window->memory_bytes >= 0);
        td_assert(window->memory_bytes_max >= 0);
        td_assert(window->cpu_limit_milli >= 0);
        td_assert(window->memory_limit_bytes >= 0);
    }
}

static void check_policies(const struct td_trace *trace)
{
    struct td_replay_policy policy;
    struct td_replay_score first = {.windows = 0};
    for (size_t i = 0; td_replay_policy_at(i, &policy); i++) {
        struct td_replay_score score;
        td_replay_run(&policy, trace, &score);
        first = i == 0 ? score : first;
        td_assert(score.windows == first.windows);
        td_assert(score.cpu_slack <= score.cpu_requested);
        td_assert(score.cpu_overruns <= score.windows);
        td_assert(score.ooms <= score.windows);
        (void)td_replay_figures(&score, &first); /* It must only come back. */
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct td_trace_set set;
    struct td_error err = TD_ERROR_INIT;
    td_str text = {.ptr = size > 0 ? (const char *)data : "", .len = size};
    td_trace_set_init(&set);
    int code = td_trace_read(&set, TD_STR("cpu.json"), text, &err);
    if (code == TD_OK) {
        code = td_trace_read(&set, TD_STR("memory.json"), text, &err);
    }
    if (code == TD_OK) {
        code = td_trace_set_finish(&set, &err);
    }
    td_assert((code == TD_OK) == (err.message[0] == '\0'));
    for (size_t i = 0; code == TD_OK && i < set.traces.count; i++) {
        check_trace(&set.traces.items[i]);
        if (set.window_count <= REPLAYED_WINDOWS_MAX) {
            check_policies(&set.traces.items[i]);
        }
    }
    td_trace_set_done(&set);
    return 0;
}
