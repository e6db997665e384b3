/* VerticalPodAutoscaler: admission, the CRD's schema, the proposals' rules, siblings. */
#include "golden/golden.h"

#include <stdlib.h>
#include <string.h>

#include "api/vpa/vpa.h"
#include "base/limits.h"
#include "decide/vertical/siblings.h"

static td_str error_text(struct td_arena *arena, const struct td_field_error *error)
{
    td_auto_buf text;
    td_buf_init(&text, TD_JSON_BYTES_MAX);
    td_field_error_write(error, &text);
    return td_arena_copy_str(arena, td_buf_str(&text));
}

static td_str join_errors(struct td_arena *arena, const struct td_field_errors *errors,
                          bool is_sorted, const char *separator)
{
    td_str *texts = td_arena_array(arena, td_str, errors->count);
    for (size_t i = 0; i < errors->count; i++) {
        texts[i] = error_text(arena, &errors->items[i]);
    }
    if (is_sorted) {
        qsort(texts, errors->count, sizeof(*texts), td_str_compare_items);
    }
    td_auto_buf text;
    td_buf_init(&text, TD_JSON_BYTES_MAX);
    for (size_t i = 0; i < errors->count; i++) {
        (void)td_buf_append_format(&text, "%s%.*s", i > 0 ? separator : "", TD_STR_ARG(texts[i]));
    }
    return td_arena_copy_str(arena, td_buf_str(&text));
}

static bool gate(const struct td_json *in, td_str name)
{
    return td_json_get_bool(td_json_get(in, TD_STR("gates")), name, false);
}

/* Are all errors of the rules on eviction requirements, which upstream does not have? */
static bool is_beyond_upstream(const struct td_field_errors *errors)
{
    for (size_t i = 0; i < errors->count; i++) {
        if (!td_str_starts_with(errors->items[i].field,
                                TD_STR("spec.updatePolicy.evictionRequirements["))) {
            return false;
        }
    }
    return errors->count > 0;
}

/* Upstream's gates only: the vectors know nothing of the proposals. */
static int run_validation(struct td_arena *arena, const struct td_json *in, struct td_json **ret,
                          struct td_error *err)
{
    td_str operation = td_json_get_str(in, TD_STR("operation"), TD_STR_EMPTY);
    struct td_json *object = td_json_copy(arena, td_json_get(in, TD_STR("object")), false);
    const struct td_vpa_admission admission = {
        .is_update = td_str_equal(operation, TD_STR("UPDATE")),
        .object = object,
        .old = td_json_get(in, TD_STR("oldObject")),
        .gates = {.in_place = gate(in, TD_STR("InPlace")),
                  .per_vpa_config = gate(in, TD_STR("PerVPAConfig")),
                  .cpu_startup_boost = gate(in, TD_STR("CPUStartupBoost"))},
    };
    struct td_field_errors errors = {.arena = arena};
    struct td_json *patches = NULL;
    struct td_json *warnings = NULL;
    int code = td_vpa_admit(arena, &admission, &errors, &patches, &warnings, err);
    if (code == TD_OK && is_beyond_upstream(&errors)) {
        (void)td_json_remove(td_json_get_path(object, "spec.updatePolicy"),
                             TD_STR("evictionRequirements"));
        errors.count = 0;
        code = td_vpa_admit(arena, &admission, &errors, &patches, &warnings, err);
    }
    if (code < 0) {
        return code;
    }
    if (errors.count > 0) {
        td_str text = join_errors(arena, &errors, false, ", ");
        return td_error_set(err, TD_INVALID, errors.count > 1 ? "[%.*s]" : "%.*s",
                            TD_STR_ARG(text));
    }
    *ret = td_json_new_object(arena);
    td_json_set(arena, *ret, TD_STR("patches"), patches);
    td_json_set(arena, *ret, TD_STR("warnings"), warnings);
    return TD_OK;
}

/* What upstream's schema does not know it prunes; ours knows the proposals' fields, so they are
 * taken out before. */
static struct td_json *without_proposals(struct td_arena *arena, const struct td_json *object)
{
    struct td_json *made = td_json_copy(arena, object, false);
    static const char *const fields[][2] = {{"spec", "selector"},
                                            {"spec.resourcePolicy", "podPolicies"},
                                            {"status.recommendation", "podRecommendation"}};
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        struct td_json *parent = td_json_get_path(made, fields[i][0]);
        if (td_json_is(parent, TD_JSON_TYPE_OBJECT)) {
            (void)td_json_remove(parent, td_str_from(fields[i][1]));
        }
    }
    return made;
}

static int run_crd_schema(struct td_arena *arena, const struct td_json *in, struct td_json **ret,
                          struct td_error *err)
{
    const struct td_json *object = without_proposals(arena, td_json_get(in, TD_STR("object")));
    struct td_field_errors errors = {.arena = arena};
    struct td_json *stored = NULL;
    int code = td_vpa_apply_crd(arena, object, &errors, &stored, err);
    if (code < 0) {
        return code;
    }
    if (errors.count > 0) {
        td_str text = join_errors(arena, &errors, true, "; ");
        return td_error_set(err, TD_INVALID, "%.*s", TD_STR_ARG(text));
    }
    *ret = td_json_new_object(arena);
    td_json_set(arena, *ret, TD_STR("object"), stored);
    return TD_OK;
}

/* --- the proposals' own rules: {valid, message} --- */

static struct td_json *whole_object(struct td_arena *arena)
{
    static const char text[] =
        "{\"apiVersion\":\"autoscaling.k8s.io/v1\",\"kind\":\"VerticalPodAutoscaler\","
        "\"metadata\":{\"name\":\"v\",\"namespace\":\"default\"},\"spec\":{"
        "\"targetRef\":{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"name\":\"web\"},"
        "\"updatePolicy\":{\"updateMode\":\"Recreate\"}}}";
    struct td_json *object = NULL;
    (void)td_json_parse(arena, td_str_from(text), NULL, &object, NULL); /* it is ours */
    return object;
}

static struct td_json *verdict(struct td_arena *arena, bool is_valid, td_str message)
{
    struct td_json *made = td_json_new_object(arena);
    td_json_set(arena, made, TD_STR("valid"), td_json_new_bool(arena, is_valid));
    td_json_set(arena, made, TD_STR("message"), td_json_new_string(arena, message));
    return made;
}

static struct td_json *judge(struct td_arena *arena, const struct td_json *object, bool pod_level)
{
    const struct td_vpa_admission admission = {
        .object = object,
        .gates = {.pod_level_resources = pod_level},
    };
    struct td_field_errors errors = {.arena = arena};
    struct td_json *patches = NULL;
    struct td_json *warnings = NULL;
    struct td_error err = TD_ERROR_INIT;
    if (td_vpa_admit(arena, &admission, &errors, &patches, &warnings, &err) < 0) {
        return verdict(arena, false, td_arena_copy_str(arena, td_str_from(err.message)));
    }
    return verdict(arena, errors.count == 0, join_errors(arena, &errors, false, "\n"));
}

static int run_requirements(struct td_arena *arena, const struct td_json *in, struct td_json **ret,
                            struct td_error *err)
{
    (void)err; /* nothing can fail but the object, which is the answer */
    const struct td_json *list = td_json_get(in, TD_STR("evictionRequirements"));
    struct td_json *object = whole_object(arena);
    if (list) {
        td_json_set(arena, td_json_get_path(object, "spec.updatePolicy"),
                    TD_STR("evictionRequirements"), td_json_copy(arena, list, false));
    }
    *ret = judge(arena, object, true);
    return TD_OK;
}

static int run_pod_level(struct td_arena *arena, const struct td_json *in, struct td_json **ret,
                         struct td_error *err)
{
    td_str flag = td_json_get_str(in, TD_STR("flag"), TD_STR_EMPTY);
    const struct td_json *policy = td_json_get(in, TD_STR("resourcePolicy"));
    struct td_quantity quantity;
    if (flag.len > 0) {
        td_str value = td_json_get_str(in, TD_STR("value"), TD_STR_EMPTY);
        bool is_valid = td_vpa_parse_flag(arena, flag, value, &quantity, err) == TD_OK;
        *ret = verdict(arena, is_valid, td_arena_copy_str(arena, td_str_from(err->message)));
        return TD_OK;
    }
    struct td_json *object = whole_object(arena);
    if (policy) {
        td_json_set(arena, td_json_get(object, TD_STR("spec")), TD_STR("resourcePolicy"),
                    td_json_copy(arena, policy, false));
    }
    *ret = judge(arena, object, td_json_get_bool(in, TD_STR("gate"), false));
    return TD_OK;
}

static bool has_text(td_str text, td_str part)
{
    return memmem(text.ptr, text.len, part.ptr, part.len) != NULL;
}

/* The message has to name all paths of at least one broken rule. */
static bool is_same_rules(const struct td_json *expected, const struct td_json *got)
{
    const struct td_json *errors = td_json_get(expected, TD_STR("errors"));
    td_str message = td_json_get_str(got, TD_STR("message"), TD_STR_EMPTY);
    bool is_valid = td_json_get_bool(expected, TD_STR("valid"), false);
    bool is_named = is_valid;
    for (const struct td_json *error = td_json_first_child(errors); error; error = error->next) {
        const struct td_json *paths = td_json_get(error, TD_STR("paths"));
        bool has_all = true;
        for (const struct td_json *path = td_json_first_child(paths); path; path = path->next) {
            has_all = has_all && has_text(message, path->text);
        }
        is_named = is_named || has_all;
    }
    return is_valid == td_json_get_bool(got, TD_STR("valid"), !is_valid) && is_named;
}

/* --- selectors --- */

static const td_str case_names[] = {
    [TD_SELECTOR_CONTRADICTORY] = TD_STR_INIT("contradictory"),
    [TD_SELECTOR_CATCH_ALL] = TD_STR_INIT("1"),
    [TD_SELECTOR_NO_COMMON_KEY] = TD_STR_INIT("2"),
    [TD_SELECTOR_DISJOINT] = TD_STR_INIT("3"),
    [TD_SELECTOR_SATISFIABLE] = TD_STR_INIT("satisfiable"),
};

static struct td_json *key_array(struct td_arena *arena, const struct td_key_list *keys)
{
    struct td_json *list = td_json_new_array(arena);
    for (size_t i = 0; i < keys->count; i++) {
        td_json_append(list, td_json_new_string(arena, keys->items[i]));
    }
    return list;
}

/* Null and missing are everything here. */
static int read_selector(struct td_arena *arena, const struct td_json *tree,
                         struct td_selector *ret, struct td_error *err)
{
    *ret = (struct td_selector){.count = 0};
    bool is_missing = !tree || tree->type == TD_JSON_TYPE_NULL;
    return is_missing ? TD_OK : td_selector_from_json(arena, tree, ret, err);
}

static void set_flag(struct td_arena *arena, struct td_json *out, td_str key, bool value)
{
    td_json_set(arena, out, key, td_json_new_bool(arena, value));
}

static int run_disjoint(struct td_arena *arena, const struct td_json *in, struct td_json **ret,
                        struct td_error *err)
{
    struct td_selector a;
    struct td_selector b;
    if (read_selector(arena, td_json_get(in, TD_STR("a")), &a, err) < 0 ||
        read_selector(arena, td_json_get(in, TD_STR("b")), &b, err) < 0) {
        return TD_INVALID;
    }
    struct td_selector_relation relation = td_selector_disjoint(arena, &a, &b);
    struct td_json *out = td_json_new_object(arena);
    struct td_json *broken = td_json_new_array(arena);
    if (relation.is_contradictory) {
        td_json_append(broken, td_json_new_string(arena, TD_STR("a")));
    }
    if (relation.is_other_contradictory) {
        td_json_append(broken, td_json_new_string(arena, TD_STR("b")));
    }
    td_json_set(arena, out, TD_STR("contradictory"), broken);
    set_flag(arena, out, TD_STR("disjoint"), relation.is_disjoint);
    set_flag(arena, out, TD_STR("overlap"), !relation.is_disjoint);
    bool is_allowed = relation.verdict == TD_SELECTOR_DISJOINT;
    td_json_set(arena, out, TD_STR("verdict"),
                td_json_new_string(arena, is_allowed ? TD_STR("allow") : TD_STR("reject")));
    td_json_set(arena, out, TD_STR("case"),
                td_json_new_string(arena, case_names[relation.verdict]));
    if (relation.keys.count > 0) {
        td_json_set(arena, out, TD_STR("keys"), key_array(arena, &relation.keys));
    }
    if (relation.verdict == TD_SELECTOR_NO_COMMON_KEY) {
        td_json_set(arena, out, TD_STR("keysA"), key_array(arena, &relation.own_keys));
        td_json_set(arena, out, TD_STR("keysB"), key_array(arena, &relation.other_keys));
    }
    if (!relation.is_disjoint) {
        bool is_right = td_selector_matches(&a, &relation.witness) &&
                        td_selector_matches(&b, &relation.witness);
        set_flag(arena, out, TD_STR("witness"), is_right);
    }
    *ret = out;
    return TD_OK;
}

/* Every member as expected; a witness is judged by the code that found it. */
static bool is_same_relation(const struct td_json *expected, const struct td_json *got)
{
    bool is_same = expected->count == got->count;
    for (const struct td_json *member = td_json_first_child(expected); member;
         member = member->next) {
        const struct td_json *ours = td_json_get(got, member->key);
        is_same = is_same && (td_str_equal(member->key, TD_STR("witness"))
                                  ? td_json_is(ours, TD_JSON_TYPE_BOOL) && ours->boolean
                                  : td_json_equal(member, ours));
    }
    return is_same;
}

/* --- siblings --- */

/* The vectors' short form as a whole object. */
static int read_vpa(struct td_arena *arena, const struct td_json *in, struct td_vpa *ret,
                    struct td_error *err)
{
    struct td_json *object = td_json_new_object(arena);
    struct td_json *metadata = td_json_ensure_object(arena, object, TD_STR("metadata"));
    struct td_json *spec = td_json_ensure_object(arena, object, TD_STR("spec"));
    for (const struct td_json *member = td_json_first_child(in); member; member = member->next) {
        bool is_spec = td_str_equal(member->key, TD_STR("targetRef")) ||
                       td_str_equal(member->key, TD_STR("selector"));
        struct td_json *place = is_spec ? spec : metadata;
        td_json_set(arena, place, member->key, td_json_copy(arena, member, false));
    }
    return td_vpa_decode(arena, object, ret, err);
}

static struct td_json *conflict_json(struct td_arena *arena, const struct td_vpa *vpa,
                                     const struct td_sibling_conflict *conflict)
{
    const struct td_selector_relation *relation = &conflict->relation;
    struct td_json *made = td_json_new_object(arena);
    td_json_set(arena, made, TD_STR("name"),
                td_json_new_string(arena, conflict->sibling->meta.name));
    td_json_set(arena, made, TD_STR("case"),
                td_json_new_string(arena, case_names[relation->verdict]));
    bool is_named = has_text(conflict->message, conflict->sibling->meta.name);
    if (relation->verdict == TD_SELECTOR_CATCH_ALL) {
        is_named = is_named && has_text(conflict->message, TD_STR("catch-all"));
    } else if (relation->verdict == TD_SELECTOR_NO_COMMON_KEY) {
        td_json_set(arena, made, TD_STR("keysNew"), key_array(arena, &relation->own_keys));
        td_json_set(arena, made, TD_STR("keysOther"), key_array(arena, &relation->other_keys));
        is_named = is_named && has_text(conflict->message, relation->own_keys.items[0]) &&
                   has_text(conflict->message, relation->other_keys.items[0]);
    } else {
        bool is_right = td_selector_matches(&vpa->pod_selector, &relation->witness) &&
                        td_selector_matches(&conflict->sibling->pod_selector, &relation->witness);
        set_flag(arena, made, TD_STR("witness"), is_right);
    }
    if (!is_named) {
        td_json_set(arena, made, TD_STR("message"), td_json_new_string(arena, conflict->message));
    }
    return made;
}

static struct td_json *judgement_json(struct td_arena *arena, const struct td_vpa *vpa,
                                      const struct td_sibling_judgement *judgement)
{
    struct td_json *out = td_json_new_object(arena);
    set_flag(arena, out, TD_STR("allowed"), judgement->is_allowed);
    if (judgement->is_contradictory) {
        td_json_set(arena, out, TD_STR("self"), td_json_new_string(arena, TD_STR("contradictory")));
        td_json_set(arena, out, TD_STR("keys"), key_array(arena, &judgement->contradictory_keys));
    }
    struct td_json *siblings = td_json_new_array(arena);
    for (size_t i = 0; i < judgement->sibling_count; i++) {
        td_json_append(siblings, td_json_new_string(arena, judgement->siblings[i]->meta.name));
    }
    td_json_set(arena, out, TD_STR("siblings"), siblings);
    if (!judgement->is_contradictory) {
        struct td_json *conflicts = td_json_new_array(arena);
        for (size_t i = 0; i < judgement->conflict_count; i++) {
            td_json_append(conflicts, conflict_json(arena, vpa, &judgement->conflicts[i]));
        }
        td_json_set(arena, out, TD_STR("conflicts"), conflicts);
    }
    if (judgement->is_unchanged) {
        set_flag(arena, out, TD_STR("unchanged"), true);
    }
    return out;
}

static int run_siblings(struct td_arena *arena, const struct td_json *in, struct td_json **ret,
                        struct td_error *err)
{
    const struct td_json *list = td_json_get(in, TD_STR("existing"));
    struct td_vpa vpa;
    struct td_vpa *existing = td_arena_array(arena, struct td_vpa, list->count);
    const struct td_vpa **pointers = td_arena_array(arena, const struct td_vpa *, list->count);
    int code = read_vpa(arena, td_json_get(in, TD_STR("vpa")), &vpa, err);
    size_t count = 0;
    for (const struct td_json *item = td_json_first_child(list); item && code == TD_OK;
         item = item->next) {
        code = read_vpa(arena, item, &existing[count], err);
        pointers[count] = &existing[count];
        count++;
    }
    if (code < 0) {
        return code;
    }
    const struct td_sibling_request request = {
        .vpa = &vpa,
        .is_update =
            td_str_equal(td_json_get_str(in, TD_STR("op"), TD_STR_EMPTY), TD_STR("UPDATE")),
        .existing = pointers,
        .existing_count = count,
        .gate = td_json_get_bool(in, TD_STR("gate"), false),
    };
    struct td_sibling_judgement judgement = td_vpa_judge_siblings(arena, &request);
    *ret = judgement_json(arena, &vpa, &judgement);
    return TD_OK;
}

static bool is_same_judgement(const struct td_json *expected, const struct td_json *got)
{
    const struct td_json *theirs = td_json_get(expected, TD_STR("conflicts"));
    const struct td_json *ours = td_json_get(got, TD_STR("conflicts"));
    bool is_same = expected->count == got->count && !theirs == !ours &&
                   (!theirs || theirs->count == ours->count);
    for (const struct td_json *member = td_json_first_child(expected); member;
         member = member->next) {
        is_same = is_same && (td_str_equal(member->key, TD_STR("conflicts")) ||
                              td_json_equal(member, td_json_get(got, member->key)));
    }
    for (size_t i = 0; is_same && theirs && i < theirs->count; i++) {
        is_same = is_same_relation(td_json_at(theirs, i), td_json_at(ours, i));
    }
    return is_same;
}

const struct golden_topic golden_vpa_api[] = {
    {.name = "vpa/validation", .run = run_validation},
    {.name = "vpa/crd-schema", .run = run_crd_schema},
    {.name = "seeds/eviction-requirements-validation",
     .run = run_requirements,
     .is_same = is_same_rules},
    {.name = "seeds/pod-level-validation", .run = run_pod_level, .is_same = is_same_rules},
    {.name = "seeds/selector-disjoint", .run = run_disjoint, .is_same = is_same_relation},
    {.name = "seeds/vpa-siblings", .run = run_siblings, .is_same = is_same_judgement},
    {.name = NULL},
};
