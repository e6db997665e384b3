/*
 * The two JSON patches of an in-place update (vpa.md 3.5, 3.7): one to the pod's resize
 * subresource, one to its annotations afterwards, since resize ignores those. The same call takes
 * back expired startup boosts. Pure; results are in the arena.
 */
#pragma once

#include <stdbool.h>

#include "api/vpa/vpa.h"
#include "base/arena.h"
#include "base/json/json.h"
#include "base/os/clock.h"
#include "decide/vertical/patch/changes.h"
#include "decide/vertical/patch/podstanza.h"

struct td_error;

struct td_resize_input {
    const struct td_pod *pod;
    const struct td_vpa *vpa;
    const struct td_limit_ranges *limits; /* of the pod's namespace */
    struct td_vpa_gates gates;
    const struct td_resource_list *largest_node; /* allocatable; NULL: --cap-to-node is off */
    td_time now;
    bool is_tracked; /* by the track estimator: which request was changed when is written too */
};

/* What upstream says when there is nothing to resize. */
#define TD_RESIZE_NOTHING "no resource patches were calculated to apply"

struct td_resize_patch {
    struct td_json *resize; /* to the resize subresource */
    struct td_json *pod;    /* to the pod */
    bool has_change; /* some amount is not what the pod's spec has already: upstream's updater
                        sends the patch all the same, ours does not */
    struct td_changes changes;
    bool is_pod_level;
    struct td_stanza stanza;
};

/* TD_NOT_FOUND when there is nothing to resize (TD_RESIZE_NOTHING; what led to it is in *ret all
 * the same), TD_INVALID for a boost annotation that cannot be read. */
int td_resize_patch(struct td_arena *arena, const struct td_resize_input *input,
                    struct td_resize_patch *ret, struct td_error *err);
