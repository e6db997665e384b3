/* Several VPAs of one target: who gets a sample, who has a pod, who is told of a conflict. Control
 * is asked of matching.h, samples of the recommender's model, which must agree; what was learnt is
 * read from the checkpoints that the model would write. */
#include "golden/golden.h"

#include <math.h>
#include <stdlib.h>

#include "decide/vertical/recommender/recommender.h"
#include "decide/vertical/siblings.h"
#include "decide/vertical/updater/matching.h"
#include "golden/hpa_support.h"

#define ENTRIES_MAX 256
#define TIME_END ((td_time)4102444800 * TD_SECOND) /* 2100: every memory window has ended */
#define TOTAL_TOLERANCE 1e-9                       /* the order of additions shows */

struct part_pod {
    bool is_live;
    td_str key; /* "namespace/name" */
    struct td_meta meta;
    td_str vpa; /* that has it; empty: none */
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

/* Control of every pod, after anything changed. */
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
        pod->vpa = vpa;
        const struct td_observed_pod observed = {
            .namespace = pod->meta.namespace,
            .name = pod->meta.name,
            .labels = pod->meta.labels,
            .target =
                top ? target_text(run, top->api_version, top->kind, top->name) : TD_STR("nobody"),
            .phase = TD_POD_RUNNING,
        };
        struct td_tracked_pod *tracked;
        code = code < 0 ? code : td_recommender_set_pod(run->model, &observed, now, &tracked, err);
    }
    td_top_memo_done(&memo);
    td_match_index_done(&index);
    return code;
}

static int64_t amount_of(struct td_arena *arena, const struct td_json *item, td_str key,
                         bool is_milli)
{
    struct td_quantity quantity = td_quantity_new(0, TD_QUANTITY_DECIMAL_SI);
    (void)td_quantity_parse(arena, golden_text(item, key), &quantity, NULL);
    return is_milli ? td_quantity_milli(&quantity) : td_quantity_value(&quantity);
}

static bool is_taken(enum td_feed fed)
{
    return fed != TD_FEED_UNMANAGED && fed != TD_FEED_NO_CONTAINER;
}

/* The model learns it, if a VPA has the pod. The cases do not list containers: one is there from
 * its first sample on. */
static int feed_model(struct part_case *run, const struct part_pod *pod, const struct td_json *item,
                      bool is_oom, td_time at, td_str *ret_vpa, struct td_error *err)
{
    struct td_arena *arena = run->arena;
    struct td_tracked_pod *tracked =
        td_recommender_find_pod(run->model, pod->meta.namespace, pod->meta.name);
    td_str container = golden_text(item, TD_STR("container"));
    int64_t bytes = amount_of(arena, item, TD_STR("memory"), false);
    int code = td_recommender_set_container(run->model, &tracked, container, 0, at, err);
    if (code < 0) {
        return code;
    }
    enum td_feed fed;
    if (is_oom) {
        fed = td_recommender_oom(run->model, tracked, container, at,
                                 &(struct td_oom_kill){.request_bytes = bytes}, at);
    } else {
        (void)td_recommender_sample(run->model, tracked, container, TD_LEARN_CPU, at,
                                    amount_of(arena, item, TD_STR("cpu"), true), at);
        fed = td_recommender_sample(run->model, tracked, container, TD_LEARN_MEMORY, at, bytes, at);
    }
    *ret_vpa = is_taken(fed) ? td_recommender_vpa_of(run->model, arena, tracked) : TD_STR_EMPTY;
    return TD_OK;
}

/* One sample or OOM: the model and the control of the pod must agree on whose it is. */
static int take_sample(struct part_case *run, const struct td_json *item, bool is_oom, td_time at,
                       size_t step, struct td_error *err)
{
    struct td_arena *arena = run->arena;
    struct part_pod *pod = find_pod(run, golden_text(item, TD_STR("pod")));
    td_str vpa = TD_STR_EMPTY;
    if (pod) {
        int code = feed_model(run, pod, item, is_oom, at, &vpa, err);
        if (code < 0) {
            return code;
        }
        if (!td_str_equal(pod->vpa, vpa)) {
            return td_error_set(err, TD_INVALID, "step %zu: control '%.*s', model '%.*s'", step,
                                TD_STR_ARG(pod->vpa), TD_STR_ARG(vpa));
        }
    }
    struct td_json *entry = td_json_new_object(arena);
    golden_set_int(arena, entry, TD_STR("step"), (int64_t)step);
    td_json_set(arena, entry, TD_STR("vpa"),
                vpa.len > 0 ? td_json_new_string(arena, vpa) : td_json_new_null(arena));
    td_json_append(run->samples, entry);
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
    bool is_reported = td_vpa_find_elder(run->arena, vpa, (const struct td_vpa *const *)run->vpas,
                                         run->vpa_count, &conflict);
    if (is_reported != (count > 0) || (is_reported && conflict.sibling != elders[0])) {
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

/* What the model would store: of each VPA and container the memory histogram and the number of CPU
 * samples. */
static int learnt_json(struct part_case *run, struct td_json *out, struct td_error *err)
{
    struct td_arena *arena = run->arena;
    struct td_json *peaks = td_json_ensure_object(arena, out, TD_STR("memoryPeaks"));
    struct td_json *samples = td_json_ensure_object(arena, out, TD_STR("cpuSamples"));
    for (size_t i = 0; i < run->vpa_count; i++) {
        const struct td_meta *meta = &run->vpas[i]->meta;
        struct td_stored_checkpoint *stored;
        size_t count;
        int code = td_recommender_store(run->model, arena, meta->namespace, meta->name, TIME_END,
                                        &stored, &count, err);
        for (size_t c = 0; c < count && code == TD_OK; c++) {
            const struct td_checkpoint *checkpoint = &stored[c].checkpoint;
            td_str key = key_of(arena, meta);
            if (checkpoint->memory.total_weight > 0) {
                td_json_set(arena, td_json_ensure_object(arena, peaks, key),
                            checkpoint->container_name,
                            td_histogram_checkpoint_encode(arena, &checkpoint->memory));
            }
            if (checkpoint->total_samples > 0) {
                golden_set_int(arena, td_json_ensure_object(arena, samples, key),
                               checkpoint->container_name, checkpoint->total_samples);
            }
        }
        if (code < 0) {
            return code;
        }
    }
    return TD_OK;
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
    struct td_json *out = td_json_new_object(arena);
    int code = run_steps(run, in, err);
    if (code == TD_OK) {
        code = learnt_json(run, out, err);
    }
    td_recommender_free(run->model);
    if (code < 0) {
        return code;
    }
    td_json_set(arena, out, TD_STR("samples"), run->samples);
    td_json_set(arena, out, TD_STR("passes"), run->passes);
    *ret_out = out;
    return TD_OK;
}

/* The histogram that a list of peaks makes. */
static struct td_histogram_checkpoint histogram_of(const struct td_json *peaks)
{
    const struct td_vertical_config config = td_vertical_config_default();
    struct td_histogram_checkpoint made;
    struct td_decaying histogram;
    td_decaying_init(&histogram, &config.memory);
    for (const struct td_json *item = td_json_first_item(peaks); item; item = item->next) {
        td_decaying_add(&histogram, &config.memory,
                        (double)td_json_get_int64(item, TD_STR("value"), 0), 1.0,
                        td_time_to_instant(golden_time(item, TD_STR("windowEnd"))));
    }
    td_decaying_save(&histogram, &made);
    td_decaying_done(&histogram);
    return made;
}

/* Totals are as of their references, which depend on the order of additions. */
static bool is_same_histogram(const struct td_json *peaks, const struct td_json *got)
{
    const struct td_vertical_config config = td_vertical_config_default();
    struct td_histogram_checkpoint expected = histogram_of(peaks);
    struct td_histogram_checkpoint found;
    if (td_histogram_checkpoint_decode(got, &found, NULL) < 0) {
        return false;
    }
    for (size_t i = 0; i < TD_CHECKPOINT_BUCKETS_MAX; i++) {
        if (expected.weights[i] != found.weights[i]) {
            return false;
        }
    }
    double half_lives = (double)td_instant_since(found.reference, expected.reference) /
                        (double)config.memory.half_life;
    double total = found.total_weight * exp2(half_lives);
    return fabs(total - expected.total_weight) <= TOTAL_TOLERANCE * expected.total_weight;
}

static bool are_same_peaks(const struct td_json *expected, const struct td_json *got)
{
    if (expected->count != got->count) {
        return false;
    }
    for (const struct td_json *vpa = td_json_first_member(expected); vpa; vpa = vpa->next) {
        const struct td_json *found = td_json_get(got, vpa->key);
        if (!found || found->count != vpa->count) {
            return false;
        }
        for (const struct td_json *list = td_json_first_member(vpa); list; list = list->next) {
            const struct td_json *histogram = td_json_get(found, list->key);
            if (!histogram || !is_same_histogram(list, histogram)) {
                return false;
            }
        }
    }
    return true;
}

/* Peaks and counts are not in every case. */
static bool is_same_partition(const struct td_json *expected, const struct td_json *got)
{
    for (const struct td_json *item = td_json_first_child(expected); item; item = item->next) {
        const struct td_json *found = td_json_get(got, item->key);
        bool is_same = td_str_equal(item->key, TD_STR("memoryPeaks")) ? are_same_peaks(item, found)
                                                                      : td_json_equal(item, found);
        if (!is_same) {
            return false;
        }
    }
    return true;
}

const struct golden_topic golden_vpa_partition[] = {
    {.name = "seeds/vpa-partition", .run = run_partition, .is_same = is_same_partition},
    {.name = NULL},
};
