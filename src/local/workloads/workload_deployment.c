/*
 * Deployments: one ReplicaSet a pod template, found by comparing templates; the newest one grows
 * while the others shrink. What to do is decided in workload_rollout.c; here it is done, in the
 * order of upstream's controller, whose conditions and events others read.
 */
#include <stdlib.h>

#include "base/error.h"
#include "kube/meta.h"
#include "local/store/edit.h"
#include "local/workloads/workload_deployment.h"
#include "local/workloads/workload_private.h"
#include "local/workloads/workload_rollout.h"

#define DEPLOYMENT_HASH_LABEL "pod-template-hash"
#define DEPLOYMENT_NAME_BYTES_MAX ((size_t)253)
#define DEPLOYMENT_INDEX_PAUSE                                                                     \
    (50 * TD_MILLISECOND) /* the index has heard of a new set by then                              \
                           */

/* ---- ReplicaSets in hand ---- */

static int64_t deployment_annotation(const struct td_json *object, td_str key)
{
    td_str text =
        td_json_get_str(td_json_get_path(object, "metadata.annotations"), key, TD_STR_EMPTY);
    int64_t value;
    return td_str_to_int64(text, &value) && value >= 0 && value <= INT32_MAX ? value
                                                                             : TD_ROLLOUT_NONE;
}

static struct td_rollout_set deployment_plan(const struct td_json *object)
{
    const struct td_json *metadata = td_json_get(object, TD_STR("metadata"));
    const struct td_json *status = td_json_get(object, TD_STR("status"));
    return (struct td_rollout_set){
        .name = td_json_text(metadata, "name"),
        .created = td_time_member(metadata, TD_STR("creationTimestamp")),
        .replicas = td_json_get_int64(td_json_get(object, TD_STR("spec")), TD_STR("replicas"), 1),
        .actual = td_json_get_int64(status, TD_STR("replicas"), 0),
        .ready = td_json_get_int64(status, TD_STR("readyReplicas"), 0),
        .available = td_json_get_int64(status, TD_STR("availableReplicas"), 0),
        .desired_before = deployment_annotation(object, TD_STR(TD_ANNOTATION_DESIRED)),
        .max_before = deployment_annotation(object, TD_STR(TD_ANNOTATION_MAX)),
    };
}

/* The template as it is compared: without the label that we add, and without the empty time that
 * some clients write. */
static struct td_json *deployment_bare_template(struct td_arena *arena,
                                                const struct td_json *object)
{
    struct td_json *template =
        td_json_copy(arena, td_json_get_path(object, "spec.template"), false);
    struct td_json *metadata = td_json_get(template, TD_STR("metadata"));
    (void)td_json_remove(td_json_get(metadata, TD_STR("labels")),
                         TD_STR(DEPLOYMENT_HASH_LABEL)); /* it may not be there */
    if (td_json_is(td_json_get(metadata, TD_STR("creationTimestamp")), TD_JSON_TYPE_NULL)) {
        (void)td_json_remove(metadata, TD_STR("creationTimestamp")); /* it is there */
    }
    return template;
}

static int deployment_compare(const void *left, const void *right)
{
    const struct td_deployment_set *a = left;
    const struct td_deployment_set *b = right;
    int by_time = (a->created > b->created) - (a->created < b->created);
    return by_time != 0 ? by_time : td_str_compare(a->name, b->name);
}

/* Sorted by age; plans lie side by side for the arithmetic. */
static void deployment_load(struct td_workload_item *item, struct td_deployment *ret)
{
    struct td_workloads *all = item->control->all;
    const struct td_resource *resource = all->controls[TD_KIND_REPLICA_SET].resource;
    struct td_children own = td_workload_claim(item, &all->replica_set_index, resource, NULL);
    *ret = (struct td_deployment){
        .item = item,
        .rollout = td_rollout_read(item->arena, item->object),
        .sets = td_arena_array(item->arena, struct td_deployment_set, own.count + 1),
        .plans = td_arena_array(item->arena, struct td_rollout_set, own.count + 1),
    };
    for (size_t i = 0; i < own.count; i++) {
        const struct td_stored *stored = own.items[i]->stored;
        struct td_deployment_set *set = &ret->sets[ret->count];
        if (td_edit_get(all->api, resource, stored->ns, stored->name, item->arena, &set->object,
                        NULL) == TD_OK) {
            set->created = own.items[i]->created;
            set->name = td_json_text(td_json_get(set->object, TD_STR("metadata")), "name");
            ret->count++;
        }
    }
    qsort(ret->sets, ret->count, sizeof(ret->sets[0]), deployment_compare);
    const struct td_json *template = deployment_bare_template(item->arena, item->object);
    for (size_t i = 0; i < ret->count; i++) {
        ret->plans[i] = deployment_plan(ret->sets[i].object);
        if (!ret->has_new &&
            td_json_equal(template, deployment_bare_template(item->arena, ret->sets[i].object))) {
            ret->has_new = true;
            ret->new_index = i;
            ret->plans[i].is_new = true;
        }
    }
}

/* ---- Writing ReplicaSets ---- */

static int deployment_put_set(struct td_deployment *deployment, size_t index)
{
    struct td_workload_item *item = deployment->item;
    struct td_workloads *all = item->control->all;
    struct td_error err = TD_ERROR_INIT;
    int code = td_edit_put(all->api, all->controls[TD_KIND_REPLICA_SET].resource, item->arena,
                           deployment->sets[index].object, &err);
    if (code == TD_CONFLICT) {
        td_workload_enqueue(item->control, item->ns, item->name);
    }
    return code;
}

static void deployment_annotate(struct td_arena *arena, struct td_json *object, const char *key,
                                int64_t value)
{
    struct td_json *metadata = td_json_ensure_object(arena, object, TD_STR("metadata"));
    struct td_json *annotations = td_json_ensure_object(arena, metadata, TD_STR("annotations"));
    td_json_set_str(arena, annotations, td_str_from(key),
                    td_arena_format(arena, "%lld", (long long)value));
}

static bool deployment_scale_set(struct td_deployment *deployment, size_t index, int64_t size,
                                 bool is_forced)
{
    struct td_workload_item *item = deployment->item;
    struct td_rollout_set *plan = &deployment->plans[index];
    struct td_json *object = deployment->sets[index].object;
    int64_t before = plan->replicas;
    int64_t most = deployment->rollout.replicas + deployment->rollout.surge_max;
    bool has_annotations =
        plan->desired_before == deployment->rollout.replicas && plan->max_before == most;
    if (before == size && (!is_forced || has_annotations)) {
        return false;
    }
    td_json_set_int64(item->arena, td_json_get(object, TD_STR("spec")), TD_STR("replicas"), size);
    deployment_annotate(item->arena, object, TD_ANNOTATION_DESIRED, deployment->rollout.replicas);
    deployment_annotate(item->arena, object, TD_ANNOTATION_MAX, most);
    if (deployment_put_set(deployment, index) != TD_OK) {
        return false;
    }
    bool is_new = plan->is_new;
    *plan = deployment_plan(object);
    plan->is_new = is_new;
    if (before != size) {
        td_workload_event(item, false, "ScalingReplicaSet",
                          "Scaled %s replica set %.*s from %lld to %lld",
                          before < size ? "up" : "down", TD_STR_ARG(deployment->sets[index].name),
                          (long long)before, (long long)size);
    }
    return before != size;
}

/* ---- The new ReplicaSet ---- */

static void deployment_add_label(struct td_arena *arena, struct td_json *object, td_str parent,
                                 td_str hash)
{
    struct td_json *labels = td_json_ensure_object(arena, object, parent);
    td_json_set_str(arena, labels, TD_STR(DEPLOYMENT_HASH_LABEL), hash);
}

static struct td_json *deployment_new_object(struct td_deployment *deployment, td_str hash)
{
    struct td_workload_item *item = deployment->item;
    struct td_arena *arena = item->arena;
    struct td_json *object = td_json_new_object(arena);
    td_json_set_str(arena, object, TD_STR("apiVersion"), TD_STR("apps/v1"));
    td_json_set_str(arena, object, TD_STR("kind"), TD_STR("ReplicaSet"));
    struct td_json *metadata = td_json_ensure_object(arena, object, TD_STR("metadata"));
    td_str base = td_str_slice(item->name, 0, DEPLOYMENT_NAME_BYTES_MAX - 1 - hash.len);
    td_json_set_str(arena, metadata, TD_STR("name"),
                    td_arena_format(arena, "%.*s-%.*s", TD_STR_ARG(base), TD_STR_ARG(hash)));
    td_json_set_str(arena, metadata, TD_STR("namespace"), item->ns);
    struct td_json *template =
        td_json_copy(arena, td_json_get(item->spec, TD_STR("template")), false);
    struct td_json *inner = td_json_ensure_object(arena, template, TD_STR("metadata"));
    deployment_add_label(arena, inner, TD_STR("labels"), hash);
    td_json_set_copy(arena, metadata, TD_STR("labels"), td_json_get(inner, TD_STR("labels")));
    td_set_controller(arena, metadata, item->object);
    struct td_json *spec = td_json_ensure_object(arena, object, TD_STR("spec"));
    td_json_set_int64(
        arena, spec, TD_STR("replicas"),
        td_rollout_new_size(&deployment->rollout, deployment->plans, deployment->count, 0));
    td_workload_set_count(arena, spec, TD_STR("minReadySeconds"), td_workload_min_ready(item));
    struct td_json *selector =
        td_json_copy(arena, td_json_get(item->spec, TD_STR("selector")), false);
    deployment_add_label(arena, selector, TD_STR("matchLabels"), hash);
    td_json_set(arena, spec, TD_STR("selector"), selector);
    td_json_set(arena, spec, TD_STR("template"), template);
    return object;
}

/* Is the set of that name ours, with the present template? We made it a moment ago then, and the
 * index has not heard of it. */
static bool deployment_has_made(struct td_deployment *deployment, td_str name)
{
    struct td_workload_item *item = deployment->item;
    struct td_workloads *all = item->control->all;
    struct td_json *found;
    if (td_edit_get(all->api, all->controls[TD_KIND_REPLICA_SET].resource, item->ns, name,
                    item->arena, &found, NULL) != TD_OK) {
        return false;
    }
    struct td_meta meta;
    const struct td_owner_reference *controller =
        td_meta_decode(item->arena, found, &meta, NULL) == TD_OK ? td_meta_controller(&meta) : NULL;
    return controller && td_str_equal(controller->uid, item->uid) &&
           td_json_equal(deployment_bare_template(item->arena, item->object),
                         deployment_bare_template(item->arena, found));
}

/* The name is taken by a set of another template or owner: the next hash is another one. */
static void deployment_collide(struct td_deployment *deployment)
{
    struct td_workload_item *item = deployment->item;
    struct td_json *status = td_json_ensure_object(item->arena, item->object, TD_STR("status"));
    int64_t collisions = td_json_get_int64(status, TD_STR("collisionCount"), 0);
    td_json_set_int64(item->arena, status, TD_STR("collisionCount"), collisions + 1);
    (void)td_workload_put(item); /* its own change brings it back here */
}

static void deployment_refused(struct td_deployment *deployment, td_str name, const char *why)
{
    struct td_workload_item *item = deployment->item;
    td_str message = td_arena_format(item->arena, "Failed to create new replica set \"%.*s\": %s",
                                     TD_STR_ARG(name), why);
    if (td_deployment_has_deadline(item)) {
        struct td_json *status = td_json_ensure_object(item->arena, item->object, TD_STR("status"));
        td_deployment_set_condition(
            item, status,
            &(struct td_condition){.type = TD_STR("Progressing"),
                                   .status = TD_STR("False"),
                                   .reason = TD_STR("ReplicaSetCreateError"),
                                   .message = message});
        (void)td_workload_put(item); /* the event says it as well */
    }
    td_workload_event(item, true, "ReplicaSetCreateError", "%.*s", TD_STR_ARG(message));
}

static bool deployment_create(struct td_deployment *deployment)
{
    struct td_workload_item *item = deployment->item;
    struct td_workloads *all = item->control->all;
    int64_t collisions =
        td_json_get_int64(td_json_get(item->object, TD_STR("status")), TD_STR("collisionCount"), 0);
    td_str hash =
        td_workload_hash(item->arena, td_json_get(item->spec, TD_STR("template")), collisions);
    struct td_json *object = deployment_new_object(deployment, hash);
    td_str revision = td_deployment_next_revision(deployment);
    td_deployment_annotate_new(deployment, object, revision, false);
    td_str name = td_json_text(td_json_get(object, TD_STR("metadata")), "name");
    struct td_error err = TD_ERROR_INIT;
    int code = td_edit_put(all->api, all->controls[TD_KIND_REPLICA_SET].resource, item->arena,
                           object, &err);
    if (code == TD_EXISTS && deployment_has_made(deployment, name)) {
        td_workload_enqueue_after(item->control, item->ns, item->name, DEPLOYMENT_INDEX_PAUSE);
        return false;
    }
    if (code == TD_EXISTS) {
        deployment_collide(deployment);
        return false;
    }
    if (code != TD_OK) {
        deployment_refused(deployment, name, err.message);
        return false;
    }
    deployment->new_index = deployment->count++;
    deployment->has_new = true;
    deployment->sets[deployment->new_index] =
        (struct td_deployment_set){.object = object, .name = name, .created = item->now};
    struct td_rollout_set *plan = &deployment->plans[deployment->new_index];
    *plan = deployment_plan(object);
    plan->is_new = true;
    if (plan->replicas > 0) {
        td_workload_event(item, false, "ScalingReplicaSet",
                          "Scaled up replica set %.*s from 0 to %lld", TD_STR_ARG(name),
                          (long long)plan->replicas);
    }
    td_deployment_note_new(deployment, revision, name);
    return true;
}

/* Finds or makes the set of the present template. False when there is none. */
static bool deployment_need_new(struct td_deployment *deployment, bool may_create)
{
    if (!deployment->has_new) {
        return may_create && deployment_create(deployment);
    }
    struct td_workload_item *item = deployment->item;
    size_t index = deployment->new_index;
    struct td_json *object = deployment->sets[index].object;
    struct td_json *spec = td_json_get(object, TD_STR("spec"));
    bool is_changed = td_deployment_annotate_new(deployment, object,
                                                 td_deployment_next_revision(deployment), true);
    int64_t min_ready = td_workload_min_ready(item);
    if (td_json_get_int64(spec, TD_STR("minReadySeconds"), 0) != min_ready) {
        td_workload_set_count(item->arena, spec, TD_STR("minReadySeconds"), min_ready);
        is_changed = true;
    }
    if (is_changed) {
        (void)deployment_put_set(deployment, index); /* its own change brings it back here */
        td_workload_enqueue(item->control, item->ns, item->name);
    }
    td_deployment_note_found(deployment);
    return true;
}

/* ---- Rolling out ---- */

static void deployment_clean_up(struct td_deployment *deployment)
{
    struct td_workload_item *item = deployment->item;
    struct td_workloads *all = item->control->all;
    int64_t limit = td_json_get_int64(item->spec, TD_STR("revisionHistoryLimit"), INT32_MAX);
    int64_t *revisions = td_arena_array(item->arena, int64_t, deployment->count);
    int64_t surplus = -limit;
    for (size_t i = 0; i < deployment->count; i++) {
        const struct td_json *object = deployment->sets[i].object;
        bool is_old = !(deployment->has_new && i == deployment->new_index) &&
                      !td_json_get_path(object, "metadata.deletionTimestamp");
        revisions[i] = is_old ? deployment_annotation(object, TD_STR(TD_ANNOTATION_REVISION)) : -2;
        surplus += is_old;
    }
    for (; surplus > 0; surplus--) { /* the oldest revision first */
        size_t oldest = deployment->count;
        for (size_t i = 0; i < deployment->count; i++) {
            if (revisions[i] > -2 &&
                (oldest == deployment->count || revisions[i] < revisions[oldest])) {
                oldest = i;
            }
        }
        revisions[oldest] = -2;
        const struct td_rollout_set *plan = &deployment->plans[oldest];
        const struct td_json *object = deployment->sets[oldest].object;
        bool is_seen =
            td_json_get_int64(td_json_get(object, TD_STR("metadata")), TD_STR("generation"), 0) <=
            td_json_get_int64(td_json_get(object, TD_STR("status")), TD_STR("observedGeneration"),
                              0);
        if (plan->replicas == 0 && plan->actual == 0 && is_seen) {
            (void)td_edit_delete(all->api, all->controls[TD_KIND_REPLICA_SET].resource, item->ns,
                                 plan->name, TD_STR_EMPTY, TD_STR_EMPTY, -1,
                                 NULL); /* gone already is fine, else the next pass tries again */
        }
    }
}

static bool deployment_grow_new(struct td_deployment *deployment)
{
    const struct td_rollout *rollout = &deployment->rollout;
    int64_t size = deployment->plans[deployment->new_index].replicas;
    if (size > rollout->replicas) {
        size = rollout->replicas;
    } else if (size < rollout->replicas) {
        size = td_rollout_new_size(rollout, deployment->plans, deployment->count, size);
    }
    return deployment_scale_set(deployment, deployment->new_index, size, false);
}

static bool deployment_apply_targets(struct td_deployment *deployment, bool is_forced)
{
    bool is_scaled = false;
    for (size_t i = 0; i < deployment->count; i++) {
        struct td_rollout_set *plan = &deployment->plans[i];
        bool is_active = plan->replicas > 0 || plan->target > 0;
        if (is_active && deployment_scale_set(deployment, i, plan->target, is_forced)) {
            is_scaled = true;
        }
    }
    return is_scaled;
}

static void deployment_roll(struct td_deployment *deployment)
{
    if (!deployment_need_new(deployment, true)) {
        return;
    }
    bool is_scaled = deployment_grow_new(deployment);
    if (!is_scaled) {
        (void)td_rollout_shrink_old(&deployment->rollout, deployment->plans, deployment->count);
        is_scaled = deployment_apply_targets(deployment, false);
    }
    if (!is_scaled && td_deployment_is_complete(deployment->item)) {
        deployment_clean_up(deployment);
    }
    td_deployment_update_status(deployment, true);
}

static bool deployment_has_old_pods(struct td_deployment *deployment)
{
    struct td_workload_item *item = deployment->item;
    struct td_workloads *all = item->control->all;
    for (size_t i = 0; i < deployment->count; i++) {
        if (deployment->plans[i].is_new) {
            continue;
        }
        if (deployment->plans[i].actual > 0) {
            return true;
        }
        td_str uid =
            td_json_text(td_json_get(deployment->sets[i].object, TD_STR("metadata")), "uid");
        struct td_children pods = td_child_index_list(&all->pod_index, item->arena, uid);
        for (size_t p = 0; p < pods.count; p++) {
            if (!td_pod_phase_is_over(pods.items[p]->pod.phase)) {
                return true;
            }
        }
    }
    return false;
}

static void deployment_recreate(struct td_deployment *deployment)
{
    (void)deployment_need_new(deployment, false); /* old pods go before new ones come */
    for (size_t i = 0; i < deployment->count; i++) {
        struct td_rollout_set *plan = &deployment->plans[i];
        plan->target = plan->is_new ? plan->replicas : 0;
    }
    if (deployment_apply_targets(deployment, false) || deployment_has_old_pods(deployment)) {
        td_deployment_update_status(deployment, true);
        return;
    }
    if (!deployment->has_new && !deployment_need_new(deployment, true)) {
        return;
    }
    (void)deployment_scale_set(deployment, deployment->new_index, deployment->rollout.replicas,
                               false); /* the status tells */
    if (td_deployment_is_complete(deployment->item)) {
        deployment_clean_up(deployment);
    }
    td_deployment_update_status(deployment, true);
}

/* Paused, or scaled by a client: sizes follow, templates do not. */
static void deployment_scale(struct td_deployment *deployment, bool is_paused)
{
    struct td_workload_item *item = deployment->item;
    struct td_rollout_set **order =
        td_arena_array(item->arena, struct td_rollout_set *, deployment->count);
    for (size_t i = 0; i < deployment->count; i++) {
        order[i] = &deployment->plans[i];
    }
    bool is_forced;
    td_rollout_scale(&deployment->rollout, order, deployment->count, &is_forced);
    (void)deployment_apply_targets(deployment, is_forced); /* the status tells */
    if (is_paused) {
        deployment_clean_up(deployment);
    }
    td_deployment_update_status(deployment, false);
}

void td_deployment_sync(struct td_workload_item *item)
{
    struct td_deployment deployment;
    deployment_load(item, &deployment);
    if (item->is_deleting) {
        (void)deployment_need_new(&deployment, false);
        td_deployment_update_status(&deployment, false);
        return;
    }
    td_deployment_check_paused(item);
    bool is_paused = td_json_get_bool(item->spec, TD_STR("paused"), false);
    if (is_paused) {
        (void)deployment_need_new(&deployment, false); /* it may not be there while paused */
        deployment_scale(&deployment, true);
        return;
    }
    if (td_rollout_is_scaled(&deployment.rollout, deployment.plans, deployment.count)) {
        (void)deployment_need_new(&deployment, false); /* as above */
        deployment_scale(&deployment, false);
    } else if (deployment.rollout.is_rolling) {
        deployment_roll(&deployment);
    } else {
        deployment_recreate(&deployment);
    }
}
