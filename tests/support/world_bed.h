/*
 * A bed for worlds (sim/world/world.h): a scenario and its manifests as texts, written into a
 * folder of the test's own, a virtual clock, and everything that happened as lines.
 */
#pragma once

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/limits.h"
#include "base/os/loop.h"
#include "local/api/api.h"
#include "local/cluster.h"
#include "local/resources/resource.h"
#include "local/store/edit.h"
#include "sim/scenario/scenario.h"
#include "sim/world/world.h"
#include "support/temp_folder.h"

#define WORLD_BED_START (INT64_C(1704067200) * TD_SECOND)
#define WORLD_BED_HEAD                                                                             \
    "apiVersion: sim.tandem.dev/v1\n"                                                              \
    "kind: Scenario\n"                                                                             \
    "metadata: {name: test}\n"                                                                     \
    "spec:\n"                                                                                      \
    "  manifests: [objects.yaml]\n"                                                                \
    "  nodes: [{count: 2, cpu: \"8\", memory: 16Gi}]\n"

struct world_bed {
    struct temp_folder folder;
    struct td_arena arena;
    struct td_scenario scenario;
    struct td_clock clock;
    struct td_loop *loop;
    struct td_world *world;
    struct td_buf lines; /* "reason kind/name message" of all that happened */
    struct td_error err;
    int code;
};

static inline void world_bed_happened(const struct td_world_event *event, void *context)
{
    struct world_bed *bed = context;
    (void)td_buf_append_format(&bed->lines, "%lld %.*s %.*s/%.*s %.*s\n",
                               (long long)(event->at / TD_SECOND), TD_STR_ARG(event->reason),
                               TD_STR_ARG(event->kind), TD_STR_ARG(event->name),
                               TD_STR_ARG(event->message));
}

static inline void world_bed_init(struct world_bed *bed)
{
    *bed = (struct world_bed){.err = TD_ERROR_INIT};
    assert_int_equal(temp_folder_make(&bed->folder), 0);
    td_arena_init(&bed->arena, TD_TREE_ARENA_BYTES_MAX);
    td_buf_init(&bed->lines, (size_t)16 << 20);
    bed->clock = td_clock_virtual(WORLD_BED_START);
    assert_int_equal(td_loop_new(&bed->clock, &bed->loop, NULL), TD_OK);
}

static inline void world_bed_file(struct world_bed *bed, const char *name, const char *text)
{
    (void)temp_file(&bed->folder, &bed->arena, name, 0600, td_str_from(text));
}

/* bed->code and bed->err say how it went. `seed` below 0: the scenario's. */
static inline void world_bed_start(struct world_bed *bed, const char *scenario, int64_t seed)
{
    world_bed_file(bed, "scenario.yaml", scenario);
    const char *path = temp_path(&bed->folder, &bed->arena, "scenario.yaml");
    bed->code = td_scenario_load(&bed->arena, path, &bed->scenario, &bed->err);
    if (bed->code != TD_OK) {
        return;
    }
    const struct td_world_options options = {
        .loop = bed->loop,
        .scenario = &bed->scenario,
        .seed = seed < 0 ? 0 : (uint64_t)seed,
        .has_seed = seed >= 0,
        .happened = world_bed_happened,
        .context = bed,
    };
    bed->code = td_world_new(&options, &bed->world, &bed->err);
}

/* The same, and it must work. */
static inline void world_bed_begin(struct world_bed *bed, const char *scenario, const char *objects)
{
    world_bed_init(bed);
    world_bed_file(bed, "objects.yaml", objects);
    world_bed_start(bed, scenario, -1);
    if (bed->code != TD_OK) {
        fail_msg("%s", bed->err.message);
    }
}

static inline void world_bed_done(struct world_bed *bed)
{
    td_world_free(bed->world);
    td_loop_free(bed->loop);
    td_buf_done(&bed->lines);
    td_arena_done(&bed->arena);
    temp_folder_remove(&bed->folder);
}

static inline void world_bed_stop(struct td_timer *timer, void *context)
{
    (void)timer;
    td_loop_stop(context);
}

static inline void world_bed_run(struct world_bed *bed, td_duration span)
{
    struct td_timer *timer = td_timer_new(bed->loop, world_bed_stop, bed->loop);
    td_timer_set(timer, span);
    assert_int_equal(td_loop_run(bed->loop, NULL), TD_OK);
    td_timer_free(timer);
}

static inline struct td_world_view world_bed_look(struct world_bed *bed)
{
    struct td_world_view view;
    td_world_look(bed->world, &bed->arena, &view);
    return view;
}

/* The row of that name and role, or NULL. */
static inline const struct td_world_row *world_bed_row(struct world_bed *bed, const char *name,
                                                       const char *role)
{
    struct td_world_view view = world_bed_look(bed);
    for (size_t i = 0; i < view.row_count; i++) {
        if (td_str_equal(view.rows[i].load.name, td_str_from(name)) &&
            td_str_equal(view.rows[i].load.role, td_str_from(role))) {
            return &view.rows[i];
        }
    }
    return NULL;
}

static inline bool world_bed_has_line(struct world_bed *bed, const char *text)
{
    return bed->lines.ptr && strstr(bed->lines.ptr, text) != NULL;
}

static inline const struct td_resource *
world_bed_resource(struct world_bed *bed, const char *api_version, const char *kind)
{
    struct td_api *api = td_cluster_api(td_world_cluster(bed->world));
    return td_resources_find_kind(td_api_resources(api), td_str_from(api_version),
                                  td_str_from(kind))
        .resource;
}

/* A text or number of an object of namespace default by path; "" when there is none. */
static inline const char *world_bed_text(struct world_bed *bed, const char *api_version,
                                         const char *kind, const char *name, const char *path)
{
    struct td_api *api = td_cluster_api(td_world_cluster(bed->world));
    struct td_json *object;
    if (td_edit_get(api, world_bed_resource(bed, api_version, kind), TD_STR("default"),
                    td_str_from(name), &bed->arena, &object, NULL) != TD_OK) {
        return "gone";
    }
    const struct td_json *node = td_json_get_path(object, path);
    bool has_text = td_json_is(node, TD_JSON_TYPE_STRING) || td_json_is(node, TD_JSON_TYPE_NUMBER);
    return has_text ? td_arena_copy_str(&bed->arena, node->text).ptr : "";
}

static inline void world_bed_delete(struct world_bed *bed, const char *api_version,
                                    const char *kind, const char *name)
{
    struct td_api *api = td_cluster_api(td_world_cluster(bed->world));
    assert_int_equal(td_edit_delete(api, world_bed_resource(bed, api_version, kind),
                                    TD_STR("default"), td_str_from(name), TD_STR_EMPTY,
                                    TD_STR("Background"), -1, NULL),
                     TD_OK);
}
