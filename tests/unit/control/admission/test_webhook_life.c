/*
 * The life of the webhook on a local cluster: registered within seconds, corrected and put back,
 * removed at a clean stop; probed, with a heartbeat that stops while pods are not mutated; its
 * certificate in one Secret for all replicas, renewed in time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/pki/pki.h"
#include "base/timefmt.h"
#include "support/webhook_bed.h"

#define SECRET "/api/v1/namespaces/kube-system/secrets/tandem-webhook-tls"
#define LEASE "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/vpa-admission-controller"
#define DAY (24 * TD_HOUR)
#define MUTATING_LIST "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
#define UPSTREAM_CONFIG MUTATING_LIST "/vpa-webhook-config"
#define UPSTREAM_REGISTRATION                                                                      \
    "{'metadata':{'name':'vpa-webhook-config'},'webhooks':[{'name':'vpa.k8s.io',"                  \
    "'admissionReviewVersions':['v1'],'sideEffects':'None','clientConfig':{"                       \
    "'url':'https://127.0.0.1:1/'},'rules':[]}]}"

static const struct td_json *webhook_of(struct webhook_bed *h, const char *config, size_t index)
{
    const struct td_json *object = control_bed_get(&h->c, config);
    return td_json_at(td_json_get(object, TD_STR("webhooks")), index);
}

static const char *text_of(struct webhook_bed *h, const struct td_json *object, const char *path)
{
    const struct td_json *value = td_json_get_path(object, path);
    return td_json_is(value, TD_JSON_TYPE_STRING)
               ? td_arena_copy_str(&h->c.bed.arena, value->text).ptr
               : "";
}

/* ---- Registration ---- */

static void test_it_registers_within_seconds(void **state)
{
    (void)state;
    struct webhook_bed h;
    struct td_webhook_options options = webhook_bed_options();
    options.labels = TD_STR("\"team:scale,tier:infra\"");
    webhook_bed_init_with(&h, &options);
    const struct td_json *webhook = webhook_of(&h, WEBHOOK_MUTATING_CONFIG, 0);
    assert_string_equal(text_of(&h, webhook, "name"), "vpa.k8s.io");
    assert_string_equal(text_of(&h, webhook, "failurePolicy"), "Ignore");
    assert_string_equal(text_of(&h, webhook, "sideEffects"), "None");
    assert_string_equal(text_of(&h, webhook, "matchPolicy"), "Equivalent");
    assert_int_equal(td_json_get_int64(webhook, TD_STR("timeoutSeconds"), 0), 10);
    assert_true(td_str_equal(td_str_from(text_of(&h, webhook, "clientConfig.url")),
                             td_webhook_url(h.side.webhook)));
    const struct td_json *rules = td_json_get(webhook, TD_STR("rules"));
    assert_int_equal(rules->count, 2);
    const struct td_json *expression =
        td_json_at(td_json_get_path(webhook, "namespaceSelector.matchExpressions"), 0);
    assert_string_equal(text_of(&h, expression, "operator"), "NotIn");
    assert_string_equal(text_of(&h, webhook_of(&h, WEBHOOK_VALIDATING_CONFIG, 0), "name"),
                        "hpa.autoscaling.tandem.dev");
    assert_string_equal(text_of(&h, webhook_of(&h, WEBHOOK_VALIDATING_CONFIG, 1), "name"),
                        "hvpa.autoscaling.k8s.io");
    assert_string_equal(
        text_of(&h, control_bed_get(&h.c, WEBHOOK_MUTATING_CONFIG), "metadata.labels.tier"),
        "infra");
    webhook_bed_done(&h);
}

static void test_it_is_put_back_and_corrected(void **state)
{
    (void)state;
    struct webhook_bed h;
    webhook_bed_init(&h);
    assert_int_equal(td_webhook_problem(h.side.webhook).len, 0);
    assert_int_equal(control_bed_delete(&h.c, WEBHOOK_MUTATING_CONFIG), 200);
    control_bed_run(&h.c, 10 * TD_SECOND);
    assert_string_equal(text_of(&h, webhook_of(&h, WEBHOOK_MUTATING_CONFIG, 0), "name"),
                        "vpa.k8s.io");
    assert_int_equal(td_webhook_problem(h.side.webhook).len, 0);
    assert_int_equal(control_bed_patch(&h.c, WEBHOOK_MUTATING_CONFIG,
                                       "{'metadata':{'labels':{'theirs':'yes'}},'webhooks':[]}"),
                     200);
    control_bed_run(&h.c, 10 * TD_SECOND);
    assert_string_equal(text_of(&h, webhook_of(&h, WEBHOOK_MUTATING_CONFIG, 0), "name"),
                        "vpa.k8s.io");
    assert_string_equal(
        text_of(&h, control_bed_get(&h.c, WEBHOOK_MUTATING_CONFIG), "metadata.labels.theirs"),
        "yes");
    assert_int_equal(td_webhook_problem(h.side.webhook).len, 0);
    webhook_bed_done(&h);
}

/* What upstream's program left behind is adopted. */
static void test_one_that_is_there_is_adopted(void **state)
{
    (void)state;
    struct webhook_bed h = {.faults = {.are_webhooks_down = false}};
    control_bed_init(&h.c);
    control_bed_create(
        &h.c, "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
        "{'metadata':{'name':'tandem-outside-webhook-config'},'webhooks':[{'name':'vpa.k8s.io',"
        "'admissionReviewVersions':['v1'],'sideEffects':'None','clientConfig':{"
        "'url':'https://127.0.0.1:1/'},'rules':[]}]}");
    webhook_side_init(&h.side, h.c.bed.loop, h.c.client, webhook_bed_options());
    td_api_answer_reviews(h.c.bed.api, td_webhook_url(h.side.webhook), webhook_bed_review,
                          h.side.webhook);
    control_bed_run(&h.c, 5 * TD_SECOND);
    const struct td_json *webhook = webhook_of(&h, WEBHOOK_MUTATING_CONFIG, 0);
    assert_int_equal(td_json_get(webhook, TD_STR("rules"))->count, 2);
    assert_int_equal(td_webhook_problem(h.side.webhook).len, 0);
    webhook_bed_done(&h);
}

/* Upstream's program deletes its registration and makes it anew when it starts, sooner or later. */
static void test_what_upstream_takes_back_is_left_to_it(void **state)
{
    (void)state;
    static const td_duration pauses[] = {0, TD_SECOND, TD_MINUTE};
    for (size_t i = 0; i < sizeof(pauses) / sizeof(pauses[0]); i++) {
        struct webhook_bed h = {.faults = {.are_webhooks_down = false}};
        control_bed_init(&h.c);
        control_bed_create(&h.c, MUTATING_LIST, UPSTREAM_REGISTRATION);
        struct td_webhook_options options = webhook_bed_options();
        options.replaces_upstream = true;
        webhook_side_init(&h.side, h.c.bed.loop, h.c.client, options);
        td_api_answer_reviews(h.c.bed.api, td_webhook_url(h.side.webhook), webhook_bed_review,
                              h.side.webhook);
        control_bed_run(&h.c, 5 * TD_SECOND);
        const char *ours = text_of(&h, webhook_of(&h, UPSTREAM_CONFIG, 0), "clientConfig.url");
        assert_true(td_str_equal(td_str_from(ours), td_webhook_url(h.side.webhook)));
        for (int again = 0; again < 2; again++) {
            assert_int_equal(control_bed_delete(&h.c, UPSTREAM_CONFIG), 200);
            control_bed_run(&h.c, pauses[i]);
            /* After a minute ours is there: two programs that disagree are no restart. */
            control_bed_delete(&h.c, UPSTREAM_CONFIG);
            control_bed_create(&h.c, MUTATING_LIST, UPSTREAM_REGISTRATION);
            control_bed_run(&h.c, TD_MINUTE);
            assert_string_equal(text_of(&h, webhook_of(&h, UPSTREAM_CONFIG, 0), "clientConfig.url"),
                                "https://127.0.0.1:1/");
            assert_true(td_webhook_problem(h.side.webhook).len > 0);
        }
        assert_int_equal(control_bed_delete(&h.c, UPSTREAM_CONFIG), 200);
        control_bed_run(&h.c, 10 * TD_SECOND);
        assert_string_equal(text_of(&h, webhook_of(&h, UPSTREAM_CONFIG, 0), "clientConfig.url"),
                            ours);
        assert_int_equal(td_webhook_problem(h.side.webhook).len, 0);
        webhook_bed_done(&h);
    }
}

static void test_a_clean_stop_removes_it(void **state)
{
    (void)state;
    static const struct {
        bool keeps;
        const char *taken_over; /* by another process */
        bool stays;
    } rows[] = {
        {false, NULL, false},
        {true, NULL, true},
        {false, "https://127.0.0.1:1/", true},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct webhook_bed h;
        struct td_webhook_options options = webhook_bed_options();
        options.keeps = rows[i].keeps;
        webhook_bed_init_with(&h, &options);
        control_bed_run(&h.c, 30 * TD_SECOND);
        assert_true(strlen(text_of(&h, control_bed_get(&h.c, LEASE), "spec.renewTime")) > 0);
        if (rows[i].taken_over) {
            char patch[256];
            (void)snprintf(patch, sizeof(patch),
                           "{'webhooks':[{'name':'vpa.k8s.io','admissionReviewVersions':['v1'],"
                           "'sideEffects':'None','clientConfig':{'url':'%s'}}]}",
                           rows[i].taken_over);
            assert_int_equal(control_bed_patch(&h.c, WEBHOOK_MUTATING_CONFIG, patch), 200);
        }
        td_webhook_stop(h.side.webhook, webhook_side_stopped, &h.side.is_stopped);
        control_bed_run(&h.c, TD_SECOND);
        assert_true(h.side.is_stopped);
        assert_int_equal(control_bed_get(&h.c, WEBHOOK_MUTATING_CONFIG) != NULL, rows[i].stays);
        assert_true(td_webhook_problem(h.side.webhook).len > 0);
        /* Who removes the webhook says so to readers of its lease. */
        const struct td_json *lease = control_bed_get(&h.c, LEASE);
        assert_int_equal(td_json_get_path(lease, "spec.renewTime") != NULL, rows[i].stays);
        control_bed_run(&h.c, TD_MINUTE);
        assert_int_equal(control_bed_get(&h.c, WEBHOOK_MUTATING_CONFIG) != NULL, rows[i].stays);
        webhook_bed_done(&h);
    }
}

/* ---- Probe ---- */

static const char *renewed_at(struct webhook_bed *h)
{
    return text_of(h, control_bed_get(&h->c, LEASE), "spec.renewTime");
}

/* An admission that is down is noticed within 25 s, and the heartbeat stops meanwhile. */
static void test_a_webhook_that_does_not_mutate_is_noticed(void **state)
{
    (void)state;
    struct webhook_bed h;
    webhook_bed_init(&h);
    control_bed_run(&h.c, 30 * TD_SECOND);
    assert_int_equal(td_webhook_problem(h.side.webhook).len, 0);
    assert_true(webhook_side_counts(&h.side, "tandem_admission_webhook_mutates 1\n"));
    const char *before = renewed_at(&h);
    assert_true(before[0] != '\0');
    control_bed_run(&h.c, 30 * TD_SECOND);
    assert_string_not_equal(renewed_at(&h), before);
    h.faults.are_webhooks_down = true;
    control_bed_run(&h.c, 25 * TD_SECOND);
    assert_non_null(
        strstr(td_webhook_problem(h.side.webhook).ptr, "the webhook did not mutate a pod"));
    assert_true(webhook_side_counts(&h.side, "tandem_admission_webhook_mutates 0\n"));
    before = renewed_at(&h);
    control_bed_run(&h.c, TD_MINUTE);
    assert_string_equal(renewed_at(&h), before);
    h.faults.are_webhooks_down = false;
    control_bed_run(&h.c, 25 * TD_SECOND);
    assert_int_equal(td_webhook_problem(h.side.webhook).len, 0);
    assert_string_not_equal(renewed_at(&h), before);
    webhook_bed_done(&h);
}

/* The probe leaves nothing behind, and a real pod cannot pass for one. */
static void test_probes_are_dry_runs_only(void **state)
{
    (void)state;
    struct webhook_bed h;
    webhook_bed_init(&h);
    control_bed_run(&h.c, TD_MINUTE);
    const struct td_json *pods = control_bed_get(&h.c, "/api/v1/namespaces/kube-system/pods");
    assert_int_equal(td_json_get(pods, TD_STR("items"))->count, 0);
    static const char pod[] =
        "{'metadata':{'name':'real','labels':{'tandem.dev/webhook-probe':'true'},'annotations':{"
        "'tandem.dev/webhook-probe':'asked'}},'spec':{'containers':[{'name':'a','image':'b'}]}}";
    control_bed_create(&h.c, WEBHOOK_PODS, pod);
    assert_string_equal(webhook_bed_annotation(&h, control_bed_get(&h.c, WEBHOOK_PODS "/real"),
                                               "tandem.dev/webhook-probe"),
                        "asked");
    struct td_json *answer;
    assert_int_equal(webhook_bed_post(&h, WEBHOOK_PODS "?dryRun=All",
                                      "{'metadata':{'name':'dry','annotations':{'tandem.dev/"
                                      "webhook-probe':'asked'}},'spec':{'containers':[{'name':'a',"
                                      "'image':'b'}]}}",
                                      &answer),
                     201);
    assert_string_equal(webhook_bed_annotation(&h, answer, "tandem.dev/webhook-probe"), "mutated");
    webhook_bed_done(&h);
}

/* A namespace in which no pod may be created says so in words, with the next step. */
static void test_a_probe_that_is_refused_is_reported(void **state)
{
    (void)state;
    struct webhook_bed h;
    struct td_webhook_options options = webhook_bed_options();
    options.namespace = TD_STR("nowhere");
    webhook_bed_init_with(&h, &options);
    control_bed_run(&h.c, TD_MINUTE);
    td_str problem = td_webhook_problem(h.side.webhook);
    assert_non_null(strstr(problem.ptr, "dry run in namespace nowhere"));
    assert_non_null(strstr(problem.ptr, "allow it"));
    webhook_bed_done(&h);
}

/* ---- Certificates ---- */

struct material {
    const char *bundle;
    const char *certificate;
    const char *names;
    size_t authorities;
    int64_t ends; /* of the certificate, in seconds since 1970 */
};

static struct material material_of(struct webhook_bed *h)
{
    const struct td_json *secret = control_bed_get(&h->c, SECRET);
    const struct td_json *data = td_json_get(secret, TD_STR("data"));
    td_str bundle;
    td_str certificate;
    assert_true(td_base64_read(&h->c.bed.arena,
                               td_json_get_str(data, TD_STR("caCert.pem"), TD_STR_EMPTY),
                               TD_BASE64_STANDARD, &bundle));
    assert_true(td_base64_read(&h->c.bed.arena,
                               td_json_get_str(data, TD_STR("serverCert.pem"), TD_STR_EMPTY),
                               TD_BASE64_STANDARD, &certificate));
    struct material material = {
        .bundle = td_arena_copy_str(&h->c.bed.arena, bundle).ptr,
        .certificate = td_arena_copy_str(&h->c.bed.arena, certificate).ptr,
        .names = td_json_get_str(td_json_get_path(secret, "metadata.annotations"),
                                 TD_STR("tandem.dev/names"), TD_STR("-"))
                     .ptr,
    };
    struct td_pki_validity validity;
    assert_int_equal(td_pki_validity_of(certificate, &validity, NULL), TD_OK);
    material.ends = validity.not_after.unix_seconds;
    for (const char *at = material.bundle; (at = strstr(at, "BEGIN CERTIFICATE")); at++) {
        material.authorities++;
    }
    return material;
}

#define SERVICE_CONFIG                                                                             \
    "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/tandem-webhook-config"

static const char *registered_bundle(struct webhook_bed *h, const char *configuration)
{
    const struct td_json *webhook = webhook_of(h, configuration, 0);
    td_str bundle;
    assert_true(td_base64_read(&h->c.bed.arena,
                               td_str_from(text_of(h, webhook, "clientConfig.caBundle")),
                               TD_BASE64_STANDARD, &bundle));
    return td_arena_copy_str(&h->c.bed.arena, bundle).ptr;
}

static struct td_webhook_options served_options(const struct td_clock *clock)
{
    struct td_webhook_options options = webhook_bed_options();
    options.listen = "127.0.0.1:0";
    options.certificate_clock = clock;
    options.probe_interval = 0; /* no socket keeps up with a virtual clock */
    return options;
}

/* Two replicas, one Secret: the second serves what the first one made. */
static void test_replicas_share_one_secret(void **state)
{
    (void)state;
    struct td_clock clock = td_clock_virtual(1700000000 * TD_SECOND);
    struct td_webhook_options options = served_options(&clock);
    options.is_by_url = false;
    struct webhook_bed h = {.faults = {.are_webhooks_down = false}};
    struct webhook_side other = {.is_blind = false};
    control_bed_init(&h.c);
    control_bed_create(&h.c, "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
                       "{'metadata':{'name':'tandem-outside-webhook-config'},'webhooks':[]}");
    webhook_side_init(&h.side, h.c.bed.loop, h.c.client, options);
    webhook_side_init(&other, h.c.bed.loop, h.c.client, options);
    control_bed_run(&h.c, 10 * TD_SECOND);
    assert_null(control_bed_get(&h.c, WEBHOOK_MUTATING_CONFIG)); /* what a process outside left */
    struct material first = material_of(&h);
    assert_int_equal(first.authorities, 1);
    assert_non_null(strstr(first.names, "vpa-webhook.kube-system.svc"));
    assert_string_equal(registered_bundle(&h, SERVICE_CONFIG), first.bundle);
    const struct td_json *service =
        td_json_get_path(webhook_of(&h, SERVICE_CONFIG, 0), "clientConfig.service");
    assert_string_equal(text_of(&h, service, "name"), "vpa-webhook");
    char line[128];
    (void)snprintf(line, sizeof(line), "tandem_admission_certificate_expiry_seconds %lld\n",
                   (long long)first.ends);
    assert_true(webhook_side_counts(&h.side, line));
    assert_true(webhook_side_counts(&other, line));
    control_bed_run(&h.c, TD_HOUR);
    assert_string_equal(material_of(&h).certificate, first.certificate);
    /* By Service the registration stays at a stop: the other replica serves on. */
    td_webhook_stop(h.side.webhook, webhook_side_stopped, &h.side.is_stopped);
    control_bed_run(&h.c, TD_SECOND);
    assert_true(h.side.is_stopped);
    assert_non_null(control_bed_get(&h.c, SERVICE_CONFIG));
    webhook_side_free(&other);
    webhook_bed_done(&h);
}

/* Two thirds of a life, then anew; the authority first beside the old one, then alone. */
static void test_certificates_are_renewed_in_time(void **state)
{
    (void)state;
    struct td_clock clock = td_clock_virtual(1700000000 * TD_SECOND);
    struct td_webhook_options options = served_options(&clock);
    struct webhook_bed h;
    webhook_bed_init_with(&h, &options);
    control_bed_run(&h.c, TD_MINUTE);
    struct material first = material_of(&h);
    td_clock_advance(&clock, 243 * DAY);
    control_bed_run(&h.c, 2 * TD_MINUTE);
    assert_string_equal(material_of(&h).certificate, first.certificate);
    td_clock_advance(&clock, DAY);
    control_bed_run(&h.c, 2 * TD_MINUTE);
    struct material renewed = material_of(&h);
    assert_string_not_equal(renewed.certificate, first.certificate);
    assert_string_equal(renewed.bundle, first.bundle);
    char line[128];
    (void)snprintf(line, sizeof(line), "tandem_admission_certificate_expiry_seconds %lld\n",
                   (long long)renewed.ends);
    assert_true(webhook_side_counts(&h.side, line));
    /* The certificate is new, so that only the authority is due. */
    for (int year = 0; year < 9; year++) {
        td_clock_advance(&clock, 244 * DAY);
        control_bed_run(&h.c, 2 * TD_MINUTE);
    }
    struct material before = material_of(&h);
    assert_int_equal(before.authorities, 2);
    assert_string_equal(registered_bundle(&h, WEBHOOK_MUTATING_CONFIG), before.bundle);
    assert_non_null(strstr(before.bundle, first.bundle));
    td_clock_advance(&clock, 11 * TD_MINUTE);
    control_bed_run(&h.c, 2 * TD_MINUTE);
    struct material switched = material_of(&h);
    assert_string_equal(switched.bundle, before.bundle);
    assert_string_not_equal(switched.certificate, before.certificate);
    td_clock_advance(&clock, DAY);
    control_bed_run(&h.c, 2 * TD_MINUTE);
    struct material alone = material_of(&h);
    assert_int_equal(alone.authorities, 1);
    assert_string_equal(alone.certificate, switched.certificate);
    assert_string_equal(registered_bundle(&h, WEBHOOK_MUTATING_CONFIG), alone.bundle);
    webhook_bed_done(&h);
}

/* A Secret that holds nothing of use is made anew; names of another replica are kept. */
static void test_a_broken_secret_is_made_anew(void **state)
{
    (void)state;
    struct td_clock clock = td_clock_virtual(1700000000 * TD_SECOND);
    struct td_webhook_options options = served_options(&clock);
    struct webhook_bed h = {.faults = {.are_webhooks_down = false}};
    control_bed_init(&h.c);
    control_bed_create(&h.c, "/api/v1/namespaces/kube-system/secrets",
                       "{'metadata':{'name':'tandem-webhook-tls','labels':{'a':'b'}},'data':{"
                       "'caCert.pem':'bm9uc2Vuc2U=','serverCert.pem':''}}");
    webhook_side_init(&h.side, h.c.bed.loop, h.c.client, options);
    control_bed_run(&h.c, 10 * TD_SECOND);
    struct material made = material_of(&h);
    assert_int_equal(made.authorities, 1);
    assert_string_equal(text_of(&h, control_bed_get(&h.c, SECRET), "metadata.labels.a"), "b");
    struct webhook_side other = {.is_blind = false};
    options.service = TD_STR("another");
    webhook_side_init(&other, h.c.bed.loop, h.c.client, options);
    control_bed_run(&h.c, TD_MINUTE);
    struct material both = material_of(&h);
    assert_non_null(strstr(both.names, "vpa-webhook.kube-system.svc"));
    assert_non_null(strstr(both.names, "another.kube-system.svc"));
    assert_string_equal(both.bundle, made.bundle);
    webhook_side_free(&other);
    webhook_bed_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_registers_within_seconds),
        cmocka_unit_test(test_it_is_put_back_and_corrected),
        cmocka_unit_test(test_one_that_is_there_is_adopted),
        cmocka_unit_test(test_what_upstream_takes_back_is_left_to_it),
        cmocka_unit_test(test_a_clean_stop_removes_it),
        cmocka_unit_test(test_a_webhook_that_does_not_mutate_is_noticed),
        cmocka_unit_test(test_probes_are_dry_runs_only),
        cmocka_unit_test(test_a_probe_that_is_refused_is_reported),
        cmocka_unit_test(test_replicas_share_one_secret),
        cmocka_unit_test(test_certificates_are_renewed_in_time),
        cmocka_unit_test(test_a_broken_secret_is_made_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
