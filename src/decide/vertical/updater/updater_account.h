/*
 * Why the updater did something to a pod, or did not: one note a pod and pass, with the rule that
 * decided, the numbers it looked at, and when it will look differently. Status, events, `tandem
 * explain` and the dashboard only render notes. Plain values; pods and VPAs are borrowed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "api/vpa/vpa.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/json/json.h"
#include "decide/vertical/pod.h"
#include "decide/vertical/updater/priority.h"
#include "decide/vertical/updater/restriction.h"

enum td_updater_rule {
    TD_RULE_EVICTED,
    TD_RULE_RESIZED,
    TD_RULE_EVICTION_FAILED,
    TD_RULE_RESIZE_FAILED,
    TD_RULE_RESIZE_IMPOSSIBLE, /* the node cannot take it, or nothing would be written */
    TD_RULE_MODE,              /* Off and Initial do not touch running pods */
    TD_RULE_GATE_OFF,          /* mode InPlace without its gate */
    TD_RULE_LOW_CONFIDENCE,    /* condition LowConfidence */
    TD_RULE_METRICS_STALE,     /* condition MetricsStale */
    TD_RULE_NO_RECOMMENDATION,
    TD_RULE_BOOSTED,          /* its startup boost lasts */
    TD_RULE_TOO_FEW_REPLICAS, /* minReplicas */
    TD_RULE_UNKNOWN_REPLICAS, /* the replicas that there should be cannot be read */
    TD_RULE_BUDGET,           /* eviction tolerance */
    TD_RULE_PENDING,          /* cannot be resized before it runs */
    TD_RULE_RESIZING,         /* a resize is under way */
    TD_RULE_INFEASIBLE,       /* failed before, and no target is lower now */
    TD_RULE_RESIZE_HELD,      /* track: not granted, tried again after a pause */
    TD_RULE_YOUNG,
    TD_RULE_NO_START_TIME,
    TD_RULE_SMALL_CHANGE,
    TD_RULE_WAITING, /* adaptive, track: a smaller request is due later */
    TD_RULE_IN_BAND, /* adaptive, track: close to the target */
    TD_RULE_OOM_NO_CHANGE,
    TD_RULE_REQUIREMENTS, /* evictionRequirements */
    TD_RULE_LEFT_ALONE,   /* came back unchanged after evictions */
    TD_RULE_LIMIT_RANGE,  /* admission would not let it come back */
    TD_RULE_NOT_SELECTED, /* its replacement would not be of the same VPA */
    TD_RULE_REPLACEMENT,  /* its replacement would be refused, or those of its siblings are */
    TD_RULE_RATE_LIMIT,
};

struct td_updater_note {
    const struct td_pod *pod; /* NULL: about all pods of the VPA */
    const struct td_vpa *vpa;
    enum td_updater_rule rule;
    bool has_group;
    struct td_group_view group; /* as it was then, its losses before this decision below */
    int64_t evicted;
    int64_t initiated;
    bool has_answer;
    struct td_update_answer answer;
    double threshold; /* --pod-update-threshold */
    td_time until;    /* when the rule no longer holds; 0: not known */
    td_str detail;    /* what the server or the group's controller said; may be empty */
};

struct td_updater_notes {
    struct td_arena *arena;
    struct td_updater_note *items;
    size_t count;
    size_t cap;
};

void td_updater_notes_add(struct td_updater_notes *notes, const struct td_updater_note *note);

/* "Evicted", "TooFewReplicas", ... */
td_str td_updater_rule_name(enum td_updater_rule rule);
bool td_updater_rule_is_action(enum td_updater_rule rule); /* something was done */

/* One sentence, without a newline: who, what, why, numbers, until when. */
void td_updater_note_write(const struct td_updater_note *note, struct td_buf *out);
struct td_json *td_updater_note_json(struct td_arena *arena, const struct td_updater_note *note);
