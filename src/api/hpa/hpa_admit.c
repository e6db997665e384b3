/*
 * What a server does with a write, in its order: decode and default, convert to the middle form,
 * take over what the writer may not change, drop fields whose gate is off, validate. The stored
 * form is v2, defaulted once more because that is what the next reader would do.
 */
#include <stdlib.h>

#include "api/hpa/hpa.h"
#include "api/hpa/hpa_private.h"
#include "api/hpa/hpa_validate.h"
#include "api/objectmeta.h"
#include "base/assert.h"
#include "base/error.h"

static td_str admit_target_text(const struct td_json *object, td_str member)
{
    return td_json_get_str(td_json_member(td_kind_spec(object), "scaleTargetRef"), member,
                           TD_STR_EMPTY);
}

/* A field whose gate is off is dropped, unless the stored object has it already: then it stays and
 * is validated, so that switching a gate off breaks no stored object. */
static void admit_drop_gated(struct td_json *object, const struct td_json *old,
                             const struct td_hpa_gates *gates)
{
    bool is_stored = td_json_member(td_kind_spec(old), "selectionStrategy") != NULL;
    if (!gates->selection_strategy && !is_stored) {
        struct td_json *spec = td_json_member(object, "spec");
        (void)td_json_remove(spec, TD_STR("selectionStrategy")); /* mostly absent */
    }
}

/* An old Object metric whose reference is already bad keeps the new ones from being judged. */
static bool admit_has_bad_metric(struct td_arena *arena, const struct td_json *old)
{
    const struct td_json *metrics = td_json_member(td_kind_spec(old), "metrics");
    for (const struct td_json *item = td_json_first_item(metrics); item; item = item->next) {
        const struct td_json *source = td_json_member(item, "object");
        const struct td_json *described = td_json_member(source, "describedObject");
        td_str type = td_json_text(item, "type");
        td_str version = td_json_text(described, "apiVersion");
        if (source && td_str_equal(type, TD_STR("Object")) &&
            td_hpa_version_problem(arena, version, true)) {
            return true;
        }
    }
    return false;
}

static struct td_hpa_rules_in_force admit_rules(struct td_arena *arena,
                                                const struct td_json *object,
                                                const struct td_json *old,
                                                const struct td_hpa_gates *gates)
{
    bool is_stored_zero = td_json_get_int64(td_kind_spec(old), TD_STR("minReplicas"), 1) == 0;
    td_str kind = admit_target_text(object, TD_STR("kind"));
    bool is_same_target = old && td_str_equal(kind, admit_target_text(old, TD_STR("kind"))) &&
                          td_str_equal(admit_target_text(object, TD_STR("apiVersion")),
                                       admit_target_text(old, TD_STR("apiVersion")));
    return (struct td_hpa_rules_in_force){
        .min_replicas_bound = gates->scale_to_zero || is_stored_zero ? 0 : 1,
        .allows_any_target_version = is_same_target,
        .allows_core_target = td_str_equal(kind, TD_STR("ReplicationController")),
        .allows_any_described_version = admit_has_bad_metric(arena, old),
    };
}

/* Generation counts changes of the spec; a writer's own idea of it is ignored. */
static void admit_set_generation(struct td_arena *arena, struct td_json *object,
                                 const struct td_json *old)
{
    struct td_json *metadata = td_json_ensure_object(arena, object, TD_STR("metadata"));
    int64_t generation = 1;
    if (old) {
        const struct td_json *before = td_json_member(old, "metadata");
        generation = td_json_get_int64(before, TD_STR("generation"), 0);
        bool is_changed = !td_json_equal(td_kind_spec(object), td_kind_spec(old));
        generation += is_changed && generation < INT64_MAX ? 1 : 0;
    }
    if (generation > 0) {
        td_json_set_int64(arena, metadata, TD_STR("generation"), generation);
    } else {
        (void)td_json_remove(metadata, TD_STR("generation")); /* may be absent */
    }
}

static void admit_validate(struct td_arena *arena, const struct td_hpa_admission *admission,
                           const struct td_json *object, const struct td_json *old,
                           struct td_field_errors *errors)
{
    const struct td_json *metadata = td_json_member(object, "metadata");
    if (admission->operation == TD_HPA_CREATE) {
        td_objectmeta_validate(errors, metadata);
    } else {
        td_objectmeta_validate_update(errors, metadata, td_json_member(old, "metadata"));
    }
    if (admission->operation == TD_HPA_STATUS_UPDATE) {
        td_hpa_validate_status(errors, td_json_member(object, "status"));
    } else {
        struct td_hpa_rules_in_force rules = admit_rules(arena, object, old, &admission->gates);
        td_hpa_validate_spec(errors, td_kind_spec(object), &rules);
    }
}

static int admit_compare(const void *a, const void *b)
{
    const struct td_field_error *first = a;
    const struct td_field_error *second = b;
    int order = td_str_compare(first->field, second->field);
    if (order == 0) {
        order = td_str_compare(td_field_error_type_name(first->type),
                               td_field_error_type_name(second->type));
    }
    return order != 0 ? order : td_str_compare(first->detail, second->detail);
}

/* To v2, in the group that the object has. */
static int admit_convert(struct td_arena *arena, const struct td_json *object, struct td_json **ret,
                         struct td_error *err)
{
    td_str version = td_json_text(object, "apiVersion");
    bool is_ours = td_str_equal(version, TD_HPA_TANDEM_V2);
    return td_hpa_convert(arena, object, is_ours ? TD_HPA_TANDEM_V2 : TD_HPA_V2, ret, err);
}

int td_hpa_admit(struct td_arena *arena, const struct td_hpa_admission *admission,
                 struct td_field_errors *errors, struct td_json **ret_stored, struct td_error *err)
{
    struct td_json *object;
    struct td_json *old = NULL;
    int code = admit_convert(arena, admission->object, &object, err);
    if (code == TD_OK && admission->operation != TD_HPA_CREATE) {
        td_assert(admission->old);
        code = admit_convert(arena, admission->old, &old, err);
    }
    if (code < 0) {
        return code;
    }
    if (admission->operation == TD_HPA_STATUS_UPDATE) {
        td_kind_take(arena, object, old, TD_STR("spec"));
    } else {
        td_kind_take(arena, object, old, TD_STR("status"));
        admit_drop_gated(object, old, &admission->gates);
    }
    admit_set_generation(arena, object, old);
    admit_validate(arena, admission, object, old, errors);
    if (errors->count > 0) {
        qsort(errors->items, errors->count, sizeof(errors->items[0]), admit_compare);
        return TD_OK;
    }
    code = td_hpa_default(arena, object, err);
    if (code == TD_OK && ret_stored) {
        *ret_stored = object;
    }
    return code;
}
