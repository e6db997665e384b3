/*
 * sources: Objects (hvpa.md 5.1). Both verdicts come from child objects that others may serve: a
 * VPA of mode Off on the workload, and an HPA that scales the Hvpa itself. Its scale subresource is
 * the buffer in between: what the HPA writes into .spec.replicas is a wish, and after each decision
 * what was applied is written back, else an unapplied wish would confirm itself.
 */
#include "base/alloc.h"
#include "base/error.h"
#include "base/os/log.h"
#include "base/text.h"
#include "control/hvpa/hvpa_private.h"
#include "kube/client/verbs.h"

#define CHILD_HASH TD_STR("tandem.dev/hvpa-child") /* of the spec that we gave it */

static const struct td_write_options child_options = {.field_manager = HVPA_MANAGER};

struct child_kind {
    enum td_informer_kind informers;
    const char *group;
    const char *version;
    const char *plural;
    const char *kind;
};

static const struct child_kind child_hpa = {TD_INFORMER_HPAS, "autoscaling", "v2",
                                            "horizontalpodautoscalers", "HorizontalPodAutoscaler"};
static const struct child_kind child_vpa = {TD_INFORMER_VPAS, "autoscaling.k8s.io", "v1",
                                            "verticalpodautoscalers", "VerticalPodAutoscaler"};

static td_str child_name(struct hvpa_reconcile *run)
{
    return td_arena_format(&run->arena, "%.*s" HVPA_CHILD_SUFFIX, TD_STR_ARG(run->item->name));
}

static struct td_api_path child_path(struct hvpa_reconcile *run, const struct child_kind *kind)
{
    return (struct td_api_path){
        .group = td_str_from(kind->group),
        .version = td_str_from(kind->version),
        .namespace = run->item->namespace,
        .plural = td_str_from(kind->plural),
        .name = child_name(run),
    };
}

static const struct td_informer_object *child_find(struct hvpa_reconcile *run,
                                                   const struct child_kind *kind)
{
    const struct td_cache *cache =
        td_informers_cache(run->loop->options.control.informers, kind->informers);
    return cache ? td_cache_get(cache, run->item->namespace, child_name(run)) : NULL;
}

/* No reconcile waits for these answers: the next one sees what is stored. */
struct hvpa_child_call {
    struct td_hvpa_loop *loop;
    struct td_client_call *call;
    struct hvpa_child_call *next;
    struct hvpa_child_call *previous;
    td_str key; /* owned */
};

static void child_free(struct hvpa_child_call *call)
{
    *(call->previous ? &call->previous->next : &call->loop->child_calls) = call->next;
    if (call->next) {
        call->next->previous = call->previous;
    }
    td_text_free(call->key);
    td_free(call);
}

static void child_answered(void *context, const struct td_client_reply *reply)
{
    struct hvpa_child_call *call = context;
    if (reply->code != TD_OK && reply->code != TD_NOT_FOUND) {
        td_log_line(call->loop->options.control.log, TD_LOG_WARN,
                    "cannot write the Hvpa's child HPA or VPA", TD_LOG_S("hvpa", call->key),
                    TD_LOG_C("error", reply->err.message));
    }
    child_free(call);
}

static void child_send(struct hvpa_reconcile *run, struct td_client_request *request)
{
    struct td_hvpa_loop *loop = run->loop;
    struct hvpa_child_call *call = td_alloc_zero(1, sizeof(*call));
    call->loop = loop;
    call->key = td_text_copy(run->item->key);
    call->next = loop->child_calls;
    if (call->next) {
        call->next->previous = call;
    }
    loop->child_calls = call;
    request->flow = loop->options.control.flow;
    request->deadline = HVPA_DEADLINE;
    call->call = td_client_send(loop->options.control.client, request, child_answered, call);
}

void hvpa_children_cancel(struct td_hvpa_loop *loop)
{
    while (loop->child_calls) {
        td_client_cancel(loop->child_calls->call);
        child_free(loop->child_calls);
    }
}

/* ---- What they look like ---- */

static struct td_json *child_reference(struct td_arena *arena, td_str api_version, td_str kind,
                                       td_str name)
{
    struct td_json *made = td_json_new_object(arena);
    td_json_set_str(arena, made, TD_STR("apiVersion"), api_version);
    td_json_set_str(arena, made, TD_STR("kind"), kind);
    td_json_set_str(arena, made, TD_STR("name"), name);
    return made;
}

/* Under Reference a percentage is written as the average value that it stands for. */
static void child_metrics(struct hvpa_reconcile *run, struct td_json *spec)
{
    struct td_arena *arena = &run->arena;
    const struct td_json *list = td_json_get(spec, TD_STR("metrics"));
    struct td_json *m = td_json_first_item(list);
    for (size_t i = 0; m && i < run->hpa.metric_count; m = m->next, i++) {
        const struct td_hpa_metric *metric = &run->hpa.metrics[i];
        bool is_changed = metric->target.type == TD_HPA_AVERAGE_VALUE &&
                          run->hvpa.hpa.metrics[i].target.type == TD_HPA_UTILIZATION;
        struct td_json *source = td_json_get(
            m, metric->type == TD_HPA_RESOURCE ? TD_STR("resource") : TD_STR("containerResource"));
        if (!is_changed || !source) {
            continue;
        }
        struct td_quantity average =
            td_quantity_new_milli(metric->target.average_value_milli, TD_QUANTITY_DECIMAL_SI);
        struct td_json *target = td_json_new_object(arena);
        td_json_set_str(arena, target, TD_STR("type"), TD_STR("AverageValue"));
        td_json_set_str(arena, target, TD_STR("averageValue"), td_quantity_text(arena, &average));
        td_json_set(arena, source, TD_STR("target"), target);
    }
}

static struct td_json *child_hpa_spec(struct hvpa_reconcile *run)
{
    struct td_arena *arena = &run->arena;
    struct td_json *spec = td_json_copy(arena, run->hvpa.hpa_spec, false);
    td_json_set(
        arena, spec, TD_STR("scaleTargetRef"),
        child_reference(arena, TD_STR(TD_HVPA_API_VERSION), TD_STR("Hvpa"), run->item->name));
    child_metrics(run, spec);
    return spec;
}

static struct td_json *child_vpa_spec(struct hvpa_reconcile *run)
{
    struct td_arena *arena = &run->arena;
    const struct td_object_reference *target = &run->hvpa.target;
    struct td_json *spec = td_json_copy(arena, run->hvpa.vpa_spec, false);
    td_json_set(arena, spec, TD_STR("targetRef"),
                child_reference(arena, target->api_version, target->kind, target->name));
    td_json_set_str(arena, td_json_ensure_object(arena, spec, TD_STR("updatePolicy")),
                    TD_STR("updateMode"), TD_STR("Off"));
    return spec;
}

/* The same on every machine and after every start, unlike that of the maps. */
static td_str child_hash(struct td_arena *arena, td_str text)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < text.len; i++) {
        hash = (hash ^ (uint8_t)text.ptr[i]) * UINT64_C(1099511628211);
    }
    return td_arena_format(arena, "%016llx", (unsigned long long)hash);
}

static bool child_is_ours(struct hvpa_reconcile *run, const struct td_json *tree)
{
    struct td_meta meta;
    if (td_meta_decode(&run->arena, tree, &meta, NULL) != TD_OK) {
        return false;
    }
    const struct td_owner_reference *owner = td_meta_controller(&meta);
    return owner && td_str_equal(owner->uid, run->hvpa.meta.uid);
}

static void child_apply(struct hvpa_reconcile *run, const struct child_kind *kind,
                        struct td_json *spec)
{
    struct td_arena *arena = &run->arena;
    const struct td_informer_object *seen = child_find(run, kind);
    td_str hash = child_hash(arena, td_json_line(arena, spec));
    struct td_json *tree;
    if (seen && td_informers_tree(arena, seen, &tree, NULL) == TD_OK) {
        const struct td_json *notes = td_json_get_path(tree, "metadata.annotations");
        if (td_str_equal(td_json_get_str(notes, CHILD_HASH, TD_STR_EMPTY), hash)) {
            return;
        }
    }
    td_str api_version = td_arena_format(arena, "%s/%s", kind->group, kind->version);
    struct td_json *object =
        child_reference(arena, api_version, td_str_from(kind->kind), TD_STR_EMPTY);
    (void)td_json_remove(object, TD_STR("name"));
    struct td_json *metadata = td_json_ensure_object(arena, object, TD_STR("metadata"));
    struct td_json *owners = td_json_new_array(arena);
    struct td_json *owner =
        child_reference(arena, TD_STR(TD_HVPA_API_VERSION), TD_STR("Hvpa"), run->item->name);
    td_json_set_str(arena, owner, TD_STR("uid"), run->hvpa.meta.uid);
    td_json_set_bool(arena, owner, TD_STR("controller"), true);
    td_json_append(owners, owner);
    td_json_set_str(arena, metadata, TD_STR("name"), child_name(run));
    td_json_set_str(arena, metadata, TD_STR("namespace"), run->item->namespace);
    td_json_set_str(arena, td_json_ensure_object(arena, metadata, TD_STR("annotations")),
                    CHILD_HASH, hash);
    td_json_set(arena, metadata, TD_STR("ownerReferences"), owners);
    td_json_set(arena, object, TD_STR("spec"), spec);
    const struct td_api_path path = child_path(run, kind);
    struct td_client_request request;
    if (td_verb_apply(arena, &path, td_json_line(arena, object), true, &child_options, &request,
                      NULL) == TD_OK) {
        child_send(run, &request);
    }
}

static void child_remove(struct hvpa_reconcile *run, const struct child_kind *kind)
{
    const struct td_informer_object *seen = child_find(run, kind);
    struct td_json *tree;
    if (!seen || td_informers_tree(&run->arena, seen, &tree, NULL) != TD_OK ||
        !child_is_ours(run, tree)) {
        return;
    }
    const struct td_api_path path = child_path(run, kind);
    struct td_delete_options options = TD_DELETE_OPTIONS_INIT;
    options.uid = seen->head.uid;
    struct td_client_request request;
    if (td_verb_delete(&run->arena, &path, &options, &request, NULL) == TD_OK) {
        child_send(run, &request);
    }
}

void hvpa_children(struct hvpa_reconcile *run)
{
    const struct td_hvpa *hvpa = &run->hvpa;
    bool is_objects = hvpa->sources == TD_HVPA_OBJECTS;
    if (hvpa->paused) {
        return;
    }
    if (is_objects && td_hvpa_scales_horizontally(hvpa)) {
        child_apply(run, &child_hpa, child_hpa_spec(run));
    } else {
        child_remove(run, &child_hpa);
    }
    if (is_objects && hvpa->has_vpa) {
        child_apply(run, &child_vpa, child_vpa_spec(run));
    } else {
        child_remove(run, &child_vpa);
    }
}

/* ---- What they say ---- */

void hvpa_children_vertical(struct hvpa_reconcile *run)
{
    const struct td_informer_object *seen = child_find(run, &child_vpa);
    struct td_json *tree;
    struct td_vpa vpa;
    if (!seen || td_informers_tree(&run->arena, seen, &tree, NULL) != TD_OK ||
        td_vpa_decode(&run->arena, tree, &vpa, NULL) != TD_OK) {
        run->seen.vertical_reason = TD_STR("the child VPA does not exist yet");
        return;
    }
    run->seen.recommendation = vpa.recommendation;
    run->seen.learnt_since = td_time_from_instant(vpa.meta.created);
    hvpa_input_judge(run, vpa.conditions, vpa.condition_count);
}

static bool child_scales(struct hvpa_reconcile *run)
{
    const struct td_informer_object *seen = child_find(run, &child_hpa);
    struct td_json *tree;
    return seen && td_informers_tree(&run->arena, seen, &tree, NULL) == TD_OK &&
           hvpa_condition_is_true(tree, TD_STR("ScalingActive"));
}

bool hvpa_children_desired(struct hvpa_reconcile *run, int32_t *ret)
{
    const struct td_hvpa *hvpa = &run->hvpa;
    const struct td_hvpa_status *status = &hvpa->status;
    bool is_wish = hvpa->has_replicas && status->has_written_replicas &&
                   hvpa->replicas != status->written_replicas;
    if (!child_scales(run)) {
        return false;
    }
    *ret = is_wish ? hvpa->replicas : run->decided.input.replicas;
    return true;
}

/* ---- The buffer ---- */

void hvpa_children_buffer(struct hvpa_reconcile *run)
{
    const struct td_hvpa *hvpa = &run->hvpa;
    int32_t applied =
        run->decided.is_scaled ? run->decided.decision.replicas : run->decided.input.replicas;
    bool is_wanted = !hvpa->paused && (!hvpa->has_replicas || hvpa->replicas != applied);
    const struct td_api_path path = hvpa_item_path(run->item);
    struct td_client_request request;
    td_str body = td_arena_format(&run->arena, "{\"spec\":{\"replicas\":%d}}", applied);
    if (is_wanted && td_verb_patch(&run->arena, &path, TD_PATCH_MERGE, body, &child_options,
                                   &request, NULL) == TD_OK) {
        child_send(run, &request);
    }
}
