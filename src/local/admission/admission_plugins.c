/*
 * What a cluster does to requests without being told: a namespace must be there and not on its way
 * out, pods get their service account, priority and two tolerations, and are not resized beyond
 * their node. Limit ranges are in a file of their own. Quotas, security policies and image policies
 * are not enforced.
 */
#include "base/error.h"
#include "kube/podresources.h"
#include "local/admission/admission_private.h"
#include "local/store/store.h"

td_str td_admission_name(const struct td_admission_request *request)
{
    const struct td_json *metadata = td_json_get(request->object, TD_STR("metadata"));
    return request->name.len > 0
               ? request->name
               : td_json_get_str(metadata, TD_STR("generateName"), TD_STR("Unknown"));
}

static struct td_stored *plugin_find(struct td_api *api, const char *collection, td_str ns,
                                     td_str name)
{
    return td_store_get(td_api_store(api), td_str_from(collection), ns, name);
}

static td_str plugin_full_name(struct td_arena *arena, const struct td_admission_request *request)
{
    const struct td_resource *resource = request->at.resource;
    return td_arena_format(arena, "%.*s%s%.*s \"%.*s\"", TD_STR_ARG(resource->plural),
                           resource->group.len > 0 ? "." : "", TD_STR_ARG(resource->group),
                           TD_STR_ARG(td_admission_name(request)));
}

/* 403: `deployments.apps "web" is forbidden: WHY` */
static bool plugin_forbid(const struct td_admission_request *request, td_str why,
                          struct td_admission_verdict *ret)
{
    *ret = (struct td_admission_verdict){
        .status = 403,
        .reason = TD_STR("Forbidden"),
        .message = td_arena_format(request->arena, "%s is forbidden: %.*s",
                                   plugin_full_name(request->arena, request).ptr, TD_STR_ARG(why)),
    };
    return false;
}

/* ---- Namespaces ---- */

static bool plugin_is_lasting(td_str name)
{
    return td_str_equal(name, TD_STR("default")) || td_str_equal(name, TD_STR("kube-system")) ||
           td_str_equal(name, TD_STR("kube-public"));
}

/* Clients know a refusal by its cause. */
static const struct td_json *plugin_cause(struct td_arena *arena, struct td_json *cause)
{
    struct td_json *causes = td_json_new_array(arena);
    td_json_append(causes, cause);
    struct td_json *details = td_json_new_object(arena);
    td_json_set(arena, details, TD_STR("causes"), causes);
    return details;
}

/* Controllers know this refusal by its cause, and do not try again. */
static bool plugin_forbid_terminating(const struct td_admission_request *request,
                                      struct td_admission_verdict *ret)
{
    struct td_arena *arena = request->arena;
    struct td_json *cause = td_json_new_object(arena);
    td_json_set_str(arena, cause, TD_STR("reason"), TD_STR("NamespaceTerminating"));
    td_json_set_str(
        arena, cause, TD_STR("message"),
        td_arena_format(arena, "namespace %.*s is being terminated", TD_STR_ARG(request->ns)));
    td_json_set_str(arena, cause, TD_STR("field"), TD_STR("metadata.namespace"));
    (void)plugin_forbid(request,
                        td_arena_format(arena,
                                        "unable to create new content in namespace %.*s because "
                                        "it is being terminated",
                                        TD_STR_ARG(request->ns)),
                        ret);
    ret->details = plugin_cause(arena, cause);
    return false;
}

static bool plugin_check_namespace(struct td_api *api, struct td_admission_request *request,
                                   struct td_admission_verdict *ret)
{
    struct td_arena *arena = request->arena;
    bool is_namespace = td_str_equal(request->at.resource->collection, TD_STR("namespaces"));
    bool is_delete = td_str_equal(td_str_from(request->operation), TD_STR("DELETE"));
    bool is_create = td_str_equal(td_str_from(request->operation), TD_STR("CREATE"));
    if (is_namespace && is_delete && plugin_is_lasting(request->name)) {
        return plugin_forbid(request, TD_STR("this namespace may not be deleted"), ret);
    }
    if (is_delete || !request->at.resource->is_namespaced) {
        return true;
    }
    const struct td_stored *ns = plugin_find(api, "namespaces", TD_STR_EMPTY, request->ns);
    if (!ns) {
        *ret = (struct td_admission_verdict){
            .status = 404,
            .reason = TD_STR("NotFound"),
            .message =
                td_arena_format(arena, "namespaces \"%.*s\" not found", TD_STR_ARG(request->ns)),
        };
        return false;
    }
    struct td_json *tree;
    if (is_create &&
        td_json_parse(arena, ns->json, &(struct td_json_options){.copy_strings = true}, &tree,
                      NULL) == TD_OK &&
        td_json_get_path(tree, "metadata.deletionTimestamp")) {
        return plugin_forbid_terminating(request, ret);
    }
    return true;
}

/* ---- Pods ---- */

/* The account must be there. Only the one called "default" is taken on trust: its controller makes
 * it a moment after the namespace. */
static bool plugin_service_account(struct td_api *api, struct td_admission_request *request,
                                   struct td_json *spec, struct td_admission_verdict *ret)
{
    struct td_arena *arena = request->arena;
    td_str name = td_json_text(spec, "serviceAccountName");
    if (name.len == 0) {
        name = td_json_text(spec, "serviceAccount");
        name = name.len > 0 ? name : TD_STR("default");
        td_json_set_str(arena, spec, TD_STR("serviceAccountName"), name);
    }
    td_json_set_str(arena, spec, TD_STR("serviceAccount"), name);
    if (td_str_equal(name, TD_STR("default")) ||
        plugin_find(api, "serviceaccounts", request->ns, name)) {
        return true;
    }
    return plugin_forbid(request,
                         td_arena_format(arena,
                                         "error looking up service account %.*s/%.*s: "
                                         "serviceaccount \"%.*s\" not found",
                                         TD_STR_ARG(request->ns), TD_STR_ARG(name),
                                         TD_STR_ARG(name)),
                         ret);
}

/* Tolerates `key` for five minutes unless something is said about it. */
static void plugin_tolerate(struct td_arena *arena, struct td_json *spec, td_str key)
{
    struct td_json *list = td_json_get(spec, TD_STR("tolerations"));
    for (const struct td_json *t = td_json_first_item(list); t; t = t->next) {
        td_str named = td_json_text(t, "key");
        td_str effect = td_json_text(t, "effect");
        if ((named.len == 0 || td_str_equal(named, key)) &&
            (effect.len == 0 || td_str_equal(effect, TD_STR("NoExecute")))) {
            return;
        }
    }
    if (!td_json_is(list, TD_JSON_TYPE_ARRAY)) {
        list = td_json_new_array(arena);
        td_json_set(arena, spec, TD_STR("tolerations"), list);
    }
    struct td_json *toleration = td_json_new_object(arena);
    td_json_set_str(arena, toleration, TD_STR("key"), key);
    td_json_set_str(arena, toleration, TD_STR("operator"), TD_STR("Exists"));
    td_json_set_str(arena, toleration, TD_STR("effect"), TD_STR("NoExecute"));
    td_json_set_int64(arena, toleration, TD_STR("tolerationSeconds"), 300);
    td_json_append(list, toleration);
}

/* The class marked globalDefault with the lowest value, or NULL. */
static struct td_json *plugin_default_class(struct td_api *api, struct td_arena *arena)
{
    const struct td_collection *classes =
        td_store_find(td_api_store(api), TD_STR("priorityclasses.scheduling.k8s.io"));
    struct td_json *found = NULL;
    struct td_collection_iter iter = td_collection_walk(classes, TD_STR_EMPTY);
    for (const struct td_stored *stored; (stored = td_collection_iter_next(&iter));) {
        struct td_json *tree;
        if (td_json_parse(arena, stored->json, &(struct td_json_options){.copy_strings = true},
                          &tree, NULL) == TD_OK &&
            td_json_get_bool(tree, TD_STR("globalDefault"), false) &&
            (!found || td_json_get_int64(tree, TD_STR("value"), 0) <
                           td_json_get_int64(found, TD_STR("value"), 0))) {
            found = tree;
        }
    }
    return found;
}

/* The class that a pod names, or the default one; NULL when there is none. */
static struct td_json *plugin_class(struct td_api *api, struct td_arena *arena, td_str name)
{
    if (name.len == 0) {
        return plugin_default_class(api, arena);
    }
    const struct td_stored *stored =
        plugin_find(api, "priorityclasses.scheduling.k8s.io", TD_STR_EMPTY, name);
    struct td_json *tree = NULL;
    if (stored) {
        (void)td_json_parse(arena, stored->json, &(struct td_json_options){.copy_strings = true},
                            &tree, NULL); /* what we stored can be read */
    }
    return tree;
}

static bool plugin_priority(struct td_api *api, struct td_admission_request *request,
                            struct td_json *spec, struct td_admission_verdict *ret)
{
    struct td_arena *arena = request->arena;
    td_str name = td_json_text(spec, "priorityClassName");
    const struct td_json *class = plugin_class(api, arena, name);
    if (!class && name.len > 0) {
        return plugin_forbid(
            request,
            td_arena_format(arena, "no PriorityClass with name %.*s was found", TD_STR_ARG(name)),
            ret);
    }
    int64_t value = td_json_get_int64(class, TD_STR("value"), 0);
    td_str policy =
        td_json_get_str(class, TD_STR("preemptionPolicy"), TD_STR("PreemptLowerPriority"));
    int64_t given = td_json_get_int64(spec, TD_STR("priority"), value);
    td_str given_policy = td_json_get_str(spec, TD_STR("preemptionPolicy"), policy);
    if (given != value) {
        return plugin_forbid(
            request,
            td_arena_format(arena,
                            "the integer value of priority (%lld) must not be provided in pod "
                            "spec; priority admission controller computed %lld from the given "
                            "PriorityClass name",
                            (long long)given, (long long)value),
            ret);
    }
    if (!td_str_equal(given_policy, policy)) {
        return plugin_forbid(
            request,
            td_arena_format(arena,
                            "the string value of PreemptionPolicy (%.*s) must not be provided in "
                            "pod spec; priority admission controller computed %.*s from the given "
                            "PriorityClass name",
                            TD_STR_ARG(given_policy), TD_STR_ARG(policy)),
            ret);
    }
    if (class && name.len == 0) {
        const struct td_json *metadata = td_json_get(class, TD_STR("metadata"));
        td_json_set_str(arena, spec, TD_STR("priorityClassName"), td_json_text(metadata, "name"));
    }
    td_json_set_int64(arena, spec, TD_STR("priority"), value);
    td_json_set_str(arena, spec, TD_STR("preemptionPolicy"), policy);
    return true;
}

static bool plugin_is_new_pod(const struct td_admission_request *request)
{
    return request->subresource.len == 0 && request->object &&
           td_str_equal(td_str_from(request->operation), TD_STR("CREATE")) &&
           td_str_equal(request->at.resource->collection, TD_STR("pods"));
}

bool td_admission_mutate(struct td_api *api, struct td_admission_request *request,
                         struct td_admission_verdict *ret)
{
    if (!plugin_check_namespace(api, request, ret)) {
        return false;
    }
    if (!plugin_is_new_pod(request)) {
        return true;
    }
    struct td_arena *arena = request->arena;
    struct td_json *spec = td_json_ensure_object(arena, request->object, TD_STR("spec"));
    td_admission_limit_defaults(api, request);
    if (!plugin_service_account(api, request, spec, ret)) {
        return false;
    }
    plugin_tolerate(arena, spec, TD_STR("node.kubernetes.io/not-ready"));
    plugin_tolerate(arena, spec, TD_STR("node.kubernetes.io/unreachable"));
    return plugin_priority(api, request, spec, ret);
}

/* ---- Resizes ---- */

/* Appends what the pod wants more of than the node has: "cpu, requested: 500, allocatable: 64". */
static td_str plugin_lack(struct td_arena *arena, td_str lacks, td_str name,
                          const struct td_resource_list *wanted,
                          const struct td_resource_list *offered)
{
    const struct td_quantity zero = {0};
    const struct td_quantity *want = td_resource_list_get(wanted, name);
    const struct td_quantity *have = td_resource_list_get(offered, name);
    have = have ? have : &zero;
    if (!want || td_quantity_compare(want, have) <= 0) {
        return lacks;
    }
    bool is_cpu = td_str_equal(name, TD_STR("cpu"));
    return td_arena_format(arena, "%.*s%s%.*s, requested: %lld, allocatable: %lld",
                           TD_STR_ARG(lacks), lacks.len > 0 ? "; " : "", TD_STR_ARG(name),
                           (long long)(is_cpu ? td_quantity_milli(want) : td_quantity_value(want)),
                           (long long)(is_cpu ? td_quantity_milli(have) : td_quantity_value(have)));
}

/* A bound pod that would never fit on its node is refused at once, before the kubelet sees it. */
static bool plugin_resize(struct td_api *api, const struct td_admission_request *request,
                          struct td_admission_verdict *ret)
{
    struct td_arena *arena = request->arena;
    const struct td_json *spec = td_json_get(request->object, TD_STR("spec"));
    td_str name = td_json_text(spec, "nodeName");
    if (name.len == 0 || td_json_equal(spec, td_json_get(request->old, TD_STR("spec")))) {
        return true;
    }
    const struct td_stored *stored = plugin_find(api, "nodes", TD_STR_EMPTY, name);
    struct td_json *node = NULL;
    if (!stored ||
        td_json_parse(arena, td_arena_copy_str(arena, stored->json), NULL, &node, NULL) != TD_OK) {
        return plugin_forbid(
            request, td_arena_format(arena, "node \"%.*s\" not found", TD_STR_ARG(name)), ret);
    }
    struct td_resource_list wanted;
    struct td_resource_list offered;
    if (td_pod_requests(arena, request->object, &(struct td_pod_resource_options){0}, &wanted,
                        NULL) != TD_OK ||
        td_resource_list_decode(arena, td_json_get_path(node, "status.allocatable"), &offered,
                                NULL) != TD_OK) {
        return true; /* quantities that cannot be read are validation's */
    }
    td_str lacks = plugin_lack(arena, TD_STR_EMPTY, TD_STR("cpu"), &wanted, &offered);
    lacks = plugin_lack(arena, lacks, TD_STR("memory"), &wanted, &offered);
    if (lacks.len == 0) {
        return true;
    }
    struct td_json *cause = td_json_new_object(arena);
    td_json_set_str(arena, cause, TD_STR("reason"), TD_STR("NodeCapacity"));
    (void)plugin_forbid(request,
                        td_arena_format(arena,
                                        "node didn't have enough allocatable resources: %.*s",
                                        TD_STR_ARG(lacks)),
                        ret);
    ret->details = plugin_cause(arena, cause);
    return false;
}

bool td_admission_validate(struct td_api *api, const struct td_admission_request *request,
                           struct td_admission_verdict *ret)
{
    bool is_pod = td_str_equal(request->at.resource->collection, TD_STR("pods"));
    bool is_delete = td_str_equal(td_str_from(request->operation), TD_STR("DELETE"));
    bool is_resize = td_str_equal(request->subresource, TD_STR("resize"));
    bool is_checked = request->subresource.len == 0 || is_resize;
    return !is_pod || is_delete || !is_checked ||
           (td_admission_limit_check(api, request, ret) &&
            (!is_resize || plugin_resize(api, request, ret)));
}
