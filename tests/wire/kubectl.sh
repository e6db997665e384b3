#!/bin/sh
# kubectl, as its makers built it, on the local cluster: what users type, with what they are to see.
# Usage: tests/wire/kubectl.sh BUILD
. "$(dirname "$0")/lib.sh"
command -v kubectl >/dev/null || { echo "FAIL kubectl is in $cache/bin"; exit 1; }
cd "$work" || exit 1
cluster_start

# k ARGS...: kubectl, for commands in pipes and conditions
k() { kubectl "$@"; }
# field KIND/NAME JSONPATH
field() { kubectl get "$1" -o "jsonpath=$2"; }
# is KIND/NAME JSONPATH VALUE, for soon
is() { [ "$(field "$1" "$2")" = "$3" ]; }
gone() { ! kubectl get "$@"; }
count() { kubectl get "$@" --no-headers -o name | wc -l | tr -d ' '; }

# ---- The server itself

says "version" 'Server Version: v1\.36' k version
says "cluster-info" "control plane is running at .*$host_port" k cluster-info
says "api-resources" '^horizontalpodautoscalers +hpa +autoscaling/v2 +true +HorizontalPodAutoscaler' k api-resources
says "api-resources by group and verb" '^deployments\.apps$' k api-resources --api-group=apps --verbs=list,patch -o name
says "api-versions" '^autoscaling/v1$' k api-versions
says "api-versions has the vertical autoscaler" '^autoscaling\.k8s\.io/v1$' k api-versions
gives "raw readyz" ok k get --raw /readyz
says "config view hides the key" 'DATA\+OMITTED' k config view
gives "config current-context" tandem k config current-context
gives "the kubeconfig is the user's alone" 600 stat -c %a "$KUBECONFIG"
refused "a kind that is not served" "doesn't have a resource type" k get certificatesigningrequests
refused "certificate is not served" "(doesn't have a resource type|could not find the requested resource)" k certificate approve nobody

# ---- Objects in files

cat >web.yaml <<'YAML'
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  labels: {app: web, tier: front}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
        - name: app
          image: registry.example/web:1
          ports: [{containerPort: 8080}]
          resources: {requests: {cpu: 100m, memory: 64Mi}}
YAML
cat >settings.yaml <<'YAML'
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, labels: {app: web}}
data: {color: blue, size: small}
YAML
says "apply creates" 'deployment.apps/web created' k apply -f web.yaml
says "apply again changes nothing" 'deployment.apps/web unchanged' k apply -f web.yaml
says "apply of several files" 'configmap/settings created' k apply -f web.yaml -f settings.yaml
sed 's/size: small/size: large/' settings.yaml >settings2.yaml
says "diff shows the change" '^\+ +size: large' sh -c 'kubectl diff -f settings2.yaml; [ $? -eq 1 ]'
does "diff of what is there is empty" k diff -f settings.yaml
says "apply configures" 'configmap/settings configured' k apply -f settings2.yaml
gives "the new value is there" large k get cm settings -o 'jsonpath={.data.size}'
printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, labels: {app: web}}\ndata: {color: blue}\n' >settings3.yaml
does "apply takes away what left the file" k apply -f settings3.yaml
gives "the value is gone" '{"color":"blue"}' k get cm settings -o 'jsonpath={.data}'
says "apply --dry-run=server does not store" 'configured \(server dry run\)' k apply --dry-run=server -f settings2.yaml
gives "and it was not stored" '{"color":"blue"}' k get cm settings -o 'jsonpath={.data}'
says "apply view-last-applied" 'color: blue' k apply view-last-applied cm/settings
printf '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"made"},"data":{"a":"1"}}' >made.json
says "create" "configmap/made created" k create -f made.json
refused "create of what is there" '\(AlreadyExists\).*configmaps "made" already exists' k create -f made.json
sed 's/"a":"1"/"a":"2"/' made.json >made2.json
says "replace" 'configmap/made replaced' k replace -f made2.json
gives "replaced value" 2 k get cm made -o 'jsonpath={.data.a}'
says "replace --force" 'configmap/made replaced' k replace --force -f made.json
sed 's/^metadata:.*/metadata: {name: settings, resourceVersion: "1"}/' settings.yaml >old.yaml
refused "replace of an old version" '\(Conflict\).*the object has been modified' k replace -f old.yaml
printf '#!/bin/sh\nsed -i "s/color: blue/color: green/" "$1"\n' >editor
chmod +x editor
says "edit" 'configmap/settings edited' env KUBE_EDITOR="$work/editor" kubectl edit cm settings
gives "edited value" green k get cm settings -o 'jsonpath={.data.color}'
says "edit without a change" 'cancelled, no changes made' env KUBE_EDITOR=true kubectl edit cm settings

# ---- Server-side apply

printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shared}\ndata: {a: "1"}\n' >one.yaml
printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shared}\ndata: {a: "2", b: "2"}\n' >two.yaml
says "apply --server-side" 'configmap/shared serverside-applied' k apply --server-side --field-manager=one -f one.yaml
refused "a conflict names the manager and the field" 'conflict with "one": \.data\.a' k apply --server-side --field-manager=two -f two.yaml
says "--force-conflicts takes the field" 'serverside-applied' k apply --server-side --field-manager=two --force-conflicts -f two.yaml
gives "the second manager's value" '2' k get cm shared -o 'jsonpath={.data.a}'
says "managed fields are shown when asked for" 'manager: two' k get cm shared -o yaml --show-managed-fields
printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shared}\ndata: {b: "2"}\n' >two2.yaml
does "apply of less gives fields up" k apply --server-side --field-manager=two -f two2.yaml
gives "a given up field is gone" '{"b":"2"}' k get cm shared -o 'jsonpath={.data}'
says "diff --server-side" '^\+ +b: "3"' sh -c 'sed "s/b: \"2\"/b: \"3\"/" two2.yaml | kubectl diff --server-side --field-manager=two -f -; [ $? -eq 1 ]'

# ---- What is refused

printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Not_Valid}\n' >bad.yaml
refused "a name that is none" 'metadata\.name: Invalid value: "Not_Valid"' k create -f bad.yaml
sed 's/replicas: 2/replicaz: 2/' web.yaml >bad.yaml
refused "an unknown field" 'unknown field "spec\.replicaz"' k apply -f bad.yaml
says "an unknown field with --validate=warn" 'Warning: unknown field "spec\.replicaz"' k apply --validate=warn --dry-run=server -f bad.yaml
sed 's/matchLabels: {app: web}/matchLabels: {app: other}/; s/name: web/name: web2/' web.yaml >bad.yaml
refused "a selector that does not match its template" 'selector. does not match template' k apply -f bad.yaml
sed 's/cpu: 100m/cpu: 100x/' web.yaml >bad.yaml
refused "a quantity that is none" '"100x": must be a quantity' k apply -f bad.yaml
printf 'apiVersion: no.such/v1\nkind: Thing\nmetadata: {name: x}\n' >bad.yaml
refused "a kind that there is not" 'no matches for kind "Thing" in version "no.such/v1"' k apply -f bad.yaml
refused "apply into a namespace that is not there" 'namespaces "nowhere" not found' k -n nowhere create cm x

# ---- Reading

for i in 1 2 3 4 5; do
    echo "---"
    echo "{apiVersion: v1, kind: ConfigMap, metadata: {name: list-$i, labels: {set: list, parity: '$((i % 2))'}}, data: {rank: '$((9 - i))'}}"
done >list.yaml
k apply -f list.yaml >/dev/null
gives "get -l" 5 count cm -l set=list
gives "get -l with a set" 3 count cm -l 'set=list,parity in (1)'
gives "get -l with not equal" 2 count cm -l 'set=list,parity!=1'
gives "get --field-selector" 1 count cm --field-selector metadata.name=list-3
refused "a field selector that there is not" '"data.rank" is not a known field selector' k get cm --field-selector data.rank=1
gives "get --chunk-size reads all pages" 5 count cm -l set=list --chunk-size=2
gives "get --sort-by" 'list-5 list-4 list-3 list-2 list-1' k get cm -l set=list --sort-by=.data.rank -o 'jsonpath={.items[*].metadata.name}'
gives "get -o name" deployment.apps/web k get deploy web -o name
says "get -o json" '"kind": "Deployment"' k get deploy web -o json
says "get -o yaml" '^kind: Deployment' k get deploy web -o yaml
gives "get -o jsonpath" '{"cpu":"100m","memory":"64Mi"}' k get deploy web -o 'jsonpath={.spec.template.spec.containers[0].resources.requests}'
gives "get -o go-template" '2' k get deploy web -o 'go-template={{.spec.replicas}}'
says "get -o custom-columns" '^web +2 +registry.example/web:1$' k get deploy web -o 'custom-columns=NAME:.metadata.name,N:.spec.replicas,IMAGE:.spec.template.spec.containers[*].image'
says "get has the usual columns" '^NAME +READY +UP-TO-DATE +AVAILABLE +AGE$' k get deploy
says "get -o wide has more" 'CONTAINERS +IMAGES +SELECTOR' k get deploy -o wide
says "get --show-labels" 'app=web,tier=front' k get deploy web --show-labels
says "get -L" 'TIER$' k get deploy -L tier
says "get of several kinds" '^configmap/settings ' k get deploy,cm
says "get -A" '^NAMESPACE +NAME' k get deploy -A
says "get all" 'deployment.apps/web' k get all
refused "get of what is not there" '\(NotFound\): configmaps "nothing" not found' k get cm nothing
says "get --ignore-not-found" '^$' sh -c 'kubectl get cm nothing --ignore-not-found; echo'
says "explain" '^KIND: +Deployment' k explain deployment
says "explain of a field" 'FIELD: replicas <integer>' k explain deployment.spec.replicas
says "explain --recursive" 'maxSurge' k explain deployment.spec.strategy --recursive
says "explain --api-version" '^VERSION: +v1$' k explain hpa --api-version=autoscaling/v1
says "explain of a custom resource" 'updatePolicy' k explain vpa.spec
refused "explain of a field that there is not" 'field "nothing" does not exist' k explain deployment.spec.nothing

# ---- Watching

k get cm -l set=list -o name --watch >watched 2>&1 &
watch_pid=$!
k get cm list-1 --watch --output-watch-events -o json >watched2 2>&1 &
watch2_pid=$!
soon "a watch begins with what is there" 5 sh -c '[ "$(wc -l <watched)" -ge 5 ] && [ -s watched2 ]'
k annotate cm list-1 seen=yes >/dev/null
k delete cm list-1 >/dev/null
soon "a watch sees a change" 5 sh -c '[ "$(grep -c list-1 watched)" -ge 2 ]'
soon "a watch sees types of events" 5 sh -c 'grep -q ADDED watched2 && grep -q MODIFIED watched2 && grep -q DELETED watched2'
kill "$watch_pid" "$watch2_pid"
wait "$watch_pid" "$watch2_pid" 2>/dev/null

# ---- Changing

says "label" 'configmap/list-2 labeled' k label cm list-2 color=red
refused "label again without --overwrite" "already has a value" k label cm list-2 color=blue
does "label --overwrite" k label cm list-2 color=blue --overwrite
does "label is taken away" k label cm list-2 color-
gives "labels after that" '{"parity":"0","set":"list"}' k get cm list-2 -o 'jsonpath={.metadata.labels}'
says "label --all" 'configmap/list-5 labeled' k label cm --all swept=yes
says "annotate" 'configmap/list-2 annotated' k annotate cm list-2 note='two words'
gives "annotation" 'two words' k get cm list-2 -o 'jsonpath={.metadata.annotations.note}'
says "patch, strategic" 'deployment.apps/web patched' k patch deploy web -p '{"spec":{"template":{"spec":{"containers":[{"name":"app","env":[{"name":"A","value":"1"}]}]}}}}'
gives "strategic patch kept the image" 'registry.example/web:1 1' k get deploy web -o 'jsonpath={.spec.template.spec.containers[0].image} {.spec.template.spec.containers[0].env[0].value}'
does "patch, merge" k patch cm list-2 --type=merge -p '{"data":{"rank":null,"m":"1"}}'
gives "merge patch" '{"m":"1"}' k get cm list-2 -o 'jsonpath={.data}'
does "patch, JSON" k patch cm list-2 --type=json -p '[{"op":"test","path":"/data/m","value":"1"},{"op":"add","path":"/data/k","value":"2"}]'
gives "JSON patch" '{"k":"2","m":"1"}' k get cm list-2 -o 'jsonpath={.data}'
refused "JSON patch whose test fails" '(Invalid|UnprocessableEntity|the server rejected our request)' k patch cm list-2 --type=json -p '[{"op":"test","path":"/data/m","value":"7"}]'
says "patch without a change" 'patched \(no change\)' k patch cm list-2 --type=merge -p '{"data":{"m":"1"}}'
does "patch --subresource=scale" k patch deploy web --subresource=scale --type=merge -p '{"spec":{"replicas":3}}'
gives "scaled by patch" 3 k get deploy web -o 'jsonpath={.spec.replicas}'
says "get --subresource=scale" 'Scale' k get deploy web --subresource=scale -o yaml
says "set image" 'deployment.apps/web image updated' k set image deploy/web app=registry.example/web:2
says "set resources" 'deployment.apps/web resource requirements updated' k set resources deploy/web -c app --limits=cpu=200m,memory=128Mi
says "set env" 'deployment.apps/web env updated' k set env deploy/web B=2
gives "set env --list" 2 sh -c 'kubectl set env deploy/web --list | grep -cE "^(A=1|B=2)$"'
gives "what was set" 'registry.example/web:2 200m' k get deploy web -o 'jsonpath={.spec.template.spec.containers[0].image} {.spec.template.spec.containers[0].resources.limits.cpu}'
says "set selector" 'selector updated' sh -c 'kubectl create service clusterip picked --tcp=80 >/dev/null && kubectl set selector svc picked app=web'
says "set serviceaccount" 'serviceaccount updated' k set serviceaccount deploy/web default
says "scale" 'deployment.apps/web scaled' k scale deploy web --replicas=4
refused "scale with another number before it" 'Expected replicas to be 9, was 4' k scale deploy web --current-replicas=9 --replicas=1
says "scale with the right number before it" 'deployment.apps/web scaled' k scale deploy web --current-replicas=4 --replicas=2
gives "replicas after that" 2 k get deploy web -o 'jsonpath={.spec.replicas}'

# ---- Made by kubectl's generators (bodies in protobuf)

says "create namespace" 'namespace/shop created' k create namespace shop
says "create deployment" 'deployment.apps/api created' k create deployment api --image=registry.example/api:1 --replicas=2 --port=80
says "create job" 'job.batch/once created' k create job once --image=registry.example/tool:1
says "create cronjob" 'cronjob.batch/nightly created' k create cronjob nightly --image=registry.example/tool:1 --schedule='0 3 * * *'
says "create job --from=cronjob" 'job.batch/tonight created' k create job tonight --from=cronjob/nightly
printf 'v=1\n' >env.txt
says "create configmap" 'configmap/literal created' k create configmap literal --from-literal=a=b --from-file=env.txt
gives "configmap from a file" 'v=1' k get cm literal -o 'jsonpath={.data.env\.txt}'
says "create secret" 'secret/key created' k create secret generic key --from-literal=password=hidden
gives "secret is kept" 'hidden' sh -c 'kubectl get secret key -o jsonpath={.data.password} | base64 -d'
says "create secret docker-registry" 'secret/pull created' k create secret docker-registry pull --docker-server=r.example --docker-username=u --docker-password=p
says "create serviceaccount" 'serviceaccount/robot created' k create serviceaccount robot
says "create role" 'role.rbac.authorization.k8s.io/reader created' k create role reader --verb=get,list --resource=configmaps
says "create rolebinding" 'rolebinding.rbac.authorization.k8s.io/robot-reads created' k create rolebinding robot-reads --role=reader --serviceaccount=default:robot
says "create clusterrole" 'clusterrole.rbac.authorization.k8s.io/nodes-reader created' k create clusterrole nodes-reader --verb=get,list --resource=nodes
says "create clusterrolebinding" 'clusterrolebinding.rbac.authorization.k8s.io/robot-nodes created' k create clusterrolebinding robot-nodes --clusterrole=nodes-reader --serviceaccount=default:robot
says "create quota" 'resourcequota/small created' k -n shop create quota small --hard=pods=3,cpu=2
says "create poddisruptionbudget" 'poddisruptionbudget.policy/web-budget created' k create poddisruptionbudget web-budget --selector=app=web --min-available=2
says "create priorityclass" 'priorityclass.scheduling.k8s.io/high created' k create priorityclass high --value=1000
says "create ingress" 'ingress.networking.k8s.io/front created' k create ingress front --rule='web.example/*=web:80'
says "create service" 'service/api created' k create service clusterip api --tcp=80:8080
refused "create service with a port out of range" 'The range of valid ports is 30000-32767' k create service nodeport np --tcp=80 --node-port=1
says "run" 'pod/alone created' k run alone --image=registry.example/tool:1 --labels=app=alone --env=A=1
says "expose" 'service/web exposed' k expose deploy web --port=80 --target-port=8080
gives "the service selects what the deployment does" '{"app":"web"}' k get svc web -o 'jsonpath={.spec.selector}'
says "autoscale" 'horizontalpodautoscaler.autoscaling/web autoscaled' k autoscale deploy web --min=2 --max=5 --cpu=80%
gives "the autoscaler's target" 'Deployment/web 2 5 80' k get hpa web -o 'jsonpath={.spec.scaleTargetRef.kind}/{.spec.scaleTargetRef.name} {.spec.minReplicas} {.spec.maxReplicas} {.spec.metrics[0].resource.target.averageUtilization}'
says "create --dry-run=client -o yaml" 'kind: Deployment' k create deployment x --image=y --dry-run=client -o yaml

# ---- Rights

gives "auth can-i" yes k auth can-i delete pods
gives "auth can-i --as" no sh -c 'kubectl auth can-i delete pods --as=system:serviceaccount:default:robot; [ $? -eq 1 ]'
gives "auth can-i --as, what is granted" yes k auth can-i list configmaps --as=system:serviceaccount:default:robot
says "auth can-i --list" 'configmaps +\[\] +\[\] +\[get list\]' k auth can-i --list --as=system:serviceaccount:default:robot
says "auth whoami" 'system:masters' k auth whoami
says "auth whoami --as" 'Username +jane' k auth whoami --as=jane --as-group=developers
says "auth reconcile" 'role.rbac.authorization.k8s.io/reader' sh -c 'kubectl get role reader -o yaml >role.yaml && kubectl auth reconcile -f role.yaml'
token=$(k create token robot)
[ -n "$token" ]
verdict "create token" $?
kubectl config view --raw -o 'jsonpath={.clusters[0].cluster.certificate-authority-data}' | base64 -d >ca.crt
robot() { KUBECONFIG=/dev/null kubectl --server="$url" --certificate-authority="$work/ca.crt" --token="$token" "$@"; }
says "the token is its account's" 'system:serviceaccount:default:robot' robot auth whoami
says "the token may what was granted" '^settings ' robot -n default get cm
refused "the token may not more" 'Forbidden.*"system:serviceaccount:default:robot" cannot list resource "secrets"' robot -n default get secrets
refused "a wrong token" 'Unauthorized' env KUBECONFIG=/dev/null kubectl --server="$url" --certificate-authority="$work/ca.crt" --token=wrong get cm

# ---- Workloads at work

soon "the deployment has its pods" 20 is deploy/web '{.status.readyReplicas}' 2
says "rollout status" 'successfully rolled out' k rollout status deploy/web --timeout=20s
says "wait for a condition" 'deployment.apps/web condition met' k wait --for=condition=Available deploy/web --timeout=10s
says "wait for a value" 'condition met' k wait --for='jsonpath={.status.readyReplicas}=2' deploy/web --timeout=10s
refused "wait times out" 'timed out' k wait --for=condition=Missing deploy/web --timeout=1s
says "rollout history" '^[0-9]+ +' k rollout history deploy/web
says "rollout restart" 'restarted' k rollout restart deploy/web
says "rollout status after the restart" 'successfully rolled out' k rollout status deploy/web --timeout=30s
says "set image once more" 'image updated' k set image deploy/web app=registry.example/web:3
says "rollout status after an image" 'successfully rolled out' k rollout status deploy/web --timeout=30s
says "rollout undo" 'rolled back' k rollout undo deploy/web
gives "undo brings the image back" registry.example/web:2 k get deploy web -o 'jsonpath={.spec.template.spec.containers[0].image}'
says "rollout status after undo" 'successfully rolled out' k rollout status deploy/web --timeout=30s
says "rollout pause" 'paused' k rollout pause deploy/web
refused "undo of a paused deployment" 'paused' k rollout undo deploy/web
says "rollout resume" 'resumed' k rollout resume deploy/web
says "get pods" '^web-[a-z0-9]+-[a-z0-9]+ +1/1 +Running +0 ' k get pods -l app=web
says "get pods -o wide" 'NODE +NOMINATED NODE' k get pods -l app=web -o wide
running() { [ "$(count pods -l app=web --field-selector status.phase=Running)" = "$1" ]; }
soon "pods by phase" 10 running 2
cat >set.yaml <<'YAML'
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  replicas: 2
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {terminationGracePeriodSeconds: 1, containers: [{name: db, image: registry.example/db:1}]}
YAML
does "apply of a stateful set" k apply -f set.yaml
says "rollout status of a stateful set" '(roll out|rolling update) complete' k rollout status sts/db --timeout=30s
gives "its pods have ordinals" 'db-0 db-1' k get pods -l app=db -o 'jsonpath={.items[*].metadata.name}'

cat >agent.yaml <<'YAML'
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {terminationGracePeriodSeconds: 1, containers: [{name: agent, image: registry.example/agent:1}]}
YAML
does "apply of a daemon set" k apply -f agent.yaml
says "rollout status of a daemon set" 'successfully rolled out' k rollout status ds/agent --timeout=30s
gives "it has a pod on each node" "$(count nodes)" count pods -l app=agent
says "wait for a job" 'job.batch/once condition met' k wait --for=condition=Complete job/once --timeout=20s
says "get jobs" '^once +Complete +1/1' k get jobs once

# ---- Describe

for thing in ns/default deploy/web rs sts/db ds/agent pods svc/web cm/settings secret/key sa/robot hpa/web pdb/web-budget job/once cj/nightly \
    quota/small role/reader rolebinding/robot-reads clusterrole/view ing/front pc/high nodes crd/verticalpodautoscalers.autoscaling.k8s.io \
    lease; do
    case $thing in quota/*) ns=shop ;; lease) ns=kube-system ;; *) ns=default ;; esac
    does "describe $thing" k -n $ns describe "$thing"
done
says "describe shows what a pod asks for" 'cpu: +100m' k describe pod -l app=web
says "describe shows the autoscaler's metric" 'resource cpu on pods' k describe hpa web

# ---- Events, use and the pods without a process

says "events" '(SuccessfulCreate|ScalingReplicaSet)' k events
says "events --for" 'ScalingReplicaSet' k events --for deploy/web
says "get events --field-selector" 'deployment/web' k get events --field-selector involvedObject.kind=Deployment
pod=$(k get pods -l app=web -o 'jsonpath={.items[0].metadata.name}')
k annotate pod "$pod" usage.tandem.dev/app=250m,30Mi >/dev/null
# Use is told after a whole window of 15 s, and is no more than the limit of 200m.
top_says() { k top pods | grep -E "$1"; }
soon "top pods" 60 top_says "^$pod +200m +30Mi"
says "top pods --containers" "^$pod +app +200m +30Mi" k top pods --containers
says "top pods --sort-by" "^$pod" k top pods --sort-by=cpu -l app=web
says "top nodes" 'CPU\(cores\)' k top nodes
does "patch --subresource=resize" k patch pod "$pod" --subresource=resize -p '{"spec":{"containers":[{"name":"app","resources":{"requests":{"cpu":"150m"}}}]}}'
soon "the pod is resized in place" 10 is "pod/$pod" '{.status.containerStatuses[0].resources.requests.cpu} {.status.containerStatuses[0].restartCount}' '150m 0'
refused "resources do not change but by resize" 'pod updates may not change fields other than' k patch pod "$pod" -p '{"spec":{"containers":[{"name":"app","resources":{"requests":{"cpu":"120m"}}}]}}'
none='the local cluster runs no process behind a pod'
refused "exec" "exec of pods .* is not possible: $none" k exec "$pod" -- ls
refused "logs" "log of pods .* is not possible: $none" k logs "$pod"
refused "attach" "attach of pods .* is not possible: $none" k attach "$pod"
refused "port-forward" "is not possible: $none" k port-forward "$pod" 18080:80
refused "cp" "exec of pods .* is not possible: $none" k cp "$pod:/data/x" x
refused "proxy to a pod" "is not possible: $none" k get --raw "/api/v1/namespaces/default/pods/$pod/proxy/"
refused "proxy to a service" "is not possible: $none" k get --raw "/api/v1/namespaces/default/services/web/proxy/"
node=$(k get nodes -o 'jsonpath={.items[0].metadata.name}')
refused "proxy to a node" "is not possible: $none" k get --raw "/api/v1/nodes/$node/proxy/metrics"
kubectl proxy --port=0 >proxy.out 2>&1 &
proxy_pid=$!
soon "proxy starts" 5 grep -q 'Starting to serve on' proxy.out
kubectl --kubeconfig=/dev/null --server="http://$(grep -oE '127\.0\.0\.1:[0-9]+' proxy.out)" get cm settings -o name >proxied 2>&1
grep -q '^configmap/settings$' proxied
verdict "proxy to the API" $? proxied
kill $proxy_pid
wait $proxy_pid 2>/dev/null
says "debug adds an ephemeral container" 'Defaulting debug container name' sh -c "kubectl debug $pod --image=registry.example/tool:1 --target=app --attach=false 2>&1"

# ---- Nodes

says "cordon" "node/$node cordoned" k cordon "$node"
gives "cordoned nodes are unschedulable" true k get node "$node" -o 'jsonpath={.spec.unschedulable}'
says "uncordon" "node/$node uncordoned" k uncordon "$node"
says "taint" "node/$node tainted" k taint node "$node" only=me:NoSchedule
says "taint is taken away" "node/$node untainted" k taint node "$node" only-
blocked() { kubectl drain "$1" --ignore-daemonsets --force --delete-emptydir-data --timeout=4s; }
k scale deploy web --replicas=2 >/dev/null
soon "the budget allows nothing" 20 is pdb/web-budget '{.status.disruptionsAllowed}/{.status.currentHealthy}' 0/2
node=$(k get pods -l app=web -o 'jsonpath={.items[0].spec.nodeName}')
refused "drain is held by the budget" "Cannot evict pod as it would violate the pod's disruption budget" blocked "$node"
k scale deploy web --replicas=4 >/dev/null
soon "with more pods the budget allows some" 20 is pdb/web-budget '{.status.disruptionsAllowed}' 2
says "drain goes on" "node/$node drained" k drain "$node" --ignore-daemonsets --force --delete-emptydir-data --timeout=30s
gives "no pod of it is left there" 0 count pods -l app=web --field-selector "spec.nodeName=$node"
does "uncordon after the drain" k uncordon "$node"

# ---- Deleting

says "delete --cascade=orphan" 'deployment.apps "api" deleted' k delete deploy api --cascade=orphan
says "its replica set stays" 'replicaset.apps/api-' k get rs -l app=api -o name
does "delete --cascade=background" k delete rs -l app=api --cascade=background
soon "its pods go" 20 sh -c '[ -z "$(kubectl get pods -l app=api -o name)" ]'
says "delete --cascade=foreground" 'statefulset.apps "db" deleted' k delete sts db --cascade=foreground --timeout=20s
gives "and its pods were gone before" '' k get pods -l app=db -o name
k run alone2 --image=registry.example/tool:1 >/dev/null
says "delete --grace-period=0 --force" 'pod "alone2" force deleted' k delete pod alone2 --grace-period=0 --force
refused "it is gone at once" 'NotFound' k get pod alone2
says "delete -l" 'configmap "list-2" deleted' k delete cm -l set=list
says "delete --all" 'job.batch "once" deleted' k delete jobs --all
k create cm waited >/dev/null
(sleep 1; kubectl delete cm waited) >/dev/null 2>&1 &
says "wait --for=delete" 'condition met' k wait --for=delete cm/waited --timeout=10s
says "delete --dry-run=server" 'deleted.* \(server dry run\)' k delete cm settings --dry-run=server
does "it is still there" k get cm settings
says "delete -f" 'configmap "settings" deleted' k delete -f settings.yaml
refused "delete of what is not there" 'NotFound' k delete cm nothing
does "delete of a namespace" k delete ns shop --timeout=20s
refused "what was in it is gone" 'NotFound' k -n shop get quota small

# ---- Sets of files

mkdir base over
cp settings.yaml base/settings.yaml
printf 'resources: [settings.yaml]\n' >base/kustomization.yaml
printf 'resources: [../base]\nnamePrefix: over-\nlabels: [{pairs: {from: kustomize}}]\n' >over/kustomization.yaml
says "apply -k" 'configmap/over-settings created' k apply -k over
gives "kustomize's label" kustomize k get cm over-settings -o 'jsonpath={.metadata.labels.from}'
mkdir pruned
printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: keep, labels: {set: pruned}}\n' >pruned/a.yaml
printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: drop, labels: {set: pruned}}\n' >pruned/b.yaml
k apply -f pruned >/dev/null
rm pruned/b.yaml
says "apply --prune" 'configmap/drop pruned' k apply -f pruned --prune -l set=pruned --prune-allowlist=core/v1/ConfigMap

# ---- Kinds of users

cat >crd.yaml <<'YAML'
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: queues.example.test}
spec:
  group: example.test
  scope: Namespaced
  names: {plural: queues, singular: queue, kind: Queue, shortNames: [qu], categories: [all]}
  versions:
    - name: v1
      served: true
      storage: true
      subresources:
        status: {}
        scale: {specReplicasPath: .spec.workers, statusReplicasPath: .status.workers, labelSelectorPath: .status.selector}
      additionalPrinterColumns:
        - {name: Workers, type: integer, jsonPath: .spec.workers}
        - {name: Depth, type: integer, jsonPath: .status.depth, priority: 1}
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              required: [topic]
              properties:
                topic: {type: string, maxLength: 10}
                workers: {type: integer, default: 1, minimum: 0}
                mode: {type: string, enum: [fast, safe], default: safe}
            status:
              type: object
              properties: {workers: {type: integer}, depth: {type: integer}, selector: {type: string}}
YAML
says "a definition is taken" 'customresourcedefinition.apiextensions.k8s.io/queues.example.test created' k apply -f crd.yaml
does "it is established" k wait --for=condition=Established crd/queues.example.test --timeout=10s
printf 'apiVersion: example.test/v1\nkind: Queue\nmetadata: {name: mail}\nspec: {topic: mail}\n' >queue.yaml
says "an object of it" 'queue.example.test/mail created' k apply -f queue.yaml
gives "defaults of its schema" '1 safe' k get queue mail -o 'jsonpath={.spec.workers} {.spec.mode}'
says "printer columns" '^mail +1' k get qu
says "get all has its category" 'queue.example.test/mail' k get all
says "printer columns of -o wide" 'NAME +WORKERS +DEPTH' k get qu -o wide
refused "validation: required" 'spec\.topic: Required value' sh -c 'sed "s/topic: mail//; s/name: mail/name: other/" queue.yaml | kubectl apply --validate=false -f -'
refused "validation: enum" 'spec\.mode: Unsupported value: "slow": supported values: "fast", "safe"' k patch queue mail --type=merge -p '{"spec":{"mode":"slow"}}'
refused "validation: length" 'spec\.topic: Too long: may not be more than 10 bytes' k patch queue mail --type=merge -p '{"spec":{"topic":"far too long a name"}}'
refused "an unknown field of a custom resource" 'unknown field "spec\.nothing"' sh -c 'sed "s/topic: mail/topic: mail, nothing: 1/" queue.yaml | kubectl apply -f -'
says "scale of a custom resource" 'queue.example.test/mail scaled' k scale queue mail --replicas=3
gives "its workers" 3 k get queue mail -o 'jsonpath={.spec.workers}'
does "patch --subresource=status" k patch queue mail --subresource=status --type=merge -p '{"status":{"depth":7},"spec":{"workers":9}}'
gives "status alone is written" '7 3' k get queue mail -o 'jsonpath={.status.depth} {.spec.workers}'
says "explain of a user's kind" "^ +safe$" k explain queue.spec.mode
does "delete of the definition" k delete crd queues.example.test --timeout=20s
refused "its kind is gone" "(doesn't have a resource type|could not find the requested resource)" k get queues

says "cluster-info dump" '"kind": "(EventList|NodeList)"' k cluster-info dump

finish
