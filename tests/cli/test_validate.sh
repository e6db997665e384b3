#!/bin/sh
# `tandem validate` from outside: good files, problems, and input that cannot be decoded: one line, exit 2, no other output.
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

check "a good file" 0 '^no problems in 1 object \(1 file\)$' '' validate "$work/good.yaml"
check "mistakes across objects" 1 "^2 problems in 5 objects" "" validate "$top/tests/data/manifests/mistakes.yaml"
check "the examples" 0 '^no problems in' '' validate "$top/examples"
check "problems are counted" 1 '^4 problems in 1 object \(1 file\)$' '' validate "$work/problems.yaml"
check "an unknown field has its line" 1 'problems.yaml:15: Deployment Web: spec.template.spec.containers\[0\].imagePullpolicy: unknown field' '' validate "$work/problems.yaml"
check "a bad operator is named" 1 'problems.yaml:[0-9]+: .*spec.selector.*Inside' '' validate "$work/problems.yaml"
check "a bad name is named" 1 'problems.yaml:4: .*metadata.name: "Web"' '' validate "$work/problems.yaml"
check "problems as JSON" 1 '"field": "spec.template.spec.containers\[0\].imagePullpolicy"' '' validate --output json "$work/problems.yaml"
check "options after files" 1 "\"objects\": 1" "" validate "$work/problems.yaml" -o json
check "problems as YAML" 1 '^- file: ' '' validate --output yaml "$work/problems.yaml"
check "a good HPA" 0 '^no problems in 1 object' '' validate "$work/hpa.yaml"
check "an HPA's bounds" 1 'hpa-bad.yaml:7: HorizontalPodAutoscaler shop/web: spec.maxReplicas: Invalid value: 5: must be .*minReplicas' '' validate "$work/hpa-bad.yaml"
check "an HPA's metric has its line" 1 'hpa-bad.yaml:13: .*: spec.metrics\[0\].resource.target.averageUtilization: Invalid value: 0: ' '' validate "$work/hpa-bad.yaml"
check "a field that servers do not know" 1 'hpa-bad.yaml:8: .*: spec.selectionStrategy: unknown field' '' validate "$work/hpa-bad.yaml"
check "our own kind knows the field" 1 'hpa-strategy.yaml:7: .*: spec.selectionStrategy: Unsupported value: "Owner": supported values: "LabelSelector", "OwnerReference"$' '' validate "$work/hpa-strategy.yaml"
check "two HPAs on one target, across files" 1 'hpa-second.yaml:5: HorizontalPodAutoscaler shop/other: spec.scaleTargetRef: HorizontalPodAutoscaler web \(.*/hpa.yaml:1\) already' '' validate "$work/hpa.yaml" "$work/hpa-second.yaml"
check "the elder is not blamed" 1 '^1 problem in 2 objects \(2 files\)$' '' validate "$work/hpa.yaml" "$work/hpa-second.yaml"
check "the same name in another namespace is another target" 0 '^no problems in 2 objects' '' validate "$work/hpa.yaml" "$work/hpa-elsewhere.yaml"
check "one HPA in two files is one HPA" 0 '^no problems in 2 objects' '' validate "$work/hpa.yaml" "$work/hpa.yaml"
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
check "a VPA that selects what no new pod is, and evicts" 1 'vpa-role.yaml:18: VerticalPodAutoscaler shop/web: spec.selector: the pod template of Deployment web does not meet role=leader, so a pod that is evicted does not come back under this VPA' '' validate "$work/vpa-role.yaml"
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
check "an Hvpa that does not decode" 2 '' '^tandem: .*hvpa-type.yaml:6: spec.hpaSpec.maxReplicas: "ten": must be a 32-bit integer$' validate "$work/hvpa-type.yaml"
check "an Hvpa's unknown field" 1 'hvpa-unknown.yaml:8: .*: spec.ratio: unknown field' '' validate "$work/hvpa-unknown.yaml"
check "two Hvpas on one target" 1 'hvpa-second.yaml:5: Hvpa shop/other: spec.targetRef: Hvpa shop/web \(.*/hvpa.yaml:1\) already scales this target' '' validate "$work/hvpa.yaml" "$work/hvpa-second.yaml"
check "an Hvpa beside an HPA" 1 'hvpa.yaml:5: Hvpa shop/web: spec.targetRef: HorizontalPodAutoscaler shop/web \(.*/pair-quiet.yaml:13\) acts on the same target; the Hvpa would refuse to act' '' validate "$work/pair-quiet.yaml" "$work/hvpa.yaml"
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
check "a bad quantity" 2 '' '^tandem: .*quantity.yaml:9: spec.containers\[0\].resources.requests.memory: "1.5.5Gi": ' validate "$work/quantity.yaml"
check "a wrong type" 2 '' '^tandem: .*type.yaml:5: spec.replicas: "three": must be a 32-bit integer$' validate "$work/type.yaml"
check "a duplicate key in YAML" 2 '' '^tandem: .*duplicate.yaml:3: .*name' validate "$work/duplicate.yaml"
check "a duplicate member in JSON" 2 '' '^tandem: .*duplicate.json: duplicate field "metadata.name"$' validate "$work/duplicate.json"
check "no apiVersion" 2 '' '^tandem: .*no-version.yaml:1: apiVersion: ' validate "$work/no-version.yaml"
check "a missing file" 2 '' '^tandem: .*absent.yaml: No such file or directory$' validate "$work/absent.yaml"
check "a folder without manifests" 2 '' '^tandem: .*empty: no file here ends in ' validate "$work/empty"
check "one bad file among good ones prints nothing else" 2 '' '^tandem: .*quantity.yaml' validate "$work/good.yaml" "$work/quantity.yaml"
check "an unknown output" 2 '' "^tandem: validate: --output: 'xml': use table, json or yaml$" validate --output xml "$work/good.yaml"
check "an unknown option" 2 '' '^tandem: validate: --nope: ' validate --nope "$work/good.yaml"
check "no files" 2 '' '^tandem: validate: no files' validate
check "an unknown command" 2 '' "^tandem: 'fly' is not a command" fly
check "help of the command" 0 '^usage: tandem validate ' '' validate --help
check "help of the program" 0 '^  validate ' '' --help
check "the version names the libraries" 0 '^libevent .*libcurl .*OpenSSL .*libyaml ' '' --version
finish
