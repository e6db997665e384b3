/*
 * What is looked at once, at the start: whether the API server allows what the controllers do, and
 * whether it has what they need. Both are only told; controllers begin all the same.
 */
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/os/log.h"
#include "control/controllers_private.h"
#include "control/preflight/preflight.h"
#include "control/upstream.h"
#include "kube/client/access.h"

static void controllers_checked(void *context, const struct td_access_result *result)
{
    struct td_controllers *all = context;
    all->access = NULL;
    all->access_missing = result->missing;
    if (result->code != TD_OK) {
        td_log_line(all->options.log, TD_LOG_WARN, "permission check failed",
                    TD_LOG_C("error", result->err.message));
    }
    td_str lines = result->lines;
    while (lines.len > 0) {
        size_t end = td_str_find(lines, '\n', 0);
        td_arena_reset(&all->texts);
        td_str line = td_arena_format(&all->texts, "missing permission: %.*s",
                                      TD_STR_ARG(td_str_slice(lines, 0, end)));
        lines = td_str_slice(lines, end < lines.len ? end + 1 : end, lines.len);
        td_log_write(all->options.log, TD_LOG_ERROR, line.ptr, NULL);
    }
}

/* What the cluster lacks, told once; what is well is not. */
static void controllers_found(void *context, const struct td_findings *findings)
{
    struct td_controllers *all = context;
    for (size_t i = 0; i < findings->count; i++) {
        const struct td_finding *one = &findings->items[i];
        td_arena_reset(&all->texts);
        td_str line = td_arena_format(&all->texts, "preflight: %.*s", TD_STR_ARG(one->found));
        if (one->state != TD_FINDING_OK) {
            td_log_line(all->options.log, one->state == TD_FINDING_MEND ? TD_LOG_WARN : TD_LOG_INFO,
                        line.ptr, TD_LOG_S("then", one->remedy));
        }
    }
}

static void controllers_look(struct td_controllers *all)
{
    struct td_preflight_options options = {.client = all->client,
                                           .flow = all->access_flow,
                                           .clock = td_loop_clock(all->options.loop),
                                           .is_short = true};
    memcpy(options.install.has, all->options.has, sizeof(options.install.has));
    all->preflight = td_preflight_start(&options, controllers_found, all);
}

static void controllers_check_access(struct td_controllers *all)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    const struct td_controllers_options *options = &all->options;
    const struct td_rights_scope scope = {
        .has = options->asks_rights_of ? options->asks_rights_of : options->has,
        .features = {[TD_FEATURE_HVPA] = options->hvpa_gate,
                     [TD_FEATURE_ANNOTATE] = options->update.annotates,
                     [TD_FEATURE_NODES] = options->caps_to_node,
                     [TD_FEATURE_BUILTIN] = options->horizontal.serves_builtin,
                     [TD_FEATURE_REVIEWS] = options->is_metrics_tls},
        .lease_name = options->leader.name,
        .replaces_upstream = options->replaces_upstream,
        .places = {
            [TD_RIGHT_OWN] = {.namespace = options->webhook.namespace,
                              .name = options->webhook.secret},
            [TD_RIGHT_ELECTION] = {.is_off = !options->leader.is_on,
                                   .namespace = options->leader.namespace},
            [TD_RIGHT_STATUS] = {.namespace = options->webhook.lease_namespace,
                                 .name = options->webhook.lease_name},
            [TD_RIGHT_STATUS_READ] = {.is_off = !options->update.uses_lease,
                                      .namespace = options->update.lease_namespace,
                                      .name = options->update.lease_name},
            [TD_RIGHT_SHARDS] = {.is_off = !options->write_metrics,
                                 .namespace = options->leader.namespace},
            [TD_RIGHT_UPSTREAM] = {.is_off = !options->watches_upstream,
                                   .namespace = TD_STR(TD_UPSTREAM_NAMESPACE)},
        }};
    const struct td_access_rule *rules;
    size_t count = td_rights_questions(&arena, &scope, &rules);
    all->access =
        td_access_check(all->client, all->access_flow, rules, count, controllers_checked, all);
}

void controllers_check(struct td_controllers *all)
{
    controllers_check_access(all);
    controllers_look(all);
}
