/*
 * What happens, as text: Kubernetes Events that matter to a user who watches an autoscaler,
 * and what no Event tells of, seen in the status of pods. What an autoscaler last decided about a
 * workload, or about its pods of one role, is kept.
 */
#include "base/error.h"
#include "base/limits.h"
#include "base/text.h"
#include "kube/client/events.h"
#include "sim/world/world_private.h"

/* ---- Telling ---- */

static void decide(struct td_world_workload *workload, td_str role, td_duration at, td_str words)
{
    struct td_world_part *part = td_world_part(workload, role);
    td_text_set(&part->decision, td_str_cut_utf8(words, TD_WORLD_DECISION_BYTES_MAX));
    part->decided_at = at;
}

/* The decision that an Event tells of: in its own words, or what an autoscaler that has none of
 * them says of the same deed. */
static td_str event_decision(const struct td_json *object, const struct td_world_event *event)
{
    static const td_str reasons[] = {
        TD_STR_INIT("SuccessfulRescale"),
        TD_STR_INIT("EvictedByVPA"),
        TD_STR_INIT("InPlaceResizedByVPA"),
    };
    const struct td_json *notes = td_json_get_path(object, "metadata.annotations");
    td_str words = td_json_get_str(notes, TD_STR(TD_EVENT_DECISION), TD_STR_EMPTY);
    for (size_t i = 0; words.len == 0 && i < TD_COUNT(reasons); i++) {
        words = td_str_equal(event->reason, reasons[i]) ? event->message : TD_STR_EMPTY;
    }
    return words;
}

void td_world_tell(struct td_world *world, const struct td_world_event *event)
{
    world->counts.events++;
    if (world->happened) {
        world->happened(event, world->context);
    }
}

/* ---- Events ---- */

/* Of the life of any pod, node or task: these are not shown. Resizes are told with what changed
 * instead; of a lost node its own Event is enough. */
static bool event_is_ordinary(td_str type, td_str reason, td_str kind)
{
    static const td_str reasons[] = {
        TD_STR_INIT("Scheduled"),       TD_STR_INIT("Pulling"),
        TD_STR_INIT("Pulled"),          TD_STR_INIT("Created"),
        TD_STR_INIT("Started"),         TD_STR_INIT("Killing"),
        TD_STR_INIT("SawCompletedJob"), TD_STR_INIT("Completed"),
        TD_STR_INIT("Starting"),        TD_STR_INIT("RegisteredNode"),
        TD_STR_INIT("NoPods"),          TD_STR_INIT("SandboxChanged"),
        TD_STR_INIT("ResizeStarted"),   TD_STR_INIT("ResizeCompleted"),
    };
    if (!td_str_equal(type, TD_STR("Normal"))) {
        return td_str_equal(kind, TD_STR("Pod")) && td_str_equal(reason, TD_STR("NodeNotReady"));
    }
    if (td_str_equal(reason, TD_STR("SuccessfulCreate")) ||
        td_str_equal(reason, TD_STR("SuccessfulDelete"))) {
        return !td_str_equal(kind, TD_STR("StatefulSet"));
    }
    return td_str_is_among(reason, reasons, TD_COUNT(reasons)) ||
           td_str_starts_with(reason, TD_STR("NodeHas"));
}

static td_str event_text(const struct td_json *object, const char *key)
{
    return td_json_get_str(object, td_str_from(key), TD_STR_EMPTY);
}

/* Whom is it about? An autoscaler's Event is about its target. */
static struct td_world_workload *event_workload(struct td_world *world,
                                                const struct td_json *involved, td_str *ret_role)
{
    td_str ns = event_text(involved, "namespace");
    td_str kind = event_text(involved, "kind");
    td_str name = event_text(involved, "name");
    *ret_role = TD_STR_EMPTY;
    if (td_str_equal(kind, TD_STR("Pod"))) {
        struct td_world_pod *pod = td_world_find_pod(world, ns, name);
        *ret_role = pod ? pod->role : TD_STR_EMPTY;
        return pod ? pod->workload : NULL;
    }
    struct td_world_scaler *scaler =
        td_map_get(&world->scalers, td_world_key(world, kind, ns, name));
    return scaler ? scaler->workload
                  : td_world_find_owner(world, event_text(involved, "apiVersion"), ns, kind, name);
}

void td_world_see_event(struct td_world *world, const struct td_stored *stored)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_json *object;
    if (td_json_parse(&arena, stored->json, NULL, &object, NULL) != TD_OK) {
        return;
    }
    const struct td_json *involved = td_json_get(object, TD_STR("involvedObject"));
    struct td_world_event event = {
        .at = td_engine_since(world->engine),
        .type = event_text(object, "type"),
        .reason = event_text(object, "reason"),
        .kind = event_text(involved, "kind"),
        .ns = event_text(involved, "namespace"),
        .name = event_text(involved, "name"),
        .message = event_text(object, "message"),
    };
    if (event_is_ordinary(event.type, event.reason, event.kind)) {
        return;
    }
    td_str role;
    struct td_world_workload *workload = event_workload(world, involved, &role);
    td_str words = event_decision(object, &event);
    if (workload && words.len > 0) {
        decide(workload, role, event.at, words);
    }
    event.decision = words;
    event.workload_kind = workload ? workload->kind : TD_STR_EMPTY;
    event.workload_name = workload ? workload->name : TD_STR_EMPTY;
    event.role = role;
    td_world_tell(world, &event);
}

/* ---- Pods ---- */

static void pod_tell(struct td_world *world, const struct td_world_pod *pod, td_str type,
                     td_str reason, td_str message)
{
    const struct td_world_event event = {
        .at = td_engine_since(world->engine),
        .type = type,
        .reason = reason,
        .kind = TD_STR("Pod"),
        .ns = pod->ns,
        .name = pod->name,
        .message = message,
        .decision = TD_STR_EMPTY,
        .workload_kind = pod->workload->kind,
        .workload_name = pod->workload->name,
        .role = pod->role,
    };
    td_world_tell(world, &event);
}

static void pod_see_kill(struct td_world *world, const struct td_world_pod *pod,
                         const struct td_world_pod_facts *facts)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    world->counts.kills++;
    pod_tell(world, pod, TD_STR("Warning"), TD_STR("OOMKilled"),
             td_arena_format(&arena, "container %.*s used more memory than its limit",
                             TD_STR_ARG(facts->killed)));
}

static void pod_see_eviction(struct td_world *world, const struct td_world_pod *pod,
                             const struct td_world_pod_facts *facts)
{
    world->counts.evictions++;
    td_world_part(pod->workload, pod->role)->eviction_count++;
    if (td_str_equal(facts->eviction, TD_STR("EvictionByEvictionAPI"))) {
        pod_tell(world, pod, TD_STR("Normal"), TD_STR("Evicted"),
                 TD_STR("evicted through the API"));
    }
}

static void pod_see_resize(struct td_world *world, const struct td_world_pod *pod,
                           const struct td_stored *before, const struct td_json *after)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    td_auto_buf text = td_buf_capped(TD_EVENT_MESSAGE_BYTES_MAX);
    struct td_json *old;
    if (td_json_parse(&arena, before->json, NULL, &old, NULL) != TD_OK) {
        return;
    }
    td_world_pod_write_sizes(old, after, &text);
    if (text.len == 0) {
        return; /* a container that has just started */
    }
    world->counts.resizes++;
    td_world_part(pod->workload, pod->role)->resize_count++;
    pod_tell(world, pod, TD_STR("Normal"), TD_STR("ResizeCompleted"), td_buf_str(&text));
}

void td_world_see_pod(struct td_world *world, struct td_world_pod *pod,
                      const struct td_world_pod_facts *facts, const struct td_stored *before,
                      const struct td_json *after)
{
    if (facts->restarts > pod->restarts) {
        uint64_t more = (uint64_t)(facts->restarts - pod->restarts);
        world->counts.restarts += more;
        td_world_part(pod->workload, pod->role)->restart_count += more;
    }
    if (facts->kill_stamp != pod->kill_stamp && facts->killed.len > 0) {
        pod_see_kill(world, pod, facts);
    }
    if (facts->is_evicted && !pod->is_evicted) {
        pod_see_eviction(world, pod, facts);
    }
    if (facts->size_stamp != pod->size_stamp && before) {
        pod_see_resize(world, pod, before, after);
    }
}
