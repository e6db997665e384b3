/*
 * Whole objects of a kind from its schema, and each of their values replaced in turn by what it is
 * not: null, a number, a text, a list, an object, a deep one. A reader of the object may refuse
 * it, with or without a place for the reason, and must survive it.
 */
#pragma once

/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

#include <string.h>

#include "api/hpa/hpa.h"
#include "api/hvpa/hvpa.h"
#include "api/vpa/vpa.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/json/json.h"
#include "base/map.h"
#include "kube/schema/schema.h"

#define SHAPES_ARENA_BYTES ((size_t)256 << 20)
#define SHAPES_NODES_MAX 40000
#define SHAPES_TYPES_MAX 4000
#define SHAPES_DEPTH_MAX 24

/* What takes the place of a value. The number and the text are as long as a pair of pointers. */
static const char *const shapes_texts[] = {
    "null",   "-12345678901234567890", "\"sixteen bytes ..\"",   "\"\"",
    "[]",     "[null,[],{},\"a\",7]",  "{\"a\":{\"b\":[null]}}", "{}",
    "[null]", "{\"cpu\":null}",        NULL /* the deep one */,
};
#define SHAPES_COUNT (sizeof(shapes_texts) / sizeof(shapes_texts[0]))
#define SHAPES_DEEP 60

struct shapes {
    struct td_arena arena;
    struct td_map seen; /* names of types whose members were listed once; see has_once */
    bool has_once;      /* members of a named type are replaced where it occurs first only */
    struct td_json **nodes;
    size_t node_count;
    struct td_json *values[SHAPES_COUNT];
    const struct td_schema_type *open[SHAPES_DEPTH_MAX + 1]; /* the types around a value */
    uint64_t tried;
    uint64_t refused;
};

static inline struct td_json *shapes_parse(struct td_arena *arena, const char *text)
{
    struct td_json *tree = NULL;
    struct td_error err = TD_ERROR_INIT;
    if (td_json_parse(arena, td_str_from(text), NULL, &tree, &err) < 0) {
        fail_msg("%s: %s", text, err.message);
    }
    return tree;
}

static inline void shapes_init(struct shapes *shapes)
{
    *shapes = (struct shapes){.tried = 0};
    td_arena_init(&shapes->arena, SHAPES_ARENA_BYTES);
    td_map_init(&shapes->seen, SHAPES_TYPES_MAX);
    shapes->nodes = td_arena_array(&shapes->arena, struct td_json *, SHAPES_NODES_MAX);
    for (size_t i = 0; i < SHAPES_COUNT; i++) {
        if (shapes_texts[i]) {
            shapes->values[i] = shapes_parse(&shapes->arena, shapes_texts[i]);
            continue;
        }
        struct td_json *deep = td_json_new_null(&shapes->arena);
        for (int level = 0; level < SHAPES_DEEP; level++) {
            struct td_json *around =
                level % 2 ? td_json_new_object(&shapes->arena) : td_json_new_array(&shapes->arena);
            if (level % 2) {
                td_json_set(&shapes->arena, around, TD_STR("a"), deep);
            } else {
                td_json_append(around, deep);
            }
            deep = around;
        }
        shapes->values[i] = deep;
    }
}

static inline void shapes_done(struct shapes *shapes)
{
    td_map_done(&shapes->seen);
    td_arena_done(&shapes->arena);
}

/* Texts that a kind's own rules know, by the name of the field, so that a reader goes on. */
static inline td_str shapes_text(td_str field)
{
    static const char *const texts[][2] = {
        {"apiVersion", "apps/v1"},
        {"kind", "Deployment"},
        {"operator", "In"},
        {"controlledResources", "cpu"},
        {"controlledValues", "RequestsAndLimits"},
        {"changeRequirement", "TargetHigherThanRequests"},
        {"resources", "cpu"},
        {"updateMode", "Auto"},
        {"containerName", "a"},
        {"scaleUpMode", "Auto"},
        {"selectPolicy", "Max"},
        {"version", "v3"},
        {"restartPolicy", "Always"},
        {"mode", "Auto"},
        {"operation", "Update"},
        {"fieldsType", "FieldsV1"},
        {"finalizers", "example.com/a"},
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (td_str_equal(field, td_str_from(texts[i][0]))) {
            return td_str_from(texts[i][1]);
        }
    }
    return TD_STR("a");
}

static inline struct td_json *shapes_scalar(struct td_arena *arena,
                                            const struct td_schema_type *type, td_str field)
{
    switch (type->kind) {
    case TD_SCHEMA_INT32:
    case TD_SCHEMA_INT64:
    case TD_SCHEMA_NUMBER:
    case TD_SCHEMA_INT_OR_STRING:
        return td_json_new_int64(arena, 1);
    case TD_SCHEMA_BOOL:
        return td_json_new_bool(arena, true);
    case TD_SCHEMA_QUANTITY:
        return td_json_new_string(arena, TD_STR("2"));
    case TD_SCHEMA_TIME:
        return td_json_new_string(arena, TD_STR("2026-03-14T10:11:07Z"));
    case TD_SCHEMA_MICRO_TIME:
        return td_json_new_string(arena, TD_STR("2026-03-14T10:11:07.000000Z"));
    case TD_SCHEMA_DURATION:
        return td_json_new_string(arena, TD_STR("1m30s"));
    case TD_SCHEMA_BYTES:
        return td_json_new_string(arena, TD_STR("YQ=="));
    case TD_SCHEMA_ANY:
        return shapes_parse(arena, td_str_equal(field, TD_STR("fieldsV1"))
                                       ? "{\"f:a\":{\".\":{},\"k:{\\\"b\\\":1}\":{}}}"
                                       : "{\"a\":{\"b\":[1,\"c\"]}}");
    default:
        return td_json_new_string(arena, shapes_text(field));
    }
}

static inline void shapes_list(struct shapes *shapes, struct td_json *node)
{
    if (shapes->node_count == SHAPES_NODES_MAX) {
        fail_msg("an object has more than %d values", SHAPES_NODES_MAX);
    }
    shapes->nodes[shapes->node_count++] = node;
}

static inline bool shapes_is_new(struct shapes *shapes, const struct td_schema_type *type)
{
    bool is_new =
        !shapes->has_once || type->name.len == 0 || !td_map_has(&shapes->seen, type->name);
    if (is_new && shapes->has_once && type->name.len > 0) {
        assert_int_equal(td_map_put(&shapes->seen, type->name, shapes), TD_OK);
    }
    return is_new;
}

/* A type that contains itself is made twice, one in the other. */
static inline bool shapes_is_over(struct shapes *shapes, const struct td_schema_type *type,
                                  unsigned depth)
{
    size_t around = 0;
    for (unsigned i = 0; i < depth; i++) {
        around += shapes->open[i] == type ? 1 : 0;
    }
    shapes->open[depth] = type;
    return depth >= SHAPES_DEPTH_MAX || around > 1;
}

/* A value of the type; what is below is listed unless is_known. */
static inline struct td_json *shapes_make(struct shapes *shapes, const struct td_schema_type *type,
                                          td_str field, unsigned depth, bool is_known)
{
    struct td_arena *arena = &shapes->arena;
    bool is_over = shapes_is_over(shapes, type, depth);
    if (type->kind == TD_SCHEMA_LIST || type->kind == TD_SCHEMA_MAP) {
        struct td_json *made =
            type->kind == TD_SCHEMA_LIST ? td_json_new_array(arena) : td_json_new_object(arena);
        if (is_over) {
            return made;
        }
        struct td_json *below = shapes_make(shapes, type->element, field, depth + 1, is_known);
        if (type->kind == TD_SCHEMA_LIST) {
            td_json_append(made, below);
        } else {
            bool is_resources = type->element->kind == TD_SCHEMA_QUANTITY;
            td_json_set(arena, made, is_resources ? TD_STR("cpu") : TD_STR("a"), below);
        }
        if (!is_known) {
            shapes_list(shapes, below);
        }
        return made;
    }
    if (type->kind != TD_SCHEMA_OBJECT) {
        return shapes_scalar(arena, type, field);
    }
    struct td_json *made = td_json_new_object(arena);
    bool is_listed = !is_known && !is_over && shapes_is_new(shapes, type);
    for (size_t i = 0; !is_over && i < type->field_count; i++) {
        const struct td_schema_field *each = &type->fields[i];
        struct td_json *below = shapes_make(shapes, each->type, each->name, depth + 1, !is_listed);
        td_json_set(arena, made, each->name, below);
        if (is_listed) {
            shapes_list(shapes, below);
        }
    }
    return made;
}

/* What reads the object. */
typedef void (*shapes_fn)(struct shapes *shapes, const struct td_json *object, void *context);

/* Every listed value in turn, with every shape. */
static inline void shapes_each(struct shapes *shapes, const struct td_json *object, shapes_fn fn,
                               void *context)
{
    fn(shapes, object, context);
    for (size_t i = 0; i < shapes->node_count; i++) {
        struct td_json *node = shapes->nodes[i];
        struct td_json whole = *node;
        for (size_t k = 0; k < SHAPES_COUNT; k++) {
            struct td_json value = *shapes->values[k];
            td_json_take(node, &value);
            fn(shapes, object, context);
            *node = whole;
            shapes->tried++;
        }
    }
}

/* The type of a kind, built in or ours. */
static inline const struct td_schema_type *shapes_schema(td_str api_version, td_str kind)
{
    static const struct {
        td_str api_version;
        td_str kind;
        const struct td_schema_type *(*type)(void);
    } ours[] = {
        {TD_STR_INIT("autoscaling.tandem.dev/v2"), TD_STR_INIT("HorizontalPodAutoscaler"),
         td_hpa_schema},
        {TD_STR_INIT("autoscaling.k8s.io/v1"), TD_STR_INIT("VerticalPodAutoscaler"), td_vpa_schema},
        {TD_STR_INIT("autoscaling.k8s.io/v1"), TD_STR_INIT("VerticalPodAutoscalerCheckpoint"),
         td_vpa_checkpoint_schema},
        {TD_STR_INIT(TD_HVPA_API_VERSION), TD_STR_INIT("Hvpa"), td_hvpa_schema},
    };
    for (size_t i = 0; i < TD_COUNT(ours); i++) {
        if (td_str_equal(ours[i].api_version, api_version) && td_str_equal(ours[i].kind, kind)) {
            return ours[i].type();
        }
    }
    return td_schema_find(api_version, kind);
}

/* An object of a kind: its values are listed anew. */
static inline struct td_json *shapes_object(struct shapes *shapes,
                                            const struct td_schema_type *type, td_str api_version,
                                            td_str kind)
{
    shapes->node_count = 0;
    struct td_json *object = shapes_make(shapes, type, TD_STR_EMPTY, 0, false);
    td_json_take(td_json_get(object, TD_STR("apiVersion")),
                 td_json_new_string(&shapes->arena, api_version));
    td_json_take(td_json_get(object, TD_STR("kind")), td_json_new_string(&shapes->arena, kind));
    return object;
}

/* An object from its text: all its values are listed. */
static inline void shapes_list_below(struct shapes *shapes, struct td_json *node, unsigned depth)
{
    assert_true(depth < SHAPES_DEPTH_MAX);
    for (struct td_json *child = td_json_first_child(node); child; child = child->next) {
        shapes_list(shapes, child);
        shapes_list_below(shapes, child, depth + 1);
    }
}

static inline struct td_json *shapes_read(struct shapes *shapes, const char *text)
{
    shapes->node_count = 0;
    struct td_json *object = shapes_parse(&shapes->arena, text);
    shapes_list_below(shapes, object, 0);
    return object;
}

/* A failure has set its reason, where there is a place for it. */
static inline void shapes_check(struct shapes *shapes, int code, const struct td_error *err)
{
    shapes->refused += code < 0 ? 1 : 0;
    if (err) {
        assert_int_equal(err->code, code);
        assert_true(code == TD_OK || err->message[0] != 0);
    }
}
