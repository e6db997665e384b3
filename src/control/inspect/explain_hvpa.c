/* An Hvpa: the account of its decision, with the words of both deciders behind it. */
#include "api/hvpa/hvpa.h"
#include "control/inspect/explain_private.h"
#include "decide/tandem/account/account.h"
#include "decide/vertical/recommender/recommender.h"

/* How each row's target came about. */
static const td_str *hvpa_whys(struct td_explain *explain, const struct td_hvpa_reported *reported)
{
    struct td_arena *arena = &explain->arena;
    const struct td_tandem_input *in = reported->input;
    struct td_vpa_status status;
    td_str *whys = td_arena_array(arena, td_str, in->row_count + 1);
    if (td_recommend_loop_hvpa(explain->snapshot->recommend, arena, reported->hvpa, &status,
                               NULL) != TD_OK) {
        return NULL;
    }
    for (size_t i = 0; i < in->row_count; i++) {
        bool is_cpu = in->rows[i].resource == TD_HVPA_CPU;
        whys[i] = TD_STR_EMPTY;
        for (size_t j = 0; j < status.recommendation.container_count && status.accounts; j++) {
            const struct td_account *account = &status.accounts[j];
            if (td_str_equal(account->container, in->rows[i].container)) {
                td_auto_buf text = td_buf_capped(TD_OBJECT_BYTES_MAX);
                td_account_write_target(is_cpu ? &account->cpu : &account->memory, is_cpu, &text);
                whys[i] = td_arena_copy_str(arena, td_buf_str(&text));
            }
        }
    }
    return whys;
}

static void hvpa_reported(void *context, const struct td_hvpa_reported *reported)
{
    struct td_explain *explain = context;
    struct td_arena *arena = &explain->arena;
    if (reported->code == TD_NOT_FOUND) {
        explain_fail(explain, TD_NOT_FOUND, "not found");
        return;
    }
    if (reported->code != TD_OK) {
        explain_title(explain, TD_STR("Hvpa"), TD_STR(TD_HVPA_API_VERSION), TD_STR_EMPTY);
        explain_say(explain, "decides",
                    td_arena_format(arena, "nothing, %.*s: %.*s", TD_STR_ARG(reported->reason),
                                    TD_STR_ARG(reported->message)));
        explain_say(explain, "next",
                    TD_STR("correct the object or its target; tandem validate checks manifests"));
        explain_end(explain);
        return;
    }
    const struct td_tandem_account account = {
        .in = reported->input,
        .decision = reported->decision,
        .horizontal_why = reported->status->horizontal_reason,
        .vertical_why = hvpa_whys(explain, reported),
    };
    /* The account has a title of its own. */
    td_tandem_account_write(arena, &account, TD_TANDEM_ACCOUNT_TEXT, &explain->text);
    size_t said = explain->text.len;
    explain_title(explain, TD_STR("Hvpa"), TD_STR(TD_HVPA_API_VERSION), TD_STR_EMPTY);
    explain->text.len = said;
    td_json_set(arena, explain->json, TD_STR("account"),
                td_json_copy(arena, td_tandem_account_json(arena, &account), true));
    if (reported->hvpa->paused) {
        explain_say(explain, "paused", TD_STR("spec.paused: decisions are not applied"));
    }
    explain_conditions(explain, reported->status->conditions, reported->status->condition_count);
    explain_problems(explain, true);
    explain_end(explain);
}

void explain_hvpa(struct td_explain *explain)
{
    td_hvpa_loop_explain(explain->snapshot->hvpa, explain->subject.namespace, explain->subject.name,
                         hvpa_reported, explain);
}
