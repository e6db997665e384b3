/*
 * Rules of podFailurePolicy in their order, successPolicy over sets of indexes, and the failure
 * counts in annotations.
 */
#include "local/jobs/workload_job_policy.h"

/* ---- Pods that failed ---- */

static bool policy_has_code(const struct td_json *requirement, int64_t code)
{
    const struct td_json *values = td_json_get(requirement, TD_STR("values"));
    const struct td_json *v = td_json_first_item(values);
    bool has = false;
    for (; v && !has; v = v->next) {
        int64_t number = 0;
        has = v->type == TD_JSON_TYPE_NUMBER && td_json_to_int64(v, &number) && number == code;
    }
    td_str relation = td_json_text(requirement, "operator");
    return td_str_equal(relation, TD_STR("In")) ? has
                                                : td_str_equal(relation, TD_STR("NotIn")) && !has;
}

/* The first container of the list that ended with such a code, or NULL. */
static const struct td_json *policy_container(const struct td_json *list,
                                              const struct td_json *requirement)
{
    td_str name = td_json_text(requirement, "containerName");
    for (const struct td_json *c = td_json_first_item(list); c; c = c->next) {
        const struct td_json *end = td_json_get_path(c, "state.terminated");
        int64_t code = td_json_get_int64(end, TD_STR("exitCode"), 0);
        bool is_named = name.len == 0 || td_str_equal(name, td_json_text(c, "name"));
        if (end && code != 0 && is_named && policy_has_code(requirement, code)) {
            return c;
        }
    }
    return NULL;
}

static bool policy_is_pattern(const struct td_json *pattern, const struct td_json *condition)
{
    static const td_str keys[] = {TD_STR_INIT("type"), TD_STR_INIT("status")};
    for (size_t i = 0; i < 2; i++) {
        if (!td_str_equal(td_json_get_str(pattern, keys[i], TD_STR_EMPTY),
                          td_json_get_str(condition, keys[i], TD_STR_EMPTY))) {
            return false;
        }
    }
    return true;
}

static const struct td_json *policy_condition(const struct td_json *status,
                                              const struct td_json *patterns)
{
    const struct td_json *list = td_json_get(status, TD_STR("conditions"));
    for (const struct td_json *c = td_json_first_item(list); c; c = c->next) {
        for (const struct td_json *p = td_json_first_item(patterns); p; p = p->next) {
            if (policy_is_pattern(p, c)) {
                return c;
            }
        }
    }
    return NULL;
}

static enum td_job_action policy_action(const struct td_json *rule)
{
    static const struct {
        td_str name;
        enum td_job_action action;
    } actions[] = {
        {TD_STR_INIT("Count"), TD_JOB_ACTION_COUNT},
        {TD_STR_INIT("Ignore"), TD_JOB_ACTION_IGNORE},
        {TD_STR_INIT("FailIndex"), TD_JOB_ACTION_FAIL_INDEX},
        {TD_STR_INIT("FailJob"), TD_JOB_ACTION_FAIL_JOB},
    };
    td_str name = td_json_text(rule, "action");
    for (size_t i = 0; i < TD_COUNT(actions); i++) {
        if (td_str_equal(name, actions[i].name)) {
            return actions[i].action;
        }
    }
    return TD_JOB_ACTION_NONE;
}

/* What the rule says of the pod, in upstream's words; empty: the rule is not about it. */
static td_str policy_match(struct td_arena *arena, const struct td_json *rule, size_t index,
                           const struct td_json *pod)
{
    const struct td_json *metadata = td_json_get(pod, TD_STR("metadata"));
    const struct td_json *status = td_json_get(pod, TD_STR("status"));
    const struct td_json *codes = td_json_get(rule, TD_STR("onExitCodes"));
    td_str ns = td_json_text(metadata, "namespace");
    td_str name = td_json_text(metadata, "name");
    td_str action = td_json_text(rule, "action");
    if (codes) {
        const struct td_json *c =
            policy_container(td_json_get(status, TD_STR("containerStatuses")), codes);
        c = c ? c : policy_container(td_json_get(status, TD_STR("initContainerStatuses")), codes);
        td_str container = td_json_text(c, "name");
        const struct td_json *end = td_json_get_path(c, "state.terminated");
        return c ? td_arena_format(arena,
                                   "Container %.*s for pod %.*s/%.*s failed with exit code %lld "
                                   "matching %.*s rule at index %zu",
                                   TD_STR_ARG(container), TD_STR_ARG(ns), TD_STR_ARG(name),
                                   (long long)td_json_get_int64(end, TD_STR("exitCode"), 0),
                                   TD_STR_ARG(action), index)
                 : TD_STR_EMPTY;
    }
    const struct td_json *c =
        policy_condition(status, td_json_get(rule, TD_STR("onPodConditions")));
    td_str type = td_json_text(c, "type");
    return c ? td_arena_format(
                   arena, "Pod %.*s/%.*s has condition %.*s matching %.*s rule at index %zu",
                   TD_STR_ARG(ns), TD_STR_ARG(name), TD_STR_ARG(type), TD_STR_ARG(action), index)
             : TD_STR_EMPTY;
}

struct td_job_verdict td_job_judge_pod(struct td_arena *arena, const struct td_json *policy,
                                       const struct td_json *pod)
{
    const struct td_json *rules = td_json_get(policy, TD_STR("rules"));
    const struct td_json *rule = td_json_first_item(rules);
    for (size_t index = 0; rule; rule = rule->next, index++) {
        enum td_job_action action = policy_action(rule);
        td_str message = policy_match(arena, rule, index, pod);
        if (action != TD_JOB_ACTION_NONE && message.len > 0) {
            return (struct td_job_verdict){.action = action, .message = message};
        }
    }
    return (struct td_job_verdict){.action = TD_JOB_ACTION_NONE};
}

int64_t td_job_failures(const struct td_json *pod, td_str annotation)
{
    td_str text =
        td_json_get_str(td_json_get_path(pod, "metadata.annotations"), annotation, TD_STR_EMPTY);
    int64_t number;
    return td_str_to_int64(text, &number) && number >= 0 && number <= INT32_MAX ? number : 0;
}

/* ---- Indexes that succeeded ---- */

static bool policy_is_met(struct td_arena *arena, const struct td_json *rule,
                          const struct td_job_indexes *succeeded)
{
    int64_t count = td_json_get_int64(rule, TD_STR("succeededCount"), -1);
    const struct td_json *text = td_json_get(rule, TD_STR("succeededIndexes"));
    if (!td_json_is(text, TD_JSON_TYPE_STRING)) {
        return count >= 0 && (int64_t)td_job_indexes_count(succeeded) >= count;
    }
    struct td_job_indexes wanted = td_job_indexes_new(arena, succeeded->size);
    td_job_indexes_read(&wanted, text->text);
    int64_t met = 0;
    for (size_t i = 0; i < succeeded->size; i++) {
        met += td_job_indexes_has(&wanted, (int64_t)i) && td_job_indexes_has(succeeded, (int64_t)i);
    }
    int64_t all = (int64_t)td_job_indexes_count(&wanted);
    return all > 0 && (met == all || (count >= 0 && met >= count));
}

bool td_job_judge_success(struct td_arena *arena, const struct td_json *policy,
                          const struct td_job_indexes *succeeded, td_str *ret_message)
{
    const struct td_json *rules = td_json_get(policy, TD_STR("rules"));
    const struct td_json *rule = td_json_first_item(rules);
    if (td_job_indexes_count(succeeded) == 0) {
        return false;
    }
    for (size_t index = 0; rule; rule = rule->next, index++) {
        if (policy_is_met(arena, rule, succeeded)) {
            *ret_message = td_arena_format(arena, "Matched rules at index %zu", index);
            return true;
        }
    }
    return false;
}
