/*
 * A scenario as a picture: what each set-up costs, across, and how long its requests take, up.
 */
#pragma once

#include <stdbool.h>

#include "judge.h"

/* False: the file cannot be written. */
bool quality_write_picture(const struct quality_table *table, size_t scenario, const char *path);
