/*
 * JSON reading beside jansson and cJSON: a PodList and a PodMetricsList of 50 MB each, made in
 * memory from a fixed seed. Each parser reads the whole text, takes out what a recommender needs
 * (namespace, name, and every container's name with its requests or usage) and frees what it made.
 * All must find the same, and the program fails when a promised ratio is missed.
 */
#include <cjson/cJSON.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/json/json.h"
#include "base/json/json_reader.h"

#define TEXT_BYTES ((size_t)50 * 1000 * 1000)
#define ROUNDS 3

/* What was found, folded into one number so that parsers can be compared and nothing is optimised
 * away. */
struct found {
    uint64_t sum;
    uint64_t containers;
};

static void found_add(struct found *found, const char *text, size_t len)
{
    found->sum += len * 131 + (len > 0 ? (unsigned char)text[len - 1] : 0);
}

struct list {
    const char *name;
    bool is_metrics;
    struct td_buf text;
};

/* Input: the fields and sizes of a pod as a cluster returns it. */

static uint32_t seed_next(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005U + 1442695040888963407U;
    return (uint32_t)(*seed >> 33);
}

static void put_metadata(struct td_buf *out, uint32_t id, uint64_t *seed)
{
    static const char *const apps[] = {"checkout", "frontend", "payments-api", "search", "ledger"};
    const char *app = apps[seed_next(seed) % 5];
    (void)td_buf_append_format(
        out,
        "\"metadata\":{\"name\":\"%s-%08x-%05x\",\"generateName\":\"%s-%08x-\",\"namespace\":"
        "\"team-%u\",\"uid\":\"%08x-3f1c-4d7a-9a51-0242ac12%04x\",\"resourceVersion\":\"%u\","
        "\"creationTimestamp\":\"2026-03-%02uT10:%02u:07Z\",\"labels\":{\"app.kubernetes.io/name\":"
        "\"%s\",\"app.kubernetes.io/instance\":\"%s-prod\",\"pod-template-hash\":\"%08x\"},",
        app, id * 2654435761U, id & 0xFFFFF, app, id * 2654435761U, id % 97, id, id & 0xFFFF,
        100000 + id, id % 28 + 1, id % 60, app, app, id * 2654435761U);
}

static void put_managed_fields(struct td_buf *out)
{
    (void)td_buf_append(
        out,
        TD_STR(
            "\"annotations\":{\"prometheus.io/scrape\":\"true\",\"checksum/config\":"
            "\"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\",\"note\":"
            "\"{\\\"kind\\\":\\\"Pod\\\",\\\"team\\\":\\\"Größe\\\"}\"},\"ownerReferences\":[{"
            "\"apiVersion\":\"apps/v1\",\"kind\":\"ReplicaSet\",\"name\":\"checkout-5d9c\","
            "\"uid\":\"0b7d3f6e-1c1e-4f0c-8a34-d1a2c3b4e5f6\",\"controller\":true,"
            "\"blockOwnerDeletion\":true}],\"managedFields\":[{\"manager\":"
            "\"kube-controller-manager\",\"operation\":\"Update\",\"apiVersion\":\"v1\",\"time\":"
            "\"2026-03-14T10:11:07Z\",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{\"f:metadata\":{"
            "\"f:annotations\":{\".\":{},\"f:checksum/config\":{}},\"f:generateName\":{},"
            "\"f:labels\":{\".\":{},\"f:app.kubernetes.io/name\":{}},\"f:ownerReferences\":{"
            "\".\":{},\"k:{\\\"uid\\\":\\\"0b7d3f6e-1c1e-4f0c-8a34-d1a2c3b4e5f6\\\"}\":{}}},"
            "\"f:spec\":{\"f:containers\":{\"k:{\\\"name\\\":\\\"main\\\"}\":{\".\":{},\"f:image\""
            ":{},\"f:imagePullPolicy\":{},\"f:name\":{},\"f:resources\":{\".\":{},\"f:requests\":"
            "{\".\":{},\"f:cpu\":{},\"f:memory\":{}}}}},\"f:dnsPolicy\":{},\"f:restartPolicy\":{}"
            "}}}]},"));
}

static void put_container(struct td_buf *out, uint32_t index, uint64_t *seed)
{
    static const char *const names[] = {"main", "istio-proxy", "log-shipper"};
    uint32_t pick = seed_next(seed);
    (void)td_buf_append_format(
        out,
        "{\"name\":\"%s\",\"image\":\"registry.example.com/platform/%s:v1.%u.%u\",\"args\":["
        "\"--listen=0.0.0.0:8080\",\"--log-level=info\"],\"ports\":[{\"name\":\"http\","
        "\"containerPort\":8080,\"protocol\":\"TCP\"}],\"env\":[{\"name\":\"POD_NAME\","
        "\"valueFrom\":{\"fieldRef\":{\"apiVersion\":\"v1\",\"fieldPath\":\"metadata.name\"}}},{"
        "\"name\":\"JAVA_OPTS\",\"value\":\"-Xmx%um -XX:+UseG1GC\"}],\"resources\":{\"limits\":{"
        "\"memory\":\"%uMi\"},\"requests\":{\"cpu\":\"%um\",\"memory\":\"%uMi\"}},"
        "\"volumeMounts\":[{\"name\":\"config\",\"mountPath\":\"/etc/app\",\"readOnly\":true}],"
        "\"livenessProbe\":{\"httpGet\":{\"path\":\"/healthz\",\"port\":8080,\"scheme\":\"HTTP\"},"
        "\"initialDelaySeconds\":10,\"timeoutSeconds\":1,\"periodSeconds\":10},"
        "\"terminationMessagePath\":\"/dev/termination-log\",\"imagePullPolicy\":\"IfNotPresent\"}",
        names[index], names[index], pick % 40, pick % 7, pick % 4096, pick % 8192, pick % 4000,
        pick % 8192);
}

static void put_status(struct td_buf *out, uint32_t id)
{
    (void)td_buf_append_format(
        out,
        "\"status\":{\"phase\":\"Running\",\"conditions\":[{\"type\":\"Initialized\",\"status\":"
        "\"True\",\"lastProbeTime\":null,\"lastTransitionTime\":\"2026-03-14T10:11:07Z\"},{"
        "\"type\":"
        "\"Ready\",\"status\":\"True\",\"lastProbeTime\":null,\"lastTransitionTime\":"
        "\"2026-03-14T10:11:19Z\"},{\"type\":\"ContainersReady\",\"status\":\"True\","
        "\"lastProbeTime\":null,\"lastTransitionTime\":\"2026-03-14T10:11:19Z\"}],\"hostIP\":"
        "\"10.0.%u.%u\",\"podIP\":\"10.%u.%u.7\",\"podIPs\":[{\"ip\":\"10.%u.%u.7\"}],"
        "\"startTime\":"
        "\"2026-03-14T10:11:07Z\",\"containerStatuses\":[{\"name\":\"main\",\"state\":{\"running\":"
        "{"
        "\"startedAt\":\"2026-03-14T10:11:12Z\"}},\"lastState\":{},\"ready\":true,\"restartCount\":"
        "%u,\"image\":\"registry.example.com/platform/main:v1.4.2\",\"imageID\":"
        "\"registry.example.com/platform/main@sha256:"
        "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae\",\"started\":true}],"
        "\"qosClass\":\"Burstable\"}}",
        id % 250, id % 251, id % 252, id % 253, id % 252, id % 253, id % 4);
}

static void put_pod(struct td_buf *out, uint32_t id, uint64_t *seed)
{
    (void)td_buf_append_char(out, '{');
    put_metadata(out, id, seed);
    put_managed_fields(out);
    (void)td_buf_append(out, TD_STR("\"spec\":{\"volumes\":[{\"name\":\"config\",\"configMap\":{"
                                    "\"name\":\"app-config\",\"defaultMode\":420}}],"
                                    "\"containers\":["));
    uint32_t count = seed_next(seed) % 3 + 1;
    for (uint32_t i = 0; i < count; i++) {
        (void)td_buf_append(out, i > 0 ? TD_STR(",") : TD_STR_EMPTY);
        put_container(out, i, seed);
    }
    (void)td_buf_append_format(
        out,
        "],\"restartPolicy\":\"Always\",\"terminationGracePeriodSeconds\":30,\"dnsPolicy\":"
        "\"ClusterFirst\",\"serviceAccountName\":\"default\",\"nodeName\":\"node-%u\","
        "\"securityContext\":{\"runAsNonRoot\":true},\"schedulerName\":\"default-scheduler\","
        "\"tolerations\":[{\"key\":\"node.kubernetes.io/not-ready\",\"operator\":\"Exists\","
        "\"effect\":\"NoExecute\",\"tolerationSeconds\":300}],\"priority\":0,"
        "\"enableServiceLinks\":"
        "true},",
        id % 500);
    put_status(out, id);
}

static void put_pod_metrics(struct td_buf *out, uint32_t id, uint64_t *seed)
{
    (void)td_buf_append_char(out, '{');
    put_metadata(out, id, seed);
    out->len--; /* the metadata of a measurement ends with its labels */
    (void)td_buf_append_format(
        out,
        "},\"timestamp\":\"2026-03-14T10:%02u:%02uZ\",\"window\":\"15.%03us\",\"containers\":[",
        id % 60, id % 59, id % 1000);
    static const char *const names[] = {"main", "istio-proxy", "log-shipper"};
    uint32_t count = seed_next(seed) % 3 + 1;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t pick = seed_next(seed);
        (void)td_buf_append_format(
            out, "%s{\"name\":\"%s\",\"usage\":{\"cpu\":\"%un\",\"memory\":\"%uKi\"}}",
            i > 0 ? "," : "", names[i], pick, pick % 4000000);
    }
    (void)td_buf_append(out, TD_STR("]}"));
}

static void list_fill(struct list *list)
{
    uint64_t seed = 42;
    struct td_buf *out = &list->text;
    td_buf_init(out, TEXT_BYTES * 2);
    (void)td_buf_append_format(
        out,
        "{\"kind\":\"%s\",\"apiVersion\":\"%s\",\"metadata\":{\"resourceVersion\":\"918273\"},"
        "\"items\":[",
        list->is_metrics ? "PodMetricsList" : "PodList",
        list->is_metrics ? "metrics.k8s.io/v1beta1" : "v1");
    for (uint32_t id = 0; out->len < TEXT_BYTES; id++) {
        (void)td_buf_append(out, id > 0 ? TD_STR(",") : TD_STR_EMPTY);
        if (list->is_metrics) {
            put_pod_metrics(out, id, &seed);
        } else {
            put_pod(out, id, &seed);
        }
    }
    (void)td_buf_append(out, TD_STR("]}"));
}

/* The pull reader. Each function is called after BEGIN of its collection and returns after its END;
 * false after an error. */

static bool pull_is_begin(struct td_json_reader *r, enum td_json_token begin)
{
    return td_json_reader_next(r) == begin;
}

static bool pull_next_key(struct td_json_reader *r)
{
    return td_json_reader_next(r) == TD_JSON_KEY;
}

static void pull_add(struct td_json_reader *r, struct found *found)
{
    if (td_json_reader_next(r) == TD_JSON_STRING) {
        found_add(found, r->text.ptr, r->text.len);
    }
}

static bool pull_metadata(struct td_json_reader *r, struct found *found)
{
    while (pull_next_key(r)) {
        if (td_json_reader_key_is(r, TD_STR("name")) ||
            td_json_reader_key_is(r, TD_STR("namespace"))) {
            pull_add(r, found);
        } else {
            (void)td_json_reader_skip(r); /* a failure ends the loop */
        }
    }
    return r->code == TD_OK;
}

static bool pull_amounts(struct td_json_reader *r, struct found *found)
{
    while (pull_next_key(r)) {
        if (td_json_reader_key_is(r, TD_STR("cpu")) || td_json_reader_key_is(r, TD_STR("memory"))) {
            pull_add(r, found);
        } else {
            (void)td_json_reader_skip(r); /* a failure ends the loop */
        }
    }
    return r->code == TD_OK;
}

static bool pull_resources(struct td_json_reader *r, struct found *found)
{
    while (pull_next_key(r)) {
        if (!td_json_reader_key_is(r, TD_STR("requests"))) {
            (void)td_json_reader_skip(r); /* a failure ends the loop */
        } else if (!pull_is_begin(r, TD_JSON_BEGIN_OBJECT) || !pull_amounts(r, found)) {
            return false;
        }
    }
    return r->code == TD_OK;
}

static bool pull_container(struct td_json_reader *r, struct found *found)
{
    while (pull_next_key(r)) {
        if (td_json_reader_key_is(r, TD_STR("name"))) {
            pull_add(r, found);
        } else if (td_json_reader_key_is(r, TD_STR("resources"))) {
            if (!pull_is_begin(r, TD_JSON_BEGIN_OBJECT) || !pull_resources(r, found)) {
                return false;
            }
        } else if (td_json_reader_key_is(r, TD_STR("usage"))) {
            if (!pull_is_begin(r, TD_JSON_BEGIN_OBJECT) || !pull_amounts(r, found)) {
                return false;
            }
        } else {
            (void)td_json_reader_skip(r); /* a failure ends the loop */
        }
    }
    found->containers++;
    return r->code == TD_OK;
}

static bool pull_containers(struct td_json_reader *r, struct found *found)
{
    if (!pull_is_begin(r, TD_JSON_BEGIN_ARRAY)) {
        return false;
    }
    while (pull_is_begin(r, TD_JSON_BEGIN_OBJECT)) {
        if (!pull_container(r, found)) {
            return false;
        }
    }
    return r->code == TD_OK;
}

static bool pull_spec(struct td_json_reader *r, struct found *found)
{
    while (pull_next_key(r)) {
        if (!td_json_reader_key_is(r, TD_STR("containers"))) {
            (void)td_json_reader_skip(r); /* a failure ends the loop */
        } else if (!pull_containers(r, found)) {
            return false;
        }
    }
    return r->code == TD_OK;
}

static bool pull_item(struct td_json_reader *r, struct found *found)
{
    bool is_good = true;
    while (is_good && pull_next_key(r)) {
        if (td_json_reader_key_is(r, TD_STR("metadata"))) {
            is_good = pull_is_begin(r, TD_JSON_BEGIN_OBJECT) && pull_metadata(r, found);
        } else if (td_json_reader_key_is(r, TD_STR("spec"))) {
            is_good = pull_is_begin(r, TD_JSON_BEGIN_OBJECT) && pull_spec(r, found);
        } else if (td_json_reader_key_is(r, TD_STR("containers"))) {
            is_good = pull_containers(r, found);
        } else {
            is_good = td_json_reader_skip(r) == TD_OK;
        }
    }
    return is_good && r->code == TD_OK;
}

static bool run_pull(const struct list *list, struct found *found)
{
    struct td_json_reader reader;
    struct td_json_reader *r = &reader;
    td_json_reader_init(r, td_buf_str(&list->text), TD_JSON_DEPTH_MAX);
    if (!pull_is_begin(r, TD_JSON_BEGIN_OBJECT)) {
        return false;
    }
    while (pull_next_key(r)) {
        if (!td_json_reader_key_is(r, TD_STR("items"))) {
            (void)td_json_reader_skip(r); /* a failure ends the loop */
            continue;
        }
        bool is_good = pull_is_begin(r, TD_JSON_BEGIN_ARRAY);
        while (is_good && pull_is_begin(r, TD_JSON_BEGIN_OBJECT)) {
            is_good = pull_item(r, found);
        }
    }
    return r->code == TD_OK && td_json_reader_next(r) == TD_JSON_END;
}

static void tree_add(const struct td_json *object, td_str key, struct found *found)
{
    td_str text = td_json_get_str(object, key, TD_STR_EMPTY);
    found_add(found, text.ptr, text.len);
}

static bool run_tree(const struct list *list, struct found *found)
{
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    struct td_json *root;
    if (td_json_parse(&arena, td_buf_str(&list->text), NULL, &root, NULL) < 0) {
        return false;
    }
    const struct td_json *items = td_json_get(root, TD_STR("items"));
    for (const struct td_json *item = td_json_first_item(items); item; item = item->next) {
        const struct td_json *metadata = td_json_get(item, TD_STR("metadata"));
        tree_add(metadata, TD_STR("namespace"), found);
        tree_add(metadata, TD_STR("name"), found);
        const struct td_json *spec = list->is_metrics ? item : td_json_get(item, TD_STR("spec"));
        const struct td_json *containers = td_json_get(spec, TD_STR("containers"));
        for (const struct td_json *c = td_json_first_item(containers); c; c = c->next) {
            tree_add(c, TD_STR("name"), found);
            const struct td_json *amounts =
                list->is_metrics
                    ? td_json_get(c, TD_STR("usage"))
                    : td_json_get(td_json_get(c, TD_STR("resources")), TD_STR("requests"));
            tree_add(amounts, TD_STR("cpu"), found);
            tree_add(amounts, TD_STR("memory"), found);
            found->containers++;
        }
    }
    return true;
}

static void jansson_add(const json_t *object, const char *key, struct found *found)
{
    const json_t *member = json_object_get(object, key);
    found_add(found, json_string_value(member), json_string_length(member));
}

static bool run_jansson(const struct list *list, struct found *found)
{
    json_error_t error;
    json_t *root = json_loadb(list->text.ptr, list->text.len, 0, &error);
    if (!root) {
        return false;
    }
    const json_t *items = json_object_get(root, "items");
    for (size_t i = 0; i < json_array_size(items); i++) {
        const json_t *item = json_array_get(items, i);
        const json_t *metadata = json_object_get(item, "metadata");
        jansson_add(metadata, "namespace", found);
        jansson_add(metadata, "name", found);
        const json_t *spec = list->is_metrics ? item : json_object_get(item, "spec");
        const json_t *containers = json_object_get(spec, "containers");
        for (size_t j = 0; j < json_array_size(containers); j++) {
            const json_t *c = json_array_get(containers, j);
            jansson_add(c, "name", found);
            const json_t *amounts =
                list->is_metrics ? json_object_get(c, "usage")
                                 : json_object_get(json_object_get(c, "resources"), "requests");
            jansson_add(amounts, "cpu", found);
            jansson_add(amounts, "memory", found);
            found->containers++;
        }
    }
    json_decref(root);
    return true;
}

static void cjson_add(const cJSON *object, const char *key, struct found *found)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
    found_add(found, text, strlen(text));
}

static bool run_cjson(const struct list *list, struct found *found)
{
    cJSON *root = cJSON_ParseWithLength(list->text.ptr, list->text.len);
    if (!root) {
        return false;
    }
    const cJSON *item;
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(root, "items"))
    {
        const cJSON *metadata = cJSON_GetObjectItemCaseSensitive(item, "metadata");
        cjson_add(metadata, "namespace", found);
        cjson_add(metadata, "name", found);
        const cJSON *spec =
            list->is_metrics ? item : cJSON_GetObjectItemCaseSensitive(item, "spec");
        const cJSON *c;
        cJSON_ArrayForEach(c, cJSON_GetObjectItemCaseSensitive(spec, "containers"))
        {
            cjson_add(c, "name", found);
            const cJSON *amounts =
                cJSON_GetObjectItemCaseSensitive(c, list->is_metrics ? "usage" : "resources");
            if (!list->is_metrics) {
                amounts = cJSON_GetObjectItemCaseSensitive(amounts, "requests");
            }
            cjson_add(amounts, "cpu", found);
            cjson_add(amounts, "memory", found);
            found->containers++;
        }
    }
    cJSON_Delete(root);
    return true;
}

enum { PULL, TREE, JANSSON, CJSON, PARSERS };

static const struct {
    const char *name;
    bool (*run)(const struct list *list, struct found *found);
} parsers[PARSERS] = {
    {"pull", run_pull}, {"tree", run_tree}, {"jansson", run_jansson}, {"cjson", run_cjson}};

/* The processor's time for this process, the kernel's part included: neighbours on a shared machine
 * do not count. */
static double used_seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now); /* cannot fail for this clock */
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

struct measured {
    struct found found;
    double bytes_per_second; /* best of the rounds; 0 when the parser failed */
    long extra_kib;          /* peak memory on top of the text */
};

static struct measured measure_here(const struct list *list, int parser)
{
    struct measured measured = {0};
    struct rusage before;
    struct rusage after;
    (void)getrusage(RUSAGE_SELF, &before);
    for (int round = 0; round < ROUNDS; round++) {
        struct found found = {0};
        double start = used_seconds();
        bool is_good = parsers[parser].run(list, &found);
        double speed = (double)list->text.len / (used_seconds() - start);
        if (!is_good) {
            return (struct measured){0};
        }
        measured.found = found;
        measured.bytes_per_second =
            speed > measured.bytes_per_second ? speed : measured.bytes_per_second;
    }
    (void)getrusage(RUSAGE_SELF, &after);
    measured.extra_kib = after.ru_maxrss - before.ru_maxrss;
    return measured;
}

/* In a process of its own: a heap does not give back all that it took, and tidies up after one
 * parser while the next is measured. */
static struct measured measure(const struct list *list, int parser)
{
    struct measured measured = {0};
    int ends[2];
    if (pipe(ends) < 0) {
        return measured;
    }
    pid_t child = fork();
    if (child == 0) {
        measured = measure_here(list, parser);
        bool is_sent = write(ends[1], &measured, sizeof(measured)) == (ssize_t)sizeof(measured);
        _exit(is_sent ? 0 : 1);
    }
    (void)close(ends[1]);
    if (read(ends[0], &measured, sizeof(measured)) != (ssize_t)sizeof(measured)) {
        measured = (struct measured){0};
    }
    (void)close(ends[0]);
    (void)waitpid(child, NULL, 0);
    return measured;
}

static bool print_ratio(const struct list *list, const struct measured measured[PARSERS], int ours,
                        int peer, double promise)
{
    double peers = measured[peer].bytes_per_second;
    double ratio = peers > 0 ? measured[ours].bytes_per_second / peers : 0;
    (void)printf("bench json.%s_vs_%s.%s %.1f x\n", parsers[ours].name, parsers[peer].name,
                 list->name, ratio);
    if (ratio < promise) {
        (void)printf("json.%s_vs_%s.%s is below the promised %.0f\n", parsers[ours].name,
                     parsers[peer].name, list->name, promise);
    }
    return ratio >= promise;
}

static bool run_list(struct list *list)
{
    list_fill(list);
    struct measured measured[PARSERS];
    bool is_kept = true;
    for (int i = 0; i < PARSERS; i++) {
        measured[i] = measure(list, i);
        (void)printf("bench json.%s.%s %.0f MB/s\n", parsers[i].name, list->name,
                     measured[i].bytes_per_second / 1e6);
        (void)printf("bench json.%s.%s.memory %ld MiB\n", parsers[i].name, list->name,
                     (measured[i].extra_kib + 512) / 1024);
        (void)fflush(stdout); /* or the next child would have these lines too */
        if (measured[i].found.sum != measured[0].found.sum ||
            measured[i].found.containers != measured[0].found.containers) {
            (void)printf("json.%s.%s found something else\n", parsers[i].name, list->name);
            is_kept = false;
        }
    }
    is_kept &= print_ratio(list, measured, PULL, JANSSON, 10);
    is_kept &= print_ratio(list, measured, PULL, CJSON, 5);
    is_kept &= print_ratio(list, measured, TREE, JANSSON, 5);
    is_kept &= print_ratio(list, measured, TREE, CJSON, 2);
    td_buf_done(&list->text);
    return is_kept;
}

int main(void)
{
    struct list lists[] = {{.name = "podlist"}, {.name = "podmetrics", .is_metrics = true}};
    bool is_kept = run_list(&lists[0]);
    is_kept &= run_list(&lists[1]);
    return is_kept ? 0 : 1;
}
