/*
 * Private to the JSON modules: the hash index of a large object. Open addressing over tags (hash
 * bits, 0 when free) beside the members; each slot also knows the member's predecessor, because the
 * list is linked one way and removing must not walk it. Names come from strangers, so the hash is
 * the keyed one of base/map.h. Lives in the tree's arena and is abandoned there when it grows.
 * Invariant: an object of more than TD_JSON_INDEX_FROM members has an index.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/json/json.h"

#define TD_JSON_INDEX_FROM 16

/* Build the index of an object from its list, replacing the one it has. */
void td_json_index_build(struct td_arena *arena, struct td_json *object);

/* The hash bits of a name, taken once for a search and the addition that may follow it. */
uint32_t td_json_index_tag(td_str key);

/* The member and, when it is there and ret_prev is not NULL, its predecessor (NULL for the first).
 */
struct td_json *td_json_index_find(const struct td_json *object, td_str key, uint32_t tag,
                                   struct td_json **ret_prev);

/* `member` was linked in at the end, after `prev`; its name was not in the object. */
void td_json_index_add(struct td_arena *arena, struct td_json *object, struct td_json *member,
                       uint32_t tag, struct td_json *prev);

/* `member` is about to leave the list. */
void td_json_index_remove(struct td_json *object, const struct td_json *member);

/* `member` takes the place of `old`, which has the same name; both still have their links. */
void td_json_index_replace(struct td_json *object, const struct td_json *old,
                           struct td_json *member);
