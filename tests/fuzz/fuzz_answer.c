/* A webhook that answers the local API server with any bytes, one that mutates and one that
 * validates: a create is answered once, with a Status where it is refused, within a budget, and
 * what was stored can be read. */
#include <stdint.h>

#include "base/error.h"
#include "base/limits.h"
#include "budget.h"
#include "support/api_bed.h"

#define FUZZ_URL "https://localhost/fuzz"
#define FUZZ_HOOKS "/apis/admissionregistration.k8s.io/v1/"
#define FUZZ_HOOK(kind)                                                                            \
    "{\"metadata\":{\"name\":\"h\"},\"webhooks\":[{\"name\":\"" kind                               \
    ".a.b\",\"clientConfig\":{\"url\":\"" FUZZ_URL                                                 \
    "\"},\"rules\":[{\"operations\":[\"CREATE\"],\"apiGroups\":[\"\"],\"apiVersions\":[\"v1\"],"   \
    "\"resources\":[\"configmaps\"]}],\"sideEffects\":\"None\",\"admissionReviewVersions\":["      \
    "\"v1\"],\"failurePolicy\":\"Fail\"}]}"
#define FUZZ_TURNS_MAX 50 /* of the loop: webhooks are asked in a later one */
#define FUZZ_MAP "/api/v1/namespaces/default/configmaps"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct bed bed;
static bool is_ready;
static td_str said;
static td_str uid_mark = TD_STR_INIT("UID");

/* The bytes; where they say UID, that of the request stands. */
static void answer_review(void *context, td_str review, struct td_buf *answer)
{
    (void)context;
    size_t at = 0;
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_json *tree = NULL;
    (void)td_json_parse(&arena, review, NULL, &tree, NULL);
    td_str uid = td_json_text(td_json_get(tree, TD_STR("request")), "uid");
    for (; at < said.len; at++) {
        td_str rest = td_str_slice(said, at, said.len);
        if (td_str_starts_with(rest, uid_mark)) {
            (void)td_buf_append(answer, uid);
            at += uid_mark.len - 1;
        } else {
            (void)td_buf_append_char(answer, said.ptr[at]);
        }
    }
}

static int fuzz_send(const char *method, const char *target, const char *body)
{
    bed_auto_answer answer;
    bed_answer_init(&answer);
    const struct bed_request request = {
        .method = method, .target = target, .body = td_str_from(body)};
    bed_ask(&bed, &request, &answer);
    for (int turn = 0; turn < FUZZ_TURNS_MAX && answer.status == 0; turn++) {
        bed_run(&bed, TD_MILLISECOND);
    }
    return answer.status;
}

static void fuzz_begin(void)
{
    if (is_ready) {
        return;
    }
    is_ready = true;
    bed_init(&bed);
    td_api_answer_reviews(bed.api, TD_STR(FUZZ_URL), answer_review, NULL);
    (void)fuzz_send("POST", "/api/v1/namespaces", "{\"metadata\":{\"name\":\"default\"}}");
    td_assert(fuzz_send("POST", FUZZ_HOOKS "mutatingwebhookconfigurations", FUZZ_HOOK("m")) == 201);
    td_assert(fuzz_send("POST", FUZZ_HOOKS "validatingwebhookconfigurations", FUZZ_HOOK("v")) ==
              201);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_begin();
    const struct budget budget = budget_begin();
    said = (td_str){.ptr = (const char *)data, .len = size};
    int status =
        fuzz_send("POST", FUZZ_MAP, "{\"metadata\":{\"name\":\"m\"},\"data\":{\"k\":\"v\"}}");
    td_assert(status == 201 || (status >= 400 && status <= 500));
    if (status == 201) {
        td_assert(fuzz_send("GET", FUZZ_MAP, "") == 200);
        td_assert(fuzz_send("DELETE", FUZZ_MAP, "{}") == 200);
    }
    td_arena_reset(&bed.arena);
    budget_end(&budget);
    return 0;
}
