/* A pod is matched with its VPA, judged by time, then by the group of its siblings, and at last the
 * resize patch is made. The groups are gathered when the first pod needs them. */
#include "decide/vertical/updater/boost_revert.h"

#include "base/error.h"
#include "base/limits.h"
#include "decide/vertical/patch/boost.h"

/* The pods of one VPA. */
struct team {
    struct td_restriction restriction;
    size_t pod_count;
};

int td_boost_revert_begin(struct td_boost_revert *round, const struct td_boost_revert_input *input,
                          struct td_error *err)
{
    *round = (struct td_boost_revert){.input = *input};
    td_match_index_init(&round->index, input->arena, input->gates->heterogeneous_workloads);
    int code = td_match_index_add(&round->index, input->source, input->vpas, input->vpa_count,
                                  TD_MATCH_ANY, NULL, err);
    if (code < 0) {
        td_match_index_done(&round->index);
        return code;
    }
    td_top_memo_init(&round->memo, input->arena);
    td_groups_init(&round->groups, input->arena);
    td_map_init(&round->teams, TD_VPAS_MAX);
    return TD_OK;
}

void td_boost_revert_end(struct td_boost_revert *round)
{
    for (struct td_map_walk at = {.map = &round->teams}; td_map_step(&at);) {
        struct team *team = at.value;
        td_restriction_done(&team->restriction);
    }
    td_map_done(&round->teams);
    td_groups_done(&round->groups);
    td_top_memo_done(&round->memo);
    td_match_index_done(&round->index);
}

static int find_master(struct td_boost_revert *round, const struct td_pod *pod,
                       const struct td_match_vpa **ret, struct td_error *err)
{
    const struct td_controller *top;
    int code = td_top_memo_get(&round->memo, round->input.source, &pod->meta, &top, NULL, err);
    if (code == TD_OK) {
        *ret = td_match_find(&round->index, top, pod->meta.namespace, &pod->meta.labels);
    }
    return code;
}

/* The groups are counted when the first boost has expired: most looks find that it lasts. */
static int count_pods(struct td_boost_revert *round, struct td_error *err)
{
    const struct td_pod *pods;
    size_t count = round->input.get_pods(round->input.context, &pods);
    const struct td_match_vpa **masters =
        td_arena_array(round->input.arena, const struct td_match_vpa *, count);
    for (size_t i = 0; i < count; i++) {
        int code = !pods[i].is_terminating ? find_master(round, &pods[i], &masters[i], err) : TD_OK;
        if (code < 0) {
            return code;
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (!pods[i].is_terminating) {
            (void)td_groups_add(&round->groups, &pods[i]); /* else it is in no group */
        }
    }
    round->has_pods = true;
    round->pods = pods;
    round->masters = masters;
    round->pod_count = count;
    return TD_OK;
}

static size_t pods_of(const struct td_boost_revert *round, const struct td_match_vpa *match,
                      const struct td_pod **ret)
{
    size_t count = 0;
    for (size_t i = 0; i < round->pod_count; i++) {
        if (round->masters[i] == match) {
            if (ret) {
                ret[count] = &round->pods[i];
            }
            count++;
        }
    }
    return count;
}

/* NULL when there are more VPAs than the limit. */
static struct team *team_of(struct td_boost_revert *round, const struct td_match_vpa *match)
{
    const struct td_boost_revert_input *input = &round->input;
    struct team *team = td_map_get(&round->teams, match->key);
    if (team) {
        return team;
    }
    team = td_arena_new(input->arena, struct team);
    if (td_map_put(&round->teams, match->key, team) < 0) {
        return NULL;
    }
    team->pod_count = pods_of(round, match, NULL);
    const struct td_pod **pods =
        td_arena_array(input->arena, const struct td_pod *, team->pod_count);
    (void)pods_of(round, match, pods);
    const struct td_restriction_input of = {
        .arena = input->arena,
        .groups = &round->groups,
        .source = input->source,
        .vpa = match->vpa,
        .pods = pods,
        .pod_count = team->pod_count,
        .config = input->config,
        .gates = input->gates,
        .now = input->now,
    };
    td_restriction_init(&team->restriction, &of);
    return team;
}

static bool has_expired(const struct td_pod *pod, const struct td_vpa *vpa, td_time now)
{
    for (const struct td_json *item = td_json_first_member(pod->meta.annotations); item;
         item = item->next) {
        if (td_boost_is_expired(pod, vpa, item->key, now)) {
            return true;
        }
    }
    return false;
}

static int judge_expired(struct td_boost_revert *round, const struct td_match_vpa *match,
                         const struct td_pod *pod, struct td_boost_revert_answer *ret,
                         struct td_error *err)
{
    const struct td_boost_revert_input *input = &round->input;
    int code = round->has_pods ? TD_OK : count_pods(round, err);
    if (code < 0) {
        return code;
    }
    struct team *team = team_of(round, match);
    struct td_boost_revert_answer answer = {
        .fate = TD_BOOST_REVERT_HELD, .vpa = match->vpa, .pod_count = team ? team->pod_count : 0};
    if (!team || !td_restriction_can_revert_boost(&team->restriction, pod)) {
        *ret = answer;
        return TD_OK;
    }
    static const struct td_limit_ranges no_limits;
    const struct td_resize_input resize = {
        .pod = pod,
        .vpa = match->vpa,
        .limits = input->limits ? input->limits : &no_limits,
        .gates = *input->gates,
        .now = input->now,
    };
    code = td_resize_patch(input->arena, &resize, &answer.patch, err);
    answer.fate = code == TD_OK ? TD_BOOST_REVERT_NOW : TD_BOOST_REVERT_HELD;
    *ret = answer;
    return code;
}

int td_boost_revert_judge(struct td_boost_revert *round, const struct td_pod *pod,
                          struct td_boost_revert_answer *ret, struct td_error *err)
{
    struct td_boost_revert_answer answer = {.fate = TD_BOOST_REVERT_NOTHING};
    if (!td_boost_is_in_progress(pod) || pod->is_terminating || pod->ready != TD_CONDITION_TRUE) {
        *ret = answer;
        return TD_OK;
    }
    const struct td_match_vpa *match = NULL;
    int code = find_master(round, pod, &match, err);
    if (code < 0) {
        return code;
    }
    if (match && has_expired(pod, match->vpa, round->input.now)) {
        return judge_expired(round, match, pod, ret, err);
    }
    answer.fate = match ? TD_BOOST_REVERT_LATER : TD_BOOST_REVERT_NO_VPA;
    answer.vpa = match ? match->vpa : NULL;
    td_duration remaining = match ? td_boost_remaining(pod, match->vpa, round->input.now) : 0;
    /* A boost has expired when its time has passed, not yet at that very moment. */
    answer.after = remaining > 0 ? remaining + TD_MILLISECOND : 0;
    *ret = answer;
    return TD_OK;
}
