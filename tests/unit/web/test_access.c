/*
 * The page of controllers in a cluster: whose token it is and what that user may list is the API
 * server's to say, once in ten seconds; without its word no page is shown.
 */
#include "support/web_bed.h"

struct reviews {
    int tokens;
    int accesses;
    int status; /* of the API server's answers */
    bool is_silent;
    td_str seen; /* the last access review */
    char text[2048];
};

/* "good" is of a user who may list VPAs in all namespaces; "small" only in the namespace shop. */
static void review(void *context, const struct td_call_request *request, struct fake_answer *ret)
{
    struct reviews *reviews = context;
    bool is_token = text_count(request->path, TD_STR("tokenreviews")) > 0;
    bool is_access = text_count(request->path, TD_STR("subjectaccessreviews")) > 0;
    ret->status = is_token || is_access ? reviews->status : 404;
    ret->body = "{}";
    if (is_token) {
        reviews->tokens++;
        ret->is_silent = reviews->is_silent;
        bool is_known = text_count(request->body, TD_STR("\"good\"")) > 0 ||
                        text_count(request->body, TD_STR("\"small\"")) > 0;
        bool is_small = text_count(request->body, TD_STR("\"small\"")) > 0;
        ret->body = !is_known ? "{\"status\":{\"authenticated\":false}}"
                    : is_small
                        ? "{\"status\":{\"authenticated\":true,\"user\":{\"username\":\"jo\"}}}"
                        : "{\"status\":{\"authenticated\":true,\"user\":{\"username\":\"ann\","
                          "\"uid\":\"u1\",\"groups\":[\"dev\"],\"extra\":{\"a/b\":[\"c\"]}}}}";
    }
    if (is_access) {
        reviews->accesses++;
        size_t len =
            request->body.len < sizeof(reviews->text) ? request->body.len : sizeof(reviews->text);
        memcpy(reviews->text, request->body.ptr, len);
        reviews->seen = (td_str){.ptr = reviews->text, .len = len};
        bool may = text_count(request->body, TD_STR("\"ann\"")) > 0 ||
                   text_count(request->body, TD_STR("\"namespace\":\"shop\"")) > 0;
        ret->body = may ? "{\"status\":{\"allowed\":true}}" : "{\"status\":{\"allowed\":false}}";
    }
}

static void begin(struct web_bed *bed, struct reviews *reviews)
{
    *reviews = (struct reviews){.status = 201};
    *bed = (struct web_bed){.answers = review, .context = reviews};
    web_bed_begin(bed, NULL, NULL);
    web_bed_serve(bed, (struct td_web_options){.asks_server = true});
}

static struct web_answer ask_as(struct web_bed *bed, const char *token, const char *path)
{
    const char *header = td_arena_format(&bed->arena, "Authorization: Bearer %s\r\n", token).ptr;
    return web_bed_ask(bed, td_arena_format(&bed->arena, "GET %s", path).ptr, header, "");
}

/* Files need no login; everything else does, and says how. */
static void test_access_needs_a_token(void **state)
{
    (void)state;
    struct reviews reviews;
    struct web_bed bed;
    begin(&bed, &reviews);
    struct web_answer answer = web_bed_get(&bed, "/");
    assert_int_equal(answer.status, 200);
    answer = web_bed_get(&bed, "/api/info");
    web_answer_expect(&answer, 401, "bearer token");
    assert_true(text_count(answer.head, TD_STR("WWW-Authenticate: Bearer")) == 1);
    answer = ask_as(&bed, "wrong", "/api/info");
    web_answer_expect(&answer, 401, "bearer token");
    assert_int_equal(reviews.tokens, 1);
    assert_int_equal(reviews.accesses, 0);
    web_bed_done(&bed);
}

/* The user that the server names is asked about with uid, groups and extra; the answer holds for
 * ten seconds, also a refusal. */
static void test_access_asks_the_server_once(void **state)
{
    (void)state;
    struct reviews reviews;
    struct web_bed bed;
    begin(&bed, &reviews);
    for (int i = 0; i < 3; i++) {
        struct web_answer answer = ask_as(&bed, "good", "/api/info");
        web_answer_expect(&answer, 200, "\"title\":\"test\"");
        answer = ask_as(&bed, "small", "/api/info");
        web_answer_expect(&answer, 403, "choose one namespace");
    }
    assert_int_equal(reviews.tokens, 2);
    assert_int_equal(reviews.accesses, 2);
    struct web_answer answer = ask_as(&bed, "good", "/api/info?in=other");
    assert_int_equal(answer.status, 200);
    static const char *const parts[] = {
        "\"user\":\"ann\"",       "\"uid\":\"u1\"",
        "\"groups\":[\"dev\"]",   "\"extra\":{\"a/b\":[\"c\"]}",
        "\"verb\":\"list\"",      "\"resource\":\"verticalpodautoscalers\"",
        "\"namespace\":\"other\""};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (text_count(reviews.seen, td_str_from(parts[i])) != 1) {
            fail_msg("no %s in %.*s", parts[i], TD_STR_ARG(reviews.seen));
        }
    }
    web_bed_done(&bed);
}

/* Who may list in one namespace sees that one and no sums of others. */
static void test_access_is_for_a_namespace(void **state)
{
    (void)state;
    struct reviews reviews;
    struct web_bed bed;
    begin(&bed, &reviews);
    struct web_answer answer = ask_as(&bed, "small", "/api/cluster?in=shop");
    web_answer_expect(&answer, 200, "\"problems\"");
    assert_false(web_answer_has(&answer, "\"totals\""));
    answer = ask_as(&bed, "good", "/api/cluster");
    web_answer_expect(&answer, 200, "\"totals\"");
    answer = ask_as(&bed, "small", "/api/explain?in=shop&ns=other&kind=vpa&name=x");
    web_answer_expect(&answer, 404, "no such namespace");
    answer = ask_as(&bed, "small", "/api/workload?in=shop&ns=other&kind=Deployment&name=x");
    web_answer_expect(&answer, 404, "no such workload");
    web_bed_done(&bed);
}

/* A server that fails lets no user in, and is asked again. */
static void test_access_fails_closed(void **state)
{
    (void)state;
    struct reviews reviews;
    struct web_bed bed;
    begin(&bed, &reviews);
    reviews.status = 403;
    struct web_answer answer = ask_as(&bed, "good", "/api/info");
    web_answer_expect(&answer, 503, "does not say");
    reviews.status = 201;
    answer = ask_as(&bed, "good", "/api/info");
    assert_int_equal(answer.status, 200);
    web_bed_done(&bed);
}

static bool has_asked(void *arg)
{
    return ((struct reviews *)arg)->tokens > 0;
}

/* A caller that goes away while the server thinks, and a page that ends meanwhile. */
static void test_access_survives_callers_that_leave(void **state)
{
    (void)state;
    struct reviews reviews;
    struct web_bed bed;
    begin(&bed, &reviews);
    reviews.is_silent = true;
    struct client client;
    web_bed_send(&bed, &client,
                 web_bed_request(&bed, "GET /api/info", "Authorization: Bearer good\r\n", ""));
    assert_true(web_bed_until(&bed, has_asked, &reviews));
    web_bed_close(&client);
    web_bed_run(&bed, 20);
    web_bed_done(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_access_needs_a_token),
        cmocka_unit_test(test_access_asks_the_server_once),
        cmocka_unit_test(test_access_is_for_a_namespace),
        cmocka_unit_test(test_access_fails_closed),
        cmocka_unit_test(test_access_survives_callers_that_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
