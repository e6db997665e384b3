/* The four patches. */
#include "golden/golden.h"

#include "kube/patch/patch.h"
#include "kube/schema/schema.h"

/* in.NAME as JSON, or in.NAMEText as a text that may be no JSON at all. */
static int take(struct td_arena *arena, const struct td_json *in, td_str name, td_str text_name,
                const struct td_json **ret, struct td_error *err)
{
    const struct td_json *text = td_json_get(in, text_name);
    if (td_json_is(text, TD_JSON_TYPE_STRING)) {
        struct td_json *parsed = NULL;
        int code = td_json_parse(arena, text->text, NULL, &parsed, err);
        *ret = parsed;
        return code;
    }
    *ret = td_json_get(in, name);
    return *ret ? TD_OK : td_error_set(err, TD_INVALID, "case has no %.*s", TD_STR_ARG(name));
}

static int take_pair(struct td_arena *arena, const struct td_json *in,
                     const struct td_json **ret_document, const struct td_json **ret_patch,
                     struct td_error *err)
{
    int code = take(arena, in, TD_STR("doc"), TD_STR("docText"), ret_document, err);
    if (code < 0) {
        return code;
    }
    return take(arena, in, TD_STR("patch"), TD_STR("patchText"), ret_patch, err);
}

static int take_type(const struct td_json *in, const struct td_schema_type **ret,
                     struct td_error *err)
{
    td_str version = td_json_get_str(in, TD_STR("apiVersion"), TD_STR_EMPTY);
    td_str kind = td_json_get_str(in, TD_STR("kind"), TD_STR_EMPTY);
    *ret = td_schema_find(version, kind);
    return *ret ? TD_OK : td_error_set(err, TD_NOT_FOUND, "no kind %.*s", TD_STR_ARG(kind));
}

static int answer(struct td_arena *arena, struct td_json *result, struct td_json **ret_out)
{
    *ret_out = td_json_new_object(arena);
    td_json_set(arena, *ret_out, TD_STR("result"), result);
    return TD_OK;
}

static int run_json(struct td_arena *arena, const struct td_json *in, struct td_json **ret_out,
                    struct td_error *err)
{
    const struct td_json *document = NULL;
    const struct td_json *patch = NULL;
    struct td_json *result = NULL;
    int code = take_pair(arena, in, &document, &patch, err);
    if (code < 0) {
        return code;
    }
    code = td_patch_json(arena, document, patch, &result, err);
    return code < 0 ? code : answer(arena, result, ret_out);
}

static int run_merge(struct td_arena *arena, const struct td_json *in, struct td_json **ret_out,
                     struct td_error *err)
{
    const struct td_json *document = NULL;
    const struct td_json *patch = NULL;
    struct td_json *result = NULL;
    int code = take_pair(arena, in, &document, &patch, err);
    if (code < 0) {
        return code;
    }
    code = td_patch_merge(arena, document, patch, &result, err);
    return code < 0 ? code : answer(arena, result, ret_out);
}

static int run_strategic(struct td_arena *arena, const struct td_json *in, struct td_json **ret_out,
                         struct td_error *err)
{
    const struct td_schema_type *type = NULL;
    const struct td_json *document = NULL;
    const struct td_json *patch = NULL;
    struct td_json *result = NULL;
    int code = take_type(in, &type, err);
    if (code < 0) {
        return code;
    }
    code = take_pair(arena, in, &document, &patch, err);
    if (code < 0) {
        return code;
    }
    code = td_patch_strategic(arena, type, document, patch, &result, err);
    return code < 0 ? code : answer(arena, result, ret_out);
}

static int run_three_way(struct td_arena *arena, const struct td_json *in, struct td_json **ret_out,
                         struct td_error *err)
{
    const struct td_schema_type *type = NULL;
    int code = take_type(in, &type, err);
    if (code < 0) {
        return code;
    }
    struct td_patch_three_way input = {
        .original = td_json_get(in, TD_STR("original")),
        .modified = td_json_get(in, TD_STR("modified")),
        .current = td_json_get(in, TD_STR("current")),
        .overwrite = td_json_get_bool(in, TD_STR("overwrite"), false),
    };
    if (td_json_is(input.original, TD_JSON_TYPE_NULL)) {
        input.original = NULL;
    }
    struct td_json *patch = NULL;
    code = td_patch_three_way(arena, type, &input, &patch, err);
    if (code < 0) {
        return code;
    }
    struct td_json *result = NULL;
    code = td_patch_strategic(arena, type, input.current, patch, &result, err);
    if (code < 0) {
        return code;
    }
    (void)answer(arena, result, ret_out); /* cannot fail */
    td_json_set(arena, *ret_out, TD_STR("patch"), patch);
    return TD_OK;
}

const struct golden_topic golden_kube_patches[] = {
    {.name = "kube/json-patch", .run = run_json},
    {.name = "kube/merge-patch", .run = run_merge},
    {.name = "kube/strategic-merge-patch", .run = run_strategic},
    {.name = "kube/three-way", .run = run_three_way},
    {.name = NULL},
};
