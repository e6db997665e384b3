/* Every annotation that is read, with any text: the parts of an input between bytes of value 0 are
 * the annotations' values by turns, and the webhook judges a pod, a VPA, an HPA and an Hvpa that
 * have all of them. An answer comes, one that refuses says why, within a budget. */
#include <stdint.h>

#include "base/error.h"
#include "base/json/json.h"
#include "base/limits.h"
#include "budget.h"
#include "decide/vertical/estimator/adaptive_pod.h"
#include "model/pod.h"
#include "support/webhook_bed.h"

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
        td_json_set_str(arena, all, td_str_from(names[i]), td_str_slice(input, from, end));
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
    budget_end(&budget);
    return 0;
}
