/*
 * Work queues of the loop. A key is one item for as long as it waits, is delayed or runs; flags say
 * which of these, and several may hold: a key can wait again while its job runs, and be delayed
 * besides. Queues with waiting keys take turns, one job each, so a long line does not shut out a
 * short one.
 */
#include "base/os/loop.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/os/loop_internal.h"

struct queue_item {
    struct td_timer timer; /* set while the key is delayed */
    struct td_queue *queue;
    struct queue_item *next; /* in the line */
    size_t key_len;
    bool is_waiting; /* stands in the line */
    char key[];      /* followed by a NUL */
};

struct td_queue {
    struct td_loop *loop;
    td_job_fn fn;
    void *context;
    size_t count_max;
    size_t count;        /* keys that wait or are delayed */
    struct td_map items; /* key to item, the running one included; items are owned */
    struct queue_item *first;
    struct queue_item *last;
    struct queue_item *running; /* inside its job; NULL otherwise */
    bool is_freed;              /* by its own job; the memory goes when that returns */
    bool is_ready;              /* stands in the loop's line */
    struct td_queue *ready_previous;
    struct td_queue *ready_next;
};

static void ready_add(struct td_queue *queue)
{
    struct td_loop *loop = queue->loop;
    if (queue->is_ready) {
        return;
    }
    queue->is_ready = true;
    queue->ready_next = NULL;
    queue->ready_previous = loop->ready_last;
    *(loop->ready_last ? &loop->ready_last->ready_next : &loop->ready_first) = queue;
    loop->ready_last = queue;
}

static void ready_remove(struct td_queue *queue)
{
    struct td_loop *loop = queue->loop;
    if (!queue->is_ready) {
        return;
    }
    queue->is_ready = false;
    struct td_queue *previous = queue->ready_previous;
    struct td_queue *next = queue->ready_next;
    *(previous ? &previous->ready_next : &loop->ready_first) = next;
    *(next ? &next->ready_previous : &loop->ready_last) = previous;
}

static td_str item_key(const struct queue_item *item)
{
    return (td_str){.ptr = item->key, .len = item->key_len};
}

static bool item_is_counted(const struct queue_item *item)
{
    return item->is_waiting || td_timer_is_set(&item->timer);
}

static void queue_push(struct td_queue *queue, struct queue_item *item)
{
    td_assert(!item->is_waiting);
    item->is_waiting = true;
    item->next = NULL;
    *(queue->last ? &queue->last->next : &queue->first) = item;
    queue->last = item;
    ready_add(queue);
}

static struct queue_item *queue_pop(struct td_queue *queue)
{
    struct queue_item *item = queue->first;
    td_assert(item);
    queue->first = item->next;
    if (!queue->first) {
        queue->last = NULL;
    }
    item->is_waiting = false;
    return item;
}

static void queue_item_is_due(struct td_timer *timer, void *context)
{
    (void)timer;
    struct queue_item *item = context;
    if (!item->is_waiting) {
        queue_push(item->queue, item);
    }
}

struct td_queue *td_queue_new(struct td_loop *loop, td_job_fn fn, void *context, size_t count_max)
{
    td_assert(count_max <= TD_WORK_QUEUE_MAX);
    struct td_queue *queue = td_alloc_zero(1, sizeof(*queue));
    queue->loop = loop;
    queue->fn = fn;
    queue->context = context;
    queue->count_max = count_max;
    /* One more than wait: the running one. */
    td_map_init(&queue->items, count_max + 1);
    loop->queue_count++;
    return queue;
}

void td_queue_free(struct td_queue *queue)
{
    if (!queue) {
        return;
    }
    td_assert(!queue->is_freed);
    ready_remove(queue);
    for (struct td_map_walk at = {.map = &queue->items}; td_map_step(&at);) {
        struct queue_item *item = at.value;
        td_timer_stop(&item->timer);
        if (item != queue->running) {
            td_free(item);
        }
    }
    td_map_done(&queue->items);
    td_assert(queue->loop->queue_count > 0);
    queue->loop->queue_count--;
    if (queue->running) {
        queue->is_freed = true; /* its job still reads the key */
    } else {
        td_free(queue);
    }
}

static struct queue_item *queue_item_new(struct td_queue *queue, td_str key)
{
    struct queue_item *item = td_alloc(sizeof(*item) + key.len + 1);
    td_timer_init(&item->timer, queue->loop, queue_item_is_due, item);
    item->queue = queue;
    item->next = NULL;
    item->is_waiting = false;
    item->key_len = key.len;
    if (key.len > 0) {
        memcpy(item->key, key.ptr, key.len);
    }
    item->key[key.len] = '\0';
    int result = td_map_put(&queue->items, item_key(item), item);
    td_assert(result == TD_OK); /* the map has room for all that are counted and the running one */
    return item;
}

/* The item of `key`, made when there is none, counted; NULL when the queue is full. */
static struct queue_item *queue_count_item(struct td_queue *queue, td_str key, struct td_error *err)
{
    struct queue_item *item = td_map_get(&queue->items, key);
    if (item && item_is_counted(item)) {
        return item;
    }
    if (queue->count >= queue->count_max) {
        (void)td_error_set(err, TD_LIMIT, "queue is full with %zu keys", queue->count);
        return NULL;
    }
    queue->count++;
    return item ? item : queue_item_new(queue, key);
}

int td_queue_add(struct td_queue *queue, td_str key, struct td_error *err)
{
    td_assert(!queue->is_freed);
    struct queue_item *item = queue_count_item(queue, key, err);
    if (!item) {
        return TD_LIMIT;
    }
    if (!item->is_waiting) {
        queue_push(queue, item);
    }
    return TD_OK;
}

int td_queue_add_after(struct td_queue *queue, td_str key, td_duration after, struct td_error *err)
{
    if (after <= 0) {
        return td_queue_add(queue, key, err);
    }
    td_assert(!queue->is_freed);
    struct queue_item *item = queue_count_item(queue, key, err);
    if (!item) {
        return TD_LIMIT;
    }
    td_duration now = td_clock_steady(queue->loop->clock);
    bool is_earlier = !td_timer_is_set(&item->timer) || after < item->timer.due - now;
    if (is_earlier) {
        td_timer_set(&item->timer, after);
    }
    return TD_OK;
}

size_t td_queue_count(const struct td_queue *queue)
{
    return queue->count;
}

void td_queue_run_next(struct td_loop *loop)
{
    struct td_queue *queue = loop->ready_first;
    td_assert(queue);
    ready_remove(queue);
    struct queue_item *item = queue_pop(queue);
    queue->count -= item_is_counted(item) ? 0 : 1; /* it may be delayed besides */
    queue->running = item;
    enum td_job_result result = queue->fn(item_key(item), queue->context);
    queue->running = NULL;
    if (queue->is_freed) {
        td_free(item);
        td_free(queue);
        return;
    }
    if (result == TD_JOB_AGAIN && !item->is_waiting) {
        queue->count += item_is_counted(item) ? 0 : 1; /* over the maximum, if need be */
        queue_push(queue, item);
    } else if (!item_is_counted(item)) {
        (void)td_map_remove(&queue->items, item_key(item)); /* gives back the item we hold */
        td_free(item);
    }
    if (queue->first) {
        ready_add(queue);
    }
}
