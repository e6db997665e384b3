/*
 * The kernel's interfaces are used directly: landlock by its three system calls, seccomp by a
 * program of classic BPF that is made from a list. Both need no_new_privs, which is set first.
 *
 * The seccomp list names what is refused, not what is allowed: a C library of another version calls
 * other calls for the same work, and an autoscaler that dies of that is worse than one more call in
 * reach. Refused calls fail with EPERM.
 */
#include "base/os/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/error.h"

#if defined(__linux__) && __has_include(<linux/landlock.h>) && __has_include(<linux/seccomp.h>)
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define CONFINE_PATH_BYTES 4096
#define CONFINE_WRITES_ALL 0xfff3ULL /* every right of landlock 1 to 5 but those of reading */
#define CONFINE_READS (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define LANDLOCK_SCOPES_SINCE 6
#define LANDLOCK_SCOPES 3ULL /* abstract local sockets of others, and signals to them */

/* ---- Landlock ---- */

/* The kernel's struct landlock_ruleset_attr, whose last members the header may not have yet. */
struct confine_rules {
    uint64_t handled_access_fs;
    uint64_t handled_access_net;
    uint64_t scoped;
};

/* What libc and OpenSSL read when they look up names or authorities, and we about ourselves. */
static const char *const confine_readable[] = {
    "/etc",
    "/usr",
    "/proc",
    "/sys/devices/system/cpu",
    "/sys/fs/cgroup",
    "/dev/null",
    "/dev/random",
    "/dev/urandom",
    "/run/systemd/resolve",
    "/run/resolvconf",
    "/run/NetworkManager",
};

/* The rights that this kernel can take away; it refuses a rule set with others. */
static uint64_t landlock_rights(int version)
{
    static const unsigned bits[] = {0, 13, 14, 15, 15, 16}; /* known to each version */
    size_t last = sizeof(bits) / sizeof(bits[0]) - 1;
    unsigned known = bits[(size_t)version < last ? (size_t)version : last];
    return (CONFINE_WRITES_ALL | CONFINE_READS) & ((1ULL << known) - 1);
}

/* What cannot be opened is not there, and needs no rule. */
static void landlock_allow(int rules, const char *path)
{
    struct landlock_path_beneath_attr rule = {.allowed_access = LANDLOCK_ACCESS_FS_READ_FILE};
    int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0) {
        return;
    }
    int folder = openat(fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (folder >= 0) {
        rule.allowed_access = CONFINE_READS;
        (void)close(folder); /* it was only looked for */
    }
    rule.parent_fd = fd;
    /* It fails for rights that the rule set does not have; reading is in each. */
    (void)syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
    (void)close(fd); /* the rule set holds it now */
}

/* The folder, since a file is often replaced by another one of its name. */
static void landlock_allow_folder(int rules, td_str file)
{
    char folder[CONFINE_PATH_BYTES];
    size_t len = file.len;
    while (len > 0 && file.ptr[len - 1] != '/') {
        len--;
    }
    if (file.len == 0 || len >= sizeof(folder)) {
        return;
    }
    if (len == 0) {
        landlock_allow(rules, ".");
        return;
    }
    memcpy(folder, file.ptr, len);
    folder[len] = '\0';
    landlock_allow(rules, folder);
}

/* Where the libraries of this process lie: a lookup of names may load one more from there. */
static void landlock_allow_libraries(int rules)
{
    char line[CONFINE_PATH_BYTES];
    FILE *maps = fopen("/proc/self/maps", "re");
    while (maps && fgets(line, sizeof(line), maps)) {
        const char *path = strchr(line, '/');
        if (path && strstr(path, ".so")) {
            landlock_allow_folder(rules, td_str_trim(td_str_from(path)));
        }
    }
    if (maps) {
        (void)fclose(maps); /* it was only read */
    }
}

static int confine_files(const struct td_confine_options *options, struct td_confined *ret,
                         struct td_error *err)
{
    long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    if (version <= 0) {
        return TD_OK;
    }
    const bool has_scopes = version >= LANDLOCK_SCOPES_SINCE;
    const struct confine_rules attr = {
        .handled_access_fs = landlock_rights((int)version),
        .scoped = has_scopes ? LANDLOCK_SCOPES : 0,
    };
    /* An older kernel refuses a member that it does not know. */
    size_t size = has_scopes ? sizeof(attr) : sizeof(attr.handled_access_fs);
    int rules = (int)syscall(SYS_landlock_create_ruleset, &attr, size, 0);
    if (rules < 0) {
        return td_error_set(err, TD_IO, "landlock: cannot make rules: %s", strerror(errno));
    }
    for (size_t i = 0; i < sizeof(confine_readable) / sizeof(confine_readable[0]); i++) {
        landlock_allow(rules, confine_readable[i]);
    }
    landlock_allow_libraries(rules);
    for (size_t i = 0; i < options->file_count; i++) {
        landlock_allow_folder(rules, options->files[i]);
    }
    int reason = syscall(SYS_landlock_restrict_self, rules, 0) == 0 ? 0 : errno;
    (void)close(rules); /* the process holds them now */
    if (reason != 0) {
        return td_error_set(err, TD_IO, "landlock: cannot apply rules: %s", strerror(reason));
    }
    ret->landlock_version = (int)version;
    return TD_OK;
}

/* ---- Seccomp ---- */

#if defined(__x86_64__)
#define CONFINE_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define CONFINE_ARCH AUDIT_ARCH_AARCH64
#elif defined(__riscv) && __riscv_xlen == 64
#define CONFINE_ARCH AUDIT_ARCH_RISCV64
#endif

#if defined(__SANITIZE_ADDRESS__)
#define CONFINE_TRACES 1 /* the leak check stops the threads with ptrace */
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CONFINE_TRACES 1
#endif
#endif

static const unsigned confine_refused[] = {
    SYS_execve,
    SYS_execveat,
#ifndef CONFINE_TRACES
    SYS_ptrace,
#endif
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_kcmp,
#ifdef SYS_pidfd_getfd
    SYS_pidfd_getfd,
#endif
#ifdef SYS_process_madvise
    SYS_process_madvise,
#endif
    SYS_memfd_create,
    SYS_fanotify_init,
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_open_tree,
    SYS_move_mount,
    SYS_fsopen,
    SYS_fsmount,
    SYS_fsconfig,
    SYS_fspick,
#ifdef SYS_mount_setattr
    SYS_mount_setattr,
#endif
    SYS_unshare,
    SYS_setns,
    SYS_bpf,
    SYS_perf_event_open,
    SYS_userfaultfd,
    SYS_io_uring_setup,
    SYS_io_uring_enter,
    SYS_io_uring_register,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_kexec_load,
#ifdef SYS_kexec_file_load
    SYS_kexec_file_load,
#endif
    SYS_reboot,
    SYS_swapon,
    SYS_swapoff,
    SYS_acct,
    SYS_quotactl,
#ifdef SYS_quotactl_fd
    SYS_quotactl_fd,
#endif
    SYS_add_key,
    SYS_request_key,
    SYS_keyctl,
    SYS_open_by_handle_at,
    SYS_name_to_handle_at,
    SYS_personality,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_adjtimex,
    SYS_clock_adjtime,
    SYS_sethostname,
    SYS_setdomainname,
    SYS_syslog,
    SYS_vhangup,
    SYS_mknodat,
    SYS_setuid,
    SYS_setgid,
    SYS_setreuid,
    SYS_setregid,
    SYS_setresuid,
    SYS_setresgid,
    SYS_setgroups,
    SYS_setfsuid,
    SYS_setfsgid,
    SYS_capset,
    /* What landlock lets be: owners, modes, times and attributes of files, and their length before
     * its third version. */
    SYS_fchmod,
    SYS_fchmodat,
    SYS_fchown,
    SYS_fchownat,
    SYS_utimensat,
    SYS_truncate,
    SYS_setxattr,
    SYS_lsetxattr,
    SYS_fsetxattr,
    SYS_removexattr,
    SYS_lremovexattr,
    SYS_fremovexattr,
#ifdef SYS_fchmodat2
    SYS_fchmodat2,
#endif
#ifdef SYS_chmod
    SYS_chmod,
    SYS_chown,
    SYS_lchown,
    SYS_utime,
    SYS_utimes,
    SYS_futimesat,
    SYS_mknod,
#endif
#ifdef SYS_iopl
    SYS_iopl,
    SYS_ioperm,
#endif
#ifdef SYS_modify_ldt
    SYS_modify_ldt,
#endif
};

/* Netlink tells getaddrinfo which addresses this machine has. */
static const unsigned confine_families[] = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK};

/* Both put words into the terminal that the process was started from, as if they were typed. */
static const unsigned confine_ioctls[] = {TIOCSTI, TIOCLINUX};

#define CONFINE_STEPS_MAX 224
#define CONFINE_NUMBERS_MAX 0x40000000U /* from here on: x32 on a 64-bit kernel */
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define LOWER_HALF 4 /* of an argument: a step loads 32 bits */
#else
#define LOWER_HALF 0
#endif

struct confine_program {
    struct sock_filter steps[CONFINE_STEPS_MAX];
    unsigned short count;
};

static void program_add(struct confine_program *program, unsigned code, uint32_t operand,
                        unsigned if_true, unsigned if_false)
{
    td_assert(program->count < CONFINE_STEPS_MAX);
    program->steps[program->count++] = (struct sock_filter){
        .code = (uint16_t)code, .jt = (uint8_t)if_true, .jf = (uint8_t)if_false, .k = operand};
}

static void program_load(struct confine_program *program, size_t offset)
{
    program_add(program, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static void program_end(struct confine_program *program, uint32_t verdict)
{
    program_add(program, BPF_RET | BPF_K, verdict, 0, 0);
}

/* Refuse at once when what was loaded is the value. */
static void program_refuse(struct confine_program *program, uint32_t value)
{
    program_add(program, BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1);
    program_end(program, SECCOMP_RET_ERRNO | EPERM);
}

static void program_make(struct confine_program *program)
{
#ifdef CONFINE_ARCH
    program_load(program, offsetof(struct seccomp_data, arch));
    program_add(program, BPF_JMP | BPF_JEQ | BPF_K, CONFINE_ARCH, 1, 0);
    program_end(program, SECCOMP_RET_KILL_PROCESS); /* the numbers of another machine */
#endif
    program_load(program, offsetof(struct seccomp_data, nr));
#if defined(__x86_64__)
    program_add(program, BPF_JMP | BPF_JGE | BPF_K, CONFINE_NUMBERS_MAX, 0, 1);
    program_end(program, SECCOMP_RET_ERRNO | ENOSYS);
#endif
    for (size_t i = 0; i < sizeof(confine_refused) / sizeof(confine_refused[0]); i++) {
        program_refuse(program, confine_refused[i]);
    }
    const unsigned ioctls = sizeof(confine_ioctls) / sizeof(confine_ioctls[0]);
    program_add(program, BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 2 * ioctls + 2);
    program_load(program, LOWER_HALF + offsetof(struct seccomp_data, args[1]));
    for (size_t i = 0; i < ioctls; i++) {
        program_refuse(program, confine_ioctls[i]);
    }
    program_end(program, SECCOMP_RET_ALLOW);
    program_add(program, BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 1, 0);
    program_end(program, SECCOMP_RET_ALLOW);
    program_load(program, LOWER_HALF + offsetof(struct seccomp_data, args[0]));
    for (size_t i = 0; i < sizeof(confine_families) / sizeof(confine_families[0]); i++) {
        program_add(program, BPF_JMP | BPF_JEQ | BPF_K, confine_families[i], 0, 1);
        program_end(program, SECCOMP_RET_ALLOW);
    }
    program_end(program, SECCOMP_RET_ERRNO | EPERM);
}

static int confine_calls(struct td_confined *ret, struct td_error *err)
{
    struct confine_program program = {.count = 0};
    program_make(&program);
    const struct sock_fprog filter = {.len = program.count, .filter = program.steps};
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter) == 0) {
        ret->has_seccomp = true;
        return TD_OK;
    }
    return errno == ENOSYS || errno == EINVAL
               ? TD_OK /* a kernel without it */
               : td_error_set(err, TD_IO, "seccomp: cannot apply the filter: %s", strerror(errno));
}

int td_confine(const struct td_confine_options *options, struct td_confined *ret,
               struct td_error *err)
{
    *ret = (struct td_confined){.has_seccomp = false};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        return td_error_set(err, TD_IO, "no_new_privs: %s", strerror(errno));
    }
    int code = confine_files(options, ret, err);
    return code == TD_OK ? confine_calls(ret, err) : code;
}

#else

int td_confine(const struct td_confine_options *options, struct td_confined *ret,
               struct td_error *err)
{
    (void)options;
    (void)err;
    *ret = (struct td_confined){.has_seccomp = false};
    return TD_OK;
}

#endif
