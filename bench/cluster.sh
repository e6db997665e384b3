#!/bin/sh
# The cluster of the benchmarks of `tandem run`, to be sourced: a local one in a process of its own, with Deployments of two containers,
# each with a VPA (cluster_up), or what the caller writes (cluster_files, cluster_start). Wants $build, $work and $pids, cluster_up $replicas
# and $spaces too; sets $config, $server, $up_pid. The caller cleans up.

# await SECONDS WHAT COMMAND...
await() {
    await_left=$1
    await_what=$2
    shift 2
    until "$@" >/dev/null 2>&1; do
        await_left=$((await_left - 1))
        [ $await_left -gt 0 ] || { echo "broken: $await_what in time"; exit 2; }
        sleep 1
    done
}

# cluster_manifests FROM TO
cluster_manifests() {
    awk -v replicas="$replicas" -v spaces="$spaces" -v from="$1" -v to="$2" 'BEGIN {
        for (i = from; i < to; i++) {
            ns = "load-" (i % spaces)
            if (i < spaces) printf "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n", ns
            printf "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: app-%d, namespace: %s}\nspec:\n", i, ns
            printf "  replicas: %d\n  selector: {matchLabels: {app: app-%d}}\n  template:\n    metadata: {labels: {app: app-%d}}\n", replicas, i, i
            printf "    spec:\n      containers:\n"
            printf "      - {name: app, image: app, resources: {requests: {cpu: 10m, memory: 16Mi}}}\n"
            printf "      - {name: side, image: side, resources: {requests: {cpu: 10m, memory: 16Mi}}}\n"
            printf "---\napiVersion: autoscaling.k8s.io/v1\nkind: VerticalPodAutoscaler\nmetadata: {name: app-%d, namespace: %s}\nspec:\n", i, ns
            printf "  targetRef: {apiVersion: apps/v1, kind: Deployment, name: app-%d}\n  updatePolicy: {updateMode: Initial}\n", i
        }
    }'
}

# ask PATH [-d BODY]
ask() {
    asked=$1
    shift
    curl -sf --cacert "$work/certificate-authority" --cert "$work/client-certificate" --key "$work/client-key" -H "Content-Type: application/json" "$@" "$server$asked"
}

# cluster_ready PODS
cluster_ready() {
    ask /apis/apps/v1/deployments | python3 -c 'import json, sys
sys.exit(sum(d["status"].get("readyReplicas", 0) for d in json.load(sys.stdin)["items"]) < int(sys.argv[1]))' "$1" && return
    sleep 9 # it is a large list
    return 1
}

# cluster_start NODES FILES: the cluster begins, with manifests in $work, a comma between them
cluster_start() {
    cat >"$work/scenario.yaml" <<END
apiVersion: sim.tandem.dev/v1
kind: Scenario
metadata: {name: load}
spec:
  nodes: [{count: $1, cpu: "64", memory: 256Gi, pods: 600}]
  manifests: [$2]
END
    config=$work/kubeconfig
    "$build/tandem" up --listen 127.0.0.1:0 --kubeconfig "$config" --controllers none -q "$work/scenario.yaml" >"$work/up.out" 2>&1 </dev/null &
    up_pid=$!
    pids="$pids $up_pid"
    await 120 "the local cluster does not start" grep -q https:// "$work/up.out"
    for part in certificate-authority client-certificate client-key; do
        sed -n "s/^ *$part-data: *\"\{0,1\}\([A-Za-z0-9+\/=]*\).*/\1/p" "$config" | base64 -d >"$work/$part"
    done
    server=$(sed -n 's/^ *server: *"\{0,1\}\(https:[^" ]*\).*/\1/p' "$config")
}

# cluster_files COUNT MANIFESTS: 500 of them a file, by the command MANIFESTS FROM TO; sets $files
cluster_files() {
    files=
    files_at=0
    while [ "$files_at" -lt "$1" ]; do
        files_next=$((files_at + 500 < $1 ? files_at + 500 : $1))
        "$2" $files_at $files_next >"$work/apps-$files_at.yaml"
        files="$files${files:+, }apps-$files_at.yaml"
        files_at=$files_next
    done
}

# cluster_up APPS: all its pods run
cluster_up() {
    cluster_files "$1" cluster_manifests
    cluster_start 300 "$files"
    await 180 "the pods of the local cluster do not run" cluster_ready $(($1 * replicas))
}

# figure METRICS-URL PATTERN: the sum of the matching series
figure() { curl -s "$1/metrics" | awk -v pattern="$2" '$0 ~ pattern && !/^#/ { s += $NF } END { print s + 0 }'; }
processor() { sed 's/.*) //' "/proc/$1/stat" | awk -v hz="$(getconf CLK_TCK)" '{ print ($12 + $13) / hz }'; }
resident() { awk '/^VmRSS/ { printf "%.0f\n", $2 / 1024 }' "/proc/$1/status"; }
