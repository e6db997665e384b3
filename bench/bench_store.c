/* The store of the local cluster: commits and reads a second, memory an object beyond its text,
 * watchers, and the journal, in a folder made in the working directory. */
#include <dirent.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/os/clock.h"
#include "base/os/loop.h"
#include "local/store/store.h"

#define OBJECT_BYTES 3000
#define WATCHERS 200
#define EVENTS 1000

static struct td_clock machine;
static struct td_loop *loop;

static double seconds(td_duration since)
{
    return (double)(td_clock_steady(&machine) - since) / (double)TD_SECOND;
}

static void must(int code, const struct td_error *err)
{
    if (code < 0) {
        (void)fprintf(stderr, "bench_store: %s\n", err->message);
        _Exit(2);
    }
}

static void commit(struct td_store *store, struct td_collection *pods, enum td_change_type type,
                   size_t number)
{
    static char text[OBJECT_BYTES + 1];
    char name[40];
    struct td_error err = TD_ERROR_INIT;
    uint64_t version = td_store_reserve(store);
    (void)snprintf(name, sizeof(name), "pod-%07zu", number);
    int len = snprintf(text, sizeof(text),
                       "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"%s\","
                       "\"resourceVersion\":\"%llu\",\"labels\":{\"app\":\"web\"}},\"pad\":\"",
                       name, (unsigned long long)version);
    memset(text + len, 'x', OBJECT_BYTES - (size_t)len - 2);
    memcpy(text + OBJECT_BYTES - 2, "\"}", 2);
    const struct td_commit change = {
        .type = type,
        .ns = number % 2 ? TD_STR("default") : TD_STR("kube-system"),
        .name = td_str_from(name),
        .version = version,
        .json = {.ptr = text, .len = OBJECT_BYTES},
    };
    must(td_store_commit(store, pods, &change, NULL, &err), &err);
}

static size_t heap_bytes(void)
{
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

static void report(size_t count, const char *what, double value, const char *unit)
{
    printf("bench store_%zu_%s %.2f %s\n", count, what, value, unit);
}

/* A page of 500 is asked as it was 5,000 changes ago, or half of them. */
static void bench_objects(size_t count)
{
    struct td_error err = TD_ERROR_INIT;
    struct td_store *store;
    struct td_collection *pods;
    size_t heap = heap_bytes();
    must(td_store_new(loop, NULL, &store, &err), &err);
    must(td_store_collection(store, TD_STR("pods"), &pods, &err), &err);
    td_duration begin = td_clock_steady(&machine);
    for (size_t i = 0; i < count; i++) { /* not in order of their names */
        commit(store, pods, TD_CHANGE_ADDED, i * 7919 % count);
    }
    double create = seconds(begin);
    must(td_loop_run(loop, &err), &err);
    td_store_compact(store, td_store_version(store));
    double bytes = (double)(heap_bytes() - heap) / (double)count;
    begin = td_clock_steady(&machine);
    for (size_t i = 0; i < count; i++) {
        commit(store, pods, TD_CHANGE_MODIFIED, i * 104729 % count);
    }
    double modify = seconds(begin);
    begin = td_clock_steady(&machine);
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        char name[40];
        size_t number = i * 15485863 % count;
        (void)snprintf(name, sizeof(name), "pod-%07zu", number);
        td_str ns = number % 2 ? TD_STR("default") : TD_STR("kube-system");
        found += td_collection_get(pods, ns, td_str_from(name)) ? 1 : 0;
    }
    double get = seconds(begin);
    begin = td_clock_steady(&machine);
    struct td_page page;
    must(td_collection_snapshot_at(pods, &(struct td_page_query){.max = 0}, &page, &err), &err);
    double list = seconds(begin);
    found += page.count;
    td_page_done(&page);
    struct td_page_query query = {
        .version = td_store_version(store) - (count < 10000 ? count / 2 : 5000), .max = 500};
    begin = td_clock_steady(&machine);
    must(td_collection_snapshot_at(pods, &query, &page, &err), &err);
    double old = seconds(begin);
    td_page_done(&page);
    if (found != 2 * count) {
        (void)fprintf(stderr, "bench_store: %zu objects found of %zu\n", found, 2 * count);
        _Exit(1);
    }
    report(count, "create", (double)count / create, "commits/s");
    report(count, "update", (double)count / modify, "commits/s");
    report(count, "get", get * 1e9 / (double)count, "ns");
    report(count, "list", list * 1e3, "ms");
    report(count, "old_page", old * 1e3, "ms");
    report(count, "overhead", bytes - OBJECT_BYTES, "bytes/object");
    must(td_loop_run(loop, &err), &err);
    td_store_free(store);
}

struct watcher {
    struct td_watch_cursor cursor;
    size_t seen;
};

static void watcher_woken(void *context)
{
    struct watcher *watcher = context;
    const struct td_change *change;
    while (td_watch_next(&watcher->cursor, &change, NULL) == TD_OK && change) {
        watcher->seen++;
    }
}

static void bench_watchers(void)
{
    static struct watcher watchers[WATCHERS];
    struct td_error err = TD_ERROR_INIT;
    struct td_store *store;
    struct td_collection *pods;
    must(td_store_new(loop, NULL, &store, &err), &err);
    must(td_store_collection(store, TD_STR("pods"), &pods, &err), &err);
    for (size_t i = 0; i < WATCHERS; i++) {
        must(td_watch_open(&watchers[i].cursor, pods, td_store_version(store), watcher_woken,
                           &watchers[i], &err),
             &err);
    }
    td_duration begin = td_clock_steady(&machine);
    for (size_t i = 0; i < EVENTS; i++) {
        commit(store, pods, TD_CHANGE_ADDED, i);
        if (i % 10 == 9) {
            must(td_loop_run(loop, &err), &err);
        }
    }
    double spent = seconds(begin);
    size_t seen = 0;
    for (size_t i = 0; i < WATCHERS; i++) {
        seen += watchers[i].seen;
        td_watch_close(&watchers[i].cursor);
    }
    if (seen != (size_t)WATCHERS * EVENTS) {
        (void)fprintf(stderr, "bench_store: %zu events seen\n", seen);
        _Exit(1);
    }
    printf("bench store_watch_%dx%d %.2f ms\n", WATCHERS, EVENTS, spent * 1e3);
    td_store_free(store);
}

/* Turns of `batch` commits, each brought to disk. */
static void bench_journal(const char *folder, size_t batch, size_t count)
{
    struct td_error err = TD_ERROR_INIT;
    struct td_store *store;
    struct td_collection *pods;
    must(td_store_new(loop, &(struct td_store_options){.data_dir = folder}, &store, &err), &err);
    must(td_store_collection(store, TD_STR("pods"), &pods, &err), &err);
    size_t have = td_collection_count(pods, TD_STR_EMPTY);
    td_duration begin = td_clock_steady(&machine);
    for (size_t i = 0; i < count; i++) {
        size_t number = i % 1000;
        commit(store, pods, number < have || i >= 1000 ? TD_CHANGE_MODIFIED : TD_CHANGE_ADDED,
               number);
        if (i % batch == batch - 1) {
            must(td_loop_run(loop, &err), &err);
        }
    }
    must(td_loop_run(loop, &err), &err);
    double spent = seconds(begin);
    td_store_free(store);
    begin = td_clock_steady(&machine);
    must(td_store_new(loop, &(struct td_store_options){.data_dir = folder}, &store, &err), &err);
    printf("bench store_journal_batch_%zu %.0f commits/s\n", batch, (double)count / spent);
    printf("bench store_journal_batch_%zu_recovery %.2f ms\n", batch, seconds(begin) * 1e3);
    td_store_free(store);
}

static void folder_remove(const char *folder)
{
    DIR *dir = opendir(folder);
    const struct dirent *entry;
    while (dir && (entry = readdir(dir)) != NULL) {
        (void)unlinkat(dirfd(dir), entry->d_name, 0); /* fails for the folders themselves */
    }
    if (dir) {
        (void)closedir(dir);
    }
    (void)rmdir(folder);
}

int main(void)
{
    struct td_error err = TD_ERROR_INIT;
    char folder[] = "bench-store-XXXXXX";
    machine = td_clock_real();
    struct td_clock clock = td_clock_virtual(0);
    must(td_loop_new(&clock, &loop, &err), &err);
    bench_objects(1000);
    bench_objects(10000);
    bench_objects(150000);
    bench_watchers();
    if (mkdtemp(folder)) {
        bench_journal(folder, 1, 1000);
        bench_journal(folder, 64, 20000);
        folder_remove(folder);
    }
    td_loop_free(loop);
    return 0;
}
