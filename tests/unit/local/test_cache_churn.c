/* The list+watch cache over the in-process transport: thousands of random changes, forgotten
 * versions in between, and at the end the cache and the store are the same, object by object. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/intern.h"
#include "kube/cache/cache.h"
#include "kube/client/client.h"
#include "local/api/transport.h"
#include "support/api_bed.h"
#include "support/random.h"

#define NAMES 2000
#define STEPS 12000

struct map_object {
    struct td_cache_head head;
    td_str labels;
    td_str step;  /* data.step */
    td_str whole; /* empty with metadata only */
    td_time created;
};

static const struct td_cache_field map_fields[] = {
    {"metadata.labels", TD_CACHE_RAW, offsetof(struct map_object, labels)},
    {"metadata.creationTimestamp", TD_CACHE_TIME, offsetof(struct map_object, created)},
    {"data.step", TD_CACHE_NAME, offsetof(struct map_object, step)},
    {"", TD_CACHE_RAW, offsetof(struct map_object, whole)},
};

struct consumer {
    size_t held;
    uint64_t added;
    uint64_t changed;
    uint64_t deleted;
    uint64_t synced;
};

static void on_added(void *context, const void *object)
{
    struct consumer *consumer = context;
    (void)object;
    consumer->added++;
    consumer->held++;
}

static void on_changed(void *context, const void *before, const void *after)
{
    struct consumer *consumer = context;
    const struct map_object *old = before;
    const struct map_object *new = after;
    assert_true(td_str_equal(old->head.uid, new->head.uid));
    assert_false(td_str_equal(old->head.version, new->head.version));
    consumer->changed++;
}

static void on_deleted(void *context, const void *object)
{
    struct consumer *consumer = context;
    (void)object;
    consumer->deleted++;
    consumer->held--;
}

static void on_synced(void *context)
{
    struct consumer *consumer = context;
    consumer->synced++;
}

static struct td_collection *collection_of(struct bed *bed)
{
    struct td_collection *collection;
    assert_int_equal(td_store_collection(bed->store, TD_STR("configmaps"), &collection, NULL),
                     TD_OK);
    return collection;
}

/* One random change of one of the objects; each new one has a uid of its own. */
static void churn(struct bed *bed, int step)
{
    struct td_collection *collection = collection_of(bed);
    char ns[16];
    char name[16];
    int number = (int)random_below(NAMES);
    (void)snprintf(ns, sizeof(ns), "n%d", number % 7);
    (void)snprintf(name, sizeof(name), "m%d", number);
    struct td_stored *before = td_collection_get(collection, td_str_from(ns), td_str_from(name));
    bool is_gone = before && random_below(3) == 0;
    char uid[32];
    if (before) {
        (void)snprintf(uid, sizeof(uid), "%.*s", TD_STR_ARG(before->uid));
    } else {
        (void)snprintf(uid, sizeof(uid), "uid-%d", step);
    }
    uint64_t version = td_store_reserve(bed->store);
    td_auto_buf json;
    td_buf_init(&json, 1 << 16);
    (void)td_buf_append_format(
        &json,
        "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"%s\",\"namespace\":"
        "\"%s\",\"uid\":\"%s\",\"resourceVersion\":\"%llu\",\"creationTimestamp\":"
        "\"2023-11-14T22:13:20Z\",\"labels\":{\"half\":\"%d\"}},\"data\":{\"step\":\"%d\"}}",
        name, ns, uid, (unsigned long long)version, step % 2, step % 50);
    const struct td_commit commit = {
        .type = is_gone  ? TD_CHANGE_DELETED
                : before ? TD_CHANGE_MODIFIED
                         : TD_CHANGE_ADDED,
        .ns = td_str_from(ns),
        .name = td_str_from(name),
        .version = version,
        .json = td_buf_str(&json),
    };
    assert_int_equal(td_store_commit(bed->store, collection, &commit, NULL, NULL), TD_OK);
}

static bool is_selected(const struct td_stored *stored, const char *half)
{
    return !half || strstr(stored->json.ptr, half) != NULL;
}

/* Every object of the store is in the cache under its version, and no other. */
static void compare(struct bed *bed, const struct td_cache *cache, const char *half, bool is_whole)
{
    struct td_collection_iter iter;
    iter = td_collection_walk(collection_of(bed), TD_STR_EMPTY);
    struct td_stored *stored;
    size_t count = 0;
    while ((stored = td_collection_iter_next(&iter)) != NULL) {
        if (!is_selected(stored, half)) {
            continue;
        }
        count++;
        const struct map_object *object = td_cache_get(cache, stored->ns, stored->name);
        assert_non_null(object);
        assert_int_equal(strtoull(object->head.version.ptr, NULL, 10), stored->version);
        assert_true(td_str_equal(object->head.uid, stored->uid));
        assert_true(td_str_equal(object->labels, stored->labels));
        assert_true(object->created == BED_START * TD_SECOND);
        if (is_whole) {
            assert_non_null(strstr(stored->json.ptr, object->step.ptr));
            assert_true(object->whole.len > 0);
        } else {
            assert_int_equal(object->step.len, 0);
        }
    }
    assert_int_equal(td_cache_count(cache), count);
}

struct side {
    struct td_client *client;
    struct td_intern *names;
    struct td_cache *cache;
    struct consumer consumer;
};

static void side_init(struct side *side, struct bed *bed, bool is_metadata_only,
                      const char *selector)
{
    *side = (struct side){.names = td_intern_new(1000)};
    const struct td_transport_local_options transport = {.api = bed->api,
                                                         .loop = bed->loop,
                                                         .user = TD_STR("admin"),
                                                         .group = TD_STR("system:masters"),
                                                         .user_agent = TD_STR("test")};
    const struct td_client_options client = {
        .loop = bed->loop, .transport = td_transport_local_new(&transport), .burst = 1, .seed = 1};
    side->client = td_client_new(&client);
    const struct td_cache_options options = {
        .loop = bed->loop,
        .client = side->client,
        .version = TD_STR("v1"),
        .plural = TD_STR("configmaps"),
        .label_selector = td_str_from(selector),
        .is_metadata_only = is_metadata_only,
        .fields = map_fields,
        .field_count = sizeof(map_fields) / sizeof(map_fields[0]),
        .struct_bytes = sizeof(struct map_object),
        .names = side->names,
        .seed = 2,
    };
    static const struct td_cache_handler handler = {
        .added = on_added, .changed = on_changed, .deleted = on_deleted, .synced = on_synced};
    assert_int_equal(td_cache_new(&options, &side->cache, NULL), TD_OK);
    td_cache_subscribe(side->cache, &handler, &side->consumer);
    td_cache_start(side->cache);
}

static void side_done(struct side *side)
{
    assert_int_equal(side->consumer.held, td_cache_count(side->cache));
    td_cache_free(side->cache);
    assert_int_equal(td_intern_count(side->names), 0);
    td_intern_free(side->names);
    td_client_free(side->client);
}

static void test_cache_equals_store_after_churn(void **state)
{
    (void)state;
    struct bed bed;
    bed_init(&bed);
    for (int step = 0; step < NAMES; step++) {
        churn(&bed, step);
    }
    struct side whole;
    struct side metadata;
    struct side half;
    side_init(&whole, &bed, false, NULL);
    side_init(&metadata, &bed, true, NULL);
    side_init(&half, &bed, false, "half=1");
    for (int step = 0; step < STEPS; step++) {
        churn(&bed, step);
        if (random_below(400) == 0) {
            td_store_compact(bed.store, td_store_version(bed.store));
        }
        if (random_below(5) == 0) {
            bed_run(&bed, (td_duration)random_below(200) * TD_MILLISECOND);
        }
    }
    bed_run(&bed, 2 * TD_MINUTE);
    compare(&bed, whole.cache, NULL, true);
    compare(&bed, metadata.cache, NULL, false);
    compare(&bed, half.cache, "\"half\":\"1\"", true);
    assert_true(td_cache_counts(whole.cache).expired > 0);
    assert_true(whole.consumer.synced > 1);
    assert_true(whole.consumer.deleted > 0);
    assert_true(td_cache_age(whole.cache) < TD_MINUTE);
    side_done(&whole);
    side_done(&metadata);
    side_done(&half);
    bed_done(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cache_equals_store_after_churn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
