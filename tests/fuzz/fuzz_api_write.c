/* Patches of all four media types, and whole objects, from any bytes against stored objects: the
 * handler answers exactly once, never with a 5xx, and what is stored afterwards is still an object
 * that it takes back unchanged. The first byte chooses the object, the second the way. */
#include <stdint.h>
#include <string.h>

#include "base/assert.h"
#include "base/error.h"
#include "base/limits.h"
#include "support/api_bed.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_POD_SPEC                                                                              \
    "{\"containers\":[{\"name\":\"c\",\"image\":\"i\",\"ports\":[{"                                \
    "\"containerPort\":80}]}]}"

struct fuzz_object {
    const char *group;
    const char *plural;
    const char *name;
    const char *body;
};

static const struct fuzz_object objects[] = {
    {"/api/v1", "configmaps", "a",
     "{\"metadata\":{\"name\":\"a\",\"labels\":{\"x\":\"y\"}},\"data\":{\"k\":\"v\"}}"},
    {"/api/v1", "pods", "p",
     "{\"metadata\":{\"name\":\"p\",\"finalizers\":[\"x.y/z\"]},\"spec\":" FUZZ_POD_SPEC "}"},
    {"/apis/apps/v1", "deployments", "d",
     "{\"metadata\":{\"name\":\"d\"},\"spec\":{\"selector\":{\"matchLabels\":{\"a\":\"b\"}},"
     "\"template\":{\"metadata\":{\"labels\":{\"a\":\"b\"}},\"spec\":" FUZZ_POD_SPEC "}}}"},
    {"/apis/autoscaling/v1", "horizontalpodautoscalers", "h",
     "{\"metadata\":{\"name\":\"h\"},\"spec\":{\"scaleTargetRef\":{\"kind\":\"Deployment\","
     "\"name\":\"d\",\"apiVersion\":\"apps/v1\"},\"maxReplicas\":3}}"},
};

struct fuzz_way {
    const char *method;
    const char *type;
    const char *suffix; /* of the path */
};

static const struct fuzz_way ways[] = {
    {"PATCH", "application/merge-patch+json", ""},
    {"PATCH", "application/json-patch+json", ""},
    {"PATCH", "application/strategic-merge-patch+json", ""},
    {"PATCH", "application/apply-patch+yaml", "?fieldManager=m&force=true"},
    {"PATCH", "application/merge-patch+json", "/status"},
    {"PATCH", "application/merge-patch+json", "/scale"},
    {"PATCH", "application/apply-patch+yaml", "/status?fieldManager=m"},
    {"PUT", "application/json", ""},
    {"PUT", "application/vnd.kubernetes.protobuf", ""},
    {"DELETE", "application/json", "?dryRun=All"},
    {"PATCH", "application/strategic-merge-patch+json", "?fieldValidation=Strict"},
    {"PATCH", "application/strategic-merge-patch+json", "/resize"},
};

static int ask(struct bed *bed, const struct fuzz_way *way, const char *path, td_str body,
               struct bed_answer *answer)
{
    char target[256];
    (void)snprintf(target, sizeof(target), "%s%s", path, way->suffix);
    const struct bed_request request = {
        .method = way->method, .target = target, .content_type = way->type, .body = body};
    bed_ask(bed, &request, answer);
    td_assert(answer->head_count == 1);
    td_assert(answer->end_count == 1);
    td_assert(answer->status >= 200);
    td_assert(answer->status < 500);
    return answer->status;
}

static void make(struct bed *bed, const char *path, const char *body, struct bed_answer *answer)
{
    static const struct fuzz_way post = {"POST", "application/json", ""};
    td_assert(ask(bed, &post, path, td_str_from(body), answer) == 201);
}

/* What is stored can be read, and written back without a change. */
static void check_stored(struct bed *bed, const char *path, struct bed_answer *answer)
{
    static const struct fuzz_way get = {"GET", "application/json", ""};
    static const struct fuzz_way put = {"PUT", "application/json", ""};
    if (ask(bed, &get, path, TD_STR_EMPTY, answer) == 404) {
        return; /* a patch that took the last finalizer */
    }
    td_assert(answer->status == 200);
    td_str text = td_arena_copy_str(&bed->arena, td_buf_str(&answer->body));
    td_assert(bed_tree(bed, answer) != NULL);
    uint64_t version = td_store_version(bed->store);
    td_assert(ask(bed, &put, path, text, answer) == 200);
    td_assert(td_store_version(bed->store) == version);
}

/* A new bed takes longer than an input, so it serves many, each in a namespace of its own. */
#define INPUTS_MAX 500
static struct bed shared;
static unsigned inputs;

static struct bed *fresh_bed(void)
{
    if (inputs == INPUTS_MAX) {
        bed_done(&shared);
        inputs = 0;
    }
    if (inputs++ == 0) {
        bed_init(&shared);
    }
    return &shared;
}

static void write_path(const char *plural, const char *group, const char *ns, char *out, size_t cap)
{
    (void)snprintf(out, cap, "%s/namespaces/%s/%s", group, ns, plural);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) {
        return 0;
    }
    const struct fuzz_object *object = &objects[data[0] % (sizeof(objects) / sizeof(objects[0]))];
    const struct fuzz_way *way = &ways[data[1] % (sizeof(ways) / sizeof(ways[0]))];
    struct bed *bed = fresh_bed();
    bed_auto_answer answer;
    bed_answer_init(&answer);
    char ns[32];
    char body[128];
    char collection[128];
    char path[160];
    (void)snprintf(ns, sizeof(ns), "n%u", inputs);
    (void)snprintf(body, sizeof(body), "{\"metadata\":{\"name\":\"%s\"}}", ns);
    make(bed, "/api/v1/namespaces", body, &answer);
    write_path("serviceaccounts", "/api/v1", ns, path, sizeof(path));
    make(bed, path, "{\"metadata\":{\"name\":\"default\"}}", &answer);
    write_path(object->plural, object->group, ns, collection, sizeof(collection));
    make(bed, collection, object->body, &answer);
    (void)snprintf(path, sizeof(path), "%s/%s", collection, object->name);
    const td_str sent = {.ptr = (const char *)data + 2, .len = size - 2};
    (void)ask(bed, way, path, sent, &answer); /* its checks are inside */
    check_stored(bed, path, &answer);
    return 0;
}
