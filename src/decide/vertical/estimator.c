#include "decide/vertical/estimator.h"

static const struct td_estimator *const estimators[] = {
    &td_estimator_upstream,
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
