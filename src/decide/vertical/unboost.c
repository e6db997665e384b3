#include "decide/vertical/unboost.h"

#define BOOST_PREFIX TD_STR("vpaCpuStartupBoost/")

/* The container's own time, else that of the VPA, else none. */
static td_duration duration_of(const struct td_vpa *vpa, td_str container)
{
    const struct td_container_policy *policy = td_vpa_container_policy(&vpa->policy, container);
    if (policy && policy->startup_boost.has_cpu && policy->startup_boost.has_duration) {
        return policy->startup_boost.duration_seconds * TD_SECOND;
    }
    return vpa->startup_boost.has_cpu ? vpa->startup_boost.duration_seconds * TD_SECOND : 0;
}

struct td_boost_status td_boost_status_of(const struct td_vpa *vpa,
                                          const struct td_vertical_pod *pod, td_time now)
{
    struct td_boost_status status = {.count = 0};
    if (!td_json_is(pod->meta.annotations, TD_JSON_TYPE_OBJECT)) {
        return status;
    }
    bool is_ready = pod->ready == TD_CONDITION_TRUE;
    for (const struct td_json *item = pod->meta.annotations->first; item; item = item->next) {
        if (!td_str_starts_with(item->key, BOOST_PREFIX)) {
            continue;
        }
        status.count++;
        td_duration duration =
            duration_of(vpa, td_str_slice(item->key, BOOST_PREFIX.len, item->key.len));
        td_duration since;
        if (pod->ready_since == TD_TIME_NONE ||
            __builtin_sub_overflow(now, pod->ready_since, &since)) {
            since = INT64_MAX; /* Ready for ever */
        }
        if (is_ready && (duration == 0 || since > duration)) {
            status.expired_count++;
        } else if (is_ready && duration > since &&
                   (status.remaining == 0 || duration - since < status.remaining)) {
            status.remaining = duration - since;
        }
    }
    return status;
}

bool td_boost_is_active(const struct td_vertical_pod *pod)
{
    if (!td_json_is(pod->meta.annotations, TD_JSON_TYPE_OBJECT)) {
        return false;
    }
    for (const struct td_json *item = pod->meta.annotations->first; item; item = item->next) {
        if (td_str_starts_with(item->key, BOOST_PREFIX)) {
            return true;
        }
    }
    return false;
}
