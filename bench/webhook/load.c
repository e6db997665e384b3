/*
 * The load of the benchmark of webhooks: reviews of pods that are created, at a fixed rate, over
 * TLS and HTTP/1.1 with connections that are kept, as kube-apiserver sends them. Times are those at
 * which a review was due, whatever the server does, so a server that stalls cannot slow down its
 * own test. What this program itself was late by, being woken too late on a busy machine, is taken
 * out and told apart; a review that was late because all connections waited for answers is not.
 *
 *   load HOST:PORT OWNERS RATE SECONDS CONNECTIONS
 *
 * OWNERS is a file with lines "namespace replicaset uid app". Prints one line: reviews, errors,
 * answers with a patch, latency in ms (median, 99th percentile, 99.9th, largest), lateness of this
 * program (99th percentile, largest).
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CONNECTIONS_MAX 256
#define OWNERS_MAX 100000
#define REVIEWS_MAX 10000000
#define BUFFER_BYTES ((size_t)64 << 10)
#define LEAD_SECONDS 0.2 /* from the last handshake to the first review */

struct owner {
    char namespace[64];
    char name[128];
    char uid[64];
    char app[64];
};

static struct owner *owners;
static size_t owner_count;
static struct sockaddr_in server;
static SSL_CTX *tls;
static double rate;
static size_t review_count;
static double begin_at;
static float *latencies; /* ms; negative: it failed */
static float *latenesses;
static atomic_size_t next_review;
static atomic_size_t patched_count;
static pthread_barrier_t ready;

static void die(const char *what)
{
    (void)fprintf(stderr, "webhook_load: %s\n", what);
    _Exit(2);
}

static double now(void)
{
    struct timespec at;
    (void)clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

static void wait_until(double moment)
{
    struct timespec at = {.tv_sec = (time_t)moment};
    at.tv_nsec = (long)((moment - (double)at.tv_sec) * 1e9);
    (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

static void read_owners(const char *path)
{
    FILE *file = fopen(path, "r");
    if (!file) {
        die("the file of owners cannot be read");
    }
    owners = calloc(OWNERS_MAX, sizeof(*owners));
    struct owner *o = owners;
    while (owner_count < OWNERS_MAX &&
           fscanf(file, "%63s %127s %63s %63s", o->namespace, o->name, o->uid, o->app) == 4) {
        o = &owners[++owner_count];
    }
    (void)fclose(file);
    if (owner_count == 0) {
        die("no owners");
    }
}

static SSL *dial(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int on = 1;
    if (fd < 0 || connect(fd, (struct sockaddr *)&server, sizeof(server)) != 0) {
        die("no connection");
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    SSL *ssl = SSL_new(tls);
    (void)SSL_set_fd(ssl, fd);
    if (SSL_connect(ssl) != 1) {
        die("no TLS");
    }
    return ssl;
}

/* The whole request: what a pod of a Deployment looks like when it reaches admission. */
static int write_request(char *out, size_t size, size_t number)
{
    static const char pod[] =
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"generateName\":\"%s-\","
        "\"namespace\":\"%s\",\"creationTimestamp\":null,\"labels\":{\"app\":\"%s\","
        "\"pod-template-hash\":\"66b6c48dd5\"},\"ownerReferences\":[{\"apiVersion\":\"apps/v1\","
        "\"kind\":\"ReplicaSet\",\"name\":\"%s\",\"uid\":\"%s\",\"controller\":true,"
        "\"blockOwnerDeletion\":true}]},\"spec\":{\"volumes\":[{\"name\":\"kube-api-access\","
        "\"projected\":{\"sources\":[{\"serviceAccountToken\":{\"expirationSeconds\":3607,\"path\":"
        "\"token\"}}],\"defaultMode\":420}}],\"containers\":[{\"name\":\"app\",\"image\":"
        "\"registry.example/app:1\",\"ports\":[{\"containerPort\":8080,\"protocol\":\"TCP\"}],"
        "\"env\":[{\"name\":\"MODE\",\"value\":\"production\"}],\"resources\":{\"requests\":{"
        "\"cpu\":\"10m\",\"memory\":\"16Mi\"}},\"volumeMounts\":[{\"name\":\"kube-api-access\","
        "\"readOnly\":true,\"mountPath\":\"/var/run/secrets/kubernetes.io/serviceaccount\"}],"
        "\"terminationMessagePath\":\"/dev/termination-log\",\"terminationMessagePolicy\":\"File\","
        "\"imagePullPolicy\":\"IfNotPresent\"},{\"name\":\"side\",\"image\":"
        "\"registry.example/side:1\",\"resources\":{\"requests\":{\"cpu\":\"10m\",\"memory\":"
        "\"16Mi\"}},\"terminationMessagePath\":\"/dev/termination-log\","
        "\"terminationMessagePolicy\":\"File\",\"imagePullPolicy\":\"IfNotPresent\"}],"
        "\"restartPolicy\":\"Always\",\"terminationGracePeriodSeconds\":30,\"dnsPolicy\":"
        "\"ClusterFirst\",\"serviceAccountName\":\"default\",\"securityContext\":{},"
        "\"schedulerName\":\"default-scheduler\",\"tolerations\":[{\"key\":"
        "\"node.kubernetes.io/not-ready\",\"operator\":\"Exists\",\"effect\":\"NoExecute\","
        "\"tolerationSeconds\":300}],\"priority\":0,\"enableServiceLinks\":true,"
        "\"preemptionPolicy\":\"PreemptLowerPriority\"},\"status\":{}}";
    const struct owner *o = &owners[number * 7919 % owner_count];
    char body[8192];
    int length = snprintf(
        body, sizeof(body),
        "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\",\"request\":{"
        "\"uid\":\"00000000-0000-4000-8000-%012zu\",\"kind\":{\"group\":\"\",\"version\":\"v1\","
        "\"kind\":\"Pod\"},\"resource\":{\"group\":\"\",\"version\":\"v1\",\"resource\":\"pods\"},"
        "\"requestKind\":{\"group\":\"\",\"version\":\"v1\",\"kind\":\"Pod\"},\"requestResource\":{"
        "\"group\":\"\",\"version\":\"v1\",\"resource\":\"pods\"},\"namespace\":\"%s\","
        "\"operation\":\"CREATE\",\"userInfo\":{\"username\":"
        "\"system:serviceaccount:kube-system:replicaset-controller\",\"groups\":["
        "\"system:serviceaccounts\",\"system:authenticated\"]},\"object\":",
        number, o->namespace);
    length += snprintf(body + length, sizeof(body) - (size_t)length, pod, o->name, o->namespace,
                       o->app, o->name, o->uid);
    length += snprintf(body + length, sizeof(body) - (size_t)length,
                       ",\"oldObject\":null,\"dryRun\":false,\"options\":{\"kind\":"
                       "\"CreateOptions\",\"apiVersion\":\"meta.k8s.io/v1\"}}}");
    return snprintf(out, size,
                    "POST /?timeout=10s HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: "
                    "kube-apiserver-admission\r\nContent-Length: %d\r\nAccept: application/json, "
                    "*/*\r\nContent-Type: application/json\r\nAccept-Encoding: gzip\r\n\r\n%s",
                    length, body);
}

/* Reads one answer; true: the pod is allowed. */
static bool read_answer(SSL *ssl, char *buffer)
{
    size_t have = 0;
    size_t want = 0; /* 0: the head is not complete */
    while (want == 0 || have < want) {
        int got = SSL_read(ssl, buffer + have, (int)(BUFFER_BYTES - have - 1));
        if (got <= 0) {
            return false;
        }
        have += (size_t)got;
        buffer[have] = '\0';
        char *end = want == 0 ? strstr(buffer, "\r\n\r\n") : NULL;
        if (end) {
            const char *length = strcasestr(buffer, "content-length:");
            if (!length || length > end) {
                return false;
            }
            want = (size_t)(end + 4 - buffer) + strtoul(length + 15, NULL, 10);
        }
        if (have >= BUFFER_BYTES - 1) {
            return false;
        }
    }
    if (strstr(buffer, "\"patch\":\"")) {
        (void)atomic_fetch_add(&patched_count, 1);
    }
    return strncmp(buffer, "HTTP/1.1 200", 12) == 0 && strstr(buffer, "\"allowed\":true");
}

static void *send_reviews(void *context)
{
    (void)context;
    SSL *ssl = dial();
    char *request = malloc(BUFFER_BYTES);
    char *answer = malloc(BUFFER_BYTES);
    (void)pthread_barrier_wait(&ready); /* all are connected: the start is set by the first ... */
    (void)pthread_barrier_wait(&ready); /* ... and known */
    for (size_t i; (i = atomic_fetch_add(&next_review, 1)) < review_count;) {
        double due = begin_at + (double)i / rate;
        int length = write_request(request, BUFFER_BYTES, i);
        double late = 0;
        if (now() < due) {
            wait_until(due);
            late = now() - due;
        }
        bool is_good = SSL_write(ssl, request, length) == length && read_answer(ssl, answer);
        latencies[i] = is_good ? (float)((now() - due - late) * 1e3) : -1;
        latenesses[i] = (float)(late * 1e3);
        if (!is_good) { /* the connection is of no use any more */
            (void)close(SSL_get_fd(ssl));
            SSL_free(ssl);
            ssl = dial();
        }
    }
    return NULL;
}

static int compare_floats(const void *a, const void *b)
{
    float x = *(const float *)a;
    float y = *(const float *)b;
    return x < y ? -1 : x > y;
}

static float percentile(const float *sorted, size_t count, double share)
{
    size_t at = (size_t)((double)count * share);
    return sorted[at < count ? at : count - 1];
}

static void report(void)
{
    size_t errors = 0;
    for (size_t i = 0; i < review_count; i++) {
        errors += latencies[i] < 0;
    }
    qsort(latencies, review_count, sizeof(*latencies), compare_floats);
    qsort(latenesses, review_count, sizeof(*latenesses), compare_floats);
    const float *good = latencies + errors;
    size_t count = review_count - errors;
    if (count == 0) {
        die("every review failed");
    }
    (void)printf("%zu %zu %zu %.2f %.2f %.2f %.2f %.2f %.2f\n", review_count, errors,
                 atomic_load(&patched_count), (double)percentile(good, count, 0.5),
                 (double)percentile(good, count, 0.99), (double)percentile(good, count, 0.999),
                 (double)good[count - 1], (double)percentile(latenesses, review_count, 0.99),
                 (double)latenesses[review_count - 1]);
}

int main(int argc, char **argv)
{
    char host[64];
    unsigned port = 0;
    if (argc != 6 || sscanf(argv[1], "%63[^:]:%u", host, &port) != 2) {
        die("usage: load HOST:PORT OWNERS RATE SECONDS CONNECTIONS");
    }
    server = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    if (inet_pton(AF_INET, host, &server.sin_addr) != 1) {
        die("no such address");
    }
    read_owners(argv[2]);
    rate = strtod(argv[3], NULL);
    review_count = (size_t)(rate * strtod(argv[4], NULL));
    size_t connections = strtoul(argv[5], NULL, 10);
    if (review_count == 0 || review_count > REVIEWS_MAX || connections == 0 ||
        connections > CONNECTIONS_MAX) {
        die("a number is out of range");
    }
    latencies = calloc(review_count, sizeof(*latencies));
    latenesses = calloc(review_count, sizeof(*latenesses));
    tls = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_verify(tls, SSL_VERIFY_NONE, NULL);
    pthread_t threads[CONNECTIONS_MAX];
    (void)pthread_barrier_init(&ready, NULL, (unsigned)connections + 1);
    for (size_t i = 0; i < connections; i++) {
        (void)pthread_create(&threads[i], NULL, send_reviews, NULL);
    }
    (void)pthread_barrier_wait(&ready);
    begin_at = now() + LEAD_SECONDS;
    (void)pthread_barrier_wait(&ready);
    for (size_t i = 0; i < connections; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    report();
    return 0;
}
