/*
 * Which pods of a DaemonSet come and go: pure. Nodes come in a fixed order, the pods of each the
 * oldest first.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct td_daemon_pod {
    bool is_new; /* of the present template */
    bool is_terminating;
    bool is_finished; /* Failed or Succeeded: whether it goes is not decided here */
    bool is_ready;
    bool is_available;
    bool is_deleted; /* answer */
};

struct td_daemon_node {
    bool should_run;
    bool should_continue;
    struct td_daemon_pod *pods;
    size_t count;
    bool is_created; /* answer: a pod of the present template */
};

struct td_daemon_limits {
    int64_t unavailable_max;
    int64_t surge_max; /* above 0: new pods come before old ones go */
};

/* One pod on each node that should have one, none where it may not be. */
void td_daemon_manage(struct td_daemon_node *nodes, size_t count,
                      const struct td_daemon_limits *limits);

/* Replaces pods of old templates, within the limits. */
void td_daemon_roll(struct td_daemon_node *nodes, size_t count,
                    const struct td_daemon_limits *limits);
