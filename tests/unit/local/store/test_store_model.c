/* Random operations on the store beside a model that is too simple to be wrong: the list of all
 * commits. Snapshots at old versions, cursors from random versions, expiry, restarts. */
#include "unit/local/store/journal_bed.h"

#include "local/store/journal.h"
#include "support/random.h"

#define EVENTS_MAX 6000
#define CURSORS 12
#define NAMES 14
#define KINDS 2

struct event {
    size_t kind;
    enum td_change_type type;
    char ns[8];
    char name[8];
    uint64_t version;
    uint64_t before; /* version of the state before; 0: none */
};

static const char *const kind_keys[KINDS] = {"pods", "nodes"};

static struct {
    struct bed bed;
    struct td_store_options options;
    struct td_collection *kinds[KINDS];
    struct event events[EVENTS_MAX]; /* of version index + 2 */
    size_t count;
    uint64_t floors[KINDS];
    struct {
        struct td_watch_cursor cursor;
        size_t kind;
        uint64_t after; /* what was read or skipped so far */
        bool is_open;
        size_t wakes;
    } cursors[CURSORS];
} model;

static const struct event *model_event(uint64_t version)
{
    assert_true(version >= 2 && version < model.count + 2);
    return &model.events[version - 2];
}

/* Version of the object's state at `version`, or 0. */
static uint64_t model_state(size_t kind, const char *ns, const char *name, uint64_t version)
{
    for (uint64_t at = version; at >= 2; at--) {
        const struct event *event = model_event(at);
        if (event->kind == kind && strcmp(event->ns, ns) == 0 && strcmp(event->name, name) == 0) {
            return event->type == TD_CHANGE_DELETED ? 0 : at;
        }
    }
    return 0;
}

static void model_write(void)
{
    struct event event = {.kind = random_below(KINDS), .version = model.count + 2};
    (void)snprintf(event.ns, sizeof(event.ns), "n%zu", random_below(3));
    (void)snprintf(event.name, sizeof(event.name), "p%zu", random_below(NAMES));
    event.before = model_state(event.kind, event.ns, event.name, event.version - 1);
    event.type = event.before == 0      ? TD_CHANGE_ADDED
                 : random_below(3) == 0 ? TD_CHANGE_DELETED
                                        : TD_CHANGE_MODIFIED;
    assert_true(model.count < EVENTS_MAX);
    assert_int_equal(bed_write(&model.bed, model.kinds[event.kind], event.type, event.ns,
                               event.name, random_below(60), NULL),
                     TD_OK);
    model.events[model.count++] = event;
}

static void cursor_woken(void *context)
{
    ++*(size_t *)context;
}

static void model_open_cursor(void)
{
    size_t i = random_below(CURSORS);
    td_watch_close(&model.cursors[i].cursor);
    model.cursors[i].is_open = false;
    size_t kind = random_below(KINDS);
    uint64_t version = random_below(model.count + 4);
    int code = td_watch_open(&model.cursors[i].cursor, model.kinds[kind], version, cursor_woken,
                             &model.cursors[i].wakes, NULL);
    assert_int_equal(code, version < model.floors[kind] ? TD_GONE : TD_OK);
    if (code == TD_OK) {
        model.cursors[i].is_open = true;
        model.cursors[i].kind = kind;
        model.cursors[i].after = version;
    }
}

/* The version of the next event of the kind that is on disk, or 0. */
static uint64_t model_next(size_t kind, uint64_t after)
{
    for (uint64_t at = after + 1; at <= td_store_durable_version(model.bed.store); at++) {
        if (at >= 2 && model_event(at)->kind == kind) {
            return at;
        }
    }
    return 0;
}

static void model_read_cursor(void)
{
    size_t i = random_below(CURSORS);
    for (size_t n = random_below(20); model.cursors[i].is_open && n > 0; n--) {
        const struct td_change *change;
        uint64_t want = model_next(model.cursors[i].kind, model.cursors[i].after);
        int code = td_watch_next(&model.cursors[i].cursor, &change, NULL);
        bool is_gone = want > 0 && want <= model.floors[model.cursors[i].kind];
        assert_int_equal(code, is_gone ? TD_GONE : TD_OK);
        if (is_gone) {
            td_watch_close(&model.cursors[i].cursor);
            model.cursors[i].is_open = false;
            return;
        }
        assert_true((change != NULL) == (want > 0));
        if (!change) {
            return;
        }
        const struct event *event = model_event(want);
        assert_true(change->version == want);
        assert_int_equal(change->type, event->type);
        assert_str(change->after->ns, event->ns);
        assert_str(change->after->name, event->name);
        assert_true(change->after->version == want);
        assert_true((change->before ? change->before->version : 0) == event->before);
        model.cursors[i].after = want;
    }
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* "ns/name version" of all objects of a range as they were, from the model. */
static void model_list(size_t kind, const char *ns, uint64_t version, struct td_buf *out)
{
    char names[NAMES][8];
    const char *order[NAMES];
    for (size_t i = 0; i < NAMES; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "p%zu", i);
        order[i] = names[i];
    }
    qsort(order, NAMES, sizeof(order[0]), compare_names);
    for (size_t n = 0; n < 3; n++) {
        char space[8];
        (void)snprintf(space, sizeof(space), "n%zu", n);
        for (size_t i = 0; i < NAMES && (!*ns || strcmp(ns, space) == 0); i++) {
            uint64_t at = model_state(kind, space, order[i], version);
            if (at > 0) {
                (void)td_buf_append_format(out, "%s/%s %llu\n", space, order[i],
                                           (unsigned long long)at);
            }
        }
    }
}

/* All pages of one snapshot; writes go on between the pages. */
static void model_snapshot(void)
{
    struct td_buf want;
    struct td_buf got;
    td_buf_init(&want, 100000);
    td_buf_init(&got, 100000);
    size_t kind = random_below(KINDS);
    uint64_t version = 1 + random_below(model.count + 1);
    const char *ns = (const char *const[]){"", "n0", "n1", "n2"}[random_below(4)];
    char after_ns[8] = "";
    char after_name[8] = "";
    struct td_page_query query = {
        .version = version,
        .ns = td_str_from(ns),
        .max = random_below(12),
    };
    model_list(kind, ns, version, &want);
    struct td_page page = {.remaining = 1};
    int code = TD_OK;
    size_t total = SIZE_MAX;
    while (code == TD_OK && page.remaining > 0) {
        query.after_ns = td_str_from(after_ns);
        query.after_name = td_str_from(after_name);
        code = td_collection_snapshot_at(model.kinds[kind], &query, &page, NULL);
        assert_int_equal(code, version < model.floors[kind] ? TD_GONE : TD_OK);
        for (size_t i = 0; code == TD_OK && i < page.count; i++) {
            const struct td_stored *item = page.items[i];
            (void)td_buf_append_format(&got, "%.*s/%.*s %llu\n", TD_STR_ARG(item->ns),
                                       TD_STR_ARG(item->name), (unsigned long long)item->version);
            (void)snprintf(after_ns, sizeof(after_ns), "%.*s", TD_STR_ARG(item->ns));
            (void)snprintf(after_name, sizeof(after_name), "%.*s", TD_STR_ARG(item->name));
        }
        if (code == TD_OK) {
            assert_true(total == SIZE_MAX || total == page.count + page.remaining);
            total = page.remaining;
            td_page_done(&page);
            page.remaining = total;
            if (random_below(3) == 0 && model.count + 20 < EVENTS_MAX) {
                model_write();
            }
        }
    }
    if (code == TD_OK) {
        assert_string_equal(td_buf_str(&got).ptr, td_buf_str(&want).ptr);
    }
    td_buf_done(&want);
    td_buf_done(&got);
}

static void model_compact(void)
{
    uint64_t version = random_below(model.count + 10);
    uint64_t durable = td_store_durable_version(model.bed.store);
    version = version < durable ? version : durable;
    td_store_compact(model.bed.store, version);
    for (size_t kind = 0; kind < KINDS; kind++) {
        model.floors[kind] = version > model.floors[kind] ? version : model.floors[kind];
    }
}

/* The loop wakes each cursor of a kind with news once, and no other. */
static void model_run(void)
{
    bool has_news[KINDS] = {false};
    static uint64_t announced;
    announced = announced < model.count + 2 ? announced : 0;
    for (size_t i = 0; i < CURSORS; i++) {
        model.cursors[i].wakes = 0;
    }
    for (uint64_t at = announced + 1; at < model.count + 2; at++) {
        has_news[at >= 2 ? model_event(at)->kind : 0] |= at >= 2;
    }
    announced = model.count + 1;
    bed_run(&model.bed);
    for (size_t i = 0; i < CURSORS; i++) {
        if (model.cursors[i].is_open) {
            assert_true(model.cursors[i].wakes == (has_news[model.cursors[i].kind] ? 1 : 0));
        }
    }
}

static void model_begin(void)
{
    bed_open(&model.bed, &model.options);
    for (size_t kind = 0; kind < KINDS; kind++) {
        assert_int_equal(td_store_collection(model.bed.store, td_str_from(kind_keys[kind]),
                                             &model.kinds[kind], NULL),
                         TD_OK);
    }
}

static void model_end(void)
{
    for (size_t i = 0; i < CURSORS; i++) {
        td_watch_close(&model.cursors[i].cursor);
        model.cursors[i].is_open = false;
    }
    bed_close(&model.bed);
}

/* Everything is there again; how far the logs reach back is asked of them. */
static void model_restart(void)
{
    model_run();
    model_end();
    model_begin();
    uint64_t newest = model.count + 1;
    assert_true(td_store_version(model.bed.store) == newest);
    for (size_t kind = 0; kind < KINDS; kind++) {
        struct td_watch_cursor cursor = {0};
        uint64_t version = 0;
        while (td_watch_open(&cursor, model.kinds[kind], version, NULL, NULL, NULL) == TD_GONE) {
            version++;
        }
        td_watch_close(&cursor);
        assert_true(version <= newest);
        assert_true(model.options.fault || version == 1); /* without snapshots: from the start */
        model.floors[kind] = version;
    }
}

static void model_check_newest(void)
{
    for (size_t kind = 0; kind < KINDS; kind++) {
        size_t count = 0;
        for (size_t n = 0; n < 3 * NAMES; n++) {
            char ns[8];
            char name[8];
            (void)snprintf(ns, sizeof(ns), "n%zu", n / NAMES);
            (void)snprintf(name, sizeof(name), "p%zu", n % NAMES);
            uint64_t want = model_state(kind, ns, name, model.count + 1);
            const struct td_stored *got =
                td_collection_get(model.kinds[kind], td_str_from(ns), td_str_from(name));
            assert_true((got ? got->version : 0) == want);
            count += want > 0 ? 1 : 0;
        }
        assert_int_equal(td_collection_count(model.kinds[kind], TD_STR_EMPTY), count);
    }
}

static void model_play(size_t steps)
{
    model.count = 0;
    model_begin();
    for (size_t kind = 0; kind < KINDS; kind++) {
        model.floors[kind] = 1;
    }
    for (size_t step = 0; step < steps; step++) {
        size_t dice = random_below(100);
        if (dice < 50) {
            model_write();
        } else if (dice < 65) {
            model_read_cursor();
        } else if (dice < 80) {
            model_run();
        } else if (dice < 88) {
            model_open_cursor();
        } else if (dice < 96) {
            model_snapshot();
        } else if (dice < 98) {
            model_check_newest();
        } else if (dice == 98 && random_below(4) == 0) {
            model_compact();
        } else if (dice == 99 && random_below(4) == 0 && model.options.data_dir) {
            model_restart();
        }
    }
    model_end();
}

static void test_store_in_memory_is_the_model(void **state)
{
    (void)state;
    model.options = (struct td_store_options){.data_dir = NULL};
    model_play(6000);
}

static void test_durable_store_is_the_model(void **state)
{
    (void)state;
    char folder[FOLDER_BYTES];
    folder_make(folder);
    model.options = (struct td_store_options){.data_dir = folder};
    model_play(4000);
    folder_remove(folder);
}

static void test_durable_store_with_snapshots_is_the_model(void **state)
{
    (void)state;
    static const struct td_journal_fault fault = {.log_bytes_min = 20000};
    char folder[FOLDER_BYTES];
    folder_make(folder);
    model.options = (struct td_store_options){.data_dir = folder, .fault = &fault};
    model_play(5000);
    folder_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_store_in_memory_is_the_model),
        cmocka_unit_test(test_durable_store_is_the_model),
        cmocka_unit_test(test_durable_store_with_snapshots_is_the_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
