#include "base/os/env.h"

#include <stdlib.h>

const char *td_env_get(const char *name, void *context)
{
    (void)context;
    return getenv(name);
}
