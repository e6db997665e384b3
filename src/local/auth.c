#include "local/auth.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/pki.h"
#include "base/text.h"
#include "local/auth_private.h"

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

/* The user with one more group at the end. */
static void auth_add_group(struct td_arena *arena, struct td_api_user *user, td_str group)
{
    for (size_t i = 0; i < user->group_count; i++) {
        if (td_str_equal(user->groups[i], group)) {
            return;
        }
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

static int auth_identify_self(struct td_auth *auth, struct td_arena *arena,
                              const struct td_auth_evidence *evidence, struct td_api_user *ret,
                              struct td_error *err)
{
    struct td_api_user user = {.name = TD_STR("system:anonymous")};
    td_str bearer = TD_STR("Bearer ");
    if (evidence->has_certificate && evidence->certificate_name.len > 0) {
        user.name = evidence->certificate_name;
        user.groups = evidence->certificate_groups;
        user.group_count = evidence->certificate_group_count;
    } else if (evidence->authorization.len >= bearer.len &&
               strncasecmp(evidence->authorization.ptr, bearer.ptr, bearer.len) == 0) {
        td_str token = td_str_trim(
            td_str_slice(evidence->authorization, bearer.len, evidence->authorization.len));
        int code = td_auth_token_user(auth, arena, token, &user, err);
        if (code != TD_OK) {
            return code;
        }
    } else if (evidence->authorization.len > 0) {
        return td_error_set(err, TD_INVALID, "only bearer tokens and client certificates are read");
    } else {
        auth_add_group(arena, &user, TD_STR("system:unauthenticated"));
        *ret = user;
        return TD_OK;
    }
    auth_add_group(arena, &user, TD_STR("system:authenticated"));
    *ret = user;
    return TD_OK;
}

/* "system:serviceaccount:NS:NAME" split; false when it is not one. */
static bool auth_split_account(td_str user, td_str *ret_ns)
{
    td_str prefix = TD_STR("system:serviceaccount:");
    if (!td_str_starts_with(user, prefix)) {
        return false;
    }
    size_t colon = td_str_find(user, ':', prefix.len);
    if (colon == user.len) {
        return false;
    }
    *ret_ns = td_str_slice(user, prefix.len, colon);
    return true;
}

static int auth_may_impersonate(struct td_auth *auth, struct td_arena *arena,
                                const struct td_api_user *user, const char *resource, td_str name,
                                struct td_error *err)
{
    struct td_access access = {
        .verb = TD_STR("impersonate"), .resource = td_str_from(resource), .name = name};
    if (td_auth_allows(auth, user, &access, arena, NULL)) {
        return TD_OK;
    }
    td_str refusal = td_auth_refusal(arena, user, &access);
    return td_error_set(err, TD_DENIED, "%s \"%.*s\" is forbidden: %.*s", resource,
                        TD_STR_ARG(name), TD_STR_ARG(refusal));
}

static int auth_impersonate(struct td_auth *auth, struct td_arena *arena,
                            const struct td_auth_evidence *evidence, const struct td_api_user *self,
                            struct td_api_user *ret, struct td_error *err)
{
    struct td_api_user user = {.name = evidence->impersonate_user,
                               .uid = evidence->impersonate_uid};
    int code = auth_may_impersonate(auth, arena, self, "users", user.name, err);
    for (size_t i = 0; code == TD_OK && i < evidence->impersonate_group_count; i++) {
        code =
            auth_may_impersonate(auth, arena, self, "groups", evidence->impersonate_groups[i], err);
    }
    if (code == TD_OK && user.uid.len > 0) {
        code = auth_may_impersonate(auth, arena, self, "uids", user.uid, err);
    }
    if (code != TD_OK) {
        return code;
    }
    user.groups = evidence->impersonate_groups;
    user.group_count = evidence->impersonate_group_count;
    td_str ns;
    if (user.group_count == 0 && auth_split_account(user.name, &ns)) {
        auth_service_account_groups(arena, ns, &user);
    }
    bool is_anonymous = td_str_equal(user.name, TD_STR("system:anonymous"));
    auth_add_group(arena, &user,
                   is_anonymous ? TD_STR("system:unauthenticated")
                                : TD_STR("system:authenticated"));
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
    if (evidence->impersonate_user.len > 0) {
        return auth_impersonate(auth, arena, evidence, &self, ret, err);
    }
    if (evidence->impersonate_group_count > 0 || evidence->impersonate_uid.len > 0) {
        return td_error_set(err, TD_DENIED,
                            "groups or a uid are impersonated without Impersonate-User");
    }
    *ret = self;
    return TD_OK;
}
