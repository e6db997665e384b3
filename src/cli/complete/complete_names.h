/*
 * Names of objects of a cluster, for a completion: one list with a short deadline. A cluster that
 * cannot be reached, or says no, has none: who types is not to be stopped.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/str.h"

/* What the words of the command line say of the cluster; NULL where they do not. */
struct td_complete_where {
    const char *kubeconfig;
    const char *context;
    td_str namespace; /* empty: that of the context */
};

/* Appends a name a line. `kind` as `tandem explain` takes it, or "namespace". */
void td_complete_names(struct td_arena *arena, const struct td_complete_where *where, td_str kind,
                       struct td_buf *out);
