/*
 * The steps after an estimate, the same for every estimator: hold memory at what was recommended
 * before, drop what is not measured, round, make CPU whole where it is asked for, cap by policy
 * and global maxima. Each step leaves its trace in the account.
 */
#include "decide/vertical/recommender/recommend.h"

#include <math.h>

#include "base/assert.h"
#include "decide/vertical/resourcelist.h"

#define KIB INT64_C(1024)
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)
#define TIB (1024 * GIB)

#define INTEGER_CPU_PREFIX TD_STR("vpa-post-processor.kubernetes.io/")
#define INTEGER_CPU_SUFFIX TD_STR("_integerCPU")

static int64_t round_up_to(int64_t amount, int64_t step)
{
    if (step == 1 || step <= 0 || amount == 0) {
        return amount;
    }
    return (int64_t)ceil((double)amount / (double)step) * step;
}

/* "1.50Gi" of a number of bytes, read back: two decimals of the largest unit. */
static struct td_quantity humanized(struct td_arena *arena, int64_t bytes)
{
    static const struct {
        int64_t size;
        const char *suffix;
    } units[] = {{TIB, "Ti"}, {GIB, "Gi"}, {MIB, "Mi"}, {KIB, "Ki"}};
    struct td_quantity made = td_quantity_new(bytes, TD_QUANTITY_DECIMAL_SI);
    for (size_t i = 0; i < TD_COUNT(units); i++) {
        if (bytes >= units[i].size) {
            td_str text = td_arena_format(arena, "%.2f%s", (double)bytes / (double)units[i].size,
                                          units[i].suffix);
            int code = td_quantity_parse(arena, text, &made, NULL);
            td_assert(code == 0); /* digits and a suffix always parse */
            break;
        }
    }
    return made;
}

static struct td_quantity cpu_quantity(const struct td_vertical_config *config, int64_t milli)
{
    return td_quantity_new_scaled(round_up_to(milli, config->round_cpu_milli), -3);
}

static struct td_quantity memory_quantity(struct td_arena *arena,
                                          const struct td_vertical_config *config, int64_t bytes)
{
    int64_t rounded = round_up_to(bytes, config->round_memory_bytes);
    if (config->humanize_memory && rounded != 0) {
        return humanized(arena, rounded);
    }
    return td_quantity_new(rounded, TD_QUANTITY_BINARY_SI);
}

/* The controlled resources of one list, cpu before memory. */
static struct td_resource_list render_list(struct td_arena *arena,
                                           const struct td_vertical_config *config,
                                           const struct td_learn_policy *learn, int64_t cpu_milli,
                                           int64_t memory_bytes)
{
    struct td_resource_list list = {.items = td_arena_array(arena, struct td_resource_amount, 2)};
    if (td_learn_controls(learn, TD_LEARN_CPU)) {
        list.items[list.count++] = (struct td_resource_amount){
            .name = TD_STR("cpu"), .quantity = cpu_quantity(config, cpu_milli)};
    }
    if (td_learn_controls(learn, TD_LEARN_MEMORY)) {
        list.items[list.count++] = (struct td_resource_amount){
            .name = TD_STR("memory"), .quantity = memory_quantity(arena, config, memory_bytes)};
    }
    return list;
}

static struct td_container_recommendation render_container(struct td_arena *arena,
                                                           const struct td_vertical_config *config,
                                                           const struct td_subject *subject,
                                                           const struct td_estimate *estimate)
{
    const struct td_learn_policy *learn = &subject->aggregate->policy;
    return (struct td_container_recommendation){
        .container_name = subject->container,
        .target = render_list(arena, config, learn, estimate->cpu.target, estimate->memory.target),
        .lower_bound =
            render_list(arena, config, learn, estimate->cpu.lower, estimate->memory.lower),
        .upper_bound =
            render_list(arena, config, learn, estimate->cpu.upper, estimate->memory.upper),
        .uncapped_target =
            render_list(arena, config, learn, estimate->cpu.target, estimate->memory.target),
        .has_target = true,
        .has_lower_bound = true,
        .has_upper_bound = true,
        .has_uncapped_target = true,
    };
}

/* What was never measured is not recommended: its minimum would be written into pods that ask for
 * much more. */
static void drop_unmeasured(struct td_container_recommendation *made,
                            const struct td_account *account)
{
    struct td_resource_list *lists[] = {&made->target, &made->lower_bound, &made->upper_bound,
                                        &made->uncapped_target};
    for (size_t i = 0; i < TD_COUNT(lists); i++) {
        if (account->cpu.lacks_data) {
            td_resource_list_drop(lists[i], TD_CPU);
        }
        if (account->memory.lacks_data) {
            td_resource_list_drop(lists[i], TD_MEMORY);
        }
    }
}

static void whole_cpu(struct td_arena *arena, struct td_resource_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        if (td_str_equal(list->items[i].name, TD_STR("cpu"))) {
            (void)td_quantity_round_up(arena, &list->items[i].quantity, 0);
        }
    }
}

/* Does the VPA ask for whole CPUs for this container? */
static bool wants_whole_cpu(const struct td_json *annotations, td_str container)
{
    if (!td_json_is(annotations, TD_JSON_TYPE_OBJECT)) {
        return false;
    }
    for (const struct td_json *item = td_json_first_member(annotations); item; item = item->next) {
        size_t fixed = INTEGER_CPU_PREFIX.len + INTEGER_CPU_SUFFIX.len;
        if (item->key.len > fixed && td_str_starts_with(item->key, INTEGER_CPU_PREFIX) &&
            td_str_ends_with(item->key, INTEGER_CPU_SUFFIX) &&
            td_json_is(item, TD_JSON_TYPE_STRING) && td_str_equal(item->text, TD_STR("true"))) {
            td_str named = td_str_slice(item->key, INTEGER_CPU_PREFIX.len,
                                        item->key.len - INTEGER_CPU_SUFFIX.len);
            if (td_str_equal(named, container)) {
                return true;
            }
        }
    }
    return false;
}

static struct td_resource_account *account_of(struct td_account *account, td_str resource)
{
    if (!account) {
        return NULL;
    }
    return td_str_equal(resource, TD_STR("cpu")) ? &account->cpu : &account->memory;
}

/* The bounds of one container, as recommend_cap finds them. */
struct caps {
    const struct td_resource_list *min;        /* NULL: none */
    const struct td_resource_list *max;        /* of the policy; NULL: none */
    const struct td_resource_list *global_max; /* NULL: none */
};

static enum td_cap_source cap_quantity(const struct caps *caps, struct td_resource_amount *resource)
{
    enum td_cap_source source = TD_CAP_NONE;
    const struct td_quantity *min =
        caps->min ? td_resource_list_get(caps->min, resource->name) : NULL;
    if (min && td_quantity_sign(min) != 0 && td_quantity_compare(&resource->quantity, min) < 0) {
        resource->quantity = *min;
        source = TD_CAP_MIN_ALLOWED;
    }
    const struct td_quantity *max =
        caps->max ? td_resource_list_get(caps->max, resource->name) : NULL;
    enum td_cap_source max_source = max ? TD_CAP_MAX_ALLOWED : TD_CAP_GLOBAL_MAX;
    if (!max && caps->global_max) {
        max = td_resource_list_get(caps->global_max, resource->name);
    }
    if (max && td_quantity_sign(max) != 0 && td_quantity_compare(&resource->quantity, max) > 0) {
        resource->quantity = *max;
        source = max_source;
    }
    return source;
}

void td_recommend_cap(const struct td_resource_policy *policy,
                      const struct td_resource_list *global_max,
                      struct td_container_recommendation *container, struct td_account *account)
{
    const struct td_container_policy *own =
        policy ? td_vpa_container_policy(policy, container->container_name) : NULL;
    const struct caps caps = {.min = own ? &own->min_allowed : NULL,
                              .max = own ? &own->max_allowed : NULL,
                              .global_max = global_max};
    struct td_resource_list *lists[] = {&container->target, &container->lower_bound,
                                        &container->upper_bound};
    for (size_t l = 0; l < 3; l++) {
        for (size_t i = 0; i < lists[l]->count; i++) {
            enum td_cap_source source = cap_quantity(&caps, &lists[l]->items[i]);
            struct td_resource_account *reported = account_of(account, lists[l]->items[i].name);
            if (reported) {
                struct td_bound_account *bounds[] = {&reported->target, &reported->lower,
                                                     &reported->upper};
                bounds[l]->cap = source;
            }
        }
    }
}

void td_recommend_estimate(const struct td_recommend_terms *terms, const struct td_subject *subject,
                           size_t subject_count, struct td_estimate *ret,
                           struct td_account *account)
{
    const struct td_vertical_config *config = terms->config;
    const struct td_aggregate *aggregate = subject->aggregate;
    double share = 1.0 / (double)subject_count;
    int64_t min_cpu = td_amount_from_double(config->pod_min_cpu_milli * 0.001 * 1000.0);
    int64_t min_memory = td_amount_from_double(config->pod_min_memory_mib * 1024 * 1024);
    const struct td_estimator_input input = {
        .config = config,
        .aggregate = aggregate,
        .state = subject->estimator_state,
        .min_cpu_milli = td_amount_scale(min_cpu, share),
        .min_memory_bytes = td_amount_scale(min_memory, share),
        .now = terms->now,
        .is_display_only = terms->is_display_only,
    };
    *account = (struct td_account){
        .container = subject->container,
        .estimator = terms->estimator->name,
        .samples = aggregate->total_samples,
        .first_sample = aggregate->first_sample,
        .last_sample = aggregate->last_sample,
        .ooms = aggregate->oom.count,
        .last_oom = aggregate->oom.last_at,
        .oom_bytes = aggregate->oom.bytes,
        .oom_capped_bytes = aggregate->oom.capped_bytes,
        .short_runs = aggregate->oom.short_runs,
    };
    terms->estimator->recommend(&input, ret, account);
    account->cpu.is_controlled = td_learn_controls(&aggregate->policy, TD_LEARN_CPU);
    account->memory.is_controlled = td_learn_controls(&aggregate->policy, TD_LEARN_MEMORY);
    account->cpu.rounded_to = config->round_cpu_milli > 0 ? config->round_cpu_milli : 1;
    account->memory.rounded_to = config->round_memory_bytes > 0 ? config->round_memory_bytes : 1;
}

/* The memory target that was recommended before, policy and global maxima not applied; 0: none. */
static int64_t held_memory(const struct td_recommendation *held, td_str container)
{
    for (size_t i = 0; held && i < held->container_count; i++) {
        const struct td_container_recommendation *entry = &held->containers[i];
        if (td_str_equal(entry->container_name, container)) {
            const struct td_quantity *memory = td_resource_list_get(
                entry->has_uncapped_target ? &entry->uncapped_target : &entry->target,
                TD_STR("memory"));
            return memory ? td_quantity_value(memory) : 0;
        }
    }
    return 0;
}

static void hold_memory(const struct td_recommend_terms *terms, td_str container,
                        struct td_estimate *estimate, struct td_account *account)
{
    int64_t least = held_memory(terms->held, container);
    least = least < TD_AMOUNT_MAX ? least : TD_AMOUNT_MAX;
    if (estimate->memory.target >= least) {
        return;
    }
    estimate->memory.target = least;
    estimate->memory.upper = estimate->memory.upper > least ? estimate->memory.upper : least;
    account->memory.held = least;
    account->memory.held_until = terms->held_until;
}

void td_recommend(struct td_arena *arena, const struct td_recommend_terms *terms,
                  const struct td_subject *subjects, size_t count, struct td_recommendation *ret,
                  struct td_account **ret_accounts)
{
    *ret = (struct td_recommendation){.container_count = count};
    ret->containers = td_arena_array(arena, struct td_container_recommendation, count);
    struct td_account *accounts =
        ret_accounts ? td_arena_array(arena, struct td_account, count) : NULL;
    struct td_account scratch = {.container = TD_STR_EMPTY};
    for (size_t i = 0; i < count; i++) {
        struct td_account *account = accounts ? &accounts[i] : &scratch;
        struct td_estimate estimate;
        td_recommend_estimate(terms, &subjects[i], count, &estimate, account);
        hold_memory(terms, subjects[i].container, &estimate, account);
        struct td_container_recommendation *made = &ret->containers[i];
        *made = render_container(arena, terms->config, &subjects[i], &estimate);
        drop_unmeasured(made, account);
        if (terms->config->cpu_integer_post_processor &&
            wants_whole_cpu(terms->annotations, made->container_name)) {
            whole_cpu(arena, &made->target);
            whole_cpu(arena, &made->lower_bound);
            whole_cpu(arena, &made->upper_bound);
            whole_cpu(arena, &made->uncapped_target);
            account->cpu.is_whole_cpu = true;
        }
        td_recommend_cap(terms->policy, terms->global_max, made, account);
    }
    if (ret_accounts) {
        *ret_accounts = accounts;
    }
}
