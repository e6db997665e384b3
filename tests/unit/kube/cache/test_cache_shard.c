/* Objects of other shards are passed over while their bytes are read, in lists and in watches. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/error.h"
#include "kube/cache/cache_watch.h"
#include "kube/selector/shard.h"

struct told {
    struct td_buf text;
};

static int tell(void *context, enum td_watch_type type, struct td_cache_decoded *decoded,
                struct td_error *err)
{
    struct told *told = context;
    const struct td_cache_head *head = td_cache_decoded_head(decoded);
    (void)err;
    (void)td_buf_append_format(&told->text, "%d %.*s/%.*s, ", (int)type,
                               TD_STR_ARG(head->namespace), TD_STR_ARG(head->name));
    return TD_OK;
}

struct bed {
    struct td_cache_plan *plan;
    struct td_cache_decoded decoded;
    struct td_watch_reader reader;
    struct td_shard_range shard;
    struct told told;
};

/* "mine" is in the shard, "other" is not. */
static void bed_init(struct bed *bed)
{
    uint64_t hash = td_shard_hash(TD_STR("mine"));
    *bed = (struct bed){.shard = {.first = hash, .last = hash}};
    td_buf_init(&bed->told.text, 4096);
    assert_int_equal(td_cache_plan_new(NULL, 0, sizeof(struct td_cache_head), &bed->plan, NULL),
                     TD_OK);
    td_cache_decoded_init(&bed->decoded, bed->plan);
    td_watch_reader_init(&bed->reader, bed->plan, &bed->decoded, tell, &bed->told);
    bed->reader.shard = &bed->shard;
}

static void bed_done(struct bed *bed)
{
    td_watch_reader_done(&bed->reader);
    td_cache_decoded_done(&bed->decoded);
    td_cache_plan_free(bed->plan);
    td_buf_done(&bed->told.text);
}

#define OTHER                                                                                      \
    "{\"kind\":\"Pod\",\"metadata\":{\"labels\":{\"namespace\":\"mine\",\"a\":\"}\"},"             \
    "\"name\":\"x\",\"namespace\":\"other\",\"resourceVersion\":\"7\"},\"spec\":{\"metadata\":1}}"
#define MINE                                                                                       \
    "{\"spec\":{\"metadata\":{\"namespace\":\"other\"}},\"metadata\":{\"name\":\"y\","             \
    "\"namespace\":\"mine\",\"resourceVersion\":\"8\"}}"
#define NOBODYS "{\"metadata\":{\"name\":\"z\",\"resourceVersion\":\"9\"}}"

static void test_list_passes_over_other_shards(void **state)
{
    struct bed bed;
    td_auto_buf version = td_buf_capped(64);
    td_auto_buf next = td_buf_capped(64);
    (void)state;
    bed_init(&bed);
    td_str body = TD_STR("{\"metadata\":{\"resourceVersion\":\"9\"},\"items\":[" OTHER "," MINE
                         "," OTHER "," NOBODYS "]}");
    assert_int_equal(td_watch_read_list(&bed.reader, body, &version, &next, NULL), TD_OK);
    assert_string_equal(td_buf_str(&bed.told.text).ptr, "0 mine/y, 0 /z, ");
    assert_int_equal(bed.reader.foreign, 2);
    assert_int_equal(bed.reader.foreign_bytes, 2 * (sizeof(OTHER) - 1));
    bed_done(&bed);
}

/* A broken object is an error wherever it is, and an event of no object is none. */
static void test_watch_passes_over_other_shards(void **state)
{
    struct bed bed;
    (void)state;
    bed_init(&bed);
    td_str lines = TD_STR("{\"type\":\"ADDED\",\"object\":" OTHER "}\n{\"type\":\"MODIFIED\","
                          "\"object\":" MINE "}\n{\"object\":" OTHER ",\"type\":\"DELETED\"}\n"
                          "{\"type\":\"BOOKMARK\",\"object\":" NOBODYS "}\n");
    for (size_t i = 0; i < lines.len; i += 7) {
        assert_int_equal(td_watch_reader_feed(&bed.reader, td_str_slice(lines, i, i + 7), NULL),
                         TD_OK);
    }
    assert_string_equal(td_buf_str(&bed.told.text).ptr, "1 mine/y, 3 /z, ");
    assert_int_equal(bed.reader.foreign, 2);
    td_str broken = TD_STR("{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"namespace\":\"other\","
                           "\"name\":tru}}}\n");
    assert_int_equal(td_watch_reader_feed(&bed.reader, broken, NULL), TD_INVALID);
    bed_done(&bed);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_list_passes_over_other_shards),
        cmocka_unit_test(test_watch_passes_over_other_shards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
