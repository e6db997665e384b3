/*
 * One request: what kubectl asks for a completion, with an answer cut off at a number of names.
 */
#include "cli/complete/complete_names.h"

#include "base/error.h"
#include "base/json/json.h"
#include "base/limits.h"
#include "base/os/clock.h"
#include "base/os/env.h"
#include "base/os/loop.h"
#include "control/inspect/explain.h"
#include "kube/client/client.h"
#include "kube/client/transport_http.h"
#include "kube/kubeconfig/kubeconfig.h"
#include "kube/paths.h"

#define NAMES_DEADLINE (2 * TD_SECOND) /* longer, and a person waits for it */
#define NAMES_LIMIT "500"

struct names_list {
    struct td_arena *arena;
    struct td_loop *loop;
    struct td_buf *out;
};

/* Where the objects of a kind are; an empty plural: nowhere. */
static struct td_api_path names_path(td_str kind)
{
    static const struct {
        enum td_explain_kind kind;
        const char *workload;
        struct td_api_path path;
    } rows[] = {
#define ROW(kind, workload, group, version, plural)                                                \
    {                                                                                              \
        kind, workload,                                                                            \
        {                                                                                          \
            TD_STR_INIT(group), TD_STR_INIT(version), TD_STR_INIT(""), TD_STR_INIT(plural),        \
                TD_STR_INIT(""), TD_STR_INIT("")                                                   \
        }                                                                                          \
    }
        ROW(TD_EXPLAIN_VPA, "", "autoscaling.k8s.io", "v1", "verticalpodautoscalers"),
        ROW(TD_EXPLAIN_HPA, "", "autoscaling", "v2", "horizontalpodautoscalers"),
        ROW(TD_EXPLAIN_HVPA, "", "autoscaling.k8s.io", "v1alpha1", "hvpas"),
        ROW(TD_EXPLAIN_POD, "", "", "v1", "pods"),
        ROW(TD_EXPLAIN_WORKLOAD, "Deployment", "apps", "v1", "deployments"),
        ROW(TD_EXPLAIN_WORKLOAD, "StatefulSet", "apps", "v1", "statefulsets"),
        ROW(TD_EXPLAIN_WORKLOAD, "DaemonSet", "apps", "v1", "daemonsets"),
        ROW(TD_EXPLAIN_WORKLOAD, "ReplicaSet", "apps", "v1", "replicasets"),
        ROW(TD_EXPLAIN_WORKLOAD, "Job", "batch", "v1", "jobs"),
        ROW(TD_EXPLAIN_WORKLOAD, "CronJob", "batch", "v1", "cronjobs"),
        ROW(TD_EXPLAIN_WORKLOAD, "ReplicationController", "", "v1", "replicationcontrollers"),
#undef ROW
    };
    struct td_explain_subject subject = {.kind = TD_EXPLAIN_POD};
    struct td_error err = TD_ERROR_INIT;
    if (td_str_equal(kind, TD_STR("namespace"))) {
        return (struct td_api_path){.version = TD_STR("v1"), .plural = TD_STR("namespaces")};
    }
    if (td_explain_parse_kind(kind, &subject, &err) == TD_OK) {
        for (size_t i = 0; i < TD_COUNT(rows); i++) {
            if (rows[i].kind == subject.kind &&
                td_str_equal(td_str_from(rows[i].workload), subject.workload)) {
                return rows[i].path;
            }
        }
    }
    return (struct td_api_path){.plural = TD_STR_EMPTY};
}

static void names_take(void *context, const struct td_client_reply *reply)
{
    struct names_list *list = context;
    struct td_json *body;
    if (reply->code == TD_OK &&
        td_json_parse(list->arena, reply->body, NULL, &body, NULL) == TD_OK) {
        const struct td_json *items = td_json_member(body, "items");
        for (const struct td_json *item = td_json_first_item(items); item; item = item->next) {
            td_str name = td_json_text(td_json_member(item, "metadata"), "name");
            (void)td_buf_append_format(list->out, "%.*s\n", TD_STR_ARG(name));
        }
    }
    td_loop_stop(list->loop);
}

static int names_ask(struct names_list *list, const struct td_kube_config *config, td_str path,
                     struct td_error *err)
{
    const struct td_transport_http_options http = {.loop = list->loop, .config = config};
    struct td_client_options options = {.loop = list->loop, .burst = 1};
    const struct td_client_request request = {.method = TD_STR("GET"),
                                              .path = path,
                                              .accept = TD_STR("application/json"),
                                              .deadline = NAMES_DEADLINE,
                                              .tries_max = 1};
    int code = td_transport_http_new(&http, &options.transport, err);
    if (code != TD_OK) {
        return code;
    }
    struct td_client *client = td_client_new(&options);
    if (td_client_send(client, &request, names_take, list)) {
        code = td_loop_run(list->loop, err);
    }
    td_client_free(client);
    return code;
}

void td_complete_names(struct td_arena *arena, const struct td_complete_where *where, td_str kind,
                       struct td_buf *out)
{
    struct td_error err = TD_ERROR_INIT;
    struct td_clock clock = td_clock_real();
    struct td_kube_config config;
    struct names_list list = {.arena = arena, .out = out};
    td_auto_buf path = td_buf_capped(TD_OBJECT_BYTES_MAX);
    const struct td_kube_config_input input = {
        .kubeconfig = where->kubeconfig,
        .context = where->context,
        .env = td_env_get,
        .home = td_env_get("HOME", NULL),
    };
    struct td_api_path at = names_path(kind);
    if (at.plural.len == 0 || td_kube_config_load(arena, &input, &config, &err) != TD_OK) {
        return;
    }
    if (!td_str_equal(kind, TD_STR("namespace"))) {
        at.namespace = where->namespace.len > 0 ? where->namespace : config.namespace;
    }
    if (td_path_write(&at, &path, &err) != TD_OK ||
        td_loop_new(&clock, &list.loop, &err) != TD_OK) {
        return;
    }
    td_path_add_query(&path, TD_STR("limit"), TD_STR(NAMES_LIMIT));
    (void)names_ask(&list, &config, td_buf_str(&path), &err); /* then there are none */
    td_loop_free(list.loop);
}
