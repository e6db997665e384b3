/* HorizontalPodAutoscalers from any bytes: nothing crashes, what is refused has a message, and what
 * is converted twice is as if converted once. The input is JSON; a text that is no object of ours
 * is tried as the spec, as the status and as an annotation of one. */
#include <stdint.h>

#include "api/hpa/hpa.h"
#include "base/assert.h"
#include "base/error.h"

#define ARENA_BYTES ((size_t)1 << 30)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const td_str versions[] = {TD_STR_INIT("autoscaling/v1"), TD_STR_INIT("autoscaling/v2"),
                                  TD_STR_INIT("autoscaling.tandem.dev/v2")};

#define VERSION_COUNT (sizeof(versions) / sizeof(versions[0]))

static void check_stable(struct td_arena *arena, const struct td_json *object, td_str version)
{
    struct td_json *once = NULL;
    struct td_json *twice = NULL;
    struct td_json *thrice = NULL;
    struct td_error err = TD_ERROR_INIT;
    if (td_hpa_convert(arena, object, version, &once, &err) < 0) {
        td_assert(err.message[0] != '\0');
        return;
    }
    /* Behavior from an annotation gets its defaults on the second reading only. */
    int code = td_hpa_convert(arena, once, version, &twice, NULL);
    td_assert(code == TD_OK);
    code = td_hpa_convert(arena, twice, version, &thrice, NULL);
    td_assert(code == TD_OK);
    td_assert(td_json_equal(twice, thrice));
    struct td_hpa hpa;
    (void)td_hpa_decode(arena, thrice, &hpa, NULL); /* v1 and unknown words are refused */
}

static void check_admission(struct td_arena *arena, const struct td_json *object)
{
    for (int operation = TD_HPA_CREATE; operation <= TD_HPA_STATUS_UPDATE; operation++) {
        struct td_field_errors errors = {.arena = arena};
        struct td_json *stored = NULL;
        const struct td_hpa_admission admission = {
            .operation = (enum td_hpa_operation)operation,
            .object = object,
            .old = object,
            .gates = {.selection_strategy = operation == TD_HPA_CREATE},
        };
        int code = td_hpa_admit(arena, &admission, &errors, &stored, NULL);
        td_assert(code < 0 || (errors.count == 0) == (stored != NULL));
        struct td_hpa hpa;
        /* A status update does not look at the spec, which may be as bad as it was. */
        if (stored && operation != TD_HPA_STATUS_UPDATE) {
            code = td_hpa_decode(arena, stored, &hpa, NULL);
            td_assert(code == TD_OK);
            td_assert(hpa.min_replicas <= hpa.max_replicas);
        }
    }
}

static void run_object(struct td_arena *arena, const struct td_json *object)
{
    for (size_t i = 0; i < VERSION_COUNT; i++) {
        check_stable(arena, object, versions[i]);
    }
    check_admission(arena, object);
    struct td_json *copy = td_json_copy(arena, object, true);
    if (td_hpa_default(arena, copy, NULL) == TD_OK) {
        struct td_json *again = td_json_copy(arena, copy, true);
        int code = td_hpa_default(arena, again, NULL);
        td_assert(code == TD_OK);
        td_assert(td_json_equal(copy, again));
    }
    struct td_hpa hpa;
    (void)td_hpa_decode(arena, object, &hpa, NULL); /* most are refused */
}

/* An object of version `version` with one part from outside. */
static struct td_json *object_around(struct td_arena *arena, td_str version, const char *part,
                                     struct td_json *value)
{
    struct td_json *object = NULL;
    static const char text[] = "{\"kind\":\"HorizontalPodAutoscaler\","
                               "\"metadata\":{\"name\":\"a\",\"namespace\":\"b\","
                               "\"resourceVersion\":\"1\"},\"spec\":{\"maxReplicas\":3,"
                               "\"scaleTargetRef\":{\"apiVersion\":\"apps/v1\","
                               "\"kind\":\"Deployment\",\"name\":\"c\"}}}";
    int code = td_json_parse(arena, td_str_from(text), NULL, &object, NULL);
    td_assert(code == TD_OK);
    td_json_set(arena, object, TD_STR("apiVersion"), td_json_new_string(arena, version));
    td_json_set(arena, object, td_str_from(part), value);
    return object;
}

static void run_annotations(struct td_arena *arena, td_str text)
{
    static const td_str keys[] = {
        TD_STR_INIT("autoscaling.alpha.kubernetes.io/metrics"),
        TD_STR_INIT("autoscaling.alpha.kubernetes.io/current-metrics"),
        TD_STR_INIT("autoscaling.alpha.kubernetes.io/conditions"),
        TD_STR_INIT("autoscaling.alpha.kubernetes.io/behavior"),
        TD_STR_INIT("tandem.dev/spec-selection-strategy"),
    };
    struct td_json *status = td_json_new_object(arena);
    struct td_json *object = object_around(arena, versions[0], "status", status);
    struct td_json *metadata = td_json_get(object, TD_STR("metadata"));
    struct td_json *annotations = td_json_ensure_object(arena, metadata, TD_STR("annotations"));
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        td_json_set(arena, annotations, keys[i], td_json_new_string(arena, text));
    }
    run_object(arena, object);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    td_str text = {.ptr = (const char *)data, .len = size};
    struct td_json *tree = NULL;
    if (td_json_parse(&arena, text, NULL, &tree, NULL) < 0) {
        return 0;
    }
    run_object(&arena, tree);
    run_annotations(&arena, text);
    for (size_t i = 0; i < VERSION_COUNT; i++) {
        struct td_json *copy = td_json_copy(&arena, tree, true);
        run_object(&arena, object_around(&arena, versions[i], "spec", copy));
        copy = td_json_copy(&arena, tree, true);
        run_object(&arena, object_around(&arena, versions[i], "status", copy));
        copy = td_json_copy(&arena, tree, true);
        run_object(&arena, object_around(&arena, versions[i], "metadata", copy));
    }
    return 0;
}
