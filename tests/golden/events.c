#include "golden/events.h"

#include "base/timefmt.h"

#define EVENTS_MAX 10000000

void golden_put_number(struct td_arena *arena, struct td_json *object, const char *key,
                       int64_t value)
{
    td_json_set(arena, object, td_str_from(key), td_json_new_int64(arena, value));
}

void golden_put_text(struct td_arena *arena, struct td_json *object, const char *key,
                     const char *value)
{
    td_json_set(arena, object, td_str_from(key), td_json_new_string(arena, td_str_from(value)));
}

int golden_read_time(const struct td_json *object, const char *key, int64_t *ret,
                     struct td_error *err)
{
    struct td_instant instant;
    td_str text = td_json_get_str(object, td_str_from(key), TD_STR_EMPTY);
    int code = td_time_parse(text, &instant, err);
    if (code == TD_OK) {
        *ret = instant.unix_seconds;
    }
    return code;
}

int golden_each_event(const struct td_json *events,
                      int (*take)(void *context, const struct golden_event *event,
                                  struct td_error *err),
                      void *context, struct td_error *err)
{
    for (const struct td_json *line = td_json_first_child(events); line; line = line->next) {
        struct golden_event event = {
            .op = td_json_get_str(line, TD_STR("op"), TD_STR_EMPTY),
            .time = td_json_get_str(line, TD_STR("t"), TD_STR_EMPTY),
            .limit = td_json_get_int64(line, TD_STR("limit"), 0),
            .request = td_json_get_int64(line, TD_STR("request"), 0),
        };
        int64_t count = td_json_get_int64(line, TD_STR("count"), 1);
        int64_t first = td_json_get_int64(line, TD_STR("v"), 0);
        int64_t mul = td_json_get_int64(line, TD_STR("mul"), 0);
        int64_t mod = td_json_get_int64(line, TD_STR("mod"), 0);
        int64_t start = 0;
        td_duration step = 0;
        td_str step_text = td_json_get_str(line, TD_STR("step"), TD_STR("0s"));
        if (golden_read_time(line, "t", &start, err) < 0 ||
            td_duration_parse(step_text, &step, err) < 0) {
            return err->code;
        }
        for (int64_t i = 0; i < count && i < EVENTS_MAX; i++) {
            event.t = start + i * (step / TD_SECOND);
            event.v = first + (mod > 0 ? mul * i % mod : 0);
            int code = take(context, &event, err);
            if (code < 0) {
                return code;
            }
        }
    }
    return TD_OK;
}

struct td_json *golden_reparse(struct td_arena *arena, const struct td_json *saved)
{
    struct td_json *read = NULL;
    if (td_json_parse(arena, td_json_line(arena, saved), NULL, &read, NULL) < 0) {
        return NULL;
    }
    return read;
}
