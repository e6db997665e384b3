/*
 * A rule of NO_PROXY is read as Go's httpproxy reads it: a range of addresses, else a host with or
 * without a port, where the host is an address or a domain. Addresses are compared as 16 bytes, so
 * that IPv4 has one form.
 */
#include "kube/kubeconfig/proxy.h"

#include <arpa/inet.h>
#include <strings.h>

#include "base/error.h"

#define PROXY_ADDRESS_BYTES 16
#define PROXY_TEXT_BYTES 64 /* longer than any address */

/* An address as 16 bytes; IPv4 in its IPv6 form, so that both compare. */
struct proxy_address {
    unsigned char bytes[PROXY_ADDRESS_BYTES];
    bool is_v4;
};

static bool proxy_parse_address(td_str text, struct proxy_address *ret)
{
    static const unsigned char v4_start[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    char copy[PROXY_TEXT_BYTES];
    if (text.len == 0 || text.len >= sizeof(copy)) {
        return false;
    }
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    struct proxy_address address;
    if (inet_pton(AF_INET, copy, address.bytes + sizeof(v4_start)) == 1) {
        memcpy(address.bytes, v4_start, sizeof(v4_start));
    } else if (inet_pton(AF_INET6, copy, address.bytes) != 1) {
        return false;
    }
    address.is_v4 = memcmp(address.bytes, v4_start, sizeof(v4_start)) == 0;
    *ret = address;
    return true;
}

static bool proxy_is_loopback(const struct proxy_address *address)
{
    static const unsigned char v6_loopback[PROXY_ADDRESS_BYTES] = {[15] = 1};
    return address->is_v4 ? address->bytes[12] == 127
                          : memcmp(address->bytes, v6_loopback, sizeof(v6_loopback)) == 0;
}

static bool proxy_same_bits(const unsigned char *a, const unsigned char *b, size_t bits)
{
    size_t whole = bits / 8;
    unsigned mask = 0xffu << (8 - bits % 8) & 0xffu;
    return memcmp(a, b, whole) == 0 && (bits % 8 == 0 || ((a[whole] ^ b[whole]) & mask) == 0);
}

/* "10.0.0.0/8"; *ret_is_range tells a range that does not match from a text that is none. */
static bool proxy_in_range(td_str text, const struct proxy_address *address, bool *ret_is_range)
{
    size_t slash = td_str_find(text, '/', 0);
    struct proxy_address base;
    int64_t bits = 0;
    *ret_is_range = slash < text.len && proxy_parse_address(td_str_slice(text, 0, slash), &base) &&
                    td_str_to_int64(td_str_slice(text, slash + 1, text.len), &bits) && bits >= 0 &&
                    bits <= (base.is_v4 ? 32 : 128);
    if (!*ret_is_range || !address || address->is_v4 != base.is_v4) {
        return false;
    }
    return proxy_same_bits(address->bytes, base.bytes, (size_t)bits + (base.is_v4 ? 96 : 0));
}

/* "host:port" and "[v6]:port" into its halves; false when there is no port to split off. */
static bool proxy_split_port(td_str text, td_str *ret_host, td_str *ret_port)
{
    size_t last = text.len;
    for (size_t at = td_str_find(text, ':', 0); at < text.len;
         at = td_str_find(text, ':', at + 1)) {
        last = at;
    }
    td_str host = td_str_slice(text, 0, last);
    if (last == text.len) {
        return false;
    }
    if (host.len >= 2 && host.ptr[0] == '[' && host.ptr[host.len - 1] == ']') {
        host = td_str_slice(host, 1, host.len - 1);
    } else if (td_str_find(host, ':', 0) < host.len) {
        return false; /* an IPv6 address without brackets */
    }
    *ret_host = host;
    *ret_port = td_str_slice(text, last + 1, text.len);
    return true;
}

static bool proxy_equal_fold(td_str a, td_str b)
{
    return a.len == b.len && (a.len == 0 || strncasecmp(a.ptr, b.ptr, a.len) == 0);
}

/* "foo.com" stands for itself and what is below it, ".foo.com" and "*.foo.com" only for that. */
static bool proxy_matches_domain(td_str rule, td_str host)
{
    if (td_str_starts_with(rule, TD_STR("*."))) {
        rule = td_str_slice(rule, 1, rule.len);
    }
    if (rule.ptr[0] != '.' && proxy_equal_fold(rule, host)) {
        return true;
    }
    size_t skip = rule.ptr[0] == '.' ? 1 : 0;
    td_str below = td_str_slice(rule, skip, rule.len);
    if (host.len <= below.len || host.ptr[host.len - below.len - 1] != '.') {
        return false;
    }
    return proxy_equal_fold(below, td_str_slice(host, host.len - below.len, host.len));
}

static bool proxy_rule_matches(td_str rule, const struct td_proxy_target *target,
                               const struct proxy_address *address)
{
    bool is_range = false;
    bool is_inside = proxy_in_range(rule, address, &is_range);
    if (is_range) {
        return is_inside;
    }
    td_str host = rule;
    td_str port = TD_STR_EMPTY;
    (void)proxy_split_port(rule, &host, &port); /* a rule without a port is for all */
    int64_t number = 0;
    bool is_port = port.len == 0 || (td_str_to_int64(port, &number) && number == target->port);
    struct proxy_address other;
    if (host.len == 0 || !is_port) {
        return false;
    }
    if (proxy_parse_address(host, &other)) {
        return address && memcmp(address->bytes, other.bytes, sizeof(other.bytes)) == 0;
    }
    return !address && proxy_matches_domain(host, target->host);
}

bool td_proxy_is_exempt(td_str list, const struct td_proxy_target *target)
{
    struct proxy_address parsed;
    bool is_address = proxy_parse_address(target->host, &parsed);
    if (td_str_equal(target->host, TD_STR("localhost")) ||
        (is_address && proxy_is_loopback(&parsed))) {
        return true;
    }
    for (size_t from = 0; from < list.len;) {
        size_t comma = td_str_find(list, ',', from);
        td_str rule = td_str_trim(td_str_slice(list, from, comma));
        from = comma + 1;
        if (td_str_equal(rule, TD_STR("*")) ||
            (rule.len > 0 && proxy_rule_matches(rule, target, is_address ? &parsed : NULL))) {
            return true;
        }
    }
    return false;
}

int td_proxy_check(td_str url, const char *field, struct td_error *err)
{
    static const td_str schemes[] = {TD_STR_INIT("http"), TD_STR_INIT("https"),
                                     TD_STR_INIT("socks5"), TD_STR_INIT("socks5h")};
    size_t colon = td_str_find(url, ':', 0);
    td_str scheme = td_str_slice(url, 0, colon);
    bool is_known = false;
    for (size_t i = 0; i < TD_COUNT(schemes); i++) {
        is_known = is_known || proxy_equal_fold(scheme, schemes[i]);
    }
    td_str rest = td_str_slice(url, colon, url.len);
    if (!is_known || !td_str_starts_with(rest, TD_STR("://"))) {
        return td_error_set(err, TD_INVALID, "%s: must be a URL of scheme http, https or socks5",
                            field);
    }
    td_str authority = td_str_slice(rest, 3, td_str_find(rest, '/', 3));
    if (authority.len == 0 || authority.ptr[authority.len - 1] == '@') {
        return td_error_set(err, TD_INVALID, "%s: the URL has no host", field);
    }
    for (size_t i = 0; i < url.len; i++) {
        if ((unsigned char)url.ptr[i] <= ' ' || url.ptr[i] == 0x7f) {
            return td_error_set(err, TD_INVALID, "%s: the URL holds a space or control character",
                                field);
        }
    }
    return TD_OK;
}

/* The first of the two that is set and not empty; *ret_name is its name. */
static td_str proxy_variable(td_env_fn env, void *env_context, const char *const names[2],
                             const char **ret_name)
{
    for (size_t i = 0; i < 2; i++) {
        td_str value = td_str_from(env(names[i], env_context));
        if (value.len > 0) {
            *ret_name = names[i];
            return value;
        }
    }
    return TD_STR_EMPTY;
}

int td_proxy_choose(struct td_arena *arena, td_env_fn env, void *env_context,
                    const struct td_proxy_target *target, td_str *ret, struct td_error *err)
{
    static const char *const https_names[2] = {"HTTPS_PROXY", "https_proxy"};
    static const char *const http_names[2] = {"HTTP_PROXY", "http_proxy"};
    static const char *const no_names[2] = {"NO_PROXY", "no_proxy"};
    const char *name = "";
    td_str value = TD_STR_EMPTY;
    td_str exempt = TD_STR_EMPTY;
    if (env) {
        const char *unused = NULL;
        value = proxy_variable(env, env_context, target->is_tls ? https_names : http_names, &name);
        exempt = proxy_variable(env, env_context, no_names, &unused);
    }
    if (value.len == 0 || td_proxy_is_exempt(exempt, target)) {
        *ret = TD_STR_EMPTY;
        return TD_OK;
    }
    td_str url = td_arena_copy_str(arena, value);
    if (!strstr(url.ptr, "://")) {
        url = td_arena_format(arena, "http://%s", url.ptr);
    }
    int code = td_proxy_check(url, name, err);
    if (code == TD_OK) {
        *ret = url;
    }
    return code;
}
