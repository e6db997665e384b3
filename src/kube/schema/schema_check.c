/*
 * One walk down the schema and the object together, in the order of the validator that servers
 * use: type, combinations (anyOf, oneOf, allOf, not), strings, formats, numbers, lists, enums,
 * objects. A check that fails does not end the others, so one value can have several errors. Errors
 * of combinations carry their place in the text alone ("<nil>" in front), and of alternatives that
 * all fail the one is reported of which most was right, which is what `matches` counts, in
 * upstream's way of counting.
 */
#include "kube/schema/schema_private.h"

#include <math.h>

#include "base/error.h"
#include "kube/quote.h"
#include "kube/schema/regex.h"

#define SCHEMA_FLOAT_INTEGER_MAX 9007199254740991.0
#define SCHEMA_FLOAT_EPSILON 1e-9
#define SCHEMA_PATTERNS_MAX 4096 /* kept compiled during one check */
#define SCHEMA_COMPILE_STEPS 32  /* taken from the budget for a step of a compiled pattern */

/* --- helpers --- */

static void result_add(struct schema_result *result, struct td_arena *arena,
                       const struct td_field_error *error)
{
    struct td_field_errors *errors = &result->errors;
    for (size_t i = 0; i < errors->count; i++) {
        const struct td_field_error *other = &errors->items[i];
        if (td_str_equal(other->field, error->field) && other->type == error->type &&
            td_str_equal(other->detail, error->detail) &&
            (error->detail.len > 0 || td_str_equal(other->value, error->value))) {
            return;
        }
    }
    if (errors->count < TD_STRICT_PROBLEMS_MAX) {
        errors->items = td_arena_grow(arena, errors->items, errors->count, &errors->cap,
                                      sizeof(errors->items[0]));
        errors->items[errors->count++] = *error;
    }
}

static void result_merge(struct schema_result *result, struct td_arena *arena,
                         const struct schema_result *other)
{
    for (size_t i = 0; i < other->errors.count; i++) {
        result_add(result, arena, &other->errors.items[i]);
    }
    result->matches += other->matches;
}

td_str td_structural_path(const struct schema_at *at)
{
    return td_field_path_text(at->work->arena, at->path);
}

void td_structural_add(const struct schema_at *at, struct schema_result *result,
                       enum td_field_error_type type, td_str value, td_str detail)
{
    td_str path = td_structural_path(at);
    result_add(result, at->work->arena,
               &(struct td_field_error){.field = path.len > 0 ? path : TD_STR("<nil>"),
                                        .type = type,
                                        .value = value,
                                        .detail = detail});
}

void td_structural_add_bare(const struct schema_at *at, struct schema_result *result, td_str detail)
{
    result_add(result, at->work->arena,
               &(struct td_field_error){.field = TD_STR("<nil>"),
                                        .type = TD_FIELD_INVALID,
                                        .value = TD_STR("\"\""),
                                        .detail = detail});
}

static td_str quoted_text(struct td_arena *arena, td_str text)
{
    td_auto_buf quoted = td_buf_capped(TD_JSON_BYTES_MAX);
    td_quote_write(text, &quoted);
    return td_arena_copy_str(arena, td_buf_str(&quoted));
}

td_str td_structural_shown(struct td_arena *arena, const struct td_json *value)
{
    double number;
    if (value->type == TD_JSON_TYPE_STRING) {
        return quoted_text(arena, value->text);
    }
    if (value->type == TD_JSON_TYPE_NUMBER && !td_structural_is_integer(value) &&
        td_json_to_double(value, &number)) {
        return td_field_double_text(arena, number);
    }
    td_auto_buf text = td_buf_capped(TD_JSON_BYTES_MAX);
    struct td_json *copy = td_json_copy(arena, value, false);
    td_json_sort(arena, copy);
    td_json_write(copy, &(struct td_json_format){.escape_html = true}, &text);
    return td_arena_copy_str(arena, td_buf_str(&text));
}

bool td_structural_is_integer(const struct td_json *value)
{
    int64_t number;
    return td_json_is(value, TD_JSON_TYPE_NUMBER) && td_str_to_int64(value->text, &number);
}

bool td_structural_is_whole_float(double number)
{
    double whole = trunc(number);
    return fabs(number) <= SCHEMA_FLOAT_INTEGER_MAX &&
           (number == whole ||
            (whole != 0 && (number - whole) / (number + whole) < SCHEMA_FLOAT_EPSILON));
}

bool td_structural_matches(struct schema_work *work, td_str pattern, td_str text)
{
    if (!td_map_has(&work->patterns, pattern)) {
        struct td_regex *made = NULL;
        /* One that cannot be used stays NULL; the definition's writer was told. */
        (void)td_regex_compile(work->arena, pattern, &made, NULL);
        work->steps -= made ? (int64_t)td_regex_steps(made) * SCHEMA_COMPILE_STEPS : 0;
        if (td_map_put(&work->patterns, pattern, made) != TD_OK) {
            work->steps = -1; /* more patterns than any schema has */
        }
    }
    struct td_regex *regex = work->steps >= 0 ? td_map_get(&work->patterns, pattern) : NULL;
    bool is_match = true;
    if (regex && td_regex_match(regex, text, &work->steps, &is_match) != TD_OK) {
        return true; /* out of steps, which is reported at the end */
    }
    return is_match;
}

/* --- types --- */

size_t td_structural_type_count(const struct td_json *schema)
{
    if (schema_flag(schema, TD_STR("x-kubernetes-int-or-string"))) {
        return 2;
    }
    return td_json_text(schema, "type").len > 0 ? 1 : 0;
}

bool td_structural_has_type(const struct td_json *schema, const char *type)
{
    if (schema_flag(schema, TD_STR("x-kubernetes-int-or-string"))) {
        return strcmp(type, "integer") == 0 || strcmp(type, "string") == 0;
    }
    return td_str_equal(td_json_text(schema, "type"), td_str_from(type));
}

/* A value as the validator classifies it. */
struct schema_kind {
    const char *type;   /* "integer" */
    const char *format; /* "int64", or "" */
};

static struct schema_kind kind_of(const struct td_json *value)
{
    static const struct schema_kind kinds[] = {
        [TD_JSON_TYPE_NULL] = {"null", ""},
        [TD_JSON_TYPE_BOOL] = {"boolean", ""},
        [TD_JSON_TYPE_NUMBER] = {"number", "float64"},
        [TD_JSON_TYPE_STRING] = {"string", ""},
        [TD_JSON_TYPE_ARRAY] = {"array", ""},
        [TD_JSON_TYPE_OBJECT] = {"object", ""},
    };
    return td_structural_is_integer(value) ? (struct schema_kind){"integer", "int64"}
                                           : kinds[value->type];
}

static void add_wrong_type(const struct schema_at *at, struct schema_result *result, td_str wanted,
                           td_str got)
{
    struct td_arena *arena = at->work->arena;
    td_str path = td_structural_path(at);
    td_str quoted = quoted_text(arena, got);
    td_structural_add(at, result, TD_FIELD_TYPE_INVALID, quoted,
                      td_arena_format(arena, "%.*s in body must be of type %.*s: %.*s",
                                      TD_STR_ARG(path), TD_STR_ARG(wanted), TD_STR_ARG(quoted)));
}

static void check_type(const struct schema_at *at, const struct td_json *value,
                       struct schema_result *result)
{
    td_str format = td_structural_format(at->schema);
    struct schema_kind kind = kind_of(value);
    double number = 0;
    bool is_text = value->type == TD_JSON_TYPE_STRING || value->type == TD_JSON_TYPE_ARRAY;
    bool wants_integer = td_structural_has_type(at->schema, "integer");
    bool wants_number = td_structural_has_type(at->schema, "number");
    bool is_real = strcmp(kind.type, "number") == 0 && td_json_to_double(value, &number);
    bool fits = td_structural_has_type(at->schema, kind.type) ||
                (is_real && wants_integer && td_structural_is_whole_float(number)) ||
                (strcmp(kind.type, "integer") == 0 && wants_number);
    td_str wanted = td_structural_type_count(at->schema) == 2 ? TD_STR("integer,string")
                                                              : td_json_text(at->schema, "type");
    if (value->type == TD_JSON_TYPE_NULL) {
        if (wanted.len > 0 && !schema_flag(at->schema, TD_STR("nullable"))) {
            add_wrong_type(at, result, wanted, TD_STR("null"));
            return;
        }
    } else if (!is_text && format.len > 0 && !fits &&
               !td_str_equal(format, td_str_from(kind.format))) {
        add_wrong_type(at, result, format, td_str_from(kind.format));
        return;
    } else if (!(is_text && format.len > 0 && !wants_integer && !wants_number) && !fits) {
        add_wrong_type(at, result, wanted, td_str_from(kind.type));
        return;
    }
    result->matches++;
}

/* --- combinations --- */

static void check_value(const struct schema_at *at, const struct td_json *value,
                        struct schema_result *result);

static struct schema_result check_branch(const struct schema_at *at, const struct td_json *schema,
                                         const struct td_json *value)
{
    struct schema_result result = {.errors = {.arena = at->work->arena}};
    struct schema_at below = *at;
    below.schema = schema;
    below.depth++;
    check_value(&below, value, &result);
    return result;
}

static const struct td_json *branches(const struct td_json *schema, td_str key)
{
    const struct td_json *list = td_json_get(schema, key);
    return td_json_first_item(list);
}

static void check_any_of(const struct schema_at *at, const struct td_json *value,
                         struct schema_result *result)
{
    struct td_arena *arena = at->work->arena;
    const struct td_json *branch = branches(at->schema, TD_STR("anyOf"));
    struct schema_result best = {.matches = -1};
    for (; branch; branch = branch->next) {
        struct schema_result found = check_branch(at, branch, value);
        if (found.errors.count == 0) {
            result_merge(result, arena, &found);
            return;
        }
        best = found.matches > best.matches ? found : best;
    }
    if (best.matches >= 0) {
        td_str path = quoted_text(arena, td_structural_path(at));
        td_structural_add_bare(at, result,
                               td_arena_format(arena,
                                               "%.*s must validate at least one schema (anyOf)",
                                               TD_STR_ARG(path)));
        result_merge(result, arena, &best);
    }
}

static void check_one_of(const struct schema_at *at, const struct td_json *value,
                         struct schema_result *result)
{
    struct td_arena *arena = at->work->arena;
    const struct td_json *branch = branches(at->schema, TD_STR("oneOf"));
    struct schema_result best = {.matches = -1};
    struct schema_result first = {.matches = 0};
    size_t valid = 0;
    if (!branch) {
        return;
    }
    for (; branch; branch = branch->next) {
        struct schema_result found = check_branch(at, branch, value);
        if (found.errors.count == 0) {
            first = valid == 0 ? found : first;
            valid++;
        } else if (found.matches > best.matches) {
            best = found;
        }
    }
    if (valid == 1) {
        result_merge(result, arena, &first);
        return;
    }
    td_str path = quoted_text(arena, td_structural_path(at));
    td_str detail = valid == 0 ? TD_STR("Found none valid")
                               : td_arena_format(arena, "Found %zu valid alternatives", valid);
    td_structural_add_bare(
        at, result,
        td_arena_format(arena, "%.*s must validate one and only one schema (oneOf). %.*s",
                        TD_STR_ARG(path), TD_STR_ARG(detail)));
    if (valid == 0 && best.matches >= 0) {
        result_merge(result, arena, &best);
    }
}

static void check_all_of(const struct schema_at *at, const struct td_json *value,
                         struct schema_result *result)
{
    struct td_arena *arena = at->work->arena;
    const struct td_json *branch = branches(at->schema, TD_STR("allOf"));
    size_t count = 0;
    size_t valid = 0;
    for (; branch; branch = branch->next, count++) {
        struct schema_result found = check_branch(at, branch, value);
        valid += found.errors.count == 0;
        result_merge(result, arena, &found);
    }
    if (valid < count) {
        td_str path = quoted_text(arena, td_structural_path(at));
        td_structural_add_bare(
            at, result,
            td_arena_format(arena, "%.*s must validate all the schemas (allOf)%s", TD_STR_ARG(path),
                            valid == 0 ? ". None validated" : ""));
    }
}

static void check_combinations(const struct schema_at *at, const struct td_json *value,
                               struct schema_result *result)
{
    const struct td_json *not = td_json_get(at->schema, TD_STR("not"));
    check_any_of(at, value, result);
    check_one_of(at, value, result);
    check_all_of(at, value, result);
    if (td_json_is(not, TD_JSON_TYPE_OBJECT) && check_branch(at, not, value).errors.count == 0) {
        td_str path = quoted_text(at->work->arena, td_structural_path(at));
        td_structural_add_bare(at, result,
                               td_arena_format(at->work->arena,
                                               "%.*s must not validate the schema (not)",
                                               TD_STR_ARG(path)));
    }
    result->matches++;
}

/* --- strings --- */

static int64_t schema_runes(td_str text)
{
    int64_t runes = 0;
    for (size_t i = 0; i < text.len; i++) {
        runes += (text.ptr[i] & 0xc0) != 0x80; /* not inside a character */
    }
    return runes;
}

/* A whole number of the schema, or `fallback`. */
static void check_string(const struct schema_at *at, const struct td_json *value,
                         struct schema_result *result)
{
    struct td_arena *arena = at->work->arena;
    td_str pattern = td_json_text(at->schema, "pattern");
    int64_t most = td_json_get_int64(at->schema, TD_STR("maxLength"), INT64_MAX);
    int64_t least = td_json_get_int64(at->schema, TD_STR("minLength"), 0);
    int64_t runes = schema_runes(value->text);
    if (runes > most) {
        td_structural_add(
            at, result, TD_FIELD_TOO_LONG, TD_STR_EMPTY,
            td_arena_format(arena, "may not be more than %lld bytes", (long long)most));
    } else if (runes < least) {
        td_str path = td_structural_path(at);
        td_structural_add(at, result, TD_FIELD_INVALID, td_structural_shown(arena, value),
                          td_arena_format(arena, "%.*s in body should be at least %lld chars long",
                                          TD_STR_ARG(path), (long long)least));
    } else if (pattern.len > 0 && !td_structural_matches(at->work, pattern, value->text)) {
        td_str path = td_structural_path(at);
        td_structural_add(at, result, TD_FIELD_INVALID, td_structural_shown(arena, value),
                          td_arena_format(arena, "%.*s in body should match '%.*s'",
                                          TD_STR_ARG(path), TD_STR_ARG(pattern)));
    }
}

static void check_format(const struct schema_at *at, const struct td_json *value,
                         struct schema_result *result)
{
    td_str format = td_structural_format(at->schema);
    bool is_text =
        td_structural_type_count(at->schema) != 1 || td_structural_has_type(at->schema, "string");
    if (format.len == 0 || !is_text) {
        return;
    }
    result->matches++;
    if (!td_structural_format_holds(at->work, format, value->text)) {
        add_wrong_type(at, result, format, value->text);
    }
}

/* --- lists, enums, objects --- */

static void add_too_many(const struct schema_at *at, struct schema_result *result, size_t count,
                         int64_t most)
{
    struct td_arena *arena = at->work->arena;
    td_structural_add(at, result, TD_FIELD_TOO_MANY, td_arena_format(arena, "%zu", count),
                      td_arena_format(arena, "must have at most %lld item%s", (long long)most,
                                      most == 1 ? "" : "s"));
}

static void add_too_few(const struct schema_at *at, struct schema_result *result, size_t count,
                        int64_t least, const char *what)
{
    struct td_arena *arena = at->work->arena;
    td_str path = td_structural_path(at);
    td_structural_add(at, result, TD_FIELD_INVALID, td_arena_format(arena, "%zu", count),
                      td_arena_format(arena, "%.*s in body should have at least %lld %s",
                                      TD_STR_ARG(path), (long long)least, what));
}

static void check_list(const struct schema_at *at, const struct td_json *list,
                       struct schema_result *result)
{
    const struct td_json *items = td_json_get(at->schema, TD_STR("items"));
    bool has_items = td_json_is(items, TD_JSON_TYPE_OBJECT);
    size_t index = 0;
    for (const struct td_json *item = has_items ? td_json_first_item(list) : NULL; item;
         item = item->next) {
        struct td_field_path path = td_field_item(at->path, index++);
        struct schema_at below = {at->work, items, &path, at->depth + 1};
        check_value(&below, item, result);
    }
    int64_t least = td_json_get_int64(at->schema, TD_STR("minItems"), 0);
    int64_t most = td_json_get_int64(at->schema, TD_STR("maxItems"), INT64_MAX);
    if ((int64_t)list->count < least) {
        add_too_few(at, result, list->count, least, "items");
    }
    if ((int64_t)list->count > most) {
        add_too_many(at, result, list->count, most);
    }
    if (schema_flag(at->schema, TD_STR("uniqueItems")) &&
        td_structural_has_duplicates(at->work, list)) {
        td_str path = td_structural_path(at);
        td_structural_add(at, result, TD_FIELD_INVALID, TD_STR("\"\""),
                          td_arena_format(at->work->arena,
                                          "%.*s in body shouldn't contain duplicates",
                                          TD_STR_ARG(path)));
    }
    result->matches++;
}

/* A value is turned into the type of the enum's item first, so 1.5 counts as 1. */
static bool enum_has(const struct td_json *item, const struct td_json *value)
{
    double number = 0;
    int64_t whole = 0;
    bool is_cut = td_structural_is_integer(item) && td_json_is(value, TD_JSON_TYPE_NUMBER) &&
                  !td_structural_is_integer(value) && td_json_to_double(value, &number) &&
                  td_str_to_int64(item->text, &whole);
    return td_json_equal(item, value) || (is_cut && trunc(number) == (double)whole);
}

static void check_enum(const struct schema_at *at, const struct td_json *value,
                       struct schema_result *result)
{
    const struct td_json *list = td_json_get(at->schema, TD_STR("enum"));
    if (!td_json_is(list, TD_JSON_TYPE_ARRAY) || list->count == 0) {
        return;
    }
    at->work->steps -= (int64_t)list->count;
    for (const struct td_json *item = td_json_first_item(list); item; item = item->next) {
        if (item->type != TD_JSON_TYPE_NULL && enum_has(item, value)) {
            return;
        }
    }
    td_auto_buf detail = td_buf_capped(TD_JSON_BYTES_MAX);
    for (const struct td_json *item = td_json_first_item(list); item; item = item->next) {
        td_str text = item->type == TD_JSON_TYPE_STRING ? item->text
                      : item->type == TD_JSON_TYPE_NULL
                          ? TD_STR("null")
                          : td_structural_shown(at->work->arena, item);
        /* Parts of one definition: they fit. */
        (void)td_buf_append(&detail, item == td_json_first_item(list) ? TD_STR("supported values: ")
                                                                      : TD_STR(", "));
        td_quote_write(text, &detail);
    }
    td_structural_add(at, result, TD_FIELD_UNSUPPORTED, td_structural_shown(at->work->arena, value),
                      td_arena_copy_str(at->work->arena, td_buf_str(&detail)));
}

static void check_member(const struct schema_at *at, const struct td_json *member,
                         struct schema_result *result)
{
    const struct td_json *own =
        td_json_get(td_json_get(at->schema, TD_STR("properties")), member->key);
    const struct td_json *others = td_json_get(at->schema, TD_STR("additionalProperties"));
    const struct td_json *schema = own ? own : others;
    if (!own && td_json_is(others, TD_JSON_TYPE_BOOL) && !others->boolean) {
        td_str path = td_structural_path(at);
        td_structural_add(at, result, TD_FIELD_INVALID, quoted_text(at->work->arena, member->key),
                          td_arena_format(at->work->arena,
                                          "%.*s.%.*s in body is a forbidden property",
                                          TD_STR_ARG(path), TD_STR_ARG(member->key)));
    }
    if (td_json_is(schema, TD_JSON_TYPE_OBJECT)) {
        struct td_field_path path = td_field_child(at->path, member->key);
        struct schema_at below = {at->work, schema, &path, at->depth + 1};
        check_value(&below, member, result);
    }
}

static void check_object(const struct schema_at *at, const struct td_json *object,
                         struct schema_result *result)
{
    int64_t least = td_json_get_int64(at->schema, TD_STR("minProperties"), 0);
    int64_t most = td_json_get_int64(at->schema, TD_STR("maxProperties"), INT64_MAX);
    if ((int64_t)object->count < least) {
        add_too_few(at, result, object->count, least, "properties");
    }
    if ((int64_t)object->count > most) {
        add_too_many(at, result, object->count, most);
    }
    for (const struct td_json *member = td_json_first_member(object); member;
         member = member->next) {
        check_member(at, member, result);
    }
    const struct td_json *required = td_json_get(at->schema, TD_STR("required"));
    for (const struct td_json *name = td_json_first_item(required); name; name = name->next) {
        if (name->type == TD_JSON_TYPE_STRING && !td_json_get(object, name->text)) {
            struct td_field_path path = td_field_child(at->path, name->text);
            struct schema_at place = *at;
            place.path = &path;
            td_structural_add(&place, result, TD_FIELD_REQUIRED, TD_STR_EMPTY, TD_STR_EMPTY);
        }
    }
}

static void check_value(const struct schema_at *at, const struct td_json *value,
                        struct schema_result *result)
{
    at->work->steps--;
    if (at->depth > TD_SCHEMA_DEPTH_MAX || at->work->steps < 0 ||
        result->errors.count >= TD_STRICT_PROBLEMS_MAX) {
        return; /* enough for one answer: a hostile object could have millions */
    }
    bool is_null = value->type == TD_JSON_TYPE_NULL;
    if (td_structural_type_count(at->schema) > 0 || td_structural_format(at->schema).len > 0) {
        check_type(at, value, result);
        result->matches += !is_null;
    }
    if (is_null) {
        check_enum(at, value, result);
        return;
    }
    check_combinations(at, value, result);
    if (value->type == TD_JSON_TYPE_STRING) {
        check_string(at, value, result);
        check_format(at, value, result);
    } else if (value->type == TD_JSON_TYPE_NUMBER) {
        td_structural_check_number(at, value, result);
    } else if (value->type == TD_JSON_TYPE_ARRAY) {
        check_list(at, value, result);
    }
    check_enum(at, value, result);
    if (value->type == TD_JSON_TYPE_OBJECT) {
        check_object(at, value, result);
    }
    /* Combinations, enums, the value as a whole, and what applies to its type. */
    result->matches += value->type == TD_JSON_TYPE_BOOL ? 3 : 4;
}

/* --- embedded resources --- */

static void check_embedded_text(const struct schema_at *at, const struct td_json *object,
                                td_str key, struct schema_result *result)
{
    const struct td_json *node = td_json_get(object, key);
    struct td_field_path path = td_field_child(at->path, key);
    struct schema_at place = *at;
    place.path = &path;
    if (!node) {
        td_structural_add(&place, result, TD_FIELD_REQUIRED, TD_STR_EMPTY, TD_STR_EMPTY);
    } else if (node->type != TD_JSON_TYPE_STRING) {
        td_structural_add(&place, result, TD_FIELD_INVALID,
                          td_structural_shown(at->work->arena, node), TD_STR("must be a string"));
    } else if (node->text.len == 0) {
        td_structural_add(&place, result, TD_FIELD_INVALID, TD_STR("\"\""),
                          TD_STR("must not be empty"));
    }
}

static void check_embedded(const struct schema_at *at, const struct td_json *value,
                           struct schema_result *result)
{
    at->work->steps--;
    if (at->depth > TD_SCHEMA_DEPTH_MAX || at->work->steps < 0 ||
        result->errors.count >= TD_STRICT_PROBLEMS_MAX ||
        (value->type != TD_JSON_TYPE_OBJECT && value->type != TD_JSON_TYPE_ARRAY)) {
        return;
    }
    bool is_list = value->type == TD_JSON_TYPE_ARRAY;
    if (!is_list && schema_flag(at->schema, TD_STR("x-kubernetes-embedded-resource"))) {
        check_embedded_text(at, value, TD_STR("apiVersion"), result);
        check_embedded_text(at, value, TD_STR("kind"), result);
    }
    const struct td_json *properties = td_json_get(at->schema, TD_STR("properties"));
    const struct td_json *others =
        td_json_get(at->schema, is_list ? TD_STR("items") : TD_STR("additionalProperties"));
    size_t index = 0;
    for (const struct td_json *child = td_json_first_child(value); child;
         child = child->next, index++) {
        const struct td_json *own = is_list ? NULL : td_json_get(properties, child->key);
        struct td_field_path path =
            is_list ? td_field_item(at->path, index) : td_field_child(at->path, child->key);
        path.is_key = !is_list && !own;
        struct schema_at below = {at->work, own ? own : others, &path, at->depth + 1};
        if (td_json_is(below.schema, TD_JSON_TYPE_OBJECT)) {
            check_embedded(&below, child, result);
        }
    }
}

void td_schema_check(const struct td_json *schema, const struct td_json *object,
                     struct td_field_errors *errors)
{
    struct schema_work work = {.arena = errors->arena, .steps = TD_SCHEMA_STEPS_MAX};
    struct schema_result result = {.errors = {.arena = errors->arena}};
    struct schema_at root = {.work = &work, .schema = schema};
    if (!td_json_is(schema, TD_JSON_TYPE_OBJECT)) {
        return;
    }
    td_map_init(&work.patterns, SCHEMA_PATTERNS_MAX);
    check_value(&root, object, &result);
    check_embedded(&root, object, &result);
    td_structural_check_lists(&root, object, &result);
    td_map_done(&work.patterns);
    for (size_t i = 0; i < result.errors.count; i++) {
        const struct td_field_error *error = &result.errors.items[i];
        const struct td_field_path place = td_field_child(NULL, error->field);
        td_field_error_add(errors, &place, error->type, error->value, error->detail);
    }
    if (work.steps < 0) {
        const struct td_field_path nowhere = td_field_child(NULL, TD_STR("<nil>"));
        td_field_error_add(errors, &nowhere, TD_FIELD_INVALID, TD_STR("\"\""),
                           TD_STR("the object takes too long to check against its schema"));
    }
}
