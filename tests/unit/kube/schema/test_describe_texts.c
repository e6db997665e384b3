/* What is said about kinds and fields: found by type and field, nothing for the rest. */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

#include "kube/schema/describe_texts.h"
#include "local/resources/resource.h"

/* Every kind that is stored has a sentence, which a search in a table out of order would miss. */
static void test_every_kind_has_a_sentence(void **state)
{
    (void)state;
    struct td_resources *resources = td_resources_new();
    for (size_t i = 0; i < td_resources_count(resources); i++) {
        const struct td_resource *row = td_resources_row(resources, i);
        if (!row->is_virtual && td_describe_text(row->kind, TD_STR_EMPTY).len == 0) {
            fail_msg("nothing is said about %.*s", TD_STR_ARG(row->kind));
        }
    }
    td_resources_free(resources);
}

/* Fields are found under their type, or where they mean the same in all of them. */
static void test_fields_are_found_by_type(void **state)
{
    (void)state;
    static const struct {
        td_str type;
        td_str field;
        bool has_text;
    } rows[] = {
        {TD_STR_INIT("PodSpec"), TD_STR_INIT("containers"), true},
        {TD_STR_INIT("Container"), TD_STR_INIT("resizePolicy"), true},
        {TD_STR_INIT("HorizontalPodAutoscalerSpec"), TD_STR_INIT("maxReplicas"), true},
        {TD_STR_INIT("VerticalPodAutoscaler.spec"), TD_STR_INIT("targetRef"), true},
        {TD_STR_INIT("Hvpa.spec"), TD_STR_INIT("mode"), true},
        {TD_STR_INIT("PodDisruptionBudgetSpec"), TD_STR_INIT("minAvailable"), true},
        {TD_STR_INIT("PodSpec"), TD_STR_INIT("nothing"), false},
        {TD_STR_INIT("Container"), TD_STR_INIT("maxReplicas"), false},
        {TD_STR_INIT("Container"), TD_STR_INIT("metadata"), true}, /* the same everywhere */
        {TD_STR_INIT("Hvpa.spec"), TD_STR_INIT("metadata"), false},
        {TD_STR_INIT(""), TD_STR_INIT(""), false},
        {TD_STR_INIT("zzz"), TD_STR_INIT("zzz"), false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(td_describe_text(rows[i].type, rows[i].field).len > 0, rows[i].has_text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_kind_has_a_sentence),
        cmocka_unit_test(test_fields_are_found_by_type),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
