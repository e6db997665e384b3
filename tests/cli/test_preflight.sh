#!/bin/sh
# `tandem preflight` from outside: a local cluster that is fit, and the same with a program in the way, with an account that lacks a
# verb, and gone; refusals in one line with their exit status.
. "$(dirname "$0")/lib.sh"

# Another program is played by curl.
command -v curl >/dev/null || { echo "curl is missing" && [ -z "${CI:-}" ] && exit 77; exit 1; }

check "help of preflight" 0 '^usage: tandem preflight \[FLAGS\]' '' preflight --help
check "a word" 2 '' "^tandem: preflight: 'x': takes options only" preflight x
check "an unknown flag" 2 '' '^tandem: preflight: --nope: unknown option' preflight --nope
check "an unknown output" 2 '' "^tandem: preflight: --output: 'wide': use text, json or yaml" preflight -o wide
check "an unknown controller" 2 '' "^tandem: preflight: --controllers: 'scaler': must be one of" preflight --controllers scaler
check "an unknown horizontal" 2 '' "^tandem: preflight: --horizontal: 'on': must be off or builtin" preflight --horizontal on
check "shards that cannot be" 2 '' "^tandem: preflight: --shards: '65': must be a number from 1 to 64" preflight --shards 65
check "a namespace that cannot be" 2 '' "^tandem: preflight: --namespace: 'A_b': must be a lower case" preflight --namespace A_b
check "shadow in upstream's place" 2 '' '^tandem: preflight: --shadow and --replace-upstream exclude' preflight --shadow --replace-upstream
check "no such kubeconfig" 2 '' "^tandem: preflight: kubeconfig $work/none: " preflight --kubeconfig "$work/none"

KUBECONFIG="$work/kubeconfig"
export KUBECONFIG
"$tandem" up --quiet --page off --controllers none --listen 127.0.0.1:0 --kubeconfig "$KUBECONFIG" >"$work/up.out" 2>"$work/up.err" &
pid=$!
trap 'kill "$pid" 2>/dev/null; wait "$pid"; rm -rf "$work"' EXIT
for _ in $(seq 100); do
    "$tandem" preflight >/dev/null 2>&1 && break
    sleep 0.2
done
check "a cluster that is fit" 0 '^nothing to mend$' '' preflight
check "its server" 0 '^ok    server      Kubernetes v1\.' '' preflight
check "its metrics" 0 '^ok    metrics     metrics\.k8s\.io answers$' '' preflight
check "what it lacks" 0 '^note  server      no node declares InPlacePodLevelResourcesVerticalScaling; ' '' preflight
check "whose definitions" 0 '^ok    crds        hvpas\.autoscaling\.k8s\.io serves v1alpha1$' '' preflight
check "fewer controllers, fewer questions" 0 '^ok    rights      you have all [1-6][0-9]$' '' preflight --controllers recommender
check "shards, more questions" 0 '^ok    rights      you have all 1[0-9][0-9]$' '' preflight --shards 4
count=$((count + 1))
if "$tandem" preflight | grep -q 'no sharded lists'; then
    echo "not ok $count - a server that heeds shardSelector is not told of"
    failed=$((failed + 1))
else
    echo "ok $count - a server that heeds shardSelector is not told of"
fi
check "as data" 0 '^  "mends": 0$' '' preflight -o json
check "as YAML" 0 '^mends: 0$' '' preflight --output yaml

# The server of the local cluster reads what is applied as JSON too.
ask() {
    server=$(sed -n 's/^ *server: "\{0,1\}\([^"]*\)"\{0,1\}$/\1/p' "$KUBECONFIG")
    sed -n 's/^ *client-certificate-data: "\{0,1\}\([^"]*\)"\{0,1\}$/\1/p' "$KUBECONFIG" | base64 -d >"$work/crt"
    sed -n 's/^ *client-key-data: "\{0,1\}\([^"]*\)"\{0,1\}$/\1/p' "$KUBECONFIG" | base64 -d >"$work/key"
    curl -sSk --cert "$work/crt" --key "$work/key" -H 'Content-Type: application/json' -X POST -d "$2" "$server$1" >"$work/answer" || cat "$work/answer"
}
ask /apis/apps/v1/namespaces/kube-system/deployments '{"metadata":{"name":"vpa-updater"},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"updater","image":"registry.k8s.io/autoscaling/vpa-updater:1.8.1"}]}}}}'
check "a second updater" 1 '^mend  upstream    vpa-updater acts: Deployment kube-system/vpa-updater, 1 replica; kubectl -n kube-system scale deployment vpa-updater --replicas=0; ' '' preflight
check "how many" 1 '^1 to mend$' '' preflight
check "beside it" 0 '^ok    upstream    vpa-updater acts: .*; --shadow leaves everything to it$' '' preflight --shadow
check "in its place" 0 '; --replace-upstream stands by and takes over' '' preflight --replace-upstream
check "not ours to run" 0 '^nothing to mend$' '' preflight --controllers recommender
ask /api/v1/namespaces '{"metadata":{"name":"tandem-system"}}'
ask /api/v1/namespaces/tandem-system/serviceaccounts '{"metadata":{"name":"tandem"}}'
check "an account without rights" 1 '^mend  rights      service account tandem-system/tandem lacks apiGroups: \[""\], resources: \["pods"\], verbs: \["list"\] \(ClusterRole\); tandem manifests --shadow --only rbac' '' \
    preflight --shadow
check "and how many more" 1 '^mend  rights      service account tandem-system/tandem lacks [0-9]+ more; ' '' preflight --shadow
kill "$pid"
wait "$pid" 2>/dev/null
check "a server that is gone" 2 '' '^tandem: preflight: cannot reach the API server at ' preflight
finish
