/*
 * What a cache holds, and telling its consumers: objects come in decoded and are compared by key,
 * uid and version with what is there, so the same object twice is told once. A list is a round:
 * whatever it did not bring is deleted at its end. Private to the cache.
 */
#pragma once

#include "base/limits.h"
#include "base/map.h"
#include "kube/cache/cache.h"
#include "kube/cache/cache_decode.h"

struct cache_subscriber {
    struct td_cache_handler handler;
    void *context;
};

struct cache_store {
    const struct td_cache_plan *plan;
    struct td_intern *names;
    void (*fill)(void *context, void *object, struct td_arena *arena);
    void (*release)(void *context, void *object);
    void *context;
    struct td_map objects; /* by td_cache_object_key; owned */
    struct cache_subscriber subscribers[TD_CACHE_HANDLERS_MAX];
    size_t subscriber_count;
    size_t bytes;
    uint32_t round;
    bool is_telling; /* a handler is running */
};

void td_cache_store_init(struct cache_store *store, const struct td_cache_plan *plan,
                         const struct td_cache_options *options);
void td_cache_store_done(struct cache_store *store); /* handlers are not called */

/* The decoded object is there now. TD_INVALID or TD_LIMIT when it cannot be held. */
int td_cache_store_put(struct cache_store *store, struct td_cache_decoded *decoded,
                       struct td_error *err);
/* The decoded object is gone. */
int td_cache_store_remove(struct cache_store *store, struct td_cache_decoded *decoded,
                          struct td_error *err);

void td_cache_store_begin(struct cache_store *store);
/* Deletes what was not seen since begin, then tells that the list is complete. */
void td_cache_store_finish(struct cache_store *store);
