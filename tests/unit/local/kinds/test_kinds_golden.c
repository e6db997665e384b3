/*
 * What the kinds make of an object, against what kube-apiserver 1.36.3 answered to the same
 * manifest (tests/data/kinds; its README says how they were recorded).
 */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

#include "base/error.h"
#include "base/os/file.h"
#include "local/kinds/kinds.h"

#define GOLDEN_NOW ((struct td_instant){.unix_seconds = 1704067200}) /* 2024-01-01 */
#define GOLDEN_ARENA_BYTES_MAX ((size_t)256 << 20)

struct golden {
    struct td_arena arena;
    struct td_json *cases;
    struct td_resources *resources;
};

static void golden_open(struct golden *golden, const char *path)
{
    struct td_error err = TD_ERROR_INIT;
    td_arena_init(&golden->arena, GOLDEN_ARENA_BYTES_MAX);
    td_str text;
    if (td_file_read(path, &golden->arena, TD_JSON_BYTES_MAX, &text, &err) < 0 ||
        td_json_parse(&golden->arena, text, NULL, &golden->cases, &err) < 0) {
        fail_msg("%s", err.message);
    }
    golden->resources = td_resources_new();
}

static void golden_close(struct golden *golden)
{
    td_resources_free(golden->resources);
    td_arena_done(&golden->arena);
}

static td_str text_of(const struct td_json *object, const char *key)
{
    return td_json_get_str(object, td_str_from(key), TD_STR_EMPTY);
}

static td_str scalar_text(struct td_arena *arena, const struct td_json *tree)
{
    td_auto_buf text;
    td_buf_init(&text, TD_JSON_BYTES_MAX);
    if (tree) {
        td_json_write(tree, &(struct td_json_format){.indent = 0}, &text);
    }
    return td_arena_copy_str(arena, td_buf_str(&text));
}

/* Says where two trees differ, member by member; trees are small. */
static void print_difference(struct td_arena *arena, td_str path, const struct td_json *ours,
                             const struct td_json *theirs)
{
    bool are_objects =
        td_json_is(ours, TD_JSON_TYPE_OBJECT) && td_json_is(theirs, TD_JSON_TYPE_OBJECT);
    bool are_lists = td_json_is(ours, TD_JSON_TYPE_ARRAY) &&
                     td_json_is(theirs, TD_JSON_TYPE_ARRAY) && ours->count == theirs->count;
    if (ours && theirs && td_json_equal(ours, theirs)) {
        return;
    }
    if (are_lists) {
        const struct td_json *b = td_json_first_child(theirs);
        for (const struct td_json *a = td_json_first_child(ours); a; a = a->next, b = b->next) {
            print_difference(arena, td_arena_format(arena, "%.*s[]", TD_STR_ARG(path)), a, b);
        }
        return;
    }
    if (!are_objects) {
        print_error("  %.*s: ours %.*s, the server's %.*s\n", TD_STR_ARG(path),
                    TD_STR_ARG(scalar_text(arena, ours)), TD_STR_ARG(scalar_text(arena, theirs)));
        return;
    }
    for (const struct td_json *a = td_json_first_child(ours); a; a = a->next) {
        td_str below = td_arena_format(arena, "%.*s.%.*s", TD_STR_ARG(path), TD_STR_ARG(a->key));
        print_difference(arena, below, a, td_json_get(theirs, a->key));
    }
    for (const struct td_json *b = td_json_first_child(theirs); b; b = b->next) {
        td_str below = td_arena_format(arena, "%.*s.%.*s", TD_STR_ARG(path), TD_STR_ARG(b->key));
        if (!td_json_get(ours, b->key)) {
            print_difference(arena, below, NULL, b);
        }
    }
}

/* The write that a create is: metadata as the caller of the kinds completes it. */
static struct td_kind_write golden_create(struct golden *golden, struct td_json *manifest,
                                          td_str uid)
{
    struct td_resource_at at = td_resources_find_kind(
        golden->resources, text_of(manifest, "apiVersion"), text_of(manifest, "kind"));
    assert_non_null(at.resource);
    struct td_error err = TD_ERROR_INIT;
    if (td_kind_default(&golden->arena, at.resource, at.version, manifest, &err) < 0) {
        fail_msg("%s", err.message);
    }
    struct td_json *metadata = td_json_ensure_object(&golden->arena, manifest, TD_STR("metadata"));
    if (at.resource->is_namespaced) {
        td_json_set_str(&golden->arena, metadata, TD_STR("namespace"), TD_STR("default"));
    }
    td_json_set_str(&golden->arena, metadata, TD_STR("uid"), uid);
    return (struct td_kind_write){
        .arena = &golden->arena,
        .resource = at.resource,
        .operation = TD_WRITE_CREATE,
        .object = manifest,
        .now = GOLDEN_NOW,
        .warnings = td_json_new_array(&golden->arena),
    };
}

/* Addresses and ports are the server's own choice. */
static void mask_choices(struct td_arena *arena, struct td_json *object)
{
    struct td_json *spec = td_json_get(object, TD_STR("spec"));
    td_str address = text_of(spec, "clusterIP");
    struct td_json *addresses = td_json_get(spec, TD_STR("clusterIPs"));
    if (address.len > 0 && !td_str_equal(address, TD_STR("None"))) {
        td_json_set_str(arena, spec, TD_STR("clusterIP"), TD_STR("chosen"));
        td_json_replace_at(addresses, 0, td_json_new_string(arena, TD_STR("chosen")));
        struct td_json *ports = td_json_get(spec, TD_STR("ports"));
        for (struct td_json *port = td_json_first_child(ports); port; port = port->next) {
            if (td_json_get(port, TD_STR("nodePort"))) {
                td_json_set_int64(arena, port, TD_STR("nodePort"), 1);
            }
        }
    }
}

/* Every manifest that the server accepts comes out as it answered. */
static void test_kinds_complete_objects_as_the_server_does(void **state)
{
    (void)state;
    struct golden golden;
    golden_open(&golden, TEST_DATA_DIR "/kinds/create.json");
    int failures = 0;
    for (struct td_json *row = td_json_first_child(golden.cases); row; row = row->next) {
        struct td_json *answer = td_json_get(row, TD_STR("answer"));
        td_str uid = text_of(td_json_get(answer, TD_STR("metadata")), "uid");
        struct td_kind_write write =
            golden_create(&golden, td_json_get(row, TD_STR("manifest")), uid);
        td_kind_prepare(&write);
        struct td_field_errors errors = {.arena = &golden.arena};
        td_kind_validate(&write, &errors);
        mask_choices(&golden.arena, write.object);
        mask_choices(&golden.arena, answer);
        if (errors.count > 0 || !td_json_equal(write.object, answer)) {
            failures++;
            print_error("case %.*s: %zu errors %.*s: %.*s\n", TD_STR_ARG(text_of(row, "name")),
                        errors.count, TD_STR_ARG(errors.count ? errors.items[0].field : TD_STR("")),
                        TD_STR_ARG(errors.count ? errors.items[0].detail : TD_STR("")));
            print_difference(&golden.arena, TD_STR_EMPTY, write.object, answer);
        }
    }
    golden_close(&golden);
    assert_int_equal(failures, 0);
}

static const char *cause_reason(enum td_field_error_type type)
{
    switch (type) {
    case TD_FIELD_REQUIRED:
        return "FieldValueRequired";
    case TD_FIELD_INVALID:
        return "FieldValueInvalid";
    case TD_FIELD_UNSUPPORTED:
        return "FieldValueNotSupported";
    case TD_FIELD_FORBIDDEN:
        return "FieldValueForbidden";
    case TD_FIELD_DUPLICATE:
        return "FieldValueDuplicate";
    case TD_FIELD_TOO_MANY:
        return "FieldValueTooMany";
    case TD_FIELD_TOO_LONG:
        return "FieldValueTooLong";
    case TD_FIELD_NOT_FOUND:
        return "FieldValueNotFound";
    case TD_FIELD_TYPE_INVALID:
        return "FieldValueTypeInvalid";
    }
    return "";
}

/* Cases with a message of our own: rules of names are in our words (kube/names.h), and a value that
 * is an object is shown as JSON, not as the server's internal struct. */
static bool has_own_words(td_str name)
{
    static const td_str names[] = {
        TD_STR_INIT("pod-container-names"),
        TD_STR_INIT("pod-env"),
        TD_STR_INIT("deployment-strategy-unknown"),
        TD_STR_INIT("statefulset-fields"),
        TD_STR_INIT("configmap-key"),
        TD_STR_INIT("secret-key"),
        TD_STR_INIT("pdb-both"),
        TD_STR_INIT("crd-storage"),
        TD_STR_INIT("job-template"),
        TD_STR_INIT("binding-role"),
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (td_str_equal(name, names[i])) {
            return true;
        }
    }
    return false;
}

/* The message of an error as a cause of a Status has it: without the field. */
static td_str message_of(struct td_arena *arena, const struct td_field_error *error)
{
    td_auto_buf text;
    td_buf_init(&text, TD_JSON_BYTES_MAX);
    td_field_error_write(error, &text);
    return td_arena_copy_str(arena,
                             td_str_slice(td_buf_str(&text), error->field.len + 2, text.len));
}

/* Is there a cause of the server's at this place, of this class and with this message? */
static bool has_cause(const struct td_json *causes, const struct td_field_error *error,
                      td_str message)
{
    td_str reason = td_str_from(cause_reason(error->type));
    for (const struct td_json *cause = td_json_first_child(causes); cause; cause = cause->next) {
        const struct td_json *known = td_json_first_child(cause)->next;
        if (td_str_equal(td_json_first_child(cause)->text, error->field) &&
            td_str_equal(known->text, reason) &&
            td_str_starts_with(known->next->text, message)) { /* a difference may follow */
            return true;
        }
    }
    return false;
}

static bool has_error(const struct td_field_errors *errors, td_str field, td_str reason)
{
    for (size_t i = 0; i < errors->count; i++) {
        if (td_str_equal(errors->items[i].field, field) &&
            td_str_equal(td_str_from(cause_reason(errors->items[i].type)), reason)) {
            return true;
        }
    }
    return false;
}

/* Both sides name the same places and classes; returns how many only one of them does. */
static int compare_causes(td_str name, const struct td_json *causes,
                          const struct td_field_errors *errors)
{
    int failures = 0;
    for (size_t i = 0; i < errors->count; i++) {
        const struct td_field_error *error = &errors->items[i];
        td_str message = message_of(errors->arena, error);
        if (!has_cause(causes, error, has_own_words(name) ? TD_STR_EMPTY : message)) {
            failures++;
            print_error("%.*s: only ours: %.*s: %.*s\n", TD_STR_ARG(name), TD_STR_ARG(error->field),
                        TD_STR_ARG(message));
        }
    }
    for (const struct td_json *cause = td_json_first_child(causes); cause; cause = cause->next) {
        const struct td_json *reason = td_json_first_child(cause)->next;
        if (!has_error(errors, td_json_first_child(cause)->text, reason->text)) {
            failures++;
            print_error("%.*s: only the server: %.*s %.*s: %.*s\n", TD_STR_ARG(name),
                        TD_STR_ARG(td_json_first_child(cause)->text), TD_STR_ARG(reason->text),
                        TD_STR_ARG(reason->next->text));
        }
    }
    return failures;
}

/* Every manifest that the server refuses is refused at the same places for the same reasons. */
static void test_kinds_refuse_what_the_server_refuses(void **state)
{
    (void)state;
    struct golden golden;
    golden_open(&golden, TEST_DATA_DIR "/kinds/refuse.json");
    int failures = 0;
    for (struct td_json *row = td_json_first_child(golden.cases); row; row = row->next) {
        struct td_kind_write write = golden_create(&golden, td_json_get(row, TD_STR("manifest")),
                                                   TD_STR("11111111-1111-4111-8111"));
        td_kind_prepare(&write);
        struct td_field_errors errors = {.arena = &golden.arena};
        td_kind_validate(&write, &errors);
        failures +=
            compare_causes(text_of(row, "name"), td_json_get(row, TD_STR("causes")), &errors);
    }
    golden_close(&golden);
    assert_int_equal(failures, 0);
}

static enum td_write_operation operation_of(td_str subresource)
{
    if (td_str_equal(subresource, TD_STR("status"))) {
        return TD_WRITE_STATUS;
    }
    if (td_str_equal(subresource, TD_STR("resize"))) {
        return TD_WRITE_RESIZE;
    }
    return td_str_equal(subresource, TD_STR("ephemeralcontainers")) ? TD_WRITE_EPHEMERAL
                                                                    : TD_WRITE_UPDATE;
}

static int run_update(struct golden *golden, struct td_json *row)
{
    td_str name = text_of(row, "name");
    struct td_json *answer = td_json_get(row, TD_STR("answer"));
    const struct td_json *causes = td_json_get(row, TD_STR("causes"));
    struct td_kind_write write =
        golden_create(golden, td_json_get(row, TD_STR("object")), TD_STR_EMPTY);
    write.old = td_json_get(row, TD_STR("stored"));
    write.operation = operation_of(text_of(row, "subresource"));
    struct td_json *metadata = td_json_get(write.object, TD_STR("metadata"));
    td_json_set_str(&golden->arena, metadata, TD_STR("uid"),
                    text_of(td_json_get(write.old, TD_STR("metadata")), "uid"));
    td_kind_prepare(&write);
    struct td_field_errors errors = {.arena = &golden->arena};
    td_kind_validate(&write, &errors);
    if (causes) {
        return compare_causes(name, causes, &errors);
    }
    mask_choices(&golden->arena, write.object);
    mask_choices(&golden->arena, answer);
    if (errors.count > 0 || !td_json_equal(write.object, answer)) {
        print_error("%.*s: %zu errors %.*s\n", TD_STR_ARG(name), errors.count,
                    TD_STR_ARG(errors.count > 0 ? errors.items[0].detail : TD_STR_EMPTY));
        print_difference(&golden->arena, TD_STR_EMPTY, write.object, answer);
        return 1;
    }
    return 0;
}

/* Updates of every door are taken, kept out or refused as by the server. */
static void test_kinds_update_as_the_server_does(void **state)
{
    (void)state;
    struct golden golden;
    golden_open(&golden, TEST_DATA_DIR "/kinds/update.json");
    int failures = 0;
    for (struct td_json *row = td_json_first_child(golden.cases); row; row = row->next) {
        failures += run_update(&golden, row);
    }
    golden_close(&golden);
    assert_int_equal(failures, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds_complete_objects_as_the_server_does),
        cmocka_unit_test(test_kinds_refuse_what_the_server_refuses),
        cmocka_unit_test(test_kinds_update_as_the_server_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
