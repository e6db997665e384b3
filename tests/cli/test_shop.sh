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
# lacks NAME FILE PATTERN
lacks() {
    count=$((count + 1))
    if grep -qE "$3" "$2"; then
        echo "not ok $count - $1: $(grep -E "$3" "$2" | head -n 3)"
        failed=$((failed + 1))
    else
        echo "ok $count - $1"
    fi
}
has "a container is out of memory in it" "$work/hour" '^day 1 00:[0-9:]+  Pod cache-[0-9a-z-]+  OOMKilled: '
has "a pod leads" "$work/hour" '^day 1 00:[0-9:]+  Pod db-[0-2]  RoleTaken: is leader now'
has "a workload is throttled" "$work/hour" '^ worker .* [1-9][0-9]*% '
has "requests wait" "$work/hour" '^ worker .* [0-9.]+(s|m) +[0-9]'
has "reports are written" "$work/hour" '^ report +[^ ]* +0 +[1-9][0-9]*m +[1-9]'

check "three days" 0 '^3 nodes, 1[0-9] pods \(0 pending\)' '' simulate --controllers none --events "$top/examples/shop"
has "the role moves" "$work/out" '^day 1 01:45:00  StatefulSet db  move-role: role=leader moves to db-1'
has "and moves again" "$work/out" '^day 1 09:30:00  StatefulSet db  move-role: role=leader moves to db-2'
has "a node is lost" "$work/out" '^day 1 20:00:[0-9]+  Node node-2  node-loss: '
has "its pods go elsewhere" "$work/out" '^day 1 20:[0-9:]+  Pod web-[0-9a-z-]+  TaintManagerEviction: '
has "webhooks do not answer" "$work/out" '^day 2 02:00:00  Scenario  webhook-down: '
has "web is throttled at its peaks" "$work/out" '^ web +hvpa/web +4 .* [1-9]% '
has "the autoscalers are known" "$work/out" '^ db \(leader\) +vpa/db-leader +1 '

# Three hours with the autoscalers: three minutes of tandem up --speed 60, in which each of the five is seen at work.
check "its first hours with the autoscalers" 0 '^3 nodes, [0-9]+ pods \(0 pending\)' '' simulate --for 3h --events "$top/examples/shop"
cp "$work/out" "$work/hours"
hours=$work/hours
has "Hvpa: fewer replicas at night" "$hours" '^day 1 00:[0-9:]+  Hvpa web  HorizontalScaled: 4 -> 3 replicas; HorizontalApplied, RatioBased'
has "Hvpa: smaller ones too" "$hours" '^day 1 00:[0-9:]+  Hvpa web  VerticalScaled: web memory 512Mi -> 2[0-9]{8}; VerticalApplied, RatioBased'
has "Hvpa: replicas carry a burst" "$hours" '^day 1 00:3[0-9:]+  Hvpa web  HorizontalScaled: 4 -> [5-6] replicas; HorizontalApplied, RatioBased, Ratio$'
lacks "Hvpa: no pod is disturbed for it" "$hours" '^day 1 00:[345].*  Hvpa web  VerticalScaled'
has "Hvpa: and over when it is over" "$hours" '^day 1 01:[0-9:]+  Hvpa web  HorizontalScaled: 3 -> 2 replicas; '
lacks "Hvpa: no fidgeting" "$hours" '^day 1 .*  Hvpa web  VerticalScaled: web cpu ([0-9])([0-9])[0-9]m -> \1\2[0-9]m'
has "selector: the leader has its size" "$hours" '^day 1 00:0[0-9:]+  Pod db-0  ResizeCompleted: db cpu 600m -> [0-9]+m, db memory 2Gi -> 7[0-9]{9}$'
has "selector: the size follows the role" "$hours" '^day 1 01:4[56]:[0-9]+  Pod db-1  ResizeCompleted: db cpu 600m -> [0-9]+m, db memory 2Gi -> 7[0-9]{9}$'
has "selector: who does not lead any more follows" "$hours" '^day 1 01:4[56]:[0-9]+  Pod db-0  ResizeCompleted: .*db memory 7[0-9]{9} -> 2[0-9]{9}$'
has "selector: no follower is the size of a leader" "$hours" '^ db \(follower\) +vpa/db-follower +2 .* [34]\.[0-9]Gi '
has "owners: the strategy is in force" "$hours" '^day 1 00:00:[0-9]+  HorizontalPodAutoscaler api  SelectionStrategyActive: .*OwnerReference'
has "owners: the api grows by its own pods" "$hours" '^day 1 00:3[0-9:]+  HorizontalPodAutoscaler api  SuccessfulRescale: New size: 3; reason: cpu '
has "owners: reports beside it do not count" "$hours" '^ report +[^ ]* +0 +[1-9][0-9]*m +[1-9]'
has "pod level: batch comes back" "$hours" '^day 1 00:[0-9:]+  Pod batch-[0-9a-z-]+  EvictedByVPA: '
has "pod level: in its size" "$hours" '^ batch +vpa/batch +2 +7\.[0-9] +2\.[0-9] '
has "requirements: a wish to shrink is withheld" "$hours" '^day 1 00:0[0-9:]+  VerticalPodAutoscaler cache  EvictionRequirements: 2 pods are not updated: .*TargetHigherThanRequests'
has "requirements: growth is not" "$hours" '^day 1 00:[0-9:]+  Pod cache-[0-9a-z-]+  ResizeCompleted: cache cpu 1 -> [0-9]+m, cache memory 768Mi -> [89][0-9]{8}, '
has "requirements: and no container runs out of memory" "$hours" '^ cache +vpa/cache .* 0 +0 +0 +[1-9][0-9]* '
finish
