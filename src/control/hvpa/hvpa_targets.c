/*
 * Who scales what. Every Hvpa, HPA and VPA is a claim on its target, kept in a list of that target
 * as the objects come and go, so that a reconcile looks at its own rivals only. A new claim on the
 * target of an Hvpa is looked at, at once: stopping must not wait for the next reconcile.
 */
#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/text.h"
#include "control/hvpa/hvpa_private.h"
#include "kube/objectkey.h"

struct claim_source {
    enum td_informer_kind informers;
    const char *api_version;
    const char *kind;
};

/* Lists name kinds only as a whole. */
static const struct claim_source claim_sources[HVPA_CLAIM_KINDS] = {
    {TD_INFORMER_HVPAS, "autoscaling.k8s.io/v1alpha1", "Hvpa"},
    {TD_INFORMER_HPAS, "autoscaling/v2", "HorizontalPodAutoscaler"},
    {TD_INFORMER_OWN_HPAS, "autoscaling.tandem.dev/v2", "HorizontalPodAutoscaler"},
    {TD_INFORMER_VPAS, "autoscaling.k8s.io/v1", "VerticalPodAutoscaler"},
};

static void claim_free(struct hvpa_claim *claim)
{
    td_text_free(claim->key);
    td_text_free(claim->target);
    td_text_free(claim->namespace);
    td_text_free(claim->name);
    td_text_free(claim->api_version);
    td_free(claim);
}

static td_str claim_key(char buffer[TD_OBJECT_KEY_BYTES_MAX], size_t row,
                        const struct td_cache_head *head)
{
    const char number[] = {(char)('0' + row)};
    return TD_KEY_LINES(buffer, (td_str){.ptr = number, .len = 1}, head->namespace, head->name);
}

static td_str claim_target(char buffer[TD_OBJECT_KEY_BYTES_MAX],
                           const struct td_ownership_target *target)
{
    return TD_KEY_LINES(buffer, target->namespace, target->kind, target->name);
}

/* Every Hvpa on the target has to look again. */
static void targets_tell(struct td_hvpa_loop *loop, td_str target)
{
    for (const struct hvpa_claim *c = td_map_get(&loop->targets, target); c; c = c->next) {
        struct hvpa_item *item =
            c->kind == TD_OWNERSHIP_HVPA ? hvpa_item_find(loop, c->namespace, c->name) : NULL;
        if (item) {
            hvpa_item_now(item);
        }
    }
}

static void claim_unlink(struct td_hvpa_loop *loop, struct hvpa_claim *claim)
{
    if (claim->next) {
        claim->next->previous = claim->previous;
    }
    if (claim->previous) {
        claim->previous->next = claim->next;
        return;
    }
    (void)td_map_remove(&loop->targets, claim->target); /* its key is the claim's */
    if (claim->next) {
        (void)td_map_put(&loop->targets, claim->next->target, claim->next); /* room is there */
    }
}

static void claim_drop(struct td_hvpa_loop *loop, td_str key)
{
    struct hvpa_claim *claim = td_map_remove(&loop->claims, key);
    if (!claim) {
        return;
    }
    claim_unlink(loop, claim);
    targets_tell(loop, claim->target);
    claim_free(claim);
}

static void claim_link(struct td_hvpa_loop *loop, struct hvpa_claim *claim)
{
    struct hvpa_claim *first = td_map_get(&loop->targets, claim->target);
    if (td_map_put(&loop->claims, claim->key, claim) != TD_OK ||
        td_map_put(&loop->targets, claim->target, claim) != TD_OK) {
        (void)td_map_remove(&loop->claims, claim->key);
        claim_free(claim);
        return; /* past the cap of all caches */
    }
    claim->next = first;
    if (first) {
        first->previous = claim;
    }
}

static bool claim_is_same(const struct hvpa_claim *claim, td_str target,
                          const struct td_ownership_object *object)
{
    return td_str_equal(claim->target, target) && claim->is_off == object->is_off &&
           td_str_equal(claim->api_version, object->target.api_version) &&
           claim->created.unix_seconds == object->created.unix_seconds;
}

static void claim_see(const struct hvpa_claim_kind *kind, const struct td_informer_object *object)
{
    struct td_hvpa_loop *loop = kind->loop;
    const struct claim_source *source = &claim_sources[kind->row];
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    char target_buffer[TD_OBJECT_KEY_BYTES_MAX];
    td_str key = claim_key(buffer, kind->row, &object->head);
    struct td_json *tree;
    struct td_ownership_object read;
    struct hvpa_claim *known = td_map_get(&loop->claims, key);
    if (td_informers_tree(&arena, object, &tree, NULL) != TD_OK) {
        return;
    }
    td_json_set_str(&arena, tree, TD_STR("apiVersion"), td_str_from(source->api_version));
    td_json_set_str(&arena, tree, TD_STR("kind"), td_str_from(source->kind));
    if (!td_ownership_read(tree, &read)) {
        claim_drop(loop, key);
        return;
    }
    td_str target = claim_target(target_buffer, &read.target);
    if (known && claim_is_same(known, target, &read)) {
        return;
    }
    claim_drop(loop, key);
    struct hvpa_claim *claim = td_alloc_zero(1, sizeof(*claim));
    *claim = (struct hvpa_claim){
        .key = td_text_copy(key),
        .target = td_text_copy(target),
        .namespace = td_text_copy(object->head.namespace),
        .name = td_text_copy(object->head.name),
        .api_version = td_text_copy(read.target.api_version),
        .kind = read.kind,
        .created = read.created,
        .is_off = read.is_off,
    };
    claim_link(loop, claim);
    targets_tell(loop, target);
}

/* ---- What the informers tell ---- */

static void targets_added(void *context, const void *object)
{
    claim_see(context, object);
}

static void targets_changed(void *context, const void *before, const void *after)
{
    const struct td_informer_object *old = before;
    const struct td_informer_object *new = after;
    if (old->spec_hash != new->spec_hash || !td_str_equal(old->head.uid, new->head.uid)) {
        claim_see(context, new);
    }
}

static void targets_deleted(void *context, const void *object)
{
    const struct hvpa_claim_kind *kind = context;
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    claim_drop(kind->loop, claim_key(buffer, kind->row, object));
}

void hvpa_targets_init(struct td_hvpa_loop *loop)
{
    static const struct td_cache_handler handler = {
        .added = targets_added, .changed = targets_changed, .deleted = targets_deleted};
    struct td_informers *informers = loop->options.control.informers;
    td_map_init(&loop->claims, TD_CACHE_OBJECTS_MAX);
    td_map_init(&loop->targets, TD_CACHE_OBJECTS_MAX);
    for (size_t i = 0; i < HVPA_CLAIM_KINDS; i++) {
        loop->claim_kinds[i] = (struct hvpa_claim_kind){.loop = loop, .row = i};
        if (td_informers_cache(informers, claim_sources[i].informers)) {
            td_informers_subscribe(informers, claim_sources[i].informers, &handler,
                                   &loop->claim_kinds[i]);
        }
    }
}

void hvpa_targets_done(struct td_hvpa_loop *loop)
{
    for (struct td_map_walk at = {.map = &loop->claims}; td_map_step(&at);) {
        claim_free(at.value);
    }
    td_map_done(&loop->claims);
    td_map_done(&loop->targets);
}

/* ---- Questions ---- */

static size_t targets_collect(struct td_arena *arena, const struct hvpa_claim *first,
                              struct td_ownership_object **ret,
                              const struct td_ownership_target *target)
{
    size_t count = 0;
    for (const struct hvpa_claim *c = first; c; c = c->next) {
        count++;
    }
    struct td_ownership_object *objects =
        td_arena_array(arena, struct td_ownership_object, count + 1);
    count = 0;
    for (const struct hvpa_claim *c = first; c; c = c->next) {
        objects[count] = (struct td_ownership_object){
            .kind = c->kind,
            .name = c->name,
            .created = c->created,
            .target = *target,
            .is_off = c->is_off,
        };
        objects[count++].target.api_version = c->api_version;
    }
    *ret = objects;
    return count;
}

static const struct hvpa_claim *targets_find(const struct td_hvpa_loop *loop,
                                             const struct td_ownership_target *target)
{
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    return td_map_get(&loop->targets, claim_target(buffer, target));
}

td_str hvpa_targets_conflict(struct hvpa_reconcile *run)
{
    const struct td_hvpa *hvpa = &run->hvpa;
    const struct td_ownership_target target = {
        .namespace = hvpa->meta.namespace,
        .api_version = hvpa->target.api_version,
        .kind = hvpa->target.kind,
        .name = hvpa->target.name,
    };
    struct td_ownership_object *objects;
    struct td_ownership judged;
    size_t count =
        targets_collect(&run->arena, targets_find(run->loop, &target), &objects, &target);
    td_ownership_judge(&run->arena, &target, objects, count, &judged);
    if (judged.foreign != TD_OWNERSHIP_NONE) {
        const struct td_ownership_object *other = &objects[judged.foreign];
        bool is_vpa = other->kind == TD_OWNERSHIP_VPA; /* an HPA has no mode to switch off */
        return td_arena_format(
            &run->arena, "%s '%.*s' scales %.*s '%.*s' too; delete it%s",
            is_vpa ? "VerticalPodAutoscaler" : "HorizontalPodAutoscaler", TD_STR_ARG(other->name),
            TD_STR_ARG(target.kind), TD_STR_ARG(target.name),
            is_vpa ? ", or set its updateMode to Off" : ", or take hpaSpec out of the Hvpa");
    }
    if (judged.acting != TD_OWNERSHIP_NONE &&
        !td_str_equal(objects[judged.acting].name, hvpa->meta.name)) {
        return td_arena_format(&run->arena, "the older Hvpa '%.*s' scales %.*s '%.*s'",
                               TD_STR_ARG(objects[judged.acting].name), TD_STR_ARG(target.kind),
                               TD_STR_ARG(target.name));
    }
    return TD_STR_EMPTY;
}

struct hvpa_item *hvpa_targets_owner(const struct td_hvpa_loop *loop,
                                     const struct td_ownership_target *target)
{
    const struct hvpa_claim *first = targets_find(loop, target);
    if (!first) {
        return NULL;
    }
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_ownership_object *objects;
    struct td_ownership judged;
    size_t count = targets_collect(&arena, first, &objects, target);
    td_ownership_judge(&arena, target, objects, count, &judged);
    return judged.acting != TD_OWNERSHIP_NONE
               ? hvpa_item_find(loop, target->namespace, objects[judged.acting].name)
               : NULL;
}
