#include "local/kinds_private.h"

const struct td_kind_rules td_kind_policy_rules[] = {{.kind = TD_STR_INIT("")}};
const size_t td_kind_policy_rule_count = 0;
