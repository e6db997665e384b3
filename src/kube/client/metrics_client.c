/*
 * Lists of metrics can be as large as the cluster, so an answer is walked item by item: each is
 * read as a small tree of its own, handed on, and forgotten. A list without a selector is not even
 * held whole: servers do not page it, so it is taken apart while it arrives, which costs no memory
 * and gives others on the loop their turn between two pieces.
 */
#include "kube/client/metrics_client.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/json/json.h"
#include "base/json/json_reader.h"
#include "base/limits.h"
#include "base/os/loop.h"
#include "base/timefmt.h"
#include "kube/cache/list_stream.h"
#include "kube/client/client.h"
#include "kube/paths.h"
#include "kube/quantity/quantity.h"

#define MEASURE_WINDOW_DEFAULT TD_MINUTE
#define MEASURE_PLAIN_BYTES_MAX 2048 /* quoted of an answer that is no Status */
#define MEASURE_TRIES 2              /* callers ask again soon, so a failure is reported early */

enum metrics_api { MEASURE_RESOURCE, MEASURE_CUSTOM, MEASURE_EXTERNAL };

struct td_metrics_call {
    struct td_metrics_client *client;
    enum metrics_api api;
    bool wants_one;      /* an object's metric */
    struct td_buf path;  /* what is asked, without the version for custom metrics */
    struct td_buf about; /* "get pods.metrics.k8s.io", as client-go ends its messages */
    struct td_metrics_handler pods;
    struct td_metric_value_handler values;
    void *context;
    struct td_client_call *call; /* NULL: waits for the version */
    bool is_stream;              /* the rest is for one that is read while it arrives */
    unsigned tries;
    struct td_list_stream list;
    struct td_arena arena; /* of one item */
    struct td_error broken;
    struct td_metrics_call *next;
    struct td_metrics_call *previous;
};

struct td_metrics_client {
    struct td_loop *loop;
    struct td_client *client;
    struct td_client_flow *flow;
    struct td_metrics_call *first;
    struct td_client_call *version_call;
    char version[TD_METRICS_VERSION_BYTES_MAX]; /* of custom metrics; empty: not known */
    td_time version_at;
    td_duration version_for;
};

static td_time metrics_now(const struct td_metrics_client *client)
{
    return td_clock_wall(td_loop_clock(client->loop));
}

struct td_metrics_client *td_metrics_client_new(struct td_loop *loop, struct td_client *client,
                                                struct td_client_flow *flow,
                                                td_duration version_for)
{
    struct td_metrics_client *metrics_client = td_alloc_zero(1, sizeof(*metrics_client));
    metrics_client->loop = loop;
    metrics_client->client = client;
    metrics_client->flow = flow;
    metrics_client->version_for = version_for;
    return metrics_client;
}

static struct td_metrics_call *call_new(struct td_metrics_client *client, enum metrics_api api,
                                        void *context)
{
    struct td_metrics_call *call = td_alloc_zero(1, sizeof(*call));
    call->client = client;
    call->api = api;
    call->context = context;
    td_buf_init(&call->path, TD_METRICS_PATH_BYTES_MAX);
    td_buf_init(&call->about, TD_METRICS_PATH_BYTES_MAX);
    call->next = client->first;
    if (client->first) {
        client->first->previous = call;
    }
    client->first = call;
    return call;
}

static void call_free(struct td_metrics_call *call)
{
    *(call->previous ? &call->previous->next : &call->client->first) = call->next;
    if (call->next) {
        call->next->previous = call->previous;
    }
    if (call->is_stream) {
        td_list_stream_done(&call->list);
        td_arena_done(&call->arena);
    }
    td_buf_done(&call->path);
    td_buf_done(&call->about);
    td_free(call);
}

void td_metrics_cancel(struct td_metrics_call *call)
{
    if (call->call) {
        td_client_cancel(call->call);
    }
    call_free(call);
}

void td_metrics_client_free(struct td_metrics_client *client)
{
    if (!client) {
        return;
    }
    while (client->first) {
        td_metrics_cancel(client->first);
    }
    if (client->version_call) {
        td_client_cancel(client->version_call);
    }
    td_free(client);
}

/* ---- Reading answers ---- */

static td_str metrics_words(enum metrics_api api)
{
    static const td_str words[] = {TD_STR_INIT("resource"), TD_STR_INIT("custom"),
                                   TD_STR_INIT("external")};
    return words[api];
}

/* A quantity in whole units or, `is_milli`, in thousandths, rounded up; false: not there, or none.
 */
static bool metrics_amount(struct td_arena *arena, const struct td_json *value, bool is_milli,
                           int64_t *ret)
{
    struct td_quantity quantity;
    if (!td_json_is(value, TD_JSON_TYPE_STRING) ||
        td_quantity_parse(arena, value->text, &quantity, NULL) != TD_OK) {
        return false;
    }
    *ret = is_milli ? td_quantity_milli(&quantity) : td_quantity_value(&quantity);
    return true;
}

static td_time metrics_time(const struct td_json *item)
{
    struct td_instant at;
    td_str text = td_json_text(item, "timestamp");
    return td_time_parse(text, &at, NULL) == TD_OK ? td_time_from_instant(at) : 0;
}

static void metrics_pod_item(struct td_metrics_call *call, struct td_arena *arena,
                             const struct td_json *item)
{
    const struct td_json *metadata = td_json_get(item, TD_STR("metadata"));
    const struct td_json *containers = td_json_get(item, TD_STR("containers"));
    struct td_container_metrics found = {
        .namespace = td_json_text(metadata, "namespace"),
        .pod = td_json_text(metadata, "name"),
        .time = metrics_time(item),
    };
    td_duration window;
    if (td_duration_parse(td_json_text(item, "window"), &window, NULL) == TD_OK) {
        found.window = window;
    }
    const struct td_json *c = td_json_first_item(containers);
    for (; c; c = c->next) {
        const struct td_json *usage = td_json_get(c, TD_STR("usage"));
        found.container = td_json_text(c, "name");
        found.has_cpu =
            metrics_amount(arena, td_json_get(usage, TD_STR("cpu")), true, &found.cpu_milli);
        found.has_memory =
            metrics_amount(arena, td_json_get(usage, TD_STR("memory")), false, &found.memory_bytes);
        call->pods.pod(call->context, &found);
    }
}

static void metrics_value_item(struct td_metrics_call *call, struct td_arena *arena,
                               const struct td_json *item)
{
    struct td_metric_value found = {
        .object = td_json_text(td_json_get(item, TD_STR("describedObject")), "name"),
        .time = metrics_time(item),
        .window = MEASURE_WINDOW_DEFAULT,
    };
    int64_t seconds = td_json_get_int64(item, TD_STR("windowSeconds"), -1);
    seconds = seconds < 0 ? td_json_get_int64(item, TD_STR("window"), -1) : seconds;
    if (seconds >= 0 && seconds < INT64_MAX / TD_SECOND) {
        found.window = seconds * TD_SECOND;
    }
    if (metrics_amount(arena, td_json_get(item, TD_STR("value")), true, &found.milli)) {
        call->values.value(call->context, &found);
    }
}

static int metrics_item(struct td_metrics_call *call, struct td_arena *arena, td_str text,
                        struct td_error *err)
{
    struct td_json *item;
    td_arena_reset(arena);
    int code = td_json_parse(arena, text, NULL, &item, err);
    if (code != TD_OK) {
        return code;
    }
    if (call->api == MEASURE_RESOURCE) {
        metrics_pod_item(call, arena, item);
    } else {
        metrics_value_item(call, arena, item);
    }
    return TD_OK;
}

/* The array of items, whose begin was just read. */
static int metrics_items(struct td_metrics_call *call, struct td_json_reader *reader,
                         size_t *ret_count, struct td_error *err)
{
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    enum td_json_token token;
    int code = TD_OK;
    while ((token = td_json_reader_next(reader)) == TD_JSON_BEGIN_OBJECT && code == TD_OK) {
        const char *begin = reader->at - 1;
        if (td_json_reader_skip(reader) != TD_OK) {
            return td_json_reader_error(reader, err);
        }
        td_str text = {.ptr = begin, .len = (size_t)(reader->at - begin)};
        code = metrics_item(call, &arena, text, err);
        (*ret_count)++;
    }
    if (code == TD_OK && token != TD_JSON_END_ARRAY) {
        return token == TD_JSON_ERROR ? td_json_reader_error(reader, err)
                                      : td_error_set(err, TD_INVALID, "an item is no object");
    }
    return code;
}

static int metrics_read(struct td_metrics_call *call, td_str body, size_t *ret_count,
                        struct td_error *err)
{
    struct td_json_reader reader;
    td_json_reader_init(&reader, body, TD_JSON_DEPTH_MAX);
    if (td_json_reader_next(&reader) != TD_JSON_BEGIN_OBJECT) {
        return td_error_set(err, TD_INVALID, "the answer is no JSON object");
    }
    int code = TD_OK;
    enum td_json_token token;
    while (code == TD_OK && (token = td_json_reader_next(&reader)) == TD_JSON_KEY) {
        bool is_items = td_json_reader_key_is(&reader, TD_STR("items"));
        if (!is_items) {
            code = td_json_reader_skip(&reader);
        } else if (td_json_reader_next(&reader) == TD_JSON_BEGIN_ARRAY) {
            code = metrics_items(call, &reader, ret_count, err);
        }
    }
    return reader.code != TD_OK ? td_json_reader_error(&reader, err) : code;
}

/* The words of client-go for an answer that is no Status. */
static td_str metrics_plain_words(struct td_arena *arena, const struct td_client_reply *reply)
{
    static const struct {
        int status;
        const char *words;
    } rows[] = {
        {400, "the server rejected our request for an unknown reason"},
        {401, "the server has asked for the client to provide credentials"},
        {404, "the server could not find the requested resource"},
        {405, "the server does not allow this method on the requested resource"},
        {422, "the server rejected our request due to an error in our request"},
        {429, "the server has received too many requests and has asked us to try again later"},
        {503, "the server is currently unable to handle the request"},
        {504, "the server was unable to return a response in the time allotted, but may still be "
              "processing the request"},
    };
    for (size_t i = 0; i < TD_COUNT(rows); i++) {
        if (rows[i].status == reply->status) {
            return td_str_from(rows[i].words);
        }
    }
    td_str body = td_str_trim(td_str_slice(reply->body, 0, MEASURE_PLAIN_BYTES_MAX));
    if (reply->status < 500) {
        return body;
    }
    return td_arena_format(arena,
                           "an error on the server (\"%.*s\") has prevented the request from "
                           "succeeding",
                           TD_STR_ARG(body));
}

/* What the server said as client-go words it: its own message, or the usual one for the status. */
static void metrics_refusal(const struct td_metrics_call *call, const struct td_client_reply *reply,
                            struct td_error *ret)
{
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    struct td_json *status = NULL;
    td_str message = td_str_from(reply->err.message);
    if (td_json_parse(&arena, reply->body, NULL, &status, NULL) == TD_OK &&
        td_str_equal(td_json_text(status, "status"), TD_STR("Failure"))) {
        message = td_json_get_str(status, TD_STR("message"), message);
    } else if (reply->status != 0) {
        td_str about = td_buf_str(&call->about);
        td_str words = metrics_plain_words(&arena, reply);
        message = td_arena_format(&arena, "%.*s (%.*s)", TD_STR_ARG(words), TD_STR_ARG(about));
    }
    td_str words = metrics_words(call->api);
    (void)td_error_set(ret, reply->code, "unable to fetch metrics from %.*s metrics API: %.*s",
                       TD_STR_ARG(words), TD_STR_ARG(message));
}

static void call_finish(struct td_metrics_call *call, const struct td_error *err)
{
    struct td_metrics_handler pods = call->pods;
    struct td_metric_value_handler values = call->values;
    void *context = call->context;
    bool is_pods = call->api == MEASURE_RESOURCE;
    call_free(call);
    if (is_pods) {
        pods.done(context, err->code, err);
    } else {
        values.done(context, err->code, err);
    }
}

static void call_answered(void *context, const struct td_client_reply *reply)
{
    struct td_metrics_call *call = context;
    call->call = NULL;
    struct td_error err = TD_ERROR_INIT;
    td_str words = metrics_words(call->api);
    size_t count = 0;
    if (reply->code != TD_OK) {
        metrics_refusal(call, reply, &err);
    } else {
        struct td_error reason = TD_ERROR_INIT;
        if (metrics_read(call, reply->body, &count, &reason) != TD_OK) {
            (void)td_error_set(&err, TD_INVALID,
                               "unable to fetch metrics from %.*s metrics API: %s",
                               TD_STR_ARG(words), reason.message);
        } else if (call->wants_one && count != 1) {
            (void)td_error_set(
                &err, TD_INVALID,
                "the custom metrics API server returned %zu results when we asked for exactly one",
                count);
        } else if (count == 0) {
            (void)td_error_set(&err, TD_NOT_FOUND, "no metrics returned from %.*s metrics API",
                               TD_STR_ARG(words));
        }
    }
    call_finish(call, &err);
}

/* ---- All pods, while they arrive ---- */

static void stream_send(struct td_metrics_call *call);

static int stream_item(void *context, td_str text, struct td_error *err)
{
    struct td_metrics_call *call = context;
    return metrics_item(call, &call->arena, text, err);
}

static void stream_body(void *context, td_str bytes)
{
    struct td_metrics_call *call = context;
    if (call->broken.code == TD_OK) {
        /* What is broken is reported at the end, which is near. */
        (void)td_list_stream_feed(&call->list, bytes, &call->broken);
    }
}

/* It is asked for once more only when nothing of it was handed on. */
static void stream_end(void *context, int code, const struct td_error *err)
{
    struct td_metrics_call *call = context;
    call->call = NULL;
    struct td_error failure = TD_ERROR_INIT;
    bool is_repeated = code == TD_IO && call->list.count == 0 && call->tries < MEASURE_TRIES;
    if (is_repeated) {
        stream_send(call);
        return;
    }
    td_str words = metrics_words(call->api);
    struct td_error reason = code == TD_OK ? call->broken : *err;
    if (reason.code == TD_OK) {
        (void)td_list_stream_finish(&call->list, &reason);
    }
    if (reason.code != TD_OK) {
        (void)td_error_set(&failure, reason.code,
                           "unable to fetch metrics from %.*s metrics API: %s", TD_STR_ARG(words),
                           reason.message);
    } else if (call->list.count == 0) {
        (void)td_error_set(&failure, TD_NOT_FOUND, "no metrics returned from %.*s metrics API",
                           TD_STR_ARG(words));
    }
    call_finish(call, &failure);
}

static void stream_send(struct td_metrics_call *call)
{
    static const struct td_call_events events = {.body = stream_body, .end = stream_end};
    const struct td_client_request request = {
        .flow = call->client->flow,
        .method = TD_STR("GET"),
        .path = td_buf_str(&call->path),
        .deadline = TD_METRICS_STREAM_MS * TD_MILLISECOND,
        .tries_max = MEASURE_TRIES,
    };
    call->tries++;
    call->call = td_client_stream(call->client->client, &request, &events, call);
}

/* ---- Asking ---- */

static void call_send(struct td_metrics_call *call)
{
    const struct td_client_request request = {
        .flow = call->client->flow,
        .method = TD_STR("GET"),
        .path = td_buf_str(&call->path),
        .tries_max = MEASURE_TRIES,
    };
    call->call = td_client_send(call->client->client, &request, call_answered, call);
}

struct td_metrics_call *td_metrics_get_pods(struct td_metrics_client *client, td_str namespace,
                                            td_str selector,
                                            const struct td_metrics_handler *handler, void *context)
{
    struct td_metrics_call *call = call_new(client, MEASURE_RESOURCE, context);
    call->pods = *handler;
    (void)td_buf_append(&call->path, TD_STR("/apis/metrics.k8s.io/v1beta1"));
    if (namespace.len > 0) {
        (void)td_buf_append(&call->path, TD_STR("/namespaces/"));
        td_path_escape(&call->path, namespace);
    }
    (void)td_buf_append(&call->path, TD_STR("/pods"));
    if (selector.len > 0) {
        td_path_add_query(&call->path, TD_STR("labelSelector"), selector);
    }
    (void)td_buf_append(&call->about, TD_STR("get pods.metrics.k8s.io"));
    if (selector.len == 0) {
        call->is_stream = true;
        td_list_stream_init(&call->list, stream_item, call);
        td_arena_init(&call->arena, TD_TREE_ARENA_BYTES_MAX);
        stream_send(call);
        return call;
    }
    call_send(call);
    return call;
}

struct td_metrics_call *td_metrics_get_external(struct td_metrics_client *client, td_str namespace,
                                                td_str metric, td_str selector,
                                                const struct td_metric_value_handler *handler,
                                                void *context)
{
    struct td_metrics_call *call = call_new(client, MEASURE_EXTERNAL, context);
    call->values = *handler;
    td_auto_buf lower = td_buf_capped(TD_METRICS_PATH_BYTES_MAX);
    for (size_t i = 0; i < metric.len; i++) {
        char c = metric.ptr[i];
        (void)td_buf_append_char(&lower, c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c);
    }
    (void)td_buf_append(&call->path, TD_STR("/apis/external.metrics.k8s.io/v1beta1/namespaces/"));
    td_path_escape(&call->path, namespace);
    (void)td_buf_append_char(&call->path, '/');
    td_path_escape(&call->path, td_buf_str(&lower));
    if (selector.len > 0) {
        td_path_add_query(&call->path, TD_STR("labelSelector"), selector);
    }
    (void)td_buf_append_format(&call->about, "get %.*s.external.metrics.k8s.io",
                               TD_STR_ARG(metric));
    call_send(call);
    return call;
}

/* ---- The version of custom metrics ---- */

/* Its path was begun with a version of our own; the real one stands in for it. */
static void call_send_version(struct td_metrics_call *call)
{
    td_auto_buf path = td_buf_capped(TD_METRICS_PATH_BYTES_MAX);
    (void)td_buf_append_format(&path, "/apis/custom.metrics.k8s.io/%s", call->client->version);
    (void)td_buf_append(&path, td_buf_str(&call->path));
    td_buf_reset(&call->path);
    (void)td_buf_append(&call->path, td_buf_str(&path));
    call_send(call);
}

/* The group as discovery names it: in an aggregated list, or in the old one of groups. */
static const struct td_json *version_find_group(const struct td_json *list)
{
    const struct td_json *aggregated = td_json_get(list, TD_STR("items"));
    const struct td_json *items = aggregated ? aggregated : td_json_get(list, TD_STR("groups"));
    const struct td_json *item = td_json_first_item(items);
    for (; item; item = item->next) {
        const struct td_json *named = aggregated ? td_json_get(item, TD_STR("metadata")) : item;
        if (td_str_equal(td_json_text(named, "name"), TD_STR("custom.metrics.k8s.io"))) {
            break;
        }
    }
    return item;
}

static bool version_is_known(td_str version)
{
    return td_str_equal(version, TD_STR("v1beta2")) || td_str_equal(version, TD_STR("v1beta1"));
}

/* The preferred one, which in an aggregated list is the first whose server answers, or else the
 * first that is known. */
static td_str version_choose(const struct td_json *group)
{
    td_str preferred = td_json_text(td_json_get(group, TD_STR("preferredVersion")), "version");
    if (version_is_known(preferred)) {
        return preferred;
    }
    const struct td_json *versions = td_json_get(group, TD_STR("versions"));
    const struct td_json *v = td_json_first_item(versions);
    for (; v; v = v->next) {
        td_str name = td_json_text(v, "version");
        td_str freshness = td_json_text(v, "freshness");
        if (version_is_known(name) && !td_str_equal(freshness, TD_STR("Stale"))) {
            return name;
        }
    }
    return TD_STR_EMPTY;
}

static void version_read(struct td_metrics_client *client, const struct td_client_reply *reply,
                         struct td_error *err)
{
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    struct td_json *list = NULL;
    if (reply->code != TD_OK || td_json_parse(&arena, reply->body, NULL, &list, err) != TD_OK) {
        *err = reply->code != TD_OK ? reply->err : *err;
        return;
    }
    const struct td_json *group = version_find_group(list);
    if (!group) {
        (void)td_error_set(err, TD_NOT_FOUND,
                           "no custom metrics API (custom.metrics.k8s.io) registered");
        return;
    }
    td_str version = version_choose(group);
    if (version.len == 0 || version.len >= sizeof(client->version)) {
        (void)td_error_set(err, TD_NOT_FOUND, "no known available metric versions found");
        return;
    }
    for (size_t i = 0; i < version.len; i++) {
        client->version[i] = version.ptr[i];
    }
    client->version[version.len] = '\0';
    client->version_at = metrics_now(client);
}

static void version_answered(void *context, const struct td_client_reply *reply)
{
    struct td_metrics_client *client = context;
    client->version_call = NULL;
    struct td_error cause = TD_ERROR_INIT;
    struct td_error err = TD_ERROR_INIT;
    version_read(client, reply, &cause);
    if (cause.code != TD_OK) {
        (void)td_error_set(&err, cause.code, "unable to fetch metrics from custom metrics API: %s",
                           cause.message);
    }
    /* Those that wait; a callback may ask anew or cancel another, so begin again each time. */
    struct td_metrics_call *call = client->first;
    while (call) {
        bool waits = call->api == MEASURE_CUSTOM && !call->call;
        if (waits && err.code == TD_OK) {
            call_send_version(call);
        } else if (waits) {
            call_finish(call, &err);
        }
        call = waits ? client->first : call->next;
    }
}

struct td_metrics_call *td_metrics_get_custom(struct td_metrics_client *client,
                                              const struct td_custom_query *query,
                                              const struct td_metric_value_handler *handler,
                                              void *context)
{
    struct td_metrics_call *call = call_new(client, MEASURE_CUSTOM, context);
    struct td_buf *path = &call->path;
    bool is_namespace =
        query->group.len == 0 && td_str_equal(query->resource, TD_STR("namespaces"));
    call->values = *handler;
    call->wants_one = query->object.len > 0;
    (void)td_buf_append(path, TD_STR("/namespaces/"));
    td_path_escape(path, query->namespace);
    if (is_namespace) {
        (void)td_buf_append(path, TD_STR("/metrics/"));
    } else {
        (void)td_buf_append_char(path, '/');
        td_path_escape(path, query->resource);
        if (query->group.len > 0) {
            (void)td_buf_append_char(path, '.');
            td_path_escape(path, query->group);
        }
        (void)td_buf_append_char(path, '/');
        td_path_escape(path, query->object.len > 0 ? query->object : TD_STR("*"));
        (void)td_buf_append_char(path, '/');
    }
    td_path_escape(path, query->metric);
    if (query->object.len == 0 && query->selector.len > 0) {
        td_path_add_query(path, TD_STR("labelSelector"), query->selector);
    }
    if (query->metric_selector.len > 0) {
        td_path_add_query(path, TD_STR("metricLabelSelector"), query->metric_selector);
    }
    td_str kind = is_namespace ? TD_STR("metrics") : query->resource;
    td_str name = is_namespace            ? query->metric
                  : query->object.len > 0 ? query->object
                                          : TD_STR("*");
    (void)td_buf_append_format(&call->about, "get %.*s%s%.*s.custom.metrics.k8s.io %.*s",
                               TD_STR_ARG(kind), query->group.len > 0 ? "." : "",
                               TD_STR_ARG(query->group), TD_STR_ARG(name));
    bool is_known = client->version[0] != '\0' &&
                    metrics_now(client) - client->version_at < client->version_for;
    if (is_known) {
        call_send_version(call);
    } else if (!client->version_call) {
        const struct td_client_request request = {
            .flow = client->flow,
            .method = TD_STR("GET"),
            .path = TD_STR("/apis"),
            .accept = TD_STR(TD_DISCOVERY_ACCEPT),
        };
        client->version_call = td_client_send(client->client, &request, version_answered, client);
    }
    return call;
}
