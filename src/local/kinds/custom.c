#include "local/kinds/custom.h"

#include "base/error.h"
#include "kube/schema/schema_check.h"
#include "local/kinds/kinds_private.h"

int td_custom_default(struct td_arena *arena, const struct td_custom *custom, size_t version,
                      struct td_json *object, struct td_error *err)
{
    if (!td_json_is(object, TD_JSON_TYPE_OBJECT)) {
        return td_error_set(err, TD_INVALID, "must be an object");
    }
    const struct td_json *schema = custom->versions[version].schema;
    if (schema) {
        struct td_json *shaped;
        int code = td_schema_shape(arena, schema, object, &shaped, err);
        if (code != TD_OK) {
            return code;
        }
        td_json_take(object, shaped);
    }
    return TD_OK;
}

void td_custom_prepare(struct td_kind_write *write)
{
    const struct td_resource *resource = write->resource;
    if (!resource->custom->versions[resource->storage].has_status) {
        return;
    }
    if (write->operation == TD_WRITE_CREATE) {
        (void)td_json_remove(write->object, TD_STR("status")); /* mostly absent */
        return;
    }
    if (write->operation == TD_WRITE_UPDATE) {
        td_kind_take(write->arena, write->object, write->old, TD_STR("status"));
        return;
    }
    /* A status write takes status alone: the rest is what is stored. */
    struct td_json *next = NULL;
    for (struct td_json *member = td_json_first_member(write->object); member; member = next) {
        next = member->next;
        bool is_kept = td_str_equal(member->key, TD_STR("status")) ||
                       td_str_equal(member->key, TD_STR("metadata"));
        if (!is_kept) {
            (void)td_json_remove(write->object, member->key); /* it was just found */
        }
    }
    for (const struct td_json *member = td_json_first_member(write->old); member;
         member = member->next) {
        bool is_kept = td_str_equal(member->key, TD_STR("status")) ||
                       td_str_equal(member->key, TD_STR("metadata"));
        if (!is_kept) {
            td_json_set_copy(write->arena, write->object, member->key, member);
        }
    }
}

void td_custom_validate(const struct td_kind_write *write, struct td_field_errors *errors)
{
    const struct td_custom *custom = write->resource->custom;
    const struct td_json *schema = custom->versions[write->resource->storage].schema;
    if (schema) {
        td_schema_check(schema, write->object, errors);
    }
    if (custom->check_rules && errors->count == 0) {
        custom->check_rules(write->object, errors);
    }
}
