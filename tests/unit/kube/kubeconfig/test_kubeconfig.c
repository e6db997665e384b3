/*
 * What one kubeconfig means: fields, contradictions, servers, and its writer. Unless a row says
 * otherwise the answers are those of client-go 0.36's clientcmd and rest for the same text.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/base64.h"
#include "base/error.h"
#include "base/json/json.h"
#include "base/limits.h"
#include "base/pki/pki.h"
#include "kube/kubeconfig/kubeconfig.h"
#include "support/temp_folder.h"
#include "support/test_env.h"

struct fixture {
    struct td_arena arena;
    struct temp_folder folder;
    struct td_pki_pair ca;
    struct td_pki_pair client;
    struct td_pki_pair other;
    td_str marks[8]; /* what "@0".."@7" stand for in rows */
};

static td_str in_base64(struct td_arena *arena, td_str bytes)
{
    td_auto_buf text;
    td_buf_init(&text, (size_t)1 << 20);
    td_base64_write(bytes, TD_BASE64_STANDARD, &text);
    return td_arena_copy_str(arena, td_buf_str(&text));
}

static int set_up(void **state)
{
    static struct fixture made;
    struct td_error err = TD_ERROR_INIT;
    struct td_instant now = {.unix_seconds = 1794700000};
    struct td_pki_user user = {.name = TD_STR("admin")};
    td_arena_init(&made.arena, (size_t)256 << 20);
    td_pki_pair_init(&made.ca);
    td_pki_pair_init(&made.client);
    td_pki_pair_init(&made.other);
    assert_int_equal(temp_folder_make(&made.folder), 0);
    assert_int_equal(td_pki_make_ca(TD_STR("ca"), now, &made.ca, &err), TD_OK);
    td_str ca = td_buf_str(&made.ca.certificate_pem);
    td_str ca_key = td_buf_str(&made.ca.key_pem);
    assert_int_equal(td_pki_issue_client(ca, ca_key, &user, now, &made.client, &err), TD_OK);
    assert_int_equal(td_pki_issue_client(ca, ca_key, &user, now, &made.other, &err), TD_OK);
    td_str certificate = td_buf_str(&made.client.certificate_pem);
    td_str key = td_buf_str(&made.client.key_pem);
    (void)temp_file(&made.folder, &made.arena, "ca.crt", 0600, ca);
    (void)temp_file(&made.folder, &made.arena, "client.crt", 0600, certificate);
    (void)temp_file(&made.folder, &made.arena, "client.key", 0600, key);
    (void)temp_file(&made.folder, &made.arena, "token", 0600, TD_STR(" T0KEN\n"));
    (void)temp_file(&made.folder, &made.arena, "lines", 0600, TD_STR("T0KEN\nT0KEN\n"));
    (void)temp_file(&made.folder, &made.arena, "empty", 0600, TD_STR_EMPTY);
    made.marks[0] = in_base64(&made.arena, ca);
    made.marks[1] = in_base64(&made.arena, certificate);
    made.marks[2] = in_base64(&made.arena, key);
    made.marks[3] = in_base64(&made.arena, td_buf_str(&made.other.key_pem));
    *state = &made;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *made = *state;
    td_pki_pair_done(&made->ca);
    td_pki_pair_done(&made->client);
    td_pki_pair_done(&made->other);
    temp_folder_remove(&made->folder);
    td_arena_done(&made->arena);
    return 0;
}

/* The row's text with @0..@7 filled in. */
static td_str fill_in(struct fixture *made, const char *text)
{
    td_auto_buf out;
    td_buf_init(&out, (size_t)1 << 20);
    for (const char *at = text; *at; at++) {
        if (at[0] == '@' && at[1] >= '0' && at[1] <= '7') {
            (void)td_buf_append(&out, made->marks[at[1] - '0']);
            at++;
        } else {
            (void)td_buf_append_char(&out, *at);
        }
    }
    return td_arena_copy_str(&made->arena, td_buf_str(&out));
}

static void describe_text(struct td_buf *out, const char *name, td_str text)
{
    if (text.len > 0) {
        (void)td_buf_append_format(out, "%s%s=%s", out->len > 0 ? " " : "", name, text.ptr);
        assert_int_equal(strlen(text.ptr), text.len); /* NUL-terminated */
    }
}

static void describe_flag(struct td_buf *out, const char *name, bool is_set)
{
    if (is_set) {
        (void)td_buf_append_format(out, "%s%s", out->len > 0 ? " " : "", name);
    }
}

static void describe_exec(struct td_buf *out, const struct td_exec_spec *exec)
{
    static const char *const modes[] = {"Never", "IfAvailable", "Always"};
    describe_text(out, "exec", exec->command);
    for (size_t i = 0; i < exec->arg_count; i++) {
        describe_text(out, "arg", exec->args[i]);
    }
    for (size_t i = 0; i < exec->env_count; i++) {
        describe_text(out, exec->env[i].name.ptr, exec->env[i].value);
    }
    describe_text(out, "hint", exec->install_hint);
    describe_flag(out, modes[exec->interaction], true);
    describe_flag(out, "info", exec->provides_cluster_info);
    if (exec->cluster_config) {
        (void)td_buf_append(out, TD_STR(" config="));
        td_json_write(exec->cluster_config, &(struct td_json_format){0}, out);
    }
}

static void describe_as(struct td_buf *out, const struct td_kube_impersonation *as)
{
    describe_text(out, "as", as->user);
    describe_text(out, "uid", as->uid);
    for (size_t i = 0; i < as->group_count; i++) {
        describe_text(out, "group", as->groups[i]);
    }
    for (size_t i = 0; i < as->extra_count; i++) {
        for (size_t k = 0; k < as->extras[i].value_count; k++) {
            describe_text(out, as->extras[i].key.ptr, as->extras[i].values[k]);
        }
    }
}

/* Every field that is set, in one line; contents of PEM only by their presence. */
static const char *describe(struct fixture *made, const struct td_kube_config *config)
{
    td_auto_buf out;
    td_buf_init(&out, (size_t)1 << 20);
    describe_text(&out, "server", config->server);
    describe_flag(&out, "ca", config->ca_pem.len > 0);
    describe_text(&out, "ca-file", config->ca_file);
    describe_flag(&out, "insecure", config->is_insecure);
    describe_text(&out, "name", config->tls_server_name);
    describe_text(&out, "proxy", config->proxy_url);
    describe_flag(&out, "plain", config->is_compression_disabled);
    describe_flag(&out, "pair", config->certificate_pem.len > 0 && config->key_pem.len > 0);
    describe_text(&out, "cert-file", config->certificate_file);
    describe_text(&out, "key-file", config->key_file);
    describe_text(&out, "token", config->token);
    describe_text(&out, "token-file", config->token_file);
    describe_text(&out, "username", config->username);
    describe_text(&out, "password", config->password);
    describe_as(&out, &config->impersonation);
    if (config->exec) {
        describe_exec(&out, config->exec);
    }
    if (!td_str_equal(config->namespace, TD_STR("default"))) {
        describe_text(&out, "namespace", config->namespace);
    }
    return td_arena_copy_str(&made->arena, td_buf_str(&out)).ptr;
}

/* The text without the folder of the test, which is another each time. */
static const char *without_folder(struct fixture *made, const char *text)
{
    td_auto_buf out;
    td_buf_init(&out, (size_t)1 << 20);
    size_t len = strlen(made->folder.path);
    for (const char *at = text; *at; at++) {
        bool is_folder = strncmp(at, made->folder.path, len) == 0;
        (void)td_buf_append_char(&out, is_folder ? 'D' : *at);
        at += is_folder ? len - 1 : 0;
    }
    return td_arena_copy_str(&made->arena, td_buf_str(&out)).ptr;
}

/* The description of a text, or "! " and the failure. */
static const char *judge(struct fixture *made, td_str text, const char *context)
{
    struct td_error err = TD_ERROR_INIT;
    struct td_kube_config config;
    struct test_env env = {{NULL}};
    struct td_kube_config_input input = {
        .env = test_env_get, .env_context = &env, .context = context};
    td_str path = td_str_from(temp_path(&made->folder, &made->arena, "config"));
    int code = td_kube_config_parse(&made->arena, path, text, &input, &config, &err);
    if (code == TD_OK) {
        return without_folder(made, describe(made, &config));
    }
    assert_int_equal(code, err.code);
    assert_null(strchr(err.message, '\n'));
    const char *message = td_arena_format(&made->arena, "! %s", err.message).ptr;
    return without_folder(made, message);
}

/* Fields of a cluster and a user: taken over, or refused by name. */
static void test_kubeconfig_fields(void **state)
{
    struct fixture *made = *state;
    static const struct {
        const char *cluster;
        const char *user;
        const char *expected;
    } rows[] = {
        {"", "token: t", "server=https://h:1 token=t"},
        {"", "Token: t", "server=https://h:1"},
        {"", "token: null", "server=https://h:1"},
        {", zip: 1", "token: t, zip: [2]", "server=https://h:1 token=t"},
        {"", "token: 12", "! D/config:5: users[0].user.token: must be a string"},
        {"", "token: {a: S3CRET}", "! D/config:5: users[0].user.token: must be a string"},
        {"", "token: \"a\\nb\"",
         "! D/config: users[u].user.token: holds a line break or control character"},
        {"", "token: \"a\\0b\"", "! D/config:5: users[0].user.token: must not hold a NUL byte"},
        {"", "tokenFile: token", "server=https://h:1 token=T0KEN token-file=D/token"},
        {"", "token: t, tokenFile: token", "server=https://h:1 token=T0KEN token-file=D/token"},
        {"", "token: t, tokenFile: none", "server=https://h:1 token=t token-file=D/none"},
        {"", "tokenFile: none",
         "! D/config: users[u].user.tokenFile: D/none: No such file or directory"},
        {"", "tokenFile: empty", "server=https://h:1 token-file=D/empty"},
        {"", "tokenFile: lines",
         "! D/config: users[u].user.tokenFile: D/lines: holds a line break or control character"},
        {"", "username: u, password: p", "server=https://h:1 username=u password=p"},
        {"", "password: p", "server=https://h:1 password=p"},
        {"", "token: t, username: u",
         "! D/config: users[u].user.username: a token is set too, only one may be"},
        {"", "tokenFile: token, username: u",
         "! D/config: users[u].user.username: a token is set too, only one may be"},
        {", insecure-skip-tls-verify: true, tls-server-name: s, disable-compression: true", "",
         "server=https://h:1 insecure name=s plain"},
        {", insecure-skip-tls-verify: 1", "",
         "! D/config:3: clusters[0].cluster.insecure-skip-tls-verify: 1: must be true or false"},
        {", certificate-authority-data: @0", "", "server=https://h:1 ca"},
        {", certificate-authority: ca.crt", "", "server=https://h:1 ca ca-file=D/ca.crt"},
        {", certificate-authority: none", "",
         "! D/config: clusters[c].cluster.certificate-authority: D/none: No such file or "
         "directory"},
        {", certificate-authority: token", "",
         "! D/config: clusters[c].cluster.certificate-authority: D/token: holds no certificate in "
         "PEM form"},
        {", certificate-authority-data: YWJj", "",
         "! D/config: clusters[c].cluster.certificate-authority-data: holds no certificate in PEM "
         "form"},
        {", certificate-authority-data: '!!'", "",
         "! D/config:3: clusters[0].cluster.certificate-authority-data: must be base64"},
        {", certificate-authority-data: YWI", "",
         "! D/config:3: clusters[0].cluster.certificate-authority-data: must be base64"},
        {", certificate-authority-data: @0, certificate-authority: ca.crt", "",
         "! D/config: clusters[c].cluster.certificate-authority: 'D/ca.crt': "
         "certificate-authority-data is set too, only one may be"},
        {", certificate-authority-data: @0, insecure-skip-tls-verify: true", "",
         "! D/config: clusters[c].cluster.insecure-skip-tls-verify: true: "
         "certificate-authority-data is set too, only one may be"},
        {", certificate-authority: ca.crt, insecure-skip-tls-verify: true", "",
         "! D/config: clusters[c].cluster.insecure-skip-tls-verify: true: certificate-authority is "
         "set too, only one may be"},
        {", proxy-url: 'socks5://u:S3CRET@p:1'", "",
         "server=https://h:1 proxy=socks5://u:S3CRET@p:1"},
        {", proxy-url: 'ftp://u:S3CRET@p:1'", "",
         "! D/config: clusters[c].cluster.proxy-url: must be a URL of scheme http, https or "
         "socks5"},
        {", proxy-url: 'p:1'", "",
         "! D/config: clusters[c].cluster.proxy-url: must be a URL of scheme http, https or "
         "socks5"},
        {", tls-server-name: \"a\\r\\nb\"", "",
         "! D/config: clusters[c].cluster.tls-server-name: holds a space or control character"},
        {"", "client-certificate-data: @1, client-key-data: @2", "server=https://h:1 pair"},
        {"", "client-certificate: client.crt, client-key: client.key",
         "server=https://h:1 pair cert-file=D/client.crt key-file=D/client.key"},
        {"", "client-certificate: client.crt, client-key-data: @2", "server=https://h:1 pair"},
        {"", "client-key-data: @2", "server=https://h:1"},
        {"", "client-certificate-data: @1",
         "! D/config: users[u].user.client-key: neither it nor client-key-data is set, but the "
         "certificate is"},
        {"", "client-certificate-data: @1, client-certificate: client.crt, client-key-data: @2",
         "! D/config: users[u].user.client-certificate: 'D/client.crt': client-certificate-data is "
         "set too, only one may be"},
        {"", "client-certificate-data: @1, client-key: client.key, client-key-data: @2",
         "! D/config: users[u].user.client-key: 'D/client.key': client-key-data is set too, only "
         "one may be"},
        {"", "client-certificate-data: @1, client-key-data: @3",
         "! D/config: users[u].user.client-certificate-data: certificate and key: the key is "
         "not that of the certificate"},
        {"", "client-certificate: none, client-key: client.key",
         "! D/config: users[u].user.client-certificate: D/none: No such file or directory"},
        {"", "token: t, client-certificate-data: @1, client-key-data: @2",
         "server=https://h:1 pair token=t"},
        {"", "as: bob, as-uid: '7', as-groups: [g, h], as-user-extra: {z: [v], k: [v, w]}",
         "server=https://h:1 as=bob uid=7 group=g group=h k=v k=w z=v"},
        {"", "as-groups: [g]",
         "! D/config: users[u].user.as: is not set, but as-uid, as-groups or as-user-extra is"},
        {"", "as-uid: '7'",
         "! D/config: users[u].user.as: is not set, but as-uid, as-groups or as-user-extra is"},
        {"", "as: \"a\\nb\"",
         "! D/config: users[u].user.as: user, uid, groups or extras hold a control character"},
        {"", "as: bob, as-groups: g", "! D/config:5: users[0].user.as-groups: must be a list"},
        {"", "as: bob, as-groups: [g, 1]",
         "! D/config:5: users[0].user.as-groups[1]: 1: must be a string"},
        {"", "as: bob, as-user-extra: {k: v}",
         "! D/config:5: users[0].user.as-user-extra.k: must be a list"},
        {"", "auth-provider: {name: oidc}",
         "! D/config: users[u].user.auth-provider: is not supported; use an exec plugin or a "
         "token"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *text =
            td_arena_format(&made->arena,
                            "\nclusters:\n- {name: c, cluster: {server: 'https://h:1'%s}}\nusers:\n"
                            "- {name: u, user: {%s}}\ncontexts:\n"
                            "- {name: x, context: {cluster: c, user: u}}\ncurrent-context: x\n",
                            rows[i].cluster, rows[i].user)
                .ptr;
        assert_string_equal(judge(made, fill_in(made, text), NULL), rows[i].expected);
    }
}

/* Exec plugins: what is required, what wins over them, where the command lies. */
static void test_kubeconfig_exec(void **state)
{
    struct fixture *made = *state;
    static const struct {
        const char *user;
        const char *expected;
    } rows[] = {
        {"exec: {command: ./p, apiVersion: client.authentication.k8s.io/v1, interactiveMode: "
         "Never, args: [a, b], env: [{name: E, value: V}], provideClusterInfo: true, installHint: "
         "\"x\\e[1m\\nz\"}",
         "server=https://h:1 exec=D/./p arg=a arg=b E=V hint=xU+001B[1m z Never info "
         "config={\"a\":1}"},
        {"exec: {command: p, apiVersion: client.authentication.k8s.io/v1beta1}",
         "server=https://h:1 exec=p IfAvailable config={\"a\":1}"},
        {"exec: {command: /bin/p, apiVersion: client.authentication.k8s.io/v1, interactiveMode: "
         "Always}",
         "server=https://h:1 exec=/bin/p Always config={\"a\":1}"},
        {"exec: {command: p, apiVersion: client.authentication.k8s.io/v1}",
         "! D/config: users[u].user.exec.interactiveMode: '': must be Never, IfAvailable or "
         "Always"},
        {"exec: {command: p, apiVersion: client.authentication.k8s.io/v1, interactiveMode: Foo}",
         "! D/config: users[u].user.exec.interactiveMode: 'Foo': must be Never, IfAvailable or "
         "Always"},
        {"exec: {command: p, apiVersion: client.authentication.k8s.io/v1alpha1}",
         "! D/config: users[u].user.exec.apiVersion: 'client.authentication.k8s.io/v1alpha1': must "
         "be client.authentication.k8s.io/v1 or v1beta1"},
        {"exec: {command: p, interactiveMode: Never}",
         "! D/config: users[u].user.exec.apiVersion: '': must be client.authentication.k8s.io/v1 "
         "or "
         "v1beta1"},
        {"exec: {}", "! D/config: users[u].user.exec.command: is not set"},
        {"exec: null", "server=https://h:1"},
        {"exec: {command: p, apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, "
         "env: [{value: S3CRET}]}",
         "! D/config: users[u].user.exec.env: variable 0 has no name, or one with '='"},
        {"exec: {command: p, args: [1]}",
         "! D/config:4: users[0].user.exec.args[0]: must be a string"},
        {"token: t, exec: {command: p, apiVersion: client.authentication.k8s.io/v1, "
         "interactiveMode: Never}",
         "server=https://h:1 token=t"},
        {"client-certificate-data: @1, client-key-data: @2, exec: {command: p, apiVersion: "
         "client.authentication.k8s.io/v1, interactiveMode: Never}",
         "server=https://h:1 pair"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *text =
            td_arena_format(&made->arena,
                            "clusters:\n- {name: c, cluster: {server: 'https://h:1', extensions: "
                            "[{name: client.authentication.k8s.io/exec, extension: {a: 1}}]}}\n"
                            "users:\n- {name: u, user: {%s}}\ncontexts:\n"
                            "- {name: x, context: {cluster: c, user: u}}\ncurrent-context: x\n",
                            rows[i].user)
                .ptr;
        assert_string_equal(judge(made, fill_in(made, text), NULL), rows[i].expected);
    }
}

/* Servers: schemes, ports, prefixes. Without TLS no credential is used. The rows marked with *
 * are refused here, where client-go fails later or goes on. */
static void test_kubeconfig_servers(void **state)
{
    struct fixture *made = *state;
    static const struct {
        const char *server;
        const char *expected;
        uint16_t port;
    } rows[] = {
        {"http://h:8080", "server=http://h:8080", 8080},
        {"h:8080", "server=http://h:8080", 8080},
        {"h", "server=http://h", 80},
        {"127.0.0.1:8080", "server=http://127.0.0.1:8080", 8080},
        {"https://h", "server=https://h token=t", 443},
        {"https://h/", "server=https://h token=t", 443},
        {"https://h:", "server=https://h token=t", 443},
        {"https://h/pre/fix/", "server=https://h/pre/fix token=t", 443},
        {"https://h/p?q=1#f", "server=https://h/p token=t", 443},
        {"https://h?q=1#f", "server=https://h token=t", 443},
        {"https://h/a b", "server=https://h/a%20b token=t", 443},
        {"https://h//a", "server=https://h//a token=t", 443},
        {"HTTPS://H:1", "server=https://H:1 token=t", 1},
        {"https://[::1]:6443", "server=https://[::1]:6443 token=t", 6443},
        {"https://[fe80::1%25eth0]:1", "server=https://[fe80::1%25eth0]:1 token=t", 1},
        {"https://h_x:1", "server=https://h_x:1 token=t", 1},
        {"h/path", "! 'h/path': must be a URL or host:port", 0},
        {"https://", "! 'https://': must be a URL or host:port", 0},
        {"https:///p", "! 'https:///p': must be a URL or host:port", 0},
        {"https://h:x", "! 'https://h:x': must be a URL or host:port", 0},
        {"https://h /x", "! 'https://h /x': must be a URL or host:port", 0},
        {"://h", "! '': the scheme must be https or http", 0},
        {"https://::1", "! 'https://::1': must be a URL or host:port", 0},
        {"https://[::1", "! 'https://[::1': must be a URL or host:port", 0},
        {"https://h/%zz", "! 'https://h/%zz': the path is not a valid part of a URL", 0},
        {"ftp://h", "! 'ftp': the scheme must be https or http", 0},               /* * */
        {"https://h:99999", "! 'https://h:99999': must be a URL or host:port", 0}, /* * */
        {"https://h:0", "! 'https://h:0': must be a URL or host:port", 0},         /* * */
        {"https://h:+1", "! 'https://h:+1': must be a URL or host:port", 0},       /* * */
        {"https://:443", "! 'https://:443': must be a URL or host:port", 0},       /* * */
        {"https://u:S3CRET@h", "! must not hold a user name or password", 0},      /* * */
        {"", "! is not set", 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_str text = td_arena_format(&made->arena,
                                      "clusters: [{name: c, cluster: {server: '%s'}}]\n"
                                      "users: [{name: u, user: {token: t}}]\n"
                                      "contexts: [{name: x, context: {cluster: c, user: u}}]\n"
                                      "current-context: x",
                                      rows[i].server);
        const char *expected = rows[i].expected;
        if (expected[0] == '!') {
            expected = td_arena_format(&made->arena, "! D/config: clusters[c].cluster.server: %s",
                                       expected + 2)
                           .ptr;
        }
        assert_string_equal(judge(made, text, NULL), expected);
        struct td_kube_config config;
        struct td_kube_config_input input = {.env = NULL};
        if (rows[i].port > 0) {
            assert_int_equal(
                td_kube_config_parse(&made->arena, TD_STR("c"), text, &input, &config, NULL),
                TD_OK);
            assert_int_equal(config.port, rows[i].port);
        }
    }
}

/* Which context, cluster and user count, and files that are no kubeconfig at all. Rows marked with
 * * are errors here, where client-go goes on with nothing. */
static void test_kubeconfig_contexts(void **state)
{
    struct fixture *made = *state;
    static const struct {
        const char *text;
        const char *context;
        const char *expected;
    } rows[] = {
        {"clusters: [{cluster: {server: 'https://s'}}]", NULL, "server=https://s"},
        {"clusters: [{name: c, cluster: {server: 'https://s'}}]\ncontexts: [{name: z, context: "
         "{cluster: c, namespace: ns}}]\ncurrent-context: z",
         NULL, "server=https://s namespace=ns"},
        {"clusters: [{name: c, cluster: {server: 'https://s'}}]\ncontexts: [{name: z, context: "
         "{cluster: c}}]\ncurrent-context: other",
         "z", "server=https://s"},
        {"clusters: [{name: c, cluster: {server: 'https://s'}}]\ncontexts: [{name: z, context: "
         "{cluster: c}}]\ncurrent-context: z",
         "w", "! context 'w' does not exist in D/config"},
        {"current-context: x", NULL, "! D/config: current-context: 'x': there is no such context"},
        {"contexts: [{name: z, context: {cluster: c, namespace: A_b}}]\nclusters: [{name: c, "
         "cluster: {server: 'https://s'}}]\ncurrent-context: z",
         NULL,
         "! D/config: contexts[z].context.namespace: 'A_b': is no name of a namespace"}, /* * */
        {"contexts: [{name: z, context: {cluster: c}}]\ncurrent-context: z", NULL,
         "! D/config: contexts[z].context.cluster: 'c': there is no such cluster"}, /* * */
        {"contexts: [{name: z, context: null}]\ncurrent-context: z", NULL,
         "! D/config: contexts[z].context.cluster: is not set"}, /* * */
        {"clusters: [{name: c, cluster: {server: 'https://s'}}]\ncontexts: [{name: z, context: "
         "{cluster: c, user: u}}]\ncurrent-context: z",
         NULL, "! D/config: contexts[z].context.user: 'u': there is no such user"}, /* * */
        {"clusters: [{name: c, cluster: {server: 'https://a'}},\n{name: c, cluster: {server: "
         "'https://b'}}]",
         NULL, "! D/config:2: clusters: the name 'c' is given twice"},
        {"clusters: [{name: \"a\\nb\", cluster: {server: ''}}]\ncontexts: [{name: z, context: "
         "{cluster: \"a\\nb\"}}]\ncurrent-context: z",
         NULL, "! D/config: clusters[a?b].cluster.server: is not set"},
        {"kind: Foo", NULL, "! D/config: kind: 'Foo': must be 'Config'"},
        {"apiVersion: v2", NULL, "! D/config: apiVersion: 'v2': must be 'v1'"},
        {"[]", NULL, "! D/config:1: the file: must be an object"},
        {"S3CRET", NULL, "! D/config:1: the file: must be an object"},
        {"preferences: {colors: 3}", NULL,
         "! D/config:1: preferences.colors: 3: must be true or false"},
        {"clusters: {", NULL, "! D/config: line 2: did not find expected node content"},
        {"users: [{name: u, user: {token: [S3CRET?]}}]", NULL,
         "! D/config: line 1: '...' between brackets: put it in quotes"},
        {"a: 1\nS3CRET: 1\nS3CRET: 2", NULL,
         "! D/config: line 3: duplicate key '...', first set in line 2"},
        {"clusters: [{name: c, cluster: {server: 'https://s'}}]\ncontexts: [{name: z, context: "
         "{cluster: c}}]\ncurrent-context: z\n---\ncurrent-context: w",
         NULL, "server=https://s"},
        {"", NULL,
         "! no cluster is configured: D/config names none, and this is not a pod; give "
         "--kubeconfig or set KUBECONFIG"},
        {"---\n", NULL,
         "! no cluster is configured: D/config names none, and this is not a pod; give "
         "--kubeconfig or set KUBECONFIG"},
        {"clusters: [{name: c, cluster: {server: 'https://s'}}]\ncontexts: [{name: z, context: "
         "{cluster: c}}]",
         NULL,
         "! no cluster is configured: D/config names none, and this is not a pod; give "
         "--kubeconfig or set KUBECONFIG"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_string_equal(judge(made, td_str_from(rows[i].text), rows[i].context),
                            rows[i].expected);
    }
}

/* Deep and large files end in one line, not in a crash. */
static void test_kubeconfig_bounds(void **state)
{
    struct fixture *made = *state;
    td_auto_buf text;
    td_buf_init(&text, (size_t)16 << 20);
    (void)td_buf_append(&text, TD_STR("extensions: [{name: a, extension: "));
    for (int i = 0; i < 400; i++) {
        (void)td_buf_append_char(&text, '[');
    }
    for (int i = 0; i < 400; i++) {
        (void)td_buf_append_char(&text, ']');
    }
    (void)td_buf_append(&text, TD_STR("}]\nclusters: [{cluster: {server: 'https://s'}}]"));
    assert_string_equal(judge(made, td_buf_str(&text), NULL), "server=https://s");
    td_buf_reset(&text);
    for (int i = 0; i < 600; i++) {
        (void)td_buf_append_char(&text, '[');
    }
    assert_string_equal(judge(made, td_buf_str(&text), NULL),
                        "! D/config: line 1: nested more than 512 levels deep");
    td_buf_reset(&text);
    (void)td_buf_append(&text, TD_STR("clusters:\n"));
    for (int i = 0; i <= TD_KUBECONFIG_ENTRIES_MAX; i++) {
        (void)td_buf_append_format(&text, "- {name: c%d}\n", i);
    }
    assert_string_equal(judge(made, td_buf_str(&text), NULL),
                        "! D/config:1: clusters: more than 10000 items");
    td_buf_reset(&text);
    while (text.len <= TD_KUBECONFIG_BYTES_MAX) {
        (void)td_buf_append(&text, TD_STR("# a comment that goes on and on and on and on\n"));
    }
    assert_string_equal(judge(made, td_buf_str(&text), NULL),
                        "! D/config: larger than 8388608 bytes");
}

/* What is written is read back, with certificates and with a token. */
static void test_kubeconfig_reads_what_it_writes(void **state)
{
    struct fixture *made = *state;
    td_auto_buf text;
    td_buf_init(&text, (size_t)1 << 20);
    struct td_kubeconfig_entry entry = {.name = TD_STR("tandem"),
                                        .server = TD_STR("https://127.0.0.1:6443"),
                                        .ca_pem = td_buf_str(&made->ca.certificate_pem),
                                        .certificate_pem =
                                            td_buf_str(&made->client.certificate_pem),
                                        .key_pem = td_buf_str(&made->client.key_pem)};
    td_kubeconfig_write(&entry, &text);
    assert_string_equal(judge(made, td_buf_str(&text), NULL),
                        "server=https://127.0.0.1:6443 ca pair");
    td_buf_reset(&text);
    struct td_kubeconfig_entry other = {.name = TD_STR("on: off"),
                                        .server = TD_STR("https://[::1]:1"),
                                        .token = TD_STR("0x10"),
                                        .namespace = TD_STR("ns")};
    td_kubeconfig_write(&other, &text);
    assert_string_equal(judge(made, td_buf_str(&text), "on: off"),
                        "server=https://[::1]:1 token=0x10 namespace=ns");
    assert_true(td_str_starts_with(td_buf_str(&text), TD_STR("apiVersion: v1\nkind: Config\n")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kubeconfig_fields),
        cmocka_unit_test(test_kubeconfig_exec),
        cmocka_unit_test(test_kubeconfig_servers),
        cmocka_unit_test(test_kubeconfig_contexts),
        cmocka_unit_test(test_kubeconfig_bounds),
        cmocka_unit_test(test_kubeconfig_reads_what_it_writes),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
