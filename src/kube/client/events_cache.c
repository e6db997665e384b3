#include "kube/client/events_cache.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/error.h"

void td_events_cache_init(struct events_cache *cache)
{
    *cache = (struct events_cache){.newest = NULL};
    td_map_init(&cache->map, TD_EVENTS_CACHE_MAX);
}

static void cache_unlink(struct events_cache *cache, struct events_entry *entry)
{
    *(entry->newer ? &entry->newer->older : &cache->newest) = entry->older;
    *(entry->older ? &entry->older->newer : &cache->oldest) = entry->newer;
}

static void cache_link(struct events_cache *cache, struct events_entry *entry)
{
    entry->newer = NULL;
    entry->older = cache->newest;
    *(cache->newest ? &cache->newest->newer : &cache->oldest) = entry;
    cache->newest = entry;
}

static void cache_drop(struct events_cache *cache, struct events_entry *entry)
{
    (void)td_map_remove(&cache->map, entry->key); /* the value is the entry */
    cache_unlink(cache, entry);
    td_free(entry);
}

void td_events_cache_done(struct events_cache *cache)
{
    while (cache->oldest) {
        cache_drop(cache, cache->oldest);
    }
    td_map_done(&cache->map);
}

struct events_entry *td_events_cache_use(struct events_cache *cache, td_str key)
{
    struct events_entry *entry = td_map_get(&cache->map, key);
    if (entry) {
        cache_unlink(cache, entry);
        cache_link(cache, entry);
        return entry;
    }
    if (cache->map.count == TD_EVENTS_CACHE_MAX) {
        cache_drop(cache, cache->oldest);
    }
    entry = td_alloc_zero(1, sizeof(*entry) + key.len);
    char *copy = (char *)(entry + 1);
    memcpy(copy, key.ptr ? key.ptr : "", key.len);
    entry->key = (td_str){.ptr = copy, .len = key.len};
    int code = td_map_put(&cache->map, entry->key, entry);
    td_assert(code == TD_OK); /* room was made above */
    cache_link(cache, entry);
    return entry;
}
