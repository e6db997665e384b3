/*
 * Three reads in a row, each judged when the last is there. A pod whose owner is of no kind with a
 * template (a table below says which have one) is evicted unseen.
 */
#include "control/replacement.h"

#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/text.h"
#include "control/informers/informers.h"
#include "kube/client/client.h"
#include "kube/paths.h"
#include "model/owners.h"

#define REPLACEMENT_EVENTS_MAX "500"

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
    for (size_t i = 0; i < TD_COUNT(replacement_kinds); i++) {
        if (td_str_equal(replacement_kinds[i].kind, kind)) {
            return &replacement_kinds[i];
        }
    }
    return NULL;
}

void td_replacement_facts_init(struct td_replacement_facts *facts)
{
    *facts = (struct td_replacement_facts){.reading = TD_REPLACEMENT_OWNER};
    td_arena_init(&facts->arena, TD_TREE_ARENA_BYTES_MAX);
}

void td_replacement_facts_done(struct td_replacement_facts *facts)
{
    td_text_free(facts->uid);
    facts->uid = (td_str){.ptr = NULL};
    td_replacement_facts_reset(facts);
    td_arena_done(&facts->arena);
}

void td_replacement_facts_reset(struct td_replacement_facts *facts)
{
    td_arena_reset(&facts->arena);
    for (size_t i = 0; i < TD_REPLACEMENT_PARTS; i++) {
        facts->read[i] = NULL;
        facts->is_read[i] = false;
    }
    facts->failure = TD_STR_EMPTY;
}

bool td_replacement_facts_turn(struct td_replacement_facts *facts, const struct td_pod *pod,
                               struct td_controller *ret_owner)
{
    if (!td_controller_of_pod(&pod->meta, ret_owner) || !replacement_kind_of(ret_owner->kind)) {
        return false;
    }
    if (!td_str_equal(facts->uid, ret_owner->uid)) {
        td_replacement_facts_done(facts);
        facts->uid = td_text_copy(ret_owner->uid);
    }
    return true;
}

/* ---- Reading ---- */

static td_str replacement_path(struct td_arena *arena, const struct td_controller *owner,
                               enum td_replacement_part part)
{
    const struct replacement_kind *kind = replacement_kind_of(owner->kind);
    const struct td_api_path paths[] = {
        [TD_REPLACEMENT_OWNER] = {.group = kind->group,
                                  .version = TD_STR("v1"),
                                  .namespace = owner->namespace,
                                  .plural = kind->plural,
                                  .name = owner->name},
        [TD_REPLACEMENT_QUOTAS] = {.version = TD_STR("v1"),
                                   .namespace = owner->namespace,
                                   .plural = TD_STR("resourcequotas")},
        [TD_REPLACEMENT_EVENTS] = {.version = TD_STR("v1"),
                                   .namespace = owner->namespace,
                                   .plural = TD_STR("events")},
    };
    td_auto_buf path = td_buf_capped(TD_OBJECT_BYTES_MAX);
    (void)td_path_write(&paths[part], &path, NULL); /* a bad name is answered 404 */
    if (part == TD_REPLACEMENT_EVENTS) {
        td_path_add_query(
            &path, TD_STR("fieldSelector"),
            td_arena_format(arena, "involvedObject.uid=%.*s", TD_STR_ARG(owner->uid)));
        td_path_add_query(&path, TD_STR("limit"), TD_STR(REPLACEMENT_EVENTS_MAX));
    }
    return td_arena_copy_str(arena, td_buf_str(&path));
}

void td_replacement_facts_take(struct td_replacement_facts *facts,
                               const struct td_client_reply *reply)
{
    struct td_json *tree = NULL;
    struct td_error err = reply->err;
    int code = reply->code;
    if (code == TD_OK) {
        code = td_json_parse(&facts->arena, reply->body,
                             &(struct td_json_options){.copy_strings = true}, &tree, &err);
    }
    bool is_owner = facts->reading == TD_REPLACEMENT_OWNER;
    tree = code == TD_OK ? tree : NULL;
    facts->is_read[facts->reading] = true;
    facts->read[facts->reading] = is_owner ? tree : td_json_get(tree, TD_STR("items"));
    if (is_owner && code != TD_OK) {
        facts->failure = td_arena_copy_str(&facts->arena, td_str_from(err.message));
    }
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

static td_str replacement_problem(const struct td_replacement_facts *facts, struct td_arena *arena,
                                  const struct td_control *control,
                                  struct td_replacement_input *input)
{
    const struct td_json *owner = facts->read[TD_REPLACEMENT_OWNER];
    td_str namespace = input->pod->meta.namespace;
    td_str problem = td_owner_problem(arena, owner, facts->read[TD_REPLACEMENT_EVENTS]);
    input->template = td_json_get_path(owner, "spec.template");
    input->gates = control->gates;
    input->limits = td_informers_limits(control->informers, namespace);
    input->limit_objects = td_informers_limit_objects(control->informers, namespace);
    input->quotas = replacement_quotas(arena, facts->read[TD_REPLACEMENT_QUOTAS]);
    return problem.len > 0 || !input->template ? problem : td_replacement_problem(arena, input);
}

enum td_replacement_verdict
td_replacement_facts_judge(struct td_replacement_facts *facts, struct td_arena *arena,
                           const struct td_control *control, const struct td_controller *owner,
                           struct td_replacement_input *input,
                           struct td_client_request *ret_request, td_str *ret_why)
{
    for (size_t part = 0; part < TD_REPLACEMENT_PARTS; part++) {
        if (!facts->is_read[part]) {
            facts->reading = (enum td_replacement_part)part;
            *ret_request = (struct td_client_request){
                .flow = control->flow,
                .method = TD_STR("GET"),
                .path = replacement_path(arena, owner, facts->reading),
            };
            return TD_REPLACEMENT_READING;
        }
    }
    *ret_why = facts->failure;
    if (ret_why->len > 0) {
        return TD_REPLACEMENT_UNKNOWN;
    }
    *ret_why = replacement_problem(facts, arena, control, input);
    return ret_why->len > 0 ? TD_REPLACEMENT_REFUSED : TD_REPLACEMENT_FINE;
}
