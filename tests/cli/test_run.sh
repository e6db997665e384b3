#!/bin/sh
# `tandem run` from outside: its flags, what it refuses, and the controllers at work on a `tandem up` that has none of its own: a
# VPA gets its recommendation and its pods their size, the process says how it is, and ends in order.
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1
unset KUBECONFIG NAMESPACE

# say NAME CONDITION...: one more check, of a command's status.
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

# soon SECONDS COMMAND...: does it come true in that time?
soon() {
    tries=$(($1 * 5))
    shift
    while [ "$tries" -gt 0 ]; do
        "$@" && return 0
        tries=$((tries - 1))
        sleep 0.2
    done
    return 1
}

refused() { check "$1" 2 '' "^tandem: run: $2" run "$3" --kubeconfig "$work/absent"; }
refused "an unknown flag" '--nope=1: unknown flag' --nope=1
refused "a number that is none" "--min-replicas: 'x': must be a whole number" --min-replicas=x
refused "a number below its bound" "--min-replicas: '-1': must be from 0 to " --min-replicas=-1
refused "a share above one" "--eviction-tolerance: '1.5': must be from 0 to 1" --eviction-tolerance=1.5
refused "a time that is none" "--recommender-interval: 'soon': must be a duration such as" --recommender-interval=soon
refused "no time at all" "--horizontal-pod-autoscaler-sync-period: '0s': must be longer than 0s" --horizontal-pod-autoscaler-sync-period=0s
refused "no workers" "--concurrent-horizontal-pod-autoscaler-syncs: '0': must be from 1 to " --concurrent-horizontal-pod-autoscaler-syncs=0
refused "no shards" "--shards: '0': must be from 1 to 64" --shards=0
check "shards of another lease" 2 '' "^tandem: run: --shards: '2': excludes --leader-elect-resource-name$" run --shards=2 --leader-elect-resource-name=a
refused "a boolean that is none" "--leader-elect: 'yes': must be true or false" --leader-elect=yes
refused "a controller that is none" "--controllers: 'scaler': must be one of recommender, updater, " --controllers=scaler
refused "a gate that is unknown" "--feature-gates: 'InPlaceOrRecreate': unknown gate" --feature-gates=InPlace=true,InPlaceOrRecreate=true
refused "a gate that is neither on nor off" "--feature-gates: 'InPlace': must be NAME=true or NAME=false" --feature-gates=InPlace
refused "a quantity that is none" '--container-recommendation-max-allowed-cpu' --container-recommendation-max-allowed-cpu=much
refused "another horizontal" "--horizontal: 'on': must be off or builtin" --horizontal=on
refused "another storage" "--storage: 'disk': must be checkpoint or prometheus" --storage=disk
refused "another log" "--logging-format: 'xml': must be text or json" --logging-format=xml
refused "another estimator" "--estimator: 'best': use upstream, adaptive, " --estimator=best
refused "words beside flags" "'now': takes flags only" now
refused "a file that is not there" '.*absent' --v=0
check "a value that is missing" 2 '' '^tandem: run: --min-replicas: needs a value$' run --min-replicas
check "underscores for dashes" 2 '' '^tandem: run: .*absent' run --vpa_object_namespace=a --kubeconfig "$work/absent"
check "help of the command" 0 '^usage: tandem run ' '' run --help
check "all flags" 0 '^\| `--evict-after-oom-threshold` \| `10m0s` \| ' '' run --flags
check "help of the program" 0 '^  run ' '' --help
count=$((count + 1))
"$tandem" run --help >"$work/help.txt"
if [ "$(wc -l <"$work/help.txt")" -le 30 ] && ! grep -q '.\{101\}' "$work/help.txt"; then
    echo "ok $count - help fits a screen"
else
    echo "not ok $count - help fits a screen"
    failed=$((failed + 1))
fi
# The guide holds the table of the program.
"$tandem" run --flags >"$work/flags.md"
sed -n '/^### General/,$p' "$top/docs/run.md" >"$work/documented.md"
say "the guide has every flag" cmp -s "$work/flags.md" "$work/documented.md"

# A cluster of its own, without controllers, with a workload and a VPA: cluster_up FLAGS...
cert() { sed -n "s/.*$1: *\"\\{0,1\\}\\([A-Za-z0-9+\/=]*\\).*/\\1/p" "$work/k" | base64 -d; }
api() {
    path=$1
    shift
    curl --silent --insecure --max-time 10 --user-agent test --cert "$work/crt" --key "$work/key" "$@" "$url$path"
}
post() { api "$1" -X POST -H 'Content-Type: application/yaml' --data-binary @- >/dev/null; }
cluster_up() {
    "$tandem" up --quiet --controllers none --page off --listen 127.0.0.1:0 --kubeconfig "$work/k" "$@" >"$work/up.out" 2>&1 &
    up=$!
    soon 10 grep -q 'stop ' "$work/up.out"
    url=$(sed -n 's/.*\(https:[^ ]*\).*/\1/p' "$work/up.out")
    cert client-certificate-data >"$work/crt"
    cert client-key-data >"$work/key"
    post /apis/apps/v1/namespaces/default/deployments <<'YAML'
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}, annotations: {usage.tandem.dev/app: "400m,300Mi"}}
    spec: {containers: [{name: app, image: nginx, resources: {requests: {cpu: 100m, memory: 100Mi}}}]}
YAML
    post /apis/autoscaling.k8s.io/v1/namespaces/default/verticalpodautoscalers <<'YAML'
apiVersion: autoscaling.k8s.io/v1
kind: VerticalPodAutoscaler
metadata: {name: web}
spec:
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  updatePolicy: {updateMode: Recreate}
YAML
}

if ! command -v curl >/dev/null; then
    finish
    exit
fi
cluster_up

start() {
    : >"$work/run.err" # the words of the one before are none of this one's
    "$tandem" run --kubeconfig "$work/k" --leader-elect --address 127.0.0.1:0 "$@" >"$work/run.out" 2>"$work/run.err" &
    pid=$!
    soon 10 grep -q ' runs ' "$work/run.err"
    metrics=http://127.0.0.1:$(sed -n 's/.*metrics_port=\([0-9]*\).*/\1/p' "$work/run.err" | head -n 1)
}
own() { curl --silent --max-time 5 "$metrics$1"; }
is_ready() { [ "$(own /readyz)" = ok ]; }
vpa=/apis/autoscaling.k8s.io/v1/namespaces/default/verticalpodautoscalers/web
recommends() { api "$vpa" | grep -q '"target":{"cpu":"[4-6][0-9][0-9]m'; }
sizes() { api /api/v1/namespaces/default/pods | grep -q '"requests":{"cpu":"[4-6][0-9][0-9]m'; }
holder() { api "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/$1" | grep -q "\"holderIdentity\":\"$2"; }
webhooks() { api /apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations | grep -q tandem-outside-webhook-config; }

often="--recommender-interval 1s --updater-interval 2s"
# shellcheck disable=SC2086 # flags
start --webhook-listen 127.0.0.1:0 $often
say "it is ready" soon 20 is_ready
say "the VPA gets its recommendation" soon 40 recommends
say "and pods their size" soon 40 sizes
say "the recommender has its lease" holder tandem-recommender '[a-zA-Z0-9]'
say "the updater too" holder tandem-updater '[a-zA-Z0-9]'
say "the webhook is registered" webhooks
waits() { api /apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations | grep -q '"timeoutSeconds":5[,}]'; }
say "requests do not wait long for it" waits
say "metrics are told" sh -c "curl --silent $metrics/metrics | grep -q '^vpa_recommender_vpa_objects_count'"
say "with their type" sh -c "curl --silent --head $metrics/metrics | grep -qi '^content-type: text/plain; version=0.0.4'"
say "it is healthy" [ "$(own /healthz)" = ok ]
say "it lives" [ "$(own /livez)" = ok ]
confined() { [ ! -r "/proc/$pid/status" ] || grep -q '^Seccomp:[[:space:]]*2$' "/proc/$pid/status"; }
say "calls that it does not need are refused to it" confined
say "its loops go round" [ "$(own /health-check)" = OK ]
say "no other page" [ "$(curl --silent --output /dev/null --write-out '%{http_code}' "$metrics/nope")" = 404 ]
lacks() { ! grep -q "$1" "$work/run.err"; }
say "nothing was missing" lacks 'missing permission'
kill -TERM "$pid"
wait "$pid"
status=$?
say "it ends with 0" [ "$status" -eq 0 ]
say "its registration is removed" [ "$(webhooks && echo there || echo gone)" = gone ]
say "its leases are given back" [ "$(holder tandem-recommender '[a-zA-Z0-9]' && echo held || echo free)" = free ]
say "nothing on standard output" [ ! -s "$work/run.out" ]

start --controllers=recommender --logging-format json
say "the log as JSON" soon 5 grep -q '"identity":' "$work/run.err"
say "only the recommender" soon 10 holder tandem-recommender '[a-zA-Z0-9]'
kill -INT "$pid"
wait "$pid"
say "it ends with 0 again" [ $? -eq 0 ]

check "an address that is taken" 2 '' '^tandem: run: .*in use' run -q --kubeconfig "$work/k" --controllers recommender --address "${url#https://}"
check "a webhook on every interface" 2 '' "^tandem: run: --webhook-listen: '0.0.0.0:8000': must be a loopback address" \
    run --kubeconfig "$work/k" --webhook-listen 0.0.0.0:8000
kill "$up"
wait "$up"

# The clock of this one begins weeks ago and runs fast. The usual intervals are a minute: by this machine's clock nothing would have
# happened yet when the test gives up, and every measurement would be too old.
cluster_up --speed 60
post /apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers <<'YAML'
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  maxReplicas: 4
  metrics: [{type: Resource, resource: {name: cpu, target: {type: AverageValue, averageValue: 50m}}}]
YAML
start --webhook-listen 127.0.0.1:0 --horizontal=builtin
follows() { grep -q "time goes by the API server's clock, not by this machine's now=.* speed=60" "$work/run.err"; }
say "a fast cluster's time is followed" soon 20 follows
say "a recommendation after a minute of the cluster" soon 30 recommends
say "pods get their size" soon 30 sizes
scaled() { api /apis/apps/v1/namespaces/default/deployments/web | grep -q '"replicas":4[,}]'; }
say "the HPA scales" soon 30 scaled
day() { sed -n 's/.*"lastTransitionTime":"\([^"]*\)T.*/\1/p' | head -n 1; }
same_day() { [ "$(api "$vpa" | day)" = "$(api /apis/apps/v1/namespaces/default/deployments/web | day)" ]; }
say "conditions are dated by the cluster" same_day
fresh() { ! api "$vpa" | grep -q MetricsStale; }
say "metrics are fresh" fresh
say "it keeps its leases" lacks 'lost\|not renewed'
kill -TERM "$pid"
wait "$pid"
say "it ends with 0 there too" [ $? -eq 0 ]
kill "$up"
wait "$up"
finish
