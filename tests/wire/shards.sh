#!/bin/sh
# The same shard selectors on a real API server with the gate ShardedListAndWatch and on the local cluster: lists, pages, watches and
# refusals, all compared. Usage: shards.sh BUILD
. "$(dirname "$0")/lib.sh"
kit=$top/../shared/realplane
bed=$work/bed

leave() {
    REALPLANE_CACHE=$cache "$kit/down" "$bed" >/dev/null 2>&1
    wire_leave
}
trap leave EXIT

if [ ! -d "$kit" ]; then
    echo "FAIL the control plane kit is missing beside the tree: $kit"
    exit 1
fi
APISERVER_ARGS=--feature-gates=ShardedListAndWatch=true REALPLANE_CACHE=$cache "$top/tests/e2e/up" "$bed" --nodes 1 --hpa=none >"$out" 2>&1
verdict "a real control plane starts with the gate on" $? "$out"
[ "$failed" -eq 0 ] || exit 1
cluster_start --nodes 1
PYTHONDONTWRITEBYTECODE=1 python3 "$top/tests/wire/differential/shards.py" "$bed/kubeconfig" "$KUBECONFIG" "$top/tests/data/selector/shards.json" \
    >"$work/told" 2>&1 </dev/null
status=$?
cat "$work/told"
passed=$((passed + $(grep -cE '^ok ' "$work/told")))
told_failed=$(grep -cE '^FAIL ' "$work/told")
failed=$((failed + told_failed))
[ "$status" -eq 0 ] || [ "$told_failed" -gt 0 ] || verdict "the comparison came to its end" "$status"
finish
