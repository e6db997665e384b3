/* Work queues: one place a key, delays, turns between queues, limits, and a model of it all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/os/clock.h"
#include "base/os/loop.h"
#include "support/random.h"

#define KEYS 40
#define MODEL_COUNT_MAX 25
#define MODEL_STEPS 30000

struct bench {
    struct td_clock clock;
    struct td_loop *loop;
    struct td_queue *queue;
    struct td_queue *other;
    char text[512]; /* keys in the order of their jobs */
    int left;       /* jobs that still ask for more */
};

static void bench_init(struct bench *bench, td_job_fn fn, size_t count_max)
{
    *bench = (struct bench){.clock = td_clock_virtual(0)};
    assert_int_equal(td_loop_new(&bench->clock, &bench->loop, NULL), TD_OK);
    bench->queue = td_queue_new(bench->loop, fn, bench, count_max);
}

static void bench_done(struct bench *bench)
{
    td_queue_free(bench->queue);
    td_queue_free(bench->other);
    td_loop_free(bench->loop);
}

static void bench_note(struct bench *bench, td_str key)
{
    size_t len = strlen(bench->text);
    (void)snprintf(bench->text + len, sizeof(bench->text) - len, "%.*s@%lld ", TD_STR_ARG(key),
                   (long long)(td_clock_steady(&bench->clock) / TD_SECOND));
}

static enum td_job_result note_job(td_str key, void *context)
{
    bench_note(context, key);
    assert_int_equal(key.ptr[key.len], '\0');
    return TD_JOB_DONE;
}

/* Keys run in the order in which they came, each once however often it was added, and the copy is
 * the queue's. */
static void test_queue_runs_each_waiting_key_once(void **state)
{
    (void)state;
    struct bench bench;
    bench_init(&bench, note_job, 10);
    char key[] = "a";
    assert_int_equal(td_queue_add(bench.queue, td_str_from(key), NULL), TD_OK);
    key[0] = 'b';
    assert_int_equal(td_queue_add(bench.queue, td_str_from(key), NULL), TD_OK);
    assert_int_equal(td_queue_add(bench.queue, TD_STR("a"), NULL), TD_OK);
    assert_int_equal(td_queue_add(bench.queue, TD_STR(""), NULL), TD_OK);
    assert_int_equal(td_queue_count(bench.queue), 3);
    assert_int_equal(td_loop_run(bench.loop, NULL), TD_OK);
    assert_string_equal(bench.text, "a@0 b@0 @0 ");
    assert_int_equal(td_queue_count(bench.queue), 0);
    assert_int_equal(td_queue_add(bench.queue, TD_STR("a"), NULL), TD_OK);
    assert_int_equal(td_loop_run(bench.loop, NULL), TD_OK);
    assert_string_equal(bench.text, "a@0 b@0 @0 a@0 ");
    bench_done(&bench);
}

/* Of two delays of one key the earlier counts; a delay and a plain add both run it. */
static void test_queue_delays_keep_the_earlier(void **state)
{
    (void)state;
    struct bench bench;
    bench_init(&bench, note_job, 10);
    assert_int_equal(td_queue_add_after(bench.queue, TD_STR("a"), 5 * TD_SECOND, NULL), TD_OK);
    assert_int_equal(td_queue_add_after(bench.queue, TD_STR("a"), 2 * TD_SECOND, NULL), TD_OK);
    assert_int_equal(td_queue_add_after(bench.queue, TD_STR("a"), 9 * TD_SECOND, NULL), TD_OK);
    assert_int_equal(td_queue_add_after(bench.queue, TD_STR("b"), 3 * TD_SECOND, NULL), TD_OK);
    assert_int_equal(td_queue_add(bench.queue, TD_STR("b"), NULL), TD_OK);
    assert_int_equal(td_queue_add_after(bench.queue, TD_STR("c"), -1, NULL), TD_OK);
    assert_int_equal(td_queue_add_after(bench.queue, TD_STR("d"), INT64_MAX, NULL), TD_OK);
    assert_int_equal(td_queue_count(bench.queue), 4);
    assert_int_equal(td_loop_run(bench.loop, NULL), TD_OK);
    assert_string_equal(bench.text, "b@0 c@0 a@2 b@3 d@9223372036 ");
    bench_done(&bench);
}

static enum td_job_result readd_job(td_str key, void *context)
{
    struct bench *bench = context;
    bench_note(bench, key);
    if (bench->left-- > 0) {
        assert_int_equal(td_queue_add(bench->queue, key, NULL), TD_OK);
        assert_int_equal(td_queue_add(bench->queue, key, NULL), TD_OK);
    }
    return TD_JOB_DONE;
}

/* A key that is added while its job runs is run once more, behind those that wait already. */
static void test_queue_runs_again_what_came_during_the_job(void **state)
{
    (void)state;
    struct bench bench;
    bench_init(&bench, readd_job, 10);
    bench.left = 2;
    assert_int_equal(td_queue_add(bench.queue, TD_STR("a"), NULL), TD_OK);
    assert_int_equal(td_queue_add(bench.queue, TD_STR("b"), NULL), TD_OK);
    assert_int_equal(td_loop_run(bench.loop, NULL), TD_OK);
    assert_string_equal(bench.text, "a@0 b@0 a@0 b@0 ");
    bench_done(&bench);
}

/* At its maximum the queue refuses a new key, accepts those it has, and names the count. */
static void test_queue_stops_at_its_maximum(void **state)
{
    (void)state;
    struct bench bench;
    bench_init(&bench, note_job, 2);
    assert_int_equal(td_queue_add(bench.queue, TD_STR("a"), NULL), TD_OK);
    assert_int_equal(td_queue_add_after(bench.queue, TD_STR("b"), TD_SECOND, NULL), TD_OK);
    struct td_error err = TD_ERROR_INIT;
    assert_int_equal(td_queue_add(bench.queue, TD_STR("c"), &err), TD_LIMIT);
    assert_string_equal(err.message, "queue is full with 2 keys");
    assert_int_equal(td_queue_add_after(bench.queue, TD_STR("c"), TD_SECOND, NULL), TD_LIMIT);
    assert_int_equal(td_queue_add_after(bench.queue, TD_STR("a"), TD_SECOND, NULL), TD_OK);
    assert_int_equal(td_queue_add(bench.queue, TD_STR("b"), NULL), TD_OK);
    assert_int_equal(td_loop_run(bench.loop, NULL), TD_OK);
    assert_string_equal(bench.text, "a@0 b@0 b@1 a@1 ");
    bench_done(&bench);
}

static enum td_job_result full_again_job(td_str key, void *context)
{
    struct bench *bench = context;
    bench_note(bench, key);
    if (td_str_equal(key, TD_STR("a"))) {
        assert_int_equal(td_queue_add(bench->queue, TD_STR("x"), NULL), TD_OK); /* fills it */
        assert_int_equal(td_queue_add(bench->queue, TD_STR("y"), NULL), TD_LIMIT);
    }
    return bench->left-- > 0 ? TD_JOB_AGAIN : TD_JOB_DONE;
}

/* A job that goes on keeps its place even when the queue filled up meanwhile. */
static void test_queue_takes_again_into_a_full_queue(void **state)
{
    (void)state;
    struct bench bench;
    bench_init(&bench, full_again_job, 1);
    bench.left = 3;
    assert_int_equal(td_queue_add(bench.queue, TD_STR("a"), NULL), TD_OK);
    assert_int_equal(td_loop_run(bench.loop, NULL), TD_OK);
    assert_string_equal(bench.text, "a@0 x@0 a@0 x@0 a@0 x@0 ");
    bench_done(&bench);
}

static enum td_job_result again_job(td_str key, void *context)
{
    struct bench *bench = context;
    bench_note(bench, key);
    return bench->left-- > 0 ? TD_JOB_AGAIN : TD_JOB_DONE;
}

/* Queues take turns; inside one, a job that goes on stands behind those that wait. */
static void test_queue_turns_are_shared(void **state)
{
    (void)state;
    struct bench bench;
    bench_init(&bench, again_job, 10);
    bench.left = 2;
    bench.other = td_queue_new(bench.loop, note_job, &bench, 10);
    static const char *const keys[] = {"a", "b", "c"};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(td_queue_add(bench.queue, td_str_from(keys[i]), NULL), TD_OK);
    }
    assert_int_equal(td_queue_add(bench.other, TD_STR("1"), NULL), TD_OK);
    assert_int_equal(td_queue_add(bench.other, TD_STR("2"), NULL), TD_OK);
    assert_int_equal(td_loop_run(bench.loop, NULL), TD_OK);
    assert_string_equal(bench.text, "a@0 1@0 b@0 2@0 c@0 a@0 b@0 ");
    bench_done(&bench);
}

static enum td_job_result free_queues_job(td_str key, void *context)
{
    struct bench *bench = context;
    assert_int_equal(td_queue_add(bench->queue, key, NULL), TD_OK);
    assert_int_equal(td_queue_add_after(bench->queue, key, TD_SECOND, NULL), TD_OK);
    td_queue_free(bench->queue);
    td_queue_free(bench->other);
    bench->queue = NULL;
    bench->other = NULL;
    bench_note(bench, key); /* still there */
    return TD_JOB_AGAIN;
}

/* A job may free its own queue and others that are ready; nothing of them runs afterwards. */
static void test_queue_may_be_freed_by_its_job(void **state)
{
    (void)state;
    struct bench bench;
    bench_init(&bench, free_queues_job, 10);
    bench.other = td_queue_new(bench.loop, note_job, &bench, 10);
    assert_int_equal(td_queue_add(bench.queue, TD_STR("a"), NULL), TD_OK);
    assert_int_equal(td_queue_add(bench.queue, TD_STR("b"), NULL), TD_OK);
    assert_int_equal(td_queue_add_after(bench.queue, TD_STR("c"), TD_SECOND, NULL), TD_OK);
    assert_int_equal(td_queue_add(bench.other, TD_STR("d"), NULL), TD_OK);
    assert_int_equal(td_loop_run(bench.loop, NULL), TD_OK);
    assert_string_equal(bench.text, "a@0 ");
    bench_done(&bench);
}

static enum td_job_result stop_job(td_str key, void *context)
{
    struct bench *bench = context;
    bench_note(bench, key);
    td_loop_stop(bench->loop);
    return TD_JOB_DONE;
}

/* A stop ends the run before the next job; what waits is still there for the next run. */
static void test_queue_keeps_what_waits_over_a_stop(void **state)
{
    (void)state;
    struct bench bench;
    bench_init(&bench, stop_job, 10);
    assert_int_equal(td_queue_add(bench.queue, TD_STR("a"), NULL), TD_OK);
    assert_int_equal(td_queue_add(bench.queue, TD_STR("b"), NULL), TD_OK);
    assert_int_equal(td_loop_run(bench.loop, NULL), TD_OK);
    assert_string_equal(bench.text, "a@0 ");
    assert_int_equal(td_loop_run(bench.loop, NULL), TD_OK);
    assert_string_equal(bench.text, "a@0 b@0 ");
    bench_done(&bench);
}

/* The model: a plain list of waiting keys and a due time for each delayed one. Due times are made
 * so that no two are equal. */
struct model {
    struct td_clock clock;
    struct td_loop *loop;
    struct td_queue *queue;
    struct td_timer *driver;
    size_t waiting[KEYS];
    size_t waiting_count;
    td_duration due[KEYS]; /* 0 when not delayed */
    td_duration unique;
    size_t steps;
    size_t jobs;
};

static bool model_waits(const struct model *model, size_t key)
{
    bool is_found = false;
    for (size_t i = 0; i < model->waiting_count; i++) {
        is_found = is_found || model->waiting[i] == key;
    }
    return is_found;
}

static size_t model_count(const struct model *model)
{
    size_t count = 0;
    for (size_t key = 0; key < KEYS; key++) {
        count += model_waits(model, key) || model->due[key] > 0 ? 1 : 0;
    }
    return count;
}

static void model_push(struct model *model, size_t key)
{
    if (!model_waits(model, key)) {
        model->waiting[model->waiting_count++] = key;
    }
}

/* Move what has become due, earliest first. */
static void model_catch_up(struct model *model)
{
    td_duration now = td_clock_steady(&model->clock);
    for (;;) {
        size_t first = KEYS;
        for (size_t key = 0; key < KEYS; key++) {
            bool is_due = model->due[key] > 0 && model->due[key] <= now;
            if (is_due && (first == KEYS || model->due[key] < model->due[first])) {
                first = key;
            }
        }
        if (first == KEYS) {
            return;
        }
        model->due[first] = 0;
        model_push(model, first);
    }
}

static void model_step(struct model *model)
{
    size_t key = random_below(KEYS);
    char text[24];
    (void)snprintf(text, sizeof(text), "%zu", key);
    bool is_counted = model_waits(model, key) || model->due[key] > 0;
    int expected = is_counted || model_count(model) < MODEL_COUNT_MAX ? TD_OK : TD_LIMIT;
    model->steps++;
    if (random_below(2) == 0) {
        assert_int_equal(td_queue_add(model->queue, td_str_from(text), NULL), expected);
        if (expected == TD_OK) {
            model_push(model, key);
        }
    } else {
        td_duration now = td_clock_steady(&model->clock);
        td_duration milli = now / TD_MILLISECOND + 1 + (td_duration)random_below(20);
        model->unique = model->unique % 999999 + 1;
        td_duration due = milli * TD_MILLISECOND + model->unique;
        assert_int_equal(td_queue_add_after(model->queue, td_str_from(text), due - now, NULL),
                         expected);
        if (expected == TD_OK && (model->due[key] == 0 || due < model->due[key])) {
            model->due[key] = due;
        }
    }
    assert_int_equal(td_queue_count(model->queue), model_count(model));
}

static enum td_job_result model_job(td_str key, void *context)
{
    struct model *model = context;
    model_catch_up(model);
    assert_true(model->waiting_count > 0);
    size_t expected = model->waiting[0];
    int64_t number;
    assert_true(td_str_to_int64(key, &number));
    assert_int_equal(number, expected);
    model->waiting_count--;
    memmove(model->waiting, model->waiting + 1, model->waiting_count * sizeof(size_t));
    assert_int_equal(td_queue_count(model->queue), model_count(model));
    model->jobs++;
    if (model->steps < MODEL_STEPS && random_below(3) == 0) {
        model_step(model);
    }
    if (random_below(4) == 0) {
        model_push(model, expected);
        return TD_JOB_AGAIN;
    }
    return TD_JOB_DONE;
}

static void model_drive(struct td_timer *timer, void *context)
{
    struct model *model = context;
    model_catch_up(model);
    size_t steps = random_below(8);
    for (size_t i = 0; i < steps; i++) {
        model_step(model);
    }
    if (model->steps < MODEL_STEPS) {
        td_timer_set(timer, TD_MILLISECOND);
    }
}

/* Thousands of adds, delayed adds and jobs that go on agree with the model in order and count. */
static void test_queue_agrees_with_a_model(void **state)
{
    (void)state;
    static struct model model;
    model = (struct model){.clock = td_clock_virtual(0)};
    assert_int_equal(td_loop_new(&model.clock, &model.loop, NULL), TD_OK);
    model.queue = td_queue_new(model.loop, model_job, &model, MODEL_COUNT_MAX);
    model.driver = td_timer_new(model.loop, model_drive, &model);
    td_timer_set(model.driver, 0);
    assert_int_equal(td_loop_run(model.loop, NULL), TD_OK);
    assert_int_equal(td_queue_count(model.queue), 0);
    assert_int_equal(model_count(&model), 0);
    assert_true(model.steps >= MODEL_STEPS);
    assert_true(model.jobs > MODEL_STEPS / 4);
    td_timer_free(model.driver);
    td_queue_free(model.queue);
    td_loop_free(model.loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_queue_runs_each_waiting_key_once),
        cmocka_unit_test(test_queue_delays_keep_the_earlier),
        cmocka_unit_test(test_queue_runs_again_what_came_during_the_job),
        cmocka_unit_test(test_queue_stops_at_its_maximum),
        cmocka_unit_test(test_queue_takes_again_into_a_full_queue),
        cmocka_unit_test(test_queue_turns_are_shared),
        cmocka_unit_test(test_queue_may_be_freed_by_its_job),
        cmocka_unit_test(test_queue_keeps_what_waits_over_a_stop),
        cmocka_unit_test(test_queue_agrees_with_a_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
