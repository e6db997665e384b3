/*
 * A bed for workload controllers: the script bed (API handler on a virtual clock) with the
 * controllers and the garbage collector running, and hands that play the node: pods become ready,
 * fail or go at a word. Questions give one short text each, so that a test is a table of steps.
 */
#pragma once

#include <stdlib.h>

#include "support/api_script.h"

#include "base/timefmt.h"

#include "local/controllers/gc.h"
#include "local/store/edit.h"
#include "local/workloads/workloads.h"

#define SETS "/apis/apps/v1/namespaces/default/replicasets"
#define STATEFULS "/apis/apps/v1/namespaces/default/statefulsets"
#define DAEMONS "/apis/apps/v1/namespaces/default/daemonsets"
#define JOBS "/apis/batch/v1/namespaces/default/jobs"
#define CRONS "/apis/batch/v1/namespaces/default/cronjobs"
#define EVENTS "/api/v1/namespaces/default/events"
#define NODES "/api/v1/nodes"
#define TEMPLATE_OF(labels, image)                                                                 \
    "\"template\":{\"metadata\":{\"labels\":" labels "},\"spec\":{\"containers\":[{\"name\":"      \
    "\"c\",\"image\":\"" image "\"}]}}"

struct workload_bed {
    struct bed bed; /* first: a test's state is one of these */
    struct td_gc *gc;
    struct td_workloads *workloads;
};

static inline int workload_setup(void **state)
{
    struct workload_bed *w = td_alloc_zero(1, sizeof(*w));
    bed_init(&w->bed);
    static const struct step steps[] = {
        {"POST", "/api/v1/namespaces", NULL, "{\"metadata\":{\"name\":\"default\"}}", 201, NULL,
         NULL},
        {"POST", "/api/v1/namespaces/default/serviceaccounts", NULL,
         "{\"metadata\":{\"name\":\"default\"}}", 201, NULL, NULL},
    };
    RUN(&w->bed, steps);
    w->gc = td_gc_new(w->bed.api, NULL);
    w->workloads = td_workloads_new(w->bed.api, NULL);
    *state = w;
    return 0;
}

static inline int workload_teardown(void **state)
{
    struct workload_bed *w = *state;
    td_workloads_free(w->workloads);
    td_gc_free(w->gc);
    bed_done(&w->bed);
    td_free(w);
    return 0;
}

/* Lets everything settle, and so much time pass. */
static inline void workload_settle(struct bed *bed, int seconds)
{
    bed_run(bed, seconds * TD_SECOND + TD_MILLISECOND * 200);
}

static inline void workload_do(struct bed *bed, const char *method, const char *target,
                               const char *type, const char *body, int status)
{
    const struct step step = {method, target, type, body, status, NULL, NULL};
    script_run(bed, &step, 1);
    workload_settle(bed, 0);
}

/* What an object has at a path. */
static inline const char *workload_get(struct bed *bed, const char *target, const char *path)
{
    bed_auto_answer answer;
    bed_answer_init(&answer);
    const struct step step = {"GET", target, NULL, NULL, 200, path, NULL};
    script_ask(bed, &step, &answer);
    if (answer.status == 404) {
        return "gone";
    }
    const char *found = script_at(bed, &answer, path);
    return found ? found : "nothing";
}

static inline const struct td_resource *workload_pods(struct bed *bed)
{
    return td_resources_find_kind(td_api_resources(bed->api), TD_STR("v1"), TD_STR("Pod")).resource;
}

/* The next pod in order of names whose phase is `phase` and that is not being deleted, as a tree;
 * `after` is the name it comes behind. */
static inline struct td_json *workload_next_pod(struct bed *bed, td_str after)
{
    const struct td_collection *pods = td_store_find(bed->store, TD_STR("pods"));
    struct td_collection_iter iter;
    const struct td_stored *stored;
    struct td_json *pod = NULL;
    if (!pods) {
        return NULL;
    }
    iter = td_collection_walk(pods, TD_STR_EMPTY);
    while (!pod && (stored = td_collection_iter_next(&iter))) {
        if (td_str_compare(stored->name, after) > 0) {
            assert_int_equal(td_edit_get(bed->api, workload_pods(bed), stored->ns, stored->name,
                                         &bed->arena, &pod, NULL),
                             TD_OK);
        }
    }
    td_collection_iter_done(&iter);
    return pod;
}

static inline td_str workload_name(const struct td_json *object)
{
    return td_json_get_str(td_json_get(object, TD_STR("metadata")), TD_STR("name"), TD_STR_EMPTY);
}

static inline void workload_set_ready(struct bed *bed, struct td_json *pod, bool is_ready)
{
    struct td_arena *arena = &bed->arena;
    struct td_json *status = td_json_ensure_object(arena, pod, TD_STR("status"));
    char text[TD_TIME_TEXT_BYTES];
    size_t len = td_time_format(td_time_to_instant(td_clock_wall(&bed->clock)), 0, text);
    td_str now = td_arena_copy_str(arena, (td_str){.ptr = text, .len = len});
    td_json_set_str(arena, status, TD_STR("phase"), TD_STR("Running"));
    struct td_json *condition = td_json_new_object(arena);
    td_json_set_str(arena, condition, TD_STR("type"), TD_STR("Ready"));
    td_json_set_str(arena, condition, TD_STR("status"),
                    is_ready ? TD_STR("True") : TD_STR("False"));
    td_json_set_str(arena, condition, TD_STR("lastTransitionTime"), now);
    struct td_json *conditions = td_json_new_array(arena);
    td_json_append(conditions, condition);
    td_json_set(arena, status, TD_STR("conditions"), conditions);
    struct td_json *spec = td_json_ensure_object(arena, pod, TD_STR("spec"));
    if (!td_json_get(spec, TD_STR("nodeName"))) {
        td_json_set_str(arena, spec, TD_STR("nodeName"), TD_STR("node-1"));
    }
    assert_int_equal(td_edit_put(bed->api, workload_pods(bed), arena, pod, NULL), TD_OK);
}

/* Is the pod running and ready, and not on its way out? */
static inline bool workload_is_ready(const struct td_json *pod)
{
    const struct td_json *conditions = td_json_get_path(pod, "status.conditions");
    return conditions && td_json_first_child(conditions) &&
           td_str_equal(
               td_json_get_str(td_json_first_child(conditions), TD_STR("status"), TD_STR_EMPTY),
               TD_STR("True"));
}

/* Plays the node once over all pods: up to `count` that are not ready become it, those that are
 * being deleted go. Then everything settles. */
static inline void workload_node(struct bed *bed, int count)
{
    td_str after = TD_STR_EMPTY;
    struct td_json *pod;
    while ((pod = workload_next_pod(bed, after))) {
        after = workload_name(pod);
        const struct td_json *metadata = td_json_get(pod, TD_STR("metadata"));
        if (td_json_get(metadata, TD_STR("deletionTimestamp"))) {
            (void)td_edit_delete(bed->api, workload_pods(bed), TD_STR("default"), after,
                                 TD_STR_EMPTY, TD_STR_EMPTY, 0, NULL);
        } else if (count > 0 && !workload_is_ready(pod) &&
                   !td_str_equal(td_json_get_str(td_json_get(pod, TD_STR("status")),
                                                 TD_STR("phase"), TD_STR_EMPTY),
                                 TD_STR("Succeeded"))) {
            workload_set_ready(bed, pod, true);
            count--;
        }
    }
    workload_settle(bed, 0);
}

/* "3 pods, 2 ready, 1 going". */
static inline const char *workload_count(struct bed *bed)
{
    size_t total = 0;
    size_t ready = 0;
    size_t going = 0;
    td_str after = TD_STR_EMPTY;
    struct td_json *pod;
    while ((pod = workload_next_pod(bed, after))) {
        after = workload_name(pod);
        bool is_going = td_json_get_path(pod, "metadata.deletionTimestamp");
        total++;
        going += is_going;
        ready += !is_going && workload_is_ready(pod);
    }
    return td_arena_format(&bed->arena, "%zu pods, %zu ready, %zu going", total, ready, going).ptr;
}

/* Is the event about the object of that name? */
static inline bool workload_is_about(const struct td_json *event, const char *name)
{
    return td_str_equal(
        td_json_get_str(td_json_get(event, TD_STR("involvedObject")), TD_STR("name"), TD_STR_EMPTY),
        td_str_from(name));
}

/* Events of one reason about one object: "message (count); ..." in the order of their messages. */
static inline const char *workload_events(struct bed *bed, const char *name, const char *reason)
{
    bed_auto_answer answer;
    bed_answer_init(&answer);
    const struct step step = {"GET", EVENTS, NULL, NULL, 200, NULL, NULL};
    script_ask(bed, &step, &answer);
    const struct td_json *list = td_json_get(bed_tree(bed, &answer), TD_STR("items"));
    td_str texts[64];
    size_t count = 0;
    for (const struct td_json *e = td_json_first_child(list); e && count < 64; e = e->next) {
        if (workload_is_about(e, name) &&
            td_str_equal(td_json_get_str(e, TD_STR("reason"), TD_STR_EMPTY), td_str_from(reason))) {
            texts[count++] = td_json_get_str(e, TD_STR("message"), TD_STR_EMPTY);
        }
    }
    qsort(texts, count, sizeof(texts[0]), td_str_compare_items);
    td_auto_buf text;
    td_buf_init(&text, BED_BODY_BYTES_MAX);
    for (size_t i = 0; i < count; i++) {
        (void)td_buf_append_format(&text, "%s%.*s", i > 0 ? "; " : "", TD_STR_ARG(texts[i]));
    }
    return td_arena_copy_str(&bed->arena, td_buf_str(&text)).ptr;
}

/* "reason=status" of a condition. */
static inline const char *workload_condition(struct bed *bed, const char *target, const char *type)
{
    bed_auto_answer answer;
    bed_answer_init(&answer);
    const struct step step = {"GET", target, NULL, NULL, 200, NULL, NULL};
    script_ask(bed, &step, &answer);
    const struct td_json *list = td_json_get_path(bed_tree(bed, &answer), "status.conditions");
    for (const struct td_json *c = td_json_first_child(list); c; c = c->next) {
        if (td_str_equal(td_json_get_str(c, TD_STR("type"), TD_STR_EMPTY), td_str_from(type))) {
            td_str reason = td_json_get_str(c, TD_STR("reason"), TD_STR_EMPTY);
            td_str status = td_json_get_str(c, TD_STR("status"), TD_STR_EMPTY);
            return td_arena_format(&bed->arena, "%.*s=%.*s", TD_STR_ARG(reason), TD_STR_ARG(status))
                .ptr;
        }
    }
    return "none";
}
