/*
 * Pods by labels: whatever is added, changed and removed, a selector finds the pods that a walk
 * over all of them finds.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/error.h"
#include "control/informers/pod_index.h"
#include "kube/selector/selector.h"
#include "support/random.h"

#define PODS 60
#define STEPS 3000

struct model_pod {
    struct td_informer_pod pods[2]; /* a change is told with the old one and the new one */
    int at;
    bool is_there;
    char text[128];
    char space[2];
};

static const char *const selectors[] = {
    "",           "app=a",           "app==b",         "app in (a)",  "app in (a,b)", "app!=a",
    "tier=x",     "app=a,tier=x",    "app=a,tier!=x",  "tier",        "!tier",        "app=nobody",
    "nobody=app", "app,tier in (y)", "tier notin (x)", "app=a,app=b",
};

static void model_set(struct model_pod *pod)
{
    static const char *const apps[] = {"", "\"app\":\"a\"", "\"app\":\"b\"", "\"app\":\"c\""};
    static const char *const tiers[] = {"", "\"tier\":\"x\"", "\"tier\":\"y\""};
    const char *app = apps[random_below(4)];
    const char *tier = tiers[random_below(3)];
    struct td_informer_pod *next = &pod->pods[pod->at];
    (void)snprintf(pod->text, sizeof(pod->text), "{\"metadata\":{\"labels\":{%s%s%s}}}", app,
                   *app && *tier ? "," : "", tier);
    *next =
        (struct td_informer_pod){.object = {.head = {.namespace = td_str_from(pod->space)},
                                            .text = td_str_from(pod->text),
                                            .labels_hash = td_map_hash(td_str_from(pod->text))}};
}

static size_t model_count(struct td_arena *arena, const struct model_pod *pods, const char *space,
                          const struct td_selector *selector)
{
    size_t count = 0;
    for (size_t i = 0; i < PODS; i++) {
        struct td_json *tree;
        if (!pods[i].is_there || strcmp(pods[i].space, space) != 0) {
            continue;
        }
        assert_int_equal(td_json_parse(arena, td_str_from(pods[i].text), NULL, &tree, NULL), TD_OK);
        struct td_labels labels =
            td_labels_from_json(arena, td_json_get_path(tree, "metadata.labels"));
        count += td_selector_matches(selector, &labels);
    }
    return count;
}

static void model_check(const struct td_pod_index *labels, const struct model_pod *pods)
{
    td_auto_arena arena;
    td_arena_init(&arena, (size_t)1 << 20);
    for (size_t i = 0; i < sizeof(selectors) / sizeof(selectors[0]); i++) {
        struct td_selector selector;
        struct td_pod_match match;
        size_t count = 0;
        assert_int_equal(td_selector_parse(&arena, td_str_from(selectors[i]), &selector, NULL),
                         TD_OK);
        td_pod_index_match(labels, TD_STR("n"), &selector, &match);
        for (const struct td_informer_pod *pod; (pod = td_pod_match_next(&match));) {
            assert_true(td_str_equal(pod->object.head.namespace, TD_STR("n")));
            count++;
        }
        assert_int_equal(count, model_count(&arena, pods, "n", &selector));
    }
}

static void test_a_selector_finds_what_a_walk_finds(void **state)
{
    (void)state;
    static struct model_pod pods[PODS];
    struct td_pod_index labels = {.is_cut = false};
    td_pod_index_init(&labels);
    for (size_t i = 0; i < PODS; i++) {
        pods[i] = (struct model_pod){.space = {i % 3 == 0 ? 'm' : 'n', '\0'}};
    }
    for (int step = 0; step < STEPS; step++) {
        struct model_pod *pod = &pods[random_below(PODS)];
        struct td_informer_pod *old = &pod->pods[pod->at];
        if (!pod->is_there) {
            model_set(pod);
            td_pod_index_add(&labels, old);
        } else if (random_below(3) == 0) {
            td_pod_index_remove(&labels, old);
        } else {
            pod->at = 1 - pod->at;
            model_set(pod);
            td_pod_index_change(&labels, old, &pod->pods[pod->at]);
            continue;
        }
        pod->is_there = !pod->is_there;
        if (step % 50 == 0) {
            model_check(&labels, pods);
        }
        labels.is_cut = step > STEPS / 2; /* then all sets of the namespace are looked at */
    }
    for (size_t i = 0; i < PODS; i++) {
        if (pods[i].is_there) {
            td_pod_index_remove(&labels, &pods[i].pods[pods[i].at]);
        }
    }
    assert_int_equal(labels.sets.count, 0);
    assert_int_equal(labels.spaces.count, 0);
    assert_int_equal(labels.buckets.count, 0);
    td_pod_index_done(&labels);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_selector_finds_what_a_walk_finds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
