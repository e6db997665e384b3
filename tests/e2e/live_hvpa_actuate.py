#!/usr/bin/env python3
"""Hvpas, how a decision is carried out: in place, by eviction, through the template; no room, refusals, memory that ran out, other workloads."""

from bed import eventually, main, quantity, requests, story
from hvpa_play import DEPLOYMENT, FLAGS, HVPA, VERTICAL, WEB, Play, blocked, condition, decision, status


def identities(bed, selector="app=web"):
    return {pod["metadata"]["uid"] for pod in bed.pods(selector)}


@story("pods are resized in place; a deferred resize is waited for")
def deferred(bed):
    play = Play(bed, demand=4.0)
    bed.apply(DEPLOYMENT)
    play.until(60, lambda n, sizes: len(bed.running("app=web", 2)) == 2, "two pods run")
    before = identities(bed)
    for pod in bed.pods("app=web"):
        bed.patch("Pod", pod["metadata"]["name"], {"metadata": {"annotations": {"realplane/resize": "Deferred"}}})
    bed.apply(VERTICAL)
    play.until(60, lambda n, sizes: any(c["type"] == "PodResizePending" for p in bed.pods("app=web") for c in p["status"]["conditions"]), "asked for")
    play.until(30, lambda n, sizes: condition(bed, "Progressing") == "True/Resizing", "it says so")
    play.demand = 8.0
    play.until(30, lambda n, sizes: blocked(bed) == {"vertical cpu": "ResizeInProgress"}, "one thing after the other")
    play.holds(6, lambda n, sizes: identities(bed) == before, "no pod is evicted")
    for pod in bed.pods("app=web"):
        bed.patch("Pod", pod["metadata"]["name"], {"metadata": {"annotations": {"realplane/resize": None}}})
    play.until(60, lambda n, sizes: sizes[0] > 4000 and condition(bed, "Progressing") == "False/AsDecided", "the node has room again")
    assert identities(bed) == before
    for pod in bed.pods("app=web"):
        assert pod["status"]["containerStatuses"][0]["resources"]["requests"]["cpu"] == requests(pod)["cpu"]
        assert pod["status"]["containerStatuses"][0]["restartCount"] == 0


@story("an infeasible resize is an eviction, within the budget, and the new pod has the size")
def infeasible(bed):
    play = Play(bed, demand=4.0)
    bed.apply(DEPLOYMENT.replace("metadata: {labels: {app: web}}", "metadata: {labels: {app: web}, annotations: {realplane/resize: Infeasible}}") + """
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {maxUnavailable: 0, selector: {matchLabels: {app: web}}}
""" + VERTICAL)
    play.until(60, lambda n, sizes: any(c.get("reason") == "Infeasible" for p in bed.pods("app=web") for c in p["status"]["conditions"]), "no room")
    before = identities(bed)
    play.holds(8, lambda n, sizes: identities(bed) == before, "the budget allows no eviction")
    bed.patch("PodDisruptionBudget", "web", {"spec": {"maxUnavailable": 1}})
    came = {}  # new pods as they were seen first

    def replaced(_, sizes):
        there = bed.pods("app=web")
        for pod in there:
            if pod["metadata"]["uid"] not in before:
                came.setdefault(pod["metadata"]["uid"], (pod["metadata"].get("generation", 1), quantity(requests(pod)["cpu"])))
        return sizes[0] > 2000 and len(there) >= 2 and all(pod["metadata"]["uid"] in came for pod in there)
    play.until(90, replaced, "all are replaced")
    assert len(came) >= 2 and all(generation == 1 and cpu > 2 for generation, cpu in came.values()), f"sized at admission: {came}"
    assert all(pod["metadata"].get("generation", 1) == 1 for pod in bed.pods("app=web")), f"sized once: {came}"
    play.until(30, lambda n, sizes: condition(bed, "Progressing") == "False/AsDecided", "it is done")


@story("pods that would restart are replaced one at a time, where requirements and minReplicas allow it")
def restarts(bed):
    play = Play(bed, demand=4.0)
    container = "resizePolicy: [{resourceName: cpu, restartPolicy: RestartContainer}]"
    bed.apply(DEPLOYMENT.replace("image: app,", f"image: app, {container},").replace("replicas: 2", "replicas: 4") + VERTICAL)
    bed.patch("Hvpa", "web", {"spec": {"vpaSpec": {"updatePolicy": {"minReplicas": 5}}}})
    play.until(60, lambda n, sizes: condition(bed, "Progressing") == "True/Resizing", "sizes are decided")
    before = identities(bed)
    assert len(before) == 4
    play.holds(6, lambda n, sizes: identities(bed) == before, "four are fewer than minReplicas")
    bed.patch("Hvpa", "web", {"spec": {"vpaSpec": {"updatePolicy": {"minReplicas": 2, "evictionRequirements": [
        {"resources": ["cpu"], "changeRequirement": "TargetLowerThanRequests"}]}}}})
    play.holds(6, lambda n, sizes: identities(bed) == before, "a growth is no shrinking")
    bed.patch("Hvpa", "web", {"spec": {"vpaSpec": {"updatePolicy": {"evictionRequirements": [
        {"resources": ["cpu"], "changeRequirement": "TargetHigherThanRequests"}]}}}})
    fewest = 4

    def count(_, sizes):
        nonlocal fewest
        fewest = min(fewest, len(bed.pods("app=web")))
        return sizes[0] > 1000 and len(sizes) == 4 and not identities(bed) & before
    play.until(90, count, "all are replaced")
    assert fewest >= 2, fewest
    assert all(c["restartCount"] == 0 for pod in bed.pods("app=web") for c in pod["status"].get("containerStatuses", []))


def by_kubelet(bed, deployment):
    """Where the API server does not look whether a node has room for a resize, its kubelet says that it has none."""
    labels = "metadata: {labels: {app: web}"
    assert labels + "}" in deployment
    return deployment if bed.judges_room() else deployment.replace(labels + "}", labels + ", annotations: {realplane/resize: Infeasible}}")


def has(pod):
    """The cpu that the node has given to the first container of a pod."""
    return quantity(pod["status"]["containerStatuses"][0]["resources"]["requests"]["cpu"])


@story("a pod whose class would change, and one whose node is too small, come again elsewhere")
def elsewhere(bed):
    bed.create("Node", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "tiny", "labels": {"kubernetes.io/hostname": "tiny"}}})
    room = {"cpu": "2", "memory": "8Gi", "pods": "110"}
    bed.patch("Node", "tiny", {"status": {"capacity": room, "allocatable": room}}, subresource="status")
    eventually(30, lambda: any(c["type"] == "Ready" and c["status"] == "True" for c in bed.get("Node", "tiny")["status"]["conditions"]), "a small node")
    eventually(60, lambda: not bed.get("Node", "tiny")["spec"].get("taints"), "pods may go there")
    likes = """affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 100, preference: {
        matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [tiny]}]}}]}}
      containers:"""
    single = VERTICAL.replace("  vpaSpec:\n", "  vpaSpec:\n    updatePolicy: {minReplicas: 1}\n")
    bed.apply((by_kubelet(bed, DEPLOYMENT).replace("containers:", likes).replace("replicas: 2", "replicas: 1") + single))
    bed.apply((DEPLOYMENT.replace('requests: {cpu: "1", memory: 400Mi}', "") + VERTICAL).replace("web", "best"))
    play, best = Play(bed, demand=3.0), Play(bed, "best", demand=3.0)
    play.until(30, lambda n, sizes: bed.pods("app=web")[0]["spec"]["nodeName"] == "tiny", "a pod on the small node")
    before = identities(bed, "app=best")
    play.until(90, lambda n, sizes: (best.look(), sizes[0] > 2000 and bed.pods("app=web")[0]["spec"]["nodeName"] != "tiny")[1], "it has moved")
    assert bed.pods("app=best")[0]["status"]["qosClass"] in ("BestEffort", "Burstable")
    best.until(90, lambda n, sizes: sizes[0] > 1000 and not identities(bed, "app=best") & before, "a class is for life, so others come")
    assert all(pod["status"]["qosClass"] == "Burstable" for pod in bed.pods("app=best"))
    bed.delete("Node", "tiny")


@story("more than any node has is not bought with an eviction, and does not stop the other axis")
def beyond(bed):
    play = Play(bed, demand=70.0)
    bed.apply(by_kubelet(bed, DEPLOYMENT).replace("replicas: 2", "replicas: 1") + VERTICAL.replace("spec:\n", """spec:
  mode: VPABiased
  hpaSpec:
    minReplicas: 1
    maxReplicas: 2
    behavior: {scaleUp: {stabilizationWindowSeconds: 10}}
    metrics: [{type: Resource, resource: {name: cpu, target: {type: AverageValue, averageValue: "10"}}}]
""", 1))
    play.until(60, lambda n, sizes: condition(bed, "Progressing") == "True/Resizing", "80 cores are decided")
    before = identities(bed)
    assert quantity(decision(bed)["requests"]["app"]["cpu"]) > 64
    play.until(60, lambda n, sizes: n == 2, "replicas grow meanwhile")
    assert before <= identities(bed) and all(has(pod) == 1 for pod in bed.pods("app=web") if pod["metadata"]["uid"] in before)
    assert condition(bed).startswith("True/"), status(bed)


OOM = """
---
apiVersion: autoscaling.k8s.io/v1alpha1
kind: Hvpa
metadata: {name: web}
spec:
  mode: HPAPreferred
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  hpaSpec:
    minReplicas: 1
    maxReplicas: 5
    metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]
  vpaSpec:
    resourcePolicy:
      containerPolicies: [{containerName: app, controlledResources: [memory], maxAllowed: {memory: 700Mi}}]
  vertical: {scaleUp: {stabilizationDuration: 1h}}
"""


@story("memory that ran out is given at once, in every stage, and never beyond Off or maxAllowed")
def oom(bed):
    play = Play(bed, memory="300Mi")
    bed.apply(DEPLOYMENT + OOM)

    def memory():  # as the kubelet has it: who dies before that dies with the old size
        return [quantity(pod["status"]["containerStatuses"][0]["resources"]["requests"]["memory"]) / 2**20 for pod in bed.running("app=web", 2)]

    play.until(60, lambda n, sizes: condition(bed, "VerticalReady").startswith("True"), "a recommendation")
    before = identities(bed)
    off = {"spec": {"vertical": {"scaleUp": {"updatePolicy": {"updateMode": "Off"}}}}}
    bed.patch("Hvpa", "web", off)
    bed.oom(bed.pods("app=web")[0]["metadata"]["name"], "app")
    play.until(30, lambda n, sizes: status(bed).get("emergency", [{}])[0].get("container") == "app", "the flag is up")
    play.until(30, lambda n, sizes: blocked(bed).get("vertical memory") == "UpdatePolicy", "Off is off")
    play.holds(5, lambda n, sizes: memory() == [400, 400], "nothing is done")
    off["spec"]["vertical"]["scaleUp"]["updatePolicy"]["updateMode"] = "Auto"
    bed.patch("Hvpa", "web", off)
    play.until(30, lambda n, sizes: min(memory()) >= 480, "more memory, within no window and below maxReplicas")
    assert identities(bed) == before
    assert bed.events("EmergencyMemoryIncrease", "web")
    play.until(30, lambda n, sizes: not status(bed).get("emergency"), "the flag is down")
    # Up to maxAllowed, and then an event says so.
    for _ in range(4):
        if max(memory()) >= 700:
            break
        was = max(memory())
        bed.oom(bed.pods("app=web")[0]["metadata"]["name"], "app")
        play.until(30, lambda n, sizes, was=was: min(memory()) > was, "more memory")
    assert memory() == [700, 700]
    bed.oom(bed.pods("app=web")[1]["metadata"]["name"], "app")
    play.until(30, lambda n, sizes: bed.events("MemoryAtMaxAllowed", "web"), "an event")
    assert memory() == [700, 700]


@story("through the template: a rollout, and the user's own change is the new reference")
def template(bed):
    play = Play(bed, demand=4.0)
    bed.apply(DEPLOYMENT + VERTICAL.replace("vertical: {", "vertical: {actuation: Template, "))

    def size():
        return bed.get("Deployment", "web")["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"]

    play.until(60, lambda n, sizes: quantity(size()) > 1 and sizes[0] > 1000, "template and pods have grown")
    assert status(bed)["referenceRequests"]["app"]["cpu"] == "1"
    play.holds(8, lambda n, sizes: len(bed.list("ReplicaSet")) == 2, "one rollout, not many")
    bed.kubectl("-n", bed.ns, "set", "resources", "deployment/web", "--requests=cpu=1500m,memory=400Mi")
    play.until(60, lambda n, sizes: status(bed)["referenceRequests"]["app"]["cpu"] == "1500m", "another writer's template")


@story("a StatefulSet in both directions, a DaemonSet in one")
def kinds(bed):
    bed.apply(WEB.replace("kind: Deployment", "kind: StatefulSet").replace("web", "db"))
    bed.apply((DEPLOYMENT.replace("kind: Deployment", "kind: DaemonSet").replace("  replicas: 2\n", "")
               + VERTICAL.replace("kind: Deployment", "kind: DaemonSet")).replace("web", "agent"))
    database, agent = Play(bed, "db", kind="StatefulSet", demand=5.0), Play(bed, "agent", kind="DaemonSet", demand=12.0)
    database.until(90, lambda n, sizes: (agent.look(), n > 2 and sizes[0] > 1000)[1], "both axes of the StatefulSet")
    agent.until(60, lambda n, sizes: sizes[0] > 2000, "the DaemonSet's pods grow")
    assert condition(bed, "HorizontalReady", "agent") == "False/NoHpaSpec"


@story("resources of the pod itself are one more container")
def whole(bed):
    play = Play(bed)
    bed.apply(DEPLOYMENT.replace('resources: {requests: {cpu: "1", memory: 400Mi}}}]', """}]
      resources: {requests: {cpu: "1", memory: 400Mi}}""") + HVPA.replace('- {containerName: app, controlledResources: [cpu], minAllowed: {cpu: 100m}', """- {containerName: app}
      podPolicies: {controlledResources: [cpu], minAllowed: {cpu: 100m}"""))

    def sizes():
        return sorted(quantity(pod["spec"]["resources"]["requests"]["cpu"]) for pod in bed.pods("app=web"))

    play.until(60, lambda n, _: condition(bed, "VerticalReady").startswith("True") and "(pod)" in decision(bed)["requests"], "the pod has a row")
    play.demand = 5.0
    play.until(120, lambda n, _: n > 2 and sizes()[0] > 1 and n * sizes()[0] >= 9, "number and size of whole pods grow")
    assert all("cpu" not in requests(pod) for pod in bed.pods("app=web")), "what a container does not ask for it is not given"
    play.until(60, lambda n, _: condition(bed, "Progressing") == "False/AsDecided", "it is done")
    play.demand = 1.0
    play.until(120, lambda n, _: n <= 3 and n * sizes()[-1] <= 2.8, "and shrink")
    assert "(pod) cpu" in "".join(e["message"] for e in bed.events("VerticalScaled", "web"))


@story("a refusal is said with the server's words, and does not hold up others")
def quota(bed):
    bed.call("POST", f"/api/v1/namespaces/{bed.ns}/limitranges", {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "small"},
             "spec": {"limits": [{"type": "Container", "max": {"cpu": "1500m"}, "default": {"cpu": "1500m"}, "defaultRequest": {"cpu": "1"}}]}})
    play = Play(bed, demand=5.0)
    bed.apply(WEB)
    play.until(60, lambda n, sizes: condition(bed) == "False/ScaleFailed", "the resize is refused")
    assert "cpu" in bed.condition("Hvpa", "web", "Ready")["message"] and bed.events("ScaleFailed", "web")
    play.until(30, lambda n, sizes: n > 2 and len(bed.running("app=web", n)) == n, "the other half is carried out, and no pod is refused")
    assert play.look()[1][-1] <= 1500
    bed.delete("LimitRange", "small")
    play.until(120, lambda n, sizes: condition(bed) == "True/Deciding" and sizes[0] > 1000, "tried again, later")


main(setup=lambda bed: bed.run(*FLAGS))
