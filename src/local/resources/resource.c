/*
 * Rows by group, version and plural; adding and dropping the rows of CRDs; references that keep a
 * row alive while a call uses it.
 */
#include "local/resources/resource.h"

#include "api/hpa/hpa.h"
#include "base/alloc.h"
#include "base/assert.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/text.h"
#include "base/vec.h"
#include "kube/meta.h"
#include "kube/objectkey.h"
#include "local/resources/resource_table.h"

/* A custom row is freed by its last user; the registry is one. */
struct td_resource_life {
    struct td_resource *row;
    unsigned refs;
    void (*release)(struct td_resource *row);
};

/* A row with the keys under which it is found; custom ones own theirs. */
struct resource_slot {
    const struct td_resource *row;
    td_str path_key; /* "deployments", "apps", a line each; owned */
    td_str kind_key; /* "Deployment", "apps"; likewise */
};

struct td_resources {
    struct td_arena arena; /* of the built-in rows */
    struct {
        TD_VEC_FIELDS(struct resource_slot);
    } slots;
    size_t builtin_count;
    struct td_map by_path; /* to rows */
    struct td_map by_kind;
    uint64_t generation;
};

/* ---- The built-in rows ---- */

static td_str resource_collection(struct td_arena *arena, const struct td_resource_row *row)
{
    if (row->collection.len > 0) {
        return row->collection;
    }
    return row->group.len == 0 ? row->plural
                               : td_arena_format(arena, "%.*s.%.*s", TD_STR_ARG(row->plural),
                                                 TD_STR_ARG(row->group));
}

static struct td_resource_version resource_version(struct td_arena *arena, td_str group,
                                                   td_str version, td_str kind)
{
    td_str api_version = group.len == 0 ? version
                                        : td_arena_format(arena, "%.*s/%.*s", TD_STR_ARG(group),
                                                          TD_STR_ARG(version));
    const struct td_schema_type *type = td_schema_find(api_version, kind);
    if (td_str_equal(kind, TD_STR("HorizontalPodAutoscaler")) &&
        td_str_equal(version, TD_STR("v2"))) {
        type = td_hpa_served_schema();
    }
    return (struct td_resource_version){
        .name = version, .api_version = api_version, .type = type ? type : td_schema_any_object()};
}

static const struct td_resource *resource_build(struct td_arena *arena,
                                                const struct td_resource_row *row)
{
    struct td_resource *resource = td_arena_new(arena, struct td_resource);
    struct td_resource_version *versions =
        td_arena_array(arena, struct td_resource_version, TD_ROW_VERSIONS_MAX + 1);
    size_t count = 0;
    do {
        td_str version = row->versions[count].len > 0 ? row->versions[count] : TD_STR("v1");
        versions[count++] = resource_version(arena, row->group, version, row->kind);
    } while (count < TD_ROW_VERSIONS_MAX && row->versions[count].len > 0);
    if (row->is_stored_in_core) {
        versions[count] = resource_version(arena, TD_STR_EMPTY, TD_STR("v1"), row->kind);
    }
    size_t short_names = 0;
    while (short_names < TD_ROW_SHORT_NAMES_MAX && row->short_names[short_names].len > 0) {
        short_names++;
    }
    *resource = (struct td_resource){
        .group = row->group,
        .plural = row->plural,
        .singular = row->singular,
        .kind = row->kind,
        .list_kind = row->list_kind.len > 0
                         ? row->list_kind
                         : td_arena_format(arena, "%.*sList", TD_STR_ARG(row->kind)),
        .collection = resource_collection(arena, row),
        .short_names = row->short_names,
        .short_name_count = short_names,
        .categories = &row->category,
        .category_count = row->category.len > 0 ? 1 : 0,
        .is_namespaced = row->is_namespaced,
        .is_virtual = row->is_virtual,
        .has_generation = row->has_generation,
        .verbs = row->verbs ? row->verbs : TD_VERBS_ALL,
        .subresources = row->subresources,
        .versions = versions,
        .version_count = count,
        .storage = row->is_stored_in_core ? count : 0,
    };
    return resource;
}

/* ---- The registry ---- */

static struct resource_slot resource_slot_of(const struct td_resource *row)
{
    char path[TD_OBJECT_KEY_BYTES_MAX];
    char kind[TD_OBJECT_KEY_BYTES_MAX];
    return (struct resource_slot){
        .row = row,
        .path_key = td_text_copy(TD_KEY_LINES(path, row->plural, row->group)),
        .kind_key = td_text_copy(TD_KEY_LINES(kind, row->kind, row->group)),
    };
}

static void resources_index(struct td_resources *resources, const struct resource_slot *slot)
{
    int code = td_map_put(&resources->by_path, slot->path_key, (void *)(uintptr_t)slot->row);
    td_assert(code == 0);
    if (!td_map_has(&resources->by_kind, slot->kind_key)) {
        code = td_map_put(&resources->by_kind, slot->kind_key, (void *)(uintptr_t)slot->row);
        td_assert(code == 0);
    }
}

struct td_resources *td_resources_new(void)
{
    struct td_resources *resources = td_alloc_zero(1, sizeof(*resources));
    td_arena_init(&resources->arena, TD_TREE_ARENA_BYTES_MAX);
    resources->slots.count_max = TD_RESOURCES_MAX;
    td_map_init(&resources->by_path, TD_RESOURCES_MAX);
    td_map_init(&resources->by_kind, TD_RESOURCES_MAX);
    for (size_t i = 0; i < td_resource_row_count; i++) {
        const struct td_resource *row = resource_build(&resources->arena, &td_resource_rows[i]);
        struct resource_slot *slot = td_vec_push(&resources->slots);
        td_assert(slot);
        *slot = resource_slot_of(row);
        resources_index(resources, slot);
    }
    resources->builtin_count = resources->slots.count;
    resources->generation = 1;
    return resources;
}

static void slot_release(struct resource_slot *slot)
{
    td_text_free(slot->path_key);
    td_text_free(slot->kind_key);
    td_resource_unref(slot->row);
}

void td_resources_free(struct td_resources *resources)
{
    if (!resources) {
        return;
    }
    for (size_t i = 0; i < resources->slots.count; i++) {
        slot_release(&resources->slots.items[i]);
    }
    td_vec_done(&resources->slots);
    td_map_done(&resources->by_path);
    td_map_done(&resources->by_kind);
    td_arena_done(&resources->arena);
    td_free(resources);
}

static const struct td_resource *resources_lookup(const struct td_map *map, td_str name,
                                                  td_str group)
{
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    return td_map_get(map, TD_KEY_LINES(buffer, name, group));
}

static struct td_resource_at resource_in_version(const struct td_resource *row, td_str version)
{
    for (size_t i = 0; row && i < row->version_count; i++) {
        if (td_str_equal(row->versions[i].name, version)) {
            return (struct td_resource_at){.resource = row, .version = i};
        }
    }
    return (struct td_resource_at){.resource = NULL};
}

struct td_resource_at td_resources_find(const struct td_resources *resources, td_str group,
                                        td_str version, td_str plural)
{
    const struct td_resource *row = resources_lookup(&resources->by_path, plural, group);
    if (!row) {
        row = resources_lookup(&resources->by_path, TD_STR(TD_RESOURCE_ANY_PLURAL), group);
    }
    return resource_in_version(row, version);
}

struct td_resource_at td_resources_find_kind(const struct td_resources *resources,
                                             td_str api_version, td_str kind)
{
    struct td_group_version of = td_group_version_parse(api_version);
    return resource_in_version(resources_lookup(&resources->by_kind, kind, of.group), of.version);
}

size_t td_resources_count(const struct td_resources *resources)
{
    return resources->slots.count;
}

const struct td_resource *td_resources_row(const struct td_resources *resources, size_t index)
{
    td_assert(index < resources->slots.count);
    return resources->slots.items[index].row;
}

uint64_t td_resources_generation(const struct td_resources *resources)
{
    return resources->generation;
}

/* ---- Custom rows ---- */

/* Where a custom row stands or belongs, by group and plural. */
static size_t resources_place(const struct td_resources *resources, td_str group, td_str plural)
{
    size_t low = resources->builtin_count;
    size_t high = resources->slots.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct td_resource *row = resources->slots.items[middle].row;
        int order = td_str_compare(row->group, group);
        order = order == 0 ? td_str_compare(row->plural, plural) : order;
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool resources_is_at(const struct td_resources *resources, size_t index, td_str group,
                            td_str plural)
{
    if (index >= resources->slots.count) {
        return false;
    }
    const struct td_resource *row = resources->slots.items[index].row;
    return td_str_equal(row->group, group) && td_str_equal(row->plural, plural);
}

/* Another row of the same kind takes over its key. */
static void resources_forget_kind(struct td_resources *resources, const struct resource_slot *slot)
{
    if (td_map_get(&resources->by_kind, slot->kind_key) != slot->row) {
        return;
    }
    (void)td_map_remove(&resources->by_kind, slot->kind_key); /* it was there */
    for (size_t i = resources->builtin_count; i < resources->slots.count; i++) {
        const struct resource_slot *other = &resources->slots.items[i];
        if (other->row != slot->row && td_str_equal(other->kind_key, slot->kind_key)) {
            int code =
                td_map_put(&resources->by_kind, other->kind_key, (void *)(uintptr_t)other->row);
            td_assert(code == 0);
            return;
        }
    }
}

void td_resources_remove_custom(struct td_resources *resources, td_str group, td_str plural)
{
    size_t index = resources_place(resources, group, plural);
    if (!resources_is_at(resources, index, group, plural)) {
        return;
    }
    struct resource_slot slot = resources->slots.items[index];
    (void)td_map_remove(&resources->by_path, slot.path_key); /* it was there */
    resources_forget_kind(resources, &slot);
    td_vec_remove(&resources->slots, index);
    slot_release(&slot);
    resources->generation++;
}

void td_resources_put_custom(struct td_resources *resources, struct td_resource *row,
                             void (*release)(struct td_resource *row))
{
    td_resources_remove_custom(resources, row->group, row->plural);
    struct td_resource_life *life = td_alloc_zero(1, sizeof(*life));
    *life = (struct td_resource_life){.row = row, .refs = 1, .release = release};
    row->life = life;
    size_t index = resources_place(resources, row->group, row->plural);
    struct resource_slot *last = td_vec_push(&resources->slots);
    td_assert(last); /* there cannot be as many definitions: each is an object of the store */
    struct resource_slot *slots = resources->slots.items;
    memmove(&slots[index + 1], &slots[index],
            (resources->slots.count - 1 - index) * sizeof(slots[0]));
    slots[index] = resource_slot_of(row);
    resources_index(resources, &slots[index]);
    resources->generation++;
}

const struct td_resource *td_resource_ref(const struct td_resource *row)
{
    if (row->life) {
        row->life->refs++;
    }
    return row;
}

void td_resource_unref(const struct td_resource *row)
{
    struct td_resource_life *life = row ? row->life : NULL;
    if (!life) {
        return;
    }
    td_assert(life->refs > 0);
    life->refs--;
    if (life->refs == 0) {
        life->release(life->row);
        td_free(life);
    }
}
