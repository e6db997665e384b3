/*
 * One answer of Prometheus' HTTP API (query or query_range), read as it arrives. Only one series is
 * held at a time: its labels and points are handed on and forgotten, so an answer may be as large
 * as it likes. What surrounds the series is kept up to a cap and checked at the end. Every byte is
 * judged as a stranger's. Feeds no clock and knows no network: pure, one owner.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/os/clock.h"
#include "base/str.h"
#include "kube/selector/labels.h"

struct td_prometheus_handler {
    /* A series begins; false: its points are not wanted. Labels are valid until its last point. */
    bool (*series)(void *context, const struct td_labels *labels);
    /* A point of it, in the order of the answer; NaN and infinities are left out. A failure ends
     * the reading with its code. */
    int (*point)(void *context, td_time time, double value, struct td_error *err);
};

/* Where the boundary search is: around the list of series, in it, or in one of them. */
enum td_prometheus_place { TD_PROMETHEUS_AROUND, TD_PROMETHEUS_BETWEEN, TD_PROMETHEUS_INSIDE };

#define TD_PROMETHEUS_KEY_BYTES 8 /* room for "result" */

struct td_prometheus_answer {
    struct td_prometheus_handler handler;
    void *context;
    size_t series_count;
    /* Private from here on. */
    struct td_buf around; /* the answer without its series */
    struct td_buf series; /* the one that arrives */
    struct td_arena arena;
    enum td_prometheus_place place;
    int code; /* 0, or the first failure, for ever */
    unsigned depth;
    bool in_string;
    bool in_escape;
    bool has_result; /* the list was there */
    bool may_begin;  /* no series, or a comma behind the last one */
    bool may_end;    /* no comma waits for its series */
    char last;       /* of the structure around, strings as '"' */
    size_t text_len; /* of the string that is being read around; past the room: too long */
    char text[TD_PROMETHEUS_KEY_BYTES];
    char keys[3][TD_PROMETHEUS_KEY_BYTES]; /* by depth */
};

void td_prometheus_answer_init(struct td_prometheus_answer *answer,
                               const struct td_prometheus_handler *handler, void *context);
void td_prometheus_answer_done(struct td_prometheus_answer *answer);

int td_prometheus_answer_feed(struct td_prometheus_answer *answer, td_str bytes,
                              struct td_error *err);

/* At the end of the bytes: TD_OK, or what is wrong; a refusal of Prometheus (status "error") is
 * TD_INVALID with its words. */
int td_prometheus_answer_finish(struct td_prometheus_answer *answer, struct td_error *err);
