/*
 * The field manager. An object's owners are a table (managed.h); every write compares the object
 * before and after (typed.h) and moves ownership accordingly:
 *
 * - an update takes over every field it changed or added, and fields it removed have no owner;
 * - an apply owns exactly what its configuration mentions. Changing a field that another manager
 *   owns is a conflict unless forced; a field it mentioned last time and not now is removed,
 *   unless others own it too.
 *
 * Upstream stacks managers around managers for this; the order of their steps is kept, since it
 * shows: ownership of metadata's identity is stripped after conflicts were judged, the time of an
 * entry moves only when the object changed, updaters are capped last.
 *
 * Conversion between API versions is the caller's: owners recorded at another version are compared
 * in the version of the request, which upstream also does with a converter that changes nothing.
 */
#include "kube/apply/apply.h"

#include "base/assert.h"
#include "base/error.h"
#include "kube/apply/apply_conflict.h"
#include "kube/apply/fieldset_types.h"
#include "kube/apply/last_applied.h"
#include "kube/apply/managed.h"
#include "kube/apply/typed.h"

/* One request under way. */
struct apply {
    struct td_arena *arena;
    const struct td_apply_request *request;
    const struct td_schema_type *type;
    struct td_error *err;
};

/* A kind without schema is untyped as a whole, metadata included, as upstream deduces it. */
static const struct td_schema_type untyped = {.kind = TD_SCHEMA_ANY};

static struct apply apply_begin(struct td_arena *arena, const struct td_apply_request *request,
                                struct td_error *err)
{
    td_assert(request->type);
    bool is_untyped = request->type == td_schema_any_object();
    return (struct apply){
        .arena = arena,
        .request = request,
        .type = is_untyped ? &untyped : request->type,
        .err = err,
    };
}

/* Fields of identity that no manager owns. */
static const struct td_fieldset *never_owned(struct td_arena *arena)
{
    static const td_str of_metadata[] = {
        TD_STR_INIT("clusterName"),
        TD_STR_INIT("creationTimestamp"),
        TD_STR_INIT("generation"),
        TD_STR_INIT("managedFields"),
        TD_STR_INIT("name"),
        TD_STR_INIT("namespace"),
        TD_STR_INIT("resourceVersion"),
        TD_STR_INIT("selfLink"),
        TD_STR_INIT("uid"),
    };
    struct td_fieldset_builder metadata = {.arena = arena};
    for (size_t i = 0; i < TD_COUNT(of_metadata); i++) {
        const struct td_field_step step = {.kind = TD_FIELD_NAME, .name = of_metadata[i]};
        td_fieldset_builder_add(&metadata, &step, true, NULL);
    }
    const struct td_field_step version = {.kind = TD_FIELD_NAME, .name = TD_STR("apiVersion")};
    const struct td_field_step kind = {.kind = TD_FIELD_NAME, .name = TD_STR("kind")};
    const struct td_field_step meta = {.kind = TD_FIELD_NAME, .name = TD_STR("metadata")};
    struct td_fieldset_builder root = {.arena = arena};
    td_fieldset_builder_add(&root, &version, true, NULL);
    td_fieldset_builder_add(&root, &kind, true, NULL);
    td_fieldset_builder_add(&root, &meta, true, td_fieldset_builder_finish(&metadata));
    return td_fieldset_builder_finish(&root);
}

/* What an object that does not exist yet is compared with. */
static struct td_json *empty_object(const struct apply *a, const struct td_json *like)
{
    struct td_json *object = td_json_new_object(a->arena);
    td_str kind = td_json_get_str(like, TD_STR("kind"), a->request->kind);
    td_json_set_str(a->arena, object, TD_STR("apiVersion"), a->request->api_version);
    td_json_set_str(a->arena, object, TD_STR("kind"), kind);
    return object;
}

static struct td_manager request_manager(const struct apply *a, td_str name, bool is_apply)
{
    return (struct td_manager){
        .name = name.len > 0 ? name : TD_STR("unknown"),
        .api_version = a->request->api_version,
        .subresource = a->request->subresource,
        .is_apply = is_apply,
    };
}

/* Is the object of the version and kind asked for? */
static bool is_wanted_kind(const struct apply *a, const struct td_json *object)
{
    td_str version = td_json_text(object, "apiVersion");
    td_str kind = td_json_text(object, "kind");
    bool is_kind = a->request->kind.len == 0 || td_str_equal(kind, a->request->kind);
    return is_kind && td_str_equal(version, a->request->api_version);
}

static int refuse_kind(const struct apply *a, const struct td_json *object)
{
    td_str version = td_json_text(object, "apiVersion");
    td_str kind = td_json_text(object, "kind");
    return td_error_set(a->err, TD_INVALID, "invalid object type: %.*s, Kind=%.*s",
                        TD_STR_ARG(version), TD_STR_ARG(kind));
}

static int validate(const struct apply *a, const struct td_json *object, bool allow_duplicates,
                    const char *what)
{
    bool is_kind = a->type == &untyped || is_wanted_kind(a, object);
    int r = is_kind ? td_typed_validate(a->arena, a->type, object, allow_duplicates, a->err)
                    : refuse_kind(a, object);
    return r < 0 ? td_error_wrap(a->err, r, "%s", what) : r;
}

/* Check the live object and bring its owners to today's schema. Owners of another version make
 * upstream convert the object, which refuses list items of one key and versions that cannot be
 * read. */
static int reconcile_owners(const struct apply *a, struct td_managed *managed,
                            const struct td_json *live, bool *ret_is_mixed)
{
    int r = validate(a, live, true, "live object");
    if (r < 0) {
        return r;
    }
    *ret_is_mixed = false;
    for (size_t i = 0; i < managed->count; i++) {
        struct td_managed_entry *entry = &managed->entries[i];
        td_str version = entry->manager.api_version;
        if (!entry->is_present) {
            continue;
        }
        size_t slash = td_str_find(version, '/', 0);
        if (td_str_find(version, '/', slash + 1) < version.len) {
            return td_error_set(a->err, TD_INVALID,
                                "metadata.managedFields: apiVersion '%.*s' is not a group and a "
                                "version",
                                TD_STR_ARG(version));
        }
        *ret_is_mixed |= !td_str_equal(version, a->request->api_version);
        entry->fields = td_typed_reconcile(a->arena, a->type, entry->fields);
    }
    if (*ret_is_mixed) {
        return validate(a, live, false, "live object");
    }
    return td_arena_check(a->arena, a->err);
}

/* Take changed, added and removed fields away from all managers but `self` (NULL: from all).
 * Conflicts are only collected when asked for, and then nothing is taken. */
static void take_fields(const struct apply *a, struct td_managed *managed,
                        const struct td_managed_entry *self, const struct td_typed_changes *changes,
                        struct td_conflicts *conflicts)
{
    const struct td_fieldset *written =
        td_fieldset_union(a->arena, changes->modified, changes->added);
    for (size_t i = 0; i < managed->count && conflicts; i++) {
        const struct td_managed_entry *entry = &managed->entries[i];
        if (entry->is_present && entry != self) {
            td_conflicts_add(a->arena, conflicts, &entry->manager,
                             td_fieldset_intersection(a->arena, entry->fields, written));
        }
    }
    if (conflicts && conflicts->count > 0) {
        return;
    }
    for (size_t i = 0; i < managed->count; i++) {
        struct td_managed_entry *entry = &managed->entries[i];
        bool is_self = self && entry == self;
        if (!is_self) {
            entry->fields = td_fieldset_difference(a->arena, entry->fields, written);
            entry->fields = td_fieldset_difference(a->arena, entry->fields, changes->removed);
        }
        entry->is_present &= entry->fields != NULL;
    }
}

/* Ownership after `manager` wrote the whole object `next` over `live`. */
static int update_owners(const struct apply *a, const struct td_json *live,
                         const struct td_json *next, struct td_managed *managed, td_str manager)
{
    int r = validate(a, next, true, "new object");
    if (r < 0) {
        return r;
    }
    bool is_mixed;
    r = reconcile_owners(a, managed, live, &is_mixed);
    if (r < 0) {
        return r;
    }
    r = is_mixed ? validate(a, next, false, "new object") : TD_OK;
    if (r < 0) {
        return r;
    }
    struct td_typed_changes changes = td_typed_compare(a->arena, a->type, live, next);
    take_fields(a, managed, NULL, &changes, NULL);
    const struct td_fieldset *taken = td_fieldset_union(a->arena, changes.modified, changes.added);
    taken = td_fieldset_difference(a->arena, taken, never_owned(a->arena));
    if (taken) {
        struct td_manager self = request_manager(a, manager, false);
        struct td_managed_entry *entry = td_managed_entry(a->arena, managed, &self);
        entry->fields =
            td_fieldset_union(a->arena, taken, entry->is_present ? entry->fields : NULL);
        entry->is_present = true;
        entry->has_time = true;
        entry->time = a->request->now;
    }
    td_managed_cap(a->arena, managed);
    return td_arena_check(a->arena, a->err);
}

/* What all managers own at one version, or at every other one. *ret_is_foreign tells whether a
 * version other than the request's is among them. */
static const struct td_fieldset *owned_at(const struct apply *a, const struct td_managed *managed,
                                          td_str version, bool is_other, bool *ret_is_foreign)
{
    const struct td_fieldset **sets =
        td_arena_array(a->arena, const struct td_fieldset *, managed->count);
    size_t count = 0;
    *ret_is_foreign = false;
    for (size_t i = 0; i < managed->count; i++) {
        const struct td_managed_entry *entry = &managed->entries[i];
        td_str entry_version = entry->manager.api_version;
        if (entry->is_present && td_str_equal(entry_version, version) != is_other) {
            sets[count++] = entry->fields;
            *ret_is_foreign |= !td_str_equal(entry_version, a->request->api_version);
        }
    }
    return td_fieldset_union_all(a->arena, sets, count);
}

static const struct td_fieldset *named_fields(const struct apply *a, const struct td_json *object)
{
    return td_typed_with_named(a->arena, a->type, td_typed_fields(a->arena, a->type, object));
}

/*
 * Remove from `merged` what this manager applied last time, does not apply now and no other manager
 * owns. Taking out a list item takes what is inside with it, so this goes in three passes:
 *
 * 1. without everything of the last apply;
 * 2. the same with what any manager owns now put back (the owners of the last apply's version
 *    first);
 * 3. from the whole again, without only those fields that 2 lost and the last apply had: fields
 *    that no manager owned stay.
 *
 * A configuration that mentions all it did last time loses nothing in pass 3, since each of its
 * fields comes with the ones above it; that is the usual case and needs no pass at all.
 */
static int prune(const struct apply *a, const struct td_json *merged,
                 const struct td_managed *managed, const struct td_managed_entry *last,
                 struct td_json **ret)
{
    const struct td_fieldset *before = td_typed_with_named(a->arena, a->type, last->fields);
    const struct td_fieldset *all = named_fields(a, merged);
    struct td_json *pruned = td_typed_remove(a->arena, a->type, merged, before);
    for (int pass = 0; pass < 2; pass++) {
        bool has_foreign;
        const struct td_fieldset *owned =
            owned_at(a, managed, last->manager.api_version, pass == 1, &has_foreign);
        int r = has_foreign ? validate(a, pruned, false, "pruned object") : TD_OK;
        if (r < 0) {
            return r;
        }
        if (owned) {
            owned = td_typed_with_named(a->arena, a->type, owned);
            owned = td_fieldset_union(a->arena, named_fields(a, pruned), owned);
            pruned = td_typed_remove(a->arena, a->type, merged,
                                     td_fieldset_difference(a->arena, all, owned));
        }
    }
    bool is_foreign = !td_str_equal(last->manager.api_version, a->request->api_version);
    int r = is_foreign ? validate(a, pruned, false, "pruned object") : TD_OK;
    if (r < 0) {
        return r;
    }
    const struct td_fieldset *lost = td_fieldset_difference(a->arena, all, named_fields(a, pruned));
    *ret = td_typed_remove(a->arena, a->type, merged,
                           td_fieldset_intersection(a->arena, lost, before));
    return validate(a, *ret, true, "pruned object"); /* a list item may have lost its key */
}

/* Does the last apply own something that this one does not mention? With owners of several versions
 * the passes are always made, because they can refuse. */
static bool needs_prune(const struct apply *a, const struct td_managed_entry *last,
                        const struct td_fieldset *now, bool is_mixed)
{
    if (!last->is_present || !last->fields || is_mixed) {
        return last->is_present && last->fields;
    }
    const struct td_fieldset *before = td_typed_with_named(a->arena, a->type, last->fields);
    now = td_typed_with_named(a->arena, a->type, now);
    return td_fieldset_difference(a->arena, before, now) != NULL;
}

static int check_object(const struct apply *a, const struct td_json *object, const char *what)
{
    if (object->type == TD_JSON_TYPE_OBJECT) {
        return TD_OK;
    }
    return td_error_set(a->err, TD_INVALID, "%s: expected an object", what);
}

/* The configuration is of the kind asked for, well formed, and does not say who owns it. */
static int check_applied(const struct apply *a, const struct td_json *applied)
{
    if (!is_wanted_kind(a, applied)) {
        return refuse_kind(a, applied);
    }
    if (td_managed_state(applied) != TD_MANAGED_ABSENT) {
        return td_error_set(a->err, TD_INVALID, "metadata.managedFields must be nil");
    }
    return validate(a, applied, false, "applied configuration");
}

/* One apply with the owners in `managed`. *ret_object is NULL when nothing changes. With conflicts
 * the answer is TD_CONFLICT, for the caller to report. */
static int apply_once(const struct apply *a, const struct td_json *live,
                      const struct td_json *applied, bool force, struct td_managed *managed,
                      struct td_json **ret_object, struct td_conflicts *ret_conflicts)
{
    int r = TD_OK;
    if (td_managed_is_empty(managed)) {
        r = update_owners(a, empty_object(a, applied), live, managed, TD_STR("before-first-apply"));
    }
    if (r < 0) {
        return r;
    }
    bool is_mixed;
    r = reconcile_owners(a, managed, live, &is_mixed);
    if (r < 0) {
        return r;
    }
    struct td_manager manager = request_manager(a, a->request->manager, true);
    struct td_managed_entry *self = td_managed_entry(a->arena, managed, &manager);
    struct td_managed_entry last = *self;
    self->manager = manager;
    self->fields = td_typed_fields(a->arena, a->type, applied);
    self->is_present = true;
    struct td_json *next = td_typed_merge(a->arena, a->type, live, applied);
    if (needs_prune(a, &last, self->fields, is_mixed)) {
        r = prune(a, next, managed, &last, &next);
    }
    if (r < 0) {
        return r;
    }
    r = td_arena_check(a->arena, a->err);
    if (r < 0) {
        return r;
    }
    struct td_typed_changes changes = td_typed_compare(a->arena, a->type, live, next);
    take_fields(a, managed, self, &changes, force ? NULL : ret_conflicts);
    if (!force && ret_conflicts->count > 0) {
        return TD_CONFLICT;
    }
    self->fields = td_fieldset_difference(a->arena, self->fields, never_owned(a->arena));
    self->is_present = self->fields != NULL;
    bool is_changed = !td_field_value_equal(live, next);
    self->has_time |= is_changed;
    self->time = is_changed ? a->request->now : self->time;
    *ret_object = is_changed ? next : NULL;
    return td_arena_check(a->arena, a->err);
}

static bool is_kubectl(const struct apply *a)
{
    return td_str_equal(a->request->manager, TD_STR("kubectl"));
}

/* Apply; where kubectl meets only conflicts over what it applied itself from the client side, once
 * more with force. */
static int apply_or_adopt(const struct apply *a, const struct td_json *live,
                          const struct td_json *applied, struct td_managed *managed,
                          struct td_json **ret_object, struct td_conflicts *ret_conflicts)
{
    struct td_managed attempt = td_managed_copy(a->arena, managed);
    int r = apply_once(a, live, applied, a->request->force, &attempt, ret_object, ret_conflicts);
    if (r == TD_CONFLICT && is_kubectl(a)) {
        const struct td_last_applied last = {
            .type = a->type,
            .api_version = a->request->api_version,
            .live = live,
        };
        const struct td_fieldset *allowed;
        if (td_last_applied_fields(a->arena, &last, &allowed, NULL) < 0) {
            return r; /* without a usable annotation the conflicts stand */
        }
        *ret_conflicts = td_conflicts_without(a->arena, ret_conflicts, allowed);
        if (ret_conflicts->count == 0) {
            attempt = td_managed_copy(a->arena, managed);
            r = apply_once(a, live, applied, true, &attempt, ret_object, ret_conflicts);
        }
    }
    *managed = attempt;
    return r;
}

int td_apply(struct td_arena *arena, const struct td_apply_request *request,
             const struct td_json *live, const struct td_json *applied, struct td_json **ret,
             struct td_json **ret_conflicts, struct td_error *err)
{
    const struct apply a = apply_begin(arena, request, err);
    int r = check_applied(&a, applied);
    if (r < 0) {
        return r;
    }
    if (!live) {
        live = empty_object(&a, applied);
    }
    r = check_object(&a, live, "live object");
    if (r < 0) {
        return r;
    }
    struct td_managed managed;
    r = td_managed_decode(arena, live, &managed, err);
    if (r < 0) {
        return r;
    }
    struct td_json *object;
    struct td_conflicts conflicts = {.count = 0};
    r = apply_or_adopt(&a, live, applied, &managed, &object, &conflicts);
    if (r == TD_CONFLICT) {
        return td_conflicts_report(arena, &conflicts, ret_conflicts, err);
    }
    if (r < 0) {
        return r;
    }
    object = object ? object : td_json_copy(arena, live, false);
    if (is_kubectl(&a)) {
        td_last_applied_refresh(arena, applied, object);
    }
    r = td_managed_encode(arena, &managed, object, err);
    if (r < 0) {
        return r;
    }
    *ret = object;
    return TD_OK;
}

/* The owners that an update starts from: those it brings itself, else those of the live object. A
 * list that cannot be decoded counts as none, so that clients cannot lose it by accident; a write
 * through a subresource cannot bring any. */
static int update_decode(const struct apply *a, const struct td_json *live,
                         const struct td_json *updated, struct td_managed *ret)
{
    bool is_main = a->request->subresource.len == 0;
    if (is_main && td_managed_state(updated) == TD_MANAGED_RESET) {
        *ret = (struct td_managed){.count = 0};
        return TD_OK;
    }
    if (is_main) {
        int r = td_managed_decode(a->arena, updated, ret, NULL);
        if (r == TD_OK && ret->count > 0) {
            return TD_OK;
        }
    }
    if (td_managed_decode(a->arena, live, ret, NULL) < 0) {
        *ret = (struct td_managed){.count = 0};
    }
    return td_arena_check(a->arena, a->err);
}

int td_apply_update(struct td_arena *arena, const struct td_apply_request *request,
                    const struct td_json *live, const struct td_json *updated, struct td_json **ret,
                    struct td_error *err)
{
    const struct apply a = apply_begin(arena, request, err);
    int r = check_object(&a, updated, "new object");
    if (r < 0) {
        return r;
    }
    if (!live) {
        live = empty_object(&a, updated);
    }
    struct td_managed managed;
    r = update_decode(&a, live, updated, &managed);
    if (r < 0) {
        return r;
    }
    struct td_json *object = td_json_copy(arena, updated, false);
    struct td_json *metadata = td_json_get(object, TD_STR("metadata"));
    (void)td_json_remove(metadata, TD_STR("managedFields")); /* it may not be there */

    /* Tracking begins with the creation of an object (one without a UID) or with its first apply.
     */
    td_str uid = td_json_text(td_json_get(live, TD_STR("metadata")), "uid");
    if (!td_managed_is_empty(&managed) || uid.len == 0) {
        r = update_owners(&a, live, object, &managed, request->manager);
    }
    if (r < 0) {
        return r;
    }
    r = td_managed_encode(arena, &managed, object, err);
    if (r < 0) {
        return r;
    }
    *ret = object;
    return TD_OK;
}
