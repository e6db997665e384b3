/* What the webhook says about one object alone, in upstream's order and words; what the proposals
 * add comes at the place of its field. An update that leaves evictionRequirements or resourcePolicy
 * as they were is not judged by the rules that upstream lacks: an object stored before those rules
 * were there can still be labelled, or lose its finalizer. */
#include "api/vpa/vpa_private.h"
#include "base/error.h"
#include "base/limits.h"
#include "kube/patch/patch_write.h"

enum { REQUIREMENT_RESOURCES = 2 };
static const td_str requirement_resources[REQUIREMENT_RESOURCES] = {TD_STR_INIT("cpu"),
                                                                    TD_STR_INIT("memory")};

bool td_vpa_check_is_full(const struct td_vpa_check *check)
{
    return check->errors->count >= TD_STRICT_PROBLEMS_MAX;
}

void td_vpa_check_resolution(struct td_vpa_check *check, const struct td_field_path *path,
                             td_str resource, const struct td_quantity *quantity)
{
    bool is_cpu = td_str_equal(resource, TD_STR("cpu"));
    if (!is_cpu && !td_str_equal(resource, TD_STR("memory"))) {
        return;
    }
    struct td_quantity rounded = *quantity;
    if (!td_quantity_round_up(check->arena, &rounded, is_cpu ? -3 : 0)) {
        td_field_invalid_str(check->errors, path, td_quantity_text(check->arena, quantity),
                             is_cpu ? "must be a whole number of milli CPUs"
                                    : "must be a whole number of bytes");
    }
}

void td_vpa_check_boost(struct td_vpa_check *check, const struct td_startup_boost *boost,
                        const struct td_field_path *path)
{
    static const td_str types[] = {TD_STR_INIT("Factor"), TD_STR_INIT("Quantity")};
    struct td_field_errors *errors = check->errors;
    if (boost->is_set && !check->allows_boost) {
        td_field_forbidden(errors, path,
                           "in order to use startupBoost, you must enable feature gate "
                           "CPUStartupBoost in the admission-controller args");
        return;
    }
    if (!boost->has_cpu) {
        return;
    }
    struct td_field_path cpu = td_field_child(path, TD_STR("cpu"));
    struct td_field_path type = td_field_child(&cpu, TD_STR("type"));
    struct td_field_path factor = td_field_child(&cpu, TD_STR("factor"));
    struct td_field_path quantity = td_field_child(&cpu, TD_STR("quantity"));
    if (boost->type_text.len == 0) {
        td_field_required(errors, &type, "must be either Factor or Quantity");
    } else if (boost->type == TD_BOOST_UNKNOWN) {
        td_field_unsupported(errors, &type, boost->type_text, types, 2);
    } else if (boost->type == TD_BOOST_FACTOR && !boost->has_factor) {
        td_field_required(errors, &factor, "required when type is Factor");
    } else if (boost->type == TD_BOOST_FACTOR && boost->factor < 1) {
        td_field_invalid_int(errors, &factor, boost->factor, "must be >= 1 for type Factor");
    } else if (boost->type == TD_BOOST_QUANTITY && !boost->has_quantity) {
        td_field_required(errors, &quantity, "required when type is Quantity");
    } else if (boost->type == TD_BOOST_QUANTITY) {
        td_vpa_check_resolution(check, &quantity, TD_STR("cpu"), &boost->quantity);
    }
}

static void check_mode(struct td_vpa_check *check, const struct td_json *policy,
                       const struct td_field_path *parent)
{
    static const td_str modes[] = {TD_STR_INIT("InPlace"), TD_STR_INIT("InPlaceOrRecreate"),
                                   TD_STR_INIT("Initial"), TD_STR_INIT("Off"),
                                   TD_STR_INIT("Recreate")};
    static const size_t mode_count = TD_COUNT(modes);
    const struct td_json *mode = td_json_member(policy, "updateMode");
    struct td_field_path path = td_field_child(parent, TD_STR("updateMode"));
    if (!mode) {
        td_field_required(check->errors, &path, "updateMode is required if UpdatePolicy is used");
        return;
    }
    size_t i = 0;
    while (i < mode_count && !td_str_equal(mode->text, modes[i])) {
        i++;
    }
    if (td_str_equal(mode->text, TD_STR("Auto"))) {
        static const td_str warning = TD_STR_INIT(
            "spec.updatePolicy: \"Auto\" mode is deprecated and will be removed in a future API "
            "version. Use explicit update modes like: [InPlace InPlaceOrRecreate Initial Off "
            "Recreate]. See https://github.com/kubernetes/autoscaler/issues/8424 for more "
            "details.");
        td_json_append(check->warnings, td_json_new_string(check->arena, warning));
    } else if (i == mode_count) {
        td_field_unsupported(check->errors, &path, mode->text, modes, mode_count);
    } else if (i == 0 && !check->allows_in_place) {
        td_field_forbidden(check->errors, &path,
                           "in order to use UpdateMode InPlace, you must enable feature gate "
                           "InPlace in the admission-controller args");
    }
}

/* Where a resource was first asked for: a requirement of the list, an entry of its resources. */
struct requirement_seen {
    bool is_seen;
    size_t requirement;
    size_t entry;
};

static void check_repeated(struct td_vpa_check *check, const struct td_field_path *list,
                           const struct requirement_seen *first, const struct requirement_seen *now,
                           td_str resource)
{
    struct td_field_path resources =
        td_field_child(TD_FIELD_ITEM(list, now->requirement), TD_STR("resources"));
    struct td_field_path entry = td_field_item(&resources, now->entry);
    struct td_field_path first_item = td_field_item(list, first->requirement);
    td_str place = td_field_path_text(
        check->arena, TD_FIELD_ITEM(TD_FIELD(&first_item, "resources"), first->entry));
    td_str shown = td_arena_format(check->arena, "\"%.*s\"", TD_STR_ARG(resource));
    td_str detail = td_arena_format(check->arena, "%.*s %s", TD_STR_ARG(place),
                                    first->requirement == now->requirement
                                        ? "names it already"
                                        : "has a requirement for it already; there may be one for "
                                          "each resource");
    td_field_error_add(check->errors, &entry, TD_FIELD_DUPLICATE, shown, detail);
}

static void check_requirement_resources(struct td_vpa_check *check,
                                        const struct td_field_path *list, size_t index,
                                        struct requirement_seen seen[REQUIREMENT_RESOURCES])
{
    const struct td_eviction_requirement *requirement = &check->vpa->eviction_requirements[index];
    struct td_field_path resources =
        td_field_child(TD_FIELD_ITEM(list, index), TD_STR("resources"));
    if (requirement->resource_count == 0) {
        td_field_required(check->errors, &resources, "must name cpu, memory or both");
    }
    for (size_t i = 0; i < requirement->resource_count && !td_vpa_check_is_full(check); i++) {
        td_str name = requirement->resources[i];
        size_t r = 0;
        while (r < REQUIREMENT_RESOURCES && !td_str_equal(name, requirement_resources[r])) {
            r++;
        }
        struct requirement_seen now = {true, index, i};
        if (r == REQUIREMENT_RESOURCES) {
            td_field_unsupported(check->errors, TD_FIELD_ITEM(&resources, i), name,
                                 requirement_resources, REQUIREMENT_RESOURCES);
        } else if (seen[r].is_seen) {
            check_repeated(check, list, &seen[r], &now, name);
        } else {
            seen[r] = now;
        }
    }
}

/* The rules of the proposal on eviction requirements, which upstream does not enforce. */
static void check_requirements(struct td_vpa_check *check, const struct td_json *policy,
                               const struct td_field_path *parent)
{
    static const td_str changes[] = {TD_STR_INIT("TargetHigherThanRequests"),
                                     TD_STR_INIT("TargetLowerThanRequests")};
    const struct td_json *list = td_json_member(policy, "evictionRequirements");
    const struct td_json *old =
        check->old ? td_json_member(td_json_get_path(check->old->tree, "spec.updatePolicy"),
                                    "evictionRequirements")
                   : NULL;
    if (!list || (old && td_json_equal(list, old))) {
        return;
    }
    struct requirement_seen seen[REQUIREMENT_RESOURCES] = {{.is_seen = false}};
    struct td_field_path path = td_field_child(parent, TD_STR("evictionRequirements"));
    size_t index = 0;
    for (const struct td_json *item = td_json_first_item(list);
         item && !td_vpa_check_is_full(check); item = item->next, index++) {
        check_requirement_resources(check, &path, index, seen);
        td_str change = td_json_text(item, "changeRequirement");
        struct td_field_path change_path =
            td_field_child(TD_FIELD_ITEM(&path, index), TD_STR("changeRequirement"));
        if (change.len == 0) {
            td_field_required(check->errors, &change_path,
                              "must be TargetHigherThanRequests or TargetLowerThanRequests");
        } else if (!td_str_equal(change, changes[0]) && !td_str_equal(change, changes[1])) {
            td_field_unsupported(check->errors, &change_path, change, changes, 2);
        }
    }
}

static void check_update_policy(struct td_vpa_check *check, const struct td_field_path *spec_path)
{
    const struct td_json *policy = td_json_member(check->spec, "updatePolicy");
    const struct td_vpa *vpa = check->vpa;
    if (!policy) {
        return;
    }
    struct td_field_path path = td_field_child(spec_path, TD_STR("updatePolicy"));
    struct td_field_path seconds = td_field_child(&path, TD_STR("evictAfterOOMSeconds"));
    check_mode(check, policy, &path);
    if (vpa->has_min_replicas && vpa->min_replicas <= 0) {
        td_field_invalid_int(check->errors, TD_FIELD(&path, "minReplicas"), vpa->min_replicas,
                             "minReplicas has to be positive");
    }
    if (vpa->has_evict_after_oom && !check->allows_config) {
        td_field_forbidden(check->errors, &seconds,
                           "not supported when feature flag PerVPAConfig is disabled");
    } else if (vpa->has_evict_after_oom && vpa->evict_after_oom_seconds < 1) {
        td_field_invalid_int(check->errors, &seconds, vpa->evict_after_oom_seconds,
                             "must be greater than or equal to 1");
    }
    check_requirements(check, policy, &path);
}

/* The text of a selector's error begins with the path below the selector. */
static void check_selector(struct td_vpa_check *check, const struct td_field_path *spec_path)
{
    struct td_error err = TD_ERROR_INIT;
    const struct td_json *tree = check->vpa->selector_tree;
    if (!tree || td_selector_check_json(check->arena, tree, &err) == TD_OK) {
        return;
    }
    td_str text = td_str_from(err.message);
    size_t end = 0;
    while (end + 1 < text.len && !(text.ptr[end] == ':' && text.ptr[end + 1] == ' ')) {
        end++;
    }
    bool has_path = td_str_starts_with(text, TD_STR("match")) && end + 1 < text.len;
    struct td_field_path path = td_field_child(spec_path, TD_STR("selector"));
    td_field_error_add(
        check->errors, has_path ? TD_FIELD_AT(&path, td_str_slice(text, 0, end)) : &path,
        TD_FIELD_INVALID, TD_STR_EMPTY, has_path ? td_str_slice(text, end + 2, text.len) : text);
}

static void check_spec(struct td_vpa_check *check)
{
    struct td_field_path spec = td_field_child(NULL, TD_STR("spec"));
    struct td_field_path recommenders = td_field_child(&spec, TD_STR("recommenders"));
    const struct td_json *list = td_json_member(check->spec, "recommenders");
    check_update_policy(check, &spec);
    td_vpa_check_policies(check, &spec);
    td_vpa_check_boost(check, &check->vpa->startup_boost, TD_FIELD(&spec, "startupBoost"));
    if (list && list->count > 1) {
        td_field_error_add(check->errors, &recommenders, TD_FIELD_TOO_MANY,
                           td_arena_format(check->arena, "%zu", list->count),
                           TD_STR("must have at most 1 item"));
    }
    check_selector(check, &spec);
}

/* What the stored object has used already stays allowed. */
static void check_waive(struct td_vpa_check *check, const struct td_vpa *old)
{
    td_str mode = td_json_text(td_json_get_path(old->tree, "spec.updatePolicy"), "updateMode");
    check->allows_in_place = check->allows_in_place || td_str_equal(mode, TD_STR("InPlace"));
    check->allows_boost = check->allows_boost || old->startup_boost.has_cpu;
    check->allows_config = check->allows_config || old->has_evict_after_oom;
    for (size_t i = 0; i < old->policy.container_count; i++) {
        const struct td_container_policy *policy = &old->policy.containers[i];
        check->allows_boost = check->allows_boost || policy->startup_boost.is_set;
        check->allows_config = check->allows_config || policy->has_oom_bump_up_ratio ||
                               policy->has_oom_min_bump_up || policy->has_memory_interval ||
                               policy->has_memory_interval_count;
        for (size_t r = 0; r < policy->controlled_resource_count; r++) {
            td_json_set_bool(check->arena, check->old_resources, policy->controlled_resources[r],
                             true);
        }
    }
}

const struct td_vpa_gates td_vpa_gates_all = {
    .in_place = true,
    .per_vpa_config = true,
    .cpu_startup_boost = true,
    .heterogeneous_workloads = true,
    .pod_level_resources = true,
};

/* A copy of the object without what closed gates hide. */
static struct td_json *check_visible(struct td_vpa_check *check, const struct td_json *object,
                                     const struct td_vpa_gates *gates)
{
    struct td_json *made = td_json_copy(check->arena, object, false);
    struct td_json *spec = td_json_get(made, TD_STR("spec"));
    struct td_json *policy = td_json_get(spec, TD_STR("resourcePolicy"));
    const struct td_json *pod = td_json_get(policy, TD_STR("podPolicies"));
    if (td_json_is(spec, TD_JSON_TYPE_OBJECT) && !gates->heterogeneous_workloads) {
        (void)td_json_remove(spec, TD_STR("selector")); /* or it was not there */
    }
    if (pod && !gates->pod_level_resources) {
        (void)td_json_remove(policy, TD_STR("podPolicies"));
    } else if (td_json_is(pod, TD_JSON_TYPE_OBJECT)) {
        td_json_set(check->arena, policy, TD_STR("podPolicies"),
                    td_vpa_check_pod_quantities(check, pod));
    }
    return made;
}

static struct td_json *check_defaults(struct td_arena *arena, const struct td_vpa *vpa)
{
    struct td_json *patches = td_json_new_array(arena);
    if (!vpa->has_update_policy) {
        struct td_json *policy = td_json_new_object(arena);
        td_json_set_str(arena, policy, TD_STR("updateMode"), TD_STR("Recreate"));
        td_patch_append(arena, patches, "add", TD_STR("/spec/updatePolicy"), policy);
    }
    return patches;
}

/* The old object, read as the new one; its own faults are its own. */
static int check_read_old(struct td_vpa_check *check, const struct td_vpa_admission *admission,
                          struct td_vpa *ret, struct td_error *err)
{
    struct td_json *tree = check_visible(check, admission->old, &admission->gates);
    check->pod_bad.count = 0;
    int code = td_vpa_decode_lax(check->arena, tree, ret, err);
    if (code < 0) {
        return td_error_wrap(err, code, "stored object");
    }
    check->old = ret;
    check_waive(check, ret);
    return TD_OK;
}

int td_vpa_admit(struct td_arena *arena, const struct td_vpa_admission *admission,
                 struct td_field_errors *errors, struct td_json **ret_patches,
                 struct td_json **ret_warnings, struct td_error *err)
{
    struct td_vpa vpa;
    struct td_vpa old;
    struct td_vpa_check check = {
        .arena = arena,
        .errors = errors,
        .warnings = td_json_new_array(arena),
        .vpa = &vpa,
        .pod_bad = {.arena = arena},
        .old_resources = td_json_new_object(arena),
        .allows_boost = admission->gates.cpu_startup_boost,
        .allows_config = admission->gates.per_vpa_config,
        .allows_in_place = admission->gates.in_place,
    };
    int code = TD_OK;
    if (!td_json_is(admission->object, TD_JSON_TYPE_OBJECT)) {
        return td_error_set(err, TD_INVALID, "a VerticalPodAutoscaler must be an object");
    }
    if (admission->is_update && admission->old) {
        code = check_read_old(&check, admission, &old, err);
    }
    if (code < 0) {
        return code;
    }
    struct td_json *tree = check_visible(&check, admission->object, &admission->gates);
    code = td_vpa_decode_lax(arena, tree, &vpa, err);
    if (code < 0) {
        return code;
    }
    check.spec = td_json_member(tree, "spec");
    check.checks_pod =
        admission->gates.pod_level_resources &&
        !(check.old && td_json_equal(td_json_get_path(admission->object, "spec.resourcePolicy"),
                                     td_json_get_path(admission->old, "spec.resourcePolicy")));
    size_t count = errors->count;
    check_spec(&check);
    code = td_arena_check(arena, err);
    if (code == TD_OK) {
        *ret_patches =
            errors->count == count ? check_defaults(arena, &vpa) : td_json_new_array(arena);
        *ret_warnings = check.warnings;
    }
    return code;
}
