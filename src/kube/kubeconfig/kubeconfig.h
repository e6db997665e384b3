/*
 * How to reach a cluster, found where client-go's clientcmd finds it: the file asked for, else the
 * files of $KUBECONFIG merged, else ~/.kube/config, else the service account of the pod we run in.
 * Everything of a loaded configuration lies in the caller's arena and does not change; what rotates
 * (token files, certificate files, exec plugins) is in credentials.h. Inputs are explicit: the
 * environment is a function, so a test brings its own. Failures are one line with file, field and
 * value; the value of a secret is never part of one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/os/env.h"
#include "base/str.h"

struct td_error;
struct td_json;

struct td_kube_config_input {
    const char *kubeconfig;      /* --kubeconfig; NULL or "": look around */
    const char *context;         /* instead of current-context; NULL or "": current-context */
    td_env_fn env;               /* td_env_get outside tests; NULL: an empty environment */
    void *env_context;           /* handed to env */
    const char *home;            /* folder with .kube/config; NULL or "": there is none */
    const char *service_account; /* NULL: TD_SERVICE_ACCOUNT_DIR */
};

#define TD_SERVICE_ACCOUNT_DIR "/var/run/secrets/kubernetes.io/serviceaccount"

struct td_kube_extra {
    td_str key;
    const td_str *values;
    size_t value_count;
};

struct td_kube_impersonation {
    td_str user; /* empty: no impersonation, and the rest is empty too */
    td_str uid;
    const td_str *groups;
    size_t group_count;
    const struct td_kube_extra *extras; /* in byte order of keys */
    size_t extra_count;
};

enum td_exec_interaction { TD_EXEC_NEVER, TD_EXEC_IF_AVAILABLE, TD_EXEC_ALWAYS };

struct td_exec_env {
    td_str name;
    td_str value;
};

/* A plugin that prints credentials (client.authentication.k8s.io/v1 or v1beta1). */
struct td_exec_spec {
    td_str command; /* NUL-terminated; without a slash it is looked up in PATH */
    const td_str *args;
    size_t arg_count;
    const struct td_exec_env *env; /* added to ours */
    size_t env_count;
    td_str api_version;
    td_str install_hint; /* control characters made visible */
    bool provides_cluster_info;
    enum td_exec_interaction interaction;
    const struct td_json *cluster_config; /* the cluster's extension for plugins, or NULL */
};

/* Texts without a value are empty and every one is NUL-terminated. Credentials are not given to a
 * server without TLS: then token, basic, certificate and exec fields are empty, as client-go. */
struct td_kube_config {
    td_str source;  /* for messages: the path of the cluster's file, or "in-cluster" */
    td_str context; /* empty in a cluster */
    td_str user;    /* the user's name in the file, for messages */

    bool is_tls;
    td_str server; /* "https://host:port/prefix", without a slash at the end */
    td_str host;   /* without the brackets of an IPv6 address */
    uint16_t port;
    td_str path_prefix; /* "" or "/prefix" */

    td_str ca_pem;  /* content, also of a file; empty: the system's authorities */
    td_str ca_file; /* where it came from, when it may be read again */
    bool is_insecure;
    td_str tls_server_name; /* empty: host */
    td_str proxy_url;       /* of the file, else by the environment's rules; empty: direct */
    bool is_compression_disabled;

    td_str certificate_pem; /* content, also of files */
    td_str key_pem;
    td_str certificate_file; /* both set when the pair may be read again */
    td_str key_file;
    td_str token; /* content, also of a file */
    td_str token_file;
    td_str username;
    td_str password;
    const struct td_exec_spec *exec; /* NULL when there is none, or another credential wins */
    struct td_kube_impersonation impersonation;

    td_str namespace; /* of the context; "default" when it has none */
};

/* TD_NOT_FOUND when nothing is configured anywhere or the explicit file is missing, TD_INVALID for
 * content that cannot be used, TD_LIMIT for files above a cap. */
int td_kube_config_load(struct td_arena *arena, const struct td_kube_config_input *input,
                        struct td_kube_config *ret, struct td_error *err);

/* The same from one text, for tests and tools: `path` names it in messages and is where relative
 * paths start; `context` may be NULL. Only the environment of `input` is used. */
int td_kube_config_parse(struct td_arena *arena, td_str path, td_str text,
                         const struct td_kube_config_input *input, struct td_kube_config *ret,
                         struct td_error *err);

/* A server by its URL alone, for what is not a cluster but is reached the same way: no credentials,
 * the system's authorities, a proxy by the environment's rules. */
int td_kube_config_of_url(struct td_arena *arena, td_str url, td_env_fn env,
                          struct td_kube_config *ret, struct td_error *err);

/* A kubeconfig of one cluster, user and context, all called `name`. */
struct td_kubeconfig_entry {
    td_str name;
    td_str server;          /* URL */
    td_str ca_pem;          /* may be empty */
    td_str certificate_pem; /* with key_pem, or empty */
    td_str key_pem;
    td_str token;     /* may be empty */
    td_str namespace; /* may be empty */
};

/* YAML text, appended; check out at the end. Holds secrets: write it with mode 0600. */
void td_kubeconfig_write(const struct td_kubeconfig_entry *entry, struct td_buf *out);
