#!/bin/sh
# `tandem validate` from outside: objects alone and together, real repositories, input that cannot be read, every output.
. "$(dirname "$0")/lib.sh"

cat >"$work/good.yaml" <<'EOF'
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop, labels: {app: web}}
spec:
  containers:
  - name: web
    image: web:1
    resources:
      requests: {cpu: 500m, memory: 1Gi}
EOF
cat >"$work/problems.yaml" <<'EOF'
apiVersion: apps/v1
kind: Deployment
metadata:
  name: Web
  labels: {"-bad": x}
spec:
  replicas: 2
  selector:
    matchExpressions:
    - {key: app, operator: Inside, values: [a]}
  template:
    spec:
      containers:
      - name: web
        imagePullpolicy: Always
EOF
printf '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"a":1' >"$work/cut.json"
printf '{"a":1' >"$work/cut-yaml.yaml"
awk 'BEGIN { for (i = 0; i < 600; i++) printf "["; for (i = 0; i < 600; i++) printf "]" }' >"$work/deep.json"
cp "$work/deep.json" "$work/deep.yaml"
{ printf '{"a":"'; head -c 209715200 /dev/zero | tr '\0' x; printf '"}'; } >"$work/large.json"
sed 's/1Gi/1.5.5Gi/' "$work/good.yaml" >"$work/quantity.yaml"
sed 's/name: web, namespace/name: web, name: web2, namespace/' "$work/good.yaml" >"$work/duplicate.yaml"
printf '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","name":"b"}}' >"$work/duplicate.json"
printf 'kind: Pod\n' >"$work/no-version.yaml"
printf 'apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec:\n  replicas: three\n' >"$work/type.yaml"
cat >"$work/hpa.yaml" <<'EOF'
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: shop}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  maxReplicas: 5
EOF
cat >"$work/hpa-bad.yaml" <<'EOF'
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: shop}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 6
  maxReplicas: 5
  selectionStrategy: OwnerReference
  metrics:
  - type: Resource
    resource:
      name: cpu
      target: {type: Utilization, averageUtilization: 0}
EOF
sed 's/autoscaling.v2/autoscaling.tandem.dev\/v2/; s/name: web, namespace/name: other, namespace/' "$work/hpa.yaml" >"$work/hpa-second.yaml"
sed 's/namespace: shop/namespace: other/' "$work/hpa-second.yaml" >"$work/hpa-elsewhere.yaml"
sed '$a\  selectionStrategy: Owner' "$work/hpa-second.yaml" >"$work/hpa-strategy.yaml"
for pair in "tracks balanced" "track bold" "track calm"; do
    set -- $pair
    printf 'apiVersion: autoscaling.k8s.io/v1\nkind: VerticalPodAutoscaler\nmetadata:\n  name: web\n  annotations:\n    tandem.dev/estimator: %s\n    tandem.dev/risk: %s\nspec:\n  targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}\n' "$1" "$2" >"$work/estimator-$1-$2.yaml"
done
cat >"$work/vpa.yaml" <<'EOF'
apiVersion: autoscaling.k8s.io/v1
kind: VerticalPodAutoscaler
metadata: {name: db-leader, namespace: shop}
spec:
  targetRef: {apiVersion: apps/v1, kind: StatefulSet, name: db}
  selector:
    matchLabels: {app: db, role: leader}
EOF
sed 's/db-leader/db-follower/; s/leader/follower/' "$work/vpa.yaml" >"$work/vpa-follower.yaml"
sed 's/db-leader/db-all/; s/, role: leader//' "$work/vpa.yaml" >"$work/vpa-all.yaml"
sed 's/db-leader/db-tier/; s/app: db, role: leader/tier: gold/' "$work/vpa.yaml" >"$work/vpa-tier.yaml"
sed 's/db-leader/db/; /selector:/,$d' "$work/vpa.yaml" >"$work/vpa-plain.yaml"
sed 's/name: db}/name: other}/' "$work/vpa-all.yaml" >"$work/vpa-elsewhere.yaml"
{ sed '/matchLabels/d' "$work/vpa.yaml"; printf '    matchExpressions: [{key: role, operator: Exists}, {key: role, operator: DoesNotExist}]\n'; } >"$work/vpa-never.yaml"
{
    cat "$work/vpa-plain.yaml"
    cat <<'EOF'
  updatePolicy:
    updateMode: Sometimes
    evictionRequirements:
    - {resources: [cpu], changeRequirement: TargetHigherThanRequests}
    - {resources: [cpu, memory], changeRequirement: TargetLowerThanRequests}
  resourcePolicy:
    podPolicies: {minAllowed: {cpu: 2}, maxAllowed: {cpu: 1}}
  sellector: {}
EOF
} >"$work/vpa-bad.yaml"
printf 'apiVersion: autoscaling.k8s.io/v1\nkind: VerticalPodAutoscaler\nmetadata: {name: db}\nspec: {}\n' >"$work/vpa-no-target.yaml"
cat >"$work/pair.yaml" <<'EOF'
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: web, resources: {requests: {cpu: 1}}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: shop}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  maxReplicas: 100
  metrics:
  - type: Resource
    resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}
---
apiVersion: autoscaling.k8s.io/v1
kind: VerticalPodAutoscaler
metadata: {name: web, namespace: shop}
spec:
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  resourcePolicy: {containerPolicies: [{containerName: web, minAllowed: {cpu: 25m}}]}
EOF
sed '1,/^---/d' "$work/pair.yaml" >"$work/pair-alone.yaml"
{
    sed '/^---/,$d' "$work/pair.yaml"
    printf -- '---\n'
    sed 's/db-leader/web/; s/StatefulSet, name: db/Deployment, name: web/; s/app: db, role/app: web, role/' "$work/vpa.yaml"
} >"$work/vpa-role.yaml"
sed '$a\  updatePolicy: {updateMode: InPlaceOrRecreate}' "$work/vpa-role.yaml" >"$work/vpa-role-in-place.yaml"
sed 's/labels: {app: web}}/labels: {app: web, role: leader}}/' "$work/vpa-role.yaml" >"$work/vpa-role-born.yaml"
sed 's/averageUtilization: 50/averageUtilization: 80/' "$work/pair.yaml" >"$work/pair-quiet.yaml"
sed 's/type: Utilization, averageUtilization: 50/type: AverageValue, averageValue: 300m/' "$work/pair.yaml" >"$work/pair-absolute.yaml"
sed 's/minAllowed: {cpu: 25m}/controlledResources: [memory]/' "$work/pair.yaml" >"$work/pair-apart.yaml"
sed 's/resourcePolicy: .*/updatePolicy: {updateMode: "Off"}/' "$work/pair.yaml" >"$work/pair-off.yaml"
cat >"$work/hvpa.yaml" <<'EOF'
apiVersion: autoscaling.k8s.io/v1alpha1
kind: Hvpa
metadata: {name: web, namespace: shop}
spec:
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  hpaSpec: {maxReplicas: 10}
  vpaSpec: {}
EOF
sed 's/{name: web, namespace/{name: other, namespace/' "$work/hvpa.yaml" >"$work/hvpa-second.yaml"
sed 's/maxReplicas: 10/minReplicas: 3, maxReplicas: 2/; s/vpaSpec: {}/mode: Half/' "$work/hvpa.yaml" >"$work/hvpa-bad.yaml"
sed 's/vpaSpec: {}/vpaSpec: {targetRef: {kind: StatefulSet, name: web}}/' "$work/hvpa.yaml" >"$work/hvpa-mismatch.yaml"
sed 's/maxReplicas: 10/maxReplicas: ten/' "$work/hvpa.yaml" >"$work/hvpa-type.yaml"
{ cat "$work/hvpa.yaml"; printf '  ratio: 1\n'; } >"$work/hvpa-unknown.yaml"
cat >"$work/gardener.yaml" <<'EOF'
apiVersion: autoscaling.k8s.io/v1alpha1
kind: Hvpa
metadata: {name: api, namespace: shoot}
spec:
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: api}
  hpa:
    deploy: true
    template: {spec: {maxReplicas: 4, metrics: [{type: Resource, resource: {name: cpu, targetAverageUtilization: 80}}]}}
  vpa: {deploy: true, template: {spec: {}}}
  weightBasedScalingIntervals:
  - {vpaWeight: 0, startReplicaCount: 1, lastReplicaCount: 3}
  - {vpaWeight: 100, startReplicaCount: 4}
EOF
sed 's/vpaWeight: 0,/vpaWeight: 10,/; s/vpaWeight: 100/vpaWeight: 20/' "$work/gardener.yaml" >"$work/gardener-odd.yaml"
mkdir "$work/empty"

check "an annotation that names no estimator" 1 "estimator-tracks-balanced.yaml:6: VerticalPodAutoscaler web: metadata.annotations\[tandem.dev/estimator\]: 'tracks': use one of upstream, adaptive, " '' validate "$work/estimator-tracks-balanced.yaml"
check "a risk that the estimator lacks" 1 "estimator-track-bold.yaml:7: VerticalPodAutoscaler web: metadata.annotations\[tandem.dev/risk\]: 'bold': use one of balanced, careful, frugal, calm$" '' validate "$work/estimator-track-bold.yaml"
check "an estimator and its risk" 0 '^no problems' '' validate "$work/estimator-track-calm.yaml"
check "a good file" 0 '^no problems in 1 object \(1 file\)$' '' validate "$work/good.yaml"
check "mistakes across objects" 1 "^2 problems in 6 objects" "" validate "$top/tests/data/manifests/mistakes.yaml"
check "the examples" 0 '^no problems in' '' validate "$top/examples"
check "problems are counted" 1 '^5 problems in 1 object \(1 file\)$' '' validate "$work/problems.yaml"
check "an unknown field has its line" 1 'problems.yaml:15: Deployment Web: spec.template.spec.containers\[0\].imagePullpolicy: unknown field' '' validate "$work/problems.yaml"
check "a bad operator is named" 1 'problems.yaml:10: Deployment Web: spec.selector.matchExpressions\[0\].operator: Invalid value: "Inside": ' '' validate "$work/problems.yaml"
check "a bad name is named" 1 'problems.yaml:4: .*metadata.name: Invalid value: "Web": a lowercase' '' validate "$work/problems.yaml"
check "problems as JSON" 1 '"field": "spec.template.spec.containers\[0\].imagePullpolicy"' '' validate --output json "$work/problems.yaml"
check "options after files" 1 "\"objects\": 1" "" validate "$work/problems.yaml" -o json
check "problems as YAML" 1 '^- file: ' '' validate --output yaml "$work/problems.yaml"
check "a good HPA" 0 '^no problems in 1 object' '' validate "$work/hpa.yaml"
check "an HPA's bounds" 1 'hpa-bad.yaml:7: HorizontalPodAutoscaler shop/web: spec.maxReplicas: Invalid value: 5: must be .*minReplicas' '' validate "$work/hpa-bad.yaml"
check "an HPA's metric has its line" 1 'hpa-bad.yaml:13: .*: spec.metrics\[0\].resource.target.averageUtilization: Invalid value: 0: ' '' validate "$work/hpa-bad.yaml"
check "a field that servers do not know" 1 'hpa-bad.yaml:8: .*: spec.selectionStrategy: unknown field' '' validate "$work/hpa-bad.yaml"
sed '$d' "$work/hpa-strategy.yaml" | sed 's/autoscaling.tandem.dev/autoscaling/; $a\  SelectionStrategy: OwnerReference' >"$work/hpa-capital.yaml"
check "the refusal names both ways that work" 1 'hpa-capital.yaml:7: .*: spec.SelectionStrategy: unknown field to .* apiVersion: autoscaling.tandem.dev/v2, or the annotation tandem.dev/hpa-selection-strategy$' '' validate "$work/hpa-capital.yaml"
sed '/^metadata:/s/}$/, annotations: {tandem.dev\/hpa-selection-strategy: Owners}}/' "$work/hpa.yaml" >"$work/hpa-annotation.yaml"
check "a strategy that does not exist" 1 'hpa-annotation.yaml:3: .*: metadata.annotations\[tandem.dev/hpa-selection-strategy\]: unsupported value "Owners", which counts as LabelSelector' '' validate "$work/hpa-annotation.yaml"
check "our own kind knows the field" 1 'hpa-strategy.yaml:7: .*: spec.selectionStrategy: Unsupported value: "Owner": supported values: "LabelSelector", "OwnerReference", "OwnerReferences"$' '' validate "$work/hpa-strategy.yaml"
check "two HPAs on one target, across files" 1 'hpa-second.yaml:5: HorizontalPodAutoscaler shop/other: spec.scaleTargetRef: HorizontalPodAutoscaler web \(.*/hpa.yaml:1\) already' '' validate "$work/hpa.yaml" "$work/hpa-second.yaml"
check "the elder is not blamed" 1 '^1 problem in 2 objects \(2 files\)$' '' validate "$work/hpa.yaml" "$work/hpa-second.yaml"
check "the same name in another namespace is another target" 0 '^no problems in 2 objects' '' validate "$work/hpa.yaml" "$work/hpa-elsewhere.yaml"
check "one HPA in two files is one HPA" 0 '^no problems in 2 objects' '' validate "$work/hpa.yaml" "$work/hpa.yaml"
sed 's/^spec:/&\n  resourcePolicy: {containerPolicies: [{containerName: "*", controlledResources: [cpu], minAllowed: {memory: 1Gi}}]}/' "$work/vpa.yaml" >"$work/vpa-unused.yaml"
check "a bound without effect is a warning" 0 'vpa-unused.yaml:[0-9]*: warning: .*containerPolicies\[0\].minAllowed\[memory\]: has no effect: controlledResources leaves memory out' '' validate "$work/vpa-unused.yaml"
check "VPAs that divide a target" 0 '^no problems in 2 objects' '' validate "$work/vpa.yaml" "$work/vpa-follower.yaml"
check "VPAs of two targets" 0 '^no problems in 2 objects' '' validate "$work/vpa.yaml" "$work/vpa-elsewhere.yaml"
check "one VPA in two files is one VPA" 0 '^no problems in 2 objects' '' validate "$work/vpa.yaml" "$work/vpa.yaml"
check "overlapping VPAs, the later is blamed" 1 'vpa-all.yaml:6: VerticalPodAutoscaler shop/db-all: selector overlaps with shop/db-leader \(.*/vpa.yaml:1\)$' '' validate "$work/vpa.yaml" "$work/vpa-all.yaml"
check "a pod that both would manage, and the way out" 1 '^    both would manage a pod with labels \{app=db, role=leader\}; add a key that tells them apart, e.g. role NotIn \(leader\)$' '' validate "$work/vpa.yaml" "$work/vpa-all.yaml"
check "VPAs without a common key" 1 '^    no label key is constrained by both \(tier here, app there\)' '' validate "$work/vpa.yaml" "$work/vpa-tier.yaml"
check "a VPA without selector beside another" 1 '^    this VPA has no selector and is catch-all' '' validate "$work/vpa.yaml" "$work/vpa-plain.yaml"
check "a conflict as JSON has its field" 1 '"field": "spec.selector"' '' validate --output json "$work/vpa.yaml" "$work/vpa-all.yaml"
check "a selector that never matches" 1 'vpa-never.yaml:[0-9]+: .*: selector can never match a pod: .*"role"' '' validate "$work/vpa-never.yaml"
check "a VPA's update mode" 1 'vpa-bad.yaml:7: VerticalPodAutoscaler shop/db: spec.updatePolicy.updateMode: Unsupported value: "Sometimes"' '' validate "$work/vpa-bad.yaml"
check "two requirements for a resource" 1 'vpa-bad.yaml:10: .*evictionRequirements\[1\].resources\[0\]: Duplicate value: "cpu": .*evictionRequirements\[0\]' '' validate "$work/vpa-bad.yaml"
check "a VPA's pod policy" 1 'vpa-bad.yaml:12: .*podPolicies.maxAllowed\[cpu\]: Invalid value: "1": ' '' validate "$work/vpa-bad.yaml"
check "a VPA's unknown field" 1 'vpa-bad.yaml:13: .*: spec.sellector: unknown field' '' validate "$work/vpa-bad.yaml"
check "each fault of a VPA once" 1 '^4 problems in 1 object' '' validate "$work/vpa-bad.yaml"
check "a VPA without target" 1 'vpa-no-target.yaml:4: .*: spec.targetRef: Required value$' '' validate "$work/vpa-no-target.yaml"
check "a VPA that selects what no new pod is, and evicts" 1 'vpa-role.yaml:18: VerticalPodAutoscaler shop/web: spec.selector: the pod template of Deployment web does not meet role=leader, so this VPA would not manage the replacement of an evicted pod' '' validate "$work/vpa-role.yaml"
check "it may resize in place" 0 '^no problems' '' validate "$work/vpa-role-in-place.yaml"
check "pods are born with the role" 0 '^no problems' '' validate "$work/vpa-role-born.yaml"
check "an HPA and a VPA that drive each other" 1 'pair.yaml:20: HorizontalPodAutoscaler shop/web and VerticalPodAutoscaler shop/web both act on cpu: loop gain 1.74, replicas drift to 79$' '' validate "$work/pair.yaml"
check "three ways out of the loop" 1 '^    use an Hvpa \(tandem validate --migrate\), an absolute HPA target \(averageValue: 500m\), or take cpu out of the VPA$' '' validate "$work/pair.yaml"
check "a loop without its workload has only a gain" 1 'both act on cpu: loop gain 1.74$' '' validate "$work/pair-alone.yaml"
check "a loop as JSON has its field" 1 '"field": "spec.metrics\[0\]"' '' validate --output json "$work/pair.yaml"
check "a target inside the tolerance is quiet" 0 '^no problems in 3 objects' '' validate "$work/pair-quiet.yaml"
check "an absolute target is no loop" 0 '^no problems in 3 objects' '' validate "$work/pair-absolute.yaml"
check "other resources are no loop" 0 '^no problems in 3 objects' '' validate "$work/pair-apart.yaml"
check "a VPA that is Off is no loop" 0 '^no problems in 3 objects' '' validate "$work/pair-off.yaml"
check "a good Hvpa" 0 '^no problems in 1 object ' '' validate "$work/hvpa.yaml"
check "the example of an Hvpa" 0 '^no problems in 2 objects ' '' validate "$top/examples/hvpa.yaml"
check "an Hvpa's mode" 1 'hvpa-bad.yaml:7: Hvpa shop/web: spec.mode: Unsupported value: "Half"' '' validate "$work/hvpa-bad.yaml"
check "the HPA inside an Hvpa" 1 'hvpa-bad.yaml:6: Hvpa shop/web: spec.hpaSpec.maxReplicas: Invalid value: 2: ' '' validate "$work/hvpa-bad.yaml"
check "two targets of an Hvpa" 1 'hvpa-mismatch.yaml:7: .*: spec.vpaSpec.targetRef.kind: Invalid value: "StatefulSet": differs from spec.targetRef' '' validate "$work/hvpa-mismatch.yaml"
check "an Hvpa that does not decode" 1 'hvpa-type.yaml:6: Hvpa shop/web: spec.hpaSpec.maxReplicas: Invalid value: "string": ' '' validate "$work/hvpa-type.yaml"
check "an Hvpa's unknown field" 1 'hvpa-unknown.yaml:8: .*: spec.ratio: unknown field' '' validate "$work/hvpa-unknown.yaml"
check "two Hvpas on one target" 1 'hvpa-second.yaml:5: Hvpa shop/other: spec.targetRef: Hvpa shop/web \(.*/hvpa.yaml:1\) already scales this target' '' validate "$work/hvpa.yaml" "$work/hvpa-second.yaml"
check "an Hvpa beside an HPA" 1 'hvpa.yaml:5: Hvpa shop/web: spec.targetRef: HorizontalPodAutoscaler shop/web \(.*/pair-quiet.yaml:13\) has the same target; the Hvpa would not scale it \(TargetConflict\)' '' validate "$work/pair-quiet.yaml" "$work/hvpa.yaml"
check "gardener's fields" 1 'gardener.yaml:[0-9]+: Hvpa shoot/api: spec.weightBasedScalingIntervals: is a field of gardener' '' validate "$work/gardener.yaml"
check "a pair as an Hvpa" 0 '^  mode: RatioBased$' '' validate --migrate "$work/pair.yaml"
check "a migration says where it comes from" 0 '^# From HorizontalPodAutoscaler web \(.*/pair.yaml:13\) and VerticalPodAutoscaler web \(' '' validate --migrate "$work/pair.yaml"
check "a migration as JSON" 0 '"mode": "HPABiased"' '' validate --migrate --output json "$work/pair-absolute.yaml"
check "gardener's Hvpa in our form" 0 '^  mode: HPAPreferred$' '' validate --migrate "$work/gardener.yaml"
check "weights that cannot be expressed" 1 '^# Not migrated: the weights have more stages' '' validate --migrate "$work/gardener-odd.yaml"
check "nothing to migrate" 0 '^# nothing to migrate' '' validate --migrate "$work/good.yaml"
"$tandem" validate --migrate "$work/pair.yaml" "$work/gardener.yaml" >"$work/migrated.yaml"
check "what a migration prints is valid" 0 '^no problems in 2 objects ' '' validate "$work/migrated.yaml"
check "cut JSON" 2 '' '^tandem: .*cut.json:1:[0-9]+: ' validate "$work/cut.json"
check "cut YAML" 2 '' '^tandem: .*cut-yaml.yaml:[0-9]+: ' validate "$work/cut-yaml.yaml"
check "600 deep JSON" 2 '' '^tandem: .*deep.json:1:513: .*512' validate "$work/deep.json"
check "600 deep YAML" 2 '' '^tandem: .*deep.yaml:1: .*512' validate "$work/deep.yaml"
check "200 MB against the cap of 64 MiB" 2 '' '^tandem: .*large.json: larger than 67108864 bytes$' validate "$work/large.json"
check "a bad quantity" 1 'quantity.yaml:9: Pod shop/web: spec.containers\[0\].resources.requests.memory: "1.5.5Gi": must be' '' validate "$work/quantity.yaml"
check "a wrong type" 1 'type.yaml:5: Deployment a: spec.replicas: "three": must be a 32-bit integer$' '' validate "$work/type.yaml"
check "a duplicate key in YAML" 2 '' '^tandem: .*duplicate.yaml:3: .*name' validate "$work/duplicate.yaml"
check "a duplicate member in JSON" 2 '' '^tandem: .*duplicate.json: duplicate field "metadata.name"$' validate "$work/duplicate.json"
check "no apiVersion" 2 '' '^tandem: .*no-version.yaml:1: apiVersion: ' validate "$work/no-version.yaml"
check "a missing file" 2 '' '^tandem: .*absent.yaml: No such file or directory$' validate "$work/absent.yaml"
check "a folder without manifests" 1 '^no objects found; ' '' validate "$work/empty"
check "after a bad file come the others" 1 '^1 problem in 2 objects \(2 files\)$' '' validate "$work/quantity.yaml" "$work/good.yaml"
check "an unknown output" 2 '' "^tandem: validate: --output: 'xml': use table, json, yaml, junit or sarif$" validate --output xml "$work/good.yaml"
check "an unknown option" 2 '' '^tandem: validate: --nope: ' validate --nope "$work/good.yaml"
check "no files" 2 '' '^tandem: validate: no files' validate

# --- as the API server judges ---
cat >"$work/rbac.yaml" <<'EOF'
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "system:metrics-reader"}
rules: [{apiGroups: [metrics.k8s.io], resources: [pods], verbs: [get, list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: "system:metrics-reader"}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "system:metrics-reader"}
subjects: [{kind: ServiceAccount, name: vpa-recommender, namespace: kube-system}]
EOF
cat >"$work/above.yaml" <<'EOF'
apiVersion: v1
kind: Pod
metadata: {name: a}
spec:
  containers:
  - name: a
    image: a
    resources:
      requests:
        cpu: 2
      limits:
        cpu: 1
EOF
cat >"$work/unmatched.yaml" <<'EOF'
apiVersion: apps/v1
kind: Deployment
metadata: {name: a}
spec:
  selector: {matchLabels: {app: a}}
  template:
    metadata:
      labels: {app: b}
    spec:
      restartPolicy: Never
      containers: [{name: a, image: a}]
EOF
cat >"$work/cron.yaml" <<'EOF'
apiVersion: batch/v1
kind: CronJob
metadata: {name: a}
spec:
  schedule: "61 * * * *"
  jobTemplate:
    spec:
      template:
        spec: {restartPolicy: Always, containers: [{name: a, image: a}]}
EOF
cat >"$work/thing-crd.yaml" <<'EOF'
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: things, singular: thing, kind: Thing, listKind: ThingList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, required: [size], properties: {size: {type: integer, maximum: 3}}}
EOF
cat >"$work/thing.yaml" <<'EOF'
apiVersion: example.com/v1
kind: Thing
metadata: {name: a}
spec:
  size: 4
  colour: red
EOF
cat >"$work/export.yaml" <<'EOF'
apiVersion: v1
kind: ConfigMap
metadata:
  name: a
  resourceVersion: "7"
EOF
sed 's/^  name: a/  generateName: a-/; /resourceVersion/d' "$work/export.yaml" >"$work/generate.yaml"
sed 's/name: a/name: A/' "$work/thing.yaml" >"$work/thing-bad.yaml"
check "names of roles have colons" 0 '^no problems in 2 objects' '' validate "$work/rbac.yaml"
check "a request above its limit" 1 'above.yaml:[0-9]+: Pod a: spec.containers\[0\].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1$' '' validate "$work/above.yaml"
check "a selector that its template does not meet" 1 'unmatched.yaml:8: Deployment a: spec.template.metadata.labels: Invalid value: .*does not match template `labels`$' '' validate "$work/unmatched.yaml"
check "a restart policy that Deployments do not have" 1 'unmatched.yaml:10: Deployment a: spec.template.spec.restartPolicy: Unsupported value: "Never"' '' validate "$work/unmatched.yaml"
check "a bad schedule" 1 'cron.yaml:5: CronJob a: spec.schedule: Invalid value: "61 \* \* \* \*": ' '' validate "$work/cron.yaml"
check "a restart policy that Jobs do not have" 1 'cron.yaml:9: CronJob a: .*restartPolicy: .*' '' validate "$work/cron.yaml"
check "a kind without definition" 0 '^1 object is of a kind that is not known: only metadata was checked$' '' validate "$work/thing.yaml"
check "metadata of a kind without definition" 1 'thing-bad.yaml:3: Thing A: metadata.name: Invalid value: "A"' '' validate "$work/thing-bad.yaml"
check "a kind defined in another file" 1 'thing.yaml:5: Thing a: spec.size: Invalid value: 4: ' '' validate "$work/thing.yaml" "$work/thing-crd.yaml"
check "a field that the definition does not have" 1 'thing.yaml:6: Thing a: spec.colour: unknown field' '' validate "$work/thing.yaml" "$work/thing-crd.yaml"
check "an object that was read from a cluster" 1 'export.yaml:5: ConfigMap a: metadata.resourceVersion: must not be set' '' validate "$work/export.yaml"
check "a name that the server completes" 0 '^no problems' '' validate "$work/generate.yaml"
# removed APIVERSION KIND SINCE REPLACEMENT
removed() {
    printf 'apiVersion: %s\nkind: %s\nmetadata: {name: a}\n' "$1" "$2" >"$work/removed.yaml"
    check "removed: $1 $2" 1 "removed.yaml:1: $2 a: apiVersion: $2 of $1 is not served since $3; use $4" '' validate "$work/removed.yaml"
}
removed autoscaling/v2beta1 HorizontalPodAutoscaler 'Kubernetes 1.25' 'autoscaling/v2 \(since 1.23\)'
removed autoscaling/v2beta2 HorizontalPodAutoscaler 'Kubernetes 1.26' 'autoscaling/v2 \(since 1.23\)'
removed extensions/v1beta1 Deployment 'Kubernetes 1.16' 'apps/v1'
removed extensions/v1beta1 Ingress 'Kubernetes 1.22' 'networking.k8s.io/v1 \(since 1.19\)'
removed apps/v1beta2 StatefulSet 'Kubernetes 1.16' 'apps/v1'
removed policy/v1beta1 PodDisruptionBudget 'Kubernetes 1.25' 'policy/v1'
removed policy/v1beta1 PodSecurityPolicy 'Kubernetes 1.25' 'Pod Security admission'
removed batch/v1beta1 CronJob 'Kubernetes 1.25' 'batch/v1'
removed autoscaling.k8s.io/v1beta2 VerticalPodAutoscaler 'the Vertical Pod Autoscaler 1.3' 'autoscaling.k8s.io/v1'

# --- our own HPA names the fields that the built-in one names ---
for group in autoscaling autoscaling.tandem.dev; do
    printf 'apiVersion: %s/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: a}\nspec:\n  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: a}\n  maxReplicas: 2\n  metrics:\n  - type: Pods\n' "$group" >"$work/pods.yaml"
    check "a metric without its source, $group" 1 'pods.yaml:8: .*: spec.metrics\[0\].pods: Required value: must populate information for the given metric source$' '' validate "$work/pods.yaml"
    check "said once, $group" 1 '^1 problem in' '' validate "$work/pods.yaml"
done

# --- real repositories ---
repo=$work/repo
mkdir -p "$repo/chart/templates/deep" "$repo/chart/crds" "$repo/app/overlay" "$repo/.github" "$repo/vendor/x"
printf 'apiVersion: v2\nname: chart\nversion: 1.0.0\n' >"$repo/chart/Chart.yaml"
printf 'replicas: 1\n' >"$repo/chart/values.yaml"
printf 'replicas: 3\n' >"$repo/chart/values-production.yaml"
printf 'apiVersion: v1\nkind: Service\nmetadata: {name: Chart}\n' >"$repo/chart/templates/deep/plain.yaml"
cp "$work/thing-crd.yaml" "$repo/chart/crds/thing.yaml"
printf 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\n{{- if .x }}\n{{- end }}\n' >"$repo/app/loose.yaml"
printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: "{{ .Release.Name }}"}\n' >"$repo/app/quoted.yaml"
printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: rules}\ndata: {alert: "{{ $value }}"}\n' >"$repo/app/braces.yaml"
printf 'resources: [../braces.yaml]\npatches:\n- path: ./patch.yaml\n' >"$repo/app/overlay/kustomization.yaml"
printf 'apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 3}\n' >"$repo/app/overlay/patch.yaml"
printf 'apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n' >"$repo/app/overlay/component.yaml"
printf 'on: push\njobs: {}\n' >"$repo/app/ci.yml"
printf '{ // not JSON\n}\n' >"$repo/app/tsconfig.json"
printf 'apiVersion: skaffold/v4beta1\nkind: Config\nbuild: {}\n' >"$repo/skaffold.yaml"
printf 'kind: Pod\n' >"$repo/.github/broken.yaml"
printf 'kind: Pod\n' >"$repo/vendor/x/broken.yaml"
printf '\357\273\277apiVersion: v1\r\nkind: ConfigMap\r\nmetadata:\r\n  name: windows\r\n---\r\n# nothing\r\n---\r\n' >"$repo/app/crlf.yaml"
printf '\357\273\277{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one"}},{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"Two"}}]}' >"$repo/app/list.json"
ln -s .. "$repo/app/loop"
check "a repository" 1 '^1 problem in 6 objects \(5 files\)$' '' validate --ignore vendor "$repo"
check "an item of a JSON list" 1 'list.json:1: ConfigMap Two: metadata.name: ' '' validate --ignore vendor "$repo"
check "what was skipped" 1 '^skipped 3 Helm templates, 1 chart, 2 values files, 2 kustomizations, 1 Kustomize patch, 2 files that are no manifests, 1 ignored file$' '' validate --ignore vendor "$repo"
check "the same as JSON" 1 '"helmTemplates": 3,' '' validate --ignore vendor -o json "$repo"
check "kinds that are not known" 1 '^1 object is of a kind that is not known' '' validate --ignore vendor "$repo"
check "a manifest without apiVersion" 1 'vendor/x/broken.yaml:1: apiVersion: must be set' '' validate "$repo"
check "patterns on paths" 0 '^no problems in 2 objects' '' validate --ignore 'repo/vendor/*' --ignore 'li?t.json' --ignore crds --ignore skaffold.yaml "$repo"
check "everything ignored" 1 '^no objects found' '' validate --ignore '*' "$repo"
check "nothing is allowed" 0 '^no problems in 0 objects \(0 files\)$' '' validate --allow-empty "$work/empty"
printf '# nothing here\n---\n' >"$work/nothing.yaml"
check "an empty file" 1 '^no objects found' '' validate "$work/nothing.yaml"
check "a missing file among good ones" 1 'absent.yaml: No such file or directory$' '' validate "$work/absent.yaml" "$work/good.yaml"
check "the good ones are judged" 1 '^1 problem in 1 object \(1 file\)$' '' validate "$work/absent.yaml" "$work/good.yaml"
check "a cut file among good ones" 1 'cut.json:1:[0-9]+: ' '' validate "$work/cut.json" "$work/good.yaml"
ln -s nowhere "$repo/dangling.yaml"
check "a link that leads nowhere" 1 'dangling.yaml: No such file or directory$' '' validate "$repo"
rm "$repo/dangling.yaml"

printf '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}\r\n{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"B"}}' >"$work/stream.json"
check "values of JSON, one after the other" 1 'stream.json:2: ConfigMap B: metadata.name: ' '' validate "$work/stream.json"
check "are two" 1 '^1 problem in 2 objects \(1 file\)$' '' validate "$work/stream.json"
printf 'apiVersion: v1\nkind: ConfigMapList\nitems:\n- metadata: {name: a}\n- metadata: {name: B}\n' >"$work/kind-list.yaml"
check "a list of a kind" 1 'kind-list.yaml:5: ConfigMap B: metadata.name: ' '' validate "$work/kind-list.yaml"
printf 'apiVersion: v1\nkind: Deployment\nmetadata: {name: a}\n' >"$work/misplaced.yaml"
check "a kind of another group" 1 'misplaced.yaml:1: Deployment a: apiVersion: no matches for kind "Deployment" in version "v1"; use apps/v1$' '' validate "$work/misplaced.yaml"

# --- other outputs: always whole ---
# well_formed NAME json|xml STATUS ARGS...
well_formed() {
    name=$1 form=$2 status=$3
    shift 3
    count=$((count + 1))
    "$tandem" validate "$@" >"$work/out" 2>/dev/null </dev/null
    got=$?
    reader='import json, sys; json.load(sys.stdin)'
    [ "$form" = json ] || reader='import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.stdin.buffer)'
    if [ "$got" -eq "$status" ] && python3 -c "$reader" <"$work/out"; then
        echo "ok $count - $name"
    else
        echo "not ok $count - $name: exit status $got: $(head -c 300 "$work/out")"
        failed=$((failed + 1))
    fi
}
printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: "<&\\"\\x01>"}\n' >"$work/xml.yaml"
mkdir "$work/a folder"
cp "$work/above.yaml" "$work/a folder/a.yaml"
well_formed "JSON when nothing can be read" json 2 -o json "$work/absent.yaml" "$work/cut.json"
well_formed "JSON when there is nothing" json 1 -o json "$work/empty"
well_formed "JSON of a migration that cannot read" json 2 -o json --migrate "$work/absent.yaml"
well_formed "JSON of a migration that cannot read all" json 1 -o json --migrate "$work/absent.yaml" "$work/pair.yaml"
well_formed "SARIF" json 1 -o sarif "$work/a folder" "$work/absent.yaml"
well_formed "JUnit" xml 1 -o junit "$work/xml.yaml" "$work/absent.yaml" "$work/pair.yaml" "$work/good.yaml"
check "SARIF has a place" 1 '"uri": ".*/a%20folder/a.yaml"' '' validate -o sarif "$work/a folder"
check "SARIF has a rule" 1 '"ruleId": "invalid"' '' validate -o sarif "$work/a folder"
check "JUnit has a case for each object" 1 'tests="2" failures="1"' '' validate -o junit "$work/above.yaml" "$work/good.yaml"
check "JUnit has a failure" 1 '<failure type="invalid" message="' '' validate -o junit "$work/above.yaml"
# A VPA of a mode that is none (a failure) on one replica (a warning).
{
    sed '/^---/,$d; s/replicas: 2/replicas: 1/' "$work/pair.yaml"
    printf -- '---\napiVersion: autoscaling.k8s.io/v1\nkind: VerticalPodAutoscaler\nmetadata: {name: web, namespace: shop}\nspec:\n'
    printf '  targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}\n  updatePolicy: {updateMode: Recreate, minReplicas: 0}\n'
} >"$work/mixed.yaml"
"$tandem" validate -o junit "$work/mixed.yaml" >"$work/junit.xml"
count=$((count + 1))
if python3 - "$work/junit.xml" <<'EOF'
import sys, xml.etree.ElementTree as tree
order, kinds = ["failure", "system-out"], set()
suite = tree.parse(sys.argv[1]).getroot().find("testsuite")
assert all(suite.get(name, "").isdigit() for name in ("tests", "failures", "errors", "time")), suite.attrib
for case in suite:
    tags = [child.tag for child in case]
    assert case.get("classname") and case.get("name") and case.get("time") == "0"
    assert tags == sorted(tags, key=order.index) and tags.count("system-out") <= 1, tags
    kinds.add(tuple(tags))
assert ("failure", "system-out") in kinds, kinds
EOF
then
    echo "ok $count - JUnit has failures first and warnings in one output"
else
    echo "not ok $count - JUnit has failures first and warnings in one output: $(cat "$work/junit.xml")"
    failed=$((failed + 1))
fi
check "JSON names the rule" 1 '"rule": "removed-api"' '' validate -o json "$work/removed.yaml"
check "a migration of what cannot be read" 1 '^# Not read: .*/absent.yaml$' '' validate --migrate "$work/absent.yaml" "$work/pair.yaml"
check "a migration is no test report" 2 '' '^tandem: validate: --migrate prints yaml or json' validate --migrate -o junit "$work/pair.yaml"

# --- objects against each other ---
deployment() { # NAME REPLICAS RESOURCES
    printf -- '---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: %s, namespace: shop}\nspec:\n  replicas: %s\n  selector: {matchLabels: {app: %s}}\n  template:\n    metadata: {labels: {app: %s}}\n    spec: {containers: [{name: main, image: a, resources: %s}]}\n' "$1" "$2" "$1" "$1" "$3"
}
hpa() { # TARGET MIN MAX METRIC-TARGET
    printf -- '---\napiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: %s, namespace: shop}\nspec:\n  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: %s}\n  minReplicas: %s\n  maxReplicas: %s\n  metrics:\n  - {type: Resource, resource: {name: cpu, target: %s}}\n' "$1" "$1" "$2" "$3" "$4"
}
vpa() { # NAME TARGET UPDATE-POLICY RESOURCE-POLICY
    printf -- '---\napiVersion: autoscaling.k8s.io/v1\nkind: VerticalPodAutoscaler\nmetadata: {name: %s, namespace: shop}\nspec:\n  targetRef: {apiVersion: apps/v1, kind: Deployment, name: %s}\n  updatePolicy: %s\n  resourcePolicy: %s\n' "$1" "$2" "$3" "$4"
}
scaled() { # TARGET TRIGGER [ANNOTATION]
    printf -- '---\napiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata: {name: %s, namespace: shop, annotations: {%s}}\nspec:\n  scaleTargetRef: {name: %s}\n  advanced: {horizontalPodAutoscalerConfig: {name: %s}}\n  triggers:\n  - %s\n' "$1" "${3:-}" "$1" "$1" "$2"
}
budget() { # APP BOUND
    printf -- '---\napiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: %s, namespace: shop}\nspec:\n  selector: {matchLabels: {app: %s}}\n  %s\n' "$1" "$1" "$2"
}
limits() { # TYPE REST
    printf -- '---\napiVersion: v1\nkind: LimitRange\nmetadata: {name: limits, namespace: shop}\nspec:\n  limits:\n  - {type: %s, %s}\n' "$1" "$2"
}
most='{type: Utilization, averageUtilization: 80}'
sized='{requests: {cpu: 1}}'
in_place='{updateMode: InPlaceOrRecreate}'
# lint NAME STATUS PATTERN: what is in lint.yaml.
lint() {
    check "$1" "$2" "$3" '' validate "$work/lint.yaml"
}
{ deployment web 2 '{}'; hpa web 1 5 "$most"; } >"$work/lint.yaml"
lint "utilization without a request" 1 'lint.yaml:[0-9]+: HorizontalPodAutoscaler shop/web: spec.metrics\[0\]: container main of Deployment shop/web \(.*lint.yaml:2\) has no cpu request, so there is no utilization to scale on; set resources.requests.cpu there, or use an averageValue target$'
{ deployment web 2 "$sized"; hpa web 1 5 "$most"; } >"$work/lint.yaml"
lint "utilization of a request" 0 '^no problems in 2 objects'
{ deployment web 2 '{limits: {cpu: 1}}'; hpa web 1 5 "$most"; } >"$work/lint.yaml"
lint "a limit is a request too" 0 '^no problems in 2 objects'
{ deployment web 2 '{}'; hpa web 1 5 '{type: AverageValue, averageValue: 1}'; } >"$work/lint.yaml"
lint "an absolute target needs no request" 0 '^no problems in 2 objects'
{ deployment web 2 '{}'; hpa web 1 5 "$most"; limits Container 'defaultRequest: {cpu: 100m}'; } >"$work/lint.yaml"
lint "a LimitRange gives the request" 0 '^no problems in 3 objects'
{ deployment web 2 '{}'; hpa web 1 5 "$most"; limits Pod 'max: {cpu: 8}'; } >"$work/lint.yaml"
lint "a LimitRange of pods does not" 1 'has no cpu request'
{ deployment web 2 '{}'; hpa web 1 5 "$most"; vpa web web '{updateMode: Initial}' '{}'; } >"$work/lint.yaml"
lint "a VPA gives the request" 0 '^no problems in 3 objects'
{ deployment web 2 "$sized"; scaled web '{type: cpu, metricType: Utilization, metadata: {value: "50"}}'; vpa web web "$in_place" '{}'; } >"$work/lint.yaml"
lint "a cpu trigger beside a VPA" 1 'lint.yaml:[0-9]+: ScaledObject shop/web: spec.triggers\[0\]: VerticalPodAutoscaler shop/web \(.*\) changes the cpu requests that this trigger measures against'
{ deployment web 2 "$sized"; scaled web '{type: cpu, metricType: AverageValue, metadata: {value: 500m}}'; vpa web web "$in_place" '{}'; } >"$work/lint.yaml"
lint "an absolute trigger beside a VPA" 0 '^no problems in 3 objects'
{ deployment web 2 "$sized"; scaled web '{type: cpu, metadata: {value: "50"}}'; vpa web web '{updateMode: "Off"}' '{}'; } >"$work/lint.yaml"
lint "a cpu trigger beside a VPA that is Off" 0 '^no problems in 3 objects'
{ deployment web 2 "$sized"; scaled web '{type: cpu, metadata: {value: "50"}}'; vpa web web "$in_place" '{containerPolicies: [{containerName: "*", controlledResources: [memory]}]}'; } >"$work/lint.yaml"
lint "a cpu trigger beside a VPA on memory" 0 '^no problems in 3 objects'
{ deployment web 2 "$sized"; scaled web '{type: kafka, metadata: {}}'; hpa web 1 5 "$most"; } >"$work/lint.yaml"
lint "a ScaledObject beside an HPA" 1 'ScaledObject shop/web: spec.scaleTargetRef: HorizontalPodAutoscaler shop/web \(.*\) scales this target too'
{ deployment web 2 "$sized"; scaled web '{type: kafka, metadata: {}}' 'scaledobject.keda.sh/transfer-hpa-ownership: "true"'; hpa web 1 5 "$most"; } >"$work/lint.yaml"
lint "a ScaledObject that takes an HPA over" 0 '^no problems in 3 objects'
{ deployment web 2 "$sized"; scaled web '{type: kafka, metadata: {}}'; deployment db 2 "$sized"; hpa db 1 5 "$most"; } >"$work/lint.yaml"
lint "a ScaledObject beside an HPA of another target" 0 '^no problems in 4 objects'
{ deployment web 3 "$sized"; hpa web 3 3 "$most"; } >"$work/lint.yaml"
lint "an HPA that never scales" 0 'lint.yaml:[0-9]+: warning: HorizontalPodAutoscaler shop/web: spec.maxReplicas: 3 is minReplicas too, so this HPA never scales'
lint "a warning is no problem" 0 '^no problems and 1 warning in 2 objects'
{ deployment web 3 "$sized"; hpa web 3 4 "$most"; } >"$work/lint.yaml"
lint "an HPA that scales" 0 '^no problems in 2 objects'
{ deployment web 1 "$sized"; vpa web web '{updateMode: Recreate}' '{}'; } >"$work/lint.yaml"
lint "one replica that is not evicted" 0 'warning: VerticalPodAutoscaler shop/web: spec.updatePolicy: Deployment shop/web \(.*\) has one replica, and the updater evicts from 2 replicas on'
{ deployment web 1 "$sized"; vpa web web '{updateMode: Recreate, minReplicas: 1}' '{}'; } >"$work/lint.yaml"
lint "one replica that is evicted" 0 'has one replica; evicting its only pod is an outage'
{ deployment web 1 "$sized"; vpa web web '{updateMode: Recreate, minReplicas: 1}' '{}'; budget web 'maxUnavailable: 1'; } >"$work/lint.yaml"
lint "one replica with a budget" 0 '^no problems in 3 objects'
{ deployment web 2 "$sized"; vpa web web '{updateMode: Recreate}' '{}'; } >"$work/lint.yaml"
lint "two replicas" 0 '^no problems in 2 objects'
{ deployment web 1 "$sized"; vpa web web "$in_place" '{}'; } >"$work/lint.yaml"
lint "one replica in place" 0 '^no problems in 2 objects'
{ deployment web 2 "$sized"; budget web 'maxUnavailable: 0'; } >"$work/lint.yaml"
lint "a budget of nothing" 0 'warning: PodDisruptionBudget shop/web: spec.maxUnavailable: 0 pods may be unavailable, so no pod can be evicted: drains of nodes'
{ deployment web 2 "$sized"; budget web 'maxUnavailable: "0%"'; vpa web web '{updateMode: Recreate}' '{}'; } >"$work/lint.yaml"
lint "a budget that stops a VPA" 1 'lint.yaml:[0-9]+: PodDisruptionBudget shop/web: spec.maxUnavailable: .*: VerticalPodAutoscaler shop/web \(.*\) cannot update its pods'
{ deployment web 3 "$sized"; budget web 'minAvailable: 3'; } >"$work/lint.yaml"
lint "a budget of all replicas" 0 'spec.minAvailable: 3 pods must be available and at most 3 run'
{ deployment web 1 "$sized"; budget web 'minAvailable: 1'; } >"$work/lint.yaml"
lint "a budget of the only replica" 0 'spec.minAvailable: 1 pod must be available and at most 1 runs, so no pod'
{ deployment web 5 "$sized"; budget web 'minAvailable: 90%'; } >"$work/lint.yaml"
lint "a budget of nearly all, rounded up" 0 'spec.minAvailable: 5 pods must be available and at most 5 run'
{ deployment web 3 "$sized"; budget web 'minAvailable: 3'; hpa web 3 9 "$most"; } >"$work/lint.yaml"
lint "a budget below what an HPA makes" 0 '^no problems in 3 objects'
{ deployment web 3 "$sized"; budget web 'minAvailable: 2'; } >"$work/lint.yaml"
lint "a budget that lets one go" 0 '^no problems in 2 objects'
{ deployment web 3 "$sized"; budget other 'minAvailable: 3'; } >"$work/lint.yaml"
lint "a budget of other pods" 0 '^no problems in 2 objects'
{ deployment web 2 "$sized"; vpa wep wep "$in_place" '{}'; } >"$work/lint.yaml"
lint "a VPA on a target that no file has" 0 'warning: VerticalPodAutoscaler shop/wep: spec.targetRef: no file has Deployment wep, though they have other workloads of the namespace, such as Deployment shop/web'
{ deployment web 2 "$sized" | sed 's/namespace: shop/namespace: other/'; vpa wep wep "$in_place" '{}'; } >"$work/lint.yaml"
lint "no file has its namespace" 0 '^no problems in 2 objects'
{ deployment wep 2 "$sized" | sed 's/, namespace: shop//'; deployment web 2 "$sized"; vpa wep wep "$in_place" '{}'; } >"$work/lint.yaml"
lint "a target without namespace" 0 '^no problems in 3 objects'
{ deployment web 2 "$sized"; vpa a web '{updateMode: Initial}' '{}'; vpa b web '{updateMode: Initial}' '{}'; } >"$work/lint.yaml"
lint "two VPAs on one target" 1 'VerticalPodAutoscaler shop/b: selector overlaps with shop/a'
{ deployment web 2 "$sized"; vpa web web '{updateMode: Initial}' '{containerPolicies: [{containerName: main, maxAllowed: {cpu: 4, memory: 1Gi}}]}'; limits Container 'max: {cpu: 2, memory: 2Gi}'; } >"$work/lint.yaml"
lint "more than the LimitRange lets" 0 'warning: VerticalPodAutoscaler shop/web: spec.resourcePolicy.containerPolicies\[0\].maxAllowed.cpu: 4 is above the maximum of LimitRange shop/limits \(.*\), 2: recommendations end there'
lint "and only that" 0 '^no problems and 1 warning in 3 objects'
{ deployment web 2 "$sized"; vpa web web '{updateMode: Initial}' '{containerPolicies: [{containerName: main, maxAllowed: {cpu: 2, memory: 1Gi}}]}'; limits Container 'max: {cpu: 2000m, memory: 2Gi}'; } >"$work/lint.yaml"
lint "as much as the LimitRange lets" 0 '^no problems in 3 objects'
{ deployment web 2 "$sized"; vpa web web '{updateMode: Initial}' '{podPolicies: {maxAllowed: {cpu: 4}}}'; limits Pod 'max: {cpu: 2}'; } >"$work/lint.yaml"
lint "more than the LimitRange of pods lets" 0 'podPolicies.maxAllowed.cpu: 4 is above the maximum'

check "an unknown command" 2 '' "^tandem: 'fly' is not a command" fly
check "help of the command" 0 '^usage: tandem validate ' '' validate --help
check "help of the program" 0 '^  validate ' '' --help
check "the version names the libraries" 0 '^libevent .*libcurl .*OpenSSL .*libyaml ' '' --version
finish
