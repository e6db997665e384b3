/* Private to the account: values and rules in words. */
#pragma once

#include "decide/tandem/account/account.h"

/* Short, for reading, and exact, for programs. */
td_str tandem_amount_text(struct td_arena *arena, enum td_hvpa_resource resource, int64_t amount);
td_str tandem_amount_exact(struct td_arena *arena, enum td_hvpa_resource resource, int64_t amount);
td_str tandem_number_text(struct td_arena *arena, double number);

/* "cpu", or "app cpu" where there are several containers. */
td_str tandem_row_name(struct td_arena *arena, const struct td_tandem_input *in, size_t index);

/* "09:42:15", or with its date when that is not today. */
td_str tandem_time_text(struct td_arena *arena, struct td_instant now, struct td_instant at);

/* "1m30s" */
td_str tandem_duration_text(struct td_arena *arena, td_duration duration);

/* What a reason and a block mean, and how a block is lifted. */
const char *tandem_reason_words(enum td_tandem_reason reason);
const char *tandem_block_words(enum td_tandem_block block);

/* What lets a held wish through, or an empty text when only time does. */
td_str tandem_block_remedy(struct td_arena *arena, enum td_tandem_block block, const char *axis,
                           bool is_up);
