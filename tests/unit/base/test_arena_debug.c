/* The cases of test_arena.c in the mode where each piece is a heap block of its own. */
#define ARENA_TEST_DEBUG 1

#include "test_arena.c"
