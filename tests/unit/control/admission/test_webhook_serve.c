/*
 * The webhook over real sockets and real time: an API server asks it by TLS, strangers get the
 * answers that upstream gives, and while certificate and authority are renewed no request fails.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/pki/pki.h"
#include "base/timefmt.h"
#include "kube/client/transport_http.h"
#include "kube/kubeconfig/kubeconfig.h"
#include "support/webhook_bed.h"

#define SECRETS "/api/v1/namespaces/kube-system/secrets"
#define SECRET SECRETS "/tandem-webhook-tls"
#define DAY (24 * TD_HOUR)
#define WAIT_TURNS 2000

/* ---- A bed on the machine's clock ---- */

static void serve_bed_init(struct webhook_bed *h)
{
    *h = (struct webhook_bed){.faults = {.are_webhooks_down = false}};
    const struct td_cluster_options cluster = {.seed = 1, .faults = &h->faults};
    control_bed_init_on(&h->c, td_clock_real(), &cluster);
}

static struct td_webhook_options serve_options(const struct td_clock *clock)
{
    struct td_webhook_options options = webhook_bed_options();
    options.listen = "127.0.0.1:0";
    options.certificate_clock = clock;
    options.probe_interval = 100 * TD_MILLISECOND;
    return options;
}

static void serve_bed_wait_for_probe(struct webhook_bed *h)
{
    for (int i = 0; i < WAIT_TURNS && td_webhook_problem(h->side.webhook).len > 0; i++) {
        control_bed_run(&h->c, 5 * TD_MILLISECOND);
    }
    if (td_webhook_problem(h->side.webhook).len > 0) {
        fail_msg("%s", td_webhook_problem(h->side.webhook).ptr);
    }
}

/* ---- A client of our own, with a connection of its own ---- */

struct ask {
    int status;
    int code;
    int ends;
    char error[256];
    struct td_buf body;
};

static void ask_head(void *context, const struct td_call_head *head)
{
    ((struct ask *)context)->status = head->status;
}

static void ask_body(void *context, td_str bytes)
{
    (void)td_buf_append(&((struct ask *)context)->body, bytes);
}

static void ask_end(void *context, int code, const struct td_error *err)
{
    struct ask *ask = context;
    ask->code = code;
    ask->ends = 1;
    if (err) {
        (void)snprintf(ask->error, sizeof(ask->error), "%.200s", err->message);
    }
}

/* Asks by a new connection that trusts `bundle`. */
static void ask_send(struct webhook_bed *h, td_str bundle, const char *content_type, td_str body,
                     struct ask *ask)
{
    static const struct td_call_events events = {
        .head = ask_head, .body = ask_body, .end = ask_end};
    td_str url = td_webhook_url(h->side.webhook);
    size_t colon = td_str_find(url, ':', sizeof("https:"));
    int64_t port;
    assert_true(td_str_to_int64(td_str_slice(url, colon + 1, url.len - 1), &port));
    const struct td_kube_config config = {
        .source = TD_STR("test"),
        .is_tls = true,
        .host = TD_STR("127.0.0.1"),
        .port = (uint16_t)port,
        .server = td_str_slice(url, 0, url.len - 1),
        .ca_pem = bundle,
        .is_compression_disabled = true,
    };
    const struct td_transport_http_options options = {.loop = h->c.bed.loop, .config = &config};
    struct td_transport *transport;
    struct td_error err = TD_ERROR_INIT;
    if (td_transport_http_new(&options, &transport, &err) != TD_OK) {
        fail_msg("%s", err.message);
    }
    const struct td_call_request request = {
        .method = TD_STR("POST"),
        .path = TD_STR("/any/path?timeout=10s"),
        .content_type = td_str_from(content_type),
        .body = body,
        .deadline = 10 * TD_SECOND,
    };
    *ask = (struct ask){.status = 0};
    td_buf_init(&ask->body, (size_t)1 << 20);
    (void)transport->ops->start(transport, &request, &events, ask);
    for (int i = 0; i < WAIT_TURNS && !ask->ends; i++) {
        control_bed_run(&h->c, 2 * TD_MILLISECOND);
    }
    assert_int_equal(ask->ends, 1);
    transport->ops->free(transport);
}

/* The bundle that API servers were told to trust. */
static td_str registered_bundle(struct webhook_bed *h)
{
    const struct td_json *webhooks =
        td_json_get(control_bed_get(&h->c, WEBHOOK_MUTATING_CONFIG), TD_STR("webhooks"));
    const struct td_json *client = td_json_get(td_json_at(webhooks, 0), TD_STR("clientConfig"));
    td_str bundle = TD_STR_EMPTY;
    assert_true(td_base64_read(&h->c.bed.arena,
                               td_json_get_str(client, TD_STR("caBundle"), TD_STR_EMPTY),
                               TD_BASE64_STANDARD, &bundle));
    return bundle;
}

static td_str secret_part(struct webhook_bed *h, const char *key)
{
    const struct td_json *data = td_json_get(control_bed_get(&h->c, SECRET), TD_STR("data"));
    td_str part = TD_STR_EMPTY;
    assert_true(td_base64_read(&h->c.bed.arena,
                               td_json_get_str(data, td_str_from(key), TD_STR_EMPTY),
                               TD_BASE64_STANDARD, &part));
    return part;
}

#define PROBE_REVIEW                                                                               \
    "{\"request\":{\"uid\":\"u\",\"dryRun\":true,\"resource\":{\"group\":\"\",\"version\":\"v1\"," \
    "\"resource\":\"pods\"},\"operation\":\"CREATE\",\"namespace\":\"default\",\"object\":{"       \
    "\"metadata\":{\"annotations\":{\"tandem.dev/webhook-probe\":\"asked\"}}}}}"

/* One request that must not fail. */
static void ask_once(struct webhook_bed *h)
{
    struct ask ask;
    ask_send(h, registered_bundle(h), "application/json", TD_STR(PROBE_REVIEW), &ask);
    if (ask.code != TD_OK || ask.status != 200) {
        fail_msg("%d %s", ask.status, ask.error);
    }
    assert_non_null(strstr(td_buf_str(&ask.body).ptr, "\"allowed\":true,\"patch\":"));
    td_buf_done(&ask.body);
    assert_int_equal(td_webhook_problem(h->side.webhook).len, 0);
}

/* ---- Tests ---- */

static void test_pods_are_mutated_over_tls(void **state)
{
    (void)state;
    struct webhook_bed h;
    serve_bed_init(&h);
    webhook_side_init(&h.side, h.c.bed.loop, h.c.client, serve_options(NULL));
    serve_bed_wait_for_probe(&h);
    control_bed_create(&h.c, WEBHOOK_VPAS,
                       "{'apiVersion':'autoscaling.k8s.io/v1','kind':'VerticalPodAutoscaler',"
                       "'metadata':{'name':'web'},'spec':{'targetRef':{'apiVersion':'apps/v1',"
                       "'kind':'Deployment','name':'web'},'updatePolicy':{'updateMode':'Initial'}}"
                       "}");
    control_bed_run(&h.c, 50 * TD_MILLISECOND);
    assert_int_equal(
        control_bed_patch(&h.c, WEBHOOK_VPAS "/web/status",
                          "{'status':{'recommendation':{'containerRecommendations':[{"
                          "'containerName':'app','target':{'cpu':'250m','memory':'300Mi'}}]}}}"),
        200);
    webhook_bed_deploy(&h, "web", "", "'containers':[{'name':'app','image':'nginx'}]");
    for (int i = 0; i < WAIT_TURNS && !webhook_bed_pod(&h, "web"); i++) {
        control_bed_run(&h.c, 5 * TD_MILLISECOND);
    }
    assert_string_equal(webhook_bed_resource(&h, webhook_bed_pod(&h, "web"), "requests.cpu"),
                        "250m");
    assert_true(webhook_side_counts(
        &h.side,
        "vpa_admission_controller_execution_latency_seconds_count{step=\"write_response\"} "));
    td_webhook_stop(h.side.webhook, webhook_side_stopped, &h.side.is_stopped);
    for (int i = 0; i < WAIT_TURNS && !h.side.is_stopped; i++) {
        control_bed_run(&h.c, 2 * TD_MILLISECOND);
    }
    assert_null(control_bed_get(&h.c, WEBHOOK_MUTATING_CONFIG));
    webhook_bed_done(&h);
}

static void test_strangers_get_short_answers(void **state)
{
    (void)state;
    struct webhook_bed h;
    serve_bed_init(&h);
    webhook_side_init(&h.side, h.c.bed.loop, h.c.client, serve_options(NULL));
    serve_bed_wait_for_probe(&h);
    char *large = test_malloc(TD_WEBHOOK_BODY_BYTES_MAX + 1);
    memset(large, ' ', TD_WEBHOOK_BODY_BYTES_MAX + 1);
    char *wide = test_malloc(200001); /* 100,001 values */
    memset(wide, '[', 200001);
    for (size_t i = 1; i < 200000; i += 2) {
        wide[i] = '0';
        wide[i + 1] = ',';
    }
    wide[200000] = ']';
    const struct {
        const char *type;
        td_str body;
        int status;
        const char *answer; /* a part of it; NULL: it is empty */
    } rows[] = {
        {"application/json", {wide, 200001}, 413, "too many JSON values"},
        {"application/json", TD_STR("{}"), 200, "\"allowed\":true"},
        {"application/json; charset=utf-8", TD_STR("{}"), 200, "\"allowed\":true"},
        {"text/plain", TD_STR("{}"), 200, NULL},
        {"application/json", {large, TD_WEBHOOK_BODY_BYTES_MAX}, 200, "\"allowed\":true"},
        {"application/json",
         {large, TD_WEBHOOK_BODY_BYTES_MAX + 1},
         413,
         "request payload too large"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct ask ask;
        ask_send(&h, registered_bundle(&h), rows[i].type, rows[i].body, &ask);
        assert_int_equal(ask.status, rows[i].status);
        assert_true(rows[i].answer ? strstr(td_buf_str(&ask.body).ptr, rows[i].answer) != NULL
                                   : ask.body.len == 0);
        td_buf_done(&ask.body);
    }
    test_free(large);
    test_free(wide);
    webhook_bed_done(&h);
}

/* How many reviews were read so far. */
static double reads(struct webhook_bed *h)
{
    static const char key[] =
        "vpa_admission_controller_execution_latency_seconds_count{step=\"read_request\"} ";
    td_auto_buf text = td_buf_capped((size_t)1 << 20);
    td_metric_registry_write(h->side.registry, &text);
    const char *at = strstr(td_buf_str(&text).ptr, key);
    return at ? strtod(at + strlen(key), NULL) : 0;
}

/* A pod whose owner is a moment younger than what is known waits for it, but not for ever. */
static void test_a_pod_waits_for_its_owner(void **state)
{
    (void)state;
    static const char body[] =
        "{\"request\":{\"uid\":\"u\",\"resource\":{\"group\":\"\",\"version\":\"v1\",\"resource\":"
        "\"pods\"},\"operation\":\"CREATE\",\"namespace\":\"default\",\"object\":{\"metadata\":{"
        "\"labels\":{\"app\":\"late\"},\"ownerReferences\":[{\"controller\":true,\"apiVersion\":"
        "\"apps/v1\",\"kind\":\"StatefulSet\",\"name\":\"late\"}]},\"spec\":{\"containers\":[{"
        "\"name\":\"app\"}]}}}}";
    struct webhook_bed h;
    serve_bed_init(&h);
    struct td_webhook_options options = serve_options(NULL);
    options.deadline = 300 * TD_MILLISECOND;
    webhook_side_init(&h.side, h.c.bed.loop, h.c.client, options);
    serve_bed_wait_for_probe(&h);
    control_bed_create(&h.c, WEBHOOK_VPAS,
                       "{'apiVersion':'autoscaling.k8s.io/v1','kind':'VerticalPodAutoscaler',"
                       "'metadata':{'name':'late'},'spec':{'targetRef':{'apiVersion':'apps/v1',"
                       "'kind':'StatefulSet','name':'late'},'updatePolicy':{'updateMode':'Initial'}"
                       "}}");
    control_bed_run(&h.c, 50 * TD_MILLISECOND);
    double before = reads(&h);
    struct ask ask;
    ask_send(&h, registered_bundle(&h), "application/json", td_str_from(body), &ask);
    assert_non_null(strstr(td_buf_str(&ask.body).ptr, "\"allowed\":true}"));
    td_buf_done(&ask.body);
    assert_true(reads(&h) - before <= 7); /* when it came, at its end, and some probes */
    assert_true(webhook_side_counts(
        &h.side, "tandem_admission_undecided_total{reason=\"owner-unknown\"} 1\n"));
    webhook_bed_done(&h);
}

#define VPA_OF(name, target)                                                                       \
    "{'apiVersion':'autoscaling.k8s.io/"                                                           \
    "v1','kind':'VerticalPodAutoscaler','metadata':{'name':'" name                                 \
    "'},'spec':{'targetRef':{'apiVersion':'apps/v1','kind':'Deployment','name':'" target "'}}}"
#define HVPA_OF(name, target)                                                                      \
    "{'apiVersion':'autoscaling.k8s.io/v1alpha1','kind':'Hvpa','metadata':{'name':'" name          \
    "'},'spec':{'vpaSpec':{'spec':{'targetRef':{'apiVersion':'apps/v1','kind':'Deployment','name'" \
    ":'" target "'}}}}}"
#define SERVE_HVPAS "/apis/autoscaling.k8s.io/v1alpha1/namespaces/default/hvpas"

/* Several POSTs at once, as of one `kubectl apply` by many: their statuses, sorted. */
static void post_at_once(struct webhook_bed *h, const char *target, const char *const *texts,
                         size_t count, int *statuses)
{
    struct bed_answer answers[4];
    assert_true(count <= 4);
    for (size_t i = 0; i < count; i++) {
        td_auto_buf body;
        td_buf_init(&body, (size_t)1 << 20);
        td_json_write(edit_bed_parse(&h->c.bed, texts[i]), &(struct td_json_format){.indent = 0},
                      &body);
        bed_answer_init(&answers[i]);
        (void)bed_call(&h->c.bed, "POST", target,
                       td_arena_copy_str(&h->c.bed.arena, td_buf_str(&body)).ptr, &answers[i]);
    }
    for (size_t i = 0; i < count; i++) {
        for (int turn = 0; turn < WAIT_TURNS && answers[i].head_count == 0; turn++) {
            control_bed_run(&h->c, 2 * TD_MILLISECOND);
        }
        int status = answers[i].status;
        size_t at = i;
        for (; at > 0 && statuses[at - 1] > status; at--) {
            statuses[at] = statuses[at - 1];
        }
        statuses[at] = status;
        bed_answer_done(&answers[i]);
    }
}

/* Siblings are judged by what is stored, not by what the informer has seen: here it sees nothing.
 */
static void test_siblings_are_listed(void **state)
{
    (void)state;
    static const char *const vpas[] = {VPA_OF("a", "web"), VPA_OF("b", "web"), VPA_OF("c", "api"),
                                       VPA_OF("d", "api")};
    static const char *const hvpas[] = {HVPA_OF("a", "web"), HVPA_OF("b", "web")};
    static const char *const second = VPA_OF("second", "db");
    int statuses[4] = {0};
    struct webhook_bed h;
    serve_bed_init(&h);
    h.side.is_blind = true;
    webhook_side_init(&h.side, h.c.bed.loop, h.c.client, serve_options(NULL));
    serve_bed_wait_for_probe(&h);
    control_bed_create(&h.c, WEBHOOK_VPAS, VPA_OF("first", "db"));
    post_at_once(&h, WEBHOOK_VPAS, &second, 1, statuses);
    assert_int_equal(statuses[0], 422);
    /* Of each pair that comes at once one is stored. */
    post_at_once(&h, WEBHOOK_VPAS, vpas, 4, statuses);
    assert_int_equal(statuses[0], 201);
    assert_int_equal(statuses[1], 201);
    assert_int_equal(statuses[2], 422);
    assert_int_equal(statuses[3], 422);
    post_at_once(&h, SERVE_HVPAS, hvpas, 2, statuses);
    assert_int_equal(statuses[0], 201);
    assert_int_equal(statuses[1], 422);
    assert_true(
        webhook_side_counts(&h.side, "tandem_admission_siblings_total{source=\"list\"} 8\n"));
    assert_false(
        webhook_side_counts(&h.side, "tandem_admission_siblings_total{source=\"informer\"}"));
    webhook_bed_done(&h);
}

/* Where the list fails the informer counts, and what this process has just admitted. */
static void test_siblings_without_a_list(void **state)
{
    (void)state;
    static const char review[] =
        "{\"request\":{\"uid\":\"u\",\"resource\":{\"group\":\"autoscaling.k8s.io\",\"version\":"
        "\"v1\",\"resource\":\"verticalpodautoscalers\"},\"operation\":\"CREATE\",\"dryRun\":%s,"
        "\"namespace\":\"default\",\"name\":\"%s\",\"object\":{\"metadata\":{\"name\":\"%s\"},"
        "\"spec\":{\"targetRef\":{\"kind\":\"Deployment\",\"name\":\"web\"}}}}}";
    static const struct {
        const char *name;
        const char *dry_run;
        const char *answer;
    } rows[] = {
        {"dry", "true", "\"allowed\":true"},
        {"a", "false", "\"allowed\":true"},
        {"b", "false", "selector overlaps with default/a"},
        {"a", "false", "\"allowed\":true"}, /* itself */
    };
    struct webhook_bed h;
    serve_bed_init(&h);
    struct td_webhook_options options = serve_options(NULL);
    options.probe_interval = 0;
    webhook_side_init(&h.side, h.c.bed.loop, h.c.client, options);
    for (int i = 0; i < WAIT_TURNS && !control_bed_get(&h.c, WEBHOOK_MUTATING_CONFIG); i++) {
        control_bed_run(&h.c, 5 * TD_MILLISECOND);
    }
    td_str bundle = registered_bundle(&h);
    h.faults.api_error_share = 1;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char body[1024];
        struct ask ask;
        (void)snprintf(body, sizeof(body), review, rows[i].dry_run, rows[i].name, rows[i].name);
        ask_send(&h, bundle, "application/json", td_str_from(body), &ask);
        if (!strstr(td_buf_str(&ask.body).ptr, rows[i].answer)) {
            fail_msg("%s: %s", rows[i].name, td_buf_str(&ask.body).ptr);
        }
        td_buf_done(&ask.body);
    }
    assert_true(
        webhook_side_counts(&h.side, "tandem_admission_siblings_total{source=\"informer\"} 4\n"));
    h.faults.api_error_share = 0;
    webhook_bed_done(&h);
}

static td_str base64_of(struct webhook_bed *h, td_str bytes)
{
    td_auto_buf text;
    td_buf_init(&text, (size_t)1 << 20);
    td_base64_write(bytes, TD_BASE64_STANDARD, &text);
    return td_arena_copy_str(&h->c.bed.arena, td_buf_str(&text));
}

/* An authority that is nearly due, and a certificate of it. */
static void make_old_secret(struct webhook_bed *h, td_time now)
{
    td_auto_pki_pair ca;
    td_auto_pki_pair own;
    td_pki_pair_init(&ca);
    td_pki_pair_init(&own);
    static const td_str dns[] = {TD_STR_INIT("vpa-webhook.kube-system.svc"),
                                 TD_STR_INIT("localhost")};
    static const td_str ips[] = {TD_STR_INIT("127.0.0.1"), TD_STR_INIT("::1")};
    const struct td_pki_names names = {.common_name = dns[0],
                                       .dns_names = dns,
                                       .dns_count = 2,
                                       .ip_addresses = ips,
                                       .ip_count = 2};
    assert_int_equal(td_pki_make_ca(TD_STR("old"), td_time_to_instant(now - 2433 * DAY), &ca, NULL),
                     TD_OK);
    assert_int_equal(td_pki_issue_server(td_buf_str(&ca.certificate_pem), td_buf_str(&ca.key_pem),
                                         &names, td_time_to_instant(now), &own, NULL),
                     TD_OK);
    td_auto_buf text;
    td_buf_init(&text, (size_t)1 << 20);
    (void)td_buf_append_format(
        &text,
        "{'metadata':{'name':'tandem-webhook-tls','annotations':{'tandem.dev/names':"
        "'vpa-webhook.kube-system.svc,localhost,127.0.0.1,::1'}},'data':{'caCert.pem':'%s',"
        "'caKey.pem':'%s','serverCert.pem':'%s','serverKey.pem':'%s'}}",
        base64_of(h, td_buf_str(&ca.certificate_pem)).ptr,
        base64_of(h, td_buf_str(&ca.key_pem)).ptr,
        base64_of(h, td_buf_str(&own.certificate_pem)).ptr,
        base64_of(h, td_buf_str(&own.key_pem)).ptr);
    control_bed_create(&h->c, SECRETS, td_buf_str(&text).ptr);
}

/* Moves the certificates' time and has them looked at, asking all the while; until the part of the
 * Secret is another one. */
static void renew(struct webhook_bed *h, struct td_clock *clock, td_duration span, const char *part)
{
    static int touched = 0;
    char patch[64];
    td_str before = secret_part(h, part);
    td_clock_advance(clock, span);
    (void)snprintf(patch, sizeof(patch), "{'metadata':{'labels':{'touched':'%d'}}}", ++touched);
    ask_once(h);
    assert_int_equal(control_bed_patch(&h->c, SECRET, patch), 200);
    for (int i = 0; i < 50 && td_str_equal(secret_part(h, part), before); i++) {
        ask_once(h);
    }
    assert_false(td_str_equal(secret_part(h, part), before));
    for (int i = 0; i < 5; i++) {
        ask_once(h);
    }
}

static void test_renewal_fails_no_request(void **state)
{
    (void)state;
    struct webhook_bed h;
    serve_bed_init(&h);
    struct td_clock clock = td_clock_virtual(td_clock_wall(&h.c.bed.clock) - 2 * DAY);
    make_old_secret(&h, td_clock_wall(&clock));
    webhook_side_init(&h.side, h.c.bed.loop, h.c.client, serve_options(&clock));
    serve_bed_wait_for_probe(&h);
    ask_once(&h);
    renew(&h, &clock, DAY, "caCert.pem");                /* the new authority beside the old one */
    renew(&h, &clock, 11 * TD_MINUTE, "serverCert.pem"); /* a certificate of it */
    renew(&h, &clock, DAY, "caCert.pem");                /* the old authority is dropped */
    assert_true(td_str_equal(registered_bundle(&h), secret_part(&h, "caCert.pem")));
    webhook_bed_done(&h);
}

/* What cert-manager writes into a Secret; the second time under another authority. */
static void issue(struct webhook_bed *h, td_time now, bool is_first)
{
    td_auto_pki_pair ca;
    td_auto_pki_pair own;
    td_pki_pair_init(&ca);
    td_pki_pair_init(&own);
    static const td_str ips[] = {TD_STR_INIT("127.0.0.1")};
    const struct td_pki_names names = {
        .common_name = TD_STR("vpa-webhook"), .ip_addresses = ips, .ip_count = 1};
    struct td_instant at = td_time_to_instant(now);
    assert_int_equal(td_pki_make_ca(TD_STR("issuer"), at, &ca, NULL), TD_OK);
    assert_int_equal(td_pki_issue_server(td_buf_str(&ca.certificate_pem), td_buf_str(&ca.key_pem),
                                         &names, at, &own, NULL),
                     TD_OK);
    td_auto_buf text = td_buf_capped((size_t)1 << 20);
    td_str bundle = base64_of(h, td_buf_str(&ca.certificate_pem));
    (void)td_buf_append_format(
        &text,
        "{'metadata':{'name':'tandem-webhook-tls'},%s'data':{'ca.crt':'%s','tls.crt':'%s',"
        "'tls.key':'%s'}}",
        is_first ? "'type':'kubernetes.io/tls'," : "", bundle.ptr,
        base64_of(h, td_buf_str(&own.certificate_pem)).ptr,
        base64_of(h, td_buf_str(&own.key_pem)).ptr);
    if (is_first) {
        control_bed_create(&h->c, SECRETS, td_buf_str(&text).ptr);
    } else {
        assert_int_equal(control_bed_patch(&h->c, SECRET, td_buf_str(&text).ptr), 200);
    }
}

/* Served as it comes, by whichever authority, and never written. */
static void test_a_certificate_that_another_program_issues(void **state)
{
    (void)state;
    struct webhook_bed h;
    serve_bed_init(&h);
    struct td_clock clock = td_clock_virtual(td_clock_wall(&h.c.bed.clock));
    struct td_webhook_options options = serve_options(&clock);
    options.is_issued = true;
    webhook_side_init(&h.side, h.c.bed.loop, h.c.client, options);
    control_bed_run(&h.c, 100 * TD_MILLISECOND);
    assert_null(control_bed_get(&h.c, SECRET)); /* nor made */
    issue(&h, td_clock_wall(&clock), true);
    serve_bed_wait_for_probe(&h);
    ask_once(&h);
    assert_true(td_str_equal(registered_bundle(&h), secret_part(&h, "ca.crt")));
    td_str version = td_json_text(td_json_get(control_bed_get(&h.c, SECRET), TD_STR("metadata")),
                                  "resourceVersion");
    issue(&h, td_clock_wall(&clock), false);
    for (int i = 0; i < 50 && !td_str_equal(registered_bundle(&h), secret_part(&h, "ca.crt"));
         i++) {
        control_bed_run(&h.c, 10 * TD_MILLISECOND); /* between the two it is not trusted */
    }
    assert_true(td_str_equal(registered_bundle(&h), secret_part(&h, "ca.crt")));
    ask_once(&h);
    td_clock_advance(&clock, 300 * DAY); /* ours would be renewed by now */
    ask_once(&h);
    const struct td_json *secret = control_bed_get(&h.c, SECRET);
    assert_null(td_json_get_path(secret, "metadata.annotations"));
    assert_int_equal(td_json_member_count(td_json_get(secret, TD_STR("data"))), 3);
    assert_false(td_str_equal(
        version, td_json_text(td_json_get(secret, TD_STR("metadata")), "resourceVersion")));
    webhook_bed_done(&h);
}

static void test_a_certificate_is_renewed_by_the_same_authority(void **state)
{
    (void)state;
    struct webhook_bed h;
    serve_bed_init(&h);
    struct td_clock clock = td_clock_virtual(td_clock_wall(&h.c.bed.clock) - 244 * DAY);
    webhook_side_init(&h.side, h.c.bed.loop, h.c.client, serve_options(&clock));
    serve_bed_wait_for_probe(&h);
    td_str bundle = registered_bundle(&h);
    renew(&h, &clock, 244 * DAY, "serverCert.pem");
    assert_true(td_str_equal(registered_bundle(&h), bundle));
    webhook_bed_done(&h);
}

/* An address that cannot be had is known at once. */
static void test_a_taken_address_is_an_error(void **state)
{
    (void)state;
    struct webhook_bed h;
    serve_bed_init(&h);
    webhook_side_init(&h.side, h.c.bed.loop, h.c.client, serve_options(NULL));
    td_str url = td_webhook_url(h.side.webhook);
    struct td_webhook_options options = serve_options(NULL);
    char listen[64];
    (void)snprintf(listen, sizeof(listen), "%.*s", (int)(url.len - sizeof("https://")),
                   url.ptr + sizeof("https://") - 1);
    options.listen = listen;
    options.control.loop = h.c.bed.loop;
    options.control.client = h.c.client;
    options.control.informers = h.side.informers;
    options.control.registry = h.side.registry;
    struct td_webhook *webhook = NULL;
    struct td_error err = TD_ERROR_INIT;
    assert_int_equal(td_webhook_new(&options, &webhook, &err), TD_IO);
    assert_non_null(strstr(err.message, listen));
    webhook_bed_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pods_are_mutated_over_tls),
        cmocka_unit_test(test_strangers_get_short_answers),
        cmocka_unit_test(test_a_pod_waits_for_its_owner),
        cmocka_unit_test(test_siblings_are_listed),
        cmocka_unit_test(test_siblings_without_a_list),
        cmocka_unit_test(test_renewal_fails_no_request),
        cmocka_unit_test(test_a_certificate_is_renewed_by_the_same_authority),
        cmocka_unit_test(test_a_certificate_that_another_program_issues),
        cmocka_unit_test(test_a_taken_address_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
