/*
 * Every field of a kind wrong in turn: a walk over its schema that hands out, for each value below
 * the root, what its type must refuse, with the path of the value and the JSON that leads there.
 * The test says what refusing means.
 */
#pragma once

/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

#include <stdio.h>
#include <string.h>

#include "kube/schema/schema.h"

#define WRONG_STEPS_MAX 32

/* The way to a value: what opens and closes JSON around it, and its path. */
struct wrong_way {
    char open[1024];
    char close[256];
    char path[1024];
};

struct wrong_walk {
    const char *context; /* for the two functions */
    void (*refuse)(const char *context, const struct wrong_way *way, const char *value);
    bool (*passes_over)(const char *path); /* with all that is below; NULL: nothing */
    size_t tried;                          /* how many values were handed out */
};

/* What a value of this kind must not be, as JSON; ends with NULL. */
static inline const char *const *wrong_values(enum td_schema_kind kind)
{
    static const char *const texts[] = {"1", "true", "[]", "{}", NULL};
    static const char *const integers[] = {
        "\"x\"", "1.5", "9223372036854775808", "1e3", "-1e300", "\"1\"", "true", "[1]", "{}", NULL};
    static const char *const numbers[] = {"\"0.5\"", "true", "[]", "{}", NULL};
    static const char *const quantities[] = {"\"1x\"", "\"\"",        "true", "[]",
                                             "{}",     "\"1.5.5Gi\"", NULL};
    static const char *const times[] = {"\"yesterday\"", "1", "\"\"", "[]", NULL};
    static const char *const durations[] = {"\"1d\"", "5", "\"\"", "\"5 minutes\"", "[]", NULL};
    static const char *const booleans[] = {"\"true\"", "1", "[]", "{}", NULL};
    static const char *const lists[] = {"\"x\"", "1", "{}", "true", NULL};
    static const char *const objects[] = {"\"x\"", "1", "[]", "true", NULL};
    static const char *const none[] = {NULL};
    static const char *const *const values[] = {
        [TD_SCHEMA_ANY] = none,
        [TD_SCHEMA_STRING] = texts,
        [TD_SCHEMA_INT32] = integers,
        [TD_SCHEMA_INT64] = integers,
        [TD_SCHEMA_NUMBER] = numbers,
        [TD_SCHEMA_BOOL] = booleans,
        [TD_SCHEMA_QUANTITY] = quantities,
        [TD_SCHEMA_INT_OR_STRING] = none,
        [TD_SCHEMA_TIME] = times,
        [TD_SCHEMA_MICRO_TIME] = none,
        [TD_SCHEMA_DURATION] = durations,
        [TD_SCHEMA_BYTES] = none,
        [TD_SCHEMA_OBJECT] = objects,
        [TD_SCHEMA_MAP] = objects,
        [TD_SCHEMA_LIST] = lists,
    };
    return values[kind];
}

static inline void wrong_way_extend(const struct wrong_way *from, struct wrong_way *to,
                                    const char *open, const char *close, const char *path)
{
    (void)snprintf(to->open, sizeof(to->open), "%.700s%.200s", from->open, open);
    (void)snprintf(to->close, sizeof(to->close), "%.8s%.200s", close, from->close);
    (void)snprintf(to->path, sizeof(to->path), "%.700s%s%.200s", from->path,
                   from->path[0] != '\0' && path[0] != '[' ? "." : "", path);
}

/* From `type` at `way` (an empty one for a whole object) downwards. What an object is, its
 * apiVersion and kind, stays right: nothing else would be looked at. */
static inline void wrong_walk_type(struct wrong_walk *walk, const struct td_schema_type *type,
                                   const struct wrong_way *way, size_t depth)
{
    assert_true(depth < WRONG_STEPS_MAX);
    bool is_root = way->path[0] == '\0';
    struct wrong_way next;
    for (const char *const *value = wrong_values(type->kind); !is_root && *value; value++) {
        walk->refuse(walk->context, way, *value);
        walk->tried++;
    }
    if (type->kind == TD_SCHEMA_LIST) {
        wrong_way_extend(way, &next, "[", "]", "[0]");
        wrong_walk_type(walk, type->element, &next, depth + 1);
    } else if (type->kind == TD_SCHEMA_MAP) {
        wrong_way_extend(way, &next, "{\"some-key\":", "}", "some-key");
        wrong_walk_type(walk, type->element, &next, depth + 1);
    }
    for (size_t i = 0; type->kind == TD_SCHEMA_OBJECT && i < type->field_count; i++) {
        char open[128];
        char name[64];
        (void)snprintf(name, sizeof(name), "%.*s", TD_STR_ARG(type->fields[i].name));
        bool is_identity = strcmp(name, "apiVersion") == 0 || strcmp(name, "kind") == 0;
        (void)snprintf(open, sizeof(open), "%s\"%s\":", is_root ? "" : "{", name);
        wrong_way_extend(way, &next, open, is_root ? "" : "}", name);
        bool is_passed = walk->passes_over && walk->passes_over(next.path);
        if (!is_passed && !(is_root && is_identity)) {
            wrong_walk_type(walk, type->fields[i].type, &next, depth + 1);
        }
    }
}
