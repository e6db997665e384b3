/*
 * The informers: one cache a kind, what is kept of each object, and what is derived from them.
 *
 * What starts them: td_informers_start, after all controllers have subscribed. Each cache lists its
 * kind once and then watches it (kube/cache/cache.h); an object passes informers_fill on its way
 * in, which keeps the members that deciders read (informers_trim.c) and drops the rest.
 *
 * Their states: not synced, until each kind that is wanted was listed once or is known to be absent
 * from the cluster; synced from then on, for ever. A watch that breaks is taken up again by its
 * cache, and td_informers_age says how old the oldest knowledge is. What is derived is kept up to
 * date by handlers of the same caches, registered before all others: pods by namespace and, where
 * an HPA needs them, by labels (pod_index.c), LimitRanges of a namespace as they were last read,
 * the largest node (informers_nodes.c). Discovery and scales are asked for when a decider needs
 * them (discovery.c): TD_BUSY until the answer, then `settled` is called.
 *
 * They write nothing, to the API server or elsewhere. They stop when they are freed, after all that
 * have subscribed.
 */
#include "control/informers/informers.h"

#include <stdlib.h>
#include <string.h>

#include "api/hvpa/hvpa.h"
#include "base/alloc.h"
#include "base/assert.h"
#include "base/error.h"
#include "base/json/json_reader.h"
#include "base/limits.h"
#include "base/os/log.h"
#include "base/text.h"
#include "control/informers/informers_private.h"
#include "control/informers/informers_trim.h"
#include "control/informers/pod_text.h"

const struct td_informer_row td_informer_rows[TD_INFORMER_COUNT] = {
    [TD_INFORMER_PODS] = {"", "v1", "pods", "Pod"},
    [TD_INFORMER_VPAS] = {"autoscaling.k8s.io", "v1", "verticalpodautoscalers",
                          "VerticalPodAutoscaler"},
    [TD_INFORMER_HPAS] = {"autoscaling", "v2", "horizontalpodautoscalers",
                          "HorizontalPodAutoscaler"},
    [TD_INFORMER_OWN_HPAS] = {"autoscaling.tandem.dev", "v2", "horizontalpodautoscalers",
                              "HorizontalPodAutoscaler"},
    [TD_INFORMER_HVPAS] = {"autoscaling.k8s.io", "v1alpha1", "hvpas", "Hvpa"},
    [TD_INFORMER_LIMIT_RANGES] = {"", "v1", "limitranges", "LimitRange"},
    [TD_INFORMER_NODES] = {"", "v1", "nodes", "Node"},
    [TD_INFORMER_DEPLOYMENTS] = {"apps", "v1", "deployments", "Deployment"},
    [TD_INFORMER_REPLICA_SETS] = {"apps", "v1", "replicasets", "ReplicaSet"},
    [TD_INFORMER_STATEFUL_SETS] = {"apps", "v1", "statefulsets", "StatefulSet"},
    [TD_INFORMER_DAEMON_SETS] = {"apps", "v1", "daemonsets", "DaemonSet"},
    [TD_INFORMER_JOBS] = {"batch", "v1", "jobs", "Job"},
    [TD_INFORMER_CRON_JOBS] = {"batch", "v1", "cronjobs", "CronJob"},
    [TD_INFORMER_REPLICATION_CONTROLLERS] = {"", "v1", "replicationcontrollers",
                                             "ReplicationController"},
};

/* ---- Texts ---- */

/* What a pod's text leaves out. */
static struct td_pod_text_known informers_known(const struct td_informer_object *object)
{
    const struct td_informer_pod *pod = (const struct td_informer_pod *)object;
    return (struct td_pod_text_known){.name = object->head.name,
                                      .uid = object->head.uid,
                                      .version = object->head.version,
                                      .node = pod->node};
}

static void informers_join(const struct td_informer_object *object, struct td_buf *out)
{
    const struct td_pod_text_known known = informers_known(object);
    td_pod_text_join(object->shape, object->text, &known, out);
    td_assert(!out->is_full); /* it was as long before it was split */
}

td_str td_informers_text(struct td_arena *arena, const struct td_informer_object *object)
{
    if (!object->is_split) {
        return object->text;
    }
    td_auto_buf text = td_buf_capped(TD_JSON_BYTES_MAX);
    informers_join(object, &text);
    return td_arena_copy_str(arena, td_buf_str(&text));
}

bool td_informers_mentions(const struct td_informer_object *object, td_str word)
{
    return memmem(object->text.ptr, object->text.len, word.ptr, word.len) ||
           (object->is_split && memmem(object->shape.ptr, object->shape.len, word.ptr, word.len));
}

int td_informers_tree(struct td_arena *arena, const struct td_informer_object *object,
                      struct td_json **ret, struct td_error *err)
{
    static const struct td_json_options options = {.copy_strings = true};
    if (!object->is_split) {
        return td_json_parse(arena, object->text, &options, ret, err);
    }
    td_auto_buf text = td_buf_capped(TD_JSON_BYTES_MAX);
    informers_join(object, &text);
    return td_json_parse(arena, td_buf_str(&text), &options, ret, err);
}

/* ---- Filling objects ---- */

/* One entry of managedFields: when it is about that subresource, who wrote it, and when. */
static bool informers_add_manager(struct td_arena *arena, struct td_json_reader *reader,
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

static struct td_json *informers_managers(struct td_arena *arena, td_str text, td_str subresource)
{
    struct td_json_reader reader;
    struct td_json *kept = td_json_new_array(arena);
    td_json_reader_init(&reader, text, TD_JSON_DEPTH_MAX);
    bool is_read = td_json_reader_next(&reader) == TD_JSON_BEGIN_ARRAY;
    while (is_read && td_json_reader_next(&reader) == TD_JSON_BEGIN_OBJECT) {
        is_read = informers_add_manager(arena, &reader, subresource, kept);
    }
    return kept;
}

/* When a pod was last resized is all that is kept of its managedFields, as one entry of them. Most
 * pods were never. */
static void trim_resize(struct td_arena *arena, td_str managers, struct td_json *pod)
{
    struct td_json *metadata = td_json_get(pod, TD_STR("metadata"));
    td_str word = TD_STR("\"resize\"");
    if (!metadata || managers.len == 0 || !memmem(managers.ptr, managers.len, word.ptr, word.len)) {
        return;
    }
    const struct td_json *entries = informers_managers(arena, managers, TD_STR("resize"));
    struct td_json *latest = td_json_new_object(arena);
    td_str time = TD_STR_EMPTY;
    for (const struct td_json *entry = td_json_first_item(entries); entry; entry = entry->next) {
        td_str at = td_json_text(entry, "time");
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

static int informers_compare_members(const void *a, const void *b)
{
    const struct td_json *const *x = a;
    const struct td_json *const *y = b;
    return td_str_compare((*x)->key, (*y)->key);
}

static uint64_t informers_hash_labels(struct td_arena *arena, const struct td_json *labels)
{
    size_t count = td_json_member_count(labels);
    const struct td_json **members = td_arena_array(arena, const struct td_json *, count + 1);
    size_t n = 0;
    for (const struct td_json *m = td_json_first_member(labels); m; m = m->next) {
        members[n++] = m;
    }
    if (n > 0) {
        qsort(members, n, sizeof(*members), informers_compare_members);
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

/* What is kept of an object, its texts aside. */
static size_t informers_bytes(enum td_informer_kind kind)
{
    return kind == TD_INFORMER_PODS   ? sizeof(struct td_informer_pod)
           : kind == TD_INFORMER_VPAS ? sizeof(struct td_informer_vpa)
                                      : sizeof(struct td_informer_object);
}

/* What of an object is there while it is filled: behind what is kept. */
struct informers_raw {
    td_str all; /* of autoscalers the spec */
    td_str managers;
    td_str annotations;
};

/* Of an autoscaler. */
static void fill_scaler(enum td_informer_kind kind, struct td_informer_object *object,
                        const struct informers_raw *raw, struct td_arena *arena)
{
    object->spec_hash = td_map_hash(raw->all) * 31 + td_map_hash(raw->annotations);
    if (kind == TD_INFORMER_HPAS || kind == TD_INFORMER_OWN_HPAS) {
        object->status_text =
            td_json_line(arena, informers_managers(arena, raw->managers, TD_STR("status")));
    }
}

/* Its text in two parts, where the table has room for the shape. */
static void fill_split(struct td_informers *informers, struct td_informer_pod *pod,
                       struct td_arena *arena)
{
    td_auto_buf shape = td_buf_capped(TD_JSON_BYTES_MAX);
    td_auto_buf values = td_buf_capped(TD_JSON_BYTES_MAX);
    const struct td_pod_text_known known = informers_known(&pod->object);
    if (!td_pod_text_split(pod->object.text, &known, &shape, &values)) {
        return;
    }
    pod->object.shape = td_intern_ref(informers->shapes, td_buf_str(&shape));
    pod->object.is_split = pod->object.shape.ptr != NULL;
    if (pod->object.is_split) {
        pod->object.text = td_arena_copy_str(arena, td_buf_str(&values));
    }
}

static void informers_fill(void *context, void *filled, struct td_arena *arena)
{
    const struct td_informer_feed *feed = context;
    enum td_informer_kind kind = feed->kind;
    struct td_informer_object *object = filled;
    const void *behind = (const char *)filled + informers_bytes(kind);
    const struct informers_raw *raw = behind;
    if (td_informers_keep_all(kind)) {
        fill_scaler(kind, object, raw, arena);
        return;
    }
    struct td_json *tree = NULL;
    struct td_json *kept = NULL;
    object->text = TD_STR("{}");
    if (td_json_parse(arena, raw->all, NULL, &tree, NULL) == TD_OK) { /* it was read once already */
        kept = td_informers_trim(arena, kind, tree);
        if (kind == TD_INFORMER_PODS) {
            trim_resize(arena, raw->managers, kept);
        }
        object->text = td_json_line(arena, kept);
    }
    if (kind == TD_INFORMER_PODS) {
        object->labels_hash =
            informers_hash_labels(arena, td_json_get_path(tree, "metadata.labels"));
        fill_split(feed->informers, filled, arena);
    }
}

static void informers_release(void *context, void *released)
{
    const struct td_informer_feed *feed = context;
    struct td_informer_object *object = released;
    if (object->is_split) {
        td_intern_unref(feed->informers->shapes, object->shape);
    } else if (feed->kind >= TD_INFORMER_DEPLOYMENTS) {
        td_informer_workload_free(object->workload);
    }
}

/* ---- Pods by namespace ---- */

static struct td_informer_namespace *informers_namespace(struct td_informers *informers,
                                                         td_str name)
{
    struct td_informer_namespace *ns = td_map_get(&informers->namespaces, name);
    if (!ns) {
        ns = td_alloc_zero(1, sizeof(*ns));
        ns->name = td_text_copy(name);
        int code = td_map_put(&informers->namespaces, ns->name, ns);
        td_assert(code == TD_OK); /* no more namespaces than pods */
    }
    return ns;
}

static void informers_link(struct td_informers *informers, struct td_informer_pod *pod)
{
    struct td_informer_namespace *ns = informers_namespace(informers, pod->object.head.namespace);
    pod->previous = ns->last;
    *(ns->last ? &ns->last->next : &ns->first) = pod;
    ns->last = pod;
}

static void informers_unlink(struct td_informers *informers, struct td_informer_pod *pod)
{
    struct td_informer_namespace *ns =
        td_map_get(&informers->namespaces, pod->object.head.namespace);
    *(pod->previous ? &pod->previous->next : &ns->first) = pod->next;
    *(pod->next ? &pod->next->previous : &ns->last) = pod->previous;
    if (!ns->first) {
        (void)td_map_remove(&informers->namespaces, ns->name);
        td_text_free(ns->name);
        td_free(ns);
    }
}

/* The objects are the informers' own: const is for consumers. */
static struct td_informer_pod *informers_own_pod(const void *object)
{
    return (struct td_informer_pod *)(uintptr_t)object;
}

static void informers_pod_added(void *context, const void *object)
{
    struct td_informers *informers = context;
    informers_link(informers, informers_own_pod(object));
    if (informers->is_indexed) {
        td_pod_index_add(&informers->labels, informers_own_pod(object));
    }
}

static void informers_pod_changed(void *context, const void *before, const void *after)
{
    struct td_informers *informers = context;
    struct td_informer_pod *old = informers_own_pod(before);
    struct td_informer_pod *new = informers_own_pod(after);
    struct td_informer_namespace *ns =
        td_map_get(&informers->namespaces, old->object.head.namespace);
    new->next = old->next;
    new->previous = old->previous;
    *(new->previous ? &new->previous->next : &ns->first) = new;
    *(new->next ? &new->next->previous : &ns->last) = new;
    if (informers->is_indexed) {
        td_pod_index_change(&informers->labels, old, new);
    }
}

static void informers_pod_deleted(void *context, const void *object)
{
    struct td_informers *informers = context;
    if (informers->is_indexed) {
        td_pod_index_remove(&informers->labels, informers_own_pod(object));
    }
    informers_unlink(informers, informers_own_pod(object));
}

void td_informers_index_pods(struct td_informers *informers)
{
    informers->is_indexed = true;
}

void td_informers_match_pods(const struct td_informers *informers, td_str namespace,
                             const struct td_selector *selector, struct td_pod_match *ret)
{
    td_assert(informers->is_indexed);
    td_pod_index_match(&informers->labels, namespace, selector, ret);
}

const struct td_informer_pod *td_informers_next_pod(const struct td_informers *informers,
                                                    td_str namespace,
                                                    const struct td_informer_pod *previous)
{
    if (previous) {
        return previous->next;
    }
    const struct td_informer_namespace *ns = td_map_get(&informers->namespaces, namespace);
    return ns ? ns->first : NULL;
}

/* ---- LimitRanges ---- */

static void informers_limits_free(struct td_informer_limits *limits)
{
    td_arena_done(&limits->arena);
    td_text_free(limits->namespace);
    td_free(limits);
}

static void informers_limits_forget(struct td_informers *informers, const void *object)
{
    const struct td_cache_head *head = object;
    struct td_informer_limits *limits = td_map_remove(&informers->limits, head->namespace);
    if (limits) {
        informers_limits_free(limits);
    }
}

static void informers_limits_changed(void *context, const void *before, const void *after)
{
    (void)after;
    informers_limits_forget(context, before);
}

static void informers_limits_touched(void *context, const void *object)
{
    informers_limits_forget(context, object);
}

static int informers_compare_objects(const void *a, const void *b)
{
    const struct td_informer_object *const *x = a;
    const struct td_informer_object *const *y = b;
    return td_str_compare((*x)->head.name, (*y)->head.name);
}

/* The trees of the namespace's LimitRanges, by name. */
static size_t informers_limit_trees(struct td_informers *informers,
                                    struct td_informer_limits *limits, const struct td_json ***ret)
{
    const struct td_cache *cache = informers->caches[TD_INFORMER_LIMIT_RANGES];
    size_t all = cache ? td_cache_count(cache) : 0;
    const struct td_informer_object **objects =
        td_arena_array(&limits->arena, const struct td_informer_object *, all + 1);
    const struct td_json **trees = td_arena_array(&limits->arena, const struct td_json *, all + 1);
    size_t found = 0;
    size_t count = 0;
    size_t position = 0;
    for (const struct td_informer_object *o; all > 0 && (o = td_cache_next(cache, &position));) {
        if (td_str_equal(o->head.namespace, limits->namespace)) {
            objects[found++] = o;
        }
    }
    if (found > 0) {
        qsort(objects, found, sizeof(*objects), informers_compare_objects);
    }
    for (size_t i = 0; i < found; i++) {
        struct td_json *tree;
        if (td_informers_tree(&limits->arena, objects[i], &tree, NULL) == TD_OK) {
            trees[count++] = tree;
        }
    }
    *ret = trees;
    return count;
}

static struct td_informer_limits *informers_limits_read(struct td_informers *informers,
                                                        td_str namespace)
{
    struct td_informer_limits *limits = td_alloc_zero(1, sizeof(*limits));
    limits->namespace = td_text_copy(namespace);
    td_arena_init(&limits->arena, TD_TREE_ARENA_BYTES_MAX);
    const struct td_json **trees;
    size_t count = informers_limit_trees(informers, limits, &trees);
    limits->objects = (struct td_limit_objects){.items = trees, .count = count};
    struct td_error err = TD_ERROR_INIT;
    if (count > 0 && td_limit_ranges_read(&limits->arena, trees, count, namespace, &limits->ranges,
                                          &err) == TD_OK) {
        limits->is_set = true;
    } else if (count > 0) {
        td_log_line(informers->log, TD_LOG_WARN, "cannot read the namespace's LimitRanges",
                    TD_LOG_S("namespace", namespace), TD_LOG_C("error", err.message));
    }
    return limits;
}

static const struct td_informer_limits *informers_limits_get(struct td_informers *informers,
                                                             td_str namespace)
{
    struct td_informer_limits *limits = td_map_get(&informers->limits, namespace);
    if (!limits) {
        limits = informers_limits_read(informers, namespace);
        if (td_map_put(&informers->limits, limits->namespace, limits) != TD_OK) {
            informers_limits_free(limits);
            return NULL;
        }
    }
    return limits;
}

const struct td_limit_ranges *td_informers_limits(struct td_informers *informers, td_str namespace)
{
    const struct td_informer_limits *limits = informers_limits_get(informers, namespace);
    return limits && limits->is_set ? &limits->ranges : NULL;
}

struct td_limit_objects td_informers_limit_objects(struct td_informers *informers, td_str namespace)
{
    const struct td_informer_limits *limits = informers_limits_get(informers, namespace);
    return limits ? limits->objects : (struct td_limit_objects){.count = 0};
}

/* ---- The whole ---- */

#define INFORMER_FIELDS_SHARED 5 /* decoded of every object */
#define INFORMER_FIELDS_MORE 2   /* of pods and VPAs, and of what is kept whole */
#define INFORMER_FIELDS_MAX (INFORMER_FIELDS_SHARED + 2 * INFORMER_FIELDS_MORE)

static void informers_add_fields(struct td_cache_field *fields, struct td_cache_options *options,
                                 const struct td_cache_field more[INFORMER_FIELDS_MORE])
{
    memcpy(fields + options->field_count, more, INFORMER_FIELDS_MORE * sizeof(*more));
    options->field_count += INFORMER_FIELDS_MORE;
}

/* The fields of a kind, which has a struct of its own when it has more than the others. */
static void informers_choose_fields(enum td_informer_kind kind,
                                    struct td_cache_field fields[INFORMER_FIELDS_MAX],
                                    struct td_cache_options *options)
{
    bool is_whole = td_informers_keep_all(kind);
    size_t raw = informers_bytes(kind);
    const struct td_cache_field shared[INFORMER_FIELDS_SHARED] = {
        {is_whole ? "spec" : "", TD_CACHE_RAW_ONCE, raw + offsetof(struct informers_raw, all)},
        {"metadata.managedFields", TD_CACHE_RAW_ONCE,
         raw + offsetof(struct informers_raw, managers)},
        {"metadata.generation", TD_CACHE_INT64, offsetof(struct td_informer_object, generation)},
        {"metadata.deletionTimestamp", TD_CACHE_PRESENT,
         offsetof(struct td_informer_object, is_deleting)},
        {"", is_whole ? TD_CACHE_RAW : TD_CACHE_MADE, offsetof(struct td_informer_object, text)},
    };
    const struct td_cache_field of_whole[INFORMER_FIELDS_MORE] = {
        {"", TD_CACHE_MADE, offsetof(struct td_informer_object, status_text)},
        {"metadata.annotations", TD_CACHE_RAW_ONCE,
         raw + offsetof(struct informers_raw, annotations)},
    };
    static const struct td_cache_field of_pods[INFORMER_FIELDS_MORE] = {
        {"spec.nodeName", TD_CACHE_NAME, offsetof(struct td_informer_pod, node)},
        {"status.phase", TD_CACHE_NAME, offsetof(struct td_informer_pod, phase)},
    };
    static const struct td_cache_field of_vpas[INFORMER_FIELDS_MORE] = {
        {"spec.targetRef.kind", TD_CACHE_NAME, offsetof(struct td_informer_vpa, target_kind)},
        {"spec.targetRef.name", TD_CACHE_TEXT, offsetof(struct td_informer_vpa, target_name)},
    };
    memcpy(fields, shared, sizeof(shared));
    options->fields = fields;
    options->field_count = INFORMER_FIELDS_SHARED;
    options->kept_bytes = raw;
    options->struct_bytes = raw + sizeof(struct informers_raw);
    if (is_whole) {
        informers_add_fields(fields, options, of_whole);
    }
    if (kind == TD_INFORMER_PODS) {
        informers_add_fields(fields, options, of_pods);
    } else if (kind == TD_INFORMER_VPAS) {
        informers_add_fields(fields, options, of_vpas);
    }
}

static int informers_make_cache(struct td_informers *informers,
                                const struct td_informers_options *options,
                                enum td_informer_kind kind, struct td_error *err)
{
    bool is_vpa = kind == TD_INFORMER_VPAS;
    td_str namespace =
        is_vpa && options->vpa_namespace.len > 0 ? options->vpa_namespace : options->namespace;
    const struct td_informer_row *row = &td_informer_rows[kind];
    informers->feeds[kind] = (struct td_informer_feed){.informers = informers, .kind = kind};
    struct td_cache_options cache = {
        .loop = options->loop,
        .client = options->client,
        .group = td_str_from(row->group),
        .version = td_str_from(row->version),
        .plural = td_str_from(row->plural),
        .namespace = kind == TD_INFORMER_NODES ? TD_STR_EMPTY : namespace,
        .shard = kind == TD_INFORMER_NODES ? NULL : options->shard,
        .names = informers->names,
        .fill = informers_fill,
        .release = informers_release,
        .context = &informers->feeds[kind],
        .seed = options->seed + (uint64_t)kind,
    };
    struct td_cache_field fields[INFORMER_FIELDS_MAX];
    informers_choose_fields(kind, fields, &cache);
    return td_cache_new(&cache, &informers->caches[kind], err);
}

static void informers_settled(void *context)
{
    struct td_informers *informers = context;
    for (size_t i = 0; i < informers->listener_count; i++) {
        informers->listeners[i].settled(informers->listeners[i].context);
    }
}

int td_informers_new(const struct td_informers_options *options, struct td_informers **ret,
                     struct td_error *err)
{
    struct td_informers *informers = td_alloc_zero(1, sizeof(*informers));
    informers->loop = options->loop;
    informers->client = options->client;
    informers->log = options->log;
    informers->names = td_intern_new(TD_CACHE_OBJECTS_MAX);
    informers->shapes = td_intern_new(TD_CACHE_OBJECTS_MAX);
    td_map_init(&informers->namespaces, TD_CACHE_OBJECTS_MAX);
    td_map_init(&informers->limits, TD_CACHE_OBJECTS_MAX);
    td_pod_index_init(&informers->labels);
    informers->discovery =
        td_api_discovery_new(options->loop, options->client, informers_settled, informers);
    td_informers_source_init(informers);
    int code = TD_OK;
    for (size_t kind = 0; kind < TD_INFORMER_COUNT && code == TD_OK; kind++) {
        if (options->wants[kind]) {
            code = informers_make_cache(informers, options, (enum td_informer_kind)kind, err);
        }
    }
    if (code != TD_OK) {
        td_informers_free(informers);
        return code;
    }
    static const struct td_cache_handler pods = {.added = informers_pod_added,
                                                 .changed = informers_pod_changed,
                                                 .deleted = informers_pod_deleted};
    static const struct td_cache_handler limits = {.added = informers_limits_touched,
                                                   .changed = informers_limits_changed,
                                                   .deleted = informers_limits_touched};
    td_informers_subscribe(informers, TD_INFORMER_PODS, &pods, informers);
    td_informers_subscribe(informers, TD_INFORMER_LIMIT_RANGES, &limits, informers);
    *ret = informers;
    return TD_OK;
}

void td_informers_free(struct td_informers *informers)
{
    if (!informers) {
        return;
    }
    for (size_t kind = 0; kind < TD_INFORMER_COUNT; kind++) {
        td_cache_free(informers->caches[kind]);
    }
    for (struct td_map_walk at = {.map = &informers->limits}; td_map_step(&at);) {
        informers_limits_free(at.value);
    }
    for (struct td_map_walk at = {.map = &informers->namespaces}; td_map_step(&at);) {
        struct td_informer_namespace *ns = at.value;
        td_text_free(ns->name);
        td_free(ns);
    }
    td_map_done(&informers->limits);
    td_map_done(&informers->namespaces);
    td_pod_index_done(&informers->labels);
    td_api_discovery_free(informers->discovery);
    td_informers_source_done(informers);
    td_intern_free(informers->names);
    td_intern_free(informers->shapes);
    td_free(informers);
}

void td_informers_subscribe(struct td_informers *informers, enum td_informer_kind kind,
                            const struct td_cache_handler *handler, void *context)
{
    if (informers->caches[kind]) {
        td_cache_subscribe(informers->caches[kind], handler, context);
    }
}

void td_informers_on_settled(struct td_informers *informers, void (*settled)(void *context),
                             void *context)
{
    td_assert(informers->listener_count < TD_INFORMER_LISTENERS_MAX);
    informers->listeners[informers->listener_count].settled = settled;
    informers->listeners[informers->listener_count++].context = context;
}

void td_informers_start(struct td_informers *informers)
{
    for (size_t kind = 0; kind < TD_INFORMER_COUNT; kind++) {
        if (informers->caches[kind]) {
            td_cache_start(informers->caches[kind]);
        }
    }
}

/* A cluster may be without our own kinds: then there are no such objects. For the others a missing
 * kind is problem: without VPAs their checkpoints would look left over. */
static bool informers_is_absent(const struct td_informers *informers, size_t kind)
{
    return (kind == TD_INFORMER_OWN_HPAS || kind == TD_INFORMER_HVPAS) &&
           td_cache_error(informers->caches[kind])->code == TD_NOT_FOUND;
}

bool td_informers_is_synced(const struct td_informers *informers)
{
    for (size_t kind = 0; kind < TD_INFORMER_COUNT; kind++) {
        if (informers->caches[kind] && !td_cache_is_synced(informers->caches[kind]) &&
            !informers_is_absent(informers, kind)) {
            return false;
        }
    }
    return true;
}

td_duration td_informers_age(const struct td_informers *informers)
{
    td_duration oldest = 0;
    for (size_t kind = 0; kind < TD_INFORMER_COUNT; kind++) {
        bool is_counted = informers->caches[kind] && !informers_is_absent(informers, kind);
        td_duration age = is_counted ? td_cache_age(informers->caches[kind]) : 0;
        oldest = age > oldest ? age : oldest;
    }
    return oldest;
}

const struct td_cache *td_informers_cache(const struct td_informers *informers,
                                          enum td_informer_kind kind)
{
    return informers->caches[kind];
}

const struct td_json *td_informers_target(enum td_informer_kind kind, const struct td_json *tree)
{
    td_str field;
    if (kind == TD_INFORMER_HVPAS) {
        return td_hvpa_target(tree, &field);
    }
    return td_json_get_path(tree,
                            kind == TD_INFORMER_VPAS ? "spec.targetRef" : "spec.scaleTargetRef");
}

bool td_informers_has_same_owners(const struct td_informer_object *before,
                                  const struct td_informer_object *after)
{
    struct td_json *was;
    struct td_json *is;
    if (!td_str_equal(before->head.uid, after->head.uid)) {
        return false;
    }
    if (td_str_equal(before->text, after->text)) {
        return true;
    }
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    return td_informers_tree(&arena, before, &was, NULL) == TD_OK &&
           td_informers_tree(&arena, after, &is, NULL) == TD_OK &&
           td_json_equal(td_json_get_path(was, "metadata.ownerReferences"),
                         td_json_get_path(is, "metadata.ownerReferences"));
}

const struct td_workload_source *td_informers_source(struct td_informers *informers)
{
    return &informers->source;
}

int td_informers_resource(struct td_informers *informers, td_str group, td_str kind, size_t index,
                          struct td_served_resource *ret, struct td_error *err)
{
    int code = td_api_discovery_resource(informers->discovery, group, kind, index, ret, err);
    if (code == TD_NOT_FOUND) {
        (void)td_error_set(err, TD_NOT_FOUND, "no matches for kind \"%.*s\" in group \"%.*s\"",
                           TD_STR_ARG(kind), TD_STR_ARG(group));
    }
    return code;
}
