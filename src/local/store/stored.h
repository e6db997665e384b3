/*
 * One revision of one object: immutable, counted, one piece of memory. The text is the whole object
 * as compact JSON with its resourceVersion inside; what the API server looks at for every object of
 * a list is found once, when it is stored. The last unref frees it. One owner thread, no locking.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

struct td_error;

struct td_stored {
    uint64_t version; /* resourceVersion */
    uint32_t refs;
    uint32_t bytes; /* of this piece of memory */
    td_str ns;      /* empty for what has no namespace */
    td_str name;
    td_str json;   /* followed by a NUL that is not counted */
    td_str uid;    /* metadata.uid as written, slice of json; empty when there is none */
    td_str labels; /* text of the metadata.labels object, slice of json; empty when there is none */
    td_str owners; /* the same of metadata.ownerReferences */
    bool is_deleting; /* it has a metadata.deletionTimestamp */
};

/* A copy of the texts with one reference. TD_INVALID when the JSON cannot be read up to its
 * metadata, TD_LIMIT when a text is longer than its cap. */
int td_stored_new(uint64_t version, td_str ns, td_str name, td_str json, struct td_stored **ret,
                  struct td_error *err);

struct td_stored *td_stored_ref(struct td_stored *stored);

/* NULL is accepted. */
void td_stored_unref(struct td_stored *stored);
