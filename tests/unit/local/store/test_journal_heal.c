/* A disk that fails and comes back: what was refused is not there, what was acknowledged is, in
 * memory and after a restart, and a snapshot that was being written does not bring back what was
 * taken back. */
#include "unit/local/store/journal_bed.h"

#include <errno.h>

#include "base/limits.h"
#include "local/store/journal.h"

static struct {
    int number;                /* what calls fail with; 0: they do not */
    enum td_journal_call call; /* which */
    uint64_t skip;             /* so many of them do not fail */
    bool has_failed;
} disk;

static int disk_fault(void *context, enum td_journal_call call, size_t *bytes)
{
    (void)context;
    (void)bytes;
    if (disk.number == 0 || call != disk.call) {
        return 0;
    }
    if (disk.skip > 0) {
        disk.skip--;
        return 0;
    }
    disk.has_failed = true;
    return disk.number;
}

static const struct td_journal_fault faults = {.fn = disk_fault, .log_bytes_min = UINT64_MAX / 2};

static void disk_fail(enum td_journal_call call, int number, uint64_t skip)
{
    disk.call = call;
    disk.number = number;
    disk.skip = skip;
    disk.has_failed = false;
}

static void disk_mend(struct bed *bed)
{
    disk.number = 0;
    td_clock_advance(&bed->clock, TD_STORE_HEAL_PAUSE);
}

static void wait_told(void *context, int code)
{
    *(int *)context = code;
}

/* Two commits that wait for the disk, and what they were told. */
static int write_two(struct bed *bed, const char *first, const char *second)
{
    struct td_durable_wait wait = {.previous = NULL};
    int told = 1;
    int codes[] = {
        bed_write(bed, bed->pods, TD_CHANGE_ADDED, "n", first, 10, NULL),
        bed_write(bed, bed->pods, TD_CHANGE_ADDED, "n", second, 10, NULL),
    };
    td_store_when_durable(bed->store, &wait, wait_told, &told);
    bed_run(bed);
    return codes[0] < 0 ? codes[0] : codes[1] < 0 ? codes[1] : told;
}

static void check_after_restart(const char *folder, struct bed *bed)
{
    char *before = bed_state(bed);
    uint64_t version = td_store_version(bed->store);
    bed_close(bed);
    bed_open(bed, &(struct td_store_options){.data_dir = folder, .fault = &faults});
    char *after = bed_state(bed);
    assert_string_equal(before, after);
    assert_true(td_store_version(bed->store) == version);
    test_free(before);
    test_free(after);
}

static void test_each_kind_of_failure_heals(void **state)
{
    (void)state;
    static const struct {
        enum td_journal_call call;
        int number;
        uint64_t skip;
    } rows[] = {
        {TD_JOURNAL_WRITE, ENOSPC, 0},
        {TD_JOURNAL_WRITE, EDQUOT, 1},
        {TD_JOURNAL_SYNC, ENOSPC, 0},
        {TD_JOURNAL_SYNC, EIO, 0},
    };
    char folder[FOLDER_BYTES];
    folder_make(folder);
    struct bed bed;
    bed_open(&bed, &(struct td_store_options){.data_dir = folder, .fault = &faults});
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char names[6][20];
        for (size_t n = 0; n < 6; n++) {
            (void)snprintf(names[n], sizeof(names[n]), "row-%zu-%zu", i, n);
        }
        assert_int_equal(write_two(&bed, names[0], names[1]), TD_OK);
        uint64_t version = td_store_version(bed.store);
        disk_fail(rows[i].call, rows[i].number, rows[i].skip);
        assert_int_equal(write_two(&bed, names[2], names[3]), TD_IO);
        assert_true(disk.has_failed);
        assert_true(td_store_version(bed.store) == version);
        assert_null(td_collection_get(bed.pods, TD_STR("n"), td_str_from(names[2])));
        assert_non_null(td_store_failure(bed.store));
        td_clock_advance(&bed.clock, TD_STORE_HEAL_PAUSE);
        disk.skip = 0;
        assert_int_equal(write_two(&bed, names[2], names[3]), TD_IO); /* tried, and still so */
        disk_mend(&bed);
        assert_null(td_store_failure(bed.store));
        assert_int_equal(write_two(&bed, names[4], names[5]), TD_OK);
        assert_true(td_store_version(bed.store) == version + 2);
        assert_null(td_collection_get(bed.pods, TD_STR("n"), td_str_from(names[2])));
        check_after_restart(folder, &bed);
    }
    bed_close(&bed);
    folder_remove(folder);
}

/* Without waiting nothing is tried again, and a commit alone is enough to try. */
static void test_a_commit_tries_after_a_pause(void **state)
{
    (void)state;
    char folder[FOLDER_BYTES];
    folder_make(folder);
    struct bed bed;
    bed_open(&bed, &(struct td_store_options){.data_dir = folder, .fault = &faults});
    disk_fail(TD_JOURNAL_WRITE, ENOSPC, 0);
    assert_int_equal(write_two(&bed, "a", "b"), TD_IO);
    disk.number = 0;
    assert_int_equal(write_two(&bed, "a", "b"), TD_IO);
    disk_mend(&bed);
    assert_int_equal(write_two(&bed, "a", "b"), TD_OK);
    check_after_restart(folder, &bed);
    bed_close(&bed);
    folder_remove(folder);
}

/* A job beside the one that writes a snapshot: between two of its slices it adds an object that
 * never reaches the disk, mends the disk, and goes on. */
struct beside {
    struct bed bed;
    const char *folder;
    uint64_t skip; /* syncs that work after the object was added */
    size_t ticks;
    bool is_added;
    bool is_over;
};

static enum td_job_result beside_job(td_str key, void *context)
{
    (void)key;
    struct beside *beside = context;
    struct bed *bed = &beside->bed;
    char path[FOLDER_BYTES + 20];
    (void)snprintf(path, sizeof(path), "%s/snapshot-2.tmp", beside->folder);
    if (!beside->is_added && access(path, F_OK) == 0) {
        beside->is_added = true;
        bed_put(bed, TD_CHANGE_ADDED, "n", "zz-lost");
        disk_fail(TD_JOURNAL_SYNC, ENOSPC, beside->skip);
    }
    if (beside->is_added && disk.has_failed && td_store_is_durable(bed->store)) {
        disk_mend(bed);
        assert_null(td_store_failure(bed->store));
        bed_put(bed, TD_CHANGE_ADDED, "n", "aa-kept");
        beside->is_over = true;
    }
    return ++beside->ticks < 500 && !beside->is_over ? TD_JOB_AGAIN : TD_JOB_DONE;
}

static void test_a_failure_beside_a_snapshot_leaves_nothing(void **state)
{
    (void)state;
    static const struct td_journal_fault eager = {.fn = disk_fault, .log_bytes_min = 4 << 20};
    char folder[FOLDER_BYTES];
    size_t lost = 0;
    for (uint64_t skip = 0; skip < 6; skip++) {
        struct beside beside = {.folder = folder, .skip = skip};
        folder_make(folder);
        bed_open(&beside.bed, &(struct td_store_options){.data_dir = folder, .fault = &eager});
        for (size_t i = 0; i < 30; i++) {
            char name[20];
            (void)snprintf(name, sizeof(name), "pod-%zu", i % 10);
            enum td_change_type type = i < 10 ? TD_CHANGE_ADDED : TD_CHANGE_MODIFIED;
            assert_int_equal(
                bed_write(&beside.bed, beside.bed.pods, type, "n", name, (size_t)200 << 10, NULL),
                TD_OK);
        }
        struct td_queue *queue = td_queue_new(beside.bed.loop, beside_job, &beside, 1);
        assert_int_equal(td_queue_add(queue, TD_STR("beside"), NULL), TD_OK);
        bed_run(&beside.bed);
        disk.number = 0;
        td_queue_free(queue);
        assert_true(beside.is_added);
        lost += td_collection_get(beside.bed.pods, TD_STR("n"), TD_STR("zz-lost")) == NULL;
        check_after_restart(folder, &beside.bed);
        bed_close(&beside.bed);
        folder_remove(folder);
    }
    assert_true(lost > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_kind_of_failure_heals),
        cmocka_unit_test(test_a_commit_tries_after_a_pause),
        cmocka_unit_test(test_a_failure_beside_a_snapshot_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
