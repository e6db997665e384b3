/*
 * Workloads as the engine knows them: the entries that name one, its rows (one for each role), and
 * what is summed over them. A workload that no entry names is forgotten with its last pod, so that
 * memory follows what runs.
 */

#include "base/alloc.h"
#include "base/assert.h"
#include "base/error.h"
#include "base/text.h"
#include "kube/objectkey.h"
#include "local/engine/engine_private.h"

struct engine_workload *td_engine_workload_of(struct td_engine *engine, td_str ns, td_str kind,
                                              td_str name)
{
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    td_str key = TD_KEY_LINES(buffer, ns, kind, name);
    struct engine_workload *workload = td_map_get(&engine->workloads, key);
    if (!workload) {
        workload = td_alloc_zero(1, sizeof(*workload));
        workload->key = td_text_copy(key);
        workload->ns = td_str_slice(workload->key, 0, ns.len);
        workload->kind = td_str_slice(workload->key, ns.len + 1, ns.len + 1 + kind.len);
        workload->name = td_str_slice(workload->key, ns.len + kind.len + 2, key.len);
        workload->slow_factor = 1;
        int code = td_map_put(&engine->workloads, workload->key, workload);
        td_assert(code == TD_OK); /* pods and entries are fewer */
    }
    return workload;
}

void td_engine_index_entries(struct td_engine *engine)
{
    for (size_t i = 0; i < engine->entry_count; i++) {
        struct engine_entry *entry = &engine->entries[i];
        const struct td_demand *demand = entry->demand;
        struct engine_workload *workload =
            td_engine_workload_of(engine, demand->ns, demand->kind, demand->name);
        workload->is_named = true;
        if (!workload->roles && demand->role_label.len > 0) {
            workload->roles = demand;
        }
        char buffer[TD_OBJECT_KEY_BYTES_MAX];
        td_str key = TD_KEY_LINES(buffer, workload->key, demand->container);
        if (!td_map_has(&engine->entry_map, key)) {
            entry->key = td_text_copy(key);
            int code = td_map_put(&engine->entry_map, entry->key, entry);
            td_assert(code == TD_OK);
        }
    }
}

struct engine_entry *td_engine_entry_of(const struct td_engine *engine,
                                        const struct td_engine_pod *pod,
                                        const struct td_engine_spec *spec)
{
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    td_str key = pod->workload->key;
    struct engine_entry *entry =
        td_map_get(&engine->entry_map, TD_KEY_LINES(buffer, key, spec->name));
    if (!entry && spec->is_first) {
        entry = td_map_get(&engine->entry_map, TD_KEY_LINES(buffer, key, TD_STR_EMPTY));
    }
    return entry;
}

/* ---- Rows ---- */

/* What happened since its row was told. */
static void pod_add_totals(const struct td_engine_pod *pod, struct td_engine_totals *totals)
{
    double seconds = (double)(pod->node->settled - pod->reported) / (double)TD_SECOND;
    totals->used_byte_seconds += pod->used_byte_seconds;
    totals->requested_cpu_seconds += (double)pod->whole.cpu_request_milli / 1000 * seconds;
    totals->requested_byte_seconds += (double)pod->whole.memory_request_bytes * seconds;
    for (size_t i = 0; i < pod->count; i++) {
        const struct td_body *body = &pod->items[i]->body;
        const struct td_engine_totals *reported = &pod->items[i]->reported;
        totals->used_cpu_seconds += body->used_cpu_seconds - reported->used_cpu_seconds;
        totals->wanted_cpu_seconds += body->wanted_cpu_seconds - reported->wanted_cpu_seconds;
        totals->throttled_cpu_seconds +=
            body->throttled_cpu_seconds - reported->throttled_cpu_seconds;
        totals->starved_cpu_seconds += body->starved_cpu_seconds - reported->starved_cpu_seconds;
    }
}

void td_engine_tell_row(struct td_engine_pod *pod)
{
    pod_add_totals(pod, &pod->row->totals);
    pod->used_byte_seconds = 0;
    pod->reported = pod->node->settled;
    for (size_t i = 0; i < pod->count; i++) {
        const struct td_body *body = &pod->items[i]->body;
        pod->items[i]->reported = (struct td_engine_totals){
            .used_cpu_seconds = body->used_cpu_seconds,
            .wanted_cpu_seconds = body->wanted_cpu_seconds,
            .throttled_cpu_seconds = body->throttled_cpu_seconds,
            .starved_cpu_seconds = body->starved_cpu_seconds,
        };
    }
}

void td_engine_join_row(struct td_engine_pod *pod)
{
    struct td_engine *engine = pod->engine;
    struct engine_workload *workload = pod->workload;
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    td_str role = workload->roles ? pod->role : TD_STR_EMPTY;
    td_str key = TD_KEY_LINES(buffer, workload->key, role);
    struct engine_row *row = td_map_get(&engine->rows, key);
    if (!row) {
        row = td_alloc_zero(1, sizeof(*row));
        row->workload = workload;
        row->key = td_text_copy(key);
        row->role = td_str_slice(row->key, workload->key.len + 1, key.len);
        row->count_max = engine->pods.count_max;
        int code = td_map_put(&engine->rows, row->key, row);
        td_assert(code == TD_OK); /* pods and roles of entries are fewer */
        workload->row_count++;
    }
    struct td_engine_pod **place = td_vec_push(row);
    td_assert(place != NULL);
    *place = pod;
    pod->row = row;
    pod->row_place = row->count - 1;
}

static void row_free(struct engine_row *row)
{
    td_vec_done(row);
    td_text_free(row->key);
    td_free(row);
}

static void workload_free(struct engine_workload *workload)
{
    td_text_free(workload->key);
    td_free(workload);
}

/* Roles that no entry knows are not kept: labels can have any value, again and again. */
static bool row_stays(const struct engine_row *row)
{
    const struct engine_workload *workload = row->workload;
    const struct td_demand *roles = workload->roles;
    return workload->is_named &&
           (row->role.len == 0 || (roles && td_demand_role(roles, row->role) < roles->role_count));
}

void td_engine_leave_row(struct td_engine_pod *pod)
{
    struct td_engine *engine = pod->engine;
    struct engine_row *row = pod->row;
    struct engine_workload *workload = pod->workload;
    td_engine_tell_row(pod);
    struct td_engine_pod *last = row->items[--row->count];
    row->items[pod->row_place] = last;
    last->row_place = pod->row_place;
    pod->row = NULL;
    if (row->count == 0 && !row_stays(row)) {
        (void)td_map_remove(&engine->rows, row->key); /* it is there */
        row_free(row);
        workload->row_count--;
    }
}

void td_engine_drop_workload(struct td_engine *engine, struct engine_workload *workload)
{
    if (workload->row_count == 0 && !workload->is_named && workload->slow_factor == 1) {
        (void)td_map_remove(&engine->workloads, workload->key); /* it is there */
        workload_free(workload);
    }
}

void td_engine_free_rows(struct td_engine *engine)
{
    for (struct td_map_walk at = {.map = &engine->rows}; td_map_step(&at);) {
        row_free(at.value);
    }
    td_map_done(&engine->rows);
    for (struct td_map_walk at = {.map = &engine->workloads}; td_map_step(&at);) {
        workload_free(at.value);
    }
    td_map_done(&engine->workloads);
    td_map_done(&engine->entry_map);
}

/* ---- What is asked ---- */

td_str td_engine_role_label(const struct td_engine *engine, td_str ns, td_str kind, td_str name)
{
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    const struct engine_workload *workload =
        td_map_get(&engine->workloads, TD_KEY_LINES(buffer, ns, kind, name));
    return workload && workload->roles ? workload->roles->role_label : TD_STR_EMPTY;
}

void td_engine_slow_starts(struct td_engine *engine, td_str ns, td_str kind, td_str name,
                           double factor)
{
    struct engine_workload *workload = td_engine_workload_of(engine, ns, kind, name);
    workload->slow_factor = factor > 0 ? factor : 1;
    td_engine_drop_workload(engine, workload);
}

bool td_engine_next_workload(const struct td_engine *engine, size_t *position,
                             struct td_engine_workload *ret)
{
    const struct td_map_entry *entry = td_map_next(&engine->rows, position);
    if (!entry) {
        return false;
    }
    const struct engine_row *row = entry->value;
    *ret = (struct td_engine_workload){
        .ns = row->workload->ns,
        .kind = row->workload->kind,
        .name = row->workload->name,
        .role = row->role,
        .pod_count = row->count,
        .totals = row->totals,
        .kill_count = row->kill_count,
    };
    for (size_t i = 0; i < row->count; i++) {
        const struct td_engine_pod *pod = row->items[i];
        struct td_want use = td_engine_pod_use(pod);
        ret->ready_count += pod->count > 0 && pod->ready_count == pod->count;
        ret->limits.cpu_request_milli += pod->whole.cpu_request_milli;
        ret->limits.cpu_limit_milli += pod->whole.cpu_limit_milli;
        ret->limits.memory_request_bytes += pod->whole.memory_request_bytes;
        ret->limits.memory_limit_bytes += pod->whole.memory_limit_bytes;
        ret->use.cpu_milli += use.cpu_milli;
        ret->use.memory_bytes += use.memory_bytes;
        pod_add_totals(pod, &ret->totals);
    }
    return true;
}
