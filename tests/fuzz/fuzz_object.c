/* Objects made out of the schema table: the bytes of an input choose a kind, then field by field
 * what it has, mostly of the type that the table says and now and then of another. The API server
 * takes it as a dry run and the webhook as a review: both answer, within a budget. */
#include <stdint.h>

#include "base/error.h"
#include "base/json/json.h"
#include "base/limits.h"
#include "budget.h"
#include "kube/schema/schema.h"
#include "support/webhook_bed.h"

#define OBJECT_DEPTH_MAX 12
#define OBJECT_NODES_MAX 400
#define OBJECT_TURNS_MAX 5000 /* of the loop: a webhook may hold a pod for its owner */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct {
    const char *api_version;
    const char *kind;
    const char *target;
    const char *resource; /* of a review; NULL: the webhook is not asked */
} kinds[] = {
    {"v1", "Pod", "/api/v1/namespaces/default/pods", "\"group\":\"\",\"resource\":\"pods\""},
    {"autoscaling.k8s.io/v1", "VerticalPodAutoscaler",
     "/apis/autoscaling.k8s.io/v1/namespaces/default/verticalpodautoscalers",
     "\"group\":\"autoscaling.k8s.io\",\"resource\":\"verticalpodautoscalers\""},
    {"autoscaling.k8s.io/v1alpha1", "Hvpa",
     "/apis/autoscaling.k8s.io/v1alpha1/namespaces/default/hvpas",
     "\"group\":\"autoscaling.k8s.io\",\"resource\":\"hvpas\""},
    {"autoscaling/v2", "HorizontalPodAutoscaler",
     "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers",
     "\"group\":\"autoscaling.tandem.dev\",\"resource\":\"horizontalpodautoscalers\""},
    {"apps/v1", "Deployment", "/apis/apps/v1/namespaces/default/deployments", NULL},
    {"apps/v1", "StatefulSet", "/apis/apps/v1/namespaces/default/statefulsets", NULL},
    {"batch/v1", "CronJob", "/apis/batch/v1/namespaces/default/cronjobs", NULL},
    {"v1", "LimitRange", "/api/v1/namespaces/default/limitranges", NULL},
    {"policy/v1", "PodDisruptionBudget", "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
     NULL},
    {"rbac.authorization.k8s.io/v1", "Role",
     "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles", NULL},
};

static const char *const texts[] = {"web",    "app",        "",        "1",
                                    "100m",   "1Gi",        "-1",      "5m0s",
                                    "Auto",   "Deployment", "apps/v1", "2026-01-01T00:00:00Z",
                                    "*",      "a/b",        "1e9999",  "cpu",
                                    "memory", "Recreate",   "25%"};

/* The bytes that choose; at their end always 0. */
struct choices {
    const uint8_t *data;
    size_t size;
    size_t at;
    size_t nodes;
    struct td_arena *arena;
};

static size_t choose(struct choices *choices, size_t count)
{
    return choices->at < choices->size ? choices->data[choices->at++] % count : 0;
}

static struct td_json *make(struct choices *choices, const struct td_schema_type *type, int depth);

static struct td_json *make_text(struct choices *choices, const struct td_schema_type *type)
{
    td_str values = type ? type->values : TD_STR_EMPTY;
    size_t place = choose(choices, 8);
    td_str word = td_str_from(texts[choose(choices, TD_COUNT(texts))]);
    for (; values.len > 0 && place > 0; place--) {
        size_t end = td_str_find(values, ',', 0);
        word = td_str_slice(values, 0, end);
        values = end < values.len ? td_str_slice(values, end + 1, values.len) : TD_STR_EMPTY;
    }
    return td_json_new_string(choices->arena, word);
}

static struct td_json *make_number(struct choices *choices)
{
    static const int64_t numbers[] = {0, 1, 2, -1, 100, INT32_MAX, INT32_MIN, INT64_MAX, 1000000};
    return td_json_new_int64(choices->arena, numbers[choose(choices, TD_COUNT(numbers))]);
}

static struct td_json *make_members(struct choices *choices, const struct td_schema_type *type,
                                    int depth)
{
    struct td_json *object = td_json_new_object(choices->arena);
    size_t wanted = 1 + choose(choices, 6);
    for (size_t i = 0; i < type->field_count && type->kind == TD_SCHEMA_OBJECT; i++) {
        const struct td_schema_field *field = &type->fields[i];
        if (field->is_required || choose(choices, type->field_count) < wanted) {
            td_json_set(choices->arena, object, field->name, make(choices, field->type, depth + 1));
        }
    }
    for (size_t i = 0; i < wanted && type->kind == TD_SCHEMA_MAP; i++) {
        td_json_set(choices->arena, object, td_str_from(texts[choose(choices, TD_COUNT(texts))]),
                    make(choices, type->element, depth + 1));
    }
    return object;
}

static struct td_json *make(struct choices *choices, const struct td_schema_type *type, int depth)
{
    if (depth > OBJECT_DEPTH_MAX || choices->nodes++ > OBJECT_NODES_MAX || !type ||
        choices->at >= choices->size) {
        return td_json_new_null(choices->arena);
    }
    if (choose(choices, 32) == 31) { /* another type than it has to be */
        return choose(choices, 2) == 0 ? make_number(choices) : make_text(choices, NULL);
    }
    struct td_json *list = NULL;
    switch (type->kind) {
    case TD_SCHEMA_OBJECT:
    case TD_SCHEMA_MAP:
        return make_members(choices, type, depth);
    case TD_SCHEMA_LIST:
        list = td_json_new_array(choices->arena);
        for (size_t count = choose(choices, 4); count > 0; count--) {
            td_json_append(list, make(choices, type->element, depth + 1));
        }
        return list;
    case TD_SCHEMA_BOOL:
        return td_json_new_bool(choices->arena, choose(choices, 2) == 1);
    case TD_SCHEMA_INT32:
    case TD_SCHEMA_INT64:
    case TD_SCHEMA_NUMBER:
        return make_number(choices);
    case TD_SCHEMA_INT_OR_STRING:
    case TD_SCHEMA_ANY:
        return choose(choices, 2) == 0 ? make_number(choices) : make_text(choices, type);
    default:
        return make_text(choices, type);
    }
}

static struct webhook_bed bed;

static void send_object(size_t kind, td_str text)
{
    bed_auto_answer answer;
    bed_answer_init(&answer);
    char target[200];
    (void)snprintf(target, sizeof(target), "%s?dryRun=All", kinds[kind].target);
    const struct bed_request request = {.method = "POST", .target = target, .body = text};
    bed_ask(&bed.c.bed, &request, &answer);
    for (int turn = 0; turn < OBJECT_TURNS_MAX && answer.status == 0; turn++) {
        bed_run(&bed.c.bed, TD_MILLISECOND);
    }
    td_assert(answer.status >= 200 && answer.status < 500);
}

static void review_object(struct td_arena *arena, size_t kind, td_str text)
{
    td_auto_buf answer = td_buf_capped((size_t)64 << 20);
    td_str body = td_arena_format(
        arena,
        "{\"request\":{\"uid\":\"u\",\"namespace\":\"default\",\"operation\":\"CREATE\",\"kind\":{"
        "\"kind\":\"%s\"},\"resource\":{%s},\"object\":%.*s}}",
        kinds[kind].kind, kinds[kind].resource, TD_STR_ARG(text));
    struct td_json *tree;
    td_webhook_review(bed.side.webhook, body, &answer);
    td_assert(td_json_parse(arena, td_buf_str(&answer), NULL, &tree, NULL) == TD_OK);
    td_assert(td_json_is(td_json_get_path(tree, "response.allowed"), TD_JSON_TYPE_BOOL));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!bed.side.webhook) {
        webhook_bed_init(&bed);
        webhook_bed_vpa(&bed, "web", "web", "",
                        "'containerRecommendations':[{'containerName':'app','target':{'cpu':'250m',"
                        "'memory':'300Mi'}}]");
    }
    const struct budget budget = budget_begin();
    td_auto_arena arena = td_arena_capped((size_t)1 << 30);
    struct choices choices = {.data = data, .size = size, .arena = &arena};
    size_t kind = choose(&choices, TD_COUNT(kinds));
    const struct td_schema_type *type =
        td_schema_find(td_str_from(kinds[kind].api_version), td_str_from(kinds[kind].kind));
    struct td_json *object = make(&choices, type, 0);
    if (td_json_is(object, TD_JSON_TYPE_OBJECT)) {
        td_json_set_str(&arena, object, TD_STR("apiVersion"), td_str_from(kinds[kind].api_version));
        td_json_set_str(&arena, object, TD_STR("kind"), td_str_from(kinds[kind].kind));
        td_json_set_str(&arena, td_json_ensure_object(&arena, object, TD_STR("metadata")),
                        TD_STR("name"), TD_STR("x"));
    }
    td_str text = td_json_line(&arena, object);
    send_object(kind, text);
    if (kinds[kind].resource) {
        review_object(&arena, kind, text);
    }
    td_arena_reset(&bed.c.bed.arena);
    budget_end(&budget);
    return 0;
}
