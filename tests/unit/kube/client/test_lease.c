/* Leader election: one leader at a time whatever fails, handed over in time, given back at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/json/json.h"
#include "base/os/clock.h"
#include "kube/client/client.h"
#include "kube/client/lease.h"
#include "support/fake_transport.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))
#define PROCESSES 3

/* One lease in a server, and processes that each have a clock of their own view of the wall. */
struct bed;

struct process {
    struct bed *bed;
    struct fake_transport fake;
    struct td_client *client;
    struct td_lease *lease;
    bool is_cut;       /* its requests get no answer */
    int fail_next;     /* so many requests get a 500 */
    td_duration delay; /* of its answers */
    bool leads;
    int started, stopped, released;
    char leader[32]; /* as reported */
    td_duration stopped_at;
    char why[TD_ERROR_MESSAGE_BYTES];
};

struct bed {
    struct td_clock clock;
    struct td_loop *loop;
    struct td_timer *stop;
    struct process processes[PROCESSES];
    bool has_lease;
    int version;
    char spec[512];
    int leaders_max;
    char answer[PROCESSES][1024];
};

static void bed_write(struct bed *bed, td_str body)
{
    td_auto_arena arena;
    td_arena_init(&arena, 1 << 20);
    struct td_json *object = NULL;
    assert_int_equal(td_json_parse(&arena, body, NULL, &object, NULL), TD_OK);
    td_auto_buf spec;
    td_buf_init(&spec, sizeof(bed->spec) - 1);
    td_json_write(td_json_get(object, TD_STR("spec")), &(struct td_json_format){.indent = 0},
                  &spec);
    assert_false(spec.is_full);
    memcpy(bed->spec, spec.ptr, spec.len + 1);
    bed->version++;
    bed->has_lease = true;
}

static bool bed_version_is(struct bed *bed, td_str body)
{
    td_auto_arena arena;
    td_arena_init(&arena, 1 << 20);
    struct td_json *object = NULL;
    assert_int_equal(td_json_parse(&arena, body, NULL, &object, NULL), TD_OK);
    const struct td_json *meta = td_json_get(object, TD_STR("metadata"));
    char version[16];
    (void)snprintf(version, sizeof(version), "%d", bed->version);
    return td_str_equal(td_json_get_str(meta, TD_STR("resourceVersion"), TD_STR_EMPTY),
                        td_str_from(version));
}

/* The server: changes happen when the request comes, the answer may be late. */
static void bed_answer(void *context, const struct td_call_request *request,
                       struct fake_answer *ret)
{
    struct process *process = context;
    struct bed *bed = process->bed;
    ret->after = process->delay;
    if (process->is_cut) {
        ret->is_silent = true;
        return;
    }
    if (process->fail_next > 0) {
        process->fail_next--;
        ret->status = 500;
        return;
    }
    if (td_str_equal(request->method, TD_STR("POST"))) {
        if (bed->has_lease) {
            ret->status = 409;
            return;
        }
        bed_write(bed, request->body);
    } else if (!bed->has_lease) {
        ret->status = 404;
        return;
    } else if (td_str_equal(request->method, TD_STR("PUT"))) {
        if (!bed_version_is(bed, request->body)) {
            ret->status = 409;
            return;
        }
        bed_write(bed, request->body);
    } else if (td_str_equal(request->method, TD_STR("PATCH"))) {
        bed_write(bed, request->body);
    }
    char *answer = bed->answer[process - bed->processes];
    (void)snprintf(
        answer, sizeof(bed->answer[0]),
        "{\"metadata\":{\"name\":\"l\",\"resourceVersion\":\"%d\",\"annotations\":{\"a\":"
        "\"b\"}},\"spec\":%s}",
        bed->version, bed->spec);
    ret->body = answer;
}

static void count_leaders(struct bed *bed)
{
    int leaders = 0;
    for (size_t i = 0; i < PROCESSES; i++) {
        leaders += bed->processes[i].leads ? 1 : 0;
    }
    bed->leaders_max = leaders > bed->leaders_max ? leaders : bed->leaders_max;
}

static void on_started(void *context)
{
    struct process *process = context;
    process->started++;
    process->leads = true;
    count_leaders(process->bed);
}

static void on_stopped(void *context, const struct td_error *why)
{
    struct process *process = context;
    process->stopped++;
    process->leads = false;
    process->stopped_at = td_clock_steady(&process->bed->clock);
    (void)snprintf(process->why, sizeof(process->why), "%s", why->message);
}

static void on_new_leader(void *context, td_str identity)
{
    struct process *process = context;
    (void)snprintf(process->leader, sizeof(process->leader), "%.*s", TD_STR_ARG(identity));
}

static void on_released(void *context)
{
    struct process *process = context;
    process->released++;
    process->leads = false;
}

static void stop_loop(struct td_timer *timer, void *context)
{
    (void)timer;
    td_loop_stop(context);
}

static void bed_init(struct bed *bed)
{
    *bed = (struct bed){.clock = td_clock_virtual(1700000000 * TD_SECOND)};
    assert_int_equal(td_loop_new(&bed->clock, &bed->loop, NULL), TD_OK);
    bed->stop = td_timer_new(bed->loop, stop_loop, bed->loop);
    for (size_t i = 0; i < PROCESSES; i++) {
        struct process *process = &bed->processes[i];
        process->bed = bed;
        char identity[] = {'p', (char)('0' + i), '\0'};
        fake_init(&process->fake, bed->loop, bed_answer, process);
        process->client = td_client_new(&(struct td_client_options){
            .loop = bed->loop, .transport = &process->fake.transport, .seed = i + 1});
        const struct td_lease_options options = {
            .loop = bed->loop,
            .client = process->client,
            .namespace = TD_STR("kube-system"),
            .name = TD_STR("l"),
            .identity = td_str_from(identity),
            .seed = i + 1,
            .events = {on_started, on_stopped, on_new_leader, NULL},
            .context = process,
        };
        assert_int_equal(td_lease_new(&options, &process->lease, NULL), TD_OK);
    }
}

static void bed_run(struct bed *bed, td_duration span)
{
    td_timer_set(bed->stop, span);
    assert_int_equal(td_loop_run(bed->loop, NULL), TD_OK);
}

static void bed_done(struct bed *bed)
{
    assert_true(bed->leaders_max <= 1);
    for (size_t i = 0; i < PROCESSES; i++) {
        td_lease_free(bed->processes[i].lease);
        td_client_free(bed->processes[i].client);
    }
    td_timer_free(bed->stop);
    td_loop_free(bed->loop);
}

/* The first to come leads and renews every two seconds; the others know who it is. */
static void test_lease_has_one_leader(void **state)
{
    (void)state;
    struct bed bed;
    bed_init(&bed);
    for (size_t i = 0; i < PROCESSES; i++) {
        td_lease_start(bed.processes[i].lease);
        td_lease_start(bed.processes[i].lease);
    }
    bed_run(&bed, 61 * TD_SECOND);
    assert_true(td_lease_is_held(bed.processes[0].lease));
    assert_int_equal(bed.processes[0].started, 1);
    for (size_t i = 0; i < PROCESSES; i++) {
        assert_string_equal(bed.processes[i].leader, "p0");
        assert_int_equal(bed.processes[i].started, i == 0);
        assert_int_equal(bed.processes[i].stopped, 0);
    }
    assert_string_equal(
        bed.spec,
        "{\"holderIdentity\":\"p0\",\"leaseDurationSeconds\":15,\"acquireTime\":\"2023-11-"
        "14T22:13:20.000000Z\",\"renewTime\":\"2023-11-14T22:14:20.000000Z\","
        "\"leaseTransitions\":0}");
    /* Two to make it, then one write each two seconds; the others read at most as often. */
    assert_in_range(bed.processes[0].fake.starts, 30, 32);
    assert_in_range(bed.processes[1].fake.starts, 60 / 4.4, 32);
    bed_done(&bed);
}

/* A leader without an answer stops before another candidate begins; the transition is counted. */
static void test_lease_is_taken_over(void **state)
{
    (void)state;
    struct bed bed;
    bed_init(&bed);
    for (size_t i = 0; i < 2; i++) {
        td_lease_start(bed.processes[i].lease);
        bed_run(&bed, 5 * TD_SECOND);
    }
    bed.processes[0].is_cut = true;
    td_duration cut_at = td_clock_steady(&bed.clock);
    bed_run(&bed, 13 * TD_SECOND);
    assert_int_equal(bed.processes[0].stopped, 1);
    assert_in_range(bed.processes[0].stopped_at - cut_at, 10 * TD_SECOND, 12 * TD_SECOND);
    assert_non_null(strstr(bed.processes[0].why, "lease 'kube-system/l': not renewed in time"));
    assert_false(td_lease_is_held(bed.processes[0].lease));
    assert_int_equal(bed.processes[1].started, 0);
    bed_run(&bed, 10 * TD_SECOND);
    assert_int_equal(bed.processes[1].started, 1);
    assert_non_null(strstr(bed.spec, "\"leaseTransitions\":1"));
    /* The old one comes back as a follower. */
    bed.processes[0].is_cut = false;
    td_lease_start(bed.processes[0].lease);
    bed_run(&bed, TD_MINUTE);
    assert_string_equal(bed.processes[0].leader, "p1");
    assert_int_equal(bed.processes[0].started, 1);
    bed_done(&bed);
}

/* What the caller saw of a lease counts: one that has not changed for its time is taken at the
 * first try, one that has changed since is waited for. */
static void test_lease_known_before_is_not_waited_for(void **state)
{
    static const char spec[] = "{\"holderIdentity\":\"other\",\"leaseDurationSeconds\":15}";
    (void)state;
    for (int is_changed = 0; is_changed < 2; is_changed++) {
        struct bed bed;
        bed_init(&bed);
        bed.has_lease = true;
        bed.version = 7;
        (void)snprintf(bed.spec, sizeof(bed.spec), "%s", spec);
        struct process *process = &bed.processes[0];
        td_lease_free(process->lease);
        td_duration since = td_clock_steady(&bed.clock);
        bed_run(&bed, 16 * TD_SECOND);
        const struct td_lease_options options = {
            .loop = bed.loop,
            .client = process->client,
            .namespace = TD_STR("kube-system"),
            .name = TD_STR("l"),
            .identity = TD_STR("p0"),
            .seed = 1,
            .known_spec = is_changed ? TD_STR("{}") : td_str_from(spec),
            .known_since = since,
            .events = {on_started, on_stopped, on_new_leader, NULL},
            .context = process,
        };
        assert_int_equal(td_lease_new(&options, &process->lease, NULL), TD_OK);
        td_lease_start(process->lease);
        bed_run(&bed, TD_SECOND);
        assert_int_equal(process->started, !is_changed);
        bed_run(&bed, 20 * TD_SECOND);
        assert_int_equal(process->started, 1);
        bed_done(&bed);
    }
}

/* Times that another machine wrote do not matter: only that the record changes does. */
static void test_lease_ignores_clock_skew(void **state)
{
    (void)state;
    static const char *const times[] = {"2001-01-01T00:00:00.000000Z",
                                        "2099-01-01T00:00:00.000000Z", "no time"};
    for (size_t i = 0; i < COUNT(times); i++) {
        struct bed bed;
        bed_init(&bed);
        bed.has_lease = true;
        bed.version = 7;
        (void)snprintf(
            bed.spec, sizeof(bed.spec),
            "{\"holderIdentity\":\"other\",\"leaseDurationSeconds\":15,\"renewTime\":\"%s"
            "\",\"leaseTransitions\":4}",
            times[i]);
        td_lease_start(bed.processes[0].lease);
        bed_run(&bed, 14 * TD_SECOND);
        assert_int_equal(bed.processes[0].started, 0);
        assert_string_equal(bed.processes[0].leader, "other");
        /* A holder with a broken clock still changes its record. */
        (void)snprintf(
            bed.spec, sizeof(bed.spec),
            "{\"holderIdentity\":\"other\",\"leaseDurationSeconds\":15,\"renewTime\":\"%s"
            "\",\"leaseTransitions\":4,\"x\":1}",
            times[i]);
        bed_run(&bed, 14 * TD_SECOND);
        assert_int_equal(bed.processes[0].started, 0);
        bed_run(&bed, 10 * TD_SECOND);
        assert_int_equal(bed.processes[0].started, 1);
        assert_non_null(strstr(bed.spec, "\"leaseTransitions\":5"));
        bed_done(&bed);
    }
}

/* A clean stop gives the lease back: the next leader does not wait for it to end. */
static void test_lease_is_released_on_stop(void **state)
{
    (void)state;
    struct bed bed;
    bed_init(&bed);
    td_lease_start(bed.processes[0].lease);
    bed_run(&bed, TD_SECOND);
    td_lease_start(bed.processes[1].lease);
    bed_run(&bed, 5 * TD_SECOND);
    td_lease_stop(bed.processes[0].lease, on_released, &bed.processes[0]);
    bed_run(&bed, 5 * TD_SECOND);
    assert_int_equal(bed.processes[0].released, 1);
    assert_int_equal(bed.processes[0].stopped, 0);
    assert_int_equal(bed.processes[1].started, 1);
    assert_string_equal(bed.processes[1].leader, "p1");
    /* One that never led, and one without an answer, are done too. */
    td_lease_stop(bed.processes[2].lease, on_released, &bed.processes[2]);
    bed.processes[1].is_cut = true;
    bed_run(&bed, 2500 * TD_MILLISECOND);
    td_lease_stop(bed.processes[1].lease, on_released, &bed.processes[1]);
    bed_run(&bed, 30 * TD_SECOND);
    assert_int_equal(bed.processes[1].released, 1);
    assert_int_equal(bed.processes[2].released, 1);
    bed_done(&bed);
}

/* Fail the first, second, third... request of a leader in turn: it never stops leading, and each
 * run ends with one leader. */
static void test_lease_survives_each_failure(void **state)
{
    (void)state;
    for (td_duration when = 0; when < 8 * TD_SECOND; when += 500 * TD_MILLISECOND) {
        struct bed bed;
        bed_init(&bed);
        for (size_t i = 0; i < PROCESSES; i++) {
            td_lease_start(bed.processes[i].lease);
        }
        bed_run(&bed, when);
        for (size_t i = 0; i < PROCESSES; i++) {
            bed.processes[i].fail_next = 2;
        }
        bed_run(&bed, TD_MINUTE);
        int leaders = 0;
        for (size_t i = 0; i < PROCESSES; i++) {
            leaders += td_lease_is_held(bed.processes[i].lease) ? 1 : 0;
            assert_int_equal(bed.processes[i].stopped, 0);
        }
        assert_int_equal(leaders, 1);
        bed_done(&bed);
    }
}

/* Another client writes over it: the old leader hears of it at its next try, not at its deadline.
 */
static void test_lease_that_was_taken_is_lost_at_once(void **state)
{
    (void)state;
    struct bed bed;
    bed_init(&bed);
    td_lease_start(bed.processes[0].lease);
    bed_run(&bed, 5 * TD_SECOND);
    bed_write(&bed,
              TD_STR("{\"spec\":{\"holderIdentity\":\"thief\",\"leaseDurationSeconds\":15}}"));
    bed_run(&bed, 3 * TD_SECOND);
    assert_int_equal(bed.processes[0].stopped, 1);
    assert_non_null(strstr(bed.processes[0].why, "another process holds it"));
    assert_string_equal(bed.processes[0].leader, "thief");
    bed_done(&bed);
}

/* A write that was answered late counts from when it was sent: no two leaders on slow networks. */
static void test_lease_on_a_slow_network(void **state)
{
    (void)state;
    struct bed bed;
    bed_init(&bed);
    bed.processes[0].delay = 4900 * TD_MILLISECOND;
    for (size_t i = 0; i < PROCESSES; i++) {
        td_lease_start(bed.processes[i].lease);
    }
    for (int i = 0; i < 20; i++) {
        bed.processes[0].is_cut = i % 3 == 2;
        bed_run(&bed, 9 * TD_SECOND);
        if (!td_lease_is_held(bed.processes[0].lease)) {
            td_lease_start(bed.processes[0].lease);
        }
    }
    bed_done(&bed);
}

/* Times out of order and names that are no path are refused. */
static void test_lease_refuses_nonsense(void **state)
{
    (void)state;
    struct bed bed;
    bed_init(&bed);
    const struct {
        const char *namespace, *name, *identity;
        td_duration duration, renew, retry;
    } rows[] = {
        {"a", "b", "", 0, 0, 0},
        {"a", "", "i", 0, 0, 0},
        {"", "b", "i", 0, 0, 0},
        {"a", "..", "i", 0, 0, 0},
        {"a", "b", "i", 10 * TD_SECOND, 10 * TD_SECOND, 0},
        {"a", "b", "i", 0, 2 * TD_SECOND, 2 * TD_SECOND},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct td_lease *lease = NULL;
        const struct td_lease_options options = {
            .loop = bed.loop,
            .client = bed.processes[0].client,
            .namespace = td_str_from(rows[i].namespace),
            .name = td_str_from(rows[i].name),
            .identity = td_str_from(rows[i].identity),
            .duration = rows[i].duration,
            .renew_deadline = rows[i].renew,
            .retry_period = rows[i].retry,
        };
        assert_int_equal(td_lease_new(&options, &lease, NULL), TD_INVALID);
        assert_null(lease);
    }
    td_lease_free(NULL);
    td_heartbeat_free(NULL);
    bed_done(&bed);
}

static void on_beaten(void *context, const struct td_error *err)
{
    int *codes = context;
    codes[err->code == TD_OK ? 0 : 1]++;
}

/* A heartbeat makes its lease, renews it at its interval and goes on after failures. */
static void test_heartbeat_goes_on(void **state)
{
    (void)state;
    struct bed bed;
    bed_init(&bed);
    int codes[2] = {0, 0};
    struct process *process = &bed.processes[0];
    struct td_heartbeat *beat = td_heartbeat_new(&(struct td_heartbeat_options){
        .loop = bed.loop,
        .client = process->client,
        .namespace = TD_STR("kube-system"),
        .name = TD_STR("vpa-admission-controller"),
        .holder = TD_STR("me"),
        .duration_seconds = 60,
        .interval = 10 * TD_SECOND,
        .beaten = on_beaten,
        .context = codes,
    });
    bed_run(&bed, TD_SECOND);
    assert_string_equal(bed.spec, "{\"holderIdentity\":\"me\",\"leaseDurationSeconds\":60,"
                                  "\"renewTime\":\"2023-11-14T22:13:20.000000Z\"}");
    bed_run(&bed, 30 * TD_SECOND);
    assert_int_equal(codes[0], 4);
    process->is_cut = true;
    bed_run(&bed, 40 * TD_SECOND);
    assert_true(codes[1] >= 1);
    process->is_cut = false;
    int before = codes[0];
    bed_run(&bed, 40 * TD_SECOND);
    assert_true(codes[0] > before);
    assert_true(process->fake.starts < 20);
    td_heartbeat_free(beat);
    bed_done(&bed);
}

/* On a fast clock beats come as often as its readers need them, but at most ten in a second. */
static void test_heartbeat_on_a_fast_clock(void **state)
{
    (void)state;
    static const struct {
        double speed;
        int most; /* beats in 0.6 s */
    } rows[] = {{40, 3}, {10000, 6}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct bed bed;
        bed_init(&bed);
        bed.clock = td_clock_accelerated(rows[i].speed, 1700000000 * TD_SECOND);
        int codes[2] = {0, 0};
        struct td_heartbeat *beat = td_heartbeat_new(&(struct td_heartbeat_options){
            .loop = bed.loop,
            .client = bed.processes[0].client,
            .namespace = TD_STR("kube-system"),
            .name = TD_STR("l"),
            .holder = TD_STR("me"),
            .duration_seconds = 60,
            .interval = 10 * TD_SECOND,
            .beaten = on_beaten,
            .context = codes,
        });
        bed_run(&bed, td_clock_from_machine(&bed.clock, 600 * TD_MILLISECOND));
        assert_true(codes[0] >= 2);
        assert_true(codes[0] <= rows[i].most);
        td_heartbeat_free(beat);
        bed_done(&bed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lease_has_one_leader),
        cmocka_unit_test(test_lease_is_taken_over),
        cmocka_unit_test(test_lease_known_before_is_not_waited_for),
        cmocka_unit_test(test_lease_ignores_clock_skew),
        cmocka_unit_test(test_lease_is_released_on_stop),
        cmocka_unit_test(test_lease_survives_each_failure),
        cmocka_unit_test(test_lease_that_was_taken_is_lost_at_once),
        cmocka_unit_test(test_lease_on_a_slow_network),
        cmocka_unit_test(test_lease_refuses_nonsense),
        cmocka_unit_test(test_heartbeat_goes_on),
        cmocka_unit_test(test_heartbeat_on_a_fast_clock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
