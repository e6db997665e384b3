/*
 * Nodes by name with the sums of their pods' requests; a pod that moves or changes size takes its
 * old amounts away and adds the new ones.
 */
#include "local/nodes/node_index.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/text.h"
#include "kube/meta.h"
#include "kube/objectkey.h"
#include "kube/podresources.h"
#include "kube/quantity/quantity.h"
#include "local/kinds/condition.h"
#include "model/pod.h"

#define INDEX_PODS_MAX TD_COLLECTION_OBJECTS_MAX

/* Bound pods of one controller on one node. */
struct siblings {
    td_str uid; /* owned, behind the structure */
    size_t count;
};

/* ---- Amounts ---- */

static int64_t amount_value(td_str name, const struct td_quantity *quantity)
{
    return td_str_equal(name, TD_STR("cpu")) ? td_quantity_milli(quantity)
                                             : td_quantity_value(quantity);
}

static int64_t amount_add(int64_t a, int64_t b)
{
    int64_t sum;
    if (__builtin_add_overflow(a, b, &sum)) {
        return b > 0 ? INT64_MAX : INT64_MIN;
    }
    return sum;
}

static void amounts_from(struct td_arena *arena, const struct td_resource_list *list,
                         struct td_node_amount **ret, size_t *ret_count)
{
    struct td_node_amount *items = td_arena_array(arena, struct td_node_amount, list->count);
    for (size_t i = 0; i < list->count; i++) {
        items[i].name = list->items[i].name;
        items[i].value = amount_value(items[i].name, &list->items[i].quantity);
    }
    *ret = items;
    *ret_count = list->count;
}

int td_pod_amounts(struct td_arena *arena, const struct td_json *pod, bool uses_status,
                   struct td_node_amount **ret, size_t *ret_count)
{
    const struct td_pod_resource_options options = {
        .use_status_resources = uses_status,
        .in_place_pod_level_resources = uses_status,
    };
    struct td_resource_list list;
    int code = td_pod_requests(arena, pod, &options, &list, NULL);
    if (code == TD_OK) {
        amounts_from(arena, &list, ret, ret_count);
    }
    return code;
}

static int64_t amounts_get(const struct td_node_amount *items, size_t count, td_str name)
{
    for (size_t i = 0; i < count; i++) {
        if (td_str_equal(items[i].name, name)) {
            return items[i].value;
        }
    }
    return 0;
}

/* The statuses' allocatedResources in the place of the spec's requests: what the kubelet gave. */
static void allocated_list(struct td_arena *arena, struct td_json *containers,
                           const struct td_json *statuses)
{
    td_auto_map given = td_map_capped(TD_POD_CONTAINERS_MAX);
    for (const struct td_json *s = td_json_first_item(statuses); s; s = s->next) {
        struct td_json *allocated = td_json_get(s, TD_STR("allocatedResources"));
        if (allocated) {
            (void)td_map_put(&given, td_json_text(s, "name"), allocated);
        }
    }
    struct td_json *c = td_json_first_item(containers);
    for (; c && given.count > 0; c = c->next) {
        const struct td_json *allocated = td_map_get(&given, td_json_text(c, "name"));
        if (allocated) {
            td_json_set_copy(arena, td_json_ensure_object(arena, c, TD_STR("resources")),
                             TD_STR("requests"), allocated);
        }
    }
}

static void pod_allocated(struct td_arena *arena, const struct td_json *pod, int64_t *ret_cpu,
                          int64_t *ret_memory)
{
    struct td_json *given = td_json_copy(arena, pod, false);
    struct td_json *spec = td_json_get(given, TD_STR("spec"));
    const struct td_json *status = td_json_get(given, TD_STR("status"));
    allocated_list(arena, td_json_get(spec, TD_STR("containers")),
                   td_json_get(status, TD_STR("containerStatuses")));
    allocated_list(arena, td_json_get(spec, TD_STR("initContainers")),
                   td_json_get(status, TD_STR("initContainerStatuses")));
    const struct td_json *whole = td_json_get(status, TD_STR("allocatedResources"));
    if (whole && td_json_get(spec, TD_STR("resources"))) {
        td_json_set_copy(arena, td_json_get(spec, TD_STR("resources")), TD_STR("requests"), whole);
    }
    struct td_node_amount *items;
    size_t count;
    if (td_pod_amounts(arena, given, false, &items, &count) == TD_OK) {
        *ret_cpu = amounts_get(items, count, TD_STR("cpu"));
        *ret_memory = amounts_get(items, count, TD_STR("memory"));
    }
}

/* ---- Nodes ---- */

static struct td_node *node_ensure(struct td_node_index *index, td_str name)
{
    struct td_node *node = td_map_get(&index->nodes, name);
    if (node) {
        return node;
    }
    node = td_alloc_zero(1, sizeof(*node) + name.len);
    node->name = td_text_behind(node + 1, name);
    td_arena_init(&node->arena, TD_TREE_ARENA_BYTES_MAX);
    td_map_init(&node->controllers, INDEX_PODS_MAX);
    if (td_map_put(&index->nodes, node->name, node) != TD_OK) {
        td_arena_done(&node->arena);
        td_map_done(&node->controllers);
        td_free(node);
        return NULL;
    }
    return node;
}

static void node_free(struct td_node *node)
{
    for (struct td_map_walk at = {.map = &node->controllers}; td_map_step(&at);) {
        td_free(at.value);
    }
    td_map_done(&node->controllers);
    td_arena_done(&node->arena);
    td_free(node);
}

/* A node that is not there and that no pod names. */
static void node_release(struct td_node_index *index, struct td_node *node)
{
    if (!node->exists && !node->first) {
        (void)td_map_remove(&index->nodes, node->name); /* it is there */
        node_free(node);
    }
}

size_t td_node_resource(const struct td_node *node, td_str name)
{
    size_t i = 0;
    while (i < node->resource_count && !td_str_equal(node->allocatable[i].name, name)) {
        i++;
    }
    return i;
}

int64_t td_node_offers(const struct td_node *node, td_str name)
{
    size_t place = td_node_resource(node, name);
    return place < node->resource_count ? node->allocatable[place].value : 0;
}

bool td_node_has_taint(const struct td_node *node, td_str key, td_str effect)
{
    for (size_t i = 0; i < node->taint_count; i++) {
        if (td_str_equal(node->taints[i].effect, effect) &&
            (key.len == 0 || td_str_equal(node->taints[i].key, key))) {
            return true;
        }
    }
    return false;
}

static void node_use(struct td_node *node, const struct td_bound_pod *pod, bool adds)
{
    for (size_t i = 0; i < pod->request_count; i++) {
        size_t place = td_node_resource(node, pod->requests[i].name);
        if (place < node->resource_count) {
            int64_t value = pod->requests[i].value;
            node->used[place] = amount_add(node->used[place], adds ? value : -value);
        }
    }
}

static void node_read_taints(struct td_node *node, const struct td_json *spec)
{
    const struct td_json *list = td_json_get(spec, TD_STR("taints"));
    struct td_taint *taints =
        td_arena_array(&node->arena, struct td_taint, td_json_item_count(list));
    node->taint_count = 0;
    node->taints = taints;
    for (const struct td_json *t = td_json_first_item(list); t; t = t->next) {
        taints[node->taint_count++] = (struct td_taint){
            .key = td_json_text(t, "key"),
            .value = td_json_text(t, "value"),
            .effect = td_json_text(t, "effect"),
        };
    }
}

static void node_read_resources(struct td_node *node, const struct td_json *status)
{
    struct td_resource_list list = {.count = 0};
    struct td_node_amount *items = NULL;
    size_t count = 0;
    const struct td_json *allocatable = td_json_get(status, TD_STR("allocatable"));
    allocatable = allocatable ? allocatable : td_json_get(status, TD_STR("capacity"));
    if (td_resource_list_decode(&node->arena, allocatable, &list, NULL) == TD_OK) {
        amounts_from(&node->arena, &list, &items, &count);
    }
    size_t kept = 0;
    node->pods_max = 0;
    for (size_t i = 0; i < count; i++) {
        if (td_str_equal(items[i].name, TD_STR("pods"))) {
            node->pods_max = items[i].value;
        } else if (kept < TD_NODE_RESOURCES_MAX) {
            items[kept++] = items[i];
        }
    }
    node->allocatable = items;
    node->resource_count = kept;
    node->used = td_arena_array(&node->arena, int64_t, kept);
    for (const struct td_bound_pod *p = node->first; p; p = p->next) {
        if (!p->is_over) {
            node_use(node, p, true);
        }
    }
}

static td_str node_address(const struct td_json *status)
{
    const struct td_json *list = td_json_get(status, TD_STR("addresses"));
    for (const struct td_json *a = td_json_first_item(list); a; a = a->next) {
        if (td_str_equal(td_json_text(a, "type"), TD_STR("InternalIP"))) {
            return td_json_text(a, "address");
        }
    }
    return TD_STR_EMPTY;
}

bool td_node_is_ours(const struct td_json *node)
{
    const struct td_json *annotations =
        td_json_get(td_json_get(node, TD_STR("metadata")), TD_STR("annotations"));
    return td_str_equal(
        td_json_get_str(annotations, TD_STR(TD_NODE_OWNER_ANNOTATION), TD_STR_EMPTY),
        TD_STR(TD_NODE_OWNER));
}

static void node_read(struct td_node *node, const struct td_json *object)
{
    td_arena_reset(&node->arena);
    const struct td_json *copy = td_json_copy(&node->arena, object, true);
    const struct td_json *metadata = td_json_get(copy, TD_STR("metadata"));
    const struct td_json *spec = td_json_get(copy, TD_STR("spec"));
    const struct td_json *status = td_json_get(copy, TD_STR("status"));
    node->labels = td_labels_from_json(&node->arena, td_json_get(metadata, TD_STR("labels")));
    node->is_ours = td_node_is_ours(copy);
    node->is_unschedulable = td_json_get_bool(spec, TD_STR("unschedulable"), false);
    node->is_ready = td_condition_is(status, TD_STR("Ready"), TD_STR("True"));
    node->is_unknown = td_condition_is(status, TD_STR("Ready"), TD_STR("Unknown"));
    node->address = node_address(status);
    node_read_taints(node, spec);
    node_read_resources(node, status);
}

static void node_forget(struct td_node *node)
{
    node->exists = false;
    node->is_ours = false;
    node->is_lost = false;
    node->is_ready = false;
    node->is_unknown = false;
    node->is_pressed = false;
    node->version = 0;
    node->probed = 0;
    node->lease = (struct td_node_lease){.version = 0};
    node->labels = (struct td_labels){.count = 0};
    node->address = TD_STR_EMPTY;
    node->taint_count = 0;
    node->resource_count = 0;
    node->used = NULL;
    td_arena_reset(&node->arena);
}

bool td_node_index_set_node(struct td_node_index *index, td_str name, const struct td_json *object)
{
    struct td_node *node = object ? node_ensure(index, name) : td_map_get(&index->nodes, name);
    if (!node) {
        return false;
    }
    index->node_count -= node->exists ? 1 : 0;
    index->own_count -= node->exists && node->is_ours ? 1 : 0;
    if (!object) {
        node_forget(node);
        node_release(index, node);
        return false;
    }
    node->exists = true;
    node_read(node, object);
    index->node_count++;
    index->own_count += node->is_ours ? 1 : 0;
    return true;
}

struct td_node *td_node_index_node(const struct td_node_index *index, td_str name)
{
    return td_map_get(&index->nodes, name);
}

/* ---- Pods ---- */

size_t td_node_siblings(const struct td_node *node, td_str controller_uid)
{
    const struct siblings *siblings =
        controller_uid.len > 0 ? td_map_get(&node->controllers, controller_uid) : NULL;
    return siblings ? siblings->count : 0;
}

static void node_count_sibling(struct td_node *node, td_str uid, bool adds)
{
    if (uid.len == 0) {
        return;
    }
    struct siblings *siblings = td_map_get(&node->controllers, uid);
    if (!siblings && adds) {
        siblings = td_alloc_zero(1, sizeof(*siblings) + uid.len);
        siblings->uid = td_text_behind(siblings + 1, uid);
        if (td_map_put(&node->controllers, siblings->uid, siblings) != TD_OK) {
            td_free(siblings);
            return; /* not spread any better than others */
        }
    }
    if (!siblings) {
        return;
    }
    siblings->count += adds ? 1 : (size_t)-1;
    if (siblings->count == 0) {
        (void)td_map_remove(&node->controllers, siblings->uid); /* it is there */
        td_free(siblings);
    }
}

/* Puts the pod's weight on its node, or takes it off. */
static void pod_weigh(struct td_bound_pod *pod, bool adds)
{
    struct td_node *node = pod->node;
    if (pod->is_over) {
        return;
    }
    node_use(node, pod, adds);
    node->pod_count += adds ? 1 : -1;
    node->allocated_cpu =
        amount_add(node->allocated_cpu, adds ? pod->allocated_cpu : -pod->allocated_cpu);
    node->allocated_memory =
        amount_add(node->allocated_memory, adds ? pod->allocated_memory : -pod->allocated_memory);
    node->deferred_count += !pod->is_deferred ? 0 : adds ? 1 : (size_t)-1;
    node_count_sibling(node, pod->controller_uid, adds);
}

static void pod_link(struct td_bound_pod *pod)
{
    struct td_node *node = pod->node;
    pod->previous = node->last;
    *(node->last ? &node->last->next : &node->first) = pod;
    node->last = pod;
}

static void pod_unlink(struct td_bound_pod *pod)
{
    struct td_node *node = pod->node;
    *(pod->previous ? &pod->previous->next : &node->first) = pod->next;
    *(pod->next ? &pod->next->previous : &node->last) = pod->previous;
}

/* Bytes of all texts of the record. */
static size_t pod_text_bytes(td_str key, const struct td_meta *meta, td_str controller,
                             const struct td_node_amount *amounts, size_t count)
{
    size_t bytes = key.len + meta->uid.len + controller.len;
    for (size_t i = 0; i < count; i++) {
        bytes += amounts[i].name.len;
    }
    return bytes;
}

static struct td_bound_pod *pod_new(struct td_arena *arena, td_str key, const struct td_json *pod)
{
    struct td_meta meta;
    struct td_node_amount *amounts = NULL;
    size_t count = 0;
    if (td_meta_decode(arena, pod, &meta, NULL) != TD_OK) {
        return NULL;
    }
    if (td_pod_amounts(arena, pod, true, &amounts, &count) != TD_OK) {
        count = 0; /* what cannot be read asks for nothing */
    }
    const struct td_owner_reference *owner = td_meta_controller(&meta);
    td_str controller = owner ? owner->uid : TD_STR_EMPTY;
    struct td_bound_pod *record =
        td_alloc_zero(1, sizeof(*record) + count * sizeof(*amounts) +
                             pod_text_bytes(key, &meta, controller, amounts, count));
    struct td_node_amount *requests = (struct td_node_amount *)(record + 1);
    char *at = (char *)(requests + count);
    record->key = td_text_place(&at, key);
    record->ns = td_object_key_read(record->key).namespace;
    record->name = td_object_key_read(record->key).name;
    record->uid = td_text_place(&at, meta.uid);
    record->controller_uid = td_text_place(&at, controller);
    for (size_t i = 0; i < count; i++) {
        requests[i].name = td_text_place(&at, amounts[i].name);
        requests[i].value = amounts[i].value;
    }
    record->requests = requests;
    record->request_count = count;
    pod_allocated(arena, pod, &record->allocated_cpu, &record->allocated_memory);
    const struct td_json *status = td_json_get(pod, TD_STR("status"));
    record->is_over = td_pod_tree_is_over(pod);
    const struct td_json *pending = td_condition_find(status, TD_STR("PodResizePending"));
    record->is_deferred = td_str_equal(td_json_text(pending, "reason"), TD_STR("Deferred"));
    return record;
}

static bool pod_is_smaller(const struct td_bound_pod *after, const struct td_bound_pod *before)
{
    if (after->node != before->node || (after->is_over && !before->is_over) ||
        after->allocated_cpu < before->allocated_cpu ||
        after->allocated_memory < before->allocated_memory) {
        return true;
    }
    for (size_t i = 0; i < before->request_count; i++) {
        if (amounts_get(after->requests, after->request_count, before->requests[i].name) <
            before->requests[i].value) {
            return true;
        }
    }
    return false;
}

/* Addresses that pods got before a restart are not given again. */
static void index_note_address(struct td_node_index *index, const struct td_json *pod)
{
    td_str text = td_json_text(td_json_get(pod, TD_STR("status")), "podIP");
    uint32_t address = 0;
    size_t from = 0;
    for (int part = 0; part < 4; part++) {
        size_t dot = td_str_find(text, '.', from);
        int64_t number;
        if (!td_str_to_int64(td_str_slice(text, from, dot), &number) || number < 0 ||
            number > 255) {
            return;
        }
        address = address << 8 | (uint32_t)number;
        from = dot + 1;
    }
    if (address > index->last_address && (address & TD_POD_ADDRESS_MASK) == TD_POD_ADDRESS_BASE) {
        index->last_address = address;
    }
}

static void pod_drop(struct td_node_index *index, struct td_bound_pod *pod)
{
    struct td_node *node = pod->node;
    pod_weigh(pod, false);
    pod_unlink(pod);
    td_free(pod);
    node_release(index, node);
}

bool td_node_index_set_pod(struct td_node_index *index, td_str key, uint64_t version,
                           const struct td_json *pod)
{
    struct td_bound_pod *before = td_map_get(&index->pods, key);
    td_str name = td_json_text(td_json_get(pod, TD_STR("spec")), "nodeName");
    if (before && before->version == version && pod) {
        return false;
    }
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_bound_pod *after = pod && name.len > 0 ? pod_new(&arena, key, pod) : NULL;
    struct td_node *node = after ? node_ensure(index, name) : NULL;
    if (after && (!node || td_map_put(&index->pods, after->key, after) != TD_OK)) {
        td_free(after);
        after = NULL; /* at the cap of objects */
    }
    bool is_freed = before && !after && !before->is_over;
    if (after) {
        after->version = version;
        after->node = node;
        is_freed = before && pod_is_smaller(after, before);
        pod_link(after);
        pod_weigh(after, true);
        index_note_address(index, pod);
    } else if (before) {
        (void)td_map_remove(&index->pods, key); /* it is there */
    }
    if (before) {
        pod_drop(index, before);
    }
    return is_freed;
}

struct td_bound_pod *td_node_index_pod(const struct td_node_index *index, td_str key)
{
    return td_map_get(&index->pods, key);
}

void td_node_index_init(struct td_node_index *index)
{
    *index = (struct td_node_index){.last_address = TD_POD_ADDRESS_BASE};
    td_map_init(&index->nodes, INDEX_PODS_MAX);
    td_map_init(&index->pods, INDEX_PODS_MAX);
}

void td_node_index_done(struct td_node_index *index)
{
    for (struct td_map_walk at = {.map = &index->pods}; td_map_step(&at);) {
        td_free(at.value);
    }
    for (struct td_map_walk at = {.map = &index->nodes}; td_map_step(&at);) {
        node_free(at.value);
    }
    td_map_done(&index->pods);
    td_map_done(&index->nodes);
}
