/*
 * Formats of strings as upstream checks them, most of them by a pattern. Known and not checked are
 * creditcard, isbn, isbn10 and isbn13; any other name is ignored, as upstream does.
 */
#include <arpa/inet.h>

#include "base/error.h"
#include "base/timefmt.h"
#include "kube/schema/schema_private.h"

#define FORMAT_IP_BYTES_MAX 64
#define FORMAT_HOSTNAME_BYTES_MAX 255
#define FORMAT_HOSTNAME_PART_BYTES_MAX 63
#define FORMAT_SHORT_NAME_BYTES_MAX 63
#define FORMAT_LONG_NAME_BYTES_MAX 253
#define FORMAT_DATE_BYTES 10
#define FORMAT_HOST_LETTERS "a-zA-Z0-9\\x{80}-\\x{10FFFF}"

/* Parts of URIs. */
#define FORMAT_SCHEME "[a-zA-Z][a-zA-Z0-9+.-]*:"
#define FORMAT_PATH_CHAR "([^/\\x00-\\x1f\\x7f%?]|%[0-9a-fA-F]{2})"
#define FORMAT_PATH "([^\\x00-\\x1f\\x7f%?]|%[0-9a-fA-F]{2})*"
#define FORMAT_HOST "([^\\x00-\\x20\\x7f<>\"{}|\\\\^`/?#%:@\\[\\]]|%[0-9a-fA-F]{2})"
#define FORMAT_QUERY "(\\?[^\\x00-\\x1f\\x7f]*)?"

struct format_row {
    td_str name;         /* without dashes */
    const char *pattern; /* or NULL: by a function */
    bool (*check)(struct schema_work *work, td_str text);
};

static bool format_is_date(struct schema_work *work, td_str text)
{
    struct td_instant instant;
    td_str whole = td_arena_format(work->arena, "%.*sT00:00:00Z", TD_STR_ARG(text));
    return text.len == FORMAT_DATE_BYTES && td_time_parse(whole, &instant, NULL) == TD_OK;
}

/* The date, a "t", and the time up to the next "t", which upstream does not look behind. */
static bool format_is_date_time(struct schema_work *work, td_str text)
{
    size_t mark = 0;
    while (mark < text.len && (text.ptr[mark] | 0x20) != 't') {
        mark++;
    }
    size_t end = mark + 1;
    while (end < text.len && (text.ptr[end] | 0x20) != 't') {
        end++;
    }
    if (mark >= text.len || !format_is_date(work, td_str_slice(text, 0, mark))) {
        return false;
    }
    return td_structural_matches(work,
                                 TD_STR("^([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](.[0-9]+)?"
                                        "([zZ]|[+-][0-9]{2}:[0-9]{2})$"),
                                 td_str_slice(text, mark + 1, end));
}

static bool format_is_ip6(td_str text)
{
    char copy[FORMAT_IP_BYTES_MAX];
    struct in6_addr address;
    if (text.len >= sizeof(copy) || td_str_find(text, '\0', 0) < text.len) {
        return false;
    }
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    return inet_pton(AF_INET6, copy, &address) == 1;
}

static bool format_is_plain_ip4(struct schema_work *work, td_str text)
{
    return td_structural_matches(work,
                                 TD_STR("^0*(25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])"
                                        "(\\.0*(25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])){3}$"),
                                 text);
}

static bool format_is_ipv4(struct schema_work *work, td_str text)
{
    return format_is_plain_ip4(work, text) ||
           (format_is_ip6(text) && td_str_find(text, '.', 0) < text.len);
}

static bool format_is_ipv6(struct schema_work *work, td_str text)
{
    (void)work;
    return format_is_ip6(text);
}

static bool format_is_cidr(struct schema_work *work, td_str text)
{
    size_t slash = td_str_find(text, '/', 0);
    td_str address = td_str_slice(text, 0, slash);
    td_str bits = td_str_slice(text, slash + 1, text.len);
    int64_t count = -1;
    bool is_digits = td_structural_matches(work, TD_STR("^[0-9]{1,8}$"), bits);
    if (slash >= text.len || !is_digits || !td_str_to_int64(bits, &count)) {
        return false;
    }
    return (format_is_plain_ip4(work, address) && count <= 32) ||
           (format_is_ip6(address) && count <= 128);
}

static bool format_is_hostname(struct schema_work *work, td_str text)
{
    size_t from = 0;
    while (from < text.len) {
        size_t dot = td_str_find(text, '.', from);
        if (dot - from > FORMAT_HOSTNAME_PART_BYTES_MAX) {
            return false;
        }
        from = dot + 1;
    }
    return text.len <= FORMAT_HOSTNAME_BYTES_MAX &&
           td_structural_matches(
               work,
               TD_STR("^([" FORMAT_HOST_LETTERS "]((-?[" FORMAT_HOST_LETTERS "]{0,62})?)|"
                      "([" FORMAT_HOST_LETTERS "](([-" FORMAT_HOST_LETTERS "]{0,61}"
                      "[" FORMAT_HOST_LETTERS "])?)(\\.)){1,}"
                      "([a-zA-Z\\x{80}-\\x{10FFFF}]){2,63})$"),
               text);
}

static bool format_is_short_name(struct schema_work *work, td_str text)
{
    return text.len <= FORMAT_SHORT_NAME_BYTES_MAX &&
           td_structural_matches(work, TD_STR("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"), text);
}

static bool format_is_long_name(struct schema_work *work, td_str text)
{
    return text.len <= FORMAT_LONG_NAME_BYTES_MAX &&
           td_structural_matches(work,
                                 TD_STR("^[a-z0-9]([-a-z0-9]*[a-z0-9])?"
                                        "(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"),
                                 text);
}

/* Go's durations, or somewhere in the text a number and a unit in words ("2 days"). */
static bool format_is_duration(struct schema_work *work, td_str text)
{
    td_duration duration;
    return td_duration_parse(text, &duration, NULL) == TD_OK ||
           td_structural_matches(work,
                                 TD_STR("(?i)\\d\\s*(ns|us|ms|s|m|h|hr|d|w|wk)([^a-z]|$)|"
                                        "(?i)\\d\\s*(nano|micro|milli|sec|min|hour|day|week)"),
                                 text);
}

static const struct format_row format_rows[] = {
    {TD_STR_INIT("bsonobjectid"), "^[0-9a-fA-F]{24}$", NULL},
    {TD_STR_INIT("byte"),
     "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$", NULL},
    {TD_STR_INIT("cidr"), NULL, format_is_cidr},
    {TD_STR_INIT("creditcard"), "", NULL},
    {TD_STR_INIT("date"), NULL, format_is_date},
    {TD_STR_INIT("datetime"), NULL, format_is_date_time},
    {TD_STR_INIT("duration"), NULL, format_is_duration},
    {TD_STR_INIT("email"), "^[^@<>(),;:\\s]+@[^@<>(),;:\\s]+$|^[^<>]*<[^@<>\\s]+@[^@<>\\s]+>$",
     NULL},
    {TD_STR_INIT("hexcolor"), "^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$", NULL},
    {TD_STR_INIT("hostname"), NULL, format_is_hostname},
    {TD_STR_INIT("ipv4"), NULL, format_is_ipv4},
    {TD_STR_INIT("ipv6"), NULL, format_is_ipv6},
    {TD_STR_INIT("isbn"), "", NULL},
    {TD_STR_INIT("isbn10"), "", NULL},
    {TD_STR_INIT("isbn13"), "", NULL},
    {TD_STR_INIT("k8slongname"), NULL, format_is_long_name},
    {TD_STR_INIT("k8sshortname"), NULL, format_is_short_name},
    {TD_STR_INIT("mac"),
     "^([0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}((:[0-9a-fA-F]{2}){2}|(:[0-9a-fA-F]{2}){14})?|"
     "[0-9a-fA-F]{2}(-[0-9a-fA-F]{2}){5}((-[0-9a-fA-F]{2}){2}|(-[0-9a-fA-F]{2}){14})?|"
     "[0-9a-fA-F]{4}(\\.[0-9a-fA-F]{4}){2}((\\.[0-9a-fA-F]{4})|(\\.[0-9a-fA-F]{4}){7})?)$",
     NULL},
    {TD_STR_INIT("password"), "", NULL},
    {TD_STR_INIT("rgbcolor"),
     "^rgb\\(\\s*(0|[1-9]\\d?|1\\d\\d?|2[0-4]\\d|25[0-5])\\s*(,\\s*(0|[1-9]\\d?|1\\d\\d?|2[0-4]\\d|"
     "25[0-5])\\s*){2}\\)$",
     NULL},
    {TD_STR_INIT("ssn"), "^\\d{3}[- ]?\\d{2}[- ]?\\d{4}$", NULL},
    /* A scheme or a slash first, a host without spaces, whole escapes in the path. */
    {TD_STR_INIT("uri"),
     "^(\\*|(" FORMAT_SCHEME ")?/(" FORMAT_PATH_CHAR FORMAT_PATH ")?" FORMAT_QUERY "|"
     "/" FORMAT_PATH FORMAT_QUERY "|" FORMAT_SCHEME
     "//([^@/?#\\x00-\\x20]*@)?(\\[[0-9a-zA-Z:.%]+\\]|" FORMAT_HOST "*)(:[0-9]*)?"
     "(/" FORMAT_PATH ")?" FORMAT_QUERY "|" FORMAT_SCHEME
     "([^/\\x00-\\x1f\\x7f][^\\x00-\\x1f\\x7f]*)?)$",
     NULL},
    {TD_STR_INIT("uuid"), "(?i)^[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}$", NULL},
    {TD_STR_INIT("uuid3"),
     "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}$", NULL},
    {TD_STR_INIT("uuid4"),
     "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$", NULL},
    {TD_STR_INIT("uuid5"),
     "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$", NULL},
};

/* The row of a format, whose dashes do not count. */
static const struct format_row *format_find(td_str name)
{
    for (size_t i = 0; i < TD_COUNT(format_rows); i++) {
        td_str known = format_rows[i].name;
        size_t at = 0;
        size_t matched = 0;
        for (; at < name.len && matched <= known.len; at++) {
            if (name.ptr[at] == '-') {
                continue;
            }
            if (matched == known.len || known.ptr[matched] != name.ptr[at]) {
                break;
            }
            matched++;
        }
        if (at == name.len && matched == known.len) {
            return &format_rows[i];
        }
    }
    return NULL;
}

td_str td_structural_format(const struct td_json *schema)
{
    td_str format = td_json_text(schema, "format");
    bool is_single = td_structural_type_count(schema) == 1;
    bool is_known = false;
    if (format.len == 0) {
        return format;
    }
    if (!is_single || td_structural_has_type(schema, "string")) {
        is_known = format_find(format) != NULL;
    } else if (td_structural_has_type(schema, "integer")) {
        is_known = td_str_equal(format, TD_STR("int32")) || td_str_equal(format, TD_STR("int64"));
    } else if (td_structural_has_type(schema, "number")) {
        is_known = td_str_equal(format, TD_STR("float")) || td_str_equal(format, TD_STR("double"));
    }
    return is_known ? format : TD_STR_EMPTY;
}

bool td_structural_format_holds(struct schema_work *work, td_str format, td_str text)
{
    const struct format_row *row = format_find(format);
    if (!row) {
        return true;
    }
    return row->check ? row->check(work, text)
                      : td_structural_matches(work, td_str_from(row->pattern), text);
}
