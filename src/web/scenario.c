/*
 * A local cluster has more to tell (latency, throttling, what an autoscaler last decided and why:
 * the same snapshot as the table of `tandem up`) and may be played with: its clock, and the faults
 * that scenarios know. A pod is killed through the API, as kubectl does it.
 */
#include "base/json/json.h"
#include "base/limits.h"
#include "base/os/loop.h"
#include "base/text.h"
#include "kube/client/client.h"
#include "kube/client/verbs.h"
#include "kube/objectkey.h"
#include "sim/world/world.h"
#include "web/json_writer.h"
#include "web/web_private.h"

#define SCENARIO_PAUSED 0.001 /* the slowest: an hour of it is four seconds */
#define SCENARIO_LOAD_MAX 10.0

/* ---- What it knows ---- */

static struct td_model_row *overlay_row(const struct td_model *model,
                                        const struct td_world_row *from)
{
    return td_model_find(model, from->load.ns, from->load.kind, from->load.name, from->by);
}

void web_overlay(void *context)
{
    struct td_web *web = context;
    td_auto_arena arena = td_arena_capped(TD_SCREEN_VIEW_BYTES_MAX);
    struct td_world_view view;
    td_world_look(web->options.world, &arena, &view);
    td_time now = td_model_now(web->model);
    for (size_t i = 0; i < view.row_count; i++) {
        const struct td_world_row *from = &view.rows[i];
        struct td_model_row *row = overlay_row(web->model, from);
        if (!row) {
            continue;
        }
        row->throttled = from->throttled_share;
        row->latency = from->latency_seconds;
        row->oom_count = from->load.kill_count;
        if (from->decided_at >= 0) {
            row->decided_at = now - view.since + from->decided_at;
            td_text_set(&row->decision, from->decision);
        }
    }
}

double web_speed(const struct td_web *web)
{
    const struct td_clock *clock = td_loop_clock(web->options.loop);
    bool is_paused = clock->kind == TD_CLOCK_ACCELERATED && clock->speed <= SCENARIO_PAUSED;
    return is_paused ? 0 : clock->speed;
}

/* ---- What is done ---- */

static void scenario_answer(const struct web_call *call)
{
    td_auto_buf body = td_buf_capped(WEB_ANSWER_BYTES_MAX);
    struct td_json_writer writer = {.out = &body};
    struct td_web *web = call->web;
    struct td_world_hand hand = td_world_hand(web->options.world);
    td_writer_open(&writer, NULL, '{');
    td_writer_number(&writer, "speed", web_speed(web), 2);
    td_writer_bool(&writer, "webhooksDown", hand.are_webhooks_down);
    td_writer_number(&writer, "load", hand.load, 2);
    td_writer_close(&writer, '}');
    web_reply_json(call->exchange, 200, &body);
}

static void scenario_clock(const struct web_call *call, const struct td_json *order)
{
    struct td_loop *loop = call->web->options.loop;
    const struct td_json *node = td_json_get(order, TD_STR("speed"));
    double speed = -1;
    bool is_number = td_json_is(node, TD_JSON_TYPE_NUMBER) && td_json_to_double(node, &speed);
    if (!is_number || speed < 0 || speed > TD_CLOCK_SPEED_MAX) {
        web_fail(call->exchange, 400, TD_STR("speed: must be a number from 0 to 10000"));
    } else if (td_loop_clock(loop)->kind != TD_CLOCK_ACCELERATED) {
        web_fail(call->exchange, 409,
                 TD_STR("this cluster follows the machine's clock: start tandem up with --speed"));
    } else {
        td_loop_set_speed(loop, speed < SCENARIO_PAUSED ? SCENARIO_PAUSED : speed);
        scenario_answer(call);
    }
}

static void scenario_killed(void *context, const struct td_client_reply *reply)
{
    (void)context;
    (void)reply; /* the page sees what becomes of it */
}

static void scenario_kill(const struct web_call *call, const struct td_json *order)
{
    td_auto_arena arena = td_arena_capped(WEB_ARENA_BYTES_MAX);
    const struct td_api_path path = {.version = TD_STR("v1"),
                                     .namespace = td_json_text(order, "ns"),
                                     .plural = TD_STR("pods"),
                                     .name = td_json_text(order, "name")};
    struct td_delete_options options = TD_DELETE_OPTIONS_INIT;
    struct td_client_request request;
    struct td_error err = TD_ERROR_INIT;
    options.grace_period_seconds = 0;
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    if (path.name.len == 0 || path.namespace.len == 0) {
        web_fail(call->exchange, 400, TD_STR("kill-pod: ns and name are needed"));
    } else if (!td_map_has(&call->web->model->pods,
                           TD_KEY_LINES(buffer, path.namespace, path.name))) {
        web_fail(call->exchange, 404, TD_STR("kill-pod: there is no such pod any more"));
    } else if (td_verb_delete(&arena, &path, &options, &request, &err) != TD_OK) {
        web_fail(call->exchange, 400, td_str_from(err.message));
    } else {
        request.flow = call->web->model->flow;
        (void)td_client_send(call->web->model->client, &request, scenario_killed, call->web);
        scenario_answer(call);
    }
}

static void scenario_node(const struct web_call *call, const struct td_json *order)
{
    struct td_error err = TD_ERROR_INIT;
    int code = td_world_lose_node(call->web->options.world, td_json_text(order, "name"),
                                  td_json_get_bool(order, TD_STR("lost"), true), &err);
    if (code != TD_OK) {
        web_fail(call->exchange, code == TD_NOT_FOUND ? 404 : 400, td_str_from(err.message));
    } else {
        scenario_answer(call);
    }
}

static void scenario_webhook(const struct web_call *call, const struct td_json *order)
{
    td_world_break_webhooks(call->web->options.world,
                            td_json_get_bool(order, TD_STR("down"), true));
    scenario_answer(call);
}

static void scenario_load(const struct web_call *call, const struct td_json *order)
{
    const struct td_json *node = td_json_get(order, TD_STR("factor"));
    double factor = 0;
    bool is_number = td_json_is(node, TD_JSON_TYPE_NUMBER) && td_json_to_double(node, &factor);
    if (!is_number || factor <= 0 || factor > SCENARIO_LOAD_MAX) {
        web_fail(call->exchange, 400, TD_STR("factor: must be a number above 0, at most 10"));
        return;
    }
    td_world_set_load(call->web->options.world, factor);
    scenario_answer(call);
}

static void scenario_look(const struct web_call *call, const struct td_json *order)
{
    (void)order;
    scenario_answer(call);
}

void web_do_scenario(const struct web_call *call)
{
    static const struct {
        td_str order;
        void (*fn)(const struct web_call *call, const struct td_json *order);
    } orders[] = {
        {TD_STR_INIT("look"), scenario_look},     {TD_STR_INIT("clock"), scenario_clock},
        {TD_STR_INIT("kill-pod"), scenario_kill}, {TD_STR_INIT("node-loss"), scenario_node},
        {TD_STR_INIT("load"), scenario_load},     {TD_STR_INIT("webhook-down"), scenario_webhook},
    };
    td_auto_arena arena = td_arena_capped(WEB_ARENA_BYTES_MAX);
    struct td_json *order;
    struct td_error err = TD_ERROR_INIT;
    if (!call->web->options.world) {
        web_fail(call->exchange, 404, TD_STR("only a local cluster has a scenario"));
        return;
    }
    if (td_json_parse(&arena, call->request->body, NULL, &order, &err) != TD_OK) {
        web_fail(call->exchange, 400, td_str_from(err.message));
        return;
    }
    for (size_t i = 0; i < TD_COUNT(orders); i++) {
        if (td_str_equal(td_json_text(order, "do"), orders[i].order)) {
            orders[i].fn(call, order);
            return;
        }
    }
    web_fail(call->exchange, 400,
             TD_STR("do: must be one of look, clock, kill-pod, node-loss, webhook-down, load"));
}
