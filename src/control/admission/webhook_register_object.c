/*
 * The two configurations by which API servers know the webhook. Every field that a server would
 * fill in is written out, so that what is read back can be compared with what should be there.
 */
#include "base/base64.h"
#include "base/limits.h"
#include "control/admission/webhook_private.h"

#define OBJECT_NAMESPACE_LABEL "kubernetes.io/metadata.name"

td_str webhook_configuration_name(const struct td_webhook *webhook,
                                  enum webhook_configuration which)
{
    bool is_by_service = webhook->options.listen && !webhook->options.is_by_url;
    if (which == WEBHOOK_MUTATING && webhook->options.replaces_upstream) {
        return TD_STR(TD_WEBHOOK_UPSTREAM);
    }
    return is_by_service ? TD_STR(TD_WEBHOOK_INSIDE) : TD_STR(TD_WEBHOOK_OUTSIDE);
}

td_str webhook_configuration_plural(enum webhook_configuration which)
{
    return which == WEBHOOK_MUTATING ? TD_STR("mutatingwebhookconfigurations")
                                     : TD_STR("validatingwebhookconfigurations");
}

bool td_webhook_is_exempt(const struct td_webhook *webhook, td_str namespace)
{
    return td_str_is_among(namespace, webhook->options.exempt_namespaces,
                           webhook->options.exempt_count);
}

/* "a,b" as an array of texts. */
static struct td_json *object_list(struct td_arena *arena, const char *words)
{
    struct td_json *list = td_json_new_array(arena);
    td_str text = td_str_from(words);
    for (size_t from = 0; from <= text.len;) {
        size_t end = td_str_find(text, ',', from);
        td_json_append(list, td_json_new_string(arena, td_str_slice(text, from, end)));
        from = end + 1;
    }
    return list;
}

struct object_rule {
    const char *group;
    const char *version;
    const char *resource;
    const char *operations;
};

static struct td_json *object_rule(struct td_arena *arena, const struct object_rule *row)
{
    struct td_json *rule = td_json_new_object(arena);
    td_json_set(arena, rule, TD_STR("apiGroups"), object_list(arena, row->group));
    td_json_set(arena, rule, TD_STR("apiVersions"), object_list(arena, row->version));
    td_json_set(arena, rule, TD_STR("operations"), object_list(arena, row->operations));
    td_json_set(arena, rule, TD_STR("resources"), object_list(arena, row->resource));
    td_json_set_str(arena, rule, TD_STR("scope"), TD_STR("*"));
    return rule;
}

/* Namespaces by name: those of `names`, or all but those. */
static struct td_json *object_namespaces(struct td_arena *arena, const char *operator,
                                         const td_str * names, size_t count)
{
    struct td_json *selector = td_json_new_object(arena);
    if (count == 0) {
        return selector;
    }
    struct td_json *expression = td_json_new_object(arena);
    struct td_json *values = td_json_new_array(arena);
    for (size_t i = 0; i < count; i++) {
        td_json_append(values, td_json_new_string(arena, names[i]));
    }
    td_json_set_str(arena, expression, TD_STR("key"), TD_STR(OBJECT_NAMESPACE_LABEL));
    td_json_set_str(arena, expression, TD_STR("operator"), td_str_from(operator));
    td_json_set(arena, expression, TD_STR("values"), values);
    struct td_json *expressions = td_json_new_array(arena);
    td_json_append(expressions, expression);
    td_json_set(arena, selector, TD_STR("matchExpressions"), expressions);
    return selector;
}

static struct td_json *object_client(struct td_arena *arena, const struct td_webhook *webhook,
                                     td_str bundle_pem)
{
    struct td_json *client = td_json_new_object(arena);
    td_auto_buf bundle = td_buf_capped(TD_PEM_BYTES_MAX);
    td_base64_write(bundle_pem, TD_BASE64_STANDARD, &bundle);
    if (bundle_pem.len > 0) {
        td_json_set_str(arena, client, TD_STR("caBundle"),
                        td_arena_copy_str(arena, td_buf_str(&bundle)));
    }
    if (webhook->options.is_by_url || !webhook->options.listen) {
        td_json_set_str(arena, client, TD_STR("url"), webhook->url);
        return client;
    }
    struct td_json *service = td_json_ensure_object(arena, client, TD_STR("service"));
    td_json_set_str(arena, service, TD_STR("namespace"), webhook->options.namespace);
    td_json_set_str(arena, service, TD_STR("name"), webhook->options.service);
    td_json_set_int64(arena, service, TD_STR("port"), 443);
    return client;
}

static struct td_json *object_webhook(struct td_arena *arena, const struct td_webhook *webhook,
                                      td_str name, td_str bundle_pem)
{
    const struct td_webhook_options *options = &webhook->options;
    struct td_json *entry = td_json_new_object(arena);
    td_json_set_str(arena, entry, TD_STR("name"), name);
    td_json_set(arena, entry, TD_STR("admissionReviewVersions"), object_list(arena, "v1"));
    td_json_set(arena, entry, TD_STR("clientConfig"), object_client(arena, webhook, bundle_pem));
    td_json_set_str(arena, entry, TD_STR("failurePolicy"),
                    options->fails_closed ? TD_STR("Fail") : TD_STR("Ignore"));
    td_json_set_str(arena, entry, TD_STR("matchPolicy"), TD_STR("Equivalent"));
    td_json_set(
        arena, entry, TD_STR("namespaceSelector"),
        object_namespaces(arena, "NotIn", options->exempt_namespaces, options->exempt_count));
    td_json_set(arena, entry, TD_STR("objectSelector"), td_json_new_object(arena));
    td_json_set_str(arena, entry, TD_STR("sideEffects"), TD_STR("None"));
    td_json_set_int64(arena, entry, TD_STR("timeoutSeconds"), options->timeout_seconds);
    return entry;
}

/* The probe's pod is made in a namespace that is exempt: a webhook for it alone. */
static struct td_json *object_probe(struct td_arena *arena, const struct td_webhook *webhook,
                                    td_str bundle_pem)
{
    static const struct object_rule pods = {"", "v1", "pods", "CREATE"};
    struct td_json *entry =
        object_webhook(arena, webhook, TD_STR("probe.webhook.tandem.dev"), bundle_pem);
    td_json_set_str(arena, entry, TD_STR("failurePolicy"), TD_STR("Ignore"));
    td_json_set(arena, entry, TD_STR("namespaceSelector"),
                object_namespaces(arena, "In", &webhook->options.namespace, 1));
    struct td_json *selector = td_json_ensure_object(arena, entry, TD_STR("objectSelector"));
    struct td_json *labels = td_json_ensure_object(arena, selector, TD_STR("matchLabels"));
    td_json_set_str(arena, labels, TD_STR(WEBHOOK_PROBE_KEY), TD_STR("true"));
    struct td_json *rules = td_json_new_array(arena);
    td_json_append(rules, object_rule(arena, &pods));
    td_json_set(arena, entry, TD_STR("rules"), rules);
    return entry;
}

static struct td_json *object_mutating(struct td_arena *arena, const struct td_webhook *webhook,
                                       td_str bundle_pem)
{
    static const struct object_rule pods = {"", "v1", "pods", "CREATE"};
    static const struct object_rule vpas = {"autoscaling.k8s.io", "*", "verticalpodautoscalers",
                                            "CREATE,UPDATE"};
    struct td_json *webhooks = td_json_new_array(arena);
    struct td_json *entry = object_webhook(arena, webhook, TD_STR("vpa.k8s.io"), bundle_pem);
    struct td_json *rules = td_json_new_array(arena);
    td_json_append(rules, object_rule(arena, &pods));
    td_json_append(rules, object_rule(arena, &vpas));
    td_json_set(arena, entry, TD_STR("rules"), rules);
    td_json_append(webhooks, entry);
    if (webhook->options.probe_interval > 0 &&
        td_webhook_is_exempt(webhook, webhook->options.namespace)) {
        td_json_append(webhooks, object_probe(arena, webhook, bundle_pem));
    }
    for (struct td_json *w = td_json_first_item(webhooks); w; w = w->next) {
        td_json_set_str(arena, w, TD_STR("reinvocationPolicy"), TD_STR("Never"));
    }
    return webhooks;
}

static struct td_json *object_validating(struct td_arena *arena, const struct td_webhook *webhook,
                                         td_str bundle_pem)
{
    static const struct {
        td_str name;
        struct object_rule rule;
    } rows[] = {
        {TD_STR_INIT("hpa.autoscaling.tandem.dev"),
         {"autoscaling.tandem.dev", "*", "horizontalpodautoscalers", "CREATE,UPDATE"}},
        {TD_STR_INIT("hvpa.autoscaling.k8s.io"),
         {"autoscaling.k8s.io", "*", "hvpas", "CREATE,UPDATE"}},
    };
    const bool is_on[] = {true, webhook->options.control.hvpa_gate};
    struct td_json *webhooks = td_json_new_array(arena);
    for (size_t i = 0; i < TD_COUNT(rows); i++) {
        if (!is_on[i]) {
            continue;
        }
        struct td_json *entry = object_webhook(arena, webhook, rows[i].name, bundle_pem);
        struct td_json *rules = td_json_new_array(arena);
        td_json_append(rules, object_rule(arena, &rows[i].rule));
        td_json_set(arena, entry, TD_STR("rules"), rules);
        td_json_append(webhooks, entry);
    }
    return webhooks;
}

/* "k:v,k:v", quotes around it stripped; malformed: none, as upstream. */
static struct td_json *object_labels(struct td_arena *arena, td_str text)
{
    struct td_json *labels = td_json_new_object(arena);
    while (text.len > 0 && (text.ptr[0] == '"' || text.ptr[0] == '\'')) {
        text = td_str_slice(text, 1, text.len);
    }
    while (text.len > 0 && (text.ptr[text.len - 1] == '"' || text.ptr[text.len - 1] == '\'')) {
        text = td_str_slice(text, 0, text.len - 1);
    }
    for (size_t from = 0; text.len > 0 && from <= text.len;) {
        size_t end = td_str_find(text, ',', from);
        td_str pair = td_str_slice(text, from, end);
        size_t colon = td_str_find(pair, ':', 0);
        if (colon == pair.len || td_str_find(pair, ':', colon + 1) < pair.len) {
            return td_json_new_object(arena);
        }
        td_json_set_str(arena, labels, td_str_trim(td_str_slice(pair, 0, colon)),
                        td_str_trim(td_str_slice(pair, colon + 1, pair.len)));
        from = end + 1;
    }
    return labels;
}

struct td_json *webhook_configuration_make(struct td_arena *arena, const struct td_webhook *webhook,
                                           enum webhook_configuration which, td_str bundle_pem)
{
    struct td_json *object = td_json_new_object(arena);
    td_json_set_str(arena, object, TD_STR("apiVersion"), TD_STR("admissionregistration.k8s.io/v1"));
    td_json_set_str(arena, object, TD_STR("kind"),
                    which == WEBHOOK_MUTATING ? TD_STR("MutatingWebhookConfiguration")
                                              : TD_STR("ValidatingWebhookConfiguration"));
    struct td_json *metadata = td_json_ensure_object(arena, object, TD_STR("metadata"));
    td_json_set_str(arena, metadata, TD_STR("name"), webhook_configuration_name(webhook, which));
    td_json_set(arena, metadata, TD_STR("labels"), object_labels(arena, webhook->options.labels));
    td_json_set(arena, object, TD_STR("webhooks"),
                which == WEBHOOK_MUTATING ? object_mutating(arena, webhook, bundle_pem)
                                          : object_validating(arena, webhook, bundle_pem));
    return object;
}

/* Labels of others may be there beside ours. */
bool webhook_configuration_is_same(const struct td_json *wanted, const struct td_json *found)
{
    const struct td_json *labels = td_json_get_path(wanted, "metadata.labels");
    const struct td_json *there = td_json_get_path(found, "metadata.labels");
    for (const struct td_json *label = td_json_first_member(labels); label; label = label->next) {
        if (!td_json_equal(label, td_json_get(there, label->key))) {
            return false;
        }
    }
    return td_json_equal(td_json_get(wanted, TD_STR("webhooks")),
                         td_json_get(found, TD_STR("webhooks")));
}
