/*
 * Laying one value over another, and taking fields out of one.
 *
 * A merged list keeps the order of the base where the other side says nothing, and follows the
 * other side where it orders what both have; see merge_lists.
 */
#include "kube/apply/typed.h"

#include "base/assert.h"
#include "base/limits.h"
#include "kube/apply/fieldset_types.h"
#include "kube/apply/typed_types.h"

static struct td_json *merge_value(struct td_arena *arena, const struct td_schema_type *type,
                                   const struct td_json *base, const struct td_json *over,
                                   unsigned depth);

static void merge_member(struct td_arena *arena, const struct td_schema_type *type, td_str key,
                         const struct td_json *base, const struct td_json *over, unsigned depth,
                         struct td_json *out)
{
    bool is_named;
    const struct td_schema_type *member_type = td_typed_member(type, key, &is_named);
    td_json_set(arena, out, key, merge_value(arena, member_type, base, over, depth + 1));
}

static struct td_json *merge_maps(struct td_arena *arena, const struct td_schema_type *type,
                                  const struct td_json *base, const struct td_json *over,
                                  unsigned depth)
{
    struct td_json *out = td_json_new_object(arena);
    for (const struct td_json *m = td_json_first_member(base); m; m = m->next) {
        merge_member(arena, type, m->key, m, td_json_get(over, m->key), depth, out);
    }
    for (const struct td_json *m = td_json_first_member(over); m; m = m->next) {
        if (!td_json_get(base, m->key)) {
            merge_member(arena, type, m->key, NULL, m, depth, out);
        }
    }
    return out;
}

/* A merge of two keyed lists under way. */
struct list_merge {
    struct td_arena *arena;
    const struct td_schema_type *type;
    struct td_typed_items base;
    struct td_typed_items over;
    const size_t *base_in_over; /* for each base item its place in over.items, or over.count */
    const size_t *over_in_base; /* for each over item the first place in base.items, or count */
    bool *is_merged;            /* of each over item */
    size_t shared;              /* the next over item that base has too, or over.count */
    struct td_json *out;
    unsigned depth;
};

/* Where each item of `items` is (first) found in `others`. */
static const size_t *items_match(struct td_arena *arena, const struct td_typed_items *items,
                                 const struct td_typed_items *others)
{
    size_t *places = td_arena_array(arena, size_t, items->count);
    for (size_t i = 0; i < items->count; i++) {
        size_t at = td_typed_items_find(others, &items->items[i].step);
        places[i] = at < others->count ? others->sorted[at]->position : others->count;
    }
    return places;
}

static void list_merge_next_shared(struct list_merge *m, size_t from)
{
    m->shared = from;
    while (m->shared < m->over.count && m->over_in_base[m->shared] == m->base.count) {
        m->shared++;
    }
}

/* Put the over item at `j`, merged with its base item. A key that base has several times counts as
 * null there: the configuration could not say which of them it means. */
static void list_merge_over(struct list_merge *m, size_t j)
{
    const struct td_json *base = NULL;
    size_t i = m->over_in_base[j];
    if (i < m->base.count) {
        base = m->base.items[i].same == 1 ? m->base.items[i].value : td_json_new_null(m->arena);
    }
    m->is_merged[j] = true;
    td_json_append(m->out, merge_value(m->arena, td_typed_item(m->type), base,
                                       m->over.items[j].value, m->depth + 1));
    if (m->shared == j) {
        list_merge_next_shared(m, j + 1);
    }
}

/*
 * Two cursors, i over the base and j over the other list:
 * 1. both point at the same key: merge the two, go on in both;
 * 2. base's item is shared, but another shared item has to come first: pass it, it will come from
 *    the other side;
 * 3. base's item is not shared: take it;
 * 4. base's item was merged already: pass it;
 * 5. else take the other side's item, merged with base's.
 */
static void list_merge_run(struct list_merge *m)
{
    size_t i = 0;
    size_t j = 0;
    while (i < m->base.count || j < m->over.count) {
        size_t place = i < m->base.count ? m->base_in_over[i] : m->over.count;
        bool is_shared = place < m->over.count;
        if (i < m->base.count && j < m->over.count) {
            if (place == j) {
                list_merge_over(m, j);
                i++;
                j++;
                continue;
            }
            if (is_shared && m->shared < m->over.count && m->shared != place) {
                i++;
                continue;
            }
        }
        if (i < m->base.count && !is_shared) {
            td_json_append(m->out, merge_value(m->arena, td_typed_item(m->type),
                                               m->base.items[i].value, NULL, m->depth + 1));
            i++;
            continue;
        }
        i += is_shared && m->is_merged[place];
        if (j < m->over.count) {
            list_merge_over(m, j);
            j++;
        }
    }
}

static struct td_json *merge_lists(struct td_arena *arena, const struct td_schema_type *type,
                                   const struct td_json *base, const struct td_json *over,
                                   unsigned depth)
{
    struct list_merge m = {
        .arena = arena,
        .type = type,
        .base = td_typed_items_new(arena, type, base),
        .over = td_typed_items_new(arena, type, over),
        .out = td_json_new_array(arena),
        .depth = depth,
    };
    m.base_in_over = items_match(arena, &m.base, &m.over);
    m.over_in_base = items_match(arena, &m.over, &m.base);
    m.is_merged = td_arena_array(arena, bool, m.over.count);
    list_merge_next_shared(&m, 0);
    list_merge_run(&m);
    return m.out;
}

/* The node when it is of that type and has content, else NULL. */
static const struct td_json *with_content(const struct td_json *node, enum td_json_type type)
{
    bool has_content = node && node->type == type && node->count > 0;
    return has_content ? node : NULL;
}

static struct td_json *merge_value(struct td_arena *arena, const struct td_schema_type *type,
                                   const struct td_json *base, const struct td_json *over,
                                   unsigned depth)
{
    td_assert(depth <= TD_JSON_DEPTH_MAX);
    unsigned form = td_typed_first_form(td_typed_forms_of(type, over ? over : base));
    enum td_json_type wanted = form == TD_FORM_MAP ? TD_JSON_TYPE_OBJECT : TD_JSON_TYPE_ARRAY;
    const struct td_json *from = with_content(base, wanted);
    const struct td_json *with = with_content(over, wanted);
    bool is_leaf = form == 0 || form == TD_FORM_SCALAR || td_typed_is_atomic(type, form);
    if (is_leaf || (!from && !with)) {
        return td_json_copy(arena, over ? over : base, false);
    }
    return form == TD_FORM_MAP ? merge_maps(arena, type, from, with, depth)
                               : merge_lists(arena, type, from, with, depth);
}

struct td_json *td_typed_merge(struct td_arena *arena, const struct td_schema_type *type,
                               const struct td_json *base, const struct td_json *over)
{
    return merge_value(arena, type, base, over, 0);
}

static struct td_json *remove_value(struct td_arena *arena, const struct td_schema_type *type,
                                    const struct td_json *value, const struct td_fieldset *set,
                                    unsigned depth);

static struct td_json *remove_from_map(struct td_arena *arena, const struct td_schema_type *type,
                                       const struct td_json *value, const struct td_fieldset *set,
                                       unsigned depth)
{
    struct td_json *out = td_json_new_object(arena);
    for (const struct td_json *m = td_json_first_member(value); m; m = m->next) {
        const struct td_field_step step = {.kind = TD_FIELD_NAME, .name = m->key};
        const struct td_fieldset_node *node = td_fieldset_find(set, &step);
        if (node && node->is_member) {
            continue;
        }
        bool is_named;
        const struct td_schema_type *member_type = td_typed_member(type, m->key, &is_named);
        struct td_json *kept = node ? remove_value(arena, member_type, m, node->children, depth + 1)
                                    : td_json_copy(arena, m, false);
        td_json_set(arena, out, m->key, kept);
    }
    return out->count > 0 ? out : td_json_new_null(arena);
}

static struct td_json *remove_from_list(struct td_arena *arena, const struct td_schema_type *type,
                                        const struct td_json *value, const struct td_fieldset *set,
                                        unsigned depth)
{
    struct td_json *out = td_json_new_array(arena);
    for (const struct td_json *item = td_json_first_item(value); item; item = item->next) {
        struct td_field_step step;
        const char *problem = td_typed_step(arena, type, item, &step);
        const struct td_fieldset_node *node = problem ? NULL : td_fieldset_find(set, &step);
        if (node && node->is_member) {
            continue;
        }
        td_json_append(
            out, node ? remove_value(arena, td_typed_item(type), item, node->children, depth + 1)
                      : td_json_copy(arena, item, false));
    }
    return out->count > 0 ? out : td_json_new_null(arena);
}

/* An atomic or empty value that something is to be removed from becomes null, and so does one that
 * loses everything. */
static struct td_json *remove_value(struct td_arena *arena, const struct td_schema_type *type,
                                    const struct td_json *value, const struct td_fieldset *set,
                                    unsigned depth)
{
    td_assert(depth <= TD_JSON_DEPTH_MAX);
    unsigned form = td_typed_first_form(td_typed_forms_of(type, value));
    if (form == TD_FORM_SCALAR) {
        return td_json_copy(arena, value, false);
    }
    if (form == 0 || td_typed_is_atomic(type, form)) {
        return td_json_new_null(arena);
    }
    if (form == TD_FORM_MAP && value->type == TD_JSON_TYPE_OBJECT) {
        return remove_from_map(arena, type, value, set, depth);
    }
    if (form == TD_FORM_LIST && value->type == TD_JSON_TYPE_ARRAY) {
        return remove_from_list(arena, type, value, set, depth);
    }
    return td_json_new_null(arena);
}

struct td_json *td_typed_remove(struct td_arena *arena, const struct td_schema_type *type,
                                const struct td_json *value, const struct td_fieldset *set)
{
    return remove_value(arena, type, value, set, 0);
}
