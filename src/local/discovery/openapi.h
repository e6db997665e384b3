/*
 * OpenAPI documents of what is served, versions 2 and 3, made from the schema tables and the CRDs:
 * enough for kubectl's apply, diff, explain and edit and for tools that generate forms. Every kind
 * carries its group, version and kind, every list how it merges, every write the query parameters
 * it understands. Descriptions are those of describe_texts.h. Trees are in the arena.
 */
#pragma once

#include "base/arena.h"
#include "base/json/json.h"
#include "base/str.h"
#include "local/resources/resource.h"

/* /openapi/v2: one document of everything. */
struct td_json *td_openapi_v2(struct td_arena *arena, const struct td_resources *resources);

/* /openapi/v3: where the documents are, one a group and version. */
struct td_json *td_openapi_v3_index(struct td_arena *arena, const struct td_resources *resources);

/* /openapi/v3/api/v1 and /openapi/v3/apis/GROUP/VERSION; NULL when it is not served. */
struct td_json *td_openapi_v3(struct td_arena *arena, const struct td_resources *resources,
                              td_str group, td_str version);
