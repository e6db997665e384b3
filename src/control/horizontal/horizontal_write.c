/*
 * What follows from a decision: the scale, then the status, then events and counts.
 */
#include "base/error.h"
#include "base/json/json_reader.h"
#include "base/limits.h"
#include "base/os/log.h"
#include "base/os/loop.h"
#include "control/horizontal/horizontal_private.h"
#include "kube/client/client.h"
#include "kube/client/client_reply.h"
#include "kube/client/verbs.h"

#define WRITE_TRIES_MAX 5                 /* of the scale, when others are faster */
#define WRITE_PAUSE (10 * TD_MILLISECOND) /* between two of them ... */
#define WRITE_JITTER (TD_MILLISECOND)     /* ... and up to so much longer */

static const struct td_write_options write_options = {.field_manager =
                                                          TD_STR_INIT("tandem-horizontal")};

static int write_put(struct horizontal_sync *sync, const struct td_api_path *path,
                     const struct td_json *object,
                     void (*done)(void *context, const struct td_client_reply *reply),
                     struct td_error *err)
{
    td_str body = td_json_line(&sync->arena, object);
    struct td_client_request request;
    int code = td_verb_update(&sync->arena, path, body, &write_options, &request, err);
    if (code == TD_OK) {
        horizontal_send(sync, &request, done);
    }
    return code;
}

/* ---- The end ---- */

static void write_end(struct horizontal_sync *sync, bool is_written, td_str error)
{
    struct horizontal_item *item = sync->item;
    td_hpa_end(&sync->decided.pass, is_written, error);
    horizontal_look_allow(sync);
    if (sync->decided.pass.has_error) {
        td_log_line(sync->loop->options.control.log, TD_LOG_WARN, "HPA reconcile failed",
                    TD_LOG_S("namespace", sync->seen.hpa.meta.namespace),
                    TD_LOG_S("hpa", sync->seen.hpa.meta.name),
                    TD_LOG_S("error", sync->decided.pass.error));
    }
    for (size_t i = 0; !item->is_gone && i < sync->decided.pass.events.count; i++) {
        horizontal_record(sync, &sync->decided.pass.events.items[i]);
    }
    horizontal_metrics_sync(sync);
    horizontal_sync_free(sync);
    horizontal_item_done(item);
}

/* ---- The status ---- */

/* To the value of `key` in the object that comes next; false: there is none. */
static bool write_find(struct td_json_reader *reader, td_str key)
{
    if (td_json_reader_next(reader) != TD_JSON_BEGIN_OBJECT) {
        return false;
    }
    while (td_json_reader_next(reader) == TD_JSON_KEY) {
        if (td_json_reader_key_is(reader, key)) {
            return true;
        }
        if (td_json_reader_skip(reader) != TD_OK) {
            return false;
        }
    }
    return false;
}

/* The version is near the begin of a large answer, and numbers have no escapes. */
static void write_remember(struct horizontal_sync *sync, td_str body)
{
    struct td_json_reader reader;
    int64_t version;
    td_json_reader_init(&reader, body, TD_JSON_DEPTH_MAX);
    bool is_read =
        write_find(&reader, TD_STR("metadata")) && write_find(&reader, TD_STR("resourceVersion")) &&
        td_json_reader_next(&reader) == TD_JSON_STRING && td_str_to_int64(reader.text, &version);
    sync->item->written_version = is_read ? version : 0;
}

static void write_status_answered(void *context, const struct td_client_reply *reply)
{
    struct horizontal_sync *sync = context;
    sync->call = NULL;
    bool is_written = reply->code == TD_OK;
    td_str error = TD_STR_EMPTY;
    if (is_written) {
        write_remember(sync, reply->body);
    } else {
        error = td_reply_message(&sync->arena, reply);
    }
    write_end(sync, is_written, error);
}

static void write_status(struct horizontal_sync *sync)
{
    struct td_hpa_pass *pass = &sync->decided.pass;
    struct td_arena *arena = &sync->arena;
    struct td_error err = TD_ERROR_INIT;
    td_hpa_finish(pass, horizontal_now(sync->loop));
    if (!pass->needs_write) {
        write_end(sync, true, TD_STR_EMPTY);
        return;
    }
    td_json_set(arena, sync->seen.tree, TD_STR("status"), pass->updated);
    const struct td_api_path path = {
        .group = td_group_version_parse(horizontal_api_version(sync->group)).group,
        .version = TD_STR("v2"),
        .namespace = sync->seen.hpa.meta.namespace,
        .plural = TD_STR("horizontalpodautoscalers"),
        .name = sync->seen.hpa.meta.name,
        .subresource = TD_STR("status"),
    };
    if (write_put(sync, &path, sync->seen.tree, write_status_answered, &err) != TD_OK) {
        write_end(sync, false, td_arena_copy_str(arena, td_str_from(err.message)));
    }
}

/* ---- The scale ---- */

static void write_rescaled(struct horizontal_sync *sync, bool is_done, td_str error)
{
    td_hpa_rescaled(&sync->decided.pass, is_done, error, horizontal_now(sync->loop));
    write_status(sync);
}

static void write_scale(struct horizontal_sync *sync);

static void write_again(struct td_timer *timer, void *context)
{
    (void)timer;
    write_scale(context);
}

static void write_scale_reread(void *context, const struct td_client_reply *reply)
{
    struct horizontal_sync *sync = context;
    struct td_horizontal_loop *loop = sync->loop;
    sync->call = NULL;
    td_str error;
    if (horizontal_read_scale(sync, reply, &error) != TD_OK) {
        write_rescaled(sync, false, error);
        return;
    }
    loop->random = loop->random * UINT64_C(6364136223846793005) + 1;
    if (!sync->timer) {
        sync->timer = td_timer_new(loop->options.control.loop, write_again, sync);
    }
    td_timer_set(sync->timer, WRITE_PAUSE + (td_duration)((loop->random >> 33) % WRITE_JITTER));
}

static void write_scale_answered(void *context, const struct td_client_reply *reply)
{
    struct horizontal_sync *sync = context;
    sync->call = NULL;
    if (reply->code == TD_OK) {
        write_rescaled(sync, true, TD_STR_EMPTY);
        return;
    }
    struct td_error err = TD_ERROR_INIT;
    td_str error = td_reply_message(&sync->arena, reply);
    bool is_conflict = reply->code == TD_CONFLICT && ++sync->puts < WRITE_TRIES_MAX;
    if (!is_conflict || horizontal_get_scale(sync, write_scale_reread, &err) != TD_OK) {
        write_rescaled(sync, false, error);
    }
}

/* The number that was decided, also when another writer changed the object meanwhile. */
static void write_scale(struct horizontal_sync *sync)
{
    struct td_arena *arena = &sync->arena;
    struct td_error err = TD_ERROR_INIT;
    sync->phase = HORIZONTAL_WRITING;
    td_json_set_int64(arena, td_json_ensure_object(arena, sync->seen.scale, TD_STR("spec")),
                      TD_STR("replicas"), sync->decided.pass.desired);
    const struct td_api_path path =
        td_path_scale(&sync->seen.resource,
                      TD_OBJECT_KEY(sync->seen.hpa.meta.namespace, sync->seen.hpa.target.name));
    if (write_put(sync, &path, sync->seen.scale, write_scale_answered, &err) != TD_OK) {
        write_rescaled(sync, false, td_arena_copy_str(arena, td_str_from(err.message)));
    }
}

/* What was decided came from what was seen of the target: if that is what the server has, it is
 * done, else decided anew from the scale itself. */
static void write_scale_read(void *context, const struct td_client_reply *reply)
{
    struct horizontal_sync *sync = context;
    sync->call = NULL;
    td_str error;
    if (horizontal_read_scale(sync, reply, &error) != TD_OK) {
        write_rescaled(sync, false, error);
        return;
    }
    const struct td_json *spec = td_json_get(sync->seen.scale, TD_STR("spec"));
    if (td_json_get_int64(spec, TD_STR("replicas"), 0) == sync->decided.pass.scale.spec_replicas) {
        write_scale(sync);
        return;
    }
    struct horizontal_item *item = sync->item;
    item->reads_scale = true;
    horizontal_sync_free(sync);
    horizontal_item_put_off(item, 0);
}

static void write_begin(struct horizontal_sync *sync)
{
    struct td_error err = TD_ERROR_INIT;
    if (sync->seen.scale) {
        write_scale(sync);
    } else if (horizontal_get_scale(sync, write_scale_read, &err) != TD_OK) {
        write_rescaled(sync, false, td_arena_copy_str(&sync->arena, td_str_from(err.message)));
    }
}

static void write_decided(struct horizontal_sync *sync)
{
    if (sync->seen.scale) {
        sync->item->reads_scale = false;
    }
    if (sync->decided.selection.is_failed) {
        horizontal_metrics_fallback(sync->loop, sync->seen.filter.cause);
    }
    if (sync->decided.pass.is_evaluated) {
        horizontal_metrics_responses(sync);
    }
    if (sync->decided.pass.wants_rescale) {
        write_begin(sync);
    } else {
        sync->phase = HORIZONTAL_WRITING;
        write_status(sync);
    }
}

const struct horizontal_purpose horizontal_purpose_reconcile = {.decided = write_decided,
                                                                .is_periodic = true};
