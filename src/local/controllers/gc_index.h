/*
 * Who depends on whom: for each uid that is named as an owner, the objects that name it. Objects
 * are known by collection, namespace and name; all texts are copied. Nothing is kept for objects
 * without owners.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/map.h"
#include "base/str.h"

struct td_gc_dependent {
    td_str key; /* of the index; owns the three texts below */
    td_str collection;
    td_str ns;
    td_str name;
    td_str *owners; /* uids; owned */
    size_t *places; /* in each owner's list; SIZE_MAX: the list was full; owned */
    size_t owner_count;
};

struct td_gc_index {
    struct td_map dependents; /* by key: td_gc_dependent */
    struct td_map owners;     /* by uid: private list of dependents */
};

void td_gc_index_init(struct td_gc_index *index);
void td_gc_index_done(struct td_gc_index *index);

/* The owners of one object from now on; none removes it. */
void td_gc_index_set(struct td_gc_index *index, td_str collection, td_str ns, td_str name,
                     const td_str *owners, size_t owner_count);

/* The dependents of an owner, in no order, by position from 0; NULL at the end. The list must not
 * change in between: copy what is needed first. */
size_t td_gc_index_count(const struct td_gc_index *index, td_str owner_uid);
const struct td_gc_dependent *td_gc_index_at(const struct td_gc_index *index, td_str owner_uid,
                                             size_t position);

/* An owner that was seen going, which matters when its kind has gone too; forgotten with its last
 * dependent. */
void td_gc_index_mark_gone(struct td_gc_index *index, td_str owner_uid);
bool td_gc_index_is_gone(const struct td_gc_index *index, td_str owner_uid);
