#include "faults_bed.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include <openssl/bio.h>
#include <openssl/pem.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/timefmt.h"
#include "kube/client/transport_http.h"
#include "local/api/api.h"
#include "local/api/transport.h"
#include "local/auth/auth.h"
#include "local/cluster.h"
#include "local/store/store.h"

#define BED_YEAR_SECONDS ((int64_t)365 * 86400) /* for which certificates are issued */
#define BED_TEXT_BYTES_MAX ((size_t)1 << 20)
#define BED_CORE "/api/v1/namespaces/" BED_NAMESPACE

void bed_require(int code, const struct td_error *err)
{
    if (code != TD_OK) {
        (void)fprintf(stderr, "faults: %s\n", err->message);
        abort();
    }
}

td_duration bed_now(const struct bed *bed)
{
    return td_clock_steady(&bed->loops[0].clock);
}

uint64_t bed_random(struct bed *bed)
{
    bed->random ^= bed->random << 13;
    bed->random ^= bed->random >> 7;
    bed->random ^= bed->random << 17;
    return bed->random;
}

/* ---- Loops ---- */

static void loop_turn_is_over(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    td_loop_stop(context);
}

struct td_loop *bed_add_loop(struct bed *bed, double speed, td_duration ahead)
{
    td_assert(bed->loop_count < BED_LOOPS_MAX);
    struct bed_loop *loop = &bed->loops[bed->loop_count];
    struct td_clock real = td_clock_real();
    loop->clock =
        bed->loop_count == 0 ? real : td_clock_accelerated(speed, td_clock_wall(&real) + ahead);
    struct td_error err = TD_ERROR_INIT;
    bed_require(td_loop_new(&loop->clock, &loop->loop, &err), &err);
    loop->end = event_new(td_loop_base(loop->loop), -1, 0, loop_turn_is_over, loop->loop);
    td_assert(loop->end);
    bed->loop_count++;
    return loop->loop;
}

void bed_drop_loop(struct bed *bed)
{
    struct bed_loop *loop = &bed->loops[--bed->loop_count];
    event_free(loop->end);
    td_loop_free(loop->loop);
}

void bed_turn(struct bed *bed)
{
    const struct timeval wait = {.tv_usec = bed->loop_count > 1 ? 1000 : 5000};
    struct td_error err = TD_ERROR_INIT;
    for (size_t i = 0; i < bed->loop_count; i++) {
        (void)event_add(bed->loops[i].end, &wait);
        bed_require(td_loop_run(bed->loops[i].loop, &err), &err);
    }
}

/* ---- Certificates ---- */

static struct td_instant instant_now(int64_t seconds_off)
{
    struct td_clock real = td_clock_real();
    struct td_instant now = td_time_to_instant(td_clock_wall(&real));
    now.unix_seconds += seconds_off;
    return now;
}

void bed_issue_client(const struct td_pki_pair *ca, int64_t seconds, struct td_pki_pair *ret)
{
    const td_str masters = TD_STR("system:masters");
    const struct td_pki_user user = {
        .name = TD_STR("kubernetes-admin"), .groups = &masters, .group_count = 1};
    struct td_error err = TD_ERROR_INIT;
    bed_require(td_pki_issue_client(td_buf_str(&ca->certificate_pem), td_buf_str(&ca->key_pem),
                                    &user, instant_now(seconds - BED_YEAR_SECONDS), ret, &err),
                &err);
}

SSL_CTX *bed_issue_server(const struct td_pki_pair *ca, td_str client_ca_pem)
{
    /* A client of 0.0.0.0 reaches loopback too, but does not know that it is near. */
    const td_str addresses[] = {TD_STR("127.0.0.1"), TD_STR("0.0.0.0")};
    const struct td_pki_names names = {
        .common_name = TD_STR("link"), .ip_addresses = addresses, .ip_count = 2};
    td_auto_pki_pair pair;
    td_pki_pair_init(&pair);
    struct td_error err = TD_ERROR_INIT;
    bed_require(td_pki_issue_server(td_buf_str(&ca->certificate_pem), td_buf_str(&ca->key_pem),
                                    &names, instant_now(0), &pair, &err),
                &err);
    const struct td_pki_server server = {
        .certificate_pem = td_buf_str(&pair.certificate_pem),
        .key_pem = td_buf_str(&pair.key_pem),
        .client_ca_pem = client_ca_pem,
    };
    SSL_CTX *tls;
    bed_require(td_pki_server_context(&server, &tls, &err), &err);
    return tls;
}

/* Thousands of connections to the cluster are cheap when they resume the last one's session, which
 * is kept with the context. */
static int upstream_keep(SSL *ssl, SSL_SESSION *session)
{
    SSL_CTX *tls = SSL_get_SSL_CTX(ssl);
    SSL_SESSION_free(SSL_CTX_get_app_data(tls));
    return SSL_CTX_set_app_data(tls, session);
}

static void upstream_free(SSL_CTX *tls)
{
    SSL_SESSION_free(SSL_CTX_get_app_data(tls));
    SSL_CTX_free(tls);
}

/* The links' side towards the cluster. */
static SSL_CTX *upstream_context(const struct td_kube_config *admin)
{
    SSL_CTX *tls = SSL_CTX_new(TLS_client_method());
    td_assert(tls);
    (void)SSL_CTX_set_session_cache_mode(tls,
                                         SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL_STORE);
    SSL_CTX_sess_set_new_cb(tls, upstream_keep);
    if (admin) {
        BIO *texts[2] = {
            BIO_new_mem_buf(admin->certificate_pem.ptr, (int)admin->certificate_pem.len),
            BIO_new_mem_buf(admin->key_pem.ptr, (int)admin->key_pem.len),
        };
        X509 *certificate = PEM_read_bio_X509(texts[0], NULL, NULL, NULL);
        EVP_PKEY *key = PEM_read_bio_PrivateKey(texts[1], NULL, NULL, NULL);
        bool is_good =
            SSL_CTX_use_certificate(tls, certificate) == 1 && SSL_CTX_use_PrivateKey(tls, key) == 1;
        td_assert(is_good);
        X509_free(certificate);
        EVP_PKEY_free(key);
        BIO_free(texts[0]);
        BIO_free(texts[1]);
    }
    return tls;
}

/* ---- The writer ---- */

static void write_done(void *context, const struct td_client_reply *reply)
{
    struct bed *bed = context;
    bed->writes++;
    if (reply->code != TD_OK) {
        bed->write_failures++;
        (void)fprintf(stderr, "faults: %s\n", reply->err.message);
    }
}

static void bed_write(struct bed *bed, const char *method, const char *path, const char *body)
{
    const struct td_client_request request = {
        .method = td_str_from(method),
        .path = td_str_from(path),
        .content_type = strcmp(method, "PATCH") == 0 ? TD_STR("application/merge-patch+json")
                                                     : TD_STR("application/json"),
        .body = td_str_from(body),
    };
    (void)td_client_send(bed->writer, &request, write_done, bed);
}

static void slot_change(struct bed *bed, size_t slot)
{
    char path[128];
    char body[256];
    unsigned value = (unsigned)(bed_random(bed) % 1000000);
    (void)snprintf(path, sizeof(path), BED_CORE "/configmaps/slot-%zu", slot);
    if (!bed->has_slot[slot]) {
        (void)snprintf(body, sizeof(body),
                       "{\"metadata\":{\"name\":\"slot-%zu\"},\"data\":{\"value\":\"%06u\"}}", slot,
                       value);
        bed_write(bed, "POST", BED_CORE "/configmaps", body);
        bed->has_slot[slot] = true;
    } else if (!bed->is_steady && value % 4 == 0) {
        bed_write(bed, "DELETE", path, "");
        bed->has_slot[slot] = false;
    } else {
        (void)snprintf(body, sizeof(body), "{\"data\":{\"value\":\"%06u\"}}", value);
        bed_write(bed, "PATCH", path, body);
    }
}

static void churn_rings(struct td_timer *timer, void *context)
{
    struct bed *bed = context;
    if (!bed->is_quiet) {
        size_t slots = bed->is_steady ? BED_STEADY_SLOTS : BED_SLOTS;
        slot_change(bed, (size_t)(bed_random(bed) % slots));
    }
    td_timer_set(timer, BED_CHURN_MS * TD_MILLISECOND);
}

static void bed_settle(struct bed *bed, size_t writes)
{
    for (int i = 0; i < 1000 && bed->writes < writes; i++) {
        bed_turn(bed);
    }
    td_assert(bed->writes >= writes && bed->write_failures == 0);
}

static void bed_furnish(struct bed *bed)
{
    bed_write(bed, "POST", "/api/v1/namespaces", "{\"metadata\":{\"name\":\"" BED_NAMESPACE "\"}}");
    bed_settle(bed, 1);
    bed_write(bed, "POST", BED_CORE "/serviceaccounts", "{\"metadata\":{\"name\":\"watcher\"}}");
    bed_write(bed, "POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
              "{\"metadata\":{\"name\":\"watcher\"},\"roleRef\":{\"apiGroup\":"
              "\"rbac.authorization.k8s.io\",\"kind\":\"ClusterRole\",\"name\":\"cluster-admin\"},"
              "\"subjects\":[{\"kind\":\"ServiceAccount\",\"name\":\"watcher\",\"namespace\":"
              "\"" BED_NAMESPACE "\"}]}");
    for (size_t i = 0; i < BED_STEADY_SLOTS; i++) {
        slot_change(bed, i);
    }
    bed_settle(bed, 3 + BED_STEADY_SLOTS);
    bed->collection = td_store_find(bed->store, TD_STR("configmaps"));
    td_assert(bed->collection);
    bed->token = bed_token(bed, &bed->arena, 86400);
}

void bed_start(struct bed *bed, uint64_t seed)
{
    (void)signal(SIGPIPE, SIG_IGN);
    *bed = (struct bed){.random = seed * 2 + 1, .is_steady = true};
    struct td_error err = TD_ERROR_INIT;
    td_arena_init(&bed->arena, BED_TEXT_BYTES_MAX);
    td_pki_pair_init(&bed->ca);
    bool has_folder = temp_folder_make(&bed->folder) == 0;
    td_assert(has_folder);
    struct td_loop *loop = bed_add_loop(bed, 1, 0);
    const struct td_cluster_options cluster = {
        .loop = loop, .name = TD_STR("faults"), .listen = "127.0.0.1:0", .seed = seed};
    bed_require(td_cluster_new(&cluster, &bed->cluster, &err), &err);
    struct td_api *api = td_cluster_api(bed->cluster);
    bed->store = td_api_store(api);
    const char *path = temp_path(&bed->folder, &bed->arena, "admin.kubeconfig");
    bed_require(td_cluster_write_kubeconfig(bed->cluster, path, &err), &err);
    const struct td_kube_config_input input = {.kubeconfig = path};
    bed_require(td_kube_config_load(&bed->arena, &input, &bed->admin, &err), &err);
    bed->upstream = (struct link_upstream){
        .port = bed->admin.port,
        .with_certificate = upstream_context(&bed->admin),
        .without = upstream_context(NULL),
    };
    bed_require(td_pki_make_ca(TD_STR("links"), instant_now(0), &bed->ca, &err), &err);
    bed->tls = bed_issue_server(&bed->ca, td_buf_str(&bed->ca.certificate_pem));
    const struct td_transport_local_options local = {.api = api,
                                                     .loop = loop,
                                                     .user = TD_STR("writer"),
                                                     .group = TD_STR("system:masters"),
                                                     .user_agent = TD_STR("faults")};
    bed->writer = td_client_new(&(struct td_client_options){
        .loop = loop, .transport = td_transport_local_new(&local), .seed = seed});
    bed->churn = td_timer_new(loop, churn_rings, bed);
    bed_furnish(bed);
    td_timer_set(bed->churn, 0);
}

void bed_stop(struct bed *bed)
{
    td_timer_free(bed->churn);
    td_client_free(bed->writer);
    td_cluster_free(bed->cluster);
    SSL_CTX_free(bed->tls);
    upstream_free(bed->upstream.with_certificate);
    upstream_free(bed->upstream.without);
    td_pki_pair_done(&bed->ca);
    temp_folder_remove(&bed->folder);
    td_arena_done(&bed->arena);
    bed_drop_loop(bed);
}

/* ---- What the store has ---- */

void bed_look(struct bed *bed)
{
    if (bed->seen_version == td_store_version(bed->store)) {
        return;
    }
    bed->seen_version = td_store_version(bed->store);
    bed->object_count = 0;
    struct td_collection_iter iter;
    iter = td_collection_walk(bed->collection, TD_STR(BED_NAMESPACE));
    for (struct td_stored *at; (at = td_collection_iter_next(&iter));) {
        if (td_str_equal(at->name, TD_STR(BED_OTHER))) {
            continue;
        }
        td_assert(bed->object_count < BED_OBJECTS_MAX);
        struct bed_object *object = &bed->objects[bed->object_count++];
        (void)snprintf(object->name, sizeof(object->name), "%.*s", TD_STR_ARG(at->name));
        (void)snprintf(object->uid, sizeof(object->uid), "%.*s", TD_STR_ARG(at->uid));
        (void)snprintf(object->version, sizeof(object->version), "%llu",
                       (unsigned long long)at->version);
    }
}

td_str bed_list_text(struct bed *bed, struct td_arena *arena)
{
    td_auto_buf text;
    td_buf_init(&text, BED_TEXT_BYTES_MAX);
    (void)td_buf_append_format(&text,
                               "{\"kind\":\"ConfigMapList\",\"apiVersion\":\"v1\",\"metadata\":{"
                               "\"resourceVersion\":\"%llu\"},\"items\":[",
                               (unsigned long long)td_store_version(bed->store));
    struct td_collection_iter iter;
    iter = td_collection_walk(bed->collection, TD_STR(BED_NAMESPACE));
    const char *comma = "";
    for (struct td_stored *at; (at = td_collection_iter_next(&iter));) {
        if (!td_str_equal(at->name, TD_STR(BED_OTHER))) {
            (void)td_buf_append_format(&text, "%s%.*s", comma, TD_STR_ARG(at->json));
            comma = ",";
        }
    }
    (void)td_buf_append(&text, TD_STR("]}\n"));
    return td_arena_copy_str(arena, td_buf_str(&text));
}

td_str bed_token(struct bed *bed, struct td_arena *arena, int64_t seconds)
{
    struct td_collection *accounts = td_store_find(bed->store, TD_STR("serviceaccounts"));
    const struct td_stored *account =
        td_collection_get(accounts, TD_STR(BED_NAMESPACE), TD_STR("watcher"));
    td_assert(account);
    const struct td_token_request request = {
        .ns = account->ns,
        .name = account->name,
        .uid = account->uid,
        .expires_unix_seconds = instant_now(seconds).unix_seconds,
    };
    td_auto_buf token;
    td_buf_init(&token, BED_TEXT_BYTES_MAX);
    struct td_error err = TD_ERROR_INIT;
    bed_require(
        td_auth_issue_token(td_api_auth(td_cluster_api(bed->cluster)), &request, &token, &err),
        &err);
    return td_arena_copy_str(arena, td_buf_str(&token));
}
