/* The index by controller, the choice among several VPAs by age and name, and the memo of topmost
 * controllers for pods with the same owner. */
#include "decide/vertical/updater/matching.h"

#include "base/error.h"
#include "base/limits.h"
#include "decide/vertical/siblings.h"
#include "kube/objectkey.h"

bool td_vpa_has_boost(const struct td_vpa *vpa)
{
    if (vpa->startup_boost.is_set) {
        return true;
    }
    for (size_t i = 0; i < vpa->policy.container_count; i++) {
        if (vpa->policy.containers[i].startup_boost.is_set) {
            return true;
        }
    }
    return false;
}

/* Does this VPA take part for that user? */
static bool match_counts(const struct td_vpa *vpa, enum td_match_user user)
{
    switch (user) {
    case TD_MATCH_ADMISSION:
        return vpa->mode != TD_VPA_OFF || td_vpa_has_boost(vpa);
    case TD_MATCH_UPDATER:
        return (vpa->mode != TD_VPA_OFF && vpa->mode != TD_VPA_INITIAL) || td_vpa_has_boost(vpa);
    case TD_MATCH_ANY:
        break;
    }
    return true;
}

void td_match_index_init(struct td_match_index *index, struct td_arena *arena,
                         bool heterogeneous_workloads)
{
    *index =
        (struct td_match_index){.arena = arena, .heterogeneous_workloads = heterogeneous_workloads};
    td_map_init(&index->targets, TD_VPAS_MAX);
}

void td_match_index_done(struct td_match_index *index)
{
    td_map_done(&index->targets);
}

/* Into the list of its target, which is kept by age. Lists are short: siblings are refused unless
 * disjoint, and past TD_TARGET_VPAS_MAX the youngest are left out. */
static int add_one(struct td_match_index *index, struct td_match_vpa *added)
{
    const struct td_vpa *vpa = added->vpa;
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    td_str key = TD_KEY_LINES(buffer, vpa->meta.namespace, vpa->target_kind, vpa->target_name);
    struct td_match_vpa *first = td_map_get(&index->targets, key);
    if (!first || td_vpa_compare_age(vpa, first->vpa) < 0) {
        added->next = first;
        return td_map_put(&index->targets, td_arena_copy_str(index->arena, key), added);
    }
    struct td_match_vpa *before = first;
    size_t count = 1;
    while (before->next && td_vpa_compare_age(vpa, before->next->vpa) >= 0) {
        before = before->next;
        if (++count >= TD_TARGET_VPAS_MAX) {
            return TD_LIMIT;
        }
    }
    added->next = before->next;
    before->next = added;
    return TD_OK;
}

struct td_controller td_match_target(const struct td_vpa *vpa)
{
    return (struct td_controller){
        .namespace = vpa->meta.namespace,
        .api_version = vpa->target_api_version,
        .kind = vpa->target_kind,
        .name = vpa->target_name,
    };
}

int td_match_index_add(struct td_match_index *index, const struct td_workload_source *source,
                       const struct td_vpa *const *vpas, size_t count, enum td_match_user user,
                       size_t *ret_skipped, struct td_error *err)
{
    struct td_match_vpa *added = td_arena_array(index->arena, struct td_match_vpa, count);
    size_t skipped = 0;
    for (size_t i = 0; i < count; i++) {
        added[i].is_idle = !match_counts(vpas[i], user);
        if (!vpas[i]->has_target || (added[i].is_idle && !index->heterogeneous_workloads)) {
            continue;
        }
        struct td_controller target = td_match_target(vpas[i]);
        struct td_error reason = TD_ERROR_INIT;
        int code =
            td_target_selector(index->arena, source, &target, &added[i].target_selector, &reason);
        if (code == TD_BUSY) {
            return td_error_set(err, TD_BUSY, "%s", reason.message);
        }
        if (code < 0) {
            skipped++;
        } else {
            added[i].vpa = vpas[i];
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (!added[i].vpa) {
            continue;
        }
        const struct td_meta *meta = &added[i].vpa->meta;
        added[i].key = td_object_key_text(index->arena, TD_OBJECT_KEY(meta->namespace, meta->name));
        if (add_one(index, &added[i]) < 0) {
            skipped++;
        }
    }
    if (ret_skipped) {
        *ret_skipped = skipped;
    }
    return TD_OK;
}

/* The group of an apiVersion; false when it has none to speak of. */
static bool read_group(td_str api_version, td_str *ret)
{
    size_t slash = td_str_find(api_version, '/', 0);
    if (api_version.len == 0 || td_str_find(api_version, '/', slash + 1) < api_version.len) {
        return false;
    }
    *ret = slash < api_version.len ? td_str_slice(api_version, 0, slash) : TD_STR_EMPTY;
    return true;
}

static bool is_same_group(td_str a, td_str b)
{
    td_str a_group;
    td_str b_group;
    return !read_group(a, &a_group) || !read_group(b, &b_group) || td_str_equal(a_group, b_group);
}

const struct td_match_vpa *td_match_find(const struct td_match_index *index,
                                         const struct td_controller *top, td_str namespace,
                                         const struct td_labels *labels)
{
    if (!top || !td_str_equal(top->namespace, namespace)) {
        return NULL;
    }
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    td_str key = TD_KEY_LINES(buffer, namespace, top->kind, top->name);
    const struct td_match_vpa *at = td_map_get(&index->targets, key);
    for (; at; at = at->next) {
        if (!td_selector_matches(&at->target_selector, labels)) {
            continue;
        }
        if (!index->heterogeneous_workloads) {
            return at;
        }
        if (is_same_group(at->vpa->target_api_version, top->api_version) &&
            (!at->vpa->has_selector || td_selector_matches(&at->vpa->pod_selector, labels))) {
            return at->is_idle ? NULL : at;
        }
    }
    return NULL;
}

/* What a direct owner leads to. */
struct top_answer {
    bool is_found;
    struct td_controller top;
    td_str why;
};

/* Its texts may be the pod's, which need not live as long as the memo. */
static void top_keep(struct td_arena *arena, struct td_controller *top)
{
    td_str *texts[] = {&top->namespace, &top->api_version, &top->kind, &top->name, &top->uid};
    for (size_t i = 0; i < TD_COUNT(texts); i++) {
        *texts[i] = td_arena_copy_str(arena, *texts[i]);
    }
}

void td_top_memo_init(struct td_top_memo *memo, struct td_arena *arena)
{
    *memo = (struct td_top_memo){.arena = arena};
    td_map_init(&memo->tops, TD_CONTROLLERS_MAX);
}

void td_top_memo_done(struct td_top_memo *memo)
{
    td_map_done(&memo->tops);
}

int td_top_memo_get(struct td_top_memo *memo, const struct td_workload_source *source,
                    const struct td_meta *pod, const struct td_controller **ret, td_str *ret_why,
                    struct td_error *err)
{
    struct td_controller owner;
    *ret = NULL;
    if (ret_why) {
        *ret_why = TD_STR_EMPTY;
    }
    if (!td_controller_of_pod(pod, &owner)) {
        return TD_OK;
    }
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    td_str key =
        TD_KEY_LINES(buffer, owner.namespace, owner.kind, owner.name, owner.uid, owner.api_version);
    struct top_answer *answer = td_map_get(&memo->tops, key);
    if (!answer) {
        answer = td_arena_new(memo->arena, struct top_answer);
        struct td_error reason = TD_ERROR_INIT;
        int code = td_controller_top(source, &owner, &answer->top, &answer->is_found, &reason);
        if (code == TD_BUSY) {
            return td_error_set(err, TD_BUSY, "%s", reason.message);
        }
        answer->is_found = answer->is_found && code == TD_OK;
        if (answer->is_found) {
            top_keep(memo->arena, &answer->top);
        }
        if (code < 0 && code != TD_DENIED) { /* a Node as owner is ordinary */
            answer->why = td_arena_copy_str(memo->arena, td_str_from(reason.message));
        }
        if (key.len > 0) { /* full, or no names of a server: walked again for the next pod */
            (void)td_map_put(&memo->tops, td_arena_copy_str(memo->arena, key), answer);
        }
    }
    *ret = answer->is_found ? &answer->top : NULL;
    if (ret_why) {
        *ret_why = answer->why;
    }
    return TD_OK;
}
