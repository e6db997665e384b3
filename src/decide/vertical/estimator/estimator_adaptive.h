/* What estimators that share the adaptive state say of their answers. */
#pragma once

#include "decide/vertical/estimator/adaptive.h"
#include "decide/vertical/estimator/estimator.h"

/* The parameters with the user's minima where those of the pod are set, else with their own. */
struct td_adaptive_params td_adaptive_minima(const struct td_estimator_input *input,
                                             const struct td_adaptive_params *params);

/* Both resources by the adaptive estimator (a NULL state is empty), or memory alone. */
void td_adaptive_estimate(const struct td_estimator_input *input, const struct td_adaptive *state,
                          enum td_adaptive_risk risk, struct td_estimate *ret,
                          struct td_account *account);
void td_adaptive_estimate_memory(const struct td_estimator_input *input,
                                 const struct td_adaptive *state,
                                 const struct td_adaptive_params *params, struct td_estimate *ret,
                                 struct td_account *account);

/* Parts of a resource's account: one bound; word and sentence for what decided. */
struct td_bound_account td_adaptive_bound(int64_t base, int64_t estimate, int64_t target,
                                          bool is_floor);
void td_adaptive_tell(struct td_resource_account *account, const char *reason,
                      const struct td_buf *detail);

/* The adaptive state's part of a checkpoint's annotations. */
void td_adaptive_store(struct td_arena *arena, const struct td_adaptive *state,
                       struct td_json *annotations);
int td_adaptive_restore(struct td_adaptive *state, const struct td_json *annotations,
                        struct td_error *err);
