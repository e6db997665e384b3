/*
 * The rules are regular languages over single bytes, so each is one pass with at most one byte of
 * memory. Everything outside ASCII is refused by every rule, which is why no text is decoded: the
 * one exception is the lower-casing of annotation keys (see name_lower).
 */
#include "kube/names.h"

#include <stdbool.h>
#include <stdint.h>

#include "kube/quote.h"

#define NAME_LABEL_BYTES_MAX 63      /* DNS label, name part of a key, label value */
#define NAME_SUBDOMAIN_BYTES_MAX 253 /* DNS name, prefix of a key, key of a config map */
#define NAME_PORT_BYTES_MAX 15       /* RFC 6335 */
#define NAME_ANNOTATIONS_BYTES_MAX ((uint64_t)256 << 10) /* keys and values of one object */
#define NAME_LOWER_BYTES_MAX 1024                        /* see name_lower */

/* The rules of keys and label values are in upstream's sentences: messages about selectors quote
 * them, and those are seen by clients. */
static const char name_rule_subdomain[] =
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', "
    "and must start and end with an alphanumeric character (e.g. 'example.com', regex used for "
    "validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
static const char name_rule_label[] =
    "must be a lower case DNS label (RFC 1123): lower case alphanumeric characters or '-', "
    "starting and ending with an alphanumeric character (e.g. 'my-name' or '123-abc')";
static const char name_rule_1035[] =
    "must be a DNS label (RFC 1035): lower case alphanumeric characters or '-', starting with a "
    "letter and ending with an alphanumeric character (e.g. 'my-name' or 'abc-123')";
#define NAME_RULE_PART                                                                             \
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "    \
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "         \
    "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
static const char name_rule_part[] = NAME_RULE_PART;
static const char name_rule_slashes[] =
    "a valid label key " NAME_RULE_PART
    " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
static const char name_rule_value[] =
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or "
    "'12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
static const char name_rule_config[] =
    "must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name' or 'KEY_NAME')";
static const char name_rule_env[] = "must consist of printable ASCII characters other than '='";

/* Where the messages of one check go, and what stands in front of each. */
struct name_report {
    struct td_buf *out; /* may be NULL */
    td_str path;        /* of the field; empty when a bare name is checked */
    td_str value;       /* the text blamed, when there is a path */
    const char *part;   /* "prefix part " or "" */
    size_t count;       /* messages so far */
};

static void name_report_begin(struct name_report *report)
{
    report->count++;
    if (report->out && report->path.len > 0) {
        (void)td_buf_append(report->out, report->path);
        (void)td_buf_append(report->out, TD_STR(": Invalid value: "));
        td_quote_write(report->value, report->out);
        (void)td_buf_append(report->out, TD_STR(": "));
    }
    if (report->out) {
        (void)td_buf_append(report->out, td_str_from(report->part));
    }
}

/* Appends are not checked one by one: a full buffer is sticky and its owner asks at the end. */
static void name_report_add(struct name_report *report, const char *rule)
{
    name_report_begin(report);
    if (report->out) {
        (void)td_buf_append_format(report->out, "%s\n", rule);
    }
}

static void name_report_length(struct name_report *report, td_str name, size_t bytes_max)
{
    if (name.len <= bytes_max) {
        return;
    }
    name_report_begin(report);
    if (report->out) {
        (void)td_buf_append_format(report->out, "must be no more than %zu bytes\n", bytes_max);
    }
}

static bool name_is_lower(char byte)
{
    return byte >= 'a' && byte <= 'z';
}

static bool name_is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

static bool name_is_dns(char byte)
{
    return name_is_lower(byte) || name_is_digit(byte);
}

static bool name_is_alnum(char byte)
{
    return name_is_dns(byte) || (byte >= 'A' && byte <= 'Z');
}

static bool name_is_inner(char byte)
{
    return name_is_alnum(byte) || byte == '-' || byte == '_' || byte == '.';
}

/* May `byte` follow `previous` in a subdomain? The start counts as a dot. */
static bool name_dns_follows(char previous, char byte)
{
    if (byte == '.') {
        return name_is_dns(previous);
    }
    if (byte == '-') {
        return previous != '.';
    }
    return name_is_dns(byte);
}

/* With `has_more` a letter is thought behind the name. */
static bool name_is_subdomain(td_str name, bool has_more)
{
    char previous = '.';
    for (size_t i = 0; i < name.len; i++) {
        if (!name_dns_follows(previous, name.ptr[i])) {
            return false;
        }
        previous = name.ptr[i];
    }
    return has_more || name_is_dns(previous);
}

static bool name_has_byte(td_str name, char byte)
{
    return td_str_find(name, byte, 0) < name.len;
}

/* A DNS label is a subdomain of one part. */
static bool name_is_label(td_str name)
{
    return name_is_subdomain(name, false) && !name_has_byte(name, '.');
}

static bool name_all(td_str name, bool (*is_allowed)(char))
{
    for (size_t i = 0; i < name.len; i++) {
        if (!is_allowed(name.ptr[i])) {
            return false;
        }
    }
    return true;
}

/* The name part of a key, and a label value that is not empty. */
static bool name_is_part(td_str name)
{
    return name.len > 0 && name_is_alnum(name.ptr[0]) && name_is_alnum(name.ptr[name.len - 1]) &&
           name_all(name, name_is_inner);
}

static void name_check_subdomain(struct name_report *report, td_str name)
{
    name_report_length(report, name, NAME_SUBDOMAIN_BYTES_MAX);
    if (!name_is_subdomain(name, false)) {
        name_report_add(report, name_rule_subdomain);
    }
}

static void name_check_key(struct name_report *report, td_str key)
{
    size_t slash = td_str_find(key, '/', 0);
    td_str name = key;
    if (slash < key.len) {
        td_str prefix = td_str_slice(key, 0, slash);
        name = td_str_slice(key, slash + 1, key.len);
        if (name_has_byte(name, '/')) {
            name_report_add(report, name_rule_slashes);
            return;
        }
        report->part = "prefix part ";
        if (prefix.len == 0) {
            name_report_add(report, "must be non-empty");
        } else {
            name_check_subdomain(report, prefix);
        }
    }
    report->part = "name part ";
    if (name.len == 0) {
        name_report_add(report, "must be non-empty");
    }
    name_report_length(report, name, NAME_LABEL_BYTES_MAX);
    if (!name_is_part(name)) {
        name_report_add(report, name_rule_part);
    }
    report->part = "";
}

static void name_check_value(struct name_report *report, td_str value)
{
    name_report_length(report, value, NAME_LABEL_BYTES_MAX);
    if (value.len > 0 && !name_is_part(value)) {
        name_report_add(report, name_rule_value);
    }
}

static struct name_report name_report_plain(struct td_buf *out)
{
    return (struct name_report){.out = out, .path = TD_STR_EMPTY, .part = ""};
}

size_t td_name_check_dns1123_subdomain(td_str name, struct td_buf *out)
{
    struct name_report report = name_report_plain(out);
    name_check_subdomain(&report, name);
    return report.count;
}

size_t td_name_check_dns1123_label(td_str name, struct td_buf *out)
{
    struct name_report report = name_report_plain(out);
    name_report_length(&report, name, NAME_LABEL_BYTES_MAX);
    if (!name_is_label(name)) {
        bool has_only_dots = name_is_subdomain(name, false);
        name_report_add(&report, has_only_dots ? "must not contain dots" : name_rule_label);
    }
    return report.count;
}

size_t td_name_check_dns1035_label(td_str name, struct td_buf *out)
{
    struct name_report report = name_report_plain(out);
    name_report_length(&report, name, NAME_LABEL_BYTES_MAX);
    if (!name_is_label(name) || !name_is_lower(name.ptr[0])) {
        name_report_add(&report, name_rule_1035);
    }
    return report.count;
}

/* Upstream masks a trailing dash by putting one letter in place of the last TWO bytes, so the byte
 * in front of the dash is never looked at ("A-" and "--" pass) and the length allowed is one more.
 */
size_t td_name_check_subdomain_prefix(td_str prefix, struct td_buf *out)
{
    if (prefix.len < 2 || prefix.ptr[prefix.len - 1] != '-') {
        return td_name_check_dns1123_subdomain(prefix, out);
    }
    struct name_report report = name_report_plain(out);
    name_report_length(&report, td_str_slice(prefix, 0, prefix.len - 1), NAME_SUBDOMAIN_BYTES_MAX);
    if (!name_is_subdomain(td_str_slice(prefix, 0, prefix.len - 2), true)) {
        name_report_add(&report, name_rule_subdomain);
    }
    return report.count;
}

size_t td_name_check_qualified(td_str name, struct td_buf *out)
{
    struct name_report report = name_report_plain(out);
    name_check_key(&report, name);
    return report.count;
}

size_t td_name_check_label_value(td_str value, struct td_buf *out)
{
    struct name_report report = name_report_plain(out);
    name_check_value(&report, value);
    return report.count;
}

size_t td_name_check_config_map_key(td_str key, struct td_buf *out)
{
    struct name_report report = name_report_plain(out);
    name_report_length(&report, key, NAME_SUBDOMAIN_BYTES_MAX);
    if (key.len == 0 || !name_all(key, name_is_inner)) {
        name_report_add(&report, name_rule_config);
    }
    if (td_str_equal(key, TD_STR("."))) {
        name_report_add(&report, "must not be '.'");
    } else if (td_str_equal(key, TD_STR(".."))) {
        name_report_add(&report, "must not be '..'");
    } else if (td_str_starts_with(key, TD_STR(".."))) {
        name_report_add(&report, "must not start with '..'");
    }
    return report.count;
}

static bool name_is_env(char byte)
{
    return byte >= ' ' && byte <= '~' && byte != '=';
}

size_t td_name_check_env_var(td_str name, struct td_buf *out)
{
    struct name_report report = name_report_plain(out);
    if (name.len == 0) {
        name_report_add(&report, "must be non-empty");
    }
    if (!name_all(name, name_is_env)) {
        name_report_add(&report, name_rule_env);
    }
    return report.count;
}

static bool name_is_port(char byte)
{
    return name_is_dns(byte) || byte == '-';
}

static bool name_is_no_letter(char byte)
{
    return !name_is_lower(byte);
}

static bool name_has_double_dash(td_str name)
{
    for (size_t i = 1; i < name.len; i++) {
        if (name.ptr[i - 1] == '-' && name.ptr[i] == '-') {
            return true;
        }
    }
    return false;
}

size_t td_name_check_port(td_str name, struct td_buf *out)
{
    struct name_report report = name_report_plain(out);
    name_report_length(&report, name, NAME_PORT_BYTES_MAX);
    if (name.len == 0 || !name_all(name, name_is_port)) {
        name_report_add(&report, "must contain only a-z, 0-9 and hyphens (-)");
    }
    if (name_all(name, name_is_no_letter)) {
        name_report_add(&report, "must contain at least one letter (a-z)");
    }
    if (name_has_double_dash(name)) {
        name_report_add(&report, "must not contain consecutive hyphens");
    }
    if (name.len > 0 && (name.ptr[0] == '-' || name.ptr[name.len - 1] == '-')) {
        name_report_add(&report, "must not begin or end with a hyphen");
    }
    return report.count;
}

/* A member of a map of strings: its text, empty for null as Go decodes it. Another type is reported
 * and gives the empty text too, so that its key is still checked. */
static td_str name_member_text(struct name_report *report, const struct td_json *member)
{
    if (member->type == TD_JSON_TYPE_STRING) {
        return member->text;
    }
    if (member->type != TD_JSON_TYPE_NULL) {
        report->value = member->key;
        name_report_add(report, "the value of this key must be a string");
    }
    return TD_STR_EMPTY;
}

/* The first member of a map at report->path, NULL when there is none. What is neither an object nor
 * null is reported. */
static const struct td_json *name_map_first(struct name_report *report, const struct td_json *map)
{
    if (td_json_is(map, TD_JSON_TYPE_OBJECT)) {
        return td_json_first_member(map);
    }
    if (map && map->type != TD_JSON_TYPE_NULL) {
        report->count++;
        if (report->out) {
            (void)td_buf_append_format(report->out, "%.*s: must be an object of strings\n",
                                       TD_STR_ARG(report->path));
        }
    }
    return NULL;
}

size_t td_name_check_labels(const struct td_json *labels, td_str path, struct td_buf *out)
{
    struct name_report report = {.out = out, .path = path, .part = ""};
    const struct td_json *member = name_map_first(&report, labels);
    for (; member; member = member->next) {
        td_str value = name_member_text(&report, member);
        report.value = member->key;
        name_check_key(&report, member->key);
        report.value = value;
        name_check_value(&report, value);
    }
    return report.count;
}

/* The key in lower case. Besides A to Z, two letters of Unicode have an ASCII letter as their lower
 * case, and upstream lowers them before it looks: the Kelvin sign U+212A (k) and the dotted capital
 * I U+0130 (i). A lowered text is at least a third as long, so a key past the buffer is past every
 * length allowed, whatever its letters, and is returned as it is. */
static td_str name_lower(td_str key, char lower[NAME_LOWER_BYTES_MAX])
{
    if (key.len > NAME_LOWER_BYTES_MAX) {
        return key;
    }
    size_t len = 0;
    for (size_t i = 0; i < key.len; len++) {
        td_str rest = td_str_slice(key, i, key.len);
        char byte = key.ptr[i];
        if (td_str_starts_with(rest, TD_STR("\xE2\x84\xAA"))) {
            lower[len] = 'k';
            i += 3;
        } else if (td_str_starts_with(rest, TD_STR("\xC4\xB0"))) {
            lower[len] = 'i';
            i += 2;
        } else {
            lower[len] = byte >= 'A' && byte <= 'Z' ? (char)(byte - 'A' + 'a') : byte;
            i += 1;
        }
    }
    return (td_str){.ptr = lower, .len = len};
}

static_assert(NAME_LOWER_BYTES_MAX / 3 > NAME_SUBDOMAIN_BYTES_MAX + 1 + NAME_LABEL_BYTES_MAX,
              "a key longer than the buffer is invalid in any case");

size_t td_name_check_annotations(const struct td_json *annotations, td_str path, struct td_buf *out)
{
    struct name_report report = {.out = out, .path = path, .part = ""};
    uint64_t total_bytes = 0;
    const struct td_json *member = name_map_first(&report, annotations);
    for (; member; member = member->next) {
        char lower[NAME_LOWER_BYTES_MAX];
        td_str value = name_member_text(&report, member);
        report.value = member->key;
        name_check_key(&report, name_lower(member->key, lower));
        total_bytes += (uint64_t)member->key.len + value.len;
    }
    if (total_bytes > NAME_ANNOTATIONS_BYTES_MAX) {
        report.count++;
        if (out) {
            (void)td_buf_append_format(
                out, "%.*s: Too long: keys and values may not have more than %llu bytes\n",
                TD_STR_ARG(path), (unsigned long long)NAME_ANNOTATIONS_BYTES_MAX);
        }
    }
    return report.count;
}
