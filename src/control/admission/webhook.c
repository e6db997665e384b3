/*
 * The webhook, put together from its parts and driven by requests, not by passes.
 *
 * What starts it: td_webhook_new listens with a certificate at once, so that an address in use is
 * known before anything else is done; td_webhook_start then lets it keep its certificate in the
 * Secret (webhook_identity.c), register itself (webhook_register.c) and probe whether pods are
 * really mutated (webhook_probe.c). Each replica does all of it; none leads.
 *
 * Its states are those of its parts. A certificate is made, shared by the Secret, and renewed in
 * time. A registration is absent, written, or edited by another hand and then written again. The
 * probe has proved nothing, proved that pods are mutated, or found a problem, which every VPA's
 * status then tells. A review is answered from the informers in the turn in which it arrives; where
 * an owner, a scale or a list of siblings is still being asked for it waits for the answer (the
 * informers' `settled`), up to its deadline, and is then admitted as it is.
 *
 * What it may write: its Secret, the two webhook configurations, its status lease. Pods, VPAs, HPAs
 * and Hvpas are changed only by what a review answers; the probe's pod is a dry run.
 *
 * How it stops: the probe ends, a registration by URL is removed, and requests are answered until
 * then. A registration by Service stays, since other replicas serve it.
 */
#include "control/admission/webhook.h"

#include <openssl/ssl.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/timefmt.h"
#include "control/admission/webhook_private.h"
#include "control/informers/informers.h"

/* Without a server: a name that only a local cluster of this process knows. */
#define WEBHOOK_LOCAL_URL "https://localhost/tandem"

struct td_instant webhook_certificate_now(const struct td_webhook *webhook)
{
    struct td_clock real = td_clock_real(); /* certificates are checked by other programs' clocks */
    const struct td_clock *clock = webhook->options.certificate_clock;
    return td_time_to_instant(td_clock_wall(clock ? clock : &real));
}

static void webhook_copy_texts(struct td_webhook *webhook)
{
    struct td_webhook_options *options = &webhook->options;
    td_str *texts[] = {&options->namespace,    &options->service,    &options->secret,
                       &options->labels,       &options->lease_name, &options->lease_namespace,
                       &options->client_ca_pem};
    for (size_t i = 0; i < TD_COUNT(texts); i++) {
        *texts[i] = td_arena_copy_str(&webhook->texts, *texts[i]);
    }
    if (options->listen) {
        options->listen = td_arena_copy_str(&webhook->texts, td_str_from(options->listen)).ptr;
    }
    td_str *exempt = td_arena_array(&webhook->texts, td_str, options->exempt_count + 1);
    for (size_t i = 0; i < options->exempt_count; i++) {
        exempt[i] = td_arena_copy_str(&webhook->texts, options->exempt_namespaces[i]);
    }
    options->exempt_namespaces = exempt;
}

/* "https://127.0.0.1:8000/", or that of the Service. */
static td_str webhook_make_url(struct td_webhook *webhook)
{
    const struct td_webhook_options *options = &webhook->options;
    if (!options->listen) {
        return TD_STR(WEBHOOK_LOCAL_URL);
    }
    if (!options->is_by_url) {
        return td_arena_format(&webhook->texts, "https://%.*s.%.*s.svc:443/",
                               TD_STR_ARG(options->service), TD_STR_ARG(options->namespace));
    }
    td_str listen = td_str_from(options->listen);
    size_t colon = listen.len;
    while (colon > 0 && listen.ptr[colon - 1] != ':') {
        colon--;
    }
    return td_arena_format(&webhook->texts, "https://%.*s%u/",
                           TD_STR_ARG(td_str_slice(listen, 0, colon)),
                           (unsigned)webhook_server_port(webhook->server));
}

static int webhook_listen(struct td_webhook *webhook, struct td_error *err)
{
    struct ssl_ctx_st *tls;
    int code = webhook_identity_first(webhook, &tls, err);
    if (code != TD_OK) {
        return code;
    }
    code = webhook_server_new(webhook, tls, &webhook->server, err);
    SSL_CTX_free(tls);
    return code == TD_OK ? webhook_identity_new(webhook, &webhook->identity, err) : code;
}

static void webhook_settled(void *context)
{
    struct td_webhook *webhook = context;
    webhook_server_retry(webhook->server);
}

int td_webhook_new(const struct td_webhook_options *options, struct td_webhook **ret,
                   struct td_error *err)
{
    struct td_webhook *webhook = td_alloc_zero(1, sizeof(*webhook));
    webhook->options = *options;
    td_arena_init(&webhook->texts, TD_TREE_ARENA_BYTES_MAX);
    td_arena_init(&webhook->turn, TD_WEBHOOK_REVIEW_BYTES_MAX);
    webhook_copy_texts(webhook);
    webhook_metrics_init(webhook);
    webhook->probe = webhook_probe_new(webhook);
    int code = options->listen ? webhook_listen(webhook, err) : TD_OK;
    if (code == TD_OK && options->registers) {
        code = webhook_registration_new(webhook, &webhook->registration, err);
    }
    if (code != TD_OK) {
        td_webhook_free(webhook);
        return code;
    }
    webhook->url = webhook_make_url(webhook);
    webhook->index = webhook_index_new(options->control.informers, options->get_sizes != NULL);
    webhook->siblings = webhook_siblings_new(webhook);
    td_informers_on_settled(options->control.informers, webhook_settled, webhook);
    *ret = webhook;
    return TD_OK;
}

void td_webhook_start(struct td_webhook *webhook)
{
    webhook_identity_start(webhook->identity);
    webhook_registration_start(webhook->registration);
    webhook_probe_start(webhook->probe);
}

void td_webhook_stop(struct td_webhook *webhook, void (*done)(void *context), void *context)
{
    webhook_probe_stop(webhook->probe);
    webhook_registration_remove(webhook->registration, done, context);
}

void td_webhook_free(struct td_webhook *webhook)
{
    if (!webhook) {
        return;
    }
    webhook_probe_free(webhook->probe);
    webhook_registration_free(webhook->registration);
    webhook_identity_free(webhook->identity);
    webhook_server_free(webhook->server);
    webhook_index_free(webhook->index);
    webhook_siblings_free(webhook->siblings);
    td_arena_done(&webhook->turn);
    td_arena_done(&webhook->texts);
    td_free(webhook);
}

td_str td_webhook_url(const struct td_webhook *webhook)
{
    return webhook->url;
}

bool td_webhook_is_proved(struct td_webhook *webhook, td_duration since)
{
    return webhook_probe_is_proved(webhook->probe, since);
}

td_str td_webhook_problem(const struct td_webhook *webhook)
{
    return webhook_probe_problem(webhook->probe);
}
