/*
 * What the controllers do when no flag says otherwise, upstream's defaults where upstream has the
 * flag, and the reading of --controllers.
 */
#include "control/controllers.h"

#include <string.h>

#include "base/error.h"
#include "decide/horizontal/owners.h"
#include "decide/horizontal/strategy.h"

static struct td_recommend_options default_recommend(void)
{
    return (struct td_recommend_options){
        .config = td_vertical_config_default(),
        .name = TD_STR("default"),
        .interval = TD_MINUTE,
        .checkpoints_gc_interval = 10 * TD_MINUTE,
        .checkpoints_timeout = TD_MINUTE,
        .writes_max = 10,
        .prometheus =
            {
                .address = TD_STR_EMPTY,
                .job = TD_STR("kubernetes-cadvisor"),
                .query_timeout = 5 * TD_MINUTE,
                .history_length = 8 * 24 * TD_HOUR,
                .history_resolution = TD_HOUR,
                .cpu_metric = TD_STR("container_cpu_usage_seconds_total"),
                .memory_metric = TD_STR("container_memory_working_set_bytes"),
                .pod_label_prefix = TD_STR("pod_label_"),
                .pod_labels_metric = TD_STR("up{job=\"kubernetes-pods\"}"),
                .pod_namespace_label = TD_STR("kubernetes_namespace"),
                .pod_name_label = TD_STR("kubernetes_pod_name"),
                .container_namespace_label = TD_STR("namespace"),
                .container_pod_name_label = TD_STR("pod_name"),
                .container_name_label = TD_STR("name"),
            },
    };
}

static struct td_update_options default_update(void)
{
    return (struct td_update_options){
        .config = td_updater_config_default(),
        .interval = TD_MINUTE,
        .uses_lease = true,
        .lease_namespace = TD_STR("kube-system"),
        .lease_name = TD_STR(TD_STATUS_LEASE),
        .lease_timeout = TD_MINUTE,
        .annotates = true,
        .boost_syncs = 1,
    };
}

static struct td_webhook_options default_webhook(void)
{
    return (struct td_webhook_options){
        .registers = true,
        .namespace = TD_STR("kube-system"),
        .service = TD_STR("tandem-webhook"),
        .secret = TD_STR("tandem-webhook-tls"),
        .timeout_seconds = 5,
        .lease_namespace = TD_STR("kube-system"),
        .lease_name = TD_STR(TD_STATUS_LEASE),
        .lease_interval = 10 * TD_SECOND,
        .probe_interval = 10 * TD_SECOND,
        .deadline = 2 * TD_SECOND,
    };
}

struct td_controllers_options td_controllers_options_default(void)
{
    return (struct td_controllers_options){
        .qps = 50,
        .burst = 100,
        .has = {[TD_CONTROLLER_RECOMMENDER] = true,
                [TD_CONTROLLER_UPDATER] = true,
                [TD_CONTROLLER_ADMISSION] = true,
                [TD_CONTROLLER_HORIZONTAL] = true,
                [TD_CONTROLLER_HVPA] = true},
        .vpa_namespace = TD_STR_EMPTY,
        .leader = {.lease_duration = 15 * TD_SECOND,
                   .renew_deadline = 10 * TD_SECOND,
                   .retry_period = 2 * TD_SECOND,
                   .namespace = TD_STR("kube-system"),
                   .name = TD_STR_EMPTY},
        .recommend = default_recommend(),
        .update = default_update(),
        .webhook = default_webhook(),
        .horizontal = {.config = td_hpa_config_default(),
                       .sync_period = 15 * TD_SECOND,
                       .syncs_max = 5,
                       .strategy = {.is_gate_on = true, .primary_key = TD_HPA_STRATEGY_ANNOTATION},
                       .owner_ttl = TD_OWNER_TTL_DEFAULT},
        .hvpa = {.sync_period = 15 * TD_SECOND, .horizontal = td_hpa_config_default()},
        .gates = {.heterogeneous_workloads = true, .pod_level_resources = true},
        .hvpa_gate = true,
        .selection_strategy_gate = true,
        .seed = 1,
    };
}

static int controllers_unknown(td_str word, struct td_error *err)
{
    const char *names[TD_CONTROLLER_CHOICES];
    for (size_t kind = 0; kind < TD_CONTROLLER_CHOICES; kind++) {
        names[kind] = td_controller_name((enum td_controller_kind)kind);
    }
    const char *meant = td_str_suggest(word, names, TD_CONTROLLER_CHOICES, sizeof(names[0]));
    return meant ? td_error_set(err, TD_INVALID, "'%.*s': unknown controller; did you mean %s?",
                                TD_STR_ARG(word), meant)
                 : td_error_set(err, TD_INVALID,
                                "'%.*s': must be one of recommender, updater, admission, "
                                "horizontal, hvpa",
                                TD_STR_ARG(word));
}

int td_controllers_choose(td_str list, bool has[TD_CONTROLLER_COUNT], struct td_error *err)
{
    bool chosen[TD_CONTROLLER_COUNT] = {false};
    for (size_t from = 0; from <= list.len;) {
        size_t end = td_str_find(list, ',', from);
        td_str word = td_str_trim(td_str_slice(list, from, end));
        size_t kind = 0;
        while (
            kind < TD_CONTROLLER_CHOICES &&
            !td_str_equal(word, td_str_from(td_controller_name((enum td_controller_kind)kind)))) {
            kind++;
        }
        if (kind == TD_CONTROLLER_CHOICES) {
            return controllers_unknown(word, err);
        }
        chosen[kind] = true;
        from = end + 1;
    }
    memcpy(has, chosen, sizeof(chosen));
    return TD_OK;
}
