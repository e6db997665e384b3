/* Runs a fuzz target over every file of a folder, and over every prefix of the small ones: the same
 * code as the fuzzer's, as an ordinary test. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_BYTES_MAX (1 << 20)
#define PREFIX_BYTES_MAX 512

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The input gets a heap block of exactly its size, so that a read past its end is seen by a
 * sanitizer. */
static void run_prefix(const uint8_t *data, size_t size)
{
    uint8_t *exact = malloc(size > 0 ? size : 1);
    if (!exact) {
        abort();
    }
    memcpy(exact, data, size);
    (void)LLVMFuzzerTestOneInput(exact, size); /* a target always returns 0; a finding aborts */
    free(exact);
}

static int run_file(const char *path)
{
    static uint8_t data[FILE_BYTES_MAX];
    FILE *file = fopen(path, "rb");
    if (!file) {
        (void)fprintf(stderr, "%s: cannot open\n", path);
        return -1;
    }
    size_t size = fread(data, 1, sizeof(data), file);
    (void)fclose(file); /* only read from */
    run_prefix(data, size);
    size_t limit = size < PREFIX_BYTES_MAX ? size : PREFIX_BYTES_MAX;
    for (size_t prefix = 0; prefix < limit; prefix++) {
        run_prefix(data, prefix);
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        (void)fprintf(stderr, "usage: %s CORPUS-FOLDER\n", argv[0]);
        return 2;
    }
    DIR *folder = opendir(argv[1]);
    if (!folder) {
        (void)fprintf(stderr, "%s: cannot open the corpus\n", argv[1]);
        return 2;
    }
    size_t count = 0;
    int status = 0;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        if (entry->d_name[0] == '.') {
            continue;
        }
        char path[4096];
        (void)snprintf(path, sizeof(path), "%s/%s", argv[1], entry->d_name);
        status |= run_file(path);
        count++;
    }
    (void)closedir(folder);
    (void)printf("%zu corpus files\n", count);
    return status == 0 && count > 0 ? 0 : 1;
}
