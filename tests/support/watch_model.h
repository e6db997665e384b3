/*
 * A little API server behind a transport, for tests of the list+watch cache: objects with a number
 * each, a log of all changes, lists in pages of a snapshot, watches that stay open, streaming
 * lists, compaction. Each answer can be made to fail in every way: a status, an end after so many
 * bytes, a wrong line, an ERROR event, silence. Everything runs on the loop's clock.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/os/loop.h"
#include "kube/client/transport.h"

#define MODEL_NAMES_MAX 4096
#define MODEL_CALLS_MAX 64
#define MODEL_FAULTS_MAX 256

enum model_fault_kind {
    FAULT_NONE,
    FAULT_STATUS, /* `value` is the status */
    FAULT_CUT,    /* after `value` bytes of the body, with TD_IO */
    FAULT_SHORT,  /* the same, but the answer looks complete */
    FAULT_LINE,   /* a watch: this text instead of its events, then it stays open */
    FAULT_SILENT, /* nothing comes, ever */
};

struct model_fault {
    enum model_fault_kind kind;
    int64_t value;
    const char *text;
};

/* One change: the state after it, or the last one of a deletion. */
struct model_change {
    uint64_t version;
    int name;
    int uid;
    int64_t value;
    char type; /* 'A', 'M', 'D' */
};

struct model {
    struct td_transport transport;
    struct td_loop *loop;
    struct model_change *log;
    size_t log_count;
    size_t log_cap;
    uint64_t version;
    uint64_t compacted;                       /* versions below it are gone */
    struct model_change now[MODEL_NAMES_MAX]; /* version 0: not there */
    int uids;
    bool has_streams;
    int stream_status; /* of the refusal, when it has none */
    bool has_bookmarks;
    struct model_fault faults[MODEL_FAULTS_MAX]; /* of the next answers, in this order */
    size_t fault_count;
    size_t fault_next;
    struct td_call *calls[MODEL_CALLS_MAX]; /* open */
    size_t started;
    size_t lists; /* first pages and streaming lists */
    size_t watches;
    size_t bytes; /* of the last answer that ended */
    struct td_buf log_text;
    bool is_freed;
};

struct td_call {
    struct model *model;
    struct td_call_events events;
    void *context;
    struct td_timer *timer;
    struct model_fault fault;
    struct td_buf out; /* not yet sent */
    size_t sent;
    uint64_t position; /* a watch: sent up to this version */
    int status;
    bool is_watch;
    bool ends; /* after what is in out */
    bool has_head;
    bool is_busy;
    bool is_cancelled;
};

static inline void model_object(struct td_buf *out, const struct model_change *change)
{
    (void)td_buf_append_format(
        out,
        "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"p%d\",\"namespace\":\"ns%d\",\"uid\":\"u%d\","
        "\"resourceVersion\":\"%llu\",\"labels\":{\"app\":\"a\\u0062c%lld\"},\"managedFields\":[{"
        "\"x\":1}]},\"spec\":{\"nodeName\":\"node-%lld\",\"value\":%lld}}",
        change->name, change->name % 3, change->uid, (unsigned long long)change->version,
        (long long)(change->value % 7), (long long)(change->value % 5), (long long)change->value);
}

static inline void model_line(struct td_buf *out, const char *type,
                              const struct model_change *change)
{
    (void)td_buf_append_format(out, "{\"type\":\"%s\",\"object\":", type);
    model_object(out, change);
    (void)td_buf_append(out, TD_STR("}\n"));
}

static inline void model_bookmark(struct td_buf *out, uint64_t version, bool is_end)
{
    (void)td_buf_append_format(
        out,
        "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"Pod\",\"metadata\":{\"resourceVersion\":"
        "\"%llu\"%s}}}\n",
        (unsigned long long)version,
        is_end ? ",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}" : "");
}

static inline void model_status(struct td_buf *out, int code)
{
    (void)td_buf_append_format(
        out, "{\"kind\":\"Status\",\"status\":\"Failure\",\"message\":\"no\",\"code\":%d}", code);
}

static inline void model_call_free(struct td_call *call)
{
    for (size_t i = 0; i < MODEL_CALLS_MAX; i++) {
        if (call->model->calls[i] == call) {
            call->model->calls[i] = NULL;
        }
    }
    td_timer_free(call->timer);
    td_buf_done(&call->out);
    td_free(call);
}

/* The lines a watch has not sent yet. */
static inline void model_gather(struct td_call *call)
{
    static const char *const types[] = {['A'] = "ADDED", ['M'] = "MODIFIED", ['D'] = "DELETED"};
    struct model *model = call->model;
    if (call->fault.kind == FAULT_LINE) {
        return;
    }
    for (size_t i = 0; i < model->log_count; i++) {
        const struct model_change *change = &model->log[i];
        if (change->version > call->position) {
            model_line(&call->out, types[(unsigned char)change->type], change);
            call->position = change->version;
        }
    }
}

/* Sends what is there, as far as the fault allows; the call may be gone afterwards. */
static inline void model_send(struct td_call *call)
{
    bool is_cut = false;
    td_str bytes = td_buf_str(&call->out);
    if (call->fault.kind == FAULT_CUT || call->fault.kind == FAULT_SHORT) {
        size_t left = (size_t)call->fault.value - call->sent;
        is_cut = bytes.len >= left;
        bytes = td_str_slice(bytes, 0, left);
    }
    call->is_busy = true;
    if (!call->has_head) {
        call->has_head = true;
        const struct td_call_head head = {.status = call->status,
                                          .content_type = TD_STR("application/json"),
                                          .retry_after = -1,
                                          .warning = TD_STR_EMPTY};
        if (call->events.head) {
            call->events.head(call->context, &head);
        }
    }
    if (!call->is_cancelled && bytes.len > 0) {
        call->sent += bytes.len;
        call->model->bytes = call->sent;
        /* In two pieces, so that borders of events are never those of pieces. */
        call->events.body(call->context, td_str_slice(bytes, 0, bytes.len / 2));
        if (!call->is_cancelled) {
            call->events.body(call->context, td_str_slice(bytes, bytes.len / 2, bytes.len));
        }
    }
    call->is_busy = false;
    if (call->is_cancelled) {
        model_call_free(call);
        return;
    }
    td_buf_reset(&call->out);
    if (is_cut || call->ends) {
        struct td_error err = TD_ERROR_INIT;
        int code = is_cut && call->fault.kind == FAULT_CUT
                       ? td_error_set(&err, TD_IO, "the connection was cut")
                       : TD_OK;
        struct td_call_events events = call->events;
        void *context = call->context;
        model_call_free(call);
        events.end(context, code, &err);
    }
}

static inline void model_rings(struct td_timer *timer, void *context)
{
    (void)timer;
    struct td_call *call = context;
    if (call->is_watch) {
        model_gather(call);
    }
    model_send(call);
}

static inline bool model_param(td_str path, const char *key, char *ret, size_t size)
{
    char want[64];
    int len = snprintf(want, sizeof(want), "%s=", key);
    for (size_t at = td_str_find(path, '?', 0); at < path.len;
         at = td_str_find(path, '&', at + 1)) {
        td_str rest = td_str_slice(path, at + 1, path.len);
        if (td_str_starts_with(rest, (td_str){.ptr = want, .len = (size_t)len})) {
            td_str value = td_str_slice(rest, (size_t)len, td_str_find(rest, '&', 0));
            (void)snprintf(ret, size, "%.*s", TD_STR_ARG(value));
            return true;
        }
    }
    return false;
}

/* The state at a version, by replaying the log. */
static inline void model_at(const struct model *model, uint64_t version, struct model_change *ret)
{
    memset(ret, 0, MODEL_NAMES_MAX * sizeof(*ret));
    for (size_t i = 0; i < model->log_count && model->log[i].version <= version; i++) {
        ret[model->log[i].name] = model->log[i];
        if (model->log[i].type == 'D') {
            ret[model->log[i].name].version = 0;
        }
    }
}

static inline void model_answer_status(struct td_call *call, int status)
{
    call->status = status;
    call->ends = true;
    model_status(&call->out, status);
}

static inline void model_answer_list(struct td_call *call, td_str path)
{
    struct model *model = call->model;
    char text[64];
    unsigned long long version = model->version;
    int from = 0;
    long limit = model_param(path, "limit", text, sizeof(text)) ? atol(text) : 0;
    if (model_param(path, "continue", text, sizeof(text))) {
        /* "VERSION.NAME" */
        char *end;
        version = strtoull(text, &end, 10);
        from = (int)strtol(end + 1, NULL, 10);
    } else {
        model->lists++;
    }
    call->ends = true;
    if (version < model->compacted) {
        model_answer_status(call, 410);
        return;
    }
    struct model_change *at = td_alloc_zero(MODEL_NAMES_MAX, sizeof(*at));
    model_at(model, version, at);
    (void)td_buf_append(&call->out, TD_STR("{\"kind\":\"PodList\",\"items\":["));
    long count = 0;
    int name = from;
    for (; name < MODEL_NAMES_MAX && (limit == 0 || count < limit); name++) {
        if (at[name].version != 0) {
            (void)td_buf_append(&call->out, count++ > 0 ? TD_STR(",") : TD_STR_EMPTY);
            model_object(&call->out, &at[name]);
        }
    }
    while (name < MODEL_NAMES_MAX && at[name].version == 0) {
        name++;
    }
    td_free(at);
    (void)td_buf_append_format(&call->out, "],\"metadata\":{\"resourceVersion\":\"%llu\"", version);
    if (name < MODEL_NAMES_MAX) {
        (void)td_buf_append_format(&call->out, ",\"continue\":\"%llu.%d\"", version, name);
    }
    (void)td_buf_append(&call->out, TD_STR("}}\n"));
}

static inline void model_answer_watch(struct td_call *call, td_str path)
{
    struct model *model = call->model;
    char text[64];
    model->watches++;
    call->is_watch = true;
    call->position = model->version;
    if (model_param(path, "sendInitialEvents", text, sizeof(text))) {
        model->lists++;
        if (!model->has_streams) {
            call->is_watch = false;
            model_answer_status(call, model->stream_status);
            return;
        }
        for (int i = 0; i < MODEL_NAMES_MAX; i++) {
            if (model->now[i].version != 0) {
                model_line(&call->out, "ADDED", &model->now[i]);
            }
        }
        model_bookmark(&call->out, model->version, true);
        return;
    }
    td_assert(model_param(path, "resourceVersion", text, sizeof(text)));
    call->position = strtoull(text, NULL, 10);
    if (call->position < model->compacted) {
        /* As the API server does: a watch that is open ends with an event, a new one with it too.
         */
        (void)td_buf_append(&call->out, TD_STR("{\"type\":\"ERROR\",\"object\":"));
        model_status(&call->out, 410);
        (void)td_buf_append(&call->out, TD_STR("}\n"));
        call->is_watch = false;
    }
}

static inline struct td_call *model_start(struct td_transport *transport,
                                          const struct td_call_request *request,
                                          const struct td_call_events *events, void *context)
{
    struct model *model = (struct model *)transport;
    struct td_call *call = td_alloc_zero(1, sizeof(*call));
    *call = (struct td_call){.model = model, .events = *events, .context = context, .status = 200};
    td_buf_init(&call->out, (size_t)64 << 20);
    call->timer = td_timer_new(model->loop, model_rings, call);
    size_t place = 0;
    while (model->calls[place]) {
        td_assert(++place < MODEL_CALLS_MAX);
    }
    model->calls[place] = call;
    model->started++;
    (void)td_buf_append_format(&model->log_text, "%.*s\n", TD_STR_ARG(request->path));
    if (model->fault_next < model->fault_count) {
        call->fault = model->faults[model->fault_next++];
    }
    char text[8];
    if (call->fault.kind == FAULT_STATUS) {
        model_answer_status(call, (int)call->fault.value);
    } else if (model_param(request->path, "watch", text, sizeof(text))) {
        model_answer_watch(call, request->path);
    } else {
        model_answer_list(call, request->path);
    }
    if (call->fault.kind == FAULT_LINE) {
        td_buf_reset(&call->out);
        (void)td_buf_append(&call->out, td_str_from(call->fault.text));
    }
    if (call->fault.kind != FAULT_SILENT) {
        td_timer_set(call->timer, TD_MILLISECOND);
    }
    return call;
}

static inline void model_cancel(struct td_call *call)
{
    call->is_cancelled = true;
    if (!call->is_busy) {
        model_call_free(call);
    }
}

static inline void model_free(struct td_transport *transport)
{
    struct model *model = (struct model *)transport;
    for (size_t i = 0; i < MODEL_CALLS_MAX; i++) {
        td_assert(!model->calls[i]);
    }
    td_buf_done(&model->log_text);
    td_free(model->log);
    model->is_freed = true;
}

/* `model` is the caller's storage. */
static inline void model_init(struct model *model, struct td_loop *loop)
{
    static const struct td_transport_ops ops = {
        .start = model_start, .cancel = model_cancel, .free = model_free};
    memset(model, 0, sizeof(*model));
    model->transport.ops = &ops;
    model->loop = loop;
    model->version = 100;
    model->has_streams = true;
    model->has_bookmarks = true;
    model->stream_status = 422;
    td_buf_init(&model->log_text, (size_t)64 << 20);
}

static inline void model_fault(struct model *model, enum model_fault_kind kind, int64_t value)
{
    td_assert(model->fault_count < MODEL_FAULTS_MAX);
    model->faults[model->fault_count++] = (struct model_fault){.kind = kind, .value = value};
}

/* Open watches send what is new. */
static inline void model_wake(struct model *model)
{
    for (size_t i = 0; i < MODEL_CALLS_MAX; i++) {
        struct td_call *call = model->calls[i];
        if (call && call->is_watch && call->fault.kind != FAULT_SILENT) {
            td_timer_set(call->timer, TD_MILLISECOND);
        }
    }
}

static inline void model_commit(struct model *model, struct model_change change)
{
    change.version = ++model->version;
    if (model->log_count == model->log_cap) {
        model->log_cap = model->log_cap ? model->log_cap * 2 : 64;
        model->log = td_realloc(model->log, model->log_cap * sizeof(*model->log));
    }
    model->log[model->log_count++] = change;
    model->now[change.name] = change;
    if (change.type == 'D') {
        model->now[change.name].version = 0;
    }
    model_wake(model);
}

static inline void model_put(struct model *model, int name, int64_t value)
{
    const struct model_change *now = &model->now[name];
    bool is_new = now->version == 0;
    model_commit(model, (struct model_change){.name = name,
                                              .uid = is_new ? ++model->uids : now->uid,
                                              .value = value,
                                              .type = is_new ? 'A' : 'M'});
}

static inline void model_delete(struct model *model, int name)
{
    if (model->now[name].version != 0) {
        struct model_change change = model->now[name];
        change.type = 'D';
        model_commit(model, change);
    }
}

/* Sends text on every open watch. */
static inline void model_say(struct model *model, const char *text)
{
    for (size_t i = 0; i < MODEL_CALLS_MAX; i++) {
        struct td_call *call = model->calls[i];
        if (call && call->is_watch) {
            model_gather(call);
            (void)td_buf_append(&call->out, td_str_from(text));
            td_timer_set(call->timer, TD_MILLISECOND);
        }
    }
}

static inline void model_say_bookmark(struct model *model)
{
    td_auto_buf text;
    td_buf_init(&text, 4096);
    model_bookmark(&text, model->version, false);
    model_say(model, td_buf_str(&text).ptr);
}

/* Ends every open watch: as a server does at its timeout, or as a broken connection. */
static inline void model_hang_up(struct model *model, bool is_cut)
{
    for (size_t i = 0; i < MODEL_CALLS_MAX; i++) {
        struct td_call *call = model->calls[i];
        if (call && call->is_watch) {
            call->fault =
                is_cut ? (struct model_fault){.kind = FAULT_CUT, .value = (int64_t)call->sent}
                       : call->fault;
            call->ends = true;
            td_timer_set(call->timer, TD_MILLISECOND);
        }
    }
}

/* Versions up to the newest are forgotten; open watches that are behind are not told. */
static inline void model_compact(struct model *model)
{
    model->compacted = model->version;
}

static inline size_t model_count(const struct model *model)
{
    size_t count = 0;
    for (int i = 0; i < MODEL_NAMES_MAX; i++) {
        count += model->now[i].version != 0;
    }
    return count;
}
