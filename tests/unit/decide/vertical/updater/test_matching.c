/* Which VPA has a pod, and the walk from a pod to its topmost controller. */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

#include "decide/vertical/updater/matching.h"
#include "unit/decide/updater_support.h"

/* The VPA of a pod with this role, or "". */
static const char *master_of(struct stage *stage, const char *role, enum td_match_user user)
{
    struct td_workload_source source = stage_source(stage);
    struct td_match_index index;
    td_match_index_init(&index, &stage->arena, stage->gates.heterogeneous_workloads);
    assert_int_equal(td_match_index_add(&index, &source, (const struct td_vpa *const *)stage->vpas,
                                        stage->vpa_count, user, NULL, NULL),
                     TD_OK);
    const struct td_controller top = {.namespace = TD_STR("ns"),
                                      .api_version = TD_STR("apps/v1"),
                                      .kind = TD_STR("StatefulSet"),
                                      .name = TD_STR("db")};
    const struct td_label pairs[] = {{TD_STR("app"), TD_STR("a")},
                                     {TD_STR("role"), td_str_from(role)}};
    struct td_labels labels = {.items = pairs, .count = 2};
    const struct td_match_vpa *found = td_match_find(&index, &top, TD_STR("ns"), &labels);
    const char *name = found ? td_arena_copy_str(&stage->arena, found->vpa->meta.name).ptr : "";
    td_match_index_done(&index);
    return name;
}

/* The older VPA wins, then the smaller name. One that takes no part hides younger ones with the
 * gate, and hides no VPA without it. */
static void test_matching_prefers_the_elder(void **unused)
{
    (void)unused;
    static const struct {
        const char *created[2];
        const char *modes[2];
        enum td_match_user user;
        const char *master; /* without the gate */
        const char *gated;
    } rows[] = {
        {{"2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z"},
         {"Recreate", "Recreate"},
         TD_MATCH_UPDATER,
         "b",
         "b"},
        {{"2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"},
         {"Recreate", "Recreate"},
         TD_MATCH_UPDATER,
         "a",
         "a"},
        {{"2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"},
         {"Off", "Recreate"},
         TD_MATCH_UPDATER,
         "b",
         ""},
        {{"2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"},
         {"Initial", "Recreate"},
         TD_MATCH_UPDATER,
         "b",
         ""},
        {{"2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"},
         {"Off", "Initial"},
         TD_MATCH_ADMISSION,
         "b",
         ""},
        {{"2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"},
         {"Initial", "Recreate"},
         TD_MATCH_ADMISSION,
         "a",
         "a"},
        {{"2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"},
         {"Off", "Recreate"},
         TD_MATCH_ANY,
         "a",
         "a"},
        {{"2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"},
         {"Off", "Off"},
         TD_MATCH_ADMISSION,
         "",
         ""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct stage stage;
        stage_init(&stage);
        stage_add_workload(&stage, "StatefulSet", "db", 3);
        for (int v = 0; v < 2; v++) {
            td_str spec = td_arena_format(&stage.arena, "\"updatePolicy\":{\"updateMode\":\"%s\"}",
                                          rows[i].modes[v]);
            stage_add_vpa(&stage, v ? "b" : "a", rows[i].created[v], "StatefulSet", "db", spec.ptr);
        }
        stage.gates.heterogeneous_workloads = false;
        assert_string_equal(master_of(&stage, "leader", rows[i].user), rows[i].master);
        stage.gates.heterogeneous_workloads = true;
        assert_string_equal(master_of(&stage, "leader", rows[i].user), rows[i].gated);
        stage_done(&stage);
    }
}

/* With the gate a selector partitions the target, without it the selector is ignored. */
static void test_matching_partitions_by_selector(void **unused)
{
    (void)unused;
    for (int gate = 0; gate < 2; gate++) {
        struct stage stage;
        stage_init(&stage);
        stage_add_roles(&stage, gate, "2026-01-02T00:00:00Z");
        assert_string_equal(master_of(&stage, "leader", TD_MATCH_UPDATER), "leader");
        assert_string_equal(master_of(&stage, "follower", TD_MATCH_UPDATER),
                            gate ? "follower" : "leader");
        assert_string_equal(master_of(&stage, "witness", TD_MATCH_UPDATER), gate ? "" : "leader");
        stage_done(&stage);
    }
}

/* VPAs past the cap of one target are left out; the oldest stay. */
static void test_matching_bounds_the_vpas_of_a_target(void **unused)
{
    (void)unused;
    struct stage stage;
    stage_init(&stage);
    stage_add_workload(&stage, "StatefulSet", "db", 3);
    stage_add_vpa(&stage, "v", "2026-01-01T00:00:00Z", "StatefulSet", "db", RECREATE);
    enum { COUNT = TD_TARGET_VPAS_MAX + 5 };
    static struct td_vpa vpas[COUNT];
    static const struct td_vpa *list[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        vpas[i] = *stage.vpas[0];
        vpas[i].meta.created.unix_seconds += (int64_t)i;
        vpas[i].meta.name = td_arena_format(&stage.arena, "v%zu", i);
        list[i] = &vpas[i];
    }
    struct td_workload_source source = stage_source(&stage);
    struct td_match_index index;
    td_match_index_init(&index, &stage.arena, true);
    size_t skipped = 0;
    assert_int_equal(
        td_match_index_add(&index, &source, list, COUNT, TD_MATCH_UPDATER, &skipped, NULL), TD_OK);
    assert_int_equal(skipped, 5);
    td_match_index_done(&index);
    stage_done(&stage);
}

/* A chain of controllers of one kind; each is owned by the next. */
struct chain {
    struct td_workload workloads[TD_CONTROLLER_CHAIN_MAX + 2];
    struct td_owner_reference owners[TD_CONTROLLER_CHAIN_MAX + 2];
    char names[TD_CONTROLLER_CHAIN_MAX + 2][24];
    size_t count;
    bool is_busy;
};

static const struct td_workload *chain_workload(void *context, td_str kind, td_str namespace,
                                                td_str name)
{
    const struct chain *chain = context;
    (void)kind, (void)namespace;
    for (size_t i = 0; i < chain->count; i++) {
        if (td_str_equal(name, chain->workloads[i].name)) {
            return &chain->workloads[i];
        }
    }
    return NULL;
}

static struct td_scale_answer chain_scale(void *context, td_str group, td_str resource,
                                          td_str namespace, td_str name)
{
    const struct chain *chain = context;
    (void)group, (void)resource, (void)namespace, (void)name;
    return (struct td_scale_answer){.code = chain->is_busy ? TD_BUSY : TD_NOT_FOUND};
}

static struct td_workload_source chain_source(struct chain *chain, size_t count, size_t next)
{
    *chain = (struct chain){.count = count};
    for (size_t i = 0; i < count; i++) {
        (void)snprintf(chain->names[i], sizeof(chain->names[i]), "c%zu", i);
    }
    for (size_t i = 0; i < count; i++) {
        size_t parent = i + 1 < count ? i + 1 : next;
        chain->workloads[i] = (struct td_workload){.name = td_str_from(chain->names[i])};
        if (parent < count) {
            chain->owners[i] =
                (struct td_owner_reference){.api_version = TD_STR("apps/v1"),
                                            .kind = TD_STR("Deployment"),
                                            .name = td_str_from(chain->names[parent]),
                                            .is_controller = true};
            chain->workloads[i].owners = &chain->owners[i];
            chain->workloads[i].owner_count = 1;
        }
    }
    return (struct td_workload_source){.context = chain,
                                       .get_workload = chain_workload,
                                       .get_resource = stage_resource,
                                       .get_scale = chain_scale};
}

/* Chains end at their top, in a cycle, or at the cap. */
static void test_matching_walks_are_bounded(void **unused)
{
    (void)unused;
    static const struct {
        size_t count;
        size_t next; /* of the last one; count: none */
        int code;
    } rows[] = {
        {1, 1, TD_OK},
        {TD_CONTROLLER_CHAIN_MAX, TD_CONTROLLER_CHAIN_MAX, TD_OK},
        {TD_CONTROLLER_CHAIN_MAX + 1, TD_CONTROLLER_CHAIN_MAX + 1, TD_LIMIT},
        {1, 0, TD_INVALID},
        {3, 1, TD_INVALID},
        {3, 2, TD_INVALID},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct chain chain;
        struct td_workload_source source = chain_source(&chain, rows[i].count, rows[i].next);
        const struct td_controller start = {
            .api_version = TD_STR("apps/v1"), .kind = TD_STR("Deployment"), .name = TD_STR("c0")};
        struct td_controller top;
        bool is_found = false;
        struct td_error err = TD_ERROR_INIT;
        assert_int_equal(td_controller_top(&source, &start, &top, &is_found, &err), rows[i].code);
        if (rows[i].code == TD_OK) {
            assert_true(is_found);
            assert_true(td_str_equal(top.name, td_str_from(chain.names[rows[i].count - 1])));
        } else {
            assert_true(err.message[0] != '\0');
        }
    }
}

/* A source that has to ask first stops the walk, and the answer changes nothing before. */
static void test_matching_waits_for_a_busy_source(void **unused)
{
    (void)unused;
    struct td_arena arena;
    td_arena_init(&arena, SIZE_MAX);
    struct chain chain;
    struct td_workload_source source = chain_source(&chain, 1, 1);
    chain.is_busy = true;
    const struct td_owner_reference owner = {.api_version = TD_STR("x.io/v1"),
                                             .kind = TD_STR("Game"),
                                             .name = TD_STR("g"),
                                             .is_controller = true};
    const struct td_meta pod = {.namespace = TD_STR("ns"), .owners = &owner, .owner_count = 1};
    struct td_top_memo memo;
    td_top_memo_init(&memo, &arena);
    const struct td_controller *top = NULL;
    assert_int_equal(td_top_memo_get(&memo, &source, &pod, &top, NULL, NULL), TD_BUSY);
    assert_null(top);
    chain.is_busy = false;
    td_str why;
    assert_int_equal(td_top_memo_get(&memo, &source, &pod, &top, &why, NULL), TD_OK);
    assert_null(top);
    td_top_memo_done(&memo);
    td_arena_done(&arena);
}

/* Another object of the same name is not the owner. */
static void test_matching_checks_uids(void **unused)
{
    (void)unused;
    static const struct {
        const char *reference;
        const char *object;
        int code;
    } rows[] = {{"u", "u", TD_OK}, {"u", "", TD_OK}, {"", "u", TD_OK}, {"u", "v", TD_NOT_FOUND}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct chain chain;
        struct td_workload_source source = chain_source(&chain, 1, 1);
        chain.workloads[0].uid = td_str_from(rows[i].object);
        const struct td_controller start = {.kind = TD_STR("Deployment"),
                                            .name = TD_STR("c0"),
                                            .uid = td_str_from(rows[i].reference)};
        struct td_controller top;
        bool is_found = false;
        assert_int_equal(td_controller_top(&source, &start, &top, &is_found, NULL), rows[i].code);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matching_prefers_the_elder),
        cmocka_unit_test(test_matching_partitions_by_selector),
        cmocka_unit_test(test_matching_bounds_the_vpas_of_a_target),
        cmocka_unit_test(test_matching_walks_are_bounded),
        cmocka_unit_test(test_matching_waits_for_a_busy_source),
        cmocka_unit_test(test_matching_checks_uids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
