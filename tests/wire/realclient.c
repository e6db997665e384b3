/*
 * Our client on a real API server, for tests/wire/realclient.sh.
 *
 *   realclient KUBECONFIG follow                  follows all pods; reads commands from standard
 *                                                 input: "stat", "dump FILE", "quit"
 *   realclient KUBECONFIG create|label|delete FROM TO [TEXT]
 *                                                 pods load-FROM to load-TO (not included) in the
 *                                                 namespace "default", many at a time
 */
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/intern.h"
#include "base/limits.h"
#include "base/os/clock.h"
#include "base/os/env.h"
#include "base/os/loop.h"
#include "kube/cache/cache.h"
#include "kube/client/client.h"
#include "kube/client/transport_http.h"
#include "kube/client/verbs.h"
#include "kube/kubeconfig/kubeconfig.h"

#define LINE_BYTES 4096

/* What controllers keep of a pod. */
struct pod {
    struct td_cache_head head;
    td_str node;
    td_str phase;
    td_str labels;
    td_str owners;
    td_str containers;
    td_str conditions;
    td_time created;
    bool is_terminating;
};

static const struct td_cache_field pod_fields[] = {
    {"spec.nodeName", TD_CACHE_NAME, offsetof(struct pod, node)},
    {"status.phase", TD_CACHE_NAME, offsetof(struct pod, phase)},
    {"metadata.labels", TD_CACHE_RAW, offsetof(struct pod, labels)},
    {"metadata.ownerReferences", TD_CACHE_RAW, offsetof(struct pod, owners)},
    {"spec.containers", TD_CACHE_RAW, offsetof(struct pod, containers)},
    {"status.conditions", TD_CACHE_RAW, offsetof(struct pod, conditions)},
    {"metadata.creationTimestamp", TD_CACHE_TIME, offsetof(struct pod, created)},
    {"metadata.deletionTimestamp", TD_CACHE_PRESENT, offsetof(struct pod, is_terminating)},
};

struct program {
    struct td_clock clock;
    struct td_loop *loop;
    struct td_arena arena;
    struct td_kube_config config;
    struct td_client *client;
    /* follow */
    struct td_intern *names;
    struct td_cache *cache;
    struct event *input;
    struct td_timer *second;
    char line[LINE_BYTES];
    size_t line_len;
    size_t held;
    uint64_t added;
    uint64_t changed;     /* while not being deleted */
    uint64_t terminating; /* changes of pods that are: the server tells that before a deletion */
    uint64_t deleted;
    uint64_t synced;
    uint64_t calls_before;
    uint64_t calls_max; /* in one second */
    uint64_t failures;  /* shown so far */
    /* load */
    size_t running;
    size_t done;
    size_t failed;
};

static void fail(const char *what, const struct td_error *err)
{
    fprintf(stderr, "realclient: %s: %s\n", what, err->message);
    exit(2);
}

static void on_added(void *context, const void *object)
{
    struct program *program = context;
    (void)object;
    program->added++;
    program->held++;
}

static void on_changed(void *context, const void *before, const void *after)
{
    struct program *program = context;
    const struct pod *old = before;
    const struct pod *new = after;
    bool is_same = td_str_equal(old->head.uid, new->head.uid); /* else it is another pod */
    program->changed += is_same && !new->is_terminating;
    program->terminating += is_same && new->is_terminating;
}

static void on_deleted(void *context, const void *object)
{
    struct program *program = context;
    (void)object;
    program->deleted++;
    program->held--;
}

static void on_synced(void *context)
{
    struct program *program = context;
    program->synced++;
}

static void print_stat(struct program *program)
{
    struct td_cache_counts counts = td_cache_counts(program->cache);
    struct td_client_counts calls = td_client_counts(program->client);
    td_duration age = td_cache_age(program->cache);
    printf("objects=%zu held=%zu added=%llu changed=%llu terminating=%llu deleted=%llu synced=%llu "
           "lists=%llu "
           "pages=%llu watches=%llu bookmarks=%llu expired=%llu failures=%llu calls=%llu "
           "calls_per_second_max=%llu bytes=%zu age_ms=%lld version=%.*s problem='%s'\n",
           td_cache_count(program->cache), program->held, (unsigned long long)program->added,
           (unsigned long long)program->changed, (unsigned long long)program->terminating,
           (unsigned long long)program->deleted, (unsigned long long)program->synced,
           (unsigned long long)counts.lists, (unsigned long long)counts.pages,
           (unsigned long long)counts.watches, (unsigned long long)counts.bookmarks,
           (unsigned long long)counts.expired, (unsigned long long)counts.failures,
           (unsigned long long)calls.calls, (unsigned long long)program->calls_max, counts.bytes,
           age == INT64_MAX ? -1LL : (long long)(age / TD_MILLISECOND),
           TD_STR_ARG(td_cache_version(program->cache)),
           td_cache_error(program->cache)->code != TD_OK ? td_cache_error(program->cache)->message
                                                         : "");
    fflush(stdout);
}

static void write_dump(const struct program *program, const char *path)
{
    FILE *file = fopen(path, "w");
    if (!file) {
        fprintf(stderr, "realclient: cannot write '%s'\n", path);
        return;
    }
    size_t position = 0;
    const struct pod *pod;
    while ((pod = td_cache_next(program->cache, &position)) != NULL) {
        fprintf(file, "%.*s %.*s %.*s %.*s\n", TD_STR_ARG(pod->head.namespace),
                TD_STR_ARG(pod->head.name), TD_STR_ARG(pod->head.uid),
                TD_STR_ARG(pod->head.version));
    }
    fclose(file);
    printf("dumped\n");
    fflush(stdout);
}

static void command(struct program *program, const char *line)
{
    if (strcmp(line, "stat") == 0) {
        print_stat(program);
    } else if (strncmp(line, "dump ", 5) == 0) {
        write_dump(program, line + 5);
    } else if (strcmp(line, "quit") == 0) {
        td_loop_stop(program->loop);
    }
}

static void on_input(evutil_socket_t fd, short what, void *context)
{
    (void)what;
    struct program *program = context;
    ssize_t got = read(fd, program->line + program->line_len, LINE_BYTES - program->line_len - 1);
    if (got <= 0) {
        td_loop_stop(program->loop);
        return;
    }
    program->line_len += (size_t)got;
    program->line[program->line_len] = '\0';
    char *end;
    while ((end = strchr(program->line, '\n')) != NULL) {
        *end = '\0';
        command(program, program->line);
        size_t used = (size_t)(end + 1 - program->line);
        program->line_len -= used;
        memmove(program->line, end + 1, program->line_len + 1);
    }
}

static void on_second(struct td_timer *timer, void *context)
{
    struct program *program = context;
    uint64_t calls = td_client_counts(program->client).calls;
    uint64_t delta = calls - program->calls_before;
    program->calls_max = delta > program->calls_max ? delta : program->calls_max;
    program->calls_before = calls;
    uint64_t failures = td_cache_counts(program->cache).failures;
    if (failures > program->failures) {
        fprintf(stderr, "%llu failures: %s\n", (unsigned long long)failures,
                td_cache_error(program->cache)->message);
        program->failures = failures;
    }
    td_timer_set(timer, TD_SECOND);
}

static void follow(struct program *program)
{
    program->names = td_intern_new(100000);
    const struct td_cache_options options = {
        .loop = program->loop,
        .client = program->client,
        .version = TD_STR("v1"),
        .plural = TD_STR("pods"),
        .fields = pod_fields,
        .field_count = sizeof(pod_fields) / sizeof(pod_fields[0]),
        .struct_bytes = sizeof(struct pod),
        .names = program->names,
        .seed = (uint64_t)td_clock_wall(&program->clock),
    };
    struct td_error err = TD_ERROR_INIT;
    if (td_cache_new(&options, &program->cache, &err) != TD_OK) {
        fail("cache", &err);
    }
    static const struct td_cache_handler handler = {
        .added = on_added, .changed = on_changed, .deleted = on_deleted, .synced = on_synced};
    td_cache_subscribe(program->cache, &handler, program);
    td_cache_start(program->cache);
    program->second = td_timer_new(program->loop, on_second, program);
    td_timer_set(program->second, TD_SECOND);
    program->input =
        event_new(td_loop_base(program->loop), 0, EV_READ | EV_PERSIST, on_input, program);
    event_add(program->input, NULL);
    if (td_loop_run(program->loop, &err) != TD_OK) {
        fail("loop", &err);
    }
    event_free(program->input);
    td_timer_free(program->second);
    td_cache_free(program->cache);
    td_intern_free(program->names);
}

static void on_written(void *context, const struct td_client_reply *reply)
{
    struct program *program = context;
    program->running--;
    program->done += reply->code == TD_OK;
    program->failed += reply->code != TD_OK;
    if (reply->code != TD_OK && program->failed <= 3) {
        fprintf(stderr, "realclient: %s\n", reply->err.message);
    }
    if (program->running == 0) {
        td_loop_stop(program->loop);
    }
}

static int write_request(struct td_arena *arena, const char *what, long number, const char *text,
                         struct td_client_request *ret, struct td_error *err)
{
    td_str name = td_arena_format(arena, "load-%ld", number);
    struct td_api_path path = {.version = TD_STR("v1"),
                               .namespace = TD_STR("default"),
                               .plural = TD_STR("pods"),
                               .name = name};
    if (strcmp(what, "create") == 0) {
        path.name = TD_STR_EMPTY;
        td_str body = td_arena_format(
            arena,
            "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"%s\",\"labels\":{"
            "\"app\":\"load\",\"rollout\":\"%s\"}},\"spec\":{\"schedulerName\":\"none\","
            "\"automountServiceAccountToken\":false,\"containers\":[{\"name\":\"main\",\"image\":"
            "\"none\",\"resources\":{\"requests\":{\"cpu\":\"100m\",\"memory\":\"64Mi\"}}}]}}",
            name.ptr, text);
        return td_verb_create(arena, &path, body, NULL, ret, err);
    }
    if (strcmp(what, "label") == 0) {
        td_str body =
            td_arena_format(arena, "{\"metadata\":{\"labels\":{\"rollout\":\"%s\"}}}", text);
        return td_verb_patch(arena, &path, TD_PATCH_MERGE, body, NULL, ret, err);
    }
    struct td_delete_options options = TD_DELETE_OPTIONS_INIT;
    options.grace_period_seconds = 0;
    return td_verb_delete(arena, &path, &options, ret, err);
}

static void load(struct program *program, const char *what, long from, long to, const char *text)
{
    struct td_error err = TD_ERROR_INIT;
    for (long i = from; i < to; i++) {
        td_auto_arena arena;
        td_arena_init(&arena, (size_t)1 << 20);
        struct td_client_request request;
        if (write_request(&arena, what, i, text, &request, &err) != TD_OK) {
            fail(what, &err);
        }
        request.deadline = 10 * TD_MINUTE; /* of the last in a long line */
        program->running++;
        (void)td_client_send(program->client, &request, on_written, program);
    }
    if (program->running > 0 && td_loop_run(program->loop, &err) != TD_OK) {
        fail("loop", &err);
    }
    printf("%s: %zu done, %zu failed\n", what, program->done, program->failed);
}

static void program_init(struct program *program, const char *kubeconfig)
{
    struct td_error err = TD_ERROR_INIT;
    program->clock = td_clock_real();
    td_arena_init(&program->arena, TD_TREE_ARENA_BYTES_MAX);
    const struct td_kube_config_input input = {.kubeconfig = kubeconfig};
    struct td_transport *transport;
    if (td_loop_new(&program->clock, &program->loop, &err) != TD_OK ||
        td_kube_config_load(&program->arena, &input, &program->config, &err) != TD_OK) {
        fail("start", &err);
    }
    const struct td_transport_http_options http = {.loop = program->loop,
                                                   .config = &program->config};
    if (td_transport_http_new(&http, &transport, &err) != TD_OK) {
        fail("transport", &err);
    }
    const struct td_client_options options = {.loop = program->loop,
                                              .transport = transport,
                                              .burst = 1,
                                              .seed = (uint64_t)td_clock_wall(&program->clock)};
    program->client = td_client_new(&options);
}

int main(int argc, char **argv)
{
    static struct program program;
    bool is_follow = argc == 3 && strcmp(argv[2], "follow") == 0;
    if (!is_follow && argc != 5 && argc != 6) {
        fprintf(stderr,
                "usage: realclient KUBECONFIG follow | create|label|delete FROM TO [TEXT]\n");
        return 2;
    }
    (void)signal(SIGPIPE, SIG_IGN);
    program_init(&program, argv[1]);
    if (is_follow) {
        follow(&program);
    } else {
        load(&program, argv[2], strtol(argv[3], NULL, 10), strtol(argv[4], NULL, 10),
             argc == 6 ? argv[5] : "1");
    }
    td_client_free(program.client);
    td_loop_free(program.loop);
    td_arena_done(&program.arena);
    return program.failed > 0;
}
