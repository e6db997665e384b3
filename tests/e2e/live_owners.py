#!/usr/bin/env python3
"""Which pods an HPA by owners counts: those of a StatefulSet, of a custom resource and of what that owns; broken chains of owners; owners that
may not be read; the field over a round trip through the older version, and in a server whose gate is closed."""

import json

from bed import eventually, local, main, steady, story

FLAGS = ["--horizontal-pod-autoscaler-downscale-stabilization=5s", "--horizontal-pod-autoscaler-cpu-initialization-period=2s",
         "--horizontal-pod-autoscaler-initial-readiness-delay=1s"]
POD = "containers: [{name: app, image: app, resources: {requests: {cpu: 100m}}}]"
STATEFULSET = f"""
apiVersion: apps/v1
kind: StatefulSet
metadata: {{name: db}}
spec:
  serviceName: db
  replicas: 2
  selector: {{matchLabels: {{app: db}}}}
  template: {{metadata: {{labels: {{app: db}}}}, spec: {{{POD}}}}}
"""
DEFINITION = """
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: PLURAL.play.example}
spec:
  group: play.example
  names: {kind: KIND, plural: PLURAL}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas, labelSelectorPath: .status.selector}
"""
OWNED = """
---
apiVersion: autoscaling.tandem.dev/v2
kind: HorizontalPodAutoscaler
metadata: {name: NAME}
spec:
  selectionStrategy: OwnerReference
  scaleTargetRef: {apiVersion: API, kind: KIND, name: NAME}
  minReplicas: 1
  maxReplicas: 5
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]
"""
STRANGER = """
apiVersion: batch/v1
kind: Job
metadata: {name: stranger}
spec:
  template:
    metadata: {labels: {app: LABEL}}
    spec: {restartPolicy: Never, containers: [{name: app, image: app, resources: {requests: {cpu: 100m}}}]}
"""


def owned(name, kind, api):
    return OWNED.replace("NAME", name).replace("KIND", kind).replace("API", api)


def counts(bed, name, numbers):
    """Counted, of so many that the selector matches."""
    said = bed.condition("TandemHPA", name, "SelectionStrategy")
    counted, matched = numbers
    text = f"{counted} of {matched} pods that the selector matches counted, {matched - counted} excluded"
    return said and said["status"] == "True" and text in said["message"]


def reference(bed, kind, name, uid=None):
    """An owner that controls; its uid is that of the object when it is not given."""
    group = "apps/v1" if kind == "ReplicaSet" else "play.example/v1"
    uid = uid or bed.kubectl("-n", bed.ns, "get", f"{kind.lower()}s.play.example", name, "-o", "jsonpath={.metadata.uid}")
    return {"apiVersion": group, "kind": kind, "name": name, "uid": uid, "controller": True}


def pod(bed, name, label, *owners):
    bed.create("Pod", {"metadata": {"name": name, "labels": {"app": label}, "ownerReferences": list(owners)},
                       "spec": {"containers": [{"name": "app", "image": "app", "resources": {"requests": {"cpu": "100m"}}}]}})


def serve(bed, *kinds):
    """Kinds of play.example with a scale."""
    bed.apply("".join(DEFINITION.replace("PLURAL", f"{kind.lower()}s").replace("KIND", kind) for kind in kinds), None)
    for kind in kinds:
        eventually(30, lambda kind=kind: bed.kubectl("get", f"{kind.lower()}s.play.example", "-A") is not None, f"{kind} is served")


def custom(bed, kind, name, owners=()):
    """An object of such a kind, whose selector matches the pods with its name as label."""
    bed.apply(json.dumps({"apiVersion": "play.example/v1", "kind": kind, "metadata": {"name": name, "ownerReferences": list(owners)},
                          "spec": {"replicas": 1}}))
    bed.kubectl("-n", bed.ns, "patch", f"{kind.lower()}s.play.example", name, "--subresource=status", "--type=merge", "-p",
                json.dumps({"status": {"replicas": 1, "selector": f"app={name}"}}))


@story("by owners: of a StatefulSet, and of a custom resource with a Job of its own, only their pods count; a stranger's with the same labels do not",
       quick=True)
def owners(bed):
    for name in ("db-*", "game-*"):
        bed.usage(name, "app", "40m", "20Mi")
    bed.usage("stranger-*", "app", "1", "20Mi")
    bed.apply(STATEFULSET + "---" + STRANGER.replace("LABEL", "db"))
    bed.running("app=db", 3)
    bed.apply(owned("db", "StatefulSet", "apps/v1"))
    eventually(60, lambda: counts(bed, "db", (2, 3)), "the StatefulSet's two count")
    said = bed.tandem("explain", "hpa", "db", "-n", bed.ns)
    assert "db-0" in said and "(of Job/stranger)" in said, said

    serve(bed, "Game")
    custom(bed, "Game", "game")
    mine = reference(bed, "Game", "game")
    pod(bed, "game-0", "game", mine)
    pod(bed, "game-alone", "game")
    bed.apply(STRANGER.replace("name: stranger", "name: game-work").replace("LABEL", "game"))
    bed.patch("Job", "game-work", {"metadata": {"ownerReferences": [mine]}})
    bed.running("app=game", 3)
    bed.apply(owned("game", "Game", "play.example/v1"))
    eventually(60, lambda: counts(bed, "game", (2, 3)), "the custom resource's own count, and those of its Job")
    said = bed.tandem("explain", "hpa", "game", "-n", bed.ns)
    assert "game-alone (no owner)" in said and "(of Job/game-work)" not in said and "game-work-" in said, said


LOOSE = f"""
---
apiVersion: apps/v1
kind: ReplicaSet
metadata: {{name: loose, labels: {{app: other}}}}
spec:
  replicas: 1
  selector: {{matchLabels: {{app: web, tier: loose}}}}
  template: {{metadata: {{labels: {{app: web, tier: loose}}}}, spec: {{{POD}}}}}
"""
WEB = f"""
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web}}
spec:
  replicas: 2
  selector: {{matchLabels: {{app: web}}}}
  template: {{metadata: {{labels: {{app: web}}}}, spec: {{{POD}}}}}
"""


@story("a broken chain of owners leaves the pod out: an owner that is gone, one of another uid, one without an owner; no chain at all leaves all out")
def broken(bed):
    bed.usage("web-*", "app", "40m", "20Mi")
    for name in ("loose-*", "lost", "gone", "alone"):
        bed.usage(name, "app", "1", "20Mi")
    bed.apply(WEB + LOOSE)
    bed.running("app=web", 3)
    mine = next(s for s in bed.list("ReplicaSet") if s["metadata"]["name"] != "loose")["metadata"]
    with bed.frozen("kube-controller-manager"):  # whose garbage collector takes pods of owners that are not there
        nobody = "00000000-0000-0000-0000-000000000001"
        pod(bed, "lost", "web", reference(bed, "ReplicaSet", mine["name"], nobody))
        pod(bed, "gone", "web", reference(bed, "ReplicaSet", "gone", nobody))
        pod(bed, "alone", "web")
        bed.running("app=web", 6)
        bed.apply(owned("web", "Deployment", "apps/v1"))
        eventually(60, lambda: counts(bed, "web", (2, 6)), "only the Deployment's own count")
        said = bed.tandem("explain", "hpa", "web", "-n", bed.ns)
        for words in ("(of ReplicaSet/loose)", f"lost (of ReplicaSet/{mine['name']})", "gone (of ReplicaSet/gone)", "alone (no owner)"):
            assert words in said, (words, said)
        steady(10, lambda: bed.get("Deployment", "web")["spec"]["replicas"] == 2, "the load of the others moves nothing")
        bed.patch("ReplicaSet", mine["name"], {"metadata": {"ownerReferences": None}})
        eventually(60, lambda: (c := bed.condition("TandemHPA", "web", "ScalingActive")) and c["status"] == "False" and
                   "did not receive metrics for targeted pods" in c["message"], "cut off, none of them counts")
        assert bed.get("Deployment", "web")["spec"]["replicas"] == 2
    eventually(90, lambda: bed.condition("TandemHPA", "web", "ScalingActive")["status"] == "True", "adopted again, they count")


TYPES = {
    "resource": {"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "100Mi"}}},
    "container": {"type": "ContainerResource", "containerResource": {"name": "cpu", "container": "app", "target": {"type": "Utilization", "averageUtilization": 50}}},
    "pods": {"type": "Pods", "pods": {"metric": {"name": "rps"}, "target": {"type": "AverageValue", "averageValue": "10"}}},
}


@story("by owners, whatever the type of metric: a stranger's memory, container and custom metric move nothing; by labels they do")
def types(bed):
    for name, metric in TYPES.items():
        bed.usage(f"{name}-*", "app", "40m", "20Mi")
        bed.usage(f"stranger-{name}-*", "app", "1", "900Mi")
        bed.value("pods", f"{name}-*", "rps", "5")
        bed.value("pods", f"stranger-{name}-*", "rps", "90")
        bed.apply(WEB.replace("web", name).replace("replicas: 2", "replicas: 1") + "---" +
                  STRANGER.replace("name: stranger", f"name: stranger-{name}").replace("LABEL", name))
        bed.running(f"app={name}", 2)
        bed.create("TandemHPA", {"metadata": {"name": name}, "spec": {
            "selectionStrategy": "OwnerReference", "minReplicas": 1, "maxReplicas": 4, "metrics": [metric],
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}}})
    for name in TYPES:
        eventually(60, lambda name=name: counts(bed, name, (1, 2)) and
                   bed.condition("TandemHPA", name, "ScalingActive")["status"] == "True", f"{name} is computed over its own pod")
    steady(12, lambda: all(bed.get("Deployment", name)["spec"]["replicas"] == 1 for name in TYPES), "strangers move nothing")
    for name in TYPES:
        bed.patch("TandemHPA", name, {"spec": {"selectionStrategy": "LabelSelector"}})
    for name in TYPES:
        eventually(60, lambda name=name: bed.get("Deployment", name)["spec"]["replicas"] > 1, f"{name} by labels")


RIGHTS = """
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: plays-PLURALS}
rules:
- {apiGroups: [play.example], resources: [PLURALS, PLURALS/scale], verbs: [get, list, watch, patch, update]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: plays-PLURALS}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: plays-PLURALS}
subjects: [{kind: ServiceAccount, name: tandem, namespace: kube-system}]
"""
FALLBACKS = "horizontal_pod_autoscaler_controller_pod_filter_fallbacks_total"


@story("owners that may not be read: all pods count, and a condition, an event and a metric say so, until the right is there")
def forbidden(bed):
    bed.usage("board-*", "app", "40m", "20Mi")
    bed.apply(bed.tandem("manifests", "--only", "rbac", "--namespace", "kube-system"), namespace=None)
    serve(bed, "Board", "BoardSet")
    bed.apply(RIGHTS.replace("PLURALS", "boards"), namespace=None)
    custom(bed, "Board", "board")
    custom(bed, "BoardSet", "set", [reference(bed, "Board", "board")])
    pod(bed, "board-0", "board", reference(bed, "BoardSet", "set"))
    pod(bed, "board-alone", "board")
    bed.running("app=board", 2)
    bed.programs[-1].stop()
    program = bed.run("--kubeconfig", bed.account("kube-system", "tandem"), *FLAGS, "--hpa-owner-cache-ttl=10s", name="rights")
    try:
        bed.apply(owned("board", "Board", "play.example/v1"))
        said = eventually(60, lambda: (c := bed.condition("TandemHPA", "board", "SelectionStrategy")) and c["status"] == "False" and c, "it is told")
        assert said["reason"] == "PodFilterFailed" and "owner 'BoardSet/set' cannot be read" in said["message"], said
        told = eventually(30, lambda: bed.events("PodFilterFailed", "board"), "an event")
        assert "BoardSet/set" in told[0]["message"] and "forbidden" in told[0]["message"], told
        assert bed.condition("TandemHPA", "board", "ScalingActive")["status"] == "True", "all of them count"
        assert program.metric(FALLBACKS, reason="forbidden") >= 1
        bed.apply(RIGHTS.replace("PLURALS", "boardsets"), namespace=None)
        eventually(60, lambda: counts(bed, "board", (1, 2)), "with the right only the owned one counts")
        assert program.metric("horizontal_pod_autoscaler_controller_cache_misses_total", resource_kind="boardsets") >= 1
        eventually(30, lambda: program.metric("horizontal_pod_autoscaler_controller_cache_hits_total", resource_kind="boardsets"), "the cache answers")
    finally:
        program.stop()
        bed.run(*FLAGS)


PLAIN = """
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  selectionStrategy: OwnerReference
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  maxReplicas: 5
"""


@story("the field in a server: kept over a write through the older version; with the gate closed dropped with a warning, unless it is stored")
def served(bed):
    strategy = ("get", "hpa", "web", "-n", "default", "-o", "jsonpath={.spec.selectionStrategy}")
    with local(bed) as kubectl:
        assert kubectl("apply", "-n", "default", "-f", "-", text=PLAIN)[0] == 0
        code, old = kubectl("get", "horizontalpodautoscalers.v1.autoscaling", "web", "-n", "default", "-o", "json")
        assert code == 0 and json.loads(old)["apiVersion"] == "autoscaling/v1", old
        assert json.loads(old)["metadata"]["annotations"]["tandem.dev/spec-selection-strategy"] == "OwnerReference", old
        code, said = kubectl("replace", "-n", "default", "-f", "-", text=old.replace('"maxReplicas": 5', '"maxReplicas": 7'))
        assert code == 0, said
        assert kubectl(*strategy) == (0, "OwnerReference")
        assert kubectl(*strategy[:-1], "jsonpath={.spec.maxReplicas}") == (0, "7")
    with local(bed, "--feature-gates=HPASelectionStrategy=false") as kubectl:
        code, said = kubectl("apply", "--validate=warn", "-n", "default", "-f", "-", text=PLAIN)
        assert code == 0 and "Warning" in said and "selectionStrategy" in said, said
        assert kubectl(*strategy) == (0, "")


main(setup=lambda bed: bed.run(*FLAGS))
