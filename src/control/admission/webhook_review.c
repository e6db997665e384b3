/*
 * From an AdmissionReview to its answer, from memory. What cannot be read, what is not ours and
 * what cannot be decided is allowed as it is: a webhook that is in doubt must not stand in the way.
 */
#include "base/base64.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/os/loop.h"
#include "control/admission/webhook_private.h"
#include "kube/patch/patch.h"

#define REVIEW_PROBLEM_BYTES ((size_t)1 << 20) /* of all errors of an object as text */

/* ---- What a judge may say ---- */

static struct td_json *review_status(struct webhook_review *review, int code, const char *reason,
                                     td_str message)
{
    struct td_arena *arena = review->arena;
    struct td_json *status = td_json_new_object(arena);
    td_json_set(arena, status, TD_STR("metadata"), td_json_new_object(arena));
    td_json_set_str(arena, status, TD_STR("status"), TD_STR("Failure"));
    td_json_set_str(arena, status, TD_STR("message"), message);
    td_json_set_str(arena, status, TD_STR("reason"), td_str_from(reason));
    td_json_set_int64(arena, status, TD_STR("code"), code);
    return status;
}

void webhook_review_refuse(struct webhook_review *review, int code, const char *reason,
                           td_str message)
{
    review->is_refused = true;
    review->is_error = true;
    review->patches = NULL;
    review->status = review_status(review, code, reason, message);
}

static struct td_json *review_cause(struct td_arena *arena, const struct td_field_error *error,
                                    td_str line)
{
    struct td_json *cause = td_json_new_object(arena);
    size_t from = error->field.len > 0 ? error->field.len + 2 : 0; /* "spec.x: " */
    td_json_set_str(arena, cause, TD_STR("reason"),
                    td_str_from(td_field_error_reason(error->type)));
    td_json_set_str(arena, cause, TD_STR("message"), td_str_slice(line, from, line.len));
    td_json_set_str(arena, cause, TD_STR("field"), error->field);
    return cause;
}

void webhook_review_refuse_fields(struct webhook_review *review,
                                  const struct td_field_errors *errors)
{
    struct td_arena *arena = review->arena;
    struct td_json *causes = td_json_new_array(arena);
    td_auto_buf list =
        td_buf_capped(REVIEW_PROBLEM_BYTES); /* past it the message is cut: it is only shown */
    td_auto_buf line = td_buf_capped(REVIEW_PROBLEM_BYTES);
    for (size_t i = 0; i < errors->count; i++) {
        td_buf_reset(&line);
        td_field_error_write(&errors->items[i], &line);
        td_str text = td_arena_copy_str(arena, td_buf_str(&line));
        td_json_append(causes, review_cause(arena, &errors->items[i], text));
        (void)td_buf_append(&list, i > 0 ? TD_STR(", ") : TD_STR(""));
        (void)td_buf_append(&list, text);
    }
    bool is_one = errors->count == 1;
    td_str message =
        td_arena_format(arena, "%.*s%s%.*s \"%.*s\" is invalid: %s%.*s%s", TD_STR_ARG(review->kind),
                        review->kind_group.len > 0 ? "." : "", TD_STR_ARG(review->kind_group),
                        TD_STR_ARG(review->name), is_one ? "" : "[", TD_STR_ARG(td_buf_str(&list)),
                        is_one ? "" : "]");
    webhook_review_refuse(review, 422, "Invalid", message);
    struct td_json *details = td_json_ensure_object(arena, review->status, TD_STR("details"));
    td_json_set_str(arena, details, TD_STR("name"), review->name);
    td_json_set_str(arena, details, TD_STR("group"), review->kind_group);
    td_json_set_str(arena, details, TD_STR("kind"), review->kind);
    td_json_set(arena, details, TD_STR("causes"), causes);
}

void webhook_review_warn(struct webhook_review *review, td_str text)
{
    if (!review->warnings) {
        review->warnings = td_json_new_array(review->arena);
    }
    td_json_append(review->warnings, td_json_new_string(review->arena, text));
}

void webhook_review_undecided(struct webhook_review *review, const char *reason)
{
    review->is_error = true;
    review->patches = NULL;
    webhook_metrics_undecided(review->webhook, reason);
}

void webhook_review_wait(struct webhook_review *review, const char *reason,
                         const struct webhook_question *question)
{
    if (review->attempt->is_last) {
        webhook_review_undecided(review, reason);
        return;
    }
    review->waits = true;
    if (review->attempt->question) {
        *review->attempt->question = *question;
    }
}

/* ---- The request ---- */

/* False when there is nothing to judge: no review, or one about what is not ours. */
static bool review_read(struct webhook_review *review, td_str body)
{
    struct td_json *tree;
    const struct td_json_options options = {.bytes_max = TD_WEBHOOK_BODY_BYTES_MAX};
    struct td_error err = TD_ERROR_INIT;
    int code = td_json_parse(review->arena, body, &options, &tree, &err);
    if (code == TD_OK) {
        code = td_json_check_size(tree, TD_WEBHOOK_VALUES_MAX, TD_BODY_ITEMS_MAX, &err);
    }
    if (code == TD_LIMIT) {
        review->is_too_large = true;
        webhook_review_undecided(review, "review-too-large");
        return false;
    }
    if (code != TD_OK || !td_json_is(td_json_get(tree, TD_STR("request")), TD_JSON_TYPE_OBJECT)) {
        webhook_review_undecided(review, "unreadable-review");
        return false;
    }
    const struct td_json *request = td_json_get(tree, TD_STR("request"));
    const struct td_json *resource = td_json_get(request, TD_STR("resource"));
    const struct td_json *kind = td_json_get(request, TD_STR("requestKind"));
    kind = td_json_is(kind, TD_JSON_TYPE_OBJECT) ? kind : td_json_get(request, TD_STR("kind"));
    td_str operation = td_json_text(request, "operation");
    review->uid = td_json_text(request, "uid");
    review->group = td_json_text(resource, "group");
    review->resource = td_json_text(resource, "resource");
    review->kind = td_json_text(kind, "kind");
    review->kind_group = td_json_text(kind, "group");
    review->namespace = td_json_text(request, "namespace");
    review->name = td_json_text(request, "name");
    review->is_update = td_str_equal(operation, TD_STR("UPDATE"));
    review->is_dry_run = td_json_get_bool(request, TD_STR("dryRun"), false);
    review->object = td_json_get(request, TD_STR("object"));
    const struct td_json *old = td_json_get(request, TD_STR("oldObject"));
    review->old = td_json_is(old, TD_JSON_TYPE_OBJECT) ? old : NULL;
    return (review->is_update || td_str_equal(operation, TD_STR("CREATE"))) &&
           td_json_text(request, "subResource").len == 0 &&
           td_json_is(review->object, TD_JSON_TYPE_OBJECT);
}

/* An object that is on its way out is let go, whatever is wrong with it. */
static bool review_is_leaving(const struct webhook_review *review)
{
    return td_json_is(td_json_get_path(review->object, "metadata.deletionTimestamp"),
                      TD_JSON_TYPE_STRING);
}

static void review_judge(struct webhook_review *review)
{
    static const struct {
        const char *group;
        const char *resource;
        const char *counted_as;
        void (*judge)(struct webhook_review *review);
    } rows[] = {
        {"", "pods", "Pod", webhook_review_pod},
        {"autoscaling.k8s.io", "verticalpodautoscalers", "VPA", webhook_review_vpa},
        {"autoscaling.tandem.dev", "horizontalpodautoscalers", "HPA", webhook_review_hpa},
        {"autoscaling.k8s.io", "hvpas", "Hvpa", webhook_review_hvpa},
    };
    for (size_t i = 0; i < TD_COUNT(rows); i++) {
        if (!td_str_equal(review->group, td_str_from(rows[i].group)) ||
            !td_str_equal(review->resource, td_str_from(rows[i].resource))) {
            continue;
        }
        review->counted_as = rows[i].counted_as;
        /* The object may not say yet where it is going. */
        struct td_json *metadata =
            td_json_ensure_object(review->arena, review->object, TD_STR("metadata"));
        td_json_set_text(review->arena, metadata, TD_STR("namespace"), review->namespace);
        if (review->name.len == 0) {
            review->name = td_json_text(metadata, "name");
        }
        if (!review_is_leaving(review)) {
            rows[i].judge(review);
        }
        return;
    }
}

/* ---- The answer ---- */

/* A patch that does not fit is an error of the API server whatever the failurePolicy: none is sent
 * then, and the object is judged by others as it is. */
static void review_check_patch(struct webhook_review *review)
{
    struct td_json *patched;
    if (review->patches && review->patches->count > 0 &&
        td_patch_json(review->arena, review->object, review->patches, &patched, NULL) != TD_OK) {
        webhook_review_undecided(review, "patch-does-not-fit");
    }
}

static void review_add_patch(struct webhook_review *review, struct td_json *response)
{
    td_auto_buf patch = td_buf_capped(TD_WEBHOOK_ANSWER_BYTES_MAX);
    td_auto_buf encoded = td_buf_capped(TD_WEBHOOK_ANSWER_BYTES_MAX);
    td_json_write(review->patches, &(struct td_json_format){.indent = 0}, &patch);
    td_base64_write(td_buf_str(&patch), TD_BASE64_STANDARD, &encoded);
    if (td_buf_check(&patch, "the patch", NULL) != TD_OK ||
        td_buf_check(&encoded, "the patch", NULL) != TD_OK) {
        webhook_review_undecided(review, "patch-too-large");
        return;
    }
    td_json_set_str(review->arena, response, TD_STR("patch"),
                    td_arena_copy_str(review->arena, td_buf_str(&encoded)));
    td_json_set_str(review->arena, response, TD_STR("patchType"), TD_STR("JSONPatch"));
}

static void review_write(struct webhook_review *review, struct td_buf *answer)
{
    struct td_arena *arena = review->arena;
    struct td_json *tree = td_json_new_object(arena);
    td_json_set_str(arena, tree, TD_STR("kind"), TD_STR("AdmissionReview"));
    td_json_set_str(arena, tree, TD_STR("apiVersion"), TD_STR("admission.k8s.io/v1"));
    struct td_json *response = td_json_ensure_object(arena, tree, TD_STR("response"));
    td_json_set_str(arena, response, TD_STR("uid"), review->uid);
    td_json_set_bool(arena, response, TD_STR("allowed"), !review->is_refused);
    if (review->status) {
        td_json_set(arena, response, TD_STR("status"), review->status);
    }
    if (review->patches && review->patches->count > 0) {
        review_add_patch(review, response);
    }
    if (review->warnings && review->warnings->count > 0) {
        td_json_set(arena, response, TD_STR("warnings"), review->warnings);
    }
    td_json_write(tree, &(struct td_json_format){.indent = 0}, answer);
}

static void review_count(struct webhook_review *review, td_duration began)
{
    struct td_webhook *webhook = review->webhook;
    bool is_applied = review->patches && review->patches->count > 0;
    const td_str values[] = {
        review->is_error ? TD_STR("error")
        : is_applied     ? TD_STR("applied")
                         : TD_STR("skipped"),
        review->counted_as ? td_str_from(review->counted_as) : TD_STR("unknown"),
    };
    td_duration now = td_clock_machine(td_loop_clock(webhook->options.control.loop));
    td_metric_observe(td_metric_series(webhook->metrics.latency, values),
                      (double)(now - began) / (double)TD_SECOND);
    if (td_str_equal(values[1], TD_STR("Pod"))) {
        td_metric_add(webhook->metrics.pods[is_applied], 1);
    }
}

int webhook_review_try(struct td_webhook *webhook, td_str body,
                       const struct webhook_attempt *attempt, struct td_buf *answer)
{
    td_duration began = td_clock_machine(td_loop_clock(webhook->options.control.loop));
    struct webhook_review review = {
        .webhook = webhook, .arena = &webhook->turn, .attempt = attempt};
    td_arena_reset(&webhook->turn);
    if (review_read(&review, body)) {
        td_duration read = webhook_metrics_step(webhook, "read_request", began);
        review_judge(&review);
        if (review.waits) {
            return TD_BUSY;
        }
        review_check_patch(&review);
        (void)webhook_metrics_step(webhook, "admit", read);
    }
    if (review.is_too_large) {
        review_count(&review, began);
        td_arena_reset(&webhook->turn);
        return TD_LIMIT;
    }
    td_duration judged = td_clock_machine(td_loop_clock(webhook->options.control.loop));
    review_write(&review, answer);
    (void)webhook_metrics_step(webhook, "build_response", judged);
    (void)webhook_metrics_step(webhook, "total", began);
    review_count(&review, began);
    td_arena_reset(&webhook->turn);
    return TD_OK;
}

void td_webhook_review(struct td_webhook *webhook, td_str body, struct td_buf *answer)
{
    const struct webhook_attempt attempt = {.is_last = true};
    /* The last try always answers, but for a review that is too large for one. */
    (void)webhook_review_try(webhook, body, &attempt, answer);
}
