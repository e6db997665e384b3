/*
 * VPAs and the pods they select. A VPA's selectors are cloned into one block each, because there
 * may be ten thousand of them and they outlive the object they came from.
 */

#include "base/alloc.h"
#include "base/assert.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/text.h"
#include "decide/vertical/recommender/recommender_private.h"
#include "kube/objectkey.h"

/* Everything of a selector in one block: the struct, its requirements, their values, the texts. */
static struct td_selector *clone_selector(const struct td_selector *from)
{
    size_t values = 0;
    size_t bytes = 0;
    for (size_t i = 0; i < from->count; i++) {
        const struct td_requirement *requirement = &from->requirements[i];
        values += requirement->value_count;
        bytes += requirement->key.len;
        for (size_t j = 0; j < requirement->value_count; j++) {
            bytes += requirement->values[j].len;
        }
    }
    struct td_selector *made =
        td_alloc(sizeof(*made) + from->count * sizeof(struct td_requirement) +
                 values * sizeof(td_str) + bytes);
    struct td_requirement *requirements = (struct td_requirement *)(made + 1);
    td_str *texts = (td_str *)(requirements + from->count);
    char *at = (char *)(texts + values);
    for (size_t i = 0; i < from->count; i++) {
        requirements[i] = from->requirements[i];
        requirements[i].key = td_text_place(&at, from->requirements[i].key);
        requirements[i].values = texts;
        for (size_t j = 0; j < requirements[i].value_count; j++) {
            *texts++ = td_text_place(&at, from->requirements[i].values[j]);
        }
    }
    *made = *from;
    made->requirements = requirements;
    return made;
}

static bool vpa_selects(const struct td_model_vpa *vpa, const struct td_labels *labels,
                        td_str target)
{
    bool is_target = vpa->target.len == 0 || td_str_equal(vpa->target, target) ||
                     td_str_equal(target, TD_TARGET_UNKNOWN);
    return is_target && td_selector_matches(vpa->target_selector, labels) &&
           (!vpa->pod_selector || td_selector_matches(vpa->pod_selector, labels));
}

static const struct td_learn_terms *terms_for(const struct td_model_vpa *vpa, td_str container)
{
    const struct td_learn_terms *fallback = NULL;
    for (size_t i = 0; i < vpa->terms_count; i++) {
        if (td_str_equal(vpa->terms[i].container, container)) {
            return &vpa->terms[i].terms;
        }
        if (td_str_equal(vpa->terms[i].container, TD_STR("*"))) {
            fallback = &vpa->terms[i].terms;
        }
    }
    return fallback;
}

void td_vpa_apply_policy(const struct td_recommender *recommender, const struct td_model_vpa *vpa,
                         struct td_slot *slot)
{
    const struct td_learn_terms *terms = terms_for(vpa, slot->container);
    struct td_learn_terms none = td_learn_terms_of(NULL);
    td_learn_policy_apply(&slot->aggregate.policy, &recommender->config, terms ? terms : &none);
}

void td_vpa_apply_terms(struct td_recommender *recommender, const struct td_model_vpa *vpa,
                        struct td_slot *slot)
{
    td_vpa_apply_policy(recommender, vpa, slot);
    if (vpa->estimator->state_bytes > 0 && !slot->estimator_state) {
        slot->estimator_state = td_alloc_zero(1, vpa->estimator->state_bytes);
        vpa->estimator->init(slot->estimator_state);
    }
    td_vpa_tell_terms(recommender, vpa, slot);
}

/* Why the container is not resized in some pod of the group. */
static enum td_resize_lack group_lack(const struct td_recommender *recommender,
                                      const struct td_group *group, td_str container)
{
    for (uint32_t i = 0; i < group->pods.count; i++) {
        const struct td_tracked_container *tracked =
            td_pod_container(recommender, group->pods.items[i], container);
        if (tracked && tracked->lack != TD_RESIZE_POSSIBLE) {
            return (enum td_resize_lack)tracked->lack;
        }
    }
    return TD_RESIZE_POSSIBLE;
}

void td_vpa_tell_terms(const struct td_recommender *recommender, const struct td_model_vpa *vpa,
                       struct td_slot *slot)
{
    if (!vpa || !vpa->estimator->set_terms || !slot->estimator_state) {
        return;
    }
    slot->terms.lack = vpa->lack;
    for (uint32_t i = 0; slot->terms.lack == TD_RESIZE_POSSIBLE && i < vpa->groups.count; i++) {
        slot->terms.lack = group_lack(recommender, vpa->groups.items[i], slot->container);
    }
    vpa->estimator->set_terms(slot->estimator_state, &slot->terms);
}

static void apply_to_slots(struct td_recommender *recommender, const struct td_model_vpa *vpa,
                           struct td_slots *slots)
{
    for (uint32_t i = 0; i < slots->count; i++) {
        td_vpa_apply_terms(recommender, vpa, slots->items[i]);
    }
}

void td_link_group(struct td_recommender *recommender, struct td_group *group)
{
    struct td_namespace *namespace = group->namespace;
    for (size_t i = 0; i < namespace->vpas.count; i++) {
        struct td_model_vpa *vpa = namespace->vpas.items[i];
        if (!vpa_selects(vpa, &group->labels, group->target)) {
            continue;
        }
        td_links_add(&group->vpas, vpa);
        td_links_add(&vpa->groups, group);
        vpa->pod_count += group->pods.count;
        apply_to_slots(recommender, vpa, &group->slots);
        if (!recommender->config.is_upstream_exact) {
            break; /* the oldest has them */
        }
    }
}

void td_unlink_group(struct td_group *group)
{
    for (uint32_t i = 0; i < group->vpas.count; i++) {
        struct td_model_vpa *vpa = group->vpas.items[i];
        uint32_t at = 0;
        while (at < vpa->groups.count && vpa->groups.items[at] != group) {
            at++;
        }
        td_assert(at < vpa->groups.count);
        /* Order does not matter: swap the last one in. */
        vpa->groups.items[at] = vpa->groups.items[vpa->groups.count - 1];
        vpa->groups.count--;
        vpa->pod_count -= group->pods.count;
    }
    group->vpas.count = 0;
}

/* Finds a group's VPAs anew; where the one that learns from it changed, windows start anew. */
static void relink_group(struct td_recommender *recommender, struct td_group *group, td_time now)
{
    const struct td_model_vpa *before = td_group_owner(group);
    td_unlink_group(group);
    td_link_group(recommender, group);
    if (before == td_group_owner(group) || recommender->config.is_upstream_exact) {
        return;
    }
    for (uint32_t p = 0; p < group->pods.count; p++) {
        struct td_tracked_pod *pod = group->pods.items[p];
        td_pod_restart_windows(pod);
        for (size_t i = 0; i < pod->container_count; i++) {
            td_str container = td_pod_container_name(recommender, pod, i);
            (void)td_group_slot(recommender, group, container, now);
        }
    }
}

static void relink_namespace(struct td_recommender *recommender, struct td_namespace *namespace,
                             td_time now)
{
    for (struct td_map_walk at = {.map = &namespace->groups}; td_map_step(&at);) {
        relink_group(recommender, at.value, now);
    }
}

static bool is_older(const struct td_model_vpa *a, const struct td_model_vpa *b)
{
    if (td_instant_before(a->created, b->created) || td_instant_before(b->created, a->created)) {
        return td_instant_before(a->created, b->created);
    }
    return td_str_compare(a->name, b->name) < 0;
}

static bool namespace_insert(struct td_namespace *namespace, struct td_model_vpa *vpa)
{
    if (!td_vec_push(&namespace->vpas)) {
        return false;
    }
    size_t at = namespace->vpas.count - 1;
    for (; at > 0 && is_older(vpa, namespace->vpas.items[at - 1]); at--) {
        namespace->vpas.items[at] = namespace->vpas.items[at - 1];
    }
    namespace->vpas.items[at] = vpa;
    return true;
}

static void vpa_release_terms(struct td_recommender *recommender, struct td_model_vpa *vpa)
{
    for (size_t i = 0; i < vpa->terms_count; i++) {
        td_intern_unref(recommender->texts, vpa->terms[i].container);
    }
    td_free(vpa->terms);
    vpa->terms = NULL;
    vpa->terms_count = 0;
}

static void vpa_set_terms(struct td_recommender *recommender, struct td_model_vpa *vpa,
                          const struct td_resource_policy *policy)
{
    vpa_release_terms(recommender, vpa);
    if (!policy->is_set || policy->container_count == 0) {
        return;
    }
    vpa->terms = td_alloc_zero(policy->container_count, sizeof(*vpa->terms));
    for (size_t i = 0; i < policy->container_count; i++) {
        td_str name = td_intern_ref(recommender->texts, policy->containers[i].container_name);
        if (name.ptr) {
            vpa->terms[vpa->terms_count++] = (struct td_named_terms){
                .container = name, .terms = td_learn_terms_of(&policy->containers[i])};
        }
    }
}

static void vpa_free_reference(struct td_model_vpa *vpa)
{
    td_text_free(vpa->target_kind);
    td_text_free(vpa->target_name);
}

static void vpa_free(struct td_recommender *recommender, struct td_model_vpa *vpa)
{
    td_slots_done(recommender, &vpa->slots);
    vpa_release_terms(recommender, vpa);
    td_links_done(&vpa->groups);
    td_free(vpa->target_selector);
    td_free(vpa->pod_selector);
    vpa_free_reference(vpa);
    td_intern_unref(recommender->texts, vpa->target);
    td_free(vpa);
}

bool td_recommender_delete_vpa(struct td_recommender *recommender, td_str namespace, td_str name)
{
    struct td_model_vpa *vpa = td_recommender_find_vpa(recommender, namespace, name);
    if (!vpa) {
        return false;
    }
    struct td_namespace *home = vpa->namespace;
    (void)td_map_remove(&recommender->vpas, vpa->key);
    for (size_t i = 0; i < home->vpas.count; i++) {
        if (home->vpas.items[i] == vpa) {
            td_vec_remove(&home->vpas, i);
            break;
        }
    }
    while (vpa->groups.count > 0) {
        relink_group(recommender, vpa->groups.items[0], 0);
    }
    vpa_free(recommender, vpa);
    return true;
}

/* Canonical text of all that decides which pods a VPA has. */
static void link_text(const struct td_vpa_link *link, struct td_buf *out)
{
    td_selector_write(link->target_selector, out);
    (void)td_buf_append(out, link->target_selector->matches_nothing ? TD_STR("\n-") : TD_STR("\n"));
    if (link->pod_selector) {
        td_selector_write(link->pod_selector, out);
    }
    (void)td_buf_append_char(out, '\n');
    (void)td_buf_append(out, link->target);
}

static struct td_model_vpa *vpa_new(struct td_recommender *recommender, const struct td_vpa *object,
                                    td_time now)
{
    struct td_namespace *home = td_namespace_ensure(recommender, object->meta.namespace);
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    td_str key =
        td_object_key_write(TD_OBJECT_KEY(object->meta.namespace, object->meta.name), buffer);
    if (!home || key.len == 0 || recommender->vpas.count >= TD_RECOMMENDER_VPAS_MAX) {
        return NULL;
    }
    struct td_model_vpa *vpa = td_alloc_zero(1, sizeof(*vpa) + key.len);
    char *text = vpa->text;
    vpa->key = td_text_place(&text, key);
    vpa->name = td_str_slice(vpa->key, key.len - object->meta.name.len, key.len);
    vpa->namespace = home;
    vpa->created =
        td_instant_is_zero(object->meta.created) ? td_time_to_instant(now) : object->meta.created;
    vpa->estimator = &td_estimator_upstream;
    int code = td_map_put(&recommender->vpas, vpa->key, vpa);
    bool is_in = namespace_insert(home, vpa);
    td_assert(code == 0 && is_in); /* the count was looked at above */
    return vpa;
}

static void vpa_set_selectors(struct td_recommender *recommender, struct td_model_vpa *vpa,
                              const struct td_vpa_link *link)
{
    td_free(vpa->target_selector);
    td_free(vpa->pod_selector);
    td_intern_unref(recommender->texts, vpa->target);
    vpa->target_selector = clone_selector(link->target_selector);
    vpa->pod_selector = link->pod_selector ? clone_selector(link->pod_selector) : NULL;
    vpa->target = td_intern_ref(recommender->texts, link->target);
}

static void vpa_set_reference(struct td_model_vpa *vpa, const struct td_vpa *object)
{
    if (!td_str_equal(vpa->target_kind, object->target_kind) ||
        !td_str_equal(vpa->target_name, object->target_name)) {
        vpa_free_reference(vpa);
        vpa->target_kind = td_text_copy(object->target_kind);
        vpa->target_name = td_text_copy(object->target_name);
    }
}

/* Does the link select other pods than the VPA did so far? */
static int link_differs(const struct td_model_vpa *vpa, const struct td_vpa_link *link,
                        bool *ret_differs, struct td_error *err)
{
    td_auto_buf wanted = td_buf_capped(TD_JSON_BYTES_MAX);
    td_auto_buf held = td_buf_capped(TD_JSON_BYTES_MAX);
    link_text(link, &wanted);
    if (td_buf_check(&wanted, "selector", err) < 0) {
        return TD_LIMIT;
    }
    if (vpa) {
        const struct td_vpa_link before = {.target_selector = vpa->target_selector,
                                           .pod_selector = vpa->pod_selector,
                                           .target = vpa->target};
        link_text(&before, &held);
    }
    *ret_differs = !vpa || !td_str_equal(td_buf_str(&held), td_buf_str(&wanted));
    return TD_OK;
}

/* Another estimator goes on with what the one before knew, as far as it understands it: the same
 * state at another risk, or the adaptive one within that of track. */
static void change_state(struct td_slot *slot, const struct td_estimator *before,
                         const struct td_estimator *wanted)
{
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    struct td_json *annotations = td_json_new_object(&arena);
    void *made = NULL;
    if (slot->estimator_state) {
        before->save(&arena, slot->estimator_state, annotations);
    }
    if (wanted->state_bytes > 0) {
        made = td_alloc_zero(1, wanted->state_bytes);
        wanted->init(made);
        (void)wanted->load(made, annotations, NULL); /* ours: it is not refused */
    }
    td_free(slot->estimator_state);
    slot->estimator_state = made;
}

static void vpa_set_estimator(struct td_model_vpa *vpa, const struct td_estimator *estimator)
{
    const struct td_estimator *wanted = estimator ? estimator : &td_estimator_upstream;
    if (vpa->estimator == wanted) {
        return;
    }
    for (uint32_t i = 0; i < vpa->slots.count; i++) {
        change_state(vpa->slots.items[i], vpa->estimator, wanted);
    }
    vpa->estimator = wanted;
}

int td_recommender_set_vpa(struct td_recommender *recommender, const struct td_vpa_link *link,
                           td_time now, struct td_error *err)
{
    const struct td_vpa *object = link->vpa;
    struct td_model_vpa *vpa =
        td_recommender_find_vpa(recommender, object->meta.namespace, object->meta.name);
    bool is_changed = false;
    if (link_differs(vpa, link, &is_changed, err) < 0) {
        return TD_LIMIT;
    }
    if (vpa && is_changed && recommender->config.is_upstream_exact) {
        td_recommender_delete_vpa(recommender, object->meta.namespace, object->meta.name);
        vpa = NULL;
    }
    if (!vpa) {
        vpa = vpa_new(recommender, object, now);
    }
    if (!vpa) {
        return td_error_set(err, TD_LIMIT, "VPA '%.*s': too many VPAs or names",
                            TD_STR_ARG(object->meta.name));
    }
    vpa_set_terms(recommender, vpa, &object->policy);
    vpa_set_estimator(vpa, link->estimator);
    vpa->lack = link->lack;
    vpa_set_reference(vpa, object);
    if (is_changed) {
        vpa_set_selectors(recommender, vpa, link);
        relink_namespace(recommender, vpa->namespace, now);
    }
    apply_to_slots(recommender, vpa, &vpa->slots);
    for (uint32_t i = 0; i < vpa->groups.count; i++) {
        struct td_group *group = vpa->groups.items[i];
        apply_to_slots(recommender, vpa, &group->slots);
    }
    return TD_OK;
}

td_str td_recommender_vpa_of(const struct td_recommender *recommender, struct td_arena *arena,
                             const struct td_tracked_pod *pod)
{
    (void)recommender;
    const struct td_model_vpa *owner = td_group_owner(pod->group);
    return owner ? td_arena_copy_str(arena, owner->key) : TD_STR_EMPTY;
}

struct td_vpa_measured td_recommender_measured(const struct td_recommender *recommender,
                                               td_str namespace, td_str name)
{
    struct td_vpa_measured measured = {.newest = TD_TIME_NONE, .is_running = false};
    const struct td_model_vpa *vpa = td_recommender_find_vpa(recommender, namespace, name);
    for (uint32_t i = 0; vpa && i < vpa->slots.count; i++) {
        struct td_instant last = vpa->slots.items[i]->aggregate.last_sample;
        bool is_set = td_instant_since(last, TD_INSTANT_ZERO) != 0;
        if (is_set && td_time_from_instant(last) > measured.newest) {
            measured.newest = td_time_from_instant(last);
        }
    }
    for (uint32_t i = 0; vpa && i < vpa->groups.count && !measured.is_running; i++) {
        const struct td_group *group = vpa->groups.items[i];
        for (uint32_t k = 0; k < group->pods.count && !measured.is_running; k++) {
            const struct td_tracked_pod *pod = group->pods.items[k];
            measured.is_running = pod->phase == TD_POD_RUNNING;
        }
    }
    return measured;
}
