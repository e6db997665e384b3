/*
 * A sample of every workload. What autoscalers want is read when their objects change (advice), so
 * a sample only adds up numbers.
 */
#include "sim/world/world_sample.h"

#include <stdlib.h>

#include "api/hvpa/hvpa.h"
#include "api/vpa/vpa.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "decide/vertical/resourcelist.h"
#include "sim/world/world_private.h"

static const struct td_world_advice advice_none = {
    .target = {-1, -1}, .lower = {-1, -1}, .upper = {-1, -1}, .wanted = -1};

/* ---- What an autoscaler wants ---- */

static void amounts_add(const struct td_resource_list *list, double sums[TD_WORLD_RESOURCES])
{
    const struct td_quantity *cpu = td_resource_list_get(list, TD_CPU);
    const struct td_quantity *memory = td_resource_list_get(list, TD_MEMORY);
    if (cpu) {
        double before = sums[TD_WORLD_CPU] > 0 ? sums[TD_WORLD_CPU] : 0;
        sums[TD_WORLD_CPU] = before + (double)td_quantity_milli(cpu);
    }
    if (memory) {
        double before = sums[TD_WORLD_MEMORY] > 0 ? sums[TD_WORLD_MEMORY] : 0;
        sums[TD_WORLD_MEMORY] = before + (double)td_quantity_value(memory);
    }
}

/* Of the pod itself, or of its containers together. */
static void advice_take(const struct td_recommendation *from, struct td_world_advice *advice)
{
    if (from->pod.is_set) {
        amounts_add(&from->pod.target, advice->target);
        amounts_add(&from->pod.lower_bound, advice->lower);
        amounts_add(&from->pod.upper_bound, advice->upper);
        return;
    }
    for (size_t i = 0; i < from->container_count; i++) {
        const struct td_container_recommendation *container = &from->containers[i];
        amounts_add(&container->target, advice->target);
        amounts_add(&container->lower_bound, advice->lower);
        amounts_add(&container->upper_bound, advice->upper);
    }
}

struct td_world_advice td_world_read_advice(enum td_world_scaler_kind kind,
                                            const struct td_json *object)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_world_advice advice = advice_none;
    struct td_vpa vpa;
    struct td_hvpa hvpa;
    if (kind == TD_WORLD_VPA && td_vpa_decode(&arena, object, &vpa, NULL) == TD_OK) {
        advice_take(&vpa.recommendation, &advice);
    } else if (kind == TD_WORLD_HVPA &&
               td_hvpa_decode(&arena, object, &hvpa, NULL, NULL) == TD_OK) {
        advice_take(&hvpa.status.vertical, &advice);
        advice.wanted = hvpa.status.has_desired_replicas ? hvpa.status.desired_replicas : -1;
    } else if (kind == TD_WORLD_HPA) {
        const struct td_json *node = td_json_get_path(object, "status.desiredReplicas");
        int64_t wanted;
        bool is_told = td_json_is(node, TD_JSON_TYPE_NUMBER) && td_json_to_int64(node, &wanted);
        advice.wanted = is_told ? wanted : -1;
    }
    return advice;
}

/* The first that sizes its pods, and the first that counts them. */
static void sample_advice(struct td_world *world, const struct td_world_workload *workload,
                          struct td_world_sample *sample)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    const struct td_world_pod *pod = td_world_pod_of_role(workload, sample->role);
    bool is_sized = false;
    bool is_counted = false;
    for (const struct td_world_scaler *s = workload->scalers; s; s = s->next) {
        bool sizes = s->kind != TD_WORLD_HPA && !is_sized;
        bool counts = s->kind != TD_WORLD_VPA && !is_counted;
        if ((!sizes && !counts) || !td_world_scaler_selects(world, &arena, s, pod)) {
            continue;
        }
        for (size_t r = 0; sizes && r < TD_WORLD_RESOURCES; r++) {
            sample->target[r] = s->advice.target[r];
            sample->lower[r] = s->advice.lower[r];
            sample->upper[r] = s->advice.upper[r];
        }
        sample->wanted = counts ? s->advice.wanted : sample->wanted;
        is_sized = is_sized || sizes;
        is_counted = is_counted || counts;
    }
}

/* ---- What its pods use ---- */

static int compare_doubles(const void *a, const void *b)
{
    double left = *(const double *)a;
    double right = *(const double *)b;
    return (left > right) - (left < right);
}

static void sample_use(struct td_world *world, const struct td_world_workload *workload,
                       struct td_world_sample *sample)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    double *values[TD_WORLD_RESOURCES];
    size_t count = 0;
    for (size_t r = 0; r < TD_WORLD_RESOURCES; r++) {
        values[r] = td_arena_array(&arena, double, workload->pod_count + 1);
    }
    for (const struct td_world_pod *pod = workload->first_pod; pod; pod = pod->next) {
        bool is_ours = sample->role.len == 0 || td_str_equal(pod->role, sample->role);
        const struct td_engine_pod *body =
            is_ours ? td_engine_find_pod(world->engine, pod->ns, pod->name) : NULL;
        if (body) {
            struct td_want use = td_engine_pod_use(body);
            values[TD_WORLD_CPU][count] = use.cpu_milli;
            values[TD_WORLD_MEMORY][count++] = use.memory_bytes;
        }
    }
    for (size_t r = 0; count > 0 && r < TD_WORLD_RESOURCES; r++) {
        qsort(values[r], count, sizeof(values[r][0]), compare_doubles);
        sample->use_middle[r] = values[r][(count - 1) / 2];
        sample->use_most[r] = values[r][count - 1];
    }
}

static double of_one(int64_t sum, size_t count)
{
    return sum > 0 && count > 0 ? (double)sum / (double)count : -1;
}

static void sample_flow(struct td_world *world, struct td_world_sample *sample)
{
    const struct td_world_flow *entry = td_map_get(
        &world->flow_entries, td_world_key(world, sample->ns, sample->kind, sample->name));
    struct td_engine_flow flow;
    if (entry && td_engine_flow(world->engine, (size_t)(entry - world->flows), &flow)) {
        sample->latency_seconds = flow.latency_seconds;
        sample->served_per_second = flow.served_per_second;
    }
}

static struct td_world_sample sample_of(struct td_world *world,
                                        const struct td_world_workload *workload,
                                        const struct td_engine_workload *load)
{
    bool has_replicas = load->role.len == 0 && workload->replicas >= 0;
    struct td_world_sample sample = {
        .ns = load->ns,
        .kind = load->kind,
        .name = load->name,
        .role = load->role,
        .pod_count = load->pod_count,
        .ready_count = load->ready_count,
        .replicas = has_replicas ? workload->replicas : (int64_t)load->pod_count,
        .has_replicas = has_replicas,
        .wanted = -1,
        .use_middle = {-1, -1},
        .use_most = {-1, -1},
        .request = {of_one(load->limits.cpu_request_milli, load->pod_count),
                    of_one(load->limits.memory_request_bytes, load->pod_count)},
        .limit = {of_one(load->limits.cpu_limit_milli, load->pod_count),
                  of_one(load->limits.memory_limit_bytes, load->pod_count)},
        .target = {-1, -1},
        .lower = {-1, -1},
        .upper = {-1, -1},
        .throttled_cpu_seconds = load->totals.throttled_cpu_seconds,
        .wanted_cpu_seconds = load->totals.wanted_cpu_seconds,
        .latency_seconds = -1,
        .served_per_second = -1,
    };
    sample_use(world, workload, &sample);
    sample_flow(world, &sample);
    sample_advice(world, workload, &sample);
    return sample;
}

struct td_world_sum td_world_take_sample(struct td_world *world, td_world_sample_fn fn,
                                         void *context)
{
    struct td_world_sum sum = {
        .room = {world->cpu_capacity_milli, world->memory_capacity_bytes},
        .pod_count = world->pods.count - world->over_count,
        .pending_count = world->pending_count,
        .kill_count = world->counts.kills,
        .eviction_count = world->counts.evictions,
        .resize_count = world->counts.resizes,
    };
    struct td_engine_workload load;
    size_t position = 0;
    while (td_engine_next_workload(world->engine, &position, &load)) {
        const struct td_world_workload *workload =
            td_world_find_workload(world, load.ns, load.kind, load.name);
        sum.requested[TD_WORLD_CPU] += (double)load.limits.cpu_request_milli;
        sum.requested[TD_WORLD_MEMORY] += (double)load.limits.memory_request_bytes;
        sum.used[TD_WORLD_CPU] += load.use.cpu_milli;
        sum.used[TD_WORLD_MEMORY] += load.use.memory_bytes;
        bool is_there =
            workload && (load.pod_count > 0 ||
                         (workload->has_object && (load.role.len > 0 || !workload->roles)));
        if (is_there) {
            const struct td_world_sample sample = sample_of(world, workload, &load);
            fn(context, &sample);
        }
    }
    return sum;
}
