/* From the tree to the struct that deciders read. Types are checked first against the schema, so
 * that everything below may take them for granted. Values outside an enum cannot be stored through
 * the CRD; where a tree holds one all the same it is read as the choice that does least. */
#include "api/vpa/vpa_private.h"
#include "base/error.h"
#include "kube/schema/check.h"

/* Its range is checked. */
static bool decode_int32(const struct td_json *object, td_str key, int32_t *ret)
{
    *ret = (int32_t)td_json_get_int64(object, key, 0);
    return td_kind_member(object, key) != NULL;
}

static bool decode_quantity(struct td_arena *arena, const struct td_json *object, td_str key,
                            struct td_quantity *ret)
{
    const struct td_json *node = td_kind_member(object, key);
    return node && td_quantity_from_json(arena, node, ret, NULL) == TD_OK;
}

/* A list as its items, none when it is missing. */
static const td_str *decode_strings(struct td_arena *arena, const struct td_json *list,
                                    size_t *ret_count)
{
    *ret_count = td_json_item_count(list);
    td_str *made = td_arena_array(arena, td_str, *ret_count);
    size_t i = 0;
    for (const struct td_json *item = td_json_first_item(list); item; item = item->next) {
        made[i++] = td_json_is(item, TD_JSON_TYPE_STRING) ? item->text : TD_STR_EMPTY;
    }
    return made;
}

const struct td_vpa_condition *td_vpa_condition_find(const struct td_vpa_condition *conditions,
                                                     size_t count, td_str type)
{
    for (size_t i = 0; i < count; i++) {
        if (td_str_equal(conditions[i].type, type)) {
            return &conditions[i];
        }
    }
    return NULL;
}

bool td_vpa_condition_holds(const struct td_vpa_condition *conditions, size_t count, td_str type)
{
    const struct td_vpa_condition *found = td_vpa_condition_find(conditions, count, type);
    return found && td_str_equal(found->status, TD_STR("True"));
}

td_str td_vpa_mode_name(enum td_vpa_mode mode)
{
    static const td_str names[] = {
        [TD_VPA_OFF] = TD_STR_INIT("Off"),
        [TD_VPA_INITIAL] = TD_STR_INIT("Initial"),
        [TD_VPA_RECREATE] = TD_STR_INIT("Recreate"),
        [TD_VPA_IN_PLACE_OR_RECREATE] = TD_STR_INIT("InPlaceOrRecreate"),
        [TD_VPA_IN_PLACE] = TD_STR_INIT("InPlace"),
    };
    return names[mode];
}

static enum td_vpa_mode decode_mode(const struct td_json *policy)
{
    static const struct {
        td_str text;
        enum td_vpa_mode mode;
    } rows[] = {
        {TD_STR_INIT(""), TD_VPA_RECREATE},
        {TD_STR_INIT("Auto"), TD_VPA_RECREATE},
        {TD_STR_INIT("Recreate"), TD_VPA_RECREATE},
        {TD_STR_INIT("Initial"), TD_VPA_INITIAL},
        {TD_STR_INIT("InPlaceOrRecreate"), TD_VPA_IN_PLACE_OR_RECREATE},
        {TD_STR_INIT("InPlace"), TD_VPA_IN_PLACE},
    };
    td_str text = td_json_text(policy, "updateMode");
    for (size_t i = 0; i < TD_COUNT(rows); i++) {
        if (td_str_equal(text, rows[i].text)) {
            return rows[i].mode;
        }
    }
    return TD_VPA_OFF;
}

static void decode_requirements(struct td_arena *arena, const struct td_json *list,
                                struct td_vpa *vpa)
{
    size_t count = td_json_item_count(list);
    struct td_eviction_requirement *made =
        td_arena_array(arena, struct td_eviction_requirement, count);
    size_t i = 0;
    for (const struct td_json *item = td_json_first_item(list); item; item = item->next, i++) {
        made[i].resources =
            decode_strings(arena, td_json_member(item, "resources"), &made[i].resource_count);
        td_str change = td_json_text(item, "changeRequirement");
        made[i].change = TD_CHANGE_UNKNOWN;
        if (td_str_equal(change, TD_STR("TargetLowerThanRequests"))) {
            made[i].change = TD_TARGET_LOWER_THAN_REQUESTS;
        } else if (td_str_equal(change, TD_STR("TargetHigherThanRequests"))) {
            made[i].change = TD_TARGET_HIGHER_THAN_REQUESTS;
        }
    }
    vpa->eviction_requirements = made;
    vpa->eviction_requirement_count = count;
}

static void decode_update_policy(struct td_arena *arena, const struct td_json *policy,
                                 struct td_vpa *vpa)
{
    vpa->has_update_policy = policy != NULL;
    vpa->mode = decode_mode(policy);
    vpa->has_min_replicas = decode_int32(policy, TD_STR("minReplicas"), &vpa->min_replicas);
    vpa->has_evict_after_oom =
        decode_int32(policy, TD_STR("evictAfterOOMSeconds"), &vpa->evict_after_oom_seconds);
    decode_requirements(arena, td_json_member(policy, "evictionRequirements"), vpa);
}

static struct td_startup_boost decode_boost(struct td_arena *arena, const struct td_json *boost)
{
    const struct td_json *cpu = td_json_member(boost, "cpu");
    struct td_startup_boost made = {
        .is_set = boost != NULL,
        .has_cpu = cpu != NULL,
        .type = TD_BOOST_UNKNOWN,
        .type_text = td_json_text(cpu, "type"),
    };
    if (td_str_equal(made.type_text, TD_STR("Factor"))) {
        made.type = TD_BOOST_FACTOR;
    } else if (td_str_equal(made.type_text, TD_STR("Quantity"))) {
        made.type = TD_BOOST_QUANTITY;
    }
    made.has_factor = decode_int32(cpu, TD_STR("factor"), &made.factor);
    made.has_quantity = decode_quantity(arena, cpu, TD_STR("quantity"), &made.quantity);
    made.has_duration = decode_int32(cpu, TD_STR("durationSeconds"), &made.duration_seconds);
    return made;
}

static int decode_resources(struct td_arena *arena, const struct td_json *object, td_str key,
                            struct td_resource_list *ret, struct td_error *err)
{
    return td_resource_list_decode(arena, td_kind_member(object, key), ret, err);
}

static bool decode_is_requests_only(const struct td_json *policy)
{
    return td_str_equal(td_json_text(policy, "controlledValues"), TD_STR("RequestsOnly"));
}

static int decode_container(struct td_arena *arena, const struct td_json *policy,
                            struct td_container_policy *ret, struct td_error *err)
{
    int code = decode_resources(arena, policy, TD_STR("minAllowed"), &ret->min_allowed, err);
    if (code == TD_OK) {
        code = decode_resources(arena, policy, TD_STR("maxAllowed"), &ret->max_allowed, err);
    }
    if (code < 0) {
        return code;
    }
    const struct td_json *controlled = td_json_member(policy, "controlledResources");
    const struct td_json *count = td_json_member(policy, "memoryAggregationIntervalCount");
    ret->container_name = td_json_text(policy, "containerName");
    ret->is_off = td_str_equal(td_json_text(policy, "mode"), TD_STR("Off"));
    ret->has_controlled_resources = controlled != NULL;
    ret->controlled_resources = decode_strings(arena, controlled, &ret->controlled_resource_count);
    ret->is_requests_only = decode_is_requests_only(policy);
    ret->has_oom_bump_up_ratio =
        decode_quantity(arena, policy, TD_STR("oomBumpUpRatio"), &ret->oom_bump_up_ratio);
    ret->has_oom_min_bump_up =
        decode_quantity(arena, policy, TD_STR("oomMinBumpUp"), &ret->oom_min_bump_up);
    ret->has_memory_interval = decode_int32(policy, TD_STR("memoryAggregationIntervalSeconds"),
                                            &ret->memory_interval_seconds);
    ret->has_memory_interval_count = count != NULL;
    ret->memory_interval_count =
        td_json_get_int64(policy, TD_STR("memoryAggregationIntervalCount"), 0);
    ret->startup_boost = decode_boost(arena, td_json_member(policy, "startupBoost"));
    return TD_OK;
}

static int decode_pod_policy(struct td_arena *arena, const struct td_json *policy,
                             struct td_pod_policy *ret, struct td_error *err)
{
    int code = decode_resources(arena, policy, TD_STR("minAllowed"), &ret->min_allowed, err);
    if (code == TD_OK) {
        code = decode_resources(arena, policy, TD_STR("maxAllowed"), &ret->max_allowed, err);
    }
    const struct td_json *controlled = td_json_member(policy, "controlledResources");
    ret->is_set = policy != NULL;
    ret->has_controlled_resources = controlled != NULL;
    ret->controlled_resources = decode_strings(arena, controlled, &ret->controlled_resource_count);
    ret->is_requests_only = decode_is_requests_only(policy);
    return code;
}

static int decode_policy(struct td_arena *arena, const struct td_json *policy,
                         struct td_resource_policy *ret, struct td_error *err)
{
    const struct td_json *list = td_json_member(policy, "containerPolicies");
    size_t count = td_json_item_count(list);
    struct td_container_policy *containers =
        td_arena_array(arena, struct td_container_policy, count);
    size_t i = 0;
    for (const struct td_json *item = td_json_first_item(list); item; item = item->next) {
        int code = decode_container(arena, item, &containers[i++], err);
        if (code < 0) {
            return code;
        }
    }
    ret->is_set = policy != NULL;
    ret->containers = containers;
    ret->container_count = count;
    return decode_pod_policy(arena, td_json_member(policy, "podPolicies"), &ret->pod, err);
}

static int decode_selector(struct td_arena *arena, const struct td_json *tree, bool is_lax,
                           struct td_vpa *vpa, struct td_error *err)
{
    vpa->selector_tree = tree;
    if (!tree) {
        return TD_OK;
    }
    int code = td_selector_from_json(arena, tree, &vpa->pod_selector, NULL);
    if (code < 0 && is_lax) {
        return TD_OK;
    }
    if (code < 0) {
        (void)td_selector_check_json(arena, tree, err); /* fails alike, and says where */
        return td_error_wrap(err, code, "spec.selector");
    }
    vpa->has_selector = !td_selector_is_empty(&vpa->pod_selector);
    return TD_OK;
}

static int decode_spec(struct td_arena *arena, const struct td_json *spec, struct td_vpa *vpa,
                       struct td_error *err)
{
    const struct td_json *target = td_json_member(spec, "targetRef");
    vpa->has_target = target != NULL;
    vpa->target_api_version = td_json_text(target, "apiVersion");
    vpa->target_kind = td_json_text(target, "kind");
    vpa->target_name = td_json_text(target, "name");
    decode_update_policy(arena, td_json_member(spec, "updatePolicy"), vpa);
    vpa->startup_boost = decode_boost(arena, td_json_member(spec, "startupBoost"));
    /* At most one is admitted. */
    vpa->recommender =
        td_json_text(td_json_first_item(td_json_member(spec, "recommenders")), "name");
    return decode_policy(arena, td_json_member(spec, "resourcePolicy"), &vpa->policy, err);
}

const struct td_vpa_condition *td_vpa_conditions_read(struct td_arena *arena,
                                                      const struct td_json *list, size_t *ret_count)
{
    size_t count = td_json_item_count(list);
    struct td_vpa_condition *made = td_arena_array(arena, struct td_vpa_condition, count);
    size_t i = 0;
    for (const struct td_json *item = td_json_first_item(list); item; item = item->next, i++) {
        made[i] = (struct td_vpa_condition){
            .type = td_json_text(item, "type"),
            .status = td_json_text(item, "status"),
            .reason = td_json_text(item, "reason"),
            .message = td_json_text(item, "message"),
            .last_transition = TD_INSTANT_ZERO,
        };
        td_str time = td_json_text(item, "lastTransitionTime");
        if (time.len > 0) {
            (void)td_time_parse(time, &made[i].last_transition, NULL); /* checked before */
        }
    }
    *ret_count = count;
    return made;
}

static int decode_status(struct td_arena *arena, const struct td_json *status, struct td_vpa *vpa,
                         struct td_error *err)
{
    const struct td_json *recommendation = td_json_member(status, "recommendation");
    vpa->conditions =
        td_vpa_conditions_read(arena, td_json_member(status, "conditions"), &vpa->condition_count);
    vpa->observed_generation = td_json_get_int64(status, TD_STR("observedGeneration"), 0);
    vpa->has_recommendation = recommendation != NULL;
    if (!recommendation) {
        return TD_OK;
    }
    int code = td_recommendation_decode(arena, recommendation, &vpa->recommendation, err);
    return code < 0 ? td_error_wrap(err, code, "status.recommendation") : code;
}

static int decode_object(struct td_arena *arena, const struct td_json *object, bool is_lax,
                         struct td_vpa *ret, struct td_error *err)
{
    if (!td_json_is(object, TD_JSON_TYPE_OBJECT)) {
        return td_error_set(err, TD_INVALID, "a VerticalPodAutoscaler must be an object");
    }
    int code = td_check_types(td_vpa_schema(), object, NULL, err);
    if (code < 0) {
        return code;
    }
    struct td_vpa made = {.tree = object};
    const struct td_json *spec = td_json_member(object, "spec");
    code = td_meta_decode(arena, object, &made.meta, err);
    if (code == TD_OK) {
        code = decode_selector(arena, td_json_member(spec, "selector"), is_lax, &made, err);
    }
    if (code == TD_OK) {
        code = decode_spec(arena, spec, &made, err);
    }
    if (code == TD_OK) {
        code = decode_status(arena, td_json_member(object, "status"), &made, err);
    }
    if (code == TD_OK) {
        *ret = made;
    }
    return code;
}

int td_vpa_decode(struct td_arena *arena, const struct td_json *object, struct td_vpa *ret,
                  struct td_error *err)
{
    return decode_object(arena, object, false, ret, err);
}

int td_vpa_decode_lax(struct td_arena *arena, const struct td_json *object, struct td_vpa *ret,
                      struct td_error *err)
{
    return decode_object(arena, object, true, ret, err);
}

const struct td_container_policy *td_vpa_container_policy(const struct td_resource_policy *policy,
                                                          td_str container)
{
    const struct td_container_policy *fallback = NULL;
    for (size_t i = 0; i < policy->container_count; i++) {
        const struct td_container_policy *entry = &policy->containers[i];
        if (td_str_equal(entry->container_name, container)) {
            return entry;
        }
        if (td_str_equal(entry->container_name, TD_STR("*"))) {
            fallback = entry;
        }
    }
    return fallback;
}

bool td_vpa_controls(const struct td_container_policy *policy, td_str resource)
{
    if (!policy || !policy->has_controlled_resources) {
        return td_str_equal(resource, TD_STR("cpu")) || td_str_equal(resource, TD_STR("memory"));
    }
    for (size_t i = 0; i < policy->controlled_resource_count; i++) {
        if (td_str_equal(policy->controlled_resources[i], resource)) {
            return true;
        }
    }
    return false;
}

int td_vpa_parse_flag(struct td_arena *arena, td_str flag, td_str text, struct td_quantity *ret,
                      struct td_error *err)
{
    struct td_quantity read;
    bool has_digit = false;
    for (size_t i = 0; i < text.len; i++) {
        has_digit = has_digit || (text.ptr[i] >= '0' && text.ptr[i] <= '9');
    }
    if (!has_digit || td_quantity_parse(arena, text, &read, NULL) < 0) {
        return td_error_set(err, TD_INVALID,
                            "%.*s: \"%.*s\": must be a quantity such as 1500m or 2Gi",
                            TD_STR_ARG(flag), TD_STR_ARG(text));
    }
    if (td_quantity_sign(&read) <= 0) {
        return td_error_set(err, TD_INVALID, "%.*s: \"%.*s\": must be greater than 0",
                            TD_STR_ARG(flag), TD_STR_ARG(text));
    }
    *ret = read;
    return TD_OK;
}
