/*
 * Get and list. A list is one snapshot: which objects it has is decided at once, with a reference
 * on each, and then they are written while the receiver takes them; small ones gathered in a
 * buffer, large ones lent as they are stored. Pages of one list name the snapshot in their token.
 * A list as YAML or indented JSON is gathered whole and written anew.
 */
#include "base/assert.h"
#include "base/error.h"
#include "base/limits.h"
#include "local/api/api_private.h"
#include "local/store/store.h"

/* ---- Get ---- */

static int64_t read_version_of(td_str text)
{
    int64_t version = 0;
    return td_str_to_int64(text, &version) ? version : 0;
}

/* False when a version was asked for that is still to come, and the call answered. */
static bool read_version_is_here(struct td_api_call *call)
{
    int64_t version = read_version_of(call->query.resource_version);
    if ((uint64_t)version > td_store_version(call->api->store)) {
        td_call_version_too_large(call, (uint64_t)version);
        return false;
    }
    return true;
}

void td_read_get(struct td_api_call *call)
{
    const struct td_resource *resource = call->at.resource;
    if (!read_version_is_here(call)) {
        return;
    }
    struct td_stored *stored =
        td_store_get(call->api->store, resource->collection, call->path.ns, call->path.name);
    if (!stored) {
        td_call_not_found(call, call->path.name);
        return;
    }
    if (call->form == TD_FORM_OBJECT && call->at.version == resource->storage && !call->is_yaml &&
        !call->is_pretty) {
        td_call_reply_stored(call, 200, stored);
        return;
    }
    struct td_json *tree;
    struct td_error err = TD_ERROR_INIT;
    if (td_json_parse(&call->arena, stored->json, NULL, &tree, &err) != TD_OK) {
        td_call_fail(call, 500, "InternalError", "Internal error occurred: %s", err.message);
        return;
    }
    td_call_reply_object(call, 200, tree);
}

/* ---- List: which objects ---- */

struct read_list {
    struct td_select select;
    struct td_item_writer writer;
    struct td_page page;
    struct td_page_token from; /* name empty: from the first */
    struct td_buf batch;       /* small pieces on their way; all of it when is_whole */
    size_t next;               /* item of the page to write */
    size_t count;              /* items of the page that are in the list */
    uint64_t version;          /* of the snapshot; 0: the newest */
    bool is_continued;
    bool has_more;
    bool has_item; /* one was written */
    bool is_whole; /* gathered, then written in another format */
};

static void list_release(struct td_api_call *call)
{
    struct read_list *list = call->state;
    td_page_done(&list->page);
    td_item_writer_done(&list->writer);
    td_buf_done(&list->batch);
}

/* 410 in upstream's words; of a page with a token to go on from the newest state. */
static void list_expired(struct td_api_call *call, const struct read_list *list)
{
    if (!list->is_continued) {
        td_call_fail(call, 410, "Expired", "The resourceVersion for the provided list is too old.");
        return;
    }
    struct td_json *status = td_call_status(
        call, 410, "Expired",
        TD_STR("The provided continue parameter is too old to display a consistent list result. "
               "You can start a new list without the continue parameter, or use the continue token "
               "in this response to retrieve the remainder of the results. Continuing with the "
               "provided token results in an inconsistent list - objects that were created, "
               "modified, or deleted between the time the first chunk was returned and now may "
               "show up in the list."));
    struct td_page_token token = list->from;
    token.version = -1;
    td_json_set_str(&call->arena, td_json_get(status, TD_STR("metadata")), TD_STR("continue"),
                    td_page_token_write(&call->arena, &token));
    td_call_reply_json(call, 410, status);
}

/* Which snapshot, and behind which object; false when the call was answered. */
static bool list_choose_version(struct td_api_call *call, struct read_list *list)
{
    const struct td_api_query *query = &call->query;
    if (query->continue_token.len > 0) {
        struct td_error err = TD_ERROR_INIT;
        if (td_page_token_read(&call->arena, query->continue_token, &list->from, &err) != TD_OK) {
            td_call_fail(call, 400, "BadRequest", "%s", err.message);
            return false;
        }
        if (query->resource_version.len > 0 &&
            !td_str_equal(query->resource_version, TD_STR("0"))) {
            td_call_fail(call, 400, "BadRequest",
                         "specifying resource version is not allowed when using continue");
            return false;
        }
        list->is_continued = true;
        list->version = list->from.version > 0 ? (uint64_t)list->from.version : 0;
        return true;
    }
    int64_t version = read_version_of(query->resource_version);
    bool is_exact = td_str_equal(query->resource_version_match, TD_STR("Exact")) ||
                    (query->resource_version_match.len == 0 && query->limit > 0);
    list->version = is_exact && version > 0 ? (uint64_t)version : 0;
    return read_version_is_here(call);
}

/* Keeps what matches at the front of the page, up to `max`. There is more when anything is behind
 * the last of them, whether it matches or not, and what remains is counted as if all of the page
 * had matched: so upstream, and the last page may turn out empty. */
static void list_filter(struct read_list *list, size_t max)
{
    struct td_page *page = &list->page;
    size_t kept = 0;
    size_t i = 0;
    for (; i < page->count && kept < max; i++) {
        struct td_stored *stored = page->items[i];
        if (td_select_matches(&list->select, &list->writer.scratch, stored)) {
            page->items[i] = page->items[kept];
            page->items[kept++] = stored;
        }
    }
    list->count = kept;
    list->has_more = i < page->count;
    page->remaining = list->has_more ? page->count - max : 0;
}

/* Takes the snapshot; false when the call was answered. */
static bool list_take(struct td_api_call *call, struct read_list *list)
{
    struct td_error err = TD_ERROR_INIT;
    struct td_collection *collection;
    if (td_store_collection(call->api->store, call->at.resource->collection, &collection, &err) !=
        TD_OK) {
        td_call_fail(call, 500, "InternalError", "Internal error occurred: %s", err.message);
        return false;
    }
    size_t limit = call->query.limit > 0 ? (size_t)call->query.limit : 0;
    bool is_selected = !td_select_is_empty(&list->select) || list->select.shards.count > 0;
    bool names_ns = call->path.ns.len > 0;
    struct td_page_query query = {
        .version = list->version,
        .ns = call->path.ns,
        .after_ns = names_ns ? call->path.ns : list->from.ns,
        .after_name = list->from.name,
        .max = is_selected ? 0 : limit,
    };
    int code = td_collection_snapshot_at(collection, &query, &list->page, &err);
    if (code == TD_GONE) {
        list_expired(call, list);
        return false;
    }
    if (code != TD_OK) {
        td_call_version_too_large(call, list->version);
        return false;
    }
    list->count = list->page.count;
    list->has_more = list->page.remaining > 0;
    if (is_selected) {
        list_filter(list, limit > 0 ? limit : SIZE_MAX);
    }
    return true;
}

/* ---- List: writing it ---- */

static struct td_json *list_metadata(struct td_api_call *call, const struct read_list *list)
{
    struct td_arena *arena = &call->arena;
    struct td_json *metadata = td_json_new_object(arena);
    td_json_set_str(arena, metadata, TD_STR("resourceVersion"),
                    td_arena_format(arena, "%llu", (unsigned long long)list->page.version));
    if (list->has_more && list->count > 0) {
        const struct td_stored *last = list->page.items[list->count - 1];
        struct td_page_token token = {.version = (int64_t)list->page.version,
                                      .ns = call->path.ns.len > 0 ? TD_STR_EMPTY : last->ns,
                                      .name = last->name};
        td_json_set_str(arena, metadata, TD_STR("continue"), td_page_token_write(arena, &token));
        if (td_select_is_empty(&list->select)) {
            td_json_set_int64(arena, metadata, TD_STR("remainingItemCount"),
                              (int64_t)list->page.remaining);
        }
    }
    td_select_prove(call, &list->select, metadata);
    return metadata;
}

/* Everything before the first item. */
static void list_write_start(struct td_api_call *call, struct read_list *list)
{
    struct td_arena *arena = &call->arena;
    const struct td_json_format format = {.escape_html = true};
    struct td_json *metadata = list_metadata(call, list);
    struct td_json *head;
    if (call->form == TD_FORM_TABLE) {
        head = td_form_table(call, arena, metadata, true);
    } else {
        bool is_partial = call->form == TD_FORM_PARTIAL;
        head = td_json_new_object(arena);
        td_json_set_str(arena, head, TD_STR("kind"),
                        is_partial ? TD_STR("PartialObjectMetadataList")
                                   : call->at.resource->list_kind);
        td_json_set_str(arena, head, TD_STR("apiVersion"),
                        is_partial ? TD_STR("meta.k8s.io/v1")
                                   : call->at.resource->versions[call->at.version].api_version);
        td_json_set(arena, head, TD_STR("metadata"), metadata);
    }
    td_json_write(head, &format, &list->batch);
    td_assert(list->batch.len > 0 && !list->batch.is_full);
    list->batch.len--; /* its closing brace: the items come before it */
    (void)td_buf_append(&list->batch, call->form == TD_FORM_TABLE ? TD_STR(",\"rows\":[")
                                                                  : TD_STR(",\"items\":["));
}

static void list_flush(struct td_api_call *call, struct read_list *list)
{
    td_call_write(call, td_buf_str(&list->batch));
    td_buf_reset(&list->batch);
}

static void list_release_stored(void *owner)
{
    td_stored_unref(owner);
}

/* A large object: what was gathered so far, then its text as it is stored. */
static void list_lend(struct td_api_call *call, struct read_list *list, struct td_stored *stored)
{
    td_str rest;
    (void)td_buf_append(&list->batch, td_item_raw(&list->writer, stored, &rest));
    list_flush(call, list);
    td_call_write_shared(call, rest, list_release_stored, td_stored_ref(stored));
}

/* One item. What cannot be converted any more is left out rather than breaking off the list. */
static void list_write_item(struct td_api_call *call, struct read_list *list)
{
    struct td_stored *stored = list->page.items[list->next];
    size_t before = list->batch.len;
    bool is_written = true;
    if (list->has_item) {
        (void)td_buf_append_char(&list->batch, ',');
    }
    if (list->writer.is_raw && !list->is_whole && stored->json.len >= TD_STREAM_LEND_BYTES) {
        list_lend(call, list, stored);
    } else if (td_item_write(&list->writer, stored, &list->batch, NULL) != TD_OK) {
        list->batch.len = before;
        is_written = false;
    }
    list->has_item = list->has_item || is_written;
    list->next++;
}

/* YAML or indented: the gathered text is read again and written as one answer. */
static void list_reply_whole(struct td_api_call *call, struct read_list *list)
{
    struct td_json *tree;
    struct td_error err = TD_ERROR_INIT;
    if (list->batch.is_full) {
        call->is_yaml = false;
        td_call_fail(call, 413, "RequestEntityTooLarge",
                     "the list is too large for this format: ask for pages with limit");
    } else if (td_json_parse(&call->arena, td_buf_str(&list->batch), NULL, &tree, &err) != TD_OK) {
        td_call_fail(call, 500, "InternalError", "Internal error occurred: %s", err.message);
    } else {
        td_call_reply_json(call, 200, tree);
    }
}

static void list_resume(struct td_api_call *call)
{
    struct read_list *list = call->state;
    td_call_hold(call);
    while (list->next < list->count && (list->is_whole || !td_call_is_full(call))) {
        list_write_item(call, list);
        if (!list->is_whole && list->batch.len >= TD_STREAM_BATCH_BYTES) {
            list_flush(call, list);
        }
    }
    if (list->next == list->count && !call->is_over) {
        (void)td_buf_append(&list->batch, TD_STR("]}"));
        if (list->is_whole) {
            list_reply_whole(call, list);
        } else {
            list_flush(call, list);
            td_call_end(call);
        }
    } else if (!call->is_over) {
        list_flush(call, list);
    }
    td_call_drop(call);
}

static void list_start(struct td_api_call *call)
{
    struct read_list *list = call->state;
    list_write_start(call, list);
    if (!list->is_whole) {
        td_call_begin(call, 200, TD_STR("application/json"));
    }
    call->resume = list->is_whole ? NULL : list_resume;
    list_resume(call);
}

void td_read_list(struct td_api_call *call)
{
    struct read_list *list = td_arena_new(&call->arena, struct read_list);
    list->is_whole = call->is_yaml || call->is_pretty;
    td_buf_init(&list->batch, list->is_whole ? TD_API_ANSWER_BYTES_MAX : TD_STREAM_BYTES_MAX);
    td_item_writer_init(&list->writer, call, true);
    call->state = list;
    call->release = list_release;
    if (td_select_parse(call, &list->select) && list_choose_version(call, list) &&
        list_take(call, list)) {
        td_call_when_durable(call, list_start);
    }
}
