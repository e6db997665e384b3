#include "cli/scenario_path.h"

#include <sys/stat.h>

#include "base/str.h"

const char *td_scenario_path(struct td_arena *arena, const char *argument)
{
    struct stat status;
    if (stat(argument, &status) != 0 || !S_ISDIR(status.st_mode)) {
        return argument;
    }
    bool has_slash = td_str_ends_with(td_str_from(argument), TD_STR("/"));
    return td_arena_format(arena, "%s%sscenario.yaml", argument, has_slash ? "" : "/").ptr;
}
