#include "decide/vertical/estimator/state_json.h"

#include <stdio.h>

#include "base/error.h"

static int refuse(const char *name, const struct td_json *value, const char *why,
                  struct td_error *err)
{
    if (!value) {
        return td_error_set(err, TD_INVALID, "%s: missing", name);
    }
    if (value->type == TD_JSON_TYPE_NUMBER || value->type == TD_JSON_TYPE_STRING) {
        return td_error_set(err, TD_INVALID, "%s: '%.*s': %s", name, TD_STR_ARG(value->text), why);
    }
    return td_error_set(err, TD_INVALID, "%s: %s", name, why);
}

/* 1.0 and 1e3 are not integers here: nothing of ours writes them. */
static int load_integer(const struct td_json *value, const char *name, int64_t min, int64_t max,
                        int64_t *ret, struct td_error *err)
{
    int64_t number;
    if (!td_json_is(value, TD_JSON_TYPE_NUMBER) || !td_str_to_int64(value->text, &number)) {
        return refuse(name, value, "not an integer", err);
    }
    if (number < min || number > max) {
        return td_error_set(err, TD_INVALID, "%s: %lld: not from %lld to %lld", name,
                            (long long)number, (long long)min, (long long)max);
    }
    *ret = number;
    return TD_OK;
}

int td_state_load_list(const struct td_json *saved, const char *name, size_t cap, int64_t max,
                       int64_t *values, size_t *ret_count, struct td_error *err)
{
    const struct td_json *list = td_json_get(saved, td_str_from(name));
    if (!td_json_is(list, TD_JSON_TYPE_ARRAY)) {
        return refuse(name, list, "not a list", err);
    }
    if (list->count > cap) {
        return td_error_set(err, TD_INVALID, "%s: %zu entries, more than %zu", name, list->count,
                            cap);
    }
    size_t count = 0;
    for (const struct td_json *item = td_json_first_item(list); item; item = item->next) {
        int code = load_integer(item, name, 0, max, &values[count++], err);
        if (code < 0) {
            return code;
        }
    }
    *ret_count = count;
    return TD_OK;
}

int td_state_load_number(const struct td_json *saved, const char *name, int64_t min, int64_t max,
                         int64_t *ret, struct td_error *err)
{
    return load_integer(td_json_get(saved, td_str_from(name)), name, min, max, ret, err);
}

int td_state_check_version(const struct td_json *saved, td_str version, struct td_error *err)
{
    if (!td_json_is(saved, TD_JSON_TYPE_OBJECT)) {
        return td_error_set(err, TD_INVALID, "not an object");
    }
    const struct td_json *reported = td_json_get(saved, TD_STR("version"));
    if (!td_json_is(reported, TD_JSON_TYPE_STRING) || !td_str_equal(reported->text, version)) {
        char why[32];
        (void)snprintf(why, sizeof(why), "not %.*s", TD_STR_ARG(version));
        return refuse("version", reported, why, err);
    }
    return TD_OK;
}

int td_state_read(struct td_arena *arena, const struct td_json *annotations, td_str annotation,
                  struct td_json **ret, struct td_error *err)
{
    td_str text = td_json_get_str(annotations, annotation, TD_STR_EMPTY);
    struct td_json *saved = NULL;
    int code = text.len > 0 ? td_json_parse(arena, text, NULL, &saved, err) : TD_OK;
    if (code == TD_OK) {
        *ret = saved;
    }
    return code < 0 ? td_error_wrap(err, code, "%.*s", TD_STR_ARG(annotation)) : code;
}
