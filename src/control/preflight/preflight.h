/*
 * Is a cluster fit for the controllers? Questions are asked at once, what is refused, missing or in
 * the way is found in the answers, and each finding is one line: what is so, and what to do about
 * it. Nothing is written; creations are dry runs. One thread, the loop's; one look, then it is
 * freed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/str.h"
#include "control/install.h"

struct td_client;
struct td_clock;
struct td_client_flow;
struct td_json;
struct td_preflight;

enum td_finding_state {
    TD_FINDING_OK,
    TD_FINDING_NOTE, /* something to know; nothing fails of it */
    TD_FINDING_MEND, /* the controllers do not work until it is mended */
};

struct td_finding {
    enum td_finding_state state;
    const char *check; /* "metrics"; static */
    td_str found;
    td_str remedy; /* the next step; empty: none */
};

struct td_preflight_options {
    struct td_client *client;
    struct td_client_flow *flow;
    const struct td_clock *clock;      /* the cluster's: how old leases and metrics are */
    struct td_install_options install; /* what runs there or is about to */
    bool is_short; /* only what every user may read: server, metrics API, definitions */
};

/* Valid until the preflight is freed. */
struct td_findings {
    int code; /* TD_OK, or why the cluster cannot be read at all */
    struct td_error err;
    const struct td_finding *items;
    size_t count;
    size_t mends; /* how many of them are TD_FINDING_MEND */
};

typedef void (*td_preflight_fn)(void *context, const struct td_findings *findings);

/* Options are copied, texts in them are borrowed. `fn` is called once, from the loop. */
struct td_preflight *td_preflight_start(const struct td_preflight_options *options,
                                        td_preflight_fn fn, void *context);
void td_preflight_free(struct td_preflight *preflight); /* NULL is accepted */

/* A line for each finding, and one that counts. Check out at the end. */
void td_findings_write(const struct td_findings *findings, struct td_buf *out);
struct td_json *td_findings_json(struct td_arena *arena, const struct td_findings *findings);
