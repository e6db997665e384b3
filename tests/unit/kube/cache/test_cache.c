/* The list+watch cache against a little server that fails in every way: whatever happens, the cache
 * ends up with what the server has, consumers hear of each real difference once and in order, and
 * the server is not asked more often than agreed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/intern.h"
#include "base/limits.h"
#include "base/os/clock.h"
#include "kube/cache/cache.h"
#include "kube/client/client.h"
#include "support/random.h"
#include "support/watch_model.h"

#define CALLS_PER_SECOND_MAX 8 /* of one cache against a server that refuses everything */

struct thing {
    struct td_cache_head head;
    td_str node;
    td_str labels;
    int64_t value;
};

static const struct td_cache_field thing_fields[] = {
    {"spec.nodeName", TD_CACHE_NAME, offsetof(struct thing, node)},
    {"metadata.labels", TD_CACHE_RAW, offsetof(struct thing, labels)},
    {"spec.value", TD_CACHE_INT64, offsetof(struct thing, value)},
};

struct bed {
    struct td_clock clock;
    struct td_loop *loop;
    struct model *model;
    struct td_client *client;
    struct td_intern *names;
    struct td_cache *cache;
    struct td_buf reported;        /* "+p1=5 ~p1=5>6 -p1=6 !" */
    int64_t held[MODEL_NAMES_MAX]; /* what the consumer believes; -1: not there */
    size_t synced;
};

static int name_of(const struct thing *thing)
{
    assert_true(thing->head.name.len > 1);
    return atoi(thing->head.name.ptr + 1); /* followed by a NUL */
}

static void on_added(void *context, const void *object)
{
    struct bed *bed = context;
    const struct thing *thing = object;
    assert_int_equal(bed->held[name_of(thing)], -1);
    bed->held[name_of(thing)] = thing->value;
    (void)td_buf_append_format(&bed->reported, "+p%d=%lld ", name_of(thing),
                               (long long)thing->value);
    assert_ptr_equal(td_cache_get(bed->cache, thing->head.namespace, thing->head.name), thing);
}

static void on_changed(void *context, const void *before, const void *after)
{
    struct bed *bed = context;
    const struct thing *old = before;
    const struct thing *thing = after;
    assert_int_equal(name_of(old), name_of(thing));
    assert_true(td_str_equal(old->head.uid, thing->head.uid));
    assert_int_equal(bed->held[name_of(thing)], old->value);
    bed->held[name_of(thing)] = thing->value;
    (void)td_buf_append_format(&bed->reported, "~p%d=%lld>%lld ", name_of(thing),
                               (long long)old->value, (long long)thing->value);
}

static void on_deleted(void *context, const void *object)
{
    struct bed *bed = context;
    const struct thing *thing = object;
    assert_int_equal(bed->held[name_of(thing)], thing->value);
    bed->held[name_of(thing)] = -1;
    (void)td_buf_append_format(&bed->reported, "-p%d=%lld ", name_of(thing),
                               (long long)thing->value);
    assert_null(td_cache_get(bed->cache, thing->head.namespace, thing->head.name));
}

static void on_synced(void *context)
{
    struct bed *bed = context;
    bed->synced++;
    (void)td_buf_append_format(&bed->reported, "! ");
}

static void bed_cache(struct bed *bed)
{
    const struct td_cache_options options = {
        .loop = bed->loop,
        .client = bed->client,
        .version = TD_STR("v1"),
        .plural = TD_STR("pods"),
        .fields = thing_fields,
        .field_count = sizeof(thing_fields) / sizeof(thing_fields[0]),
        .struct_bytes = sizeof(struct thing),
        .names = bed->names,
        .seed = 7,
    };
    struct td_error err = TD_ERROR_INIT;
    assert_int_equal(td_cache_new(&options, &bed->cache, &err), TD_OK);
    static const struct td_cache_handler handler = {
        .added = on_added, .changed = on_changed, .deleted = on_deleted, .synced = on_synced};
    td_cache_subscribe(bed->cache, &handler, bed);
    for (size_t i = 0; i < MODEL_NAMES_MAX; i++) {
        bed->held[i] = -1;
    }
}

static void bed_init(struct bed *bed)
{
    *bed = (struct bed){.clock = td_clock_virtual(1700000000 * TD_SECOND)};
    assert_int_equal(td_loop_new(&bed->clock, &bed->loop, NULL), TD_OK);
    bed->model = td_alloc_zero(1, sizeof(*bed->model));
    model_init(bed->model, bed->loop);
    const struct td_client_options options = {
        .loop = bed->loop, .transport = &bed->model->transport, .burst = 1, .seed = 3};
    bed->client = td_client_new(&options);
    bed->names = td_intern_new(1000);
    td_buf_init(&bed->reported, (size_t)64 << 20);
    bed_cache(bed);
}

static void bed_done(struct bed *bed)
{
    td_cache_free(bed->cache);
    assert_int_equal(td_intern_count(bed->names), 0); /* every name was given back */
    td_intern_free(bed->names);
    td_client_free(bed->client);
    assert_true(bed->model->is_freed);
    td_free(bed->model);
    td_loop_free(bed->loop);
    td_buf_done(&bed->reported);
}

static void bed_stop(struct td_timer *timer, void *context)
{
    (void)timer;
    td_loop_stop(context);
}

static void bed_run(struct bed *bed, td_duration span)
{
    struct td_timer *timer = td_timer_new(bed->loop, bed_stop, bed->loop);
    td_timer_set(timer, span);
    assert_int_equal(td_loop_run(bed->loop, NULL), TD_OK);
    td_timer_free(timer);
}

/* What the consumers were told since the last look. */
static const char *bed_reported(struct bed *bed)
{
    static char text[4096];
    (void)snprintf(text, sizeof(text), "%.*s", TD_STR_ARG(td_buf_str(&bed->reported)));
    td_buf_reset(&bed->reported);
    return text;
}

/* The cache, its consumer and the server agree, object by object. */
static void bed_check(struct bed *bed)
{
    assert_int_equal(td_cache_count(bed->cache), model_count(bed->model));
    for (int i = 0; i < MODEL_NAMES_MAX; i++) {
        const struct model_change *now = &bed->model->now[i];
        assert_int_equal(bed->held[i], now->version != 0 ? now->value : -1);
        if (now->version == 0) {
            continue;
        }
        char ns[16];
        char text[64];
        (void)snprintf(ns, sizeof(ns), "ns%d", i % 3);
        (void)snprintf(text, sizeof(text), "p%d", i);
        const struct thing *thing = td_cache_get(bed->cache, td_str_from(ns), td_str_from(text));
        assert_non_null(thing);
        assert_int_equal(thing->value, now->value);
        (void)snprintf(text, sizeof(text), "u%d", now->uid);
        assert_string_equal(thing->head.uid.ptr, text);
        (void)snprintf(text, sizeof(text), "%llu", (unsigned long long)now->version);
        assert_string_equal(thing->head.version.ptr, text);
        (void)snprintf(text, sizeof(text), "node-%lld", (long long)now->value % 5);
        assert_string_equal(thing->node.ptr, text);
        (void)snprintf(text, sizeof(text), "{\"app\":\"a\\u0062c%lld\"}",
                       (long long)now->value % 7);
        assert_string_equal(thing->labels.ptr, text);
    }
}

/* A streaming list brings what is there, then changes come as they happen, in order. */
static void test_follows_changes_in_order(void **state)
{
    (void)state;
    struct bed bed;
    bed_init(&bed);
    model_put(bed.model, 1, 10);
    model_put(bed.model, 2, 20);
    assert_false(td_cache_is_synced(bed.cache));
    assert_true(td_cache_age(bed.cache) == INT64_MAX);
    td_cache_start(bed.cache);
    bed_run(&bed, TD_SECOND);
    assert_string_equal(bed_reported(&bed), "+p1=10 +p2=20 ! ");
    assert_true(td_cache_is_synced(bed.cache));
    model_put(bed.model, 3, 30);
    model_put(bed.model, 1, 11);
    model_delete(bed.model, 2);
    model_put(bed.model, 2, 21);
    bed_run(&bed, TD_SECOND);
    assert_string_equal(bed_reported(&bed), "+p3=30 ~p1=10>11 -p2=20 +p2=21 ");
    bed_check(&bed);
    assert_int_equal(bed.model->started, 1);
    assert_true(td_cache_age(bed.cache) <= TD_SECOND);
    bed_run(&bed, TD_MINUTE);
    assert_true(td_cache_age(bed.cache) >= TD_MINUTE);
    assert_int_equal(td_cache_error(bed.cache)->code, TD_OK);
    bed_done(&bed);
}

/* A server without streaming lists is asked once; from then on pages are used. */
static void test_falls_back_to_pages_and_remembers(void **state)
{
    (void)state;
    static const int statuses[] = {400, 422};
    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        struct bed bed;
        bed_init(&bed);
        bed.model->has_streams = false;
        bed.model->stream_status = statuses[i];
        for (int name = 0; name < 1234; name++) {
            model_put(bed.model, name, name);
        }
        td_cache_start(bed.cache);
        bed_run(&bed, TD_SECOND);
        bed_check(&bed);
        assert_int_equal(td_cache_counts(bed.cache).pages, 3);
        assert_int_equal(bed.model->started, 5); /* refused, three pages, the watch */
        assert_non_null(strstr(td_buf_str(&bed.model->log_text).ptr, "/api/v1/pods?limit=500\n"));
        model_compact(bed.model);
        model_put(bed.model, 5000 % MODEL_NAMES_MAX, 1);
        model_compact(bed.model);
        model_hang_up(bed.model, true);
        bed_run(&bed, 10 * TD_SECOND);
        model_put(bed.model, 17, 2);
        model_compact(bed.model);
        bed_run(&bed, TD_MINUTE);
        bed_check(&bed);
        const char *log = td_buf_str(&bed.model->log_text).ptr;
        const char *first = strstr(log, "sendInitialEvents");
        assert_non_null(first);
        assert_null(strstr(first + 1, "sendInitialEvents"));
        bed_done(&bed);
    }
}

/* 501 and other failures of streams alone: after three such lists only pages are asked for. */
static void test_gives_streams_up_after_repeated_failures(void **state)
{
    (void)state;
    struct bed bed;
    bed_init(&bed);
    bed.model->has_streams = false;
    bed.model->stream_status = 501;
    model_put(bed.model, 1, 1);
    td_cache_start(bed.cache);
    for (int i = 0; i < 6; i++) {
        bed_run(&bed, TD_MINUTE);
        model_put(bed.model, 1, i + 2);
        model_compact(bed.model);
        model_hang_up(bed.model, true);
    }
    bed_run(&bed, TD_MINUTE);
    bed_check(&bed);
    size_t tries = 0;
    const char *log = td_buf_str(&bed.model->log_text).ptr;
    for (const char *at = log; (at = strstr(at, "sendInitialEvents")) != NULL; at++) {
        tries++;
    }
    assert_int_equal(tries, TD_CACHE_STREAM_TRIES * TD_CACHE_STREAM_REFUSALS_MAX);
    bed_done(&bed);
}

/* After any end of a watch the next one goes on behind what was seen, bookmarks included. */
static void test_resumes_from_the_last_version(void **state)
{
    (void)state;
    struct bed bed;
    bed_init(&bed);
    model_put(bed.model, 1, 10);
    td_cache_start(bed.cache);
    bed_run(&bed, 5 * TD_SECOND);
    model_say_bookmark(bed.model);
    bed_run(&bed, TD_SECOND);
    assert_string_equal(bed_reported(&bed), "+p1=10 ! ");
    bed.model->version = 200; /* of other resources */
    model_say_bookmark(bed.model);
    bed_run(&bed, TD_SECOND);
    assert_int_equal(td_cache_counts(bed.cache).bookmarks, 3);
    assert_true(td_str_equal(td_cache_version(bed.cache), TD_STR("200")));
    model_hang_up(bed.model, false);
    bed_run(&bed, TD_MILLISECOND * 2);
    model_put(bed.model, 1, 11);
    bed_run(&bed, 2 * TD_SECOND);
    assert_non_null(strstr(td_buf_str(&bed.model->log_text).ptr, "resourceVersion=200"));
    model_hang_up(bed.model, true);
    model_put(bed.model, 1, 12);
    model_delete(bed.model, 1);
    bed_run(&bed, 2 * TD_SECOND);
    assert_string_equal(bed_reported(&bed), "~p1=10>11 ~p1=11>12 -p1=12 ");
    assert_int_equal(bed.model->lists, 1);
    bed_check(&bed);
    bed_done(&bed);
}

/* An expired version: everything is compared, only differences are told, missed deletions too. */
static void test_relists_without_dropping(void **state)
{
    (void)state;
    static const bool has_streams[] = {true, false};
    for (size_t i = 0; i < 2; i++) {
        struct bed bed;
        bed_init(&bed);
        bed.model->has_streams = has_streams[i];
        for (int name = 1; name <= 4; name++) {
            model_put(bed.model, name, 10 * name);
        }
        td_cache_start(bed.cache);
        bed_run(&bed, 5 * TD_SECOND);
        (void)bed_reported(&bed);
        const void *kept = td_cache_get(bed.cache, TD_STR("ns1"), TD_STR("p1"));
        model_hang_up(bed.model, true);
        bed_run(&bed, 2 * TD_MILLISECOND);
        model_put(bed.model, 2, 21); /* changed */
        model_delete(bed.model, 3);  /* gone */
        model_delete(bed.model, 4);  /* another one under its name */
        model_put(bed.model, 4, 41);
        model_put(bed.model, 5, 50); /* new */
        model_compact(bed.model);
        assert_int_equal(td_cache_count(bed.cache), 4); /* nothing is dropped meanwhile */
        bed_run(&bed, 10 * TD_SECOND);
        assert_string_equal(bed_reported(&bed), "~p2=20>21 -p4=40 +p4=41 +p5=50 -p3=30 ! ");
        assert_ptr_equal(td_cache_get(bed.cache, TD_STR("ns1"), TD_STR("p1")), kept);
        assert_int_equal(td_cache_counts(bed.cache).expired, 1);
        bed_check(&bed);
        bed_done(&bed);
    }
}

/* 410 as a status at the start of a watch, and as an event in the middle of one. */
static void test_expiry_comes_in_two_forms(void **state)
{
    (void)state;
    struct bed bed;
    bed_init(&bed);
    model_put(bed.model, 1, 10);
    td_cache_start(bed.cache);
    bed_run(&bed, 2 * TD_SECOND);
    model_fault(bed.model, FAULT_STATUS, 410);
    model_hang_up(bed.model, false);
    bed_run(&bed, 5 * TD_SECOND);
    assert_int_equal(bed.model->lists, 2);
    model_say(bed.model, "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410,"
                         "\"message\":\"too old resource version\"}}\n");
    bed_run(&bed, 5 * TD_SECOND);
    assert_int_equal(bed.model->lists, 3);
    assert_int_equal(td_cache_counts(bed.cache).expired, 2);
    assert_string_equal(bed_reported(&bed), "+p1=10 ! ! ! ");
    assert_int_equal(td_cache_error(bed.cache)->code, TD_OK);
    bed_done(&bed);
}

/* Lines that are no events, and errors other than 410, end the watch; it resumes, without a list.
 */
static void test_bad_lines_end_the_watch_only(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "{\"type\":\"MODIFIED\",\"object\":{\"metadata\":{\"name\":\"p1\",}}}\n",
        "{\"type\":\"MODIFIED\",\"object\":{\"metadata\":{\"namespace\":\"ns1\"}}}\n",
        "{\"type\":\"MODIFIED\",\"object\":null}\n",
        "{\"type\":\"MODIFIED\"}\n",
        "{\"type\":\"SOMETHING\",\"object\":{}}\n",
        "{\"type\":7,\"object\":{}}\n",
        "[]\n",
        "}\n",
        "<html>\n",
        "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{}}}\n",
        "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":500,\"message\":\"etcd\"}}\n",
        "{\"type\":\"ERROR\",\"object\":{}}\n",
    };
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        struct bed bed;
        bed_init(&bed);
        model_put(bed.model, 1, 10);
        td_cache_start(bed.cache);
        bed_run(&bed, 2 * TD_SECOND);
        model_put(bed.model, 1, 11);
        model_say(bed.model, lines[i]);
        model_put(bed.model, 1, 12);
        bed_run(&bed, 2 * TD_MILLISECOND);
        assert_int_not_equal(td_cache_error(bed.cache)->code, TD_OK);
        bed_run(&bed, 2 * TD_SECOND);
        assert_string_equal(bed_reported(&bed), "+p1=10 ! ~p1=10>11 ~p1=11>12 ");
        assert_int_equal(bed.model->lists, 1);
        assert_int_equal(td_cache_counts(bed.cache).failures, 1);
        bed_done(&bed);
    }
}

/* A page whose snapshot has expired: the list begins anew. */
static void test_expired_page_restarts_the_list(void **state)
{
    (void)state;
    struct bed bed;
    bed_init(&bed);
    bed.model->has_streams = false;
    for (int name = 0; name < 1100; name++) {
        model_put(bed.model, name, name);
    }
    model_fault(bed.model, FAULT_NONE, 0);
    model_fault(bed.model, FAULT_NONE, 0);
    model_fault(bed.model, FAULT_STATUS, 410); /* the second page */
    td_cache_start(bed.cache);
    bed_run(&bed, 20 * TD_MILLISECOND);
    model_put(bed.model, 3, 7777);
    model_delete(bed.model, 4);
    bed_run(&bed, 5 * TD_SECOND);
    bed_check(&bed);
    assert_int_equal(td_cache_counts(bed.cache).expired, 1);
    assert_int_equal(bed.synced, 1);
    assert_non_null(strstr(td_buf_str(&bed.model->log_text).ptr, "limit=1000"));
    bed_done(&bed);
}

/* Every answer cut at every byte, as a broken connection and as one that looks complete. */
static void cut_everywhere(bool has_streams, enum model_fault_kind kind, size_t skip)
{
    size_t len = 1;
    for (size_t at = 0; at < len; at++) {
        struct bed bed;
        bed_init(&bed);
        bed.model->has_streams = has_streams;
        model_put(bed.model, 1, 10);
        model_put(bed.model, 2, 20);
        for (size_t i = 0; i < skip; i++) {
            model_fault(bed.model, FAULT_NONE, 0);
        }
        model_fault(bed.model, kind, (int64_t)at);
        td_cache_start(bed.cache);
        bed_run(&bed, 10 * TD_MILLISECOND);
        model_put(bed.model, 1, 11);
        model_delete(bed.model, 2);
        model_put(bed.model, 2, 21);
        bed_run(&bed, TD_MINUTE);
        bed_check(&bed);
        assert_true(bed.model->started <= 8);
        len = at == 0 ? 1200 : len; /* more than any of these answers has */
        bed_done(&bed);
    }
}

static void test_survives_cuts_of_the_streaming_list(void **state)
{
    (void)state;
    cut_everywhere(true, FAULT_CUT, 0);
    cut_everywhere(true, FAULT_SHORT, 0);
}

static void test_survives_cuts_of_a_page(void **state)
{
    (void)state;
    cut_everywhere(false, FAULT_CUT, 1);
    cut_everywhere(false, FAULT_SHORT, 1);
}

static void test_survives_cuts_of_a_watch(void **state)
{
    (void)state;
    cut_everywhere(false, FAULT_CUT, 2);
    cut_everywhere(false, FAULT_SHORT, 2);
}

/* A silent watch is a dead connection: it is opened again. */
static void test_reopens_a_silent_watch(void **state)
{
    (void)state;
    struct bed bed;
    bed_init(&bed);
    model_put(bed.model, 1, 10);
    model_fault(bed.model, FAULT_NONE, 0);
    model_fault(bed.model, FAULT_SILENT, 0);
    td_cache_start(bed.cache);
    bed_run(&bed, 2 * TD_SECOND);
    model_hang_up(bed.model, false);
    bed_run(&bed, TD_MINUTE); /* the next watch says nothing */
    model_put(bed.model, 1, 11);
    bed_run(&bed, TD_CACHE_SILENCE_MS * TD_MILLISECOND);
    bed_run(&bed, TD_MINUTE);
    bed_check(&bed);
    assert_int_equal(bed.model->lists, 1);
    bed_done(&bed);
}

/* However the server refuses, it is asked a few times and then ever less; afterwards all is well.
 */
static void test_never_spins(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum model_fault_kind kind;
        int64_t value;
        const char *text;
    } rows[] = {
        {"429", FAULT_STATUS, 429, NULL},
        {"500", FAULT_STATUS, 500, NULL},
        {"503", FAULT_STATUS, 503, NULL},
        {"410 for ever", FAULT_STATUS, 410, NULL},
        {"401", FAULT_STATUS, 401, NULL},
        {"403", FAULT_STATUS, 403, NULL},
        {"404", FAULT_STATUS, 404, NULL},
        {"closed at once", FAULT_SHORT, 0, NULL},
        {"cut at once", FAULT_CUT, 0, NULL},
        {"rubbish", FAULT_LINE, 0, "rubbish {"},
        {"errors", FAULT_LINE, 0, "{\"type\":\"ERROR\",\"object\":{\"code\":410}}\n"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct bed bed;
        bed_init(&bed);
        model_put(bed.model, 1, 10);
        for (size_t n = 0; n < MODEL_FAULTS_MAX; n++) {
            bed.model->faults[n] = (struct model_fault){
                .kind = rows[i].kind, .value = rows[i].value, .text = rows[i].text};
        }
        bed.model->fault_count = MODEL_FAULTS_MAX;
        td_cache_start(bed.cache);
        for (int second = 0; second < 300; second++) {
            size_t before = bed.model->started;
            bed_run(&bed, TD_SECOND);
            assert_true(bed.model->started - before <= CALLS_PER_SECOND_MAX);
        }
        assert_true(bed.model->started <= 100);
        assert_int_not_equal(td_cache_error(bed.cache)->code, TD_OK);
        assert_false(td_cache_is_synced(bed.cache));
        bed.model->fault_count = 0;
        bed_run(&bed, 2 * TD_MINUTE);
        bed_check(&bed);
        assert_int_equal(td_cache_error(bed.cache)->code, TD_OK);
        bed_done(&bed);
    }
}

/* A watch that the server ends at once, again and again, is no reason to hurry either. */
static void test_never_spins_on_short_watches(void **state)
{
    (void)state;
    struct bed bed;
    bed_init(&bed);
    model_put(bed.model, 1, 10);
    td_cache_start(bed.cache);
    bed_run(&bed, TD_SECOND / 2);
    for (size_t n = 0; n < MODEL_FAULTS_MAX; n++) {
        bed.model->faults[n] = (struct model_fault){.kind = FAULT_SHORT};
    }
    bed.model->fault_count = MODEL_FAULTS_MAX;
    model_hang_up(bed.model, false);
    size_t before = bed.model->started;
    bed_run(&bed, 5 * TD_MINUTE);
    assert_true(bed.model->started - before <= 30);
    bed_done(&bed);
}

/* Random changes under random faults: at the end cache and server agree. */
static void test_converges_under_random_faults(void **state)
{
    (void)state;
    static const enum model_fault_kind kinds[] = {FAULT_NONE,  FAULT_NONE,   FAULT_CUT,
                                                  FAULT_SHORT, FAULT_STATUS, FAULT_LINE};
    static const int statuses[] = {410, 429, 500, 503, 403};
    for (int round = 0; round < 20; round++) {
        struct bed bed;
        bed_init(&bed);
        bed.model->has_streams = round % 2 == 0;
        td_cache_start(bed.cache);
        for (int step = 0; step < 300; step++) {
            int name = (int)random_below(40);
            if (random_below(4) == 0) {
                model_delete(bed.model, name);
            } else {
                model_put(bed.model, name, (int64_t)random_below(1000));
            }
            if (random_below(10) == 0 && bed.model->fault_count < MODEL_FAULTS_MAX) {
                enum model_fault_kind kind = kinds[random_below(6)];
                model_fault(bed.model, kind,
                            kind == FAULT_STATUS ? statuses[random_below(5)]
                                                 : (int64_t)random_below(3000));
                bed.model->faults[bed.model->fault_count - 1].text = "{\"type\":";
            }
            if (random_below(20) == 0) {
                model_hang_up(bed.model, random_below(2) == 0);
            }
            if (random_below(20) == 0) {
                model_compact(bed.model);
            }
            if (random_below(10) == 0) {
                model_say_bookmark(bed.model);
            }
            bed_run(&bed, (td_duration)random_below(2000) * TD_MILLISECOND);
        }
        bed.model->fault_next = bed.model->fault_count;
        bed_run(&bed, 10 * TD_MINUTE);
        bed_check(&bed);
        bed_done(&bed);
    }
}

/* Endless change does not grow memory: names are given back, objects are replaced. */
static void test_memory_is_flat(void **state)
{
    (void)state;
    struct bed bed;
    bed_init(&bed);
    td_cache_start(bed.cache);
    bed_run(&bed, TD_SECOND);
    size_t bytes = 0;
    for (int round = 0; round < 50; round++) {
        for (int name = 0; name < 50; name++) {
            model_delete(bed.model, name);
            model_put(bed.model, name, 100 + round);
        }
        bed_run(&bed, TD_SECOND);
        bed.model->log_count = 0;
        assert_true(td_intern_count(bed.names) <= 5);
        size_t now = td_cache_counts(bed.cache).bytes;
        assert_true(bytes == 0 || now < bytes + 1000);
        bytes = bytes == 0 ? now : bytes;
    }
    bed_check(&bed);
    bed_done(&bed);
}

/* Selectors, namespace and group go into the path, escaped; bad names are refused. */
static void test_asks_for_what_it_follows(void **state)
{
    (void)state;
    struct bed bed;
    bed_init(&bed);
    td_cache_free(bed.cache);
    struct td_cache_options options = {
        .loop = bed.loop,
        .client = bed.client,
        .group = TD_STR("apps"),
        .version = TD_STR("v1"),
        .plural = TD_STR("deployments"),
        .namespace = TD_STR(".."),
        .label_selector = TD_STR("app in (a,b)"),
        .field_selector = TD_STR("metadata.name=x"),
        .struct_bytes = sizeof(struct td_cache_head),
    };
    struct td_error err = TD_ERROR_INIT;
    bed.cache = NULL;
    assert_int_equal(td_cache_new(&options, &bed.cache, &err), TD_INVALID);
    options.namespace = TD_STR("web");
    assert_int_equal(td_cache_new(&options, &bed.cache, &err), TD_OK);
    td_cache_start(bed.cache);
    bed_run(&bed, TD_SECOND);
    const char *log = td_buf_str(&bed.model->log_text).ptr;
    assert_non_null(strstr(log, "/apis/apps/v1/namespaces/web/deployments?labelSelector=app%20in%20"
                                "%28a%2Cb%29&fieldSelector=metadata.name%3Dx&watch=1"));
    const char *seconds = strstr(log, "timeoutSeconds=");
    assert_non_null(seconds);
    long value = strtol(seconds + strlen("timeoutSeconds="), NULL, 10);
    assert_in_range(value, 300, 600);
    bed_done(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_follows_changes_in_order),
        cmocka_unit_test(test_falls_back_to_pages_and_remembers),
        cmocka_unit_test(test_gives_streams_up_after_repeated_failures),
        cmocka_unit_test(test_resumes_from_the_last_version),
        cmocka_unit_test(test_relists_without_dropping),
        cmocka_unit_test(test_expiry_comes_in_two_forms),
        cmocka_unit_test(test_bad_lines_end_the_watch_only),
        cmocka_unit_test(test_expired_page_restarts_the_list),
        cmocka_unit_test(test_survives_cuts_of_the_streaming_list),
        cmocka_unit_test(test_survives_cuts_of_a_page),
        cmocka_unit_test(test_survives_cuts_of_a_watch),
        cmocka_unit_test(test_reopens_a_silent_watch),
        cmocka_unit_test(test_never_spins),
        cmocka_unit_test(test_never_spins_on_short_watches),
        cmocka_unit_test(test_converges_under_random_faults),
        cmocka_unit_test(test_memory_is_flat),
        cmocka_unit_test(test_asks_for_what_it_follows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
