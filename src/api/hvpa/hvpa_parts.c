/* The two autoscalers inside an Hvpa, and the rules that tie fields together. The HPA's own rules
 * are those of its kind: its spec is put into an object of its own, admitted as a server would, and
 * the paths of what is wrong are put back to where the user wrote it. */
#include "api/hvpa/hvpa_private.h"
#include "base/error.h"
#include "base/limits.h"

#define PARTS_SPEC_PREFIX TD_STR("spec.")

/* Is apiVersion or kind of the object form something else? */
static void parts_check_word(struct td_hvpa_reader *reader, const struct td_hvpa_part *part,
                             const struct td_json *outer, td_str key, const td_str *supported,
                             size_t count)
{
    td_str text = td_json_get_str(outer, key, TD_STR_EMPTY);
    const struct td_json *node = td_kind_member(outer, key);
    bool is_known = !node || (td_json_is(node, TD_JSON_TYPE_STRING) && text.len == 0);
    for (size_t i = 0; i < count; i++) {
        is_known = is_known || td_str_equal(text, supported[i]);
    }
    if (!is_known) {
        td_field_unsupported(&reader->findings->errors, TD_FIELD_AT(&part->outer, key), text,
                             supported, count);
    }
}

/* An object of `kind` around a copy of the spec. Its name and target stand for the Hvpa's, which
 * are judged elsewhere. */
static struct td_json *parts_wrap(struct td_arena *arena, td_str api_version, td_str kind,
                                  const struct td_json *spec, td_str target_key)
{
    struct td_json *object = td_json_new_object(arena);
    struct td_json *metadata = td_json_new_object(arena);
    struct td_json *copy = td_json_copy(arena, spec, false);
    struct td_json *target = td_json_new_object(arena);
    /* Neither kind has such a field, and in the flat form it would be read as the spec itself. */
    (void)td_json_remove(copy, TD_STR("spec"));
    td_json_set_str(arena, metadata, TD_STR("name"), TD_STR("hvpa"));
    td_json_set_str(arena, metadata, TD_STR("namespace"), TD_STR("default"));
    td_json_set_str(arena, target, TD_STR("apiVersion"), TD_STR("apps/v1"));
    td_json_set_str(arena, target, TD_STR("kind"), TD_STR("Deployment"));
    td_json_set_str(arena, target, TD_STR("name"), TD_STR("hvpa"));
    td_json_set(arena, copy, target_key, target);
    td_json_set_str(arena, object, TD_STR("apiVersion"), api_version);
    td_json_set_str(arena, object, TD_STR("kind"), kind);
    td_json_set(arena, object, TD_STR("metadata"), metadata);
    td_json_set(arena, object, TD_STR("spec"), copy);
    return object;
}

void td_hvpa_set_target(struct td_arena *arena, struct td_json *spec, td_str key,
                        const struct td_object_reference *target)
{
    struct td_json *node = td_json_new_object(arena);
    td_json_set_text(arena, node, TD_STR("apiVersion"), target->api_version);
    td_json_set_str(arena, node, TD_STR("kind"), target->kind);
    td_json_set_str(arena, node, TD_STR("name"), target->name);
    td_json_set(arena, spec, key, node);
}

/* --- HPA --- */

/* v1's one number as v2's list of one; a list that is there wins. Returns whether it was used. */
static bool parts_use_percentage(struct td_hvpa_reader *reader, const struct td_hvpa_part *part,
                                 struct td_json *spec)
{
    td_str key = TD_STR("targetCPUUtilizationPercentage");
    const struct td_json *percentage = td_kind_member(spec, key);
    const struct td_json *metrics = td_json_member(spec, "metrics");
    bool has_metrics = metrics && metrics->count > 0;
    struct td_arena *arena = reader->arena;
    if (percentage && has_metrics) {
        td_hvpa_warn(reader, TD_FIELD_AT(&part->inner, key), "has no effect beside metrics");
    } else if (percentage) {
        int64_t percent = td_json_get_int64(spec, key, 0);
        struct td_json *list = td_json_new_array(arena);
        td_json_append(list, td_hpa_new_cpu_metric(arena, false, percent));
        td_json_set(arena, spec, TD_STR("metrics"), list);
    } else if (metrics && !has_metrics) {
        (void)td_json_remove(spec, TD_STR("metrics")); /* an empty list is none */
    }
    (void)td_json_remove(spec, key); /* mostly absent */
    return percentage && !has_metrics;
}

/* Has a fault been named at this place, or so many elsewhere that one more is of no use (and
 * looking through them would cost)? */
static bool parts_is_named(const struct td_field_errors *errors, const struct td_field_path *path)
{
    if (errors->count >= TD_STRICT_PROBLEMS_MAX) {
        return true;
    }
    td_str field = td_field_path_text(errors->arena, path);
    for (size_t i = 0; i < errors->count; i++) {
        if (td_str_equal(errors->items[i].field, field)) {
            return true;
        }
    }
    return false;
}

/* "maxAllowed[cpu]" as "maxAllowed.cpu": inside an Hvpa every path is written with points, and only
 * items of lists with brackets. */
static td_str parts_plain_path(struct td_arena *arena, td_str prefix, td_str field)
{
    td_auto_buf text =
        td_buf_capped(TD_STRICT_PATH_BYTES_MAX); /* a longer one is cut: it is only shown */
    (void)td_buf_append(&text, prefix);
    (void)td_buf_append_char(&text, '.');
    bool is_key = false;
    for (size_t i = 0; i < field.len; i++) {
        char c = field.ptr[i];
        bool is_digit = i + 1 < field.len && field.ptr[i + 1] >= '0' && field.ptr[i + 1] <= '9';
        if (c == '[' && !is_digit) {
            is_key = true;
            (void)td_buf_append_char(&text, '.');
        } else if (c == ']' && is_key) {
            is_key = false;
        } else {
            (void)td_buf_append_char(&text, c);
        }
    }
    return td_arena_copy_str(arena, td_buf_str(&text));
}

/* Faults of the made-up object as faults of the Hvpa: their paths begin where its spec is. */
static void parts_take_errors(struct td_hvpa_reader *reader, const struct td_hvpa_part *part,
                              const struct td_field_errors *errors, bool has_percentage)
{
    td_str prefix = td_field_path_text(reader->arena, &part->inner);
    for (size_t i = 0; i < errors->count; i++) {
        const struct td_field_error *error = &errors->items[i];
        if (!td_str_starts_with(error->field, PARTS_SPEC_PREFIX)) {
            continue; /* of the metadata that we made up */
        }
        td_str field = td_str_slice(error->field, PARTS_SPEC_PREFIX.len, error->field.len);
        if (error->type == TD_FIELD_FORBIDDEN && td_str_equal(field, TD_STR("metrics"))) {
            continue; /* advice on scaling to zero, which an Hvpa never does */
        }
        if (has_percentage && td_str_starts_with(field, TD_STR("metrics["))) {
            field = TD_STR("targetCPUUtilizationPercentage");
        }
        td_str whole = parts_plain_path(reader->arena, prefix, field);
        td_field_error_add(&reader->findings->errors, TD_FIELD_AT(NULL, whole), error->type,
                           error->value, error->detail);
    }
}

void td_hvpa_read_hpa(struct td_hvpa_reader *reader, const struct td_hvpa_part *part,
                      struct td_hvpa *hvpa)
{
    static const td_str versions[] = {TD_STR_INIT("autoscaling/v1"), TD_STR_INIT("autoscaling/v2"),
                                      TD_STR_INIT("autoscaling.tandem.dev/v2")};
    static const td_str kinds[] = {TD_STR_INIT("HorizontalPodAutoscaler")};
    if (!part->spec) {
        return;
    }
    struct td_arena *arena = reader->arena;
    const struct td_json *spec = td_json_member(hvpa->tree, "spec");
    const struct td_json *outer = td_json_member(spec, "hpaSpec");
    parts_check_word(reader, part, outer, TD_STR("apiVersion"), versions, 3);
    parts_check_word(reader, part, outer, TD_STR("kind"), kinds, 1);
    struct td_json *object =
        parts_wrap(arena, versions[1], kinds[0], part->spec, TD_STR("scaleTargetRef"));
    bool has_percentage = parts_use_percentage(reader, part, td_json_get(object, TD_STR("spec")));
    const struct td_hpa_admission admission = {
        .operation = TD_HPA_CREATE,
        .object = object,
        .gates = {.selection_strategy = true},
    };
    struct td_field_errors errors = {.arena = arena};
    struct td_json *stored = NULL;
    struct td_error err = TD_ERROR_INIT;
    int code = td_hpa_admit(arena, &admission, &errors, &stored, &err);
    if (code == TD_OK && stored) {
        code = td_hpa_decode(arena, stored, &hvpa->hpa, &err);
    }
    if (code < 0) {
        td_field_invalid_str(&reader->findings->errors, &part->inner, TD_STR_EMPTY, err.message);
    }
    parts_take_errors(reader, part, &errors, has_percentage);
    if (code < 0 || !stored) {
        return;
    }
    if (hvpa->hpa.metric_count > TD_HVPA_METRICS_MAX) {
        td_str detail = td_arena_format(arena, "must have at most %d items", TD_HVPA_METRICS_MAX);
        td_field_error_add(&reader->findings->errors, TD_FIELD(&part->inner, "metrics"),
                           TD_FIELD_TOO_MANY, td_arena_format(arena, "%zu", hvpa->hpa.metric_count),
                           detail);
        return;
    }
    struct td_json *kept = td_json_get(stored, TD_STR("spec"));
    td_hvpa_set_target(arena, kept, TD_STR("scaleTargetRef"), &hvpa->target);
    hvpa->has_hpa = true;
    hvpa->hpa_spec = kept;
    hvpa->hpa.meta = hvpa->meta;
    hvpa->hpa.target = hvpa->target;
}

/* --- VPA --- */

/* A fault, unless the rules of the kind itself have named one at its place. */
static void parts_invalid(struct td_field_errors *errors, const struct td_field_path *path,
                          td_str value, const char *detail)
{
    if (!parts_is_named(errors, path)) {
        td_field_invalid_str(errors, path, value, detail);
    }
}

static void parts_unsupported(struct td_field_errors *errors, const struct td_field_path *path,
                              td_str value, const td_str *supported, size_t count)
{
    if (!parts_is_named(errors, path)) {
        td_field_unsupported(errors, path, value, supported, count);
    }
}

/* One bound of one container: not negative. */
static void parts_check_sign(struct td_hvpa_reader *reader, const struct td_resource_list *list,
                             const struct td_field_path *policy, td_str key)
{
    for (size_t i = 0; i < list->count; i++) {
        if (td_quantity_sign(&list->items[i].quantity) < 0) {
            parts_invalid(&reader->findings->errors,
                          TD_FIELD_AT(TD_FIELD_AT(policy, key), list->items[i].name),
                          td_quantity_text(reader->arena, &list->items[i].quantity),
                          "must be greater than or equal to 0");
        }
    }
}

static void parts_check_bounds(struct td_hvpa_reader *reader, const struct td_resource_list *min,
                               const struct td_resource_list *max,
                               const struct td_field_path *policy)
{
    parts_check_sign(reader, min, policy, TD_STR("minAllowed"));
    parts_check_sign(reader, max, policy, TD_STR("maxAllowed"));
    for (size_t i = 0; i < max->count; i++) {
        const struct td_resource_amount *upper = &max->items[i];
        const struct td_quantity *lower = td_resource_list_get(min, upper->name);
        if (lower && td_quantity_compare(lower, &upper->quantity) > 0) {
            td_str text = td_arena_format(
                reader->arena, "must be greater than or equal to minAllowed, which is %.*s",
                TD_STR_ARG(td_quantity_text(reader->arena, lower)));
            parts_invalid(&reader->findings->errors,
                          TD_FIELD_AT(TD_FIELD(policy, "maxAllowed"), upper->name),
                          td_quantity_text(reader->arena, &upper->quantity), text.ptr);
        }
    }
}

static void parts_check_choice(struct td_hvpa_reader *reader, const struct td_json *object,
                               const struct td_field_path *parent, td_str key,
                               const td_str *supported, size_t count)
{
    td_str text = td_json_get_str(object, key, TD_STR_EMPTY);
    bool is_known = text.len == 0;
    for (size_t i = 0; i < count; i++) {
        is_known = is_known || td_str_equal(text, supported[i]);
    }
    if (!is_known) {
        parts_unsupported(&reader->findings->errors, TD_FIELD_AT(parent, key), text, supported,
                          count);
    }
}

static void parts_check_policy(struct td_hvpa_reader *reader, const struct td_json *policy,
                               const struct td_field_path *path)
{
    static const td_str modes[] = {TD_STR_INIT("Auto"), TD_STR_INIT("Off")};
    static const td_str values[] = {TD_STR_INIT("RequestsAndLimits"), TD_STR_INIT("RequestsOnly")};
    static const td_str resources[] = {TD_STR_INIT("cpu"), TD_STR_INIT("memory")};
    parts_check_choice(reader, policy, path, TD_STR("mode"), modes, 2);
    parts_check_choice(reader, policy, path, TD_STR("controlledValues"), values, 2);
    const struct td_json *list = td_json_member(policy, "controlledResources");
    size_t index = 0;
    for (const struct td_json *item = td_json_first_item(list); item; item = item->next) {
        struct td_field_path place = td_field_item(TD_FIELD(path, "controlledResources"), index++);
        bool is_known =
            td_json_is(item, TD_JSON_TYPE_STRING) &&
            (td_str_equal(item->text, resources[0]) || td_str_equal(item->text, resources[1]));
        if (!is_known) {
            td_str text = td_json_is(item, TD_JSON_TYPE_STRING) ? item->text : TD_STR_EMPTY;
            parts_unsupported(&reader->findings->errors, &place, text, resources, 2);
        }
    }
}

static void parts_check_policies(struct td_hvpa_reader *reader, const struct td_hvpa_part *part,
                                 const struct td_resource_policy *policy)
{
    const struct td_json *tree = td_json_member(part->spec, "resourcePolicy");
    const struct td_json *list = td_json_member(tree, "containerPolicies");
    struct td_field_path parent = td_field_child(&part->inner, TD_STR("resourcePolicy"));
    size_t index = 0;
    for (const struct td_json *item = td_json_first_item(list); item; item = item->next) {
        struct td_field_path path = td_field_item(TD_FIELD(&parent, "containerPolicies"), index);
        const struct td_container_policy *entry = &policy->containers[index++];
        parts_check_policy(reader, item, &path);
        parts_check_bounds(reader, &entry->min_allowed, &entry->max_allowed, &path);
    }
    const struct td_json *pod = td_json_member(tree, "podPolicies");
    if (pod) {
        struct td_field_path path = td_field_child(&parent, TD_STR("podPolicies"));
        parts_check_policy(reader, pod, &path);
        parts_check_bounds(reader, &policy->pod.min_allowed, &policy->pod.max_allowed, &path);
    }
}

/* Only the Hvpa acts: whatever mode was written, the VPA inside only recommends. */
static void parts_switch_off(struct td_arena *arena, struct td_json *spec)
{
    struct td_json *policy = td_json_ensure_object(arena, spec, TD_STR("updatePolicy"));
    td_json_set_str(arena, policy, TD_STR("updateMode"), TD_STR("Off"));
}

void td_hvpa_read_vpa(struct td_hvpa_reader *reader, const struct td_hvpa_part *part,
                      struct td_hvpa *hvpa)
{
    static const td_str versions[] = {TD_STR_INIT("autoscaling.k8s.io/v1")};
    static const td_str kinds[] = {TD_STR_INIT("VerticalPodAutoscaler")};
    if (!part->spec) {
        return;
    }
    struct td_arena *arena = reader->arena;
    const struct td_json *spec = td_json_member(hvpa->tree, "spec");
    const struct td_json *outer = td_json_member(spec, "vpaSpec");
    parts_check_word(reader, part, outer, TD_STR("apiVersion"), versions, 1);
    parts_check_word(reader, part, outer, TD_STR("kind"), kinds, 1);
    struct td_json *object =
        parts_wrap(arena, versions[0], kinds[0], part->spec, TD_STR("targetRef"));
    struct td_json *copy = td_json_get(object, TD_STR("spec"));
    parts_switch_off(arena, copy);
    td_hvpa_set_target(arena, copy, TD_STR("targetRef"), &hvpa->target);
    struct td_error err = TD_ERROR_INIT;
    if (td_vpa_decode(arena, object, &hvpa->vpa, &err) < 0) {
        /* Types are right, so it is the selector. */
        td_field_error_add(&reader->findings->errors, TD_FIELD(&part->inner, "selector"),
                           TD_FIELD_INVALID, td_str_from(err.message), TD_STR_EMPTY);
        return;
    }
    const struct td_vpa_admission admission = {
        .object = object,
        .gates = td_vpa_gates_all,
    };
    struct td_field_errors errors = {.arena = arena};
    struct td_json *unused = NULL;
    if (td_vpa_admit(arena, &admission, &errors, &unused, &unused, &err) < 0) {
        td_field_invalid_str(&reader->findings->errors, &part->inner, TD_STR_EMPTY, err.message);
        return;
    }
    parts_take_errors(reader, part, &errors, false);
    parts_check_policies(reader, part, &hvpa->vpa.policy);
    hvpa->has_vpa = true;
    hvpa->vpa_spec = copy;
    hvpa->vpa.meta = hvpa->meta;
}

/* --- rules over several fields --- */

/* May a vertical decision change this resource of this container? */
static bool parts_controls(const struct td_container_policy *policy, td_str resource)
{
    return !(policy && policy->is_off) && td_vpa_controls(policy, resource);
}

/* Does the VPA control a resource in some container? Which containers there are is not known, so
 * named entries and the rule for all others count. */
static bool parts_controls_any(const struct td_resource_policy *policy, td_str resource)
{
    for (size_t i = 0; i < policy->container_count; i++) {
        if (parts_controls(&policy->containers[i], resource)) {
            return true;
        }
    }
    const struct td_container_policy *others = td_vpa_container_policy(policy, TD_STR("*"));
    return policy->container_count == 0 && parts_controls(others, resource);
}

static bool parts_is_normalised(const struct td_hvpa *hvpa, const struct td_hpa_metric *metric)
{
    bool is_resource = metric->type == TD_HPA_RESOURCE || metric->type == TD_HPA_CONTAINER_RESOURCE;
    if (!is_resource || metric->target.type != TD_HPA_UTILIZATION || !hvpa->has_vpa) {
        return false;
    }
    const struct td_resource_policy *policy = &hvpa->vpa.policy;
    return metric->type == TD_HPA_RESOURCE
               ? parts_controls_any(policy, metric->name)
               : parts_controls(td_vpa_container_policy(policy, metric->container), metric->name);
}

static void parts_check_capacity(struct td_hvpa_reader *reader, const struct td_field_path *ratio,
                                 const struct td_hvpa_part *hpa, const struct td_hvpa *hvpa)
{
    for (size_t i = 0; i < hvpa->hpa.metric_count; i++) {
        if (parts_is_normalised(hvpa, &hvpa->hpa.metrics[i])) {
            continue;
        }
        td_str place =
            td_field_path_text(reader->arena, TD_FIELD_ITEM(TD_FIELD(&hpa->inner, "metrics"), i));
        td_str detail = td_arena_format(
            reader->arena,
            "needs every metric to be a Utilization of a resource that the VPA controls; %.*s is "
            "not",
            TD_STR_ARG(place));
        td_field_invalid_str(&reader->findings->errors, TD_FIELD(ratio, "capacityPolicy"),
                             TD_STR("Max"), detail.ptr);
        return;
    }
}

static void parts_check_count(struct td_hvpa_reader *reader, const struct td_field_path *ratio,
                              td_str key, int32_t value, int32_t min, int32_t max)
{
    if (value >= min && value <= max) {
        return;
    }
    td_str detail = td_arena_format(reader->arena, "must be between %d and %d", min, max);
    td_field_invalid_int(&reader->findings->errors, TD_FIELD_AT(ratio, key), value, detail.ptr);
}

static void parts_check_interval(struct td_hvpa_reader *reader, const struct td_field_path *ratio,
                                 const struct td_hvpa *hvpa)
{
    const struct td_hvpa_ratio *spec = &hvpa->ratio;
    int32_t min = hvpa->hpa.min_replicas;
    int32_t max = hvpa->hpa.max_replicas;
    if (spec->has_start) {
        parts_check_count(reader, ratio, TD_STR("startReplicaCount"), spec->start, min, max);
    }
    if (spec->has_finish) {
        bool is_raised = spec->has_start && spec->start > min && spec->start <= max;
        parts_check_count(reader, ratio, TD_STR("finishReplicaCount"), spec->finish,
                          is_raised ? spec->start : min, max);
    }
}

static void parts_warn_unused(struct td_hvpa_reader *reader, const struct td_field_path *ratio,
                              const struct td_hvpa *hvpa)
{
    const struct {
        bool is_given;
        td_str key;
    } rows[] = {
        {hvpa->ratio.has_start, TD_STR("startReplicaCount")},
        {hvpa->ratio.has_finish, TD_STR("finishReplicaCount")},
        {hvpa->ratio.capacity == TD_HVPA_MAX, TD_STR("capacityPolicy")},
    };
    for (size_t i = 0; i < TD_COUNT(rows); i++) {
        if (rows[i].is_given) {
            td_hvpa_warn(reader, TD_FIELD_AT(ratio, rows[i].key),
                         "has no effect: nothing scales horizontally");
        }
    }
}

static void parts_check_window(struct td_hvpa_reader *reader, const struct td_field_path *spec,
                               const struct td_hvpa *hvpa)
{
    const struct {
        enum td_hvpa_update update;
        td_str axis;
        td_str direction;
    } rows[] = {
        {hvpa->horizontal_up.update, TD_STR("horizontal"), TD_STR("scaleUp")},
        {hvpa->horizontal_down.update, TD_STR("horizontal"), TD_STR("scaleDown")},
        {hvpa->vertical_up.update, TD_STR("vertical"), TD_STR("scaleUp")},
        {hvpa->vertical_down.update, TD_STR("vertical"), TD_STR("scaleDown")},
    };
    for (size_t i = 0; i < TD_COUNT(rows); i++) {
        if (rows[i].update == TD_HVPA_UPDATE_WINDOW && !hvpa->window.is_set) {
            struct td_field_path axis = td_field_child(spec, rows[i].axis);
            struct td_field_path direction = td_field_child(&axis, rows[i].direction);
            td_field_invalid_str(&reader->findings->errors,
                                 TD_FIELD(TD_FIELD(&direction, "updatePolicy"), "updateMode"),
                                 TD_STR("MaintenanceWindow"), "needs spec.maintenanceTimeWindow");
        }
    }
}

void td_hvpa_check_rules(struct td_hvpa_reader *reader, const struct td_hvpa_part *hpa,
                         const struct td_hvpa_part *vpa, const struct td_hvpa *hvpa)
{
    struct td_field_path spec = td_field_child(NULL, TD_STR("spec"));
    struct td_field_path ratio = td_field_child(&spec, TD_STR("ratioBasedScalingSpec"));
    parts_check_window(reader, &spec, hvpa);
    if (hvpa->has_vpa) {
        td_vpa_find_unused(&hvpa->vpa, &vpa->inner, &reader->findings->warnings);
    }
    if (hvpa->has_hpa && !td_hvpa_scales_horizontally(hvpa)) {
        td_hvpa_warn(reader, &hpa->outer, "has no effect: a DaemonSet has no replicas to scale");
    }
    if (hvpa->mode != TD_HVPA_RATIO_BASED) {
        return;
    }
    if (hvpa->has_vpa && hvpa->vpa.has_selector) {
        td_field_forbidden(&reader->findings->errors, TD_FIELD(&vpa->inner, "selector"),
                           "RatioBased needs pods of one size; choose another mode");
    }
    if (td_hvpa_scales_horizontally(hvpa)) {
        parts_check_interval(reader, &ratio, hvpa);
        if (hvpa->ratio.capacity == TD_HVPA_MAX) {
            parts_check_capacity(reader, &ratio, hpa, hvpa);
        }
    } else if (!hpa->spec || hvpa->has_hpa) {
        parts_warn_unused(reader, &ratio, hvpa);
    }
}
