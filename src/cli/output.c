#include "cli/output.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/yaml/yaml.h"
#include "cli/command.h"

int td_output_parse(const char *command, const char *word, enum td_output *ret)
{
    static const char *const words[] = {"table", "json", "yaml"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(word, words[i]) == 0) {
            *ret = (enum td_output)i;
            return TD_EXIT_DONE;
        }
    }
    return td_command_fail("%s: --output: '%s': use table, json or yaml", command, word);
}

int td_output_print(const struct td_json *report, enum td_output output)
{
    td_auto_buf text;
    td_buf_init(&text, TD_TREE_ARENA_BYTES_MAX);
    if (output == TD_OUTPUT_YAML) {
        td_yaml_write(report, &text);
    } else {
        td_json_write(report, &(struct td_json_format){.indent = 2}, &text);
        (void)td_buf_append_char(&text, '\n'); /* checked just below */
    }
    struct td_error err = TD_ERROR_INIT;
    if (td_buf_check(&text, "the report", &err) < 0) {
        return td_command_fail("%s", err.message);
    }
    (void)fwrite(text.ptr, 1, text.len, stdout); /* main looks at the stream's state */
    return TD_EXIT_DONE;
}
