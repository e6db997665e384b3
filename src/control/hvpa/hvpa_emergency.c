/*
 * Where memory ran out: the pods of an Hvpa that the rules of decide/tandem/emergency.h look at,
 * and, of those that were evicted, whether their node is under memory pressure.
 */
#include "base/limits.h"
#include "control/hvpa/hvpa_private.h"

bool hvpa_condition_is_true(const struct td_json *object, td_str type)
{
    const struct td_json *c = td_json_first_item(td_json_get_path(object, "status.conditions"));
    while (c && !td_str_equal(td_json_text(c, "type"), type)) {
        c = c->next;
    }
    return td_str_equal(td_json_text(c, "status"), TD_STR("True"));
}

static bool pod_is_evicted_for_memory(const struct hvpa_reconcile *run, const struct td_pod *pod)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    const struct td_json *status = td_json_get(pod->tree, TD_STR("status"));
    const struct td_cache *nodes =
        td_informers_cache(run->loop->options.control.informers, TD_INFORMER_NODES);
    td_str node = td_json_text(td_json_get(pod->tree, TD_STR("spec")), "nodeName");
    const struct td_informer_object *seen = nodes ? td_cache_get(nodes, TD_STR_EMPTY, node) : NULL;
    struct td_json *tree;
    bool is_evicted = td_str_equal(td_json_text(status, "reason"), TD_STR("Evicted"));
    return is_evicted && seen && td_informers_tree(&arena, seen, &tree, NULL) == TD_OK &&
           hvpa_condition_is_true(tree, TD_STR("MemoryPressure"));
}

void hvpa_emergencies_find(struct hvpa_reconcile *run)
{
    struct td_tandem_emergencies *all = &run->decided.emergencies;
    *all = (struct td_tandem_emergencies){
        .arena = &run->arena,
        .before = &run->hvpa.status,
        .decided = &run->decided.requests,
        .now = run->now,
        .seen = run->item->oom_seen,
    };
    td_tandem_emergencies_recall(all);
    for (size_t i = 0; i < run->seen.pod_count; i++) {
        if (hvpa_pod_is_sized(run, &run->seen.pods[i])) {
            td_tandem_emergencies_add_kills(all, &run->seen.pods[i]);
        }
    }
    for (size_t i = 0; i < run->seen.ended_count; i++) {
        const struct td_pod *pod = &run->seen.ended[i];
        if (td_tandem_oom_is_new(all, pod->start_time) && pod_is_evicted_for_memory(run, pod)) {
            td_tandem_emergencies_add_eviction(all, pod);
        }
    }
    run->item->oom_seen = all->newest;
}
