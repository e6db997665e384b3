/* What the track estimator says of its answers, made from their fields. */
#include "decide/vertical/estimator/adaptive_text.h"
#include "decide/vertical/estimator/track.h"

#define MILLION 1000000

static void write_base(const struct td_track_answer *answer, struct td_buf *out)
{
    if (answer->base == TD_TRACK_RECENT_USE) {
        (void)td_buf_append(out, TD_STR("three quarters of the last hour "));
        td_adaptive_write_milli(out, answer->recent);
        return;
    }
    const char *kind = answer->base == TD_TRACK_FIRST_DAY  ? "a busy hour of the first day"
                       : answer->base == TD_TRACK_FLAT_DAY ? "a busy hour of a flat day"
                                                           : "a usual hour of the last day";
    (void)td_buf_append_format(out, "%s ", kind);
    td_adaptive_write_milli(out, answer->floor);
    (void)td_buf_append(out, TD_STR(" (three quarters of the last hour "));
    td_adaptive_write_milli(out, answer->recent);
    (void)td_buf_append_char(out, ')');
}

void td_track_write_cpu(const struct td_track_answer *answer, bool is_detail, struct td_buf *out)
{
    if (!is_detail) {
        (void)td_buf_append(out, TD_STR("cpu "));
        td_adaptive_write_milli(out, answer->target);
        (void)td_buf_append(out, TD_STR(": "));
    }
    if (answer->reason == TD_TRACK_NO_DATA) {
        (void)td_buf_append(out, TD_STR("minimum, no samples yet"));
        return;
    }
    if (answer->reason == TD_TRACK_MINIMUM) {
        (void)td_buf_append(out, TD_STR("minimum; "));
    }
    write_base(answer, out);
    (void)td_buf_append(out, TD_STR(", +"));
    td_adaptive_write_percent(out, (answer->margin + MILLION / 2000) / (MILLION / 1000));
    (void)td_buf_append(out, TD_STR(" % margin"));
    if (answer->judged > 0) {
        (void)td_buf_append(out, TD_STR(" learnt from "));
        td_adaptive_write_percent(out, (answer->over * 1000 + answer->judged / 2) / answer->judged);
        (void)td_buf_append(out, TD_STR(" % shortage"));
    }
}
