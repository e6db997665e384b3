/* A durable store comes back as it was acknowledged: after a kill at any byte, after any failing
 * call, never with something torn; what is damaged is refused, and left as it is. */
#include "unit/local/store/journal_bed.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/limits.h"
#include "local/store/journal.h"

#define VERSIONS_MAX 400
#define ADDED TD_CHANGE_ADDED
#define MODIFIED TD_CHANGE_MODIFIED
#define DELETED TD_CHANGE_DELETED

static void test_crc32c_of_known_texts(void **state)
{
    (void)state;
    static const char zeros[32];
    static const struct {
        td_str text;
        uint32_t sum;
    } rows[] = {
        {TD_STR_INIT(""), 0},
        {TD_STR_INIT("a"), 0xc1d04330},
        {TD_STR_INIT("123456789"), 0xe3069283},
        {TD_STR_INIT("The quick brown fox jumps over the lazy dog"), 0x22620404},
        {{.ptr = zeros, .len = 32}, 0x8a9136aa},
    };
    struct td_crc32c crc;
    td_crc32c_init(&crc);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(td_crc32c_sum(&crc, 0, rows[i].text), rows[i].sum);
        for (size_t cut = 0; cut <= rows[i].text.len; cut++) {
            uint32_t start = td_crc32c_sum(&crc, 0, td_str_slice(rows[i].text, 0, cut));
            td_str rest = td_str_slice(rows[i].text, cut, rows[i].text.len);
            assert_int_equal(td_crc32c_sum(&crc, start, rest), rows[i].sum);
        }
    }
}

static void test_record_reads_back_and_notices_each_changed_bit(void **state)
{
    (void)state;
    struct td_crc32c crc;
    struct td_buf out;
    td_crc32c_init(&crc);
    td_buf_init(&out, 1000);
    const struct td_journal_record record = {
        .type = TD_JOURNAL_MODIFIED,
        .version = UINT64_MAX - 7,
        .mark = 1234567890123,
        .collection = TD_STR("pods"),
        .ns = TD_STR(""),
        .name = TD_STR("a"),
        .json = TD_STR("{}"),
    };
    td_journal_put_record(&out, &crc, &record);
    struct td_journal_record back;
    assert_int_equal(td_journal_get_record(td_buf_str(&out), &crc, &back), TD_OK);
    assert_true(back.type == record.type && back.version == record.version);
    assert_true(back.mark == record.mark);
    assert_str(back.collection, "pods");
    assert_str(back.ns, "");
    assert_str(back.name, "a");
    assert_str(back.json, "{}");
    for (size_t bit = 0; bit < out.len * 8; bit++) {
        out.ptr[bit / 8] = (char)(out.ptr[bit / 8] ^ (1 << bit % 8));
        assert_int_equal(td_journal_get_record(td_buf_str(&out), &crc, &back), TD_INVALID);
        out.ptr[bit / 8] = (char)(out.ptr[bit / 8] ^ (1 << bit % 8));
    }
    for (size_t len = 0; len < out.len; len++) {
        td_str part = {.ptr = out.ptr, .len = len};
        assert_int_equal(td_journal_get_record(part, &crc, &back), TD_INVALID);
    }
    td_buf_done(&out);
}

/* ---- One run of writes, and what was true of it ---- */

static struct {
    char folder[FOLDER_BYTES];
    char copy[FOLDER_BYTES];
    char *states[VERSIONS_MAX]; /* by version; what the store held then */
    uint64_t reported;          /* the newest version that a wait was told to be on disk */
    uint64_t calls;             /* of the fault function so far */
    uint64_t fail_at;           /* this call and the later ones of its kind fail; 0: none */
    int number;                 /* the errno */
    size_t write_part;          /* writes are cut to a part of this; 1: they are whole */
    bool copies;                /* at each call the folder is copied and recovered */
    bool has_failed;            /* a call was made to fail */
} run;

static void run_forget(void)
{
    for (size_t i = 0; i < VERSIONS_MAX; i++) {
        test_free(run.states[i]);
        run.states[i] = NULL;
    }
    run.reported = 0;
    run.calls = 0;
    run.has_failed = false;
}

static void run_note_state(const struct bed *bed)
{
    uint64_t version = td_store_version(bed->store);
    assert_true(version < VERSIONS_MAX);
    test_free(run.states[version]);
    run.states[version] = bed_state(bed);
}

/* The folder comes back as some version that is not older than what was told, and exactly so. */
static void run_check(char *folder, uint64_t reported, uint64_t newest)
{
    struct bed bed;
    struct td_error err = TD_ERROR_INIT;
    int code = bed_try(&bed, &(struct td_store_options){.data_dir = folder}, &err);
    if (code < 0) {
        fail_msg("call %llu: %s", (unsigned long long)run.calls, err.message);
    }
    uint64_t version = td_store_version(bed.store);
    if (version < reported || version > newest) {
        fail_msg("call %llu: came back at %llu, not in %llu to %llu", (unsigned long long)run.calls,
                 (unsigned long long)version, (unsigned long long)reported,
                 (unsigned long long)newest);
    }
    assert_true(td_store_is_durable(bed.store));
    char *state = bed_state(&bed);
    assert_string_equal(state, run.states[version]);
    test_free(state);
    bed_close(&bed);
}

struct run_wait {
    struct td_durable_wait wait;
    uint64_t version;
    int code; /* 1: not told yet */
};

static void run_wait_reported(void *context, int code)
{
    struct run_wait *wait = context;
    wait->code = code;
    if (code == TD_OK && wait->version > run.reported) {
        run.reported = wait->version;
    }
}

static uint64_t run_newest(void)
{
    uint64_t newest = 0;
    for (uint64_t version = 0; version < VERSIONS_MAX; version++) {
        newest = run.states[version] ? version : newest;
    }
    return newest;
}

static int run_fault(void *context, enum td_journal_call call, size_t *bytes)
{
    (void)context;
    run.calls++;
    if (run.copies) {
        folder_copy(run.folder, run.copy);
        run_check(run.copy, run.reported, run_newest());
    }
    if (run.fail_at > 0 && run.calls >= run.fail_at &&
        (!run.has_failed || call != TD_JOURNAL_OPEN)) {
        run.has_failed = true;
        return run.number;
    }
    if (bytes && run.write_part > 1 && *bytes > 1) {
        *bytes = *bytes / run.write_part + 1;
    }
    return 0;
}

static const struct td_journal_fault run_faults = {.fn = run_fault, .log_bytes_min = 900};

/* 40 turns of 1 to 3 commits over a few objects, each waited for; several snapshots on the way. */
static void run_writes(struct bed *bed)
{
    static const char *const names[] = {"a", "b", "c", "d", "e"};
    struct td_collection *nodes;
    assert_int_equal(td_store_collection(bed->store, TD_STR("nodes"), &nodes, NULL), TD_OK);
    bool is_failed = false;
    for (size_t turn = 0; turn < 40; turn++) {
        struct run_wait wait = {.code = 1};
        bool has_write = false;
        uint64_t durable = td_store_durable_version(bed->store);
        for (size_t n = 0; n <= turn % 3; n++) {
            struct td_collection *collection = turn % 4 == 3 ? nodes : bed->pods;
            const char *name = names[(turn * 3 + n * 2) % 5];
            bool is_there = td_collection_get(collection, TD_STR("n"), td_str_from(name)) != NULL;
            enum td_change_type type = !is_there ? ADDED : (turn + n) % 3 == 0 ? DELETED : MODIFIED;
            int code = bed_write(bed, collection, type, "n", name, 20 + turn, NULL);
            assert_true(code == TD_OK || (code == TD_IO && run.has_failed));
            assert_false(is_failed && code == TD_OK);
            is_failed = is_failed || code == TD_IO;
            has_write = has_write || code == TD_OK;
            if (code == TD_OK) {
                run_note_state(bed);
            }
        }
        wait.version = td_store_version(bed->store);
        td_store_when_durable(bed->store, &wait.wait, run_wait_reported, &wait);
        bed_run(bed);
        assert_true(wait.code == TD_OK || (wait.code == TD_IO && run.has_failed && has_write));
        assert_true(td_store_is_durable(bed->store));
        if (wait.code == TD_IO) {
            is_failed = true;
            assert_true(td_store_version(bed->store) == durable);
        }
        char *state = bed_state(bed);
        assert_string_equal(state, run.states[td_store_version(bed->store)]);
        test_free(state);
    }
}

static void test_everything_comes_back_after_a_restart(void **state)
{
    (void)state;
    struct bed bed;
    folder_make(run.folder);
    run_forget();
    const struct td_store_options options = {.data_dir = run.folder, .version_start = 10};
    bed_open(&bed, &options);
    run_note_state(&bed);
    run_writes(&bed);
    uint64_t newest = td_store_version(bed.store);
    assert_true(newest == run.reported);
    bed_close(&bed);
    run_check(run.folder, newest, newest);

    /* A watch goes on over the restart, from the version the log began with. */
    bed_open(&bed, &options);
    struct td_watch_cursor cursor = {0};
    assert_int_equal(td_watch_open(&cursor, bed.pods, 9, NULL, NULL, NULL), TD_GONE);
    assert_int_equal(td_watch_open(&cursor, bed.pods, 10, NULL, NULL, NULL), TD_OK);
    const struct td_change *change;
    size_t count = 0;
    while (td_watch_next(&cursor, &change, NULL) == TD_OK && change) {
        count++;
    }
    assert_true(count > 20);
    td_watch_close(&cursor);
    struct td_page page;
    assert_int_equal(
        td_collection_snapshot_at(bed.pods, &(struct td_page_query){.version = 10}, &page, NULL),
        TD_OK);
    assert_int_equal(page.count, 0);
    td_page_done(&page);
    bed_close(&bed);
    folder_remove(run.folder);
    run_forget();
}

static void test_only_one_process_has_the_folder(void **state)
{
    (void)state;
    struct bed bed;
    struct bed other;
    struct td_error err = TD_ERROR_INIT;
    folder_make(run.folder);
    const struct td_store_options options = {.data_dir = run.folder};
    bed_open(&bed, &options);
    assert_int_equal(bed_try(&other, &options, &err), TD_BUSY);
    assert_non_null(strstr(err.message, run.folder));
    bed_close(&bed);
    bed_open(&bed, &options);
    bed_close(&bed);
    folder_remove(run.folder);
}

static void test_cursors_and_waits_see_only_what_is_on_disk(void **state)
{
    (void)state;
    struct bed bed;
    folder_make(run.folder);
    bed_open(&bed, &(struct td_store_options){.data_dir = run.folder});
    struct td_watch_cursor cursor = {0};
    const struct td_change *change;
    assert_int_equal(td_watch_open(&cursor, bed.pods, 1, NULL, NULL, NULL), TD_OK);
    bed_put(&bed, ADDED, "n", "a");
    assert_false(td_store_is_durable(bed.store));
    assert_true(td_store_durable_version(bed.store) == 1);
    assert_non_null(td_collection_get(bed.pods, TD_STR("n"), TD_STR("a")));
    assert_int_equal(td_watch_next(&cursor, &change, NULL), TD_OK);
    assert_null(change);
    td_store_compact(bed.store, 2);
    bed_run(&bed);
    assert_true(td_store_is_durable(bed.store));
    assert_int_equal(td_watch_next(&cursor, &change, NULL), TD_OK);
    assert_true(change && change->version == 2);
    td_watch_close(&cursor);
    bed_close(&bed);
    folder_remove(run.folder);
}

/* Names of the log files, by the highest number. */
static void note_last_log(const char *folder, const char *name, void *context)
{
    (void)folder;
    char *last = context;
    if (strncmp(name, "log-", 4) == 0 && (strlen(name) > strlen(last) || strcmp(name, last) > 0)) {
        (void)snprintf(last, 40, "%.39s", name);
    }
}

static void test_log_cut_at_every_byte_comes_back(void **state)
{
    (void)state;
    static char bytes[FILE_BYTES];
    struct bed bed;
    uint64_t ends[16]; /* of the file, by version */
    folder_make(run.folder);
    folder_make(run.copy);
    run_forget();
    bed_open(&bed, &(struct td_store_options){.data_dir = run.folder});
    run_note_state(&bed);
    ends[1] = file_load(run.folder, "log-1", bytes);
    for (uint64_t version = 2; version < 12; version++) {
        enum td_change_type type = version < 5 ? ADDED : version < 9 ? MODIFIED : DELETED;
        bed_put(&bed, type, "n", (char[]){(char)('a' + version % 3), '\0'});
        if (version % 3 == 0) {
            bed_run(&bed);
        }
        run_note_state(&bed);
        ends[version] = file_load(run.folder, "log-1", bytes);
    }
    bed_close(&bed);
    size_t len = file_load(run.folder, "log-1", bytes);
    uint64_t version = 1;
    for (size_t cut = 0; cut <= len; cut++) {
        folder_empty(run.copy);
        file_save(run.copy, "log-1", bytes, cut);
        version += version < 11 && cut >= ends[version + 1] ? 1 : 0;
        run_check(run.copy, version, version);
        if (cut % 7 == 0) { /* it goes on from there, and the next start finds nothing to cut */
            struct bed again;
            bed_open(&again, &(struct td_store_options){.data_dir = run.copy});
            bed_put(&again, ADDED, "n", "new");
            bed_close(&again);
            char *before = run.states[version + 1];
            bed_open(&again, &(struct td_store_options){.data_dir = run.copy});
            run.states[version + 1] = bed_state(&again);
            assert_non_null(strstr(run.states[version + 1], "n/new"));
            bed_close(&again);
            run_check(run.copy, version + 1, version + 1);
            test_free(run.states[version + 1]);
            run.states[version + 1] = before;
        }
    }
    folder_remove(run.folder);
    folder_remove(run.copy);
    run_forget();
}

static void test_damage_is_refused_and_left_alone(void **state)
{
    (void)state;
    static char bytes[FILE_BYTES];
    static char after[FILE_BYTES];
    struct bed bed;
    folder_make(run.folder);
    folder_make(run.copy);
    run_forget();
    bed_open(&bed, &(struct td_store_options){.data_dir = run.folder});
    run_note_state(&bed);
    size_t last_begin = 0;
    for (char c = 'a'; c <= 'd'; c++) {
        last_begin = file_load(run.folder, "log-1", bytes);
        bed_put(&bed, ADDED, "n", (char[]){c, '\0'});
        run_note_state(&bed);
        bed_run(&bed);
    }
    bed_close(&bed);
    size_t len = file_load(run.folder, "log-1", bytes);
    for (size_t at = 0; at < len; at++) {
        bytes[at] = (char)(bytes[at] ^ 0x10);
        folder_empty(run.copy);
        file_save(run.copy, "log-1", bytes, len);
        if (at >= last_begin) { /* cannot be told from a torn end */
            run_check(run.copy, 4, 4);
        } else {
            struct td_error err = TD_ERROR_INIT;
            assert_int_equal(bed_try(&bed, &(struct td_store_options){.data_dir = run.copy}, &err),
                             TD_INVALID);
            assert_non_null(strstr(err.message, "/log-1: damaged at byte "));
            assert_int_equal(file_load(run.copy, "log-1", after), len);
            assert_memory_equal(after, bytes, len);
        }
        bytes[at] = (char)(bytes[at] ^ 0x10);
    }
    folder_remove(run.folder);
    folder_remove(run.copy);
    run_forget();
}

/* Three commits, the middle one unreadable. When they are of one batch, the last one does not prove
 * that it was acknowledged: with a hole of zeros it is what a power failure leaves, else damage. */
static void test_only_a_hole_in_the_last_batch_is_an_end(void **state)
{
    (void)state;
    static char bytes[FILE_BYTES];
    static const struct {
        bool has_hole;
        bool is_one_batch;
        int code;
    } rows[] = {
        {true, true, TD_OK},
        {false, true, TD_INVALID},
        {true, false, TD_INVALID},
        {false, false, TD_INVALID},
    };
    for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
        struct bed bed;
        struct td_error err = TD_ERROR_INIT;
        size_t ends[3];
        folder_make(run.folder);
        run_forget();
        bed_open(&bed, &(struct td_store_options){.data_dir = run.folder});
        for (size_t i = 0; i < 3; i++) {
            const char name[] = {(char)('a' + i), '\0'};
            assert_int_equal(bed_write(&bed, bed.pods, ADDED, "n", name, 2000, &err), TD_OK);
            run_note_state(&bed);
            if (!rows[row].is_one_batch) {
                bed_run(&bed);
            }
            ends[i] = file_load(run.folder, "log-1", bytes);
        }
        bed_close(&bed);
        size_t at = (ends[0] + 511) / 512 * 512;
        memset(bytes + at, rows[row].has_hole ? 0 : '1', 512);
        file_save(run.folder, "log-1", bytes, ends[2]);
        if (rows[row].code == TD_OK) {
            run_check(run.folder, 2, 2);
        } else {
            int code = bed_try(&bed, &(struct td_store_options){.data_dir = run.folder}, &err);
            assert_int_equal(code, rows[row].code);
        }
        folder_remove(run.folder);
    }
    run_forget();
}

static void test_missing_or_foreign_files_are_refused(void **state)
{
    (void)state;
    static char bytes[FILE_BYTES];
    static const struct {
        const char *remove; /* a file that goes away; NULL: none */
        const char *from;   /* a file that takes ... */
        const char *to;     /* ... this name */
        int code;
    } rows[] = {
        {NULL, NULL, NULL, TD_OK},
        {"log", NULL, NULL, TD_INVALID},
        {"snapshot", NULL, NULL, TD_IO},
        {NULL, "log", "snapshot", TD_INVALID},
        {NULL, "snapshot", "log", TD_INVALID},
        {NULL, "log", "log-1", TD_OK},
        {NULL, "log", "log-01", TD_OK},
        {NULL, "log", "log-x", TD_OK},
        {NULL, "log", "snapshot-9.tmp", TD_OK},
        {NULL, "snapshot", "snapshot-99", TD_INVALID},
        {NULL, "log", "log-99", TD_IO},
    };
    struct bed bed;
    folder_make(run.folder);
    folder_make(run.copy);
    run_forget();
    bed_open(&bed, &(struct td_store_options){.data_dir = run.folder, .fault = &run_faults});
    run_note_state(&bed);
    run_writes(&bed);
    bed_put(&bed, ADDED, "m", "last");
    bed_close(&bed);
    char log[40] = "";
    char snapshot[60];
    folder_each(run.folder, note_last_log, log);
    assert_true(strcmp(log, "log-3") >= 0);
    (void)snprintf(snapshot, sizeof(snapshot), "snapshot-%s", log + 4);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct td_error err = TD_ERROR_INIT;
        folder_copy(run.folder, run.copy);
        const char *names[] = {rows[i].remove, rows[i].from, rows[i].to};
        for (size_t n = 0; n < 3; n++) {
            names[n] = names[n] && strcmp(names[n], "log") == 0        ? log
                       : names[n] && strcmp(names[n], "snapshot") == 0 ? snapshot
                                                                       : names[n];
        }
        if (names[0]) {
            folder_remove_file(run.copy, names[0], NULL);
        }
        if (names[1]) {
            size_t len = file_load(run.copy, names[1], bytes);
            file_save(run.copy, names[2], bytes, len);
        }
        int code = bed_try(&bed, &(struct td_store_options){.data_dir = run.copy}, &err);
        if (code != rows[i].code) {
            fail_msg("row %zu: code %d: %s", i, code, err.message);
        }
        if (code == TD_OK) {
            bed_close(&bed);
        }
    }
    file_save(run.copy, "plain", "", 0);
    char path[FOLDER_BYTES + 10];
    (void)snprintf(path, sizeof(path), "%s/plain", run.copy);
    assert_int_equal(bed_try(&bed, &(struct td_store_options){.data_dir = path}, NULL), TD_IO);
    (void)snprintf(path, sizeof(path), "%s/no/way", run.copy);
    assert_int_equal(bed_try(&bed, &(struct td_store_options){.data_dir = path}, NULL), TD_IO);
    folder_remove(run.folder);
    folder_remove(run.copy);
    run_forget();
}

/* The folder as it is before each system call, and in the middle of each write, is what a kill
 * leaves: nothing that was told to be done is missing, in the midst of snapshots too. */
static void test_kill_at_any_call_loses_nothing(void **state)
{
    (void)state;
    for (size_t part = 1; part <= 3; part += 2) {
        struct bed bed;
        folder_make(run.folder);
        folder_make(run.copy);
        run_forget();
        run.states[1] = test_calloc(1, 1);
        run.copies = true;
        run.write_part = part;
        bed_open(&bed, &(struct td_store_options){.data_dir = run.folder, .fault = &run_faults});
        run_writes(&bed);
        bed_close(&bed);
        run.copies = false;
        run.write_part = 1;
        char log[40] = "";
        folder_each(run.folder, note_last_log, log);
        assert_true(strcmp(log, "log-3") >= 0); /* there were snapshots */
        folder_remove(run.folder);
        folder_remove(run.copy);
    }
    run_forget();
}

/* A job of the loop beside the one that writes the snapshot: commits that make the log long enough
 * for one, and then one between any two of its slices. */
struct slices {
    struct bed bed;
    size_t writes;
    size_t writes_between; /* while a snapshot was being written */
    size_t ticks;
};

static void slices_write(struct slices *slices)
{
    struct bed *bed = &slices->bed;
    const char name[] = {(char)('a' + (slices->writes * 5) % 14), '\0'};
    bool is_there = td_collection_get(bed->pods, TD_STR("n"), td_str_from(name)) != NULL;
    enum td_change_type type = !is_there ? ADDED : slices->writes % 3 == 0 ? DELETED : MODIFIED;
    struct td_error err = TD_ERROR_INIT;
    if (bed_write(bed, bed->pods, type, "n", name, (size_t)200 << 10, &err) < 0) {
        fail_msg("write %s: %s", name, err.message);
    }
    run_note_state(bed);
    slices->writes++;
}

static enum td_job_result slices_job(td_str key, void *context)
{
    (void)key;
    struct slices *slices = context;
    char path[FOLDER_BYTES + 20];
    (void)snprintf(path, sizeof(path), "%s/snapshot-2.tmp", run.folder);
    bool is_between = access(path, F_OK) == 0;
    if (slices->writes < 30 || is_between) {
        slices_write(slices);
        slices->writes_between += is_between ? 1 : 0;
    }
    slices->ticks++;
    bool is_over = slices->writes_between > 0 && !is_between;
    return slices->ticks < 2000 && !is_over ? TD_JOB_AGAIN : TD_JOB_DONE;
}

static void test_commits_between_the_slices_of_a_snapshot_are_kept(void **state)
{
    (void)state;
    static const struct td_journal_fault fault = {.fn = run_fault, .log_bytes_min = 4 << 20};
    struct slices slices = {.writes = 0};
    folder_make(run.folder);
    folder_make(run.copy);
    run_forget();
    run.states[1] = test_calloc(1, 1);
    run.copies = true;
    bed_open(&slices.bed, &(struct td_store_options){.data_dir = run.folder, .fault = &fault});
    struct td_queue *queue = td_queue_new(slices.bed.loop, slices_job, &slices, 1);
    assert_int_equal(td_queue_add(queue, TD_STR("write"), NULL), TD_OK);
    bed_run(&slices.bed);
    assert_true(slices.writes_between >= 2);
    assert_true(td_store_is_durable(slices.bed.store));
    run_note_state(&slices.bed);
    uint64_t newest = td_store_version(slices.bed.store);
    td_queue_free(queue);
    bed_close(&slices.bed);
    run.copies = false;
    run_check(run.folder, newest, newest);
    char log[40] = "";
    folder_each(run.folder, note_last_log, log);
    assert_string_equal(log, "log-2");
    folder_remove(run.folder);
    folder_remove(run.copy);
    run_forget();
}

/* The process that is killed: it writes until then, and tells through the pipe what is on disk. */
struct victim {
    struct bed bed;
    struct td_durable_wait wait;
    int pipe_fd;
};

static void victim_reported(void *context, int code)
{
    struct victim *victim = context;
    uint64_t version = td_store_version(victim->bed.store);
    bool is_reported = code == TD_OK && write(victim->pipe_fd, &version, sizeof(version)) > 0;
    if (!is_reported) {
        _exit(1);
    }
}

static _Noreturn void victim_live(const char *folder, int pipe_fd)
{
    static const struct td_journal_fault fault = {.fn = NULL, .log_bytes_min = 30000};
    static struct victim victim;
    victim.pipe_fd = pipe_fd;
    bed_open(&victim.bed, &(struct td_store_options){.data_dir = folder, .fault = &fault});
    for (size_t i = 0;; i++) {
        for (size_t n = 0; n <= i % 4; n++) {
            const char name[] = {(char)('a' + (i * 3 + n) % 20), '\0'};
            bool is_there =
                td_collection_get(victim.bed.pods, TD_STR("n"), td_str_from(name)) != NULL;
            bed_put(&victim.bed, !is_there ? ADDED : i % 5 == 0 ? DELETED : MODIFIED, "n", name);
        }
        td_store_when_durable(victim.bed.store, &victim.wait, victim_reported, &victim);
        bed_run(&victim.bed);
    }
}

/* Every object holds the version it has: nothing is torn or mixed. */
static void victim_check_texts(const struct bed *bed)
{
    struct td_collection_iter iter;
    iter = td_collection_walk(bed->pods, TD_STR_EMPTY);
    const struct td_stored *stored;
    while ((stored = td_collection_iter_next(&iter)) != NULL) {
        char labels[60];
        (void)snprintf(labels, sizeof(labels), "{\"v\":\"%llu\"}",
                       (unsigned long long)stored->version);
        assert_str(stored->labels, labels);
    }
}

static void test_killed_process_loses_nothing_it_reported(void **state)
{
    (void)state;
    folder_make(run.folder);
    uint64_t reported = 0;
    for (unsigned round = 0; round < 20; round++) {
        int fds[2];
        assert_int_equal(pipe(fds), 0);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            (void)close(fds[0]);
            victim_live(run.folder, fds[1]);
        }
        (void)close(fds[1]);
        /* Not by a clock: after so many answers. The one being written then is cut anywhere. */
        uint64_t version;
        for (size_t n = 0; n < 20 + 37 * (round % 7); n++) {
            assert_true(read(fds[0], &version, sizeof(version)) == sizeof(version));
            reported = version;
        }
        assert_int_equal(kill(child, SIGKILL), 0);
        while (read(fds[0], &version, sizeof(version)) == sizeof(version)) {
            reported = version;
        }
        (void)close(fds[0]);
        int status;
        assert_true(waitpid(child, &status, 0) == child);
        assert_true(WIFSIGNALED(status));
        struct bed bed;
        bed_open(&bed, &(struct td_store_options){.data_dir = run.folder});
        assert_true(td_store_version(bed.store) >= reported);
        victim_check_texts(&bed);
        bed_close(&bed);
    }
    folder_remove(run.folder);
}

/* Each system call fails in turn, for good: from a failing log on nothing is told to be done, reads
 * show what was; a failing snapshot does no harm. */
static void test_each_failing_call_in_turn(void **state)
{
    (void)state;
    static const int numbers[] = {EIO, ENOSPC};
    bool is_untouched = false;
    for (uint64_t fail_at = 1; !is_untouched; fail_at++) {
        struct bed bed;
        struct td_error err = TD_ERROR_INIT;
        folder_make(run.folder);
        run_forget();
        run.states[1] = test_calloc(1, 1);
        run.fail_at = fail_at;
        run.number = numbers[fail_at % 2];
        run.write_part = 1 + fail_at % 3;
        int code = bed_try(
            &bed, &(struct td_store_options){.data_dir = run.folder, .fault = &run_faults}, &err);
        if (code == TD_OK) {
            run_writes(&bed);
            bed_close(&bed);
        } else {
            assert_true(code == TD_IO && run.has_failed);
            assert_true(err.message[0] != '\0');
        }
        is_untouched = !run.has_failed;
        run.fail_at = 0;
        run_check(run.folder, run.reported, run_newest());
        folder_remove(run.folder);
        assert_true(fail_at < 2000);
    }
    run.write_part = 1;
    run_forget();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_crc32c_of_known_texts),
        cmocka_unit_test(test_record_reads_back_and_notices_each_changed_bit),
        cmocka_unit_test(test_everything_comes_back_after_a_restart),
        cmocka_unit_test(test_only_one_process_has_the_folder),
        cmocka_unit_test(test_cursors_and_waits_see_only_what_is_on_disk),
        cmocka_unit_test(test_log_cut_at_every_byte_comes_back),
        cmocka_unit_test(test_damage_is_refused_and_left_alone),
        cmocka_unit_test(test_only_a_hole_in_the_last_batch_is_an_end),
        cmocka_unit_test(test_missing_or_foreign_files_are_refused),
        cmocka_unit_test(test_kill_at_any_call_loses_nothing),
        cmocka_unit_test(test_commits_between_the_slices_of_a_snapshot_are_kept),
        cmocka_unit_test(test_killed_process_loses_nothing_it_reported),
        cmocka_unit_test(test_each_failing_call_in_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
