/*
 * Who a bearer token belongs to, and what that user may do, as the API server says: TokenReview,
 * then SubjectAccessReview. Answers hold for ten seconds of the machine's time, an API server that
 * does not answer is not remembered. Without an answer nothing is allowed. One owner.
 */
#pragma once

#include "base/str.h"

struct td_bearer_ask;
struct td_bearers;
struct td_client;
struct td_client_flow;
struct td_loop;

/* What the owner of the token wants to do: on a resource, or to get a path that is none. */
struct td_bearer_question {
    td_str token;
    td_str verb;
    td_str path; /* not empty: the rest is */
    td_str group;
    td_str resource;
    td_str namespace; /* empty: everywhere */
};

/* 200: allowed; 401: the token is no user's; 403: not allowed; 503: that is not known. */
typedef void (*td_bearer_fn)(void *context, int status);

struct td_bearers *td_bearers_new(struct td_loop *loop, struct td_client *client,
                                  struct td_client_flow *flow);
void td_bearers_free(struct td_bearers *bearers); /* those that ask are not answered any more */

/* The token of an Authorization header; empty: it has none. */
td_str td_bearer_token(td_str header);

/* The status where it is known; else 0: *ret_ask is under way, and fn is called once, later, unless
 * td_bearer_leave was called before. Also 503, when too many ask at this moment. */
int td_bearer_ask(struct td_bearers *bearers, const struct td_bearer_question *question,
                  td_bearer_fn fn, void *context, struct td_bearer_ask **ret_ask);
void td_bearer_leave(struct td_bearer_ask *ask);
