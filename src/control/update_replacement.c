/*
 * Before an eviction the pod that would replace the evicted one is judged
 * (decide/vertical/replacement.h). What that needs is read from the API server for the few pods to
 * be evicted, so no informer keeps whole templates: the owner of the pod, the ResourceQuotas of the
 * namespace, and the events about the owner, which tell of replacements that were refused. What was
 * read serves for all siblings until one of them is evicted; then it is read again, a little later
 * where the replacement is not there yet. Without the right to list quotas or events these are left
 * out; an owner that cannot be read means no eviction.
 */
#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/text.h"
#include "control/update_private.h"
#include "decide/vertical/replacement.h"
#include "kube/client.h"
#include "kube/verbs.h"

#define REPLACEMENT_PAUSE (100 * TD_MILLISECOND)
#define REPLACEMENT_WAITS_MAX                                                                      \
    20 /* for the replacement of a sibling; a StatefulSet's takes longer */
#define REPLACEMENT_EVENTS_MAX "500"

enum replacement_part { REPLACEMENT_OWNER, REPLACEMENT_QUOTAS, REPLACEMENT_EVENTS };
#define REPLACEMENT_PARTS 3

struct update_replacement {
    struct td_arena arena; /* of what was read */
    td_str uid;            /* of the owner that it is about, owned; empty: none */
    const struct td_json *read[REPLACEMENT_PARTS];
    bool is_read[REPLACEMENT_PARTS];
    td_str failure; /* why the owner cannot be read; in the arena */
    size_t evicted; /* pods of this owner, in this pass */
    unsigned waits; /* since the last of them */
    enum replacement_part asked;
};

static const struct replacement_kind {
    td_str kind;
    td_str group;
    td_str plural;
} replacement_kinds[] = {
    {TD_STR_INIT("DaemonSet"), TD_STR_INIT("apps"), TD_STR_INIT("daemonsets")},
    {TD_STR_INIT("Job"), TD_STR_INIT("batch"), TD_STR_INIT("jobs")},
    {TD_STR_INIT("ReplicaSet"), TD_STR_INIT("apps"), TD_STR_INIT("replicasets")},
    {TD_STR_INIT("ReplicationController"), TD_STR_INIT(""), TD_STR_INIT("replicationcontrollers")},
    {TD_STR_INIT("StatefulSet"), TD_STR_INIT("apps"), TD_STR_INIT("statefulsets")},
};

static const struct replacement_kind *replacement_kind_of(td_str kind)
{
    for (size_t i = 0; i < sizeof(replacement_kinds) / sizeof(replacement_kinds[0]); i++) {
        if (td_str_equal(replacement_kinds[i].kind, kind)) {
            return &replacement_kinds[i];
        }
    }
    return NULL;
}

struct update_replacement *update_replacement_new(void)
{
    struct update_replacement *replacement = td_alloc_zero(1, sizeof(*replacement));
    td_arena_init(&replacement->arena, TD_TREE_ARENA_BYTES_MAX);
    return replacement;
}

void update_replacement_free(struct update_replacement *replacement)
{
    td_text_free(replacement->uid);
    td_arena_done(&replacement->arena);
    td_free(replacement);
}

static void replacement_forget_read(struct update_replacement *replacement)
{
    td_arena_reset(&replacement->arena);
    for (size_t i = 0; i < REPLACEMENT_PARTS; i++) {
        replacement->read[i] = NULL;
        replacement->is_read[i] = false;
    }
    replacement->failure = TD_STR_EMPTY;
}

void update_replacement_forget(struct update_replacement *replacement)
{
    replacement_forget_read(replacement);
    td_arena_done(&replacement->arena);
    td_text_free(replacement->uid);
    replacement->uid = (td_str){.ptr = NULL};
    replacement->evicted = 0;
    replacement->waits = 0;
}

void update_replacement_evicted(struct update_replacement *replacement)
{
    replacement_forget_read(replacement);
    replacement->evicted++;
    replacement->waits = 0;
}

/* ---- Reading ---- */

static void replacement_answered(void *context, const struct td_client_reply *reply)
{
    struct td_update_loop *loop = context;
    struct update_replacement *replacement = loop->replacement;
    struct td_json *tree = NULL;
    struct td_error err = reply->err;
    enum replacement_part part = replacement->asked;
    loop->call = NULL;
    int code = reply->code;
    if (code == TD_OK) {
        code = td_json_parse(&replacement->arena, reply->body,
                             &(struct td_json_options){.copy_strings = true}, &tree, &err);
    }
    replacement->is_read[part] = true;
    if (part == REPLACEMENT_OWNER) {
        replacement->read[part] = code == TD_OK ? tree : NULL;
        replacement->failure =
            code == TD_OK ? TD_STR_EMPTY
                          : td_arena_copy_str(&replacement->arena, td_str_from(err.message));
    } else {
        replacement->read[part] = code == TD_OK ? td_json_get(tree, TD_STR("items")) : NULL;
    }
    update_go_on(loop);
}

/* What is asked, as a path with its parameters. */
static void replacement_path(const struct td_controller *owner, enum replacement_part part,
                             struct td_buf *out)
{
    const struct replacement_kind *kind = replacement_kind_of(owner->kind);
    const struct td_api_path paths[] = {
        [REPLACEMENT_OWNER] = {.group = kind->group,
                               .version = TD_STR("v1"),
                               .namespace = owner->namespace,
                               .plural = kind->plural,
                               .name = owner->name},
        [REPLACEMENT_QUOTAS] = {.version = TD_STR("v1"),
                                .namespace = owner->namespace,
                                .plural = TD_STR("resourcequotas")},
        [REPLACEMENT_EVENTS] = {.version = TD_STR("v1"),
                                .namespace = owner->namespace,
                                .plural = TD_STR("events")},
    };
    (void)td_path_write(&paths[part], out, NULL); /* a bad name is answered 404 */
    if (part == REPLACEMENT_EVENTS) {
        td_auto_buf selector;
        td_buf_init(&selector, TD_OBJECT_BYTES_MAX);
        (void)td_buf_append_format(&selector, "involvedObject.uid=%.*s", TD_STR_ARG(owner->uid));
        td_path_add_query(out, TD_STR("fieldSelector"), td_buf_str(&selector));
        td_path_add_query(out, TD_STR("limit"), TD_STR(REPLACEMENT_EVENTS_MAX));
    }
}

static void replacement_ask(struct td_update_loop *loop, const struct td_controller *owner,
                            enum replacement_part part)
{
    td_auto_buf path;
    td_buf_init(&path, TD_OBJECT_BYTES_MAX);
    replacement_path(owner, part, &path);
    const struct td_client_request request = {
        .flow = loop->options.control.flow,
        .method = TD_STR("GET"),
        .path = td_buf_str(&path),
    };
    loop->replacement->asked = part;
    loop->phase = UPDATE_ACTING;
    loop->call = td_client_send(loop->options.control.client, &request, replacement_answered, loop);
}

/* ---- Judging ---- */

static struct td_quota_objects replacement_quotas(struct td_arena *arena,
                                                  const struct td_json *list)
{
    size_t count = td_json_is(list, TD_JSON_TYPE_ARRAY) ? list->count : 0;
    const struct td_json **items = td_arena_array(arena, const struct td_json *, count + 1);
    const struct td_json *item = td_json_first_item(list);
    for (size_t i = 0; item; item = item->next) {
        items[i++] = item;
    }
    return (struct td_quota_objects){.items = items, .count = count};
}

static td_str replacement_problem(struct td_update_loop *loop)
{
    const struct update_replacement *replacement = loop->replacement;
    const struct td_control *control = &loop->options.control;
    struct td_arena *arena = &loop->arena;
    const struct td_json *owner = replacement->read[REPLACEMENT_OWNER];
    td_str namespace = loop->action.pod->meta.namespace;
    td_str problem = td_owner_problem(arena, owner, replacement->read[REPLACEMENT_EVENTS]);
    const struct td_replacement_input input = {
        .template = td_json_get_path(owner, "spec.template"),
        .pod = loop->action.pod,
        .vpa = loop->action.vpa,
        .limits = td_sight_limits(control->sight, namespace),
        .limit_objects = td_sight_limit_objects(control->sight, namespace),
        .quotas = replacement_quotas(arena, replacement->read[REPLACEMENT_QUOTAS]),
        .gates = control->gates,
        .max_cpu_boost = loop->options.max_cpu_boost,
        .largest_node = control->caps_to_node ? td_sight_largest_node(control->sight, arena) : NULL,
        .warns_of_limit_range = loop->options.config.warns_of_limit_range,
    };
    return problem.len > 0 || !input.template ? problem : td_replacement_problem(arena, &input);
}

/* Pods of the owner that were not there when the pass began. */
static size_t replacement_count_new(struct td_update_loop *loop, const struct td_controller *owner)
{
    struct td_sight *sight = loop->options.control.sight;
    const struct td_workload_source *source = td_sight_source(sight);
    const struct td_workload *workload =
        source->get_workload(source->context, owner->kind, owner->namespace, owner->name);
    if (!workload || workload->selector_error.len > 0) {
        return 0;
    }
    size_t count = 0;
    struct td_sight_match match;
    td_sight_match_pods(sight, owner->namespace, &workload->selector, &match);
    for (const struct td_sight_pod *pod; (pod = td_sight_match_next(&match));) {
        const struct td_vertical_pod known = {.meta = {.uid = pod->object.head.uid}};
        count += !pod->object.is_deleting && !td_updater_state_find(loop->pass.input.state, &known);
    }
    return count;
}

/* Is the replacement of a sibling that was just evicted still to come? Its fate is known soon. */
static bool replacement_is_awaited(struct td_update_loop *loop, const struct td_controller *owner)
{
    struct update_replacement *replacement = loop->replacement;
    return replacement->evicted > 0 && replacement->waits < REPLACEMENT_WAITS_MAX &&
           replacement_count_new(loop, owner) < replacement->evicted;
}

enum update_verdict update_replacement_judge(struct td_update_loop *loop, td_str *ret_why)
{
    struct update_replacement *replacement = loop->replacement;
    struct td_controller owner;
    *ret_why = TD_STR_EMPTY;
    if (!td_controller_of_pod(&loop->action.pod->meta, &owner) ||
        !replacement_kind_of(owner.kind)) {
        return UPDATE_VERDICT_FINE; /* its template is not known */
    }
    if (!td_str_equal(replacement->uid, owner.uid)) {
        update_replacement_forget(replacement);
        replacement->uid = td_text_copy(owner.uid);
    }
    if (!replacement->is_read[REPLACEMENT_OWNER] && replacement_is_awaited(loop, &owner)) {
        replacement->waits++;
        update_pause(loop, REPLACEMENT_PAUSE);
        return UPDATE_VERDICT_ASKED;
    }
    for (size_t part = 0; part < REPLACEMENT_PARTS; part++) {
        if (!replacement->is_read[part]) {
            replacement_ask(loop, &owner, (enum replacement_part)part);
            return UPDATE_VERDICT_ASKED;
        }
    }
    if (replacement->failure.len > 0) {
        *ret_why = td_arena_format(&loop->arena, "its owner cannot be read: %.*s",
                                   TD_STR_ARG(replacement->failure));
        return UPDATE_VERDICT_UNKNOWN;
    }
    *ret_why = replacement_problem(loop);
    return ret_why->len > 0 ? UPDATE_VERDICT_REFUSED : UPDATE_VERDICT_FINE;
}
