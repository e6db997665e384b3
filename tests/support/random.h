/* Random numbers for tests: xorshift64 from one fixed seed a program, so that a failure comes
 * back. */
#pragma once

#include <stddef.h>
#include <stdint.h>

static inline uint64_t random_next(void)
{
    static uint64_t state = UINT64_C(0x9e3779b97f4a7c15);
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static inline size_t random_below(size_t bound)
{
    return (size_t)(random_next() % bound);
}
