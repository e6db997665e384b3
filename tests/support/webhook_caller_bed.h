/*
 * The API handler beside a server of webhooks over TLS, on one loop with a real clock. What the
 * server answers is a script by path; every review it gets is kept. A path may hold its answers
 * back until hook_release.
 */
#pragma once

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>
#include <openssl/ssl.h>

#include "base/base64.h"
#include "base/http/http_server.h"
#include "base/limits.h"
#include "base/pki/pki.h"
#include "base/timefmt.h"
#include "support/api_bed.h"

#define HOOK_PATHS_MAX 8
#define HOOK_ASKED_MAX 32
#define HOOK_HELD_MAX 8
#define HOOK_TURNS 5000 /* of a millisecond, before a wait is given up */

/* What one path answers. */
struct hook_script {
    const char *path;
    const char *response; /* members behind the uid: "\"allowed\":true" */
    const char *patch;    /* a JSON patch to send along, or NULL */
    const char *whole;    /* the body instead, or NULL */
    int status;           /* 0: 200 */
    int hold_first;       /* so many requests are held, -1: all */
};

struct hook_bed {
    struct bed bed;
    struct td_http_server *server;
    SSL_CTX *tls;
    struct td_pki_pair ca;
    const struct hook_script *scripts;
    size_t script_count;
    struct td_json *asked[HOOK_ASKED_MAX]; /* reviews, in the bed's arena */
    const char *asked_path[HOOK_ASKED_MAX];
    size_t asked_count;
    int held_so_far;
    struct hook_held {
        struct td_http_exchange *exchange;
        const struct hook_script *script;
        td_str uid;
    } held[HOOK_HELD_MAX];
    size_t held_count;
    struct td_timer *tick;
    const int *wanted; /* stop the loop when it is not 0 */
    size_t wanted_asked;
    int turns_left;
};

static inline void hook_reply(struct hook_bed *hooks, struct td_http_exchange *exchange,
                              const struct hook_script *script, td_str uid)
{
    td_auto_buf body;
    td_buf_init(&body, BED_BODY_BYTES_MAX);
    if (script->whole) {
        (void)td_buf_append(&body, td_str_from(script->whole));
    } else {
        (void)td_buf_append_format(&body,
                                   "{\"kind\":\"AdmissionReview\",\"apiVersion\":"
                                   "\"admission.k8s.io/v1\",\"response\":{\"uid\":\"%.*s\",%s",
                                   TD_STR_ARG(uid), script->response);
        if (script->patch) {
            (void)td_buf_append(&body, TD_STR(",\"patchType\":\"JSONPatch\",\"patch\":\""));
            td_base64_write(td_str_from(script->patch), TD_BASE64_STANDARD, &body);
            (void)td_buf_append(&body, TD_STR("\""));
        }
        (void)td_buf_append(&body, TD_STR("}}"));
    }
    const struct td_http_header type = {TD_STR("Content-Type"), TD_STR("application/json")};
    (void)hooks;
    td_http_reply(exchange, script->status ? script->status : 200, &type, 1, td_buf_str(&body));
}

static inline void hook_gone(struct td_http_exchange *exchange, void *context)
{
    struct hook_bed *hooks = context;
    for (size_t i = 0; i < hooks->held_count; i++) {
        if (hooks->held[i].exchange == exchange) {
            hooks->held[i].exchange = NULL;
        }
    }
}

static inline void hook_request(struct td_http_exchange *exchange,
                                const struct td_http_request *request, void *context)
{
    struct hook_bed *hooks = context;
    td_str path = td_str_slice(request->target, 0, td_str_find(request->target, '?', 0));
    struct td_json *review = NULL;
    (void)td_json_parse(&hooks->bed.arena, request->body,
                        &(struct td_json_options){.copy_strings = true}, &review, NULL);
    assert_non_null(review);
    assert_true(hooks->asked_count < HOOK_ASKED_MAX);
    hooks->asked_path[hooks->asked_count] =
        td_arena_copy_str(&hooks->bed.arena, request->target).ptr;
    hooks->asked[hooks->asked_count++] = review;
    const struct hook_script *script = NULL;
    for (size_t i = 0; i < hooks->script_count; i++) {
        if (td_str_equal(path, td_str_from(hooks->scripts[i].path))) {
            script = &hooks->scripts[i];
        }
    }
    assert_non_null(script);
    const struct td_json *uid = td_json_get_path(review, "request.uid");
    if (script->hold_first < 0 || hooks->held_so_far < script->hold_first) {
        hooks->held_so_far++;
        assert_true(hooks->held_count < HOOK_HELD_MAX);
        hooks->held[hooks->held_count++] = (struct hook_held){exchange, script, uid->text};
        td_http_exchange_set_callbacks(exchange, NULL, hook_gone, hooks);
        return;
    }
    hook_reply(hooks, exchange, script, uid->text);
}

static inline void hook_release(struct hook_bed *hooks)
{
    for (size_t i = 0; i < hooks->held_count; i++) {
        struct hook_held *held = &hooks->held[i];
        if (held->exchange) {
            hook_reply(hooks, held->exchange, held->script, held->uid);
        }
    }
    hooks->held_count = 0;
}

static inline void hook_tick(struct td_timer *timer, void *context)
{
    struct hook_bed *hooks = context;
    bool is_met = (hooks->wanted && *hooks->wanted != 0) ||
                  (hooks->wanted_asked > 0 && hooks->asked_count >= hooks->wanted_asked);
    if (is_met || --hooks->turns_left <= 0) {
        td_loop_stop(hooks->bed.loop);
    } else {
        td_timer_set(timer, TD_MILLISECOND);
    }
}

/* Runs the loop until a number is not 0, or so many reviews came, or for `turns`. */
static inline void hook_wait(struct hook_bed *hooks, const int *wanted, size_t asked, int turns)
{
    hooks->wanted = wanted;
    hooks->wanted_asked = asked;
    hooks->turns_left = turns;
    td_timer_set(hooks->tick, 0);
    assert_int_equal(td_loop_run(hooks->bed.loop, NULL), TD_OK);
    td_timer_stop(hooks->tick);
    assert_true(!wanted || *wanted != 0);
    assert_true(asked == 0 || hooks->asked_count >= asked);
}

/* A request, followed to its end. */
static inline int hook_call(struct hook_bed *hooks, const struct bed_request *request,
                            struct bed_answer *answer)
{
    bed_ask(&hooks->bed, request, answer);
    if (answer->end_count == 0) {
        hook_wait(hooks, &answer->end_count, 0, HOOK_TURNS);
    }
    return answer->status;
}

static inline int hook_send(struct hook_bed *hooks, const char *method, const char *target,
                            const char *body, struct bed_answer *answer)
{
    return hook_call(
        hooks, &(struct bed_request){.method = method, .target = target, .body = td_str_from(body)},
        answer);
}

static inline void hook_make(struct hook_bed *hooks, const char *target, const char *body)
{
    bed_auto_answer answer;
    bed_answer_init(&answer);
    if (hook_send(hooks, "POST", target, body, &answer) != 201) {
        fail_msg("POST %s: %d %s", target, answer.status, td_buf_str(&answer.body).ptr);
    }
}

static inline td_str hook_bundle(struct hook_bed *hooks)
{
    td_auto_buf text;
    td_buf_init(&text, BED_BODY_BYTES_MAX);
    td_base64_write(td_buf_str(&hooks->ca.certificate_pem), TD_BASE64_STANDARD, &text);
    return td_arena_copy_str(&hooks->bed.arena, td_buf_str(&text));
}

/* One webhook for configmaps at a path of our server; `extra` holds members in front: ends in ','.
 */
static inline const char *hook_json(struct hook_bed *hooks, const char *name, const char *path,
                                    const char *extra)
{
    return td_arena_format(
               &hooks->bed.arena,
               "{%s\"name\":\"%s.hooks.dev\",\"clientConfig\":{\"url\":\"https://127.0.0.1:%u%s\","
               "\"caBundle\":\"%.*s\"},\"rules\":[{\"operations\":[\"*\"],\"apiGroups\":[\"*\"],"
               "\"apiVersions\":[\"*\"],\"resources\":[\"configmaps\",\"pods\","
               "\"deployments/scale\"]}],\"sideEffects\":\"None\","
               "\"admissionReviewVersions\":[\"v1\"]}",
               extra, name, (unsigned)td_http_server_port(hooks->server), path,
               TD_STR_ARG(hook_bundle(hooks)))
        .ptr;
}

/* kind: "Mutating" or "Validating". */
static inline void hook_configure(struct hook_bed *hooks, const char *kind, const char *name,
                                  const char *webhooks)
{
    td_str body = td_arena_format(&hooks->bed.arena,
                                  "{\"apiVersion\":\"admissionregistration.k8s.io/v1\",\"kind\":"
                                  "\"%sWebhookConfiguration\",\"metadata\":{\"name\":\"%s\"},"
                                  "\"webhooks\":[%s]}",
                                  kind, name, webhooks);
    bool is_mutating = strcmp(kind, "Mutating") == 0;
    hook_make(hooks,
              is_mutating ? "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
                          : "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
              body.ptr);
}

static inline void hook_init(struct hook_bed *hooks, const struct hook_script *scripts,
                             size_t count)
{
    *hooks = (struct hook_bed){.scripts = scripts, .script_count = count};
    bed_init_on(&hooks->bed, td_clock_real(), NULL);
    hooks->tick = td_timer_new(hooks->bed.loop, hook_tick, hooks);
    struct td_instant now = td_time_to_instant(td_clock_wall(&hooks->bed.clock));
    td_auto_pki_pair own;
    td_pki_pair_init(&own);
    td_pki_pair_init(&hooks->ca);
    static const td_str dns[] = {TD_STR_INIT("localhost"), TD_STR_INIT("hook.default.svc")};
    static const td_str ips[] = {TD_STR_INIT("127.0.0.1")};
    const struct td_pki_names names = {.common_name = TD_STR("hook"),
                                       .dns_names = dns,
                                       .dns_count = 2,
                                       .ip_addresses = ips,
                                       .ip_count = 1};
    assert_int_equal(td_pki_make_ca(TD_STR("hooks"), now, &hooks->ca, NULL), TD_OK);
    assert_int_equal(td_pki_issue_server(td_buf_str(&hooks->ca.certificate_pem),
                                         td_buf_str(&hooks->ca.key_pem), &names, now, &own, NULL),
                     TD_OK);
    const struct td_pki_server server = {.certificate_pem = td_buf_str(&own.certificate_pem),
                                         .key_pem = td_buf_str(&own.key_pem)};
    assert_int_equal(td_pki_server_context(&server, &hooks->tls, NULL), TD_OK);
    const struct td_http_server_options options = {
        .loop = hooks->bed.loop,
        .address = "127.0.0.1:0",
        .tls = hooks->tls,
        .handler = hook_request,
        .context = hooks,
    };
    assert_int_equal(td_http_server_new(&options, &hooks->server, NULL), TD_OK);
    hook_make(hooks, "/api/v1/namespaces", "{\"metadata\":{\"name\":\"default\"}}");
}

static inline void hook_done(struct hook_bed *hooks)
{
    td_api_free(hooks->bed.api);
    td_http_server_free(hooks->server);
    SSL_CTX_free(hooks->tls);
    td_pki_pair_done(&hooks->ca);
    td_timer_free(hooks->tick);
    td_store_free(hooks->bed.store);
    td_loop_free(hooks->bed.loop);
    td_arena_done(&hooks->bed.arena);
}
