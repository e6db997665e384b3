/*
 * Every object of the file is looked at, those of a List too. A row of the right sizes belongs to
 * it by kind, name and namespace; each of its values is one edit by position
 * (base/yaml/yaml_edit.h) of the text that the edit before has left.
 */
#include "control/inspect/recommend_patch.h"

#include "base/error.h"
#include "base/limits.h"
#include "base/text.h"
#include "base/yaml/yaml.h"
#include "base/yaml/yaml_edit.h"
#include "decide/vertical/patch/proportional.h"
#include "kube/manifest.h"

#define PATCH_STEPS_MAX 16
#define PATCH_MEBI (INT64_C(1) << 20)

/* One container of the file. */
struct patch_container {
    const struct td_right_size *row;
    size_t document;
    struct td_yaml_step steps[PATCH_STEPS_MAX]; /* to the container */
    size_t step_count;
    const struct td_json *node;
};

static void patch_refuse(struct td_arena *arena, struct td_recommend_patch *patch, td_str sentence)
{
    patch->refusals = td_arena_grow(arena, patch->refusals, patch->refusal_count,
                                    &patch->refusal_cap, sizeof(*patch->refusals));
    patch->refusals[patch->refusal_count++] = sentence;
}

/* ---- Which row ---- */

/* The row of a container; *ret_is_unclear: several namespaces have such a workload. */
static const struct td_right_size *patch_find_row(const struct td_recommend_patch *patch,
                                                  const struct td_json *object, td_str container,
                                                  bool *ret_is_unclear)
{
    const struct td_json *meta = td_json_get(object, TD_STR("metadata"));
    td_str namespace = td_json_get_str(meta, TD_STR("namespace"), patch->namespace);
    const struct td_right_size *found = NULL;
    *ret_is_unclear = false;
    for (size_t i = 0; i < patch->sizes->count; i++) {
        const struct td_right_size *row = &patch->sizes->items[i];
        bool is_it = td_str_equal(row->kind, td_json_text(object, "kind")) &&
                     td_str_equal(row->workload, td_json_text(meta, "name")) &&
                     td_str_equal(row->container, container) &&
                     (namespace.len == 0 || td_str_equal(row->namespace, namespace)) &&
                     td_right_size_is_for_manifest(row);
        *ret_is_unclear = *ret_is_unclear || (is_it && found);
        found = is_it ? row : found;
    }
    return found;
}

/* ---- One value ---- */

static struct td_quantity patch_whole(enum td_right_resource resource,
                                      const struct td_quantity *quantity)
{
    int64_t bytes = td_quantity_value(quantity);
    int64_t whole = bytes / PATCH_MEBI * PATCH_MEBI + (bytes % PATCH_MEBI ? PATCH_MEBI : 0);
    return resource == TD_RIGHT_CPU
               ? td_quantity_new_milli(td_quantity_milli(quantity), TD_QUANTITY_DECIMAL_SI)
               : td_quantity_new(whole, TD_QUANTITY_BINARY_SI);
}

/* What the file says; NULL: nothing, or no quantity. */
static const struct td_quantity *patch_old(struct td_arena *arena, const struct td_json *container,
                                           const char *list, td_str name)
{
    const struct td_json *resources = td_json_get(container, TD_STR("resources"));
    const struct td_json *node = td_json_is(resources, TD_JSON_TYPE_OBJECT)
                                     ? td_json_get(resources, td_str_from(list))
                                     : NULL;
    node = td_json_is(node, TD_JSON_TYPE_OBJECT) ? td_json_get(node, name) : NULL;
    struct td_quantity *quantity = td_arena_new(arena, struct td_quantity);
    bool is_read = node && !td_json_is(node, TD_JSON_TYPE_NULL) &&
                   td_quantity_from_json(arena, node, quantity, NULL) == TD_OK;
    return is_read ? quantity : NULL;
}

static int patch_set(struct td_arena *arena, td_str *text, struct patch_container *container,
                     const char *list, enum td_right_resource resource,
                     const struct td_quantity *quantity, struct td_error *err)
{
    const struct td_quantity *old =
        patch_old(arena, container->node, list, td_right_names[resource]);
    if (old && td_quantity_compare(old, quantity) == 0) {
        return TD_OK; /* however it is written */
    }
    container->steps[container->step_count] = (struct td_yaml_step){.key = TD_STR("resources")};
    container->steps[container->step_count + 1] = (struct td_yaml_step){.key = td_str_from(list)};
    container->steps[container->step_count + 2] =
        (struct td_yaml_step){.key = td_right_names[resource]};
    const struct td_yaml_place place = {.document = container->document,
                                        .steps = container->steps,
                                        .step_count = container->step_count + 3};
    return td_yaml_edit(arena, *text, &place, td_quantity_text(arena, quantity), text, err);
}

/* The request of one resource, and its limit in the file's proportion. */
static int patch_resource(struct td_arena *arena, td_str *text, struct patch_container *container,
                          enum td_right_resource resource, struct td_error *err)
{
    td_str name = td_right_names[resource];
    struct td_quantity request;
    if (!td_right_size_request(container->row, resource, &request)) {
        return TD_OK;
    }
    const struct td_quantity *limit = patch_old(arena, container->node, "limits", name);
    const struct td_proportion proportion = {
        .limit = limit,
        .request = patch_old(arena, container->node, "requests", name),
        .recommended = &request,
    };
    int code = patch_set(arena, text, container, "requests", resource, &request, err);
    if (code != TD_OK || !limit) {
        return code;
    }
    struct td_proportional_limit scaled = td_proportional_limit(name, &proportion);
    struct td_quantity whole = patch_whole(resource, scaled.is_set ? &scaled.limit : limit);
    return scaled.is_set ? patch_set(arena, text, container, "limits", resource, &whole, err)
                         : TD_OK;
}

static void patch_container(struct td_arena *arena, struct td_recommend_patch *patch,
                            struct patch_container *container)
{
    const struct td_right_size *row = container->row;
    struct td_error err = TD_ERROR_INIT;
    td_auto_arena scratch = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    td_str text = patch->edited;
    int code = TD_OK;
    for (enum td_right_resource resource = 0; code == TD_OK && resource < TD_RIGHT_COUNT;
         resource++) {
        code = patch_resource(&scratch, &text, container, resource, &err);
    }
    code = code == TD_OK ? td_arena_check(&scratch, &err) : code;
    if (code != TD_OK) {
        patch_refuse(arena, patch,
                     td_arena_format(arena, "%s: %.*s %.*s, container %.*s: %s", patch->path,
                                     TD_STR_ARG(row->kind), TD_STR_ARG(row->workload),
                                     TD_STR_ARG(row->container), err.message));
        return;
    }
    patch->edit_count += !td_str_equal(text, patch->edited);
    td_text_set(&patch->edited, text);
}

/* ---- Objects ---- */

static void patch_object(struct td_arena *arena, struct td_recommend_patch *patch,
                         const struct td_json *object, const struct patch_container *at)
{
    static const char *const way[] = {"spec",     "jobTemplate", "spec",
                                      "template", "spec",        "containers"};
    bool is_cron = td_str_equal(td_json_text(object, "kind"), TD_STR("CronJob"));
    struct patch_container container = *at;
    const struct td_json *node = object;
    for (size_t i = is_cron ? 0 : 2; i < TD_COUNT(way); i++) {
        td_str key = td_str_from(way[i]);
        container.steps[container.step_count++] = (struct td_yaml_step){.key = key};
        node = td_json_is(node, TD_JSON_TYPE_OBJECT) ? td_json_get(node, key) : NULL;
    }
    size_t list = container.step_count++;
    size_t index = 0;
    const struct td_json *each =
        td_json_is(node, TD_JSON_TYPE_ARRAY) ? td_json_first_item(node) : NULL;
    for (; each; each = each->next, index++) {
        bool is_unclear = false;
        td_str name = td_json_text(each, "name");
        container.row = patch_find_row(patch, object, name, &is_unclear);
        container.node = each;
        container.steps[list] = (struct td_yaml_step){.key = TD_STR_EMPTY, .index = index};
        if (is_unclear) {
            patch_refuse(arena, patch,
                         td_arena_format(
                             arena, "%s: line %u: %.*s %.*s: several namespaces have one; give -n",
                             patch->path, object->line, TD_STR_ARG(container.row->kind),
                             TD_STR_ARG(container.row->workload)));
            return;
        }
        if (container.row) {
            patch_container(arena, patch, &container);
        }
    }
}

static void patch_document(struct td_arena *arena, struct td_recommend_patch *patch,
                           const struct td_json *document, size_t number)
{
    struct patch_container at = {.document = number};
    const struct td_json *items =
        td_json_is(document, TD_JSON_TYPE_OBJECT) ? td_json_get(document, TD_STR("items")) : NULL;
    if (!td_json_is(items, TD_JSON_TYPE_ARRAY)) {
        if (td_json_is(document, TD_JSON_TYPE_OBJECT)) {
            patch_object(arena, patch, document, &at);
        }
        return;
    }
    size_t index = 0;
    at.steps[at.step_count++] = (struct td_yaml_step){.key = TD_STR("items")};
    at.step_count++;
    for (const struct td_json *item = td_json_first_item(items); item; item = item->next, index++) {
        at.steps[1] = (struct td_yaml_step){.key = TD_STR_EMPTY, .index = index};
        if (td_json_is(item, TD_JSON_TYPE_OBJECT)) {
            patch_object(arena, patch, td_manifest_item(arena, document, item), &at);
        }
    }
}

int td_recommend_patch(struct td_arena *arena, struct td_recommend_patch *patch,
                       struct td_error *err)
{
    struct td_yaml_documents documents;
    int code = td_yaml_parse(arena, patch->text, &documents, err);
    if (code != TD_OK) {
        return td_error_wrap(err, code, "%s", patch->path);
    }
    patch->edited = td_text_copy(patch->text);
    for (size_t i = 0; i < documents.count; i++) {
        patch_document(arena, patch, documents.items[i], i);
    }
    return td_arena_check(arena, err);
}

void td_recommend_patch_done(struct td_recommend_patch *patch)
{
    td_text_free(patch->edited);
    patch->edited = (td_str){.ptr = NULL};
}
