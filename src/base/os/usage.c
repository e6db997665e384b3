#include "base/os/usage.h"

#include <dirent.h>
#include <malloc.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/str.h"

/* Both numbers of pages at the start of statm: "size resident ...". */
static void usage_read_memory(struct td_usage *usage)
{
    char line[256];
    FILE *file = fopen("/proc/self/statm", "re");
    if (!file) {
        return;
    }
    if (fgets(line, sizeof(line), file)) {
        td_str text = td_str_from(line);
        size_t first = td_str_find(text, ' ', 0);
        size_t second = td_str_find(text, ' ', first < text.len ? first + 1 : first);
        int64_t page_bytes = sysconf(_SC_PAGESIZE);
        int64_t pages;
        if (td_str_to_int64(td_str_slice(text, 0, first), &pages)) {
            usage->virtual_bytes = pages * page_bytes;
        }
        if (first < second && td_str_to_int64(td_str_slice(text, first + 1, second), &pages)) {
            usage->resident_bytes = pages * page_bytes;
        }
    }
    (void)fclose(file); /* only read */
}

static int64_t usage_count_files(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int64_t count = 0;
    if (!folder) {
        return 0;
    }
    for (const struct dirent *entry; (entry = readdir(folder));) {
        count += entry->d_name[0] != '.';
    }
    (void)closedir(folder); /* only read */
    return count - 1;       /* the folder itself was open */
}

static double usage_seconds(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

int64_t td_usage_files_max(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0) {
        return 0;
    }
    return files.rlim_cur > INT64_MAX ? INT64_MAX : (int64_t)files.rlim_cur;
}

void td_usage_raise_files(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files); /* it goes on with fewer */
    }
}

struct td_usage td_usage_read(void)
{
    struct td_usage usage = {.open_files = usage_count_files()};
    struct rusage used;
    usage_read_memory(&usage);
    if (getrusage(RUSAGE_SELF, &used) == 0) {
        usage.cpu_seconds = usage_seconds(used.ru_utime) + usage_seconds(used.ru_stime);
    }
    usage.files_max = td_usage_files_max();
    return usage;
}

void td_usage_trim(void)
{
#ifdef __GLIBC__
    (void)malloc_trim(0); /* whether there was anything is of no concern */
#endif
}
