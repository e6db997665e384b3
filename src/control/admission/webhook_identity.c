/*
 * Authority and serving certificate, in a Secret that all replicas share. The first replica makes
 * it; the others, and all later, read it by a watch and serve what it says from the next connection
 * on. Renewal is a write with the version that was read, so of two replicas that renew at one time
 * one wins and the other reads.
 *
 * A request never meets a certificate that its sender cannot trust yet:
 *   1. At two thirds of its life the certificate is made anew by the same authority.
 *   2. At two thirds of the authority's life a new authority goes to the front of the bundle; the
 *      old one stays behind it, and what is served is still signed by the old one.
 *   3. When API servers have had time to read the new bundle, the certificate is made anew, signed
 *      by the new authority.
 *   4. A day later every replica has long served that one, and the old authority is dropped.
 * Which authority signed follows from the times: the newest there was.
 *
 * With --webhook-certificate-issued another program (cert-manager) writes the Secret and renews it:
 * it is served as it comes, and never written.
 */
#include <openssl/ssl.h>

#include "base/alloc.h"
#include "base/base64.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/os/log.h"
#include "base/os/loop.h"
#include "base/pki/pki.h"
#include "base/text.h"
#include "control/admission/webhook_private.h"
#include "control/rights.h"
#include "kube/cache/cache.h"
#include "kube/client/client.h"
#include "kube/client/verbs.h"

#define IDENTITY_LOOK TD_MINUTE           /* between two looks at the age of certificates */
#define IDENTITY_RETRY (5 * TD_SECOND)    /* after a write that failed */
#define IDENTITY_SETTLE_SECONDS 600       /* until every API server has a new bundle */
#define IDENTITY_OVERLAP_SECONDS 86400    /* until no replica serves the old certificate */
#define IDENTITY_NAMES "tandem.dev/names" /* annotation: what the certificate is for */
#define IDENTITY_END "-----END CERTIFICATE-----\n"

struct identity_secret {
    struct td_cache_head head;
    td_str data;        /* JSON */
    td_str annotations; /* JSON */
};

/* What the Secret holds. */
struct identity_material {
    td_str bundle; /* authorities, the newest first */
    td_str bundle_key;
    td_str certificate;
    td_str key;
    td_str names; /* "a,b" */
};

enum identity_step {
    IDENTITY_FINE,
    IDENTITY_MAKE,
    IDENTITY_AUTHORITY,
    IDENTITY_SERVE,
    IDENTITY_DROP
};

struct webhook_identity {
    struct td_webhook *webhook;
    struct td_cache *cache;
    struct td_timer *timer;
    struct td_client_call *call;
    bool is_reported;   /* of a change that was not looked at yet */
    td_str names;       /* of ours, owned */
    td_str bundle;      /* in use, owned; empty: none yet */
    td_str certificate; /* served, owned */
    bool is_waiting;    /* told that the Secret of another program has nothing of use */
};

/* ---- Names ---- */

static bool identity_lists(td_str list, td_str word)
{
    while (list.len > 0) {
        if (td_str_equal(td_rights_word(&list), word)) {
            return true;
        }
    }
    return false;
}

/* Both lists, each name once. */
static td_str identity_union(struct td_arena *arena, td_str first, td_str second)
{
    td_str both = first;
    while (second.len > 0) {
        td_str word = td_rights_word(&second);
        if (word.len > 0 && !identity_lists(both, word)) {
            both = td_arena_format(arena, "%.*s%s%.*s", TD_STR_ARG(both), both.len > 0 ? "," : "",
                                   TD_STR_ARG(word));
        }
    }
    return both;
}

static bool identity_is_ip(td_str name)
{
    bool is_six = td_str_find(name, ':', 0) < name.len;
    for (size_t i = 0; !is_six && i < name.len; i++) {
        if (name.ptr[i] != '.' && (name.ptr[i] < '0' || name.ptr[i] > '9')) {
            return false;
        }
    }
    return name.len > 0;
}

/* The host of "host:port", without brackets. */
static td_str identity_host(const char *listen)
{
    td_str text = td_str_from(listen);
    size_t colon = text.len;
    while (colon > 0 && text.ptr[colon - 1] != ':') {
        colon--;
    }
    td_str host = td_str_slice(text, 0, colon > 0 ? colon - 1 : 0);
    return td_str_starts_with(host, TD_STR("[")) ? td_str_slice(host, 1, host.len - 1) : host;
}

static td_str identity_own_names(struct td_arena *arena, const struct td_webhook *webhook)
{
    const struct td_webhook_options *options = &webhook->options;
    td_str fixed = td_arena_format(arena, "%.*s.%.*s.svc,localhost,127.0.0.1,::1",
                                   TD_STR_ARG(options->service), TD_STR_ARG(options->namespace));
    td_str host = identity_host(options->listen);
    return options->is_by_url ? identity_union(arena, fixed, host) : fixed;
}

/* ---- Making ---- */

static int identity_issue(const struct identity_material *by, td_str names, struct td_instant now,
                          struct td_pki_pair *ret, struct td_error *err)
{
    td_str dns[TD_WEBHOOK_NAMES_MAX] = {{.ptr = NULL}};
    td_str ips[TD_WEBHOOK_NAMES_MAX] = {{.ptr = NULL}};
    struct td_pki_names wanted = {.dns_names = dns, .ip_addresses = ips};
    while (names.len > 0 && wanted.dns_count + wanted.ip_count < TD_WEBHOOK_NAMES_MAX) {
        td_str name = td_rights_word(&names);
        if (identity_is_ip(name)) {
            ips[wanted.ip_count++] = name;
        } else if (name.len > 0) {
            dns[wanted.dns_count++] = name;
        }
    }
    wanted.common_name = wanted.dns_count > 0 ? dns[0] : TD_STR("tandem");
    return td_pki_issue_server(by->bundle, by->bundle_key, &wanted, now, ret, err);
}

static int identity_make_server(struct td_arena *arena, struct identity_material *material,
                                struct td_instant now, struct td_error *err)
{
    td_auto_pki_pair pair;
    td_pki_pair_init(&pair);
    int code = identity_issue(material, material->names, now, &pair, err);
    if (code == TD_OK) {
        material->certificate = td_arena_copy_str(arena, td_buf_str(&pair.certificate_pem));
        material->key = td_arena_copy_str(arena, td_buf_str(&pair.key_pem));
    }
    return code;
}

/* The part of a bundle that its first certificate is. */
static td_str identity_newest(td_str bundle)
{
    td_str end = TD_STR(IDENTITY_END);
    for (size_t i = 0; i + end.len <= bundle.len; i++) {
        if (memcmp(bundle.ptr + i, end.ptr, end.len) == 0) {
            return td_str_slice(bundle, 0, i + end.len);
        }
    }
    return bundle;
}

static int identity_make_authority(struct td_arena *arena, struct identity_material *material,
                                   struct td_instant now, struct td_error *err)
{
    td_auto_pki_pair pair;
    td_pki_pair_init(&pair);
    int code = td_pki_make_ca(TD_STR("tandem webhook"), now, &pair, err);
    if (code == TD_OK) {
        td_str old = identity_newest(material->bundle);
        material->bundle = td_arena_format(
            arena, "%.*s%.*s", TD_STR_ARG(td_buf_str(&pair.certificate_pem)), TD_STR_ARG(old));
        material->bundle_key = td_arena_copy_str(arena, td_buf_str(&pair.key_pem));
    }
    return code;
}

int webhook_identity_first(struct td_webhook *webhook, struct ssl_ctx_st **ret,
                           struct td_error *err)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct identity_material material = {.names = identity_own_names(&arena, webhook)};
    struct td_instant now = webhook_certificate_now(webhook);
    int code = identity_make_authority(&arena, &material, now, err);
    if (code == TD_OK) {
        code = identity_make_server(&arena, &material, now, err);
    }
    const struct td_pki_server server = {.certificate_pem = material.certificate,
                                         .key_pem = material.key,
                                         .client_ca_pem = webhook->options.client_ca_pem};
    return code == TD_OK ? td_pki_server_context(&server, ret, err) : code;
}

/* ---- Judging ---- */

static int64_t identity_age(const struct td_pki_validity *validity, struct td_instant now)
{
    return now.unix_seconds - validity->not_before.unix_seconds - TD_PKI_BACKDATE_SECONDS;
}

/* Do API servers trust a new authority by now: have they been told, and had time to hear? */
static bool identity_is_settled(const struct webhook_identity *identity,
                                const struct identity_material *material,
                                const struct td_pki_validity *authority, struct td_instant now)
{
    return identity_age(authority, now) >= IDENTITY_SETTLE_SECONDS &&
           td_str_equal(identity->bundle, material->bundle) &&
           webhook_registration_is_current(identity->webhook->registration);
}

/* Two thirds of its life are over. */
static bool identity_is_due(const struct td_pki_validity *validity, struct td_instant now)
{
    int64_t life = validity->not_after.unix_seconds - validity->not_before.unix_seconds;
    return now.unix_seconds >= validity->not_before.unix_seconds + life / 3 * 2;
}

static bool identity_names_are_there(td_str there, td_str wanted)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    return identity_union(&arena, there, wanted).len == there.len;
}

static enum identity_step identity_judge(const struct webhook_identity *identity,
                                         const struct identity_material *material,
                                         struct td_instant now)
{
    struct td_pki_validity authority;
    struct td_pki_validity served;
    if (td_pki_check_pair(material->bundle, material->bundle_key, NULL) != TD_OK ||
        td_pki_check_pair(material->certificate, material->key, NULL) != TD_OK ||
        td_pki_validity_of(material->bundle, &authority, NULL) != TD_OK ||
        td_pki_validity_of(material->certificate, &served, NULL) != TD_OK ||
        authority.not_after.unix_seconds <= now.unix_seconds) {
        return IDENTITY_MAKE;
    }
    bool is_older = served.not_before.unix_seconds < authority.not_before.unix_seconds;
    if (identity_is_due(&authority, now)) {
        return IDENTITY_AUTHORITY;
    }
    if (is_older ? identity_is_settled(identity, material, &authority, now) ||
                       served.not_after.unix_seconds <= now.unix_seconds
                 : identity_is_due(&served, now) ||
                       !identity_names_are_there(material->names, identity->names)) {
        return IDENTITY_SERVE;
    }
    bool has_old = identity_newest(material->bundle).len < material->bundle.len;
    return has_old && !is_older && identity_age(&served, now) >= IDENTITY_OVERLAP_SECONDS
               ? IDENTITY_DROP
               : IDENTITY_FINE;
}

/* ---- The Secret as text ---- */

static td_str identity_decode(struct td_arena *arena, const struct td_json *data, td_str key)
{
    td_str bytes = TD_STR_EMPTY;
    return td_base64_read(arena, td_json_get_str(data, key, TD_STR_EMPTY), TD_BASE64_STANDARD,
                          &bytes)
               ? bytes
               : TD_STR_EMPTY;
}

static void identity_read(struct td_arena *arena, const struct identity_secret *secret,
                          struct identity_material *ret)
{
    struct td_json *data = NULL;
    struct td_json *annotations = NULL;
    const struct td_json_options options = {.copy_strings = true};
    (void)td_json_parse(arena, secret->data, &options, &data, NULL); /* NULL: has no members */
    (void)td_json_parse(arena, secret->annotations, &options, &annotations, NULL);
    *ret = (struct identity_material){
        .bundle = identity_decode(arena, data, TD_STR("caCert.pem")),
        .bundle_key = identity_decode(arena, data, TD_STR("caKey.pem")),
        .certificate = identity_decode(arena, data, TD_STR("serverCert.pem")),
        .key = identity_decode(arena, data, TD_STR("serverKey.pem")),
        .names = td_json_get_str(annotations, TD_STR(IDENTITY_NAMES), TD_STR_EMPTY),
    };
}

static void identity_encode(struct td_arena *arena, struct td_json *data, td_str key, td_str bytes)
{
    td_auto_buf text = td_buf_capped(2 * TD_PEM_BYTES_MAX);
    td_base64_write(bytes, TD_BASE64_STANDARD, &text);
    td_json_set_str(arena, data, key, td_arena_copy_str(arena, td_buf_str(&text)));
}

static struct td_json *identity_object(struct td_arena *arena,
                                       const struct webhook_identity *identity,
                                       const struct identity_material *material, td_str version)
{
    const struct td_webhook_options *options = &identity->webhook->options;
    struct td_json *object = td_json_new_object(arena);
    td_json_set_str(arena, object, TD_STR("apiVersion"), TD_STR("v1"));
    td_json_set_str(arena, object, TD_STR("kind"), TD_STR("Secret"));
    struct td_json *metadata = td_json_ensure_object(arena, object, TD_STR("metadata"));
    td_json_set_str(arena, metadata, TD_STR("name"), options->secret);
    td_json_set_str(arena, metadata, TD_STR("namespace"), options->namespace);
    if (version.len > 0) {
        td_json_set_str(arena, metadata, TD_STR("resourceVersion"), version);
    } else {
        td_json_set_str(arena, object, TD_STR("type"), TD_STR("Opaque"));
    }
    struct td_json *annotations = td_json_ensure_object(arena, metadata, TD_STR("annotations"));
    td_json_set_str(arena, annotations, TD_STR(IDENTITY_NAMES), material->names);
    struct td_json *data = td_json_ensure_object(arena, object, TD_STR("data"));
    identity_encode(arena, data, TD_STR("caCert.pem"), material->bundle);
    identity_encode(arena, data, TD_STR("caKey.pem"), material->bundle_key);
    identity_encode(arena, data, TD_STR("serverCert.pem"), material->certificate);
    identity_encode(arena, data, TD_STR("serverKey.pem"), material->key);
    return object;
}

/* ---- Writing ---- */

static void identity_say(struct webhook_identity *identity, const char *message)
{
    td_log_line(identity->webhook->options.control.log, TD_LOG_WARN,
                "cannot store the webhook's certificate in its Secret",
                TD_LOG_S("namespace", identity->webhook->options.namespace),
                TD_LOG_S("secret", identity->webhook->options.secret), TD_LOG_C("error", message));
}

/* What was written comes back by the watch. */
static void identity_written(void *context, const struct td_client_reply *reply)
{
    struct webhook_identity *identity = context;
    identity->call = NULL;
    if (reply->code != TD_OK && reply->code != TD_EXISTS && reply->code != TD_CONFLICT) {
        identity_say(identity, reply->err.message);
    }
    td_timer_set_machine(identity->timer, identity->is_reported
                                              ? 0
                                              : IDENTITY_RETRY); /* should the watch not tell */
}

static int identity_send(struct webhook_identity *identity, struct td_arena *arena,
                         const struct identity_material *material, td_str version,
                         struct td_error *err)
{
    const struct td_webhook_options *options = &identity->webhook->options;
    td_auto_buf body = td_buf_capped(TD_OBJECT_BYTES_MAX);
    td_json_write(identity_object(arena, identity, material, version),
                  &(struct td_json_format){.indent = 0}, &body);
    struct td_api_path path = {
        .version = TD_STR("v1"), .namespace = options->namespace, .plural = TD_STR("secrets")};
    struct td_client_request request;
    int code = td_buf_check(&body, "the secret of the webhook", err);
    if (code == TD_OK && version.len > 0) {
        path.name = options->secret;
        code = td_verb_patch(arena, &path, TD_PATCH_MERGE, td_buf_str(&body), NULL, &request, err);
    } else if (code == TD_OK) {
        code = td_verb_create(arena, &path, td_buf_str(&body), NULL, &request, err);
    }
    if (code == TD_OK) {
        request.flow = options->control.flow;
        identity->call =
            td_client_send(options->control.client, &request, identity_written, identity);
    }
    return code;
}

static int identity_take(struct webhook_identity *identity, struct td_arena *arena,
                         enum identity_step step, struct identity_material *material,
                         struct td_error *err)
{
    struct td_instant now = webhook_certificate_now(identity->webhook);
    switch (step) {
    case IDENTITY_AUTHORITY:
        return identity_make_authority(arena, material, now, err);
    case IDENTITY_SERVE:
        material->names = identity_union(arena, material->names, identity->names);
        return identity_make_server(arena, material, now, err);
    case IDENTITY_DROP:
        material->bundle = identity_newest(material->bundle);
        return TD_OK;
    case IDENTITY_MAKE:
    case IDENTITY_FINE:
        break;
    }
    *material = (struct identity_material){.names = identity->names};
    int code = identity_make_authority(arena, material, now, err);
    return code == TD_OK ? identity_make_server(arena, material, now, err) : code;
}

/* ---- Using ---- */

/* Serve it from the next connection on, and have it trusted. */
static void identity_use(struct webhook_identity *identity,
                         const struct identity_material *material)
{
    struct td_webhook *webhook = identity->webhook;
    struct ssl_ctx_st *tls;
    struct td_error err = TD_ERROR_INIT;
    const struct td_pki_server server = {.certificate_pem = material->certificate,
                                         .key_pem = material->key,
                                         .client_ca_pem = webhook->options.client_ca_pem};
    if (!td_str_equal(material->certificate, identity->certificate)) {
        if (td_pki_server_context(&server, &tls, &err) != TD_OK) {
            identity_say(identity, err.message);
            return;
        }
        webhook_server_set_tls(webhook->server, tls);
        SSL_CTX_free(tls);
        td_text_set(&identity->certificate, material->certificate);
        struct td_pki_validity validity;
        if (td_pki_validity_of(material->certificate, &validity, NULL) == TD_OK) {
            td_metric_set(webhook->metrics.expiry, (double)validity.not_after.unix_seconds);
        }
    }
    if (!td_str_equal(material->bundle, identity->bundle)) {
        td_text_set(&identity->bundle, material->bundle);
        webhook_registration_check(webhook->registration);
    }
}

/* What another program issued, as a Secret of the type kubernetes.io/tls has it. */
static void identity_use_issued(struct webhook_identity *identity, struct td_arena *arena,
                                const struct identity_secret *secret)
{
    const struct td_webhook_options *options = &identity->webhook->options;
    struct td_json *data = NULL;
    struct td_error err = TD_ERROR_INIT;
    const struct td_json_options copied = {.copy_strings = true};
    (void)td_json_parse(arena, secret ? secret->data : TD_STR_EMPTY, &copied, &data, NULL);
    const struct identity_material material = {
        .bundle = identity_decode(arena, data, TD_STR("ca.crt")),
        .certificate = identity_decode(arena, data, TD_STR("tls.crt")),
        .key = identity_decode(arena, data, TD_STR("tls.key")),
    };
    bool is_useful = material.bundle.len > 0 &&
                     td_pki_check_pair(material.certificate, material.key, &err) == TD_OK;
    if (is_useful) {
        identity->is_waiting = false;
        identity_use(identity, &material);
    } else if (!identity->is_waiting) {
        identity->is_waiting = true;
        td_log_line(options->control.log, TD_LOG_WARN,
                    "waiting for the webhook's certificate: its Secret needs tls.crt, tls.key and "
                    "ca.crt",
                    TD_LOG_S("namespace", options->namespace), TD_LOG_S("secret", options->secret),
                    TD_LOG_C("error", secret ? err.message : "not found"));
    }
}

static void identity_look(struct webhook_identity *identity)
{
    const struct td_webhook_options *options = &identity->webhook->options;
    if (identity->call || !td_cache_is_synced(identity->cache)) {
        return; /* is_reported stays: looked at when the answer has come */
    }
    identity->is_reported = false;
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    const struct identity_secret *secret =
        td_cache_get(identity->cache, options->namespace, options->secret);
    if (options->is_issued) {
        identity_use_issued(identity, &arena, secret);
        return;
    }
    struct identity_material material = {.names = TD_STR_EMPTY};
    if (secret) {
        identity_read(&arena, secret, &material);
    }
    enum identity_step step =
        identity_judge(identity, &material, webhook_certificate_now(identity->webhook));
    if (step != IDENTITY_MAKE) {
        identity_use(identity, &material);
    }
    td_timer_set_machine(identity->timer, IDENTITY_LOOK);
    struct td_error err = TD_ERROR_INIT;
    td_str version = secret ? secret->head.version : TD_STR_EMPTY;
    if (step != IDENTITY_FINE &&
        (identity_take(identity, &arena, step, &material, &err) != TD_OK ||
         identity_send(identity, &arena, &material, version, &err) != TD_OK)) {
        identity_say(identity, err.message);
        td_timer_set_machine(identity->timer, IDENTITY_RETRY);
    }
}

static void identity_rings(struct td_timer *timer, void *context)
{
    (void)timer;
    identity_look(context);
}

/* Not from inside a handler: the cache must not change there. */
static void identity_soon(struct webhook_identity *identity)
{
    identity->is_reported = true;
    td_timer_set_machine(identity->timer, 0);
}

static void identity_added(void *context, const void *object)
{
    (void)object;
    identity_soon(context);
}

static void identity_changed(void *context, const void *before, const void *after)
{
    (void)before;
    (void)after;
    identity_soon(context);
}

static void identity_synced(void *context)
{
    identity_soon(context);
}

int webhook_identity_new(struct td_webhook *webhook, struct webhook_identity **ret,
                         struct td_error *err)
{
    static const struct td_cache_field fields[] = {
        {"data", TD_CACHE_RAW, offsetof(struct identity_secret, data)},
        {"metadata.annotations", TD_CACHE_RAW, offsetof(struct identity_secret, annotations)},
    };
    static const struct td_cache_handler handler = {.added = identity_added,
                                                    .changed = identity_changed,
                                                    .deleted = identity_added,
                                                    .synced = identity_synced};
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    const struct td_webhook_options *options = &webhook->options;
    const struct td_cache_options cache = {
        .loop = options->control.loop,
        .client = options->control.client,
        .flow = options->control.flow,
        .version = TD_STR("v1"),
        .plural = TD_STR("secrets"),
        .namespace = options->namespace,
        .field_selector =
            td_arena_format(&arena, "metadata.name=%.*s", TD_STR_ARG(options->secret)),
        .fields = fields,
        .field_count = sizeof(fields) / sizeof(fields[0]),
        .struct_bytes = sizeof(struct identity_secret),
        .seed = options->control.seed,
    };
    struct webhook_identity *identity = td_alloc_zero(1, sizeof(*identity));
    int code = td_cache_new(&cache, &identity->cache, err);
    if (code != TD_OK) {
        td_free(identity);
        return code;
    }
    identity->webhook = webhook;
    identity->names = td_text_copy(identity_own_names(&arena, webhook));
    identity->timer = td_timer_new(options->control.loop, identity_rings, identity);
    td_cache_subscribe(identity->cache, &handler, identity);
    *ret = identity;
    return TD_OK;
}

void webhook_identity_start(struct webhook_identity *identity)
{
    if (identity) {
        td_cache_start(identity->cache);
    }
}

void webhook_identity_free(struct webhook_identity *identity)
{
    if (!identity) {
        return;
    }
    td_client_cancel(identity->call);
    td_cache_free(identity->cache);
    td_timer_free(identity->timer);
    td_text_free(identity->names);
    td_text_free(identity->bundle);
    td_text_free(identity->certificate);
    td_free(identity);
}

td_str webhook_identity_bundle(const struct webhook_identity *identity)
{
    return identity ? identity->bundle : TD_STR_EMPTY;
}
