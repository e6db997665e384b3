/* From the tree to the struct that deciders read. Types are checked first, so that everything below
 * may take them for granted; then every field is read with its default and its own rule, and faults
 * are collected instead of stopping at the first, so that a file can be fixed in one go. */
#include "api/hvpa/hvpa_private.h"
#include "base/error.h"
#include "base/limits.h"
#include "kube/schema/check.h"

#define DECODE_PATIENCE_SECONDS 300
#define DECODE_SETTLE_SECONDS 60
#define DECODE_TOLERANCE_PERCENT 10
#define DECODE_THRESHOLD_PERCENT 10
#define DECODE_THRESHOLD_REPLICAS 1
#define DECODE_WINDOW_BYTES 11 /* HHMMSS+ZZZZ */

void td_hvpa_warn(struct td_hvpa_reader *reader, const struct td_field_path *path,
                  const char *detail)
{
    td_field_error_add(&reader->findings->warnings, path, TD_FIELD_INVALID, TD_STR_EMPTY,
                       td_str_from(detail));
}

/* A failure whose text is "field: value: rule"; the field is relative to `path` and empty for the
 * value there itself. */
static void decode_add_text(struct td_hvpa_reader *reader, const struct td_field_path *path,
                            td_str text)
{
    size_t end = td_str_find(text, ':', 0);
    td_str field = td_str_slice(text, 0, end);
    td_str rest = td_str_trim(td_str_slice(text, end + 1, text.len));
    td_field_error_add(&reader->findings->errors, field.len > 0 ? TD_FIELD_AT(path, field) : path,
                       TD_FIELD_TYPE_INVALID, rest, TD_STR_EMPTY);
}

/* Check types below `path`; the first wrong one becomes a fault. */
static bool decode_check_types(struct td_hvpa_reader *reader, const struct td_schema_type *type,
                               const struct td_json *value, const struct td_field_path *path)
{
    struct td_error cause = TD_ERROR_INIT;
    if (td_check_types(type, value, NULL, &cause) == TD_OK) {
        return true;
    }
    decode_add_text(reader, path, td_str_from(cause.message));
    return false;
}

/* --- single fields; `object` may be NULL and then all are at their defaults --- */

typedef td_str (*decode_name_fn)(int value);

#define DECODE_NAMES(function, kind)                                                               \
    static td_str function##_name(int value)                                                       \
    {                                                                                              \
        return td_hvpa_##function##_name((enum td_hvpa_##kind)value);                              \
    }
DECODE_NAMES(mode, mode)
DECODE_NAMES(axis, axis)
DECODE_NAMES(capacity, capacity)
DECODE_NAMES(update, update)
DECODE_NAMES(actuation, actuation)
DECODE_NAMES(on_delete, on_delete)
DECODE_NAMES(coupling, coupling)
DECODE_NAMES(sources, sources)
#undef DECODE_NAMES

#define DECODE_ENUM_MAX 5 /* members of the largest enum */

/* The empty text is the default, since a Go client cannot leave out what it writes as empty. */
static int decode_enum(struct td_hvpa_reader *reader, const struct td_json *object,
                       const struct td_field_path *parent, td_str key, decode_name_fn name,
                       int count, int fallback)
{
    td_str text = td_json_get_str(object, key, TD_STR_EMPTY);
    td_str supported[DECODE_ENUM_MAX];
    for (int i = 0; i < count; i++) {
        supported[i] = name(i);
        if (td_str_equal(text, supported[i])) {
            return i;
        }
    }
    if (text.len > 0) {
        td_field_unsupported(&reader->findings->errors, TD_FIELD_AT(parent, key), text, supported,
                             (size_t)count);
    }
    return fallback;
}

struct decode_range {
    int64_t min;
    int64_t max;
    const char *rule;
};

static const struct decode_range decode_not_negative = {0, INT64_MAX,
                                                        "must be greater than or equal to 0"};
static const struct decode_range decode_percent = {0, 100, "must be between 0 and 100"};

static int64_t decode_int(struct td_hvpa_reader *reader, const struct td_json *object,
                          const struct td_field_path *parent, td_str key,
                          const struct decode_range *range, int64_t fallback)
{
    if (!td_kind_member(object, key)) {
        return fallback;
    }
    int64_t value = td_json_get_int64(object, key, fallback);
    if (value < range->min || value > range->max) {
        td_field_invalid_int(&reader->findings->errors, TD_FIELD_AT(parent, key), value,
                             range->rule);
        return fallback;
    }
    return value;
}

static struct td_hvpa_change decode_change(struct td_hvpa_reader *reader,
                                           const struct td_json *object,
                                           const struct td_field_path *parent,
                                           enum td_hvpa_resource resource)
{
    td_str name = td_hvpa_resource_name(resource);
    const struct td_json *change = td_kind_member(object, name);
    const struct td_json *value = td_json_member(change, "value");
    struct td_field_path path = td_field_child(parent, name);
    struct td_hvpa_change made = {
        .has_percentage = td_json_member(change, "percentage") != NULL,
        .percentage = (int32_t)decode_int(reader, change, &path, TD_STR("percentage"),
                                          &decode_not_negative, 0),
    };
    if (value && td_quantity_from_json(reader->arena, value, &made.value, NULL) == TD_OK) {
        made.has_value = true;
        made.amount = td_hvpa_amount(&made.value, resource);
        if (td_quantity_sign(&made.value) < 0) {
            td_field_invalid_str(&reader->findings->errors, TD_FIELD(&path, "value"), value->text,
                                 decode_not_negative.rule);
        }
    }
    return made;
}

static void decode_changes(struct td_hvpa_reader *reader, const struct td_json *object,
                           const struct td_field_path *path,
                           struct td_hvpa_change ret[TD_HVPA_RESOURCE_COUNT])
{
    for (int i = 0; i < TD_HVPA_RESOURCE_COUNT; i++) {
        ret[i] = decode_change(reader, object, path, (enum td_hvpa_resource)i);
    }
    if (td_json_member(object, "replicas")) {
        td_hvpa_warn(reader, TD_FIELD(path, "replicas"),
                     "has no effect: only cpu and memory have a smallest change");
    }
}

static td_duration decode_duration(struct td_hvpa_reader *reader, const struct td_json *object,
                                   const struct td_field_path *parent, td_str key,
                                   td_duration fallback)
{
    const struct td_json *node = td_kind_member(object, key);
    td_duration value;
    if (!node || td_duration_parse(node->text, &value, NULL) < 0) {
        return fallback; /* a malformed one is refused before */
    }
    if (value < 0) {
        td_field_invalid_str(&reader->findings->errors, TD_FIELD_AT(parent, key), node->text,
                             decode_not_negative.rule);
    }
    return value;
}

/* --- groups of fields --- */

static void decode_ratio(struct td_hvpa_reader *reader, const struct td_json *spec,
                         const struct td_field_path *parent, struct td_hvpa_ratio *ret)
{
    const struct td_json *ratio = td_json_member(spec, "ratioBasedScalingSpec");
    struct td_field_path path = td_field_child(parent, TD_STR("ratioBasedScalingSpec"));
    const struct td_json *share = td_json_member(ratio, "vToHScalingRatio");
    *ret = (struct td_hvpa_ratio){
        .v_to_h = 1,
        .start = (int32_t)td_json_get_int64(ratio, TD_STR("startReplicaCount"), 0),
        .finish = (int32_t)td_json_get_int64(ratio, TD_STR("finishReplicaCount"), 0),
        .overflow = td_json_get_bool(ratio, TD_STR("overflow"), true),
        .capacity = (enum td_hvpa_capacity)decode_enum(
            reader, ratio, &path, TD_STR("capacityPolicy"), capacity_name, 2, TD_HVPA_BLEND),
    };
    /* 0 is how the proposal's encoding says "not provided". */
    ret->has_start = ret->start != 0;
    ret->has_finish = ret->finish != 0;
    bool is_number = !share || td_json_to_double(share, &ret->v_to_h);
    if (!is_number || !(ret->v_to_h >= 0 && ret->v_to_h <= TD_HVPA_RATIO_MAX)) {
        td_field_error_add(&reader->findings->errors, TD_FIELD(&path, "vToHScalingRatio"),
                           TD_FIELD_INVALID, share->text, TD_STR("must be between 0 and 1000000"));
    }
}

/* By default Mixed does not let one replica stand in the way of a pod that is too small. */
static void decode_mixed(struct td_hvpa_reader *reader, const struct td_json *spec,
                         const struct td_field_path *parent, bool is_mode,
                         struct td_hvpa_mixed *ret)
{
    const struct td_json *mixed = td_json_member(spec, "mixed");
    struct td_field_path path = td_field_child(parent, TD_STR("mixed"));
    ret->preference = (enum td_hvpa_axis)decode_enum(reader, mixed, &path, TD_STR("preference"),
                                                     axis_name, 2, TD_HVPA_HORIZONTAL);
    ret->horizontal_threshold =
        (int32_t)decode_int(reader, mixed, &path, TD_STR("horizontalThreshold"),
                            &decode_not_negative, is_mode ? DECODE_THRESHOLD_REPLICAS : 0);
    ret->patience_seconds = decode_int(reader, mixed, &path, TD_STR("patienceSeconds"),
                                       &decode_not_negative, DECODE_PATIENCE_SECONDS);
    decode_changes(reader, td_json_member(mixed, "verticalThreshold"),
                   TD_FIELD(&path, "verticalThreshold"), ret->vertical_threshold);
    for (int i = 0; i < TD_HVPA_RESOURCE_COUNT; i++) {
        struct td_hvpa_change *change = &ret->vertical_threshold[i];
        if (!change->has_value && !change->has_percentage) {
            change->has_percentage = true;
            change->percentage = DECODE_THRESHOLD_PERCENT;
        }
    }
}

static void decode_policy(struct td_hvpa_reader *reader, const struct td_json *axis,
                          const struct td_field_path *parent, td_str key, td_duration fallback,
                          struct td_hvpa_scale_policy *ret)
{
    const struct td_json *policy = td_kind_member(axis, key);
    struct td_field_path path = td_field_child(parent, key);
    struct td_field_path update = td_field_child(&path, TD_STR("updatePolicy"));
    ret->update =
        (enum td_hvpa_update)decode_enum(reader, td_json_member(policy, "updatePolicy"), &update,
                                         TD_STR("updateMode"), update_name, 3, TD_HVPA_UPDATE_AUTO);
    ret->stabilization =
        decode_duration(reader, policy, &path, TD_STR("stabilizationDuration"), fallback);
    decode_changes(reader, td_json_member(policy, "minChange"), TD_FIELD(&path, "minChange"),
                   ret->min_change);
}

static void decode_axes(struct td_hvpa_reader *reader, const struct td_json *spec,
                        const struct td_field_path *parent, struct td_hvpa *hvpa)
{
    const struct td_json *horizontal = td_json_member(spec, "horizontal");
    const struct td_json *vertical = td_json_member(spec, "vertical");
    struct td_field_path across = td_field_child(parent, TD_STR("horizontal"));
    struct td_field_path path = td_field_child(parent, TD_STR("vertical"));
    struct td_field_path gap = td_field_child(&path, TD_STR("limitsRequestsGapScaleParams"));
    decode_policy(reader, horizontal, &across, TD_STR("scaleUp"), 0, &hvpa->horizontal_up);
    decode_policy(reader, horizontal, &across, TD_STR("scaleDown"), 0, &hvpa->horizontal_down);
    decode_policy(reader, vertical, &path, TD_STR("scaleUp"), 3 * TD_MINUTE, &hvpa->vertical_up);
    decode_policy(reader, vertical, &path, TD_STR("scaleDown"), 15 * TD_MINUTE,
                  &hvpa->vertical_down);
    hvpa->tolerance_percent =
        (int32_t)decode_int(reader, vertical, &path, TD_STR("tolerancePercent"), &decode_percent,
                            DECODE_TOLERANCE_PERCENT);
    hvpa->settle_seconds = decode_int(reader, vertical, &path, TD_STR("settleSeconds"),
                                      &decode_not_negative, DECODE_SETTLE_SECONDS);
    decode_changes(reader, td_json_member(vertical, "limitsRequestsGapScaleParams"), &gap,
                   hvpa->gap);
    hvpa->actuation = (enum td_hvpa_actuation)decode_enum(
        reader, vertical, &path, TD_STR("actuation"), actuation_name, 2, TD_HVPA_ACTUATE_PODS);
}

/* --- the maintenance window --- */

/* Two digits from `at`, or -1. */
static int32_t decode_two_digits(td_str text, size_t at)
{
    char tens = text.ptr[at];
    char ones = text.ptr[at + 1];
    if (tens < '0' || tens > '9' || ones < '0' || ones > '9') {
        return -1;
    }
    return (tens - '0') * 10 + (ones - '0');
}

/* HHMMSS and a zone such as +0100, as a second of the UTC day; -1 when it is none. */
static int32_t decode_time_of_day(td_str text)
{
    if (text.len != DECODE_WINDOW_BYTES || (text.ptr[6] != '+' && text.ptr[6] != '-')) {
        return -1;
    }
    int32_t hour = decode_two_digits(text, 0);
    int32_t minute = decode_two_digits(text, 2);
    int32_t second = decode_two_digits(text, 4);
    int32_t zone_hour = decode_two_digits(text, 7);
    int32_t zone_minute = decode_two_digits(text, 9);
    bool is_time = hour >= 0 && hour < 24 && minute >= 0 && minute < 60 && second >= 0 &&
                   second < 60 && zone_hour >= 0 && zone_hour < 24 && zone_minute >= 0 &&
                   zone_minute < 60;
    if (!is_time) {
        return -1;
    }
    int32_t local = (hour * 60 + minute) * 60 + second;
    int32_t zone = (zone_hour * 60 + zone_minute) * 60;
    int32_t utc = text.ptr[6] == '+' ? local - zone : local + zone;
    return (utc + TD_HVPA_SECONDS_A_DAY) % TD_HVPA_SECONDS_A_DAY;
}

static int32_t decode_window_end(struct td_hvpa_reader *reader, const struct td_json *window,
                                 const struct td_field_path *parent, td_str key)
{
    const struct td_json *node = td_kind_member(window, key);
    struct td_field_path path = td_field_child(parent, key);
    if (!node) {
        td_field_required(&reader->findings->errors, &path, "a time such as 220000+0100");
        return -1;
    }
    int32_t second = decode_time_of_day(node->text);
    if (second < 0) {
        td_field_invalid_str(&reader->findings->errors, &path, node->text,
                             "must be HHMMSS and a zone, such as 220000+0100");
    }
    return second;
}

static void decode_window(struct td_hvpa_reader *reader, const struct td_json *spec,
                          const struct td_field_path *parent, struct td_hvpa_window *ret)
{
    const struct td_json *window = td_json_member(spec, "maintenanceTimeWindow");
    struct td_field_path path = td_field_child(parent, TD_STR("maintenanceTimeWindow"));
    if (!window) {
        return;
    }
    ret->is_set = true;
    ret->begin_second = decode_window_end(reader, window, &path, TD_STR("begin"));
    ret->end_second = decode_window_end(reader, window, &path, TD_STR("end"));
    if (ret->begin_second >= 0 && ret->begin_second == ret->end_second) {
        td_field_invalid_str(&reader->findings->errors, &path, td_json_text(window, "begin"),
                             "begin and end must differ");
    }
}

/* --- the target --- */

struct decode_target {
    const struct td_json *node; /* NULL: not given */
    struct td_field_path path;
};

static bool decode_is_segment(td_str text)
{
    return !td_str_equal(text, TD_STR(".")) && !td_str_equal(text, TD_STR("..")) &&
           td_str_find(text, '/', 0) == text.len && td_str_find(text, '%', 0) == text.len;
}

static void decode_check_word(struct td_hvpa_reader *reader, const struct decode_target *target,
                              td_str key, td_str text)
{
    struct td_field_path path = td_field_child(&target->path, key);
    if (text.len == 0) {
        td_field_required(&reader->findings->errors, &path, "");
    } else if (!decode_is_segment(text)) {
        td_field_invalid_str(&reader->findings->errors, &path, text,
                             "must not be '.' or '..' nor contain '/' or '%'");
    }
}

static void decode_check_target(struct td_hvpa_reader *reader, const struct decode_target *target)
{
    struct td_object_reference reference = td_hpa_decode_reference(target->node);
    td_str version = reference.api_version;
    decode_check_word(reader, target, TD_STR("kind"), reference.kind);
    decode_check_word(reader, target, TD_STR("name"), reference.name);
    size_t slash = td_str_find(version, '/', 0);
    if (slash < version.len && td_str_find(version, '/', slash + 1) < version.len) {
        struct td_field_path path = td_field_child(&target->path, TD_STR("apiVersion"));
        td_field_invalid_str(&reader->findings->errors, &path, version,
                             "must be a version or a group and a version");
    }
}

/* Which member of two references differs; empty when none does, or when one of them lacks it. */
static td_str decode_difference(const struct td_object_reference *a,
                                const struct td_object_reference *b)
{
    if (a->kind.len > 0 && b->kind.len > 0 && !td_str_equal(a->kind, b->kind)) {
        return TD_STR("kind");
    }
    if (a->name.len > 0 && b->name.len > 0 && !td_str_equal(a->name, b->name)) {
        return TD_STR("name");
    }
    return TD_STR_EMPTY;
}

static void decode_targets(struct td_hvpa_reader *reader, const struct td_json *spec,
                           struct td_hvpa *hvpa)
{
    struct decode_target targets[TD_HVPA_TARGET_PLACES];
    const struct decode_target *chosen = NULL;
    for (size_t i = 0; i < TD_HVPA_TARGET_PLACES; i++) {
        td_str field;
        targets[i].node = td_hvpa_target_at(spec, i, &field);
        targets[i].path = td_field_child(NULL, field);
        if (!targets[i].node) {
            continue;
        }
        decode_check_target(reader, &targets[i]);
        struct td_object_reference reference = td_hpa_decode_reference(targets[i].node);
        if (!chosen) {
            chosen = &targets[i];
            hvpa->target = reference;
            continue;
        }
        td_str member = decode_difference(&hvpa->target, &reference);
        if (member.len > 0) {
            struct td_field_path path = td_field_child(&targets[i].path, member);
            td_str value = td_json_get_str(targets[i].node, member, TD_STR_EMPTY);
            td_str first = td_field_path_text(reader->arena, &chosen->path);
            td_str detail = td_arena_format(
                reader->arena, "differs from %.*s, which has \"%.*s\"", TD_STR_ARG(first),
                TD_STR_ARG(td_json_get_str(chosen->node, member, TD_STR_EMPTY)));
            td_field_invalid_str(&reader->findings->errors, &path, value, detail.ptr);
            reader->mismatch_count++;
        }
    }
    if (!chosen) {
        td_field_required(&reader->findings->errors, &targets[0].path, "a workload to scale");
    }
}

/* --- the whole --- */

/* Where the spec of hpaSpec or vpaSpec is. What is empty counts as absent when `skips_empty`. */
static bool decode_part(struct td_hvpa_reader *reader, const struct td_json *spec, td_str key,
                        const struct td_schema_type *type, bool skips_empty,
                        struct td_hvpa_part *ret)
{
    const struct td_json *node = td_kind_member(spec, key);
    if (!node) {
        return true;
    }
    if (node->type != TD_JSON_TYPE_OBJECT) {
        return decode_check_types(reader, type, node, &ret->outer);
    }
    ret->spec = td_hvpa_part(spec, key, &ret->is_object_form);
    ret->inner = ret->is_object_form ? td_field_child(&ret->outer, TD_STR("spec")) : ret->outer;
    if (skips_empty && ret->spec->count == 0) {
        ret->spec = NULL;
        return true;
    }
    return decode_check_types(reader, type, ret->spec, &ret->inner);
}

static void decode_choices(struct td_hvpa_reader *reader, const struct td_json *spec,
                           const struct td_field_path *path, struct td_hvpa *hvpa)
{
    hvpa->mode = (enum td_hvpa_mode)decode_enum(reader, spec, path, TD_STR("mode"), mode_name, 5,
                                                TD_HVPA_RATIO_BASED);
    hvpa->initial_scaling = (enum td_hvpa_axis)decode_enum(
        reader, spec, path, TD_STR("initialScaling"), axis_name, 2, TD_HVPA_HORIZONTAL);
    hvpa->final_scaling = (enum td_hvpa_axis)decode_enum(reader, spec, path, TD_STR("finalScaling"),
                                                         axis_name, 2, TD_HVPA_HORIZONTAL);
    bool is_ratio = hvpa->mode == TD_HVPA_RATIO_BASED;
    hvpa->coupling =
        (enum td_hvpa_coupling)decode_enum(reader, spec, path, TD_STR("coupling"), coupling_name, 3,
                                           is_ratio ? TD_HVPA_RECONCILE : TD_HVPA_REFERENCE);
    hvpa->sources = (enum td_hvpa_sources)decode_enum(reader, spec, path, TD_STR("sources"),
                                                      sources_name, 2, TD_HVPA_INTERNAL);
    hvpa->on_delete = (enum td_hvpa_on_delete)decode_enum(
        reader, spec, path, TD_STR("onDelete"), on_delete_name, 2, TD_HVPA_DELETE_TEMPLATE);
    hvpa->opposing_guard = td_json_get_bool(spec, TD_STR("opposingGuard"), true);
    hvpa->paused = td_json_get_bool(spec, TD_STR("paused"), false);
    hvpa->has_replicas = td_json_member(spec, "replicas") != NULL;
    hvpa->replicas =
        (int32_t)decode_int(reader, spec, path, TD_STR("replicas"), &decode_not_negative, 0);
}

static void decode_old_fields(struct td_hvpa_reader *reader, const struct td_json *spec,
                              const struct td_field_path *path)
{
    static const td_str names[] = {TD_STR_INIT("hpa"), TD_STR_INIT("vpa"),
                                   TD_STR_INIT("weightBasedScalingIntervals")};
    for (size_t i = 0; i < TD_COUNT(names); i++) {
        if (td_kind_member(spec, names[i])) {
            td_hvpa_warn(reader, TD_FIELD_AT(path, names[i]),
                         "is a field of gardener's Hvpa and has no effect here; "
                         "'tandem validate --migrate' prints the object in our form");
        }
    }
}

/* What only another mode, or a border that is not there, would look at. */
static void decode_warn_unused(struct td_hvpa_reader *reader, const struct td_json *spec,
                               const struct td_field_path *path, const struct td_hvpa *hvpa)
{
    static const td_str ratio_fields[] = {TD_STR_INIT("ratioBasedScalingSpec"),
                                          TD_STR_INIT("initialScaling"),
                                          TD_STR_INIT("finalScaling")};
    bool is_ratio = hvpa->mode == TD_HVPA_RATIO_BASED;
    td_str mode = td_hvpa_mode_name(hvpa->mode);
    for (size_t i = 0; i < TD_COUNT(ratio_fields) && !is_ratio; i++) {
        if (td_kind_member(spec, ratio_fields[i])) {
            td_str words = td_arena_format(
                reader->arena, "has no effect in mode %.*s, only in RatioBased", TD_STR_ARG(mode));
            td_hvpa_warn(reader, TD_FIELD_AT(path, ratio_fields[i]), words.ptr);
        }
    }
    if (td_kind_member(spec, TD_STR("mixed")) && hvpa->mode != TD_HVPA_MIXED) {
        td_str words = td_arena_format(reader->arena, "has no effect in mode %.*s, only in Mixed",
                                       TD_STR_ARG(mode));
        td_hvpa_warn(reader, TD_FIELD(path, "mixed"), words.ptr);
    }
    if (is_ratio && td_kind_member(spec, TD_STR("initialScaling")) && !hvpa->ratio.has_start) {
        td_hvpa_warn(reader, TD_FIELD(path, "initialScaling"),
                     "has no effect without ratioBasedScalingSpec.startReplicaCount");
    }
    if (is_ratio && td_kind_member(spec, TD_STR("finalScaling")) && !hvpa->ratio.has_finish) {
        td_hvpa_warn(reader, TD_FIELD(path, "finalScaling"),
                     "has no effect without ratioBasedScalingSpec.finishReplicaCount");
    }
}

static void decode_spec(struct td_hvpa_reader *reader, const struct td_json *spec,
                        struct td_hvpa *hvpa)
{
    struct td_field_path path = td_field_child(NULL, TD_STR("spec"));
    struct td_hvpa_part hpa = {.outer = td_field_child(&path, TD_STR("hpaSpec"))};
    struct td_hvpa_part vpa = {.outer = td_field_child(&path, TD_STR("vpaSpec"))};
    bool is_hpa_typed =
        decode_part(reader, spec, TD_STR("hpaSpec"), td_hvpa_hpa_spec_type(), true, &hpa);
    bool is_vpa_typed =
        decode_part(reader, spec, TD_STR("vpaSpec"), td_hvpa_vpa_spec_type(), false, &vpa);
    if (!is_hpa_typed || !is_vpa_typed) {
        return;
    }
    if (!hpa.spec && !vpa.spec) {
        td_field_required(&reader->findings->errors, &path,
                          "hpaSpec, vpaSpec or both must be there");
    }
    decode_old_fields(reader, spec, &path);
    decode_choices(reader, spec, &path, hvpa);
    decode_ratio(reader, spec, &path, &hvpa->ratio);
    decode_mixed(reader, spec, &path, hvpa->mode == TD_HVPA_MIXED, &hvpa->mixed);
    decode_axes(reader, spec, &path, hvpa);
    decode_window(reader, spec, &path, &hvpa->window);
    decode_targets(reader, spec, hvpa);
    td_hvpa_read_hpa(reader, &hpa, hvpa);
    td_hvpa_read_vpa(reader, &vpa, hvpa);
    td_hvpa_check_rules(reader, &hpa, &vpa, hvpa);
    decode_warn_unused(reader, spec, &path, hvpa);
}

/* Our own earlier word: what cannot be read is rebuilt. */
static void decode_status(struct td_hvpa_reader *reader, const struct td_json *object,
                          struct td_hvpa *hvpa)
{
    struct td_error err = TD_ERROR_INIT;
    const struct td_json *status = td_json_member(object, "status");
    if (td_hvpa_status_decode(reader->arena, status, &hvpa->status, &err) < 0) {
        td_str detail = td_arena_format(reader->arena, "is not read: %s", err.message);
        td_hvpa_warn(reader, TD_FIELD(NULL, "status"), detail.ptr);
    }
}

static int decode_fail(struct td_hvpa_reader *reader, struct td_error *err)
{
    struct td_hvpa_findings *findings = reader->findings;
    findings->is_target_mismatch = reader->mismatch_count == findings->errors.count;
    td_auto_buf text = td_buf_capped(TD_JSON_BYTES_MAX);
    td_field_error_write(&findings->errors.items[0], &text);
    return td_error_set(err, TD_INVALID, "%s%.*s",
                        findings->is_target_mismatch ? "TargetMismatch: " : "",
                        TD_STR_ARG(td_buf_str(&text)));
}

int td_hvpa_decode(struct td_arena *arena, const struct td_json *object, struct td_hvpa *ret,
                   struct td_hvpa_findings *findings, struct td_error *err)
{
    struct td_hvpa_findings unread = {.is_target_mismatch = false};
    struct td_hvpa_reader reader = {.arena = arena, .findings = findings ? findings : &unread};
    *reader.findings =
        (struct td_hvpa_findings){.errors = {.arena = arena}, .warnings = {.arena = arena}};
    struct td_hvpa made = {.tree = object};
    if (!td_json_is(object, TD_JSON_TYPE_OBJECT)) {
        struct td_field_path kind = td_field_child(NULL, TD_STR("kind"));
        td_field_required(&reader.findings->errors, &kind, "an Hvpa must be an object");
        return decode_fail(&reader, err);
    }
    if (!decode_check_types(&reader, td_hvpa_reading_type(), object, NULL)) {
        return decode_fail(&reader, err);
    }
    struct td_error cause = TD_ERROR_INIT;
    if (td_meta_decode(arena, object, &made.meta, &cause) < 0) {
        decode_add_text(&reader, NULL, td_str_from(cause.message));
        return decode_fail(&reader, err);
    }
    decode_spec(&reader, td_json_member(object, "spec"), &made);
    if (reader.findings->errors.count > 0) {
        return decode_fail(&reader, err);
    }
    decode_status(&reader, object, &made);
    *ret = made;
    return TD_OK;
}
