/*
 * What would do it, to be copied: requests and limits in the workload's template, a VPA, an Hvpa in
 * place of a pair, and one kubectl line. Nothing is applied from here.
 */
#include <math.h>

#include "api/hvpa/hvpa.h"
#include "base/json/json.h"
#include "base/yaml/yaml.h"
#include "decide/tandem/migrate/migrate.h"
#include "decide/vertical/patch/proportional.h"
#include "decide/vertical/pod.h"
#include "decide/vertical/resourcelist.h"
#include "model/pod.h"
#include "web/json_writer.h"
#include "web/web_private.h"

#define YAML_MI (1024.0 * 1024.0)

static struct td_json *yaml_object(struct td_arena *arena, td_str api, td_str kind, td_str ns,
                                   td_str name)
{
    struct td_json *object = td_json_new_object(arena);
    struct td_json *metadata = td_json_new_object(arena);
    td_json_set_str(arena, object, TD_STR("apiVersion"), api);
    td_json_set_str(arena, object, TD_STR("kind"), kind);
    td_json_set_str(arena, metadata, TD_STR("name"), name);
    td_json_set_str(arena, metadata, TD_STR("namespace"), ns);
    td_json_set(arena, object, TD_STR("metadata"), metadata);
    return object;
}

/* What a container asks for as it runs, of the newest pod; an empty name: the pod as a whole. */
static bool yaml_original(const struct web_call *call, struct td_arena *arena,
                          const struct td_model_row *row, td_str container, struct td_original *ret)
{
    const struct td_model_pod *newest = row->pods;
    for (const struct td_model_pod *pod = row->pods; pod; pod = pod->next) {
        newest = pod->created > newest->created ? pod : newest;
    }
    const struct td_informer_object *seen =
        newest ? td_cache_get(td_informers_cache(call->web->model->informers, TD_INFORMER_PODS),
                              newest->ns, newest->name)
               : NULL;
    struct td_pod *pod = td_arena_new(arena, struct td_pod);
    struct td_json *tree;
    if (!seen || td_informers_tree(arena, seen, &tree, NULL) != TD_OK ||
        td_pod_decode(arena, tree, pod, NULL) != TD_OK) {
        return false;
    }
    *ret = (struct td_original){.limits = &pod->pod_limits, .requests = &pod->whole_requests};
    for (size_t i = 0; container.len > 0 && i < pod->container_count; i++) {
        if (td_str_equal(pod->containers[i].name, container)) {
            ret->limits = td_vertical_limits(&pod->containers[i]);
            ret->requests = td_vertical_requests(&pod->containers[i]);
            return true;
        }
    }
    return container.len == 0;
}

/* Whole millicores, memory rounded up to a Mi, as `tandem recommend --output yaml` has it. */
static void yaml_amount(struct td_arena *arena, struct td_json *list, td_str resource,
                        double amount)
{
    bool is_cpu = td_str_equal(resource, TD_CPU);
    td_json_set_str(arena, list, resource,
                    is_cpu ? td_arena_format(arena, "%.0fm", ceil(amount))
                           : td_arena_format(arena, "%.0fMi", ceil(amount / YAML_MI)));
}

/* Requests, and limits in the proportion that the container has now, or they could be below. */
static struct td_json *yaml_resources(const struct web_call *call, struct td_arena *arena,
                                      const struct td_model_row *row,
                                      const struct td_model_container *container)
{
    static const td_str names[TD_MODEL_RESOURCES] = {TD_STR_INIT("cpu"), TD_STR_INIT("memory")};
    struct td_json *resources = td_json_new_object(arena);
    struct td_original original;
    bool is_known = yaml_original(call, arena, row, container->name, &original);
    for (size_t r = 0; r < TD_MODEL_RESOURCES; r++) {
        double amount = container->target[r];
        if (amount < 0) {
            continue;
        }
        bool is_cpu = r == TD_MODEL_CPU;
        struct td_quantity target =
            is_cpu ? td_quantity_new_milli((int64_t)amount, TD_QUANTITY_DECIMAL_SI)
                   : td_quantity_new((int64_t)amount, TD_QUANTITY_BINARY_SI);
        yaml_amount(arena, td_json_ensure_object(arena, resources, TD_STR("requests")), names[r],
                    amount);
        const struct td_proportion proportion = {
            .limit = is_known ? td_resource_list_get(original.limits, names[r]) : NULL,
            .request = is_known ? td_resource_list_get(original.requests, names[r]) : NULL,
            .recommended = &target,
        };
        struct td_proportional_limit limit = td_proportional_limit(names[r], &proportion);
        if (proportion.limit && limit.is_set) {
            yaml_amount(arena, td_json_ensure_object(arena, resources, TD_STR("limits")), names[r],
                        is_cpu ? (double)td_quantity_milli(&limit.limit)
                               : (double)td_quantity_value(&limit.limit));
        }
    }
    return resources;
}

/* {"template": {"spec": {"containers": [...]}}} */
static struct td_json *yaml_spec(const struct web_call *call, struct td_arena *arena,
                                 const struct td_model_row *row,
                                 const struct td_model_scaler *scaler)
{
    struct td_json *spec = td_json_new_object(arena);
    struct td_json *at = spec;
    if (td_str_equal(row->kind, TD_STR("CronJob"))) {
        at = td_json_ensure_object(arena, at, TD_STR("jobTemplate"));
        at = td_json_ensure_object(arena, at, TD_STR("spec"));
    }
    at = td_json_ensure_object(arena, at, TD_STR("template"));
    at = td_json_ensure_object(arena, at, TD_STR("spec"));
    struct td_json *containers = td_json_new_array(arena);
    for (size_t i = 0; i < scaler->container_count; i++) {
        struct td_json *item = td_json_new_object(arena);
        struct td_json *resources = yaml_resources(call, arena, row, &scaler->containers[i]);
        if (scaler->containers[i].name.len == 0) { /* of the pod as a whole */
            td_json_set(arena, at, TD_STR("resources"), resources);
            continue;
        }
        td_json_set_str(arena, item, TD_STR("name"), scaler->containers[i].name);
        td_json_set(arena, item, TD_STR("resources"), resources);
        td_json_append(containers, item);
    }
    td_json_set_filled(arena, at, TD_STR("containers"), containers);
    return spec;
}

static void yaml_target(struct td_arena *arena, struct td_json *spec, const char *key,
                        const struct td_model_row *row)
{
    struct td_json *target = td_json_ensure_object(arena, spec, td_str_from(key));
    td_json_set_str(arena, target, TD_STR("apiVersion"), row->api);
    td_json_set_str(arena, target, TD_STR("kind"), row->kind);
    td_json_set_str(arena, target, TD_STR("name"), row->name);
}

struct td_json *web_yaml_vpa(struct td_arena *arena, const struct td_model_row *row)
{
    struct td_json *vpa = yaml_object(arena, TD_STR("autoscaling.k8s.io/v1"),
                                      TD_STR("VerticalPodAutoscaler"), row->ns, row->name);
    struct td_json *spec = td_json_ensure_object(arena, vpa, TD_STR("spec"));
    struct td_json *policy = td_json_ensure_object(arena, spec, TD_STR("updatePolicy"));
    yaml_target(arena, spec, "targetRef", row);
    td_json_set_str(arena, policy, TD_STR("updateMode"), TD_STR("InPlaceOrRecreate"));
    return vpa;
}

/* The object as it was written: without what a server adds. */
struct td_json *web_yaml_stored(const struct web_call *call, struct td_arena *arena,
                                const struct td_model_scaler *scaler)
{
    static const enum td_informer_kind kinds[][2] = {
        [TD_MODEL_HVPA] = {TD_INFORMER_HVPAS, TD_INFORMER_HVPAS},
        [TD_MODEL_HPA] = {TD_INFORMER_HPAS, TD_INFORMER_OWN_HPAS},
        [TD_MODEL_VPA] = {TD_INFORMER_VPAS, TD_INFORMER_VPAS}};
    static const td_str words[] = {[TD_MODEL_HVPA] = TD_STR_INIT("Hvpa"),
                                   [TD_MODEL_HPA] = TD_STR_INIT("HorizontalPodAutoscaler"),
                                   [TD_MODEL_VPA] = TD_STR_INIT("VerticalPodAutoscaler")};
    static const td_str apis[] = {[TD_MODEL_HVPA] = TD_STR_INIT(TD_HVPA_API_VERSION),
                                  [TD_MODEL_HPA] = TD_STR_INIT("autoscaling/v2"),
                                  [TD_MODEL_VPA] = TD_STR_INIT("autoscaling.k8s.io/v1")};
    struct td_json *tree = NULL;
    for (size_t i = 0; scaler && i < 2 && !tree; i++) {
        const struct td_informer_object *object =
            td_cache_get(td_informers_cache(call->web->model->informers, kinds[scaler->kind][i]),
                         scaler->ns, scaler->name);
        if (object && td_informers_tree(arena, object, &tree, NULL) != TD_OK) {
            tree = NULL;
        }
    }
    if (!tree) {
        return NULL;
    }
    struct td_json *made =
        yaml_object(arena, apis[scaler->kind], words[scaler->kind], scaler->ns, scaler->name);
    td_json_set_copy(arena, made, TD_STR("spec"), td_json_get(tree, TD_STR("spec")));
    if (scaler->kind == TD_MODEL_HVPA) { /* written through the scale subresource */
        (void)td_json_remove(td_json_get(made, TD_STR("spec")), TD_STR("replicas"));
    }
    return made;
}

static td_str yaml_text(struct td_arena *arena, const struct td_json *object)
{
    td_auto_buf text = td_buf_capped(WEB_ANSWER_BYTES_MAX);
    td_yaml_write(object, &text);
    return td_arena_copy_str(arena, td_buf_str(&text));
}

struct td_json *web_yaml_hpa(struct td_arena *arena, const struct td_model_row *row)
{
    struct td_json *hpa = yaml_object(arena, TD_STR("autoscaling/v2"),
                                      TD_STR("HorizontalPodAutoscaler"), row->ns, row->name);
    struct td_json *spec = td_json_ensure_object(arena, hpa, TD_STR("spec"));
    yaml_target(arena, spec, "scaleTargetRef", row);
    return hpa;
}

/* One Hvpa in place of the pair that is there, or would be with a VPA beside the HPA; NULL: there
 * is none to be replaced. */
static struct td_json *yaml_migrated(const struct web_call *call, struct td_arena *arena,
                                     const struct td_model_row *row)
{
    struct td_json *hpa = web_yaml_stored(call, arena, row->scalers[TD_MODEL_HPA]);
    struct td_json *vpa = web_yaml_stored(call, arena, row->scalers[TD_MODEL_VPA]);
    if (!hpa) {
        return NULL;
    }
    vpa = vpa ? vpa : web_yaml_vpa(arena, row);
    struct td_manifest_object items[] = {
        {.tree = hpa,
         .file = TD_STR("cluster"),
         .line = 1,
         .api_version = td_json_text(hpa, "apiVersion"),
         .kind = td_json_text(hpa, "kind"),
         .namespace = row->ns,
         .name = row->scalers[TD_MODEL_HPA]->name},
        {.tree = vpa,
         .file = TD_STR("cluster"),
         .line = 1,
         .api_version = td_json_text(vpa, "apiVersion"),
         .kind = td_json_text(vpa, "kind"),
         .namespace = row->ns,
         .name = td_json_get_str(td_json_get(vpa, TD_STR("metadata")), TD_STR("name"), row->name)},
    };
    const struct td_manifest manifest = {.items = items, .count = 2, .cap = 2};
    struct td_migrations made = {.count = 0};
    td_migrate_all(arena, &manifest, &made);
    for (size_t i = 0; i < made.count; i++) {
        if (made.items[i].object) {
            return made.items[i].object;
        }
    }
    return NULL;
}

struct td_json *web_yaml_hvpa(const struct web_call *call, struct td_arena *arena,
                              const struct td_model_row *row)
{
    struct td_json *hvpa = yaml_migrated(call, arena, row);
    if (!hvpa) {
        hvpa = yaml_object(arena, TD_STR(TD_HVPA_API_VERSION), TD_STR("Hvpa"), row->ns, row->name);
        yaml_target(arena, td_json_ensure_object(arena, hvpa, TD_STR("spec")), "targetRef", row);
    }
    return hvpa;
}

/* In single quotes for a shell. */
static void shell_quote(td_str text, struct td_buf *out)
{
    (void)td_buf_append_char(out, '\'');
    for (size_t i = 0; i < text.len; i++) {
        (void)td_buf_append(out,
                            text.ptr[i] == '\'' ? TD_STR("'\\''") : td_str_slice(text, i, i + 1));
    }
    (void)td_buf_append_char(out, '\'');
}

static td_str yaml_patch_line(struct td_arena *arena, const struct td_model_row *row,
                              const struct td_json *spec)
{
    td_auto_buf line = td_buf_capped(WEB_ANSWER_BYTES_MAX);
    struct td_json *patch = td_json_new_object(arena);
    td_json_set_copy(arena, patch, TD_STR("spec"), spec);
    (void)td_buf_append(&line, TD_STR("kubectl patch "));
    for (size_t i = 0; i < row->kind.len; i++) {
        char c = row->kind.ptr[i];
        (void)td_buf_append_char(&line, (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c));
    }
    (void)td_buf_append_char(&line, ' ');
    shell_quote(row->name, &line);
    (void)td_buf_append(&line, TD_STR(" -n "));
    shell_quote(row->ns, &line);
    (void)td_buf_append(&line, TD_STR(" -p "));
    shell_quote(td_json_line(arena, patch), &line);
    return td_arena_copy_str(arena, td_buf_str(&line));
}

void web_view_yaml(const struct web_call *call)
{
    td_auto_arena arena = td_arena_capped(WEB_ARENA_BYTES_MAX);
    td_auto_buf body = td_buf_capped(WEB_ANSWER_BYTES_MAX);
    struct td_json_writer writer = {.out = &body};
    const struct td_model_row *row = web_call_row(call, &arena);
    if (!row) {
        return;
    }
    const struct td_model_scaler *sizes =
        row->scalers[TD_MODEL_HVPA] ? row->scalers[TD_MODEL_HVPA] : row->scalers[TD_MODEL_VPA];
    td_writer_open(&writer, NULL, '{');
    if (sizes && sizes->container_count > 0) {
        struct td_json *spec = yaml_spec(call, &arena, row, sizes);
        struct td_json *workload = yaml_object(&arena, row->api, row->kind, row->ns, row->name);
        td_json_set(&arena, workload, TD_STR("spec"), spec);
        td_writer_text(&writer, "resources", yaml_text(&arena, workload));
        td_writer_text(&writer, "patch", yaml_patch_line(&arena, row, spec));
    }
    struct td_json *vpa = web_yaml_stored(call, &arena, row->scalers[TD_MODEL_VPA]);
    struct td_json *hvpa = web_yaml_stored(call, &arena, row->scalers[TD_MODEL_HVPA]);
    hvpa = hvpa ? hvpa : yaml_migrated(call, &arena, row);
    if (vpa || !row->scalers[TD_MODEL_HVPA]) { /* beside an Hvpa there is no VPA */
        td_writer_text(&writer, "vpa", yaml_text(&arena, vpa ? vpa : web_yaml_vpa(&arena, row)));
    }
    if (hvpa) {
        td_writer_text(&writer, "hvpa", yaml_text(&arena, hvpa));
    }
    td_writer_close(&writer, '}');
    web_reply_json(call->exchange, 200, &body);
}
