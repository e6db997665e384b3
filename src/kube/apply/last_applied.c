/*
 * The annotation proves ownership of those fields only that the live object still has as they were
 * applied, and only when it is of the same version and kind. Refreshing writes the applied object
 * without the annotation itself, with numbers in the form in which Go writes them.
 */
#include "kube/apply/last_applied.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/limits.h"
#include "kube/apply/typed.h"

#define ANNOTATION TD_STR(TD_LAST_APPLIED_ANNOTATION)
#define ANNOTATIONS_BYTES_MAX ((size_t)256 << 10) /* names and values, as Kubernetes validates */

/* metadata.annotations when every value is a string or null, else NULL. */
static struct td_json *annotations_of(const struct td_json *object)
{
    struct td_json *metadata = td_json_get(object, TD_STR("metadata"));
    struct td_json *annotations = td_json_get(metadata, TD_STR("annotations"));
    if (!td_json_is(annotations, TD_JSON_TYPE_OBJECT)) {
        return NULL;
    }
    for (const struct td_json *m = td_json_first_member(annotations); m; m = m->next) {
        if (m->type != TD_JSON_TYPE_STRING && m->type != TD_JSON_TYPE_NULL) {
            return NULL;
        }
    }
    return annotations;
}

int td_last_applied_fields(struct td_arena *arena, const struct td_last_applied *last,
                           const struct td_fieldset **ret, struct td_error *err)
{
    td_str text = td_json_get_str(annotations_of(last->live), ANNOTATION, TD_STR_EMPTY);
    if (text.len == 0) {
        return td_error_set(err, TD_NOT_FOUND, "no last-applied annotation");
    }
    int r = td_typed_validate(arena, last->type, last->live, false, err);
    if (r < 0) {
        return r;
    }
    struct td_json *applied;
    r = td_json_parse(arena, text, NULL, &applied, err);
    if (r < 0) {
        return r;
    }
    td_str version = td_json_text(applied, "apiVersion");
    td_str kind = td_json_text(applied, "kind");
    td_str live_kind = td_json_text(last->live, "kind");
    if (!td_str_equal(version, last->api_version) || !td_str_equal(kind, live_kind)) {
        return td_error_set(err, TD_INVALID, "the last-applied annotation is of %.*s %.*s",
                            TD_STR_ARG(version), TD_STR_ARG(kind));
    }
    r = td_typed_validate(arena, last->type, applied, false, err);
    if (r < 0) {
        return r;
    }
    struct td_typed_changes changes = td_typed_compare(arena, last->type, applied, last->live);
    const struct td_fieldset *fields = td_typed_fields(arena, last->type, applied);
    fields = td_fieldset_difference(arena, fields, changes.modified);
    fields = td_fieldset_difference(arena, fields, changes.added);
    *ret = td_fieldset_difference(arena, fields, changes.removed);
    return TD_OK;
}

/* A copy in which null annotations are empty texts, as Kubernetes' accessors read and write them.
 */
static struct td_json *annotations_copy(struct td_arena *arena, const struct td_json *annotations)
{
    struct td_json *copy = td_json_new_object(arena);
    for (const struct td_json *m = td_json_first_member(annotations); m; m = m->next) {
        td_str text = m->type == TD_JSON_TYPE_STRING ? m->text : TD_STR_EMPTY;
        td_json_set_str(arena, copy, m->key, text);
    }
    return copy;
}

static size_t annotations_bytes(const struct td_json *annotations)
{
    size_t bytes = 0;
    for (const struct td_json *m = td_json_first_member(annotations); m; m = m->next) {
        bytes += m->key.len + m->text.len;
    }
    return bytes;
}

/* Numbers as Go writes what it read: whole ones as they are, others as float64. */
static void numbers_to_go(struct td_arena *arena, struct td_json *node, unsigned depth)
{
    td_assert(depth <= TD_JSON_DEPTH_MAX);
    if (node->type == TD_JSON_TYPE_ARRAY || node->type == TD_JSON_TYPE_OBJECT) {
        for (struct td_json *child = td_json_first_child(node); child; child = child->next) {
            numbers_to_go(arena, child, depth + 1);
        }
        return;
    }
    int64_t whole;
    double value;
    bool is_float = node->type == TD_JSON_TYPE_NUMBER && !td_str_to_int64(node->text, &whole);
    if (is_float && td_json_to_double(node, &value)) {
        td_auto_buf text = td_buf_capped(TD_JSON_BYTES_MAX);
        td_json_write_double(value, &text);
        node->text = td_arena_copy_str(arena, td_buf_str(&text));
    }
}

/* The applied configuration as text, without the annotation itself. */
static td_str applied_text(struct td_arena *arena, const struct td_json *applied)
{
    struct td_json *copy = td_json_copy(arena, applied, false);
    struct td_json *metadata = td_json_get(copy, TD_STR("metadata"));
    const struct td_json *annotations = annotations_of(copy);
    if (annotations) {
        struct td_json *others = annotations_copy(arena, annotations);
        (void)td_json_remove(others, ANNOTATION); /* usually it is not there */
        td_json_set(arena, metadata, TD_STR("annotations"), others);
    } else if (metadata) {
        (void)td_json_remove(metadata, TD_STR("annotations")); /* null, or unreadable */
    }
    td_json_sort(arena, copy);
    numbers_to_go(arena, copy, 0);
    const struct td_json_format format = {.escape_html = true};
    td_auto_buf text = td_buf_capped(TD_JSON_BYTES_MAX);
    td_json_write(copy, &format, &text);
    td_buf_append_char(&text, '\n');
    return td_arena_copy_str(arena, td_buf_str(&text));
}

void td_last_applied_refresh(struct td_arena *arena, const struct td_json *applied,
                             struct td_json *object)
{
    const struct td_json *annotations = annotations_of(object);
    if (td_json_get_str(annotations, ANNOTATION, TD_STR_EMPTY).len == 0) {
        return;
    }
    struct td_json *changed = annotations_copy(arena, annotations);
    td_json_set_str(arena, changed, ANNOTATION, applied_text(arena, applied));
    if (annotations_bytes(changed) > ANNOTATIONS_BYTES_MAX) {
        (void)td_json_remove(changed, ANNOTATION); /* it was just set */
    }
    td_json_set(arena, td_json_get(object, TD_STR("metadata")), TD_STR("annotations"), changed);
}
