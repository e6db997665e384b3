#!/bin/sh
# What the controllers cost: `tandem run` beside upstream's recommender, updater and admission controller plus the HPA controller (a
# controller manager that runs nothing else), one after the other on equal control planes with the same 1,000 workloads of three pods,
# each with a VPA and an HPA, the same usage at the same times and the default intervals. The machine may be faster in one quarter of an
# hour than in the next, so ours runs before the peer and behind it, and the mean of both counts. Usage: bench_live.sh BUILD
#
# Idle: usage stands still and every pod has what is recommended. Busy: CPU of every pod moves every 15 s, and memory of every second
# workload leaves the bounds of its recommendation, so that the updater has a pod of each of these to act on in each of its passes, half of
# them resized in place, half evicted and admitted anew: as much as both sides can do in the time, so that both do the same; a window with
# few updates is reported. The step has to be large: a pod younger than 12 hours is updated only outside the bounds, and with minutes of
# history the lower one is half of what is used and the upper one out of reach.
# Memory is resident, the mean of an idle and the highest of a busy window; processor time is of the whole process; requests are counted
# by the API server, in its audit log. BENCH_LIVE_COUNT (1000) workloads, BENCH_LIVE_WARM (20), BENCH_LIVE_IDLE (60) and
# BENCH_LIVE_BUSY (120) seconds of each window; BENCH_LIVE_SIDES ("tandem peer tandem"); BENCH_LIVE_KEEP: where logs are left.
set -u
build=$(cd "$1" && pwd)
top=$(cd "$(dirname "$0")/.." && pwd)
kit=$top/../shared/realplane
cache=${REALPLANE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tandem-realplane}
if [ ! -d "$kit" ] || [ ! -x "$cache/bin/vpa-recommender" ]; then
    echo "skipped: bench live (needs the control plane kit beside the tree, built by shared/realplane/build into REALPLANE_CACHE)"
    exit 0
fi
export REALPLANE_CACHE="$cache"
count=${BENCH_LIVE_COUNT:-1000}
busy=${BENCH_LIVE_BUSY:-120}
work=${BENCH_LIVE_KEEP:-$(mktemp -d)}
mkdir -p "$work"
tandem_pid=
bed=
status=0
end_tandem() {
    [ -z "$tandem_pid" ] || { kill "$tandem_pid"; wait "$tandem_pid"; } 2>/dev/null
    tandem_pid=
}
end_bed() {
    end_tandem
    [ -z "$bed" ] || "$top/bench/live/bed" "$kit" "$bed" stop >/dev/null 2>&1
    [ -z "$bed" ] || rm -rf "$bed/etcd"
    bed=
}
leave() {
    end_bed
    [ -n "${BENCH_LIVE_KEEP:-}" ] || rm -rf "$work"
}
trap leave EXIT
trap 'exit 2' INT TERM
kubectl() { "$cache/bin/kubectl" --kubeconfig "$bed/kubeconfig" "$@"; }

# workloads FROM STEP: each STEPth of them. A pod asks for exactly what is recommended at the usage of the idle window.
workloads() {
    i=$1
    while [ "$i" -lt "$count" ]; do
        mode=Recreate
        [ $((i % 2)) = 0 ] || mode=InPlaceOrRecreate
        name=calm-$i
        [ $((i / 2 % 2)) = 0 ] || name=step-$i
        cat <<END
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: $name, namespace: load}
spec:
  replicas: 3
  selector: {matchLabels: {app: $name}}
  template:
    metadata: {labels: {app: $name}}
    spec:
      containers:
      - {name: main, image: none, resources: {requests: {cpu: 25m, memory: "262144000"}}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: $name, namespace: load}
spec:
  minReplicas: 3
  maxReplicas: 6
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: $name}
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 60}}}]
---
apiVersion: autoscaling.k8s.io/v1
kind: VerticalPodAutoscaler
metadata: {name: $name, namespace: load}
spec:
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: $name}
  updatePolicy: {updateMode: "$mode"}
END
        i=$((i + $2))
    done
}

# usage CPU MEMORY: of every pod from now on, MEMORY of those that step
usage() {
    echo "{\"default\": {\"cpu\": \"$1\", \"memory\": \"20Mi\"}," \
        "\"pods\": [{\"namespace\": \"load\", \"pod\": \"step-*\", \"container\": \"main\", \"cpu\": \"$1\", \"memory\": \"$2\"}]}" >"$bed/usage.tmp"
    mv "$bed/usage.tmp" "$bed/usage.json"
}

# usage_busy SECONDS: since the window began. Memory leaves the bounds each three minutes, one for each pod of a workload, and grows by a
# little each minute; CPU moves every 15 s.
usage_busy() { usage $((8 + $1 / 15 % 4))m "$(((1024 << $1 / 180 * 2) + $1 / 60 * 40))Mi"; }

fill() {
    kubectl create namespace load >/dev/null || exit 2
    until kubectl -n load get serviceaccount default >/dev/null 2>&1; do sleep 0.5; done
    makers=
    for from in 0 1 2 3 4 5; do
        workloads $from 6 | kubectl create -f - >/dev/null &
        makers="$makers $!"
    done
    for maker in $makers; do wait "$maker" || exit 2; done
    for _ in $(seq 300); do
        [ "$(kubectl -n load get pods --field-selector status.phase=Running -o name | wc -l)" -lt $((count * 3)) ] || return 0
        sleep 2
    done
    echo "broken: the pods of the bed do not run"
    exit 2
}

# look PIDS: resident KiB and processor seconds, of all of them together
look() {
    echo "$1" | tr , '\n' | while read -r pid; do
        sed -n 's/^VmRSS:/rss/p' "/proc/$pid/status"
        sed 's/.*) //' "/proc/$pid/stat" | awk '{ print "ticks", $12 + $13 }'
    done | awk -v hz="$(getconf CLK_TCK)" '$1 == "rss" { r += $2 } $1 == "ticks" { t += $2 } END { print r, t / hz }'
}

# requests SIDE FROM-LINE: of that side in the audit log since then
requests() {
    tail -n "+$(($2 + 1))" "$bed/audit.log" | case $1 in
    tandem) grep -c '"userAgent":"tandem/' ;;
    peer) grep -c -e '"username":"hpa-controller"' -e '"userAgent":"vpa-\(recommender\|updater\|admission-controller\)/' \
        -e '"userAgent":"\(recommender\|updater\|admission-controller\)/' ;;
    esac
}

# window SIDE NAME SECONDS: watches a side at its work; figures into $work/SIDE.NAME, a line of each run
window() {
    lines=$(wc -l <"$bed/audit.log")
    begun=$(look "$pids")
    : >"$work/samples"
    at=0
    from=$(date +%s)
    while [ $at -lt "$3" ]; do
        [ "$2" != busy ] || usage_busy $at
        sleep 5
        look "$pids" >>"$work/samples"
        at=$(($(date +%s) - from)) # on a busy machine a look takes its time too
    done
    ended=$(tail -n 1 "$work/samples")
    made=$(requests "$1" "$lines")
    for pid in $(echo "$pids" | tr , ' '); do
        echo "$1 $2 $(cat "/proc/$pid/comm") $(look "$pid")" >>"$work/detail"
    done
    echo "$begun $ended $made $at" | awk -v mean="$(awk '{ s += $1 } END { print s / NR }' "$work/samples")" \
        -v most="$(sort -n "$work/samples" | tail -n 1 | cut -d' ' -f1)" -v name="$2" \
        '{ printf "%.1f %.2f %.0f\n", (name == "busy" ? most : mean) / 1024, ($4 - $2) * 60 / $6, $5 * 60 / $6 }' >>"$work/$1.$2"
}

updates() { # how often the updater acted with success in a window that began at line $1 of the audit log
    tail -n "+$(($1 + 1))" "$bed/audit.log" | grep -e '"subresource":"eviction"' -e '"subresource":"resize"' | grep -c '"code":20'
}

# It takes a pass of the recommender and then one of the updater until new usage leads to an update: up to two minutes, as their passes
# happen to lie. A busy window begins there.
await_update() {
    for _ in $(seq 90); do
        [ "$(updates "$1")" = 0 ] || return 0
        sleep 2
    done
}

side() {
    bed=$work/$1.bed
    rm -rf "$bed" # of an earlier run of this side
    "$top/bench/live/bed" "$kit" "$bed" up >"$work/$1.log" 2>&1 || { tail -5 "$work/$1.log"; exit 2; }
    usage 8m 20Mi
    "$build/tandem" manifests --only crds | kubectl apply --server-side -f - >/dev/null || exit 2
    if [ "$1" = peer ]; then
        "$top/bench/live/bed" "$kit" "$bed" peer >>"$work/$1.log" 2>&1 || { tail -5 "$work/$1.log"; exit 2; }
        pids=$(cat "$bed/peer.pids")
    else
        "$build/tandem" run --kubeconfig "$bed/kubeconfig" --webhook-listen 127.0.0.1:0 --address 127.0.0.1:0 --v 1 --horizontal builtin \
            --kube-api-qps 500 --kube-api-burst 1000 \
            >"$work/tandem.out" 2>&1 </dev/null &
        tandem_pid=$!
        pids=$tandem_pid
    fi
    fill
    sleep "${BENCH_LIVE_WARM:-20}"
    window "$1" idle "${BENCH_LIVE_IDLE:-60}"
    lines_busy=$(wc -l <"$bed/audit.log")
    usage_busy 0
    await_update "$lines_busy"
    lines_busy=$(wc -l <"$bed/audit.log")
    window "$1" busy "$busy"
    updates "$lines_busy" >>"$work/$1.updates"
    [ -n "${BENCH_LIVE_KEEP:-}" ] && cp "$bed/audit.log" "$work/$1.audit.log"
    end_bed
}

# compare FIGURE UNIT OURS THEIRS PROMISE: ratio of theirs to ours, and whether it is kept
compare() {
    echo "bench live_$1 $3 $2"
    echo "bench live_$1_peer $4 $2"
    echo "$3 $4 $5 $1" | awk '{ r = $2 / ($1 > 0 ? $1 : 0.01); printf "bench live_%s_ratio %.1f x\n", $4, r
        if (r < $3) { printf "broken: %s is %.1fx, promised %sx\n", $4, r, $3; exit 1 } }' || status=1
}

for one in ${BENCH_LIVE_SIDES:-tandem peer tandem}; do
    side "$one"
    for name in idle busy; do
        echo "# $one $name: MiB, processor s a minute, requests a minute: $(tail -n 1 "$work/$one.$name")"
    done
    acted=$(tail -n 1 "$work/$one.updates")
    echo "# $one acted on $acted pods"
    # On a slow machine a pass takes longer than its minute; less than half of what was due means that there was nothing to do.
    [ "$acted" -ge $((count * busy / 240)) ] || { echo "broken: the busy window of $one was not busy"; status=1; }
done
[ -f "$work/tandem.idle" ] && [ -f "$work/peer.idle" ] || exit 0
figure() { awk -v column="$2" '{ s += $column } END { printf "%.2f\n", s / NR }' "$work/$1"; }
for name in idle busy; do
    compare "memory_$name" MiB "$(figure tandem.$name 1)" "$(figure peer.$name 1)" 10
    compare "processor_$name" s/min "$(figure tandem.$name 2)" "$(figure peer.$name 2)" 10
    compare "requests_$name" requests/min "$(figure tandem.$name 3)" "$(figure peer.$name 3)" 1
done
compare updates_busy pods "$(figure tandem.updates 1)" "$(figure peer.updates 1)" 0
exit $status
