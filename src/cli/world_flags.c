#include "cli/world_flags.h"

#include <string.h>

#include "base/error.h"
#include "cli/command.h"
#include "control/gates.h"

int td_world_flags_seed(void *place, const char *value)
{
    struct td_world_flags *flags = place;
    int64_t seed;
    if (!td_str_to_int64(td_str_from(value), &seed) || seed < 0) {
        return td_command_fail("%s: --seed: '%s': must be a non-negative integer", flags->command,
                               value);
    }
    flags->seed = (uint64_t)seed;
    flags->has_seed = true;
    return TD_EXIT_DONE;
}

int td_world_flags_controllers(void *place, const char *value)
{
    struct td_world_flags *flags = place;
    struct td_error err = TD_ERROR_INIT;
    flags->has_controllers = strcmp(value, "none") != 0;
    if (flags->has_controllers &&
        td_controllers_choose(td_str_from(value), flags->controllers.has, &err) != TD_OK) {
        return td_command_fail("%s: --controllers: %s", flags->command, err.message);
    }
    return TD_EXIT_DONE;
}

int td_world_flags_gates(void *place, const char *value)
{
    struct td_world_flags *flags = place;
    struct td_error err = TD_ERROR_INIT;
    if (td_gates_set(&flags->controllers, td_str_from(value), &err) != TD_OK) {
        return td_command_fail("%s: %s", flags->command, err.message);
    }
    return TD_EXIT_DONE;
}

int td_world_flags_quiet(void *place, const char *value)
{
    struct td_world_flags *flags = place;
    (void)value; /* it has none */
    flags->is_quiet = true;
    flags->level = TD_LOG_ERROR;
    return TD_EXIT_DONE;
}

int td_world_flags_verbose(void *place, const char *value)
{
    (void)value; /* it has none */
    ((struct td_world_flags *)place)->level = TD_LOG_DEBUG;
    return TD_EXIT_DONE;
}
