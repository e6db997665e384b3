/* Services: addresses, ports and their rules. Private to the kinds. */
#pragma once

#include "local/kinds/kinds_private.h"

void td_service_prepare(struct td_kind_write *write);
void td_service_validate(const struct td_kind_write *write, struct td_field_errors *errors);
