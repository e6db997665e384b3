/* Values that `tandem manifests` and `tandem preflight` take alike: what is to be installed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* TD_EXIT_DONE, or TD_EXIT_FAILED after one line that names the command. */
int td_install_take_controllers(const char *command, bool *ret_has, const char *text);
/* Instead of the controllers, that which computes beside upstream's. */
void td_install_take_shadow(bool *ret_has);
int td_install_take_shards(const char *command, size_t *ret_shards, const char *text);
int td_install_take_horizontal(const char *command, bool *ret_serves_builtin, const char *text);
