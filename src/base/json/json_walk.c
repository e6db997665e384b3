/* Walks over whole trees: copy, comparison, depth and order. None of them recurses. */
#include "base/json/json.h"

#include "base/error.h"
#include "base/json/json_index.h"
#include "base/json/json_node.h"
#include "base/json/json_number.h"
#include "base/json/json_stack.h"

void td_json_stack_grow(struct json_stack *stack)
{
    size_t cap = stack->cap * 2;
    if (stack->frames == stack->first) {
        stack->frames = td_alloc(cap * sizeof(*stack->frames));
        memcpy(stack->frames, stack->first, sizeof(stack->first));
    } else {
        stack->frames = td_realloc(stack->frames, cap * sizeof(*stack->frames));
    }
    stack->cap = cap;
}

/* A node without links; an empty collection. */
static struct td_json *walk_copy_one(struct td_arena *arena, const struct td_json *node,
                                     bool copy_texts)
{
    struct td_json *copy = json_node_alloc(arena);
    *copy = *node;
    copy->next = NULL;
    if (copy_texts && node->key.len > 0) {
        copy->key = td_arena_copy_str(arena, node->key);
    }
    if (td_json_is_collection(node)) {
        copy->head_child = NULL;
        copy->tail_child = NULL;
        copy->count = 0;
        copy->index = NULL;
    } else if (copy_texts &&
               (node->type == TD_JSON_TYPE_STRING || node->type == TD_JSON_TYPE_NUMBER)) {
        copy->text = td_arena_copy_str(arena, node->text);
    }
    return copy;
}

struct td_json *td_json_copy(struct td_arena *arena, const struct td_json *node, bool copy_texts)
{
    if (!node) {
        return NULL;
    }
    struct td_json *root = walk_copy_one(arena, node, copy_texts);
    if (!td_json_is_collection(node)) {
        return root;
    }
    struct json_stack stack;
    json_stack_init(&stack);
    json_stack_push(&stack, (struct json_stack_frame){.child = node->head_child, .into = root});
    while (stack.count > 0) {
        struct json_stack_frame *top = json_stack_top(&stack);
        const struct td_json *child = top->child;
        if (!child) {
            if (top->into->type == TD_JSON_TYPE_OBJECT && top->into->count > TD_JSON_INDEX_FROM) {
                td_json_index_build(arena, top->into);
            }
            stack.count--;
            continue;
        }
        top->child = child->next;
        struct td_json *copy = walk_copy_one(arena, child, copy_texts);
        json_node_link(top->into, copy);
        if (td_json_is_collection(child) && child->head_child) {
            json_stack_push(&stack,
                            (struct json_stack_frame){.child = child->head_child, .into = copy});
        }
    }
    json_stack_done(&stack);
    return root;
}

int td_json_check_size(const struct td_json *node, size_t values_max, size_t items_max,
                       struct td_error *err)
{
    struct json_stack stack;
    json_stack_init(&stack);
    size_t values = 0;
    size_t longest = 0;
    if (node && td_json_is_collection(node)) {
        json_stack_push(&stack, (struct json_stack_frame){.child = td_json_first_child(node)});
        longest = node->count;
    }
    while (stack.count > 0 && values <= values_max) {
        struct json_stack_frame *top = json_stack_top(&stack);
        const struct td_json *child = top->child;
        if (!child) {
            stack.count--;
            continue;
        }
        values++;
        top->child = child->next;
        if (td_json_is_collection(child)) {
            json_stack_push(&stack, (struct json_stack_frame){.child = td_json_first_child(child)});
            longest = child->count > longest ? child->count : longest;
        }
    }
    json_stack_done(&stack);
    if (longest > items_max) {
        return td_error_set(err, TD_LIMIT, "a list or an object has %zu items, more than %zu",
                            longest, items_max);
    }
    return values <= values_max
               ? TD_OK
               : td_error_set(err, TD_LIMIT, "there are more than %zu values", values_max);
}

size_t td_json_depth(const struct td_json *node)
{
    struct json_stack stack;
    json_stack_init(&stack);
    size_t depth = 0;
    if (node && td_json_is_collection(node)) {
        json_stack_push(&stack, (struct json_stack_frame){.child = node->head_child});
        depth = 1;
    }
    while (stack.count > 0) {
        struct json_stack_frame *top = json_stack_top(&stack);
        const struct td_json *child = top->child;
        if (!child) {
            stack.count--;
            continue;
        }
        top->child = child->next;
        if (td_json_is_collection(child)) {
            json_stack_push(&stack, (struct json_stack_frame){.child = child->head_child});
            depth = stack.count > depth ? stack.count : depth;
        }
    }
    json_stack_done(&stack);
    return depth;
}

/* Equal but for the children. */
static bool walk_equal_one(const struct td_json *a, const struct td_json *b)
{
    if (a->type != b->type) {
        return false;
    }
    switch (a->type) {
    case TD_JSON_TYPE_BOOL:
        return a->boolean == b->boolean;
    case TD_JSON_TYPE_NUMBER:
        return td_json_number_equal(a->text, b->text);
    case TD_JSON_TYPE_STRING:
        return td_str_equal(a->text, b->text);
    case TD_JSON_TYPE_ARRAY:
    case TD_JSON_TYPE_OBJECT:
        return a->count == b->count;
    default:
        return true;
    }
}

/* The node to compare the frame's next child with, NULL when there is none; moves the frame on.
 * Equal objects mostly have equal order, so the member at the same place is tried first. */
static const struct td_json *walk_partner(struct json_stack_frame *frame)
{
    const struct td_json *child = frame->child;
    const struct td_json *other = frame->other;
    frame->child = child->next;
    frame->other = other ? other->next : NULL;
    if (frame->parent->type == TD_JSON_TYPE_ARRAY) {
        return other;
    }
    if (other && td_str_equal(child->key, other->key)) {
        return other;
    }
    return td_json_get(frame->parent, child->key);
}

bool td_json_equal(const struct td_json *a, const struct td_json *b)
{
    if (!a || !b || a == b) {
        return a == b;
    }
    if (!walk_equal_one(a, b)) {
        return false;
    }
    if (!td_json_is_collection(a)) {
        return true;
    }
    struct json_stack stack;
    json_stack_init(&stack);
    json_stack_push(&stack, (struct json_stack_frame){
                                .parent = b, .child = a->head_child, .other = b->head_child});
    bool is_equal = true;
    while (is_equal && stack.count > 0) {
        struct json_stack_frame *top = json_stack_top(&stack);
        const struct td_json *child = top->child;
        if (!child) {
            stack.count--;
            continue;
        }
        const struct td_json *partner = walk_partner(top);
        is_equal = partner && walk_equal_one(child, partner);
        if (is_equal && td_json_is_collection(child)) {
            json_stack_push(&stack, (struct json_stack_frame){.parent = partner,
                                                              .child = child->head_child,
                                                              .other = partner->head_child});
        }
    }
    json_stack_done(&stack);
    return is_equal;
}

static bool walk_is_sorted(const struct td_json *first)
{
    for (const struct td_json *node = first; node && node->next; node = node->next) {
        if (td_str_compare(node->key, node->next->key) > 0) {
            return false;
        }
    }
    return true;
}

/* Detach up to `len` nodes from the front of *list and return them. */
static struct td_json *walk_take(struct td_json **list, size_t len)
{
    struct td_json *taken = *list;
    struct td_json *last = taken;
    for (size_t i = 1; i < len && last; i++) {
        last = last->next;
    }
    if (last) {
        *list = last->next;
        last->next = NULL;
    } else {
        *list = NULL;
    }
    return taken;
}

/* Merge two sorted lists to the end of a third; returns its new last link. */
static struct td_json **walk_merge(struct td_json *a, struct td_json *b, struct td_json **link)
{
    while (a && b) {
        struct td_json **lower = td_str_compare(a->key, b->key) <= 0 ? &a : &b;
        *link = *lower;
        *lower = (*lower)->next;
        link = &(*link)->next;
    }
    *link = a ? a : b;
    while (*link) {
        link = &(*link)->next;
    }
    return link;
}

/* Merge sort from runs of one upwards: a linked list needs no memory for it. */
static struct td_json *walk_sort_list(struct td_json *list, size_t count)
{
    for (size_t run = 1; run < count; run *= 2) {
        struct td_json *rest = list;
        struct td_json **link = &list;
        while (rest) {
            struct td_json *a = walk_take(&rest, run);
            struct td_json *b = walk_take(&rest, run);
            link = walk_merge(a, b, link);
        }
    }
    return list;
}

static void walk_sort_one(struct td_arena *arena, struct td_json *object)
{
    if (object->type != TD_JSON_TYPE_OBJECT || walk_is_sorted(object->head_child)) {
        return;
    }
    object->head_child = walk_sort_list(object->head_child, object->count);
    struct td_json *last = object->head_child;
    while (last->next) {
        last = last->next;
    }
    object->tail_child = last;
    if (object->index) {
        td_json_index_build(arena, object);
    }
}

void td_json_sort(struct td_arena *arena, struct td_json *node)
{
    if (!node || !td_json_is_collection(node)) {
        return;
    }
    struct json_stack stack;
    json_stack_init(&stack);
    walk_sort_one(arena, node);
    json_stack_push(&stack, (struct json_stack_frame){.into = node->head_child});
    while (stack.count > 0) {
        struct json_stack_frame *top = json_stack_top(&stack);
        struct td_json *child = top->into;
        if (!child) {
            stack.count--;
            continue;
        }
        top->into = child->next;
        if (td_json_is_collection(child)) {
            walk_sort_one(arena, child);
            json_stack_push(&stack, (struct json_stack_frame){.into = child->head_child});
        }
    }
    json_stack_done(&stack);
}
