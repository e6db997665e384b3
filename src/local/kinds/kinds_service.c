/*
 * Services. There is no network behind them, so addresses need only look right and stay: a
 * service's address and node ports follow from its namespace and name (10.96.0.0/12 and 30000 to
 * 32767, the usual ranges). Two services may get the same one, which is not detected.
 */
#include "local/kinds/kinds_service.h"

#include "kube/names.h"

#define ADDRESS_BITS 20          /* of 10.96.0.0/12 that are a service's own */
#define ADDRESS_BASE 0x0a600000u /* 10.96.0.0 */
#define ADDRESS_SKIPPED 16u      /* the first ones belong to the cluster itself */
#define NODE_PORT_FIRST 30000
#define NODE_PORT_COUNT 2768

static uint32_t service_hash(const struct td_json *metadata, uint32_t salt)
{
    static const td_str members[] = {TD_STR_INIT("namespace"), TD_STR_INIT("name")};
    uint32_t hash = 2166136261u ^ salt; /* FNV-1a */
    for (size_t m = 0; m < 2; m++) {
        td_str text = td_kind_text(metadata, members[m]);
        for (size_t i = 0; i < text.len; i++) {
            hash = (hash ^ (unsigned char)text.ptr[i]) * 16777619u;
        }
        hash = (hash ^ '/') * 16777619u;
    }
    return hash ^ (hash >> 15);
}

static td_str service_type(const struct td_json *spec)
{
    return td_json_text(spec, "type");
}

static bool is_external_name(const struct td_json *spec)
{
    return td_str_equal(service_type(spec), TD_STR("ExternalName"));
}

static bool has_node_ports(const struct td_json *spec)
{
    return td_str_equal(service_type(spec), TD_STR("NodePort")) ||
           (td_str_equal(service_type(spec), TD_STR("LoadBalancer")) &&
            td_json_get_bool(spec, TD_STR("allocateLoadBalancerNodePorts"), true));
}

static bool is_headless(const struct td_json *spec)
{
    return td_str_equal(td_json_text(spec, "clusterIP"), TD_STR("None"));
}

static void service_set_list(struct td_arena *arena, struct td_json *spec, td_str key, td_str text)
{
    struct td_json *list = td_json_new_array(arena);
    td_json_append(list, td_json_new_string(arena, text));
    td_json_set(arena, spec, key, list);
}

static void service_set_address(struct td_kind_write *write, struct td_json *spec)
{
    struct td_arena *arena = write->arena;
    const struct td_json *list = td_kind_member(spec, TD_STR("clusterIPs"));
    td_str address = td_json_text(spec, "clusterIP");
    const struct td_json *first = td_json_first_item(list);
    if (address.len == 0 && td_json_is(first, TD_JSON_TYPE_STRING)) {
        address = first->text;
    }
    if (address.len == 0) {
        uint32_t own =
            service_hash(td_kind_metadata(write->object), 0) & ((1u << ADDRESS_BITS) - 1);
        own = own < ADDRESS_SKIPPED ? own + ADDRESS_SKIPPED : own;
        uint32_t number = ADDRESS_BASE + own;
        address = td_arena_format(arena, "%u.%u.%u.%u", number >> 24, (number >> 16) & 0xff,
                                  (number >> 8) & 0xff, number & 0xff);
    }
    td_json_set_str(arena, spec, TD_STR("clusterIP"), address);
    if (!list || list->count == 0) {
        service_set_list(arena, spec, TD_STR("clusterIPs"), address);
    }
    if (!td_kind_member(spec, TD_STR("ipFamilies"))) {
        service_set_list(arena, spec, TD_STR("ipFamilies"), TD_STR("IPv4"));
    }
    if (!td_kind_member(spec, TD_STR("ipFamilyPolicy"))) {
        td_json_set_str(arena, spec, TD_STR("ipFamilyPolicy"), TD_STR("SingleStack"));
    }
}

static void service_set_node_ports(struct td_kind_write *write, struct td_json *spec)
{
    struct td_json *taken = td_json_new_object(write->arena);
    struct td_json *first = td_json_first_item(td_kind_member(spec, TD_STR("ports")));
    for (const struct td_json *port = first; port; port = port->next) {
        const struct td_json *number = td_kind_member(port, TD_STR("nodePort"));
        if (number) {
            (void)td_kind_add_name(write->arena, taken, number->text); /* twice: refused later */
        }
    }
    uint32_t salt = service_hash(td_kind_metadata(write->object), 1);
    for (struct td_json *port = first; port; port = port->next) {
        bool is_needed = td_json_get_int64(port, TD_STR("nodePort"), 0) == 0;
        for (int i = 0; is_needed && i < NODE_PORT_COUNT; i++, salt++) {
            int64_t number = NODE_PORT_FIRST + salt % NODE_PORT_COUNT;
            td_str text = td_arena_format(write->arena, "%lld", (long long)number);
            if (td_kind_add_name(write->arena, taken, text)) {
                td_json_set_int64(write->arena, port, TD_STR("nodePort"), number);
                is_needed = false;
            }
        }
    }
}

/* What was given out and is not mentioned stays. */
static void service_keep(struct td_kind_write *write, struct td_json *spec)
{
    static const td_str members[] = {TD_STR_INIT("clusterIP"), TD_STR_INIT("clusterIPs"),
                                     TD_STR_INIT("ipFamilies"), TD_STR_INIT("ipFamilyPolicy")};
    const struct td_json *old = td_kind_spec(write->old);
    if (!old || is_external_name(spec) || is_external_name(old)) {
        return;
    }
    for (size_t i = 0; i < TD_COUNT(members); i++) {
        if (!td_kind_member(spec, members[i])) {
            td_kind_take(write->arena, spec, old, members[i]);
        }
    }
    struct td_json *known = td_json_new_object(write->arena);
    const struct td_json *before = td_json_first_item(td_kind_member(old, TD_STR("ports")));
    for (; before; before = before->next) {
        td_str key = td_arena_format(write->arena, "%lld/%.*s",
                                     (long long)td_json_get_int64(before, TD_STR("port"), 0),
                                     TD_STR_ARG(td_json_text(before, "protocol")));
        td_kind_take(write->arena, td_json_ensure_object(write->arena, known, key), before,
                     TD_STR("nodePort"));
    }
    struct td_json *port = td_json_first_item(td_kind_member(spec, TD_STR("ports")));
    for (; port && has_node_ports(spec); port = port->next) {
        td_str key = td_arena_format(write->arena, "%lld/%.*s",
                                     (long long)td_json_get_int64(port, TD_STR("port"), 0),
                                     TD_STR_ARG(td_json_text(port, "protocol")));
        const struct td_json *own = td_json_get(known, key);
        if (own && !td_kind_member(port, TD_STR("nodePort"))) {
            td_kind_take(write->arena, port, own, TD_STR("nodePort"));
        }
    }
}

void td_service_prepare(struct td_kind_write *write)
{
    struct td_json *spec = td_kind_spec(write->object);
    if (!spec || write->operation == TD_WRITE_STATUS) {
        return;
    }
    service_keep(write, spec);
    if (is_external_name(spec)) {
        return;
    }
    service_set_address(write, spec);
    if (has_node_ports(spec)) {
        service_set_node_ports(write, spec);
    }
}

static void check_port(struct td_field_errors *errors, const struct td_field_path *path,
                       const struct td_json *port, bool needs_name, struct td_json *names)
{
    static const td_str protocols[] = {TD_STR_INIT("SCTP"), TD_STR_INIT("TCP"), TD_STR_INIT("UDP")};
    td_str name = td_json_text(port, "name");
    struct td_field_path name_path = td_field_child(path, TD_STR("name"));
    if (needs_name && name.len == 0) {
        td_field_required(errors, &name_path, "");
    } else if (name.len > 0) {
        td_kind_check_name_at(errors, &name_path, name, td_name_check_dns1123_label);
        if (!td_kind_add_name(errors->arena, names, name)) {
            td_kind_duplicate(errors, &name_path, name);
        }
    }
    td_kind_check_port(errors, TD_FIELD(path, "port"), td_json_get(port, TD_STR("port")));
    td_kind_check_one_of(errors, path, port, TD_STR("protocol"), protocols, 3);
    td_kind_check_port(errors, TD_FIELD(path, "targetPort"),
                       td_json_get(port, TD_STR("targetPort")));
}

static void check_node_port(struct td_field_errors *errors, const struct td_field_path *port_path,
                            const struct td_json *spec, const struct td_json *port)
{
    int64_t number = td_json_get_int64(port, TD_STR("nodePort"), 0);
    struct td_field_path path = td_field_child(port_path, TD_STR("nodePort"));
    if (number == 0) {
        return;
    }
    if (td_str_equal(service_type(spec), TD_STR("ClusterIP"))) {
        td_field_forbidden(errors, &path, "may not be used when `type` is 'ClusterIP'");
    } else if (number < NODE_PORT_FIRST || number >= NODE_PORT_FIRST + NODE_PORT_COUNT) {
        td_field_invalid_int(errors, &path, number,
                             "provided port is not in the valid range. The range of valid ports "
                             "is 30000-32767");
    }
}

static void check_ports(struct td_field_errors *errors, const struct td_field_path *spec_path,
                        const struct td_json *spec)
{
    const struct td_json *ports = td_kind_member(spec, TD_STR("ports"));
    struct td_json *names = td_json_new_object(errors->arena);
    struct td_json *seen = td_json_new_object(errors->arena);
    size_t index = 0;
    for (const struct td_json *port = td_json_first_item(ports); port; port = port->next, index++) {
        struct td_field_path place = td_field_item(TD_FIELD(spec_path, "ports"), index);
        check_port(errors, &place, port, ports->count > 1, names);
        check_node_port(errors, &place, spec, port);
        td_str key =
            td_arena_format(errors->arena, "%.*s/%lld", TD_STR_ARG(td_json_text(port, "protocol")),
                            (long long)td_json_get_int64(port, TD_STR("port"), 0));
        if (!td_kind_add_name(errors->arena, seen, key)) {
            td_kind_duplicate(errors, &place, key);
        }
    }
}

static void check_kind_of_service(struct td_field_errors *errors, const struct td_field_path *path,
                                  const struct td_json *spec)
{
    static const td_str types[] = {TD_STR_INIT("ClusterIP"), TD_STR_INIT("ExternalName"),
                                   TD_STR_INIT("LoadBalancer"), TD_STR_INIT("NodePort")};
    static const td_str affinities[] = {TD_STR_INIT("ClientIP"), TD_STR_INIT("None")};
    const struct td_json *ports = td_kind_member(spec, TD_STR("ports"));
    if ((!ports || ports->count == 0) && !is_headless(spec) && !is_external_name(spec)) {
        td_field_required(errors, TD_FIELD(path, "ports"), "");
    }
    bool is_exposed = td_str_equal(service_type(spec), TD_STR("NodePort")) ||
                      td_str_equal(service_type(spec), TD_STR("LoadBalancer"));
    if (is_exposed && is_headless(spec)) {
        td_kind_invalid_text(errors, TD_FIELD_ITEM(TD_FIELD(path, "clusterIPs"), 0), TD_STR("None"),
                             "may not be set to 'None' for %.*s services",
                             TD_STR_ARG(service_type(spec)));
    }
    if (is_external_name(spec)) {
        struct td_field_path place = td_field_child(path, TD_STR("externalName"));
        td_str name = td_json_text(spec, "externalName");
        name.len -= name.len > 0 && name.ptr[name.len - 1] == '.';
        if (name.len == 0) {
            td_field_required(errors, &place, "");
        } else {
            td_kind_check_name_at(errors, &place, name, td_name_check_dns1123_subdomain);
        }
        if (td_kind_member(spec, TD_STR("clusterIP")) ||
            td_kind_member(spec, TD_STR("clusterIPs"))) {
            td_field_forbidden(errors, TD_FIELD(path, "clusterIPs"),
                               "may not be set for ExternalName services");
        }
    }
    check_ports(errors, path, spec);
    td_kind_check_labels(errors, TD_FIELD(path, "selector"),
                         td_kind_member(spec, TD_STR("selector")));
    td_kind_check_one_of(errors, path, spec, TD_STR("sessionAffinity"), affinities, 2);
    td_kind_check_one_of(errors, path, spec, TD_STR("type"), types, 4);
}

void td_service_validate(const struct td_kind_write *write, struct td_field_errors *errors)
{
    if (write->operation == TD_WRITE_STATUS) {
        return;
    }
    const struct td_json *spec = td_kind_spec(write->object);
    const struct td_json *old = td_kind_spec(write->old);
    struct td_field_path path = td_field_child(NULL, TD_STR("spec"));
    if (old && !is_external_name(spec) && !is_external_name(old)) {
        const struct td_json *now = td_kind_member(spec, TD_STR("clusterIPs"));
        const struct td_json *first = td_json_first_item(now);
        const struct td_json *before =
            td_json_first_item(td_kind_member(old, TD_STR("clusterIPs")));
        struct td_field_path list = td_field_child(&path, TD_STR("clusterIPs"));
        bool is_own = first && td_str_equal(first->text, td_json_text(spec, "clusterIP"));
        if (before && !td_json_equal(first, before)) {
            td_kind_invalid_tree(errors, TD_FIELD_ITEM(&list, 0), now, "may not change once set");
        } else if (!is_own) {
            td_field_invalid_str(errors, &list, first ? first->text : TD_STR_EMPTY,
                                 "first value must match `clusterIP`");
        }
    }
    check_kind_of_service(errors, &path, spec);
}
