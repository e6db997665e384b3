#include "base/assert.h"
#include "kube/client/client.h"

/* xorshift64*: jitter has to differ between processes, not to be unpredictable. */
static double backoff_random(uint64_t *state)
{
    uint64_t x = *state != 0 ? *state : UINT64_C(0x9e3779b97f4a7c15);
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *state = x;
    return (double)((x * UINT64_C(0x2545f4914f6cdd1d)) >> 11) * 0x1p-53;
}

td_duration td_backoff_next(struct td_backoff *backoff)
{
    td_assert(backoff->min > 0);
    td_assert(backoff->max >= backoff->min);
    td_duration pause = backoff->min;
    for (unsigned i = 0; i < backoff->attempts && pause < backoff->max; i++) {
        pause = pause > backoff->max / 2 ? backoff->max : pause * 2;
    }
    if (pause < backoff->max) {
        backoff->attempts++; /* stops growing with the pause, so it cannot wrap */
    }
    return (td_duration)((double)pause * (0.5 + backoff_random(&backoff->random)));
}

void td_backoff_reset(struct td_backoff *backoff)
{
    backoff->attempts = 0;
}
