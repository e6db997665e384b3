#!/bin/sh
# `tandem simulate` from outside: the table, the events, the same as JSON, bytes that follow from scenario and seed, and scenarios
# that are wrong: one line, exit 2, no other output.
. "$(dirname "$0")/lib.sh"
corner=$top/tests/data/scenarios/corner/corner.yaml

# bad NAME TEXT...: a scenario in its own folder, beside the objects of the corner shop.
bad() {
    mkdir -p "$work/bad"
    cp "$top/tests/data/scenarios/corner/objects.yaml" "$work/bad"
    {
        printf 'apiVersion: sim.tandem.dev/v1\nkind: Scenario\nmetadata: {name: bad}\nspec:\n  duration: 1h\n  manifests: [objects.yaml]\n'
        printf '%s\n' "$2"
    } >"$work/bad/$1.yaml"
}
bad target '  demand:
  - {target: {kind: Deployment, name: wob}, cpu: 1m, memory: 1Mi}'
bad container '  demand:
  - {target: {kind: Deployment, name: web, container: side}, cpu: 1m, memory: 1Mi}'
bad field '  demnd: []'
bad event '  events:
  - {at: 1m, do: scale, target: deployment/wob, replicas: 2}'
bad endless ''
sed -i '/duration/d' "$work/bad/endless.yaml"
printf 'apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  replicas: -1\n' >"$work/negative.yaml"
bad refused ''
sed -i 's/objects.yaml/..\/negative.yaml/' "$work/bad/refused.yaml"

mkdir -p "$work/gates"
sed -n '1,/^---$/p' "$top/tests/data/scenarios/corner/objects.yaml" >"$work/gates/objects.yaml"
cat >>"$work/gates/objects.yaml" <<'EOF'
apiVersion: autoscaling.k8s.io/v1alpha1
kind: Hvpa
metadata: {name: web}
spec:
  hpaSpec:
    spec:
      scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
      maxReplicas: 4
      metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]
EOF
cat >"$work/gates/gates.yaml" <<'EOF'
apiVersion: sim.tandem.dev/v1
kind: Scenario
metadata: {name: gates}
spec:
  duration: 20m
  manifests: [objects.yaml]
  demand:
  - {target: {kind: Deployment, name: web}, cpu: 900m, memory: 50Mi}
EOF

check "the table has its columns" 0 '^ WORKLOAD +BY +PODS +CPU REQ +USED +SLACK +THROTTLED +MEM REQ +USED +SLACK +OOMS +RESTARTS ' '' simulate "$corner"
check "roles are rows of their own" 0 '^ db \(leader\) +vpa/db-leader +1 ' '' simulate "$corner"
check "kills are counted" 0 '^ leaky .* 3 +3 +1 +0 ' '' simulate "$corner"
check "totals" 0 '^ total +8 ' '' simulate --controllers none "$corner"
check "a shorter run" 0 '^ total +6 ' '' simulate --controllers none --for 20m "$corner"
check "the autoscalers are at work" 0 'HorizontalPodAutoscaler web  SuccessfulRescale: ' '' simulate --events "$corner"
check "only some of them" 0 '^ total +8 ' '' simulate --controllers recommender "$corner"
check "an Hvpa acts" 0 '^ web +hvpa/web +4 ' '' simulate "$work/gates/gates.yaml"
check "unless its gate is off" 0 '^ web +2 ' '' simulate --feature-gates Hvpa=false "$work/gates/gates.yaml"
check "without a flag" 0 '^ web +hpa/web +6 ' '' simulate "$corner"
check "a flag of a controller" 0 '^ web +hpa/web +4 ' '' simulate --horizontal-pod-autoscaler-tolerance 1000 --metrics "$work/metrics.txt" "$corner"
count=$((count + 1))
if grep -q '^horizontal_pod_autoscaler_controller_' "$work/metrics.txt"; then
    echo "ok $count - what its controllers counted"
else
    echo "not ok $count - what its controllers counted: $(head -c 300 "$work/metrics.txt")"
    failed=$((failed + 1))
fi
check "a bad value of one" 2 '' "^tandem: simulate: --updater-interval: '0s': must be" simulate --updater-interval 0s "$corner"
check "a flag of a connection is none of it" 2 '' '^tandem: simulate: --kube-api-qps: unknown option' simulate --kube-api-qps 3 "$corner"
check "a gate that is none" 2 '' "^tandem: simulate: --feature-gates: 'Nope': unknown gate$" simulate --feature-gates Nope=true "$corner"
check "a controller that is none" 2 '' "^tandem: simulate: --controllers: 'x': must be one of recommender, " simulate --controllers updater,x "$corner"
check "events as they happen" 0 '^day 1 01:00:00  StatefulSet db  move-role: role=leader moves to db-1$' '' simulate --events "$corner"
check "a kill is an event" 0 'Pod leaky-[0-9a-z-]+  OOMKilled: ' '' simulate --events "$corner"
check "figures as JSON" 0 '"cpuRequestedMilli": [0-9]' '' simulate -o json "$corner"
check "events as JSON" 0 '"reason": "node-loss"' '' simulate -o json "$corner"
check "the same as YAML" 0 '^scenario: corner$' '' simulate -o yaml --for 1h "$corner"
check "a target that the manifests lack" 2 '' '^tandem: .*target.yaml:8: spec.demand\[0\].target: Deployment/wob: no such object in the manifests$' simulate "$work/bad/target.yaml"
check "a container that the pods lack" 2 '' '^tandem: .*container.yaml:8: spec.demand\[0\].target.container: side: ' simulate "$work/bad/container.yaml"
check "an unknown field" 2 '' '^tandem: .*field.yaml:7: spec.demnd: ' simulate "$work/bad/field.yaml"
check "an event without its target" 2 '' '^tandem: .*event.yaml:8: spec.events\[0\].target: Deployment/wob: ' simulate "$work/bad/event.yaml"
check "a manifest that is refused" 2 '' '^tandem: .*negative.yaml:5: spec.replicas: Invalid value: -1: ' simulate "$work/bad/refused.yaml"
check "no duration" 2 '' '^tandem: simulate: .*endless.yaml: the scenario has no duration; use --for$' simulate "$work/bad/endless.yaml"
check "an endless scenario for a while" 0 '^ total ' '' simulate --for 5m "$work/bad/endless.yaml"
check "a missing file" 2 '' '^tandem: .*absent.yaml: No such file or directory$' simulate "$work/absent.yaml"
check "no scenario" 2 '' '^tandem: simulate: no scenario; ' simulate
check "two scenarios, one after the other" 0 '^.*gates.yaml:$' '' simulate --for 5m "$corner" "$work/gates/gates.yaml"
check "two scenarios as JSON" 0 '^  "runs": \[$' '' simulate --for 5m -o json "$corner" "$work/gates/gates.yaml"
check "metrics of two scenarios" 2 '' '^tandem: simulate: --metrics: only allowed with one scenario$' simulate --metrics "$work/metrics.txt" "$corner" "$corner"
check "a second scenario that is wrong" 2 '' '^tandem: .*field.yaml:7: spec.demnd: ' simulate "$corner" "$work/bad/field.yaml"
check "a time that is none" 2 '' "^tandem: simulate: --for: 'soon': must be a duration such as " simulate --for soon "$corner"
check "no time at all" 2 '' "^tandem: simulate: --for: '0s': must be a duration such as " simulate --for 0s "$corner"
check "a seed that is none" 2 '' "^tandem: simulate: --seed: 'x': " simulate --seed x "$corner"
check "events beside data" 2 '' '^tandem: simulate: --events: only allowed with --output table' simulate --events -o json "$corner"
check "an unknown option" 2 '' '^tandem: simulate: --nope: ' simulate --nope "$corner"
check "help of the command" 0 '^usage: tandem simulate ' '' simulate --help
check "help of the program" 0 '^  simulate ' '' --help

# same NAME ARGS...: two runs give the same bytes.
same() {
    name=$1
    shift
    count=$((count + 1))
    "$tandem" simulate "$@" >"$work/first" 2>&1
    "$tandem" simulate "$@" >"$work/second" 2>&1
    if [ -s "$work/first" ] && cmp -s "$work/first" "$work/second"; then
        echo "ok $count - $name"
    else
        echo "not ok $count - $name"
        failed=$((failed + 1))
    fi
}
same "the same bytes every time" -o json "$corner"
cp "$work/first" "$work/seven"
same "with any seed" -o json --seed 8 "$corner"
count=$((count + 1))
if cmp -s "$work/first" "$work/seven"; then
    echo "not ok $count - another seed is another run"
    failed=$((failed + 1))
else
    echo "ok $count - another seed is another run"
fi
finish
