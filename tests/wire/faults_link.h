/*
 * A relay between a client and the embedded API server: TLS on both sides, one connection to the
 * server for each of the client's, and a plan of what goes wrong with the next answers. It counts
 * what the client asks for, and that is what "calls" means in this folder. A client that shows a
 * certificate is the administrator behind the relay; one that does not is the user of its token.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <event2/event.h>
#include <openssl/ssl.h>

#include "base/os/clock.h"
#include "base/str.h"

enum link_fault {
    LINK_FINE,
    LINK_CUT,     /* closed after `at` bytes of the answer */
    LINK_RESET,   /* the same by a reset */
    LINK_ANSWER,  /* `answer` instead of the server's, then closed */
    LINK_SILENCE, /* no answer */
    LINK_DRIP,    /* `at` bytes each millisecond */
    LINK_GARBAGE, /* `answer` as one more chunk behind the next event */
    LINK_HEADERS, /* header lines without an end */
    LINK_OLD,     /* private: the answer of a server without streaming lists */
};

enum link_match { LINK_ANY, LINK_LIST, LINK_WATCH };

struct link_plan {
    enum link_fault fault;
    enum link_match match;
    size_t at;
    size_t count; /* answers it happens to; 0: every one */
    td_str answer;
};

struct link_upstream {
    unsigned short port;
    SSL_CTX *with_certificate; /* owned by the bed, as the next */
    SSL_CTX *without;
};

struct link_connection;

struct link {
    struct event_base *base;
    struct evconnlistener *listener; /* NULL: connections are refused */
    unsigned short port;
    SSL_CTX *tls; /* holds a reference */
    const struct link_upstream *upstream;
    struct link_connection *first;
    struct td_clock clock; /* real */
    bool is_old;           /* the server refuses streaming lists */
    struct link_plan plan;
    size_t struck;         /* answers that the plan happened to */
    size_t finished;       /* of them, the fault is complete */
    td_duration struck_at; /* the last one; real steady time */
    td_duration pause_min; /* the shortest time from such an answer to the next request */
    bool is_timing;
    size_t requests;
    size_t connections;
    size_t refused;    /* answers 401 */
    size_t list_bytes; /* of the last whole list answered */
};

void link_start(struct link *link, struct event_base *base, SSL_CTX *tls,
                const struct link_upstream *upstream);
void link_stop(struct link *link);

/* New connections are refused, open ones are cut. */
void link_close(struct link *link);
void link_open(struct link *link); /* again, on the same port */

/* For new connections; those open are cut. */
void link_set_tls(struct link *link, SSL_CTX *tls);
void link_cut(struct link *link);

/* With is_live the answers that are on their way are the next ones. */
void link_arm(struct link *link, const struct link_plan *plan, bool is_live);
