/*
 * The steps of a create, one after the other: types and unknown fields by the schema of the kind,
 * defaults, the metadata that a server fills in, the kind's preparation and its checks, and at last
 * what our webhooks add for our own kinds. The object is a copy that is thrown away; problems keep
 * the lines of the file.
 */
#include "local/kinds/offline.h"

#include <strings.h>

#include "api/objectmeta.h"
#include "api/objects.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "kube/meta.h"
#include "kube/removed.h"
#include "local/api/write.h"
#include "local/kinds/custom_row.h"
#include "local/kinds/kinds.h"

#define OFFLINE_UID "00000000-0000-0000-0000-000000000001"
#define OFFLINE_SUFFIX "aaaaa" /* what a server would draw behind generateName */

struct td_offline {
    struct td_resources *resources;
    struct td_arena arena; /* of one object */
};

static void offline_serve(struct td_offline *offline, const struct td_json *definition)
{
    struct td_resource *row = NULL;
    void (*release)(struct td_resource * row) = NULL;
    td_str text = td_json_line(&offline->arena, definition);
    if (td_custom_row_new(text, &row, &release, NULL) != TD_OK) {
        return; /* it was judged right, so its text can be read */
    }
    if (row->version_count > 0) {
        td_resources_put_custom(offline->resources, row, release);
    } else {
        release(row);
    }
}

struct td_offline *td_offline_new(void)
{
    struct td_offline *offline = td_alloc_zero(1, sizeof(*offline));
    offline->resources = td_resources_new();
    td_arena_init(&offline->arena, TD_TREE_ARENA_BYTES_MAX);
    for (size_t i = 0; i < TD_OBJECTS_DEFINITION_COUNT; i++) {
        offline_serve(offline, td_objects_definitions[i](&offline->arena));
    }
    td_arena_reset(&offline->arena);
    return offline;
}

void td_offline_free(struct td_offline *offline)
{
    if (offline) {
        td_resources_free(offline->resources);
        td_arena_done(&offline->arena);
        td_free(offline);
    }
}

bool td_offline_is_definition(const struct td_manifest_object *object)
{
    return td_str_equal(object->api_version, TD_STR("apiextensions.k8s.io/v1")) &&
           td_str_equal(object->kind, TD_STR("CustomResourceDefinition"));
}

static void offline_say(const struct td_manifest_object *object, struct td_problems *problems,
                        uint32_t line, const char *rule, td_str text)
{
    td_str message = td_arena_copy_str(problems->arena, text);
    td_problems_add(problems, &(struct td_problem){
                                  .line = line > 0 ? line : object->line,
                                  .message = message,
                                  .rule = rule,
                              });
}

/* A message that begins with a field's path, as those of decoding do. */
static void offline_say_at(const struct td_manifest_object *object, struct td_problems *problems,
                           td_str text)
{
    td_str copy = td_arena_copy_str(problems->arena, text);
    size_t end = td_str_find(copy, ':', 0);
    bool has_field = end + 1 < copy.len && copy.ptr[end + 1] == ' ' &&
                     td_str_find(copy, ' ', 0) > end && td_str_find(copy, '"', 0) > end;
    td_str field = has_field ? td_str_slice(copy, 0, end) : TD_STR_EMPTY;
    td_problems_add(problems,
                    &(struct td_problem){
                        .line = td_objects_line(object->tree, field),
                        .field = field,
                        .message = has_field ? td_str_slice(copy, end + 2, copy.len) : copy,
                        .rule = "type",
                    });
}

/* ---- Kinds that are not served ---- */

/* Their names have at least the form of a path's segment, and labels and annotations are the same
 * for all. Files of other programs (skaffold, kind) look like objects and have no metadata. */
static void offline_judge_unknown(struct td_offline *offline,
                                  const struct td_manifest_object *object,
                                  struct td_problems *problems)
{
    struct td_error err = TD_ERROR_INIT;
    if (td_check_types(td_schema_any_object(), object->tree, NULL, &err) < 0) {
        offline_say_at(object, problems, td_str_from(err.message));
        return;
    }
    const struct td_json *metadata = td_json_get(object->tree, TD_STR("metadata"));
    if (object->name.len == 0) {
        return;
    }
    struct td_json *copy = td_json_copy(&offline->arena, metadata, false);
    if (object->namespace.len == 0) {
        td_json_set_str(&offline->arena, copy, TD_STR("namespace"), TD_STR("default"));
    }
    struct td_field_errors errors = {.arena = &offline->arena};
    td_objectmeta_validate(&errors, copy);
    td_objects_add_errors(object->tree, &errors, problems);
}

static bool offline_say_removed(const struct td_manifest_object *object,
                                struct td_problems *problems)
{
    const struct td_removed_api *removed = td_removed_find(object->api_version, object->kind);
    if (!removed) {
        return false;
    }
    td_str advice = td_arena_format(problems->arena, removed->replacement ? "use %s" : "%s",
                                    removed->replacement ? removed->replacement : removed->advice);
    td_str message = td_arena_format(problems->arena, "%.*s of %.*s is not served since %s; %.*s",
                                     TD_STR_ARG(object->kind), TD_STR_ARG(object->api_version),
                                     removed->removed_in, TD_STR_ARG(advice));
    td_problems_add(problems, &(struct td_problem){
                                  .line = td_objects_line(object->tree, TD_STR("apiVersion")),
                                  .field = TD_STR("apiVersion"),
                                  .message = message,
                                  .rule = "removed-api",
                              });
    return true;
}

static void offline_say_unserved(const struct td_manifest_object *object,
                                 struct td_problems *problems, const char *field, td_str advice)
{
    td_str message =
        td_arena_format(problems->arena, "no matches for kind \"%.*s\" in version \"%.*s\"%s%.*s",
                        TD_STR_ARG(object->kind), TD_STR_ARG(object->api_version),
                        advice.len > 0 ? "; use " : "", TD_STR_ARG(advice));
    td_problems_add(problems, &(struct td_problem){
                                  .line = td_objects_line(object->tree, td_str_from(field)),
                                  .field = td_str_from(field),
                                  .message = message,
                                  .rule = "unknown-api",
                              });
}

/* Definitions have groups with a dot in them, so that in a group without one only a server's own
 * kinds can be. Of the core group other programs' files (kubeconfigs) have kinds, too: there, those
 * count that a server has elsewhere. */
static bool offline_say_misplaced(const struct td_offline *offline,
                                  const struct td_manifest_object *object,
                                  struct td_problems *problems)
{
    static const td_str groups[] = {TD_STR_INIT("apps"), TD_STR_INIT("autoscaling"),
                                    TD_STR_INIT("batch"), TD_STR_INIT("extensions"),
                                    TD_STR_INIT("policy")};
    td_str group = td_group_version_parse(object->api_version).group;
    bool is_own = false;
    for (size_t i = 0; i < TD_COUNT(groups); i++) {
        is_own = is_own || td_str_equal(group, groups[i]);
    }
    if (object->name.len == 0 || (!is_own && group.len > 0)) {
        return false;
    }
    for (size_t i = 0; i < td_resources_count(offline->resources); i++) {
        const struct td_resource *row = td_resources_row(offline->resources, i);
        if (!row->custom && (row->verbs & TD_VERB_CREATE) != 0 &&
            row->kind.len == object->kind.len &&
            strncasecmp(row->kind.ptr, object->kind.ptr, object->kind.len) == 0) {
            bool is_spelt = td_str_equal(row->kind, object->kind);
            offline_say_unserved(object, problems, is_spelt ? "apiVersion" : "kind",
                                 is_spelt ? row->versions[0].api_version : row->kind);
            return true;
        }
    }
    if (is_own) {
        offline_say_unserved(object, problems, "kind", TD_STR_EMPTY);
    }
    return is_own;
}

/* ---- Kinds that are served ---- */

/* What a server knows of a new object, as td_meta_complete and td_meta_check_place fill it in. */
static void offline_complete(struct td_arena *arena, const struct td_resource *resource,
                             struct td_json *object)
{
    td_meta_wipe(object);
    struct td_json *metadata = td_json_ensure_object(arena, object, TD_STR("metadata"));
    td_str prefix = td_json_text(metadata, "generateName");
    if (td_json_text(metadata, "name").len == 0 && prefix.len > 0) {
        td_json_set_str(arena, metadata, TD_STR("name"),
                        td_arena_format(arena, "%.*s" OFFLINE_SUFFIX, TD_STR_ARG(prefix)));
    }
    if (!resource->is_namespaced) {
        (void)td_json_remove(metadata, TD_STR("namespace")); /* a server ignores it */
    } else if (td_json_text(metadata, "namespace").len == 0) {
        td_json_set_str(arena, metadata, TD_STR("namespace"), TD_STR("default"));
    }
    td_json_set_str(arena, metadata, TD_STR("uid"), TD_STR(OFFLINE_UID));
    td_json_set(arena, metadata, TD_STR("creationTimestamp"), td_meta_time(arena, TD_INSTANT_ZERO));
}

static void offline_validate(struct td_offline *offline, struct td_resource_at at,
                             struct td_json *object, const struct td_manifest_object *from,
                             struct td_problems *problems)
{
    struct td_arena *arena = &offline->arena;
    struct td_kind_write write = {
        .arena = arena,
        .resource = at.resource,
        .operation = TD_WRITE_CREATE,
        .object = object,
        .warnings = td_json_new_array(arena), /* about this server, not about the file */
    };
    struct td_field_errors errors = {.arena = arena};
    td_kind_prepare(&write);
    td_kind_validate(&write, &errors);
    td_objects_add_errors(from->tree, &errors, problems);
    if (td_offline_is_definition(from) && problems->count == 0) {
        offline_serve(offline, write.object);
    }
}

static void offline_judge_served(struct td_offline *offline, struct td_resource_at at,
                                 const struct td_manifest_object *from,
                                 struct td_problems *problems)
{
    const struct td_resource_version *version = &at.resource->versions[at.version];
    const struct td_schema_type *shape =
        at.resource->custom ? td_schema_any_object() : version->type;
    struct td_error err = TD_ERROR_INIT;
    if (shape && td_check_types(shape, from->tree, NULL, &err) < 0) {
        offline_say_at(from, problems, td_str_from(err.message));
        return; /* as a server, which answers 400 */
    }
    if (version->type) {
        td_check_unknown(version->type, from->tree, problems);
    }
    td_str resource_version =
        td_json_text(td_json_get(from->tree, TD_STR("metadata")), "resourceVersion");
    if (resource_version.len > 0) {
        offline_say(from, problems, td_objects_line(from->tree, TD_STR("metadata.resourceVersion")),
                    "invalid",
                    TD_STR("metadata.resourceVersion: must not be set on an object to be created; "
                           "take it out"));
    }
    struct td_json *object = td_json_copy(&offline->arena, from->tree, false);
    int code = td_kind_default(&offline->arena, at.resource, at.version, object, &err);
    if (code == TD_OK) {
        offline_complete(&offline->arena, at.resource, object);
        code = td_resource_convert(&offline->arena, at.resource, at.version, at.resource->storage,
                                   object, &object, &err);
    }
    if (code < 0) {
        offline_say_at(from, problems, td_str_from(err.message));
        return;
    }
    offline_validate(offline, at, object, from, problems);
    td_objects_check(from->api_version, from->kind, from->tree, problems);
}

bool td_offline_judge(struct td_offline *offline, const struct td_manifest_object *object,
                      struct td_problems *problems)
{
    struct td_resource_at at =
        td_resources_find_kind(offline->resources, object->api_version, object->kind);
    bool is_served = at.resource && (at.resource->verbs & TD_VERB_CREATE) != 0;
    if (is_served) {
        offline_judge_served(offline, at, object, problems);
    } else if (!offline_say_removed(object, problems) &&
               !offline_say_misplaced(offline, object, problems)) {
        offline_judge_unknown(offline, object, problems);
    } else {
        is_served = true; /* its kind is known: it is gone, or elsewhere */
    }
    td_arena_reset(&offline->arena);
    return is_served;
}
