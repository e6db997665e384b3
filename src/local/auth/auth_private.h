/*
 * Shared by auth.c (identities), auth_token.c (service account tokens), auth_rbac.c (permissions)
 * and auth_grant.c (who may grant them).
 */
#pragma once

#include "local/auth/auth.h"

struct td_json;

/* One binding, read from the store; everything is in the arena of td_auth. */
struct auth_binding {
    td_str ns;                      /* of a RoleBinding; empty for a ClusterRoleBinding */
    td_str name;                    /* for the reason */
    td_str role;                    /* "ClusterRole \"view\"" for the reason */
    const struct td_json *subjects; /* array or NULL */
    const struct td_json *rules;    /* array or NULL: the role does not exist */
};

struct td_auth {
    struct td_store *store;
    const struct td_clock *clock;
    td_str token_key; /* owned */
    td_str admin_token;
    struct td_arena rules_arena; /* of bindings */
    struct auth_binding *bindings;
    size_t binding_count;
    uint64_t rules_version; /* sum of the four collections' versions when they were read */
    bool has_rules;
};

bool auth_has_group(const struct td_api_user *user, td_str group);

td_str auth_service_account_user(struct td_arena *arena, td_str ns, td_str name);

/* The groups that every service account of a namespace is in. */
void auth_service_account_groups(struct td_arena *arena, td_str ns, struct td_api_user *ret);

/* Is the text in the list, or the star that stands for all? */
bool auth_lists(const struct td_json *list, td_str text);

/* Is the path in the list, where what ends in a star stands for all that begins so? */
bool auth_lists_path(const struct td_json *list, td_str path);

/* The rules of a role, in the arena. False: there is no such role. */
bool auth_role_rules(const struct td_auth *auth, struct td_arena *arena, td_str ns, bool is_cluster,
                     td_str name, const struct td_json **ret);
