/*
 * What the parts of kubeconfig.h share; private to them. A file is read and its types are
 * checked as a whole (kubeconfig_read.c), files are merged by name (kubeconfig_merge.c), and the
 * cluster and user of one context are turned into a configuration (kubeconfig_cluster.c and
 * kubeconfig_user.c).
 */
#pragma once

#include "base/map.h"
#include "kube/kubeconfig/kubeconfig.h"

struct td_error;
struct td_json;

struct td_kubeconfig_file {
    td_str path;   /* as it was named */
    td_str folder; /* where its relative paths start; empty: the current one */
    const struct td_json *tree;
};

/* A cluster, user or context of some file. */
struct td_kubeconfig_named {
    td_str name;
    const struct td_json *value; /* an object or NULL */
    const struct td_kubeconfig_file *file;
    const char *list; /* "users" */
    const char *kind; /* "user" */
};

/* Merged files: names to struct td_kubeconfig_named in the arena. */
struct td_kubeconfig_set {
    struct td_arena *arena;
    struct td_map clusters;
    struct td_map users;
    struct td_map contexts;
    td_str current_context;
    td_str current_context_path; /* the file that said so */
};

/* `path` and `text` must live as long as the arena. An empty text is an empty file. */
int td_kubeconfig_read(struct td_arena *arena, td_str path, td_str text,
                       struct td_kubeconfig_file *ret, struct td_error *err);

void td_kubeconfig_set_init(struct td_kubeconfig_set *set, struct td_arena *arena);
void td_kubeconfig_set_done(struct td_kubeconfig_set *set);

/* Adds what earlier files did not say. */
int td_kubeconfig_merge(struct td_kubeconfig_set *set, const struct td_kubeconfig_file *file,
                        struct td_error *err);

/* "FILE: users[admin].user.FIELD: ..." with `code`, which is returned. */
int td_kubeconfig_fail(const struct td_kubeconfig_named *entry, const char *field, int code,
                       struct td_error *err, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* Names and paths come from files: a control character of theirs becomes '?' in a message, which
 * stays one line. Returns `code`. */
int td_kubeconfig_one_line(struct td_error *err, int code);

/* A text member, NUL-terminated in the arena; empty when it is not there. */
td_str td_kubeconfig_text(struct td_arena *arena, const struct td_kubeconfig_named *entry,
                          td_str field);

/* The same of a path, which starts at the entry's file when it is relative. */
td_str td_kubeconfig_path(struct td_arena *arena, const struct td_kubeconfig_named *entry,
                          td_str field);

/* A list of texts, each NUL-terminated in the arena; none when it is not there. */
const td_str *td_kubeconfig_texts(struct td_arena *arena, const struct td_json *list,
                                  size_t *ret_count);

/* The bytes of a member in base64, or else of the file that another member names; both empty when
 * there is neither, an error when there are both. */
struct td_kubeconfig_source {
    td_str data_field; /* "client-key-data" */
    td_str file_field; /* "client-key" */
};
int td_kubeconfig_bytes(struct td_arena *arena, const struct td_kubeconfig_named *entry,
                        const struct td_kubeconfig_source *source, td_str *ret_bytes,
                        td_str *ret_path, struct td_error *err);

/* Scheme, host, port and prefix of `text` into the configuration. The message begins with what is
 * wrong; the caller says where. */
int td_kubeconfig_set_server(struct td_arena *arena, td_str text, struct td_kube_config *config,
                             struct td_error *err);

/* What a cluster and a user say, the cluster first. Fields of credentials are left empty for a
 * server without TLS. */
int td_kubeconfig_use_cluster(struct td_arena *arena, const struct td_kubeconfig_named *cluster,
                              const struct td_kube_config_input *input,
                              struct td_kube_config *config, struct td_error *err);
int td_kubeconfig_use_user(struct td_arena *arena, const struct td_kubeconfig_named *user,
                           const struct td_kubeconfig_named *cluster, struct td_kube_config *config,
                           struct td_error *err);
int td_kubeconfig_use_exec(struct td_arena *arena, const struct td_kubeconfig_named *user,
                           const struct td_kubeconfig_named *cluster, struct td_kube_config *config,
                           struct td_error *err);

/* Can it be the value of an HTTP header? */
bool td_kubeconfig_is_header(td_str text);

/* From where a pod finds its cluster. TD_NOT_FOUND when this is no pod. */
int td_kubeconfig_in_cluster(struct td_arena *arena, const struct td_kube_config_input *input,
                             struct td_kube_config *ret, struct td_error *err);

/* The pod's namespace, or "default". */
td_str td_kubeconfig_pod_namespace(struct td_arena *arena,
                                   const struct td_kube_config_input *input);
