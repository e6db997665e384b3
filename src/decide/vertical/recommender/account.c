/*
 * The words of an account: the target of each resource by the steps that led to it, then what a
 * user could do to get another one; and the same as a tree.
 */
#include "decide/vertical/recommender/account.h"

#include "kube/quantity/quantity.h"

double td_account_confidence(const struct td_account *account)
{
    double confidence = 0;
    if (account->cpu.is_controlled && account->memory.is_controlled) {
        confidence = account->cpu.confidence < account->memory.confidence
                         ? account->cpu.confidence
                         : account->memory.confidence;
    } else if (account->cpu.is_controlled) {
        confidence = account->cpu.confidence;
    } else if (account->memory.is_controlled) {
        confidence = account->memory.confidence;
    }
    return confidence > 0 ? confidence : 0;
}

bool td_confidence_allows(const struct td_account *account, double min_confidence)
{
    if (min_confidence <= 0 || (account->ooms > 0 && account->memory.is_controlled)) {
        return true;
    }
    return td_account_confidence(account) >= min_confidence;
}

static const char *cap_name(enum td_cap_source cap)
{
    switch (cap) {
    case TD_CAP_MIN_ALLOWED:
        return "minAllowed";
    case TD_CAP_MAX_ALLOWED:
        return "maxAllowed";
    case TD_CAP_GLOBAL_MAX:
        return "the global maximum";
    case TD_CAP_NONE:
        break;
    }
    return "";
}

static void write_amount(struct td_buf *out, int64_t amount, bool is_cpu)
{
    struct td_quantity quantity = is_cpu ? td_quantity_new_milli(amount, TD_QUANTITY_DECIMAL_SI)
                                         : td_quantity_new(amount, TD_QUANTITY_BINARY_SI);
    td_quantity_write_short(&quantity, !is_cpu, out);
}

void td_account_write_target(const struct td_resource_account *resource, bool is_cpu,
                             struct td_buf *out)
{
    const struct td_bound_account *target = &resource->target;
    if (resource->detail[0]) {
        (void)td_buf_append(out, td_str_from(resource->detail));
    } else if (target->base == 0) {
        (void)td_buf_append(out, TD_STR("no samples yet"));
    } else {
        (void)td_buf_append_format(out, "percentile %g of %s is ", target->percentile * 100,
                                   is_cpu ? "use" : "daily peaks");
        write_amount(out, target->base, is_cpu);
        (void)td_buf_append_format(out, ", with a margin of %g %% ",
                                   resource->margin_fraction * 100);
        write_amount(out, target->with_margin, is_cpu);
    }
    if (target->is_floor) {
        (void)td_buf_append(out, TD_STR("; raised to this container's share of the pod minimum, "));
        write_amount(out, resource->floor, is_cpu);
    }
}

static void write_resource(struct td_buf *out, const struct td_resource_account *resource,
                           bool is_cpu)
{
    (void)td_buf_append(out, is_cpu ? TD_STR("cpu: ") : TD_STR("memory: "));
    if (!resource->is_controlled) {
        (void)td_buf_append(out, TD_STR("not controlled by the policy\n"));
        return;
    }
    td_account_write_target(resource, is_cpu, out);
    if (resource->held > 0) {
        char until[TD_TIME_TEXT_BYTES];
        (void)td_time_format(td_time_to_instant(resource->held_until), 0, until);
        (void)td_buf_append(out, TD_STR("; held at "));
        write_amount(out, resource->held, is_cpu);
        (void)td_buf_append_format(out, " until %s, because there are more pods than before",
                                   until);
    }
    if (resource->rounded_to > 1) {
        (void)td_buf_append(out, TD_STR("; rounded up to a multiple of "));
        write_amount(out, resource->rounded_to, is_cpu);
    }
    if (resource->is_whole_cpu) {
        (void)td_buf_append(out, TD_STR("; rounded up to a whole CPU as annotated"));
    }
    if (resource->target.cap != TD_CAP_NONE) {
        (void)td_buf_append_format(out, "; capped by %s", cap_name(resource->target.cap));
    }
    (void)td_buf_append_format(out, ". Confidence %.2f: the bounds are ", resource->confidence);
    (void)td_buf_append_number(out, resource->lower.confidence_factor, 3);
    (void)td_buf_append(out, TD_STR("x and "));
    (void)td_buf_append_number(out, resource->upper.confidence_factor, 3);
    (void)td_buf_append_format(out, "x their percentiles%s.\n",
                               resource->is_display_only ? " (no controller uses them)" : "");
}

/* What a user could do to get another answer, the most telling first. */
static void write_levers(struct td_buf *out, const struct td_account *account)
{
    const struct td_resource_account *both[] = {&account->cpu, &account->memory};
    static const char *const names[] = {"cpu", "memory"};
    size_t before = out->len;
    for (size_t i = 0; i < 2; i++) {
        if (both[i]->is_controlled && both[i]->target.cap != TD_CAP_NONE) {
            (void)td_buf_append_format(out, "another %s for %s; ", cap_name(both[i]->target.cap),
                                       names[i]);
        } else if (both[i]->is_controlled && both[i]->target.is_floor) {
            (void)td_buf_append_format(out, "more %s usage, or a smaller pod minimum; ", names[i]);
        }
    }
    if (account->oom_capped_bytes > 0) {
        (void)td_buf_append(out, TD_STR("a larger maxAllowed for memory, because of OOMs; "));
    }
    if (td_account_confidence(account) < 1) {
        (void)td_buf_append(out, TD_STR("more samples (a day of them); "));
    }
    if (out->len == before) {
        (void)td_buf_append(out, TD_STR("different usage; "));
    }
}

void td_account_write(const struct td_account *account, struct td_buf *out)
{
    char first[TD_TIME_TEXT_BYTES] = "";
    char last[TD_TIME_TEXT_BYTES] = "";
    (void)td_time_format(account->first_sample, 0, first);
    (void)td_time_format(account->last_sample, 0, last);
    (void)td_buf_append_format(out, "container %.*s (%s%s%s): ", TD_STR_ARG(account->container),
                               account->estimator,
                               account->instead ? " instead of track, since " : "",
                               account->instead ? account->instead : "");
    if (account->samples > 0) {
        (void)td_buf_append_format(out, "%lld sample%s from %s to %s", (long long)account->samples,
                                   TD_PLURAL(account->samples), first, last);
    } else {
        (void)td_buf_append(out, TD_STR("no samples"));
    }
    if (account->ooms > 0) {
        char oom[TD_TIME_TEXT_BYTES];
        (void)td_time_format(td_time_to_instant(account->last_oom), 0, oom);
        (void)td_buf_append_format(out, ", %lld OOM%s, the latest on %s with a request of ",
                                   (long long)account->ooms, TD_PLURAL(account->ooms), oom);
        write_amount(out, account->oom_bytes, false);
    }
    if (account->short_runs > 0) {
        (void)td_buf_append_format(out, ", %lld run%s too short to be measured",
                                   (long long)account->short_runs, TD_PLURAL(account->short_runs));
    }
    (void)td_buf_append_char(out, '\n');
    write_resource(out, &account->cpu, true);
    write_resource(out, &account->memory, false);
    (void)td_buf_append(out, TD_STR("would change it: "));
    write_levers(out, account);
    out->len -= 2; /* the last "; " */
    (void)td_buf_append_char(out, '\n');
}

static void set_double(struct td_arena *arena, struct td_json *object, td_str key, double value)
{
    bool is_finite = value - value == 0;
    td_json_set(arena, object, key,
                is_finite ? td_json_new_double(arena, value)
                          : td_json_new_string(arena, TD_STR("infinite")));
}

static void set_time(struct td_arena *arena, struct td_json *object, td_str key,
                     struct td_instant time)
{
    td_json_set_str(arena, object, key, td_time_text(arena, time, 0));
}

static struct td_json *bound_json(struct td_arena *arena, const struct td_bound_account *bound)
{
    struct td_json *object = td_json_new_object(arena);
    set_double(arena, object, TD_STR("percentile"), bound->percentile);
    td_json_set_int64(arena, object, TD_STR("base"), bound->base);
    td_json_set_int64(arena, object, TD_STR("withMargin"), bound->with_margin);
    set_double(arena, object, TD_STR("confidenceFactor"), bound->confidence_factor);
    td_json_set_int64(arena, object, TD_STR("estimate"), bound->estimate);
    td_json_set_bool(arena, object, TD_STR("isFloor"), bound->is_floor);
    td_json_set_str(arena, object, TD_STR("cap"), td_str_from(cap_name(bound->cap)));
    return object;
}

static struct td_json *resource_json(struct td_arena *arena,
                                     const struct td_resource_account *resource)
{
    struct td_json *object = td_json_new_object(arena);
    td_json_set_bool(arena, object, TD_STR("controlled"), resource->is_controlled);
    set_double(arena, object, TD_STR("margin"), resource->margin_fraction);
    set_double(arena, object, TD_STR("confidence"), resource->confidence);
    td_json_set_int64(arena, object, TD_STR("floor"), resource->floor);
    td_json_set_int64(arena, object, TD_STR("roundedTo"), resource->rounded_to);
    td_json_set_bool(arena, object, TD_STR("wholeCpu"), resource->is_whole_cpu);
    td_json_set_bool(arena, object, TD_STR("displayOnly"), resource->is_display_only);
    if (resource->held > 0) {
        td_json_set_int64(arena, object, TD_STR("held"), resource->held);
        set_time(arena, object, TD_STR("heldUntil"), td_time_to_instant(resource->held_until));
    }
    td_str reason = td_arena_copy_str(arena, td_str_from(resource->reason));
    td_json_set_str(arena, object, TD_STR("reason"), reason);
    td_str detail = td_arena_copy_str(arena, td_str_from(resource->detail));
    td_json_set_str(arena, object, TD_STR("detail"), detail);
    td_json_set(arena, object, TD_STR("target"), bound_json(arena, &resource->target));
    td_json_set(arena, object, TD_STR("lowerBound"), bound_json(arena, &resource->lower));
    td_json_set(arena, object, TD_STR("upperBound"), bound_json(arena, &resource->upper));
    return object;
}

struct td_json *td_account_json(struct td_arena *arena, const struct td_account *account)
{
    struct td_json *object = td_json_new_object(arena);
    td_json_set_str(arena, object, TD_STR("container"), account->container);
    td_json_set_str(arena, object, TD_STR("estimator"), td_str_from(account->estimator));
    if (account->instead) {
        td_json_set_str(arena, object, TD_STR("insteadOfTrack"), td_str_from(account->instead));
    }
    td_json_set_int64(arena, object, TD_STR("samples"), account->samples);
    if (account->samples > 0) {
        set_time(arena, object, TD_STR("firstSample"), account->first_sample);
        set_time(arena, object, TD_STR("lastSample"), account->last_sample);
    }
    td_json_set_int64(arena, object, TD_STR("ooms"), account->ooms);
    if (account->ooms > 0) {
        set_time(arena, object, TD_STR("lastOom"), td_time_to_instant(account->last_oom));
        td_json_set_int64(arena, object, TD_STR("oomBytes"), account->oom_bytes);
        td_json_set_int64(arena, object, TD_STR("oomCappedBytes"), account->oom_capped_bytes);
    }
    td_json_set_int64(arena, object, TD_STR("shortRuns"), account->short_runs);
    td_json_set(arena, object, TD_STR("cpu"), resource_json(arena, &account->cpu));
    td_json_set(arena, object, TD_STR("memory"), resource_json(arena, &account->memory));
    return object;
}
