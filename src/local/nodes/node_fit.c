/*
 * Terms of node affinity, node selectors and tolerations, evaluated as the scheduler evaluates
 * them.
 */
#include "local/nodes/node_fit.h"

/* Gt and Lt: whole numbers on both sides. */
static bool fit_compare(const struct td_json *values, const td_str *value, bool is_greater)
{
    const struct td_json *bound = td_json_first_item(values);
    int64_t a;
    int64_t b;
    return value && bound && bound->type == TD_JSON_TYPE_STRING && td_str_to_int64(*value, &a) &&
           td_str_to_int64(bound->text, &b) && (is_greater ? a > b : a < b);
}

static bool fit_requirement(const struct td_json *requirement, const td_str *value)
{
    td_str operation = td_json_text(requirement, "operator");
    const struct td_json *values = td_json_get(requirement, TD_STR("values"));
    if (td_str_equal(operation, TD_STR("In"))) {
        return value && td_json_has_text(values, *value);
    }
    if (td_str_equal(operation, TD_STR("NotIn"))) {
        return !value || !td_json_has_text(values, *value);
    }
    if (td_str_equal(operation, TD_STR("Exists"))) {
        return value != NULL;
    }
    if (td_str_equal(operation, TD_STR("DoesNotExist"))) {
        return value == NULL;
    }
    bool is_greater = td_str_equal(operation, TD_STR("Gt"));
    return (is_greater || td_str_equal(operation, TD_STR("Lt"))) &&
           fit_compare(values, value, is_greater);
}

/* All requirements of one term; one without any matches nothing. */
static bool fit_term(const struct td_json *term, td_str node, const struct td_labels *labels)
{
    const struct td_json *r = td_json_first_item(td_json_get(term, TD_STR("matchExpressions")));
    const struct td_json *f = td_json_first_item(td_json_get(term, TD_STR("matchFields")));
    if (!r && !f) {
        return false;
    }
    for (; r; r = r->next) {
        if (!fit_requirement(r, td_labels_get(labels, td_json_text(r, "key")))) {
            return false;
        }
    }
    for (; f; f = f->next) {
        bool is_name = td_str_equal(td_json_text(f, "key"), TD_STR("metadata.name"));
        if (!fit_requirement(f, is_name ? &node : NULL)) {
            return false;
        }
    }
    return true;
}

bool td_node_fits_affinity(const struct td_json *selector, const struct td_json *required,
                           td_str node, const struct td_labels *labels)
{
    for (const struct td_json *s = td_json_first_member(selector); s; s = s->next) {
        const td_str *value = td_labels_get(labels, s->key);
        if (!value || s->type != TD_JSON_TYPE_STRING || !td_str_equal(*value, s->text)) {
            return false;
        }
    }
    if (!td_json_is(required, TD_JSON_TYPE_OBJECT)) {
        return true;
    }
    const struct td_json *term =
        td_json_first_item(td_json_get(required, TD_STR("nodeSelectorTerms")));
    while (term && !fit_term(term, node, labels)) {
        term = term->next;
    }
    return term != NULL;
}

bool td_toleration_matches(const struct td_json *toleration, td_str key, td_str value,
                           td_str effect)
{
    td_str wanted_effect = td_json_text(toleration, "effect");
    td_str wanted_key = td_json_text(toleration, "key");
    td_str operation = td_json_get_str(toleration, TD_STR("operator"), TD_STR("Equal"));
    if (wanted_effect.len > 0 && !td_str_equal(wanted_effect, effect)) {
        return false;
    }
    if (wanted_key.len > 0 && !td_str_equal(wanted_key, key)) {
        return false;
    }
    if (td_str_equal(operation, TD_STR("Exists"))) {
        return true;
    }
    return (operation.len == 0 || td_str_equal(operation, TD_STR("Equal"))) &&
           td_str_equal(td_json_text(toleration, "value"), value);
}

static bool fit_is_tolerated(const struct td_json *toleration, const struct td_json *taint)
{
    return td_toleration_matches(toleration, td_json_text(taint, "key"),
                                 td_json_text(taint, "value"), td_json_text(taint, "effect"));
}

bool td_node_tolerates(const struct td_json *tolerations, const struct td_json *taints,
                       bool only_execute)
{
    for (const struct td_json *taint = td_json_first_item(taints); taint; taint = taint->next) {
        td_str effect = td_json_text(taint, "effect");
        bool counts = td_str_equal(effect, TD_STR("NoExecute")) ||
                      (!only_execute && td_str_equal(effect, TD_STR("NoSchedule")));
        const struct td_json *t = td_json_first_item(tolerations);
        while (counts && t && !fit_is_tolerated(t, taint)) {
            t = t->next;
        }
        if (counts && !t) {
            return false;
        }
    }
    return true;
}
