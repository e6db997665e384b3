/*
 * Before the updater evicts a pod it judges the one that would replace it (control/replacement.h),
 * and holds the pod when that would be refused. So does the explanation, for the pods of its own
 * VPA: what is read of an owner is kept, and after each answer the explanation is tried again.
 */
#include "base/alloc.h"
#include "base/error.h"
#include "base/os/loop.h"
#include "control/inspect/explain_private.h"
#include "control/replacement.h"
#include "kube/client/client.h"
#include "model/owners.h"

#define EXPLAIN_OWNERS_MAX 8 /* of the pods of one VPA; those of others are not judged */

struct explain_owner {
    struct td_replacement_facts facts;
    struct explain_owner *next;
};

struct explain_replacements {
    struct explain_owner *owners;
    size_t owner_count;
    struct explain_owner *reading; /* whose facts the call is for */
    struct td_client_call *call;
};

struct replacement_case {
    struct td_explain *explain;
    const struct td_vpa *vpa;
};

static struct explain_owner *replacement_owner(struct explain_replacements *all,
                                               const struct td_pod *pod,
                                               struct td_controller *ret_owner)
{
    struct explain_owner *owner = all->owners;
    if (!td_controller_of_pod(&pod->meta, ret_owner)) {
        return NULL;
    }
    while (owner && !td_str_equal(owner->facts.uid, ret_owner->uid)) {
        owner = owner->next;
    }
    if (!owner && all->owner_count < EXPLAIN_OWNERS_MAX) {
        owner = td_alloc_zero(1, sizeof(*owner));
        td_replacement_facts_init(&owner->facts);
        owner->next = all->owners;
        all->owners = owner;
        all->owner_count++;
    }
    return owner && td_replacement_facts_turn(&owner->facts, pod, ret_owner) ? owner : NULL;
}

static void replacement_answered(void *context, const struct td_client_reply *reply)
{
    struct td_explain *explain = context;
    struct explain_replacements *all = explain->replacements;
    all->call = NULL;
    td_replacement_facts_take(&all->reading->facts, reply);
    td_timer_set(explain->again, 0);
}

static enum td_replacement_verdict
replacement_judge(void *context, const struct td_updater_action *action, td_str *ret_why)
{
    const struct replacement_case *in = context;
    struct td_explain *explain = in->explain;
    const struct td_update_options *options = &explain->snapshot->update;
    struct explain_replacements *all = explain->replacements;
    struct td_controller controller;
    if (all->call) {
        return TD_REPLACEMENT_READING;
    }
    if (!td_str_equal(action->vpa->meta.name, in->vpa->meta.name)) {
        return TD_REPLACEMENT_FINE; /* only what comes before matters: it may use up a budget */
    }
    struct explain_owner *owner = replacement_owner(all, action->pod, &controller);
    if (!owner) {
        return TD_REPLACEMENT_FINE;
    }
    struct td_replacement_input input =
        td_update_replacement_input(options, &explain->arena, action);
    struct td_client_request request;
    enum td_replacement_verdict verdict = td_replacement_facts_judge(
        &owner->facts, &explain->arena, &options->control, &controller, &input, &request, ret_why);
    if (verdict == TD_REPLACEMENT_READING) {
        all->reading = owner;
        all->call =
            td_client_send(options->control.client, &request, replacement_answered, explain);
    }
    return verdict;
}

int explain_updater(struct td_explain *explain, const struct td_vpa *vpa,
                    struct td_updater_notes *ret, struct td_error *err)
{
    struct replacement_case in = {.explain = explain, .vpa = vpa};
    const struct td_update_judge judge = {.judge = replacement_judge, .context = &in};
    if (!explain->replacements) {
        explain->replacements = td_alloc_zero(1, sizeof(*explain->replacements));
    }
    return td_update_dry_run(&explain->snapshot->update, &explain->arena, vpa->meta.namespace, NULL,
                             &judge, ret, err);
}

void explain_replacements_free(struct explain_replacements *all)
{
    if (!all) {
        return;
    }
    td_client_cancel(all->call);
    for (struct explain_owner *owner = all->owners; owner;) {
        struct explain_owner *next = owner->next;
        td_replacement_facts_done(&owner->facts);
        td_free(owner);
        owner = next;
    }
    td_free(all);
}
