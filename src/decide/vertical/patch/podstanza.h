/*
 * What is written to the resources stanza of a pod itself (proposals.md 3.3), and what its
 * containers' changes must become beside it: the API server refuses a pod whose own request is
 * below what its containers ask for together, whose limit is below its request, or one of whose
 * containers has a higher limit than the pod. Runs last, over the changes that are really going to
 * be written.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "api/vpa/vpa.h"
#include "base/arena.h"
#include "decide/vertical/patch/changes.h"
#include "decide/vertical/patch/podlevel.h"

struct td_error;

enum td_stanza_note_kind {
    TD_STANZA_REQUEST,       /* request overwritten by a target */
    TD_STANZA_LIMIT,         /* limit scaled with it */
    TD_STANZA_LIMIT_NOT_SET, /* the pod has no limit to scale */
    TD_STANZA_CAPPED_MIN,    /* the target fits Min of a Pod LimitRange now */
    TD_STANZA_CAPPED_MAX,
    TD_STANZA_CAPPED_NODE,
    TD_STANZA_LIMIT_CAPPED,   /* the scaled limit fits Max of a Pod LimitRange now */
    TD_STANZA_REQUEST_RAISED, /* to what the containers ask for */
    TD_STANZA_LIMIT_RAISED,   /* to the request, or to the limit of an init container */
    TD_STANZA_CONTAINER_LIMIT_LOWERED,
};

struct td_stanza_note {
    enum td_stanza_note_kind kind;
    td_str resource;
    td_str container; /* of TD_STANZA_CONTAINER_LIMIT_LOWERED */
};

struct td_stanza {
    struct td_resource_list requests; /* to be written at pod level */
    struct td_resource_list limits;
    struct td_pod_recommendation recommendation; /* after Pod LimitRange and node */
    struct td_stanza_note *notes;
    size_t note_count;
    size_t note_cap;
    bool lacks_recommendation; /* a request of the pod has none */
};

/* What a pod with resources of its own asks for and has no recommendation for: it stays as it is.
 */
struct td_lacking {
    const td_str *containers; /* names */
    size_t container_count;
    bool is_pod; /* a request of the pod itself */
};
struct td_lacking td_stanza_lacking(struct td_arena *arena, const struct td_pod *pod,
                                    const struct td_changes *changes,
                                    const struct td_stanza *stanza);

/* Corrects `changes` (one a container) and fills *ret. Under mode Off there is nothing to write. */
int td_stanza_make(struct td_arena *arena, const struct td_changes_input *input,
                   struct td_container_change *changes, struct td_cap_steps *steps,
                   struct td_stanza *ret, struct td_error *err);

/* Appends the records that write it; none when there is nothing to write. */
void td_stanza_patch(struct td_arena *arena, const struct td_pod *pod,
                     const struct td_stanza *stanza, struct td_json *patches);

/* "memory capped to fit Min in Pod LimitRange" */
td_str td_stanza_note_text(struct td_arena *arena, const struct td_stanza_note *note);
