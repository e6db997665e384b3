/*
 * gardener's weights as one of our modes.
 *
 * A list of intervals gives each replica count from min to max the weight of the first interval
 * that holds it, 0 where none does. What matters is that step function, so it is cut into segments
 * of one weight first; however the intervals overlap, the segments are in order. An Hvpa expresses
 *   1. 0 below max and 100 at max: HPAPreferred;
 *   2. one weight throughout: 0 is horizontal only, 100 vertical only, else a ratio without ends;
 *   3. a ratio w/(100-w) between two outer stages of 0 (horizontal) or 100 (vertical), either of
 *      which may be missing, and the ratio stage may be empty (0 then 100, or 100 then 0).
 * All else cannot be expressed.
 */
#include <stdlib.h>

#include "decide/tandem/migrate/migrate_private.h"

#define WEIGHTS_INTERVALS_MAX 64 /* of one object; real ones have one to three */
#define WEIGHTS_CUTS_MAX (2 * WEIGHTS_INTERVALS_MAX + 2)
#define WEIGHTS_SEGMENTS_MAX 3
#define WEIGHTS_ALL 100       /* percent */
#define WEIGHTS_RATIO_MAX 1e6 /* an Hvpa's largest ratio */

struct weights_interval {
    int64_t weight; /* percent given to the VPA */
    int64_t first;  /* replicas, inclusive */
    int64_t last;
};

struct weights_list {
    struct weights_interval items[WEIGHTS_INTERVALS_MAX];
    size_t count;
};

static bool weights_fail(struct td_arena *arena, struct td_migration *migration, const char *why)
{
    td_migration_note(arena, migration, td_arena_format(arena, "Not migrated: %s.", why));
    return false;
}

static bool weights_read(struct td_arena *arena, const struct td_json *intervals, int64_t min,
                         int64_t max, struct weights_list *ret, struct td_migration *migration)
{
    bool is_list = td_json_is(intervals, TD_JSON_TYPE_ARRAY);
    if (is_list && intervals->count > WEIGHTS_INTERVALS_MAX) {
        return weights_fail(arena, migration, "there are more than 64 intervals of weights");
    }
    for (const struct td_json *item = td_json_first_item(intervals); item; item = item->next) {
        int64_t first = td_json_get_int64(item, TD_STR("startReplicaCount"), 0);
        int64_t last = td_json_get_int64(item, TD_STR("lastReplicaCount"), 0);
        struct weights_interval made = {
            .weight = td_json_get_int64(item, TD_STR("vpaWeight"), 0),
            .first = first == 0 ? min : first,
            .last = last == 0 ? max : last,
        };
        if (made.weight < 0 || made.weight > WEIGHTS_ALL) {
            return weights_fail(arena, migration, "a vpaWeight is not between 0 and 100");
        }
        ret->items[ret->count++] = made;
    }
    return true;
}

static int64_t weights_at(const struct weights_list *list, int64_t replicas)
{
    for (size_t i = 0; i < list->count; i++) {
        if (list->items[i].first <= replicas && replicas <= list->items[i].last) {
            return list->items[i].weight;
        }
    }
    return 0;
}

static int weights_compare(const void *a, const void *b)
{
    int64_t first = *(const int64_t *)a;
    int64_t second = *(const int64_t *)b;
    return (first > second) - (first < second);
}

/* Segments of one weight from min to max; stops one past what can be expressed. */
static size_t weights_cut(const struct weights_list *list, int64_t min, int64_t max,
                          struct weights_interval segments[WEIGHTS_SEGMENTS_MAX + 1])
{
    int64_t cuts[WEIGHTS_CUTS_MAX] = {min};
    size_t cut_count = 1;
    for (size_t i = 0; i < list->count; i++) {
        cuts[cut_count++] = list->items[i].first;
        /* past the largest count nothing begins */
        cuts[cut_count++] = list->items[i].last < max ? list->items[i].last + 1 : max + 1;
    }
    qsort(cuts, cut_count, sizeof(cuts[0]), weights_compare);
    size_t count = 0;
    for (size_t i = 0; i < cut_count && count <= WEIGHTS_SEGMENTS_MAX; i++) {
        if (cuts[i] < min || cuts[i] > max) {
            continue;
        }
        int64_t weight = weights_at(list, cuts[i]);
        if (count > 0 && segments[count - 1].weight == weight) {
            continue;
        }
        if (count > 0) {
            segments[count - 1].last = cuts[i] - 1;
        }
        segments[count++] =
            (struct weights_interval){.weight = weight, .first = cuts[i], .last = max};
    }
    return count;
}

static bool weights_is_outer(const struct weights_interval *segment)
{
    return segment->weight == 0 || segment->weight == WEIGHTS_ALL;
}

/* What an Hvpa of mode RatioBased says; a pointer is NULL where that stage is missing. */
struct weights_stages {
    const struct weights_interval *initial;
    const struct weights_interval *ratio;
    const struct weights_interval *final;
};

static td_str weights_axis(const struct weights_interval *segment)
{
    return segment->weight == WEIGHTS_ALL ? TD_STR("vertical") : TD_STR("horizontal");
}

static void weights_write(struct td_arena *arena, const struct weights_stages *stages,
                          struct td_json *spec)
{
    struct td_json *ratio = td_json_new_object(arena);
    td_json_set_str(arena, spec, TD_STR("mode"), TD_STR("RatioBased"));
    if (stages->initial) {
        int64_t start = stages->initial->last + 1;
        td_json_set_str(arena, spec, TD_STR("initialScaling"), weights_axis(stages->initial));
        td_json_set_int64(arena, ratio, TD_STR("startReplicaCount"), start);
    }
    if (stages->final) {
        /* Without a ratio stage both borders are where the second stage begins. */
        int64_t finish = stages->ratio ? stages->ratio->last : stages->final->first;
        td_json_set_str(arena, spec, TD_STR("finalScaling"), weights_axis(stages->final));
        td_json_set_int64(arena, ratio, TD_STR("finishReplicaCount"), finish);
    }
    if (stages->ratio) {
        double weight = (double)stages->ratio->weight;
        double share =
            weight < WEIGHTS_ALL ? weight / (WEIGHTS_ALL - weight) : (double)WEIGHTS_RATIO_MAX;
        td_json_set_double(arena, ratio, TD_STR("vToHScalingRatio"), share);
    }
    td_json_set(arena, spec, TD_STR("ratioBasedScalingSpec"), ratio);
}

/* One weight for every count. */
static void weights_write_single(struct td_arena *arena, const struct weights_interval *segment,
                                 struct td_json *spec, struct td_migration *migration)
{
    if (!weights_is_outer(segment)) {
        weights_write(arena, &(struct weights_stages){.ratio = segment}, spec);
        return;
    }
    bool is_vertical = segment->weight == WEIGHTS_ALL;
    td_json_set_str(arena, spec, TD_STR("mode"),
                    is_vertical ? TD_STR("VPABiased") : TD_STR("HPABiased"));
    td_migrate_switch_off(arena, spec, is_vertical ? TD_STR("horizontal") : TD_STR("vertical"));
    td_migration_note(arena, migration,
                      is_vertical
                          ? TD_STR("The weight is 100 throughout, so horizontal scaling is Off.")
                          : TD_STR("The weight is 0 throughout, so vertical scaling is Off."));
}

static bool weights_choose(const struct weights_interval *segments, size_t count,
                           struct weights_stages *ret)
{
    bool begins_outer = weights_is_outer(&segments[0]);
    bool ends_outer = weights_is_outer(&segments[count - 1]);
    if (count == WEIGHTS_SEGMENTS_MAX) {
        *ret = (struct weights_stages){&segments[0], &segments[1], &segments[2]};
        return begins_outer && ends_outer;
    }
    if (begins_outer && ends_outer) {
        *ret = (struct weights_stages){&segments[0], NULL, &segments[1]};
    } else if (begins_outer) {
        *ret = (struct weights_stages){&segments[0], &segments[1], NULL};
    } else {
        *ret = (struct weights_stages){NULL, &segments[0], &segments[1]};
    }
    return begins_outer || ends_outer;
}

bool td_migrate_weights(struct td_arena *arena, const struct td_json *intervals,
                        int64_t min_replicas, int64_t max_replicas, struct td_json *spec,
                        struct td_migration *migration)
{
    struct weights_list list = {.count = 0};
    if (!weights_read(arena, intervals, min_replicas, max_replicas, &list, migration)) {
        return false;
    }
    struct weights_interval segments[WEIGHTS_SEGMENTS_MAX + 1];
    size_t count = weights_cut(&list, min_replicas, max_replicas, segments);
    struct weights_stages stages;
    if (count == 1) {
        weights_write_single(arena, &segments[0], spec, migration);
        return true;
    }
    if (count == 2 && segments[0].weight == 0 && segments[1].weight == WEIGHTS_ALL &&
        segments[1].first == max_replicas) {
        td_json_set_str(arena, spec, TD_STR("mode"), TD_STR("HPAPreferred"));
        return true;
    }
    if (count > WEIGHTS_SEGMENTS_MAX || !weights_choose(segments, count, &stages)) {
        return weights_fail(arena, migration,
                            "the weights have more stages than one ratio between two axes");
    }
    weights_write(arena, &stages, spec);
    return true;
}
