/*
 * What all explanations share: kinds as they are typed, sentences under labels in text and tree at
 * once, conditions with their next step; the explanation of an HPA; and the driver, which asks
 * again while an owner or a scale is being asked for. Pods, VPAs and Hvpas have files of their
 * own.
 */
#include "control/inspect/explain.h"

#include <stdio.h>

#include "api/gates.h"
#include "base/alloc.h"
#include "base/limits.h"
#include "base/os/loop.h"
#include "control/inspect/conditions.h"
#include "control/inspect/explain_private.h"
#include "decide/horizontal/account.h"
#include "decide/vertical/estimator/track.h"
#include "decide/vertical/resourcelist.h"

#define EXPLAIN_LABEL_WIDTH 12
#define EXPLAIN_PAUSE (50 * TD_MILLISECOND)
#define EXPLAIN_TRIES_MAX 100
#define EXPLAIN_PODS_MAX 10 /* names in one line */

/* ---- Kinds, as they are typed ---- */

static const struct explain_word {
    const char *word; /* singular */
    const char *shorter;
    enum td_explain_kind kind;
    const char *workload;
} explain_words[] = {
    {"verticalpodautoscaler", "vpa", TD_EXPLAIN_VPA, ""},
    {"horizontalpodautoscaler", "hpa", TD_EXPLAIN_HPA, ""},
    {"hvpa", "hvpa", TD_EXPLAIN_HVPA, ""},
    {"pod", "po", TD_EXPLAIN_POD, ""},
    {"deployment", "deploy", TD_EXPLAIN_WORKLOAD, "Deployment"},
    {"statefulset", "sts", TD_EXPLAIN_WORKLOAD, "StatefulSet"},
    {"daemonset", "ds", TD_EXPLAIN_WORKLOAD, "DaemonSet"},
    {"replicaset", "rs", TD_EXPLAIN_WORKLOAD, "ReplicaSet"},
    {"job", "job", TD_EXPLAIN_WORKLOAD, "Job"},
    {"cronjob", "cj", TD_EXPLAIN_WORKLOAD, "CronJob"},
    {"replicationcontroller", "rc", TD_EXPLAIN_WORKLOAD, "ReplicationController"},
};

/* Lower-case, without a group behind a dot. */
static td_str explain_plain(td_str word, char out[64])
{
    size_t len = td_str_find(word, '.', 0);
    len = len < 63 ? len : 63;
    for (size_t i = 0; i < len; i++) {
        char c = word.ptr[i];
        out[i] = (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    }
    return (td_str){.ptr = out, .len = len};
}

const char *td_explain_kind_at(size_t index)
{
    if (index >= TD_COUNT(explain_words)) {
        return NULL;
    }
    const struct explain_word *row = &explain_words[index];
    return row->kind == TD_EXPLAIN_WORKLOAD || row->kind == TD_EXPLAIN_POD ? row->word
                                                                           : row->shorter;
}

int td_explain_parse_kind(td_str word, struct td_explain_subject *ret, struct td_error *err)
{
    char lower[64];
    td_str plain = explain_plain(word, lower);
    td_str singular =
        td_str_ends_with(plain, TD_STR("s")) ? td_str_slice(plain, 0, plain.len - 1) : plain;
    for (size_t i = 0; i < TD_COUNT(explain_words); i++) {
        td_str full = td_str_from(explain_words[i].word);
        td_str shorter = td_str_from(explain_words[i].shorter);
        if (td_str_equal(plain, full) || td_str_equal(singular, full) ||
            td_str_equal(plain, shorter) || td_str_equal(singular, shorter)) {
            ret->kind = explain_words[i].kind;
            ret->workload = td_str_from(explain_words[i].workload);
            return TD_OK;
        }
    }
    const char *meant =
        td_str_suggest(plain, explain_words, TD_COUNT(explain_words), sizeof(explain_words[0]));
    meant = meant ? meant
                  : td_str_suggest(plain, &explain_words[0].shorter, TD_COUNT(explain_words),
                                   sizeof(explain_words[0]));
    if (meant) {
        return td_error_set(err, TD_INVALID, "'%.*s': unknown kind; did you mean %s?",
                            TD_STR_ARG(word), meant);
    }
    return td_error_set(err, TD_INVALID,
                        "'%.*s': must be one of vpa, hpa, hvpa, pod, deployment, statefulset, "
                        "daemonset, replicaset, job, cronjob, replicationcontroller",
                        TD_STR_ARG(word));
}

void td_explain_needs(const struct td_explain_subject *subject, bool needs[TD_INFORMER_COUNT])
{
    for (size_t kind = 0; kind < TD_INFORMER_COUNT; kind++) {
        needs[kind] = (kind == TD_INFORMER_VPAS && subject->kind == TD_EXPLAIN_VPA) ||
                      (kind == TD_INFORMER_HPAS && subject->kind == TD_EXPLAIN_HPA) ||
                      (kind == TD_INFORMER_HVPAS && subject->kind == TD_EXPLAIN_HVPA);
    }
}

/* ---- Saying ---- */

void explain_title(struct td_explain *explain, td_str kind, td_str api_version, td_str more)
{
    struct td_arena *arena = &explain->arena;
    const struct td_explain_subject *subject = &explain->subject;
    (void)td_buf_append_format(&explain->text, "%.*s (%.*s %.*s/%.*s%s%.*s)\n\n",
                               TD_STR_ARG(subject->name), TD_STR_ARG(kind),
                               TD_STR_ARG(subject->namespace), TD_STR_ARG(subject->name),
                               more.len > 0 ? ", " : "", TD_STR_ARG(more));
    td_json_set_str(arena, explain->json, TD_STR("apiVersion"), api_version);
    td_json_set_str(arena, explain->json, TD_STR("kind"), kind);
    td_json_set_str(arena, explain->json, TD_STR("namespace"), subject->namespace);
    td_json_set_str(arena, explain->json, TD_STR("name"), subject->name);
    explain->says = td_json_new_array(arena);
    td_json_set(arena, explain->json, TD_STR("says"), explain->says);
}

void explain_say(struct td_explain *explain, const char *label, td_str sentence)
{
    struct td_arena *arena = &explain->arena;
    (void)td_buf_append_format(&explain->text, "  %-*s%.*s\n", EXPLAIN_LABEL_WIDTH, label,
                               TD_STR_ARG(sentence));
    struct td_json *line = td_json_new_object(arena);
    const struct td_json *before = td_json_last_child(explain->says);
    td_str topic = label[0] || !before ? td_str_from(label) : td_json_text(before, "topic");
    td_json_set_str(arena, line, TD_STR("topic"), topic);
    td_json_set_str(arena, line, TD_STR("text"), sentence);
    td_json_append(explain->says, line);
}

void explain_quote(struct td_explain *explain, const char *label, td_str paragraph)
{
    while (paragraph.len > 0) {
        size_t end = td_str_find(paragraph, '\n', 0);
        td_str line = td_arena_copy_str(&explain->arena, td_str_slice(paragraph, 0, end));
        explain_say(explain, label, line);
        label = "";
        paragraph = td_str_slice(paragraph, end < paragraph.len ? end + 1 : end, paragraph.len);
    }
}

td_str explain_amounts(struct td_arena *arena, const struct td_resource_list *list)
{
    td_auto_buf text = td_buf_capped(TD_OBJECT_BYTES_MAX);
    for (size_t i = 0; i < list->count; i++) {
        (void)td_buf_append_format(&text, "%s%.*s ", text.len > 0 ? ", " : "",
                                   TD_STR_ARG(list->items[i].name));
        td_quantity_write_short(&list->items[i].quantity,
                                td_str_equal(list->items[i].name, TD_MEMORY), &text);
    }
    return text.len > 0 ? td_arena_copy_str(arena, td_buf_str(&text)) : TD_STR("nothing");
}

void explain_problems(struct td_explain *explain, bool has_webhook)
{
    td_str metrics = td_snapshot_metrics_problem(explain->snapshot, &explain->arena);
    td_str webhook = has_webhook ? td_snapshot_webhook_problem(explain->snapshot, &explain->arena)
                                 : TD_STR_EMPTY;
    if (metrics.len > 0) {
        explain_say(explain, "metrics", metrics);
    }
    if (webhook.len > 0) {
        explain_say(explain, "webhook", webhook);
    }
    td_str rights = td_snapshot_rights_problem(explain->snapshot, &explain->arena);
    if (rights.len > 0) {
        explain_say(explain, "rights", rights);
    }
}

#define EXPLAIN_POD_LEVEL "InPlacePodLevelResourcesVerticalScaling"

/* Where pods with resources of their own are resized, their nodes declare it; what happens to one
 * whose node does not. A node that may not be read is not judged. */
static td_str explain_undeclared(struct td_explain *explain, const struct td_updater_note *note)
{
    const struct td_cache *nodes =
        td_informers_cache(explain->snapshot->informers, TD_INFORMER_NODES);
    td_str name = td_json_text(td_json_get(note->pod->tree, TD_STR("spec")), "nodeName");
    const struct td_informer_object *node = nodes ? td_cache_get(nodes, TD_STR_EMPTY, name) : NULL;
    struct td_json *tree = NULL;
    if (!node || td_informers_tree(&explain->arena, node, &tree, NULL) != TD_OK ||
        td_json_has_text(td_json_get_path(tree, "status.declaredFeatures"),
                         TD_STR(EXPLAIN_POD_LEVEL))) {
        return TD_STR_EMPTY;
    }
    return td_arena_format(&explain->arena,
                           "; but node %.*s does not declare " EXPLAIN_POD_LEVEL
                           ", so the API server refuses to resize a pod with resources of its "
                           "own, and it %s",
                           TD_STR_ARG(name),
                           note->vpa->mode == TD_VPA_IN_PLACE ? "stays as it is"
                                                              : "is evicted instead");
}

td_str explain_note(struct td_explain *explain, const struct td_updater_note *note)
{
    td_auto_buf text = td_buf_capped(TD_OBJECT_BYTES_MAX);
    td_updater_note_write(note, &text);
    td_str all = td_buf_str(&text);
    size_t from = td_str_find(all, ':', 0); /* "Pod ns/name (VPA name): ..." */
    td_str sentence = td_str_trim(td_str_slice(all, from + 1, all.len));
    bool is_action = td_updater_rule_is_action(note->rule);
    if (!note->pod) {
        return td_arena_copy_str(&explain->arena, sentence);
    }
    bool is_pod_level = note->rule == TD_RULE_RESIZED && note->pod->has_pod_level;
    return td_arena_format(
        &explain->arena, "%.*s: %s%.*s%.*s", TD_STR_ARG(note->pod->meta.name),
        is_action ? "would be " : "", TD_STR_ARG(sentence),
        TD_STR_ARG(is_pod_level ? explain_undeclared(explain, note) : TD_STR_EMPTY));
}

void explain_conditions(struct td_explain *explain, const struct td_vpa_condition *conditions,
                        size_t count)
{
    const char *label = "conditions";
    bool is_reported = td_snapshot_metrics_problem(explain->snapshot, &explain->arena).len > 0;
    for (size_t i = 0; i < count; i++) {
        const struct td_vpa_condition *c = &conditions[i];
        /* Of metrics explain_problems tells; that no pod matches is a condition by itself. */
        bool is_said = (td_str_equal(c->type, TD_STR("MetricsStale")) && is_reported) ||
                       (td_str_equal(c->type, TD_STR("RecommendationProvided")) &&
                        td_str_equal(c->reason, TD_STR("NoPodsMatched")));
        if (!td_condition_is_problem(c) || is_said) {
            continue;
        }
        td_str step = td_condition_next_step(&explain->arena, explain->subject.namespace, c->type);
        bool is_true = td_str_equal(c->status, TD_STR("True"));
        td_str why = c->message.len > 0 ? c->message : c->reason;
        explain_say(explain, label,
                    td_arena_format(&explain->arena, "%s%.*s%s%.*s%s%.*s", is_true ? "" : "not ",
                                    TD_STR_ARG(c->type), why.len > 0 ? ": " : "", TD_STR_ARG(why),
                                    step.len > 0 ? "; next: " : "", TD_STR_ARG(step)));
        label = "";
    }
}

struct td_json *explain_object(struct td_explain *explain, enum td_informer_kind kind,
                               td_str namespace, td_str name)
{
    const struct td_cache *cache = td_informers_cache(explain->snapshot->informers, kind);
    const struct td_informer_object *object = td_cache_get(cache, namespace, name);
    struct td_json *tree = NULL;
    if (object && td_informers_tree(&explain->arena, object, &tree, NULL) != TD_OK) {
        return NULL;
    }
    return tree;
}

/* ---- The end ---- */

void explain_end(struct td_explain *explain)
{
    struct td_explanation explanation = {.code = TD_OK, .json = explain->json};
    explanation.code = td_buf_check(&explain->text, "the explanation", &explanation.err);
    explanation.text = td_buf_str(&explain->text);
    explain->fn(explain->context, &explanation);
}

void explain_fail(struct td_explain *explain, int code, const char *message)
{
    const struct td_explain_subject *subject = &explain->subject;
    static const char *const kinds[] = {"VerticalPodAutoscaler", "HorizontalPodAutoscaler", "Hvpa",
                                        "Pod", ""};
    td_str kind = subject->workload.len > 0 ? subject->workload : td_str_from(kinds[subject->kind]);
    struct td_explanation explanation = {.code = code, .text = TD_STR_EMPTY};
    td_str rights = code == TD_NOT_FOUND
                        ? td_snapshot_rights_problem(explain->snapshot, &explain->arena)
                        : TD_STR_EMPTY;
    (void)td_error_set(&explanation.err, code, "%.*s %.*s/%.*s: %s%s%.*s", TD_STR_ARG(kind),
                       TD_STR_ARG(subject->namespace), TD_STR_ARG(subject->name), message,
                       rights.len > 0 ? "; " : "", TD_STR_ARG(rights));
    explain->fn(explain->context, &explanation);
}

/* ---- HPAs ---- */

/* The names of the selected pods that count, or do not, at most EXPLAIN_PODS_MAX of them. */
static void explain_pods_of(struct td_explain *explain,
                            const struct td_hpa_account_selection *selection, bool is_counted)
{
    td_auto_buf text = td_buf_capped(TD_OBJECT_BYTES_MAX);
    size_t count = 0;
    for (size_t i = 0; i < selection->pod_count; i++) {
        const struct td_hpa_selected_pod *pod = &selection->pods[i];
        if (pod->is_counted != is_counted || count++ >= EXPLAIN_PODS_MAX) {
            continue;
        }
        const char *comma = text.len > 0 ? ", " : "";
        (void)td_buf_append_format(&text, "%s%.*s", comma, TD_STR_ARG(pod->name));
        if (!is_counted) {
            (void)td_buf_append_format(&text, " (%s%.*s)", pod->owner.len > 0 ? "of " : "no owner",
                                       TD_STR_ARG(pod->owner));
        }
    }
    if (count > EXPLAIN_PODS_MAX) {
        (void)td_buf_append_format(&text, " and %zu more", count - EXPLAIN_PODS_MAX);
    }
    if (count > 0) {
        explain_say(explain, is_counted ? "counted" : "excluded",
                    td_arena_copy_str(&explain->arena, td_buf_str(&text)));
    }
}

/* Which pods count, and who said so. */
static void explain_strategy(struct td_explain *explain,
                             const struct td_hpa_account_selection *selection)
{
    static const char *const sources[] = {
        [TD_HPA_STRATEGY_FROM_SPEC] = "spec.selectionStrategy",
        [TD_HPA_STRATEGY_FROM_PRIMARY] = "its annotation",
        [TD_HPA_STRATEGY_FROM_ALIAS] = "its annotation (alternative key)",
        [TD_HPA_STRATEGY_FROM_DEFAULT] = "default",
        [TD_HPA_STRATEGY_FROM_GATE] = "the feature gate HPASelectionStrategy, which is off",
    };
    const struct td_hpa_strategy_choice *choice = &selection->choice;
    if (selection->matched_count == 0 && choice->source == TD_HPA_STRATEGY_FROM_DEFAULT) {
        return;
    }
    bool is_owners = choice->strategy == TD_HPA_STRATEGY_OWNERS;
    td_str name = td_hpa_strategy_name(choice->strategy);
    td_str invalid = choice->is_unsupported
                         ? td_arena_format(&explain->arena,
                                           ", whose value '%.*s' is neither LabelSelector nor "
                                           "OwnerReference",
                                           TD_STR_ARG(choice->value))
                         : TD_STR_EMPTY;
    explain_say(explain, "strategy",
                td_arena_format(&explain->arena, "%.*s by %s%.*s: counts %s", TD_STR_ARG(name),
                                sources[choice->source], TD_STR_ARG(invalid),
                                is_owners ? "only pods that the target owns"
                                          : "all pods that match its selector"));
    if (is_owners) {
        explain_pods_of(explain, selection, true);
        explain_pods_of(explain, selection, false);
    }
}

static void explain_hpa_reported(void *context, const struct td_horizontal_account *account)
{
    struct td_explain *explain = context;
    struct td_arena *arena = &explain->arena;
    if (account->code != TD_OK) {
        td_str message = td_arena_copy_str(arena, account->message);
        explain_fail(explain, account->code, message.ptr);
        return;
    }
    td_str api = td_arena_copy_str(arena, account->api_version);
    if (explain->text.len > 0) {
        (void)td_buf_append_char(&explain->text, '\n');
    }
    size_t said = explain->text.len;
    explain_title(explain, TD_STR("HorizontalPodAutoscaler"), api, TD_STR_EMPTY);
    td_auto_buf text = td_buf_capped(TD_OBJECT_BYTES_MAX);
    td_hpa_account_write(account->pass, account->selection, TD_HPA_ACCOUNT_TEXT, &text);
    explain->text.len = said; /* the account has a title of its own */
    (void)td_buf_append(&explain->text, td_buf_str(&text));
    explain_say(explain, "group", td_arena_format(arena, "%.*s", TD_STR_ARG(api)));
    explain_strategy(explain, account->selection);
    td_json_set(arena, explain->json, TD_STR("account"),
                td_json_copy(arena, td_hpa_account_json(account->pass, account->selection), true));
    if (account->gated.len > 0) {
        explain_say(explain, "ignored", td_arena_copy_str(arena, account->gated));
    }
    if (account->warning.len > 0) {
        explain_say(explain, "warning", td_arena_copy_str(arena, account->warning));
    }
    explain_problems(explain, false);
    if (account->is_last) {
        explain_end(explain);
        return;
    }
    /* One in each group: the tree of the first is kept beside that of the second. */
    struct td_json *first = explain->json;
    explain->json = td_json_new_object(arena);
    td_json_set(arena, explain->json, TD_STR("also"), first);
}

static void explain_hpa(struct td_explain *explain)
{
    td_horizontal_explain(explain->snapshot->horizontal, explain->subject.namespace,
                          explain->subject.name, explain_hpa_reported, explain);
}

/* ---- Driving ---- */

static void explain_try(struct td_explain *explain)
{
    static int (*const parts[])(struct td_explain * explain, struct td_error * err) = {
        [TD_EXPLAIN_VPA] = explain_vpa,
        [TD_EXPLAIN_POD] = explain_pod,
        [TD_EXPLAIN_WORKLOAD] = explain_workload,
    };
    struct td_error err = TD_ERROR_INIT;
    td_arena_reset(&explain->arena);
    td_buf_reset(&explain->text);
    explain->json = td_json_new_object(&explain->arena);
    if (explain->subject.kind == TD_EXPLAIN_HPA) {
        explain_hpa(explain);
        return;
    }
    if (explain->subject.kind == TD_EXPLAIN_HVPA) {
        explain_hvpa(explain);
        return;
    }
    int code = parts[explain->subject.kind](explain, &err);
    if (code == TD_OK) {
        explain_end(explain);
    } else if (code == TD_BUSY && explain->tries++ < EXPLAIN_TRIES_MAX) {
        td_timer_set_machine(explain->again, EXPLAIN_PAUSE);
    } else {
        explain_fail(explain, code, err.message);
    }
}

static void explain_again(struct td_timer *timer, void *context)
{
    (void)timer;
    explain_try(context);
}

static void explain_looked(void *context)
{
    explain_try(context);
}

struct td_explain *td_explain_start(struct td_snapshot *snapshot,
                                    const struct td_explain_subject *subject, td_explain_fn fn,
                                    void *context)
{
    struct td_explain *explain = td_alloc_zero(1, sizeof(*explain));
    explain->snapshot = snapshot;
    explain->fn = fn;
    explain->context = context;
    td_arena_init(&explain->texts, TD_TREE_ARENA_BYTES_MAX);
    td_arena_init(&explain->arena, TD_UPDATE_ARENA_BYTES_MAX);
    td_buf_init(&explain->text, TD_TREE_ARENA_BYTES_MAX);
    explain->subject = (struct td_explain_subject){
        .kind = subject->kind,
        .workload = td_arena_copy_str(&explain->texts, subject->workload),
        .namespace = td_arena_copy_str(&explain->texts, subject->namespace),
        .name = td_arena_copy_str(&explain->texts, subject->name),
    };
    explain->again = td_timer_new(snapshot->loop, explain_again, explain);
    td_recommend_loop_look(snapshot->recommend, explain_looked, explain);
    return explain;
}

void td_explain_free(struct td_explain *explain)
{
    if (!explain) {
        return;
    }
    explain_replacements_free(explain->replacements);
    td_timer_free(explain->again);
    td_buf_done(&explain->text);
    td_arena_done(&explain->arena);
    td_arena_done(&explain->texts);
    td_free(explain);
}
