/* Every annotation that is read, with any text: the parts of an input between bytes of value 0 are
 * the annotations' values by turns, and the webhook judges a pod, a VPA, an HPA and an Hvpa that
 * have all of them. An answer comes, one that refuses says why. A pod and an HPA with them live for
 * a while on the local cluster. All of it within a budget. */
#include <stdint.h>

#include "base/error.h"
#include "base/json/json.h"
#include "base/limits.h"
#include "budget.h"
#include "decide/vertical/estimator/adaptive_pod.h"
#include "model/pod.h"
#include "support/webhook_bed.h"

#define TURNS_MAX 5000 /* of the loop, for one answer */
#define LIVE_TIME (40 * TD_SECOND)
#define LIVE_BYTES_MIN 20 /* of an input: a shorter one reaches none of these annotations */
#define LIVE_HPAS "/apis/autoscaling/"
#define LIVE_HPAS_REST "/namespaces/default/horizontalpodautoscalers"
#define LIVE_USAGE "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods/live"
#define LIVE_METRIC "/apis/custom.metrics.k8s.io/v1beta2/namespaces/default/pods/live/rate"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[] = {
    "tandem.dev/estimator",
    "tandem.dev/risk",
    "tandem.dev/track",
    "tandem.dev/track-shortage",
    "tandem.dev/adaptive",
    "tandem.dev/resized",
    "tandem.dev/oom",
    "tandem.dev/names",
    "tandem.dev/on-delete",
    "tandem.dev/hvpa",
    "tandem.dev/hvpa-child",
    "tandem.dev/hpa-selection-strategy",
    "tandem.dev/spec-selection-strategy",
    "tandem.dev/webhook-probe",
    "autoscaling.alpha.kubernetes.io/pod-selection-strategy",
    "autoscaling.alpha.kubernetes.io/behavior",
    "autoscaling.alpha.kubernetes.io/metrics",
    "autoscaling.alpha.kubernetes.io/conditions",
    "vpa-post-processor.kubernetes.io/app_integerCPU",
    "startup-cpu-boost.autoscaling.k8s.io/app",
    "vpaCpuStartupBoost/app",
    "vpaObservedContainers",
    "vpaUpdates",
    "usage.tandem.dev/app",
    "tandem.dev/runs-for",
    "runs-for.tandem.dev/app",
    "tandem.dev/exit-code",
    "exit-code.tandem.dev/app",
    "metrics.tandem.dev/rate",
    "metrics.tandem.dev/external",
    "vpaInPlaceUpdated",
    "tandem.dev/workload",
    "tandem.dev/decision",
    "tandem.dev/kubelet",
    "autoscaling.alpha.kubernetes.io/current-metrics",
};

static struct webhook_bed bed;

static struct td_webhook *annotation_webhook(void)
{
    if (!bed.side.webhook) {
        webhook_bed_init(&bed);
        webhook_bed_vpa(&bed, "web", "web", "",
                        "'containerRecommendations':[{'containerName':'app','target':{'cpu':'250m',"
                        "'memory':'300Mi'}}]");
        webhook_bed_deploy(&bed, "web", "", "'containers':[{'name':'app','image':'nginx'}]");
        control_bed_run(&bed.c, 5 * TD_SECOND);
    }
    return bed.side.webhook;
}

static struct td_json *annotations_of(struct td_arena *arena, td_str input)
{
    struct td_json *all = td_json_new_object(arena);
    size_t from = 0;
    for (size_t i = 0; i < TD_COUNT(names) && from <= input.len; i++) {
        size_t end = td_str_find(input, '\0', from);
        if (end > from) { /* else it has none of that name */
            td_json_set_str(arena, all, td_str_from(names[i]), td_str_slice(input, from, end));
        }
        from = end < input.len ? end + 1 : 0;
    }
    return all;
}

static void judge(struct td_arena *arena, const char *kind, const char *where,
                  const struct td_json *annotations, const char *rest)
{
    td_auto_buf answer = td_buf_capped((size_t)64 << 20);
    td_str body = td_arena_format(
        arena,
        "{\"request\":{\"uid\":\"u\",\"namespace\":\"default\",\"operation\":\"CREATE\",%s,"
        "\"kind\":{\"kind\":\"%s\"},\"object\":{\"metadata\":{\"name\":\"web\",\"labels\":{\"app\":"
        "\"web\"},\"ownerReferences\":[{\"controller\":true,\"apiVersion\":\"apps/v1\",\"kind\":"
        "\"Deployment\",\"name\":\"web\"}],\"annotations\":%.*s},%s}}}",
        where, kind, TD_STR_ARG(td_json_line(arena, annotations)), rest);
    td_webhook_review(annotation_webhook(), body, &answer);
    struct td_json *tree;
    td_assert(td_json_parse(arena, td_buf_str(&answer), NULL, &tree, NULL) == TD_OK);
    const struct td_json *response = td_json_get(tree, TD_STR("response"));
    const struct td_json *allowed = td_json_get(response, TD_STR("allowed"));
    td_assert(td_json_is(allowed, TD_JSON_TYPE_BOOL));
    td_assert(allowed->boolean ||
              td_json_text(td_json_get(response, TD_STR("status")), "message").len > 0);
}

/* What a recommender reads of the pods themselves. */
static void read_pod(struct td_arena *arena, const struct td_json *annotations)
{
    struct td_json *tree;
    struct td_pod pod;
    td_str text = td_arena_format(
        arena,
        "{\"metadata\":{\"name\":\"web\",\"namespace\":\"default\",\"annotations\":%.*s},\"spec\":{"
        "\"containers\":[{\"name\":\"app\",\"resources\":{\"requests\":{\"cpu\":\"1\"}}}]}}",
        TD_STR_ARG(td_json_line(arena, annotations)));
    if (td_json_parse(arena, text, NULL, &tree, NULL) == TD_OK &&
        td_pod_decode(arena, tree, &pod, NULL) == TD_OK) {
        (void)td_resized_at(&pod, &pod.containers[0], TD_STR("cpu"));
    }
}

/* ---- The local cluster, whose kubelets, metrics and conversions read some of them ---- */

static int send(const char *method, const char *target, td_str body, struct bed_answer *answer)
{
    const struct bed_request request = {.method = method, .target = target, .body = body};
    bed_ask(&bed.c.bed, &request, answer);
    for (int turn = 0; turn < TURNS_MAX && answer->status == 0; turn++) {
        bed_run(&bed.c.bed, TD_MILLISECOND);
    }
    td_assert(answer->status >= 200 && answer->status < 500);
    return answer->status;
}

static int send_quietly(const char *method, const char *target, td_str body)
{
    bed_auto_answer answer;
    bed_answer_init(&answer);
    return send(method, target, body, &answer);
}

/* What a pod is told to use is used, as quantities of 0 or more. */
static void check_usage(struct td_arena *arena)
{
    static const char *const resources[] = {"cpu", "memory"};
    bed_auto_answer answer;
    bed_answer_init(&answer);
    struct td_json *tree;
    if (send("GET", LIVE_USAGE, TD_STR_EMPTY, &answer) != 200) {
        return;
    }
    td_assert(td_json_parse(arena, td_buf_str(&answer.body), NULL, &tree, NULL) == TD_OK);
    const struct td_json *containers = td_json_get(tree, TD_STR("containers"));
    for (const struct td_json *c = td_json_first_item(containers); c; c = c->next) {
        for (size_t i = 0; i < TD_COUNT(resources); i++) {
            struct td_quantity amount;
            td_str text = td_json_text(td_json_get(c, TD_STR("usage")), resources[i]);
            td_assert(td_quantity_parse(arena, text, &amount, NULL) == TD_OK);
            td_assert(td_quantity_sign(&amount) >= 0);
        }
    }
}

static void live(struct td_arena *arena, const struct td_json *annotations)
{
    td_str text = td_json_line(arena, annotations);
    (void)send_quietly("POST", WEBHOOK_PODS,
                       td_arena_format(arena,
                                       "{\"metadata\":{\"name\":\"live\",\"annotations\":%.*s},"
                                       "\"spec\":{\"containers\":[{\"name\":\"app\",\"image\":"
                                       "\"a\",\"resources\":{\"limits\":{\"memory\":\"1Gi\"}}}]}}",
                                       TD_STR_ARG(text)));
    (void)send_quietly("POST", LIVE_HPAS "v1" LIVE_HPAS_REST,
                       td_arena_format(arena,
                                       "{\"metadata\":{\"name\":\"live\",\"annotations\":%.*s},"
                                       "\"spec\":{\"maxReplicas\":3,\"scaleTargetRef\":{"
                                       "\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\","
                                       "\"name\":\"other\"}}}",
                                       TD_STR_ARG(text)));
    (void)send_quietly("GET", LIVE_HPAS "v2" LIVE_HPAS_REST, TD_STR_EMPTY);
    control_bed_run(&bed.c, LIVE_TIME);
    check_usage(arena);
    (void)send_quietly("GET", LIVE_METRIC, TD_STR_EMPTY);
    (void)send_quietly("DELETE", WEBHOOK_PODS "/live", TD_STR("{\"gracePeriodSeconds\":0}"));
    (void)send_quietly("DELETE", LIVE_HPAS "v2" LIVE_HPAS_REST "/live", TD_STR_EMPTY);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    (void)annotation_webhook();
    const struct budget budget = budget_begin();
    td_auto_arena arena = td_arena_capped((size_t)1 << 30);
    const struct td_json *all =
        annotations_of(&arena, (td_str){.ptr = (const char *)data, .len = size});
    judge(&arena, "Pod", "\"resource\":{\"group\":\"\",\"resource\":\"pods\"}", all,
          "\"spec\":{\"containers\":[{\"name\":\"app\",\"image\":\"a\"}]}");
    judge(&arena, "VerticalPodAutoscaler",
          "\"resource\":{\"group\":\"autoscaling.k8s.io\",\"resource\":\"verticalpodautoscalers\"}",
          all,
          "\"spec\":{\"targetRef\":{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"name\":"
          "\"other\"}}");
    judge(&arena, "HorizontalPodAutoscaler",
          "\"resource\":{\"group\":\"autoscaling.tandem.dev\",\"resource\":"
          "\"horizontalpodautoscalers\"}",
          all,
          "\"spec\":{\"maxReplicas\":3,\"scaleTargetRef\":{\"apiVersion\":\"apps/v1\",\"kind\":"
          "\"Deployment\",\"name\":\"other\"}}");
    judge(&arena, "Hvpa", "\"resource\":{\"group\":\"autoscaling.k8s.io\",\"resource\":\"hvpas\"}",
          all,
          "\"spec\":{\"targetRef\":{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"name\":"
          "\"other\"},\"hpaSpec\":{\"maxReplicas\":3},\"vpaSpec\":{}}");
    read_pod(&arena, all);
    if (size > LIVE_BYTES_MIN) {
        live(&arena, all);
        td_arena_reset(&bed.c.bed.arena);
    }
    budget_end(&budget);
    return 0;
}
