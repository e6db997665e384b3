/* What the store promises one call at a time: codes, order, pages, cursors, caps. */
#include "unit/local/store/store_bed.h"

#include "base/limits.h"

#define ADDED TD_CHANGE_ADDED
#define MODIFIED TD_CHANGE_MODIFIED
#define DELETED TD_CHANGE_DELETED

static void test_stored_finds_labels_and_uid(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        int code;
        const char *labels;
        const char *uid;
    } rows[] = {
        {"{}", TD_OK, "", ""},
        {"{\"kind\":\"Pod\"}", TD_OK, "", ""},
        {"{\"metadata\":{}}", TD_OK, "", ""},
        {"{\"metadata\":{\"labels\":{}}}", TD_OK, "{}", ""},
        {"{\"metadata\":{\"labels\":null,\"uid\":\"u\"}}", TD_OK, "", "u"},
        {"{\"metadata\":{\"labels\":[1,2],\"uid\":{\"a\":[]}},\"x\":1}", TD_OK, "", ""},
        {"{\"spec\":{\"metadata\":{\"labels\":{\"no\":\"\"}}},\"metadata\":{\"uid\":\"u-1\","
         "\"labels\":{\"a\":\"b}\"},\"z\":{}}}",
         TD_OK, "{\"a\":\"b}\"}", "u-1"},
        {"{\"metadat\\u0061\":{\"label\\u0073\":{\"k\":\"v\"}}}", TD_OK, "{\"k\":\"v\"}", ""},
        {"", TD_INVALID, "", ""},
        {"[]", TD_INVALID, "", ""},
        {"{\"metadata\":[]}", TD_INVALID, "", ""},
        {"{\"metadata\":{\"labels\":{\"a\":}}}", TD_INVALID, "", ""},
        {"{\"metadata\":{\"labels\":{", TD_INVALID, "", ""},
        {"{\"a\":tru", TD_INVALID, "", ""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct td_stored *stored = NULL;
        struct td_error err = TD_ERROR_INIT;
        int code =
            td_stored_new(7, TD_STR("ns"), TD_STR("a"), td_str_from(rows[i].json), &stored, &err);
        if (code != rows[i].code) {
            fail_msg("row %zu: code %d: %s", i, code, err.message);
        }
        if (code == TD_OK) {
            assert_str(stored->labels, rows[i].labels);
            assert_str(stored->uid, rows[i].uid);
            assert_str(stored->json, rows[i].json);
            assert_int_equal(stored->json.ptr[stored->json.len], '\0');
            assert_str(stored->ns, "ns");
            assert_str(stored->name, "a");
        } else {
            assert_null(stored);
            assert_true(err.message[0] != '\0');
        }
        td_stored_unref(stored);
    }
}

static void test_commit_answers_by_what_is_there(void **state)
{
    (void)state;
    static const struct {
        enum td_change_type type;
        const char *name;
        int code;
    } rows[] = {
        {MODIFIED, "a", TD_NOT_FOUND}, {DELETED, "a", TD_NOT_FOUND}, {ADDED, "a", TD_OK},
        {ADDED, "a", TD_EXISTS},       {MODIFIED, "a", TD_OK},       {ADDED, "b", TD_OK},
        {DELETED, "a", TD_OK},         {DELETED, "a", TD_NOT_FOUND}, {ADDED, "a", TD_OK},
        {ADDED, "", TD_INVALID},
    };
    struct bed bed;
    bed_open(&bed, NULL);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct td_error err = TD_ERROR_INIT;
        uint64_t version = td_store_version(bed.store);
        int code = bed_write(&bed, bed.pods, rows[i].type, "ns", rows[i].name, 1, &err);
        if (code != rows[i].code) {
            fail_msg("row %zu: code %d: %s", i, code, err.message);
        }
        assert_true(td_store_version(bed.store) == version + (code == TD_OK ? 1 : 0));
    }
    assert_int_equal(td_collection_count(bed.pods, TD_STR_EMPTY), 2);
    assert_true(td_store_is_durable(bed.store));
    bed_close(&bed);
}

static void test_versions_begin_where_they_are_reported(void **state)
{
    (void)state;
    struct bed bed;
    bed_open(&bed, &(struct td_store_options){.version_start = 4000});
    assert_true(td_store_version(bed.store) == 4000);
    assert_true(td_collection_version(bed.pods) == 4000);
    bed_put(&bed, ADDED, "", "node");
    assert_true(td_store_version(bed.store) == 4001);
    assert_true(td_collection_version(bed.pods) == 4001);
    struct td_watch_cursor cursor = {0};
    assert_int_equal(td_watch_open(&cursor, bed.pods, 3999, NULL, NULL, NULL), TD_GONE);
    assert_int_equal(td_watch_open(&cursor, bed.pods, 4000, NULL, NULL, NULL), TD_OK);
    td_watch_close(&cursor);
    td_watch_close(&cursor);
    bed_close(&bed);
}

static void test_objects_are_in_order_of_namespace_and_name(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"b", "x"},  {"a", "z"}, {"a-b", "a"},      {"a", "a"},
        {"b", "ab"}, {"b", "a"}, {"a", "\xc3\xa4"},
    };
    struct bed bed;
    bed_open(&bed, NULL);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        bed_put(&bed, ADDED, rows[i][0], rows[i][1]);
    }
    static const struct {
        const char *ns;
        const char *names;
        size_t count;
    } ranges[] = {
        {"", "a/a a/z a/\xc3\xa4 a-b/a b/a b/ab b/x ", 7},
        {"a", "a/a a/z a/\xc3\xa4 ", 3},
        {"a-b", "a-b/a ", 1},
        {"b", "b/a b/ab b/x ", 3},
        {"aa", "", 0},
        {"c", "", 0},
    };
    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        char names[200] = "";
        size_t len = 0;
        struct td_collection_iter iter;
        iter = td_collection_walk(bed.pods, td_str_from(ranges[i].ns));
        const struct td_stored *stored;
        while ((stored = td_collection_iter_next(&iter)) != NULL) {
            len += (size_t)snprintf(names + len, sizeof(names) - len, "%.*s/%.*s ",
                                    TD_STR_ARG(stored->ns), TD_STR_ARG(stored->name));
        }
        assert_string_equal(names, ranges[i].names);
        assert_int_equal(td_collection_count(bed.pods, td_str_from(ranges[i].ns)), ranges[i].count);
    }
    assert_non_null(td_collection_get(bed.pods, TD_STR("a-b"), TD_STR("a")));
    assert_null(td_collection_get(bed.pods, TD_STR("a"), TD_STR("ab")));
    assert_null(td_collection_get(bed.pods, TD_STR(""), TD_STR("a")));
    bed_close(&bed);
}

static void test_iterator_goes_on_behind_changes(void **state)
{
    (void)state;
    struct bed bed;
    bed_open(&bed, NULL);
    for (char c = 'a'; c <= 'f'; c++) {
        bed_put(&bed, ADDED, "ns", (char[]){c, '\0'});
    }
    struct td_collection_iter iter;
    iter = td_collection_walk(bed.pods, TD_STR("ns"));
    bed_put(&bed, ADDED, "ns", "0");
    assert_str(td_collection_iter_next(&iter)->name, "0");
    assert_str(td_collection_iter_next(&iter)->name, "a");
    bed_put(&bed, DELETED, "ns", "a");
    bed_put(&bed, DELETED, "ns", "b");
    bed_put(&bed, ADDED, "ns", "a1");
    assert_str(td_collection_iter_next(&iter)->name, "a1");
    bed_put(&bed, MODIFIED, "ns", "c");
    assert_str(td_collection_iter_next(&iter)->name, "c");
    td_collection_iter_done(&iter);
    assert_null(td_collection_iter_next(&iter));
    bed_close(&bed);
}

/* The names of one page, "a b +REMAINING". */
static const char *page_names(struct bed *bed, const struct td_page_query *query, char *out,
                              size_t size)
{
    struct td_page page;
    struct td_error err = TD_ERROR_INIT;
    int code = td_collection_snapshot_at(bed->pods, query, &page, &err);
    if (code < 0) {
        (void)snprintf(out, size, "%s", td_code_name(code));
        return out;
    }
    size_t len = 0;
    for (size_t i = 0; i < page.count; i++) {
        len +=
            (size_t)snprintf(out + len, size - len, "%.*s:%llu ", TD_STR_ARG(page.items[i]->name),
                             (unsigned long long)page.items[i]->version);
    }
    (void)snprintf(out + len, size - len, "+%zu", page.remaining);
    td_page_done(&page);
    return out;
}

static void test_pages_are_one_snapshot(void **state)
{
    (void)state;
    struct bed bed;
    bed_open(&bed, NULL);
    bed_put(&bed, ADDED, "n", "a");    /* 2 */
    bed_put(&bed, ADDED, "n", "b");    /* 3 */
    bed_put(&bed, ADDED, "n", "c");    /* 4 */
    bed_put(&bed, ADDED, "m", "x");    /* 5 */
    bed_put(&bed, MODIFIED, "n", "b"); /* 6 */
    bed_put(&bed, DELETED, "n", "a");  /* 7 */
    bed_put(&bed, ADDED, "n", "bb");   /* 8 */
    bed_put(&bed, ADDED, "n", "a");    /* 9 */
    bed_put(&bed, DELETED, "n", "c");  /* 10 */
    static const struct {
        uint64_t version;
        const char *ns, *after_ns, *after;
        size_t max;
        const char *want;
    } rows[] = {
        {0, "", "", "", 0, "x:5 a:9 b:6 bb:8 +0"},
        {10, "", "", "", 0, "x:5 a:9 b:6 bb:8 +0"},
        {11, "", "", "", 0, "invalid"},
        {1, "", "", "", 0, "+0"},
        {2, "", "", "", 0, "a:2 +0"},
        {4, "", "", "", 0, "a:2 b:3 c:4 +0"},
        {5, "", "", "", 2, "x:5 a:2 +2"},
        {5, "", "n", "a", 2, "b:3 c:4 +0"},
        {5, "", "n", "a", 1, "b:3 +1"},
        {5, "", "n", "aa", 1, "b:3 +1"},
        {5, "n", "", "", 1, "a:2 +2"},
        {5, "n", "n", "c", 1, "+0"},
        {5, "m", "n", "a", 1, "+0"},
        {5, "n", "m", "x", 2, "a:2 b:3 +1"},
        {6, "n", "", "", 9, "a:2 b:6 c:4 +0"},
        {7, "n", "", "", 1, "b:6 +1"},
        {8, "n", "", "", 2, "b:6 bb:8 +1"},
        {8, "n", "n", "b", 1, "bb:8 +1"},
        {9, "n", "", "", 0, "a:9 b:6 bb:8 c:4 +0"},
        {9, "absent", "", "", 0, "+0"},
    };
    char out[200];
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct td_page_query query = {
            .version = rows[i].version,
            .ns = td_str_from(rows[i].ns),
            .after_ns = td_str_from(rows[i].after_ns),
            .after_name = td_str_from(rows[i].after),
            .max = rows[i].max,
        };
        if (strcmp(page_names(&bed, &query, out, sizeof(out)), rows[i].want) != 0) {
            fail_msg("row %zu: '%s' is not '%s'", i, out, rows[i].want);
        }
    }
    td_store_compact(bed.store, 7);
    assert_string_equal(page_names(&bed, &(struct td_page_query){.version = 6}, out, sizeof(out)),
                        "gone");
    assert_string_equal(page_names(&bed, &(struct td_page_query){.version = 7}, out, sizeof(out)),
                        "x:5 b:6 c:4 +0");
    bed_close(&bed);
}

/* A watcher that notes each wake and each change as text: "w A2 M3 ". */
struct watcher {
    struct td_watch_cursor cursor;
    char *out; /* of all watchers of a test */
    char name;
    bool closes; /* itself, at the first wake */
};

static void watcher_wakes(void *context)
{
    struct watcher *watcher = context;
    size_t len = strlen(watcher->out);
    len += (size_t)snprintf(watcher->out + len, 400 - len, "%c(", watcher->name);
    const struct td_change *change;
    int code;
    while ((code = td_watch_next(&watcher->cursor, &change, NULL)) == TD_OK && change) {
        len += (size_t)snprintf(watcher->out + len, 400 - len, "%c%llu", "AMD"[change->type],
                                (unsigned long long)change -> version);
        assert_true(change->after->version == change->version);
        assert_true((change->before == NULL) == (change->type == ADDED));
    }
    (void)snprintf(watcher->out + len, 400 - len, code < 0 ? "%s) " : ")%.0s ", td_code_name(code));
    if (watcher->closes) {
        td_watch_close(&watcher->cursor);
    }
}

static void test_cursors_are_woken_once_a_batch_in_order(void **state)
{
    (void)state;
    char out[400] = "";
    struct bed bed;
    bed_open(&bed, NULL);
    struct td_collection *nodes;
    assert_int_equal(td_store_collection(bed.store, TD_STR("nodes"), &nodes, NULL), TD_OK);
    bed_put(&bed, ADDED, "n", "a"); /* 2 */
    struct watcher watchers[] = {
        {.out = out, .name = 'x'},
        {.out = out, .name = 'y', .closes = true},
        {.out = out, .name = 'z'},
        {.out = out, .name = 'n'},
    };
    const uint64_t versions[] = {1, 2, 4, 1};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(td_watch_open(&watchers[i].cursor, i == 3 ? nodes : bed.pods, versions[i],
                                       watcher_wakes, &watchers[i], NULL),
                         TD_OK);
    }
    bed_put(&bed, MODIFIED, "n", "a"); /* 3 */
    bed_put(&bed, DELETED, "n", "a");  /* 4 */
    bed_put(&bed, ADDED, "n", "b");    /* 5 */
    assert_string_equal(out, "");
    bed_run(&bed);
    assert_string_equal(out, "x(A2M3D4A5) y(M3D4A5) z(A5) ");
    out[0] = '\0';
    bed_run(&bed);
    assert_string_equal(out, "");
    struct td_error err = TD_ERROR_INIT;
    assert_int_equal(bed_write(&bed, nodes, ADDED, "", "node", 1, &err), TD_OK); /* 6 */
    bed_put(&bed, MODIFIED, "n", "b");                                           /* 7 */
    bed_run(&bed);
    assert_string_equal(out, "x(M7) z(M7) n(A6) ");
    for (size_t i = 0; i < 4; i++) {
        td_watch_close(&watchers[i].cursor);
    }
    bed_close(&bed);
}

/* Each wake of the first of many cursors, and all that it saw. */
struct rested {
    struct td_watch_cursor cursors[100];
    struct bed *bed;
    td_duration woken_at[4];
    size_t wakes;
    size_t changes;
};

static void rested_wakes(void *context)
{
    struct rested *rested = context;
    const struct td_change *change;
    while (td_watch_next(&rested->cursors[0], &change, NULL) == TD_OK && change) {
        rested->changes++;
    }
    rested->woken_at[rested->wakes] = td_clock_steady(&rested->bed->clock);
    rested->wakes++;
    if (rested->wakes == 1) { /* more of them as soon as they were told */
        bed_put(rested->bed, MODIFIED, "n", "a");
        bed_put(rested->bed, MODIFIED, "n", "a");
    }
}

static void rested_ignores(void *context)
{
    (void)context;
}

/* On a machine's clock a round over many cursors is followed by a rest, and nothing is lost by it.
 */
static void test_cursors_rest_between_rounds(void **state)
{
    (void)state;
    struct bed bed = {.clock = td_clock_real()};
    struct rested rested = {.bed = &bed};
    assert_int_equal(td_loop_new(&bed.clock, &bed.loop, NULL), TD_OK);
    assert_int_equal(td_store_new(bed.loop, NULL, &bed.store, NULL), TD_OK);
    assert_int_equal(td_store_collection(bed.store, TD_STR("pods"), &bed.pods, NULL), TD_OK);
    for (size_t i = 0; i < 100; i++) {
        assert_int_equal(td_watch_open(&rested.cursors[i], bed.pods, 1,
                                       i == 0 ? rested_wakes : rested_ignores, &rested, NULL),
                         TD_OK);
    }
    bed_put(&bed, ADDED, "n", "a");
    bed_run(&bed);
    assert_int_equal(rested.wakes, 2);
    assert_int_equal(rested.changes, 3);
    assert_true(rested.woken_at[1] - rested.woken_at[0] >= 100 * TD_WATCH_REST_US * TD_MICROSECOND);
    for (size_t i = 0; i < 100; i++) {
        td_watch_close(&rested.cursors[i]);
    }
    bed_close(&bed);
}

static void test_cursor_that_falls_off_the_log_is_gone(void **state)
{
    (void)state;
    struct bed bed;
    bed_open(&bed, NULL);
    for (char c = 'a'; c <= 'e'; c++) {
        bed_put(&bed, ADDED, "n", (char[]){c, '\0'}); /* 2 to 6 */
    }
    struct td_watch_cursor behind = {0};
    struct td_watch_cursor ahead = {0};
    const struct td_change *change;
    assert_int_equal(td_watch_open(&behind, bed.pods, 2, NULL, NULL, NULL), TD_OK);
    assert_int_equal(td_watch_open(&ahead, bed.pods, 2, NULL, NULL, NULL), TD_OK);
    for (uint64_t version = 3; version <= 5; version++) {
        assert_int_equal(td_watch_next(&ahead, &change, NULL), TD_OK);
        assert_true(change->version == version);
    }
    td_store_compact(bed.store, 5);
    struct td_error err = TD_ERROR_INIT;
    assert_int_equal(td_watch_next(&behind, &change, &err), TD_GONE);
    assert_int_equal(td_watch_next(&ahead, &change, NULL), TD_OK);
    assert_true(change->version == 6);
    assert_int_equal(td_watch_next(&ahead, &change, NULL), TD_OK);
    assert_null(change);
    td_watch_close(&behind);
    assert_int_equal(td_watch_open(&behind, bed.pods, 4, NULL, NULL, NULL), TD_GONE);
    assert_int_equal(td_watch_open(&behind, bed.pods, 5, NULL, NULL, NULL), TD_OK);
    td_watch_close(&behind);
    /* The floor holds for kinds that are made later, and is not above the newest version. */
    td_store_compact(bed.store, 900);
    struct td_collection *late;
    assert_int_equal(td_store_collection(bed.store, TD_STR("late"), &late, NULL), TD_OK);
    assert_int_equal(td_watch_open(&behind, late, 5, NULL, NULL, NULL), TD_GONE);
    assert_int_equal(td_watch_open(&behind, late, 6, NULL, NULL, NULL), TD_OK);
    td_watch_close(&behind);
    /* A version still to come: only what is after it. */
    assert_int_equal(td_watch_open(&behind, bed.pods, 8, NULL, NULL, NULL), TD_OK);
    for (char c = 'f'; c <= 'h'; c++) {
        bed_put(&bed, ADDED, "n", (char[]){c, '\0'}); /* 7 to 9 */
    }
    assert_int_equal(td_watch_next(&behind, &change, NULL), TD_OK);
    assert_true(change->version == 9);
    td_watch_close(&behind);
    td_watch_close(&ahead);
    bed_close(&bed);
}

/* Changes of more than five minutes ago go when there are new ones; who saw them misses nothing. */
static void test_log_forgets_after_minutes(void **state)
{
    (void)state;
    struct bed bed;
    struct td_watch_cursor cursor = {0};
    bed_open(&bed, NULL);
    struct td_collection *quiet;
    assert_int_equal(td_store_collection(bed.store, TD_STR("quiet"), &quiet, NULL), TD_OK);
    bed_put(&bed, ADDED, "n", "a"); /* 2 */
    for (int minute = 0; minute < 5; minute++) {
        td_clock_advance(&bed.clock, TD_MINUTE);
        bed_put(&bed, MODIFIED, "n", "a"); /* 3 to 7 */
        bed_run(&bed);
    }
    assert_int_equal(td_watch_open(&cursor, bed.pods, 1, NULL, NULL, NULL), TD_OK);
    td_watch_close(&cursor);
    td_clock_advance(&bed.clock, TD_MINUTE);
    bed_put(&bed, MODIFIED, "n", "a"); /* 8 */
    bed_run(&bed);
    assert_int_equal(td_watch_open(&cursor, bed.pods, 2, NULL, NULL, NULL), TD_GONE);
    assert_int_equal(td_watch_open(&cursor, bed.pods, 3, NULL, NULL, NULL), TD_OK);
    td_watch_close(&cursor);
    td_clock_advance(&bed.clock, TD_HOUR);
    bed_put(&bed, MODIFIED, "n", "a"); /* 9 */
    bed_run(&bed);
    assert_int_equal(td_watch_open(&cursor, bed.pods, 7, NULL, NULL, NULL), TD_GONE);
    assert_int_equal(td_watch_open(&cursor, bed.pods, 8, NULL, NULL, NULL), TD_OK);
    td_watch_close(&cursor);
    /* Nothing of this kind was forgotten. */
    assert_int_equal(td_watch_open(&cursor, quiet, 1, NULL, NULL, NULL), TD_OK);
    td_watch_close(&cursor);
    bed_close(&bed);
}

static void test_log_is_capped_in_bytes_and_entries(void **state)
{
    (void)state;
    static const struct {
        size_t pad;
        size_t count;
    } rows[] = {{(size_t)1 << 20, 40}, {1, TD_CHANGE_LOG_COUNT_MAX + 10}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct bed bed;
        struct td_error err = TD_ERROR_INIT;
        struct td_watch_cursor cursor = {0};
        const struct td_change *change;
        bed_open(&bed, NULL);
        assert_int_equal(bed_write(&bed, bed.pods, ADDED, "n", "a", rows[i].pad, &err), TD_OK);
        assert_int_equal(td_watch_open(&cursor, bed.pods, 1, NULL, NULL, NULL), TD_OK);
        for (size_t n = 0; n < rows[i].count; n++) {
            assert_int_equal(bed_write(&bed, bed.pods, MODIFIED, "n", "a", rows[i].pad, &err),
                             TD_OK);
        }
        assert_int_equal(td_watch_next(&cursor, &change, &err), TD_GONE);
        td_watch_close(&cursor);
        uint64_t newest = td_store_version(bed.store);
        uint64_t kept =
            rows[i].pad > 1 ? TD_CHANGE_LOG_BYTES_MAX / rows[i].pad - 1 : TD_CHANGE_LOG_COUNT_MAX;
        assert_int_equal(td_watch_open(&cursor, bed.pods, newest - kept, NULL, NULL, &err), TD_OK);
        td_watch_close(&cursor);
        assert_int_equal(td_watch_open(&cursor, bed.pods, newest - kept - 1, NULL, NULL, &err),
                         TD_GONE);
        bed_close(&bed);
    }
}

static void test_caps_are_limit_errors(void **state)
{
    (void)state;
    struct bed bed;
    struct td_error err = TD_ERROR_INIT;
    static char name[TD_STORED_NAME_BYTES_MAX + 2];
    bed_open(&bed, NULL);
    memset(name, 'n', TD_STORED_NAME_BYTES_MAX);
    assert_int_equal(bed_write(&bed, bed.pods, ADDED, name, name, 1, &err), TD_OK);
    name[TD_STORED_NAME_BYTES_MAX] = 'n';
    assert_int_equal(bed_write(&bed, bed.pods, ADDED, "n", name, 1, &err), TD_LIMIT);
    assert_int_equal(bed_write(&bed, bed.pods, ADDED, name, "n", 1, &err), TD_LIMIT);
    assert_int_equal(bed_write(&bed, bed.pods, ADDED, "n", "b", TD_STORED_JSON_BYTES_MAX, &err),
                     TD_LIMIT);
    assert_int_equal(td_store_version(bed.store), 2);
    struct td_collection *other;
    for (size_t i = 1; i < TD_COLLECTIONS_MAX; i++) {
        (void)snprintf(name, sizeof(name), "kind-%zu", i);
        assert_int_equal(td_store_collection(bed.store, td_str_from(name), &other, &err), TD_OK);
        assert_ptr_equal(td_store_find(bed.store, td_str_from(name)), other);
    }
    assert_int_equal(td_store_collection(bed.store, TD_STR("more"), &other, &err), TD_LIMIT);
    assert_int_equal(td_store_collection(bed.store, TD_STR("pods"), &other, &err), TD_OK);
    assert_ptr_equal(other, bed.pods);
    assert_null(td_store_find(bed.store, TD_STR("more")));
    bed_close(&bed);
}

/* Waits that note their order; the second cancels the third, the first waits again. */
static struct {
    struct bed bed;
    struct td_durable_wait waits[4];
    char out[40];
} durable;

static void durable_reported(void *context, int code)
{
    size_t index = (size_t)((struct td_durable_wait *)context - durable.waits);
    size_t len = strlen(durable.out);
    (void)snprintf(durable.out + len, sizeof(durable.out) - len, "%zu%s", index,
                   code == TD_OK ? " " : "! ");
    if (index == 1) {
        td_durable_wait_cancel(&durable.waits[2]);
    }
    if (index == 0 && len == 0) {
        td_store_when_durable(durable.bed.store, &durable.waits[0], durable_reported,
                              &durable.waits[0]);
    }
}

static void test_waits_are_told_from_the_loop_in_order(void **state)
{
    (void)state;
    bed_open(&durable.bed, NULL);
    durable.out[0] = '\0';
    for (size_t i = 0; i < 4; i++) {
        td_store_when_durable(durable.bed.store, &durable.waits[i], durable_reported,
                              &durable.waits[i]);
    }
    assert_string_equal(durable.out, "");
    bed_run(&durable.bed);
    assert_string_equal(durable.out, "0 1 3 0 ");
    td_durable_wait_cancel(&durable.waits[0]);
    bed_close(&durable.bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stored_finds_labels_and_uid),
        cmocka_unit_test(test_commit_answers_by_what_is_there),
        cmocka_unit_test(test_versions_begin_where_they_are_reported),
        cmocka_unit_test(test_objects_are_in_order_of_namespace_and_name),
        cmocka_unit_test(test_iterator_goes_on_behind_changes),
        cmocka_unit_test(test_pages_are_one_snapshot),
        cmocka_unit_test(test_cursors_are_woken_once_a_batch_in_order),
        cmocka_unit_test(test_cursors_rest_between_rounds),
        cmocka_unit_test(test_cursor_that_falls_off_the_log_is_gone),
        cmocka_unit_test(test_log_forgets_after_minutes),
        cmocka_unit_test(test_log_is_capped_in_bytes_and_entries),
        cmocka_unit_test(test_caps_are_limit_errors),
        cmocka_unit_test(test_waits_are_told_from_the_loop_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
