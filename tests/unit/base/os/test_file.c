/* Whole files under a cap, standard input, and walks over folders. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/os/file.h"

#define ARENA_BYTES ((size_t)64 << 20)

struct place {
    struct td_arena arena;
    char folder[32];
};

/* A path inside the test's own folder. */
static const char *path_of(struct place *place, const char *name)
{
    return td_arena_format(&place->arena, "%s/%s", place->folder, name).ptr;
}

static void make_file(struct place *place, const char *name, td_str content)
{
    FILE *file = fopen(path_of(place, name), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(content.ptr, 1, content.len, file), content.len);
    assert_int_equal(fclose(file), 0);
}

static void make_folder(struct place *place, const char *name)
{
    assert_int_equal(mkdir(path_of(place, name), 0700), 0);
}

static int set_up(void **state)
{
    static struct place place;
    td_arena_init(&place.arena, ARENA_BYTES);
    (void)snprintf(place.folder, sizeof(place.folder), "td-test-file-XXXXXX");
    *state = &place;
    return mkdtemp(place.folder) ? 0 : -1;
}

/* Removes what the tests of this file make: two levels and no more. */
static int tear_down(void **state)
{
    struct place *place = *state;
    static const char *const names[] = {
        "empty",   "small",     "large",        "secret",    "x/b.yaml", "x/a.yml",
        "x/c.txt", "x/.h.yaml", "x/sub/d.yaml", "x/zz.json", "x/sub",    "x/.git/e.yaml",
        "x/.git",  "x/a.yaml",  "x/c.yaml",     "x/d.yaml",  "x/e.txt",  "x/none/f.txt",
        "x/none",  "x",         "fifo"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        (void)remove(path_of(place, names[i])); /* most tests make only some of them */
    }
    int code = rmdir(place->folder);
    td_arena_done(&place->arena);
    return code;
}

/* Content comes back byte for byte, followed by a NUL that is not counted. */
static void test_file_reads_whole_files(void **state)
{
    struct place *place = *state;
    td_str content = {0};
    struct td_error err = TD_ERROR_INIT;
    make_file(place, "empty", TD_STR_EMPTY);
    assert_int_equal(td_file_read(path_of(place, "empty"), &place->arena, 0, &content, &err),
                     TD_OK);
    assert_int_equal(content.len, 0);
    td_str bytes = TD_STR("a\0b\377\n");
    make_file(place, "small", bytes);
    assert_int_equal(td_file_read(path_of(place, "small"), &place->arena, 100, &content, &err),
                     TD_OK);
    assert_true(td_str_equal(content, bytes));
    assert_int_equal(content.ptr[content.len], '\0');
    td_auto_buf large;
    td_buf_init(&large, (size_t)1 << 20);
    for (int i = 0; i < 100000; i++) {
        (void)td_buf_append_format(&large, "%d\n", i);
    }
    make_file(place, "large", td_buf_str(&large));
    assert_int_equal(
        td_file_read(path_of(place, "large"), &place->arena, large.len, &content, NULL), TD_OK);
    assert_true(td_str_equal(content, td_buf_str(&large)));
}

/* A file at the cap is read, one byte more is refused with its name and the cap. */
static void test_file_bounds_bytes(void **state)
{
    struct place *place = *state;
    td_str content = TD_STR("untouched");
    struct td_error err = TD_ERROR_INIT;
    make_file(place, "small", TD_STR("12345"));
    const char *path = path_of(place, "small");
    assert_int_equal(td_file_read(path, &place->arena, 4, &content, &err), TD_LIMIT);
    assert_string_equal(err.message,
                        td_arena_format(&place->arena, "%s: larger than 4 bytes", path).ptr);
    assert_true(td_str_equal(content, TD_STR("untouched")));
    assert_int_equal(td_file_read(path, &place->arena, 5, &content, &err), TD_OK);
    assert_true(td_str_equal(content, TD_STR("12345")));
    /* A file without an end is not read to its end. */
    assert_int_equal(td_file_read("/dev/zero", &place->arena, 1000, &content, &err), TD_LIMIT);
    assert_string_equal(err.message, "/dev/zero: larger than 1000 bytes");
}

/* A file that cannot be read is named with the system's reason. */
static void test_file_names_what_fails(void **state)
{
    struct place *place = *state;
    td_str content = TD_STR("untouched");
    struct td_error err = TD_ERROR_INIT;
    assert_int_equal(td_file_read("no/such/file", &place->arena, 10, &content, &err), TD_NOT_FOUND);
    assert_string_equal(err.message, "no/such/file: No such file or directory");
    assert_int_equal(td_file_read("", &place->arena, 10, &content, NULL), TD_NOT_FOUND);
    assert_int_equal(td_file_read(place->folder, &place->arena, 10, &content, &err), TD_IO);
    assert_string_equal(err.message,
                        td_arena_format(&place->arena, "%s: Is a directory", place->folder).ptr);
    make_file(place, "secret", TD_STR("s"));
    assert_int_equal(chmod(path_of(place, "secret"), 0), 0);
    if (geteuid() != 0) { /* root may read everything */
        assert_int_equal(td_file_read(path_of(place, "secret"), &place->arena, 10, &content, &err),
                         TD_DENIED);
    }
    assert_true(td_str_equal(content, TD_STR("untouched")));
}

/* "-" is standard input, read to its end, under the same cap, and left open. */
static void test_file_reads_standard_input(void **state)
{
    struct place *place = *state;
    int saved = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    assert_true(saved >= 0);
    for (size_t max = 4; max <= 5; max++) {
        int ends[2];
        assert_int_equal(pipe(ends), 0);
        assert_int_equal(write(ends[1], "12345", 5), 5);
        assert_int_equal(close(ends[1]), 0);
        assert_int_equal(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
        assert_int_equal(close(ends[0]), 0);
        td_str content = {0};
        struct td_error err = TD_ERROR_INIT;
        int code = td_file_read("-", &place->arena, max, &content, &err);
        assert_int_equal(code, max == 5 ? TD_OK : TD_LIMIT);
        if (code == TD_OK) {
            assert_true(td_str_equal(content, TD_STR("12345")));
        } else {
            assert_string_equal(err.message, "standard input: larger than 4 bytes");
        }
        assert_true(fcntl(STDIN_FILENO, F_GETFD) >= 0);
    }
    assert_int_equal(dup2(saved, STDIN_FILENO), STDIN_FILENO);
    assert_int_equal(close(saved), 0);
}

struct visits {
    struct td_buf names; /* each followed by a space, the test's folder left out */
    size_t skip;         /* bytes of the folder's name and its slash */
    int stop_code;       /* what every visit returns */
};

static int visit(const char *path, void *context, struct td_error *err)
{
    struct visits *visits = context;
    (void)td_buf_append_format(&visits->names, "%s ", path + visits->skip);
    return visits->stop_code < 0 ? td_error_set(err, visits->stop_code, "stopped") : TD_OK;
}

static void make_walk(struct place *place)
{
    make_folder(place, "x");
    make_folder(place, "x/sub");
    make_folder(place, "x/.git");
    make_folder(place, "x/none");
    make_file(place, "x/b.yaml", TD_STR("b"));
    make_file(place, "x/a.yml", TD_STR("a"));
    make_file(place, "x/c.txt", TD_STR("c"));
    make_file(place, "x/.h.yaml", TD_STR("h"));
    make_file(place, "x/sub/d.yaml", TD_STR("d"));
    make_file(place, "x/.git/e.yaml", TD_STR("e"));
    make_file(place, "x/zz.json", TD_STR("z"));
    make_file(place, "x/none/f.txt", TD_STR("f"));
}

/* A folder is walked in the order of names, without what is hidden or has another ending. */
static void test_file_walks_folders(void **state)
{
    struct place *place = *state;
    struct visits visits = {.skip = strlen(place->folder) + 1};
    struct td_error err = TD_ERROR_INIT;
    td_buf_init(&visits.names, 4096);
    make_walk(place);
    assert_int_equal(td_file_each(path_of(place, "x"), ".yaml,.yml,.json", visit, &visits, &err),
                     TD_OK);
    assert_string_equal(visits.names.ptr, "x/a.yml x/b.yaml x/sub/d.yaml x/zz.json ");
    td_buf_reset(&visits.names);
    assert_int_equal(td_file_each(path_of(place, "x/"), ".json", visit, &visits, &err), TD_OK);
    assert_string_equal(visits.names.ptr, "x/zz.json "); /* one slash */
    td_buf_reset(&visits.names);
    assert_int_equal(td_file_each(path_of(place, "x/c.txt"), ".yaml", visit, &visits, &err), TD_OK);
    assert_string_equal(visits.names.ptr, "x/c.txt ");
    td_buf_reset(&visits.names);
    assert_int_equal(td_file_each(path_of(place, "x/none"), ".yaml", visit, &visits, &err),
                     TD_NOT_FOUND);
    assert_string_equal(td_buf_str(&visits.names).ptr, "");
    visits.stop_code = TD_INVALID;
    assert_int_equal(td_file_each(path_of(place, "x"), ".yaml", visit, &visits, &err), TD_INVALID);
    assert_string_equal(visits.names.ptr, "x/b.yaml ");
    assert_string_equal(err.message, "stopped");
    td_buf_done(&visits.names);
}

/* A link to a folder may lead in a circle and is left out; one to a file is read, and one that
 * leads nowhere is visited, so that its reader says so. */
static void test_file_follows_links_to_files_only(void **state)
{
    struct place *place = *state;
    struct visits visits = {.skip = strlen(place->folder) + 1};
    struct td_error err = TD_ERROR_INIT;
    td_buf_init(&visits.names, 4096);
    make_folder(place, "x");
    make_file(place, "x/b.yaml", TD_STR("b"));
    assert_int_equal(symlink(".", path_of(place, "x/a.yaml")), 0);
    assert_int_equal(symlink("b.yaml", path_of(place, "x/c.yaml")), 0);
    assert_int_equal(symlink("nowhere", path_of(place, "x/d.yaml")), 0);
    assert_int_equal(symlink("nowhere", path_of(place, "x/e.txt")), 0);
    assert_int_equal(td_file_each(path_of(place, "x"), ".yaml", visit, &visits, &err), TD_OK);
    assert_string_equal(visits.names.ptr, "x/b.yaml x/c.yaml x/d.yaml ");
    assert_true(td_file_exists(path_of(place, "x/c.yaml")));
    assert_false(td_file_exists(path_of(place, "x/d.yaml")));
    td_buf_done(&visits.names);
}

/* Folders are walked down to the cap. */
static void test_file_bounds_folder_depth(void **state)
{
    struct place *place = *state;
    struct visits visits = {.skip = strlen(place->folder) + 1};
    struct td_error err = TD_ERROR_INIT;
    td_auto_buf path = td_buf_capped(TD_PATH_BYTES_MAX);
    td_buf_init(&visits.names, (size_t)1 << 20);
    assert_int_equal(td_buf_append(&path, TD_STR("x")), TD_OK);
    make_folder(place, path.ptr);
    for (int i = 0; i <= TD_FOLDER_DEPTH_MAX; i++) {
        assert_int_equal(td_buf_append(&path, TD_STR("/y")), TD_OK);
        make_folder(place, path.ptr);
    }
    int code = td_file_each(path_of(place, "x"), ".yaml", visit, &visits, &err);
    assert_int_equal(code, TD_LIMIT);
    for (; path.len > 0; path.len -= path.len > 1 ? 2 : 1) { /* the deepest first */
        td_str folder = td_arena_copy_str(&place->arena, td_buf_str(&path));
        assert_int_equal(rmdir(path_of(place, folder.ptr)), 0);
    }
    td_buf_done(&visits.names);
}

static mode_t mode_of(const char *path)
{
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    return status.st_mode & 07777;
}

/* A written file has the content and mode asked for, also over an older one, and leaves nothing
 * else behind. */
static void test_file_writes_in_one_step(void **state)
{
    struct place *place = *state;
    struct td_error err = TD_ERROR_INIT;
    const char *path = path_of(place, "small");
    td_str content;
    make_file(place, "small", TD_STR("an older and longer content"));
    assert_int_equal(chmod(path, 0644), 0);
    assert_int_equal(td_file_write(path, 0600, TD_STR("new"), &err), TD_OK);
    assert_int_equal(mode_of(path), 0600);
    assert_int_equal(td_file_read(path, &place->arena, 100, &content, &err), TD_OK);
    assert_true(td_str_equal(content, TD_STR("new")));
    assert_int_equal(td_file_write(path, 0644, TD_STR_EMPTY, &err), TD_OK);
    assert_int_equal(mode_of(path), 0644);
    assert_int_equal(td_file_read(path, &place->arena, 100, &content, &err), TD_OK);
    assert_int_equal(content.len, 0);
    assert_int_equal(err.code, TD_OK);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(place->folder), 0); /* no temporary file is left */
    assert_int_equal(mkdir(place->folder, 0700), 0);
}

/* What cannot be written is named, and the old file stays. */
static void test_file_write_failure_keeps_the_old(void **state)
{
    struct place *place = *state;
    struct td_error err = TD_ERROR_INIT;
    const char *missing = path_of(place, "no/such");
    assert_int_equal(td_file_write(missing, 0600, TD_STR("x"), &err), TD_NOT_FOUND);
    assert_non_null(strstr(err.message, "no/such: No such file"));
    make_folder(place, "x");
    err = TD_ERROR_INIT;
    assert_int_equal(td_file_write(path_of(place, "x"), 0600, TD_STR("y"), &err), TD_IO);
    assert_int_equal(rmdir(path_of(place, "x")), 0);
    assert_int_equal(rmdir(place->folder), 0);
    assert_int_equal(mkdir(place->folder, 0700), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_file_reads_whole_files, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_file_bounds_bytes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_file_names_what_fails, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_file_reads_standard_input, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_file_walks_folders, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_file_follows_links_to_files_only, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_file_bounds_folder_depth, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_file_writes_in_one_step, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_file_write_failure_keeps_the_old, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
