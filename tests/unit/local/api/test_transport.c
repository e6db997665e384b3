/*
 * The transport into the handler of the same process keeps the promises of kube/client/transport.h:
 * nothing from inside start, head before body before one end, nothing after a cancel.
 */
#include "support/api_script.h"

#include "local/api/transport.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct seen {
    struct td_transport *transport;
    struct td_call *call;
    int heads, bodies, ends, code, status;
    char content_type[64];
    char warning[256];
    struct td_buf body;
    bool cancels_in_head;
    bool cancels_in_body;
};

static void seen_cancel(struct seen *seen)
{
    struct td_call *call = seen->call;
    seen->call = NULL;
    seen->transport->ops->cancel(call);
}

static void seen_head(void *context, const struct td_call_head *head)
{
    struct seen *seen = context;
    assert_int_equal(seen->heads++, 0);
    seen->status = head->status;
    (void)snprintf(seen->content_type, sizeof(seen->content_type), "%.*s",
                   TD_STR_ARG(head->content_type));
    (void)snprintf(seen->warning, sizeof(seen->warning), "%.*s", TD_STR_ARG(head->warning));
    if (seen->cancels_in_head) {
        seen_cancel(seen);
    }
}

static void seen_body(void *context, td_str bytes)
{
    struct seen *seen = context;
    assert_int_equal(seen->heads, 1);
    assert_int_equal(seen->ends, 0);
    seen->bodies++;
    (void)td_buf_append(&seen->body, bytes);
    if (seen->cancels_in_body) {
        seen_cancel(seen);
    }
}

static void seen_end(void *context, int code, const struct td_error *err)
{
    struct seen *seen = context;
    assert_true((code == TD_OK) == (err == NULL));
    assert_int_equal(seen->ends++, 0);
    seen->code = code;
    seen->call = NULL;
}

static struct td_transport *transport_of(struct bed *bed)
{
    return td_transport_local_new(&(struct td_transport_local_options){
        .api = bed->api,
        .loop = bed->loop,
        .user = TD_STR("me"),
        .group = TD_STR("system:masters"),
        .user_agent = TD_STR("test/1"),
    });
}

/* The texts of a request may go as soon as it has begun. */
static void begin(struct seen *seen, struct td_transport *transport, const char *method,
                  const char *path, const char *body)
{
    static const struct td_call_events events = {
        .head = seen_head, .body = seen_body, .end = seen_end};
    char method_copy[16];
    char path_copy[256];
    char body_copy[1024];
    (void)snprintf(method_copy, sizeof(method_copy), "%s", method);
    (void)snprintf(path_copy, sizeof(path_copy), "%s", path);
    (void)snprintf(body_copy, sizeof(body_copy), "%s", body ? body : "");
    const struct td_call_request request = {
        .method = td_str_from(method_copy),
        .path = td_str_from(path_copy),
        .accept = TD_STR_EMPTY,
        .content_type = TD_STR("application/json"),
        .body = td_str_from(body_copy),
    };
    *seen = (struct seen){.transport = transport, .code = 1};
    td_buf_init(&seen->body, BED_BODY_BYTES_MAX);
    seen->call = transport->ops->start(transport, &request, &events, seen);
    assert_non_null(seen->call);
    assert_int_equal(seen->heads + seen->bodies + seen->ends, 0);
    memset(path_copy, 'x', sizeof(path_copy));
    memset(body_copy, 'x', sizeof(body_copy));
}

/* Answers arrive whole, whatever their status. */
static void test_answers(void **state)
{
    struct bed *bed = *state;
    struct td_transport *transport = transport_of(bed);
    static const struct {
        const char *method;
        const char *path;
        const char *body;
        int status;
        const char *content_type;
        const char *part; /* of the body */
        const char *warning;
    } rows[] = {
        {"POST", MAPS, "{\"metadata\":{\"name\":\"a\"},\"data\":{\"k\":\"v\"}}", 201,
         "application/json", "\"name\":\"a\"", ""},
        {"POST", MAPS "?dryRun=All", "{\"metadata\":{\"name\":\"b\"},\"x\":1}", 201,
         "application/json", "\"name\":\"b\"", "299 - \"unknown field \\\"x\\\"\""},
        {"GET", MAPS "/a", NULL, 200, "application/json", "\"manager\":\"test\"", ""},
        {"GET", MAPS, NULL, 200, "application/json", "ConfigMapList", ""},
        {"GET", MAPS "/none", NULL, 404, "application/json", "NotFound", ""},
        {"GET", "/nope", NULL, 404, "text/plain", "404 page not found", ""},
        {"POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", "{}", 201, "application/json",
         "\"username\":\"me\",\"groups\":[\"system:masters\",\"system:authenticated\"]", ""},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct seen seen;
        begin(&seen, transport, rows[i].method, rows[i].path, rows[i].body);
        bed_run(bed, TD_MILLISECOND);
        assert_int_equal(seen.status, rows[i].status);
        assert_int_equal(seen.heads, 1);
        assert_int_equal(seen.ends, 1);
        assert_int_equal(seen.code, TD_OK);
        assert_string_equal(seen.content_type, rows[i].content_type);
        assert_string_equal(seen.warning, rows[i].warning);
        (void)td_buf_append_char(&seen.body, '\0');
        assert_non_null(strstr(td_buf_str(&seen.body).ptr, rows[i].part));
        td_buf_done(&seen.body);
    }
    transport->ops->free(transport);
}

enum cancel_when { CANCEL_AT_ONCE, CANCEL_IN_HEAD, CANCEL_IN_BODY, CANCEL_LATER };

/* After a cancel nothing comes, wherever it is called from. */
static void test_cancel(void **state)
{
    struct bed *bed = *state;
    struct td_transport *transport = transport_of(bed);
    static const struct {
        const char *path;
        enum cancel_when when;
    } rows[] = {
        {MAPS, CANCEL_AT_ONCE},
        {MAPS, CANCEL_IN_HEAD},
        {MAPS, CANCEL_IN_BODY},
        {MAPS "?watch=1", CANCEL_AT_ONCE},
        {MAPS "?watch=1", CANCEL_IN_HEAD},
        {MAPS "?watch=1", CANCEL_IN_BODY},
        {MAPS "?watch=1", CANCEL_LATER},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct seen seen;
        begin(&seen, transport, "GET", rows[i].path, NULL);
        seen.cancels_in_head = rows[i].when == CANCEL_IN_HEAD;
        seen.cancels_in_body = rows[i].when == CANCEL_IN_BODY;
        if (rows[i].when == CANCEL_AT_ONCE) {
            seen_cancel(&seen);
        }
        bed_run(bed, TD_MILLISECOND);
        bed_auto_answer answer;
        bed_answer_init(&answer);
        char body[64];
        (void)snprintf(body, sizeof(body), "{\"metadata\":{\"name\":\"m%zu\"}}", i);
        assert_int_equal(bed_call(bed, "POST", MAPS, body, &answer), 201);
        bed_run(bed, TD_MILLISECOND);
        if (rows[i].when == CANCEL_LATER) {
            assert_true(seen.bodies > 0);
            seen_cancel(&seen);
        }
        int bodies = seen.bodies;
        bed_run(bed, TD_SECOND);
        assert_null(seen.call);
        assert_int_equal(seen.ends, 0);
        assert_int_equal(seen.bodies, bodies);
        assert_int_equal(seen.heads, rows[i].when != CANCEL_AT_ONCE);
        assert_true(rows[i].when != CANCEL_IN_BODY || seen.bodies == 1);
        td_buf_done(&seen.body);
    }
    transport->ops->free(transport);
}

/* A watch goes on until its time is over, then it ends once. */
static void test_watch_ends_by_itself(void **state)
{
    struct bed *bed = *state;
    struct td_transport *transport = transport_of(bed);
    struct seen seen;
    begin(&seen, transport, "GET", MAPS "?watch=1&timeoutSeconds=5", NULL);
    bed_run(bed, TD_SECOND);
    assert_int_equal(seen.heads, 1);
    assert_int_equal(seen.ends, 0);
    bed_run(bed, 5 * TD_SECOND);
    assert_int_equal(seen.ends, 1);
    assert_int_equal(seen.code, TD_OK);
    td_buf_done(&seen.body);
    transport->ops->free(transport);
}

/* The handler goes first: what is open ends. */
static void test_handler_goes(void **state)
{
    struct bed *bed = *state;
    struct td_transport *transport = transport_of(bed);
    struct seen seen;
    begin(&seen, transport, "GET", MAPS "?watch=1", NULL);
    bed_run(bed, TD_MILLISECOND);
    td_api_free(bed->api);
    bed->api = NULL;
    assert_int_equal(seen.ends, 1);
    td_buf_done(&seen.body);
    transport->ops->free(transport);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_answers, script_setup, script_teardown),
        cmocka_unit_test_setup_teardown(test_cancel, script_setup, script_teardown),
        cmocka_unit_test_setup_teardown(test_watch_ends_by_itself, script_setup, script_teardown),
        cmocka_unit_test_setup_teardown(test_handler_goes, script_setup, script_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
