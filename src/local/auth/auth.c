/*
 * From a certificate or a token to a user with groups, and the rules of the impersonation headers.
 */
#include "local/auth/auth.h"

#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/text.h"
#include "local/auth/auth_private.h"

static void auth_wipe(td_str text)
{
    explicit_bzero((void *)(uintptr_t)text.ptr, text.len);
    td_text_free(text);
}

struct td_auth *td_auth_new(const struct td_auth_options *options)
{
    struct td_auth *auth = td_alloc_zero(1, sizeof(*auth));
    auth->store = options->store;
    auth->clock = options->clock;
    auth->token_key = td_text_copy(options->token_key);
    auth->admin_token = td_text_copy(options->admin_token);
    td_arena_init(&auth->rules_arena, TD_TREE_ARENA_BYTES_MAX);
    return auth;
}

void td_auth_free(struct td_auth *auth)
{
    if (!auth) {
        return;
    }
    auth_wipe(auth->token_key);
    auth_wipe(auth->admin_token);
    td_arena_done(&auth->rules_arena);
    td_free(auth);
}

bool auth_has_group(const struct td_api_user *user, td_str group)
{
    return td_str_is_among(group, user->groups, user->group_count);
}

/* The user with one more group at the end. */
static void auth_add_group(struct td_arena *arena, struct td_api_user *user, td_str group)
{
    if (auth_has_group(user, group)) {
        return;
    }
    td_str *groups = td_arena_array(arena, td_str, user->group_count + 1);
    for (size_t i = 0; i < user->group_count; i++) {
        groups[i] = user->groups[i];
    }
    groups[user->group_count] = group;
    user->groups = groups;
    user->group_count++;
}

td_str auth_service_account_user(struct td_arena *arena, td_str ns, td_str name)
{
    return td_arena_format(arena, "system:serviceaccount:%.*s:%.*s", TD_STR_ARG(ns),
                           TD_STR_ARG(name));
}

void auth_service_account_groups(struct td_arena *arena, td_str ns, struct td_api_user *ret)
{
    ret->groups = NULL;
    ret->group_count = 0;
    auth_add_group(arena, ret, TD_STR("system:serviceaccounts"));
    auth_add_group(arena, ret,
                   td_arena_format(arena, "system:serviceaccounts:%.*s", TD_STR_ARG(ns)));
}

/* The token of an Authorization header; empty when it has another scheme, which is ignored. */
static td_str auth_bearer(td_str header)
{
    td_str bearer = TD_STR("Bearer ");
    if (header.len < bearer.len || strncasecmp(header.ptr, bearer.ptr, bearer.len) != 0) {
        return TD_STR_EMPTY;
    }
    return td_str_trim(td_str_slice(header, bearer.len, header.len));
}

/* A certificate counts before a token; who shows neither is anonymous. */
static int auth_identify_self(struct td_auth *auth, struct td_arena *arena,
                              const struct td_auth_evidence *evidence, struct td_api_user *ret,
                              struct td_error *err)
{
    struct td_api_user user = {.name = TD_STR("system:anonymous")};
    td_str group = TD_STR("system:authenticated");
    td_str token = auth_bearer(evidence->authorization);
    if (evidence->has_certificate && evidence->certificate_name.len > 0) {
        user.name = evidence->certificate_name;
        user.groups = evidence->certificate_groups;
        user.group_count = evidence->certificate_group_count;
    } else if (token.len > 0) {
        int code = td_auth_token_user(auth, arena, token, NULL, &user, NULL, err);
        if (code != TD_OK) {
            return code;
        }
    } else {
        group = TD_STR("system:unauthenticated");
    }
    auth_add_group(arena, &user, group);
    *ret = user;
    return TD_OK;
}

/* "system:serviceaccount:NS:NAME" split; false when it is not one. */
static bool auth_split_account(td_str user, td_str *ret_ns, td_str *ret_name)
{
    td_str prefix = TD_STR("system:serviceaccount:");
    if (!td_str_starts_with(user, prefix)) {
        return false;
    }
    size_t colon = td_str_find(user, ':', prefix.len);
    if (colon == prefix.len || colon + 1 >= user.len) {
        return false;
    }
    *ret_ns = td_str_slice(user, prefix.len, colon);
    *ret_name = td_str_slice(user, colon + 1, user.len);
    return true;
}

static int auth_may_impersonate(struct td_auth *auth, struct td_arena *arena,
                                const struct td_api_user *user,
                                const struct td_auth_attributes *access, struct td_error *err)
{
    if (td_auth_allows(auth, user, access, arena, NULL)) {
        return TD_OK;
    }
    td_str refusal = td_auth_refusal(arena, user, access);
    return td_error_set(err, TD_DENIED, "%.*s%s%.*s \"%.*s\" is forbidden: %.*s",
                        TD_STR_ARG(access->resource), access->group.len > 0 ? "." : "",
                        TD_STR_ARG(access->group), TD_STR_ARG(access->name), TD_STR_ARG(refusal));
}

static int auth_check_impersonation(struct td_auth *auth, struct td_arena *arena,
                                    const struct td_auth_evidence *evidence,
                                    const struct td_api_user *self, struct td_error *err)
{
    struct td_auth_attributes access = {.verb = TD_STR("impersonate"),
                                        .resource = TD_STR("users"),
                                        .name = evidence->impersonate_user};
    if (auth_split_account(evidence->impersonate_user, &access.ns, &access.name)) {
        access.resource = TD_STR("serviceaccounts");
    }
    int code = auth_may_impersonate(auth, arena, self, &access, err);
    for (size_t i = 0; code == TD_OK && i < evidence->impersonate_group_count; i++) {
        access = (struct td_auth_attributes){.verb = access.verb,
                                             .resource = TD_STR("groups"),
                                             .name = evidence->impersonate_groups[i]};
        code = auth_may_impersonate(auth, arena, self, &access, err);
    }
    if (code == TD_OK && evidence->impersonate_uid.len > 0) {
        access = (struct td_auth_attributes){.verb = access.verb,
                                             .group = TD_STR("authentication.k8s.io"),
                                             .resource = TD_STR("uids"),
                                             .name = evidence->impersonate_uid};
        code = auth_may_impersonate(auth, arena, self, &access, err);
    }
    return code;
}

static int auth_impersonate(struct td_auth *auth, struct td_arena *arena,
                            const struct td_auth_evidence *evidence, const struct td_api_user *self,
                            struct td_api_user *ret, struct td_error *err)
{
    int code = auth_check_impersonation(auth, arena, evidence, self, err);
    if (code != TD_OK) {
        return code;
    }
    struct td_api_user user = {.name = evidence->impersonate_user,
                               .uid = evidence->impersonate_uid,
                               .groups = evidence->impersonate_groups,
                               .group_count = evidence->impersonate_group_count};
    td_str ns;
    td_str name;
    if (user.group_count == 0 && auth_split_account(user.name, &ns, &name)) {
        auth_service_account_groups(arena, ns, &user);
    }
    if (td_str_equal(user.name, TD_STR("system:anonymous"))) {
        auth_add_group(arena, &user, TD_STR("system:unauthenticated"));
    } else if (!auth_has_group(&user, TD_STR("system:unauthenticated"))) {
        auth_add_group(arena, &user, TD_STR("system:authenticated"));
    }
    *ret = user;
    return TD_OK;
}

int td_auth_identify(struct td_auth *auth, struct td_arena *arena,
                     const struct td_auth_evidence *evidence, struct td_api_user *ret,
                     struct td_error *err)
{
    struct td_api_user self;
    int code = auth_identify_self(auth, arena, evidence, &self, err);
    if (code != TD_OK) {
        return code;
    }
    if (evidence->has_impersonate_extra) {
        return td_error_set(err, TD_DENIED, "extra fields of a user cannot be impersonated here");
    }
    if (evidence->impersonate_user.len > 0) {
        return auth_impersonate(auth, arena, evidence, &self, ret, err);
    }
    if (evidence->impersonate_group_count > 0 || evidence->impersonate_uid.len > 0) {
        return td_error_set(err, TD_DENIED,
                            "Impersonate-Group or Impersonate-Uid without Impersonate-User");
    }
    *ret = self;
    return TD_OK;
}
