#include "faults_table.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/buf.h"
#include "base/limits.h"
#include "local/store/store.h"

#define ANSWER(status, headers, body)                                                              \
    TD_STR_INIT("HTTP/1.1 " status "\r\nContent-Type: application/json\r\n" headers                \
                "Connection: close\r\n\r\n" body)
#define STATUS(code, reason)                                                                       \
    "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"reason\":\"" reason       \
    "\",\"message\":\"injected\",\"code\":" code "}\n"
#define EVENT_410 "{\"type\":\"ERROR\",\"object\":" STATUS410 "}\n"
#define STATUS410                                                                                  \
    "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"reason\":\"Expired\","    \
    "\"message\":\"too old resource version\",\"code\":410}"

/* ---- gzip ---- */

static uint32_t gzip_sum(td_str text)
{
    uint32_t sum = UINT32_MAX;
    for (size_t i = 0; i < text.len; i++) {
        sum ^= (unsigned char)text.ptr[i];
        for (int bit = 0; bit < 8; bit++) {
            sum = (sum >> 1) ^ (sum & 1 ? UINT32_C(0xedb88320) : 0);
        }
    }
    return ~sum;
}

static void gzip_number(struct td_buf *out, uint32_t value, int bytes)
{
    for (int i = 0; i < bytes; i++) {
        (void)td_buf_append_char(out, (char)(value >> (8 * i) & 0xff));
    }
}

size_t faults_gzip_bytes(td_str text)
{
    return 10 + 5 + text.len + 8; /* head, one stored block, sum and length */
}

td_str faults_gzip_answer(struct td_arena *arena, td_str text, size_t cut)
{
    td_assert(text.len < UINT16_MAX);
    td_auto_buf body;
    td_auto_buf answer;
    td_buf_init(&body, TD_JSON_BYTES_MAX);
    td_buf_init(&answer, TD_JSON_BYTES_MAX);
    (void)td_buf_append(&body, TD_STR("\x1f\x8b\x08\0\0\0\0\0\0\xff\x01"));
    gzip_number(&body, (uint32_t)text.len, 2);
    gzip_number(&body, ~(uint32_t)text.len, 2);
    (void)td_buf_append(&body, text);
    gzip_number(&body, gzip_sum(text), 4);
    gzip_number(&body, (uint32_t)text.len, 4);
    td_assert(body.len == faults_gzip_bytes(text));
    td_str sent = td_str_slice(td_buf_str(&body), 0, body.len - cut);
    (void)td_buf_append_format(&answer,
                               "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                               "Content-Encoding: gzip\r\nContent-Length: %zu\r\n\r\n",
                               sent.len);
    (void)td_buf_append(&answer, sent);
    return td_arena_copy_str(arena, td_buf_str(&answer));
}

/* ---- Lists with a wrong length ---- */

static void prepare_length(struct run *run, size_t length)
{
    td_str text = bed_list_text(run->bed, &run->stack.arena);
    run->plan.answer = td_arena_format(
        &run->stack.arena,
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%.*s",
        length, TD_STR_ARG(text));
}

static void prepare_long(struct run *run)
{
    prepare_length(run, 1000000);
}

static void prepare_short(struct run *run)
{
    prepare_length(run, 100);
}

static void prepare_unended(struct run *run)
{
    td_str text = bed_list_text(run->bed, &run->stack.arena);
    run->plan.answer = td_arena_format(
        &run->stack.arena, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n%.*s",
        TD_STR_ARG(td_str_slice(text, 0, text.len / 2)));
}

/* ---- Faults in steps ---- */

static bool run_waited(struct run *run, td_duration span)
{
    return bed_now(run->bed) - run->staged_at >= span;
}

static bool run_stage(struct run *run)
{
    run->stage++;
    run->staged_at = bed_now(run->bed);
    return false;
}

/* No server listens for 3 s. */
static bool step_refused(struct run *run)
{
    if (run->stage == 0) {
        link_close(&run->stack.link);
        return run_stage(run);
    }
    if (!run_waited(run, 3 * TD_SECOND)) {
        return false;
    }
    link_open(&run->stack.link);
    return true;
}

/* The file has another token before the one in use expires, as a kubelet does it; connections are
 * cut behind that. The file is not read again yet, since it is too young. */
static bool step_token(struct run *run)
{
    td_duration valid = run->fault->stack.login_seconds * TD_SECOND;
    /* The token in use is as old as the run, however long its first list took. */
    if (run->stage == 0 && bed_now(run->bed) - run->began_at >= valid / 2) {
        stack_write_token(&run->stack, 3600);
        run->stage = 1;
    }
    if (run->stage == 0 || !run_waited(run, valid + TD_SECOND)) {
        return false;
    }
    link_cut(&run->stack.link);
    return true;
}

static bool check_token(struct run *run)
{
    return run->stack.link.refused > 0;
}

static void write_pair(struct stack *stack)
{
    td_auto_pki_pair pair;
    td_pki_pair_init(&pair);
    bed_issue_client(&stack->bed->ca, 3600, &pair);
    stack_write_file(stack, 0, td_buf_str(&pair.certificate_pem));
    stack_write_file(stack, 1, td_buf_str(&pair.key_pem));
}

/* The certificate in use expires, which a new connection shows; the new one comes a little later.
 */
static bool step_certificate(struct run *run)
{
    if (run->stage == 0) {
        if (run_waited(run, (run->fault->stack.login_seconds + 1) * TD_SECOND)) {
            link_cut(&run->stack.link);
            (void)run_stage(run);
        }
        return false;
    }
    if (!run_waited(run, 1500 * TD_MILLISECOND)) {
        return false;
    }
    write_pair(&run->stack);
    return true;
}

/* The server gets a certificate of another authority; the file follows a little later. */
static bool step_authority(struct run *run)
{
    static struct td_pki_pair ca;
    struct stack *stack = &run->stack;
    if (run->stage == 0) {
        struct td_error err = TD_ERROR_INIT;
        struct td_clock real = td_clock_real();
        td_pki_pair_init(&ca);
        bed_require(
            td_pki_make_ca(TD_STR("another"), td_time_to_instant(td_clock_wall(&real)), &ca, &err),
            &err);
        SSL_CTX *tls = bed_issue_server(&ca, td_buf_str(&stack->bed->ca.certificate_pem));
        link_set_tls(&stack->link, tls);
        SSL_CTX_free(tls);
        return run_stage(run);
    }
    if (!run_waited(run, 1500 * TD_MILLISECOND)) {
        return false;
    }
    stack_write_file(stack, 2, td_buf_str(&ca.certificate_pem));
    td_pki_pair_done(&ca);
    return true;
}

/* The changes behind the watch's position are forgotten while the client is away. */
static bool step_compaction(struct run *run)
{
    if (run->stage == 0) {
        link_close(&run->stack.link);
        return run_stage(run);
    }
    if (!run_waited(run, 200 * TD_MILLISECOND)) {
        return false;
    }
    td_store_compact(run->bed->store, td_store_version(run->bed->store));
    link_open(&run->stack.link);
    return true;
}

static bool check_expired(struct run *run)
{
    return td_cache_counts(run->stack.cache).expired > 0;
}

/* ---- The tables ---- */

#define REPLY(text, which, times)                                                                  \
    {                                                                                              \
        .fault = LINK_ANSWER, .match = which, .count = times, .answer = text                       \
    }

const struct fault faults_table[] = {
    {.name = "500-storm",
     .plan = REPLY(ANSWER("500 Internal Server Error", "", STATUS("500", "InternalError")),
                   LINK_ANY, 0),
     .start = FAULT_CUT,
     .ms = 5000},
    {.name = "503-storm-without-text",
     .plan = REPLY(ANSWER("503 Service Unavailable", "Content-Length: 0\r\n", ""), LINK_ANY, 0),
     .start = FAULT_FIRST,
     .ms = 5000},
    {.name = "429-on-watch",
     .plan = REPLY(
         ANSWER("429 Too Many Requests", "Retry-After: 2\r\n", STATUS("429", "TooManyRequests")),
         LINK_WATCH, 2),
     .start = FAULT_CUT,
     .pause_min = 2 * TD_SECOND},
    {.name = "429-on-list",
     .plan = REPLY(
         ANSWER("429 Too Many Requests", "Retry-After: 2\r\n", STATUS("429", "TooManyRequests")),
         LINK_LIST, 2),
     .start = FAULT_FIRST,
     .is_old = true,
     .pause_min = 2 * TD_SECOND},
    {.name = "bad-json-line",
     .plan = {.fault = LINK_GARBAGE, .count = 1, .answer = TD_STR_INIT("{\"type\":\"MODI}\n")},
     .start = FAULT_LIVE},
    {.name = "not-utf8-line",
     .plan = {.fault = LINK_GARBAGE, .count = 1, .answer = TD_STR_INIT("\xff\xfe\x80\n")},
     .start = FAULT_LIVE},
    {.name = "event-without-object",
     .plan = {.fault = LINK_GARBAGE,
              .count = 1,
              .answer = TD_STR_INIT("{\"type\":\"MODIFIED\",\"object\":{}}\n")},
     .start = FAULT_LIVE},
    {.name = "event-of-unknown-type",
     .plan = {.fault = LINK_GARBAGE,
              .count = 1,
              .answer = TD_STR_INIT("{\"type\":\"PERHAPS\",\"object\":{\"metadata\":{\"name\":"
                                    "\"x\",\"resourceVersion\":\"1\"}}}\n")},
     .start = FAULT_LIVE},
    {.name = "410-in-the-stream",
     .plan = {.fault = LINK_GARBAGE, .count = 1, .answer = TD_STR_INIT(EVENT_410)},
     .start = FAULT_LIVE,
     .check = check_expired},
    {.name = "410-at-the-start",
     .plan = REPLY(ANSWER("410 Gone", "", STATUS410), LINK_ANY, 3),
     .start = FAULT_FIRST,
     .check = check_expired},
    {.name = "410-on-resume",
     .plan = REPLY(ANSWER("410 Gone", "", STATUS410), LINK_WATCH, 1),
     .start = FAULT_CUT,
     .check = check_expired},
    {.name = "redirect",
     .plan = REPLY(ANSWER("302 Found", "Location: https://127.0.0.1:1/\r\n", ""), LINK_ANY, 3),
     .start = FAULT_CUT},
    {.name = "html-instead-of-json",
     .plan = REPLY(TD_STR_INIT("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
                               "Content-Length: 13\r\n\r\n<html></html>"),
                   LINK_ANY, 3),
     .start = FAULT_FIRST},
    {.name = "not-http",
     .plan = REPLY(TD_STR_INIT("SSH-2.0-OpenSSH_9.9\r\n"), LINK_ANY, 3),
     .start = FAULT_CUT},
    {.name = "content-length-too-long",
     .plan = {.fault = LINK_ANSWER, .match = LINK_LIST, .count = 2},
     .start = FAULT_FIRST,
     .is_old = true,
     .prepare = prepare_long},
    {.name = "content-length-too-short",
     .plan = {.fault = LINK_ANSWER, .match = LINK_LIST, .count = 2},
     .start = FAULT_FIRST,
     .is_old = true,
     .prepare = prepare_short},
    {.name = "list-without-its-end",
     .plan = {.fault = LINK_ANSWER, .match = LINK_LIST, .count = 2},
     .start = FAULT_FIRST,
     .is_old = true,
     .prepare = prepare_unended},
    {.name = "endless-headers",
     .plan = {.fault = LINK_HEADERS, .match = LINK_LIST, .count = 1},
     .start = FAULT_FIRST,
     .is_old = true},
    {.name = "endless-headers-on-watch",
     .plan = {.fault = LINK_HEADERS, .match = LINK_WATCH, .count = 2},
     .start = FAULT_CUT},
    {.name = "slow-list",
     .plan = {.fault = LINK_DRIP, .match = LINK_LIST, .at = 1, .count = 1},
     .start = FAULT_FIRST,
     .is_old = true},
    {.name = "reset-in-the-watch",
     .plan = {.fault = LINK_RESET, .count = 1, .at = 700},
     .start = FAULT_LIVE},
    {.name = "refused-connections", .start = FAULT_LIVE, .step = step_refused},
    {.name = "token-rotation",
     .start = FAULT_LIVE,
     .stack = {.login = LOGIN_TOKEN, .login_seconds = 6, .has_user = true},
     .step = step_token,
     .check = check_token},
    {.name = "exec-plugin-rotation",
     .start = FAULT_LIVE,
     .stack = {.login = LOGIN_EXEC, .login_seconds = 7, .has_user = true},
     .step = step_token},
    {.name = "certificate-rotation",
     .start = FAULT_LIVE,
     .stack = {.login = LOGIN_FILES, .login_seconds = 3, .has_user = true},
     .step = step_certificate},
    {.name = "authority-rotation",
     .start = FAULT_LIVE,
     .stack = {.login = LOGIN_FILES, .login_seconds = 3600, .has_user = true},
     .may_refuse_user = true,
     .step = step_authority},
};
const size_t faults_count = sizeof(faults_table) / sizeof(faults_table[0]);
const size_t faults_soak_count = sizeof(faults_table) / sizeof(faults_table[0]) - 4;

const struct fault faults_alone[] = {
    {.name = "410-after-compaction",
     .start = FAULT_LIVE,
     .step = step_compaction,
     .check = check_expired},
    {.name = "410-after-compaction-without-streams",
     .start = FAULT_LIVE,
     .is_old = true,
     .step = step_compaction,
     .check = check_expired},
};
const size_t faults_alone_count = sizeof(faults_alone) / sizeof(faults_alone[0]);
