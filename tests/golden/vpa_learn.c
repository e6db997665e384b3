#include "golden/golden.h"
#include "golden/vpa_learn_support.h"

#define HISTOGRAMS_MAX 64

static int read_scheme(const struct td_json *options, struct td_bucketing *ret,
                       struct td_error *err)
{
    double max = golden_double(options, TD_STR("max"), 0);
    double epsilon = golden_double(options, TD_STR("epsilon"), 0);
    if (td_str_equal(golden_text(options, TD_STR("kind")), TD_STR("linear"))) {
        return td_bucketing_linear(max, golden_double(options, TD_STR("size"), 0), epsilon, ret,
                                   err);
    }
    return td_bucketing_exponential(max, golden_double(options, TD_STR("first"), 0),
                                    golden_double(options, TD_STR("ratio"), 0), epsilon, ret, err);
}

static int run_options(struct td_arena *arena, const struct td_json *in, struct td_json **ret_out,
                       struct td_error *err)
{
    struct td_bucketing scheme;
    int code = read_scheme(td_json_get(in, TD_STR("options")), &scheme, err);
    if (code < 0) {
        return code;
    }
    struct td_json *starts = td_json_new_array(arena);
    struct td_json *found = td_json_new_array(arena);
    const struct td_json *buckets = td_json_get(in, TD_STR("buckets"));
    for (const struct td_json *item = td_json_first_child(buckets); item; item = item->next) {
        int64_t bucket = 0;
        (void)td_json_to_int64(item, &bucket);
        td_json_append(starts,
                       td_json_new_double(arena, td_bucketing_start(&scheme, (int32_t)bucket)));
    }
    const struct td_json *values = td_json_get(in, TD_STR("values"));
    for (const struct td_json *item = td_json_first_child(values); item; item = item->next) {
        double value = 0;
        (void)td_json_to_double(item, &value);
        td_json_append(found, td_json_new_int64(arena, td_bucketing_find(&scheme, value)));
    }
    *ret_out = td_json_new_object(arena);
    golden_set_int(arena, *ret_out, TD_STR("numBuckets"), scheme.count);
    td_json_set(arena, *ret_out, TD_STR("starts"), starts);
    td_json_set(arena, *ret_out, TD_STR("found"), found);
    return TD_OK;
}

/* A case's histograms: the one under test first, then those merged into it. */
struct workshop {
    struct td_decay decay;
    bool is_decaying;
    struct td_decaying items[HISTOGRAMS_MAX];
    size_t count;
};

static int apply_operations(struct td_arena *arena, struct workshop *shop,
                            struct td_decaying *histogram, const struct td_json *operations,
                            int depth, struct td_error *err);

/* Without decay the plain functions are the ones under test. */
static void add_or_subtract(const struct workshop *shop, struct td_decaying *histogram,
                            const struct td_json *operation, bool is_add)
{
    double value = golden_double(operation, TD_STR("value"), 0);
    double weight = golden_double(operation, TD_STR("weight"), 0);
    struct td_instant time = golden_instant(operation, TD_STR("t"));
    if (shop->is_decaying) {
        (is_add ? td_decaying_add : td_decaying_subtract)(histogram, &shop->decay, value, weight,
                                                          time);
    } else {
        (is_add ? td_histogram_add : td_histogram_subtract)(&histogram->plain, &shop->decay.scheme,
                                                            value, weight);
    }
}

static int load_operation(const struct workshop *shop, struct td_decaying *histogram,
                          const struct td_json *checkpoint, struct td_error *err)
{
    struct td_histogram_checkpoint decoded;
    if (td_json_is(checkpoint, TD_JSON_TYPE_STRING)) {
        return td_error_set(err, TD_INVALID, "no checkpoint");
    }
    int code = td_histogram_checkpoint_decode(checkpoint, &decoded, err);
    if (code < 0) {
        return code;
    }
    return td_decaying_load(histogram, &shop->decay, &decoded, err);
}

static int save_and_load(struct td_arena *arena, const struct workshop *shop,
                         struct td_decaying *histogram, struct td_error *err)
{
    struct td_histogram_checkpoint saved = {.reference = TD_INSTANT_ZERO};
    td_decaying_save(histogram, &saved);
    struct td_json *text = td_histogram_checkpoint_encode(arena, &saved);
    td_decaying_done(histogram);
    td_decaying_init(histogram, &shop->decay);
    return load_operation(shop, histogram, text, err);
}

static int merge_operation(struct td_arena *arena, struct workshop *shop,
                           struct td_decaying *histogram, const struct td_json *operations,
                           int depth, struct td_error *err)
{
    struct td_decaying inner;
    if (depth > 8 || (depth == 0 && shop->count == HISTOGRAMS_MAX)) {
        return td_error_set(err, TD_LIMIT, "merge: too deep or too many");
    }
    td_decaying_init(&inner, &shop->decay);
    int code = apply_operations(arena, shop, &inner, operations, depth + 1, err);
    if (code == TD_OK && shop->is_decaying) {
        td_decaying_merge(histogram, &shop->decay, &inner);
    } else if (code == TD_OK) {
        td_histogram_merge(&histogram->plain, &shop->decay.scheme, &inner.plain);
    }
    if (depth == 0 && code == TD_OK) {
        shop->items[shop->count++] = inner;
    } else {
        td_decaying_done(&inner);
    }
    return code;
}

static int apply_operations(struct td_arena *arena, struct workshop *shop,
                            struct td_decaying *histogram, const struct td_json *operations,
                            int depth, struct td_error *err)
{
    int code = TD_OK;
    for (const struct td_json *item = td_json_first_child(operations); item && code == TD_OK;
         item = item->next) {
        td_str op = golden_text(item, TD_STR("op"));
        if (td_str_equal(op, TD_STR("add")) || td_str_equal(op, TD_STR("subtract"))) {
            add_or_subtract(shop, histogram, item, td_str_equal(op, TD_STR("add")));
        } else if (td_str_equal(op, TD_STR("merge"))) {
            code = merge_operation(arena, shop, histogram, td_json_get(item, TD_STR("ops")), depth,
                                   err);
        } else if (td_str_equal(op, TD_STR("load"))) {
            code = load_operation(shop, histogram, td_json_get(item, TD_STR("checkpoint")), err);
        } else if (td_str_equal(op, TD_STR("save-load"))) {
            code = save_and_load(arena, shop, histogram, err);
        } else {
            code = td_error_set(err, TD_INVALID, "op: '%.*s'", TD_STR_ARG(op));
        }
    }
    return code;
}

static struct td_json *describe(struct td_arena *arena, const struct workshop *shop,
                                const struct td_decaying *histogram, const struct td_json *in)
{
    struct td_json *out = td_json_new_object(arena);
    struct td_histogram_checkpoint saved = {.reference = TD_INSTANT_ZERO};
    td_decaying_save(histogram, &saved);
    td_json_set(arena, out, TD_STR("empty"),
                td_json_new_bool(arena, td_decaying_is_empty(histogram, &shop->decay)));
    td_json_set(
        arena, out, TD_STR("percentiles"),
        golden_percentiles(arena, histogram, &shop->decay, td_json_get(in, TD_STR("percentiles"))));
    td_json_set(arena, out, TD_STR("checkpoint"),
                golden_histogram_json(arena, &saved, shop->is_decaying));
    return out;
}

static int run_workshop(struct td_arena *arena, const struct td_json *in, bool is_decaying,
                        struct td_json **ret_out, struct td_error *err)
{
    static struct workshop shop;
    shop = (struct workshop){.is_decaying = is_decaying, .count = 1};
    int code = read_scheme(td_json_get(in, TD_STR("options")), &shop.decay.scheme, err);
    if (code < 0) {
        return code;
    }
    shop.decay.half_life = golden_duration(in, TD_STR("halfLife"), 24 * TD_HOUR);
    td_decaying_init(&shop.items[0], &shop.decay);
    code = apply_operations(arena, &shop, &shop.items[0], td_json_get(in, TD_STR("ops")), 0, err);
    if (code == TD_OK) {
        *ret_out = describe(arena, &shop, &shop.items[0], in);
        struct td_json *merged = td_json_new_array(arena);
        for (size_t i = 1; is_decaying && i < shop.count; i++) {
            td_json_append(merged, describe(arena, &shop, &shop.items[i], in));
        }
        if (merged->count > 0) {
            td_json_set(arena, *ret_out, TD_STR("merged"), merged);
        }
    }
    for (size_t i = 0; i < shop.count; i++) {
        td_decaying_done(&shop.items[i]);
    }
    return code;
}

static int run_histogram(struct td_arena *arena, const struct td_json *in, struct td_json **ret_out,
                         struct td_error *err)
{
    return run_workshop(arena, in, false, ret_out, err);
}

static int run_decaying(struct td_arena *arena, const struct td_json *in, struct td_json **ret_out,
                        struct td_error *err)
{
    return run_workshop(arena, in, true, ret_out, err);
}

static void instances_init(struct golden_instances *instances)
{
    for (size_t i = 0; i < LEARN_CONTAINERS_MAX; i++) {
        td_container_state_init(&instances->states[i]);
    }
}

static bool has_series(const struct td_json *events)
{
    for (const struct td_json *item = td_json_first_child(events); item; item = item->next) {
        if (td_json_get(item, TD_STR("count"))) {
            return true;
        }
    }
    return false;
}

static int run_container(struct td_arena *arena, const struct td_json *in, struct td_json **ret_out,
                         struct td_error *err)
{
    struct td_vertical_config config;
    struct golden_instances instances;
    struct td_aggregate aggregate;
    const struct td_json *events = td_json_get(in, TD_STR("events"));
    struct td_json *results = td_json_new_array(arena);
    struct td_json *calls = has_series(events) ? NULL : td_json_new_array(arena);
    int code = golden_learn_config(in, &config, err);
    if (code < 0) {
        return code;
    }
    instances_init(&instances);
    td_aggregate_init(&aggregate, &config, 0);
    code = golden_learn_events(arena, &config, events, &aggregate, &instances, results, calls, err);
    const struct td_container_state *state = &instances.states[0];
    struct td_json *out = td_json_new_object(arena);
    struct td_checkpoint saved;
    td_aggregate_save(&aggregate, &saved);
    td_json_set(arena, out, TD_STR("results"), results);
    if (calls) {
        td_json_set(arena, out, TD_STR("calls"), calls);
    }
    golden_set_int(arena, out, TD_STR("memoryPeak"), state->memory_peak);
    golden_set_int(arena, out, TD_STR("oomPeak"), state->oom_peak);
    td_json_set(arena, out, TD_STR("windowEnd"), golden_optional_time(arena, state->window_end));
    td_json_set(arena, out, TD_STR("lastMemorySampleStart"),
                golden_optional_time(arena, state->last_memory));
    td_json_set(arena, out, TD_STR("lastCPUSampleStart"),
                golden_optional_time(arena, state->last_cpu));
    td_json_set(arena, out, TD_STR("memoryPercentiles"),
                golden_percentiles(arena, &aggregate.memory, &config.memory,
                                   td_json_get(in, TD_STR("percentiles"))));
    td_json_set(arena, out, TD_STR("memoryCheckpoint"),
                golden_histogram_json(arena, &saved.memory, true));
    td_json_set(arena, out, TD_STR("cpuCheckpoint"),
                golden_histogram_json(arena, &saved.cpu, true));
    td_aggregate_done(&aggregate);
    *ret_out = out;
    return code;
}

/* An aggregate from "load" and "events". */
static int build_aggregate(struct td_arena *arena, const struct td_vertical_config *config,
                           const struct td_json *from, struct td_aggregate *aggregate,
                           struct td_json *results, struct td_error *err)
{
    struct golden_instances instances;
    struct td_checkpoint checkpoint;
    const struct td_json *load = td_json_get(from, TD_STR("load"));
    instances_init(&instances);
    if (load) {
        int code = td_checkpoint_decode_status(load, &checkpoint, err);
        if (code == TD_OK) {
            code = td_aggregate_load(aggregate, config, &checkpoint, err);
        }
        if (code < 0) {
            return code;
        }
    }
    const struct td_json *policies = td_json_get(from, TD_STR("policies"));
    for (const struct td_json *item = td_json_first_child(policies); item; item = item->next) {
        struct td_container_policy policy;
        int code = golden_container_policy(arena, item, &policy, err);
        if (code < 0) {
            return code;
        }
        td_aggregate_set_policy(aggregate, config,
                                item->type == TD_JSON_TYPE_NULL ? NULL : &policy);
    }
    return golden_learn_events(arena, config, td_json_get(from, TD_STR("events")), aggregate,
                               &instances, results, NULL, err);
}

static struct td_json *policy_json(struct td_arena *arena, const struct td_learn_policy *learn)
{
    struct td_json *object = td_json_new_object(arena);
    struct td_json *controlled = td_json_new_array(arena);
    for (uint8_t i = 0; i < learn->controlled_count; i++) {
        td_json_append(controlled, td_json_new_string(arena, learn->controlled[i] == TD_LEARN_CPU
                                                                 ? TD_STR("cpu")
                                                                 : TD_STR("memory")));
    }
    td_json_set(arena, object, TD_STR("scalingMode"),
                learn->is_known
                    ? td_json_new_string(arena, learn->is_off ? TD_STR("Off") : TD_STR("Auto"))
                    : td_json_new_null(arena));
    td_json_set(arena, object, TD_STR("controlledResources"), controlled);
    td_json_set(arena, object, TD_STR("oomBumpUpRatio"),
                td_json_new_double(arena, learn->oom_bump_up_ratio));
    td_json_set(arena, object, TD_STR("oomMinBumpUp"),
                td_json_new_double(arena, learn->oom_min_bump_up));
    golden_set_int(arena, object, TD_STR("memoryAggregationIntervalCount"),
                   learn->memory_interval_count);
    golden_set_text(arena, object, TD_STR("memoryAggregationInterval"),
                    golden_short_duration(arena, learn->memory_interval));
    return object;
}

static struct td_json *aggregate_json(struct td_arena *arena,
                                      const struct td_vertical_config *config,
                                      const struct td_aggregate *aggregate,
                                      const struct td_json *in)
{
    struct td_json *out = td_json_new_object(arena);
    const struct td_json *fractions = td_json_get(in, TD_STR("percentiles"));
    struct td_checkpoint saved;
    td_aggregate_save(aggregate, &saved);
    td_json_set(arena, out, TD_STR("cpuPercentiles"),
                golden_percentiles(arena, &aggregate->cpu, &config->cpu, fractions));
    td_json_set(arena, out, TD_STR("memoryPercentiles"),
                golden_percentiles(arena, &aggregate->memory, &config->memory, fractions));
    td_json_set(arena, out, TD_STR("cpuEmpty"),
                td_json_new_bool(arena, td_decaying_is_empty(&aggregate->cpu, &config->cpu)));
    td_json_set(arena, out, TD_STR("memoryEmpty"),
                td_json_new_bool(arena, td_decaying_is_empty(&aggregate->memory, &config->memory)));
    td_json_set(arena, out, TD_STR("checkpoint"), golden_checkpoint_json(arena, &saved));
    td_json_set(arena, out, TD_STR("firstSampleStart"),
                golden_optional_instant(arena, aggregate->first_sample));
    td_json_set(arena, out, TD_STR("lastSampleStart"),
                golden_optional_instant(arena, aggregate->last_sample));
    golden_set_int(arena, out, TD_STR("totalSamplesCount"), aggregate->total_samples);
    td_json_set(arena, out, TD_STR("isEmpty"),
                td_json_new_bool(arena, td_aggregate_is_empty(aggregate)));
    struct td_json *expired = td_json_new_array(arena);
    const struct td_json *now = td_json_get(in, TD_STR("now"));
    for (const struct td_json *item = td_json_first_child(now); item; item = item->next) {
        struct td_instant instant = TD_INSTANT_ZERO;
        (void)td_time_parse(item->text, &instant, NULL);
        bool is_expired = td_aggregate_is_expired(aggregate, td_time_from_instant(instant));
        td_json_append(expired, td_json_new_bool(arena, is_expired));
    }
    td_json_set(arena, out, TD_STR("expired"), expired);
    td_json_set(arena, out, TD_STR("policy"), policy_json(arena, &aggregate->policy));
    return out;
}

static int run_aggregate(struct td_arena *arena, const struct td_json *in, struct td_json **ret_out,
                         struct td_error *err)
{
    struct td_vertical_config config;
    struct td_aggregate aggregate;
    struct td_json *results = td_json_new_array(arena);
    int code = golden_learn_config(in, &config, err);
    if (code < 0) {
        return code;
    }
    td_aggregate_init(&aggregate, &config, golden_time(in, TD_STR("creationTime")));
    code = build_aggregate(arena, &config, in, &aggregate, results, err);
    const struct td_json *merge = td_json_get(in, TD_STR("merge"));
    for (const struct td_json *item = td_json_first_child(merge); item && code == TD_OK;
         item = item->next) {
        struct td_aggregate other;
        td_aggregate_init(&other, &config, 0);
        code = build_aggregate(arena, &config, item, &other, NULL, err);
        if (code == TD_OK) {
            td_aggregate_merge(&aggregate, &config, &other);
        }
        td_aggregate_done(&other);
    }
    if (code == TD_OK) {
        *ret_out = aggregate_json(arena, &config, &aggregate, in);
        td_json_set(arena, *ret_out, TD_STR("results"), results);
    }
    td_aggregate_done(&aggregate);
    return code;
}

static struct td_json *recommendations_json(struct td_arena *arena,
                                            const struct td_recommendation *recommendation)
{
    struct td_json *list = td_json_get(td_recommendation_encode(arena, recommendation),
                                       TD_STR("containerRecommendations"));
    static const char *const names[] = {"target", "lowerBound", "upperBound", "uncappedTarget"};
    for (struct td_json *item = td_json_first_child(list); item; item = item->next) {
        /* The vectors show empty lists, which the API's JSON leaves out. */
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
            (void)td_json_ensure_object(arena, item, td_str_from(names[i]));
        }
    }
    return list ? list : td_json_new_array(arena);
}

/* {amounts, recommendations} of one container named app. */
static struct td_json *app_json(struct td_arena *arena, const struct td_vertical_config *config,
                                const struct td_aggregate *aggregate)
{
    const struct td_recommend_terms terms = {.config = config, .estimator = &td_estimator_upstream};
    const struct td_subject subject = {.container = TD_STR("app"), .aggregate = aggregate};
    struct td_recommendation recommendation;
    struct td_estimate estimate;
    struct td_account account;
    struct td_json *object = td_json_new_object(arena);
    td_recommend(arena, &terms, &subject, 1, &recommendation, NULL);
    td_recommend_estimate(&terms, &subject, 1, &estimate, &account);
    td_json_set(arena, object, TD_STR("amounts"),
                golden_bounds_json(arena, &aggregate->policy, &estimate));
    td_json_set(arena, object, TD_STR("recommendations"),
                recommendations_json(arena, &recommendation));
    return object;
}

static struct td_json *saved_json(struct td_arena *arena, const struct td_aggregate *aggregate)
{
    struct td_checkpoint saved = {.last_update = TD_INSTANT_ZERO};
    td_aggregate_save(aggregate, &saved);
    return golden_checkpoint_json(arena, &saved);
}

static int roundtrip_later(struct td_arena *arena, const struct td_vertical_config *config,
                           const struct td_json *in, const struct td_json *status,
                           struct td_json *out, struct td_error *err)
{
    struct td_aggregate loaded;
    struct golden_instances instances;
    struct td_checkpoint checkpoint;
    int code = td_checkpoint_decode_status(status, &checkpoint, err);
    if (code < 0) {
        return code;
    }
    instances_init(&instances);
    td_aggregate_init(&loaded, config, 0);
    code = td_aggregate_load(&loaded, config, &checkpoint, err);
    if (code == TD_OK) {
        td_json_set(arena, out, TD_STR("after"), app_json(arena, config, &loaded));
        td_json_set(arena, out, TD_STR("resaved"), saved_json(arena, &loaded));
        code = golden_learn_events(arena, config, td_json_get(in, TD_STR("after")), &loaded,
                                   &instances, NULL, NULL, err);
        td_json_set(arena, out, TD_STR("later"), app_json(arena, config, &loaded));
        td_json_set(arena, out, TD_STR("laterCheckpoint"), saved_json(arena, &loaded));
    }
    td_aggregate_done(&loaded);
    return code;
}

static int roundtrip_state(struct td_arena *arena, const struct td_vertical_config *config,
                           const struct td_json *in, struct td_json *out, struct td_error *err)
{
    struct td_aggregate aggregate;
    td_aggregate_init(&aggregate, config, 0);
    int code = build_aggregate(arena, config, in, &aggregate, NULL, err);
    struct td_checkpoint saved = {.last_update = TD_INSTANT_ZERO};
    td_aggregate_save(&aggregate, &saved);
    struct td_json *before = app_json(arena, config, &aggregate);
    td_aggregate_done(&aggregate);
    if (code < 0) {
        return code;
    }
    td_json_set(arena, out, TD_STR("before"), before);
    td_json_set(arena, out, TD_STR("checkpoint"), golden_checkpoint_json(arena, &saved));
    code = roundtrip_later(arena, config, in, td_checkpoint_encode_status(arena, &saved), out, err);
    bool is_same = td_json_equal(before, td_json_get(out, TD_STR("after")));
    td_json_set(arena, out, TD_STR("same"), td_json_new_bool(arena, is_same));
    return code;
}

static int run_roundtrip(struct td_arena *arena, const struct td_json *in, struct td_json **ret_out,
                         struct td_error *err)
{
    struct td_vertical_config config;
    int code = golden_learn_config(in, &config, err);
    if (code < 0) {
        return code;
    }
    *ret_out = td_json_new_object(arena);
    if (td_str_equal(golden_text(in, TD_STR("kind")), TD_STR("state"))) {
        return roundtrip_state(arena, &config, in, *ret_out, err);
    }
    struct td_json *status = NULL;
    code = td_json_parse(arena, golden_text(in, TD_STR("status")), NULL, &status, err);
    if (code < 0) {
        return code;
    }
    return roundtrip_later(arena, &config, in, status, *ret_out, err);
}

/* Aggregates of an estimator case, sorted by container name. */
struct crew {
    struct td_subject subjects[LEARN_CONTAINERS_MAX];
    struct td_aggregate aggregates[LEARN_CONTAINERS_MAX];
    size_t count;
};

static int build_crew(struct td_arena *arena, const struct td_vertical_config *config,
                      struct td_json *containers, struct crew *crew, struct td_error *err)
{
    if (containers) {
        td_json_sort(arena, containers);
    }
    for (const struct td_json *item = td_json_first_child(containers); item; item = item->next) {
        struct td_aggregate *aggregate = &crew->aggregates[crew->count];
        struct td_container_policy policy;
        if (crew->count == LEARN_CONTAINERS_MAX) {
            return td_error_set(err, TD_LIMIT, "containers: too many");
        }
        td_aggregate_init(aggregate, config, 0);
        crew->subjects[crew->count++] =
            (struct td_subject){.container = item->key, .aggregate = aggregate};
        int code = golden_container_policy(arena, item, &policy, err);
        if (code == TD_OK) {
            td_aggregate_set_policy(aggregate, config, &policy);
            code = build_aggregate(arena, config, item, aggregate, NULL, err);
        }
        if (code < 0) {
            return code;
        }
    }
    return TD_OK;
}

static int run_estimator(struct td_arena *arena, const struct td_json *in, struct td_json **ret_out,
                         struct td_error *err)
{
    static struct crew crew;
    struct td_vertical_config config;
    int code = golden_learn_config(in, &config, err);
    crew.count = 0;
    if (code == TD_OK) {
        code = build_crew(arena, &config, td_json_get(in, TD_STR("containers")), &crew, err);
    }
    if (code == TD_OK) {
        const struct td_recommend_terms terms = {.config = &config,
                                                 .estimator = &td_estimator_upstream};
        struct td_recommendation recommendation;
        struct td_json *amounts = td_json_new_object(arena);
        td_recommend(arena, &terms, crew.subjects, crew.count, &recommendation, NULL);
        for (size_t i = 0; i < crew.count; i++) {
            struct td_estimate estimate;
            struct td_account account;
            td_recommend_estimate(&terms, &crew.subjects[i], crew.count, &estimate, &account);
            td_json_set(arena, amounts, crew.subjects[i].container,
                        golden_bounds_json(arena, &crew.aggregates[i].policy, &estimate));
        }
        *ret_out = td_json_new_object(arena);
        td_json_set(arena, *ret_out, TD_STR("amounts"), amounts);
        td_json_set(arena, *ret_out, TD_STR("recommendations"),
                    recommendations_json(arena, &recommendation));
    }
    for (size_t i = 0; i < crew.count; i++) {
        td_aggregate_done(&crew.aggregates[i]);
    }
    return code;
}

const struct golden_topic golden_vpa_learn[] = {
    {.name = "vpa/histogram-options", .run = run_options, .is_same = golden_same_doubles},
    {.name = "vpa/histogram", .run = run_histogram, .is_same = golden_same_doubles},
    {.name = "vpa/decaying-histogram", .run = run_decaying, .is_same = golden_same_doubles},
    {.name = "vpa/container-state", .run = run_container, .is_same = golden_same_doubles},
    {.name = "vpa/aggregate", .run = run_aggregate, .is_same = golden_same_doubles},
    {.name = "vpa/checkpoint-roundtrip", .run = run_roundtrip, .is_same = golden_same_doubles},
    {.name = "vpa/estimator", .run = run_estimator, .is_same = golden_same_doubles},
    {.name = NULL},
};
