/*
 * What are we, or a service account, allowed to do? Each rule is asked for by a review; what is
 * missing comes back as one line a rule, in the words of a Role, so that a user can paste it. Asked
 * before controllers start: a missing permission is a sentence then, not a 403 an hour later.
 */
#pragma once

#include <stddef.h>

#include "base/str.h"
#include "kube/client/client.h"

struct td_access;

struct td_access_rule {
    td_str verb;        /* "patch" */
    td_str group;       /* empty: the core group */
    td_str resource;    /* plural: "deployments" */
    td_str subresource; /* empty: the object itself */
    td_str namespace;   /* empty: in all of them, or cluster-scoped */
    td_str name;        /* of the only object; empty: every one */
};

struct td_access_result {
    int code;            /* TD_OK when every question was answered, whatever the answers */
    size_t missing;      /* rules that are not allowed */
    td_str lines;        /* one for each of them, ended by a newline; valid during the callback */
    struct td_error err; /* of the first question without an answer */
};

typedef void (*td_access_fn)(void *context, const struct td_access_result *result);

/* Rules are copied, at most TD_ACCESS_RULES_MAX. `fn` is called once from the loop; the object is
 * gone by then. */
struct td_access *td_access_check(struct td_client *client, struct td_client_flow *flow,
                                  const struct td_access_rule *rules, size_t count, td_access_fn fn,
                                  void *context);
/* The same about a service account, by SubjectAccessReview: for those who may ask about others. */
struct td_access *td_access_check_account(struct td_client *client, struct td_client_flow *flow,
                                          td_str namespace, td_str account,
                                          const struct td_access_rule *rules, size_t count,
                                          td_access_fn fn, void *context);
void td_access_cancel(struct td_access *access); /* NULL is accepted */
