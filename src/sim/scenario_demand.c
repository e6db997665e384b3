#include "sim/scenario_demand.h"

#include <strings.h>

#include "base/error.h"
#include "base/timefmt.h"

int td_scenario_read_kind(const struct td_place *place, td_str text, td_str *ret)
{
    static const td_str kinds[] = {
        TD_STR_INIT("Deployment"), TD_STR_INIT("StatefulSet"),
        TD_STR_INIT("DaemonSet"),  TD_STR_INIT("ReplicaSet"),
        TD_STR_INIT("Job"),        TD_STR_INIT("CronJob"),
        TD_STR_INIT("Pod"),        TD_STR_INIT("ReplicationController"),
    };
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (text.len == kinds[i].len && strncasecmp(text.ptr, kinds[i].ptr, text.len) == 0) {
            *ret = kinds[i];
            return TD_OK;
        }
    }
    if (text.len > 0 && text.ptr[0] >= 'A' && text.ptr[0] <= 'Z') {
        *ret = text; /* a custom kind that owns pods */
        return TD_OK;
    }
    return td_place_refuse(place, "must name a kind of workload such as Deployment");
}

static int demand_target(const struct td_place *place, struct td_demand *ret)
{
    static const char *const names[] = {"kind", "name", "container", NULL};
    int code = td_place_object(place, names);
    struct td_place kind = td_place_member(place, "kind");
    struct td_place name = td_place_member(place, "name");
    struct td_place container = td_place_member(place, "container");
    td_str text = TD_STR_EMPTY;
    code = code == TD_OK ? td_place_text(&kind, true, &text) : code;
    code = code == TD_OK ? td_scenario_read_kind(&kind, text, &ret->kind) : code;
    code = code == TD_OK ? td_place_text(&name, true, &ret->name) : code;
    return code == TD_OK ? td_place_text(&container, false, &ret->container) : code;
}

/* "12ms" of processor time. */
static int demand_milliseconds(const struct td_place *place, double *ret)
{
    td_duration span;
    if (!place->value) {
        return TD_OK;
    }
    if (!td_json_is(place->value, TD_JSON_TYPE_STRING) ||
        td_duration_parse(place->value->text, &span, NULL) != TD_OK || span < 0) {
        return td_place_refuse(place, "must be processor time such as 12ms, not negative");
    }
    *ret = (double)span / (double)TD_MILLISECOND;
    return TD_OK;
}

static int demand_requests(const struct td_place *place, struct td_demand *ret)
{
    static const char *const names[] = {"cpu", "memory", NULL};
    struct td_place requests = td_place_member(place, "requests");
    struct td_place each = td_place_member(place, "perRequest");
    int code = td_place_series(&requests, td_place_rate, &ret->requests);
    if (code == TD_OK && !each.value) {
        return td_place_refuse(&each, "is required beside requests");
    }
    code = code == TD_OK ? td_place_object(&each, names) : code;
    struct td_place cpu = td_place_member(&each, "cpu");
    struct td_place memory = td_place_member(&each, "memory");
    code = code == TD_OK ? demand_milliseconds(&cpu, &ret->request_cpu_ms) : code;
    code = code == TD_OK ? td_place_bytes(&memory, &ret->request_memory_bytes) : code;
    ret->driver = TD_DEMAND_REQUESTS;
    return code;
}

static int demand_role(const struct td_place *place, struct td_demand_role *ret)
{
    static const char *const names[] = {"cpu", "memory", NULL};
    int code = td_place_object(place, names);
    struct td_place cpu = td_place_member(place, "cpu");
    struct td_place memory = td_place_member(place, "memory");
    code = code == TD_OK ? td_place_series(&cpu, td_place_cpu, &ret->cpu) : code;
    return code == TD_OK ? td_place_series(&memory, td_place_bytes, &ret->memory) : code;
}

/* {label: role, leader: {...}, follower: {...}}: every member but label is a role. */
static int demand_roles(const struct td_place *place, struct td_demand *ret)
{
    if (!td_json_is(place->value, TD_JSON_TYPE_OBJECT)) {
        return td_place_refuse(place, "must be a mapping of a label and its values");
    }
    struct td_place label = td_place_member(place, "label");
    int code = td_place_text(&label, true, &ret->role_label);
    struct td_demand_role *roles =
        td_arena_array(place->arena, struct td_demand_role, place->value->count);
    for (const struct td_json *m = place->value->first; m && code == TD_OK; m = m->next) {
        if (td_str_equal(m->key, TD_STR("label"))) {
            continue;
        }
        td_str name = td_arena_copy_str(place->arena, m->key);
        struct td_place role = td_place_member(place, name.ptr);
        roles[ret->role_count].value = name;
        code = demand_role(&role, &roles[ret->role_count]);
        ret->role_count++;
    }
    if (code == TD_OK && ret->role_count == 0) {
        code = td_place_refuse(place, "names no role");
    }
    ret->roles = roles;
    ret->driver = TD_DEMAND_ROLES;
    return code;
}

static int demand_run(const struct td_place *place, struct td_demand *ret)
{
    static const char *const names[] = {"for", "cpu", "memory", NULL};
    int code = td_place_object(place, names);
    struct td_place lasts = td_place_member(place, "for");
    struct td_place cpu = td_place_member(place, "cpu");
    struct td_place memory = td_place_member(place, "memory");
    if (code == TD_OK && !lasts.value) {
        return td_place_refuse(&lasts, "is required");
    }
    code = code == TD_OK ? td_place_duration(&lasts, &ret->run_time) : code;
    code = code == TD_OK ? td_place_series(&cpu, td_place_cpu, &ret->cpu) : code;
    code = code == TD_OK ? td_place_series(&memory, td_place_bytes, &ret->memory) : code;
    ret->driver = TD_DEMAND_RUN;
    return code;
}

static int demand_pair(const struct td_place *place, double *ret_cpu, double *ret_memory)
{
    static const char *const names[] = {"cpu", "memory", NULL};
    if (!place->value) {
        return TD_OK;
    }
    int code = td_place_object(place, names);
    struct td_place cpu = td_place_member(place, "cpu");
    struct td_place memory = td_place_member(place, "memory");
    code = code == TD_OK ? td_place_cpu(&cpu, ret_cpu) : code;
    return code == TD_OK ? td_place_bytes(&memory, ret_memory) : code;
}

static int demand_startup(const struct td_place *place, struct td_demand *ret)
{
    static const char *const names[] = {"time", "cpu", NULL};
    if (!place->value) {
        return TD_OK;
    }
    int code = td_place_object(place, names);
    struct td_place time = td_place_member(place, "time");
    struct td_place cpu = td_place_member(place, "cpu");
    code = code == TD_OK ? td_place_duration(&time, &ret->startup_time) : code;
    return code == TD_OK ? td_place_cpu(&cpu, &ret->startup_cpu_milli) : code;
}

/* What a process does with memory, beside what it wants. */
static int demand_memory_habits(const struct td_place *place, struct td_demand *ret)
{
    static const char *const names[] = {"leakPerHour", "neverReturns", NULL};
    if (!place->value) {
        return TD_OK;
    }
    int code = td_place_object(place, names);
    struct td_place leak = td_place_member(place, "leakPerHour");
    struct td_place keeps = td_place_member(place, "neverReturns");
    code = code == TD_OK ? td_place_bytes(&leak, &ret->leak_bytes_per_hour) : code;
    return code == TD_OK ? td_place_bool(&keeps, &ret->keeps_memory) : code;
}

static int demand_overflow(const struct td_place *place, struct td_demand *ret)
{
    td_str text = TD_STR("drop");
    int code = td_place_text(place, false, &text);
    bool waits = td_str_equal(text, TD_STR("wait"));
    if (code == TD_OK && !waits && !td_str_equal(text, TD_STR("drop"))) {
        return td_place_refuse(place, "must be wait or drop");
    }
    ret->is_carried_over = waits;
    return code;
}

static int demand_driver(const struct td_place *place, struct td_demand *ret)
{
    struct td_place requests = td_place_member(place, "requests");
    struct td_place roles = td_place_member(place, "roles");
    struct td_place run = td_place_member(place, "run");
    struct td_place cpu = td_place_member(place, "cpu");
    struct td_place memory = td_place_member(place, "memory");
    int given = (requests.value != NULL) + (roles.value != NULL) + (run.value != NULL) +
                (cpu.value != NULL || memory.value != NULL);
    if (given > 1) {
        return td_place_refuse(place,
                               "has more than one of requests, roles, run, and cpu with memory");
    }
    if (requests.value) {
        return demand_requests(place, ret);
    }
    if (roles.value) {
        return demand_roles(&roles, ret);
    }
    if (run.value) {
        return demand_run(&run, ret);
    }
    int code = td_place_series(&cpu, td_place_cpu, &ret->cpu);
    return code == TD_OK ? td_place_series(&memory, td_place_bytes, &ret->memory) : code;
}

int td_scenario_read_demand(const struct td_place *place, struct td_demand *ret)
{
    static const char *const names[] = {"target",  "requests",     "perRequest", "roles",
                                        "run",     "cpu",          "memory",     "idle",
                                        "startup", "memoryHabits", "overflow",   NULL};
    struct td_place target = td_place_member(place, "target");
    struct td_place idle = td_place_member(place, "idle");
    struct td_place startup = td_place_member(place, "startup");
    struct td_place habits = td_place_member(place, "memoryHabits");
    struct td_place overflow = td_place_member(place, "overflow");
    int code = td_place_object(place, names);
    code = code == TD_OK ? demand_target(&target, ret) : code;
    code = code == TD_OK ? demand_driver(place, ret) : code;
    code = code == TD_OK ? demand_pair(&idle, &ret->idle_cpu_milli, &ret->idle_memory_bytes) : code;
    code = code == TD_OK ? demand_startup(&startup, ret) : code;
    code = code == TD_OK ? demand_memory_habits(&habits, ret) : code;
    return code == TD_OK ? demand_overflow(&overflow, ret) : code;
}
