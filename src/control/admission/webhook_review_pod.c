/*
 * A pod being created: who controls it, which VPA (or Hvpa) that controller is under, and what is
 * to be written. A pod is refused in one case only, which the proposal on pod-level resources asks
 * for; every other doubt ends in a pod as it was sent.
 */
#include "base/error.h"
#include "control/actuator.h"
#include "control/admission/webhook_private.h"
#include "control/informers/informers.h"
#include "decide/vertical/patch/limitrange.h"
#include "decide/vertical/patch/patchops.h"
#include "decide/vertical/patch/podpatch.h"
#include "decide/vertical/patch/podsizes.h"
#include "decide/vertical/updater/matching.h"

/* ---- Probes ---- */

/* True when it is a probe of ours: only a dry run is, so a real pod cannot be marked. */
static bool pod_is_probe(const struct webhook_review *review)
{
    const struct td_json *annotations = td_json_get_path(review->object, "metadata.annotations");
    return review->is_dry_run &&
           td_json_is(td_json_get(annotations, TD_STR(WEBHOOK_PROBE_KEY)), TD_JSON_TYPE_STRING);
}

/* ---- Hvpas ---- */

static void pod_apply_sizes(struct webhook_review *review, const struct td_pod *pod,
                            const struct td_pod_sizes *sizes)
{
    const struct td_limit_ranges *limits =
        td_informers_limits(review->webhook->options.control.informers, review->namespace);
    const struct td_pod_sizes_patch patch = td_pod_sizes_patch(review->arena, sizes, pod, limits);
    if (patch.is_kept_out) {
        webhook_review_undecided(review, "limit-range");
    }
    review->patches = patch.patches ? patch.patches : review->patches;
}

/* ---- VPAs ---- */

static void pod_apply_vpa(struct webhook_review *review, const struct td_pod *pod,
                          const struct td_vpa *vpa)
{
    static const struct td_limit_ranges none = {.container_name_count = 0};
    const struct td_webhook_options *options = &review->webhook->options;
    const struct td_limit_ranges *limits =
        td_informers_limits(options->control.informers, review->namespace);
    const struct td_pod_patch_input input = {
        .pod = pod,
        .vpa = vpa,
        .limits = limits ? limits : &none,
        .gates = options->control.gates,
        .max_cpu_boost = options->max_cpu_boost,
        .warns_of_limit_range = options->warns_of_limit_range,
        .largest_node = options->control.caps_to_node
                            ? td_informers_largest_node(options->control.informers, review->arena)
                            : NULL,
    };
    struct td_pod_patch patch;
    if (td_vpa_condition_holds(vpa->conditions, vpa->condition_count, TD_STR("LowConfidence"))) {
        return;
    }
    if (td_pod_patch(review->arena, &input, &patch, NULL) != TD_OK) {
        webhook_review_undecided(review, "no-patch");
        return;
    }
    if (patch.is_rejected) {
        webhook_review_refuse(review, 403, "Forbidden", patch.message);
        return;
    }
    if (patch.message.len > 0) {
        webhook_review_warn(review, patch.message);
    }
    if (patch.is_pod_level) {
        const struct td_lacking lacking =
            td_stanza_lacking(review->arena, pod, &patch.changes, &patch.stanza);
        td_actuator_log_lacking(options->control.log, pod, &lacking);
    }
    review->patches = patch.patches;
}

/* The VPA of a pod under this controller, or NULL. */
static const struct td_vpa *pod_vpa(struct webhook_review *review, const struct td_pod *pod,
                                    const struct td_controller *top)
{
    struct td_informers *informers = review->webhook->options.control.informers;
    const struct td_vpa *const *vpas;
    size_t count = webhook_index_find(review->webhook->index, review->arena, review->namespace,
                                      top->kind, top->name, &vpas);
    if (count == 0) {
        return NULL;
    }
    struct td_match_index index;
    td_match_index_init(&index, review->arena,
                        review->webhook->options.control.gates.heterogeneous_workloads);
    size_t skipped = 0;
    const struct td_match_vpa *match = NULL;
    int code = td_match_index_add(&index, td_informers_source(informers), vpas, count,
                                  TD_MATCH_ADMISSION, &skipped, NULL);
    if (code == TD_OK) {
        match = td_match_find(&index, top, review->namespace, &pod->meta.labels);
    }
    td_match_index_done(&index);
    if (code == TD_BUSY) {
        webhook_review_wait(
            review, "target-unknown",
            &(struct webhook_question){.kind = WEBHOOK_ASKS_TARGET, .controller = *top});
    } else if (code != TD_OK || (!match && skipped > 0)) {
        webhook_review_undecided(review, "target-unreadable"); /* waiting would not mend it */
    }
    return match && !review->waits ? match->vpa : NULL;
}

static void pod_apply(struct webhook_review *review, const struct td_pod *pod,
                      const struct td_controller *top)
{
    const struct td_webhook_options *options = &review->webhook->options;
    struct td_pod_sizes sizes = {.count = 0};
    if (options->get_sizes &&
        options->get_sizes(options->sizes_context, review->arena, top, pod, &sizes)) {
        pod_apply_sizes(review, pod, &sizes);
        return;
    }
    const struct td_vpa *vpa = pod_vpa(review, pod, top);
    if (vpa) {
        pod_apply_vpa(review, pod, vpa);
    }
}

/* ---- The pod ---- */

/* Of what is needed here, has all been listed once? */
static bool pod_is_known(const struct td_informers *informers)
{
    static const enum td_informer_kind kinds[] = {
        TD_INFORMER_VPAS,         TD_INFORMER_LIMIT_RANGES,  TD_INFORMER_DEPLOYMENTS,
        TD_INFORMER_REPLICA_SETS, TD_INFORMER_STATEFUL_SETS, TD_INFORMER_DAEMON_SETS,
        TD_INFORMER_JOBS,         TD_INFORMER_CRON_JOBS,     TD_INFORMER_REPLICATION_CONTROLLERS,
    };
    for (size_t i = 0; i < TD_COUNT(kinds); i++) {
        const struct td_cache *cache = td_informers_cache(informers, kinds[i]);
        if (cache && !td_cache_is_synced(cache)) {
            return false;
        }
    }
    return true;
}

/* Is a target of the VPAs on that controller still being asked for? */
static bool pod_has_open_target(struct td_webhook *webhook, const struct td_controller *top)
{
    const struct td_control *control = &webhook->options.control;
    td_auto_arena arena = td_arena_capped(TD_WEBHOOK_REVIEW_BYTES_MAX);
    const struct td_vpa *const *vpas;
    size_t count =
        webhook_index_find(webhook->index, &arena, top->namespace, top->kind, top->name, &vpas);
    struct td_match_index index;
    size_t skipped = 0;
    td_match_index_init(&index, &arena, control->gates.heterogeneous_workloads);
    int code = td_match_index_add(&index, td_informers_source(control->informers), vpas, count,
                                  TD_MATCH_ADMISSION, &skipped, NULL);
    td_match_index_done(&index);
    return code == TD_BUSY;
}

bool webhook_question_is_open(struct td_webhook *webhook, const struct webhook_question *question)
{
    const struct td_informers *informers = webhook->options.control.informers;
    struct td_controller top;
    bool is_found;
    if (question->kind == WEBHOOK_ASKS_TARGET) {
        return pod_has_open_target(webhook, &question->controller);
    }
    if (question->kind == WEBHOOK_ASKS_REVIEW) {
        return false;
    }
    if (!pod_is_known(informers)) {
        return true;
    }
    int code = td_controller_top(td_informers_source(webhook->options.control.informers),
                                 &question->controller, &top, &is_found, NULL);
    return code == TD_BUSY || code == TD_NOT_FOUND;
}

void webhook_review_pod(struct webhook_review *review)
{
    struct td_informers *informers = review->webhook->options.control.informers;
    struct td_pod pod;
    struct td_controller owner;
    struct td_controller top;
    bool is_found = false;
    if (review->is_update) {
        return; /* not registered for: resources of a pod that exists are the updater's */
    }
    if (pod_is_probe(review)) {
        review->counted_as = "probe"; /* of no workload */
        review->patches = td_json_new_array(review->arena);
        td_patchops_set_annotation(review->arena, review->patches, TD_STR(WEBHOOK_PROBE_KEY),
                                   TD_STR(WEBHOOK_PROBE_ANSWER));
        return;
    }
    if (td_pod_decode(review->arena, review->object, &pod, NULL) != TD_OK) {
        webhook_review_undecided(review, "unreadable-pod");
        return;
    }
    if (!td_controller_of_pod(&pod.meta, &owner)) {
        return;
    }
    const struct webhook_question question = {.kind = WEBHOOK_ASKS_OWNER, .controller = owner};
    if (!pod_is_known(informers)) {
        webhook_review_wait(review, "not-synced", &question);
        return;
    }
    if (!webhook_index_has(review->webhook->index, review->namespace)) {
        return; /* a namespace without autoscalers: no pod waits for a look at owners */
    }
    int code = td_controller_top(td_informers_source(informers), &owner, &top, &is_found, NULL);
    if (code == TD_BUSY || code == TD_NOT_FOUND) {
        webhook_review_wait(review, "owner-unknown", &question); /* it may be younger than that */
    } else if (code != TD_OK && code != TD_DENIED) {
        webhook_review_undecided(review, "owner-unreadable");
    } else if (code == TD_OK && is_found) {
        pod_apply(review, &pod, &top);
    }
}
