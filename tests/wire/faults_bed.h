/*
 * What every fault run has in common: a local cluster in this process behind HTTPS, a client inside
 * it that keeps changing ConfigMaps, and any number of stacks, each our whole client (kubeconfig,
 * transport, client, cache) behind a link of its own that can go wrong. A stack remembers whether
 * its cache ever told something that was not so. Everything is on one thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/os/clock.h"
#include "base/os/loop.h"
#include "base/pki/pki.h"
#include "base/str.h"
#include "faults_link.h"
#include "kube/cache/cache.h"
#include "kube/client/client.h"
#include "kube/kubeconfig/kubeconfig.h"
#include "support/temp_folder.h"

#define BED_SLOTS 4        /* objects that the writer changes, adds and deletes */
#define BED_STEADY_SLOTS 2 /* those that are always there while it is steady */
#define BED_LOOPS_MAX 4    /* clocks beside each other */
#define BED_OBJECTS_MAX 8  /* of the namespace */
#define BED_CHURN_MS 40    /* between two writes */
#define BED_ASK_MS 250     /* between two calls of a stack's user */
#define BED_NAMESPACE "faults"
#define BED_OTHER "kube-root-ca.crt" /* an object there that is not selected */

/* One object as the store has it. */
struct bed_object {
    char name[64];
    char uid[64];
    char version[24];
};

struct bed_loop {
    struct td_clock clock;
    struct td_loop *loop;
    struct event *end; /* of its turn */
};

struct bed {
    struct bed_loop loops[BED_LOOPS_MAX]; /* the first one is the server's, with the real clock */
    size_t loop_count;
    struct temp_folder folder;
    struct td_arena arena; /* texts of the whole run */
    struct td_cluster *cluster;
    struct td_store *store;
    struct td_collection *collection;
    struct td_kube_config admin; /* the cluster's own */
    struct link_upstream upstream;
    struct td_pki_pair ca; /* of the links */
    td_str token;          /* of clients that do not rotate theirs: cheaper than a certificate */
    SSL_CTX *tls;
    struct td_client *writer;
    struct td_timer *churn;
    bool has_slot[BED_SLOTS];
    bool is_steady; /* objects are changed, but none comes or goes */
    bool is_quiet;  /* nothing is changed */
    size_t writes;  /* that were answered */
    size_t write_failures;
    uint64_t random;
    uint64_t seen_version; /* that `objects` is of */
    struct bed_object objects[BED_OBJECTS_MAX];
    size_t object_count;
};

/* Failures while building the bed end the program: they are not what is tested. */
void bed_start(struct bed *bed, uint64_t seed);
void bed_stop(struct bed *bed);

/* Another loop with a clock of its own, `ahead` of the real one. */
struct td_loop *bed_add_loop(struct bed *bed, double speed, td_duration ahead);
void bed_drop_loop(struct bed *bed); /* the last one */

/* All loops in turn, for some milliseconds. */
void bed_turn(struct bed *bed);
td_duration bed_now(const struct bed *bed); /* real steady time */
uint64_t bed_random(struct bed *bed);
void bed_require(int code, const struct td_error *err); /* TD_OK, or the program ends */

/* Brings `objects` up to date. */
void bed_look(struct bed *bed);

/* A list as the server would write it now, in the arena. */
td_str bed_list_text(struct bed *bed, struct td_arena *arena);

/* A token of the service account that may do everything. */
td_str bed_token(struct bed *bed, struct td_arena *arena, int64_t seconds);

/* A client's certificate of `ca`, valid for so long; and the TLS context of a link. */
void bed_issue_client(const struct td_pki_pair *ca, int64_t seconds, struct td_pki_pair *ret);
SSL_CTX *bed_issue_server(const struct td_pki_pair *ca, td_str client_ca_pem);

enum stack_login { LOGIN_INLINE, LOGIN_FILES, LOGIN_TOKEN, LOGIN_EXEC };

struct stack_options {
    struct td_loop *loop; /* NULL: the bed's first */
    enum stack_login login;
    int64_t login_seconds; /* validity of the first credentials */
    int64_t login_behind;  /* seconds by which a plugin dates their end too early */
    const char *host;      /* NULL: 127.0.0.1 */
    bool has_user;         /* calls of its own beside the cache */
    td_duration silence;   /* of its cache; 0: as usual */
    uint64_t seed;
};

struct stack {
    struct bed *bed;
    struct link link;
    struct td_arena arena;
    struct td_kube_config config;
    struct td_client *client;
    struct td_cache *cache;
    struct td_timer *ask;
    enum stack_login login;
    int64_t login_behind;
    char files[4][64];   /* names of certificate, key, authority and token (or plugin's answer) */
    size_t reported;     /* additions, changes and deletions */
    size_t lies;         /* deletions of what exists, changes of nothing */
    size_t reported_max; /* how many there can have been, before the writes */
    size_t writes_at;    /* bed->writes at its start */
    size_t asked;
    size_t asked_badly;
    char ask_problem[256];
};

/* The link is open and the cache is made, but asks for nothing before stack_go. */
void stack_start(struct stack *stack, struct bed *bed, const struct stack_options *options);
void stack_go(struct stack *stack);
void stack_stop(struct stack *stack);

/* Is every object of the cache as in the store, and the other way round? */
bool stack_is_equal(struct stack *stack);
/* Has it told more than there was to tell? */
bool stack_is_honest(const struct stack *stack);

/* New content for a file of its login: index into `files`. */
void stack_write_file(struct stack *stack, size_t file, td_str content);
/* The token file's content, or the plugin's answer. */
void stack_write_token(struct stack *stack, int64_t seconds);
