/*
 * Every cap in one place. A number that bounds what the world can make us do has its name here;
 * code never carries it bare. Relations between caps are asserted at the end.
 */
#pragma once

#include <assert.h>
#include <stddef.h>

/* Text formats. */
#define TD_JSON_DEPTH_MAX 512                /* nested arrays and objects */
#define TD_JSON_BYTES_MAX ((size_t)64 << 20) /* one JSON text read from a file or the network */
#define TD_YAML_BYTES_MAX ((size_t)64 << 20) /* one YAML stream */
#define TD_YAML_DEPTH_MAX 512                /* nested collections */
#define TD_YAML_ALIAS_NODES_MAX                                                                    \
    ((size_t)1000000) /* nodes made by expanding aliases in one stream */
#define TD_YAML_FLOW_STEPS_MAX                                                                     \
    ((size_t)200000000) /* values between brackets in one stream, each counted once a bracket */
#define TD_YAML_TAG_DIRECTIVES_MAX 64             /* %TAG directives in one stream */
#define TD_YAML_ANCHORS_MAX ((size_t)100000)      /* anchors of one YAML document */
#define TD_TREE_ARENA_BYTES_MAX ((size_t)1 << 30) /* one tree made from one text */
#define TD_STRICT_PROBLEMS_MAX 100 /* unknown and duplicate fields named in one answer */
#define TD_STRICT_PATH_BYTES_MAX ((size_t)4096) /* path of one such field; longer ones are cut */

#define TD_BODY_TREE_BYTES_MAX ((size_t)12 << 20) /* tree of one request body */
#define TD_BODY_VALUES_MAX ((size_t)50000)        /* in it: the largest definitions have 30,000 */
#define TD_BODY_ITEMS_MAX ((size_t)10000)         /* of one list or object in it */
#define TD_FIELD_ERRORS_MAX ((size_t)100)         /* named of one object */
#define TD_FIELD_ERROR_TEXT_BYTES_MAX                                                              \
    ((size_t)2048) /* of each: its path, its value, its detail; longer ones are cut */

/* Kubernetes vocabulary. */
#define TD_QUANTITY_TEXT_BYTES_MAX 1024 /* one quantity as text */
#define TD_QUANTITY_DIGITS_MAX 2048     /* kept of one quantity; a result's lower ones are cut */
#define TD_SELECTOR_BYTES_MAX ((size_t)1 << 20)       /* one selector as text */
#define TD_SHARD_SELECTOR_RUNES_MAX 100000            /* one shard selector, as upstream */
#define TD_SHARD_SELECTOR_BYTES_MAX ((size_t)1 << 20) /* one as canonical text */
#define TD_SHARDS_MAX 64                              /* --shards */
#define TD_SHARD_LEASES_MAX 1024              /* leases of shards, of every N that there was */
#define TD_CEL_DEPTH_MAX 250                  /* expressions within each other, as upstream */
#define TD_PROTO_BYTES_MAX ((size_t)64 << 20) /* one object in protobuf, as one in JSON */
#define TD_PROTO_PATH_BYTES_MAX ((size_t)512) /* path of a bad field in it; the rest is cut */
#define TD_PATCH_OPERATIONS_MAX 10000 /* operations of one JSON patch, as the API server's */
#define TD_APPLY_CONFLICT_BYTES_MAX                                                                \
    ((size_t)1 << 20) /* field paths named when one apply is refused */
#define TD_PATCH_COPY_BYTES_MAX                                                                    \
    ((size_t)3 << 20) /* bytes copied by one JSON patch, as the API server's */
#define TD_PATCH_STEPS_MAX                                                                         \
    ((size_t)100000000) /* nodes that one JSON patch may visit to find and weigh its places */

/* How we find and prove ourselves to a cluster. */
#define TD_KUBECONFIG_BYTES_MAX ((size_t)8 << 20)  /* one kubeconfig file */
#define TD_KUBECONFIG_FILES_MAX 64                 /* files of $KUBECONFIG */
#define TD_KUBECONFIG_ENTRIES_MAX 10000            /* clusters, users or contexts of one file */
#define TD_KUBECONFIG_DEPTH_MAX 12                 /* fields below each other that we know */
#define TD_PEM_BYTES_MAX ((size_t)4 << 20)         /* one certificate or key file */
#define TD_PKI_NAMES_MAX 256                       /* SANs or groups of one certificate */
#define TD_PKI_BACKDATE_SECONDS 60                 /* our certificates begin this long before now */
#define TD_TOKEN_BYTES 32                          /* random bytes of a token we make */
#define TD_TOKEN_FILE_BYTES_MAX ((size_t)1 << 20)  /* one bearer token */
#define TD_TOKEN_FILE_AGE_MS 60000                 /* a token file is read again after this long */
#define TD_PEM_FILE_AGE_MS 5000                    /* a certificate file is looked at again */
#define TD_EXEC_OUTPUT_BYTES_MAX ((size_t)1 << 20) /* what a credential plugin may print */
#define TD_EXEC_INFO_BYTES_MAX ((size_t)1 << 20)   /* what it is told in its environment */
#define TD_EXEC_DEADLINE_MS 60000                  /* for one run of it */
#define TD_EXEC_INTERVAL_MIN_MS 5000               /* between two starts of it */
#define TD_CREDENTIALS_WAITS_MAX ((size_t)1 << 16) /* requests that wait for one run */
#define TD_PROCESS_ARGS_MAX 4096                   /* arguments, or variables, of one process */

/* The local cluster. */
#define TD_INFORMER_TRIM_DEPTH_MAX 16
#define TD_INFORMER_WORKLOADS_MAX 4096              /* kept decoded; past that all are let go of */
#define TD_INFORMER_RESOURCES_MAX ((size_t)1 << 16) /* kinds that discovery names */
#define TD_INFORMER_SCALES_MAX ((size_t)1 << 18)    /* scales that are remembered */
#define TD_INFORMER_BUCKETS_MAX ((size_t)1 << 23)   /* different labels of pods, by namespace */
#define TD_METRICS_VERSION_BYTES_MAX 32
#define TD_METRICS_STREAM_MS 60000                       /* for all pods, to the last byte */
#define TD_METRICS_PATH_BYTES_MAX ((size_t)65536)        /* a selector may be long */
#define TD_PROMETHEUS_HEAD_BYTES_MAX ((size_t)64 << 10)  /* of an answer, its series left out */
#define TD_PROMETHEUS_SERIES_BYTES_MAX ((size_t)4 << 20) /* one series, its points included */
#define TD_PROMETHEUS_LABELS_MAX ((size_t)256)           /* of one series */
#define TD_PROMETHEUS_DEPTH_MAX 8                        /* an answer has seven levels */
#define TD_PROMETHEUS_QUERY_BYTES_MAX ((size_t)16 << 10) /* one query before it is escaped */
#define TD_HISTORY_STEPS_MAX 256                         /* points of one series in one answer */
#define TD_HISTORY_POINTS_MAX ((size_t)1 << 22) /* of all series, between asking and learning */
#define TD_HISTORY_CONTAINERS_MAX ((size_t)1 << 22)
#define TD_FACTS_OOMS_MAX ((size_t)1 << 20) /* out of memory, in one window of history */
#define TD_RECOMMEND_MEETING_MS 500         /* from a VPA that came to the look for its siblings */
#define TD_RECOMMEND_URGENT_MS 1000         /* from an OOM to the checkpoint that knows of it */
#define TD_UPDATE_ARENA_BYTES_MAX ((size_t)2 << 30)    /* pods and VPAs of one part */
#define TD_UPDATE_PARTS 256                            /* of a namespace, looked at one by one */
#define TD_RECOMMEND_CONTAINERS_MAX 1024               /* of one VPA */
#define TD_RECOMMEND_OOMS_MAX 5000                     /* that wait for the next pass */
#define TD_WEBHOOK_BODY_BYTES_MAX ((size_t)5 << 20)    /* of a review, as upstream's */
#define TD_WEBHOOK_ANSWER_BYTES_MAX ((size_t)16 << 20) /* a patch can name every container */
#define TD_WEBHOOK_VALUES_MAX ((size_t)2 * TD_BODY_VALUES_MAX) /* of a review: two objects */
#define TD_WEBHOOK_REVIEW_BYTES_MAX ((size_t)32 << 20)         /* memory of one review */
#define TD_WEBHOOK_WAITING_MAX ((size_t)4096)        /* reviews that wait for what is being asked */
#define TD_WEBHOOK_LISTS_MAX 256                     /* namespaces listed at one time */
#define TD_WEBHOOK_LIST_BYTES_MAX ((size_t)32 << 20) /* what is kept of one such list */
#define TD_WEBHOOK_RECENT_MAX 4096                   /* objects admitted and not yet seen */
#define TD_WEBHOOK_SIBLINGS_BYTES_MAX                                                              \
    ((size_t)1 << 20)           /* of siblings that one review is judged beside */
#define TD_WEBHOOK_NAMES_MAX 16 /* that a certificate is for */
#define TD_METRIC_FAMILIES_MAX 1024
#define TD_METRIC_SERIES_MAX ((size_t)1 << 20)       /* of one family */
#define TD_METRIC_TEXT_BYTES_MAX ((size_t)256 << 20) /* of one answer with all of them */
#define TD_ENGINE_TICK_MS 5000 /* between two looks at what containers want and get */
#define TD_ENGINE_NODES_MAX 10000
#define TD_ENGINE_PODS_MAX ((size_t)1 << 18)       /* of all nodes */
#define TD_ENGINE_CONTAINERS_MAX ((size_t)1 << 20) /* of all pods */
#define TD_ENGINE_ENTRIES_MAX ((size_t)1 << 20)    /* of what workloads want */
#define TD_ENGINE_ROWS_MAX ((size_t)1 << 21)       /* roles of workloads that run or are named */
#define TD_ENGINE_STARTUP_MAX ((int64_t)86400 * 365 * 1000000000) /* however slow starts are */
#define TD_ENGINE_JUMP_MIN_US 1000 /* between two jumps of one entry; those between are late */
#define TD_ENGINE_SAMPLES_MAX ((size_t)256)       /* kept of one container */
#define TD_ENGINE_LATENCY_SECONDS_MAX 3600        /* told at most */
#define TD_WORLD_ENTRIES_MAX ((size_t)1 << 20)    /* pods, workloads or autoscalers it knows */
#define TD_WORLD_DECISION_BYTES_MAX ((size_t)240) /* of a line of text */
#define TD_WORLD_PARTS_MAX ((size_t)16)           /* roles of one workload that are kept apart */
#define TD_SIMULATE_EVENTS_MAX ((size_t)100000)   /* in the report of one run */
#define TD_RECORD_COLUMNS 2048                    /* of a series that is kept, two points each */
#define TD_RECORD_COLUMNS_MIN 256                 /* where many workloads share the room */
#define TD_RECORD_ROWS_FULL 20                    /* workloads that are kept in all columns */
#define TD_RECORD_ROWS_MAX ((size_t)200)          /* workloads that are kept */
#define TD_RECORD_EVENTS_MAX ((size_t)20000)      /* of one run */
#define TD_RECORD_RULES_MAX ((size_t)100)         /* --fail-if of one run */
#define TD_RECORD_RUNS_MAX ((size_t)16)           /* scenarios or policies side by side */
#define TD_REPORT_BYTES_MAX ((size_t)256 << 20)   /* one report */
#define TD_WORLD_TRIES_MAX 8                      /* of one request while the server fails */
#define TD_WEBHOOKS_MAX 64                        /* that one request is sent to */
#define TD_WEBHOOK_PEERS_MAX 256 /* servers of webhooks that we keep connections to */
#define TD_WEBHOOK_CALL_ANSWER_BYTES_MAX ((size_t)8 << 20)
#define TD_API_HEADERS_MAX 64    /* of one answer, warnings included */
#define TD_GRANT_RIGHTS_MAX 8192 /* single rights of a role that are compared with the writer's */
#define TD_TOKEN_TEXT_BYTES_MAX ((size_t)16 << 10) /* one bearer token */

/* The client of an API server. */
#define TD_API_PATH_BYTES_MAX ((size_t)64 << 10)     /* one request path with its query */
#define TD_CLIENT_ANSWER_BYTES_MAX TD_JSON_BYTES_MAX /* body of one whole answer */
#define TD_CLIENT_ANSWERS_BYTES_MAX (2 * TD_CLIENT_ANSWER_BYTES_MAX) /* of all calls in flight */
#define TD_CLIENT_ERROR_BYTES_MAX ((size_t)256 << 10) /* kept of a stream's refusal */
#define TD_CLIENT_QUEUE_MAX ((size_t)1 << 16)         /* calls of one flow that wait or run */
#define TD_CLIENT_IN_FLIGHT_MAX                                                                    \
    ((size_t)32)              /* calls at the server at one time, each on a connection of its own */
#define TD_CLIENT_TRIES_MAX 8 /* of one call */
#define TD_CLIENT_DEADLINE_MS 30000 /* of one call, when it names none */
#define TD_CLIENT_PAUSE_MIN_MS 200  /* before the second try; doubles */
#define TD_CLIENT_PAUSE_MAX_MS 10000
#define TD_TRANSPORT_CONNECTIONS_MAX 256L  /* to one server; more calls wait */
#define TD_TRANSPORT_CONNECT_MS 10000L     /* for TCP and TLS of one connection */
#define TD_TRANSPORT_KEPT_SECONDS 60L      /* unused; the server closes after 90 */
#define TD_TRANSPORT_KEEPALIVE_SECONDS 30L /* of silence before the peer is asked */
#define TD_TRANSPORT_DEAD_PEER_MS 45000    /* without an acknowledgement: the connection is lost */
#define TD_TRANSPORT_CALLS_MAX ((size_t)1 << 16) /* calls and streams of one transport */
#define TD_TRANSPORT_ANSWER_BYTES_MAX                                                              \
    ((size_t)1 << 30)                      /* decoded bytes of an answer with a deadline           \
                                            */
#define TD_TRANSPORT_RETIRE_MS 30000       /* then calls under an old certificate are cut */
#define TD_EVENTS_CACHE_MAX ((size_t)4096) /* remembered by each of the correlator's caches */
#define TD_EVENTS_QUEUE_MAX ((size_t)1000) /* events that wait to be written */
#define TD_EVENTS_SIMILAR_MAX 10           /* distinct messages before they are combined */
#define TD_EVENT_MESSAGE_BYTES_MAX ((size_t)1024) /* as the API server's */
#define TD_LEASE_BYTES_MAX ((size_t)1 << 20)      /* one Lease object */
#define TD_BEARER_ANSWERS_MAX ((size_t)1024)      /* of the API server about bearer tokens, kept */
#define TD_BEARER_ASKS_MAX ((size_t)64)           /* tokens that it is asked about at one time */
#define TD_BEARER_BYTES_MAX ((size_t)1 << 20)     /* memory of one of these questions */
#define TD_ACCESS_RULES_MAX ((size_t)1024)        /* permissions asked for in one preflight */

/* The list+watch cache. */
#define TD_CACHE_OBJECTS_MAX ((size_t)1 << 20)      /* of one resource */
#define TD_CACHE_FIELDS_MAX 64                      /* declared of one object */
#define TD_CACHE_PATH_PARTS_MAX 8                   /* names in the path of one field */
#define TD_CACHE_HANDLERS_MAX 16                    /* consumers of one cache */
#define TD_OBJECT_KEY_BYTES_MAX ((size_t)1023)      /* namespace and name of one object */
#define TD_CACHE_VERSION_BYTES_MAX ((size_t)1024)   /* one resourceVersion */
#define TD_CACHE_CONTINUE_BYTES_MAX ((size_t)16384) /* one continue token */
#define TD_CACHE_EVENT_BYTES_MAX ((size_t)16 << 20) /* one line of a watch */
#define TD_CACHE_PIECE_BYTES ((size_t)64 << 10)     /* of a watch, read in one go */
#define TD_CACHE_SHOWN_BYTES ((size_t)100)          /* of a line that is no event */
#define TD_CACHE_PAGE_COUNT 500                     /* objects of one page, at first ... */
#define TD_CACHE_PAGE_COUNT_MAX 16000               /* ... and when pages expire too soon */
#define TD_CACHE_PAGE_DEADLINE_MS 60000             /* for one page, repetitions included */
#define TD_CACHE_WATCH_SECONDS_MIN 300              /* a watch is asked to last this long ... */
#define TD_CACHE_WATCH_SECONDS_SPREAD 300           /* ... and up to this longer */
#define TD_CACHE_SILENCE_MS 150000 /* without event or bookmark: the connection is dead */
#define TD_CACHE_PAUSE_MIN_MS 500  /* between two attempts; doubles, jitter around it */
#define TD_CACHE_PAUSE_MAX_MS 30000
#define TD_CACHE_GOOD_WATCH_MS 1000   /* a watch that brought something and lasted this long, ... */
#define TD_CACHE_QUIET_WATCH_MS 10000 /* ... or just lasted this long, begins pauses anew */
#define TD_CACHE_STREAM_TRIES 2       /* of a streaming list, before pages are asked for instead */
#define TD_CACHE_STREAM_REFUSALS_MAX 3 /* lists that needed that, before streams are given up */

/* What the vertical recommender tracks. */
#define TD_RECOMMENDER_PODS_MAX ((size_t)1 << 20)
#define TD_RECOMMENDER_VPAS_MAX ((size_t)1 << 18)
#define TD_RECOMMENDER_NAMESPACES_MAX ((size_t)1 << 18)
#define TD_RECOMMENDER_TEXTS_MAX ((size_t)1 << 21) /* distinct names */
#define TD_POD_CONTAINERS_MAX 4096                 /* containers of one pod */
#define TD_SIBLINGS_MAX ((size_t)1000) /* VPAs of one target compared with each other in files */

/* Workloads. */
#define TD_CONTROLLER_CHAIN_MAX 32 /* controllers above each other, from a pod's owner upwards */
#define TD_SCALE_RESOURCES_MAX 16  /* resources of one kind whose scale is asked for */
#define TD_CONTROLLERS_MAX ((size_t)1 << 20)  /* controllers known at one time */
#define TD_VPAS_MAX ((size_t)1 << 17)         /* VPAs of one cluster */
#define TD_HELD_REASONS_MAX (4 * TD_VPAS_MAX) /* why pods of a VPA are not updated, of all VPAs */
#define TD_TARGET_VPAS_MAX 256                /* VPAs of one target; younger ones are left out */
#define TD_UPDATER_PODS_MAX ((size_t)1 << 20) /* pods that the updater remembers something of */

#define TD_CRON_STEPS_MAX 100000 /* times of one schedule that are looked at in one pass */
#define TD_JOB_INDEXES_MAX ((size_t)1 << 20) /* indexes of one Job that are kept apart */
#define TD_CUSTOM_WORKLOADS_MAX ((size_t)64) /* custom kinds whose pods the cluster runs */
#define TD_STATEFUL_SLOTS_MAX                                                                      \
    ((size_t)1 << 17) /* ordinals of one StatefulSet that are looked at                            \
                       */

/* Usage traces. */
#define TD_TRACE_BYTES_MAX ((size_t)256 << 20) /* one file */
#define TD_TRACES_MAX 100000                   /* containers in one replay */
#define TD_TRACE_WINDOWS_MAX ((size_t)8000000) /* windows of all of them */
#define TD_TRACE_POINTS_MAX ((size_t)20000000) /* points of Prometheus series, before windows */

/* Scenario files. */
#define TD_SCENARIO_BYTES_MAX ((size_t)16 << 20) /* one file */
#define TD_SCENARIO_DAYS_MAX 3650                /* of any duration in it */
#define TD_SCENARIO_DEMANDS_MAX ((size_t)20000)  /* demand entries */
#define TD_SCENARIO_EVENTS_MAX ((size_t)20000)
#define TD_SCENARIO_MANIFESTS_MAX ((size_t)1000) /* named by one scenario */
#define TD_SCENARIO_METRICS_MAX ((size_t)1000)   /* series that metrics tell */
#define TD_SCENARIO_LABELS_MAX ((size_t)32)      /* of one external metric */
#define TD_SCENARIO_ROLES_MAX ((size_t)64)       /* of one workload */
#define TD_SCENARIO_POINTS_MAX ((size_t)1000000) /* of all series, those of traces too */
#define TD_SCENARIO_CHAIN_MAX ((size_t)16)       /* workloads that pass on requests in turn */
#define TD_SCENARIO_PODS_PER_NODE_MAX 10000
#define TD_SCENARIO_REPLICAS_MAX 100000           /* that an event asks for */
#define TD_SCENARIO_CPU_MAX 1000000               /* cores of anything */
#define TD_SCENARIO_MEMORY_MAX ((size_t)1 << 50)  /* bytes of anything: 1Pi */
#define TD_SCENARIO_RATE_MAX 1000000000           /* requests a second */
#define TD_SCENARIO_TIMES_MAX 1000                /* requests sent for one that is served */
#define TD_SCENARIO_FACTOR_MAX 1000000            /* factors and weights */
#define TD_SCENARIO_AMOUNT_MAX 1000000000000000   /* of a metric */
#define TD_SCENARIO_METRICS_SPAN_MAX_SECONDS 3600 /* resolution or lag of metrics */

#define TD_HVPA_METRICS_MAX 100    /* metrics of one Hvpa */
#define TD_LOOP_CONTAINERS_MAX 100 /* containers of a pod whose autoscalers are held together */

/* HTTP, as a server. Times are milliseconds of real time. */
#define TD_HTTP_LINE_BYTES_MAX ((size_t)16 << 10)   /* one request line */
#define TD_HTTP_HEADER_BYTES_MAX ((size_t)64 << 10) /* all header lines of one request */
#define TD_HTTP_HEADERS_MAX 128                     /* headers of one request */
#define TD_HTTP_BODY_BYTES_MAX ((size_t)4 << 20)    /* one request body */
#define TD_HTTP_BODIES_BYTES_MAX                                                                   \
    ((size_t)128 << 20) /* request bodies of all connections at one time; of one source half */
#define TD_HTTP_BODIES_COUNT_MAX ((size_t)1024)              /* requests that have one; likewise */
#define TD_HTTP_CHUNK_LINE_BYTES_MAX ((size_t)256)           /* size and extensions of one chunk */
#define TD_HTTP_CHUNK_EXTENSION_BYTES_MAX ((size_t)16 << 10) /* extensions of all its chunks */
#define TD_HTTP_CONNECTIONS_MAX ((size_t)4096)               /* fewer with few descriptors */
#define TD_HTTP_CONNECTIONS_MIN 64                           /* however few there are */
#define TD_HEALTH_CONNECTIONS_MAX ((size_t)256) /* of the port for health and metrics */
#define TD_FILES_RESERVED 512             /* descriptors for it and for all that is no server */
#define TD_HTTP_PEER_ORGANIZATIONS_MAX 64 /* organizations read of one certificate */
#define TD_HTTP_READ_AHEAD_BYTES                                                                   \
    ((size_t)64 << 10) /* read before the request in hand is answered */
#define TD_HTTP_WRITE_HIGH_BYTES                                                                   \
    ((size_t)256 << 10) /* a stream's writer pauses at so many unsent bytes */
#define TD_HTTP_WRITE_LOW_BYTES ((size_t)64 << 10) /* and is called back at so few */
#define TD_HTTP_HANDSHAKE_MS 5000                  /* TLS handshake */
#define TD_HTTP_HEAD_MS 10000                      /* request line and headers */
#define TD_HTTP_BODY_MS 60000                      /* request body */
#define TD_HTTP_BODY_PERIOD_MS 10000               /* in each, unless the body ends in it, */
#define TD_HTTP_BODY_PERIOD_BYTES ((size_t)4096)   /* so much of the body arrives */
#define TD_HTTP_IDLE_MS 120000 /* between two requests; common clients give up after 90 s */
#define TD_HTTP_WRITE_MS 60000 /* an answer of which the client takes nothing */
#define TD_HTTP_LINGER_MS 5000 /* reading on behind the last answer, so that it is seen */
#define TD_HTTP_LINGER_BYTES_MAX ((size_t)64 << 20) /* read and thrown away in that time */

/* Storage of the local cluster. */
#define TD_STORED_NAME_BYTES_MAX ((size_t)1024)      /* one namespace or name */
#define TD_STORED_JSON_BYTES_MAX ((size_t)4 << 20)   /* one object as text */
#define TD_NODES_OWN_MAX 5000                        /* nodes that a local cluster starts with */
#define TD_NODE_RESOURCES_MAX ((size_t)64)           /* kinds of resources that a node offers */
#define TD_NODE_TAINTS_MAX ((size_t)256)             /* with more of them no pod is placed there */
#define TD_GC_DEPENDENTS_MAX ((size_t)1 << 20)       /* objects that name an owner */
#define TD_COLLECTIONS_MAX ((size_t)1024)            /* kinds that have objects, users' included */
#define TD_COLLECTION_KEY_BYTES_MAX ((size_t)512)    /* "deployments.apps" */
#define TD_COLLECTION_OBJECTS_MAX ((size_t)1 << 18)  /* objects of one kind */
#define TD_STORE_BYTES_MAX ((size_t)2 << 30)         /* all objects' newest revisions */
#define TD_CHANGE_LOG_COUNT_MAX ((size_t)1 << 16)    /* changes that one kind remembers */
#define TD_CHANGE_LOG_BYTES_MAX ((size_t)32 << 20)   /* old revisions that one kind's log keeps */
#define TD_CHANGE_LOG_MINUTES 5                      /* until all of them forget a change */
#define TD_CHANGE_LOGS_BYTES_MAX ((size_t)256 << 20) /* old revisions that all logs keep */
#define TD_JOURNAL_PENDING_BYTES_MAX ((size_t)4 << 20) /* written, but not yet brought to disk */
#define TD_JOURNAL_PENDING_COUNT_MAX ((size_t)8192)    /* changes in them */
#define TD_STORE_HEAL_PAUSE (TD_SECOND / 2)            /* between two tries of a failed disk */
#define TD_JOURNAL_ROOM_BYTES ((size_t)1 << 20)     /* free on a disk that was full: writes go on */
#define TD_JOURNAL_LOG_BYTES_MIN ((size_t)16 << 20) /* a shorter log needs no snapshot */
#define TD_JOURNAL_SLICE_BYTES ((size_t)1 << 20)    /* of a snapshot, written in one turn */

/* The API handler of the local cluster. */
#define TD_API_CALL_BYTES_MAX ((size_t)512 << 20)     /* memory of one request that reads */
#define TD_API_WRITE_BYTES_MAX ((size_t)40 << 20)     /* memory of one request with a body */
#define TD_API_WAITING_BYTES_MAX ((size_t)256 << 20)  /* of all writes that wait; of a user half */
#define TD_API_WAITING_COUNT_MAX ((size_t)2048)       /* of them; likewise */
#define TD_API_SEGMENTS_MAX 32                        /* parts of one URL path */
#define TD_API_PARAMETERS_MAX 64                      /* of one URL query */
#define TD_API_ANSWER_BYTES_MAX ((size_t)64 << 20)    /* one whole answer, streams not counted */
#define TD_STATUS_MESSAGE_BYTES_MAX ((size_t)1 << 20) /* message of one Status; the rest is cut */
#define TD_API_WARNING_BYTES_MAX ((size_t)1024)       /* one of them; longer ones are cut */
#define TD_FIELD_MANAGER_BYTES_MAX 128                /* of a fieldManager, as the API server's */
#define TD_RESOURCES_MAX ((size_t)1 << 19)            /* kinds served, users' included */
#define TD_ACCEPT_CLAUSES_MAX 64                      /* of one Accept header */
#define TD_PAGE_TOKEN_BYTES_MAX ((size_t)8192)        /* one continue token, decoded */
#define TD_CRD_DEFAULT_NODES_MAX 100000 /* values that a schema's defaults add to one object */
#define TD_WATCH_REST_US 50 /* after telling a cursor of changes, before the next round begins */
#define TD_WATCH_REST_CURSORS ((size_t)500)      /* beyond which more do not lengthen it */
#define TD_WATCH_BOOKMARK_MS 9000                /* between two bookmarks of one watch */
#define TD_WATCH_SECONDS_MIN 1800                /* a watch that names no timeout lasts this ... */
#define TD_WATCH_SECONDS_SPREAD 1800             /* ... and up to this longer */
#define TD_WATCH_SECONDS_MAX 86400               /* however long a client asks for */
#define TD_STREAM_LEND_BYTES ((size_t)1024)      /* texts from this size on are lent, not copied */
#define TD_STREAM_BYTES_MAX ((size_t)64 << 20)   /* gathered at most: one object in any form */
#define TD_STREAM_BATCH_BYTES ((size_t)64 << 10) /* of small pieces that a stream gathers */

/* Writes through the API. */
#define TD_OBJECT_BYTES_MAX ((size_t)1536 << 10) /* one object as text, as etcd's */
#define TD_WRITE_ATTEMPTS_MAX 5                  /* of one request that others overtake */
#define TD_GENERATED_NAME_BASE_BYTES_MAX                                                           \
    ((size_t)58)                                   /* kept of generateName; five letters follow */
#define TD_GENERATED_NAME_ATTEMPTS_MAX 8           /* letters drawn when names are taken */
#define TD_GRACE_SECONDS_MAX 4294967296LL          /* that a deleted pod is given */
#define TD_EVENT_NAME_BASE_BYTES_MAX ((size_t)200) /* kept of the name an event is about */
#define TD_EVENT_MESSAGE_BYTES_MAX ((size_t)1024)
#define TD_REGEX_BYTES_MAX ((size_t)4096)                 /* one pattern */
#define TD_REGEX_DEPTH_MAX 200                            /* groups inside each other */
#define TD_REGEX_STEPS_MAX 20000                          /* of one compiled pattern */
#define TD_REGEX_WORK_MAX 100000                          /* nodes visited to compile it */
#define TD_REGEX_DEFINITION_BYTES_MAX ((size_t)160 << 10) /* patterns of one version's schema */
#define TD_SCHEMA_STEPS_MAX ((int64_t)1 << 22) /* of checking one object, patterns included */
#define TD_SCHEMA_DEPTH_MAX 512                /* values and schemas inside each other */
#define TD_TABLE_PATH_DEPTH_MAX 8        /* wildcards and filters inside each other in one column */
#define TD_BODY_SHOWN_BYTES ((size_t)30) /* of a body that cannot be read, in the answer */

/* Program. */
#define TD_PATH_BYTES_MAX ((size_t)4096)            /* one path of a file */
#define TD_FOLDER_DEPTH_MAX 32                      /* folders below one that is read */
#define TD_SCREEN_CELL_BYTES_MAX ((size_t)2048)     /* one cell of a table; the rest is cut */
#define TD_SCREEN_BYTES_MAX ((size_t)1 << 20)       /* one screen full, or one line of an event */
#define TD_SCREEN_VIEW_BYTES_MAX ((size_t)64 << 20) /* one look at a world */
#define TD_LOG_KEPT_BYTES_MAX                                                                      \
    ((size_t)256 << 10)  /* log lines kept while a table is on the screen */
#define TD_WATCHDOG_S 10 /* a loop that has not turned for so long ends the process */
#define TD_SLICE_US 2000 /* a pass yields to the event loop after this long */
#define TD_WORK_QUEUE_MAX ((size_t)1 << 20) /* jobs waiting in one work queue */
#define TD_CLOCK_SPEED_MAX 10000.0          /* of a local cluster: clock seconds in a real one */
#define TD_SLICE_JOBS_MAX 256               /* a slice's jobs on a virtual clock, instead of time */
#define TD_LOG_LINE_BYTES_MAX ((size_t)8192)  /* one log line; fields past it are left out */
#define TD_LOG_VALUE_BYTES_MAX ((size_t)1024) /* one value or message; the rest is cut */
#define TD_LOG_REPEATS_MAX 64                 /* messages whose repeats are counted at one time */
#define TD_LOG_REPEAT_WINDOW_MS                                                                    \
    10000 /* repeats of one message inside it are counted, not printed */

static_assert(TD_LOG_VALUE_BYTES_MAX * 6 + 1024 < TD_LOG_LINE_BYTES_MAX,
              "a line has room for a message of which each byte is escaped");
static_assert(TD_QUANTITY_TEXT_BYTES_MAX < TD_QUANTITY_DIGITS_MAX,
              "every digit of a quantity's text is kept");
static_assert(TD_PATCH_COPY_BYTES_MAX < TD_JSON_BYTES_MAX, "a patched document stays readable");
static_assert(TD_JOURNAL_PENDING_COUNT_MAX < TD_CHANGE_LOG_COUNT_MAX,
              "what may have to be taken back is in the log");
static_assert(TD_STORED_JSON_BYTES_MAX < TD_CHANGE_LOG_BYTES_MAX,
              "the log of a kind has room for its largest object");
static_assert(TD_COLLECTION_OBJECTS_MAX < TD_RESOURCES_MAX,
              "every definition of a custom resource has a place");
static_assert(TD_BODY_TREE_BYTES_MAX * 2 <= TD_API_WRITE_BYTES_MAX,
              "a body that was read leaves room to work on it");
static_assert(TD_JSON_BYTES_MAX < TD_TREE_ARENA_BYTES_MAX,
              "a text at its cap still has room for its tree");
static_assert(TD_OBJECT_BYTES_MAX * 4 < TD_CACHE_EVENT_BYTES_MAX,
              "the largest object fits into a line of a watch, in any form");
static_assert(TD_HTTP_WRITE_LOW_BYTES < TD_HTTP_WRITE_HIGH_BYTES, "a paused writer is called back");
static_assert(TD_HTTP_BODY_BYTES_MAX < TD_HTTP_BODIES_BYTES_MAX, "one body at its cap fits");
static_assert(TD_HTTP_BODY_BYTES_MAX < TD_HTTP_LINGER_BYTES_MAX,
              "a client whose body is refused can send it to its end");
