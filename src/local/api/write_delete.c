/*
 * DELETE of one object and of a collection. What is asked comes in the query or, stronger, in the
 * body as DeleteOptions. A collection is deleted object by object, each with its own admission; the
 * first refusal ends it, and what is gone by then stays gone, as upstream does it.
 */
#include "base/error.h"
#include "base/limits.h"
#include "local/api/api_private.h"
#include "local/api/write.h"

static bool delete_is_known(td_str propagation)
{
    return propagation.len == 0 || td_str_equal(propagation, TD_STR("Background")) ||
           td_str_equal(propagation, TD_STR("Foreground")) ||
           td_str_equal(propagation, TD_STR("Orphan"));
}

static bool delete_check_options(struct td_api_call *call, const struct td_deletion *options)
{
    static const td_str supported[] = {
        TD_STR_INIT("Foreground"),
        TD_STR_INIT("Background"),
        TD_STR_INIT("Orphan"),
        TD_STR_INIT("nil"),
    };
    struct td_field_errors errors = {.arena = &call->arena};
    const struct td_field_path path = td_field_child(NULL, TD_STR("propagationPolicy"));
    if (options->has_orphans && options->propagation.len > 0) {
        td_field_invalid_str(&errors, &path, options->propagation,
                             "orphanDependents and deletionPropagation cannot be both set");
    } else if (!delete_is_known(options->propagation)) {
        td_field_unsupported(&errors, &path, options->propagation, supported, TD_COUNT(supported));
    }
    if (errors.count > 0) {
        td_call_invalid_options(call, "DeleteOptions", &errors);
    }
    return errors.count == 0;
}

/* dryRun of a body: a list that says All, or nothing. */
static bool delete_read_dry_run(struct td_api_call *call, const struct td_json *list)
{
    for (const struct td_json *item = td_json_first_item(list); item; item = item->next) {
        if (!td_json_is(item, TD_JSON_TYPE_STRING) || !td_str_equal(item->text, TD_STR("All"))) {
            struct td_field_errors errors = {.arena = &call->arena};
            const struct td_field_path path = td_field_child(NULL, TD_STR("dryRun"));
            td_field_error_add(&errors, &path, TD_FIELD_UNSUPPORTED,
                               td_json_line(&call->arena, list),
                               TD_STR("supported values: \"All\""));
            td_call_invalid_options(call, "DeleteOptions", &errors);
            return false;
        }
        call->query.is_dry_run = true;
    }
    return true;
}

/* The DeleteOptions of a body over those of the query. */
static bool delete_read_body(struct td_api_call *call, struct td_deletion *options)
{
    struct td_json *body = NULL;
    if (!td_body_decode_options(call, TD_STR("DeleteOptions"), &body)) {
        return false;
    }
    const struct td_json *preconditions = td_json_get(body, TD_STR("preconditions"));
    options->uid = td_json_text(preconditions, "uid");
    options->resource_version = td_json_text(preconditions, "resourceVersion");
    options->propagation = td_json_get_str(body, TD_STR("propagationPolicy"), options->propagation);
    const struct td_json *grace = td_json_get(body, TD_STR("gracePeriodSeconds"));
    int64_t seconds;
    if (grace && td_json_is(grace, TD_JSON_TYPE_NUMBER) && td_json_to_int64(grace, &seconds)) {
        options->grace_seconds = seconds;
    }
    const struct td_json *orphans = td_json_get(body, TD_STR("orphanDependents"));
    options->has_orphans = td_json_is(orphans, TD_JSON_TYPE_BOOL);
    options->orphans = options->has_orphans && orphans->boolean;
    return delete_read_dry_run(call, td_json_get(body, TD_STR("dryRun")));
}

/* The options of the call, checked; false when it was answered. */
static bool delete_read_options(struct td_api_call *call, struct td_deletion *ret)
{
    struct td_deletion options = {
        .propagation = call->query.propagation_policy,
        .grace_seconds = call->query.grace_period_seconds,
    };
    if (call->request.body.len > 0 && !delete_read_body(call, &options)) {
        return false;
    }
    if (!delete_check_options(call, &options)) {
        return false;
    }
    *ret = options;
    return true;
}

static enum td_write_step delete_refuse(struct td_write *write, const char *format, td_str wanted,
                                        td_str stored)
{
    const struct td_resource *resource = write->resource;
    td_auto_buf text = td_buf_capped(TD_ERROR_MESSAGE_BYTES);
    td_buf_append_format(
        &text, "Operation cannot be fulfilled on %.*s%s%.*s \"%.*s\": ", TD_STR_ARG(resource->kind),
        resource->group.len > 0 ? "." : "", TD_STR_ARG(resource->group), TD_STR_ARG(write->name));
    td_str parts[2] = {td_str_cut_utf8(wanted, TD_BODY_SHOWN_BYTES * 2), stored};
    size_t next = 0;
    for (const char *at = format; *at; at++) {
        if (*at == '%' && next < 2) {
            td_buf_append(&text, parts[next++]);
        } else {
            td_buf_append_char(&text, *at);
        }
    }
    return td_write_fail(write, 409, "Conflict",
                         td_arena_copy_str(write->arena, td_buf_str(&text)));
}

/* Preconditions, and the answer that upstream gives when they do not hold. */
static enum td_write_step delete_build(struct td_write *write)
{
    const struct td_json *metadata = td_json_get(write->old, TD_STR("metadata"));
    td_str uid = td_json_text(metadata, "uid");
    td_str version = td_json_text(metadata, "resourceVersion");
    const struct td_deletion *options = &write->deletion;
    if (options->uid.len > 0 && !td_str_equal(options->uid, uid)) {
        return delete_refuse(write,
                             "the UID in the precondition (%) does not match the UID in record "
                             "(%). The object might have been deleted and then recreated",
                             options->uid, uid);
    }
    if (options->resource_version.len > 0 && !td_str_equal(options->resource_version, version)) {
        return delete_refuse(write,
                             "the ResourceVersion in the precondition (%) does not match the "
                             "ResourceVersion in record (%). The object might have been modified",
                             options->resource_version, version);
    }
    return TD_STEP_NEXT;
}

/* Kinds whose last state is the answer to their deletion, as upstream's registry has them. */
static bool delete_returns_object(const struct td_resource *resource)
{
    static const td_str collections[] = {
        TD_STR_INIT("namespaces"),
        TD_STR_INIT("persistentvolumeclaims"),
        TD_STR_INIT("persistentvolumes"),
        TD_STR_INIT("pods"),
        TD_STR_INIT("podtemplates"),
        TD_STR_INIT("resourcequotas"),
        TD_STR_INIT("serviceaccounts"),
        TD_STR_INIT("services"),
        TD_STR_INIT("storageclasses.storage.k8s.io"),
    };
    return td_str_is_among(resource->collection, collections, TD_COUNT(collections));
}

static void delete_finish(struct td_write *write)
{
    struct td_api_call *call = write->call;
    struct td_arena *arena = write->arena;
    if (write->outcome != TD_DELETE_NOW || delete_returns_object(write->resource)) {
        bool is_accepted = write->outcome != TD_DELETE_NOW && write->deletion.has_orphans &&
                           !write->deletion.orphans;
        td_call_reply_object(call, is_accepted ? 202 : 200, write->object);
        return;
    }
    struct td_json *tree = td_json_new_object(arena);
    td_json_set_str(arena, tree, TD_STR("kind"), TD_STR("Status"));
    td_json_set_str(arena, tree, TD_STR("apiVersion"), TD_STR("v1"));
    td_json_set(arena, tree, TD_STR("metadata"), td_json_new_object(arena));
    td_json_set_str(arena, tree, TD_STR("status"), TD_STR("Success"));
    struct td_json *details = td_json_ensure_object(arena, tree, TD_STR("details"));
    td_json_set_str(arena, details, TD_STR("name"), write->name);
    td_json_set_text(arena, details, TD_STR("group"), write->resource->group);
    td_json_set_str(arena, details, TD_STR("kind"), write->resource->plural);
    td_json_set_str(arena, details, TD_STR("uid"),
                    td_json_text(td_json_get(write->old, TD_STR("metadata")), "uid"));
    td_call_reply_json(call, 200, tree);
}

static struct td_write *delete_new(struct td_api_call *call, const struct td_deletion *options)
{
    struct td_write *write = td_write_new(call, NULL);
    if (!write) {
        return NULL;
    }
    write->is_delete = true;
    write->deletion = *options;
    write->build = delete_build;
    write->finish = delete_finish;
    return write;
}

/* ---- Collections ---- */

/* The objects of a collection that are being deleted, one after the other. */
struct delete_many {
    struct td_write *write;
    struct td_json *metadata; /* of the list that is the answer */
    td_str *names;
    size_t count;
    size_t cap;
    size_t next;
    td_str *texts; /* of the objects as they were, for the answer */
    size_t text_cap;
};

/* One item of the answer, in the client's version. */
static int delete_many_write(const struct td_api_call *call, struct td_arena *scratch, td_str text,
                             struct td_buf *out)
{
    const struct td_resource *resource = call->at.resource;
    if (call->at.version == resource->storage) {
        return td_buf_append(out, text);
    }
    td_arena_reset(scratch);
    struct td_json *item = NULL;
    int r = td_json_parse(scratch, text, NULL, &item, NULL);
    if (r == TD_OK) {
        r = td_resource_convert(scratch, resource, resource->storage, call->at.version, item, &item,
                                NULL);
    }
    if (r == TD_OK) {
        td_json_write(item, &(struct td_json_format){.indent = 0}, out);
    }
    return r;
}

/* The list of what was there, as text: a tree of it would take many times the memory. */
static void delete_many_answer(struct delete_many *many)
{
    struct td_api_call *call = many->write->call;
    td_auto_buf text = td_buf_capped(TD_API_ANSWER_BYTES_MAX);
    td_auto_arena scratch = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    td_buf_append(&text, TD_STR("{\"kind\":"));
    td_json_write_string(call->at.resource->list_kind, false, &text);
    td_buf_append(&text, TD_STR(",\"apiVersion\":"));
    td_json_write_string(call->at.resource->versions[call->at.version].api_version, false, &text);
    td_buf_append(&text, TD_STR(",\"metadata\":"));
    td_json_write(many->metadata, &(struct td_json_format){.escape_html = true}, &text);
    td_buf_append(&text, TD_STR(",\"items\":["));
    int r = TD_OK;
    for (size_t i = 0; i < many->count && r == TD_OK; i++) {
        td_buf_append(&text, i > 0 ? TD_STR(",") : TD_STR_EMPTY);
        r = delete_many_write(call, &scratch, many->texts[i], &text);
    }
    td_buf_append(&text, TD_STR("]}"));
    if (r < 0 || text.is_full) {
        td_call_fail(call, 413, "RequestEntityTooLarge",
                     "the objects are deleted, but their list is too large to be sent");
        return;
    }
    td_call_reply(call, 200, TD_STR("application/json"), td_buf_str(&text));
}

/* Deletes until one of them waits or fails. */
static void delete_many_run(struct delete_many *many)
{
    while (many->next < many->count) {
        struct td_write *write = many->write;
        write->name = many->names[many->next++];
        write->attempt = 0;
        if (!td_collection_get(write->collection, write->ns, write->name)) {
            continue; /* gone in the meantime */
        }
        if (td_write_attempt(write) != TD_STEP_NEXT) {
            return;
        }
    }
    delete_many_answer(many);
}

static void delete_many_next(struct td_write *write)
{
    delete_many_run(write->finish_state);
}

/* Names and texts of what the selectors match, in order; a limit counts as in a list. */
static void delete_many_collect(struct delete_many *many, const struct td_select *select)
{
    struct td_api_call *call = many->write->call;
    td_auto_arena scratch = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_collection_iter iter = td_collection_walk(many->write->collection, many->write->ns);
    size_t limit = call->query.limit > 0 ? (size_t)call->query.limit : SIZE_MAX;
    struct td_stored *stored = td_collection_iter_next(&iter);
    for (; stored && many->count < limit; stored = td_collection_iter_next(&iter)) {
        if (!td_select_matches(select, &scratch, stored)) {
            continue;
        }
        many->names =
            td_arena_grow(&call->arena, many->names, many->count, &many->cap, sizeof(td_str));
        many->texts =
            td_arena_grow(&call->arena, many->texts, many->count, &many->text_cap, sizeof(td_str));
        many->names[many->count] = td_arena_copy_str(&call->arena, stored->name);
        many->texts[many->count] = td_arena_copy_str(&call->arena, stored->json);
        many->count++;
    }
    td_collection_iter_done(&iter);
}

void td_write_delete_collection(struct td_api_call *call)
{
    struct td_deletion options;
    struct td_select select;
    if (!delete_read_options(call, &options) || !td_select_parse(call, &select)) {
        return;
    }
    struct delete_many *many = td_arena_new(&call->arena, struct delete_many);
    many->write = delete_new(call, &options);
    if (!many->write) {
        return;
    }
    many->write->finish = delete_many_next;
    many->write->finish_state = many;
    many->metadata = td_json_new_object(&call->arena);
    td_json_set_str(&call->arena, many->metadata, TD_STR("resourceVersion"),
                    td_arena_format(&call->arena, "%llu",
                                    (unsigned long long)td_store_version(td_api_store(call->api))));
    td_select_prove(call, &select, many->metadata);
    delete_many_collect(many, &select);
    delete_many_run(many);
}

/* ---- One object ---- */

void td_write_delete(struct td_api_call *call)
{
    struct td_deletion options;
    if (!delete_read_options(call, &options)) {
        return;
    }
    struct td_write *write = delete_new(call, &options);
    if (write) {
        td_write_run(write);
    }
}
