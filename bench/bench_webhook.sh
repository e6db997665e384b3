#!/bin/sh
# The webhook under load while its process recommends: 1,000 pod creates a second for 60 s, sent as kube-apiserver sends them, to
# `tandem run`, whose recommender at the same time goes over 300,000 containers again and again; then the same reviews at the same rate to
# upstream's admission controller, with upstream's recommender beside it. The cluster is a local one in a process of its own: 10,000
# Deployments of 15 pods of two containers, each with a VPA. Between the two, once more with ten open pages of `tandem run --page-listen`.
# Usage: bench_webhook.sh BUILD
#
# Latency is counted from the moment at which a review was due. BENCH_WEBHOOK_APPS (10000) Deployments, BENCH_WEBHOOK_RATE (1000),
# BENCH_WEBHOOK_SECONDS (60), BENCH_WEBHOOK_SIDES ("tandem pages peer"), BENCH_WEBHOOK_PAGES (10), BENCH_WEBHOOK_KEEP: where logs are left.
set -u
build=$(cd "$1" && pwd)
top=$(cd "$(dirname "$0")/.." && pwd)
cache=${REALPLANE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tandem-realplane}
apps=${BENCH_WEBHOOK_APPS:-10000}
replicas=15
spaces=100
sides=${BENCH_WEBHOOK_SIDES:-tandem pages peer}
pages=${BENCH_WEBHOOK_PAGES:-10}
work=${BENCH_WEBHOOK_KEEP:-$(mktemp -d)}
mkdir -p "$work"
pids=
status=0
leave() {
    for pid in $pids; do kill "$pid"; done 2>/dev/null
    wait
    [ -n "${BENCH_WEBHOOK_KEEP:-}" ] || rm -rf "$work"
}
trap leave EXIT
trap 'exit 2' INT TERM
port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

. "$top/bench/cluster.sh"
cluster_up "$apps"
ask /apis/apps/v1/replicasets | python3 -c 'import json, sys
for r in json.load(sys.stdin)["items"]:
    m = r["metadata"]
    print(m["namespace"], m["name"], m["uid"], m["labels"]["app"])' >"$work/owners"

# ---- The two sides ----

passes() { figure "$1" '_count.*step="LoadMetrics"'; }
has_ended() { [ "$(figure "$1" '_recommender_.*_count.*step="total"')" -gt "$2" ]; }
recommended() { [ "$(ask /apis/autoscaling.k8s.io/v1/verticalpodautoscalers | grep -o '"target":{' | wc -l)" -ge $((apps * 2)) ]; }

# measure SIDE WEBHOOK METRICS-URL PID
measure() {
    # From the end of one pass on, so that the next one is inside, metrics of all containers included.
    await 600 "no pass of the recommender ends" has_ended "$3" "$(figure "$3" '_recommender_.*_count.*step="total"')"
    before=$(passes "$3")
    used=$(processor "$4")
    "$build/bench/webhook_load" "$2" "$work/owners" "${BENCH_WEBHOOK_RATE:-1000}" "${BENCH_WEBHOOK_SECONDS:-60}" 25 >"$work/$1.figures" ||
        exit 2
    used=$(echo "$(processor "$4") $used" | awk '{ print $1 - $2 }')
    made=$(($(passes "$3") - before))
    awk -v side="$1" -v passes="$made" -v used="$used" -v rss="$(resident "$4")" '{
        peer = side == "tandem" ? "" : "_" side
        printf "bench webhook_p50%s %s ms\nbench webhook_p99%s %s ms\nbench webhook_p999%s %s ms\nbench webhook_max%s %s ms\n", \
            peer, $4, peer, $5, peer, $6, peer, $7
        printf "bench webhook_errors%s %s reviews\nbench webhook_patched%s %s reviews\n", peer, $2, peer, $3
        printf "bench webhook_late_p99%s %s ms\nbench webhook_passes%s %s passes\n", peer, $8, peer, passes # late: the load program itself
        printf "bench webhook_processor%s %.1f s\nbench webhook_memory%s %s MiB\n", peer, used, peer, rss }' "$work/$1.figures"
}

# start_tandem NAME FLAG...: `tandem run`, whose address, url and side_pid are set when it has recommended.
start_tandem() {
    out=$work/$1.out
    shift
    "$build/tandem" run --kubeconfig "$config" --webhook-listen 127.0.0.1:0 --address 127.0.0.1:0 --recommender-interval 10s \
        --kube-api-qps 500 --kube-api-burst 1000 --v 1 "$@" >"$out" 2>&1 </dev/null &
    side_pid=$!
    pids="$pids $side_pid"
    await 30 "tandem run does not start" grep -q "metrics_port=" "$out"
    url=http://127.0.0.1:$(sed -n 's/.*metrics_port=\([0-9]*\).*/\1/p' "$out" | head -n 1)
    address=$(sed -n 's|.*webhook=https://\([0-9.:]*\).*|\1|p' "$out" | head -n 1)
    await 300 "nothing is recommended" recommended
}

tandem_side() {
    start_tandem tandem
    measure tandem "$address" "$url" "$side_pid"
    kill "$side_pid" && wait "$side_pid" 2>/dev/null
    awk -v passes="$made" '$2 > 0 { print "broken: " $2 " reviews failed"; bad = 1 }
        $5 >= 5 { print "broken: the 99th percentile is " $5 " ms, promised 5"; bad = 1 }
        passes < 1 { print "broken: no pass was made meanwhile"; bad = 1 }
        $3 < $1 { print "broken: only " $3 " of " $1 " pods were changed"; bad = 1 } END { exit bad }' "$work/tandem.figures" || status=1
}

# Somebody who may list verticalpodautoscalers, by a token of the cluster.
page_token() {
    account='{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"viewer"}}'
    role='{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"viewer"},
        "rules":[{"apiGroups":["autoscaling.k8s.io"],"resources":["verticalpodautoscalers"],"verbs":["list"]}]}'
    binding='{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"viewer"},
        "roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"viewer"},
        "subjects":[{"kind":"ServiceAccount","name":"viewer","namespace":"default"}]}'
    request='{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{"expirationSeconds":86400}}'
    accounts=/api/v1/namespaces/default/serviceaccounts
    ask $accounts -d "$account" >"$work/account.json" && ask /apis/rbac.authorization.k8s.io/v1/clusterroles -d "$role" >"$work/role.json" &&
        ask /apis/rbac.authorization.k8s.io/v1/clusterrolebindings -d "$binding" >"$work/binding.json" &&
        ask $accounts/viewer/token -d "$request" | sed -n 's/.*"token": *"\([^"]*\)".*/\1/p'
}

page_answers() { curl -skf -H "Authorization: Bearer $token" "https://127.0.0.1:$page_port/api/cluster" | grep -q '"pods":[1-9]'; }

pages_side() {
    token=$(page_token)
    [ -n "$token" ] || { echo "broken: no token for the pages"; exit 2; }
    start_tandem pages --page-listen 127.0.0.1:0
    page_port=$(sed -n 's/.*page_port=\([1-9][0-9]*\).*/\1/p' "$out" | head -n 1)
    await 120 "the page has nothing to show" page_answers
    nice -n 5 "$top/bench/webhook/pages" "127.0.0.1:$page_port" "$token" "$pages" >"$work/pages.answers" 2>&1 &
    viewer=$!
    pids="$pids $viewer"
    measure pages "$address" "$url" "$side_pid"
    kill "$viewer" && wait "$viewer" 2>/dev/null
    kill "$side_pid" && wait "$side_pid" 2>/dev/null
    awk '{ if ($1 + 0 < 1) { print "broken: the pages asked for nothing: " $0; exit 1 }
        printf "bench webhook_page_answers %d answers\nbench webhook_page_bytes %.1f MiB\n", $1, $2 / 1048576 }' "$work/pages.answers" || status=1
    [ -f "$work/tandem.figures" ] || return
    awk 'NR == FNR { without = $5; next } { printf "bench webhook_pages_ratio %.2f of the 99th percentile without\n", $5 / without
        if ($5 > 1.1 * without) { print "broken: with open pages the 99th percentile is " $5 " ms, without " without " ms"; exit 1 } }' \
        "$work/tandem.figures" "$work/pages.figures" || status=1
}

peer_side() {
    if [ ! -x "$cache/bin/vpa-admission-controller" ]; then
        echo "skipped: peer of bench webhook (needs upstream's programs, built by shared/realplane/build into REALPLANE_CACHE)"
        return
    fi
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$work/peer.key" -out "$work/peer.crt" -days 2 \
        -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1 2>/dev/null
    webhook=$(port)
    metrics=$(port)
    "$cache/bin/vpa-admission-controller" --kubeconfig "$config" --address "127.0.0.1:$(port)" --port "$webhook" --register-webhook=false \
        --client-ca-file "$work/peer.crt" --tls-cert-file "$work/peer.crt" --tls-private-key "$work/peer.key" --kube-api-qps 500 \
        --kube-api-burst 1000 --v 1 >"$work/admission.out" 2>&1 </dev/null &
    side_pid=$!
    "$cache/bin/vpa-recommender" --kubeconfig "$config" --address "127.0.0.1:$metrics" --recommender-interval 10s --kube-api-qps 500 \
        --kube-api-burst 1000 --v 1 >"$work/recommender.out" 2>&1 </dev/null &
    peer_recommender=$!
    pids="$pids $side_pid $peer_recommender"
    await 600 "upstream's recommender makes no pass" sh -c "curl -s http://127.0.0.1:$metrics/metrics | grep -q 'step=\"LoadMetrics\"'"
    measure peer "127.0.0.1:$webhook" "http://127.0.0.1:$metrics" "$side_pid"
    kill "$side_pid" "$peer_recommender" && wait "$side_pid" "$peer_recommender" 2>/dev/null
}

echo "bench webhook_containers $((apps * replicas * 2)) containers"
for side in $sides; do
    "${side}_side"
done
exit $status
