/*
 * Owners that a filter wants. Those of the kinds that the informers watch cost nothing; what is
 * kept of them is dropped when they change. Others are read from the API server, metadata only;
 * several reconciles that want the same one share the request.
 */
#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/text.h"
#include "base/vec.h"
#include "control/horizontal/horizontal_private.h"
#include "kube/client/client.h"
#include "kube/client/verbs.h"
#include "kube/objectkey.h"

#define OWNERS_ACCEPT "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

struct owners_waiter {
    struct horizontal_sync *sync;
    size_t index; /* in the filter's wishes */
};

struct owners_fetch {
    struct td_horizontal_loop *loop;
    td_str key; /* owned */
    struct td_client_call *call;
    struct {
        TD_VEC_FIELDS(struct owners_waiter);
    } waiters;
};

/* ---- From the informers ---- */

static const struct {
    td_str api_version;
    td_str kind;
    enum td_informer_kind informers;
} owners_known[] = {
    {TD_STR_INIT("apps/v1"), TD_STR_INIT("ReplicaSet"), TD_INFORMER_REPLICA_SETS},
    {TD_STR_INIT("apps/v1"), TD_STR_INIT("Deployment"), TD_INFORMER_DEPLOYMENTS},
    {TD_STR_INIT("apps/v1"), TD_STR_INIT("StatefulSet"), TD_INFORMER_STATEFUL_SETS},
    {TD_STR_INIT("apps/v1"), TD_STR_INIT("DaemonSet"), TD_INFORMER_DAEMON_SETS},
    {TD_STR_INIT("batch/v1"), TD_STR_INIT("Job"), TD_INFORMER_JOBS},
    {TD_STR_INIT("batch/v1"), TD_STR_INIT("CronJob"), TD_INFORMER_CRON_JOBS},
    {TD_STR_INIT("v1"), TD_STR_INIT("ReplicationController"), TD_INFORMER_REPLICATION_CONTROLLERS},
};
#define OWNERS_KNOWN (sizeof(owners_known) / sizeof(owners_known[0]))

/* What the informers hold of it, or NULL. */
static const struct td_workload *owners_find(const struct td_workload_source *source,
                                             const struct td_owner_key *key)
{
    for (size_t i = 0; i < OWNERS_KNOWN; i++) {
        if (td_str_equal(owners_known[i].api_version, key->api_version) &&
            td_str_equal(owners_known[i].kind, key->kind)) {
            return source->get_workload(source->context, key->kind, key->namespace, key->name);
        }
    }
    return NULL;
}

/* One that was made a moment ago may not be in the informers yet, so what is missing there is asked
 * for. */
static bool owners_answer_here(struct horizontal_sync *sync, size_t index)
{
    const struct td_workload *workload =
        owners_find(td_informers_source(sync->loop->options.control.informers),
                    &sync->seen.filter.wanted[index]);
    if (workload) {
        td_owner_filter_answer(&sync->seen.filter, index, TD_OWNER_FOUND, workload->uid,
                               workload->owners, workload->owner_count);
    }
    return workload;
}

static void owners_forget(void *context, const void *object)
{
    const struct horizontal_owner_kind *kind = context;
    const struct td_cache_head *head = object;
    const struct td_owner_key key = {
        .api_version = owners_known[kind->row].api_version,
        .kind = owners_known[kind->row].kind,
        .namespace = head->namespace,
        .name = head->name,
    };
    td_owner_cache_forget(&kind->loop->owners, &key);
}

static void owners_changed(void *context, const void *before, const void *after)
{
    if (!td_informers_has_same_owners(before, after)) {
        owners_forget(context, after);
    }
}

void horizontal_owners_init(struct td_horizontal_loop *loop)
{
    static const struct td_cache_handler handler = {
        .added = owners_forget, .changed = owners_changed, .deleted = owners_forget};
    td_owner_cache_init(&loop->owners, loop->options.owner_ttl, loop->options.sync_period);
    loop->owners.looked_up = horizontal_metrics_lookup;
    loop->owners.context = loop;
    td_map_init(&loop->fetches, TD_OWNER_CACHE_MAX);
    for (size_t i = 0; i < OWNERS_KNOWN; i++) {
        loop->owner_kinds[i] = (struct horizontal_owner_kind){.loop = loop, .row = i};
        td_informers_subscribe(loop->options.control.informers, owners_known[i].informers, &handler,
                               &loop->owner_kinds[i]);
    }
}

/* ---- From the API server ---- */

static void owners_fetch_free(struct owners_fetch *fetch)
{
    td_client_cancel(fetch->call);
    td_vec_done(&fetch->waiters);
    td_text_free(fetch->key);
    td_free(fetch);
}

static enum td_owner_answer owners_answer_of(const struct td_client_reply *reply)
{
    switch (reply->code) {
    case TD_OK:
        return TD_OWNER_FOUND;
    case TD_NOT_FOUND:
        return TD_OWNER_MISSING;
    case TD_DENIED:
        return TD_OWNER_FORBIDDEN;
    case TD_BUSY:
        return TD_OWNER_THROTTLED;
    case TD_TIMEOUT:
        return TD_OWNER_TIMED_OUT;
    default:
        return TD_OWNER_FAILED;
    }
}

static void owners_answer(const struct owners_waiter *waiter, enum td_owner_answer answer,
                          const struct td_meta *meta)
{
    struct horizontal_sync *sync = waiter->sync;
    td_owner_filter_answer(&sync->seen.filter, waiter->index, answer, meta->uid, meta->owners,
                           meta->owner_count);
    sync->owners_open--;
}

static void owners_fetched(void *context, const struct td_client_reply *reply)
{
    struct owners_fetch *fetch = context;
    fetch->call = NULL;
    (void)td_map_remove(&fetch->loop->fetches, fetch->key); /* it is there */
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    enum td_owner_answer answer = owners_answer_of(reply);
    struct td_meta meta = {.uid = TD_STR_EMPTY};
    struct td_json *tree;
    if (answer == TD_OWNER_FOUND &&
        (td_json_parse(&arena, reply->body, NULL, &tree, NULL) != TD_OK ||
         td_meta_decode(&arena, tree, &meta, NULL) != TD_OK)) {
        answer = TD_OWNER_FAILED;
    }
    for (size_t i = 0; i < fetch->waiters.count; i++) {
        struct horizontal_sync *sync = fetch->waiters.items[i].sync;
        owners_answer(&fetch->waiters.items[i], answer, &meta);
        if (sync->owners_open == 0) {
            horizontal_sync_resume(sync, horizontal_sync_filter);
        }
    }
    owners_fetch_free(fetch);
}

static bool owners_send(struct owners_fetch *fetch, const struct td_api_path *path)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_client_request request;
    if (td_verb_get(&arena, path, &request, NULL) != TD_OK) {
        return false;
    }
    request.flow = fetch->loop->options.control.flow;
    request.accept = TD_STR(OWNERS_ACCEPT);
    request.deadline = HORIZONTAL_DEADLINE;
    fetch->call =
        td_client_send(fetch->loop->options.control.client, &request, owners_fetched, fetch);
    return true;
}

/* Discovery's word for a kind that it does not list is guessed, as upstream's prototype does: the
 * server says then whether it exists. TD_BUSY: discovery is under way. */
static int owners_resource(struct horizontal_sync *sync, const struct td_owner_key *key,
                           struct td_served_resource *ret)
{
    struct td_group_version gv = td_group_version_parse(key->api_version);
    struct td_error err = TD_ERROR_INIT;
    int code = td_informers_resource(sync->loop->options.control.informers, gv.group, key->kind, 0,
                                     ret, &err);
    if (code != TD_NOT_FOUND) {
        return code;
    }
    td_str plural = td_arena_format(&sync->arena, "%.*ss", TD_STR_ARG(key->kind));
    char *bytes = td_arena_alloc(&sync->arena, plural.len);
    for (size_t i = 0; i < plural.len; i++) {
        char c = plural.ptr[i];
        bytes[i] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
    }
    *ret = (struct td_served_resource){
        .group = gv.group,
        .version = gv.version,
        .plural = {.ptr = bytes, .len = plural.len},
        .is_namespaced = true,
    };
    return TD_OK;
}

static struct owners_fetch *owners_fetch_of(struct td_horizontal_loop *loop, td_str key)
{
    struct owners_fetch *fetch = td_map_get(&loop->fetches, key);
    if (!fetch) {
        fetch = td_alloc_zero(1, sizeof(*fetch));
        fetch->loop = loop;
        fetch->key = td_text_copy(key);
        fetch->waiters.count_max = TD_HPA_TRACKED_MAX;
        if (td_map_put(&loop->fetches, fetch->key, fetch) != TD_OK) {
            owners_fetch_free(fetch);
            return NULL;
        }
    }
    return fetch;
}

/* False: it cannot be asked for. */
static bool owners_ask(struct horizontal_sync *sync, size_t index)
{
    const struct td_owner_key *wanted = &sync->seen.filter.wanted[index];
    struct td_served_resource resource;
    if (owners_resource(sync, wanted, &resource) != TD_OK) {
        return false;
    }
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    td_str key =
        TD_KEY_LINES(buffer, wanted->api_version, wanted->kind, wanted->namespace, wanted->name);
    struct owners_fetch *fetch = key.len > 0 ? owners_fetch_of(sync->loop, key) : NULL;
    struct owners_waiter *waiter = fetch ? td_vec_push(&fetch->waiters) : NULL;
    if (!waiter) {
        return false;
    }
    *waiter = (struct owners_waiter){.sync = sync, .index = index};
    const struct td_api_path path = {
        .group = resource.group,
        .version = resource.version,
        .namespace = resource.is_namespaced ? wanted->namespace : TD_STR_EMPTY,
        .plural = resource.plural,
        .name = wanted->name,
    };
    if (!fetch->call && !owners_send(fetch, &path)) {
        (void)td_map_remove(&sync->loop->fetches, fetch->key);
        owners_fetch_free(fetch); /* a fetch that was never sent has no other waiter */
        return false;
    }
    sync->owners_open++;
    return true;
}

static bool owners_are_busy(struct horizontal_sync *sync)
{
    for (size_t i = 0; i < sync->seen.filter.wanted_count; i++) {
        struct td_served_resource resource;
        if (owners_resource(sync, &sync->seen.filter.wanted[i], &resource) == TD_BUSY) {
            return true;
        }
    }
    return false;
}

static bool owners_all_here(struct horizontal_sync *sync)
{
    const struct td_workload_source *source =
        td_informers_source(sync->loop->options.control.informers);
    for (size_t i = 0; i < sync->seen.filter.wanted_count; i++) {
        const struct td_owner_key *key = &sync->seen.filter.wanted[i];
        if (!owners_find(source, key)) {
            return false;
        }
    }
    return true;
}

void horizontal_owners_fetch(struct horizontal_sync *sync)
{
    if (!owners_all_here(sync) && owners_are_busy(sync)) {
        horizontal_sync_wait(sync, horizontal_owners_fetch);
        return;
    }
    sync->owners_open = 1; /* until all are asked for */
    for (size_t i = 0; i < sync->seen.filter.wanted_count; i++) {
        if (!owners_answer_here(sync, i) && !owners_ask(sync, i)) {
            td_owner_filter_answer(&sync->seen.filter, i, TD_OWNER_UNMAPPED, TD_STR_EMPTY, NULL, 0);
        }
    }
    if (--sync->owners_open == 0) {
        horizontal_sync_filter(sync);
    }
}

void horizontal_owners_leave(struct horizontal_sync *sync)
{
    for (struct td_map_walk at = {.map = &sync->loop->fetches};
         sync->owners_open > 0 && td_map_step(&at);) {
        struct owners_fetch *fetch = at.value;
        for (size_t i = fetch->waiters.count; i > 0; i--) {
            if (fetch->waiters.items[i - 1].sync == sync) {
                td_vec_remove(&fetch->waiters, i - 1);
                sync->owners_open--;
            }
        }
    }
}

void horizontal_owners_done(struct td_horizontal_loop *loop)
{
    for (struct td_map_walk at = {.map = &loop->fetches}; td_map_step(&at);) {
        owners_fetch_free(at.value);
    }
    td_map_done(&loop->fetches);
    td_owner_cache_done(&loop->owners);
}
