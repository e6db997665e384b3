/*
 * Writes both forms of discovery from the same walk over resource rows, groups in the order of the
 * API server.
 */
#include "local/discovery/discovery.h"

#include <stdlib.h>
#include <string.h>

#include "kube/meta.h"
#include "local/resources/version_rank.h"

#define DISCOVERY_STATUS_VERBS (TD_VERB_GET | TD_VERB_PATCH | TD_VERB_UPDATE)
#define DISCOVERY_PROXY_VERBS                                                                      \
    (TD_VERB_CREATE | TD_VERB_DELETE | TD_VERB_GET | TD_VERB_PATCH | TD_VERB_UPDATE)

struct discovery_subresource {
    const char *name;
    const char *api_version; /* of its kind; NULL: the row's */
    const char *kind;        /* NULL: the row's */
    unsigned verbs;
};

/* By name, as upstream lists them. `only` names the one resource that has it by the flag. */
static const struct {
    unsigned flag;
    const char *only;
    struct discovery_subresource sub;
} discovery_subresources[] = {
    {TD_SUB_APPROVAL, NULL, {"approval", NULL, NULL, DISCOVERY_STATUS_VERBS}},
    {TD_SUB_PROCESS, "pods", {"attach", NULL, "PodAttachOptions", TD_VERB_CREATE | TD_VERB_GET}},
    {TD_SUB_BINDING, NULL, {"binding", "v1", "Binding", TD_VERB_CREATE}},
    {TD_SUB_EPHEMERAL, NULL, {"ephemeralcontainers", NULL, NULL, DISCOVERY_STATUS_VERBS}},
    {TD_SUB_EVICTION, NULL, {"eviction", "policy/v1", "Eviction", TD_VERB_CREATE}},
    {TD_SUB_PROCESS, "pods", {"exec", NULL, "PodExecOptions", TD_VERB_CREATE | TD_VERB_GET}},
    {TD_SUB_FINALIZE, NULL, {"finalize", NULL, NULL, TD_VERB_UPDATE}},
    {TD_SUB_PROCESS, "pods", {"log", NULL, NULL, TD_VERB_GET}},
    {TD_SUB_PROCESS,
     "pods",
     {"portforward", NULL, "PodPortForwardOptions", TD_VERB_CREATE | TD_VERB_GET}},
    {TD_SUB_PROCESS, "pods", {"proxy", NULL, "PodProxyOptions", DISCOVERY_PROXY_VERBS}},
    {TD_SUB_PROCESS, "nodes", {"proxy", NULL, "NodeProxyOptions", DISCOVERY_PROXY_VERBS}},
    {TD_SUB_PROCESS, "services", {"proxy", NULL, "ServiceProxyOptions", DISCOVERY_PROXY_VERBS}},
    {TD_SUB_RESIZE, NULL, {"resize", NULL, NULL, DISCOVERY_STATUS_VERBS}},
    {TD_SUB_SCALE, NULL, {"scale", "autoscaling/v1", "Scale", DISCOVERY_STATUS_VERBS}},
    {TD_SUB_STATUS, NULL, {"status", NULL, NULL, DISCOVERY_STATUS_VERBS}},
    {TD_SUB_TOKEN, NULL, {"token", "authentication.k8s.io/v1", "TokenRequest", TD_VERB_CREATE}},
};

/* By index from 0; false at the end. */
static bool discovery_find_subresource(const struct td_resource *resource, size_t index,
                                       struct discovery_subresource *ret)
{
    size_t seen = 0;
    for (size_t i = 0; i < TD_COUNT(discovery_subresources); i++) {
        const char *only = discovery_subresources[i].only;
        if (!(resource->subresources & discovery_subresources[i].flag) ||
            (only && !td_str_equal(resource->plural, td_str_from(only)))) {
            continue;
        }
        if (seen++ == index) {
            *ret = discovery_subresources[i].sub;
            return true;
        }
    }
    return false;
}

static struct td_json *discovery_verbs(struct td_arena *arena, unsigned verbs)
{
    static const char *const names[] = {"create", "delete", "deletecollection", "get",
                                        "list",   "patch",  "update",           "watch"};
    struct td_json *list = td_json_new_array(arena);
    for (size_t i = 0; i < TD_COUNT(names); i++) {
        if (verbs & 1U << i) {
            td_json_append(list, td_json_new_string(arena, td_str_from(names[i])));
        }
    }
    return list;
}

static struct td_json *discovery_head(struct td_arena *arena, const char *kind,
                                      const char *api_version)
{
    struct td_json *head = td_json_new_object(arena);
    td_json_set_str(arena, head, TD_STR("kind"), td_str_from(kind));
    if (api_version) {
        td_json_set_str(arena, head, TD_STR("apiVersion"), td_str_from(api_version));
    }
    return head;
}

struct td_json *td_discovery_versions(struct td_arena *arena)
{
    struct td_json *answer = discovery_head(arena, "APIVersions", NULL);
    const td_str v1 = TD_STR("v1");
    td_json_set(arena, answer, TD_STR("versions"), td_json_new_strings(arena, &v1, 1));
    td_json_set(arena, answer, TD_STR("serverAddressByClientCIDRs"), td_json_new_array(arena));
    return answer;
}

/* Is this the first row of its group? */
static bool discovery_is_first(const struct td_resources *resources, size_t index)
{
    td_str group = td_resources_row(resources, index)->group;
    for (size_t i = 0; i < index; i++) {
        if (td_str_equal(td_resources_row(resources, i)->group, group)) {
            return false;
        }
    }
    return true;
}

static int discovery_compare_versions(const void *a, const void *b)
{
    const struct td_resource_version *left = *(const struct td_resource_version *const *)a;
    const struct td_resource_version *right = *(const struct td_resource_version *const *)b;
    return td_version_compare(left->name, right->name);
}

/* The versions of a group, preferred first, each once. */
static struct td_json *discovery_group_versions(struct td_arena *arena,
                                                const struct td_resources *resources, td_str group)
{
    struct td_json *seen = td_json_new_object(arena);
    const struct td_resource_version **order = NULL;
    size_t count = 0;
    size_t cap = 0;
    for (size_t i = 0; i < td_resources_count(resources); i++) {
        const struct td_resource *row = td_resources_row(resources, i);
        for (size_t v = 0; td_str_equal(row->group, group) && v < row->version_count; v++) {
            if (!td_json_get(seen, row->versions[v].name)) {
                td_json_set_str(arena, seen, row->versions[v].name, TD_STR_EMPTY);
                order = td_arena_grow(arena, (void *)order, count, &cap, sizeof(order[0]));
                order[count++] = &row->versions[v];
            }
        }
    }
    if (count > 0) {
        qsort((void *)order, count, sizeof(order[0]), discovery_compare_versions);
    }
    struct td_json *list = td_json_new_array(arena);
    for (size_t i = 0; i < count; i++) {
        struct td_json *entry = td_json_new_object(arena);
        td_json_set_str(arena, entry, TD_STR("groupVersion"), order[i]->api_version);
        td_json_set_str(arena, entry, TD_STR("version"), order[i]->name);
        td_json_append(list, entry);
    }
    return list;
}

static struct td_json *discovery_group(struct td_arena *arena, const struct td_resources *resources,
                                       td_str group, struct td_json *entry)
{
    struct td_json *versions = discovery_group_versions(arena, resources, group);
    td_json_set_str(arena, entry, TD_STR("name"), group);
    td_json_set(arena, entry, TD_STR("versions"), versions);
    td_json_set(arena, entry, TD_STR("preferredVersion"),
                td_json_copy(arena, td_json_first_item(versions), false));
    return entry;
}

struct td_json *td_discovery_groups(struct td_arena *arena, const struct td_resources *resources)
{
    struct td_json *answer = discovery_head(arena, "APIGroupList", "v1");
    struct td_json *groups = td_json_new_array(arena);
    for (size_t i = 0; i < td_resources_count(resources); i++) {
        td_str group = td_resources_row(resources, i)->group;
        if (group.len > 0 && discovery_is_first(resources, i)) {
            td_json_append(groups,
                           discovery_group(arena, resources, group, td_json_new_object(arena)));
        }
    }
    td_json_set(arena, answer, TD_STR("groups"), groups);
    return answer;
}

struct td_json *td_discovery_group(struct td_arena *arena, const struct td_resources *resources,
                                   td_str group)
{
    for (size_t i = 0; i < td_resources_count(resources); i++) {
        if (group.len > 0 && td_str_equal(td_resources_row(resources, i)->group, group)) {
            return discovery_group(arena, resources, group,
                                   discovery_head(arena, "APIGroup", "v1"));
        }
    }
    return NULL;
}

static void discovery_names(struct td_arena *arena, const struct td_resource *row,
                            struct td_json *entry)
{
    if (row->short_name_count > 0) {
        td_json_set(arena, entry, TD_STR("shortNames"),
                    td_json_new_strings(arena, row->short_names, row->short_name_count));
    }
    if (row->category_count > 0) {
        td_json_set(arena, entry, TD_STR("categories"),
                    td_json_new_strings(arena, row->categories, row->category_count));
    }
}

static void discovery_add_row(struct td_arena *arena, const struct td_resource *row,
                              struct td_json *list)
{
    struct td_json *entry = td_json_new_object(arena);
    td_json_set_str(arena, entry, TD_STR("name"), row->plural);
    td_json_set_str(arena, entry, TD_STR("singularName"), row->singular);
    td_json_set_bool(arena, entry, TD_STR("namespaced"), row->is_namespaced);
    td_json_set_str(arena, entry, TD_STR("kind"), row->kind);
    td_json_set(arena, entry, TD_STR("verbs"), discovery_verbs(arena, row->verbs));
    discovery_names(arena, row, entry);
    td_json_append(list, entry);
    struct discovery_subresource sub;
    for (size_t i = 0; discovery_find_subresource(row, i, &sub); i++) {
        entry = td_json_new_object(arena);
        td_json_set_str(arena, entry, TD_STR("name"),
                        td_arena_format(arena, "%.*s/%s", TD_STR_ARG(row->plural), sub.name));
        td_json_set_str(arena, entry, TD_STR("singularName"), TD_STR_EMPTY);
        td_json_set_bool(arena, entry, TD_STR("namespaced"), row->is_namespaced);
        if (sub.api_version && strcmp(sub.name, "binding") != 0) {
            struct td_group_version gv = td_group_version_parse(td_str_from(sub.api_version));
            td_json_set_str(arena, entry, TD_STR("group"), gv.group);
            td_json_set_str(arena, entry, TD_STR("version"), gv.version);
        }
        td_json_set_str(arena, entry, TD_STR("kind"), sub.kind ? td_str_from(sub.kind) : row->kind);
        td_json_set(arena, entry, TD_STR("verbs"), discovery_verbs(arena, sub.verbs));
        td_json_append(list, entry);
    }
}

/* The index of `version` in a row of `group`, or -1. */
static int discovery_version_of(const struct td_resource *row, td_str group, td_str version)
{
    for (size_t v = 0; td_str_equal(row->group, group) && v < row->version_count; v++) {
        if (td_str_equal(row->versions[v].name, version)) {
            return (int)v;
        }
    }
    return -1;
}

/* Custom and external metrics answer to any name and list none. */
static bool discovery_has_any_name(const struct td_resource *row)
{
    return td_str_equal(row->plural, TD_STR("*"));
}

struct td_json *td_discovery_resources(struct td_arena *arena, const struct td_resources *resources,
                                       td_str group, td_str version)
{
    struct td_json *list = td_json_new_array(arena);
    bool is_served = false;
    for (size_t i = 0; i < td_resources_count(resources); i++) {
        const struct td_resource *row = td_resources_row(resources, i);
        if (discovery_version_of(row, group, version) < 0) {
            continue;
        }
        is_served = true;
        if (!discovery_has_any_name(row)) {
            discovery_add_row(arena, row, list);
        }
    }
    if (!is_served) {
        return NULL;
    }
    struct td_json *answer = discovery_head(arena, "APIResourceList", group.len > 0 ? "v1" : NULL);
    td_str group_version = group.len == 0 ? version
                                          : td_arena_format(arena, "%.*s/%.*s", TD_STR_ARG(group),
                                                            TD_STR_ARG(version));
    td_json_set_str(arena, answer, TD_STR("groupVersion"), group_version);
    td_json_set(arena, answer, TD_STR("resources"), list);
    return answer;
}

static struct td_json *discovery_response_kind(struct td_arena *arena, td_str group, td_str version,
                                               td_str kind)
{
    struct td_json *answer = td_json_new_object(arena);
    td_json_set_str(arena, answer, TD_STR("group"), group);
    td_json_set_str(arena, answer, TD_STR("version"), version);
    td_json_set_str(arena, answer, TD_STR("kind"), kind);
    return answer;
}

/* Built-in kinds leave out the group and version that they are listed under, custom ones do not, as
 * upstream's two servers do. */
static struct td_json *discovery_aggregated_row(struct td_arena *arena,
                                                const struct td_resource *row, td_str version)
{
    const struct td_group_version own = {
        .group = row->custom ? row->group : TD_STR_EMPTY,
        .version = row->custom ? version : TD_STR_EMPTY,
    };
    struct td_json *entry = td_json_new_object(arena);
    td_json_set_str(arena, entry, TD_STR("resource"), row->plural);
    td_json_set(arena, entry, TD_STR("responseKind"),
                discovery_response_kind(arena, own.group, own.version, row->kind));
    td_json_set_str(arena, entry, TD_STR("scope"),
                    row->is_namespaced ? TD_STR("Namespaced") : TD_STR("Cluster"));
    td_json_set_str(arena, entry, TD_STR("singularResource"), row->singular);
    td_json_set(arena, entry, TD_STR("verbs"), discovery_verbs(arena, row->verbs));
    discovery_names(arena, row, entry);
    struct td_json *subs = td_json_new_array(arena);
    struct discovery_subresource sub;
    for (size_t i = 0; discovery_find_subresource(row, i, &sub); i++) {
        struct td_group_version gv = own;
        if (sub.api_version && strcmp(sub.name, "binding") != 0) {
            gv = td_group_version_parse(td_str_from(sub.api_version));
        }
        struct td_json *item = td_json_new_object(arena);
        td_json_set_str(arena, item, TD_STR("subresource"), td_str_from(sub.name));
        td_json_set(arena, item, TD_STR("responseKind"),
                    discovery_response_kind(arena, gv.group, gv.version,
                                            sub.kind ? td_str_from(sub.kind) : row->kind));
        td_json_set(arena, item, TD_STR("verbs"), discovery_verbs(arena, sub.verbs));
        td_json_append(subs, item);
    }
    if (subs->count > 0) {
        td_json_set(arena, entry, TD_STR("subresources"), subs);
    }
    return entry;
}

static struct td_json *discovery_aggregated_version(struct td_arena *arena,
                                                    const struct td_resources *resources,
                                                    td_str group, td_str version)
{
    struct td_json *entry = td_json_new_object(arena);
    struct td_json *rows = td_json_new_array(arena);
    for (size_t i = 0; i < td_resources_count(resources); i++) {
        const struct td_resource *row = td_resources_row(resources, i);
        if (discovery_version_of(row, group, version) >= 0 && !discovery_has_any_name(row)) {
            td_json_append(rows, discovery_aggregated_row(arena, row, version));
        }
    }
    td_json_set_str(arena, entry, TD_STR("version"), version);
    td_json_set(arena, entry, TD_STR("resources"), rows);
    td_json_set_str(arena, entry, TD_STR("freshness"), TD_STR("Current"));
    return entry;
}

struct td_json *td_discovery_aggregated(struct td_arena *arena,
                                        const struct td_resources *resources, bool is_core)
{
    struct td_json *answer =
        discovery_head(arena, "APIGroupDiscoveryList", "apidiscovery.k8s.io/v2");
    struct td_json *items = td_json_new_array(arena);
    td_json_set(arena, answer, TD_STR("metadata"), td_json_new_object(arena));
    td_json_set(arena, answer, TD_STR("items"), items);
    for (size_t i = 0; i < td_resources_count(resources); i++) {
        td_str group = td_resources_row(resources, i)->group;
        if ((group.len == 0) != is_core || !discovery_is_first(resources, i)) {
            continue;
        }
        struct td_json *item = td_json_new_object(arena);
        struct td_json *metadata = td_json_ensure_object(arena, item, TD_STR("metadata"));
        td_json_set_text(arena, metadata, TD_STR("name"), group);
        struct td_json *versions = td_json_new_array(arena);
        const struct td_json *names = discovery_group_versions(arena, resources, group);
        for (const struct td_json *name = td_json_first_item(names); name; name = name->next) {
            td_str version = td_json_text(name, "version");
            td_json_append(versions,
                           discovery_aggregated_version(arena, resources, group, version));
        }
        td_json_set(arena, item, TD_STR("versions"), versions);
        td_json_append(items, item);
    }
    return answer;
}
