/* Eviction requirements: which direction of a change lets the updater act on a pod. */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

#include "decide/vertical/updater/requirements.h"
#include "unit/decide/updater_support.h"

#define POLICY(list)                                                                               \
    "\"updatePolicy\":{\"updateMode\":\"Recreate\",\"evictionRequirements\":[" list "]}"
#define NEED(resources, change)                                                                    \
    "{\"resources\":[" resources "],\"changeRequirement\":\"Target" change "ThanRequests\"}"
#define GROWS NEED("\"cpu\",\"memory\"", "Higher")
#define CPU_GROWS NEED("\"cpu\"", "Higher")
#define CPU_SHRINKS NEED("\"cpu\"", "Lower")
#define MEMORY_GROWS NEED("\"memory\"", "Higher")
#define MEMORY_SHRINKS NEED("\"memory\"", "Lower")

/* One container: modes and absences have their rules. */
static void test_requirements_of_one_container(void **unused)
{
    (void)unused;
    static const struct {
        const char *spec;
        const char *cpu;
        bool is_admitted;
    } rows[] = {
        {"", "100m", true},
        {POLICY(""), "100m", true},
        {POLICY(CPU_GROWS), "100m", true},
        {POLICY(CPU_GROWS), "300m", false},
        {POLICY(CPU_SHRINKS), "301m", true},
        {POLICY(GROWS), "400m", true},
        {POLICY(CPU_GROWS "," MEMORY_SHRINKS), "100m", false},
        {POLICY(NEED("", "Higher")), "100m", false},
        {POLICY(NEED("\"cpu\"", "Other")), "100m", false},
        {POLICY("") ",\"resourcePolicy\":{\"containerPolicies\":[{\"containerName\":\"c\","
                    "\"mode\":\"Off\"}]}",
         "100m", false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct stage stage;
        stage_init(&stage);
        stage_add_vpa(&stage, "v", OLD, "ReplicaSet", "web", rows[i].spec);
        stage_add_pod(&stage, &(struct stage_pod){.name = "p", .cpu = rows[i].cpu});
        assert_int_equal(td_requirements_admit(&stage.arena, stage.vpas[0], &stage.pods[0],
                                               &stage.vpas[0]->recommendation, false),
                         rows[i].is_admitted);
        stage_done(&stage);
    }
}

#define AMOUNTS(cpu, memory) "{\"cpu\":\"" cpu "\",\"memory\":\"" memory "\"}"
#define CONTAINER(name, requests)                                                                  \
    "{\"name\":\"" name "\",\"resources\":{\"requests\":" requests "}}"
#define BARE(name) "{\"name\":\"" name "\"}"
#define POD(containers) "{\"containers\":[" containers "]}"
#define POD_LEVEL(stanza, containers) "{\"resources\":" stanza ",\"containers\":[" containers "]}"
#define TARGET(name, target) "{\"containerName\":\"" name "\",\"target\":" target "}"
#define STATUS(targets) "{\"containerRecommendations\":[" targets "]}"
#define STATUS_POD(target, targets)                                                                \
    "{\"podRecommendation\":{\"target\":" target "},\"containerRecommendations\":[" targets "]}"
#define SIDECAR TARGET("b", AMOUNTS("25m", "256Mi"))
#define SMALL STATUS_POD(AMOUNTS("25m", "363Mi"), TARGET("a", AMOUNTS("25m", "363Mi")))

/* Several containers, missing requests, and the stanza of the pod. */
static void test_requirements_of_containers_and_pod(void **unused)
{
    (void)unused;
    static const struct {
        const char *name;
        const char *spec;
        const char *pod;
        const char *recommendation;
        bool is_admitted;
        bool is_admitted_upstream;
    } rows[] = {
        {"each requirement is met by another container", POLICY(CPU_GROWS "," MEMORY_GROWS),
         POD(CONTAINER("a", AMOUNTS("1", "1Gi")) "," CONTAINER("b", AMOUNTS("1", "1Gi"))),
         STATUS(TARGET("a", AMOUNTS("2", "1Gi")) "," TARGET("b", AMOUNTS("1", "2Gi"))), true,
         false},
        {"a sidecar without requests grows, the rest may not shrink by it", POLICY(MEMORY_SHRINKS),
         POD(CONTAINER("a", AMOUNTS("1", "1Gi")) "," BARE("b")),
         STATUS(TARGET("a", AMOUNTS("1", "2Gi")) "," SIDECAR), false, true},
        {"a sidecar without recommendation does not void a requirement", POLICY(GROWS),
         POD(CONTAINER("a", AMOUNTS("8", "8Gi")) "," BARE("b")),
         STATUS(TARGET("a", AMOUNTS("1", "363Mi"))), false, false},
        {"a missing request is 0, so a target grows", POLICY(GROWS), POD(BARE("a")),
         STATUS(TARGET("a", AMOUNTS("1m", "1Mi"))), true, true},
        {"a pod-level pod shrinks from 8Gi, its containers request nothing", POLICY(GROWS),
         POD_LEVEL("{\"requests\":" AMOUNTS("8", "8Gi") "}", BARE("a")), SMALL, false, true},
        {"the same with limits alone", POLICY(GROWS),
         POD_LEVEL("{\"limits\":" AMOUNTS("8", "8Gi") "}", BARE("a")), SMALL, false, true},
        {"the same pod may shrink where that is asked for", POLICY(MEMORY_SHRINKS),
         POD_LEVEL("{\"requests\":" AMOUNTS("8", "8Gi") "}", BARE("a")), SMALL, true, true},
        {"the pod's stanza grows", POLICY(CPU_GROWS "," MEMORY_GROWS),
         POD_LEVEL("{\"requests\":" AMOUNTS("10m", "64Mi") "}", BARE("a")), SMALL, true, true},
        {"what the stanza does not carry is the container's", POLICY(CPU_GROWS),
         POD_LEVEL("{\"requests\":{\"memory\":\"8Gi\"}}", BARE("a")), SMALL, true, true},
        {"a stanza without target for the resource says nothing of it", POLICY(MEMORY_SHRINKS),
         POD_LEVEL("{\"requests\":" AMOUNTS("8", "8Gi") "}", BARE("a")),
         STATUS_POD("{\"cpu\":\"25m\"}", TARGET("a", AMOUNTS("25m", "363Mi"))), false, true},
        {"a container's own request beside the stanza is judged", POLICY(MEMORY_GROWS),
         POD_LEVEL("{\"requests\":" AMOUNTS("8", "8Gi") "}", CONTAINER("a", AMOUNTS("1m", "1Mi"))),
         SMALL, true, true},
        {"where nothing is under control nothing is admitted", POLICY(""), POD(BARE("a")),
         STATUS(TARGET("other", AMOUNTS("1", "1Gi"))), false, false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct stage stage;
        stage_init(&stage);
        const struct td_vpa *vpa =
            stage_add_vpa(&stage, "v", OLD, "ReplicaSet", "web", rows[i].spec);
        struct td_pod pod;
        struct td_recommendation recommendation;
        td_str text = td_arena_format(&stage.arena, "{\"metadata\":{\"name\":\"p\"},\"spec\":%s}",
                                      rows[i].pod);
        assert_int_equal(td_pod_decode(&stage.arena, stage_json(&stage, text.ptr), &pod, NULL),
                         TD_OK);
        assert_int_equal(td_recommendation_decode(&stage.arena,
                                                  stage_json(&stage, rows[i].recommendation),
                                                  &recommendation, NULL),
                         TD_OK);
        bool is_admitted = td_requirements_admit(&stage.arena, vpa, &pod, &recommendation, false);
        bool is_admitted_upstream =
            td_requirements_admit(&stage.arena, vpa, &pod, &recommendation, true);
        if (is_admitted != rows[i].is_admitted ||
            is_admitted_upstream != rows[i].is_admitted_upstream) {
            fail_msg("%s: %d, upstream %d", rows[i].name, is_admitted, is_admitted_upstream);
        }
        stage_done(&stage);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requirements_of_one_container),
        cmocka_unit_test(test_requirements_of_containers_and_pod),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
