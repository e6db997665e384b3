/*
 * The preflight against clusters that are broken on purpose: each differs from a sound one in one
 * answer of the API server, and is named in one line that says what to do.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/base64.h"
#include "base/limits.h"
#include "base/os/clock.h"
#include "base/pki/pki.h"
#include "control/controllers.h"
#include "control/preflight/preflight.h"
#include "support/fake_transport.h"

#define BED_NOW (INT64_C(1760000000) * TD_SECOND) /* 2025-10-09T08:53:20Z */
#define BED_SOON "2025-10-09T08:53:10.000000Z"
#define BED_LONG_AGO "2025-10-09T07:00:00Z"

/* What one answer is instead. */
struct change {
    const char *path; /* part of it, with the method before it: "GET /version" */
    int status;
    const char *body;
};

#define CHANGES_MAX 4

struct bed {
    struct td_clock clock;
    struct td_loop *loop;
    struct fake_transport fake;
    struct td_client *client;
    struct td_arena arena;
    const struct change *changes;
    const char *denied_verb; /* its access reviews say no */
    struct td_preflight_options options;
    struct td_preflight *preflight;
    int code;
    size_t mends;
    const char *text;
};

#define GROUPS(one, other) "{'groups':[{'name':'" one "'},{'name':'" other "'}]}"
#define ITEMS(items) "{'items':[" items "]}"
#define HAS_ACCOUNT                                                                                \
    {                                                                                              \
        "GET /api/v1/namespaces/tandem-system/serviceaccounts/tandem", 200,                        \
            "{'metadata':{'name':'tandem'}}"                                                       \
    }

/* A sound cluster before the installation; what is not here is 404. */
static const struct change sound[] = {
    {"GET /apis$", 200, GROUPS("apps", "metrics.k8s.io")},
    {"GET /api/v1$", 200, "{'resources':[{'name':'pods'},{'name':'pods/resize'}]}"},
    {"GET /version", 200, "{'major':'1','minor':'36','gitVersion':'v1.36.3'}"},
    {"GET /apis/metrics.k8s.io/v1beta1/pods", 200,
     ITEMS("{'metadata':{'name':'a'},'timestamp':'2025-10-09T08:53:00Z'}")},
    {"GET /api/v1/pods?limit=1&shardSelector=", 200,
     "{'metadata':{'shardInfo':{'selector':'shardRange(...)'}},'items':[]}"},
    {"GET /api/v1/pods", 200, ITEMS("{'metadata':{'name':'a'}}")},
    {"GET /apis/apps/v1/deployments", 200, ITEMS("")},
    {"GET /apis/coordination.k8s.io/v1/namespaces/kube-system/leases", 200, ITEMS("")},
    {"GET /apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations", 200, ITEMS("")},
    {"GET /api/v1/namespaces/kube-system/pods", 200, ITEMS("")},
    {"GET /apis/autoscaling/v2/horizontalpodautoscalers", 200, ITEMS("")},
    {"GET /api/v1/nodes", 200,
     ITEMS("{'status':{'declaredFeatures':['InPlacePodLevelResourcesVerticalScaling']}}")},
    {"POST /api/v1/namespaces/default/pods", 201,
     "{'spec':{'resources':{'requests':{'cpu':'10m'}}}}"},
    {"POST /api/v1/namespaces/tandem-system/pods", 201,
     "{'spec':{'resources':{'requests':{'cpu':'10m'}}}}"},
    {"POST /apis/autoscaling/v2/namespaces/", 201,
     "{'spec':{'behavior':{'scaleUp':{'tolerance':'50m'}}}}"},
    {"GET /apis/autoscaling.k8s.io/v1", 200, "{'resources':[{'name':'verticalpodautoscalers'}]}"},
};

static const char *bed_body(struct bed *bed, const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = td_arena_alloc(&bed->arena, size);
    for (size_t i = 0; i < size; i++) {
        copy[i] = text[i] == '\'' ? '"' : text[i];
    }
    return copy;
}

static bool bed_take(struct bed *bed, const struct change *list, size_t count, td_str asked,
                     struct fake_answer *ret)
{
    for (size_t i = 0; i < count && list[i].path; i++) {
        /* "$" at its end: the whole path. */
        td_str path = td_str_from(list[i].path);
        bool is_whole = td_str_ends_with(path, TD_STR("$"));
        path = td_str_slice(path, 0, path.len - (is_whole ? 1 : 0));
        if (is_whole ? td_str_equal(asked, path) : td_str_starts_with(asked, path)) {
            ret->status = list[i].status;
            ret->body = bed_body(bed, list[i].body);
            return true;
        }
    }
    return false;
}

static void bed_answer(void *context, const struct td_call_request *request,
                       struct fake_answer *ret)
{
    struct bed *bed = context;
    td_str asked = td_arena_format(&bed->arena, "%.*s %.*s", TD_STR_ARG(request->method),
                                   TD_STR_ARG(request->path));
    if (td_str_starts_with(request->path, TD_STR("/apis/authorization"))) {
        bool is_denied = bed->denied_verb && memmem(request->body.ptr, request->body.len,
                                                    bed->denied_verb, strlen(bed->denied_verb));
        ret->status = 201;
        ret->body =
            is_denied ? "{\"status\":{\"allowed\":false}}" : "{\"status\":{\"allowed\":true}}";
    } else if (bed_take(bed, bed->changes, CHANGES_MAX, asked, ret) ||
               bed_take(bed, sound, TD_COUNT(sound), asked, ret)) {
        return;
    } else {
        ret->status = 404;
        ret->body = "{\"kind\":\"Status\",\"reason\":\"NotFound\",\"message\":\"not found\"}";
    }
}

static void bed_found(void *context, const struct td_findings *findings)
{
    struct bed *bed = context;
    td_auto_buf text = td_buf_capped(TD_TREE_ARENA_BYTES_MAX);
    td_findings_write(findings, &text);
    bed->code = findings->code;
    bed->mends = findings->mends;
    bed->text = td_arena_copy_str(&bed->arena, td_buf_str(&text)).ptr;
    td_loop_stop(bed->loop);
}

static void bed_init(struct bed *bed, const struct change *changes)
{
    const struct td_controllers_options defaults = td_controllers_options_default();
    *bed = (struct bed){.clock = td_clock_virtual(BED_NOW), .changes = changes};
    td_arena_init(&bed->arena, TD_TREE_ARENA_BYTES_MAX);
    assert_int_equal(td_loop_new(&bed->clock, &bed->loop, NULL), TD_OK);
    fake_init(&bed->fake, bed->loop, bed_answer, bed);
    bed->client = td_client_new(
        &(struct td_client_options){.loop = bed->loop, .transport = &bed->fake.transport});
    bed->options =
        (struct td_preflight_options){.client = bed->client,
                                      .clock = &bed->clock,
                                      .install = {.namespace = TD_STR(TD_INSTALL_NAMESPACE)}};
    bed->options.install.features[TD_FEATURE_HVPA] = defaults.hvpa_gate;
    memcpy(bed->options.install.has, defaults.has, sizeof(defaults.has));
}

static void bed_look(struct bed *bed)
{
    bed->preflight = td_preflight_start(&bed->options, bed_found, bed);
    assert_int_equal(td_loop_run(bed->loop, NULL), TD_OK);
    td_preflight_free(bed->preflight);
}

static void bed_done(struct bed *bed)
{
    td_client_free(bed->client);
    td_loop_free(bed->loop);
    td_arena_done(&bed->arena);
}

static void bed_expect(const struct bed *bed, const char *line)
{
    if (!strstr(bed->text, line)) {
        fail_msg("no line: %s\nin:\n%s", line, bed->text);
    }
}

static const struct change nothing[CHANGES_MAX] = {{NULL, 0, NULL}};

/* A sound cluster, before anything is installed. */
static void test_a_sound_cluster_has_nothing_to_mend(void **state)
{
    (void)state;
    struct bed bed;
    bed_init(&bed, nothing);
    bed_look(&bed);
    assert_int_equal(bed.code, TD_OK);
    if (bed.mends != 0 || strstr(bed.text, "note ")) {
        fail_msg("%s", bed.text);
    }
    bed_expect(&bed, "ok    server      Kubernetes v1.36.3\n");
    bed_expect(&bed, "ok    metrics     metrics.k8s.io answers\n");
    bed_expect(&bed, "ok    rights      you have all ");
    bed_expect(&bed, "ok    upstream    no other vertical autoscaler runs\n");
    bed_expect(&bed, "ok    pods        the program's pod is let into namespace default\n");
    bed_expect(&bed, "nothing to mend\n");
    bed_done(&bed);
}

#define DEPLOYMENT(namespace, name, image)                                                         \
    "{'metadata':{'namespace':'" namespace "','name':'" name                                       \
                                           "'},'spec':{'replicas':1,'template':{'spec':{'"         \
                                           "containers':[{'image':'" image "'}]}}}}"
#define LEASE(name, holder, time)                                                                  \
    "{'metadata':{'name':'" name "'},'spec':{'holderIdentity':'" holder "','renewTime':'" time "'" \
    "}"                                                                                            \
    "}"
#define UPDATER                                                                                    \
    DEPLOYMENT("kube-system", "vpa-updater", "registry.k8s.io/autoscaling/vpa-updater:1.8.1")
#define DEFINITION "GET /apis/apiextensions.k8s.io/v1/customresourcedefinitions/"
#define OF_HELM                                                                                    \
    "{'metadata':{'annotations':{'meta.helm.sh/release-name':'vpa',"                               \
    "'meta.helm.sh/release-namespace':'kube-system'}},"

static const struct {
    struct change changes[CHANGES_MAX];
    const char *denied_verb;
    bool serves_builtin;
    bool replaces;
    size_t mends;
    const char *line;
} broken[] = {
    /* No metrics API, one that does not answer, one without metrics, one that stands still. */
    {.changes = {{"GET /apis$", 200, GROUPS("apps", "batch")}, {"GET /apis/metrics", 404, "{}"}},
     .mends = 1,
     .line = "mend  metrics     metrics.k8s.io is not served; install metrics-server; until then "
             "nothing is learnt from use\n"},
    {.changes = {{"GET /apis/metrics.k8s.io/v1beta1/pods", 503, "{'message':'unavailable'}"},
                 {"GET /apis/apiregistration.k8s.io", 200,
                  "{'status':{'conditions':[{'type':'Available','status':'False','reason':"
                  "'MissingEndpoints','message':'no endpoints'}]}}"}},
     .mends = 1,
     .line = "mend  metrics     metrics.k8s.io does not answer (MissingEndpoints: no endpoints); "
             "mend the Service of APIService v1beta1.metrics.k8s.io\n"},
    {.changes = {{"GET /apis/metrics.k8s.io/v1beta1/pods", 200, ITEMS("")}},
     .mends = 1,
     .line = "mend  metrics     metrics.k8s.io answers, but has metrics of no pod; look at the log "
             "of metrics-server: it cannot read the kubelets\n"},
    {.changes = {{"GET /apis/metrics.k8s.io/v1beta1/pods", 200,
                  ITEMS("{'timestamp':'" BED_LONG_AGO "'}")}},
     .mends = 1,
     .line = "mend  metrics     the newest metrics are 113 minutes old; look at the log of "
             "metrics-server; nothing is updated by old metrics\n"},
    /* Old definitions: of another version, without what has been there for years. */
    {.changes = {{DEFINITION "verticalpodautoscalers.", 200,
                  OF_HELM "'spec':{'versions':[{'name':'v1beta2','served':true}]}}"}},
     .mends = 1,
     .line = "mend  crds        verticalpodautoscalers.autoscaling.k8s.io of Helm release "
             "kube-system/vpa does not serve v1; tandem manifests --only crds | kubectl apply "
             "--server-side --force-conflicts -f - takes .spec.versions from Helm release "
             "kube-system/vpa\n"},
    {.changes = {{DEFINITION "verticalpodautoscalers.", 200,
                  "{'metadata':{'managedFields':[{'manager':'kubectl-client-side-apply'}]},'spec':{"
                  "'versions':[{'name':'v1','served':true,'schema':{'openAPIV3Schema':{"
                  "'properties':{'spec':{'properties':{'targetRef':{}}}}}}}]}}"}},
     .mends = 1,
     .line = "mend  crds        verticalpodautoscalers.autoscaling.k8s.io of manager "
             "'kubectl-client-side-apply' is too old: "},
    {.changes = {{DEFINITION "hvpas.", 200,
                  "{'spec':{'versions':[{'name':'v1alpha1','served':true,'schema':{"
                  "'openAPIV3Schema':{'properties':{'spec':{'properties':{}}}}}}]}}"}},
     .mends = 1,
     .line = "mend  crds        hvpas.autoscaling.k8s.io does not keep "},
    {.changes =
         {{DEFINITION "verticalpodautoscalercheckpoints.", 200,
           "{'spec':{'versions':[{'name':'v1','served':true}]},'status':{'conditions':[{"
           "'type':'NamesAccepted','status':'False','message':'vpacheckpoint is taken'}]}}"}},
     .mends = 1,
     .line = "mend  crds        verticalpodautoscalercheckpoints.autoscaling.k8s.io is not "
             "established (vpacheckpoint is taken); delete the definition that has its names\n"},
    /* Installed, but a definition is gone. */
    {.changes = {HAS_ACCOUNT,
                 {DEFINITION "hvpas.", 404, "{}"},
                 {DEFINITION "vertical", 403, "{}"},
                 {DEFINITION "horizontal", 403, "{}"}},
     .mends = 1,
     .line = "mend  crds        hvpas.autoscaling.k8s.io is not installed; tandem manifests --only "
             "crds | kubectl apply --server-side -f -\n"},
    /* A missing verb, of ours and of the service account. */
    {.denied_verb = "\"resize\"",
     .mends = 1,
     .line = "mend  rights      you lack apiGroups: [\"\"], resources: [\"pods/resize\"], verbs: "
             "[\"patch\"] (ClusterRole); install with an account that has it\n"},
    {.changes = {HAS_ACCOUNT, {DEFINITION "", 403, "{}"}},
     .denied_verb = "\"resize\"",
     .mends = 1,
     .line = "mend  rights      service account tandem-system/tandem lacks apiGroups: [\"\"], "
             "resources: [\"pods/resize\"], verbs: [\"patch\"] (ClusterRole); tandem manifests "
             "--only rbac | kubectl apply --server-side -f -\n"},
    {.changes = {HAS_ACCOUNT, {DEFINITION "", 403, "{}"}},
     .denied_verb = "\"resize\"",
     .serves_builtin = true,
     .mends = 1,
     .line =
         "tandem manifests --horizontal=builtin --only rbac | kubectl apply --server-side -f -\n"},
    /* A second updater, in upstream's place and elsewhere; one that is no Deployment; ours. */
    {.changes = {{"GET /apis/apps/v1/deployments", 200, ITEMS(UPDATER)}},
     .mends = 1,
     .line = "mend  upstream    vpa-updater acts: Deployment kube-system/vpa-updater, 1 replica; "
             "kubectl -n kube-system scale deployment vpa-updater --replicas=0; until then ours "
             "holds, or use --replace-upstream\n"},
    {.changes = {{"GET /apis/apps/v1/deployments", 200,
                  ITEMS(DEPLOYMENT("vpa", "a-updater", "example.com/vpa-updater-arm64@sha256:0"))}},
     .replaces = true,
     .mends = 1,
     .line = "mend  upstream    vpa-updater acts: Deployment vpa/a-updater, 1 replica; kubectl -n "
             "vpa scale deployment a-updater --replicas=0; ours would act beside it\n"},
    {.changes = {{"GET /apis/coordination.k8s.io", 200,
                  ITEMS(LEASE("vpa-recommender-lease", "laptop_1", BED_SOON))}},
     .mends = 1,
     .line = "mend  upstream    'laptop_1' holds lease kube-system/vpa-recommender-lease; stop it; "
             "until then ours holds, or use --replace-upstream\n"},
    {.changes = {{"GET /apis/apps/v1/deployments", 200,
                  ITEMS(DEPLOYMENT("old", "tandem", "example.com/tandem:1"))}},
     .mends = 1,
     .line = "mend  tandem      another installation: Deployment old/tandem; tandem manifests "
             "--uninstall --namespace old | kubectl delete --ignore-not-found -f -\n"},
    {.changes = {{"GET /apis/coordination.k8s.io", 200,
                  ITEMS(LEASE("tandem-updater", "tandem-alone_laptop_1", BED_SOON))}},
     .mends = 1,
     .line = "mend  tandem      a 'tandem run' outside the cluster runs the updater: "
             "'tandem-alone_laptop_1' holds lease kube-system/tandem-updater; stop it, or leave "
             "that controller out with --controllers\n"},
    {.changes = {{"GET /apis/apps/v1/deployments", 200,
                  ITEMS(DEPLOYMENT("garden", "hvpa-controller",
                                   "eu.gcr.io/gardener/hvpa-controller:v0.17"))}},
     .mends = 1,
     .line =
         "mend  upstream    hvpa-controller acts: Deployment garden/hvpa-controller, 1 replica; "
         "kubectl -n garden scale deployment hvpa-controller --replicas=0; ours would act "
         "beside it\n"},
    /* A policy that refuses our pods. */
    {.changes = {{"POST /api/v1/namespaces/default/pods", 422,
                  "{'kind':'Status','message':'ValidatingAdmissionPolicy tags denied request'}"}},
     .mends = 1,
     .line = "mend  pods        the program's pod is refused in namespace default: POST "},
    /* Two that scale the same. */
    {.changes = {{"GET /api/v1/namespaces/kube-system/pods", 200,
                  ITEMS("{'spec':{'containers':[{'command':['kube-controller-manager',"
                        "'--controllers=*,bootstrapsigner']}]}}")}},
     .serves_builtin = true,
     .mends = 1,
     .line = "mend  hpa         kube-controller-manager reconciles HPAs of autoscaling/v2 too; "},
    {.changes = {{"GET /apis/autoscaling/v2/horizontalpodautoscalers", 200,
                  ITEMS("{'metadata':{'creationTimestamp':'" BED_LONG_AGO "'},'status':{}}")}},
     .mends = 1,
     .line =
         "mend  hpa         no controller reconciles HPAs of autoscaling/v2; --horizontal=builtin "
         "lets Tandem do it\n"},
    {.changes = {{"GET /apis/keda.sh", 200,
                  ITEMS("{'metadata':{'namespace':'shop','name':'web'},'spec':{'scaleTargetRef':{"
                        "'name':'web'}}}")},
                 {"GET /apis/autoscaling.k8s.io/v1alpha1/hvpas", 200,
                  ITEMS("{'metadata':{'namespace':'shop'},'spec':{'targetRef':{'kind':"
                        "'Deployment','name':'web'}}}")},
                 {"GET /apis$", 200, GROUPS("keda.sh", "metrics.k8s.io")}},
     .mends = 1,
     .line = "mend  keda        ScaledObject shop/web and an Hvpa both scale Deployment shop/web; "
             "delete one of the two; an Hvpa takes KEDA's metrics as External ones\n"},
};

/* Each with one thing wrong: one line that names it and its remedy. */
static void test_each_broken_cluster_is_named_in_one_line(void **state)
{
    (void)state;
    for (size_t i = 0; i < TD_COUNT(broken); i++) {
        struct bed bed;
        bed_init(&bed, broken[i].changes);
        bed.denied_verb = broken[i].denied_verb;
        bed.options.install.features[TD_FEATURE_BUILTIN] = broken[i].serves_builtin;
        bed.options.install.replaces_upstream = broken[i].replaces;
        bed_look(&bed);
        assert_int_equal(bed.code, TD_OK);
        bed_expect(&bed, broken[i].line);
        if (bed.mends != broken[i].mends) {
            fail_msg("case %zu: %zu to mend\n%s", i, bed.mends, bed.text);
        }
        bed_done(&bed);
    }
}

static const struct {
    struct change changes[CHANGES_MAX];
    const char *line;
} lesser[] = {
    {{{"GET /version", 200, "{'major':'1','minor':'29+','gitVersion':'v1.29.1-gke'}"}},
     "note  server      Kubernetes v1.29.1-gke; tested with 1.34 to 1.36; what it lacks is "
     "below\n"},
    {{{"GET /api/v1$", 200, "{'resources':[{'name':'pods'}]}"}},
     "note  server      no in-place resize: pods/resize is not served; InPlaceOrRecreate evicts, "
     "InPlace changes no running pod\n"},
    {{{"GET /api/v1/nodes", 200, ITEMS("{'status':{}}")}},
     "note  server      no node declares InPlacePodLevelResourcesVerticalScaling; "},
    {{{"POST /api/v1/namespaces/default/pods", 201, "{'spec':{}}"}},
     "note  server      no pod-level resources: spec.resources of a pod is not kept; pods are "
     "sized by container\n"},
    {{{"GET /api/v1/pods?limit=1&shardSelector=", 200, "{'metadata':{},'items':[]}"}},
     "note  server      no sharded lists and watches: shardSelector is passed over; with --shards "
     "each replica is sent all objects, and drops those of others\n"},
    {{{"POST /apis/autoscaling/v2", 422, "{'kind':'Status','message':'no'}"}},
     "note  server      no scale to zero: minReplicas 0 of an autoscaling/v2 HPA is refused; "},
    {{{"POST /apis/autoscaling/v2", 201, "{'spec':{}}"}},
     "note  server      no tolerance in the behavior of an HPA: "},
    {{{"GET /apis/metrics.k8s.io/v1beta1/pods", 200, ITEMS("")},
      {"GET /api/v1/pods", 200,
       ITEMS("{'metadata':{'creationTimestamp':'2025-10-09T08:53:00Z'}}")}},
     "ok    metrics     metrics.k8s.io answers\n"}, /* they are too young to have some */
    {{{"GET /apis/apps/v1/deployments", 403, "{}"}},
     "note  upstream    Deployments of all namespaces, or leases of kube-system, may not be "},
    {{{"GET /apis/admissionregistration", 200,
       ITEMS("{'metadata':{'name':'vpa-webhook-config'}}")}},
     "note  webhook     vpa-webhook-config is registered, but no server answers for it; kubectl "
     "delete mutatingwebhookconfiguration vpa-webhook-config\n"},
};

/* What is worth knowing does not fail. */
static void test_what_a_server_lacks_is_a_note(void **state)
{
    (void)state;
    for (size_t i = 0; i < TD_COUNT(lesser); i++) {
        struct bed bed;
        bed_init(&bed, lesser[i].changes);
        bed_look(&bed);
        bed_expect(&bed, lesser[i].line);
        assert_int_equal(bed.mends, 0);
        bed_done(&bed);
    }
}

/* Beside upstream's, and in its place, upstream's programs are as they should be. */
static void test_upstream_is_fine_where_it_is_meant(void **state)
{
    (void)state;
    static const struct change with[CHANGES_MAX] = {
        {"GET /apis/apps/v1/deployments", 200, ITEMS(UPDATER)}};
    struct bed bed;
    bed_init(&bed, with);
    memset(bed.options.install.has, 0, sizeof(bed.options.install.has));
    bed.options.install.has[TD_CONTROLLER_SHADOW] = true;
    bed_look(&bed);
    bed_expect(&bed, "ok    upstream    vpa-updater acts: Deployment kube-system/vpa-updater, 1 "
                     "replica; --shadow leaves everything to it\n");
    assert_int_equal(bed.mends, 0);
    bed_done(&bed);
    bed_init(&bed, with);
    bed.options.install.replaces_upstream = true;
    bed_look(&bed);
    bed_expect(&bed, "1 replica; --replace-upstream stands by and takes over (docs/migrate.md)\n");
    assert_int_equal(bed.mends, 0);
    bed_done(&bed);
}

/* A lease that its holder left behind, renewed or not even that. */
static void test_a_lease_left_behind_is_nobody(void **state)
{
    (void)state;
    static const struct change left[CHANGES_MAX] = {
        {"GET /apis/coordination.k8s.io", 200,
         ITEMS(LEASE("vpa-updater", "a",
                     BED_LONG_AGO) ",{'metadata':{'name':"
                                   "'vpa-admission-controller','creationTimestamp':'" BED_LONG_AGO
                                   "'},'spec':{'holderIdentity':'b'}}")}};
    struct bed bed;
    bed_init(&bed, left);
    bed_look(&bed);
    bed_expect(&bed, "ok    upstream    no other vertical autoscaler runs\n");
    assert_int_equal(bed.mends, 0);
    bed_done(&bed);
}

/* As JSON in a Secret or a webhook configuration. */
static const char *bed_base64(struct bed *bed, td_str bytes)
{
    td_auto_buf text = td_buf_capped(2 * TD_PEM_BYTES_MAX);
    td_base64_write(bytes, TD_BASE64_STANDARD, &text);
    return td_arena_copy_str(&bed->arena, td_buf_str(&text)).ptr;
}

/* Pods are not changed when API servers do not know the webhook's authority, or it has expired. */
static void test_a_wrong_authority_is_named(void **state)
{
    (void)state;
    static const struct {
        int64_t issued; /* of the certificate */
        bool is_other;
        const char *line;
    } cases[] = {
        {BED_NOW / TD_SECOND, false,
         "ok    webhook     tandem-webhook-config is registered with its authority\n"},
        {BED_NOW / TD_SECOND, true,
         "mend  webhook     caBundle of tandem-webhook-config is not the authority in Secret "
         "tandem-system/tandem-webhook-tls: no pod is changed; kubectl -n tandem-system rollout "
         "restart deployment tandem\n"},
        {BED_NOW / TD_SECOND - 3 * 366 * 86400, false,
         "mend  webhook     the webhook's certificate has expired; kubectl -n tandem-system delete "
         "secret tandem-webhook-tls\n"},
    };
    for (size_t i = 0; i < TD_COUNT(cases); i++) {
        struct bed bed;
        struct change changes[CHANGES_MAX] = {{NULL, 0, NULL}};
        bed_init(&bed, changes);
        td_auto_pki_pair authority;
        td_auto_pki_pair other;
        td_auto_pki_pair server;
        td_pki_pair_init(&authority);
        td_pki_pair_init(&other);
        td_pki_pair_init(&server);
        const struct td_instant at = {.unix_seconds = cases[i].issued};
        const struct td_pki_names names = {.common_name = TD_STR("tandem-webhook")};
        assert_int_equal(td_pki_make_ca(TD_STR("a"), at, &authority, NULL), TD_OK);
        assert_int_equal(td_pki_make_ca(TD_STR("b"), at, &other, NULL), TD_OK);
        assert_int_equal(td_pki_issue_server(td_buf_str(&authority.certificate_pem),
                                             td_buf_str(&authority.key_pem), &names, at, &server,
                                             NULL),
                         TD_OK);
        const struct td_pki_pair *known = cases[i].is_other ? &other : &authority;
        changes[0] = (struct change){
            "GET /apis/admissionregistration", 200,
            td_arena_format(&bed.arena,
                            ITEMS("{'metadata':{'name':'tandem-webhook-config'},'webhooks':[{"
                                  "'clientConfig':{'caBundle':'%s'}}]}"),
                            bed_base64(&bed, td_buf_str(&known->certificate_pem)))
                .ptr};
        changes[1] = (struct change){
            "GET /api/v1/namespaces/tandem-system/secrets/", 200,
            td_arena_format(&bed.arena, "{'data':{'caCert.pem':'%s','serverCert.pem':'%s'}}",
                            bed_base64(&bed, td_buf_str(&authority.certificate_pem)),
                            bed_base64(&bed, td_buf_str(&server.certificate_pem)))
                .ptr};
        bed_look(&bed);
        bed_expect(&bed, cases[i].line);
        bed_done(&bed);
    }
}

/* A list that comes in pages is read to its end. */
static void test_deployments_are_read_page_by_page(void **state)
{
    (void)state;
    static const struct change pages[CHANGES_MAX] = {
        {"GET /apis/apps/v1/deployments?limit=250&continue=b", 200, ITEMS(UPDATER)},
        {"GET /apis/apps/v1/deployments", 200,
         "{'metadata':{'continue':'b'},'items':[" DEPLOYMENT("a", "web",
                                                             "example.com/web:1") "]}"}};
    struct bed bed;
    bed_init(&bed, pages);
    bed_look(&bed);
    bed_expect(&bed, "vpa-updater acts: Deployment kube-system/vpa-updater");
    bed_done(&bed);
}

/* What cannot be reached is no list of findings. */
static void test_a_server_that_does_not_answer_is_an_error(void **state)
{
    (void)state;
    static const struct change dead[CHANGES_MAX] = {{"GET /version", 401, "{}"}};
    struct bed bed;
    bed_init(&bed, dead);
    bed_look(&bed);
    assert_int_equal(bed.code, TD_DENIED);
    bed_done(&bed);
}

/* At the start of `tandem run`: only what every user may read. */
static void test_the_short_form_reads_discovery_only(void **state)
{
    (void)state;
    static const struct change old[CHANGES_MAX] = {{"GET /apis/autoscaling.k8s.io/v1", 404, "{}"}};
    struct bed bed;
    bed_init(&bed, old);
    bed.options.is_short = true;
    bed_look(&bed);
    assert_string_equal(bed.text,
                        "ok    server      Kubernetes v1.36.3\n"
                        "ok    metrics     metrics.k8s.io is served\n"
                        "mend  crds        autoscaling.k8s.io/v1 is not served: there are no VPAs; "
                        "tandem manifests --only crds | kubectl apply --server-side -f -\n"
                        "1 to mend\n");
    assert_int_equal(bed.fake.starts, 4);
    bed_done(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_sound_cluster_has_nothing_to_mend),
        cmocka_unit_test(test_each_broken_cluster_is_named_in_one_line),
        cmocka_unit_test(test_what_a_server_lacks_is_a_note),
        cmocka_unit_test(test_upstream_is_fine_where_it_is_meant),
        cmocka_unit_test(test_a_lease_left_behind_is_nobody),
        cmocka_unit_test(test_a_wrong_authority_is_named),
        cmocka_unit_test(test_deployments_are_read_page_by_page),
        cmocka_unit_test(test_a_server_that_does_not_answer_is_an_error),
        cmocka_unit_test(test_the_short_form_reads_discovery_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
