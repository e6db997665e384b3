/* Factor and quantity boosts, their cap, the annotation that keeps the original resources, and the
 * time that a boost has left. */
#include "decide/vertical/patch/boost.h"

#include "base/error.h"
#include "base/limits.h"
#include "decide/vertical/patch/proportional.h"
#include "decide/vertical/resourcelist.h"

td_str td_boost_annotation(struct td_arena *arena, td_str container)
{
    return td_arena_format(arena, "%.*s%.*s", TD_STR_ARG(TD_BOOST_ANNOTATION_PREFIX),
                           TD_STR_ARG(container));
}

/* The boost that holds for a container, or NULL: its own before that of the spec. */
static const struct td_startup_boost *boost_of(const struct td_vpa *vpa, td_str container)
{
    const struct td_container_policy *policy = td_vpa_container_policy(&vpa->policy, container);
    const struct td_startup_boost *boost =
        policy && policy->startup_boost.is_set ? &policy->startup_boost : &vpa->startup_boost;
    return boost->is_set && boost->has_cpu ? boost : NULL;
}

static int64_t clamp(__int128 value)
{
    return value > INT64_MAX ? INT64_MAX : value < INT64_MIN ? INT64_MIN : (int64_t)value;
}

static int boost_amount(const struct td_startup_boost *boost, const struct td_quantity *base,
                        struct td_quantity *ret, struct td_error *err)
{
    int64_t milli = td_quantity_milli(base);
    bool is_factor = boost->type == TD_BOOST_FACTOR || boost->type_text.len == 0;
    if (is_factor && !boost->has_factor) {
        return td_error_set(err, TD_INVALID,
                            "startupBoost.CPU.Factor is required when Type is Factor or not "
                            "specified");
    }
    if (is_factor && boost->factor < 1) {
        return td_error_set(err, TD_INVALID, "boost factor must be >= 1");
    }
    if (!is_factor && boost->type != TD_BOOST_QUANTITY) {
        return td_error_set(err, TD_INVALID, "unsupported startup boost type: %.*s",
                            TD_STR_ARG(boost->type_text));
    }
    if (!is_factor && !boost->has_quantity) {
        return td_error_set(err, TD_INVALID,
                            "startupBoost.CPU.Quantity is required when Type is Quantity");
    }
    __int128 amount = is_factor ? (__int128)milli * boost->factor
                                : (__int128)milli + td_quantity_milli(&boost->quantity);
    *ret = td_quantity_new_milli(clamp(amount), TD_QUANTITY_DECIMAL_SI);
    return TD_OK;
}

/* A request above the limit would be refused; one thousandth below it keeps the quality of service
 * class. */
static struct td_quantity below_limit(struct td_arena *arena, const struct td_quantity *request,
                                      const struct td_quantity *limit)
{
    if (!limit || td_quantity_milli(request) <= td_quantity_milli(limit)) {
        return *request;
    }
    const struct td_quantity one = td_quantity_new_milli(1, TD_QUANTITY_DECIMAL_SI);
    struct td_quantity held = *limit;
    if (td_quantity_compare(limit, &one) > 0) {
        td_quantity_sub(arena, &held, &one);
    }
    return held;
}

/* {"requests":{...},"limits":{...}} with cpu and memory of the spec. */
static td_str original_text(struct td_arena *arena, const struct td_pod_container *container)
{
    const struct td_resource_list *lists[] = {&container->spec_requests, &container->spec_limits};
    const td_str names[] = {TD_CPU, TD_MEMORY};
    struct td_json *objects[2];
    for (size_t l = 0; l < 2; l++) {
        struct td_resource_list kept = {.items = NULL, .count = 0};
        for (size_t n = 0; n < 2; n++) {
            const struct td_quantity *found = td_resource_list_get(lists[l], names[n]);
            if (found) {
                td_resource_list_set(arena, &kept, names[n], found);
            }
        }
        objects[l] = td_resource_list_json(arena, &kept);
    }
    struct td_json *original = td_json_new_object(arena);
    td_json_set(arena, original, TD_STR("requests"), objects[0]);
    td_json_set(arena, original, TD_STR("limits"), objects[1]);
    td_auto_buf text = td_buf_capped(TD_JSON_BYTES_MAX);
    td_json_write(original, &(struct td_json_format){.escape_html = true}, &text);
    return td_arena_copy_str(arena, td_buf_str(&text));
}

int td_boost_apply(struct td_arena *arena, const struct td_vpa *vpa,
                   const struct td_pod_container *container, const struct td_quantity *max_boost,
                   struct td_container_change *change, td_str *ret_original, struct td_error *err)
{
    const struct td_startup_boost *boost = boost_of(vpa, container->name);
    const struct td_container_policy *policy =
        td_vpa_container_policy(&vpa->policy, container->name);
    if (!boost) {
        *ret_original = TD_STR_EMPTY;
        return TD_OK;
    }
    struct td_quantity base = td_resource_list_value(&change->requests, TD_CPU);
    if (td_quantity_sign(&base) == 0) {
        base = td_resource_list_value(&container->spec_requests, TD_CPU);
    }
    struct td_quantity boosted;
    int code = boost_amount(boost, &base, &boosted, err);
    if (code < 0) {
        return code;
    }
    if (max_boost && td_quantity_sign(max_boost) != 0 &&
        td_quantity_compare(&boosted, max_boost) > 0) {
        boosted = *max_boost;
    }
    const struct td_quantity *limit = td_resource_list_get(&container->spec_limits, TD_CPU);
    if (policy && policy->is_requests_only) {
        boosted = below_limit(arena, &boosted, limit);
    } else {
        const struct td_proportion proportion = {
            .limit = limit,
            .request = td_resource_list_get(&container->spec_requests, TD_CPU),
            .recommended = &boosted,
        };
        struct td_proportional_limit made = td_proportional_limit(TD_CPU, &proportion);
        if (made.is_set) {
            td_resource_list_set(arena, &change->limits, TD_CPU, &made.limit);
        }
    }
    td_resource_list_set(arena, &change->requests, TD_CPU, &boosted);
    *ret_original = original_text(arena, container);
    return TD_OK;
}

static td_duration boost_duration(const struct td_vpa *vpa, td_str container)
{
    const struct td_container_policy *policy = td_vpa_container_policy(&vpa->policy, container);
    const struct td_startup_boost *boost =
        policy && policy->startup_boost.has_duration ? &policy->startup_boost : &vpa->startup_boost;
    return boost->has_duration ? boost->duration_seconds * TD_SECOND : 0;
}

/* How long ago the pod became Ready; without a time, for ever. */
static td_duration ready_for(const struct td_pod *pod, td_time now)
{
    td_duration passed = 0;
    if (pod->ready_since == TD_TIME_NONE ||
        __builtin_sub_overflow(now, pod->ready_since, &passed)) {
        return INT64_MAX;
    }
    return passed;
}

/* The container an annotation is about, or the empty slice. */
static td_str boosted_container(td_str annotation)
{
    return td_str_starts_with(annotation, TD_BOOST_ANNOTATION_PREFIX)
               ? td_str_slice(annotation, TD_BOOST_ANNOTATION_PREFIX.len, annotation.len)
               : TD_STR_EMPTY;
}

bool td_boost_is_expired(const struct td_pod *pod, const struct td_vpa *vpa, td_str annotation,
                         td_time now)
{
    if (pod->ready != TD_CONDITION_TRUE ||
        !td_str_starts_with(annotation, TD_BOOST_ANNOTATION_PREFIX)) {
        return false;
    }
    td_duration duration = boost_duration(vpa, boosted_container(annotation));
    return duration == 0 || ready_for(pod, now) > duration;
}

bool td_boost_is_in_progress(const struct td_pod *pod)
{
    const struct td_json *item = td_json_first_member(pod->meta.annotations);
    for (; item; item = item->next) {
        if (td_str_starts_with(item->key, TD_BOOST_ANNOTATION_PREFIX)) {
            return true;
        }
    }
    return false;
}

td_duration td_boost_remaining(const struct td_pod *pod, const struct td_vpa *vpa, td_time now)
{
    td_duration shortest = 0;
    const struct td_json *item = td_json_first_member(pod->meta.annotations);
    for (; item && pod->ready == TD_CONDITION_TRUE; item = item->next) {
        if (!td_str_starts_with(item->key, TD_BOOST_ANNOTATION_PREFIX)) {
            continue;
        }
        td_duration left = 0;
        bool is_past = __builtin_sub_overflow(boost_duration(vpa, boosted_container(item->key)),
                                              ready_for(pod, now), &left) ||
                       left <= 0;
        if (!is_past && (shortest == 0 || left < shortest)) {
            shortest = left;
        }
    }
    return shortest;
}

int td_boost_original(struct td_arena *arena, const struct td_pod *pod, td_str container,
                      struct td_resource_list *ret_requests, struct td_resource_list *ret_limits,
                      struct td_error *err)
{
    td_str name = td_boost_annotation(arena, container);
    td_str text = td_json_get_str(pod->meta.annotations, name, TD_STR_EMPTY);
    struct td_json *tree = NULL;
    struct td_resource_list requests = {.items = NULL, .count = 0};
    struct td_resource_list limits = {.items = NULL, .count = 0};
    int code = td_json_parse(arena, text, NULL, &tree, err);
    bool is_object = code == TD_OK && td_json_is(tree, TD_JSON_TYPE_OBJECT);
    if (code == TD_OK && !is_object && !td_json_is(tree, TD_JSON_TYPE_NULL)) {
        code = td_error_set(err, TD_INVALID, "must be an object");
    }
    if (is_object) {
        code =
            td_resource_list_decode(arena, td_json_get(tree, TD_STR("requests")), &requests, err);
    }
    if (is_object && code == TD_OK) {
        code = td_resource_list_decode(arena, td_json_get(tree, TD_STR("limits")), &limits, err);
    }
    if (code < 0) {
        return td_error_wrap(err, code, "annotation '%.*s'", TD_STR_ARG(name));
    }
    *ret_requests = requests;
    *ret_limits = limits;
    return TD_OK;
}
