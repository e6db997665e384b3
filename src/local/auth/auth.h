/*
 * Who asks, and may they? Identities come from client certificates (common name and organisations)
 * and bearer tokens: the administrator's, and those of service accounts, which are signed here and
 * hold as long as their account exists. Impersonation follows Kubernetes' headers. Permission is
 * role-based access control over the roles and bindings in the store, read again only when one of
 * them changed; the group system:masters may do everything. Reads the store and the clock, writes
 * nothing. Error texts never contain a token.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/str.h"
#include "local/api/api.h"

struct td_auth;
struct td_clock;
struct td_error;
struct td_store;

struct td_auth_options {
    struct td_store *store;       /* borrowed */
    const struct td_clock *clock; /* borrowed */
    td_str token_key;             /* signs service account tokens; copied */
    td_str admin_token;           /* of the kubeconfig; empty: none; copied */
};

struct td_auth *td_auth_new(const struct td_auth_options *options);
void td_auth_free(struct td_auth *auth);

/* What a connection and a request show. */
struct td_auth_evidence {
    bool has_certificate;
    td_str certificate_name;
    const td_str *certificate_groups;
    size_t certificate_group_count;
    td_str authorization; /* the header; empty when there is none */
    td_str impersonate_user;
    td_str impersonate_uid;
    const td_str *impersonate_groups;
    size_t impersonate_group_count;
    bool has_impersonate_extra; /* refused: users have no extra fields here */
};

/* The user, system:anonymous when nothing is shown. TD_INVALID for credentials that are wrong (a
 * 401), TD_DENIED with the text of a 403 when impersonation is not allowed. Texts are in the arena
 * or borrowed from the evidence. */
int td_auth_identify(struct td_auth *auth, struct td_arena *arena,
                     const struct td_auth_evidence *evidence, struct td_api_user *ret,
                     struct td_error *err);

/* Whom tokens are for. */
struct td_audiences {
    const td_str *names;
    size_t count;
};

/* The owner of a token, as TokenReview wants to know. TD_INVALID when it has no owner, or is not
 * for one of the audiences (NULL or none: the API server's own). *ret_audiences (may be NULL) are
 * those of the wanted ones that it is for. */
int td_auth_token_user(struct td_auth *auth, struct td_arena *arena, td_str token,
                       const struct td_audiences *wanted, struct td_api_user *ret,
                       struct td_audiences *ret_audiences, struct td_error *err);

/* A token of a service account, appended to out. */
struct td_token_request {
    td_str ns;
    td_str name;
    td_str uid;
    const td_str *audiences; /* none: the API server's own */
    size_t audience_count;
    int64_t expires_unix_seconds;
};
int td_auth_issue_token(struct td_auth *auth, const struct td_token_request *request,
                        struct td_buf *out, struct td_error *err);

#define TD_AUTH_AUDIENCE "https://kubernetes.default.svc.cluster.local"

/* An action to authorize: on a resource, or on a non-resource path. */
struct td_auth_attributes {
    td_str verb; /* "get", "list", ..., or in lower case the method for a path */
    td_str path; /* not empty: a path that is no resource */
    td_str group;
    td_str resource;
    td_str subresource;
    td_str ns;   /* empty: all namespaces, or none */
    td_str name; /* empty: all */
};

/* *ret_reason (may be NULL) tells which binding allows it, in the arena. */
bool td_auth_allows(struct td_auth *auth, const struct td_api_user *user,
                    const struct td_auth_attributes *access, struct td_arena *arena,
                    td_str *ret_reason);

/* The sentence of a 403: User "x" cannot list resource "pods" in API group "" at the cluster scope
 */
td_str td_auth_refusal(struct td_arena *arena, const struct td_api_user *user,
                       const struct td_auth_attributes *access);

/* A role or a binding that a user writes. */
struct td_grant {
    const struct td_api_user *user;
    td_str plural; /* "roles", "clusterroles", "rolebindings", "clusterrolebindings" */
    td_str ns;     /* empty: none */
    td_str name;   /* of the request's path; empty: it is created */
    const struct td_json *object;
    const struct td_json *old; /* NULL: it is created */
};

/* May they? TD_DENIED: rights would be granted that the user has not got; TD_NOT_FOUND: the role of
 * a binding is not there. Then *ret_why, in the arena, says which. */
int td_auth_check_grant(struct td_auth *auth, const struct td_grant *grant, struct td_arena *arena,
                        td_str *ret_why);

/* One rule of a role, and those that apply to a user in a namespace (its cluster-wide ones
 * included): for SelfSubjectRulesReview. */
struct td_auth_rule {
    const struct td_json *verbs; /* arrays of strings; NULL when absent */
    const struct td_json *groups;
    const struct td_json *resources;
    const struct td_json *names;
    const struct td_json *paths;
};
typedef void (*td_auth_rule_fn)(const struct td_auth_rule *rule, void *context);
void td_auth_each_rule(struct td_auth *auth, const struct td_api_user *user, td_str ns,
                       td_auth_rule_fn fn, void *context);
