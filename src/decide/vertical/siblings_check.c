/*
 * Runs the rules of siblings.h over the VPAs of one namespace and target, and names file and
 * object in each finding.
 */
#include "decide/vertical/siblings_check.h"

#include "api/objects.h"
#include "base/error.h"
#include "base/limits.h"
#include "decide/vertical/siblings.h"
#include "kube/meta.h"

/* VPAs of one target, in the order of files. */
struct sibling_group {
    size_t *items; /* indices into the manifest */
    size_t count;
    size_t cap;
};

struct sibling_files {
    struct td_arena *arena; /* scratch */
    const struct td_manifest *manifest;
    struct td_problems *problems;
    struct td_vpa *vpas;          /* one for each item of the manifest */
    struct sibling_group *groups; /* at most one for each item */
    size_t group_count;
    struct td_json *index; /* target to number of its group */
};

/* Parts joined so that no two targets share a key: NUL is in no name. */
static td_str files_target(const struct sibling_files *files, const struct td_vpa *vpa)
{
    td_str namespace = vpa->meta.namespace;
    td_str group = td_group_version_parse(vpa->target_api_version).group;
    return td_arena_format(files->arena, "%.*s%c%.*s%c%.*s%c%.*s", TD_STR_ARG(namespace), 0,
                           TD_STR_ARG(group), 0, TD_STR_ARG(vpa->target_kind), 0,
                           TD_STR_ARG(vpa->target_name));
}

static struct sibling_group *files_group(struct sibling_files *files, const struct td_vpa *vpa)
{
    td_str key = files_target(files, vpa);
    int64_t number = td_json_get_int64(files->index, key, -1);
    if (number < 0) {
        number = (int64_t)files->group_count++;
        td_json_set_int64(files->arena, files->index, key, number);
    }
    return &files->groups[number];
}

static void group_add(struct td_arena *arena, struct sibling_group *group, size_t item)
{
    group->items =
        td_arena_grow(arena, group->items, group->count, &group->cap, sizeof(*group->items));
    group->items[group->count++] = item;
}

static void files_blame(struct sibling_files *files, size_t item, td_str message)
{
    td_str field = TD_STR("spec.selector");
    struct td_problems *problems = &files->problems[item];
    td_problems_add(problems, &(struct td_problem){
                                  .line = td_objects_line(files->manifest->items[item].tree, field),
                                  .field = field,
                                  .message = td_arena_copy_str(problems->arena, message),
                                  .rule = "vpa-overlap",
                              });
}

/* Compare one VPA with the earlier ones of its target; the first conflict is named. */
static void files_compare(struct sibling_files *files, const struct sibling_group *group,
                          size_t item)
{
    const struct td_vpa *vpa = &files->vpas[item];
    for (size_t i = 0; i < group->count; i++) {
        const struct td_manifest_object *other = &files->manifest->items[group->items[i]];
        const struct td_vpa *sibling = &files->vpas[group->items[i]];
        struct td_sibling_conflict conflict;
        if (td_str_equal(sibling->meta.name, vpa->meta.name)) {
            continue; /* the same object in two files */
        }
        if (td_vpa_find_conflict(files->arena, vpa, sibling, &conflict)) {
            files_blame(
                files, item,
                td_arena_format(files->arena, "selector overlaps with %.*s/%.*s (%.*s:%u)\n%.*s",
                                TD_STR_ARG(sibling->meta.namespace), TD_STR_ARG(sibling->meta.name),
                                TD_STR_ARG(other->file), other->line, TD_STR_ARG(conflict.reason)));
            return;
        }
    }
}

static void files_judge(struct sibling_files *files, size_t item)
{
    struct td_vpa *vpa = &files->vpas[item];
    const struct td_selector *selector = vpa->has_selector ? &vpa->pod_selector : NULL;
    struct td_selector_relation alone = td_selector_disjoint(files->arena, selector, NULL);
    if (alone.is_contradictory) {
        files_blame(files, item, td_selector_contradiction_text(files->arena, alone.keys.items[0]));
        return;
    }
    if (!vpa->has_target) {
        return; /* reported as missing already */
    }
    if (vpa->meta.namespace.len == 0) {
        vpa->meta.namespace = TD_STR("default");
    }
    struct sibling_group *group = files_group(files, vpa);
    if (group->count < TD_SIBLINGS_MAX) {
        files_compare(files, group, item);
        group_add(files->arena, group, item);
    } else {
        files_blame(files, item,
                    td_arena_format(files->arena,
                                    "selector is not compared: more than %zu VPAs share its target",
                                    TD_SIBLINGS_MAX));
    }
}

static bool files_is_vpa(const struct td_manifest_object *item)
{
    return td_str_equal(item->api_version, TD_STR("autoscaling.k8s.io/v1")) &&
           td_str_equal(item->kind, TD_STR("VerticalPodAutoscaler"));
}

void td_siblings_check_all(const struct td_manifest *manifest, struct td_problems *problems)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct sibling_files files = {
        .arena = &arena,
        .manifest = manifest,
        .problems = problems,
        .vpas = td_arena_array(&arena, struct td_vpa, manifest->count),
        .groups = td_arena_array(&arena, struct sibling_group, manifest->count),
        .index = td_json_new_object(&arena),
    };
    for (size_t i = 0; i < manifest->count; i++) {
        if (files_is_vpa(&manifest->items[i]) &&
            td_vpa_decode(&arena, manifest->items[i].tree, &files.vpas[i], NULL) == TD_OK) {
            files_judge(&files, i);
        }
    }
}
