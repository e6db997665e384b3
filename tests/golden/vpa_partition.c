/* Several VPAs of one target: who gets a sample, who has a pod, who is told of a conflict. Control
 * is asked of matching.h, samples of the recommender's model, which must agree; memory peaks are
 * recorded from the steps of container_state.h. */
#include "golden/golden.h"

#include <stdlib.h>

#include "decide/vertical/container_state.h"
#include "decide/vertical/matching.h"
#include "decide/vertical/recommender.h"
#include "decide/vertical/siblings.h"
#include "golden/hpa_support.h"

#define ENTRIES_MAX 256

struct part_pod {
    bool is_live;
    td_str key; /* "namespace/name" */
    struct td_meta meta;
    td_str vpa;                      /* that has it; empty: none */
    struct td_container_state state; /* the cases have one container a pod */
};

struct peak {
    td_str vpa;
    td_str container;
    int64_t bytes;
    td_time at;
};

struct part_case {
    struct td_arena *arena;
    bool gate;
    const struct td_json *objects;
    struct td_workload *workloads; /* one an object */
    size_t workload_count;
    struct td_vpa *vpas[ENTRIES_MAX];
    size_t vpa_count;
    struct part_pod pods[ENTRIES_MAX];
    size_t pod_count;
    struct peak peaks[ENTRIES_MAX];
    size_t peak_count;
    struct peak cpu[ENTRIES_MAX]; /* bytes counts samples */
    size_t cpu_count;
    struct td_recommender *model;
    struct td_json *samples;
    struct td_json *passes;
};

static const struct td_workload *part_workload(void *context, td_str kind, td_str namespace,
                                               td_str name)
{
    const struct part_case *run = context;
    for (size_t i = 0; i < run->workload_count; i++) {
        const struct td_workload *workload = &run->workloads[i];
        if (td_str_equal(workload->kind, kind) && td_str_equal(workload->namespace, namespace) &&
            td_str_equal(workload->name, name)) {
            return workload;
        }
    }
    return NULL;
}

static bool part_resource(void *context, td_str group, td_str kind, size_t index,
                          td_str *ret_resource)
{
    (void)context, (void)group;
    *ret_resource = kind; /* any name will do: it only comes back in part_scale */
    return index == 0;
}

static struct td_scale_answer part_scale(void *context, td_str group, td_str resource,
                                         td_str namespace, td_str name)
{
    const struct part_case *run = context;
    const struct td_workload *workload = part_workload(context, resource, namespace, name);
    struct td_scale_answer answer = {.code = TD_NOT_FOUND};
    (void)group;
    if (!workload) {
        return answer;
    }
    const struct td_json *object = td_json_at(run->objects, (size_t)(workload - run->workloads));
    if (td_json_get_bool(object, TD_STR("scalable"), false)) {
        answer.code = TD_OK;
        answer.uid = workload->uid;
        answer.selector = TD_STR(" "); /* selects every pod, and is not empty */
        answer.owners = workload->owners;
        answer.owner_count = workload->owner_count;
    }
    return answer;
}

/* {metadata: the flat form of the cases}. */
static struct td_json *with_meta(struct td_arena *arena, const struct td_json *flat)
{
    struct td_json *object = td_json_new_object(arena);
    td_json_set(arena, object, TD_STR("metadata"), td_json_copy(arena, flat, false));
    return object;
}

static int read_objects(struct part_case *run, struct td_error *err)
{
    size_t count = run->objects ? run->objects->count : 0;
    run->workloads = td_arena_array(run->arena, struct td_workload, count);
    for (const struct td_json *item = td_json_first_child(run->objects); item; item = item->next) {
        struct td_meta meta;
        int code = td_meta_decode(run->arena, with_meta(run->arena, item), &meta, err);
        if (code < 0) {
            return code;
        }
        run->workloads[run->workload_count++] = (struct td_workload){
            .namespace = meta.namespace,
            .kind = golden_text(item, TD_STR("kind")),
            .name = meta.name,
            .uid = meta.uid,
            .owners = meta.owners,
            .owner_count = meta.owner_count,
        };
    }
    return TD_OK;
}

static struct td_workload_source source_of(struct part_case *run)
{
    return (struct td_workload_source){.context = run,
                                       .get_workload = part_workload,
                                       .get_resource = part_resource,
                                       .get_scale = part_scale};
}

static td_str key_of(struct td_arena *arena, const struct td_meta *meta)
{
    return td_arena_format(arena, "%.*s/%.*s", TD_STR_ARG(meta->namespace), TD_STR_ARG(meta->name));
}

/* "group/Kind/name" for the recommender's model; without the gate the group does not count. */
static td_str target_text(struct part_case *run, td_str api_version, td_str kind, td_str name)
{
    td_str group = run->gate ? td_group_version_parse(api_version).group : TD_STR_EMPTY;
    return td_arena_format(run->arena, "%.*s/%.*s/%.*s", TD_STR_ARG(group), TD_STR_ARG(kind),
                           TD_STR_ARG(name));
}

static int set_vpa(struct part_case *run, const struct td_json *flat, td_time now,
                   struct td_error *err)
{
    struct td_arena *arena = run->arena;
    struct td_json *object = with_meta(arena, flat);
    struct td_json *meta = td_json_get(object, TD_STR("metadata"));
    struct td_json *spec = td_json_ensure_object(arena, object, TD_STR("spec"));
    td_str keys[] = {TD_STR("targetRef"), TD_STR("selector")};
    for (size_t i = 0; i < 2; i++) {
        const struct td_json *value = td_json_get(flat, keys[i]);
        if (value) {
            td_json_set(arena, spec, keys[i], td_json_copy(arena, value, false));
            (void)td_json_remove(meta, keys[i]);
        }
    }
    struct td_vpa *vpa = td_arena_new(arena, struct td_vpa);
    int code = td_vpa_decode(arena, object, vpa, err);
    if (code < 0) {
        return code;
    }
    size_t at = 0;
    td_str key = key_of(arena, &vpa->meta);
    while (at < run->vpa_count && !td_str_equal(key_of(arena, &run->vpas[at]->meta), key)) {
        at++;
    }
    run->vpas[at] = vpa;
    run->vpa_count += at == run->vpa_count;
    static const struct td_selector everything;
    const struct td_vpa_link link = {
        .vpa = vpa,
        .target_selector = &everything,
        .pod_selector = run->gate && vpa->has_selector ? &vpa->pod_selector : NULL,
        .target = target_text(run, vpa->target_api_version, vpa->target_kind, vpa->target_name),
    };
    return td_recommender_set_vpa(run->model, &link, now, err);
}

static void delete_vpa(struct part_case *run, td_str key)
{
    for (size_t i = 0; i < run->vpa_count; i++) {
        const struct td_meta *meta = &run->vpas[i]->meta;
        if (td_str_equal(key_of(run->arena, meta), key)) {
            (void)td_recommender_delete_vpa(run->model, meta->namespace, meta->name);
            run->vpas[i] = run->vpas[--run->vpa_count];
            return;
        }
    }
}

static struct part_pod *find_pod(struct part_case *run, td_str key)
{
    for (size_t i = 0; i < run->pod_count; i++) {
        if (run->pods[i].is_live && td_str_equal(run->pods[i].key, key)) {
            return &run->pods[i];
        }
    }
    return NULL;
}

/* Control of every pod, after anything changed; a pod that moved starts its window anew. */
static int update_control(struct part_case *run, td_time now, struct td_error *err)
{
    struct td_workload_source source = source_of(run);
    struct td_match_index index;
    struct td_top_memo memo;
    td_match_index_init(&index, run->arena, run->gate);
    td_top_memo_init(&memo, run->arena);
    int code = td_match_index_add(&index, &source, (const struct td_vpa *const *)run->vpas,
                                  run->vpa_count, TD_MATCH_ANY, NULL, err);
    for (size_t i = 0; i < run->pod_count && code == TD_OK; i++) {
        struct part_pod *pod = &run->pods[i];
        const struct td_controller *top = NULL;
        if (!pod->is_live) {
            continue;
        }
        code = td_top_memo_get(&memo, &source, &pod->meta, &top, NULL, err);
        const struct td_match_vpa *found =
            td_match_find(&index, top, pod->meta.namespace, &pod->meta.labels);
        td_str vpa = found ? found->key : TD_STR_EMPTY;
        if (!td_str_equal(vpa, pod->vpa)) {
            td_time last_cpu = pod->state.last_cpu;
            td_time last_memory = pod->state.last_memory;
            td_container_state_init(&pod->state);
            pod->state.last_cpu = last_cpu;
            pod->state.last_memory = last_memory;
        }
        pod->vpa = vpa;
        const struct td_pod_sight sight = {
            .namespace = pod->meta.namespace,
            .name = pod->meta.name,
            .labels = pod->meta.labels,
            .target =
                top ? target_text(run, top->api_version, top->kind, top->name) : TD_STR("nobody"),
            .phase = TD_POD_RUNNING,
        };
        struct td_tracked_pod *tracked;
        code = code < 0 ? code : td_recommender_set_pod(run->model, &sight, now, &tracked, err);
    }
    td_top_memo_done(&memo);
    td_match_index_done(&index);
    return code;
}

static void record(struct part_case *run, td_str vpa, td_str container,
                   const struct td_peak_change *change)
{
    for (size_t i = 0; i < run->peak_count && change->has_subtract; i++) {
        struct peak *peak = &run->peaks[i];
        if (td_str_equal(peak->vpa, vpa) && td_str_equal(peak->container, container) &&
            peak->bytes == change->subtract_bytes && peak->at == change->at) {
            *peak = run->peaks[--run->peak_count];
            break;
        }
    }
    if (change->has_add && run->peak_count < ENTRIES_MAX) {
        run->peaks[run->peak_count++] = (struct peak){
            .vpa = vpa, .container = container, .bytes = change->add_bytes, .at = change->at};
    }
}

static void count_cpu(struct part_case *run, td_str vpa, td_str container)
{
    size_t at = 0;
    while (at < run->cpu_count && !(td_str_equal(run->cpu[at].vpa, vpa) &&
                                    td_str_equal(run->cpu[at].container, container))) {
        at++;
    }
    if (at == run->cpu_count && at < ENTRIES_MAX) {
        run->cpu[run->cpu_count++] = (struct peak){.vpa = vpa, .container = container};
    }
    run->cpu[at].bytes++;
}

static int64_t amount_of(struct td_arena *arena, const struct td_json *item, td_str key,
                         bool is_milli)
{
    struct td_quantity quantity = td_quantity_new(0, TD_QUANTITY_DECIMAL_SI);
    (void)td_quantity_parse(arena, golden_text(item, key), &quantity, NULL);
    return is_milli ? td_quantity_milli(&quantity) : td_quantity_value(&quantity);
}

/* One sample or OOM: the model and the control of the pod must agree on whose it is. */
static int take_sample(struct part_case *run, const struct td_json *item, bool is_oom, td_time at,
                       size_t step, struct td_error *err)
{
    struct td_arena *arena = run->arena;
    struct part_pod *pod = find_pod(run, golden_text(item, TD_STR("pod")));
    struct td_json *entry = td_json_new_object(arena);
    golden_set_int(arena, entry, TD_STR("step"), (int64_t)step);
    td_str vpa = pod ? pod->vpa : TD_STR_EMPTY;
    if (pod) {
        td_str model = td_recommender_vpa_of(
            run->model, arena,
            td_recommender_find_pod(run->model, pod->meta.namespace, pod->meta.name));
        if (!td_str_equal(model, vpa)) {
            return td_error_set(err, TD_INVALID, "step %zu: control '%.*s', model '%.*s'", step,
                                TD_STR_ARG(vpa), TD_STR_ARG(model));
        }
    }
    td_json_set(arena, entry, TD_STR("vpa"),
                vpa.len > 0 ? td_json_new_string(arena, vpa) : td_json_new_null(arena));
    td_json_append(run->samples, entry);
    if (vpa.len == 0) {
        return TD_OK;
    }
    static const struct td_oom_rule rule = {
        .interval = 24 * TD_HOUR, .bump_up_ratio = 1.2, .min_bump_up = 104857600};
    td_str container = golden_text(item, TD_STR("container"));
    struct td_peak_change change = {.has_add = false};
    int64_t bytes = amount_of(arena, item, TD_STR("memory"), false);
    if (is_oom) {
        (void)td_container_oom(&pod->state, &rule, at, bytes, &change);
    } else {
        if (td_container_cpu(&pod->state, at, amount_of(arena, item, TD_STR("cpu"), true))) {
            count_cpu(run, vpa, container);
        }
        change = td_container_memory(&pod->state, &rule, at, bytes);
    }
    record(run, vpa, container, &change);
    return TD_OK;
}

static int compare_ages(const void *a, const void *b)
{
    return td_vpa_compare_age(*(const struct td_vpa *const *)a, *(const struct td_vpa *const *)b);
}

/* The older siblings that a VPA overlaps with, oldest first; NULL when none. */
static int find_elders(struct part_case *run, const struct td_vpa *vpa, struct td_json **ret,
                       struct td_error *err)
{
    const struct td_vpa *elders[ENTRIES_MAX];
    size_t count = 0;
    for (size_t i = 0; i < run->vpa_count; i++) {
        const struct td_vpa *other = run->vpas[i];
        if (td_vpa_is_sibling(vpa, other) && td_vpa_compare_age(other, vpa) < 0 &&
            !td_selector_disjoint(run->arena, vpa->has_selector ? &vpa->pod_selector : NULL,
                                  other->has_selector ? &other->pod_selector : NULL)
                 .is_disjoint) {
            elders[count++] = other;
        }
    }
    qsort(elders, count, sizeof(elders[0]), compare_ages);
    struct td_sibling_conflict conflict;
    bool is_told = td_vpa_find_elder(run->arena, vpa, (const struct td_vpa *const *)run->vpas,
                                     run->vpa_count, &conflict);
    if (is_told != (count > 0) || (is_told && conflict.sibling != elders[0])) {
        return td_error_set(err, TD_INVALID, "the condition of '%.*s' is wrong",
                            TD_STR_ARG(vpa->meta.name));
    }
    *ret = count > 0 ? td_json_new_array(run->arena) : NULL;
    for (size_t i = 0; i < count; i++) {
        td_json_append(*ret, td_json_new_string(run->arena, key_of(run->arena, &elders[i]->meta)));
    }
    return TD_OK;
}

static int take_pass(struct part_case *run, size_t step, struct td_error *err)
{
    struct td_arena *arena = run->arena;
    struct td_json *pass = td_json_new_object(arena);
    golden_set_int(arena, pass, TD_STR("step"), (int64_t)step);
    struct td_json *control = td_json_ensure_object(arena, pass, TD_STR("control"));
    struct td_json *conflicting = td_json_ensure_object(arena, pass, TD_STR("conflicting"));
    for (size_t i = 0; i < run->pod_count; i++) {
        const struct part_pod *pod = &run->pods[i];
        if (pod->is_live) {
            td_json_set(arena, control, pod->key,
                        pod->vpa.len > 0 ? td_json_new_string(arena, pod->vpa)
                                         : td_json_new_null(arena));
        }
    }
    for (size_t i = 0; i < run->vpa_count && run->gate; i++) {
        struct td_json *elders = NULL;
        int code = find_elders(run, run->vpas[i], &elders, err);
        if (code < 0) {
            return code;
        }
        if (elders) {
            td_json_set(arena, conflicting, key_of(arena, &run->vpas[i]->meta), elders);
        }
    }
    td_json_append(run->passes, pass);
    return TD_OK;
}

static int set_pod(struct part_case *run, const struct td_json *flat, struct td_error *err)
{
    struct part_pod *pod = &run->pods[run->pod_count++];
    *pod = (struct part_pod){.is_live = true};
    td_container_state_init(&pod->state);
    int code = td_meta_decode(run->arena, with_meta(run->arena, flat), &pod->meta, err);
    pod->key = key_of(run->arena, &pod->meta);
    return code;
}

static int take_step(struct part_case *run, const struct td_json *step, size_t index,
                     struct td_error *err)
{
    td_time at = golden_time(step, TD_STR("at"));
    const struct td_json *item;
    int code = TD_OK;
    if ((item = td_json_get(step, TD_STR("sample")))) {
        return take_sample(run, item, false, at, index, err);
    }
    if ((item = td_json_get(step, TD_STR("oom")))) {
        return take_sample(run, item, true, at, index, err);
    }
    if (td_json_get(step, TD_STR("pass"))) {
        return take_pass(run, index, err);
    }
    if ((item = td_json_get(step, TD_STR("pod")))) {
        code = set_pod(run, item, err);
    } else if ((item = td_json_get(step, TD_STR("labels")))) {
        struct part_pod *pod = find_pod(run, golden_text(item, TD_STR("pod")));
        if (pod) {
            pod->meta.labels = td_labels_from_json(run->arena, td_json_get(item, TD_STR("set")));
        }
    } else if ((item = td_json_get(step, TD_STR("deletePod")))) {
        struct part_pod *pod = find_pod(run, item->text);
        if (pod) {
            pod->is_live = false;
            td_recommender_delete_pod(run->model, pod->meta.namespace, pod->meta.name);
        }
    } else if ((item = td_json_get(step, TD_STR("vpa")))) {
        code = set_vpa(run, item, at, err);
    } else if ((item = td_json_get(step, TD_STR("deleteVpa")))) {
        delete_vpa(run, item->text);
    }
    return code < 0 ? code : update_control(run, at, err);
}

static int compare_peaks(const void *a, const void *b)
{
    const struct peak *left = a;
    const struct peak *right = b;
    if (left->at != right->at) {
        return left->at < right->at ? -1 : 1;
    }
    return left->bytes < right->bytes ? -1 : left->bytes > right->bytes;
}

static struct td_json *peaks_json(struct part_case *run)
{
    struct td_arena *arena = run->arena;
    struct td_json *out = td_json_new_object(arena);
    qsort(run->peaks, run->peak_count, sizeof(run->peaks[0]), compare_peaks);
    for (size_t i = 0; i < run->peak_count; i++) {
        const struct peak *peak = &run->peaks[i];
        struct td_json *containers = td_json_ensure_object(arena, out, peak->vpa);
        struct td_json *list = td_json_get(containers, peak->container);
        if (!list) {
            list = td_json_new_array(arena);
            td_json_set(arena, containers, peak->container, list);
        }
        struct td_json *entry = td_json_new_object(arena);
        golden_set_int(arena, entry, TD_STR("value"), peak->bytes);
        td_json_set(arena, entry, TD_STR("windowEnd"), golden_time_json(arena, peak->at));
        td_json_append(list, entry);
    }
    return out;
}

static struct td_json *cpu_json(struct part_case *run)
{
    struct td_json *out = td_json_new_object(run->arena);
    for (size_t i = 0; i < run->cpu_count; i++) {
        golden_set_int(run->arena, td_json_ensure_object(run->arena, out, run->cpu[i].vpa),
                       run->cpu[i].container, run->cpu[i].bytes);
    }
    return out;
}

static int run_steps(struct part_case *run, const struct td_json *in, struct td_error *err)
{
    int code = read_objects(run, err);
    const struct td_json *vpas = td_json_get(in, TD_STR("vpas"));
    for (const struct td_json *item = td_json_first_child(vpas); item && code == TD_OK;
         item = item->next) {
        code = set_vpa(run, item, 0, err);
    }
    size_t index = 0;
    const struct td_json *steps = td_json_get(in, TD_STR("steps"));
    for (const struct td_json *item = td_json_first_child(steps); item && code == TD_OK;
         item = item->next) {
        code = take_step(run, item, index++, err);
    }
    return code;
}

static int run_partition(struct td_arena *arena, const struct td_json *in, struct td_json **ret_out,
                         struct td_error *err)
{
    struct part_case *run = td_arena_new(arena, struct part_case);
    struct td_vertical_config config = td_vertical_config_default();
    run->arena = arena;
    run->gate = td_json_get_bool(in, TD_STR("gate"), false);
    run->objects = td_json_get(in, TD_STR("objects"));
    run->samples = td_json_new_array(arena);
    run->passes = td_json_new_array(arena);
    run->model = td_recommender_new(&config);
    int code = run_steps(run, in, err);
    td_recommender_free(run->model);
    if (code < 0) {
        return code;
    }
    struct td_json *out = td_json_new_object(arena);
    td_json_set(arena, out, TD_STR("samples"), run->samples);
    td_json_set(arena, out, TD_STR("passes"), run->passes);
    td_json_set(arena, out, TD_STR("memoryPeaks"), peaks_json(run));
    td_json_set(arena, out, TD_STR("cpuSamples"), cpu_json(run));
    *ret_out = out;
    return TD_OK;
}

/* Peaks and counts are not in every case. */
static bool is_same_partition(const struct td_json *expected, const struct td_json *got)
{
    for (const struct td_json *item = td_json_first_child(expected); item; item = item->next) {
        if (!td_json_equal(item, td_json_get(got, item->key))) {
            return false;
        }
    }
    return true;
}

const struct golden_topic golden_vpa_partition[] = {
    {.name = "seeds/vpa-partition", .run = run_partition, .is_same = is_same_partition},
    {.name = NULL},
};
