/*
 * A bed for tests of the API handler: a virtual clock, a store in memory, the handler, and a sink
 * that collects. bed_call starts a request and gives its answer; one that goes on (a watch, a
 * write that waits) is found with is_open and followed by bed_run or ended by bed_cancel.
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/json/json.h"
#include "base/os/loop.h"
#include "local/api/api.h"
#include "local/store/store.h"

#define BED_START 1700000000 /* unix seconds of the virtual clock at the start */
#define BED_BODY_BYTES_MAX ((size_t)512 << 20)
#define BED_HEADERS_MAX 64
#define BED_TEXT_BYTES 4096

struct bed {
    struct td_clock clock;
    struct td_loop *loop;
    struct td_store *store;
    struct td_api *api;
    struct td_arena arena; /* trees of answers; lives as long as the bed */
};

struct bed_answer {
    int status;
    int head_count;
    int end_count;
    char headers[BED_HEADERS_MAX][2][256];
    size_t header_count;
    struct td_buf body;
    size_t full_at; /* the sink is full while the body has more bytes than this; 0: never */
    struct td_api_call *call; /* still going on, or NULL */
    bool cancels;             /* inside the next body, cancels its call */
};

struct bed_request {
    const char *method;
    const char *target;
    const char *accept;
    const char *content_type;
    const char *user_agent;
    td_str body;
};

static inline void bed_head(void *context, int status, const struct td_api_header *headers,
                            size_t count)
{
    struct bed_answer *answer = context;
    answer->status = status;
    answer->head_count++;
    answer->header_count = count < BED_HEADERS_MAX ? count : BED_HEADERS_MAX;
    for (size_t i = 0; i < answer->header_count; i++) {
        (void)snprintf(answer->headers[i][0], 256, "%.*s", TD_STR_ARG(headers[i].name));
        (void)snprintf(answer->headers[i][1], 256, "%.*s", TD_STR_ARG(headers[i].value));
    }
}

static inline void bed_body(void *context, td_str bytes, void (*release)(void *owner), void *owner)
{
    struct bed_answer *answer = context;
    (void)td_buf_append(&answer->body, bytes);
    if (release) {
        release(owner);
    }
    if (answer->cancels && answer->call) {
        struct td_api_call *call = answer->call;
        answer->call = NULL;
        td_api_cancel(call);
    }
}

static inline bool bed_is_full(void *context)
{
    const struct bed_answer *answer = context;
    return answer->full_at > 0 && answer->body.len > answer->full_at;
}

static inline void bed_end(void *context)
{
    struct bed_answer *answer = context;
    answer->end_count++;
    answer->call = NULL;
}

static const struct td_api_sink bed_sink = {
    .head = bed_head, .body = bed_body, .is_full = bed_is_full, .end = bed_end};

/* store_options may be NULL: in memory. */
static inline void bed_init_on(struct bed *bed, struct td_clock clock,
                               const struct td_store_options *store_options)
{
    *bed = (struct bed){.clock = clock};
    td_arena_init(&bed->arena, TD_TREE_ARENA_BYTES_MAX);
    struct td_error err = TD_ERROR_INIT;
    if (td_loop_new(&bed->clock, &bed->loop, &err) != TD_OK ||
        td_store_new(bed->loop, store_options, &bed->store, &err) != TD_OK) {
        fprintf(stderr, "%s\n", err.message);
        exit(1); /* a setup may run out of memory on purpose (tests/alloc) */
    }
    struct td_api_options options = {.loop = bed->loop, .store = bed->store, .seed = 1};
    if (td_api_new(&options, &bed->api, &err) != TD_OK) {
        fprintf(stderr, "%s\n", err.message);
        exit(1); /* a setup may run out of memory on purpose (tests/alloc) */
    }
}

static inline void bed_init_with(struct bed *bed, const struct td_store_options *store_options)
{
    bed_init_on(bed, td_clock_virtual(BED_START * TD_SECOND), store_options);
}

static inline void bed_init(struct bed *bed)
{
    bed_init_with(bed, NULL);
}

static inline void bed_done(struct bed *bed)
{
    td_api_free(bed->api);
    td_store_free(bed->store);
    td_loop_free(bed->loop);
    td_arena_done(&bed->arena);
}

static inline void bed_stop(struct td_timer *timer, void *context)
{
    (void)timer;
    td_loop_stop(context);
}

/* Lets the loop run for so long of virtual time. */
static inline void bed_run(struct bed *bed, td_duration span)
{
    struct td_timer *timer = td_timer_new(bed->loop, bed_stop, bed->loop);
    td_timer_set(timer, span);
    (void)td_loop_run(bed->loop, NULL);
    td_timer_free(timer);
}

static inline void bed_answer_init(struct bed_answer *answer)
{
    *answer = (struct bed_answer){.status = 0};
    td_buf_init(&answer->body, BED_BODY_BYTES_MAX);
}

static inline void bed_answer_done(struct bed_answer *answer)
{
    td_buf_done(&answer->body);
}

#define bed_auto_answer __attribute__((cleanup(bed_answer_done))) struct bed_answer

/* The answer must have been initialised; what it held is forgotten. */
static inline void bed_ask(struct bed *bed, const struct bed_request *request,
                           struct bed_answer *answer)
{
    static const td_str groups[] = {TD_STR_INIT("system:masters"),
                                    TD_STR_INIT("system:authenticated")};
    struct td_api_request ask = {
        .method = td_str_from(request->method),
        .target = td_str_from(request->target),
        .accept = td_str_from(request->accept),
        .content_type =
            td_str_from(request->content_type ? request->content_type : "application/json"),
        .user_agent = td_str_from(request->user_agent ? request->user_agent : "bed/1"),
        .body = request->body,
        .user = {.name = TD_STR("admin"), .groups = groups, .group_count = 2},
    };
    td_buf_reset(&answer->body);
    answer->status = answer->head_count = answer->end_count = 0;
    answer->header_count = 0;
    answer->call = NULL;
    answer->call = td_api_start(bed->api, &ask, &bed_sink, answer);
}

/* The usual request; body may be NULL. Writes that wait for a moment of the loop are waited for. */
static inline int bed_call(struct bed *bed, const char *method, const char *target,
                           const char *body, struct bed_answer *answer)
{
    struct bed_request request = {.method = method, .target = target, .body = td_str_from(body)};
    bed_ask(bed, &request, answer);
    if (answer->call && answer->head_count == 0) {
        bed_run(bed, TD_MILLISECOND);
    }
    return answer->status;
}

static inline void bed_cancel(struct bed_answer *answer)
{
    if (answer->call) {
        struct td_api_call *call = answer->call;
        answer->call = NULL;
        td_api_cancel(call);
    }
}

static inline const char *bed_header(const struct bed_answer *answer, const char *name)
{
    for (size_t i = 0; i < answer->header_count; i++) {
        if (strcmp(answer->headers[i][0], name) == 0) {
            return answer->headers[i][1];
        }
    }
    return NULL;
}

/* The body as a tree that lives as long as the bed, or NULL. */
static inline struct td_json *bed_tree(struct bed *bed, const struct bed_answer *answer)
{
    struct td_json *tree = NULL;
    const struct td_json_options options = {.copy_strings = true};
    (void)td_json_parse(&bed->arena, td_buf_str(&answer->body), &options, &tree, NULL);
    return tree;
}

/* A text of the body by its path, "" when there is none. */
static inline const char *bed_text(struct bed *bed, const struct bed_answer *answer,
                                   const char *path)
{
    const struct td_json *node = td_json_get_path(bed_tree(bed, answer), path);
    bool has_text = td_json_is(node, TD_JSON_TYPE_STRING) || td_json_is(node, TD_JSON_TYPE_NUMBER);
    return has_text ? td_arena_copy_str(&bed->arena, node->text).ptr : "";
}
