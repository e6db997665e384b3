/* A stack is what a controller has: a kubeconfig, a transport, a client and a cache over it. */
#include <stdio.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/timefmt.h"
#include "faults_bed.h"
#include "kube/client/transport_http.h"
#include "local/store/store.h"

#define STACK_TEXT_BYTES_MAX ((size_t)64 << 10)

struct item {
    struct td_cache_head head;
    td_str value;
};

/* ---- What the cache tells ---- */

static void stack_added(void *context, const void *object)
{
    (void)object;
    ((struct stack *)context)->reported++;
}

static void stack_changed(void *context, const void *before, const void *after)
{
    struct stack *stack = context;
    const struct item *from = before;
    const struct item *to = after;
    stack->reported++;
    stack->lies += td_str_equal(from->head.version, to->head.version) &&
                   td_str_equal(from->head.uid, to->head.uid);
}

/* The store is ahead of every cache, so what it still has was not deleted. */
static void stack_deleted(void *context, const void *object)
{
    struct stack *stack = context;
    const struct item *item = object;
    stack->reported++;
    const struct td_stored *stored =
        td_collection_get(stack->bed->collection, item->head.namespace, item->head.name);
    stack->lies += stored && td_str_equal(stored->uid, item->head.uid);
}

/* ---- How it logs in ---- */

void stack_write_file(struct stack *stack, size_t file, td_str content)
{
    struct td_error err = TD_ERROR_INIT;
    const char *path = temp_path(&stack->bed->folder, &stack->arena, stack->files[file]);
    bed_require(td_file_write(path, 0600, content, &err), &err);
}

void stack_write_token(struct stack *stack, int64_t seconds)
{
    td_str token = bed_token(stack->bed, &stack->arena, seconds);
    if (stack->login == LOGIN_TOKEN) {
        stack_write_file(stack, 3, token);
        return;
    }
    struct td_clock real = td_clock_real();
    int64_t said = seconds - stack->login_behind;
    struct td_instant end = td_time_to_instant(td_clock_wall(&real) + said * TD_SECOND);
    char text[TD_TIME_TEXT_BYTES];
    (void)td_time_format(end, 0, text); /* the length is not needed */
    stack_write_file(stack, 3,
                     td_arena_format(&stack->arena,
                                     "{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":"
                                     "\"ExecCredential\",\"status\":{\"token\":\"%.*s\","
                                     "\"expirationTimestamp\":\"%s\"}}\n",
                                     TD_STR_ARG(token), text));
}

static void login_user(struct stack *stack, const struct stack_options *options, struct td_buf *out)
{
    const char *folder = stack->bed->folder.path;
    td_auto_pki_pair pair;
    td_pki_pair_init(&pair);
    switch (options->login) {
    case LOGIN_FILES:
        bed_issue_client(&stack->bed->ca, options->login_seconds, &pair);
        stack_write_file(stack, 0, td_buf_str(&pair.certificate_pem));
        stack_write_file(stack, 1, td_buf_str(&pair.key_pem));
        (void)td_buf_append_format(out, "{client-certificate: %s/%s, client-key: %s/%s}\n", folder,
                                   stack->files[0], folder, stack->files[1]);
        return;
    case LOGIN_TOKEN:
        stack_write_token(stack, options->login_seconds);
        (void)td_buf_append_format(out, "{tokenFile: %s/%s}\n", folder, stack->files[3]);
        return;
    default:
        stack_write_token(stack, options->login_seconds);
        (void)td_buf_append_format(out,
                                   "{exec: {apiVersion: client.authentication.k8s.io/v1, command: "
                                   "/bin/cat, args: [%s/%s], interactiveMode: Never}}\n",
                                   folder, stack->files[3]);
        return;
    }
}

/* A kubeconfig whose credentials are in files, so that they can be replaced. */
static void login_files(struct stack *stack, const struct stack_options *options, const char *url)
{
    static unsigned serial;
    static const char *const names[] = {"certificate", "key", "authority", "token"};
    struct bed *bed = stack->bed;
    serial++;
    for (size_t i = 0; i < 4; i++) {
        (void)snprintf(stack->files[i], sizeof(stack->files[i]), "%s-%u", names[i], serial);
    }
    stack_write_file(stack, 2, td_buf_str(&bed->ca.certificate_pem));
    td_auto_buf text;
    td_buf_init(&text, STACK_TEXT_BYTES_MAX);
    (void)td_buf_append_format(&text,
                               "apiVersion: v1\nkind: Config\ncurrent-context: faults\n"
                               "clusters: [{name: faults, cluster: {server: '%s', "
                               "certificate-authority: %s/%s}}]\n"
                               "contexts: [{name: faults, context: {cluster: faults, user: me}}]\n"
                               "users:\n- name: me\n  user: ",
                               url, bed->folder.path, stack->files[2]);
    login_user(stack, options, &text);
    struct td_error err = TD_ERROR_INIT;
    char name[64];
    (void)snprintf(name, sizeof(name), "kubeconfig-%u", serial);
    const char *path = temp_file(&bed->folder, &stack->arena, name, 0600, td_buf_str(&text));
    const struct td_kube_config_input input = {.kubeconfig = path};
    bed_require(td_kube_config_load(&stack->arena, &input, &stack->config, &err), &err);
}

static void login_inline(struct stack *stack, const char *url)
{
    struct bed *bed = stack->bed;
    const struct td_kubeconfig_entry entry = {
        .name = TD_STR("faults"),
        .server = td_str_from(url),
        .ca_pem = td_buf_str(&bed->ca.certificate_pem),
        .token = bed->token,
    };
    td_auto_buf text;
    td_buf_init(&text, STACK_TEXT_BYTES_MAX);
    td_kubeconfig_write(&entry, &text);
    struct td_error err = TD_ERROR_INIT;
    const struct td_kube_config_input input = {.kubeconfig = NULL};
    bed_require(td_kube_config_parse(&stack->arena, TD_STR("/kubeconfig"),
                                     td_arena_copy_str(&stack->arena, td_buf_str(&text)), &input,
                                     &stack->config, &err),
                &err);
}

/* ---- Calls of a user beside the cache ---- */

static void ask_done(void *context, const struct td_client_reply *reply)
{
    struct stack *stack = context;
    stack->asked++;
    if (reply->code != TD_OK) {
        stack->asked_badly++;
        (void)snprintf(stack->ask_problem, sizeof(stack->ask_problem), "%.250s",
                       reply->err.message);
    }
}

static void ask_rings(struct td_timer *timer, void *context)
{
    struct stack *stack = context;
    const struct td_client_request request = {
        .method = TD_STR("GET"),
        .path = TD_STR("/api/v1/namespaces/" BED_NAMESPACE),
    };
    (void)td_client_send(stack->client, &request, ask_done, stack);
    td_timer_set(timer, BED_ASK_MS * TD_MILLISECOND);
}

/* ---- Its life ---- */

static void stack_make_cache(struct stack *stack, struct td_loop *loop,
                             const struct stack_options *given)
{
    static const struct td_cache_field fields[] = {
        {"data.value", TD_CACHE_TEXT, offsetof(struct item, value)},
    };
    static const struct td_cache_handler handler = {
        .added = stack_added, .changed = stack_changed, .deleted = stack_deleted};
    const struct td_cache_options options = {
        .loop = loop,
        .client = stack->client,
        .version = TD_STR("v1"),
        .plural = TD_STR("configmaps"),
        .namespace = TD_STR(BED_NAMESPACE),
        .field_selector = TD_STR("metadata.name!=" BED_OTHER),
        .fields = fields,
        .field_count = 1,
        .struct_bytes = sizeof(struct item),
        .seed = given->seed,
        .silence = given->silence,
    };
    struct td_error err = TD_ERROR_INIT;
    bed_require(td_cache_new(&options, &stack->cache, &err), &err);
    td_cache_subscribe(stack->cache, &handler, stack);
}

void stack_start(struct stack *stack, struct bed *bed, const struct stack_options *options)
{
    *stack = (struct stack){.bed = bed,
                            .login = options->login,
                            .login_behind = options->login_behind,
                            .reported_max = BED_OBJECTS_MAX,
                            .writes_at = bed->writes};
    struct td_loop *loop = options->loop ? options->loop : bed->loops[0].loop;
    td_arena_init(&stack->arena, STACK_TEXT_BYTES_MAX);
    link_start(&stack->link, td_loop_base(bed->loops[0].loop), bed->tls, &bed->upstream);
    char url[64];
    (void)snprintf(url, sizeof(url), "https://%s:%u", options->host ? options->host : "127.0.0.1",
                   stack->link.port);
    if (options->login == LOGIN_INLINE) {
        login_inline(stack, url);
    } else {
        login_files(stack, options, url);
    }
    struct td_transport *transport;
    struct td_error err = TD_ERROR_INIT;
    const struct td_transport_http_options http = {.loop = loop, .config = &stack->config};
    bed_require(td_transport_http_new(&http, &transport, &err), &err);
    stack->client = td_client_new(
        &(struct td_client_options){.loop = loop, .transport = transport, .seed = options->seed});
    stack_make_cache(stack, loop, options);
    if (options->has_user) {
        stack->ask = td_timer_new(loop, ask_rings, stack);
    }
}

void stack_go(struct stack *stack)
{
    td_cache_start(stack->cache);
    if (stack->ask) {
        td_timer_set(stack->ask, 0);
    }
}

void stack_stop(struct stack *stack)
{
    td_timer_free(stack->ask);
    td_cache_free(stack->cache);
    td_client_free(stack->client);
    link_stop(&stack->link);
    td_arena_done(&stack->arena);
}

bool stack_is_equal(struct stack *stack)
{
    const struct bed *bed = stack->bed;
    bed_look(stack->bed);
    if (!td_cache_is_synced(stack->cache) || td_cache_count(stack->cache) != bed->object_count) {
        return false;
    }
    for (size_t i = 0; i < bed->object_count; i++) {
        const struct bed_object *object = &bed->objects[i];
        const struct item *item =
            td_cache_get(stack->cache, TD_STR(BED_NAMESPACE), td_str_from(object->name));
        if (!item || !td_str_equal(item->head.uid, td_str_from(object->uid)) ||
            !td_str_equal(item->head.version, td_str_from(object->version))) {
            return false;
        }
    }
    return true;
}

bool stack_is_honest(const struct stack *stack)
{
    return stack->lies == 0 &&
           stack->reported <= stack->reported_max + (stack->bed->writes - stack->writes_at);
}
