#include "local/kinds_pod.h"

void td_pod_validate(const struct td_kind_write *write, struct td_field_errors *errors)
{
    (void)write;
    (void)errors;
}
void td_pod_check_template(struct td_field_errors *errors, const struct td_field_path *path,
                           const struct td_json *template)
{
    (void)errors;
    (void)path;
    (void)template;
}
