#include "api/hpa/hpa.h"

#include <pthread.h>

#include "api/hpa/hpa_private.h"
#include "base/assert.h"
#include "base/error.h"
#include "kube/schema/check.h"

#define HPA_FIELDS_MAX 8 /* of the object and of its spec, ours included */

/* Our kind's types: the built-in v2 ones, of which only the root and the spec are copied and
 * changed. Filled once, constant afterwards. */
static struct td_schema_field hpa_fields[HPA_FIELDS_MAX];
static struct td_schema_field hpa_spec_fields[HPA_FIELDS_MAX];
static struct td_schema_type hpa_type;
static struct td_schema_type hpa_spec_type;
static pthread_once_t hpa_schema_once = PTHREAD_ONCE_INIT;

static void hpa_copy_fields(struct td_schema_field *to, const struct td_schema_type *from,
                            size_t spare)
{
    td_assert(from->field_count + spare <= HPA_FIELDS_MAX);
    for (size_t i = 0; i < from->field_count; i++) {
        to[i] = from->fields[i];
    }
}

static void hpa_schema_init(void)
{
    const struct td_schema_type *root = td_schema_find(TD_HPA_V2, TD_HPA_KIND);
    td_assert(root);
    const struct td_schema_field *spec = td_schema_field(root, TD_STR("spec"));
    td_assert(spec);
    hpa_copy_fields(hpa_spec_fields, spec->type, 1);
    size_t last = spec->type->field_count;
    td_assert(td_str_compare(hpa_spec_fields[last - 1].name, TD_STR("selectionStrategy")) < 0);
    hpa_spec_fields[last] = (struct td_schema_field){
        .name = TD_STR("selectionStrategy"),
        .type = td_schema_field(root, TD_STR("kind"))->type,
        .is_pointer = true,
    };
    hpa_spec_type = *spec->type;
    hpa_spec_type.fields = hpa_spec_fields;
    hpa_spec_type.field_count = last + 1;

    hpa_copy_fields(hpa_fields, root, 0);
    hpa_fields[spec - root->fields].type = &hpa_spec_type;
    hpa_type = *root;
    hpa_type.fields = hpa_fields;
}

const struct td_schema_type *td_hpa_schema(void)
{
    int code = pthread_once(&hpa_schema_once, hpa_schema_init);
    td_assert(code == 0);
    return &hpa_type;
}

const struct td_schema_type *td_hpa_schema_of(td_str api_version)
{
    if (td_str_equal(api_version, TD_HPA_V1)) {
        return td_schema_find(TD_HPA_V1, TD_HPA_KIND);
    }
    if (td_str_equal(api_version, TD_HPA_V2) || td_str_equal(api_version, TD_HPA_TANDEM_V2)) {
        return td_hpa_schema();
    }
    return NULL;
}

int td_hpa_check_types(const struct td_json *object, struct td_error *err)
{
    if (!td_json_is(object, TD_JSON_TYPE_OBJECT)) {
        return td_error_set(err, TD_INVALID, "a HorizontalPodAutoscaler must be an object");
    }
    td_str version = td_json_get_str(object, TD_STR("apiVersion"), TD_STR_EMPTY);
    td_str kind = td_json_get_str(object, TD_STR("kind"), TD_STR_EMPTY);
    if (!td_str_equal(kind, TD_HPA_KIND)) {
        return td_error_set(err, TD_INVALID, "kind: \"%.*s\": must be HorizontalPodAutoscaler",
                            TD_STR_ARG(kind));
    }
    const struct td_schema_type *type = td_hpa_schema_of(version);
    if (!type) {
        return td_error_set(err, TD_INVALID,
                            "apiVersion: \"%.*s\": must be autoscaling/v1, autoscaling/v2 or "
                            "autoscaling.tandem.dev/v2",
                            TD_STR_ARG(version));
    }
    return td_check_types(type, object, NULL, err);
}
