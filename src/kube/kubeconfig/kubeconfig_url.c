/*
 * A cluster's server as client-go reads it: a URL of http or https with an optional prefix of
 * paths, or host:port alone, which means http. Query and fragment are dropped. What Go would refuse
 * only when it connects (port 99999, another scheme) is refused here, and so is a user name in the
 * URL, which would end in logs.
 */
#include "kube/kubeconfig/kubeconfig_private.h"

#include <strings.h>

#include "base/error.h"
#include "kube/kubeconfig/proxy.h"

#define URL_HTTPS_PORT 443
#define URL_HTTP_PORT 80
#define URL_SHOWN_BYTES 200 /* of a text in a message */

static int url_fail(td_str text, const char *problem, struct td_error *err)
{
    return td_error_set(err, TD_INVALID, "'%.*s': %s",
                        TD_STR_ARG(td_str_cut_utf8(text, URL_SHOWN_BYTES)), problem);
}

static size_t url_find_any(td_str text, const char *bytes)
{
    size_t at = 0;
    while (at < text.len && !(text.ptr[at] && strchr(bytes, text.ptr[at]))) {
        at++;
    }
    return at;
}

static bool url_is_hex(char byte)
{
    return byte && strchr("0123456789abcdefABCDEF", byte);
}

/* Letters of a host name or address, without what separates the parts of a URL. */
static bool url_is_host(td_str host)
{
    for (size_t i = 0; i < host.len; i++) {
        unsigned char byte = (unsigned char)host.ptr[i];
        if (byte <= ' ' || byte >= 0x7f || strchr("\"<>\\^`{|}[]@", byte)) {
            return false;
        }
    }
    return host.len > 0;
}

/* The part of a path prefix as it is sent: what is no URL is escaped, slashes at the end go. */
static bool url_write_path(td_str path, struct td_buf *out)
{
    while (path.len > 0 && path.ptr[path.len - 1] == '/') {
        path.len--;
    }
    for (size_t i = 0; i < path.len; i++) {
        unsigned char byte = (unsigned char)path.ptr[i];
        if (byte == '%' &&
            !(i + 2 < path.len && url_is_hex(path.ptr[i + 1]) && url_is_hex(path.ptr[i + 2]))) {
            return false;
        }
        if (byte < ' ' || byte == 0x7f) {
            return false;
        }
        if (byte == ' ' || byte >= 0x80 || strchr("\"<>\\^`{|}", byte)) {
            (void)td_buf_append_format(out, "%%%02X", byte);
        } else {
            (void)td_buf_append_char(out, (char)byte);
        }
    }
    return !out->is_full;
}

/* "host", "host:port", "[v6]" or "[v6]:port". */
static bool url_split(td_str authority, td_str *ret_host, td_str *ret_port)
{
    size_t end = td_str_find(authority, ':', 0);
    td_str host = td_str_slice(authority, 0, end);
    if (authority.len > 0 && authority.ptr[0] == '[') {
        size_t bracket = td_str_find(authority, ']', 0);
        if (bracket == authority.len) {
            return false;
        }
        host = td_str_slice(authority, 1, bracket);
        end = bracket + 1;
    }
    td_str rest = td_str_slice(authority, end, authority.len);
    if (rest.len > 0 && rest.ptr[0] != ':') {
        return false;
    }
    *ret_host = host;
    *ret_port = td_str_slice(rest, 1, rest.len);
    return url_is_host(host);
}

static bool url_read_port(td_str text, bool is_tls, uint16_t *ret)
{
    int64_t number = is_tls ? URL_HTTPS_PORT : URL_HTTP_PORT;
    bool is_digits = text.len == 0 || (text.ptr[0] >= '0' && text.ptr[0] <= '9');
    if (!is_digits || (text.len > 0 && !td_str_to_int64(text, &number)) || number < 1 ||
        number > UINT16_MAX) {
        return false;
    }
    *ret = (uint16_t)number;
    return true;
}

static bool url_is_scheme(td_str text, td_str scheme)
{
    return text.len == scheme.len && strncasecmp(text.ptr, scheme.ptr, scheme.len) == 0;
}

/* Takes the scheme off `text`. */
static int url_take_scheme(td_str *text, bool *ret_is_tls, bool *ret_has_scheme,
                           struct td_error *err)
{
    size_t colon = td_str_find(*text, ':', 0);
    td_str scheme = td_str_slice(*text, 0, colon);
    bool has_scheme = colon < text->len &&
                      td_str_starts_with(td_str_slice(*text, colon, text->len), TD_STR("://"));
    bool is_tls = has_scheme && url_is_scheme(scheme, TD_STR("https"));
    if (has_scheme && !is_tls && !url_is_scheme(scheme, TD_STR("http"))) {
        return url_fail(scheme, "the scheme must be https or http", err);
    }
    *ret_is_tls = is_tls;
    *ret_has_scheme = has_scheme;
    *text = has_scheme ? td_str_slice(*text, colon + 3, text->len) : *text;
    return TD_OK;
}

int td_kubeconfig_set_server(struct td_arena *arena, td_str text, struct td_kube_config *config,
                             struct td_error *err)
{
    td_str rest = text;
    bool is_tls = false;
    bool has_scheme = false;
    int code = url_take_scheme(&rest, &is_tls, &has_scheme, err);
    if (code < 0) {
        return code;
    }
    size_t end = url_find_any(rest, "/?#");
    td_str authority = td_str_slice(rest, 0, end);
    td_str path = td_str_slice(rest, end, rest.len);
    path = td_str_slice(path, 0, url_find_any(path, "?#"));
    if (td_str_find(authority, '@', 0) < authority.len) {
        return td_error_set(err, TD_INVALID, "must not hold a user name or password");
    }
    td_str host;
    td_str port;
    uint16_t number = 0;
    bool is_split = url_split(authority, &host, &port) && (has_scheme || path.len <= 1);
    if (!is_split || !url_read_port(port, is_tls, &number)) {
        return url_fail(text, "must be a URL or host:port", err);
    }
    td_auto_buf prefix = td_buf_capped(3 * path.len + 1);
    if (!url_write_path(path, &prefix)) {
        return url_fail(text, "the path is not a valid part of a URL", err);
    }
    bool is_v6 = authority.ptr[0] == '[';
    config->is_tls = is_tls;
    config->host = td_arena_copy_str(arena, host);
    config->port = number;
    config->path_prefix = td_arena_copy_str(arena, td_buf_str(&prefix));
    config->server = td_arena_format(
        arena, "%s://%s%s%s%s%.*s%s", is_tls ? "https" : "http", is_v6 ? "[" : "", config->host.ptr,
        is_v6 ? "]" : "", port.len > 0 ? ":" : "", TD_STR_ARG(port), config->path_prefix.ptr);
    return TD_OK;
}

int td_kube_config_of_url(struct td_arena *arena, td_str url, td_env_fn env,
                          struct td_kube_config *ret, struct td_error *err)
{
    struct td_kube_config config = {
        .source = TD_STR("url"),
        .namespace = TD_STR("default"),
    };
    int code = td_kubeconfig_set_server(arena, url, &config, err);
    if (code != TD_OK) {
        return code;
    }
    const struct td_proxy_target target = {
        .is_tls = config.is_tls, .host = config.host, .port = config.port};
    code = td_proxy_choose(arena, env, NULL, &target, &config.proxy_url, err);
    if (code == TD_OK) {
        *ret = config;
    }
    return code;
}
