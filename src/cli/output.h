/*
 * What `--output` means for every command: a table for people, the same account as JSON or YAML for
 * machines.
 */
#pragma once

#include "base/json/json.h"

enum td_output { TD_OUTPUT_TABLE, TD_OUTPUT_JSON, TD_OUTPUT_YAML };

/* TD_EXIT_DONE, or TD_EXIT_FAILED after one line that names the command, the value and the choices.
 */
int td_output_parse(const char *command, const char *word, enum td_output *ret);

/* A report on standard output, as JSON or YAML; TD_EXIT_FAILED, and no output, when it is too
 * large. */
int td_output_print(const struct td_json *report, enum td_output output);
