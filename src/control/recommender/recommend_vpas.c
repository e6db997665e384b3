/*
 * Which VPAs are ours, and what they select. A VPA is linked anew only when something that the link
 * is made of has changed: its object, its target's selector, or why there is none.
 */

#include "api/gates.h"
#include "api/hvpa/hvpa.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/os/loop.h"
#include "base/text.h"
#include "control/recommender/recommend_private.h"
#include "decide/vertical/estimator/estimator.h"
#include "decide/vertical/siblings.h"

#define VPAS_YOUNGEST_SECONDS INT64_C(253402300799) /* the last that RFC 3339 can write */

void recommend_vpa_free(struct recommend_vpa *vpa)
{
    td_text_free(vpa->key);
    td_text_free(vpa->target);
    td_text_free(vpa->config_error);
    td_text_free(vpa->conflict);
    for (struct td_map_walk at = {.map = &vpa->saved}; td_map_step(&at);) {
        td_text_free(at.key);
    }
    td_map_done(&vpa->saved);
    td_free(vpa);
}

td_str recommend_hvpa_name(struct td_arena *arena, td_str hvpa)
{
    return td_arena_format(arena, RECOMMEND_HVPA_PREFIX "%.*s", TD_STR_ARG(hvpa));
}

static bool vpas_is_ours(const struct td_recommend_loop *loop, const struct td_vpa *vpa)
{
    td_str name = vpa->recommender.len > 0 ? vpa->recommender : TD_STR("default");
    return td_str_equal(name, loop->options.name) &&
           !td_str_is_among(vpa->meta.namespace, loop->options.ignored_namespaces,
                            loop->options.ignored_count);
}

/* The group that a targetRef means; the built-in kinds have theirs also where none is written. */
static td_str vpas_target_group(const struct td_vpa *vpa)
{
    size_t slash = td_str_find(vpa->target_api_version, '/', 0);
    if (slash < vpa->target_api_version.len) {
        return td_str_slice(vpa->target_api_version, 0, slash);
    }
    switch (td_workload_kind_of(vpa->target_kind)) {
    case TD_WORKLOAD_CRON_JOB:
    case TD_WORKLOAD_JOB:
        return TD_STR("batch");
    case TD_WORKLOAD_DAEMON_SET:
    case TD_WORKLOAD_DEPLOYMENT:
    case TD_WORKLOAD_REPLICA_SET:
    case TD_WORKLOAD_STATEFUL_SET:
        return TD_STR("apps");
    default:
        return TD_STR_EMPTY;
    }
}

static struct recommend_vpa *vpas_add(struct td_recommend_loop *loop, const struct td_vpa *vpa)
{
    struct recommend_vpa *made = td_alloc_zero(1, sizeof(*made));
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    made->key = td_text_copy(
        td_object_key_write(TD_OBJECT_KEY(vpa->meta.namespace, vpa->meta.name), buffer));
    made->of = td_object_key_read(made->key);
    made->target = td_text_copy(TD_STR_EMPTY);
    made->config_error = td_text_copy(TD_STR_EMPTY);
    made->conflict = td_text_copy(TD_STR_EMPTY);
    made->created = td_time_from_instant(vpa->meta.created);
    td_map_init(&made->saved, TD_RECOMMEND_CONTAINERS_MAX);
    if (td_map_put(&loop->vpas, made->key, made) != TD_OK) {
        recommend_vpa_free(made);
        return NULL;
    }
    return made;
}

/* What its pods are selected by. TD_BUSY: not known yet. Any other failure is said in the VPA's
 * condition, and nothing is selected. */
static int vpas_resolve(struct td_recommend_loop *loop, struct td_arena *arena,
                        const struct td_vpa *vpa, struct td_selector *ret, td_str *ret_error)
{
    const struct td_workload_source *source = td_informers_source(loop->options.control.informers);
    const struct td_controller target = td_match_target(vpa);
    struct td_error err = TD_ERROR_INIT;
    if (!vpa->has_target) {
        *ret_error = TD_STR("Cannot read targetRef. Reason: targetRef not defined. If this is a "
                            "v1beta1 object, switch to v1");
        return TD_INVALID;
    }
    int code = td_target_selector(arena, source, &target, ret, &err);
    if (code != TD_OK) {
        *ret_error = td_arena_format(arena, "Cannot read targetRef. Reason: %s", err.message);
        return code;
    }
    code = td_target_check(source, &target, &err);
    if (code != TD_OK) {
        *ret_error = td_arena_copy_str(arena, td_str_from(err.message));
    }
    return code;
}

static uint64_t vpas_fingerprint(const struct td_informer_object *object,
                                 const struct td_selector *selector, td_str error)
{
    td_auto_buf buf = td_buf_capped(TD_METRICS_PATH_BYTES_MAX);
    (void)td_buf_append_format(&buf, "%.*s\n%.*s\n", TD_STR_ARG(object->head.version),
                               TD_STR_ARG(error));
    td_selector_write(selector, &buf);
    return td_map_hash(td_buf_str(&buf)) | 1;
}

struct td_estimator_choice recommend_choose(const struct td_recommend_loop *loop,
                                            const struct td_json *annotations)
{
    td_str usual = loop->options.estimator.len > 0 ? loop->options.estimator : TD_STR("upstream");
    const struct td_json *read = loop->options.is_estimator_forced ? NULL : annotations;
    return td_estimator_choose(read, td_estimator_find(usual));
}

/* Pods are looked at again for what this estimator asks of them. */
static void vpas_look_again(struct td_recommend_loop *loop, const struct td_vpa_link *link)
{
    const struct td_informer_pod *pod = NULL;
    while (link->estimator->set_terms &&
           (pod = td_informers_next_pod(loop->options.control.informers, link->vpa->meta.namespace,
                                        pod))) {
        recommend_look_at(loop, pod);
    }
}

static void vpas_link(struct td_recommend_loop *loop, struct td_arena *arena,
                      const struct td_informer_object *object, const struct td_vpa *vpa,
                      enum td_resize_lack lack, struct recommend_vpa *entry)
{
    struct td_selector selector = {.matches_nothing = true};
    td_str error = TD_STR_EMPTY;
    int code = vpas_resolve(loop, arena, vpa, &selector, &error);
    if (code == TD_BUSY) {
        return; /* as it was, and tried again in the next pass */
    }
    if (code != TD_OK) {
        selector = (struct td_selector){.matches_nothing = true};
    }
    uint64_t fingerprint = vpas_fingerprint(object, &selector, error);
    td_text_set(&entry->config_error, error);
    if (entry->linked == fingerprint) {
        return;
    }
    td_str group = vpas_target_group(vpa);
    const struct td_vpa_link link = {
        .vpa = vpa,
        .target_selector = &selector,
        .pod_selector = vpa->has_selector ? &vpa->pod_selector : NULL,
        .target = td_target_key(arena, group, vpa->target_kind, vpa->target_name),
        .estimator = recommend_choose(loop, vpa->meta.annotations).estimator,
        .lack = loop->options.is_estimator_forced ? TD_RESIZE_POSSIBLE : lack,
    };
    struct td_error err = TD_ERROR_INIT;
    if (td_recommender_set_vpa(loop->model, &link, recommend_now(loop), &err) == TD_OK) {
        entry->linked = fingerprint;
        vpas_look_again(loop, &link);
        td_text_set(&entry->target,
                    td_object_key_text(arena, TD_OBJECT_KEY(vpa->meta.namespace, link.target)));
    }
}

/* An Hvpa resizes the pods of its child, whose mode is Off. */
static bool vpas_is_child(const struct td_vpa *vpa)
{
    const struct td_owner_reference *owner = td_meta_controller(&vpa->meta);
    return owner && td_str_equal(owner->kind, TD_STR("Hvpa"));
}

static void vpas_see(struct td_recommend_loop *loop, struct td_arena *arena,
                     const struct td_informer_object *object)
{
    struct td_json *tree;
    struct td_vpa vpa;
    td_arena_reset(arena);
    if (td_informers_tree(arena, object, &tree, NULL) != TD_OK ||
        td_vpa_decode(arena, tree, &vpa, NULL) != TD_OK || !vpas_is_ours(loop, &vpa)) {
        return;
    }
    (void)td_vpa_close_gates(arena, &loop->options.control.gates, &vpa); /* its status says so */
    struct recommend_vpa *entry = recommend_find(loop, vpa.meta.namespace, vpa.meta.name);
    entry = entry ? entry : vpas_add(loop, &vpa);
    if (entry) {
        entry->is_seen = true;
        bool is_in_place = vpa.mode == TD_VPA_IN_PLACE_OR_RECREATE ||
                           (vpa.mode == TD_VPA_IN_PLACE && loop->options.control.gates.in_place);
        vpas_link(loop, arena, object, &vpa,
                  is_in_place || vpas_is_child(&vpa) ? TD_RESIZE_POSSIBLE : TD_RESIZE_LACKS_MODE,
                  entry);
    }
}

/* The vpaSpec of an Hvpa is learnt for like a VPA, under a name that no VPA can have. Where its
 * verdicts come from a child, that child is a VPA by itself. An object that cannot be read keeps
 * what is known: it may be mended. */
static void vpas_see_hvpa(struct td_recommend_loop *loop, struct td_arena *arena,
                          const struct td_informer_object *object)
{
    struct td_json *tree;
    struct td_hvpa hvpa;
    td_arena_reset(arena);
    td_str name = recommend_hvpa_name(arena, object->head.name);
    struct recommend_vpa *entry = recommend_find(loop, object->head.namespace, name);
    if (td_informers_tree(arena, object, &tree, NULL) != TD_OK ||
        td_hvpa_decode(arena, tree, &hvpa, NULL, NULL) != TD_OK) {
        if (entry) {
            entry->is_seen = true;
        }
        return;
    }
    (void)td_vpa_close_gates(arena, &loop->options.control.gates, &hvpa.vpa); /* likewise */
    hvpa.vpa.meta.name = name;
    if (!hvpa.has_vpa || hvpa.sources != TD_HVPA_INTERNAL || !vpas_is_ours(loop, &hvpa.vpa)) {
        return;
    }
    entry = entry ? entry : vpas_add(loop, &hvpa.vpa);
    /* A VPA on the same target has its pods first, however young it is: the Hvpa asks it then. */
    hvpa.vpa.meta.created.unix_seconds = VPAS_YOUNGEST_SECONDS;
    if (entry) {
        entry->is_seen = true;
        vpas_link(loop, arena, object, &hvpa.vpa,
                  hvpa.actuation == TD_HVPA_ACTUATE_PODS ? TD_RESIZE_POSSIBLE
                                                         : TD_RESIZE_LACKS_MODE,
                  entry);
    }
}

static void vpas_forget_unseen(struct td_recommend_loop *loop)
{
    for (struct td_map_walk at = {.map = &loop->vpas}; td_map_step(&at);) {
        struct recommend_vpa *vpa = at.value;
        if (vpa->is_seen) {
            vpa->is_seen = false;
            continue;
        }
        (void)td_recommender_delete_vpa(loop->model, vpa->of.namespace, vpa->of.name);
        (void)td_map_remove(&loop->vpas, vpa->key);
        recommend_vpa_free(vpa);
    }
}

/* ---- Siblings ---- */

/* What changes is written in this pass, also when it writes only what cannot wait. */
static void vpas_set_conflict(struct recommend_vpa *vpa, td_str conflict)
{
    vpa->is_urgent = vpa->is_urgent || !td_str_equal(vpa->conflict, conflict);
    td_text_set(&vpa->conflict, conflict);
}

/* All VPAs of one target, decoded. */
static size_t siblings_decode(struct td_recommend_loop *loop, struct td_arena *arena,
                              const struct recommend_vpa *first, const struct td_vpa ***ret)
{
    size_t count = 0;
    for (const struct recommend_vpa *v = first; v; v = v->sibling) {
        count++;
    }
    const struct td_vpa **vpas = td_arena_array(arena, const struct td_vpa *, count);
    const struct td_cache *cache =
        td_informers_cache(loop->options.control.informers, TD_INFORMER_VPAS);
    size_t found = 0;
    for (const struct recommend_vpa *v = first; v; v = v->sibling) {
        const struct td_informer_object *object = td_cache_get(cache, v->of.namespace, v->of.name);
        struct td_vpa *vpa = td_arena_new(arena, struct td_vpa);
        struct td_json *tree;
        if (object && td_informers_tree(arena, object, &tree, NULL) == TD_OK &&
            td_vpa_decode(arena, tree, vpa, NULL) == TD_OK) {
            (void)td_vpa_close_gates(arena, &loop->options.control.gates, vpa); /* as above */
            vpas[found++] = vpa;
        }
    }
    *ret = vpas;
    return found;
}

static void siblings_judge(struct td_recommend_loop *loop, struct recommend_vpa *first)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    const struct td_vpa **vpas;
    size_t count = siblings_decode(loop, &arena, first, &vpas);
    for (size_t i = 0; i < count; i++) {
        struct td_sibling_conflict conflict;
        struct recommend_vpa *entry =
            recommend_find(loop, vpas[i]->meta.namespace, vpas[i]->meta.name);
        if (entry) {
            bool has_elder = td_vpa_find_elder(&arena, vpas[i], vpas, count, &conflict);
            vpas_set_conflict(entry, has_elder ? conflict.message : TD_STR_EMPTY);
        }
    }
}

/* Who shares a target with whom; those alone have no conflict. */
static void vpas_find_siblings(struct td_recommend_loop *loop)
{
    td_map_reset(&loop->targets);
    for (struct td_map_walk at = {.map = &loop->vpas}; td_map_step(&at);) {
        struct recommend_vpa *vpa = at.value;
        vpa->sibling = td_map_get(&loop->targets, vpa->target);
        if (vpa->target.len > 0) {
            (void)td_map_put(&loop->targets, vpa->target, vpa); /* no more of them than VPAs */
        }
    }
    for (struct td_map_walk at = {.map = &loop->targets}; td_map_step(&at);) {
        struct recommend_vpa *first = at.value;
        if (first->sibling) {
            siblings_judge(loop, first);
        } else {
            vpas_set_conflict(first, TD_STR_EMPTY);
        }
    }
}

/* ---- Meeting ---- */

static void meeting_note(struct td_recommend_loop *loop, const struct td_informer_object *object)
{
    if (!loop->is_running || !loop->has_history) {
        return; /* the first pass looks at all of them */
    }
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    td_str key =
        td_object_key_write(TD_OBJECT_KEY(object->head.namespace, object->head.name), buffer);
    if (td_string_set_add(&loop->fresh, key) == TD_EXISTS) {
        return;
    }
    if (!td_timer_is_set(loop->meeting)) {
        td_timer_set(loop->meeting, TD_RECOMMEND_MEETING_MS * TD_MILLISECOND);
    }
}

static void meeting_added(void *context, const void *object)
{
    meeting_note(context, object);
}

static void meeting_changed(void *context, const void *before, const void *after)
{
    const struct td_informer_object *old = before;
    const struct td_informer_object *new = after;
    if (old->generation != new->generation || !td_str_equal(old->head.uid, new->head.uid)) {
        meeting_note(context, after);
    }
}

void recommend_vpas_init(struct td_recommend_loop *loop)
{
    static const struct td_cache_handler handler = {.added = meeting_added,
                                                    .changed = meeting_changed};
    td_string_set_init(&loop->fresh, TD_VPAS_MAX);
    td_informers_subscribe(loop->options.control.informers, TD_INFORMER_VPAS, &handler, loop);
}

static td_str meeting_target(struct td_arena *arena, const struct td_informer_vpa *vpa)
{
    return td_arena_format(arena, "%.*s/%.*s/%.*s", TD_STR_ARG(vpa->object.head.namespace),
                           TD_STR_ARG(vpa->target_kind), TD_STR_ARG(vpa->target_name));
}

bool recommend_vpas_meet(struct td_recommend_loop *loop)
{
    const struct td_cache *cache =
        td_informers_cache(loop->options.control.informers, TD_INFORMER_VPAS);
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_map firsts; /* of each target */
    td_map_init(&firsts, TD_VPAS_MAX);
    bool is_met = false;
    size_t position = 0;
    for (const struct td_informer_vpa *vpa; !is_met && (vpa = td_cache_next(cache, &position));) {
        td_str key = td_object_key_text(
            &arena, TD_OBJECT_KEY(vpa->object.head.namespace, vpa->object.head.name));
        td_str target = meeting_target(&arena, vpa);
        td_str *first = td_map_get(&firsts, target);
        bool is_fresh = td_string_set_has(&loop->fresh, key);
        is_met = first && (is_fresh || td_string_set_has(&loop->fresh, *first));
        if (!first || is_fresh) {
            first = td_arena_new(&arena, td_str);
            *first = key;
            (void)td_map_put(&firsts, target, first); /* no more of them than VPAs */
        }
    }
    td_map_done(&firsts);
    td_string_set_reset(&loop->fresh);
    return is_met;
}

/* ---- One after the other ---- */

static void roll_add(struct td_recommend_loop *loop, enum td_informer_kind kind)
{
    const struct td_cache *cache = td_informers_cache(loop->options.control.informers, kind);
    size_t position = 0;
    for (const struct td_informer_object *object;
         cache && (object = td_cache_next(cache, &position));) {
        struct recommend_turn *turn = td_vec_push(&loop->pass.roll);
        if (turn) {
            *turn = (struct recommend_turn){
                .ns = td_arena_copy_str(&loop->pass.roll.arena, object->head.namespace),
                .name = td_arena_copy_str(&loop->pass.roll.arena, object->head.name),
                .is_hvpa = kind == TD_INFORMER_HVPAS,
            };
        }
    }
}

/* By name, because objects come and go between two slices. */
void recommend_roll_vpas(struct td_recommend_loop *loop)
{
    td_vec_reset(&loop->pass.roll);
    td_arena_reset(&loop->pass.roll.arena);
    loop->pass.roll.at = 0;
    roll_add(loop, TD_INFORMER_VPAS);
    if (loop->options.control.hvpa_gate) {
        roll_add(loop, TD_INFORMER_HVPAS);
    }
}

bool recommend_link_next(struct td_recommend_loop *loop)
{
    if (loop->pass.roll.at >= loop->pass.roll.count) {
        vpas_forget_unseen(loop);
        vpas_find_siblings(loop);
        td_vec_reset(&loop->pass.roll);
        td_arena_done(&loop->pass.roll.arena);
        return false;
    }
    const struct recommend_turn *turn = &loop->pass.roll.items[loop->pass.roll.at++];
    const struct td_cache *cache = td_informers_cache(
        loop->options.control.informers, turn->is_hvpa ? TD_INFORMER_HVPAS : TD_INFORMER_VPAS);
    const struct td_informer_object *object = td_cache_get(cache, turn->ns, turn->name);
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    if (object && turn->is_hvpa) {
        vpas_see_hvpa(loop, &arena, object);
    } else if (object) {
        vpas_see(loop, &arena, object);
    }
    return true;
}
