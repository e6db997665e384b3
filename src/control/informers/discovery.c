/*
 * Two maps: resources by group and kind, read from aggregated discovery in two requests, and
 * scales by their path. Each answer wakes the consumers through `settled`; a timer drops scales
 * that no controller asks for any more.
 */
#include "control/informers/discovery.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/json/json.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/os/loop.h"
#include "base/text.h"
#include "kube/client/client.h"
#include "kube/client/client_reply.h"
#include "kube/client/verbs.h"
#include "kube/meta.h"
#include "kube/objectkey.h"

#define DISCOVERY_FRESH (5 * TD_MINUTE)
#define DISCOVERY_MISS (30 * TD_SECOND) /* a kind that is missing in an older one asks again */
#define DISCOVERY_SCALE_FRESH (10 * TD_MINUTE)
#define DISCOVERY_SCALE_BAD (30 * TD_SECOND)
#define DISCOVERY_SCALE_UNUSED TD_HOUR
#define DISCOVERY_SWEEP_EVERY (10 * TD_MINUTE)

struct discovery_resource {
    struct td_served_resource resource;
    struct discovery_resource *next; /* of the same group and kind */
};

/* One answer of discovery, read. */
struct discovery_groups {
    struct td_arena arena;
    struct td_map kinds;     /* "group\nkind" to the first discovery_resource */
    struct td_map resources; /* "group\nplural" to a discovery_resource */
};

struct discovery_scale {
    struct td_api_discovery *discovery;
    td_str key; /* owned */
    struct td_arena arena;
    struct td_scale_answer answer;
    bool is_known;
    struct td_client_call *call; /* under way */
    td_time fetched;
    td_time used;
};

struct td_api_discovery {
    struct td_loop *loop;
    struct td_client *client;
    void (*settled)(void *context);
    void *context;
    struct discovery_groups *groups; /* NULL before the first */
    struct discovery_groups *coming; /* being read */
    struct td_client_call *call;     /* of discovery */
    bool is_second;                  /* of its two questions */
    td_time discovered;              /* or failed */
    struct td_error problem;         /* of the last attempt */
    struct td_map scales;
    struct td_timer *sweep;
};

static td_time discovery_now(const struct td_api_discovery *discovery)
{
    return td_clock_wall(td_loop_clock(discovery->loop));
}

/* ---- Discovery ---- */

static void discovery_free(struct discovery_groups *groups)
{
    if (groups) {
        td_map_done(&groups->kinds);
        td_map_done(&groups->resources);
        td_arena_done(&groups->arena);
        td_free(groups);
    }
}

static void discovery_add(struct discovery_groups *groups, td_str group, td_str version,
                          const struct td_json *row)
{
    struct td_arena *arena = &groups->arena;
    const struct td_json *kind = td_json_get(row, TD_STR("responseKind"));
    td_str kind_name = td_json_text(kind, "kind");
    td_str plural = td_json_text(row, "resource");
    struct discovery_resource *resource = td_arena_new(arena, struct discovery_resource);
    *resource = (struct discovery_resource){
        .resource = {
            .group = group,
            .version = version,
            .plural = td_arena_copy_str(arena, plural),
            .is_namespaced = td_str_equal(td_json_text(row, "scope"), TD_STR("Namespaced")),
        }};
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    td_str by_kind = td_arena_copy_str(arena, TD_KEY_LINES(buffer, group, kind_name));
    td_str by_plural = td_arena_copy_str(arena, TD_KEY_LINES(buffer, group, plural));
    if (td_map_has(&groups->resources, by_plural)) {
        return; /* a less preferred version */
    }
    struct discovery_resource *first = td_map_get(&groups->kinds, by_kind);
    while (first && first->next) {
        first = first->next;
    }
    if (first) {
        first->next = resource;
    } else {
        (void)td_map_put(&groups->kinds, by_kind, resource); /* full: it is not known then */
    }
    (void)td_map_put(&groups->resources, by_plural, resource);
}

static void discovery_read_group(struct discovery_groups *groups, const struct td_json *group)
{
    struct td_arena *arena = &groups->arena;
    const struct td_json *metadata = td_json_get(group, TD_STR("metadata"));
    td_str name = td_arena_copy_str(arena, td_json_text(metadata, "name"));
    const struct td_json *versions = td_json_get(group, TD_STR("versions"));
    for (const struct td_json *v = td_json_first_item(versions); v; v = v->next) {
        td_str version = td_arena_copy_str(arena, td_json_text(v, "version"));
        const struct td_json *rows = td_json_get(v, TD_STR("resources"));
        for (const struct td_json *row = td_json_first_item(rows); row; row = row->next) {
            discovery_add(groups, name, version, row);
        }
    }
}

static int discovery_read(struct discovery_groups *groups, td_str body, struct td_error *err)
{
    td_auto_arena scratch = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_json *tree;
    int code = td_json_parse(&scratch, body, NULL, &tree, err);
    if (code != TD_OK) {
        return code;
    }
    const struct td_json *items = td_json_get(tree, TD_STR("items"));
    if (!td_json_is(items, TD_JSON_TYPE_ARRAY)) {
        return td_error_set(err, TD_INVALID, "discovery: the server has no aggregated list");
    }
    for (const struct td_json *group = td_json_first_item(items); group; group = group->next) {
        discovery_read_group(groups, group);
    }
    return TD_OK;
}

static void discovery_next(struct td_api_discovery *discovery);

static void discovery_done(void *context, const struct td_client_reply *reply)
{
    struct td_api_discovery *discovery = context;
    discovery->call = NULL;
    struct td_error err = TD_ERROR_INIT;
    int code = reply->code;
    if (code == TD_OK) {
        code = discovery_read(discovery->coming, reply->body, &err);
    } else {
        err = reply->err;
    }
    if (code == TD_OK && !discovery->is_second) {
        discovery->is_second = true;
        discovery_next(discovery);
        return;
    }
    discovery->discovered = discovery_now(discovery);
    if (code == TD_OK) {
        discovery_free(discovery->groups);
        discovery->groups = discovery->coming;
        discovery->problem = (struct td_error)TD_ERROR_INIT;
    } else {
        discovery_free(discovery->coming);
        discovery->problem = err;
    }
    discovery->coming = NULL;
    discovery->settled(discovery->context);
}

static void discovery_next(struct td_api_discovery *discovery)
{
    const struct td_client_request request = {
        .method = TD_STR("GET"),
        .path = discovery->is_second ? TD_STR("/apis") : TD_STR("/api"),
        .accept = TD_STR(TD_DISCOVERY_ACCEPT),
    };
    discovery->call = td_client_send(discovery->client, &request, discovery_done, discovery);
}

static void discovery_start(struct td_api_discovery *discovery)
{
    if (discovery->call) {
        return;
    }
    discovery->coming = td_alloc_zero(1, sizeof(*discovery->coming));
    td_arena_init(&discovery->coming->arena, TD_TREE_ARENA_BYTES_MAX);
    td_map_init(&discovery->coming->kinds, TD_INFORMER_RESOURCES_MAX);
    td_map_init(&discovery->coming->resources, TD_INFORMER_RESOURCES_MAX);
    discovery->is_second = false;
    discovery_next(discovery);
}

static const struct discovery_resource *discovery_find(const struct td_map *map, td_str group,
                                                       td_str name)
{
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    return td_map_get(map, TD_KEY_LINES(buffer, group, name));
}

/* TD_OK when what is known may be used to say that something is missing. */
static int discovery_may_miss(struct td_api_discovery *discovery, struct td_error *err)
{
    bool is_old = discovery_now(discovery) - discovery->discovered >= DISCOVERY_MISS;
    bool was_tried = discovery->groups || discovery->problem.code != TD_OK;
    if (discovery->call || !was_tried || is_old) {
        discovery_start(discovery);
        return td_error_set(err, TD_BUSY, "API discovery is in progress");
    }
    if (discovery->problem.code != TD_OK) {
        return td_error_set(err, TD_IO, "%s", discovery->problem.message);
    }
    return TD_OK;
}

int td_api_discovery_resource(struct td_api_discovery *discovery, td_str group, td_str kind,
                              size_t index, struct td_served_resource *ret, struct td_error *err)
{
    const struct discovery_resource *found =
        discovery->groups ? discovery_find(&discovery->groups->kinds, group, kind) : NULL;
    if (!found) {
        int code = discovery_may_miss(discovery, err);
        return code == TD_OK
                   ? td_error_set(err, TD_NOT_FOUND, "the API server does not serve this kind")
                   : code;
    }
    if (discovery_now(discovery) - discovery->discovered >= DISCOVERY_FRESH) {
        discovery_start(discovery); /* what is known serves meanwhile */
    }
    for (size_t i = 0; i < index && found; i++) {
        found = found->next;
    }
    if (!found) {
        return td_error_set(err, TD_NOT_FOUND,
                            "the API server serves no further resource of this kind");
    }
    *ret = found->resource;
    return TD_OK;
}

/* ---- Scales ---- */

static void scale_free(struct discovery_scale *scale)
{
    td_client_cancel(scale->call);
    td_arena_done(&scale->arena);
    td_text_free(scale->key);
    td_free(scale);
}

static void scale_read(struct discovery_scale *scale, const struct td_client_reply *reply)
{
    struct td_arena *arena = &scale->arena;
    struct td_json *tree;
    struct td_meta meta;
    td_arena_reset(arena);
    scale->answer = (struct td_scale_answer){.code = reply->code};
    if (reply->code != TD_OK) {
        scale->answer.code = reply->code == TD_BUSY ? TD_IO : reply->code;
        scale->answer.message = td_reply_message(arena, reply);
        return;
    }
    struct td_error err = TD_ERROR_INIT;
    int code = td_json_parse(arena, reply->body, &(struct td_json_options){.copy_strings = true},
                             &tree, &err);
    code = code == TD_OK ? td_meta_decode(arena, tree, &meta, &err) : code;
    if (code != TD_OK) {
        scale->answer.code = code;
        scale->answer.message = td_arena_copy_str(arena, td_str_from(err.message));
        return;
    }
    scale->answer.uid = meta.uid;
    scale->answer.owners = meta.owners;
    scale->answer.owner_count = meta.owner_count;
    scale->answer.selector = td_json_text(td_json_get(tree, TD_STR("status")), "selector");
}

static void scale_answered(void *context, const struct td_client_reply *reply)
{
    struct discovery_scale *scale = context;
    scale->call = NULL;
    scale_read(scale, reply);
    scale->is_known = true;
    scale->fetched = discovery_now(scale->discovery);
    scale->discovery->settled(scale->discovery->context);
}

static void scale_ask(struct discovery_scale *scale, const struct td_api_path *path)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_client_request request;
    struct td_error err = TD_ERROR_INIT;
    if (td_verb_get(&arena, path, &request, &err) == TD_OK) {
        scale->call = td_client_send(scale->discovery->client, &request, scale_answered, scale);
        return;
    }
    scale->answer = (struct td_scale_answer){
        .code = TD_INVALID,
        .message = td_arena_copy_str(&scale->arena, td_str_from(err.message)),
    };
    scale->is_known = true;
    scale->fetched = discovery_now(scale->discovery);
}

static struct discovery_scale *scale_of(struct td_api_discovery *discovery, td_str key)
{
    struct discovery_scale *scale = td_map_get(&discovery->scales, key);
    if (!scale) {
        scale = td_alloc_zero(1, sizeof(*scale));
        scale->discovery = discovery;
        scale->key = td_text_copy(key);
        td_arena_init(&scale->arena, TD_TREE_ARENA_BYTES_MAX);
        if (td_map_put(&discovery->scales, scale->key, scale) != TD_OK) {
            scale_free(scale);
            return NULL;
        }
    }
    return scale;
}

struct td_scale_answer td_api_discovery_scale(struct td_api_discovery *discovery, td_str group,
                                              td_str resource, td_str namespace, td_str name)
{
    const struct discovery_resource *found =
        discovery->groups ? discovery_find(&discovery->groups->resources, group, resource) : NULL;
    if (!found) {
        struct td_error err = TD_ERROR_INIT;
        int code = discovery_may_miss(discovery, &err);
        return (struct td_scale_answer){.code = code == TD_OK ? TD_NOT_FOUND : code};
    }
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    td_str key = TD_KEY_LINES(buffer, group, resource, namespace, name);
    struct discovery_scale *scale = key.len > 0 ? scale_of(discovery, key) : NULL;
    if (!scale) {
        return (struct td_scale_answer){
            .code = TD_LIMIT, .message = TD_STR("too many scale subresources are being read")};
    }
    td_time now = discovery_now(discovery);
    td_duration fresh = scale->answer.code == TD_OK ? DISCOVERY_SCALE_FRESH : DISCOVERY_SCALE_BAD;
    scale->used = now;
    if (!scale->call && (!scale->is_known || now - scale->fetched >= fresh)) {
        const struct td_api_path path =
            td_path_scale(&found->resource, TD_OBJECT_KEY(namespace, name));
        scale_ask(scale, &path);
    }
    return scale->is_known ? scale->answer : (struct td_scale_answer){.code = TD_BUSY};
}

static void discovery_sweep(struct td_timer *timer, void *context)
{
    struct td_api_discovery *discovery = context;
    td_time now = discovery_now(discovery);
    for (struct td_map_walk at = {.map = &discovery->scales}; td_map_step(&at);) {
        struct discovery_scale *scale = at.value;
        if (!scale->call && now - scale->used >= DISCOVERY_SCALE_UNUSED) {
            (void)td_map_remove(&discovery->scales, scale->key);
            scale_free(scale);
        }
    }
    td_timer_set(timer, DISCOVERY_SWEEP_EVERY);
}

/* ---- The whole ---- */

struct td_api_discovery *td_api_discovery_new(struct td_loop *loop, struct td_client *client,
                                              void (*settled)(void *context), void *context)
{
    struct td_api_discovery *discovery = td_alloc_zero(1, sizeof(*discovery));
    discovery->loop = loop;
    discovery->client = client;
    discovery->settled = settled;
    discovery->context = context;
    td_map_init(&discovery->scales, TD_INFORMER_SCALES_MAX);
    discovery->sweep = td_timer_new(loop, discovery_sweep, discovery);
    td_timer_set(discovery->sweep, DISCOVERY_SWEEP_EVERY);
    return discovery;
}

void td_api_discovery_free(struct td_api_discovery *discovery)
{
    if (!discovery) {
        return;
    }
    td_client_cancel(discovery->call);
    for (struct td_map_walk at = {.map = &discovery->scales}; td_map_step(&at);) {
        scale_free(at.value);
    }
    td_map_done(&discovery->scales);
    discovery_free(discovery->groups);
    discovery_free(discovery->coming);
    td_timer_free(discovery->sweep);
    td_free(discovery);
}
