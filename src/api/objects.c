#include "api/objects.h"

#include "api/hpa/hpa.h"
#include "api/hvpa/hvpa.h"
#include "api/vpa/vpa.h"
#include "base/error.h"
#include "base/limits.h"
#include "kube/meta.h"

struct object_kind {
    td_str api_version;
    td_str kind;
    const struct td_schema_type *(*schema)(void); /* NULL: the built-in one */
    /* NULL: nothing beyond the schema. */
    void (*check)(const struct td_json *object, struct td_problems *problems);
};

static void check_hpa(const struct td_json *object, struct td_problems *problems);
static void check_vpa(const struct td_json *object, struct td_problems *problems);
static void check_hvpa(const struct td_json *object, struct td_problems *problems);

static const struct object_kind object_kinds[] = {
    {TD_STR_INIT("autoscaling.tandem.dev/v2"), TD_STR_INIT("HorizontalPodAutoscaler"),
     td_hpa_schema, check_hpa},
    {TD_STR_INIT("autoscaling/v1"), TD_STR_INIT("HorizontalPodAutoscaler"), NULL, check_hpa},
    {TD_STR_INIT("autoscaling/v2"), TD_STR_INIT("HorizontalPodAutoscaler"), NULL, check_hpa},
    {TD_STR_INIT("autoscaling.k8s.io/v1"), TD_STR_INIT("VerticalPodAutoscaler"), td_vpa_schema,
     check_vpa},
    {TD_STR_INIT("autoscaling.k8s.io/v1"), TD_STR_INIT("VerticalPodAutoscalerCheckpoint"),
     td_vpa_checkpoint_schema, NULL},
    {TD_STR_INIT(TD_HVPA_API_VERSION), TD_STR_INIT("Hvpa"), td_hvpa_schema, check_hvpa},
};

static const struct object_kind *object_kind_find(td_str api_version, td_str kind)
{
    for (size_t i = 0; i < sizeof(object_kinds) / sizeof(object_kinds[0]); i++) {
        if (td_str_equal(object_kinds[i].api_version, api_version) &&
            td_str_equal(object_kinds[i].kind, kind)) {
            return &object_kinds[i];
        }
    }
    return NULL;
}

const struct td_schema_type *td_objects_schema(td_str api_version, td_str kind)
{
    const struct object_kind *known = object_kind_find(api_version, kind);
    return known && known->schema ? known->schema() : td_schema_find(api_version, kind);
}

void td_objects_check(td_str api_version, td_str kind, const struct td_json *object,
                      struct td_problems *problems)
{
    const struct object_kind *known = object_kind_find(api_version, kind);
    if (known && known->check) {
        known->check(object, problems);
    }
}

/* One step of a path: a member's name or an item's index. */
static const struct td_json *object_step(const struct td_json *node, td_str *rest)
{
    if (rest->ptr[0] == '[') {
        size_t end = td_str_find(*rest, ']', 0);
        int64_t index = -1;
        bool is_index = td_str_to_int64(td_str_slice(*rest, 1, end), &index);
        *rest = td_str_slice(*rest, end + 1, rest->len);
        return is_index && index >= 0 ? td_json_at(node, (size_t)index) : NULL;
    }
    size_t end = 0;
    while (end < rest->len && rest->ptr[end] != '.' && rest->ptr[end] != '[') {
        end++;
    }
    const struct td_json *member = td_json_get(node, td_str_slice(*rest, 0, end));
    *rest = td_str_slice(*rest, end, rest->len);
    return member;
}

uint32_t td_objects_line(const struct td_json *object, td_str path)
{
    uint32_t line = object->line;
    const struct td_json *node = object;
    while (path.len > 0 && node) {
        if (path.ptr[0] == '.') {
            path = td_str_slice(path, 1, path.len);
            continue;
        }
        node = object_step(node, &path);
        line = node && node->line > 0 ? node->line : line;
    }
    return line;
}

/* Field errors as problems of `object`; those at or below metadata are left out. */
static void objects_add_errors(const struct td_json *object, const struct td_field_errors *errors,
                               struct td_problems *problems)
{
    for (size_t i = 0; i < errors->count && !problems->is_cut; i++) {
        const struct td_field_error *error = &errors->items[i];
        if (td_str_equal(error->field, TD_STR("metadata")) ||
            td_str_starts_with(error->field, TD_STR("metadata."))) {
            continue;
        }
        td_auto_buf text;
        td_buf_init(&text, TD_JSON_BYTES_MAX);
        td_field_error_write(error, &text);
        td_str message = td_str_slice(td_buf_str(&text), error->field.len + 2, text.len);
        td_problems_add(problems, td_objects_line(object, error->field), error->field,
                        td_arena_copy_str(problems->arena, message));
    }
}

/* As when it is created in a cluster that has our defaults. */
static void check_hpa(const struct td_json *object, struct td_problems *problems)
{
    const struct td_hpa_admission admission = {
        .operation = TD_HPA_CREATE,
        .object = object,
        .gates = {.selection_strategy = true},
    };
    struct td_field_errors errors = {.arena = problems->arena};
    struct td_error err = TD_ERROR_INIT;
    if (td_hpa_admit(problems->arena, &admission, &errors, NULL, &err) < 0) {
        td_problems_add(problems, object->line, TD_STR_EMPTY,
                        td_arena_format(problems->arena, "%s", err.message));
        return;
    }
    objects_add_errors(object, &errors, problems);
}

static bool has_field(const struct td_field_errors *errors, td_str field)
{
    for (size_t i = 0; i < errors->count; i++) {
        if (td_str_equal(errors->items[i].field, field)) {
            return true;
        }
    }
    return false;
}

/* What the webhook says, then what only the CRD says. A file does not tell with which of upstream's
 * alpha gates a cluster runs, so all of them are taken to be on. Selectors are left to
 * td_check_object. */
static void check_vpa(const struct td_json *object, struct td_problems *problems)
{
    const struct td_vpa_admission admission = {
        .object = object,
        .gates = {.in_place = true,
                  .per_vpa_config = true,
                  .cpu_startup_boost = true,
                  .pod_level_resources = true},
    };
    struct td_field_errors errors = {.arena = problems->arena};
    struct td_field_errors schema_errors = {.arena = problems->arena};
    struct td_json *unused = NULL;
    struct td_error err = TD_ERROR_INIT;
    if (td_vpa_admit(problems->arena, &admission, &errors, &unused, &unused, &err) < 0 ||
        td_vpa_apply_crd(problems->arena, object, &schema_errors, &unused, &err) < 0) {
        td_problems_add(problems, object->line, TD_STR_EMPTY,
                        td_arena_format(problems->arena, "%s", err.message));
        return;
    }
    for (size_t i = 0; i < schema_errors.count; i++) {
        const struct td_field_error *error = &schema_errors.items[i];
        struct td_field_path path = td_field_child(NULL, error->field);
        if (!has_field(&errors, error->field) &&
            !td_str_starts_with(error->field, TD_STR("spec.selector."))) {
            td_field_error_add(&errors, &path, error->type, error->value, error->detail);
        }
    }
    objects_add_errors(object, &errors, problems);
}

/* Faults, then what is accepted but has no effect. */
static void check_hvpa(const struct td_json *object, struct td_problems *problems)
{
    struct td_hvpa hvpa;
    struct td_hvpa_findings findings;
    (void)td_hvpa_decode(problems->arena, object, &hvpa, &findings, NULL); /* the list says it */
    objects_add_errors(object, &findings.errors, problems);
    for (size_t i = 0; i < findings.warnings.count; i++) {
        const struct td_field_error *warning = &findings.warnings.items[i];
        td_problems_add(problems, td_objects_line(object, warning->field), warning->field,
                        warning->detail);
    }
}

/* --- across objects --- */

static bool is_hpa(const struct td_manifest_object *item)
{
    const struct object_kind *known = object_kind_find(item->api_version, item->kind);
    return known && known->check == check_hpa;
}

/* Fields joined so that no two targets share a key: NUL is in no name. */
static td_str target_key(struct td_arena *arena, const struct td_manifest_object *item)
{
    const struct td_json *target = td_json_get_path(item->tree, "spec.scaleTargetRef");
    td_str version = td_json_get_str(target, TD_STR("apiVersion"), TD_STR_EMPTY);
    td_str kind = td_json_get_str(target, TD_STR("kind"), TD_STR_EMPTY);
    td_str name = td_json_get_str(target, TD_STR("name"), TD_STR_EMPTY);
    if (kind.len == 0 || name.len == 0) {
        return TD_STR_EMPTY; /* reported as missing already */
    }
    td_str namespace = item->namespace.len > 0 ? item->namespace : TD_STR("default");
    td_str group = td_group_version_parse(version).group;
    return td_arena_format(arena, "%.*s%c%.*s%c%.*s%c%.*s", TD_STR_ARG(namespace), 0,
                           TD_STR_ARG(group), 0, TD_STR_ARG(kind), 0, TD_STR_ARG(name));
}

/* The same object in two files (a base and its copy) is one autoscaler. */
static bool is_same_object(const struct td_manifest_object *a, const struct td_manifest_object *b)
{
    return td_str_equal(td_group_version_parse(a->api_version).group,
                        td_group_version_parse(b->api_version).group) &&
           td_str_equal(a->name, b->name);
}

/* Two autoscalers on one target would undo each other's work. */
static void check_hpa_targets(const struct td_manifest *manifest, struct td_problems *problems)
{
    td_auto_arena scratch;
    td_arena_init(&scratch, TD_TREE_ARENA_BYTES_MAX);
    struct td_json *owners = td_json_new_object(&scratch); /* target to index */
    for (size_t i = 0; i < manifest->count; i++) {
        const struct td_manifest_object *item = &manifest->items[i];
        td_str key = is_hpa(item) ? target_key(&scratch, item) : TD_STR_EMPTY;
        int64_t owner = td_json_get_int64(owners, key, -1);
        if (key.len == 0) {
            continue;
        }
        if (owner < 0) {
            td_json_set(&scratch, owners, key, td_json_new_int64(&scratch, (int64_t)i));
            continue;
        }
        const struct td_manifest_object *elder = &manifest->items[owner];
        if (!is_same_object(item, elder)) {
            td_str field = TD_STR("spec.scaleTargetRef");
            td_problems_add(&problems[i], td_objects_line(item->tree, field), field,
                            td_arena_format(problems[i].arena,
                                            "HorizontalPodAutoscaler %.*s (%.*s:%u) already "
                                            "scales this target",
                                            TD_STR_ARG(elder->name), TD_STR_ARG(elder->file),
                                            elder->line));
        }
    }
}

void td_objects_check_all(const struct td_manifest *manifest, struct td_problems *problems)
{
    check_hpa_targets(manifest, problems);
}
