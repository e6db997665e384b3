#include "kube/client/server_clock.h"

#include "base/os/loop.h"
#include "kube/client/transport.h"

void td_server_clock_follow(struct td_loop *loop, const struct td_call_head *head)
{
    struct td_clock *clock = td_loop_clock(loop);
    double speed = head->clock_speed > 0 ? head->clock_speed : 1;
    if (clock->kind == TD_CLOCK_VIRTUAL || head->date <= 0 || head->status >= 500) {
        return;
    }
    if (clock->speed != speed) {
        td_loop_set_speed(loop, speed);
    }
    td_duration second = td_clock_from_machine(clock, TD_SECOND);
    td_duration ahead_max = second > TD_CLOCKS_APART_MAX ? second : TD_CLOCKS_APART_MAX;
    td_duration behind_max = clock->kind == TD_CLOCK_REAL ? TD_CLOCKS_APART_MAX : 0;
    td_duration apart = head->date - td_clock_wall(clock);
    if (apart > behind_max || apart < -ahead_max) {
        td_clock_set_wall(clock, head->date);
    }
}
