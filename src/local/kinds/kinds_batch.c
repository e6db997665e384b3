/* Jobs and the CronJobs that make them. */
#include "api/pod/pod_validate.h"
#include "local/jobs/cron_text.h"
#include "local/kinds/kinds_private.h"

#define CRON_JOB_NAME_BYTES_MAX 52 /* a job's name has eleven more, for its time */
#define LABEL_UID "batch.kubernetes.io/controller-uid"

static void set_missing(struct td_arena *arena, struct td_json *labels, td_str key, td_str value)
{
    if (!td_json_get(labels, key)) {
        td_json_set_str(arena, labels, key, value);
    }
}

/* A job finds its pods by its own uid, unless the user insists on a selector. */
static void job_prepare(struct td_kind_write *write)
{
    struct td_json *spec = td_kind_spec(write->object);
    if (write->operation != TD_WRITE_CREATE ||
        td_json_get_bool(spec, TD_STR("manualSelector"), false)) {
        return;
    }
    struct td_arena *arena = write->arena;
    struct td_json *metadata = td_kind_metadata(write->object);
    td_str name = td_json_text(metadata, "name");
    td_str uid = td_json_text(metadata, "uid");
    struct td_json *template = td_json_ensure_object(arena, spec, TD_STR("template"));
    struct td_json *template_meta = td_json_ensure_object(arena, template, TD_STR("metadata"));
    struct td_json *labels = td_json_ensure_object(arena, template_meta, TD_STR("labels"));
    bool has_own_labels = !td_kind_same(td_kind_member(metadata, TD_STR("labels")), labels);
    set_missing(arena, labels, TD_STR("job-name"), name);
    set_missing(arena, labels, TD_STR("batch.kubernetes.io/job-name"), name);
    set_missing(arena, labels, TD_STR("controller-uid"), uid);
    set_missing(arena, labels, TD_STR(LABEL_UID), uid);
    struct td_json *selector = td_json_ensure_object(arena, spec, TD_STR("selector"));
    struct td_json *match = td_json_ensure_object(arena, selector, TD_STR("matchLabels"));
    set_missing(arena, match, TD_STR(LABEL_UID), uid);
    if (!has_own_labels) { /* then they are those of its pods */
        td_json_set_copy(arena, metadata, TD_STR("labels"), labels);
    }
}

static bool is_indexed(const struct td_json *spec)
{
    return td_str_equal(td_json_text(spec, "completionMode"), TD_STR("Indexed"));
}

static void check_index_fields(struct td_field_errors *errors, const struct td_field_path *path,
                               const struct td_json *spec)
{
    static const td_str members[] = {TD_STR_INIT("backoffLimitPerIndex"),
                                     TD_STR_INIT("maxFailedIndexes")};
    for (size_t i = 0; i < 2; i++) {
        if (!is_indexed(spec) && td_kind_member(spec, members[i])) {
            td_field_invalid_int(errors, TD_FIELD_AT(path, members[i]),
                                 td_json_get_int64(spec, members[i], 0),
                                 "requires indexed completion mode");
        }
    }
    if (is_indexed(spec) && !td_kind_member(spec, TD_STR("completions"))) {
        td_field_required(errors, TD_FIELD(path, "completions"), "when completion mode is Indexed");
    }
    if (td_kind_member(spec, members[1]) && !td_kind_member(spec, members[0])) {
        td_field_required(errors, TD_FIELD_AT(path, members[0]),
                          "when maxFailedIndexes is specified");
    }
}

static void check_restart(struct td_field_errors *errors, const struct td_field_path *path,
                          const struct td_json *spec)
{
    static const td_str policies[] = {TD_STR_INIT("OnFailure"), TD_STR_INIT("Never")};
    struct td_field_path place =
        td_field_child(TD_FIELD(TD_FIELD(path, "template"), "spec"), TD_STR("restartPolicy"));
    td_str policy = td_json_text(td_json_get_path(spec, "template.spec"), "restartPolicy");
    bool is_never = td_str_equal(policy, policies[1]);
    if (policy.len == 0 || td_str_equal(policy, TD_STR("Always"))) {
        td_field_required(errors, &place, "valid values: \"OnFailure\", \"Never\"");
    } else if (!is_never && !td_str_equal(policy, policies[0])) {
        td_field_unsupported(errors, &place, policy, policies, 2);
    } else if (!is_never && td_kind_member(spec, TD_STR("podFailurePolicy"))) {
        td_field_invalid_str(errors, &place, policy,
                             "only \"Never\" is supported when podFailurePolicy is specified");
    }
}

static void check_job_spec(struct td_field_errors *errors, const struct td_field_path *path,
                           const struct td_json *spec)
{
    static const td_str counts[] = {
        TD_STR_INIT("parallelism"),
        TD_STR_INIT("completions"),
        TD_STR_INIT("activeDeadlineSeconds"),
        TD_STR_INIT("backoffLimit"),
        TD_STR_INIT("ttlSecondsAfterFinished"),
        TD_STR_INIT("backoffLimitPerIndex"),
        TD_STR_INIT("maxFailedIndexes"),
    };
    static const td_str modes[] = {TD_STR_INIT("NonIndexed"), TD_STR_INIT("Indexed")};
    static const td_str replacements[] = {TD_STR_INIT("Failed"),
                                          TD_STR_INIT("TerminatingOrFailed")};
    for (size_t i = 0; i < TD_COUNT(counts); i++) {
        td_kind_check_not_negative(errors, path, spec, counts[i]);
    }
    if (td_kind_member(spec, TD_STR("completionMode"))) {
        td_kind_check_one_of(errors, path, spec, TD_STR("completionMode"), modes, 2);
    }
    check_index_fields(errors, path, spec);
    if (td_kind_member(spec, TD_STR("podReplacementPolicy"))) {
        bool has_failure_policy = td_kind_member(spec, TD_STR("podFailurePolicy")) != NULL;
        td_kind_check_one_of(errors, path, spec, TD_STR("podReplacementPolicy"), replacements,
                             has_failure_policy ? 1 : 2);
    }
    td_pod_check_template(errors, TD_FIELD(path, "template"),
                          td_kind_member(spec, TD_STR("template")));
    check_restart(errors, path, spec);
}

static void check_job_selector(struct td_field_errors *errors, const struct td_field_path *path,
                               const struct td_json *spec)
{
    const struct td_json *selector = td_kind_member(spec, TD_STR("selector"));
    const struct td_json *labels = td_json_get_path(spec, "template.metadata.labels");
    struct td_field_path selector_path = td_field_child(path, TD_STR("selector"));
    if (!selector) {
        td_field_required(errors, &selector_path, "");
        return;
    }
    td_kind_check_selector(errors, &selector_path, selector);
    if (!td_kind_selects(errors->arena, selector, labels)) {
        struct td_field_path template = td_field_child(path, TD_STR("template"));
        td_kind_invalid_tree(errors, TD_FIELD(TD_FIELD(&template, "metadata"), "labels"), labels,
                             "`selector` does not match template `labels`");
    }
}

/* While a job is suspended, those who start it may still say where its pods go. */
static const struct td_json *comparable_template(const struct td_kind_write *write,
                                                 const struct td_json *spec,
                                                 const struct td_json *from)
{
    static const td_str members[] = {TD_STR_INIT("nodeSelector"), TD_STR_INIT("tolerations"),
                                     TD_STR_INIT("affinity"), TD_STR_INIT("schedulingGates")};
    const struct td_json *template = td_kind_member(spec, TD_STR("template"));
    if (!td_json_get_bool(td_kind_spec(write->old), TD_STR("suspend"), false) || !template) {
        return template;
    }
    struct td_json *copy = td_json_copy(write->arena, template, false);
    const struct td_json *other = td_kind_member(from, TD_STR("template"));
    for (size_t i = 0; i < TD_COUNT(members); i++) {
        td_kind_take(write->arena, td_kind_spec(copy), td_kind_spec(other), members[i]);
    }
    td_kind_take(write->arena, copy, other, TD_STR("metadata"));
    return copy;
}

static void check_job_kept(const struct td_kind_write *write, struct td_field_errors *errors,
                           const struct td_field_path *path)
{
    static const td_str fixed[] = {
        TD_STR_INIT("completions"),          TD_STR_INIT("selector"),
        TD_STR_INIT("completionMode"),       TD_STR_INIT("podFailurePolicy"),
        TD_STR_INIT("backoffLimitPerIndex"), TD_STR_INIT("managedBy"),
        TD_STR_INIT("successPolicy")};
    const struct td_json *spec = td_kind_spec(write->object);
    const struct td_json *old = td_kind_spec(write->old);
    for (size_t i = 0; i < TD_COUNT(fixed); i++) {
        struct td_field_path place = td_field_child(path, fixed[i]);
        if (i == 0 && is_indexed(spec)) {
            bool is_along =
                td_kind_same(td_json_get(spec, fixed[0]), td_json_get(spec, TD_STR("parallelism")));
            if (!is_along && !td_kind_same_member(spec, old, fixed[0])) {
                td_field_invalid_int(errors, &place, td_json_get_int64(spec, fixed[0], 0),
                                     "can only be modified in tandem with spec.parallelism");
            }
            continue;
        }
        td_kind_check_immutable(errors, &place, td_json_get(spec, fixed[i]),
                                td_json_get(old, fixed[i]));
    }
    td_kind_check_immutable(errors, TD_FIELD(path, "template"),
                            td_kind_member(spec, TD_STR("template")),
                            comparable_template(write, old, spec));
}

static void job_validate(const struct td_kind_write *write, struct td_field_errors *errors)
{
    if (write->operation == TD_WRITE_STATUS) {
        return;
    }
    const struct td_json *spec = td_kind_spec(write->object);
    struct td_field_path path = td_field_child(NULL, TD_STR("spec"));
    check_job_spec(errors, &path, spec);
    check_job_selector(errors, &path, spec);
    if (write->old) {
        check_job_kept(write, errors, &path);
    }
}

static void check_schedule(struct td_field_errors *errors, const struct td_field_path *path,
                           const struct td_json *spec, const struct td_json *old)
{
    td_str schedule = td_json_text(spec, "schedule");
    struct td_field_path place = td_field_child(path, TD_STR("schedule"));
    if (schedule.len == 0) {
        td_field_required(errors, &place, "");
        return;
    }
    td_str problem = td_cron_problem(errors->arena, schedule);
    if (problem.len > 0) {
        td_kind_invalid_text(errors, &place, schedule, "%.*s", TD_STR_ARG(problem));
    }
    bool has_zone = td_cron_has_zone(schedule);
    bool was_allowed = td_cron_has_zone(td_json_text(old, "schedule"));
    if (has_zone && !was_allowed) {
        td_field_invalid_str(errors, &place, schedule,
                             "cannot use TZ or CRON_TZ in schedule, use timeZone field instead");
    } else if (has_zone && td_kind_member(spec, TD_STR("timeZone"))) {
        td_field_invalid_str(errors, &place, schedule,
                             "cannot use both timeZone field and TZ or CRON_TZ in schedule");
    }
}

static void cron_job_validate(const struct td_kind_write *write, struct td_field_errors *errors)
{
    static const td_str policies[] = {TD_STR_INIT("Allow"), TD_STR_INIT("Forbid"),
                                      TD_STR_INIT("Replace")};
    if (write->operation == TD_WRITE_STATUS) {
        return;
    }
    const struct td_json *spec = td_kind_spec(write->object);
    struct td_field_path path = td_field_child(NULL, TD_STR("spec"));
    check_schedule(errors, &path, spec, td_kind_spec(write->old));
    td_kind_check_not_negative(errors, &path, spec, TD_STR("startingDeadlineSeconds"));
    td_kind_check_one_of(errors, &path, spec, TD_STR("concurrencyPolicy"), policies, 3);
    const struct td_json *job = td_json_get_path(spec, "jobTemplate.spec");
    struct td_field_path job_path = td_field_child(TD_FIELD(&path, "jobTemplate"), TD_STR("spec"));
    check_job_spec(errors, &job_path, job);
    if (td_kind_member(job, TD_STR("selector"))) {
        td_kind_invalid_tree(errors, TD_FIELD(&job_path, "selector"),
                             td_kind_member(job, TD_STR("selector")),
                             "`selector` will be auto-generated");
    }
    td_kind_check_not_negative(errors, &path, spec, TD_STR("successfulJobsHistoryLimit"));
    td_kind_check_not_negative(errors, &path, spec, TD_STR("failedJobsHistoryLimit"));
    td_str name = td_json_text(td_kind_metadata(write->object), "name");
    if (!write->old && name.len > CRON_JOB_NAME_BYTES_MAX) {
        td_field_invalid_str(errors, TD_FIELD(TD_FIELD(NULL, "metadata"), "name"), name,
                             "must be no more than 52 characters");
    }
}

static const struct td_kind_field_rule job_fields[] = {
    {TD_STR_INIT("status.successful"), "status.succeeded", TD_STR_INIT("0")},
};

const struct td_kind_rules td_kind_batch_rules[] = {
    {TD_KIND("batch", "Job", job_validate), TD_KIND_FIELDS(job_fields), .prepare = job_prepare},
    {TD_KIND("batch", "CronJob", cron_job_validate)},
    TD_KIND_END,
};
