/* The two halves of a pass: choosing candidates (pass_select.c) and acting on them (pass.c). */
#pragma once

#include "decide/vertical/updater/pass.h"

/* Opens the job: restriction, candidates in order. */
void td_updater_select(struct td_updater_pass *pass, struct td_updater_job *job);

/* A note about a pod of the job (NULL: all), with the numbers of its group. */
void td_updater_note(struct td_updater_pass *pass, const struct td_updater_job *job,
                     const struct td_pod *pod, const struct td_updater_candidate *candidate,
                     enum td_updater_rule rule, td_time until, td_str detail);

void td_updater_event(struct td_updater_pass *pass, const struct td_pod *pod,
                      const struct td_vpa *vpa, td_str reason, td_str message);

/* "resized in place: cpu 600m → 2.1": the deed, and what the recommendation changes of the pod's
 * requests; in the arena. */
td_str td_updater_words(struct td_arena *arena, const char *deed, const struct td_pod *pod,
                        const struct td_recommendation *recommendation);

/* The rule by which a group keeps a pod from being touched at all; BUDGET when it does not. */
enum td_updater_rule td_updater_group_rule(const struct td_updater_job *job,
                                           const struct td_pod *pod, td_str *ret_detail);

/* Would the pod's replacement be of the same VPA? True where the template of its owner is not
 * known. */
bool td_updater_is_reselected(const struct td_updater_pass *pass, const struct td_updater_job *job,
                              const struct td_pod *pod);
