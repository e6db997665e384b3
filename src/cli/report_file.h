/*
 * `--report FILE` of simulate, replay and recommend: the command as it was written, and the file.
 */
#pragma once

#include "base/arena.h"
#include "base/str.h"
#include "web/report/report.h"

struct td_error;

/* The words of a command line, quoted where a shell would need it. */
td_str td_report_command(struct td_arena *arena, int argc, char **argv);

/* Can the file be written, as far as one can tell before there is something to write? TD_INVALID,
 * TD_IO. */
int td_report_check(const char *path, struct td_error *err);

struct td_report_head td_report_head(td_str title, td_str command);

/* The data around which the file is made is checked for its size here. */
int td_report_save(const char *path, td_str title, const struct td_buf *data, struct td_error *err);
