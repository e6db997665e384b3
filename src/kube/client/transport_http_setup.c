/*
 * One request for curl: where it goes, who we are, what we trust. A certificate authority of the
 * configuration replaces the system's. A server name of its own is written into the URL, so that
 * TLS asks for it, while the connection goes to the real host and the Host header names that.
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "base/assert.h"
#include "base/limits.h"
#include "kube/client/transport_http_internal.h"
#include "kube/paths.h"

#define SETUP_LINE_BYTES_MAX (TD_TOKEN_FILE_BYTES_MAX + 64) /* one header line */

bool td_http_is_loopback(td_str host)
{
    return td_str_equal(host, TD_STR("localhost")) || td_str_equal(host, TD_STR("::1")) ||
           td_str_starts_with(host, TD_STR("127."));
}

static bool setup_is_header_text(td_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char byte = (unsigned char)text.ptr[i];
        if ((byte < 0x20 && byte != '\t') || byte == 0x7f) {
            return false;
        }
    }
    return true;
}

/* "name: value"; an empty value is sent as such, which curl writes with a semicolon. */
static int setup_add_header(struct curl_slist **list, const char *name, td_str value,
                            struct td_error *err)
{
    if (!setup_is_header_text(value)) {
        return td_error_set(err, TD_INVALID, "header %s: a control character in its value", name);
    }
    td_auto_buf line = td_buf_capped(SETUP_LINE_BYTES_MAX);
    (void)td_buf_append_format(&line, value.len > 0 ? "%s: " : "%s;", name);
    (void)td_buf_append(&line, value);
    int code = td_buf_check(&line, name, err);
    if (code != TD_OK) {
        return code;
    }
    struct curl_slist *longer = curl_slist_append(*list, line.ptr);
    if (!longer) {
        return td_error_set(err, TD_LIMIT, "header %s: out of memory", name);
    }
    *list = longer;
    return TD_OK;
}

/* As client-go: extra keys are lower case with every byte escaped that no header name holds. */
static int setup_add_extra(struct curl_slist **list, const struct td_kube_extra *extra,
                           struct td_error *err)
{
    td_auto_buf name = td_buf_capped(TD_API_PATH_BYTES_MAX);
    (void)td_buf_append(&name, TD_STR("Impersonate-Extra-"));
    td_path_escape(&name, extra->key);
    int code = td_buf_check(&name, "impersonated extra", err);
    for (size_t i = 0; i < extra->value_count && code == TD_OK; i++) {
        code = setup_add_header(list, name.ptr, extra->values[i], err);
    }
    return code;
}

int td_http_impersonation(const struct td_kube_impersonation *who, struct curl_slist **ret,
                          struct td_error *err)
{
    struct curl_slist *list = NULL;
    int code = TD_OK;
    if (who->user.len > 0) {
        code = setup_add_header(&list, "Impersonate-User", who->user, err);
    }
    if (code == TD_OK && who->uid.len > 0) {
        code = setup_add_header(&list, "Impersonate-Uid", who->uid, err);
    }
    for (size_t i = 0; i < who->group_count && code == TD_OK; i++) {
        code = setup_add_header(&list, "Impersonate-Group", who->groups[i], err);
    }
    for (size_t i = 0; i < who->extra_count && code == TD_OK; i++) {
        code = setup_add_extra(&list, &who->extras[i], err);
    }
    if (code != TD_OK) {
        curl_slist_free_all(list);
        return code;
    }
    *ret = list;
    return TD_OK;
}

static int setup_headers(struct td_call *call, const struct td_credential *credential,
                         struct td_error *err)
{
    const struct td_call_request *request = &call->request;
    td_str accept = request->accept.len > 0 ? request->accept : TD_STR("application/json");
    int code = setup_add_header(&call->headers, "Accept", accept, err);
    if (code == TD_OK && request->content_type.len > 0) {
        code = setup_add_header(&call->headers, "Content-Type", request->content_type, err);
    }
    if (code == TD_OK && credential->bearer_token.len > 0) {
        td_auto_buf bearer = td_buf_capped(SETUP_LINE_BYTES_MAX);
        (void)td_buf_append(&bearer, TD_STR("Bearer "));
        (void)td_buf_append(&bearer, credential->bearer_token);
        code = td_buf_check(&bearer, "bearer token", err);
        if (code == TD_OK) {
            code = setup_add_header(&call->headers, "Authorization", td_buf_str(&bearer), err);
        }
    }
    for (const struct curl_slist *line = call->http->impersonation; line && code == TD_OK;
         line = line->next) {
        struct curl_slist *longer = curl_slist_append(call->headers, line->data);
        code = longer ? TD_OK : td_error_set(err, TD_LIMIT, "headers: out of memory");
        call->headers = longer ? longer : call->headers;
    }
    /* Lines that curl would add by itself: a pause before a body, and a form's content type. */
    static const char *const unwanted[] = {"Expect:", "Content-Type:"};
    for (size_t i = 0; i < (request->content_type.len > 0 ? 1 : 2) && code == TD_OK; i++) {
        struct curl_slist *longer = curl_slist_append(call->headers, unwanted[i]);
        code = longer ? TD_OK : td_error_set(err, TD_LIMIT, "headers: out of memory");
        call->headers = longer ? longer : call->headers;
    }
    return code;
}

static bool setup_is_ipv6(td_str host)
{
    return td_str_find(host, ':', 0) < host.len;
}

static void setup_append_host(struct td_buf *out, td_str host)
{
    (void)td_buf_append_format(out, setup_is_ipv6(host) ? "[%.*s]" : "%.*s", TD_STR_ARG(host));
}

static int setup_own_name(struct td_call *call, struct td_buf *url, struct td_error *err)
{
    const struct td_kube_config *config = call->http->config;
    td_auto_buf host;
    td_auto_buf route;
    td_buf_init(&host, TD_API_PATH_BYTES_MAX);
    td_buf_init(&route, TD_API_PATH_BYTES_MAX);
    (void)td_buf_append(url, TD_STR("https://"));
    setup_append_host(url, config->tls_server_name);
    (void)td_buf_append_format(url, ":%u%.*s", config->port, TD_STR_ARG(config->path_prefix));
    setup_append_host(&host, config->host);
    (void)td_buf_append_format(&host, ":%u", config->port);
    setup_append_host(&route, config->tls_server_name);
    (void)td_buf_append_format(&route, ":%u:%.*s", config->port, TD_STR_ARG(td_buf_str(&host)));
    int code = td_buf_check(&route, "tls-server-name", err);
    if (code == TD_OK) {
        code = setup_add_header(&call->headers, "Host", td_buf_str(&host), err);
    }
    if (code != TD_OK) {
        return code;
    }
    call->route = curl_slist_append(NULL, route.ptr);
    return curl_easy_setopt(call->easy, CURLOPT_CONNECT_TO, call->route) == CURLE_OK
               ? TD_OK
               : td_error_set(err, TD_INVALID, "tls-server-name '%.*s' cannot be used",
                              TD_STR_ARG(config->tls_server_name));
}

static int setup_url(struct td_call *call, struct td_error *err)
{
    const struct td_kube_config *config = call->http->config;
    td_auto_buf url = td_buf_capped(TD_API_PATH_BYTES_MAX + TD_API_PATH_BYTES_MAX);
    int code = TD_OK;
    if (config->is_tls && config->tls_server_name.len > 0 &&
        !td_str_equal(config->tls_server_name, config->host)) {
        code = setup_own_name(call, &url, err);
    } else {
        (void)td_buf_append(&url, config->server);
    }
    (void)td_buf_append(&url, call->request.path);
    if (code == TD_OK) {
        code = td_buf_check(&url, "request path", err);
    }
    if (code == TD_OK && curl_easy_setopt(call->easy, CURLOPT_URL, url.ptr) != CURLE_OK) {
        code = td_error_set(err, TD_INVALID, "request path cannot be used");
    }
    return code;
}

static int setup_set_socket(void *context, curl_socket_t socket, curlsocktype purpose)
{
    (void)purpose;
    td_http_pool_forget_socket(context, socket); /* an earlier one of that number */
    /* A peer that is gone without a word is noticed by unanswered keep-alives. Without the option
     * it only takes longer. */
    int timeout_ms = TD_TRANSPORT_DEAD_PEER_MS;
    (void)setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof(timeout_ms));
    return CURL_SOCKOPT_OK;
}

/* libcurl hands on a hundred such buffers before it returns to the loop, while there are bytes: the
 * smaller they are, the sooner others have their turn when a large answer arrives. What answers a
 * write is one object, and comes in one piece; so do most events of a watch. */
#define SETUP_BUFFER_BYTES 1024L
#define SETUP_WATCH_BUFFER_BYTES 4096L
#define SETUP_WRITE_BUFFER_BYTES 16384L

static void setup_method(struct td_call *call)
{
    CURL *easy = call->easy;
    td_str method = call->request.method;
    bool has_body = call->request.body.len > 0;
    bool is_write = td_str_equal(method, TD_STR("POST")) || td_str_equal(method, TD_STR("PUT")) ||
                    td_str_equal(method, TD_STR("PATCH"));
    if (has_body || is_write) {
        /* A body in memory goes out in one piece with the head. */
        call->is_write = true;
        (void)curl_easy_setopt(easy, CURLOPT_POST, 1L);
        (void)curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE,
                               (curl_off_t)call->request.body.len);
        (void)curl_easy_setopt(easy, CURLOPT_POSTFIELDS, call->request.body.ptr);
    } else if (td_str_equal(method, TD_STR("HEAD"))) {
        (void)curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
    } else {
        (void)curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
    }
    (void)curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, method.ptr);
    (void)curl_easy_setopt(easy, CURLOPT_BUFFERSIZE,
                           call->is_write                ? SETUP_WRITE_BUFFER_BYTES
                           : call->request.deadline == 0 ? SETUP_WATCH_BUFFER_BYTES
                                                         : SETUP_BUFFER_BYTES);
}

#define SETUP_UPLOAD_BYTES 16384L /* the least that it takes */

static void setup_connection(struct td_call *call, struct http_pool *pool)
{
    const struct td_kube_config *config = call->http->config;
    CURL *easy = call->easy;
    (void)curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    (void)curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    (void)curl_easy_setopt(easy, CURLOPT_MAXAGE_CONN, TD_TRANSPORT_KEPT_SECONDS);
    (void)curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    (void)curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, TD_TRANSPORT_CONNECT_MS);
    (void)curl_easy_setopt(easy, CURLOPT_TCP_NODELAY, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, TD_TRANSPORT_KEEPALIVE_SECONDS);
    (void)curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, TD_TRANSPORT_KEEPALIVE_SECONDS / 2);
    (void)curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, setup_set_socket);
    (void)curl_easy_setopt(easy, CURLOPT_SOCKOPTDATA, pool);
    (void)curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, td_http_pool_close_socket);
    (void)curl_easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, pool);
    (void)curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, SETUP_UPLOAD_BYTES);
    (void)curl_easy_setopt(easy, CURLOPT_USERAGENT, "tandem/" TANDEM_VERSION);
    if (call->http->wants_gzip) {
        (void)curl_easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, "gzip");
    }
    /* Without these curl would look into the environment; the configuration has done that. */
    (void)curl_easy_setopt(easy, CURLOPT_PROXY,
                           config->proxy_url.len > 0 ? config->proxy_url.ptr : "");
    (void)curl_easy_setopt(easy, CURLOPT_NOPROXY, "");
}

static bool setup_blob(CURL *easy, CURLoption option, td_str pem)
{
    if (pem.len == 0) {
        return true;
    }
    union {
        const char *from;
        void *to;
    } data = {.from = pem.ptr}; /* curl's struct is not const, but it copies */
    struct curl_blob blob = {.data = data.to, .len = pem.len, .flags = CURL_BLOB_COPY};
    return curl_easy_setopt(easy, option, &blob) == CURLE_OK;
}

static int setup_tls(struct td_call *call, const struct td_credential *credential,
                     struct td_error *err)
{
    CURL *easy = call->easy;
    if (!call->http->config->is_tls) {
        return TD_OK;
    }
    (void)curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    bool is_verified = !call->http->config->is_insecure;
    (void)curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, is_verified ? 1L : 0L);
    (void)curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, is_verified ? 2L : 0L);
    bool is_set = setup_blob(easy, CURLOPT_CAINFO_BLOB, credential->ca_pem);
    if (credential->ca_pem.len > 0) {
        /* The blob replaces curl's file of authorities, but not its folder. */
        (void)curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
    }
    if (credential->certificate_pem.len > 0) {
        (void)curl_easy_setopt(easy, CURLOPT_SSLCERTTYPE, "PEM");
        (void)curl_easy_setopt(easy, CURLOPT_SSLKEYTYPE, "PEM");
        is_set = is_set && setup_blob(easy, CURLOPT_SSLCERT_BLOB, credential->certificate_pem) &&
                 setup_blob(easy, CURLOPT_SSLKEY_BLOB, credential->key_pem);
    }
    return is_set ? TD_OK : td_error_set(err, TD_LIMIT, "certificates: out of memory");
}

/* A handle with all that its connections depend on. */
static int setup_handle(struct td_call *call, struct http_pool *pool,
                        const struct td_credential *credential, struct td_error *err)
{
    if (pool->spare_count > 0) {
        call->easy = pool->spares[--pool->spare_count];
        return TD_OK;
    }
    call->easy = curl_easy_init();
    if (!call->easy) {
        return td_error_set(err, TD_LIMIT, "cannot make a request: out of memory");
    }
    setup_connection(call, pool);
    return setup_tls(call, credential, err);
}

int td_http_setup(struct td_call *call, struct http_pool *pool,
                  const struct td_credential *credential, struct td_error *err)
{
    td_assert(!call->easy);
    int code = setup_handle(call, pool, credential, err);
    if (code != TD_OK) {
        return code;
    }
    CURL *easy = call->easy;
    call->generation = credential->generation;
    setup_method(call);
    if (credential->username.len > 0) {
        (void)curl_easy_setopt(easy, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
        (void)curl_easy_setopt(easy, CURLOPT_USERNAME, credential->username.ptr);
        (void)curl_easy_setopt(easy, CURLOPT_PASSWORD, credential->password.ptr);
    }
    (void)curl_easy_setopt(easy, CURLOPT_PRIVATE, call);
    (void)curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, call->problem);
    (void)curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, td_http_begin);
    (void)curl_easy_setopt(easy, CURLOPT_PREREQDATA, call);
    (void)curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, td_http_take_header);
    (void)curl_easy_setopt(easy, CURLOPT_HEADERDATA, call);
    (void)curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, td_http_take_body);
    (void)curl_easy_setopt(easy, CURLOPT_WRITEDATA, call);
    code = setup_headers(call, credential, err);
    if (code == TD_OK) {
        code = setup_url(call, err);
    }
    if (code == TD_OK) {
        (void)curl_easy_setopt(easy, CURLOPT_HTTPHEADER, call->headers);
    }
    return code;
}

int td_http_code(const struct td_call *call, CURLcode result, struct td_error *err)
{
    if (result == CURLE_OK && call->has_head) {
        return TD_OK;
    }
    if (result == CURLE_OK) { /* curl is content with a status line */
        return td_error_set(err, TD_IO, "the connection was closed inside the answer's head");
    }
    if (call->is_again) {
        return td_error_set(err, TD_IO, "the connection was closed before an answer");
    }
    if (call->is_too_large) {
        return td_error_set(err, TD_LIMIT, "answer above %zu bytes",
                            (size_t)TD_TRANSPORT_ANSWER_BYTES_MAX);
    }
    int code = TD_IO;
    switch (result) {
    case CURLE_COULDNT_CONNECT:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_OPERATION_TIMEDOUT: /* only connecting has a limit of curl's */
        code = TD_BUSY;
        break;
    case CURLE_SSL_CERTPROBLEM:
        code = TD_DENIED;
        break;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT:
        code = TD_INVALID;
        break;
    default:
        break;
    }
    return td_error_set(err, code, "%s",
                        call->problem[0] != '\0' ? call->problem : curl_easy_strerror(result));
}
