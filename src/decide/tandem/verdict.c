/*
 * A verdict of the HPA counts when its metrics were read, or when the replicas are outside of its
 * range; one of the VPA when no condition speaks against it.
 */
#include "decide/tandem/verdict.h"

#include "base/limits.h"
#include "decide/tandem/requests.h"

/* ---- Horizontal ---- */

static td_str horizontal_reason(struct td_arena *arena, const struct td_hpa_pass *pass)
{
    switch (pass->path) {
    case TD_HPA_PATH_DISABLED:
        return TD_STR("the target has zero replicas");
    case TD_HPA_PATH_ABOVE_MAX:
        return TD_STR("replicas are above maxReplicas");
    case TD_HPA_PATH_BELOW_MIN:
        return TD_STR("replicas are below minReplicas");
    default:
        break;
    }
    if (pass->is_failed) {
        return td_arena_copy_str(arena, pass->error);
    }
    int32_t current = pass->scale.spec_replicas;
    const char *side = pass->proposed > current   ? "above target"
                       : pass->proposed < current ? "below target"
                                                  : "at target";
    return pass->evaluation.metric.len > 0
               ? td_arena_format(arena, "%.*s %s", TD_STR_ARG(pass->evaluation.metric), side)
               : TD_STR("no metric proposes another replica count");
}

struct td_tandem_horizontal td_tandem_horizontal_of(struct td_arena *arena,
                                                    const struct td_hpa_pass *pass)
{
    bool is_valid = pass->path == TD_HPA_PATH_METRICS ? pass->is_normalized && !pass->is_failed
                                                      : pass->path == TD_HPA_PATH_ABOVE_MAX ||
                                                            pass->path == TD_HPA_PATH_BELOW_MIN;
    return (struct td_tandem_horizontal){
        .is_valid = is_valid,
        .desired = is_valid ? pass->desired : pass->scale.spec_replicas,
        .reason = horizontal_reason(arena, pass),
    };
}

/* ---- Vertical ---- */

/* All conditions are looked at, in whatever order they are (hvpa.md 2.2). */
td_str td_tandem_vertical_problem(const struct td_recommendation *recommendation,
                                  const struct td_vpa_condition *conditions, size_t count)
{
    static const td_str spoilers[] = {
        TD_STR_INIT("LowConfidence"), TD_STR_INIT("ConfigUnsupported"),
        TD_STR_INIT("ConfigDeprecated"), TD_STR_INIT("NoPodsMatched")};
    for (size_t i = 0; i < TD_COUNT(spoilers); i++) {
        if (td_vpa_condition_holds(conditions, count, spoilers[i])) {
            return spoilers[i];
        }
    }
    bool is_provided = recommendation->container_count > 0 &&
                       td_vpa_condition_holds(conditions, count, TD_STR("RecommendationProvided"));
    return is_provided ? TD_STR_EMPTY : TD_STR("NoRecommendation");
}

/* ---- Events ---- */

/* What was done, then why: the reason, the mode and its stage. */
static td_str event_text(struct td_arena *arena, td_str done, const struct td_tandem_input *in,
                         const struct td_tandem_decision *decision)
{
    td_str stage =
        decision->blend.has_stage ? td_tandem_stage_name(decision->blend.stage) : TD_STR_EMPTY;
    return td_arena_format(arena, "%.*s; %.*s, %.*s%s%.*s", TD_STR_ARG(done),
                           TD_STR_ARG(td_tandem_reason_name(decision->reason)),
                           TD_STR_ARG(td_hvpa_mode_name(in->hvpa->mode)), stage.len > 0 ? ", " : "",
                           TD_STR_ARG(stage));
}

td_str td_tandem_scaled_text(struct td_arena *arena, const struct td_tandem_input *in,
                             const struct td_tandem_decision *decision)
{
    return event_text(arena,
                      td_arena_format(arena, "%d -> %d replica%s", in->replicas, decision->replicas,
                                      TD_PLURAL(decision->replicas)),
                      in, decision);
}

/* "web cpu 500m -> 667m, ...": what of the requests changes. */
static void write_resizes(struct td_arena *arena, const struct td_tandem_input *in,
                          const struct td_tandem_decision *decision, const char *arrow,
                          struct td_buf *out)
{
    for (size_t i = 0; i < in->row_count; i++) {
        const struct td_tandem_row *row = &in->rows[i];
        if (decision->outcomes[i].request == row->request) {
            continue;
        }
        struct td_quantity from = td_tandem_quantity_of(row->resource, row->request);
        struct td_quantity to = td_tandem_quantity_of(row->resource, decision->outcomes[i].request);
        td_str old = td_quantity_text(arena, &from);
        td_str new = td_quantity_text(arena, &to);
        (void)td_buf_append_format(out, "%s%.*s %.*s %.*s %s %.*s", out->len > 0 ? ", " : "",
                                   TD_STR_ARG(row->container),
                                   TD_STR_ARG(td_hvpa_resource_name(row->resource)),
                                   TD_STR_ARG(old), arrow, TD_STR_ARG(new));
    }
}

td_str td_tandem_resized_text(struct td_arena *arena, const struct td_tandem_input *in,
                              const struct td_tandem_decision *decision)
{
    td_auto_buf text = td_buf_capped(TD_EVENT_MESSAGE_BYTES_MAX);
    write_resizes(arena, in, decision, "->", &text);
    return event_text(arena, td_buf_str(&text), in, decision);
}

td_str td_tandem_decision_text(struct td_arena *arena, const struct td_tandem_input *in,
                               const struct td_tandem_decision *decision)
{
    td_auto_buf text = td_buf_capped(TD_EVENT_MESSAGE_BYTES_MAX);
    if (decision->replicas != in->replicas) {
        (void)td_buf_append_format(&text, "%d → %d replica%s", in->replicas, decision->replicas,
                                   TD_PLURAL(decision->replicas));
    }
    write_resizes(arena, in, decision, "→", &text);
    return td_arena_format(arena, "%.*s: %.*s", TD_STR_ARG(td_buf_str(&text)),
                           TD_STR_ARG(td_tandem_reason_name(decision->reason)));
}
