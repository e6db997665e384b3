/*
 * The text formats that YAML tags bring along: timestamps and bytes that need not be UTF-8.
 * Private to yaml_scalar.c; each follows the Go function that Kubernetes' YAML library calls.
 */
#pragma once

#include <stdbool.h>

#include "base/arena.h"
#include "base/str.h"

/* 2001-12-14, 2001-12-14T21:59:43.10-05:00, 2001-12-14 21:59:43.10; months, days and the parts of
 * the time may have one digit. Dates that do not exist are no timestamps. */
bool td_yaml_is_timestamp(td_str text);

/* The bytes themselves when they are UTF-8, else a copy in which each byte that belongs to no
 * character is U+FFFD. */
td_str td_yaml_valid_utf8(struct td_arena *arena, td_str bytes);
