/*
 * The tables of the module: metric sources, types of targets, and the schema of our own kind, which
 * is that of autoscaling/v2 with spec.selectionStrategy and the sources that only we have.
 */
#include "api/hpa/hpa.h"

#include <pthread.h>
#include <stdlib.h>

#include "api/hpa/hpa_private.h"
#include "api/hpa/hpa_source.h"
#include "base/arena.h"
#include "base/assert.h"
#include "base/error.h"
#include "base/limits.h"
#include "kube/schema/check.h"

const struct td_hpa_source *const td_hpa_sources[TD_HPA_METRIC_UNKNOWN] = {
#define ROW(name, row) [TD_HPA_##name] = &td_hpa_source_##row,
    TD_HPA_SOURCES(ROW)
#undef ROW
};

void td_hpa_source_types(td_str ret[TD_HPA_METRIC_UNKNOWN])
{
    for (size_t i = 0; i < TD_HPA_METRIC_UNKNOWN; i++) {
        ret[i] = td_hpa_sources[i]->type;
    }
    qsort(ret, TD_HPA_METRIC_UNKNOWN, sizeof(ret[0]), td_str_compare_items);
}

const td_str td_hpa_target_types[TD_HPA_TARGET_UNKNOWN] = {
    [TD_HPA_UTILIZATION] = TD_STR_INIT("Utilization"),
    [TD_HPA_VALUE] = TD_STR_INIT("Value"),
    [TD_HPA_AVERAGE_VALUE] = TD_STR_INIT("AverageValue"),
};
const td_str td_hpa_target_members[TD_HPA_TARGET_UNKNOWN] = {
    [TD_HPA_UTILIZATION] = TD_STR_INIT("averageUtilization"),
    [TD_HPA_VALUE] = TD_STR_INIT("value"),
    [TD_HPA_AVERAGE_VALUE] = TD_STR_INIT("averageValue"),
};

#define TD_HPA_STRATEGY_PROTO_PATH 6 /* of spec, as in the prototype */

/* Our kind's type: the built-in v2 one with what we add. Made once, constant afterwards; it lives
 * as long as the process. */
static const struct td_schema_type *hpa_type;
static const struct td_schema_type *hpa_served_type;
static struct td_arena hpa_type_arena;
static pthread_once_t hpa_schema_once = PTHREAD_ONCE_INIT;

/* A copy of the type in which one field is added or replaced. */
static const struct td_schema_type *hpa_with_field(const struct td_schema_type *from,
                                                   struct td_schema_field field)
{
    struct td_schema_type *made = td_arena_new(&hpa_type_arena, struct td_schema_type);
    struct td_schema_field *fields =
        td_arena_array(&hpa_type_arena, struct td_schema_field, from->field_count + 1);
    size_t count = 0;
    bool is_placed = false;
    for (size_t i = 0; i < from->field_count; i++) {
        int order = is_placed ? -1 : td_str_compare(from->fields[i].name, field.name);
        if (order >= 0) {
            fields[count++] = field;
            is_placed = true;
        }
        if (order != 0) {
            fields[count++] = from->fields[i];
        }
    }
    if (!is_placed) {
        fields[count++] = field;
    }
    *made = *from;
    made->fields = fields;
    made->field_count = count;
    return made;
}

/* The same with another type for a member that there is. */
static const struct td_schema_type *hpa_with_type(const struct td_schema_type *from, td_str member,
                                                  const struct td_schema_type *type)
{
    struct td_schema_field field = *td_schema_field(from, member);
    field.type = type;
    return hpa_with_field(from, field);
}

/* A spec or status whose metrics have our own sources too. */
static const struct td_schema_type *hpa_with_sources(const struct td_schema_type *part,
                                                     td_str member, bool is_status)
{
    const struct td_schema_type *list = td_schema_field(part, member)->type;
    const struct td_schema_type *metric = list->element;
    for (size_t i = 0; i < TD_HPA_METRIC_UNKNOWN; i++) {
        const struct td_hpa_source *source = td_hpa_sources[i];
        const struct td_schema_type *type = is_status ? source->status_type : source->spec_type;
        if (type) {
            metric = hpa_with_field(
                metric,
                (struct td_schema_field){.name = source->member, .type = type, .is_pointer = true});
        }
    }
    if (metric == list->element) {
        return part;
    }
    struct td_schema_type *made = td_arena_new(&hpa_type_arena, struct td_schema_type);
    *made = *list;
    made->element = metric;
    return hpa_with_type(part, member, made);
}

/* The built-in kind with the field in both spellings that the proposal has: its text writes it with
 * a capital letter, its prototype as the other fields, with a number in protobuf. */
static void hpa_served_init(const struct td_schema_type *root, struct td_schema_field strategy)
{
    const struct td_schema_type *spec = td_schema_field(root, TD_STR("spec"))->type;
    spec = hpa_with_field(spec, strategy);
    strategy.name = TD_HPA_STRATEGY_ALIAS_FIELD;
    strategy.proto_path = 0;
    hpa_served_type = hpa_with_type(root, TD_STR("spec"), hpa_with_field(spec, strategy));
}

static void hpa_schema_init(void)
{
    const struct td_schema_type *root = td_schema_find(TD_HPA_V2, TD_HPA_KIND);
    td_assert(root);
    td_arena_init(&hpa_type_arena, TD_TREE_ARENA_BYTES_MAX);
    const struct td_schema_type *spec = td_schema_field(root, TD_STR("spec"))->type;
    const struct td_schema_type *status = td_schema_field(root, TD_STR("status"))->type;
    struct td_schema_field strategy = {
        .name = TD_STR("selectionStrategy"),
        .type = td_schema_field(root, TD_STR("kind"))->type,
        .is_pointer = true,
        .proto_path = TD_HPA_STRATEGY_PROTO_PATH,
    };
    hpa_served_init(root, strategy);
    spec = hpa_with_sources(spec, TD_STR("metrics"), false);
    spec = hpa_with_field(spec, strategy);
    status = hpa_with_sources(status, TD_STR("currentMetrics"), true);
    root = hpa_with_type(root, TD_STR("spec"), spec);
    hpa_type = hpa_with_type(root, TD_STR("status"), status);
}

const struct td_schema_type *td_hpa_schema(void)
{
    int code = pthread_once(&hpa_schema_once, hpa_schema_init);
    td_assert(code == 0);
    return hpa_type;
}

const struct td_schema_type *td_hpa_served_schema(void)
{
    (void)td_hpa_schema(); /* makes both */
    return hpa_served_type;
}

const struct td_schema_type *td_hpa_metric_schema(bool is_status)
{
    td_str part = is_status ? TD_STR("status") : TD_STR("spec");
    td_str member = is_status ? TD_STR("currentMetrics") : TD_STR("metrics");
    return td_schema_member(td_schema_member(td_hpa_schema(), part), member)->element;
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
    td_str version = td_json_text(object, "apiVersion");
    td_str kind = td_json_text(object, "kind");
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
