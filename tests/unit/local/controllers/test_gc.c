/*
 * Garbage collection by owner references, over the API handler: what goes with its owner, what
 * stays, what waits, and that nothing is forgotten when changes are missed.
 */
#include "support/api_script.h"

#include "local/controllers/gc.h"
#include "local/kinds/crds.h"

#define SECRETS "/api/v1/namespaces/default/secrets"
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define WIDGETS "/apis/example.dev/v1/namespaces/default/widgets"

struct gc_bed {
    struct bed *bed;
    struct td_crds *crds;
    struct td_gc *gc;
};

static void gc_start(struct gc_bed *gc, void **state)
{
    *gc = (struct gc_bed){.bed = *state};
    assert_int_equal(td_crds_new(gc->bed->api, NULL, &gc->crds, NULL), TD_OK);
    gc->gc = td_gc_new(gc->bed->api, NULL);
}

static void gc_stop(struct gc_bed *gc)
{
    td_gc_free(gc->gc);
    td_crds_free(gc->crds);
}

static void settle(struct bed *bed)
{
    bed_run(bed, TD_SECOND);
}

/* Makes an object and gives its uid. */
static const char *make(struct bed *bed, const char *target, const char *body)
{
    bed_auto_answer answer;
    bed_answer_init(&answer);
    if (bed_call(bed, "POST", target, body, &answer) != 201) {
        fail_msg("POST %s: %d %s", target, answer.status, td_buf_str(&answer.body).ptr);
    }
    return bed_text(bed, &answer, "metadata.uid");
}

struct owner {
    const char *api_version;
    const char *kind;
    const char *name;
    const char *uid;
    bool blocks;
};

static const char *make_owned(struct bed *bed, const char *target, const char *name,
                              const struct owner *owners, size_t count)
{
    td_auto_buf body;
    td_buf_init(&body, BED_BODY_BYTES_MAX);
    (void)td_buf_append_format(&body, "{\"metadata\":{\"name\":\"%s\",\"ownerReferences\":[", name);
    for (size_t i = 0; i < count; i++) {
        (void)td_buf_append_format(
            &body,
            "%s{\"apiVersion\":\"%s\",\"kind\":\"%s\",\"name\":\"%s\",\"uid\":\"%s\","
            "\"blockOwnerDeletion\":%s}",
            i > 0 ? "," : "", owners[i].api_version, owners[i].kind, owners[i].name, owners[i].uid,
            owners[i].blocks ? "true" : "false");
    }
    (void)td_buf_append(&body, TD_STR("]}}"));
    return make(bed, target, td_arena_copy_str(&bed->arena, td_buf_str(&body)).ptr);
}

static int status_of(struct bed *bed, const char *method, const char *target, const char *body)
{
    bed_auto_answer answer;
    bed_answer_init(&answer);
    return bed_call(bed, method, target, body, &answer);
}

static bool is_there(struct bed *bed, const char *target)
{
    return status_of(bed, "GET", target, NULL) == 200;
}

/* Deletes with a propagation policy. */
static void drop(struct bed *bed, const char *target, const char *policy)
{
    td_str body = td_arena_format(&bed->arena,
                                  "{\"kind\":\"DeleteOptions\",\"apiVersion\":\"v1\","
                                  "\"propagationPolicy\":\"%s\"}",
                                  policy);
    assert_int_equal(status_of(bed, "DELETE", target, body.ptr), 200);
}

/* Across kinds and over two generations, dependents go with the last owner. */
static void test_background(void **state)
{
    struct gc_bed gc;
    gc_start(&gc, state);
    const char *top = make(gc.bed, SECRETS, "{\"metadata\":{\"name\":\"top\"}}");
    const struct owner of_top = {"v1", "Secret", "top", top, false};
    const char *middle = make_owned(gc.bed, MAPS, "middle", &of_top, 1);
    const struct owner of_middle = {"v1", "ConfigMap", "middle", middle, false};
    (void)make_owned(gc.bed, "/api/v1/namespaces/default/serviceaccounts", "leaf", &of_middle, 1);
    settle(gc.bed);
    assert_true(is_there(gc.bed, MAPS "/middle"));
    drop(gc.bed, SECRETS "/top", "Background");
    settle(gc.bed);
    assert_false(is_there(gc.bed, MAPS "/middle"));
    assert_false(is_there(gc.bed, "/api/v1/namespaces/default/serviceaccounts/leaf"));
    gc_stop(&gc);
}

/* What becomes of an object by the owners it names. */
static void test_owners_decide(void **state)
{
    struct gc_bed gc;
    gc_start(&gc, state);
    const char *real = make(gc.bed, SECRETS, "{\"metadata\":{\"name\":\"real\"}}");
    const struct {
        const char *name;
        struct owner owners[2];
        size_t count;
        bool stays;
        size_t references; /* left */
    } rows[] = {
        {"solid", {{"v1", "Secret", "real", real, true}}, 1, true, 1},
        {"absent", {{"v1", "Secret", "gone", "u-1", true}}, 1, false, 0},
        {"other-uid", {{"v1", "Secret", "real", "u-2", true}}, 1, false, 0},
        {"other-kind", {{"v1", "ConfigMap", "real", real, true}}, 1, false, 0},
        {"unknown-kind", {{"example.dev/v1", "Nope", "x", "u-3", true}}, 1, true, 1},
        {"unknown-and-absent",
         {{"example.dev/v1", "Nope", "x", "u-3", true}, {"v1", "Secret", "gone", "u-4", true}},
         2,
         true,
         2},
        {"solid-and-absent",
         {{"v1", "Secret", "gone", "u-5", true}, {"v1", "Secret", "real", real, true}},
         2,
         true,
         1},
        {"twice-the-same",
         {{"v1", "Secret", "real", real, true}, {"v1", "Secret", "real", real, true}},
         2,
         true,
         2},
    };
    bed_auto_answer answer;
    bed_answer_init(&answer);
    for (size_t i = 0; i < COUNT(rows); i++) {
        (void)make_owned(gc.bed, MAPS, rows[i].name, rows[i].owners, rows[i].count);
    }
    settle(gc.bed);
    for (size_t i = 0; i < COUNT(rows); i++) {
        td_str target = td_arena_format(&gc.bed->arena, MAPS "/%s", rows[i].name);
        int status = bed_call(gc.bed, "GET", target.ptr, NULL, &answer);
        const struct td_json *left =
            td_json_get_path(bed_tree(gc.bed, &answer), "metadata.ownerReferences");
        if (status != (rows[i].stays ? 200 : 404) ||
            (rows[i].stays && left->count != rows[i].references)) {
            fail_msg("%s: %d %s", rows[i].name, status, td_buf_str(&answer.body).ptr);
        }
    }
    drop(gc.bed, SECRETS "/real", "Background");
    settle(gc.bed);
    assert_false(is_there(gc.bed, MAPS "/twice-the-same"));
    assert_false(is_there(gc.bed, MAPS "/solid-and-absent"));
    gc_stop(&gc);
}

/* An object without namespace cannot have an owner in one: it is left alone. */
static void test_cluster_object_with_namespaced_owner_stays(void **state)
{
    struct gc_bed gc;
    gc_start(&gc, state);
    const struct owner owner = {"v1", "Secret", "gone", "u-1", true};
    (void)make_owned(gc.bed, "/apis/rbac.authorization.k8s.io/v1/clusterroles", "r", &owner, 1);
    settle(gc.bed);
    assert_true(is_there(gc.bed, "/apis/rbac.authorization.k8s.io/v1/clusterroles/r"));
    gc_stop(&gc);
}

/* Orphans stay and lose the reference; other references are kept. */
static void test_orphan(void **state)
{
    struct gc_bed gc;
    gc_start(&gc, state);
    const char *a = make(gc.bed, SECRETS, "{\"metadata\":{\"name\":\"a\"}}");
    const char *b = make(gc.bed, SECRETS, "{\"metadata\":{\"name\":\"b\"}}");
    const struct owner both[] = {{"v1", "Secret", "a", a, true}, {"v1", "Secret", "b", b, true}};
    (void)make_owned(gc.bed, MAPS, "one", both, 1);
    (void)make_owned(gc.bed, MAPS, "two", both, 2);
    settle(gc.bed);
    drop(gc.bed, SECRETS "/a", "Orphan");
    settle(gc.bed);
    assert_false(is_there(gc.bed, SECRETS "/a"));
    static const struct step steps[] = {
        {"GET", MAPS "/one", NULL, NULL, 200, "metadata.ownerReferences", NULL},
    };
    RUN(gc.bed, steps);
    bed_auto_answer answer;
    bed_answer_init(&answer);
    (void)bed_call(gc.bed, "GET", MAPS "/two", NULL, &answer);
    assert_int_equal(td_json_get_path(bed_tree(gc.bed, &answer), "metadata.ownerReferences")->count,
                     1);
    drop(gc.bed, SECRETS "/b", "Background");
    settle(gc.bed);
    assert_true(is_there(gc.bed, MAPS "/one"));
    assert_false(is_there(gc.bed, MAPS "/two"));
    gc_stop(&gc);
}

/* In the foreground an owner waits for the dependents that block it, and only for those. */
static void test_foreground(void **state)
{
    struct gc_bed gc;
    gc_start(&gc, state);
    const char *a = make(gc.bed, SECRETS, "{\"metadata\":{\"name\":\"a\"}}");
    td_str held = td_arena_format(
        &gc.bed->arena,
        "{\"metadata\":{\"name\":\"held\",\"finalizers\":[\"example.dev/hold\"],"
        "\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"name\":\"a\",\"uid\":"
        "\"%s\",\"blockOwnerDeletion\":true}]}}",
        a);
    (void)make(gc.bed, MAPS, held.ptr);
    const struct owner free_owner = {"v1", "Secret", "a", a, false};
    (void)make_owned(gc.bed, MAPS, "free", &free_owner, 1);
    settle(gc.bed);
    drop(gc.bed, SECRETS "/a", "Foreground");
    settle(gc.bed);
    assert_true(is_there(gc.bed, SECRETS "/a"));
    assert_true(is_there(gc.bed, MAPS "/held"));
    assert_false(is_there(gc.bed, MAPS "/free"));
    static const struct step steps[] = {
        {"PATCH", MAPS "/held", MERGE, "{\"metadata\":{\"finalizers\":null}}", 200, NULL, NULL},
    };
    RUN(gc.bed, steps);
    settle(gc.bed);
    assert_false(is_there(gc.bed, MAPS "/held"));
    assert_false(is_there(gc.bed, SECRETS "/a"));
    gc_stop(&gc);
}

/* A word in an object's data does not make an owner wait: the dependent stays. */
static void test_words_are_no_finalizers(void **state)
{
    struct gc_bed gc;
    gc_start(&gc, state);
    const char *a = make(gc.bed, MAPS,
                         "{\"metadata\":{\"name\":\"a\",\"finalizers\":[\"example.dev/hold\"]},"
                         "\"data\":{\"x\":\"foregroundDeletion\",\"deletionTimestamp\":\"y\"}}");
    const struct owner owner = {"v1", "ConfigMap", "a", a, true};
    (void)make_owned(gc.bed, SECRETS, "s", &owner, 1);
    settle(gc.bed);
    drop(gc.bed, MAPS "/a", "Background");
    settle(gc.bed);
    assert_true(is_there(gc.bed, SECRETS "/s"));
    gc_stop(&gc);
}

/* Who still has another owner does not keep the one waiting that goes. */
static void test_waiting_owner_beside_a_solid_one(void **state)
{
    struct gc_bed gc;
    gc_start(&gc, state);
    const char *a = make(gc.bed, SECRETS, "{\"metadata\":{\"name\":\"a\"}}");
    const char *b = make(gc.bed, SECRETS, "{\"metadata\":{\"name\":\"b\"}}");
    const struct owner both[] = {{"v1", "Secret", "a", a, true}, {"v1", "Secret", "b", b, true}};
    (void)make_owned(gc.bed, MAPS, "m", both, 2);
    settle(gc.bed);
    drop(gc.bed, SECRETS "/a", "Foreground");
    settle(gc.bed);
    assert_false(is_there(gc.bed, SECRETS "/a"));
    assert_true(is_there(gc.bed, MAPS "/m"));
    gc_stop(&gc);
}

/* Two that own each other go, although each would wait for the other. */
static void test_circle(void **state)
{
    struct gc_bed gc;
    gc_start(&gc, state);
    const char *a = make(gc.bed, SECRETS, "{\"metadata\":{\"name\":\"a\"}}");
    const struct owner of_a = {"v1", "Secret", "a", a, true};
    const char *b = make_owned(gc.bed, MAPS, "b", &of_a, 1);
    td_str patch = td_arena_format(
        &gc.bed->arena,
        "{\"metadata\":{\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\","
        "\"name\":\"b\",\"uid\":\"%s\",\"blockOwnerDeletion\":true}]}}",
        b);
    const struct step steps[] = {{"PATCH", SECRETS "/a", MERGE, patch.ptr, 200, NULL, NULL}};
    RUN(gc.bed, steps);
    settle(gc.bed);
    drop(gc.bed, SECRETS "/a", "Foreground");
    settle(gc.bed);
    assert_false(is_there(gc.bed, SECRETS "/a"));
    assert_false(is_there(gc.bed, MAPS "/b"));
    gc_stop(&gc);
}

static void make_definition(struct bed *bed)
{
    (void)make(bed, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
               "{\"metadata\":{\"name\":\"widgets.example.dev\"},\"spec\":{\"group\":"
               "\"example.dev\",\"scope\":\"Namespaced\",\"names\":{\"plural\":\"widgets\","
               "\"kind\":\"Widget\"},\"versions\":[{\"name\":\"v1\",\"served\":true,\"storage\":"
               "true,\"schema\":{\"openAPIV3Schema\":{\"type\":\"object\","
               "\"x-kubernetes-preserve-unknown-fields\":true}}}]}}");
    settle(bed);
}

/* Custom kinds own and are owned from the moment they are served, and take along what they own
 * when their definition goes; the kind may come back. */
static void test_custom_kinds_come_and_go(void **state)
{
    struct gc_bed gc;
    gc_start(&gc, state);
    for (size_t round = 0; round < 2; round++) {
        make_definition(gc.bed);
        const char *w = make(gc.bed, WIDGETS,
                             "{\"apiVersion\":\"example.dev/v1\",\"kind\":\"Widget\",\"metadata\":"
                             "{\"name\":\"w\"}}");
        const char *v = make(gc.bed, WIDGETS,
                             "{\"apiVersion\":\"example.dev/v1\",\"kind\":\"Widget\",\"metadata\":"
                             "{\"name\":\"v\"}}");
        const struct owner of_w = {"example.dev/v1", "Widget", "w", w, true};
        const struct owner of_v = {"example.dev/v1", "Widget", "v", v, true};
        (void)make_owned(gc.bed, MAPS, "of-w", &of_w, 1);
        (void)make_owned(gc.bed, MAPS, "of-v", &of_v, 1);
        settle(gc.bed);
        drop(gc.bed, WIDGETS "/w", "Background");
        settle(gc.bed);
        assert_false(is_there(gc.bed, MAPS "/of-w"));
        assert_true(is_there(gc.bed, MAPS "/of-v"));
        drop(gc.bed, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.dev",
             "Background");
        settle(gc.bed);
        assert_false(is_there(gc.bed, MAPS "/of-v"));
        assert_int_equal(status_of(gc.bed, "GET", WIDGETS, NULL), 404);
    }
    gc_stop(&gc);
}

/* Forgets all changes before a reader has seen them. */
static void forget_changes(struct bed *bed)
{
    td_store_compact(bed->store, td_store_version(bed->store));
}

/* An owner's deletion that the collector missed: its dependents go all the same. */
static void test_missed_deletion_of_an_owner(void **state)
{
    struct gc_bed gc;
    gc_start(&gc, state);
    const char *a = make(gc.bed, SECRETS, "{\"metadata\":{\"name\":\"a\"}}");
    const struct owner of_a = {"v1", "Secret", "a", a, true};
    (void)make_owned(gc.bed, MAPS, "m", &of_a, 1);
    settle(gc.bed);
    drop(gc.bed, SECRETS "/a", "Background");
    forget_changes(gc.bed);
    settle(gc.bed);
    assert_false(is_there(gc.bed, MAPS "/m"));
    gc_stop(&gc);
}

/* A dependent's deletion that the collector missed: the owner that waits for it goes all the same.
 */
static void test_missed_deletion_of_a_dependent(void **state)
{
    struct gc_bed gc;
    gc_start(&gc, state);
    const char *a = make(gc.bed, SECRETS, "{\"metadata\":{\"name\":\"a\"}}");
    td_str held = td_arena_format(
        &gc.bed->arena,
        "{\"metadata\":{\"name\":\"m\",\"finalizers\":[\"example.dev/hold\"],\"ownerReferences\":[{"
        "\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"name\":\"a\",\"uid\":\"%s\","
        "\"blockOwnerDeletion\":true}]}}",
        a);
    (void)make(gc.bed, MAPS, held.ptr);
    settle(gc.bed);
    drop(gc.bed, SECRETS "/a", "Foreground");
    settle(gc.bed);
    assert_true(is_there(gc.bed, SECRETS "/a"));
    static const struct step steps[] = {
        {"PATCH", MAPS "/m", MERGE, "{\"metadata\":{\"finalizers\":null}}", 200, NULL, NULL},
    };
    RUN(gc.bed, steps);
    forget_changes(gc.bed);
    settle(gc.bed);
    assert_false(is_there(gc.bed, MAPS "/m"));
    assert_false(is_there(gc.bed, SECRETS "/a"));
    gc_stop(&gc);
}

/* Definitions whose changes were missed are served, or not served any more, all the same. */
static void test_missed_definitions(void **state)
{
    struct gc_bed gc;
    gc_start(&gc, state);
    make_definition(gc.bed);
    (void)make(
        gc.bed, WIDGETS,
        "{\"apiVersion\":\"example.dev/v1\",\"kind\":\"Widget\",\"metadata\":{\"name\":\"w\"}"
        "}");
    settle(gc.bed);
    drop(gc.bed, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.dev",
         "Background");
    forget_changes(gc.bed);
    settle(gc.bed);
    assert_int_equal(status_of(gc.bed, "GET", WIDGETS, NULL), 404);
    bed_auto_answer answer;
    bed_answer_init(&answer);
    (void)bed_call(gc.bed, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                   "{\"metadata\":{\"name\":\"widgets.example.dev\"},\"spec\":{\"group\":"
                   "\"example.dev\",\"scope\":\"Namespaced\",\"names\":{\"plural\":\"widgets\","
                   "\"kind\":\"Widget\"},\"versions\":[{\"name\":\"v1\",\"served\":true,"
                   "\"storage\":true,\"schema\":{\"openAPIV3Schema\":{\"type\":\"object\"}}}]}}",
                   &answer);
    forget_changes(gc.bed);
    settle(gc.bed);
    assert_int_equal(status_of(gc.bed, "GET", WIDGETS, NULL), 200);
    assert_false(is_there(gc.bed, WIDGETS "/w"));
    gc_stop(&gc);
}

/* What was stored before the collector began is judged like the rest. */
static void test_starts_with_what_is_there(void **state)
{
    struct gc_bed gc;
    struct bed *bed = *state;
    const struct owner absent = {"v1", "Secret", "gone", "u-1", true};
    (void)make_owned(bed, MAPS, "m", &absent, 1);
    gc_start(&gc, state);
    settle(bed);
    assert_false(is_there(bed, MAPS "/m"));
    gc_stop(&gc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_background, script_setup, script_teardown),
        cmocka_unit_test_setup_teardown(test_owners_decide, script_setup, script_teardown),
        cmocka_unit_test_setup_teardown(test_cluster_object_with_namespaced_owner_stays,
                                        script_setup, script_teardown),
        cmocka_unit_test_setup_teardown(test_orphan, script_setup, script_teardown),
        cmocka_unit_test_setup_teardown(test_foreground, script_setup, script_teardown),
        cmocka_unit_test_setup_teardown(test_words_are_no_finalizers, script_setup,
                                        script_teardown),
        cmocka_unit_test_setup_teardown(test_waiting_owner_beside_a_solid_one, script_setup,
                                        script_teardown),
        cmocka_unit_test_setup_teardown(test_circle, script_setup, script_teardown),
        cmocka_unit_test_setup_teardown(test_custom_kinds_come_and_go, script_setup,
                                        script_teardown),
        cmocka_unit_test_setup_teardown(test_missed_deletion_of_an_owner, script_setup,
                                        script_teardown),
        cmocka_unit_test_setup_teardown(test_missed_deletion_of_a_dependent, script_setup,
                                        script_teardown),
        cmocka_unit_test_setup_teardown(test_missed_definitions, script_setup, script_teardown),
        cmocka_unit_test_setup_teardown(test_starts_with_what_is_there, script_setup,
                                        script_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
