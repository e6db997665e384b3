/*
 * A growing array of one item type, born with a maximum count; reaching it is TD_LIMIT. Typed by
 * macro where it is used:
 *
 *     struct pods { TD_VEC_FIELDS(struct td_pod); };
 *     struct pods pods = TD_VEC_INIT(1000);
 *     struct td_pod *pod = td_vec_push(&pods);   // zeroed place at the end, NULL at the maximum
 *     for (size_t i = 0; i < pods.count; i++) use(&pods.items[i]);
 *     td_vec_done(&pods);
 *
 * A pointer to an item is valid until the next push. One owner, no locking.
 */
#pragma once

#include <stddef.h>

#define TD_VEC_FIELDS(type)                                                                        \
    type *items;                                                                                   \
    size_t count;                                                                                  \
    size_t cap;                                                                                    \
    size_t count_max

#define TD_VEC_INIT(max)                                                                           \
    {                                                                                              \
        .items = NULL, .count = 0, .cap = 0, .count_max = (max)                                    \
    }

/* The new last item, zeroed, or NULL when the vector is at its maximum. */
#define td_vec_push(vec)                                                                           \
    ((__typeof__((vec)->items))td_vec_push_bytes((void **)&(vec)->items, &(vec)->count,            \
                                                 &(vec)->cap, (vec)->count_max,                    \
                                                 sizeof(*(vec)->items)))

/* Remove item `index`, keeping the order of the others. */
#define td_vec_remove(vec, index)                                                                  \
    td_vec_remove_bytes((vec)->items, &(vec)->count, (index), sizeof(*(vec)->items))

#define td_vec_reset(vec) ((void)((vec)->count = 0))

#define td_vec_done(vec)                                                                           \
    (td_vec_done_bytes((void **)&(vec)->items), (vec)->count = 0, (void)((vec)->cap = 0))

void *td_vec_push_bytes(void **items, size_t *count, size_t *cap, size_t count_max,
                        size_t item_size);
void td_vec_remove_bytes(void *items, size_t *count, size_t index, size_t item_size);
void td_vec_done_bytes(void **items);
