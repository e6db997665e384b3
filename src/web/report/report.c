/*
 * The file around the data. Its security policy allows the two or three inline elements by their
 * SHA-256 and nothing else: no request, no form, no other script. Data is JSON with <, > and & as
 * escapes, so that no text in it can end the element that it is in.
 */
#include "web/report/report.h"

#include <openssl/evp.h>

#include "base/assert.h"
#include "base/base64.h"
#include "base/error.h"
#include "base/limits.h"
#include "web/assets.h"

#define REPORT_PART_BYTES_MAX ((size_t)4 << 20) /* one style or script */
#define REPORT_HASH_BYTES 32

static const char *const report_modules[] = {"/plot.js", "/ui.js", "/report.js"};
static const char *const report_styles[] = {"/plot.css", "/tandem.css", "/report.css"};

struct report_parts {
    struct td_buf style;
    struct td_buf charts; /* dygraphs, or empty */
    struct td_buf script;
};

/* Texts between tags. */
static void report_escape(td_str text, struct td_buf *out)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        td_str word = c == '<'   ? TD_STR("&lt;")
                      : c == '>' ? TD_STR("&gt;")
                      : c == '&' ? TD_STR("&amp;")
                      : c == '"' ? TD_STR("&quot;")
                                 : td_str_slice(text, i, i + 1);
        (void)td_buf_append(out, word);
    }
}

/* 'sha256-...' */
static void report_hash(const struct td_buf *part, struct td_buf *out)
{
    unsigned char digest[REPORT_HASH_BYTES];
    unsigned int len = 0;
    td_str text = td_buf_str(part);
    int is_done = EVP_Digest(text.ptr, text.len, digest, &len, EVP_sha256(), NULL);
    td_assert(is_done == 1);
    td_assert(len == sizeof(digest));
    (void)td_buf_append(out, TD_STR(" 'sha256-"));
    td_base64_write((td_str){.ptr = (const char *)digest, .len = len}, TD_BASE64_STANDARD, out);
    (void)td_buf_append_char(out, '\'');
}

/* Without the line that tells a debugger of a file that is not there: a comment of either kind. */
static void report_add_script(td_str text, struct td_buf *out)
{
    for (size_t at = 0; at < text.len;) {
        size_t end = td_str_find(text, '\n', at);
        td_str line = td_str_slice(text, at, end);
        bool is_map = td_str_starts_with(line, TD_STR("//# sourceMappingURL")) ||
                      td_str_starts_with(line, TD_STR("/*# sourceMappingURL"));
        if (!is_map) {
            (void)td_buf_append(out, line);
            (void)td_buf_append_char(out, '\n');
        }
        at = end + 1;
    }
}

static int report_parts_make(struct report_parts *parts, struct td_error *err)
{
    const struct td_web_asset *charts = td_web_asset_find(TD_STR("/dygraph.min.js"));
    const struct td_web_asset *charts_style = td_web_asset_find(TD_STR("/dygraph.min.css"));
    if (charts) {
        report_add_script(td_web_asset_text(charts), &parts->charts);
    }
    if (charts_style) {
        report_add_script(td_web_asset_text(charts_style), &parts->style);
    }
    for (size_t i = 0; i < TD_COUNT(report_styles); i++) {
        const struct td_web_asset *style = td_web_asset_find(td_str_from(report_styles[i]));
        if (!style) {
            return td_error_set(err, TD_NOT_FOUND, "no file %s in the program", report_styles[i]);
        }
        (void)td_buf_append(&parts->style, td_web_asset_text(style));
    }
    int code = td_report_bundle(report_modules, TD_COUNT(report_modules), &parts->script, err);
    if (code == TD_OK) {
        code = td_buf_check(&parts->script, "the report's script", err);
    }
    return code == TD_OK ? td_buf_check(&parts->style, "the report's style", err) : code;
}

static void report_add_element(const char *begin, const struct td_buf *part, const char *end,
                               struct td_buf *out)
{
    (void)td_buf_append(out, td_str_from(begin));
    (void)td_buf_append(out, td_buf_str(part));
    (void)td_buf_append(out, td_str_from(end));
}

static void report_add_page(td_str title, td_str data, const struct report_parts *parts,
                            struct td_buf *out)
{
    const struct td_web_asset *licences = td_web_asset_find(TD_STR("/licences.txt"));
    (void)td_buf_append(out, TD_STR("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n"
                                    "<meta charset=\"utf-8\">\n"
                                    "<meta http-equiv=\"Content-Security-Policy\" content=\""
                                    "default-src 'none'; img-src data:; base-uri 'none'; "
                                    "form-action 'none'; style-src"));
    report_hash(&parts->style, out);
    (void)td_buf_append(out, TD_STR("; script-src"));
    if (parts->charts.len > 0) {
        report_hash(&parts->charts, out);
    }
    report_hash(&parts->script, out);
    (void)td_buf_append(out, TD_STR("\">\n<meta name=\"viewport\" content=\"width=device-width, "
                                    "initial-scale=1\">\n"
                                    "<meta name=\"color-scheme\" content=\"light dark\">\n"
                                    "<meta name=\"referrer\" content=\"no-referrer\">\n"
                                    "<link rel=\"icon\" href=\"data:,\">\n<title>"));
    report_escape(title, out);
    (void)td_buf_append(out, TD_STR("</title>\n"));
    report_add_element("<style>", &parts->style, "</style>\n</head>\n<body class=\"report\">\n",
                       out);
    (void)td_buf_append(out, TD_STR("<main id=\"report\"><noscript><p>This report is drawn by a "
                                    "script in this file.</p></noscript></main>\n"));
    if (parts->charts.len > 0 && licences) {
        (void)td_buf_append(out, TD_STR("<template id=\"licences\">"));
        report_escape(td_web_asset_text(licences), out);
        (void)td_buf_append(out, TD_STR("</template>\n"));
    }
    (void)td_buf_append(out, TD_STR("<script type=\"application/json\" id=\"data\">"));
    (void)td_buf_append(out, data);
    (void)td_buf_append(out, TD_STR("</script>\n"));
    if (parts->charts.len > 0) {
        report_add_element("<script>", &parts->charts, "</script>\n", out);
    }
    report_add_element("<script>", &parts->script, "</script>\n</body>\n</html>\n", out);
}

int td_report_write(td_str title, td_str data, struct td_buf *out, struct td_error *err)
{
    struct report_parts parts = {.style = td_buf_capped(REPORT_PART_BYTES_MAX),
                                 .charts = td_buf_capped(REPORT_PART_BYTES_MAX),
                                 .script = td_buf_capped(REPORT_PART_BYTES_MAX)};
    int code = report_parts_make(&parts, err);
    if (code == TD_OK) {
        report_add_page(title, data, &parts, out);
        code = td_buf_check(out, "the report", err);
    }
    td_buf_done(&parts.style);
    td_buf_done(&parts.charts);
    td_buf_done(&parts.script);
    return code;
}
