#include "golden/vpa_learn_support.h"

static void flag_double(const struct td_json *flags, td_str name, double *field)
{
    *field = golden_double(flags, name, *field);
}

static void flag_duration(const struct td_json *flags, td_str name, td_duration *field)
{
    *field = golden_duration(flags, name, *field);
}

int golden_learn_config(const struct td_json *in, struct td_vertical_config *ret,
                        struct td_error *err)
{
    const struct td_json *flags = td_json_get(in, TD_STR("flags"));
    struct td_vertical_config config = td_vertical_config_default();
    (void)err;
    config.is_upstream_exact = true;
    flag_double(flags, TD_STR("recommendation-margin-fraction"), &config.margin_fraction);
    flag_double(flags, TD_STR("pod-recommendation-min-cpu-millicores"), &config.pod_min_cpu_milli);
    flag_double(flags, TD_STR("pod-recommendation-min-memory-mb"), &config.pod_min_memory_mib);
    flag_double(flags, TD_STR("target-cpu-percentile"), &config.target_cpu_percentile);
    flag_double(flags, TD_STR("target-memory-percentile"), &config.target_memory_percentile);
    flag_double(flags, TD_STR("recommendation-lower-bound-cpu-percentile"),
                &config.lower_cpu_percentile);
    flag_double(flags, TD_STR("recommendation-lower-bound-memory-percentile"),
                &config.lower_memory_percentile);
    flag_double(flags, TD_STR("recommendation-upper-bound-cpu-percentile"),
                &config.upper_cpu_percentile);
    flag_double(flags, TD_STR("recommendation-upper-bound-memory-percentile"),
                &config.upper_memory_percentile);
    flag_double(flags, TD_STR("oom-bump-up-ratio"), &config.oom_bump_up_ratio);
    flag_double(flags, TD_STR("oom-min-bump-up-bytes"), &config.oom_min_bump_up);
    flag_duration(flags, TD_STR("confidence-interval-cpu"), &config.confidence_cpu);
    flag_duration(flags, TD_STR("confidence-interval-memory"), &config.confidence_memory);
    flag_duration(flags, TD_STR("memory-aggregation-interval"), &config.memory_interval);
    flag_duration(flags, TD_STR("memory-histogram-decay-half-life"), &config.memory.half_life);
    flag_duration(flags, TD_STR("cpu-histogram-decay-half-life"), &config.cpu.half_life);
    config.memory_interval_count = td_json_get_int64(
        flags, TD_STR("memory-aggregation-interval-count"), config.memory_interval_count);
    config.round_cpu_milli =
        td_json_get_int64(flags, TD_STR("round-cpu-millicores"), config.round_cpu_milli);
    config.round_memory_bytes =
        td_json_get_int64(flags, TD_STR("round-memory-bytes"), config.round_memory_bytes);
    config.humanize_memory = td_json_get_bool(flags, TD_STR("humanize-memory"), false);
    config.per_vpa_config = td_json_get_bool(in, TD_STR("perVPAConfig"), false);
    config.cpu_integer_post_processor =
        td_json_get_bool(in, TD_STR("cpuIntegerPostProcessor"), false);
    *ret = config;
    return TD_OK;
}

struct td_json *golden_optional_instant(struct td_arena *arena, struct td_instant instant)
{
    return td_instant_is_zero(instant) ? td_json_new_null(arena)
                                       : golden_instant_json(arena, instant);
}

struct td_json *golden_optional_time(struct td_arena *arena, td_time time)
{
    return time == TD_CONTAINER_TIME_NONE ? td_json_new_null(arena) : golden_time_json(arena, time);
}

static struct td_instant whole_seconds(struct td_instant instant)
{
    instant.nanos = 0;
    return instant;
}

struct td_json *golden_histogram_json(struct td_arena *arena,
                                      const struct td_histogram_checkpoint *histogram,
                                      bool has_reference)
{
    struct td_json *object = td_json_new_object(arena);
    struct td_json *weights = td_json_new_object(arena);
    for (int bucket = 0; bucket < TD_CHECKPOINT_BUCKETS_MAX; bucket++) {
        if (histogram->weights[bucket] > 0) {
            golden_set_int(arena, weights, td_arena_format(arena, "%d", bucket),
                           histogram->weights[bucket]);
        }
    }
    td_json_set(arena, object, TD_STR("bucketWeights"), weights);
    td_json_set(arena, object, TD_STR("totalWeight"),
                td_json_new_double(arena, histogram->total_weight));
    if (has_reference) {
        td_json_set(arena, object, TD_STR("referenceTimestamp"),
                    golden_optional_instant(arena, whole_seconds(histogram->reference)));
    }
    return object;
}

struct td_json *golden_checkpoint_json(struct td_arena *arena,
                                       const struct td_checkpoint *checkpoint)
{
    struct td_json *object = td_json_new_object(arena);
    golden_set_text(arena, object, TD_STR("version"), checkpoint->version);
    golden_set_int(arena, object, TD_STR("totalSamplesCount"), checkpoint->total_samples);
    td_json_set(arena, object, TD_STR("firstSampleStart"),
                golden_optional_instant(arena, whole_seconds(checkpoint->first_sample)));
    td_json_set(arena, object, TD_STR("lastSampleStart"),
                golden_optional_instant(arena, whole_seconds(checkpoint->last_sample)));
    td_json_set(arena, object, TD_STR("cpuHistogram"),
                golden_histogram_json(arena, &checkpoint->cpu, true));
    td_json_set(arena, object, TD_STR("memoryHistogram"),
                golden_histogram_json(arena, &checkpoint->memory, true));
    return object;
}

int golden_event_read(const struct td_json *json, struct golden_event *ret, struct td_error *err)
{
    ret->op = golden_text(json, TD_STR("op"));
    ret->container = td_json_get_int64(json, TD_STR("c"), 0);
    ret->time = golden_time(json, TD_STR("t"));
    ret->value = td_json_get_int64(json, TD_STR("v"), 0);
    ret->is_series = td_json_get(json, TD_STR("count")) != NULL;
    ret->count = td_json_get_int64(json, TD_STR("count"), 1);
    ret->step = golden_duration(json, TD_STR("step"), 0);
    ret->multiplier = td_json_get_int64(json, TD_STR("mul"), 0);
    ret->modulus = td_json_get_int64(json, TD_STR("mod"), 0);
    if (ret->container < 0 || ret->container >= LEARN_CONTAINERS_MAX) {
        return td_error_set(err, TD_LIMIT, "c: %lld", (long long)ret->container);
    }
    return TD_OK;
}

int64_t golden_event_value(const struct golden_event *event, int64_t index)
{
    if (event->modulus == 0) {
        return event->value;
    }
    return event->value + (event->multiplier * index) % event->modulus;
}

td_str golden_oom_error(struct td_arena *arena, enum td_oom_verdict verdict, td_time time)
{
    if (verdict == TD_OOM_TAKEN || verdict == TD_OOM_CAPPED) {
        return TD_STR_EMPTY;
    }
    if (verdict == TD_OOM_INVALID) {
        return TD_STR("adding OOM sample failed");
    }
    td_str text = golden_time_json(arena, time)->text; /* 2026-03-01T06:13:05.5Z */
    return td_arena_format(
        arena, "OOM event will be discarded - it is too old (%.*s %.*s +0000 UTC)",
        TD_STR_ARG(td_str_slice(text, 0, 10)), TD_STR_ARG(td_str_slice(text, 11, text.len - 1)));
}

static void add_call(struct td_arena *arena, struct td_json *calls, const char *call,
                     const char *resource, int64_t value, td_time time)
{
    if (!calls) {
        return;
    }
    struct td_json *object = td_json_new_object(arena);
    golden_set_text(arena, object, TD_STR("call"), td_str_from(call));
    golden_set_text(arena, object, TD_STR("resource"), td_str_from(resource));
    golden_set_int(arena, object, TD_STR("v"), value);
    td_json_set(arena, object, TD_STR("t"), golden_time_json(arena, time));
    td_json_append(calls, object);
}

static void add_peak_calls(struct td_arena *arena, struct td_json *calls,
                           const struct td_peak_change *change)
{
    if (change->has_subtract) {
        add_call(arena, calls, "subtract", "memory", change->subtract_bytes, change->at);
    }
    if (change->has_add) {
        add_call(arena, calls, "add", "memory", change->add_bytes, change->at);
    }
}

static struct td_json *learn_one(struct td_arena *arena, const struct td_vertical_config *config,
                                 const struct golden_event *event, int64_t index,
                                 struct td_aggregate *aggregate, struct td_container_state *state,
                                 struct td_json *calls)
{
    td_time time = event->time + index * event->step;
    int64_t value = golden_event_value(event, index);
    struct td_oom_rule rule = td_learn_rule(&aggregate->policy, config);
    if (td_str_equal(event->op, TD_STR("cpu"))) {
        bool is_accepted = td_container_cpu(state, time, value);
        if (is_accepted) {
            td_aggregate_add_cpu(aggregate, config, time, value);
            add_call(arena, calls, "add", "cpu", value, time);
        }
        return td_json_new_bool(arena, is_accepted);
    }
    struct td_peak_change change;
    if (td_str_equal(event->op, TD_STR("oom"))) {
        enum td_oom_verdict verdict = td_container_oom(state, &rule, time, value, &change);
        td_aggregate_apply(aggregate, config, &change);
        add_peak_calls(arena, calls, &change);
        return td_json_new_string(arena, golden_oom_error(arena, verdict, time));
    }
    change = td_container_memory(state, &rule, time, value);
    td_aggregate_apply(aggregate, config, &change);
    add_peak_calls(arena, calls, &change);
    return td_json_new_bool(arena, change.is_accepted);
}

static bool is_taken(const struct td_json *result)
{
    return result->type == TD_JSON_TYPE_BOOL ? result->boolean : result->text.len == 0;
}

int golden_learn_events(struct td_arena *arena, const struct td_vertical_config *config,
                        const struct td_json *events, struct td_aggregate *aggregate,
                        struct golden_instances *instances, struct td_json *results,
                        struct td_json *calls, struct td_error *err)
{
    for (const struct td_json *item = td_json_first_child(events); item; item = item->next) {
        struct golden_event event;
        int code = golden_event_read(item, &event, err);
        if (code < 0) {
            return code;
        }
        struct td_container_state *state = &instances->states[event.container];
        int64_t taken = 0;
        struct td_json *result = NULL;
        for (int64_t i = 0; i < event.count; i++) {
            result = learn_one(arena, config, &event, i, aggregate, state, calls);
            taken += is_taken(result);
        }
        if (results) {
            td_json_append(results, event.is_series ? td_json_new_int64(arena, taken) : result);
        }
    }
    return TD_OK;
}

struct td_json *golden_percentiles(struct td_arena *arena, const struct td_decaying *histogram,
                                   const struct td_decay *decay, const struct td_json *fractions)
{
    struct td_json *list = td_json_new_array(arena);
    for (const struct td_json *item = td_json_first_child(fractions); item; item = item->next) {
        double fraction = 0;
        (void)td_json_to_double(item, &fraction);
        td_json_append(
            list, td_json_new_double(arena, td_decaying_percentile(histogram, decay, fraction)));
    }
    return list;
}

static struct td_json *amounts_json(struct td_arena *arena, const struct td_learn_policy *learn,
                                    int64_t cpu, int64_t memory)
{
    struct td_json *object = td_json_new_object(arena);
    if (td_learn_controls(learn, TD_LEARN_CPU)) {
        golden_set_int(arena, object, TD_STR("cpu"), cpu);
    }
    if (td_learn_controls(learn, TD_LEARN_MEMORY)) {
        golden_set_int(arena, object, TD_STR("memory"), memory);
    }
    return object;
}

struct td_json *golden_bounds_json(struct td_arena *arena, const struct td_learn_policy *learn,
                                   const struct td_estimate *estimate)
{
    struct td_json *object = td_json_new_object(arena);
    td_json_set(arena, object, TD_STR("target"),
                amounts_json(arena, learn, estimate->cpu.target, estimate->memory.target));
    td_json_set(arena, object, TD_STR("lowerBound"),
                amounts_json(arena, learn, estimate->cpu.lower, estimate->memory.lower));
    td_json_set(arena, object, TD_STR("upperBound"),
                amounts_json(arena, learn, estimate->cpu.upper, estimate->memory.upper));
    return object;
}

static int optional_quantity(struct td_arena *arena, const struct td_json *json, td_str key,
                             bool *ret_has, struct td_quantity *ret, struct td_error *err)
{
    const struct td_json *node = td_json_get(json, key);
    *ret_has = node && node->type != TD_JSON_TYPE_NULL;
    return *ret_has ? td_quantity_from_json(arena, node, ret, err) : TD_OK;
}

int golden_container_policy(struct td_arena *arena, const struct td_json *json,
                            struct td_container_policy *ret, struct td_error *err)
{
    *ret =
        (struct td_container_policy){.container_name = golden_text(json, TD_STR("containerName"))};
    ret->is_off = td_str_equal(golden_text(json, TD_STR("mode")), TD_STR("Off"));
    ret->is_requests_only =
        td_str_equal(golden_text(json, TD_STR("controlledValues")), TD_STR("RequestsOnly"));
    const struct td_json *controlled = td_json_get(json, TD_STR("controlledResources"));
    ret->has_controlled_resources = td_json_is(controlled, TD_JSON_TYPE_ARRAY);
    if (ret->has_controlled_resources) {
        td_str *names = td_arena_array(arena, td_str, controlled->count);
        for (const struct td_json *item = td_json_first_child(controlled); item;
             item = item->next) {
            names[ret->controlled_resource_count++] = item->text;
        }
        ret->controlled_resources = names;
    }
    ret->has_memory_interval =
        td_json_get(json, TD_STR("memoryAggregationIntervalSeconds")) != NULL;
    ret->memory_interval_seconds =
        (int32_t)td_json_get_int64(json, TD_STR("memoryAggregationIntervalSeconds"), 0);
    ret->has_memory_interval_count =
        td_json_get(json, TD_STR("memoryAggregationIntervalCount")) != NULL;
    ret->memory_interval_count =
        td_json_get_int64(json, TD_STR("memoryAggregationIntervalCount"), 0);
    int code = td_resource_list_decode(arena, td_json_get(json, TD_STR("minAllowed")),
                                       &ret->min_allowed, err);
    if (code == TD_OK) {
        code = td_resource_list_decode(arena, td_json_get(json, TD_STR("maxAllowed")),
                                       &ret->max_allowed, err);
    }
    if (code == TD_OK) {
        code = optional_quantity(arena, json, TD_STR("oomBumpUpRatio"), &ret->has_oom_bump_up_ratio,
                                 &ret->oom_bump_up_ratio, err);
    }
    if (code == TD_OK) {
        code = optional_quantity(arena, json, TD_STR("oomMinBumpUp"), &ret->has_oom_min_bump_up,
                                 &ret->oom_min_bump_up, err);
    }
    return code;
}

static bool same_at(const struct td_json *expected, const struct td_json *got, int depth);

static bool same_children(const struct td_json *expected, const struct td_json *got, int depth)
{
    const struct td_json *other = td_json_first_child(got);
    if (expected->count != got->count) {
        return false;
    }
    for (const struct td_json *item = td_json_first_child(expected); item; item = item->next) {
        const struct td_json *match =
            expected->type == TD_JSON_TYPE_OBJECT ? td_json_get(got, item->key) : other;
        if (!match || !same_at(item, match, depth + 1)) {
            return false;
        }
        other = other->next;
    }
    return true;
}

static bool same_at(const struct td_json *expected, const struct td_json *got, int depth)
{
    if (depth > TD_JSON_DEPTH_MAX || expected->type != got->type) {
        return false;
    }
    if (expected->type == TD_JSON_TYPE_NUMBER) {
        double a = 0;
        double b = 0;
        return td_json_to_double(expected, &a) && td_json_to_double(got, &b) && a == b;
    }
    if (expected->type == TD_JSON_TYPE_ARRAY || expected->type == TD_JSON_TYPE_OBJECT) {
        return same_children(expected, got, depth);
    }
    return td_json_equal(expected, got);
}

bool golden_same_doubles(const struct td_json *expected, const struct td_json *got)
{
    return expected && got && same_at(expected, got, 0);
}

td_str golden_short_duration(struct td_arena *arena, td_duration duration)
{
    char text[TD_DURATION_TEXT_BYTES];
    size_t len = td_duration_format(duration, text);
    td_str whole = {.ptr = text, .len = len};
    if (td_str_ends_with(whole, TD_STR("m0s"))) {
        whole.len -= 2;
    }
    if (td_str_ends_with(whole, TD_STR("h0m"))) {
        whole.len -= 2;
    }
    return td_arena_copy_str(arena, whole);
}
