/*
 * One table of paths a kind: members that a path leads to are kept, all others are dropped before
 * the object is stored.
 */
#include "control/informers/informers_trim.h"

#include "base/limits.h"

/* A member that is kept: whole, or of it only what `inside` names. Items of arrays are cut alike.
 */
struct keep {
    const char *name;
    const struct keep *inside;
};

static const struct keep keep_container[] = {
    {"name", NULL}, {"resources", NULL}, {"resizePolicy", NULL}, {"restartPolicy", NULL}, {0}};

static const struct keep keep_meta[] = {{"name", NULL},
                                        {"namespace", NULL},
                                        {"uid", NULL},
                                        {"labels", NULL},
                                        {"annotations", NULL},
                                        {"creationTimestamp", NULL},
                                        {"generation", NULL},
                                        {"deletionTimestamp", NULL},
                                        {"resourceVersion", NULL},
                                        {"ownerReferences", NULL},
                                        {0}};

static const struct keep keep_pod_spec[] = {{"nodeName", NULL},
                                            {"overhead", NULL},
                                            {"resources", NULL},
                                            {"containers", keep_container},
                                            {"initContainers", keep_container},
                                            {0}};

static const struct keep keep_state[] = {{"terminated", NULL}, {"running", NULL}, {0}};

static const struct keep keep_container_status[] = {
    {"name", NULL},        {"restartCount", NULL},    {"resources", NULL},
    {"state", keep_state}, {"lastState", keep_state}, {0}};

static const struct keep keep_pod_status[] = {{"phase", NULL},
                                              {"reason", NULL},
                                              {"startTime", NULL},
                                              {"conditions", NULL},
                                              {"resources", NULL},
                                              {"observedGeneration", NULL},
                                              {"containerStatuses", keep_container_status},
                                              {0}};

static const struct keep keep_pod[] = {
    {"metadata", keep_meta}, {"spec", keep_pod_spec}, {"status", keep_pod_status}, {0}};

static const struct keep keep_template_meta[] = {{"labels", NULL}, {0}};

static const struct keep keep_template_spec[] = {
    {"containers", keep_container}, {"initContainers", keep_container}, {"resources", NULL}, {0}};

static const struct keep keep_template[] = {
    {"metadata", keep_template_meta}, {"spec", keep_template_spec}, {0}};

static const struct keep keep_workload_spec[] = {
    {"replicas", NULL}, {"selector", NULL}, {"template", keep_template}, {0}};

static const struct keep keep_workload_status[] = {
    {"desiredNumberScheduled", NULL}, {"numberReady", NULL}, {"replicas", NULL}, {0}};

static const struct keep keep_workload[] = {
    {"metadata", keep_meta}, {"spec", keep_workload_spec}, {"status", keep_workload_status}, {0}};

/* Most are old ReplicaSets and finished Jobs, whose template makes no pods any more. */
static const struct keep keep_child_spec[] = {{"replicas", NULL}, {"selector", NULL}, {0}};
static const struct keep keep_child_meta[] = {
    {"name", NULL}, {"namespace", NULL}, {"uid", NULL}, {"ownerReferences", NULL}, {0}};
static const struct keep keep_child[] = {
    {"metadata", keep_child_meta}, {"spec", keep_child_spec}, {0}};

/* A ReplicaSet that has pods: what they are made from. */
static const struct keep keep_live_child_spec[] = {
    {"replicas", NULL}, {"selector", NULL}, {"template", keep_template}, {0}};
static const struct keep keep_live_child[] = {
    {"metadata", keep_child_meta}, {"spec", keep_live_child_spec}, {0}};

static const struct keep keep_cron_inner[] = {{"template", keep_template}, {0}};
static const struct keep keep_cron_job[] = {{"spec", keep_cron_inner}, {0}};
static const struct keep keep_cron_spec[] = {{"jobTemplate", keep_cron_job}, {0}};
static const struct keep keep_cron[] = {
    {"metadata", keep_child_meta}, {"spec", keep_cron_spec}, {0}};

static const struct keep keep_node_condition[] = {{"type", NULL}, {"status", NULL}, {0}};
static const struct keep keep_node_status[] = {
    {"allocatable", NULL}, {"conditions", keep_node_condition}, {"declaredFeatures", NULL}, {0}};
static const struct keep keep_node[] = {
    {"metadata", keep_child_meta}, {"status", keep_node_status}, {0}};

static const struct keep *keep_of(enum td_informer_kind kind)
{
    switch (kind) {
    case TD_INFORMER_PODS:
        return keep_pod;
    case TD_INFORMER_NODES:
        return keep_node;
    case TD_INFORMER_DEPLOYMENTS:
    case TD_INFORMER_STATEFUL_SETS:
    case TD_INFORMER_DAEMON_SETS:
    case TD_INFORMER_REPLICATION_CONTROLLERS:
        return keep_workload;
    case TD_INFORMER_REPLICA_SETS:
    case TD_INFORMER_JOBS:
        return keep_child;
    case TD_INFORMER_CRON_JOBS:
        return keep_cron;
    default:
        return NULL; /* whole */
    }
}

bool td_informers_keep_all(enum td_informer_kind kind)
{
    return !keep_of(kind);
}

static struct td_json *keep_cut(struct td_arena *arena, const struct td_json *node,
                                const struct keep *inside, size_t depth)
{
    if (!inside || depth == TD_INFORMER_TRIM_DEPTH_MAX) {
        return td_json_copy(arena, node, false);
    }
    if (td_json_is(node, TD_JSON_TYPE_ARRAY)) {
        struct td_json *array = td_json_new_array(arena);
        for (const struct td_json *item = td_json_first_item(node); item; item = item->next) {
            td_json_append(array, keep_cut(arena, item, inside, depth + 1));
        }
        return array;
    }
    struct td_json *object = td_json_new_object(arena);
    for (const struct keep *k = inside; k->name; k++) {
        const struct td_json *member = td_json_get(node, td_str_from(k->name));
        if (member) {
            td_json_set(arena, object, td_str_from(k->name),
                        keep_cut(arena, member, k->inside, depth + 1));
        }
    }
    return object;
}

/* Of annotations the updater and admission read their own; that there are some matters too, since a
 * patch has to make the map first. */
static void keep_annotations(struct td_arena *arena, struct td_json *metadata)
{
    const struct td_json *all = td_json_get(metadata, TD_STR("annotations"));
    if (!all) {
        return;
    }
    struct td_json *kept = td_json_new_object(arena);
    for (const struct td_json *m = td_json_first_member(all); m; m = m->next) {
        if (td_str_starts_with(m->key, TD_STR("vpa")) ||
            td_str_starts_with(m->key, TD_STR("tandem.dev/"))) {
            td_json_set(arena, kept, m->key, td_json_copy(arena, m, false));
        }
    }
    td_json_set(arena, metadata, TD_STR("annotations"), kept);
}

/* Ready and the two of resizing. */
static void keep_conditions(struct td_arena *arena, struct td_json *status)
{
    const struct td_json *all = td_json_get(status, TD_STR("conditions"));
    if (!td_json_is(all, TD_JSON_TYPE_ARRAY)) {
        return;
    }
    struct td_json *kept = td_json_new_array(arena);
    for (const struct td_json *c = td_json_first_item(all); c; c = c->next) {
        td_str type = td_json_text(c, "type");
        if (td_str_equal(type, TD_STR("Ready")) || td_str_starts_with(type, TD_STR("PodResize"))) {
            td_json_append(kept, td_json_copy(arena, c, false));
        }
    }
    td_json_set(arena, status, TD_STR("conditions"), kept);
}

struct td_json *td_informers_trim(struct td_arena *arena, enum td_informer_kind kind,
                                  const struct td_json *object)
{
    const struct td_json *spec = td_json_get(object, TD_STR("spec"));
    bool is_live_set =
        kind == TD_INFORMER_REPLICA_SETS && td_json_get_int64(spec, TD_STR("replicas"), 1) > 0;
    struct td_json *kept =
        keep_cut(arena, object, is_live_set ? keep_live_child : keep_of(kind), 0);
    if (kind == TD_INFORMER_PODS) {
        struct td_json *metadata = td_json_get(kept, TD_STR("metadata"));
        struct td_json *status = td_json_get(kept, TD_STR("status"));
        if (metadata) {
            keep_annotations(arena, metadata);
        }
        if (status) {
            keep_conditions(arena, status);
        }
    }
    return kept;
}
