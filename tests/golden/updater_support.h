/* What the topics on controllers and the updater share: workloads, kinds and scales of a case as a
 * source, and its VPAs and pods. Everything is in the arena of the case. */
#pragma once

#include "api/vpa/vpa.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/json/json.h"
#include "decide/vertical/pod.h"
#include "decide/vertical/updater/matching.h"
#include "decide/vertical/updater/pass.h"
#include "model/owners.h"

struct golden_workloads {
    struct td_arena *arena;
    struct td_workload *workloads;
    size_t workload_count;
    const struct td_json *kinds;
    const struct td_json *scales;
};

/* From in.objects, in.kinds and in.scales. */
int golden_read_workloads(struct td_arena *arena, const struct td_json *in,
                          struct golden_workloads *ret, struct td_error *err);
struct td_workload_source golden_source(struct golden_workloads *workloads);

struct golden_vpas {
    const struct td_vpa **items;
    size_t count;
};
int golden_read_vpas(struct td_arena *arena, const struct td_json *list, struct golden_vpas *ret,
                     struct td_error *err);

struct golden_vertical_pods {
    struct td_pod *items;
    size_t count;
};
int golden_read_vertical_pods(struct td_arena *arena, const struct td_json *list,
                              struct golden_vertical_pods *ret, struct td_error *err);

struct td_vpa_gates golden_vpa_gates(const struct td_json *gates);
struct td_restriction_config golden_restriction_config(const struct td_json *config);

/* in.lastInPlaceAttempt and in.infeasibleAttempts into the state, and back. */
int golden_read_state(struct td_arena *arena, const struct td_json *in,
                      const struct golden_vertical_pods *pods, struct td_updater_state *state,
                      struct td_error *err);
struct td_json *golden_resizing_json(struct td_arena *arena, const struct td_updater_state *state);
