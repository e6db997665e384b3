/*
 * JSON straight into a buffer, for views of thousands of rows, which need no tree. Names are ours
 * and plain; a NULL name is an item of an array. The owner of the buffer checks it at the end.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"

struct td_json_writer {
    struct td_buf *out;
    bool has_item; /* a comma is due */
};

void td_writer_open(struct td_json_writer *writer, const char *name, char bracket);
void td_writer_close(struct td_json_writer *writer, char bracket);
void td_writer_text(struct td_json_writer *writer, const char *name, td_str text);
void td_writer_int(struct td_json_writer *writer, const char *name, int64_t value);
void td_writer_bool(struct td_json_writer *writer, const char *name, bool value);
void td_writer_null(struct td_json_writer *writer, const char *name);
/* Rounded to that many places behind the point; not finite: null. */
void td_writer_number(struct td_json_writer *writer, const char *name, double value, int places);
/* The same; below 0: null. */
void td_writer_known(struct td_json_writer *writer, const char *name, double value, int places);
/* JSON text as it is. */
void td_writer_raw(struct td_json_writer *writer, const char *name, td_str json);
