/*
 * A bed for tests of the cluster's own controllers: objects written as JSON text through
 * local/store/edit.h, read back by paths.
 */
#pragma once

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "local/store/edit.h"
#include "support/api_bed.h"

/* Quotes may be written as ' in texts. */
static inline struct td_json *edit_bed_parse(struct bed *bed, const char *text)
{
    td_str copy = td_arena_copy_str(&bed->arena, td_str_from(text));
    char *bytes = td_arena_alloc(&bed->arena, copy.len + 1);
    for (size_t i = 0; i < copy.len; i++) {
        bytes[i] = copy.ptr[i] == '\'' ? '"' : copy.ptr[i];
    }
    struct td_json *tree;
    struct td_error err = TD_ERROR_INIT;
    if (td_json_parse(&bed->arena, (td_str){.ptr = bytes, .len = copy.len}, NULL, &tree, &err) !=
        TD_OK) {
        fail_msg("%s: %s", text, err.message);
    }
    return tree;
}

static inline const struct td_resource *edit_bed_resource(struct bed *bed, const char *api_version,
                                                          const char *kind)
{
    return td_resources_find_kind(td_api_resources(bed->api), td_str_from(api_version),
                                  td_str_from(kind))
        .resource;
}

/* Creates the object, or replaces the one there is. */
static inline void edit_bed_put(struct bed *bed, const char *text)
{
    struct td_json *object = edit_bed_parse(bed, text);
    struct td_json *metadata = td_json_get(object, TD_STR("metadata"));
    const struct td_resource *resource =
        td_resources_find_kind(td_api_resources(bed->api),
                               td_json_get_str(object, TD_STR("apiVersion"), TD_STR_EMPTY),
                               td_json_get_str(object, TD_STR("kind"), TD_STR_EMPTY))
            .resource;
    struct td_json *old;
    struct td_error err = TD_ERROR_INIT;
    if (td_edit_get(bed->api, resource,
                    td_json_get_str(metadata, TD_STR("namespace"), TD_STR_EMPTY),
                    td_json_get_str(metadata, TD_STR("name"), TD_STR_EMPTY), &bed->arena, &old,
                    NULL) == TD_OK) {
        td_json_set(
            &bed->arena, metadata, TD_STR("resourceVersion"),
            td_json_copy(&bed->arena, td_json_get_path(old, "metadata.resourceVersion"), false));
    }
    if (td_edit_put(bed->api, resource, &bed->arena, object, &err) != TD_OK) {
        fail_msg("%s: %s", text, err.message);
    }
}

/* The object, or NULL. */
static inline struct td_json *edit_bed_get(struct bed *bed, const char *api_version,
                                           const char *kind, const char *ns, const char *name)
{
    struct td_json *object;
    return td_edit_get(bed->api, edit_bed_resource(bed, api_version, kind), td_str_from(ns),
                       td_str_from(name), &bed->arena, &object, NULL) == TD_OK
               ? object
               : NULL;
}

/* A text or number of it by path, "" when there is none. */
static inline const char *edit_bed_text(struct bed *bed, const struct td_json *object,
                                        const char *path)
{
    const struct td_json *node = td_json_get_path(object, path);
    bool has_text = td_json_is(node, TD_JSON_TYPE_STRING) || td_json_is(node, TD_JSON_TYPE_NUMBER);
    return has_text ? td_arena_copy_str(&bed->arena, node->text).ptr : "";
}

/* A member of one of its conditions, "" when there is none. */
static inline const char *edit_bed_condition(struct bed *bed, const struct td_json *object,
                                             const char *type, const char *member)
{
    const struct td_json *list = td_json_get_path(object, "status.conditions");
    for (const struct td_json *c = td_json_first_child(list); c; c = c->next) {
        if (td_str_equal(td_json_get_str(c, TD_STR("type"), TD_STR_EMPTY), td_str_from(type))) {
            return edit_bed_text(bed, c, member);
        }
    }
    return "";
}

/* The message of the first event with that reason about the object of that name, "" if none. */
static inline const char *edit_bed_event(struct bed *bed, const char *name, const char *reason)
{
    const struct td_collection *events = td_store_find(bed->store, TD_STR("events"));
    struct td_collection_iter iter;
    const struct td_stored *stored;
    const char *message = "";
    if (!events) {
        return message;
    }
    iter = td_collection_walk(events, TD_STR_EMPTY);
    while ((stored = td_collection_iter_next(&iter))) {
        struct td_json *event;
        if (td_json_parse(&bed->arena, stored->json,
                          &(struct td_json_options){.copy_strings = true}, &event, NULL) == TD_OK &&
            strcmp(edit_bed_text(bed, event, "reason"), reason) == 0 &&
            strcmp(edit_bed_text(bed, event, "involvedObject.name"), name) == 0) {
            message = edit_bed_text(bed, event, "message");
        }
    }
    td_collection_iter_done(&iter);
    return message;
}
