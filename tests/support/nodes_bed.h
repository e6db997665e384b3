/* A bed with nodes: a virtual clock, the API, nodes of our own, pods written as JSON. After cmocka.
 */
#pragma once

#include "local/engine/engine.h"
#include "local/nodes/node_object.h"
#include "local/nodes/nodes.h"
#include "support/edit_bed.h"

struct nodes_bed {
    struct bed bed;
    struct td_engine *engine;
    struct td_nodes *nodes;
};

/* So many of the usual nodes, and what workloads want. */
static inline void nodes_bed_init_demands(struct nodes_bed *n, size_t count,
                                          const struct td_demand *demands, size_t demand_count)
{
    *n = (struct nodes_bed){.nodes = NULL};
    bed_init(&n->bed);
    const struct td_engine_options engine = {
        .loop = n->bed.loop, .demands = demands, .demand_count = demand_count};
    n->engine = td_engine_new(&engine);
    const struct td_node_size size = td_node_size_usual((int64_t)count);
    const struct td_nodes_options options = {
        .api = n->bed.api, .sizes = &size, .size_count = 1, .engine = n->engine};
    struct td_error err = TD_ERROR_INIT;
    assert_int_equal(td_nodes_new(&options, &n->nodes, &err), TD_OK);
    edit_bed_put(&n->bed, "{'apiVersion':'v1','kind':'Namespace','metadata':{'name':'n'}}");
    bed_run(&n->bed, TD_MILLISECOND);
}

static inline void nodes_bed_init(struct nodes_bed *n, size_t count)
{
    nodes_bed_init_demands(n, count, NULL, 0);
}

static inline void nodes_bed_done(struct nodes_bed *n)
{
    td_nodes_free(n->nodes);
    td_engine_free(n->engine);
    bed_done(&n->bed);
}

static inline struct td_json *nodes_bed_pod(struct nodes_bed *n, const char *name)
{
    return edit_bed_get(&n->bed, "v1", "Pod", "n", name);
}

static inline const char *nodes_bed_pod_text(struct nodes_bed *n, const char *name,
                                             const char *path)
{
    return edit_bed_text(&n->bed, nodes_bed_pod(n, name), path);
}

/* A pod of one container "app"; `spec` holds further members of its spec with their comma. */
static inline void nodes_bed_put_pod(struct nodes_bed *n, const char *name, const char *resources,
                                     const char *spec)
{
    char text[4096];
    (void)snprintf(text, sizeof(text),
                   "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'%s','namespace':'n'},"
                   "'spec':{'containers':[{'name':'app','image':'nginx','resources':{%s}}]%s},"
                   "'status':{'phase':'Pending','qosClass':'BestEffort'}}",
                   name, resources, spec);
    edit_bed_put(&n->bed, text);
}

/* A pod through the API, with all that the server fills in. */
static inline void nodes_bed_post(struct nodes_bed *n, const char *text)
{
    struct bed_answer answer;
    bed_answer_init(&answer);
    td_auto_buf body;
    td_buf_init(&body, 65536);
    td_json_write(edit_bed_parse(&n->bed, text), &(struct td_json_format){.indent = 0}, &body);
    if (bed_call(&n->bed, "POST", "/api/v1/namespaces/n/pods", td_buf_str(&body).ptr, &answer) !=
        201) {
        fail_msg("%s", td_buf_str(&answer.body).ptr);
    }
    bed_answer_done(&answer);
}

static inline void nodes_bed_post_pod(struct nodes_bed *n, const char *name, const char *resources,
                                      const char *spec)
{
    char text[4096];
    (void)snprintf(text, sizeof(text),
                   "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'%s'},'spec':{'containers':"
                   "[{'name':'app','image':'nginx','resources':{%s}}]%s}}",
                   name, resources, spec);
    nodes_bed_post(n, text);
}

/* Changes members of a stored object: a strategic merge patch through the API. */
static inline int nodes_bed_patch(struct nodes_bed *n, const char *target, const char *patch)
{
    struct bed_answer answer;
    bed_answer_init(&answer);
    td_auto_buf body;
    td_buf_init(&body, 65536);
    td_json_write(edit_bed_parse(&n->bed, patch), &(struct td_json_format){.indent = 0}, &body);
    struct bed_request request = {
        .method = "PATCH",
        .target = target,
        .content_type = "application/strategic-merge-patch+json",
        .body = td_buf_str(&body),
    };
    bed_ask(&n->bed, &request, &answer);
    bed_run(&n->bed, TD_MILLISECOND);
    int status = answer.status;
    if (status >= 400) {
        fprintf(stderr, "%s\n", td_buf_str(&answer.body).ptr);
    }
    bed_answer_done(&answer);
    return status;
}
