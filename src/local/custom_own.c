/*
 * Rules of our own kinds that their schemas state in CEL, which the local server does not
 * evaluate: asked of the rooms that own the kinds.
 */
#include "api/vpa/vpa.h"
#include "local/kinds/custom_row.h"

static void custom_check_vpa(struct td_arena *arena, const struct td_json *object,
                             struct td_field_errors *errors)
{
    struct td_json *stored;
    /* What does not even decode was already refused by the schema. */
    (void)td_vpa_apply_crd(arena, object, errors, &stored, NULL);
}

td_custom_check_fn td_custom_own_rules(td_str group, td_str kind)
{
    bool is_vpa = td_str_equal(group, TD_STR("autoscaling.k8s.io")) &&
                  td_str_equal(kind, TD_STR("VerticalPodAutoscaler"));
    return is_vpa ? custom_check_vpa : NULL;
}
