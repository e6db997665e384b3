/* VerticalPodAutoscalers from any bytes: nothing crashes, what is refused has a message, what is
 * stored stays as it is when stored again, and a witness of two selectors is matched by both. The
 * input is JSON; a text that is no object of ours is tried as the spec, as the status and as the
 * selector of one. */
#include <stdint.h>

#include "api/vpa/vpa.h"
#include "base/assert.h"
#include "base/error.h"
#include "base/limits.h"
#include "decide/vertical/siblings.h"

#define ARENA_BYTES ((size_t)1 << 30)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_crd(struct td_arena *arena, const struct td_json *object)
{
    struct td_field_errors errors = {.arena = arena};
    struct td_json *stored = NULL;
    struct td_json *again = NULL;
    struct td_error err = TD_ERROR_INIT;
    if (td_vpa_apply_crd(arena, object, &errors, &stored, &err) < 0) {
        td_assert(err.message[0] != '\0');
        return;
    }
    size_t count = errors.count;
    errors.count = 0;
    int code = td_vpa_apply_crd(arena, stored, &errors, &again, NULL);
    td_assert(code == TD_OK);
    td_assert(td_json_equal(stored, again));
    td_assert(errors.count == count);
    td_assert(count < 2 * TD_STRICT_PROBLEMS_MAX);
}

static void check_admission(struct td_arena *arena, const struct td_json *object)
{
    for (unsigned gates = 0; gates < 4; gates++) {
        struct td_field_errors errors = {.arena = arena};
        struct td_json *patches = NULL;
        struct td_json *warnings = NULL;
        struct td_error err = TD_ERROR_INIT;
        const struct td_vpa_admission admission = {
            .is_update = (gates & 1) != 0,
            .object = object,
            .old = object,
            .gates = {.in_place = gates > 1,
                      .per_vpa_config = gates > 1,
                      .cpu_startup_boost = gates > 1,
                      .heterogeneous_workloads = gates > 1,
                      .pod_level_resources = gates > 1},
        };
        if (td_vpa_admit(arena, &admission, &errors, &patches, &warnings, &err) < 0) {
            td_assert(err.message[0] != '\0');
            continue;
        }
        td_assert(patches && warnings);
        td_assert(errors.count == 0 || patches->count == 0);
        td_assert(errors.count < 2 * TD_STRICT_PROBLEMS_MAX);
    }
}

static void check_selectors(struct td_arena *arena, const struct td_vpa *vpa)
{
    const struct td_vpa plain = {.has_target = false};
    const struct td_vpa *const both[] = {vpa, &plain};
    for (size_t i = 0; i < 2 && vpa->has_selector; i++) {
        const struct td_selector *other = both[i]->has_selector ? &both[i]->pod_selector : NULL;
        struct td_selector_relation relation =
            td_selector_disjoint(arena, &vpa->pod_selector, other);
        td_assert(relation.is_disjoint ||
                  td_selector_matches(&vpa->pod_selector, &relation.witness));
        td_assert(!relation.is_contradictory || relation.is_disjoint);
    }
    const struct td_sibling_request request = {
        .vpa = vpa, .existing = both, .existing_count = 2, .gate = true};
    struct td_sibling_judgement judgement = td_vpa_judge_siblings(arena, &request);
    td_assert(judgement.is_allowed == (judgement.message.len == 0));
}

static void run_object(struct td_arena *arena, const struct td_json *object)
{
    struct td_vpa vpa;
    struct td_error err = TD_ERROR_INIT;
    check_crd(arena, object);
    check_admission(arena, object);
    if (td_vpa_decode(arena, object, &vpa, &err) < 0) {
        td_assert(err.message[0] != '\0');
        return;
    }
    (void)td_vpa_container_policy(&vpa.policy, TD_STR("a")); /* any answer will do */
    check_selectors(arena, &vpa);
}

/* An object with one part from outside. */
static struct td_json *object_around(struct td_arena *arena, const char *path, td_str part,
                                     const struct td_json *value)
{
    struct td_json *object = NULL;
    static const char text[] = "{\"apiVersion\":\"autoscaling.k8s.io/v1\","
                               "\"kind\":\"VerticalPodAutoscaler\",\"metadata\":{\"name\":\"a\","
                               "\"namespace\":\"b\"},\"spec\":{\"targetRef\":{\"apiVersion\":"
                               "\"apps/v1\",\"kind\":\"Deployment\",\"name\":\"c\"},"
                               "\"resourcePolicy\":{},\"updatePolicy\":{\"updateMode\":\"Off\"}}}";
    int code = td_json_parse(arena, td_str_from(text), NULL, &object, NULL);
    td_assert(code == TD_OK);
    struct td_json *place = path ? td_json_get_path(object, path) : object;
    td_json_set(arena, place, part, td_json_copy(arena, value, false));
    return object;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct {
        const char *path;
        td_str part;
    } parts[] = {
        {NULL, TD_STR_INIT("spec")},
        {NULL, TD_STR_INIT("status")},
        {NULL, TD_STR_INIT("metadata")},
        {"spec", TD_STR_INIT("selector")},
        {"spec", TD_STR_INIT("startupBoost")},
        {"spec.updatePolicy", TD_STR_INIT("evictionRequirements")},
        {"spec.resourcePolicy", TD_STR_INIT("containerPolicies")},
        {"spec.resourcePolicy", TD_STR_INIT("podPolicies")},
    };
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    td_str text = {.ptr = (const char *)data, .len = size};
    struct td_json *tree = NULL;
    if (td_json_parse(&arena, text, NULL, &tree, NULL) < 0) {
        return 0;
    }
    run_object(&arena, tree);
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        run_object(&arena, object_around(&arena, parts[i].path, parts[i].part, tree));
    }
    return 0;
}
