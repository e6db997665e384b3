/* ResourceQuotas at the pod that would replace another. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "api/pod/pod_quota.h"
#include "base/error.h"
#include "support/quoted_json.h"

#define ARENA_BYTES ((size_t)1 << 20)

#define POD(resources) "{'spec':{'containers':[{'name':'c','resources':" resources "}]}}"
#define QUOTA(hard, used, scopes)                                                                  \
    "{'metadata':{'name':'q'},'spec':{'hard':" hard scopes "},'status':{'used':" used "}}"
#define OLD POD("{'requests':{'cpu':'1'}}")
#define NEW POD("{'requests':{'cpu':'2'},'limits':{'cpu':'4'}}")

static const struct row {
    const char *quota;
    const char *pod;
    const char *replaced; /* NULL: none */
    const char *says;     /* "": nothing */
} rows[] = {
    /* What the replaced pod takes is free again. */
    {QUOTA("{'requests.cpu':'10'}", "{'requests.cpu':'9'}", ""), NEW, OLD, ""},
    {QUOTA("{'requests.cpu':'9'}", "{'requests.cpu':'9'}", ""), NEW, OLD,
     "exceeded quota: q, requested: requests.cpu=2, used: requests.cpu=8, limited: "
     "requests.cpu=9"},
    {QUOTA("{'requests.cpu':'9'}", "{'requests.cpu':'8'}", ""), NEW, NULL,
     "exceeded quota: q, requested: requests.cpu=2, used: requests.cpu=8, limited: "
     "requests.cpu=9"},
    {QUOTA("{'cpu':'10','limits.cpu':'3'}", "{'cpu':'1','limits.cpu':'0'}", ""), NEW, OLD,
     "exceeded quota: q, requested: limits.cpu=4, used: limits.cpu=0, limited: limits.cpu=3"},
    /* One of as many as there may be is replaced by one. */
    {QUOTA("{'pods':'3','count/pods':'3'}", "{'pods':'3','count/pods':'3'}", ""), NEW, OLD, ""},
    {QUOTA("{'pods':'3'}", "{'pods':'3'}", ""), NEW, NULL,
     "exceeded quota: q, requested: pods=1, used: pods=3, limited: pods=3"},
    /* Counted things that are no business of a pod. */
    {QUOTA("{'services':'0','requests.nvidia.com/gpu':'0'}", "{}", ""), NEW, OLD, ""},
    /* Computed resources have to be stated. */
    {QUOTA("{'limits.memory':'1Gi'}", "{}", ""), NEW, OLD,
     "failed quota: q: must specify limits.memory for: c"},
    {QUOTA("{'limits.memory':'1Gi'}", "{}", ""),
     "{'spec':{'resources':{'limits':{'memory':'1Mi'}},'containers':[{'name':'c'}]}}", OLD, ""},
    /* Scopes. */
    {QUOTA("{'pods':'0'}", "{}", ",'scopes':['BestEffort']"), NEW, OLD, ""},
    {QUOTA("{'pods':'0'}", "{}", ",'scopes':['NotBestEffort']"), NEW, NULL,
     "exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0"},
    {QUOTA("{'pods':'0'}", "{}", ",'scopes':['Terminating']"), NEW, NULL, ""},
    {QUOTA("{'pods':'0'}", "{}",
           ",'scopeSelector':{'matchExpressions':[{'scopeName':'PriorityClass','operator':'In',"
           "'values':['high']}]}"),
     "{'spec':{'priorityClassName':'high','containers':[{'name':'c'}]}}", NULL,
     "exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0"},
    {QUOTA("{'pods':'0'}", "{}",
           ",'scopeSelector':{'matchExpressions':[{'scopeName':'PriorityClass','operator':'In',"
           "'values':['high']}]}"),
     NEW, NULL, ""},
    {QUOTA("{'pods':'0'}", "{}", ",'scopes':['CrossNamespacePodAffinity']"), NEW, NULL, ""},
    /* What is no quota refuses nothing. */
    {"{'metadata':{'name':'q'},'spec':{'hard':['pods']}}", NEW, OLD, ""},
    {QUOTA("{'pods':'many'}", "'none'", ""), NEW, OLD, ""},
};

static void test_a_replacement_is_held_against_the_quotas(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, ARENA_BYTES);
        const struct td_json *quota = quoted_json(&arena, rows[i].quota);
        const struct td_quota_objects quotas = {.items = &quota, .count = 1};
        const struct td_json *replaced =
            rows[i].replaced ? quoted_json(&arena, rows[i].replaced) : NULL;
        td_str says =
            td_pod_quota_problem(&arena, &quotas, quoted_json(&arena, rows[i].pod), replaced);
        if (!td_str_equal(says, td_str_from(rows[i].says))) {
            fail_msg("row %zu: %.*s", i, TD_STR_ARG(says));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_replacement_is_held_against_the_quotas),
    };
    return cmocka_run_group_tests_name("api/pod_quota", tests, NULL, NULL);
}
