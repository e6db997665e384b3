/* What the files of OpenAPI share; private to them. */
#pragma once

#include "local/discovery/openapi.h"

/* One document in the making. */
struct openapi {
    struct td_arena *arena;
    const struct td_resources *resources;
    bool is_v3;
    struct td_json *schemas;             /* published name to schema */
    struct td_json *paths;               /* path to operations */
    const struct td_schema_type **queue; /* named types met; those from `written` on wait */
    size_t count;
    size_t cap;
    size_t written;
};

/* ---- openapi.c ---- */

struct td_json *td_openapi_typed(struct td_arena *arena, const char *type, const char *format);
struct td_json *td_openapi_ref(const struct openapi *api, td_str name);
/* Publishes a named type and what it refers to; its name. */
td_str td_openapi_publish(struct openapi *api, const struct td_schema_type *type);
struct td_json *td_openapi_gvk(struct td_arena *arena, td_str api_version, td_str kind);
/* Adds a group, version and kind to those of a published schema, unless it has it. */
void td_openapi_mark(const struct openapi *api, td_str name, td_str api_version, td_str kind);

/* ---- openapi_paths.c ---- */

/* The paths of a row in one version, its kind being published as `component`. */
void td_openapi_add_paths(struct openapi *api, const struct td_resource *row, size_t version,
                          td_str component);
