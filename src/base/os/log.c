/*
 * A line is made in a buffer and written with one call, so lines of several programs on one stream
 * do not mix. Fields are added whole or not at all: each is made in a second buffer first, and when
 * it does not fit the line ends with cut=true instead, which keeps JSON lines valid.
 *
 * Repeats: the first line of a message opens a window and is printed; lines of the same level and
 * message inside it are only counted. The count is written before the first line of any kind that
 * comes after the window, and when the log is freed. Windows are kept in the order in which they
 * were opened, which is the order in which they end. When too many are open the oldest ends early.
 */
#include "base/os/log.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/buf.h"
#include "base/limits.h"
#include "base/os/clock.h"
#include "base/timefmt.h"

#define LOG_TAIL_BYTES 16 /* room that is kept for the mark of a cut line and the newline */
#define LOG_WINDOW ((td_duration)TD_LOG_REPEAT_WINDOW_MS * TD_MILLISECOND)

struct log_repeat {
    char *message; /* owned */
    enum td_log_level level;
    td_duration opened; /* steady time */
    int64_t count;      /* lines that were not printed */
};

struct td_log {
    struct td_log_options options;
    struct td_buf line;
    struct td_buf field;
    struct log_repeat repeats[TD_LOG_REPEATS_MAX]; /* oldest first */
    size_t repeat_count;
};

static const struct {
    const char *name;
    const char *column; /* of one width */
} log_levels[] = {
    [TD_LOG_ERROR] = {"error", "ERROR"},
    [TD_LOG_WARN] = {"warn", "WARN "},
    [TD_LOG_INFO] = {"info", "INFO "},
    [TD_LOG_DEBUG] = {"debug", "DEBUG"},
};

#define LOG_LEVEL_COUNT (TD_COUNT(log_levels))

struct td_log *td_log_new(const struct td_log_options *options)
{
    td_assert(options->stream);
    td_assert(options->clock);
    td_assert(options->level < LOG_LEVEL_COUNT);
    struct td_log *log = td_alloc_zero(1, sizeof(*log));
    log->options = *options;
    td_buf_init(&log->line, TD_LOG_LINE_BYTES_MAX);
    td_buf_init(&log->field, TD_LOG_LINE_BYTES_MAX);
    return log;
}

/* C0 and C1 controls and DEL: they could move a terminal's cursor or change its state. */
static bool log_is_control(td_str c)
{
    unsigned char first = (unsigned char)c.ptr[0];
    return first < 0x20 || first == 0x7F || (first == 0xC2 && (unsigned char)c.ptr[1] < 0xA0);
}

static void log_append_escape(struct td_buf *out, td_str c)
{
    unsigned char first = (unsigned char)c.ptr[0];
    unsigned code = c.len == 2 ? (unsigned char)c.ptr[1] : first; /* C1: U+0080 to U+009F */
    switch (first) {
    case '"':
    case '\\':
        (void)td_buf_append_char(out, '\\');
        (void)td_buf_append_char(out, (char)first);
        return;
    case '\n':
        (void)td_buf_append(out, TD_STR("\\n"));
        return;
    case '\r':
        (void)td_buf_append(out, TD_STR("\\r"));
        return;
    case '\t':
        (void)td_buf_append(out, TD_STR("\\t"));
        return;
    default:
        (void)td_buf_append_format(out, "\\u%04x", code);
    }
}

/* The text with escapes as in JSON, cut at the cap. What is no UTF-8 becomes U+FFFD, a byte each.
 */
static void log_append_text(struct td_buf *out, td_str text, bool is_quoted)
{
    td_str rest = td_str_cut_utf8(text, TD_LOG_VALUE_BYTES_MAX);
    bool is_cut = rest.len < text.len;
    while (rest.len > 0) {
        size_t len = td_str_utf8_char(rest);
        td_str c = td_str_slice(rest, 0, len);
        if (len == 0) {
            (void)td_buf_append(out, TD_STR("\xEF\xBF\xBD"));
            len = 1;
        } else if (log_is_control(c) || (is_quoted && (c.ptr[0] == '"' || c.ptr[0] == '\\'))) {
            log_append_escape(out, c);
        } else {
            (void)td_buf_append(out, c);
        }
        rest = td_str_slice(rest, len, rest.len);
    }
    if (is_cut) {
        (void)td_buf_append(out, TD_STR("..."));
    }
}

static void log_append_quoted(struct td_buf *out, td_str text)
{
    (void)td_buf_append_char(out, '"');
    log_append_text(out, text, true);
    (void)td_buf_append_char(out, '"');
}

/* In the text form a value is bare unless a reader could not tell where it begins or ends. */
static bool log_needs_quotes(td_str text)
{
    bool is_plain = text.len > 0;
    size_t len = 0;
    for (td_str rest = text; rest.len > 0 && is_plain; rest = td_str_slice(rest, len, rest.len)) {
        len = td_str_utf8_char(rest);
        is_plain = len > 0 && !log_is_control(rest) && !strchr(" \"=\\", rest.ptr[0]);
    }
    return !is_plain;
}

static void log_append_string(struct td_log *log, struct td_buf *out, td_str text)
{
    if (log->options.format == TD_LOG_JSON || log_needs_quotes(text)) {
        log_append_quoted(out, text);
    } else {
        log_append_text(out, text, false);
    }
}

/* The shortest of the usual precisions that reads back as the same number. */
static void log_append_number(struct td_log *log, struct td_buf *out, double number)
{
    if (!isfinite(number)) {
        const char *word = isnan(number) ? "NaN" : number < 0 ? "-Inf" : "+Inf";
        log_append_string(log, out, td_str_from(word));
        return;
    }
    char text[40];
    int len = 0;
    for (int precision = 15; precision <= 17; precision++) {
        len = snprintf(text, sizeof(text), "%.*g", precision, number);
        if (strtod(text, NULL) == number) {
            break;
        }
    }
    (void)td_buf_append(out, (td_str){.ptr = text, .len = (size_t)len});
}

static void log_append_value(struct td_log *log, struct td_buf *out,
                             const struct td_log_field *field)
{
    switch (field->type) {
    case TD_LOG_STR:
        log_append_string(log, out, field->str);
        break;
    case TD_LOG_INT:
        (void)td_buf_append_int64(out, field->integer);
        break;
    case TD_LOG_FLOAT:
        log_append_number(log, out, field->number);
        break;
    case TD_LOG_BOOL:
        (void)td_buf_append(out, field->boolean ? TD_STR("true") : TD_STR("false"));
        break;
    case TD_LOG_HIDDEN:
        log_append_string(log, out, TD_STR("<hidden>"));
        break;
    }
}

static void log_line_begin(struct td_log *log, enum td_log_level level, td_str message)
{
    char time[TD_TIME_TEXT_BYTES];
    struct td_instant now = td_time_to_instant(td_clock_wall(log->options.clock));
    td_str stamp = {.ptr = time, .len = td_time_format(now, 3, time)};
    struct td_buf *line = &log->line;
    td_buf_reset(line);
    if (log->options.format == TD_LOG_JSON) {
        (void)td_buf_append(line, TD_STR("{\"time\":"));
        log_append_quoted(line, stamp);
        (void)td_buf_append_format(line, ",\"level\":\"%s\",\"msg\":", log_levels[level].name);
        log_append_quoted(line, message);
    } else {
        (void)td_buf_append(line, stamp);
        (void)td_buf_append_format(line, " %s ", log_levels[level].column);
        log_append_text(line, message, false);
    }
    td_assert(!line->is_full); /* base/limits.h relates the two caps */
}

/* False when the field does not fit. */
static bool log_line_field(struct td_log *log, const struct td_log_field *field)
{
    td_str key = td_str_from(field->key);
    td_buf_reset(&log->field);
    if (log->options.format == TD_LOG_JSON) {
        (void)td_buf_append_char(&log->field, ',');
        log_append_quoted(&log->field, key);
        (void)td_buf_append_char(&log->field, ':');
    } else {
        (void)td_buf_append_char(&log->field, ' ');
        log_append_text(&log->field, key, false);
        (void)td_buf_append_char(&log->field, '=');
    }
    log_append_value(log, &log->field, field);
    size_t room = log->line.max - log->line.len - LOG_TAIL_BYTES;
    if (log->field.is_full || log->field.len > room) {
        return false;
    }
    (void)td_buf_append(&log->line, td_buf_str(&log->field)); /* fits, as just checked */
    return true;
}

static void log_line_end(struct td_log *log, bool is_cut)
{
    bool is_json = log->options.format == TD_LOG_JSON;
    if (is_cut) {
        (void)td_buf_append(&log->line, is_json ? TD_STR(",\"cut\":true") : TD_STR(" cut=true"));
    }
    (void)td_buf_append(&log->line, is_json ? TD_STR("}\n") : TD_STR("\n"));
    td_assert(!log->line.is_full);
    /* A log that cannot be written has nowhere to say so. */
    (void)fwrite(log->line.ptr, 1, log->line.len, log->options.stream);
    (void)fflush(log->options.stream);
}

static void log_write_repeats(struct td_log *log, const struct log_repeat *repeat, td_duration now)
{
    td_duration span = now - repeat->opened < LOG_WINDOW ? now - repeat->opened : LOG_WINDOW;
    int64_t seconds = (span + TD_SECOND - 1) / TD_SECOND;
    log_line_begin(log, repeat->level, td_str_from(repeat->message));
    if (log->options.format == TD_LOG_JSON) {
        (void)log_line_field(log, &TD_LOG_I("repeated", repeat->count));
        (void)log_line_field(log, &TD_LOG_I("seconds", seconds));
    } else {
        (void)td_buf_append_format(&log->line, " (repeated %lld %s in %llds)",
                                   (long long)repeat->count, repeat->count == 1 ? "time" : "times",
                                   (long long)seconds);
    }
    log_line_end(log, false);
}

/* End the oldest `count` windows. */
static void log_close_windows(struct td_log *log, size_t count, td_duration now)
{
    for (size_t i = 0; i < count; i++) {
        struct log_repeat *repeat = &log->repeats[i];
        if (repeat->count > 0) {
            log_write_repeats(log, repeat, now);
        }
        td_free(repeat->message);
    }
    log->repeat_count -= count;
    memmove(log->repeats, log->repeats + count, log->repeat_count * sizeof(log->repeats[0]));
}

static struct log_repeat *log_find_repeat(struct td_log *log, enum td_log_level level,
                                          td_str message)
{
    for (size_t i = 0; i < log->repeat_count; i++) {
        struct log_repeat *repeat = &log->repeats[i];
        if (repeat->level == level && td_str_equal(td_str_from(repeat->message), message)) {
            return repeat;
        }
    }
    return NULL;
}

static void log_open_window(struct td_log *log, enum td_log_level level, td_str message,
                            td_duration now)
{
    if (log->repeat_count == TD_LOG_REPEATS_MAX) {
        log_close_windows(log, 1, now);
    }
    struct log_repeat *repeat = &log->repeats[log->repeat_count++];
    char *copy = td_alloc(message.len + 1);
    memcpy(copy, message.ptr, message.len);
    copy[message.len] = '\0';
    *repeat = (struct log_repeat){.message = copy, .level = level, .opened = now};
}

void td_log_write(struct td_log *log, enum td_log_level level, const char *message,
                  const struct td_log_field *fields)
{
    if (!log || level > log->options.level) {
        return;
    }
    td_duration now = td_clock_steady(log->options.clock);
    size_t over = 0;
    while (over < log->repeat_count && now - log->repeats[over].opened >= LOG_WINDOW) {
        over++;
    }
    log_close_windows(log, over, now);
    /* The identity is cut as the line is, so that the memory of 64 messages is bounded too. */
    td_str text = td_str_cut_utf8(td_str_from(message), TD_LOG_VALUE_BYTES_MAX);
    struct log_repeat *repeat = log_find_repeat(log, level, text);
    if (repeat) {
        repeat->count++;
        return;
    }
    log_open_window(log, level, text, now);
    log_line_begin(log, level, td_str_from(message));
    bool is_cut = false;
    for (const struct td_log_field *field = fields; field && field->key && !is_cut; field++) {
        is_cut = !log_line_field(log, field);
    }
    log_line_end(log, is_cut);
}

void td_log_free(struct td_log *log)
{
    if (!log) {
        return;
    }
    log_close_windows(log, log->repeat_count, td_clock_steady(log->options.clock));
    td_buf_done(&log->line);
    td_buf_done(&log->field);
    td_free(log);
}
