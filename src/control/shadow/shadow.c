/*
 * A pass goes over the namespaces that have VPAs, one in a turn of the loop: two dry runs of the
 * updater over it (with our recommendations, and with those that are stored), then its objects one
 * after another, each sent only when it is another than the last that was sent. A pass begins when
 * the recommender has finished one, and looks for that every interval.
 */
#include "control/shadow/shadow.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/metrics.h"
#include "base/os/log.h"
#include "base/os/loop.h"
#include "control/recommender/recommend_loop.h"
#include "control/shadow/shadow_private.h"
#include "decide/vertical/recommender/recommender.h"
#include "kube/client/client.h"

#define SHADOW_SOON (200 * TD_MILLISECOND) /* until what was asked for is there */

/* ---- What each would do ---- */

/* The updater's view of a VPA as if our status were stored. */
static void shadow_see(void *context, struct td_arena *arena, struct td_vpa *vpa)
{
    struct td_shadow *shadow = context;
    struct td_vpa object;
    struct td_vpa_status status;
    if (td_recommend_loop_vpa(shadow->options.recommend, arena, vpa->meta.namespace, vpa->meta.name,
                              &object, &status, NULL) == TD_OK) {
        vpa->has_recommendation = true;
        vpa->recommendation = status.recommendation;
        vpa->conditions = status.conditions;
        vpa->condition_count = status.condition_count;
    } else {
        vpa->has_recommendation = false;
        vpa->recommendation = (struct td_recommendation){.container_count = 0};
    }
}

static int shadow_gather(struct td_shadow *shadow, td_str namespace)
{
    const struct td_update_view ours = {.see = shadow_see, .context = shadow};
    const struct td_update_view *const views[SHADOW_BOTH] = {&ours, NULL};
    struct td_error err = TD_ERROR_INIT;
    int code = TD_OK;
    td_arena_reset(&shadow->arena);
    for (size_t by = 0; code == TD_OK && by < SHADOW_BOTH; by++) {
        shadow->notes[by] = (struct td_updater_notes){.count = 0};
        code = td_update_dry_run(&shadow->update, &shadow->arena, namespace, views[by], NULL,
                                 &shadow->notes[by], &err);
    }
    if (code != TD_OK && code != TD_BUSY) {
        td_log_line(shadow->options.control.log, TD_LOG_WARN, "shadow: cannot dry-run the updater",
                    TD_LOG_S("namespace", namespace), TD_LOG_C("error", err.message));
    }
    return code;
}

/* ---- The pass ---- */

static void shadow_collect_vpas(struct td_shadow *shadow, td_str namespace)
{
    const struct td_cache *cache =
        td_informers_cache(shadow->options.control.informers, TD_INFORMER_VPAS);
    size_t position = 0;
    td_vec_reset(&shadow->vpas);
    shadow->vpa_at = 0;
    for (const struct td_informer_object *one; (one = td_cache_next(cache, &position));) {
        bool is_here = td_str_equal(one->head.namespace, namespace);
        td_str *name = is_here ? td_vec_push(&shadow->vpas) : NULL;
        if (name) {
            *name = td_arena_copy_str(&shadow->roll, one->head.name);
        }
    }
}

static void shadow_begin(struct td_shadow *shadow)
{
    const struct td_cache *cache =
        td_informers_cache(shadow->options.control.informers, TD_INFORMER_VPAS);
    struct td_map seen;
    size_t position = 0;
    td_arena_reset(&shadow->roll);
    td_vec_reset(&shadow->namespaces);
    td_map_init(&seen, TD_CACHE_OBJECTS_MAX);
    for (const struct td_informer_object *one; (one = td_cache_next(cache, &position));) {
        td_str namespace = one->head.namespace;
        td_str *place = !td_map_has(&seen, namespace) ? td_vec_push(&shadow->namespaces) : NULL;
        if (place) {
            *place = td_arena_copy_str(&shadow->roll, namespace);
            (void)td_map_put(&seen, *place, shadow); /* only that it was seen */
        }
    }
    td_map_done(&seen);
    shadow->namespace_at = 0;
    shadow->is_open = false;
    shadow->vpa_count = 0;
    for (size_t by = 0; by < SHADOW_BOTH; by++) {
        shadow->wishes[by][SHADOW_EVICT] = 0;
        shadow->wishes[by][SHADOW_RESIZE] = 0;
    }
}

static void shadow_count(struct td_shadow *shadow)
{
    td_metric_set(td_metric_series(shadow->vpas_family, NULL), (double)shadow->vpa_count);
    for (size_t by = 0; by < SHADOW_BOTH; by++) {
        for (size_t act = 0; act < SHADOW_ACTS; act++) {
            const td_str values[] = {td_str_from(shadow_by_names[by]),
                                     td_str_from(shadow_act_names[act])};
            td_metric_set(td_metric_series(shadow->wishes_family, values),
                          (double)shadow->wishes[by][act]);
        }
    }
}

static void shadow_end(struct td_shadow *shadow)
{
    void (*stopped)(void *context) = shadow->stopped;
    shadow->stopped = NULL;
    if (stopped) {
        stopped(shadow->stopped_context);
    } else {
        shadow_forget(shadow, false);
        shadow_count(shadow);
        td_timer_set(shadow->timer, shadow->options.interval);
    }
}

void shadow_go_on(struct td_shadow *shadow)
{
    const struct td_cache *cache =
        td_informers_cache(shadow->options.control.informers, TD_INFORMER_VPAS);
    while (shadow->is_running && shadow->namespace_at < shadow->namespaces.count) {
        td_str namespace = shadow->namespaces.items[shadow->namespace_at];
        if (!shadow->is_open) {
            int code = shadow_gather(shadow, namespace);
            if (code == TD_BUSY) {
                td_timer_set(shadow->timer, SHADOW_SOON);
                return;
            }
            shadow->is_open = code == TD_OK;
            shadow->namespace_at += code == TD_OK ? 0 : 1;
            shadow_collect_vpas(shadow, namespace);
            continue;
        }
        while (shadow->vpa_at < shadow->vpas.count) {
            td_str name = shadow->vpas.items[shadow->vpa_at++];
            const struct td_informer_object *seen = td_cache_get(cache, namespace, name);
            if (seen && shadow_send(shadow, seen)) {
                return;
            }
        }
        shadow->is_open = false;
        shadow->namespace_at++;
    }
    shadow_end(shadow);
}

static void shadow_rings(struct td_timer *timer, void *context)
{
    struct td_shadow *shadow = context;
    td_time last = td_recommend_loop_last(shadow->options.recommend);
    bool is_under_way = shadow->namespace_at < shadow->namespaces.count;
    if (!is_under_way && (last == TD_TIME_NONE || last == shadow->seen ||
                          !td_informers_is_synced(shadow->options.control.informers))) {
        td_timer_set(timer, SHADOW_SOON); /* nothing new has been learnt */
        return;
    }
    if (!is_under_way) {
        shadow->seen = last;
        shadow_begin(shadow);
    }
    shadow_go_on(shadow);
}

/* ---- The whole ---- */

static void shadow_declare(struct td_shadow *shadow)
{
    struct td_metric_registry *registry = shadow->options.control.registry;
    shadow->vpas_family = td_metric_declare(
        registry,
        &(struct td_metric_declaration){.name = "tandem_shadow_vpas",
                                        .help = "VPAs that are computed beside upstream's.",
                                        .kind = TD_METRIC_GAUGE});
    shadow->wishes_family = td_metric_declare(
        registry, &(struct td_metric_declaration){
                      .name = "tandem_shadow_pods",
                      .help = "Pods that the updater would change, by whose recommendation.",
                      .kind = TD_METRIC_GAUGE,
                      .labels = {"by", "action"}});
    shadow->writes_family = td_metric_declare(
        registry,
        &(struct td_metric_declaration){.name = "tandem_shadow_writes_total",
                                        .help = "Objects of the shadow that were written.",
                                        .kind = TD_METRIC_COUNTER,
                                        .labels = {"is_error"}});
}

struct td_shadow *td_shadow_new(const struct td_shadow_options *options)
{
    struct td_shadow *shadow = td_alloc_zero(1, sizeof(*shadow));
    shadow->options = *options;
    shadow->update = *options->update;
    shadow->update.control = options->control;
    shadow->seen = TD_TIME_NONE;
    shadow->timer = td_timer_new(options->control.loop, shadow_rings, shadow);
    shadow->namespaces.count_max = TD_CACHE_OBJECTS_MAX;
    shadow->vpas.count_max = TD_CACHE_OBJECTS_MAX;
    td_map_init(&shadow->sent, TD_CACHE_OBJECTS_MAX);
    td_arena_init(&shadow->roll, TD_TREE_ARENA_BYTES_MAX);
    td_arena_init(&shadow->arena, TD_UPDATE_ARENA_BYTES_MAX);
    shadow_declare(shadow);
    return shadow;
}

void td_shadow_start(struct td_shadow *shadow)
{
    shadow->is_running = true;
    td_timer_set(shadow->timer, SHADOW_SOON);
}

void td_shadow_stop(struct td_shadow *shadow, void (*done)(void *context), void *context)
{
    shadow->is_running = false;
    td_timer_stop(shadow->timer);
    shadow->namespace_at = shadow->namespaces.count;
    if (shadow->call) {
        shadow->stopped = done;
        shadow->stopped_context = context;
    } else {
        done(context);
    }
}

void td_shadow_free(struct td_shadow *shadow)
{
    if (!shadow) {
        return;
    }
    td_client_cancel(shadow->call);
    td_timer_free(shadow->timer);
    shadow_forget(shadow, true);
    td_map_done(&shadow->sent);
    td_vec_done(&shadow->namespaces);
    td_vec_done(&shadow->vpas);
    td_arena_done(&shadow->roll);
    td_arena_done(&shadow->arena);
    td_free(shadow);
}
