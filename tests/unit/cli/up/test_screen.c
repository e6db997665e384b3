/* The live table as text: exact at several widths, with wide characters, with too many rows, and
 * never an order to the terminal that comes from outside. */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

#include <string.h>

#include "base/os/screen_text.h"
#include "cli/up/screen.h"
#include "cli/up/screen_number.h"

#define BYTES_MAX ((size_t)1 << 20)
#define MEBI 1048576.0
#define GIBI (1024 * MEBI)

static struct td_world_row row_of(const char *name, size_t ready, int64_t replicas)
{
    return (struct td_world_row){
        .load = {.ns = TD_STR("shop"),
                 .kind = TD_STR("Deployment"),
                 .name = td_str_from(name),
                 .pod_count = ready,
                 .ready_count = ready,
                 .limits = {.cpu_request_milli = 500 * (int64_t)ready,
                            .memory_request_bytes = (int64_t)(1024 * MEBI) * (int64_t)ready},
                 .use = {.cpu_milli = 430.0 * (double)ready,
                         .memory_bytes = 700 * MEBI * (double)ready}},
        .replicas = replicas,
        .latency_seconds = -1,
        .decided_at = -1,
    };
}

/* A shop, as it could be in the middle of the morning. */
static struct td_world_view shop(struct td_world_row rows[4])
{
    rows[0] = row_of("web", 4, 6);
    rows[0].by = TD_STR("hvpa/web");
    rows[0].throttled_share = 0.12;
    rows[0].latency_seconds = 0.0451;
    rows[0].waiting = 340;
    rows[0].decided_at = 33 * TD_HOUR + 41 * TD_MINUTE + 59 * TD_SECOND;
    rows[0].decision = TD_STR("both: load x2, shared 1:1, 4x500m \u2192 6x667m");
    rows[1] = row_of("db", 1, 1);
    rows[1].load.role = TD_STR("leader");
    rows[1].by = TD_STR("vpa/db-leader");
    rows[1].load.limits.cpu_request_milli = 2100;
    rows[1].load.use.cpu_milli = 1800;
    rows[1].load.kill_count = 3;
    rows[2] = row_of("batch", 2, 2);
    rows[2].is_pod_level = true;
    rows[2].throttled_share = 0.001;
    rows[2].decided_at = 0;
    rows[2].decision = TD_STR("created");
    rows[3] = row_of("report", 0, 0);
    return (struct td_world_view){
        .since = 24 * TD_HOUR + 9 * TD_HOUR + 42 * TD_MINUTE,
        .node_count = 3,
        .ready_node_count = 3,
        .pod_count = 23,
        .requested = {.cpu_request_milli = 11200, .memory_request_bytes = (int64_t)(21.4 * GIBI)},
        .used = {.cpu_milli = 7900, .memory_bytes = 17 * GIBI},
        .kill_count = 1,
        .eviction_count = 2,
        .resize_count = 14,
        .rows = rows,
        .row_count = 4,
    };
}

static void check_table(const struct td_screen *screen, const struct td_world_view *view,
                        const char *expected)
{
    td_auto_buf buf;
    td_buf_init(&buf, BYTES_MAX);
    td_screen_table(screen, view, &buf);
    assert_false(buf.is_full);
    assert_string_equal(td_buf_str(&buf).ptr, expected);
}

/* The whole table, and what narrower terminals leave of it. */
static void test_columns_are_dropped_from_the_right(void **state)
{
    (void)state;
    struct td_world_row rows[4];
    struct td_world_view view = shop(rows);
    struct td_screen screen = {.width = 200, .height = 40, .has_utf8 = true};
    check_table(
        &screen, &view,
        " day 2 09:42   pods 23   cpu req 11.2 used 7.9 (slack 29%)   memory req 21.4Gi used "
        "17.0Gi (21%)   oom 1   evictions 2   resizes 14\n\n"
        " WORKLOAD           BY             REPLICAS  CPU req/used   MEMORY req/used  THROTTLED  "
        "OOM  LATENCY     LAST DECISION\n"
        " web                hvpa/web       4 \u2192 6     500m/430m      1.0Gi/700Mi      12%     "
        "   0    45ms +340   09:41 both: load x2, shared 1:1, 4x500m \u2192 6x667m\n"
        " db (leader)        vpa/db-leader  1         2.1/1.8        1.0Gi/700Mi      0%         3 "
        "   -           -\n"
        " batch (pod-level)  -              2         500m/430m pod  1.0Gi/700Mi pod  <1%        0 "
        "   -           day 1 00:00 created\n"
        " report             -              0         -              -                0%         0 "
        "   -           -\n");
    screen.width = 120;
    check_table(&screen, &view,
                " day 2 09:42   pods 23   cpu req 11.2 used 7.9 (slack 29%)   memory req 21.4Gi "
                "used 17.0Gi (21%)   oom 1   evictions 2\n\n"
                " WORKLOAD           BY             REPLICAS  CPU req/used   MEMORY req/used  "
                "THROTTLED  OOM  LATENCY     LAST DECISION\n"
                " web                hvpa/web       4 \u2192 6     500m/430m      1.0Gi/700Mi      "
                "12%        0    45ms +340   09:41 both\u2026\n"
                " db (leader)        vpa/db-leader  1         2.1/1.8        1.0Gi/700Mi      0%   "
                "      3    -           -\n"
                " batch (pod-level)  -              2         500m/430m pod  1.0Gi/700Mi pod  <1%  "
                "      0    -           day 1 00:00\u2026\n"
                " report             -              0         -              -                0%   "
                "      0    -           -\n");
    screen.width = 80;
    check_table(&screen, &view,
                " day 2 09:42   pods 23   cpu req 11.2 used 7.9 (slack 29%)\n\n"
                " WORKLOAD           BY             REPLICAS  CPU req/used   MEMORY req/used\n"
                " web                hvpa/web       4 \u2192 6     500m/430m      1.0Gi/700Mi\n"
                " db (leader)        vpa/db-leader  1         2.1/1.8        1.0Gi/700Mi\n"
                " batch (pod-level)  -              2         500m/430m pod  1.0Gi/700Mi pod\n"
                " report             -              0         -              -\n");
    screen.width = 40;
    check_table(&screen, &view,
                " day 2 09:42   pods 23\n\n"
                " WORKLOAD           BY\n"
                " web                hvpa/web\n"
                " db (leader)        vpa/db-leader\n"
                " batch (pod-level)  -\n"
                " report             -\n");
}

/* However small a terminal is, no line is wider and there are no more lines. */
static void test_a_table_fits_any_terminal(void **state)
{
    (void)state;
    struct td_world_row rows[4];
    struct td_world_view view = shop(rows);
    td_auto_buf buf;
    td_buf_init(&buf, BYTES_MAX);
    for (size_t i = 0; i < 2 * 160 * 12; i++) {
        struct td_screen screen = {
            .width = i / 24, .height = i / 2 % 12, .has_utf8 = true, .shows_help = i % 2 == 1};
        td_buf_reset(&buf);
        td_screen_table(&screen, &view, &buf);
        td_str text = td_buf_str(&buf);
        size_t lines = 0;
        for (size_t at = 0; at < text.len; lines++) {
            size_t end = td_str_find(text, '\n', at);
            assert_true(td_screen_width(td_str_slice(text, at, end)) <= screen.width);
            assert_true(end == at || text.ptr[end - 1] != ' ');
            at = end + 1;
        }
        assert_true(lines <= screen.height);
    }
}

/* Rows that do not fit are counted. */
static void test_rows_below_the_edge_are_counted(void **state)
{
    (void)state;
    struct td_world_row rows[4];
    struct td_world_view view = shop(rows);
    struct td_screen screen = {.width = 24, .height = 6};
    check_table(&screen, &view,
                " day 2 09:42   pods 23\n"
                "\n"
                " WORKLOAD\n"
                " web\n"
                " db (leader)\n"
                " and 2 more\n");
    screen.height = 7;
    check_table(&screen, &view,
                " day 2 09:42   pods 23\n"
                "\n"
                " WORKLOAD\n"
                " web\n"
                " db (leader)\n"
                " batch (pod-level)\n"
                " report\n");
    screen.height = 1;
    check_table(&screen, &view, " day 2 09:42   pods 23\n");
    screen.height = 0;
    check_table(&screen, &view, "");
}

/* A cluster with nothing in it says what to do; one with a problem says so. */
static void test_empty_and_failing_clusters_say_so(void **state)
{
    (void)state;
    struct td_world_view view = {.node_count = 3, .ready_node_count = 3};
    struct td_screen screen = {.width = 100, .height = 24};
    check_table(&screen, &view,
                " day 1 00:00   pods 0   cpu req 0.0 used 0.0   memory req 0 used 0   oom 0   "
                "evictions 0   resizes 0\n"
                "\n"
                " no workloads yet: kubectl apply -f FILE\n");
    view.requested.cpu_request_milli = 2000;
    view.used.cpu_milli = 2500;
    check_table(&screen, &view,
                " day 1 00:00   pods 0   cpu req 2.0 used 2.5 (over by 25%)   memory req 0 "
                "used 0   oom 0\n"
                "\n"
                " no workloads yet: kubectl apply -f FILE\n");
    view.ready_node_count = 2;
    view.pending_count = 5;
    screen.width = 60;
    check_table(&screen, &view,
                " day 1 00:00   nodes 2 of 3   pods 0 (5 pending)\n"
                "\n"
                " no workloads yet: kubectl apply -f FILE\n");
}

/* Without UTF-8 an arrow is made of ASCII, and so is the rest. */
static void test_ascii_terminals_get_ascii(void **state)
{
    (void)state;
    struct td_world_row rows[4];
    struct td_world_view view = shop(rows);
    struct td_screen screen = {.width = 200, .height = 40};
    view.row_count = 1;
    check_table(&screen, &view,
                " day 2 09:42   pods 23   cpu req 11.2 used 7.9 (slack 29%)   memory req 21.4Gi "
                "used 17.0Gi (21%)   oom 1   evictions 2   resizes 14\n\n"
                " WORKLOAD      BY        REPLICAS  CPU req/used  MEMORY req/used  THROTTLED  OOM  "
                "LATENCY     LAST DECISION\n"
                " web           hvpa/web  4 -> 6    500m/430m     1.0Gi/700Mi      12%        0    "
                "45ms +340   09:41 both: load x2, shared 1:1, 4x500m -> 6x667m\n");
}

/* Names of several namespaces are told with theirs, and characters of two columns count twice. */
static void test_wide_characters_keep_columns_straight(void **state)
{
    (void)state;
    struct td_world_row rows[4];
    struct td_world_view view = shop(rows);
    struct td_screen screen = {.width = 62, .height = 40, .has_utf8 = true};
    rows[0].load.ns = TD_STR("\u5e97");
    rows[0].load.name = TD_STR("\u7db2\u7ad9");
    rows[1].load.name = TD_STR("cafe\u0301");
    view.row_count = 2;
    check_table(&screen, &view,
                " day 2 09:42   pods 23   cpu req 11.2 used 7.9 (slack 29%)\n\n"
                " WORKLOAD            BY             REPLICAS  CPU req/used\n"
                " \u5e97/\u7db2\u7ad9             hvpa/web       4 \u2192 6     500m/430m\n"
                " shop/cafe\u0301 (leader)  vpa/db-leader  1         2.1/1.8\n");
    screen.width = 4;
    check_table(&screen, &view,
                " day\n"
                "\n"
                " WOR\n"
                " \u5e97/\n"
                " sho\n");
}

/* Any client that may write to the API writes names and messages: none of it moves the cursor,
 * breaks the line or hides what follows. */
static void test_texts_are_no_orders_to_the_terminal(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *utf8;
        const char *ascii;
    } cases[] = {
        {"", "", ""},
        {"plain text, 100%", "plain text, 100%", "plain text, 100%"},
        {"two\nlines\tand\rmore", "two lines and more", "two lines and more"},
        {"\033[2J\a\b\x7f", "?[2J???", "?[2J???"},
        {"a\xc2\x9b"
         "b",
         "a?b", "a?b"},                                /* the eight-bit form of ESC [ */
        {"a\u202eb\u200bc\ufeff", "a?b?c?", "a?b?c?"}, /* turned around, unseen */
        {"4 \u2192 6", "4 \u2192 6", "4 -> 6"},
        {"\u00fc\u7db2\U0001f600", "\u00fc\u7db2\U0001f600", "???"},
        {"bad \xff\xc3", "bad ??", "bad ??"},
        {"\xed\xa0\x80", "???", "???"}, /* half a pair */
    };
    td_auto_buf buf;
    td_buf_init(&buf, 64);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        td_buf_reset(&buf);
        td_screen_clean(&buf, td_str_from(cases[i].text), true);
        assert_string_equal(td_buf_str(&buf).ptr, cases[i].utf8);
        td_buf_reset(&buf);
        td_screen_clean(&buf, td_str_from(cases[i].text), false);
        assert_string_equal(td_buf_str(&buf).ptr, cases[i].ascii);
    }
    char long_text[200];
    (void)memset(long_text, 'x', sizeof(long_text));
    td_buf_reset(&buf);
    td_screen_clean(&buf, (td_str){.ptr = long_text, .len = sizeof(long_text)}, true);
    assert_int_equal(buf.len, 64);
}

/* Colour means state: what is plain stays plain. */
static void test_colour_marks_states_only(void **state)
{
    (void)state;
    struct td_world_row rows[4];
    struct td_world_view view = shop(rows);
    struct td_screen screen = {.width = 200, .height = 40, .has_colour = true};
    rows[0].by = TD_STR("hpa");
    rows[0].throttled_share = 0.3;
    rows[0].load.kill_count = 1;
    rows[0].waiting = 12000;
    rows[0].decision = TD_STR_EMPTY;
    view.row_count = 1;
    td_auto_buf buf;
    td_buf_init(&buf, BYTES_MAX);
    td_screen_table(&screen, &view, &buf);
    const char *row = strstr(td_buf_str(&buf).ptr, " web");
    assert_non_null(row);
    assert_string_equal(row, " web           hpa       \033[33m4 -> 6\033[0m    "
                             "500m/430m     1.0Gi/700Mi      \033[31m30%\033[0m        "
                             "\033[31m1\033[0m    \033[33m45ms +12k\033[0m   -\n");
}

/* `?` explains every column and names the keys. */
static void test_help_explains_the_columns(void **state)
{
    (void)state;
    struct td_world_row rows[4];
    struct td_world_view view = shop(rows);
    struct td_screen screen = {.width = 120, .height = 40, .shows_help = true};
    check_table(&screen, &view,
                " day 2 09:42   pods 23   cpu req 11.2 used 7.9 (slack 29%)   memory req 21.4Gi "
                "used 17.0Gi (21%)   oom 1   evictions 2\n\n"
                " WORKLOAD         name, with the role of its pods in brackets; pod-level: its "
                "pods have pod-level resources\n"
                " BY               the autoscaler that targets it\n"
                " REPLICAS         ready pods; with an arrow: ready and desired\n"
                " CPU req/used     average per pod, requested and used; pod: a pod-level request\n"
                " MEMORY req/used  the same for memory\n"
                " THROTTLED        share of the CPU time demanded in the last minute that limits "
                "and full nodes withheld\n"
                " OOM              containers OOM-killed\n"
                " LATENCY          current mean latency of requests, with time in the queue; +N: "
                "requests in the queue\n"
                " LAST DECISION    when an autoscaler last changed it, what it did and why\n"
                " keys: ? returns to the table, q or Ctrl-C quits\n");
}

struct number_case {
    void (*write)(struct td_buf *buf, double value);
    double value;
    const char *text;
};

/* Units are Kubernetes'; rounding never shows 1000m or 1024Mi. */
static void test_numbers_have_the_units_of_kubectl(void **state)
{
    (void)state;
    static const struct number_case cases[] = {
        {td_screen_cpu, 0, "0"},
        {td_screen_cpu, 0.4, "0"},
        {td_screen_cpu, 1, "1m"},
        {td_screen_cpu, 430, "430m"},
        {td_screen_cpu, 999.4, "999m"},
        {td_screen_cpu, 999.6, "1.0"},
        {td_screen_cpu, 2100, "2.1"},
        {td_screen_cpu, 99949, "99.9"},
        {td_screen_cpu, 99950, "100"},
        {td_screen_memory, 0, "0"},
        {td_screen_memory, 1024, "1Ki"},
        {td_screen_memory, 180 * MEBI, "180Mi"},
        {td_screen_memory, 1023.4 * MEBI, "1023Mi"},
        {td_screen_memory, 1023.6 * MEBI, "1.0Gi"},
        {td_screen_memory, 21.44 * GIBI, "21.4Gi"},
        {td_screen_memory, 300 * GIBI, "300Gi"},
        {td_screen_memory, 1434 * GIBI, "1.4Ti"},
        {td_screen_memory, 1e30, "888178419700125Pi"},
        {td_screen_share, 0, "0%"},
        {td_screen_share, 0.0001, "<1%"},
        {td_screen_share, 0.0099, "<1%"},
        {td_screen_share, 0.01, "1%"},
        {td_screen_share, 1, "100%"},
        {td_screen_span, 0, "<1ms"},
        {td_screen_span, 0.045, "45ms"},
        {td_screen_span, 0.9996, "1.0s"},
        {td_screen_span, 2.14, "2.1s"},
        {td_screen_span, 9.96, "10s"},
        {td_screen_span, 119.6, "2m"},
        {td_screen_span, 7200, "2h"},
    };
    td_auto_buf buf;
    td_buf_init(&buf, 64);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        td_buf_reset(&buf);
        cases[i].write(&buf, cases[i].value);
        assert_string_equal(td_buf_str(&buf).ptr, cases[i].text);
    }
}

/* One line for each event, whatever its message holds. */
static void test_an_event_is_one_line(void **state)
{
    (void)state;
    struct td_world_event event = {
        .at = 33 * TD_HOUR + 42 * TD_MINUTE + 15 * TD_SECOND,
        .type = TD_STR("Warning"),
        .reason = TD_STR("OOMKilled"),
        .kind = TD_STR("Pod"),
        .ns = TD_STR("shop"),
        .name = TD_STR("cache-0"),
        .message = TD_STR("container \"cache\"\nwas killed\033[2J"),
    };
    td_auto_buf buf;
    td_buf_init(&buf, BYTES_MAX);
    td_screen_event(&event, false, &buf);
    assert_string_equal(td_buf_str(&buf).ptr, "day 2 09:42:15  Pod cache-0  OOMKilled: container "
                                              "\"cache\" was killed?[2J\n");
    td_buf_reset(&buf);
    td_screen_event(&event, true, &buf);
    assert_string_equal(td_buf_str(&buf).ptr,
                        "day 2 09:42:15  Pod cache-0  \033[33mOOMKilled\033[0m: container "
                        "\"cache\" was killed?[2J\n");
    event = (struct td_world_event){
        .type = TD_STR("Scenario"), .reason = TD_STR("webhook-down"), .message = TD_STR("for 10m")};
    td_buf_reset(&buf);
    td_screen_event(&event, true, &buf);
    assert_string_equal(td_buf_str(&buf).ptr, "day 1 00:00:00  Scenario  webhook-down: for 10m\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_columns_are_dropped_from_the_right),
        cmocka_unit_test(test_a_table_fits_any_terminal),
        cmocka_unit_test(test_rows_below_the_edge_are_counted),
        cmocka_unit_test(test_empty_and_failing_clusters_say_so),
        cmocka_unit_test(test_ascii_terminals_get_ascii),
        cmocka_unit_test(test_wide_characters_keep_columns_straight),
        cmocka_unit_test(test_texts_are_no_orders_to_the_terminal),
        cmocka_unit_test(test_colour_marks_states_only),
        cmocka_unit_test(test_help_explains_the_columns),
        cmocka_unit_test(test_numbers_have_the_units_of_kubectl),
        cmocka_unit_test(test_an_event_is_one_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
