/*
 * Sizes of containers as an Hvpa keeps them in its status, and as the amounts that decisions are
 * made of: milli-cores or bytes. Pure; lists are in the arena.
 */
#pragma once

#include "api/hvpa/hvpa.h"
#include "base/arena.h"

/* The quantity of one container and resource; NULL: none is kept. */
const struct td_quantity *td_tandem_request_of(const struct td_hvpa_requests *requests,
                                               td_str container, enum td_hvpa_resource resource);
/* Of a resource; 0 for NULL. */
int64_t td_tandem_amount_of(enum td_hvpa_resource resource, const struct td_quantity *quantity);
struct td_quantity td_tandem_quantity_of(enum td_hvpa_resource resource, int64_t amount);
/* Nothing changes where the same amount is kept, be it in another format. */
void td_tandem_request_put(struct td_arena *arena, struct td_hvpa_requests *requests,
                           td_str container, enum td_hvpa_resource resource,
                           const struct td_quantity *quantity);
bool td_tandem_requests_equal(const struct td_hvpa_requests *a, const struct td_hvpa_requests *b);
