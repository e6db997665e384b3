/* The API server takes every kind with every member in every shape: it answers, with a refusal or
 * without, and goes on. */
#include "support/api_bed.h"
#include "support/shapes.h"

#include "local/kinds/kinds.h"
#include "local/resources/resource.h"

#define TURN_BYTES ((size_t)64 << 20)
#define BODY_BYTES ((size_t)8 << 20)

/* One kind in one version, on its way to the server. */
struct sending {
    struct bed *bed;
    const struct td_resource *resource;
    size_t version;
    char target[300];
    char apply[300];
    size_t answers[600]; /* by status */
};

static void send_once(struct sending *sending, const char *method, const char *target,
                      const char *type, const struct td_json *object)
{
    td_auto_buf body;
    td_buf_init(&body, BODY_BYTES);
    td_json_write(object, NULL, &body);
    bed_auto_answer answer;
    bed_answer_init(&answer);
    const struct bed_request request = {
        .method = method,
        .target = target,
        .accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
        .content_type = type,
        .body = td_buf_str(&body),
    };
    bed_ask(sending->bed, &request, &answer);
    if (answer.status < 200 || answer.status > 499) {
        fail_msg("%s %s: %d %s: %s", method, target, answer.status, td_buf_str(&answer.body).ptr,
                 body.ptr);
    }
    sending->answers[answer.status]++;
}

/* Defaults, in place, by themselves: their errors are not read. */
static void send_default(struct shapes *shapes, const struct sending *sending,
                         const struct td_json *object)
{
    for (int reported = 0; reported < 2; reported++) {
        td_auto_arena arena;
        td_arena_init(&arena, TURN_BYTES);
        struct td_error err = TD_ERROR_INIT;
        struct td_json *copy = td_json_copy(&arena, object, true);
        int code = td_kind_default(&arena, sending->resource, sending->version, copy,
                                   reported ? &err : NULL);
        shapes_check(shapes, code, reported ? &err : NULL);
    }
}

static void send_shape(struct shapes *shapes, const struct td_json *object, void *context)
{
    struct sending *sending = context;
    send_default(shapes, sending, object);
    send_once(sending, "POST", sending->target, "application/json", object);
    if (sending->apply[0]) {
        td_auto_arena arena;
        td_arena_init(&arena, TURN_BYTES);
        struct td_json *applied = td_json_copy(&arena, object, false);
        struct td_json *metadata = td_json_get(applied, TD_STR("metadata"));
        (void)td_json_remove(metadata, TD_STR("managedFields")); /* as a client that applies */
        (void)td_json_remove(metadata, TD_STR("uid"));
        send_once(sending, "PATCH", sending->apply, "application/apply-patch+yaml", applied);
    }
}

static void sending_aim(struct sending *sending, const struct td_resource *resource, size_t version)
{
    sending->resource = resource;
    sending->version = version;
    bool is_core = resource->group.len == 0;
    char root[200];
    (void)snprintf(root, sizeof(root), "%s%.*s%s%.*s", is_core ? "/api" : "/apis/",
                   TD_STR_ARG(resource->group), "/", TD_STR_ARG(resource->versions[version].name));
    (void)snprintf(sending->target, sizeof(sending->target), "%s%s/%.*s?dryRun=All", root,
                   resource->is_namespaced ? "/namespaces/a" : "", TD_STR_ARG(resource->plural));
    sending->apply[0] = '\0';
    if (resource->verbs & TD_VERB_PATCH) {
        (void)snprintf(sending->apply, sizeof(sending->apply),
                       "%s%s/%.*s/a?dryRun=All&fieldManager=a&force=true", root,
                       resource->is_namespaced ? "/namespaces/a" : "",
                       TD_STR_ARG(resource->plural));
    }
}

static void test_every_kind_in_every_shape(void **state)
{
    (void)state;
    struct bed bed;
    bed_init(&bed);
    bed_auto_answer answer;
    bed_answer_init(&answer);
    assert_int_equal(
        bed_call(&bed, "POST", "/api/v1/namespaces", "{\"metadata\":{\"name\":\"a\"}}", &answer),
        201);
    assert_int_equal(bed_call(&bed, "POST", "/api/v1/namespaces/a/serviceaccounts",
                              "{\"metadata\":{\"name\":\"a\"}}", &answer),
                     201);
    struct shapes shapes;
    shapes_init(&shapes);
    shapes.has_once = true; /* a pod template is tried in one kind */
    struct td_resources *resources = td_resources_new();
    struct sending sending = {.bed = &bed};
    size_t kinds = 0;
    for (size_t i = 0; i < td_resources_count(resources); i++) {
        const struct td_resource *resource = td_resources_row(resources, i);
        for (size_t v = 0; v < resource->version_count; v++) {
            const struct td_schema_type *type = resource->versions[v].type;
            if (!(resource->verbs & TD_VERB_CREATE) || !type) {
                continue;
            }
            sending_aim(&sending, resource, v);
            struct td_json *object =
                shapes_object(&shapes, type, resource->versions[v].api_version, resource->kind);
            td_json_take(td_json_get_path(object, "metadata.resourceVersion"),
                         td_json_new_string(&shapes.arena, TD_STR_EMPTY));
            shapes_each(&shapes, object, send_shape, &sending);
            kinds++;
        }
    }
    printf(
        "%zu kinds, %llu shapes: %zu made, %zu asked and answered, %zu undecodable, %zu invalid\n",
        kinds, (unsigned long long)shapes.tried, sending.answers[201], sending.answers[200],
        sending.answers[400], sending.answers[422]);
    assert_true(kinds > 50);
    assert_true(sending.answers[201] > 0);
    assert_true(sending.answers[400] > shapes.tried / 4);
    td_resources_free(resources);
    shapes_done(&shapes);
    bed_done(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_kind_in_every_shape),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
