/*
 * What commands print: a table, or the same account as JSON or YAML for machines. Where the locale
 * has no UTF-8 all of it is ASCII: standard output and standard error pass through one filter
 * (base/os/screen_text.h), and JSON and YAML have escapes instead, so that no value changes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/json/json.h"

enum td_output { TD_OUTPUT_TABLE, TD_OUTPUT_JSON, TD_OUTPUT_YAML };

/* Before anything is printed: puts the filter in place where it is needed. */
void td_output_setup(void);
bool td_output_has_utf8(void);

/* Columns of the terminal that standard output is; 0: it is none, and lines may have any length. */
size_t td_output_width(void);

/* TD_EXIT_DONE, or TD_EXIT_FAILED after one line that names the command, the value and the choices.
 */
int td_output_parse(const char *command, const char *word, enum td_output *ret);

/* The same of commands whose own form is text, not a table: "text", "json", "yaml". */
int td_output_parse_text(const char *command, const char *word, enum td_output *ret);

/* Appended for standard output: JSON indented, with a newline at its end. Check out at the end. */
void td_output_json(const struct td_json *node, struct td_buf *out);
void td_output_yaml(const struct td_json *node, struct td_buf *out);

/* A report on standard output, as JSON or YAML; TD_EXIT_FAILED, and no output, when it is too
 * large. */
int td_output_print(const struct td_json *report, enum td_output output);
