/* The webhook takes reviews whose objects, and whose own members, have every shape: it answers each
 * of them, and never with nothing. */
#include "support/shapes.h"
#include "support/webhook_bed.h"

#define BODY_BYTES ((size_t)8 << 20)

/* A review of an object of one of the kinds that the webhook judges. */
struct reviewing {
    struct td_webhook *webhook;
    size_t allowed;
    size_t denied;
};

static void review_shape(struct shapes *shapes, const struct td_json *review, void *context)
{
    struct reviewing *reviewing = context;
    (void)shapes;
    td_auto_buf body;
    td_auto_buf answer;
    td_buf_init(&body, BODY_BYTES);
    td_buf_init(&answer, BODY_BYTES);
    td_json_write(review, NULL, &body);
    td_webhook_review(reviewing->webhook, td_buf_str(&body), &answer);
    td_auto_arena arena;
    td_arena_init(&arena, BODY_BYTES);
    struct td_json *reported = shapes_parse(&arena, answer.len > 0 ? answer.ptr : "null");
    const struct td_json *response = td_json_get(reported, TD_STR("response"));
    if (!td_json_is(td_json_get(response, TD_STR("allowed")), TD_JSON_TYPE_BOOL)) {
        fail_msg("%.*s: %.*s", TD_STR_ARG(td_buf_str(&body)), TD_STR_ARG(td_buf_str(&answer)));
    }
    if (td_json_get_bool(response, TD_STR("allowed"), false)) {
        reviewing->allowed++;
    } else {
        reviewing->denied++;
    }
}

static const struct review_row {
    const char *group;
    const char *version;
    const char *kind;
    const char *plural;
} rows[] = {
    {"", "v1", "Pod", "pods"},
    {"autoscaling.k8s.io", "v1", "VerticalPodAutoscaler", "verticalpodautoscalers"},
    {"autoscaling.k8s.io", "v1alpha1", "Hvpa", "hvpas"},
    {"autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers"},
    {"autoscaling.tandem.dev", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers"},
};

/* The review as a server sends it: the object is also what it was before, for an update. */
static struct td_json *review_make(struct shapes *shapes, const struct review_row *row,
                                   const char *operation)
{
    struct td_arena *arena = &shapes->arena;
    td_str version =
        td_arena_format(arena, "%s%s%s", row->group, row->group[0] ? "/" : "", row->version);
    const struct td_schema_type *type = shapes_schema(version, td_str_from(row->kind));
    assert_non_null(type);
    struct td_json *object = shapes_object(shapes, type, version, td_str_from(row->kind));
    /* What is on its way out is not judged. */
    td_json_take(td_json_get_path(object, "metadata.deletionTimestamp"), td_json_new_null(arena));
    td_str text = td_arena_format(
        arena,
        "{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\",\"request\":{"
        "\"uid\":\"u\",\"kind\":{\"group\":\"%s\",\"version\":\"%s\",\"kind\":\"%s\"},"
        "\"resource\":{\"group\":\"%s\",\"version\":\"%s\",\"resource\":\"%s\"},\"name\":\"a\","
        "\"namespace\":\"a\",\"operation\":\"%s\",\"userInfo\":{\"username\":\"u\",\"groups\":["
        "\"g\"]},\"dryRun\":false,\"options\":{\"kind\":\"CreateOptions\"}}}",
        row->group, row->version, row->kind, row->group, row->version, row->plural, operation);
    struct td_json *review = shapes_parse(arena, text.ptr);
    shapes_list_below(shapes, review, 0);
    struct td_json *request = td_json_get(review, TD_STR("request"));
    bool is_update = td_str_equal(td_str_from(operation), TD_STR("UPDATE"));
    td_json_set(arena, request, TD_STR("oldObject"),
                is_update ? td_json_copy(arena, object, true) : td_json_new_null(arena));
    td_json_set(arena, request, TD_STR("object"), object);
    return review;
}

static void test_every_review_in_every_shape(void **state)
{
    (void)state;
    static const char *const operations[] = {"CREATE", "UPDATE"};
    struct webhook_bed h;
    webhook_bed_init(&h);
    struct reviewing reviewing = {.webhook = h.side.webhook};
    for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
        struct shapes shapes;
        shapes_init(&shapes);
        struct td_json *review = review_make(&shapes, &rows[i / 2], operations[i % 2]);
        shapes_each(&shapes, review, review_shape, &reviewing);
        shapes_done(&shapes);
    }
    printf("%zu allowed, %zu denied\n", reviewing.allowed, reviewing.denied);
    assert_true(reviewing.allowed > 0);
    assert_true(reviewing.denied > 0);
    webhook_bed_stop(&h);
    webhook_bed_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_review_in_every_shape),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
