/* What the adaptive estimator says of its answers, made from their fields. */
#include "decide/vertical/estimator/adaptive_text.h"

#include "base/timefmt.h"
#include "decide/vertical/estimator/adaptive.h"
#include "kube/quantity/quantity.h"

#define DAY_SECONDS 86400
#define SLOT_MINUTES 5

void td_adaptive_write_milli(struct td_buf *out, int64_t milli)
{
    struct td_quantity quantity = td_quantity_new_milli(milli, TD_QUANTITY_DECIMAL_SI);
    td_quantity_write_short(&quantity, false, out);
}

static void write_memory_amount(struct td_buf *out, int64_t bytes)
{
    struct td_quantity quantity = td_quantity_new(bytes, TD_QUANTITY_BINARY_SI);
    td_quantity_write_short(&quantity, true, out);
}

void td_adaptive_write_percent(struct td_buf *out, int64_t permille)
{
    (void)td_buf_append_int64(out, permille / 10);
    if (permille % 10 != 0) {
        (void)td_buf_append_format(out, ".%lld", (long long)(permille % 10));
    }
}

static void write_seen(struct td_buf *out, int64_t minutes)
{
    if (minutes < 120) {
        (void)td_buf_append_format(out, "%lld min", (long long)minutes);
    } else {
        (void)td_buf_append_format(out, "%lld h", (long long)(minutes / 60));
    }
}

static void write_date(struct td_buf *out, int64_t t)
{
    char text[TD_TIME_TEXT_BYTES];
    (void)td_time_format((struct td_instant){.unix_seconds = t}, 0, text);
    (void)td_buf_append(out, td_str_slice(td_str_from(text), 0, sizeof("2026-03-02") - 1));
}

void td_adaptive_write_cpu(const struct td_adaptive_cpu_answer *answer, bool is_detail,
                           struct td_buf *out)
{
    if (!is_detail) {
        (void)td_buf_append(out, TD_STR("cpu "));
        td_adaptive_write_milli(out, answer->target);
        (void)td_buf_append(out, TD_STR(": "));
    }
    if (answer->reason == TD_ADAPTIVE_NO_DATA) {
        (void)td_buf_append(out, TD_STR("minimum, no samples yet"));
        return;
    }
    if (answer->reason == TD_ADAPTIVE_MINIMUM) {
        (void)td_buf_append(out, TD_STR("minimum; "));
    }
    td_adaptive_write_percent(out, answer->quantile);
    (void)td_buf_append_format(out, " %% of the last %lld five-minute windows stayed at or below ",
                               (long long)answer->slots);
    td_adaptive_write_milli(out, answer->peak);
    if (answer->margin > 0) {
        (void)td_buf_append(out, TD_STR("; +"));
        td_adaptive_write_percent(out, answer->margin);
        (void)td_buf_append(out, TD_STR(" % because only "));
        write_seen(out, answer->slots * SLOT_MINUTES);
        (void)td_buf_append(out, TD_STR(" were seen"));
    }
    if (answer->quantile != answer->first_arm) {
        (void)td_buf_append(out, TD_STR("; "));
        td_adaptive_write_percent(out, answer->first_arm);
        (void)td_buf_append(out, TD_STR(" % would need "));
        td_adaptive_write_milli(out, answer->first_peak);
        (void)td_buf_append(out, TD_STR(", which costs more than the "));
        td_adaptive_write_percent(out, 1000 - answer->quantile);
        (void)td_buf_append(out, TD_STR(" % shortage"));
    }
}

static void write_peak(const struct td_adaptive_memory_answer *answer,
                       const struct td_adaptive_params *params, struct td_buf *out)
{
    if (answer->reason == TD_ADAPTIVE_RECENT_PEAK) {
        (void)td_buf_append_format(out, "highest of the last %lld observed hours ",
                                   (long long)(answer->hours));
        write_memory_amount(out, answer->peak);
        (void)td_buf_append(out, TD_STR(" + "));
        td_adaptive_write_percent(out, answer->margin);
        (void)td_buf_append(out, TD_STR(" %"));
    } else if (answer->old_peak_age == 0) {
        (void)td_buf_append(out, TD_STR("a peak earlier today"));
    } else {
        (void)td_buf_append_format(out, "a peak %lld day%s ago, less ",
                                   (long long)answer->old_peak_age,
                                   answer->old_peak_age == 1 ? "" : "s");
        td_adaptive_write_percent(out, params->day_decay);
        (void)td_buf_append(out, TD_STR(" % a day"));
    }
}

void td_adaptive_write_memory(const struct td_adaptive_memory_answer *answer,
                              const struct td_adaptive_params *params, bool is_detail,
                              struct td_buf *out)
{
    if (!is_detail) {
        (void)td_buf_append(out, TD_STR("memory "));
        write_memory_amount(out, answer->target);
        (void)td_buf_append(out, TD_STR(": "));
    }
    switch (answer->reason) {
    case TD_ADAPTIVE_NO_DATA:
        (void)td_buf_append(out, TD_STR("minimum, no samples yet"));
        break;
    case TD_ADAPTIVE_OOM:
        (void)td_buf_append(out, TD_STR("OOM on "));
        write_date(out, answer->oom_time);
        (void)td_buf_append_format(out, ", %lld so far: kept at or above ",
                                   (long long)answer->oom_count);
        write_memory_amount(out, answer->floor);
        (void)td_buf_append(out, TD_STR(" until "));
        write_date(out, answer->oom_time + params->floor_days * DAY_SECONDS);
        break;
    case TD_ADAPTIVE_RECENT_PEAK:
    case TD_ADAPTIVE_OLDER_PEAK:
        write_peak(answer, params, out);
        break;
    default:
        (void)td_buf_append(out, TD_STR("minimum"));
        break;
    }
}
