/*
 * Since when a resize is on its way is not kept here: it is the last transition of the condition
 * Progressing in the status of the reconcile before.
 */
#include "decide/tandem/progress.h"

#include "decide/tandem/coupling.h"
#include "decide/tandem/gates.h"
#include "decide/tandem/requests.h"

#define GIVE_UP (15 * TD_MINUTE) /* of a resize that does not come to its end */
#define RETRY TD_HOUR            /* of one that was given up */

/* ---- One pod ---- */

bool td_tandem_pod_is_sized(const struct td_hvpa *hvpa, bool is_selective, const struct td_pod *pod)
{
    return !is_selective || !hvpa->has_vpa || !hvpa->vpa.has_selector ||
           td_selector_matches(&hvpa->vpa.pod_selector, &pod->meta.labels);
}

static bool list_is(const struct td_hvpa_requests *decided, td_str container,
                    const struct td_resource_list *list, bool *ret_is_smaller)
{
    bool is_same = true;
    for (int r = 0; r < TD_HVPA_RESOURCE_COUNT; r++) {
        enum td_hvpa_resource resource = (enum td_hvpa_resource)r;
        const struct td_quantity *wanted = td_tandem_request_of(decided, container, resource);
        if (!wanted) {
            continue;
        }
        int64_t has = td_tandem_amount_of(
            resource, td_resource_list_get(list, td_hvpa_resource_name(resource)));
        int64_t wants = td_tandem_amount_of(resource, wanted);
        is_same = is_same && has == wants;
        *ret_is_smaller = *ret_is_smaller || has < wants;
    }
    return is_same;
}

bool td_tandem_pod_is_as_decided(const struct td_hvpa_requests *requests,
                                 const struct td_hvpa_requests *limits, const struct td_pod *pod,
                                 bool *ret_is_smaller)
{
    bool is_same = true;
    bool is_ignored = false;
    for (size_t i = 0; i < pod->container_count; i++) {
        const struct td_pod_container *c = &pod->containers[i];
        is_same = list_is(requests, c->name, td_vertical_requests(c), ret_is_smaller) && is_same;
        is_same = list_is(requests, c->name, &c->spec_requests, ret_is_smaller) && is_same;
        is_same = list_is(limits, c->name, &c->spec_limits, &is_ignored) && is_same;
    }
    return is_same && !pod->resize_pending.is_present && !pod->resize_in_progress.is_present;
}

/* ---- All pods ---- */

static bool is_wanted(const struct td_hvpa *hvpa)
{
    bool is_off = hvpa->vertical_up.update == TD_HVPA_UPDATE_OFF &&
                  hvpa->vertical_down.update == TD_HVPA_UPDATE_OFF;
    return hvpa->has_vpa && !hvpa->paused && !is_off;
}

static td_time since_of(const struct td_tandem_progress_input *input)
{
    const struct td_hvpa_status *before = &input->hvpa->status;
    const struct td_vpa_condition *c =
        td_vpa_condition_find(before->conditions, before->condition_count, TD_STR("Progressing"));
    return c && td_str_equal(c->status, TD_STR("True")) ? td_time_from_instant(c->last_transition)
                                                        : input->now;
}

/* What cannot be had is remembered. */
static void give_up(const struct td_tandem_progress_input *input, bool has_any,
                    struct td_tandem_progress *progress)
{
    struct td_instant now = td_time_to_instant(input->now);
    now.nanos = 0;
    *progress = (struct td_tandem_progress){
        .is_given_up = true,
        .is_dropped = !has_any,
        .infeasible = {.is_set = true, .time = now, .requests = *input->decided},
    };
}

struct td_tandem_progress td_tandem_progress_of(const struct td_tandem_progress_input *input)
{
    struct td_tandem_progress progress = {.infeasible = input->hvpa->status.infeasible};
    struct td_hvpa_infeasible *failed = &progress.infeasible;
    bool has_any = false;
    if (failed->is_set &&
        td_tandem_has_passed(failed->time, td_time_to_instant(input->now), RETRY / TD_SECOND)) {
        failed->is_set = false;
    }
    bool was_given_up =
        failed->is_set && td_tandem_requests_equal(&failed->requests, input->decided);
    for (size_t i = 0; i < input->pod_count && is_wanted(input->hvpa) && !was_given_up; i++) {
        const struct td_pod *pod = &input->pods[i];
        bool is_smaller = false;
        bool is_ready = pod->ready == TD_CONDITION_TRUE;
        if (!td_tandem_pod_is_sized(input->hvpa, input->is_selective, pod)) {
            continue;
        }
        bool is_as_decided =
            td_tandem_pod_is_as_decided(input->decided, input->limits, pod, &is_smaller);
        progress.is_growing = progress.is_growing || (is_smaller && is_ready);
        progress.is_progressing = progress.is_progressing || !is_as_decided;
        has_any = has_any || (is_as_decided && is_ready);
    }
    if (progress.is_progressing && input->now - since_of(input) >= GIVE_UP) {
        give_up(input, has_any, &progress);
    }
    return progress;
}

/* ---- What follows from it ---- */

static bool is_infeasible(const struct td_hvpa_infeasible *failed, const struct td_tandem_input *in)
{
    for (size_t i = 0; i < in->row_count && failed->is_set; i++) {
        const struct td_tandem_row *row = &in->rows[i];
        const struct td_quantity *was =
            td_tandem_request_of(&failed->requests, row->container, row->resource);
        if (was && td_tandem_wish_of(in, row).target < td_tandem_amount_of(row->resource, was)) {
            return false;
        }
    }
    return failed->is_set;
}

enum td_tandem_resize td_tandem_resize_of(const struct td_tandem_progress *progress,
                                          const struct td_tandem_input *in)
{
    return progress->is_progressing                   ? TD_TANDEM_RESIZE_IN_PROGRESS
           : is_infeasible(&progress->infeasible, in) ? TD_TANDEM_RESIZE_INFEASIBLE
                                                      : TD_TANDEM_RESIZE_NONE;
}

bool td_tandem_holds_scale(const struct td_tandem_progress *progress,
                           const struct td_tandem_input *in,
                           const struct td_tandem_decision *decision, bool is_unready)
{
    bool is_recent = in->last_vertical.is_set &&
                     !td_tandem_has_passed(in->last_vertical.at, in->now, GIVE_UP / TD_SECOND);
    bool is_waiting =
        (progress->is_progressing && progress->is_growing) || (is_recent && is_unready);
    return decision->replicas < in->replicas && is_waiting;
}
