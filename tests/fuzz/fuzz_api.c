/*
 * Requests of any shape through the API handler on a small populated cluster. The input is method,
 * target, Accept and Content-Type, each ended by a newline, and then the body. Every request gets
 * exactly one answer: one head, one end, and never a failure of the server (504 tells of a version
 * that is still to come, as upstream's). What goes on, such as a watch, is given time and then
 * cancelled.
 */
#include <stdint.h>

#include "base/assert.h"
#include "support/api_objects.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void populate(struct bed *bed)
{
    static const struct bed_object objects[] = {
        {"namespaces", "v1", "Namespace", NULL, "default", NULL, ",\"spec\":{},\"status\":{}"},
        {"configmaps", "v1", "ConfigMap", "default", "a", "\"x\":\"y\"", ",\"data\":{\"k\":\"v\"}"},
        {"configmaps", "v1", "ConfigMap", "default", "b", NULL, NULL},
        {"pods", "v1", "Pod", "default", "web", "\"app\":\"web\"",
         ",\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i\",\"resources\":{}}]},"
         "\"status\":{\"phase\":\"Running\"}"},
        {"deployments.apps", "apps/v1", "Deployment", "default", "web", NULL,
         ",\"spec\":{\"replicas\":1,\"selector\":{\"matchLabels\":{\"app\":\"web\"}},\"template\":{"
         "\"metadata\":{\"labels\":{\"app\":\"web\"}},\"spec\":{\"containers\":[{\"name\":\"c\","
         "\"image\":\"i\"}]}}},\"status\":{}"},
        {"horizontalpodautoscalers.autoscaling", "autoscaling/v2", "HorizontalPodAutoscaler",
         "default", "web", NULL,
         ",\"spec\":{\"maxReplicas\":3,\"scaleTargetRef\":{\"kind\":\"Deployment\",\"name\":"
         "\"web\",\"apiVersion\":\"apps/v1\"}},\"status\":{}"},
        {"events", "v1", "Event", "default", "e", NULL,
         ",\"involvedObject\":{\"kind\":\"Pod\",\"name\":\"web\"},\"reason\":\"R\",\"message\":"
         "\"m\",\"type\":\"Normal\""},
    };
    for (size_t i = 0; i < sizeof(objects) / sizeof(objects[0]); i++) {
        bed_commit(bed, &objects[i], false);
    }
}

/* The next line of the input as a C string in the arena. */
static const char *take_line(struct td_arena *arena, td_str *rest)
{
    size_t end = td_str_find(*rest, '\n', 0);
    td_str line = td_str_slice(*rest, 0, end);
    *rest = td_str_slice(*rest, end + 1, rest->len);
    for (size_t i = 0; i < line.len; i++) {
        if (line.ptr[i] == '\0') {
            line.len = i; /* a header cannot hold it either */
        }
    }
    return td_arena_copy_str(arena, line).ptr;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bed bed;
    bed_init(&bed);
    populate(&bed);
    td_str rest = {.ptr = (const char *)data, .len = size};
    struct bed_request request = {.method = take_line(&bed.arena, &rest)};
    request.target = take_line(&bed.arena, &rest);
    request.accept = take_line(&bed.arena, &rest);
    request.content_type = take_line(&bed.arena, &rest);
    request.body = rest;
    bed_auto_answer answer;
    bed_answer_init(&answer);
    bed_ask(&bed, &request, &answer);
    if (answer.call) {
        bed_run(&bed, 30 * TD_SECOND);
    }
    td_assert(answer.head_count == 1);
    td_assert(answer.status >= 200);
    td_assert(answer.status < 500 || answer.status == 504);
    td_assert(answer.end_count == (answer.call ? 0 : 1));
    bed_cancel(&answer);
    bed_done(&bed);
    return 0;
}
