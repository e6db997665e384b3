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
struct td_container_recommendation;
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
/* The sentences at the end of the text: how many targets are alike, and what both would do. */
void td_shadow_table_sum(struct td_shadow_table *table, struct td_buf *out);

/* A container of a VPA. */
struct td_shadow_row {
    td_str namespace;
    td_str vpa;
    td_str container;
    bool is_first; /* of its VPA, whose pods are counted there */
    struct {
        const struct td_container_recommendation *recommendation; /* NULL: it has none */
        size_t evicts;
        size_t resizes;
    } sides[TD_SHADOW_SIDES];
};
typedef void (*td_shadow_row_fn)(void *context, const struct td_shadow_row *row);
size_t td_shadow_table_count(const struct td_shadow_table *table); /* of VPAs */
void td_shadow_table_walk(const struct td_shadow_table *table, td_shadow_row_fn fn, void *context);
