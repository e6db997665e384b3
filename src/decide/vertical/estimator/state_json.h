/*
 * Reading states that estimators save as one JSON object of a version, integers and lists of
 * integers. What does not fit is refused with the name of the field.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/json/json.h"
#include "base/str.h"

struct td_error;

#define TD_STATE_SUM_MAX ((int64_t)1000000000000000) /* of a slot's samples */

/* The object in an annotation; NULL where there is no such annotation. */
int td_state_read(struct td_arena *arena, const struct td_json *annotations, td_str annotation,
                  struct td_json **ret, struct td_error *err);

int td_state_check_version(const struct td_json *saved, td_str version, struct td_error *err);

int td_state_load_number(const struct td_json *saved, const char *name, int64_t min, int64_t max,
                         int64_t *ret, struct td_error *err);

/* At most `cap` integers from 0 to max. */
int td_state_load_list(const struct td_json *saved, const char *name, size_t cap, int64_t max,
                       int64_t *values, size_t *ret_count, struct td_error *err);
