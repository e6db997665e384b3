/*
 * The questions: where each is asked, and what is tried. A trial is a dry run of something that
 * the controllers, or the pods they size, need: it shows what admission says to it, and which of
 * its fields the server keeps.
 */
#include "api/vpa/vpa.h"
#include "base/assert.h"
#include "base/limits.h"
#include "control/preflight/preflight_private.h"
#include "control/upstream.h"
#include "kube/paths.h"

#define ASK_DEFINITION "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"
#define ASK_NAMESPACES "/api/v1/namespaces/"
#define ASK_SYSTEM ASK_NAMESPACES TD_UPSTREAM_NAMESPACE

struct ask_row {
    const char *path; /* of a trial: what is before the namespace */
    bool in_short;
    bool is_own;            /* the path goes on behind the program's namespace */
    const char *collection; /* of a trial: "pods" */
    const char *body;       /* of a trial; NULL: the program's own pod */
};

static const struct ask_row ask_rows[PREFLIGHT_QUESTIONS] = {
    [PREFLIGHT_VERSION] = {.path = "/version", .in_short = true},
    [PREFLIGHT_GROUPS] = {.path = "/apis", .in_short = true},
    [PREFLIGHT_CORE] = {.path = "/api/v1", .in_short = true},
    [PREFLIGHT_SERVED] = {.path = "/apis/autoscaling.k8s.io/v1", .in_short = true},
    [PREFLIGHT_SERVICE] =
        {.path = "/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.metrics.k8s.io"},
    [PREFLIGHT_METRICS] = {.path = "/apis/metrics.k8s.io/v1beta1/pods?limit=100"},
    [PREFLIGHT_PODS] = {.path = "/api/v1/pods?limit=100&fieldSelector=status.phase%3DRunning"},
    [PREFLIGHT_VPAS] = {.path = ASK_DEFINITION "verticalpodautoscalers.autoscaling.k8s.io"},
    [PREFLIGHT_CHECKPOINTS] = {.path = ASK_DEFINITION
                               "verticalpodautoscalercheckpoints.autoscaling.k8s.io"},
    [PREFLIGHT_OWN_HPAS] = {.path =
                                ASK_DEFINITION "horizontalpodautoscalers.autoscaling.tandem.dev"},
    [PREFLIGHT_HVPAS] = {.path = ASK_DEFINITION "hvpas.autoscaling.k8s.io"},
    [PREFLIGHT_SHADOWS] = {.path = ASK_DEFINITION TD_SHADOW_PLURAL "." TD_SHADOW_GROUP},
    [PREFLIGHT_LEASES] = {.path = "/apis/coordination.k8s.io/v1/namespaces/" TD_UPSTREAM_NAMESPACE
                                  "/leases?limit=500"},
    [PREFLIGHT_WEBHOOKS] =
        {.path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations?limit=500"},
    [PREFLIGHT_MANAGERS] = {.path = ASK_SYSTEM
                            "/pods?labelSelector=component%3Dkube-controller-manager"},
    [PREFLIGHT_HPAS] = {.path = "/apis/autoscaling/v2/horizontalpodautoscalers?limit=100"},
    [PREFLIGHT_NODES] = {.path = "/api/v1/nodes?limit=100"},
    [PREFLIGHT_SHARDED] = {.path =
                               "/api/v1/pods?limit=1&shardSelector=shardRange%28object.metadata."
                               "uid%2C%20%270x0000000000000000%27%2C%20%270x8000000000000000%27"
                               "%29"},
    [PREFLIGHT_NAMESPACE] = {.path = "", .is_own = true},
    [PREFLIGHT_ACCOUNT] = {.path = "/serviceaccounts/tandem", .is_own = true},
    [PREFLIGHT_SECRET] = {.path = "/secrets/tandem-webhook-tls", .is_own = true},
    [PREFLIGHT_SCALED] = {.path = "/apis/keda.sh/v1alpha1/scaledobjects?limit=500"},
    [PREFLIGHT_HVPA_OBJECTS] = {.path = "/apis/autoscaling.k8s.io/v1alpha1/hvpas?limit=500"},
    [PREFLIGHT_DEPLOYMENTS] = {.path = "/apis/apps/v1/deployments?limit=250"},
    [PREFLIGHT_TRY_POD] = {.path = "/api/v1", .collection = "pods"},
    [PREFLIGHT_TRY_POD_LEVEL] =
        {.path = "/api/v1",
         .collection = "pods",
         .body = "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"" PREFLIGHT_PROBE
                 "\"},\"spec\":{\"resources\":{\"requests\":{\"cpu\":\"10m\"}},"
                 "\"securityContext\":{\"runAsNonRoot\":true,\"runAsUser\":65532,"
                 "\"seccompProfile\":{\"type\":\"RuntimeDefault\"}},"
                 "\"containers\":[{\"name\":\"probe\",\"image\":\"probe\",\"securityContext\":{"
                 "\"allowPrivilegeEscalation\":false,\"capabilities\":{\"drop\":[\"ALL\"]}}}]}}"},
    [PREFLIGHT_TRY_ZERO] =
        {.path = "/apis/autoscaling/v2",
         .collection = "horizontalpodautoscalers",
         .body = "{\"apiVersion\":\"autoscaling/v2\",\"kind\":\"HorizontalPodAutoscaler\","
                 "\"metadata\":{\"name\":\"" PREFLIGHT_PROBE "\"},\"spec\":{\"scaleTargetRef\":{"
                 "\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"name\":\"probe\"},"
                 "\"minReplicas\":0,\"maxReplicas\":2,\"metrics\":[{\"type\":\"External\","
                 "\"external\":{\"metric\":{\"name\":\"probe\"},\"target\":{\"type\":\"Value\","
                 "\"value\":\"1\"}}}]}}"},
    [PREFLIGHT_TRY_TOLERANCE] =
        {.path = "/apis/autoscaling/v2",
         .collection = "horizontalpodautoscalers",
         .body = "{\"apiVersion\":\"autoscaling/v2\",\"kind\":\"HorizontalPodAutoscaler\","
                 "\"metadata\":{\"name\":\"" PREFLIGHT_PROBE "\"},\"spec\":{\"scaleTargetRef\":{"
                 "\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"name\":\"probe\"},"
                 "\"maxReplicas\":2,\"behavior\":{\"scaleUp\":{\"tolerance\":\"0.05\"}}}}"},
};

bool preflight_is_wanted(const struct td_preflight *preflight, enum preflight_question question)
{
    const bool *has = preflight->options.install.has;
    if (preflight->options.is_short) {
        return ask_rows[question].in_short;
    }
    return (question != PREFLIGHT_TRY_ZERO && question != PREFLIGHT_TRY_TOLERANCE) ||
           has[TD_CONTROLLER_HORIZONTAL];
}

struct td_client_request preflight_read(struct td_preflight *preflight,
                                        enum preflight_question question)
{
    const struct ask_row *row = &ask_rows[question];
    td_str path = td_str_from(row->path);
    td_assert(path.len > 0 || row->is_own);
    if (row->is_own) {
        path = td_arena_format(&preflight->arena, ASK_NAMESPACES "%.*s%s",
                               TD_STR_ARG(preflight->options.install.namespace), row->path);
    }
    return (struct td_client_request){.method = TD_STR("GET"), .path = path};
}

td_str preflight_place(const struct td_preflight *preflight)
{
    return preflight_tree(preflight, PREFLIGHT_NAMESPACE) ? preflight->options.install.namespace
                                                          : TD_STR("default");
}

/* The pod of our Deployment. Its service account may be what is still to be installed. */
static td_str ask_own_pod(struct td_preflight *preflight)
{
    struct td_arena *arena = &preflight->arena;
    struct td_install_options install = preflight->options.install;
    struct td_json *objects = NULL;
    const struct td_json *template = NULL;
    for (size_t part = 0; part < TD_INSTALL_PARTS; part++) {
        install.wants[part] = part == TD_INSTALL_DEPLOYMENT;
    }
    install.image = install.image.len > 0 ? install.image : TD_STR("tandem");
    int code = td_install_objects(arena, &install, &objects, NULL);
    td_assert(code == TD_OK); /* the names were looked at before */
    for (const struct td_json *object = td_json_first_item(objects); object && !template;
         object = object->next) {
        template = td_json_get_path(object, "spec.template");
    }
    struct td_json *pod = td_json_copy(arena, template, false);
    td_json_set_str(arena, pod, TD_STR("apiVersion"), TD_STR("v1"));
    td_json_set_str(arena, pod, TD_STR("kind"), TD_STR("Pod"));
    struct td_json *metadata = td_json_ensure_object(arena, pod, TD_STR("metadata"));
    td_json_set_str(arena, metadata, TD_STR("name"), TD_STR(PREFLIGHT_PROBE));
    if (!preflight_tree(preflight, PREFLIGHT_ACCOUNT)) {
        (void)td_json_remove(td_json_get(pod, TD_STR("spec")), TD_STR("serviceAccountName"));
    }
    return td_json_line(arena, pod);
}

struct td_client_request preflight_try(struct td_preflight *preflight,
                                       enum preflight_question question)
{
    const struct ask_row *row = &ask_rows[question];
    td_str place = preflight_place(preflight);
    return (struct td_client_request){
        .method = TD_STR("POST"),
        .path = td_arena_format(&preflight->arena, "%s/namespaces/%.*s/%s?dryRun=All", row->path,
                                TD_STR_ARG(place), row->collection),
        .body = row->body ? td_str_from(row->body) : ask_own_pod(preflight),
        .is_idempotent = true, /* nothing is kept of a dry run */
    };
}
