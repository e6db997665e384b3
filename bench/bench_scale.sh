#!/bin/sh
# What a cluster costs `tandem run` as it grows: at 15,000, 50,000 and 150,000 pods of two containers, a VPA for each 15 of them, on a local
# cluster in a process of its own. Of each size: memory after passes of recommender and updater, webhook included; processor time of the first complete pass after a
# start (all lists, all checkpoints, metrics, recommendations), and of one later pass; and the exponents with which both grow. Exits 1 when a
# goal of docs/scale.md is missed. Usage: bench_scale.sh BUILD
#
# BENCH_SCALE_APPS ("1000 3333 10000") Deployments, BENCH_SCALE_REPLICAS (15) pods each, BENCH_SCALE_KEEP: where logs are left. The
# goals of memory and time are those of 150,000 pods, and are not looked at where there is no such size.
set -u
build=$(cd "$1" && pwd)
top=$(cd "$(dirname "$0")/.." && pwd)
sizes=${BENCH_SCALE_APPS:-1000 3333 10000}
replicas=${BENCH_SCALE_REPLICAS:-15}
spaces=100
work=${BENCH_SCALE_KEEP:-$(mktemp -d)}
mkdir -p "$work"
pids=
leave() {
    for pid in $pids; do kill "$pid"; done 2>/dev/null
    wait
    [ -n "${BENCH_SCALE_KEEP:-}" ] || rm -rf "$work"
}
trap leave EXIT
trap 'exit 2' INT TERM
. "$top/bench/cluster.sh"

passes() { figure "$url" '_recommender_.*_count.*step="total"'; }
has_passed() { [ "$(passes)" -ge "$1" ]; }
has_updated() { [ "$(figure "$url" 'vpa_updater_execution_latency.*_count.*step="total"')" -ge 1 ]; }

# start NAME: tandem run, up to its first complete pass
start() {
    "$build/tandem" run --kubeconfig "$config" --webhook-listen 127.0.0.1:0 --address 127.0.0.1:0 --recommender-interval 10s \
        --updater-interval 10s --checkpoints-timeout 10m --kube-api-qps 2000 --kube-api-burst 4000 --v 1 >"$work/$1.out" 2>&1 </dev/null &
    run_pid=$!
    pids="$pids $run_pid"
    await 120 "tandem run does not start" grep -q "metrics_port=" "$work/$1.out"
    url=http://127.0.0.1:$(sed -n 's/.*metrics_port=\([0-9]*\).*/\1/p' "$work/$1.out" | head -n 1)
    await 600 "no pass of the recommender ends" has_passed 1
}

stop() {
    kill "$1"
    wait "$1" 2>/dev/null
}

# size APPS: a line "PODS MIB FIRST LATER" in figures
size() {
    cluster_up "$1"
    start "$1-learns" # and writes the checkpoints that the next one reads
    stop "$run_pid"
    start "$1-reads"
    first=$(processor "$run_pid")
    before=$(passes)
    await 300 "no second pass ends" has_passed $((before + 1))
    later=$(processor "$run_pid")
    await 300 "no third pass ends" has_passed $((before + 2))
    later=$(echo "$(processor "$run_pid") $later" | awk '{ print $1 - $2 }')
    await 300 "no pass of the updater ends" has_updated
    pods=$(($1 * replicas))
    echo "$pods $(resident "$run_pid") $first $later" | tee -a "$work/figures" | awk '{
        printf "bench scale_memory_%d %d MiB\nbench scale_first_pass_%d %.2f s\nbench scale_later_pass_%d %.2f s\n", $1, $2, $1, $3, $1, $4 }'
    stop "$run_pid"
    stop "$up_pid"
}

rm -f "$work/figures"
for apps in $sizes; do
    size "$apps"
done

# The slope of a line through the logarithms.
awk 'function slope(column,   i, n, x, y, sx, sy, sxx, sxy) {
        for (i = 1; i <= NR; i++) { x = log(row[i, 1]); y = log(row[i, column]); sx += x; sy += y; sxx += x * x; sxy += x * y }
        return NR > 1 ? (NR * sxy - sx * sy) / (NR * sxx - sx * sx) : 0
    }
    function goal(name, value, most) {
        if (value > most) { printf "broken: %s is %s, promised at most %s\n", name, value, most; bad = 1 }
    }
    { for (i = 1; i <= 4; i++) row[NR, i] = $i
      if ($1 == 150000) { goal("memory at 150,000 pods in MiB", $2, 192); goal("the first pass of 150,000 pods in s", $3, 30) } }
    END {
        if (NR > 1) {
            printf "bench scale_memory_exponent %.3f exponent\nbench scale_first_pass_exponent %.3f exponent\n", slope(2), slope(3)
            goal("the exponent of memory", slope(2), 1.05)
            goal("the exponent of the first pass", slope(3), 1.05)
        }
        exit bad
    }' "$work/figures"
