/* The webhook's whole path: AdmissionReviews over HTTP and TLS, two at a time. The parts of an
 * input between bytes of value 0 are bodies, by turns of two connections that are kept; what is no
 * review is sent as the pod of one, whose owner may be nobody, so that it is held. Each is answered
 * once, within the deadline and a budget of time and memory. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/event.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include "base/error.h"
#include "base/json/json.h"
#include "base/limits.h"
#include "budget.h"
#include "support/webhook_bed.h"

#define PEERS 2
#define BODIES_MAX 6
#define TURNS_MAX 100000 /* of the loop, before an answer is given up */
#define TURNS_QUICK 50   /* after these it is a review that is held: others may have the machine */
#define TURN (TD_MILLISECOND / 2)
#define ANSWER_BYTES ((size_t)64 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct peer {
    int fd;
    SSL *ssl; /* NULL: not connected */
    struct td_buf out;
    size_t sent;
    struct td_buf in;
};

static struct webhook_bed bed;
static struct peer peers[PEERS];
static SSL_CTX *trusting;

/* ---- The webhook ---- */

static void fuzz_begin(void)
{
    if (bed.side.webhook) {
        return;
    }
    const struct td_cluster_options cluster = {.seed = 1, .faults = &bed.faults};
    control_bed_init_on(&bed.c, td_clock_real(), &cluster);
    struct td_webhook_options options = webhook_bed_options();
    options.listen = "127.0.0.1:0";
    options.probe_interval = TD_HOUR;
    options.deadline = 10 * TD_MILLISECOND;
    webhook_side_init(&bed.side, bed.c.bed.loop, bed.c.client, options);
    control_bed_run(&bed.c, TD_SECOND);
    webhook_bed_vpa(&bed, "web", "web", "",
                    "'containerRecommendations':[{'containerName':'app','target':{'cpu':'250m',"
                    "'memory':'300Mi'}}]");
    webhook_bed_deploy(&bed, "web", "", "'containers':[{'name':'app','image':'nginx'}]");
    trusting = SSL_CTX_new(TLS_client_method());
    td_assert(trusting);
    control_bed_run(&bed.c, TD_SECOND);
}

/* ---- Connections ---- */

static void peer_connect(struct peer *peer)
{
    td_str url = td_webhook_url(bed.side.webhook);
    size_t colon = td_str_find(url, ':', sizeof("https:"));
    int64_t port = 0;
    td_assert(td_str_to_int64(td_str_slice(url, colon + 1, url.len - 1), &port));
    struct sockaddr_in place = {.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    *peer = (struct peer){.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    td_assert(peer->fd >= 0);
    td_assert(connect(peer->fd, (struct sockaddr *)&place, sizeof(place)) == 0);
    td_assert(fcntl(peer->fd, F_SETFL, O_NONBLOCK) == 0);
    peer->ssl = SSL_new(trusting);
    td_assert(peer->ssl && SSL_set_fd(peer->ssl, peer->fd) == 1);
    SSL_set_connect_state(peer->ssl);
    SSL_set_mode(peer->ssl, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    td_buf_init(&peer->in, ANSWER_BYTES);
    td_buf_init(&peer->out, ANSWER_BYTES);
}

/* The whole answer in what has come so far: its body; false when more is to come. */
static bool peer_answer(const struct peer *peer, int64_t *ret_status, td_str *ret_body)
{
    static const char key[] = "Content-Length: ";
    td_str all = td_buf_str(&peer->in);
    const char *end = all.len > 0 ? memmem(all.ptr, all.len, "\r\n\r\n", 4) : NULL;
    const char *at = end ? memmem(all.ptr, (size_t)(end - all.ptr), key, sizeof(key) - 1) : NULL;
    int64_t length;
    if (!end) {
        return false;
    }
    size_t head = (size_t)(end - all.ptr);
    td_assert(at && td_str_starts_with(all, TD_STR("HTTP/1.1 ")));
    size_t from = (size_t)(at - all.ptr) + sizeof(key) - 1;
    td_assert(td_str_to_int64(td_str_slice(all, from, td_str_find(all, '\r', from)), &length));
    td_assert(td_str_to_int64(td_str_slice(all, 9, 12), ret_status));
    *ret_body = td_str_slice(all, head + 4, all.len);
    td_assert(ret_body->len <= (size_t)length);
    return ret_body->len == (size_t)length;
}

/* Moves what can be moved. */
static void peer_move(struct peer *peer)
{
    static char bytes[65536];
    int count = 1;
    ERR_clear_error();
    while (peer->sent < peer->out.len && count > 0) {
        count = SSL_write(peer->ssl, peer->out.ptr + peer->sent, (int)(peer->out.len - peer->sent));
        peer->sent += count > 0 ? (size_t)count : 0;
    }
    while ((count = SSL_read(peer->ssl, bytes, sizeof(bytes))) > 0) {
        td_assert(td_buf_append(&peer->in, (td_str){.ptr = bytes, .len = (size_t)count}) == TD_OK);
    }
    int problem = SSL_get_error(peer->ssl, count);
    td_assert(problem == SSL_ERROR_WANT_READ || problem == SSL_ERROR_WANT_WRITE);
}

/* ---- Reviews ---- */

/* The bytes themselves, or those of a review around them. */
static void peer_ask(struct peer *peer, td_str text)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_json *tree;
    if (!peer->ssl) {
        peer_connect(peer);
    }
    if (td_json_parse(&arena, text, NULL, &tree, NULL) == TD_OK &&
        !td_json_get(tree, TD_STR("request"))) {
        text = td_arena_format(
            &arena,
            "{\"request\":{\"uid\":\"u\",\"namespace\":\"default\",\"operation\":\"CREATE\","
            "\"resource\":{\"group\":\"\",\"resource\":\"pods\"},\"object\":%.*s}}",
            TD_STR_ARG(text));
    }
    td_buf_reset(&peer->in);
    td_buf_reset(&peer->out);
    peer->sent = 0;
    td_assert(td_buf_append_format(&peer->out,
                                   "POST /any HTTP/1.1\r\nHost: a\r\nContent-Type: "
                                   "application/json\r\nContent-Length: %zu\r\n\r\n",
                                   text.len) == TD_OK);
    td_assert(td_buf_append(&peer->out, text) == TD_OK);
}

/* A review that can be read, or a call that is refused for its size. */
static void check_answer(int64_t status, td_str body)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_json *tree;
    td_assert(status == 200 || status == 413);
    if (status == 200) {
        td_assert(td_json_parse(&arena, body, NULL, &tree, NULL) == TD_OK);
        td_assert(td_json_is(td_json_get_path(tree, "response.allowed"), TD_JSON_TYPE_BOOL));
    }
}

static void ask_all(const td_str *texts, size_t count)
{
    int64_t status = 0;
    td_str body;
    size_t open = 0;
    for (size_t i = 0; i < count; i++) {
        peer_ask(&peers[i], texts[i]);
        open |= (size_t)1 << i;
    }
    for (int turn = 0; open != 0; turn++) {
        td_assert(turn < TURNS_MAX);
        (void)event_base_loop(td_loop_base(bed.c.bed.loop), EVLOOP_NONBLOCK);
        control_bed_run(&bed.c, turn < TURNS_QUICK ? 0 : TURN); /* timers */
        for (size_t i = 0; i < count; i++) {
            peer_move(&peers[i]);
            if ((open >> i & 1) != 0 && peer_answer(&peers[i], &status, &body)) {
                check_answer(status, body);
                open &= ~((size_t)1 << i);
            }
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_begin();
    td_str input = {.ptr = (const char *)data, .len = size};
    const struct budget budget = budget_begin();
    size_t from = 0;
    for (size_t done = 0; done < BODIES_MAX && from <= input.len; done += PEERS) {
        td_str texts[PEERS];
        size_t count = 0;
        for (; count < PEERS && from <= input.len; count++) {
            size_t end = td_str_find(input, '\0', from);
            texts[count] = td_str_slice(input, from, end);
            from = end + 1;
        }
        ask_all(texts, count);
    }
    td_arena_reset(&bed.c.bed.arena);
    budget_end(&budget);
    return 0;
}
