/*
 * What survives a restart. Checkpoints are read once, page by page, into the model; written when
 * what they hold has changed, those that waited longest first; and removed when no VPA of that name
 * is there, also those that another recommender wrote.
 *
 * What is learnt for the vpaSpec of an Hvpa "web" is written as if there were a VPA "web-hvpa": the
 * name that its child has when verdicts come from child objects, so that knowledge outlives a
 * change of sources. A real VPA of that name goes first. Upstream's recommender, should one run
 * beside us, removes such checkpoints as orphans; they are written again with the next sample.
 */

#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/os/log.h"
#include "base/os/loop.h"
#include "base/text.h"
#include "control/recommender/recommend_metrics.h"
#include "control/recommender/recommend_private.h"
#include "kube/client/client.h"
#include "kube/client/verbs.h"
#include "kube/patch/patch_write.h"
#include "kube/paths.h"
#include "kube/selector/shard.h"

#define CHECKPOINT_PLURAL TD_STR("verticalpodautoscalercheckpoints")
#define CHECKPOINT_PAGE "500"

static struct td_api_path checkpoint_path(td_str ns, td_str name)
{
    return (struct td_api_path){
        .group = TD_STR("autoscaling.k8s.io"),
        .version = TD_STR("v1"),
        .namespace = ns,
        .plural = CHECKPOINT_PLURAL,
        .name = name,
    };
}

/* Of a namespace of another shard: an API server that cannot select by shard sends it too. */
static bool checkpoint_is_foreign(const struct td_recommend_loop *loop, td_str ns)
{
    const struct td_shard_range *shard = loop->options.control.shard;
    return shard && !td_shard_range_has(shard, td_shard_hash(ns));
}

#define CHECKPOINT_HVPA_SUFFIX "-hvpa"

/* The Hvpa that a checkpoint of this name may belong to; empty: none. */
static td_str checkpoint_hvpa(td_str vpa_name)
{
    td_str suffix = TD_STR(CHECKPOINT_HVPA_SUFFIX);
    bool is_one = vpa_name.len > suffix.len && td_str_ends_with(vpa_name, suffix);
    return is_one ? td_str_slice(vpa_name, 0, vpa_name.len - suffix.len) : TD_STR_EMPTY;
}

/* ---- Reading ---- */

/* Whose it is, by its name in the model. */
static struct recommend_vpa *checkpoints_owner(struct td_recommend_loop *loop,
                                               struct td_arena *arena, td_str ns,
                                               struct td_checkpoint *checkpoint)
{
    struct recommend_vpa *vpa = recommend_find(loop, ns, checkpoint->vpa_name);
    td_str hvpa = checkpoint_hvpa(checkpoint->vpa_name);
    if (!vpa && hvpa.len > 0) {
        td_str name = recommend_hvpa_name(arena, hvpa);
        vpa = recommend_find(loop, ns, name);
        checkpoint->vpa_name = vpa ? name : checkpoint->vpa_name;
    }
    return vpa;
}

static void checkpoints_load(struct td_recommend_loop *loop, struct td_arena *arena,
                             const struct td_json *object)
{
    struct td_checkpoint checkpoint;
    struct td_error err = TD_ERROR_INIT;
    const struct td_json *metadata = td_json_get(object, TD_STR("metadata"));
    td_str ns = td_json_text(metadata, "namespace");
    int code = td_checkpoint_decode(arena, object, &checkpoint, &err);
    struct recommend_vpa *vpa =
        code == TD_OK ? checkpoints_owner(loop, arena, ns, &checkpoint) : NULL;
    if (code == TD_OK && vpa) {
        code = td_recommender_load(loop->model, ns, &checkpoint,
                                   td_json_get(metadata, TD_STR("annotations")),
                                   recommend_now(loop), &err);
        td_time updated = td_time_from_instant(checkpoint.last_update);
        vpa->remembered = code == TD_OK && updated > vpa->remembered ? updated : vpa->remembered;
        if (code == TD_OK) {
            recommend_history_cover(loop, vpa->key, &checkpoint);
        }
    }
    if (code != TD_OK) {
        td_log_line(loop->options.control.log, TD_LOG_WARN, "checkpoint ignored",
                    TD_LOG_S("name", td_json_text(metadata, "name")),
                    TD_LOG_C("error", err.message));
    }
}

/* A page of the list; the rest of it is asked for with `next`. */
struct checkpoint_page {
    struct td_arena arena;
    const struct td_json *first; /* item, or NULL */
    td_str next;                 /* empty: it was the last */
};

static int page_read(struct checkpoint_page *page, const struct td_client_reply *reply,
                     struct td_error *err)
{
    td_arena_init(&page->arena, TD_TREE_ARENA_BYTES_MAX);
    struct td_json *list;
    *err = reply->err;
    int code = reply->code;
    if (code == TD_OK) {
        code = td_json_parse(&page->arena, reply->body, NULL, &list, err);
    }
    if (code != TD_OK) {
        return code;
    }
    const struct td_json *items = td_json_get(list, TD_STR("items"));
    page->first = td_json_first_item(items);
    page->next = td_json_text(td_json_get(list, TD_STR("metadata")), "continue");
    return TD_OK;
}

static void page_ask(struct td_recommend_loop *loop, td_str next, td_client_done_fn fn)
{
    td_auto_buf path = td_buf_capped(TD_METRICS_PATH_BYTES_MAX);
    const struct td_api_path collection = checkpoint_path(loop->options.namespace, TD_STR_EMPTY);
    (void)td_path_write(&collection, &path,
                        NULL); /* names that the informers have used, and room */
    td_path_add_query(&path, TD_STR("limit"), TD_STR(CHECKPOINT_PAGE));
    if (loop->options.control.shard) {
        td_auto_buf selector = td_buf_capped(TD_METRICS_PATH_BYTES_MAX / 4);
        td_shard_selector_write(
            &(struct td_shard_selector){.ranges = loop->options.control.shard, .count = 1},
            &selector);
        td_path_add_query(&path, TD_STR("shardSelector"), td_buf_str(&selector));
    }
    if (next.len > 0) {
        td_path_add_query(&path, TD_STR("continue"), next);
    }
    const struct td_client_request request = {
        .flow = loop->options.control.flow,
        .method = TD_STR("GET"),
        .path = td_buf_str(&path),
    };
    loop->pass.page = td_client_send(loop->options.control.client, &request, fn, loop);
}

static void checkpoints_failed(struct td_recommend_loop *loop, const struct td_error *err)
{
    loop->is_denied = err->code == TD_DENIED;
    if (loop->pass.kind == RECOMMEND_LOOK) {
        loop->has_history = true; /* a looking pass writes over nothing */
        recommend_wake(loop);
        return;
    }
    /* Going on without it would write poorer checkpoints over good ones. */
    td_log_line(loop->options.control.log, TD_LOG_ERROR, "cannot load checkpoints",
                TD_LOG_C("error", err->message));
    td_timer_set(loop->timer, loop->options.interval);
    recommend_end(loop);
}

static void checkpoints_answered(void *context, const struct td_client_reply *reply)
{
    struct td_recommend_loop *loop = context;
    struct checkpoint_page page;
    struct td_error err;
    loop->pass.page = NULL;
    int code = page_read(&page, reply, &err);
    if (code != TD_OK) {
        checkpoints_failed(loop, &err);
        td_arena_done(&page.arena);
        return;
    }
    loop->is_denied = false;
    for (const struct td_json *item = page.first; item; item = item->next) {
        checkpoints_load(loop, &page.arena, item);
    }
    if (page.next.len > 0) {
        page_ask(loop, page.next, checkpoints_answered);
    } else {
        loop->has_history = true;
        recommend_wake(loop);
    }
    td_arena_done(&page.arena);
}

void recommend_read_checkpoints(struct td_recommend_loop *loop)
{
    page_ask(loop, TD_STR_EMPTY, checkpoints_answered);
}

/* ---- Writing ---- */

struct checkpoint_write {
    struct recommend_write base;
    td_str vpa; /* key; owned */
    td_str container;
    td_str ns;
    td_str name;
    td_str object;      /* the whole, for a first write; owned as all of them */
    td_str annotations; /* the patch for one that has none yet, or empty */
    uint64_t hash;
    bool is_urgent; /* it knows of an OOM that no checkpoint knows of */
};

static void write_free(struct recommend_write *base)
{
    struct checkpoint_write *write = (struct checkpoint_write *)base;
    td_text_free(write->vpa);
    td_text_free(write->container);
    td_text_free(write->ns);
    td_text_free(write->name);
    td_text_free(write->object);
    td_text_free(write->annotations);
    td_free(write);
}

static void write_remember(struct checkpoint_write *write)
{
    struct recommend_vpa *vpa = td_map_get(&write->base.loop->vpas, write->vpa);
    if (!vpa) {
        return;
    }
    vpa->checkpointed = recommend_now(write->base.loop);
    void *hash = (void *)(uintptr_t)write->hash;
    if (td_map_has(&vpa->saved, write->container)) {
        /* The key stays the one that the map owns. */
        for (struct td_map_walk at = {.map = &vpa->saved}; td_map_step(&at);) {
            if (td_str_equal(at.key, write->container)) {
                (void)td_map_put(&vpa->saved, at.key, hash);
                return;
            }
        }
    }
    td_str key = td_text_copy(write->container);
    if (td_map_put(&vpa->saved, key, hash) != TD_OK) {
        td_text_free(key);
    }
}

/* What cannot wait is tried again before the next whole pass. */
static void write_again(const struct checkpoint_write *write)
{
    struct recommend_vpa *vpa = td_map_get(&write->base.loop->vpas, write->vpa);
    if (vpa && write->is_urgent) {
        vpa->is_urgent = true;
        td_timer_set(write->base.loop->urgent, TD_RECOMMEND_URGENT_MS * TD_MILLISECOND);
    }
}

static void write_done(void *context, const struct td_client_reply *reply);

static void write_send(struct checkpoint_write *write, const struct td_client_request *request)
{
    struct td_client_request sent = *request;
    sent.flow = write->base.loop->options.control.flow;
    sent.is_idempotent = true;
    write->base.call =
        td_client_send(write->base.loop->options.control.client, &sent, write_done, write);
}

/* There is none yet: the whole object is made instead. */
static bool write_create(struct checkpoint_write *write)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    const struct td_api_path path = checkpoint_path(write->ns, TD_STR_EMPTY);
    struct td_client_request request;
    if (write->object.len == 0 ||
        td_verb_create(&arena, &path, write->object, NULL, &request, NULL) != TD_OK) {
        return false;
    }
    write_send(write, &request);
    td_text_set(&write->object, TD_STR_EMPTY); /* once */
    return true;
}

/* A key cannot be added where there is no map. */
static bool write_annotations(struct checkpoint_write *write)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    const struct td_api_path path = checkpoint_path(write->ns, write->name);
    struct td_client_request request;
    if (write->annotations.len == 0 ||
        td_verb_patch(&arena, &path, TD_PATCH_JSON, write->annotations, NULL, &request, NULL) !=
            TD_OK) {
        return false;
    }
    write_send(write, &request);
    td_text_set(&write->annotations, TD_STR_EMPTY); /* once */
    return true;
}

static void write_done(void *context, const struct td_client_reply *reply)
{
    struct checkpoint_write *write = context;
    struct td_recommend_loop *loop = write->base.loop;
    if ((reply->code == TD_NOT_FOUND && write_create(write)) ||
        (reply->code == TD_INVALID && write_annotations(write))) {
        return;
    }
    bool is_written = reply->code == TD_OK || reply->code == TD_EXISTS;
    recommend_metrics_checkpoint(loop, !is_written);
    if (is_written) {
        write_remember(write);
    } else {
        td_log_line(loop->options.control.log, TD_LOG_WARN, "cannot write checkpoint",
                    TD_LOG_S("name", write->name), TD_LOG_C("error", reply->err.message));
        write_again(write);
    }
    recommend_write_end(&write->base);
    recommend_wake(loop);
}

static bool checkpoint_has_annotations(const struct td_stored_checkpoint *stored)
{
    return td_json_is(stored->annotations, TD_JSON_TYPE_OBJECT) && stored->annotations->count > 0;
}

/* The status in whole, and our annotations beside whatever others are there, or as the first. */
static struct td_json *checkpoint_patch(struct td_arena *arena,
                                        const struct td_stored_checkpoint *stored, bool is_first)
{
    struct td_json *patch = td_json_new_array(arena);
    td_patch_append(arena, patch, "replace", TD_STR("/status"),
                    td_checkpoint_encode_status(arena, &stored->checkpoint));
    if (!checkpoint_has_annotations(stored)) {
        return patch;
    }
    if (is_first) {
        td_patch_append(arena, patch, "add", TD_STR("/metadata/annotations"),
                        td_json_copy(arena, stored->annotations, false));
        return patch;
    }
    for (const struct td_json *m = td_json_first_member(stored->annotations); m; m = m->next) {
        td_str path = td_arena_format(arena, "/metadata/annotations/%.*s",
                                      TD_STR_ARG(td_patch_part(arena, m->key)));
        td_patch_append(arena, patch, "add", path, td_json_copy(arena, m, false));
    }
    return patch;
}

/* Of all that matters: the time of the writing does not. */
static uint64_t checkpoint_hash(struct td_arena *arena, const struct td_stored_checkpoint *stored)
{
    struct td_checkpoint timeless = stored->checkpoint;
    timeless.last_update = TD_INSTANT_ZERO;
    td_str status = td_json_line(arena, td_checkpoint_encode_status(arena, &timeless));
    td_str annotations =
        stored->annotations ? td_json_line(arena, stored->annotations) : TD_STR_EMPTY;
    return (td_map_hash(status) * 31 + td_map_hash(annotations)) | 1;
}

static void checkpoint_write_one(struct td_recommend_loop *loop, struct td_arena *arena,
                                 struct recommend_vpa *vpa, td_str ns,
                                 struct td_stored_checkpoint *stored)
{
    uint64_t hash = checkpoint_hash(arena, stored);
    if ((uintptr_t)td_map_get(&vpa->saved, stored->checkpoint.container_name) == hash) {
        return;
    }
    struct td_json *whole = td_checkpoint_encode(arena, ns, &stored->checkpoint);
    struct td_json *metadata = td_json_get(whole, TD_STR("metadata"));
    bool has_annotations = checkpoint_has_annotations(stored);
    if (has_annotations) {
        td_json_set(arena, metadata, TD_STR("annotations"),
                    td_json_copy(arena, stored->annotations, false));
    }
    td_str name = td_json_text(metadata, "name");
    const struct td_api_path path = checkpoint_path(ns, name);
    td_str patch = td_json_line(arena, checkpoint_patch(arena, stored, false));
    td_str first =
        has_annotations ? td_json_line(arena, checkpoint_patch(arena, stored, true)) : TD_STR_EMPTY;
    struct td_client_request request;
    if (td_verb_patch(arena, &path, TD_PATCH_JSON, patch, NULL, &request, NULL) != TD_OK) {
        return;
    }
    struct checkpoint_write *write = td_alloc_zero(1, sizeof(*write));
    *write = (struct checkpoint_write){
        .vpa = td_text_copy(vpa->key),
        .container = td_text_copy(stored->checkpoint.container_name),
        .ns = td_text_copy(ns),
        .name = td_text_copy(name),
        .object = td_text_copy(td_json_line(arena, whole)),
        .annotations = td_text_copy(first),
        .hash = hash,
        .is_urgent = vpa->is_urgent,
    };
    recommend_write_begin(loop, &write->base, write_free);
    write_send(write, &request);
}

/* From the name in the model to that of the object; false: a VPA has it. */
static bool write_rename(struct td_recommend_loop *loop, struct td_arena *arena, td_str ns,
                         struct td_checkpoint *checkpoint)
{
    td_str prefix = TD_STR(RECOMMEND_HVPA_PREFIX);
    if (!td_str_starts_with(checkpoint->vpa_name, prefix)) {
        return true;
    }
    td_str hvpa = td_str_slice(checkpoint->vpa_name, prefix.len, checkpoint->vpa_name.len);
    checkpoint->vpa_name = td_arena_format(arena, "%.*s" CHECKPOINT_HVPA_SUFFIX, TD_STR_ARG(hvpa));
    const struct td_cache *vpas =
        td_informers_cache(loop->options.control.informers, TD_INFORMER_VPAS);
    return !td_cache_get(vpas, ns, checkpoint->vpa_name);
}

void recommend_write_checkpoints(struct td_recommend_loop *loop, struct recommend_vpa *vpa)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    td_str ns = vpa->of.namespace;
    struct td_stored_checkpoint *stored;
    size_t count = 0;
    if (td_recommender_store(loop->model, &arena, ns, vpa->of.name, recommend_now(loop), &stored,
                             &count, NULL) != TD_OK) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        if (write_rename(loop, &arena, ns, &stored[i].checkpoint)) {
            checkpoint_write_one(loop, &arena, vpa, ns, &stored[i]);
        }
    }
}

/* ---- Removing ---- */

static void collect_done(void *context, const struct td_client_reply *reply)
{
    struct td_recommend_loop *loop = context;
    if (reply->code != TD_OK && reply->code != TD_NOT_FOUND && reply->code != TD_CONFLICT) {
        td_log_line(loop->options.control.log, TD_LOG_WARN, "cannot delete checkpoint",
                    TD_LOG_C("error", reply->err.message));
    }
    loop->pass.writes--;
    recommend_wake(loop);
}

static void collect_one(struct td_recommend_loop *loop, struct td_arena *arena,
                        const struct td_json *object)
{
    const struct td_json *metadata = td_json_get(object, TD_STR("metadata"));
    td_str ns = td_json_text(metadata, "namespace");
    td_str vpa = td_json_text(td_json_get(object, TD_STR("spec")), "vpaObjectName");
    const struct td_cache *vpas =
        td_informers_cache(loop->options.control.informers, TD_INFORMER_VPAS);
    const struct td_cache *hvpas =
        td_informers_cache(loop->options.control.informers, TD_INFORMER_HVPAS);
    td_str hvpa = checkpoint_hvpa(vpa);
    /* With the gate off Hvpas are not looked at: what was learnt for them is kept. */
    bool is_hvpas = hvpa.len > 0 &&
                    (!loop->options.control.hvpa_gate || (hvpas && td_cache_get(hvpas, ns, hvpa)));
    /* Another recommender may look after the namespaces that this one ignores, another replica does
     * after those of other shards, whose VPAs are not known here. */
    if (vpa.len == 0 || checkpoint_is_foreign(loop, ns) || is_hvpas ||
        td_cache_get(vpas, ns, vpa) ||
        td_str_is_among(ns, loop->options.ignored_namespaces, loop->options.ignored_count)) {
        return;
    }
    struct td_delete_options options = TD_DELETE_OPTIONS_INIT;
    options.uid = td_json_text(metadata, "uid");
    const struct td_api_path path = checkpoint_path(ns, td_json_text(metadata, "name"));
    struct td_client_request request;
    if (td_verb_delete(arena, &path, &options, &request, NULL) == TD_OK) {
        request.flow = loop->options.control.flow;
        loop->pass.writes++;
        (void)td_client_send(loop->options.control.client, &request, collect_done, loop);
    }
}

static void collect_answered(void *context, const struct td_client_reply *reply)
{
    struct td_recommend_loop *loop = context;
    struct checkpoint_page page;
    struct td_error err;
    loop->pass.page = NULL;
    if (page_read(&page, reply, &err) != TD_OK) {
        td_log_line(loop->options.control.log, TD_LOG_WARN, "cannot list checkpoints",
                    TD_LOG_C("error", err.message));
        td_arena_done(&page.arena);
        recommend_wake(loop);
        return;
    }
    for (const struct td_json *item = page.first; item; item = item->next) {
        collect_one(loop, &page.arena, item);
    }
    if (page.next.len > 0 && loop->is_running) {
        page_ask(loop, page.next, collect_answered);
    } else {
        recommend_wake(loop);
    }
    td_arena_done(&page.arena);
}

void recommend_collect_checkpoints(struct td_recommend_loop *loop)
{
    page_ask(loop, TD_STR_EMPTY, collect_answered);
}
