/*
 * Assertions that stay in every build: for our own mistakes, never for the world's. A failed one
 * prints one line and aborts; nothing that arrives from a file or the network may reach one.
 */
#pragma once

#include <assert.h> /* static_assert */

#define td_assert(condition)                                                                       \
    ((condition) ? (void)0 : td_assert_failed(#condition, __FILE__, __LINE__))

_Noreturn void td_assert_failed(const char *condition, const char *file, int line);
