/*
 * Before an eviction the pod that would replace the evicted one is judged (control/replacement.h).
 * What was read serves for all siblings until one of them is evicted; then it is read again, a
 * little later where the replacement is not there yet.
 */
#include "base/alloc.h"
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

/* Pods of the owner that were not there when the pass began. */
static size_t replacement_count_new(struct td_update_loop *loop, const struct td_controller *owner)
{
    struct td_informers *informers = loop->options.control.informers;
    const struct td_workload_source *source = td_informers_source(informers);
    const struct td_workload *workload =
        source->get_workload(source->context, owner->kind, owner->namespace, owner->name);
    if (!workload || workload->selector_error.len > 0) {
        return 0;
    }
    size_t count = 0;
    struct td_pod_match match;
    td_informers_match_pods(informers, owner->namespace, &workload->selector, &match);
    for (const struct td_informer_pod *pod; (pod = td_pod_match_next(&match));) {
        const struct td_pod known = {.meta = {.uid = pod->object.head.uid}};
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

struct td_replacement_input td_update_replacement_input(const struct td_update_options *options,
                                                        struct td_arena *arena,
                                                        const struct td_updater_action *action)
{
    return (struct td_replacement_input){
        .pod = action->pod,
        .vpa = action->vpa,
        .max_cpu_boost = options->max_cpu_boost,
        .largest_node = options->control.caps_to_node
                            ? td_informers_largest_node(options->control.informers, arena)
                            : NULL,
        .warns_of_limit_range = options->config.warns_of_limit_range,
    };
}

enum td_replacement_verdict update_replacement_judge(struct td_update_loop *loop, td_str *ret_why)
{
    const struct td_control *control = &loop->options.control;
    struct update_replacement *replacement = loop->replacement;
    struct td_replacement_facts *facts = &replacement->facts;
    struct td_controller owner;
    td_str before = td_arena_copy_str(&loop->arena, facts->uid);
    if (!td_replacement_facts_turn(facts, loop->action.pod, &owner)) {
        return TD_REPLACEMENT_FINE; /* the template of its owner is not known */
    }
    if (!td_str_equal(before, owner.uid)) {
        replacement->evicted = 0;
        replacement->waits = 0;
    }
    if (!facts->is_read[TD_REPLACEMENT_OWNER] && replacement_is_awaited(loop, &owner)) {
        replacement->waits++;
        update_pause(loop, REPLACEMENT_PAUSE);
        return TD_REPLACEMENT_READING;
    }
    struct td_replacement_input input =
        td_update_replacement_input(&loop->options, &loop->arena, &loop->action);
    struct td_client_request request;
    enum td_replacement_verdict verdict =
        td_replacement_facts_judge(facts, &loop->arena, control, &owner, &input, &request, ret_why);
    if (verdict == TD_REPLACEMENT_READING) {
        loop->phase = UPDATE_ACTING;
        loop->call = td_client_send(control->client, &request, replacement_answered, loop);
    } else if (verdict == TD_REPLACEMENT_UNKNOWN) {
        *ret_why = td_arena_format(&loop->arena, "cannot read the pod's owner: %.*s",
                                   TD_STR_ARG(*ret_why));
    }
    return verdict;
}
