#!/usr/bin/env python3
"""Eviction requirements: a wish to shrink is withheld, a wish to grow is carried out; wrong requirements are refused with their path."""

from bed import eventually, main, quantity, requests, steady, story

WORKLOAD = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: app, image: app, resources: {requests: {cpu: 500m, memory: 600Mi}}}]
---
apiVersion: autoscaling.k8s.io/v1
kind: VerticalPodAutoscaler
metadata: {name: web}
spec:
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  updatePolicy:
    updateMode: Recreate
    evictionRequirements:
    - {resources: [cpu, memory], changeRequirement: TargetHigherThanRequests}
  resourcePolicy:
    containerPolicies: [{containerName: app, MAXIMUM}]
"""


@story("eviction requirements withhold a shrink and let a growth through", quick=True)
def withheld(bed):
    # A maximum below the request makes the wish to shrink certain, whatever the bounds of a young history are.
    bed.usage("web-*", "app", "50m", "100Mi")
    bed.apply(WORKLOAD.replace("MAXIMUM", "maxAllowed: {cpu: 100m, memory: 300Mi}"))
    before = {pod["metadata"]["uid"] for pod in bed.running("app=web", 3)}
    eventually(30, lambda: quantity(bed.recommendation("web")["app"]["target"]["cpu"]) <= 0.1, "the target is below the request")
    steady(20, lambda: {pod["metadata"]["uid"] for pod in bed.pods("app=web")} == before, "no pod is evicted")
    said = bed.tandem("explain", "vpa", "web", "-n", bed.ns)
    assert "its evictionRequirements are not met" in said and "TargetHigherThanRequests of cpu or memory" in said, said

    bed.apply(WORKLOAD.replace("MAXIMUM", "minAllowed: {cpu: 800m, memory: 900Mi}"))
    grown = eventually(60, lambda: (pods := bed.running("app=web", 3)) and
                       all(quantity(requests(pod)["cpu"]) >= 0.8 and quantity(requests(pod)["memory"]) >= 900 * 2**20 for pod in pods) and pods,
                       "all pods have grown")
    assert not before & {pod["metadata"]["uid"] for pod in grown}


# Only growth is allowed, and every target is a shrink. Neither a sidecar that lacks a request nor a pod-level stanza above containers
# that request nothing voids that.
VOIDS = {
    "sidecar": """
      containers:
      - {name: app, image: app, resources: {requests: {cpu: 500m, memory: 600Mi}}}
      - {name: sidecar, image: sidecar, resources: {requests: {cpu: 200m}}}
""",
    "stanza": """
      resources: {requests: {cpu: 500m, memory: 8Gi}}
      containers: [{name: app, image: app}, {name: sidecar, image: sidecar}]
""",
}


@story("a missing request of a container voids no eviction requirement")
def voids(bed):
    head, rest = WORKLOAD.split("      containers: [")
    vpa = rest.split("---", 1)[1]
    for name, pod in VOIDS.items():
        for container in ("app", "sidecar"):
            bed.usage(f"{name}-*", container, "50m", "100Mi")
        text = (head + pod.lstrip("\n") + "---" + vpa).replace("web", name).replace("[cpu, memory]", "[cpu]")
        bed.apply(text.replace("{containerName: app, MAXIMUM}", "{containerName: '*', maxAllowed: {cpu: 100m, memory: 300Mi}}"))
    before = {name: {pod["metadata"]["uid"] for pod in bed.running(f"app={name}", 3)} for name in VOIDS}
    for name in VOIDS:
        eventually(30, lambda: {"app", "sidecar"} <= bed.recommendation(name).keys(), f"{name} has its targets")
    steady(20, lambda: all({pod["metadata"]["uid"] for pod in bed.pods(f"app={name}")} == uids for name, uids in before.items()),
           "no pod is evicted")
    for name in VOIDS:
        said = bed.tandem("explain", "vpa", name, "-n", bed.ns)
        assert "its evictionRequirements are not met" in said, said


@story("all entries must hold, and of the resources of one entry any one is enough")
def entries(bed):
    # cpu is to grow and memory to shrink, whatever the bounds of a young history are.
    bed.usage("web-*", "app", "50m", "100Mi")
    text = WORKLOAD.replace("MAXIMUM", "minAllowed: {cpu: 800m}, maxAllowed: {memory: 300Mi}")
    both = "{resources: [cpu, memory], changeRequirement: TargetHigherThanRequests}"
    one_by_one = "{resources: [cpu], changeRequirement: TargetHigherThanRequests}\n    - {resources: [memory], changeRequirement: TargetHigherThanRequests}"
    bed.apply(text.replace(both, one_by_one))
    before = {pod["metadata"]["uid"] for pod in bed.running("app=web", 3)}
    eventually(30, lambda: quantity((target := bed.recommendation("web")["app"]["target"])["cpu"]) >= 0.8 and
               quantity(target["memory"]) <= 300 * 2**20, "cpu is to grow, memory to shrink")
    steady(15, lambda: {pod["metadata"]["uid"] for pod in bed.pods("app=web")} == before, "the entry of memory does not hold")
    bed.apply(text)
    eventually(60, lambda: not before & {pod["metadata"]["uid"] for pod in bed.running("app=web", 3, 5)}, "cpu alone is enough for [cpu, memory]")


@story("a requirement, a minimum or a maximum of a resource that the VPA does not control is warned of")
def unused(bed):
    for policy, words in (("containerName: '*', controlledResources: [memory]", ["evictionRequirements[0].resources[0]", "cpu"]),
                          ("containerName: app, controlledResources: [memory], minAllowed: {cpu: 100m}", ["containerPolicies[0].minAllowed[cpu]"]),
                          ("containerName: app, maxAllowed: {ephemeral-storage: 1Gi}", ["maxAllowed[ephemeral-storage]", "only cpu and memory"])):
        text = WORKLOAD.replace("containerName: app, MAXIMUM", policy)
        code, said = bed.kubectl("-n", bed.ns, "apply", "--dry-run=server", "-f", "-", text=text, check=False)
        assert code == 0 and "Warning: " in said and all(word in said for word in words), (policy, said)
    code, said = bed.kubectl("-n", bed.ns, "apply", "--dry-run=server", "-f", "-", text=WORKLOAD.replace("MAXIMUM", "mode: Auto"), check=False)
    assert code == 0 and "Warning" not in said, said


@story("invalid eviction requirements are refused with their path")
def refused(bed):
    text = WORKLOAD.replace("MAXIMUM", "mode: Auto")
    bed.refused(text.replace("[cpu, memory]", "[gpu]"), "spec.updatePolicy.evictionRequirements[0].resources[0]", "gpu")
    bed.refused(text.replace("[cpu, memory]", "[CPU]"), "spec.updatePolicy.evictionRequirements[0].resources[0]", "CPU")
    bed.refused(text.replace("[cpu, memory]", "[]"), "spec.updatePolicy.evictionRequirements[0].resources")
    # Two entries that can never hold together, or say the same twice: both are named.
    first = "    - {resources: [cpu, memory], changeRequirement: TargetHigherThanRequests}\n"
    assert first in text
    second = "    - {resources: [RESOURCE], changeRequirement: TargetLowerThanRequests}\n"
    where = "spec.updatePolicy.evictionRequirements[%d].resources[%d]"
    for one, other, words in (("cpu", "cpu", (where % (0, 0), where % (1, 0))), ("cpu, memory", "cpu", (where % (0, 0), where % (1, 0))),
                              ("cpu, memory", "memory", (where % (0, 1), where % (1, 0)))):
        bed.refused(text.replace(first, first.replace("cpu, memory", one) + second.replace("RESOURCE", other)), *words)
    bed.refused(text.replace("TargetHigherThanRequests", "Higher"), "spec.updatePolicy.evictionRequirements[0].changeRequirement", "Higher")


main()
