/*
 * Collects the autoscalers of all files by target, then judges each target: loop gain of HPA and
 * VPA, ownership by an Hvpa, duplicates.
 */
#include "decide/manifests_private.h"

#include "api/objects.h"
#include "base/error.h"
#include "base/limits.h"
#include "decide/tandem/loopgain.h"
#include "decide/vertical/estimator/estimator.h"
#include "decide/vertical/updater/selected.h"
#include "kube/meta.h"
#include "kube/objectkey.h"
#include "model/owners.h"

#define MANIFESTS_CPU_MIN_MILLI 25 /* the recommender's least pod */
#define MANIFESTS_MEMORY_MIN_BYTES ((int64_t)250 * 1024 * 1024)
#define MANIFESTS_PERCENT 100
#define MANIFESTS_AMOUNT_MAX (INT64_MAX / 1000000) /* sums and shares of it cannot overflow */

/* --- grouping --- */

/* Where a reference leaves the group out, that of the well-known workloads. */
static td_str group_of(td_str api_version, td_str kind)
{
    static const td_str known[] = {TD_STR_INIT("Deployment"), TD_STR_INIT("StatefulSet"),
                                   TD_STR_INIT("ReplicaSet"), TD_STR_INIT("DaemonSet")};
    if (api_version.len > 0) {
        return td_group_version_parse(api_version).group;
    }
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (td_str_equal(kind, known[i])) {
            return TD_STR("apps");
        }
    }
    return TD_STR_EMPTY;
}

/* Fields joined so that no two targets share a key: NUL is in no name. */
static td_str group_key(struct td_arena *arena, td_str namespace, td_str api_version, td_str kind,
                        td_str name)
{
    td_str group = group_of(api_version, kind);
    return td_arena_format(arena, "%.*s%c%.*s%c%.*s%c%.*s", TD_STR_ARG(namespace), 0,
                           TD_STR_ARG(group), 0, TD_STR_ARG(kind), 0, TD_STR_ARG(name));
}

td_str td_manifests_namespace(const struct td_manifest_object *item)
{
    return item->namespace.len > 0 ? item->namespace : TD_STR("default");
}

static void group_add(struct td_arena *arena, struct td_autoscaled *group, size_t item)
{
    group->items =
        td_arena_grow(arena, group->items, group->count, &group->cap, sizeof(*group->items));
    group->items[group->count++] = item;
}

/* A number kept under a key, or `fallback` put there. */
static int64_t group_number(struct td_arena *arena, struct td_json *map, td_str key,
                            int64_t fallback)
{
    int64_t number = td_json_get_int64(map, key, -1);
    if (number < 0) {
        td_json_set_int64(arena, map, key, fallback);
    }
    return number < 0 ? fallback : number;
}

static void group_find_workloads(struct td_arena *arena, const struct td_manifest *manifest,
                                 const struct td_json *numbers, struct td_autoscaled_list *list)
{
    for (size_t i = 0; i < manifest->count; i++) {
        const struct td_manifest_object *item = &manifest->items[i];
        td_str key = group_key(arena, td_manifests_namespace(item), item->api_version, item->kind,
                               item->name);
        int64_t number = td_json_get_int64(numbers, key, -1);
        if (number >= 0 && list->items[number].workload == TD_OWNERSHIP_NONE) {
            list->items[number].workload = i;
        }
    }
}

void td_manifests_group(struct td_arena *arena, const struct td_manifest *manifest,
                        struct td_autoscaled_list *ret)
{
    struct td_autoscaled_list made = {
        .items = td_arena_array(arena, struct td_autoscaled, manifest->count),
        .objects = td_arena_array(arena, struct td_ownership_object, manifest->count),
        .is_autoscaler = td_arena_array(arena, bool, manifest->count),
    };
    struct td_json *numbers = td_json_new_object(arena); /* target to group */
    struct td_json *seen = td_json_new_object(arena);    /* identity to first item */
    for (size_t i = 0; i < manifest->count; i++) {
        const struct td_manifest_object *item = &manifest->items[i];
        struct td_ownership_object *object = &made.objects[i];
        made.is_autoscaler[i] = td_ownership_read(item->tree, object);
        if (!made.is_autoscaler[i]) {
            continue;
        }
        object->target.namespace = td_manifests_namespace(item);
        td_str identity = group_key(arena, td_manifests_namespace(item), item->api_version,
                                    item->kind, item->name);
        if (group_number(arena, seen, identity, (int64_t)i) != (int64_t)i) {
            continue; /* a base and its copy */
        }
        td_str key = group_key(arena, object->target.namespace, object->target.api_version,
                               object->target.kind, object->target.name);
        size_t number = (size_t)group_number(arena, numbers, key, (int64_t)made.count);
        if (number == made.count) {
            made.count++;
            made.items[number].target = object->target;
            made.items[number].workload = TD_OWNERSHIP_NONE;
        }
        group_add(arena, &made.items[number], i);
    }
    group_find_workloads(arena, manifest, numbers, &made);
    *ret = made;
}

/* --- which resources both act on --- */

int td_manifests_hpa(struct td_arena *arena, const struct td_json *tree, struct td_hpa *ret,
                     struct td_error *err)
{
    struct td_field_errors errors = {.arena = arena};
    struct td_json *stored = NULL;
    /* A file need not say the namespace, which a server would demand. */
    struct td_json *copy = td_json_copy(arena, tree, false);
    struct td_json *metadata = td_json_ensure_object(arena, copy, TD_STR("metadata"));
    if (td_json_get_str(metadata, TD_STR("namespace"), TD_STR_EMPTY).len == 0) {
        td_json_set_str(arena, metadata, TD_STR("namespace"), TD_STR("default"));
    }
    const struct td_hpa_admission admission = {
        .operation = TD_HPA_CREATE,
        .object = copy,
        .gates = {.selection_strategy = true},
    };
    int code = td_hpa_admit(arena, &admission, &errors, &stored, err);
    if (code < 0) {
        return code;
    }
    if (!stored) {
        return td_error_set(err, TD_INVALID, "the HorizontalPodAutoscaler is not valid");
    }
    return td_hpa_decode(arena, stored, ret, err);
}

static bool shares_controls(const struct td_container_policy *policy, td_str resource)
{
    return !(policy && policy->is_off) && td_vpa_controls(policy, resource);
}

/* In some container: named entries, and the rule for all others. */
bool td_manifests_controls(const struct td_resource_policy *policy, td_str resource)
{
    for (size_t i = 0; i < policy->container_count; i++) {
        if (shares_controls(&policy->containers[i], resource)) {
            return true;
        }
    }
    return policy->container_count == 0;
}

static bool shares_metric(const struct td_hpa_metric *metric, const struct td_vpa *vpa,
                          td_str resource)
{
    bool is_resource = metric->type == TD_HPA_RESOURCE || metric->type == TD_HPA_CONTAINER_RESOURCE;
    if (!is_resource || metric->target.type != TD_HPA_UTILIZATION ||
        metric->target.average_utilization <= 0 || !td_str_equal(metric->name, resource)) {
        return false;
    }
    return metric->type == TD_HPA_RESOURCE
               ? td_manifests_controls(&vpa->policy, resource)
               : shares_controls(td_vpa_container_policy(&vpa->policy, metric->container),
                                 resource);
}

bool td_manifests_shares(const struct td_hpa *hpa, const struct td_vpa *vpa, td_str resource,
                         struct td_shared_metric *ret)
{
    bool is_found = false;
    for (size_t i = 0; i < hpa->metric_count && i < TD_HVPA_METRICS_MAX; i++) {
        const struct td_hpa_metric *metric = &hpa->metrics[i];
        bool is_smaller =
            !is_found || metric->target.average_utilization < ret->utilization_percent;
        if (shares_metric(metric, vpa, resource) && is_smaller) {
            is_found = true;
            ret->metric = i;
            ret->utilization_percent = metric->target.average_utilization;
        }
    }
    return is_found;
}

/* --- where the loop ends --- */

/* One pair on one resource. */
struct loop_pair {
    struct td_arena *arena; /* scratch */
    const struct td_hpa *hpa;
    const struct td_vpa *vpa;
    const struct td_json *workload; /* or NULL */
    td_str resource;
    struct td_shared_metric shared;
};

static bool loop_amount(const struct loop_pair *pair, const struct td_quantity *quantity,
                        int64_t *ret)
{
    bool is_cpu = td_str_equal(pair->resource, TD_STR("cpu"));
    *ret = is_cpu ? td_quantity_milli(quantity) : td_quantity_value(quantity);
    return *ret > 0 && *ret < MANIFESTS_AMOUNT_MAX;
}

/* A container's request, or its limit, which then is the request too. */
static bool loop_request(const struct loop_pair *pair, const struct td_json *container,
                         int64_t *ret)
{
    static const char *const places[] = {"resources.requests", "resources.limits"};
    for (size_t i = 0; i < 2; i++) {
        const struct td_json *node =
            td_json_get(td_json_get_path(container, places[i]), pair->resource);
        struct td_quantity quantity;
        if (node && td_quantity_from_json(pair->arena, node, &quantity, NULL) == TD_OK) {
            return loop_amount(pair, &quantity, ret);
        }
    }
    return false;
}

/* Add one container to the pod; false when its part in the loop is not known. */
static bool loop_add_container(const struct loop_pair *pair, const struct td_json *container,
                               size_t container_count, struct td_loop_pair *loop)
{
    td_str name = td_json_get_str(container, TD_STR("name"), TD_STR_EMPTY);
    const struct td_container_policy *policy = td_vpa_container_policy(&pair->vpa->policy, name);
    int64_t request = 0;
    if (!shares_controls(policy, pair->resource) || !loop_request(pair, container, &request)) {
        return false;
    }
    const struct td_quantity *min =
        policy ? td_resource_list_get(&policy->min_allowed, pair->resource) : NULL;
    const struct td_quantity *max =
        policy ? td_resource_list_get(&policy->max_allowed, pair->resource) : NULL;
    bool is_cpu = td_str_equal(pair->resource, TD_STR("cpu"));
    int64_t least =
        (is_cpu ? MANIFESTS_CPU_MIN_MILLI : MANIFESTS_MEMORY_MIN_BYTES) / (int64_t)container_count;
    int64_t lower = least > 0 ? least : 1;
    int64_t upper = MANIFESTS_AMOUNT_MAX;
    if ((min && !loop_amount(pair, min, &lower)) || (max && !loop_amount(pair, max, &upper))) {
        return false;
    }
    loop->request += request;
    loop->request_min += lower < upper ? lower : upper;
    loop->request_max += upper;
    return loop->request_max < INT64_MAX - MANIFESTS_AMOUNT_MAX;
}

/* The pod as the metric sees it: all containers, or the one. */
static bool loop_add_pod(const struct loop_pair *pair, struct td_loop_pair *loop)
{
    const struct td_hpa_metric *metric = &pair->hpa->metrics[pair->shared.metric];
    const struct td_json *containers =
        td_json_get_path(pair->workload, "spec.template.spec.containers");
    size_t count = td_json_item_count(containers);
    size_t used = 0;
    if (count > TD_LOOP_CONTAINERS_MAX) {
        return false;
    }
    for (const struct td_json *item = td_json_first_item(containers); item; item = item->next) {
        td_str name = td_json_get_str(item, TD_STR("name"), TD_STR_EMPTY);
        if (metric->type == TD_HPA_CONTAINER_RESOURCE && !td_str_equal(name, metric->container)) {
            continue;
        }
        if (!loop_add_container(pair, item, count, loop)) {
            return false;
        }
        used++;
    }
    return used > 0;
}

/* From where the files start it, at the HPA's own target, under a load that does not change. */
static bool loop_from_files(const struct loop_pair *pair, struct td_loop_pair *ret)
{
    struct td_loop_pair loop = {
        .utilization_percent = pair->shared.utilization_percent,
        .replicas_min = pair->hpa->min_replicas > 0 ? pair->hpa->min_replicas : 1,
        .replicas_max = pair->hpa->max_replicas,
    };
    if (!loop_add_pod(pair, &loop) || loop.replicas_min > loop.replicas_max) {
        return false;
    }
    int64_t replicas =
        td_json_get_int64(td_json_get(pair->workload, TD_STR("spec")), TD_STR("replicas"), 1);
    loop.replicas = replicas < loop.replicas_min ? loop.replicas_min : replicas;
    loop.replicas = loop.replicas > loop.replicas_max ? loop.replicas_max : loop.replicas;
    if (loop.request > INT64_MAX / MANIFESTS_PERCENT / loop.replicas / loop.utilization_percent) {
        return false;
    }
    loop.usage_total = loop.request * loop.replicas * loop.utilization_percent / MANIFESTS_PERCENT;
    *ret = loop;
    return true;
}

/* --- saying so --- */

td_str td_manifests_place(struct td_arena *arena, const struct td_manifest_object *item)
{
    return td_arena_format(arena, "%.*s (%.*s:%u)", TD_STR_ARG(td_manifest_title(arena, item)),
                           TD_STR_ARG(item->file), item->line);
}

void td_manifests_say(const struct td_manifests_files *files, size_t item,
                      const struct td_manifests_finding *finding)
{
    struct td_problems *problems = &files->problems[item];
    td_problems_add(problems,
                    &(struct td_problem){
                        .line = td_objects_line(files->manifest->items[item].tree, finding->field),
                        .field = td_arena_copy_str(problems->arena, finding->field),
                        .message = td_arena_copy_str(problems->arena, finding->message),
                        .rule = finding->rule,
                        .is_warning = finding->is_warning,
                    });
}

/* "averageValue: 300m": the target that means the same while requests are as the files say. */
static td_str check_absolute(const struct loop_pair *pair, const struct td_loop_pair *loop)
{
    int64_t amount = loop->request * loop->utilization_percent / MANIFESTS_PERCENT;
    bool is_cpu = td_str_equal(pair->resource, TD_STR("cpu"));
    struct td_quantity quantity = is_cpu ? td_quantity_new_milli(amount, TD_QUANTITY_DECIMAL_SI)
                                         : td_quantity_new(amount, TD_QUANTITY_BINARY_SI);
    return td_arena_format(pair->arena, "averageValue: %.*s",
                           TD_STR_ARG(td_quantity_text(pair->arena, &quantity)));
}

static void check_pair(const struct td_manifests_files *files, const struct loop_pair *pair,
                       size_t hpa_item, size_t vpa_item)
{
    double gain = 0;
    struct td_loop_pair loop;
    struct td_arena *arena = files->arena;
    if (!td_loop_gain_of_target(pair->shared.utilization_percent, &gain) ||
        td_loop_gain_is_quiet(gain)) {
        return;
    }
    td_str drift = TD_STR_EMPTY;
    td_str absolute = TD_STR("averageValue");
    if (loop_from_files(pair, &loop)) {
        struct td_loop_end end = td_loop_pair_run(&loop);
        absolute = check_absolute(pair, &loop);
        if (end.replicas != loop.replicas) {
            drift = td_arena_format(arena, ", replicas drift to %lld", (long long)end.replicas);
        }
    }
    td_str other = td_manifest_title(arena, &files->manifest->items[vpa_item]);
    td_str resource = pair->resource;
    td_str message = td_arena_format(
        arena,
        "and %.*s both act on %.*s: loop gain %.2f%.*s\n"
        "use an Hvpa (tandem validate --migrate), an absolute HPA target (%.*s), or take %.*s out "
        "of the VPA",
        TD_STR_ARG(other), TD_STR_ARG(resource), gain, TD_STR_ARG(drift), TD_STR_ARG(absolute),
        TD_STR_ARG(resource));
    td_manifests_say(files, hpa_item,
                     &(struct td_manifests_finding){
                         .rule = "hpa-vpa-loop",
                         .field = td_arena_format(arena, "spec.metrics[%zu]", pair->shared.metric),
                         .message = message,
                     });
}

static void check_loop(const struct td_manifests_files *files, const struct td_autoscaled *group,
                       size_t hpa_item, size_t vpa_item)
{
    static const td_str resources[] = {TD_STR_INIT("cpu"), TD_STR_INIT("memory")};
    struct td_hpa hpa;
    struct td_vpa vpa;
    const struct td_manifest_object *items = files->manifest->items;
    if (td_manifests_hpa(files->arena, items[hpa_item].tree, &hpa, NULL) < 0 ||
        td_vpa_decode(files->arena, items[vpa_item].tree, &vpa, NULL) < 0) {
        return;
    }
    for (size_t i = 0; i < 2; i++) {
        struct loop_pair pair = {
            .arena = files->arena,
            .hpa = &hpa,
            .vpa = &vpa,
            .workload = group->workload == TD_OWNERSHIP_NONE ? NULL : items[group->workload].tree,
            .resource = resources[i],
        };
        if (td_manifests_shares(&hpa, &vpa, resources[i], &pair.shared)) {
            check_pair(files, &pair, hpa_item, vpa_item);
        }
    }
}

/* An Hvpa beside another autoscaler. */
static void check_conflict(const struct td_manifests_files *files, size_t item, size_t other,
                           const char *what)
{
    td_str place = td_manifests_place(files->arena, &files->manifest->items[other]);
    td_manifests_say(
        files, item,
        &(struct td_manifests_finding){
            .rule = "hvpa-conflict",
            .field = files->list.objects[item].target_field,
            .message = td_arena_format(files->arena, "%.*s %s", TD_STR_ARG(place), what),
        });
}

/* The first of each kind in a group; a loop of one pair says enough about a target. */
struct check_firsts {
    size_t hvpa;
    size_t hpa;
    size_t vpa; /* one that acts */
    size_t foreign;
};

static struct check_firsts check_first_of(const struct td_manifests_files *files,
                                          const struct td_autoscaled *group)
{
    struct check_firsts made = {TD_OWNERSHIP_NONE, TD_OWNERSHIP_NONE, TD_OWNERSHIP_NONE,
                                TD_OWNERSHIP_NONE};
    for (size_t i = group->count; i > 0; i--) {
        size_t item = group->items[i - 1];
        const struct td_ownership_object *object = &files->list.objects[item];
        if (object->kind == TD_OWNERSHIP_HVPA) {
            made.hvpa = item;
            continue;
        }
        made.foreign = object->is_off ? made.foreign : item;
        if (object->kind == TD_OWNERSHIP_HPA) {
            made.hpa = item;
        } else if (object->kind == TD_OWNERSHIP_VPA && !object->is_off) {
            made.vpa = item;
        }
    }
    return made;
}

/* A VPA that evicts the pods that it selects, and whose selector no new pod of the target meets. */
static void check_selector(const struct td_manifests_files *files, size_t vpa_item,
                           size_t workload_item)
{
    const struct td_manifest_object *item = &files->manifest->items[vpa_item];
    const struct td_json *workload = files->manifest->items[workload_item].tree;
    struct td_vpa vpa;
    struct td_workload target;
    if (td_vpa_decode(files->arena, item->tree, &vpa, NULL) < 0 || vpa.mode != TD_VPA_RECREATE ||
        td_workload_decode(files->arena, workload, &target, NULL) < 0 || !target.template.is_set) {
        return;
    }
    td_str message = td_vpa_selector_warning(files->arena, &vpa, &target.template.labels);
    if (message.len > 0) {
        td_manifests_say(files, vpa_item,
                         &(struct td_manifests_finding){.rule = "vpa-selector",
                                                        .field = TD_STR("spec.selector"),
                                                        .message = message});
    }
}

static void check_group(const struct td_manifests_files *files, const struct td_autoscaled *group)
{
    struct check_firsts first = check_first_of(files, group);
    for (size_t i = 0; i < group->count && group->workload != TD_OWNERSHIP_NONE; i++) {
        if (files->list.objects[group->items[i]].kind == TD_OWNERSHIP_VPA) {
            check_selector(files, group->items[i], group->workload);
        }
    }
    if (first.hpa != TD_OWNERSHIP_NONE && first.vpa != TD_OWNERSHIP_NONE) {
        check_loop(files, group, first.hpa, first.vpa);
    }
    for (size_t i = 0; i < group->count; i++) {
        size_t item = group->items[i];
        if (files->list.objects[item].kind != TD_OWNERSHIP_HVPA) {
            continue;
        }
        if (first.foreign != TD_OWNERSHIP_NONE) {
            check_conflict(files, item, first.foreign,
                           "has the same target; the Hvpa would not scale it (TargetConflict)");
        } else if (item != first.hvpa) {
            check_conflict(files, item, first.hvpa, "already scales this target");
        }
    }
}

/* The annotations that choose an estimator, of VPAs and Hvpas. Which one a risk alone is for is
 * a flag's choice: then it must be known to some. */
static void check_estimator(const struct td_manifest_object *item, struct td_problems *problems)
{
    bool is_sized = td_str_equal(item->kind, TD_STR("VerticalPodAutoscaler")) ||
                    td_str_equal(item->kind, TD_STR("Hvpa"));
    const struct td_json *annotations = td_json_get_path(item->tree, "metadata.annotations");
    if (!is_sized || !annotations) {
        return;
    }
    struct td_estimator_choice choice = td_estimator_choose(annotations, &td_estimator_upstream);
    const struct td_estimator *other;
    bool is_named = td_json_get(annotations, TD_ESTIMATOR_ANNOTATION) != NULL;
    for (size_t i = 0; choice.unknown && !is_named && (other = td_estimator_at(i)); i++) {
        struct td_estimator_choice next = td_estimator_choose(annotations, other);
        choice = next.unknown ? choice : next;
    }
    if (choice.unknown) {
        td_str field = td_arena_format(problems->arena, "metadata.annotations[%.*s]",
                                       TD_STR_ARG(choice.unknown->key));
        td_problems_add(problems, &(struct td_problem){
                                      .line = choice.unknown->line,
                                      .field = field,
                                      .message = td_estimator_refusal(problems->arena, &choice),
                                      .rule = "unknown-estimator",
                                  });
    }
}

void td_manifests_check_all(const struct td_manifest *manifest, struct td_problems *problems)
{
    for (size_t i = 0; i < manifest->count; i++) {
        check_estimator(&manifest->items[i], &problems[i]);
    }
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    struct td_manifests_files files = {.arena = &arena, .manifest = manifest, .problems = problems};
    td_manifests_group(&arena, manifest, &files.list);
    for (size_t i = 0; i < files.list.count; i++) {
        check_group(&files, &files.list.items[i]);
    }
    td_manifests_lint(&files);
}
