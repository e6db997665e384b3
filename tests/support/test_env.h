/* An environment of a test's own, as pairs of name and value. */
#pragma once

#include <stddef.h>
#include <string.h>

#include "base/os/env.h"

struct test_env {
    const char *pairs[17]; /* name, value, name, value, NULL */
};

static inline const char *test_env_get(const char *name, void *context)
{
    const struct test_env *env = context;
    for (size_t i = 0; env->pairs[i]; i += 2) {
        if (strcmp(env->pairs[i], name) == 0) {
            return env->pairs[i + 1];
        }
    }
    return NULL;
}
