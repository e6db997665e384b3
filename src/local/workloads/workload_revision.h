/*
 * ControllerRevisions: the templates that a StatefulSet or DaemonSet has had, as objects, so that
 * kubectl can show and undo them. Found by comparing templates, like ReplicaSets.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "local/workloads/workload_private.h"

struct td_revision {
    struct td_json *object;
    const struct td_json *template; /* of its data */
    td_str name;
    td_str hash; /* what its pods carry, of a DaemonSet */
    int64_t number;
    td_time created;
};

struct td_revisions {
    struct td_revision *items; /* the newest last; there is room for one more */
    size_t count;
    int64_t collisions;
    td_str hash_label;
};

/* Those of the item, orphans adopted. `hash_label` is where their hash stands. */
void td_revisions_load(struct td_workload_item *item, td_str hash_label, struct td_revisions *ret);

/* The revision of the present template: the newest one, an older one that becomes the newest, or a
 * new one. It is the last of the items then. TD_CONFLICT when the name is taken: collisions
 * grew and were written into the status, which brings the item back. */
int td_revisions_need(struct td_workload_item *item, struct td_revisions *revisions);

/* By name, or NULL. */
const struct td_revision *td_revisions_find(const struct td_revisions *revisions, td_str name);

/* Removes the oldest that `is_live` does not want, until spec.revisionHistoryLimit are left of
 * those. */
void td_revisions_truncate(struct td_workload_item *item, const struct td_revisions *revisions,
                           bool (*is_live)(const struct td_revision *revision, void *context),
                           void *context);
