/*
 * Demand entries. Each one is read by itself; then those whose requests come from another entry are
 * joined with it. An entry has at most one source, so following sources from an entry ends or runs
 * into a circle, and each entry is walked over once.
 */
#include "sim/scenario/scenario_demand.h"

#include <stdint.h>
#include <strings.h>

#include "base/error.h"
#include "base/limits.h"
#include "kube/names.h"
#include "sim/scenario/scenario.h"

#define AT(member) offsetof(struct td_demand, member)

/* ---- Targets ---- */

/* Kinds may be written small; others are custom ones, written as they are. */
static int demand_kind(const struct td_place *place, td_str text, td_str *ret)
{
    static const td_str kinds[] = {
        TD_STR_INIT("Deployment"), TD_STR_INIT("StatefulSet"),
        TD_STR_INIT("DaemonSet"),  TD_STR_INIT("ReplicaSet"),
        TD_STR_INIT("Job"),        TD_STR_INIT("CronJob"),
        TD_STR_INIT("Pod"),        TD_STR_INIT("ReplicationController"),
        TD_STR_INIT("Service"),    TD_STR_INIT("Ingress"),
        TD_STR_INIT("Namespace"),  TD_STR_INIT("Node"),
    };
    bool is_word = text.len > 0 && text.ptr[0] >= 'A' && text.ptr[0] <= 'Z';
    for (size_t i = 0; i < TD_COUNT(kinds); i++) {
        if (text.len == kinds[i].len && strncasecmp(text.ptr, kinds[i].ptr, text.len) == 0) {
            *ret = kinds[i];
            return TD_OK;
        }
    }
    for (size_t i = 0; i < text.len && is_word; i++) {
        char c = text.ptr[i];
        is_word = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    }
    if (!is_word) {
        return td_place_refuse(place, "must name a kind such as Deployment");
    }
    *ret = text;
    return TD_OK;
}

int td_scenario_read_target(const struct td_place *place, bool may_have_container,
                            struct td_scenario_target *ret)
{
    td_str text = TD_STR_EMPTY;
    int code = td_place_read(place, TD_PLACE_TEXT, &text);
    if (code != TD_OK || text.len == 0) {
        return code;
    }
    size_t first = td_str_find(text, '/', 0);
    size_t second = td_str_find(text, '/', first + 1);
    td_str name = td_str_slice(text, first + 1, second);
    td_str container = td_str_slice(text, second + 1, text.len);
    bool has_container = second < text.len;
    if (td_name_check_dns1123_subdomain(name, NULL) > 0 || (has_container && !may_have_container) ||
        (has_container && td_name_check_dns1123_label(container, NULL) > 0)) {
        return td_place_refuse(place, "must be %s, such as deployment/web",
                               may_have_container ? "KIND/NAME or KIND/NAME/CONTAINER"
                                                  : "KIND/NAME");
    }
    struct td_scenario_target target = {.name = name, .container = container};
    code = demand_kind(place, td_str_slice(text, 0, first), &target.kind);
    if (code == TD_OK) {
        *ret = target;
    }
    return code;
}

static int demand_target(const struct td_place *place, struct td_demand *ret)
{
    static const struct td_place_field fields[] = {
        {"kind", TD_PLACE_TEXT, true, AT(kind)},
        {"name", TD_PLACE_NAME, true, AT(name)},
        {"container", TD_PLACE_LABEL, false, AT(container)},
    };
    int code = td_place_fields(place, fields, TD_COUNT(fields), ret);
    struct td_place kind = td_place_member(place, "kind");
    return code == TD_OK ? demand_kind(&kind, ret->kind, &ret->kind) : code;
}

/* ---- What drives it ---- */

static int demand_per_request(const struct td_place *place, struct td_demand *ret)
{
    static const struct td_place_field fields[] = {
        {"cpu", TD_PLACE_MILLISECONDS, false, AT(request_cpu_ms)},
        {"memory", TD_PLACE_BYTES, false, AT(request_memory_bytes)},
    };
    return td_place_fields(place, fields, TD_COUNT(fields), ret);
}

static int demand_requests(const struct td_place *place, struct td_demand *ret)
{
    static const struct td_place_field fields[] = {
        {"by", TD_PLACE_OTHER, true, 0},
        {"times", TD_PLACE_NUMBER, false, AT(source_times)},
    };
    struct td_place by = td_place_member(place, "by");
    ret->driver = TD_DEMAND_REQUESTS;
    if (!by.value) {
        return td_place_series(place, TD_PLACE_RATE, &ret->requests);
    }
    ret->has_source = true; /* which one is found when all entries are read */
    ret->source_times = 1;
    int code = td_place_fields(place, fields, TD_COUNT(fields), ret);
    struct td_place times = td_place_member(place, "times");
    if (code == TD_OK && ret->source_times > TD_SCENARIO_TIMES_MAX) {
        return td_place_refuse(&times, "must be at most %d", TD_SCENARIO_TIMES_MAX);
    }
    return code;
}

static int demand_role(const struct td_place *place, bool has_requests, struct td_demand_role *ret)
{
    static const struct td_place_field of_requests[] = {
        {"weight", TD_PLACE_NUMBER, false, offsetof(struct td_demand_role, weight)},
    };
    static const struct td_place_field alone[] = {
        {"cpu", TD_PLACE_CPU_SERIES, false, offsetof(struct td_demand_role, cpu)},
        {"memory", TD_PLACE_BYTES_SERIES, false, offsetof(struct td_demand_role, memory)},
    };
    if (td_name_check_label_value(place->name, NULL) > 0) {
        return td_place_refuse(place, "the name of a role must be the value of a label");
    }
    ret->value = place->name;
    ret->weight = 1;
    return has_requests ? td_place_fields(place, of_requests, TD_COUNT(of_requests), ret)
                        : td_place_fields(place, alone, TD_COUNT(alone), ret);
}

/* {label: role, leader: {...}, follower: {...}}: every member but label is a role. Their order
 * counts: the first has one holder, all other pods have the last. */
static int demand_roles(const struct td_place *place, struct td_demand *ret)
{
    if (!td_json_is(place->value, TD_JSON_TYPE_OBJECT)) {
        return td_place_refuse(place, "must be a mapping of a label and its values");
    }
    struct td_place label = td_place_member(place, "label");
    if (!label.value) {
        return td_place_refuse(&label, "is required");
    }
    if (place->value->count < 2 || place->value->count > TD_SCENARIO_ROLES_MAX + 1) {
        return td_place_refuse(place, "must name 1 to %zu roles", TD_SCENARIO_ROLES_MAX);
    }
    struct td_demand_role *roles =
        td_arena_array(place->source->arena, struct td_demand_role, place->value->count);
    double weight = 0;
    bool has_requests = ret->driver == TD_DEMAND_REQUESTS;
    int code = td_place_read(&label, TD_PLACE_KEY, &ret->role_label);
    for (const struct td_json *m = td_json_first_member(place->value); m && code == TD_OK;
         m = m->next) {
        const struct td_place role = {
            .source = place->source, .parent = place, .name = m->key, .value = m};
        if (!td_str_equal(m->key, TD_STR("label"))) {
            code = demand_role(&role, has_requests, &roles[ret->role_count]);
            weight += roles[ret->role_count].weight;
            ret->role_count++;
        }
    }
    if (code == TD_OK && weight <= 0) {
        return td_place_refuse(place, "a role must have a weight above 0");
    }
    ret->roles = roles;
    ret->driver = has_requests ? TD_DEMAND_REQUESTS : TD_DEMAND_ROLES;
    return code;
}

static int demand_run(const struct td_place *place, struct td_demand *ret)
{
    static const struct td_place_field fields[] = {
        {"every", TD_PLACE_SPAN, false, AT(run_every)},
        {"for", TD_PLACE_SPAN, true, AT(run_time)},
        {"cpu", TD_PLACE_CPU_SERIES, false, AT(cpu)},
        {"memory", TD_PLACE_BYTES_SERIES, false, AT(memory)},
    };
    int code = td_place_fields(place, fields, TD_COUNT(fields), ret);
    struct td_place every = td_place_member(place, "every");
    if (code == TD_OK && every.value && !td_str_equal(ret->kind, TD_STR("CronJob"))) {
        return td_place_refuse(&every, "only allowed for a CronJob");
    }
    ret->driver = TD_DEMAND_RUN;
    return code;
}

/* Of these at most one, except that roles divide requests; cpu and memory go together. */
static int demand_one_driver(const struct td_place *place)
{
    static const struct {
        const char *name;
        const char *others[5];
    } against[] = {
        {"requests", {"run", "trace", "cpu", "memory", NULL}},
        {"roles", {"run", "trace", "cpu", "memory", NULL}},
        {"run", {"trace", "cpu", "memory", NULL}},
        {"trace", {"cpu", "memory", NULL}},
    };
    for (size_t i = 0; i < TD_COUNT(against); i++) {
        struct td_place first = td_place_member(place, against[i].name);
        for (size_t n = 0; first.value && against[i].others[n]; n++) {
            struct td_place other = td_place_member(place, against[i].others[n]);
            if (other.value) {
                return td_place_refuse(&other, "not allowed together with %s", against[i].name);
            }
        }
    }
    struct td_place requests = td_place_member(place, "requests");
    struct td_place each = td_place_member(place, "perRequest");
    if ((requests.value != NULL) != (each.value != NULL)) {
        return td_place_refuse(requests.value ? &each : &requests, "is required together with %s",
                               requests.value ? "requests" : "perRequest");
    }
    return TD_OK;
}

static int demand_driver(const struct td_place *place, struct td_demand *ret)
{
    struct td_place requests = td_place_member(place, "requests");
    struct td_place each = td_place_member(place, "perRequest");
    struct td_place roles = td_place_member(place, "roles");
    struct td_place run = td_place_member(place, "run");
    struct td_place trace = td_place_member(place, "trace");
    int code = demand_one_driver(place);
    if (code == TD_OK && requests.value) {
        code = demand_requests(&requests, ret);
        code = code == TD_OK ? demand_per_request(&each, ret) : code;
    }
    if (code == TD_OK && roles.value) {
        code = demand_roles(&roles, ret);
    }
    if (code == TD_OK && run.value) {
        code = demand_run(&run, ret);
    }
    if (code == TD_OK && trace.value) {
        code = td_place_trace(&trace, &ret->cpu, &ret->memory);
    }
    return code;
}

/* ---- What goes with it ---- */

static int demand_part(const struct td_place *place, const char *name,
                       const struct td_place_field *fields, size_t count, struct td_demand *ret)
{
    struct td_place part = td_place_member(place, name);
    return part.value ? td_place_fields(&part, fields, count, ret) : TD_OK;
}

static int demand_overflow(const struct td_place *place, struct td_demand *ret)
{
    td_str text = TD_STR("drop");
    int code = td_place_read(place, TD_PLACE_TEXT, &text);
    bool waits = td_str_equal(text, TD_STR("wait"));
    if (code == TD_OK && !waits && !td_str_equal(text, TD_STR("drop"))) {
        return td_place_refuse(place, "must be wait or drop");
    }
    ret->is_carried_over = waits;
    return code;
}

static int demand_parts(const struct td_place *place, struct td_demand *ret)
{
    static const struct td_place_field idle[] = {
        {"cpu", TD_PLACE_CPU, false, AT(idle_cpu_milli)},
        {"memory", TD_PLACE_BYTES, false, AT(idle_memory_bytes)},
    };
    static const struct td_place_field startup[] = {
        {"time", TD_PLACE_DURATION, true, AT(startup_time)},
        {"cpu", TD_PLACE_CPU, false, AT(startup_cpu_milli)},
    };
    static const struct td_place_field warmup[] = {
        {"time", TD_PLACE_SPAN, true, AT(warmup_time)},
        {"factor", TD_PLACE_FACTOR, true, AT(warmup_factor)},
    };
    static const struct td_place_field habits[] = {
        {"leakPerHour", TD_PLACE_BYTES, false, AT(leak_bytes_per_hour)},
        {"neverReturns", TD_PLACE_BOOL, false, AT(keeps_memory)},
    };
    struct td_place overflow = td_place_member(place, "overflow");
    ret->warmup_factor = 1;
    int code = demand_part(place, "idle", idle, TD_COUNT(idle), ret);
    code = code == TD_OK ? demand_part(place, "startup", startup, TD_COUNT(startup), ret) : code;
    code = code == TD_OK ? demand_part(place, "warmup", warmup, TD_COUNT(warmup), ret) : code;
    code = code == TD_OK ? demand_part(place, "memoryHabits", habits, TD_COUNT(habits), ret) : code;
    return code == TD_OK ? demand_overflow(&overflow, ret) : code;
}

static int demand_read(const struct td_place *place, struct td_demand *ret)
{
    static const struct td_place_field fields[] = {
        {"target", TD_PLACE_OTHER, true, 0},
        {"requests", TD_PLACE_OTHER, false, 0},
        {"perRequest", TD_PLACE_OTHER, false, 0},
        {"roles", TD_PLACE_OTHER, false, 0},
        {"run", TD_PLACE_OTHER, false, 0},
        {"trace", TD_PLACE_OTHER, false, 0},
        {"cpu", TD_PLACE_CPU_SERIES, false, AT(cpu)},
        {"memory", TD_PLACE_BYTES_SERIES, false, AT(memory)},
        {"idle", TD_PLACE_OTHER, false, 0},
        {"startup", TD_PLACE_OTHER, false, 0},
        {"warmup", TD_PLACE_OTHER, false, 0},
        {"memoryHabits", TD_PLACE_OTHER, false, 0},
        {"overflow", TD_PLACE_OTHER, false, 0},
    };
    struct td_place target = td_place_member(place, "target");
    int code = td_place_fields(place, fields, TD_COUNT(fields), ret);
    if (code == TD_OK && place->value->count < 2) {
        return td_place_refuse(place, "must have requests, usage or another kind of demand");
    }
    code = code == TD_OK ? demand_target(&target, ret) : code;
    code = code == TD_OK ? demand_driver(place, ret) : code;
    return code == TD_OK ? demand_parts(place, ret) : code;
}

/* ---- Entries together ---- */

/* Entries of one name; a place in the list is kept as a number and not as a pointer. */
struct demand_named {
    size_t first;
    size_t count;
};

struct demand_list {
    const struct td_place *place; /* spec.demand */
    const struct td_json **items;
    struct td_demand *demands;
    size_t count;
    struct td_map entries;  /* "Kind/name/container": demand_named */
    struct td_map requests; /* "Kind/name", and with a container: those that requests drive */
    struct td_map roles;    /* "Kind/name": those with roles */
};

static td_str demand_key(struct td_arena *arena, td_str kind, td_str name, td_str container)
{
    return td_arena_format(arena, "%.*s/%.*s%s%.*s", TD_STR_ARG(kind), TD_STR_ARG(name),
                           container.len > 0 ? "/" : "", TD_STR_ARG(container));
}

/* The entries of that name, this one counted in. */
static struct demand_named *demand_put(struct demand_list *list, struct td_map *map, td_str key,
                                       size_t index)
{
    struct demand_named *named = td_map_get(map, key);
    if (!named) {
        named = td_arena_new(list->place->source->arena, struct demand_named);
        named->first = index;
        (void)td_map_put(map, key, named); /* as many fit as there are entries */
    }
    named->count++;
    return named;
}

/* A pod has one role: entries of one workload must mean the same ones. */
static bool demand_same_roles(const struct td_demand *a, const struct td_demand *b)
{
    bool is_same = td_str_equal(a->role_label, b->role_label) && a->role_count == b->role_count;
    for (size_t i = 0; is_same && i < a->role_count; i++) {
        is_same = td_str_equal(a->roles[i].value, b->roles[i].value);
    }
    return is_same;
}

static int demand_note(struct demand_list *list, size_t index)
{
    struct td_demand *demand = &list->demands[index];
    struct td_arena *arena = list->place->source->arena;
    struct td_place at = td_place_item(list->place, list->items[index], index);
    td_str whole = demand_key(arena, demand->kind, demand->name, TD_STR_EMPTY);
    td_str key = demand_key(arena, demand->kind, demand->name, demand->container);
    struct demand_named *named = demand_put(list, &list->entries, key, index);
    if (named->count > 1) {
        struct td_place target = td_place_member(&at, "target");
        return td_place_refuse(&target, "%.*s is already the target of spec.demand[%zu]",
                               TD_STR_ARG(key), named->first);
    }
    if (demand->driver == TD_DEMAND_REQUESTS) {
        (void)demand_put(list, &list->requests, whole, index);
        if (demand->container.len > 0) {
            (void)demand_put(list, &list->requests, key, index);
        }
    }
    if (demand->role_count > 0) {
        named = demand_put(list, &list->roles, whole, index);
        if (!demand_same_roles(&list->demands[named->first], demand)) {
            struct td_place roles = td_place_member(&at, "roles");
            return td_place_refuse(&roles, "must be those of spec.demand[%zu], of the same pods",
                                   named->first);
        }
    }
    return TD_OK;
}

static int demand_find_source(struct demand_list *list, size_t index)
{
    struct td_demand *demand = &list->demands[index];
    struct td_arena *arena = list->place->source->arena;
    struct td_place at = td_place_item(list->place, list->items[index], index);
    struct td_place requests = td_place_member(&at, "requests");
    struct td_place by = td_place_member(&requests, "by");
    struct td_scenario_target target = {.kind = TD_STR_EMPTY};
    int code = td_scenario_read_target(&by, true, &target);
    if (code != TD_OK) {
        return code;
    }
    td_str key = demand_key(arena, target.kind, target.name, target.container);
    const struct demand_named *named = td_map_get(&list->requests, key);
    if (!named) {
        return td_place_refuse(&by, "no entry of spec.demand gives it requests");
    }
    if (named->count > 1) {
        return td_place_refuse(
            &by, "has %zu entries with requests; name one with KIND/NAME/CONTAINER", named->count);
    }
    demand->source = named->first;
    return TD_OK;
}

/* "web -> api -> web", in the direction in which requests go, from the entry named first. */
static int demand_refuse_circle(const struct demand_list *list, size_t on_it)
{
    struct td_arena *arena = list->place->source->arena;
    size_t first = on_it;
    for (size_t i = list->demands[on_it].source; i != on_it; i = list->demands[i].source) {
        first = i < first ? i : first;
    }
    td_str text = list->demands[first].name;
    size_t shown = 0;
    for (size_t i = list->demands[first].source; i != first && shown < TD_SCENARIO_CHAIN_MAX;
         i = list->demands[i].source, shown++) {
        text = td_arena_format(arena, "%.*s -> %.*s", TD_STR_ARG(list->demands[i].name),
                               TD_STR_ARG(text));
    }
    struct td_place at = td_place_item(list->place, list->items[first], first);
    struct td_place requests = td_place_member(&at, "requests");
    struct td_place by = td_place_member(&requests, "by");
    return td_place_refuse(&by, "requests go in a circle: %.*s -> %.*s%s",
                           TD_STR_ARG(list->demands[first].name), TD_STR_ARG(text),
                           shown == TD_SCENARIO_CHAIN_MAX ? " and more" : "");
}

/* `depths` counts the entries that requests pass before they come to one; 0: not known yet. */
static int demand_check_chain(const struct demand_list *list, size_t index, size_t *depths)
{
    size_t length = 1;
    size_t i = index;
    while (list->demands[i].has_source && depths[i] == 0 && length <= list->count) {
        i = list->demands[i].source;
        length++;
    }
    if (length > list->count) {
        return demand_refuse_circle(list, i);
    }
    depths[i] = depths[i] > 0 ? depths[i] : 1;
    size_t depth = depths[i] + length - 1;
    if (depth > TD_SCENARIO_CHAIN_MAX) {
        struct td_place at = td_place_item(list->place, list->items[index], index);
        struct td_place requests = td_place_member(&at, "requests");
        struct td_place by = td_place_member(&requests, "by");
        return td_place_refuse(&by, "requests pass more than %zu workloads on their way",
                               TD_SCENARIO_CHAIN_MAX);
    }
    for (i = index; list->demands[i].has_source && depths[i] == 0; i = list->demands[i].source) {
        depths[i] = depth--;
    }
    return TD_OK;
}

static int demand_link(struct demand_list *list)
{
    int code = TD_OK;
    size_t *depths = td_arena_array(list->place->source->arena, size_t, list->count);
    for (size_t i = 0; code == TD_OK && i < list->count; i++) {
        code = list->demands[i].has_source ? demand_find_source(list, i) : TD_OK;
    }
    for (size_t i = 0; code == TD_OK && i < list->count; i++) {
        code = demand_check_chain(list, i, depths);
    }
    return code;
}

uint64_t td_scenario_demand_seed(uint64_t seed, size_t index)
{
    return seed * UINT64_C(0x9e3779b97f4a7c15) + index;
}

static int demand_read_all(struct demand_list *list, const struct td_scenario *scenario)
{
    const struct td_json *item = td_json_first_item(list->place->value);
    int code = TD_OK;
    for (size_t i = 0; code == TD_OK && i < list->count; i++, item = item->next) {
        struct td_place at = td_place_item(list->place, item, i);
        struct td_demand *demand = &list->demands[i];
        list->items[i] = item;
        code = demand_read(&at, demand);
        demand->ns = scenario->ns;
        demand->seed = td_scenario_demand_seed(scenario->seed, i);
        demand->line = td_place_line(&at);
        code = code == TD_OK ? demand_note(list, i) : code;
    }
    return code == TD_OK ? demand_link(list) : code;
}

int td_scenario_read_demands(const struct td_place *place, struct td_scenario *ret)
{
    struct demand_list list = {.place = place};
    int code = td_place_list(place, TD_SCENARIO_DEMANDS_MAX, &list.count);
    if (code != TD_OK) {
        return code;
    }
    list.demands = td_arena_array(place->source->arena, struct td_demand, list.count);
    list.items = td_arena_array(place->source->arena, const struct td_json *, list.count);
    td_map_init(&list.entries, TD_SCENARIO_DEMANDS_MAX);
    td_map_init(&list.requests, TD_SCENARIO_DEMANDS_MAX * 2);
    td_map_init(&list.roles, TD_SCENARIO_DEMANDS_MAX);
    code = demand_read_all(&list, ret);
    td_map_done(&list.entries);
    td_map_done(&list.requests);
    td_map_done(&list.roles);
    ret->demands = list.demands;
    ret->demand_count = list.count;
    return code;
}
