#include "decide/vertical/recommender/oom_annotation.h"

#include "base/error.h"
#include "base/json/json.h"
#include "decide/vertical/recommender/config.h"

#define ANNOTATION_BYTES_MAX ((size_t)4096)

static void set_time(struct td_arena *arena, struct td_json *object, td_str key, td_time time)
{
    td_json_set_str(arena, object, key, td_time_text(arena, td_time_to_instant(time), 9));
}

td_str td_oom_annotation_encode(struct td_arena *arena, const struct td_oom_knowledge *oom)
{
    struct td_json *object = td_json_new_object(arena);
    set_time(arena, object, TD_STR("at"), oom->last_at);
    set_time(arena, object, TD_STR("windowEnd"), oom->window_end);
    td_json_set_int64(arena, object, TD_STR("bytes"), oom->bytes);
    td_json_set_int64(arena, object, TD_STR("count"), oom->count);
    td_json_set_int64(arena, object, TD_STR("cappedBytes"), oom->capped_bytes);
    td_json_set_int64(arena, object, TD_STR("shortRuns"), oom->short_runs);
    return td_json_line(arena, object);
}

static int read_time(const struct td_json *object, td_str key, td_time *ret, struct td_error *err)
{
    struct td_instant instant;
    int code = td_time_parse(td_json_get_str(object, key, TD_STR_EMPTY), &instant, err);
    if (code < 0) {
        return td_error_wrap(err, code, "%.*s", TD_STR_ARG(key));
    }
    *ret = td_time_from_instant(instant);
    return TD_OK;
}

static int read_amount(const struct td_json *object, td_str key, int64_t *ret, struct td_error *err)
{
    int64_t value = td_json_get_int64(object, key, -1);
    if (value < 0) {
        return td_error_set(err, TD_INVALID, "%.*s: not a number from 0 on", TD_STR_ARG(key));
    }
    *ret = value;
    return TD_OK;
}

int td_oom_annotation_decode(td_str text, struct td_oom_knowledge *ret, struct td_error *err)
{
    td_auto_arena arena = td_arena_capped(ANNOTATION_BYTES_MAX * 16);
    struct td_json *object = NULL;
    const struct td_json_options options = {.bytes_max = ANNOTATION_BYTES_MAX};
    struct td_oom_knowledge made = {.count = 0};
    int code = td_json_parse(&arena, text, &options, &object, err);
    if (code < 0) {
        return code;
    }
    const struct {
        td_str key;
        int64_t *field;
    } amounts[] = {{TD_STR("bytes"), &made.bytes},
                   {TD_STR("count"), &made.count},
                   {TD_STR("cappedBytes"), &made.capped_bytes},
                   {TD_STR("shortRuns"), &made.short_runs}};
    for (size_t i = 0; i < sizeof(amounts) / sizeof(amounts[0]) && code == TD_OK; i++) {
        code = read_amount(object, amounts[i].key, amounts[i].field, err);
    }
    if (code == TD_OK) {
        code = read_time(object, TD_STR("at"), &made.last_at, err);
    }
    if (code == TD_OK) {
        code = read_time(object, TD_STR("windowEnd"), &made.window_end, err);
    }
    if (code == TD_OK) {
        /* Counts of many containers are added up: none may be near the end of its type. */
        made.count = made.count < TD_AMOUNT_MAX ? made.count : TD_AMOUNT_MAX;
        made.short_runs = made.short_runs < TD_AMOUNT_MAX ? made.short_runs : TD_AMOUNT_MAX;
        *ret = made;
    }
    return code;
}
