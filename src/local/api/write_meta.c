/*
 * Metadata that every kind shares: what clients cannot say about themselves is wiped, what only the
 * server knows is filled in, and the order of members is upstream's, so that a reader finds the
 * name first and the storage finds uid and labels without reading the whole object.
 */
#include "base/error.h"
#include "base/limits.h"
#include "kube/meta.h"
#include "local/api/write.h"

void td_meta_wipe(struct td_json *object)
{
    static const td_str wiped[] = {
        TD_STR_INIT("uid"),
        TD_STR_INIT("creationTimestamp"),
        TD_STR_INIT("deletionTimestamp"),
        TD_STR_INIT("deletionGracePeriodSeconds"),
        TD_STR_INIT("selfLink"),
    };
    struct td_json *metadata = td_json_get(object, TD_STR("metadata"));
    for (size_t i = 0; i < TD_COUNT(wiped); i++) {
        (void)td_json_remove(metadata, wiped[i]); /* it may not be there */
    }
}

enum td_write_step td_meta_check_place(struct td_write *write, struct td_json *object)
{
    td_str ns = td_meta_text(object, TD_STR("namespace"));
    struct td_json *metadata = td_json_ensure_object(write->arena, object, TD_STR("metadata"));
    if (!write->resource->is_namespaced) {
        (void)td_json_remove(metadata, TD_STR("namespace")); /* it may not be there */
        return TD_STEP_NEXT;
    }
    if (ns.len > 0 && !td_str_equal(ns, write->ns)) {
        return td_write_bad_request(write, "the namespace of the provided object does not match "
                                           "the namespace sent on the request");
    }
    td_json_set_str(write->arena, metadata, TD_STR("namespace"), write->ns);
    return TD_STEP_NEXT;
}

struct td_json *td_meta_time(struct td_arena *arena, struct td_instant instant)
{
    return td_json_new_string(arena, td_time_text(arena, instant, 0));
}

/* A free name, if a few attempts find one. */
static td_str meta_generate_name(struct td_write *write, td_str base)
{
    base = td_str_cut_utf8(base, TD_GENERATED_NAME_BASE_BYTES_MAX);
    td_str name = TD_STR_EMPTY;
    for (int i = 0; i < TD_GENERATED_NAME_ATTEMPTS_MAX; i++) {
        td_str suffix = td_call_name_suffix(write->call); /* once: it draws */
        name = td_arena_format(write->arena, "%.*s%.*s", TD_STR_ARG(base), TD_STR_ARG(suffix));
        if (!td_collection_get(write->collection, write->ns, name)) {
            break;
        }
    }
    return name;
}

static void meta_complete_new(struct td_write *write, struct td_json *metadata)
{
    struct td_arena *arena = write->arena;
    td_str base = td_json_text(metadata, "generateName");
    td_str name = td_json_text(metadata, "name");
    if (name.len == 0 && base.len > 0) {
        name = meta_generate_name(write, base);
        td_json_set_str(arena, metadata, TD_STR("name"), name);
    }
    write->name = name;
    td_json_set_str(arena, metadata, TD_STR("uid"), td_call_new_uid(write->call));
    td_json_set(arena, metadata, TD_STR("creationTimestamp"),
                td_meta_time(arena, td_call_now(write->call)));
    (void)td_json_remove(metadata,
                         TD_STR("resourceVersion")); /* a lease made by PUT may have one */
}

static void meta_keep(struct td_arena *arena, struct td_json *metadata, const struct td_json *old,
                      td_str key)
{
    const struct td_json *value = td_json_get(old, key);
    td_json_set_copy(arena, metadata, key, value);
}

void td_meta_complete(struct td_write *write, struct td_json *object)
{
    struct td_arena *arena = write->arena;
    struct td_json *metadata = td_json_ensure_object(arena, object, TD_STR("metadata"));
    (void)td_json_remove(metadata, TD_STR("selfLink")); /* not written any more */
    if (!write->old) {
        meta_complete_new(write, metadata);
        return;
    }
    const struct td_json *old = td_json_get(write->old, TD_STR("metadata"));
    if (td_json_text(metadata, "uid").len == 0) {
        meta_keep(arena, metadata, old, TD_STR("uid"));
    }
    meta_keep(arena, metadata, old, TD_STR("creationTimestamp"));
    meta_keep(arena, metadata, old, TD_STR("deletionTimestamp"));
    if (!td_json_get(metadata, TD_STR("deletionGracePeriodSeconds"))) {
        meta_keep(arena, metadata, old, TD_STR("deletionGracePeriodSeconds"));
    }
    (void)td_json_remove(metadata, TD_STR("generation")); /* counted by the server */
    meta_keep(arena, metadata, old, TD_STR("generation"));
    meta_keep(arena, metadata, old, TD_STR("resourceVersion"));
}

bool td_meta_has_finalizers(const struct td_resource *resource, const struct td_json *object)
{
    const struct td_json *finalizers = td_json_get_path(object, "metadata.finalizers");
    if (td_json_is(finalizers, TD_JSON_TYPE_ARRAY) && finalizers->count > 0) {
        return true;
    }
    const struct td_json *of_spec = td_json_get_path(object, "spec.finalizers");
    return td_str_equal(resource->collection, TD_STR("namespaces")) &&
           td_json_is(of_spec, TD_JSON_TYPE_ARRAY) && of_spec->count > 0;
}

bool td_meta_is_finished(const struct td_resource *resource, const struct td_json *old,
                         const struct td_json *object)
{
    const struct td_json *metadata = td_json_get(old, TD_STR("metadata"));
    if (!td_json_get(metadata, TD_STR("deletionTimestamp"))) {
        return false;
    }
    bool is_graceful = td_json_get_int64(metadata, TD_STR("deletionGracePeriodSeconds"), 0) != 0;
    return !is_graceful && !td_meta_has_finalizers(resource, object);
}

/* Members of two objects are equal, leaving out one of them. */
static bool meta_equal_without(const struct td_json *a, const struct td_json *b, td_str without)
{
    size_t extra_a = td_json_get(a, without) ? 1 : 0;
    size_t extra_b = td_json_get(b, without) ? 1 : 0;
    if (a->count - extra_a != b->count - extra_b) {
        return false;
    }
    for (const struct td_json *member = td_json_first_member(a); member; member = member->next) {
        if (!td_str_equal(member->key, without) &&
            !td_json_equal(member, td_json_get(b, member->key))) {
            return false;
        }
    }
    return true;
}

static bool meta_equal_managed(const struct td_json *a, const struct td_json *b)
{
    if (!td_json_is(a, TD_JSON_TYPE_ARRAY) || !td_json_is(b, TD_JSON_TYPE_ARRAY)) {
        return a == b || td_json_equal(a, b);
    }
    if (a->count != b->count) {
        return false;
    }
    const struct td_json *other = td_json_first_item(b);
    for (const struct td_json *entry = td_json_first_item(a); entry;
         entry = entry->next, other = other->next) {
        if (!td_json_is(entry, TD_JSON_TYPE_OBJECT) || !td_json_is(other, TD_JSON_TYPE_OBJECT) ||
            !meta_equal_without(entry, other, TD_STR("time"))) {
            return false;
        }
    }
    return true;
}

bool td_meta_is_same(const struct td_json *old, const struct td_json *object)
{
    const struct td_json *a = td_json_get(old, TD_STR("metadata"));
    const struct td_json *b = td_json_get(object, TD_STR("metadata"));
    if (!td_json_is(a, TD_JSON_TYPE_OBJECT) || !td_json_is(b, TD_JSON_TYPE_OBJECT)) {
        return false;
    }
    return meta_equal_without(old, object, TD_STR("metadata")) &&
           meta_equal_without(a, b, TD_STR("managedFields")) &&
           meta_equal_managed(td_json_get(a, TD_STR("managedFields")),
                              td_json_get(b, TD_STR("managedFields")));
}

/* Are the members that are in `order` the first ones of the object, and in that order? */
static bool meta_is_ordered(const struct td_json *object, const td_str *order, size_t count)
{
    const struct td_json *at = td_json_first_member(object);
    size_t here = 0;
    size_t known = 0;
    for (size_t i = 0; i < count; i++) {
        bool is_here = at && td_str_equal(at->key, order[i]);
        here += is_here ? 1 : 0;
        at = is_here ? at->next : at;
        known += is_here || td_json_get(object, order[i]) ? 1 : 0;
    }
    return here == known;
}

/* Moves the members that are in `order` to the front. */
static void meta_order_members(struct td_arena *arena, struct td_json *object, const td_str *order,
                               size_t count)
{
    if (meta_is_ordered(object, order, count)) {
        return;
    }
    struct td_json *next = td_json_new_object(arena);
    for (size_t i = 0; i < count; i++) {
        struct td_json *member = td_json_get(object, order[i]);
        if (member && td_json_remove(object, order[i])) {
            td_json_set(arena, next, order[i], member);
        }
    }
    for (struct td_json *member; (member = td_json_first_member(object));) {
        td_str key = member->key;
        (void)td_json_remove(object, key); /* it is the first one */
        td_json_set(arena, next, key, member);
    }
    td_json_take(object, next);
}

void td_meta_order(struct td_arena *arena, struct td_json *object)
{
    static const td_str of_object[] = {
        TD_STR_INIT("kind"),
        TD_STR_INIT("apiVersion"),
        TD_STR_INIT("metadata"),
    };
    static const td_str of_metadata[] = {
        TD_STR_INIT("name"),
        TD_STR_INIT("generateName"),
        TD_STR_INIT("namespace"),
        TD_STR_INIT("uid"),
        TD_STR_INIT("resourceVersion"),
        TD_STR_INIT("generation"),
        TD_STR_INIT("creationTimestamp"),
        TD_STR_INIT("deletionTimestamp"),
        TD_STR_INIT("deletionGracePeriodSeconds"),
        TD_STR_INIT("labels"),
        TD_STR_INIT("annotations"),
        TD_STR_INIT("ownerReferences"),
        TD_STR_INIT("finalizers"),
        TD_STR_INIT("managedFields"),
    };
    meta_order_members(arena, object, of_object, TD_COUNT(of_object));
    struct td_json *metadata = td_json_ensure_object(arena, object, TD_STR("metadata"));
    meta_order_members(arena, metadata, of_metadata, TD_COUNT(of_metadata));
}

int td_meta_commit(struct td_store *store, struct td_collection *collection,
                   enum td_change_type type, struct td_arena *arena, struct td_json *object,
                   struct td_stored **ret, struct td_error *err)
{
    uint64_t version = td_store_reserve(store);
    struct td_json *metadata = td_json_ensure_object(arena, object, TD_STR("metadata"));
    struct td_json *before = td_json_get(metadata, TD_STR("resourceVersion"));
    td_json_set_str(arena, metadata, TD_STR("resourceVersion"),
                    td_arena_format(arena, "%llu", (unsigned long long)version));
    td_meta_order(arena, object);
    td_auto_buf text = td_buf_capped(TD_OBJECT_BYTES_MAX);
    td_json_write(object, &(struct td_json_format){.indent = 0}, &text);
    const struct td_commit commit = {
        .type = type,
        .ns = td_json_text(metadata, "namespace"),
        .name = td_json_text(metadata, "name"),
        .version = version,
        .json = td_buf_str(&text),
    };
    int r = text.is_full ? td_error_set(err, TD_LIMIT, "etcdserver: request is too large")
                         : td_store_commit(store, collection, &commit, ret, err);
    if (r < 0 && before) {
        td_json_set(arena, metadata, TD_STR("resourceVersion"), before);
    }
    return r;
}
