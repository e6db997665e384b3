/*
 * Which webhooks want a request: configurations in order of their names, webhooks in the order
 * written, each by its rules, the labels of the namespace and those of the object. The
 * configurations are read again only when their collection changed. matchConditions are CEL, which
 * is not evaluated here: such a webhook is asked whatever they say.
 */
#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "kube/selector/labels.h"
#include "kube/selector/selector.h"
#include "local/admission/admission_private.h"
#include "local/store/store.h"

struct td_webhooks {
    struct td_api *api;
    enum td_admission_phase phase;
    td_str key; /* of the collection */
    struct td_arena arena;
    struct td_webhook_entry *items;
    size_t count;
    size_t cap;
    uint64_t version; /* of the collection when it was read */
    bool is_read;
};

struct td_webhooks *td_webhooks_new(struct td_api *api, enum td_admission_phase phase)
{
    struct td_webhooks *webhooks = td_alloc_zero(1, sizeof(*webhooks));
    webhooks->api = api;
    webhooks->phase = phase;
    webhooks->key = phase == TD_ADMISSION_MUTATING
                        ? TD_STR("mutatingwebhookconfigurations.admissionregistration.k8s.io")
                        : TD_STR("validatingwebhookconfigurations.admissionregistration.k8s.io");
    td_arena_init(&webhooks->arena, TD_TREE_ARENA_BYTES_MAX);
    return webhooks;
}

void td_webhooks_free(struct td_webhooks *webhooks)
{
    if (!webhooks) {
        return;
    }
    td_arena_done(&webhooks->arena);
    td_free(webhooks);
}

static td_str webhook_text(const struct td_json *object, const char *key)
{
    return td_json_get_str(object, td_str_from(key), TD_STR_EMPTY);
}

static void webhooks_add(struct td_webhooks *webhooks, const struct td_json *tree)
{
    td_str effects = webhook_text(tree, "sideEffects");
    webhooks->items = td_arena_grow(&webhooks->arena, webhooks->items, webhooks->count,
                                    &webhooks->cap, sizeof(webhooks->items[0]));
    webhooks->items[webhooks->count++] = (struct td_webhook_entry){
        .name = webhook_text(tree, "name"),
        .tree = tree,
        .is_ignored = td_str_equal(webhook_text(tree, "failurePolicy"), TD_STR("Ignore")),
        .has_side_effects = !td_str_equal(effects, TD_STR("None")) &&
                            !td_str_equal(effects, TD_STR("NoneOnDryRun")),
        .is_reinvoked = td_str_equal(webhook_text(tree, "reinvocationPolicy"), TD_STR("IfNeeded")),
        .is_mutating = webhooks->phase == TD_ADMISSION_MUTATING,
        .timeout_seconds = td_json_get_int64(tree, TD_STR("timeoutSeconds"), 10),
    };
}

static void webhooks_refresh(struct td_webhooks *webhooks)
{
    const struct td_collection *collection =
        td_store_find(td_api_store(webhooks->api), webhooks->key);
    if (!collection ||
        (webhooks->is_read && webhooks->version == td_collection_version(collection))) {
        return;
    }
    td_arena_reset(&webhooks->arena);
    webhooks->items = NULL;
    webhooks->count = 0;
    webhooks->cap = 0;
    webhooks->is_read = true;
    webhooks->version = td_collection_version(collection);
    struct td_collection_iter iter = td_collection_walk(collection, TD_STR_EMPTY);
    for (const struct td_stored *stored; (stored = td_collection_iter_next(&iter));) {
        struct td_json *tree;
        const struct td_json_options options = {.copy_strings = true};
        if (td_json_parse(&webhooks->arena, stored->json, &options, &tree, NULL) != TD_OK) {
            continue;
        }
        const struct td_json *list = td_json_get(tree, TD_STR("webhooks"));
        for (const struct td_json *webhook = td_json_first_item(list); webhook;
             webhook = webhook->next) {
            webhooks_add(webhooks, webhook);
        }
    }
}

static bool webhook_lists(const struct td_json *list, td_str text)
{
    return td_json_has_text(list, TD_STR("*")) || td_json_has_text(list, text);
}

/* A part of "pods/status", either side of which may be a star. */
static bool webhook_part_fits(td_str pattern, td_str text)
{
    return td_str_equal(pattern, TD_STR("*")) || td_str_equal(pattern, text);
}

static bool webhook_lists_resource(const struct td_json *list,
                                   const struct td_admission_request *request)
{
    for (const struct td_json *item = td_json_first_item(list); item; item = item->next) {
        td_str text = item->type == TD_JSON_TYPE_STRING ? item->text : TD_STR_EMPTY;
        size_t slash = td_str_find(text, '/', 0);
        bool fits = webhook_part_fits(td_str_slice(text, 0, slash), request->at.resource->plural);
        td_str sub = td_str_slice(text, slash + 1, text.len);
        if (fits && (slash < text.len ? webhook_part_fits(sub, request->subresource)
                                      : request->subresource.len == 0)) {
            return true;
        }
    }
    return false;
}

/* Is the version of the resource listed? */
static bool webhook_lists_version(const struct td_json *rule, const struct td_resource *resource,
                                  size_t version)
{
    return webhook_lists(td_json_get(rule, TD_STR("apiVersions")),
                         resource->versions[version].name);
}

static bool webhook_scope_fits(td_str scope, const struct td_resource *resource)
{
    return scope.len == 0 || td_str_equal(scope, TD_STR("*")) ||
           td_str_equal(scope, TD_STR("Namespaced")) == resource->is_namespaced;
}

static bool webhook_rule_fits(const struct td_webhook_entry *webhook,
                              const struct td_admission_request *request, size_t version)
{
    const struct td_json *rules = td_json_get(webhook->tree, TD_STR("rules"));
    for (const struct td_json *rule = td_json_first_item(rules); rule; rule = rule->next) {
        if (webhook_lists(td_json_get(rule, TD_STR("operations")),
                          td_str_from(request->operation)) &&
            webhook_lists(td_json_get(rule, TD_STR("apiGroups")), request->at.resource->group) &&
            webhook_lists_version(rule, request->at.resource, version) &&
            webhook_lists_resource(td_json_get(rule, TD_STR("resources")), request) &&
            webhook_scope_fits(webhook_text(rule, "scope"), request->at.resource)) {
            return true;
        }
    }
    return false;
}

/* With matchPolicy Equivalent a rule for one version of a resource stands for all of them, and the
 * webhook sees that version. */
static bool webhook_rules_fit(const struct td_webhook_entry *webhook,
                              const struct td_admission_request *request, size_t *ret_version)
{
    const struct td_resource *resource = request->at.resource;
    if (webhook_rule_fits(webhook, request, request->at.version)) {
        *ret_version = request->at.version;
        return true;
    }
    if (td_str_equal(webhook_text(webhook->tree, "matchPolicy"), TD_STR("Exact"))) {
        return false;
    }
    for (size_t i = 0; i < resource->version_count; i++) {
        if (webhook_rule_fits(webhook, request, i)) {
            *ret_version = request->subresource.len == 0 ? i : request->at.version;
            return true;
        }
    }
    return false;
}

static bool webhook_selects(struct td_arena *arena, const struct td_json *selector,
                            const struct td_json *labels)
{
    struct td_selector parsed;
    struct td_labels set = td_labels_from_json(arena, labels);
    return !selector || (td_selector_from_json(arena, selector, &parsed, NULL) == TD_OK &&
                         td_selector_matches(&parsed, &set));
}

static const struct td_json *webhook_namespace_labels(struct td_webhooks *webhooks,
                                                      const struct td_admission_request *request)
{
    const struct td_stored *stored =
        td_store_get(td_api_store(webhooks->api), TD_STR("namespaces"), TD_STR_EMPTY, request->ns);
    struct td_json *tree;
    if (!stored ||
        td_json_parse(request->arena, stored->json, &(struct td_json_options){.copy_strings = true},
                      &tree, NULL) != TD_OK) {
        return NULL;
    }
    return td_json_get_path(tree, "metadata.labels");
}

bool td_webhooks_select(struct td_webhooks *webhooks, const struct td_webhook_entry *webhook,
                        const struct td_admission_request *request)
{
    const struct td_json *of_namespace = td_json_get(webhook->tree, TD_STR("namespaceSelector"));
    const struct td_json *of_object = td_json_get(webhook->tree, TD_STR("objectSelector"));
    bool is_namespace = td_str_equal(request->at.resource->collection, TD_STR("namespaces"));
    const struct td_json *current = request->object ? request->object : request->old;
    if (of_namespace && of_namespace->count > 0 &&
        (is_namespace || request->at.resource->is_namespaced)) {
        const struct td_json *labels = is_namespace ? td_json_get_path(current, "metadata.labels")
                                                    : webhook_namespace_labels(webhooks, request);
        if (!webhook_selects(request->arena, of_namespace, labels)) {
            return false;
        }
    }
    return !of_object || of_object->count == 0 ||
           webhook_selects(request->arena, of_object,
                           td_json_get_path(current, "metadata.labels")) ||
           (request->old && webhook_selects(request->arena, of_object,
                                            td_json_get_path(request->old, "metadata.labels")));
}

/* The request may outlive the configuration. */
static const struct td_webhook_entry *
webhook_copy(struct td_arena *arena, const struct td_webhook_entry *webhook, size_t version)
{
    struct td_webhook_entry *copy = td_arena_new(arena, struct td_webhook_entry);
    *copy = *webhook;
    copy->version = version;
    copy->tree = td_json_copy(arena, webhook->tree, true);
    copy->name = webhook_text(copy->tree, "name");
    return copy;
}

size_t td_webhooks_match(struct td_webhooks *webhooks, const struct td_admission_request *request,
                         const struct td_webhook_entry **ret, size_t max)
{
    /* A broken webhook must not block the requests that repair it. */
    if (td_str_equal(request->at.resource->group, TD_STR("admissionregistration.k8s.io"))) {
        return 0;
    }
    webhooks_refresh(webhooks);
    size_t count = 0;
    for (size_t i = 0; i < webhooks->count; i++) {
        const struct td_webhook_entry *webhook = &webhooks->items[i];
        size_t version;
        if (!webhook_rules_fit(webhook, request, &version)) {
            continue;
        }
        if (count < max) {
            ret[count] = webhook_copy(request->arena, webhook, version);
        }
        count++;
    }
    return count;
}
