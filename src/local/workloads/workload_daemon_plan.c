/*
 * Which nodes need a pod and which pods must go, and how a rolling update of a DaemonSet goes on.
 */
#include "local/workloads/workload_daemon_plan.h"

static bool daemon_is_running(const struct td_daemon_pod *pod)
{
    return !pod->is_terminating && !pod->is_finished;
}

/* When new pods come first, two are allowed as long as the new one is not there and the old one
 * still serves. */
static void daemon_prune_surge(struct td_daemon_node *node)
{
    struct td_daemon_pod *young = NULL;
    struct td_daemon_pod *old = NULL;
    for (size_t i = 0; i < node->count; i++) {
        struct td_daemon_pod *pod = &node->pods[i];
        struct td_daemon_pod **place = pod->is_new ? &young : &old;
        if (!daemon_is_running(pod)) {
            continue;
        }
        if (*place) {
            pod->is_deleted = true;
        } else {
            *place = pod;
        }
    }
    if (young && old && (!old->is_ready || young->is_available)) {
        old->is_deleted = true;
    }
}

static void daemon_prune(struct td_daemon_node *node)
{
    size_t kept = 0;
    for (size_t i = 0; i < node->count; i++) {
        if (daemon_is_running(&node->pods[i]) && kept++ > 0) {
            node->pods[i].is_deleted = true;
        }
    }
}

static size_t daemon_count_running(const struct td_daemon_node *node)
{
    size_t running = 0;
    for (size_t i = 0; i < node->count; i++) {
        running += daemon_is_running(&node->pods[i]);
    }
    return running;
}

void td_daemon_manage(struct td_daemon_node *nodes, size_t count,
                      const struct td_daemon_limits *limits)
{
    for (size_t n = 0; n < count; n++) {
        struct td_daemon_node *node = &nodes[n];
        if (node->should_run && node->count == 0) {
            node->is_created = true;
        } else if (node->should_continue && limits->surge_max == 0) {
            daemon_prune(node);
        } else if (node->should_continue) {
            node->is_created = daemon_count_running(node) == 0 && node->should_run;
            daemon_prune_surge(node);
        } else {
            for (size_t i = 0; i < node->count; i++) {
                node->pods[i].is_deleted = !node->pods[i].is_terminating;
            }
        }
    }
}

/* The pods of a node that are not on their way out: at most one of each kind, or it is left to
 * td_daemon_manage. */
struct daemon_pair {
    struct td_daemon_pod *young;
    struct td_daemon_pod *old;
    bool is_clear;
};

static struct daemon_pair daemon_pair_of(const struct td_daemon_node *node)
{
    struct daemon_pair pair = {.is_clear = true};
    for (size_t i = 0; i < node->count; i++) {
        struct td_daemon_pod *pod = &node->pods[i];
        struct td_daemon_pod **place = pod->is_new ? &pair.young : &pair.old;
        if (!pod->is_terminating) {
            pair.is_clear = pair.is_clear && !*place;
            *place = pod;
        }
    }
    return pair;
}

/* Old pods go first: those that are of no use anyway, then as many as may be missing. */
static void daemon_roll_missing(struct td_daemon_node *nodes, size_t count, int64_t unavailable_max)
{
    int64_t unavailable = 0;
    for (size_t n = 0; n < count; n++) {
        struct daemon_pair pair = daemon_pair_of(&nodes[n]);
        if (nodes[n].count == 0 && !nodes[n].should_run) {
            continue;
        }
        if (!pair.is_clear || (pair.young != NULL) == (pair.old != NULL)) {
            unavailable++;
        } else if (pair.young) {
            unavailable += !pair.young->is_available;
        } else if (!pair.old->is_available) {
            pair.old->is_deleted = true;
            unavailable++;
        }
    }
    for (size_t n = 0; n < count && unavailable < unavailable_max; n++) {
        struct daemon_pair pair = daemon_pair_of(&nodes[n]);
        if (pair.is_clear && pair.old && !pair.young && pair.old->is_available) {
            pair.old->is_deleted = true;
            unavailable++;
        }
    }
}

/* New pods come first: where the old one is of no use, then as many as may be too many. */
static void daemon_roll_surge(struct td_daemon_node *nodes, size_t count, int64_t surge_max)
{
    int64_t surge = 0;
    for (size_t n = 0; n < count; n++) {
        struct daemon_pair pair = daemon_pair_of(&nodes[n]);
        if (!pair.is_clear || (pair.old && pair.young && !pair.young->is_available)) {
            surge++;
        } else if (pair.old && pair.young) {
            pair.old->is_deleted = true;
        } else if (pair.old && !pair.old->is_available) {
            nodes[n].is_created = nodes[n].should_run;
            pair.old->is_deleted = !nodes[n].should_run;
        }
    }
    for (size_t n = 0; n < count && surge < surge_max; n++) {
        struct daemon_pair pair = daemon_pair_of(&nodes[n]);
        if (pair.is_clear && pair.old && !pair.young && pair.old->is_available &&
            nodes[n].should_run) {
            nodes[n].is_created = true;
            surge++;
        }
    }
}

void td_daemon_roll(struct td_daemon_node *nodes, size_t count,
                    const struct td_daemon_limits *limits)
{
    if (limits->surge_max > 0) {
        daemon_roll_surge(nodes, count, limits->surge_max);
    } else {
        daemon_roll_missing(nodes, count, limits->unavailable_max);
    }
}
