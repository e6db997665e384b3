/* The parts of a pass: which VPAs are in which, in what order they have their turn, and the VPAs
 * and pods of the one at work, read from the informers. */
#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/text.h"
#include "control/updater/update_private.h"
#include "model/pod.h"

/* ---- Which there are ---- */

void update_part_free(struct update_part *part)
{
    td_updater_state_done(&part->state);
    td_string_set_done(&part->held);
    td_text_free(part->key);
    td_free(part);
}

/* The same for the same target for as long as the process lives: what is remembered of its pods is
 * in the state of the part. */
static uint64_t part_number(const struct td_informer_vpa *vpa)
{
    uint64_t hash = td_map_hash(vpa->target_kind) * UINT64_C(0x9e3779b97f4a7c15);
    return (hash + td_map_hash(vpa->target_name)) % TD_UPDATE_PARTS;
}

static struct update_part *part_of(struct td_update_loop *loop, const struct td_informer_vpa *vpa)
{
    td_auto_buf key = td_buf_capped(TD_OBJECT_KEY_BYTES_MAX);
    td_str namespace = vpa->object.head.namespace;
    (void)td_buf_append_format(&key, "%.*s/%llu", TD_STR_ARG(namespace),
                               (unsigned long long)part_number(vpa));
    struct update_part *part = td_map_get(&loop->parts, td_buf_str(&key));
    if (part) {
        return part;
    }
    part = td_alloc_zero(1, sizeof(*part));
    part->key = td_text_copy(td_buf_str(&key));
    part->namespace = td_str_slice(part->key, 0, namespace.len);
    td_updater_state_init(&part->state);
    td_string_set_init(&part->held, TD_HELD_REASONS_MAX);
    if (td_map_put(&loop->parts, part->key, part) != TD_OK) {
        update_part_free(part);
        return NULL;
    }
    return part;
}

/* The pass begins with the part that the one before could not finish. */
static void parts_rotate(struct td_update_loop *loop)
{
    size_t first = 0;
    for (size_t i = 0; i < loop->turns.count; i++) {
        first = loop->turns.items[i] == loop->resume ? i : first;
    }
    struct update_part **turns =
        td_arena_array(&loop->roll, struct update_part *, loop->turns.count + 1);
    for (size_t i = 0; i < loop->turns.count; i++) {
        turns[i] = loop->turns.items[(first + i) % loop->turns.count];
    }
    for (size_t i = 0; i < loop->turns.count; i++) {
        loop->turns.items[i] = turns[i];
    }
    loop->resume = NULL;
}

static void parts_forget(struct td_update_loop *loop)
{
    for (struct td_map_walk at = {.map = &loop->parts}; td_map_step(&at);) {
        struct update_part *part = at.value;
        if (!part->first) {
            (void)td_map_remove(&loop->parts, part->key); /* it is this one */
            loop->resume = loop->resume == part ? NULL : loop->resume;
            update_part_free(part);
        }
    }
}

void update_collect(struct td_update_loop *loop)
{
    const struct td_cache *cache =
        td_informers_cache(loop->options.control.informers, TD_INFORMER_VPAS);
    for (struct td_map_walk at = {.map = &loop->parts}; td_map_step(&at);) {
        struct update_part *part = at.value;
        part->first = NULL;
        part->last = NULL;
    }
    td_vec_reset(&loop->turns);
    td_arena_reset(&loop->roll);
    loop->turn_at = 0;
    size_t position = 0;
    for (const struct td_informer_vpa *vpa; (vpa = td_cache_next(cache, &position));) {
        td_str namespace = vpa->object.head.namespace;
        if (loop->options.is_exempt && loop->options.is_exempt(loop->options.context, namespace)) {
            continue;
        }
        struct update_part *part = part_of(loop, vpa);
        struct update_part **place = part && !part->first ? td_vec_push(&loop->turns) : NULL;
        if (place) {
            *place = part;
        }
        if (part && (place || part->first)) {
            struct update_turn *turn = td_arena_new(&loop->roll, struct update_turn);
            turn->name = td_arena_copy_str(&loop->roll, vpa->object.head.name);
            *(part->last ? &part->last->next : &part->first) = turn;
            part->last = turn;
        }
    }
    parts_forget(loop);
    parts_rotate(loop);
}

/* ---- What is in one ---- */

struct gather {
    struct td_informers *informers;
    struct td_arena *arena;
    struct td_map seen; /* names of pods: selectors may overlap */
    struct {
        TD_VEC_FIELDS(const struct td_informer_pod *);
    } pods;
};

static void gather_pods(struct gather *gather, td_str namespace, const struct td_selector *selector)
{
    struct td_pod_match match;
    td_informers_match_pods(gather->informers, namespace, selector, &match);
    for (const struct td_informer_pod *pod; (pod = td_pod_match_next(&match));) {
        bool is_over = td_pod_phase_is_over(td_pod_phase_from(pod->phase));
        if (pod->node.len == 0 || is_over || td_map_has(&gather->seen, pod->object.head.name)) {
            continue;
        }
        /* Until the end of this turn the object is not replaced, so its name can be borrowed. */
        const struct td_informer_pod **place =
            td_map_put(&gather->seen, pod->object.head.name, NULL) == TD_OK
                ? td_vec_push(&gather->pods)
                : NULL;
        if (place) {
            *place = pod;
        }
    }
}

static int gather_targets(struct gather *gather, const struct td_workload_source *source,
                          const struct td_updater_input *input)
{
    for (size_t i = 0; i < input->vpa_count; i++) {
        const struct td_vpa *vpa = input->vpas[i];
        const struct td_controller target = td_match_target(vpa);
        struct td_selector selector;
        int code = vpa->has_target
                       ? td_target_selector(gather->arena, source, &target, &selector, NULL)
                       : TD_INVALID;
        if (code == TD_BUSY) {
            return code;
        }
        if (code == TD_OK) {
            gather_pods(gather, vpa->meta.namespace, &selector);
        }
    }
    return TD_OK;
}

static void gather_decode(const struct gather *gather, struct td_updater_input *input)
{
    struct td_pod *pods = td_arena_array(gather->arena, struct td_pod, gather->pods.count + 1);
    size_t count = 0;
    struct update_decoder decoder = {.informers = gather->informers, .arena = gather->arena};
    for (size_t i = 0; i < gather->pods.count; i++) {
        count += update_decode_pod(&decoder, &gather->pods.items[i]->object, &pods[count]);
    }
    input->pods = pods;
    input->pod_count = count;
}

static void gather_vpas(const struct gather *gather, const struct update_part *part,
                        struct td_updater_input *input)
{
    const struct td_cache *cache = td_informers_cache(gather->informers, TD_INFORMER_VPAS);
    size_t count = 0;
    for (const struct update_turn *turn = part->first; turn; turn = turn->next) {
        count++;
    }
    const struct td_vpa **vpas = td_arena_array(gather->arena, const struct td_vpa *, count + 1);
    count = 0;
    for (const struct update_turn *turn = part->first; turn; turn = turn->next) {
        const struct td_informer_object *object = td_cache_get(cache, part->namespace, turn->name);
        struct td_vpa *vpa = td_arena_new(gather->arena, struct td_vpa);
        struct td_json *tree;
        if (object && td_informers_tree(gather->arena, object, &tree, NULL) == TD_OK &&
            td_vpa_decode(gather->arena, tree, vpa, NULL) == TD_OK) {
            vpas[count++] = vpa;
        }
    }
    input->vpas = vpas;
    input->vpa_count = count;
}

int update_gather(const struct td_update_loop *loop, const struct update_part *part,
                  struct td_updater_input *input)
{
    struct gather gather = {.informers = loop->options.control.informers, .arena = input->arena};
    td_map_init(&gather.seen, TD_CACHE_OBJECTS_MAX);
    gather.pods.count_max = TD_CACHE_OBJECTS_MAX;
    gather_vpas(&gather, part, input);
    int code = gather_targets(&gather, input->source, input);
    if (code == TD_OK) {
        gather_decode(&gather, input);
    }
    td_vec_done(&gather.pods);
    td_map_done(&gather.seen);
    return code;
}
