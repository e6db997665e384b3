/*
 * What the event correlator remembers, by key, at most TD_EVENTS_CACHE_MAX entries: the one that
 * was used longest ago makes room. Private to events.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"
#include "base/map.h"
#include "base/os/clock.h"
#include "base/str.h"

struct events_entry {
    struct events_entry *newer;
    struct events_entry *older;
    td_str key; /* owned by the entry */
    union {
        struct {
            uint64_t messages[TD_EVENTS_SIMILAR_MAX]; /* hashes, oldest first */
            size_t message_count;
            td_time last;
        } similar;
        struct {
            int64_t count;
            td_time first;
            char name[256];
        } log;
        struct {
            double tokens;
            td_time at;
            int is_known; /* 0 in a new entry */
        } spam;
    };
};

struct events_cache {
    struct td_map map;
    struct events_entry *newest;
    struct events_entry *oldest;
};

void td_events_cache_init(struct events_cache *cache);
void td_events_cache_done(struct events_cache *cache);

/* The entry under `key`, zeroed when it is new, and now the newest. */
struct events_entry *td_events_cache_use(struct events_cache *cache, td_str key);
