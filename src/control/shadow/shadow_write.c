/*
 * The object of one VPA: what would be recommended, and the pods that would be evicted or resized.
 * It is made and changed by server-side apply and belongs to its VPA: when that is deleted the
 * garbage collector of the cluster deletes it too. So there is no verb here but apply.
 */
#include "base/alloc.h"
#include "base/limits.h"
#include "base/metrics.h"
#include "base/os/log.h"
#include "base/text.h"
#include "control/recommender/recommend_loop.h"
#include "control/shadow/shadow_private.h"
#include "decide/vertical/recommender/recommender.h"
#include "kube/client/client.h"
#include "kube/client/verbs.h"
#include "kube/objectkey.h"

#define SHADOW_PODS_MAX 100 /* named in one object */

const char *const shadow_by_names[SHADOW_BOTH] = {"tandem", "upstream"};
const char *const shadow_act_names[SHADOW_ACTS] = {"evict", "resize"};

static struct td_json *shadow_wishes(struct td_shadow *shadow, td_str vpa, enum shadow_by by)
{
    struct td_arena *arena = &shadow->arena;
    const struct td_updater_notes *notes = &shadow->notes[by];
    struct td_json *wishes = td_json_new_object(arena);
    size_t counts[SHADOW_ACTS] = {0};
    for (size_t i = 0; i < notes->count; i++) {
        const struct td_updater_note *note = &notes->items[i];
        enum shadow_act act = note->rule == TD_RULE_EVICTED ? SHADOW_EVICT : SHADOW_RESIZE;
        if (!td_updater_rule_is_action(note->rule) || !note->pod ||
            !td_str_equal(note->vpa->meta.name, vpa)) {
            continue;
        }
        shadow->wishes[by][act]++;
        if (counts[act]++ < SHADOW_PODS_MAX) {
            struct td_json *list =
                td_json_ensure_array(arena, wishes, td_str_from(shadow_act_names[act]));
            td_json_append(list, td_json_new_string(arena, note->pod->meta.name));
        }
    }
    return wishes;
}

/* ---- The object ---- */

static struct td_json *shadow_object(struct td_shadow *shadow, const struct td_vpa *vpa,
                                     const struct td_vpa_status *status)
{
    struct td_arena *arena = &shadow->arena;
    struct td_json *object = td_json_new_object(arena);
    td_json_set_str(arena, object, TD_STR("apiVersion"),
                    TD_STR(TD_SHADOW_GROUP "/" TD_SHADOW_VERSION));
    td_json_set_str(arena, object, TD_STR("kind"), TD_STR(TD_SHADOW_KIND));
    struct td_json *metadata = td_json_ensure_object(arena, object, TD_STR("metadata"));
    td_json_set_str(arena, metadata, TD_STR("name"), vpa->meta.name);
    td_json_set_str(arena, metadata, TD_STR("namespace"), vpa->meta.namespace);
    struct td_json *owner = td_json_new_object(arena);
    td_json_set_str(arena, owner, TD_STR("apiVersion"), TD_STR("autoscaling.k8s.io/v1"));
    td_json_set_str(arena, owner, TD_STR("kind"), TD_STR("VerticalPodAutoscaler"));
    td_json_set_str(arena, owner, TD_STR("name"), vpa->meta.name);
    td_json_set_str(arena, owner, TD_STR("uid"), vpa->meta.uid);
    td_json_append(td_json_ensure_array(arena, metadata, TD_STR("ownerReferences")), owner);
    if (status->recommendation.container_count > 0) {
        td_json_set(arena, object, TD_STR("recommendation"),
                    td_recommendation_encode(arena, &status->recommendation));
    }
    for (size_t by = 0; by < SHADOW_BOTH; by++) {
        td_json_set(arena, object, td_str_from(shadow_by_names[by]),
                    shadow_wishes(shadow, vpa->meta.name, (enum shadow_by)by));
    }
    return object;
}

static void shadow_sent_free(struct shadow_sent *sent)
{
    td_text_free(sent->key);
    td_free(sent);
}

static bool shadow_is_sent(const struct td_shadow *shadow, td_str key, uint64_t hash)
{
    const struct shadow_sent *sent = td_map_get(&shadow->sent, key);
    return sent && sent->hash == hash;
}

static void shadow_keep(struct td_shadow *shadow)
{
    struct shadow_sent *sent = td_map_get(&shadow->sent, shadow->sending);
    if (!sent) {
        sent = td_alloc_zero(1, sizeof(*sent));
        sent->key = td_text_copy(shadow->sending);
        if (td_map_put(&shadow->sent, sent->key, sent) != TD_OK) {
            shadow_sent_free(sent); /* it is sent again in each pass */
            return;
        }
    }
    sent->hash = shadow->sending_hash;
}

static void shadow_written(void *context, const struct td_client_reply *reply)
{
    struct td_shadow *shadow = context;
    td_str values[] = {reply->code == TD_OK ? TD_STR("false") : TD_STR("true")};
    shadow->call = NULL;
    td_metric_add(td_metric_series(shadow->writes_family, values), 1);
    if (reply->code == TD_OK) {
        shadow->is_told = false;
        shadow_keep(shadow);
    } else if (!shadow->is_told) {
        bool is_unknown = reply->code == TD_NOT_FOUND;
        shadow->is_told = true;
        td_log_line(shadow->options.control.log, TD_LOG_WARN,
                    is_unknown ? "cannot write the VPA's shadow object: "
                                 "'tandem manifests --shadow --only crds' has its definition"
                               : "cannot write the VPA's shadow object",
                    TD_LOG_S("vpa", shadow->sending), TD_LOG_C("error", reply->err.message));
    }
    shadow_go_on(shadow);
}

bool shadow_send(struct td_shadow *shadow, const struct td_informer_object *seen)
{
    struct td_arena *arena = &shadow->arena;
    struct td_vpa vpa;
    struct td_vpa_status status = {.pod_count = 0};
    if (td_recommend_loop_vpa(shadow->options.recommend, arena, seen->head.namespace,
                              seen->head.name, &vpa, &status, NULL) != TD_OK) {
        return false; /* another recommender's, or not linked yet */
    }
    shadow->vpa_count++;
    td_str body = td_json_line(arena, shadow_object(shadow, &vpa, &status));
    td_str key = td_object_key_text(arena, TD_OBJECT_KEY(seen->head.namespace, seen->head.name));
    uint64_t hash = td_map_hash(body);
    const struct td_api_path path = {
        .group = TD_STR(TD_SHADOW_GROUP),
        .version = TD_STR(TD_SHADOW_VERSION),
        .namespace = seen->head.namespace,
        .plural = TD_STR(TD_SHADOW_PLURAL),
        .name = seen->head.name,
    };
    const struct td_write_options write = {.field_manager = TD_STR("tandem-shadow")};
    struct td_client_request request;
    if (shadow_is_sent(shadow, key, hash) || td_arena_check(arena, NULL) != TD_OK ||
        td_verb_apply(arena, &path, body, true, &write, &request, NULL) != TD_OK) {
        return false;
    }
    shadow->sending = key;
    shadow->sending_hash = hash;
    request.flow = shadow->options.control.flow;
    shadow->call = td_client_send(shadow->options.control.client, &request, shadow_written, shadow);
    return true;
}

void shadow_forget(struct td_shadow *shadow, bool all)
{
    const struct td_cache *cache =
        td_informers_cache(shadow->options.control.informers, TD_INFORMER_VPAS);
    for (struct td_map_walk at = {.map = &shadow->sent}; td_map_step(&at);) {
        struct td_object_key key = td_object_key_read(at.key);
        if (all || !td_cache_get(cache, key.namespace, key.name)) {
            (void)td_map_remove(&shadow->sent, at.key); /* it is this one */
            shadow_sent_free(at.value);
        }
    }
}
