/* Probes and lifecycle handlers. */
#include "api/pod/pod_private.h"

struct handler_kind {
    td_str name;
    bool has_port;
};

static const struct handler_kind handler_kinds[] = {
    {TD_STR_INIT("exec"), false}, {TD_STR_INIT("httpGet"), true}, {TD_STR_INIT("tcpSocket"), true},
    {TD_STR_INIT("grpc"), true},  {TD_STR_INIT("sleep"), false},
};

static void check_one_handler(struct td_field_errors *errors, const struct td_field_path *path,
                              const struct td_json *handler, const struct handler_kind *kind)
{
    static const td_str schemes[] = {TD_STR_INIT("HTTP"), TD_STR_INIT("HTTPS")};
    if (kind->has_port) {
        struct td_field_path port = td_field_child(path, TD_STR("port"));
        td_kind_check_port(errors, &port, td_json_get(handler, TD_STR("port")));
    }
    const struct td_json *command = td_json_member(handler, "command");
    if (td_str_equal(kind->name, TD_STR("exec")) && (!command || command->count == 0)) {
        td_field_required(errors, TD_FIELD(path, "command"), "");
    }
    if (td_str_equal(kind->name, TD_STR("httpGet"))) {
        td_kind_check_one_of(errors, path, handler, TD_STR("scheme"), schemes, 2);
    }
}

static void check_handler(struct td_field_errors *errors, const struct td_field_path *path,
                          const struct td_json *owner)
{
    size_t count = 0;
    for (size_t i = 0; i < TD_COUNT(handler_kinds); i++) {
        const struct td_json *handler = td_kind_member(owner, handler_kinds[i].name);
        struct td_field_path place = td_field_child(path, handler_kinds[i].name);
        if (!handler) {
            continue;
        }
        if (count++ > 0) {
            td_field_forbidden(errors, &place, "may not specify more than 1 handler type");
        } else {
            check_one_handler(errors, &place, handler, &handler_kinds[i]);
        }
    }
    if (count == 0) {
        td_field_required(errors, path, "must specify a handler type");
    }
}

static void check_probe(struct td_field_errors *errors, const struct td_field_path *path,
                        const struct td_json *probe, bool is_readiness)
{
    static const td_str numbers[] = {
        TD_STR_INIT("initialDelaySeconds"), TD_STR_INIT("timeoutSeconds"),
        TD_STR_INIT("periodSeconds"),       TD_STR_INIT("successThreshold"),
        TD_STR_INIT("failureThreshold"),
    };
    check_handler(errors, path, probe);
    for (size_t i = 0; i < TD_COUNT(numbers); i++) {
        td_kind_check_not_negative(errors, path, probe, numbers[i]);
    }
    int64_t grace = td_json_get_int64(probe, TD_STR("terminationGracePeriodSeconds"), 1);
    struct td_field_path grace_path = td_field_child(path, TD_STR("terminationGracePeriodSeconds"));
    if (grace <= 0) {
        td_field_invalid_int(errors, &grace_path, grace, "must be greater than 0");
    }
    if (is_readiness && td_json_member(probe, "terminationGracePeriodSeconds")) {
        td_field_invalid_int(errors, &grace_path, grace, "must not be set for readinessProbes");
    }
    int64_t threshold = td_json_get_int64(probe, TD_STR("successThreshold"), 1);
    if (!is_readiness && threshold != 1) {
        td_field_invalid_int(errors, TD_FIELD(path, "successThreshold"), threshold, "must be 1");
    }
}

static void check_lifecycle(struct td_field_errors *errors, const struct td_field_path *path,
                            const struct td_json *lifecycle)
{
    static const td_str hooks[] = {TD_STR_INIT("postStart"), TD_STR_INIT("preStop")};
    for (size_t i = 0; i < TD_COUNT(hooks); i++) {
        const struct td_json *hook = td_kind_member(lifecycle, hooks[i]);
        if (hook) {
            check_handler(errors, TD_FIELD_AT(path, hooks[i]), hook);
        }
    }
}

void td_pod_check_probes(struct td_field_errors *errors, const struct td_field_path *path,
                         const struct td_json *container, bool are_allowed)
{
    static const td_str members[] = {TD_STR_INIT("lifecycle"), TD_STR_INIT("livenessProbe"),
                                     TD_STR_INIT("readinessProbe"), TD_STR_INIT("startupProbe")};
    for (size_t i = 0; i < TD_COUNT(members); i++) {
        const struct td_json *member = td_kind_member(container, members[i]);
        struct td_field_path place = td_field_child(path, members[i]);
        if (!member) {
            continue;
        }
        if (!are_allowed) {
            td_field_forbidden(errors, &place,
                               "may not be set for init containers without restartPolicy=Always");
        } else if (i == 0) {
            check_lifecycle(errors, &place, member);
        } else {
            check_probe(errors, &place, member, i == 2);
        }
    }
}
