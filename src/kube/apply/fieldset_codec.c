/* Field sets as JSON (fieldsV1) and as lines of path text. */
#include "kube/apply/fieldset.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/limits.h"
#include "kube/apply/fieldset_types.h"

static int fieldset_parse(struct td_arena *arena, const struct td_json *fields, unsigned depth,
                          const struct td_fieldset **ret, bool *ret_is_member,
                          struct td_error *err);

/* One member of a fieldsV1 object; "." was dealt with. */
static int fieldset_parse_member(struct td_fieldset_builder *builder, const struct td_json *member,
                                 unsigned depth, struct td_error *err)
{
    struct td_field_step step;
    int r = td_field_step_parse(builder->arena, member->key, &step, err);
    if (r < 0) {
        return r == TD_NOT_FOUND ? TD_OK : r;
    }
    const struct td_fieldset *children;
    bool is_member;
    r = fieldset_parse(builder->arena, member, depth + 1, &children, &is_member, err);
    if (r < 0) {
        return r;
    }
    td_fieldset_builder_add(builder, &step, is_member, children);
    return TD_OK;
}

/* A null object counts as an empty one, and an empty one makes its own step the member. */
static int fieldset_parse(struct td_arena *arena, const struct td_json *fields, unsigned depth,
                          const struct td_fieldset **ret, bool *ret_is_member, struct td_error *err)
{
    if (fields->type == TD_JSON_TYPE_NULL) {
        *ret = NULL;
        *ret_is_member = true;
        return TD_OK;
    }
    if (fields->type != TD_JSON_TYPE_OBJECT) {
        return td_error_set(err, TD_INVALID, "fieldsV1: '%.*s' is not an object",
                            TD_STR_ARG(fields->key));
    }
    if (depth >= TD_JSON_DEPTH_MAX) {
        return td_error_set(err, TD_LIMIT, "fieldsV1: deeper than %d levels", TD_JSON_DEPTH_MAX);
    }
    struct td_fieldset_builder builder = {.arena = arena};
    bool is_member = false;
    for (const struct td_json *member = td_json_first_member(fields); member;
         member = member->next) {
        if (td_str_equal(member->key, TD_STR("."))) {
            is_member = true;
            continue;
        }
        int r = fieldset_parse_member(&builder, member, depth, err);
        if (r < 0) {
            return r;
        }
    }
    *ret = td_fieldset_builder_finish(&builder);
    *ret_is_member = is_member || !*ret;
    return td_arena_check(arena, err);
}

int td_fieldset_parse(struct td_arena *arena, const struct td_json *fields_v1,
                      const struct td_fieldset **ret, struct td_error *err)
{
    if (!fields_v1) {
        *ret = NULL;
        return TD_OK;
    }
    const struct td_fieldset *set;
    bool is_member;
    int r = fieldset_parse(arena, fields_v1, 0, &set, &is_member, err);
    if (r < 0) {
        return r;
    }
    *ret = set;
    return TD_OK;
}

static struct td_json *fieldset_to_json(struct td_arena *arena, const struct td_fieldset *set,
                                        bool is_member, unsigned depth)
{
    td_assert(depth <= TD_JSON_DEPTH_MAX);
    struct td_json *object = td_json_new_object(arena);
    if (set && is_member) {
        td_json_set(arena, object, TD_STR("."), td_json_new_object(arena));
    }
    for (size_t i = 0; set && i < set->count; i++) {
        const struct td_fieldset_node *node = &set->nodes[i];
        td_json_set(arena, object, td_field_step_text(arena, &node->step),
                    fieldset_to_json(arena, node->children, node->is_member, depth + 1));
    }
    return object;
}

struct td_json *td_fieldset_to_json(struct td_arena *arena, const struct td_fieldset *set)
{
    return fieldset_to_json(arena, set, false, 0);
}

struct path_walk {
    td_fieldset_visitor visit;
    void *context;
    struct td_buf path;
};

/* Upstream names the members of a level before it goes down. */
static bool fieldset_visit(struct path_walk *walk, const struct td_fieldset *set, unsigned depth)
{
    td_assert(depth <= TD_JSON_DEPTH_MAX);
    size_t prefix = walk->path.len;
    bool is_going = true;
    for (size_t i = 0; i < set->count && is_going; i++) {
        if (set->nodes[i].is_member) {
            td_field_step_write(&set->nodes[i].step, &walk->path);
            is_going = walk->visit(walk->context, td_buf_str(&walk->path));
            walk->path.len = prefix;
        }
    }
    for (size_t i = 0; i < set->count && is_going; i++) {
        if (set->nodes[i].children) {
            td_field_step_write(&set->nodes[i].step, &walk->path);
            is_going = fieldset_visit(walk, set->nodes[i].children, depth + 1);
            walk->path.len = prefix;
        }
    }
    return is_going;
}

void td_fieldset_visit(const struct td_fieldset *set, td_fieldset_visitor visit, void *context)
{
    if (!set) {
        return;
    }
    struct path_walk walk = {.visit = visit, .context = context};
    td_buf_init(&walk.path, TD_JSON_BYTES_MAX);
    (void)fieldset_visit(&walk, set, 0);
    td_buf_done(&walk.path);
}
