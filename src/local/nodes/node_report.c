/*
 * Renewing a lease is the one thing that an idle cluster does all day: a hundred nodes renew
 * 864,000 times. So it does not go through a tree. A renewal changes two texts of fixed places, the
 * time and the version: where they are is found once, and as long as the stored lease is the
 * revision that was written last, the next one is its bytes with those two replaced. A lease that
 * another client touched is read and written the ordinary way, and its places are found anew.
 */
#include "local/nodes/node_report.h"

#include "base/arena.h"
#include "base/error.h"
#include "base/json/json.h"
#include "base/limits.h"
#include "base/os/log.h"
#include "base/timefmt.h"
#include "local/api/api.h"
#include "local/kinds/condition.h"
#include "local/nodes/node_index.h"
#include "local/nodes/node_object.h"
#include "local/store/edit.h"
#include "local/store/store.h"

#define REPORT_COMPONENT TD_STR("kubelet")
#define REPORT_FRACTION_DIGITS 6 /* of a lease's renewTime */
#define REPORT_RENEWED_BYTES (sizeof("2006-01-02T15:04:05.000000Z") - 1)

void td_node_report_init(struct td_node_report *report, struct td_api *api, struct td_log *log)
{
    *report = (struct td_node_report){.api = api, .log = log};
    td_buf_init(&report->text, TD_OBJECT_BYTES_MAX);
}

void td_node_report_done(struct td_node_report *report)
{
    td_buf_done(&report->text);
}

static const struct td_stored *report_stored(const struct td_node_report *report,
                                             const char *collection, td_str ns, td_str name)
{
    return td_store_get(td_api_store(report->api), td_str_from(collection), ns, name);
}

static bool report_put(struct td_node_report *report, const struct td_resource *resource,
                       struct td_arena *arena, struct td_json *object)
{
    struct td_error err = TD_ERROR_INIT;
    int code = td_edit_put(report->api, resource, arena, object, &err);
    if (code != TD_OK && code != TD_CONFLICT && code != TD_NOT_FOUND) {
        td_log_line(report->log, TD_LOG_ERROR, "cannot update node",
                    TD_LOG_C("error", err.message));
    }
    return code == TD_OK;
}

/* ---- Leases ---- */

/* Where the text behind `mark` begins when the mark is there exactly once, else 0. */
static size_t report_place(td_str text, const char *mark)
{
    td_str wanted = td_str_from(mark);
    size_t place = 0;
    for (size_t i = 0; i + wanted.len <= text.len; i++) {
        if (text.ptr[i] == '"' && memcmp(text.ptr + i, wanted.ptr, wanted.len) == 0) {
            if (place > 0) {
                return 0;
            }
            place = i + wanted.len;
        }
    }
    return place;
}

/* Remembers the stored revision as the one to go on from; if its form is strange, none. */
static void report_learn(const struct td_node_report *report, struct td_node *node)
{
    node->lease = (struct td_node_lease){.version = 0};
    const struct td_stored *stored = report_stored(report, TD_NODE_LEASE_COLLECTION,
                                                   TD_STR(TD_NODE_LEASE_NAMESPACE), node->name);
    size_t renewed_at = stored ? report_place(stored->json, "\"renewTime\":\"") : 0;
    size_t version_at = stored ? report_place(stored->json, "\"resourceVersion\":\"") : 0;
    if (renewed_at == 0 || version_at == 0 || version_at > renewed_at) {
        return;
    }
    size_t version_end = td_str_find(stored->json, '"', version_at);
    if (td_str_find(stored->json, '"', renewed_at) != renewed_at + REPORT_RENEWED_BYTES ||
        version_end > renewed_at) {
        return;
    }
    node->lease = (struct td_node_lease){
        .version = stored->version,
        .renewed_at = renewed_at,
        .version_at = version_at,
        .version_bytes = version_end - version_at,
    };
}

static void report_lease_anew(struct td_node_report *report, struct td_node *node)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    const struct td_resource *leases =
        td_api_kind(report->api, TD_STR("coordination.k8s.io/v1"), TD_STR("Lease"));
    struct td_json *object;
    struct td_json *lease;
    if (td_edit_get(report->api, td_api_kind(report->api, TD_STR("v1"), TD_STR("Node")),
                    TD_STR_EMPTY, node->name, &arena, &object, NULL) != TD_OK) {
        return;
    }
    if (td_edit_get(report->api, leases, TD_STR(TD_NODE_LEASE_NAMESPACE), node->name, &arena,
                    &lease, NULL) != TD_OK) {
        lease = td_node_lease_new(&arena, object);
    }
    td_node_lease_renew(&arena, lease, td_api_now(report->api));
    if (report_put(report, leases, &arena, lease)) {
        node->probed = td_api_now(report->api);
        report_learn(report, node);
    }
}

/* The bytes of the stored lease with another time and version. */
static void report_write_lease(struct td_node_report *report, const struct td_node_lease *lease,
                               td_str old, uint64_t version)
{
    char time[TD_TIME_TEXT_BYTES];
    size_t bytes =
        td_time_format(td_time_to_instant(td_api_now(report->api)), REPORT_FRACTION_DIGITS, time);
    struct td_buf *text = &report->text;
    td_buf_reset(text); /* the appends below are sticky: a full buffer is refused at the commit */
    (void)td_buf_append(text, td_str_slice(old, 0, lease->version_at));
    (void)td_buf_append_int64(text, (int64_t)version);
    (void)td_buf_append(
        text, td_str_slice(old, lease->version_at + lease->version_bytes, lease->renewed_at));
    (void)td_buf_append(text, (td_str){.ptr = time, .len = bytes});
    (void)td_buf_append(text, td_str_slice(old, lease->renewed_at + REPORT_RENEWED_BYTES, old.len));
}

void td_node_report_lease(struct td_node_report *report, struct td_node *node)
{
    struct td_store *store = td_api_store(report->api);
    struct td_collection *leases = td_store_find(store, TD_STR(TD_NODE_LEASE_COLLECTION));
    const struct td_stored *stored =
        leases ? td_collection_get(leases, TD_STR(TD_NODE_LEASE_NAMESPACE), node->name) : NULL;
    struct td_node_lease *lease = &node->lease;
    if (!stored || lease->renewed_at == 0 || stored->version != lease->version) {
        report_lease_anew(report, node);
        return;
    }
    uint64_t version = td_store_reserve(store);
    report_write_lease(report, lease, stored->json, version);
    const struct td_commit commit = {
        .type = TD_CHANGE_MODIFIED,
        .ns = stored->ns,
        .name = stored->name,
        .version = version,
        .json = td_buf_str(&report->text),
    };
    struct td_stored *after;
    struct td_error err = TD_ERROR_INIT;
    if (report->text.is_full || td_store_commit(store, leases, &commit, &after, &err) != TD_OK) {
        td_log_line(report->log, TD_LOG_ERROR, "cannot renew node lease",
                    TD_LOG_C("error", err.message));
        lease->renewed_at = 0;
        return;
    }
    size_t version_end = td_str_find(after->json, '"', lease->version_at);
    node->probed = td_api_now(report->api);
    lease->version = version;
    lease->renewed_at += version_end - lease->version_at - lease->version_bytes;
    lease->version_bytes = version_end - lease->version_at;
}

/* ---- Status ---- */

void td_node_report_event(struct td_node_report *report, const struct td_node *node, td_str type,
                          td_str reason, td_str message)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_json *object;
    if (td_edit_get(report->api, td_api_kind(report->api, TD_STR("v1"), TD_STR("Node")),
                    TD_STR_EMPTY, node->name, &arena, &object, NULL) == TD_OK) {
        td_edit_event(report->api, object, type, reason, REPORT_COMPONENT, message);
    }
}

void td_node_report_status(struct td_node_report *report, struct td_node *node, bool is_heartbeat)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    const struct td_resource *resource = td_api_kind(report->api, TD_STR("v1"), TD_STR("Node"));
    struct td_json *object;
    const struct td_node_state state = {
        .now = td_api_now(report->api),
        .is_heartbeat = is_heartbeat,
        .is_pressed = node->is_pressed,
    };
    if (td_edit_get(report->api, resource, TD_STR_EMPTY, node->name, &arena, &object, NULL) !=
        TD_OK) {
        return;
    }
    const struct td_json *status = td_json_get(object, TD_STR("status"));
    bool was_ready = td_condition_is(status, TD_STR("Ready"), TD_STR("True"));
    bool was_pressed = td_condition_is(status, TD_STR("MemoryPressure"), TD_STR("True"));
    const struct td_stored *before = report_stored(report, "nodes", TD_STR_EMPTY, node->name);
    bool is_known = before && before->version == node->version;
    if (!td_node_object_complete(&arena, object, &state) ||
        !report_put(report, resource, &arena, object)) {
        return;
    }
    if (is_known && was_ready && was_pressed == node->is_pressed) {
        /* Only times changed, which observers need not hear of: the index knows all else. */
        node->version = report_stored(report, "nodes", TD_STR_EMPTY, node->name)->version;
    }
    if (!was_ready) {
        td_node_report_event(
            report, node, TD_STR("Normal"), TD_STR("NodeReady"),
            td_arena_format(&arena, "Node %.*s status is now: NodeReady", TD_STR_ARG(node->name)));
    }
    if (was_pressed != node->is_pressed) {
        const char *reason =
            node->is_pressed ? "NodeHasInsufficientMemory" : "NodeHasSufficientMemory";
        td_node_report_event(
            report, node, TD_STR("Normal"), td_str_from(reason),
            td_arena_format(&arena, "Node %.*s status is now: %s", TD_STR_ARG(node->name), reason));
    }
}
