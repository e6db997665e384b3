#!/usr/bin/env python3
"""HPAs served by tandem, of both groups: which pods count, what they do, and what is told of it. Equality with upstream's controller is
shown by live_horizontal_beside.py."""

import time

from bed import Refused, eventually, main, steady, story

FLAGS = ["--horizontal-pod-autoscaler-downscale-stabilization=5s", "--horizontal-pod-autoscaler-cpu-initialization-period=2s",
         "--horizontal-pod-autoscaler-initial-readiness-delay=1s"]
OURS, BUILTIN = "TandemHPA", "HorizontalPodAutoscaler"
OWNERS = {"tandem.dev/hpa-selection-strategy": "OwnerReference"}

# The proposal's example: a Job whose pods have the labels of the Deployment's.
EXAMPLE = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: test-app}
spec:
  replicas: 1
  selector: {matchLabels: {app: test-app}}
  template:
    metadata: {labels: {app: test-app}}
    spec:
      containers: [{name: nginx, image: nginx, resources: {requests: {cpu: 100m}}}]
---
apiVersion: batch/v1
kind: Job
metadata: {name: test-job}
spec:
  template:
    metadata: {labels: {app: test-app, workload: scraper}}
    spec:
      containers:
      - {name: cpu-load, image: busybox, command: [dd, if=/dev/zero, of=/dev/null], resources: {requests: {cpu: 100m}}}
      restartPolicy: Never
"""
HPA = """
---
apiVersion: VERSION
kind: HorizontalPodAutoscaler
metadata: {name: test-app-hpa, annotations: {ANNOTATIONS}}
spec:
  STRATEGY
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: test-app}
  minReplicas: 1
  maxReplicas: 5
  metrics:
  - {type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}
"""


def hpa(version="autoscaling/v2", strategy="", annotations=""):
    return HPA.replace("VERSION", version).replace("STRATEGY", strategy).replace("ANNOTATIONS", annotations)


def replicas(bed, name="test-app", kind="Deployment"):
    return bed.get(kind, name)["spec"]["replicas"]


def annotate(bed, kind, name, value, key="tandem.dev/hpa-selection-strategy"):
    bed.patch(kind, name, {"metadata": {"annotations": {key: value}}})


def messages(bed, reason, name="test-app-hpa"):
    return [event["message"] for event in bed.events(reason, name)]


def workload(name, count, label=None, cpu="100m", kind="Deployment"):
    return f"""
---
apiVersion: apps/v1
kind: {kind}
metadata: {{name: {name}}}
spec:
  replicas: {count}
  selector: {{matchLabels: {{app: {label or name}}}}}
  template:
    metadata: {{labels: {{app: {label or name}}}}}
    spec:
      containers: [{{name: app, image: app, resources: {{requests: {{cpu: {cpu}, memory: 100Mi}}}}}}]
"""


def autoscaler(name, metrics, kind=OURS, target=None, annotations=None, **spec):
    return {"metadata": {"name": name, "annotations": annotations or {}},
            "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": target or name}, "metrics": metrics,
                     "maxReplicas": 5, **spec}}


CPU = [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}]


def external(metric, value=None, average=None):
    target = {"type": "Value", "value": value} if value else {"type": "AverageValue", "averageValue": average}
    return [{"type": "External", "external": {"metric": {"name": metric}, "target": target}}]


@story("the proposal's example: a Job's load counts by labels, does not count by owners, and the strategy switches live", quick=True)
def example(bed):
    bed.usage("test-app-*", "nginx", "40m", "20Mi")
    bed.usage("test-job-*", "cpu-load", "1", "20Mi")
    bed.apply(EXAMPLE)
    bed.running("app=test-app", 2)
    bed.apply(hpa("autoscaling.tandem.dev/v2", "selectionStrategy: OwnerReference"))
    eventually(60, lambda: bed.condition(OURS, "test-app-hpa", "ScalingActive")["status"] == "True", "it is judged")
    steady(10, lambda: replicas(bed) == 1, "the load of the Job is not the Deployment's")
    status = bed.get(OURS, "test-app-hpa")["status"]
    assert status["currentMetrics"][0]["resource"]["current"]["averageUtilization"] == 40, status
    eventually(30, lambda: messages(bed, "SelectionStrategyActive") == ["Pod selection strategy 'OwnerReference' is active"], "told")
    said = bed.tandem("explain", "hpa", "test-app-hpa", "-n", bed.ns)
    assert "OwnerReference" in said and "autoscaling.tandem.dev/v2" in said, said
    assert "excluded" in said and "(of Job/test-job)" in said, said
    counted = bed.condition(OURS, "test-app-hpa", "SelectionStrategy")
    assert counted["status"] == "True" and "1 of 2 pods that the selector matches counted, 1 excluded" in counted["message"], counted

    bed.patch(OURS, "test-app-hpa", {"spec": {"selectionStrategy": "LabelSelector"}})
    eventually(60, lambda: replicas(bed) == 4, "by labels the load of the Job counts")
    eventually(30, lambda: "Pod selection strategy changed from 'OwnerReference' to 'LabelSelector'" in messages(bed, "StrategyChanged"), "told")
    eventually(30, lambda: any("above target" in text for text in messages(bed, "SuccessfulRescale")), "the reason is told")

    bed.patch(OURS, "test-app-hpa", {"spec": {"selectionStrategy": "OwnerReference"}})
    eventually(60, lambda: replicas(bed) == 4 and "Pod selection strategy changed from 'LabelSelector' to 'OwnerReference'" in
               messages(bed, "StrategyChanged"), "switched back")
    bed.usage("test-app-*", "nginx", "10m", "20Mi")
    eventually(60, lambda: replicas(bed) == 1, "and the Deployment shrinks to what it needs itself")


@story("the built-in kind: the annotation, its alias and both spellings; a wrong value is told once and counts as none")
def annotated(bed):
    bed.usage("test-app-*", "nginx", "40m", "20Mi")
    bed.usage("test-job-*", "cpu-load", "1", "20Mi")
    bed.apply(EXAMPLE)
    bed.running("app=test-app", 2)
    bed.apply(hpa(annotations="tandem.dev/hpa-selection-strategy: OwnerReferences"))
    eventually(60, lambda: messages(bed, "SelectionStrategyActive"), "it is active")
    eventually(60, lambda: bed.condition(BUILTIN, "test-app-hpa", "ScalingActive")["status"] == "True", "it is judged")
    steady(6, lambda: replicas(bed) == 1, "the Job does not count")
    # An unknown value decides, also before the alias: by labels.
    alias = "autoscaling.alpha.kubernetes.io/pod-selection-strategy"
    annotate(bed, BUILTIN, "test-app-hpa", "OwnerReference", alias)
    annotate(bed, BUILTIN, "test-app-hpa", "Owners")
    eventually(60, lambda: replicas(bed) > 1, "the Job counts")
    said = bed.condition(BUILTIN, "test-app-hpa", "SelectionStrategy")
    assert said["status"] == "False" and said["reason"] == "InvalidValue" and "'Owners'" in said["message"], said
    explained = bed.tandem("explain", "hpa", "test-app-hpa", "-n", bed.ns)
    assert "whose value 'Owners' is neither LabelSelector nor OwnerReference" in explained, explained
    told = eventually(30, lambda: messages(bed, "InvalidSelectionStrategy"), "the value is named")
    assert told == ["Unsupported pod selection strategy 'Owners', using 'LabelSelector'"], told
    # Without it the alias speaks.
    annotate(bed, BUILTIN, "test-app-hpa", None)
    eventually(60, lambda: "OwnerReference" in bed.tandem("explain", "hpa", "test-app-hpa", "-n", bed.ns), "the alias is read")
    bed.usage("test-app-*", "nginx", "10m", "20Mi")
    eventually(60, lambda: replicas(bed) == 1, "the Job does not count")
    annotate(bed, BUILTIN, "test-app-hpa", None, alias)
    eventually(60, lambda: replicas(bed) > 1, "without any it is as ever")
    assert sum(event.get("count", 1) for event in bed.events("InvalidSelectionStrategy", "test-app-hpa")) == 1
    # v1 clients see and keep the annotation; the server does not know the field.
    annotate(bed, BUILTIN, "test-app-hpa", "OwnerReference")
    old = bed.call("GET", bed.path(BUILTIN, "test-app-hpa").replace("/v2/", "/v1/"))
    assert old["metadata"]["annotations"]["tandem.dev/hpa-selection-strategy"] == "OwnerReference"
    bed.refused(hpa(strategy="selectionStrategy: OwnerReference").replace("test-app-hpa", "strict"), "selectionStrategy")


@story("HPAs of our group are refused where built-in ones are, with the path")
def refused(bed):
    good = hpa("autoscaling.tandem.dev/v2")
    for text, *words in [
            (good.replace("STRATEGY", ""). replace("maxReplicas: 5", "maxReplicas: 0"), "spec.maxReplicas"),
            (good.replace("minReplicas: 1", "minReplicas: 6"), "spec.maxReplicas"),
            (good.replace("minReplicas: 1", "minReplicas: 0"), "spec.minReplicas"),
            (good.replace("kind: Deployment", 'kind: ""'), "spec.scaleTargetRef.kind"),
            (good.replace("averageUtilization: 50", "averageUtilization: 0"), "spec.metrics[0].resource.target.averageUtilization"),
            (good.replace("type: Resource,", "type: Nonsense,"), "spec.metrics[0]", "Nonsense"),
            (good.replace("minReplicas: 1", "behavior: {scaleUp: {selectPolicy: Most}}"), "spec.behavior.scaleUp.selectPolicy", "Most"),
            (good.replace("minReplicas: 1", "behavior: {scaleUp: {tolerance: -1}}"), "spec.behavior.scaleUp.tolerance"),
            (hpa("autoscaling.tandem.dev/v2", "selectionStrategy: Owners"), "spec.selectionStrategy", "Owners", "LabelSelector", "OwnerReference")]:
        bed.refused(text, *words)
    bed.apply(hpa("autoscaling.tandem.dev/v2", "selectionStrategy: OwnerReferences"))  # the prototype's spelling


@story("a foreign pod without a request stops an HPA by labels, and not one by owners")
def foreign(bed):
    bed.usage("web-*", "app", "200m", "20Mi")
    bed.apply(workload("web", 1) + """
---
apiVersion: v1
kind: Pod
metadata: {name: stranger, labels: {app: web}}
spec:
  containers: [{name: shell, image: shell}]
""")
    bed.running("app=web", 2)
    bed.create(OURS, autoscaler("web", CPU))
    eventually(60, lambda: (c := bed.condition(OURS, "web", "ScalingActive")) and c["reason"] == "FailedGetResourceMetric" and
               "missing request for cpu in container shell of Pod stranger" in c["message"], "it cannot be computed")
    assert replicas(bed, "web") == 1
    bed.patch(OURS, "web", {"spec": {"selectionStrategy": "OwnerReference"}})
    eventually(60, lambda: replicas(bed, "web") > 1, "the stranger does not count")
    assert bed.programs[0].metric("horizontal_pod_autoscaler_controller_cache_hits_total", resource_kind="replicasets") is not None


@story("by owners, a target that owns none of the pods its selector matches is not scaled")
def nobody(bed):
    bed.external("queue", {}, "100")
    bed.usage("test-job-*", "cpu-load", "1", "20Mi")
    bed.apply(EXAMPLE.replace("replicas: 1", "replicas: 2\n  paused: true"))  # paused before its first pod
    bed.running("app=test-app", 1)
    bed.apply(hpa("autoscaling.tandem.dev/v2", "selectionStrategy: OwnerReference"))
    said = "did not receive metrics for targeted pods (pods might be unready)"
    eventually(60, lambda: (c := bed.condition(OURS, "test-app-hpa", "ScalingActive")) and c["status"] == "False" and said in c["message"],
               "the load of the Job does not count")
    bed.patch(OURS, "test-app-hpa", {"spec": {"metrics": external("queue", value="10")}})
    said = f"no pods owned by Deployment {bed.ns}/test-app among pods matched by selector"
    eventually(60, lambda: (c := bed.condition(OURS, "test-app-hpa", "ScalingActive")) and c["status"] == "False" and said in c["message"],
               "no pod is ready to multiply with")
    assert replicas(bed) == 2


@story("HPAs by owners of Deployments with the same labels do not block each other; those that count the same pods say AmbiguousSelector")
def ambiguous(bed):
    bed.usage("*", "app", "200m", "20Mi")
    bed.apply(workload("one", 1, "shared") + workload("two", 1, "shared"))
    bed.running("app=shared", 2)
    for name in ("one", "two"):
        bed.create(OURS, autoscaler(name, CPU, selectionStrategy="OwnerReference"))
    for name in ("one", "two"):
        eventually(60, lambda: replicas(bed, name) > 1, "each counts its own")
        eventually(20, lambda: (c := bed.condition(OURS, name, "ScalingActive")) and c["status"] == "True", "and says so, after the scale")
        assert "controlled by multiple" not in bed.tandem("explain", "hpa", name, "-n", bed.ns)
    # By labels, the pods of both are counted, and those of the first by both HPAs.
    bed.patch(OURS, "two", {"spec": {"selectionStrategy": "LabelSelector"}})
    said = eventually(60, lambda: (c := bed.condition(OURS, "two", "ScalingActive")) and c["reason"] == "AmbiguousSelector" and c, "ambiguous")
    assert f"pods by selector app=shared are controlled by multiple HPAs: [{bed.ns}/one {bed.ns}/two]" in said["message"], said
    assert "are controlled by multiple HPAs" in bed.tandem("explain", "hpa", "two", "-n", bed.ns)
    assert bed.condition(OURS, "one", "ScalingActive")["status"] == "True"
    bed.patch(OURS, "two", {"spec": {"selectionStrategy": "OwnerReference"}})
    eventually(60, lambda: bed.condition(OURS, "two", "ScalingActive")["status"] == "True", "by owners it is well again")
    # Two of one target count the same pods.
    bed.create(OURS, autoscaler("three", CPU, target="two", selectionStrategy="OwnerReference"))
    eventually(60, lambda: all((c := bed.condition(OURS, name, "ScalingActive")) and c["reason"] == "AmbiguousSelector"
                               for name in ("two", "three")), "two of one target are not told apart")
    bed.delete(OURS, "three")
    # Upstream's rule looks at labels alone.
    bed.programs[-1].stop()
    bed.run(*FLAGS, "--hpa-owner-scoped-ambiguity=false", name="labels")
    for name in ("one", "two"):
        eventually(60, lambda: bed.condition(OURS, name, "ScalingActive")["reason"] == "AmbiguousSelector", "ambiguous by labels")
    bed.delete(OURS, "two")
    eventually(60, lambda: bed.condition(OURS, "one", "ScalingActive")["status"] == "True", "one goes, and the other is free")
    bed.programs[-1].stop()
    bed.run(*FLAGS)


@story("an HPA by labels is free where one by owners selects its pods and does not count them")
def narrow(bed):
    bed.usage("*", "app", "200m", "20Mi")
    deployment = """
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME}
spec:
  replicas: 1
  selector: {matchLabels: {SELECTOR}}
  template:
    metadata: {labels: {app: NAME, tier: shared}}
    spec: {containers: [{name: app, image: app, resources: {requests: {cpu: 100m, memory: 64Mi}}}]}
"""
    bed.apply(deployment.replace("SELECTOR", "tier: shared").replace("NAME", "broad") +
              deployment.replace("SELECTOR", "app: narrow").replace("NAME", "narrow"))
    bed.running("tier=shared", 2)
    bed.create(OURS, autoscaler("broad", CPU, selectionStrategy="OwnerReference"))
    eventually(60, lambda: replicas(bed, "broad") > 1, "by owners")
    bed.create(OURS, autoscaler("narrow", CPU))
    eventually(60, lambda: replicas(bed, "narrow") > 1, "by labels")
    assert "controlled by multiple" not in bed.tandem("explain", "hpa", "narrow", "-n", bed.ns)
    bed.patch(OURS, "broad", {"spec": {"selectionStrategy": "LabelSelector"}})
    for name in ("broad", "narrow"):
        eventually(60, lambda: bed.condition(OURS, name, "ScalingActive")["reason"] == "AmbiguousSelector", "by labels both count the same pods")


@story("a built-in HPA that no controller has written yet is waited with for two sync periods; one of ours is not")
def patience(bed):
    bed.usage("*", "app", "200m", "20Mi")
    bed.apply(workload("mine", 1) + workload("theirs", 1))
    bed.running("app=mine", 1)
    bed.running("app=theirs", 1)
    time.sleep(2)
    began = time.monotonic()
    bed.create(OURS, autoscaler("mine", CPU))
    bed.create(BUILTIN, autoscaler("theirs", CPU))
    eventually(60, lambda: bed.get(OURS, "mine")["status"].get("conditions"), "ours is judged")
    mine = time.monotonic() - began
    eventually(60, lambda: bed.get(BUILTIN, "theirs")["status"].get("conditions"), "the other is judged")
    theirs = time.monotonic() - began
    assert theirs >= 10, f"after {theirs:.1f} s"
    assert mine < theirs, f"{mine:.1f} s, {theirs:.1f} s"
    eventually(60, lambda: replicas(bed, "theirs") == 4, "and scaled")


@story("one target, two HPAs: ours says TargetConflict and stands back, the built-in one is left alone")
def conflict(bed):
    bed.usage("web-*", "app", "200m", "20Mi")
    bed.apply(workload("web", 1))
    bed.running("app=web", 1)
    bed.create(BUILTIN, autoscaler("builtin", CPU, target="web", maxReplicas=2))
    bed.create(OURS, autoscaler("ours", CPU, target="web", maxReplicas=4))
    said = eventually(60, lambda: (c := bed.condition(OURS, "ours", "AbleToScale")) and c["status"] == "False" and c, "ours stands back")
    assert said["reason"] == "TargetConflict" and "builtin" in said["message"] and "web" in said["message"], said
    eventually(60, lambda: replicas(bed, "web") == 2, "the built-in one scales")
    steady(10, lambda: replicas(bed, "web") == 2, "and no other controller")
    assert bed.condition(BUILTIN, "builtin", "AbleToScale")["status"] == "True"
    eventually(30, lambda: messages(bed, "TargetConflict", "ours"), "an event")
    assert not messages(bed, "TargetConflict", "builtin")
    assert "is also scaled by the autoscaling/v2 HorizontalPodAutoscaler" in bed.tandem("explain", "hpa", "ours", "-n", bed.ns)
    bed.delete(BUILTIN, "builtin")
    eventually(60, lambda: replicas(bed, "web") == 4, "with the other gone it scales")


@story("explain looks in both groups and says which; a missing HPA is said too")
def explained(bed):
    bed.usage("*", "app", "200m", "20Mi")
    bed.apply(workload("web", 1) + workload("other", 1))
    bed.create(OURS, autoscaler("web", CPU))
    bed.create(BUILTIN, autoscaler("web", CPU, target="other"))
    eventually(60, lambda: bed.get(BUILTIN, "web")["status"].get("conditions"), "both are judged")
    said = bed.tandem("explain", "hpa", "web", "-n", bed.ns)
    assert "autoscaling.tandem.dev/v2" in said and "autoscaling/v2" in said.replace("autoscaling.tandem.dev/v2", ""), said
    code, _, wrong = bed.tandem("explain", "hpa", "nobody", "-n", bed.ns, check=False)
    assert code != 0 and "nobody" in wrong, wrong


@story("policies, windows, tolerance, minimum and maximum")
def behaviour(bed):
    bed.usage("step-*", "app", "200m", "20Mi")
    bed.usage("still-*", "app", "60m", "20Mi")
    bed.usage("low-*", "app", "10m", "20Mi")
    bed.usage("bounds-*", "app", "10m", "20Mi")
    bed.apply(workload("step", 1) + workload("still", 2) + workload("low", 3) + workload("bounds", 1) + workload("paused", 0))
    for name, count in (("step", 1), ("still", 2), ("low", 3), ("bounds", 1)):
        bed.running(f"app={name}", count)
    one = {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 10}]}
    bed.create(OURS, autoscaler("step", CPU, behavior={"scaleUp": one, "scaleDown": {**one, "stabilizationWindowSeconds": 0}}, maxReplicas=3))
    bed.create(OURS, autoscaler("still", CPU, behavior={"scaleUp": {"tolerance": "500m"}}))
    bed.create(OURS, autoscaler("low", CPU, behavior={"scaleDown": {"selectPolicy": "Disabled"}}))
    bed.create(OURS, autoscaler("bounds", CPU, minReplicas=3))
    bed.create(OURS, autoscaler("paused", CPU))
    seen = []
    def watch():
        now = replicas(bed, "step")
        if not seen or seen[-1] != now:
            seen.append(now)
        return now == 3
    eventually(90, watch, "one by one")
    assert seen in ([1, 2, 3], [2, 3]), seen
    eventually(30, lambda: bed.condition(OURS, "step", "ScalingLimited")["reason"] == "TooManyReplicas", "the maximum is told")
    eventually(30, lambda: replicas(bed, "bounds") == 3, "the minimum is restored")
    bed.patch("Deployment", "bounds", {"spec": {"replicas": 9}}, subresource="scale")
    eventually(30, lambda: replicas(bed, "bounds") < 9, "and the maximum")
    eventually(30, lambda: any("above Spec.MaxReplicas" in text for text in messages(bed, "SuccessfulRescale", "bounds")), "the reason is told")
    said = bed.condition(OURS, "paused", "ScalingActive")
    assert said["status"] == "False" and said["reason"] == "ScalingDisabled", said
    now = {name: replicas(bed, name) for name in ("paused", "low", "still")}
    assert now == {"paused": 0, "low": 3, "still": 2}, now
    assert bed.condition(OURS, "low", "ScalingLimited")["status"] == "True"
    # A paused one goes on where a user scales it up.
    bed.usage("paused-*", "app", "200m", "20Mi")
    bed.patch("Deployment", "paused", {"spec": {"replicas": 1}}, subresource="scale")
    eventually(60, lambda: replicas(bed, "paused") > 1, "it is served again")
    # Beyond the tolerance it acts.
    bed.rows.pop((bed.ns, "still-*", "app"))
    bed.usage("still-*", "app", "90m", "20Mi")
    eventually(60, lambda: replicas(bed, "still") > 2, "beyond the tolerance")


@story("a metric that is away is no reason to shrink; one that is back is")
def away(bed):
    bed.external("queue", {}, "100")
    bed.apply(workload("web", 4))
    bed.running("app=web", 4)
    bed.create(OURS, autoscaler("web", external("queue", average="25")))
    eventually(60, lambda: bed.condition(OURS, "web", "ScalingActive")["status"] == "True", "it is judged")
    bed.external("queue", {}, None)
    said = eventually(60, lambda: (c := bed.condition(OURS, "web", "ScalingActive")) and c["status"] == "False" and c, "it is told")
    assert said["reason"] == "FailedGetExternalMetric" and "no metrics returned from external metrics API" in said["message"], said
    steady(15, lambda: replicas(bed, "web") == 4, "nothing happens meanwhile")
    eventually(30, lambda: messages(bed, "FailedComputeMetricsReplicas", "web"), "an event")
    bed.external("queue", {}, "25")
    eventually(60, lambda: replicas(bed, "web") == 1, "with the metric back it shrinks")


@story("to zero and back, with the gate that allows it")
def zero(bed):
    bed.external("queue", {}, "0")
    bed.apply(workload("web", 2))
    bed.running("app=web", 2)
    body = autoscaler("web", external("queue", average="10"), minReplicas=0)
    try:
        bed.create(OURS, body)
    except Refused as refusal:
        assert "spec.minReplicas" in refusal.message, refusal.message
    else:
        raise AssertionError("minReplicas 0 was accepted without the gate")
    bed.programs[-1].stop()
    gated = bed.run(*FLAGS, "--feature-gates=HPAScaleToZero=true", name="zero")
    eventually(30, lambda: bed.create(OURS, body), "with the gate it is accepted")
    eventually(60, lambda: replicas(bed, "web") == 0, "nothing waits: no pod is needed")
    said = eventually(30, lambda: bed.condition(OURS, "web", "ScaledToZero"), "that is told")
    assert said["status"] == "True", said
    bed.external("queue", {}, "20")
    eventually(60, lambda: replicas(bed, "web") == 2, "the queue wakes it")
    assert eventually(30, lambda: (c := bed.condition(OURS, "web", "ScaledToZero")) and c["status"] == "False", "that is told")
    # A user who scales to zero by hand means it.
    bed.patch("Deployment", "web", {"spec": {"replicas": 0}}, subresource="scale")
    eventually(30, lambda: bed.condition(OURS, "web", "ScalingActive")["reason"] == "ScalingDisabled", "it is paused")
    steady(8, lambda: replicas(bed, "web") == 0, "and stays so")
    gated.stop()
    bed.run(*FLAGS)


@story("with the gate closed the strategy is not looked at")
def closed(bed):
    bed.programs[-1].stop()
    gated = bed.run(*FLAGS, "--feature-gates=HPASelectionStrategy=false", name="gated")
    bed.usage("test-app-*", "nginx", "10m", "20Mi")
    bed.usage("test-job-*", "cpu-load", "1", "20Mi")
    bed.apply(EXAMPLE)
    bed.running("app=test-app", 2)
    bed.apply(hpa("autoscaling.tandem.dev/v2", "selectionStrategy: OwnerReference"))
    eventually(60, lambda: replicas(bed) > 1, "the Job counts")
    assert not messages(bed, "SelectionStrategyActive") and not messages(bed, "StrategyChanged")
    gated.stop()
    bed.run(*FLAGS)
    eventually(60, lambda: messages(bed, "SelectionStrategyActive"), "with the gate open it is looked at")
    eventually(60, lambda: replicas(bed) == 1, "and the Job does not count")


main(setup=lambda bed: bed.run(*FLAGS))
