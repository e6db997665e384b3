/*
 * Numbers. The validator that servers use holds bounds as floats and checks them, like the value,
 * against the range of the schema's type first: a bound that does not fit its type is an error of
 * every value. Whole values are then compared with the bound cut to a whole number.
 */
#include <float.h>
#include <math.h>

#include "kube/schema/schema_private.h"

struct number {
    bool is_whole; /* written as one */
    int64_t whole;
    double real;
};

static struct number number_of(const struct td_json *value)
{
    struct number number = {.is_whole = td_structural_is_integer(value)};
    if (number.is_whole) {
        (void)td_str_to_int64(value->text, &number.whole); /* was just tried */
    }
    if (!td_json_to_double(value, &number.real)) {
        number.real = value->text.ptr[0] == '-' ? -HUGE_VAL : HUGE_VAL;
    }
    return number;
}

static td_str number_text(struct td_arena *arena, double number)
{
    if (isinf(number)) {
        return number < 0 ? TD_STR("-Inf") : TD_STR("+Inf");
    }
    return td_field_double_text(arena, number);
}

/* Does it fit the schema's type and format? Says so when not. */
static bool number_fits(const struct schema_at *at, struct number number, const char *what,
                        struct schema_result *result)
{
    struct td_arena *arena = at->work->arena;
    bool is_single = td_structural_type_count(at->schema) == 1;
    bool is_integer = is_single && td_structural_has_type(at->schema, "integer");
    bool is_number = is_single && td_structural_has_type(at->schema, "number");
    td_str format = is_integer || is_number ? td_structural_format(at->schema) : TD_STR_EMPTY;
    bool fits = true;
    if (is_integer) {
        double low = td_str_equal(format, TD_STR("int32")) ? INT32_MIN : -0x1p63;
        double high = td_str_equal(format, TD_STR("int32")) ? INT32_MAX : 0x1p63;
        bool is_exact =
            number.is_whole || (number.real == trunc(number.real) && fabs(number.real) < 0x1p63);
        fits = is_exact && number.real >= low && number.real <= high;
    } else if (is_number && td_str_equal(format, TD_STR("float"))) {
        fits = fabs(number.real) <= (double)FLT_MAX;
    }
    if (fits) {
        return true;
    }
    td_str path = td_structural_path(at);
    const char *type = is_integer ? "integer" : "number";
    td_structural_add_bare(
        at, result,
        format.len > 0
            ? td_arena_format(arena, "%s value must be of type %s with format %.*s in %.*s", what,
                              type, TD_STR_ARG(format), TD_STR_ARG(path))
            : td_arena_format(arena, "%s value must be of type %s (default format) in %.*s", what,
                              type, TD_STR_ARG(path)));
    return false;
}

/* The whole part as Go converts it. */
static int64_t number_cut(double bound)
{
    if (bound >= 9223372036854775808.0 || bound < -9223372036854775808.0) {
        return INT64_MIN;
    }
    return (int64_t)bound;
}

struct number_bound {
    td_str key;
    td_str exclusive_key;
    const char *what;
    const char *words;
    const char *exclusive_words;
    int sign; /* of value minus bound when it holds */
};

static void number_check_bound(const struct schema_at *at, const struct td_json *value,
                               const struct number_bound *bound, struct schema_result *result)
{
    struct td_arena *arena = at->work->arena;
    const struct td_json *node = td_json_get(at->schema, bound->key);
    struct number number = number_of(value);
    if (!td_json_is(node, TD_JSON_TYPE_NUMBER)) {
        return;
    }
    struct number limit = {.real = number_of(node).real};
    bool is_exclusive = schema_flag(at->schema, bound->exclusive_key);
    bool is_native = number_fits(at, limit, bound->what, result) && number.is_whole;
    int64_t cut = number_cut(limit.real);
    int order = is_native ? (number.whole > cut) - (number.whole < cut)
                          : (number.real > limit.real) - (number.real < limit.real);
    if (order * bound->sign > 0 || (order == 0 && !is_exclusive)) {
        return;
    }
    td_str shown =
        is_native ? td_arena_format(arena, "%lld", (long long)cut) : number_text(arena, limit.real);
    td_str path = td_structural_path(at);
    td_structural_add(at, result, TD_FIELD_INVALID, td_structural_shown(arena, value),
                      td_arena_format(arena, "%.*s in body should be %s %.*s", TD_STR_ARG(path),
                                      is_exclusive ? bound->exclusive_words : bound->words,
                                      TD_STR_ARG(shown)));
}

static void number_check_multiple(const struct schema_at *at, const struct td_json *value,
                                  struct schema_result *result)
{
    struct td_arena *arena = at->work->arena;
    const struct td_json *node = td_json_get(at->schema, TD_STR("multipleOf"));
    struct number number = number_of(value);
    if (!td_json_is(node, TD_JSON_TYPE_NUMBER)) {
        return;
    }
    td_str path = td_structural_path(at);
    struct number factor = {.real = number_of(node).real};
    bool is_native = number_fits(at, factor, "MultipleOf", result) && number.is_whole;
    int64_t cut = number_cut(factor.real);
    td_str shown = is_native ? td_arena_format(arena, "%lld", (long long)cut)
                             : number_text(arena, factor.real);
    if (is_native ? cut <= 0 : factor.real <= 0) {
        td_structural_add(
            at, result, TD_FIELD_INVALID, shown,
            td_arena_format(arena, "factor MultipleOf declared for %.*s must be positive: %.*s",
                            TD_STR_ARG(path), TD_STR_ARG(shown)));
        return;
    }
    double quotient = factor.real < 1 ? 1 / factor.real * number.real : number.real / factor.real;
    if (is_native ? number.whole % cut == 0 : td_structural_is_whole_float(quotient)) {
        return;
    }
    td_structural_add(at, result, TD_FIELD_INVALID, td_structural_shown(arena, value),
                      td_arena_format(arena, "%.*s in body should be a multiple of %.*s",
                                      TD_STR_ARG(path), TD_STR_ARG(shown)));
}

void td_structural_check_number(const struct schema_at *at, const struct td_json *value,
                                struct schema_result *result)
{
    static const struct number_bound minimum = {
        TD_STR_INIT("minimum"), TD_STR_INIT("exclusiveMinimum"),
        "Minimum boundary",     "greater than or equal to",
        "greater than",         1};
    static const struct number_bound maximum = {TD_STR_INIT("maximum"),
                                                TD_STR_INIT("exclusiveMaximum"),
                                                "Maximum boundary",
                                                "less than or equal to",
                                                "less than",
                                                -1};
    (void)number_fits(at, number_of(value), "Checked", result); /* it has said so */
    number_check_multiple(at, value, result);
    number_check_bound(at, value, &minimum, result);
    number_check_bound(at, value, &maximum, result);
    result->matches++;
}
