/*
 * `tandem recommend --shadow`: what upstream's VPA recommends beside what `tandem run --shadow`
 * does, read from the statuses of VPAs and from the objects of the shadow, and which pods each
 * would evict or resize. Only read; one thread, the loop's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/json/json.h"
#include "base/str.h"

struct td_client;
struct td_client_flow;
struct td_shadow_table;

enum td_shadow_side { TD_SHADOW_UPSTREAM, TD_SHADOW_TANDEM, TD_SHADOW_SIDES };

/* TD_OK, or why there is nothing to show: one line in err. */
typedef void (*td_shadow_table_fn)(void *context, int code, const struct td_error *err);

/* Of one namespace, or of all of them where it is empty; `fn` is called once, from the loop. */
struct td_shadow_table *td_shadow_table_start(struct td_client *client, struct td_client_flow *flow,
                                              td_str namespace, td_shadow_table_fn fn,
                                              void *context);
void td_shadow_table_free(struct td_shadow_table *table); /* NULL is accepted */

/* As text, a tab between two cells (base/os/table.h lays them out); ends with what differs. Check
 * out at the end. */
void td_shadow_table_write(struct td_shadow_table *table, struct td_buf *out);
struct td_json *td_shadow_table_json(struct td_shadow_table *table);
