/*
 * What a world reads of a pod: a few facts, and stamps that change when a container was killed for
 * memory or when what it was given changes, so that most changes of a pod cost one look.
 */
#include "local/kinds/condition.h"
#include "sim/world/world_private.h"

#define POD_HASH_START UINT64_C(0xcbf29ce484222325)
#define POD_HASH_FACTOR UINT64_C(0x100000001b3)

static uint64_t pod_hash(uint64_t hash, td_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        hash = (hash ^ (unsigned char)text.ptr[i]) * POD_HASH_FACTOR;
    }
    return (hash ^ 0xff) * POD_HASH_FACTOR; /* "a" "bc" is not "ab" "c" */
}

static td_str pod_text(const struct td_json *object, const char *key)
{
    return td_json_get_str(object, td_str_from(key), TD_STR_EMPTY);
}

static const struct td_json *pod_first(const struct td_json *object, const char *key)
{
    const struct td_json *list = td_json_get(object, td_str_from(key));
    return td_json_first_child(list);
}

static uint64_t pod_hash_resources(uint64_t hash, const struct td_json *resources)
{
    static const char *const parts[] = {"requests", "limits"};
    for (size_t i = 0; i < TD_COUNT(parts); i++) {
        for (const struct td_json *m = pod_first(resources, parts[i]); m; m = m->next) {
            bool has_text =
                td_json_is(m, TD_JSON_TYPE_STRING) || td_json_is(m, TD_JSON_TYPE_NUMBER);
            hash = pod_hash(pod_hash(hash, m->key), has_text ? m->text : TD_STR_EMPTY);
        }
    }
    return hash;
}

/* The end of a container that was killed for memory, or NULL. */
static const struct td_json *pod_kill(const struct td_json *status)
{
    static const char *const paths[] = {"state.terminated", "lastState.terminated"};
    for (size_t i = 0; i < TD_COUNT(paths); i++) {
        const struct td_json *end = td_json_get_path(status, paths[i]);
        if (td_str_equal(pod_text(end, "reason"), TD_STR("OOMKilled"))) {
            return end;
        }
    }
    return NULL;
}

static void pod_read_container(const struct td_json *status, td_str *newest,
                               struct td_world_pod_facts *facts)
{
    const struct td_json *kill = pod_kill(status);
    td_str name = pod_text(status, "name");
    facts->restarts += td_json_get_int64(status, TD_STR("restartCount"), 0);
    facts->size_stamp = pod_hash_resources(pod_hash(facts->size_stamp, name),
                                           td_json_get(status, TD_STR("resources")));
    if (kill) {
        td_str finished = pod_text(kill, "finishedAt");
        facts->kill_stamp = pod_hash(pod_hash(facts->kill_stamp, name), finished);
        if (td_str_compare(finished, *newest) >= 0) { /* times of one form and zone */
            *newest = finished;
            facts->killed = name;
        }
    }
}

struct td_world_pod_facts td_world_pod_read(const struct td_json *pod)
{
    static const char *const lists[] = {"initContainerStatuses", "containerStatuses"};
    const struct td_json *status = td_json_get(pod, TD_STR("status"));
    struct td_world_pod_facts facts = {
        .phase = pod_text(status, "phase"),
        .is_ready = td_condition_is(status, TD_STR("Ready"), TD_STR("True")),
        .is_deleting = td_json_get_path(pod, "metadata.deletionTimestamp") != NULL,
        .kill_stamp = POD_HASH_START,
        .size_stamp = POD_HASH_START,
        .killed = TD_STR_EMPTY,
        .eviction = TD_STR_EMPTY,
    };
    td_str newest = TD_STR_EMPTY;
    for (size_t i = 0; i < TD_COUNT(lists); i++) {
        for (const struct td_json *c = pod_first(status, lists[i]); c; c = c->next) {
            pod_read_container(c, &newest, &facts);
        }
    }
    facts.size_stamp =
        pod_hash_resources(facts.size_stamp, td_json_get(status, TD_STR("resources")));
    if (td_condition_is(status, TD_STR("DisruptionTarget"), TD_STR("True"))) {
        facts.eviction = pod_text(td_condition_find(status, TD_STR("DisruptionTarget")), "reason");
    } else if (td_str_equal(pod_text(status, "reason"), TD_STR("Evicted"))) {
        facts.eviction = pod_text(status, "reason");
    }
    facts.is_evicted = facts.eviction.len > 0;
    return facts;
}

/* ---- Resizes ---- */

static void pod_write_change(const struct td_json *before, const struct td_json *after,
                             const char *part, td_str name, struct td_buf *buf)
{
    for (const struct td_json *m = pod_first(after, part); m; m = m->next) {
        const struct td_json *old = td_json_get(td_json_get(before, td_str_from(part)), m->key);
        if (!td_json_is(m, TD_JSON_TYPE_STRING) || !td_json_is(old, TD_JSON_TYPE_STRING) ||
            td_str_equal(m->text, old->text)) {
            continue;
        }
        bool is_limit = strcmp(part, "limits") == 0;
        (void)td_buf_append_format(buf, "%s%.*s %.*s%s %.*s -> %.*s", buf->len > 0 ? ", " : "",
                                   TD_STR_ARG(name), TD_STR_ARG(m->key), is_limit ? " limit" : "",
                                   TD_STR_ARG(old->text), TD_STR_ARG(m->text));
    }
}

static void pod_write_resources(const struct td_json *before, const struct td_json *after,
                                td_str name, struct td_buf *buf)
{
    const struct td_json *old = td_json_get(before, TD_STR("resources"));
    const struct td_json *now = td_json_get(after, TD_STR("resources"));
    pod_write_change(old, now, "requests", name, buf);
    pod_write_change(old, now, "limits", name, buf);
}

static const struct td_json *pod_find_status(const struct td_json *status, const char *list,
                                             td_str name)
{
    const struct td_json *found = pod_first(status, list);
    while (found && !td_str_equal(pod_text(found, "name"), name)) {
        found = found->next;
    }
    return found;
}

void td_world_pod_write_sizes(const struct td_json *before, const struct td_json *after,
                              struct td_buf *buf)
{
    static const char *const lists[] = {"initContainerStatuses", "containerStatuses"};
    const struct td_json *old = td_json_get(before, TD_STR("status"));
    const struct td_json *now = td_json_get(after, TD_STR("status"));
    pod_write_resources(old, now, TD_STR("pod"), buf);
    for (size_t i = 0; i < TD_COUNT(lists); i++) {
        for (const struct td_json *c = pod_first(now, lists[i]); c; c = c->next) {
            td_str name = pod_text(c, "name");
            const struct td_json *was = pod_find_status(old, lists[i], name);
            pod_write_resources(was, c, name, buf);
        }
    }
}
