/*
 * Files are looked at when a request needs credentials and the last look is old enough, and
 * compared by content: they are small, and a content cannot lie as a time stamp can. Whatever is
 * unreadable, empty or does not fit (a new certificate whose key has not been written yet) leaves
 * the last good state in place and is looked at again after the short pause.
 */
#include "kube/kubeconfig/credentials.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/limits.h"
#include "base/os/file.h"
#include "base/os/loop.h"
#include "base/os/process.h"
#include "base/pki/pki.h"
#include "kube/kubeconfig/credentials_private.h"
#include "kube/kubeconfig/kubeconfig_private.h"

#define TOKEN_FILE_AGE (TD_TOKEN_FILE_AGE_MS * TD_MILLISECOND)
#define PEM_FILE_AGE (TD_PEM_FILE_AGE_MS * TD_MILLISECOND)

static bool credentials_replace(struct td_buf *text, td_str content)
{
    if (td_str_equal(td_buf_str(text), content)) {
        return false;
    }
    td_buf_reset(text);
    int code = td_buf_append(text, content);
    td_assert(code == TD_OK); /* what is read has the same caps */
    return true;
}

void td_credentials_set_token(struct td_credentials *credentials, td_str token)
{
    if (credentials_replace(&credentials->token, token)) {
        credentials->generation++;
    }
}

void td_credentials_set_pair(struct td_credentials *credentials, td_str certificate_pem,
                             td_str key_pem)
{
    bool is_new_key = credentials_replace(&credentials->key_pem, key_pem);
    if (credentials_replace(&credentials->certificate_pem, certificate_pem) || is_new_key) {
        credentials->generation++;
        credentials->connection_generation++;
    }
}

struct td_credentials *td_credentials_new(const struct td_kube_config *config, struct td_loop *loop)
{
    struct td_credentials *credentials = td_alloc_zero(1, sizeof(*credentials));
    td_duration now = td_clock_steady(td_loop_clock(loop));
    credentials->config = config;
    credentials->loop = loop;
    credentials->token_due = now + TOKEN_FILE_AGE;
    credentials->pem_due = now + PEM_FILE_AGE;
    td_buf_init(&credentials->token, TD_PEM_BYTES_MAX);
    td_buf_init(&credentials->certificate_pem, TD_PEM_BYTES_MAX);
    td_buf_init(&credentials->key_pem, TD_PEM_BYTES_MAX);
    td_buf_init(&credentials->ca_pem, TD_PEM_BYTES_MAX);
    credentials->generation = 1;
    credentials->connection_generation = 1;
    (void)credentials_replace(&credentials->token, config->token);
    (void)credentials_replace(&credentials->certificate_pem, config->certificate_pem);
    (void)credentials_replace(&credentials->key_pem, config->key_pem);
    (void)credentials_replace(&credentials->ca_pem, config->ca_pem);
    return credentials;
}

static void credentials_unlink(struct td_credentials_wait *wait)
{
    *wait->link = wait->next;
    if (wait->next) {
        wait->next->link = wait->link;
    }
    wait->owner->wait_count--;
}

void td_credentials_cancel(struct td_credentials_wait *wait)
{
    credentials_unlink(wait);
    td_free(wait);
}

void td_credentials_free(struct td_credentials *credentials)
{
    if (!credentials) {
        return;
    }
    td_process_free(credentials->exec.process);
    while (credentials->waits) {
        td_credentials_cancel(credentials->waits);
    }
    td_buf_done(&credentials->token);
    td_buf_done(&credentials->certificate_pem);
    td_buf_done(&credentials->key_pem);
    td_buf_done(&credentials->ca_pem);
    td_free(credentials);
}

/* Reads the token's file; the failure counts only while there is no token at all. */
static int credentials_read_token(struct td_credentials *credentials, td_duration now,
                                  struct td_error *err)
{
    td_auto_arena arena;
    td_str path = credentials->config->token_file;
    td_str content;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    credentials->token_due = now + PEM_FILE_AGE;
    int code = td_file_read(path.ptr, &arena, TD_TOKEN_FILE_BYTES_MAX, &content, err);
    if (code < 0) {
        return code;
    }
    content = td_str_trim(content);
    if (content.len == 0) {
        return td_error_set(err, TD_INVALID, "%s: is empty", path.ptr);
    }
    if (!td_kubeconfig_is_header(content)) {
        return td_error_set(err, TD_INVALID, "%s: holds a line break or control character",
                            path.ptr);
    }
    td_credentials_set_token(credentials, content);
    credentials->token_due = now + TOKEN_FILE_AGE;
    return TD_OK;
}

static bool credentials_has_pair(const struct td_credentials *credentials, td_str certificate,
                                 td_str key)
{
    return td_str_equal(td_buf_str(&credentials->certificate_pem), certificate) &&
           td_str_equal(td_buf_str(&credentials->key_pem), key);
}

static void credentials_read_pair(struct td_credentials *credentials, struct td_arena *arena)
{
    const struct td_kube_config *config = credentials->config;
    td_str certificate;
    td_str key;
    if (td_file_read(config->certificate_file.ptr, arena, TD_PEM_BYTES_MAX, &certificate, NULL) ==
            TD_OK &&
        td_file_read(config->key_file.ptr, arena, TD_PEM_BYTES_MAX, &key, NULL) == TD_OK &&
        !credentials_has_pair(credentials, certificate, key) &&
        td_pki_check_pair(certificate, key, NULL) == TD_OK) {
        td_credentials_set_pair(credentials, certificate, key);
    }
}

static void credentials_read_authority(struct td_credentials *credentials, struct td_arena *arena)
{
    td_str pem;
    struct td_pki_validity validity;
    const char *path = credentials->config->ca_file.ptr;
    if (td_file_read(path, arena, TD_PEM_BYTES_MAX, &pem, NULL) == TD_OK &&
        !td_str_equal(td_buf_str(&credentials->ca_pem), pem) &&
        td_pki_validity_of(pem, &validity, NULL) == TD_OK &&
        credentials_replace(&credentials->ca_pem, pem)) {
        credentials->generation++;
        credentials->connection_generation++;
    }
}

static void credentials_read_pem(struct td_credentials *credentials, td_duration now)
{
    const struct td_kube_config *config = credentials->config;
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    credentials->pem_due = now + PEM_FILE_AGE;
    if (config->certificate_file.len > 0) {
        credentials_read_pair(credentials, &arena);
    }
    if (config->ca_file.len > 0) {
        credentials_read_authority(credentials, &arena);
    }
}

static struct td_credential credentials_current(const struct td_credentials *credentials)
{
    return (struct td_credential){.bearer_token = td_buf_str(&credentials->token),
                                  .username = credentials->config->username,
                                  .password = credentials->config->password,
                                  .certificate_pem = td_buf_str(&credentials->certificate_pem),
                                  .key_pem = td_buf_str(&credentials->key_pem),
                                  .ca_pem = td_buf_str(&credentials->ca_pem),
                                  .generation = credentials->generation,
                                  .connection_generation = credentials->connection_generation};
}

int td_credentials_get(struct td_credentials *credentials, struct td_credential *ret,
                       struct td_error *err)
{
    const struct td_kube_config *config = credentials->config;
    td_duration now = td_clock_steady(td_loop_clock(credentials->loop));
    bool has_token = credentials->token.len > 0;
    if (config->token_file.len > 0 && (now >= credentials->token_due || !has_token)) {
        struct td_error cause = TD_ERROR_INIT;
        int code = credentials_read_token(credentials, now, &cause);
        if (code < 0 && !has_token) {
            return td_error_set(err, code, "token file %s", cause.message);
        }
    }
    if (now >= credentials->pem_due) {
        credentials_read_pem(credentials, now);
    }
    if (config->exec) {
        int code = td_credentials_exec_get(credentials, err);
        if (code < 0) {
            return code;
        }
    }
    *ret = credentials_current(credentials);
    return TD_OK;
}

int td_credentials_wait(struct td_credentials *credentials, td_credential_fn fn, void *context,
                        struct td_credentials_wait **ret, struct td_error *err)
{
    td_assert(credentials->exec.process);
    if (credentials->wait_count == TD_CREDENTIALS_WAITS_MAX) {
        return td_error_set(err, TD_LIMIT, "more than %zu requests wait for credentials",
                            TD_CREDENTIALS_WAITS_MAX);
    }
    struct td_credentials_wait *wait = td_alloc_zero(1, sizeof(*wait));
    *wait = (struct td_credentials_wait){.next = credentials->waits,
                                         .link = &credentials->waits,
                                         .owner = credentials,
                                         .fn = fn,
                                         .context = context};
    if (wait->next) {
        wait->next->link = &wait->next;
    }
    credentials->waits = wait;
    credentials->wait_count++;
    *ret = wait;
    return TD_OK;
}

/* First come, first served: the list has the last one in front. */
static struct td_credentials_wait *credentials_take_waits(struct td_credentials *credentials)
{
    struct td_credentials_wait *turned = NULL;
    while (credentials->waits) {
        struct td_credentials_wait *wait = credentials->waits;
        credentials->waits = wait->next;
        wait->next = turned;
        turned = wait;
    }
    return turned;
}

void td_credentials_tell(struct td_credentials *credentials)
{
    struct td_credential credential = {.generation = 0};
    struct td_error err = TD_ERROR_INIT;
    int code = td_credentials_exec_result(credentials, &err);
    if (code == TD_OK) {
        credential = credentials_current(credentials);
    }
    /* Those who come while these are told wait for another run, so they are kept apart. */
    struct td_credentials_wait *first = credentials_take_waits(credentials);
    struct td_credentials_wait **link = &first;
    for (struct td_credentials_wait *wait = first; wait; wait = wait->next) {
        wait->link = link;
        link = &wait->next;
    }
    while (first) {
        struct td_credentials_wait *wait = first;
        credentials_unlink(wait);
        wait->fn(code, code == TD_OK ? &credential : NULL, code == TD_OK ? NULL : &err,
                 wait->context);
        td_free(wait);
    }
}

void td_credentials_reject(struct td_credentials *credentials, uint64_t generation)
{
    if (generation != credentials->generation) {
        return; /* it was an older one */
    }
    td_duration now = td_clock_steady(td_loop_clock(credentials->loop));
    credentials->token_due = now;
    credentials->pem_due = now;
    credentials->exec.is_rejected = true;
}
