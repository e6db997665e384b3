/* Label selectors in both forms, field selectors, and the rules for names. */
#include <string.h>

#include "base/limits.h"
#include "golden/golden.h"
#include "kube/names.h"
#include "kube/schema/fields.h"
#include "kube/selector/selector.h"

#define TEXT_BYTES_MAX (2 * TD_SELECTOR_BYTES_MAX)
#define ANNOTATION_BYTES_MAX ((int64_t)16 << 20) /* a value length past it is a broken case */

static void set_text(struct td_arena *arena, struct td_json *object, td_str key, td_str text)
{
    td_json_set(arena, object, key, td_json_new_string(arena, td_arena_copy_str(arena, text)));
}

static void set_bool(struct td_arena *arena, struct td_json *object, td_str key, bool value)
{
    td_json_set(arena, object, key, td_json_new_bool(arena, value));
}

/* What a requirement's Values() gives: a set, so without repeats. */
static struct td_json *values_json(struct td_arena *arena, const struct td_requirement *requirement)
{
    struct td_json *list = td_json_new_array(arena);
    for (size_t i = 0; i < requirement->value_count; i++) {
        if (i == 0 || !td_str_equal(requirement->values[i - 1], requirement->values[i])) {
            td_json_append(list, td_json_new_string(arena, requirement->values[i]));
        }
    }
    return list;
}

static struct td_json *requirements_json(struct td_arena *arena, const struct td_selector *selector)
{
    struct td_json *list = td_json_new_array(arena);
    for (size_t i = 0; i < selector->count; i++) {
        const struct td_requirement *requirement = &selector->requirements[i];
        struct td_json *item = td_json_new_object(arena);
        set_text(arena, item, TD_STR("key"), requirement->key);
        set_text(arena, item, TD_STR("operator"),
                 td_selector_operator_name(requirement->operation));
        td_json_set(arena, item, TD_STR("values"), values_json(arena, requirement));
        td_json_append(list, item);
    }
    return list;
}

static struct td_json *selector_json(struct td_arena *arena, const struct td_selector *selector,
                                     const struct td_json *sets)
{
    struct td_json *out = td_json_new_object(arena);
    td_auto_buf text;
    td_buf_init(&text, TEXT_BYTES_MAX);
    td_selector_write(selector, &text);
    set_text(arena, out, TD_STR("string"), td_buf_str(&text));
    td_json_set(arena, out, TD_STR("requirements"), requirements_json(arena, selector));
    set_bool(arena, out, TD_STR("empty"), td_selector_is_empty(selector));
    set_bool(arena, out, TD_STR("selectable"), !selector->matches_nothing);
    struct td_json *matches = td_json_new_array(arena);
    for (const struct td_json *set = td_json_first_child(sets); set; set = set->next) {
        struct td_labels labels = td_labels_from_json(arena, set);
        td_json_append(matches, td_json_new_bool(arena, td_selector_matches(selector, &labels)));
    }
    td_json_set(arena, out, TD_STR("matches"), matches);
    return out;
}

static int run_label_selector(struct td_arena *arena, const struct td_json *in,
                              struct td_json **ret_out, struct td_error *err)
{
    struct td_selector selector;
    int code = td_selector_from_json(arena, td_json_get(in, TD_STR("selector")), &selector, err);
    if (code != TD_OK) {
        return code;
    }
    struct td_json *out = selector_json(arena, &selector, td_json_get(in, TD_STR("sets")));
    td_auto_buf text;
    td_buf_init(&text, TEXT_BYTES_MAX);
    td_selector_write_format(&selector, &text);
    set_text(arena, out, TD_STR("format"), td_buf_str(&text));
    *ret_out = out;
    return TD_OK;
}

static int run_selector_string(struct td_arena *arena, const struct td_json *in,
                               struct td_json **ret_out, struct td_error *err)
{
    struct td_selector selector;
    td_str text = td_json_get_str(in, TD_STR("s"), TD_STR_EMPTY);
    int code = td_selector_parse(arena, text, &selector, err);
    if (code != TD_OK) {
        return code;
    }
    *ret_out = selector_json(arena, &selector, td_json_get(in, TD_STR("sets")));
    return TD_OK;
}

static td_str get_field(td_str field, void *context)
{
    return td_json_get_str(context, field, TD_STR_EMPTY);
}

static struct td_json *field_requirements_json(struct td_arena *arena,
                                               const struct td_field_selector *selector)
{
    struct td_json *list = td_json_new_array(arena);
    for (size_t i = 0; i < selector->count; i++) {
        const struct td_field_requirement *requirement = &selector->requirements[i];
        struct td_json *item = td_json_new_object(arena);
        set_text(arena, item, TD_STR("field"), requirement->field);
        set_text(arena, item, TD_STR("operator"), requirement->is_not ? TD_STR("!=") : TD_STR("="));
        set_text(arena, item, TD_STR("value"), requirement->value);
        td_json_append(list, item);
    }
    return list;
}

static int run_field_selector(struct td_arena *arena, const struct td_json *in,
                              struct td_json **ret_out, struct td_error *err)
{
    struct td_field_selector selector;
    td_str s = td_json_get_str(in, TD_STR("s"), TD_STR_EMPTY);
    int code = td_field_selector_parse(arena, s, &selector, err);
    if (code != TD_OK) {
        return code;
    }
    struct td_json *out = td_json_new_object(arena);
    td_auto_buf text;
    td_buf_init(&text, TEXT_BYTES_MAX);
    td_field_selector_write(&selector, &text);
    set_text(arena, out, TD_STR("string"), td_buf_str(&text));
    td_json_set(arena, out, TD_STR("requirements"), field_requirements_json(arena, &selector));
    set_bool(arena, out, TD_STR("empty"), selector.count == 0);
    struct td_json *matches = td_json_new_array(arena);
    const struct td_json *sets = td_json_get(in, TD_STR("sets"));
    for (struct td_json *set = td_json_first_child(sets); set; set = set->next) {
        bool is_match = td_field_selector_matches(&selector, get_field, set);
        td_json_append(matches, td_json_new_bool(arena, is_match));
    }
    td_json_set(arena, out, TD_STR("matches"), matches);
    *ret_out = out;
    return TD_OK;
}

/* The annotation map that a case describes: each value is the letter x, valueLength times. */
static struct td_json *annotations_json(struct td_arena *arena, const struct td_json *entries)
{
    struct td_json *map = td_json_new_object(arena);
    for (const struct td_json *entry = td_json_first_child(entries); entry; entry = entry->next) {
        int64_t len = td_json_get_int64(entry, TD_STR("valueLength"), 0);
        if (len < 0 || len > ANNOTATION_BYTES_MAX) {
            len = 0;
        }
        char *value = td_arena_alloc(arena, (size_t)len);
        memset(value, 'x', (size_t)len);
        td_str text = {.ptr = value, .len = (size_t)len};
        td_json_set(arena, map, td_json_get_str(entry, TD_STR("key"), TD_STR_EMPTY),
                    td_json_new_string(arena, text));
    }
    return map;
}

static const struct {
    td_str name;
    size_t (*check)(td_str, struct td_buf *);
} name_checks[] = {
    {TD_STR_INIT("dns1123Subdomain"), td_name_check_dns1123_subdomain},
    {TD_STR_INIT("dns1123Label"), td_name_check_dns1123_label},
    {TD_STR_INIT("dns1035Label"), td_name_check_dns1035_label},
    {TD_STR_INIT("subdomainPrefix"), td_name_check_subdomain_prefix},
    {TD_STR_INIT("qualifiedName"), td_name_check_qualified},
    {TD_STR_INIT("labelValue"), td_name_check_label_value},
    {TD_STR_INIT("configMapKey"), td_name_check_config_map_key},
    {TD_STR_INIT("envVarName"), td_name_check_env_var},
    {TD_STR_INIT("portName"), td_name_check_port},
};

static int check_names(struct td_arena *arena, const struct td_json *in, struct td_buf *out,
                       struct td_error *err)
{
    td_str check = td_json_get_str(in, TD_STR("check"), TD_STR_EMPTY);
    if (td_str_equal(check, TD_STR("labels"))) {
        const struct td_json *labels = td_json_get(in, TD_STR("labels"));
        (void)td_name_check_labels(labels, TD_STR("metadata.labels"), out);
        return TD_OK;
    }
    if (td_str_equal(check, TD_STR("annotations"))) {
        const struct td_json *map = annotations_json(arena, td_json_get(in, TD_STR("entries")));
        (void)td_name_check_annotations(map, TD_STR("metadata.annotations"), out);
        return TD_OK;
    }
    for (size_t i = 0; i < sizeof(name_checks) / sizeof(name_checks[0]); i++) {
        if (td_str_equal(check, name_checks[i].name)) {
            (void)name_checks[i].check(td_json_get_str(in, TD_STR("value"), TD_STR_EMPTY), out);
            return TD_OK;
        }
    }
    return td_error_set(err, TD_INVALID, "unknown check '%.*s'", TD_STR_ARG(check));
}

static int run_names(struct td_arena *arena, const struct td_json *in, struct td_json **ret_out,
                     struct td_error *err)
{
    td_auto_buf lines;
    td_buf_init(&lines, TEXT_BYTES_MAX);
    int code = check_names(arena, in, &lines, err);
    if (code != TD_OK) {
        return code;
    }
    struct td_json *messages = td_json_new_array(arena);
    td_str text = td_arena_copy_str(arena, td_buf_str(&lines));
    for (size_t from = 0; from < text.len;) {
        size_t end = td_str_find(text, '\n', from);
        td_json_append(messages, td_json_new_string(arena, td_str_slice(text, from, end)));
        from = end + 1;
    }
    struct td_json *out = td_json_new_object(arena);
    set_bool(arena, out, TD_STR("valid"), messages->count == 0);
    td_json_set(arena, out, TD_STR("messages"), messages);
    *ret_out = out;
    return TD_OK;
}

/* Messages are a guide: only whether there are any is compared. */
static bool names_are_same(const struct td_json *expected, const struct td_json *got)
{
    const struct td_json *expected_messages = td_json_get(expected, TD_STR("messages"));
    const struct td_json *got_messages = td_json_get(got, TD_STR("messages"));
    return td_json_equal(td_json_get(expected, TD_STR("valid")),
                         td_json_get(got, TD_STR("valid"))) &&
           expected_messages && got_messages &&
           (expected_messages->count == 0) == (got_messages->count == 0);
}

const struct golden_topic golden_kube_selectors[] = {
    {.name = "kube/label-selector", .run = run_label_selector},
    {.name = "kube/selector-string", .run = run_selector_string},
    {.name = "kube/field-selector", .run = run_field_selector},
    {.name = "kube/names", .run = run_names, .is_same = names_are_same},
    {.name = NULL},
};
