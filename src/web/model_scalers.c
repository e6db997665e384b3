/*
 * VPAs, HPAs and Hvpas: of each the few numbers that a row shows, read anew when the object
 * changes, and an index by the workload that they are about.
 */
#include <string.h>

#include "api/hvpa/hvpa.h"
#include "api/vpa/vpa.h"
#include "base/alloc.h"
#include "base/limits.h"
#include "base/text.h"
#include "control/inspect/conditions.h"
#include "decide/vertical/estimator/estimator.h"
#include "decide/vertical/resourcelist.h"
#include "kube/objectkey.h"
#include "web/model.h"

#define SCALER_BYTES_USUAL 272 /* with one container and no problem */
#define SCALER_ARENA_BYTES_MAX ((size_t)1 << 20)
#define SCALERS_MAX ((size_t)200000)

static td_str scaler_key(char buffer[TD_OBJECT_KEY_BYTES_MAX], enum td_model_scaler_kind kind,
                         td_str ns, td_str name)
{
    static const char *const kinds[] = {"hvpa", "hpa", "vpa"};
    return TD_KEY_LINES(buffer, td_str_from(kinds[kind]), ns, name);
}

/* ---- The index by workload ---- */

struct target {
    td_str key;
    struct td_model_scaler *first;
};

static void target_add(struct td_model *model, struct td_model_scaler *scaler)
{
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    td_str key = TD_KEY_LINES(buffer, scaler->ns, scaler->target_kind, scaler->target_name);
    struct target *target = td_map_get(&model->targets, key);
    if (!target) {
        target = td_alloc_zero(1, sizeof(*target) + key.len + 1);
        target->key = td_text_behind(target + 1, key);
        if (td_map_put(&model->targets, target->key, target) != TD_OK) {
            td_free(target);
            return;
        }
    }
    /* By kind, then by name: the first counts, as in the table of `tandem up`. */
    struct td_model_scaler **place = &target->first;
    while (*place &&
           ((*place)->kind < scaler->kind ||
            ((*place)->kind == scaler->kind && td_str_compare((*place)->name, scaler->name) < 0))) {
        place = &(*place)->next;
    }
    scaler->next = *place;
    *place = scaler;
}

static void target_remove(struct td_model *model, struct td_model_scaler *scaler)
{
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    td_str key = TD_KEY_LINES(buffer, scaler->ns, scaler->target_kind, scaler->target_name);
    struct target *target = td_map_get(&model->targets, key);
    struct td_model_scaler **place = target ? &target->first : NULL;
    while (place && *place && *place != scaler) {
        place = &(*place)->next;
    }
    if (place && *place) {
        *place = scaler->next;
    }
    if (target && !target->first) {
        (void)td_map_remove(&model->targets, target->key);
        td_free(target);
    }
}

struct td_model_scaler *model_scalers_of(const struct td_model *model, td_str ns, td_str kind,
                                         td_str name)
{
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    const struct target *target = td_map_get(&model->targets, TD_KEY_LINES(buffer, ns, kind, name));
    return target ? target->first : NULL;
}

struct td_model_scaler *model_find_scaler(const struct td_model *model,
                                          enum td_model_scaler_kind kind, td_str ns, td_str name)
{
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    return td_map_get(&model->scalers, scaler_key(buffer, kind, ns, name));
}

/* ---- Reading ---- */

static void read_amounts(const struct td_resource_list *list, double out[TD_MODEL_RESOURCES])
{
    const struct td_quantity *cpu = td_resource_list_get(list, TD_CPU);
    const struct td_quantity *memory = td_resource_list_get(list, TD_MEMORY);
    out[TD_MODEL_CPU] = cpu ? (double)td_quantity_milli(cpu) : -1;
    out[TD_MODEL_MEMORY] = memory ? (double)td_quantity_value(memory) : -1;
}

static void read_recommendation(struct td_model_scaler *scaler,
                                const struct td_recommendation *recommendation)
{
    size_t pod = recommendation->pod.is_set ? 1 : 0;
    scaler->container_count = recommendation->container_count;
    scaler->containers = td_arena_array(&scaler->arena, struct td_model_container,
                                        recommendation->container_count + pod + 1);
    for (size_t i = 0; i < recommendation->container_count; i++) {
        const struct td_container_recommendation *from = &recommendation->containers[i];
        struct td_model_container *to = &scaler->containers[i];
        to->name = td_arena_copy_str(&scaler->arena, from->container_name);
        read_amounts(&from->target, to->target);
        read_amounts(&from->lower_bound, to->lower);
        read_amounts(&from->upper_bound, to->upper);
    }
    if (pod > 0) { /* the whole pod: an entry without a name behind the containers */
        struct td_model_container *to = &scaler->containers[scaler->container_count];
        to->name = TD_STR_EMPTY;
        read_amounts(&recommendation->pod.target, to->target);
        read_amounts(&recommendation->pod.lower_bound, to->lower);
        read_amounts(&recommendation->pod.upper_bound, to->upper);
        scaler->container_count++;
    }
}

/* Several policies are for containers that differ. */
static void read_policy(struct td_model_scaler *scaler, const struct td_resource_policy *policy)
{
    if (policy->container_count == 1) {
        read_amounts(&policy->containers[0].min_allowed, scaler->least);
        read_amounts(&policy->containers[0].max_allowed, scaler->most);
    }
}

static void read_conditions(struct td_model_scaler *scaler,
                            const struct td_vpa_condition *conditions, size_t count)
{
    struct td_arena *arena = &scaler->arena;
    scaler->problems = td_arena_array(arena, struct td_model_condition, count + 1);
    for (size_t i = 0; i < count; i++) {
        const struct td_vpa_condition *c = &conditions[i];
        if (!td_condition_is_problem(c)) {
            continue;
        }
        td_str why = c->message.len > 0 ? c->message : c->reason;
        td_str step = td_condition_next_step(arena, scaler->ns, c->type);
        scaler->problems[scaler->problem_count++] = (struct td_model_condition){
            .type = td_arena_copy_str(arena, c->type),
            .text = td_arena_format(arena, "%.*s%s%.*s", TD_STR_ARG(why),
                                    step.len > 0 ? "; next: " : "", TD_STR_ARG(step)),
        };
    }
}

static void read_vpa(struct td_model_scaler *scaler, const struct td_json *tree,
                     struct td_arena *scratch)
{
    struct td_vpa vpa;
    if (td_vpa_decode(scratch, tree, &vpa, NULL) != TD_OK) {
        return;
    }
    scaler->mode = td_arena_copy_str(&scaler->arena, td_vpa_mode_name(vpa.mode));
    scaler->has_selector = vpa.has_selector;
    if (vpa.has_selector) {
        scaler->selector = td_selector_copy(&scaler->arena, &vpa.pod_selector);
    }
    read_policy(scaler, &vpa.policy);
    read_recommendation(scaler, &vpa.recommendation);
    read_conditions(scaler, vpa.conditions, vpa.condition_count);
}

static int64_t read_number(const struct td_json *tree, const char *path)
{
    int64_t value;
    const struct td_json *node = td_json_get_path(tree, path);
    return td_json_is(node, TD_JSON_TYPE_NUMBER) && td_json_to_int64(node, &value) ? value : -1;
}

static void read_metrics(struct td_model_scaler *scaler, const struct td_json *metrics)
{
    for (const struct td_json *m = td_json_first_item(metrics); m; m = m->next) {
        const struct td_json *resource = td_json_get(m, TD_STR("resource"));
        if (td_str_equal(td_json_text(resource, "name"), TD_CPU)) {
            scaler->utilization = read_number(resource, "target.averageUtilization");
        }
    }
}

/* What it says, and what to look at: its conditions have two types only. */
static td_str hpa_problem(struct td_arena *arena, const struct td_model_scaler *scaler,
                          const struct td_vpa_condition *condition)
{
    bool is_metric = td_str_equal(condition->type, TD_STR("ScalingActive"));
    return td_arena_format(arena, "%.*s; next: kubectl %s -n %.*s%s%.*s",
                           TD_STR_ARG(condition->message), is_metric ? "top pods" : "describe hpa",
                           TD_STR_ARG(scaler->ns), is_metric ? "" : " ",
                           TD_STR_ARG(is_metric ? TD_STR_EMPTY : scaler->name));
}

static void read_hpa(struct td_model_scaler *scaler, const struct td_json *tree,
                     struct td_arena *scratch)
{
    size_t count;
    int64_t least = read_number(tree, "spec.minReplicas");
    scaler->mode = TD_STR_EMPTY;
    scaler->replicas_min = least < 0 ? 1 : least;
    scaler->replicas_max = read_number(tree, "spec.maxReplicas");
    scaler->wanted = read_number(tree, "status.desiredReplicas");
    read_metrics(scaler, td_json_get_path(tree, "spec.metrics"));
    const struct td_vpa_condition *conditions =
        td_vpa_conditions_read(scratch, td_json_get_path(tree, "status.conditions"), &count);
    scaler->problems = td_arena_array(&scaler->arena, struct td_model_condition, count + 1);
    for (size_t i = 0; i < count; i++) {
        const struct td_vpa_condition *c = &conditions[i];
        bool is_good = td_str_equal(c->status, TD_STR("True")) ||
                       td_str_equal(c->type, TD_STR("ScalingLimited")) ||
                       td_str_equal(c->reason, TD_STR("ScalingDisabled"));
        if (!is_good) {
            scaler->problems[scaler->problem_count++] = (struct td_model_condition){
                .type = td_arena_copy_str(&scaler->arena, c->type),
                .text = hpa_problem(&scaler->arena, scaler, c),
            };
        }
    }
}

static void read_hvpa(struct td_model_scaler *scaler, const struct td_json *tree,
                      struct td_arena *scratch)
{
    struct td_hvpa hvpa;
    if (td_hvpa_decode(scratch, tree, &hvpa, NULL, NULL) != TD_OK) {
        scaler->mode = TD_STR("invalid");
        return;
    }
    int64_t least = read_number(hvpa.hpa_spec, "minReplicas");
    scaler->mode = td_hvpa_mode_name(hvpa.mode);
    if (hvpa.has_hpa) {
        scaler->replicas_min = least < 0 ? 1 : least;
        scaler->replicas_max = read_number(hvpa.hpa_spec, "maxReplicas");
        scaler->wanted = hvpa.status.has_desired_replicas ? hvpa.status.desired_replicas : -1;
        read_metrics(scaler, td_json_get_path(hvpa.hpa_spec, "metrics"));
    }
    scaler->ratio = hvpa.mode == TD_HVPA_RATIO_BASED ? hvpa.ratio.v_to_h : -1;
    if (hvpa.has_vpa) {
        read_policy(scaler, &hvpa.vpa.policy);
    }
    read_recommendation(scaler, &hvpa.status.vertical);
    read_conditions(scaler, hvpa.status.conditions, hvpa.status.condition_count);
}

static void scaler_read(struct td_model *model, struct td_model_scaler *scaler,
                        enum td_informer_kind kind, const struct td_informer_object *object)
{
    td_auto_arena scratch = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_json *tree;
    td_arena_done(&scaler->arena); /* a reset one would keep an ordinary block, of 4 KiB */
    td_arena_init_exact(&scaler->arena, SCALER_BYTES_USUAL, SCALER_ARENA_BYTES_MAX);
    scaler->api_version = TD_STR_EMPTY;
    scaler->target_kind = TD_STR_EMPTY;
    scaler->target_name = TD_STR_EMPTY;
    scaler->mode = TD_STR_EMPTY;
    scaler->has_selector = false;
    scaler->replicas_min = -1;
    scaler->replicas_max = -1;
    scaler->wanted = -1;
    scaler->utilization = -1;
    scaler->ratio = -1;
    scaler->estimator = TD_STR_EMPTY;
    for (size_t r = 0; r < TD_MODEL_RESOURCES; r++) {
        scaler->least[r] = scaler->most[r] = -1;
    }
    scaler->containers = NULL;
    scaler->container_count = 0;
    scaler->problems = NULL;
    scaler->problem_count = 0;
    model->are_scalers_stale = true;
    model->is_changed = true;
    if (td_informers_tree(&scratch, object, &tree, NULL) != TD_OK) {
        return;
    }
    const struct td_json *target = td_informers_target(kind, tree);
    scaler->api_version = td_arena_copy_str(&scaler->arena, td_json_text(tree, "apiVersion"));
    scaler->estimator = td_arena_copy_str(
        &scaler->arena, td_json_get_str(td_json_get_path(tree, "metadata.annotations"),
                                        TD_ESTIMATOR_ANNOTATION, TD_STR_EMPTY));
    scaler->target_kind = td_arena_copy_str(&scaler->arena, td_json_text(target, "kind"));
    scaler->target_name = td_arena_copy_str(&scaler->arena, td_json_text(target, "name"));
    void (*const readers[])(struct td_model_scaler *, const struct td_json *, struct td_arena *) = {
        [TD_MODEL_HVPA] = read_hvpa, [TD_MODEL_HPA] = read_hpa, [TD_MODEL_VPA] = read_vpa};
    readers[scaler->kind](scaler, tree, &scratch);
}

/* ---- The informers ---- */

static enum td_model_scaler_kind kind_of(enum td_informer_kind kind)
{
    return kind == TD_INFORMER_HVPAS  ? TD_MODEL_HVPA
           : kind == TD_INFORMER_VPAS ? TD_MODEL_VPA
                                      : TD_MODEL_HPA;
}

static void scaler_seen(struct td_model *model, enum td_informer_kind kind,
                        const struct td_informer_object *object, bool is_moved)
{
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    td_str key = scaler_key(buffer, kind_of(kind), object->head.namespace, object->head.name);
    struct td_model_scaler *scaler = td_map_get(&model->scalers, key);
    bool is_new = !scaler;
    if (is_new) {
        size_t room = key.len + object->head.namespace.len + object->head.name.len + 3;
        scaler = td_alloc_zero(1, sizeof(*scaler) + room);
        char *at = (char *)(scaler + 1);
        scaler->key = td_text_place(&at, key);
        scaler->ns = td_text_place(&at, object->head.namespace);
        scaler->name = td_text_place(&at, object->head.name);
        scaler->kind = kind_of(kind);
        td_arena_init(&scaler->arena, SCALER_ARENA_BYTES_MAX);
        if (td_map_put(&model->scalers, scaler->key, scaler) != TD_OK) {
            td_free(scaler);
            return;
        }
    }
    if (is_new || is_moved) {
        if (!is_new) {
            target_remove(model, scaler);
        }
        scaler_read(model, scaler, kind, object);
        target_add(model, scaler);
        model->are_links_stale = true;
    } else {
        scaler_read(model, scaler, kind, object);
    }
}

static void scaler_gone(struct td_model *model, enum td_informer_kind kind,
                        const struct td_informer_object *object)
{
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    struct td_model_scaler *scaler =
        td_map_remove(&model->scalers,
                      scaler_key(buffer, kind_of(kind), object->head.namespace, object->head.name));
    if (scaler) {
        target_remove(model, scaler);
        td_arena_done(&scaler->arena);
        td_free(scaler);
        model->are_links_stale = true;
        model->are_scalers_stale = true;
        model->is_changed = true;
    }
}

#define SCALER_HANDLER(word, kind)                                                                 \
    static void word##_added(void *context, const void *object)                                    \
    {                                                                                              \
        scaler_seen(context, kind, object, true);                                                  \
    }                                                                                              \
    static void word##_changed(void *context, const void *before, const void *after)               \
    {                                                                                              \
        const struct td_informer_object *was = before;                                             \
        const struct td_informer_object *is = after;                                               \
        scaler_seen(context, kind, is, was->spec_hash != is->spec_hash);                           \
    }                                                                                              \
    static void word##_deleted(void *context, const void *object)                                  \
    {                                                                                              \
        scaler_gone(context, kind, object);                                                        \
    }                                                                                              \
    static const struct td_cache_handler word##_handler = {                                        \
        .added = word##_added, .changed = word##_changed, .deleted = word##_deleted};

SCALER_HANDLER(vpa, TD_INFORMER_VPAS)
SCALER_HANDLER(hpa, TD_INFORMER_HPAS)
SCALER_HANDLER(own_hpa, TD_INFORMER_OWN_HPAS)
SCALER_HANDLER(hvpa, TD_INFORMER_HVPAS)

void model_scalers_subscribe(struct td_model *model)
{
    td_map_init(&model->scalers, SCALERS_MAX);
    td_map_init(&model->targets, SCALERS_MAX);
    td_informers_subscribe(model->informers, TD_INFORMER_VPAS, &vpa_handler, model);
    td_informers_subscribe(model->informers, TD_INFORMER_HPAS, &hpa_handler, model);
    td_informers_subscribe(model->informers, TD_INFORMER_OWN_HPAS, &own_hpa_handler, model);
    td_informers_subscribe(model->informers, TD_INFORMER_HVPAS, &hvpa_handler, model);
}

void model_scalers_done(struct td_model *model)
{
    for (struct td_map_walk at = {.map = &model->targets}; td_map_step(&at);) {
        td_free(at.value);
    }
    for (struct td_map_walk at = {.map = &model->scalers}; td_map_step(&at);) {
        struct td_model_scaler *scaler = at.value;
        td_arena_done(&scaler->arena);
        td_free(scaler);
    }
    td_map_done(&model->targets);
    td_map_done(&model->scalers);
}
