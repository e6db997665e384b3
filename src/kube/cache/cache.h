/*
 * A cache of one resource: lists it, watches it, and keeps of each object one compact struct that
 * the caller declares by a list of fields, decoded straight from the answers. Consumers hear of
 * every addition, change and deletion, in order, from the loop; after a failure the watch goes on
 * behind what was seen last, and when that position has expired (410) the resource is listed again
 * and compared with what is held, so that nothing is dropped and only real differences are told.
 * The cache never gives up: what stands in its way is td_cache_error, how old its knowledge is
 * td_cache_age. Versions are opaque texts. One thread, the loop's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/os/clock.h"
#include "base/str.h"

struct td_arena;
struct td_cache;
struct td_client;
struct td_client_flow;
struct td_intern;
struct td_loop;
struct td_shard_range;

/* The first member of every caller's struct. Texts belong to the object. */
struct td_cache_head {
    td_str namespace; /* empty for cluster-scoped objects */
    td_str name;
    td_str uid;
    td_str version; /* resourceVersion */
    size_t bytes;   /* private: of this piece of memory */
    uint32_t round; /* private: the list that saw it last */
};

enum td_cache_kind {
    TD_CACHE_TEXT,     /* td_str: a string */
    TD_CACHE_NAME,     /* td_str: a string that many objects share; one copy, in options.names */
    TD_CACHE_INT64,    /* int64_t */
    TD_CACHE_BOOL,     /* bool */
    TD_CACHE_TIME,     /* td_time, TD_CACHE_TIME_NONE when absent */
    TD_CACHE_MILLI,    /* int64_t: a quantity in thousandths, rounded up */
    TD_CACHE_WHOLE,    /* int64_t: a quantity in units (bytes), rounded up */
    TD_CACHE_PRESENT,  /* bool: there is a value, and it is not null */
    TD_CACHE_RAW,      /* td_str: the compact JSON text of whatever is there */
    TD_CACHE_RAW_ONCE, /* the same, as it came, for options.fill alone; empty afterwards */
    TD_CACHE_MADE,     /* td_str: nothing is read; what options.fill puts there is kept */
};

#define TD_CACHE_TIME_NONE INT64_MIN

struct td_cache_field {
    const char *path; /* "spec.nodeName"; static. "": the whole object (RAW kinds and PRESENT),
                         without its managedFields, and in a list without kind and apiVersion */
    enum td_cache_kind kind;
    size_t offset; /* in the caller's struct */
};

/* Absent, null and wrongly typed values leave a field zero (texts empty, TIME as said); the latter
 * are counted. Objects are valid until their deletion, or their change, has been told. */
struct td_cache_handler {
    void (*added)(void *context, const void *object);
    void (*changed)(void *context, const void *before, const void *after);
    void (*deleted)(void *context, const void *object);
    void (*synced)(void *context); /* after each complete list, the first and later ones */
};

struct td_cache_options {
    struct td_loop *loop;
    struct td_client *client;
    struct td_client_flow *flow; /* NULL: the shared one; must outlive the cache */
    td_str group;                /* empty: the core group */
    td_str version;
    td_str plural;
    td_str namespace; /* empty: all */
    td_str label_selector;
    td_str field_selector;
    /* Objects of a namespace whose hash is outside are not held. The server is asked for the range
     * alone (?shardSelector=); one that does not know that sends all, and what is foreign is passed
     * over while its bytes are read. NULL: all; copied. Not for cluster-scoped resources. */
    const struct td_shard_range *shard;
    bool is_metadata_only; /* asks for PartialObjectMetadata: fields below metadata only */
    const struct td_cache_field *fields; /* copied; at most TD_CACHE_FIELDS_MAX */
    size_t field_count;
    size_t struct_bytes;     /* of the caller's struct, head included */
    size_t kept_bytes;       /* of its beginning that is kept: the rest is for RAW_ONCE fields, and
                                there while fill runs; 0: all of it */
    struct td_intern *names; /* of NAME fields; borrowed, may be shared; NULL when there are none */
    /* Called with what was read of an object that is new or has changed, before it is made, for
     * what is computed from its fields: texts of MADE fields may lie in the arena. release gives
     * back what fill took. Both may be NULL. */
    void (*fill)(void *context, void *object, struct td_arena *arena);
    void (*release)(void *context, void *object);
    void *context;
    uint64_t seed;       /* of the jitter */
    td_duration silence; /* real time after which a watch without a byte is dead; 0: 150 s */
};

/* Texts are copied. TD_INVALID for a resource that cannot stand in a path, TD_LIMIT for fields past
 * the caps; wrong offsets are asserted. Nothing is sent before td_cache_start. */
int td_cache_new(const struct td_cache_options *options, struct td_cache **ret,
                 struct td_error *err);
/* Handlers are not called. Not from inside a handler. NULL is accepted. */
void td_cache_free(struct td_cache *cache);

/* Before td_cache_start; handlers are called in the order in which they were added, and must not
 * change the cache. Members may be NULL. At most TD_CACHE_HANDLERS_MAX. */
void td_cache_subscribe(struct td_cache *cache, const struct td_cache_handler *handler,
                        void *context);
void td_cache_start(struct td_cache *cache);

/* The object, borrowed until the return to the loop; NULL when there is none. */
const void *td_cache_get(const struct td_cache *cache, td_str namespace, td_str name);
/* The next object at or after *position, which starts at 0; NULL at the end. */
const void *td_cache_next(const struct td_cache *cache, size_t *position);
size_t td_cache_count(const struct td_cache *cache);

/* Has a whole list been seen? Before that, what is missing may exist. */
bool td_cache_is_synced(const struct td_cache *cache);
/* How long ago the server last confirmed what is held: the end of a list, an event or a bookmark of
 * the watch. INT64_MAX before the first list. A quiet watch is confirmed each minute. */
td_duration td_cache_age(const struct td_cache *cache);
/* The version up to which everything was seen; opaque. */
td_str td_cache_version(const struct td_cache *cache);
/* Why the last attempt failed; code TD_OK while nothing is wrong. */
const struct td_error *td_cache_error(const struct td_cache *cache);

struct td_cache_counts {
    uint64_t lists;   /* begun */
    uint64_t pages;   /* of them, received */
    uint64_t watches; /* opened, streaming lists included */
    uint64_t events;  /* objects received, of lists and of watches */
    uint64_t bookmarks;
    uint64_t expired;       /* 410 in any form */
    uint64_t failures;      /* attempts that failed, 410 included */
    uint64_t wrong_fields;  /* values of another type than declared */
    uint64_t foreign;       /* objects passed over, of other shards */
    uint64_t foreign_bytes; /* read for nothing */
    bool is_filtered;       /* by the server: a whole list came without a foreign object */
    size_t bytes;           /* of all objects held, names not counted */
};
struct td_cache_counts td_cache_counts(const struct td_cache *cache);
