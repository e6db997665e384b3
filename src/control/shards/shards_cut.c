/*
 * The cut in its ConfigMap, and how a new one comes about: pods and autoscalers are listed page by
 * page, metadata alone, and counted by namespace; nothing else is kept of them. Who writes names
 * the version of the ConfigMap that it has read, so that of two that cut at once one loses, and
 * follows the other.
 *
 *   data:
 *     epoch: "1795065600"              (seconds since 1970, or one more than before)
 *     shards: "8"
 *     starts: 0x1c3e...,0x4a82...,     (of the second shard, the third, ...)
 */
#include <inttypes.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/json/json.h"
#include "base/limits.h"
#include "base/os/log.h"
#include "base/text.h"
#include "control/shards/shards_private.h"
#include "kube/client/verbs.h"
#include "kube/paths.h"

#define SURVEY_PAGE "500"
#define SURVEY_METADATA "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
#define SHARDS_UNEVEN_FOR (10 * TD_MINUTE)

/* ---- The ConfigMap ---- */

/* "0x" and 16 digits. */
static bool cut_number(td_str text, uint64_t *ret)
{
    uint64_t value = 0;
    if (text.len != 18 || !td_str_starts_with(text, TD_STR("0x"))) {
        return false;
    }
    for (size_t i = 2; i < text.len; i++) {
        char c = text.ptr[i];
        bool is_digit = c >= '0' && c <= '9';
        if (!is_digit && (c < 'a' || c > 'f')) {
            return false;
        }
        value = value << 4 | (uint64_t)(is_digit ? c - '0' : c - 'a' + 10);
    }
    *ret = value;
    return true;
}

static int cut_refuse(struct td_error *err, const char *field, td_str value)
{
    return td_error_set(err, TD_INVALID, "ConfigMap '" TD_SHARDS_CONFIG "': data.%s: '%.*s'", field,
                        TD_STR_ARG(td_str_cut_utf8(value, TD_CACHE_SHOWN_BYTES)));
}

int shards_cut_read(const struct td_json *object, struct shards_cut *ret, struct td_error *err)
{
    const struct td_json *data = td_json_get(object, TD_STR("data"));
    struct shards_cut cut = {.epoch = 0};
    int64_t epoch = 0;
    int64_t count = 0;
    td_str rest = td_json_text(data, "starts");
    if (!td_str_to_int64(td_json_text(data, "epoch"), &epoch) || epoch <= 0) {
        return cut_refuse(err, "epoch", td_json_text(data, "epoch"));
    }
    if (!td_str_to_int64(td_json_text(data, "shards"), &count) || count < 1 ||
        count > TD_SHARDS_MAX) {
        return cut_refuse(err, "shards", td_json_text(data, "shards"));
    }
    cut.epoch = (uint64_t)epoch;
    cut.count = (size_t)count;
    for (size_t i = 0; i + 1 < cut.count; i++) {
        td_str word = td_rights_word(&rest);
        uint64_t before = i > 0 ? cut.starts[i - 1] : 0;
        if (!cut_number(word, &cut.starts[i]) || cut.starts[i] <= before) {
            return cut_refuse(err, "starts", word);
        }
    }
    if (rest.len > 0) {
        return cut_refuse(err, "starts", rest);
    }
    *ret = cut;
    return TD_OK;
}

struct td_shard_range shards_cut_range(const struct shards_cut *cut, size_t index)
{
    return (struct td_shard_range){
        .first = index > 0 ? cut->starts[index - 1] : 0,
        .last = index + 1 < cut->count ? cut->starts[index] - 1 : UINT64_MAX,
    };
}

/* ---- Counting ---- */

/* What is counted, where a controller of this process looks at it anyway, and so may. */
static const struct survey_kind {
    struct td_api_path path;
    unsigned controllers; /* a bit (1u << kind) for each */
} survey_kinds[] = {
    {{.version = TD_STR_INIT("v1"), .plural = TD_STR_INIT("pods")}, ~0u},
    {{.group = TD_STR_INIT("autoscaling.k8s.io"),
      .version = TD_STR_INIT("v1"),
      .plural = TD_STR_INIT("verticalpodautoscalers")},
     1u << TD_CONTROLLER_RECOMMENDER | 1u << TD_CONTROLLER_UPDATER | 1u << TD_CONTROLLER_HVPA},
    {{.group = TD_STR_INIT("autoscaling"),
      .version = TD_STR_INIT("v2"),
      .plural = TD_STR_INIT("horizontalpodautoscalers")},
     1u << TD_CONTROLLER_HORIZONTAL | 1u << TD_CONTROLLER_HVPA},
};

struct survey_namespace {
    td_str name; /* owned */
    uint64_t weight;
};

struct shards_survey {
    struct td_shards *shards;
    struct td_client_call *call;
    size_t kind;
    struct td_map namespaces; /* by name */
    bool is_needed;
};

static void survey_next(struct shards_survey *survey, td_str next);

void shards_survey_free(struct td_shards *shards)
{
    struct shards_survey *survey = shards->survey;
    shards->survey = NULL;
    if (!survey) {
        return;
    }
    td_client_cancel(survey->call);
    for (struct td_map_walk at = {.map = &survey->namespaces}; td_map_step(&at);) {
        struct survey_namespace *ns = at.value;
        td_text_free(ns->name);
        td_free(ns);
    }
    td_map_done(&survey->namespaces);
    td_free(survey);
}

static void survey_failed(struct shards_survey *survey, const struct td_error *err)
{
    td_log_line(survey->shards->options.controllers.log, TD_LOG_WARN,
                "cannot move shard boundaries", TD_LOG_C("error", err->message));
    shards_survey_free(survey->shards);
}

static int survey_count(struct shards_survey *survey, td_str name, struct td_error *err)
{
    struct survey_namespace *ns = td_map_get(&survey->namespaces, name);
    if (!ns) {
        ns = td_alloc_zero(1, sizeof(*ns));
        ns->name = td_text_copy(name);
        if (td_map_put(&survey->namespaces, ns->name, ns) != TD_OK) {
            td_text_free(ns->name);
            td_free(ns);
            return td_error_set(err, TD_LIMIT, "too many namespaces");
        }
    }
    ns->weight++;
    return TD_OK;
}

/* ---- Writing ---- */

static void survey_written(void *context, const struct td_client_reply *reply)
{
    struct shards_survey *survey = context;
    survey->call = NULL;
    if (reply->code != TD_OK && reply->code != TD_CONFLICT && reply->code != TD_EXISTS) {
        survey_failed(survey, &reply->err);
        return;
    }
    shards_survey_free(survey->shards); /* the next look brings it, or that of another replica */
}

static td_str cut_text(struct td_arena *arena, td_str namespace, td_str version,
                       const struct shards_cut *cut)
{
    td_auto_buf starts = td_buf_capped((size_t)TD_SHARDS_MAX * 20);
    for (size_t i = 0; i + 1 < cut->count; i++) {
        (void)td_buf_append_format(&starts, "%s0x%016" PRIx64, i > 0 ? "," : "", cut->starts[i]);
    }
    struct td_json *object = td_json_new_object(arena);
    td_json_set_str(arena, object, TD_STR("apiVersion"), TD_STR("v1"));
    td_json_set_str(arena, object, TD_STR("kind"), TD_STR("ConfigMap"));
    struct td_json *metadata = td_json_ensure_object(arena, object, TD_STR("metadata"));
    td_json_set_str(arena, metadata, TD_STR("name"), TD_STR(TD_SHARDS_CONFIG));
    td_json_set_str(arena, metadata, TD_STR("namespace"), namespace);
    td_json_set_text(arena, metadata, TD_STR("resourceVersion"), version);
    struct td_json *data = td_json_ensure_object(arena, object, TD_STR("data"));
    td_json_set_str(arena, data, TD_STR("epoch"),
                    td_arena_format(arena, "%llu", (unsigned long long)cut->epoch));
    td_json_set_str(arena, data, TD_STR("shards"), td_arena_format(arena, "%zu", cut->count));
    td_json_set_str(arena, data, TD_STR("starts"), td_arena_copy_str(arena, td_buf_str(&starts)));
    return td_json_line(arena, object);
}

static void survey_write(struct shards_survey *survey, const struct shards_cut *cut)
{
    struct td_shards *shards = survey->shards;
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    td_str namespace = shards->options.controllers.leader.namespace;
    td_str body = cut_text(&arena, namespace, shards->cut_version, cut);
    struct td_api_path path = {.version = TD_STR("v1"),
                               .namespace = namespace,
                               .plural = TD_STR("configmaps"),
                               .name = TD_STR(TD_SHARDS_CONFIG)};
    struct td_client_request request;
    struct td_error err = TD_ERROR_INIT;
    int code;
    if (shards->cut_version.len > 0) {
        code = td_verb_update(&arena, &path, body, NULL, &request, &err);
    } else {
        path.name = TD_STR_EMPTY;
        code = td_verb_create(&arena, &path, body, NULL, &request, &err);
    }
    if (code != TD_OK) {
        survey_failed(survey, &err);
        return;
    }
    td_log_line(shards->options.controllers.log, TD_LOG_INFO, "shard boundaries moved",
                TD_LOG_I("shards", (int64_t)cut->count), TD_LOG_I("epoch", (int64_t)cut->epoch));
    request.flow = shards->flow;
    survey->call = td_client_send(shards->client, &request, survey_written, survey);
}

/* ---- Judging ---- */

static size_t survey_weights(const struct shards_survey *survey, struct td_arena *arena,
                             struct td_shard_weight **ret)
{
    struct td_shard_weight *weights =
        td_arena_array(arena, struct td_shard_weight, survey->namespaces.count + 1);
    size_t count = 0;
    size_t position = 0;
    const struct td_map_entry *entry;
    while ((entry = td_map_next(&survey->namespaces, &position))) {
        const struct survey_namespace *ns = entry->value;
        weights[count++] = (struct td_shard_weight){
            .namespace = ns->name, .hash = td_shard_hash(ns->name), .weight = ns->weight};
    }
    *ret = weights;
    return count;
}

/* The time, so that a ConfigMap which was deleted and made anew has no epoch a second time. */
static uint64_t cut_next_epoch(const struct td_shards *shards)
{
    td_time now = td_clock_wall(td_loop_clock(shards->options.controllers.loop));
    uint64_t seconds = now > 0 ? (uint64_t)(now / TD_SECOND) : 0;
    return seconds > shards->cut.epoch ? seconds : shards->cut.epoch + 1;
}

static void survey_judge(struct shards_survey *survey)
{
    struct td_shards *shards = survey->shards;
    td_auto_arena arena = td_arena_capped(TD_CACHE_OBJECTS_MAX * sizeof(struct td_shard_weight));
    struct td_shard_weight *weights;
    size_t count = survey_weights(survey, &arena, &weights);
    struct shards_cut cut = {.epoch = cut_next_epoch(shards),
                             .count =
                                 survey->is_needed ? shards->options.count : shards->cut.count};
    td_shards_cut(weights, count, cut.count, cut.starts);
    td_duration now = td_clock_steady(td_loop_clock(shards->options.controllers.loop));
    if (!survey->is_needed) {
        struct td_shard_balance before =
            td_shards_weigh(weights, count, shards->cut.starts, shards->cut.count);
        struct td_shard_balance after = td_shards_weigh(weights, count, cut.starts, cut.count);
        bool is_uneven = td_shards_is_uneven(&before, &after, cut.count);
        shards->uneven_since = !is_uneven                 ? 0
                               : shards->uneven_since > 0 ? shards->uneven_since
                                                          : now;
        if (!is_uneven || now - shards->uneven_since < SHARDS_UNEVEN_FOR) {
            shards_survey_free(shards);
            return;
        }
    }
    shards->uneven_since = 0;
    survey_write(survey, &cut);
}

/* ---- Asking ---- */

static void survey_answered(void *context, const struct td_client_reply *reply)
{
    struct shards_survey *survey = context;
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_error err = reply->err;
    struct td_json *list = NULL;
    int code = reply->code;
    survey->call = NULL;
    if (code == TD_OK) {
        code = td_json_parse(&arena, reply->body, NULL, &list, &err);
    } else if (code == TD_NOT_FOUND) {
        code = TD_OK; /* the kind is not defined: there are none */
    }
    const struct td_json *items = td_json_get(list, TD_STR("items"));
    for (const struct td_json *item = td_json_first_item(items); item && code == TD_OK;
         item = item->next) {
        code = survey_count(survey,
                            td_json_text(td_json_get(item, TD_STR("metadata")), "namespace"), &err);
    }
    if (code != TD_OK) {
        survey_failed(survey, &err);
        return;
    }
    td_str next = td_json_text(td_json_get(list, TD_STR("metadata")), "continue");
    survey->kind += next.len == 0;
    survey_next(survey, next);
}

static void survey_ask(struct shards_survey *survey, td_str next)
{
    struct td_shards *shards = survey->shards;
    td_auto_buf path = td_buf_capped(TD_API_PATH_BYTES_MAX);
    (void)td_path_write(&survey_kinds[survey->kind].path, &path,
                        NULL); /* names of ours, and room */
    td_path_add_query(&path, TD_STR("limit"), TD_STR(SURVEY_PAGE));
    if (next.len > 0) {
        td_path_add_query(&path, TD_STR("continue"), next);
    }
    const struct td_client_request request = {.flow = shards->flow,
                                              .method = TD_STR("GET"),
                                              .path = td_buf_str(&path),
                                              .accept = TD_STR(SURVEY_METADATA)};
    survey->call = td_client_send(shards->client, &request, survey_answered, survey);
}

/* The page behind `next`, or the first of the next kind that is counted. */
static void survey_next(struct shards_survey *survey, td_str next)
{
    unsigned has = 0;
    for (size_t kind = 0; kind < TD_CONTROLLER_COUNT; kind++) {
        has |= (unsigned)survey->shards->options.controllers.has[kind] << kind;
    }
    while (survey->kind < TD_COUNT(survey_kinds) &&
           (survey_kinds[survey->kind].controllers & has) == 0) {
        survey->kind++;
    }
    if (survey->kind < TD_COUNT(survey_kinds)) {
        survey_ask(survey, next);
    } else {
        survey_judge(survey);
    }
}

void shards_survey(struct td_shards *shards, bool is_needed)
{
    td_assert(!shards->survey);
    struct shards_survey *survey = td_alloc_zero(1, sizeof(*survey));
    survey->shards = shards;
    survey->is_needed = is_needed;
    td_map_init(&survey->namespaces, TD_CACHE_OBJECTS_MAX);
    shards->survey = survey;
    survey_next(survey, TD_STR_EMPTY);
}
