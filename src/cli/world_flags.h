/*
 * What `simulate` and `up` share: the options about the local cluster, its controllers and its log.
 */
#pragma once

#include "base/os/log.h"
#include "cli/options.h"
#include "control/controllers.h"

struct td_world_flags {
    const char *command; /* for messages */
    uint64_t seed;
    bool has_seed;
    struct td_controllers_options controllers;
    bool has_controllers;
    enum td_log_level level;
    bool is_quiet;
};

/* Rows of the table of a command's options, for its member of the type above. */
#define TD_WORLD_OPTIONS(type, member)                                                             \
    TD_OPTION("seed", 0, type, member, td_world_flags_seed),                                       \
        TD_OPTION("controllers", 0, type, member, td_world_flags_controllers),                     \
        TD_OPTION("feature-gates", 0, type, member, td_world_flags_gates),                         \
        {"quiet", 'q', false, offsetof(type, member), td_world_flags_quiet},                       \
    {                                                                                              \
        "verbose", 'v', false, offsetof(type, member), td_world_flags_verbose                      \
    }

int td_world_flags_seed(void *place, const char *value);
int td_world_flags_controllers(void *place, const char *value);
int td_world_flags_gates(void *place, const char *value);
int td_world_flags_quiet(void *place, const char *value);
int td_world_flags_verbose(void *place, const char *value);
