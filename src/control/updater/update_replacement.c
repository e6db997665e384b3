/*
 * Before an eviction the pod that would replace the evicted one is judged (control/replacement.h).
 * What was read serves for all siblings until one of them is evicted; then it is read again, a
 * little later where the replacement is not there yet.
 */
#include "base/alloc.h"
#include "control/replacement.h"
#include "control/updater/update_private.h"
#include "kube/client/client.h"
#include "model/owners.h"

#define REPLACEMENT_PAUSE (100 * TD_MILLISECOND)
#define REPLACEMENT_WAITS_MAX                                                                      \
    20 /* for the replacement of a sibling; a StatefulSet's takes longer */

struct update_replacement {
    struct td_replacement_facts facts;
    size_t evicted; /* pods of this owner, in this pass */
    unsigned waits; /* since the last of them */
};

struct update_replacement *update_replacement_new(void)
{
    struct update_replacement *replacement = td_alloc_zero(1, sizeof(*replacement));
    td_replacement_facts_init(&replacement->facts);
    return replacement;
}

void update_replacement_free(struct update_replacement *replacement)
{
    td_replacement_facts_done(&replacement->facts);
    td_free(replacement);
}

void update_replacement_forget(struct update_replacement *replacement)
{
    td_replacement_facts_done(&replacement->facts);
    replacement->evicted = 0;
    replacement->waits = 0;
}

void update_replacement_evicted(struct update_replacement *replacement)
{
    td_replacement_facts_reset(&replacement->facts);
    replacement->evicted++;
    replacement->waits = 0;
}

static void replacement_answered(void *context, const struct td_client_reply *reply)
{
    struct td_update_loop *loop = context;
    loop->call = NULL;
    td_replacement_facts_take(&loop->replacement->facts, reply);
    update_go_on(loop);
}

static void replacement_ask(struct td_update_loop *loop, td_str path)
{
    const struct td_client_request request = {
        .flow = loop->options.control.flow,
        .method = TD_STR("GET"),
        .path = path,
    };
    loop->phase = UPDATE_ACTING;
    loop->call = td_client_send(loop->options.control.client, &request, replacement_answered, loop);
}

static td_str replacement_problem(struct td_update_loop *loop)
{
    const struct td_control *control = &loop->options.control;
    struct td_replacement_input input = {
        .pod = loop->action.pod,
        .vpa = loop->action.vpa,
        .gates = control->gates,
        .max_cpu_boost = loop->options.max_cpu_boost,
        .largest_node =
            control->caps_to_node ? td_sight_largest_node(control->sight, &loop->arena) : NULL,
        .warns_of_limit_range = loop->options.config.warns_of_limit_range,
    };
    return td_replacement_facts_problem(&loop->replacement->facts, &loop->arena, control, &input);
}

/* Pods of the owner that were not there when the pass began. */
static size_t replacement_count_new(struct td_update_loop *loop, const struct td_controller *owner)
{
    struct td_sight *sight = loop->options.control.sight;
    const struct td_workload_source *source = td_sight_source(sight);
    const struct td_workload *workload =
        source->get_workload(source->context, owner->kind, owner->namespace, owner->name);
    if (!workload || workload->selector_error.len > 0) {
        return 0;
    }
    size_t count = 0;
    struct td_sight_match match;
    td_sight_match_pods(sight, owner->namespace, &workload->selector, &match);
    for (const struct td_sight_pod *pod; (pod = td_sight_match_next(&match));) {
        const struct td_vertical_pod known = {.meta = {.uid = pod->object.head.uid}};
        count += !pod->object.is_deleting && !td_updater_state_find(loop->pass.input.state, &known);
    }
    return count;
}

/* Is the replacement of a sibling that was just evicted still to come? Its fate is known soon. */
static bool replacement_is_awaited(struct td_update_loop *loop, const struct td_controller *owner)
{
    struct update_replacement *replacement = loop->replacement;
    return replacement->evicted > 0 && replacement->waits < REPLACEMENT_WAITS_MAX &&
           replacement_count_new(loop, owner) < replacement->evicted;
}

enum update_verdict update_replacement_judge(struct td_update_loop *loop, td_str *ret_why)
{
    struct update_replacement *replacement = loop->replacement;
    struct td_replacement_facts *facts = &replacement->facts;
    struct td_controller owner;
    *ret_why = TD_STR_EMPTY;
    td_str before = td_arena_copy_str(&loop->arena, facts->uid);
    if (!td_replacement_facts_turn(facts, loop->action.pod, &owner)) {
        return UPDATE_VERDICT_FINE; /* its template is not known */
    }
    if (!td_str_equal(before, owner.uid)) {
        replacement->evicted = 0;
        replacement->waits = 0;
    }
    if (!facts->is_read[TD_REPLACEMENT_OWNER] && replacement_is_awaited(loop, &owner)) {
        replacement->waits++;
        update_pause(loop, REPLACEMENT_PAUSE);
        return UPDATE_VERDICT_ASKED;
    }
    td_auto_buf path;
    td_buf_init(&path, TD_OBJECT_BYTES_MAX);
    if (td_replacement_facts_next(facts, &owner, &path)) {
        replacement_ask(loop, td_buf_str(&path));
        return UPDATE_VERDICT_ASKED;
    }
    if (facts->failure.len > 0) {
        *ret_why = td_arena_format(&loop->arena, "its owner cannot be read: %.*s",
                                   TD_STR_ARG(facts->failure));
        return UPDATE_VERDICT_UNKNOWN;
    }
    *ret_why = replacement_problem(loop);
    return ret_why->len > 0 ? UPDATE_VERDICT_REFUSED : UPDATE_VERDICT_FINE;
}
