/* The trees of a Node and of its Lease, and the few members that heartbeats change. */
#include "local/nodes/node_object.h"

#include "base/timefmt.h"
#include "kube/quantity/quantity.h"
#include "local/api/write.h"
#include "local/kinds/condition.h"
#include "local/nodes/node_index.h"

#define NODE_PREFIX "node-"
#define NODE_LEASE_SECONDS 40

static const char node_text[] =
    "{\"kind\":\"Node\",\"apiVersion\":\"v1\",\"metadata\":{\"labels\":{"
    "\"beta.kubernetes.io/arch\":\"amd64\",\"beta.kubernetes.io/os\":\"linux\","
    "\"kubernetes.io/arch\":\"amd64\",\"kubernetes.io/os\":\"linux\"},"
    "\"annotations\":{\"" TD_NODE_OWNER_ANNOTATION "\":\"" TD_NODE_OWNER "\"}},\"spec\":{}}";

static const char node_status_text[] =
    "{\"capacity\":{\"cpu\":\"8\",\"ephemeral-storage\":\"256Gi\",\"memory\":\"32Gi\","
    "\"pods\":\"110\"},"
    "\"nodeInfo\":{\"machineID\":\"\",\"systemUUID\":\"\",\"bootID\":\"\",\"kernelVersion\":\"\","
    "\"osImage\":\"tandem\",\"containerRuntimeVersion\":\"tandem://1\","
    "\"kubeletVersion\":\"v1.36.3+tandem\",\"kubeProxyVersion\":\"\","
    "\"operatingSystem\":\"linux\",\"architecture\":\"amd64\"},"
    "\"daemonEndpoints\":{\"kubeletEndpoint\":{\"Port\":0}}}";

struct td_node_size td_node_size_usual(int64_t count)
{
    return (struct td_node_size){
        .count = count, .cpu_milli = 8000, .memory_bytes = INT64_C(32) << 30, .pods = 110};
}

/* "8", "32Gi" */
static void node_set_capacity(struct td_arena *arena, struct td_json *status,
                              const struct td_node_size *size)
{
    struct td_json *capacity = td_json_ensure_object(arena, status, TD_STR("capacity"));
    struct td_quantity cpu = td_quantity_new_milli(size->cpu_milli, TD_QUANTITY_DECIMAL_SI);
    struct td_quantity memory = td_quantity_new(size->memory_bytes, TD_QUANTITY_BINARY_SI);
    td_json_set_str(arena, capacity, TD_STR("cpu"), td_quantity_text(arena, &cpu));
    td_json_set_str(arena, capacity, TD_STR("ephemeral-storage"), TD_STR("256Gi"));
    td_json_set_str(arena, capacity, TD_STR("memory"), td_quantity_text(arena, &memory));
    td_json_set_str(arena, capacity, TD_STR("pods"),
                    td_arena_format(arena, "%lld", (long long)size->pods));
}

struct td_json *td_node_object_new(struct td_arena *arena, size_t number,
                                   const struct td_node_size *size)
{
    struct td_json *node = td_json_parse_own(arena, node_text);
    struct td_json *metadata = td_json_get(node, TD_STR("metadata"));
    td_str name = td_arena_format(arena, NODE_PREFIX "%zu", number);
    td_json_set_str(arena, metadata, TD_STR("name"), name);
    td_json_set_str(arena, td_json_get(metadata, TD_STR("labels")),
                    TD_STR("kubernetes.io/hostname"), name);
    struct td_json *status = td_json_ensure_object(arena, node, TD_STR("status"));
    node_set_capacity(arena, status, size);
    struct td_json *addresses = td_json_new_array(arena);
    struct td_json *address = td_json_new_object(arena);
    td_json_set_str(arena, address, TD_STR("type"), TD_STR("InternalIP"));
    td_json_set_str(arena, address, TD_STR("address"),
                    td_arena_format(arena, "172.18.%zu.%zu", number / 250, number % 250 + 1));
    td_json_append(addresses, address);
    td_json_set(arena, status, TD_STR("addresses"), addresses);
    return node;
}

size_t td_node_object_number(td_str name)
{
    int64_t number;
    size_t prefix = sizeof(NODE_PREFIX) - 1;
    bool is_one = td_str_starts_with(name, TD_STR(NODE_PREFIX)) &&
                  td_str_to_int64(td_str_slice(name, prefix, name.len), &number) && number > 0;
    return is_one ? (size_t)number : 0;
}

/* ---- Status ---- */

static bool node_fill(struct td_arena *arena, struct td_json *node, struct td_json *status)
{
    const struct td_json *wanted = td_json_parse_own(arena, node_status_text);
    bool is_changed = false;
    for (const struct td_json *m = td_json_first_member(wanted); m; m = m->next) {
        if (!td_json_get(status, m->key)) {
            td_json_set_copy(arena, status, m->key, m);
            is_changed = true;
        }
    }
    if (!td_json_get(status, TD_STR("allocatable"))) {
        td_json_set_copy(arena, status, TD_STR("allocatable"),
                         td_json_get(status, TD_STR("capacity")));
        is_changed = true;
    }
    struct td_json *addresses = td_json_ensure_array(arena, status, TD_STR("addresses"));
    if (addresses->count < 2) {
        struct td_json *host = td_json_new_object(arena);
        td_json_set_str(arena, host, TD_STR("type"), TD_STR("Hostname"));
        td_json_set_str(arena, host, TD_STR("address"),
                        td_json_text(td_json_get(node, TD_STR("metadata")), "name"));
        td_json_append(addresses, host);
        is_changed = true;
    }
    return is_changed;
}

static bool node_set_condition(struct td_arena *arena, struct td_json *status,
                               const char *const texts[4], td_time now, bool is_heartbeat)
{
    td_str type = td_str_from(texts[0]);
    struct td_json *old = td_condition_find(status, type);
    if (old && !is_heartbeat && td_condition_is(status, type, td_str_from(texts[1]))) {
        return false;
    }
    const struct td_condition condition = {
        .type = type,
        .status = td_str_from(texts[1]),
        .reason = td_str_from(texts[2]),
        .message = td_str_from(texts[3]),
    };
    struct td_instant instant = td_time_to_instant(now);
    (void)td_condition_set(arena, status, &condition, instant); /* the heartbeat is new anyway */
    td_json_set(arena, td_condition_find(status, type), TD_STR("lastHeartbeatTime"),
                td_meta_time(arena, instant));
    return true;
}

bool td_node_object_complete(struct td_arena *arena, struct td_json *node,
                             const struct td_node_state *state)
{
    static const char *const rows[][4] = {
        {"MemoryPressure", "False", "KubeletHasSufficientMemory",
         "kubelet has sufficient memory available"},
        {"DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"},
        {"PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"},
        {"Ready", "True", "KubeletReady", "kubelet is posting ready status"},
    };
    static const char *const pressed[4] = {"MemoryPressure", "True", "KubeletHasInsufficientMemory",
                                           "kubelet has insufficient memory available"};
    struct td_json *status = td_json_ensure_object(arena, node, TD_STR("status"));
    bool is_changed = node_fill(arena, node, status);
    for (size_t i = 0; i < TD_COUNT(rows); i++) {
        is_changed |=
            node_set_condition(arena, status, i == 0 && state->is_pressed ? pressed : rows[i],
                               state->now, state->is_heartbeat);
    }
    return is_changed;
}

bool td_node_object_silence(struct td_arena *arena, struct td_json *node, td_time now)
{
    static const char *const types[] = {"Ready", "MemoryPressure", "DiskPressure", "PIDPressure"};
    struct td_json *status = td_json_ensure_object(arena, node, TD_STR("status"));
    struct td_instant instant = td_time_to_instant(now);
    bool is_changed = false;
    for (size_t i = 0; i < TD_COUNT(types); i++) {
        struct td_json *old = td_condition_find(status, td_str_from(types[i]));
        if (old && td_condition_is(status, td_str_from(types[i]), TD_STR("Unknown"))) {
            continue;
        }
        const struct td_json *heartbeat = td_json_get(old, TD_STR("lastHeartbeatTime"));
        const struct td_condition condition = {
            .type = td_str_from(types[i]),
            .status = TD_STR("Unknown"),
            .reason = old ? TD_STR("NodeStatusUnknown") : TD_STR("NodeStatusNeverUpdated"),
            .message = old ? TD_STR("Kubelet stopped posting node status.")
                           : TD_STR("Kubelet never posted node status."),
        };
        struct td_json *kept = heartbeat ? td_json_copy(arena, heartbeat, false) : NULL;
        is_changed |= td_condition_set(arena, status, &condition, instant);
        td_json_set(arena, td_condition_find(status, condition.type), TD_STR("lastHeartbeatTime"),
                    kept ? kept : td_meta_time(arena, instant));
    }
    return is_changed;
}

/* ---- Taints ---- */

/* Its place in the list, or the count. */
static size_t node_find_taint(const struct td_json *list, td_str key, td_str effect)
{
    size_t place = 0;
    for (const struct td_json *t = td_json_first_item(list); t; t = t->next) {
        if (td_str_equal(td_json_text(t, "key"), key) &&
            td_str_equal(td_json_text(t, "effect"), effect)) {
            break;
        }
        place++;
    }
    return place;
}

bool td_node_object_add_taint(struct td_arena *arena, struct td_json *node, td_str key,
                              td_str effect, td_time now)
{
    struct td_json *spec = td_json_ensure_object(arena, node, TD_STR("spec"));
    struct td_json *list = td_json_ensure_array(arena, spec, TD_STR("taints"));
    if (node_find_taint(list, key, effect) < list->count) {
        return false;
    }
    struct td_json *taint = td_json_new_object(arena);
    td_json_set_str(arena, taint, TD_STR("key"), key);
    td_json_set_str(arena, taint, TD_STR("effect"), effect);
    td_json_set(arena, taint, TD_STR("timeAdded"), td_meta_time(arena, td_time_to_instant(now)));
    td_json_append(list, taint);
    return true;
}

bool td_node_object_remove_taint(struct td_json *node, td_str key, td_str effect)
{
    struct td_json *spec = td_json_get(node, TD_STR("spec"));
    struct td_json *list = td_json_get(spec, TD_STR("taints"));
    size_t place = td_json_is(list, TD_JSON_TYPE_ARRAY) ? node_find_taint(list, key, effect) : 0;
    if (!td_json_is(list, TD_JSON_TYPE_ARRAY) || place == list->count) {
        return false;
    }
    td_json_remove_at(list, place);
    if (list->count == 0) {
        (void)td_json_remove(spec, TD_STR("taints")); /* it is there */
    }
    return true;
}

bool td_node_object_follow(struct td_arena *arena, struct td_json *node, td_time now)
{
    static const struct {
        const char *condition;
        const char *status;
        const char *key;
    } rows[] = {
        {"Ready", "False", TD_TAINT_NOT_READY},
        {"Ready", "Unknown", TD_TAINT_UNREACHABLE},
        {"MemoryPressure", "True", TD_TAINT_MEMORY_PRESSURE},
        {"DiskPressure", "True", "node.kubernetes.io/disk-pressure"},
        {"PIDPressure", "True", "node.kubernetes.io/pid-pressure"},
        {"NetworkUnavailable", "True", "node.kubernetes.io/network-unavailable"},
    };
    const struct td_json *status = td_json_get(node, TD_STR("status"));
    const td_str effect = TD_STR("NoSchedule");
    bool is_changed = false;
    for (size_t i = 0; i < TD_COUNT(rows); i++) {
        td_str key = td_str_from(rows[i].key);
        bool is_wanted =
            td_condition_is(status, td_str_from(rows[i].condition), td_str_from(rows[i].status));
        is_changed |= is_wanted ? td_node_object_add_taint(arena, node, key, effect, now)
                                : td_node_object_remove_taint(node, key, effect);
    }
    bool is_cordoned =
        td_json_get_bool(td_json_get(node, TD_STR("spec")), TD_STR("unschedulable"), false);
    td_str cordon = TD_STR(TD_TAINT_UNSCHEDULABLE);
    is_changed |= is_cordoned ? td_node_object_add_taint(arena, node, cordon, effect, now)
                              : td_node_object_remove_taint(node, cordon, effect);
    return is_changed;
}

/* ---- Leases ---- */

struct td_json *td_node_lease_new(struct td_arena *arena, const struct td_json *node)
{
    const struct td_json *metadata = td_json_get(node, TD_STR("metadata"));
    td_str name = td_json_text(metadata, "name");
    struct td_json *lease = td_json_parse_own(
        arena, "{\"kind\":\"Lease\",\"apiVersion\":\"coordination.k8s.io/v1\",\"metadata\":{"
               "\"namespace\":\"kube-node-lease\",\"ownerReferences\":[{\"apiVersion\":\"v1\","
               "\"kind\":\"Node\"}]},\"spec\":{}}");
    struct td_json *own = td_json_get(lease, TD_STR("metadata"));
    struct td_json *reference = td_json_at(td_json_get(own, TD_STR("ownerReferences")), 0);
    struct td_json *spec = td_json_get(lease, TD_STR("spec"));
    td_json_set_str(arena, own, TD_STR("name"), name);
    td_json_set_str(arena, reference, TD_STR("name"), name);
    td_json_set_str(arena, reference, TD_STR("uid"), td_json_text(metadata, "uid"));
    td_json_set_str(arena, spec, TD_STR("holderIdentity"), name);
    td_json_set_int64(arena, spec, TD_STR("leaseDurationSeconds"), NODE_LEASE_SECONDS);
    return lease;
}

void td_node_lease_renew(struct td_arena *arena, struct td_json *lease, td_time now)
{
    td_json_set_str(arena, td_json_ensure_object(arena, lease, TD_STR("spec")), TD_STR("renewTime"),
                    td_time_text(arena, td_time_to_instant(now), 6));
}
