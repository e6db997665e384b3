#include "control/admission/webhook.h"

#include <openssl/ssl.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/os/loop.h"
#include "base/timefmt.h"
#include "control/hook_private.h"
#include "control/sight.h"

/* With nobody listening: a name that only a local cluster of this process knows. */
#define HOOK_LOCAL_URL "https://localhost/tandem"

struct td_instant hook_certificate_now(const struct td_hook *hook)
{
    struct td_clock real = td_clock_real(); /* certificates are checked by other programs' clocks */
    const struct td_clock *clock = hook->options.certificate_clock;
    return td_time_to_instant(td_clock_wall(clock ? clock : &real));
}

static void hook_copy_texts(struct td_hook *hook)
{
    struct td_hook_options *options = &hook->options;
    td_str *texts[] = {&options->namespace, &options->service,    &options->secret,
                       &options->labels,    &options->lease_name, &options->lease_namespace};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        *texts[i] = td_arena_copy_str(&hook->texts, *texts[i]);
    }
    if (options->listen) {
        options->listen = td_arena_copy_str(&hook->texts, td_str_from(options->listen)).ptr;
    }
    td_str *exempt = td_arena_array(&hook->texts, td_str, options->exempt_count + 1);
    for (size_t i = 0; i < options->exempt_count; i++) {
        exempt[i] = td_arena_copy_str(&hook->texts, options->exempt_namespaces[i]);
    }
    options->exempt_namespaces = exempt;
}

/* "https://127.0.0.1:8000/", or that of the Service. */
static td_str hook_make_url(struct td_hook *hook)
{
    const struct td_hook_options *options = &hook->options;
    if (!options->listen) {
        return TD_STR(HOOK_LOCAL_URL);
    }
    if (!options->is_by_url) {
        return td_arena_format(&hook->texts, "https://%.*s.%.*s.svc:443/",
                               TD_STR_ARG(options->service), TD_STR_ARG(options->namespace));
    }
    td_str listen = td_str_from(options->listen);
    size_t colon = listen.len;
    while (colon > 0 && listen.ptr[colon - 1] != ':') {
        colon--;
    }
    return td_arena_format(&hook->texts, "https://%.*s%u/",
                           TD_STR_ARG(td_str_slice(listen, 0, colon)),
                           (unsigned)hook_server_port(hook->server));
}

static int hook_listen(struct td_hook *hook, struct td_error *err)
{
    struct ssl_ctx_st *tls;
    int code = hook_identity_first(hook, &tls, err);
    if (code != TD_OK) {
        return code;
    }
    code = hook_server_new(hook, tls, &hook->server, err);
    SSL_CTX_free(tls);
    return code == TD_OK ? hook_identity_new(hook, &hook->identity, err) : code;
}

static void hook_settled(void *context)
{
    struct td_hook *hook = context;
    hook_server_retry(hook->server);
}

int td_hook_new(const struct td_hook_options *options, struct td_hook **ret, struct td_error *err)
{
    struct td_hook *hook = td_alloc_zero(1, sizeof(*hook));
    hook->options = *options;
    td_arena_init(&hook->texts, TD_TREE_ARENA_BYTES_MAX);
    td_arena_init(&hook->turn, TD_HOOK_REVIEW_BYTES_MAX);
    hook_copy_texts(hook);
    hook_tallies_init(hook);
    hook->probe = hook_probe_new(hook);
    int code = options->listen ? hook_listen(hook, err) : TD_OK;
    if (code == TD_OK && options->registers) {
        code = hook_registration_new(hook, &hook->registration, err);
    }
    if (code != TD_OK) {
        td_hook_free(hook);
        return code;
    }
    hook->url = hook_make_url(hook);
    hook->index = hook_index_new(options->control.sight, options->get_sizes != NULL);
    hook->siblings = hook_siblings_new(hook);
    td_sight_on_settled(options->control.sight, hook_settled, hook);
    *ret = hook;
    return TD_OK;
}

void td_hook_start(struct td_hook *hook)
{
    hook_identity_start(hook->identity);
    hook_registration_start(hook->registration);
    hook_probe_start(hook->probe);
}

void td_hook_stop(struct td_hook *hook, void (*done)(void *context), void *context)
{
    hook_probe_stop(hook->probe);
    hook_registration_remove(hook->registration, done, context);
}

void td_hook_free(struct td_hook *hook)
{
    if (!hook) {
        return;
    }
    hook_probe_free(hook->probe);
    hook_registration_free(hook->registration);
    hook_identity_free(hook->identity);
    hook_server_free(hook->server);
    hook_index_free(hook->index);
    hook_siblings_free(hook->siblings);
    td_arena_done(&hook->turn);
    td_arena_done(&hook->texts);
    td_free(hook);
}

td_str td_hook_url(const struct td_hook *hook)
{
    return hook->url;
}

bool td_hook_is_proved(struct td_hook *hook, td_duration since)
{
    return hook_probe_is_proved(hook->probe, since);
}

td_str td_hook_trouble(const struct td_hook *hook)
{
    return hook_probe_trouble(hook->probe);
}
