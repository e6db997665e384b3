/* What both sources of a migration share (notes, annotations, copies of members), and the migration
 * of an HPA and a VPA on one workload. */
#include "decide/tandem/migrate/migrate.h"

#include "api/hvpa/hvpa.h"
#include "base/error.h"
#include "decide/manifests.h"
#include "decide/tandem/migrate/migrate_private.h"
#include "kube/apply/last_applied.h"

/* --- small things --- */

void td_migration_note(struct td_arena *arena, struct td_migration *migration, td_str note)
{
    migration->notes = td_arena_grow(arena, migration->notes, migration->note_count,
                                     &migration->note_cap, sizeof(*migration->notes));
    migration->notes[migration->note_count++] = note;
}

void td_migrate_copy(struct td_arena *arena, struct td_json *to, td_str to_key,
                     const struct td_json *from, td_str from_key)
{
    const struct td_json *value = td_migrate_member(from, from_key);
    if (value) {
        td_json_set(arena, to, to_key, td_json_copy(arena, value, false));
    }
}

struct td_json *td_migrate_new(struct td_arena *arena, const struct td_json *object,
                               struct td_json **ret_spec)
{
    const struct td_json *given = td_migrate_member(object, TD_STR("metadata"));
    struct td_json *made = td_json_new_object(arena);
    struct td_json *metadata = td_json_new_object(arena);
    struct td_json *spec = td_json_new_object(arena);
    td_migrate_copy(arena, metadata, TD_STR("name"), given, TD_STR("name"));
    td_migrate_copy(arena, metadata, TD_STR("namespace"), given, TD_STR("namespace"));
    td_migrate_copy(arena, metadata, TD_STR("labels"), given, TD_STR("labels"));
    td_json_set_str(arena, made, TD_STR("apiVersion"), TD_STR(TD_HVPA_API_VERSION));
    td_json_set_str(arena, made, TD_STR("kind"), TD_STR("Hvpa"));
    td_json_set(arena, made, TD_STR("metadata"), metadata);
    td_json_set(arena, made, TD_STR("spec"), spec);
    *ret_spec = spec;
    return made;
}

void td_migrate_annotate(struct td_arena *arena, struct td_migration *migration,
                         const struct td_json *object)
{
    struct td_json *metadata = td_json_get(migration->object, TD_STR("metadata"));
    const struct td_json *given =
        td_migrate_member(td_migrate_member(object, TD_STR("metadata")), TD_STR("annotations"));
    for (const struct td_json *item = td_json_first_member(given); item; item = item->next) {
        /* It holds the object that was applied, which is not this one. */
        if (td_str_equal(item->key, TD_STR(TD_LAST_APPLIED_ANNOTATION))) {
            continue;
        }
        struct td_json *made = td_json_ensure_object(arena, metadata, TD_STR("annotations"));
        const struct td_json *other = td_json_get(made, item->key);
        if (!other) {
            td_json_set(arena, made, td_arena_copy_str(arena, item->key),
                        td_json_copy(arena, item, false));
        } else if (!td_json_equal(other, item)) {
            td_migration_note(arena, migration,
                              td_arena_format(arena,
                                              "Annotation %.*s has several values: the first is "
                                              "kept.",
                                              TD_STR_ARG(item->key)));
        }
    }
}

void td_migrate_switch_off(struct td_arena *arena, struct td_json *spec, td_str axis)
{
    static const td_str directions[] = {TD_STR_INIT("scaleUp"), TD_STR_INIT("scaleDown")};
    struct td_json *policies = td_json_ensure_object(arena, spec, axis);
    for (size_t i = 0; i < 2; i++) {
        struct td_json *policy = td_json_ensure_object(arena, policies, directions[i]);
        struct td_json *update = td_json_ensure_object(arena, policy, TD_STR("updatePolicy"));
        td_json_set_str(arena, update, TD_STR("updateMode"), TD_STR("Off"));
    }
}

void td_migrate_verify(struct td_arena *arena, struct td_migration *migration)
{
    struct td_hvpa hvpa;
    struct td_error err = TD_ERROR_INIT;
    if (td_hvpa_decode(arena, migration->object, &hvpa, NULL, &err) < 0) {
        td_migration_note(arena, migration,
                          td_arena_format(arena, "The Hvpa would be refused: %s.", err.message));
        migration->object = NULL;
    }
}

/* --- a pair --- */

struct migrate_pair {
    struct td_arena *arena;
    const struct td_json *hpa;
    const struct td_json *vpa;
    struct td_json *spec; /* of the Hvpa */
    struct td_migration *migration;
};

static void pair_note(const struct migrate_pair *pair, td_str note)
{
    td_migration_note(pair->arena, pair->migration, note);
}

/* A v1 object may keep metrics and behavior in annotations: only its v2 form shows them. */
static const struct td_json *pair_hpa_v2(struct td_arena *arena, const struct td_json *hpa)
{
    struct td_json *converted = NULL;
    td_str version = td_json_text(hpa, "apiVersion");
    if (td_str_equal(version, TD_STR("autoscaling/v1")) &&
        td_hpa_convert(arena, hpa, TD_STR("autoscaling/v2"), &converted, NULL) == TD_OK) {
        return converted;
    }
    return hpa;
}

static void pair_add_hpa(const struct migrate_pair *pair)
{
    const struct td_json *hpa = pair_hpa_v2(pair->arena, pair->hpa);
    const struct td_json *given = td_migrate_member(hpa, TD_STR("spec"));
    struct td_json *spec = td_json_copy(pair->arena, given, false);
    td_migrate_annotate(pair->arena, pair->migration, hpa);
    (void)td_json_remove(spec, TD_STR("scaleTargetRef")); /* it stands in targetRef */
    td_json_set(pair->arena, pair->spec, TD_STR("hpaSpec"), spec);
}

static void pair_add_vpa(const struct migrate_pair *pair, const struct td_vpa *vpa)
{
    struct td_arena *arena = pair->arena;
    const struct td_json *given = td_migrate_member(pair->vpa, TD_STR("spec"));
    struct td_json *spec = td_json_copy(arena, given, false);
    struct td_json *policy = td_json_get(spec, TD_STR("updatePolicy"));
    td_migrate_annotate(arena, pair->migration, pair->vpa);
    (void)td_json_remove(spec, TD_STR("targetRef")); /* it stands in targetRef */
    if (td_json_is(policy, TD_JSON_TYPE_OBJECT)) {
        (void)td_json_remove(policy, TD_STR("updateMode")); /* only the Hvpa acts */
        if (policy->count == 0) {
            (void)td_json_remove(spec, TD_STR("updatePolicy")); /* nothing else was in it */
        }
    }
    td_json_set(arena, pair->spec, TD_STR("vpaSpec"), spec);
    if (vpa->mode == TD_VPA_OFF) {
        td_migrate_switch_off(arena, pair->spec, TD_STR("vertical"));
        pair_note(pair, TD_STR("The VPA was Off, so vertical scaling is Off; remove "
                               "spec.vertical to let the Hvpa resize pods."));
    } else if (vpa->mode == TD_VPA_INITIAL) {
        pair_note(pair, TD_STR("The VPA sized new pods only (Initial); an Hvpa also resizes "
                               "running ones."));
    }
    if (vpa->recommender.len > 0) {
        pair_note(pair,
                  td_arena_format(
                      arena,
                      "Recommender %.*s is not used: an Hvpa computes its own recommendation.",
                      TD_STR_ARG(vpa->recommender)));
    }
}

/* Where both act on one resource a ratio says who does how much. Otherwise both go on as they did,
 * one step at a time. */
static void pair_choose_mode(const struct migrate_pair *pair, const struct td_hpa *hpa,
                             const struct td_vpa *vpa)
{
    struct td_shared_metric shared;
    bool is_shared = td_manifests_shares(hpa, vpa, TD_STR("cpu"), &shared) ||
                     td_manifests_shares(hpa, vpa, TD_STR("memory"), &shared);
    bool is_ratio = is_shared && !vpa->has_selector;
    td_json_set_str(pair->arena, pair->spec, TD_STR("mode"),
                    is_ratio ? TD_STR("RatioBased") : TD_STR("HPABiased"));
    if (is_ratio) {
        struct td_json *ratio =
            td_json_ensure_object(pair->arena, pair->spec, TD_STR("ratioBasedScalingSpec"));
        td_json_set_int64(pair->arena, ratio, TD_STR("vToHScalingRatio"), 1);
        pair_note(pair, TD_STR("Both act on one resource: a ratio of 1 shares growth equally; "
                               "HPAPreferred would resize pods only at the ends of the replica "
                               "range."));
    } else if (is_shared) {
        pair_note(pair, TD_STR("The VPA has a selector, so its pods have several sizes and "
                               "RatioBased is not possible."));
    }
}

static void migrate_pair(struct td_arena *arena, const struct td_manifest_object *hpa_item,
                         const struct td_manifest_object *vpa_item, struct td_migration *migration)
{
    struct td_hpa hpa;
    struct td_vpa vpa;
    struct td_error err = TD_ERROR_INIT;
    migration->title = td_arena_format(
        arena, "HorizontalPodAutoscaler %.*s (%.*s:%u) and VerticalPodAutoscaler %.*s (%.*s:%u)",
        TD_STR_ARG(hpa_item->name), TD_STR_ARG(hpa_item->file), hpa_item->line,
        TD_STR_ARG(vpa_item->name), TD_STR_ARG(vpa_item->file), vpa_item->line);
    if (td_manifests_hpa(arena, hpa_item->tree, &hpa, &err) < 0 ||
        td_vpa_decode(arena, vpa_item->tree, &vpa, &err) < 0) {
        td_migration_note(arena, migration,
                          td_arena_format(arena, "Not migrated: %s.", err.message));
        return;
    }
    struct migrate_pair pair = {
        .arena = arena, .hpa = hpa_item->tree, .vpa = vpa_item->tree, .migration = migration};
    migration->object = td_migrate_new(arena, hpa_item->tree, &pair.spec);
    pair_choose_mode(&pair, &hpa, &vpa);
    td_migrate_copy(arena, pair.spec, TD_STR("targetRef"),
                    td_migrate_member(pair.hpa, TD_STR("spec")), TD_STR("scaleTargetRef"));
    pair_add_hpa(&pair);
    pair_add_vpa(&pair, &vpa);
    pair_note(&pair, TD_STR("Delete the HPA and the VPA when you apply it: an Hvpa does not scale "
                            "a target that they scale too."));
    td_migrate_verify(arena, migration);
}

/* --- all files --- */

static bool migrate_is_gardener(const struct td_json *object)
{
    const struct td_json *spec = td_migrate_member(object, TD_STR("spec"));
    return td_migrate_member(spec, TD_STR("hpa")) || td_migrate_member(spec, TD_STR("vpa")) ||
           td_migrate_member(spec, TD_STR("weightBasedScalingIntervals"));
}

/* The HPA and the VPA of a group, when it has one of each and no Hvpa; a group of several is
 * left out: no rule says which of them counts. */
static bool migrate_find_pair(const struct td_autoscaled_list *list,
                              const struct td_autoscaled *group, size_t *ret_hpa, size_t *ret_vpa)
{
    size_t hpas = 0;
    size_t vpas = 0;
    size_t others = 0;
    for (size_t i = 0; i < group->count; i++) {
        size_t item = group->items[i];
        if (list->objects[item].kind == TD_OWNERSHIP_HPA) {
            *ret_hpa = item;
            hpas++;
        } else if (list->objects[item].kind == TD_OWNERSHIP_VPA) {
            *ret_vpa = item;
            vpas++;
        } else {
            others++;
        }
    }
    return hpas == 1 && vpas == 1 && others == 0;
}

static void migrate_group(struct td_arena *arena, const struct td_manifest *manifest,
                          const struct td_autoscaled_list *list, const struct td_autoscaled *group,
                          struct td_migrations *ret)
{
    size_t hpa = 0;
    size_t vpa = 0;
    if (migrate_find_pair(list, group, &hpa, &vpa)) {
        migrate_pair(arena, &manifest->items[hpa], &manifest->items[vpa],
                     &ret->items[ret->count++]);
    }
    for (size_t i = 0; i < group->count; i++) {
        const struct td_manifest_object *item = &manifest->items[group->items[i]];
        bool is_hvpa = list->objects[group->items[i]].kind == TD_OWNERSHIP_HVPA;
        if (is_hvpa && migrate_is_gardener(item->tree)) {
            struct td_migration *migration = &ret->items[ret->count++];
            migration->title =
                td_arena_format(arena, "gardener's Hvpa %.*s (%.*s:%u)", TD_STR_ARG(item->name),
                                TD_STR_ARG(item->file), item->line);
            td_migrate_gardener(arena, item->tree, migration);
        }
    }
}

void td_migrate_all(struct td_arena *arena, const struct td_manifest *manifest,
                    struct td_migrations *ret)
{
    struct td_autoscaled_list list;
    struct td_migrations made = {.items =
                                     td_arena_array(arena, struct td_migration, manifest->count)};
    td_manifests_group(arena, manifest, &list);
    for (size_t i = 0; i < list.count; i++) {
        migrate_group(arena, manifest, &list, &list.items[i], &made);
    }
    *ret = made;
}
