/*
 * The query of a resource request. What is odd in it follows the API server: of a parameter given
 * twice the first counts, pairs with broken escapes are passed over, a flag is true unless it says
 * "false" or "0", and options that contradict each other are refused as one 422 that names the
 * options kind.
 */
#include "local/api/api_private.h"

#include <strings.h>

#include "base/assert.h"
#include "base/limits.h"
#include "kube/fielderror.h"
#include "kube/quote.h"

enum query_name {
    QUERY_ALLOW_BOOKMARKS,
    QUERY_CONTINUE,
    QUERY_DRY_RUN,
    QUERY_FIELD_MANAGER,
    QUERY_FIELD_SELECTOR,
    QUERY_FIELD_VALIDATION,
    QUERY_FORCE,
    QUERY_GRACE_PERIOD,
    QUERY_INCLUDE_OBJECT,
    QUERY_LABEL_SELECTOR,
    QUERY_LIMIT,
    QUERY_ORPHAN,
    QUERY_PRETTY,
    QUERY_PROPAGATION,
    QUERY_VERSION,
    QUERY_VERSION_MATCH,
    QUERY_SEND_INITIAL,
    QUERY_SHARDS,
    QUERY_TIMEOUT,
    QUERY_WATCH,
    QUERY_NAME_COUNT
};

static const td_str query_names[QUERY_NAME_COUNT] = {
    [QUERY_ALLOW_BOOKMARKS] = TD_STR_INIT("allowWatchBookmarks"),
    [QUERY_CONTINUE] = TD_STR_INIT("continue"),
    [QUERY_DRY_RUN] = TD_STR_INIT("dryRun"),
    [QUERY_FIELD_MANAGER] = TD_STR_INIT("fieldManager"),
    [QUERY_FIELD_SELECTOR] = TD_STR_INIT("fieldSelector"),
    [QUERY_FIELD_VALIDATION] = TD_STR_INIT("fieldValidation"),
    [QUERY_FORCE] = TD_STR_INIT("force"),
    [QUERY_GRACE_PERIOD] = TD_STR_INIT("gracePeriodSeconds"),
    [QUERY_INCLUDE_OBJECT] = TD_STR_INIT("includeObject"),
    [QUERY_LABEL_SELECTOR] = TD_STR_INIT("labelSelector"),
    [QUERY_LIMIT] = TD_STR_INIT("limit"),
    [QUERY_ORPHAN] = TD_STR_INIT("orphanDependents"),
    [QUERY_PRETTY] = TD_STR_INIT("pretty"),
    [QUERY_PROPAGATION] = TD_STR_INIT("propagationPolicy"),
    [QUERY_VERSION] = TD_STR_INIT("resourceVersion"),
    [QUERY_VERSION_MATCH] = TD_STR_INIT("resourceVersionMatch"),
    [QUERY_SEND_INITIAL] = TD_STR_INIT("sendInitialEvents"),
    [QUERY_SHARDS] = TD_STR_INIT("shardSelector"),
    [QUERY_TIMEOUT] = TD_STR_INIT("timeoutSeconds"),
    [QUERY_WATCH] = TD_STR_INIT("watch"),
};

/* The first value of each parameter. */
struct query_values {
    td_str text[QUERY_NAME_COUNT]; /* ptr NULL: not given */
    td_str dry_runs[TD_API_PARAMETERS_MAX];
    size_t dry_run_count;
};

static bool query_has(const struct query_values *values, enum query_name name)
{
    return values->text[name].ptr != NULL;
}

static td_str query_text(const struct query_values *values, enum query_name name)
{
    return query_has(values, name) ? values->text[name] : TD_STR_EMPTY;
}

static void query_take(struct query_values *values, td_str key, td_str value)
{
    for (size_t i = 0; i < QUERY_NAME_COUNT; i++) {
        if (td_str_equal(key, query_names[i])) {
            if (!values->text[i].ptr) {
                values->text[i] = value;
            }
            if (i == QUERY_DRY_RUN) {
                td_assert(values->dry_run_count < TD_API_PARAMETERS_MAX);
                values->dry_runs[values->dry_run_count++] = value;
            }
            return;
        }
    }
}

/* False when there are more parameters than are read: to pass over one could turn a dry run into a
 * write. */
static bool query_split(struct td_arena *arena, td_str query, struct query_values *ret)
{
    size_t from = 0;
    for (size_t i = 0; i < TD_API_PARAMETERS_MAX && from < query.len; i++) {
        size_t end = td_str_find(query, '&', from);
        td_str pair = td_str_slice(query, from, end);
        size_t equals = td_str_find(pair, '=', 0);
        td_str key;
        td_str value;
        if (td_str_find(pair, ';', 0) == pair.len &&
            td_query_decode(arena, td_str_slice(pair, 0, equals), &key) &&
            td_query_decode(arena, td_str_slice(pair, equals + 1, pair.len), &value)) {
            query_take(ret, key, value);
        }
        from = end + 1;
    }
    return from >= query.len;
}

static bool query_flag(const struct query_values *values, enum query_name name)
{
    td_str text = query_text(values, name);
    bool is_false = td_str_equal(text, TD_STR("0")) ||
                    (text.len == 5 && strncasecmp(text.ptr, "false", 5) == 0);
    return query_has(values, name) && !is_false;
}

static td_str query_quoted(struct td_arena *arena, td_str text)
{
    td_auto_buf quoted = td_buf_capped(TD_API_WARNING_BYTES_MAX);
    td_quote_write(td_str_cut_utf8(text, TD_API_WARNING_BYTES_MAX / 8), &quoted);
    return td_arena_copy_str(arena, td_buf_str(&quoted));
}

/* Why Go's ParseInt and ParseUint refuse a text. */
static const char *query_number_problem(td_str text)
{
    size_t from = text.len > 1 && (text.ptr[0] == '-' || text.ptr[0] == '+') ? 1 : 0;
    for (size_t i = from; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9') {
            return "invalid syntax";
        }
    }
    return text.len > from ? "value out of range" : "invalid syntax";
}

/* False when it was refused and the call answered. */
static bool query_int(struct td_api_call *call, const struct query_values *values,
                      enum query_name name, int64_t *ret)
{
    if (!query_has(values, name) || td_str_to_int64(values->text[name], ret)) {
        return true;
    }
    td_str text = values->text[name];
    td_call_fail(call, 400, "BadRequest", "strconv.ParseInt: parsing %s: %s",
                 query_quoted(&call->arena, text).ptr, query_number_problem(text));
    return false;
}

bool td_query_check_version(struct td_api_call *call)
{
    td_str text = call->query.resource_version;
    int64_t version = 0;
    bool is_unsigned = text.len > 0 && text.ptr[0] >= '0' && text.ptr[0] <= '9';
    if (text.len == 0 || (is_unsigned && td_str_to_int64(text, &version))) {
        return true;
    }
    td_str quoted = query_quoted(&call->arena, text);
    const char *problem = is_unsigned ? query_number_problem(text) : "invalid syntax";
    td_call_fail(call, 400, "BadRequest",
                 "invalid resource version: resourceVersion: Invalid value: %s: "
                 "strconv.ParseUint: parsing %s: %s",
                 quoted.ptr, quoted.ptr, problem);
    return false;
}

/* ---- Options that contradict each other ---- */

static void query_forbid(struct td_field_errors *errors, const char *field, const char *detail)
{
    td_field_forbidden(errors, TD_FIELD_AT(NULL, td_str_from(field)), detail);
}

static void query_check_match(struct td_field_errors *errors, const struct td_api_query *query)
{
    static const td_str matches[] = {TD_STR_INIT("Exact"), TD_STR_INIT("NotOlderThan"),
                                     TD_STR_INIT("")};
    td_str match = query->resource_version_match;
    bool is_exact = td_str_equal(match, matches[0]);
    if (query->resource_version.len == 0) {
        query_forbid(errors, "resourceVersionMatch",
                     "resourceVersionMatch is forbidden unless resourceVersion is provided");
    }
    if (query->continue_token.len > 0) {
        query_forbid(errors, "resourceVersionMatch",
                     "resourceVersionMatch is forbidden when continue is provided");
    }
    if (!is_exact && !td_str_equal(match, matches[1])) {
        td_field_unsupported(errors, TD_FIELD(NULL, "resourceVersionMatch"), match, matches, 3);
    }
    if (is_exact && td_str_equal(query->resource_version, TD_STR("0"))) {
        query_forbid(errors, "resourceVersionMatch",
                     "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
    }
}

static void query_check_watch(struct td_field_errors *errors, const struct td_api_query *query)
{
    static const td_str matches[] = {TD_STR_INIT("NotOlderThan")};
    td_str match = query->resource_version_match;
    bool is_not_older = td_str_equal(match, matches[0]);
    if (query->has_send_initial_events && !is_not_older) {
        query_forbid(errors, "resourceVersionMatch",
                     "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
    }
    if (match.len == 0) {
        return;
    }
    if (!query->has_send_initial_events) {
        query_forbid(
            errors, "resourceVersionMatch",
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided");
    }
    if (!is_not_older) {
        td_field_unsupported(errors, TD_FIELD(NULL, "resourceVersionMatch"), match, matches, 1);
    }
    if (query->continue_token.len > 0) {
        query_forbid(errors, "resourceVersionMatch",
                     "resourceVersionMatch is forbidden when continue is provided");
    }
}

static bool query_check_list(struct td_api_call *call)
{
    struct td_field_errors errors = {.arena = &call->arena};
    const struct td_api_query *query = &call->query;
    if (query->is_watch) {
        query_check_watch(&errors, query);
    } else {
        if (query->resource_version_match.len > 0) {
            query_check_match(&errors, query);
        }
        if (query->has_send_initial_events) {
            query_forbid(&errors, "sendInitialEvents", "sendInitialEvents is forbidden for list");
        }
    }
    if (errors.count > 0) {
        td_call_invalid_options(call, "ListOptions", &errors);
        return false;
    }
    return true;
}

static void query_check_dry_run(struct td_field_errors *errors, const struct query_values *values)
{
    bool is_bad = false;
    td_auto_buf shown = td_buf_capped(TD_API_WARNING_BYTES_MAX);
    for (size_t i = 0; i < values->dry_run_count; i++) {
        is_bad = is_bad || !td_str_equal(values->dry_runs[i], TD_STR("All"));
        (void)td_buf_append(&shown, i == 0 ? TD_STR("[") : TD_STR(","));
        td_quote_write(td_str_cut_utf8(values->dry_runs[i], 64), &shown);
    }
    (void)td_buf_append_char(&shown, ']'); /* cut when it does not fit: only a message */
    if (is_bad) {
        td_field_error_add(errors, TD_FIELD(NULL, "dryRun"), TD_FIELD_UNSUPPORTED,
                           td_buf_str(&shown), TD_STR("supported values: \"All\""));
    }
}

static void query_check_validation(struct td_field_errors *errors, td_str validation)
{
    static const td_str known[] = {TD_STR_INIT(""), TD_STR_INIT("Ignore"), TD_STR_INIT("Strict"),
                                   TD_STR_INIT("Warn")};
    for (size_t i = 0; i < 4; i++) {
        if (td_str_equal(validation, known[i])) {
            return;
        }
    }
    td_field_unsupported(errors, TD_FIELD(NULL, "fieldValidation"), validation, known, 4);
}

static void query_check_manager(struct td_field_errors *errors, td_str manager)
{
    struct td_field_path path = td_field_child(NULL, TD_STR("fieldManager"));
    if (manager.len > TD_FIELD_MANAGER_BYTES_MAX) {
        td_field_error_add(errors, &path, TD_FIELD_TOO_LONG, TD_STR_EMPTY,
                           TD_STR("may not be more than 128 bytes"));
    }
    for (size_t i = 0; i < manager.len; i++) {
        if ((unsigned char)manager.ptr[i] < ' ' || manager.ptr[i] == 0x7f) {
            td_str detail =
                td_arena_format(errors->arena, "invalid character U+%04X (at position %zu)",
                                (unsigned)(unsigned char)manager.ptr[i], i);
            td_field_invalid_str(errors, &path, manager, detail.ptr);
            return;
        }
    }
}

static void query_check_patch(struct td_field_errors *errors, const struct td_api_call *call,
                              const struct query_values *values)
{
    td_str type = td_str_trim(td_str_slice(call->request.content_type, 0,
                                           td_str_find(call->request.content_type, ';', 0)));
    bool is_apply = td_str_starts_with(type, TD_STR("application/apply-patch+"));
    if (is_apply && call->query.field_manager.len == 0) {
        td_field_required(errors, TD_FIELD(NULL, "fieldManager"), "is required for apply patch");
    }
    if (!is_apply && query_has(values, QUERY_FORCE)) {
        query_forbid(errors, "force", "may not be specified for non-apply patch");
    }
}

static bool query_check_write(struct td_api_call *call, const struct query_values *values,
                              enum td_query_kind kind)
{
    struct td_field_errors errors = {.arena = &call->arena};
    if (kind == TD_QUERY_PATCH) {
        query_check_patch(&errors, call, values);
    }
    query_check_manager(&errors, call->query.field_manager);
    query_check_dry_run(&errors, values);
    query_check_validation(&errors, query_text(values, QUERY_FIELD_VALIDATION));
    if (errors.count > 0) {
        td_call_invalid_options(call,
                                kind == TD_QUERY_CREATE  ? "CreateOptions"
                                : kind == TD_QUERY_PATCH ? "PatchOptions"
                                                         : "UpdateOptions",
                                &errors);
        return false;
    }
    return true;
}

static bool query_check_delete(struct td_api_call *call, const struct query_values *values)
{
    static const td_str known[] = {TD_STR_INIT("Foreground"), TD_STR_INIT("Background"),
                                   TD_STR_INIT("Orphan"), TD_STR_INIT("nil")};
    struct td_field_errors errors = {.arena = &call->arena};
    struct td_field_path path = td_field_child(NULL, TD_STR("propagationPolicy"));
    td_str policy = query_text(values, QUERY_PROPAGATION);
    bool is_known = policy.len == 0;
    for (size_t i = 0; i < 3; i++) {
        is_known = is_known || td_str_equal(policy, known[i]);
    }
    if (query_has(values, QUERY_ORPHAN) && policy.len > 0) {
        td_field_invalid_str(&errors, &path, policy,
                             "orphanDependents and deletionPropagation cannot be both set");
    } else if (!is_known) {
        td_field_unsupported(&errors, &path, policy, known, 4);
    }
    query_check_dry_run(&errors, values);
    if (errors.count > 0) {
        td_call_invalid_options(call, "DeleteOptions", &errors);
        return false;
    }
    call->query.propagation_policy = policy;
    if (query_has(values, QUERY_ORPHAN)) {
        call->query.propagation_policy = query_flag(values, QUERY_ORPHAN) ? known[2] : known[1];
    }
    return true;
}

/* Asked for, or a browser or curl; a list is long and stays as it is stored. */
static bool query_is_pretty(const struct td_api_call *call, const struct query_values *values,
                            enum td_query_kind kind)
{
    static const td_str yes[] = {TD_STR_INIT("1"),    TD_STR_INIT("t"),    TD_STR_INIT("T"),
                                 TD_STR_INIT("true"), TD_STR_INIT("True"), TD_STR_INIT("TRUE")};
    td_str pretty = query_text(values, QUERY_PRETTY);
    if (td_str_is_among(pretty, yes, TD_COUNT(yes))) {
        return true;
    }
    td_str agent = call->request.user_agent;
    return pretty.len == 0 && kind != TD_QUERY_LIST &&
           (td_str_starts_with(agent, TD_STR("curl")) ||
            td_str_starts_with(agent, TD_STR("Wget")) ||
            td_str_starts_with(agent, TD_STR("Mozilla/5.0")));
}

static void query_fill(struct td_api_call *call, const struct query_values *values)
{
    struct td_api_query *query = &call->query;
    query->label_selector = query_text(values, QUERY_LABEL_SELECTOR);
    query->field_selector = query_text(values, QUERY_FIELD_SELECTOR);
    query->shard_selector = query_text(values, QUERY_SHARDS);
    query->resource_version = query_text(values, QUERY_VERSION);
    query->resource_version_match = query_text(values, QUERY_VERSION_MATCH);
    query->continue_token = query_text(values, QUERY_CONTINUE);
    query->is_watch = query->is_watch || query_flag(values, QUERY_WATCH);
    query->allow_bookmarks = query_flag(values, QUERY_ALLOW_BOOKMARKS);
    query->send_initial_events = query_flag(values, QUERY_SEND_INITIAL);
    query->has_send_initial_events = query_has(values, QUERY_SEND_INITIAL);
    query->is_dry_run = values->dry_run_count > 0;
    query->force = query_flag(values, QUERY_FORCE);
    query->field_manager = query_text(values, QUERY_FIELD_MANAGER);
    query->field_validation = query_text(values, QUERY_FIELD_VALIDATION);
    if (query->field_validation.len == 0) {
        query->field_validation = TD_STR("Warn");
    }
    query->include_object = query_text(values, QUERY_INCLUDE_OBJECT);
    query->grace_period_seconds = -1;
}

bool td_query_parse(struct td_api_call *call, td_str query, enum td_query_kind kind)
{
    struct query_values *values = td_arena_new(&call->arena, struct query_values);
    if (!query_split(&call->arena, query, values)) {
        td_call_fail(call, 400, "BadRequest", "the URL query has more than %d parameters",
                     TD_API_PARAMETERS_MAX);
        return false;
    }
    query_fill(call, values);
    call->is_pretty = query_is_pretty(call, values, kind);
    if (!query_int(call, values, QUERY_LIMIT, &call->query.limit) ||
        !query_int(call, values, QUERY_TIMEOUT, &call->query.timeout_seconds) ||
        !query_int(call, values, QUERY_GRACE_PERIOD, &call->query.grace_period_seconds)) {
        return false;
    }
    switch (kind) {
    case TD_QUERY_GET:
        return td_query_check_version(call);
    case TD_QUERY_LIST:
        return query_check_list(call);
    case TD_QUERY_CREATE:
    case TD_QUERY_UPDATE:
    case TD_QUERY_PATCH:
        return query_check_write(call, values, kind);
    case TD_QUERY_DELETE:
        return query_check_delete(call, values);
    case TD_QUERY_DELETE_COLLECTION:
        return query_check_list(call) && query_check_delete(call, values);
    }
    return true;
}
