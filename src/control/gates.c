#include "control/gates.h"

#include <string.h>

#include "base/error.h"
#include "control/controllers.h"

struct gate_row {
    const char *name;
    size_t offset; /* in struct td_controllers_options */
    const char *stage;
};

#define AT(member) offsetof(struct td_controllers_options, member)

static const struct gate_row gate_rows[TD_GATE_COUNT] = {
    {"CPUStartupBoost", AT(gates.cpu_startup_boost), "alpha"},
    {"InPlace", AT(gates.in_place), "alpha"},
    {"PerVPAConfig", AT(gates.per_vpa_config), "alpha"},
    {"HeterogeneousWorkloads", AT(gates.heterogeneous_workloads), "beta"},
    {"PodLevelResources", AT(gates.pod_level_resources), "beta"},
    {"HPASelectionStrategy", AT(selection_strategy_gate), "beta"},
    {"Hvpa", AT(hvpa_gate), "beta"},
    {"HPAScaleToZero", AT(horizontal.config.can_scale_to_zero), "beta"},
    {"HPAConfigurableTolerance", AT(horizontal.config.is_tolerance_configurable), "beta"},
};

struct td_gate td_gate_at(const struct td_controllers_options *options, size_t index)
{
    const struct gate_row *row = &gate_rows[index];
    struct td_gate gate = {.name = row->name, .stage = row->stage};
    memcpy(&gate.is_on, (const char *)options + row->offset, sizeof(gate.is_on));
    return gate;
}

static int gates_set_one(struct td_controllers_options *options, td_str entry, struct td_error *err)
{
    size_t equals = td_str_find(entry, '=', 0);
    td_str name = td_str_trim(td_str_slice(entry, 0, equals));
    td_str value =
        equals < entry.len ? td_str_trim(td_str_slice(entry, equals + 1, entry.len)) : TD_STR_EMPTY;
    bool is_on = td_str_equal(value, TD_STR("true"));
    bool is_found = false;
    if (!is_on && !td_str_equal(value, TD_STR("false"))) {
        return td_error_set(err, TD_INVALID,
                            "--feature-gates: '%.*s': must be NAME=true or NAME=false",
                            TD_STR_ARG(entry));
    }
    for (size_t i = 0; i < TD_GATE_COUNT; i++) {
        bool is_all = (td_str_equal(name, TD_STR("AllAlpha")) && gate_rows[i].stage[0] == 'a') ||
                      (td_str_equal(name, TD_STR("AllBeta")) && gate_rows[i].stage[0] == 'b');
        if (is_all || td_str_equal(name, td_str_from(gate_rows[i].name))) {
            memcpy((char *)options + gate_rows[i].offset, &is_on, sizeof(is_on));
            is_found = true;
        }
    }
    if (is_found) {
        return TD_OK;
    }
    const char *meant = td_str_suggest(name, gate_rows, TD_GATE_COUNT, sizeof(gate_rows[0]));
    return td_error_set(err, TD_INVALID, "--feature-gates: '%.*s': unknown gate%s%s%s",
                        TD_STR_ARG(name), meant ? "; did you mean " : "", meant ? meant : "",
                        meant ? "?" : "");
}

int td_gates_set(struct td_controllers_options *options, td_str list, struct td_error *err)
{
    int code = TD_OK;
    while (code == TD_OK && list.len > 0) {
        code = gates_set_one(options, td_rights_word(&list), err);
    }
    options->horizontal.strategy.is_gate_on = options->selection_strategy_gate;
    options->hvpa.horizontal = options->horizontal.config;
    /* Boosts are annotations, which are removed when they end. */
    options->update.annotates = options->update.annotates || options->gates.cpu_startup_boost;
    return code;
}
