/*
 * What a pod asks for, with the answers of upstream's component-helpers.
 *
 * Upstream works on maps from resource name to quantity. Every rule of it looks at one resource at
 * a time, so this file first reads each container's effective list, collects the names of all lists
 * into one sorted table with a slot each, and then folds the lists into the slots. Each entry costs
 * one binary search, however many containers and names a pod brings.
 *
 * A slot holds three amounts: the total of what runs together (containers and sidecars), the sum of
 * the sidecars started so far, and the most that is needed while an init container runs. An init
 * container needs its own list plus the sidecars before it. Upstream also compares the resources
 * that only those sidecars have; that changes nothing, because the sum was already compared when
 * the last sidecar joined it, and is left out here.
 */
#include "kube/podresources.h"

#include <stdlib.h>

#include "base/error.h"

#define HUGE_PAGES_PREFIX TD_STR("hugepages-")

/* Is a list requests or limits? */
enum list_kind { LIST_REQUESTS, LIST_LIMITS };

struct pod_part {
    struct td_resource_list list; /* effective */
    bool is_init;
    bool is_sidecar; /* an init container that keeps running */
};

struct status_entry {
    td_str name;
    size_t order;
    const struct td_json *status;
};

struct pod_view {
    const struct td_json *spec;
    const struct td_json *status;
    const struct td_pod_resource_options *options;
    enum list_kind kind;
    bool is_resize_infeasible;
    struct td_resource_list non_missing;
    struct status_entry *statuses; /* sorted by name, later ones first */
    size_t status_count;
};

struct amount {
    bool is_set;
    struct td_quantity quantity;
};

struct slot {
    td_str name;
    struct amount total;
    struct amount sidecars;
    struct amount init;
};

struct slots {
    struct slot *items; /* sorted by name */
    size_t count;
};

/* Lists of resources. */

int td_resource_list_decode(struct td_arena *arena, const struct td_json *object,
                            struct td_resource_list *ret, struct td_error *err)
{
    if (!object || object->type == TD_JSON_TYPE_NULL) {
        *ret = (struct td_resource_list){.items = NULL, .count = 0};
        return TD_OK;
    }
    if (object->type != TD_JSON_TYPE_OBJECT) {
        return td_error_set(err, TD_INVALID, "a list of resources must be an object");
    }
    struct td_resource_amount *items =
        td_arena_array(arena, struct td_resource_amount, object->count);
    size_t count = 0;
    for (const struct td_json *member = td_json_first_member(object); member;
         member = member->next) {
        items[count].name = member->key;
        int code = td_quantity_from_json(arena, member, &items[count].quantity, err);
        if (code != TD_OK) {
            return td_error_wrap(err, code, "resource '%.*s'", TD_STR_ARG(member->key));
        }
        count++;
    }
    qsort(items, count, sizeof(*items), td_str_compare_items);
    *ret = (struct td_resource_list){.items = items, .count = count};
    return td_arena_check(arena, err);
}

const struct td_quantity *td_resource_list_get(const struct td_resource_list *resources,
                                               td_str name)
{
    size_t at = td_str_place(resources->items, resources->count, sizeof(resources->items[0]), name);
    bool is_found = at < resources->count && td_str_equal(resources->items[at].name, name);
    return is_found ? &resources->items[at].quantity : NULL;
}

struct td_json *td_resource_list_json(struct td_arena *arena, const struct td_resource_list *list)
{
    struct td_json *object = td_json_new_object(arena);
    for (size_t i = 0; i < list->count; i++) {
        td_str text = td_quantity_text(arena, &list->items[i].quantity);
        td_json_set_str(arena, object, list->items[i].name, text);
    }
    return object;
}

/* The larger quantity of each name that either list has; a's on a tie. */
static struct td_resource_list resources_max(struct td_arena *arena,
                                             const struct td_resource_list *a,
                                             const struct td_resource_list *b)
{
    struct td_resource_amount *items =
        td_arena_array(arena, struct td_resource_amount, a->count + b->count);
    size_t count = 0;
    size_t i = 0;
    size_t j = 0;
    while (i < a->count || j < b->count) {
        int order = 0;
        if (i < a->count && j < b->count) {
            order = td_str_compare(a->items[i].name, b->items[j].name);
        } else {
            order = i < a->count ? -1 : 1;
        }
        bool takes_b = order > 0 || (order == 0 && td_quantity_compare(&b->items[j].quantity,
                                                                       &a->items[i].quantity) > 0);
        items[count++] = takes_b ? b->items[j] : a->items[i];
        i += order <= 0;
        j += order >= 0;
    }
    return (struct td_resource_list){.items = items, .count = count};
}

/* The list with those defaults whose names it lacks. A default counts as added to zero: it does not
 * keep its text. */
static struct td_resource_list resources_fill(struct td_arena *arena,
                                              const struct td_resource_list *list,
                                              const struct td_resource_list *defaults)
{
    struct td_resource_amount *items =
        td_arena_array(arena, struct td_resource_amount, list->count + defaults->count);
    size_t count = 0;
    for (size_t i = 0; i < list->count; i++) {
        items[count++] = list->items[i];
    }
    for (size_t i = 0; i < defaults->count; i++) {
        if (!td_resource_list_get(list, defaults->items[i].name)) {
            items[count] = defaults->items[i];
            items[count++].quantity.text = TD_STR_EMPTY;
        }
    }
    qsort(items, count, sizeof(*items), td_str_compare_items);
    return (struct td_resource_list){.items = items, .count = count};
}

/* Reading the pod. */

static td_str list_name(enum list_kind kind)
{
    return kind == LIST_REQUESTS ? TD_STR("requests") : TD_STR("limits");
}

/* The requests or limits below a "resources" object. */
static int resources_of(struct td_arena *arena, const struct td_json *resources,
                        enum list_kind kind, struct td_resource_list *ret, struct td_error *err)
{
    td_str name = list_name(kind);
    int code = td_resource_list_decode(arena, td_json_get(resources, name), ret, err);
    return code < 0 ? td_error_wrap(err, code, "resources.%.*s", TD_STR_ARG(name)) : code;
}

/* The amounts that count while a resize is under way: the most of what is wished, actuated and (for
 * requests) allocated; a wish that cannot be met does not count. */
static int effective_list(struct td_arena *arena, const struct pod_view *pod,
                          const struct td_resource_list *wished, const struct td_json *owner,
                          struct td_resource_list *ret, struct td_error *err)
{
    struct td_resource_list list;
    int code = resources_of(arena, td_json_get(owner, TD_STR("resources")), pod->kind, &list, err);
    if (code != TD_OK) {
        return code;
    }
    if (!pod->is_resize_infeasible) {
        list = resources_max(arena, wished, &list);
    }
    if (pod->kind == LIST_REQUESTS) {
        struct td_resource_list allocated;
        code = td_resource_list_decode(arena, td_json_get(owner, TD_STR("allocatedResources")),
                                       &allocated, err);
        if (code != TD_OK) {
            return td_error_wrap(err, code, "allocatedResources");
        }
        list = resources_max(arena, &list, &allocated);
    }
    *ret = list;
    return TD_OK;
}

static int status_compare(const void *a, const void *b)
{
    const struct status_entry *left = a;
    const struct status_entry *right = b;
    int order = td_str_compare(left->name, right->name);
    if (order != 0) {
        return order;
    }
    return left->order > right->order ? -1 : left->order < right->order;
}

static void statuses_add(struct pod_view *pod, const struct td_json *array)
{
    const struct td_json *item = td_json_first_item(array);
    for (; item; item = item->next) {
        pod->statuses[pod->status_count] = (struct status_entry){
            .name = td_json_text(item, "name"),
            .order = pod->status_count,
            .status = item,
        };
        pod->status_count++;
    }
}

static void statuses_collect(struct td_arena *arena, struct pod_view *pod)
{
    const struct td_json *containers = td_json_get(pod->status, TD_STR("containerStatuses"));
    const struct td_json *init = td_json_get(pod->status, TD_STR("initContainerStatuses"));
    pod->statuses = td_arena_array(arena, struct status_entry,
                                   td_json_item_count(containers) + td_json_item_count(init));
    statuses_add(pod, containers);
    statuses_add(pod, init);
    qsort(pod->statuses, pod->status_count, sizeof(*pod->statuses), status_compare);
}

/* The last status of that name, when it tells resources; else NULL. */
static const struct td_json *status_find(const struct pod_view *pod, td_str name)
{
    size_t at = td_str_place(pod->statuses, pod->status_count, sizeof(pod->statuses[0]), name);
    if (at == pod->status_count || !td_str_equal(pod->statuses[at].name, name)) {
        return NULL;
    }
    const struct td_json *status = pod->statuses[at].status;
    const struct td_json *resources = td_json_get(status, TD_STR("resources"));
    return resources && resources->type != TD_JSON_TYPE_NULL ? status : NULL;
}

/* The first condition about a pending resize decides. */
static bool resize_is_infeasible(const struct td_json *status)
{
    const struct td_json *conditions = td_json_get(status, TD_STR("conditions"));
    const struct td_json *item = td_json_first_item(conditions);
    for (; item; item = item->next) {
        td_str type = td_json_text(item, "type");
        if (td_str_equal(type, TD_STR("PodResizePending"))) {
            td_str reason = td_json_text(item, "reason");
            return td_str_equal(reason, TD_STR("Infeasible"));
        }
    }
    return false;
}

static int part_read(struct td_arena *arena, const struct pod_view *pod,
                     const struct td_json *container, struct pod_part *part, struct td_error *err)
{
    td_str policy = td_json_text(container, "restartPolicy");
    part->is_sidecar = part->is_init && td_str_equal(policy, TD_STR("Always"));
    int code = resources_of(arena, td_json_get(container, TD_STR("resources")), pod->kind,
                            &part->list, err);
    if (code != TD_OK) {
        return code;
    }
    bool can_be_resized = !part->is_init || part->is_sidecar;
    if (pod->options->use_status_resources && can_be_resized) {
        td_str name = td_json_text(container, "name");
        const struct td_json *status = status_find(pod, name);
        code = status ? effective_list(arena, pod, &part->list, status, &part->list, err) : TD_OK;
        if (code != TD_OK) {
            return td_error_wrap(err, code, "status");
        }
    }
    if (pod->kind == LIST_REQUESTS && pod->non_missing.count > 0) {
        part->list = resources_fill(arena, &part->list, &pod->non_missing);
    }
    return td_arena_check(arena, err);
}

static int parts_read(struct td_arena *arena, const struct pod_view *pod,
                      const struct td_json *array, bool is_init, struct pod_part *parts,
                      struct td_error *err)
{
    const struct td_json *item = td_json_first_item(array);
    for (size_t i = 0; item; i++, item = item->next) {
        parts[i].is_init = is_init;
        int code = part_read(arena, pod, item, &parts[i], err);
        if (code != TD_OK) {
            td_str name = td_json_text(item, "name");
            return td_error_wrap(err, code, "container '%.*s'", TD_STR_ARG(name));
        }
    }
    return TD_OK;
}

/* Slots. */

static size_t slots_name_list(struct slot *items, const struct td_resource_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        items[i].name = list->items[i].name;
    }
    return list->count;
}

/* One empty slot for each name of the parts and of the two lists of the pod itself. */
static struct slots slots_new(struct td_arena *arena, const struct pod_part *parts, size_t count,
                              const struct td_resource_list *pod_level,
                              const struct td_resource_list *overhead)
{
    size_t name_count = pod_level->count + overhead->count;
    for (size_t i = 0; i < count; i++) {
        name_count += parts[i].list.count;
    }
    struct slot *items = td_arena_array(arena, struct slot, name_count);
    size_t filled = slots_name_list(items, pod_level);
    filled += slots_name_list(items + filled, overhead);
    for (size_t i = 0; i < count; i++) {
        filled += slots_name_list(items + filled, &parts[i].list);
    }
    qsort(items, filled, sizeof(*items), td_str_compare_items);
    size_t kept = 0;
    for (size_t i = 0; i < filled; i++) {
        if (kept == 0 || !td_str_equal(items[kept - 1].name, items[i].name)) {
            items[kept++].name = items[i].name;
        }
    }
    return (struct slots){.items = items, .count = kept};
}

/* The slot of a name that is in the table. */
static struct slot *slots_find(const struct slots *slots, td_str name)
{
    return &slots->items[td_str_place(slots->items, slots->count, sizeof(slots->items[0]), name)];
}

static void amount_add(struct td_arena *arena, struct amount *amount,
                       const struct td_quantity *quantity)
{
    if (amount->is_set) {
        td_quantity_add(arena, &amount->quantity, quantity);
    } else {
        *amount = (struct amount){.is_set = true, .quantity = *quantity};
    }
}

static void amount_max(struct amount *amount, const struct amount *other)
{
    if (other->is_set &&
        (!amount->is_set || td_quantity_compare(&other->quantity, &amount->quantity) > 0)) {
        *amount = *other;
    }
}

static void slot_fold(struct td_arena *arena, struct slot *slot, const struct pod_part *part,
                      const struct td_quantity *quantity)
{
    if (!part->is_init) {
        amount_add(arena, &slot->total, quantity);
    } else if (part->is_sidecar) {
        amount_add(arena, &slot->total, quantity);
        amount_add(arena, &slot->sidecars, quantity);
        amount_max(&slot->init, &slot->sidecars);
    } else {
        struct amount need = {.is_set = true, .quantity = *quantity};
        if (slot->sidecars.is_set) {
            amount_add(arena, &need, &slot->sidecars.quantity);
        }
        amount_max(&slot->init, &need);
    }
}

static void slots_fold(struct td_arena *arena, const struct slots *slots,
                       const struct pod_part *parts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct td_resource_list *list = &parts[i].list;
        for (size_t r = 0; r < list->count; r++) {
            struct slot *slot = slots_find(slots, list->items[r].name);
            slot_fold(arena, slot, &parts[i], &list->items[r].quantity);
        }
    }
    for (size_t i = 0; i < slots->count; i++) {
        amount_max(&slots->items[i].total, &slots->items[i].init);
    }
}

/* The pod's own resources and overhead. */

static bool is_pod_level_resource(td_str name)
{
    return td_str_equal(name, TD_STR("cpu")) || td_str_equal(name, TD_STR("memory")) ||
           td_str_starts_with(name, HUGE_PAGES_PREFIX);
}

/* The part of spec.resources that replaces the containers' sums, as it counts during a resize. */
static int pod_level_read(struct td_arena *arena, const struct pod_view *pod,
                          struct td_resource_list *ret, struct td_error *err)
{
    *ret = (struct td_resource_list){.items = NULL, .count = 0};
    if (pod->options->skip_pod_level_resources) {
        return TD_OK;
    }
    struct td_resource_list wished;
    int code =
        resources_of(arena, td_json_get(pod->spec, TD_STR("resources")), pod->kind, &wished, err);
    if (code != TD_OK) {
        return td_error_wrap(err, code, "spec");
    }
    const struct td_json *actuated = td_json_get(pod->status, TD_STR("resources"));
    bool has_effective = pod->options->in_place_pod_level_resources &&
                         pod->options->use_status_resources &&
                         td_json_is(actuated, TD_JSON_TYPE_OBJECT);
    /* Limits of an infeasible resize are copied from the status: no list there, no copy. */
    if (pod->kind == LIST_LIMITS && pod->is_resize_infeasible &&
        !td_json_is(td_json_get(actuated, TD_STR("limits")), TD_JSON_TYPE_OBJECT)) {
        has_effective = false;
    }
    struct td_resource_list effective = wished;
    if (has_effective) {
        code = effective_list(arena, pod, &wished, pod->status, &effective, err);
        if (code != TD_OK) {
            return td_error_wrap(err, code, "status");
        }
    }
    struct td_resource_amount *items =
        td_arena_array(arena, struct td_resource_amount, wished.count);
    size_t count = 0;
    for (size_t i = 0; i < wished.count; i++) {
        td_str name = wished.items[i].name;
        if (is_pod_level_resource(name)) {
            /* A name that the effective list lacks counts as the zero quantity. */
            const struct td_quantity *quantity = td_resource_list_get(&effective, name);
            struct td_quantity zero = td_quantity_new(0, TD_QUANTITY_NONE);
            items[count++] =
                (struct td_resource_amount){.name = name, .quantity = quantity ? *quantity : zero};
        }
    }
    *ret = (struct td_resource_list){.items = items, .count = count};
    return TD_OK;
}

static void slots_add_overhead(struct td_arena *arena, const struct slots *slots,
                               const struct td_resource_list *overhead, enum list_kind kind)
{
    for (size_t i = 0; i < overhead->count; i++) {
        struct amount *total = &slots_find(slots, overhead->items[i].name)->total;
        /* A limit that is missing or zero means none: overhead does not make one. */
        bool counts =
            kind == LIST_REQUESTS || (total->is_set && td_quantity_sign(&total->quantity) != 0);
        if (counts) {
            amount_add(arena, total, &overhead->items[i].quantity);
        }
    }
}

static void slots_result(struct td_arena *arena, const struct slots *slots,
                         struct td_resource_list *ret)
{
    struct td_resource_amount *items =
        td_arena_array(arena, struct td_resource_amount, slots->count);
    size_t count = 0;
    for (size_t i = 0; i < slots->count; i++) {
        if (slots->items[i].total.is_set) {
            items[count++] = (struct td_resource_amount){
                .name = slots->items[i].name,
                .quantity = slots->items[i].total.quantity,
            };
        }
    }
    *ret = (struct td_resource_list){.items = items, .count = count};
}

static int containers_read(struct td_arena *arena, const struct pod_view *pod,
                           struct pod_part **ret_parts, size_t *ret_count, struct td_error *err)
{
    const struct td_json *containers = td_json_get(pod->spec, TD_STR("containers"));
    const struct td_json *init = td_json_get(pod->spec, TD_STR("initContainers"));
    size_t count = td_json_item_count(containers) + td_json_item_count(init);
    if (pod->kind == LIST_REQUESTS && pod->options->skip_container_level_resources) {
        count = 0;
    }
    struct pod_part *parts = td_arena_array(arena, struct pod_part, count);
    if (count > 0) {
        int code = parts_read(arena, pod, containers, false, parts, err);
        if (code != TD_OK) {
            return code;
        }
        code = parts_read(arena, pod, init, true, parts + td_json_item_count(containers), err);
        if (code != TD_OK) {
            return code;
        }
    }
    *ret_parts = parts;
    *ret_count = count;
    return TD_OK;
}

static int pod_sum(struct td_arena *arena, struct pod_view *pod, struct td_resource_list *ret,
                   struct td_error *err)
{
    struct pod_part *parts = NULL;
    size_t part_count = 0;
    int code = containers_read(arena, pod, &parts, &part_count, err);
    if (code != TD_OK) {
        return code;
    }
    struct td_resource_list pod_level;
    code = pod_level_read(arena, pod, &pod_level, err);
    if (code != TD_OK) {
        return code;
    }
    struct td_resource_list overhead = {.items = NULL, .count = 0};
    if (!pod->options->exclude_overhead) {
        code = td_resource_list_decode(arena, td_json_get(pod->spec, TD_STR("overhead")), &overhead,
                                       err);
        if (code != TD_OK) {
            return td_error_wrap(err, code, "spec.overhead");
        }
    }
    struct slots slots = slots_new(arena, parts, part_count, &pod_level, &overhead);
    slots_fold(arena, &slots, parts, part_count);
    for (size_t i = 0; i < pod_level.count; i++) {
        struct slot *slot = slots_find(&slots, pod_level.items[i].name);
        slot->total = (struct amount){.is_set = true, .quantity = pod_level.items[i].quantity};
    }
    slots_add_overhead(arena, &slots, &overhead, pod->kind);
    code = td_arena_check(arena, err);
    if (code != TD_OK) {
        return code;
    }
    slots_result(arena, &slots, ret);
    return TD_OK;
}

static int pod_resources(struct td_arena *arena, const struct td_json *pod,
                         const struct td_pod_resource_options *options, enum list_kind kind,
                         struct td_resource_list *ret, struct td_error *err)
{
    static const struct td_pod_resource_options defaults = {.use_status_resources = false};
    struct pod_view view = {
        .spec = td_json_get(pod, TD_STR("spec")),
        .status = td_json_get(pod, TD_STR("status")),
        .options = options ? options : &defaults,
        .kind = kind,
    };
    view.is_resize_infeasible = resize_is_infeasible(view.status);
    statuses_collect(arena, &view);
    if (kind == LIST_REQUESTS) {
        int code = td_resource_list_decode(arena, view.options->non_missing_container_requests,
                                           &view.non_missing, err);
        if (code != TD_OK) {
            return td_error_wrap(err, code, "non-missing container requests");
        }
    }
    return pod_sum(arena, &view, ret, err);
}

int td_pod_requests(struct td_arena *arena, const struct td_json *pod,
                    const struct td_pod_resource_options *options, struct td_resource_list *ret,
                    struct td_error *err)
{
    return pod_resources(arena, pod, options, LIST_REQUESTS, ret, err);
}

int td_pod_limits(struct td_arena *arena, const struct td_json *pod,
                  const struct td_pod_resource_options *options, struct td_resource_list *ret,
                  struct td_error *err)
{
    return pod_resources(arena, pod, options, LIST_LIMITS, ret, err);
}
