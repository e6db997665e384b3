/*
 * A bed for controllers: a whole local cluster on a virtual clock, and a client of it in this
 * process. What a test applies goes through the API; controllers under test see it through caches.
 */
#pragma once

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "kube/client/client.h"
#include "local/api/transport.h"
#include "local/cluster.h"
#include "local/engine/engine.h"
#include "local/nodes/node_object.h"
#include "support/edit_bed.h"

#define CONTROL_BED_WAITS 5000 /* milliseconds for one answer */

struct control_bed {
    struct bed bed; /* its store is not used: the cluster has one; loop, clock, arena and api are */
    struct td_cluster *cluster;
    struct td_transport *transport; /* the client's */
    struct td_client *client;
};

static inline void control_bed_init_on(struct control_bed *c, struct td_clock clock,
                                       const struct td_cluster_options *given)
{
    static const struct td_node_size nodes[] = {
        {.count = 3, .cpu_milli = 8000, .memory_bytes = INT64_C(32) << 30, .pods = 110}};
    *c = (struct control_bed){.bed = {.clock = clock}};
    td_arena_init(&c->bed.arena, TD_TREE_ARENA_BYTES_MAX);
    struct td_error err = TD_ERROR_INIT;
    assert_int_equal(td_loop_new(&c->bed.clock, &c->bed.loop, &err), TD_OK);
    struct td_cluster_options options = given ? *given : (struct td_cluster_options){.seed = 1};
    options.loop = c->bed.loop;
    options.name = TD_STR("bed");
    if (!options.nodes) {
        options.nodes = nodes;
        options.node_size_count = 1;
    }
    if (td_cluster_new(&options, &c->cluster, &err) != TD_OK) {
        fail_msg("%s", err.message);
    }
    c->bed.api = td_cluster_api(c->cluster);
    const struct td_transport_local_options local = {
        .api = c->bed.api,
        .loop = c->bed.loop,
        .user = TD_STR("kubernetes-admin"),
        .group = TD_STR("system:masters"),
        .user_agent = TD_STR("tandem"),
    };
    c->transport = td_transport_local_new(&local);
    const struct td_client_options client = {
        .loop = c->bed.loop, .transport = c->transport, .seed = 1};
    c->client = td_client_new(&client);
}

static inline void control_bed_init_with(struct control_bed *c,
                                         const struct td_cluster_options *given)
{
    control_bed_init_on(c, td_clock_virtual(BED_START * TD_SECOND), given);
    bed_run(&c->bed, TD_SECOND);
}

static inline void control_bed_init(struct control_bed *c)
{
    control_bed_init_with(c, NULL);
}

/* Controllers must have been freed. */
static inline void control_bed_done(struct control_bed *c)
{
    td_client_free(c->client);
    td_cluster_free(c->cluster);
    td_loop_free(c->bed.loop);
    td_arena_done(&c->bed.arena);
}

static inline void control_bed_run(struct control_bed *c, td_duration span)
{
    bed_run(&c->bed, span);
}

/* POST of an object; quotes may be written as '. */
static inline void control_bed_create(struct control_bed *c, const char *collection,
                                      const char *text)
{
    bed_auto_answer answer;
    bed_answer_init(&answer);
    td_auto_buf body;
    td_buf_init(&body, (size_t)1 << 20);
    td_json_write(edit_bed_parse(&c->bed, text), &(struct td_json_format){.indent = 0}, &body);
    int status = bed_call(&c->bed, "POST", collection, td_buf_str(&body).ptr, &answer);
    for (int i = 0; answer.call && answer.head_count == 0 && i < CONTROL_BED_WAITS; i++) {
        bed_run(&c->bed, TD_MILLISECOND); /* a webhook behind a socket takes its time */
    }
    status = answer.head_count > 0 ? answer.status : status;
    if (status != 201) {
        fail_msg("%s: %s", collection, td_buf_str(&answer.body).ptr);
    }
}

static inline int control_bed_patch(struct control_bed *c, const char *target, const char *patch)
{
    bed_auto_answer answer;
    bed_answer_init(&answer);
    td_auto_buf body;
    td_buf_init(&body, (size_t)1 << 20);
    td_json_write(edit_bed_parse(&c->bed, patch), &(struct td_json_format){.indent = 0}, &body);
    struct bed_request request = {
        .method = "PATCH",
        .target = target,
        .content_type = "application/merge-patch+json",
        .body = td_buf_str(&body),
    };
    bed_ask(&c->bed, &request, &answer);
    if (answer.call && answer.head_count == 0) {
        bed_run(&c->bed, TD_MILLISECOND);
    }
    return answer.status;
}

static inline int control_bed_delete(struct control_bed *c, const char *target)
{
    bed_auto_answer answer;
    bed_answer_init(&answer);
    return bed_call(&c->bed, "DELETE", target, NULL, &answer);
}

/* An object as a tree in the bed's arena, or NULL. */
static inline struct td_json *control_bed_get(struct control_bed *c, const char *target)
{
    bed_auto_answer answer;
    bed_answer_init(&answer);
    if (bed_call(&c->bed, "GET", target, NULL, &answer) != 200) {
        return NULL;
    }
    struct td_json *tree = NULL;
    (void)td_json_parse(&c->bed.arena, td_buf_str(&answer.body),
                        &(struct td_json_options){.copy_strings = true}, &tree, NULL);
    return tree;
}
