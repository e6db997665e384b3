#include "cli/report_file.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/os/file.h"
#include "cli/command.h"

#define REPORT_MODE 0644

static bool word_is_plain(td_str word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-./:=,@%+";
    for (size_t i = 0; i < word.len; i++) {
        if (!strchr(plain, word.ptr[i])) {
            return false;
        }
    }
    return word.len > 0;
}

static void word_write(td_str word, struct td_buf *out)
{
    if (word_is_plain(word)) {
        (void)td_buf_append(out, word);
        return;
    }
    (void)td_buf_append_char(out, '\'');
    for (size_t i = 0; i < word.len; i++) {
        (void)td_buf_append(out,
                            word.ptr[i] == '\'' ? TD_STR("'\\''") : td_str_slice(word, i, i + 1));
    }
    (void)td_buf_append_char(out, '\'');
}

td_str td_report_command(struct td_arena *arena, int argc, char **argv)
{
    td_auto_buf text = td_buf_capped(TD_OBJECT_BYTES_MAX); /* a longer one is cut */
    (void)td_buf_append(&text, TD_STR("tandem"));
    for (int i = 0; i < argc; i++) {
        (void)td_buf_append_char(&text, ' ');
        word_write(td_str_from(argv[i]), &text);
    }
    return td_arena_copy_str(arena, td_buf_str(&text));
}

int td_report_check(const char *path, struct td_error *err)
{
    td_auto_arena arena = td_arena_capped(TD_OBJECT_BYTES_MAX);
    struct stat status;
    td_str folder = td_str_from(path);
    if (stat(path, &status) == 0) {
        return S_ISREG(status.st_mode)
                   ? TD_OK
                   : td_error_set(err, TD_INVALID, "--report: %s: is no file", path);
    }
    while (folder.len > 0 && folder.ptr[folder.len - 1] != '/') {
        folder.len--;
    }
    const char *place = folder.len > 0 ? td_arena_copy_str(&arena, folder).ptr : ".";
    if (access(place, W_OK) != 0) {
        return td_error_set(err, TD_IO, "--report: %s: cannot write into %s: %s", path, place,
                            strerror(errno));
    }
    return TD_OK;
}

struct td_report_head td_report_head(td_str title, td_str command)
{
    return (struct td_report_head){
        .title = title, .command = command, .version = td_version_text()};
}

int td_report_save(const char *path, td_str title, const struct td_buf *data, struct td_error *err)
{
    td_auto_buf page = td_buf_capped(TD_REPORT_BYTES_MAX);
    int code = td_buf_check(data, "the report", err);
    code = code == TD_OK ? td_report_write(title, td_buf_str(data), &page, err) : code;
    return code == TD_OK ? td_file_write(path, REPORT_MODE, td_buf_str(&page), err)
                         : td_error_wrap(err, code, "--report: %s", path);
}
