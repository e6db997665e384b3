/*
 * The actuator's look ahead: what is read from the API server before an eviction, to judge the pod
 * that would replace the evicted one (decide/vertical/updater/replacement.h): the owner of the pod,
 * the ResourceQuotas of the namespace, and the events about the owner, which tell of replacements
 * that were refused. It is read for the few pods to be evicted, so no informer keeps whole
 * templates. Without the right to list quotas or events these are left out; an owner that cannot be
 * read means no eviction.
 *
 * The caller sends the calls; the facts are about one owner at a time. One thread.
 */
#pragma once

#include <stdbool.h>

#include "base/arena.h"
#include "base/str.h"
#include "control/common.h"
#include "decide/vertical/updater/replacement.h"

struct td_client_reply;
struct td_client_request;
struct td_controller;

enum td_replacement_part {
    TD_REPLACEMENT_OWNER,
    TD_REPLACEMENT_QUOTAS,
    TD_REPLACEMENT_EVENTS,
    TD_REPLACEMENT_PARTS,
};

struct td_replacement_facts {
    struct td_arena arena; /* of what was read */
    td_str uid;            /* of the owner that it is about, owned; empty: none */
    const struct td_json *read[TD_REPLACEMENT_PARTS];
    bool is_read[TD_REPLACEMENT_PARTS];
    td_str failure; /* why the owner cannot be read, in the arena; empty: it could */
    enum td_replacement_part reading;
};

void td_replacement_facts_init(struct td_replacement_facts *facts);
void td_replacement_facts_done(struct td_replacement_facts *facts);

/* What was read is old; the owner stays. */
void td_replacement_facts_reset(struct td_replacement_facts *facts);

/* Turns to the owner of a pod; what is about another one is forgotten. False: the pod has no owner
 * whose template is known, and cannot be judged. */
bool td_replacement_facts_turn(struct td_replacement_facts *facts, const struct td_pod *pod,
                               struct td_controller *ret_owner);

enum td_replacement_verdict {
    TD_REPLACEMENT_FINE,
    TD_REPLACEMENT_READING, /* something is to be read first */
    TD_REPLACEMENT_REFUSED, /* the replacement would be refused or of no use */
    TD_REPLACEMENT_UNKNOWN, /* the owner cannot be read */
};

/* May the pod of `input` be evicted, after _turn to its owner? READING: *ret_request is to be sent,
 * its texts are in the arena, and the reply is given to _take. REFUSED and UNKNOWN: *ret_why says
 * why. `input` says which pod and what admission would write; what was read and the LimitRanges of
 * the namespace are filled in. */
enum td_replacement_verdict
td_replacement_facts_judge(struct td_replacement_facts *facts, struct td_arena *arena,
                           const struct td_control *control, const struct td_controller *owner,
                           struct td_replacement_input *input,
                           struct td_client_request *ret_request, td_str *ret_why);
void td_replacement_facts_take(struct td_replacement_facts *facts,
                               const struct td_client_reply *reply);
