/* Shard selectors: the hash, what a range has, and what a real API server made of each text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/json/json.h"
#include "base/os/file.h"
#include "kube/selector/shard.h"
#include "support/random.h"

#define ARENA_BYTES ((size_t)64 << 20)
#define TEXT_BYTES ((size_t)1 << 20)
#define ROUNDS 2000
#define RANGES_MAX 5

static td_str written(struct td_arena *arena, const struct td_shard_selector *selector)
{
    td_auto_buf text = td_buf_capped(TEXT_BYTES);
    td_shard_selector_write(selector, &text);
    assert_int_equal(td_buf_check(&text, "selector", NULL), TD_OK);
    return td_arena_copy_str(arena, td_buf_str(&text));
}

/* FNV-1a 64, as measured on a server with the gate on. */
static void test_shard_hash_is_upstreams(void **state)
{
    static const struct {
        const char *text;
        uint64_t hash;
    } rows[] = {
        {"", UINT64_C(0xcbf29ce484222325)},       {"a", UINT64_C(0xaf63dc4c8601ec8c)},
        {"team-1", UINT64_C(0xde9053717d11cae6)}, {"team-2", UINT64_C(0xde9052717d11c933)},
        {"other", UINT64_C(0x0a24ad61c2562a55)},  {"default", UINT64_C(0xebada5168620c5fe)},
    };
    (void)state;
    for (size_t i = 0; i < TD_COUNT(rows); i++) {
        assert_int_equal(td_shard_hash(td_str_from(rows[i].text)), rows[i].hash);
    }
}

/* Texts and answers are those of kube-apiserver 1.36.3 with ShardedListAndWatch. */
static void test_shard_selectors_are_judged_as_upstream(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    struct td_error err = TD_ERROR_INIT;
    struct td_json *rows;
    td_str text;
    assert_int_equal(
        td_file_read(TEST_DATA_DIR "/selector/shards.json", &arena, TEXT_BYTES, &text, &err),
        TD_OK);
    assert_int_equal(td_json_parse(&arena, text, NULL, &rows, &err), TD_OK);
    int wrong = 0;
    for (const struct td_json *row = td_json_first_item(rows); row; row = row->next) {
        td_str selector = td_json_text(row, "selector");
        td_str expected = td_json_text(row, "error");
        struct td_shard_selector parsed;
        err = TD_ERROR_INIT;
        td_str got = TD_STR_EMPTY;
        if (td_shard_selector_parse(&arena, selector, &parsed, &err) != TD_OK) {
            got = td_str_from(err.message);
        } else {
            expected = expected.len > 0 ? expected : td_json_text(row, "text");
            got = written(&arena, &parsed);
        }
        if (!td_str_equal(got, expected)) {
            wrong++;
            print_error("%.*s\n  wanted %.*s\n  got    %.*s\n", TD_STR_ARG(selector),
                        TD_STR_ARG(expected), TD_STR_ARG(got));
        }
    }
    assert_int_equal(wrong, 0);
}

/* Any selector's text is read back as the same selector, and matches what one of its ranges has. */
static void test_shard_selectors_survive_their_text(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    for (int round = 0; round < ROUNDS; round++) {
        struct td_shard_range ranges[RANGES_MAX];
        struct td_shard_selector selector = {.ranges = ranges, .is_of_uids = random_below(2) == 0};
        selector.count = 1 + random_below(RANGES_MAX);
        for (size_t i = 0; i < selector.count; i++) {
            uint64_t a = random_next();
            uint64_t b = random_below(8) == 0 ? UINT64_MAX : random_next();
            ranges[i] = (struct td_shard_range){.first = a < b ? a : b, .last = a < b ? b : a};
        }
        struct td_shard_selector again;
        td_str text = written(&arena, &selector);
        assert_int_equal(td_shard_selector_parse(&arena, text, &again, NULL), TD_OK);
        assert_true(td_str_equal(written(&arena, &again), text));
        char name[16];
        (void)snprintf(name, sizeof(name), "ns-%zu", random_below(1000));
        td_str ns = td_str_from(name);
        bool is_in = false;
        for (size_t i = 0; i < selector.count; i++) {
            is_in = is_in || td_shard_range_has(&ranges[i], td_shard_hash(ns));
        }
        td_str other = TD_STR("other");
        assert_int_equal(td_shard_selector_matches(&again, selector.is_of_uids ? other : ns,
                                                   selector.is_of_uids ? ns : other),
                         is_in);
    }
}

static void test_shard_selector_of_nothing_selects_all(void **state)
{
    (void)state;
    struct td_shard_selector all = {.count = 0};
    assert_true(td_shard_selector_matches(&all, TD_STR("a"), TD_STR_EMPTY));
    assert_true(td_shard_selector_matches(&all, TD_STR_EMPTY, TD_STR_EMPTY));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shard_hash_is_upstreams),
        cmocka_unit_test(test_shard_selectors_are_judged_as_upstream),
        cmocka_unit_test(test_shard_selectors_survive_their_text),
        cmocka_unit_test(test_shard_selector_of_nothing_selects_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
