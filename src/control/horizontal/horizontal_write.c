/*
 * What follows from a decision: the scale, then the status, then events and counts.
 */
#include "base/alloc.h"
#include "base/error.h"
#include "base/json/json_reader.h"
#include "base/limits.h"
#include "base/os/log.h"
#include "base/os/loop.h"
#include "control/horizontal/horizontal_private.h"
#include "kube/client/client.h"
#include "kube/client/events.h"
#include "kube/client/verbs.h"

#define WRITE_TRIES_MAX 5                 /* of the scale, when others are faster */
#define WRITE_PAUSE (10 * TD_MILLISECOND) /* between two of them ... */
#define WRITE_JITTER (TD_MILLISECOND)     /* ... and up to so much longer */

static const struct td_write_options write_options = {.field_manager =
                                                          TD_STR_INIT("tandem-horizontal")};

/* ---- The end ---- */

static void write_tell_events(struct horizontal_sync *sync)
{
    struct td_events *events = sync->loop->options.control.events;
    for (size_t i = 0; events && i < sync->pass.events.count; i++) {
        const struct td_hpa_event *event = &sync->pass.events.items[i];
        td_events_record(events, &(struct td_event){
                                     .api_version = horizontal_api_version(sync->group),
                                     .kind = TD_STR("HorizontalPodAutoscaler"),
                                     .namespace = sync->hpa.meta.namespace,
                                     .name = sync->hpa.meta.name,
                                     .uid = sync->hpa.meta.uid,
                                     .is_warning = event->is_warning,
                                     .reason = event->reason,
                                     .message = event->message,
                                 });
    }
}

static void write_end(struct horizontal_sync *sync, bool is_written, td_str error)
{
    struct horizontal_item *item = sync->item;
    td_hpa_end(&sync->pass, is_written, error);
    if (sync->pass.has_error) {
        td_log_line(sync->loop->options.control.log, TD_LOG_WARN, "an HPA is in trouble",
                    TD_LOG_S("namespace", sync->hpa.meta.namespace),
                    TD_LOG_S("hpa", sync->hpa.meta.name), TD_LOG_S("error", sync->pass.error));
    }
    if (!item->is_gone) {
        write_tell_events(sync);
    }
    horizontal_tally_sync(sync);
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
        error = horizontal_message(&sync->arena, reply);
    }
    write_end(sync, is_written, error);
}

static void write_status(struct horizontal_sync *sync)
{
    struct td_hpa_pass *pass = &sync->pass;
    struct td_arena *arena = &sync->arena;
    struct td_error err = TD_ERROR_INIT;
    td_hpa_finish(pass, horizontal_now(sync->loop));
    if (!pass->needs_write) {
        write_end(sync, true, TD_STR_EMPTY);
        return;
    }
    td_json_set(arena, sync->tree, TD_STR("status"), pass->updated);
    td_auto_buf body;
    td_buf_init(&body, TD_OBJECT_BYTES_MAX);
    td_json_write(sync->tree, &(struct td_json_format){.indent = 0}, &body);
    const struct td_api_path path = {
        .group = td_group_version_parse(horizontal_api_version(sync->group)).group,
        .version = TD_STR("v2"),
        .namespace = sync->hpa.meta.namespace,
        .plural = TD_STR("horizontalpodautoscalers"),
        .name = sync->hpa.meta.name,
        .subresource = TD_STR("status"),
    };
    struct td_client_request request;
    if (td_verb_update(arena, &path, td_buf_str(&body), &write_options, &request, &err) != TD_OK) {
        write_end(sync, false, td_arena_copy_str(arena, td_str_from(err.message)));
        return;
    }
    request.flow = sync->loop->options.control.flow;
    request.deadline = HORIZONTAL_DEADLINE;
    sync->call =
        td_client_send(sync->loop->options.control.client, &request, write_status_answered, sync);
}

/* ---- The scale ---- */

static void write_rescaled(struct horizontal_sync *sync, bool is_done, td_str error)
{
    td_hpa_rescaled(&sync->pass, is_done, error, horizontal_now(sync->loop));
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
    td_str error = horizontal_message(&sync->arena, reply);
    bool is_conflict = reply->code == TD_CONFLICT && ++sync->puts < WRITE_TRIES_MAX;
    if (!is_conflict || horizontal_get_scale(sync, write_scale_reread, &err) != TD_OK) {
        write_rescaled(sync, false, error);
    }
}

/* The number that was decided, also when somebody changed the object meanwhile. */
static void write_scale(struct horizontal_sync *sync)
{
    struct td_arena *arena = &sync->arena;
    struct td_error err = TD_ERROR_INIT;
    sync->phase = HORIZONTAL_WRITING;
    td_json_set_int64(arena, td_json_ensure_object(arena, sync->scale, TD_STR("spec")),
                      TD_STR("replicas"), sync->pass.desired);
    td_auto_buf body;
    td_buf_init(&body, TD_OBJECT_BYTES_MAX);
    td_json_write(sync->scale, &(struct td_json_format){.indent = 0}, &body);
    const struct td_api_path path = {
        .group = sync->resource.group,
        .version = sync->resource.version,
        .namespace = sync->resource.is_namespaced ? sync->hpa.meta.namespace : TD_STR_EMPTY,
        .plural = sync->resource.plural,
        .name = sync->hpa.target.name,
        .subresource = TD_STR("scale"),
    };
    struct td_client_request request;
    if (td_verb_update(arena, &path, td_buf_str(&body), &write_options, &request, &err) != TD_OK) {
        write_rescaled(sync, false, td_arena_copy_str(arena, td_str_from(err.message)));
        return;
    }
    request.flow = sync->loop->options.control.flow;
    request.deadline = HORIZONTAL_DEADLINE;
    sync->call =
        td_client_send(sync->loop->options.control.client, &request, write_scale_answered, sync);
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
    const struct td_json *spec = td_json_get(sync->scale, TD_STR("spec"));
    if (td_json_get_int64(spec, TD_STR("replicas"), 0) == sync->pass.scale.spec_replicas) {
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
    if (sync->scale) {
        write_scale(sync);
    } else if (horizontal_get_scale(sync, write_scale_read, &err) != TD_OK) {
        write_rescaled(sync, false, td_arena_copy_str(&sync->arena, td_str_from(err.message)));
    }
}

void horizontal_write(struct horizontal_sync *sync)
{
    if (sync->verdict) {
        horizontal_verdict_tell(sync);
        return;
    }
    if (!sync->item) {
        horizontal_explain_tell(sync, TD_OK, TD_STR_EMPTY);
        return;
    }
    if (sync->pass.wants_rescale) {
        write_begin(sync);
    } else {
        sync->phase = HORIZONTAL_WRITING;
        write_status(sync);
    }
}
