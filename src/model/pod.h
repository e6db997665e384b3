/*
 * A pod as an autoscaler sees it: a few dozen fields of the hundreds that a pod has, decoded once
 * when it changes. Texts are slices of the tree; arrays are in the arena. Quantities are
 * thousandths (milli-cores, milli-bytes), rounded away from zero and saturated.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/json/json.h"
#include "base/os/clock.h"
#include "base/str.h"
#include "kube/meta.h"
#include "kube/selector/labels.h"

struct td_error;

struct td_amount {
    td_str resource; /* "cpu", "memory", ... */
    int64_t milli;
};

struct td_amounts {
    const struct td_amount *items; /* sorted by resource */
    size_t count;
};

enum td_container_kind {
    TD_CONTAINER_REGULAR,
    TD_CONTAINER_SIDECAR, /* init container with restartPolicy Always */
    TD_CONTAINER_INIT,
};

struct td_pod_container {
    td_str name;
    enum td_container_kind kind;
    struct td_amounts requests;
    struct td_amounts limits;
};

enum td_pod_phase {
    TD_POD_PHASE_NONE, /* empty */
    TD_POD_PENDING,
    TD_POD_RUNNING,
    TD_POD_SUCCEEDED,
    TD_POD_FAILED,
    TD_POD_PHASE_UNKNOWN,
};

enum td_condition_status {
    TD_CONDITION_ABSENT,
    TD_CONDITION_TRUE,
    TD_CONDITION_FALSE,
    TD_CONDITION_UNKNOWN
};

#define TD_TIME_NONE INT64_MIN /* a td_time that is not set */

struct td_pod {
    td_str namespace;
    td_str name;
    td_str uid;
    struct td_labels labels;
    const struct td_owner_reference *owners;
    size_t owner_count;
    bool is_terminating; /* deletionTimestamp is set */
    enum td_pod_phase phase;
    td_time start_time; /* status.startTime, or TD_TIME_NONE */
    enum td_condition_status ready;
    td_time ready_since; /* lastTransitionTime of Ready; TD_TIME_NONE when absent */
    const struct td_pod_container
        *containers; /* spec order: init containers first, then regular ones */
    size_t container_count;
    struct td_amounts pod_requests;   /* spec.resources.requests */
    struct td_amounts pod_limits;     /* spec.resources.limits */
    struct td_amounts overhead;       /* spec.overhead */
    struct td_amounts whole_requests; /* of a pod with requests of its own: what it asks for as a
                                         whole, containers and overhead included; else empty */
};

/* From a Pod tree. Wrong types and bad quantities are TD_INVALID with their path and value. */
int td_pod_decode(struct td_arena *arena, const struct td_json *pod, struct td_pod *ret,
                  struct td_error *err);

/* status.phase; a name that is none of Kubernetes' is TD_POD_PHASE_UNKNOWN. */
enum td_pod_phase td_pod_phase_from(td_str text);

/* The status of a condition that is there; all but True and False is TD_CONDITION_UNKNOWN. */
enum td_condition_status td_condition_status_from(td_str text);

/* A time of a pod: TD_TIME_NONE for an empty text, and for no other however long ago it was. */
int td_pod_time_parse(td_str text, td_time *ret, struct td_error *err);

/* The amount of a resource, or NULL. */
const int64_t *td_amounts_get(const struct td_amounts *amounts, td_str resource);
