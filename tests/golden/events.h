/* Streams of samples as the cases of estimators have them, and the small things that go with it. */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "base/json/json.h"

/* One of the events that a line of a stream stands for. */
struct golden_event {
    td_str op;
    td_str time; /* of the line, as it is written */
    int64_t t;   /* seconds */
    int64_t v;
    int64_t limit;
    int64_t request;
};

int golden_each_event(const struct td_json *events,
                      int (*take)(void *context, const struct golden_event *event,
                                  struct td_error *err),
                      void *context, struct td_error *err);

/* Whole seconds of a time, rounded down. */
int golden_read_time(const struct td_json *object, const char *key, int64_t *ret,
                     struct td_error *err);
void golden_put_number(struct td_arena *arena, struct td_json *object, const char *key,
                       int64_t value);
void golden_put_text(struct td_arena *arena, struct td_json *object, const char *key,
                     const char *value);

/* Through the text of an annotation and back; NULL when that does not read. */
struct td_json *golden_reparse(struct td_arena *arena, const struct td_json *saved);

/* What is recommended for memory (adaptive.c). */
struct td_adaptive_memory_answer;
struct td_json *golden_adaptive_memory(struct td_arena *arena,
                                       const struct td_adaptive_memory_answer *answer);
