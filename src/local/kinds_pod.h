/* Between the files of pods; nobody else includes this. */
#pragma once

#include "api/fielderror.h"
#include "local/kinds_private.h"

/* A pod as written by any of its doors (kinds_pod_validate.c, kinds_pod_update.c). */
void td_pod_validate(const struct td_kind_write *write, struct td_field_errors *errors);
void td_pod_check_update(const struct td_kind_write *write, struct td_field_errors *errors);
void td_pod_check_resize(const struct td_kind_write *write, struct td_field_errors *errors);
