/*
 * Events about objects, written as core v1 Events with client-go's rules: the same event again is
 * one object with a higher count; from the tenth message within ten minutes on that differs from
 * the others of its reason they are combined into one object; an object may have 25 writes at
 * once and then one each five minutes. Recording never blocks and never fails: what does not fit
 * into the queue is dropped and counted. Events are written one after the other. One thread, the
 * loop's.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "kube/client/client.h"

struct td_events;
struct td_loop;

struct td_events_options {
    struct td_loop *loop;
    struct td_client *client;
    struct td_client_flow *flow;
    td_str component; /* "vpa-updater" */
    td_str host;      /* of this process; may be empty */
};

/* Texts are copied. */
struct td_events *td_events_new(const struct td_events_options *options);
void td_events_free(struct td_events *events); /* what waits is dropped */

struct td_event {
    /* What it is about. */
    td_str api_version;
    td_str kind;
    td_str namespace; /* empty for cluster-scoped objects: written in "default" */
    td_str name;
    td_str uid;
    td_str resource_version; /* may be empty */
    td_str field_path;       /* may be empty: "spec.containers{app}" */
    /* What happened. */
    bool is_warning;
    td_str reason;  /* "EvictedByVPA" */
    td_str message; /* cut at TD_EVENT_MESSAGE_BYTES_MAX */
    /* What was decided and why, in a few words for a table: the annotation TD_EVENT_DECISION.
     * Empty: it tells of no decision. */
    td_str decision;
};

#define TD_EVENT_DECISION "tandem.dev/decision"

void td_events_record(struct td_events *events, const struct td_event *event);

struct td_events_counts {
    uint64_t written;
    uint64_t failed;     /* refused by the server, or no answer in time */
    uint64_t dropped;    /* the queue was full */
    uint64_t suppressed; /* by the limit of each object */
};
struct td_events_counts td_events_counts(const struct td_events *events);
