#include "decide/vertical/recommender/recommender.h"
#include "golden/golden.h"
#include "golden/vpa_learn_support.h"

/* The cluster of one case: the recommender, and the API objects by "ns/name". */
struct cluster {
    struct td_arena *arena;
    struct td_recommender *recommender;
    struct td_resource_list global_max;
    struct td_json *objects;   /* VPA objects as they lie in the API */
    struct td_json *selectors; /* their selectors as text */
};

static td_str object_key(struct td_arena *arena, const struct td_json *event)
{
    return td_arena_format(arena, "%.*s/%.*s", TD_STR_ARG(golden_text(event, TD_STR("ns"))),
                           TD_STR_ARG(golden_text(event, TD_STR("vpa"))));
}

static struct td_json *text_json(struct td_arena *arena, td_str text)
{
    return td_json_new_string(arena, text);
}

static struct td_json *failure(struct td_arena *arena, int code, const struct td_error *err)
{
    return text_json(arena, code < 0 ? td_arena_format(arena, "%s", err->message) : TD_STR_EMPTY);
}

static enum td_pod_phase phase_of(td_str text)
{
    static const struct {
        const char *name;
        enum td_pod_phase phase;
    } phases[] = {{"Pending", TD_POD_PENDING},
                  {"Running", TD_POD_RUNNING},
                  {"Succeeded", TD_POD_SUCCEEDED},
                  {"Failed", TD_POD_FAILED}};
    for (size_t i = 0; i < sizeof(phases) / sizeof(phases[0]); i++) {
        if (td_str_equal(td_str_from(phases[i].name), text)) {
            return phases[i].phase;
        }
    }
    return TD_POD_PHASE_UNKNOWN;
}

static struct td_json *on_pod(struct cluster *cluster, const struct td_json *event, td_time now)
{
    struct td_error err = TD_ERROR_INIT;
    const struct td_observed_pod observed = {
        .namespace = golden_text(event, TD_STR("ns")),
        .name = golden_text(event, TD_STR("pod")),
        .labels = td_labels_from_json(cluster->arena, td_json_get(event, TD_STR("labels"))),
        .target = TD_STR_EMPTY,
        .phase = phase_of(golden_text(event, TD_STR("phase"))),
    };
    struct td_tracked_pod *pod = NULL;
    int code = td_recommender_set_pod(cluster->recommender, &observed, now, &pod, &err);
    const struct td_json *containers = td_json_get(event, TD_STR("containers"));
    for (const struct td_json *item = td_json_first_child(containers); item && code == TD_OK;
         item = item->next) {
        code = td_recommender_set_container(cluster->recommender, &pod,
                                            golden_text(item, TD_STR("name")), 0, now, &err);
    }
    return failure(cluster->arena, code, &err);
}

static struct td_tracked_pod *event_pod(const struct cluster *cluster, const struct td_json *event)
{
    return td_recommender_find_pod(cluster->recommender, golden_text(event, TD_STR("ns")),
                                   golden_text(event, TD_STR("pod")));
}

static td_str unknown_pod(struct td_arena *arena, const struct td_json *event)
{
    return td_arena_format(arena, "KeyError: {%.*s %.*s}",
                           TD_STR_ARG(golden_text(event, TD_STR("ns"))),
                           TD_STR_ARG(golden_text(event, TD_STR("pod"))));
}

static struct td_json *on_container(struct cluster *cluster, const struct td_json *event,
                                    td_time now)
{
    struct td_error err = TD_ERROR_INIT;
    struct td_tracked_pod *pod = event_pod(cluster, event);
    if (!pod) {
        return text_json(cluster->arena, unknown_pod(cluster->arena, event));
    }
    int code = td_recommender_set_container(cluster->recommender, &pod,
                                            golden_text(event, TD_STR("container")), 0, now, &err);
    return failure(cluster->arena, code, &err);
}

static td_str feed_text(struct td_arena *arena, enum td_feed fed)
{
    switch (fed) {
    case TD_FEED_TAKEN:
    case TD_FEED_OOM_CAPPED:
        return TD_STR_EMPTY;
    case TD_FEED_DISCARDED:
        return TD_STR("sample discarded (invalid or out of order)");
    case TD_FEED_NO_CONTAINER:
        return TD_STR("no such container");
    case TD_FEED_UNMANAGED:
        return TD_STR("no VPA selects the pod");
    case TD_FEED_OOM_TOO_OLD:
        return TD_STR("OOM event will be discarded - it is too old");
    }
    return td_arena_format(arena, "%d", (int)fed);
}

static struct td_json *on_sample(struct cluster *cluster, const struct td_json *event_json,
                                 td_time now)
{
    struct golden_event event;
    struct td_tracked_pod *pod = event_pod(cluster, event_json);
    if (golden_event_read(event_json, &event, NULL) < 0 || !pod) {
        return event.is_series ? td_json_new_int64(cluster->arena, 0)
                               : text_json(cluster->arena, unknown_pod(cluster->arena, event_json));
    }
    td_str container = golden_text(event_json, TD_STR("container"));
    bool is_cpu = td_str_equal(golden_text(event_json, TD_STR("resource")), TD_STR("cpu"));
    int64_t taken = 0;
    enum td_feed fed = TD_FEED_DISCARDED;
    for (int64_t i = 0; i < event.count; i++) {
        fed = td_recommender_sample(
            cluster->recommender, pod, container, is_cpu ? TD_LEARN_CPU : TD_LEARN_MEMORY,
            event.time + i * event.step, golden_event_value(&event, i), now);
        taken += fed == TD_FEED_TAKEN;
    }
    return event.is_series ? td_json_new_int64(cluster->arena, taken)
                           : text_json(cluster->arena, feed_text(cluster->arena, fed));
}

static struct td_json *on_oom(struct cluster *cluster, const struct td_json *event, td_time now)
{
    struct td_tracked_pod *pod = event_pod(cluster, event);
    if (!pod) {
        return text_json(cluster->arena, unknown_pod(cluster->arena, event));
    }
    enum td_feed fed = td_recommender_oom(
        cluster->recommender, pod, golden_text(event, TD_STR("container")),
        golden_time(event, TD_STR("t")),
        &(struct td_oom_kill){.request_bytes = td_json_get_int64(event, TD_STR("v"), 0)}, now);
    return text_json(cluster->arena, feed_text(cluster->arena, fed));
}

/* The object that a vpa event describes, with the status that the API holds. */
static struct td_json *object_json(struct cluster *cluster, const struct td_json *event, td_str key)
{
    struct td_arena *arena = cluster->arena;
    struct td_json *object = td_json_new_object(arena);
    struct td_json *meta = td_json_ensure_object(arena, object, TD_STR("metadata"));
    struct td_json *spec = td_json_ensure_object(arena, object, TD_STR("spec"));
    const struct td_json *old = td_json_get(cluster->objects, key);
    golden_set_text(arena, meta, TD_STR("name"), golden_text(event, TD_STR("vpa")));
    golden_set_text(arena, meta, TD_STR("namespace"), golden_text(event, TD_STR("ns")));
    golden_set_int(arena, meta, TD_STR("generation"),
                   td_json_get_int64(event, TD_STR("generation"), 0));
    const struct td_json *annotations = td_json_get(event, TD_STR("annotations"));
    if (annotations) {
        td_json_set(arena, meta, TD_STR("annotations"), td_json_copy(arena, annotations, false));
    }
    struct td_json *target = td_json_ensure_object(arena, spec, TD_STR("targetRef"));
    golden_set_text(arena, target, TD_STR("apiVersion"), TD_STR("apps/v1"));
    golden_set_text(arena, target, TD_STR("kind"), TD_STR("Deployment"));
    golden_set_text(arena, target, TD_STR("name"), golden_text(event, TD_STR("targetName")));
    if (td_json_get(event, TD_STR("updateMode"))) {
        struct td_json *update = td_json_ensure_object(arena, spec, TD_STR("updatePolicy"));
        golden_set_text(arena, update, TD_STR("updateMode"),
                        golden_text(event, TD_STR("updateMode")));
    }
    const struct td_json *policy = td_json_get(event, TD_STR("resourcePolicy"));
    if (policy) {
        td_json_set(arena, spec, TD_STR("resourcePolicy"), td_json_copy(arena, policy, false));
    }
    const struct td_json *status = td_json_get(old, TD_STR("status"));
    if (status) {
        td_json_set(arena, object, TD_STR("status"), td_json_copy(arena, status, false));
    }
    return object;
}

static int set_object(struct cluster *cluster, td_str key, td_time now, struct td_vpa *ret,
                      struct td_error *err)
{
    struct td_selector selector = {.matches_nothing = true};
    td_str text = td_json_get_str(cluster->selectors, key, TD_STR_EMPTY);
    int code = TD_OK;
    if (!td_str_equal(text, TD_STR("nothing"))) {
        code = td_selector_parse(cluster->arena, text, &selector, err);
    }
    if (code == TD_OK) {
        code = td_vpa_decode(cluster->arena, td_json_get(cluster->objects, key), ret, err);
    }
    if (code < 0) {
        return code;
    }
    const struct td_vpa_link link = {
        .vpa = ret, .target_selector = &selector, .target = TD_STR_EMPTY};
    return td_recommender_set_vpa(cluster->recommender, &link, now, err);
}

static struct td_json *on_vpa(struct cluster *cluster, const struct td_json *event, td_time now)
{
    struct td_error err = TD_ERROR_INIT;
    struct td_vpa vpa;
    td_str key = object_key(cluster->arena, event);
    td_json_set(cluster->arena, cluster->objects, key, object_json(cluster, event, key));
    golden_set_text(cluster->arena, cluster->selectors, key,
                    golden_text(event, TD_STR("selector")));
    int code = set_object(cluster, key, now, &vpa, &err);
    return failure(cluster->arena, code, &err);
}

static struct td_json *on_delete_vpa(struct cluster *cluster, const struct td_json *event)
{
    bool was_there = td_recommender_delete_vpa(
        cluster->recommender, golden_text(event, TD_STR("ns")), golden_text(event, TD_STR("vpa")));
    (void)td_json_remove(cluster->objects, object_key(cluster->arena, event));
    return text_json(cluster->arena, was_there ? TD_STR_EMPTY : TD_STR("no such VPA"));
}

static struct td_json *on_checkpoint(struct cluster *cluster, const struct td_json *event,
                                     td_time now)
{
    struct td_error err = TD_ERROR_INIT;
    struct td_checkpoint checkpoint;
    int code = td_checkpoint_decode_status(td_json_get(event, TD_STR("status")), &checkpoint, &err);
    if (code == TD_OK) {
        checkpoint.vpa_name = golden_text(event, TD_STR("vpa"));
        checkpoint.container_name = golden_text(event, TD_STR("container"));
        code = td_recommender_load(cluster->recommender, golden_text(event, TD_STR("ns")),
                                   &checkpoint, NULL, now, &err);
    }
    return failure(cluster->arena, code, &err);
}

static size_t aggregates_of(const struct cluster *cluster)
{
    /* Upstream counts live aggregates, not what checkpoints brought. */
    return td_recommender_live_aggregates(cluster->recommender);
}

static int run_object(struct cluster *cluster, struct td_json *object, td_time now,
                      struct td_json *vpas, struct td_error *err)
{
    struct td_arena *arena = cluster->arena;
    struct td_vpa vpa;
    struct td_vpa_status status;
    td_str key = object->key;
    int code = set_object(cluster, key, now, &vpa, err);
    if (code == TD_OK) {
        code = td_recommender_status(cluster->recommender, arena, &vpa, &cluster->global_max, now,
                                     &status, err);
    }
    if (code < 0) {
        return code;
    }
    if (status.is_changed) {
        td_json_set(arena, object, TD_STR("status"), td_vpa_status_json(arena, &status));
    }
    struct td_json *result = td_json_new_object(arena);
    golden_set_int(arena, result, TD_STR("podCount"), (int64_t)status.pod_count);
    td_json_set(arena, result, TD_STR("patched"), td_json_new_bool(arena, status.is_changed));
    td_json_set(arena, result, TD_STR("status"),
                td_json_copy(arena, td_json_get(object, TD_STR("status")), false));
    td_json_set(arena, vpas, key, result);
    return TD_OK;
}

static struct td_json *on_run(struct cluster *cluster, td_time now)
{
    struct td_error err = TD_ERROR_INIT;
    struct td_json *vpas = td_json_new_object(cluster->arena);
    for (struct td_json *object = td_json_first_child(cluster->objects); object;
         object = object->next) {
        int code = run_object(cluster, object, now, vpas, &err);
        if (code < 0) {
            return failure(cluster->arena, code, &err);
        }
    }
    struct td_json *result = td_json_new_object(cluster->arena);
    golden_set_int(cluster->arena, result, TD_STR("aggregates"), (int64_t)aggregates_of(cluster));
    td_json_set(cluster->arena, result, TD_STR("vpas"), vpas);
    return result;
}

static struct td_json *on_store(struct cluster *cluster, const struct td_json *event, td_time now)
{
    struct td_error err = TD_ERROR_INIT;
    struct td_stored_checkpoint *items = NULL;
    size_t count = 0;
    int code =
        td_recommender_store(cluster->recommender, cluster->arena, golden_text(event, TD_STR("ns")),
                             golden_text(event, TD_STR("vpa")), now, &items, &count, &err);
    if (code < 0) {
        return failure(cluster->arena, code, &err);
    }
    struct td_json *result = td_json_new_object(cluster->arena);
    for (size_t i = 0; i < count; i++) {
        td_json_set(cluster->arena, result, items[i].checkpoint.container_name,
                    golden_checkpoint_json(cluster->arena, &items[i].checkpoint));
    }
    return result;
}

static bool target_exists(void *context, td_str namespace, td_str kind, td_str name)
{
    const struct td_json *controllers = context;
    (void)kind;
    for (const struct td_json *item = td_json_first_child(controllers); item; item = item->next) {
        if (item->text.len == namespace.len + 1 + name.len &&
            td_str_starts_with(item->text, namespace) && td_str_ends_with(item->text, name)) {
            return true;
        }
    }
    return false;
}

static struct td_json *on_gc(struct cluster *cluster, const struct td_json *event, td_time now)
{
    const struct td_target_lookup lookup = {.target_exists = target_exists,
                                            .context = td_json_get(event, TD_STR("controllers"))};
    td_recommender_gc(cluster->recommender, now, &lookup);
    struct td_json *result = td_json_new_object(cluster->arena);
    golden_set_int(cluster->arena, result, TD_STR("aggregates"), (int64_t)aggregates_of(cluster));
    return result;
}

static struct td_json *on_event(struct cluster *cluster, const struct td_json *event)
{
    td_str op = golden_text(event, TD_STR("op"));
    td_time now = golden_time(event, TD_STR("at"));
    if (td_str_equal(op, TD_STR("pod"))) {
        return on_pod(cluster, event, now);
    }
    if (td_str_equal(op, TD_STR("delete-pod"))) {
        td_recommender_delete_pod(cluster->recommender, golden_text(event, TD_STR("ns")),
                                  golden_text(event, TD_STR("pod")));
        return text_json(cluster->arena, TD_STR_EMPTY);
    }
    if (td_str_equal(op, TD_STR("container"))) {
        return on_container(cluster, event, now);
    }
    if (td_str_equal(op, TD_STR("sample"))) {
        return on_sample(cluster, event, now);
    }
    if (td_str_equal(op, TD_STR("oom"))) {
        return on_oom(cluster, event, now);
    }
    if (td_str_equal(op, TD_STR("vpa"))) {
        return on_vpa(cluster, event, now);
    }
    if (td_str_equal(op, TD_STR("delete-vpa"))) {
        return on_delete_vpa(cluster, event);
    }
    if (td_str_equal(op, TD_STR("checkpoint"))) {
        return on_checkpoint(cluster, event, now);
    }
    if (td_str_equal(op, TD_STR("run"))) {
        return on_run(cluster, now);
    }
    if (td_str_equal(op, TD_STR("store"))) {
        return on_store(cluster, event, now);
    }
    return on_gc(cluster, event, now);
}

static int run_feed(struct td_arena *arena, const struct td_json *in, struct td_json **ret_out,
                    struct td_error *err)
{
    struct td_vertical_config config;
    struct cluster cluster = {.arena = arena,
                              .objects = td_json_new_object(arena),
                              .selectors = td_json_new_object(arena)};
    int code = golden_learn_config(in, &config, err);
    if (code == TD_OK) {
        code = td_resource_list_decode(arena, td_json_get(in, TD_STR("globalMaxAllowed")),
                                       &cluster.global_max, err);
    }
    if (code < 0) {
        return code;
    }
    cluster.recommender = td_recommender_new(&config);
    struct td_json *results = td_json_new_array(arena);
    const struct td_json *events = td_json_get(in, TD_STR("events"));
    for (const struct td_json *item = td_json_first_child(events); item; item = item->next) {
        td_json_append(results, on_event(&cluster, item));
    }
    td_recommender_free(cluster.recommender);
    *ret_out = td_json_new_object(arena);
    td_json_set(arena, *ret_out, TD_STR("results"), results);
    return TD_OK;
}

static bool same_result(const struct td_json *expected, const struct td_json *got)
{
    if (expected->type == TD_JSON_TYPE_STRING && got->type == TD_JSON_TYPE_STRING) {
        return (expected->text.len == 0) == (got->text.len == 0); /* any text is a rejection */
    }
    return golden_same_doubles(expected, got);
}

static bool same_feed(const struct td_json *expected, const struct td_json *got)
{
    const struct td_json *a = td_json_get(expected, TD_STR("results"));
    const struct td_json *b = td_json_get(got, TD_STR("results"));
    if (!a || !b || a->count != b->count) {
        return false;
    }
    const struct td_json *y = td_json_first_child(b);
    for (const struct td_json *x = td_json_first_child(a); x; x = x->next, y = y->next) {
        if (!same_result(x, y)) {
            return false;
        }
    }
    return true;
}

const struct golden_topic golden_vpa_feed[] = {
    {.name = "vpa/feed", .run = run_feed, .is_same = same_feed},
    {.name = NULL},
};
