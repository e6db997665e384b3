/* Hvpa: decoding with defaults, validation, ownership of targets. */
#include "golden/golden.h"

#include "api/hvpa/hvpa.h"
#include "base/limits.h"
#include "decide/tandem/ownership.h"
#include "support/hvpa_normal_form.h"

static void set_text(struct td_arena *arena, struct td_json *object, td_str key, td_str text)
{
    td_json_set(arena, object, key, td_json_new_string(arena, text));
}

static void set_int(struct td_arena *arena, struct td_json *object, td_str key, int64_t value)
{
    td_json_set(arena, object, key, td_json_new_int64(arena, value));
}

static void set_optional(struct td_arena *arena, struct td_json *object, td_str key, bool has,
                         int64_t value)
{
    td_json_set(arena, object, key,
                has ? td_json_new_int64(arena, value) : td_json_new_null(arena));
}

static struct td_json *resources_json(struct td_arena *arena, const struct td_resource_list *list)
{
    struct td_json *object = td_json_new_object(arena);
    for (size_t i = 0; i < list->count; i++) {
        set_text(arena, object, list->items[i].name,
                 td_quantity_text(arena, &list->items[i].quantity));
    }
    return object;
}

/* What the vectors add to, or write differently from, the object's own normal form. */

static td_str target_type_name(enum td_hpa_target_type type)
{
    static const td_str names[] = {TD_STR_INIT("Utilization"), TD_STR_INIT("Value"),
                                   TD_STR_INIT("AverageValue"), TD_STR_INIT("?")};
    return names[type];
}

static struct td_json *hpa_json(struct td_arena *arena, const struct td_hvpa *hvpa)
{
    if (!hvpa->has_hpa) {
        return td_json_new_null(arena);
    }
    struct td_json *made = td_json_new_object(arena);
    struct td_json *metrics = td_json_new_array(arena);
    set_int(arena, made, TD_STR("minReplicas"), hvpa->hpa.min_replicas);
    set_int(arena, made, TD_STR("maxReplicas"), hvpa->hpa.max_replicas);
    for (size_t i = 0; i < hvpa->hpa.metric_count; i++) {
        const struct td_hpa_metric *from = &hvpa->hpa.metrics[i];
        struct td_json *item = td_json_new_object(arena);
        set_text(arena, item, TD_STR("type"), from->type_text);
        set_text(arena, item, TD_STR("name"), from->name);
        td_json_set(arena, item, TD_STR("container"),
                    from->container.len > 0 ? td_json_new_string(arena, from->container)
                                            : td_json_new_null(arena));
        set_text(arena, item, TD_STR("targetType"), target_type_name(from->target.type));
        set_optional(arena, item, TD_STR("averageUtilization"),
                     from->target.has_average_utilization, from->target.average_utilization);
        td_json_append(metrics, item);
    }
    td_json_set(arena, made, TD_STR("metrics"), metrics);
    return made;
}

static struct td_json *controlled_json(struct td_arena *arena,
                                       const struct td_container_policy *policy)
{
    struct td_json *list = td_json_new_array(arena);
    static const td_str names[] = {TD_STR_INIT("cpu"), TD_STR_INIT("memory")};
    for (size_t i = 0; i < 2 && !policy->has_controlled_resources; i++) {
        td_json_append(list, td_json_new_string(arena, names[i]));
    }
    for (size_t i = 0; i < policy->controlled_resource_count; i++) {
        td_json_append(list, td_json_new_string(arena, policy->controlled_resources[i]));
    }
    return list;
}

static struct td_json *vpa_json(struct td_arena *arena, const struct td_hvpa *hvpa)
{
    if (!hvpa->has_vpa) {
        return td_json_new_null(arena);
    }
    struct td_json *made = td_json_new_object(arena);
    struct td_json *list = td_json_new_array(arena);
    set_text(arena, made, TD_STR("updateMode"),
             hvpa->vpa.mode == TD_VPA_OFF ? TD_STR("Off") : TD_STR("?"));
    for (size_t i = 0; i < hvpa->vpa.policy.container_count; i++) {
        const struct td_container_policy *from = &hvpa->vpa.policy.containers[i];
        struct td_json *item = td_json_new_object(arena);
        set_text(arena, item, TD_STR("containerName"), from->container_name);
        td_json_set(arena, item, TD_STR("minAllowed"), resources_json(arena, &from->min_allowed));
        td_json_set(arena, item, TD_STR("maxAllowed"), resources_json(arena, &from->max_allowed));
        td_json_set(arena, item, TD_STR("controlledResources"), controlled_json(arena, from));
        set_text(arena, item, TD_STR("controlledValues"),
                 from->is_requests_only ? TD_STR("RequestsOnly") : TD_STR("RequestsAndLimits"));
        td_json_append(list, item);
    }
    td_json_set(arena, made, TD_STR("containerPolicies"), list);
    return made;
}

/* {updateMode, stabilizationSeconds, minChange} in place of our own policy. */
static void flatten_policy(struct td_arena *arena, struct td_json *axis, td_str key,
                           const struct td_hvpa_scale_policy *policy)
{
    struct td_json *given = td_json_get(axis, key);
    struct td_json *change = td_json_get(given, TD_STR("minChange"));
    struct td_json *made = td_json_new_object(arena);
    set_text(arena, made, TD_STR("updateMode"), td_hvpa_update_name(policy->update));
    td_json_set(arena, made, TD_STR("stabilizationSeconds"),
                td_json_new_double(arena, (double)policy->stabilization / (double)TD_SECOND));
    td_json_set(arena, made, TD_STR("minChange"),
                change ? td_json_copy(arena, change, false) : td_json_new_object(arena));
    td_json_set(arena, axis, key, made);
}

static td_str time_text(struct td_arena *arena, int32_t second)
{
    return td_arena_format(arena, "%02d%02d%02d", second / 3600, second / 60 % 60, second % 60);
}

static struct td_json *spec_json(struct td_arena *arena, const struct td_hvpa *hvpa)
{
    struct td_json *spec = hvpa_normal_form(arena, hvpa);
    struct td_json *ratio = td_json_get(spec, TD_STR("ratioBasedScalingSpec"));
    struct td_json *horizontal = td_json_get(spec, TD_STR("horizontal"));
    struct td_json *vertical = td_json_get(spec, TD_STR("vertical"));
    (void)td_json_remove(spec, TD_STR("hpaSpec"));
    (void)td_json_remove(spec, TD_STR("vpaSpec"));
    td_json_set(arena, spec, TD_STR("hpa"), hpa_json(arena, hvpa));
    td_json_set(arena, spec, TD_STR("vpa"), vpa_json(arena, hvpa));
    set_optional(arena, spec, TD_STR("replicas"), hvpa->has_replicas, hvpa->replicas);
    set_optional(arena, ratio, TD_STR("startReplicaCount"), hvpa->ratio.has_start,
                 hvpa->ratio.start);
    set_optional(arena, ratio, TD_STR("finishReplicaCount"), hvpa->ratio.has_finish,
                 hvpa->ratio.finish);
    flatten_policy(arena, horizontal, TD_STR("scaleUp"), &hvpa->horizontal_up);
    flatten_policy(arena, horizontal, TD_STR("scaleDown"), &hvpa->horizontal_down);
    flatten_policy(arena, vertical, TD_STR("scaleUp"), &hvpa->vertical_up);
    flatten_policy(arena, vertical, TD_STR("scaleDown"), &hvpa->vertical_down);
    if (!td_json_get(vertical, TD_STR("limitsRequestsGapScaleParams"))) {
        td_json_set(arena, vertical, TD_STR("limitsRequestsGapScaleParams"),
                    td_json_new_object(arena));
    }
    struct td_json *window = td_json_new_null(arena);
    if (hvpa->window.is_set) {
        window = td_json_new_object(arena);
        set_text(arena, window, TD_STR("beginUTC"), time_text(arena, hvpa->window.begin_second));
        set_text(arena, window, TD_STR("endUTC"), time_text(arena, hvpa->window.end_second));
    }
    td_json_set(arena, spec, TD_STR("maintenanceTimeWindow"), window);
    return spec;
}

/* The normal form is read back as well: it must mean the same. */
static int run_decode(struct td_arena *arena, const struct td_json *in, struct td_json **ret,
                      struct td_error *err)
{
    struct td_hvpa hvpa;
    const struct td_json *object = td_json_get(in, TD_STR("object"));
    int code = td_hvpa_decode(arena, object, &hvpa, NULL, err);
    if (code < 0) {
        return code;
    }
    struct td_json *again = td_json_copy(arena, object, false);
    struct td_hvpa same;
    td_json_set(arena, again, TD_STR("spec"), hvpa_normal_form(arena, &hvpa));
    code = td_hvpa_decode(arena, again, &same, NULL, err);
    if (code < 0) {
        return td_error_wrap(err, code, "the normal form is refused");
    }
    struct td_json *spec = spec_json(arena, &hvpa);
    *ret = td_json_new_object(arena);
    td_json_set(arena, *ret, TD_STR("spec"), spec);
    if (!td_json_equal(spec, spec_json(arena, &same))) {
        set_text(arena, *ret, TD_STR("normalForm"), TD_STR("means something else"));
    }
    return TD_OK;
}

static int run_validate(struct td_arena *arena, const struct td_json *in, struct td_json **ret,
                        struct td_error *err)
{
    struct td_hvpa hvpa;
    struct td_hvpa_findings findings;
    int code = td_hvpa_decode(arena, td_json_get(in, TD_STR("object")), &hvpa, &findings, err);
    *ret = td_json_new_object(arena);
    td_json_set(arena, *ret, TD_STR("accepted"), td_json_new_bool(arena, code == TD_OK));
    if (code < 0) {
        set_text(arena, *ret, TD_STR("reason"),
                 findings.is_target_mismatch ? TD_STR("TargetMismatch") : TD_STR("InvalidSpec"));
        set_text(arena, *ret, TD_STR("path"), findings.errors.items[0].field);
        set_text(arena, *ret, TD_STR("message"), td_arena_format(arena, "%s", err->message));
    }
    return TD_OK;
}

static bool contains(td_str text, td_str part)
{
    for (size_t i = 0; i + part.len <= text.len; i++) {
        if (memcmp(text.ptr + i, part.ptr, part.len) == 0) {
            return true;
        }
    }
    return false;
}

/* One of the paths is named by the message. */
static bool is_same_verdict(const struct td_json *expected, const struct td_json *got)
{
    if (!td_json_equal(td_json_get(expected, TD_STR("accepted")),
                       td_json_get(got, TD_STR("accepted"))) ||
        !td_json_equal(td_json_get(expected, TD_STR("reason")),
                       td_json_get(got, TD_STR("reason")))) {
        return false;
    }
    const struct td_json *paths = td_json_get(expected, TD_STR("pathAnyOf"));
    td_str message = td_json_get_str(got, TD_STR("message"), TD_STR_EMPTY);
    bool is_named = !paths;
    for (const struct td_json *path = td_json_first_child(paths); path; path = path->next) {
        is_named = is_named || contains(message, path->text);
    }
    return is_named;
}

/* --- ownership --- */

static struct td_ownership_target read_target(const struct td_json *object, td_str namespace)
{
    return (struct td_ownership_target){
        .namespace = namespace,
        .kind = td_json_get_str(object, TD_STR("kind"), TD_STR_EMPTY),
        .name = td_json_get_str(object, TD_STR("name"), TD_STR_EMPTY),
    };
}

static struct td_ownership_object read_owner(const struct td_json *item)
{
    static const td_str kinds[] = {
        [TD_OWNERSHIP_HVPA] = TD_STR_INIT("Hvpa"),
        [TD_OWNERSHIP_HPA] = TD_STR_INIT("HorizontalPodAutoscaler"),
        [TD_OWNERSHIP_SCALED_OBJECT] = TD_STR_INIT("ScaledObject"),
        [TD_OWNERSHIP_VPA] = TD_STR_INIT("VerticalPodAutoscaler"),
    };
    td_str kind = td_json_get_str(item, TD_STR("kind"), TD_STR_EMPTY);
    struct td_ownership_object made = {
        .name = td_json_get_str(item, TD_STR("name"), TD_STR_EMPTY),
        .created = TD_INSTANT_ZERO,
        .target = read_target(td_json_get(item, TD_STR("target")),
                              td_json_get_str(item, TD_STR("namespace"), TD_STR_EMPTY)),
        .is_off =
            td_str_equal(td_json_get_str(item, TD_STR("updateMode"), TD_STR_EMPTY), TD_STR("Off")),
    };
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (td_str_equal(kind, kinds[i])) {
            made.kind = (enum td_ownership_kind)i;
        }
    }
    (void)td_time_parse(td_json_get_str(item, TD_STR("creationTimestamp"), TD_STR_EMPTY),
                        &made.created, NULL);
    return made;
}

static int run_ownership(struct td_arena *arena, const struct td_json *in, struct td_json **ret,
                         struct td_error *err)
{
    (void)err;
    const struct td_json *list = td_json_get(in, TD_STR("objects"));
    struct td_ownership_object *objects =
        td_arena_array(arena, struct td_ownership_object, list->count);
    size_t count = 0;
    for (const struct td_json *item = td_json_first_child(list); item; item = item->next) {
        objects[count++] = read_owner(item);
    }
    struct td_ownership_target target = read_target(
        td_json_get(in, TD_STR("target")), td_json_get_str(in, TD_STR("namespace"), TD_STR_EMPTY));
    struct td_ownership verdict;
    td_ownership_judge(arena, &target, objects, count, &verdict);
    *ret = td_json_new_object(arena);
    td_json_set(arena, *ret, TD_STR("acts"),
                verdict.acting == TD_OWNERSHIP_NONE
                    ? td_json_new_null(arena)
                    : td_json_new_string(arena, objects[verdict.acting].name));
    struct td_json *conflicts = td_json_new_array(arena);
    for (size_t i = 0; i < verdict.conflict_count; i++) {
        td_json_append(conflicts, td_json_new_string(arena, objects[verdict.conflicts[i]].name));
    }
    td_json_set(arena, *ret, TD_STR("targetConflict"), conflicts);
    return TD_OK;
}

/* --- comparing: quantities by value --- */

static bool is_quantity_place(td_str parent, td_str key)
{
    return td_str_equal(key, TD_STR("value")) || td_str_equal(parent, TD_STR("minAllowed")) ||
           td_str_equal(parent, TD_STR("maxAllowed"));
}

static bool is_same_quantity(const struct td_json *a, const struct td_json *b)
{
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    struct td_quantity first;
    struct td_quantity second;
    return td_quantity_from_json(&arena, a, &first, NULL) == TD_OK &&
           td_quantity_from_json(&arena, b, &second, NULL) == TD_OK &&
           td_quantity_compare(&first, &second) == 0;
}

static bool is_same_value(const struct td_json *a, const struct td_json *b, td_str parent)
{
    if (!a || !b) {
        return a == b;
    }
    if (is_quantity_place(parent, a->key)) {
        return is_same_quantity(a, b);
    }
    bool is_nested = a->type == TD_JSON_TYPE_OBJECT || a->type == TD_JSON_TYPE_ARRAY;
    if (a->type != b->type || !is_nested) {
        return td_json_equal(a, b);
    }
    const struct td_json *other = td_json_first_child(b);
    bool is_same = a->count == b->count;
    for (const struct td_json *item = td_json_first_child(a); item && is_same; item = item->next) {
        bool is_object = a->type == TD_JSON_TYPE_OBJECT;
        is_same = is_same_value(item, is_object ? td_json_get(b, item->key) : other, a->key);
        other = other->next;
    }
    return is_same;
}

static bool is_same_spec(const struct td_json *expected, const struct td_json *got)
{
    return is_same_value(expected, got, TD_STR_EMPTY);
}

const struct golden_topic golden_hvpa_api[] = {
    {.name = "hvpa/decode", .run = run_decode, .is_same = is_same_spec},
    {.name = "hvpa/validate", .run = run_validate, .is_same = is_same_verdict},
    {.name = "hvpa/ownership", .run = run_ownership},
    {.name = NULL},
};
