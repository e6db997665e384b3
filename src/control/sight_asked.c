#include "control/sight_asked.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/json/json.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/os/loop.h"
#include "base/text.h"
#include "kube/client/client.h"
#include "kube/client/verbs.h"
#include "kube/meta.h"

#define ASKED_DISCOVERY_FRESH (5 * TD_MINUTE)
#define ASKED_DISCOVERY_MISS                                                                       \
    (30 * TD_SECOND) /* a kind that is missing in an older one asks again */
#define ASKED_SCALE_FRESH (10 * TD_MINUTE)
#define ASKED_SCALE_BAD (30 * TD_SECOND)
#define ASKED_SCALE_UNUSED TD_HOUR
#define ASKED_SWEEP_EVERY (10 * TD_MINUTE)

struct asked_resource {
    struct td_sight_resource resource;
    struct asked_resource *next; /* of the same group and kind */
};

/* One answer of discovery, read. */
struct asked_discovery {
    struct td_arena arena;
    struct td_map kinds;     /* "group\nkind" to the first asked_resource */
    struct td_map resources; /* "group\nplural" to an asked_resource */
};

struct asked_scale {
    struct td_sight_asked *asked;
    td_str key; /* owned */
    struct td_arena arena;
    struct td_scale_answer answer;
    bool is_known;
    struct td_client_call *call; /* under way */
    td_time fetched;
    td_time used;
};

struct td_sight_asked {
    struct td_loop *loop;
    struct td_client *client;
    void (*settled)(void *context);
    void *context;
    struct asked_discovery *discovery; /* NULL before the first */
    struct asked_discovery *coming;    /* being read */
    struct td_client_call *call;       /* of discovery */
    bool is_second;                    /* of its two questions */
    td_time discovered;                /* or failed */
    struct td_error trouble;           /* of the last attempt */
    struct td_map scales;
    struct td_timer *sweep;
};

static td_time asked_now(const struct td_sight_asked *asked)
{
    return td_clock_wall(td_loop_clock(asked->loop));
}

/* ---- Discovery ---- */

static void discovery_free(struct asked_discovery *discovery)
{
    if (discovery) {
        td_map_done(&discovery->kinds);
        td_map_done(&discovery->resources);
        td_arena_done(&discovery->arena);
        td_free(discovery);
    }
}

static void discovery_add(struct asked_discovery *discovery, td_str group, td_str version,
                          const struct td_json *row)
{
    struct td_arena *arena = &discovery->arena;
    const struct td_json *kind = td_json_get(row, TD_STR("responseKind"));
    td_str kind_name = td_json_get_str(kind, TD_STR("kind"), TD_STR_EMPTY);
    td_str plural = td_json_get_str(row, TD_STR("resource"), TD_STR_EMPTY);
    struct asked_resource *resource = td_arena_new(arena, struct asked_resource);
    *resource = (struct asked_resource){
        .resource = {
            .group = group,
            .version = version,
            .plural = td_arena_copy_str(arena, plural),
            .is_namespaced = td_str_equal(td_json_get_str(row, TD_STR("scope"), TD_STR_EMPTY),
                                          TD_STR("Namespaced")),
        }};
    td_str by_kind = td_arena_format(arena, "%.*s\n%.*s", TD_STR_ARG(group), TD_STR_ARG(kind_name));
    td_str by_plural = td_arena_format(arena, "%.*s\n%.*s", TD_STR_ARG(group), TD_STR_ARG(plural));
    if (td_map_has(&discovery->resources, by_plural)) {
        return; /* a less preferred version */
    }
    struct asked_resource *first = td_map_get(&discovery->kinds, by_kind);
    while (first && first->next) {
        first = first->next;
    }
    if (first) {
        first->next = resource;
    } else {
        (void)td_map_put(&discovery->kinds, by_kind, resource); /* full: it is not known then */
    }
    (void)td_map_put(&discovery->resources, by_plural, resource);
}

static void discovery_read_group(struct asked_discovery *discovery, const struct td_json *group)
{
    struct td_arena *arena = &discovery->arena;
    const struct td_json *metadata = td_json_get(group, TD_STR("metadata"));
    td_str name = td_arena_copy_str(arena, td_json_get_str(metadata, TD_STR("name"), TD_STR_EMPTY));
    const struct td_json *versions = td_json_get(group, TD_STR("versions"));
    const struct td_json *v = td_json_first_item(versions);
    for (; v; v = v->next) {
        td_str version =
            td_arena_copy_str(arena, td_json_get_str(v, TD_STR("version"), TD_STR_EMPTY));
        const struct td_json *rows = td_json_get(v, TD_STR("resources"));
        const struct td_json *row = td_json_first_item(rows);
        for (; row; row = row->next) {
            discovery_add(discovery, name, version, row);
        }
    }
}

static int discovery_read(struct asked_discovery *discovery, td_str body, struct td_error *err)
{
    td_auto_arena scratch;
    td_arena_init(&scratch, TD_TREE_ARENA_BYTES_MAX);
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
        discovery_read_group(discovery, group);
    }
    return TD_OK;
}

static void asked_discover_next(struct td_sight_asked *asked);

static void asked_discovered(void *context, const struct td_client_reply *reply)
{
    struct td_sight_asked *asked = context;
    asked->call = NULL;
    struct td_error err = TD_ERROR_INIT;
    int code = reply->code;
    if (code == TD_OK) {
        code = discovery_read(asked->coming, reply->body, &err);
    } else {
        err = reply->err;
    }
    if (code == TD_OK && !asked->is_second) {
        asked->is_second = true;
        asked_discover_next(asked);
        return;
    }
    asked->discovered = asked_now(asked);
    if (code == TD_OK) {
        discovery_free(asked->discovery);
        asked->discovery = asked->coming;
        asked->trouble = (struct td_error)TD_ERROR_INIT;
    } else {
        discovery_free(asked->coming);
        asked->trouble = err;
    }
    asked->coming = NULL;
    asked->settled(asked->context);
}

static void asked_discover_next(struct td_sight_asked *asked)
{
    const struct td_client_request request = {
        .method = TD_STR("GET"),
        .path = asked->is_second ? TD_STR("/apis") : TD_STR("/api"),
        .accept = TD_STR(TD_DISCOVERY_ACCEPT),
    };
    asked->call = td_client_send(asked->client, &request, asked_discovered, asked);
}

static void asked_discover(struct td_sight_asked *asked)
{
    if (asked->call) {
        return;
    }
    asked->coming = td_alloc_zero(1, sizeof(*asked->coming));
    td_arena_init(&asked->coming->arena, TD_TREE_ARENA_BYTES_MAX);
    td_map_init(&asked->coming->kinds, TD_SIGHT_RESOURCES_MAX);
    td_map_init(&asked->coming->resources, TD_SIGHT_RESOURCES_MAX);
    asked->is_second = false;
    asked_discover_next(asked);
}

static const struct asked_resource *asked_find(const struct td_map *map, td_str group, td_str name)
{
    td_auto_buf key;
    td_buf_init(&key, TD_CACHE_KEY_BYTES_MAX);
    (void)td_buf_append_format(&key, "%.*s\n%.*s", TD_STR_ARG(group), TD_STR_ARG(name));
    return key.is_full ? NULL : td_map_get(map, td_buf_str(&key));
}

/* TD_OK when what is known may be used to say that something is missing. */
static int asked_may_miss(struct td_sight_asked *asked, struct td_error *err)
{
    bool is_old = asked_now(asked) - asked->discovered >= ASKED_DISCOVERY_MISS;
    bool was_tried = asked->discovery || asked->trouble.code != TD_OK;
    if (asked->call || !was_tried || is_old) {
        asked_discover(asked);
        return td_error_set(err, TD_BUSY, "discovery is under way");
    }
    if (asked->trouble.code != TD_OK) {
        return td_error_set(err, TD_IO, "%s", asked->trouble.message);
    }
    return TD_OK;
}

int td_sight_asked_resource(struct td_sight_asked *asked, td_str group, td_str kind, size_t index,
                            struct td_sight_resource *ret, struct td_error *err)
{
    const struct asked_resource *found =
        asked->discovery ? asked_find(&asked->discovery->kinds, group, kind) : NULL;
    if (!found) {
        int code = asked_may_miss(asked, err);
        return code == TD_OK ? td_error_set(err, TD_NOT_FOUND, "no such kind") : code;
    }
    if (asked_now(asked) - asked->discovered >= ASKED_DISCOVERY_FRESH) {
        asked_discover(asked); /* what is known serves meanwhile */
    }
    for (size_t i = 0; i < index && found; i++) {
        found = found->next;
    }
    if (!found) {
        return td_error_set(err, TD_NOT_FOUND, "no further resource of the kind");
    }
    *ret = found->resource;
    return TD_OK;
}

/* ---- Scales ---- */

static void scale_free(struct asked_scale *scale)
{
    if (scale->call) {
        td_client_cancel(scale->call);
    }
    td_arena_done(&scale->arena);
    td_text_free(scale->key);
    td_free(scale);
}

/* What the server said, without the words of our client. */
static td_str scale_message(struct td_arena *arena, const struct td_client_reply *reply)
{
    struct td_json *status;
    td_str message = TD_STR_EMPTY;
    if (td_json_parse(arena, reply->body, &(struct td_json_options){.copy_strings = true}, &status,
                      NULL) == TD_OK) {
        message = td_json_get_str(status, TD_STR("message"), TD_STR_EMPTY);
    }
    return message.len > 0 ? message : td_arena_copy_str(arena, td_str_from(reply->err.message));
}

static void scale_read(struct asked_scale *scale, const struct td_client_reply *reply)
{
    struct td_arena *arena = &scale->arena;
    struct td_json *tree;
    struct td_meta meta;
    td_arena_reset(arena);
    scale->answer = (struct td_scale_answer){.code = reply->code};
    if (reply->code != TD_OK) {
        scale->answer.code = reply->code == TD_BUSY ? TD_IO : reply->code;
        scale->answer.message = scale_message(arena, reply);
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
    scale->answer.selector =
        td_json_get_str(td_json_get(tree, TD_STR("status")), TD_STR("selector"), TD_STR_EMPTY);
}

static void scale_answered(void *context, const struct td_client_reply *reply)
{
    struct asked_scale *scale = context;
    scale->call = NULL;
    scale_read(scale, reply);
    scale->is_known = true;
    scale->fetched = asked_now(scale->asked);
    scale->asked->settled(scale->asked->context);
}

static void scale_ask(struct asked_scale *scale, const struct td_api_path *path)
{
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    struct td_client_request request;
    struct td_error err = TD_ERROR_INIT;
    if (td_verb_get(&arena, path, &request, &err) == TD_OK) {
        scale->call = td_client_send(scale->asked->client, &request, scale_answered, scale);
        return;
    }
    scale->answer = (struct td_scale_answer){
        .code = TD_INVALID,
        .message = td_arena_copy_str(&scale->arena, td_str_from(err.message)),
    };
    scale->is_known = true;
    scale->fetched = asked_now(scale->asked);
}

static struct asked_scale *scale_of(struct td_sight_asked *asked, td_str key)
{
    struct asked_scale *scale = td_map_get(&asked->scales, key);
    if (!scale) {
        scale = td_alloc_zero(1, sizeof(*scale));
        scale->asked = asked;
        scale->key = td_text_copy(key);
        td_arena_init(&scale->arena, TD_TREE_ARENA_BYTES_MAX);
        if (td_map_put(&asked->scales, scale->key, scale) != TD_OK) {
            scale_free(scale);
            return NULL;
        }
    }
    return scale;
}

struct td_scale_answer td_sight_asked_scale(struct td_sight_asked *asked, td_str group,
                                            td_str resource, td_str namespace, td_str name)
{
    const struct asked_resource *found =
        asked->discovery ? asked_find(&asked->discovery->resources, group, resource) : NULL;
    if (!found) {
        struct td_error err = TD_ERROR_INIT;
        int code = asked_may_miss(asked, &err);
        return (struct td_scale_answer){.code = code == TD_OK ? TD_NOT_FOUND : code};
    }
    td_auto_buf key;
    td_buf_init(&key, TD_CACHE_KEY_BYTES_MAX);
    (void)td_buf_append_format(&key, "%.*s\n%.*s\n%.*s\n%.*s", TD_STR_ARG(group),
                               TD_STR_ARG(resource), TD_STR_ARG(namespace), TD_STR_ARG(name));
    struct asked_scale *scale = key.is_full ? NULL : scale_of(asked, td_buf_str(&key));
    if (!scale) {
        return (struct td_scale_answer){.code = TD_LIMIT,
                                        .message = TD_STR("too many scales are asked for")};
    }
    td_time now = asked_now(asked);
    td_duration fresh = scale->answer.code == TD_OK ? ASKED_SCALE_FRESH : ASKED_SCALE_BAD;
    scale->used = now;
    if (!scale->call && (!scale->is_known || now - scale->fetched >= fresh)) {
        const struct td_api_path path = {
            .group = group,
            .version = found->resource.version,
            .namespace = found->resource.is_namespaced ? namespace : TD_STR_EMPTY,
            .plural = resource,
            .name = name,
            .subresource = TD_STR("scale"),
        };
        scale_ask(scale, &path);
    }
    return scale->is_known ? scale->answer : (struct td_scale_answer){.code = TD_BUSY};
}

static void asked_sweep(struct td_timer *timer, void *context)
{
    struct td_sight_asked *asked = context;
    td_time now = asked_now(asked);
    size_t position = 0;
    const struct td_map_entry *entry;
    while ((entry = td_map_next(&asked->scales, &position))) {
        struct asked_scale *scale = entry->value;
        if (!scale->call && now - scale->used >= ASKED_SCALE_UNUSED) {
            (void)td_map_remove(&asked->scales, scale->key);
            scale_free(scale);
        }
    }
    td_timer_set(timer, ASKED_SWEEP_EVERY);
}

/* ---- The whole ---- */

struct td_sight_asked *td_sight_asked_new(struct td_loop *loop, struct td_client *client,
                                          void (*settled)(void *context), void *context)
{
    struct td_sight_asked *asked = td_alloc_zero(1, sizeof(*asked));
    asked->loop = loop;
    asked->client = client;
    asked->settled = settled;
    asked->context = context;
    td_map_init(&asked->scales, TD_SIGHT_SCALES_MAX);
    asked->sweep = td_timer_new(loop, asked_sweep, asked);
    td_timer_set(asked->sweep, ASKED_SWEEP_EVERY);
    return asked;
}

void td_sight_asked_free(struct td_sight_asked *asked)
{
    if (!asked) {
        return;
    }
    if (asked->call) {
        td_client_cancel(asked->call);
    }
    size_t position = 0;
    const struct td_map_entry *entry;
    while ((entry = td_map_next(&asked->scales, &position))) {
        scale_free(entry->value);
    }
    td_map_done(&asked->scales);
    discovery_free(asked->discovery);
    discovery_free(asked->coming);
    td_timer_free(asked->sweep);
    td_free(asked);
}
