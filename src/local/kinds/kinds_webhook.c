/* Webhook configurations. */
#include "kube/names.h"
#include "local/kinds/kinds_private.h"

#define WEBHOOK_TIMEOUT_SECONDS_MAX 30
#define WEBHOOK_NAME_PARTS_MIN 3

static size_t count_of(const struct td_json *object, td_str key)
{
    return td_json_item_count(td_kind_member(object, key));
}

/* A list that must not be empty, and in which a star stands alone. */
static void check_words(struct td_field_errors *errors, const struct td_field_path *parent,
                        const struct td_json *rule, td_str key, const char *star_detail)
{
    const struct td_json *list = td_kind_member(rule, key);
    struct td_field_path path = td_field_child(parent, key);
    if (count_of(rule, key) == 0) {
        td_field_required(errors, &path, "");
    } else if (list->count > 1 && star_detail && td_json_has_text(list, TD_STR("*"))) {
        td_kind_invalid_tree(errors, &path, list, star_detail);
    }
}

static void check_operations(struct td_field_errors *errors, const struct td_field_path *parent,
                             const struct td_json *rule)
{
    static const td_str known[] = {TD_STR_INIT("*"), TD_STR_INIT("CONNECT"), TD_STR_INIT("CREATE"),
                                   TD_STR_INIT("DELETE"), TD_STR_INIT("UPDATE")};
    check_words(errors, parent, rule, TD_STR("operations"),
                "if '*' is present, must not specify other operations");
    size_t index = 0;
    const struct td_json *item = td_json_first_item(td_kind_member(rule, TD_STR("operations")));
    for (; item; item = item->next, index++) {
        bool is_known = td_str_is_among(item->text, known, TD_COUNT(known));
        if (!is_known) {
            td_field_unsupported(errors, TD_FIELD_ITEM(TD_FIELD(parent, "operations"), index),
                                 item->text, known, TD_COUNT(known));
        }
    }
}

static void check_rule(struct td_field_errors *errors, const struct td_field_path *path,
                       const struct td_json *rule)
{
    static const td_str scopes[] = {TD_STR_INIT("*"), TD_STR_INIT("Cluster"),
                                    TD_STR_INIT("Namespaced")};
    check_operations(errors, path, rule);
    check_words(errors, path, rule, TD_STR("apiGroups"),
                "if '*' is present, must not specify other API groups");
    check_words(errors, path, rule, TD_STR("apiVersions"),
                "if '*' is present, must not specify other API versions");
    check_words(errors, path, rule, TD_STR("resources"), NULL);
    td_kind_check_one_of(errors, path, rule, TD_STR("scope"), scopes, 3);
}

static void check_name(struct td_field_errors *errors, const struct td_field_path *parent,
                       const struct td_json *webhook)
{
    td_str name = td_json_text(webhook, "name");
    struct td_field_path path = td_field_child(parent, TD_STR("name"));
    if (name.len == 0) {
        td_field_required(errors, &path, "");
        return;
    }
    size_t parts = 1;
    for (size_t i = 0; i < name.len; i++) {
        parts += name.ptr[i] == '.';
    }
    if (td_name_check_dns1123_subdomain(name, NULL) > 0) {
        td_kind_check_name_at(errors, &path, name, td_name_check_dns1123_subdomain);
    } else if (parts < WEBHOOK_NAME_PARTS_MIN) {
        td_field_invalid_str(errors, &path, name,
                             "should be a domain with at least three segments separated by dots");
    }
}

static void check_client(struct td_field_errors *errors, const struct td_field_path *parent,
                         const struct td_json *webhook)
{
    const struct td_json *client = td_kind_member(webhook, TD_STR("clientConfig"));
    const struct td_json *url = td_kind_member(client, TD_STR("url"));
    const struct td_json *service = td_kind_member(client, TD_STR("service"));
    struct td_field_path path = td_field_child(parent, TD_STR("clientConfig"));
    if (!url == !service) {
        td_field_required(errors, &path, "exactly one of url or service is required");
        return;
    }
    if (url && !td_str_starts_with(url->text, TD_STR("https://"))) {
        size_t end = td_str_find(url->text, ':', 0);
        bool has_scheme = end < url->text.len;
        td_str scheme = has_scheme ? td_str_slice(url->text, 0, end) : TD_STR_EMPTY;
        td_kind_invalid_text(errors, TD_FIELD(&path, "url"), scheme,
                             "'https' is the only allowed URL scheme; desired format: "
                             "https://host[/path]");
        return;
    }
    static const td_str members[] = {TD_STR_INIT("name"), TD_STR_INIT("namespace")};
    for (size_t i = 0; service && i < 2; i++) {
        if (td_kind_text(service, members[i]).len == 0) {
            td_field_required(errors, TD_FIELD_AT(TD_FIELD(&path, "service"), members[i]),
                              i == 0 ? "service name is required"
                                     : "service namespace is required");
        }
    }
}

static void check_versions(struct td_field_errors *errors, const struct td_field_path *parent,
                           const struct td_json *webhook)
{
    const struct td_json *versions = td_kind_member(webhook, TD_STR("admissionReviewVersions"));
    struct td_field_path path = td_field_child(parent, TD_STR("admissionReviewVersions"));
    if (!versions || versions->count == 0) {
        td_field_required(errors, &path, "must specify one of v1, v1beta1");
        return;
    }
    if (!td_json_has_text(versions, TD_STR("v1")) &&
        !td_json_has_text(versions, TD_STR("v1beta1"))) {
        td_kind_invalid_tree(errors, &path, versions, "must include at least one of v1, v1beta1");
    }
}

static void check_policies(struct td_field_errors *errors, const struct td_field_path *path,
                           const struct td_json *webhook)
{
    static const td_str failures[] = {TD_STR_INIT("Fail"), TD_STR_INIT("Ignore")};
    static const td_str matches[] = {TD_STR_INIT("Equivalent"), TD_STR_INIT("Exact")};
    static const td_str effects[] = {TD_STR_INIT("None"), TD_STR_INIT("NoneOnDryRun")};
    static const td_str reinvocations[] = {TD_STR_INIT("IfNeeded"), TD_STR_INIT("Never")};
    td_kind_check_one_of(errors, path, webhook, TD_STR("failurePolicy"), failures, 2);
    td_kind_check_one_of(errors, path, webhook, TD_STR("matchPolicy"), matches, 2);
    if (!td_kind_member(webhook, TD_STR("sideEffects"))) {
        td_field_required(errors, TD_FIELD(path, "sideEffects"),
                          "must specify one of None, NoneOnDryRun");
    } else {
        td_kind_check_one_of(errors, path, webhook, TD_STR("sideEffects"), effects, 2);
    }
    int64_t seconds = td_json_get_int64(webhook, TD_STR("timeoutSeconds"), 1);
    if (seconds < 1 || seconds > WEBHOOK_TIMEOUT_SECONDS_MAX) {
        td_field_invalid_int(errors, TD_FIELD(path, "timeoutSeconds"), seconds,
                             "the timeout value must be between 1 and 30 seconds");
    }
    if (td_kind_member(webhook, TD_STR("reinvocationPolicy"))) {
        td_kind_check_one_of(errors, path, webhook, TD_STR("reinvocationPolicy"), reinvocations, 2);
    }
}

static void webhooks_validate(const struct td_kind_write *write, struct td_field_errors *errors)
{
    static const td_str selectors[] = {TD_STR_INIT("namespaceSelector"),
                                       TD_STR_INIT("objectSelector")};
    struct td_json *names = td_json_new_object(errors->arena);
    size_t index = 0;
    const struct td_json *webhook =
        td_json_first_item(td_kind_member(write->object, TD_STR("webhooks")));
    for (; webhook; webhook = webhook->next, index++) {
        struct td_field_path place = td_field_item(TD_FIELD(NULL, "webhooks"), index);
        check_name(errors, &place, webhook);
        size_t at = 0;
        const struct td_json *rule = td_json_first_item(td_kind_member(webhook, TD_STR("rules")));
        for (; rule; rule = rule->next, at++) {
            check_rule(errors, TD_FIELD_ITEM(TD_FIELD(&place, "rules"), at), rule);
        }
        check_policies(errors, &place, webhook);
        for (size_t i = 0; i < 2; i++) {
            td_kind_check_selector(errors, TD_FIELD_AT(&place, selectors[i]),
                                   td_kind_member(webhook, selectors[i]));
        }
        check_client(errors, &place, webhook);
        check_versions(errors, &place, webhook);
        td_str name = td_json_text(webhook, "name");
        if (name.len > 0 && !td_kind_add_name(errors->arena, names, name)) {
            td_kind_duplicate(errors, TD_FIELD(&place, "name"), name);
        }
    }
}

const struct td_kind_rules td_kind_webhook_rules[] = {
    {TD_KIND("admissionregistration.k8s.io", "MutatingWebhookConfiguration", webhooks_validate)},
    {TD_KIND("admissionregistration.k8s.io", "ValidatingWebhookConfiguration", webhooks_validate)},
    TD_KIND_END,
};
