/*
 * What the server can do, told to clients: groups, versions and resources in the legacy form (one
 * document a group and version) and in the aggregated one (all at once, apidiscovery.k8s.io/v2).
 * Made from the rows of local/resources/resource.h at each request, so a new CRD is in the next
 * answer. Trees are in the arena.
 */
#pragma once

#include "base/arena.h"
#include "base/json/json.h"
#include "base/str.h"
#include "local/resources/resource.h"

struct td_json *td_discovery_versions(struct td_arena *arena); /* /api */
struct td_json *td_discovery_groups(struct td_arena *arena,
                                    const struct td_resources *resources); /* /apis */

/* /apis/GROUP; NULL when it is not served. */
struct td_json *td_discovery_group(struct td_arena *arena, const struct td_resources *resources,
                                   td_str group);

/* /api/v1 and /apis/GROUP/VERSION; NULL when it is not served. */
struct td_json *td_discovery_resources(struct td_arena *arena, const struct td_resources *resources,
                                       td_str group, td_str version);

/* /api (is_core) and /apis, aggregated. */
struct td_json *td_discovery_aggregated(struct td_arena *arena,
                                        const struct td_resources *resources, bool is_core);
