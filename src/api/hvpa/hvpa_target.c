/* Where an Hvpa names its workload. An object that does not decode still names one, so nothing else
 * of it is judged here. */
#include "api/hvpa/hvpa_private.h"

struct target_place {
    td_str part; /* empty: spec itself */
    td_str key;
    const char *flat;   /* path of the reference */
    const char *object; /* the same where the part is a whole object */
};

/* In the order in which they count. */
static const struct target_place target_places[TD_HVPA_TARGET_PLACES] = {
    {TD_STR_INIT(""), TD_STR_INIT("targetRef"), "spec.targetRef", "spec.targetRef"},
    {TD_STR_INIT("hpaSpec"), TD_STR_INIT("scaleTargetRef"), "spec.hpaSpec.scaleTargetRef",
     "spec.hpaSpec.spec.scaleTargetRef"},
    {TD_STR_INIT("vpaSpec"), TD_STR_INIT("targetRef"), "spec.vpaSpec.targetRef",
     "spec.vpaSpec.spec.targetRef"},
};

const struct td_json *td_hvpa_part(const struct td_json *spec, td_str key, bool *ret_is_object)
{
    const struct td_json *outer = td_kind_member(spec, key);
    const struct td_json *inner = td_json_member(outer, "spec");
    *ret_is_object = td_json_is(inner, TD_JSON_TYPE_OBJECT);
    return *ret_is_object ? inner : td_json_is(outer, TD_JSON_TYPE_OBJECT) ? outer : NULL;
}

const struct td_json *td_hvpa_target_at(const struct td_json *spec, size_t place, td_str *ret_field)
{
    const struct target_place *row = &target_places[place];
    bool is_object = false;
    const struct td_json *part =
        row->part.len > 0 ? td_hvpa_part(spec, row->part, &is_object) : spec;
    const struct td_json *node = td_kind_member(part, row->key);
    struct td_object_reference reference = td_hpa_decode_reference(node);
    bool is_empty =
        reference.kind.len == 0 && reference.name.len == 0 && reference.api_version.len == 0;
    *ret_field = td_str_from(is_object ? row->object : row->flat);
    return is_empty ? NULL : node;
}

const struct td_json *td_hvpa_target(const struct td_json *object, td_str *ret_field)
{
    const struct td_json *spec = td_json_member(object, "spec");
    for (size_t i = 0; i < TD_HVPA_TARGET_PLACES; i++) {
        const struct td_json *node = td_hvpa_target_at(spec, i, ret_field);
        if (node) {
            return node;
        }
    }
    *ret_field = td_str_from(target_places[0].flat);
    return NULL;
}
