/* Cells of services, endpoints, ingresses and storage. */
#include "local/print/table_private.h"

#define NETWORK_SHOWN_MAX 3 /* of endpoints, ports and hosts; the rest is counted */

/* A list of which the first few are shown. */
struct network_list {
    struct td_buf text;
    size_t shown;
    size_t count; /* all of them */
};

static void network_add(struct network_list *list, td_str item)
{
    if (list->shown < NETWORK_SHOWN_MAX) {
        if (list->shown > 0) {
            (void)td_buf_append_char(&list->text, ','); /* parts of one object: they fit */
        }
        (void)td_buf_append(&list->text, item);
        list->shown++;
    }
    list->count++;
}

static struct td_json *network_end(struct td_table_row *row, struct network_list *list, td_str none)
{
    if (list->count > list->shown) {
        (void)td_buf_append_format(&list->text, " + %zu more...", list->count - list->shown);
    }
    struct td_json *cell =
        list->text.len > 0 ? td_table_buffer(row, &list->text) : td_table_string(row, none);
    td_buf_done(&list->text);
    return cell;
}

static struct network_list network_begin(void)
{
    struct network_list list = {.shown = 0};
    td_buf_init(&list.text, TD_JSON_BYTES_MAX);
    return list;
}

/* --- services --- */

struct td_json *td_cell_cluster_ip(struct td_table_row *row, const struct td_table_column *column)
{
    const struct td_json *first = td_json_first_item(td_json_get_path(row->object, column->path));
    return td_table_string(
        row, td_json_is(first, TD_JSON_TYPE_STRING) ? first->text : td_str_from(column->fallback));
}

/* Addresses of a load balancer: in byte order, each once. */
static void network_balancer(struct td_table_row *row, struct td_buf *out)
{
    const struct td_json *list = td_json_get_path(row->object, "status.loadBalancer.ingress");
    td_str *texts = td_arena_array(row->arena, td_str, td_json_item_count(list));
    size_t count = 0;
    for (const struct td_json *item = td_json_first_item(list); item; item = item->next) {
        td_str text = td_table_text(item, "ip", td_table_text(item, "hostname", TD_STR_EMPTY));
        if (text.len > 0) {
            texts[count++] = text;
        }
    }
    td_table_join_sorted(out, texts, count);
}

struct td_json *td_cell_external_ip(struct td_table_row *row, const struct td_table_column *column)
{
    (void)column;
    td_str type = td_table_text(row->object, "spec.type", TD_STR_EMPTY);
    bool is_balancer = td_str_equal(type, TD_STR("LoadBalancer"));
    td_auto_buf text = td_buf_capped(TD_JSON_BYTES_MAX);
    if (td_str_equal(type, TD_STR("ExternalName"))) {
        return td_table_string(row, td_table_text(row->object, "spec.externalName", TD_STR_EMPTY));
    }
    if (!is_balancer && !td_str_equal(type, TD_STR("ClusterIP")) &&
        !td_str_equal(type, TD_STR("NodePort"))) {
        return td_table_string(row, TD_STR("<unknown>"));
    }
    if (is_balancer) {
        network_balancer(row, &text);
    }
    const struct td_json *ips = td_json_get_path(row->object, "spec.externalIPs");
    for (const struct td_json *ip = td_json_first_item(ips); ip; ip = ip->next) {
        if (ip->type == TD_JSON_TYPE_STRING) {
            td_table_join(&text, TD_STR(","), ip->text);
        }
    }
    if (text.len > 0) {
        return td_table_buffer(row, &text);
    }
    return td_table_string(row, is_balancer ? TD_STR("<pending>") : TD_STR("<none>"));
}

struct td_json *td_cell_service_ports(struct td_table_row *row,
                                      const struct td_table_column *column)
{
    td_auto_buf text = td_buf_capped(TD_JSON_BYTES_MAX);
    const struct td_json *list = td_json_get_path(row->object, column->path);
    for (const struct td_json *item = td_json_first_item(list); item; item = item->next) {
        td_str protocol = td_json_text(item, "protocol");
        long long port = (long long)td_json_get_int64(item, TD_STR("port"), 0);
        long long node = (long long)td_json_get_int64(item, TD_STR("nodePort"), 0);
        td_table_join(
            &text, TD_STR(","),
            node > 0
                ? td_arena_format(row->arena, "%lld:%lld/%.*s", port, node, TD_STR_ARG(protocol))
                : td_arena_format(row->arena, "%lld/%.*s", port, TD_STR_ARG(protocol)));
    }
    return text.len > 0 ? td_table_buffer(row, &text)
                        : td_table_string(row, td_str_from(column->fallback));
}

/* --- endpoints --- */

static td_str network_host_port(struct td_arena *arena, td_str host, long long port)
{
    bool is_v6 = td_str_find(host, ':', 0) < host.len;
    return td_arena_format(arena, is_v6 ? "[%.*s]:%lld" : "%.*s:%lld", TD_STR_ARG(host), port);
}

/* Addresses with one port of a subset; what is past the shown ones is only counted. */
static void endpoints_add(struct td_table_row *row, struct network_list *list,
                          const struct td_json *addresses, const struct td_json *port)
{
    const struct td_json *item = td_json_first_item(addresses);
    size_t left = td_json_item_count(addresses);
    for (; item && list->shown < NETWORK_SHOWN_MAX; item = item->next, left--) {
        td_str ip = td_json_text(item, "ip");
        network_add(list,
                    port ? network_host_port(row->arena, ip,
                                             (long long)td_json_get_int64(port, TD_STR("port"), 0))
                         : ip);
    }
    list->count += left;
}

struct td_json *td_cell_endpoints(struct td_table_row *row, const struct td_table_column *column)
{
    struct network_list list = network_begin();
    const struct td_json *subsets = td_json_get(row->object, TD_STR("subsets"));
    const struct td_json *subset = td_json_first_item(subsets);
    td_str none = subset ? TD_STR_EMPTY : td_str_from(column->fallback);
    for (; subset; subset = subset->next) {
        const struct td_json *addresses = td_json_get(subset, TD_STR("addresses"));
        const struct td_json *port = td_json_first_item(td_json_get(subset, TD_STR("ports")));
        if (!port) {
            endpoints_add(row, &list, addresses, NULL);
        }
        for (; port; port = port->next) {
            endpoints_add(row, &list, addresses, port);
        }
    }
    return network_end(row, &list, none);
}

struct td_json *td_cell_slice_ports(struct td_table_row *row, const struct td_table_column *column)
{
    struct network_list list = network_begin();
    const struct td_json *ports = td_json_get(row->object, TD_STR("ports"));
    for (const struct td_json *item = td_json_first_item(ports); item; item = item->next) {
        const struct td_json *port = td_json_get(item, TD_STR("port"));
        network_add(&list, td_json_is(port, TD_JSON_TYPE_NUMBER)
                               ? port->text
                               : td_json_get_str(item, TD_STR("name"), TD_STR("*")));
    }
    return network_end(row, &list, td_str_from(column->fallback));
}

struct td_json *td_cell_slice_endpoints(struct td_table_row *row,
                                        const struct td_table_column *column)
{
    struct network_list list = network_begin();
    const struct td_json *endpoints = td_json_get(row->object, TD_STR("endpoints"));
    for (const struct td_json *item = td_json_first_item(endpoints); item; item = item->next) {
        const struct td_json *address = td_json_first_item(td_json_get(item, TD_STR("addresses")));
        for (; address; address = address->next) {
            network_add(&list, address->type == TD_JSON_TYPE_STRING ? address->text : TD_STR_EMPTY);
        }
    }
    return network_end(row, &list, td_str_from(column->fallback));
}

/* --- ingresses --- */

/* Rules without a host are not shown, but the rest is counted over all rules. */
struct td_json *td_cell_hosts(struct td_table_row *row, const struct td_table_column *column)
{
    struct network_list list = network_begin();
    const struct td_json *rules = td_json_get_path(row->object, column->path);
    const struct td_json *rule = td_json_first_item(rules);
    for (; rule && list.shown < NETWORK_SHOWN_MAX; rule = rule->next) {
        td_str host = td_json_text(rule, "host");
        if (host.len > 0) {
            network_add(&list, host);
        }
    }
    list.count = rule ? rules->count : list.shown;
    return network_end(row, &list, td_str_from(column->fallback));
}

struct td_json *td_cell_ingress_address(struct td_table_row *row,
                                        const struct td_table_column *column)
{
    (void)column;
    td_auto_buf text = td_buf_capped(TD_JSON_BYTES_MAX);
    network_balancer(row, &text);
    return td_table_buffer(row, &text);
}

struct td_json *td_cell_ingress_ports(struct td_table_row *row,
                                      const struct td_table_column *column)
{
    bool has_tls = td_json_first_item(td_json_get_path(row->object, column->path)) != NULL;
    return td_table_string(row, has_tls ? TD_STR("80, 443") : TD_STR("80"));
}

struct td_json *td_cell_class_parameters(struct td_table_row *row,
                                         const struct td_table_column *column)
{
    const struct td_json *node = td_json_get_path(row->object, column->path);
    td_str group = td_json_text(node, "apiGroup");
    td_str kind = td_json_text(node, "kind");
    td_str name = td_json_text(node, "name");
    if (!td_json_is(node, TD_JSON_TYPE_OBJECT)) {
        return td_table_string(row, td_str_from(column->fallback));
    }
    return td_table_string(row, td_arena_format(row->arena, "%.*s%s%.*s/%.*s", TD_STR_ARG(kind),
                                                group.len > 0 ? "." : "", TD_STR_ARG(group),
                                                TD_STR_ARG(name)));
}

/* --- storage --- */

struct td_json *td_cell_class_name(struct td_table_row *row, const struct td_table_column *column)
{
    td_str name = td_table_text(row->object, "metadata.name", TD_STR_EMPTY);
    const struct td_json *annotations = td_json_get_path(row->object, "metadata.annotations");
    td_str value = td_json_get_str(annotations, td_str_from(column->path), TD_STR_EMPTY);
    td_str other = column->fallback
                       ? td_json_get_str(annotations, td_str_from(column->fallback), TD_STR_EMPTY)
                       : TD_STR_EMPTY;
    bool is_default = td_str_equal(value, TD_STR("true")) || td_str_equal(other, TD_STR("true"));
    return td_table_string(
        row, is_default ? td_arena_format(row->arena, "%.*s (default)", TD_STR_ARG(name)) : name);
}

struct td_json *td_cell_capacity(struct td_table_row *row, const struct td_table_column *column)
{
    return td_table_string(row,
                           td_table_quantity(row, td_json_get_path(row->object, column->path)));
}

/* Nothing is known before a claim has its volume. */
static bool claim_is_bound(const struct td_table_row *row)
{
    return td_table_text(row->object, "spec.volumeName", TD_STR_EMPTY).len > 0;
}

struct td_json *td_cell_claim_capacity(struct td_table_row *row,
                                       const struct td_table_column *column)
{
    return claim_is_bound(row) ? td_cell_capacity(row, column) : td_table_string(row, TD_STR_EMPTY);
}

struct td_json *td_cell_access_modes(struct td_table_row *row, const struct td_table_column *column)
{
    static const struct {
        td_str mode;
        td_str shown;
    } modes[] = {
        {TD_STR_INIT("ReadWriteOnce"), TD_STR_INIT("RWO")},
        {TD_STR_INIT("ReadOnlyMany"), TD_STR_INIT("ROX")},
        {TD_STR_INIT("ReadWriteMany"), TD_STR_INIT("RWX")},
        {TD_STR_INIT("ReadWriteOncePod"), TD_STR_INIT("RWOP")},
    };
    const struct td_json *list = td_json_get_path(row->object, column->path);
    td_auto_buf text = td_buf_capped(TD_JSON_BYTES_MAX);
    for (size_t i = 0; i < TD_COUNT(modes); i++) {
        if (td_json_has_text(list, modes[i].mode)) {
            td_table_join(&text, TD_STR(","), modes[i].shown);
        }
    }
    return td_table_buffer(row, &text);
}

struct td_json *td_cell_claim_modes(struct td_table_row *row, const struct td_table_column *column)
{
    return claim_is_bound(row) ? td_cell_access_modes(row, column)
                               : td_table_string(row, TD_STR_EMPTY);
}

struct td_json *td_cell_volume_phase(struct td_table_row *row, const struct td_table_column *column)
{
    bool is_deleted =
        td_table_text(row->object, "metadata.deletionTimestamp", TD_STR_EMPTY).len > 0;
    return is_deleted ? td_table_string(row, TD_STR("Terminating")) : td_cell_text(row, column);
}

struct td_json *td_cell_volume_claim(struct td_table_row *row, const struct td_table_column *column)
{
    const struct td_json *claim = td_json_get_path(row->object, column->path);
    td_str ns = td_json_text(claim, "namespace");
    td_str name = td_json_text(claim, "name");
    if (!td_json_is(claim, TD_JSON_TYPE_OBJECT)) {
        return td_table_string(row, TD_STR_EMPTY);
    }
    return td_table_string(
        row, td_arena_format(row->arena, "%.*s/%.*s", TD_STR_ARG(ns), TD_STR_ARG(name)));
}

struct td_json *td_cell_volume_class(struct td_table_row *row, const struct td_table_column *column)
{
    const struct td_json *annotations = td_json_get_path(row->object, "metadata.annotations");
    const struct td_json *old =
        td_json_get(annotations, TD_STR("volume.beta.kubernetes.io/storage-class"));
    return td_json_is(old, TD_JSON_TYPE_STRING) ? td_table_string(row, old->text)
                                                : td_cell_text(row, column);
}
