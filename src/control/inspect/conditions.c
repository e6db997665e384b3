/*
 * Conditions of autoscalers' statuses: which of them are problems, and what to do about each.
 */
#include "control/inspect/conditions.h"

#include "api/gates.h"
#include "base/str.h"
#include "decide/vertical/estimator/track.h"

td_str td_condition_next_step(struct td_arena *arena, td_str namespace, td_str type)
{
    static const struct {
        const char *type;
        const char *step;
        const char *after; /* the namespace of a command; NULL: the step has none */
    } steps[] = {
        {"NoPodsMatched", "compare targetRef and spec.selector with kubectl get pods --show-labels",
         ""},
        {"ConfigUnsupported", "point targetRef at an existing topmost controller", NULL},
        {"ConflictingSelector", "make the selectors disjoint; tandem validate checks files", NULL},
        {"EstimatorUnknown", "correct the annotation; tandem validate checks files", NULL},
        {"EvictionBlocked", "pods keep their size until the reason is resolved", NULL},
        {"WebhookNotMutating", "see the log of the admission controller", NULL},
        {"MetricsStale", "run kubectl top pods", "; check metrics-server"},
        {"LowConfidence", "wait for a day of samples", NULL},
        {TD_GATE_OFF, "enable the gate with --feature-gates, or remove the field", NULL},
        {"RecommendationProvided", "wait for samples; the recommender reads metrics every minute",
         NULL},
        {"Ready", "see the reason", NULL},
        {"HorizontalReady", "run kubectl top pods", "; check that the containers have requests"},
        {"VerticalReady", "wait for samples; the recommender reads metrics every minute", NULL},
    };
    for (size_t i = 0; i < TD_COUNT(steps); i++) {
        if (!td_str_equal(type, td_str_from(steps[i].type))) {
            continue;
        }
        return steps[i].after ? td_arena_format(arena, "%s -n %.*s%s", steps[i].step,
                                                TD_STR_ARG(namespace), steps[i].after)
                              : td_str_from(steps[i].step);
    }
    return TD_STR_EMPTY;
}

/* Of most a True is a problem, of these a False. */
bool td_condition_is_problem(const struct td_vpa_condition *condition)
{
    bool is_true = td_str_equal(condition->status, TD_STR("True"));
    bool is_good = td_str_equal(condition->type, TD_STR("RecommendationProvided")) ||
                   td_str_equal(condition->type, TD_ADAPTIVE_CONDITION) ||
                   td_str_equal(condition->type, TD_TRACK_CONDITION) ||
                   td_str_equal(condition->type, TD_STR("Ready")) ||
                   td_str_ends_with(condition->type, TD_STR("Ready"));
    return is_good ? !is_true : is_true;
}
