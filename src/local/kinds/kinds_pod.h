/* Shared by the files of pods only. */
#pragma once

#include "api/pod/pod_validate.h"
#include "local/kinds/kinds_private.h"

/* A pod as written by its doors other than create (kinds_pod_update.c). */
void td_pod_check_update(const struct td_kind_write *write, struct td_field_errors *errors);
void td_pod_check_resize(const struct td_kind_write *write, struct td_field_errors *errors);
