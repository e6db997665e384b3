/*
 * Which VPAs are ours, and what they select. A VPA is linked anew only when something that the link
 * is made of has changed: its object, its target's selector, or why there is none.
 */
#include <string.h>

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

static void vpas_set_text(td_str *text, td_str value)
{
    if (!td_str_equal(*text, value)) {
        td_text_free(*text);
        *text = td_text_copy(value);
    }
}

void recommend_vpa_free(struct recommend_vpa *vpa)
{
    td_text_free(vpa->key);
    td_text_free(vpa->target);
    td_text_free(vpa->config_error);
    td_text_free(vpa->conflict);
    size_t position = 0;
    const struct td_map_entry *entry;
    while ((entry = td_map_next(&vpa->saved, &position))) {
        td_text_free(entry->key);
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
    if (!td_str_equal(name, loop->options.name)) {
        return false;
    }
    for (size_t i = 0; i < loop->options.ignored_count; i++) {
        if (td_str_equal(vpa->meta.namespace, loop->options.ignored_namespaces[i])) {
            return false;
        }
    }
    return true;
}

/* The group that a targetRef means; a kind that everybody knows has one, whatever is written. */
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

static struct recommend_vpa *vpas_add(struct td_recommend_loop *loop, const struct td_vpa *vpa,
                                      td_str key)
{
    struct recommend_vpa *made = td_alloc_zero(1, sizeof(*made));
    made->key = td_text_copy(key);
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
    const struct td_workload_source *source = td_sight_source(loop->options.control.sight);
    const struct td_controller target = {
        .namespace = vpa->meta.namespace,
        .api_version = vpa->target_api_version,
        .kind = vpa->target_kind,
        .name = vpa->target_name,
    };
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

static uint64_t vpas_fingerprint(const struct td_sight_object *object,
                                 const struct td_selector *selector, td_str error)
{
    td_auto_buf buf;
    td_buf_init(&buf, TD_MEASURE_PATH_BYTES_MAX);
    (void)td_buf_append_format(&buf, "%.*s\n%.*s\n", TD_STR_ARG(object->head.version),
                               TD_STR_ARG(error));
    td_selector_write(selector, &buf);
    return td_map_hash(td_buf_str(&buf)) | 1;
}

static void vpas_link(struct td_recommend_loop *loop, struct td_arena *arena,
                      const struct td_sight_object *object, const struct td_vpa *vpa,
                      struct recommend_vpa *entry)
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
    vpas_set_text(&entry->config_error, error);
    if (entry->linked == fingerprint) {
        return;
    }
    td_str group = vpas_target_group(vpa);
    const struct td_vpa_link link = {
        .vpa = vpa,
        .target_selector = &selector,
        .pod_selector = vpa->has_selector ? &vpa->pod_selector : NULL,
        .target = td_arena_format(arena, "%.*s/%.*s/%.*s", TD_STR_ARG(group),
                                  TD_STR_ARG(vpa->target_kind), TD_STR_ARG(vpa->target_name)),
        .estimator = td_estimator_choose(vpa->meta.annotations,
                                         td_estimator_find(loop->options.estimator.len > 0
                                                               ? loop->options.estimator
                                                               : TD_STR("upstream")))
                         .estimator,
    };
    struct td_error err = TD_ERROR_INIT;
    if (td_recommender_set_vpa(loop->model, &link, recommend_now(loop), &err) == TD_OK) {
        entry->linked = fingerprint;
        vpas_set_text(&entry->target,
                      td_arena_format(arena, "%.*s/%.*s", TD_STR_ARG(vpa->meta.namespace),
                                      TD_STR_ARG(link.target)));
    }
}

static void vpas_see(struct td_recommend_loop *loop, struct td_arena *arena,
                     const struct td_sight_object *object)
{
    struct td_json *tree;
    struct td_vpa vpa;
    td_arena_reset(arena);
    if (td_sight_tree(arena, object, &tree, NULL) != TD_OK ||
        td_vpa_decode(arena, tree, &vpa, NULL) != TD_OK || !vpas_is_ours(loop, &vpa)) {
        return;
    }
    (void)td_vpa_close_gates(arena, &loop->options.control.gates, &vpa); /* its status says so */
    td_str key = td_arena_format(arena, "%.*s/%.*s", TD_STR_ARG(vpa.meta.namespace),
                                 TD_STR_ARG(vpa.meta.name));
    struct recommend_vpa *entry = td_map_get(&loop->vpas, key);
    entry = entry ? entry : vpas_add(loop, &vpa, key);
    if (entry) {
        entry->is_seen = true;
        vpas_link(loop, arena, object, &vpa, entry);
    }
}

/* The vpaSpec of an Hvpa is learnt for like a VPA, under a name that no VPA can have. Where its
 * verdicts come from a child, that child is a VPA by itself. An object that cannot be read keeps
 * what is known: it may be mended. */
static void vpas_see_hvpa(struct td_recommend_loop *loop, struct td_arena *arena,
                          const struct td_sight_object *object)
{
    struct td_json *tree;
    struct td_hvpa hvpa;
    td_arena_reset(arena);
    td_str name = recommend_hvpa_name(arena, object->head.name);
    struct recommend_vpa *entry = recommend_find(loop, object->head.namespace, name);
    if (td_sight_tree(arena, object, &tree, NULL) != TD_OK ||
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
    td_str key =
        td_arena_format(arena, "%.*s/%.*s", TD_STR_ARG(object->head.namespace), TD_STR_ARG(name));
    entry = entry ? entry : vpas_add(loop, &hvpa.vpa, key);
    /* A VPA on the same target has its pods first, however young it is: the Hvpa asks it then. */
    hvpa.vpa.meta.created.unix_seconds = VPAS_YOUNGEST_SECONDS;
    if (entry) {
        entry->is_seen = true;
        vpas_link(loop, arena, object, &hvpa.vpa, entry);
    }
}

static void vpas_forget_unseen(struct td_recommend_loop *loop)
{
    size_t position = 0;
    const struct td_map_entry *found;
    while ((found = td_map_next(&loop->vpas, &position))) {
        struct recommend_vpa *vpa = found->value;
        if (vpa->is_seen) {
            vpa->is_seen = false;
            continue;
        }
        size_t slash = td_str_find(vpa->key, '/', 0);
        (void)td_recommender_delete_vpa(loop->model, td_str_slice(vpa->key, 0, slash),
                                        td_str_slice(vpa->key, slash + 1, vpa->key.len));
        (void)td_map_remove(&loop->vpas, vpa->key);
        recommend_vpa_free(vpa);
    }
}

/* ---- Siblings ---- */

/* What changes is written in this pass, also when it writes only what cannot wait. */
static void vpas_set_conflict(struct recommend_vpa *vpa, td_str conflict)
{
    vpa->is_urgent = vpa->is_urgent || !td_str_equal(vpa->conflict, conflict);
    vpas_set_text(&vpa->conflict, conflict);
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
    const struct td_cache *cache = td_sight_cache(loop->options.control.sight, TD_SIGHT_VPAS);
    size_t found = 0;
    for (const struct recommend_vpa *v = first; v; v = v->sibling) {
        size_t slash = td_str_find(v->key, '/', 0);
        const struct td_sight_object *object = td_cache_get(
            cache, td_str_slice(v->key, 0, slash), td_str_slice(v->key, slash + 1, v->key.len));
        struct td_vpa *vpa = td_arena_new(arena, struct td_vpa);
        struct td_json *tree;
        if (object && td_sight_tree(arena, object, &tree, NULL) == TD_OK &&
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
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
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
    size_t position = 0;
    const struct td_map_entry *found;
    td_map_reset(&loop->targets);
    while ((found = td_map_next(&loop->vpas, &position))) {
        struct recommend_vpa *vpa = found->value;
        vpa->sibling = td_map_get(&loop->targets, vpa->target);
        if (vpa->target.len > 0) {
            (void)td_map_put(&loop->targets, vpa->target, vpa); /* no more of them than VPAs */
        }
    }
    position = 0;
    while ((found = td_map_next(&loop->targets, &position))) {
        struct recommend_vpa *first = found->value;
        if (first->sibling) {
            siblings_judge(loop, first);
        } else {
            vpas_set_conflict(first, TD_STR_EMPTY);
        }
    }
}

/* ---- Meeting ---- */

static void meeting_note(struct td_recommend_loop *loop, const struct td_sight_object *object)
{
    td_auto_buf key;
    td_buf_init(&key, TD_CACHE_KEY_BYTES_MAX);
    (void)td_buf_append_format(&key, "%.*s/%.*s", TD_STR_ARG(object->head.namespace),
                               TD_STR_ARG(object->head.name));
    if (!loop->is_running || !loop->has_history || key.is_full ||
        td_map_has(&loop->fresh, td_buf_str(&key))) {
        return; /* the first pass looks at all of them */
    }
    td_str kept = td_text_copy(td_buf_str(&key));
    if (td_map_put(&loop->fresh, kept, loop) != TD_OK) { /* only that it is there */
        td_text_free(kept);
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
    const struct td_sight_object *old = before;
    const struct td_sight_object *new = after;
    if (old->generation != new->generation || !td_str_equal(old->head.uid, new->head.uid)) {
        meeting_note(context, after);
    }
}

void recommend_vpas_init(struct td_recommend_loop *loop)
{
    static const struct td_cache_handler handler = {.added = meeting_added,
                                                    .changed = meeting_changed};
    td_map_init(&loop->fresh, TD_VPAS_MAX);
    td_sight_subscribe(loop->options.control.sight, TD_SIGHT_VPAS, &handler, loop);
}

static void meeting_forget(struct td_recommend_loop *loop)
{
    size_t position = 0;
    const struct td_map_entry *entry;
    while ((entry = td_map_next(&loop->fresh, &position))) {
        td_str key = entry->key;
        (void)td_map_remove(&loop->fresh, key); /* it is there */
        td_text_free(key);
    }
}

void recommend_vpas_done(struct td_recommend_loop *loop)
{
    meeting_forget(loop);
    td_map_done(&loop->fresh);
}

static td_str meeting_target(struct td_arena *arena, const struct td_sight_vpa *vpa)
{
    return td_arena_format(arena, "%.*s/%.*s/%.*s", TD_STR_ARG(vpa->object.head.namespace),
                           TD_STR_ARG(vpa->target_kind), TD_STR_ARG(vpa->target_name));
}

bool recommend_vpas_meet(struct td_recommend_loop *loop)
{
    const struct td_cache *cache = td_sight_cache(loop->options.control.sight, TD_SIGHT_VPAS);
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    struct td_map firsts; /* of each target */
    td_map_init(&firsts, TD_VPAS_MAX);
    bool is_met = false;
    size_t position = 0;
    for (const struct td_sight_vpa *vpa; !is_met && (vpa = td_cache_next(cache, &position));) {
        td_str key = td_arena_format(&arena, "%.*s/%.*s", TD_STR_ARG(vpa->object.head.namespace),
                                     TD_STR_ARG(vpa->object.head.name));
        td_str target = meeting_target(&arena, vpa);
        td_str *first = td_map_get(&firsts, target);
        bool is_fresh = td_map_has(&loop->fresh, key);
        is_met = first && (is_fresh || td_map_has(&loop->fresh, *first));
        if (!first || is_fresh) {
            first = td_arena_new(&arena, td_str);
            *first = key;
            (void)td_map_put(&firsts, target, first); /* no more of them than VPAs */
        }
    }
    td_map_done(&firsts);
    meeting_forget(loop);
    return is_met;
}

/* ---- One after the other ---- */

static void roll_add(struct td_recommend_loop *loop, enum td_sight_kind kind)
{
    const struct td_cache *cache = td_sight_cache(loop->options.control.sight, kind);
    size_t position = 0;
    for (const struct td_sight_object *object;
         cache && (object = td_cache_next(cache, &position));) {
        struct recommend_turn *turn = td_vec_push(&loop->roll);
        if (turn) {
            *turn = (struct recommend_turn){
                .ns = td_arena_copy_str(&loop->roll.arena, object->head.namespace),
                .name = td_arena_copy_str(&loop->roll.arena, object->head.name),
                .is_hvpa = kind == TD_SIGHT_HVPAS,
            };
        }
    }
}

/* By name, because objects come and go between two slices. */
void recommend_roll_vpas(struct td_recommend_loop *loop)
{
    td_vec_reset(&loop->roll);
    td_arena_reset(&loop->roll.arena);
    loop->roll.at = 0;
    roll_add(loop, TD_SIGHT_VPAS);
    if (loop->options.control.hvpa_gate) {
        roll_add(loop, TD_SIGHT_HVPAS);
    }
}

bool recommend_link_next(struct td_recommend_loop *loop)
{
    if (loop->roll.at >= loop->roll.count) {
        vpas_forget_unseen(loop);
        vpas_find_siblings(loop);
        td_vec_reset(&loop->roll);
        td_arena_done(&loop->roll.arena);
        return false;
    }
    const struct recommend_turn *turn = &loop->roll.items[loop->roll.at++];
    const struct td_cache *cache =
        td_sight_cache(loop->options.control.sight, turn->is_hvpa ? TD_SIGHT_HVPAS : TD_SIGHT_VPAS);
    const struct td_sight_object *object = td_cache_get(cache, turn->ns, turn->name);
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    if (object && turn->is_hvpa) {
        vpas_see_hvpa(loop, &arena, object);
    } else if (object) {
        vpas_see(loop, &arena, object);
    }
    return true;
}
