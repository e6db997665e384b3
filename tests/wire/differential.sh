#!/bin/sh
# The same stories on a real control plane and on the local cluster: pods, conditions, owners, events, answers, all compared after each
# step. Usage: differential.sh BUILD. STORIES="NAME..." tells only those; docs/testing.md says what is compared and how.
. "$(dirname "$0")/lib.sh"
kit=$top/../shared/realplane
bed=$work/bed
pids=

leave() {
    for pid in $pids; do
        kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null
    done
    REALPLANE_CACHE=$cache "$kit/down" "$bed" >/dev/null 2>&1
    wire_leave
}
trap leave EXIT

if [ ! -d "$kit" ]; then
    echo "FAIL the control plane kit is missing beside the tree: $kit"
    exit 1
fi
REALPLANE_CACHE=$cache "$top/tests/e2e/up" "$bed" --nodes 1 --hpa=none >"$out" 2>&1
verdict "a real control plane starts" $? "$out"
[ "$failed" -eq 0 ] || exit 1

# The kit's kubelet stand-in lets pods run at once: ours waits for the test.
kill "$(sed -n "s/^kwok //p" "$bed/pids" | tail -n 1)" 2>/dev/null
sed -i "/^kwok /d" "$bed/pids"
kubectl --kubeconfig "$bed/kubeconfig" delete nodes --all >/dev/null

# The cluster has one node of its own, so that its scheduler acts, and that node takes no pods; the real one has it too, for what
# schedulers say about all nodes.
cluster_start --nodes 1
kubectl --kubeconfig "$bed/kubeconfig" create -f - >/dev/null <<EOT
{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1", "labels": {"kwok": "yes"}}, "spec": {"unschedulable": true}}
EOT
kubectl cordon node-1 >/dev/null
for kubeconfig in "$bed/kubeconfig" "$KUBECONFIG"; do
    kwok --config "$top/tests/wire/differential/stages.yaml" --kubeconfig "$kubeconfig" --manage-nodes-with-label-selector kwok=yes \
        --manage-all-nodes=false --node-lease-duration-seconds 40 --server-address "" >"$work/kwok.log" 2>&1 </dev/null &
    pids="$pids $!"
done

# shellcheck disable=SC2086 # a list of names
{ PYTHONDONTWRITEBYTECODE=1 python3 "$top/tests/wire/differential/run.py" "$bed/kubeconfig" "$KUBECONFIG" ${STORIES:-} 2>&1 </dev/null; echo $? >"$work/status"; } |
    tee "$work/told"
told=$(cat "$work/status")
passed=$((passed + $(grep -cE '^ok ' "$work/told")))
told_failed=$(grep -cE '^FAIL ' "$work/told")
failed=$((failed + told_failed))
[ "$told" -eq 0 ] || [ "$told_failed" -gt 0 ] || verdict "the stories are told to their end" "$told"
finish
