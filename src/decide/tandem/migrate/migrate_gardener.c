/* An Hvpa of gardener's in our form, field by field. Types are not taken for granted: gardener's
 * own validation ran inside its controller, so files hold anything. */
#include "decide/tandem/migrate/migrate_private.h"

static void gardener_note(struct td_arena *arena, struct td_migration *migration, const char *note)
{
    td_migration_note(arena, migration, td_str_from(note));
}

/* --- metrics of v2beta1 --- */

static struct td_json *metric_target(struct td_arena *arena, td_str type, td_str key,
                                     const struct td_json *value)
{
    struct td_json *target = td_json_new_object(arena);
    td_json_set_str(arena, target, TD_STR("type"), type);
    td_json_set(arena, target, key, td_json_copy(arena, value, false));
    return target;
}

/* The one target that a source of v2beta1 has, under its several names. */
static struct td_json *metric_new_target(struct td_arena *arena, const struct td_json *source)
{
    static const struct {
        td_str from;
        td_str type;
        td_str key;
    } rows[] = {
        {TD_STR_INIT("targetAverageUtilization"), TD_STR_INIT("Utilization"),
         TD_STR_INIT("averageUtilization")},
        {TD_STR_INIT("targetAverageValue"), TD_STR_INIT("AverageValue"),
         TD_STR_INIT("averageValue")},
        {TD_STR_INIT("averageValue"), TD_STR_INIT("AverageValue"), TD_STR_INIT("averageValue")},
        {TD_STR_INIT("targetValue"), TD_STR_INIT("Value"), TD_STR_INIT("value")},
    };
    for (size_t i = 0; i < TD_COUNT(rows); i++) {
        const struct td_json *value = td_migrate_member(source, rows[i].from);
        if (value) {
            return metric_target(arena, rows[i].type, rows[i].key, value);
        }
    }
    return NULL;
}

static struct td_json *metric_new_source(struct td_arena *arena, const struct td_json *source)
{
    struct td_json *target = metric_new_target(arena, source);
    if (!target) {
        return td_json_copy(arena, source, false); /* v2 already, or wrong: verified later */
    }
    struct td_json *made = td_json_new_object(arena);
    td_migrate_copy(arena, made, TD_STR("name"), source, TD_STR("name"));
    td_migrate_copy(arena, made, TD_STR("container"), source, TD_STR("container"));
    td_migrate_copy(arena, made, TD_STR("describedObject"), source, TD_STR("target"));
    if (td_migrate_member(source, TD_STR("metricName"))) {
        struct td_json *metric = td_json_new_object(arena);
        td_migrate_copy(arena, metric, TD_STR("name"), source, TD_STR("metricName"));
        td_migrate_copy(arena, metric, TD_STR("selector"), source, TD_STR("selector"));
        td_migrate_copy(arena, metric, TD_STR("selector"), source, TD_STR("metricSelector"));
        td_json_set(arena, made, TD_STR("metric"), metric);
    }
    td_json_set(arena, made, TD_STR("target"), target);
    return made;
}

/* metrics of autoscaling/v2beta1, which gardener's template has, as v2. */
static struct td_json *migrate_metrics(struct td_arena *arena, const struct td_json *metrics)
{
    static const td_str sources[] = {
        TD_STR_INIT("resource"), TD_STR_INIT("containerResource"), TD_STR_INIT("pods"),
        TD_STR_INIT("object"),   TD_STR_INIT("external"),
    };
    struct td_json *list = td_json_new_array(arena);
    for (const struct td_json *item = td_json_first_item(metrics); item; item = item->next) {
        struct td_json *made = td_json_new_object(arena);
        td_migrate_copy(arena, made, TD_STR("type"), item, TD_STR("type"));
        for (size_t i = 0; i < TD_COUNT(sources); i++) {
            const struct td_json *source = td_migrate_member(item, sources[i]);
            if (td_json_is(source, TD_JSON_TYPE_OBJECT)) {
                td_json_set(arena, made, sources[i], metric_new_source(arena, source));
            }
        }
        td_json_append(list, made);
    }
    return list;
}

/* --- the parts --- */

static void gardener_add_hpa(struct td_arena *arena, const struct td_json *hpa,
                             struct td_json *spec)
{
    const struct td_json *template = td_migrate_member(hpa, TD_STR("template"));
    const struct td_json *given = td_migrate_member(template, TD_STR("spec"));
    const struct td_json *metrics = td_migrate_member(given, TD_STR("metrics"));
    struct td_json *made = td_json_new_object(arena);
    td_migrate_copy(arena, made, TD_STR("minReplicas"), given, TD_STR("minReplicas"));
    td_migrate_copy(arena, made, TD_STR("maxReplicas"), given, TD_STR("maxReplicas"));
    td_migrate_copy(arena, made, TD_STR("behavior"), given, TD_STR("behavior"));
    if (td_json_is(metrics, TD_JSON_TYPE_ARRAY) && metrics->count > 0) {
        td_json_set(arena, made, TD_STR("metrics"), migrate_metrics(arena, metrics));
    }
    td_json_set(arena, spec, TD_STR("hpaSpec"), made);
}

static void gardener_add_vpa(struct td_arena *arena, const struct td_json *vpa,
                             struct td_json *spec)
{
    const struct td_json *template = td_migrate_member(vpa, TD_STR("template"));
    const struct td_json *given = td_migrate_member(template, TD_STR("spec"));
    struct td_json *made = td_json_new_object(arena);
    td_migrate_copy(arena, made, TD_STR("resourcePolicy"), given, TD_STR("resourcePolicy"));
    td_json_set(arena, spec, TD_STR("vpaSpec"), made);
}

/* scaleUp and scaleDown keep their shape; minChange.replicas was never read. */
static void gardener_add_policies(struct td_arena *arena, const struct td_json *part,
                                  struct td_json *axis)
{
    static const td_str directions[] = {TD_STR_INIT("scaleUp"), TD_STR_INIT("scaleDown")};
    for (size_t i = 0; i < 2; i++) {
        const struct td_json *policy = td_migrate_member(part, directions[i]);
        if (!td_json_is(policy, TD_JSON_TYPE_OBJECT)) {
            continue;
        }
        struct td_json *copy = td_json_copy(arena, policy, false);
        struct td_json *change = td_json_get(copy, TD_STR("minChange"));
        if (td_json_is(change, TD_JSON_TYPE_OBJECT)) {
            (void)td_json_remove(change, TD_STR("replicas")); /* mostly absent */
        }
        td_json_set(arena, axis, directions[i], copy);
    }
}

static bool gardener_is_timed(const struct td_json *axis)
{
    const struct td_json *up = td_migrate_member(axis, TD_STR("scaleUp"));
    const struct td_json *down = td_migrate_member(axis, TD_STR("scaleDown"));
    return td_migrate_member(up, TD_STR("stabilizationDuration")) &&
           td_migrate_member(down, TD_STR("stabilizationDuration"));
}

static void gardener_add_axes(struct td_arena *arena, const struct td_json *hpa,
                              const struct td_json *vpa, struct td_json *spec,
                              struct td_migration *migration)
{
    struct td_json *horizontal = td_json_new_object(arena);
    struct td_json *vertical = td_json_new_object(arena);
    gardener_add_policies(arena, hpa, horizontal);
    gardener_add_policies(arena, vpa, vertical);
    td_migrate_copy(arena, vertical, TD_STR("limitsRequestsGapScaleParams"), vpa,
                    TD_STR("limitsRequestsGapScaleParams"));
    if (!gardener_is_timed(vertical)) {
        gardener_note(arena, migration,
                      "Without stabilizationDuration vertical changes are 3m apart going up and "
                      "15m going down; gardener's had no pause.");
    }
    if (horizontal->count > 0) {
        td_json_set(arena, spec, TD_STR("horizontal"), horizontal);
    }
    if (vertical->count > 0) {
        td_json_set(arena, spec, TD_STR("vertical"), vertical);
    }
}

static bool gardener_deploys(const struct td_json *part)
{
    return td_json_is(part, TD_JSON_TYPE_OBJECT) && td_json_get_bool(part, TD_STR("deploy"), false);
}

/* The mode: by the weights where both axes are there, else the one that is. */
static bool gardener_add_mode(struct td_arena *arena, const struct td_json *given,
                              struct td_json *spec, struct td_migration *migration)
{
    const struct td_json *hpa = td_migrate_member(given, TD_STR("hpa"));
    const struct td_json *vpa = td_migrate_member(given, TD_STR("vpa"));
    if (!gardener_deploys(hpa) || !gardener_deploys(vpa)) {
        td_json_set_str(arena, spec, TD_STR("mode"),
                        gardener_deploys(hpa) ? TD_STR("HPABiased") : TD_STR("VPABiased"));
        return true;
    }
    const struct td_json *bounds =
        td_migrate_member(td_migrate_member(hpa, TD_STR("template")), TD_STR("spec"));
    int64_t min = td_json_get_int64(bounds, TD_STR("minReplicas"), 1);
    int64_t max = td_json_get_int64(bounds, TD_STR("maxReplicas"), 0);
    if (min < 1 || max < min || max > INT32_MAX) {
        gardener_note(arena, migration,
                      "Not migrated: spec.hpa.template.spec needs 1 <= minReplicas <= "
                      "maxReplicas.");
        return false;
    }
    return td_migrate_weights(arena,
                              td_migrate_member(given, TD_STR("weightBasedScalingIntervals")), min,
                              max, spec, migration);
}

void td_migrate_gardener(struct td_arena *arena, const struct td_json *object,
                         struct td_migration *migration)
{
    const struct td_json *given = td_migrate_member(object, TD_STR("spec"));
    const struct td_json *hpa = td_migrate_member(given, TD_STR("hpa"));
    const struct td_json *vpa = td_migrate_member(given, TD_STR("vpa"));
    struct td_json *spec = NULL;
    struct td_json *made = td_migrate_new(arena, object, &spec);
    if (!gardener_deploys(hpa) && !gardener_deploys(vpa)) {
        gardener_note(arena, migration,
                      "Not migrated: neither spec.hpa nor spec.vpa has deploy: true, so nothing "
                      "was scaled.");
        return;
    }
    if (!gardener_add_mode(arena, given, spec, migration)) {
        return;
    }
    td_migrate_copy(arena, spec, TD_STR("targetRef"), given, TD_STR("targetRef"));
    if (gardener_deploys(hpa)) {
        gardener_add_hpa(arena, hpa, spec);
    }
    if (gardener_deploys(vpa)) {
        gardener_add_vpa(arena, vpa, spec);
    }
    /* An axis that the weights switched off stays off whatever its policies say. */
    bool is_vertical_off = td_json_get(spec, TD_STR("vertical")) != NULL;
    bool is_horizontal_off = td_json_get(spec, TD_STR("horizontal")) != NULL;
    gardener_add_axes(arena, hpa, vpa, spec, migration);
    if (is_vertical_off) {
        td_migrate_switch_off(arena, spec, TD_STR("vertical"));
    }
    if (is_horizontal_off) {
        td_migrate_switch_off(arena, spec, TD_STR("horizontal"));
    }
    td_migrate_copy(arena, spec, TD_STR("maintenanceTimeWindow"), given,
                    TD_STR("maintenanceTimeWindow"));
    gardener_note(arena, migration,
                  "Pods are resized one by one instead of rolled out; vertical.actuation: Template "
                  "is gardener's way.");
    migration->object = made;
    td_migrate_annotate(arena, migration, object);
    td_migrate_annotate(arena, migration, td_migrate_member(hpa, TD_STR("template")));
    td_migrate_annotate(arena, migration, td_migrate_member(vpa, TD_STR("template")));
    td_migrate_verify(arena, migration);
}
