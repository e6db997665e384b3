/*
 * Request paths taken apart: group, version, namespace, resource, name and subresource, or one of
 * the fixed documents.
 */
#include "local/api/api_private.h"

#include "base/error.h"
#include "base/limits.h"

static int path_hex(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* False when an escape is broken, or the result is no text that an object could be named by. */
static bool path_decode(struct td_arena *arena, td_str text, bool has_plus, td_str *ret)
{
    char *out = td_arena_alloc(arena, text.len + 1);
    size_t len = 0;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (c == '%') {
            int high = i + 2 < text.len ? path_hex(text.ptr[i + 1]) : -1;
            int low = high >= 0 ? path_hex(text.ptr[i + 2]) : -1;
            if (low < 0) {
                return false;
            }
            c = (char)(high * 16 + low);
            i += 2;
        } else if (c == '+' && has_plus) {
            c = ' ';
        }
        out[len++] = c;
    }
    out[len] = '\0';
    td_str decoded = {.ptr = out, .len = len};
    if (!td_str_is_utf8(decoded) || memchr(out, '\0', len)) {
        return false;
    }
    *ret = decoded;
    return true;
}

bool td_query_decode(struct td_arena *arena, td_str text, td_str *ret)
{
    return path_decode(arena, text, true, ret);
}

int td_target_parse(struct td_arena *arena, td_str target, struct td_target *ret,
                    struct td_error *err)
{
    size_t question = td_str_find(target, '?', 0);
    struct td_target parsed = {.query = td_str_slice(target, question + 1, target.len)};
    td_str raw = td_str_slice(target, 0, question);
    if (raw.len == 0 || raw.ptr[0] != '/' || !path_decode(arena, raw, false, &parsed.path)) {
        return td_error_set(err, TD_INVALID, "invalid URL path");
    }
    parsed.segments = td_arena_array(arena, td_str, TD_API_SEGMENTS_MAX);
    td_str path = parsed.path;
    if (path.len > 1 && path.ptr[path.len - 1] == '/') {
        path.len--; /* of a collection: "/api/v1/pods/" */
    }
    for (size_t from = 1; from < path.len || (from == path.len && from > 1);) {
        if (parsed.segment_count == TD_API_SEGMENTS_MAX) {
            return td_error_set(err, TD_LIMIT, "the URL path has too many parts");
        }
        size_t end = td_str_find(path, '/', from);
        parsed.segments[parsed.segment_count++] = td_str_slice(path, from, end);
        from = end + 1;
    }
    *ret = parsed;
    return TD_OK;
}

/* Parts of a namespace itself; any other word behind its name is a resource in it. */
static bool path_is_namespace_part(td_str word)
{
    return td_str_equal(word, TD_STR("status")) || td_str_equal(word, TD_STR("finalize"));
}

/* resource[/name[/subresource]], where the subresource "proxy" takes the rest of the path. */
static bool path_parse_object(const td_str *segments, size_t count, struct td_call_path *ret)
{
    if (count == 0) {
        return false;
    }
    ret->plural = segments[0];
    ret->name = count > 1 ? segments[1] : TD_STR_EMPTY;
    ret->subresource = count > 2 ? segments[2] : TD_STR_EMPTY;
    return count <= 3 || td_str_equal(ret->subresource, TD_STR("proxy"));
}

bool td_path_parse(const struct td_target *target, struct td_call_path *ret, bool *ret_is_watch)
{
    const td_str *segments = target->segments;
    size_t count = target->segment_count;
    for (size_t i = 0; i < count; i++) {
        if (segments[i].len == 0) {
            return false;
        }
    }
    struct td_call_path path = {.group = TD_STR_EMPTY};
    if (count >= 3 && td_str_equal(segments[0], TD_STR("api"))) {
        path.version = segments[1];
        segments += 2;
        count -= 2;
    } else if (count >= 4 && td_str_equal(segments[0], TD_STR("apis"))) {
        path.group = segments[1];
        path.version = segments[2];
        segments += 3;
        count -= 3;
    } else {
        return false;
    }
    bool is_watch = count > 1 && td_str_equal(segments[0], TD_STR("watch"));
    if (is_watch) {
        segments++;
        count--;
    }
    path.ns = TD_STR_EMPTY;
    if (count > 2 && td_str_equal(segments[0], TD_STR("namespaces")) &&
        !path_is_namespace_part(segments[2])) {
        path.ns = segments[1];
        segments += 2;
        count -= 2;
    }
    if (!path_parse_object(segments, count, &path)) {
        return false;
    }
    *ret = path;
    *ret_is_watch = is_watch;
    return true;
}
