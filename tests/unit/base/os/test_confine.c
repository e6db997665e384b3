/* What a confined process may no longer do, tried; and what it still does as before. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/os/confine.h"

#define LANDLOCK_OF_SIGNALS 6 /* the first version that keeps them in */

/* A folder with a file of ours, and one with a file of another owner. */
struct place {
    char top[64];
    char ours[80];
    char theirs[80];
    char plain[80];
};

static void write_file(const char *path)
{
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_true(fputs("content", file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void place_make(struct place *place)
{
    (void)snprintf(place->top, sizeof(place->top), "td-confine-XXXXXX");
    assert_non_null(mkdtemp(place->top));
    (void)snprintf(place->plain, sizeof(place->plain), "%s/a", place->top);
    assert_int_equal(mkdir(place->plain, 0700), 0);
    (void)snprintf(place->ours, sizeof(place->ours), "%s/a/token", place->top);
    (void)snprintf(place->plain, sizeof(place->plain), "%s/b", place->top);
    assert_int_equal(mkdir(place->plain, 0700), 0);
    (void)snprintf(place->theirs, sizeof(place->theirs), "%s/b/secret", place->top);
    write_file(place->ours);
    write_file(place->theirs);
}

static void place_remove(const struct place *place)
{
    char folder[80];
    assert_int_equal(unlink(place->ours), 0);
    assert_int_equal(unlink(place->theirs), 0);
    assert_int_equal(rmdir(place->plain), 0);
    (void)snprintf(folder, sizeof(folder), "%s/a", place->top);
    assert_int_equal(rmdir(folder), 0);
    assert_int_equal(rmdir(place->top), 0);
}

static bool can_open(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC, 0600);
    return fd >= 0 && close(fd) == 0;
}

static void *thread_body(void *context)
{
    *(int *)context = 1;
    return NULL;
}

static bool can_start_thread(void)
{
    pthread_t thread;
    int was_run = 0;
    return pthread_create(&thread, NULL, thread_body, &was_run) == 0 &&
           pthread_join(thread, NULL) == 0 && was_run == 1;
}

static bool can_find_names(void)
{
    struct addrinfo *found = NULL;
    bool is_found = getaddrinfo("localhost", "443", NULL, &found) == 0;
    if (found) {
        freeaddrinfo(found);
    }
    return is_found;
}

static bool can_make_socket(int family, int kind)
{
    int fd = socket(family, kind | SOCK_CLOEXEC, 0);
    return fd >= 0 && close(fd) == 0;
}

#define TRY(number, is_good)                                                                       \
    if (!(is_good)) {                                                                              \
        return number;                                                                             \
    }

/* 0, or the number of the first thing that is not as it should be. */
static int try_files(const struct place *place, bool has_landlock)
{
    if (!has_landlock) {
        return 0;
    }
    char beside[96];
    (void)snprintf(beside, sizeof(beside), "%s.new", place->ours);
    TRY(1, can_open(place->ours, O_RDONLY));
    TRY(2, !can_open(place->theirs, O_RDONLY) && errno == EACCES);
    TRY(3, !can_open(place->ours, O_WRONLY) && errno == EACCES);
    TRY(4, !can_open(beside, O_WRONLY | O_CREAT) && errno == EACCES);
    TRY(5, unlink(place->ours) != 0 && errno == EACCES);
    TRY(6, !opendir("/root") || geteuid() != 0);
    TRY(7, can_open("/etc/passwd", O_RDONLY));
    TRY(8, !can_open("/etc/td-confine", O_WRONLY | O_CREAT));
    TRY(9, can_open("/proc/self/statm", O_RDONLY));
    return 0;
}

static int try_calls(const struct place *place, bool has_seccomp)
{
    int ends[2];
    int waiting = 0;
    if (!has_seccomp) {
        return 0;
    }
    char *words[] = {"true", NULL};
    TRY(20, execv("/bin/true", words) != 0 && errno == EPERM);
    TRY(21, mount("none", "/", "tmpfs", 0, NULL) != 0 && errno == EPERM);
    TRY(22, !can_make_socket(AF_PACKET, SOCK_RAW) && errno == EPERM);
    TRY(23, can_make_socket(AF_INET, SOCK_STREAM));
    TRY(24, can_make_socket(AF_INET6, SOCK_STREAM) || errno == EAFNOSUPPORT);
    TRY(25, can_make_socket(AF_UNIX, SOCK_STREAM));
    TRY(26, chmod(place->ours, 0777) != 0 && errno == EPERM);
    TRY(27, truncate(place->ours, 0) != 0 && errno == EPERM);
    TRY(28, utimensat(AT_FDCWD, place->ours, NULL, 0) != 0 && errno == EPERM);
    TRY(29, memfd_create("code", 0) < 0 && errno == EPERM);
    TRY(30, ioctl(STDERR_FILENO, TIOCSTI, "x") != 0 && errno == EPERM);
    TRY(31, pipe(ends) == 0 && ioctl(ends[0], FIONREAD, &waiting) == 0);
    return 0;
}

/* In a process of its own, so that nothing it loads is there for the confined one. */
static bool can_find_names_unconfined(void)
{
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        _exit(can_find_names() ? 0 : 1);
    }
    return waitpid(child, &status, 0) == child && status == 0;
}

/* In the domain of landlock of this process are its own children only. */
static bool can_signal_others(void)
{
    return kill(getppid(), 0) == 0 || errno != EPERM;
}

static int confined_child(const struct place *place)
{
    struct td_error err = TD_ERROR_INIT;
    const td_str files[] = {td_str_from(place->ours), TD_STR_EMPTY};
    const struct td_confine_options options = {.files = files, .file_count = 2};
    struct td_confined confined;
    bool has_names = can_find_names_unconfined(); /* a bare machine may have no /etc/hosts */
    if (td_confine(&options, &confined, &err) != TD_OK) {
        return 60;
    }
    int failed = try_files(place, confined.landlock_version > 0);
    failed = failed != 0 ? failed : try_calls(place, confined.has_seccomp);
    TRY(failed, failed == 0);
    TRY(12, confined.landlock_version < LANDLOCK_OF_SIGNALS || !can_signal_others());
    TRY(40, can_find_names() == has_names);
    TRY(41, can_start_thread());
    return 0;
}

static void test_confine_takes_away_what_is_not_needed(void **state)
{
    struct place place;
    int status = -1;
    (void)state;
    place_make(&place);
    pid_t child = fork();
    if (child == 0) {
        _exit(confined_child(&place));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    place_remove(&place);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

#ifdef __linux__
/* Where the kernel has both, both are in force: the test above does not pass by their absence. */
static void test_confine_says_what_is_in_force(void **state)
{
    int status = -1;
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        struct td_error err = TD_ERROR_INIT;
        const struct td_confine_options options = {.file_count = 0};
        struct td_confined confined;
        int code = td_confine(&options, &confined, &err);
        bool has_kernel = access("/proc/sys/kernel/seccomp", F_OK) == 0;
        _exit(code == TD_OK && confined.has_seccomp == has_kernel ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_confine_takes_away_what_is_not_needed),
#ifdef __linux__
        cmocka_unit_test(test_confine_says_what_is_in_force),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
