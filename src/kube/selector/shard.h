/*
 * Shards of a collection (KEP-5866, ?shardSelector=): ranges of the 64-bit hash of an object's
 * namespace or uid, as in
 *   shardRange(object.metadata.namespace, '0x0000000000000000', '0x8000000000000000')
 * and such ranges joined by ||. The hash is FNV-1a; names that differ in their last letter share
 * their first bits, so that equal parts of the range are not equal parts of the namespaces.
 * Immutable once made; in the arena.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/str.h"

struct td_error;

uint64_t td_shard_hash(td_str text);

struct td_shard_range {
    uint64_t first;
    uint64_t last; /* inclusive: the end of the last range, 2^64, does not fit */
};

struct td_shard_selector {
    const struct td_shard_range *ranges; /* an object is selected by any of them */
    size_t count;                        /* 0: every object is selected */
    bool is_of_uids;                     /* else of namespaces */
};

/* TD_INVALID in upstream's words: "invalid shard selector: ...". Of CEL's syntax errors those are
 * told in its words that a slip of the pen makes (docs/internals/kube/shard.md). */
int td_shard_selector_parse(struct td_arena *arena, td_str text, struct td_shard_selector *ret,
                            struct td_error *err);

bool td_shard_range_has(const struct td_shard_range *range, uint64_t hash);
bool td_shard_selector_matches(const struct td_shard_selector *selector, td_str ns, td_str uid);

/* The canonical text, which the server gives back as metadata.shardInfo.selector. */
void td_shard_selector_write(const struct td_shard_selector *selector, struct td_buf *out);
