/*
 * Settings of a what-if, and the objects that they stand for: those of the workload as they are
 * stored, or new ones, with what was asked written into them. The Hvpa is decoded as its controller
 * would decode it, so that what cannot be is refused in the same words.
 */
#include <math.h>

#include "base/error.h"
#include "base/yaml/yaml.h"
#include "decide/vertical/resourcelist.h"
#include "web/whatif.h"

#define WHATIF_MI (1024.0 * 1024.0)
#define WHATIF_REPLICAS_MAX 100000
#define WHATIF_CONTAINER TD_STR("*")

/* ---- Settings ---- */

static int read_number(const struct td_json *order, const char *name, const double range[2],
                       double *ret, struct td_error *err)
{
    const struct td_json *node = td_json_member(order, name);
    double value;
    if (!node || node->type == TD_JSON_TYPE_NULL) {
        *ret = -1;
        return TD_OK;
    }
    if (!td_json_is(node, TD_JSON_TYPE_NUMBER) || !td_json_to_double(node, &value) ||
        !(value >= range[0] && value <= range[1])) {
        return td_error_set(err, TD_INVALID, "%s: must be a number from %g to %g", name, range[0],
                            range[1]);
    }
    *ret = value;
    return TD_OK;
}

static int read_numbers(const struct td_json *order, struct whatif_settings *settings,
                        struct td_error *err)
{
    const struct {
        const char *name;
        double range[2];
        double *place;
    } numbers[] = {
        {"cpuPercentile", {0.01, 1}, &settings->cpu_percentile},
        {"memoryPercentile", {0.01, 1}, &settings->memory_percentile},
        {"margin", {0, 10}, &settings->margin},
        {"minCpu", {0, 1e9}, &settings->least[TD_MODEL_CPU]},
        {"maxCpu", {0, 1e9}, &settings->most[TD_MODEL_CPU]},
        {"minMemory", {0, 1e14}, &settings->least[TD_MODEL_MEMORY]},
        {"maxMemory", {0, 1e14}, &settings->most[TD_MODEL_MEMORY]},
        {"utilization", {1, 1000}, &settings->utilization},
        {"minReplicas", {1, WHATIF_REPLICAS_MAX}, &settings->replicas_min},
        {"maxReplicas", {1, WHATIF_REPLICAS_MAX}, &settings->replicas_max},
        {"ratio", {0, 1e6}, &settings->ratio},
    };
    int code = TD_OK;
    for (size_t i = 0; i < TD_COUNT(numbers) && code == TD_OK; i++) {
        code = read_number(order, numbers[i].name, numbers[i].range, numbers[i].place, err);
    }
    for (size_t r = 0; r < TD_MODEL_RESOURCES && code == TD_OK; r++) {
        if (settings->most[r] > 0 && settings->least[r] > settings->most[r]) {
            code = td_error_set(err, TD_INVALID, "%s: must not be above %s",
                                r == TD_MODEL_CPU ? "minCpu" : "minMemory",
                                r == TD_MODEL_CPU ? "maxCpu" : "maxMemory");
        }
    }
    if (code == TD_OK && settings->replicas_max > 0 &&
        settings->replicas_min > settings->replicas_max) {
        code = td_error_set(err, TD_INVALID, "minReplicas: must not be above maxReplicas");
    }
    return code;
}

static int read_way(td_str mode, struct whatif_settings *settings, struct td_error *err)
{
    static const struct {
        td_str word;
        enum whatif_way way;
    } ways[] = {{TD_STR_INIT("VPA"), WHATIF_VPA},
                {TD_STR_INIT("HPA"), WHATIF_HPA},
                {TD_STR_INIT("HPA+VPA"), WHATIF_BOTH}};
    for (size_t i = 0; i < TD_COUNT(ways); i++) {
        if (td_str_equal(mode, ways[i].word)) {
            settings->way = ways[i].way;
            return TD_OK;
        }
    }
    for (enum td_hvpa_mode m = TD_HVPA_HPA_PREFERRED; m <= TD_HVPA_RATIO_BASED; m++) {
        if (td_str_equal(mode, td_hvpa_mode_name(m))) {
            settings->way = WHATIF_HVPA;
            settings->mode = m;
            return TD_OK;
        }
    }
    return td_error_set(err, TD_INVALID,
                        "mode: must be VPA, HPA, HPA+VPA, HPAPreferred, HPABiased, VPABiased, "
                        "Mixed or RatioBased");
}

static int read_settings(const struct td_json *order, struct whatif_settings *settings,
                         struct td_error *err)
{
    td_str estimator = td_json_get_str(order, TD_STR("estimator"), TD_STR("upstream"));
    int code = read_way(td_json_text(order, "mode"), settings, err);
    code = code == TD_OK ? read_numbers(order, settings, err) : code;
    settings->estimator = td_estimator_find(estimator);
    if (code == TD_OK && !settings->estimator) {
        code = td_error_set(err, TD_INVALID, "estimator: there is none of that name");
    }
    if (code == TD_OK && settings->way != WHATIF_VPA && settings->utilization < 0) {
        code = td_error_set(err, TD_INVALID, "utilization: is needed where replicas change");
    }
    return code;
}

/* ---- Objects ---- */

static td_str cpu_text(struct td_arena *arena, double milli)
{
    return td_arena_format(arena, "%.0fm", milli);
}

static td_str memory_text(struct td_arena *arena, double bytes)
{
    return fmod(bytes, WHATIF_MI) == 0 ? td_arena_format(arena, "%.0fMi", bytes / WHATIF_MI)
                                       : td_arena_format(arena, "%.0f", bytes);
}

static void set_bounds(struct td_arena *arena, struct td_json *policy, td_str key,
                       const double amounts[TD_MODEL_RESOURCES])
{
    if (amounts[TD_MODEL_CPU] > 0) {
        td_json_set_str(arena, td_json_ensure_object(arena, policy, key), TD_CPU,
                        cpu_text(arena, amounts[TD_MODEL_CPU]));
    }
    if (amounts[TD_MODEL_MEMORY] > 0) {
        td_json_set_str(arena, td_json_ensure_object(arena, policy, key), TD_MEMORY,
                        memory_text(arena, amounts[TD_MODEL_MEMORY]));
    }
}

/* minAllowed and maxAllowed of every container. */
static void set_policy(struct td_arena *arena, struct td_json *vpa_spec,
                       const struct whatif_settings *settings)
{
    bool has_any = settings->least[TD_MODEL_CPU] > 0 || settings->least[TD_MODEL_MEMORY] > 0 ||
                   settings->most[TD_MODEL_CPU] > 0 || settings->most[TD_MODEL_MEMORY] > 0;
    if (!has_any) {
        return;
    }
    struct td_json *policy = td_json_ensure_object(arena, vpa_spec, TD_STR("resourcePolicy"));
    struct td_json *list = td_json_ensure_array(arena, policy, TD_STR("containerPolicies"));
    if (!td_json_first_item(list)) {
        struct td_json *item = td_json_new_object(arena);
        td_json_set_str(arena, item, TD_STR("containerName"), WHATIF_CONTAINER);
        td_json_append(list, item);
    }
    for (size_t i = 0; td_json_at(list, i); i++) {
        set_bounds(arena, td_json_at(list, i), TD_STR("minAllowed"), settings->least);
        set_bounds(arena, td_json_at(list, i), TD_STR("maxAllowed"), settings->most);
    }
}

static void set_estimator(struct td_arena *arena, struct td_json *object,
                          const struct whatif_settings *settings)
{
    if (settings->estimator != &td_estimator_upstream) {
        struct td_json *metadata = td_json_ensure_object(arena, object, TD_STR("metadata"));
        td_json_set_str(arena, td_json_ensure_object(arena, metadata, TD_STR("annotations")),
                        TD_ESTIMATOR_ANNOTATION, td_str_from(settings->estimator->name));
    }
}

static void set_replicas(struct td_arena *arena, struct td_json *hpa_spec,
                         const struct whatif_settings *settings)
{
    if (settings->replicas_min > 0) {
        td_json_set_int64(arena, hpa_spec, TD_STR("minReplicas"), (int64_t)settings->replicas_min);
    }
    if (settings->replicas_max > 0) {
        td_json_set_int64(arena, hpa_spec, TD_STR("maxReplicas"), (int64_t)settings->replicas_max);
    } else if (!td_json_get(hpa_spec, TD_STR("maxReplicas"))) {
        td_json_set_int64(arena, hpa_spec, TD_STR("maxReplicas"), 10);
    }
    struct td_json *list = td_json_new_array(arena);
    struct td_json *metric = td_json_new_object(arena);
    td_json_set_str(arena, metric, TD_STR("type"), TD_STR("Resource"));
    struct td_json *resource = td_json_ensure_object(arena, metric, TD_STR("resource"));
    td_json_set_str(arena, resource, TD_STR("name"), TD_CPU);
    struct td_json *target = td_json_ensure_object(arena, resource, TD_STR("target"));
    td_json_set_str(arena, target, TD_STR("type"), TD_STR("Utilization"));
    td_json_set_int64(arena, target, TD_STR("averageUtilization"), (int64_t)settings->utilization);
    td_json_append(list, metric);
    td_json_set(arena, hpa_spec, TD_STR("metrics"), list);
}

static struct td_json *make_vpa(const struct web_call *call, struct web_whatif *whatif,
                                const struct td_model_row *row)
{
    struct td_arena *arena = &whatif->arena;
    struct td_json *vpa = web_yaml_stored(call, arena, row->scalers[TD_MODEL_VPA]);
    vpa = vpa ? vpa : web_yaml_vpa(arena, row);
    set_policy(arena, td_json_ensure_object(arena, vpa, TD_STR("spec")), &whatif->settings);
    set_estimator(arena, vpa, &whatif->settings);
    return vpa;
}

static struct td_json *make_hpa(const struct web_call *call, struct web_whatif *whatif,
                                const struct td_model_row *row)
{
    struct td_arena *arena = &whatif->arena;
    struct td_json *hpa = web_yaml_stored(call, arena, row->scalers[TD_MODEL_HPA]);
    hpa = hpa ? hpa : web_yaml_hpa(arena, row);
    set_replicas(arena, td_json_ensure_object(arena, hpa, TD_STR("spec")), &whatif->settings);
    return hpa;
}

static struct td_json *make_hvpa(const struct web_call *call, struct web_whatif *whatif,
                                 const struct td_model_row *row)
{
    struct td_arena *arena = &whatif->arena;
    const struct whatif_settings *settings = &whatif->settings;
    struct td_json *hvpa = web_yaml_stored(call, arena, row->scalers[TD_MODEL_HVPA]);
    hvpa = hvpa ? hvpa : web_yaml_hvpa(call, arena, row);
    struct td_json *spec = td_json_ensure_object(arena, hvpa, TD_STR("spec"));
    td_json_remove(spec, TD_STR("replicas")); /* written by tandem */
    td_json_set_str(arena, spec, TD_STR("mode"), td_hvpa_mode_name(settings->mode));
    if (settings->ratio >= 0) {
        td_json_set_double(arena,
                           td_json_ensure_object(arena, spec, TD_STR("ratioBasedScalingSpec")),
                           TD_STR("vToHScalingRatio"), settings->ratio);
    }
    set_replicas(arena, td_json_ensure_object(arena, spec, TD_STR("hpaSpec")), settings);
    set_policy(arena, td_json_ensure_object(arena, spec, TD_STR("vpaSpec")), settings);
    set_estimator(arena, hvpa, settings);
    return hvpa;
}

/* What of the settings is in no object. */
static void write_flags(const struct whatif_settings *settings, struct td_buf *out)
{
    struct td_vertical_config usual = td_vertical_config_default();
    const struct {
        const char *flag;
        double value;
        double usual;
    } flags[] = {
        {"target-cpu-percentile", settings->cpu_percentile, usual.target_cpu_percentile},
        {"target-memory-percentile", settings->memory_percentile, usual.target_memory_percentile},
        {"recommendation-margin-fraction", settings->margin, usual.margin_fraction},
    };
    for (size_t i = 0; i < TD_COUNT(flags); i++) {
        if (flags[i].value >= 0 && flags[i].value != flags[i].usual) {
            (void)td_buf_append_format(out, "# flag of the recommender: --%s=%g\n", flags[i].flag,
                                       flags[i].value);
        }
    }
}

static int make_objects(const struct web_call *call, struct web_whatif *whatif,
                        const struct td_model_row *row, struct td_error *err)
{
    td_auto_buf text = td_buf_capped(WEB_ANSWER_BYTES_MAX);
    enum whatif_way way = whatif->settings.way;
    if (way != WHATIF_HPA) {
        write_flags(&whatif->settings, &text);
    }
    if (way == WHATIF_HVPA) {
        struct td_json *hvpa = make_hvpa(call, whatif, row);
        int code = td_hvpa_decode(&whatif->arena, hvpa, &whatif->hvpa, NULL, err);
        if (code != TD_OK) {
            return code;
        }
        td_yaml_write(hvpa, &text);
    }
    if (way == WHATIF_VPA || way == WHATIF_BOTH) {
        td_yaml_write(make_vpa(call, whatif, row), &text);
    }
    if (way == WHATIF_BOTH) {
        (void)td_buf_append(&text, TD_STR("---\n"));
    }
    if (way == WHATIF_HPA || way == WHATIF_BOTH) {
        td_yaml_write(make_hpa(call, whatif, row), &text);
    }
    whatif->yaml = td_arena_copy_str(&whatif->arena, td_buf_str(&text));
    return TD_OK;
}

/* ---- The whole ---- */

static struct td_resource_list amounts_list(struct td_arena *arena,
                                            const double amounts[TD_MODEL_RESOURCES])
{
    struct td_resource_list list = {.items = td_arena_array(arena, struct td_resource_amount, 2)};
    if (amounts[TD_MODEL_CPU] > 0) {
        list.items[list.count++] = (struct td_resource_amount){
            .name = TD_CPU,
            .quantity =
                td_quantity_new_milli((int64_t)amounts[TD_MODEL_CPU], TD_QUANTITY_DECIMAL_SI)};
    }
    if (amounts[TD_MODEL_MEMORY] > 0) {
        list.items[list.count++] = (struct td_resource_amount){
            .name = TD_MEMORY,
            .quantity = td_quantity_new((int64_t)amounts[TD_MODEL_MEMORY], TD_QUANTITY_BINARY_SI)};
    }
    return list;
}

static void set_config(struct web_whatif *whatif)
{
    const struct whatif_settings *settings = &whatif->settings;
    struct td_container_policy *policy = td_arena_new(&whatif->arena, struct td_container_policy);
    struct td_vertical_config *config = &whatif->config;
    *config = td_vertical_config_default();
    if (settings->cpu_percentile > 0) {
        config->target_cpu_percentile = settings->cpu_percentile;
    }
    if (settings->memory_percentile > 0) {
        config->target_memory_percentile = settings->memory_percentile;
    }
    if (settings->margin >= 0) {
        config->margin_fraction = settings->margin;
    }
    *policy = (struct td_container_policy){
        .container_name = WHATIF_CONTAINER,
        .min_allowed = amounts_list(&whatif->arena, settings->least),
        .max_allowed = amounts_list(&whatif->arena, settings->most),
    };
    whatif->policy =
        (struct td_resource_policy){.is_set = true, .containers = policy, .container_count = 1};
}

int whatif_read(const struct web_call *call, struct web_whatif *whatif, const struct td_json *order,
                const struct td_model_row *row, struct td_error *err)
{
    const struct td_model_scaler *sizes =
        row->scalers[TD_MODEL_HVPA] ? row->scalers[TD_MODEL_HVPA] : row->scalers[TD_MODEL_VPA];
    whatif->container = td_arena_copy_str(&whatif->arena, sizes && sizes->container_count == 1
                                                              ? sizes->containers[0].name
                                                              : TD_STR("containers"));
    int code = read_settings(order, &whatif->settings, err);
    if (code == TD_OK) {
        set_config(whatif);
        code = make_objects(call, whatif, row, err);
    }
    return code;
}
