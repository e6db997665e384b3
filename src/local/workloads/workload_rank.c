#include "local/workloads/workload_rank.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/limits.h"

/* Ages do not fit into a comparison of two pods only, so they are replaced by their power of two
 * before: created and ready_since stay for the question whether they are equal. */
struct rank_place {
    struct td_rank_pod pod;
    int ready_power;
    int created_power;
};

static int rank_phase(enum td_pod_phase phase)
{
    return phase == TD_POD_RUNNING ? 2 : phase == TD_POD_PHASE_UNKNOWN ? 1 : 0;
}

static int rank_power(td_time time, td_time now)
{
    return time != TD_TIME_NONE && time < now
               ? 63 - __builtin_clzll((unsigned long long)(now - time))
               : -1;
}

static int rank_compare_int(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

/* By age: one without a time first, then younger ones, then by uid. */
static int rank_compare_age(const struct rank_place *a, const struct rank_place *b, bool is_ready)
{
    td_time s = is_ready ? a->pod.ready_since : a->pod.created;
    td_time t = is_ready ? b->pod.ready_since : b->pod.created;
    if (s == TD_TIME_NONE || t == TD_TIME_NONE) {
        return s == TD_TIME_NONE ? -1 : 1;
    }
    int difference =
        is_ready ? a->ready_power - b->ready_power : a->created_power - b->created_power;
    return difference != 0 ? difference : td_str_compare(a->pod.uid, b->pod.uid);
}

static int rank_compare(const void *left, const void *right)
{
    const struct rank_place *a = left;
    const struct rank_place *b = right;
    const struct td_rank_pod *p = &a->pod;
    const struct td_rank_pod *q = &b->pod;
    int by[] = {
        (p->node.len > 0) - (q->node.len > 0),
        rank_phase(p->phase) - rank_phase(q->phase),
        (int)p->is_ready - (int)q->is_ready,
        rank_compare_int(p->deletion_cost, q->deletion_cost),
        rank_compare_int((int64_t)q->neighbours, (int64_t)p->neighbours),
    };
    for (size_t i = 0; i < TD_COUNT(by); i++) {
        if (by[i] != 0) {
            return by[i];
        }
    }
    if (p->is_ready && p->ready_since != q->ready_since) {
        return rank_compare_age(a, b, true);
    }
    if (p->restarts != q->restarts) {
        return rank_compare_int(q->restarts, p->restarts);
    }
    if (p->sidecar_restarts != q->sidecar_restarts) {
        return rank_compare_int(q->sidecar_restarts, p->sidecar_restarts);
    }
    if (p->created != q->created) {
        return rank_compare_age(a, b, false);
    }
    return td_str_compare(p->uid, q->uid); /* upstream leaves it open */
}

void td_rank_sort(struct td_rank_pod *pods, size_t count, td_time now)
{
    struct td_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    struct rank_place *places = td_arena_array(&arena, struct rank_place, count);
    for (size_t i = 0; i < count; i++) {
        places[i] = (struct rank_place){
            .pod = pods[i],
            .ready_power = rank_power(pods[i].ready_since, now),
            .created_power = rank_power(pods[i].created, now),
        };
    }
    qsort(places, count, sizeof(places[0]), rank_compare);
    for (size_t i = 0; i < count; i++) {
        pods[i] = places[i].pod;
    }
    td_arena_done(&arena);
}
