/*
 * Private to the JSON modules: the stack of a walk over a tree. Trees made by code may be of any
 * depth, so walks do not recurse; the stack grows on the heap to the tree's depth and no further.
 */
#pragma once

#include <stddef.h>

#include "base/alloc.h"
#include "base/json/json.h"

#define JSON_STACK_INLINE 64

struct json_stack_frame {
    const struct td_json *parent;
    const struct td_json *child; /* the next one to visit */
    const struct td_json *other; /* the next one in the tree it is compared with */
    struct td_json *into;        /* where copies are put */
};

struct json_stack {
    struct json_stack_frame *frames;
    size_t count;
    size_t cap;
    struct json_stack_frame first[JSON_STACK_INLINE];
};

static inline void json_stack_init(struct json_stack *stack)
{
    stack->frames = stack->first;
    stack->count = 0;
    stack->cap = JSON_STACK_INLINE;
}

static inline void json_stack_done(struct json_stack *stack)
{
    if (stack->frames != stack->first) {
        td_free(stack->frames);
    }
}

void td_json_stack_grow(struct json_stack *stack);

static inline void json_stack_push(struct json_stack *stack, struct json_stack_frame frame)
{
    if (stack->count == stack->cap) {
        td_json_stack_grow(stack);
    }
    stack->frames[stack->count++] = frame;
}

static inline struct json_stack_frame *json_stack_top(struct json_stack *stack)
{
    return &stack->frames[stack->count - 1];
}
