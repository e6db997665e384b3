/* Topics of quantities, times, int-or-string and pod requests. */
#include "golden/golden.h"

#include "kube/intstr.h"
#include "kube/metatime.h"
#include "kube/podresources.h"
#include "kube/quantity/quantity.h"

#define TEXT_BYTES_MAX ((size_t)1 << 20)

static struct td_json *new_text(struct td_arena *arena, td_str text)
{
    return td_json_new_string(arena, td_arena_copy_str(arena, text));
}

static struct td_json *new_buf(struct td_arena *arena, const struct td_buf *buf)
{
    return new_text(arena, td_buf_str(buf));
}

static struct td_json *new_int64_text(struct td_arena *arena, int64_t value)
{
    return td_json_new_string(arena, td_arena_format(arena, "%lld", (long long)value));
}

static void put_canonical(struct td_arena *arena, struct td_json *out, td_str key,
                          const struct td_quantity *quantity)
{
    td_auto_buf buf;
    td_buf_init(&buf, TEXT_BYTES_MAX);
    td_quantity_write_canonical(quantity, &buf);
    td_json_set(arena, out, key, new_buf(arena, &buf));
}

static void put_text(struct td_arena *arena, struct td_json *out,
                     const struct td_quantity *quantity)
{
    td_json_set(arena, out, TD_STR("string"),
                td_json_new_string(arena, td_quantity_text(arena, quantity)));
}

/* value and milliValue may be null where upstream's answer is no answer: then they are not
 * compared. */
static void put_values(struct td_arena *arena, struct td_json *out,
                       const struct td_quantity *quantity)
{
    td_json_set(arena, out, TD_STR("format"),
                td_json_new_string(arena, td_quantity_format_name(quantity->format)));
    td_json_set(arena, out, TD_STR("value"), new_int64_text(arena, td_quantity_value(quantity)));
    td_json_set(arena, out, TD_STR("milliValue"),
                new_int64_text(arena, td_quantity_milli(quantity)));
}

static bool member_is_same(const struct td_json *expected, const struct td_json *got)
{
    bool is_value = td_str_equal(expected->key, TD_STR("value")) ||
                    td_str_equal(expected->key, TD_STR("milliValue"));
    if (is_value && expected->type == TD_JSON_TYPE_NULL) {
        return got != NULL;
    }
    /* Floats are written with 17 digits there: equal doubles, not equal decimals. */
    double wanted = 0;
    double is = 0;
    if (td_str_equal(expected->key, TD_STR("float")) && td_json_to_double(expected, &wanted)) {
        return got && td_json_to_double(got, &is) && is == wanted;
    }
    return td_json_equal(expected, got);
}

static bool quantity_is_same(const struct td_json *expected, const struct td_json *got)
{
    if (!td_json_is(expected, TD_JSON_TYPE_OBJECT) || expected->count != got->count) {
        return false;
    }
    for (const struct td_json *member = td_json_first_child(expected); member;
         member = member->next) {
        if (!member_is_same(member, td_json_get(got, member->key))) {
            return false;
        }
    }
    return true;
}

static int quantity_parse_run(struct td_arena *arena, const struct td_json *in,
                              struct td_json **ret_out, struct td_error *err)
{
    struct td_quantity quantity;
    const struct td_json *token = td_json_get(in, TD_STR("json"));
    int code = token ? td_quantity_parse_json(arena, token->text, &quantity, err)
                     : td_quantity_parse(arena, td_json_get_str(in, TD_STR("s"), TD_STR_EMPTY),
                                         &quantity, err);
    if (code != TD_OK) {
        return code;
    }
    struct td_json *out = td_json_new_object(arena);
    put_text(arena, out, &quantity);
    put_canonical(arena, out, TD_STR("canonical"), &quantity);
    put_values(arena, out, &quantity);
    td_json_set(arena, out, TD_STR("sign"), td_json_new_int64(arena, td_quantity_sign(&quantity)));
    *ret_out = out;
    return TD_OK;
}

static enum td_quantity_format format_from(td_str name)
{
    enum td_quantity_format format = TD_QUANTITY_DECIMAL_EXPONENT;
    while (format > TD_QUANTITY_NONE && !td_str_equal(td_quantity_format_name(format), name)) {
        format--;
    }
    return format;
}

/* The operations that make a quantity from numbers; false when `op` is another. */
static bool quantity_make(const struct td_json *in, td_str op, struct td_quantity *ret)
{
    int64_t number = 0;
    (void)td_str_to_int64(td_json_get_str(in, TD_STR("n"), TD_STR_EMPTY), &number); /* else 0 */
    td_str format = td_json_get_str(in, TD_STR("format"), TD_STR_EMPTY);
    int64_t scale = td_json_get_int64(in, TD_STR("scale"), 0);
    if (td_str_equal(op, TD_STR("new"))) {
        *ret = td_quantity_new(number, format_from(format));
    } else if (td_str_equal(op, TD_STR("newMilli"))) {
        *ret = td_quantity_new_milli(number, format_from(format));
    } else if (td_str_equal(op, TD_STR("newScaled"))) {
        *ret = td_quantity_new_scaled(number, (int32_t)scale);
    } else {
        return false;
    }
    return true;
}

/* The operations on one quantity; false when `op` is another. */
static bool quantity_unary(struct td_arena *arena, const struct td_json *in, td_str op,
                           struct td_quantity *a, struct td_json *out)
{
    if (td_str_equal(op, TD_STR("float"))) {
        td_json_set(arena, out, TD_STR("float"),
                    td_json_new_double(arena, td_quantity_to_double(a)));
        return true;
    }
    if (td_str_equal(op, TD_STR("neg"))) {
        td_quantity_negate(arena, a);
    } else if (td_str_equal(op, TD_STR("mul"))) {
        int64_t factor = 0;
        (void)td_str_to_int64(td_json_get_str(in, TD_STR("n"), TD_STR_EMPTY), &factor); /* else 0 */
        td_json_set(arena, out, TD_STR("ok"),
                    td_json_new_bool(arena, td_quantity_multiply(arena, a, factor)));
    } else if (td_str_equal(op, TD_STR("roundUp"))) {
        int64_t scale = td_json_get_int64(in, TD_STR("scale"), 0);
        td_json_set(arena, out, TD_STR("ok"),
                    td_json_new_bool(arena, td_quantity_round_up(arena, a, (int32_t)scale)));
    } else {
        return false;
    }
    put_text(arena, out, a);
    return true;
}

static int quantity_math_run(struct td_arena *arena, const struct td_json *in,
                             struct td_json **ret_out, struct td_error *err)
{
    td_str op = td_json_get_str(in, TD_STR("op"), TD_STR_EMPTY);
    struct td_json *out = td_json_new_object(arena);
    *ret_out = out;
    struct td_quantity a;
    if (quantity_make(in, op, &a)) {
        put_text(arena, out, &a);
        return TD_OK;
    }
    int code = td_quantity_parse(arena, td_json_get_str(in, TD_STR("a"), TD_STR_EMPTY), &a, err);
    if (code != TD_OK || quantity_unary(arena, in, op, &a, out)) {
        return code;
    }
    struct td_quantity b;
    code = td_quantity_parse(arena, td_json_get_str(in, TD_STR("b"), TD_STR_EMPTY), &b, err);
    if (code != TD_OK) {
        return code;
    }
    if (td_str_equal(op, TD_STR("cmp"))) {
        td_json_set(arena, out, TD_STR("cmp"),
                    td_json_new_int64(arena, td_quantity_compare(&a, &b)));
        return TD_OK;
    }
    if (td_str_equal(op, TD_STR("add"))) {
        td_quantity_add(arena, &a, &b);
    } else if (td_str_equal(op, TD_STR("sub"))) {
        td_quantity_sub(arena, &a, &b);
    } else {
        return td_error_set(err, TD_INVALID, "unknown op '%.*s'", TD_STR_ARG(op));
    }
    put_text(arena, out, &a);
    put_values(arena, out, &a);
    return TD_OK;
}

static void put_intstr(struct td_arena *arena, struct td_json *out, const struct td_intstr *value)
{
    td_auto_buf text;
    td_buf_init(&text, TEXT_BYTES_MAX);
    td_intstr_write(value, &text);
    td_auto_buf token;
    td_buf_init(&token, TEXT_BYTES_MAX);
    td_intstr_write_json(value, &token);
    td_json_set(arena, out, TD_STR("type"),
                td_json_new_string(arena, value->is_string ? TD_STR("string") : TD_STR("int")));
    td_json_set(arena, out, TD_STR("string"), new_buf(arena, &text));
    td_json_set(arena, out, TD_STR("json"), new_buf(arena, &token));
    td_json_set(arena, out, TD_STR("intValue"),
                td_json_new_int64(arena, td_intstr_int_value(value)));
}

static int intstr_scaled_run(struct td_arena *arena, const struct td_json *in, struct td_json *out,
                             struct td_error *err)
{
    td_auto_buf token;
    td_buf_init(&token, TEXT_BYTES_MAX);
    td_json_write(td_json_get(in, TD_STR("value")), &(struct td_json_format){.indent = 0}, &token);
    struct td_intstr value;
    int code =
        td_intstr_parse_json(arena, td_arena_copy_str(arena, td_buf_str(&token)), &value, err);
    if (code != TD_OK) {
        return code;
    }
    int64_t scaled = 0;
    code = td_intstr_scaled(&value, td_json_get_int64(in, TD_STR("total"), 0),
                            td_json_get_bool(in, TD_STR("roundUp"), false), &scaled, err);
    if (code == TD_OK) {
        td_json_set(arena, out, TD_STR("value"), td_json_new_int64(arena, scaled));
    }
    return code;
}

static int intstr_run(struct td_arena *arena, const struct td_json *in, struct td_json **ret_out,
                      struct td_error *err)
{
    td_str op = td_json_get_str(in, TD_STR("op"), TD_STR_EMPTY);
    struct td_json *out = td_json_new_object(arena);
    *ret_out = out;
    if (td_str_equal(op, TD_STR("scaled"))) {
        return intstr_scaled_run(arena, in, out, err);
    }
    struct td_intstr value;
    if (td_str_equal(op, TD_STR("parse"))) {
        value = td_intstr_parse(td_json_get_str(in, TD_STR("s"), TD_STR_EMPTY));
    } else {
        int code = td_intstr_parse_json(arena, td_json_get_str(in, TD_STR("json"), TD_STR_EMPTY),
                                        &value, err);
        if (code != TD_OK) {
            return code;
        }
    }
    put_intstr(arena, out, &value);
    return TD_OK;
}

static int duration_run(struct td_arena *arena, const struct td_json *in, struct td_json *out,
                        struct td_error *err)
{
    const struct td_json *token = td_json_get(in, TD_STR("json"));
    td_duration duration = 0;
    if (token) {
        int code = td_metaduration_parse_json(token->text, &duration, err);
        if (code != TD_OK) {
            return code;
        }
        td_json_set(arena, out, TD_STR("nanos"), new_int64_text(arena, duration));
    } else if (!td_str_to_int64(td_json_get_str(in, TD_STR("nanos"), TD_STR_EMPTY), &duration)) {
        return td_error_set(err, TD_INVALID, "nanos is no integer");
    }
    td_auto_buf buf;
    td_buf_init(&buf, TEXT_BYTES_MAX);
    td_metaduration_write_json(duration, &buf);
    td_json_set(arena, out, TD_STR("json"), new_buf(arena, &buf));
    return TD_OK;
}

static int time_run(struct td_arena *arena, const struct td_json *in, struct td_json **ret_out,
                    struct td_error *err)
{
    struct td_json *out = td_json_new_object(arena);
    *ret_out = out;
    td_str type = td_json_get_str(in, TD_STR("type"), TD_STR_EMPTY);
    if (td_str_equal(type, TD_STR("Duration"))) {
        return duration_run(arena, in, out, err);
    }
    bool is_micro = td_str_equal(type, TD_STR("MicroTime"));
    const struct td_json *token = td_json_get(in, TD_STR("json"));
    struct td_instant instant = {
        .unix_seconds = td_json_get_int64(in, TD_STR("unix"), 0),
        .nanos = (int32_t)td_json_get_int64(in, TD_STR("nanos"), 0),
    };
    if (token) {
        int code = is_micro ? td_microtime_parse_json(token->text, &instant, err)
                            : td_metatime_parse_json(token->text, &instant, err);
        if (code != TD_OK) {
            return code;
        }
        bool is_zero = instant.unix_seconds == TD_INSTANT_ZERO.unix_seconds && instant.nanos == 0;
        td_json_set(arena, out, TD_STR("unix"), td_json_new_int64(arena, instant.unix_seconds));
        td_json_set(arena, out, TD_STR("nanos"), td_json_new_int64(arena, instant.nanos));
        td_json_set(arena, out, TD_STR("zero"), td_json_new_bool(arena, is_zero));
    }
    td_auto_buf buf;
    td_buf_init(&buf, TEXT_BYTES_MAX);
    if (is_micro) {
        td_microtime_write_json(instant, &buf);
    } else {
        td_metatime_write_json(instant, &buf);
    }
    td_json_set(arena, out, TD_STR("json"), new_buf(arena, &buf));
    return TD_OK;
}

static struct td_json *resources_to_json(struct td_arena *arena,
                                         const struct td_resource_list *list)
{
    struct td_json *object = td_json_new_object(arena);
    for (size_t i = 0; i < list->count; i++) {
        td_str text = td_quantity_text(arena, &list->items[i].quantity);
        td_json_set(arena, object, list->items[i].name, td_json_new_string(arena, text));
    }
    return object;
}

static int pod_requests_run(struct td_arena *arena, const struct td_json *in,
                            struct td_json **ret_out, struct td_error *err)
{
    const struct td_json *options = td_json_get(in, TD_STR("options"));
    struct td_pod_resource_options wanted = {
        .use_status_resources = td_json_get_bool(options, TD_STR("useStatusResources"), false),
        .in_place_pod_level_resources =
            td_json_get_bool(options, TD_STR("inPlacePodLevelResources"), false),
        .exclude_overhead = td_json_get_bool(options, TD_STR("excludeOverhead"), false),
        .skip_pod_level_resources =
            td_json_get_bool(options, TD_STR("skipPodLevelResources"), false),
        .skip_container_level_resources =
            td_json_get_bool(options, TD_STR("skipContainerLevelResources"), false),
        .non_missing_container_requests =
            td_json_get(options, TD_STR("nonMissingContainerRequests")),
    };
    const struct td_json *pod = td_json_get(in, TD_STR("pod"));
    struct td_resource_list requests;
    int code = td_pod_requests(arena, pod, &wanted, &requests, err);
    if (code != TD_OK) {
        return code;
    }
    struct td_resource_list limits;
    code = td_pod_limits(arena, pod, &wanted, &limits, err);
    if (code != TD_OK) {
        return code;
    }
    struct td_json *out = td_json_new_object(arena);
    td_json_set(arena, out, TD_STR("requests"), resources_to_json(arena, &requests));
    td_json_set(arena, out, TD_STR("limits"), resources_to_json(arena, &limits));
    *ret_out = out;
    return TD_OK;
}

const struct golden_topic golden_kube_values[] = {
    {.name = "kube/quantity-parse", .run = quantity_parse_run, .is_same = quantity_is_same},
    {.name = "kube/quantity-math", .run = quantity_math_run, .is_same = quantity_is_same},
    {.name = "kube/int-or-string", .run = intstr_run},
    {.name = "kube/time", .run = time_run},
    {.name = "kube/pod-requests", .run = pod_requests_run},
    {.name = NULL},
};
