/* Objects are compared by group, kind and name of their target; then the eldest Hvpa is found, and
 * whether another autoscaler is on its target. */
#include "decide/tandem/ownership.h"

#include <stdlib.h>

#include "api/hvpa/hvpa.h"
#include "kube/meta.h"

/* --- reading --- */

static const struct td_json *owner_member(const struct td_json *object, td_str key)
{
    const struct td_json *member = td_json_get(object, key);
    return td_json_is(member, TD_JSON_TYPE_OBJECT) ? member : NULL;
}

struct owner_kind {
    td_str group;
    td_str kind;
    enum td_ownership_kind which;
};

static const struct owner_kind owner_kinds[] = {
    {TD_STR_INIT("autoscaling.k8s.io"), TD_STR_INIT("Hvpa"), TD_OWNERSHIP_HVPA},
    {TD_STR_INIT("autoscaling"), TD_STR_INIT("HorizontalPodAutoscaler"), TD_OWNERSHIP_HPA},
    {TD_STR_INIT("autoscaling.tandem.dev"), TD_STR_INIT("HorizontalPodAutoscaler"),
     TD_OWNERSHIP_HPA},
    {TD_STR_INIT("keda.sh"), TD_STR_INIT("ScaledObject"), TD_OWNERSHIP_SCALED_OBJECT},
    {TD_STR_INIT("autoscaling.k8s.io"), TD_STR_INIT("VerticalPodAutoscaler"), TD_OWNERSHIP_VPA},
};

static const struct owner_kind *owner_kind_find(const struct td_json *object)
{
    td_str version = td_json_text(object, "apiVersion");
    td_str kind = td_json_text(object, "kind");
    td_str group = td_group_version_parse(version).group;
    for (size_t i = 0; i < TD_COUNT(owner_kinds); i++) {
        if (td_str_equal(owner_kinds[i].group, group) && td_str_equal(owner_kinds[i].kind, kind)) {
            return &owner_kinds[i];
        }
    }
    return NULL;
}

static const struct td_json *owner_reference(const struct td_json *object,
                                             enum td_ownership_kind kind, td_str *ret_field)
{
    if (kind == TD_OWNERSHIP_HVPA) {
        return td_hvpa_target(object, ret_field);
    }
    td_str key = kind == TD_OWNERSHIP_VPA ? TD_STR("targetRef") : TD_STR("scaleTargetRef");
    *ret_field =
        kind == TD_OWNERSHIP_VPA ? TD_STR("spec.targetRef") : TD_STR("spec.scaleTargetRef");
    return owner_member(owner_member(object, TD_STR("spec")), key);
}

bool td_ownership_read(const struct td_json *object, struct td_ownership_object *ret)
{
    const struct owner_kind *kind = owner_kind_find(object);
    const struct td_json *spec = owner_member(object, TD_STR("spec"));
    const struct td_json *metadata = owner_member(object, TD_STR("metadata"));
    td_str field = TD_STR_EMPTY;
    const struct td_json *target = kind ? owner_reference(object, kind->which, &field) : NULL;
    if (!target) {
        return false;
    }
    bool is_scaled = kind->which == TD_OWNERSHIP_SCALED_OBJECT; /* its target has defaults */
    td_str mode = td_json_text(owner_member(spec, TD_STR("updatePolicy")), "updateMode");
    struct td_ownership_object made = {
        .kind = kind->which,
        .name = td_json_text(metadata, "name"),
        .created = TD_INSTANT_ZERO,
        .target = {.namespace = td_json_text(metadata, "namespace"),
                   .api_version = td_json_get_str(target, TD_STR("apiVersion"),
                                                  is_scaled ? TD_STR("apps/v1") : TD_STR_EMPTY),
                   .kind = td_json_get_str(target, TD_STR("kind"),
                                           is_scaled ? TD_STR("Deployment") : TD_STR_EMPTY),
                   .name = td_json_text(target, "name")},
        .target_field = field,
        .is_off = kind->which == TD_OWNERSHIP_VPA && td_str_equal(mode, TD_STR("Off")),
    };
    if (made.target.kind.len == 0 || made.target.name.len == 0) {
        return false;
    }
    td_str created = td_json_text(metadata, "creationTimestamp");
    if (created.len > 0) {
        (void)td_time_parse(created, &made.created, NULL); /* a malformed one counts as oldest */
    }
    *ret = made;
    return true;
}

/* --- judging --- */

bool td_ownership_is_same_target(const struct td_ownership_target *a,
                                 const struct td_ownership_target *b)
{
    bool is_known = a->api_version.len > 0 && b->api_version.len > 0;
    return td_str_equal(a->namespace, b->namespace) && td_str_equal(a->kind, b->kind) &&
           td_str_equal(a->name, b->name) &&
           (!is_known || td_str_equal(td_group_version_parse(a->api_version).group,
                                      td_group_version_parse(b->api_version).group));
}

static int owner_compare_age(const struct td_ownership_object *a,
                             const struct td_ownership_object *b)
{
    if (a->created.unix_seconds != b->created.unix_seconds) {
        return a->created.unix_seconds < b->created.unix_seconds ? -1 : 1;
    }
    if (a->created.nanos != b->created.nanos) {
        return a->created.nanos < b->created.nanos ? -1 : 1;
    }
    return td_str_compare(a->name, b->name);
}

/* One Hvpa that refuses; sorted by name, then by place. */
struct owner_loser {
    td_str name;
    size_t index;
};

static int owner_compare_losers(const void *a, const void *b)
{
    const struct owner_loser *first = a;
    const struct owner_loser *second = b;
    int order = td_str_compare(first->name, second->name);
    return order != 0 ? order : (first->index > second->index) - (first->index < second->index);
}

static const size_t *owner_sort(struct td_arena *arena, struct owner_loser *losers, size_t count)
{
    size_t *made = td_arena_array(arena, size_t, count);
    qsort(losers, count, sizeof(losers[0]), owner_compare_losers);
    for (size_t i = 0; i < count; i++) {
        made[i] = losers[i].index;
    }
    return made;
}

void td_ownership_judge(struct td_arena *arena, const struct td_ownership_target *target,
                        const struct td_ownership_object *objects, size_t count,
                        struct td_ownership *ret)
{
    struct td_ownership made = {.acting = TD_OWNERSHIP_NONE, .foreign = TD_OWNERSHIP_NONE};
    for (size_t i = 0; i < count; i++) {
        if (!td_ownership_is_same_target(&objects[i].target, target)) {
            continue;
        }
        if (objects[i].kind != TD_OWNERSHIP_HVPA) {
            bool is_first = made.foreign == TD_OWNERSHIP_NONE && !objects[i].is_off;
            made.foreign = is_first ? i : made.foreign;
        } else if (made.acting == TD_OWNERSHIP_NONE ||
                   owner_compare_age(&objects[i], &objects[made.acting]) < 0) {
            made.acting = i;
        }
    }
    if (made.foreign != TD_OWNERSHIP_NONE) {
        made.acting = TD_OWNERSHIP_NONE;
    }
    struct owner_loser *losers = td_arena_array(arena, struct owner_loser, count);
    for (size_t i = 0; i < count; i++) {
        if (objects[i].kind == TD_OWNERSHIP_HVPA && i != made.acting &&
            td_ownership_is_same_target(&objects[i].target, target)) {
            losers[made.conflict_count++] =
                (struct owner_loser){.name = objects[i].name, .index = i};
        }
    }
    made.conflicts = owner_sort(arena, losers, made.conflict_count);
    *ret = made;
}
