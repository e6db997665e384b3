/* Containers of pods in a bed with nodes: their statuses, and the times at which they change. */
#pragma once

#include "support/nodes_bed.h"

/* A member of a container's status, init container or not; "" when there is none. */
static inline const char *kubelet_bed_status(struct nodes_bed *n, const char *pod,
                                             const char *container, const char *path)
{
    static const char *const lists[] = {"status.initContainerStatuses", "status.containerStatuses"};
    const struct td_json *object = nodes_bed_pod(n, pod);
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        const struct td_json *list = td_json_get_path(object, lists[i]);
        for (const struct td_json *s = td_json_first_child(list); s; s = s->next) {
            td_str name = td_json_get_str(s, TD_STR("name"), TD_STR_EMPTY);
            const struct td_json *value = td_json_get_path(s, path);
            if (!td_str_equal(name, td_str_from(container))) {
                continue;
            }
            return td_json_is(value, TD_JSON_TYPE_BOOL) ? (value->boolean ? "true" : "false")
                                                        : edit_bed_text(&n->bed, s, path);
        }
    }
    return "";
}

static inline void kubelet_bed_check(struct nodes_bed *n, const char *pod, const char *container,
                                     const char *path, const char *text)
{
    const char *found = kubelet_bed_status(n, pod, container, path);
    if (strcmp(found, text) != 0) {
        fail_msg("%s of container %s of pod %s: \"%s\", not \"%s\"", path, container, pod, found,
                 text);
    }
}

static inline void kubelet_bed_condition(struct nodes_bed *n, const char *pod, const char *type,
                                         const char *status, const char *reason)
{
    const struct td_json *object = nodes_bed_pod(n, pod);
    assert_string_equal(edit_bed_condition(&n->bed, object, type, "status"), status);
    assert_string_equal(edit_bed_condition(&n->bed, object, type, "reason"), reason);
}

/* A pod "p" with these annotations and this spec. */
static inline void kubelet_bed_post(struct nodes_bed *n, const char *name, const char *annotations,
                                    const char *spec)
{
    char text[4096];
    (void)snprintf(text, sizeof(text),
                   "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'%s','annotations':{%s}},"
                   "'spec':{%s}}",
                   name, annotations, spec);
    nodes_bed_post(n, text);
}

static inline void kubelet_bed_annotate(struct nodes_bed *n, const char *pod,
                                        const char *annotations)
{
    char target[128];
    char patch[512];
    (void)snprintf(target, sizeof(target), "/api/v1/namespaces/n/pods/%s", pod);
    (void)snprintf(patch, sizeof(patch), "{'metadata':{'annotations':{%s}}}", annotations);
    assert_int_equal(nodes_bed_patch(n, target, patch), 200);
}

static inline void kubelet_bed_resize(struct nodes_bed *n, const char *pod, const char *spec)
{
    char target[128];
    char patch[512];
    (void)snprintf(target, sizeof(target), "/api/v1/namespaces/n/pods/%s/resize", pod);
    (void)snprintf(patch, sizeof(patch), "{'spec':{%s}}", spec);
    assert_int_equal(nodes_bed_patch(n, target, patch), 200);
}

/* Runs until the container has been restarted so often; the time that took, at most `most`. */
static inline td_duration kubelet_bed_await_restart(struct nodes_bed *n, const char *pod,
                                                    const char *container, const char *count,
                                                    td_duration most)
{
    td_duration passed = 0;
    while (passed < most &&
           strcmp(kubelet_bed_status(n, pod, container, "restartCount"), count) != 0) {
        bed_run(&n->bed, 100 * TD_MILLISECOND);
        passed += 100 * TD_MILLISECOND;
    }
    return passed;
}
