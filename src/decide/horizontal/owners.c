/* Breadth first, per pod, over all references in their listed order. Pods of one ReplicaSet have
 * one and the same only owner, so the verdict is remembered by that reference within a step, and a
 * thousand of them cost one walk. A uid alone does not name an owner: references are written by
 * users, and the API server does not check that kind and name belong to the uid. */
#include "decide/horizontal/owners.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/error.h"
#include "decide/horizontal/pods.h"
#include "kube/objectkey.h"

#define ENTRY_ARENA_BYTES_MAX ((size_t)1 << 20)
#define MEMO_MAX ((size_t)1 << 20)

struct entry {
    struct td_arena arena;
    td_str key;
    enum td_owner_answer answer; /* FOUND, MISSING or FORBIDDEN */
    td_str uid;
    const struct td_owner_reference *owners;
    size_t owner_count;
    td_time fetched_at;
};

void td_owner_cache_init(struct td_owner_cache *cache, td_duration ttl, td_duration missing_ttl)
{
    *cache = (struct td_owner_cache){.ttl = ttl, .missing_ttl = missing_ttl};
    td_map_init(&cache->entries, TD_OWNER_CACHE_MAX);
}

static void drop_entry(struct td_owner_cache *cache, struct entry *entry)
{
    (void)td_map_remove(&cache->entries, entry->key); /* it is there */
    td_arena_done(&entry->arena);
    td_free(entry);
}

void td_owner_cache_done(struct td_owner_cache *cache)
{
    size_t position = 0;
    const struct td_map_entry *each = NULL;
    while ((each = td_map_next(&cache->entries, &position))) {
        drop_entry(cache, each->value);
    }
    td_map_done(&cache->entries);
}

static bool is_expired(const struct td_owner_cache *cache, const struct entry *entry, td_time now)
{
    td_duration ttl = entry->answer == TD_OWNER_MISSING ? cache->missing_ttl : cache->ttl;
    return now > td_hpa_add(entry->fetched_at, ttl);
}

void td_owner_cache_sweep(struct td_owner_cache *cache, td_time now)
{
    size_t position = 0;
    const struct td_map_entry *each = NULL;
    while ((each = td_map_next(&cache->entries, &position))) {
        if (is_expired(cache, each->value, now)) {
            drop_entry(cache, each->value);
        }
    }
}

static td_str write_key(char buffer[TD_OBJECT_KEY_BYTES_MAX], const struct td_owner_key *key)
{
    return TD_KEY_LINES(buffer, key->api_version, key->kind, key->namespace, key->name);
}

static struct entry *find_entry(struct td_owner_cache *cache, const struct td_owner_key *key)
{
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    return td_map_get(&cache->entries, write_key(buffer, key));
}

void td_owner_cache_forget(struct td_owner_cache *cache, const struct td_owner_key *key)
{
    struct entry *entry = find_entry(cache, key);
    if (entry) {
        drop_entry(cache, entry);
    }
}

static void tell_lookup(const struct td_owner_cache *cache, const struct td_owner_key *key,
                        bool is_hit)
{
    if (cache->looked_up) {
        cache->looked_up(cache->context, key, is_hit);
    }
}

static struct entry *new_entry(struct td_owner_cache *cache, const struct td_owner_key *key,
                               td_time now)
{
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    struct entry *old = find_entry(cache, key);
    if (old) {
        drop_entry(cache, old);
    }
    if (cache->entries.count == TD_OWNER_CACHE_MAX) {
        td_owner_cache_sweep(cache, now);
    }
    struct entry *entry = td_alloc(sizeof(*entry));
    *entry = (struct entry){.fetched_at = now, .uid = TD_STR_EMPTY};
    td_arena_init(&entry->arena, ENTRY_ARENA_BYTES_MAX);
    entry->key = td_arena_copy_str(&entry->arena, write_key(buffer, key));
    if (td_map_put(&cache->entries, entry->key, entry) < 0) {
        td_arena_done(&entry->arena);
        td_free(entry);
        return NULL;
    }
    return entry;
}

void td_owner_filter_begin(struct td_owner_filter *filter, struct td_arena *arena,
                           struct td_owner_cache *cache, const struct td_owner_target *target,
                           const struct td_pod *const *pods, size_t pod_count, td_time now)
{
    *filter = (struct td_owner_filter){
        .arena = arena,
        .cache = cache,
        .target = *target,
        .pods = pods,
        .pod_count = pod_count,
        .verdicts = td_arena_array(arena, uint8_t, pod_count),
        .now = now,
        .culprit = TD_STR_EMPTY,
    };
    td_map_init(&filter->memo, MEMO_MAX);
    td_string_set_init(&filter->wanted_keys, MEMO_MAX);
}

void td_owner_filter_done(struct td_owner_filter *filter)
{
    td_map_done(&filter->memo);
    td_string_set_done(&filter->wanted_keys);
}

static bool is_named(const struct td_owner_target *target,
                     const struct td_owner_reference *reference)
{
    return td_str_equal(reference->kind, target->kind) &&
           td_str_equal(reference->name, target->name) &&
           td_str_equal(td_group_version_parse(reference->api_version).group, target->group);
}

static bool is_target(const struct td_owner_target *target,
                      const struct td_owner_reference *reference)
{
    return target->uid.len > 0 ? td_str_equal(reference->uid, target->uid)
                               : is_named(target, reference);
}

/* Built-in workloads own their pods directly, or through ReplicaSets; asking for anything else
 * would cost requests and permissions for nothing. */
static bool can_lead_on(const struct td_owner_target *target,
                        const struct td_owner_reference *reference)
{
    bool is_apps = td_str_equal(target->group, TD_STR("apps"));
    if (is_apps && td_str_equal(target->kind, TD_STR("Deployment"))) {
        return td_str_equal(reference->kind, TD_STR("ReplicaSet")) &&
               td_str_equal(td_group_version_parse(reference->api_version).group, TD_STR("apps"));
    }
    bool is_direct =
        (is_apps && (td_str_equal(target->kind, TD_STR("StatefulSet")) ||
                     td_str_equal(target->kind, TD_STR("ReplicaSet")))) ||
        (target->group.len == 0 && td_str_equal(target->kind, TD_STR("ReplicationController")));
    return !is_direct;
}

/* A walk over what the source knows. */
struct known_walk {
    const struct td_workload_source *source;
    const struct td_owner_target *target;
    size_t visits; /* references looked at; past the cap the rest is open */
};

static bool may_lead_to(struct known_walk *walk, const struct td_owner_reference *references,
                        size_t count, size_t level)
{
    const struct td_owner_target *target = walk->target;
    for (size_t i = 0; i < count; i++) {
        const struct td_owner_reference *each = &references[i];
        if (is_named(target, each) || ++walk->visits > TD_OWNER_VISITS_MAX) {
            return true;
        }
        if (!can_lead_on(target, each) || level >= TD_OWNER_LEVELS_MAX) {
            continue;
        }
        bool is_known = td_workload_kind_of(each->kind) != TD_WORKLOAD_OTHER;
        const struct td_workload *workload =
            is_known ? walk->source->get_workload(walk->source->context, each->kind,
                                                  target->namespace, each->name)
                     : NULL;
        if (!workload || may_lead_to(walk, workload->owners, workload->owner_count, level + 1)) {
            return true;
        }
    }
    return false;
}

bool td_owner_may_own(const struct td_workload_source *source, const struct td_owner_target *target,
                      const struct td_pod *pod)
{
    struct known_walk walk = {.source = source, .target = target};
    return may_lead_to(&walk, pod->meta.owners, pod->meta.owner_count, 1);
}

/* One pod's walk. */
struct walk {
    const struct td_owner_reference *references[TD_OWNER_VISITS_MAX + 1]; /* lists to look at */
    size_t counts[TD_OWNER_VISITS_MAX + 1];
    size_t levels[TD_OWNER_VISITS_MAX + 1];
    size_t queued;
    const struct td_owner_reference *visited[TD_OWNER_VISITS_MAX];
    size_t visited_count;
    struct td_owner_key missing[TD_OWNER_VISITS_MAX]; /* owners that are not in the cache */
    size_t missing_count;
    bool is_opaque;
    bool is_too_deep;
};

bool td_owner_is_same(const struct td_owner_reference *a, const struct td_owner_reference *b)
{
    return td_str_equal(a->uid, b->uid) && td_str_equal(a->name, b->name) &&
           td_str_equal(a->kind, b->kind) && td_str_equal(a->api_version, b->api_version);
}

static bool visit(struct walk *walk, const struct td_owner_reference *reference)
{
    for (size_t i = 0; i < walk->visited_count; i++) {
        if (td_owner_is_same(walk->visited[i], reference)) {
            return false;
        }
    }
    if (walk->visited_count == TD_OWNER_VISITS_MAX) {
        walk->is_too_deep = true;
        return false;
    }
    walk->visited[walk->visited_count++] = reference;
    return true;
}

static void follow(struct td_owner_filter *filter, struct walk *walk,
                   const struct td_owner_reference *reference, size_t level)
{
    struct td_owner_key key = {
        .api_version = reference->api_version,
        .kind = reference->kind,
        .namespace = filter->target.namespace,
        .name = reference->name,
    };
    struct entry *entry = find_entry(filter->cache, &key);
    if (entry && is_expired(filter->cache, entry, filter->now)) {
        drop_entry(filter->cache, entry);
        entry = NULL;
    }
    bool is_another =
        entry && entry->answer == TD_OWNER_FOUND && !td_str_equal(entry->uid, reference->uid);
    /* Another object of that name counts as missing, and no longer than a missing one. */
    if (is_another && filter->now > td_hpa_add(entry->fetched_at, filter->cache->missing_ttl)) {
        entry = NULL;
    }
    if (!entry) {
        walk->missing[walk->missing_count++] = key;
        return;
    }
    filter->cache->hits++;
    tell_lookup(filter->cache, &key, true);
    if (entry->answer == TD_OWNER_FORBIDDEN) {
        walk->is_opaque = true;
    } else if (entry->answer == TD_OWNER_FOUND && !is_another) {
        walk->references[walk->queued] = entry->owners;
        walk->counts[walk->queued] = entry->owner_count;
        walk->levels[walk->queued] = level + 1;
        walk->queued++;
    }
}

static bool look_at_level(struct td_owner_filter *filter, struct walk *walk, size_t at)
{
    const struct td_owner_reference *references = walk->references[at];
    for (size_t i = 0; i < walk->counts[at]; i++) {
        if (is_target(&filter->target, &references[i])) {
            return true;
        }
    }
    for (size_t i = 0; i < walk->counts[at]; i++) {
        if (!can_lead_on(&filter->target, &references[i]) || !visit(walk, &references[i])) {
            continue;
        }
        if (walk->levels[at] >= TD_OWNER_LEVELS_MAX) {
            walk->is_too_deep = true;
        } else {
            follow(filter, walk, &references[i], walk->levels[at]);
        }
    }
    return false;
}

static void want(struct td_owner_filter *filter, const struct td_owner_key *key)
{
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    if (td_string_set_add(&filter->wanted_keys, write_key(buffer, key)) != TD_OK) {
        return; /* it is there; past the cap the pod stays undecided and the filter fails */
    }
    filter->wanted = td_arena_grow(filter->arena, filter->wanted, filter->wanted_count,
                                   &filter->wanted_cap, sizeof(*filter->wanted));
    filter->wanted[filter->wanted_count++] = *key;
    filter->cache->misses++;
    tell_lookup(filter->cache, key, false);
}

static enum td_owner_verdict judge(struct td_owner_filter *filter, const struct td_pod *pod)
{
    struct walk walk;
    walk.queued = 1;
    walk.visited_count = 0;
    walk.missing_count = 0;
    walk.is_opaque = false;
    walk.is_too_deep = false;
    walk.references[0] = pod->meta.owners;
    walk.counts[0] = pod->meta.owner_count;
    walk.levels[0] = 1;
    for (size_t at = 0; at < walk.queued; at++) {
        if (look_at_level(filter, &walk, at)) {
            return TD_OWNER_OWNED;
        }
    }
    for (size_t i = 0; i < walk.missing_count; i++) {
        want(filter, &walk.missing[i]);
    }
    if (walk.missing_count > 0) {
        return TD_OWNER_UNDECIDED;
    }
    filter->too_deep_count += walk.is_too_deep;
    return walk.is_opaque ? TD_OWNER_UNDETERMINED : TD_OWNER_NOT_OWNED;
}

static const uint8_t verdict_values[] = {TD_OWNER_UNDECIDED, TD_OWNER_OWNED, TD_OWNER_NOT_OWNED,
                                         TD_OWNER_UNDETERMINED};

static enum td_owner_verdict judge_once(struct td_owner_filter *filter, const struct td_pod *pod)
{
    if (pod->meta.owner_count != 1) {
        return judge(filter, pod);
    }
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    const struct td_owner_reference *owner = &pod->meta.owners[0];
    td_str key = TD_KEY_LINES(buffer, owner->api_version, owner->kind, owner->name, owner->uid);
    const uint8_t *known = td_map_get(&filter->memo, key);
    if (known) {
        return (enum td_owner_verdict) * known;
    }
    enum td_owner_verdict verdict = judge(filter, pod);
    if (key.len > 0) {
        /* The map holds pointers only; when it is full the walk is done again. */
        (void)td_map_put(&filter->memo, td_arena_copy_str(filter->arena, key),
                         (void *)(uintptr_t)&verdict_values[verdict]);
    }
    return verdict;
}

static enum td_owner_step give_up(struct td_owner_filter *filter, enum td_hpa_filter_cause cause)
{
    filter->is_failed = true;
    filter->cause = cause;
    return TD_OWNER_GIVEN_UP;
}

enum td_owner_step td_owner_filter_step(struct td_owner_filter *filter)
{
    if (filter->is_failed) {
        return TD_OWNER_GIVEN_UP;
    }
    td_map_reset(&filter->memo);
    td_string_set_reset(&filter->wanted_keys);
    filter->wanted_count = 0;
    filter->owned_count = 0;
    filter->undetermined_count = 0;
    filter->too_deep_count = 0;
    bool is_waiting = false;
    for (size_t i = 0; i < filter->pod_count; i++) {
        enum td_owner_verdict verdict = judge_once(filter, filter->pods[i]);
        filter->verdicts[i] = (uint8_t)verdict;
        filter->owned_count += verdict == TD_OWNER_OWNED;
        filter->undetermined_count += verdict == TD_OWNER_UNDETERMINED;
        is_waiting = is_waiting || verdict == TD_OWNER_UNDECIDED;
    }
    if (is_waiting) {
        return ++filter->step_count <= TD_OWNER_LEVELS_MAX ? TD_OWNER_FETCH
                                                           : give_up(filter, TD_HPA_FILTER_ERROR);
    }
    if (filter->owned_count == 0 && filter->undetermined_count > 0) {
        return give_up(filter, TD_HPA_FILTER_FORBIDDEN);
    }
    return TD_OWNER_DONE;
}

void td_owner_filter_answer(struct td_owner_filter *filter, size_t index,
                            enum td_owner_answer answer, td_str uid,
                            const struct td_owner_reference *owners, size_t owner_count)
{
    static const uint8_t causes[] = {
        [TD_OWNER_THROTTLED] = TD_HPA_FILTER_THROTTLED,
        [TD_OWNER_FAILED] = TD_HPA_FILTER_ERROR,
        [TD_OWNER_TIMED_OUT] = TD_HPA_FILTER_TIMEOUT,
        [TD_OWNER_UNMAPPED] = TD_HPA_FILTER_UNMAPPED,
    };
    td_assert(index < filter->wanted_count);
    const struct td_owner_key *key = &filter->wanted[index];
    if (answer >= TD_OWNER_FORBIDDEN) {
        filter->culprit = td_arena_format(filter->arena, "%.*s/%.*s", TD_STR_ARG(key->kind),
                                          TD_STR_ARG(key->name));
    }
    if (answer > TD_OWNER_FORBIDDEN) {
        (void)give_up(filter, (enum td_hpa_filter_cause)causes[answer]); /* the next step says so */
        return;
    }
    struct entry *entry = new_entry(filter->cache, key, filter->now);
    if (!entry) {
        (void)give_up(filter, TD_HPA_FILTER_ERROR); /* the cache is at its cap */
        return;
    }
    entry->answer = answer;
    if (answer == TD_OWNER_FOUND) {
        entry->uid = td_arena_copy_str(&entry->arena, uid);
        entry->owner_count =
            owner_count > TD_OWNER_REFERENCES_MAX ? TD_OWNER_REFERENCES_MAX : owner_count;
        entry->owners = td_owners_copy(&entry->arena, owners, entry->owner_count);
    }
}
