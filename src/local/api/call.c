/*
 * Answers of a call. Two rules hold for all of them. Nothing that tells of the store leaves before
 * it is on disk, so a whole answer is made at once and, when a commit is still on its way, kept
 * until the store says so. And a call may be ended, or cancelled by its receiver, from inside any
 * call of its sink: frames that go on using it hold it, and the last one frees it.
 */
#include "local/api/call.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/yaml/yaml.h"
#include "local/api/api_private.h"
#include "local/store/store.h"

/* An answer that waits for the disk. */
struct td_call_answer {
    int status;
    td_str content_type;
    td_str body;
    struct td_stored *stored;             /* body is its text, when not NULL */
    void (*fn)(struct td_api_call *call); /* or what to do then */
};

/* ---- Ending ---- */

static void call_free(struct td_api_call *call)
{
    td_durable_wait_cancel(&call->durable);
    if (call->answer) {
        td_stored_unref(call->answer->stored);
    }
    if (call->release) {
        call->release(call);
    }
    if (call->at.resource) {
        td_resource_unref(call->at.resource);
    }
    td_assert(call->api->held_bytes >= call->held_bytes);
    call->api->held_bytes -= call->held_bytes;
    call->api->held_count -= call->held_bytes > 0;
    if (call->previous) {
        call->previous->next = call->next;
    } else {
        call->api->calls = call->next;
    }
    if (call->next) {
        call->next->previous = call->previous;
    }
    td_arena_done(&call->arena);
    td_free(call);
}

void td_call_hold(struct td_api_call *call)
{
    call->holds++;
}

void td_call_drop(struct td_api_call *call)
{
    td_assert(call->holds > 0);
    call->holds--;
    if (call->holds == 0 && call->is_over) {
        call_free(call);
    }
}

void td_call_cancel(struct td_api_call *call)
{
    call->is_over = true;
    td_call_hold(call);
    td_call_drop(call);
}

void td_call_end(struct td_api_call *call)
{
    if (call->is_over) {
        return; /* cancelled from inside the sink */
    }
    td_call_hold(call);
    call->is_over = true;
    call->sink->end(call->sink_context);
    td_call_drop(call);
}

/* ---- Sending ---- */

/* A Warning header's text: quoted, without bytes that a header cannot hold. */
static td_str call_warning_text(struct td_arena *arena, td_str text)
{
    td_auto_buf line = td_buf_capped(2 * TD_API_WARNING_BYTES_MAX + 16);
    (void)td_buf_append(&line, TD_STR("299 - \""));
    td_str cut = td_str_cut_utf8(text, TD_API_WARNING_BYTES_MAX);
    for (size_t i = 0; i < cut.len; i++) {
        char c = cut.ptr[i];
        if (c == '"' || c == '\\') {
            (void)td_buf_append_char(&line, '\\');
        }
        bool is_control = (unsigned char)c < ' ' || c == 0x7f;
        (void)td_buf_append_char(&line, is_control ? ' ' : c);
    }
    (void)td_buf_append_char(&line, '"');
    return td_arena_copy_str(arena, td_buf_str(&line));
}

static td_str call_uuid(struct td_arena *arena, uint64_t *state);

static void call_send_head(struct td_api_call *call, int status, td_str content_type)
{
    struct td_api_header headers[TD_API_HEADERS_MAX];
    size_t count = 0;
    td_str audit = call_uuid(&call->arena, &call->api->audit_random);
    headers[count++] = (struct td_api_header){TD_STR("Audit-Id"), audit};
    headers[count++] = (struct td_api_header){TD_STR("Cache-Control"), TD_STR("no-cache, private")};
    headers[count++] = (struct td_api_header){TD_STR("Content-Type"), content_type};
    if (call->retry_after_seconds > 0) {
        headers[count++] = (struct td_api_header){
            TD_STR("Retry-After"), td_arena_format(&call->arena, "%d", call->retry_after_seconds)};
    }
    for (const struct td_json *item = td_json_first_item(call->warnings);
         item && count < TD_API_HEADERS_MAX; item = item->next) {
        headers[count++] =
            (struct td_api_header){TD_STR("Warning"), call_warning_text(&call->arena, item->text)};
    }
    td_assert(!call->has_head);
    call->has_head = true;
    call->sink->head(call->sink_context, status, headers, count);
}

static void call_release_stored(void *owner)
{
    td_stored_unref(owner);
}

static void call_send(struct td_api_call *call, const struct td_call_answer *answer)
{
    td_call_hold(call);
    call_send_head(call, answer->status, answer->content_type);
    if (answer->stored) {
        td_call_write_shared(call, answer->body, call_release_stored,
                             td_stored_ref(answer->stored));
    } else {
        td_call_write(call, answer->body);
    }
    td_call_end(call);
    td_call_drop(call);
}

static void call_disk_done(void *context, int code)
{
    struct td_api_call *call = context;
    td_call_hold(call);
    struct td_call_answer *answer = call->answer;
    call->answer = NULL;
    if (code != TD_OK) {
        struct td_json *status =
            td_call_status(call, 500, "InternalError",
                           TD_STR("Internal error occurred: the change could not be written"));
        td_auto_buf text = td_buf_capped(TD_API_ANSWER_BYTES_MAX);
        td_json_write(status, &(struct td_json_format){.escape_html = true}, &text);
        call_send(call, &(struct td_call_answer){.status = 500,
                                                 .content_type = TD_STR("application/json"),
                                                 .body = td_buf_str(&text)});
    } else if (answer->fn) {
        answer->fn(call);
    } else {
        call_send(call, answer);
    }
    td_stored_unref(answer->stored);
    td_call_drop(call);
}

/* Keeps the answer in the arena until the disk has what it tells. */
static void call_wait(struct td_api_call *call, const struct td_call_answer *answer)
{
    td_assert(!call->answer);
    call->answer = td_arena_new(&call->arena, struct td_call_answer);
    *call->answer = *answer;
    call->answer->content_type = td_arena_copy_str(&call->arena, answer->content_type);
    if (answer->stored) {
        td_stored_ref(answer->stored);
    } else {
        call->answer->body = td_arena_copy_str(&call->arena, answer->body);
    }
    td_store_when_durable(call->api->store, &call->durable, call_disk_done, call);
}

static void call_answer(struct td_api_call *call, const struct td_call_answer *answer)
{
    if (call->is_over) {
        return;
    }
    if (td_store_is_durable(call->api->store)) {
        call_send(call, answer);
    } else {
        call_wait(call, answer);
    }
}

void td_call_when_durable(struct td_api_call *call, void (*fn)(struct td_api_call *call))
{
    if (td_store_is_durable(call->api->store)) {
        fn(call);
    } else {
        call_wait(call, &(struct td_call_answer){.fn = fn, .content_type = TD_STR_EMPTY});
    }
}

void td_call_reply(struct td_api_call *call, int status, td_str content_type, td_str body)
{
    call_answer(call, &(struct td_call_answer){
                          .status = status, .content_type = content_type, .body = body});
}

void td_call_reply_stored(struct td_api_call *call, int status, struct td_stored *stored)
{
    call_answer(call, &(struct td_call_answer){.status = status,
                                               .content_type = TD_STR("application/json"),
                                               .body = stored->json,
                                               .stored = stored});
}

/* The same as text: JSON, indented or YAML by the call. False when it does not fit. */
static bool call_text(const struct td_api_call *call, const struct td_json *tree,
                      struct td_buf *out)
{
    if (call->is_yaml) {
        td_auto_arena arena = td_arena_capped(TD_API_CALL_BYTES_MAX);
        struct td_json *sorted = td_json_copy(&arena, tree, false);
        td_json_sort(&arena, sorted);
        td_yaml_write(sorted, out);
    } else {
        struct td_json_format format = {.indent = call->is_pretty ? 2 : 0, .escape_html = true};
        td_json_write(tree, &format, out);
    }
    return !out->is_full;
}

void td_call_reply_json(struct td_api_call *call, int status, const struct td_json *tree)
{
    td_auto_buf text = td_buf_capped(TD_API_ANSWER_BYTES_MAX);
    if (call_text(call, tree, &text)) {
        td_str type = call->is_yaml ? TD_STR("application/yaml") : TD_STR("application/json");
        td_call_reply(call, status, type, td_buf_str(&text));
    } else {
        call->is_yaml = false;
        td_call_fail(call, 413, "RequestEntityTooLarge", "the response is too large");
    }
}

void td_call_reply_object(struct td_api_call *call, int status, struct td_json *stored)
{
    struct td_error err = TD_ERROR_INIT;
    struct td_json *tree;
    if (td_form_object(call, &call->arena, stored, &tree, &err) != TD_OK) {
        td_call_fail(call, 500, "InternalError", "Internal error occurred: %s", err.message);
        return;
    }
    td_call_reply_json(call, status, tree);
}

/* ---- Streams ---- */

void td_call_begin(struct td_api_call *call, int status, td_str content_type)
{
    if (!call->is_over) {
        call_send_head(call, status, content_type);
    }
}

void td_call_write(struct td_api_call *call, td_str bytes)
{
    if (!call->is_over && bytes.len > 0) {
        call->sink->body(call->sink_context, bytes, NULL, NULL);
    }
}

void td_call_write_shared(struct td_api_call *call, td_str bytes, void (*release)(void *owner),
                          void *owner)
{
    if (call->is_over) {
        release(owner);
    } else {
        call->sink->body(call->sink_context, bytes, release, owner);
    }
}

bool td_call_is_full(struct td_api_call *call)
{
    return call->is_over || call->sink->is_full(call->sink_context);
}

/* ---- Time and chance ---- */

struct td_instant td_call_now(const struct td_api_call *call)
{
    return td_time_to_instant(td_clock_wall(td_loop_clock(call->api->loop)));
}

/* SplitMix64: any state is good, every value comes once in a period of 2^64. */
static uint64_t call_random(uint64_t *state)
{
    *state += 0x9e3779b97f4a7c15U;
    uint64_t z = *state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
}

/* Of what is stored: replays with the seed. */
static uint64_t api_random(struct td_api *api)
{
    return call_random(&api->random);
}

uint64_t td_api_chance(struct td_api *api)
{
    return call_random(&api->audit_random);
}

/* A UUID of version 4. */
static td_str call_uuid(struct td_arena *arena, uint64_t *state)
{
    uint64_t high = (call_random(state) & ~(uint64_t)0xf000) | 0x4000;
    uint64_t low = (call_random(state) & ~((uint64_t)3 << 62)) | (uint64_t)1 << 63;
    return td_arena_format(arena, "%08x-%04x-%04x-%04x-%012llx", (unsigned)(high >> 32),
                           (unsigned)(high >> 16 & 0xffff), (unsigned)(high & 0xffff),
                           (unsigned)(low >> 48), (unsigned long long)(low & 0xffffffffffff));
}

td_str td_call_new_uid(struct td_api_call *call)
{
    return td_api_new_uid(call->api, &call->arena);
}

td_str td_api_new_uid(struct td_api *api, struct td_arena *arena)
{
    return call_uuid(arena, &api->random);
}

td_str td_call_name_suffix(struct td_api_call *call)
{
    /* Upstream's letters: no vowels, so no words; no digits that look like letters. */
    static const char letters[] = "bcdfghjklmnpqrstvwxz2456789";
    char text[5];
    for (size_t i = 0; i < sizeof(text); i++) {
        text[i] = letters[api_random(call->api) % (sizeof(letters) - 1)];
    }
    return td_arena_copy_str(&call->arena, (td_str){.ptr = text, .len = sizeof(text)});
}
