/* A stage for tests of the updater: workloads, VPAs and pods written as JSON, passes driven with a
 * server that accepts or refuses, and the calls that were made. */
#pragma once

/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/json/json.h"
#include "decide/vertical/updater/pass.h"

#define STAGE_MAX 64
#define RECREATE "\"updatePolicy\":{\"updateMode\":\"Recreate\"}"
#define OF_ROLE(role) ",\"selector\":{\"matchLabels\":{\"role\":\"" role "\"}}"
#define OLD "2026-01-01T00:00:00Z"
#define NEW "2026-02-01T00:00:00Z"
#define STAGE_NOW ((td_time)1772366400 * TD_SECOND) /* 2026-03-01T12:00:00Z */

struct stage_call {
    enum td_updater_call call;
    char pod[64];
    char vpa[64];
};

struct stage {
    struct td_arena arena;
    struct td_workload workloads[STAGE_MAX];
    size_t workload_count;
    struct td_vpa *vpas[STAGE_MAX];
    size_t vpa_count;
    struct td_pod pods[STAGE_MAX];
    size_t pod_count;
    struct td_updater_config config;
    struct td_vpa_gates gates;
    struct td_updater_state state;
    td_time now;
    td_time deadline;
    const struct td_limit_ranges *limits; /* of every namespace; NULL: none */
    enum td_updater_result evict_result;
    enum td_updater_result resize_result;
    struct stage_call calls[STAGE_MAX]; /* of the last pass, annotations left out */
    size_t call_count;
    struct td_updater_note notes[STAGE_MAX]; /* of the last pass */
    size_t note_count;
    size_t event_count;
};

static inline struct td_json *stage_json(struct stage *stage, const char *text)
{
    struct td_json *tree = NULL;
    struct td_error err = TD_ERROR_INIT;
    int code = td_json_parse(&stage->arena, td_arena_copy_str(&stage->arena, td_str_from(text)),
                             NULL, &tree, &err);
    if (code < 0) {
        fail_msg("%s: %s", err.message, text);
    }
    return tree;
}

static inline void stage_init(struct stage *stage)
{
    *stage = (struct stage){.now = STAGE_NOW};
    td_arena_init(&stage->arena, SIZE_MAX);
    stage->config = td_updater_config_default();
    stage->gates = (struct td_vpa_gates){
        .in_place = true, .heterogeneous_workloads = true, .pod_level_resources = true};
    td_updater_state_init(&stage->state);
}

static inline void stage_done(struct stage *stage)
{
    td_updater_state_done(&stage->state);
    td_arena_done(&stage->arena);
}

static inline void stage_add_workload(struct stage *stage, const char *kind, const char *name,
                                      int replicas)
{
    td_str text = td_arena_format(
        &stage->arena,
        "{\"kind\":\"%s\",\"metadata\":{\"namespace\":\"ns\",\"name\":\"%s\"},"
        "\"spec\":{\"replicas\":%d,\"selector\":{\"matchLabels\":{\"app\":\"a\"}}}}",
        kind, name, replicas);
    struct td_workload *workload = &stage->workloads[stage->workload_count++];
    assert_int_equal(td_workload_decode(&stage->arena, stage_json(stage, text.ptr), workload, NULL),
                     TD_OK);
}

/* `spec` is what stands in spec beside targetRef; the target is 300m and 300Mi, range 200 to 500.
 */
static inline struct td_vpa *stage_add_vpa(struct stage *stage, const char *name,
                                           const char *created, const char *kind,
                                           const char *target, const char *spec)
{
    td_str text = td_arena_format(
        &stage->arena,
        "{\"metadata\":{\"namespace\":\"ns\",\"name\":\"%s\",\"creationTimestamp\":\"%s\"},"
        "\"spec\":{\"targetRef\":{\"apiVersion\":\"apps/v1\",\"kind\":\"%s\",\"name\":\"%s\"}%s%s},"
        "\"status\":{\"recommendation\":{\"containerRecommendations\":[{\"containerName\":\"c\","
        "\"target\":{\"cpu\":\"300m\",\"memory\":\"300Mi\"},"
        "\"lowerBound\":{\"cpu\":\"200m\",\"memory\":\"200Mi\"},"
        "\"upperBound\":{\"cpu\":\"500m\",\"memory\":\"500Mi\"}}]}}}",
        name, created, kind, target, spec[0] ? "," : "", spec);
    struct td_vpa *vpa = td_arena_new(&stage->arena, struct td_vpa);
    struct td_error err = TD_ERROR_INIT;
    if (td_vpa_decode(&stage->arena, stage_json(stage, text.ptr), vpa, &err) < 0) {
        fail_msg("%s", err.message);
    }
    stage->vpas[stage->vpa_count++] = vpa;
    return vpa;
}

/* ReplicaSet "web" under VPA "v" in mode Recreate. */
static inline struct td_vpa *stage_add_web(struct stage *stage, int replicas)
{
    stage_add_workload(stage, "ReplicaSet", "web", replicas);
    return stage_add_vpa(stage, "v", OLD, "ReplicaSet", "web", RECREATE);
}

/* StatefulSet "db" of three under VPAs "leader" and "follower", the first made at OLD; with the
 * gate each has the pods of its role, without it their selectors are ignored. */
static inline void stage_add_roles(struct stage *stage, bool gate, const char *follower_created)
{
    stage->gates.heterogeneous_workloads = gate;
    stage_add_workload(stage, "StatefulSet", "db", 3);
    stage_add_vpa(stage, "leader", OLD, "StatefulSet", "db", RECREATE OF_ROLE("leader"));
    stage_add_vpa(stage, "follower", follower_created, "StatefulSet", "db",
                  RECREATE OF_ROLE("follower"));
}

struct stage_pod {
    const char *name;
    const char *uid;        /* NULL: "uid-" and the name */
    const char *owner_kind; /* NULL: none */
    const char *owner;
    const char *role;        /* label; NULL: none */
    const char *cpu;         /* requests; NULL: 100m */
    const char *memory;      /* NULL: 100Mi */
    const char *phase;       /* NULL: Running */
    const char *conditions;  /* JSON array; NULL: none */
    const char *annotations; /* JSON object; NULL: none */
    const char *statuses;    /* JSON array; NULL: none */
    bool lacks_controller;   /* the owner reference has no controller field */
    bool is_deleted;
    bool restarts; /* resizePolicy RestartContainer */
};

static inline const char *stage_or(const char *text, const char *fallback)
{
    return text ? text : fallback;
}

static inline struct td_pod *stage_add_pod(struct stage *stage, const struct stage_pod *pod)
{
    struct td_arena *arena = &stage->arena;
    td_str uid = td_arena_format(arena, "uid-%s", pod->name);
    td_str owners = td_arena_format(
        arena, "[{\"apiVersion\":\"apps/v1\",\"kind\":\"%s\",\"name\":\"%s\",\"uid\":\"u\"%s}]",
        stage_or(pod->owner_kind, ""), stage_or(pod->owner, ""),
        pod->lacks_controller ? "" : ",\"controller\":true");
    td_str text = td_arena_format(
        arena,
        "{\"metadata\":{\"namespace\":\"ns\",\"name\":\"%s\",\"uid\":\"%s\",\"labels\":{\"app\":"
        "\"a\"%s%s%s},\"annotations\":%s,\"ownerReferences\":%s%s},"
        "\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{\"requests\":{\"cpu\":\"%s\","
        "\"memory\":\"%s\"}}%s}]},"
        "\"status\":{\"phase\":\"%s\",\"startTime\":\"2026-03-01T11:00:00Z\",\"conditions\":%s,"
        "\"containerStatuses\":%s}}",
        pod->name, stage_or(pod->uid, uid.ptr), pod->role ? ",\"role\":\"" : "",
        stage_or(pod->role, ""), pod->role ? "\"" : "", stage_or(pod->annotations, "null"),
        pod->owner_kind ? owners.ptr : "[]",
        pod->is_deleted ? ",\"deletionTimestamp\":\"2026-03-01T11:59:00Z\"" : "",
        stage_or(pod->cpu, "100m"), stage_or(pod->memory, "100Mi"),
        pod->restarts ? ",\"resizePolicy\":[{\"resourceName\":\"cpu\",\"restartPolicy\":"
                        "\"RestartContainer\"}]"
                      : "",
        stage_or(pod->phase, "Running"), stage_or(pod->conditions, "[]"),
        stage_or(pod->statuses, "[]"));
    struct td_pod *made = &stage->pods[stage->pod_count++];
    struct td_error err = TD_ERROR_INIT;
    if (td_pod_decode(arena, stage_json(stage, text.ptr), made, &err) < 0) {
        fail_msg("%s", err.message);
    }
    return made;
}

static inline const struct td_workload *stage_workload(void *context, td_str kind, td_str namespace,
                                                       td_str name)
{
    struct stage *stage = context;
    for (size_t i = 0; i < stage->workload_count; i++) {
        const struct td_workload *workload = &stage->workloads[i];
        if (td_str_equal(workload->kind, kind) && td_str_equal(workload->namespace, namespace) &&
            td_str_equal(workload->name, name)) {
            return workload;
        }
    }
    return NULL;
}

static inline bool stage_resource(void *context, td_str group, td_str kind, size_t index,
                                  td_str *ret_resource)
{
    (void)context, (void)group;
    *ret_resource = kind;
    return index == 0;
}

static inline struct td_scale_answer stage_scale(void *context, td_str group, td_str resource,
                                                 td_str namespace, td_str name)
{
    (void)context, (void)group, (void)resource, (void)namespace, (void)name;
    return (struct td_scale_answer){.code = TD_NOT_FOUND};
}

static inline struct td_workload_source stage_source(struct stage *stage)
{
    return (struct td_workload_source){.context = stage,
                                       .get_workload = stage_workload,
                                       .get_resource = stage_resource,
                                       .get_scale = stage_scale};
}

static inline const struct td_limit_ranges *stage_limits(void *context, td_str namespace)
{
    (void)namespace;
    return ((struct stage *)context)->limits;
}

static inline void stage_record(struct stage *stage, const struct td_updater_action *action)
{
    struct stage_call *call = &stage->calls[stage->call_count++];
    call->call = action->call;
    (void)snprintf(call->pod, sizeof(call->pod), "%.*s", TD_STR_ARG(action->pod->meta.name));
    (void)snprintf(call->vpa, sizeof(call->vpa), "%.*s", TD_STR_ARG(action->vpa->meta.name));
}

/* One pass; returns how many pods were evicted or resized. */
static inline size_t stage_pass(struct stage *stage)
{
    struct td_workload_source source = stage_source(stage);
    const struct td_updater_input input = {
        .arena = &stage->arena,
        .now = stage->now,
        .deadline = stage->deadline,
        .config = &stage->config,
        .gates = stage->gates,
        .vpas = (const struct td_vpa *const *)stage->vpas,
        .vpa_count = stage->vpa_count,
        .pods = stage->pods,
        .pod_count = stage->pod_count,
        .source = &source,
        .state = &stage->state,
        .context = stage,
        .get_limits = stage_limits,
    };
    struct td_updater_pass pass;
    struct td_error err = TD_ERROR_INIT;
    stage->call_count = 0;
    size_t done = 0;
    assert_int_equal(td_updater_pass_begin(&pass, &input, &err), TD_OK);
    struct td_updater_action action;
    while (td_updater_pass_next(&pass, stage->now, &action)) {
        enum td_updater_result result = TD_UPDATER_DONE;
        if (action.call != TD_UPDATER_ANNOTATE) {
            stage_record(stage, &action);
            result = action.call == TD_UPDATER_EVICT ? stage->evict_result : stage->resize_result;
            done += result == TD_UPDATER_DONE;
        }
        td_updater_pass_result(&pass, result, TD_STR("the server said no"));
    }
    stage->note_count = pass.notes.count < STAGE_MAX ? pass.notes.count : STAGE_MAX;
    if (stage->note_count > 0) {
        memcpy(stage->notes, pass.notes.items, stage->note_count * sizeof(stage->notes[0]));
    }
    stage->event_count = pass.events.count;
    td_updater_pass_end(&pass);
    return done;
}

/* The last rule noted for a pod (NULL: for the VPA as a whole), or -1. */
static inline int stage_rule(const struct stage *stage, const char *pod)
{
    int rule = -1;
    for (size_t i = 0; i < stage->note_count; i++) {
        const struct td_updater_note *note = &stage->notes[i];
        bool is_it =
            pod ? note->pod && td_str_equal(note->pod->meta.name, td_str_from(pod)) : !note->pod;
        rule = is_it ? (int)note->rule : rule;
    }
    return rule;
}
