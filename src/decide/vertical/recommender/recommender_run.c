/*
 * What a pass asks of the recommender: statuses, checkpoints, garbage collection.
 *
 * The API object is the memory of conditions: they are read from it, changed, and compared with it,
 * so that a restart forgets nothing and an unchanged status is never written.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "decide/vertical/estimator/adaptive.h"
#include "decide/vertical/estimator/track.h"
#include "decide/vertical/recommender/oom_annotation.h"
#include "decide/vertical/recommender/recommend.h"
#include "decide/vertical/recommender/recommender_private.h"

#define GC_INTERVAL TD_HOUR
#define CONDITIONS_MAX 64

/* What a VPA knows, one item per container name in order: borrowed slots, or with
 * is_upstream_exact merged copies that view_done frees. */
struct vpa_view {
    struct td_slot **items;
    size_t count;
    bool is_owned;
};

/* Upstream's answer to "what does this VPA know": everything linked, then the checkpoint. */
static void view_merge(struct td_recommender *recommender, struct td_arena *arena,
                       struct vpa_view *view, size_t cap, struct td_slots *slots, td_time now)
{
    for (uint32_t i = 0; i < slots->count; i++) {
        struct td_slot *from = slots->items[i];
        size_t at = 0;
        while (at < view->count &&
               td_str_compare(view->items[at]->container, from->container) < 0) {
            at++;
        }
        if (at == view->count || !td_str_equal(view->items[at]->container, from->container)) {
            if (view->count == cap) {
                return; /* cannot be: cap counts every slot */
            }
            for (size_t j = view->count; j > at; j--) {
                view->items[j] = view->items[j - 1];
            }
            view->items[at] = td_arena_new(arena, struct td_slot);
            view->items[at]->container = from->container;
            td_aggregate_init(&view->items[at]->aggregate, &recommender->config, now);
            view->count++;
        }
        td_aggregate_merge(&view->items[at]->aggregate, &recommender->config, &from->aggregate);
        view->items[at]->estimator_state = from->estimator_state;
    }
}

static int compare_groups(const void *a, const void *b)
{
    const struct td_group *const *x = a;
    const struct td_group *const *y = b;
    return td_str_compare((*x)->key, (*y)->key);
}

static void view_init(struct td_recommender *recommender, struct td_arena *arena,
                      struct td_model_vpa *vpa, td_time now, struct vpa_view *ret)
{
    if (!recommender->config.is_upstream_exact) {
        *ret = (struct vpa_view){.items = vpa->slots.items, .count = vpa->slots.count};
        return;
    }
    size_t cap = vpa->slots.count;
    for (size_t i = 0; i < vpa->groups.count; i++) {
        const struct td_group *group = vpa->groups.items[i];
        cap += group->slots.count;
    }
    *ret =
        (struct vpa_view){.items = td_arena_array(arena, struct td_slot *, cap), .is_owned = true};
    /* A fixed order, because sums of doubles depend on it; upstream's is random. */
    if (vpa->groups.count > 1) {
        qsort(vpa->groups.items, vpa->groups.count, sizeof(void *), compare_groups);
    }
    for (size_t i = 0; i < vpa->groups.count; i++) {
        struct td_group *group = vpa->groups.items[i];
        view_merge(recommender, arena, ret, cap, &group->slots, now);
    }
    view_merge(recommender, arena, ret, cap, &vpa->slots, now);
}

static void view_done(struct vpa_view *view)
{
    for (size_t i = 0; view->is_owned && i < view->count; i++) {
        td_aggregate_done(&view->items[i]->aggregate);
    }
    view->count = 0;
}

/* Conditions while a status is made, sorted by type. */
struct conditions {
    struct td_vpa_condition *items;
    size_t count;
};

static size_t condition_place(const struct conditions *conditions, td_str type, bool *ret_is_there)
{
    size_t at = 0;
    while (at < conditions->count && td_str_compare(conditions->items[at].type, type) < 0) {
        at++;
    }
    *ret_is_there = at < conditions->count && td_str_equal(conditions->items[at].type, type);
    return at;
}

static void condition_put(struct conditions *conditions, const struct td_vpa_condition *condition)
{
    bool is_there = false;
    size_t at = condition_place(conditions, condition->type, &is_there);
    if (!is_there) {
        if (conditions->count == CONDITIONS_MAX) {
            return; /* an object with more conditions than controllers set */
        }
        memmove(&conditions->items[at + 1], &conditions->items[at],
                (conditions->count - at) * sizeof(*conditions->items));
        conditions->count++;
    }
    conditions->items[at] = *condition;
}

static void condition_set(struct conditions *conditions, td_str type, bool status, td_str reason,
                          td_str message, td_time now)
{
    bool is_there = false;
    size_t at = condition_place(conditions, type, &is_there);
    struct td_vpa_condition made = {.type = type,
                                    .status = status ? TD_STR("True") : TD_STR("False"),
                                    .reason = reason,
                                    .message = message,
                                    .last_transition = td_time_to_instant(now)};
    made.last_transition.nanos = 0; /* the API keeps whole seconds */
    if (is_there && td_str_equal(conditions->items[at].status, made.status)) {
        made.last_transition = conditions->items[at].last_transition;
    }
    condition_put(conditions, &made);
}

static void condition_remove(struct conditions *conditions, td_str type)
{
    bool is_there = false;
    size_t at = condition_place(conditions, type, &is_there);
    if (is_there) {
        conditions->count--;
        memmove(&conditions->items[at], &conditions->items[at + 1],
                (conditions->count - at) * sizeof(*conditions->items));
    }
}

/* OOMs ask for more than maxAllowed lets them have: say so, or the pods die for ever in silence. */
static void condition_oom(struct td_arena *arena, struct conditions *conditions,
                          const struct td_vpa_status *status, td_time now)
{
    for (size_t i = 0; i < status->recommendation.container_count; i++) {
        const struct td_account *account = &status->accounts[i];
        if (account->oom_capped_bytes > 0) {
            struct td_quantity most =
                td_quantity_new(account->oom_capped_bytes, TD_QUANTITY_BINARY_SI);
            td_str message = td_arena_format(
                arena,
                "container '%.*s' was OOM-killed and needs more memory than maxAllowed (%.*s); "
                "raise resourcePolicy.containerPolicies[].maxAllowed.memory",
                TD_STR_ARG(account->container), TD_STR_ARG(td_quantity_text(arena, &most)));
            condition_set(conditions, TD_STR("OOMBumpLimited"), true, TD_STR("MaxAllowedReached"),
                          message, now);
            return;
        }
    }
    condition_remove(conditions, TD_STR("OOMBumpLimited"));
}

/* The first container that another estimator sizes, because it cannot be resized; NULL: none. */
static const struct td_account *find_instead(const struct td_vpa_status *status)
{
    for (size_t i = 0; i < status->recommendation.container_count; i++) {
        if (status->accounts[i].instead) {
            return &status->accounts[i];
        }
    }
    return NULL;
}

static bool is_tracked(const struct td_vpa_status *status)
{
    for (size_t i = 0; i < status->recommendation.container_count; i++) {
        if (status->accounts[i].tracked_risk) {
            return true;
        }
    }
    return false;
}

/* The updater follows another rule for what the adaptive estimator recommends, and counts from its
 * first sample: it learns both from here, wherever it runs, with the recommendation itself. Of
 * several containers the one that was measured last counts. */
static void condition_adaptive(struct td_arena *arena, struct conditions *conditions,
                               const struct td_vpa_status *status)
{
    td_time since = TD_TIME_NONE;
    for (size_t i = 0; i < status->recommendation.container_count; i++) {
        const struct td_account *account = &status->accounts[i];
        if (account->is_adaptive && account->adaptive_since > since) {
            since = account->adaptive_since;
        }
    }
    if (since == TD_TIME_NONE) {
        condition_remove(conditions, TD_ADAPTIVE_CONDITION);
        return;
    }
    char text[TD_TIME_TEXT_BYTES];
    struct td_instant instant = td_time_to_instant(since);
    (void)td_time_format(instant, 0, text);
    const struct td_account *instead = find_instead(status);
    td_str message = td_arena_format(
        arena,
        "%s the adaptive estimator, whose first sample is of %s: increases come first, decreases "
        "after 12 hours",
        is_tracked(status) ? "memory follows" : "pods follow", text);
    if (instead) {
        message = td_arena_format(
            arena, "container '%.*s' is sized by %s instead of track, because %s; %.*s",
            TD_STR_ARG(instead->container), instead->estimator, instead->instead,
            TD_STR_ARG(message));
    }
    condition_put(conditions, &(struct td_vpa_condition){
                                  .type = TD_ADAPTIVE_CONDITION,
                                  .status = TD_STR("True"),
                                  .reason = instead ? TD_STR("InsteadOfTrack") : TD_STR("Measured"),
                                  .message = message,
                                  .last_transition = instant,
                              });
}

/* Likewise for CPU under the track estimator; the reason is its risk. */
static void condition_track(struct td_arena *arena, struct conditions *conditions,
                            const struct td_vpa_status *status)
{
    const struct td_account *youngest = NULL;
    for (size_t i = 0; i < status->recommendation.container_count; i++) {
        const struct td_account *account = &status->accounts[i];
        if (account->tracked_risk &&
            (!youngest || account->tracked_since > youngest->tracked_since)) {
            youngest = account;
        }
    }
    if (!youngest) {
        condition_remove(conditions, TD_TRACK_CONDITION);
        return;
    }
    char text[TD_TIME_TEXT_BYTES];
    struct td_instant instant = td_time_to_instant(youngest->tracked_since);
    (void)td_time_format(instant, 0, text);
    const char *risk = youngest->tracked_risk;
    int64_t wait = td_track_params_find(td_str_from(risk))->wait / (TD_HOUR / TD_SECOND);
    condition_put(conditions,
                  &(struct td_vpa_condition){
                      .type = TD_TRACK_CONDITION,
                      .status = TD_STR("True"),
                      .reason = td_track_risk_reason(arena, risk),
                      .message = td_arena_format(
                          arena,
                          "CPU follows the track estimator at risk %s, whose first sample is of "
                          "%s: in place, increases at once, decreases after %lld hour%s",
                          risk, text, (long long)wait, wait == 1 ? "" : "s"),
                      .last_transition = instant,
                  });
}

static void status_conditions(struct td_recommender *recommender, struct td_arena *arena,
                              const struct td_vpa *object, td_time now, struct td_vpa_status *ret)
{
    struct conditions conditions = {
        .items = td_arena_array(arena, struct td_vpa_condition, CONDITIONS_MAX)};
    const td_str reason = TD_STR("NoPodsMatched");
    const td_str message = TD_STR("No pods match this VPA object");
    bool has_pods = ret->pod_count > 0;
    for (size_t i = 0; i < object->condition_count; i++) {
        condition_put(&conditions, &object->conditions[i]);
    }
    if (has_pods) {
        condition_remove(&conditions, TD_STR("NoPodsMatched"));
    } else {
        condition_set(&conditions, TD_STR("NoPodsMatched"), true, reason, message, now);
    }
    bool is_provided = ret->recommendation.container_count > 0;
    bool is_explained = !is_provided && !has_pods;
    condition_set(&conditions, TD_STR("RecommendationProvided"), is_provided,
                  is_explained ? reason : TD_STR_EMPTY, is_explained ? message : TD_STR_EMPTY, now);
    if (!recommender->config.is_upstream_exact) {
        condition_oom(arena, &conditions, ret, now);
        condition_adaptive(arena, &conditions, ret);
        condition_track(arena, &conditions, ret);
    }
    ret->conditions = conditions.items;
    ret->condition_count = conditions.count;
}

static bool conditions_equal(const struct td_vpa_status *status, const struct td_vpa *object)
{
    if (status->condition_count != object->condition_count) {
        return false;
    }
    for (size_t i = 0; i < status->condition_count; i++) {
        const struct td_vpa_condition *a = &status->conditions[i];
        const struct td_vpa_condition *b = &object->conditions[i];
        if (!td_str_equal(a->type, b->type) || !td_str_equal(a->status, b->status) ||
            !td_str_equal(a->reason, b->reason) || !td_str_equal(a->message, b->message) ||
            td_instant_since(a->last_transition, b->last_transition) != 0) {
            return false;
        }
    }
    return true;
}

/* No controller acts on the bounds: the mode leaves running pods alone, and no Hvpa reads them. */
static bool status_is_display_only(const struct td_vpa *object)
{
    const struct td_owner_reference *owner = td_meta_controller(&object->meta);
    return (object->mode == TD_VPA_OFF || object->mode == TD_VPA_INITIAL) &&
           !(owner && td_str_equal(owner->kind, TD_STR("Hvpa")));
}

/* Of a container that was never measured nothing is known: upstream recommends the minimum for it,
 * which a webhook would write into pods that ask for much more. */
static void drop_unmeasured(struct td_vpa_status *status, const struct td_subject *subjects,
                            const struct td_vertical_config *config)
{
    struct td_recommendation *made = &status->recommendation;
    size_t kept = 0;
    for (size_t i = 0; i < made->container_count; i++) {
        const struct td_aggregate *aggregate = subjects[i].aggregate;
        const struct td_account *account = &status->accounts[i];
        bool is_measured = aggregate->total_samples > 0 || aggregate->oom.count > 0 ||
                           !td_decaying_is_empty(&aggregate->memory, &config->memory);
        if (is_measured && !(account->cpu.lacks_data && account->memory.lacks_data)) {
            made->containers[kept] = made->containers[i];
            status->accounts[kept++] = status->accounts[i];
        }
    }
    made->container_count = kept;
}

static struct td_scale_out_pods status_pods(const struct td_model_vpa *vpa, td_time now)
{
    struct td_scale_out_pods pods = {.count = vpa->pod_count};
    for (uint32_t i = 0; i < vpa->groups.count; i++) {
        const struct td_group *group = vpa->groups.items[i];
        for (uint32_t k = 0; k < group->pods.count; k++) {
            td_time started = td_pod_started(group->pods.items[k]);
            if (started == TD_TIME_NONE || started + TD_SCALE_OUT_HOLD <= now) {
                pods.old_count++;
            } else if (pods.last_start == 0 || started > pods.last_start) {
                pods.last_start = started;
            }
        }
    }
    return pods;
}

/* Until when memory is not lowered because of a scale-out; 0: it may be. */
static td_time status_hold(struct td_model_vpa *vpa, td_time now)
{
    td_time until;
    if (vpa->scale_out.is_known) {
        td_scale_out_see(&vpa->scale_out, vpa->pod_count, now);
    } else {
        const struct td_scale_out_pods pods = status_pods(vpa, now);
        td_scale_out_begin(&vpa->scale_out, &pods, now);
    }
    return td_scale_out_holds(&vpa->scale_out, now, &until) ? until : 0;
}

int td_recommender_status(struct td_recommender *recommender, struct td_arena *arena,
                          const struct td_vpa *object, const struct td_resource_list *global_max,
                          td_time now, struct td_vpa_status *ret, struct td_error *err)
{
    struct td_model_vpa *vpa =
        td_recommender_find_vpa(recommender, object->meta.namespace, object->meta.name);
    if (!vpa) {
        return td_error_set(err, TD_NOT_FOUND, "VPA '%.*s/%.*s' is not tracked",
                            TD_STR_ARG(object->meta.namespace), TD_STR_ARG(object->meta.name));
    }
    struct vpa_view view;
    view_init(recommender, arena, vpa, now, &view);
    struct td_subject *subjects = td_arena_array(arena, struct td_subject, view.count);
    size_t count = 0;
    for (size_t i = 0; i < view.count; i++) {
        td_vpa_apply_policy(recommender, vpa, view.items[i]);
        td_vpa_tell_terms(recommender, vpa, view.items[i]);
        if (!view.items[i]->aggregate.policy.is_off) {
            subjects[count++] =
                (struct td_subject){.container = td_arena_copy_str(arena, view.items[i]->container),
                                    .aggregate = &view.items[i]->aggregate,
                                    .estimator_state = view.items[i]->estimator_state};
        }
    }
    td_time held_until = recommender->config.is_upstream_exact ? 0 : status_hold(vpa, now);
    const struct td_recommend_terms terms = {
        .held = held_until > 0 && object->has_recommendation ? &object->recommendation : NULL,
        .held_until = held_until,
        .config = &recommender->config,
        .estimator = vpa->estimator,
        .policy = object->policy.is_set ? &object->policy : NULL,
        .annotations = object->meta.annotations,
        .global_max = global_max,
        .is_display_only = status_is_display_only(object),
        .now = now,
    };
    struct td_vpa_status made = {.observed_generation = object->meta.generation,
                                 .pod_count = vpa->pod_count};
    td_recommend(arena, &terms, subjects, count, &made.recommendation, &made.accounts);
    if (!recommender->config.is_upstream_exact) {
        drop_unmeasured(&made, subjects, &recommender->config);
    }
    view_done(&view);
    status_conditions(recommender, arena, object, now, &made);
    td_vpa_status_compare(&made, object);
    *ret = made;
    return TD_OK;
}

void td_vpa_status_condition(struct td_vpa_status *status, td_str type, bool is_set, td_str reason,
                             td_str message, td_time now)
{
    struct conditions conditions = {.items = status->conditions, .count = status->condition_count};
    if (is_set) {
        condition_set(&conditions, type, true, reason, message, now);
    } else {
        condition_remove(&conditions, type);
    }
    status->condition_count = conditions.count;
}

void td_vpa_status_compare(struct td_vpa_status *status, const struct td_vpa *object)
{
    status->is_changed =
        !object->has_recommendation || object->observed_generation != status->observed_generation ||
        !td_recommendation_equal(&status->recommendation, &object->recommendation) ||
        !conditions_equal(status, object);
}

struct td_json *td_vpa_status_json(struct td_arena *arena, const struct td_vpa_status *status)
{
    struct td_json *object = td_json_new_object(arena);
    struct td_json *conditions = td_json_new_array(arena);
    td_json_set(arena, object, TD_STR("recommendation"),
                td_recommendation_encode(arena, &status->recommendation));
    for (size_t i = 0; i < status->condition_count; i++) {
        const struct td_vpa_condition *from = &status->conditions[i];
        struct td_json *item = td_json_new_object(arena);
        td_json_set_str(arena, item, TD_STR("type"), from->type);
        td_json_set_str(arena, item, TD_STR("status"), from->status);
        td_json_set_str(arena, item, TD_STR("lastTransitionTime"),
                        td_time_text(arena, from->last_transition, 0));
        td_json_set_text(arena, item, TD_STR("reason"), from->reason);
        td_json_set_text(arena, item, TD_STR("message"), from->message);
        td_json_append(conditions, item);
    }
    if (conditions->count > 0) {
        td_json_set(arena, object, TD_STR("conditions"), conditions);
    }
    td_json_set_int64(arena, object, TD_STR("observedGeneration"), status->observed_generation);
    return object;
}

/* Takes the running windows of a group's pods out of a copy, so that they are not counted twice
 * after a restart. */
static void subtract_windows(struct td_recommender *recommender, const struct td_group *group,
                             td_str container, struct td_aggregate *copy, td_time now)
{
    for (uint32_t i = 0; i < group->pods.count; i++) {
        const struct td_tracked_container *tracked =
            td_pod_container(recommender, group->pods.items[i], container);
        if (tracked && !tracked->is_held && now < tracked->state.window_end) {
            const struct td_peak_change change = {.has_subtract = true,
                                                  .subtract_bytes =
                                                      td_container_peak(&tracked->state),
                                                  .at = tracked->state.window_end};
            td_aggregate_apply(copy, &recommender->config, &change);
        }
    }
}

static void store_slot(struct td_recommender *recommender, struct td_arena *arena,
                       struct td_model_vpa *vpa, const struct td_slot *slot, td_time now,
                       struct td_stored_checkpoint *ret)
{
    struct td_aggregate copy = slot->aggregate;
    td_decaying_copy(&slot->aggregate.cpu, &copy.cpu);
    td_decaying_copy(&slot->aggregate.memory, &copy.memory);
    for (size_t i = 0; i < vpa->groups.count; i++) {
        const struct td_group *group = vpa->groups.items[i];
        if (!recommender->config.is_upstream_exact ||
            td_slots_find(&group->slots, slot->container)) {
            subtract_windows(recommender, group, slot->container, &copy, now);
        }
    }
    ret->checkpoint.vpa_name = td_arena_copy_str(arena, vpa->name);
    ret->checkpoint.container_name = td_arena_copy_str(arena, slot->container);
    ret->checkpoint.last_update = td_time_to_instant(now);
    td_aggregate_save(&copy, &ret->checkpoint);
    td_aggregate_done(&copy);
    ret->annotations = td_json_new_object(arena);
    if (slot->aggregate.oom.count > 0) {
        td_str text = td_oom_annotation_encode(arena, &slot->aggregate.oom);
        td_json_set_str(arena, ret->annotations, TD_STR(TD_OOM_ANNOTATION), text);
    }
    if (slot->estimator_state) {
        vpa->estimator->save(arena, slot->estimator_state, ret->annotations);
    }
}

int td_recommender_store(struct td_recommender *recommender, struct td_arena *arena,
                         td_str namespace, td_str name, td_time now,
                         struct td_stored_checkpoint **ret, size_t *ret_count, struct td_error *err)
{
    struct td_model_vpa *vpa = td_recommender_find_vpa(recommender, namespace, name);
    if (!vpa) {
        return td_error_set(err, TD_NOT_FOUND, "VPA '%.*s/%.*s' is not tracked",
                            TD_STR_ARG(namespace), TD_STR_ARG(name));
    }
    struct vpa_view view;
    view_init(recommender, arena, vpa, now, &view);
    struct td_stored_checkpoint *items =
        td_arena_array(arena, struct td_stored_checkpoint, view.count);
    for (size_t i = 0; i < view.count; i++) {
        store_slot(recommender, arena, vpa, view.items[i], now, &items[i]);
    }
    *ret = items;
    *ret_count = view.count;
    view_done(&view);
    return TD_OK;
}

/* The OOM of a window that was still running when the checkpoint was written is not in its
 * histogram: it is added back. */
static void load_oom(struct td_recommender *recommender, struct td_slot *slot,
                     const struct td_checkpoint *checkpoint, const struct td_json *annotations)
{
    struct td_oom_knowledge oom;
    td_str text = td_json_get_str(annotations, TD_STR(TD_OOM_ANNOTATION), TD_STR_EMPTY);
    /* A text that does not read is as good as none: the histogram stands. */
    if (text.len == 0 || td_oom_annotation_decode(text, &oom, NULL) < 0) {
        return;
    }
    slot->aggregate.oom = oom;
    if (td_instant_before(checkpoint->last_update, td_time_to_instant(oom.window_end))) {
        const struct td_peak_change change = {
            .has_add = true, .add_bytes = oom.bytes, .at = oom.window_end};
        td_aggregate_apply(&slot->aggregate, &recommender->config, &change);
    }
}

int td_recommender_load(struct td_recommender *recommender, td_str namespace,
                        const struct td_checkpoint *checkpoint, const struct td_json *annotations,
                        td_time now, struct td_error *err)
{
    struct td_model_vpa *vpa =
        td_recommender_find_vpa(recommender, namespace, checkpoint->vpa_name);
    if (!vpa) {
        return td_error_set(err, TD_NOT_FOUND,
                            "cannot load checkpoint to missing VPA object %.*s/%.*s",
                            TD_STR_ARG(namespace), TD_STR_ARG(checkpoint->vpa_name));
    }
    struct td_aggregate loaded;
    td_aggregate_init(&loaded, &recommender->config, now);
    int code = td_aggregate_load(&loaded, &recommender->config, checkpoint, err);
    struct td_slot *slot =
        code < 0 ? NULL
                 : td_slots_ensure(recommender, &vpa->slots, checkpoint->container_name, now);
    if (!slot) {
        td_aggregate_done(&loaded);
        return code < 0 ? code : td_error_set(err, TD_LIMIT, "too many names");
    }
    td_aggregate_done(&slot->aggregate);
    slot->aggregate = loaded;
    td_vpa_apply_terms(recommender, vpa, slot);
    if (!recommender->config.is_upstream_exact) {
        if (td_instant_before(td_time_to_instant(now), slot->aggregate.last_sample)) {
            slot->aggregate.last_sample = td_time_to_instant(now); /* of a fast clock */
        }
        load_oom(recommender, slot, checkpoint, annotations);
    }
    if (slot->estimator_state) {
        (void)vpa->estimator->load(slot->estimator_state, annotations, NULL); /* or starts empty */
        td_vpa_tell_terms(recommender, vpa, slot);
    }
    return TD_OK;
}

static bool vpa_target_exists(const struct td_target_lookup *lookup, const struct td_group *group)
{
    const struct td_model_vpa *vpa = td_group_owner(group);
    if (!lookup || !lookup->target_exists || !vpa) {
        return false;
    }
    return lookup->target_exists(lookup->context, vpa->namespace->name, vpa->target_kind,
                                 vpa->target_name);
}

/* Does some pod of the group keep this container's empty aggregate alive? */
static bool is_contributive(const struct td_recommender *recommender, const struct td_group *group,
                            td_str container, bool has_target)
{
    for (uint32_t i = 0; i < group->pods.count; i++) {
        struct td_tracked_pod *pod = group->pods.items[i];
        bool is_active = !td_pod_phase_is_over(pod->phase);
        if ((is_active || has_target) && td_pod_container(recommender, pod, container)) {
            return true;
        }
    }
    return false;
}

static void gc_group(struct td_recommender *recommender, struct td_group *group, td_time now,
                     const struct td_target_lookup *lookup)
{
    bool has_target = vpa_target_exists(lookup, group);
    for (uint32_t i = group->slots.count; i > 0; i--) {
        struct td_slot *slot = group->slots.items[i - 1];
        bool is_useless = td_aggregate_is_empty(&slot->aggregate) &&
                          !is_contributive(recommender, group, slot->container, has_target);
        if (is_useless || td_aggregate_is_expired(&slot->aggregate, now)) {
            td_slots_remove(recommender, &group->slots, i - 1);
        }
    }
}

/* Without is_upstream_exact a VPA's knowledge goes only when its pods no longer have the container
 * (it was taken out of the template) and it is older than upstream would keep it; a target that is
 * idle or gone for a while keeps all it taught, OOMs above all. */
static void gc_vpa(struct td_recommender *recommender, struct td_model_vpa *vpa, td_time now)
{
    for (uint32_t i = vpa->slots.count; vpa->pod_count > 0 && i > 0; i--) {
        struct td_slot *slot = vpa->slots.items[i - 1];
        bool is_in_use = false;
        for (size_t g = 0; g < vpa->groups.count && !is_in_use; g++) {
            is_in_use = is_contributive(recommender, vpa->groups.items[g], slot->container, true);
        }
        if (!is_in_use && td_aggregate_is_expired(&slot->aggregate, now)) {
            td_slots_remove(recommender, &vpa->slots, i - 1);
        }
    }
}

static void gc_groups(struct td_recommender *recommender, struct td_namespace *namespace,
                      td_time now, const struct td_target_lookup *lookup)
{
    for (struct td_map_walk at = {.map = &namespace->groups}; td_map_step(&at);) {
        struct td_group *group = at.value;
        gc_group(recommender, group, now, lookup);
        if (group->pods.count == 0 && group->slots.count == 0) {
            (void)td_map_remove(&namespace->groups, group->key);
            td_group_free(recommender, group);
        }
    }
}

void td_recommender_gc(struct td_recommender *recommender, td_time now,
                       const struct td_target_lookup *lookup)
{
    size_t at = 0;
    const struct td_map_entry *entry;
    if (recommender->last_gc != TD_CONTAINER_TIME_NONE &&
        now - recommender->last_gc < GC_INTERVAL) {
        return;
    }
    recommender->last_gc = now;
    while ((entry = td_map_next(&recommender->namespaces, &at)) != NULL) {
        gc_groups(recommender, entry->value, now, lookup);
    }
    at = 0;
    while (!recommender->config.is_upstream_exact &&
           (entry = td_map_next(&recommender->vpas, &at)) != NULL) {
        gc_vpa(recommender, entry->value, now);
    }
}
