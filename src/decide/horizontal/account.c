/*
 * The account of a pass that `tandem explain` prints: what each metric asked for, what
 * stabilisation and limits made of it, what holds it and until when, and what would change it. One
 * tree, whose sentences serve the text form and the data form alike.
 */
#include "decide/horizontal/account.h"

#include <math.h>

#include "api/hpa/hpa_source.h"
#include "decide/horizontal/bounds.h"

/* Sentences are built once, as strings of the tree; the text form lays them out. */
struct account {
    struct td_arena *arena;
    const struct td_hpa_pass *pass;
    const struct td_hpa_account_selection *selection;
    struct td_json *wanted;
    struct td_json *did;
    struct td_json *held;
    struct td_json *next;
    struct td_json *changes;
};

static void say(struct account *account, struct td_json *list, td_str sentence)
{
    td_json_append(list, td_json_new_string(account->arena, sentence));
}

static td_str time_text(struct td_arena *arena, td_time time)
{
    return td_time_text(arena, td_time_to_instant(time), 0);
}

/* For programs: exact. */
static td_str amount_exact(const struct account *account, const struct td_hpa_metric *metric,
                           const struct td_hpa_calculation *calculation, int64_t amount)
{
    if (calculation->has_utilization) {
        return td_arena_format(account->arena, "%lld%%", (long long)amount);
    }
    return td_hpa_metric_amount(account->arena, metric, amount);
}

/* For reading: a few digits. */
static td_str amount_text(const struct account *account, const struct td_hpa_metric *metric,
                          const struct td_hpa_calculation *calculation, int64_t amount)
{
    if (calculation->has_utilization) {
        return amount_exact(account, metric, calculation, amount);
    }
    bool is_bytes = td_hpa_metric_is_resource(metric) && !td_str_equal(metric->name, TD_STR("cpu"));
    struct td_quantity quantity =
        td_quantity_new_milli(amount, is_bytes ? TD_QUANTITY_BINARY_SI : TD_QUANTITY_DECIMAL_SI);
    return td_quantity_short(account->arena, &quantity, is_bytes);
}

static int64_t usage_of(const struct td_hpa_calculation *calculation)
{
    return calculation->has_utilization ? calculation->utilization : calculation->usage_milli;
}

/* " (1 starting, 2 without a sample, 3 that the target does not own, not counted)", or nothing */
static td_str others_text(const struct account *account,
                          const struct td_hpa_calculation *calculation)
{
    td_auto_buf text = td_buf_capped(4096);
    for (size_t why = TD_HPA_WHY_COUNTED + 1; why < TD_HPA_WHY_COUNT; why++) {
        if (calculation->why_count[why] > 0) {
            (void)td_buf_append_format(&text, "%s%zu %.*s", text.len > 0 ? ", " : "",
                                       calculation->why_count[why],
                                       TD_STR_ARG(td_hpa_why_name((enum td_hpa_why)why)));
        }
    }
    if (calculation->extra_count > 0) {
        (void)td_buf_append_format(&text, "%s%zu sample%s without a matching pod",
                                   text.len > 0 ? ", " : "", calculation->extra_count,
                                   TD_PLURAL(calculation->extra_count));
    }
    if (calculation->unowned_count > 0) {
        (void)td_buf_append_format(&text, "%s%zu that the target does not own, not counted",
                                   text.len > 0 ? ", " : "", calculation->unowned_count);
    }
    if (text.len == 0) {
        return TD_STR_EMPTY;
    }
    return td_arena_format(account->arena, " (%.*s)", TD_STR_ARG(td_buf_str(&text)));
}

static const char *rule_words(const struct td_hpa_calculation *calculation)
{
    switch (calculation->rule) {
    case TD_HPA_RULE_TOLERANCE:
        return "within the tolerance";
    case TD_HPA_RULE_SIDES:
        return "pods without a sample could reverse the direction, so replicas stay";
    case TD_HPA_RULE_DIRECTION:
        return "the pod count would reverse the direction, so replicas stay";
    case TD_HPA_RULE_FROM_ZERO:
        return "from zero: value divided by target, rounded up";
    case TD_HPA_RULE_TOTAL:
        return "value divided by target, rounded up";
    case TD_HPA_RULE_RATIO:
        break;
    }
    return NULL;
}

static td_str arithmetic_text(const struct account *account,
                              const struct td_hpa_calculation *calculation)
{
    const char *words = rule_words(calculation);
    if (words) {
        return td_str_from(words);
    }
    double ratio = calculation->is_filled_in ? calculation->ratio_again : calculation->ratio;
    td_auto_buf times = td_buf_capped(64);
    (void)td_buf_append_number(&times, ratio, 3);
    return td_arena_format(account->arena, "%zu x %.*s rounded up%s", calculation->factor,
                           TD_STR_ARG(td_buf_str(&times)),
                           calculation->is_filled_in ? ", pods without a sample filled in" : "");
}

static void say_metric(struct account *account, size_t index)
{
    const struct td_hpa_metric *metric = &account->pass->hpa->metrics[index];
    const struct td_hpa_metric_result *result = &account->pass->evaluation.results[index];
    const struct td_hpa_calculation *calculation = &result->calculation;
    if (result->is_failed) {
        say(account, account->wanted,
            td_arena_format(account->arena, "nothing: %.*s", TD_STR_ARG(result->error)));
        return;
    }
    td_str usage = amount_text(account, metric, calculation, usage_of(calculation));
    td_str target = amount_text(account, metric, calculation, calculation->target_milli);
    bool is_per_pod = result->is_average && td_hpa_metric_is_of_pods(metric);
    td_str over = is_per_pod
                      ? td_arena_format(account->arena, " over %zu ready pod%s%.*s",
                                        calculation->why_count[TD_HPA_WHY_COUNTED],
                                        TD_PLURAL(calculation->why_count[TD_HPA_WHY_COUNTED]),
                                        TD_STR_ARG(others_text(account, calculation)))
                      : others_text(account, calculation);
    say(account, account->wanted,
        td_arena_format(account->arena, "%d replica%s: %.*s %.*s of target %.*s%.*s; %.*s",
                        calculation->replicas, TD_PLURAL(calculation->replicas),
                        TD_STR_ARG(result->description), TD_STR_ARG(usage), TD_STR_ARG(target),
                        TD_STR_ARG(over), TD_STR_ARG(arithmetic_text(account, calculation))));
}

static struct td_json *pods_json(struct td_arena *arena,
                                 const struct td_hpa_calculation *calculation)
{
    struct td_json *pods = td_json_new_object(arena);
    for (size_t why = 0; why < TD_HPA_WHY_COUNT; why++) {
        if (calculation->why_count[why] > 0) {
            td_json_set_int64(arena, pods, td_hpa_why_name((enum td_hpa_why)why),
                              (int64_t)calculation->why_count[why]);
        }
    }
    if (calculation->unowned_count > 0) {
        td_json_set_int64(arena, pods, TD_STR("not owned"), (int64_t)calculation->unowned_count);
    }
    return pods;
}

static struct td_hpa_bounds bounds_of(const struct account *account, size_t index)
{
    const struct td_hpa_pass *pass = account->pass;
    return td_hpa_bounds_of(pass->hpa, &pass->evaluation.results[index].calculation.basis,
                            pass->scale.spec_replicas);
}

static struct td_json *metric_json(const struct account *account, size_t index)
{
    struct td_arena *arena = account->arena;
    const struct td_hpa_metric *metric = &account->pass->hpa->metrics[index];
    const struct td_hpa_metric_result *result = &account->pass->evaluation.results[index];
    const struct td_hpa_calculation *calculation = &result->calculation;
    struct td_json *object = td_json_new_object(arena);
    td_json_set_str(arena, object, TD_STR("type"), metric->type_text);
    td_json_set_str(arena, object, TD_STR("name"), metric->name);
    if (result->is_failed) {
        td_json_set_str(arena, object, TD_STR("error"), result->error);
        return object;
    }
    td_json_set_str(arena, object, TD_STR("description"), result->description);
    td_json_set_int64(arena, object, TD_STR("replicas"), calculation->replicas);
    td_json_set_str(arena, object, TD_STR("usage"),
                    amount_exact(account, metric, calculation, usage_of(calculation)));
    td_json_set_str(arena, object, TD_STR("target"),
                    amount_exact(account, metric, calculation, calculation->target_milli));
    struct td_hpa_bounds bounds = bounds_of(account, index);
    if (bounds.can_scale_out) {
        td_json_set_str(arena, object, TD_STR("scalesOutAbove"),
                        amount_exact(account, metric, calculation, bounds.out_above));
    }
    if (bounds.can_scale_in) {
        td_json_set_str(arena, object, TD_STR("scalesInUpTo"),
                        amount_exact(account, metric, calculation, bounds.in_up_to));
    }
    td_json_set_double(arena, object, TD_STR("ratio"), calculation->ratio);
    if (calculation->is_filled_in) {
        td_json_set_double(arena, object, TD_STR("ratioFilledIn"), calculation->ratio_again);
    }
    td_json_set_int64(arena, object, TD_STR("factor"), (int64_t)calculation->factor);
    td_json_set_str(arena, object, TD_STR("arithmetic"), arithmetic_text(account, calculation));
    td_json_set(arena, object, TD_STR("pods"), pods_json(arena, calculation));
    return object;
}

/* Above which value does each metric scale out? */
static void say_out(struct account *account)
{
    const struct td_hpa_pass *pass = account->pass;
    for (size_t i = 0; i < pass->evaluation.result_count; i++) {
        const struct td_hpa_metric_result *result = &pass->evaluation.results[i];
        struct td_hpa_bounds bounds = {.can_scale_out = false};
        if (!result->is_failed) {
            bounds = bounds_of(account, i);
        }
        if (bounds.can_scale_out) {
            say(account, account->changes,
                td_arena_format(account->arena, "scales out: %.*s above %.*s",
                                TD_STR_ARG(result->description),
                                TD_STR_ARG(amount_text(account, &pass->hpa->metrics[i],
                                                       &result->calculation, bounds.out_above))));
        }
    }
}

/* Down to which values must all metrics fall for it to scale in? A metric without such a value,
 * or a failed one, keeps the replicas. */
static void say_in(struct account *account)
{
    const struct td_hpa_pass *pass = account->pass;
    td_auto_buf text = td_buf_capped(16384);
    for (size_t i = 0; i < pass->evaluation.result_count; i++) {
        const struct td_hpa_metric_result *result = &pass->evaluation.results[i];
        struct td_hpa_bounds bounds = {.can_scale_in = false};
        if (!result->is_failed) {
            bounds = bounds_of(account, i);
        }
        if (!bounds.can_scale_in) {
            return;
        }
        (void)td_buf_append_format(&text, "%s%.*s at or below %.*s", i > 0 ? " and " : "",
                                   TD_STR_ARG(result->description),
                                   TD_STR_ARG(amount_text(account, &pass->hpa->metrics[i],
                                                          &result->calculation, bounds.in_up_to)));
    }
    say(account, account->changes,
        td_arena_format(account->arena, "scales in: %.*s", TD_STR_ARG(td_buf_str(&text))));
}

/* What keeps the count from moving in a direction whatever the metrics say. */
static void say_stop(struct account *account, const char *direction, const char *bound,
                     int32_t replicas, bool is_at_bound, const struct td_hpa_rules *rules)
{
    if (account->pass->hpa->has_behavior && rules->select == TD_HPA_SELECT_DISABLED) {
        say(account, account->changes,
            td_arena_format(account->arena, "%s: not while its selectPolicy is Disabled",
                            direction));
    } else if (is_at_bound) {
        say(account, account->changes,
            td_arena_format(account->arena, "%s: %s %d", direction, bound, replicas));
    }
}

/* At which values would the count begin to move, and what keeps it from moving at any? */
static void say_thresholds(struct account *account)
{
    const struct td_hpa_pass *pass = account->pass;
    const struct td_hpa *hpa = pass->hpa;
    int32_t current = pass->scale.spec_replicas;
    if (!pass->is_evaluated || pass->evaluation.winner == SIZE_MAX) {
        return;
    }
    say_out(account);
    say_in(account);
    say_stop(account, "scales out", "not beyond maxReplicas", hpa->max_replicas,
             current >= hpa->max_replicas, &hpa->scale_up);
    say_stop(account, "scales in", "not below minReplicas", hpa->min_replicas,
             current <= hpa->min_replicas, &hpa->scale_down);
}

static void say_stabilized(struct account *account)
{
    const struct td_hpa_stabilized *stabilized = &account->pass->normalized.stabilized;
    if (!stabilized->is_held) {
        return;
    }
    say(account, account->held,
        td_arena_format(account->arena, "%d instead of %d: %.*s", stabilized->replicas,
                        account->pass->proposed, TD_STR_ARG(stabilized->message)));
    if (stabilized->held_until != TD_TIME_NONE) {
        say(account, account->next,
            td_arena_format(account->arena, "stabilisation holds until %.*s",
                            TD_STR_ARG(time_text(account->arena, stabilized->held_until))));
    }
}

static td_str policy_text(const struct account *account, bool is_up, size_t index)
{
    const struct td_hpa *hpa = account->pass->hpa;
    const struct td_hpa_rules *rules = is_up ? &hpa->scale_up : &hpa->scale_down;
    if (rules->select == TD_HPA_SELECT_DISABLED) {
        return TD_STR(", selectPolicy Disabled");
    }
    if (index >= rules->policy_count) {
        return TD_STR_EMPTY;
    }
    const struct td_hpa_policy *policy = &rules->policies[index];
    return td_arena_format(account->arena, ", policy %s %d in %d s",
                           policy->type == TD_HPA_POLICY_PODS ? "Pods" : "Percent", policy->value,
                           policy->period_seconds);
}

static void say_limited(struct account *account)
{
    const struct td_hpa_pass *pass = account->pass;
    const struct td_hpa_limited *limited = &pass->normalized.limited;
    int32_t wanted = pass->normalized.stabilized.replicas;
    if (!limited->is_limited) {
        return;
    }
    bool is_rate = limited->has_limit && (td_str_equal(limited->reason, TD_STR("ScaleUpLimit")) ||
                                          td_str_equal(limited->reason, TD_STR("ScaleDownLimit")));
    td_str policy =
        is_rate ? policy_text(account, wanted > pass->scale.spec_replicas, limited->limit.policy)
                : TD_STR_EMPTY;
    say(account, account->held,
        td_arena_format(account->arena, "%d instead of %d: %.*s%.*s", limited->replicas, wanted,
                        TD_STR_ARG(limited->message), TD_STR_ARG(policy)));
    if (is_rate && limited->limit.loosens_at != TD_TIME_NONE) {
        say(account, account->next,
            td_arena_format(account->arena, "the rate limit loosens at %.*s",
                            TD_STR_ARG(time_text(account->arena, limited->limit.loosens_at))));
    }
    if (td_str_equal(limited->reason, TD_STR("TooManyReplicas"))) {
        say(account, account->changes,
            td_arena_format(account->arena, "maxReplicas above %d", pass->hpa->max_replicas));
    } else if (td_str_equal(limited->reason, TD_STR("TooFewReplicas"))) {
        say(account, account->changes,
            td_arena_format(account->arena, "minReplicas below %d", pass->hpa->min_replicas));
    }
}

static void say_done(struct account *account)
{
    const struct td_hpa_pass *pass = account->pass;
    int32_t current = pass->scale.spec_replicas;
    if (pass->has_error) {
        say(account, account->held, pass->error);
    }
    if (pass->path == TD_HPA_PATH_FAILED) {
        say(account, account->did,
            pass->is_spec_fault ? TD_STR("nothing")
                                : TD_STR("nothing: the target's scale could not be read"));
    } else if (pass->path == TD_HPA_PATH_DISABLED) {
        say(account, account->did,
            TD_STR("nothing: the target has zero replicas, which this HPA did not set"));
        say(account, account->changes, TD_STR("scaling the target to at least one replica"));
    } else if (pass->wants_rescale) {
        say(account, account->did,
            td_arena_format(account->arena, "%d -> %d replica%s%s%.*s", current, pass->desired,
                            TD_PLURAL(pass->desired), pass->rescale_reason.len > 0 ? ": " : "",
                            TD_STR_ARG(pass->rescale_reason)));
    } else {
        say(account, account->did,
            td_arena_format(
                account->arena,
                current == 1 ? "nothing: %d replica stays" : "nothing: %d replicas stay", current));
    }
    if (pass->evaluation.failed_count > 0) {
        say(account, account->changes,
            TD_STR("all metrics available again: a failing metric blocks scaling in"));
    }
}

static void say_selection(struct account *account)
{
    const struct td_hpa_account_selection *selection = account->selection;
    if (!selection || !selection->is_filtered) {
        return;
    }
    if (selection->is_failed) {
        say(account, account->held,
            td_arena_format(account->arena,
                            "cannot read the owners of pods (%.*s), so all %zu selected pods count",
                            TD_STR_ARG(selection->culprit), selection->matched_count));
    } else if (selection->owned_count < selection->matched_count) {
        say(account, account->wanted,
            td_arena_format(
                account->arena,
                "the target owns %zu of the %zu selected pods, the others are not counted",
                selection->owned_count, selection->matched_count));
    }
}

/* Each matched pod, and whether it counts. */
static struct td_json *selected_json(const struct account *account)
{
    const struct td_hpa_account_selection *selection = account->selection;
    struct td_json *list = td_json_new_array(account->arena);
    for (size_t i = 0; i < selection->pod_count; i++) {
        struct td_json *pod = td_json_new_object(account->arena);
        td_json_set_str(account->arena, pod, TD_STR("name"), selection->pods[i].name);
        td_json_set_bool(account->arena, pod, TD_STR("counted"), selection->pods[i].is_counted);
        if (selection->pods[i].owner.len > 0) {
            td_json_set_str(account->arena, pod, TD_STR("owner"), selection->pods[i].owner);
        }
        td_json_append(list, pod);
    }
    return list;
}

static void set_head(const struct account *account, struct td_json *object)
{
    struct td_arena *arena = account->arena;
    const struct td_hpa_pass *pass = account->pass;
    const struct td_hpa *hpa = pass->hpa;
    td_json_set_str(arena, object, TD_STR("namespace"), hpa->meta.namespace);
    td_json_set_str(arena, object, TD_STR("name"), hpa->meta.name);
    td_json_set_str(arena, object, TD_STR("target"),
                    td_arena_format(arena, "%.*s/%.*s", TD_STR_ARG(hpa->target.kind),
                                    TD_STR_ARG(hpa->target.name)));
    td_json_set_str(arena, object, TD_STR("at"), time_text(arena, pass->now));
    td_json_set_int64(arena, object, TD_STR("minReplicas"), hpa->min_replicas);
    td_json_set_int64(arena, object, TD_STR("maxReplicas"), hpa->max_replicas);
    td_json_set_int64(arena, object, TD_STR("currentReplicas"), pass->scale.spec_replicas);
    td_json_set_int64(arena, object, TD_STR("desiredReplicas"),
                      pass->wants_rescale ? pass->desired : pass->scale.spec_replicas);
    if (account->selection) {
        td_json_set_str(arena, object, TD_STR("selectionStrategy"),
                        td_hpa_strategy_name(account->selection->choice.strategy));
    }
    if (account->selection && account->selection->pods) {
        td_json_set(arena, object, TD_STR("selectedPods"), selected_json(account));
    }
}

struct td_json *td_hpa_account_json(const struct td_hpa_pass *pass,
                                    const struct td_hpa_account_selection *selection)
{
    struct td_arena *arena = pass->arena;
    struct account account = {
        .arena = arena,
        .pass = pass,
        .selection = selection,
        .wanted = td_json_new_array(arena),
        .did = td_json_new_array(arena),
        .held = td_json_new_array(arena),
        .next = td_json_new_array(arena),
        .changes = td_json_new_array(arena),
    };
    struct td_json *object = td_json_new_object(arena);
    struct td_json *metrics = td_json_new_array(arena);
    set_head(&account, object);
    for (size_t i = 0; pass->is_evaluated && i < pass->evaluation.result_count; i++) {
        say_metric(&account, i);
        td_json_append(metrics, metric_json(&account, i));
    }
    say_selection(&account);
    say_done(&account);
    if (pass->is_normalized) {
        td_json_set_int64(arena, object, TD_STR("proposedReplicas"), pass->proposed);
        say_stabilized(&account);
        say_limited(&account);
    }
    say_thresholds(&account);
    td_json_set(arena, object, TD_STR("metrics"), metrics);
    td_json_set(arena, object, TD_STR("wanted"), account.wanted);
    td_json_set(arena, object, TD_STR("did"), account.did);
    td_json_set(arena, object, TD_STR("held"), account.held);
    td_json_set(arena, object, TD_STR("next"), account.next);
    td_json_set(arena, object, TD_STR("wouldChange"), account.changes);
    return object;
}

static void write_section(const struct td_json *account, td_str key, const char *label,
                          struct td_buf *out)
{
    const struct td_json *list = td_json_get(account, key);
    const struct td_json *line = td_json_first_item(list);
    if (!line) {
        (void)td_buf_append_format(out, "  %-7s nothing\n", label);
    }
    for (bool is_first = true; line; line = line->next, is_first = false) {
        (void)td_buf_append_format(out, "  %-7s %.*s\n", is_first ? label : "",
                                   TD_STR_ARG(line->text));
    }
}

void td_hpa_account_write(const struct td_hpa_pass *pass,
                          const struct td_hpa_account_selection *selection,
                          enum td_hpa_account_format format, struct td_buf *out)
{
    const struct td_json *account = td_hpa_account_json(pass, selection);
    if (format == TD_HPA_ACCOUNT_JSON) {
        td_json_write(account, &(struct td_json_format){.indent = 2}, out);
        (void)td_buf_append_char(out, '\n');
        return;
    }
    const struct td_hpa *hpa = pass->hpa;
    (void)td_buf_append_format(
        out,
        "%.*s (HorizontalPodAutoscaler %.*s/%.*s of %.*s, replicas %d..%d) decided at %.*s\n\n",
        TD_STR_ARG(hpa->meta.name), TD_STR_ARG(hpa->meta.namespace), TD_STR_ARG(hpa->meta.name),
        TD_STR_ARG(td_json_text(account, "target")), hpa->min_replicas, hpa->max_replicas,
        TD_STR_ARG(td_json_text(account, "at")));
    write_section(account, TD_STR("wanted"), "wanted", out);
    write_section(account, TD_STR("did"), "did", out);
    write_section(account, TD_STR("held"), "held", out);
    write_section(account, TD_STR("next"), "next", out);
    const struct td_json *changes = td_json_get(account, TD_STR("wouldChange"));
    for (const struct td_json *line = td_json_first_item(changes); line; line = line->next) {
        (void)td_buf_append_format(out, "  would change it: %.*s\n", TD_STR_ARG(line->text));
    }
}
