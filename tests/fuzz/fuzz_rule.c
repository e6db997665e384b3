/* Rules of --fail-if from any bytes: what is refused says why in one line and leaves the output
 * alone; what is read has a finite bound and a workload within the text, and can be judged. */
#include <math.h>
#include <stdint.h>

#include "base/assert.h"
#include "base/error.h"
#include "base/limits.h"
#include "sim/record/rules.h"
#include "sim/world/world.h"

#define ARENA_BYTES ((size_t)16 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_within(td_str part, td_str text)
{
    return part.len == 0 || (part.ptr >= text.ptr && part.ptr + part.len <= text.ptr + text.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    td_auto_arena arena = td_arena_capped(ARENA_BYTES);
    td_str text = {.ptr = (const char *)data, .len = size};
    struct td_rule rule = {.bound = -1};
    struct td_error err = TD_ERROR_INIT;
    if (td_rule_parse(&arena, text, &rule, &err) != TD_OK) {
        td_assert(err.message[0] != '\0');
        td_assert(rule.bound == -1);
        td_assert(!rule.metric);
        return 0;
    }
    td_assert(isfinite(rule.bound));
    td_assert(rule.bound >= 0);
    td_assert(is_within(rule.text, text));
    td_assert(is_within(rule.workload, text));
    td_assert(is_within(rule.ns, rule.workload));
    td_assert(is_within(rule.name, rule.workload));
    td_assert(is_within(rule.role, rule.workload));
    td_assert(rule.workload.len == 0 || rule.name.len > 0);
    const struct td_world_view view = {.row_count = 0};
    struct td_rule_verdict verdict = td_rule_judge(&rule, &view, NULL);
    td_assert(verdict.has_value || verdict.is_broken);
    td_assert(td_rule_value(&arena, &rule, &verdict).len > 0);
    return 0;
}
