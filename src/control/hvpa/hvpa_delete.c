/*
 * What stays of an Hvpa that is deleted (spec.onDelete). Template: its pods keep what they have
 * while they live, and the next ones get what the template says. Keep: a finalizer of ours holds
 * the object until the sizes that new pods get are in the template, so that deleting the object
 * changes no pod's size. A target that is gone, or that can never be written so, lets the object
 * go; what may pass is tried again, and an event says what it waits for.
 */
#include <string.h>

#include "base/error.h"
#include "base/os/loop.h"
#include "control/hvpa/hvpa_private.h"
#include "kube/client/client_reply.h"
#include "kube/client/verbs.h"
#include "model/owners.h"

#define DELETE_FINALIZER "tandem.dev/on-delete"
#define DELETE_PAUSE TD_SECOND /* until the informers show what was written */

#define HTTP_UNSUPPORTED 415

static const struct td_write_options delete_options = {.field_manager = HVPA_MANAGER};

static bool delete_is_held(const struct td_informer_object *object)
{
    return memmem(object->text.ptr, object->text.len, DELETE_FINALIZER, strlen(DELETE_FINALIZER));
}

static void delete_send(struct hvpa_reconcile *run, struct td_client_request *request,
                        td_client_done_fn done)
{
    run->phase = HVPA_WRITING;
    request->flow = run->loop->options.control.flow;
    request->deadline = HVPA_DEADLINE;
    run->call = td_client_send(run->loop->options.control.client, request, done, run);
}

static void delete_retry(struct hvpa_reconcile *run)
{
    run->item->due = run->now + td_backoff_next(&run->item->backoff);
    hvpa_reconcile_end(run);
}

/* ---- The finalizer ---- */

static void delete_finalized(void *context, const struct td_client_reply *reply)
{
    struct hvpa_reconcile *run = context;
    run->call = NULL;
    if (reply->code != TD_OK && reply->code != TD_CONFLICT && reply->code != TD_NOT_FOUND) {
        delete_retry(run);
        return;
    }
    run->item->due = run->now + DELETE_PAUSE;
    hvpa_reconcile_end(run);
}

/* The list as it is in the object, with ours or without; refused when another changed it. */
static void delete_write_finalizer(struct hvpa_reconcile *run, bool is_held)
{
    struct td_arena *arena = &run->arena;
    const struct td_json *metadata = td_json_get(run->hvpa.tree, TD_STR("metadata"));
    struct td_json *list = td_json_new_array(arena);
    const struct td_json *old = td_json_get(metadata, TD_STR("finalizers"));
    for (const struct td_json *item = td_json_first_item(old); item; item = item->next) {
        if (!td_str_equal(item->text, TD_STR(DELETE_FINALIZER))) {
            td_json_append(list, td_json_copy(arena, item, true));
        }
    }
    if (is_held) {
        td_json_append(list, td_json_new_string(arena, TD_STR(DELETE_FINALIZER)));
    }
    struct td_json *patch = td_json_new_object(arena);
    struct td_json *into = td_json_ensure_object(arena, patch, TD_STR("metadata"));
    td_json_set(arena, into, TD_STR("finalizers"), list);
    td_json_set_str(arena, into, TD_STR("resourceVersion"),
                    td_json_text(metadata, "resourceVersion"));
    const struct td_api_path path = hvpa_item_path(run->item);
    struct td_client_request request;
    if (td_verb_patch(arena, &path, TD_PATCH_MERGE, td_json_line(arena, patch), &delete_options,
                      &request, NULL) != TD_OK) {
        delete_retry(run);
        return;
    }
    delete_send(run, &request, delete_finalized);
}

/* ---- The sizes ---- */

/* Waiting would not help: the target is gone, or its kind takes no such patch. */
static bool delete_is_hopeless(const struct td_client_reply *reply)
{
    return reply->code == TD_NOT_FOUND || reply->code == TD_INVALID ||
           reply->status == HTTP_UNSUPPORTED;
}

static void delete_sizes_written(void *context, const struct td_client_reply *reply)
{
    struct hvpa_reconcile *run = context;
    run->call = NULL;
    if (reply->code == TD_OK) {
        td_backoff_reset(&run->item->backoff);
        hvpa_reconcile_event(run, false, TD_STR("SizesKept"),
                             TD_STR("the sizes of pods are in the template of the target now"));
        delete_write_finalizer(run, false);
        return;
    }
    bool is_hopeless = delete_is_hopeless(reply);
    hvpa_reconcile_event(
        run, true, TD_STR("SizesNotKept"),
        td_arena_format(&run->arena, "cannot write sizes into the template of the target: %.*s%s",
                        TD_STR_ARG(td_reply_message(&run->arena, reply)),
                        is_hopeless ? "; the next pods get what the template says"
                                    : "; tried again, set onDelete to Template to delete now"));
    if (is_hopeless) {
        delete_write_finalizer(run, false);
    } else {
        delete_retry(run);
    }
}

static void delete_write_sizes(struct hvpa_reconcile *run, const struct td_pod_sizes *sizes)
{
    const struct td_object_reference *target = &run->hvpa.target;
    struct td_error err = TD_ERROR_INIT;
    struct td_client_request request;
    int code = td_informers_resource(run->loop->options.control.informers,
                                     td_group_version_parse(target->api_version).group,
                                     target->kind, 0, &run->seen.resource, &err);
    if (code == TD_BUSY) {
        run->item->due = run->now + DELETE_PAUSE;
        hvpa_reconcile_end(run);
    } else if (code != TD_OK) {
        delete_write_finalizer(run, false); /* the kind is not served any more */
    } else if (hvpa_template_request(run, sizes, &request, &err) != TD_OK) {
        delete_retry(run);
    } else {
        delete_send(run, &request, delete_sizes_written);
    }
}

bool hvpa_delete_begin(struct hvpa_item *item, const struct td_informer_object *object)
{
    bool is_on = item->loop->options.control.hvpa_gate && item->is_kept;
    bool is_held = delete_is_held(object);
    if (object->is_deleting ? !is_held : is_held == is_on) {
        return false;
    }
    struct hvpa_reconcile *run = hvpa_reconcile_new(item);
    struct td_json *tree = NULL;
    item->due = run->now + DELETE_PAUSE;
    if (td_informers_tree(&run->arena, object, &tree, NULL) != TD_OK) {
        delete_retry(run);
        return true;
    }
    bool is_valid = td_hvpa_decode(&run->arena, tree, &run->hvpa, NULL, NULL) == TD_OK;
    if (!is_valid) {
        run->hvpa = (struct td_hvpa){.on_delete = TD_HVPA_DELETE_TEMPLATE};
        (void)td_meta_decode(&run->arena, tree, &run->hvpa.meta, NULL); /* for events alone */
    }
    run->hvpa.tree = tree;
    const struct td_pod_sizes sizes = hvpa_item_sizes(&run->arena, item);
    if (object->is_deleting && is_on && is_valid && !item->is_template && sizes.count > 0) {
        delete_write_sizes(run, &sizes);
    } else {
        delete_write_finalizer(run, !object->is_deleting && is_on);
    }
    return true;
}
