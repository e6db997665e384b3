#include "cli/output.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/os/env.h"
#include "base/os/screen_text.h"
#include "base/yaml/yaml.h"
#include "cli/command.h"

static int output_parse(const char *command, const char *word, const char *own, enum td_output *ret)
{
    const char *const words[] = {own, "json", "yaml"};
    for (size_t i = 0; i < TD_COUNT(words); i++) {
        if (strcmp(word, words[i]) == 0) {
            *ret = (enum td_output)i;
            return TD_EXIT_DONE;
        }
    }
    return td_command_fail("%s: --output: '%s': use %s, json or yaml", command, word, own);
}

int td_output_parse(const char *command, const char *word, enum td_output *ret)
{
    return output_parse(command, word, "table", ret);
}

int td_output_parse_text(const char *command, const char *word, enum td_output *ret)
{
    return output_parse(command, word, "text", ret);
}

bool td_output_has_utf8(void)
{
    return td_screen_has_utf8(td_env_get, NULL);
}

size_t td_output_width(void)
{
    struct winsize size;
    return isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

void td_output_setup(void)
{
    if (td_output_has_utf8()) {
        return;
    }
    FILE *out = td_screen_stream(STDOUT_FILENO, isatty(STDOUT_FILENO) ? _IOLBF : _IOFBF);
    FILE *errors = td_screen_stream(STDERR_FILENO, _IONBF);
    /* The GNU C library lets programs set them; without memory for a stream the old one stays. */
    stdout = out ? out : stdout;
    stderr = errors ? errors : stderr;
}

void td_output_json(const struct td_json *node, struct td_buf *out)
{
    td_auto_buf text = td_buf_capped(TD_TREE_ARENA_BYTES_MAX);
    bool is_plain = td_output_has_utf8();
    td_json_write(node, &(struct td_json_format){.indent = 2}, is_plain ? out : &text);
    if (!is_plain) {
        td_screen_ascii_json(out, td_buf_str(&text));
    }
    (void)td_buf_append_char(out, '\n'); /* the buffer's owner checks it */
    out->is_full = out->is_full || text.is_full;
}

void td_output_yaml(const struct td_json *node, struct td_buf *out)
{
    if (td_output_has_utf8()) {
        td_yaml_write(node, out);
    } else {
        td_yaml_write_ascii(node, out);
    }
}

int td_output_print(const struct td_json *report, enum td_output output)
{
    td_auto_buf text = td_buf_capped(TD_TREE_ARENA_BYTES_MAX);
    if (output == TD_OUTPUT_YAML) {
        td_output_yaml(report, &text);
    } else {
        td_output_json(report, &text);
    }
    struct td_error err = TD_ERROR_INIT;
    if (td_buf_check(&text, "the report", &err) < 0) {
        return td_command_fail("%s", err.message);
    }
    (void)fwrite(text.ptr, 1, text.len, stdout); /* main looks at the stream's state */
    return TD_EXIT_DONE;
}
