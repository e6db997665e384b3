/*
 * Server-sent events: each second of the machine's time every open page is told what time it is in
 * the cluster and which version there is, so that it asks again only for what it shows. Between two
 * of them comments are sent, so that it notices within a second when nothing comes any more. A page
 * that takes nothing is left out until it does.
 */
#include "base/os/loop.h"
#include "web/json_writer.h"
#include "web/web_private.h"

#define STREAM_BEATS 4 /* a second; at each of them something is sent, at one what is new */
#define STREAM_PENDING_MAX ((size_t)16 << 10)

static void stream_write(const struct td_web *web, struct td_buf *text)
{
    struct td_json_writer writer = {.out = text};
    (void)td_buf_append(text, TD_STR("event: tick\ndata: "));
    td_writer_open(&writer, NULL, '{');
    td_writer_int(&writer, "now", td_model_now(web->model) / TD_MILLISECOND);
    td_writer_int(&writer, "version", (int64_t)web->model->version);
    td_writer_number(&writer, "speed", web_speed(web), 2);
    td_writer_int(&writer, "workloads", (int64_t)web->model->rows.count);
    td_writer_close(&writer, '}');
    (void)td_buf_append(text, TD_STR("\n\n"));
}

static void stream_tick(struct td_timer *timer, void *context)
{
    struct td_web *web = context;
    td_auto_buf text = td_buf_capped(STREAM_PENDING_MAX);
    web->beat = (web->beat + 1) % STREAM_BEATS;
    if (web->beat == 0) {
        web_look(web);
        web_check(web);
        web_account(web);
        stream_write(web, &text);
    } else {
        (void)td_buf_append(&text, TD_STR(":\n\n"));
    }
    web->viewer_count = 0;
    for (size_t i = 0; i < WEB_VIEWERS_MAX; i++) {
        struct td_http_exchange *exchange = web->viewers[i].exchange;
        web->viewer_count += exchange != NULL;
        if (exchange && td_http_exchange_pending_bytes(exchange) < STREAM_PENDING_MAX) {
            td_http_reply_write(exchange, td_buf_str(&text));
        }
    }
    if (web->viewer_count > 0) {
        td_timer_set_machine(timer, TD_SECOND / STREAM_BEATS);
    }
}

static void stream_closed(struct td_http_exchange *exchange, void *context)
{
    struct web_viewer *viewer = context;
    (void)exchange;
    viewer->exchange = NULL;
}

void web_view_stream(const struct web_call *call)
{
    struct td_web *web = call->web;
    struct web_viewer *viewer = NULL;
    static const struct td_http_header headers[] = {
        {TD_STR_INIT("Content-Type"), TD_STR_INIT("text/event-stream")},
        {TD_STR_INIT("Cache-Control"), TD_STR_INIT("no-store")},
        {TD_STR_INIT("X-Content-Type-Options"), TD_STR_INIT("nosniff")},
    };
    for (size_t i = 0; i < WEB_VIEWERS_MAX && !viewer; i++) {
        viewer = web->viewers[i].exchange ? NULL : &web->viewers[i];
    }
    if (!viewer) {
        web_fail(call->exchange, 503, TD_STR("too many open pages: 64 at most"));
        return;
    }
    td_auto_buf text = td_buf_capped(STREAM_PENDING_MAX);
    viewer->exchange = call->exchange;
    td_http_exchange_set_callbacks(call->exchange, NULL, stream_closed, viewer);
    td_http_reply_begin(call->exchange, 200, headers, TD_COUNT(headers));
    stream_write(web, &text);
    td_http_reply_write(call->exchange, td_buf_str(&text));
    if (!td_timer_is_set(web->tick)) {
        td_timer_set_machine(web->tick, TD_SECOND / STREAM_BEATS);
    }
}

void web_stream_start(struct td_web *web)
{
    web->tick = td_timer_new(web->options.loop, stream_tick, web);
}

void web_stream_done(struct td_web *web)
{
    td_timer_free(web->tick);
}
