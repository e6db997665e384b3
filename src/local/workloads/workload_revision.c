/*
 * ControllerRevisions: the patch that stands for a template, its hash, finding an equal one and
 * dropping old ones.
 */
#include "local/workloads/workload_revision.h"

#include <stdlib.h>

#include "base/error.h"
#include "kube/meta.h"
#include "local/store/edit.h"

#define REVISION_NAME_BYTES_MAX ((size_t)223) /* kept of the owner's name */
#define REVISION_HISTORY_DEFAULT 10

static int revision_compare(const void *left, const void *right)
{
    const struct td_revision *a = left;
    const struct td_revision *b = right;
    if (a->number != b->number) {
        return a->number < b->number ? -1 : 1;
    }
    int by_time = (a->created > b->created) - (a->created < b->created);
    return by_time != 0 ? by_time : td_str_compare(a->name, b->name);
}

static struct td_revision revision_read(struct td_json *object, td_str hash_label)
{
    const struct td_json *metadata = td_json_get(object, TD_STR("metadata"));
    return (struct td_revision){
        .object = object,
        .template = td_json_get_path(object, "data.spec.template"),
        .name = td_json_text(metadata, "name"),
        .hash = td_json_get_str(td_json_get(metadata, TD_STR("labels")), hash_label, TD_STR_EMPTY),
        .number = td_json_get_int64(object, TD_STR("revision"), 0),
        .created = td_time_member(metadata, TD_STR("creationTimestamp")),
    };
}

void td_revisions_load(struct td_workload_item *item, td_str hash_label, struct td_revisions *ret)
{
    struct td_workloads *all = item->control->all;
    struct td_children own = td_workload_claim(item, &all->revision_index, all->revisions, NULL);
    *ret = (struct td_revisions){
        .items = td_arena_array(item->arena, struct td_revision, own.count + 1),
        .collisions = td_json_get_int64(td_json_get(item->object, TD_STR("status")),
                                        TD_STR("collisionCount"), 0),
        .hash_label = hash_label,
    };
    for (size_t i = 0; i < own.count; i++) {
        const struct td_stored *stored = own.items[i]->stored;
        struct td_json *object;
        if (td_edit_get(all->api, all->revisions, stored->ns, stored->name, item->arena, &object,
                        NULL) == TD_OK) {
            ret->items[ret->count++] = revision_read(object, hash_label);
        }
    }
    qsort(ret->items, ret->count, sizeof(ret->items[0]), revision_compare);
}

const struct td_revision *td_revisions_find(const struct td_revisions *revisions, td_str name)
{
    for (size_t i = 0; i < revisions->count; i++) {
        if (td_str_equal(revisions->items[i].name, name)) {
            return &revisions->items[i];
        }
    }
    return NULL;
}

/* ---- The present one ---- */

/* The template with the mark that it replaces another one when it is applied as a patch. */
static struct td_json *revision_template(struct td_workload_item *item)
{
    struct td_json *template =
        td_json_copy(item->arena, td_json_get(item->spec, TD_STR("template")), false);
    struct td_json *metadata = td_json_get(template, TD_STR("metadata"));
    if (td_json_is(td_json_get(metadata, TD_STR("creationTimestamp")), TD_JSON_TYPE_NULL)) {
        (void)td_json_remove(metadata, TD_STR("creationTimestamp")); /* it is there */
    }
    td_json_set_str(item->arena, template, TD_STR("$patch"), TD_STR("replace"));
    return template;
}

static struct td_json *revision_object(struct td_workload_item *item,
                                       const struct td_revisions *revisions,
                                       struct td_json *template, int64_t number)
{
    struct td_arena *arena = item->arena;
    td_str hash = td_workload_hash(arena, template, revisions->collisions);
    td_str base = td_str_slice(item->name, 0, REVISION_NAME_BYTES_MAX);
    struct td_json *object = td_json_new_object(arena);
    td_json_set_str(arena, object, TD_STR("apiVersion"), TD_STR("apps/v1"));
    td_json_set_str(arena, object, TD_STR("kind"), TD_STR("ControllerRevision"));
    struct td_json *metadata = td_json_ensure_object(arena, object, TD_STR("metadata"));
    td_json_set_str(arena, metadata, TD_STR("name"),
                    td_arena_format(arena, "%.*s-%.*s", TD_STR_ARG(base), TD_STR_ARG(hash)));
    td_json_set_str(arena, metadata, TD_STR("namespace"), item->ns);
    const struct td_json *labels = td_json_get_path(template, "metadata.labels");
    td_json_set(arena, metadata, TD_STR("labels"),
                labels ? td_json_copy(arena, labels, false) : td_json_new_object(arena));
    td_json_set_str(arena, td_json_get(metadata, TD_STR("labels")), revisions->hash_label, hash);
    const struct td_json *annotations = td_json_get(item->metadata, TD_STR("annotations"));
    td_json_set_copy(arena, metadata, TD_STR("annotations"), annotations);
    td_set_controller(arena, metadata, item->object);
    struct td_json *data = td_json_ensure_object(arena, object, TD_STR("data"));
    struct td_json *spec = td_json_ensure_object(arena, data, TD_STR("spec"));
    td_json_set(arena, spec, TD_STR("template"), template);
    td_json_set_int64(arena, object, TD_STR("revision"), number);
    return object;
}

/* The object that has the name of `wanted`, when it says the same and is ours; NULL: it is not. */
static struct td_json *revision_taken(struct td_workload_item *item, const struct td_json *wanted)
{
    struct td_workloads *all = item->control->all;
    td_str name = td_json_text(td_json_get(wanted, TD_STR("metadata")), "name");
    struct td_json *found;
    if (td_edit_get(all->api, all->revisions, item->ns, name, item->arena, &found, NULL) != TD_OK ||
        !td_json_equal(td_json_get(found, TD_STR("data")), td_json_get(wanted, TD_STR("data")))) {
        return NULL;
    }
    struct td_meta meta;
    const struct td_owner_reference *controller =
        td_meta_decode(item->arena, found, &meta, NULL) == TD_OK ? td_meta_controller(&meta) : NULL;
    return controller && td_str_equal(controller->uid, item->uid) ? found : NULL;
}

static int revision_need(struct td_workload_item *item, struct td_revisions *revisions)
{
    struct td_workloads *all = item->control->all;
    struct td_json *template = revision_template(item);
    struct td_revision *items = revisions->items;
    size_t count = revisions->count;
    int64_t next = count > 0 ? items[count - 1].number + 1 : 1;
    for (size_t i = count; i > 0; i--) {
        if (!td_json_equal(items[i - 1].template, template)) {
            continue;
        }
        if (i == count) {
            return TD_OK;
        }
        td_json_set_int64(item->arena, items[i - 1].object, TD_STR("revision"), next);
        int code = td_edit_put(all->api, all->revisions, item->arena, items[i - 1].object, NULL);
        items[i - 1].number = next;
        qsort(items, count, sizeof(items[0]), revision_compare);
        return code;
    }
    struct td_json *object = revision_object(item, revisions, template, next);
    int code = td_edit_put(all->api, all->revisions, item->arena, object, NULL);
    if (code == TD_EXISTS && (object = revision_taken(item, object))) {
        code = TD_OK; /* we made it a moment ago: the index has not heard of it */
    } else if (code == TD_EXISTS) {
        revisions->collisions++;
        return TD_CONFLICT;
    }
    if (code != TD_OK) {
        return code;
    }
    items[revisions->count++] = revision_read(object, revisions->hash_label);
    return TD_OK;
}

int td_revisions_need(struct td_workload_item *item, struct td_revisions *revisions)
{
    int code = revision_need(item, revisions);
    if (code == TD_CONFLICT) {
        struct td_json *status = td_json_ensure_object(item->arena, item->object, TD_STR("status"));
        td_json_set_int64(item->arena, status, TD_STR("collisionCount"), revisions->collisions);
        (void)td_workload_put(item); /* its own change brings it back here */
    }
    return code;
}

void td_revisions_truncate(struct td_workload_item *item, const struct td_revisions *revisions,
                           bool (*is_live)(const struct td_revision *revision, void *context),
                           void *context)
{
    struct td_workloads *all = item->control->all;
    int64_t surplus =
        -td_json_get_int64(item->spec, TD_STR("revisionHistoryLimit"), REVISION_HISTORY_DEFAULT);
    for (size_t i = 0; i < revisions->count; i++) {
        surplus += !is_live(&revisions->items[i], context);
    }
    for (size_t i = 0; i < revisions->count && surplus > 0; i++) {
        const struct td_revision *revision = &revisions->items[i];
        if (!is_live(revision, context)) {
            surplus--;
            (void)td_edit_delete(all->api, all->revisions, item->ns, revision->name, TD_STR_EMPTY,
                                 TD_STR_EMPTY, -1, NULL); /* the next pass tries again */
        }
    }
}
