/*
 * What `tandem up` shows while it runs: on a terminal a table that is redrawn in place, with the
 * keys q and ?; anywhere else one line for each event, at once. Log lines would tear the table, so
 * they are kept while it is there and come after it.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "base/os/env.h"
#include "base/str.h"
#include "sim/world/world.h"

struct td_error;
struct td_live;
struct td_loop;

/* Looks at standard input, output and error, at TERM, NO_COLOR and the locale. */
struct td_live *td_live_new(td_env_fn env, void *env_context);
void td_live_free(struct td_live *live); /* prints what was kept; NULL is accepted */

/* Is there a table with keys, so that they are worth telling of? */
bool td_live_has_keys(const struct td_live *live);

FILE *td_live_log_stream(struct td_live *live);

/* A td_world_fn; the context is the td_live. Events from before the begin are told after the
 * greeting. */
void td_live_happened(const struct td_world_event *event, void *context);

/* Prints the greeting (borrowed, until the end) and shows the world while the loop runs. The loop
 * is stopped by the key q and when standard output is closed. */
int td_live_begin(struct td_live *live, struct td_loop *loop, struct td_world *world,
                  td_str greeting, struct td_error *err);

/* The terminal is as it was; to be called before world and loop are freed. */
void td_live_end(struct td_live *live);
