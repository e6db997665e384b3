/*
 * Which files are read and how they are merged, and the configuration of a pod. The answers are
 * those of client-go 0.36's clientcmd for the same files and variables.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/pki/pki.h"
#include "kube/kubeconfig/kubeconfig.h"
#include "support/temp_folder.h"
#include "support/test_env.h"

struct fixture {
    struct td_arena arena;
    struct temp_folder folder;
};

static int set_up(void **state)
{
    static struct fixture made;
    td_arena_init(&made.arena, (size_t)64 << 20);
    *state = &made;
    return temp_folder_make(&made.folder);
}

static int tear_down(void **state)
{
    struct fixture *made = *state;
    temp_folder_remove(&made->folder);
    td_arena_done(&made->arena);
    return 0;
}

static void put(struct fixture *made, const char *name, const char *text)
{
    (void)temp_file(&made->folder, &made->arena, name, 0600, td_str_from(text));
}

/* "D" at the start of each path in a list stands for the test's folder. */
static const char *expand(struct fixture *made, const char *list)
{
    td_auto_buf out;
    td_buf_init(&out, TD_PATH_BYTES_MAX);
    for (const char *at = list; *at; at++) {
        bool is_start = at == list || at[-1] == ':';
        if (is_start && *at == 'D') {
            (void)td_buf_append(&out, td_str_from(made->folder.path));
        } else {
            (void)td_buf_append_char(&out, *at);
        }
    }
    return td_arena_copy_str(&made->arena, td_buf_str(&out)).ptr;
}

#define CLUSTER(name, server) "{name: " name ", cluster: {server: 'https://" server "'}}"

static void put_merge_files(struct fixture *made)
{
    put(made, "a",
        "clusters: [" CLUSTER("c", "a") "]\n"
                                        "contexts: [{name: x, context: {cluster: c, user: u}}]\n");
    put(made, "b",
        "clusters: [{name: c, cluster: {server: 'https://b', tls-server-name: sb}},\n" CLUSTER(
            "d", "d") "]\n"
                      "users: [{name: u, user: {token: tb}}]\n"
                      "contexts: [{name: x, context: {cluster: d, user: u, namespace: nb}},\n"
                      "{name: w, context: {cluster: d, user: u, namespace: nb}}]\n"
                      "current-context: x\n");
    put(made, "current", "current-context: w\n");
    put(made, "none", "current-context: ''\n");
    put(made, "broken", "clusters: 7\n");
    put(made, "empty", "");
}

/* The first file that has an entry or a current-context decides, whole entries at a time. */
static void test_kubeconfig_merges_files(void **state)
{
    struct fixture *made = *state;
    static const struct {
        const char *list;
        const char *context;
        const char *server; /* NULL: a failure */
        const char *token;
        const char *namespace;
        const char *name;
    } rows[] = {
        {"D/a:D/b", NULL, "https://a", "tb", "default", ""},
        {"D/b:D/a", NULL, "https://d", "tb", "nb", ""},
        {"D/b", NULL, "https://d", "tb", "nb", ""},
        {"D/a:D/b", "w", "https://d", "tb", "nb", ""},
        {"D/missing:D/a:D/b", NULL, "https://a", "tb", "default", ""},
        {"D/a:D/missing:D/b", NULL, "https://a", "tb", "default", ""},
        {":D/a::D/b:", NULL, "https://a", "tb", "default", ""},
        {"D/a:D/a:D/b", NULL, "https://a", "tb", "default", ""},
        {"D/empty:D/a:D/b", NULL, "https://a", "tb", "default", ""},
        {"D/none:D/a:D/b", NULL, "https://a", "tb", "default", ""},
        {"D/current:D/a:D/b", NULL, "https://d", "tb", "nb", ""},
        {"D/a:D/b:D/current", NULL, "https://a", "tb", "default", ""},
        {"D/a:D/broken:D/b", NULL, NULL, "/broken:1: clusters: 7: must be a list", NULL, NULL},
        {"D/a:D/b", "none", NULL, "context 'none' does not exist in KUBECONFIG (", NULL, NULL},
        {"D/missing", NULL, NULL, "/missing': there is no such file; correct it, or unset it", NULL,
         NULL},
        {"D/missing:D/no", NULL, NULL, "/no': none of these files exists; correct it", NULL, NULL},
        {"D/empty", NULL, NULL, "no cluster is configured: KUBECONFIG (", NULL, NULL},
    };
    put_merge_files(made);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct td_error err = TD_ERROR_INIT;
        struct td_kube_config config;
        struct test_env env = {{"KUBECONFIG", expand(made, rows[i].list), NULL}};
        struct td_kube_config_input input = {.env = test_env_get,
                                             .env_context = &env,
                                             .context = rows[i].context,
                                             .home = "/nowhere"};
        int code = td_kube_config_load(&made->arena, &input, &config, &err);
        if (!rows[i].server) {
            assert_true(code < 0);
            assert_non_null(strstr(err.message, rows[i].token));
            continue;
        }
        assert_int_equal(code, TD_OK);
        assert_string_equal(config.server.ptr, rows[i].server);
        assert_string_equal(config.token.ptr, rows[i].token);
        assert_string_equal(config.namespace.ptr, rows[i].namespace);
        assert_string_equal(config.tls_server_name.ptr, rows[i].name);
    }
}

/* --kubeconfig before KUBECONFIG before ~/.kube/config. */
static void test_kubeconfig_order_of_places(void **state)
{
    struct fixture *made = *state;
    struct td_kube_config config;
    struct td_error err = TD_ERROR_INIT;
    put(made, "one", "clusters: [{cluster: {server: 'https://one'}}]");
    put(made, "two", "clusters: [{cluster: {server: 'https://two'}}]");
    struct test_env env = {{"KUBECONFIG", expand(made, "D/two"), NULL}};
    struct td_kube_config_input input = {.kubeconfig = expand(made, "D/one"),
                                         .env = test_env_get,
                                         .env_context = &env,
                                         .home = made->folder.path};
    assert_int_equal(td_kube_config_load(&made->arena, &input, &config, &err), TD_OK);
    assert_string_equal(config.server.ptr, "https://one");
    input.kubeconfig = "";
    assert_int_equal(td_kube_config_load(&made->arena, &input, &config, &err), TD_OK);
    assert_string_equal(config.server.ptr, "https://two");
    input.kubeconfig = expand(made, "D/missing");
    assert_int_equal(td_kube_config_load(&made->arena, &input, &config, &err), TD_NOT_FOUND);
    assert_non_null(strstr(err.message, "/missing: No such file or directory"));
    input.kubeconfig = made->folder.path;
    assert_int_equal(td_kube_config_load(&made->arena, &input, &config, &err), TD_IO);

    env.pairs[0] = NULL;
    input.kubeconfig = NULL;
    const char *kube = temp_path(&made->folder, &made->arena, ".kube");
    assert_int_equal(mkdir(kube, 0700), 0);
    put(made, ".kube/config", "clusters: [{cluster: {server: 'https://home'}}]");
    assert_int_equal(td_kube_config_load(&made->arena, &input, &config, &err), TD_OK);
    assert_string_equal(config.server.ptr, "https://home");
    assert_non_null(strstr(config.source.ptr, "/.kube/config"));
    assert_int_equal(unlink(temp_path(&made->folder, &made->arena, ".kube/config")), 0);
    assert_int_equal(rmdir(kube), 0);
    assert_int_equal(td_kube_config_load(&made->arena, &input, &config, &err), TD_NOT_FOUND);
    input.home = NULL;
    assert_int_equal(td_kube_config_load(&made->arena, &input, &config, &err), TD_NOT_FOUND);
}

static void put_service_account(struct fixture *made)
{
    struct td_error err = TD_ERROR_INIT;
    td_auto_pki_pair ca;
    td_pki_pair_init(&ca);
    struct td_instant now = {.unix_seconds = 1794700000};
    assert_int_equal(td_pki_make_ca(TD_STR("ca"), now, &ca, &err), TD_OK);
    put(made, "token", "pod-token\n");
    put(made, "namespace", "pod-namespace\n");
    (void)temp_file(&made->folder, &made->arena, "ca.crt", 0600, td_buf_str(&ca.certificate_pem));
}

/* A pod's address, token, authorities and namespace, and what may be missing. */
static void test_kubeconfig_in_a_pod(void **state)
{
    struct fixture *made = *state;
    struct td_kube_config config;
    struct td_error err = TD_ERROR_INIT;
    struct test_env env = {
        {"KUBERNETES_SERVICE_HOST", "10.0.0.1", "KUBERNETES_SERVICE_PORT", "443", NULL}};
    struct td_kube_config_input input = {
        .env = test_env_get, .env_context = &env, .service_account = made->folder.path};
    assert_int_equal(td_kube_config_load(&made->arena, &input, &config, &err), TD_NOT_FOUND);
    put_service_account(made);
    assert_int_equal(td_kube_config_load(&made->arena, &input, &config, &err), TD_OK);
    assert_string_equal(config.source.ptr, "in-cluster");
    assert_string_equal(config.server.ptr, "https://10.0.0.1:443");
    assert_string_equal(config.token.ptr, "pod-token");
    assert_string_equal(config.token_file.ptr, expand(made, "D/token"));
    assert_string_equal(config.ca_file.ptr, expand(made, "D/ca.crt"));
    assert_true(config.ca_pem.len > 0);
    assert_string_equal(config.namespace.ptr, "pod-namespace");

    env.pairs[1] = "fd00::1";
    env.pairs[4] = "POD_NAMESPACE";
    env.pairs[5] = "from-env";
    assert_int_equal(td_kube_config_load(&made->arena, &input, &config, &err), TD_OK);
    assert_string_equal(config.server.ptr, "https://[fd00::1]:443");
    assert_string_equal(config.host.ptr, "fd00::1");
    assert_string_equal(config.namespace.ptr, "from-env");

    env.pairs[4] = NULL;
    assert_int_equal(unlink(expand(made, "D/ca.crt")), 0);
    assert_int_equal(unlink(expand(made, "D/namespace")), 0);
    assert_int_equal(td_kube_config_load(&made->arena, &input, &config, &err), TD_OK);
    assert_int_equal(config.ca_pem.len, 0);
    assert_string_equal(config.namespace.ptr, "default");

    env.pairs[3] = "port";
    assert_int_equal(td_kube_config_load(&made->arena, &input, &config, &err), TD_INVALID);
    assert_non_null(strstr(err.message, "KUBERNETES_SERVICE_HOST and _PORT: "));
    env.pairs[3] = "";
    assert_int_equal(td_kube_config_load(&made->arena, &input, &config, &err), TD_NOT_FOUND);
}

/* In a pod a kubeconfig still wins, but a context without a namespace is in the pod's. */
static void test_kubeconfig_wins_in_a_pod(void **state)
{
    struct fixture *made = *state;
    struct td_kube_config config;
    struct td_error err = TD_ERROR_INIT;
    put_service_account(made);
    put(made, "one",
        "clusters: [" CLUSTER("c", "one") "]\ncurrent-context: x\n"
                                          "contexts: [{name: x, context: {cluster: c}},{name: z, "
                                          "context: {cluster: c, namespace: "
                                          "default}}]");
    struct test_env env = {{"KUBERNETES_SERVICE_HOST", "10.0.0.1", "KUBERNETES_SERVICE_PORT", "443",
                            "KUBECONFIG", expand(made, "D/one"), NULL}};
    struct td_kube_config_input input = {
        .env = test_env_get, .env_context = &env, .service_account = made->folder.path};
    assert_int_equal(td_kube_config_load(&made->arena, &input, &config, &err), TD_OK);
    assert_string_equal(config.server.ptr, "https://one");
    assert_string_equal(config.namespace.ptr, "pod-namespace");
    input.context = "z";
    assert_int_equal(td_kube_config_load(&made->arena, &input, &config, &err), TD_OK);
    assert_string_equal(config.namespace.ptr, "default");
}

/* Proxies of the environment count unless the file names one. */
static void test_kubeconfig_proxies(void **state)
{
    struct fixture *made = *state;
    struct td_kube_config config;
    struct td_error err = TD_ERROR_INIT;
    put(made, "one", "clusters: [{cluster: {server: 'https://h.example:6443'}}]");
    put(made, "two",
        "clusters: [{cluster: {server: 'https://h.example', proxy-url: 'http://f:1'}}]");
    struct test_env env = {{"HTTPS_PROXY", "e:1", "NO_PROXY", "x", NULL}};
    struct td_kube_config_input input = {
        .kubeconfig = expand(made, "D/one"), .env = test_env_get, .env_context = &env};
    assert_int_equal(td_kube_config_load(&made->arena, &input, &config, &err), TD_OK);
    assert_string_equal(config.proxy_url.ptr, "http://e:1");
    env.pairs[3] = "example:6443";
    assert_int_equal(td_kube_config_load(&made->arena, &input, &config, &err), TD_OK);
    assert_string_equal(config.proxy_url.ptr, "");
    input.kubeconfig = expand(made, "D/two");
    assert_int_equal(td_kube_config_load(&made->arena, &input, &config, &err), TD_OK);
    assert_string_equal(config.proxy_url.ptr, "http://f:1");
}

/* More files than the cap are refused, not cut. */
static void test_kubeconfig_bounds_files(void **state)
{
    struct fixture *made = *state;
    struct td_kube_config config;
    struct td_error err = TD_ERROR_INIT;
    td_auto_buf list;
    td_buf_init(&list, (size_t)1 << 20);
    for (int i = 0; i <= TD_KUBECONFIG_FILES_MAX; i++) {
        (void)td_buf_append_format(&list, "/nowhere/%d:", i);
    }
    struct test_env env = {{"KUBECONFIG", list.ptr, NULL}};
    struct td_kube_config_input input = {.env = test_env_get, .env_context = &env};
    assert_int_equal(td_kube_config_load(&made->arena, &input, &config, &err), TD_LIMIT);
    assert_string_equal(err.message, "KUBECONFIG: more than 64 files");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_kubeconfig_merges_files, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_kubeconfig_order_of_places, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_kubeconfig_in_a_pod, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_kubeconfig_wins_in_a_pod, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_kubeconfig_proxies, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_kubeconfig_bounds_files, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
