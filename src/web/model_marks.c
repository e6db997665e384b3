/*
 * What happened: told by a local world, or by Events of the cluster. A mark belongs to the row of
 * the object that it is about; of an autoscaler that is the row of its workload.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/limits.h"
#include "base/text.h"
#include "kube/objectkey.h"
#include "model/pod.h"
#include "web/model.h"

#define MARKS_ALIKE 64 /* so far back the same one is looked for */

/* Which reasons are marked, as what, and what they count as. A local cluster tells of each deed
 * itself; in others Events do, some of which are echoes of others and are not counted. */
static const struct mark_reason {
    td_str reason;
    const char *kind; /* of the mark; NULL: none */
    int local;        /* enum td_model_happened, or -1 */
    int other;
    bool is_decision;
} mark_reasons[] = {
    {TD_STR_INIT("OOMKilled"), "oom", TD_HAPPENED_OOM, TD_HAPPENED_OOM, false},
    {TD_STR_INIT("Evicted"), "evict", TD_HAPPENED_EVICTION, TD_HAPPENED_EVICTION, false},
    {TD_STR_INIT("EvictedByVPA"), "evict", -1, TD_HAPPENED_EVICTION, true},
    {TD_STR_INIT("TaintManagerEviction"), "evict", -1, TD_HAPPENED_EVICTION, false},
    {TD_STR_INIT("ResizeCompleted"), "resize", TD_HAPPENED_RESIZE, TD_HAPPENED_RESIZE, false},
    {TD_STR_INIT("InPlaceResizedByVPA"), NULL, -1, -1, true}, /* a ResizeCompleted follows */
    {TD_STR_INIT("VerticalScaled"), "resize", -1, -1, true},
    {TD_STR_INIT("HorizontalScaled"), "scale", -1, -1, true},
    {TD_STR_INIT("SuccessfulRescale"), "scale", -1, -1, true},
    {TD_STR_INIT("EvictionBlocked"), "event", -1, -1, false},
    {TD_STR_INIT("EvictionRequirements"), "event", -1, -1, false},
    {TD_STR_INIT("ResizeInfeasible"), "event", -1, -1, false},
    {TD_STR_INIT("ScaleFailed"), "event", -1, -1, false},
};

static const struct mark_reason *mark_reason_of(td_str reason)
{
    for (size_t i = 0; i < TD_COUNT(mark_reasons); i++) {
        if (td_str_equal(reason, mark_reasons[i].reason)) {
            return &mark_reasons[i];
        }
    }
    return NULL;
}

struct td_model_hour *td_model_hour(struct td_model *model, td_time at)
{
    int64_t number = at / TD_HOUR;
    struct td_model_hour *hour = &model->hours[(uint64_t)number % TD_MODEL_HOURS];
    bool is_past = number <= td_model_now(model) / TD_HOUR - TD_MODEL_HOURS;
    if (is_past || number < hour->hour) {
        return NULL;
    }
    if (hour->hour != number) {
        *hour = (struct td_model_hour){.hour = number};
    }
    return hour;
}

static void mark_free(struct td_model_mark *mark)
{
    td_text_free(mark->row);
    td_text_free(mark->kind);
    td_text_free(mark->text);
}

static void model_mark_add(struct td_model *model, td_str row, const char *kind, td_str text,
                           td_time at)
{
    if (model->marks.count == TD_MODEL_MARKS_MAX) {
        size_t gone = TD_MODEL_MARKS_MAX / 8;
        for (size_t i = 0; i < gone; i++) {
            mark_free(&model->marks.items[i]);
        }
        model->marks.count -= gone;
        memmove(model->marks.items, model->marks.items + gone,
                model->marks.count * sizeof(model->marks.items[0]));
    }
    struct td_model_mark *mark = td_vec_push(&model->marks);
    td_time now = td_model_now(model);
    if (mark) {
        *mark = (struct td_model_mark){
            .row = td_text_copy(row),
            .kind = td_text_copy(td_str_from(kind)),
            .text = td_text_copy(td_str_cut_utf8(text, TD_MODEL_TEXT_MAX)),
            .at = at < now ? at : now, /* another machine's clock */
        };
    }
    model->is_changed = true;
}

/* ---- Accounts ---- */

static void account_free(struct td_model_account *account)
{
    td_text_free(account->row);
    td_text_free(account->text);
}

static bool row_is_explained(const struct td_model *model, td_str row, td_time at)
{
    for (size_t i = model->accounts.count; i > 0; i--) {
        const struct td_model_account *account = &model->accounts.items[i - 1];
        if (account->at >= at && td_str_equal(account->row, row)) {
            return true;
        }
    }
    return false;
}

const struct td_model_row *td_model_unexplained(const struct td_model *model)
{
    size_t count = model->marks.count;
    for (size_t i = count; i > 0 && i + MARKS_ALIKE > count; i--) {
        const struct td_model_mark *mark = &model->marks.items[i - 1];
        if (mark->row.len > 0 && !row_is_explained(model, mark->row, mark->at)) {
            const struct td_model_row *row = td_map_get(&model->rows, mark->row);
            if (row && row->by.len > 0) {
                return row;
            }
        }
    }
    return NULL;
}

static bool row_has_news(const struct td_model *model, const struct td_model_row *row)
{
    size_t count = model->marks.count;
    for (size_t i = count; i > 0 && i + MARKS_ALIKE > count; i--) {
        const struct td_model_mark *mark = &model->marks.items[i - 1];
        if (td_str_equal(mark->row, row->key)) {
            return !row_is_explained(model, row->key, mark->at);
        }
    }
    return false;
}

void td_model_explain(struct td_model *model, const struct td_model_row *row, td_str text)
{
    if (!row_has_news(model, row)) {
        return;
    }
    if (model->accounts.count == TD_MODEL_ACCOUNTS_MAX) {
        account_free(&model->accounts.items[0]);
        model->accounts.count--;
        memmove(model->accounts.items, model->accounts.items + 1,
                model->accounts.count * sizeof(model->accounts.items[0]));
    }
    struct td_model_account *account = td_vec_push(&model->accounts);
    if (account) {
        *account = (struct td_model_account){
            .row = td_text_copy(row->key),
            .text = td_text_copy(td_str_cut_utf8(text, TD_MODEL_ACCOUNT_BYTES_MAX)),
            .at = td_model_now(model),
        };
    }
}

void model_marks_done(struct td_model *model)
{
    for (size_t i = 0; i < model->marks.count; i++) {
        mark_free(&model->marks.items[i]);
    }
    for (size_t i = 0; i < model->accounts.count; i++) {
        account_free(&model->accounts.items[i]);
    }
    td_vec_done(&model->marks);
    td_vec_done(&model->accounts);
}

/* ---- Whose it is ---- */

static struct td_model_row *row_of_workload(const struct td_model *model, td_str ns, td_str kind,
                                            td_str name)
{
    struct td_model_row *row = td_model_find(model, ns, kind, name, TD_STR_EMPTY);
    const struct td_model_scaler *scaler = model_scalers_of(model, ns, kind, name);
    char by[TD_OBJECT_KEY_BYTES_MAX];
    static const char *const words[] = {"hvpa/", "hpa/", "vpa/"};
    for (; !row && scaler; scaler = scaler->next) {
        td_str parts[] = {td_str_from(words[scaler->kind]), scaler->name};
        size_t len = parts[0].len + parts[1].len;
        if (len < sizeof(by)) {
            memcpy(by, parts[0].ptr, parts[0].len);
            memcpy(by + parts[0].len, parts[1].ptr, parts[1].len);
            row = td_model_find(model, ns, kind, name, (td_str){.ptr = by, .len = len});
        }
    }
    return row;
}

static struct td_model_row *row_of(const struct td_model *model,
                                   const struct td_model_happening *what)
{
    static const struct {
        td_str kind;
        enum td_model_scaler_kind scaler;
    } scalers[] = {{TD_STR_INIT("VerticalPodAutoscaler"), TD_MODEL_VPA},
                   {TD_STR_INIT("HorizontalPodAutoscaler"), TD_MODEL_HPA},
                   {TD_STR_INIT("Hvpa"), TD_MODEL_HVPA}};
    if (td_str_equal(what->kind, TD_STR("Pod"))) {
        char buffer[TD_OBJECT_KEY_BYTES_MAX];
        const struct td_model_pod *pod =
            td_map_get(&model->pods, TD_KEY_LINES(buffer, what->ns, what->name));
        return pod ? pod->row : NULL;
    }
    for (size_t i = 0; i < TD_COUNT(scalers); i++) {
        if (td_str_equal(what->kind, scalers[i].kind)) {
            const struct td_model_scaler *scaler =
                model_find_scaler(model, scalers[i].scaler, what->ns, what->name);
            return scaler ? row_of_workload(model, scaler->ns, scaler->target_kind,
                                            scaler->target_name)
                          : NULL;
        }
    }
    return row_of_workload(model, what->ns, what->kind, what->name);
}

struct td_model_row *td_model_row_of(const struct td_model *model, td_str kind, td_str ns,
                                     td_str name)
{
    const struct td_model_happening what = {.kind = kind, .ns = ns, .name = name};
    return row_of(model, &what);
}

/* The same once more, within the last few: a controller that repeats itself. */
static bool mark_is_known(const struct td_model *model, td_str row, td_str text)
{
    size_t count = model->marks.count;
    for (size_t i = count; i > 0 && i + MARKS_ALIKE > count; i--) {
        const struct td_model_mark *mark = &model->marks.items[i - 1];
        if (td_str_equal(mark->row, row) && td_str_equal(mark->text, text)) {
            return true;
        }
    }
    return false;
}

static void tell_scenario(struct td_model *model, const struct td_model_happening *what,
                          struct td_model_row *row, td_str text)
{
    td_auto_buf whole = td_buf_capped(TD_MODEL_TEXT_MAX * 4);
    (void)td_buf_append_format(&whole, "%.*s %.*s", TD_STR_ARG(what->name), TD_STR_ARG(text));
    if (row) {
        model_mark_add(model, row->key, "event", text, what->at);
    }
    model_mark_add(model, TD_MODEL_CLUSTER, "event", td_str_trim(td_buf_str(&whole)), what->at);
}

static void tell_row(struct td_model *model, const struct td_model_happening *what,
                     const struct mark_reason *reason, struct td_model_row *row, td_str text)
{
    bool is_event = reason->kind && strcmp(reason->kind, "event") == 0;
    if (reason->kind && (!is_event || !mark_is_known(model, row->key, text))) {
        model_mark_add(model, row->key, reason->kind, text, what->at);
    }
    if (reason->is_decision && model->events &&
        (row->decided_at == TD_TIME_NONE || row->decided_at <= what->at)) {
        row->decided_at = what->at;
        td_text_set(&row->decision,
                    td_str_cut_utf8(what->decision.len > 0 ? what->decision : what->message,
                                    TD_MODEL_TEXT_MAX));
    }
}

void td_model_tell(struct td_model *model, const struct td_model_happening *what)
{
    const struct mark_reason *reason = mark_reason_of(what->reason);
    if (!reason && !what->is_scenario) {
        return;
    }
    td_auto_buf text = td_buf_capped(TD_MODEL_TEXT_MAX * 4);
    bool is_of_pod = td_str_equal(what->kind, TD_STR("Pod")); /* which of the row's */
    (void)td_buf_append_format(&text, "%.*s%s%.*s%s%.*s", TD_STR_ARG(what->reason),
                               is_of_pod ? " " : "",
                               TD_STR_ARG(is_of_pod ? what->name : TD_STR_EMPTY),
                               what->message.len > 0 ? ": " : "", TD_STR_ARG(what->message));
    td_str words = td_str_cut_utf8(td_buf_str(&text), TD_MODEL_TEXT_MAX);
    struct td_model_row *row = row_of(model, what);
    if (what->is_scenario) {
        tell_scenario(model, what, row, words);
        return;
    }
    int counted = model->events ? reason->other : reason->local;
    struct td_model_hour *hour = counted >= 0 ? td_model_hour(model, what->at) : NULL;
    if (hour) {
        hour->happened[counted]++;
    }
    if (row) {
        tell_row(model, what, reason, row, words);
    }
}
