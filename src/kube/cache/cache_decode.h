/*
 * From JSON to the struct a caller of the cache declared: a plan made once from the field list, a
 * decoder that walks an object with the pull reader and skips what the plan does not name, and the
 * object in its final form, one piece of memory with its texts behind it. Private to the cache and
 * its tests.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/json/json_reader.h"
#include "base/str.h"
#include "kube/cache/cache.h"

struct td_cache_plan;

int td_cache_plan_new(const struct td_cache_field *fields, size_t count, size_t struct_bytes,
                      struct td_cache_plan **ret, struct td_error *err);
/* Of the struct only its beginning is kept: the fields behind it are RAW_ONCE (asserted). */
void td_cache_plan_keep(struct td_cache_plan *plan, size_t kept_bytes);
void td_cache_plan_free(struct td_cache_plan *plan);

/* What was read of one object; texts are slices of the input and of the arena. */
struct td_cache_decoded {
    struct td_arena arena;
    void *object; /* the caller's struct; owned */
    /* Of what only the cache looks at: a Status, and the bookmark that ends a streaming list. */
    int64_t status_code;
    td_str status_message;
    td_str initial_end;
    td_str managed; /* the managedFields member with one comma, to be left out of whole objects */
    size_t wrong_count;
    td_str key; /* "namespace/name" or "name"; set by td_cache_decode_key */
};

void td_cache_decoded_init(struct td_cache_decoded *decoded, const struct td_cache_plan *plan);
void td_cache_decoded_done(struct td_cache_decoded *decoded);

/* The value whose first token was just read, to its end. TD_INVALID when it is no JSON; a value
 * that is no object leaves everything empty. */
int td_cache_decode(const struct td_cache_plan *plan, struct td_json_reader *reader,
                    enum td_json_token token, struct td_cache_decoded *decoded,
                    struct td_error *err);

/* The struct's head, and its key. TD_INVALID when name or version is missing, TD_LIMIT when one is
 * too long. */
const struct td_cache_head *td_cache_decoded_head(const struct td_cache_decoded *decoded);
int td_cache_decode_key(struct td_cache_decoded *decoded, struct td_error *err);

/* The key of an object made here: its first text. */
td_str td_cache_object_key(const void *object);

/* Needs td_cache_decode_key before; takes references of the names. RAW_ONCE fields are empty in it,
 * and still filled in what was decoded. */
void *td_cache_object_new(const struct td_cache_plan *plan, struct td_cache_decoded *decoded,
                          struct td_intern *names);
void td_cache_object_free(const struct td_cache_plan *plan, void *object, struct td_intern *names);
