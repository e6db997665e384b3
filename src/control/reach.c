/*
 * While nothing is wrong only the informers' errors are looked at, which costs the server nothing;
 * one that could not reach it is a suspicion, and GET /version proves or refutes it.
 */
#include "control/reach.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/os/log.h"
#include "base/os/loop.h"
#include "base/timefmt.h"
#include "control/informers/informers.h"
#include "kube/cache/cache.h"
#include "kube/client/client.h"

#define REACH_DEADLINE (1500 * TD_MILLISECOND)
#define REACH_LOOK (250 * TD_MILLISECOND)
#define REACH_PAUSE_MIN (2 * TD_SECOND)
#define REACH_PAUSE_MAX TD_MINUTE

struct td_reach {
    struct td_reach_options options;
    struct td_timer *timer;
    struct td_client_call *call;
    unsigned tries;    /* that failed since it was last reached */
    td_duration pause; /* before the next question; 0: the server was reached */
    bool follows;      /* the server's clock, and it was said */
    double speed;      /* that was said last */
};

static bool reach_is_suspect(const struct td_reach *reach)
{
    for (size_t kind = 0; kind < TD_INFORMER_COUNT; kind++) {
        const struct td_cache *cache =
            td_informers_cache(reach->options.informers, (enum td_informer_kind)kind);
        int code = cache ? td_cache_error(cache)->code : TD_OK;
        if (code == TD_IO || code == TD_TIMEOUT || code == TD_BUSY) {
            return true;
        }
    }
    return false;
}

static void reach_ignore(void *context, td_str bytes)
{
    (void)context;
    (void)bytes;
}

/* An answer of any kind is one. */
static void reach_answered(void *context, int code, const struct td_error *err)
{
    struct td_reach *reach = context;
    struct td_log *log = reach->options.log;
    reach->call = NULL;
    if (code != TD_IO && code != TD_TIMEOUT && code != TD_BUSY) {
        if (reach->pause > 0) {
            td_log_line(log, TD_LOG_INFO, "the API server is reached again",
                        TD_LOG_S("server", reach->options.server));
        }
        reach->pause = 0;
        reach->tries = 0;
        td_timer_set_machine(reach->timer, REACH_LOOK);
        return;
    }
    reach->pause = reach->pause == 0 ? REACH_PAUSE_MIN : 2 * reach->pause;
    reach->pause = reach->pause < REACH_PAUSE_MAX ? reach->pause : REACH_PAUSE_MAX;
    char text[TD_DURATION_TEXT_BYTES];
    (void)td_duration_format(reach->pause, text);
    char message[96]; /* one for each try, so that none is taken for a repetition */
    (void)snprintf(message, sizeof(message), "cannot reach the API server (try %u); is it running?",
                   ++reach->tries);
    td_log_line(log, TD_LOG_ERROR, message, TD_LOG_S("server", reach->options.server),
                TD_LOG_C("error", err->message), TD_LOG_C("next_try_in", text));
    td_timer_set_machine(reach->timer, reach->pause);
}

static void reach_ask(struct td_reach *reach)
{
    static const struct td_call_events events = {.body = reach_ignore, .end = reach_answered};
    const struct td_client_request request = {
        .flow = reach->options.flow,
        .method = TD_STR("GET"),
        .path = TD_STR("/version"),
        .deadline = REACH_DEADLINE,
    };
    reach->call = td_client_stream(reach->options.client, &request, &events, reach);
}

/* The log itself goes by the machine's time, so that it can be laid beside others. */
static void reach_tell_clock(struct td_reach *reach)
{
    const struct td_clock *clock = td_loop_clock(reach->options.loop);
    bool follows = clock->kind == TD_CLOCK_ACCELERATED;
    if (follows == reach->follows && clock->speed == reach->speed) {
        return;
    }
    char now[TD_TIME_TEXT_BYTES];
    (void)td_time_format(td_time_to_instant(td_clock_wall(clock)), 0, now);
    td_log_line(reach->options.log, TD_LOG_INFO,
                "time goes by the API server's clock, not by this machine's", TD_LOG_C("now", now),
                TD_LOG_F("speed", clock->speed));
    reach->follows = follows;
    reach->speed = clock->speed;
}

static void reach_rings(struct td_timer *timer, void *context)
{
    struct td_reach *reach = context;
    reach_tell_clock(reach);
    if (reach->pause > 0 || reach_is_suspect(reach)) {
        reach_ask(reach);
    } else {
        td_timer_set_machine(timer, REACH_LOOK);
    }
}

struct td_reach *td_reach_new(const struct td_reach_options *options)
{
    struct td_reach *reach = td_alloc_zero(1, sizeof(*reach));
    reach->options = *options;
    reach->follows = td_loop_clock(options->loop)->kind == TD_CLOCK_ACCELERATED;
    reach->speed = td_loop_clock(options->loop)->speed;
    reach->timer = td_timer_new(options->loop, reach_rings, reach);
    return reach;
}

void td_reach_start(struct td_reach *reach)
{
    reach_ask(reach);
}

void td_reach_free(struct td_reach *reach)
{
    if (!reach) {
        return;
    }
    td_client_cancel(reach->call);
    td_timer_free(reach->timer);
    td_free(reach);
}
