/*
 * The definitions of our kinds, the rules that our webhooks add to them (HPA, VPA and Hvpa by the
 * functions of their own rooms), and the one check across objects: two HPAs on one target. Field
 * errors become problems with a line of the file.
 */
#include "api/objects.h"

#include "api/hpa/hpa.h"
#include "api/hvpa/hvpa.h"
#include "api/vpa/vpa.h"
#include "base/error.h"
#include "base/limits.h"
#include "kube/meta.h"

const td_definition_fn td_objects_definitions[TD_OBJECTS_DEFINITION_COUNT] = {
    td_vpa_crd,
    td_vpa_checkpoint_crd,
    td_hpa_crd,
    td_hvpa_crd,
};

typedef void (*object_check_fn)(const struct td_json *object, struct td_problems *problems);

static void check_strategy_annotations(const struct td_json *object, struct td_problems *problems);
static void check_builtin_hpa(const struct td_json *object, struct td_problems *problems);
static void check_hpa(const struct td_json *object, struct td_problems *problems);
static void check_vpa(const struct td_json *object, struct td_problems *problems);
static void check_hvpa(const struct td_json *object, struct td_problems *problems);

struct object_kind {
    td_str api_version;
    td_str kind;
    object_check_fn check;
};

static const struct object_kind object_kinds[] = {
    {TD_STR_INIT("autoscaling/v1"), TD_STR_INIT("HorizontalPodAutoscaler"),
     check_strategy_annotations},
    {TD_STR_INIT("autoscaling/v2"), TD_STR_INIT("HorizontalPodAutoscaler"), check_builtin_hpa},
    {TD_STR_INIT("autoscaling.tandem.dev/v2"), TD_STR_INIT("HorizontalPodAutoscaler"), check_hpa},
    {TD_STR_INIT("autoscaling.k8s.io/v1"), TD_STR_INIT("VerticalPodAutoscaler"), check_vpa},
    {TD_STR_INIT(TD_HVPA_API_VERSION), TD_STR_INIT("Hvpa"), check_hvpa},
};

void td_objects_check(td_str api_version, td_str kind, const struct td_json *object,
                      struct td_problems *problems)
{
    for (size_t i = 0; i < TD_COUNT(object_kinds); i++) {
        if (td_str_equal(object_kinds[i].api_version, api_version) &&
            td_str_equal(object_kinds[i].kind, kind)) {
            object_kinds[i].check(object, problems);
        }
    }
}

/* One step of a path: a member's name, an item's index or a map's key. */
static const struct td_json *object_step(const struct td_json *node, td_str *rest)
{
    if (rest->ptr[0] == '[') {
        size_t end = td_str_find(*rest, ']', 0);
        td_str key = td_str_slice(*rest, 1, end);
        int64_t index = -1;
        *rest = td_str_slice(*rest, end + 1, rest->len);
        if (!td_json_is(node, TD_JSON_TYPE_ARRAY)) {
            return td_json_get(node, key);
        }
        bool is_index = td_str_to_int64(key, &index) && index >= 0;
        return is_index ? td_json_at(node, (size_t)index) : NULL;
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

static bool has_field(const struct td_problems *problems, td_str field)
{
    for (size_t i = 0; i < problems->count; i++) {
        if (td_str_equal(problems->items[i].field, field)) {
            return true;
        }
    }
    return false;
}

static td_str error_message(struct td_arena *arena, const struct td_field_error *error)
{
    td_auto_buf text = td_buf_capped(TD_JSON_BYTES_MAX);
    td_field_error_write(error, &text);
    td_str whole = td_buf_str(&text);
    size_t start = error->field.len > 0 ? error->field.len + 2 : 0;
    return td_arena_copy_str(arena, td_str_slice(whole, start, whole.len));
}

void td_objects_add_errors(const struct td_json *object, const struct td_field_errors *errors,
                           struct td_problems *problems)
{
    for (size_t i = 0; i < errors->count && !problems->is_cut; i++) {
        const struct td_field_error *error = &errors->items[i];
        td_problems_add(problems, &(struct td_problem){
                                      .line = td_objects_line(object, error->field),
                                      .field = td_arena_copy_str(problems->arena, error->field),
                                      .message = error_message(problems->arena, error),
                                      .rule = "invalid",
                                  });
    }
}

/* Of the fields that are not named yet: a server's schema and our webhook object to the same
 * mistakes. Metadata is the server's alone. */
static void objects_add_new(const struct td_json *object, const struct td_field_errors *errors,
                            struct td_problems *problems)
{
    struct td_field_errors fresh = {.arena = errors->arena};
    for (size_t i = 0; i < errors->count; i++) {
        const struct td_field_error *error = &errors->items[i];
        struct td_field_path path = td_field_child(NULL, error->field);
        if (!has_field(problems, error->field) && !td_str_equal(error->field, TD_STR("metadata")) &&
            !td_str_starts_with(error->field, TD_STR("metadata."))) {
            td_field_error_add(&fresh, &path, error->type, error->value, error->detail);
        }
    }
    td_objects_add_errors(object, &fresh, problems);
}

static void objects_add_failure(const struct td_json *object, const struct td_error *err,
                                struct td_problems *problems)
{
    if (problems->count == 0) { /* else the schema has named what does not decode */
        td_problems_add(problems,
                        &(struct td_problem){
                            .line = object->line,
                            .message = td_arena_format(problems->arena, "%s", err->message),
                            .rule = "invalid",
                        });
    }
}

static void check_strategy_annotations(const struct td_json *object, struct td_problems *problems)
{
    static const td_str keys[] = {
        TD_STR_INIT("tandem.dev/hpa-selection-strategy"),
        TD_STR_INIT("autoscaling.alpha.kubernetes.io/pod-selection-strategy"),
    };
    static const td_str known[] = {TD_STR_INIT("LabelSelector"), TD_STR_INIT("OwnerReference"),
                                   TD_STR_INIT("OwnerReferences")};
    const struct td_json *annotations = td_json_get_path(object, "metadata.annotations");
    for (size_t i = 0; i < TD_COUNT(keys); i++) {
        const struct td_json *value = td_json_get(annotations, keys[i]);
        if (td_json_is(value, TD_JSON_TYPE_STRING) &&
            !td_str_is_among(td_str_trim(value->text), known, TD_COUNT(known))) {
            td_str field =
                td_arena_format(problems->arena, "metadata.annotations[%.*s]", TD_STR_ARG(keys[i]));
            td_str message = td_arena_format(
                problems->arena,
                "unsupported value \"%.*s\", which counts as LabelSelector; supported values: "
                "\"LabelSelector\", \"OwnerReference\"",
                TD_STR_ARG(value->text));
            td_problems_add(problems, &(struct td_problem){.line = value->line,
                                                           .field = field,
                                                           .message = message,
                                                           .rule = "unknown-strategy"});
        }
    }
}

/* The local API server serves the field of the proposal; Kubernetes' own does not have it. */
static void check_builtin_hpa(const struct td_json *object, struct td_problems *problems)
{
    check_strategy_annotations(object, problems);
    static const td_str fields[] = {TD_STR_INIT("spec.selectionStrategy"),
                                    TD_STR_INIT("spec.SelectionStrategy")};
    for (size_t i = 0; i < TD_COUNT(fields); i++) {
        if (td_json_get_path(object, fields[i].ptr)) {
            td_problems_add(
                problems, &(struct td_problem){
                              .line = td_objects_line(object, fields[i]),
                              .field = fields[i],
                              .message = TD_STR("unknown field to API servers of Kubernetes, which "
                                                "refuse or drop it; use apiVersion: "
                                                "autoscaling.tandem.dev/v2, or the annotation "
                                                "tandem.dev/hpa-selection-strategy"),
                              .rule = "unknown-field",
                          });
        }
    }
}

/* As when it is created in a cluster that has our defaults. */
static void check_hpa(const struct td_json *object, struct td_problems *problems)
{
    check_strategy_annotations(object, problems);
    const struct td_hpa_admission admission = {
        .operation = TD_HPA_CREATE,
        .object = object,
        .gates = {.selection_strategy = true},
    };
    struct td_field_errors errors = {.arena = problems->arena};
    struct td_error err = TD_ERROR_INIT;
    if (td_hpa_admit(problems->arena, &admission, &errors, NULL, &err) < 0) {
        objects_add_failure(object, &err, problems);
        return;
    }
    objects_add_new(object, &errors, problems);
}

/* Of gardener's Hvpa, under another name: what it asks for is not done. */
static bool is_foreign_field(td_str field)
{
    static const td_str fields[] = {TD_STR_INIT("spec.hpa"), TD_STR_INIT("spec.vpa"),
                                    TD_STR_INIT("spec.weightBasedScalingIntervals")};
    return td_str_is_among(field, fields, TD_COUNT(fields));
}

/* What is accepted but has no effect. */
static void add_unused(const struct td_json *object, const struct td_field_errors *unused,
                       struct td_problems *problems)
{
    for (size_t i = 0; i < unused->count; i++) {
        const struct td_field_error *warning = &unused->items[i];
        td_problems_add(problems, &(struct td_problem){
                                      .line = td_objects_line(object, warning->field),
                                      .field = warning->field,
                                      .message = warning->detail,
                                      .rule = "no-effect",
                                      .is_warning = !is_foreign_field(warning->field),
                                  });
    }
}

/* A file does not tell with which of upstream's alpha gates a cluster runs, so all of them are
 * taken to be on. */
static void check_vpa(const struct td_json *object, struct td_problems *problems)
{
    const struct td_vpa_admission admission = {
        .object = object,
        .gates = td_vpa_gates_all,
    };
    struct td_field_errors errors = {.arena = problems->arena};
    struct td_json *unused = NULL;
    struct td_error err = TD_ERROR_INIT;
    if (td_vpa_admit(problems->arena, &admission, &errors, &unused, &unused, &err) < 0) {
        objects_add_failure(object, &err, problems);
        return;
    }
    objects_add_new(object, &errors, problems);
    struct td_vpa vpa;
    struct td_field_errors unused_fields = {.arena = problems->arena};
    struct td_field_path spec = td_field_child(NULL, TD_STR("spec"));
    if (td_vpa_decode(problems->arena, object, &vpa, NULL) == TD_OK) {
        td_vpa_find_unused(&vpa, &spec, &unused_fields);
        add_unused(object, &unused_fields, problems);
    }
}

/* Faults, then what is accepted but has no effect. */
static void check_hvpa(const struct td_json *object, struct td_problems *problems)
{
    struct td_hvpa hvpa;
    struct td_hvpa_findings findings;
    (void)td_hvpa_decode(problems->arena, object, &hvpa, &findings, NULL); /* the list says it */
    objects_add_new(object, &findings.errors, problems);
    add_unused(object, &findings.warnings, problems);
}

/* --- across objects --- */

static bool is_hpa(const struct td_manifest_object *item)
{
    td_str group = td_group_version_parse(item->api_version).group;
    return td_str_equal(item->kind, TD_STR("HorizontalPodAutoscaler")) &&
           (td_str_equal(group, TD_STR("autoscaling")) ||
            td_str_equal(group, TD_STR("autoscaling.tandem.dev")));
}

/* Fields joined so that no two targets share a key: NUL is in no name. */
static td_str target_key(struct td_arena *arena, const struct td_manifest_object *item)
{
    const struct td_json *target = td_json_get_path(item->tree, "spec.scaleTargetRef");
    td_str version = td_json_text(target, "apiVersion");
    td_str kind = td_json_text(target, "kind");
    td_str name = td_json_text(target, "name");
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
    td_auto_arena scratch = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_json *owners = td_json_new_object(&scratch); /* target to index */
    for (size_t i = 0; i < manifest->count; i++) {
        const struct td_manifest_object *item = &manifest->items[i];
        td_str key = is_hpa(item) ? target_key(&scratch, item) : TD_STR_EMPTY;
        int64_t owner = td_json_get_int64(owners, key, -1);
        if (key.len == 0) {
            continue;
        }
        if (owner < 0) {
            td_json_set_int64(&scratch, owners, key, (int64_t)i);
            continue;
        }
        const struct td_manifest_object *elder = &manifest->items[owner];
        if (!is_same_object(item, elder)) {
            td_str field = TD_STR("spec.scaleTargetRef");
            td_str message =
                td_arena_format(problems[i].arena,
                                "HorizontalPodAutoscaler %.*s (%.*s:%u) already scales this target",
                                TD_STR_ARG(elder->name), TD_STR_ARG(elder->file), elder->line);
            td_problems_add(&problems[i], &(struct td_problem){
                                              .line = td_objects_line(item->tree, field),
                                              .field = field,
                                              .message = message,
                                              .rule = "hpa-same-target",
                                          });
        }
    }
}

void td_objects_check_all(const struct td_manifest *manifest, struct td_problems *problems)
{
    check_hpa_targets(manifest, problems);
}
