/*
 * Replicas that come back unchanged: an eviction only helps when the webhook writes the new
 * requests into the pod that replaces the evicted one. When it does not, evicting again would go on
 * for ever. So each eviction leaves a note in its group; the next pod of that group that was never
 * seen before takes the note and with it the replica's history: with other requests than the
 * evicted one it starts afresh, with the same it has one more eviction without effect. Names tell
 * which replica came back only where the controller gives them again (StatefulSets); elsewhere any
 * pod with the same requests stands for it, which can only lead to fewer evictions.
 */
#include "decide/vertical/updater/updater_state.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/json/json.h"
#include "base/limits.h"
#include "base/text.h"
#include "base/vec.h"
#include "kube/objectkey.h"
#include "model/owners.h"

/* When a pod was first and last seen resizing. */
struct resize_first_seen {
    td_str key;
    td_time first;
    td_time last;
};

/* A replica of a group was evicted to bring about a recommendation; the name is the pod's where the
 * controller gives names back (StatefulSet), else empty. */
struct rebirth {
    td_str name;
    uint64_t requests;
    uint64_t recommendation;
    int fruitless;
    td_time at;
};

struct rebirths {
    td_str key;
    TD_VEC_FIELDS(struct rebirth); /* oldest first; names owned */
};

static void disown(td_str *text)
{
    td_text_free(*text);
    *text = (td_str){.ptr = NULL, .len = 0};
}

void td_updater_state_init(struct td_updater_state *state)
{
    *state = (struct td_updater_state){.pass = 0};
    td_map_init(&state->pods, TD_UPDATER_PODS_MAX);
    td_map_init(&state->resizing, TD_UPDATER_PODS_MAX);
    td_map_init(&state->rebirths, TD_CONTROLLERS_MAX);
}

static void free_pod(struct td_pod_memory *memory)
{
    disown(&memory->key);
    disown(&memory->vpa);
    disown(&memory->failed);
    td_free(memory);
}

static void free_rebirths(struct rebirths *rebirths)
{
    for (size_t i = 0; i < rebirths->count; i++) {
        disown(&rebirths->items[i].name);
    }
    td_vec_done(rebirths);
    disown(&rebirths->key);
    td_free(rebirths);
}

static void free_first_seen(struct resize_first_seen *first_seen)
{
    disown(&first_seen->key);
    td_free(first_seen);
}

void td_updater_state_done(struct td_updater_state *state)
{
    for (struct td_map_walk at = {.map = &state->pods}; td_map_step(&at);) {
        free_pod(at.value);
    }
    for (struct td_map_walk at = {.map = &state->resizing}; td_map_step(&at);) {
        free_first_seen(at.value);
    }
    for (struct td_map_walk at = {.map = &state->rebirths}; td_map_step(&at);) {
        free_rebirths(at.value);
    }
    td_map_done(&state->pods);
    td_map_done(&state->resizing);
    td_map_done(&state->rebirths);
    disown(&state->resume);
}

void td_updater_state_set_resume(struct td_updater_state *state, td_str vpa)
{
    td_str old = state->resume;
    state->resume = td_text_copy(vpa);
    disown(&old);
}

void td_updater_state_begin(struct td_updater_state *state)
{
    state->pass++;
}

static void drop_old_rebirths(struct rebirths *rebirths, td_time now)
{
    while (rebirths->count > 0 && now - rebirths->items[0].at > TD_FRUITLESS_PAUSE) {
        disown(&rebirths->items[0].name);
        td_vec_remove(rebirths, 0);
    }
}

void td_updater_state_end(struct td_updater_state *state, td_time now)
{
    for (struct td_map_walk at = {.map = &state->pods}; td_map_step(&at);) {
        struct td_pod_memory *memory = at.value;
        if (memory->pass != state->pass) {
            (void)td_map_remove(&state->pods, memory->key); /* it is this one */
            free_pod(memory);
        }
    }
    for (struct td_map_walk at = {.map = &state->resizing}; td_map_step(&at);) {
        struct resize_first_seen *first_seen = at.value;
        if (now - first_seen->last > TD_RESIZE_MEMORY) {
            (void)td_map_remove(&state->resizing, first_seen->key); /* it is this one */
            free_first_seen(first_seen);
        }
    }
    for (struct td_map_walk at = {.map = &state->rebirths}; td_map_step(&at);) {
        struct rebirths *rebirths = at.value;
        drop_old_rebirths(rebirths, now);
        if (rebirths->count == 0) {
            (void)td_map_remove(&state->rebirths, rebirths->key); /* it is this one */
            free_rebirths(rebirths);
        }
    }
}

/* The uid, else "namespace/name" in `place`. */
static td_str pod_key(const struct td_pod *pod, char place[TD_OBJECT_KEY_BYTES_MAX])
{
    return pod->meta.uid.len > 0
               ? pod->meta.uid
               : td_object_key_write(TD_OBJECT_KEY(pod->meta.namespace, pod->meta.name), place);
}

struct td_pod_memory *td_updater_state_find(const struct td_updater_state *state,
                                            const struct td_pod *pod)
{
    char place[TD_OBJECT_KEY_BYTES_MAX];
    return td_map_get(&state->pods, pod_key(pod, place));
}

struct td_pod_memory *td_updater_state_pod(struct td_updater_state *state, const struct td_pod *pod,
                                           bool *ret_is_new)
{
    char place[TD_OBJECT_KEY_BYTES_MAX];
    td_str key = pod_key(pod, place);
    struct td_pod_memory *memory = td_map_get(&state->pods, key);
    if (ret_is_new) {
        *ret_is_new = !memory;
    }
    if (!memory) {
        memory = td_alloc_zero(1, sizeof(*memory));
        memory->key = td_text_copy(key);
        if (td_map_put(&state->pods, memory->key, memory) < 0) {
            free_pod(memory);
            return NULL;
        }
    }
    memory->pass = state->pass;
    return memory;
}

void td_updater_state_see(struct td_pod_memory *memory, td_str vpa, bool is_new)
{
    if (td_str_equal(memory->vpa, vpa)) {
        return;
    }
    disown(&memory->vpa);
    memory->vpa = td_text_copy(vpa);
    memory->is_moved = !is_new && vpa.len > 0;
}

void td_updater_state_settled(struct td_pod_memory *memory)
{
    memory->is_moved = false;
}

void td_updater_state_hold_resize(struct td_pod_memory *memory, td_time now)
{
    td_duration pause = TD_RESIZE_PAUSE;
    for (int i = 0; i < memory->held_count && pause < TD_RESIZE_PAUSE_MAX; i++) {
        pause *= 2;
    }
    memory->held_count++;
    memory->held_until = now + (pause < TD_RESIZE_PAUSE_MAX ? pause : TD_RESIZE_PAUSE_MAX);
}

void td_updater_state_set_failed(struct td_pod_memory *memory,
                                 const struct td_recommendation *recommendation)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    td_text_set(&memory->failed,
                td_json_line(&arena, td_recommendation_encode(&arena, recommendation)));
}

const struct td_recommendation *td_updater_state_failed(struct td_arena *arena,
                                                        const struct td_pod_memory *memory)
{
    if (!memory || memory->failed.len == 0) {
        return NULL;
    }
    struct td_json *tree = NULL;
    struct td_recommendation *recommendation = td_arena_new(arena, struct td_recommendation);
    const struct td_json_options options = {.copy_strings = true};
    if (td_json_parse(arena, memory->failed, &options, &tree, NULL) < 0 ||
        td_recommendation_decode(arena, tree, recommendation, NULL) < 0) {
        return NULL; /* cannot be: we wrote it */
    }
    return recommendation;
}

void td_updater_state_set_resizing(struct td_updater_state *state, td_str key, td_time since)
{
    struct resize_first_seen *first_seen = td_map_get(&state->resizing, key);
    if (!first_seen) {
        first_seen = td_alloc_zero(1, sizeof(*first_seen));
        first_seen->key = td_text_copy(key);
        if (td_map_put(&state->resizing, first_seen->key, first_seen) < 0) {
            free_first_seen(first_seen); /* too many: this one is always seen for the first time */
            return;
        }
        first_seen->last = since;
    }
    first_seen->first = since;
}

td_time td_updater_state_resizing_since(struct td_updater_state *state, td_str namespace,
                                        td_str name, td_time now)
{
    char place[TD_OBJECT_KEY_BYTES_MAX];
    td_str key = td_object_key_write(TD_OBJECT_KEY(namespace, name), place);
    struct resize_first_seen *first_seen = td_map_get(&state->resizing, key);
    if (!first_seen) {
        td_updater_state_set_resizing(state, key, now);
        return now;
    }
    first_seen->last = now > first_seen->last ? now : first_seen->last;
    return first_seen->first;
}

bool td_updater_state_next_resizing(const struct td_updater_state *state, size_t *position,
                                    td_str *ret_key, td_time *ret_since)
{
    const struct td_map_entry *entry = td_map_next(&state->resizing, position);
    if (!entry) {
        return false;
    }
    const struct resize_first_seen *first_seen = entry->value;
    *ret_key = first_seen->key;
    *ret_since = first_seen->first;
    return true;
}

/* What a pod asks for by its spec, to tell whether it came back changed. */
static void write_requests(const struct td_resource_list *resources, struct td_buf *out)
{
    for (size_t i = 0; i < resources->count; i++) {
        (void)td_buf_append(out, resources->items[i].name);
        (void)td_buf_append_char(out, '=');
        td_quantity_write_canonical(&resources->items[i].quantity, out);
        (void)td_buf_append_char(out, '\n');
    }
}

static uint64_t hash_requests(const struct td_pod *pod)
{
    td_auto_buf text = td_buf_capped(TD_JSON_BYTES_MAX);
    for (size_t i = 0; i < pod->container_count; i++) {
        (void)td_buf_append_format(&text, "%.*s\n", TD_STR_ARG(pod->containers[i].name));
        write_requests(&pod->containers[i].spec_requests, &text);
    }
    write_requests(&pod->pod_requests, &text);
    return td_map_hash(td_buf_str(&text));
}

static uint64_t hash_targets(const struct td_recommendation *recommendation)
{
    td_auto_buf text = td_buf_capped(TD_JSON_BYTES_MAX);
    for (size_t i = 0; i < recommendation->container_count; i++) {
        (void)td_buf_append_format(&text, "%.*s\n",
                                   TD_STR_ARG(recommendation->containers[i].container_name));
        write_requests(&recommendation->containers[i].target, &text);
    }
    write_requests(&recommendation->pod.target, &text);
    return td_map_hash(td_buf_str(&text));
}

/* The group as a replica's history knows it, and the replica's name where that is given again. */
static td_str rebirth_group(struct td_arena *arena, const struct td_pod *pod, td_str *ret_name)
{
    const struct td_owner_reference *owner = td_meta_controller(&pod->meta);
    td_str kind = owner ? owner->kind : TD_STR_EMPTY;
    td_str name = owner ? owner->name : TD_STR_EMPTY;
    *ret_name =
        td_workload_kind_of(kind) == TD_WORKLOAD_STATEFUL_SET ? pod->meta.name : TD_STR_EMPTY;
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    return td_arena_copy_str(arena, TD_KEY_LINES(buffer, pod->meta.namespace, kind, name));
}

void td_updater_state_evicted(struct td_arena *arena, struct td_updater_state *state,
                              const struct td_pod *pod,
                              const struct td_recommendation *recommendation, td_time now)
{
    td_str name;
    td_str group = rebirth_group(arena, pod, &name);
    const struct td_pod_memory *memory = td_updater_state_find(state, pod);
    struct rebirths *rebirths = td_map_get(&state->rebirths, group);
    if (!rebirths) {
        rebirths = td_alloc_zero(1, sizeof(*rebirths));
        rebirths->count_max = TD_REBIRTHS_MAX;
        rebirths->key = td_text_copy(group);
        if (td_map_put(&state->rebirths, rebirths->key, rebirths) < 0) {
            free_rebirths(rebirths);
            return;
        }
    }
    struct rebirth *added = td_vec_push(rebirths);
    if (added) {
        *added = (struct rebirth){
            .name = td_text_copy(name),
            .requests = hash_requests(pod),
            .recommendation = hash_targets(recommendation),
            .fruitless = memory ? memory->fruitless : 0,
            .at = now,
        };
    }
}

/* The evicted replica that a new pod stands for, or count. */
static size_t find_rebirth(const struct rebirths *rebirths, td_str name, uint64_t requests)
{
    size_t any = rebirths->count;
    for (size_t i = 0; i < rebirths->count; i++) {
        const struct rebirth *rebirth = &rebirths->items[i];
        if (rebirth->name.len > 0) {
            if (td_str_equal(rebirth->name, name)) {
                return i;
            }
        } else if (rebirth->requests == requests) {
            return i;
        } else if (any == rebirths->count) {
            any = i;
        }
    }
    return any;
}

void td_updater_state_born(struct td_arena *arena, struct td_updater_state *state,
                           struct td_pod_memory *memory, const struct td_pod *pod, td_time now)
{
    td_str name;
    struct rebirths *rebirths = td_map_get(&state->rebirths, rebirth_group(arena, pod, &name));
    if (!rebirths) {
        return;
    }
    uint64_t requests = hash_requests(pod);
    drop_old_rebirths(rebirths, now);
    size_t found = find_rebirth(rebirths, pod->meta.name, requests);
    if (found == rebirths->count) {
        return;
    }
    struct rebirth *rebirth = &rebirths->items[found];
    if (rebirth->requests == requests) {
        memory->fruitless = rebirth->fruitless + 1;
        memory->recommendation = rebirth->recommendation;
        memory->left_alone_until = now + TD_FRUITLESS_PAUSE;
    }
    disown(&rebirth->name);
    td_vec_remove(rebirths, found);
}

bool td_updater_state_is_left_alone(struct td_pod_memory *memory,
                                    const struct td_recommendation *recommendation, td_time now)
{
    if (memory->fruitless == 0) {
        return false;
    }
    if (memory->recommendation != hash_targets(recommendation) || now >= memory->left_alone_until) {
        memory->fruitless = 0;
        memory->is_reported = false;
        return false;
    }
    return memory->fruitless >= TD_FRUITLESS_MAX;
}

td_time td_token_bucket_take(struct td_token_bucket *bucket, double per_second, int64_t burst,
                             td_time now)
{
    if (!(per_second > 0)) {
        return now;
    }
    double most = burst > 1 ? (double)burst : 1;
    if (!bucket->is_started) {
        *bucket = (struct td_token_bucket){.tokens = most, .at = now, .is_started = true};
    }
    if (now > bucket->at) {
        bucket->tokens += (double)(now - bucket->at) / (double)TD_SECOND * per_second;
        bucket->at = now;
    }
    bucket->tokens = (bucket->tokens < most ? bucket->tokens : most) - 1;
    if (bucket->tokens >= 0) {
        return now;
    }
    double wait = -bucket->tokens / per_second * (double)TD_SECOND;
    return wait < (double)(INT64_MAX - now) ? now + (td_duration)wait : INT64_MAX;
}
