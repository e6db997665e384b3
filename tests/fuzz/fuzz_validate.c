/* Whole runs of `tandem validate`: the first byte of an input chooses the form of the output and
 * whether it migrates, the rest are files of one folder, parted by bytes of value 0. Each run ends
 * with a status that is known, within a budget, and what it prints as JSON can be read. */
#include <fcntl.h>
#include <getopt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/json/json.h"
#include "base/limits.h"
#include "base/os/file.h"
#include "budget.h"
#include "cli/command.h"

#define PRINTED_BYTES_MAX ((size_t)256 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const outputs[] = {"table", "json", "yaml", "junit", "sarif"};
static const char *const names[] = {"a.yaml", "b.json", "kustomization.yaml", "c.yml"};

static char folder[] = "td-validate-XXXXXX";
static int printed = -1; /* standard output while a run lasts, and after it */

static void path_of(size_t which, char path[64])
{
    (void)snprintf(path, 64, "%s/%s", folder, names[which]);
}

static void folder_remove(void)
{
    for (size_t i = 0; i < TD_COUNT(names); i++) {
        char path[64];
        path_of(i, path);
        (void)unlink(path); /* it may not be there */
    }
    (void)rmdir(folder);
}

static void fuzz_begin(void)
{
    if (printed >= 0) {
        return;
    }
    td_assert(mkdtemp(folder));
    td_assert(atexit(folder_remove) == 0);
    printed = memfd_create("printed", MFD_CLOEXEC);
    td_assert(printed >= 0);
    td_assert(dup2(printed, STDOUT_FILENO) == STDOUT_FILENO);
}

/* The parts between zeros, a file each; those that an input has no part for are not there. */
static void lay_files(td_str input)
{
    size_t from = 0;
    for (size_t i = 0; i < TD_COUNT(names); i++) {
        char path[64];
        path_of(i, path);
        if (from > input.len) {
            (void)unlink(path); /* it may not be there */
            continue;
        }
        size_t end = i + 1 < TD_COUNT(names) ? td_str_find(input, '\0', from) : input.len;
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        td_assert(fd >= 0);
        td_assert(write(fd, input.ptr + from, end - from) == (ssize_t)(end - from));
        td_assert(close(fd) == 0);
        from = end + 1;
    }
}

/* A report is one JSON text, unless it is too large to be printed at all. */
static void check_json(int status)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    char path[64];
    td_str text;
    struct td_json *tree;
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", printed);
    td_assert(td_file_read(path, &arena, PRINTED_BYTES_MAX, &text, NULL) == TD_OK);
    td_assert(td_json_parse(&arena, text, NULL, &tree, NULL) == TD_OK || status == TD_EXIT_FAILED);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    td_str input = {.ptr = (const char *)data, .len = size};
    if (size == 0) {
        return 0;
    }
    fuzz_begin();
    const char *output = outputs[data[0] % TD_COUNT(outputs)];
    bool migrates = data[0] / TD_COUNT(outputs) % 2 == 1;
    char command[] = "validate";
    char form[32];
    char migrate[] = "--migrate";
    char *argv[] = {command, form, folder, migrates ? migrate : NULL, NULL};
    (void)snprintf(form, sizeof(form), "--output=%s", output);
    lay_files(td_str_slice(input, 1, size));
    td_assert(ftruncate(printed, 0) == 0);
    td_assert(lseek(printed, 0, SEEK_SET) == 0);
    const struct budget budget = budget_begin();
    optind = 0; /* of getopt: begin anew */
    int status = td_command_validate(migrates ? 4 : 3, argv);
    td_assert(fflush(stdout) == 0);
    budget_end(&budget);
    td_assert(status >= TD_EXIT_DONE && status <= TD_EXIT_FAILED);
    if (strcmp(output, "json") == 0 || strcmp(output, "sarif") == 0) {
        check_json(status);
    }
    return 0;
}
