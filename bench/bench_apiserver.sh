#!/bin/sh
# The embedded API server beside kube-apiserver and etcd, in one run, with one load program (bench/apiserver/load.c): creates a
# second, a list of 10,000 pods, 200 watchers of 1,000 events, and memory after all of it. Usage: bench_apiserver.sh BUILD
set -u
build=$(cd "$1" && pwd)
top=$(cd "$(dirname "$0")/.." && pwd)
kit=$top/../shared/realplane
cache=${REALPLANE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tandem-realplane}
if [ ! -d "$kit" ] || [ ! -x "$cache/bin/kube-apiserver" ]; then
    echo "skipped: bench apiserver (needs the control plane kit beside the tree, built)"
    exit 0
fi
load=$build/bench/apiserver_load
work=$(mktemp -d)
tandem_pid=
leave() {
    [ -z "$tandem_pid" ] || { kill "$tandem_pid"; wait "$tandem_pid"; } 2>/dev/null
    "$top/bench/apiserver/plane" "$kit" "$work/plane" stop >/dev/null 2>&1
    rm -rf "$work"
}
trap leave EXIT
kubectl() { "$cache/bin/kubectl" --kubeconfig "$config" "$@"; }
status=0

# credentials NAME: address, certificate and key out of $config; the namespace of the load, and the account that its pods need.
credentials() {
    kubectl config view --raw -o 'jsonpath={.clusters[0].cluster.server}' | sed 's|https://||' >"$work/$1.address"
    for part in certificate key; do
        kubectl config view --raw -o "jsonpath={.users[0].user.client-$part-data}" | base64 -d >"$work/$1.$part"
    done
    kubectl create namespace bench >/dev/null
    kubectl -n bench create serviceaccount default >/dev/null 2>&1 # there already where controllers run
    :
}

# both FIGURE ARGS...: the load program against one server, then the other, so that both meet the same neighbours on the machine;
# lines "seconds processor-seconds" go to $work/NAME.FIGURE.
both() {
    both_figure=$1
    shift
    for name in tandem plane; do
        "$load" "$(cat "$work/$name.address")" "$work/$name.certificate" "$work/$name.key" "$(cat "$work/$name.pids")" "$@" \
            >>"$work/$name.$both_figure" || exit 2
    done
}

resident() {
    tr , '\n' <"$work/$1.pids" | while read -r pid; do cat "/proc/$pid/status"; done |
        awk '/^VmRSS/ { t += $2 } END { printf "%.1f\n", t / 1024 }' >"$work/$1.memory"
}

# compare FIGURE UNIT OURS THEIRS PROMISE: ratio of theirs to ours, and whether it is kept.
compare() {
    echo "bench apiserver_$1 $3 $2"
    echo "bench apiserver_$1_peer $4 $2"
    echo "$3 $4 $5 $1" | awk '{ r = $2 / $1; printf "bench apiserver_%s_ratio %.1f x\n", $4, r
        if (r < $3) { printf "broken: %s is %.1fx, promised %sx\n", $4, r, $3; exit 1 } }' || status=1
}

config=$work/tandem.kubeconfig
"$build/tandem" up --listen 127.0.0.1:0 --kubeconfig "$config" --controllers none -q >"$work/tandem.out" 2>&1 </dev/null &
tandem_pid=$!
for _ in 1 2 3 4 5 6 7 8 9 10; do
    grep -q https:// "$work/tandem.out" && break
    sleep 0.5
done
credentials tandem
echo "$tandem_pid" >"$work/tandem.pids"
REALPLANE_CACHE=$cache "$top/bench/apiserver/plane" "$kit" "$work/plane" >"$work/plane.log" 2>&1 || { tail -5 "$work/plane.log"; exit 2; }
config=$work/plane/kubeconfig
credentials plane
awk '{ print $2 }' "$work/plane/pids" | paste -sd, >"$work/plane.pids"

both warm create pods warm 1000 8
for round in 1 2 3; do
    both create create pods "round$round" 1000 8
done
both more create pods more 6000 8
both list list pods 5
for round in 1 2 3; do
    both watch watch configmaps "watched$round" 1000 200
done
resident tandem
resident plane

# best NAME [COLUMN]: the smallest value
best() { awk -v column="${2:-1}" 'NR == 1 || $column < least { least = $column } END { print least }' "$work/$1"; }
echo "bench apiserver_create_rate $(best tandem.create | awk '{ printf "%.0f", 1000 / $1 }') creates/s"
echo "bench apiserver_create_rate_peer $(best plane.create | awk '{ printf "%.0f", 1000 / $1 }') creates/s"
compare create_1000 s "$(best tandem.create)" "$(best plane.create)" 5
compare create_1000_processor s "$(best tandem.create 2)" "$(best plane.create 2)" 5
compare list_10000 s "$(best tandem.list)" "$(best plane.list)" 5
compare list_10000_processor s "$(best tandem.list 2)" "$(best plane.list 2)" 5
compare watch_200x1000 s "$(best tandem.watch)" "$(best plane.watch)" 5
compare watch_200x1000_processor s "$(best tandem.watch 2)" "$(best plane.watch 2)" 5
echo "bench apiserver_watch_cuts $(best tandem.watch 3) watches"
echo "bench apiserver_watch_cuts_peer $(best plane.watch 3) watches"
compare memory MiB "$(best tandem.memory)" "$(best plane.memory)" 10
exit $status
