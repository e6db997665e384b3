/* AdmissionReviews from any bytes: every body is answered by one readable review, what is refused
 * has a message, and what is patched can be applied to the object that was sent. The webhook knows
 * a small cluster: a Deployment, a VPA with a recommendation for it, and a sibling. An input that
 * is no review is tried as the object of one, of every kind. Each takes no more than a
 * budget of time and memory. */
#include <stdint.h>

#include "base/assert.h"
#include "base/base64.h"
#include "base/error.h"
#include "base/limits.h"
#include "budget.h"
#include "kube/patch/patch.h"
#include "support/webhook_bed.h"

#define ARENA_BYTES ((size_t)1 << 30)
#define ANSWER_BYTES ((size_t)64 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct webhook_bed bed;

static struct td_webhook *fuzz_webhook(void)
{
    if (!bed.side.webhook) {
        webhook_bed_init(&bed);
        webhook_bed_vpa(
            &bed, "web", "web", ",'selector':{'matchLabels':{'app':'web'}}",
            "'containerRecommendations':[{'containerName':'app','target':{'cpu':'250m',"
            "'memory':'300Mi'}}],'podRecommendation':{'target':{'cpu':'1','memory':'1Gi'}"
            "}");
        webhook_bed_deploy(&bed, "web", "", "'containers':[{'name':'app','image':'nginx'}]");
        control_bed_run(&bed.c, 5 * TD_SECOND);
    }
    return bed.side.webhook;
}

/* The patch of an answer fits the object of its review. */
static void check_patch(struct td_arena *arena, const struct td_json *review,
                        const struct td_json *response)
{
    td_str text = td_json_get_str(response, TD_STR("patch"), TD_STR_EMPTY);
    td_str bytes;
    struct td_json *patch;
    struct td_json *patched;
    if (text.len == 0) {
        return;
    }
    td_assert(td_json_get_bool(response, TD_STR("allowed"), false));
    td_assert(td_base64_read(arena, text, TD_BASE64_STANDARD, &bytes));
    td_assert(td_json_parse(arena, bytes, NULL, &patch, NULL) == TD_OK);
    const struct td_json *object = td_json_get_path(review, "request.object");
    if (td_json_is(td_json_get(object, TD_STR("metadata")), TD_JSON_TYPE_OBJECT)) {
        td_assert(td_patch_json(arena, object, patch, &patched, NULL) == TD_OK);
    }
}

static void check_answer(struct td_arena *arena, td_str body)
{
    td_auto_buf answer;
    td_buf_init(&answer, ANSWER_BYTES);
    td_webhook_review(fuzz_webhook(), body, &answer);
    struct td_json *tree;
    struct td_json *review = NULL;
    td_assert(td_json_parse(arena, td_buf_str(&answer), NULL, &tree, NULL) == TD_OK);
    const struct td_json *response = td_json_get(tree, TD_STR("response"));
    const struct td_json *allowed = td_json_get(response, TD_STR("allowed"));
    td_assert(td_json_is(allowed, TD_JSON_TYPE_BOOL));
    if (!allowed->boolean) {
        td_str message = td_json_get_str(td_json_get(response, TD_STR("status")), TD_STR("message"),
                                         TD_STR_EMPTY);
        td_assert(message.len > 0);
    }
    if (td_json_parse(arena, body, NULL, &review, NULL) == TD_OK) {
        check_patch(arena, review, response);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct {
        const char *group;
        const char *resource;
        const char *operation;
    } rows[] = {
        {"", "pods", "CREATE"},
        {"autoscaling.k8s.io", "verticalpodautoscalers", "CREATE"},
        {"autoscaling.k8s.io", "verticalpodautoscalers", "UPDATE"},
        {"autoscaling.tandem.dev", "horizontalpodautoscalers", "UPDATE"},
        {"autoscaling.k8s.io", "hvpas", "CREATE"},
    };
    (void)fuzz_webhook();
    const struct budget budget = budget_begin();
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    td_str text = {.ptr = (const char *)data, .len = size};
    check_answer(&arena, text);
    struct td_json *tree;
    bool is_object = td_json_parse(&arena, text, NULL, &tree, NULL) == TD_OK &&
                     !td_json_get(tree, TD_STR("request"));
    for (size_t i = 0; is_object && i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_str body = td_arena_format(
            &arena,
            "{\"request\":{\"uid\":\"u\",\"namespace\":\"default\",\"operation\":\"%s\","
            "\"resource\":{\"group\":\"%s\",\"resource\":\"%s\"},\"object\":%.*s,\"oldObject\":"
            "%.*s}}",
            rows[i].operation, rows[i].group, rows[i].resource, TD_STR_ARG(text), TD_STR_ARG(text));
        check_answer(&arena, body);
    }
    budget_end(&budget);
    return 0;
}
