#include "decide/vertical/updater/selected.h"

#include "base/buf.h"
#include "base/limits.h"

/* Given by ReplicaSet, StatefulSet, DaemonSet and Job controllers to the pods that they make. */
static const td_str controller_keys[] = {
    TD_STR_INIT("apps.kubernetes.io/pod-index"),
    TD_STR_INIT("batch.kubernetes.io/controller-uid"),
    TD_STR_INIT("batch.kubernetes.io/job-completion-index"),
    TD_STR_INIT("batch.kubernetes.io/job-name"),
    TD_STR_INIT("controller-revision-hash"),
    TD_STR_INIT("controller-uid"),
    TD_STR_INIT("job-name"),
    TD_STR_INIT("pod-template-generation"),
    TD_STR_INIT("pod-template-hash"),
    TD_STR_INIT("statefulset.kubernetes.io/pod-name"),
};
#define CONTROLLER_KEY_COUNT (TD_COUNT(controller_keys))

static bool is_of_controller(td_str key)
{
    for (size_t i = 0; i < CONTROLLER_KEY_COUNT; i++) {
        if (td_str_equal(controller_keys[i], key)) {
            return true;
        }
    }
    return false;
}

/* The labels of a pod made from the template in the place of one that has `pod`. */
static struct td_labels replacement_labels(struct td_arena *arena, const struct td_labels *template,
                                           const struct td_labels *pod)
{
    struct td_label *pairs =
        td_arena_array(arena, struct td_label, template->count + CONTROLLER_KEY_COUNT);
    size_t count = 0;
    for (size_t i = 0; i < template->count; i++) {
        pairs[count++] = template->items[i];
    }
    for (size_t i = 0; i < CONTROLLER_KEY_COUNT; i++) {
        const td_str *value = td_labels_get(pod, controller_keys[i]);
        if (value) {
            pairs[count++] = (struct td_label){.key = controller_keys[i], .value = *value};
        }
    }
    return td_labels_from_pairs(arena, pairs, count);
}

bool td_vpa_selects_replacement(struct td_arena *arena, const struct td_vpa *vpa,
                                bool heterogeneous_workloads, const struct td_labels *template,
                                const struct td_labels *pod)
{
    if (!heterogeneous_workloads || !vpa->has_selector) {
        return true;
    }
    struct td_labels labels = replacement_labels(arena, template, pod);
    return td_selector_matches(&vpa->pod_selector, &labels);
}

/* The requirements that a template without them does not meet; what a controller may add is not
 * known before. */
static struct td_selector unmet(struct td_arena *arena, const struct td_vpa *vpa,
                                const struct td_labels *template)
{
    const struct td_selector *all = &vpa->pod_selector;
    struct td_requirement *kept = td_arena_array(arena, struct td_requirement, all->count);
    struct td_selector made = {.requirements = kept};
    for (size_t i = 0; i < all->count; i++) {
        const struct td_selector one = {.requirements = &all->requirements[i], .count = 1};
        if (!is_of_controller(all->requirements[i].key) && !td_selector_matches(&one, template)) {
            kept[made.count++] = all->requirements[i];
        }
    }
    return made;
}

td_str td_vpa_selector_warning(struct td_arena *arena, const struct td_vpa *vpa,
                               const struct td_labels *template)
{
    bool may_resize = vpa->mode == TD_VPA_IN_PLACE_OR_RECREATE;
    if (!vpa->has_selector || (vpa->mode != TD_VPA_RECREATE && !may_resize)) {
        return TD_STR_EMPTY;
    }
    struct td_selector selector = unmet(arena, vpa, template);
    if (selector.count == 0) {
        return TD_STR_EMPTY;
    }
    td_auto_buf text = td_buf_capped(TD_OBJECT_BYTES_MAX);
    (void)td_buf_append_format(&text, "the pod template of %.*s %.*s does not meet ",
                               TD_STR_ARG(vpa->target_kind), TD_STR_ARG(vpa->target_name));
    td_selector_write(&selector, &text);
    (void)td_buf_append_format(
        &text, ", so this VPA would not manage the replacement of an evicted pod: %s",
        may_resize ? "pods that get the label later are resized in place only"
                   : "pods that get the label later are not updated; updateMode InPlaceOrRecreate "
                     "resizes them in place");
    return td_arena_copy_str(arena, td_buf_str(&text));
}
