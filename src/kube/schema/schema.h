/*
 * What Kubernetes kinds look like: for each type its fields, how lists merge (strategic merge
 * patch), who can own which part (server-side apply) and which numbers the fields have in protobuf.
 * One constant table serves patches, apply, strict decoding, OpenAPI and protobuf; rooms above
 * describe their own kinds with the same structs. Everything is immutable static data: nothing to
 * free, any thread may read.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json/json.h"
#include "base/str.h"

enum td_schema_kind {
    TD_SCHEMA_ANY, /* anything goes, lists inside are atomic: RawExtension, schemaless custom
                      resources */
    TD_SCHEMA_STRING,
    TD_SCHEMA_INT32,
    TD_SCHEMA_INT64,
    TD_SCHEMA_NUMBER, /* float64 */
    TD_SCHEMA_BOOL,
    TD_SCHEMA_QUANTITY,
    TD_SCHEMA_INT_OR_STRING,
    TD_SCHEMA_TIME,
    TD_SCHEMA_MICRO_TIME,
    TD_SCHEMA_DURATION,
    TD_SCHEMA_BYTES,  /* base64 text */
    TD_SCHEMA_OBJECT, /* type->fields */
    TD_SCHEMA_MAP,    /* string to element */
    TD_SCHEMA_LIST,   /* of element */
};

/* How server-side apply divides a value among its owners. */
enum td_schema_topology {
    TD_SCHEMA_GRANULAR, /* objects and maps: member by member */
    TD_SCHEMA_ATOMIC,   /* owned and replaced whole; lists unless said otherwise */
    TD_SCHEMA_SET,      /* list of unique scalars */
    TD_SCHEMA_KEYED,    /* list of objects merged by list_keys */
};

/* How strategic merge patch treats a field. */
enum td_schema_patch {
    TD_SCHEMA_PATCH_DEFAULT, /* objects merge, lists are replaced */
    TD_SCHEMA_PATCH_MERGE, /* list: merge by patch_key, or as a set of primitives when that is empty
                            */
    TD_SCHEMA_PATCH_REPLACE,     /* object: replaced whole */
    TD_SCHEMA_PATCH_RETAIN_KEYS, /* object: honours $retainKeys */
    TD_SCHEMA_PATCH_MERGE_RETAIN_KEYS,
};

/* How protobuf writes a type, where its kind alone does not say it. */
enum td_schema_proto {
    TD_SCHEMA_PROTO_PLAIN,
    TD_SCHEMA_PROTO_ITEMS, /* LIST: a message whose field 1 repeats the elements */
    /* ANY: a message of two fields, the schema `element` and what may stand in its place. */
    TD_SCHEMA_PROTO_OR_ARRAY,   /* 1 schema, 2 schemas */
    TD_SCHEMA_PROTO_OR_BOOL,    /* 1 bool, 2 schema */
    TD_SCHEMA_PROTO_OR_STRINGS, /* 1 schema, 2 strings */
};

struct td_schema_field;

struct td_schema_key {
    td_str name;
    td_str fallback; /* the default as JSON text ("\"TCP\"", "0"), or empty when there is none */
};

/* A value's shape. Named object types ("PodSpec") are shared; recursion is possible. */
struct td_schema_type {
    td_str package; /* of the published name: "io.k8s.api.core.v1" */
    td_str name;    /* the rest of it; empty for plain scalars, lists and maps */
    enum td_schema_kind kind;
    enum td_schema_topology topology;
    enum td_schema_proto proto;
    bool is_variant; /* of an OBJECT: the published type has the other topology */
    const struct td_schema_type *element; /* of MAP and LIST; of an OBJECT that is open, the type of
                                             the members beside its fields; of an ANY with a special
                                             form in protobuf, the schema's */
    const struct td_schema_field *fields; /* of OBJECT, sorted by name */
    size_t field_count;
    const struct td_schema_key *list_keys; /* of a KEYED list */
    size_t list_key_count;
    td_str values;   /* of a STRING, the allowed ones with commas between them; empty: any */
    td_str fallback; /* published default as JSON text; empty: the zero value */
};

struct td_schema_field {
    td_str name; /* JSON name */
    const struct td_schema_type *type;
    bool is_pointer;     /* in Go, so that absent and zero differ */
    bool is_written;     /* by a server even when it is zero (or null, a pointer that is nil) */
    bool is_required;    /* as published; the checks of kinds are stricter */
    bool has_default;    /* published: the type's fallback */
    uint32_t proto_path; /* number in protobuf; 0 for apiVersion, kind and our own kinds. Of a
                            struct that Go inlines, but protobuf nests, the number stands in the
                            byte above: 0x0204 is field 4 of the message in field 2 */
    enum td_schema_patch patch;
    td_str patch_key;
};

/* The type of a kind we know ("apps/v1", "Deployment"), or NULL. */
const struct td_schema_type *td_schema_find(td_str api_version, td_str kind);

/* Any value, every list atomic: for custom resources without schema (apiVersion, kind and metadata
 * are still typed). */
const struct td_schema_type *td_schema_any_object(void);

/* Metadata of every list: ListMeta. */
const struct td_schema_type *td_schema_list_meta(void);

/* The declared field, or NULL; the name is compared exactly. */
const struct td_schema_field *td_schema_field(const struct td_schema_type *type, td_str name);

/* The type of member `name` of a value: its field's, the element's of a map or an open object, ANY
 * inside ANY; NULL when the type has no such member. */
const struct td_schema_type *td_schema_member(const struct td_schema_type *type, td_str name);

/* Is it what Go's omitempty leaves out: null, false, 0, "", no items? A struct never is. */
bool td_schema_is_empty(const struct td_schema_type *type, const struct td_json *value);

/* Unknown fields of `object` below `type`, added to `problems` as "unknown field
 * \"spec.containers[0].foo\"" in upstream's path form and order. Values of another shape than the
 * type's are passed over: decoding refuses them. */
void td_schema_find_unknown(const struct td_schema_type *type, const struct td_json *object,
                            struct td_json_problems *problems);
