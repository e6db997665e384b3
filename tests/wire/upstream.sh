#!/bin/sh
# Upstream's programs, unmodified, on the local cluster: the HPA controller of kube-controller-manager 1.36, alone, and the three
# programs of VPA 1.8.1. The cluster's own controllers make and run the pods. Usage: upstream.sh BUILD
. "$(dirname "$0")/lib.sh"
pids=
leave() {
    for pid in $pids; do
        kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null
    done
    wire_leave
}
trap leave EXIT

# upstream NAME PROGRAM ARGS...: runs it beside the cluster, its log in $work/NAME.log.
upstream() {
    upstream_name=$1
    shift
    "$@" >"$work/$upstream_name.log" 2>&1 </dev/null &
    pids="$pids $!"
}

# The authority and the certificate of the webhook, and the key by which kube-controller-manager would sign tokens.
certificates() {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=wire-ca \
        -keyout "$work/ca.key" -out "$work/ca.crt" &&
        openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=webhook \
            -keyout "$work/server.key" -out "$work/server.csr" &&
        echo "subjectAltName=IP:127.0.0.1" >"$work/san" &&
        openssl x509 -req -in "$work/server.csr" -CA "$work/ca.crt" -CAkey "$work/ca.key" -CAcreateserial -days 2 \
            -extfile "$work/san" -out "$work/server.crt" &&
        openssl genrsa -out "$work/sa.key" 2048
}

# deployment NAME REPLICAS USAGE [MORE ANNOTATIONS]: one container of 100m and 10Mi that uses what is said.
deployment() {
    kubectl apply -f - <<EOF
apiVersion: apps/v1
kind: Deployment
metadata: {name: $1, labels: {app: $1}}
spec:
  replicas: $2
  selector: {matchLabels: {app: $1}}
  template:
    metadata:
      labels: {app: $1}
      annotations: {usage.tandem.dev/app: "$3"${4:+, $4}}
    spec:
      terminationGracePeriodSeconds: 0
      containers: [{name: app, image: app, resources: {requests: {cpu: ${cpu:-100m}, memory: ${memory:-10Mi}}}}]
EOF
}

# hpa NAME MAX METRIC: the metric in one line of YAML.
hpa() {
    kubectl apply -f - <<EOF
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: $1}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: $1}
  minReplicas: 1
  maxReplicas: $2
  metrics: [$3]
  behavior:
    scaleDown: {stabilizationWindowSeconds: 0, policies: [{type: Percent, value: 100, periodSeconds: 1}]}
    scaleUp: {stabilizationWindowSeconds: 0, policies: [{type: Percent, value: 400, periodSeconds: 1}]}
EOF
}

# vpa NAME MODE
vpa() {
    kubectl apply -f - <<EOF
apiVersion: autoscaling.k8s.io/v1
kind: VerticalPodAutoscaler
metadata: {name: $1}
spec:
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: $1}
  updatePolicy: {updateMode: "$2"}
EOF
}

# is TEXT COMMAND...: its standard output is exactly the text.
is() {
    is_text=$1
    shift
    is_got=$("$@" 2>&1) && [ "$is_got" = "$is_text" ] || { echo "got '$is_got', expected '$is_text'"; false; }
}
spec_replicas() { kubectl get deployment "$1" -o 'jsonpath={.spec.replicas}'; }
ready_replicas() { kubectl get deployment "$1" -o 'jsonpath={.status.readyReplicas}'; }
condition() { kubectl get hpa "$1" -o "jsonpath={.status.conditions[?(@.type=='$2')].reason}"; }
uids() { kubectl get pods -l "app=$1" -o 'jsonpath={range .items[*]}{.metadata.uid}{"\n"}{end}' | sort; }
requests() { kubectl get pods -l "app=$1" -o 'jsonpath={range .items[*]}{.spec.containers[0].resources.requests.cpu} {.spec.containers[0].resources.requests.memory}{"\n"}{end}' | sort -u; }
target() { kubectl get vpa "$1" -o 'jsonpath={.status.recommendation.containerRecommendations[0].target.cpu} {.status.recommendation.containerRecommendations[0].target.memory}'; }
# All pods of a workload are new, none of the old ones is left, and all have the recommendation's requests.
all_new() { [ "$(requests "$1")" = "$(target "$1")" ] && [ "$(uids "$1" | wc -l)" -eq "$3" ] && ! uids "$1" | grep -qF "$2"; }
# The same pods, with the recommendation's requests, and the kubelet says that they are in effect.
all_resized() {
    [ "$(requests "$1")" = "$(target "$1")" ] && [ "$(uids "$1")" = "$2" ] &&
        [ "$(kubectl get pods -l "app=$1" -o 'jsonpath={range .items[*]}{.status.containerStatuses[0].resources.requests.cpu} {.status.containerStatuses[0].resources.requests.memory}{"\n"}{end}' | sort -u)" = "$(target "$1")" ]
}

certificates >"$work/openssl.log" 2>&1
verdict "certificates" $? "$work/openssl.log"
cluster_start
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
upstream kcm kube-controller-manager --kubeconfig "$KUBECONFIG" --authentication-kubeconfig "$KUBECONFIG" \
    --authorization-kubeconfig "$KUBECONFIG" --bind-address 127.0.0.1 --secure-port 0 --leader-elect=false \
    --service-account-private-key-file "$work/sa.key" --controllers=horizontal-pod-autoscaler-controller \
    --horizontal-pod-autoscaler-sync-period=2s --horizontal-pod-autoscaler-cpu-initialization-period=1s \
    --horizontal-pod-autoscaler-initial-readiness-delay=1s
upstream recommender vpa-recommender --kubeconfig "$KUBECONFIG" --address 127.0.0.1:0 --recommender-interval=3s
upstream updater vpa-updater --kubeconfig "$KUBECONFIG" --address 127.0.0.1:0 --updater-interval=3s
# It binds every interface and waits 10 s before it registers: upstream has no flag for either.
upstream admission vpa-admission-controller --kubeconfig "$KUBECONFIG" --address 127.0.0.1:0 --port "$port" --register-by-url \
    --webhook-address https://127.0.0.1 --webhook-port "$port" --client-ca-file "$work/ca.crt" \
    --tls-cert-file "$work/server.crt" --tls-private-key "$work/server.key"

# The HPA controller: up and down on cpu, on a metric of pods, of an object, and on an external one.
does "a deployment for cpu" deployment web 1 200m,50Mi
does "an HPA on cpu" hpa web 4 '{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}'
does "a deployment for a metric of its pods" deployment rps 1 10m,10Mi 'metrics.tandem.dev/rps: "20"'
does "an HPA on a metric of pods" hpa rps 3 '{type: Pods, pods: {metric: {name: rps}, target: {type: AverageValue, averageValue: "10"}}}'
does "a deployment for a metric of a Service" deployment front 1 10m,10Mi
kubectl create service clusterip front --tcp=80 >/dev/null
does "the Service's metric" kubectl annotate service front metrics.tandem.dev/hits=100
does "an HPA on a metric of an object" hpa front 5 \
    '{type: Object, object: {describedObject: {apiVersion: v1, kind: Service, name: front}, metric: {name: hits}, target: {type: AverageValue, averageValue: "50"}}}'
does "a deployment for an external metric" deployment queue 1 10m,10Mi
kubectl create configmap outside --from-literal=length=30 >/dev/null
does "an external metric" kubectl label configmap outside metrics.tandem.dev/external=true
does "an HPA on an external metric" hpa queue 5 '{type: External, external: {metric: {name: length}, target: {type: AverageValue, averageValue: "10"}}}'
soon "cpu: up to the most" 75 is 4 spec_replicas web
soon "cpu: the new pods are ready" 20 is 4 ready_replicas web
soon "cpu: it says that more is wanted" 45 is TooManyReplicas condition web ScalingLimited
soon "a metric of pods: up" 30 is 3 spec_replicas rps
soon "a metric of an object: up" 30 is 2 spec_replicas front
soon "an external metric: up" 30 is 3 spec_replicas queue
does "less cpu is used" kubectl annotate pods -l app=web --overwrite usage.tandem.dev/app=10m,50Mi
does "the pods' metric falls" kubectl annotate pods -l app=rps --overwrite metrics.tandem.dev/rps=6
does "the Service's metric falls" kubectl annotate service front --overwrite metrics.tandem.dev/hits=20
does "the external metric falls" kubectl patch configmap outside --type merge -p '{"data":{"length":"8"}}'
soon "cpu: down" 75 is 1 spec_replicas web
soon "a metric of pods: down" 30 is 2 spec_replicas rps
soon "a metric of an object: down" 30 is 1 spec_replicas front
soon "an external metric: down" 30 is 1 spec_replicas queue
says "the HPA says what it did" 'SuccessfulRescale.*New size: 1' kubectl get events --field-selector involvedObject.kind=HorizontalPodAutoscaler

# The VPA: recommendations, new pods by eviction, running pods in place, a budget in the way, a new pod patched on its way in.
soon "the webhook registers" 40 kubectl get mutatingwebhookconfiguration vpa-webhook-config
soon "the admission controller's lease" 20 kubectl -n kube-system get lease vpa-admission-controller
cpu=10m
for name in evicted resized guarded; do
    does "a deployment to be $name" deployment $name 3 300m,300Mi
    soon "its pods are ready" 30 is 3 ready_replicas $name
done
does "a budget" kubectl create poddisruptionbudget guarded --selector=app=guarded --min-available=3
evicted=$(uids evicted)
resized=$(uids resized)
guarded=$(uids guarded)
does "a VPA that recreates" vpa evicted Recreate
does "a VPA that resizes" vpa resized InPlaceOrRecreate
does "a VPA under a budget" vpa guarded Recreate
for name in evicted resized guarded; do
    soon "a recommendation: $name" 90 kubectl wait --for=condition=RecommendationProvided --timeout=1s "vpa/$name"
done
soon "evicted: every pod is new and has the recommended requests" 90 all_new evicted "$evicted" 3
soon "evicted: they are ready" 20 is 3 ready_replicas evicted
says "evicted: the webhook signed them" 'Pod resources updated by evicted' kubectl get pods -l app=evicted -o yaml
soon "resized: the same pods have the recommended requests" 90 all_resized resized "$resized"
says "resized: the updater signed them" 'vpaInPlaceUpdated' kubectl get pods -l app=resized -o yaml
soon "guarded: the budget held the updater off" 30 grep -qE 'guarded.*(disruption budget|cannot evict)|(disruption budget|[Cc]annot evict).*guarded' "$work/updater.log"
gives "guarded: its pods are the old ones" "$guarded" uids guarded
soon "checkpoints are written" 90 kubectl get vpacheckpoint evicted-app
for name in kcm recommender updater admission; do
    ! grep -E '^(panic|fatal)|server could not find the requested resource|the server responded with the status code 5|unable to decode' "$work/$name.log" >"$out"
    verdict "$name has no quarrel with the server" $? "$out"
done
[ "$failed" -eq 0 ] || [ -z "${KEEP_LOGS:-}" ] || cp "$work"/*.log "$work"/up.err "$KEEP_LOGS"
finish
