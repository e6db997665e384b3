/*
 * The cut is the smallest heaviest shard that whole namespaces in the order of their hashes allow,
 * found by halving the limit: going from left to right, a shard takes namespaces until the next
 * would be too much.
 */
#include "decide/shards/shards.h"

#include <stdlib.h>

#include "base/assert.h"

static int weight_compare(const void *a, const void *b)
{
    const struct td_shard_weight *x = a;
    const struct td_shard_weight *y = b;
    if (x->hash != y->hash) {
        return x->hash < y->hash ? -1 : 1;
    }
    return td_str_compare(x->namespace, y->namespace);
}

/* How many shards of at most `limit` the namespaces need; their starts when asked for. Namespaces
 * of one hash stay together. */
static size_t cut_greedily(const struct td_shard_weight *weights, size_t weight_count,
                           uint64_t limit, uint64_t *ret_starts, size_t starts_max)
{
    size_t shards = 1;
    uint64_t sum = 0;
    for (size_t i = 0; i < weight_count;) {
        uint64_t together = 0;
        size_t next = i;
        while (next < weight_count && weights[next].hash == weights[i].hash) {
            together += weights[next++].weight;
        }
        if (sum > 0 && sum + together > limit) {
            if (ret_starts && shards - 1 < starts_max) {
                ret_starts[shards - 1] = weights[i].hash;
            }
            shards++;
            sum = 0;
        }
        sum += together;
        i = next;
    }
    return shards;
}

/* Starts for what is left: the widest shard is cut in the middle, again and again. */
static void cut_rest(uint64_t *starts, size_t used, size_t shard_count)
{
    for (; used + 1 < shard_count; used++) {
        size_t widest = 0;
        uint64_t width = 0;
        for (size_t i = 0; i <= used; i++) {
            uint64_t first = i > 0 ? starts[i - 1] : 0;
            uint64_t last = i < used ? starts[i] - 1 : UINT64_MAX;
            if (last - first > width) {
                width = last - first;
                widest = i;
            }
        }
        uint64_t first = widest > 0 ? starts[widest - 1] : 0;
        for (size_t i = used; i > widest; i--) {
            starts[i] = starts[i - 1];
        }
        starts[widest] = first + width / 2 + 1;
    }
}

void td_shards_cut(struct td_shard_weight *weights, size_t weight_count, size_t shard_count,
                   uint64_t *ret_starts)
{
    td_assert(shard_count > 0);
    uint64_t total = 0;
    if (weight_count > 0) {
        qsort(weights, weight_count, sizeof(*weights), weight_compare);
    }
    for (size_t i = 0; i < weight_count; i++) {
        total += weights[i].weight;
    }
    uint64_t low = 0;
    uint64_t high = total;
    while (low < high) {
        uint64_t limit = low + (high - low) / 2;
        if (cut_greedily(weights, weight_count, limit, NULL, 0) <= shard_count) {
            high = limit;
        } else {
            low = limit + 1;
        }
    }
    size_t used = cut_greedily(weights, weight_count, high, ret_starts, shard_count - 1) - 1;
    cut_rest(ret_starts, used < shard_count ? used : shard_count - 1, shard_count);
}

struct td_shard_balance td_shards_weigh(const struct td_shard_weight *weights, size_t weight_count,
                                        const uint64_t *starts, size_t shard_count)
{
    struct td_shard_balance balance = {.heaviest = 0};
    for (size_t shard = 0; shard < shard_count; shard++) {
        uint64_t first = shard > 0 ? starts[shard - 1] : 0;
        uint64_t last = shard + 1 < shard_count ? starts[shard] - 1 : UINT64_MAX;
        uint64_t sum = 0;
        for (size_t i = 0; i < weight_count; i++) {
            bool is_in = weights[i].hash >= first && weights[i].hash <= last;
            sum += is_in ? weights[i].weight : 0;
        }
        balance.total += sum;
        balance.heaviest = sum > balance.heaviest ? sum : balance.heaviest;
    }
    return balance;
}

bool td_shards_is_uneven(const struct td_shard_balance *now, const struct td_shard_balance *then,
                         size_t shard_count)
{
    bool is_heavy = now->heaviest * 2 * shard_count > now->total * 3;
    return is_heavy && then->heaviest * 10 <= now->heaviest * 9;
}
