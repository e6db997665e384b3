#!/bin/sh
# 10,000 HPAs on the wire: `tandem run` with its HPA controller alone, on a local API server in a process of its own, at the default sync
# period and with nothing to scale. Processor time and requests a minute, and how late an HPA is judged: the metric of its work queue
# counts from when a sync is due, 15 s and at most a tenth after the last one. Usage: bench_wire.sh BUILD
#
# BENCH_WIRE_HPAS (10000) Deployments of BENCH_WIRE_PODS (3) pods, each with an HPA on cpu, in 100 namespaces; BENCH_WIRE_SECONDS (60);
# BENCH_WIRE_KEEP: where logs are left.
set -u
build=$(cd "$1" && pwd)
top=$(cd "$(dirname "$0")/.." && pwd)
hpas=${BENCH_WIRE_HPAS:-10000}
pods=${BENCH_WIRE_PODS:-3}
seconds=${BENCH_WIRE_SECONDS:-60}
work=${BENCH_WIRE_KEEP:-$(mktemp -d)}
mkdir -p "$work"
pids=
leave() {
    for pid in $pids; do kill "$pid"; done 2>/dev/null
    wait
    [ -n "${BENCH_WIRE_KEEP:-}" ] || rm -rf "$work"
}
trap leave EXIT
trap 'exit 2' INT TERM

. "$top/bench/cluster.sh"

manifests() {
    awk -v pods="$pods" -v from="$1" -v to="$2" 'BEGIN {
        for (i = from; i < to; i++) {
            ns = "load-" (i % 100)
            if (i < 100) printf "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n", ns
            printf "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: app-%d, namespace: %s}\nspec:\n", i, ns
            printf "  replicas: %d\n  selector: {matchLabels: {app: app-%d}}\n  template:\n    metadata:\n      labels: {app: app-%d}\n", pods, i, i
            printf "      annotations: {usage.tandem.dev/app: \"50m,16Mi\"}\n"
            printf "    spec: {containers: [{name: app, image: app, resources: {requests: {cpu: 100m, memory: 16Mi}}}]}\n"
            printf "---\napiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: app-%d, namespace: %s}\nspec:\n", i, ns
            printf "  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: app-%d}\n  minReplicas: %d\n  maxReplicas: %d\n", i, pods, pods * 2
            printf "  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]\n"
        }
    }'
}

cluster_files "$hpas" manifests
cluster_start $((hpas * pods / 500 + 1)) "$files"
measured() {
    [ "$(ask /apis/metrics.k8s.io/v1beta1/pods | grep -o '"timestamp"' | wc -l)" -ge $((hpas * pods)) ] && return
    sleep 9 # it is a large list
    return 1
}
await 60 "the pods of the local cluster are not measured" measured
"$build/tandem" run --kubeconfig "$config" --controllers horizontal --horizontal builtin --address 127.0.0.1:0 --leader-elect=false \
    --kube-api-qps 500 --kube-api-burst 1000 --v 1 >"$work/tandem.out" 2>&1 </dev/null &
pid=$!
pids="$pids $pid"
await 60 "tandem run does not start" grep -q "metrics_port=" "$work/tandem.out"
url=http://127.0.0.1:$(sed -n 's/.*metrics_port=\([0-9]*\).*/\1/p' "$work/tandem.out" | head -n 1)

syncs='^horizontal_pod_autoscaler_controller_reconciliations_total'
waits='^workqueue_queue_duration_seconds'
active() { [ "$(figure "$url" '^horizontal_pod_autoscaler_controller_metric_computation_total{action="none",error="none"')" -ge $((hpas * 3)) ]; }
await 300 "the HPAs are not judged" active
sleep 60 # the pace of the metrics is learnt, statuses are written

begun=$(processor $pid)
begun_up=$(processor $up_pid)
judged=$(figure "$url" "$syncs")
late=$(($(figure "$url" "${waits}_count") - $(figure "$url" "${waits}_bucket.*le=\"0.9\"")))
sent=$(figure "$url" '^tandem_client_calls_total')
sleep "$seconds"
judged=$(($(figure "$url" "$syncs") - judged))
late=$(($(figure "$url" "${waits}_count") - $(figure "$url" "${waits}_bucket.*le=\"0.9\"") - late))
sent=$(($(figure "$url" '^tandem_client_calls_total') - sent))
echo "$begun $(processor $pid) $begun_up $(processor $up_pid) $judged $late $sent $(resident $pid)" |
    awk -v hpas="$hpas" -v seconds="$seconds" '{
        minute = 60 / seconds
        printf "bench wire_hpas %d HPAs\nbench wire_processor %.2f s/min\nbench wire_server %.2f s/min\n", hpas, ($2 - $1) * minute, ($4 - $3) * minute
        printf "bench wire_syncs %d syncs/min\nbench wire_late %d syncs\nbench wire_requests %d requests/min\nbench wire_memory %.0f MiB\n", $5 * minute, $6, $7 * minute, $8
        if (($2 - $1) * minute > 5) { print "broken: more than 5 s of processor time a minute"; bad = 1 }
        if ($6 > 0) { print "broken: HPAs were judged later than 16 s after the last time"; bad = 1 }
        if ($5 * minute < hpas * 60 / 16) { print "broken: HPAs were not judged"; bad = 1 }
        exit bad
    }'
