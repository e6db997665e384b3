/*
 * What may change in a pod that exists. An ordinary update may touch images, the deadline,
 * tolerations (more of them) and scheduling gates (fewer); the resize subresource cpu and memory of
 * containers and of the pod. To find any other difference, the allowed members of a copy are set
 * back to their old values, and what is left must be equal.
 */
#include "local/kinds/kinds_pod.h"

static const td_str update_lists[] = {TD_STR_INIT("containers"), TD_STR_INIT("initContainers")};
#define UPDATE_LIST_COUNT (TD_COUNT(update_lists))

static size_t update_count(const struct td_json *spec, td_str list)
{
    return td_json_item_count(td_kind_member(spec, list));
}

/* Do both have the same number of containers? Images are looked at on the way. */
static bool check_containers(struct td_field_errors *errors, const struct td_field_path *spec_path,
                             const struct td_json *now, const struct td_json *before, td_str list)
{
    struct td_field_path path = td_field_child(spec_path, list);
    if (update_count(now, list) != update_count(before, list)) {
        td_field_forbidden(errors, &path, "pod updates may not add or remove containers");
        return false;
    }
    size_t index = 0;
    const struct td_json *item = td_json_first_item(td_kind_member(now, list));
    for (; item; item = item->next, index++) {
        struct td_field_path image_path =
            td_field_child(TD_FIELD_ITEM(&path, index), TD_STR("image"));
        td_str image = td_json_text(item, "image");
        if (image.len == 0) {
            td_field_required(errors, &image_path, "");
        } else if (td_str_trim(image).len != image.len) {
            td_field_invalid_str(errors, &image_path, image,
                                 "must not have leading or trailing whitespace");
        }
    }
    return true;
}

static bool check_deadline(struct td_field_errors *errors, const struct td_field_path *spec_path,
                           const struct td_json *now, const struct td_json *before)
{
    static const td_str key = TD_STR_INIT("activeDeadlineSeconds");
    struct td_field_path path = td_field_child(spec_path, key);
    const struct td_json *old = td_kind_member(before, key);
    int64_t value = td_json_get_int64(now, key, 0);
    if (!td_kind_member(now, key)) {
        if (old) {
            td_field_error_add(errors, &path, TD_FIELD_INVALID, TD_STR("null"),
                               TD_STR("must not update from a positive integer to nil value"));
        }
        return true;
    }
    if (value < 0 || value > INT32_MAX) {
        td_field_invalid_int(errors, &path, value, "must be between 0 and 2147483647, inclusive");
        return false;
    }
    if (old && td_json_get_int64(before, key, 0) < value) {
        td_field_invalid_int(errors, &path, value, "must be less than or equal to previous value");
        return false;
    }
    return true;
}

/* The text of a toleration as a key, so that many are compared in one pass. */
static td_str toleration_key(struct td_arena *arena, const struct td_json *toleration)
{
    return td_arena_format(arena, "%.*s\n%.*s\n%.*s\n%.*s",
                           TD_STR_ARG(td_json_text(toleration, "key")),
                           TD_STR_ARG(td_json_text(toleration, "operator")),
                           TD_STR_ARG(td_json_text(toleration, "value")),
                           TD_STR_ARG(td_json_text(toleration, "effect")));
}

static void check_tolerations(struct td_field_errors *errors, const struct td_field_path *spec_path,
                              const struct td_json *now, const struct td_json *before)
{
    struct td_json *known = td_json_new_object(errors->arena);
    const struct td_json *item = td_json_first_item(td_kind_member(now, TD_STR("tolerations")));
    for (; item; item = item->next) {
        td_json_set(errors->arena, known, toleration_key(errors->arena, item),
                    td_json_new_null(errors->arena));
    }
    item = td_json_first_item(td_kind_member(before, TD_STR("tolerations")));
    for (; item; item = item->next) {
        if (!td_json_get(known, toleration_key(errors->arena, item))) {
            td_field_forbidden(errors, TD_FIELD(spec_path, "tolerations"),
                               "existing toleration can not be modified except its "
                               "tolerationSeconds");
            return;
        }
    }
}

static void check_gates(struct td_field_errors *errors, const struct td_field_path *spec_path,
                        const struct td_json *now, const struct td_json *before)
{
    struct td_json *known = td_json_new_object(errors->arena);
    const struct td_json *item =
        td_json_first_item(td_kind_member(before, TD_STR("schedulingGates")));
    for (; item; item = item->next) {
        td_json_set(errors->arena, known, td_json_text(item, "name"),
                    td_json_new_null(errors->arena));
    }
    size_t index = 0;
    item = td_json_first_item(td_kind_member(now, TD_STR("schedulingGates")));
    for (; item; item = item->next, index++) {
        td_str name = td_json_text(item, "name");
        if (!td_json_get(known, name)) {
            td_str detail = td_arena_format(
                errors->arena, "only deletion is allowed, but found new scheduling gate '%.*s'",
                TD_STR_ARG(name));
            td_field_error_add(
                errors,
                TD_FIELD(TD_FIELD_ITEM(TD_FIELD(spec_path, "schedulingGates"), index), "name"),
                TD_FIELD_FORBIDDEN, TD_STR_EMPTY, detail);
        }
    }
}

static void restore_images(struct td_arena *arena, struct td_json *spec,
                           const struct td_json *before, td_str list)
{
    const struct td_json *old = td_json_first_item(td_kind_member(before, list));
    struct td_json *item = td_json_first_item(td_kind_member(spec, list));
    for (; item && old; item = item->next, old = old->next) {
        td_kind_take(arena, item, old, TD_STR("image"));
    }
}

/* A pod that still waits behind gates may be pinned down further: checked by those who add gates;
 * here any node selector or node affinity is taken. */
static void restore_gated(struct td_arena *arena, struct td_json *spec,
                          const struct td_json *before)
{
    const struct td_json *gates = td_kind_member(before, TD_STR("schedulingGates"));
    if (gates && gates->count > 0) {
        td_kind_take(arena, spec, before, TD_STR("nodeSelector"));
        struct td_json *affinity = td_kind_member(spec, TD_STR("affinity"));
        const struct td_json *old = td_kind_member(before, TD_STR("affinity"));
        if (affinity && old) {
            td_kind_take(arena, affinity, old, TD_STR("nodeAffinity"));
        } else {
            td_kind_take(arena, spec, before, TD_STR("affinity"));
        }
    }
}

void td_pod_check_update(const struct td_kind_write *write, struct td_field_errors *errors)
{
    static const td_str free_members[] = {TD_STR_INIT("activeDeadlineSeconds"),
                                          TD_STR_INIT("schedulingGates"),
                                          TD_STR_INIT("tolerations")};
    const struct td_json *now = td_kind_spec(write->object);
    const struct td_json *before = td_kind_spec(write->old);
    struct td_field_path path = td_field_child(NULL, TD_STR("spec"));
    for (size_t i = 0; i < UPDATE_LIST_COUNT; i++) {
        if (!check_containers(errors, &path, now, before, update_lists[i])) {
            return;
        }
    }
    if (!check_deadline(errors, &path, now, before)) {
        return;
    }
    check_tolerations(errors, &path, now, before);
    check_gates(errors, &path, now, before);
    struct td_json *rest = td_json_copy(write->arena, now, false);
    for (size_t i = 0; i < UPDATE_LIST_COUNT; i++) {
        restore_images(write->arena, rest, before, update_lists[i]);
    }
    for (size_t i = 0; i < TD_COUNT(free_members); i++) {
        td_kind_take(write->arena, rest, before, free_members[i]);
    }
    restore_gated(write->arena, rest, before);
    if (!td_json_equal(rest, before)) {
        td_field_forbidden(
            errors, &path,
            "pod updates may not change fields other than `spec.containers[*].image`,"
            "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
            "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to "
            "be set to 1 if it was previously negative)");
    }
}

/* Resize. */

static bool check_same_containers(struct td_field_errors *errors,
                                  const struct td_field_path *spec_path, const struct td_json *now,
                                  const struct td_json *before, td_str list)
{
    struct td_field_path path = td_field_child(spec_path, list);
    if (update_count(now, list) != update_count(before, list)) {
        td_str detail = td_arena_format(errors->arena, "%.*s may not be added or removed on resize",
                                        TD_STR_ARG(list));
        td_field_error_add(errors, &path, TD_FIELD_FORBIDDEN, TD_STR_EMPTY, detail);
        return false;
    }
    bool is_same = true;
    size_t index = 0;
    const struct td_json *old = td_json_first_item(td_kind_member(before, list));
    const struct td_json *item = td_json_first_item(td_kind_member(now, list));
    for (; item && old; item = item->next, old = old->next, index++) {
        if (td_str_equal(td_json_text(item, "name"), td_json_text(old, "name"))) {
            continue;
        }
        td_str detail = td_arena_format(
            errors->arena, "%.*s may not be renamed or reordered on resize", TD_STR_ARG(list));
        td_field_error_add(errors, TD_FIELD(TD_FIELD_ITEM(&path, index), "name"),
                           TD_FIELD_FORBIDDEN, TD_STR_EMPTY, detail);
        is_same = false;
    }
    return is_same;
}

static bool is_removed(const struct td_json *now, const struct td_json *before)
{
    for (const struct td_json *item = td_json_first_member(before); item; item = item->next) {
        if (!td_json_get(now, item->key)) {
            return true;
        }
    }
    return false;
}

static void check_removed(struct td_field_errors *errors, const struct td_field_path *path,
                          const struct td_json *now, const struct td_json *before)
{
    static const td_str sides[] = {TD_STR_INIT("requests"), TD_STR_INIT("limits")};
    static const char *const details[] = {"resource requests cannot be removed",
                                          "resource limits cannot be removed"};
    for (size_t i = 0; i < 2; i++) {
        if (is_removed(td_kind_member(now, sides[i]), td_kind_member(before, sides[i]))) {
            td_field_forbidden(errors, TD_FIELD_AT(path, sides[i]), details[i]);
        }
    }
}

/* cpu and memory of `resources` become what they are in `before`. */
static void restore_resources(struct td_arena *arena, struct td_json *owner,
                              const struct td_json *before_owner)
{
    static const td_str sides[] = {TD_STR_INIT("requests"), TD_STR_INIT("limits")};
    static const td_str names[] = {TD_STR_INIT("cpu"), TD_STR_INIT("memory")};
    const struct td_json *before = td_kind_member(before_owner, TD_STR("resources"));
    struct td_json *resources = td_json_ensure_object(arena, owner, TD_STR("resources"));
    for (size_t i = 0; i < 4; i++) {
        struct td_json *list = td_json_ensure_object(arena, resources, sides[i / 2]);
        td_kind_take(arena, list, td_kind_member(before, sides[i / 2]), names[i % 2]);
        if (list->count == 0) {
            (void)td_json_remove(resources, sides[i / 2]); /* it was just there */
        }
    }
    if (resources->count == 0 && !before) {
        (void)td_json_remove(owner, TD_STR("resources")); /* as above */
    }
}

/* An init container runs to its end, so it cannot be restarted for a resize. */
static bool must_restart(const struct td_json *container)
{
    if (td_str_equal(td_json_text(container, "restartPolicy"), TD_STR("Always"))) {
        return false;
    }
    const struct td_json *item =
        td_json_first_item(td_kind_member(container, TD_STR("resizePolicy")));
    for (; item; item = item->next) {
        if (td_str_equal(td_json_text(item, "restartPolicy"), TD_STR("RestartContainer"))) {
            return true;
        }
    }
    return false;
}

static void check_resized_list(const struct td_kind_write *write, struct td_field_errors *errors,
                               const struct td_field_path *spec_path, struct td_json *rest,
                               size_t list)
{
    const struct td_json *old =
        td_json_first_item(td_kind_member(td_kind_spec(write->old), update_lists[list]));
    struct td_json *item = td_json_first_item(td_kind_member(rest, update_lists[list]));
    for (size_t index = 0; item && old; item = item->next, old = old->next, index++) {
        struct td_field_path place =
            td_field_item(TD_FIELD_AT(spec_path, update_lists[list]), index);
        if (list == 1 && must_restart(old) && !td_json_equal(item, old)) {
            td_field_forbidden(errors, &place,
                               "non-sidecar init containers with a resize policy of "
                               "RestartContainer cannot be resized");
        }
        struct td_field_path resources = td_field_child(&place, TD_STR("resources"));
        check_removed(errors, &resources, td_kind_member(item, TD_STR("resources")),
                      td_kind_member(old, TD_STR("resources")));
        restore_resources(write->arena, item, old);
        if (!td_json_equal(item, old)) {
            td_field_forbidden(errors, list == 0 ? spec_path : &place,
                               list == 0 ? "only cpu and memory resources are mutable"
                                         : "only cpu and memory resources for init or sidecar "
                                           "containers are mutable");
        }
    }
}

/* A kubelet that can resize says what it gave to a container that runs. */
static bool check_can_resize(const struct td_json *pod)
{
    const struct td_json *status = td_kind_member(pod, TD_STR("status"));
    const struct td_json *c =
        td_json_first_item(td_kind_member(status, TD_STR("containerStatuses")));
    for (; c; c = c->next) {
        if (td_kind_member(td_kind_member(c, TD_STR("state")), TD_STR("running"))) {
            return td_kind_member(c, TD_STR("resources")) != NULL;
        }
    }
    return true;
}

void td_pod_check_resize(const struct td_kind_write *write, struct td_field_errors *errors)
{
    const struct td_json *now = td_kind_spec(write->object);
    const struct td_json *before = td_kind_spec(write->old);
    struct td_field_path path = td_field_child(NULL, TD_STR("spec"));
    td_str stored = td_json_text(td_kind_member(write->old, TD_STR("status")), "qosClass");
    td_str old_class = stored.len > 0 ? stored : td_pod_qos_class(write->arena, write->old);
    if (!td_str_equal(old_class, td_pod_qos_class(write->arena, write->object))) {
        td_field_invalid_str(errors, &path, old_class,
                             "Pod QOS Class may not change as a result of resizing");
    }
    if (!check_can_resize(write->old)) {
        td_field_forbidden(errors, &path, "Pod running on node without support for resize");
    }
    bool is_same = true;
    for (size_t i = 0; i < UPDATE_LIST_COUNT; i++) {
        is_same = check_same_containers(errors, &path, now, before, update_lists[i]) && is_same;
    }
    if (!is_same) {
        return;
    }
    struct td_json *rest = td_json_copy(write->arena, now, false);
    struct td_field_path resources = td_field_child(&path, TD_STR("resources"));
    if (td_kind_member(before, TD_STR("resources")) || td_kind_member(now, TD_STR("resources"))) {
        check_removed(errors, &resources, td_kind_member(now, TD_STR("resources")),
                      td_kind_member(before, TD_STR("resources")));
        restore_resources(write->arena, rest, before);
    }
    check_resized_list(write, errors, &path, rest, 1);
    check_resized_list(write, errors, &path, rest, 0);
    if (errors->count == 0 && !td_json_equal(rest, before)) {
        td_field_forbidden(errors, &path, "only cpu and memory resources are mutable");
    }
}
