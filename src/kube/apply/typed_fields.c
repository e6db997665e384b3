/*
 * Values to field sets, and field sets under a schema. What a value owns: every scalar and every
 * atomic part; every list item; every member that is not declared by name (labels, data, untyped
 * content); and members that are null or empty, which nothing below could stand for. A declared
 * object with content is not owned itself, only what is inside.
 */
#include "kube/apply/typed.h"

#include "base/assert.h"
#include "base/limits.h"
#include "kube/apply/fieldset_types.h"
#include "kube/apply/typed_types.h"

/* What a value puts into its parent's set: itself, what is below it, or both. */
struct owned {
    bool is_member;
    const struct td_fieldset *children;
};

static struct owned fields_of(struct td_arena *arena, const struct td_schema_type *type,
                              const struct td_json *value, unsigned depth);

static bool is_null_or_empty(const struct td_json *value)
{
    return value->type == TD_JSON_TYPE_NULL ||
           (value->type == TD_JSON_TYPE_OBJECT && value->count == 0);
}

static struct owned fields_of_map(struct td_arena *arena, const struct td_schema_type *type,
                                  const struct td_json *value, unsigned depth)
{
    struct td_fieldset_builder builder = {.arena = arena};
    if (value->type != TD_JSON_TYPE_OBJECT) {
        return (struct owned){.is_member = false};
    }
    for (const struct td_json *member = td_json_first_member(value); member;
         member = member->next) {
        bool is_named;
        const struct td_schema_type *member_type = td_typed_member(type, member->key, &is_named);
        struct owned below = fields_of(arena, member_type, member, depth + 1);
        const struct td_field_step step = {.kind = TD_FIELD_NAME, .name = member->key};
        td_fieldset_builder_add(&builder, &step,
                                below.is_member || !is_named || is_null_or_empty(member),
                                below.children);
    }
    return (struct owned){.children = td_fieldset_builder_finish(&builder)};
}

/* Items that share a key have no fields of their own: only the key is owned. An item that pruning
 * left without a key still makes its list one with content. */
static struct owned fields_of_list(struct td_arena *arena, const struct td_schema_type *type,
                                   const struct td_json *value, unsigned depth)
{
    struct td_fieldset_builder builder = {.arena = arena};
    if (value->type != TD_JSON_TYPE_ARRAY) {
        return (struct owned){.is_member = false};
    }
    struct td_typed_items items = td_typed_items_new(arena, type, value);
    for (size_t i = 0; i < items.count; i += items.sorted[i]->same) {
        const struct td_typed_item *item = items.sorted[i];
        struct owned below = {.children = NULL};
        if (item->same == 1) {
            below = fields_of(arena, td_typed_item(type), item->value, depth + 1);
        }
        td_fieldset_builder_add(&builder, &item->step, true, below.children);
    }
    if (items.count < value->count) {
        const struct td_field_step lost = {.kind = TD_FIELD_LOST};
        td_fieldset_builder_add(&builder, &lost, true, NULL);
    }
    return (struct owned){.children = td_fieldset_builder_finish(&builder)};
}

static struct owned fields_of(struct td_arena *arena, const struct td_schema_type *type,
                              const struct td_json *value, unsigned depth)
{
    td_assert(depth <= TD_JSON_DEPTH_MAX);
    unsigned form = td_typed_first_form(td_typed_forms_of(type, value));
    if (form == 0) {
        return (struct owned){.is_member = false};
    }
    if (form == TD_FORM_SCALAR || td_typed_is_atomic(type, form)) {
        return (struct owned){.is_member = true};
    }
    return form == TD_FORM_MAP ? fields_of_map(arena, type, value, depth)
                               : fields_of_list(arena, type, value, depth);
}

const struct td_fieldset *td_typed_fields(struct td_arena *arena, const struct td_schema_type *type,
                                          const struct td_json *value)
{
    return fields_of(arena, type, value, 0).children;
}

/* The type below `step`, or NULL when the schema has nothing to say there. */
static const struct td_schema_type *type_below(const struct td_schema_type *type,
                                               const struct td_field_step *step, bool *ret_is_named)
{
    *ret_is_named = false;
    unsigned forms = td_typed_forms(type);
    if (step->kind == TD_FIELD_NAME && (forms & TD_FORM_MAP)) {
        return td_typed_member(type, step->name, ret_is_named);
    }
    if (step->kind == TD_FIELD_KEY && (forms & TD_FORM_LIST)) {
        return td_typed_item(type);
    }
    return NULL;
}

static const struct td_fieldset *with_named(struct td_arena *arena,
                                            const struct td_schema_type *type,
                                            const struct td_fieldset *set, unsigned depth)
{
    td_assert(depth <= TD_JSON_DEPTH_MAX);
    if (!set || !type || type->kind == TD_SCHEMA_ANY) {
        return set; /* nothing is declared below untyped content */
    }
    struct td_fieldset_builder out = {.arena = arena};
    bool is_changed = false;
    for (size_t i = 0; i < set->count; i++) {
        struct td_fieldset_node node = set->nodes[i];
        bool is_named;
        const struct td_schema_type *below = type_below(type, &node.step, &is_named);
        node.is_member |= node.children && is_named;
        node.children = with_named(arena, below, node.children, depth + 1);
        is_changed |= node.is_member != set->nodes[i].is_member;
        is_changed |= node.children != set->nodes[i].children;
        td_fieldset_builder_add(&out, &node.step, node.is_member, node.children);
    }
    return is_changed ? out.set : set;
}

const struct td_fieldset *td_typed_with_named(struct td_arena *arena,
                                              const struct td_schema_type *type,
                                              const struct td_fieldset *set)
{
    return with_named(arena, type, set, 0);
}

/* Members of a map are typed by name, items of a list all alike, whatever the step says. */
static const struct td_schema_type *reconcile_below(const struct td_schema_type *type,
                                                    const struct td_field_step *step)
{
    bool is_named;
    switch (td_typed_first_form(td_typed_forms(type))) {
    case TD_FORM_MAP:
        return step->kind == TD_FIELD_NAME ? td_typed_member(type, step->name, &is_named)
                                           : type->element;
    case TD_FORM_LIST:
        return td_typed_item(type);
    default:
        return NULL;
    }
}

static const struct td_fieldset *reconcile(struct td_arena *arena,
                                           const struct td_schema_type *type,
                                           const struct td_fieldset *set, unsigned depth)
{
    td_assert(depth <= TD_JSON_DEPTH_MAX);
    bool is_untyped = !type || (type->kind == TD_SCHEMA_ANY && type->topology != TD_SCHEMA_ATOMIC);
    if (!set || is_untyped) {
        return set;
    }
    struct td_fieldset_builder out = {.arena = arena};
    bool is_changed = false;
    for (size_t i = 0; i < set->count; i++) {
        struct td_fieldset_node node = set->nodes[i];
        const struct td_schema_type *below = reconcile_below(type, &node.step);
        unsigned form = td_typed_first_form(td_typed_forms(below));
        bool is_whole =
            (form == TD_FORM_MAP || form == TD_FORM_LIST) && td_typed_is_atomic(below, form);
        if (node.children && is_whole) {
            node.is_member = true;
            node.children = NULL;
        } else {
            node.children = reconcile(arena, below, node.children, depth + 1);
        }
        is_changed |= node.is_member != set->nodes[i].is_member;
        is_changed |= node.children != set->nodes[i].children;
        td_fieldset_builder_add(&out, &node.step, node.is_member, node.children);
    }
    return is_changed ? out.set : set;
}

const struct td_fieldset *td_typed_reconcile(struct td_arena *arena,
                                             const struct td_schema_type *type,
                                             const struct td_fieldset *set)
{
    return reconcile(arena, type, set, 0);
}
