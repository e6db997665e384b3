/* The small kinds of the core group, and events. */
#include "base/error.h"
#include "kube/names.h"
#include "kube/quantity/quantity.h"
#include "local/kinds/kinds_private.h"
#include "local/kinds/kinds_service.h"

#define DATA_BYTES_MAX ((size_t)1 << 20) /* of one config map or secret */

/* Bytes that base64 text stands for. */
static size_t decoded_bytes(td_str text)
{
    size_t padding = 0;
    while (padding < text.len && padding < 2 && text.ptr[text.len - 1 - padding] == '=') {
        padding++;
    }
    return text.len / 4 * 3 - (text.len >= 4 ? padding : 0);
}

/* Keys of a map of data; returns the bytes of its values. */
static size_t check_data(struct td_field_errors *errors, const struct td_json *object,
                         td_str member, bool is_base64, const struct td_json *other)
{
    size_t bytes = 0;
    const struct td_json *item = td_json_first_member(td_kind_member(object, member));
    for (; item; item = item->next) {
        struct td_field_path place = td_kind_key(TD_FIELD_AT(NULL, member), item->key);
        td_kind_check_name_at(errors, &place, item->key, td_name_check_config_map_key);
        if (td_json_get(other, item->key)) {
            td_field_invalid_str(errors, &place, item->key,
                                 "duplicate of key present in binaryData");
        }
        td_str text = td_json_is(item, TD_JSON_TYPE_STRING) ? item->text : TD_STR_EMPTY;
        bytes += is_base64 ? decoded_bytes(text) : text.len;
    }
    return bytes;
}

/* `immutable: true` cannot be taken back, nor what it protects changed. */
static void check_frozen(const struct td_kind_write *write, struct td_field_errors *errors)
{
    static const td_str members[] = {TD_STR_INIT("data"), TD_STR_INIT("binaryData")};
    static const char detail[] = "field is immutable when `immutable` is set";
    if (!write->old || !td_json_get_bool(write->old, TD_STR("immutable"), false)) {
        return;
    }
    if (!td_json_get_bool(write->object, TD_STR("immutable"), false)) {
        td_field_forbidden(errors, TD_FIELD(NULL, "immutable"), detail);
    }
    for (size_t i = 0; i < TD_COUNT(members); i++) {
        if (!td_kind_same_member(write->object, write->old, members[i])) {
            td_field_forbidden(errors, TD_FIELD_AT(NULL, members[i]), detail);
        }
    }
}

static void too_long(struct td_field_errors *errors, td_str member)
{
    td_field_error_add(errors, TD_FIELD_AT(NULL, member), TD_FIELD_TOO_LONG, TD_STR_EMPTY,
                       TD_STR("may not be more than 1048576 bytes"));
}

static void config_map_validate(const struct td_kind_write *write, struct td_field_errors *errors)
{
    check_frozen(write, errors);
    size_t bytes = check_data(errors, write->object, TD_STR("data"), false,
                              td_kind_member(write->object, TD_STR("binaryData")));
    bytes += check_data(errors, write->object, TD_STR("binaryData"), true, NULL);
    if (bytes > DATA_BYTES_MAX) {
        too_long(errors, TD_STR(""));
    }
}

/* Keys that secrets of a type must have. */
struct secret_rule {
    td_str type;
    td_str key;
};

static const struct secret_rule secret_rules[] = {
    {TD_STR_INIT("kubernetes.io/dockercfg"), TD_STR_INIT(".dockercfg")},
    {TD_STR_INIT("kubernetes.io/dockerconfigjson"), TD_STR_INIT(".dockerconfigjson")},
    {TD_STR_INIT("kubernetes.io/ssh-auth"), TD_STR_INIT("ssh-privatekey")},
    {TD_STR_INIT("kubernetes.io/tls"), TD_STR_INIT("tls.crt")},
    {TD_STR_INIT("kubernetes.io/tls"), TD_STR_INIT("tls.key")},
};

static void check_secret_type(struct td_field_errors *errors, const struct td_json *secret)
{
    td_str type = td_json_text(secret, "type");
    const struct td_json *data = td_kind_member(secret, TD_STR("data"));
    struct td_field_path path = td_field_child(NULL, TD_STR("data"));
    for (size_t i = 0; i < TD_COUNT(secret_rules); i++) {
        if (td_str_equal(type, secret_rules[i].type) && !td_json_get(data, secret_rules[i].key)) {
            struct td_field_path place = td_kind_key(&path, secret_rules[i].key);
            td_field_required(errors, &place, "");
        }
    }
    bool is_basic = td_str_equal(type, TD_STR("kubernetes.io/basic-auth"));
    if (is_basic && !td_json_get(data, TD_STR("username")) &&
        !td_json_get(data, TD_STR("password"))) {
        struct td_field_path name = td_kind_key(&path, TD_STR("username"));
        struct td_field_path word = td_kind_key(&path, TD_STR("password"));
        td_field_required(errors, &name, "");
        td_field_required(errors, &word, "");
    }
    static const td_str account = TD_STR_INIT("kubernetes.io/service-account.name");
    const struct td_json *notes = td_kind_member(td_kind_metadata(secret), TD_STR("annotations"));
    if (td_str_equal(type, TD_STR("kubernetes.io/service-account-token")) &&
        td_kind_text(notes, account).len == 0) {
        struct td_field_path place =
            td_kind_key(TD_FIELD(TD_FIELD(NULL, "metadata"), "annotations"), account);
        td_field_required(errors, &place, "");
    }
}

static void secret_validate(const struct td_kind_write *write, struct td_field_errors *errors)
{
    if (write->old) {
        td_kind_check_immutable(errors, TD_FIELD(NULL, "type"),
                                td_json_get(write->object, TD_STR("type")),
                                td_json_get(write->old, TD_STR("type")));
    }
    check_frozen(write, errors);
    if (check_data(errors, write->object, TD_STR("data"), true, NULL) > DATA_BYTES_MAX) {
        too_long(errors, TD_STR("data"));
    }
    check_secret_type(errors, write->object);
}

/* The finalizer by which a namespace's contents go first is there from the start, and changes only
 * through its own subresource. */
static void namespace_prepare(struct td_kind_write *write)
{
    struct td_json *spec = td_json_ensure_object(write->arena, write->object, TD_STR("spec"));
    if (write->operation != TD_WRITE_CREATE) {
        td_kind_take(write->arena, spec, td_kind_spec(write->old), TD_STR("finalizers"));
        return;
    }
    struct td_json *list = td_json_ensure_array(write->arena, spec, TD_STR("finalizers"));
    if (!td_json_has_text(list, TD_STR("kubernetes"))) {
        td_json_append(list, td_json_new_string(write->arena, TD_STR("kubernetes")));
    }
    struct td_json *metadata = td_kind_metadata(write->object);
    struct td_json *labels = td_json_ensure_object(write->arena, metadata, TD_STR("labels"));
    td_json_set_str(write->arena, labels, TD_STR("kubernetes.io/metadata.name"),
                    td_json_text(metadata, "name"));
}

static void namespace_validate(const struct td_kind_write *write, struct td_field_errors *errors)
{
    if (write->operation != TD_WRITE_STATUS) {
        return;
    }
    bool is_going = td_kind_member(td_kind_metadata(write->object), TD_STR("deletionTimestamp"));
    td_str phase = td_json_text(td_kind_member(write->object, TD_STR("status")), "phase");
    td_str wanted = is_going ? TD_STR("Terminating") : TD_STR("Active");
    if (!td_str_equal(phase, wanted)) {
        td_field_invalid_str(errors, TD_FIELD(TD_FIELD(NULL, "status"), "Phase"), phase,
                             is_going ? "may only be 'Terminating' if `deletionTimestamp` is not "
                                        "empty"
                                      : "may only be 'Active' if `deletionTimestamp` is empty");
    }
}

static void check_kept_once_set(const struct td_kind_write *write, struct td_field_errors *errors,
                                td_str member, const char *detail)
{
    const struct td_json *old = td_kind_spec(write->old);
    const struct td_json *before = td_kind_member(old, member);
    if (before && !td_kind_same_member(old, td_kind_spec(write->object), member)) {
        td_field_forbidden(errors, TD_FIELD_AT(TD_FIELD(NULL, "spec"), member), detail);
    }
}

static void node_validate(const struct td_kind_write *write, struct td_field_errors *errors)
{
    static const td_str effects[] = {TD_STR_INIT("NoSchedule"), TD_STR_INIT("PreferNoSchedule"),
                                     TD_STR_INIT("NoExecute")};
    struct td_json *seen = td_json_new_object(errors->arena);
    size_t index = 0;
    const struct td_json *taint =
        td_json_first_item(td_kind_member(td_kind_spec(write->object), TD_STR("taints")));
    for (; taint; taint = taint->next, index++) {
        struct td_field_path place =
            td_field_item(TD_FIELD(TD_FIELD(NULL, "metadata"), "taints"), index);
        td_str key = td_json_text(taint, "key");
        td_kind_check_name_at(errors, TD_FIELD(&place, "key"), key, td_name_check_qualified);
        td_kind_check_name_at(errors, TD_FIELD(&place, "value"), td_json_text(taint, "value"),
                              td_name_check_label_value);
        td_kind_check_one_of(errors, &place, taint, TD_STR("effect"), effects, 3);
        td_str pair = td_arena_format(errors->arena, "%.*s:%.*s", TD_STR_ARG(key),
                                      TD_STR_ARG(td_json_text(taint, "effect")));
        if (!td_kind_add_name(errors->arena, seen, pair)) {
            td_kind_duplicate(errors, &place, pair);
        }
    }
    check_kept_once_set(write, errors, TD_STR("podCIDRs"),
                        "node updates may not change podCIDR except from \"\" to valid");
    check_kept_once_set(write, errors, TD_STR("providerID"),
                        "node updates may not change providerID except from \"\" to valid");
}

/* Is list a's amount of a resource more than list b's? Both are then in *left and *right. */
static bool is_more(struct td_arena *arena, const struct td_json *a, const struct td_json *b,
                    td_str name, td_str *left, td_str *right)
{
    const struct td_json *first = td_json_get(a, name);
    const struct td_json *second = td_json_get(b, name);
    struct td_quantity x;
    struct td_quantity y;
    if (!first || !second || td_quantity_from_json(arena, first, &x, NULL) < 0 ||
        td_quantity_from_json(arena, second, &y, NULL) < 0 || td_quantity_compare(&x, &y) <= 0) {
        return false;
    }
    *left = td_quantity_text(arena, &x);
    *right = td_quantity_text(arena, &y);
    return true;
}

/* Pairs of lists of which one may not be above the other, who is blamed and how. */
struct limit_rule {
    td_str low;
    td_str high;
    td_str blamed;
    const char *low_name;
    const char *high_name;
};

static const struct limit_rule limit_rules[] = {
    {TD_STR_INIT("min"), TD_STR_INIT("max"), TD_STR_INIT("min"), "min", "max"},
    {TD_STR_INIT("min"), TD_STR_INIT("defaultRequest"), TD_STR_INIT("defaultRequest"), "min",
     "default request"},
    {TD_STR_INIT("defaultRequest"), TD_STR_INIT("max"), TD_STR_INIT("defaultRequest"),
     "default request", "max"},
    {TD_STR_INIT("defaultRequest"), TD_STR_INIT("default"), TD_STR_INIT("defaultRequest"),
     "default request", "default limit"},
    {TD_STR_INIT("min"), TD_STR_INIT("default"), TD_STR_INIT("default"), "min", "default"},
    {TD_STR_INIT("default"), TD_STR_INIT("max"), TD_STR_INIT("default"), "default", "max"},
};

static void check_limit_item(struct td_field_errors *errors, const struct td_field_path *path,
                             const struct td_json *item)
{
    for (size_t i = 0; i < TD_COUNT(limit_rules); i++) {
        const struct limit_rule *rule = &limit_rules[i];
        const struct td_json *low = td_kind_member(item, rule->low);
        const struct td_json *high = td_kind_member(item, rule->high);
        for (const struct td_json *entry = td_json_first_member(low); entry; entry = entry->next) {
            td_str left;
            td_str right;
            if (is_more(errors->arena, low, high, entry->key, &left, &right)) {
                struct td_field_path place =
                    td_kind_key(TD_FIELD_AT(path, rule->blamed), entry->key);
                bool is_low = td_str_equal(rule->blamed, rule->low) && i != 5;
                td_kind_invalid_text(errors, &place, is_low || i == 4 ? left : right,
                                     "%s value %.*s is greater than %s value %.*s", rule->low_name,
                                     TD_STR_ARG(left), rule->high_name, TD_STR_ARG(right));
            }
        }
    }
}

static void limit_range_validate(const struct td_kind_write *write, struct td_field_errors *errors)
{
    static const td_str pod_members[] = {TD_STR_INIT("default"), TD_STR_INIT("defaultRequest")};
    struct td_json *types = td_json_new_object(errors->arena);
    size_t index = 0;
    const struct td_json *item =
        td_json_first_item(td_kind_member(td_kind_spec(write->object), TD_STR("limits")));
    for (; item; item = item->next, index++) {
        struct td_field_path place =
            td_field_item(TD_FIELD(TD_FIELD(NULL, "spec"), "limits"), index);
        struct td_field_path type_path = td_field_child(&place, TD_STR("type"));
        td_str type = td_json_text(item, "type");
        td_kind_check_name_at(errors, &type_path, type, td_name_check_qualified);
        if (!td_kind_add_name(errors->arena, types, type)) {
            td_kind_duplicate(errors, &type_path, type);
        }
        for (size_t i = 0; i < 2 && td_str_equal(type, TD_STR("Pod")); i++) {
            const struct td_json *list = td_kind_member(item, pod_members[i]);
            if (list && list->count > 0) {
                td_field_forbidden(errors, TD_FIELD_AT(&place, pod_members[i]),
                                   "may not be specified when `type` is 'Pod'");
            }
        }
        check_limit_item(errors, &place, item);
    }
}

static void quota_validate(const struct td_kind_write *write, struct td_field_errors *errors)
{
    const struct td_json *item =
        td_json_first_member(td_kind_member(td_kind_spec(write->object), TD_STR("hard")));
    for (; item; item = item->next) {
        struct td_field_path place =
            td_kind_key(TD_FIELD(TD_FIELD(NULL, "spec"), "hard"), item->key);
        struct td_quantity quantity;
        td_kind_check_name_at(errors, &place, item->key, td_name_check_qualified);
        if (td_quantity_from_json(errors->arena, item, &quantity, NULL) == TD_OK &&
            td_quantity_sign(&quantity) < 0) {
            td_field_invalid_str(errors, &place, td_quantity_text(errors->arena, &quantity),
                                 "must be greater than or equal to 0");
        }
    }
}

/* An event is about something in its own namespace; about a cluster's object, in default. */
static void event_validate(const struct td_kind_write *write, struct td_field_errors *errors)
{
    td_str ns = td_json_text(td_kind_metadata(write->object), "namespace");
    td_str about =
        td_json_text(td_kind_member(write->object, TD_STR("involvedObject")), "namespace");
    bool is_new = td_kind_member(write->object, TD_STR("eventTime")) != NULL;
    bool is_default = td_str_equal(ns, TD_STR("default"));
    bool is_fine = about.len > 0
                       ? is_new || td_str_equal(ns, about)
                       : is_default || (is_new && td_str_equal(ns, TD_STR("kube-system")));
    if (!is_fine) {
        td_field_invalid_str(errors, TD_FIELD(TD_FIELD(NULL, "involvedObject"), "namespace"), about,
                             "does not match event.namespace");
    }
    static const td_str members[] = {TD_STR_INIT("reportingComponent"),
                                     TD_STR_INIT("reportingInstance"), TD_STR_INIT("action"),
                                     TD_STR_INIT("reason")};
    for (size_t i = 0; is_new && i < TD_COUNT(members); i++) {
        if (td_kind_text(write->object, members[i]).len == 0) {
            td_field_required(errors, TD_FIELD_AT(NULL, members[i]), "");
        }
    }
}

/* A volume says since when it is in its phase. */
static void volume_prepare(struct td_kind_write *write)
{
    struct td_json *status = td_json_ensure_object(write->arena, write->object, TD_STR("status"));
    const struct td_json *before = td_kind_member(write->old, TD_STR("status"));
    if (!before || !td_kind_same_member(status, before, TD_STR("phase"))) {
        td_json_set_str(write->arena, status, TD_STR("lastPhaseTransitionTime"),
                        td_kind_now(write));
    }
}

static void claim_validate(const struct td_kind_write *write, struct td_field_errors *errors)
{
    const struct td_json *spec = td_kind_spec(write->object);
    struct td_field_path path = td_field_child(NULL, TD_STR("spec"));
    const struct td_json *modes = td_kind_member(spec, TD_STR("accessModes"));
    if (!modes || modes->count == 0) {
        td_field_required(errors, TD_FIELD(&path, "accessModes"),
                          "at least 1 access mode is required");
    }
    if (!td_json_get(td_json_get_path(spec, "resources.requests"), TD_STR("storage"))) {
        struct td_field_path place = td_kind_key(TD_FIELD(&path, "resources"), TD_STR("storage"));
        td_field_required(errors, &place, "");
    }
}

#define FIELD(name, where)                                                                         \
    {                                                                                              \
        .field = TD_STR_INIT(name), .path = (where), .fallback = TD_STR_INIT("")                   \
    }

static const struct td_kind_field_rule event_fields[] = {
    FIELD("involvedObject.kind", NULL),
    FIELD("involvedObject.namespace", NULL),
    FIELD("involvedObject.name", NULL),
    FIELD("involvedObject.uid", NULL),
    FIELD("involvedObject.apiVersion", NULL),
    FIELD("involvedObject.resourceVersion", NULL),
    FIELD("involvedObject.fieldPath", NULL),
    FIELD("reason", NULL),
    FIELD("reportingComponent", NULL),
    FIELD("source", "source.component"),
    FIELD("type", NULL),
};

/* The same events under the names of their other group. */
static const struct td_kind_field_rule new_event_fields[] = {
    FIELD("regarding.kind", "involvedObject.kind"),
    FIELD("regarding.namespace", "involvedObject.namespace"),
    FIELD("regarding.name", "involvedObject.name"),
    FIELD("regarding.uid", "involvedObject.uid"),
    FIELD("regarding.apiVersion", "involvedObject.apiVersion"),
    FIELD("regarding.resourceVersion", "involvedObject.resourceVersion"),
    FIELD("regarding.fieldPath", "involvedObject.fieldPath"),
    FIELD("reason", NULL),
    FIELD("reportingController", "reportingComponent"),
    FIELD("type", NULL),
};

static const struct td_kind_field_rule node_fields[] = {
    {TD_STR_INIT("spec.unschedulable"), NULL, TD_STR_INIT("false")},
};
static const struct td_kind_field_rule secret_fields[] = {FIELD("type", NULL)};
static const struct td_kind_field_rule namespace_fields[] = {FIELD("status.phase", NULL)};
static const struct td_kind_field_rule service_fields[] = {FIELD("spec.clusterIP", NULL),
                                                           FIELD("spec.type", NULL)};

const struct td_kind_rules td_kind_core_rules[] = {
    {TD_KIND("", "ConfigMap", config_map_validate)},
    {TD_KIND("", "Secret", secret_validate), TD_KIND_FIELDS(secret_fields)},
    {TD_KIND("", "Service", td_service_validate), TD_KIND_FIELDS(service_fields),
     .check_name = td_name_check_dns1035_label, .prepare = td_service_prepare},
    {TD_KIND("", "Namespace", namespace_validate), TD_KIND_FIELDS(namespace_fields),
     .check_name = td_name_check_dns1123_label, .prepare = namespace_prepare},
    {TD_KIND("", "Node", node_validate), TD_KIND_FIELDS(node_fields)},
    {TD_KIND("", "LimitRange", limit_range_validate)},
    {TD_KIND("", "ResourceQuota", quota_validate)},
    {TD_KIND("", "PersistentVolume", NULL), .prepare = volume_prepare},
    {TD_KIND("", "PersistentVolumeClaim", claim_validate)},
    {TD_KIND("", "Event", event_validate), TD_KIND_FIELDS(event_fields),
     .check_name = td_kind_check_path_segment},
    {TD_KIND("events.k8s.io", "Event", event_validate), TD_KIND_FIELDS(new_event_fields),
     .check_name = td_kind_check_path_segment},
    TD_KIND_END,
};
