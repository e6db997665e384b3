/*
 * Private to the JSON modules: making and linking nodes. Inline because the parser makes one node
 * for every dozen bytes of text (bench/bench_json.c).
 */
#pragma once

#include "base/json/json.h"

/* A node's place, not initialised, from the free space of the arena's block when there is some. */
static inline struct td_json *json_node_alloc(struct td_arena *arena)
{
    static_assert(sizeof(struct td_json) % _Alignof(max_align_t) == 0, "nodes keep the alignment");
    if ((size_t)(arena->end - arena->at) < sizeof(struct td_json)) {
        return td_arena_alloc(arena, sizeof(struct td_json));
    }
    struct td_json *node = (struct td_json *)(void *)arena->at;
    arena->at += sizeof(struct td_json);
    arena->used_bytes += sizeof(struct td_json);
    return node;
}

/* Link a node in as the last child. */
static inline void json_node_link(struct td_json *parent, struct td_json *node)
{
    if (parent->tail_child) {
        parent->tail_child->next = node;
    } else {
        parent->head_child = node;
    }
    parent->tail_child = node;
    parent->count++;
}
