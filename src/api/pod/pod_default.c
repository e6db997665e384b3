/* Defaults of pods, their containers and volumes that depend on other members. */
#include "api/object_check.h"
#include "api/pod/pod_validate.h"
#include "kube/podresources.h"

/* The tag of an image name: behind the last colon, unless that belongs to a registry's port; a
 * digest is not a tag. Without tag and digest it is "latest". */
static td_str image_tag(td_str image)
{
    size_t digest = td_str_find(image, '@', 0);
    td_str name = td_str_slice(image, 0, digest);
    size_t at = name.len;
    while (at > 0 && name.ptr[at - 1] != ':' && name.ptr[at - 1] != '/') {
        at--;
    }
    if (at > 0 && name.ptr[at - 1] == ':') {
        return td_str_slice(name, at, name.len);
    }
    return digest < image.len ? TD_STR_EMPTY : TD_STR("latest");
}

static void default_text(struct td_arena *arena, struct td_json *object, td_str key, td_str text)
{
    if (td_kind_text(object, key).len == 0) {
        td_json_set_str(arena, object, key, text);
    }
}

static td_str pull_policy(td_str image)
{
    bool is_latest = image.len > 0 && td_str_equal(image_tag(image), TD_STR("latest"));
    return is_latest ? TD_STR("Always") : TD_STR("IfNotPresent");
}

void td_default_container(struct td_arena *arena, struct td_json *container)
{
    default_text(arena, container, TD_STR("imagePullPolicy"),
                 pull_policy(td_json_text(container, "image")));
    default_text(arena, container, TD_STR("terminationMessagePath"),
                 TD_STR("/dev/termination-log"));
    default_text(arena, container, TD_STR("terminationMessagePolicy"), TD_STR("File"));
}

/* A volume that names no source is an empty directory. */
void td_default_volume(struct td_arena *arena, struct td_json *volume)
{
    bool has_source = false;
    for (const struct td_json *member = td_json_first_member(volume); member;
         member = member->next) {
        has_source = has_source || !td_str_equal(member->key, TD_STR("name"));
    }
    if (!has_source) {
        (void)td_json_ensure_object(arena, volume, TD_STR("emptyDir")); /* it is complete */
    }
    struct td_json *image = td_json_member(volume, "image");
    if (image) {
        default_text(arena, image, TD_STR("pullPolicy"),
                     pull_policy(td_json_text(image, "reference")));
    }
}

/* Of a pod or a template: the two names of the service account are one. */
void td_default_pod_spec(struct td_arena *arena, struct td_json *spec)
{
    td_str name = td_json_text(spec, "serviceAccountName");
    td_str other = td_json_text(spec, "serviceAccount");
    if (name.len == 0 && other.len > 0) {
        td_json_set_str(arena, spec, TD_STR("serviceAccountName"), other);
    } else if (name.len > 0) {
        td_json_set_str(arena, spec, TD_STR("serviceAccount"), name);
    }
}

/* On the host's network a container's port is the host's. */
static void default_host_ports(struct td_arena *arena, struct td_json *container)
{
    struct td_json *port = td_json_first_item(td_json_member(container, "ports"));
    for (; port; port = port->next) {
        if (td_json_get_int64(port, TD_STR("hostPort"), 0) == 0) {
            td_json_set_int64(arena, port, TD_STR("hostPort"),
                              td_json_get_int64(port, TD_STR("containerPort"), 0));
        }
    }
}

/* A limit without a request requests as much; of pods, not of templates. */
static void default_requests(struct td_arena *arena, struct td_json *container)
{
    struct td_json *resources = td_json_member(container, "resources");
    const struct td_json *limits = td_json_member(resources, "limits");
    for (const struct td_json *limit = td_json_first_member(limits); limit; limit = limit->next) {
        struct td_json *requests = td_json_ensure_object(arena, resources, TD_STR("requests"));
        if (!td_json_get(requests, limit->key)) {
            td_json_set(arena, requests, limit->key, td_json_copy(arena, limit, false));
        }
    }
}

static bool is_huge_pages(td_str resource)
{
    return td_str_starts_with(resource, TD_STR("hugepages-"));
}

static bool is_pod_level_resource(td_str resource)
{
    return td_str_equal(resource, TD_STR("cpu")) || td_str_equal(resource, TD_STR("memory")) ||
           is_huge_pages(resource);
}

static struct td_json *quantity_node(struct td_arena *arena, const struct td_quantity *quantity)
{
    return td_json_new_string(arena, td_quantity_text(arena, quantity));
}

/* Huge pages cannot be overcommitted, so a pod that says anything is limited to what its
 * containers are. */
static void default_pod_huge_limits(struct td_arena *arena, const struct td_json *pod,
                                    struct td_json *resources)
{
    static const struct td_pod_resource_options options = {.exclude_overhead = true,
                                                           .skip_pod_level_resources = true};
    struct td_resource_list sum;
    if (td_pod_limits(arena, pod, &options, &sum, NULL) < 0) {
        return; /* a quantity out of range: validation says so */
    }
    const struct td_json *requests = td_json_member(resources, "requests");
    for (size_t i = 0; i < sum.count; i++) {
        td_str name = sum.items[i].name;
        if (is_huge_pages(name) && !td_json_get(requests, name)) {
            struct td_json *limits = td_json_ensure_object(arena, resources, TD_STR("limits"));
            if (!td_json_get(limits, name)) {
                td_json_set(arena, limits, name, quantity_node(arena, &sum.items[i].quantity));
            }
        }
    }
}

/* Requests of a pod that has limits: what its containers request together, else the limit. */
static void default_pod_requests(struct td_arena *arena, const struct td_json *pod,
                                 struct td_json *resources)
{
    static const struct td_pod_resource_options options = {.exclude_overhead = true,
                                                           .skip_pod_level_resources = true};
    const struct td_json *limits = td_json_member(resources, "limits");
    struct td_resource_list sum;
    if (!limits || limits->count == 0 || td_pod_requests(arena, pod, &options, &sum, NULL) < 0) {
        return;
    }
    struct td_json *requests = td_json_ensure_object(arena, resources, TD_STR("requests"));
    for (size_t i = 0; i < sum.count; i++) {
        td_str name = sum.items[i].name;
        bool is_taken = is_pod_level_resource(name) && !is_huge_pages(name);
        if (is_taken && !td_json_get(requests, name)) {
            td_json_set(arena, requests, name, quantity_node(arena, &sum.items[i].quantity));
        }
    }
    for (const struct td_json *limit = td_json_first_member(limits); limit; limit = limit->next) {
        if (is_pod_level_resource(limit->key) && !td_json_get(requests, limit->key)) {
            td_json_set(arena, requests, limit->key, td_json_copy(arena, limit, false));
        }
    }
}

void td_default_pod(struct td_arena *arena, struct td_json *pod)
{
    static const td_str lists[] = {TD_STR_INIT("containers"), TD_STR_INIT("initContainers")};
    struct td_json *spec = td_json_ensure_object(arena, pod, TD_STR("spec"));
    bool is_on_host = td_json_get_bool(spec, TD_STR("hostNetwork"), false);
    for (size_t i = 0; i < TD_COUNT(lists); i++) {
        struct td_json *item = td_json_first_item(td_kind_member(spec, lists[i]));
        for (; item; item = item->next) {
            default_requests(arena, item);
            if (is_on_host) {
                default_host_ports(arena, item);
            }
        }
    }
    struct td_json *resources = td_json_member(spec, "resources");
    bool has_any =
        resources && (td_json_member(resources, "limits") || td_json_member(resources, "requests"));
    if (has_any) {
        default_pod_huge_limits(arena, pod, resources);
        default_pod_requests(arena, pod, resources);
    }
    if (!td_json_member(spec, "enableServiceLinks")) {
        td_json_set_bool(arena, spec, TD_STR("enableServiceLinks"), true);
    }
    if (td_json_get_int64(spec, TD_STR("terminationGracePeriodSeconds"), 0) < 0) {
        td_json_set_int64(arena, spec, TD_STR("terminationGracePeriodSeconds"), 1);
    }
}
