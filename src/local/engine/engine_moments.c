#include "base/assert.h"
#include "base/limits.h"
#include "local/engine/engine_private.h"

void td_engine_moments_init(struct engine_moments *moments)
{
    *moments =
        (struct engine_moments){.count_max = TD_ENGINE_CONTAINERS_MAX + TD_ENGINE_ENTRIES_MAX};
}

void td_engine_moments_done(struct engine_moments *moments)
{
    td_vec_done(moments);
}

static bool moment_is_before(const struct engine_moment *a, const struct engine_moment *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void moment_put(struct engine_moments *moments, size_t place, struct engine_moment *moment)
{
    moments->items[place] = moment;
    moment->place = place + 1;
}

static void moment_rise(struct engine_moments *moments, size_t place)
{
    struct engine_moment *moment = moments->items[place];
    while (place > 0 && moment_is_before(moment, moments->items[(place - 1) / 2])) {
        moment_put(moments, place, moments->items[(place - 1) / 2]);
        place = (place - 1) / 2;
    }
    moment_put(moments, place, moment);
}

static void moment_sink(struct engine_moments *moments, size_t place)
{
    struct engine_moment *moment = moments->items[place];
    while (2 * place + 1 < moments->count) {
        size_t child = 2 * place + 1;
        if (child + 1 < moments->count &&
            moment_is_before(moments->items[child + 1], moments->items[child])) {
            child++;
        }
        if (!moment_is_before(moments->items[child], moment)) {
            break;
        }
        moment_put(moments, place, moments->items[child]);
        place = child;
    }
    moment_put(moments, place, moment);
}

void td_engine_moments_drop(struct engine_moments *moments, struct engine_moment *moment)
{
    if (moment->place == 0) {
        return;
    }
    size_t place = moment->place - 1;
    moment->place = 0;
    struct engine_moment *last = moments->items[--moments->count];
    if (last != moment) {
        moment_put(moments, place, last);
        moment_rise(moments, place);
        moment_sink(moments, last->place - 1);
    }
}

void td_engine_moments_set(struct engine_moments *moments, struct engine_moment *moment,
                           td_duration at)
{
    td_engine_moments_drop(moments, moment);
    if (at == INT64_MAX) {
        return;
    }
    struct engine_moment **end = td_vec_push(moments);
    td_assert(end != NULL); /* entries and containers are fewer */
    *end = moment;
    moment->at = at;
    moment->order = moments->orders++;
    moment_rise(moments, moments->count - 1);
}

struct engine_moment *td_engine_moments_first(const struct engine_moments *moments)
{
    return moments->count > 0 ? moments->items[0] : NULL;
}
