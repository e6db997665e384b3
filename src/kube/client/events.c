/*
 * Three caches decide, in this order: `similar` whether an event is combined with others of its
 * reason, `log` whether it is an object that was written before, `spam` whether it is written at
 * all. They decide when the event is recorded; writing comes later and changes none of it: when an
 * object that should get a higher count is gone, it is made anew with that count.
 */
#include "kube/client/events.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/json/json.h"
#include "base/limits.h"
#include "base/os/loop.h"
#include "base/timefmt.h"
#include "kube/client/events_cache.h"
#include "kube/client/verbs.h"
#include "kube/names.h"

#define SIMILAR_WINDOW (10 * TD_MINUTE)
#define SPAM_BURST 25.0
#define SPAM_REFILL (5 * TD_MINUTE) /* for one token */
#define WRITE_DEADLINE TD_MINUTE
#define KEY_BYTES_MAX ((size_t)64 << 10)

/* One write that waits. */
struct events_item {
    struct events_item *next;
    struct td_arena texts;
    td_str namespace;
    td_str name;
    td_str body;  /* the whole object */
    td_str patch; /* empty: the object is new */
};

struct td_events {
    struct td_events_options options; /* texts owned by `texts` */
    struct td_arena texts;
    struct events_cache similar;
    struct events_cache log;
    struct events_cache spam;
    struct td_buf key; /* being built */
    struct events_item *first;
    struct events_item *last;
    size_t count;
    struct td_client_call *call; /* of the first item */
    td_time named;               /* the last time that stands in a name */
    struct td_events_counts counts;
};

/* What is written, after the caches had their say. */
struct events_write {
    td_str message;
    char name[256];
    td_time first;
    td_time now;
    int64_t count;
};

static void events_key(struct td_events *events, const td_str *parts, size_t count)
{
    td_buf_reset(&events->key);
    for (size_t i = 0; i < count; i++) {
        (void)td_buf_append(&events->key, parts[i]); /* keys above the cap are cut alike */
        (void)td_buf_append_char(&events->key, '\0');
    }
}

static td_str events_type(const struct td_event *event)
{
    return event->is_warning ? TD_STR("Warning") : TD_STR("Normal");
}

/* Names end with the time; a virtual clock may show the same one to several events, of which each
 * needs a name of its own. */
static void events_set_name(struct td_events *events, struct events_write *write, td_str object)
{
    events->named = write->now > events->named ? write->now : events->named + 1;
    td_str cut = td_str_slice(object, 0, 200); /* with the time below 253, as names have to be */
    int len = snprintf(write->name, sizeof(write->name), "%.*s.%llx", TD_STR_ARG(cut),
                       (unsigned long long)events->named);
    td_str name = {.ptr = write->name, .len = (size_t)len};
    if (td_name_check_dns1123_subdomain(name, NULL) > 0) {
        (void)snprintf(write->name, sizeof(write->name), "event.%llx",
                       (unsigned long long)events->named); /* an object whose name is no DNS name */
    }
}

/* Is this the tenth message that differs within the window? Hashes of messages are enough. */
static bool events_is_similar(struct td_events *events, const struct td_event *event,
                              td_str message, td_time now)
{
    const td_str parts[] = {event->kind,        event->namespace,   event->name,  event->uid,
                            event->api_version, events_type(event), event->reason};
    events_key(events, parts, TD_COUNT(parts));
    struct events_entry *entry = td_events_cache_use(&events->similar, td_buf_str(&events->key));
    if (now - entry->similar.last > SIMILAR_WINDOW) {
        entry->similar.message_count = 0;
    }
    entry->similar.last = now;
    uint64_t hash = td_map_hash(message);
    uint64_t *known = entry->similar.messages;
    for (size_t i = 0; i < entry->similar.message_count; i++) {
        if (known[i] == hash) {
            return false;
        }
    }
    known[entry->similar.message_count++] = hash;
    if (entry->similar.message_count < TD_EVENTS_SIMILAR_MAX) {
        return false;
    }
    entry->similar.message_count--; /* room for the next one */
    memmove(known, known + 1, entry->similar.message_count * sizeof(known[0]));
    return true;
}

/* The object that this event is: written before, or new. The key is the combined one's, or the
 * event's own with its message. */
static void events_observe(struct td_events *events, const struct td_event *event, bool is_similar,
                           struct events_write *write)
{
    if (!is_similar) {
        const td_str parts[] = {event->kind,        event->namespace, event->name,
                                event->field_path,  event->uid,       event->api_version,
                                events_type(event), event->reason,    write->message};
        events_key(events, parts, TD_COUNT(parts));
    }
    struct events_entry *entry = td_events_cache_use(&events->log, td_buf_str(&events->key));
    if (entry->log.count == 0) {
        entry->log.first = write->now;
        events_set_name(events, write, event->name);
        memcpy(entry->log.name, write->name, sizeof(entry->log.name));
    }
    entry->log.count++;
    write->count = entry->log.count;
    write->first = entry->log.first;
    memcpy(write->name, entry->log.name, sizeof(write->name));
}

static bool events_is_spam(struct td_events *events, const struct td_event *event, td_time now)
{
    const td_str parts[] = {event->kind, event->namespace,   event->name,
                            event->uid,  event->api_version, events_type(event)};
    events_key(events, parts, TD_COUNT(parts));
    struct events_entry *entry = td_events_cache_use(&events->spam, td_buf_str(&events->key));
    double tokens = SPAM_BURST;
    if (entry->spam.is_known) {
        tokens = entry->spam.tokens + (double)(now - entry->spam.at) / (double)SPAM_REFILL;
        tokens = tokens < SPAM_BURST ? tokens : SPAM_BURST;
    }
    bool is_spam = tokens < 1;
    entry->spam.is_known = 1;
    entry->spam.at = now;
    entry->spam.tokens = is_spam ? tokens : tokens - 1;
    return is_spam;
}

static td_str events_time(struct td_arena *arena, td_time time)
{
    return td_time_text(arena, td_time_to_instant(time), 0);
}

static void events_set_object(struct td_arena *arena, struct td_json *object,
                              const struct td_event *event)
{
    struct td_json *about = td_json_ensure_object(arena, object, TD_STR("involvedObject"));
    td_json_set_text(arena, about, TD_STR("kind"), event->kind);
    td_json_set_text(arena, about, TD_STR("namespace"), event->namespace);
    td_json_set_text(arena, about, TD_STR("name"), event->name);
    td_json_set_text(arena, about, TD_STR("uid"), event->uid);
    td_json_set_text(arena, about, TD_STR("apiVersion"), event->api_version);
    td_json_set_text(arena, about, TD_STR("resourceVersion"), event->resource_version);
    td_json_set_text(arena, about, TD_STR("fieldPath"), event->field_path);
}

static void events_set_decision(struct td_arena *arena, struct td_json *object,
                                const struct td_event *event)
{
    if (event->decision.len > 0) {
        struct td_json *meta = td_json_ensure_object(arena, object, TD_STR("metadata"));
        struct td_json *notes = td_json_ensure_object(arena, meta, TD_STR("annotations"));
        td_json_set_str(arena, notes, TD_STR(TD_EVENT_DECISION),
                        td_str_cut_utf8(event->decision, TD_EVENT_MESSAGE_BYTES_MAX));
    }
}

static td_str events_body(const struct td_events *events, struct td_arena *arena,
                          const struct td_event *event, const struct events_item *item,
                          const struct events_write *write)
{
    struct td_json *object = td_json_new_object(arena);
    td_json_set_str(arena, object, TD_STR("apiVersion"), TD_STR("v1"));
    td_json_set_str(arena, object, TD_STR("kind"), TD_STR("Event"));
    struct td_json *meta = td_json_ensure_object(arena, object, TD_STR("metadata"));
    td_json_set_str(arena, meta, TD_STR("name"), item->name);
    td_json_set_str(arena, meta, TD_STR("namespace"), item->namespace);
    events_set_decision(arena, object, event);
    events_set_object(arena, object, event);
    td_json_set_str(arena, object, TD_STR("reason"), event->reason);
    td_json_set_str(arena, object, TD_STR("message"), write->message);
    struct td_json *source = td_json_ensure_object(arena, object, TD_STR("source"));
    td_json_set_text(arena, source, TD_STR("component"), events->options.component);
    td_json_set_text(arena, source, TD_STR("host"), events->options.host);
    td_json_set_str(arena, object, TD_STR("firstTimestamp"), events_time(arena, write->first));
    td_json_set_str(arena, object, TD_STR("lastTimestamp"), events_time(arena, write->now));
    td_json_set_int64(arena, object, TD_STR("count"), write->count);
    td_json_set_str(arena, object, TD_STR("type"), events_type(event));
    td_json_set(arena, object, TD_STR("eventTime"), td_json_new_null(arena));
    td_json_set_str(arena, object, TD_STR("reportingComponent"), events->options.component);
    td_json_set_str(arena, object, TD_STR("reportingInstance"), events->options.host);
    return td_json_line(arena, object);
}

static td_str events_patch(struct td_arena *arena, const struct td_event *event,
                           const struct events_write *write)
{
    struct td_json *object = td_json_new_object(arena);
    events_set_decision(arena, object, event);
    td_json_set_int64(arena, object, TD_STR("count"), write->count);
    td_json_set_str(arena, object, TD_STR("lastTimestamp"), events_time(arena, write->now));
    td_json_set_str(arena, object, TD_STR("message"), write->message);
    return td_json_line(arena, object);
}

static void events_pump(struct td_events *events);

static void events_pop(struct td_events *events)
{
    struct events_item *item = events->first;
    events->first = item->next;
    events->last = item->next ? events->last : NULL;
    events->count--;
    td_arena_done(&item->texts);
    td_free(item);
}

static void events_written(void *context, const struct td_client_reply *reply)
{
    struct td_events *events = context;
    events->call = NULL;
    if (reply->code == TD_NOT_FOUND && events->first->patch.len > 0) {
        events->first->patch = TD_STR_EMPTY; /* it is gone: made anew, with its count */
    } else {
        /* A second create that finds the first one's object has done its work. */
        bool is_there = reply->code == TD_OK || reply->code == TD_EXISTS;
        events->counts.written += is_there ? 1 : 0;
        events->counts.failed += is_there ? 0 : 1;
        events_pop(events);
    }
    events_pump(events);
}

/* Send the first item that can be sent, unless one is under way. */
static void events_pump(struct td_events *events)
{
    while (events->first && !events->call) {
        const struct events_item *item = events->first;
        struct td_api_path path = {
            .version = TD_STR("v1"),
            .namespace = item->namespace,
            .plural = TD_STR("events"),
        };
        td_auto_arena turn;
        td_arena_init(&turn, TD_API_PATH_BYTES_MAX);
        struct td_client_request request;
        int code;
        if (item->patch.len > 0) {
            path.name = item->name;
            code =
                td_verb_patch(&turn, &path, TD_PATCH_STRATEGIC, item->patch, NULL, &request, NULL);
        } else {
            code = td_verb_create(&turn, &path, item->body, NULL, &request, NULL);
        }
        if (code != TD_OK) {
            events->counts.failed++; /* a namespace that no path can name */
            events_pop(events);
            continue;
        }
        request.flow = events->options.flow;
        request.deadline = WRITE_DEADLINE;
        request.is_idempotent = true; /* names are given by us and counts are absolute */
        events->call = td_client_send(events->options.client, &request, events_written, events);
    }
}

static void events_push(struct td_events *events, const struct td_event *event,
                        const struct events_write *write)
{
    struct events_item *item = td_alloc_zero(1, sizeof(*item));
    td_arena_init(&item->texts, TD_JSON_BYTES_MAX);
    td_str namespace = event->namespace.len > 0 ? event->namespace : TD_STR("default");
    item->namespace = td_arena_copy_str(&item->texts, namespace);
    item->name = td_arena_copy_str(&item->texts, td_str_from(write->name));
    td_auto_arena turn;
    td_arena_init(&turn, TD_JSON_BYTES_MAX);
    item->body = td_arena_copy_str(&item->texts, events_body(events, &turn, event, item, write));
    item->patch = write->count > 1
                      ? td_arena_copy_str(&item->texts, events_patch(&turn, event, write))
                      : TD_STR_EMPTY;
    *(events->last ? &events->last->next : &events->first) = item;
    events->last = item;
    events->count++;
}

void td_events_record(struct td_events *events, const struct td_event *event)
{
    td_auto_buf combined = td_buf_capped(TD_EVENT_MESSAGE_BYTES_MAX + 64);
    struct events_write write = {
        .now = td_clock_wall(td_loop_clock(events->options.loop)),
        .message = td_str_cut_utf8(event->message, TD_EVENT_MESSAGE_BYTES_MAX),
    };
    bool is_similar = events_is_similar(events, event, write.message, write.now);
    if (is_similar) {
        (void)td_buf_append(&combined, TD_STR("(combined from similar events): "));
        (void)td_buf_append(&combined, write.message); /* fits by its cap */
        write.message = td_str_cut_utf8(td_buf_str(&combined), TD_EVENT_MESSAGE_BYTES_MAX);
    }
    events_observe(events, event, is_similar, &write);
    if (events_is_spam(events, event, write.now)) {
        events->counts.suppressed++;
        return;
    }
    if (events->count >= TD_EVENTS_QUEUE_MAX) {
        events->counts.dropped++;
        return;
    }
    events_push(events, event, &write);
    events_pump(events);
}

struct td_events *td_events_new(const struct td_events_options *options)
{
    struct td_events *events = td_alloc_zero(1, sizeof(*events));
    td_arena_init(&events->texts, KEY_BYTES_MAX);
    td_buf_init(&events->key, KEY_BYTES_MAX);
    events->options = *options;
    events->options.component = td_arena_copy_str(&events->texts, options->component);
    events->options.host = td_arena_copy_str(&events->texts, options->host);
    td_events_cache_init(&events->similar);
    td_events_cache_init(&events->log);
    td_events_cache_init(&events->spam);
    return events;
}

void td_events_free(struct td_events *events)
{
    if (!events) {
        return;
    }
    td_client_cancel(events->call);
    while (events->first) {
        events_pop(events);
    }
    td_events_cache_done(&events->similar);
    td_events_cache_done(&events->log);
    td_events_cache_done(&events->spam);
    td_buf_done(&events->key);
    td_arena_done(&events->texts);
    td_free(events);
}

struct td_events_counts td_events_counts(const struct td_events *events)
{
    return events->counts;
}
