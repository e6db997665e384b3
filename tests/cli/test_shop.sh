#!/bin/sh
# The examples hold what they promise: manifests without problems, and a shop in which, with no autoscaler at work, use follows
# the day, limits throttle at the peak, a cache leaks, a task runs every half hour, a role moves and a node is lost. With them it is
# another shop.
. "$(dirname "$0")/lib.sh"

check "all examples together" 0 '^no problems in [0-9]+ objects ' '' validate "$top/examples"
check "the shop alone" 0 '^no problems in [0-9]+ objects ' '' validate "$top/examples/shop"

check "its first hour" 0 '^3 nodes, [0-9]+ pods \(0 pending\)' '' simulate --controllers none --for 1h --events "$top/examples/shop"
cp "$work/out" "$work/hour"
# has NAME FILE PATTERN
has() {
    count=$((count + 1))
    if grep -qE "$3" "$2"; then
        echo "ok $count - $1"
    else
        echo "not ok $count - $1: $(tail -n 12 "$2" | head -c 1500)"
        failed=$((failed + 1))
    fi
}
has "somebody is out of memory in it" "$work/hour" '^day 1 00:[0-9:]+  Pod cache-[0-9a-z-]+  OOMKilled: '
has "somebody leads" "$work/hour" '^day 1 00:[0-9:]+  Pod db-[0-2]  RoleTaken: is leader now'
has "somebody is throttled" "$work/hour" '^ worker .* [1-9][0-9]*% '
has "somebody waits" "$work/hour" '^ worker .* [0-9.]+(s|m) +[0-9]'
has "reports are written" "$work/hour" '^ report +[^ ]* +0 +[1-9][0-9]*m +[1-9]'

check "three days" 0 '^3 nodes, 1[0-9] pods \(0 pending\)' '' simulate --controllers none --events "$top/examples/shop"
has "the role moves" "$work/out" '^day 1 09:30:00  StatefulSet db  move-role: role=leader moves to db-1'
has "a node is lost" "$work/out" '^day 1 20:00:[0-9]+  Node node-2  node-loss: '
has "its pods go elsewhere" "$work/out" '^day 1 20:[0-9:]+  Pod web-[0-9a-z-]+  TaintManagerEviction: '
has "webhooks do not answer" "$work/out" '^day 2 02:00:00  Scenario  webhook-down: '
has "web is throttled at its peaks" "$work/out" '^ web +hvpa/web +4 .* [1-9]% '
has "the autoscalers are known" "$work/out" '^ db \(leader\) +vpa/db-leader +1 '

check "its first hour with the autoscalers" 0 '^3 nodes, [0-9]+ pods \(0 pending\)' '' simulate --for 1h --events "$top/examples/shop"
cp "$work/out" "$work/hour"
has "the cache has room to grow" "$work/hour" '^ cache +vpa/cache .* 0 +0 +0 +[1-9][0-9]* '
has "its leader has its size" "$work/hour" '^day 1 00:[0-9:]+  Pod db-0  ResizeCompleted: '
has "the api grows by its own pods" "$work/hour" '^day 1 00:[0-9:]+  HorizontalPodAutoscaler api  SuccessfulRescale: '
has "the batch comes back in its size" "$work/hour" '^day 1 00:[0-9:]+  Pod batch-[0-9a-z-]+  EvictedByVPA: '
has "size and number together" "$work/hour" '^day 1 00:[0-9:]+  Hvpa web  (HorizontalScaled|VerticalScaled): '
finish
