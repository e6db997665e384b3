/* Hvpas from any bytes: nothing crashes, what is refused has a message, and what is accepted keeps
 * its rules and its meaning in the normal form. The input is JSON; it is tried as an object, as its
 * spec, as one of the autoscalers inside, as a status, and as what is to be migrated. */
#include <stdint.h>

#include "api/hvpa/hvpa.h"
#include "base/assert.h"
#include "base/error.h"
#include "decide/manifests.h"
#include "decide/tandem/migrate/migrate.h"
#include "support/hvpa_normal_form.h"

#define ARENA_BYTES ((size_t)1 << 30)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_rules(const struct td_hvpa *hvpa)
{
    td_assert(hvpa->has_hpa || hvpa->has_vpa);
    td_assert(hvpa->target.kind.len > 0);
    td_assert(hvpa->ratio.v_to_h >= 0);
    td_assert(hvpa->ratio.v_to_h <= 1e6);
    td_assert(hvpa->vertical_down.stabilization >= 0);
    td_assert(!hvpa->has_vpa || hvpa->vpa.mode == TD_VPA_OFF);
    td_assert(!hvpa->has_hpa || hvpa->hpa.min_replicas >= 1);
    td_assert(!hvpa->has_hpa || hvpa->hpa.min_replicas <= hvpa->hpa.max_replicas);
    td_assert(!hvpa->window.is_set || hvpa->window.begin_second != hvpa->window.end_second);
}

static void run_object(struct td_arena *arena, const struct td_json *object)
{
    struct td_hvpa hvpa;
    struct td_hvpa_findings findings;
    struct td_error err = TD_ERROR_INIT;
    if (td_hvpa_decode(arena, object, &hvpa, &findings, &err) < 0) {
        td_assert(err.message[0] != '\0');
        td_assert(findings.errors.count > 0);
        return;
    }
    check_rules(&hvpa);
    struct td_json *spec = hvpa_normal_form(arena, &hvpa);
    struct td_json *again = td_json_copy(arena, object, false);
    td_json_set(arena, again, TD_STR("spec"), spec);
    struct td_hvpa same;
    int code = td_hvpa_decode(arena, again, &same, NULL, NULL);
    td_assert(code == TD_OK);
    td_assert(td_json_equal(spec, hvpa_normal_form(arena, &same)));
}

static void run_status(struct td_arena *arena, const struct td_json *tree)
{
    struct td_hvpa_status status;
    struct td_hvpa_status same;
    if (td_hvpa_status_decode(arena, tree, &status, NULL) < 0) {
        return;
    }
    struct td_json *once = td_hvpa_status_encode(arena, &status);
    int code = td_hvpa_status_decode(arena, once, &same, NULL);
    td_assert(code == TD_OK);
    td_assert(td_json_equal(once, td_hvpa_status_encode(arena, &same)));
}

static struct td_json *object_around(struct td_arena *arena, const char *member,
                                     const struct td_json *value)
{
    struct td_json *object = NULL;
    static const char text[] = "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"targetRef\":{\"kind\":"
                               "\"Deployment\",\"name\":\"w\"},\"hpaSpec\":{\"maxReplicas\":9},"
                               "\"vpaSpec\":{}}}";
    int code = td_json_parse(arena, td_str_from(text), NULL, &object, NULL);
    td_assert(code == TD_OK);
    td_json_set(arena, td_json_get(object, TD_STR("spec")), td_str_from(member),
                td_json_copy(arena, value, false));
    return object;
}

static void run_files(struct td_arena *arena, td_str text)
{
    struct td_manifest manifest = {.count = 0};
    if (td_manifest_read(arena, TD_STR("a.json"), text, &manifest, NULL) < 0) {
        return;
    }
    struct td_migrations migrations;
    td_migrate_all(arena, &manifest, &migrations);
    struct td_problems *problems = td_arena_array(arena, struct td_problems, manifest.count);
    for (size_t i = 0; i < manifest.count; i++) {
        problems[i].arena = arena;
    }
    td_manifests_check_all(&manifest, problems);
    for (size_t i = 0; i < migrations.count; i++) {
        struct td_hvpa hvpa;
        td_assert(migrations.items[i].object || migrations.items[i].note_count > 0);
        int code = migrations.items[i].object
                       ? td_hvpa_decode(arena, migrations.items[i].object, &hvpa, NULL, NULL)
                       : TD_OK;
        td_assert(code == TD_OK);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const members[] = {"hpaSpec", "vpaSpec", "vertical", "mixed", "mode"};
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    td_str text = {.ptr = (const char *)data, .len = size};
    struct td_json *tree = NULL;
    if (td_json_parse(&arena, text, NULL, &tree, NULL) < 0) {
        return 0;
    }
    run_object(&arena, tree);
    run_status(&arena, tree);
    run_files(&arena, text);
    struct td_migration migration = {.object = NULL};
    td_migrate_gardener(&arena, tree, &migration);
    struct td_json *around = td_json_new_object(&arena);
    td_json_set(&arena, around, TD_STR("spec"), td_json_copy(&arena, tree, false));
    run_object(&arena, around);
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        run_object(&arena, object_around(&arena, members[i], tree));
    }
    return 0;
}
