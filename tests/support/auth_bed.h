/*
 * The API handler with authorization on, for tests: the bed of api_bed.h whose requests come from
 * whom the test says. The administrator is in system:masters.
 */
#pragma once

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/limits.h"
#include "local/auth/auth.h"
#include "support/api_bed.h"

#define AUTH_ADMIN_TOKEN "0123456789abcdef"
#define AUTH_GROUPS_MAX 8

struct auth_bed {
    struct bed bed;
    struct td_auth *auth;
};

static inline void auth_bed_init(struct auth_bed *auth)
{
    bed_init(&auth->bed);
    td_api_free(auth->bed.api);
    const struct td_auth_options options = {
        .store = auth->bed.store,
        .clock = td_loop_clock(auth->bed.loop),
        .token_key = TD_STR("a key that nobody knows"),
        .admin_token = TD_STR(AUTH_ADMIN_TOKEN),
    };
    auth->auth = td_auth_new(&options);
    const struct td_api_options api = {
        .loop = auth->bed.loop, .store = auth->bed.store, .auth = auth->auth, .seed = 1};
    assert_int_equal(td_api_new(&api, &auth->bed.api, NULL), TD_OK);
}

static inline void auth_bed_done(struct auth_bed *auth)
{
    td_api_free(auth->bed.api);
    auth->bed.api = NULL;
    td_auth_free(auth->auth);
    td_store_free(auth->bed.store);
    td_loop_free(auth->bed.loop);
    td_arena_done(&auth->bed.arena);
}

/* "a,b" as groups; "" is none. */
static inline size_t auth_groups(const char *text, td_str *ret)
{
    td_str rest = td_str_from(text);
    size_t count = 0;
    while (rest.len > 0 && count < AUTH_GROUPS_MAX) {
        size_t comma = td_str_find(rest, ',', 0);
        ret[count++] = td_str_slice(rest, 0, comma);
        rest = td_str_slice(rest, comma + 1, rest.len);
    }
    return count;
}

/* A request of that user; type NULL: JSON. */
static inline int auth_call(struct auth_bed *auth, const char *user, const char *groups,
                            const struct bed_request *request, struct bed_answer *answer)
{
    td_str names[AUTH_GROUPS_MAX];
    const struct td_api_request ask = {
        .method = td_str_from(request->method),
        .target = td_str_from(request->target),
        .content_type =
            td_str_from(request->content_type ? request->content_type : "application/json"),
        .user_agent = TD_STR("bed/1"),
        .body = request->body,
        .user = {.name = td_str_from(user),
                 .uid = TD_STR_EMPTY,
                 .groups = names,
                 .group_count = auth_groups(groups, names)},
    };
    td_buf_reset(&answer->body);
    answer->status = answer->head_count = answer->end_count = 0;
    answer->header_count = 0;
    answer->call = td_api_start(auth->bed.api, &ask, &bed_sink, answer);
    if (answer->call && answer->head_count == 0) {
        bed_run(&auth->bed, TD_MILLISECOND);
    }
    return answer->status;
}

static inline int auth_send(struct auth_bed *auth, const char *user, const char *method,
                            const char *target, const char *body, struct bed_answer *answer)
{
    const struct bed_request request = {
        .method = method, .target = target, .body = td_str_from(body)};
    return auth_call(auth, user, "system:authenticated", &request, answer);
}

/* As the administrator; it must be made. */
static inline void auth_make(struct auth_bed *auth, const char *target, const char *body)
{
    bed_auto_answer answer;
    bed_answer_init(&answer);
    const struct bed_request request = {
        .method = "POST", .target = target, .body = td_str_from(body)};
    if (auth_call(auth, "admin", "system:masters", &request, &answer) != 201) {
        fail_msg("POST %s: %d %s", target, answer.status, td_buf_str(&answer.body).ptr);
    }
}
