/*
 * `tandem page`: the page of any cluster from this machine, with the rights of the user's
 * kubeconfig. It listens on loopback; a random token in the address keeps other users of the
 * machine and other web sites out. Nothing is installed and nothing is written.
 */
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/os/env.h"
#include "base/os/file.h"
#include "base/os/loop.h"
#include "base/os/process.h"
#include "base/pki/pki.h"
#include "cli/command.h"
#include "cli/connect.h"
#include "cli/page_flags.h"
#include "control/prometheus/prometheus.h"
#include "kube/client/transport_http.h"
#include "kube/kubeconfig/kubeconfig.h"
#include "web/web.h"

#define PAGE_LISTEN "127.0.0.1:8080"
#define PAGE_SIGNALS 3
#define PAGE_BROWSER_FOR (24 * TD_HOUR)
#define PAGE_BROWSER_BYTES_MAX ((size_t)1 << 20)

static const char page_help[] =
    "show a cluster in the browser: use, requests, decisions and why\n\n"
    "  tandem page                             for example: all namespaces\n"
    "  tandem page -n shop --price-cpu 22 --price-memory 3\n\n"
    "usage: tandem page [FLAGS]\n\n"
    "  -n, --namespace NAMESPACE   this namespace only (all)\n"
    "  --listen HOST:PORT          address on loopback (" PAGE_LISTEN ", or the next\n"
    "                              free port)\n"
    "  --no-open                   print the address only, start no browser\n"
    "  --prometheus-address URL    history from there (the one in the flags of the\n"
    "                              controllers in the cluster)\n"
    "  --prometheus-bearer-token-file FILE\n"
    "                              bearer token for Prometheus\n"
    "  --prometheus-insecure       skip verification of Prometheus' certificate\n"
    "  --price-cpu N               price of a core for a month\n"
    "  --price-memory N            price of a GiB for a month\n"
    "  --kubeconfig FILE           path to a kubeconfig ($KUBECONFIG,\n"
    "                              ~/.kube/config, or the pod's service account)\n"
    "  --context NAME              kubeconfig context (the current one)\n"
    "  --feature-gates LIST        the --feature-gates of tandem run\n\n"
    "The address holds a token that every request needs. Reads only, until Ctrl-C.\n"
    "Exit status: 0 stopped, 2 the cluster cannot be read. Guide: docs/page.md\n";

struct page {
    struct td_connect connect;
    const char *namespace;
    const char *listen;
    bool is_closed; /* no browser is started */
    const char *prometheus;
    const char *token_file; /* of Prometheus */
    bool is_insecure;       /* its certificate is not verified */
    td_str bearer_token;    /* in the file, in the arena */
    struct td_arena arena;
    double price_cpu;
    double price_memory;
    struct td_buf token;
    struct td_web *web;
    struct td_process *browser;
    struct event *signals[PAGE_SIGNALS];
};

static void page_browser_ended(const struct td_process_end *end, void *context)
{
    struct page *page = context;
    (void)end; /* the address is printed */
    td_process_free(page->browser);
    page->browser = NULL;
}

/* Where a person sits in front of this machine. */
static void page_open(struct page *page, const char *url)
{
    const char *const args[] = {url, NULL};
    const char *x11 = td_env_get("DISPLAY", NULL);
    const char *wayland = td_env_get("WAYLAND_DISPLAY", NULL);
    const struct td_process_spec spec = {.command = "xdg-open",
                                         .args = args,
                                         .output_bytes_max = PAGE_BROWSER_BYTES_MAX,
                                         .deadline = PAGE_BROWSER_FOR};
    if (!page->is_closed && (x11 || wayland)) {
        (void)td_process_start(page->connect.loop, &spec, page_browser_ended, page, &page->browser,
                               NULL); /* without one the address is there to be copied */
    }
}

static int page_connect(void *context, struct td_transport **ret, struct td_error *err)
{
    struct page *page = context;
    const struct td_transport_http_options options = {.loop = page->connect.loop,
                                                      .config = &page->connect.config};
    return td_transport_http_new(&options, ret, err);
}

static int page_start(struct page *page, struct td_error *err)
{
    const struct td_prometheus_options prometheus = {
        .address = td_str_from(page->prometheus),
        .is_insecure = page->is_insecure,
        .username = td_str_from(td_env_get("PROMETHEUS_USERNAME", NULL)),
        .password = td_str_from(td_env_get("PROMETHEUS_PASSWORD", NULL)),
        .bearer_token = page->bearer_token,
    };
    const struct td_web_options options = {
        .loop = page->connect.loop,
        .listen = page->listen ? page->listen : PAGE_LISTEN,
        .moves_port = !page->listen,
        .title = page->connect.config.server,
        .namespace = page->connect.namespace,
        .token = td_buf_str(&page->token),
        .price_cpu = page->price_cpu,
        .price_memory = page->price_memory,
        .feature_gates = td_str_from(page->connect.feature_gates),
        .selector_gate = true,
        .connect = page_connect,
        .context = page,
        .prometheus = &prometheus,
    };
    return td_web_new(&options, &page->web, err);
}

/* The cluster answers, and the clock is its own. */
static void page_ready(void *context)
{
    struct page *page = context;
    struct td_error err = TD_ERROR_INIT;
    td_auto_buf url = td_buf_capped(TD_TREE_ARENA_BYTES_MAX);
    if (page_start(page, &err) != TD_OK) {
        td_connect_end(&page->connect, td_command_fail("page: %s", err.message));
        return;
    }
    (void)td_buf_append_format(&url, "http://127.0.0.1:%u/#token=%.*s",
                               (unsigned)td_web_port(page->web), (int)page->token.len,
                               page->token.ptr);
    (void)printf("page       %s\nstop       Ctrl-C\n", url.ptr); /* main looks at the stream */
    (void)fflush(stdout);
    page_open(page, url.ptr);
}

static void page_signalled(evutil_socket_t number, short what, void *context)
{
    struct page *page = context;
    (void)number;
    (void)what;
    td_connect_end(&page->connect, TD_EXIT_DONE);
}

/* Called with the loop that the connection has made. */
static void page_watch_signals(struct page *page)
{
    static const int numbers[PAGE_SIGNALS] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < PAGE_SIGNALS; i++) {
        page->signals[i] =
            evsignal_new(td_loop_base(page->connect.loop), numbers[i], page_signalled, page);
        if (page->signals[i]) {
            (void)evsignal_add(page->signals[i], NULL); /* else the signal ends us at once */
        }
    }
}

static void page_begin(void *context)
{
    page_watch_signals(context);
    page_ready(context);
}

static int page_no_open(void *place, const char *value)
{
    (void)value;
    *(bool *)place = true;
    return TD_EXIT_DONE;
}

static const struct td_option page_options[] = {
    TD_OPTION_TEXT("namespace", 'n', struct page, namespace),
    TD_OPTION_TEXT("listen", 0, struct page, listen),
    {"no-open", 0, false, offsetof(struct page, is_closed), page_no_open},
    TD_OPTION_TEXT("prometheus-address", 0, struct page, prometheus),
    TD_OPTION_TEXT("prometheus-bearer-token-file", 0, struct page, token_file),
    TD_OPTION_FLAG("prometheus-insecure", 0, struct page, is_insecure),
    TD_OPTION("price-cpu", 0, struct page, price_cpu, td_page_parse_price),
    TD_OPTION("price-memory", 0, struct page, price_memory, td_page_parse_price),
    TD_CONNECT_OPTIONS(struct page, connect),
};

/* -1: go on. */
static int page_parse(struct page *page, int argc, char **argv)
{
    const struct td_options options = {"page", page_help, page_options, TD_COUNT(page_options)};
    int status = td_options_parse(&options, page, argc, argv);
    if (status < 0 && optind < argc) {
        return td_command_fail("page: '%s': takes flags only; see 'tandem page --help'",
                               argv[optind]);
    }
    return status;
}

static int page_check_prometheus(struct page *page)
{
    struct td_error err = TD_ERROR_INIT;
    struct td_kube_config config;
    if (page->prometheus && td_kube_config_of_url(&page->arena, td_str_from(page->prometheus),
                                                  td_env_get, &config, &err) != TD_OK) {
        return td_command_fail("page: --prometheus-address: %s", err.message);
    }
    if (page->token_file && td_file_read(page->token_file, &page->arena, TD_TOKEN_FILE_BYTES_MAX,
                                         &page->bearer_token, &err) != TD_OK) {
        return td_command_fail("page: --prometheus-bearer-token-file: %s", err.message);
    }
    page->bearer_token = td_str_trim(page->bearer_token);
    return -1;
}

int td_command_page(int argc, char **argv)
{
    struct page page = {.namespace = NULL};
    struct td_error err = TD_ERROR_INIT;
    td_connect_init(&page.connect, "page");
    td_buf_init(&page.token, TD_TOKEN_TEXT_BYTES_MAX);
    td_arena_init(&page.arena, TD_OBJECT_BYTES_MAX);
    int status = page_parse(&page, argc, argv);
    status = status < 0 ? page_check_prometheus(&page) : status;
    if (status < 0 && td_random_token(&page.token, &err) != TD_OK) {
        status = td_command_fail("page: %s", err.message);
    }
    if (status < 0) {
        status = td_connect_load(&page.connect);
        if (status == TD_EXIT_DONE) {
            page.connect.namespace = td_str_from(page.namespace);
            status = td_connect_run(&page.connect, page_begin, &page);
        }
    }
    td_web_free(page.web);
    td_process_free(page.browser);
    for (size_t i = 0; i < PAGE_SIGNALS; i++) {
        if (page.signals[i]) {
            event_free(page.signals[i]);
        }
    }
    td_buf_done(&page.token);
    td_arena_done(&page.arena);
    td_connect_done(&page.connect);
    return status;
}
