/*
 * An inline script cannot import, so modules are laid one behind the other. Our modules keep to one
 * form of import and two of export, each on a line of its own:
 *
 *     import {a, b} from "/plot.js";     ->  const {a, b} = from_plot;
 *     export {a, b};                     ->  nothing, its names are handed on
 *     export function a(...) {           ->  function a(...) {
 *
 * and a module becomes `const from_plot = (() => { "use strict"; ...; return {a, b}; })();`.
 */
#include "base/arena.h"
#include "base/error.h"
#include "base/limits.h"
#include "web/assets.h"
#include "web/report/report.h"

#define BUNDLE_NAMES_BYTES_MAX ((size_t)16 << 10)

/* "/plot.js" as "from_plot". */
static void bundle_write_name(td_str path, struct td_buf *out)
{
    size_t end = td_str_find(path, '.', 0);
    (void)td_buf_append_format(out, "from_%.*s", (int)end - 1, path.ptr + 1);
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static void names_add(td_str name, struct td_buf *names)
{
    (void)td_buf_append(names, names->len > 0 ? TD_STR(", ") : TD_STR_EMPTY);
    (void)td_buf_append(names, name);
}

/* import {a, b} from "/plot.js"; */
static bool line_import(td_str line, struct td_buf *out)
{
    size_t open = td_str_find(line, '{', 0);
    size_t close = td_str_find(line, '}', 0);
    size_t quote = td_str_find(line, '"', 0);
    size_t end = td_str_find(line, '"', quote + 1);
    if (open > close || close > quote || end >= line.len) {
        return false;
    }
    (void)td_buf_append_format(out, "const %.*s = ", (int)(close - open + 1), line.ptr + open);
    bundle_write_name(td_str_slice(line, quote + 1, end), out);
    (void)td_buf_append(out, TD_STR(";\n"));
    return true;
}

/* export {a, b}; export function a(...) {; export async function; export const; export class */
static bool line_export(td_str line, struct td_buf *names, struct td_buf *out)
{
    static const td_str forms[] = {TD_STR_INIT("function "), TD_STR_INIT("async function "),
                                   TD_STR_INIT("const "), TD_STR_INIT("class ")};
    td_str rest = td_str_slice(line, sizeof("export ") - 1, line.len);
    if (td_str_starts_with(rest, TD_STR("{"))) {
        size_t close = td_str_find(rest, '}', 0);
        names_add(td_str_slice(rest, 1, close), names);
        return close < rest.len;
    }
    for (size_t i = 0; i < TD_COUNT(forms); i++) {
        if (td_str_starts_with(rest, forms[i])) {
            size_t start = forms[i].len;
            size_t end = start;
            while (end < rest.len && is_word(rest.ptr[end])) {
                end++;
            }
            names_add(td_str_slice(rest, start, end), names);
            (void)td_buf_append(out, rest);
            (void)td_buf_append_char(out, '\n');
            return end > start;
        }
    }
    return false;
}

static int bundle_module(const char *path, td_str text, struct td_buf *out, struct td_error *err)
{
    td_auto_buf names = td_buf_capped(BUNDLE_NAMES_BYTES_MAX);
    (void)td_buf_append(out, TD_STR("const "));
    bundle_write_name(td_str_from(path), out);
    (void)td_buf_append(out, TD_STR(" = (() => {\n\"use strict\";\n"));
    for (size_t at = 0, number = 1; at < text.len; number++) {
        size_t end = td_str_find(text, '\n', at);
        td_str line = td_str_slice(text, at, end);
        bool is_import = td_str_starts_with(line, TD_STR("import "));
        bool is_export = td_str_starts_with(line, TD_STR("export "));
        at = end + 1;
        if (!is_import && !is_export) {
            (void)td_buf_append(out, line);
            (void)td_buf_append_char(out, '\n');
        } else if (!(is_import ? line_import(line, out) : line_export(line, &names, out))) {
            return td_error_set(err, TD_INVALID, "%s:%zu: '%.*s': no form that a report knows",
                                path, number, TD_STR_ARG(line));
        }
    }
    (void)td_buf_append_format(out, "return {%.*s};\n})();\n", (int)names.len,
                               names.ptr ? names.ptr : "");
    return td_buf_check(&names, "the names of a module", err);
}

int td_report_bundle(const char *const *paths, size_t count, struct td_buf *out,
                     struct td_error *err)
{
    int code = TD_OK;
    for (size_t i = 0; code == TD_OK && i < count; i++) {
        const struct td_web_asset *asset = td_web_asset_find(td_str_from(paths[i]));
        code = asset ? bundle_module(paths[i], td_web_asset_text(asset), out, err)
                     : td_error_set(err, TD_NOT_FOUND, "no file %s in the program", paths[i]);
    }
    return code;
}
