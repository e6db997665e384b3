#include "decide/vertical/estimator/estimator.h"

#include <stdio.h>

#define NAME_BYTES_MAX 64

static const struct td_estimator *const estimators[] = {
    &td_estimator_upstream,
    &td_estimator_adaptive,
    &td_estimator_adaptive_careful,
    &td_estimator_adaptive_frugal,
};

const struct td_estimator *td_estimator_find(td_str name)
{
    for (size_t i = 0; i < sizeof(estimators) / sizeof(estimators[0]); i++) {
        if (td_str_equal(td_str_from(estimators[i]->name), name)) {
            return estimators[i];
        }
    }
    return NULL;
}

struct td_estimator_choice td_estimator_choose(const struct td_json *annotations,
                                               const struct td_estimator *fallback)
{
    struct td_estimator_choice choice = {.estimator = fallback};
    const struct td_json *named = td_json_get(annotations, TD_ESTIMATOR_ANNOTATION);
    if (td_json_is(named, TD_JSON_TYPE_STRING)) {
        const struct td_estimator *found = td_estimator_find(named->text);
        choice.estimator = found ? found : fallback;
        choice.unknown = found ? NULL : named;
    }
    const struct td_json *risk = td_json_get(annotations, TD_RISK_ANNOTATION);
    if (!td_json_is(risk, TD_JSON_TYPE_STRING) || td_str_equal(risk->text, TD_STR("balanced"))) {
        return choice;
    }
    /* "adaptive" under risk "careful" is registered as "adaptive-careful". */
    char name[NAME_BYTES_MAX];
    int len =
        snprintf(name, sizeof(name), "%s-%.*s", choice.estimator->name, TD_STR_ARG(risk->text));
    const struct td_estimator *found =
        len > 0 && (size_t)len < sizeof(name) ? td_estimator_find(td_str_from(name)) : NULL;
    if (found) {
        choice.estimator = found;
    } else if (!choice.unknown) {
        choice.unknown = risk;
    }
    return choice;
}
