/* Server-side apply: a sequence of applies and updates of one object. */
#include <stdlib.h>

#include "golden/golden.h"
#include "kube/apply/apply.h"

#define CONFLICT_TEXT TD_STR("Apply failed with ")
#define MESSAGE_BYTES_MAX ((size_t)4 << 20)

static td_str get_str(const struct td_json *object, td_str key)
{
    return td_json_get_str(object, key, TD_STR_EMPTY);
}

static void set_text(struct td_arena *arena, struct td_json *object, td_str key, td_str text)
{
    td_json_set(arena, object, key, td_json_new_string(arena, td_arena_copy_str(arena, text)));
}

/* What the server does at creation and with every update of what it stored. */
static void set_uid(struct td_arena *arena, struct td_json *object)
{
    struct td_json *metadata = td_json_ensure_object(arena, object, TD_STR("metadata"));
    set_text(arena, metadata, TD_STR("uid"), TD_STR("uid-1"));
}

static int owner_compare(const void *a, const void *b)
{
    static const td_str keys[] = {TD_STR_INIT("operation"), TD_STR_INIT("manager"),
                                  TD_STR_INIT("apiVersion"), TD_STR_INIT("subresource")};
    const struct td_json *left = *(const struct td_json *const *)a;
    const struct td_json *right = *(const struct td_json *const *)b;
    int order = 0;
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]) && order == 0; i++) {
        order = td_str_compare(get_str(left, keys[i]), get_str(right, keys[i]));
    }
    return order;
}

/* The stored object as the vectors show it: owners without times, in their order. */
static struct td_json *shown(struct td_arena *arena, const struct td_json *object)
{
    struct td_json *copy = td_json_copy(arena, object, false);
    struct td_json *list = td_json_get_path(copy, "metadata.managedFields");
    if (!td_json_is(list, TD_JSON_TYPE_ARRAY)) {
        return copy;
    }
    struct td_json **owners = td_arena_array(arena, struct td_json *, list->count);
    size_t count = 0;
    for (struct td_json *owner = td_json_first_child(list); owner; owner = owner->next) {
        (void)td_json_remove(owner, TD_STR("time")); /* not every owner has one */
        owners[count++] = td_json_copy(arena, owner, false);
    }
    qsort(owners, count, sizeof(owners[0]), owner_compare);
    struct td_json *sorted = td_json_new_array(arena);
    for (size_t i = 0; i < count; i++) {
        td_json_append(sorted, owners[i]);
    }
    td_json_set(arena, td_json_get(copy, TD_STR("metadata")), TD_STR("managedFields"), sorted);
    return copy;
}

/* The whole message from the list of conflicts, since a td_error cuts long ones. */
static td_str conflict_text(struct td_arena *arena, const struct td_json *conflicts)
{
    td_auto_buf text;
    td_buf_init(&text, MESSAGE_BYTES_MAX);
    bool is_one = conflicts->count == 1;
    td_buf_append_format(&text, "Apply failed with %zu conflict%s: ", conflicts->count,
                         is_one ? "" : "s");
    td_str last = TD_STR_EMPTY;
    for (const struct td_json *c = td_json_first_child(conflicts); c; c = c->next) {
        td_str manager = get_str(c, TD_STR("manager"));
        td_str field = get_str(c, TD_STR("field"));
        if (is_one) {
            td_buf_append_format(&text, "conflict with %.*s: %.*s", TD_STR_ARG(manager),
                                 TD_STR_ARG(field));
            break;
        }
        if (!td_str_equal(manager, last)) {
            td_buf_append_format(&text, "%sconflicts with %.*s:", last.len > 0 ? "\n" : "",
                                 TD_STR_ARG(manager));
            last = manager;
        }
        td_buf_append_format(&text, "\n- %.*s", TD_STR_ARG(field));
    }
    return td_arena_copy_str(arena, td_buf_str(&text));
}

static const struct td_schema_type *type_of(const struct td_json *in)
{
    if (td_str_equal(get_str(in, TD_STR("schema")), TD_STR("schemaless"))) {
        return td_schema_any_object();
    }
    return td_schema_find(get_str(in, TD_STR("apiVersion")), get_str(in, TD_STR("kind")));
}

/* One step: *stored moves on when it is not refused. The answer is what the vectors show. */
static struct td_json *run_step(struct td_arena *arena, struct td_apply_request *request,
                                const struct td_json *step, struct td_json **stored)
{
    request->manager = get_str(step, TD_STR("manager"));
    request->force = td_json_get_bool(step, TD_STR("force"), false);
    struct td_json *object = td_json_copy(arena, td_json_get(step, TD_STR("object")), false);
    struct td_json *conflicts = NULL;
    struct td_json *next = NULL;
    struct td_error why = TD_ERROR_INIT;
    int r;
    if (td_str_equal(get_str(step, TD_STR("op")), TD_STR("apply"))) {
        r = td_apply(arena, request, *stored, object, &next, &conflicts, &why);
    } else {
        if (*stored) {
            set_uid(arena, object);
        }
        r = td_apply_update(arena, request, *stored, object, &next, &why);
    }
    struct td_json *out = td_json_new_object(arena);
    if (r < 0) {
        td_str text = conflicts ? conflict_text(arena, conflicts) : td_str_from(why.message);
        set_text(arena, out, TD_STR("error"), text);
        return out;
    }
    set_uid(arena, next);
    *stored = next;
    td_json_set(arena, out, TD_STR("object"), shown(arena, next));
    return out;
}

static int run_apply(struct td_arena *arena, const struct td_json *in, struct td_json **ret_out,
                     struct td_error *err)
{
    struct td_apply_request request = {
        .type = type_of(in),
        .api_version = get_str(in, TD_STR("apiVersion")),
        .kind = get_str(in, TD_STR("kind")),
        .now = {.unix_seconds = 1800000000},
    };
    if (!request.type) {
        return td_error_set(err, TD_NOT_FOUND, "no schema of %.*s", TD_STR_ARG(request.kind));
    }
    struct td_json *stored = td_json_get(in, TD_STR("start"));
    if (!td_json_is(stored, TD_JSON_TYPE_OBJECT)) {
        stored = NULL;
    }
    struct td_json *steps = td_json_new_array(arena);
    const struct td_json *list = td_json_get(in, TD_STR("steps"));
    for (const struct td_json *step = td_json_first_child(list); step; step = step->next) {
        td_json_append(steps, run_step(arena, &request, step, &stored));
    }
    struct td_json *out = td_json_new_object(arena);
    td_json_set(arena, out, TD_STR("steps"), steps);
    *ret_out = out;
    return TD_OK;
}

/* Conflicts are told in the same words; other refusals only have to be refusals. */
static bool step_is_same(const struct td_json *expected, const struct td_json *got)
{
    const struct td_json *object = td_json_get(expected, TD_STR("object"));
    if (object) {
        return td_json_equal(object, td_json_get(got, TD_STR("object")));
    }
    td_str text = get_str(expected, TD_STR("error"));
    td_str other = get_str(got, TD_STR("error"));
    if (td_str_starts_with(text, CONFLICT_TEXT) || td_str_starts_with(other, CONFLICT_TEXT)) {
        return td_str_equal(text, other);
    }
    return text.len > 0 && other.len > 0;
}

static bool apply_is_same(const struct td_json *expected, const struct td_json *got)
{
    const struct td_json *left = td_json_get(expected, TD_STR("steps"));
    const struct td_json *right = td_json_get(got, TD_STR("steps"));
    if (!left || !right || left->count != right->count) {
        return false;
    }
    const struct td_json *other = td_json_first_child(right);
    for (const struct td_json *step = td_json_first_child(left); step; step = step->next) {
        if (!step_is_same(step, other)) {
            return false;
        }
        other = other->next;
    }
    return true;
}

const struct golden_topic golden_kube_apply[] = {
    {.name = "kube/server-side-apply", .run = run_apply, .is_same = apply_is_same},
    {.name = NULL},
};
