#include "base/base64.h"
#include "base/error.h"
#include "base/limits.h"
#include "local/api/api_private.h"

#define TOKEN_FORMAT "meta.k8s.io/v1"
#define TOKEN_FORMAT_SHOWN_BYTES ((size_t)64) /* of another one, in a message */

td_str td_page_token_write(struct td_arena *arena, const struct td_page_token *token)
{
    td_auto_buf json = td_buf_capped(TD_PAGE_TOKEN_BYTES_MAX);
    td_str start =
        td_arena_format(arena, "%.*s/%.*s%c", TD_STR_ARG(token->ns), TD_STR_ARG(token->name), '\0');
    (void)td_buf_append(&json, TD_STR("{\"v\":\"" TOKEN_FORMAT "\",\"rv\":"));
    (void)td_buf_append_int64(&json, token->version);
    (void)td_buf_append(&json, TD_STR(",\"start\":"));
    td_json_write_string(start, true, &json);
    (void)td_buf_append_char(&json, '}'); /* names are capped, so that all of it fits */
    td_auto_buf text = td_buf_capped(2 * TD_PAGE_TOKEN_BYTES_MAX);
    td_base64_write(td_buf_str(&json), TD_BASE64_URL, &text);
    return td_arena_copy_str(arena, td_buf_str(&text));
}

static int token_error(struct td_error *err, const char *problem)
{
    return td_error_set(err, TD_INVALID, "invalid continue token: continue key is not valid: %s",
                        problem);
}

int td_page_token_read(struct td_arena *arena, td_str text, struct td_page_token *ret,
                       struct td_error *err)
{
    td_str json;
    struct td_json *tree;
    struct td_error cause = TD_ERROR_INIT;
    if (text.len > 2 * TD_PAGE_TOKEN_BYTES_MAX ||
        !td_base64_read(arena, text, TD_BASE64_URL, &json)) {
        return token_error(err, "illegal base64 data");
    }
    if (td_json_parse(arena, json, NULL, &tree, &cause) != TD_OK) {
        return token_error(err, cause.message);
    }
    td_str format = td_json_text(tree, "v");
    if (!td_str_equal(format, TD_STR(TOKEN_FORMAT))) {
        td_str problem =
            td_arena_format(arena, "server does not recognize this encoded version %.*s",
                            TD_STR_ARG(td_str_cut_utf8(format, TOKEN_FORMAT_SHOWN_BYTES)));
        return token_error(err, problem.ptr);
    }
    int64_t version = td_json_get_int64(tree, TD_STR("rv"), 0);
    if (version == 0 || version < -1) {
        return token_error(err,
                           "incorrect encoded start resourceVersion (version " TOKEN_FORMAT ")");
    }
    td_str start = td_json_text(tree, "start");
    if (start.len > 0 && start.ptr[start.len - 1] == '\0') {
        start.len--;
    }
    size_t slash = td_str_find(start, '/', 0);
    td_str name = td_str_slice(start, slash + 1, start.len);
    if (name.len == 0) {
        return token_error(err, "encoded start key empty (version " TOKEN_FORMAT ")");
    }
    if (memchr(start.ptr, '\0', start.len)) {
        return token_error(err, "encoded start key malformed (version " TOKEN_FORMAT ")");
    }
    *ret = (struct td_page_token){
        .version = version, .ns = td_str_slice(start, 0, slash), .name = name};
    return TD_OK;
}
