/* Pods, VPAs and LimitRanges from JSON for tests of the vertical deciders. */
#pragma once

/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

#include "api/vpa/vpa.h"
#include "base/error.h"
#include "base/json/json.h"
#include "decide/vertical/patch/limitrange.h"
#include "decide/vertical/pod.h"
#include "decide/vertical/resourcelist.h"

static inline struct td_json *vertical_tree(struct td_arena *arena, const char *text)
{
    struct td_json *tree = NULL;
    struct td_error err = TD_ERROR_INIT;
    if (td_json_parse(arena, td_str_from(text), NULL, &tree, &err) < 0) {
        fail_msg("%s: %s", text, err.message);
    }
    return tree;
}

static inline struct td_pod vertical_pod(struct td_arena *arena, const char *text)
{
    struct td_pod pod = {.tree = NULL};
    struct td_error err = TD_ERROR_INIT;
    if (td_pod_decode(arena, vertical_tree(arena, text), &pod, &err) < 0) {
        fail_msg("%s: %s", text, err.message);
    }
    return pod;
}

static inline struct td_vpa vertical_vpa(struct td_arena *arena, const char *text)
{
    struct td_vpa vpa = {.tree = NULL};
    struct td_error err = TD_ERROR_INIT;
    if (td_vpa_decode(arena, vertical_tree(arena, text), &vpa, &err) < 0) {
        fail_msg("%s: %s", text, err.message);
    }
    return vpa;
}

/* From one spec.limits list, or none when text is NULL. */
static inline struct td_limit_ranges vertical_limits(struct td_arena *arena, const char *text)
{
    struct td_limit_ranges limits = {.container_names = NULL};
    struct td_error err = TD_ERROR_INIT;
    if (!text) {
        return limits;
    }
    struct td_json *object = vertical_tree(arena, "{\"metadata\":{\"name\":\"bounds\"}}");
    struct td_json *spec = td_json_ensure_object(arena, object, TD_STR("spec"));
    td_json_set(arena, spec, TD_STR("limits"), vertical_tree(arena, text));
    const struct td_json *const objects[] = {object};
    if (td_limit_ranges_read(arena, objects, 1, TD_STR_EMPTY, &limits, &err) < 0) {
        fail_msg("%s: %s", text, err.message);
    }
    return limits;
}

static inline struct td_quantity vertical_quantity(struct td_arena *arena, const char *text)
{
    struct td_quantity quantity = {.value = 0};
    if (td_quantity_parse(arena, td_str_from(text), &quantity, NULL) < 0) {
        fail_msg("%s is no quantity", text);
    }
    return quantity;
}

/* "cpu=1,memory=2Mi": the list as one text. */
static inline const char *vertical_list(struct td_arena *arena, const struct td_resource_list *list)
{
    td_str text = TD_STR_EMPTY;
    for (size_t i = 0; i < list->count; i++) {
        text = td_arena_format(arena, "%.*s%s%.*s=%.*s", TD_STR_ARG(text), i > 0 ? "," : "",
                               TD_STR_ARG(list->items[i].name),
                               TD_STR_ARG(td_quantity_text(arena, &list->items[i].quantity)));
    }
    return td_arena_copy_str(arena, text).ptr;
}
