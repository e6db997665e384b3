#include "cli/install_flags.h"

#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "cli/command.h"
#include "control/controllers.h"

int td_install_take_controllers(const char *command, bool *ret_has, const char *text)
{
    struct td_error err = TD_ERROR_INIT;
    return td_controllers_choose(td_str_from(text), ret_has, &err) == TD_OK
               ? TD_EXIT_DONE
               : td_command_fail("%s: --controllers: %s", command, err.message);
}

void td_install_take_shadow(bool *ret_has)
{
    for (size_t kind = 0; kind < TD_CONTROLLER_COUNT; kind++) {
        ret_has[kind] = kind == TD_CONTROLLER_SHADOW;
    }
}

int td_install_take_shards(const char *command, size_t *ret_shards, const char *text)
{
    int64_t count = 0;
    if (!td_str_to_int64(td_str_from(text), &count) || count < 1 || count > TD_SHARDS_MAX) {
        return td_command_fail("%s: --shards: '%s': must be a number from 1 to %d", command, text,
                               TD_SHARDS_MAX);
    }
    *ret_shards = (size_t)count;
    return TD_EXIT_DONE;
}

int td_install_take_horizontal(const char *command, bool *ret_serves_builtin, const char *text)
{
    bool is_builtin = strcmp(text, "builtin") == 0;
    if (!is_builtin && strcmp(text, "off") != 0) {
        return td_command_fail("%s: --horizontal: '%s': must be off or builtin", command, text);
    }
    *ret_serves_builtin = is_builtin;
    return TD_EXIT_DONE;
}
