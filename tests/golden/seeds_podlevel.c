/* Pod-level resources: what the recommender derives, what is written to a pod. */
#include "golden/golden.h"
#include "golden/hpa_support.h"
#include "golden/vpa_support.h"

#include <string.h>

#include "decide/vertical/patch/podpatch.h"
#include "decide/vertical/patch/resizepatch.h"
#include "decide/vertical/resourcelist.h"
#include "kube/patch/patch.h"

static void drop_uncontrolled(struct td_resource_list *list,
                              const struct td_container_policy *policy)
{
    const td_str names[] = {TD_CPU, TD_MEMORY};
    for (size_t i = 0; i < 2; i++) {
        if (!td_vpa_controls(policy, names[i])) {
            td_resource_list_drop(list, names[i]);
        }
    }
}

/* Mode Off and controlledResources, which estimators see to before. */
static void keep_controlled(struct td_recommendation *recommendation,
                            const struct td_resource_policy *policy)
{
    size_t kept = 0;
    for (size_t i = 0; i < recommendation->container_count; i++) {
        struct td_container_recommendation entry = recommendation->containers[i];
        const struct td_container_policy *own =
            td_vpa_container_policy(policy, entry.container_name);
        drop_uncontrolled(&entry.target, own);
        drop_uncontrolled(&entry.lower_bound, own);
        drop_uncontrolled(&entry.upper_bound, own);
        drop_uncontrolled(&entry.uncapped_target, own);
        if (!own || !own->is_off) {
            recommendation->containers[kept++] = entry;
        }
    }
    recommendation->container_count = kept;
}

static struct td_pod_level_use read_use(struct td_arena *arena, const struct td_json *in)
{
    struct td_pod_level_use use = {.has_cpu = false};
    const struct td_json *pods = td_json_get(in, TD_STR("pods"));
    if (!td_json_get_bool(in, TD_STR("gate"), false)) {
        return use;
    }
    for (const struct td_json *item = td_json_first_child(pods); item; item = item->next) {
        struct td_pod pod;
        struct td_json *tree = td_json_new_object(arena);
        struct td_json *spec = td_json_ensure_object(arena, tree, TD_STR("spec"));
        const struct td_json *resources = td_json_get(item, TD_STR("resources"));
        bool is_live = td_str_equal(golden_text(item, TD_STR("phase")), TD_STR("Running")) &&
                       td_json_get_bool(item, TD_STR("managed"), false);
        if (resources) {
            td_json_set(arena, spec, TD_STR("resources"), td_json_copy(arena, resources, false));
        }
        if (is_live && td_pod_decode(arena, tree, &pod, NULL) == TD_OK) {
            td_pod_level_use_add(&use, &pod);
        }
    }
    return use;
}

static int read_flags(struct td_arena *arena, const struct td_json *in,
                      struct td_resource_list *ret, struct td_error *err)
{
    const struct td_json *flags = td_json_get(in, TD_STR("flags"));
    const struct {
        td_str flag;
        td_str resource;
    } rows[] = {{TD_STR("podMaxAllowedCpu"), TD_CPU}, {TD_STR("podMaxAllowedMemory"), TD_MEMORY}};
    *ret = (struct td_resource_list){.items = NULL, .count = 0};
    for (size_t i = 0; i < 2; i++) {
        const struct td_json *flag = td_json_get(flags, rows[i].flag);
        struct td_quantity quantity;
        if (!flag) {
            continue;
        }
        int code = td_quantity_from_json(arena, flag, &quantity, err);
        if (code < 0) {
            return code;
        }
        td_resource_list_set(arena, ret, rows[i].resource, &quantity);
    }
    return TD_OK;
}

static struct td_json *pod_json(struct td_arena *arena, const struct td_pod_recommendation *pod)
{
    struct td_json *object = td_json_new_object(arena);
    td_json_set(arena, object, TD_STR("target"), td_resource_list_json(arena, &pod->target));
    td_json_set(arena, object, TD_STR("lowerBound"),
                td_resource_list_json(arena, &pod->lower_bound));
    td_json_set(arena, object, TD_STR("upperBound"),
                td_resource_list_json(arena, &pod->upper_bound));
    return object;
}

static int run_recommendation(struct td_arena *arena, const struct td_json *in,
                              struct td_json **ret_out, struct td_error *err)
{
    struct td_vpa vpa;
    struct td_resource_list pod_max;
    int code = golden_vpa_of(arena, td_json_get(in, TD_STR("resourcePolicy")),
                             td_json_get(in, TD_STR("containerRecommendations")), &vpa, err);
    if (code == TD_OK) {
        code = read_flags(arena, in, &pod_max, err);
    }
    if (code < 0) {
        return code;
    }
    keep_controlled(&vpa.recommendation, &vpa.policy);
    struct td_recommendation made = td_cap_by_policy(arena, &vpa.recommendation, &vpa.policy, NULL);
    struct td_cap_steps steps = {.items = NULL};
    td_pod_level_recommend(arena,
                           &(struct td_pod_level_terms){.use = read_use(arena, in),
                                                        .policy = &vpa.policy,
                                                        .pod_max = &pod_max},
                           &made, &steps);
    *ret_out = td_json_new_object(arena);
    td_json_set(arena, *ret_out, TD_STR("podRecommendation"),
                made.pod.is_set ? pod_json(arena, &made.pod) : td_json_new_null(arena));
    td_json_set(arena, *ret_out, TD_STR("containerRecommendations"),
                golden_recommendation_json(arena, &made));
    return TD_OK;
}

/* The pod, the VPA and the LimitRanges of a case as API objects. */
static struct td_json *whole_pod(struct td_arena *arena, const struct td_json *in)
{
    const struct td_json *given = td_json_get(in, TD_STR("pod"));
    struct td_json *pod = td_json_new_object(arena);
    struct td_json *meta = td_json_ensure_object(arena, pod, TD_STR("metadata"));
    struct td_json *spec = td_json_ensure_object(arena, pod, TD_STR("spec"));
    golden_set_text(arena, meta, TD_STR("name"), golden_text(given, TD_STR("name")));
    const td_str members[] = {TD_STR("resources"), TD_STR("containers")};
    for (size_t i = 0; i < 2; i++) {
        const struct td_json *member = td_json_get(given, members[i]);
        if (member) {
            td_json_set(arena, spec, members[i], td_json_copy(arena, member, false));
        }
    }
    return pod;
}

static struct td_json *whole_vpa(struct td_arena *arena, const struct td_json *in)
{
    struct td_json *vpa = td_json_new_object(arena);
    struct td_json *meta = td_json_ensure_object(arena, vpa, TD_STR("metadata"));
    struct td_json *spec = td_json_ensure_object(arena, vpa, TD_STR("spec"));
    struct td_json *update = td_json_ensure_object(arena, spec, TD_STR("updatePolicy"));
    const struct td_json *policy = td_json_get(in, TD_STR("resourcePolicy"));
    const struct td_json *recommendation = td_json_get(in, TD_STR("recommendation"));
    golden_set_text(arena, meta, TD_STR("name"), TD_STR("my-vpa"));
    golden_set_text(arena, update, TD_STR("updateMode"), golden_text(in, TD_STR("updateMode")));
    if (policy) {
        td_json_set(arena, spec, TD_STR("resourcePolicy"), td_json_copy(arena, policy, false));
    }
    if (recommendation) {
        struct td_json *status = td_json_ensure_object(arena, vpa, TD_STR("status"));
        td_json_set(arena, status, TD_STR("recommendation"),
                    td_json_copy(arena, recommendation, false));
    }
    return vpa;
}

static struct td_json *whole_limit_ranges(struct td_arena *arena, const struct td_json *in)
{
    struct td_json *objects = td_json_new_array(arena);
    const struct td_json *given = td_json_get(in, TD_STR("limitRanges"));
    for (const struct td_json *item = td_json_first_child(given); item; item = item->next) {
        struct td_json *object = td_json_new_object(arena);
        struct td_json *meta = td_json_ensure_object(arena, object, TD_STR("metadata"));
        struct td_json *spec = td_json_ensure_object(arena, object, TD_STR("spec"));
        golden_set_text(arena, meta, TD_STR("name"), golden_text(item, TD_STR("name")));
        td_json_set(arena, spec, TD_STR("limits"),
                    td_json_copy(arena, td_json_get(item, TD_STR("limits")), false));
        td_json_append(objects, object);
    }
    return objects;
}

/* What a case made of the pod, whichever of the two ways it went. */
struct outcome {
    struct td_json *pod; /* patched */
    td_str updates;      /* vpaUpdates */
    bool is_rejected;
    bool is_warned;
    bool is_pod_level;
    struct td_changes changes;
    struct td_stanza stanza;
};

static int admit(struct td_arena *arena, const struct td_pod_patch_input *input,
                 struct outcome *ret, struct td_error *err)
{
    struct td_pod_patch made;
    int code = td_pod_patch(arena, input, &made, err);
    if (code < 0) {
        return code;
    }
    ret->is_rejected = made.is_rejected;
    ret->is_warned = !made.is_rejected && made.message.len > 0;
    ret->is_pod_level = made.is_pod_level;
    ret->changes = made.changes;
    ret->stanza = made.stanza;
    return td_patch_json(arena, input->pod->tree, made.patches, &ret->pod, err);
}

static int resize(struct td_arena *arena, const struct td_resize_input *input, struct outcome *ret,
                  struct td_error *err)
{
    struct td_resize_patch made = {.resize = NULL};
    int code = td_resize_patch(arena, input, &made, err);
    if (code < 0 && code != TD_NOT_FOUND) {
        return code;
    }
    ret->is_pod_level = made.is_pod_level;
    ret->changes = made.changes;
    ret->stanza = made.stanza;
    if (code == TD_NOT_FOUND) {
        return TD_OK; /* nothing is sent: the pod stays as it is */
    }
    struct td_json *resized = NULL;
    code = td_patch_json(arena, input->pod->tree, made.resize, &resized, err);
    return code < 0 ? code : td_patch_json(arena, resized, made.pod, &ret->pod, err);
}

static void set_lists(struct td_arena *arena, struct td_json *into, const struct td_json *resources)
{
    const td_str names[] = {TD_STR("requests"), TD_STR("limits")};
    for (size_t i = 0; i < 2; i++) {
        const struct td_json *list = td_json_get(resources, names[i]);
        td_json_set(arena, into, names[i],
                    list ? td_json_copy(arena, list, false) : td_json_new_object(arena));
    }
}

static void report_values(struct td_arena *arena, const struct td_json *pod, struct td_json *out)
{
    const struct td_json *spec = td_json_get(pod, TD_STR("spec"));
    const struct td_json *list = td_json_get(spec, TD_STR("containers"));
    struct td_json *containers = td_json_new_array(arena);
    for (const struct td_json *item = td_json_first_child(list); item; item = item->next) {
        struct td_json *object = td_json_new_object(arena);
        golden_set_text(arena, object, TD_STR("name"), golden_text(item, TD_STR("name")));
        set_lists(arena, object, td_json_get(item, TD_STR("resources")));
        td_json_append(containers, object);
    }
    set_lists(arena, td_json_ensure_object(arena, out, TD_STR("pod")),
              td_json_get(spec, TD_STR("resources")));
    td_json_set(arena, out, TD_STR("containers"), containers);
}

static const char *note_name(enum td_stanza_note_kind kind)
{
    switch (kind) {
    case TD_STANZA_REQUEST:
        return "pod-request";
    case TD_STANZA_LIMIT:
        return "pod-limit";
    case TD_STANZA_LIMIT_NOT_SET:
        return "pod-limit-not-set";
    case TD_STANZA_CAPPED_MIN:
        return "pod-capped-min";
    case TD_STANZA_CAPPED_MAX:
        return "pod-capped-max";
    case TD_STANZA_REQUEST_RAISED:
        return "pod-request-raised";
    case TD_STANZA_LIMIT_RAISED:
        return "pod-limit-raised";
    case TD_STANZA_CONTAINER_LIMIT_LOWERED:
        return "container-limit-lowered";
    case TD_STANZA_CAPPED_NODE:
    case TD_STANZA_LIMIT_CAPPED:
    default:
        return NULL;
    }
}

static bool is_reported(td_str updates, td_str note)
{
    return updates.len > 0 && memmem(updates.ptr, updates.len, note.ptr, note.len) != NULL;
}

static void report_notes(struct td_arena *arena, const struct outcome *outcome, struct td_json *out)
{
    struct td_json *notes = td_json_new_array(arena);
    for (size_t i = 0; i < outcome->stanza.note_count; i++) {
        const struct td_stanza_note *note = &outcome->stanza.notes[i];
        const char *name = note_name(note->kind);
        if (!name || !is_reported(outcome->updates, td_stanza_note_text(arena, note))) {
            continue;
        }
        struct td_json *object = td_json_new_object(arena);
        golden_set_text(arena, object, TD_STR("note"), td_str_from(name));
        golden_set_text(arena, object, TD_STR("resource"), note->resource);
        if (note->container.len > 0) {
            golden_set_text(arena, object, TD_STR("container"), note->container);
        }
        td_json_append(notes, object);
    }
    td_json_set(arena, out, TD_STR("notes"), notes);
}

static void report_account(struct td_arena *arena, const struct td_pod *pod,
                           const struct outcome *outcome, struct td_json *out)
{
    struct td_json *skipped = td_json_new_array(arena);
    struct td_json *targets = td_json_new_object(arena);
    const struct td_recommendation *capped = &outcome->changes.capped.recommendation;
    if (outcome->stanza.lacks_recommendation) {
        td_json_append(skipped, td_json_new_string(arena, TD_STR("pod")));
    }
    for (size_t i = 0; i < pod->container_count; i++) {
        if (outcome->changes.containers[i].lacks_recommendation) {
            td_str text =
                td_arena_format(arena, "container:%.*s", TD_STR_ARG(pod->containers[i].name));
            td_json_append(skipped, td_json_new_string(arena, text));
        }
    }
    for (size_t i = 0; i < capped->container_count; i++) {
        td_json_set(arena, targets, capped->containers[i].container_name,
                    td_resource_list_json(arena, &capped->containers[i].target));
    }
    td_json_set(arena, out, TD_STR("warning"), td_json_new_bool(arena, outcome->is_warned));
    td_json_set(arena, out, TD_STR("podRecommendation"),
                pod_json(arena, &outcome->stanza.recommendation));
    td_json_set(arena, out, TD_STR("containerTargets"), targets);
    td_json_set(arena, out, TD_STR("skipped"), skipped);
    report_notes(arena, outcome, out);
}

static int decide(struct td_arena *arena, const struct td_json *in, const struct td_pod *pod,
                  const struct td_limit_ranges *limits, struct outcome *ret, struct td_error *err)
{
    struct td_vpa vpa;
    struct td_vpa_gates gates = {.pod_level_resources =
                                     td_json_get_bool(in, TD_STR("gate"), false)};
    td_str flag = golden_text(in, TD_STR("containerLimitRange"));
    int code = td_vpa_decode(arena, whole_vpa(arena, in), &vpa, err);
    if (code < 0) {
        return code;
    }
    if (td_str_equal(golden_text(in, TD_STR("action")), TD_STR("create"))) {
        return admit(arena,
                     &(struct td_pod_patch_input){.pod = pod,
                                                  .vpa = &vpa,
                                                  .limits = limits,
                                                  .gates = gates,
                                                  .warns_of_limit_range =
                                                      td_str_equal(flag, TD_STR("warn"))},
                     ret, err);
    }
    code = resize(arena,
                  &(struct td_resize_input){
                      .pod = pod, .vpa = &vpa, .limits = limits, .gates = gates, .now = 0},
                  ret, err);
    return code;
}

static int run_patch(struct td_arena *arena, const struct td_json *in, struct td_json **ret_out,
                     struct td_error *err)
{
    struct td_pod pod;
    struct td_limit_ranges limits;
    struct td_json *tree = whole_pod(arena, in);
    struct outcome outcome = {.pod = tree};
    int code = td_pod_decode(arena, tree, &pod, err);
    if (code == TD_OK) {
        code =
            golden_limit_ranges(arena, whole_limit_ranges(arena, in), TD_STR_EMPTY, &limits, err);
    }
    bool is_considered = td_json_get_bool(in, TD_STR("managed"), false) &&
                         !td_str_equal(golden_text(in, TD_STR("updateMode")), TD_STR("Off"));
    if (code == TD_OK && is_considered) {
        code = decide(arena, in, &pod, &limits, &outcome, err);
    }
    if (code < 0) {
        return code;
    }
    struct td_json *out = td_json_new_object(arena);
    td_json_set(arena, out, TD_STR("rejected"), td_json_new_bool(arena, outcome.is_rejected));
    if (outcome.is_rejected) {
        struct td_json *names = td_json_new_array(arena);
        for (size_t i = 0; i < limits.container_name_count; i++) {
            td_json_append(names, td_json_new_string(arena, limits.container_names[i]));
        }
        td_json_set(arena, out, TD_STR("limitRanges"), names);
    } else {
        report_values(arena, outcome.pod, out);
    }
    if (outcome.is_pod_level && !outcome.is_rejected) {
        outcome.updates = td_json_get_str(td_json_get_path(outcome.pod, "metadata.annotations"),
                                          TD_STR("vpaUpdates"), TD_STR_EMPTY);
        report_account(arena, &pod, &outcome, out);
    }
    *ret_out = out;
    return TD_OK;
}

const struct golden_topic golden_seeds_podlevel[] = {
    {.name = "seeds/pod-level-recommendation",
     .run = run_recommendation,
     .is_same = golden_equal_values},
    {.name = "seeds/pod-level-patch", .run = run_patch, .is_same = golden_equal_values},
    {.name = NULL},
};
