/*
 * Label, field and shard selectors of lists and watches: read from the query, and matched against
 * stored objects.
 */
#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"
#include "local/api/api_private.h"
#include "local/kinds/kinds.h"

static const td_str select_name = TD_STR_INIT("metadata.name");
static const td_str select_namespace = TD_STR_INIT("metadata.namespace");

static bool select_is_key(td_str field)
{
    return td_str_equal(field, select_name) || td_str_equal(field, select_namespace);
}

/* Upstream has two sentences: one of the kinds with fields of their own, one of the others. */
static void select_refuse_field(struct td_api_call *call, td_str field)
{
    static const td_str own[] = {TD_STR_INIT("pods"),       TD_STR_INIT("nodes"),
                                 TD_STR_INIT("events"),     TD_STR_INIT("replicationcontrollers"),
                                 TD_STR_INIT("namespaces"), TD_STR_INIT("secrets"),
                                 TD_STR_INIT("services")};
    for (size_t i = 0; i < TD_COUNT(own); i++) {
        if (call->at.resource->group.len == 0 && td_str_equal(call->at.resource->plural, own[i])) {
            td_call_fail(call, 400, "BadRequest", "field label not supported: %.*s",
                         TD_STR_ARG(field));
            return;
        }
    }
    td_call_fail(call, 400, "BadRequest",
                 "\"%.*s\" is not a known field selector: only \"metadata.name\", "
                 "\"metadata.namespace\"",
                 TD_STR_ARG(field));
}

bool td_select_parse(struct td_api_call *call, struct td_select *ret)
{
    struct td_error err = TD_ERROR_INIT;
    struct td_select select = {.resource = call->at.resource};
    if (td_selector_parse(&call->arena, call->query.label_selector, &select.labels, &err) !=
            TD_OK ||
        td_field_selector_parse(&call->arena, call->query.field_selector, &select.fields, &err) !=
            TD_OK) {
        td_call_fail(call, 400, "BadRequest", "%s", err.message);
        return false;
    }
    select.has_labels = !td_selector_is_empty(&select.labels);
    for (size_t i = 0; i < select.fields.count; i++) {
        td_str field = select.fields.requirements[i].field;
        if (!select_is_key(field) && !td_kind_has_field(select.resource, field)) {
            select_refuse_field(call, field);
            return false;
        }
        select.has_other_fields = select.has_other_fields || !select_is_key(field);
    }
    td_str shards = call->query.shard_selector;
    if (shards.len > 0 &&
        td_shard_selector_parse(&call->arena, shards, &select.shards, &err) != TD_OK) {
        td_call_fail(call, 500, "", "%s", err.message); /* so upstream: no 400, no reason */
        return false;
    }
    if (!td_query_check_version(call)) {
        return false;
    }
    *ret = select;
    return true;
}

bool td_select_is_empty(const struct td_select *select)
{
    return !select->has_labels && select->fields.count == 0;
}

void td_select_prove(struct td_api_call *call, const struct td_select *select,
                     struct td_json *metadata)
{
    if (select->shards.count == 0 || call->form != TD_FORM_OBJECT || select->resource->custom) {
        return;
    }
    td_auto_buf text = td_buf_capped(TD_SHARD_SELECTOR_BYTES_MAX);
    td_shard_selector_write(&select->shards, &text);
    struct td_json *info = td_json_ensure_object(&call->arena, metadata, TD_STR("shardInfo"));
    td_json_set_str(&call->arena, info, TD_STR("selector"),
                    td_arena_copy_str(&call->arena, td_buf_str(&text)));
}

struct select_subject {
    const struct td_select *select;
    const struct td_stored *stored;
    const struct td_json *object; /* NULL: name and namespace are enough */
};

static td_str select_field(td_str field, void *context)
{
    const struct select_subject *subject = context;
    if (td_str_equal(field, select_name)) {
        return subject->stored->name;
    }
    if (td_str_equal(field, select_namespace)) {
        return subject->stored->ns;
    }
    td_str value = TD_STR_EMPTY;
    return td_kind_field(subject->select->resource, field, subject->object, &value) ? value
                                                                                    : TD_STR_EMPTY;
}

static bool select_matches_labels(const struct td_select *select, struct td_arena *scratch,
                                  const struct td_stored *stored)
{
    struct td_json *object = NULL;
    if (stored->labels.len > 0) {
        (void)td_json_parse(scratch, stored->labels, NULL, &object, NULL); /* was stored as JSON */
    }
    struct td_labels labels = td_labels_from_json(scratch, object);
    return td_selector_matches(&select->labels, &labels);
}

bool td_select_matches(const struct td_select *select, struct td_arena *scratch,
                       const struct td_stored *stored)
{
    td_arena_reset(scratch);
    if (!td_shard_selector_matches(&select->shards, stored->ns, stored->uid)) {
        return false;
    }
    if (select->has_labels && !select_matches_labels(select, scratch, stored)) {
        return false;
    }
    if (select->fields.count == 0) {
        return true;
    }
    struct td_json *object = NULL;
    if (select->has_other_fields) {
        (void)td_json_parse(scratch, stored->json, NULL, &object, NULL); /* was stored as JSON */
    }
    struct select_subject subject = {.select = select, .stored = stored, .object = object};
    return td_field_selector_matches(&select->fields, select_field, &subject);
}
