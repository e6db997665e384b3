/* The string map: its hash against known answers, and every call against a plain list. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/map.h"
#include "support/random.h"

#define MODEL_KEYS 600

/* SipHash-1-3 of the bytes 0, 1, 2, ... under the key 00 01 .. 0f, as OpenSSL computes it
 * (openssl mac -macopt c-rounds:1 -macopt d-rounds:3 -macopt size:8 SIPHASH). */
static void test_map_hash_is_siphash13(void **state)
{
    (void)state;
    static const struct {
        size_t len;
        unsigned char hash[8];
    } rows[] = {
        {0, {0xDC, 0xC4, 0x0F, 0x05, 0x58, 0x01, 0xAC, 0xAB}},
        {1, {0x93, 0xCA, 0x57, 0x7D, 0xF3, 0x9B, 0xF4, 0xC9}},
        {2, {0x4D, 0xD4, 0xC7, 0x4D, 0x02, 0x9B, 0xCB, 0x82}},
        {7, {0x40, 0x11, 0xB1, 0x9B, 0x98, 0x7D, 0x92, 0xD3}},
        {8, {0x8E, 0x9A, 0x29, 0x8D, 0x11, 0x95, 0x90, 0x36}},
        {9, {0xE4, 0x3D, 0x06, 0x6C, 0xB3, 0x8E, 0xA4, 0x25}},
        {15, {0x56, 0x99, 0x51, 0x2A, 0x6D, 0xD8, 0x20, 0xD3}},
        {16, {0x66, 0x8B, 0x90, 0x7D, 0x1A, 0xDD, 0x4F, 0xCC}},
        {63, {0xA8, 0xB3, 0xBB, 0xB7, 0x62, 0x90, 0x19, 0x9D}},
    };
    char bytes[64];
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (char)i;
    }
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t expected = 0;
        for (size_t j = 8; j > 0; j--) {
            expected = expected << 8 | rows[i].hash[j - 1];
        }
        assert_true(td_map_hash((td_str){.ptr = bytes, .len = rows[i].len}) == expected);
    }
}

/* A map that was only made answers every question, and an empty key is a key. */
static void test_map_answers_when_empty_and_takes_the_empty_key(void **state)
{
    (void)state;
    td_auto_map map;
    td_map_init(&map, 10);
    size_t position = 0;
    assert_null(td_map_get(&map, TD_STR("a")));
    assert_false(td_map_has(&map, TD_STR("")));
    assert_null(td_map_remove(&map, TD_STR("a")));
    assert_null(td_map_next(&map, &position));
    td_map_reset(&map);
    int value = 1;
    assert_int_equal(td_map_put(&map, (td_str){.ptr = NULL, .len = 0}, &value), TD_OK);
    assert_ptr_equal(td_map_get(&map, TD_STR("")), &value);
}

/* NULL values are stored, replacing takes the new key, and keys may hold NUL bytes. */
static void test_map_put_replaces_key_and_value(void **state)
{
    (void)state;
    td_auto_map map;
    td_map_init(&map, 10);
    char first[] = "a\0b";
    char second[] = "a\0b";
    assert_int_equal(td_map_put(&map, (td_str){.ptr = first, .len = 3}, NULL), TD_OK);
    assert_true(td_map_has(&map, (td_str){.ptr = second, .len = 3}));
    assert_false(td_map_has(&map, TD_STR("a")));
    assert_int_equal(td_map_put(&map, (td_str){.ptr = second, .len = 3}, &map), TD_OK);
    assert_int_equal(map.count, 1);
    memset(first, 'x', sizeof(first));
    assert_ptr_equal(td_map_get(&map, (td_str){.ptr = second, .len = 3}), &map);
}

/* At its maximum a map refuses a new key, still replaces an old one, and takes a new one again
 * after a removal. */
static void test_map_stops_at_its_maximum(void **state)
{
    (void)state;
    static const size_t maxima[] = {0, 1, 2, 6, 7, 100};
    for (size_t m = 0; m < sizeof(maxima) / sizeof(maxima[0]); m++) {
        td_auto_map map;
        td_map_init(&map, maxima[m]);
        char keys[101][24];
        for (size_t i = 0; i <= maxima[m]; i++) {
            (void)snprintf(keys[i], sizeof(keys[i]), "k%zu", i);
            int expected = i < maxima[m] ? TD_OK : TD_LIMIT;
            assert_int_equal(td_map_put(&map, td_str_from(keys[i]), keys[i]), expected);
        }
        assert_int_equal(map.count, maxima[m]);
        if (maxima[m] > 0) {
            assert_int_equal(td_map_put(&map, TD_STR("k0"), NULL), TD_OK);
            assert_null(td_map_remove(&map, TD_STR("k0")));
            assert_int_equal(td_map_put(&map, TD_STR("new"), keys), TD_OK);
            assert_int_equal(td_map_put(&map, TD_STR("k0"), keys), TD_LIMIT);
        }
    }
}

struct model {
    td_str keys[MODEL_KEYS]; /* in insertion order */
    void *values[MODEL_KEYS];
    size_t count;
};

static size_t model_find(const struct model *model, td_str key)
{
    size_t i = 0;
    while (i < model->count && !td_str_equal(model->keys[i], key)) {
        i++;
    }
    return i;
}

static void model_put(struct model *model, td_str key, void *value)
{
    size_t i = model_find(model, key);
    model->keys[i] = key;
    model->values[i] = value;
    model->count += i == model->count ? 1 : 0;
}

static void model_remove(struct model *model, size_t i)
{
    model->count--;
    memmove(&model->keys[i], &model->keys[i + 1], (model->count - i) * sizeof(model->keys[0]));
    memmove(&model->values[i], &model->values[i + 1],
            (model->count - i) * sizeof(model->values[0]));
}

static void assert_same_order(const struct td_map *map, const struct model *model)
{
    assert_int_equal(map->count, model->count);
    size_t position = 0;
    for (size_t i = 0; i < model->count; i++) {
        const struct td_map_entry *entry = td_map_next(map, &position);
        assert_non_null(entry);
        assert_true(td_str_equal(entry->key, model->keys[i]));
        assert_ptr_equal(entry->value, model->values[i]);
    }
    assert_null(td_map_next(map, &position));
}

static char model_texts[MODEL_KEYS][24];

static void model_step(struct td_map *map, struct model *model, size_t put_percent)
{
    size_t pick = random_below(MODEL_KEYS);
    td_str key = td_str_from(model_texts[pick]);
    size_t at = model_find(model, key);
    if (random_below(100) < put_percent) {
        void *value = model_texts[random_below(MODEL_KEYS)];
        assert_int_equal(td_map_put(map, key, value), TD_OK);
        model_put(model, key, value);
    } else {
        void *expected = at < model->count ? model->values[at] : NULL;
        assert_ptr_equal(td_map_remove(map, key), expected);
        if (at < model->count) {
            model_remove(model, at);
        }
    }
    pick = random_below(MODEL_KEYS);
    key = td_str_from(model_texts[pick]);
    at = model_find(model, key);
    assert_int_equal(td_map_has(map, key), at < model->count);
    assert_ptr_equal(td_map_get(map, key), at < model->count ? model->values[at] : NULL);
}

/* Random puts and removals, in phases that fill and that drain, agree with a plain list at each
 * step, in iteration order too. */
static void test_map_agrees_with_a_list(void **state)
{
    (void)state;
    static struct model model;
    static const size_t phases[] = {90, 10, 50, 99, 1, 60, 40, 0, 95, 5};
    for (size_t i = 0; i < MODEL_KEYS; i++) {
        (void)snprintf(model_texts[i], sizeof(model_texts[i]), "key-%zu", i);
    }
    td_auto_map map;
    td_map_init(&map, MODEL_KEYS);
    for (size_t phase = 0; phase < sizeof(phases) / sizeof(phases[0]); phase++) {
        for (size_t step = 0; step < 3000; step++) {
            model_step(&map, &model, phases[phase]);
            if (step % 50 == 0) {
                assert_same_order(&map, &model);
            }
        }
        assert_same_order(&map, &model);
    }
}

/* Each entry may be removed as the iteration returns it, also the last one. */
static void test_map_allows_removal_of_the_entry_just_returned(void **state)
{
    (void)state;
    static char keys[1000][24];
    td_auto_map map;
    td_map_init(&map, 1000);
    for (size_t keep = 1; keep <= 3; keep++) {
        td_map_reset(&map);
        for (size_t i = 0; i < 1000; i++) {
            (void)snprintf(keys[i], sizeof(keys[i]), "%zu", i);
            assert_int_equal(td_map_put(&map, td_str_from(keys[i]), keys[i]), TD_OK);
        }
        size_t position = 0;
        size_t seen = 0;
        for (const struct td_map_entry *entry = td_map_next(&map, &position); entry;
             entry = td_map_next(&map, &position)) {
            assert_string_equal((const char *)entry->value, keys[seen]);
            if (seen++ % keep == 0) {
                assert_ptr_equal(td_map_remove(&map, entry->key), keys[seen - 1]);
            }
        }
        assert_int_equal(seen, 1000);
        assert_int_equal(map.count, 1000 - (1000 + keep - 1) / keep);
    }
}

/* Endless turnover of a few keys, and draining a large map, leave tables in proportion to what
 * lives. */
static void test_map_memory_follows_the_living(void **state)
{
    (void)state;
    static char keys[20000][24];
    td_auto_map map;
    td_map_init(&map, 20000);
    for (size_t i = 0; i < 20000; i++) {
        (void)snprintf(keys[i], sizeof(keys[i]), "%zu", i);
        assert_int_equal(td_map_put(&map, td_str_from(keys[i]), keys[i]), TD_OK);
        if (i >= 10) {
            assert_ptr_equal(td_map_remove(&map, td_str_from(keys[i - 10])), keys[i - 10]);
        }
        assert_in_range(map.slot_count, 4, 64);
    }
    td_map_reset(&map);
    for (size_t i = 0; i < 20000; i++) {
        assert_int_equal(td_map_put(&map, td_str_from(keys[i]), keys[i]), TD_OK);
    }
    assert_in_range(map.slot_count, 20000, 65536);
    for (size_t i = 0; i < 19990; i++) {
        assert_ptr_equal(td_map_remove(&map, td_str_from(keys[i])), keys[i]);
    }
    assert_int_equal(td_map_put(&map, td_str_from(keys[0]), NULL), TD_OK);
    assert_in_range(map.slot_count, 4, 64);
    for (size_t i = 0; i < 20000; i++) {
        assert_int_equal(td_map_put(&map, td_str_from(keys[i]), keys[i]), TD_OK);
    }
    for (size_t i = 0; i < 20000; i++) {
        assert_ptr_equal(td_map_remove(&map, td_str_from(keys[i])), keys[i]);
    }
    assert_int_equal(map.slot_count, 0);
}

int main(void)
{
    td_map_set_seed(0x0706050403020100, 0x0f0e0d0c0b0a0908);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_map_hash_is_siphash13),
        cmocka_unit_test(test_map_answers_when_empty_and_takes_the_empty_key),
        cmocka_unit_test(test_map_put_replaces_key_and_value),
        cmocka_unit_test(test_map_stops_at_its_maximum),
        cmocka_unit_test(test_map_agrees_with_a_list),
        cmocka_unit_test(test_map_allows_removal_of_the_entry_just_returned),
        cmocka_unit_test(test_map_memory_follows_the_living),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
