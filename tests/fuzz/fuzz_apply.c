/* Server-side apply of any configuration to any object: the input's first line is the live object,
 * the second the configuration. Whatever is accepted can be written, read and applied again until
 * nothing changes. Both texts are also read as field sets. */
#include <stdint.h>

#include "base/assert.h"
#include "base/error.h"
#include "kube/apply/apply.h"
#include "kube/apply/fieldset.h"
#include "kube/apply/fieldset_types.h"

#define ARENA_BYTES ((size_t)1 << 30)
#define TEXT_BYTES ((size_t)256 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct target {
    const struct td_schema_type *type;
    td_str api_version;
    td_str kind;
};

static td_str written(struct td_arena *arena, const struct td_json *json)
{
    td_auto_buf text;
    td_buf_init(&text, TEXT_BYTES);
    struct td_json *sorted = td_json_copy(arena, json, false);
    td_json_sort(arena, sorted);
    td_json_write(sorted, &(struct td_json_format){.indent = 0}, &text);
    td_assert(!text.is_full);
    return td_arena_copy_str(arena, td_buf_str(&text));
}

/* A copy that is of the target's kind, so that most inputs get past the first check. */
static struct td_json *as_kind(struct td_arena *arena, const struct target *target,
                               const struct td_json *json)
{
    if (!td_json_is(json, TD_JSON_TYPE_OBJECT)) {
        return NULL;
    }
    struct td_json *object = td_json_copy(arena, json, false);
    td_json_set(arena, object, TD_STR("apiVersion"),
                td_json_new_string(arena, target->api_version));
    td_json_set(arena, object, TD_STR("kind"), td_json_new_string(arena, target->kind));
    return object;
}

/* What was accepted can be read again and applied again. Pruning leaves null where the
 * configuration may have an empty object, as upstream's does, so it is the third apply that changes
 * nothing. */
static void check_result(struct td_arena *arena, const struct td_apply_request *request,
                         const struct td_json *applied, const struct td_json *result)
{
    struct td_apply_request again = *request;
    again.force = true;
    td_str texts[3] = {written(arena, result)};
    for (size_t i = 1; i < 3; i++) {
        struct td_json *live;
        struct td_json *next = NULL;
        struct td_error err = TD_ERROR_INIT;
        td_assert(td_json_parse(arena, texts[i - 1], NULL, &live, NULL) == TD_OK);
        td_assert(td_apply(arena, &again, live, applied, &next, NULL, &err) == TD_OK);
        texts[i] = written(arena, next);
    }
    td_assert(td_str_equal(texts[1], texts[2]));
}

static void run_apply(const struct target *target, const struct td_json *live_json,
                      const struct td_json *applied_json, bool force)
{
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    struct td_json *live = as_kind(&arena, target, live_json);
    struct td_json *applied = as_kind(&arena, target, applied_json);
    if (!applied) {
        return;
    }
    const struct td_apply_request request = {
        .type = target->type,
        .api_version = target->api_version,
        .kind = target->kind,
        .manager = TD_STR("fuzz"),
        .now = {.unix_seconds = 1800000000},
        .force = force,
    };
    td_str before = live ? written(&arena, live) : TD_STR_EMPTY;
    struct td_json *result = NULL;
    struct td_json *conflicts = NULL;
    struct td_error err = TD_ERROR_INIT;
    int r = td_apply(&arena, &request, live, applied, &result, &conflicts, &err);
    td_assert(r == TD_OK || err.message[0] != '\0');
    td_assert(!force || r != TD_CONFLICT);
    td_assert((r == TD_CONFLICT) == (conflicts != NULL));
    if (r == TD_OK) {
        check_result(&arena, &request, applied, result);
    }
    r = td_apply_update(&arena, &request, live, applied, &result, &err);
    if (r == TD_OK) {
        struct td_json *again;
        td_assert(td_json_parse(&arena, written(&arena, result), NULL, &again, NULL) == TD_OK);
    }
    td_assert(!live || td_str_equal(written(&arena, live), before));
}

static bool is_equal(struct td_arena *arena, const struct td_fieldset *a,
                     const struct td_fieldset *b)
{
    return td_json_equal(td_fieldset_to_json(arena, a), td_fieldset_to_json(arena, b));
}

static bool look_at_path(void *context, td_str path)
{
    return !context && path.len > 0;
}

static const struct td_fieldset *run_fieldset(struct td_arena *arena, const struct td_json *json)
{
    const struct td_fieldset *set = NULL;
    struct td_error err = TD_ERROR_INIT;
    if (!json || td_fieldset_parse(arena, json, &set, &err) != TD_OK) {
        return NULL;
    }
    const struct td_fieldset *again = NULL;
    td_assert(td_fieldset_parse(arena, td_fieldset_to_json(arena, set), &again, NULL) == TD_OK);
    td_assert(is_equal(arena, set, again));
    td_fieldset_visit(set, look_at_path, NULL);
    return set;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    td_str text = {.ptr = (const char *)data, .len = size};
    size_t end = td_str_find(text, '\n', 0);
    struct td_json *live = NULL;
    struct td_json *applied = NULL;
    (void)td_json_parse(&arena, td_str_slice(text, 0, end), NULL, &live, NULL);
    (void)td_json_parse(&arena, td_str_slice(text, end + 1, size), NULL, &applied, NULL);
    const struct td_fieldset *a = run_fieldset(&arena, live);
    const struct td_fieldset *b = run_fieldset(&arena, applied);
    const struct td_fieldset *rest = td_fieldset_difference(&arena, a, b);
    const struct td_fieldset *common = td_fieldset_intersection(&arena, a, b);
    td_assert(is_equal(&arena, td_fieldset_union(&arena, rest, common), a));

    const struct target targets[] = {
        {td_schema_find(TD_STR("v1"), TD_STR("Pod")), TD_STR("v1"), TD_STR("Pod")},
        {td_schema_any_object(), TD_STR("example.com/v1"), TD_STR("Widget")},
    };
    for (size_t i = 0; applied && i < sizeof(targets) / sizeof(targets[0]); i++) {
        run_apply(&targets[i], live, applied, false);
        run_apply(&targets[i], live, applied, true);
    }
    return 0;
}
