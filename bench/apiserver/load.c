/*
 * The load of the benchmark of API servers: one client for both servers, so small that what is
 * measured is the server. HTTP/1.1 over TLS with a client certificate, a thread and a connection
 * for each writer, one thread with epoll for all watchers. Bodies are the same whatever the server.
 *
 *   load HOST:PORT CERT KEY create KIND PREFIX COUNT CONNECTIONS  seconds for all of them
 *   load HOST:PORT CERT KEY list KIND COUNT                       seconds to the last byte, bytes
 *   load HOST:PORT CERT KEY watch KIND PREFIX COUNT WATCHERS      seconds until every watcher has
 * all
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define NAMESPACE "bench"
#define BUFFER_BYTES ((size_t)64 << 10)
#define CONNECTIONS_MAX 64
#define WATCHERS_MAX 1000
#define WRITERS_OF_WATCHED 4
#define WATCHER_LINE_BYTES 8192

static SSL_CTX *tls;
static struct sockaddr_in server;

__attribute__((format(printf, 1, 2), noreturn)) static void die(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vfprintf(stderr, format, arguments);
    va_end(arguments);
    (void)fputc('\n', stderr);
    _Exit(2);
}

static double now(void)
{
    struct timespec at;
    (void)clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

static const char *servers; /* process ids between commas */

static double processor_of(unsigned long pid)
{
    char path[64];
    char text[1024];
    (void)snprintf(path, sizeof(path), "/proc/%lu/stat", pid);
    FILE *file = fopen(path, "re");
    size_t len = file ? fread(text, 1, sizeof(text) - 1, file) : 0;
    if (len == 0) {
        die("no process %lu", pid);
    }
    (void)fclose(file);
    text[len] = '\0';
    /* Behind the name in parentheses: the state, then numbers, of which the 11th and 12th are ticks
     * in user and system mode. */
    const char *at = strrchr(text, ')');
    for (int i = 0; at && i < 12; i++) {
        at = strchr(at + 1, ' ');
    }
    char *end = NULL;
    unsigned long user = at ? strtoul(at, &end, 10) : 0;
    return (double)(user + (end ? strtoul(end, NULL, 10) : 0)) / (double)sysconf(_SC_CLK_TCK);
}

static double processor(void)
{
    double total = 0;
    for (const char *at = servers; at; at = strchr(at, ',')) {
        at += *at == ',' ? 1 : 0;
        total += processor_of(strtoul(at, NULL, 10));
    }
    return total;
}

/* --- one connection --- */

struct connection {
    SSL *ssl;
    int fd;
    char buffer[BUFFER_BYTES];
    size_t begin; /* of what was read and not used */
    size_t end;
    char head[512]; /* of the last body, for a look at it */
    size_t head_len;
};

static void connection_open(struct connection *c)
{
    int on = 1;
    c->begin = c->end = 0;
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&server, sizeof(server)) != 0) {
        die("cannot connect: %s", strerror(errno));
    }
    (void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    c->ssl = SSL_new(tls);
    if (!c->ssl || SSL_set_fd(c->ssl, c->fd) != 1 || SSL_connect(c->ssl) != 1) {
        die("no TLS: %s", ERR_error_string(ERR_get_error(), NULL));
    }
}

static void connection_close(struct connection *c)
{
    SSL_free(c->ssl);
    (void)close(c->fd);
}

static void connection_fill(struct connection *c)
{
    int got = SSL_read(c->ssl, c->buffer, sizeof(c->buffer));
    if (got <= 0) {
        die("the server closed a connection");
    }
    c->begin = 0;
    c->end = (size_t)got;
}

static char connection_byte(struct connection *c)
{
    if (c->begin == c->end) {
        connection_fill(c);
    }
    return c->buffer[c->begin++];
}

/* A line without its end, cut to what fits. */
static size_t connection_line(struct connection *c, char *line, size_t size)
{
    size_t len = 0;
    for (char byte; (byte = connection_byte(c)) != '\n';) {
        if (byte != '\r' && len + 1 < size) {
            line[len++] = byte;
        }
    }
    line[len] = '\0';
    return len;
}

static void connection_skip(struct connection *c, size_t bytes)
{
    while (bytes > 0) {
        if (c->begin == c->end) {
            connection_fill(c);
        }
        size_t part = c->end - c->begin < bytes ? c->end - c->begin : bytes;
        for (size_t i = 0; i < part && c->head_len + 1 < sizeof(c->head); i++) {
            c->head[c->head_len++] = c->buffer[c->begin + i];
        }
        c->begin += part;
        bytes -= part;
    }
}

static void connection_send(struct connection *c, const char *bytes, size_t len)
{
    if (SSL_write(c->ssl, bytes, (int)len) != (int)len) {
        die("cannot write");
    }
}

/* Reads head and body of an answer; gives the body's bytes. */
static size_t connection_answer(struct connection *c, int expected)
{
    char line[1024];
    size_t length = 0;
    bool is_chunked = false;
    c->head_len = 0;
    memset(c->head, 0, sizeof(c->head));
    (void)connection_line(c, line, sizeof(line));
    if (strtol(strncmp(line, "HTTP/1.1 ", 9) == 0 ? line + 9 : "", NULL, 10) != expected) {
        connection_fill(c);
        die("%s, expected %d: %.*s", line, expected, (int)(c->end > 500 ? 500 : c->end), c->buffer);
    }
    while (connection_line(c, line, sizeof(line)) > 0) {
        if (strncasecmp(line, "Content-Length:", 15) == 0) {
            length = strtoul(line + 15, NULL, 10);
        } else if (strncasecmp(line, "Transfer-Encoding: chunked", 26) == 0) {
            is_chunked = true;
        }
    }
    if (!is_chunked) {
        connection_skip(c, length);
        return length;
    }
    for (size_t chunk = 1; chunk > 0; length += chunk) {
        (void)connection_line(c, line, sizeof(line));
        chunk = strtoul(line, NULL, 16);
        connection_skip(c, chunk);
        (void)connection_line(c, line, sizeof(line));
    }
    return length;
}

/* --- requests --- */

static void body_of(const char *kind, const char *prefix, size_t number, char *ret, size_t size)
{
    static const char pod[] =
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"%s-%zu\",\"labels\":{"
        "\"app.kubernetes.io/name\":\"web\",\"app.kubernetes.io/part-of\":\"shop\","
        "\"pod-template-hash\":\"6d4cf56db6\"},\"annotations\":{\"prometheus.io/scrape\":\"true\","
        "\"prometheus.io/port\":\"9090\"}},\"spec\":{\"schedulerName\":\"nobody\",\"containers\":[{"
        "\"name\":\"app\",\"image\":\"registry.example.com/shop/"
        "web:1.27.3\",\"args\":[\"--listen\","
        "\":8080\"],\"env\":[{\"name\":\"LEVEL\",\"value\":\"info\"},{\"name\":\"REGION\","
        "\"value\":"
        "\"north\"}],\"ports\":[{\"name\":\"http\",\"containerPort\":8080}],\"resources\":{"
        "\"requests\":{\"cpu\":\"100m\",\"memory\":\"128Mi\"},\"limits\":{\"memory\":\"256Mi\"}},"
        "\"readinessProbe\":{\"httpGet\":{\"path\":\"/ready\",\"port\":\"http\"}}},{\"name\":"
        "\"proxy\",\"image\":\"registry.example.com/mesh/"
        "proxy:2.1.0\",\"resources\":{\"requests\":{"
        "\"cpu\":\"10m\",\"memory\":\"32Mi\"}}}]}}";
    static const char config_map[] =
        "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"%s-%zu\"},"
        "\"data\":{\"level\":\"info\",\"region\":\"north\"}}";
    int len = strcmp(kind, "pods") == 0 ? snprintf(ret, size, pod, prefix, number)
                                        : snprintf(ret, size, config_map, prefix, number);
    if (len < 0 || (size_t)len >= size) {
        die("a body is too large");
    }
}

static int request_of(const char *verb, const char *kind, const char *query, const char *body,
                      char *ret, size_t size)
{
    int len = snprintf(ret, size,
                       "%s /api/v1/namespaces/" NAMESPACE "/%s%s HTTP/1.1\r\nHost: bench\r\n"
                       "Accept: application/json\r\nContent-Type: application/json\r\n"
                       "Content-Length: %zu\r\n\r\n%s",
                       verb, kind, query, strlen(body), body);
    if (len < 0 || (size_t)len >= size) {
        die("a request is too large");
    }
    return len;
}

struct writers {
    const char *kind;
    const char *prefix;
    size_t count;
    atomic_size_t next;
};

static void *writer_run(void *context)
{
    struct writers *all = context;
    static _Thread_local struct connection c;
    char body[4096];
    char request[8192];
    connection_open(&c);
    for (size_t i; (i = atomic_fetch_add(&all->next, 1)) < all->count;) {
        body_of(all->kind, all->prefix, i, body, sizeof(body));
        int len = request_of("POST", all->kind, "", body, request, sizeof(request));
        connection_send(&c, request, (size_t)len);
        (void)connection_answer(&c, 201);
    }
    connection_close(&c);
    return NULL;
}

static void create_all(const char *kind, const char *prefix, size_t count, size_t connections)
{
    static struct writers all;
    pthread_t threads[CONNECTIONS_MAX];
    all.kind = kind;
    all.prefix = prefix;
    all.count = count;
    for (size_t i = 0; i < connections; i++) {
        if (pthread_create(&threads[i], NULL, writer_run, &all) != 0) {
            die("no thread");
        }
    }
    for (size_t i = 0; i < connections; i++) {
        (void)pthread_join(threads[i], NULL);
    }
}

static size_t get(struct connection *c, const char *kind, const char *query)
{
    char request[512];
    int len = request_of("GET", kind, query, "", request, sizeof(request));
    connection_send(c, request, (size_t)len);
    return connection_answer(c, 200);
}

/* --- watchers --- */

enum watcher_state { WATCHER_HEAD, WATCHER_SIZE, WATCHER_DATA, WATCHER_END };

struct watcher {
    SSL *ssl;
    size_t events;
    enum watcher_state state;
    size_t left;                      /* of the chunk */
    size_t cuts;                      /* how often the server ended the watch */
    char line[2][WATCHER_LINE_BYTES]; /* the event that is being read, and the one before */
    size_t line_len;
    int line_now;  /* which of the two is being read */
    uint32_t last; /* four bytes before, while in the head */
};

static struct watcher watchers[WATCHERS_MAX];
static const char *watched_kind;
static atomic_size_t watchers_ready;

/* One byte outside of chunks. */
static void watcher_step(struct watcher *w, char byte)
{
    w->last = w->last << 8 | (unsigned char)byte;
    if (w->state == WATCHER_HEAD && w->last == 0x0d0a0d0a) {
        w->state = WATCHER_SIZE;
        atomic_fetch_add(&watchers_ready, w->cuts == 0 ? 1 : 0);
    } else if (w->state == WATCHER_END && byte == '\n') {
        w->state = WATCHER_SIZE;
    } else if (w->state == WATCHER_SIZE && byte == '\n') {
        w->state = WATCHER_DATA;
    } else if (w->state == WATCHER_SIZE && byte != '\r') {
        const char digit[2] = {byte, '\0'};
        w->left = w->left * 16 + strtoul(digit, NULL, 16);
    }
}

static void watcher_ask(struct watcher *w, const char *kind, unsigned long version)
{
    char query[128];
    char request[1024];
    (void)snprintf(query, sizeof(query), "?watch=true&resourceVersion=%lu", version);
    int len = request_of("GET", kind, query, "", request, sizeof(request));
    if (SSL_write(w->ssl, request, len) != len) {
        die("cannot ask for a watch");
    }
    w->state = WATCHER_HEAD;
    w->last = 0;
}

static unsigned long version_in(const char *text)
{
    static const char key[] = "\"resourceVersion\":\"";
    const char *at = strstr(text, key);
    if (!at) {
        die("no version in: %s", text);
    }
    return strtoul(at + strlen(key), NULL, 10);
}

/* The server has ended the watch, as kube-apiserver does with those that it finds slow: it goes on
 * behind the last event, as any client does. */
static void watcher_go_on(struct watcher *w)
{
    w->cuts++;
    watcher_ask(w, watched_kind, version_in(w->line[!w->line_now]));
    w->line_len = 0;
}

/* Compact JSON has no line ends: each in a chunk ends an event. */
static void watcher_take_data(struct watcher *w, const char *bytes, size_t len)
{
    for (const char *end = bytes + len; bytes < end;) {
        const char *found = memchr(bytes, '\n', (size_t)(end - bytes));
        size_t part = (size_t)((found ? found : end) - bytes);
        if (w->line_len + part >= WATCHER_LINE_BYTES) {
            die("an event of more than %d bytes", WATCHER_LINE_BYTES);
        }
        memcpy(w->line[w->line_now] + w->line_len, bytes, part);
        w->line_len += part;
        bytes += part;
        if (found) {
            w->line[w->line_now][w->line_len] = '\0';
            if (strncmp(w->line[w->line_now], "{\"type\":\"ERROR\"", 15) == 0) {
                die("a watch: %s", w->line[w->line_now]);
            }
            w->line_now = !w->line_now;
            w->line_len = 0;
            w->events++;
            bytes++;
        }
    }
}

static void watcher_take(struct watcher *w, const char *bytes, size_t len)
{
    for (size_t i = 0; i < len;) {
        if (w->state != WATCHER_DATA) {
            watcher_step(w, bytes[i++]);
            continue;
        }
        if (w->left == 0) { /* the last chunk; what is left of it is one empty line */
            watcher_go_on(w);
            return;
        }
        size_t part = len - i < w->left ? len - i : w->left;
        watcher_take_data(w, bytes + i, part);
        i += part;
        w->left -= part;
        w->state = w->left > 0 ? WATCHER_DATA : WATCHER_END;
    }
}

static bool watcher_read(struct watcher *w, char *buffer)
{
    for (;;) {
        int got = SSL_read(w->ssl, buffer, (int)BUFFER_BYTES);
        if (got <= 0) {
            return SSL_get_error(w->ssl, got) == SSL_ERROR_WANT_READ;
        }
        watcher_take(w, buffer, (size_t)got);
    }
}

static void watchers_open(int epoll, const char *kind, size_t count)
{
    static struct connection c;
    connection_open(&c);
    (void)get(&c, kind, "?limit=1");
    unsigned long version = version_in(c.head);
    connection_close(&c);
    watched_kind = kind;
    for (size_t i = 0; i < count; i++) {
        connection_open(&c);
        watchers[i].ssl = c.ssl;
        watcher_ask(&watchers[i], kind, version);
        /* A watch that is cut before its first event begins again from here. */
        (void)snprintf(watchers[i].line[1], WATCHER_LINE_BYTES, "\"resourceVersion\":\"%lu\"",
                       version);
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &watchers[i]};
        if (fcntl(c.fd, F_SETFL, O_NONBLOCK) != 0 ||
            epoll_ctl(epoll, EPOLL_CTL_ADD, c.fd, &event) != 0) {
            die("epoll: %s", strerror(errno));
        }
    }
}

struct watched {
    int epoll;
    size_t watchers;
    size_t events; /* of each */
};

/* Returns when every watcher has every event. */
static void *watched_run(void *context)
{
    const struct watched *watched = context;
    static char buffer[BUFFER_BYTES];
    size_t done = 0;
    while (done < watched->watchers) {
        struct epoll_event events[64];
        int count = epoll_wait(watched->epoll, events, 64, 60000);
        if (count == 0) {
            die("nothing for a minute; %zu of %zu watchers have all", done, watched->watchers);
        }
        for (int i = 0; i < count; i++) {
            struct watcher *w = events[i].data.ptr;
            bool was_done = w->events >= watched->events;
            if (!watcher_read(w, buffer)) {
                die("a watch ended after %zu events", w->events);
            }
            done += !was_done && w->events >= watched->events ? 1 : 0;
        }
    }
    return NULL;
}

static void command_watch(const char *kind, const char *prefix, size_t count, size_t watching)
{
    struct watched watched = {epoll_create1(EPOLL_CLOEXEC), watching, count};
    pthread_t thread;
    watchers_open(watched.epoll, kind, watched.watchers);
    if (pthread_create(&thread, NULL, watched_run, &watched) != 0) {
        die("no thread");
    }
    while (atomic_load(&watchers_ready) < watched.watchers) {
        (void)usleep(1000);
    }
    double processor_begin = processor();
    double begin = now();
    create_all(kind, prefix, count, WRITERS_OF_WATCHED);
    (void)pthread_join(thread, NULL);
    double took = now() - begin;
    size_t cuts = 0;
    for (size_t i = 0; i < watching; i++) {
        cuts += watchers[i].cuts;
    }
    printf("%.6f %.3f %zu\n", took, processor() - processor_begin, cuts);
}

static void command_list(const char *kind, size_t count)
{
    static struct connection c;
    double best = 1e9;
    size_t bytes = 0;
    connection_open(&c);
    double processor_begin = processor();
    for (size_t i = 0; i < count; i++) {
        double begin = now();
        bytes = get(&c, kind, "");
        best = now() - begin < best ? now() - begin : best;
    }
    connection_close(&c);
    printf("%.6f %.3f %zu\n", best, (processor() - processor_begin) / (double)count, bytes);
}

static void setup(const char *address, const char *certificate, const char *key)
{
    const char *colon = strchr(address, ':');
    server = (struct sockaddr_in){.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                  .sin_port =
                                      htons((uint16_t)strtoul(colon ? colon + 1 : "", NULL, 10))};
    tls = SSL_CTX_new(TLS_client_method());
    if (!tls || SSL_CTX_use_certificate_file(tls, certificate, SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_use_PrivateKey_file(tls, key, SSL_FILETYPE_PEM) != 1) {
        die("cannot use %s and %s", certificate, key);
    }
}

static void command_create(const char *kind, const char *prefix, size_t count, size_t connections)
{
    double processor_begin = processor();
    double begin = now();
    create_all(kind, prefix, count, connections < CONNECTIONS_MAX ? connections : CONNECTIONS_MAX);
    printf("%.6f %.3f\n", now() - begin, processor() - processor_begin);
}

int main(int argc, char **argv)
{
    if (argc < 8) {
        die("usage: load HOST:PORT CERT KEY PIDS create|list|watch KIND ...; see the file");
    }
    setup(argv[1], argv[2], argv[3]);
    servers = argv[4];
    const char *kind = argv[6];
    size_t count = strtoul(argv[argc - 2], NULL, 10);
    size_t width = strtoul(argv[argc - 1], NULL, 10);
    if (strcmp(argv[5], "create") == 0 && argc == 10) {
        command_create(kind, argv[7], count, width);
    } else if (strcmp(argv[5], "list") == 0 && argc == 8) {
        command_list(kind, width);
    } else if (strcmp(argv[5], "watch") == 0 && argc == 10) {
        command_watch(kind, argv[7], count, width < WATCHERS_MAX ? width : WATCHERS_MAX);
    } else {
        die("load: '%s' and %d arguments", argv[5], argc - 6);
    }
    return 0;
}
