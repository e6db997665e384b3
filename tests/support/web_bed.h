/*
 * The page's server in the process of a test: over a scenario on a fast clock, or over a connection
 * that the test answers. A request is a line of method and path, with headers and a body; what came
 * back is status, headers and body as texts.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "local/api/transport.h"
#include "support/fake_transport.h"
#include "support/http_bed.h"
#include "support/world_bed.h"
#include "web/web.h"

#define WEB_BED_SPEED 600.0
#define WEB_BED_CONNECTIONS 16
#define WEB_BED_TURN (1 * TD_MILLISECOND) /* machine's time */

struct web_bed {
    struct world_bed world;
    struct fake_transport fakes[WEB_BED_CONNECTIONS]; /* used where there are answers */
    size_t fake_count;
    fake_fn answers;
    void *context;
    struct td_web *web;
    struct td_timer *tick;
    bool (*condition)(void *arg);
    void *arg;
    int turns_left;
    bool is_met;
    struct td_arena arena; /* of answers */
};

struct web_answer {
    int status;
    td_str head;
    td_str body;
};

static inline int web_bed_connect(void *context, struct td_transport **ret, struct td_error *err)
{
    struct web_bed *bed = context;
    (void)err;
    if (bed->answers) {
        assert_true(bed->fake_count < WEB_BED_CONNECTIONS);
        struct fake_transport *fake = &bed->fakes[bed->fake_count++];
        fake_init(fake, bed->world.loop, bed->answers, bed->context);
        *ret = &fake->transport;
        return TD_OK;
    }
    const struct td_transport_local_options options = {
        .api = td_cluster_api(td_world_cluster(bed->world.world)),
        .loop = bed->world.loop,
        .user = TD_STR("test"),
        .group = TD_STR("system:masters"),
        .user_agent = TD_STR("test"),
    };
    *ret = td_transport_local_new(&options);
    return TD_OK;
}

static inline void web_bed_turn(struct td_timer *timer, void *context)
{
    struct web_bed *bed = context;
    bed->is_met = bed->condition(bed->arg);
    if (bed->is_met || --bed->turns_left <= 0) {
        td_loop_stop(bed->world.loop);
    } else {
        td_timer_set_machine(timer, WEB_BED_TURN);
    }
}

static inline bool web_bed_until(struct web_bed *bed, bool (*condition)(void *arg), void *arg)
{
    bed->condition = condition;
    bed->arg = arg;
    bed->turns_left = BED_TURNS;
    td_timer_set_machine(bed->tick, 0);
    assert_int_equal(td_loop_run(bed->world.loop, NULL), TD_OK);
    td_timer_stop(bed->tick);
    return bed->is_met;
}

static inline bool web_bed_never(void *arg)
{
    (void)arg;
    return false;
}

static inline void web_bed_run(struct web_bed *bed, int milliseconds)
{
    bed->condition = web_bed_never;
    bed->turns_left = milliseconds;
    td_timer_set_machine(bed->tick, WEB_BED_TURN);
    assert_int_equal(td_loop_run(bed->world.loop, NULL), TD_OK);
    td_timer_stop(bed->tick);
}

/* `scenario` NULL: there is no cluster, and bed->answers says what comes back. */
static inline void web_bed_begin(struct web_bed *bed, const char *scenario, const char *objects)
{
    struct world_bed *world = &bed->world;
    *world = (struct world_bed){.err = TD_ERROR_INIT};
    assert_int_equal(temp_folder_make(&world->folder), 0);
    td_arena_init(&world->arena, TD_TREE_ARENA_BYTES_MAX);
    td_arena_init(&bed->arena, (size_t)256 << 20);
    td_buf_init(&world->lines, (size_t)16 << 20);
    world->clock =
        scenario ? td_clock_accelerated(WEB_BED_SPEED, WORLD_BED_START) : td_clock_real();
    assert_int_equal(td_loop_new(&world->clock, &world->loop, NULL), TD_OK);
    bed->tick = td_timer_new(world->loop, web_bed_turn, bed);
    if (scenario) {
        world_bed_file(world, "objects.yaml", objects);
        world_bed_start(world, scenario, -1);
        if (world->code != TD_OK) {
            fail_msg("%s", world->err.message);
        }
    }
}

/* With the options that the test wants; loop, address and connection are filled in. */
static inline void web_bed_serve(struct web_bed *bed, struct td_web_options options)
{
    struct td_error err = TD_ERROR_INIT;
    options.loop = bed->world.loop;
    options.listen = options.listen ? options.listen : "127.0.0.1:0";
    options.title = TD_STR("test");
    options.connect = web_bed_connect;
    options.context = bed;
    options.world = bed->world.world;
    if (td_web_new(&options, &bed->web, &err) != TD_OK) {
        fail_msg("%s", err.message);
    }
}

static inline void web_bed_done(struct web_bed *bed)
{
    td_web_free(bed->web);
    td_timer_free(bed->tick);
    td_arena_done(&bed->arena);
    world_bed_done(&bed->world);
}

/* ---- Requests ---- */

static inline td_str web_bed_request(struct web_bed *bed, const char *line, const char *headers,
                                     const char *body)
{
    td_str host = strstr(headers, "Host:") ? TD_STR_EMPTY
                                           : td_arena_format(&bed->arena, "Host: 127.0.0.1:%u\r\n",
                                                             (unsigned)td_web_port(bed->web));
    return td_arena_format(&bed->arena,
                           "%s HTTP/1.1\r\n%.*sConnection: close\r\n%sContent-Length: %zu\r\n"
                           "\r\n%s",
                           line, TD_STR_ARG(host), headers, strlen(body), body);
}

static inline struct web_answer web_bed_read(struct web_bed *bed, struct client *client)
{
    td_str text = td_arena_copy_str(&bed->arena, td_buf_str(&client->in));
    const char *end = memmem(text.ptr, text.len, "\r\n\r\n", 4);
    assert_non_null(end);
    size_t head = (size_t)(end - text.ptr);
    return (struct web_answer){.status = bed_status(client),
                               .head = td_str_slice(text, 0, head),
                               .body = td_str_slice(text, head + 4, text.len)};
}

static inline void web_bed_send(struct web_bed *bed, struct client *client, td_str text)
{
    struct want want = {.client = client, .text = text};
    client_connect(client, td_web_port(bed->web), NULL, 0);
    assert_true(web_bed_until(bed, want_is_sent, &want));
}

static inline void web_bed_close(struct client *client)
{
    (void)close(client->fd);
    td_buf_done(&client->in);
}

/* "GET /api/info" and "Origin: http://x\r\n"; the answer is whole. */
static inline struct web_answer web_bed_ask(struct web_bed *bed, const char *line,
                                            const char *headers, const char *body)
{
    struct client client;
    web_bed_send(bed, &client, web_bed_request(bed, line, headers, body));
    struct want want = {.client = &client};
    assert_true(web_bed_until(bed, want_has_ended, &want));
    struct web_answer answer = web_bed_read(bed, &client);
    web_bed_close(&client);
    return answer;
}

static inline struct web_answer web_bed_get(struct web_bed *bed, const char *path)
{
    return web_bed_ask(bed, td_arena_format(&bed->arena, "GET %s", path).ptr, "", "");
}

static inline struct web_answer web_bed_post(struct web_bed *bed, const char *path,
                                             const char *body)
{
    return web_bed_ask(bed, td_arena_format(&bed->arena, "POST %s", path).ptr,
                       "Content-Type: application/json\r\n", body);
}

static inline bool web_answer_has(const struct web_answer *answer, const char *text)
{
    return text_count(answer->body, td_str_from(text)) > 0;
}

static inline void web_answer_expect(const struct web_answer *answer, int status, const char *text)
{
    if (answer->status != status || !web_answer_has(answer, text)) {
        fail_msg("%d instead of %d, or without '%s': %.*s", answer->status, status, text,
                 TD_STR_ARG(td_str_slice(answer->body, 0, BED_TEXT_BYTES)));
    }
}
