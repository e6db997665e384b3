/*
 * One look at every collection: hands each change of each served resource to a function, in the
 * order of the store within a collection, and follows resources that come and go with their
 * definitions. What was stored before comes first, as additions. When a log dropped changes before
 * they were told, everything that is stored is told once more, as additions. For controllers that
 * care about all kinds; one that cares about a few names them.
 */
#pragma once

#include <stddef.h>

#include "base/str.h"
#include "local/resources/resource.h"
#include "local/store/store.h"

struct td_api;
struct td_observer;

/* `before` NULL: new. `after` NULL: gone, and then `before` is its last state. Borrowed until it
 * returns or commits. */
typedef void (*td_observer_fn)(const struct td_resource *resource, struct td_stored *before,
                               struct td_stored *after, void *context);

/* The named collections, or all when count is 0. */
struct td_observer *td_observer_new(struct td_api *api, const td_str *collections, size_t count,
                                    td_observer_fn fn, void *context);

/* Called when changes, deletions among them, were missed, right before everything is told again. */
typedef void (*td_observer_missed_fn)(void *context);
void td_observer_set_missed(struct td_observer *observer, td_observer_missed_fn fn);

void td_observer_free(struct td_observer *observer); /* NULL is accepted */
