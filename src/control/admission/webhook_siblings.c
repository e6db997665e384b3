/*
 * What a VPA or an Hvpa is judged beside: the objects of its kind in its namespace as they are
 * stored now. The informer lags by milliseconds, which is long enough for two objects of one
 * `kubectl apply` to miss each other, so the namespace is listed for every review, by a list that
 * began after the review came. Reviews that come while a list is under way share the next one:
 * there is one list at a time for each namespace.
 *
 * What this process has admitted and what no list shows yet is about to be stored, or was refused
 * by another: a review of the same target waits for it a moment and lists again. Where a list
 * fails, or there is no time for one, the informer counts, together with what this process has
 * admitted. Two processes that admit two objects at the same instant cannot see each other;
 * controllers find such pairs (recommend_vpas.c, hvpa_targets.c).
 */
#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/os/log.h"
#include "base/os/loop.h"
#include "base/text.h"
#include "base/vec.h"
#include "control/admission/webhook_private.h"
#include "control/informers/informers.h"
#include "kube/client/client.h"
#include "kube/paths.h"

#define SIBLINGS_PAGE "500"
#define SIBLINGS_SETTLE TD_SECOND            /* for what was admitted to be stored */
#define SIBLINGS_AGAIN (50 * TD_MILLISECOND) /* between two lists that look for it */
#define SIBLINGS_RECENT (5 * TD_SECOND)      /* the informer has it by then, or never will */

/* An object as it was admitted here. */
struct siblings_recent {
    td_str key; /* "hvpas/namespace/name"; owned */
    enum td_informer_kind kind;
    td_str namespace; /* owned, as the next two */
    td_str name;
    td_str target; /* "Deployment/web"; owned, as the next */
    td_str text;
    td_duration at; /* of the loop's steady clock */
};

/* One object of a list. */
struct siblings_item {
    td_str name;
    td_str target; /* "Deployment/web" */
    td_str text;   /* its metadata and spec */
};

/* What one list said. */
struct siblings_answer {
    td_duration began; /* machine's time; 0: there was none */
    int code;
    struct td_arena arena; /* of its items */
    size_t bytes;
    TD_VEC_FIELDS(struct siblings_item);
};

/* The lists of one kind in one namespace. */
struct siblings_list {
    struct webhook_siblings *all;
    enum td_informer_kind kind;
    td_str key;                   /* "hvpas/namespace"; owned */
    td_str namespace;             /* owned */
    struct td_client_call *call;  /* NULL: none is under way */
    struct siblings_answer next;  /* of the one under way */
    struct siblings_answer known; /* of the last that ended */
};

struct webhook_siblings {
    struct td_webhook *webhook;
    struct td_client_flow *flow;
    struct td_map lists;  /* by key */
    struct td_map recent; /* by key */
};

static const char *siblings_plural(enum td_informer_kind kind)
{
    return kind == TD_INFORMER_HVPAS ? "hvpas" : "verticalpodautoscalers";
}

static td_duration siblings_machine_now(const struct webhook_siblings *all)
{
    return td_clock_machine(td_loop_clock(all->webhook->options.control.loop));
}

static td_duration siblings_now(const struct webhook_siblings *all)
{
    return td_clock_steady(td_loop_clock(all->webhook->options.control.loop));
}

static td_str siblings_target(struct td_arena *arena, enum td_informer_kind kind,
                              const struct td_json *object)
{
    const struct td_json *target = td_informers_target(kind, object);
    return td_arena_format(arena, "%.*s/%.*s", TD_STR_ARG(td_json_text(target, "kind")),
                           TD_STR_ARG(td_json_text(target, "name")));
}

/* ---- What was admitted here ---- */

static void recent_free(struct siblings_recent *recent)
{
    td_text_free(recent->key);
    td_text_free(recent->namespace);
    td_text_free(recent->name);
    td_text_free(recent->target);
    td_text_free(recent->text);
    td_free(recent);
}

static td_str recent_key(struct td_arena *arena, enum td_informer_kind kind, td_str namespace,
                         td_str name)
{
    return td_arena_format(arena, "%s/%.*s/%.*s", siblings_plural(kind), TD_STR_ARG(namespace),
                           TD_STR_ARG(name));
}

static void recent_drop(struct webhook_siblings *all, td_str key)
{
    struct siblings_recent *recent = td_map_remove(&all->recent, key);
    if (recent) {
        recent_free(recent);
    }
}

static void recent_sweep(struct webhook_siblings *all)
{
    for (struct td_map_walk at = {.map = &all->recent}; td_map_step(&at);) {
        const struct siblings_recent *recent = at.value;
        if (siblings_now(all) - recent->at > SIBLINGS_RECENT) {
            recent_drop(all, recent->key);
        }
    }
}

void webhook_siblings_admitted(struct webhook_review *review, enum td_informer_kind kind)
{
    struct webhook_siblings *all = review->webhook->siblings;
    td_str key = recent_key(review->arena, kind, review->namespace, review->name);
    if (review->is_dry_run || review->name.len == 0) {
        return; /* it is not stored, or under a name that the server makes up */
    }
    recent_sweep(all);
    recent_drop(all, key);
    td_auto_buf text = td_buf_capped(TD_OBJECT_BYTES_MAX);
    td_json_write(review->object, &(struct td_json_format){.indent = 0}, &text);
    struct siblings_recent *recent = td_alloc_zero(1, sizeof(*recent));
    *recent = (struct siblings_recent){
        .key = td_text_copy(key),
        .kind = kind,
        .namespace = td_text_copy(review->namespace),
        .name = td_text_copy(review->name),
        .target = td_text_copy(siblings_target(review->arena, kind, review->object)),
        .text = td_text_copy(td_buf_str(&text)),
        .at = siblings_now(all),
    };
    if (text.is_full || td_map_put(&all->recent, recent->key, recent) != TD_OK) {
        recent_free(recent);
    }
}

/* The informer has it: from here on what is stored counts. */
static void recent_seen(struct webhook_siblings *all, enum td_informer_kind kind,
                        const struct td_informer_object *object)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    recent_drop(all, recent_key(&arena, kind, object->head.namespace, object->head.name));
}

static void recent_vpa(void *context, const void *object)
{
    recent_seen(context, TD_INFORMER_VPAS, object);
}

static void recent_hvpa(void *context, const void *object)
{
    recent_seen(context, TD_INFORMER_HVPAS, object);
}

static bool recent_is_edit(const struct td_informer_object *before,
                           const struct td_informer_object *after)
{
    return after->generation == 0 || after->generation != before->generation ||
           !td_str_equal(before->head.uid, after->head.uid);
}

static void recent_vpa_changed(void *context, const void *before, const void *after)
{
    if (recent_is_edit(before, after)) {
        recent_vpa(context, after);
    }
}

static void recent_hvpa_changed(void *context, const void *before, const void *after)
{
    if (recent_is_edit(before, after)) {
        recent_hvpa(context, after);
    }
}

/* ---- Lists ---- */

static void answer_init(struct siblings_answer *answer)
{
    *answer = (struct siblings_answer){.count_max = TD_CACHE_OBJECTS_MAX};
    td_arena_init(&answer->arena, TD_TREE_ARENA_BYTES_MAX);
}

static void answer_done(struct siblings_answer *answer)
{
    td_vec_done(answer);
    td_arena_done(&answer->arena);
}

static void list_free(struct siblings_list *list)
{
    td_client_cancel(list->call);
    answer_done(&list->next);
    answer_done(&list->known);
    td_text_free(list->key);
    td_text_free(list->namespace);
    td_free(list);
}

/* What no review can wait for any more is forgotten. */
static void list_sweep(struct webhook_siblings *all)
{
    td_duration oldest = siblings_machine_now(all) - all->webhook->options.deadline;
    for (struct td_map_walk at = {.map = &all->lists}; td_map_step(&at);) {
        struct siblings_list *list = at.value;
        if (!list->call && list->known.began < oldest) {
            (void)td_map_remove(&all->lists, list->key); /* it is there */
            list_free(list);
        }
    }
}

/* NULL: there are too many at this moment. */
static struct siblings_list *list_ensure(struct webhook_review *review, enum td_informer_kind kind)
{
    struct webhook_siblings *all = review->webhook->siblings;
    td_str key = td_arena_format(review->arena, "%s/%.*s", siblings_plural(kind),
                                 TD_STR_ARG(review->namespace));
    struct siblings_list *list = td_map_get(&all->lists, key);
    if (list) {
        return list;
    }
    list_sweep(all);
    list = td_alloc_zero(1, sizeof(*list));
    list->all = all;
    list->kind = kind;
    list->key = td_text_copy(key);
    list->namespace = td_text_copy(review->namespace);
    answer_init(&list->next);
    answer_init(&list->known);
    if (td_map_put(&all->lists, list->key, list) != TD_OK) {
        list_free(list);
        return NULL;
    }
    return list;
}

static void list_end(struct siblings_list *list, int code, const struct td_error *err)
{
    struct td_webhook *webhook = list->all->webhook;
    answer_done(&list->known);
    list->known = list->next;
    list->known.code = code;
    answer_init(&list->next);
    if (code != TD_OK) {
        td_log_line(webhook->options.control.log, TD_LOG_WARN,
                    "cannot list the namespace's VPAs or Hvpas, using the informer",
                    TD_LOG_S("list", list->key), TD_LOG_C("error", err->message));
    }
    webhook_server_retry(webhook->server);
}

/* Of an object what siblings are judged by. */
static int list_take(struct siblings_list *list, struct td_arena *arena, const struct td_json *item,
                     struct td_error *err)
{
    static const td_str keys[] = {TD_STR_INIT("name"), TD_STR_INIT("namespace"), TD_STR_INIT("uid"),
                                  TD_STR_INIT("creationTimestamp")};
    struct siblings_answer *next = &list->next;
    const struct td_json *given = td_json_get(item, TD_STR("metadata"));
    struct td_json *made = td_json_new_object(arena);
    struct td_json *metadata = td_json_ensure_object(arena, made, TD_STR("metadata"));
    for (size_t i = 0; i < TD_COUNT(keys); i++) {
        td_json_set_str(arena, metadata, keys[i], td_json_get_str(given, keys[i], TD_STR_EMPTY));
    }
    const struct td_json *spec = td_json_get(item, TD_STR("spec"));
    if (spec) {
        td_json_set(arena, made, TD_STR("spec"), td_json_copy(arena, spec, false));
    }
    td_auto_buf text = td_buf_capped(TD_OBJECT_BYTES_MAX);
    td_json_write(made, &(struct td_json_format){.indent = 0}, &text);
    next->bytes += text.len;
    struct siblings_item *place = td_vec_push(next);
    if (!place || text.is_full || next->bytes > TD_WEBHOOK_LIST_BYTES_MAX) {
        return td_error_set(err, TD_LIMIT, "the namespace has too many objects of this kind");
    }
    *place = (struct siblings_item){
        .name = td_arena_copy_str(&next->arena, td_json_text(given, "name")),
        .target = siblings_target(&next->arena, list->kind, item),
        .text = td_arena_copy_str(&next->arena, td_buf_str(&text)),
    };
    return TD_OK;
}

static int list_take_page(struct siblings_list *list, const struct td_client_reply *reply,
                          struct td_arena *arena, td_str *ret_next, struct td_error *err)
{
    struct td_json *page = NULL;
    *err = reply->err;
    int code = reply->code;
    code = code == TD_OK ? td_json_parse(arena, reply->body, NULL, &page, err) : code;
    const struct td_json *item = td_json_first_item(td_json_get(page, TD_STR("items")));
    for (; code == TD_OK && item; item = item->next) {
        code = list_take(list, arena, item, err);
    }
    *ret_next = td_json_text(td_json_get(page, TD_STR("metadata")), "continue");
    return code;
}

static void list_ask(struct siblings_list *list, td_str next);

static void list_answered(void *context, const struct td_client_reply *reply)
{
    struct siblings_list *list = context;
    struct td_error err = TD_ERROR_INIT;
    td_str next = TD_STR_EMPTY;
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    list->call = NULL;
    int code = list_take_page(list, reply, &arena, &next, &err);
    if (code == TD_OK && next.len > 0) {
        list_ask(list, next);
        return;
    }
    list_end(list, code, &err);
}

static void list_ask(struct siblings_list *list, td_str next)
{
    const struct td_webhook_options *options = &list->all->webhook->options;
    td_auto_buf path = td_buf_capped(TD_METRICS_PATH_BYTES_MAX);
    const struct td_api_path collection = {
        .group = TD_STR("autoscaling.k8s.io"),
        .version = list->kind == TD_INFORMER_HVPAS ? TD_STR("v1alpha1") : TD_STR("v1"),
        .namespace = list->namespace,
        .plural = td_str_from(siblings_plural(list->kind)),
    };
    struct td_error err = TD_ERROR_INIT;
    int code = td_path_write(&collection, &path, &err);
    td_path_add_query(&path, TD_STR("limit"), TD_STR(SIBLINGS_PAGE));
    if (next.len > 0) {
        td_path_add_query(&path, TD_STR("continue"), next);
    }
    code = code == TD_OK ? td_buf_check(&path, "the path", &err) : code;
    if (code != TD_OK) {
        list_end(list, code, &err);
        return;
    }
    const struct td_client_request request = {
        .flow = list->all->flow,
        .method = TD_STR("GET"),
        .path = td_buf_str(&path),
        .deadline = options->deadline / 2, /* the rest is for the answer without it */
        .tries_max = 1,
    };
    list->call = td_client_send(options->control.client, &request, list_answered, list);
}

/* ---- The question ---- */

static bool siblings_has(const struct webhook_sibling_list *found, td_str name)
{
    for (size_t i = 0; i < found->count; i++) {
        const struct td_json *metadata = td_json_get(found->items[i], TD_STR("metadata"));
        if (td_str_equal(td_json_text(metadata, "name"), name)) {
            return true;
        }
    }
    return false;
}

static void siblings_add(struct webhook_review *review, td_str text,
                         struct webhook_sibling_list *ret)
{
    struct td_json *tree;
    if (text.len > TD_WEBHOOK_SIBLINGS_BYTES_MAX - ret->bytes) {
        return; /* more than any target has; the controllers check again */
    }
    ret->bytes += text.len;
    if (td_json_parse(review->arena, text, &(struct td_json_options){.copy_strings = true}, &tree,
                      NULL) == TD_OK) {
        ret->items =
            td_arena_grow(review->arena, ret->items, ret->count, &ret->cap, sizeof(*ret->items));
        ret->items[ret->count++] = tree;
    }
}

/* What was admitted here on the same target, not in `ret` and no older than that. */
static void siblings_add_recent(struct webhook_review *review, enum td_informer_kind kind,
                                td_str target, td_duration age_max,
                                struct webhook_sibling_list *ret)
{
    struct webhook_siblings *all = review->webhook->siblings;
    for (struct td_map_walk at = {.map = &all->recent}; td_map_step(&at);) {
        const struct siblings_recent *recent = at.value;
        bool is_near = recent->kind == kind && siblings_now(all) - recent->at <= age_max &&
                       td_str_equal(recent->namespace, review->namespace) &&
                       td_str_equal(recent->target, target);
        if (is_near && !td_str_equal(recent->name, review->name) &&
            !siblings_has(ret, recent->name)) {
            siblings_add(review, recent->text, ret);
        }
    }
}

static void siblings_of_informer(struct webhook_review *review, enum td_informer_kind kind,
                                 td_str target, struct webhook_sibling_list *ret)
{
    const struct td_cache *cache =
        td_informers_cache(review->webhook->options.control.informers, kind);
    size_t position = 0;
    siblings_add_recent(review, kind, target, SIBLINGS_RECENT, ret);
    size_t admitted = ret->count; /* they are newer than what the informer has of them */
    td_auto_arena look = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    for (const struct td_informer_object *object;
         cache && (object = td_cache_next(cache, &position));) {
        struct td_json *tree;
        const struct webhook_sibling_list newer = {.items = ret->items, .count = admitted};
        if (td_str_equal(object->head.namespace, review->namespace) &&
            !td_str_equal(object->head.name, review->name) &&
            !siblings_has(&newer, object->head.name) &&
            td_informers_tree(&look, object, &tree, NULL) == TD_OK &&
            td_str_equal(siblings_target(&look, kind, tree), target)) {
            siblings_add(review, object->text, ret);
        }
        td_arena_reset(&look);
    }
    webhook_metrics_siblings(review->webhook, "informer");
    if (!cache || !td_cache_is_synced(cache)) {
        webhook_metrics_undecided(review->webhook,
                                  "siblings-unknown"); /* the controllers check again */
    }
}

/* False: something that was admitted here is not in the list yet. */
static bool siblings_of_list(struct webhook_review *review, const struct siblings_list *list,
                             td_str target, struct webhook_sibling_list *ret)
{
    for (size_t i = 0; i < list->known.count; i++) {
        const struct siblings_item *item = &list->known.items[i];
        if (td_str_equal(item->target, target) && !td_str_equal(item->name, review->name)) {
            siblings_add(review, item->text, ret);
        }
    }
    struct webhook_sibling_list more = *ret;
    siblings_add_recent(review, list->kind, target, SIBLINGS_SETTLE, &more);
    return more.count == ret->count;
}

int webhook_siblings_get(struct webhook_review *review, enum td_informer_kind kind,
                         struct webhook_sibling_list *ret)
{
    struct webhook_siblings *all = review->webhook->siblings;
    struct siblings_list *list = review->attempt->can_wait ? list_ensure(review, kind) : NULL;
    td_str target = siblings_target(review->arena, kind, review->object);
    bool is_last = review->attempt->is_last;
    bool is_known = list && list->known.began >= review->attempt->since;
    *ret = (struct webhook_sibling_list){.count = 0};
    if (is_known && list->known.code == TD_OK) {
        if (siblings_of_list(review, list, target, ret) || is_last) {
            webhook_metrics_siblings(review->webhook, "list");
            return TD_OK;
        }
    } else if (!list || is_known || is_last) {
        siblings_of_informer(review, kind, target, ret);
        return TD_OK;
    }
    if (!list->call &&
        (!is_known || siblings_machine_now(all) - list->known.began >= SIBLINGS_AGAIN)) {
        list->next.began = siblings_machine_now(all);
        list_ask(list, TD_STR_EMPTY);
    }
    review->waits = true;
    return TD_BUSY;
}

/* ---- The whole ---- */

struct webhook_siblings *webhook_siblings_new(struct td_webhook *webhook)
{
    static const struct td_cache_handler vpas = {
        .added = recent_vpa, .changed = recent_vpa_changed, .deleted = recent_vpa};
    static const struct td_cache_handler hvpas = {
        .added = recent_hvpa, .changed = recent_hvpa_changed, .deleted = recent_hvpa};
    struct webhook_siblings *all = td_alloc_zero(1, sizeof(*all));
    struct td_informers *informers = webhook->options.control.informers;
    all->webhook = webhook;
    all->flow = td_client_flow_new(webhook->options.control.client, TD_STR("siblings"));
    td_map_init(&all->lists, TD_WEBHOOK_LISTS_MAX);
    td_map_init(&all->recent, TD_WEBHOOK_RECENT_MAX);
    td_informers_subscribe(informers, TD_INFORMER_VPAS, &vpas, all);
    td_informers_subscribe(informers, TD_INFORMER_HVPAS, &hvpas, all);
    return all;
}

void webhook_siblings_free(struct webhook_siblings *all)
{
    if (!all) {
        return;
    }
    for (struct td_map_walk at = {.map = &all->lists}; td_map_step(&at);) {
        list_free(at.value);
    }
    for (struct td_map_walk at = {.map = &all->recent}; td_map_step(&at);) {
        recent_drop(all, at.key);
    }
    td_map_done(&all->lists);
    td_map_done(&all->recent);
    td_client_flow_free(all->flow);
    td_free(all);
}
