/* Conditions of autoscalers' statuses: which are problems, and the next step. */
#pragma once

#include <stdbool.h>

#include "api/vpa/vpa.h"
#include "base/arena.h"
#include "base/str.h"

bool td_condition_is_problem(const struct td_vpa_condition *condition);
/* What to do about a condition; empty: it says so itself, or there is nothing to do. */
td_str td_condition_next_step(struct td_arena *arena, td_str namespace, td_str type);
