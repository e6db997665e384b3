/*
 * Two questions one after the other for each pair of token and wish that is not remembered; those
 * who left are not told, but what was learnt is kept.
 */
#include "kube/bearer.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/json/json.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/os/loop.h"
#include "base/text.h"
#include "kube/client/client.h"
#include "kube/client/verbs.h"
#include "kube/paths.h"

#define BEARER_FOR (10 * TD_SECOND) /* machine's time */

struct bearer_answer {
    td_str key; /* token and wish; owned, behind the structure */
    int status; /* 200, 401 or 403 */
    td_duration until;
};

struct td_bearer_ask {
    struct td_bearers *bearers;
    struct td_bearer_ask *next;
    td_bearer_fn fn; /* NULL: no caller waits */
    void *context;
    td_str key;              /* owned */
    struct td_arena arena;   /* of the question */
    struct td_json *wish;    /* the attributes of SubjectAccessReview */
    const char *wish_member; /* under this name */
    struct td_client_call *request;
};

struct td_bearers {
    struct td_loop *loop;
    struct td_client *client;
    struct td_client_flow *flow;
    struct td_map answers;
    struct td_bearer_ask *asks;
    size_t ask_count;
};

static td_duration bearer_now(const struct td_bearers *bearers)
{
    return td_clock_machine(td_loop_clock(bearers->loop));
}

/* ---- Answers ---- */

static void bearer_forget(struct td_bearers *bearers, bool is_all)
{
    for (struct td_map_walk at = {.map = &bearers->answers}; td_map_step(&at);) {
        struct bearer_answer *answer = at.value;
        if (is_all || answer->until <= bearer_now(bearers)) {
            (void)td_map_remove(&bearers->answers, answer->key);
            td_free(answer);
        }
    }
}

static void bearer_remember(struct td_bearers *bearers, td_str key, int status)
{
    bearer_forget(bearers, false);
    struct bearer_answer *answer = td_map_remove(&bearers->answers, key);
    td_free(answer);
    answer = td_alloc_zero(1, sizeof(*answer) + key.len + 1);
    answer->key = td_text_behind(answer + 1, key);
    answer->status = status;
    answer->until = bearer_now(bearers) + BEARER_FOR;
    if (td_map_put(&bearers->answers, answer->key, answer) != TD_OK) {
        td_free(answer); /* asked again next time */
    }
}

static void ask_free(struct td_bearer_ask *ask)
{
    td_arena_done(&ask->arena);
    td_text_free(ask->key);
    td_free(ask);
}

static void ask_end(struct td_bearer_ask *ask, int status)
{
    struct td_bearers *bearers = ask->bearers;
    struct td_bearer_ask **place = &bearers->asks;
    while (*place != ask) {
        place = &(*place)->next;
    }
    *place = ask->next;
    bearers->ask_count--;
    if (status != 503) {
        bearer_remember(bearers, ask->key, status);
    }
    td_bearer_fn fn = ask->fn;
    void *context = ask->context;
    ask_free(ask);
    if (fn) {
        fn(context, status);
    }
}

/* ---- Two reviews ---- */

static bool review_send(struct td_bearer_ask *ask, const char *group, const char *plural,
                        struct td_json *review, td_client_done_fn done)
{
    const struct td_api_path path = {
        .group = td_str_from(group), .version = TD_STR("v1"), .plural = td_str_from(plural)};
    struct td_client_request request;
    if (td_verb_create(&ask->arena, &path, td_json_line(&ask->arena, review), NULL, &request,
                       NULL) != TD_OK) {
        return false;
    }
    request.flow = ask->bearers->flow;
    request.is_idempotent = true; /* a question */
    ask->request = td_client_send(ask->bearers->client, &request, done, ask);
    return true;
}

static struct td_json *review_new(struct td_arena *arena, const char *api, const char *kind)
{
    struct td_json *review = td_json_new_object(arena);
    td_json_set_str(arena, review, TD_STR("apiVersion"), td_str_from(api));
    td_json_set_str(arena, review, TD_STR("kind"), td_str_from(kind));
    return review;
}

/* The status of a review; NULL: there is no answer. */
static const struct td_json *review_status(struct td_bearer_ask *ask,
                                           const struct td_client_reply *reply)
{
    struct td_json *answer;
    const struct td_json_options options = {.copy_strings = true};
    ask->request = NULL;
    return reply->code == TD_OK &&
                   td_json_parse(&ask->arena, reply->body, &options, &answer, NULL) == TD_OK &&
                   td_arena_check(&ask->arena, NULL) == TD_OK
               ? td_json_get(answer, TD_STR("status"))
               : NULL;
}

static void ask_allowed(void *context, const struct td_client_reply *reply)
{
    struct td_bearer_ask *ask = context;
    const struct td_json *status = review_status(ask, reply);
    if (!status) {
        ask_end(ask, 503);
        return;
    }
    ask_end(ask, td_json_get_bool(status, TD_STR("allowed"), false) ? 200 : 403);
}

static void ask_named(void *context, const struct td_client_reply *reply)
{
    struct td_bearer_ask *ask = context;
    struct td_arena *arena = &ask->arena;
    const struct td_json *status = review_status(ask, reply);
    if (!status) {
        ask_end(ask, 503);
        return;
    }
    const struct td_json *user = td_json_get(status, TD_STR("user"));
    if (!td_json_get_bool(status, TD_STR("authenticated"), false)) {
        ask_end(ask, 401);
        return;
    }
    struct td_json *review = review_new(arena, "authorization.k8s.io/v1", "SubjectAccessReview");
    struct td_json *spec = td_json_ensure_object(arena, review, TD_STR("spec"));
    td_json_set_str(arena, spec, TD_STR("user"), td_json_text(user, "username"));
    td_json_set_text(arena, spec, TD_STR("uid"), td_json_text(user, "uid"));
    td_json_set_copy(arena, spec, TD_STR("groups"), td_json_member(user, "groups"));
    td_json_set_copy(arena, spec, TD_STR("extra"), td_json_member(user, "extra"));
    td_json_set(arena, spec, td_str_from(ask->wish_member), ask->wish);
    if (!review_send(ask, "authorization.k8s.io", "subjectaccessreviews", review, ask_allowed)) {
        ask_end(ask, 503);
    }
}

/* ---- Outside ---- */

td_str td_bearer_token(td_str header)
{
    td_str word = TD_STR("Bearer ");
    return td_str_starts_with(header, word) ? td_str_slice(header, word.len, header.len)
                                            : TD_STR_EMPTY;
}

static struct td_json *ask_wish(struct td_arena *arena, const struct td_bearer_question *question)
{
    struct td_json *wish = td_json_new_object(arena);
    td_json_set_str(arena, wish, TD_STR("verb"), td_arena_copy_str(arena, question->verb));
    td_json_set_text(arena, wish, TD_STR("path"), td_arena_copy_str(arena, question->path));
    td_json_set_text(arena, wish, TD_STR("group"), td_arena_copy_str(arena, question->group));
    td_json_set_text(arena, wish, TD_STR("resource"), td_arena_copy_str(arena, question->resource));
    td_json_set_text(arena, wish, TD_STR("namespace"),
                     td_arena_copy_str(arena, question->namespace));
    return wish;
}

int td_bearer_ask(struct td_bearers *bearers, const struct td_bearer_question *question,
                  td_bearer_fn fn, void *context, struct td_bearer_ask **ret_ask)
{
    td_auto_arena arena = td_arena_capped(TD_BEARER_BYTES_MAX);
    struct td_json *wish = ask_wish(&arena, question);
    td_str key = td_arena_format(&arena, "%.*s\n%.*s", TD_STR_ARG(question->token),
                                 TD_STR_ARG(td_json_line(&arena, wish)));
    const struct bearer_answer *known = td_map_get(&bearers->answers, key);
    if (question->token.len == 0) {
        return 401;
    }
    if (known && known->until > bearer_now(bearers)) {
        return known->status;
    }
    if (bearers->ask_count >= TD_BEARER_ASKS_MAX || td_arena_check(&arena, NULL) != TD_OK) {
        return 503;
    }
    struct td_bearer_ask *ask = td_alloc_zero(1, sizeof(*ask));
    td_arena_init(&ask->arena, TD_BEARER_BYTES_MAX);
    ask->bearers = bearers;
    ask->fn = fn;
    ask->context = context;
    ask->key = td_text_copy(key);
    ask->wish = ask_wish(&ask->arena, question);
    ask->wish_member = question->path.len > 0 ? "nonResourceAttributes" : "resourceAttributes";
    struct td_json *review = review_new(&ask->arena, "authentication.k8s.io/v1", "TokenReview");
    struct td_json *spec = td_json_ensure_object(&ask->arena, review, TD_STR("spec"));
    td_json_set_str(&ask->arena, spec, TD_STR("token"), question->token);
    if (!review_send(ask, "authentication.k8s.io", "tokenreviews", review, ask_named)) {
        ask_free(ask);
        return 503;
    }
    ask->next = bearers->asks;
    bearers->asks = ask;
    bearers->ask_count++;
    *ret_ask = ask;
    return 0;
}

void td_bearer_leave(struct td_bearer_ask *ask)
{
    ask->fn = NULL;
}

struct td_bearers *td_bearers_new(struct td_loop *loop, struct td_client *client,
                                  struct td_client_flow *flow)
{
    struct td_bearers *bearers = td_alloc_zero(1, sizeof(*bearers));
    bearers->loop = loop;
    bearers->client = client;
    bearers->flow = flow;
    td_map_init(&bearers->answers, TD_BEARER_ANSWERS_MAX);
    return bearers;
}

void td_bearers_free(struct td_bearers *bearers)
{
    if (!bearers) {
        return;
    }
    while (bearers->asks) {
        struct td_bearer_ask *ask = bearers->asks;
        bearers->asks = ask->next;
        td_client_cancel(ask->request);
        ask_free(ask);
    }
    bearer_forget(bearers, true);
    td_map_done(&bearers->answers);
    td_free(bearers);
}
