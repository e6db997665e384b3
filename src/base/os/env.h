/*
 * The environment as a function, so that a function that depends on it says so and a test passes
 * its own. Values are borrowed from the process and never changed by us.
 */
#pragma once

/* The value of `name`, or NULL when it is not set. */
typedef const char *(*td_env_fn)(const char *name, void *context);

/* That of the process; `context` is not looked at. */
const char *td_env_get(const char *name, void *context);
