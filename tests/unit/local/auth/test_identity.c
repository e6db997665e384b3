/* The keys of a cluster: kept with care, made anew when nothing is kept, refused when damaged. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>
#include <openssl/ssl.h>

#include "base/limits.h"
#include "kube/kubeconfig/kubeconfig.h"
#include "local/auth/identity.h"
#include "support/temp_folder.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct td_instant now = {.unix_seconds = 1700000000};

struct fixture {
    struct temp_folder folder;
    struct td_arena arena;
};

static int setup(void **state)
{
    static struct fixture fixture;
    td_arena_init(&fixture.arena, TD_TREE_ARENA_BYTES_MAX);
    *state = &fixture;
    return temp_folder_make(&fixture.folder);
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    temp_folder_remove(&fixture->folder);
    td_arena_done(&fixture->arena);
    return 0;
}

static int load(struct td_identity *identity, const char *data_dir, struct td_error *err)
{
    td_identity_init(identity);
    return td_identity_load(identity, data_dir, TD_STR("127.0.0.1"), now, err);
}

static bool is_same(const struct td_buf *a, const struct td_buf *b)
{
    return td_str_equal(td_buf_str(a), td_buf_str(b));
}

static unsigned mode_of(const char *path)
{
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    return info.st_mode & 0777;
}

/* Authority and signing key stay over a restart, certificates are new. */
static void test_kept(void **state)
{
    struct fixture *fixture = *state;
    struct td_identity first;
    struct td_identity second;
    assert_int_equal(load(&first, fixture->folder.path, NULL), TD_OK);
    assert_int_equal(load(&second, fixture->folder.path, NULL), TD_OK);
    assert_true(is_same(&first.ca.certificate_pem, &second.ca.certificate_pem));
    assert_true(is_same(&first.ca.key_pem, &second.ca.key_pem));
    assert_true(is_same(&first.token_key, &second.token_key));
    assert_false(is_same(&first.server.key_pem, &second.server.key_pem));
    static const char *const names[] = {"ca.key", "ca.crt", "token.key"};
    for (size_t i = 0; i < COUNT(names); i++) {
        assert_int_equal(mode_of(temp_path(&fixture->folder, &fixture->arena, names[i])), 0600);
    }
    td_identity_done(&first);
    td_identity_done(&second);
}

/* Nothing is shared by two clusters in memory. */
static void test_in_memory(void **state)
{
    (void)state;
    struct td_identity first;
    struct td_identity second;
    assert_int_equal(load(&first, NULL, NULL), TD_OK);
    assert_int_equal(load(&second, NULL, NULL), TD_OK);
    assert_false(is_same(&first.ca.key_pem, &second.ca.key_pem));
    assert_false(is_same(&first.token_key, &second.token_key));
    SSL_CTX *tls;
    assert_int_equal(td_identity_tls(&first, &tls, NULL), TD_OK);
    SSL_CTX_free(tls);
    td_identity_done(&first);
    td_identity_done(&second);
}

/* A folder that was left half made is made anew; one whose files were changed is refused. */
static void test_damage(void **state)
{
    struct fixture *fixture = *state;
    static const struct {
        const char *name;
        const char *content; /* NULL: it is removed */
        int code;
    } rows[] = {
        {"ca.key", NULL, TD_OK},
        {"token.key", "", TD_INVALID},
        {"token.key", "short", TD_INVALID},
        {"token.key", NULL, TD_NOT_FOUND},
        {"ca.crt", "no certificate", TD_INVALID},
        {"ca.key", "no key", TD_INVALID},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct td_identity identity;
        (void)unlink(temp_path(&fixture->folder, &fixture->arena, "ca.key"));
        assert_int_equal(load(&identity, fixture->folder.path, NULL), TD_OK);
        td_identity_done(&identity);
        if (rows[i].content) {
            (void)temp_file(&fixture->folder, &fixture->arena, rows[i].name, 0600,
                            td_str_from(rows[i].content));
        } else {
            assert_int_equal(unlink(temp_path(&fixture->folder, &fixture->arena, rows[i].name)), 0);
        }
        struct td_error err = TD_ERROR_INIT;
        int code = load(&identity, fixture->folder.path, &err);
        if (code != rows[i].code) {
            fail_msg("row %zu: %d %s", i, code, err.message);
        }
        td_identity_done(&identity);
    }
}

/* The administrator's kubeconfig is for its owner alone, whatever was there before. */
static void test_kubeconfig(void **state)
{
    struct fixture *fixture = *state;
    const char *path = temp_file(&fixture->folder, &fixture->arena, "config", 0644, TD_STR("old"));
    struct td_identity identity;
    assert_int_equal(load(&identity, NULL, NULL), TD_OK);
    assert_int_equal(td_identity_write_kubeconfig(&identity, path, TD_STR("tandem"),
                                                  TD_STR("https://127.0.0.1:1"), NULL),
                     TD_OK);
    assert_int_equal(mode_of(path), 0600);
    td_str text;
    assert_int_equal(td_file_read(path, &fixture->arena, TD_KUBECONFIG_BYTES_MAX, &text, NULL),
                     TD_OK);
    assert_non_null(strstr(text.ptr, "https://127.0.0.1:1"));
    td_identity_done(&identity);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_kept, setup, teardown),
        cmocka_unit_test(test_in_memory),
        cmocka_unit_test_setup_teardown(test_damage, setup, teardown),
        cmocka_unit_test_setup_teardown(test_kubeconfig, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
