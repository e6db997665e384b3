#include "control/sight.h"

#include <stdlib.h>
#include <string.h>

#include "api/hvpa/hvpa.h"
#include "base/alloc.h"
#include "base/assert.h"
#include "base/error.h"
#include "base/json/json_reader.h"
#include "base/limits.h"
#include "base/os/log.h"
#include "base/os/loop.h"
#include "base/text.h"
#include "control/sight_keep.h"
#include "control/sight_private.h"
#include "kube/client/client.h"

const struct td_sight_row td_sight_rows[TD_SIGHT_COUNT] = {
    [TD_SIGHT_PODS] = {"", "v1", "pods", "Pod"},
    [TD_SIGHT_VPAS] = {"autoscaling.k8s.io", "v1", "verticalpodautoscalers",
                       "VerticalPodAutoscaler"},
    [TD_SIGHT_HPAS] = {"autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler"},
    [TD_SIGHT_OWN_HPAS] = {"autoscaling.tandem.dev", "v2", "horizontalpodautoscalers",
                           "HorizontalPodAutoscaler"},
    [TD_SIGHT_HVPAS] = {"autoscaling.k8s.io", "v1alpha1", "hvpas", "Hvpa"},
    [TD_SIGHT_LIMIT_RANGES] = {"", "v1", "limitranges", "LimitRange"},
    [TD_SIGHT_NODES] = {"", "v1", "nodes", "Node"},
    [TD_SIGHT_DEPLOYMENTS] = {"apps", "v1", "deployments", "Deployment"},
    [TD_SIGHT_REPLICA_SETS] = {"apps", "v1", "replicasets", "ReplicaSet"},
    [TD_SIGHT_STATEFUL_SETS] = {"apps", "v1", "statefulsets", "StatefulSet"},
    [TD_SIGHT_DAEMON_SETS] = {"apps", "v1", "daemonsets", "DaemonSet"},
    [TD_SIGHT_JOBS] = {"batch", "v1", "jobs", "Job"},
    [TD_SIGHT_CRON_JOBS] = {"batch", "v1", "cronjobs", "CronJob"},
    [TD_SIGHT_REPLICATION_CONTROLLERS] = {"", "v1", "replicationcontrollers",
                                          "ReplicationController"},
};

/* ---- Filling objects ---- */

static td_str sight_write(const struct td_json *tree)
{
    td_auto_buf buf;
    td_buf_init(&buf, TD_CACHE_EVENT_BYTES_MAX);
    td_json_write(tree, &(struct td_json_format){.indent = 0}, &buf);
    return td_text_copy(td_buf_str(&buf));
}

/* One entry of managedFields: when it is about that subresource, who wrote it, and when. */
static bool sight_add_manager(struct td_arena *arena, struct td_json_reader *reader,
                              td_str subresource, struct td_json *kept)
{
    struct td_json *entry = td_json_new_object(arena);
    bool is_kept = false;
    enum td_json_token token;
    while ((token = td_json_reader_next(reader)) == TD_JSON_KEY) {
        bool is_subresource = td_json_reader_key_is(reader, TD_STR("subresource"));
        bool is_manager = td_json_reader_key_is(reader, TD_STR("manager"));
        bool is_time = td_json_reader_key_is(reader, TD_STR("time"));
        bool is_wanted = is_subresource || is_manager || is_time;
        if (is_wanted && td_json_reader_next(reader) == TD_JSON_STRING) {
            td_str text = td_json_reader_decode(reader, arena);
            if (is_subresource) {
                is_kept = td_str_equal(text, subresource);
            } else {
                td_json_set_str(arena, entry, is_manager ? TD_STR("manager") : TD_STR("time"),
                                text);
            }
        } else if (td_json_reader_skip(reader) != TD_OK) {
            return false;
        }
    }
    if (is_kept) {
        td_json_append(kept, entry);
    }
    return token == TD_JSON_END_OBJECT;
}

static struct td_json *sight_managers(struct td_arena *arena, td_str text, td_str subresource)
{
    struct td_json_reader reader;
    struct td_json *kept = td_json_new_array(arena);
    td_json_reader_init(&reader, text, TD_JSON_DEPTH_MAX);
    bool is_read = td_json_reader_next(&reader) == TD_JSON_BEGIN_ARRAY;
    while (is_read && td_json_reader_next(&reader) == TD_JSON_BEGIN_OBJECT) {
        is_read = sight_add_manager(arena, &reader, subresource, kept);
    }
    return kept;
}

/* When a pod was last resized is all that is kept of its managedFields, as one entry of them. Most
 * pods were never. */
static void sight_keep_resize(struct td_arena *arena, td_str managers, struct td_json *pod)
{
    struct td_json *metadata = td_json_get(pod, TD_STR("metadata"));
    td_str word = TD_STR("\"resize\"");
    if (!metadata || managers.len == 0 || !memmem(managers.ptr, managers.len, word.ptr, word.len)) {
        return;
    }
    const struct td_json *entries = sight_managers(arena, managers, TD_STR("resize"));
    struct td_json *latest = td_json_new_object(arena);
    td_str time = TD_STR_EMPTY;
    for (const struct td_json *entry = td_json_first_item(entries); entry; entry = entry->next) {
        td_str at = td_json_get_str(entry, TD_STR("time"), TD_STR_EMPTY);
        time = td_str_compare(at, time) > 0 ? at : time; /* RFC 3339 in UTC: in order as texts */
    }
    if (time.len > 0) {
        struct td_json *list = td_json_new_array(arena);
        td_json_set_str(arena, latest, TD_STR("subresource"), TD_STR("resize"));
        td_json_set_str(arena, latest, TD_STR("time"), time);
        td_json_append(list, latest);
        td_json_set(arena, metadata, TD_STR("managedFields"), list);
    }
}

static int sight_compare_members(const void *a, const void *b)
{
    const struct td_json *const *x = a;
    const struct td_json *const *y = b;
    return td_str_compare((*x)->key, (*y)->key);
}

static uint64_t sight_hash_labels(struct td_arena *arena, const struct td_json *labels)
{
    size_t count = td_json_member_count(labels);
    const struct td_json **members = td_arena_array(arena, const struct td_json *, count + 1);
    size_t n = 0;
    for (const struct td_json *m = td_json_first_member(labels); m; m = m->next) {
        members[n++] = m;
    }
    if (n > 0) {
        qsort(members, n, sizeof(*members), sight_compare_members);
    }
    uint64_t hash = n;
    for (size_t i = 0; i < n; i++) {
        td_str value =
            td_json_is(members[i], TD_JSON_TYPE_STRING) ? members[i]->text : TD_STR_EMPTY;
        hash = hash * UINT64_C(0x9e3779b97f4a7c15) + td_map_hash(members[i]->key);
        hash = hash * UINT64_C(0x9e3779b97f4a7c15) + td_map_hash(value);
    }
    return hash;
}

static void sight_fill(void *context, void *filled)
{
    enum td_sight_kind kind = *(const enum td_sight_kind *)context;
    struct td_sight_object *object = filled;
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    object->status_text = TD_STR_EMPTY;
    object->workload = NULL;
    if (kind == TD_SIGHT_HPAS || kind == TD_SIGHT_OWN_HPAS) {
        object->status_text =
            sight_write(sight_managers(&arena, object->raw_managers, TD_STR("status")));
    }
    if (td_sight_keeps_all(kind)) {
        object->asked = td_map_hash(object->raw) * 31 + td_map_hash(object->raw_annotations);
        return;
    }
    struct td_json *tree = NULL;
    if (td_json_parse(&arena, object->raw, NULL, &tree, NULL) == TD_OK) {
        struct td_json *kept = td_sight_keep(&arena, kind, tree);
        if (kind == TD_SIGHT_PODS) {
            sight_keep_resize(&arena, object->raw_managers, kept);
        }
        object->text = sight_write(kept);
    } else {
        object->text = td_text_copy(TD_STR("{}")); /* it was read once already: cannot be */
    }
    if (kind == TD_SIGHT_PODS) {
        struct td_sight_pod *pod = filled;
        pod->labels_hash = sight_hash_labels(&arena, td_json_get_path(tree, "metadata.labels"));
        pod->next = NULL;
        pod->previous = NULL;
    }
}

static void sight_release(void *context, void *released)
{
    struct td_sight_object *object = released;
    if (!td_sight_keeps_all(*(const enum td_sight_kind *)context)) {
        td_text_free(object->text);
    }
    if (object->status_text.ptr != TD_STR_EMPTY.ptr) {
        td_text_free(object->status_text);
    }
    td_sight_workload_free(object->workload);
}

/* ---- Pods by namespace ---- */

static struct td_sight_namespace *sight_namespace(struct td_sight *sight, td_str name)
{
    struct td_sight_namespace *ns = td_map_get(&sight->namespaces, name);
    if (!ns) {
        ns = td_alloc_zero(1, sizeof(*ns));
        ns->name = td_text_copy(name);
        int code = td_map_put(&sight->namespaces, ns->name, ns);
        td_assert(code == TD_OK); /* no more namespaces than pods */
    }
    return ns;
}

static void sight_link(struct td_sight *sight, struct td_sight_pod *pod)
{
    struct td_sight_namespace *ns = sight_namespace(sight, pod->object.head.namespace);
    pod->previous = ns->last;
    *(ns->last ? &ns->last->next : &ns->first) = pod;
    ns->last = pod;
}

static void sight_unlink(struct td_sight *sight, struct td_sight_pod *pod)
{
    struct td_sight_namespace *ns = td_map_get(&sight->namespaces, pod->object.head.namespace);
    *(pod->previous ? &pod->previous->next : &ns->first) = pod->next;
    *(pod->next ? &pod->next->previous : &ns->last) = pod->previous;
    if (!ns->first) {
        (void)td_map_remove(&sight->namespaces, ns->name);
        td_text_free(ns->name);
        td_free(ns);
    }
}

/* The objects are the sight's own: const is for consumers. */
static struct td_sight_pod *sight_own_pod(const void *object)
{
    return (struct td_sight_pod *)(uintptr_t)object;
}

static void sight_pod_added(void *context, const void *object)
{
    struct td_sight *sight = context;
    sight_link(sight, sight_own_pod(object));
    if (sight->is_indexed) {
        td_sight_labels_add(&sight->labels, sight_own_pod(object));
    }
}

static void sight_pod_changed(void *context, const void *before, const void *after)
{
    struct td_sight *sight = context;
    struct td_sight_pod *old = sight_own_pod(before);
    struct td_sight_pod *new = sight_own_pod(after);
    struct td_sight_namespace *ns = td_map_get(&sight->namespaces, old->object.head.namespace);
    new->next = old->next;
    new->previous = old->previous;
    *(new->previous ? &new->previous->next : &ns->first) = new;
    *(new->next ? &new->next->previous : &ns->last) = new;
    if (sight->is_indexed) {
        td_sight_labels_change(&sight->labels, old, new);
    }
}

static void sight_pod_deleted(void *context, const void *object)
{
    struct td_sight *sight = context;
    if (sight->is_indexed) {
        td_sight_labels_remove(&sight->labels, sight_own_pod(object));
    }
    sight_unlink(sight, sight_own_pod(object));
}

void td_sight_index_pods(struct td_sight *sight)
{
    sight->is_indexed = true;
}

void td_sight_match_pods(const struct td_sight *sight, td_str namespace,
                         const struct td_selector *selector, struct td_sight_match *ret)
{
    td_assert(sight->is_indexed);
    td_sight_labels_match(&sight->labels, namespace, selector, ret);
}

const struct td_sight_pod *td_sight_next_pod(const struct td_sight *sight, td_str namespace,
                                             const struct td_sight_pod *previous)
{
    if (previous) {
        return previous->next;
    }
    const struct td_sight_namespace *ns = td_map_get(&sight->namespaces, namespace);
    return ns ? ns->first : NULL;
}

/* ---- LimitRanges ---- */

static void sight_limits_free(struct td_sight_limits *limits)
{
    td_arena_done(&limits->arena);
    td_text_free(limits->namespace);
    td_free(limits);
}

static void sight_limits_forget(struct td_sight *sight, const void *object)
{
    const struct td_cache_head *head = object;
    struct td_sight_limits *limits = td_map_remove(&sight->limits, head->namespace);
    if (limits) {
        sight_limits_free(limits);
    }
}

static void sight_limits_changed(void *context, const void *before, const void *after)
{
    (void)after;
    sight_limits_forget(context, before);
}

static void sight_limits_touched(void *context, const void *object)
{
    sight_limits_forget(context, object);
}

static int sight_compare_objects(const void *a, const void *b)
{
    const struct td_sight_object *const *x = a;
    const struct td_sight_object *const *y = b;
    return td_str_compare((*x)->head.name, (*y)->head.name);
}

/* The trees of the namespace's LimitRanges, by name. */
static size_t sight_limit_trees(struct td_sight *sight, struct td_sight_limits *limits,
                                const struct td_json ***ret)
{
    const struct td_cache *cache = sight->caches[TD_SIGHT_LIMIT_RANGES];
    size_t all = cache ? td_cache_count(cache) : 0;
    const struct td_sight_object **objects =
        td_arena_array(&limits->arena, const struct td_sight_object *, all + 1);
    const struct td_json **trees = td_arena_array(&limits->arena, const struct td_json *, all + 1);
    size_t found = 0;
    size_t count = 0;
    size_t position = 0;
    for (const struct td_sight_object *o; all > 0 && (o = td_cache_next(cache, &position));) {
        if (td_str_equal(o->head.namespace, limits->namespace)) {
            objects[found++] = o;
        }
    }
    if (found > 0) {
        qsort(objects, found, sizeof(*objects), sight_compare_objects);
    }
    for (size_t i = 0; i < found; i++) {
        struct td_json *tree;
        if (td_sight_tree(&limits->arena, objects[i], &tree, NULL) == TD_OK) {
            trees[count++] = tree;
        }
    }
    *ret = trees;
    return count;
}

static struct td_sight_limits *sight_limits_read(struct td_sight *sight, td_str namespace)
{
    struct td_sight_limits *limits = td_alloc_zero(1, sizeof(*limits));
    limits->namespace = td_text_copy(namespace);
    td_arena_init(&limits->arena, TD_TREE_ARENA_BYTES_MAX);
    const struct td_json **trees;
    size_t count = sight_limit_trees(sight, limits, &trees);
    limits->objects = (struct td_limit_objects){.items = trees, .count = count};
    struct td_error err = TD_ERROR_INIT;
    if (count > 0 && td_limit_ranges_read(&limits->arena, trees, count, namespace, &limits->ranges,
                                          &err) == TD_OK) {
        limits->is_set = true;
    } else if (count > 0) {
        td_log_line(sight->log, TD_LOG_WARN, "limit ranges of a namespace cannot be read",
                    TD_LOG_S("namespace", namespace), TD_LOG_C("error", err.message));
    }
    return limits;
}

static const struct td_sight_limits *sight_limits_get(struct td_sight *sight, td_str namespace)
{
    struct td_sight_limits *limits = td_map_get(&sight->limits, namespace);
    if (!limits) {
        limits = sight_limits_read(sight, namespace);
        if (td_map_put(&sight->limits, limits->namespace, limits) != TD_OK) {
            sight_limits_free(limits);
            return NULL;
        }
    }
    return limits;
}

const struct td_limit_ranges *td_sight_limits(struct td_sight *sight, td_str namespace)
{
    const struct td_sight_limits *limits = sight_limits_get(sight, namespace);
    return limits && limits->is_set ? &limits->ranges : NULL;
}

struct td_limit_objects td_sight_limit_objects(struct td_sight *sight, td_str namespace)
{
    const struct td_sight_limits *limits = sight_limits_get(sight, namespace);
    return limits ? limits->objects : (struct td_limit_objects){.count = 0};
}

/* ---- The whole ---- */

#define SIGHT_FIELDS_SHARED 4 /* decoded of every object */
#define SIGHT_FIELDS_MORE 2   /* of pods and VPAs, and of what is kept whole */
#define SIGHT_FIELDS_MAX (SIGHT_FIELDS_SHARED + 2 * SIGHT_FIELDS_MORE)

static void sight_add_fields(struct td_cache_field *fields, struct td_cache_options *options,
                             const struct td_cache_field more[SIGHT_FIELDS_MORE])
{
    memcpy(fields + options->field_count, more, SIGHT_FIELDS_MORE * sizeof(*more));
    options->field_count += SIGHT_FIELDS_MORE;
}

/* The fields of a kind, which has a struct of its own when it has more than the others. */
static void sight_choose_fields(enum td_sight_kind kind,
                                struct td_cache_field fields[SIGHT_FIELDS_MAX],
                                struct td_cache_options *options)
{
    static const struct td_cache_field shared[SIGHT_FIELDS_SHARED] = {
        {"", TD_CACHE_RAW_ONCE, offsetof(struct td_sight_object, raw)},
        {"metadata.managedFields", TD_CACHE_RAW_ONCE,
         offsetof(struct td_sight_object, raw_managers)},
        {"metadata.generation", TD_CACHE_INT64, offsetof(struct td_sight_object, generation)},
        {"metadata.deletionTimestamp", TD_CACHE_PRESENT,
         offsetof(struct td_sight_object, is_deleting)},
    };
    static const struct td_cache_field of_whole[SIGHT_FIELDS_MORE] = {
        {"", TD_CACHE_RAW, offsetof(struct td_sight_object, text)},
        {"metadata.annotations", TD_CACHE_RAW_ONCE,
         offsetof(struct td_sight_object, raw_annotations)},
    };
    static const struct td_cache_field of_pods[SIGHT_FIELDS_MORE] = {
        {"spec.nodeName", TD_CACHE_NAME, offsetof(struct td_sight_pod, node)},
        {"status.phase", TD_CACHE_NAME, offsetof(struct td_sight_pod, phase)},
    };
    static const struct td_cache_field of_vpas[SIGHT_FIELDS_MORE] = {
        {"spec.targetRef.kind", TD_CACHE_NAME, offsetof(struct td_sight_vpa, target_kind)},
        {"spec.targetRef.name", TD_CACHE_TEXT, offsetof(struct td_sight_vpa, target_name)},
    };
    memcpy(fields, shared, sizeof(shared));
    options->fields = fields;
    options->field_count = SIGHT_FIELDS_SHARED;
    options->struct_bytes = sizeof(struct td_sight_object);
    if (td_sight_keeps_all(kind)) {
        fields[0].path = "spec";
        sight_add_fields(fields, options, of_whole);
    }
    if (kind == TD_SIGHT_PODS) {
        options->struct_bytes = sizeof(struct td_sight_pod);
        sight_add_fields(fields, options, of_pods);
    } else if (kind == TD_SIGHT_VPAS) {
        options->struct_bytes = sizeof(struct td_sight_vpa);
        sight_add_fields(fields, options, of_vpas);
    }
}

static int sight_make_cache(struct td_sight *sight, const struct td_sight_options *options,
                            enum td_sight_kind kind, struct td_error *err)
{
    bool is_vpa = kind == TD_SIGHT_VPAS;
    td_str namespace =
        is_vpa && options->vpa_namespace.len > 0 ? options->vpa_namespace : options->namespace;
    const struct td_sight_row *row = &td_sight_rows[kind];
    sight->kinds[kind] = kind;
    struct td_cache_options cache = {
        .loop = options->loop,
        .client = options->client,
        .group = td_str_from(row->group),
        .version = td_str_from(row->version),
        .plural = td_str_from(row->plural),
        .namespace = kind == TD_SIGHT_NODES ? TD_STR_EMPTY : namespace,
        .names = sight->names,
        .fill = sight_fill,
        .release = sight_release,
        .context = &sight->kinds[kind],
        .seed = options->seed + (uint64_t)kind,
    };
    struct td_cache_field fields[SIGHT_FIELDS_MAX];
    sight_choose_fields(kind, fields, &cache);
    return td_cache_new(&cache, &sight->caches[kind], err);
}

static void sight_settled(void *context)
{
    struct td_sight *sight = context;
    for (size_t i = 0; i < sight->listener_count; i++) {
        sight->listeners[i].settled(sight->listeners[i].context);
    }
}

int td_sight_new(const struct td_sight_options *options, struct td_sight **ret,
                 struct td_error *err)
{
    struct td_sight *sight = td_alloc_zero(1, sizeof(*sight));
    sight->loop = options->loop;
    sight->client = options->client;
    sight->log = options->log;
    sight->names = td_intern_new(TD_CACHE_OBJECTS_MAX);
    td_map_init(&sight->namespaces, TD_CACHE_OBJECTS_MAX);
    td_map_init(&sight->limits, TD_CACHE_OBJECTS_MAX);
    td_sight_labels_init(&sight->labels);
    sight->asked = td_sight_asked_new(options->loop, options->client, sight_settled, sight);
    td_sight_source_init(sight);
    int code = TD_OK;
    for (size_t kind = 0; kind < TD_SIGHT_COUNT && code == TD_OK; kind++) {
        if (options->wants[kind]) {
            code = sight_make_cache(sight, options, (enum td_sight_kind)kind, err);
        }
    }
    if (code != TD_OK) {
        td_sight_free(sight);
        return code;
    }
    static const struct td_cache_handler pods = {
        .added = sight_pod_added, .changed = sight_pod_changed, .deleted = sight_pod_deleted};
    static const struct td_cache_handler limits = {.added = sight_limits_touched,
                                                   .changed = sight_limits_changed,
                                                   .deleted = sight_limits_touched};
    td_sight_subscribe(sight, TD_SIGHT_PODS, &pods, sight);
    td_sight_subscribe(sight, TD_SIGHT_LIMIT_RANGES, &limits, sight);
    *ret = sight;
    return TD_OK;
}

void td_sight_free(struct td_sight *sight)
{
    if (!sight) {
        return;
    }
    for (size_t kind = 0; kind < TD_SIGHT_COUNT; kind++) {
        td_cache_free(sight->caches[kind]);
    }
    size_t position = 0;
    const struct td_map_entry *entry;
    while ((entry = td_map_next(&sight->limits, &position))) {
        sight_limits_free(entry->value);
    }
    position = 0;
    while ((entry = td_map_next(&sight->namespaces, &position))) {
        struct td_sight_namespace *ns = entry->value;
        td_text_free(ns->name);
        td_free(ns);
    }
    td_map_done(&sight->limits);
    td_map_done(&sight->namespaces);
    td_sight_labels_done(&sight->labels);
    td_sight_asked_free(sight->asked);
    td_intern_free(sight->names);
    td_free(sight);
}

void td_sight_subscribe(struct td_sight *sight, enum td_sight_kind kind,
                        const struct td_cache_handler *handler, void *context)
{
    if (sight->caches[kind]) {
        td_cache_subscribe(sight->caches[kind], handler, context);
    }
}

void td_sight_on_settled(struct td_sight *sight, void (*settled)(void *context), void *context)
{
    td_assert(sight->listener_count < TD_SIGHT_LISTENERS_MAX);
    sight->listeners[sight->listener_count].settled = settled;
    sight->listeners[sight->listener_count++].context = context;
}

void td_sight_start(struct td_sight *sight)
{
    for (size_t kind = 0; kind < TD_SIGHT_COUNT; kind++) {
        if (sight->caches[kind]) {
            td_cache_start(sight->caches[kind]);
        }
    }
}

/* A cluster may be without our own kinds: then there are no such objects. For the others a missing
 * kind is trouble: without VPAs their checkpoints would look left over. */
static bool sight_is_absent(const struct td_sight *sight, size_t kind)
{
    return (kind == TD_SIGHT_OWN_HPAS || kind == TD_SIGHT_HVPAS) &&
           td_cache_trouble(sight->caches[kind])->code == TD_NOT_FOUND;
}

bool td_sight_is_synced(const struct td_sight *sight)
{
    for (size_t kind = 0; kind < TD_SIGHT_COUNT; kind++) {
        if (sight->caches[kind] && !td_cache_is_synced(sight->caches[kind]) &&
            !sight_is_absent(sight, kind)) {
            return false;
        }
    }
    return true;
}

td_duration td_sight_age(const struct td_sight *sight)
{
    td_duration oldest = 0;
    for (size_t kind = 0; kind < TD_SIGHT_COUNT; kind++) {
        bool is_counted = sight->caches[kind] && !sight_is_absent(sight, kind);
        td_duration age = is_counted ? td_cache_age(sight->caches[kind]) : 0;
        oldest = age > oldest ? age : oldest;
    }
    return oldest;
}

const struct td_cache *td_sight_cache(const struct td_sight *sight, enum td_sight_kind kind)
{
    return sight->caches[kind];
}

int td_sight_tree(struct td_arena *arena, const struct td_sight_object *object,
                  struct td_json **ret, struct td_error *err)
{
    return td_json_parse(arena, object->text, &(struct td_json_options){.copy_strings = true}, ret,
                         err);
}

const struct td_json *td_sight_target(enum td_sight_kind kind, const struct td_json *tree)
{
    td_str field;
    if (kind == TD_SIGHT_HVPAS) {
        return td_hvpa_target(tree, &field);
    }
    return td_json_get_path(tree, kind == TD_SIGHT_VPAS ? "spec.targetRef" : "spec.scaleTargetRef");
}

bool td_sight_has_same_owners(const struct td_sight_object *before,
                              const struct td_sight_object *after)
{
    struct td_json *was;
    struct td_json *is;
    if (!td_str_equal(before->head.uid, after->head.uid)) {
        return false;
    }
    if (td_str_equal(before->text, after->text)) {
        return true;
    }
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    return td_sight_tree(&arena, before, &was, NULL) == TD_OK &&
           td_sight_tree(&arena, after, &is, NULL) == TD_OK &&
           td_json_equal(td_json_get_path(was, "metadata.ownerReferences"),
                         td_json_get_path(is, "metadata.ownerReferences"));
}

const struct td_workload_source *td_sight_source(struct td_sight *sight)
{
    return &sight->source;
}

int td_sight_resource(struct td_sight *sight, td_str group, td_str kind, size_t index,
                      struct td_sight_resource *ret, struct td_error *err)
{
    int code = td_sight_asked_resource(sight->asked, group, kind, index, ret, err);
    if (code == TD_NOT_FOUND) {
        (void)td_error_set(err, TD_NOT_FOUND, "no matches for kind \"%.*s\" in group \"%.*s\"",
                           TD_STR_ARG(kind), TD_STR_ARG(group));
    }
    return code;
}
