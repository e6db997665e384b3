#!/bin/sh
# History from a real Prometheus (Debian's package, fed by promtool with eight made-up days): `tandem recommend --from prometheus`
# without any cluster, and `tandem run --prometheus-address` on a `tandem up` that has no controllers of its own. Exit 77, which
# skips it, where there is no Prometheus to be had; in CI that is a failure.
. "$(dirname "$0")/lib.sh"
unset KUBECONFIG PROMETHEUS_USERNAME PROMETHEUS_PASSWORD

from="recommend --from prometheus"
# What is refused needs no Prometheus.
check "--from knows one word" 2 '' "^tandem: recommend: --from: 'thanos': must be prometheus" recommend --from thanos http://h
check "without a URL" 2 '' '^tandem: recommend: --from prometheus: must be followed by a URL' $from
check "with two of them" 2 '' "^tandem: recommend: 'http://i': takes options only" $from http://h http://i
check "a scheme that is none" 2 '' "^tandem: recommend: 'ftp': the scheme must be https or http" $from ftp://h
check "a password in it" 2 '' '^tandem: recommend: must not hold a user name or password$' $from http://u:secret@h
check "a window that is none" 2 '' "^tandem: recommend: --window: 'x': must be a duration from 1h to 90d" $from http://h --window x
check "a window that is too long" 2 '' "^tandem: recommend: --window: '91d': must be a duration" $from http://h --window 91d
check "a cluster besides" 2 '' '^tandem: recommend: --kubeconfig: not allowed with --from prometheus, which contacts no cluster' $from http://h --kubeconfig k
check "a window without it" 2 '' '^tandem: recommend: --window: only allowed with --from prometheus' recommend --window 3d
check "a token that is not there" 2 '' "^tandem: recommend: .*$work/none" $from http://h --prometheus-bearer-token-file "$work/none"
check "no server there" 2 '' '^tandem: recommend: http://127.0.0.1:1: Failed to connect' $from http://127.0.0.1:1

programs=$("$top/scripts/prometheus" 2>"$work/why") || {
    cat "$work/why"
    finish || exit 1
    [ -z "${CI:-}" ] || exit 1
    exit 77
}
command -v curl >/dev/null || { echo "curl is missing" && [ -z "${CI:-}" ] && exit 77; exit 1; }

say() {
    count=$((count + 1))
    name=$1
    shift
    if "$@"; then
        echo "ok $count - $name"
    else
        echo "not ok $count - $name: $(tail -n 5 "$work/run.err" 2>/dev/null)"
        failed=$((failed + 1))
    fi
}
running=
end() {
    for process in $running; do
        kill "$process" 2>/dev/null
    done
    wait
    rm -rf "$work"
}
trap end EXIT

. "$(dirname "$0")/prometheus.sh"

# ---- Without a cluster ----

serve whole
check "a Deployment of today and of yesterday" 0 '^ shop +deploy/web x1 +web +- +2 → 9[0-9][0-9]m +4Gi → 7[0-9][0-9]Mi +−1.[01][0-9]*? cpu, −3.2Gi$' '' \
    $from "$prometheus"
check "a StatefulSet that ran out of memory" 0 '^ shop +sts/db x1 +db +- +1 → 1.7[0-9]+ +4Gi → 5.7Gi +! out of memory 3x, \+7[0-9][0-9]m cpu, \+1.7Gi$' '' \
    $from "$prometheus" --window 14d
check "a CronJob between two runs" 0 '^ shop +cj/report x0 +report +- +500m → .* +64Mi → .*not enough data (.*)$' '' $from "$prometheus"
check "no request" 0 '^ other +ds/agent x1 +agent +- +none → [0-9]+m +none → ≤ 64Mi \(floor\) +no cpu request, no memory request$' '' $from "$prometheus"
check "and a pod without a controller" 0 '^1 pod without a controller is not included$' '' $from "$prometheus"
check "one namespace" 0 '^total: 0 → [0-9]+m cpu, 0 → 0 memory \(and floors of 64Mi\)' '' $from "$prometheus" -n other
check "none of that name" 2 '' "^tandem: recommend: $prometheus: no containers in the last 14d: .* in this namespace" $from "$prometheus" -n none
check "as data" 0 '^      "ooms": 3$' '' $from "$prometheus" --output json
check "as YAML" 0 '^kind: StatefulSet$' '' $from "$prometheus" --output yaml
check "a page that is not Prometheus" 2 '' "^tandem: recommend: $prometheus/graph: HTTP 404" $from "$prometheus/graph"
if command -v python3 >/dev/null; then
    target() { "$tandem" $from "$prometheus" --output json | python3 -c "
import json, sys
rows = {r['container']: r for r in json.load(sys.stdin)['containers']}
print(*[rows[n]['should'][m] for n in ('web', 'db') for m in ('cpu', 'memory')])"; }
    say "targets to the byte" [ "$(target)" = "920m 813749082 1737m 6117462922" ]
fi
serve bare -v facts=no
check "without kube-state-metrics" 0 '^ shop +\?/web x1 +web +- +none → 9[0-9][0-9]m ' '' $from "$prometheus"
check "which is said" 0 '^warning: Prometheus has no kube_pod_owner series for these pods' '' $from "$prometheus"
"$tandem" $from "$prometheus" --output yaml >"$work/out" 2>"$work/err"
say "and no YAML is made up" [ ! -s "$work/out" ]

# ---- A recommender that starts ----

: >"$work/up.out"
"$tandem" up --quiet --controllers none --listen 127.0.0.1:0 --kubeconfig "$work/k" >"$work/up.out" 2>&1 &
running="$running $!"
soon 10 grep -q 'stop ' "$work/up.out"
url=$(sed -n 's/.*\(https:[^ ]*\).*/\1/p' "$work/up.out")
cert() { sed -n "s/.*$1: *\"\\{0,1\\}\\([A-Za-z0-9+\/=]*\\).*/\\1/p" "$work/k" | base64 -d; }
cert client-certificate-data >"$work/crt"
cert client-key-data >"$work/key"
api() {
    path=$1
    shift
    curl --silent --insecure --max-time 10 --user-agent test --cert "$work/crt" --key "$work/key" "$@" "$url$path"
}
post() { api "$1" -X POST -H 'Content-Type: application/yaml' --data-binary @- >/dev/null; }
api /api/v1/namespaces -X POST -H 'Content-Type: application/json' --data '{"metadata":{"name":"shop"}}' >/dev/null
post /apis/apps/v1/namespaces/shop/deployments <<'YAML'
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app.kubernetes.io/name: web}}
  template:
    metadata: {labels: {app.kubernetes.io/name: web}, annotations: {usage.tandem.dev/web: "10m,20Mi"}}
    spec: {containers: [{name: web, image: nginx}]}
YAML
post /apis/autoscaling.k8s.io/v1/namespaces/shop/verticalpodautoscalers <<'YAML'
apiVersion: autoscaling.k8s.io/v1
kind: VerticalPodAutoscaler
metadata: {name: web}
spec:
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  updatePolicy: {updateMode: "Off"}
YAML
pod() { api /api/v1/namespaces/shop/pods | sed -n 's/.*"name":"\(web-[a-z0-9]*-[a-z0-9]*\)".*/\1/p' | head -n 1; }
has_pod() { [ -n "$(pod)" ]; }
soon 10 has_pod
serve mine -v web="$(pod)"

start() {
    : >"$work/run.err" # the words of the one before are none of this one's
    "$tandem" run --kubeconfig "$work/k" --controllers recommender --address 127.0.0.1:0 --recommender-interval 1s \
        --prometheus-cadvisor-job-name '' --container-pod-name-label pod --container-name-label container --pod-label-prefix label_ \
        --metric-for-pod-labels 'last_over_time(kube_pod_labels[8d])' --pod-namespace-label namespace --pod-name-label pod "$@" \
        >"$work/run.out" 2>"$work/run.err" &
    pid=$!
    running="$running $pid"
    soon 10 grep -q ' runs ' "$work/run.err"
    metrics=http://127.0.0.1:$(sed -n 's/.*metrics_port=\([0-9]*\).*/\1/p' "$work/run.err" | head -n 1)
}
stop() {
    kill "$pid"
    wait "$pid"
}
vpa=/apis/autoscaling.k8s.io/v1/namespaces/shop/verticalpodautoscalers/web
# One sample an hour: 390m, and 780m in two of five hours; 700 MB. With the margin of 15 % and the width of a bucket.
recommends() { api "$vpa" | grep -q '"target":{"cpu":"9[0-9][0-9]m","memory":"8[0-9]*"'; }
checkpoints=/apis/autoscaling.k8s.io/v1/namespaces/shop/verticalpodautoscalercheckpoints
keeps_days() { api "$checkpoints/web-web" | grep '"firstSampleStart":"' | grep -qv "\"firstSampleStart\":\"$(date -u +%Y-%m-%d)"; }
counts() { curl --silent --max-time 5 "$metrics/metrics" | grep -q "^$1$"; }

check "an address that is none" 2 '' "^tandem: run: .*--prometheus-address: 'ftp': the scheme must be" run --prometheus-address ftp://h \
    --kubeconfig "$work/k" --address 127.0.0.1:0
start --prometheus-address http://127.0.0.1:1
say "no server there: one line says so" soon 10 grep -q 'cannot read history from Prometheus, continuing with checkpoints.*127.0.0.1:1' "$work/run.err"
say "and it is counted" soon 10 counts 'tandem_recommender_history_reads_total{is_error="true"} 1'
say "and it works without" soon 20 counts 'vpa_recommender_vpa_objects_count{update_mode="Off",has_recommendation="false".*} 1'
say "in one line" [ "$(grep -c 'history from' "$work/run.err")" -eq 1 ]
stop
# What was learnt meanwhile stays with its checkpoint, history goes before it.
start --prometheus-address "$prometheus"
say "the first recommendation knows eight days" soon 20 recommends
say "which is counted" counts 'tandem_recommender_history_reads_total{is_error="false"} 1'
say "and told" grep -q 'loaded history from Prometheus containers=2 pods_gone=1 samples=3[0-9][0-9]' "$work/run.err"
say "and kept" soon 20 keeps_days
stop
# Now the checkpoint has it all.
start --storage checkpoint --prometheus-address http://127.0.0.1:1
say "a restart without Prometheus forgets nothing" soon 20 counts 'vpa_recommender_vpa_objects_count{update_mode="Off",has_recommendation="true".*} 1'
say "nor does it change" recommends
say "and Prometheus was not queried" [ "$(grep -c Prometheus "$work/run.err")" -eq 0 ]
stop

finish
