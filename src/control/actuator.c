/*
 * An API server from 1.36 on says by a cause that the node is too small (PodResizeValidator); older
 * ones leave that to the kubelet and its conditions. The other refusals that only a new pod gets
 * around come without a cause: they are told by their words, all in one table.
 */
#include "control/actuator.h"

#include <string.h>

#include "base/error.h"
#include "base/json/json.h"
#include "base/os/log.h"
#include "kube/client/client.h"
#include "kube/client/verbs.h"

/* ---- Requests ---- */

int td_actuator_evict(struct td_arena *arena, const struct td_pod *pod,
                      struct td_client_request *ret, struct td_error *err)
{
    struct td_delete_options options = TD_DELETE_OPTIONS_INIT;
    options.uid = pod->meta.uid;
    return td_verb_evict(arena, pod->meta.namespace, pod->meta.name, &options, ret, err);
}

void td_actuator_log_lacking(struct td_log *log, const struct td_pod *pod,
                             const struct td_lacking *lacking)
{
    const struct td_meta *meta = &pod->meta;
    td_str name = meta->name.len > 0 ? meta->name : meta->generate_name; /* not created yet */
    for (size_t i = 0; i < lacking->container_count; i++) {
        td_log_line(log, TD_LOG_INFO, "No recommendation found for container, skipping",
                    TD_LOG_S("container", lacking->containers[i]),
                    TD_LOG_S("namespace", meta->namespace), TD_LOG_S("pod", name));
    }
    if (lacking->is_pod) {
        td_log_line(log, TD_LOG_INFO, "No recommendation found for pod, skipping",
                    TD_LOG_S("pod", name), TD_LOG_S("namespace", meta->namespace));
    }
}

int td_actuator_patch(struct td_arena *arena, const struct td_pod *pod, const struct td_json *patch,
                      bool is_resize, const struct td_write_options *options,
                      struct td_client_request *ret, struct td_error *err)
{
    const struct td_api_path path = {
        .version = TD_STR("v1"),
        .namespace = pod->meta.namespace,
        .plural = TD_STR("pods"),
        .name = pod->meta.name,
        .subresource = is_resize ? TD_STR("resize") : TD_STR_EMPTY,
    };
    return td_verb_patch(arena, &path, TD_PATCH_JSON, td_json_line(arena, patch), options, ret,
                         err);
}

/* ---- Answers ---- */

/* Refusals that have no cause of their own, by words of their messages as of Kubernetes 1.34 to
 * 1.36; the version is that of the first server with the check. */
static const struct resize_words {
    int status;
    const char *words;
} resize_words[] = {
    {403, "requires features"},             /* NodeDeclaredFeatures, 1.35: the node lacks them */
    {422, "QOS Class may not change"},      /* validation of resizes, 1.32 */
    {422, "must be less than or equal to"}, /* the same: above a limit that is the pod's own */
    {422, "cannot be resized"},             /* pods with pod-level resources, 1.33 to 1.35 */
    {422, "without support for resize"},    /* the node's kubelet is an old one, 1.33 */
};

enum td_resize_result td_resize_result_of(const struct td_client_reply *reply)
{
    if (reply->code == TD_OK) {
        return TD_RESIZE_RESULT_DONE;
    }
    if (reply->code == TD_NOT_FOUND || reply->code == TD_CONFLICT) {
        return TD_RESIZE_RESULT_GONE;
    }
    if (reply->status == 403 && td_str_equal(reply->reason, TD_STR("NodeCapacity"))) {
        return TD_RESIZE_RESULT_CAPACITY;
    }
    for (size_t i = 0; i < TD_COUNT(resize_words); i++) {
        if (reply->status == resize_words[i].status &&
            strcasestr(reply->err.message, resize_words[i].words)) {
            return TD_RESIZE_RESULT_UNFIT;
        }
    }
    return TD_RESIZE_RESULT_FAILED;
}

/* ---- The webhook's proof ---- */

enum td_proof_state td_webhook_proof_ask(struct td_webhook_proof *proof,
                                         bool (*is_proved)(void *context, td_duration since),
                                         void *context, const struct td_clock *clock,
                                         unsigned waits_max)
{
    if (proof->waits == 0) {
        proof->since = td_clock_machine(clock);
    }
    if (!is_proved || is_proved(context, proof->since)) {
        proof->waits = 0;
        return TD_PROOF_SEEN;
    }
    if (proof->waits++ < waits_max) {
        return TD_PROOF_AWAITED;
    }
    proof->waits = 0;
    return TD_PROOF_MISSING;
}
