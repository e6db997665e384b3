/*
 * A transport (kube/client/transport.h) straight into the API handler of this process: the same
 * requests and answers as over HTTPS, without sockets, certificates or copies of the network.
 * Controllers cannot tell the difference. Deadlines are not needed and not kept: an answer comes in
 * the same turn of the loop, a watch ends by itself.
 */
#pragma once

#include "kube/client/transport.h"
#include "local/api/api.h"

struct td_transport_local_options {
    struct td_api *api; /* borrowed */
    struct td_loop *loop;
    td_str user;       /* who the requests come from; copied */
    td_str group;      /* one group: "system:masters" */
    td_str user_agent; /* copied */
};

/* Ended with ops->free. */
struct td_transport *td_transport_local_new(const struct td_transport_local_options *options);
