/*
 * Kills the server at random moments under write load and looks at what is left. Usage:
 * wire_durable TANDEM FOLDER KILLS SEED. Ends with lines of ok or FAIL.
 *
 * Each writer has a connection and names of its own, and one write under way at a time; what was
 * acknowledged is noted with its resourceVersion. After each kill -9 the server is started again
 * on the same folder and lists everything. For each name one of two states is right:
 *
 * 1. the one of the last acknowledged write, with exactly its resourceVersion;
 * 2. when a write was under way at the kill, also the one that it would have made.
 *
 * The text of an object follows from its number, so half of an old and half of a new one cannot
 * pass for either. Readers beside the writers look for that too, and remember the highest
 * resourceVersion a client was shown: the server may never fall behind it, nor give one twice.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/json/json.h"
#include "base/os/clock.h"
#include "base/os/loop.h"
#include "kube/client/client.h"
#include "kube/client/transport_http.h"
#include "kube/client/verbs.h"
#include "kube/kubeconfig/kubeconfig.h"

#define WRITERS 6
#define READERS 2
#define NAMES 40             /* of each writer */
#define FILL_BYTES_MAX 12000 /* so that logs grow into snapshots */
#define LOAD_MS_MIN 1        /* from the first acknowledged write to the kill */
#define LOAD_MS_MAX 400
#define START_SECONDS_MAX 30
#define ARENA_BYTES ((size_t)256 << 20)
#define EARLY_KILL_EVERY 8 /* a kill in so many comes while the server starts */
#define EARLY_MS_MAX 60

struct slot {
    bool exists;
    int64_t number;  /* of its text */
    int64_t version; /* resourceVersion of the last acknowledged write */
    bool is_under_way;
    bool will_exist; /* what the write under way would make */
    int64_t next_number;
};

struct durable;

struct worker {
    struct durable *durable;
    struct td_client *client;
    struct td_arena arena;
    size_t index;
    size_t slot;          /* of the write under way */
    int64_t last_version; /* of this connection's writes */
    bool is_reader;
};

struct durable {
    const char *tandem;
    char data[4096];
    char kubeconfig[4096];
    pid_t server;
    struct td_clock clock;
    struct td_loop *loop;
    struct td_arena config_arena;
    struct td_kube_config config;
    struct td_timer *timer;
    struct worker workers[WRITERS + READERS];
    struct slot slots[WRITERS][NAMES];
    uint64_t random;
    int64_t number;       /* of the last text given out */
    int64_t version_seen; /* highest that a client was shown */
    uint64_t acknowledged, reads, uncertain_kept, uncertain_dropped, checked;
    uint64_t lost, torn, backwards, refused;
};

static uint64_t durable_random(struct durable *durable, uint64_t below)
{
    durable->random = durable->random * 6364136223846793005ULL + 1442695040888963407ULL;
    return (durable->random >> 33) % below;
}

static void durable_die(const char *what, const char *why)
{
    (void)fprintf(stderr, "wire_durable: %s: %s\n", what, why);
    exit(2);
}

__attribute__((format(printf, 3, 4))) static void
durable_count(struct durable *durable, uint64_t *count, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)fprintf(stderr, "    ");
    (void)vfprintf(stderr, format, args);
    (void)fprintf(stderr, "\n");
    va_end(args);
    (void)durable;
    (*count)++;
}

/* ---- texts ---- */

static td_str text_fill(struct td_arena *arena, int64_t number)
{
    size_t len = (size_t)(((uint64_t)number * 2654435761ULL) >> 7) % FILL_BYTES_MAX;
    char *text = td_arena_alloc(arena, len + 1);
    for (size_t i = 0; i < len; i++) {
        text[i] = (char)('a' + (char)(((uint64_t)number + i * 7) % 26));
    }
    text[len] = '\0';
    return (td_str){.ptr = text, .len = len};
}

static td_str text_name(struct td_arena *arena, size_t worker, size_t slot)
{
    return td_arena_format(arena, "w%zu-%zu", worker, slot);
}

static td_str text_object(struct td_arena *arena, td_str name, int64_t number)
{
    td_str fill = text_fill(arena, number);
    return td_arena_format(arena,
                           "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":"
                           "\"%.*s\"},\"data\":{\"number\":\"%lld\",\"fill\":\"%.*s\"}}",
                           TD_STR_ARG(name), (long long)number, TD_STR_ARG(fill));
}

/* The number of an object whose text is whole; -1 when it is torn. */
static int64_t text_number(struct td_arena *arena, const struct td_json *object)
{
    const struct td_json *data = td_json_get(object, TD_STR("data"));
    int64_t number;
    if (!td_str_to_int64(td_json_get_str(data, TD_STR("number"), TD_STR_EMPTY), &number) ||
        !td_str_equal(td_json_get_str(data, TD_STR("fill"), TD_STR_EMPTY),
                      text_fill(arena, number))) {
        return -1;
    }
    return number;
}

static int64_t text_version(const struct td_json *object)
{
    int64_t version = -1;
    const struct td_json *metadata = td_json_get(object, TD_STR("metadata"));
    (void)td_str_to_int64(td_json_get_str(metadata, TD_STR("resourceVersion"), TD_STR_EMPTY),
                          &version);
    return version;
}

/* ---- load ---- */

static void writer_next(struct worker *worker);
static void reader_next(struct worker *worker);

static const struct td_api_path durable_maps = {
    .version = TD_STR_INIT("v1"),
    .namespace = TD_STR_INIT("default"),
    .plural = TD_STR_INIT("configmaps"),
};

static struct td_json *worker_parse(struct worker *worker, td_str body)
{
    struct td_json *tree = NULL;
    const struct td_json_options options = {.copy_strings = true};
    return td_json_parse(&worker->arena, body, &options, &tree, NULL) == TD_OK ? tree : NULL;
}

static void durable_saw_version(struct durable *durable, int64_t version)
{
    if (version > durable->version_seen) {
        durable->version_seen = version;
    }
}

static void writer_done(void *context, const struct td_client_reply *reply)
{
    struct worker *worker = context;
    struct durable *durable = worker->durable;
    struct slot *slot = &durable->slots[worker->index][worker->slot];
    if (reply->code != TD_OK) {
        durable_count(durable, &durable->refused, "a write was refused: %s", reply->err.message);
        return; /* the slot stays uncertain, this writer rests until the next start */
    }
    durable->acknowledged++;
    if (!td_timer_is_set(durable->timer)) {
        uint64_t ms = LOAD_MS_MIN + durable_random(durable, LOAD_MS_MAX - LOAD_MS_MIN);
        td_timer_set(durable->timer, (td_duration)ms * TD_MILLISECOND);
    }
    slot->is_under_way = false;
    slot->exists = slot->will_exist;
    slot->number = slot->next_number;
    if (slot->exists) {
        const struct td_json *tree = worker_parse(worker, reply->body);
        slot->version = text_version(tree);
        if (text_number(&worker->arena, tree) != slot->number) {
            durable_count(durable, &durable->torn, "the answer to a write is torn");
        }
        if (slot->version <= worker->last_version) {
            durable_count(durable, &durable->backwards, "version %lld after %lld",
                          (long long)slot->version, (long long)worker->last_version);
        }
        worker->last_version = slot->version;
        durable_saw_version(durable, slot->version);
    }
    writer_next(worker);
}

static void writer_next(struct worker *worker)
{
    struct durable *durable = worker->durable;
    struct td_error err = TD_ERROR_INIT;
    struct td_client_request request = {.method = TD_STR_EMPTY};
    td_arena_reset(&worker->arena);
    worker->slot = durable_random(durable, NAMES);
    struct slot *slot = &durable->slots[worker->index][worker->slot];
    td_str name = text_name(&worker->arena, worker->index, worker->slot);
    struct td_api_path path = durable_maps;
    slot->is_under_way = true;
    slot->next_number = ++durable->number;
    slot->will_exist = true;
    int code;
    if (!slot->exists) {
        td_str body = text_object(&worker->arena, name, slot->next_number);
        code = td_verb_create(&worker->arena, &path, body, NULL, &request, &err);
    } else if (durable_random(durable, 4) > 0) {
        td_str body = text_object(&worker->arena, name, slot->next_number);
        path.name = name;
        code = td_verb_update(&worker->arena, &path, body, NULL, &request, &err);
    } else {
        path.name = name;
        slot->will_exist = false;
        code = td_verb_delete(&worker->arena, &path, &TD_DELETE_OPTIONS_INIT, &request, &err);
    }
    if (code != TD_OK) {
        durable_die("make a request", err.message);
    }
    (void)td_client_send(worker->client, &request, writer_done, worker);
}

static void reader_done(void *context, const struct td_client_reply *reply)
{
    struct worker *worker = context;
    struct durable *durable = worker->durable;
    if (reply->code != TD_OK) {
        durable_count(durable, &durable->refused, "a read was refused: %s", reply->err.message);
        return;
    }
    const struct td_json *list = worker_parse(worker, reply->body);
    const struct td_json *items = td_json_get(list, TD_STR("items"));
    durable->reads++;
    durable_saw_version(durable, text_version(list));
    for (const struct td_json *item = td_json_first_child(items); item; item = item->next) {
        durable_saw_version(durable, text_version(item));
        td_str name =
            td_json_get_str(td_json_get(item, TD_STR("metadata")), TD_STR("name"), TD_STR_EMPTY);
        if (td_str_starts_with(name, TD_STR("w")) && text_number(&worker->arena, item) < 0) {
            durable_count(durable, &durable->torn, "a reader saw a torn %.*s", TD_STR_ARG(name));
        }
    }
    reader_next(worker);
}

static void reader_next(struct worker *worker)
{
    td_arena_reset(&worker->arena);
    const struct td_client_request request = {
        .method = TD_STR("GET"),
        .path = TD_STR("/api/v1/namespaces/default/configmaps?limit=30"),
    };
    (void)td_client_send(worker->client, &request, reader_done, worker);
}

static void worker_connect(struct worker *worker)
{
    struct durable *durable = worker->durable;
    struct td_error err = TD_ERROR_INIT;
    struct td_transport *transport;
    const struct td_transport_http_options options = {.loop = durable->loop,
                                                      .config = &durable->config};
    if (td_transport_http_new(&options, &transport, &err) != TD_OK) {
        durable_die("connect", err.message);
    }
    worker->client = td_client_new(&(struct td_client_options){
        .loop = durable->loop, .transport = transport, .burst = 1, .seed = worker->index});
    worker->last_version = durable->version_seen;
}

/* ---- the server ---- */

/* Starts it without waiting; the result is the pipe of its output. */
static int server_spawn(struct durable *durable)
{
    int ends[2];
    if (pipe(ends) != 0) {
        durable_die("pipe", strerror(errno));
    }
    durable->server = fork();
    if (durable->server == 0) {
        (void)dup2(ends[1], STDOUT_FILENO);
        (void)close(ends[0]);
        (void)close(ends[1]);
        (void)execl(durable->tandem, durable->tandem, "up", "--listen", "127.0.0.1:0",
                    "--kubeconfig", durable->kubeconfig, "--data", durable->data, "--controllers",
                    "none", "-q", (char *)NULL);
        _exit(127);
    }
    (void)close(ends[1]);
    return ends[0];
}

static void server_await(int fd)
{
    char text[4096];
    size_t len = 0;
    struct pollfd waiting = {.fd = fd, .events = POLLIN};
    while (len < sizeof(text) - 1 && poll(&waiting, 1, START_SECONDS_MAX * 1000) > 0) {
        ssize_t n = read(fd, text + len, sizeof(text) - 1 - len);
        if (n <= 0) {
            break;
        }
        len += (size_t)n;
        text[len] = '\0';
        if (strstr(text, "Ctrl-C")) {
            return;
        }
    }
    durable_die("the server does not start", "see its errors above");
}

static void server_end(struct durable *durable, int signal_number)
{
    int status = 0;
    (void)kill(durable->server, signal_number);
    (void)waitpid(durable->server, &status, 0);
    bool is_killed = WIFSIGNALED(status) && WTERMSIG(status) == signal_number;
    bool is_clean = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (!is_killed && !is_clean) {
        durable_die("the server ended by itself", "see its errors above");
    }
}

static void server_start(struct durable *durable)
{
    struct td_error err = TD_ERROR_INIT;
    int fd = server_spawn(durable);
    server_await(fd);
    (void)close(fd);
    td_arena_reset(&durable->config_arena);
    const struct td_kube_config_input input = {.kubeconfig = durable->kubeconfig};
    if (td_kube_config_load(&durable->config_arena, &input, &durable->config, &err) != TD_OK) {
        durable_die("read the kubeconfig", err.message);
    }
}

/* ---- what is left ---- */

static void check_slot(struct durable *durable, struct slot *slot, td_str name,
                       const struct td_json *object, int64_t number)
{
    int64_t version = object ? text_version(object) : -1;
    bool exists = object != NULL;
    durable->checked++;
    bool is_acknowledged =
        exists == slot->exists && (!exists || (number == slot->number && version == slot->version));
    bool is_attempted = slot->is_under_way && exists == slot->will_exist &&
                        (!exists || number == slot->next_number);
    if (is_acknowledged || is_attempted) {
        durable->uncertain_kept += is_attempted && !is_acknowledged;
        durable->uncertain_dropped += slot->is_under_way && is_acknowledged;
    } else {
        durable_count(durable, &durable->lost,
                      "%.*s: acknowledged %s number %lld version %lld, found %s number %lld "
                      "version %lld",
                      TD_STR_ARG(name), slot->exists ? "with" : "gone,", (long long)slot->number,
                      (long long)slot->version, exists ? "it with" : "it gone,", (long long)number,
                      (long long)version);
    }
    slot->exists = exists;
    slot->number = number;
    slot->version = version;
    slot->is_under_way = false;
}

static void check_done(void *context, const struct td_client_reply *reply)
{
    struct worker *worker = context;
    struct durable *durable = worker->durable;
    const struct td_json *found[WRITERS][NAMES] = {{NULL}};
    int64_t numbers[WRITERS][NAMES] = {{0}};
    const struct td_json *list = reply->code == TD_OK ? worker_parse(worker, reply->body) : NULL;
    if (!list) {
        durable_die("list after the start", reply->err.message);
    }
    const struct td_json *items = td_json_get(list, TD_STR("items"));
    for (const struct td_json *item = td_json_first_child(items); item; item = item->next) {
        td_str name =
            td_json_get_str(td_json_get(item, TD_STR("metadata")), TD_STR("name"), TD_STR_EMPTY);
        size_t dash = td_str_find(name, '-', 0);
        int64_t index;
        int64_t slot;
        if (!td_str_starts_with(name, TD_STR("w")) || dash >= name.len ||
            !td_str_to_int64(td_str_slice(name, 1, dash), &index) ||
            !td_str_to_int64(td_str_slice(name, dash + 1, name.len), &slot) || index < 0 ||
            index >= WRITERS || slot < 0 || slot >= NAMES) {
            continue; /* of the cluster itself */
        }
        found[index][slot] = item;
        numbers[index][slot] = text_number(&worker->arena, item);
        if (numbers[index][slot] < 0) {
            durable_count(durable, &durable->torn, "%.*s is torn after the start",
                          TD_STR_ARG(name));
        }
    }
    for (size_t i = 0; i < WRITERS; i++) {
        for (size_t k = 0; k < NAMES; k++) {
            check_slot(durable, &durable->slots[i][k], text_name(&worker->arena, i, k), found[i][k],
                       numbers[i][k]);
        }
    }
    int64_t version = text_version(list);
    if (version < durable->version_seen) {
        durable_count(durable, &durable->backwards, "the list has version %lld, seen was %lld",
                      (long long)version, (long long)durable->version_seen);
    }
    durable_saw_version(durable, version);
    td_loop_stop(durable->loop);
}

static void durable_run_loop(struct durable *durable)
{
    struct td_error err = TD_ERROR_INIT;
    if (td_loop_run(durable->loop, &err) != TD_OK) {
        durable_die("run", err.message);
    }
}

static void durable_check(struct durable *durable)
{
    struct worker *worker = &durable->workers[0];
    const struct td_client_request request = {
        .method = TD_STR("GET"),
        .path = TD_STR("/api/v1/namespaces/default/configmaps"),
    };
    td_arena_reset(&worker->arena);
    worker_connect(worker);
    (void)td_client_send(worker->client, &request, check_done, worker);
    durable_run_loop(durable);
    td_client_free(worker->client);
    worker->client = NULL;
}

/* ---- rounds ---- */

static void durable_kill(struct td_timer *timer, void *context)
{
    struct durable *durable = context;
    (void)timer;
    server_end(durable, SIGKILL);
    td_loop_stop(durable->loop);
}

static void durable_load(struct durable *durable)
{
    for (size_t i = 0; i < WRITERS + READERS; i++) {
        struct worker *worker = &durable->workers[i];
        worker_connect(worker);
        if (worker->is_reader) {
            reader_next(worker);
        } else {
            writer_next(worker);
        }
    }
    durable_run_loop(durable);
    td_timer_stop(durable->timer);
    for (size_t i = 0; i < WRITERS + READERS; i++) {
        td_client_free(durable->workers[i].client);
        durable->workers[i].client = NULL;
    }
}

/* A kill while it reads its folder or writes into it what a new cluster has. */
static void durable_kill_early(struct durable *durable)
{
    int fd = server_spawn(durable);
    (void)usleep((useconds_t)durable_random(durable, EARLY_MS_MAX * 1000));
    server_end(durable, SIGKILL);
    (void)close(fd);
}

static void durable_init(struct durable *durable, char **argv)
{
    struct td_error err = TD_ERROR_INIT;
    durable->tandem = argv[1];
    (void)snprintf(durable->data, sizeof(durable->data), "%s/data", argv[2]);
    (void)snprintf(durable->kubeconfig, sizeof(durable->kubeconfig), "%s/durable.kubeconfig",
                   argv[2]);
    durable->random = strtoull(argv[4], NULL, 10) * 2 + 1;
    durable->clock = td_clock_real();
    if (td_loop_new(&durable->clock, &durable->loop, &err) != TD_OK) {
        durable_die("loop", err.message);
    }
    td_arena_init(&durable->config_arena, ARENA_BYTES);
    durable->timer = td_timer_new(durable->loop, durable_kill, durable);
    for (size_t i = 0; i < WRITERS + READERS; i++) {
        struct worker *worker = &durable->workers[i];
        worker->durable = durable;
        worker->index = i;
        worker->is_reader = i >= WRITERS;
        td_arena_init(&worker->arena, ARENA_BYTES);
    }
}

static void durable_done(struct durable *durable)
{
    td_timer_free(durable->timer);
    for (size_t i = 0; i < WRITERS + READERS; i++) {
        td_arena_done(&durable->workers[i].arena);
    }
    td_arena_done(&durable->config_arena);
    td_loop_free(durable->loop);
}

static bool durable_report(const struct durable *durable, unsigned long kills)
{
    const struct {
        const char *what;
        uint64_t count;
    } rows[] = {
        {"acknowledged writes lost", durable->lost},
        {"torn reads", durable->torn},
        {"resourceVersions that went back", durable->backwards},
        {"refused writes and reads", durable->refused},
    };
    bool is_good = true;
    (void)printf("%lu kills, %llu acknowledged writes, %llu reads; of writes under way %llu were "
                 "kept, %llu not\n",
                 kills, (unsigned long long)durable->acknowledged,
                 (unsigned long long)durable->reads, (unsigned long long)durable->uncertain_kept,
                 (unsigned long long)durable->uncertain_dropped);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        (void)printf("%s %llu %s\n", rows[i].count == 0 ? "ok  " : "FAIL",
                     (unsigned long long)rows[i].count, rows[i].what);
        is_good = is_good && rows[i].count == 0;
    }
    bool is_loaded = durable->acknowledged > kills;
    (void)printf("%s there was something to lose\n", is_loaded ? "ok  " : "FAIL");
    return is_good && is_loaded;
}

int main(int argc, char **argv)
{
    static struct durable durable;
    if (argc != 5) {
        (void)fprintf(stderr, "usage: wire_durable TANDEM FOLDER KILLS SEED\n");
        return 2;
    }
    (void)signal(SIGPIPE, SIG_IGN);
    durable_init(&durable, argv);
    unsigned long kills = strtoul(argv[3], NULL, 10);
    for (unsigned long i = 0; i < kills; i++) {
        if (i % EARLY_KILL_EVERY == EARLY_KILL_EVERY - 1) {
            durable_kill_early(&durable);
            continue;
        }
        server_start(&durable);
        durable_check(&durable);
        durable_load(&durable);
    }
    server_start(&durable);
    durable_check(&durable);
    server_end(&durable, SIGTERM);
    server_start(&durable); /* and after a stop in peace */
    durable_check(&durable);
    server_end(&durable, SIGTERM);
    durable_done(&durable);
    return durable_report(&durable, kills) ? 0 : 1;
}
