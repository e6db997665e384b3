/*
 * Structured log lines, as text or as JSON lines, to a stream the caller
 * opened. A line has a level, a fixed message and fields; the message is the identity under which
 * repeats inside a window are counted instead of printed ("repeated 41 times in 10s", written with
 * the first line after the window). Values are cut at a cap, fields that do not fit are left out,
 * control bytes are escaped, and a field whose value must not be seen is written with
 * TD_LOG_SECRET. Only commands and controllers log. One owner, no locking.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/str.h"

struct td_clock;
struct td_log;

enum td_log_level { TD_LOG_ERROR, TD_LOG_WARN, TD_LOG_INFO, TD_LOG_DEBUG };
enum td_log_format { TD_LOG_TEXT, TD_LOG_JSON };

struct td_log_field {
    const char *key; /* NULL ends a list */
    enum { TD_LOG_STR, TD_LOG_INT, TD_LOG_FLOAT, TD_LOG_BOOL, TD_LOG_HIDDEN } type;
    union {
        td_str str;
        int64_t integer;
        double number;
        bool boolean;
    };
};

#define TD_LOG_S(k, v) ((struct td_log_field){.key = (k), .type = TD_LOG_STR, .str = (v)})
#define TD_LOG_C(k, v)                                                                             \
    ((struct td_log_field){.key = (k), .type = TD_LOG_STR, .str = td_str_from(v)})
#define TD_LOG_I(k, v) ((struct td_log_field){.key = (k), .type = TD_LOG_INT, .integer = (v)})
#define TD_LOG_F(k, v) ((struct td_log_field){.key = (k), .type = TD_LOG_FLOAT, .number = (v)})
#define TD_LOG_B(k, v) ((struct td_log_field){.key = (k), .type = TD_LOG_BOOL, .boolean = (v)})
#define TD_LOG_SECRET(k) ((struct td_log_field){.key = (k), .type = TD_LOG_HIDDEN})

struct td_log_options {
    FILE *stream;                 /* borrowed */
    const struct td_clock *clock; /* borrowed */
    enum td_log_level level;      /* lines below it are dropped */
    enum td_log_format format;
};

struct td_log *td_log_new(const struct td_log_options *options);

/* Writes the counts of repeats that are still held back. NULL is accepted. */
void td_log_free(struct td_log *log);

/* td_log_line(log, TD_LOG_INFO, "evicted pod", TD_LOG_S("pod", name), TD_LOG_I("age_seconds",
 * age)); a NULL log drops it. At least one field: without any, td_log_write takes NULL for them. */
#define td_log_line(log, level, message, ...)                                                      \
    td_log_write(log, level, message, (struct td_log_field[]){__VA_ARGS__, {.key = NULL}})

void td_log_write(struct td_log *log, enum td_log_level level, const char *message,
                  const struct td_log_field *fields);
