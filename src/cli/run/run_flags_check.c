/* What flags mean together: combinations that cannot work are refused with the names of both; and a
 * file that one names. */
#include "base/error.h"
#include "base/limits.h"
#include "base/os/file.h"
#include "base/timefmt.h"
#include "cli/run/run_flags.h"
#include "kube/names.h"

struct check_name {
    const char *flag;
    td_str value;
    bool may_be_empty;
    bool is_label; /* a namespace or a Service; else a name as most objects have */
};

static int check_name(const struct check_name *row, struct td_error *err)
{
    td_auto_buf problem = td_buf_capped(TD_ERROR_MESSAGE_BYTES);
    if (row->value.len == 0 && row->may_be_empty) {
        return TD_OK;
    }
    size_t problems = row->is_label ? td_name_check_dns1123_label(row->value, &problem)
                                    : td_name_check_dns1123_subdomain(row->value, &problem);
    td_str text = td_buf_str(&problem);
    text = td_str_slice(text, 0, td_str_find(text, '\n', 0)); /* the first says enough */
    return problems == 0 ? TD_OK
                         : td_error_set(err, TD_INVALID, "--%s: '%.*s': %.*s", row->flag,
                                        TD_STR_ARG(row->value), TD_STR_ARG(text));
}

static int check_names(const struct td_run_flags *flags, struct td_error *err)
{
    const struct td_controllers_options *options = &flags->controllers;
    const struct check_name rows[] = {
        {"vpa-object-namespace", options->vpa_namespace, true, true},
        {"leader-elect-resource-namespace", options->leader.namespace, false, true},
        {"leader-elect-resource-name", options->leader.name, true, false},
        {"admission-controller-status-lease-namespace", options->update.lease_namespace, false,
         true},
        {"admission-controller-status-lease-name", options->update.lease_name, false, false},
        {"webhook-namespace", options->webhook.namespace, false, true},
        {"webhook-service", options->webhook.service, false, true},
        {"webhook-secret", options->webhook.secret, false, false},
        {"status-lease-namespace", options->webhook.lease_namespace, false, true},
        {"status-lease-name", options->webhook.lease_name, false, false},
    };
    int code = TD_OK;
    for (size_t i = 0; code == TD_OK && i < sizeof(rows) / sizeof(rows[0]); i++) {
        code = check_name(&rows[i], err);
    }
    return code;
}

int td_run_flags_settle_shadow(struct td_run_flags *flags, struct td_error *err)
{
    struct td_controllers_options *options = &flags->controllers;
    const struct {
        const char *flag;
        bool is_given;
    } others[] = {
        {"controllers", flags->controllers_text.len > 0},
        {"replace-upstream", options->replaces_upstream},
        {"horizontal", td_str_equal(flags->horizontal_text, TD_STR("builtin"))},
        {"page-listen", flags->page_listen.len > 0},
    };
    for (size_t i = 0; i < TD_COUNT(others); i++) {
        if (others[i].is_given) {
            return td_error_set(err, TD_INVALID,
                                "--shadow: only computes, so --%s has nothing to act on",
                                others[i].flag);
        }
    }
    for (size_t kind = 0; kind < TD_CONTROLLER_COUNT; kind++) {
        options->has[kind] = kind == TD_CONTROLLER_SHADOW;
    }
    options->hvpa_gate = false; /* an Hvpa has no part of upstream's beside it */
    return TD_OK;
}

static int check_namespaces(const char *flag, const td_str *names, size_t count,
                            struct td_error *err)
{
    int code = TD_OK;
    for (size_t i = 0; code == TD_OK && i < count; i++) {
        code = check_name(&(struct check_name){flag, names[i], false, true}, err);
    }
    return code;
}

/* As client-go has it: who cannot renew must stop before another may begin. */
static int check_lease(const struct td_leader_options *leader, bool has_shards,
                       struct td_error *err)
{
    char longer[TD_DURATION_TEXT_BYTES];
    char shorter[TD_DURATION_TEXT_BYTES];
    if (!leader->is_on && !has_shards) {
        return TD_OK;
    }
    (void)td_duration_format(leader->renew_deadline, shorter);
    if (leader->lease_duration <= leader->renew_deadline) {
        (void)td_duration_format(leader->lease_duration, longer);
        return td_error_set(err, TD_INVALID,
                            "--leader-elect-lease-duration: '%s': must be longer than "
                            "--leader-elect-renew-deadline '%s'",
                            longer, shorter);
    }
    if ((double)leader->renew_deadline <= 1.2 * (double)leader->retry_period) {
        (void)td_duration_format(leader->retry_period, longer);
        return td_error_set(err, TD_INVALID,
                            "--leader-elect-retry-period: '%s': must be shorter than "
                            "--leader-elect-renew-deadline '%s' divided by 1.2",
                            longer, shorter);
    }
    return TD_OK;
}

static int check_shards(const struct td_run_flags *flags, struct td_error *err)
{
    const struct td_controllers_options *options = &flags->controllers;
    const char *other = options->replaces_upstream       ? "--replace-upstream"
                        : options->leader.name.len > 0   ? "--leader-elect-resource-name"
                        : options->vpa_namespace.len > 0 ? "--vpa-object-namespace"
                                                         : NULL;
    return flags->has_shards && other
               ? td_error_set(err, TD_INVALID, "--shards: '%zu': excludes %s", flags->shards, other)
               : TD_OK;
}

int td_run_flags_check(const struct td_run_flags *flags, struct td_error *err)
{
    const struct td_controllers_options *options = &flags->controllers;
    int code = check_names(flags, err);
    code = code == TD_OK
               ? check_namespaces("ignored-vpa-object-namespaces", options->ignored_namespaces,
                                  options->ignored_count, err)
               : code;
    code = code == TD_OK
               ? check_namespaces("webhook-exempt-namespaces", options->webhook.exempt_namespaces,
                                  options->webhook.exempt_count, err)
               : code;
    code = code == TD_OK ? check_shards(flags, err) : code;
    return code == TD_OK ? check_lease(&options->leader, flags->has_shards, err) : code;
}

int td_run_flags_read_client_ca(struct td_arena *arena, struct td_run_flags *flags,
                                struct td_error *err)
{
    if (flags->client_ca_file.len == 0) {
        return TD_OK;
    }
    int code = td_file_read(flags->client_ca_file.ptr, arena, TD_PEM_BYTES_MAX,
                            &flags->controllers.webhook.client_ca_pem, err);
    if (code == TD_OK && flags->controllers.webhook.client_ca_pem.len == 0) {
        code = td_error_set(err, TD_INVALID, "'%s' is empty", flags->client_ca_file.ptr);
    }
    return code == TD_OK ? TD_OK : td_error_wrap(err, code, "--webhook-client-ca-file");
}
