/* The file of a report: its parts are the ones whose hashes its policy names, nothing in the data
 * can end the element it is in, and modules become one script. */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>
#include <openssl/evp.h>

#include "base/arena.h"
#include "base/base64.h"
#include "base/error.h"
#include "base/json/json.h"
#include "base/limits.h"
#include "web/assets.h"
#include "web/json_writer.h"
#include "web/report/report.h"
#include "web/report/report_data.h"

static size_t count_of(td_str text, const char *part)
{
    size_t count = 0;
    size_t len = strlen(part);
    for (size_t i = 0; i + len <= text.len; i++) {
        count += memcmp(text.ptr + i, part, len) == 0;
    }
    return count;
}

/* Each inline style and script that runs is named by its hash, in the text as it stands. */
static void assert_hashed(td_str page, const char *begin, const char *end)
{
    const char *at = page.ptr;
    size_t count = 0;
    while ((at = strstr(at, begin)) != NULL) {
        at += strlen(begin);
        const char *stop = strstr(at, end);
        assert_non_null(stop);
        unsigned char digest[32];
        unsigned int len;
        assert_int_equal(EVP_Digest(at, (size_t)(stop - at), digest, &len, EVP_sha256(), NULL), 1);
        td_auto_buf word = td_buf_capped(100);
        (void)td_buf_append(&word, TD_STR("'sha256-"));
        td_base64_write((td_str){(const char *)digest, len}, TD_BASE64_STANDARD, &word);
        assert_int_equal(count_of(page, word.ptr), 1);
        at = stop;
        count++;
    }
    assert_true(count > 0);
}

static void test_report_names_its_parts_by_hash(void **state)
{
    (void)state;
    td_auto_buf page = td_buf_capped(TD_REPORT_BYTES_MAX);
    assert_int_equal(td_report_write(TD_STR("a <b> & \"c\""), TD_STR("{}"), &page, NULL), TD_OK);
    td_str text = td_buf_str(&page);
    assert_hashed(text, "<style>", "</style>");
    assert_hashed(text, "<script>", "</script>");
    assert_int_equal(count_of(text, "<title>a &lt;b&gt; &amp; &quot;c&quot;</title>"), 1);
    assert_int_equal(count_of(text, "default-src 'none'"), 1);
    assert_int_equal(count_of(text, "<script>"), td_web_charts() ? 2 : 1);
    assert_int_equal(count_of(text, "<script src"), 0);
    assert_int_equal(count_of(text, "rel=\"stylesheet\""), 0);
    assert_int_equal(count_of(text, "sourceMappingURL"), 0);
    td_auto_buf again = td_buf_capped(TD_REPORT_BYTES_MAX);
    assert_int_equal(td_report_write(TD_STR("a <b> & \"c\""), TD_STR("{}"), &again, NULL), TD_OK);
    assert_true(td_str_equal(text, td_buf_str(&again)));
}

/* Names that try to be HTML stay inside the JSON. */
static void test_report_data_cannot_end_its_element(void **state)
{
    (void)state;
    static const char *const names[] = {
        "</script><script>alert(1)</script>", "<!--<script>",
        "]]><img src=x onerror=alert(1)>",    "\"};alert(1);//",
        "a\342\200\250b\\u003c/script", /* a line separator */
    };
    for (size_t i = 0; i < TD_COUNT(names); i++) {
        td_auto_buf data = td_buf_capped(TD_REPORT_BYTES_MAX);
        td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
        struct td_json_writer writer = {.out = &data};
        td_str name = td_str_from(names[i]);
        const struct td_report_head head = {.title = name, .command = name, .version = name};
        const struct report_event event = {.anchor = name,
                                           .kind = "event",
                                           .reason = name,
                                           .object = name,
                                           .text = name,
                                           .why = name};
        report_begin(&writer, &head);
        td_writer_open(&writer, "texts", '[');
        report_text(&writer, name, name);
        report_event(&writer, &event);
        td_writer_close(&writer, ']');
        report_end(&writer);
        assert_int_equal(count_of(td_buf_str(&data), "<"), 0);
        assert_int_equal(count_of(td_buf_str(&data), ">"), 0);
        struct td_json *tree;
        assert_int_equal(td_json_parse(&arena, td_buf_str(&data), NULL, &tree, NULL), TD_OK);
        assert_true(td_str_equal(td_json_text(tree, "title"), name));
    }
}

static double point_at(const void *points, size_t index)
{
    return ((const double *)points)[index];
}

/* Lines point by point, steps where they change, memory in KiB. */
static void test_report_writes_curves(void **state)
{
    (void)state;
    static const double points[] = {1024, 1024, NAN, 2048, 2048, 1024};
    static const struct report_style line = {"use", "line", 0, NULL, false};
    static const struct report_style step = {"request", "step", 1, "[4,3]", true};
    td_auto_buf data = td_buf_capped(TD_REPORT_BYTES_MAX);
    struct td_json_writer writer = {.out = &data};
    report_series(&writer, &line, "memory", point_at, points, 6);
    report_series(&writer, &step, "memory", point_at, points, 6);
    report_series(&writer, &step, "memory", point_at, points + 2, 1); /* nothing to show */
    assert_string_equal(
        data.ptr,
        "{\"name\":\"use\",\"kind\":\"line\",\"color\":0,\"curve\":{\"v\":[1,1,null,2,2,1]"
        "}},{\"name\":\"request\",\"kind\":\"step\",\"color\":1,\"dash\":[4,3],\"clip\":"
        "true,\"curve\":{\"i\":[0,2,3,5],\"s\":[1,null,2,1],\"n\":6}}");
}

/* All modules of the page that a report uses, in the one form that is known. */
static void test_report_bundles_modules(void **state)
{
    (void)state;
    static const char *const paths[] = {"/plot.js", "/ui.js", "/report.js"};
    static const char *const missing[] = {"/nothing.js"};
    td_auto_buf out = td_buf_capped(TD_REPORT_BYTES_MAX);
    struct td_error err = TD_ERROR_INIT;
    assert_int_equal(td_report_bundle(paths, TD_COUNT(paths), &out, &err), TD_OK);
    td_str text = td_buf_str(&out);
    assert_int_equal(count_of(text, "\nimport "), 0);
    assert_int_equal(count_of(text, "\nexport "), 0);
    assert_int_equal(count_of(text, "const from_plot = (() => {"), 1);
    assert_true(count_of(text, "} = from_plot;") >= 2);
    assert_int_equal(td_report_bundle(missing, 1, &out, &err), TD_NOT_FOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_report_names_its_parts_by_hash),
        cmocka_unit_test(test_report_data_cannot_end_its_element),
        cmocka_unit_test(test_report_writes_curves),
        cmocka_unit_test(test_report_bundles_modules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
