/*
 * What no decent client sends, byte by byte over TLS to a running server: every case must end with
 * a 4xx answer or a closed connection, in time, and the server must answer the next request as
 * ever. Usage: wire_hostile KUBECONFIG. Prints a line a case, ends with 1 when one failed.
 *
 * What takes long (clients that drip their bytes) runs in processes of its own beside the rest.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/error.h"
#include "kube/kubeconfig/kubeconfig.h"

#define ANSWER_SECONDS 9    /* without a byte: the server is silent */
#define SLOW_SECONDS_MAX 25 /* after which a dripping client must have been cut off */
#define PIECE_BYTES 65536   /* of repeated text, at one time */
#define ANSWER_BYTES_MAX 262144
#define ABANDONED_COUNT 100

static struct td_kube_config hostile_config;
static int hostile_failures;

struct link {
    int fd;
    SSL *tls;
    SSL_CTX *context;
};

/* ---- connections ---- */

static int link_connect(void)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons(hostile_config.port),
        .sin_addr.s_addr = inet_addr(hostile_config.host.ptr),
    };
    struct timeval patience = {.tv_sec = ANSWER_SECONDS};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
        perror("connect");
        exit(2);
    }
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    return fd;
}

static void link_use_certificate(SSL_CTX *context)
{
    BIO *certificate_text = BIO_new_mem_buf(hostile_config.certificate_pem.ptr,
                                            (int)hostile_config.certificate_pem.len);
    BIO *key_text = BIO_new_mem_buf(hostile_config.key_pem.ptr, (int)hostile_config.key_pem.len);
    X509 *certificate = PEM_read_bio_X509(certificate_text, NULL, NULL, NULL);
    EVP_PKEY *key = PEM_read_bio_PrivateKey(key_text, NULL, NULL, NULL);
    if (SSL_CTX_use_certificate(context, certificate) != 1 ||
        SSL_CTX_use_PrivateKey(context, key) != 1) {
        (void)fprintf(stderr, "the kubeconfig's certificate cannot be used\n");
        exit(2);
    }
    X509_free(certificate);
    EVP_PKEY_free(key);
    BIO_free(certificate_text);
    BIO_free(key_text);
}

/* TLS as the administrator, or anonymous. */
static struct link link_open(bool is_anonymous)
{
    struct link link = {.fd = link_connect(), .context = SSL_CTX_new(TLS_client_method())};
    if (!is_anonymous) {
        link_use_certificate(link.context);
    }
    link.tls = SSL_new(link.context);
    (void)SSL_set_fd(link.tls, link.fd);
    if (SSL_connect(link.tls) != 1) {
        (void)fprintf(stderr, "no TLS with the server\n");
        ERR_print_errors_fp(stderr);
        exit(2);
    }
    return link;
}

static void link_close(struct link *link)
{
    SSL_free(link->tls);
    SSL_CTX_free(link->context);
    (void)close(link->fd);
}

/* False when the server does not take any more, which is its right. */
static bool link_write(struct link *link, const char *bytes, size_t count)
{
    size_t done = 0;
    while (done < count) {
        int n = SSL_write(link->tls, bytes + done, (int)(count - done));
        if (n <= 0) {
            ERR_clear_error();
            return false;
        }
        done += (size_t)n;
    }
    return true;
}

enum outcome { OUTCOME_ANSWER, OUTCOME_CLOSED, OUTCOME_SILENCE };

/* Reads until `answers` status lines came, the connection was closed or nothing came for long. The
 * statuses stand in *ret. */
static enum outcome link_read(struct link *link, size_t answers, int *ret)
{
    static char text[ANSWER_BYTES_MAX + 1];
    size_t len = 0;
    while (len < ANSWER_BYTES_MAX) {
        int n = SSL_read(link->tls, text + len, (int)(ANSWER_BYTES_MAX - len));
        if (n <= 0) {
            bool is_silent = SSL_get_error(link->tls, n) == SSL_ERROR_WANT_READ ||
                             (errno == EAGAIN && SSL_get_error(link->tls, n) == SSL_ERROR_SYSCALL);
            ERR_clear_error();
            return is_silent ? OUTCOME_SILENCE : OUTCOME_CLOSED;
        }
        len += (size_t)n;
        text[len] = '\0';
        size_t found = 0;
        for (const char *at = strstr(text, "HTTP/1.1 "); at && found < answers;
             at = strstr(at + 1, "HTTP/1.1 ")) {
            int status = (int)strtol(at + strlen("HTTP/1.1 "), NULL, 10);
            if (status != 100) {
                ret[found++] = status;
            }
        }
        if (found == answers) {
            return OUTCOME_ANSWER;
        }
    }
    return OUTCOME_ANSWER;
}

/* ---- cases ---- */

struct hostile_case {
    const char *name;
    const char *bytes;
    size_t len;         /* of bytes with NULs in them; 0: to the first NUL */
    const char *body;   /* sent behind bytes and its length, or NULL */
    size_t body_len;    /* as len */
    const char *repeat; /* sent `count` times behind bytes, or NULL */
    size_t count;
    const char *tail; /* sent last, or NULL */
    bool is_half_closed;
    bool is_anonymous;
    int status; /* the one that it must be; 0: any 4xx, or closed */
};

#define HEAD(method, path) method " " path " HTTP/1.1\r\nHost: localhost\r\n"
#define GET(path) HEAD("GET", path) "\r\n"
#define MAPS "/api/v1/namespaces/default/configmaps"
#define POST_TO(path, type) HEAD("POST", path) "Content-Type: " type "\r\n"
#define POST_OF(type) POST_TO(MAPS, type)
#define POST POST_OF("application/json")
#define CHUNKED POST "Transfer-Encoding: chunked\r\n\r\n"
/* The end of the head before a body that is not whole, or is repeated text. */
#define LENGTH(n) "Content-Length: " #n "\r\n\r\n"
#define PATCH(type) HEAD("PATCH", MAPS "/victim") "Content-Type: application/" type "\r\n"
#define BYTES(text) .bytes = (text), .len = sizeof(text) - 1
#define BODY(text) .body = (text), .body_len = sizeof(text) - 1

static const struct hostile_case framing_cases[] = {
    {.name = "a chunk size that is no number", .bytes = CHUNKED "zz\r\n{}\r\n", .status = 400},
    {.name = "a negative chunk size", .bytes = CHUNKED "-1\r\n{}\r\n", .status = 400},
    {.name = "a chunk size beyond all numbers",
     .bytes = CHUNKED "fffffffffffffffffffffffff\r\n{}\r\n"},
    {.name = "a chunk larger than a body may be", .bytes = CHUNKED "7fffffff\r\n{}", .status = 413},
    {.name = "a chunk without its end", .bytes = CHUNKED "2\r\n{}XX0\r\n\r\n", .status = 400},
    {.name = "an endless chunk size", .bytes = CHUNKED, .repeat = "0", .count = 100000},
    {.name = "endless chunk extensions", .bytes = CHUNKED "1;", .repeat = "x=y;", .count = 100000},
    {.name = "endless trailers",
     .bytes = CHUNKED "2\r\n{}\r\n0\r\n",
     .repeat = "X: y\r\n",
     .count = 100000},
    {.name = "chunks that stop", .bytes = CHUNKED "5\r\n{\"a", .is_half_closed = true},
    {.name = "a body that stops", .bytes = POST LENGTH(100) "{\"a\"", .is_half_closed = true},
    {.name = "a length that is no number", .bytes = POST LENGTH(abc) "{}", .status = 400},
    {.name = "a negative length", .bytes = POST LENGTH(-5) "{}", .status = 400},
    {.name = "a length beyond all numbers", .bytes = POST LENGTH(99999999999999999999999) "{}"},
    {.name = "two lengths", .bytes = POST "Content-Length: 2\r\n" LENGTH(3) "{}", .status = 400},
    {.name = "a length and chunks",
     .bytes = POST "Transfer-Encoding: chunked\r\n" LENGTH(5) "0\r\n\r\n",
     .status = 400},
    {.name = "an unknown transfer coding",
     .bytes = POST "Transfer-Encoding: gzip\r\n\r\n",
     .is_half_closed = true},
    {.name = "8 MB by length",
     .bytes = POST LENGTH(8388608),
     .repeat = "          ",
     .count = 838861,
     .status = 413},
    {.name = "8 MB in chunks",
     .bytes = CHUNKED,
     .repeat = "40\r\n                                                                \r\n",
     .count = 131072,
     .status = 413},
    {.name = "a compressed body",
     .bytes = POST "Content-Encoding: gzip\r\n" LENGTH(4) "\x1f\x8b\x08\x01"},
};

static const struct hostile_case head_cases[] = {
    {.name = "a method that is none", .bytes = HEAD("BREW", MAPS) "\r\n", .status = 405},
    {.name = "a method of signs", .bytes = HEAD("(/)", MAPS) "\r\n", .status = 400},
    {.name = "a method in small letters", .bytes = HEAD("get", MAPS) "\r\n"},
    {.name = "TRACE", .bytes = HEAD("TRACE", MAPS) "\r\n"},
    {.name = "CONNECT", .bytes = HEAD("CONNECT", "localhost:80") "\r\n"},
    {.name = "bytes of no protocol", BYTES("\x16\x03\x01\0\xff\xfe\0\0\r\n\r\n")},
    {.name = "the opening of HTTP/2", .bytes = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"},
    {.name = "an unknown version", .bytes = "GET /version HTTP/9.9\r\nHost: x\r\n\r\n"},
    {.name = "no version", .bytes = "GET /version\r\n\r\n", .status = 400},
    {.name = "no host", .bytes = "GET /version HTTP/1.1\r\n\r\n", .status = 400},
    {.name = "a header without a colon",
     .bytes = HEAD("GET", "/version") "Nonsense\r\n\r\n",
     .status = 400},
    {.name = "a space in a header's name",
     .bytes = HEAD("GET", "/version") "A b: c\r\n\r\n",
     .status = 400},
    {.name = "a folded header",
     .bytes = HEAD("GET", "/version") "A: b\r\n c\r\n\r\n",
     .status = 400},
    {.name = "a NUL in a header", BYTES(HEAD("GET", "/version") "A: b\0c\r\n\r\n"), .status = 400},
    {.name = "a NUL in the path", BYTES("GET /ver\0sion HTTP/1.1\r\nHost: x\r\n\r\n")},
    {.name = "a request line of 100 kB", .bytes = "GET /", .repeat = "a", .count = 100000},
    {.name = "a header of 100 kB",
     .bytes = HEAD("GET", "/version") "A: ",
     .repeat = "a",
     .count = 100000,
     .status = 431},
    {.name = "10,000 headers",
     .bytes = HEAD("GET", "/version"),
     .repeat = "A: b\r\n",
     .count = 10000,
     .status = 431},
    {.name = "a bad escape in the path", .bytes = GET("/api/v1/%zz"), .status = 400},
    {.name = "half an escape in the path", .bytes = GET("/api/v1/pods%2"), .status = 400},
    {.name = "an escaped NUL in the path", .bytes = GET(MAPS "/a%00b")},
    {.name = "an escaped slash in a name", .bytes = GET(MAPS "/..%2f..%2fsecrets")},
    {.name = "dots in the path", .bytes = GET("/api/v1/../../etc/passwd")},
    {.name = "a path of 5,000 parts",
     .bytes = "GET ",
     .repeat = "/a",
     .count = 5000,
     .tail = " HTTP/1.1\r\nHost: x\r\n\r\n"},
    {.name = "a bad escape in the query drops its parameter, as upstream",
     .bytes = GET(MAPS "?labelSelector=%zz"),
     .status = 200},
    {.name = "an anonymous client", .bytes = GET(MAPS), .is_anonymous = true, .status = 403},
    {.name = "a token that is none",
     .bytes = HEAD("GET", MAPS) "Authorization: Bearer x.y.z\r\n\r\n",
     .is_anonymous = true,
     .status = 401},
    {.name = "an Authorization that is none",
     .bytes = HEAD("GET", MAPS) "Authorization: \x01\x02 %%%\r\n\r\n",
     .is_anonymous = true},
    {.name = "an impersonated group without a user",
     .bytes = HEAD("GET", MAPS) "Impersonate-Group: g\r\n\r\n"},
    {.name = "an upgrade to what is not there",
     .bytes = HEAD(
         "GET",
         "/api/v1/namespaces/default/pods/none/exec?command=sh") "Connection: Upgrade\r\nUpgrade: "
                                                                 "websocket\r\n\r\n",
     .status = 404},
    {.name = "a half-closed client without a request", .bytes = "", .is_half_closed = true},
    {.name = "half a request line", .bytes = "GET /ver", .is_half_closed = true},
    {.name = "half of the headers", .bytes = HEAD("GET", "/version"), .is_half_closed = true},
};

static const struct hostile_case query_cases[] = {
    {.name = "a resourceVersion of letters in a list",
     .bytes = GET(MAPS "?resourceVersion=abc"),
     .status = 400},
    {.name = "a resourceVersion of letters in a watch",
     .bytes = GET(MAPS "?watch=1&resourceVersion=abc"),
     .status = 400},
    {.name = "a resourceVersion of letters in a get",
     .bytes = GET("/api/v1/namespaces/default?resourceVersion=abc"),
     .status = 400},
    {.name = "a resourceVersion below zero",
     .bytes = GET(MAPS "?resourceVersion=-1"),
     .status = 400},
    {.name = "a resourceVersion beyond all numbers",
     .bytes = GET(MAPS "?resourceVersion=99999999999999999999999"),
     .status = 400},
    {.name = "a resourceVersionMatch that is none",
     .bytes = GET(MAPS "?resourceVersionMatch=Sometimes&resourceVersion=1")},
    {.name = "a limit of letters", .bytes = GET(MAPS "?limit=abc"), .status = 400},
    {.name = "a continue of nothing",
     .bytes = GET(MAPS "?limit=1&continue=nonsense"),
     .status = 400},
    {.name = "a timeout of letters",
     .bytes = GET(MAPS "?watch=1&timeoutSeconds=abc"),
     .status = 400},
    {.name = "a label selector that is none", .bytes = GET(MAPS "?labelSelector=a%3D%3D%3Db,,")},
    {.name = "a field selector that is none", .bytes = GET(MAPS "?fieldSelector=a"), .status = 400},
    {.name = "a watch of what is not there",
     .bytes = GET("/apis/no.such/v1/things?watch=1"),
     .status = 404},
    {.name = "3,000 parameters",
     .bytes = "GET " MAPS "?a=b",
     .repeat = "&a=b",
     .count = 3000,
     .tail = " HTTP/1.1\r\nHost: x\r\n\r\n",
     .status = 400},
    {.name = "delete with options that are none",
     .bytes = HEAD("DELETE", MAPS "/victim") "Content-Type: application/json\r\n",
     BODY("[1,2]"),
     .status = 400},
    {.name = "delete with an unknown propagation",
     .bytes = HEAD("DELETE", MAPS "/victim?propagationPolicy=Never") "\r\n",
     .status = 422},
    {.name = "an eviction of nothing",
     .bytes = POST_TO("/api/v1/namespaces/default/pods/none/eviction", "application/json"),
     BODY("{}")},
};

static const struct hostile_case body_cases[] = {
    {.name = "no body", .bytes = POST LENGTH(0)},
    {.name = "null", .bytes = POST, BODY("null"), .status = 422},
    {.name = "a number", .bytes = POST, BODY("1"), .status = 400},
    {.name = "half an object", .bytes = POST, BODY("{\"a\": "), .status = 400},
    {.name = "a name of nonsense",
     .bytes = POST,
     BODY("{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{"
          "\"name\":\"../../etc\"}}  "),
     .status = 422},
    {.name = "metadata that is a list",
     .bytes = POST,
     BODY("{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":[1]}"),
     .status = 400},
    {.name = "another kind",
     .bytes = POST,
     BODY("{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\"}}   "),
     .status = 400},
    {.name = "bytes that are no UTF-8", .bytes = POST, BODY("{\"a\":\"\xff\xfe\xc0\"}")},
    {.name = "a body of NULs", .bytes = POST, BODY("\0\0\0\0"), .status = 400},
    {.name = "lists in lists, 100,000 deep",
     .bytes = POST LENGTH(100000),
     .repeat = "[",
     .count = 100000},
    {.name = "objects in objects, 100,000 deep",
     .bytes = POST LENGTH(500000),
     .repeat = "{\"a\":",
     .count = 100000},
    {.name = "YAML lists in lists",
     .bytes = POST_OF("application/yaml") LENGTH(100000),
     .repeat = "[",
     .count = 100000},
    {.name = "YAML that grows by its anchors",
     .bytes = POST_OF("application/yaml"),
     BODY("a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b]\n"
          "d: &d [*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e]\n\n\n\n\n")},
    {.name = "a content type that is none",
     .bytes = POST_OF("text/html"),
     BODY("{}"),
     .status = 415},
    {.name = "protobuf without its mark",
     .bytes = POST_OF("application/vnd.kubernetes.protobuf"),
     BODY("abcd"),
     .status = 400},
    {.name = "protobuf of its mark alone",
     .bytes = POST_OF("application/vnd.kubernetes.protobuf"),
     BODY("k8s\0")},
    {.name = "protobuf of noise",
     .bytes = POST_OF("application/vnd.kubernetes.protobuf"),
     BODY("k8s\0\x12\xff\xff\xff\xff\xff\xff\x7f"),
     .status = 400},
    {.name = "protobuf with a length beyond its end",
     .bytes = POST_OF("application/vnd.kubernetes.protobuf"),
     BODY("k8s\0\x0a\x7f\x0a\x02v1"),
     .status = 400},
    {.name = "protobuf in protobuf, 50,000 deep",
     BYTES(POST_OF("application/vnd.kubernetes.protobuf") LENGTH(200004) "k8s\0"),
     .repeat = "\x12\x80\x80\x40",
     .count = 50000,
     .status = 400},
    {.name = "a patch of an unknown type", .bytes = PATCH("json"), BODY("{}"), .status = 415},
    {.name = "a JSON patch that is no list",
     .bytes = PATCH("json-patch+json"),
     BODY("{}"),
     .status = 400},
    {.name = "a JSON patch of an unknown operation",
     .bytes = PATCH("json-patch+json"),
     BODY("[{\"op\":\"eat\",\"path\":\"/a\"}]")},
    {.name = "a JSON patch to nowhere",
     .bytes = PATCH("json-patch+json"),
     BODY("[{\"op\":\"remove\",\"path\":\"/no/where\"}]")},
    {.name = "a JSON patch with a path of noise",
     .bytes = PATCH("json-patch+json"),
     BODY("[{\"op\":\"add\",\"path\":\"~2~\",\"value\":1}]  ")},
    {.name = "a merge patch that is a list", .bytes = PATCH("merge-patch+json"), BODY("[1]")},
    {.name = "a strategic patch with a directive that is none",
     .bytes = PATCH("strategic-merge-patch+json"),
     BODY("{\"$patch\":\"dance\"}")},
    {.name = "a strategic patch with an order that is no list",
     .bytes = PATCH("strategic-merge-patch+json"),
     BODY("{\"metadata\":{\"$setElementOrder/finalizers\":\"b\"}}")},
    {.name = "an apply without a manager",
     .bytes = PATCH("apply-patch+yaml"),
     BODY("{apiVersion: v1, kind: ConfigMap}   "),
     .status = 422},
    {.name = "a patch that takes the name away",
     .bytes = PATCH("merge-patch+json"),
     BODY("{\"metadata\":{\"name\":\"other-one\"}}")},
};

static void hostile_say(const char *name, bool is_good, const char *what, int status)
{
    (void)printf("%s %s", is_good ? "ok  " : "FAIL", name);
    if (!is_good) {
        (void)printf(": %s", what);
        if (status > 0) {
            (void)printf(" %d", status);
        }
        hostile_failures++;
    }
    (void)printf("\n");
    (void)fflush(stdout);
}

/* Ends our half: the server sees the end of the stream, and can still answer. */
static void link_half_close(struct link *link)
{
    (void)SSL_shutdown(link->tls);
    (void)shutdown(link->fd, SHUT_WR);
}

static void link_send_case(struct link *link, const struct hostile_case *row)
{
    static char piece[PIECE_BYTES];
    char length[64];
    bool goes_on = link_write(link, row->bytes, row->len > 0 ? row->len : strlen(row->bytes));
    if (goes_on && row->body) {
        (void)snprintf(length, sizeof(length), "Content-Length: %zu\r\n\r\n", row->body_len);
        goes_on =
            link_write(link, length, strlen(length)) && link_write(link, row->body, row->body_len);
    }
    size_t width = row->repeat ? strlen(row->repeat) : 1;
    size_t in_piece = PIECE_BYTES / width;
    for (size_t i = 0; row->repeat && i < in_piece; i++) {
        memcpy(piece + i * width, row->repeat, width);
    }
    for (size_t done = 0; goes_on && done < row->count; done += in_piece) {
        size_t now = row->count - done < in_piece ? row->count - done : in_piece;
        goes_on = link_write(link, piece, now * width);
    }
    if (goes_on && row->tail) {
        goes_on = link_write(link, row->tail, strlen(row->tail));
    }
    if (goes_on && row->is_half_closed) {
        link_half_close(link);
    }
}

static bool hostile_still_serves(void)
{
    int status = 0;
    struct link link = link_open(false);
    (void)link_write(&link, GET("/readyz"), strlen(GET("/readyz")));
    (void)link_read(&link, 1, &status);
    link_close(&link);
    return status == 200;
}

static void hostile_run(const struct hostile_case *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct hostile_case *row = &rows[i];
        int status = 0;
        struct link link = link_open(row->is_anonymous);
        link_send_case(&link, row);
        enum outcome outcome = link_read(&link, 1, &status);
        link_close(&link);
        if (outcome == OUTCOME_SILENCE) {
            hostile_say(row->name, false, "the server is silent", 0);
        } else if (outcome == OUTCOME_CLOSED) {
            hostile_say(row->name, row->status == 0, "closed without an answer", 0);
        } else {
            bool is_right = row->status > 0 ? status == row->status : status / 100 == 4;
            hostile_say(row->name, is_right, "answered", status);
        }
        if (!hostile_still_serves()) {
            hostile_say("the server serves afterwards", false, "it does not", 0);
            exit(1);
        }
    }
}

/* ---- what a table cannot say ---- */

/* The object that patches and deletes are about. */
static void hostile_prepare(void)
{
    static const struct hostile_case victim = {
        .bytes = POST,
        BODY("{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"victim\"}}"),
    };
    int status = 0;
    struct link link = link_open(false);
    link_send_case(&link, &victim);
    (void)link_read(&link, 1, &status);
    link_close(&link);
    hostile_say("a decent request is served", status == 201, "answered", status);
}

static void hostile_pipeline(void)
{
    static const char requests[] =
        GET("/version") GET("/no/such/path") GET("/readyz") "nonsense\r\n\r\n";
    int statuses[4] = {0};
    struct link link = link_open(false);
    (void)link_write(&link, requests, sizeof(requests) - 1);
    (void)link_read(&link, 4, statuses);
    link_close(&link);
    hostile_say("requests sent together are answered in order",
                statuses[0] == 200 && statuses[1] == 404 && statuses[2] == 200 &&
                    statuses[3] == 400,
                "the answers differ; the third is", statuses[2]);
}

static void hostile_half_closed(void)
{
    int status = 0;
    struct link link = link_open(false);
    (void)link_write(&link, GET("/version"), strlen(GET("/version")));
    link_half_close(&link);
    enum outcome outcome = link_read(&link, 1, &status);
    link_close(&link);
    hostile_say("a half-closed client gets its answer or is closed",
                outcome != OUTCOME_SILENCE && (status == 0 || status == 200), "answered", status);

    static const char watch[] = GET(MAPS "?watch=1&timeoutSeconds=60");
    int statuses[2] = {0};
    link = link_open(false);
    (void)link_write(&link, watch, sizeof(watch) - 1);
    link_half_close(&link);
    outcome = link_read(&link, 2, statuses);
    link_close(&link);
    hostile_say("a half-closed client's watch is ended", outcome == OUTCOME_CLOSED,
                "it goes on in silence", 0);
}

static void hostile_continue(void)
{
    static const char head[] = POST "Expect: 100-continue\r\n" LENGTH(2);
    int status = 0;
    struct link link = link_open(false);
    (void)link_write(&link, head, sizeof(head) - 1);
    (void)link_write(&link, "{}", 2);
    (void)link_read(&link, 1, &status);
    link_close(&link);
    hostile_say("a client that asks before its body is answered", status / 100 == 4, "answered",
                status);
}

static void hostile_plain(void)
{
    static const char *const openings[] = {"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
                                           "\x16\x03\x01\xff\xff\x01\xff\xff"};
    for (size_t i = 0; i < sizeof(openings) / sizeof(openings[0]); i++) {
        char byte[64];
        int fd = link_connect();
        (void)!write(fd, openings[i], strlen(openings[i]));
        (void)shutdown(fd, SHUT_WR);
        ssize_t n = read(fd, byte, sizeof(byte));
        while (n > 0) {
            n = read(fd, byte, sizeof(byte));
        }
        hostile_say(i == 0 ? "HTTP without TLS is closed" : "half a TLS hello is closed",
                    n == 0 || errno != EAGAIN, "the server is silent", 0);
        (void)close(fd);
    }
}

static void hostile_abandoned(void)
{
    static struct link links[ABANDONED_COUNT];
    for (size_t i = 0; i < ABANDONED_COUNT; i++) {
        links[i] = link_open(false);
        (void)link_write(&links[i],
                         POST LENGTH(1000) "{\"a\":", strlen(POST LENGTH(1000) "{\"a\":"));
    }
    for (size_t i = 0; i < ABANDONED_COUNT; i++) {
        link_close(&links[i]);
    }
    hostile_say("100 clients that vanish in the middle of a body", hostile_still_serves(),
                "the server does not serve", 0);
}

/* One byte a second behind `opening` until the server has had enough. 0: cut off in time. */
static int slow_drip(const char *opening, char byte)
{
    struct link link = link_open(false);
    struct timeval patience = {.tv_sec = 1};
    (void)setsockopt(link.fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    (void)link_write(&link, opening, strlen(opening));
    for (int second = 0; second < SLOW_SECONDS_MAX; second++) {
        int status = 0;
        if (!link_write(&link, &byte, 1) || link_read(&link, 1, &status) != OUTCOME_SILENCE) {
            return status == 0 || status / 100 == 4 ? 0 : 1;
        }
    }
    return 1;
}

/* A connection without a word, not even of TLS. */
static int slow_mute(const char *opening, char byte)
{
    char got;
    (void)opening;
    (void)byte;
    int fd = link_connect();
    struct timeval patience = {.tv_sec = SLOW_SECONDS_MAX};
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    return read(fd, &got, 1) == 0 ? 0 : 1;
}

static const struct slow_case {
    const char *name;
    int (*run)(const char *opening, char byte);
    const char *opening;
    char byte;
} slow_cases[] = {
    {"headers byte by byte are cut off", slow_drip, "GET /version HTTP/1.1\r\nHost: x\r\nA: ", 'a'},
    {"a request line byte by byte is cut off", slow_drip, "GET /", 'a'},
    {"a body byte by byte is cut off", slow_drip, POST LENGTH(100000) "{", ' '},
    {"chunks byte by byte are cut off", slow_drip, CHUNKED "4000\r\n", ' '},
    {"a connection without a word is cut off", slow_mute, NULL, 0},
};
#define SLOW_COUNT (sizeof(slow_cases) / sizeof(slow_cases[0]))

static void hostile_load(const char *path, struct td_arena *arena)
{
    struct td_error err = TD_ERROR_INIT;
    const struct td_kube_config_input input = {.kubeconfig = path};
    if (td_kube_config_load(arena, &input, &hostile_config, &err) != TD_OK) {
        (void)fprintf(stderr, "%s\n", err.message);
        exit(2);
    }
}

#define RUN(rows) hostile_run(rows, sizeof(rows) / sizeof((rows)[0]))

int main(int argc, char **argv)
{
    td_auto_arena arena;
    pid_t slow[SLOW_COUNT];
    td_arena_init(&arena, (size_t)16 << 20);
    if (argc != 2) {
        (void)fprintf(stderr, "usage: wire_hostile KUBECONFIG\n");
        return 2;
    }
    (void)signal(SIGPIPE, SIG_IGN);
    hostile_load(argv[1], &arena);
    for (size_t i = 0; i < SLOW_COUNT; i++) {
        slow[i] = fork();
        if (slow[i] == 0) {
            _exit(slow_cases[i].run(slow_cases[i].opening, slow_cases[i].byte));
        }
    }
    hostile_prepare();
    RUN(framing_cases);
    RUN(head_cases);
    RUN(query_cases);
    RUN(body_cases);
    hostile_pipeline();
    hostile_half_closed();
    hostile_continue();
    hostile_plain();
    hostile_abandoned();
    for (size_t i = 0; i < SLOW_COUNT; i++) {
        int status = 1;
        (void)waitpid(slow[i], &status, 0);
        hostile_say(slow_cases[i].name, WIFEXITED(status) && WEXITSTATUS(status) == 0,
                    "not in time", 0);
    }
    hostile_say("the server serves at the end", hostile_still_serves(), "it does not", 0);
    return hostile_failures > 0 ? 1 : 0;
}
