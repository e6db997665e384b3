/*
 * Private to the JSON modules: naming a duplicate member the way Kubernetes' strict decoder does,
 * by its path: duplicate field "spec.containers[0].name".
 */
#pragma once

#include <stdint.h>

#include "base/json/json.h"

/* After this many duplicates in one text the rest is not looked at: most are then repeats of a
 * field that is named already. */
#define TD_JSON_DUPLICATES_EXAMINED_MAX ((size_t)10 * TD_STRICT_PROBLEMS_MAX)

/* `path` holds the open collections, outermost first; each array's last item is the one that is
 * being read. A field is named once. */
void td_json_problem_duplicate(struct td_json_problems *problems,
                               const struct td_json *const path[], uint32_t depth, td_str key);
