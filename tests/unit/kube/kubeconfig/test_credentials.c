/* Tokens, certificates and exec plugins over time: rotation, refusals, failures, and no secrets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/json/json.h"
#include "base/limits.h"
#include "base/os/loop.h"
#include "base/pki/pki.h"
#include "base/timefmt.h"
#include "kube/kubeconfig/credentials.h"
#include "kube/kubeconfig/kubeconfig.h"
#include "support/temp_folder.h"

#define NOW ((td_time)1794700000 * TD_SECOND)

struct fixture {
    struct td_arena arena;
    struct temp_folder folder;
    struct td_clock clock;
    struct td_loop *loop;
    struct td_pki_pair ca;
    struct td_pki_pair pairs[2];
    struct td_kube_config config;
    struct td_credentials *credentials;
    int reported;
    int reported_code;
    char reported_text[TD_ERROR_MESSAGE_BYTES]; /* the token, or the failure */
};

static int set_up(void **state)
{
    static struct fixture made;
    struct td_error err = TD_ERROR_INIT;
    struct td_instant now = td_time_to_instant(NOW);
    struct td_pki_user user = {.name = TD_STR("admin")};
    made = (struct fixture){.clock = td_clock_virtual(NOW)};
    td_arena_init(&made.arena, (size_t)64 << 20);
    td_pki_pair_init(&made.ca);
    assert_int_equal(td_pki_make_ca(TD_STR("ca"), now, &made.ca, &err), TD_OK);
    for (size_t i = 0; i < 2; i++) {
        td_pki_pair_init(&made.pairs[i]);
        assert_int_equal(td_pki_issue_client(td_buf_str(&made.ca.certificate_pem),
                                             td_buf_str(&made.ca.key_pem), &user, now,
                                             &made.pairs[i], &err),
                         TD_OK);
    }
    *state = &made;
    assert_int_equal(temp_folder_make(&made.folder), 0);
    return td_loop_new(&made.clock, &made.loop, &err);
}

static int tear_down(void **state)
{
    struct fixture *made = *state;
    td_credentials_free(made->credentials);
    td_loop_free(made->loop);
    td_pki_pair_done(&made->ca);
    td_pki_pair_done(&made->pairs[0]);
    td_pki_pair_done(&made->pairs[1]);
    temp_folder_remove(&made->folder);
    td_arena_done(&made->arena);
    return 0;
}

static void put(struct fixture *made, const char *name, td_str content)
{
    (void)temp_file(&made->folder, &made->arena, name, 0600, content);
}

/* Credentials of a user written as YAML. */
static void begin(struct fixture *made, const char *user)
{
    struct td_error err = TD_ERROR_INIT;
    struct td_kube_config_input input = {.env = NULL};
    td_str text = td_arena_format(&made->arena,
                                  "clusters: [{name: c, cluster: {server: 'https://h:1', "
                                  "tls-server-name: s}}]\n"
                                  "users: [{name: u, user: {%s}}]\n"
                                  "contexts: [{name: x, context: {cluster: c, user: u}}]\n"
                                  "current-context: x\n",
                                  user);
    td_str path = td_str_from(temp_path(&made->folder, &made->arena, "config"));
    if (td_kube_config_parse(&made->arena, path, text, &input, &made->config, &err) < 0) {
        fail_msg("%s", err.message);
    }
    made->credentials = td_credentials_new(&made->config, made->loop);
}

static struct td_credential get(struct fixture *made)
{
    struct td_error err = TD_ERROR_INIT;
    struct td_credential credential;
    int code = td_credentials_get(made->credentials, &credential, &err);
    if (code < 0) {
        fail_msg("%d: %s", code, err.message);
    }
    return credential;
}

static void reported(int code, const struct td_credential *credential, const struct td_error *err,
                     void *context)
{
    struct fixture *made = context;
    made->reported++;
    made->reported_code = code;
    (void)snprintf(made->reported_text, sizeof(made->reported_text), "%s",
                   code == TD_OK ? credential->bearer_token.ptr : err->message);
}

/* Runs the plugin that get has to start; what was told is in made->told_*. */
static void run_plugin(struct fixture *made)
{
    struct td_error err = TD_ERROR_INIT;
    struct td_credential credential;
    struct td_credentials_wait *wait = NULL;
    assert_int_equal(td_credentials_get(made->credentials, &credential, &err), TD_BUSY);
    assert_int_equal(td_credentials_get(made->credentials, &credential, &err), TD_BUSY);
    assert_int_equal(err.code, TD_OK);
    assert_int_equal(td_credentials_wait(made->credentials, reported, made, &wait, &err), TD_OK);
    made->reported = 0;
    assert_int_equal(td_loop_run(made->loop, &err), TD_OK);
    assert_int_equal(made->reported, 1);
}

/* What never changes is given as it is. */
static void test_credentials_static(void **state)
{
    struct fixture *made = *state;
    begin(made, "username: bob, password: S3CRET");
    struct td_credential credential = get(made);
    assert_string_equal(credential.username.ptr, "bob");
    assert_string_equal(credential.password.ptr, "S3CRET");
    assert_int_equal(credential.bearer_token.len, 0);
    assert_int_equal(credential.certificate_pem.len, 0);
    td_credentials_reject(made->credentials, credential.generation);
    td_clock_advance(&made->clock, TD_HOUR);
    assert_int_equal(get(made).generation, credential.generation);
}

/* A token file is read again after a minute, or at once after a 401 to the token it gave. */
static void test_credentials_token_file(void **state)
{
    struct fixture *made = *state;
    put(made, "token", TD_STR("one\n"));
    begin(made, "tokenFile: token");
    struct td_credential first = get(made);
    assert_string_equal(first.bearer_token.ptr, "one");
    put(made, "token", TD_STR("two\n"));
    td_clock_advance(&made->clock, 59 * TD_SECOND);
    assert_string_equal(get(made).bearer_token.ptr, "one");
    td_clock_advance(&made->clock, TD_SECOND);
    struct td_credential second = get(made);
    assert_string_equal(second.bearer_token.ptr, "two");
    assert_true(second.generation > first.generation);
    assert_int_equal(second.connection_generation, first.connection_generation);

    put(made, "token", TD_STR("three"));
    td_credentials_reject(made->credentials, first.generation); /* an answer that came late */
    assert_string_equal(get(made).bearer_token.ptr, "two");
    td_credentials_reject(made->credentials, second.generation);
    assert_string_equal(get(made).bearer_token.ptr, "three");
}

/* A file that is gone, empty or broken keeps the last token; with none there is one clear line. */
static void test_credentials_token_file_failures(void **state)
{
    struct fixture *made = *state;
    struct td_error err = TD_ERROR_INIT;
    struct td_credential credential;
    static const td_str bad[] = {TD_STR_INIT(""), TD_STR_INIT(" \n"),
                                 TD_STR_INIT("S3CRET\nS3CRET")};
    put(made, "token", TD_STR(""));
    begin(made, "tokenFile: token");
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        put(made, "token", bad[i]);
        assert_int_equal(td_credentials_get(made->credentials, &credential, &err), TD_INVALID);
        assert_non_null(strstr(err.message, "token file /"));
        assert_null(strstr(err.message, "S3CRET"));
    }
    put(made, "token", TD_STR("good"));
    assert_string_equal(get(made).bearer_token.ptr, "good");
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        put(made, "token", bad[i]);
        td_credentials_reject(made->credentials, get(made).generation);
        assert_string_equal(get(made).bearer_token.ptr, "good");
    }
    assert_int_equal(unlink(temp_path(&made->folder, &made->arena, "token")), 0);
    td_clock_advance(&made->clock, TD_HOUR);
    assert_string_equal(get(made).bearer_token.ptr, "good");
    put(made, "token", TD_STR("better"));
    td_clock_advance(&made->clock, TD_PEM_FILE_AGE_MS * TD_MILLISECOND);
    assert_string_equal(get(made).bearer_token.ptr, "better");
}

/* A rotated certificate counts once both halves are there. */
static void test_credentials_certificate_files(void **state)
{
    struct fixture *made = *state;
    put(made, "crt", td_buf_str(&made->pairs[0].certificate_pem));
    put(made, "key", td_buf_str(&made->pairs[0].key_pem));
    begin(made, "client-certificate: crt, client-key: key");
    struct td_credential first = get(made);
    assert_true(td_str_equal(first.key_pem, td_buf_str(&made->pairs[0].key_pem)));
    put(made, "crt", td_buf_str(&made->pairs[1].certificate_pem));
    td_clock_advance(&made->clock, TD_PEM_FILE_AGE_MS * TD_MILLISECOND);
    struct td_credential half = get(made);
    assert_int_equal(half.generation, first.generation);
    assert_true(td_str_equal(half.certificate_pem, td_buf_str(&made->pairs[0].certificate_pem)));
    put(made, "key", td_buf_str(&made->pairs[1].key_pem));
    assert_int_equal(get(made).generation, first.generation); /* not looked at yet */
    td_clock_advance(&made->clock, TD_PEM_FILE_AGE_MS * TD_MILLISECOND);
    struct td_credential second = get(made);
    assert_true(td_str_equal(second.certificate_pem, td_buf_str(&made->pairs[1].certificate_pem)));
    assert_true(second.connection_generation > first.connection_generation);
}

/* Rotated authorities of the server need new connections too. */
static void test_credentials_authority_file(void **state)
{
    struct fixture *made = *state;
    put(made, "ca", td_buf_str(&made->ca.certificate_pem));
    begin(made, "token: t");
    made->config.ca_file = td_str_from(temp_path(&made->folder, &made->arena, "ca"));
    td_clock_advance(&made->clock, TD_PEM_FILE_AGE_MS * TD_MILLISECOND);
    struct td_credential first = get(made);
    assert_true(td_str_equal(first.ca_pem, td_buf_str(&made->ca.certificate_pem)));
    put(made, "ca", TD_STR("garbage"));
    td_clock_advance(&made->clock, TD_PEM_FILE_AGE_MS * TD_MILLISECOND);
    assert_int_equal(get(made).connection_generation, first.connection_generation);
    put(made, "ca", td_buf_str(&made->pairs[0].certificate_pem));
    td_clock_advance(&made->clock, TD_PEM_FILE_AGE_MS * TD_MILLISECOND);
    assert_true(get(made).connection_generation > first.connection_generation);
}

/* A plugin made of a shell script; `mode` and more as members of exec. */
static void begin_plugin(struct fixture *made, const char *script, const char *members)
{
    td_str text = td_arena_format(&made->arena, "#!/bin/sh\n%s\n", script);
    (void)temp_file(&made->folder, &made->arena, "plugin", 0700, text);
    begin(made, td_arena_format(&made->arena,
                                "exec: {command: ./plugin, apiVersion: "
                                "client.authentication.k8s.io/v1, interactiveMode: Never%s}",
                                members)
                    .ptr);
}

#define ANSWER(status)                                                                             \
    "printf '%s' '{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":"                   \
    "\"ExecCredential\",\"status\":" status "}'"

/* An answer is kept until it expires, and the plugin is told what upstream tells it. */
static void test_credentials_plugin_until_expiry(void **state)
{
    struct fixture *made = *state;
    begin_plugin(made,
                 "echo \"$1 $E $KUBERNETES_EXEC_INFO\" >>\"$(dirname \"$0\")/seen\"\n" ANSWER(
                     "{\"token\":\"one\",\"expirationTimestamp\":\"2026-11-15T02:00:00Z\"}"),
                 ", args: [arg], env: [{name: E, value: v}], provideClusterInfo: true");
    run_plugin(made);
    assert_int_equal(made->reported_code, TD_OK);
    assert_string_equal(made->reported_text, "one");
    assert_string_equal(get(made).bearer_token.ptr, "one");
    struct td_error err = TD_ERROR_INIT;
    td_str seen;
    const char *path = temp_path(&made->folder, &made->arena, "seen");
    assert_int_equal(td_file_read(path, &made->arena, 10000, &seen, &err), TD_OK);
    assert_string_equal(
        seen.ptr,
        "arg v {\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1\","
        "\"spec\":{\"cluster\":{\"server\":\"https://h:1\",\"tls-server-name\":\"s\"},"
        "\"interactive\":false}}\n");
    struct td_instant expiry;
    assert_int_equal(td_time_parse(TD_STR("2026-11-15T02:00:00Z"), &expiry, &err), TD_OK);
    td_clock_advance(&made->clock, td_time_from_instant(expiry) - NOW);
    assert_string_equal(get(made).bearer_token.ptr, "one");
    td_clock_advance(&made->clock, 1);
    run_plugin(made); /* born too old, but there is nothing better */
    assert_int_equal(made->reported_code, TD_OK);
    assert_string_equal(get(made).bearer_token.ptr, "one");
}

/* A refused answer is replaced, at most every few seconds; one refused late is not. */
static void test_credentials_plugin_after_refusal(void **state)
{
    struct fixture *made = *state;
    begin_plugin(made,
                 "cd \"$(dirname \"$0\")\"; echo >>count\n"
                 "n=$(wc -l <count)\n"
                 "echo \"{apiVersion: client.authentication.k8s.io/v1, kind: ExecCredential, "
                 "status: {token: 'T'$n}}\" | tr -d \"'\"",
                 "");
    run_plugin(made);
    assert_string_equal(made->reported_text, "T1"); /* YAML is understood too */
    struct td_credential first = get(made);
    td_credentials_reject(made->credentials, first.generation);
    assert_string_equal(get(made).bearer_token.ptr, "T1"); /* too soon to ask again */
    td_clock_advance(&made->clock, TD_EXEC_INTERVAL_MIN_MS * TD_MILLISECOND);
    run_plugin(made);
    assert_string_equal(made->reported_text, "T2");
    td_credentials_reject(made->credentials, first.generation);
    td_clock_advance(&made->clock, TD_HOUR);
    assert_string_equal(get(made).bearer_token.ptr, "T2");
}

/* A pair of certificate and key from a plugin needs a new connection. */
static void test_credentials_plugin_certificate(void **state)
{
    struct fixture *made = *state;
    td_auto_buf script;
    td_buf_init(&script, (size_t)1 << 16);
    (void)td_buf_append(&script,
                        TD_STR("cat <<'EOF'\napiVersion: client.authentication.k8s.io/v1\nkind: "
                               "ExecCredential\nstatus:\n  clientCertificateData: "));
    td_json_write_string(td_buf_str(&made->pairs[0].certificate_pem), false, &script);
    (void)td_buf_append(&script, TD_STR("\n  clientKeyData: "));
    td_json_write_string(td_buf_str(&made->pairs[0].key_pem), false, &script);
    (void)td_buf_append(&script, TD_STR("\nEOF"));
    begin_plugin(made, script.ptr, "");
    run_plugin(made);
    assert_int_equal(made->reported_code, TD_OK);
    struct td_credential credential = get(made);
    assert_true(td_str_equal(credential.key_pem, td_buf_str(&made->pairs[0].key_pem)));
    assert_int_equal(credential.bearer_token.len, 0);
    assert_true(credential.connection_generation > 1);
}

/* Each failure is one line that names plugin and user, and never what the plugin printed. */
static void test_credentials_plugin_failures(void **state)
{
    struct fixture *made = *state;
    static const struct {
        const char *script;
        const char *message;
    } rows[] = {
        {"echo S3CRET; exit 3", "exited with status 3"},
        {"kill -9 $$", "exited with status 137"},
        {"echo '{\"token\": \"S3CRET\"'", "it printed neither JSON nor YAML"},
        {"echo \"S3CRET: '\"", "it printed neither JSON nor YAML"},
        {"true", "it printed no ExecCredential of client.authentication.k8s.io/v1"},
        {"echo S3CRET", "it printed no ExecCredential of client.authentication.k8s.io/v1"},
        {"echo '{\"apiVersion\":\"client.authentication.k8s.io/v1beta1\",\"kind\":"
         "\"ExecCredential\",\"status\":{\"token\":\"S3CRET\"}}'",
         "it printed no ExecCredential of client.authentication.k8s.io/v1"},
        {ANSWER("null"), "its ExecCredential has no status"},
        {ANSWER("{}"), "status has no token and no certificate pair"},
        {ANSWER("{\"token\":[\"S3CRET\"]}"), "status.token is not usable as a token"},
        {ANSWER("{\"token\":\"S3CRET\\u000aS3CRET\"}"), "status.token is not usable as a token"},
        {ANSWER("{\"clientKeyData\":\"S3CRET\"}"),
         "status has a certificate or a key, but not both"},
        {ANSWER("{\"clientKeyData\":\"S3CRET\",\"clientCertificateData\":\"S3CRET\"}"),
         "status: certificate and key: the certificate is not readable as PEM"},
        {ANSWER("{\"token\":\"S3CRET\",\"expirationTimestamp\":\"soon\"}"),
         "status.expirationTimestamp is no time"},
        {"yes S3CRET", "printed more than 1048576 bytes"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct td_error err = TD_ERROR_INIT;
        struct td_credential credential;
        begin_plugin(made, rows[i].script, "");
        run_plugin(made);
        assert_int_equal(made->reported_code, TD_DENIED);
        assert_null(strstr(made->reported_text, "S3CRET"));
        assert_null(strchr(made->reported_text, '\n'));
        const char *expected =
            td_arena_format(&made->arena, "exec plugin '%s/./plugin' of user 'u': %s",
                            made->folder.path, rows[i].message)
                .ptr;
        assert_string_equal(made->reported_text, expected);
        /* The failure stands for a while, then the plugin is asked again. */
        assert_int_equal(td_credentials_get(made->credentials, &credential, &err), TD_DENIED);
        assert_string_equal(err.message, expected);
        td_clock_advance(&made->clock, TD_EXEC_INTERVAL_MIN_MS * TD_MILLISECOND);
        assert_int_equal(td_credentials_get(made->credentials, &credential, &err), TD_BUSY);
        td_credentials_free(made->credentials);
        made->credentials = NULL;
    }
}

/* A command that is not there is named with its hint; one that needs a person says so. */
static void test_credentials_plugin_not_started(void **state)
{
    struct fixture *made = *state;
    struct td_error err = TD_ERROR_INIT;
    struct td_credential credential;
    begin(made, "exec: {command: td-no-such-plugin, apiVersion: client.authentication.k8s.io/v1, "
                "interactiveMode: Never, installHint: 'run\n\n  apt install plugin'}");
    assert_int_equal(td_credentials_get(made->credentials, &credential, &err), TD_DENIED);
    assert_string_equal(err.message, "exec plugin 'td-no-such-plugin' of user 'u': cannot be run: "
                                     "td-no-such-plugin: No such file or directory: run apt "
                                     "install plugin");
    td_credentials_free(made->credentials);
    made->credentials = NULL;
    if (isatty(STDIN_FILENO)) {
        return; /* a person is there */
    }
    begin(made, "exec: {command: sh, apiVersion: client.authentication.k8s.io/v1, "
                "interactiveMode: Always}");
    assert_int_equal(td_credentials_get(made->credentials, &credential, &err), TD_DENIED);
    assert_non_null(
        strstr(err.message, "interactiveMode is Always, but standard input is no terminal"));
}

/* A plugin that fails after it worked leaves its last answer, while that has not expired. */
static void test_credentials_plugin_fails_later(void **state)
{
    struct fixture *made = *state;
    begin_plugin(made, "test -e \"$0.bad\" && exit 1; " ANSWER("{\"token\":\"one\"}"), "");
    run_plugin(made);
    put(made, "plugin.bad", TD_STR(""));
    td_credentials_reject(made->credentials, get(made).generation);
    td_clock_advance(&made->clock, TD_EXEC_INTERVAL_MIN_MS * TD_MILLISECOND);
    run_plugin(made);
    assert_int_equal(made->reported_code, TD_OK);
    assert_string_equal(made->reported_text, "one");
}

/* Waiters are called in order; a cancelled one is not; freed with the object, none is. */
static void test_credentials_waits(void **state)
{
    struct fixture *made = *state;
    struct td_error err = TD_ERROR_INIT;
    struct td_credential credential;
    struct td_credentials_wait *waits[3];
    begin_plugin(made, ANSWER("{\"token\":\"one\"}"), "");
    made->reported = 0;
    assert_int_equal(td_credentials_get(made->credentials, &credential, &err), TD_BUSY);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(td_credentials_wait(made->credentials, reported, made, &waits[i], &err),
                         TD_OK);
    }
    td_credentials_cancel(waits[1]);
    assert_int_equal(td_loop_run(made->loop, &err), TD_OK);
    assert_int_equal(made->reported, 2);
    td_credentials_reject(made->credentials, get(made).generation);
    td_clock_advance(&made->clock, TD_HOUR);
    assert_int_equal(td_credentials_get(made->credentials, &credential, &err), TD_BUSY);
    assert_int_equal(td_credentials_wait(made->credentials, reported, made, &waits[0], &err),
                     TD_OK);
    td_credentials_free(made->credentials);
    made->credentials = NULL;
    assert_int_equal(td_loop_run(made->loop, &err), TD_OK);
    assert_int_equal(made->reported, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_credentials_static, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_credentials_token_file, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_credentials_token_file_failures, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_credentials_certificate_files, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_credentials_authority_file, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_credentials_plugin_until_expiry, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_credentials_plugin_after_refusal, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_credentials_plugin_certificate, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_credentials_plugin_failures, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_credentials_plugin_not_started, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_credentials_plugin_fails_later, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_credentials_waits, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
