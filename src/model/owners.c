/*
 * The walk keeps upstream's order of questions, because its errors end up in status conditions:
 * a controller is first asked whether it counts (well-known, or its scale answers), then for its
 * parent. Both questions of a kind that is not well-known go to the same scales, so they are asked
 * once.
 */
#include "model/owners.h"

#include "base/error.h"
#include "base/limits.h"

enum td_workload_kind td_workload_kind_of(td_str kind)
{
    static const struct {
        td_str name;
        enum td_workload_kind kind;
    } kinds[] = {
        {TD_STR_INIT("CronJob"), TD_WORKLOAD_CRON_JOB},
        {TD_STR_INIT("DaemonSet"), TD_WORKLOAD_DAEMON_SET},
        {TD_STR_INIT("Deployment"), TD_WORKLOAD_DEPLOYMENT},
        {TD_STR_INIT("Job"), TD_WORKLOAD_JOB},
        {TD_STR_INIT("ReplicationController"), TD_WORKLOAD_REPLICATION_CONTROLLER},
        {TD_STR_INIT("ReplicaSet"), TD_WORKLOAD_REPLICA_SET},
        {TD_STR_INIT("StatefulSet"), TD_WORKLOAD_STATEFUL_SET},
    };
    for (size_t i = 0; i < TD_COUNT(kinds); i++) {
        if (td_str_equal(kinds[i].name, kind)) {
            return kinds[i].kind;
        }
    }
    return TD_WORKLOAD_OTHER;
}

/* A map of labels as a LabelSelector: no map selects nothing, an empty one everything. */
static int selector_from_map(struct td_arena *arena, const struct td_json *map,
                             struct td_selector *ret, struct td_error *err)
{
    if (!td_json_is(map, TD_JSON_TYPE_OBJECT)) {
        return td_selector_from_json(arena, NULL, ret, err);
    }
    struct td_json *selector = td_json_new_object(arena);
    td_json_set(arena, selector, TD_STR("matchLabels"), td_json_copy(arena, map, false));
    return td_selector_from_json(arena, selector, ret, err);
}

static int read_selector(struct td_arena *arena, const struct td_json *object,
                         enum td_workload_kind kind, struct td_selector *ret, struct td_error *err)
{
    const struct td_json *selector = td_json_get_path(object, "spec.selector");
    switch (kind) {
    case TD_WORKLOAD_CRON_JOB:
        return selector_from_map(
            arena, td_json_get_path(object, "spec.jobTemplate.spec.template.metadata.labels"), ret,
            err);
    case TD_WORKLOAD_REPLICATION_CONTROLLER:
        return selector_from_map(arena, selector, ret, err);
    default:
        return td_selector_from_json(arena, selector, ret, err);
    }
}

int td_workload_decode(struct td_arena *arena, const struct td_json *object,
                       struct td_workload *ret, struct td_error *err)
{
    struct td_meta meta;
    int code = td_meta_decode(arena, object, &meta, err);
    if (code < 0) {
        return code;
    }
    struct td_workload workload = {
        .namespace = meta.namespace,
        .kind = td_json_text(object, "kind"),
        .name = meta.name,
        .uid = meta.uid,
        .owners = meta.owners,
        .owner_count = meta.owner_count,
    };
    struct td_error reason = TD_ERROR_INIT;
    code = read_selector(arena, object, td_workload_kind_of(workload.kind), &workload.selector,
                         &reason);
    if (code < 0) {
        workload.selector = (struct td_selector){.matches_nothing = true};
        workload.selector_error = td_arena_copy_str(arena, td_str_from(reason.message));
    }
    const struct td_json *replicas = td_json_get_path(object, "spec.replicas");
    workload.has_replicas =
        td_json_is(replicas, TD_JSON_TYPE_NUMBER) && td_json_to_int64(replicas, &workload.replicas);
    workload.desired_scheduled = td_json_get_int64(td_json_get(object, TD_STR("status")),
                                                   TD_STR("desiredNumberScheduled"), 0);
    bool is_cron_job = td_workload_kind_of(workload.kind) == TD_WORKLOAD_CRON_JOB;
    workload.template = td_pod_template_decode(
        arena,
        td_json_get_path(object, is_cron_job ? "spec.jobTemplate.spec.template" : "spec.template"));
    *ret = workload;
    return TD_OK;
}

struct td_workload td_workload_copy(struct td_arena *arena, const struct td_workload *workload)
{
    struct td_workload copy = *workload;
    copy.namespace = td_arena_copy_str(arena, workload->namespace);
    copy.kind = td_arena_copy_str(arena, workload->kind);
    copy.name = td_arena_copy_str(arena, workload->name);
    copy.uid = td_arena_copy_str(arena, workload->uid);
    copy.selector = td_selector_copy(arena, &workload->selector);
    copy.selector_error = td_arena_copy_str(arena, workload->selector_error);
    copy.owners = td_owners_copy(arena, workload->owners, workload->owner_count);
    copy.template = td_pod_template_copy(arena, &workload->template);
    return copy;
}

static struct td_controller from_reference(const struct td_owner_reference *owner, td_str namespace)
{
    return (struct td_controller){
        .namespace = namespace,
        .api_version = owner->api_version,
        .kind = owner->kind,
        .name = owner->name,
        .uid = owner->uid,
    };
}

bool td_controller_of_pod(const struct td_meta *pod, struct td_controller *ret)
{
    for (size_t i = pod->owner_count; i > 0; i--) {
        if (pod->owners[i - 1].is_controller) {
            *ret = from_reference(&pod->owners[i - 1], pod->namespace);
            return true;
        }
    }
    return false;
}

const struct td_pod_template *td_template_of_pod(const struct td_workload_source *source,
                                                 const struct td_meta *pod)
{
    struct td_controller owner;
    if (!td_controller_of_pod(pod, &owner)) {
        return NULL;
    }
    const struct td_workload *workload =
        source->get_workload(source->context, owner.kind, owner.namespace, owner.name);
    bool is_same = workload && (workload->uid.len == 0 || owner.uid.len == 0 ||
                                td_str_equal(workload->uid, owner.uid));
    return is_same && workload->template.is_set ? &workload->template : NULL;
}

static bool parent_of(const struct td_owner_reference *owners, size_t count, td_str namespace,
                      struct td_controller *ret)
{
    const struct td_owner_reference *owner = td_owner_controller(owners, count);
    if (owner) {
        *ret = from_reference(owner, namespace);
    }
    return owner != NULL;
}

/* schema.ParseGroupVersion. */
static int parse_group(td_str api_version, td_str *ret_group, struct td_error *err)
{
    size_t slash = td_str_find(api_version, '/', 0);
    if (slash == api_version.len) {
        *ret_group = TD_STR_EMPTY;
        return TD_OK;
    }
    if (td_str_find(api_version, '/', slash + 1) < api_version.len) {
        return td_error_set(err, TD_INVALID, "unexpected GroupVersion string: %.*s",
                            TD_STR_ARG(api_version));
    }
    *ret_group = td_str_slice(api_version, 0, slash);
    return TD_OK;
}

static bool is_other_uid(td_str wanted, td_str found)
{
    return wanted.len > 0 && found.len > 0 && !td_str_equal(wanted, found);
}

static int not_found(struct td_error *err, td_str group, td_str resource, td_str name)
{
    return td_error_set(err, TD_NOT_FOUND, "%.*s%s%.*s \"%.*s\" not found", TD_STR_ARG(resource),
                        group.len > 0 ? "." : "", TD_STR_ARG(group), TD_STR_ARG(name));
}

/* The first resource of the kind whose scale answers. TD_NOT_FOUND when the last one has none. */
static int find_scale(const struct td_workload_source *source, td_str group,
                      const struct td_controller *controller, struct td_scale_answer *ret,
                      struct td_error *err)
{
    td_str resource;
    int code = TD_OK;
    size_t index = 0;
    for (; index < TD_SCALE_RESOURCES_MAX &&
           source->get_resource(source->context, group, controller->kind, index, &resource);
         index++) {
        struct td_scale_answer answer = source->get_scale(source->context, group, resource,
                                                          controller->namespace, controller->name);
        if (answer.code == TD_OK && is_other_uid(controller->uid, answer.uid)) {
            answer.code = TD_NOT_FOUND; /* another object of the same name */
        }
        if (answer.code == TD_OK) {
            *ret = answer;
            return TD_OK;
        }
        if (answer.code == TD_BUSY) {
            return td_error_set(err, TD_BUSY, "the scale of %.*s %.*s/%.*s is not known yet",
                                TD_STR_ARG(controller->kind), TD_STR_ARG(controller->namespace),
                                TD_STR_ARG(controller->name));
        }
        code = answer.code == TD_NOT_FOUND
                   ? not_found(err, group, resource, controller->name)
                   : td_error_set(err, TD_IO, "%.*s", TD_STR_ARG(answer.message));
    }
    if (index == 0) {
        return td_error_set(err, TD_INVALID, "no matches for kind \"%.*s\" in group \"%.*s\"",
                            TD_STR_ARG(controller->kind), TD_STR_ARG(group));
    }
    return code;
}

/* `reason` as upstream wraps it; TD_BUSY is ours and passes as it is. */
static int unhandled(const struct td_controller *controller, const struct td_error *reason,
                     struct td_error *err)
{
    if (reason->code == TD_BUSY) {
        return td_error_set(err, TD_BUSY, "%s", reason->message);
    }
    return td_error_set(err, reason->code, "unhandled targetRef %.*s / %.*s / %.*s, last error %s",
                        TD_STR_ARG(controller->api_version), TD_STR_ARG(controller->kind),
                        TD_STR_ARG(controller->name), reason->message);
}

/* A walk to the topmost controller that counts. */
struct top_walk {
    const struct td_workload_source *source;
    struct td_controller top; /* the last one that is well-known or scalable */
    bool is_found;
};

static int visit_other(struct top_walk *walk, const struct td_controller *controller,
                       struct td_controller *ret_parent, bool *ret_has_parent, struct td_error *err)
{
    td_str group;
    int code = parse_group(controller->api_version, &group, err);
    if (code < 0) {
        return code;
    }
    struct td_error reason = TD_ERROR_INIT;
    if (td_str_equal(controller->kind, TD_STR("Node"))) {
        (void)td_error_set(&reason, TD_DENIED, "node is not a valid owner");
        return unhandled(controller, &reason, err);
    }
    struct td_scale_answer scale = {.code = TD_OK};
    code = find_scale(walk->source, group, controller, &scale, &reason);
    if (code == TD_NOT_FOUND) {
        return TD_OK;
    }
    if (code < 0) {
        return unhandled(controller, &reason, err);
    }
    walk->top = *controller;
    walk->is_found = true;
    *ret_has_parent = parent_of(scale.owners, scale.owner_count, controller->namespace, ret_parent);
    return TD_OK;
}

static int visit_controller(void *context, const struct td_controller *controller,
                            struct td_controller *ret_parent, bool *ret_has_parent,
                            struct td_error *err)
{
    struct top_walk *walk = context;
    if (td_workload_kind_of(controller->kind) == TD_WORKLOAD_OTHER) {
        return visit_other(walk, controller, ret_parent, ret_has_parent, err);
    }
    const struct td_workload *workload = walk->source->get_workload(
        walk->source->context, controller->kind, controller->namespace, controller->name);
    if (!workload || is_other_uid(controller->uid, workload->uid)) {
        return td_error_set(err, TD_NOT_FOUND, "%.*s %.*s/%.*s does not exist",
                            TD_STR_ARG(controller->kind), TD_STR_ARG(controller->namespace),
                            TD_STR_ARG(controller->name));
    }
    walk->top = *controller;
    walk->is_found = true;
    *ret_has_parent =
        parent_of(workload->owners, workload->owner_count, controller->namespace, ret_parent);
    return TD_OK;
}

static bool is_same(const struct td_controller *a, const struct td_controller *b)
{
    return td_str_equal(a->namespace, b->namespace) && td_str_equal(a->kind, b->kind) &&
           td_str_equal(a->name, b->name) && td_str_equal(a->api_version, b->api_version);
}

int td_controllers_walk(const struct td_controller *start, td_controller_visit_fn visit,
                        void *context, struct td_error *err)
{
    struct td_controller chain[TD_CONTROLLER_CHAIN_MAX];
    chain[0] = *start;
    for (size_t count = 1; count <= TD_CONTROLLER_CHAIN_MAX; count++) {
        const struct td_controller *at = &chain[count - 1];
        for (size_t i = 0; i + 1 < count; i++) {
            if (is_same(&chain[i], at)) {
                return td_error_set(err, TD_INVALID, "cycle detected in ownership chain");
            }
        }
        struct td_controller parent;
        bool has_parent = false;
        int code = visit(context, at, &parent, &has_parent, err);
        if (code < 0 || !has_parent) {
            return code;
        }
        if (count < TD_CONTROLLER_CHAIN_MAX) {
            chain[count] = parent;
        }
    }
    return td_error_set(err, TD_LIMIT, "more than %d controllers above each other",
                        TD_CONTROLLER_CHAIN_MAX);
}

int td_controller_top(const struct td_workload_source *source, const struct td_controller *start,
                      struct td_controller *ret, bool *ret_found, struct td_error *err)
{
    struct top_walk walk = {.source = source};
    int code = td_controllers_walk(start, visit_controller, &walk, err);
    if (code == TD_OK) {
        *ret = walk.top;
        *ret_found = walk.is_found;
    }
    return code;
}

static int selector_from_scale(struct td_arena *arena, const struct td_workload_source *source,
                               const struct td_controller *target, td_str group,
                               struct td_selector *ret, struct td_error *err)
{
    struct td_scale_answer scale = {.code = TD_OK};
    int code = find_scale(source, group, target, &scale, err);
    if (code < 0) {
        return code;
    }
    if (scale.selector.len == 0) {
        return td_error_set(err, TD_INVALID,
                            "resource %.*s/%.*s has an empty selector for scale sub-resource",
                            TD_STR_ARG(target->namespace), TD_STR_ARG(target->name));
    }
    return td_selector_parse(arena, scale.selector, ret, err);
}

int td_target_selector(struct td_arena *arena, const struct td_workload_source *source,
                       const struct td_controller *target, struct td_selector *ret,
                       struct td_error *err)
{
    if (target->kind.len == 0 && target->name.len == 0) {
        return td_error_set(err, TD_INVALID,
                            "targetRef not defined. If this is a v1beta1 object, switch to v1");
    }
    if (td_workload_kind_of(target->kind) == TD_WORKLOAD_OTHER) {
        td_str group;
        int code = parse_group(target->api_version, &group, err);
        if (code < 0) {
            return code;
        }
        struct td_error reason = TD_ERROR_INIT;
        code = selector_from_scale(arena, source, target, group, ret, &reason);
        return code < 0 ? unhandled(target, &reason, err) : TD_OK;
    }
    const struct td_workload *workload =
        source->get_workload(source->context, target->kind, target->namespace, target->name);
    if (!workload) {
        return td_error_set(err, TD_NOT_FOUND, "%.*s %.*s/%.*s does not exist",
                            TD_STR_ARG(target->kind), TD_STR_ARG(target->namespace),
                            TD_STR_ARG(target->name));
    }
    if (workload->selector_error.len > 0) {
        return td_error_set(err, TD_INVALID, "%.*s", TD_STR_ARG(workload->selector_error));
    }
    *ret = workload->selector;
    return TD_OK;
}

int td_target_check(const struct td_workload_source *source, const struct td_controller *target,
                    struct td_error *err)
{
    struct td_controller top;
    bool is_found = false;
    struct td_error reason = TD_ERROR_INIT;
    int code = td_controller_top(source, target, &top, &is_found, &reason);
    if (code == TD_BUSY) {
        return td_error_set(err, code, "%s", reason.message);
    }
    if (code < 0) {
        return td_error_set(
            err, TD_INVALID,
            "Error checking if target %.*s.%.*s/%.*s is a topmost well-known or scalable "
            "controller: %s",
            TD_STR_ARG(target->api_version), TD_STR_ARG(target->kind), TD_STR_ARG(target->name),
            reason.message);
    }
    if (!is_found) {
        return td_error_set(
            err, TD_INVALID,
            "Unknown error during checking if target %.*s.%.*s/%.*s is a topmost well-known or "
            "scalable controller",
            TD_STR_ARG(target->api_version), TD_STR_ARG(target->kind), TD_STR_ARG(target->name));
    }
    if (!is_same(&top, target)) {
        return td_error_set(
            err, TD_INVALID,
            "The target %.*s.%.*s/%.*s has a parent controller but it should point to a topmost "
            "well-known or scalable controller",
            TD_STR_ARG(target->api_version), TD_STR_ARG(target->kind), TD_STR_ARG(target->name));
    }
    return TD_OK;
}
