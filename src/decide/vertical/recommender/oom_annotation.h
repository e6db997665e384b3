/*
 * OOM knowledge as an annotation of a container's checkpoint object. Upstream's checkpoint leaves
 * out the memory window in progress, and with it the OOM that just happened; upstream ignores and
 * keeps annotations, so ours survives both kinds of restart. One small JSON object, integers and
 * times only. Pure.
 */
#pragma once

#include "base/str.h"
#include "decide/vertical/recommender/aggregate.h"

struct td_error;

#define TD_OOM_ANNOTATION "tandem.dev/oom"

td_str td_oom_annotation_encode(struct td_arena *arena, const struct td_oom_knowledge *oom);

/* Refuses what encode does not write, naming the member. */
int td_oom_annotation_decode(td_str text, struct td_oom_knowledge *ret, struct td_error *err);
